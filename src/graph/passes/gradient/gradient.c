/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces Gradient nodes by the nodes that compute them. Visits the nodes between `xs` and `y` in
 * reverse; the rule of each operator adds to the gradients of its inputs. If the inputs of the
 * Gradient node are not the values that `xs` and `zs` name, the nodes are copied with these inputs
 * first. Source: ONNX operator specification, ai.onnx.preview.training Gradient-1.
 */
#include "graph/passes/gradient/gradient.h"

#include "base/assert.h"

#include <string.h>

#define GRADIENT_ERROR(node, format, ...) \
    KELP_ERROR(KELP_INVALID_ARGUMENT, "node '%s' (Gradient): " format, (node)->name, __VA_ARGS__)

/* ---- emitting nodes ---- */
kelp_status *kelp_tape_emit(kelp_tape *tape, const kelp_operator *op, kelp_value *const *inputs,
                            size_t input_count, kelp_value **out, kelp_node **out_node) {
    kelp_node *node = NULL;
    kelp_value *value = NULL; /* `out` may be one of the inputs */
    const char *name =
        kelp_arena_printf(&tape->block->graph->arena, "%s_%zu", tape->gradient->outputs[0]->name,
                          tape->block->value_count);
    if (name == NULL)
        return kelp_status_oom();
    KELP_TRY(kelp_block_add_value(tape->block, name, &value));
    int64_t version = kelp_operator_is_onnx(op) ? KELP_TAPE_OPSET : 1;
    KELP_TRY(kelp_block_insert_node(tape->block, tape->gradient, op, version, name, inputs,
                                    input_count, &value, 1, NULL, &node));
    *out = value;
    if (out_node != NULL)
        *out_node = node;
    return NULL;
}

kelp_status *kelp_tape_unary(kelp_tape *tape, const kelp_operator *op, kelp_value *a,
                             kelp_value **out) {
    return kelp_tape_emit(tape, op, &a, 1, out, NULL);
}

kelp_status *kelp_tape_binary(kelp_tape *tape, const kelp_operator *op, kelp_value *a,
                              kelp_value *b, kelp_value **out) {
    return kelp_tape_emit(tape, op, (kelp_value *[]){a, b}, 2, out, NULL);
}

static kelp_status *constant(kelp_tape *tape, kelp_dtype dtype, int32_t rank, int64_t count,
                             const void *data, size_t size_bytes, kelp_value **out) {
    kelp_arena *arena = &tape->block->graph->arena;
    kelp_tensor *tensor = KELP_ARENA_NEW(arena, kelp_tensor);
    void *copy = kelp_arena_alloc(arena, size_bytes + 1, 64);
    const char *name = kelp_arena_printf(arena, "%s_%zu", tape->gradient->outputs[0]->name,
                                         tape->block->value_count);
    if (tensor == NULL || copy == NULL || name == NULL)
        return kelp_status_oom();
    memcpy(copy, data, size_bytes);
    KELP_TRY(kelp_tensor_init(tensor, dtype, rank, &count, copy));
    tensor->flags = KELP_TENSOR_READ_ONLY;
    KELP_TRY(kelp_block_add_value(tape->block, name, out));
    (*out)->kind = KELP_VALUE_TENSOR;
    (*out)->dtype = dtype;
    (*out)->rank = rank;
    (*out)->shape[0] = count;
    (*out)->constant = tensor;
    return NULL;
}

kelp_status *kelp_tape_list(kelp_tape *tape, const int64_t *items, size_t count, kelp_value **out) {
    return constant(tape, KELP_I64, 1, (int64_t)count, items, count * sizeof *items, out);
}

kelp_status *kelp_tape_scalar(kelp_tape *tape, double number, kelp_value *like, kelp_value **out) {
    kelp_value *wide = NULL;
    KELP_TRY(constant(tape, KELP_F64, 0, 1, &number, sizeof number, &wide));
    return kelp_tape_binary(tape, KELP_OP(CastLike), wide, like, out);
}

kelp_status *kelp_tape_full(kelp_tape *tape, double number, kelp_value *like, kelp_value **out) {
    kelp_value *scalar = NULL, *shape = NULL;
    KELP_TRY(kelp_tape_scalar(tape, number, like, &scalar));
    KELP_TRY(kelp_tape_unary(tape, KELP_OP(Shape), like, &shape));
    return kelp_tape_binary(tape, KELP_OP(Expand), scalar, shape, out);
}

bool kelp_tape_wants(const kelp_tape *tape, const kelp_value *input) {
    return input != NULL && input->id < tape->value_count && tape->active[input->id];
}

kelp_status *kelp_tape_add(kelp_tape *tape, kelp_value *input, kelp_value *g) {
    KELP_ASSERT(g != NULL && g->block == tape->block);
    if (!kelp_tape_wants(tape, input))
        return NULL;
    KELP_TRY(kelp_tape_emit(tape, KELP_OP_KELP(SumTo), (kelp_value *[]){g, input}, 2, &g, NULL));
    kelp_value **slot = &tape->grads[input->id];
    return *slot == NULL ? (*slot = g, (kelp_status *)NULL)
                         : kelp_tape_binary(tape, KELP_OP(Add), *slot, g, slot);
}

/* ---- nodes to differentiate ---- */
typedef struct segment {
    kelp_tape tape;
    size_t x_count, z_count;
    kelp_value **leaves;       /* the values that xs, then zs, name */
    kelp_value **replacements; /* the inputs of the Gradient node that replace them */
    kelp_value *y;
    kelp_node **nodes; /* in order */
    size_t node_count;
} segment;

static kelp_value *find_value(const kelp_block *block, const char *name, size_t length) {
    for (size_t i = 0; i < block->value_count; i++)
        if (strlen(block->values[i]->name) == length &&
            memcmp(block->values[i]->name, name, length) == 0)
            return block->values[i];
    return NULL;
}

static kelp_status *read_node(segment *s, kelp_block *block, kelp_node *node) {
    const kelp_string *names[2] = {NULL, NULL};
    size_t length = 0;
    s->x_count = kelp_node_attr_strings(node, "xs", &names[0]);
    s->z_count = kelp_node_attr_strings(node, "zs", &names[1]);
    size_t count = s->x_count + s->z_count;
    if (s->x_count == 0 || node->input_count != count || node->output_count > s->x_count ||
        node->output_count == 0 || node->outputs[0] == NULL)
        return GRADIENT_ERROR(
            node,
            "expected an input for each of the %zu xs and %zu zs and an output for each of the "
            "xs, the first not omitted: found %zu inputs and %zu outputs",
            s->x_count, s->z_count, node->input_count, node->output_count);
    s->leaves = KELP_ARENA_ARRAY(&block->graph->arena, count, kelp_value *);
    if (s->leaves == NULL)
        return kelp_status_oom();
    s->replacements = node->inputs;
    for (size_t i = 0; i < count; i++) {
        const kelp_string *name = i < s->x_count ? &names[0][i] : &names[1][i - s->x_count];
        s->leaves[i] = find_value(block, name->data, name->length);
        if (s->leaves[i] == NULL || node->inputs[i] == NULL)
            return GRADIENT_ERROR(node, "'%.*s' of xs or zs %s", (int)name->length, name->data,
                                  s->leaves[i] == NULL ? "is not a value of the graph"
                                                       : "has no input");
    }
    const char *y = kelp_node_attr_string(node, "y", "", &length);
    s->y = find_value(block, y, length);
    if (s->y == NULL)
        return GRADIENT_ERROR(node, "y '%s' is not a value of the graph", y);
    s->tape = (kelp_tape){.block = block, .gradient = node};
    return NULL;
}

static bool is_leaf(const segment *s, const kelp_value *value) {
    for (size_t i = 0; i < s->x_count + s->z_count; i++)
        if (s->leaves[i] == value)
            return true;
    return false;
}

static bool reads_any(const kelp_node *node, const bool *marked) {
    for (size_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NULL && marked[node->inputs[i]->id])
            return true;
    return false;
}

/* Finds the nodes through which `y` depends on the leaves. */
static kelp_status *collect(segment *s) {
    kelp_block *block = s->tape.block;
    kelp_arena *arena = &block->graph->arena;
    bool *needed = KELP_ARENA_ARRAY(arena, block->value_count + 1, bool);
    bool *reached = KELP_ARENA_ARRAY(arena, block->value_count + 1, bool);
    s->nodes = KELP_ARENA_ARRAY(arena, s->tape.gradient->index + 1, kelp_node *);
    if (needed == NULL || reached == NULL || s->nodes == NULL)
        return kelp_status_oom();
    needed[s->y->id] = true;
    for (size_t n = s->tape.gradient->index; n-- > 0;) {
        const kelp_node *node = block->nodes[n];
        bool used = false;
        for (size_t i = 0; i < node->output_count; i++)
            used = used || (node->outputs[i] != NULL && needed[node->outputs[i]->id] &&
                            !is_leaf(s, node->outputs[i]));
        for (size_t i = 0; i < node->input_count && used; i++)
            if (node->inputs[i] != NULL)
                needed[node->inputs[i]->id] = true;
    }
    for (size_t i = 0; i < s->x_count + s->z_count; i++)
        reached[s->leaves[i]->id] = true;
    for (size_t n = 0; n < s->tape.gradient->index; n++) {
        kelp_node *node = block->nodes[n];
        bool used = false;
        for (size_t i = 0; i < node->output_count; i++)
            used = used || (node->outputs[i] != NULL && needed[node->outputs[i]->id] &&
                            !is_leaf(s, node->outputs[i]));
        if (node->removed || !used || !reads_any(node, reached))
            continue;
        s->nodes[s->node_count++] = node;
        for (size_t i = 0; i < node->output_count; i++)
            if (node->outputs[i] != NULL && !is_leaf(s, node->outputs[i]))
                reached[node->outputs[i]->id] = true;
    }
    return NULL;
}

/* ---- copies with the inputs of the Gradient node ---- */
static kelp_status *copy_node(segment *s, kelp_value **map, kelp_node **inout_node) {
    const kelp_node *from = *inout_node;
    kelp_block *block = s->tape.block;
    kelp_arena *arena = &block->graph->arena;
    kelp_value **inputs = KELP_ARENA_ARRAY(arena, from->input_count + 1, kelp_value *);
    kelp_value **outputs = KELP_ARENA_ARRAY(arena, from->output_count + 1, kelp_value *);
    if (inputs == NULL || outputs == NULL)
        return kelp_status_oom();
    for (const kelp_attr *attr = from->attributes; attr != NULL; attr = attr->next)
        if (attr->blocks != NULL)
            return GRADIENT_ERROR(
                s->tape.gradient,
                "its inputs are not the values that xs and zs name, and node '%s' (%s) owns a "
                "subgraph, which is unsupported",
                from->name, from->op->name);
    for (size_t i = 0; i < from->input_count; i++) {
        kelp_value *value = from->inputs[i];
        inputs[i] = value != NULL && map[value->id] != NULL ? map[value->id] : value;
    }
    for (size_t i = 0; i < from->output_count; i++) {
        if (from->outputs[i] == NULL)
            continue;
        const char *name = kelp_arena_printf(arena, "%s_%s_%zu", s->tape.gradient->outputs[0]->name,
                                             from->outputs[i]->name, block->value_count);
        if (name == NULL)
            return kelp_status_oom();
        KELP_TRY(kelp_block_add_value(block, name, &outputs[i]));
        outputs[i]->dtype = from->outputs[i]->dtype;
        outputs[i]->rank =
            from->outputs[i]->rank; /* the rank is the same, the dimensions may differ */
        for (int32_t k = 0; k < KELP_MAX_RANK; k++)
            outputs[i]->shape[k] = -1;
        map[from->outputs[i]->id] = outputs[i];
    }
    return kelp_block_insert_node(block, s->tape.gradient, from->op, from->opset_version,
                                  from->name, inputs, from->input_count, outputs,
                                  from->output_count, from->attributes, inout_node);
}

static kelp_status *substitute(segment *s) {
    size_t count = s->x_count + s->z_count;
    bool same = true;
    for (size_t i = 0; i < count; i++)
        same = same && s->leaves[i] == s->replacements[i];
    if (same)
        return NULL;
    kelp_value **map = KELP_ARENA_ARRAY(&s->tape.block->graph->arena,
                                        s->tape.block->value_count + 1, kelp_value *);
    if (map == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < count; i++)
        map[s->leaves[i]->id] = s->replacements[i];
    for (size_t n = 0; n < s->node_count; n++)
        KELP_TRY(copy_node(s, map, &s->nodes[n]));
    if (map[s->y->id] != NULL)
        s->y = map[s->y->id];
    s->leaves = s->replacements;
    return NULL;
}

/* ---- reverse pass ---- */
static kelp_status *mark_active(segment *s) {
    kelp_tape *tape = &s->tape;
    kelp_arena *arena = &tape->block->graph->arena;
    tape->value_count = tape->block->value_count;
    KELP_ASSERT(s->y->id < tape->value_count);
    bool *active = KELP_ARENA_ARRAY(arena, tape->value_count + 1, bool);
    tape->grads = KELP_ARENA_ARRAY(arena, tape->value_count + 1, kelp_value *);
    if (active == NULL || tape->grads == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < s->x_count; i++)
        active[s->leaves[i]->id] = true;
    for (size_t n = 0; n < s->node_count; n++)
        for (size_t i = 0; i < s->nodes[n]->output_count; i++)
            if (s->nodes[n]->outputs[i] != NULL && reads_any(s->nodes[n], active) &&
                !is_leaf(s, s->nodes[n]->outputs[i]))
                active[s->nodes[n]->outputs[i]->id] = true;
    tape->active = active;
    return NULL;
}

static kelp_status *walk_back(segment *s) {
    kelp_tape *tape = &s->tape;
    KELP_TRY(mark_active(s));
    if (tape->active[s->y->id])
        KELP_TRY(kelp_tape_full(tape, 1, s->y, &tape->grads[s->y->id]));
    for (size_t n = s->node_count; n-- > 0;) {
        const kelp_node *node = s->nodes[n];
        KELP_ASSERT(node->index < tape->gradient->index);
        for (size_t i = 0; i < node->output_count; i++) {
            if (node->outputs[i] == NULL || is_leaf(s, node->outputs[i]) ||
                tape->grads[node->outputs[i]->id] == NULL)
                continue;
            kelp_gradient_rule rule = kelp_gradient_find_rule(node);
            if (rule == NULL || i > 0)
                return KELP_ERROR(KELP_UNIMPLEMENTED,
                                  "node '%s' (Gradient): no derivative is known for output %zu of "
                                  "operator '%s' (node '%s')",
                                  tape->gradient->name, i, node->op->name, node->name);
            KELP_TRY(rule(tape, node, tape->grads[node->outputs[i]->id]));
        }
    }
    return NULL;
}

static kelp_status *expand(kelp_block *block, kelp_node *node) {
    segment s = {0};
    KELP_TRY(read_node(&s, block, node));
    KELP_TRY(collect(&s));
    KELP_TRY(substitute(&s));
    KELP_TRY(walk_back(&s));
    kelp_node *ignored = NULL;
    node->removed = true;
    for (size_t i = 0; i < node->output_count; i++) {
        kelp_value *x = s.leaves[i], *g = s.tape.grads[x->id], *output = node->outputs[i];
        if (output == NULL)
            continue;
        if (g == NULL) /* y does not depend on the value */
            KELP_TRY(kelp_tape_full(&s.tape, 0, x, &g));
        KELP_TRY(kelp_block_insert_node(block, node, KELP_OP(Identity), KELP_TAPE_OPSET, node->name,
                                        &g, 1, &output, 1, NULL, &ignored));
    }
    return NULL;
}

kelp_status *kelp_pass_gradient(kelp_block *block) {
    bool any = false;
    for (size_t n = 0; n < block->node_count; n++) { /* insertion moves the node */
        kelp_node *node = block->nodes[n];
        if (node->removed || node->op != KELP_OPERATOR(TRAINING, Gradient))
            continue;
        KELP_TRY(expand(block, node));
        n = node->index;
        any = true;
    }
    if (!any)
        return NULL;
    kelp_block_sweep(block);
    kelp_block_count_uses(block);
    return kelp_block_infer(block);
}
