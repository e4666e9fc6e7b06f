/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bfloat16 GEMM in blocks: each thread takes a block of C, rounds the rows of A that it needs for
 * each slice of k, multiplies, and finishes its rows at the end. Source: Goto and van de Geijn,
 * "Anatomy of High-Performance Matrix Multiplication", 2008.
 */
#include "cpu/kernels/gemm/gemm_bf16.h"

#include "base/assert.h"
#include "cpu/kernels/tuning.h"

#include <string.h>

#define SLICE KELP_GEMM_BF16_PAIRS
#define BLOCK_ROWS KELP_GEMM_BF16_ROWS
#define FEW_ROWS 3

typedef struct blocking blocking;
struct blocking {
    void (*run_block)(const blocking *all, int64_t row, int64_t column, kelp_bf16_pair *rows_of_a);
    const kelp_bf16_kernels *kernels;
    const kelp_bf16_gemm *job;
    int64_t rows, columns, down, across;
    int64_t scratch; /* pairs of a worker */
};

static int64_t pairs_of(int64_t k) {
    return (k + 1) / 2;
}

/* ---- layout of B ---- */
bool kelp_bf16_packed_size(int64_t k, int64_t n, size_t *out_pairs) {
    return kelp_size_mul((size_t)pairs_of(k), (size_t)kelp_round_up(n, KELP_BF16_COLUMNS),
                         out_pairs);
}

void kelp_bf16_pack(const kelp_bf16_kernels *kernels, const void *b, int64_t stride, int64_t k,
                    int64_t n, kelp_bf16_pair *out) {
    const kelp_float_u *from = b;
    for (int64_t column = 0; column < n; column += KELP_BF16_COLUMNS) {
        int64_t count = KELP_MIN((int64_t)KELP_BF16_COLUMNS, n - column);
        for (int64_t row = 0; row < k; row += 2, out += KELP_BF16_COLUMNS) {
            const kelp_float_u *even = from + row * stride + column;
            kernels->pairs(even, row + 1 < k ? even + stride : NULL, 0, 1, 1, count, out, 0);
            memset(out + count, 0, (size_t)(KELP_BF16_COLUMNS - count) * sizeof *out);
        }
    }
}

void kelp_bf16_pack_transposed(const kelp_bf16_kernels *kernels, const void *b, int64_t stride,
                               int64_t k, int64_t n, kelp_bf16_pair *out) {
    const kelp_float_u *from = b;
    kelp_bf16_pair row[64];
    int64_t depth = pairs_of(k);
    for (int64_t column = 0; column < n; column += KELP_BF16_COLUMNS) {
        int64_t count = KELP_MIN((int64_t)KELP_BF16_COLUMNS, n - column);
        if (count < KELP_BF16_COLUMNS)
            memset(out, 0, (size_t)(depth * KELP_BF16_COLUMNS) * sizeof *out);
        /* some rows of the panel at a time, which stay in cache over the columns */
        for (int64_t first = 0; first < depth; first += 64) {
            int64_t rows = KELP_MIN((int64_t)64, depth - first);
            for (int64_t j = 0; j < count; j++) {
                kernels->narrow(from + (column + j) * stride + 2 * first,
                                KELP_MIN(2 * rows, k - 2 * first), row);
                for (int64_t r = 0; r < rows; r++)
                    out[(first + r) * KELP_BF16_COLUMNS + j] = row[r];
            }
        }
        out += depth * KELP_BF16_COLUMNS;
    }
}

/* ---- run ---- */
int64_t kelp_bf16_gemm_scratch(int64_t m, int64_t k) {
    return kelp_round_up(KELP_MIN(m, (int64_t)BLOCK_ROWS), KELP_BF16_ROWS) *
           kelp_bf16_row_step(KELP_MIN(pairs_of(k), (int64_t)SLICE));
}

/* Multiplies a slice that is the whole depth, and finishes the results in the registers. */
static void multiply_whole(const blocking *all, const kelp_bf16_pair *a, int64_t lda, int64_t rows,
                           int64_t column, int64_t columns, float *c) {
    static const int64_t none = 0;
    const kelp_bf16_gemm *g = all->job;
    for (int64_t j = 0; j < columns; j += KELP_BF16_COLUMNS)
        all->kernels->pixels(
            &(kelp_bf16_pixels){.a = (const uint16_t *)(const void *)a,
                                .b = g->panels + (column + j) * pairs_of(g->k),
                                .pixel = 2 * lda,
                                .m = rows,
                                .n = KELP_MIN((int64_t)KELP_BF16_COLUMNS, columns - j),
                                .steps = pairs_of(g->k),
                                .taps = 1,
                                .tap = &none,
                                .bias = g->bias != NULL ? g->bias + column + j : NULL,
                                .c_step = g->ldc,
                                .relu = g->act == KELP_ACT_RELU,
                                .c = c + j});
}

/* Rounds `pairs` pairs of `rows` rows of A from pair k on. */
static void round_rows(const blocking *all, int64_t row, int64_t rows, int64_t k, int64_t pairs,
                       int64_t step, kelp_bf16_pair *to) {
    const kelp_bf16_gemm *g = all->job;
    const kelp_float_u *a = (const kelp_float_u *)g->a + row * g->lda;
    for (int64_t i = 0; i < rows; i++)
        all->kernels->narrow(a + i * g->lda + 2 * k, KELP_MIN(2 * pairs, g->k - 2 * k),
                             to + i * step);
}

static void finish_block(const kelp_bf16_gemm *g, int64_t row, int64_t column, int64_t rows,
                         int64_t columns) {
    if (g->bias == NULL && g->residual == NULL && g->act == KELP_ACT_NONE)
        return;
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    for (int64_t i = row; i < row + rows; i++)
        elementwise->finish(g->c + i * g->ldc + column, g->bias != NULL ? g->bias + column : NULL,
                            0.0f, g->residual != NULL ? g->residual + i * g->ldc + column : NULL,
                            columns, g->act);
}

/* Computes a block of C in slices of the depth. */
static void run_sliced(const blocking *all, int64_t row, int64_t column,
                       kelp_bf16_pair *rows_of_a) {
    const kelp_bf16_gemm *g = all->job;
    float *c = g->c + row * g->ldc + column;
    int64_t rows = KELP_MIN(all->rows, g->m - row), columns = KELP_MIN(all->columns, g->n - column);
    int64_t depth = pairs_of(g->k), lda = kelp_bf16_row_step(KELP_MIN(depth, (int64_t)SLICE));
    int64_t width = rows <= FEW_ROWS ? columns : KELP_BF16_COLUMNS; /* several panels at a time */
    for (int64_t k = 0; k < depth || k == 0; k += SLICE) {
        int64_t slice = KELP_MIN((int64_t)SLICE, depth - k);
        round_rows(all, row, rows, k, slice, lda, rows_of_a);
        for (int64_t j = 0; j < columns; j += width)
            all->kernels->gemm_block(
                &(kelp_bf16_block){.a = rows_of_a,
                                   .b = g->panels + (column + j) * depth + k * KELP_BF16_COLUMNS,
                                   .c = c + j,
                                   .lda = lda,
                                   .ldc = g->ldc,
                                   .m = rows,
                                   .n = KELP_MIN(width, columns - j),
                                   .panel = depth * KELP_BF16_COLUMNS,
                                   .steps = slice,
                                   .step = KELP_BF16_COLUMNS,
                                   .taps = 1,
                                   .accumulate = k > 0});
    }
    finish_block(g, row, column, rows, columns);
}

/* Computes a block of C whose depth is one slice. */
static void run_one_slice(const blocking *all, int64_t row, int64_t column,
                          kelp_bf16_pair *rows_of_a) {
    const kelp_bf16_gemm *g = all->job;
    int64_t rows = KELP_MIN(all->rows, g->m - row), columns = KELP_MIN(all->columns, g->n - column);
    int64_t depth = pairs_of(g->k), lda = kelp_bf16_row_step(depth);
    KELP_ASSERT(depth > 0 && depth <= SLICE && g->residual == NULL);
    if (rows <= FEW_ROWS) { /* the last rows */
        run_sliced(all, row, column, rows_of_a);
        return;
    }
    round_rows(all, row, rows, 0, depth, lda, rows_of_a);
    multiply_whole(all, rows_of_a, lda, rows, column, columns, g->c + row * g->ldc + column);
}

static void run_range(void *userp, int64_t begin, int64_t end, int worker) {
    const blocking *all = userp;
    kelp_bf16_pair *scratch = all->job->scratch + worker * all->scratch;
    for (int64_t at = begin; at < end; at++) /* down first: neighbours share the panels of B */
        all->run_block(all, at % all->down * all->rows, at / all->down * all->columns, scratch);
}

/* Chooses the blocks: smaller ones if some threads would have none. */
static void choose(blocking *all, int64_t threads) {
    const kelp_bf16_gemm *g = all->job;
    int64_t high = kelp_divide_up(g->m, BLOCK_ROWS);
    all->rows = kelp_round_up(kelp_divide_up(g->m, high), KELP_BF16_ROWS);
    all->columns = g->m <= FEW_ROWS ? KELP_GEMM_BF16_FLAT_COLUMNS : KELP_GEMM_BF16_COLUMNS;
    for (;;) {
        all->down = kelp_divide_up(g->m, all->rows);
        all->across = kelp_divide_up(g->n, all->columns);
        if (threads == 1 || all->down * all->across >= 4 * threads)
            break;
        if (all->columns > 64)
            all->columns /= 2;
        else if (all->rows > 2 * KELP_BF16_ROWS)
            all->rows = kelp_round_up(all->rows / 2, KELP_BF16_ROWS);
        else
            break;
    }
    all->scratch = kelp_bf16_gemm_scratch(g->m, g->k);
}

/* ---- algorithms ---- */
typedef void run_block_fn(const blocking *all, int64_t row, int64_t column,
                          kelp_bf16_pair *rows_of_a);

static void run(const kelp_op_env *env, const kelp_bf16_gemm *job, run_block_fn *run_block) {
    if (job->m == 0 || job->n == 0)
        return;
    blocking all = {.run_block = run_block, .kernels = kelp_bf16_kernels_get(), .job = job};
    choose(&all, kelp_op_env_threads(env));
    int64_t work = all.rows * all.columns * KELP_MAX((int64_t)1, job->k);
    KELP_ASSERT(job->scratch != NULL && job->panels != NULL);
    kelp_op_parallel(env, all.down * all.across,
                     kelp_cpu_grain_of_blocks(KELP_GRAIN_NARROW_TILES, work), run_range, &all);
}

static void run_slices(const kelp_op_env *env, const kelp_bf16_gemm *job) {
    run(env, job, run_sliced);
}

static void run_whole(const kelp_op_env *env, const kelp_bf16_gemm *job) {
    run(env, job, run_one_slice);
}

static bool has_few_rows(const kelp_gemm_shape *shape) {
    return shape->m <= FEW_ROWS;
}

static bool is_one_slice(const kelp_gemm_shape *shape) {
    return shape->k > 0 && pairs_of(shape->k) <= SLICE && !shape->has_residual &&
           (shape->act == KELP_ACT_NONE || shape->act == KELP_ACT_RELU);
}

static bool is_any(const kelp_gemm_shape *shape) {
    (void)shape;
    return true;
}

static int64_t scratch_pairs(const kelp_gemm_shape *shape) {
    return kelp_bf16_gemm_scratch(shape->m, shape->k);
}

/* In order of preference. */
static const kelp_bf16_gemm_algorithm algorithms[] = {
    {"bf16_gemm_few_rows", has_few_rows, scratch_pairs, run_slices},
    {"bf16_gemm_one_slice", is_one_slice, scratch_pairs, run_whole},
    {"bf16_gemm", is_any, scratch_pairs, run_slices},
};

const kelp_bf16_gemm_algorithm *kelp_bf16_gemm_choose(const kelp_gemm_shape *shape) {
    const kelp_bf16_gemm_algorithm *algorithm = algorithms;
    KELP_ASSERT(shape->m >= 0 && shape->n >= 0 && shape->k >= 0);
    while (!algorithm->is_applicable(shape)) /* the last one always is */
        algorithm++;
    return algorithm;
}

static kelp_gemm_shape shape_of(const kelp_bf16_gemm *job) {
    return (kelp_gemm_shape){.m = job->m,
                             .n = job->n,
                             .k = job->k,
                             .count = 1,
                             .is_packed = true,
                             .has_residual = job->residual != NULL,
                             .act = job->act};
}

void kelp_bf16_gemm_run(const kelp_op_env *env, const kelp_bf16_gemm *job) {
    kelp_gemm_shape shape = shape_of(job);
    kelp_bf16_gemm_choose(&shape)->run(env, job);
}

void kelp_bf16_gemm_run_serial(const kelp_bf16_gemm *job) {
    kelp_gemm_shape shape = shape_of(job);
    if (job->m == 0 || job->n == 0)
        return;
    blocking all = {.run_block =
                        has_few_rows(&shape) || !is_one_slice(&shape) ? run_sliced : run_one_slice,
                    .kernels = kelp_bf16_kernels_get(),
                    .job = job};
    KELP_ASSERT(job->scratch != NULL && job->panels != NULL);
    choose(&all, 1);
    run_range(&all, 0, all.down * all.across, 0);
}
