/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of an 8-bit GEMM. With a' = a - za and b' = b - zb,
 *   Σ a' b' = Σ a b - za · Σ b' - zb · Σ a,
 * so that the micro-kernels multiply unmodified bytes. Source: Jacob et al., "Quantization and
 * Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference", 2018, section 2.3.
 */
#include "cpu/kernels/gemm/gemm_int8.h"

#include "base/assert.h"
#include "cpu/kernels/layout/layout_kernels.h"
#include "cpu/kernels/tuning.h"

#include <string.h>

#define COLUMNS KELP_INT8_COLUMNS
#define FEW_ROWS 16

static size_t element_bytes(kelp_dtype dtype) {
    return kelp_dtype_bits(dtype) / 8;
}

static int64_t panel_bytes(int64_t k) {
    return kelp_round_up(k, KELP_INT8_DEPTH) * COLUMNS;
}

/* ---- B ---- */
bool kelp_int8_weights_size(int64_t k, int64_t n, size_t *out_bytes) {
    size_t panels = (size_t)kelp_round_up(n, COLUMNS) / COLUMNS, bytes, more;
    if (k < 0 || n < 0 || k > INT64_MAX / 32 || n > INT64_MAX / 32)
        return false;
    return kelp_size_mul(panels, (size_t)panel_bytes(k), &bytes) &&
           kelp_size_mul(panels, 2 * COLUMNS * sizeof(int32_t), &more) &&
           kelp_size_add(bytes, more, out_bytes);
}

/* Packs a panel of a transposed matrix: some rows at a time are transposed first. */
static void pack_transposed(const kelp_int8_kernels *kernels, const kelp_int8_matrix *b,
                            int64_t column, int64_t columns, uint8_t flip, int8_t *panel,
                            int32_t *sums) {
    uint8_t rows[256 * COLUMNS];
    const uint8_t *from = (const uint8_t *)b->data + column * b->column_stride;
    for (int64_t p = 0; p < b->k; p += 256) {
        int64_t count = KELP_MIN((int64_t)256, b->k - p);
        if (b->row_stride == 1) {
            kernels->transpose(rows, COLUMNS, from + p, b->column_stride, columns, count, 0);
        } else {
            for (int64_t i = 0; i < count; i++)
                for (int64_t j = 0; j < columns; j++)
                    rows[i * COLUMNS + j] = from[(p + i) * b->row_stride + j * b->column_stride];
        }
        kernels->pack(rows, COLUMNS, count, columns, flip, panel + p * COLUMNS, sums);
    }
}

void kelp_int8_weights_pack(const kelp_int8_kernels *kernels, const kelp_int8_matrix *b,
                            void *memory, kelp_int8_weights *out) {
    int64_t panels = kelp_round_up(b->n, COLUMNS) / COLUMNS, bytes = panel_bytes(b->k);
    int8_t *to = memory;
    int32_t *balance = (int32_t *)(void *)(to + panels * bytes),
            *zeros = balance + panels * COLUMNS;
    uint8_t flip = b->dtype == KELP_U8 ? 0x80 : 0;
    bool many = b->zero != NULL && kelp_tensor_elements(b->zero) > 1;
    if (panels > 0)
        memset(balance, 0, (size_t)panels * 2 * COLUMNS * sizeof *balance);
    for (int64_t column = 0; column < b->n; column += COLUMNS, to += bytes) {
        int64_t columns = KELP_MIN((int64_t)COLUMNS, b->n - column);
        if (b->column_stride == 1)
            kernels->pack((const uint8_t *)b->data + column, b->row_stride, b->k, columns, flip, to,
                          balance + column);
        else
            pack_transposed(kernels, b, column, columns, flip, to, balance + column);
        for (int64_t j = column; j < column + columns; j++) {
            int64_t at = b->zero_first + (many ? j : 0);
            int32_t zero = b->zero == NULL             ? 0
                           : b->zero->dtype == KELP_I8 ? ((const int8_t *)b->zero->data)[at]
                                                       : ((const uint8_t *)b->zero->data)[at];
            zeros[j] = zero - flip;
            /* as unsigned: the sums of long rows wrap around, and so do those of the GEMM */
            balance[j] = (int32_t)((uint32_t)balance[j] - (uint32_t)b->k * (uint32_t)zeros[j]);
        }
    }
    kelp_int8_weights_view(b->k, b->n, memory, out);
}

void kelp_int8_weights_view(int64_t k, int64_t n, const void *memory, kelp_int8_weights *out) {
    int64_t panels = kelp_round_up(n, COLUMNS) / COLUMNS;
    const int8_t *bytes = memory;
    const int32_t *balance = (const int32_t *)(const void *)(bytes + panels * panel_bytes(k)),
                  *zeros = balance + panels * COLUMNS;
    bool any = false;
    for (int64_t j = 0; j < n; j++)
        any = any || zeros[j] != zeros[0];
    *out = (kelp_int8_weights){k, n, memory, balance, any ? zeros : NULL, n > 0 ? zeros[0] : 0};
}

/* ---- blocks ---- */
static void *row_of(const kelp_int8_gemm *g, int64_t row, int64_t column) {
    size_t each = element_bytes(g->finish.dtype);
    return (char *)g->y + (size_t)(row * g->ldy + column) * each;
}

/* Returns what A's zero point subtracts from each column of a block, if all rows have the same. */
static const int32_t *offsets_of(const kelp_int8_gemm *g, int64_t column, int64_t columns,
                                 int32_t *room) {
    if (g->a_zeros != NULL || g->a_zero == 0)
        return NULL;
    for (int64_t j = 0; j < columns; j++)
        room[j] = (int32_t)((uint32_t)g->b.balance[column + j] * (uint32_t)g->a_zero);
    return room;
}

static void finish_row(const kelp_int8_kernels *kernels, const kelp_int8_gemm *g, int64_t row,
                       int32_t row_sum, int64_t column, const int32_t *offset, const int32_t *sums,
                       int64_t columns, void *to) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const kelp_int8_finish *f = &g->finish;
    float line[KELP_INT8_BLOCK_COLUMNS];
    int32_t room[KELP_INT8_BLOCK_COLUMNS];
    kelp_int8_row r = {.sums = sums,
                       .count = columns,
                       .offset = offset,
                       .shift = (int32_t)((uint32_t)g->b.zero * (uint32_t)row_sum),
                       .row_sum = row_sum,
                       .b_zero = g->b.zeros != NULL ? g->b.zeros + column : NULL,
                       .scale = f->scale != NULL ? f->scale + column : NULL,
                       .bias = f->bias != NULL ? f->bias + column : NULL,
                       .addend = f->addend != NULL ? f->addend + column : NULL,
                       .step = f->step,
                       .low = f->low,
                       .high = f->high};
    if (r.b_zero != NULL)
        r.shift = 0;
    if (g->a_zeros != NULL) {
        kelp_int8_gemm one = *g;
        one.a_zero = g->a_zeros[row];
        one.a_zeros = NULL;
        r.offset = offsets_of(&one, column, columns, room);
    }
    if (f->dtype == KELP_I32) {
        kernels->to_ints(&r, to);
        return;
    }
    if (f->direct) {
        kernels->to_bytes(&r, f->out_zero, to);
        return;
    }
    float *floats = f->dtype == KELP_F32 ? to : line;
    kernels->to_floats(&r, floats);
    if (f->act != KELP_ACT_NONE)
        elementwise->act[f->act](floats, floats, columns);
    if (f->dtype != KELP_F32)
        kernels->quantize(&(kelp_quantize_run){.x = line,
                                               .y = to,
                                               .count = columns,
                                               .dtype = f->dtype,
                                               .scale = &f->out_scale,
                                               .zero = &f->out_zero});
}

static void transpose_block(const kelp_int8_kernels *kernels, const kelp_int8_gemm *g, int64_t row,
                            int64_t column, int64_t rows, int64_t columns, const float *from) {
    const kelp_layout_kernels *layout = kelp_layout_kernels_get();
    if (element_bytes(g->finish.dtype) == 1)
        kernels->transpose(row_of(g, column, row), g->ldy, (const uint8_t *)from, columns, rows,
                           columns, 0);
    else
        layout->transpose(row_of(g, column, row), g->ldy, from, columns, rows, columns);
}

void kelp_int8_gemm_block(const kelp_int8_kernels *kernels, const kelp_int8_gemm *g, int64_t row,
                          int64_t column, int64_t rows, int64_t columns) {
    int32_t sums[12 * KELP_INT8_BLOCK_COLUMNS], row_sums[12] = {0};
    int32_t room[KELP_INT8_BLOCK_COLUMNS];
    const int32_t *offset = offsets_of(g, column, columns, room);
    float transposed[KELP_INT8_BLOCK_ROWS * KELP_INT8_TRANSPOSED_COLUMNS];
    size_t each = element_bytes(g->finish.dtype);
    int64_t width = kelp_round_up(columns, COLUMNS);
    int64_t count = kelp_divide_up(rows, kernels->tile_rows);
    int64_t height = count > 0 ? kelp_divide_up(rows, count) : 1;
    for (int64_t first = 0; first < rows; first += height) {
        kelp_int8_block block = {.a = g->a + (row + first) * g->lda,
                                 .b = g->b.panels + column / COLUMNS * panel_bytes(g->b.k),
                                 .c = sums,
                                 .lda = g->lda,
                                 .ldc = width,
                                 .m = KELP_MIN(height, rows - first),
                                 .panels = width / COLUMNS,
                                 .k = g->b.k};
        kernels->gemm_block(&block);
        if (g->b.zeros != NULL || g->b.zero != 0)
            kernels->row_sums(block.a, g->lda, block.m, g->b.k, row_sums);
        for (int64_t i = 0; i < block.m; i++) {
            void *to = g->transposed ? (char *)transposed + (size_t)((first + i) * columns) * each
                                     : row_of(g, row + first + i, column);
            finish_row(kernels, g, row + first + i, row_sums[i], column, offset, sums + i * width,
                       columns, to);
        }
    }
    if (g->transposed)
        transpose_block(kernels, g, row, column, rows, columns, transposed);
}

void kelp_int8_gemm_finish(const kelp_int8_kernels *kernels, const kelp_int8_gemm *g, int64_t row,
                           int64_t column, int64_t rows, int64_t columns, const int32_t *sums) {
    float transposed[KELP_INT8_BLOCK_ROWS * KELP_INT8_TRANSPOSED_COLUMNS];
    int32_t room[KELP_INT8_BLOCK_COLUMNS];
    const int32_t *offset = offsets_of(g, column, columns, room);
    size_t each = element_bytes(g->finish.dtype);
    for (int64_t i = 0; i < rows; i++)
        finish_row(kernels, g, row + i, 0, column, offset, sums + i * columns, columns,
                   (char *)transposed + (size_t)(i * columns) * each);
    transpose_block(kernels, g, row, column, rows, columns, transposed);
}

/* ---- threads ---- */
typedef struct job_list {
    const kelp_int8_kernels *kernels;
    const kelp_int8_gemm *jobs;
    int64_t rows, columns, down, across; /* of blocks; the jobs have one shape */
} job_list;

static void run_range(void *userp, int64_t begin, int64_t end, int worker) {
    const job_list *list = userp;
    int64_t each = list->down * list->across;
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        const kelp_int8_gemm *g = &list->jobs[at / each];
        int64_t block = at % each;
        int64_t row = block % list->down * list->rows, column = block / list->down * list->columns;
        kelp_int8_gemm_block(list->kernels, g, row, column, KELP_MIN(list->rows, g->m - row),
                             KELP_MIN(list->columns, g->b.n - column));
    }
}

static void run_blocks(const kelp_op_env *env, const kelp_int8_gemm *jobs, int64_t count,
                       int64_t columns) {
    if (count == 0 || jobs[0].m == 0 || jobs[0].b.n == 0)
        return;
    KELP_ASSERT(!jobs[0].transposed && columns <= KELP_INT8_BLOCK_COLUMNS);
    const kelp_int8_kernels *kernels = kelp_int8_kernels_get();
    int64_t m = jobs[0].m, limit = kelp_round_up(KELP_GEMM_ROWS, kernels->tile_rows);
    job_list list = {.kernels = kernels, .jobs = jobs, .columns = columns};
    list.down = kelp_divide_up(m, limit);
    list.rows = kelp_divide_up(m, list.down);
    list.across = kelp_divide_up(jobs[0].b.n, columns);
    int64_t blocks = list.down * list.across;
    int64_t work = m * jobs[0].b.n / blocks * KELP_MAX((int64_t)16, jobs[0].b.k);
    kelp_op_parallel(env, blocks * count, kelp_cpu_grain_of_blocks(KELP_GRAIN_NARROW_TILES, work),
                     run_range, &list);
}

/* ---- algorithms ---- */
static bool has_few_rows(const kelp_gemm_shape *shape) {
    return shape->m <= FEW_ROWS;
}

static bool is_any(const kelp_gemm_shape *shape) {
    (void)shape;
    return true;
}

static void run_flat(const kelp_op_env *env, const kelp_int8_gemm *jobs, int64_t count) {
    run_blocks(env, jobs, count, KELP_GEMM_FLAT_COLUMNS);
}

static void run(const kelp_op_env *env, const kelp_int8_gemm *jobs, int64_t count) {
    run_blocks(env, jobs, count, KELP_GEMM_COLUMNS);
}

/* In order of preference. */
static const kelp_int8_gemm_algorithm algorithms[] = {
    {"int8_gemm_few_rows", has_few_rows, run_flat},
    {"int8_gemm", is_any, run},
};

const kelp_int8_gemm_algorithm *kelp_int8_gemm_choose(const kelp_gemm_shape *shape) {
    const kelp_int8_gemm_algorithm *algorithm = algorithms;
    KELP_ASSERT(shape->m >= 0 && shape->n >= 0 && shape->k >= 0);
    while (!algorithm->is_applicable(shape)) /* the last one always is */
        algorithm++;
    return algorithm;
}

/* ---- signs ---- */
typedef struct flip_job {
    const uint8_t *from;
    uint8_t *to;
} flip_job;

static void flip_range(void *userp, int64_t begin, int64_t end, int worker) {
    const flip_job *job = userp;
    const uint8_t *from = job->from;
    uint8_t *to = job->to;
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        to[i] = from[i] ^ 0x80;
}

void kelp_int8_flip(const kelp_op_env *env, const void *from, uint8_t *to, int64_t count) {
    kelp_op_parallel(env, count, 4 * KELP_GRAIN_ELEMENTS, flip_range, &(flip_job){from, to});
}
