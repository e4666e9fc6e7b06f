/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Infers the types and shapes that a file does not declare, in one pass over a block and its
 * subgraphs. A declared type must agree with the inferred type. An inferred shape replaces a
 * declared shape that disagrees. Of a dynamic dimension and a fixed one, the fixed one is kept.
 */
#include "graph/infer/infer.h"

#include "base/assert.h"

#include <string.h>

static const kelp_infer_rule *const rules[KELP_OPERATOR_COUNT + 1] = {
#define OPERATOR(domain, name, since, kernel, variant, infer, cost, gradient) &kelp_rule_##infer,
#include "operator/operators.inc"
    &kelp_rule_NONE};

/* Returns true when a declared shape is wrong. Exporters declare the shapes of the one example that
 * they traced; runtimes compute the shape that the operator defines. */
static bool contradicts(const kelp_value *value, const kelp_dims *dims) {
    if (value->rank >= 0 && value->rank != dims->rank)
        return true;
    for (int32_t i = 0; i < value->rank; i++)
        if (value->shape[i] >= 0 && dims->shape[i] >= 0 && value->shape[i] != dims->shape[i])
            return true;
    return false;
}

static void take_shape(kelp_value *value, const kelp_dims *dims) {
    KELP_ASSERT(dims->rank >= 0 && dims->rank <= KELP_MAX_RANK && value->constant == NULL);
    bool all = value->rank < 0 || contradicts(value, dims);
    if (all)
        value->rank = dims->rank;
    for (int32_t i = 0; i < dims->rank; i++) {
        if (all || (value->shape[i] < 0 && dims->shape[i] >= 0)) {
            value->shape[i] = dims->shape[i] < 0 ? -1 : dims->shape[i];
            value->symbols[i] = dims->shape[i] < 0 ? dims->symbols[i] : NULL;
        } else if (value->shape[i] < 0 && value->symbols[i] == NULL) {
            value->symbols[i] = dims->symbols[i];
        }
    }
}

static kelp_status *infer_shapes(const kelp_infer *infer, const kelp_node *node,
                                 const kelp_onnx_schema *schema) {
    KELP_ASSERT(node->op->id <= KELP_OPERATOR_COUNT && schema != NULL);
    const kelp_infer_rule *rule = rules[node->op->id];
    kelp_infer_call call = {.infer = infer, .node = node, .version = schema->since};
    size_t outputs = rule->shape == NULL ? 0 : rule->each_output ? node->output_count : 1;
    for (size_t i = 0; i < outputs && i < node->output_count; i++) {
        kelp_dims dims = {.rank = -1};
        kelp_value *value = node->outputs[i];
        call.output = i;
        if (value == NULL ||
            (value->kind != KELP_VALUE_TENSOR && value->kind != KELP_VALUE_UNKNOWN))
            continue;
        if (rule->shape(&call, &dims)) {
            value->kind = KELP_VALUE_TENSOR;
            take_shape(value, &dims);
        } else if (call.problem[0] != '\0') {
            return KELP_INFER_ERROR(node, "%s", call.problem);
        }
    }
    return NULL;
}

/* ---- operators with a signature ---- */
static kelp_status *infer_by_signature(const kelp_infer *infer, const kelp_node *node) {
    const kelp_signature *s =
        infer->signature_of != NULL ? infer->signature_of(infer->userp, node) : NULL;
    kelp_signature_facts facts;
    kelp_signature_problem problem;
    if (s == NULL)
        return NULL;
    if (!kelp_node_matches(node, s, &facts, &problem))
        return KELP_INFER_ERROR(node, "%s", problem.text);
    for (size_t i = 0; i < node->output_count; i++) {
        kelp_value *value = node->outputs[i];
        kelp_signature_view view;
        if (value == NULL)
            continue;
        kelp_signature_tell(s, kelp_signature_output(s, i), &facts, &view);
        KELP_TRY(kelp_infer_set_type(node, value, KELP_VALUE_TENSOR, view.dtype));
        kelp_dims dims = {.rank = view.rank};
        for (int32_t k = 0; k < view.rank; k++) {
            dims.shape[k] = view.shape[k];
            dims.symbols[k] = view.symbols[k];
        }
        if (view.rank >= 0)
            take_shape(value, &dims);
    }
    return NULL;
}

/* ---- constants ---- */
static bool constant_shape(kelp_infer_call *call, kelp_dims *out) {
    const kelp_tensor *tensor = kelp_node_attr_tensor(call->node, "value");
    if (tensor != NULL) {
        out->rank = tensor->rank;
        memcpy(out->shape, tensor->shape, sizeof out->shape);
        return true;
    }
    for (const kelp_attr *attr = call->node->attributes; attr != NULL; attr = attr->next) {
        bool list = attr->type == KELP_ATTR_INTS || attr->type == KELP_ATTR_FLOATS ||
                    attr->type == KELP_ATTR_STRINGS;
        bool one = attr->type == KELP_ATTR_INT || attr->type == KELP_ATTR_FLOAT ||
                   attr->type == KELP_ATTR_STRING;
        if (attr->ref != NULL || (!list && !one))
            continue;
        out->rank = list ? 1 : 0;
        out->shape[0] = (int64_t)attr->count;
        return true;
    }
    return false;
}

const kelp_infer_rule kelp_rule_constant = {.shape = constant_shape,
                                            .content = kelp_content_constant,
                                            .type = {KELP_TYPE_CONSTANT, NULL, 0}};

/* ---- subgraphs ---- */
static kelp_status *infer_block(const kelp_infer *parent, kelp_block *block);

/* Merges the type and shape of an output of one branch into those of the node's output. */
static kelp_status *join_branch(const kelp_node *node, kelp_value *to, const kelp_value *from,
                                bool first, kelp_dims *inout_dims) {
    if (from->kind != KELP_VALUE_UNKNOWN)
        KELP_TRY(kelp_infer_set_type(node, to, from->kind, from->dtype));
    if (from->kind != KELP_VALUE_TENSOR)
        inout_dims->rank = -1;
    if (first && from->kind == KELP_VALUE_TENSOR) {
        inout_dims->rank = from->rank;
        memcpy(inout_dims->shape, from->shape, sizeof from->shape);
        memcpy(inout_dims->symbols, from->symbols, sizeof from->symbols);
    } else if (inout_dims->rank != from->rank) {
        inout_dims->rank = -1;
    }
    for (int32_t i = 0; i < inout_dims->rank; i++)
        if (inout_dims->shape[i] != from->shape[i]) {
            inout_dims->shape[i] = -1;
            inout_dims->symbols[i] = NULL;
        }
    return NULL;
}

static kelp_status *infer_if(const kelp_node *node) {
    for (size_t i = 0; i < node->output_count; i++) {
        kelp_value *value = node->outputs[i];
        kelp_dims dims = {.rank = -1};
        bool first = true;
        for (const kelp_attr *attr = node->attributes; value != NULL && attr != NULL;
             attr = attr->next) {
            if (attr->blocks == NULL || attr->count != 1)
                continue;
            const kelp_block *branch = attr->blocks[0];
            if (branch->output_count != node->output_count)
                return KELP_INFER_ERROR(node, "branch '%s' has %zu outputs: expected %zu",
                                        attr->name, branch->output_count, node->output_count);
            KELP_TRY(join_branch(node, value, branch->outputs[i], first, &dims));
            first = false;
        }
        if (value != NULL && dims.rank >= 0 && value->kind == KELP_VALUE_TENSOR)
            take_shape(value, &dims);
    }
    return NULL;
}

static void take_type(kelp_value *to, const kelp_value *from) {
    if (to->kind == KELP_VALUE_UNKNOWN)
        to->kind = from->kind;
    if (to->dtype == KELP_DTYPE_INVALID)
        to->dtype = from->dtype;
}

/* Sets the types of the body's inputs: iteration, condition and loop-carried values. Shapes of
 * loop-carried values may change between iterations. */
static void set_loop_types(const kelp_node *node, kelp_block *body) {
    static const kelp_dtype leading[2] = {KELP_I64, KELP_BOOL};
    for (size_t i = 0; i < body->input_count; i++) {
        if (i < 2) {
            kelp_value typed = {.kind = KELP_VALUE_TENSOR, .dtype = leading[i]};
            take_type(body->inputs[i], &typed);
        } else if (i < node->input_count && node->inputs[i] != NULL) {
            take_type(body->inputs[i], node->inputs[i]);
        }
    }
}

static kelp_status *infer_loop(const kelp_node *node, const kelp_block *body) {
    if (body->output_count != node->output_count + 1)
        return KELP_INFER_ERROR(node, "the body has %zu outputs: expected %zu", body->output_count,
                                node->output_count + 1);
    for (size_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NULL)
            KELP_TRY(kelp_infer_set_type(node, node->outputs[i], body->outputs[i + 1]->kind,
                                         body->outputs[i + 1]->dtype));
    return NULL;
}

/* Sets the types of the body's inputs: states, then slices of the scanned inputs (of one batch in
 * Scan-8). Shapes differ from those of the node's inputs and are not set. */
static void set_scan_types(const kelp_node *node, kelp_block *body) {
    size_t first = node->opset_version < 9 ? 1 : 0;
    for (size_t i = 0; i < body->input_count; i++)
        if (first + i < node->input_count && node->inputs[first + i] != NULL)
            take_type(body->inputs[i], node->inputs[first + i]);
}

static kelp_status *infer_scan(const kelp_node *node, const kelp_block *body) {
    if (body->output_count < node->output_count)
        return KELP_INFER_ERROR(node, "the body has %zu outputs: expected %zu", body->output_count,
                                node->output_count);
    for (size_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NULL)
            KELP_TRY(kelp_infer_set_type(node, node->outputs[i], body->outputs[i]->kind,
                                         body->outputs[i]->dtype));
    return NULL;
}

static kelp_status *infer_subgraphs(const kelp_infer *infer, const kelp_node *node) {
    kelp_block *body = NULL;
    bool is_loop = node->op == KELP_OP(Loop);
    bool is_scan = node->op == KELP_OP(Scan);
    for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
        for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++) {
            body = attr->blocks[k];
            if (is_loop)
                set_loop_types(node, body);
            if (is_scan)
                set_scan_types(node, body);
            KELP_TRY(infer_block(infer, body));
        }
    if (body == NULL)
        return NULL;
    if (node->op == KELP_OP(If))
        return infer_if(node);
    if (is_scan)
        return infer_scan(node, body);
    return is_loop ? infer_loop(node, body) : NULL;
}

/* ---- blocks ---- */
static bool calls_function(const kelp_node *node) {
    const kelp_graph *graph = node->block->graph;
    for (size_t i = 0; i < graph->function_count; i++)
        if (graph->functions[i]->function == node->op)
            return true;
    return false;
}

static kelp_status *infer_node(kelp_infer *infer, kelp_node *node) {
    const kelp_operator *op = node->op;
    int64_t version = node->opset_version;
    kelp_operator_standard(&op, &version);
    const kelp_onnx_schema *schema = kelp_operator_schema(op, version);
    KELP_TRY(infer_subgraphs(infer, node));
    if (calls_function(node))
        return NULL;
    if (schema == NULL)
        return infer_by_signature(infer, node);
    KELP_TRY(kelp_infer_types(node, schema, &rules[node->op->id]->type));
    KELP_TRY(infer_shapes(infer, node, schema));
    return kelp_infer_note_content(infer, node, rules[node->op->id]->content);
}

/* Nodes before index `first` have their types and shapes already; only their contents are computed.
 */
static kelp_status *infer_nodes(kelp_infer *infer, size_t first) {
    kelp_block *block = infer->block;
    infer->contents = KELP_ARENA_ARRAY(infer->arena, block->value_count + 1, kelp_content *);
    if (infer->contents == NULL)
        return kelp_status_oom();
    for (size_t n = 0; n < block->node_count; n++) {
        kelp_node *node = block->nodes[n];
        KELP_ASSERT(node->block == block && node->index == n);
        if (n >= first)
            KELP_TRY(infer_node(infer, node));
        else if (kelp_operator_schema(node->op, node->opset_version) != NULL &&
                 !calls_function(node))
            KELP_TRY(kelp_infer_note_content(infer, node, rules[node->op->id]->content));
    }
    return NULL;
}

static kelp_status *infer_block(const kelp_infer *parent, kelp_block *block) {
    kelp_infer infer = {.parent = parent,
                        .block = block,
                        .arena = parent->arena,
                        .signature_of = parent->signature_of,
                        .userp = parent->userp};
    return infer_nodes(&infer, 0);
}

static kelp_status *infer_main(kelp_infer *infer, size_t first) {
    kelp_arena arena;
    kelp_arena_init(&arena, infer->block->graph->allocator, 16 << 10);
    infer->arena = &arena;
    kelp_status *status = infer_nodes(infer, first);
    kelp_arena_deinit(&arena);
    return status;
}

kelp_status *kelp_block_infer(kelp_block *block) {
    return kelp_block_infer_from(block, 0);
}

kelp_status *kelp_block_infer_from(kelp_block *block, size_t first) {
    kelp_infer infer = {.block = block};
    return infer_main(&infer, first);
}

static bool has_signature(const kelp_block *block, kelp_signature_of_fn signature_of, void *userp) {
    for (size_t i = 0; i < block->node_count; i++) {
        const kelp_node *node = block->nodes[i];
        if (node->op->id == KELP_OPERATOR_COUNT && signature_of(userp, node) != NULL)
            return true;
        for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
            for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++)
                if (has_signature(attr->blocks[k], signature_of, userp))
                    return true;
    }
    return false;
}

kelp_status *kelp_block_infer_signatures(kelp_block *block, kelp_signature_of_fn signature_of,
                                         void *userp) {
    kelp_infer infer = {.block = block, .signature_of = signature_of, .userp = userp};
    return has_signature(block, signature_of, userp) ? infer_main(&infer, 0) : NULL;
}
