/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over axes. Source: ONNX operator specification. */
#include "base/assert.h"
#include "cpu/kernels/elementwise/elementwise_kernels.h"
#include "cpu/kernels/reduce/reduce_kernels.h"
#include "cpu/ops/converted.h"
#include "tensor/real.h"

#include <float.h>
#include <math.h>

typedef enum reduction {
    RED_SUM,
    RED_MEAN,
    RED_MAX,
    RED_MIN,
    RED_PROD,
    RED_L1,
    RED_L2,
    RED_SQUARES,
    RED_LOG_SUM,
    RED_LOG_SUM_EXP
} reduction;

typedef struct reduce_plan {
    int32_t kept_rank, folded_rank; /* axes of the result; axes that are reduced */
    int64_t kept[KELP_MAX_RANK], kept_strides[KELP_MAX_RANK];
    int64_t folded[KELP_MAX_RANK], folded_strides[KELP_MAX_RANK];
    int64_t results, each; /* number of results; elements of each */
    const void *x;
    void *y;
    kelp_dtype dtype;
    reduction kind;
} reduce_plan;

static int64_t offset_of(int32_t rank, const int64_t *shape, const int64_t *strides,
                         int64_t index) {
    int64_t offset = 0;
    for (int32_t i = rank; i-- > 1;) {
        offset += index % shape[i] * strides[i];
        index /= shape[i];
    }
    return rank > 0 ? offset + index * strides[0] : 0;
}

/* Appends an axis, or merges it with the last one if `follows` is set. */
static void add_axis(int64_t size, int64_t stride, bool follows, int32_t *inout_rank,
                     int64_t *shape, int64_t *strides) {
    int32_t last = *inout_rank - 1;
    if (follows && last >= 0) {
        shape[last] *= size;
        strides[last] = stride;
        return;
    }
    shape[*inout_rank] = size;
    strides[(*inout_rank)++] = stride;
}

static kelp_status *reduce_shapes(kelp_op_args *args) {
    reduce_plan *p = args->plan;
    uint32_t mask = 0;
    bool found = false;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    KELP_TRY(kelp_ops_axes(args, 1, x->rank, &mask, &found));
    if (args->deferred)
        return NULL;
    /* with noop_with_empty_axes, each element is reduced alone: squares and logarithms apply */
    if (!found && kelp_node_attr_i64(args->node, "noop_with_empty_axes", 0) == 0)
        mask = UINT32_MAX;
    bool keep = kelp_node_attr_i64(args->node, "keepdims", 1) != 0;
    int64_t shape[KELP_MAX_RANK], strides[KELP_MAX_RANK];
    int32_t rank = 0;
    kelp_ops_strides(x->rank, x->shape, strides);
    p->results = p->each = 1;
    for (int32_t i = 0; i < x->rank; i++) {
        bool folds = (mask >> i & 1) != 0, follows = i > 0 && folds == (mask >> (i - 1) & 1);
        if (folds) {
            add_axis(x->shape[i], strides[i], follows, &p->folded_rank, p->folded,
                     p->folded_strides);
            p->each *= x->shape[i];
            if (keep)
                shape[rank++] = 1;
        } else {
            add_axis(x->shape[i], strides[i], follows, &p->kept_rank, p->kept, p->kept_strides);
            p->results *= x->shape[i];
            shape[rank++] = x->shape[i];
        }
    }
    return kelp_ops_set(args, 0, x->dtype, rank, shape);
}

/* Return the size and the stride of the innermost reduced axis, and the offset of its row `row`. */
static int64_t inner_count(const reduce_plan *p) {
    return p->folded_rank > 0 ? p->folded[p->folded_rank - 1] : 1;
}
static int64_t inner_step(const reduce_plan *p) {
    return p->folded_rank > 0 ? p->folded_strides[p->folded_rank - 1] : 1;
}
static int64_t row_offset(const reduce_plan *p, int64_t row) {
    return offset_of(p->folded_rank - 1, p->folded, p->folded_strides, row);
}

#define TYPE float
#define WIDE double
#define MODULAR double
#define FOLD_NAME f32
#define LOWEST -(double)INFINITY
#define HIGHEST (double)INFINITY
#include "cpu/ops/reduce/fold.inc"

#define TYPE double
#define WIDE double
#define MODULAR double
#define FOLD_NAME f64
#define LOWEST -(double)INFINITY
#define HIGHEST (double)INFINITY
#include "cpu/ops/reduce/fold.inc"

#define TYPE int32_t
#define WIDE int64_t
#define MODULAR uint64_t
#define FOLD_NAME i32
#define LOWEST INT32_MIN
#define HIGHEST INT32_MAX
#include "cpu/ops/reduce/fold.inc"

#define TYPE int64_t
#define WIDE int64_t
#define MODULAR uint64_t
#define FOLD_NAME i64
#define LOWEST INT64_MIN
#define HIGHEST INT64_MAX
#include "cpu/ops/reduce/fold.inc"

#define TYPE uint32_t
#define WIDE uint64_t
#define MODULAR uint64_t
#define FOLD_NAME u32
#define LOWEST 0
#define HIGHEST UINT32_MAX
#include "cpu/ops/reduce/fold.inc"

#define TYPE uint64_t
#define WIDE uint64_t
#define MODULAR uint64_t
#define FOLD_NAME u64
#define LOWEST 0
#define HIGHEST UINT64_MAX
#include "cpu/ops/reduce/fold.inc"

#define TYPE int8_t
#define WIDE int64_t
#define MODULAR uint64_t
#define FOLD_NAME i8
#define LOWEST INT8_MIN
#define HIGHEST INT8_MAX
#include "cpu/ops/reduce/fold.inc"

#define TYPE uint8_t
#define WIDE int64_t
#define MODULAR uint64_t
#define FOLD_NAME u8
#define LOWEST 0
#define HIGHEST UINT8_MAX
#include "cpu/ops/reduce/fold.inc"

#define TYPE uint8_t
#define WIDE int64_t
#define MODULAR uint64_t
#define FOLD_NAME flag
#define LOWEST 0
#define HIGHEST 1
#include "cpu/ops/reduce/fold.inc"

/* Computes log(sum(exp(x))) relative to the maximum, so that it does not overflow. */
static double fold_exp(const reduce_plan *p, int64_t offset) {
    double max = -(double)INFINITY, sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < p->each; i++) {
            int64_t at = offset + offset_of(p->folded_rank, p->folded, p->folded_strides, i);
            double value;
            kelp_real_load_f64(p->dtype, p->x, at, 1, &value);
            if (pass == 0)
                max = value > max ? value : max;
            else
                sum += value == max ? 1 : exp(value - max); /* inf - inf would be NaN */
        }
    return max + log(sum);
}

static double finish(const reduce_plan *p, double sum) {
    if (p->kind == RED_MEAN)
        return sum / (double)p->each;
    if (p->kind == RED_L2)
        return sqrt(sum);
    return p->kind == RED_LOG_SUM ? log(sum) : sum;
}

static uint64_t finish_whole(const reduce_plan *p, uint64_t sum) {
    if (p->kind == RED_MEAN)
        return sum / (uint64_t)KELP_MAX((int64_t)1, p->each);
    return p->kind == RED_L2 || p->kind == RED_LOG_SUM ? (uint64_t)finish(p, (double)sum) : sum;
}

/* ---- vectorized reductions of floats ---- */
#define COLUMNS 256 /* results that are computed at a time if their elements are adjacent */
#define PARTS 16    /* of the elements, for the threads, if there is one result */

/* Returns the fold of a reduction; KELP_FOLD_COUNT if it is not vectorized. */
static kelp_fold fold_of(const reduce_plan *p) {
    if (p->dtype != KELP_F32)
        return KELP_FOLD_COUNT;
    switch (p->kind) {
    case RED_SUM:
    case RED_MEAN:
    case RED_LOG_SUM:
        return KELP_FOLD_SUM;
    case RED_SQUARES:
    case RED_L2:
        return KELP_FOLD_SQUARES;
    case RED_L1:
        return KELP_FOLD_MAGNITUDES;
    case RED_MAX:
        return KELP_FOLD_MAX;
    case RED_MIN:
        return KELP_FOLD_MIN;
    case RED_PROD:
    case RED_LOG_SUM_EXP:
        break;
    }
    return KELP_FOLD_COUNT;
}

static double initial(kelp_fold fold) {
    return fold == KELP_FOLD_MAX   ? -(double)INFINITY
           : fold == KELP_FOLD_MIN ? (double)INFINITY
                                   : 0.0;
}

/* Return true if the elements of a result, or the results themselves, are contiguous. */
static bool is_rows(const reduce_plan *p) {
    return p->folded_rank > 0 && p->folded_strides[p->folded_rank - 1] == 1;
}
static bool is_columns(const reduce_plan *p) {
    return p->kept_rank > 0 && p->kept_strides[p->kept_rank - 1] == 1;
}

static double fold_rows(const reduce_plan *p, kelp_fold fold, const float *x) {
    const kelp_reduce_kernels *kernels = kelp_reduce_kernels_get();
    int64_t inner = inner_count(p);
    double sum = initial(fold);
    for (int64_t row = 0; inner > 0 && row < p->each / inner; row++)
        sum = kelp_fold_two(fold, sum, kernels->row[fold](x + row_offset(p, row), inner));
    return sum;
}

/* Reduces `count` adjacent columns. */
static void fold_columns(const reduce_plan *p, kelp_fold fold, const float *x, int64_t count,
                         double *sum) {
    const kelp_reduce_kernels *kernels = kelp_reduce_kernels_get();
    int64_t inner = inner_count(p);
    for (int64_t i = 0; i < count; i++)
        sum[i] = initial(fold);
    for (int64_t row = 0; inner > 0 && row < p->each / inner; row++)
        kernels->columns[fold](x + row_offset(p, row), inner_step(p), inner, count, sum);
}

static void fold_range(const reduce_plan *p, kelp_fold fold, int64_t begin, int64_t end) {
    const float *x = p->x;
    float *y = p->y;
    bool rows = is_rows(p);
    int64_t adjacent = rows ? 1 : p->kept[p->kept_rank - 1];
    for (int64_t i = begin, count = 1; i < end; i += count) {
        double sum[COLUMNS];
        int64_t at = offset_of(p->kept_rank, p->kept, p->kept_strides, i);
        if (rows) {
            sum[0] = fold_rows(p, fold, x + at);
        } else {
            count = KELP_MIN(KELP_MIN(end - i, adjacent - i % adjacent), (int64_t)COLUMNS);
            fold_columns(p, fold, x + at, count, sum);
        }
        for (int64_t k = 0; k < count; k++)
            y[i + k] = (float)finish(p, sum[k]);
    }
}

/* One result of contiguous elements, in parts. */
typedef struct whole_job {
    const reduce_plan *p;
    kelp_fold fold;
    double parts[PARTS];
} whole_job;

static void whole_range(void *userp, int64_t begin, int64_t end, int worker) {
    whole_job *job = userp;
    const reduce_plan *p = job->p;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        int64_t first = p->each * i / PARTS, last = p->each * (i + 1) / PARTS;
        job->parts[i] =
            kelp_reduce_kernels_get()->row[job->fold]((const float *)p->x + first, last - first);
    }
}

/* Returns false if the reduction has several results or is short. The parts are the same for any
 * number of threads. */
static bool reduce_whole(const kelp_op_env *env, const reduce_plan *p) {
    whole_job job = {.p = p, .fold = fold_of(p)};
    if (job.fold == KELP_FOLD_COUNT || p->results != 1 || p->folded_rank != 1 || !is_rows(p) ||
        p->each < 4 * KELP_GRAIN_ELEMENTS)
        return false;
    kelp_op_parallel(env, PARTS, kelp_cpu_grain(4 * KELP_GRAIN_ELEMENTS, p->each / PARTS),
                     whole_range, &job);
    double sum = job.parts[0];
    for (int i = 1; i < PARTS; i++)
        sum = kelp_fold_two(job.fold, sum, job.parts[i]);
    *(float *)p->y = (float)finish(p, sum);
    return true;
}

/* Returns log(sum(exp(x))) of a row; false if the maximum is not finite. */
static bool fold_exp_row(const float *x, int64_t count, float *y) {
    float max = (float)kelp_reduce_kernels_get()->row[KELP_FOLD_MAX](x, count), block[COLUMNS];
    double sum = 0;
    if (!(fabsf(max) < INFINITY))
        return false;
    for (int64_t i = 0; i < count; i += COLUMNS) {
        int64_t n = KELP_MIN((int64_t)COLUMNS, count - i);
        for (int64_t k = 0; k < n; k++)
            block[k] = x[i + k] - max;
        kelp_elementwise_kernels_get()->act[KELP_ACT_EXP](block, block, n);
        sum += kelp_reduce_kernels_get()->row[KELP_FOLD_SUM](block, n);
    }
    *y = max + (float)log(sum);
    return true;
}

static void reduce_range(void *userp, int64_t begin, int64_t end, int worker) {
    const reduce_plan *p = userp;
    (void)worker;
    kelp_fold fold = fold_of(p);
    if (fold != KELP_FOLD_COUNT && (is_rows(p) || is_columns(p))) {
        fold_range(p, fold, begin, end);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        int64_t at = offset_of(p->kept_rank, p->kept, p->kept_strides, i);
        if (p->kind == RED_LOG_SUM_EXP && p->dtype == KELP_F32 && p->folded_rank == 1 &&
            is_rows(p) && fold_exp_row((const float *)p->x + at, p->each, (float *)p->y + i)) {
            continue;
        } else if (p->kind == RED_LOG_SUM_EXP) {
            double value = fold_exp(p, at);
            if (!kelp_ops_is_float(p->dtype)) /* truncated like other integer results */
                value = trunc(value);
            kelp_real_store_f64(p->dtype, p->y, i, 1, &value);
        } else if (p->dtype == KELP_F32)
            ((float *)p->y)[i] = (float)finish(p, fold_f32(p, (const float *)p->x + at));
        else if (p->dtype == KELP_F64)
            ((double *)p->y)[i] = finish(p, fold_f64(p, (const double *)p->x + at));
        else if (p->dtype == KELP_I64) {
            int64_t sum = fold_i64(p, (const int64_t *)p->x + at);
            ((int64_t *)p->y)[i] =
                p->kind == RED_MEAN ? sum / KELP_MAX((int64_t)1, p->each)
                : p->kind == RED_SUM
                    ? sum
                    : (p->kind == RED_L2 || p->kind == RED_LOG_SUM ? (int64_t)finish(p, (double)sum)
                                                                   : sum);
        } else if (p->dtype == KELP_I32) {
            int64_t sum = fold_i32(p, (const int32_t *)p->x + at);
            ((int32_t *)p->y)[i] =
                (int32_t)(p->kind == RED_MEAN ? sum / KELP_MAX((int64_t)1, p->each)
                          : p->kind == RED_L2 || p->kind == RED_LOG_SUM
                              ? (int64_t)finish(p, (double)sum)
                              : sum);
        } else if (p->dtype == KELP_U32) {
            ((uint32_t *)p->y)[i] =
                (uint32_t)finish_whole(p, fold_u32(p, (const uint32_t *)p->x + at));
        } else if (p->dtype == KELP_U64) {
            ((uint64_t *)p->y)[i] = finish_whole(p, fold_u64(p, (const uint64_t *)p->x + at));
        } else if (p->dtype == KELP_I8) {
            ((int8_t *)p->y)[i] = (int8_t)fold_i8(p, (const int8_t *)p->x + at);
        } else if (p->dtype == KELP_BOOL) {
            ((uint8_t *)p->y)[i] = (uint8_t)fold_flag(p, (const uint8_t *)p->x + at);
        } else {
            ((uint8_t *)p->y)[i] = (uint8_t)fold_u8(p, (const uint8_t *)p->x + at);
        }
    }
}

static kelp_status *reduce_reshape(kelp_op_args *args, reduction kind) {
    reduce_plan *p = args->plan;
    KELP_TRY(reduce_shapes(args));
    if (args->deferred)
        return NULL;
    p->kind = kind;
    p->dtype = args->inputs[0]->dtype;
    bool narrow = p->dtype == KELP_I8 || p->dtype == KELP_U8 || p->dtype == KELP_BOOL;
    bool order = kind == RED_MAX || kind == RED_MIN;
    bool number = p->dtype == KELP_F32 || p->dtype == KELP_F64 || p->dtype == KELP_I32 ||
                  p->dtype == KELP_I64 || p->dtype == KELP_U32 || p->dtype == KELP_U64;
    if (!number && !(narrow && order))
        return kelp_ops_bad_type(args, p->dtype);
    return NULL;
}

static kelp_status *reduce_invoke(const void *state, kelp_op_args *args) {
    reduce_plan *p = args->plan;
    (void)state;
    KELP_ASSERT(p->kept_rank + p->folded_rank == args->inputs[0]->rank);
    KELP_ASSERT(p->results == kelp_tensor_elements(args->outputs[0]));
    KELP_ASSERT(p->dtype == args->inputs[0]->dtype);
    p->x = args->inputs[0]->data;
    p->y = args->outputs[0]->data;
    int64_t work = fold_of(p) != KELP_FOLD_COUNT ? 4 * KELP_GRAIN_ELEMENTS : KELP_GRAIN_ELEMENTS;
    if (!reduce_whole(args->env, p))
        kelp_op_parallel(args->env, p->results, kelp_cpu_grain(work, p->each), reduce_range, p);
    return NULL;
}

#define REDUCE(name, kind)                                                                        \
    static kelp_status *reshape_##name(const void *state, kelp_op_args *args) {                   \
        (void)state;                                                                              \
        return reduce_reshape(args, kind);                                                        \
    }                                                                                             \
    KELP_CONVERTED_PHASES(name, kelp_widened, sizeof(reduce_plan), reshape_##name, reduce_invoke) \
    KELP_KERNEL(name, 0, KELP_CONVERTED_PLAN(sizeof(reduce_plan)), 0, name##_reshape_any,         \
                name##_invoke_any);
REDUCE(ReduceSum, RED_SUM)
REDUCE(ReduceMean, RED_MEAN)
REDUCE(ReduceMax, RED_MAX)
REDUCE(ReduceMin, RED_MIN)
REDUCE(ReduceProd, RED_PROD)
REDUCE(ReduceL1, RED_L1)
REDUCE(ReduceL2, RED_L2)
REDUCE(ReduceSumSquare, RED_SQUARES)
REDUCE(ReduceLogSum, RED_LOG_SUM)
REDUCE(ReduceLogSumExp, RED_LOG_SUM_EXP)
