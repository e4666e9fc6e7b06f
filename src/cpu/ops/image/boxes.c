/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NonMaxSuppression: of boxes that overlap much, the one with the best score. How many are left is
 * known only when it is done, so the work lies in reshape. Source: ONNX operator specification,
 * NonMaxSuppression-11.
 */
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
    float extents[2];
    for (int i = 0; i < 2; i++) {
        float low = a->low[i] > b->low[i] ? a->low[i] : b->low[i];
        float high = a->high[i] < b->high[i] ? a->high[i] : b->high[i];
        extents[i] = high - low;
        if (!(extents[i] > 0))
            return false;
    }
    float both = extents[0] * extents[1], either = a->area + b->area - both;
    if (both <= 0 || a->area <= 0 || b->area <= 0 || either <= 0)
        return false;
    return both / either > threshold;
}

/* Whether a comes behind b. */
static bool behind(candidate a, candidate b) {
    return a.score < b.score || (a.score == b.score && a.index > b.index);
}

static void sink(candidate *heap, int64_t count, int64_t at) {
    for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && behind(heap[child], heap[child + 1]))
            child++;
        if (!behind(heap[at], heap[child]))
            return;
        candidate swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
        at = child;
    }
}

typedef struct suppress_job {
    const kelp_op_env *env;
    int64_t boxes, most;
    float overlap, least;
    bool has_least, centers;
    candidate *heap;
    box *kept;
} suppress_job;

/* One class of one image; gives how many are kept, their indices in kept_index. */
static int64_t suppress(const suppress_job *job, const float *boxes, const float *scores,
                        int64_t *kept_index) {
    int64_t count = 0, kept = 0;
    for (int64_t i = 0; i < job->boxes; i++)
        if (!job->has_least || scores[i] > job->least)
            job->heap[count++] = (candidate){scores[i], (int32_t)i};
    for (int64_t i = count / 2; i-- > 0;)
        sink(job->heap, count, i);
    while (count > 0 && kept < job->most && !kelp_op_env_cancelled(job->env)) {
        int32_t index = job->heap[0].index;
        box next = box_of(boxes + 4 * (int64_t)index, job->centers);
        bool free_standing = true;
        job->heap[0] = job->heap[--count];
        sink(job->heap, count, 0);
        for (int64_t i = 0; i < kept && free_standing; i++)
            free_standing = !overlaps(&next, &job->kept[i], job->overlap);
        if (!free_standing)
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
    const kelp_tensor *most = kelp_ops_in(args, 2), *overlap = kelp_ops_in(args, 3);
    const kelp_tensor *least = kelp_ops_in(args, 4);
    suppress_job job = {.env = args->env, .boxes = boxes->shape[1]};
    if (most != NULL && kelp_tensor_elements(most) > 0)
        job.most = kelp_ops_read_i64(most, 0);
    if (overlap != NULL && kelp_tensor_elements(overlap) > 0)
        job.overlap = (float)kelp_ops_read_f64(overlap, 0);
    job.has_least = least != NULL && kelp_tensor_elements(least) > 0;
    if (job.has_least)
        job.least = (float)kelp_ops_read_f64(least, 0);
    job.centers = kelp_node_attr_i64(args->node, "center_point_box", 0) != 0;
    job.most = KELP_MAX((int64_t)0, KELP_MIN(job.most, job.boxes));
    int64_t classes = scores->shape[0] * scores->shape[1], total = 0, shape[2] = {0, 3};
    size_t room = 0, bytes = 0;
    bool fits = kelp_size_mul((size_t)classes, (size_t)job.most, &room) &&
                kelp_size_mul(room, 3 * sizeof(int64_t), &bytes) &&
                (size_t)job.boxes < SIZE_MAX / 64;
    p->selected = fits ? kelp_op_env_alloc(args->env, bytes + 1) : NULL;
    job.heap = fits ? kelp_op_env_alloc(args->env, (size_t)job.boxes * sizeof *job.heap + 1) : NULL;
    job.kept =
        fits ? kelp_op_env_alloc(args->env, (size_t)job.most * (sizeof *job.kept + 8) + 8) : NULL;
    if (!fits)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                          "NonMaxSuppression: no memory for %lld boxes of %lld classes",
                          (long long)job.most, (long long)classes);
    if (p->selected == NULL || job.heap == NULL || job.kept == NULL) {
        args->deferred = true; /* while plans are made there is no such memory yet */
        return NULL;
    }
    int64_t *kept =
        (int64_t *)(void *)((char *)job.kept + ((size_t)job.most * sizeof *job.kept + 7) / 8 * 8);
    for (int64_t i = 0; i < classes && job.most > 0; i++) {
        int64_t image = i / scores->shape[1];
        int64_t count = suppress(&job, (const float *)boxes->data + image * job.boxes * 4,
                                 (const float *)scores->data + i * job.boxes, kept);
        for (int64_t k = 0; k < count; k++, total++) {
            p->selected[3 * total] = image;
            p->selected[3 * total + 1] = i % scores->shape[1];
            p->selected[3 * total + 2] = kept[k];
        }
    }
    p->count = shape[0] = total;
    return kelp_ops_set(args, 0, KELP_I64, 2, shape);
}

static kelp_status *suppress_invoke(const void *state, kelp_op_args *args) {
    const suppress_plan *p = args->plan;
    (void)state;
    if (p->count > 0)
        memcpy(args->outputs[0]->data, p->selected, (size_t)p->count * 3 * sizeof(int64_t));
    return NULL;
}
KELP_KERNEL(NonMaxSuppression, 0, sizeof(suppress_plan), 0, suppress_reshape, suppress_invoke);
