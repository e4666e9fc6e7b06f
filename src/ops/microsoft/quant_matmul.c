/* SPDX-License-Identifier: Apache-2.0 */
/*
 * com.microsoft MatMulIntegerToFloat, DynamicQuantizeMatMul and QGemm: products of bytes whose
 * result is wanted as floats. Bytes become floats less their zero points (whole numbers, which
 * floats multiply and add without loss up to 2^24), constant matrices once, in panels. Source: ONNX
 * Runtime, ContribOperators.md.
 */
#include "base/alloc.h"
#include "ops/linear/gemm.h"
#include "ops/microsoft/quant.h"

typedef enum product_kind { TO_FLOAT, DYNAMIC, GEMM } product_kind;

/* Where the inputs of each stand; -1 where it has none. */
typedef struct input_places {
    int32_t a_scale, a_zero, b, b_scale, b_zero, bias, y_scale, y_zero;
} input_places;
static const input_places all_places[] = {[TO_FLOAT] = {2, 4, 1, 3, 5, 6, -1, -1},
                                          [DYNAMIC] = {-1, -1, 1, 2, 3, 4, -1, -1},
                                          [GEMM] = {1, 2, 3, 4, 5, 6, 7, 8}};

typedef struct product_state {
    float *packed; /* B less its zeros */
    size_t bytes;
} product_state;

typedef struct product_plan {
    product_kind kind;
    int64_t m, n, k, batch;
    bool turn_a, turn_b, b_shared; /* one B for the whole batch */
    size_t a_wide, b_wide, y_wide, jobs;
    const kelp_op_args *args;
    float *y;
    float a_scale, alpha;
    kelp_quant out;
} product_plan;

static product_kind kind_of(const kelp_node *node) {
    switch (kelp_node_op_type(node)[0]) {
    case 'D':
        return DYNAMIC;
    case 'Q':
        return GEMM;
    default:
        return TO_FLOAT;
    }
}

static const kelp_tensor *at_place(const kelp_op_args *args, int32_t place) {
    return place >= 0 ? kelp_ops_in(args, place) : NULL;
}

/* B [k,n] (or [n,k], turned) less its zeros, one or one a column. */
static void subtract(const kelp_tensor *b, int64_t first, int64_t k, int64_t n, bool turned,
                     const kelp_tensor *zero, float *to) {
    bool many = zero != NULL && kelp_tensor_elements(zero) > 1;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < n; j++) {
            int32_t z = zero != NULL ? kelp_quant_get(zero, many ? j : 0) : 0;
            int64_t at = first + (turned ? j * k + i : i * n + j);
            to[i * n + j] = (float)(kelp_quant_get(b, at) - z);
        }
}

/* ---- constant weights ---- */
static const kelp_tensor *constant(const kelp_node *node, int32_t index) {
    const kelp_value *value =
        (size_t)index < kelp_node_input_count(node) ? kelp_node_input(node, (size_t)index) : NULL;
    return value != NULL ? kelp_value_constant(value) : NULL;
}

static kelp_status *pack_constant(const kelp_tensor *b, const kelp_tensor *zero, bool turned,
                                  kelp_allocator allocator, product_state *state) {
    const kelp_simd *simd = kelp_simd_get();
    int64_t k = b->shape[turned ? 1 : 0], n = b->shape[turned ? 0 : 1];
    size_t floats, plain_bytes = (size_t)(k * n) * sizeof(float);
    float *plain = NULL;
    if (!kelp_gemm_packed_size(simd, k, n, &floats) ||
        !kelp_size_mul(floats, sizeof(float), &state->bytes))
        return kelp_status_oom();
    KELP_TRY(kelp_alloc_aligned(allocator, plain_bytes, 64, (void **)&plain));
    subtract(b, 0, k, n, turned, zero, plain);
    kelp_status *status = kelp_alloc_aligned(allocator, state->bytes, 64, (void **)&state->packed);
    if (status == NULL)
        kelp_gemm_pack(simd, plain, k, n, state->packed);
    kelp_free_aligned(allocator, plain, plain_bytes, 64);
    return status;
}

static kelp_status *product_create(const kelp_node *node, const kelp_op_env *env,
                                   void **out_state) {
    const input_places *places = &all_places[kind_of(node)];
    const kelp_tensor *b = constant(node, places->b), *zero = constant(node, places->b_zero);
    bool has_zero = (size_t)places->b_zero < kelp_node_input_count(node) &&
                    kelp_node_input(node, (size_t)places->b_zero) != NULL;
    bool turned = kind_of(node) == GEMM && kelp_node_attr_i64(node, "transB", 0) != 0;
    product_state *state = NULL;
    if (b == NULL || b->rank != 2 || !kelp_quant_is(b->dtype) || kelp_tensor_elements(b) == 0 ||
        (has_zero && zero == NULL))
        return NULL;
    int64_t zeros = zero != NULL ? kelp_tensor_elements(zero) : 1;
    if (zeros != 1 && zeros != b->shape[turned ? 0 : 1])
        return NULL; /* reshape says what is wrong */
    kelp_allocator allocator = kelp_op_env_allocator(env);
    KELP_TRY(KELP_NEW(allocator, product_state, &state));
    kelp_status *status = pack_constant(b, zero, turned, allocator, state);
    if (status != NULL) {
        kelp_free(allocator, state, sizeof *state);
        return status;
    }
    *out_state = state;
    return NULL;
}

static void product_destroy(void *state, kelp_allocator allocator) {
    product_state *s = state;
    if (s == NULL)
        return;
    kelp_free_aligned(allocator, s->packed, s->bytes, 64);
    kelp_free(allocator, s, sizeof *s);
}

/* ---- shapes ---- */
static bool is_one_or(const kelp_tensor *x, int64_t count) {
    return x == NULL || kelp_tensor_elements(x) == 1 || kelp_tensor_elements(x) == count;
}

static kelp_status *check_parameters(const kelp_op_args *args, const product_plan *p) {
    const input_places *places = &all_places[p->kind];
    const kelp_tensor *a = args->inputs[0], *b = args->inputs[places->b];
    const kelp_tensor *b_scale = at_place(args, places->b_scale);
    const kelp_tensor *b_zero = at_place(args, places->b_zero);
    const kelp_tensor *bias = at_place(args, places->bias);
    if (p->kind != DYNAMIC)
        KELP_TRY(kelp_quant_check(args, a->dtype, places->a_scale, places->a_zero));
    else if (a->dtype != KELP_F32)
        return kelp_ops_bad_type(args, a->dtype);
    if (!kelp_quant_is(b->dtype))
        return kelp_ops_bad_type(args, b->dtype);
    if (b_scale == NULL || b_scale->dtype != KELP_F32 || !is_one_or(b_scale, p->n) ||
        (b_zero != NULL && (b_zero->dtype != b->dtype || !is_one_or(b_zero, p->n))))
        return kelp_ops_bad_shapes(args, b, b_scale,
                                   "expected one scale and zero point, or one a "
                                   "column");
    int64_t count = bias != NULL ? kelp_tensor_elements(bias) : p->n;
    bool matrix = p->kind == GEMM && count == p->m * p->n;
    if (bias != NULL &&
        (bias->dtype != (p->kind == GEMM ? KELP_I32 : KELP_F32) || (count != p->n && !matrix)))
        return kelp_ops_bad_shapes(args, b, bias, "the bias does not fit");
    return NULL;
}

static kelp_status *read_shapes(kelp_op_args *args, product_plan *p, int64_t *shape,
                                int32_t *out_rank) {
    const kelp_tensor *a = args->inputs[0], *b = args->inputs[all_places[p->kind].b];
    if (a->rank < 1 || b->rank < 2 || (p->kind == GEMM && (a->rank != 2 || b->rank != 2)))
        return kelp_ops_bad_shapes(args, a, b, "expected matrices");
    p->turn_a = p->kind == GEMM && kelp_node_attr_i64(args->node, "transA", 0) != 0;
    p->turn_b = p->kind == GEMM && kelp_node_attr_i64(args->node, "transB", 0) != 0;
    p->b_shared = b->rank == 2;
    p->batch = 1;
    p->n = b->shape[b->rank - (p->turn_b ? 2 : 1)];
    p->k = a->shape[p->turn_a ? 0 : a->rank - 1];
    p->m = p->turn_a ? a->shape[1] : kelp_ops_product(a->shape, 0, a->rank - 1);
    if (p->k != b->shape[b->rank - (p->turn_b ? 1 : 2)])
        return kelp_ops_bad_shapes(args, a, b, "the inner extents differ");
    if (!p->b_shared) {
        if (a->rank != b->rank ||
            memcmp(a->shape, b->shape, (size_t)(b->rank - 2) * sizeof *a->shape) != 0)
            return kelp_ops_bad_shapes(args, a, b, "both must have one batch");
        p->batch = kelp_ops_product(b->shape, 0, b->rank - 2);
        p->m = a->shape[a->rank - 2];
    }
    memcpy(shape, a->shape, sizeof a->shape);
    if (p->turn_a)
        shape[0] = p->m;
    shape[a->rank - 1] = p->n;
    *out_rank = a->rank;
    return NULL;
}

static kelp_status *product_reshape(const void *state, kelp_op_args *args) {
    product_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    int32_t rank = 0;
    p->kind = kind_of(args->node);
    const input_places *places = &all_places[p->kind];
    KELP_TRY(kelp_ops_check(args, places->b + 1));
    KELP_TRY(read_shapes(args, p, shape, &rank));
    KELP_TRY(check_parameters(args, p));
    kelp_dtype dtype = KELP_F32;
    if (at_place(args, places->y_scale) != NULL) {
        dtype = args->inputs[0]->dtype;
        KELP_TRY(kelp_quant_check(args, dtype, places->y_scale, places->y_zero));
        KELP_TRY(kelp_ops_scratch(args, p->m * p->n, sizeof(float), &p->y_wide));
    }
    KELP_TRY(kelp_ops_scratch(args, p->batch * p->m * p->k, sizeof(float), &p->a_wide));
    if (state == NULL)
        KELP_TRY(kelp_ops_scratch(args, kelp_tensor_elements(args->inputs[places->b]),
                                  sizeof(float), &p->b_wide));
    KELP_TRY(kelp_ops_scratch(args, p->batch, sizeof(kelp_gemm), &p->jobs));
    return kelp_ops_set(args, 0, dtype, rank, shape);
}

/* ---- invoke ---- */
static float *at_offset(const kelp_op_args *args, size_t offset) {
    return (float *)(void *)((char *)args->scratch + offset);
}

/* A float matrix to 256 steps between its least and most, zero among them. */
static float quantize_all(const float *x, int64_t count, float *to) {
    float least = 0, most = 0;
    for (int64_t i = 0; i < count; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
    }
    float scale = most == least ? 1.0f : (most - least) / 255.0f;
    float zero = KELP_QUANT_ROUND(-least / scale);
    zero = zero > 255.0f ? 255.0f : zero;
    for (int64_t i = 0; i < count; i++) {
        float v = KELP_QUANT_ROUND(x[i] / scale) + zero;
        v = v < 0.0f ? 0.0f : v;
        to[i] = (v > 255.0f ? 255.0f : v) - zero;
    }
    return scale;
}

static void make_a(const kelp_op_args *args, product_plan *p) {
    const input_places *places = &all_places[p->kind];
    const kelp_tensor *a = args->inputs[0];
    float *to = at_offset(args, p->a_wide);
    if (p->kind == DYNAMIC) {
        p->a_scale = quantize_all(a->data, kelp_tensor_elements(a), to);
        return;
    }
    kelp_quant q = kelp_quant_read(args, a->dtype, places->a_scale, places->a_zero);
    p->a_scale = q.scale;
    if (p->turn_a)
        subtract(a, 0, p->m, p->k, true, at_place(args, places->a_zero), to);
    else
        for (int64_t i = 0; i < kelp_tensor_elements(a); i++)
            to[i] = (float)(kelp_quant_get(a, i) - q.zero);
}

/* Scales, bias and, when wanted, the way back to bytes. */
static void finish_rows(void *userp, int64_t begin, int64_t end, int worker) {
    const product_plan *p = userp;
    const input_places *places = &all_places[p->kind];
    const kelp_tensor *bias = at_place(p->args, places->bias);
    const kelp_tensor *scales = p->args->inputs[places->b_scale];
    bool many = kelp_tensor_elements(scales) > 1;
    bool matrix = bias != NULL && kelp_tensor_elements(bias) != p->n;
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = 0; j < p->n; j++) {
            float *y = p->y + i * p->n + j;
            float scale = p->alpha * p->a_scale * ((const float *)scales->data)[many ? j : 0];
            if (bias != NULL && p->kind == GEMM)
                *y = (*y + (float)((const int32_t *)bias->data)[matrix ? i * p->n + j : j]) * scale;
            else
                *y = *y * scale + (bias != NULL ? ((const float *)bias->data)[j] : 0.0f);
            if (p->args->outputs[0]->dtype != KELP_F32)
                ((uint8_t *)p->args->outputs[0]->data)[i * p->n + j] =
                    kelp_quant_byte(&p->out, *y / p->out.scale);
        }
}

static kelp_status *product_invoke(const void *state, kelp_op_args *args) {
    product_plan *p = args->plan;
    const input_places *places = &all_places[p->kind];
    const product_state *s = state;
    const kelp_tensor *b = args->inputs[places->b];
    bool bytes = args->outputs[0]->dtype != KELP_F32;
    kelp_gemm *jobs = (kelp_gemm *)(void *)((char *)args->scratch + p->jobs);
    p->args = args;
    p->alpha = p->kind == GEMM ? kelp_node_attr_f32(args->node, "alpha", 1.0f) : 1.0f;
    p->y = bytes ? at_offset(args, p->y_wide) : args->outputs[0]->data;
    if (bytes)
        p->out = kelp_quant_read(args, args->outputs[0]->dtype, places->y_scale, places->y_zero);
    make_a(args, p);
    for (int64_t i = 0; i < p->batch; i++) {
        jobs[i] = (kelp_gemm){.a = at_offset(args, p->a_wide) + i * p->m * p->k,
                              .c = p->y + i * p->m * p->n,
                              .m = p->m,
                              .n = p->n,
                              .k = p->k,
                              .lda = p->k,
                              .ldb = p->n,
                              .ldc = p->n,
                              .packed = s != NULL ? s->packed : NULL};
        if (s != NULL)
            continue;
        float *wide = at_offset(args, p->b_wide) + i * p->k * p->n;
        subtract(b, i * p->k * p->n, p->k, p->n, p->turn_b, at_place(args, places->b_zero), wide);
        jobs[i].b = wide;
    }
    kelp_gemm_run(args->env, jobs, p->batch);
    kelp_op_parallel(args->env, p->batch * p->m, KELP_OPS_GRAIN / KELP_MAX((int64_t)1, p->n) + 1,
                     finish_rows, p);
    return NULL;
}

#define PRODUCT_KERNEL(name)                                                      \
    const kelp_op_kernel kelp_op_##name = {.struct_size = sizeof(kelp_op_kernel), \
                                           .flags = KELP_OP_STATE_OPTIONAL,       \
                                           .plan_bytes = sizeof(product_plan),    \
                                           .create = product_create,              \
                                           .destroy = product_destroy,            \
                                           .reshape = product_reshape,            \
                                           .invoke = product_invoke}
PRODUCT_KERNEL(MsMatMulIntegerToFloat);
PRODUCT_KERNEL(MsDynamicQuantizeMatMul);
PRODUCT_KERNEL(MsQGemm);
