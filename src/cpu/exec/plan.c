/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan: for one set of input shapes, which kernels run in which order, and where every byte lies.
 *
 * Nodes are walked once. Each is reshaped with what is known: shapes always, data where it is
 * constant. What can be worked out now is (shape arithmetic vanishes), views and in-place results
 * share their input's bytes, and what depends on data becomes a dynamic step that is reshaped again
 * while invoking.
 */
#include "base/alloc.h"
#include "base/checked.h"
#include "cpu/exec/exec.h"
#include "runtime/opset/bridge.h"

#include <string.h>

/* Results worked out while planning stay below this; larger ones are recomputed by each invoke. */
#define PLAN_FOLD_MAX_BYTES ((size_t)64 << 10)
#define ALIVE_FOREVER UINT32_MAX

/* More elements than extents or a condition have: data that no plan is made for. */
#define GIVEN_MAX_ELEMENTS 16
/* In a mask of inputs: one whose data no plan is made for. */
#define NEVER_GIVEN ((uint64_t)1 << 63)

typedef struct planner {
    kelp_frame *frame;
    kelp_cpu_context *context;
    kelp_cpu_engine *engine;
    kelp_plan *plan;
    size_t base;         /* where the values of the block that is walked begin */
    uint32_t *same;      /* by value: the one it is another name of, of a block around it or inside;
                            its own id when it is none */
    uint32_t *remaining; /* uses still to come, by root */
    uint64_t *from;      /* by value: inputs whose data it is made of */
} planner;

static size_t index_of(const planner *p, const kelp_value *value) {
    return p->same[p->base + value->id];
}

static kelp_plan_value *value_of(const planner *p, const kelp_value *value) {
    return &p->plan->values[index_of(p, value)];
}

static kelp_plan_value *root_of(const planner *p, const kelp_plan_value *value) {
    return &p->plan->values[value->root];
}

/* A block is entered: its constants are known. */
static void enter(planner *p, const kelp_program *program, size_t base) {
    p->base = base;
    for (size_t i = 0; i < program->block->value_count; i++) {
        const kelp_value *from = program->block->values[i];
        kelp_plan_value *value = &p->plan->values[base + i];
        p->remaining[base + i] = from->use_count;
        if (from->constant != NULL) {
            value->tensor = *from->constant;
            value->storage = KELP_STORAGE_FIXED;
            value->bytes = kelp_tensor_bytes(&value->tensor);
        }
    }
}

bool kelp_plan_may_know(const kelp_tensor *tensor) {
    bool counts =
        tensor->dtype == KELP_I64 || tensor->dtype == KELP_I32 || tensor->dtype == KELP_BOOL;
    return counts && kelp_tensor_elements(tensor) <= GIVEN_MAX_ELEMENTS;
}

static bool may_be_given(const kelp_tensor *tensor) {
    return tensor->data != NULL && kelp_plan_may_know(tensor);
}

static kelp_status *init_inputs(planner *p) {
    kelp_plan *plan = p->plan;
    const kelp_block *block = p->frame->program->block;
    for (uint32_t i = 0; i < block->input_count; i++) {
        kelp_plan_value *value = value_of(p, block->inputs[i]);
        kelp_tensor *shape = &plan->input_shapes[i];
        *shape = p->frame->inputs[i];
        size_t bytes = kelp_tensor_bytes(shape);
        bool given = i < 63 && (plan->given >> i & 1) != 0;
        if (given) {
            void *copy = kelp_arena_alloc(&plan->arena, bytes, KELP_TENSOR_ALIGNMENT);
            if (copy == NULL)
                return kelp_status_oom();
            memcpy(copy, shape->data, bytes);
            shape->data = copy;
        } else {
            p->from[index_of(p, block->inputs[i])] =
                i < 63 && may_be_given(shape) ? (uint64_t)1 << i : NEVER_GIVEN;
            shape->data = NULL; /* not known while planning */
        }
        value->tensor = *shape;
        value->storage = given ? KELP_STORAGE_FIXED : KELP_STORAGE_INPUT;
        value->index = i;
        value->bytes = bytes;
    }
    return NULL;
}

static kelp_status *init_plan(planner *p) {
    kelp_plan *plan = p->plan;
    const kelp_program *program = p->frame->program;
    const kelp_block *block = program->block;
    kelp_arena *arena = &plan->arena;
    plan->value_count = program->value_total;
    plan->values = KELP_ARENA_ARRAY(arena, plan->value_count + 1, kelp_plan_value);
    p->remaining = KELP_ARENA_ARRAY(arena, plan->value_count + 1, uint32_t);
    p->same = KELP_ARENA_ARRAY(arena, plan->value_count + 1, uint32_t);
    p->from = KELP_ARENA_ARRAY(arena, plan->value_count + 1, uint64_t);
    plan->steps = KELP_ARENA_ARRAY(arena, program->node_total + 1, kelp_step);
    plan->input_shapes = KELP_ARENA_ARRAY(arena, block->input_count + 1, kelp_tensor);
    plan->copies = KELP_ARENA_ARRAY(arena, block->output_count + 1, bool);
    plan->open = KELP_ARENA_ARRAY(arena, block->output_count + 1, bool);
    plan->outputs = KELP_ARENA_ARRAY(arena, block->output_count + 1, const kelp_plan_value *);
    plan->moving = KELP_ARENA_ARRAY(arena, plan->value_count + 1, uint32_t);
    if (plan->values == NULL || p->remaining == NULL || p->same == NULL || p->from == NULL ||
        plan->steps == NULL || plan->input_shapes == NULL || plan->copies == NULL ||
        plan->open == NULL || plan->outputs == NULL || plan->moving == NULL)
        return kelp_status_oom();
    for (uint32_t id = 0; id < plan->value_count; id++) {
        plan->values[id].root = id;
        p->same[id] = id;
    }
    enter(p, program, 0);
    return init_inputs(p);
}

/* Arrays of pointers into the plan's values; the kernel's own memory. */
static kelp_status *init_args(planner *p, const kelp_cpu_node *engine_node, kelp_op_args *args) {
    const kelp_node *node = engine_node->node;
    kelp_arena *arena = &p->plan->arena;
    const kelp_tensor **inputs =
        KELP_ARENA_ARRAY(arena, node->input_count + 1, const kelp_tensor *);
    kelp_tensor **outputs = KELP_ARENA_ARRAY(arena, node->output_count + 1, kelp_tensor *);
    void *memory = NULL;
    if (engine_node->kernel->plan_bytes > 0) {
        memory = kelp_arena_alloc(arena, engine_node->kernel->plan_bytes, KELP_TENSOR_ALIGNMENT);
        if (memory != NULL)
            memset(memory, 0, engine_node->kernel->plan_bytes);
    }
    if (inputs == NULL || outputs == NULL || (engine_node->kernel->plan_bytes > 0 && !memory))
        return kelp_status_oom();
    for (size_t i = 0; i < node->input_count; i++)
        inputs[i] = node->inputs[i] ? &value_of(p, node->inputs[i])->tensor : NULL;
    for (size_t i = 0; i < node->output_count; i++)
        outputs[i] = node->outputs[i] ? &value_of(p, node->outputs[i])->tensor : NULL;
    *args = (kelp_op_args){.node = node,
                           .input_count = (int32_t)node->input_count,
                           .output_count = (int32_t)node->output_count,
                           .inputs = inputs,
                           .outputs = outputs,
                           .plan = memory,
                           .env = &p->frame->env};
    return NULL;
}

static bool any_input_dynamic(planner *p, const kelp_node *node) {
    for (size_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NULL && value_of(p, node->inputs[i])->dynamic)
            return true;
    return false;
}

/* ---- whose data a value is made of ---- */
static void note_sources(planner *p, const kelp_cpu_node *engine_node, bool dynamic) {
    const kelp_node *node = engine_node->node;
    uint64_t from = 0;
    for (size_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NULL)
            from |= p->from[index_of(p, node->inputs[i])];
    if ((engine_node->kernel->flags & KELP_OP_SHAPE_ONLY) != 0 && !dynamic)
        from = 0;
    if ((engine_node->kernel->flags & KELP_OP_IMPURE) != 0)
        from |= NEVER_GIVEN;
    for (size_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NULL)
            p->from[index_of(p, node->outputs[i])] = from;
}

/* A step waits for data: would it be known if some inputs were given? Extents and conditions are
 * integers and bools; an If waits for its condition alone. */
static void note_want(planner *p, const kelp_cpu_node *engine_node) {
    const kelp_node *node = engine_node->node;
    uint64_t wants = 0;
    bool is_if = node->op == KELP_OP(If);
    if ((engine_node->kernel == &kelp_bridge_kernel ||
         engine_node->kernel == &kelp_subgraph_kernel) &&
        !is_if)
        return; /* dispatched, whatever is known */
    for (size_t i = 0; i < node->input_count && (i == 0 || !is_if); i++) {
        const kelp_plan_value *value = node->inputs[i] ? value_of(p, node->inputs[i]) : NULL;
        if (value == NULL || value->tensor.data != NULL)
            continue;
        kelp_dtype dtype = value->tensor.dtype;
        if (value->dynamic || dtype == KELP_I64 || dtype == KELP_I32 || dtype == KELP_BOOL)
            wants |= p->from[index_of(p, node->inputs[i])];
    }
    if ((wants & NEVER_GIVEN) == 0)
        p->plan->wants |= wants;
}

/* ---- what can be worked out now ---- */
static bool can_evaluate(planner *p, const kelp_cpu_node *engine_node) {
    const kelp_node *node = engine_node->node;
    if ((engine_node->kernel->flags & KELP_OP_IMPURE) != 0)
        return false;
    size_t bytes = 0;
    for (size_t i = 0; i < node->output_count; i++) {
        const kelp_plan_value *value = node->outputs[i] ? value_of(p, node->outputs[i]) : NULL;
        if (value != NULL && value->tensor.dtype == KELP_STRING && p->frame->body != NULL)
            return false; /* texts a body gives may outlive its plan */
        bytes += value != NULL ? value->bytes : 0;
    }
    if (bytes > PLAN_FOLD_MAX_BYTES)
        return false;
    if ((engine_node->kernel->flags & KELP_OP_SHAPE_ONLY) != 0)
        return true;
    for (size_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NULL &&
            root_of(p, value_of(p, node->inputs[i]))->storage != KELP_STORAGE_FIXED)
            return false;
    return true;
}

static kelp_status *evaluate(planner *p, const kelp_cpu_node *engine_node, kelp_op_args *args) {
    kelp_arena *arena = &p->plan->arena;
    kelp_op_env env = p->frame->env;
    env.arena = arena;
    args->env = &env;
    for (int32_t i = 0; i < args->output_count; i++) {
        if (args->outputs[i] == NULL)
            continue;
        kelp_plan_value *value = value_of(p, engine_node->node->outputs[i]);
        value->tensor.data = kelp_arena_alloc(arena, value->bytes, KELP_TENSOR_ALIGNMENT);
        value->storage = KELP_STORAGE_FIXED;
        if (value->tensor.data == NULL)
            return kelp_status_oom();
    }
    if (args->scratch_bytes > 0) {
        args->scratch = kelp_arena_alloc(arena, args->scratch_bytes, KELP_TENSOR_ALIGNMENT);
        if (args->scratch == NULL)
            return kelp_status_oom();
    }
    p->plan->stats.folded++;
    return engine_node->kernel->invoke(engine_node->state, args);
}

/* ---- sharing bytes ---- */
static bool only_output_zero(const kelp_op_args *args) {
    for (int32_t i = 1; i < args->output_count; i++)
        if (args->outputs[i] != NULL)
            return false;
    return args->output_count > 0 && args->outputs[0] != NULL;
}

static void share(planner *p, kelp_plan_value *output, kelp_plan_value *input) {
    kelp_plan_value *root = root_of(p, input);
    uint32_t own = output->root;
    output->root = input->root;
    p->remaining[input->root] += p->remaining[own];
    if (root->storage == KELP_STORAGE_FIXED)
        output->tensor.data = input->tensor.data;
}

static bool try_view(planner *p, const kelp_cpu_node *engine_node, const kelp_op_args *args) {
    if ((engine_node->kernel->flags & KELP_OP_VIEW) == 0 || !only_output_zero(args) ||
        args->inputs[0] == NULL)
        return false;
    kelp_plan_value *input = value_of(p, engine_node->node->inputs[0]);
    kelp_plan_value *output = value_of(p, engine_node->node->outputs[0]);
    if (output->bytes != kelp_tensor_bytes(&input->tensor))
        return false;
    share(p, output, input);
    p->plan->stats.views++;
    return true;
}

static bool try_inplace(planner *p, const kelp_cpu_node *engine_node, const kelp_op_args *args) {
    static const uint32_t flags[2] = {KELP_OP_INPLACE_0, KELP_OP_INPLACE_1};
    if (!only_output_zero(args))
        return false;
    kelp_plan_value *output = value_of(p, engine_node->node->outputs[0]);
    for (int32_t k = 0; k < 2 && k < args->input_count; k++) {
        if ((engine_node->kernel->flags & flags[k]) == 0 || args->inputs[k] == NULL)
            continue;
        kelp_plan_value *input = value_of(p, engine_node->node->inputs[k]);
        /* the last use of bytes that this plan itself made */
        if (root_of(p, input)->storage == KELP_STORAGE_WORKSPACE &&
            p->remaining[input->root] == 1 && output->bytes == kelp_tensor_bytes(&input->tensor) &&
            kelp_tensor_elements(&input->tensor) == kelp_tensor_elements(&output->tensor)) {
            share(p, output, input);
            return true;
        }
    }
    return false;
}

/* ---- steps ---- */
static void touch(planner *p, const kelp_node *node, uint32_t step) {
    for (size_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NULL) {
            kelp_plan_value *root = root_of(p, value_of(p, node->inputs[i]));
            root->last = KELP_MAX(root->last, step);
        }
}

static void consume(planner *p, const kelp_node *node) {
    for (size_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NULL)
            p->remaining[value_of(p, node->inputs[i])->root]--;
}

static void add_step(planner *p, const kelp_cpu_node *engine_node, const kelp_op_args *args,
                     bool dynamic) {
    uint32_t index = (uint32_t)p->plan->step_count++;
    p->plan->steps[index] =
        (kelp_step){.engine_node = engine_node, .args = *args, .dynamic = dynamic};
    if (args->env != &p->frame->env)
        kelp_frame_lend((kelp_op_env *)args->env, p->context);
    const kelp_node *node = engine_node->node;
    touch(p, node, index);
    for (size_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == NULL)
            continue;
        kelp_plan_value *value = value_of(p, node->outputs[i]);
        if (dynamic) {
            value->dynamic = true;
            value->storage = KELP_STORAGE_DYNAMIC;
            continue;
        }
        kelp_plan_value *root = root_of(p, value);
        if (root == value) {
            value->storage = KELP_STORAGE_WORKSPACE;
            value->first = index;
        }
        root->last = KELP_MAX(root->last, index);
        p->plan->stats.activation_bytes += value->bytes;
    }
    if (dynamic)
        p->plan->stats.dynamic_steps++;
}

/* The node's blocks are made ready, with an env that lists them. */
static kelp_status *add_bodies(planner *p, const kelp_cpu_node *engine_node, kelp_op_args *args) {
    const kelp_node *node = engine_node->node;
    kelp_op_env *env = KELP_ARENA_NEW(&p->plan->arena, kelp_op_env);
    uint64_t given = 0;
    if (env == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < node->input_count && i < 63; i++) {
        const kelp_plan_value *value = node->inputs[i] ? value_of(p, node->inputs[i]) : NULL;
        if (value != NULL && !value->dynamic && root_of(p, value)->storage == KELP_STORAGE_FIXED &&
            may_be_given(&value->tensor))
            given |= (uint64_t)1 << i;
    }
    *env = p->frame->env; /* what runs have is lent when it is a step */
    KELP_TRY(kelp_bodies_create(p->context, p->plan, engine_node, given, &env->bodies));
    args->env = env;
    return NULL;
}

static void add_dynamic(planner *p, const kelp_cpu_node *engine_node, kelp_op_args *args) {
    args->deferred = false;
    args->scratch_bytes = 0;
    note_want(p, engine_node);
    note_sources(p, engine_node, true);
    add_step(p, engine_node, args, true);
    consume(p, engine_node->node);
}

static kelp_status *plan_node(planner *p, const kelp_cpu_node *engine_node);

/* The branch of an If: its nodes are planned as the outer block's, captures and results are other
 * names of outer values. */
static kelp_status *plan_branch(planner *p, const kelp_cpu_node *engine_node,
                                const kelp_program *program) {
    const kelp_node *node = engine_node->node;
    const kelp_block *branch = program->block;
    size_t outer = p->base, inner = outer + program->value_offset;
    size_t first = node->input_count - branch->input_count;
    enter(p, program, inner);
    for (size_t i = 0; i < branch->input_count; i++) {
        uint32_t id = p->same[outer + node->inputs[first + i]->id];
        p->same[inner + branch->inputs[i]->id] = id;
        p->remaining[p->plan->values[id].root] += branch->inputs[i]->use_count;
    }
    for (size_t i = 0; i < program->node_count; i++)
        KELP_TRY(plan_node(p, &program->nodes[i]));
    for (size_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == NULL)
            continue;
        uint32_t id = p->same[inner + branch->outputs[i]->id];
        p->same[outer + node->outputs[i]->id] = id;
        p->remaining[p->plan->values[id].root] += node->outputs[i]->use_count;
    }
    for (size_t i = 0; i < branch->output_count; i++) /* that the branch gives it is no use more */
        p->remaining[value_of(p, branch->outputs[i])->root]--;
    p->base = outer;
    consume(p, node);
    p->plan->stats.folded++;
    return NULL;
}

static kelp_status *plan_if(planner *p, const kelp_cpu_node *engine_node, bool *out_planned) {
    const kelp_node *node = engine_node->node;
    kelp_block *branch = NULL;
    const kelp_plan_value *condition =
        node->input_count > 0 && node->inputs[0] != NULL ? value_of(p, node->inputs[0]) : NULL;
    *out_planned = condition != NULL && !condition->dynamic &&
                   root_of(p, condition)->storage == KELP_STORAGE_FIXED &&
                   kelp_cpu_engine_known_branch(node, &condition->tensor, &branch);
    for (size_t k = 0; *out_planned && k < engine_node->body_count; k++)
        if (engine_node->bodies[k]->block == branch)
            return plan_branch(p, engine_node, engine_node->bodies[k]);
    return NULL;
}

static kelp_status *plan_known(planner *p, const kelp_cpu_node *engine_node, kelp_op_args *args) {
    const kelp_node *node = engine_node->node;
    for (size_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NULL) {
            kelp_plan_value *value = value_of(p, node->outputs[i]);
            value->bytes = kelp_tensor_bytes(&value->tensor);
        }
    note_sources(p, engine_node, false);
    if (can_evaluate(p, engine_node))
        return evaluate(p, engine_node, args);
    if (!try_view(p, engine_node, args)) {
        try_inplace(p, engine_node, args);
        add_step(p, engine_node, args, false);
    }
    return NULL;
}

static kelp_status *plan_node(planner *p, const kelp_cpu_node *engine_node) {
    const kelp_node *node = engine_node->node;
    kelp_op_args args;
    bool planned = false;
    if (engine_node->body_count > 0) {
        KELP_TRY(plan_if(p, engine_node, &planned));
        if (planned)
            return NULL;
    }
    KELP_TRY(init_args(p, engine_node, &args));
    if (engine_node->body_count > 0)
        KELP_TRY(add_bodies(p, engine_node, &args));
    if (any_input_dynamic(p, node)) {
        add_dynamic(p, engine_node, &args);
        return NULL;
    }
    kelp_status *status = kelp_opset_check_lists(engine_node->kernel, &args);
    if (status == NULL)
        status = engine_node->kernel->reshape(engine_node->state, &args);
    kelp_cpu_engine_weights_relax(p->context->core); /* it may have packed */
    if (status == NULL && args.deferred) {
        add_dynamic(p, engine_node, &args);
        return NULL;
    }
    if (status == NULL)
        status = plan_known(p, engine_node, &args);
    if (status != NULL)
        return kelp_frame_name_node(p->frame, node, status);
    consume(p, node);
    return NULL;
}

/* A root that is an output is written where the output goes; one that is an input, a constant or
 * two outputs is copied. */
static void claim_outputs(planner *p) {
    const kelp_block *block = p->frame->program->block;
    for (uint32_t i = 0; i < block->output_count; i++) {
        kelp_plan_value *value = value_of(p, block->outputs[i]);
        p->plan->outputs[i] = value;
        p->plan->open[i] = value->dynamic;
        kelp_plan_value *root = root_of(p, value);
        size_t root_bytes = kelp_tensor_bytes(&root->tensor);
        if (!value->dynamic && root->storage == KELP_STORAGE_WORKSPACE &&
            root_bytes == value->bytes) {
            root->storage = KELP_STORAGE_OUTPUT;
            root->index = i;
        } else {
            p->plan->copies[i] = true;
            root->last = ALIVE_FOREVER;
        }
    }
}

static kelp_status *place(planner *p) {
    kelp_plan *plan = p->plan;
    size_t most = plan->value_count + plan->step_count + 1, count = 0;
    kelp_interval *intervals = NULL;
    KELP_TRY(kelp_alloc_zero(p->context->allocator, most, sizeof *intervals + 2 * sizeof(uint32_t),
                             (void **)&intervals));
    uint32_t *order = (uint32_t *)(intervals + most), *placed = order + most;
    for (size_t i = 0; i < plan->value_count; i++) {
        const kelp_plan_value *value = &plan->values[i];
        if (value->root == i && value->storage == KELP_STORAGE_WORKSPACE)
            intervals[count++] = (kelp_interval){value->bytes, value->first, value->last, 0, 0};
    }
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].args.scratch_bytes > 0)
            intervals[count++] = (kelp_interval){plan->steps[i].args.scratch_bytes, i, i, 0, 0};
    bool fits = kelp_memory_plan(intervals, count, order, placed, &plan->workspace_bytes,
                                 &plan->stats.workspace_lower_bound_bytes);
    count = 0;
    for (size_t i = 0; i < plan->value_count; i++) {
        kelp_plan_value *value = &plan->values[i];
        if (value->root == i && value->storage == KELP_STORAGE_WORKSPACE)
            value->offset = intervals[count++].offset;
    }
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].args.scratch_bytes > 0)
            plan->steps[i].scratch_offset = intervals[count++].offset;
    kelp_free(p->context->allocator, intervals, most * (sizeof *intervals + 2 * sizeof(uint32_t)));
    if (!fits)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                          "cannot plan model '%s': its activations exceed the address space",
                          p->engine->graph->info.label);
    plan->stats.workspace_bytes = plan->workspace_bytes;
    plan->stats.steps = plan->step_count;
    return NULL;
}

static void list_moving(planner *p) {
    kelp_plan *plan = p->plan;
    for (uint32_t i = 0; i < plan->value_count; i++) {
        kelp_storage storage = root_of(p, &plan->values[i])->storage;
        if (!plan->values[i].dynamic &&
            (storage == KELP_STORAGE_INPUT || storage == KELP_STORAGE_OUTPUT))
            plan->moving[plan->moving_count++] = i;
    }
}

kelp_status *kelp_plan_create(kelp_frame *frame, uint64_t given, kelp_plan **out) {
    kelp_cpu_context *context = frame->context;
    const kelp_program *program = frame->program;
    kelp_plan *plan = NULL;
    KELP_TRY(KELP_NEW(context->allocator, kelp_plan, &plan));
    kelp_arena_init(&plan->arena, context->allocator, 32 << 10);
    plan->given = given;
    planner p = {.frame = frame, .context = context, .engine = context->engine, .plan = plan};
    /* kernels that need memory which lives until invoke find none while planning, and defer; what
     * is laid out now is for all runs, so that the end of this one does not end it */
    frame->env.arena = NULL;
    frame->env.stop = NULL;
    kelp_status *status = init_plan(&p);
    for (size_t i = 0; status == NULL && i < program->node_count; i++)
        status = plan_node(&p, &program->nodes[i]);
    if (status == NULL) {
        claim_outputs(&p);
        list_moving(&p);
        status = place(&p);
    }
    kelp_frame_lend(&frame->env, context);
    if (given != 0 || frame->body != NULL) /* what these data do not settle, no data do */
        plan->wants = 0;
    if (status != NULL) {
        kelp_plan_destroy(plan, context->allocator);
        return status;
    }
    *out = plan;
    return NULL;
}

void kelp_plan_destroy(kelp_plan *plan, kelp_allocator allocator) {
    if (plan == NULL)
        return;
    kelp_bodies_destroy(plan);
    kelp_arena_deinit(&plan->arena);
    kelp_free(allocator, plan, sizeof *plan);
}

bool kelp_plan_fits(const kelp_plan *plan, const kelp_frame *frame) {
    for (size_t i = 0; i < frame->program->block->input_count; i++) {
        const kelp_tensor *a = &plan->input_shapes[i], *b = &frame->inputs[i];
        if (a->rank != b->rank || a->dtype != b->dtype ||
            (a->rank > 0 && memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) != 0))
            return false;
        size_t bytes = a->data != NULL ? kelp_tensor_bytes(a) : 0;
        if (bytes > 0 && memcmp(a->data, b->data, bytes) != 0)
            return false;
    }
    return true;
}

/* ---- binding ---- */
static void resolve(kelp_plan *plan, const kelp_frame *frame, kelp_plan_value *value) {
    const kelp_plan_value *root = &plan->values[value->root];
    switch (root->storage) {
    case KELP_STORAGE_INPUT:
        value->tensor.data = frame->input_data[root->index];
        break;
    case KELP_STORAGE_OUTPUT:
        value->tensor.data = frame->outputs[root->index].target;
        break;
    case KELP_STORAGE_WORKSPACE:
        value->tensor.data = frame->workspace + root->offset;
        break;
    case KELP_STORAGE_NONE:
    case KELP_STORAGE_FIXED:
    case KELP_STORAGE_DYNAMIC:
        break;
    }
}

void kelp_plan_bind(kelp_plan *plan, kelp_frame *frame) {
    if (!plan->bound || plan->bound_workspace != frame->workspace) {
        for (size_t i = 0; i < plan->value_count; i++)
            if (!plan->values[i].dynamic)
                resolve(plan, frame, &plan->values[i]);
        for (size_t i = 0; i < plan->step_count; i++)
            if (plan->steps[i].args.scratch_bytes > 0)
                plan->steps[i].args.scratch = frame->workspace + plan->steps[i].scratch_offset;
        plan->bound_workspace = frame->workspace;
        plan->bound = true;
        return;
    }
    for (size_t i = 0; i < plan->moving_count; i++)
        resolve(plan, frame, &plan->values[plan->moving[i]]);
}
