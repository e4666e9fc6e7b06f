/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the constants that determine shapes. A refit must not replace them, because the declared
 * shapes of an engine would then be wrong.
 *
 * Some inputs of operators are parameters of a shape, such as the axes of a reduction. Constants
 * from which such an input is computed determine a shape. If the input is also computed from the
 * elements of the model's inputs, the dimension is known after a run only, and weights that take
 * part in this computation remain weights: only integers and booleans count as parameters then.
 */
#include "base/assert.h"
#include "graph/ir.h"

/* Inputs whose elements determine a shape, as bits, by operator. */
#define IN(i) (1u << (i))
#define REDUCE(name) [KELP_OPERATOR_ONNX_##name] = IN(1)
static const uint8_t parameters[KELP_OPERATOR_COUNT + 1] = {
    REDUCE(ReduceL1),
    REDUCE(ReduceL2),
    REDUCE(ReduceLogSum),
    REDUCE(ReduceLogSumExp),
    REDUCE(ReduceMax),
    REDUCE(ReduceMean),
    REDUCE(ReduceMin),
    REDUCE(ReduceProd),
    REDUCE(ReduceSum),
    REDUCE(ReduceSumSquare),
    [KELP_OPERATOR_ONNX_AffineGrid] = IN(1),
    [KELP_OPERATOR_ONNX_BlackmanWindow] = IN(0),
    [KELP_OPERATOR_ONNX_CenterCropPad] = IN(1),
    [KELP_OPERATOR_ONNX_Col2Im] = IN(1) | IN(2),
    [KELP_OPERATOR_ONNX_ConstantOfShape] = IN(0),
    [KELP_OPERATOR_ONNX_DFT] = IN(1) | IN(2),
    [KELP_OPERATOR_ONNX_Expand] = IN(1),
    [KELP_OPERATOR_ONNX_HammingWindow] = IN(0),
    [KELP_OPERATOR_ONNX_HannWindow] = IN(0),
    [KELP_OPERATOR_ONNX_If] = IN(0),
    [KELP_OPERATOR_ONNX_Loop] = IN(0) | IN(1),
    [KELP_OPERATOR_ONNX_MaxUnpool] = IN(2),
    [KELP_OPERATOR_ONNX_MelWeightMatrix] = IN(0) | IN(1),
    [KELP_OPERATOR_ONNX_NonMaxSuppression] = IN(2),
    [KELP_OPERATOR_ONNX_OneHot] = IN(1),
    [KELP_OPERATOR_ONNX_Pad] = IN(1) | IN(3),
    [KELP_OPERATOR_ONNX_Range] = IN(0) | IN(1) | IN(2),
    [KELP_OPERATOR_ONNX_Reshape] = IN(1),
    [KELP_OPERATOR_ONNX_Resize] = IN(1) | IN(2) | IN(3),
    [KELP_OPERATOR_ONNX_STFT] = IN(1) | IN(3),
    [KELP_OPERATOR_ONNX_SequenceAt] = IN(1),
    [KELP_OPERATOR_ONNX_SequenceErase] = IN(1),
    [KELP_OPERATOR_ONNX_SequenceInsert] = IN(2),
    [KELP_OPERATOR_ONNX_Slice] = IN(1) | IN(2) | IN(3) | IN(4),
    [KELP_OPERATOR_ONNX_Split] = IN(1),
    [KELP_OPERATOR_ONNX_SplitToSequence] = IN(1),
    [KELP_OPERATOR_ONNX_Squeeze] = IN(1),
    [KELP_OPERATOR_ONNX_Tile] = IN(1) | IN(2),
    [KELP_OPERATOR_ONNX_TopK] = IN(1),
    [KELP_OPERATOR_ONNX_Unsqueeze] = IN(1),
    [KELP_OPERATOR_ONNX_Upsample] = IN(1),
    [KELP_OPERATOR_MS_GroupQueryAttention] = IN(6),
    [KELP_OPERATOR_MS_Pad] = IN(1),
};

/* Inputs whose elements select or count elements of the output. They determine a shape if they are
 * not computed from elements of the model's inputs. */
static const uint8_t selections[KELP_OPERATOR_COUNT + 1] = {
    [KELP_OPERATOR_ONNX_Compress] = IN(1),
    [KELP_OPERATOR_ONNX_ImageDecoder] = IN(0),
    [KELP_OPERATOR_ONNX_NonMaxSuppression] = IN(0) | IN(1) | IN(3) | IN(4),
    [KELP_OPERATOR_ONNX_NonZero] = IN(0),
    [KELP_OPERATOR_ONNX_StringSplit] = IN(0),
    [KELP_OPERATOR_ONNX_Unique] = IN(0),
    [KELP_OPERATOR_MS_Unique] = IN(0),
};

/* Returns true for operators whose outputs do not depend on the elements of their inputs. */
static bool reads_shape_only(const kelp_node *node) {
    return node->op == KELP_OP(Shape) || node->op == KELP_OP(Size) ||
           node->op == KELP_OP(SequenceLength);
}

/* ---- values that are computed from elements of inputs ---- */
static bool follow_block(kelp_block *block);

/* A body runs several times, so that its inputs differ from run to run. */
static bool follow_blocks(const kelp_node *node) {
    bool follows = false;
    for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
        for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++)
            follows = follow_block(attr->blocks[k]) || follows;
    return follows;
}

/* Returns true if an output follows elements of inputs. */
static bool follow_block(kelp_block *block) {
    bool any = false;
    for (size_t i = 0; i < block->input_count; i++)
        block->inputs[i]->follows_data = true;
    for (size_t n = 0; n < block->node_count; n++) {
        const kelp_node *node = block->nodes[n];
        bool follows = follow_blocks(node);
        for (size_t i = 0; i < node->input_count && !reads_shape_only(node); i++)
            follows = follows || (node->inputs[i] != NULL && node->inputs[i]->follows_data);
        for (size_t i = 0; i < node->output_count; i++)
            if (node->outputs[i] != NULL)
                node->outputs[i]->follows_data = follows;
    }
    for (size_t i = 0; i < block->output_count; i++)
        any = any || block->outputs[i]->follows_data;
    return any;
}

/* ---- values that determine shapes ---- */
/* Returns true if something changed. */
static bool mark(kelp_value *value, kelp_shape_use use) {
    if (value == NULL || value->shape_use >= use)
        return false;
    value->shape_use = use;
    return true;
}

static kelp_shape_use use_of(const kelp_value *value) {
    return value->follows_data ? KELP_SHAPE_USE_DYNAMIC : KELP_SHAPE_USE_STATIC;
}

static kelp_shape_use max_use(kelp_value *const *values, size_t count) {
    kelp_shape_use use = KELP_SHAPE_USE_NONE;
    for (size_t i = 0; i < count; i++)
        if (values[i] != NULL && values[i]->shape_use > use)
            use = values[i]->shape_use;
    return use;
}

static bool mark_block(kelp_block *block);

/* Outputs and inputs of bodies depend on each other, because values are carried from one iteration
 * to the next. */
static bool mark_blocks(const kelp_node *node, kelp_shape_use *inout_use) {
    bool changed = false;
    for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
        for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++) {
            kelp_block *block = attr->blocks[k];
            kelp_shape_use inner = max_use(block->inputs, block->input_count);
            *inout_use = inner > *inout_use ? inner : *inout_use;
            for (size_t i = 0; i < block->output_count; i++)
                changed = mark(block->outputs[i], *inout_use) || changed;
            if (node->op == KELP_OP(Loop) && block->output_count > 0)
                changed = mark(block->outputs[0], KELP_SHAPE_USE_DYNAMIC) || changed;
            changed = mark_block(block) || changed;
        }
    return changed;
}

static bool mark_node(const kelp_node *node) {
    kelp_shape_use use = max_use(node->outputs, node->output_count);
    bool changed = mark_blocks(node, &use);
    KELP_ASSERT(node->op->id <= KELP_OPERATOR_COUNT);
    for (size_t i = 0; i < node->input_count; i++) {
        kelp_value *value = node->inputs[i];
        if (value == NULL)
            continue;
        if (!reads_shape_only(node))
            changed = mark(value, use) || changed;
        if (i < 8 && (parameters[node->op->id] & IN(i)) != 0)
            changed = mark(value, use_of(value)) || changed;
        if (i < 8 && (selections[node->op->id] & IN(i)) != 0 && !value->follows_data)
            changed = mark(value, KELP_SHAPE_USE_STATIC) || changed;
    }
    return changed;
}

static bool mark_block(kelp_block *block) {
    bool changed = false;
    for (size_t n = block->node_count; n-- > 0;)
        changed = mark_node(block->nodes[n]) || changed;
    return changed;
}

void kelp_graph_find_shape_values(kelp_graph *graph) {
    follow_block(graph->main);
    while (mark_block(graph->main)) /* again for values that bodies carry or capture */
        ;
}

bool kelp_value_sets_shape(const kelp_value *value) {
    kelp_dtype dtype = value->dtype;
    bool counts = dtype == KELP_I64 || dtype == KELP_I32 || dtype == KELP_U64 ||
                  dtype == KELP_U32 || dtype == KELP_I16 || dtype == KELP_U16 || dtype == KELP_BOOL;
    return value->shape_use == KELP_SHAPE_USE_STATIC ||
           (value->shape_use == KELP_SHAPE_USE_DYNAMIC && counts);
}
