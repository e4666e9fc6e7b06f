/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NonMaxSuppression: selects the box with the best score among boxes that overlap. The shape of the
 * output depends on the result, so reshape does the work. Source: ONNX operator specification,
 * NonMaxSuppression-11.
 */
#include "base/assert.h"
#include "cpu/ops/kernel.h"

#include <math.h>

typedef struct candidate {
    float score;
    int32_t index;
} candidate;

typedef struct box {
    float low[2], high[2], area;
} box;

typedef struct suppress_plan {
    int64_t *selected; /* in the env's memory, until the run ends */
    int64_t count;
} suppress_plan;

static box box_of(const float *at, bool centers) {
    box b;
    for (int i = 0; i < 2; i++) {
        if (centers) {
            b.low[i] = at[i] - at[i + 2] / 2;
            b.high[i] = at[i] + at[i + 2] / 2;
        } else {
            b.low[i] = at[i] < at[i + 2] ? at[i] : at[i + 2];
            b.high[i] = at[i] < at[i + 2] ? at[i + 2] : at[i];
        }
    }
    b.area = (b.high[0] - b.low[0]) * (b.high[1] - b.low[1]);
    return b;
}

static bool overlaps(const box *a, const box *b, float threshold) {
    float lengths[2];
    for (int i = 0; i < 2; i++) {
        float low = a->low[i] > b->low[i] ? a->low[i] : b->low[i];
        float high = a->high[i] < b->high[i] ? a->high[i] : b->high[i];
        lengths[i] = high - low;
        if (!(lengths[i] > 0))
            return false;
    }
    float both = lengths[0] * lengths[1], either = a->area + b->area - both;
    if (both <= 0 || a->area <= 0 || b->area <= 0 || either <= 0)
        return false;
    return both / either > threshold;
}

/* Returns true if a is selected after b. */
static bool is_after(candidate a, candidate b) {
    return a.score < b.score || (a.score == b.score && a.index > b.index);
}

/* Restores the heap order below `at`. */
static void sift_down(candidate *heap, int64_t count, int64_t at) {
    for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && is_after(heap[child], heap[child + 1]))
            child++;
        if (!is_after(heap[at], heap[child]))
            return;
        candidate swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
        at = child;
    }
}

typedef struct suppress_job {
    const kelp_op_env *env;
    int64_t boxes, max_kept;
    float overlap, min_score;
    bool has_min_score, centers;
    candidate *heap;
    box *kept;
} suppress_job;

/* Selects the boxes of one class of one image. Writes their indices and returns their number. */
static int64_t suppress(const suppress_job *job, const float *boxes, const float *scores,
                        int64_t *kept_index) {
    int64_t count = 0, kept = 0;
    KELP_ASSERT(job->boxes >= 0 && job->boxes <= INT32_MAX && job->max_kept <= job->boxes);
    for (int64_t i = 0; i < job->boxes; i++)
        if (!job->has_min_score || scores[i] > job->min_score)
            job->heap[count++] = (candidate){scores[i], (int32_t)i};
    for (int64_t i = count / 2; i-- > 0;)
        sift_down(job->heap, count, i);
    while (count > 0 && kept < job->max_kept && !kelp_op_env_cancelled(job->env)) {
        int32_t index = job->heap[0].index;
        box next = box_of(boxes + 4 * (int64_t)index, job->centers);
        bool separate = true;
        job->heap[0] = job->heap[--count];
        sift_down(job->heap, count, 0);
        for (int64_t i = 0; i < kept && separate; i++)
            separate = !overlaps(&next, &job->kept[i], job->overlap);
        if (!separate)
            continue;
        job->kept[kept] = next;
        kept_index[kept++] = index;
    }
    return kept;
}

static kelp_status *suppress_check(kelp_op_args *args) {
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *boxes = args->inputs[0], *scores = args->inputs[1];
    if (boxes->dtype != KELP_F32 || scores->dtype != KELP_F32)
        return kelp_ops_bad_type(args, boxes->dtype != KELP_F32 ? boxes->dtype : scores->dtype);
    if (boxes->rank != 3 || scores->rank != 3 || boxes->shape[2] != 4 ||
        boxes->shape[0] != scores->shape[0] || boxes->shape[1] != scores->shape[2] ||
        boxes->shape[1] > INT32_MAX)
        return kelp_ops_bad_shapes(args, boxes, scores,
                                   "expected boxes [N, B, 4] and scores [N, classes, B]");
    for (int32_t i = 0; i < args->input_count; i++)
        if (kelp_ops_defer(args, i))
            return NULL;
    return NULL;
}

static kelp_status *suppress_reshape(const void *state, kelp_op_args *args) {
    suppress_plan *p = args->plan;
    (void)state;
    KELP_TRY(suppress_check(args));
    if (args->deferred)
        return NULL;
    const kelp_tensor *boxes = args->inputs[0], *scores = args->inputs[1];
    const kelp_tensor *max_kept = kelp_ops_in(args, 2), *overlap = kelp_ops_in(args, 3);
    const kelp_tensor *min_score = kelp_ops_in(args, 4);
    suppress_job job = {.env = args->env, .boxes = boxes->shape[1]};
    if (max_kept != NULL && kelp_tensor_elements(max_kept) > 0)
        job.max_kept = kelp_ops_read_i64(max_kept, 0);
    if (overlap != NULL && kelp_tensor_elements(overlap) > 0)
        job.overlap = (float)kelp_ops_read_f64(overlap, 0);
    job.has_min_score = min_score != NULL && kelp_tensor_elements(min_score) > 0;
    if (job.has_min_score)
        job.min_score = (float)kelp_ops_read_f64(min_score, 0);
    job.centers = kelp_node_attr_i64(args->node, "center_point_box", 0) != 0;
    job.max_kept = KELP_MAX((int64_t)0, KELP_MIN(job.max_kept, job.boxes));
    int64_t classes = scores->shape[0] * scores->shape[1], total = 0, shape[2] = {0, 3};
    size_t max_total = 0, bytes = 0, index_offset = 0;
    bool fits = kelp_size_mul((size_t)classes, (size_t)job.max_kept, &max_total) &&
                kelp_size_mul(max_total, 3 * sizeof(int64_t), &bytes) &&
                (size_t)job.boxes < SIZE_MAX / 64;
    index_offset = ((size_t)job.max_kept * sizeof *job.kept + 7) / 8 * 8;
    p->selected = fits ? kelp_op_env_alloc(args->env, bytes + 1) : NULL;
    job.heap = fits ? kelp_op_env_alloc(args->env, (size_t)job.boxes * sizeof *job.heap + 1) : NULL;
    job.kept = fits ? kelp_op_env_alloc(args->env,
                                        index_offset + (size_t)job.max_kept * sizeof(int64_t) + 1)
                    : NULL;
    if (!fits)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                          "NonMaxSuppression: out of memory for %lld boxes of %lld classes",
                          (long long)job.max_kept, (long long)classes);
    if (p->selected == NULL || job.heap == NULL || job.kept == NULL) {
        args->deferred = true; /* there is no memory of a run while a schedule is compiled */
        return NULL;
    }
    int64_t *kept = (int64_t *)(void *)((char *)job.kept + index_offset);
    for (int64_t i = 0; i < classes && job.max_kept > 0; i++) {
        int64_t image = i / scores->shape[1];
        int64_t count = suppress(&job, (const float *)boxes->data + image * job.boxes * 4,
                                 (const float *)scores->data + i * job.boxes, kept);
        for (int64_t k = 0; k < count; k++, total++) {
            p->selected[3 * total] = image;
            p->selected[3 * total + 1] = i % scores->shape[1];
            p->selected[3 * total + 2] = kept[k];
        }
    }
    KELP_ASSERT((size_t)total <= max_total);
    p->count = shape[0] = total;
    return kelp_ops_set(args, 0, KELP_I64, 2, shape);
}

static kelp_status *suppress_invoke(const void *state, kelp_op_args *args) {
    const suppress_plan *p = args->plan;
    (void)state;
    KELP_ASSERT(kelp_tensor_elements(args->outputs[0]) == 3 * p->count);
    if (p->count > 0)
        memcpy(args->outputs[0]->data, p->selected, (size_t)p->count * 3 * sizeof(int64_t));
    return NULL;
}
KELP_KERNEL(NonMaxSuppression, 0, sizeof(suppress_plan), 0, suppress_reshape, suppress_invoke);
