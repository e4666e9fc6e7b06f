/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Skinny GEMM: a few rows times a large matrix, as in models that generate one token at a time.
 * Its time is that of reading the matrix, so the work is divided such that each thread reads long
 * contiguous ranges: quarters of the rows of B, or columns of wide matrices. The quarters are
 * summed separately and then added, with any number of threads, so that results do not depend on
 * it.
 */
#include "cpu/kernels/gemm/skinny.h"

#include "base/assert.h"
#include "cpu/kernels/tuning.h"

#include <string.h>

#define PARTS 4 /* of the rows of B, for any number of threads */

bool kelp_gemm_is_skinny(int64_t m, int64_t k, int64_t n) {
    return m > 0 && m <= KELP_SKINNY_ROWS && k >= KELP_SKINNY_MIN_SIZE &&
           n >= KELP_SKINNY_MIN_SIZE && n >= KELP_SKINNY_MIN_ELEMENTS / k;
}

typedef struct skinny_job {
    const kelp_gemm_kernels *kernels;
    const kelp_gemm *g;
    int64_t rows;    /* of B in a part; the last part has the remaining rows, too */
    int64_t columns; /* of a share */
    int64_t across;  /* number of shares along the columns */
} skinny_job;

static bool is_applicable(const kelp_gemm_shape *shape) {
    return shape->count == 1 && kelp_gemm_is_skinny(shape->m, shape->k, shape->n);
}

static int64_t scratch_floats(const kelp_gemm_shape *shape) {
    int64_t floats;
    return kelp_i64_mul(shape->m * (PARTS - 1), shape->n, &floats) ? floats : -1;
}

/* Returns the address for the sums of a part: C for the first one, else rows of n floats. */
static float *sums_of(const kelp_gemm *g, int64_t part) {
    return part == 0 ? g->c : g->scratch + (part - 1) * g->m * g->n;
}

/* Sums one part over `columns` columns of b, whose rows are `stride` floats apart. */
static void sum_part(const skinny_job *job, int64_t part, const void *b, int64_t stride,
                     int64_t columns, float *c, int64_t ldc) {
    const kelp_gemm *g = job->g;
    int64_t row = part * job->rows;
    job->kernels->skinny(&(kelp_skinny){.a = (const kelp_float_u *)g->a + row,
                                        .b = (const kelp_float_u *)b + row * stride,
                                        .c = c,
                                        .lda = g->lda,
                                        .ldb = stride,
                                        .ldc = ldc,
                                        .m = g->m,
                                        .n = columns,
                                        .k = part + 1 < PARTS ? job->rows : g->k - row});
}

static void sum_columns(const skinny_job *job, int64_t part, int64_t column, int64_t columns) {
    const kelp_gemm *g = job->g;
    sum_part(job, part, (const kelp_float_u *)g->b + column, g->ldb, columns,
             sums_of(g, part) + column, part == 0 ? g->ldc : g->n);
}

/* Adds the parts, then bias, residual and activation. */
static void join(const skinny_job *job, int64_t column, int64_t columns) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const kelp_gemm *g = job->g;
    for (int64_t i = 0; i < g->m; i++) {
        float *c = g->c + i * g->ldc + column;
        for (int64_t part = 1; part < PARTS; part++)
            elementwise->bin[KELP_BIN_ADD](c, c, sums_of(g, part) + i * g->n + column, columns, 1,
                                           1);
        if (g->bias != NULL || g->row_bias != NULL || g->residual != NULL ||
            g->act != KELP_ACT_NONE)
            elementwise->finish(c, g->bias != NULL ? g->bias + column : NULL,
                                g->row_bias != NULL ? g->row_bias[i] : 0.0f,
                                g->residual != NULL ? g->residual + i * g->ldc + column : NULL,
                                columns, g->act);
    }
}

static void run_columns(void *userp, int64_t begin, int64_t end, int worker) {
    const skinny_job *job = userp;
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        int64_t column = at * job->columns, columns = KELP_MIN(job->columns, job->g->n - column);
        for (int64_t part = 0; part < PARTS; part++)
            sum_columns(job, part, column, columns);
        join(job, column, columns);
    }
}

static void run_parts(void *userp, int64_t begin, int64_t end, int worker) {
    const skinny_job *job = userp;
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        int64_t column = at % job->across * job->columns;
        sum_columns(job, at / job->across, column, KELP_MIN(job->columns, job->g->n - column));
    }
}

static void run_panels(void *userp, int64_t begin, int64_t end, int worker) {
    const skinny_job *job = userp;
    const kelp_gemm *g = job->g;
    int64_t width = job->kernels->tile_columns;
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        int64_t column = at * width, columns = KELP_MIN(width, g->n - column);
        float sums[KELP_SKINNY_ROWS * KELP_GEMM_MAX_TILE_COLUMNS];
        for (int64_t part = 0; part < PARTS; part++) {
            sum_part(job, part, g->packed + column * g->k, width, width, sums, width);
            for (int64_t i = 0; i < g->m; i++)
                memcpy(sums_of(g, part) + i * (part == 0 ? g->ldc : g->n) + column,
                       sums + i * width, (size_t)columns * sizeof(float));
        }
        join(job, column, columns);
    }
}

static void run(const kelp_op_env *env, const kelp_gemm *g, int64_t count) {
    const kelp_gemm_kernels *kernels = g->kernels != NULL ? g->kernels : kelp_gemm_kernels_get();
    skinny_job job = {kernels, g, g->k / (4 * PARTS) * 4, kernels->tile_columns, 1};
    int64_t threads = kelp_op_env_threads(env);
    (void)count;
    KELP_ASSERT(count == 1 && g->scratch != NULL && g->m <= KELP_SKINNY_ROWS && g->k >= 4 * PARTS);
    if (g->packed != NULL) {
        int64_t panels = kelp_divide_up(g->n, job.columns);
        kelp_op_parallel(env, panels,
                         kelp_cpu_grain_of_blocks(KELP_SKINNY_SHARE, g->k * job.columns),
                         run_panels, &job);
        return;
    }
    job.across =
        g->n >= KELP_SKINNY_WIDE
            ? kelp_divide_up(g->n, KELP_SKINNY_WIDE_SHARE)
            : KELP_MAX((int64_t)1, KELP_MIN(threads / PARTS, g->n / KELP_SKINNY_MIN_SHARE_COLUMNS));
    job.columns = kelp_divide_up(g->n, job.across);
    job.columns = kelp_round_up(job.columns, kernels->tile_columns);
    job.across = kelp_divide_up(g->n, job.columns);
    if (g->n >= KELP_SKINNY_WIDE) {
        kelp_op_parallel(env, job.across, 1, run_columns, &job);
        return;
    }
    int64_t share = g->k * job.columns / PARTS;
    kelp_op_parallel(env, PARTS * job.across, kelp_cpu_grain_of_blocks(KELP_SKINNY_SHARE, share),
                     run_parts, &job);
    join(&job, 0, g->n);
}

const kelp_gemm_algorithm kelp_gemm_skinny = {.name = "skinny_gemm",
                                              .is_applicable = is_applicable,
                                              .scratch_floats = scratch_floats,
                                              .run = run};
