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

typedef struct blocking {
    const kelp_bf16_kernels *kernels;
    const kelp_bf16_gemm *job;
    int64_t rows, columns, down, across;
    int64_t scratch; /* pairs of a worker */
} blocking;

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

/* Returns true for a GEMM whose depth is one slice, which is finished in the registers. */
static bool is_whole(const kelp_bf16_gemm *g) {
    return pairs_of(g->k) <= SLICE && g->k > 0 && g->residual == NULL &&
           (g->act == KELP_ACT_NONE || g->act == KELP_ACT_RELU);
}

static void run_whole(const blocking *all, const kelp_bf16_pair *a, int64_t lda, int64_t rows,
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

static void run_block(const blocking *all, int64_t row, int64_t column, kelp_bf16_pair *rows_of_a) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const kelp_bf16_gemm *g = all->job;
    const kelp_float_u *a = (const kelp_float_u *)g->a + row * g->lda;
    float *c = g->c + row * g->ldc + column;
    int64_t rows = KELP_MIN(all->rows, g->m - row), columns = KELP_MIN(all->columns, g->n - column);
    int64_t depth = pairs_of(g->k), lda = kelp_bf16_row_step(KELP_MIN(depth, (int64_t)SLICE));
    /* few rows: several panels at a time */
    int64_t width = rows <= 3 ? columns : KELP_BF16_COLUMNS;
    for (int64_t k = 0; k < depth || k == 0; k += SLICE) {
        int64_t slice = KELP_MIN((int64_t)SLICE, depth - k);
        for (int64_t i = 0; i < rows; i++)
            all->kernels->narrow(a + i * g->lda + 2 * k, KELP_MIN(2 * slice, g->k - 2 * k),
                                 rows_of_a + i * lda);
        if (rows > 3 && is_whole(g)) {
            run_whole(all, rows_of_a, lda, rows, column, columns, c);
            return;
        }
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
    if (g->bias == NULL && g->residual == NULL && g->act == KELP_ACT_NONE)
        return;
    for (int64_t i = 0; i < rows; i++)
        elementwise->finish(c + i * g->ldc, g->bias != NULL ? g->bias + column : NULL, 0.0f,
                            g->residual != NULL ? g->residual + (row + i) * g->ldc + column : NULL,
                            columns, g->act);
}

static void run_range(void *userp, int64_t begin, int64_t end, int worker) {
    const blocking *all = userp;
    kelp_bf16_pair *scratch = all->job->scratch + worker * all->scratch;
    for (int64_t at = begin; at < end; at++) /* down first: neighbours share the panels of B */
        run_block(all, at % all->down * all->rows, at / all->down * all->columns, scratch);
}

/* Chooses the blocks: smaller ones if some threads would have none. */
static void choose(blocking *all, int64_t threads) {
    const kelp_bf16_gemm *g = all->job;
    int64_t high = (g->m + BLOCK_ROWS - 1) / BLOCK_ROWS;
    all->rows = kelp_round_up((g->m + high - 1) / high, KELP_BF16_ROWS);
    all->columns = g->m <= 3 ? KELP_GEMM_BF16_FLAT_COLUMNS : KELP_GEMM_BF16_COLUMNS;
    for (;;) {
        all->down = (g->m + all->rows - 1) / all->rows;
        all->across = (g->n + all->columns - 1) / all->columns;
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

void kelp_bf16_gemm_run(const kelp_op_env *env, const kelp_bf16_gemm *job) {
    if (job->m == 0 || job->n == 0)
        return;
    blocking all = {.kernels = kelp_bf16_kernels_get(), .job = job};
    choose(&all, kelp_op_env_threads(env));
    int64_t work = all.rows * all.columns * KELP_MAX((int64_t)1, job->k);
    KELP_ASSERT(job->scratch != NULL && job->panels != NULL);
    kelp_op_parallel(env, all.down * all.across,
                     kelp_cpu_grain_of_blocks(KELP_GRAIN_NARROW_TILES, work), run_range, &all);
}

void kelp_bf16_gemm_run_serial(const kelp_bf16_gemm *job) {
    if (job->m == 0 || job->n == 0)
        return;
    blocking all = {.kernels = kelp_bf16_kernels_get(), .job = job};
    choose(&all, 1);
    run_range(&all, 0, all.down * all.across, 0);
}
