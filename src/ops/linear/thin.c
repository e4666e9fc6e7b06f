/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few rows times a large matrix, as in a model that writes one word after the other: the time is
 * that of reading the matrix, so the work is divided such that each thread reads long stretches. Up
 * to some thousand columns the upper half of B's rows is one share and the lower half the other;
 * wider ones are divided by columns. The halves are summed apart and then added, however many
 * threads there are.
 */
#include "ops/linear/thin.h"

#include <string.h>

#define LEAST_ELEMENTS ((int64_t)1 << 16) /* smaller ones stay in cache, in panels */
#define LEAST_ROWS 64
#define WIDE 8192                /* columns: from there on they are divided, */
#define WIDE_SHARE 4096          /* into shares of so many */
#define LEAST_COLUMNS 512        /* of a share of half the rows */
#define SHARE ((int64_t)1 << 16) /* elements: some 10 µs of reading */

bool kelp_gemm_is_thin(int64_t m, int64_t k, int64_t n) {
    return m > 0 && m <= KELP_THIN_ROWS && k >= LEAST_ROWS && n >= LEAST_ROWS &&
           n >= LEAST_ELEMENTS / k;
}

typedef struct thin_job {
    const kelp_simd *simd;
    const kelp_gemm *g;
    int64_t upper;   /* rows of B in the first half: the rest of eight parts is in the second */
    int64_t columns; /* of a share */
    int64_t across;  /* shares side by side */
} thin_job;

/* One half for columns from `column` of B as it lies, into `c`. */
static void half(const thin_job *job, int64_t which, int64_t column, int64_t columns, float *c) {
    const kelp_gemm *g = job->g;
    int64_t row = which * job->upper;
    job->simd->thin(&(kelp_thin){.a = (const kelp_float_u *)g->a + row,
                                 .b = (const kelp_float_u *)g->b + row * g->ldb + column,
                                 .c = c + column,
                                 .lda = g->lda,
                                 .ldb = g->ldb,
                                 .ldc = which == 0 ? g->ldc : g->n,
                                 .m = g->m,
                                 .n = columns,
                                 .k = which == 0 ? job->upper : g->k - row});
}

/* C += partial, and what follows the product. */
static void join(const thin_job *job, int64_t column, int64_t columns) {
    const kelp_gemm *g = job->g;
    for (int64_t i = 0; i < g->m; i++) {
        float *c = g->c + i * g->ldc + column;
        job->simd->bin[KELP_BIN_ADD](c, c, g->partial + i * g->n + column, columns, 1, 1);
        if (g->bias != NULL || g->row_bias != NULL || g->residual != NULL ||
            g->act != KELP_ACT_NONE)
            job->simd->finish(c, g->bias != NULL ? g->bias + column : NULL,
                              g->row_bias != NULL ? g->row_bias[i] : 0.0f,
                              g->residual != NULL ? g->residual + i * g->ldc + column : NULL,
                              columns, g->act);
    }
}

static void run_columns(void *userp, int64_t begin, int64_t end, int worker) {
    const thin_job *job = userp;
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        int64_t column = at * job->columns, columns = KELP_MIN(job->columns, job->g->n - column);
        half(job, 0, column, columns, job->g->c);
        half(job, 1, column, columns, job->g->partial);
        join(job, column, columns);
    }
}

static void run_halves(void *userp, int64_t begin, int64_t end, int worker) {
    const thin_job *job = userp;
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        int64_t which = at / job->across, column = at % job->across * job->columns;
        half(job, which, column, KELP_MIN(job->columns, job->g->n - column),
             which == 0 ? job->g->c : job->g->partial);
    }
}

static void run_panels(void *userp, int64_t begin, int64_t end, int worker) {
    const thin_job *job = userp;
    const kelp_gemm *g = job->g;
    int64_t width = job->simd->tile_columns;
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        int64_t column = at * width, columns = KELP_MIN(width, g->n - column);
        const float *panel = g->packed + column * g->k;
        float sums[2][KELP_THIN_ROWS * KELP_SIMD_COLUMNS];
        for (int which = 0; which < 2; which++)
            job->simd->thin(
                &(kelp_thin){.a = (const kelp_float_u *)g->a + which * job->upper,
                             .b = (const kelp_float_u *)panel + which * job->upper * width,
                             .c = sums[which],
                             .lda = g->lda,
                             .ldb = width,
                             .ldc = width,
                             .m = g->m,
                             .n = width,
                             .k = which == 0 ? job->upper : g->k - job->upper});
        for (int64_t i = 0; i < g->m; i++) {
            size_t bytes = (size_t)columns * sizeof(float);
            memcpy(g->c + i * g->ldc + column, sums[0] + i * width, bytes);
            memcpy(g->partial + i * g->n + column, sums[1] + i * width, bytes);
        }
        join(job, column, columns);
    }
}

void kelp_gemm_thin_run(const kelp_op_env *env, const kelp_simd *simd, const kelp_gemm *g) {
    thin_job job = {simd, g, g->k / 8 * 4, simd->tile_columns, 1};
    int64_t threads = kelp_op_env_threads(env);
    if (g->packed != NULL) {
        int64_t panels = (g->n + job.columns - 1) / job.columns;
        kelp_op_parallel(env, panels, KELP_MAX((int64_t)1, SHARE / (g->k * job.columns)),
                         run_panels, &job);
        return;
    }
    job.across = g->n >= WIDE ? (g->n + WIDE_SHARE - 1) / WIDE_SHARE
                              : KELP_MAX((int64_t)1, KELP_MIN(threads / 2, g->n / LEAST_COLUMNS));
    job.columns = (g->n + job.across - 1) / job.across;
    job.columns = (job.columns + simd->tile_columns - 1) / simd->tile_columns * simd->tile_columns;
    job.across = (g->n + job.columns - 1) / job.columns;
    if (g->n >= WIDE) {
        kelp_op_parallel(env, job.across, 1, run_columns, &job);
        return;
    }
    int64_t grain = g->k * job.columns / 2 >= SHARE / 2 ? 1 : 2;
    kelp_op_parallel(env, 2 * job.across, grain, run_halves, &job);
    join(&job, 0, g->n);
}
