/* SPDX-License-Identifier: Apache-2.0 */
/*
 * com.microsoft MatMulNBits with activations of 8 bits. Rows of A are quantized in blocks of the
 * size of the weights' blocks, and multiplied by packed weights with integer dot products.
 * Source: ONNX Runtime, ContribOperators.md.
 */
#include "cpu/ops/matmul/matmul_nbits.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "cpu/kernels/nbits/nbits_int8_kernels.h"
#include "cpu/ops/converted.h"
#include "cpu/ops/operand.h"
#include "runtime/opset/env.h"
#include "tensor/real.h"

#define COLUMNS KELP_NBITS_COLUMNS
#define UNIT_ROWS \
    96 /* rows of A that are multiplied by a panel at a time: part of a second-level cache */
#define CHUNK 64     /* scales that are loaded at a time */
#define INT8_LEVEL 4 /* the value of accuracy_level that permits 8-bit activations */

typedef struct nbits_state {
    kelp_nbits shape;
    int packed_bits; /* 2 bits are packed as 4 */
    int64_t panels;
    kelp_op_packed packed; /* scales, weights and zero points of all panels, in this order */
    kelp_nbits_panel first;
} nbits_state;

/* ---- packing ---- */
typedef struct pack_job {
    const nbits_state *state;
    const kelp_tensor *b, *scales, *zeros;
    const kelp_op_env *env;
} pack_job;

static int64_t weight_bytes(const nbits_state *s) {
    return s->shape.blocks * s->shape.block * COLUMNS * s->packed_bits / 8;
}

/* Expands the 4 half bytes in the low 16 bits to bytes. */
static uint32_t expand(uint32_t halves) {
    halves = (halves | halves << 8) & 0x00ff00ff;
    return (halves | halves << 4) & 0x0f0f0f0f;
}

/* Expands the 8 elements of 2 bits in the low 16 bits to half bytes. */
static uint32_t widen(uint32_t pairs) {
    return (expand(pairs) | expand(pairs) << 2) & 0x33333333;
}

/* Packs one column of a panel. */
static void pack_weights(const nbits_state *s, const uint8_t *from, uint8_t *to) {
    int64_t groups = s->shape.blocks * s->shape.block * s->packed_bits / 32;
    for (int64_t i = 0; i < groups; i++, to += 4 * COLUMNS) {
        uint32_t word;
        if (s->shape.bits == 2) {
            uint16_t half;
            memcpy(&half, from + 2 * i, sizeof half);
            word = widen(half);
        } else {
            memcpy(&word, from + 4 * i, sizeof word);
        }
        if (s->packed_bits == 4)
            word = expand(word & 0xffff) | expand(word >> 16) << 4;
        memcpy(to, &word, sizeof word);
    }
}

static uint8_t zero_at(const pack_job *job, int64_t column, int64_t block) {
    int64_t bits = job->state->shape.bits, bit = block * bits;
    int64_t row_bytes = (job->state->shape.blocks * bits + 7) / 8;
    if (job->zeros == NULL)
        return (uint8_t)(1u << (bits - 1));
    unsigned byte = ((const uint8_t *)job->zeros->data)[column * row_bytes + bit / 8];
    return (uint8_t)(byte >> (bit % 8) & ((1u << bits) - 1));
}

static void pack_panels(void *userp, int64_t begin, int64_t end, int worker) {
    const pack_job *job = userp;
    const nbits_state *s = job->state;
    int64_t blocks = s->shape.blocks, row_bytes = blocks * s->shape.block * s->shape.bits / 8;
    (void)worker;
    for (int64_t panel = begin; panel < end; panel++) {
        int64_t at = panel * blocks * COLUMNS;
        uintptr_t weights = (uintptr_t)(s->first.weights + panel * weight_bytes(s));
        float *scales = (float *)(uintptr_t)(s->first.scales + at), line[CHUNK];
        uint8_t *zeros = (uint8_t *)(uintptr_t)(s->first.zeros + at);
        int64_t count = KELP_MIN((int64_t)COLUMNS, s->shape.n - panel * COLUMNS);
        if (count < COLUMNS) {
            memset((uint8_t *)weights, 0, (size_t)weight_bytes(s));
            memset(scales, 0, (size_t)(blocks * COLUMNS) * sizeof *scales);
            memset(zeros, 0, (size_t)(blocks * COLUMNS));
        }
        for (int64_t j = 0; j < count; j++) {
            int64_t column = panel * COLUMNS + j;
            pack_weights(s, (const uint8_t *)job->b->data + column * row_bytes,
                         (uint8_t *)weights + 4 * j);
            for (int64_t b = 0; b < blocks; b++) {
                if (b % CHUNK == 0)
                    kelp_math_load_tensor(job->scales, column * blocks + b,
                                          KELP_MIN((int64_t)CHUNK, blocks - b), line);
                scales[b * COLUMNS + j] = line[b % CHUNK];
                zeros[b * COLUMNS + j] = zero_at(job, column, b);
            }
        }
    }
    kelp_op_env_release_pages(job->env);
}

static bool packed_size(const nbits_state *s, size_t *out) {
    size_t weights, elements;
    return kelp_size_mul((size_t)weight_bytes(s), (size_t)s->panels, &weights) &&
           kelp_size_mul((size_t)(s->shape.blocks * COLUMNS), (size_t)s->panels, &elements) &&
           kelp_size_mul(elements, sizeof(float) + 1, &elements) &&
           kelp_size_add(weights, elements, out);
}

static void set_views(nbits_state *s) {
    int64_t elements = s->panels * s->shape.blocks * COLUMNS;
    s->first.scales = s->packed.data;
    s->first.weights = (const uint8_t *)(s->first.scales + elements);
    s->first.zeros = s->first.weights + s->panels * weight_bytes(s);
}

/* ---- create ---- */
/* Returns true if the constants have the types and sizes that packing reads. */
static bool is_packable(const kelp_node *node, const kelp_nbits *shape) {
    const kelp_tensor *b = kelp_ops_constant(node, KELP_NBITS_B),
                      *scales = kelp_ops_constant(node, KELP_NBITS_SCALES),
                      *zeros = kelp_ops_constant(node, KELP_NBITS_ZEROS);
    int64_t blocks = shape->n * shape->blocks;
    if (kelp_ops_has_input(node, KELP_NBITS_GROUPS) || b == NULL || scales == NULL ||
        shape->block > KELP_NBITS_MAX_BLOCK)
        return false;
    if (kelp_ops_has_input(node, KELP_NBITS_ZEROS) &&
        (zeros == NULL || zeros->dtype != KELP_U8 ||
         kelp_tensor_elements(zeros) != shape->n * ((shape->blocks * shape->bits + 7) / 8)))
        return false;
    return b->dtype == KELP_U8 &&
           kelp_tensor_elements(b) == blocks * (shape->block * shape->bits / 8) &&
           (scales->dtype == KELP_F32 || scales->dtype == KELP_F16 || scales->dtype == KELP_BF16) &&
           kelp_tensor_elements(scales) == blocks;
}

kelp_status *kelp_nbits_int8_create(const kelp_node *node, const kelp_op_env *env,
                                    void **out_state) {
    kelp_allocator allocator = kelp_op_env_allocator(env);
    kelp_op_pack_site site = kelp_op_env_pack_site(env);
    uint32_t constants = 1u << KELP_NBITS_B | 1u << KELP_NBITS_SCALES;
    kelp_nbits shape;
    nbits_state *s = NULL;
    void *memory = NULL;
    if (kelp_node_attr_i64(node, "accuracy_level", 0) != INT8_LEVEL)
        return NULL;
    KELP_TRY(kelp_nbits_read(node, &shape));
    if (!is_packable(node, &shape))
        return NULL;
    KELP_TRY(KELP_NEW(allocator, nbits_state, &s));
    *out_state = s;
    s->shape = shape;
    s->packed_bits = shape.bits == 8 ? 8 : 4;
    s->panels = (shape.n + COLUMNS - 1) / COLUMNS;
    if (kelp_ops_has_input(node, KELP_NBITS_ZEROS))
        constants |= 1u << KELP_NBITS_ZEROS;
    kelp_op_packing packing = {.layout = "nbits/1", .inputs = constants, .replaces = constants};
    if (!packed_size(s, &packing.size_bytes))
        return kelp_status_oom();
    KELP_TRY(kelp_op_pack(&site, allocator, &packing, &s->packed, &memory));
    set_views(s);
    if (memory == NULL)
        return NULL;
    pack_job job = {.state = s,
                    .b = kelp_ops_constant(node, KELP_NBITS_B),
                    .scales = kelp_ops_constant(node, KELP_NBITS_SCALES),
                    .zeros = kelp_ops_constant(node, KELP_NBITS_ZEROS),
                    .env = env};
    kelp_op_parallel(env, s->panels,
                     kelp_cpu_grain(KELP_GRAIN_TRANSPOSE, shape.blocks * shape.block * COLUMNS / 8),
                     pack_panels, &job);
    return NULL;
}

void kelp_nbits_int8_destroy(void *state, kelp_allocator allocator) {
    nbits_state *s = state;
    if (s == NULL)
        return;
    kelp_op_unpack(&s->packed, allocator);
    kelp_free(allocator, s, sizeof *s);
}

/* ---- reshape ---- */
kelp_status *kelp_nbits_int8_reshape(const void *state, kelp_op_args *args) {
    const nbits_state *s = state;
    kelp_nbits_int8_plan *p = args->plan;
    KELP_TRY(kelp_ops_check(args, 3));
    const kelp_tensor *a = args->inputs[KELP_NBITS_A], *bias = kelp_ops_in(args, KELP_NBITS_BIAS);
    int64_t shape[KELP_MAX_RANK], blocks, down;
    if (a->dtype != args->inputs[KELP_NBITS_SCALES]->dtype)
        return kelp_ops_bad_type(args, a->dtype);
    if (a->rank < 1 || a->shape[a->rank - 1] != s->shape.k)
        return kelp_ops_bad_shapes(args, a, args->inputs[KELP_NBITS_B],
                                   "the last dimension of A must be K");
    if (bias != NULL && (bias->dtype != a->dtype || kelp_tensor_elements(bias) != s->shape.n))
        return kelp_ops_bad_shapes(args, args->inputs[KELP_NBITS_B], bias,
                                   "expected a bias of N values");
    p->m = kelp_ops_product(a->shape, 0, a->rank - 1);
    down = KELP_MAX((int64_t)1, (p->m + UNIT_ROWS - 1) / UNIT_ROWS);
    p->rows = KELP_MAX((int64_t)1, (p->m + down - 1) / down);
    if (!kelp_i64_mul(p->m, s->shape.blocks, &blocks))
        return kelp_ops_bad_shapes(args, a, args->inputs[KELP_NBITS_B], "A is too large");
    KELP_TRY(kelp_ops_scratch(args, blocks, (size_t)s->shape.block, &p->bytes));
    KELP_TRY(kelp_ops_scratch(args, blocks, sizeof(float), &p->scales));
    KELP_TRY(kelp_ops_scratch(args, blocks, sizeof(float), &p->sums));
    KELP_TRY(kelp_ops_plan_f32(args, a, &p->floats));
    KELP_TRY(kelp_ops_plan_f32(args, bias, &p->bias));
    memcpy(shape, a->shape, sizeof shape);
    shape[a->rank - 1] = s->shape.n;
    KELP_TRY(kelp_ops_set(args, 0, a->dtype, a->rank, shape));
    return kelp_ops_plan_f32(args, args->outputs[0], &p->result);
}

/* ---- invoke ---- */
static void quantize_rows(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_nbits_int8_kernels *kernels = kelp_nbits_int8_kernels_get();
    const kelp_nbits_int8_plan *p = userp;
    const kelp_nbits *shape = &((const nbits_state *)p->state)->shape;
    int8_t *bytes = kelp_ops_scratch_at(p->args, p->bytes);
    float *scales = kelp_ops_scratch_at(p->args, p->scales),
          *sums = kelp_ops_scratch_at(p->args, p->sums);
    (void)worker;
    for (int64_t row = begin; row < end; row++)
        kernels->quantize(p->a + row * shape->k, shape->k, shape->block,
                          bytes + row * shape->blocks * shape->block, scales + row * shape->blocks,
                          sums + row * shape->blocks);
}

/* Runs units. A unit is some rows of A and a panel; consecutive units share the rows. */
static void multiply_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_nbits_int8_kernels *kernels = kelp_nbits_int8_kernels_get();
    const kelp_nbits_int8_plan *p = userp;
    const nbits_state *s = p->state;
    const kelp_nbits *shape = &s->shape;
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t panel = unit % s->panels, row = unit / s->panels * p->rows;
        int64_t elements = panel * shape->blocks * COLUMNS;
        kernels->multiply(&(kelp_nbits_block){
            .a = (const int8_t *)kelp_ops_scratch_at(p->args, p->bytes) +
                 row * shape->blocks * shape->block,
            .a_scales =
                (const float *)kelp_ops_scratch_at(p->args, p->scales) + row * shape->blocks,
            .a_sums = (const float *)kelp_ops_scratch_at(p->args, p->sums) + row * shape->blocks,
            .b = {.weights = s->first.weights + panel * weight_bytes(s),
                  .zeros = s->first.zeros + elements,
                  .scales = s->first.scales + elements},
            .bias = p->row_bias != NULL ? p->row_bias + panel * COLUMNS : NULL,
            .c = p->c + row * shape->n + panel * COLUMNS,
            .ldc = shape->n,
            .rows = KELP_MIN(p->rows, p->m - row),
            .columns = KELP_MIN((int64_t)COLUMNS, shape->n - panel * COLUMNS),
            .blocks = shape->blocks,
            .block = shape->block,
            .bits = s->packed_bits});
    }
}

kelp_status *kelp_nbits_int8_invoke(const void *state, kelp_op_args *args) {
    const nbits_state *s = state;
    kelp_nbits_int8_plan *p = args->plan;
    kelp_tensor *y = args->outputs[0];
    KELP_ASSERT(p->rows >= 1);
    p->args = args;
    p->state = s;
    p->a = kelp_ops_get_f32(args, args->inputs[KELP_NBITS_A], p->floats);
    p->row_bias = kelp_ops_get_f32(args, kelp_ops_in(args, KELP_NBITS_BIAS), p->bias);
    p->c = y->dtype == KELP_F32 ? y->data : kelp_ops_scratch_at(args, p->result);
    int64_t depth = s->shape.blocks * s->shape.block, down = (p->m + p->rows - 1) / p->rows;
    kelp_op_parallel(args->env, p->m, kelp_cpu_grain(KELP_GRAIN_ELEMENTS, depth), quantize_rows, p);
    kelp_op_parallel(args->env, down * s->panels,
                     kelp_cpu_grain(KELP_GRAIN_BITS_INT8, depth * COLUMNS * (p->rows + 3)),
                     multiply_range, p);
    if (y->dtype != KELP_F32)
        kelp_ops_store_f32(args->env, p->c, y);
    return NULL;
}
