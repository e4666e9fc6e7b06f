/* SPDX-License-Identifier: Apache-2.0 */
/*
 * com.microsoft Attention and QAttention: the projection to queries, keys and values, then
 * attention with one cache for keys and values. QAttention's integers are dequantized. Source: ONNX
 * Runtime, ContribOperators.md.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/ops/attention/heads.h"
#include "cpu/ops/converted.h"
#include "cpu/ops/operand.h"
#include "cpu/ops/variant.h"
#include "tensor/real.h"

#include <math.h>

/* Indices of the inputs; -1: the operator lacks this input. */
typedef struct operand_map {
    int32_t bias, mask, past, added, x_scale, w_scale, x_zero, w_zero;
} operand_map;
static const operand_map plain_operands = {2, 3, 4, 5, -1, -1, -1, -1};
static const operand_map quantized_operands = {2, 5, 8, -1, 3, 4, 6, 7};

typedef struct projected_plan {
    kelp_sdpa s;
    int64_t inputs, width, past; /* width: of queries, keys and values together */
    int64_t sizes[3];            /* hidden sizes of each */
    kelp_heads_mask mask;
    size_t x, w, bias, qkv, joined, scratch;
} projected_plan;

static const kelp_tensor *operand(const kelp_op_args *args, int32_t index) {
    return index >= 0 ? kelp_ops_in(args, index) : NULL;
}

/* Dequantizes by one scale and zero point, or by one per column. */
static void dequantize(const kelp_tensor *x, const kelp_tensor *scale, const kelp_tensor *zero,
                       int64_t columns, float *to) {
    int64_t count = kelp_tensor_elements(x);
    bool many_scales = kelp_tensor_elements(scale) > 1;
    bool many_zeros = zero != NULL && kelp_tensor_elements(zero) > 1;
    KELP_ASSERT(!many_scales || kelp_tensor_elements(scale) == columns);
    KELP_ASSERT(!many_zeros || kelp_tensor_elements(zero) == columns);
    for (int64_t i = 0; i < count; i++) {
        int64_t column = i % columns;
        double z = zero != NULL ? kelp_ops_read_f64(zero, many_zeros ? column : 0) : 0;
        to[i] = (float)((kelp_ops_read_f64(x, i) - z) *
                        kelp_ops_read_f64(scale, many_scales ? column : 0));
    }
}

/* ---- packed constant weights ---- */
typedef struct projected_state {
    kelp_op_packed packed;
} projected_state;

static kelp_status *convert_and_pack(const kelp_tensor *w, const kelp_tensor *scale,
                                     const kelp_tensor *zero, kelp_allocator allocator,
                                     float *memory) {
    int64_t k = w->shape[0], n = w->shape[1];
    size_t plain_bytes;
    float *plain = NULL;
    if (!kelp_size_mul((size_t)kelp_tensor_elements(w), sizeof(float), &plain_bytes))
        return kelp_status_oom();
    KELP_TRY(kelp_alloc_aligned(allocator, plain_bytes, 64, (void **)&plain));
    if (scale != NULL)
        dequantize(w, scale, zero, n, plain);
    else
        kelp_math_load_tensor(w, 0, k * n, plain);
    kelp_gemm_pack(kelp_gemm_kernels_get(), plain, n, k, n, memory);
    kelp_free_aligned(allocator, plain, plain_bytes, 64);
    return NULL;
}

static kelp_status *pack_weights(const kelp_tensor *w, const kelp_tensor *scale,
                                 const kelp_tensor *zero, const kelp_op_env *env,
                                 projected_state *state) {
    const kelp_gemm_kernels *kernels = kelp_gemm_kernels_get();
    kelp_allocator allocator = kelp_op_env_allocator(env);
    kelp_op_pack_site site = kelp_op_env_pack_site(env);
    char layout[KELP_OP_LAYOUT_MAX + 1];
    kelp_op_packing packing = {.layout = layout, .inputs = 1u << 1, .replaces = 1u << 1};
    size_t floats;
    void *memory = NULL;
    if (!kelp_gemm_packed_size(kernels, w->shape[0], w->shape[1], &floats) ||
        !kelp_size_mul(floats, sizeof(float), &packing.size_bytes))
        return kelp_status_oom();
    kelp_gemm_layout(kernels, "merged", layout, sizeof layout);
    KELP_TRY(kelp_op_pack(&site, allocator, &packing, &state->packed, &memory));
    return memory != NULL ? convert_and_pack(w, scale, zero, allocator, memory) : NULL;
}

static bool is_one_or(const kelp_tensor *x, int64_t count) {
    return x == NULL || kelp_tensor_elements(x) == 1 || kelp_tensor_elements(x) == count;
}

static kelp_status *projected_create(const kelp_node *node, const kelp_op_env *env,
                                     void **out_state) {
    bool quantized = kelp_op_variant_of(node) == KELP_VARIANT_INT8_ATTENTION;
    const operand_map *map = quantized ? &quantized_operands : &plain_operands;
    const kelp_tensor *w = kelp_ops_constant(node, 1),
                      *scale = kelp_ops_constant(node, map->w_scale);
    const kelp_tensor *zero = kelp_ops_constant(node, map->w_zero);
    bool has_zero = quantized && kelp_ops_has_input(node, map->w_zero);
    projected_state *state = NULL;
    if (w == NULL || w->rank != 2 || kelp_tensor_elements(w) == 0 ||
        kelp_ops_is_float(w->dtype) == quantized || (quantized && scale == NULL) ||
        (has_zero && zero == NULL) || !is_one_or(scale, w->shape[1]) ||
        !is_one_or(zero, w->shape[1]))
        return NULL; /* not packed; reshape reports errors */
    kelp_allocator allocator = kelp_op_env_allocator(env);
    KELP_TRY(KELP_NEW(allocator, projected_state, &state));
    *out_state = state;
    return pack_weights(w, scale, zero, env, state);
}

static void projected_destroy(void *state, kelp_allocator allocator) {
    projected_state *s = state;
    if (s == NULL)
        return;
    kelp_op_unpack(&s->packed, allocator);
    kelp_free(allocator, s, sizeof *s);
}

/* ---- shapes ---- */
static kelp_status *read_sizes(kelp_op_args *args, projected_plan *p, const operand_map *map) {
    const kelp_tensor *x = args->inputs[0], *w = args->inputs[1];
    const kelp_tensor *bias = operand(args, map->bias);
    kelp_sdpa *s = &p->s;
    const int64_t *sizes = NULL;
    size_t count = kelp_node_attr_i64s(args->node, "qkv_hidden_sizes", &sizes);
    s->heads = kelp_node_attr_i64(args->node, "num_heads", 0);
    if (x->rank != 3 || w->rank != 2 || w->shape[0] != x->shape[2] || s->heads < 1)
        return kelp_ops_bad_shapes(args, x, w, "the weights do not match the input and num_heads");
    s->batch = x->shape[0];
    s->queries = x->shape[1];
    p->inputs = x->shape[2];
    p->width = w->shape[1];
    for (int i = 0; i < 3; i++)
        p->sizes[i] = count == 3 ? sizes[i] : p->width / 3;
    bool in_range = p->sizes[0] >= 0 && p->sizes[0] <= p->width / 2 && p->sizes[2] >= 0;
    if (!in_range || p->sizes[0] != p->sizes[1] || p->sizes[2] != p->width - 2 * p->sizes[0] ||
        p->sizes[0] % s->heads != 0 || p->sizes[2] % s->heads != 0 ||
        (bias != NULL && kelp_tensor_elements(bias) != p->width))
        return kelp_ops_bad_shapes(args, w, bias,
                                   "the hidden sizes do not match the weights, bias and heads");
    s->size = p->sizes[0] / s->heads;
    s->v_size = p->sizes[2] / s->heads;
    s->group = 1;
    return NULL;
}

static kelp_status *read_past(kelp_op_args *args, projected_plan *p, const kelp_tensor *past) {
    kelp_sdpa *s = &p->s;
    if ((past != NULL || kelp_ops_out(args, 1) != NULL) && s->size != s->v_size)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "operator '%s': a cache requires values of the size of keys",
                          kelp_node_op_type(args->node));
    if (past != NULL) {
        if (past->rank != 5 || past->shape[0] != 2 || past->shape[1] != s->batch ||
            past->shape[2] != s->heads || past->shape[4] != s->size)
            return kelp_ops_bad_shapes(args, args->inputs[0], past,
                                       "the shape of the past does not match the heads");
        p->past = past->shape[3];
    }
    s->keys = s->queries + p->past;
    return NULL;
}

/* Checks types, and the number of scales and zero points. */
static kelp_status *check_operands(const kelp_op_args *args, const operand_map *map) {
    const kelp_tensor *x = args->inputs[0], *w = args->inputs[1];
    const int32_t floats[] = {map->bias, map->past, map->added};
    const int32_t quantizers[] = {map->x_scale, map->x_zero, map->w_scale, map->w_zero};
    bool quantized = map->x_scale >= 0;
    for (int32_t i = 0; i < 2; i++)
        if (quantized ? !kelp_ops_is_byte(args->inputs[i]->dtype)
                      : !kelp_ops_is_float(args->inputs[i]->dtype))
            return kelp_ops_bad_type(args, args->inputs[i]->dtype);
    for (size_t i = 0; i < KELP_COUNT(floats); i++) {
        const kelp_tensor *t = operand(args, floats[i]);
        if (t != NULL && !kelp_ops_is_float(t->dtype))
            return kelp_ops_bad_type(args, t->dtype);
    }
    for (size_t i = 0; i < KELP_COUNT(quantizers); i++) {
        const kelp_tensor *of = i < 2 ? x : w, *t = operand(args, quantizers[i]);
        int64_t columns = of->rank > 0 ? of->shape[of->rank - 1] : 1;
        if (!is_one_or(t, columns))
            return kelp_ops_bad_shapes(args, of, t,
                                       "expected one scale or zero point, or one for each column");
    }
    return NULL;
}

static kelp_status *check_attributes(const kelp_op_args *args) {
    if (kelp_node_attr_i64(args->node, "do_rotary", 0) != 0 ||
        kelp_node_attr_i64(args->node, "past_present_share_buffer", 0) != 0)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "operator '%s': do_rotary and past_present_share_buffer are not "
                          "supported",
                          kelp_node_op_type(args->node));
    return NULL;
}

static kelp_status *reserve(kelp_op_args *args, projected_plan *p, const operand_map *map,
                            bool packed) {
    kelp_sdpa *s = &p->s;
    const kelp_tensor *present = kelp_ops_out(args, 1);
    int64_t rows = s->batch * s->queries;
    KELP_TRY(kelp_ops_plan_f32(args, args->inputs[0], &p->x));
    if (!packed)
        KELP_TRY(kelp_ops_plan_f32(args, args->inputs[1], &p->w));
    KELP_TRY(kelp_ops_plan_f32(args, operand(args, map->bias), &p->bias));
    KELP_TRY(kelp_ops_scratch(args, rows * p->width, 4, &p->qkv));
    if ((p->past > 0 || present != NULL) && (present == NULL || present->dtype != KELP_F32)) {
        KELP_TRY(
            kelp_ops_scratch(args, 2 * s->batch * s->heads * s->keys * s->size, 4, &p->joined));
    }
    return kelp_sdpa_reserve(args, s, &p->scratch);
}

static kelp_status *projected_reshape(const void *state, kelp_op_args *args,
                                      const operand_map *map) {
    projected_plan *p = args->plan;
    kelp_sdpa *s = &p->s;
    KELP_TRY(kelp_ops_check(args, map->x_scale >= 0 ? 5 : 2));
    const kelp_tensor *scale = operand(args, map->x_scale);
    kelp_dtype dtype = scale != NULL ? scale->dtype : args->inputs[0]->dtype;
    if (dtype != KELP_F32 && dtype != KELP_F16 && dtype != KELP_BF16)
        return kelp_ops_bad_type(args, dtype);
    KELP_TRY(check_attributes(args));
    KELP_TRY(check_operands(args, map));
    KELP_TRY(read_sizes(args, p, map));
    KELP_TRY(read_past(args, p, operand(args, map->past)));
    s->scale = (double)kelp_node_attr_f32(args->node, "scale", 0.0f);
    if (s->scale == 0)
        s->scale = 1.0 / sqrt((double)s->size);
    s->compute = s->q_dtype = s->round = s->softmax_round = KELP_F32;
    s->y_dtype = dtype;
    s->q_scale = 1.0f;
    s->left = -1;
    s->right = kelp_node_attr_i64(args->node, "unidirectional", 0) != 0 ? 0 : -1;
    s->offset = p->past;
    KELP_TRY(kelp_heads_mask_plan(args, map->mask, s, &p->mask));
    if (map->added >= 0)
        KELP_TRY(kelp_heads_bias_check(args, map->added, s));
    int64_t y[3] = {s->batch, s->queries, p->sizes[2]};
    int64_t present[5] = {2, s->batch, s->heads, s->keys, s->size};
    KELP_TRY(kelp_ops_set(args, 0, dtype, 3, y));
    KELP_TRY(kelp_ops_set(args, 1, dtype, 5, present));
    return reserve(args, p, map, state != NULL);
}

/* Returns `x` as floats, dequantized if there is a scale. */
static const float *floats_of(const kelp_op_args *args, const kelp_tensor *x,
                              const kelp_tensor *scale, const kelp_tensor *zero, int64_t columns,
                              size_t offset) {
    if (scale == NULL)
        return kelp_ops_get_f32(args, x, offset);
    float *to = kelp_ops_scratch_at(args, offset);
    dequantize(x, scale, zero, columns, to);
    return to;
}

static void project(const projected_state *state, const kelp_op_args *args, const projected_plan *p,
                    const operand_map *map) {
    const float *x = floats_of(args, args->inputs[0], operand(args, map->x_scale),
                               operand(args, map->x_zero), p->inputs, p->x);
    const float *w = NULL;
    if (state == NULL)
        w = floats_of(args, args->inputs[1], operand(args, map->w_scale),
                      operand(args, map->w_zero), p->width, p->w);
    kelp_gemm job = {.a = x,
                     .b = w,
                     .c = kelp_ops_scratch_at(args, p->qkv),
                     .m = p->s.batch * p->s.queries,
                     .n = p->width,
                     .k = p->inputs,
                     .lda = p->inputs,
                     .ldb = p->width,
                     .ldc = p->width,
                     .packed = state != NULL ? state->packed.data : NULL};
    job.bias = kelp_ops_get_f32(args, operand(args, map->bias), p->bias);
    kelp_gemm_run(args->env, &job, 1);
}

/* Appends keys and values to their past, and writes the present for the next run. */
static void join(const kelp_op_args *args, const projected_plan *p, const operand_map *map,
                 kelp_sdpa *s) {
    kelp_tensor *present = kelp_ops_out(args, 1);
    if (p->past == 0 && present == NULL)
        return;
    int64_t each = s->batch * s->heads * s->keys * s->size;
    bool straight = present != NULL && present->dtype == KELP_F32;
    float *to = straight ? present->data : kelp_ops_scratch_at(args, p->joined);
    for (int i = 0; i < 2; i++) {
        kelp_sdpa_view *view = i == 0 ? &s->k : &s->v;
        kelp_heads h = {.batch = s->batch,
                        .heads = s->heads,
                        .fresh = s->queries,
                        .size = s->size,
                        .past = p->past,
                        .rows = s->keys,
                        .from = *view,
                        .from_dtype = KELP_F32,
                        .old = operand(args, map->past),
                        .old_first = i * s->batch * s->heads * p->past * s->size,
                        .old_rows = p->past,
                        .to = to + i * each};
        kelp_heads_gather(args->env, &h, view);
    }
    if (present != NULL && !straight)
        kelp_ops_store_f32(args->env, to, present);
}

static kelp_status *projected_run(const void *state, kelp_op_args *args, const operand_map *map) {
    projected_plan *p = args->plan;
    kelp_sdpa s = p->s;
    const float *qkv = kelp_ops_scratch_at(args, p->qkv);
    KELP_ASSERT(p->width == 2 * p->sizes[0] + p->sizes[2]);
    KELP_ASSERT(s.keys == s.queries + p->past);
    project(state, args, p, map);
    s.q = (kelp_sdpa_view){qkv, s.queries * p->width, s.size, p->width};
    s.k = s.v = s.q;
    s.k.data = qkv + p->sizes[0];
    s.v.data = qkv + 2 * p->sizes[0];
    s.v.head = s.v_size;
    join(args, p, map, &s);
    kelp_heads_mask_set(args, &p->mask,
                        kelp_node_attr_f32(args->node, "mask_filter_value", -10000.0f), &s);
    if (map->added >= 0)
        kelp_heads_bias_set(args, map->added, &s);
    s.scratch = kelp_ops_scratch_at(args, p->scratch);
    s.y = (kelp_sdpa_view){args->outputs[0]->data, s.queries * p->sizes[2], s.v_size, p->sizes[2]};
    kelp_sdpa_run(args->env, &s);
    return NULL;
}

static kelp_status *plain_reshape(const void *state, kelp_op_args *args) {
    return projected_reshape(state, args, &plain_operands);
}
static kelp_status *plain_invoke(const void *state, kelp_op_args *args) {
    return projected_run(state, args, &plain_operands);
}
static kelp_status *quantized_reshape(const void *state, kelp_op_args *args) {
    return projected_reshape(state, args, &quantized_operands);
}
static kelp_status *quantized_invoke(const void *state, kelp_op_args *args) {
    return projected_run(state, args, &quantized_operands);
}
#define PROJECTED_KERNEL(name, prefix)                                            \
    const kelp_op_kernel kelp_op_##name = {.struct_size = sizeof(kelp_op_kernel), \
                                           .flags = KELP_OP_STATE_OPTIONAL,       \
                                           .plan_bytes = sizeof(projected_plan),  \
                                           .create = projected_create,            \
                                           .destroy = projected_destroy,          \
                                           .reshape = prefix##_reshape,           \
                                           .invoke = prefix##_invoke}
PROJECTED_KERNEL(MsAttention, plain);
PROJECTED_KERNEL(MsQAttention, quantized);
