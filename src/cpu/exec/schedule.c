/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compilation of schedules: the kernel calls and the memory layout for one set of input shapes.
 *
 * Each node is visited once and reshaped with the known shapes and data. Nodes with known inputs
 * are evaluated, which removes shape arithmetic. Views and in-place results share the bytes of
 * their input. Nodes whose shapes depend on data become dynamic steps, which are reshaped in each
 * run.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "cpu/exec/context.h"
#include "runtime/opset/bridge.h"

#include <string.h>

/* Larger results are computed in each run and not during scheduling. */
#define FOLD_MAX_BYTES ((size_t)64 << 10)
#define ALIVE_FOREVER UINT32_MAX

/* Enough for dimensions or a condition; no schedule is specialized for larger data. */
#define SPECIALIZED_MAX_ELEMENTS 16
/* In a mask of inputs: some input whose data no schedule is specialized for. */
#define NEVER_SPECIALIZED ((uint64_t)1 << KELP_CPU_MASKED_INPUTS)

typedef struct scheduler {
    kelp_cpu_instance *instance;
    kelp_cpu_context *context;
    kelp_cpu_engine *engine;
    kelp_cpu_schedule *schedule;
    size_t base;         /* index of the first value of the current block */
    uint32_t *same;      /* by value: the value of an outer or inner block that it is identical to,
                            or its own id */
    uint32_t *remaining; /* by root: number of remaining uses */
    uint64_t *from;      /* by value: mask of inputs whose data determines it */
} scheduler;

static size_t index_of(const scheduler *p, const kelp_value *value) {
    KELP_ASSERT(p->base + value->id < p->schedule->value_count);
    return p->same[p->base + value->id];
}

static kelp_cpu_value *value_of(const scheduler *p, const kelp_value *value) {
    return &p->schedule->values[index_of(p, value)];
}

static kelp_cpu_value *root_of(const scheduler *p, const kelp_cpu_value *value) {
    return &p->schedule->values[value->root];
}

/* Makes a block current and sets its constants. */
static void enter(scheduler *p, const kelp_cpu_program *program, size_t base) {
    KELP_ASSERT(base + program->block->value_count <= p->schedule->value_count);
    p->base = base;
    for (size_t i = 0; i < program->block->value_count; i++) {
        const kelp_value *from = program->block->values[i];
        kelp_cpu_value *value = &p->schedule->values[base + i];
        p->remaining[base + i] = from->use_count;
        if (from->constant != NULL) {
            value->tensor = *from->constant;
            value->storage = KELP_CPU_STORAGE_FIXED;
            value->bytes = kelp_tensor_bytes(&value->tensor);
        }
    }
}

bool kelp_cpu_may_specialize(const kelp_tensor *tensor) {
    bool counts =
        tensor->dtype == KELP_I64 || tensor->dtype == KELP_I32 || tensor->dtype == KELP_BOOL;
    return counts && kelp_tensor_elements(tensor) <= SPECIALIZED_MAX_ELEMENTS;
}

static bool may_specialize(const kelp_tensor *tensor) {
    return tensor->data != NULL && kelp_cpu_may_specialize(tensor);
}

static kelp_status *init_inputs(scheduler *p) {
    kelp_cpu_schedule *schedule = p->schedule;
    const kelp_block *block = p->instance->program->block;
    for (uint32_t i = 0; i < block->input_count; i++) {
        kelp_cpu_value *value = value_of(p, block->inputs[i]);
        kelp_tensor *shape = &schedule->input_shapes[i];
        *shape = p->instance->inputs[i];
        size_t bytes = kelp_tensor_bytes(shape);
        bool specialized = i < KELP_CPU_MASKED_INPUTS && (schedule->specialized >> i & 1) != 0;
        if (specialized) {
            void *copy = kelp_arena_alloc(&schedule->arena, bytes, KELP_TENSOR_ALIGNMENT);
            if (copy == NULL)
                return kelp_status_oom();
            memcpy(copy, shape->data, bytes);
            shape->data = copy;
        } else {
            p->from[index_of(p, block->inputs[i])] =
                i < KELP_CPU_MASKED_INPUTS && may_specialize(shape) ? (uint64_t)1 << i
                                                                    : NEVER_SPECIALIZED;
            shape->data = NULL; /* unknown during scheduling */
        }
        value->tensor = *shape;
        value->storage = specialized ? KELP_CPU_STORAGE_FIXED : KELP_CPU_STORAGE_INPUT;
        value->index = i;
        value->bytes = bytes;
    }
    return NULL;
}

static kelp_status *init_schedule(scheduler *p) {
    kelp_cpu_schedule *schedule = p->schedule;
    const kelp_cpu_program *program = p->instance->program;
    const kelp_block *block = program->block;
    kelp_arena *arena = &schedule->arena;
    schedule->value_count = program->value_total;
    schedule->values = KELP_ARENA_ARRAY(arena, schedule->value_count + 1, kelp_cpu_value);
    p->remaining = KELP_ARENA_ARRAY(arena, schedule->value_count + 1, uint32_t);
    p->same = KELP_ARENA_ARRAY(arena, schedule->value_count + 1, uint32_t);
    p->from = KELP_ARENA_ARRAY(arena, schedule->value_count + 1, uint64_t);
    schedule->steps = KELP_ARENA_ARRAY(arena, program->node_total + 1, kelp_cpu_step);
    schedule->input_shapes = KELP_ARENA_ARRAY(arena, block->input_count + 1, kelp_tensor);
    schedule->copies = KELP_ARENA_ARRAY(arena, block->output_count + 1, bool);
    schedule->data_dependent = KELP_ARENA_ARRAY(arena, block->output_count + 1, bool);
    schedule->outputs = KELP_ARENA_ARRAY(arena, block->output_count + 1, const kelp_cpu_value *);
    schedule->relocatable = KELP_ARENA_ARRAY(arena, schedule->value_count + 1, uint32_t);
    if (schedule->values == NULL || p->remaining == NULL || p->same == NULL || p->from == NULL ||
        schedule->steps == NULL || schedule->input_shapes == NULL || schedule->copies == NULL ||
        schedule->data_dependent == NULL || schedule->outputs == NULL ||
        schedule->relocatable == NULL)
        return kelp_status_oom();
    for (uint32_t id = 0; id < schedule->value_count; id++) {
        schedule->values[id].root = id;
        p->same[id] = id;
    }
    enter(p, program, 0);
    return init_inputs(p);
}

/* Allocates the arrays of pointers to the schedule's values, and args->plan. */
static kelp_status *init_args(scheduler *p, const kelp_cpu_node *engine_node, kelp_op_args *args) {
    const kelp_node *node = engine_node->node;
    kelp_arena *arena = &p->schedule->arena;
    const kelp_tensor **inputs =
        KELP_ARENA_ARRAY(arena, node->input_count + 1, const kelp_tensor *);
    kelp_tensor **outputs = KELP_ARENA_ARRAY(arena, node->output_count + 1, kelp_tensor *);
    void *memory = NULL;
    if (engine_node->kernel->plan_bytes > 0) {
        memory = kelp_arena_alloc(arena, engine_node->kernel->plan_bytes, KELP_TENSOR_ALIGNMENT);
        if (memory != NULL)
            memset(memory, 0, engine_node->kernel->plan_bytes);
    }
    if (inputs == NULL || outputs == NULL ||
        (engine_node->kernel->plan_bytes > 0 && memory == NULL))
        return kelp_status_oom();
    for (size_t i = 0; i < node->input_count; i++)
        inputs[i] = node->inputs[i] != NULL ? &value_of(p, node->inputs[i])->tensor : NULL;
    for (size_t i = 0; i < node->output_count; i++)
        outputs[i] = node->outputs[i] != NULL ? &value_of(p, node->outputs[i])->tensor : NULL;
    *args = (kelp_op_args){.node = node,
                           .input_count = (int32_t)node->input_count,
                           .output_count = (int32_t)node->output_count,
                           .inputs = inputs,
                           .outputs = outputs,
                           .plan = memory,
                           .env = &p->instance->env};
    return NULL;
}

static bool any_input_dynamic(scheduler *p, const kelp_node *node) {
    for (size_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NULL && value_of(p, node->inputs[i])->dynamic)
            return true;
    return false;
}

/* ---- dependence of values on input data ---- */
static void note_sources(scheduler *p, const kelp_cpu_node *engine_node, bool dynamic) {
    const kelp_node *node = engine_node->node;
    uint64_t from = 0;
    for (size_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NULL)
            from |= p->from[index_of(p, node->inputs[i])];
    if ((engine_node->kernel->flags & KELP_OP_SHAPE_ONLY) != 0 && !dynamic)
        from = 0;
    if ((engine_node->kernel->flags & KELP_OP_IMPURE) != 0)
        from |= NEVER_SPECIALIZED;
    for (size_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NULL)
            p->from[index_of(p, node->outputs[i])] = from;
}

/* Notes the inputs whose data would make a dynamic step static. Dimensions and conditions are
 * integers and bools; an If needs its condition only. */
static void note_specializable(scheduler *p, const kelp_cpu_node *engine_node) {
    const kelp_node *node = engine_node->node;
    uint64_t specializable = 0;
    bool is_if = node->op == KELP_OP(If);
    if ((engine_node->kernel == &kelp_bridge_kernel ||
         engine_node->kernel == &kelp_subgraph_kernel) &&
        !is_if)
        return; /* always dispatched */
    for (size_t i = 0; i < node->input_count && (i == 0 || !is_if); i++) {
        const kelp_cpu_value *value = node->inputs[i] != NULL ? value_of(p, node->inputs[i]) : NULL;
        if (value == NULL || value->tensor.data != NULL)
            continue;
        kelp_dtype dtype = value->tensor.dtype;
        if (value->dynamic || dtype == KELP_I64 || dtype == KELP_I32 || dtype == KELP_BOOL)
            specializable |= p->from[index_of(p, node->inputs[i])];
    }
    if ((specializable & NEVER_SPECIALIZED) == 0)
        p->schedule->specializable |= specializable;
}

/* ---- evaluation ---- */
static bool can_evaluate(scheduler *p, const kelp_cpu_node *engine_node) {
    const kelp_node *node = engine_node->node;
    if ((engine_node->kernel->flags & KELP_OP_IMPURE) != 0)
        return false;
    size_t bytes = 0;
    for (size_t i = 0; i < node->output_count; i++) {
        const kelp_cpu_value *value =
            node->outputs[i] != NULL ? value_of(p, node->outputs[i]) : NULL;
        if (value != NULL && value->tensor.dtype == KELP_STRING && p->instance->body != NULL)
            return false; /* strings that a body returns can outlive its schedule */
        bytes += value != NULL ? value->bytes : 0;
    }
    if (bytes > FOLD_MAX_BYTES)
        return false;
    if ((engine_node->kernel->flags & KELP_OP_SHAPE_ONLY) != 0)
        return true;
    for (size_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NULL &&
            root_of(p, value_of(p, node->inputs[i]))->storage != KELP_CPU_STORAGE_FIXED)
            return false;
    return true;
}

static kelp_status *evaluate(scheduler *p, const kelp_cpu_node *engine_node, kelp_op_args *args) {
    kelp_arena *arena = &p->schedule->arena;
    kelp_op_env env = p->instance->env;
    env.arena = arena;
    args->env = &env;
    for (int32_t i = 0; i < args->output_count; i++) {
        if (args->outputs[i] == NULL)
            continue;
        kelp_cpu_value *value = value_of(p, engine_node->node->outputs[i]);
        value->tensor.data = kelp_arena_alloc(arena, value->bytes, KELP_TENSOR_ALIGNMENT);
        value->storage = KELP_CPU_STORAGE_FIXED;
        if (value->tensor.data == NULL)
            return kelp_status_oom();
    }
    if (args->scratch_bytes > 0) {
        args->scratch = kelp_arena_alloc(arena, args->scratch_bytes, KELP_TENSOR_ALIGNMENT);
        if (args->scratch == NULL)
            return kelp_status_oom();
    }
    p->schedule->stats.folded++;
    return engine_node->kernel->invoke(engine_node->state, args);
}

/* ---- sharing bytes ---- */
static bool only_output_zero(const kelp_op_args *args) {
    for (int32_t i = 1; i < args->output_count; i++)
        if (args->outputs[i] != NULL)
            return false;
    return args->output_count > 0 && args->outputs[0] != NULL;
}

static void share(scheduler *p, kelp_cpu_value *output, kelp_cpu_value *input) {
    kelp_cpu_value *root = root_of(p, input);
    uint32_t own = output->root;
    KELP_ASSERT(root_of(p, root) == root);
    KELP_ASSERT(own != input->root);
    output->root = input->root;
    p->remaining[input->root] += p->remaining[own];
    if (root->storage == KELP_CPU_STORAGE_FIXED)
        output->tensor.data = input->tensor.data;
}

static bool try_view(scheduler *p, const kelp_cpu_node *engine_node, const kelp_op_args *args) {
    if ((engine_node->kernel->flags & KELP_OP_VIEW) == 0 || !only_output_zero(args) ||
        args->inputs[0] == NULL)
        return false;
    kelp_cpu_value *input = value_of(p, engine_node->node->inputs[0]);
    kelp_cpu_value *output = value_of(p, engine_node->node->outputs[0]);
    if (output->bytes != kelp_tensor_bytes(&input->tensor))
        return false;
    share(p, output, input);
    p->schedule->stats.views++;
    return true;
}

static bool try_inplace(scheduler *p, const kelp_cpu_node *engine_node, const kelp_op_args *args) {
    static const uint32_t flags[2] = {KELP_OP_INPLACE_0, KELP_OP_INPLACE_1};
    if (!only_output_zero(args))
        return false;
    kelp_cpu_value *output = value_of(p, engine_node->node->outputs[0]);
    for (int32_t k = 0; k < 2 && k < args->input_count; k++) {
        if ((engine_node->kernel->flags & flags[k]) == 0 || args->inputs[k] == NULL)
            continue;
        kelp_cpu_value *input = value_of(p, engine_node->node->inputs[k]);
        /* the step must be the last use of bytes in the workspace */
        if (root_of(p, input)->storage == KELP_CPU_STORAGE_WORKSPACE &&
            p->remaining[input->root] == 1 && output->bytes == kelp_tensor_bytes(&input->tensor) &&
            kelp_tensor_elements(&input->tensor) == kelp_tensor_elements(&output->tensor)) {
            share(p, output, input);
            return true;
        }
    }
    return false;
}

/* ---- steps ---- */
static void touch(scheduler *p, const kelp_node *node, uint32_t step) {
    for (size_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NULL) {
            kelp_cpu_value *root = root_of(p, value_of(p, node->inputs[i]));
            root->last = KELP_MAX(root->last, step);
        }
}

static void consume(scheduler *p, const kelp_node *node) {
    for (size_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NULL) {
            uint32_t *remaining = &p->remaining[value_of(p, node->inputs[i])->root];
            KELP_ASSERT(*remaining > 0);
            --*remaining;
        }
}

static void add_step(scheduler *p, const kelp_cpu_node *engine_node, const kelp_op_args *args,
                     bool dynamic) {
    KELP_ASSERT(p->schedule->step_count < p->instance->program->node_total);
    uint32_t index = (uint32_t)p->schedule->step_count++;
    p->schedule->steps[index] =
        (kelp_cpu_step){.engine_node = engine_node, .args = *args, .dynamic = dynamic};
    if (args->env != &p->instance->env)
        kelp_cpu_context_lend((kelp_op_env *)args->env, p->context);
    const kelp_node *node = engine_node->node;
    touch(p, node, index);
    for (size_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == NULL)
            continue;
        kelp_cpu_value *value = value_of(p, node->outputs[i]);
        if (dynamic) {
            value->dynamic = true;
            value->storage = KELP_CPU_STORAGE_DYNAMIC;
            continue;
        }
        kelp_cpu_value *root = root_of(p, value);
        if (root == value) {
            value->storage = KELP_CPU_STORAGE_WORKSPACE;
            value->first = index;
        }
        root->last = KELP_MAX(root->last, index);
        p->schedule->stats.activation_bytes += value->bytes;
    }
    if (dynamic)
        p->schedule->stats.dynamic_steps++;
}

/* Creates the bodies of the node's blocks, and an env that lists them. */
static kelp_status *add_bodies(scheduler *p, const kelp_cpu_node *engine_node, kelp_op_args *args) {
    const kelp_node *node = engine_node->node;
    kelp_op_env *env = KELP_ARENA_NEW(&p->schedule->arena, kelp_op_env);
    uint64_t specialized = 0;
    if (env == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < node->input_count && i < KELP_CPU_MASKED_INPUTS; i++) {
        const kelp_cpu_value *value = node->inputs[i] != NULL ? value_of(p, node->inputs[i]) : NULL;
        if (value != NULL && !value->dynamic &&
            root_of(p, value)->storage == KELP_CPU_STORAGE_FIXED && may_specialize(&value->tensor))
            specialized |= (uint64_t)1 << i;
    }
    *env = p->instance->env; /* add_step completes it */
    KELP_TRY(
        kelp_cpu_bodies_create(p->context, p->schedule, engine_node, specialized, &env->bodies));
    args->env = env;
    return NULL;
}

static void add_dynamic(scheduler *p, const kelp_cpu_node *engine_node, kelp_op_args *args) {
    args->deferred = false;
    args->scratch_bytes = 0;
    note_specializable(p, engine_node);
    note_sources(p, engine_node, true);
    add_step(p, engine_node, args, true);
    consume(p, engine_node->node);
}

static kelp_status *schedule_node(scheduler *p, const kelp_cpu_node *engine_node);

/* Schedules the nodes of the branch of an If as nodes of the outer block. Captures and results are
 * identical to outer values. */
static kelp_status *schedule_branch(scheduler *p, const kelp_cpu_node *engine_node,
                                    const kelp_cpu_program *program) {
    const kelp_node *node = engine_node->node;
    const kelp_block *branch = program->block;
    size_t outer = p->base, inner = outer + program->value_offset;
    size_t first = node->input_count - branch->input_count;
    enter(p, program, inner);
    for (size_t i = 0; i < branch->input_count; i++) {
        uint32_t id = p->same[outer + node->inputs[first + i]->id];
        p->same[inner + branch->inputs[i]->id] = id;
        p->remaining[p->schedule->values[id].root] += branch->inputs[i]->use_count;
    }
    for (size_t i = 0; i < program->node_count; i++)
        KELP_TRY(schedule_node(p, &program->nodes[i]));
    for (size_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == NULL)
            continue;
        uint32_t id = p->same[inner + branch->outputs[i]->id];
        p->same[outer + node->outputs[i]->id] = id;
        p->remaining[p->schedule->values[id].root] += node->outputs[i]->use_count;
    }
    for (size_t i = 0; i < branch->output_count;
         i++) /* branch outputs count as uses, but are not */
        p->remaining[value_of(p, branch->outputs[i])->root]--;
    p->base = outer;
    consume(p, node);
    p->schedule->stats.folded++;
    return NULL;
}

static kelp_status *schedule_if(scheduler *p, const kelp_cpu_node *engine_node,
                                bool *out_scheduled) {
    const kelp_node *node = engine_node->node;
    kelp_block *branch = NULL;
    const kelp_cpu_value *condition =
        node->input_count > 0 && node->inputs[0] != NULL ? value_of(p, node->inputs[0]) : NULL;
    *out_scheduled = condition != NULL && !condition->dynamic &&
                     root_of(p, condition)->storage == KELP_CPU_STORAGE_FIXED &&
                     kelp_cpu_engine_known_branch(node, &condition->tensor, &branch);
    for (size_t k = 0; *out_scheduled && k < engine_node->body_count; k++)
        if (engine_node->bodies[k]->block == branch)
            return schedule_branch(p, engine_node, engine_node->bodies[k]);
    return NULL;
}

static kelp_status *schedule_known(scheduler *p, const kelp_cpu_node *engine_node,
                                   kelp_op_args *args) {
    const kelp_node *node = engine_node->node;
    for (size_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NULL) {
            kelp_cpu_value *value = value_of(p, node->outputs[i]);
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

static kelp_status *schedule_node(scheduler *p, const kelp_cpu_node *engine_node) {
    const kelp_node *node = engine_node->node;
    kelp_op_args args;
    bool scheduled = false;
    if (engine_node->body_count > 0) {
        KELP_TRY(schedule_if(p, engine_node, &scheduled));
        if (scheduled)
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
    kelp_cpu_engine_release_pages(p->context->core); /* reshape may have packed weights */
    if (status == NULL && args.deferred) {
        add_dynamic(p, engine_node, &args);
        return NULL;
    }
    if (status == NULL)
        status = schedule_known(p, engine_node, &args);
    if (status != NULL)
        return kelp_cpu_instance_name_node(p->instance, node, status);
    consume(p, node);
    return NULL;
}

/* Makes the steps write outputs directly to their memory. An output that is an input, a constant,
 * dynamic, or the same as another output is copied after the steps. */
static void claim_outputs(scheduler *p) {
    const kelp_block *block = p->instance->program->block;
    for (uint32_t i = 0; i < block->output_count; i++) {
        kelp_cpu_value *value = value_of(p, block->outputs[i]);
        p->schedule->outputs[i] = value;
        p->schedule->data_dependent[i] = value->dynamic;
        kelp_cpu_value *root = root_of(p, value);
        size_t root_bytes = kelp_tensor_bytes(&root->tensor);
        if (!value->dynamic && root->storage == KELP_CPU_STORAGE_WORKSPACE &&
            root_bytes == value->bytes) {
            root->storage = KELP_CPU_STORAGE_OUTPUT;
            root->index = i;
        } else {
            p->schedule->copies[i] = true;
            root->last = ALIVE_FOREVER;
        }
    }
}

/* Computes the memory plan of values and scratch memory in the workspace. */
static kelp_status *plan_memory(scheduler *p) {
    kelp_cpu_schedule *schedule = p->schedule;
    size_t capacity = schedule->value_count + schedule->step_count + 1, count = 0;
    size_t item_bytes = sizeof(kelp_cpu_interval) + 2 * sizeof(uint32_t);
    kelp_cpu_interval *intervals = NULL;
    KELP_TRY(kelp_alloc_zero(p->context->allocator, capacity, item_bytes, (void **)&intervals));
    uint32_t *order = (uint32_t *)(intervals + capacity), *placed = order + capacity;
    for (size_t i = 0; i < schedule->value_count; i++) {
        const kelp_cpu_value *value = &schedule->values[i];
        if (value->root == i && value->storage == KELP_CPU_STORAGE_WORKSPACE)
            intervals[count++] = (kelp_cpu_interval){value->bytes, value->first, value->last, 0, 0};
    }
    for (uint32_t i = 0; i < schedule->step_count; i++)
        if (schedule->steps[i].args.scratch_bytes > 0)
            intervals[count++] =
                (kelp_cpu_interval){schedule->steps[i].args.scratch_bytes, i, i, 0, 0};
    bool fits = kelp_cpu_memory_plan(intervals, count, order, placed, &schedule->workspace_bytes,
                                     &schedule->stats.workspace_lower_bound_bytes);
    count = 0;
    for (size_t i = 0; i < schedule->value_count; i++) {
        kelp_cpu_value *value = &schedule->values[i];
        if (value->root == i && value->storage == KELP_CPU_STORAGE_WORKSPACE)
            value->offset = intervals[count++].offset;
    }
    for (uint32_t i = 0; i < schedule->step_count; i++)
        if (schedule->steps[i].args.scratch_bytes > 0)
            schedule->steps[i].scratch_offset = intervals[count++].offset;
    kelp_free(p->context->allocator, intervals, capacity * item_bytes);
    if (!fits)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                          "the activations of model '%s' exceed the address space",
                          p->engine->graph->info.label);
    schedule->stats.workspace_bytes = schedule->workspace_bytes;
    schedule->stats.steps = schedule->step_count;
    return NULL;
}

static void list_relocatable(scheduler *p) {
    kelp_cpu_schedule *schedule = p->schedule;
    for (uint32_t i = 0; i < schedule->value_count; i++) {
        kelp_cpu_storage storage = root_of(p, &schedule->values[i])->storage;
        if (!schedule->values[i].dynamic &&
            (storage == KELP_CPU_STORAGE_INPUT || storage == KELP_CPU_STORAGE_OUTPUT))
            schedule->relocatable[schedule->relocatable_count++] = i;
    }
}

kelp_status *kelp_cpu_schedule_create(kelp_cpu_instance *instance, uint64_t specialized,
                                      kelp_cpu_schedule **out) {
    kelp_cpu_context *context = instance->context;
    const kelp_cpu_program *program = instance->program;
    kelp_cpu_schedule *schedule = NULL;
    KELP_TRY(KELP_NEW(context->allocator, kelp_cpu_schedule, &schedule));
    KELP_ASSERT(instance->env.arena != NULL && instance->env.stop != NULL);
    kelp_arena_init(&schedule->arena, context->allocator, 32 << 10);
    schedule->specialized = specialized;
    scheduler p = {
        .instance = instance, .context = context, .engine = context->engine, .schedule = schedule};
    /* kernels that need memory of a run defer without it; the end of a run must not stop the
     * compilation, whose result serves later runs */
    instance->env.arena = NULL;
    instance->env.stop = NULL;
    kelp_status *status = init_schedule(&p);
    for (size_t i = 0; status == NULL && i < program->node_count; i++)
        status = schedule_node(&p, &program->nodes[i]);
    if (status == NULL) {
        claim_outputs(&p);
        list_relocatable(&p);
        status = plan_memory(&p);
    }
    kelp_cpu_context_lend(&instance->env, context);
    if (specialized != 0 || instance->body != NULL) /* specialized once, or by the outer schedule */
        schedule->specializable = 0;
    if (status != NULL) {
        kelp_cpu_schedule_destroy(schedule, context->allocator);
        return status;
    }
    KELP_ASSERT(p.base == 0);
    *out = schedule;
    return NULL;
}

void kelp_cpu_schedule_destroy(kelp_cpu_schedule *schedule, kelp_allocator allocator) {
    if (schedule == NULL)
        return;
    kelp_cpu_bodies_destroy(schedule);
    kelp_arena_deinit(&schedule->arena);
    kelp_free(allocator, schedule, sizeof *schedule);
}

bool kelp_cpu_schedule_fits(const kelp_cpu_schedule *schedule, const kelp_cpu_instance *instance) {
    for (size_t i = 0; i < instance->program->block->input_count; i++) {
        const kelp_tensor *a = &schedule->input_shapes[i], *b = &instance->inputs[i];
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
static void resolve(kelp_cpu_schedule *schedule, const kelp_cpu_instance *instance,
                    kelp_cpu_value *value) {
    const kelp_cpu_value *root = &schedule->values[value->root];
    switch (root->storage) {
    case KELP_CPU_STORAGE_INPUT:
        value->tensor.data = instance->input_data[root->index];
        break;
    case KELP_CPU_STORAGE_OUTPUT:
        value->tensor.data = instance->outputs[root->index].target;
        break;
    case KELP_CPU_STORAGE_WORKSPACE:
        KELP_ASSERT(root->offset % KELP_TENSOR_ALIGNMENT == 0);
        KELP_ASSERT(root->offset + root->bytes <= schedule->workspace_bytes);
        value->tensor.data = instance->workspace + root->offset;
        break;
    case KELP_CPU_STORAGE_NONE:
    case KELP_CPU_STORAGE_FIXED:
    case KELP_CPU_STORAGE_DYNAMIC:
        break;
    }
}

void kelp_cpu_schedule_bind(kelp_cpu_schedule *schedule, kelp_cpu_instance *instance) {
    KELP_ASSERT(schedule == instance->schedules);
    KELP_ASSERT(instance->workspace != NULL || schedule->workspace_bytes == 0);
    if (!schedule->bound || schedule->bound_workspace != instance->workspace) {
        for (size_t i = 0; i < schedule->value_count; i++)
            if (!schedule->values[i].dynamic)
                resolve(schedule, instance, &schedule->values[i]);
        for (size_t i = 0; i < schedule->step_count; i++)
            if (schedule->steps[i].args.scratch_bytes > 0)
                schedule->steps[i].args.scratch =
                    instance->workspace + schedule->steps[i].scratch_offset;
        schedule->bound_workspace = instance->workspace;
        schedule->bound = true;
        return;
    }
    for (size_t i = 0; i < schedule->relocatable_count; i++)
        resolve(schedule, instance, &schedule->values[schedule->relocatable[i]]);
}
