/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp::WeightMatMul, which passes create: float A times constant weights that stay in 8 or 16 bits
 * in memory (A, W [k, n], for integers one scale and zero point or one for each column, bias;
 * attribute activation). A slice of a panel is converted to floats in the cache and multiplied by
 * all rows. The weights need a quarter or half of the memory and bandwidth of floats.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "cpu/ops/activation.h"
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/ops/kernel.h"
#include "cpu/kernels/int8/int8_kernels.h"
#include "cpu/ops/converted.h"
#include "cpu/ops/operand.h"

#define WIDTH KELP_INT8_WIDE_COLUMNS
_Static_assert(WIDTH == KELP_HALF_COLUMNS, "both kinds of panels have the same width");
#define SLICE 192 /* rows of a panel that are converted at a time: 24 KiB */
#define ROWS 192  /* rows of A in a unit of work */

enum { A, W, SCALE, ZERO, BIAS };

typedef struct weights_state {
    int64_t k, n, panels;
    bool has_zeros;
    kelp_dtype dtype;          /* of the panels: int8, float16 or bfloat16 */
    const float *scale, *zero; /* of integers: of panels * WIDTH columns */
    const char *elements;      /* panels of [k][WIDTH] */
    kelp_op_packed packed;     /* scales, zero points and panels, in this order */
} weights_state;

typedef struct weights_plan {
    int64_t m, rows, down; /* rows of A; rows of a unit; units along the rows */
    kelp_act act;
    const kelp_op_args *args;
    const weights_state *state;
} weights_plan;

static bool is_row(const kelp_tensor *tensor, int64_t n) {
    return kelp_tensor_elements(tensor) == 1 || kelp_tensor_elements(tensor) == n;
}

static kelp_status *check_constants(const kelp_node *node) {
    const kelp_tensor *w = kelp_ops_constant(node, W), *scale = kelp_ops_constant(node, SCALE),
                      *zero = kelp_ops_constant(node, ZERO);
    if (w != NULL && w->rank == 2 && kelp_math_is_half(w->dtype) && scale == NULL && zero == NULL)
        return NULL;
    bool good = w != NULL && w->rank == 2 && (w->dtype == KELP_I8 || w->dtype == KELP_U8) &&
                scale != NULL && scale->dtype == KELP_F32 && is_row(scale, w->shape[1]);
    if (good && kelp_ops_has_input(node, ZERO))
        good = zero != NULL && zero->dtype == w->dtype && is_row(zero, w->shape[1]);
    return good ? NULL
                : KELP_ERROR(KELP_INVALID_ARGUMENT,
                             "operator 'WeightMatMul' expects constant weights [k, n] of 16-bit "
                             "floats, or of 8-bit integers with one scale and zero point, or one "
                             "for each column");
}

static bool packed_size(const weights_state *s, size_t *out) {
    size_t columns, bytes, numbers = 0;
    bool half = kelp_math_is_half(s->dtype);
    return kelp_size_mul((size_t)s->panels, WIDTH, &columns) &&
           kelp_size_mul(columns, (size_t)s->k, &bytes) &&
           kelp_size_mul(bytes, half ? sizeof(uint16_t) : 1, &bytes) &&
           (half || kelp_size_mul(columns, 2 * sizeof(float), &numbers)) &&
           kelp_size_add(bytes, numbers, out);
}

/* Packs 16-bit weights, which may be unaligned. */
static void pack_halves(const kelp_tensor *w, const weights_state *s, char *to) {
    size_t row = WIDTH * sizeof(uint16_t);
    for (int64_t panel = 0; panel < s->panels; panel++) {
        size_t size = (size_t)KELP_MIN((int64_t)WIDTH, s->n - panel * WIDTH) * sizeof(uint16_t);
        const char *from = (const char *)w->data + (size_t)panel * row;
        for (int64_t i = 0; i < s->k; i++, to += row, from += (size_t)s->n * sizeof(uint16_t)) {
            memcpy(to, from, size);
            memset(to + size, 0, row - size);
        }
    }
}

static void pack(const kelp_tensor *w, const kelp_tensor *scale, const kelp_tensor *zero,
                 const weights_state *s, float *to_scale) {
    int64_t columns = s->panels * WIDTH;
    float *to_zero = to_scale + columns;
    int8_t *to = (int8_t *)(to_zero + columns);
    uint8_t flip = w->dtype == KELP_U8 ? 0x80 : 0;
    for (int64_t j = 0; j < columns; j++) {
        to_scale[j] =
            j < s->n ? (float)kelp_ops_read_f64(scale, kelp_tensor_elements(scale) > 1 ? j : 0) : 0;
        int64_t at = zero != NULL && kelp_tensor_elements(zero) > 1 ? j : 0;
        to_zero[j] =
            zero != NULL && j < s->n ? (float)(kelp_ops_read_i64(zero, at) - flip) : (float)-flip;
    }
    for (int64_t panel = 0; panel < s->panels; panel++) {
        size_t count = (size_t)KELP_MIN((int64_t)WIDTH, s->n - panel * WIDTH);
        const uint8_t *from = (const uint8_t *)w->data + panel * WIDTH;
        for (int64_t i = 0; i < s->k; i++, to += WIDTH, from += s->n) {
            memcpy(to, from, count);
            memset(to + count, flip, WIDTH - count);
            for (int j = 0; flip != 0 && j < WIDTH; j++)
                to[j] = (int8_t)((uint8_t)to[j] ^ flip);
        }
    }
}

static kelp_status *weights_create(const kelp_node *node, const kelp_op_env *env,
                                   void **out_state) {
    const kelp_tensor *w = kelp_ops_constant(node, W), *scale = kelp_ops_constant(node, SCALE),
                      *zero = kelp_ops_constant(node, ZERO);
    kelp_allocator allocator = kelp_op_env_allocator(env);
    kelp_op_pack_site site = kelp_op_env_pack_site(env);
    kelp_op_packing packing = {.layout = "bytes/1", .inputs = 1u << W, .replaces = 1u << W};
    weights_state *s = NULL;
    void *memory = NULL;
    KELP_TRY(check_constants(node));
    KELP_TRY(KELP_NEW(allocator, weights_state, &s));
    *out_state = s;
    s->k = w->shape[0];
    s->n = w->shape[1];
    s->panels = (s->n + WIDTH - 1) / WIDTH;
    s->dtype = kelp_math_is_half(w->dtype) ? w->dtype : KELP_I8;
    if (!packed_size(s, &packing.size_bytes))
        return kelp_status_oom();
    if (s->dtype != KELP_I8)
        packing.layout = "halves/1";
    KELP_TRY(kelp_op_pack(&site, allocator, &packing, &s->packed, &memory));
    s->elements = s->packed.data;
    if (s->dtype != KELP_I8) {
        if (memory != NULL)
            pack_halves(w, s, memory);
        return NULL;
    }
    if (memory != NULL)
        pack(w, scale, zero, s, memory);
    s->scale = s->packed.data;
    s->zero = s->scale + s->panels * WIDTH;
    s->elements = (const char *)(s->zero + s->panels * WIDTH);
    for (int64_t j = 0; j < s->panels * WIDTH; j++)
        s->has_zeros = s->has_zeros || s->zero[j] != 0;
    return NULL;
}

static void weights_destroy(void *state, kelp_allocator allocator) {
    weights_state *s = state;
    if (s == NULL)
        return;
    kelp_op_unpack(&s->packed, allocator);
    kelp_free(allocator, s, sizeof *s);
}

static kelp_status *weights_reshape(const void *state, kelp_op_args *args) {
    const weights_state *s = state;
    weights_plan *p = args->plan;
    KELP_ASSERT(s != NULL); /* create requires constant weights */
    KELP_TRY(kelp_ops_check(args, s->dtype == KELP_I8 ? 3 : 2));
    const kelp_tensor *a = args->inputs[A], *bias = kelp_ops_in(args, BIAS);
    int64_t shape[KELP_MAX_RANK];
    if (a->dtype != KELP_F32)
        return kelp_ops_bad_type(args, a->dtype);
    if (a->rank < 1 || a->shape[a->rank - 1] != s->k)
        return kelp_ops_bad_shapes(args, a, args->inputs[W], "the inner dimensions differ");
    if (bias != NULL && (bias->dtype != KELP_F32 || kelp_tensor_elements(bias) != s->n))
        return kelp_ops_bad_shapes(args, args->inputs[W], bias,
                                   "expected a bias of one value for each column");
    KELP_TRY(kelp_act_read(args, &p->act));
    p->m = kelp_ops_product(a->shape, 0, a->rank - 1);
    p->down = (p->m + ROWS - 1) / ROWS;
    p->rows = p->down > 0 ? (p->m + p->down - 1) / p->down : 1;
    memcpy(shape, a->shape, sizeof a->shape);
    shape[a->rank - 1] = s->n;
    return kelp_ops_set(args, 0, KELP_F32, a->rank, shape);
}

/* Converts `depth` rows of a panel from row `k` on. */
static void widen(const weights_state *s, int64_t column, int64_t k, int64_t depth, float *slice) {
    int64_t at = column * s->k + k * WIDTH;
    if (s->dtype != KELP_I8)
        kelp_math_load(s->dtype, s->elements, at, depth * WIDTH, slice);
    else
        kelp_int8_kernels_get()->widen((const int8_t *)s->elements + at, depth, s->scale + column,
                                       s->has_zeros ? s->zero + column : NULL, slice);
}

/* Multiplies `count` columns of a panel, from `column` on, by `rows` rows from `row` on. */
static void multiply(const weights_plan *p, int64_t row, int64_t rows, int64_t column,
                     int64_t count, float *c) {
    const kelp_gemm_kernels *gemm = kelp_gemm_kernels_get();
    const weights_state *s = p->state;
    const float *a = (const float *)p->args->inputs[A]->data + row * s->k;
    float slice[SLICE * WIDTH] __attribute__((aligned(64)));
    if (s->dtype != KELP_I8 && rows <= KELP_SKINNY_ROWS) {
        gemm->skinny_half(
            &(kelp_skinny_half){.a = a,
                                .b = s->elements + (size_t)(column * s->k) * sizeof(uint16_t),
                                .c = c,
                                .lda = s->k,
                                .ldc = s->n,
                                .m = rows,
                                .n = count,
                                .k = s->k,
                                .is_bf16 = s->dtype == KELP_BF16});
        return;
    }
    for (int64_t k = 0; k < s->k || k == 0; k += SLICE) {
        int64_t depth = KELP_MIN((int64_t)SLICE, s->k - k);
        widen(s, column, k, depth, slice);
        gemm->block(&(kelp_gemm_block){.a = a + k,
                                       .b = slice,
                                       .c = c,
                                       .lda = s->k,
                                       .ldb = WIDTH,
                                       .ldc = s->n,
                                       .m = rows,
                                       .n = count,
                                       .k = depth,
                                       .accumulate = k > 0});
    }
}

/* Runs units. A unit is some rows of the columns of one panel. */
static void weights_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const weights_plan *p = userp;
    const weights_state *s = p->state;
    const kelp_tensor *bias = kelp_ops_in(p->args, BIAS);
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t column = unit / p->down * WIDTH, row = unit % p->down * p->rows;
        int64_t rows = KELP_MIN(p->rows, p->m - row),
                count = KELP_MIN((int64_t)WIDTH, s->n - column);
        float *c = (float *)p->args->outputs[0]->data + row * s->n + column;
        multiply(p, row, rows, column, count, c);
        if (bias == NULL && p->act == KELP_ACT_NONE)
            continue;
        for (int64_t i = 0; i < rows; i++)
            elementwise->finish(c + i * s->n,
                                bias != NULL ? (const float *)bias->data + column : NULL, 0.0f,
                                NULL, count, p->act);
    }
}

static kelp_status *weights_invoke(const void *state, kelp_op_args *args) {
    weights_plan *p = args->plan;
    KELP_ASSERT(state != NULL && p->rows * p->down >= p->m);
    p->args = args;
    p->state = state;
    int64_t work = WIDTH * p->state->k * (p->rows + 8);
    kelp_op_parallel(args->env, p->down * p->state->panels, kelp_cpu_grain(KELP_GRAIN_TILES, work),
                     weights_range, p);
    return NULL;
}

const kelp_op_kernel kelp_op_WeightMatMul = {.struct_size = sizeof(kelp_op_kernel),
                                             .plan_bytes = sizeof(weights_plan),
                                             .unaligned_inputs = 2,
                                             .create = weights_create,
                                             .destroy = weights_destroy,
                                             .reshape = weights_reshape,
                                             .invoke = weights_invoke};
