/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GEMM in blocks: each thread takes a block of C, iterates over k in slices that keep the panel of
 * B in cache, and finishes its rows. Source: Goto and van de Geijn, "Anatomy of High-Performance
 * Matrix Multiplication", 2008.
 */
#include "cpu/kernels/gemm/gemm.h"

#include "base/assert.h"
#include "cpu/kernels/gemm/skinny.h"
#include "cpu/kernels/layout/layout_kernels.h"
#include "cpu/kernels/tuning.h"

#include <stdio.h>
#include <string.h>

typedef struct blocking {
    int64_t rows, columns; /* of a block */
    int64_t down, across;  /* blocks of C */
} blocking;

/* Chooses blocks of about 20 µs of work, several for each thread. */
static blocking choose(const kelp_gemm_kernels *kernels, const kelp_gemm *g) {
    blocking b = {kelp_round_up(KELP_GEMM_ROWS, kernels->tile_rows),
                  kelp_round_up(KELP_GEMM_COLUMNS, kernels->tile_columns), 1, 1};
    if (g->m <= kernels->tile_rows) /* few rows: wide blocks, so that B is read once */
        b.columns = kelp_round_up(KELP_GEMM_FLAT_COLUMNS, kernels->tile_columns);
    b.down = (g->m + b.rows + kernels->tile_rows - 1) / (b.rows + kernels->tile_rows);
    b.rows = (g->m + b.down - 1) / KELP_MAX((int64_t)1, b.down); /* no small rest */
    b.across = kelp_divide_up(g->n, b.columns);
    if (b.across > 1) /* of equal width, too */
        b.columns = kelp_round_up(kelp_divide_up(g->n, b.across), kernels->tile_columns);
    b.across = kelp_divide_up(g->n, b.columns);
    return b;
}

/* Narrows the blocks until each thread has one, as long as a block is 10 µs of work. Few blocks
 * are divided equally among the threads. */
static void spread(const kelp_gemm_kernels *kernels, const kelp_gemm *g, int64_t wanted,
                   blocking *b) {
    while (b->down * b->across < wanted && b->columns > kernels->tile_columns &&
           b->rows * b->columns * g->k >= KELP_GRAIN_GEMM_BLOCK) {
        b->columns = kelp_round_up(b->columns / 2, kernels->tile_columns);
        b->across = kelp_divide_up(g->n, b->columns);
    }
    if (b->across < 2 || b->down * b->across >= 4 * wanted || b->down * b->across % wanted == 0)
        return;
    b->columns = kelp_round_up((g->n + kelp_round_up(b->across, wanted) - 1) /
                                   kelp_round_up(b->across, wanted),
                               kernels->tile_columns);
    b->across = kelp_divide_up(g->n, b->columns);
}

/* Returns the address of B[k, column] and sets the distance between B's rows. */
static const kelp_float_u *panel_at(const kelp_gemm_kernels *kernels, const kelp_gemm *g, int64_t k,
                                    int64_t column, int64_t *out_stride) {
    if (g->packed == NULL) {
        *out_stride = g->ldb;
        return (const kelp_float_u *)g->b + k * g->ldb + column;
    }
    *out_stride = kernels->tile_columns;
    return (const kelp_float_u *)g->packed + column * g->k + k * kernels->tile_columns;
}

static void run_block(const kelp_gemm_kernels *kernels, const kelp_gemm *g, int64_t row,
                      int64_t column, int64_t rows, int64_t columns) {
    const kelp_float_u *a = (const kelp_float_u *)g->a + row * g->lda;
    float *c = g->c + row * g->ldc + column;
    int64_t width = g->packed != NULL ? kernels->tile_columns : columns;
    const float *row_bias = g->row_bias != NULL ? g->row_bias + row : NULL;
    const float *bias = g->bias != NULL ? g->bias + column : NULL;
    const float *residual = g->residual != NULL ? g->residual + row * g->ldc + column : NULL;
    bool light = kelp_act_is_light(g->act);
    for (int64_t k = 0; k < g->k || k == 0; k += KELP_GEMM_DEPTH) {
        int64_t slice = KELP_MIN((int64_t)KELP_GEMM_DEPTH, g->k - k), stride;
        for (int64_t j = 0; j < columns; j += width) {
            const kelp_float_u *b = panel_at(kernels, g, k, column + j, &stride);
            kernels->block(&(kelp_gemm_block){.a = a + k,
                                              .b = b,
                                              .c = c + j,
                                              .lda = g->lda,
                                              .ldb = stride,
                                              .ldc = g->ldc,
                                              .m = rows,
                                              .n = KELP_MIN(width, columns - j),
                                              .k = slice,
                                              .accumulate = k > 0,
                                              .finishes = light && k + slice >= g->k,
                                              .row_bias = row_bias,
                                              .bias = bias != NULL ? bias + j : NULL,
                                              .residual = residual != NULL ? residual + j : NULL,
                                              .act = g->act});
        }
    }
    if (light)
        return;
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    for (int64_t i = 0; i < rows; i++)
        elementwise->finish(c + i * g->ldc, bias, row_bias != NULL ? row_bias[i] : 0.0f,
                            residual != NULL ? residual + i * g->ldc : NULL, columns, g->act);
}

bool kelp_gemm_packed_size(const kelp_gemm_kernels *kernels, int64_t k, int64_t n,
                           size_t *out_floats) {
    size_t columns = (size_t)kelp_round_up(n, kernels->tile_columns);
    return kelp_size_mul((size_t)k, columns, out_floats);
}

void kelp_gemm_layout(const kelp_gemm_kernels *kernels, const char *what, char *out, size_t size) {
    int length = snprintf(out, size, "%s/1/%d", what, (int)kernels->tile_columns);
    KELP_ASSERT(length > 0 && (size_t)length < size);
    (void)length;
}

void kelp_gemm_pack(const kelp_gemm_kernels *kernels, const void *b, int64_t stride, int64_t k,
                    int64_t n, float *out) {
    int64_t width = kernels->tile_columns;
    KELP_ASSERT(k >= 0 && n >= 0 && stride >= 0);
    for (int64_t column = 0; column < n; column += width) {
        size_t count = (size_t)KELP_MIN(width, n - column);
        for (int64_t row = 0; row < k; row++, out += width) {
            memcpy(out, (const kelp_float_u *)b + row * stride + column, count * sizeof *out);
            memset(out + count, 0, ((size_t)width - count) * sizeof *out);
        }
    }
}

void kelp_gemm_pack_transposed(const kelp_gemm_kernels *kernels, const void *b, int64_t stride,
                               int64_t k, int64_t n, float *out) {
    const kelp_layout_kernels *layout = kelp_layout_kernels_get();
    int64_t width = kernels->tile_columns;
    for (int64_t column = 0; column < n; column += width, out += k * width) {
        int64_t count = KELP_MIN(width, n - column);
        if (count < width)
            memset(out, 0, (size_t)(k * width) * sizeof *out);
        layout->transpose(out, width, (const kelp_float_u *)b + column * stride, stride, count, k);
    }
}

typedef struct job_list {
    const kelp_gemm_kernels *kernels;
    const kelp_gemm *jobs;
    blocking blocks; /* the jobs have one shape */
} job_list;

static void run_range(void *userp, int64_t begin, int64_t end, int worker) {
    const job_list *list = userp;
    int64_t each = list->blocks.down * list->blocks.across;
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        const kelp_gemm *g = &list->jobs[at / each];
        /* down first: neighbours share the panel of B */
        int64_t block = at % each;
        int64_t row = block % list->blocks.down * list->blocks.rows;
        int64_t column = block / list->blocks.down * list->blocks.columns;
        run_block(list->kernels, g, row, column, KELP_MIN(list->blocks.rows, g->m - row),
                  KELP_MIN(list->blocks.columns, g->n - column));
    }
}

void kelp_gemm_run(const kelp_op_env *env, const kelp_gemm *jobs, int64_t count) {
    if (count == 0 || jobs[0].m == 0 || jobs[0].n == 0)
        return;
    job_list list = {
        jobs[0].kernels != NULL ? jobs[0].kernels : kelp_gemm_kernels_get(), jobs, {0, 0, 0, 0}};
    list.blocks = choose(list.kernels, &jobs[0]);
    spread(list.kernels, &jobs[0], (kelp_op_env_threads(env) + count - 1) / count, &list.blocks);
    int64_t blocks = list.blocks.down * list.blocks.across;
    int64_t work = jobs[0].m * jobs[0].n * KELP_MAX((int64_t)1, jobs[0].k) / blocks;
    kelp_op_parallel(env, blocks * count, kelp_cpu_grain_of_blocks(KELP_GRAIN_GEMM, work),
                     run_range, &list);
}

void kelp_gemm_run_serial(const kelp_gemm_kernels *kernels, const kelp_gemm *job) {
    KELP_ASSERT(kernels != NULL && job->m >= 0 && job->n >= 0 && job->k >= 0);
    if (job->m == 0 || job->n == 0)
        return;
    job_list list = {kernels, job, choose(kernels, job)};
    run_range(&list, 0, list.blocks.down * list.blocks.across, 0);
}

/* ---- algorithms ---- */
static bool is_packed(const kelp_gemm_shape *shape) {
    return shape->is_packed;
}

static bool is_any(const kelp_gemm_shape *shape) {
    (void)shape;
    return true;
}

static const kelp_gemm_algorithm packed_gemm = {
    .name = "packed_gemm", .is_applicable = is_packed, .run = kelp_gemm_run};
static const kelp_gemm_algorithm blocked_gemm = {
    .name = "gemm", .is_applicable = is_any, .run = kelp_gemm_run};

/* In order of preference. */
static const kelp_gemm_algorithm *const algorithms[] = {&kelp_gemm_skinny, &packed_gemm,
                                                        &blocked_gemm};

const kelp_gemm_algorithm *kelp_gemm_choose(const kelp_gemm_shape *shape) {
    size_t i = 0;
    KELP_ASSERT(shape->m >= 0 && shape->n >= 0 && shape->k >= 0 && shape->count >= 0);
    while (!algorithms[i]->is_applicable(shape)) /* the last one always is */
        i++;
    return algorithms[i];
}
