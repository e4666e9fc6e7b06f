/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over axes. Sums of floats are computed in double. Source: ONNX operator specification.
 */
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

#define BLOCK 512 /* accumulators on the stack */
/* Elements of a part of a reduction to few results. Parts depend on the shape only, so that results
 * do not depend on the number of threads. */
#define PART_ELEMENTS 65536
#define MAX_PARTS 64

/* Adjacent axes are merged if both are kept or both are reduced. Either the last merged axis is
 * reduced, and the elements of a result are runs of adjacent elements ("rows"), or it is kept, and
 * adjacent elements belong to adjacent results. */
typedef struct reduce_plan {
    int32_t kept_rank, folded_rank; /* axes of the result; axes that are reduced; each at least 1 */
    int64_t kept[KELP_MAX_RANK + 1], kept_strides[KELP_MAX_RANK + 1];
    int64_t folded[KELP_MAX_RANK + 1], folded_strides[KELP_MAX_RANK + 1];
    int64_t results, each; /* number of results; elements of each */
    bool rows;
    int64_t parts;
    size_t parts_at; /* accumulators of the parts in scratch memory */
    kelp_dtype dtype;
    reduction kind;
    const void *x;
    void *y, *partial;
} reduce_plan;

static int64_t offset_of(int32_t rank, const int64_t *shape, const int64_t *strides,
                         int64_t index) {
    int64_t offset = 0;
    for (int32_t i = rank; i-- > 0;) {
        offset += index % shape[i] * strides[i];
        index /= shape[i];
    }
    return offset;
}

/* ---- types ---- */
static kelp_fold_type fold_type(kelp_dtype dtype) {
    switch (dtype) {
    case KELP_F32:
        return KELP_FOLD_F32;
    case KELP_F64:
        return KELP_FOLD_F64;
    case KELP_I32:
        return KELP_FOLD_I32;
    case KELP_I64:
        return KELP_FOLD_I64;
    case KELP_U32:
        return KELP_FOLD_U32;
    case KELP_U64:
        return KELP_FOLD_U64;
    case KELP_I8:
        return KELP_FOLD_I8;
    default:
        return KELP_FOLD_U8;
    }
}

static kelp_fold fold_of(reduction kind) {
    switch (kind) {
    case RED_MAX:
    case RED_LOG_SUM_EXP:
        return KELP_FOLD_MAX;
    case RED_MIN:
        return KELP_FOLD_MIN;
    case RED_PROD:
        return KELP_FOLD_PRODUCT;
    case RED_L1:
        return KELP_FOLD_MAGNITUDES;
    case RED_L2:
    case RED_SQUARES:
        return KELP_FOLD_SQUARES;
    default:
        return KELP_FOLD_SUM;
    }
}

static bool is_order(reduction kind) {
    return kind == RED_MAX || kind == RED_MIN || kind == RED_LOG_SUM_EXP;
}

/* Sets accumulators to the result of a reduction without elements: 0, 1 for a product, the lowest
 * value for a maximum, the highest for a minimum. */
static void start(const reduce_plan *p, void *sums, int64_t count) {
    bool lowest = p->kind != RED_MIN, is_float = kelp_ops_is_float(p->dtype);
    if (!is_order(p->kind)) {
        double one = 1;
        uint64_t whole = p->kind == RED_PROD;
        if (p->kind != RED_PROD)
            memset(sums, 0, (size_t)count * 8);
        else
            kelp_ops_fill(sums, 8, count, is_float ? (const void *)&one : (const void *)&whole);
        return;
    }
    union {
        float f32;
        double f64;
        int32_t i32;
        int64_t i64;
        uint32_t u32;
        uint64_t u64;
        int8_t i8;
        uint8_t u8;
    } value = {.u64 = 0};
    switch (p->dtype) {
    case KELP_F32:
        value.f32 = lowest ? -INFINITY : INFINITY;
        break;
    case KELP_F64:
        value.f64 = lowest ? -(double)INFINITY : (double)INFINITY;
        break;
    case KELP_I32:
        value.i32 = lowest ? INT32_MIN : INT32_MAX;
        break;
    case KELP_I64:
        value.i64 = lowest ? INT64_MIN : INT64_MAX;
        break;
    case KELP_U32:
        value.u32 = lowest ? 0 : UINT32_MAX;
        break;
    case KELP_U64:
        value.u64 = lowest ? 0 : UINT64_MAX;
        break;
    case KELP_I8:
        value.i8 = lowest ? INT8_MIN : INT8_MAX;
        break;
    default:
        value.u8 = lowest ? 0 : p->dtype == KELP_BOOL ? 1 : UINT8_MAX;
        break;
    }
    kelp_ops_fill(sums, kelp_ops_element_bytes(p->dtype), count, &value);
}

static size_t sum_bytes(const reduce_plan *p) {
    return is_order(p->kind) ? kelp_ops_element_bytes(p->dtype) : 8;
}

/* ---- reshape ---- */
static void add_axis(int32_t *rank, int64_t *shape, int64_t *strides, int64_t size, int64_t stride,
                     bool merge) {
    if (merge) {
        shape[*rank - 1] *= size;
        strides[*rank - 1] = stride;
    } else {
        shape[*rank] = size;
        strides[(*rank)++] = stride;
    }
}

/* Divides the axes of x into kept and reduced ones. */
static void merge_axes(reduce_plan *p, const kelp_tensor *x, uint32_t mask) {
    int64_t strides[KELP_MAX_RANK];
    int last = -1; /* 1: the axis before is reduced; 0: it is kept */
    kelp_ops_strides(x->rank, x->shape, strides);
    p->results = p->each = 1;
    for (int32_t i = 0; i < x->rank; i++) {
        int folded = (int)(mask >> i & 1);
        *(folded ? &p->each : &p->results) *= x->shape[i];
        if (x->shape[i] == 1)
            continue;
        if (folded)
            add_axis(&p->folded_rank, p->folded, p->folded_strides, x->shape[i], strides[i],
                     last == 1);
        else
            add_axis(&p->kept_rank, p->kept, p->kept_strides, x->shape[i], strides[i], last == 0);
        last = folded;
    }
    p->rows = last != 0;
    if (p->kept_rank == 0)
        add_axis(&p->kept_rank, p->kept, p->kept_strides, 1, 1, false);
    if (p->folded_rank == 0)
        add_axis(&p->folded_rank, p->folded, p->folded_strides, 1, 1, false);
}

static kelp_status *reduce_shapes(kelp_op_args *args) {
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
    int64_t shape[KELP_MAX_RANK];
    int32_t rank = 0;
    for (int32_t i = 0; i < x->rank; i++) {
        bool folded = (mask >> i & 1) != 0;
        if (!folded || keep)
            shape[rank++] = folded ? 1 : x->shape[i];
    }
    merge_axes(args->plan, x, mask);
    return kelp_ops_set(args, 0, x->dtype, rank, shape);
}

static kelp_status *reduce_reshape(kelp_op_args *args, reduction kind) {
    reduce_plan *p = args->plan;
    KELP_TRY(reduce_shapes(args));
    if (args->deferred)
        return NULL;
    p->kind = kind;
    p->dtype = args->inputs[0]->dtype;
    bool narrow = p->dtype == KELP_I8 || p->dtype == KELP_U8 || p->dtype == KELP_BOOL;
    bool number = p->dtype == KELP_F32 || p->dtype == KELP_F64 || p->dtype == KELP_I32 ||
                  p->dtype == KELP_I64 || p->dtype == KELP_U32 || p->dtype == KELP_U64;
    if (!number && !(narrow && (kind == RED_MAX || kind == RED_MIN)))
        return kelp_ops_bad_type(args, p->dtype);
    p->parts = 1;
    if (p->results > 0 && p->results <= BLOCK / 8 && kind != RED_LOG_SUM_EXP)
        p->parts = KELP_MAX((int64_t)1, KELP_MIN(KELP_MIN(p->folded[0], (int64_t)MAX_PARTS),
                                                 p->results * p->each / PART_ELEMENTS));
    return p->parts > 1 ? kelp_ops_scratch(args, p->parts * p->results, 8, &p->parts_at) : NULL;
}

/* ---- accumulation ---- */
/* Adjacent results: `lines` runs of `count` results, whose first element is at `offset`. The lines
 * of rows have one result each. */
typedef struct result_block {
    int64_t offset, lines, line_step, count;
} result_block;

/* Returns the number of results of the block that begins with result `i`, at most BLOCK. */
static int64_t find_block(const reduce_plan *p, int64_t i, int64_t end, result_block *out) {
    int32_t outer = p->rows ? p->kept_rank : p->kept_rank - 1; /* axes of the lines */
    int64_t inner = p->rows ? 1 : p->kept[p->kept_rank - 1], column = i % inner, line = i / inner;
    int64_t run = outer > 0 ? p->kept[outer - 1] : 1; /* lines with one step */
    *out = (result_block){.lines = 1, .line_step = outer > 0 ? p->kept_strides[outer - 1] : 0};
    out->offset = offset_of(outer, p->kept, p->kept_strides, line) + column;
    out->count = KELP_MIN(KELP_MIN(inner - column, end - i), (int64_t)BLOCK);
    if (out->count == inner)
        out->lines = KELP_MIN(KELP_MIN(run - line % run, (end - i) / inner), BLOCK / inner);
    return out->lines * out->count;
}

/* Reduces the elements of a block whose index along the first reduced axis is in [low, high). */
static void fold_block(const reduce_plan *p, const result_block *block, int64_t low, int64_t high,
                       void *sums) {
    int32_t inner = p->folded_rank - (p->rows ? 2 : 1); /* first axis of the kernel */
    int64_t sizes[KELP_MAX_RANK + 1], outer = 1;
    size_t bytes = kelp_ops_element_bytes(p->dtype);
    const kelp_fold_kernels *kernels =
        &kelp_reduce_kernels_get()->fold[fold_type(p->dtype)][fold_of(p->kind)];
    memcpy(sizes, p->folded, sizeof sizes);
    sizes[0] = high - low;
    kelp_fold_job job = {.sums = sums, .lines = block->lines, .line_step = block->line_step};
    job.rows = inner >= 0 ? sizes[inner] : 1;
    job.row_step = inner >= 0 ? p->folded_strides[inner] : 0;
    job.count = p->rows ? sizes[p->folded_rank - 1] : block->count;
    for (int32_t i = 0; i < inner; i++)
        outer *= sizes[i];
    for (int64_t i = 0; i < outer; i++) {
        int64_t at = block->offset + low * p->folded_strides[0];
        if (inner > 0)
            at += offset_of(inner, sizes, p->folded_strides, i);
        job.x = (const char *)p->x + (size_t)at * bytes;
        (p->rows ? kernels->rows : kernels->columns)(&job);
    }
}

/* ---- results ---- */
static double finish(const reduce_plan *p, double sum) {
    if (p->kind == RED_MEAN)
        return sum / (double)p->each;
    if (p->kind == RED_L2)
        return sqrt(sum);
    return p->kind == RED_LOG_SUM ? log(sum) : sum;
}

/* The quotient of a mean is that of signed integers if the type is signed. */
static uint64_t finish_whole(const reduce_plan *p, uint64_t sum) {
    bool is_signed = p->dtype == KELP_I32 || p->dtype == KELP_I64;
    int64_t each = KELP_MAX((int64_t)1, p->each);
    if (p->kind == RED_MEAN)
        return is_signed ? (uint64_t)((int64_t)sum / each) : sum / (uint64_t)each;
    if (p->kind != RED_L2 && p->kind != RED_LOG_SUM)
        return sum;
    double value = finish(p, is_signed ? (double)(int64_t)sum : (double)sum);
    return is_signed ? (uint64_t)(int64_t)value : (uint64_t)value;
}

/* Writes the results of `count` accumulators to y. */
static void finish_block(const reduce_plan *p, const void *sums, int64_t count, void *y) {
    if (is_order(p->kind)) {
        memcpy(y, sums, (size_t)count * kelp_ops_element_bytes(p->dtype));
    } else if (p->dtype == KELP_F32) {
        for (int64_t i = 0; i < count; i++)
            ((float *)y)[i] = (float)finish(p, ((const double *)sums)[i]);
    } else if (p->dtype == KELP_F64) {
        for (int64_t i = 0; i < count; i++)
            ((double *)y)[i] = finish(p, ((const double *)sums)[i]);
    } else if (p->dtype == KELP_I64 || p->dtype == KELP_U64) {
        for (int64_t i = 0; i < count; i++)
            ((uint64_t *)y)[i] = finish_whole(p, ((const uint64_t *)sums)[i]);
    } else {
        for (int64_t i = 0; i < count; i++)
            ((uint32_t *)y)[i] = (uint32_t)finish_whole(p, ((const uint64_t *)sums)[i]);
    }
}

static void reduce_range(void *userp, int64_t begin, int64_t end, int worker) {
    const reduce_plan *p = userp;
    size_t bytes = kelp_ops_element_bytes(p->dtype);
    (void)worker;
    for (int64_t i = begin, count; i < end; i += count) {
        uint64_t sums[BLOCK];
        result_block block;
        count = find_block(p, i, end, &block);
        start(p, sums, count);
        fold_block(p, &block, 0, p->folded[0], sums);
        finish_block(p, sums, count, (char *)p->y + (size_t)i * bytes);
    }
}

/* ---- few results of many elements ---- */
static void reduce_parts(void *userp, int64_t begin, int64_t end, int worker) {
    const reduce_plan *p = userp;
    (void)worker;
    for (int64_t part = begin; part < end; part++) {
        char *sums = (char *)p->partial + (size_t)(part * p->results) * 8;
        int64_t low = p->folded[0] * part / p->parts, high = p->folded[0] * (part + 1) / p->parts;
        start(p, sums, p->results);
        for (int64_t i = 0, count; i < p->results; i += count) {
            result_block block;
            count = find_block(p, i, p->results, &block);
            fold_block(p, &block, low, high, sums + (size_t)i * sum_bytes(p));
        }
    }
}

/* Adds the accumulators of the parts. Those of sums have the type double or uint64_t. */
static void join_parts(const reduce_plan *p) {
    uint64_t sums[BLOCK];
    bool order = is_order(p->kind), is_float = kelp_ops_is_float(p->dtype);
    kelp_fold fold = order || p->kind == RED_PROD ? fold_of(p->kind) : KELP_FOLD_SUM;
    kelp_fold_type type = order ? fold_type(p->dtype) : is_float ? KELP_FOLD_F64 : KELP_FOLD_U64;
    kelp_fold_job job = {.x = p->partial,
                         .sums = sums,
                         .lines = 1,
                         .rows = p->parts,
                         .row_step = p->results * 8 / (int64_t)sum_bytes(p),
                         .count = p->results};
    KELP_ASSERT(p->results <= BLOCK);
    start(p, sums, p->results);
    kelp_reduce_kernels_get()->fold[type][fold].columns(&job);
    finish_block(p, sums, p->results, p->y);
}

/* ---- the logarithm of a sum of exponentials ---- */
/* Adds exp(x - max) of `count` floats to sums, each to its own or all to the first. */
static void add_exp(const float *x, int64_t count, const float *max, bool rows, double *sums) {
    const kelp_elementwise_kernels *kernels = kelp_elementwise_kernels_get();
    const kelp_fold_kernels *sum = &kelp_reduce_kernels_get()->fold[KELP_FOLD_F32][KELP_FOLD_SUM];
    float block[BLOCK];
    for (int64_t i = 0, n; i < count; i += n) {
        n = KELP_MIN(count - i, (int64_t)BLOCK);
        for (int64_t k = 0; k < n; k++)
            block[k] = x[i + k] - max[rows ? 0 : i + k];
        kernels->act[KELP_ACT_EXP](block, block, n);
        kelp_fold_job job = {
            .x = block, .sums = rows ? sums : sums + i, .lines = 1, .rows = 1, .count = n};
        (rows ? sum->rows : sum->columns)(&job);
    }
}

/* Computes log(sum(exp(x))) relative to the maxima, so that it does not overflow. An infinite or
 * NaN maximum is the result. */
static void log_sum_exp_f32(const reduce_plan *p, const result_block *block, float *y) {
    int64_t count = block->lines * block->count, inner = p->folded_rank - 1;
    float max[BLOCK], base[BLOCK];
    double sums[BLOCK] = {0};
    start(p, max, count);
    fold_block(p, block, 0, p->folded[0], max);
    for (int64_t i = 0; i < count; i++)
        base[i] = isfinite(max[i]) ? max[i] : 0;
    for (int64_t line = 0; line < block->lines; line++)
        for (int64_t i = 0; i < p->each; i += p->rows ? p->folded[inner] : 1) {
            const float *x = (const float *)p->x + block->offset + line * block->line_step +
                             offset_of(p->folded_rank, p->folded, p->folded_strides, i);
            int64_t at = line * block->count;
            add_exp(x, p->rows ? p->folded[inner] : block->count, base + at, p->rows, sums + at);
        }
    for (int64_t i = 0; i < count; i++)
        y[i] = isfinite(max[i]) ? base[i] + (float)log(sums[i]) : max[i];
}

/* The same for one result of any type. */
static double log_sum_exp(const reduce_plan *p, int64_t offset) {
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

static void log_sum_exp_range(void *userp, int64_t begin, int64_t end, int worker) {
    const reduce_plan *p = userp;
    (void)worker;
    for (int64_t i = begin, count; i < end; i += count) {
        result_block block;
        count = find_block(p, i, end, &block);
        if (p->dtype == KELP_F32) {
            log_sum_exp_f32(p, &block, (float *)p->y + i);
            continue;
        }
        count = 1;
        double value = log_sum_exp(p, block.offset);
        if (!kelp_ops_is_float(p->dtype)) /* truncated like other integer results */
            value = trunc(value);
        kelp_real_store_f64(p->dtype, p->y, i, 1, &value);
    }
}

/* ---- invoke ---- */
static kelp_status *reduce_invoke(const void *state, kelp_op_args *args) {
    reduce_plan *p = args->plan;
    (void)state;
    KELP_ASSERT(p->kept_rank > 0 && p->folded_rank > 0);
    KELP_ASSERT(p->results == kelp_tensor_elements(args->outputs[0]));
    KELP_ASSERT(p->dtype == args->inputs[0]->dtype);
    p->x = args->inputs[0]->data;
    p->y = args->outputs[0]->data;
    if (p->kind == RED_LOG_SUM_EXP) {
        kelp_op_parallel(args->env, p->results, kelp_cpu_grain(KELP_GRAIN_ELEMENTS / 4, p->each),
                         log_sum_exp_range, p);
    } else if (p->parts > 1) {
        p->partial = kelp_ops_scratch_at(args, p->parts_at);
        kelp_op_parallel(args->env, p->parts, 1, reduce_parts, p);
        join_parts(p);
    } else {
        kelp_op_parallel(args->env, p->results, kelp_cpu_grain(4 * KELP_GRAIN_ELEMENTS, p->each),
                         reduce_range, p);
    }
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
