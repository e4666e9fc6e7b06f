/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes in float32 what a graph computes in float16 or bfloat16: a value between two such
 * operators is not rounded, and other passes and kernels see float32 operators. Values that enter
 * or leave are cast; casts of constants are folded afterwards.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "graph/passes/passes.h"

#include <string.h>

/* How a node takes part. */
typedef enum half_role {
    HALF_NONE,  /* keeps its types */
    HALF_MOVES, /* moves elements: becomes float32 if all its inputs are float32 already */
    HALF_READS, /* has no output of 16 bits: reads float32 if that exists */
    HALF_LIGHT, /* elementwise, with a fast kernel for 16 bits: becomes float32 next to HEAVY */
    HALF_HEAVY  /* always becomes float32 */
} half_role;

/* Larger constants stay in 16 bits, and the nodes that read them too. */
#define MAX_CONSTANT_BYTES ((size_t)256 << 20)
#define CAST_VERSION 13

typedef struct half_row {
    const kelp_operator *op;
    half_role role;
} half_row;

#define HEAVY(name) {KELP_OP(name), HALF_HEAVY},
#define HEAVY_MS(name) {KELP_OP_MS(name), HALF_HEAVY},
#define LIGHT(name) {KELP_OP(name), HALF_LIGHT},
#define LIGHT_MS(name) {KELP_OP_MS(name), HALF_LIGHT},
#define MOVES(name) {KELP_OP(name), HALF_MOVES},
#define READS(name) {KELP_OP(name), HALF_READS},
/* clang-format off */
static const half_row rows[] = {
    HEAVY(Attention) HEAVY(AveragePool) HEAVY(BatchNormalization) HEAVY(Conv) HEAVY(ConvTranspose)
    HEAVY(CumSum) HEAVY(DequantizeLinear) HEAVY(Einsum) HEAVY(GRU) HEAVY(Gemm)
    HEAVY(GlobalAveragePool) HEAVY(GlobalLpPool) HEAVY(GlobalMaxPool) HEAVY(GridSample) HEAVY(LRN)
    HEAVY(LSTM) HEAVY(LogSoftmax) HEAVY(LpNormalization) HEAVY(LpPool) HEAVY(MatMul) HEAVY(MaxPool)
    HEAVY(MeanVarianceNormalization) HEAVY(QuantizeLinear) HEAVY(RNN) HEAVY(ReduceL1)
    HEAVY(ReduceL2) HEAVY(ReduceLogSum) HEAVY(ReduceLogSumExp) HEAVY(ReduceMax) HEAVY(ReduceMean)
    HEAVY(ReduceMin) HEAVY(ReduceProd) HEAVY(ReduceSum) HEAVY(ReduceSumSquare) HEAVY(Resize)
    HEAVY(Softmax) HEAVY(Upsample)
    HEAVY_MS(Attention) HEAVY_MS(FusedConv) HEAVY_MS(FusedGemm) HEAVY_MS(FusedMatMul)
    HEAVY_MS(MatMulNBits) HEAVY_MS(MultiHeadAttention) HEAVY_MS(TransposeMatMul)
    LIGHT(Abs) LIGHT(Acos) LIGHT(Acosh) LIGHT(Add) LIGHT(Asin) LIGHT(Asinh) LIGHT(Atan) LIGHT(Atanh)
    LIGHT(Ceil) LIGHT(Celu) LIGHT(Clip) LIGHT(Cos) LIGHT(Cosh) LIGHT(Div) LIGHT(Elu) LIGHT(Equal)
    LIGHT(Erf) LIGHT(Exp) LIGHT(Floor) LIGHT(Gelu) LIGHT(Greater) LIGHT(GreaterOrEqual)
    LIGHT(GroupNormalization) LIGHT(HardSigmoid) LIGHT(HardSwish) LIGHT(InstanceNormalization)
    LIGHT(LayerNormalization) LIGHT(LeakyRelu) LIGHT(Less) LIGHT(LessOrEqual) LIGHT(Log) LIGHT(Max)
    LIGHT(Mean) LIGHT(Min) LIGHT(Mish) LIGHT(Mul) LIGHT(Neg) LIGHT(PRelu) LIGHT(Pow)
    LIGHT(RMSNormalization) LIGHT(Reciprocal) LIGHT(Relu) LIGHT(RotaryEmbedding) LIGHT(Round)
    LIGHT(Selu) LIGHT(Shrink) LIGHT(Sigmoid) LIGHT(Sign) LIGHT(SimplifiedLayerNormalization)
    LIGHT(Sin) LIGHT(Sinh) LIGHT(Softplus) LIGHT(Softsign) LIGHT(Sqrt) LIGHT(Sub) LIGHT(Sum)
    LIGHT(SwiGLU) LIGHT(Swish) LIGHT(Tan) LIGHT(Tanh) LIGHT(ThresholdedRelu)
    LIGHT_MS(BiasAdd) LIGHT_MS(BiasGelu) LIGHT_MS(BiasSplitGelu) LIGHT_MS(EmbedLayerNormalization)
    LIGHT_MS(FastGelu) LIGHT_MS(Gelu) LIGHT_MS(QuickGelu) LIGHT_MS(RotaryEmbedding)
    LIGHT_MS(SkipLayerNormalization) LIGHT_MS(SkipSimplifiedLayerNormalization)
    MOVES(Concat) MOVES(DepthToSpace) MOVES(Dropout) MOVES(Expand) MOVES(Flatten) MOVES(Gather)
    MOVES(GatherElements) MOVES(GatherND) MOVES(Identity) MOVES(Pad) MOVES(Reshape)
    MOVES(ReverseSequence) MOVES(ScatterElements) MOVES(ScatterND) MOVES(Slice) MOVES(SpaceToDepth)
    MOVES(Split) MOVES(Squeeze) MOVES(Tile) MOVES(TopK) MOVES(Transpose) MOVES(Trilu)
    MOVES(Unsqueeze) MOVES(Where)
    READS(ArgMax) READS(ArgMin) READS(Cast) READS(NonZero) READS(Shape) READS(Size)
};
/* clang-format on */

typedef struct half_pass {
    kelp_block *block;
    size_t value_count; /* before the pass */
    kelp_value **wide;  /* by id: the value in float32, or NULL */
    bool *near;         /* by id: the value is computed by HEAVY, or leads to one */
    kelp_node **order;
    size_t order_count;
} half_pass;

static bool is_half(const kelp_value *value) {
    return value != NULL && (value->dtype == KELP_F16 || value->dtype == KELP_BF16);
}

/* ---- roles ---- */
/* Returns true for an attention with a cache, which its kernel extends in place. */
static bool has_cache(const kelp_node *node) {
    size_t first = node->op == KELP_OP_MS(MultiHeadAttention) ? 6 : 4;
    if (node->op != KELP_OP(Attention) && node->op != KELP_OP_MS(Attention) &&
        node->op != KELP_OP_MS(MultiHeadAttention))
        return false;
    return node->input_count > first && node->inputs[first] != NULL;
}

/* Returns true if the types of all operands are known and those of 16 bits can be replaced. */
static bool is_plain(const kelp_node *node) {
    for (size_t i = 0; i < node->input_count; i++) {
        const kelp_value *x = node->inputs[i];
        if (x == NULL)
            continue;
        if (x->kind != KELP_VALUE_TENSOR || x->dtype == KELP_DTYPE_INVALID ||
            x->block != node->block ||
            (x->constant != NULL && is_half(x) &&
             2 * kelp_tensor_bytes(x->constant) > MAX_CONSTANT_BYTES))
            return false;
    }
    for (size_t i = 0; i < node->output_count; i++) {
        const kelp_value *y = node->outputs[i];
        if (y != NULL && (y->kind != KELP_VALUE_TENSOR || y->dtype == KELP_DTYPE_INVALID))
            return false;
    }
    return true;
}

static half_role role_of(const kelp_node *node) {
    bool any = false;
    for (size_t i = 0; i < node->input_count; i++)
        any = any || is_half(node->inputs[i]);
    if (!any || !is_plain(node) || has_cache(node))
        return HALF_NONE;
    if (node->op == KELP_OP(Cast) && is_half(node->outputs[0]))
        return HALF_NONE;
    for (size_t i = 0; i < KELP_COUNT(rows); i++)
        if (rows[i].op == node->op)
            return rows[i].role;
    return HALF_NONE;
}

/* ---- light nodes ---- */
static bool is_near(const half_pass *p, kelp_value *const *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (is_half(values[i]) && values[i]->id < p->value_count && p->near[values[i]->id])
            return true;
    return false;
}

static void mark_near(const half_pass *p, kelp_value *const *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (is_half(values[i]) && values[i]->block == p->block && values[i]->constant == NULL)
            p->near[values[i]->id] = true;
}

/* Marks the values that a HEAVY node computes or reads, directly or through nodes that are not. */
static void find_near(const half_pass *p) {
    const kelp_block *block = p->block;
    for (size_t i = 0; i < block->node_count; i++) {
        kelp_node *node = block->nodes[i];
        half_role role = role_of(node);
        if (role == HALF_HEAVY || ((role == HALF_LIGHT || role == HALF_MOVES) &&
                                   is_near(p, node->inputs, node->input_count)))
            mark_near(p, node->outputs, node->output_count);
    }
    for (size_t i = block->node_count; i-- > 0;) {
        kelp_node *node = block->nodes[i];
        half_role role = role_of(node);
        if (role == HALF_HEAVY || ((role == HALF_LIGHT || role == HALF_MOVES) &&
                                   is_near(p, node->outputs, node->output_count)))
            mark_near(p, node->inputs, node->input_count);
    }
}

/* ---- rewriting ---- */
static kelp_status *new_value(const half_pass *p, const kelp_value *like, kelp_value **out) {
    KELP_TRY(kelp_block_add_value(p->block, like->name, out));
    kelp_value *value = *out;
    value->kind = KELP_VALUE_TENSOR;
    value->dtype = KELP_F32;
    value->rank = like->rank;
    memcpy(value->shape, like->shape, sizeof value->shape);
    memcpy(value->symbols, like->symbols, sizeof value->symbols);
    return NULL;
}

static kelp_status *add_cast(half_pass *p, kelp_value *from, kelp_value *to) {
    kelp_node *node = NULL;
    KELP_TRY(kelp_block_add_node(p->block, KELP_OP(Cast), CAST_VERSION, to->name, &from, 1, &to, 1,
                                 NULL, &node));
    p->order[p->order_count++] = node;
    return kelp_node_set_i64(node, "to", (int64_t)to->dtype);
}

static kelp_value *wide_of(const half_pass *p, const kelp_value *value) {
    return is_half(value) && value->block == p->block && value->id < p->value_count
               ? p->wide[value->id]
               : NULL;
}

/* Returns true if float32 exists of all inputs of 16 bits that are not constant, and of at least
 * one. */
static bool all_wide(const half_pass *p, const kelp_node *node) {
    bool any = false;
    for (size_t i = 0; i < node->input_count; i++) {
        if (!is_half(node->inputs[i]) || node->inputs[i]->constant != NULL)
            continue;
        if (wide_of(p, node->inputs[i]) == NULL)
            return false;
        any = true;
    }
    return any;
}

static bool becomes_wide(const half_pass *p, const kelp_node *node, half_role role) {
    switch (role) {
    case HALF_HEAVY:
        return true;
    case HALF_LIGHT:
        return is_near(p, node->inputs, node->input_count) ||
               is_near(p, node->outputs, node->output_count);
    case HALF_MOVES:
    case HALF_READS:
        return all_wide(p, node);
    case HALF_NONE:
        break;
    }
    return false;
}

static kelp_status *widen_inputs(half_pass *p, kelp_node *node) {
    for (size_t i = 0; i < node->input_count; i++) {
        kelp_value *x = node->inputs[i];
        if (!is_half(x))
            continue;
        if (p->wide[x->id] == NULL) {
            KELP_TRY(new_value(p, x, &p->wide[x->id]));
            KELP_TRY(add_cast(p, x, p->wide[x->id]));
        }
        node->inputs[i] = p->wide[x->id];
    }
    return NULL;
}

static kelp_status *widen_outputs(half_pass *p, kelp_node *node) {
    for (size_t i = 0; i < node->output_count; i++) {
        kelp_value *y = node->outputs[i];
        if (!is_half(y))
            continue;
        kelp_value *wide = NULL;
        KELP_TRY(new_value(p, y, &wide));
        p->wide[y->id] = wide;
        node->outputs[i] = wide;
        wide->producer = node;
        KELP_TRY(add_cast(p, wide, y));
    }
    return NULL;
}

static kelp_status *rewrite(half_pass *p) {
    kelp_block *block = p->block;
    size_t count = block->node_count;
    for (size_t i = 0; i < count; i++) {
        kelp_node *node = block->nodes[i];
        half_role role = role_of(node);
        bool wide = becomes_wide(p, node, role);
        if (wide)
            KELP_TRY(widen_inputs(p, node));
        p->order[p->order_count++] = node;
        if (wide)
            KELP_TRY(widen_outputs(p, node));
        /* what a model rounds only to compute in 16 bits */
        if (node->op == KELP_OP(Cast) && is_half(node->outputs[0]) && node->inputs[0] != NULL &&
            node->inputs[0]->dtype == KELP_F32 && node->inputs[0]->block == block)
            p->wide[node->outputs[0]->id] = node->inputs[0];
    }
    KELP_ASSERT(p->order_count == block->node_count);
    memcpy(block->nodes, p->order, p->order_count * sizeof *p->order);
    kelp_block_sweep(block);
    kelp_block_count_uses(block);
    return NULL;
}

bool kelp_half_has_weights(const kelp_block *block) {
    for (size_t n = 0; n < block->node_count; n++) {
        const kelp_node *node = block->nodes[n];
        bool varies = false, weights = false;
        for (size_t i = 0; i < node->input_count; i++) {
            const kelp_value *x = node->inputs[i];
            if (!is_half(x))
                continue;
            varies = varies || x->constant == NULL;
            weights = weights || (x->constant != NULL && kelp_tensor_elements(x->constant) > 1);
        }
        if (varies && weights && role_of(node) == HALF_HEAVY)
            return true;
    }
    return false;
}

kelp_status *kelp_pass_half(kelp_block *block) {
    kelp_arena *arena = &block->graph->arena;
    half_pass p = {.block = block, .value_count = block->value_count};
    bool any = false;
    for (size_t i = 0; i < block->value_count; i++)
        any = any || is_half(block->values[i]);
    if (!any)
        return NULL;
    p.wide = KELP_ARENA_ARRAY(arena, block->value_count + 1, kelp_value *);
    p.near = KELP_ARENA_ARRAY(arena, block->value_count + 1, bool);
    p.order = KELP_ARENA_ARRAY(arena, block->node_count + block->value_count + 1, kelp_node *);
    if (p.wide == NULL || p.near == NULL || p.order == NULL)
        return kelp_status_oom();
    find_near(&p);
    return rewrite(&p);
}
