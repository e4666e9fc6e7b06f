/* SPDX-License-Identifier: Apache-2.0 */
/* Attention: selection of the algorithm, scratch memory, blocks of queries. */
#include "cpu/kernels/attention/sdpa_internal.h"

#include "cpu/kernels/tuning.h"

/* The first applicable algorithm runs. */
static const kelp_sdpa_algorithm *const algorithms[] = {
    &kelp_sdpa_f32_rows,
    &kelp_sdpa_f32_packed,
    &kelp_sdpa_f64_rows,
    &kelp_sdpa_bf16_packed,
};

#define ALIGNED_ELEMENTS 16 /* each part of a worker's scratch memory begins at a cache line */

/* Adds up the parts of `workspace` in sdpa.inc. */
static bool count_elements(kelp_sdpa *s) {
    size_t keys = (size_t)s->stride, rows = (size_t)KELP_MIN(KELP_SDPA_QUERIES, s->queries);
    size_t scores, q, y, total;
    return s->algorithm->packed_elements(s, &s->packed_elements) &&
           kelp_size_align(s->packed_elements, ALIGNED_ELEMENTS, &s->packed_elements) &&
           kelp_size_mul(keys, rows + 1, &scores) && kelp_size_mul((size_t)s->size, rows, &q) &&
           kelp_size_align(q, ALIGNED_ELEMENTS, &q) && kelp_size_mul((size_t)s->v_size, rows, &y) &&
           kelp_size_align(y, ALIGNED_ELEMENTS, &y) &&
           kelp_size_add(s->packed_elements, scores, &total) && kelp_size_add(total, q, &total) &&
           kelp_size_add(total, y, &total) && kelp_size_add(total, 64, &s->worker_elements);
}

bool kelp_sdpa_plan(kelp_sdpa *s, int threads, size_t *out_bytes) {
    size_t total;
    KELP_ASSERT(s->group > 0 && s->heads % s->group == 0 && threads > 0);
    s->algorithm = NULL;
    for (size_t i = 0; i < KELP_COUNT(algorithms) && s->algorithm == NULL; i++)
        if (algorithms[i]->is_applicable(s))
            s->algorithm = algorithms[i];
    KELP_ASSERT(s->algorithm != NULL);
    if (s->keys > INT64_MAX - 32)
        return false;
    /* at least 16 more: rows a power of two apart would map to the same sets of the cache */
    s->stride = kelp_round_up(s->keys + 16, 16);
    s->blocks = kelp_divide_up(s->queries, KELP_SDPA_QUERIES);
    s->key_unit = s->algorithm->key_unit();
    return count_elements(s) &&
           kelp_size_mul(s->worker_elements, s->algorithm->ranges->element_bytes, &total) &&
           kelp_size_mul(total, (size_t)threads, out_bytes);
}

const char *kelp_sdpa_algorithm_name(const kelp_sdpa *s) {
    return s->algorithm->name;
}

bool kelp_sdpa_packed_none(const kelp_sdpa *s, size_t *out) {
    (void)s;
    *out = 0;
    return true;
}

/* ---- blocks ---- */
kelp_sdpa_block kelp_sdpa_block_at(const kelp_sdpa *s, int64_t unit) {
    KELP_ASSERT(unit >= 0 && unit < s->batch * s->heads * s->blocks);
    int64_t pair = unit / s->blocks, first = unit % s->blocks * KELP_SDPA_QUERIES;
    return (kelp_sdpa_block){.image = pair / s->heads,
                             .head = pair % s->heads,
                             .first = first,
                             .rows = KELP_MIN(KELP_SDPA_QUERIES, s->queries - first),
                             .end = s->keys};
}

static int64_t position(const kelp_sdpa *s, int64_t image) {
    if (s->offsets != NULL)
        return s->offsets[image];
    return s->from_end && s->key_counts != NULL ? s->key_counts[image] - s->queries : s->offset;
}

static int64_t clamp(int64_t value, int64_t largest) {
    return value < 0 ? 0 : KELP_MIN(value, largest);
}

void kelp_sdpa_key_range(const kelp_sdpa *s, int64_t image, int64_t i, int64_t *out_begin,
                         int64_t *out_end) {
    KELP_ASSERT(i >= 0 && i < s->queries && image < s->batch);
    int64_t at = i + position(s, image), last = s->keys;
    if (s->key_counts != NULL)
        last = clamp(s->key_counts[image], last);
    *out_begin = s->left >= 0 ? clamp(at - s->left, last) : 0;
    *out_end = s->right >= 0 ? clamp(at + s->right + 1, last) : last;
    if (*out_end < *out_begin)
        *out_end = *out_begin;
}

/* ---- runs ---- */
typedef struct sdpa_job {
    const kelp_sdpa *s;
    kelp_sdpa_range *range;
    void *scores;
} sdpa_job;

static void run_range(void *userp, int64_t begin, int64_t end, int worker) {
    const sdpa_job *job = userp;
    job->range(job->s, job->scores, begin, end, worker);
}

static void run(const kelp_op_env *env, const kelp_sdpa *s, kelp_sdpa_range *range, void *scores,
                int64_t work_per_score) {
    KELP_ASSERT(s->algorithm != NULL && s->scratch != NULL);
    sdpa_job job = {s, range, scores};
    int64_t work = KELP_MIN(s->queries, KELP_SDPA_QUERIES) * s->keys * work_per_score;
    kelp_op_parallel(env, s->batch * s->heads * s->blocks, kelp_cpu_grain(KELP_GRAIN_TILES, work),
                     run_range, &job);
}

void kelp_sdpa_run(const kelp_op_env *env, const kelp_sdpa *s) {
    run(env, s, s->algorithm->ranges->run, NULL, s->size + s->v_size);
}

void kelp_sdpa_run_scores(const kelp_op_env *env, const kelp_sdpa *s, void *scores) {
    run(env, s, s->algorithm->ranges->run_scores, scores, s->size);
}

void kelp_sdpa_run_softmax(const kelp_op_env *env, const kelp_sdpa *s, void *scores) {
    run(env, s, s->algorithm->ranges->run_softmax, scores, 16);
}

void kelp_sdpa_run_values(const kelp_op_env *env, const kelp_sdpa *s, const void *scores) {
    uintptr_t unchanged = (uintptr_t)scores;
    run(env, s, s->algorithm->ranges->run_values, (void *)unchanged, s->v_size);
}
