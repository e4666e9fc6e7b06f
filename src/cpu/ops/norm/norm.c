/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, LogSoftmax, LayerNormalization, RMSNormalization, SkipLayerNorm. Source: ONNX operator
 * specification. */
#include "base/assert.h"
#include "cpu/kernels/elementwise/elementwise_kernels.h"
#include "cpu/kernels/layout/layout_kernels.h"
#include "cpu/kernels/norm/norm_kernels.h"
#include "cpu/ops/converted.h"
#include "cpu/ops/norm/softmax.h"
#include "tensor/real.h"

#include <math.h>

/* ---- Softmax ---- */
typedef struct softmax_plan {
    int64_t outer, length, inner;
    bool log;
    const float *x;
    float *y;
    const kelp_op_args *args;
} softmax_plan;

/* Before version 13 the tensor is a matrix, split at the axis; since then only the axis counts. */
static kelp_status *softmax_reshape(kelp_op_args *args, bool log) {
    softmax_plan *p = args->plan;
    int32_t axis = 0;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    bool matrix = kelp_ops_version(args) < 13;
    if (!kelp_ops_is_float(x->dtype))
        return kelp_ops_bad_type(args, x->dtype);
    KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", matrix ? 1 : -1), x->rank,
                           &axis));
    p->log = log;
    p->outer = kelp_ops_product(x->shape, 0, axis);
    p->length = matrix ? kelp_ops_product(x->shape, axis, x->rank) : x->shape[axis];
    p->inner = matrix ? 1 : kelp_ops_product(x->shape, axis + 1, x->rank);
    return kelp_ops_set_like(args, 0, x);
}

/* Computes the softmax of rows of two: the sigmoid of the difference. */
static void softmax_pairs(const softmax_plan *p, const kelp_elementwise_kernels *elementwise,
                          int64_t begin, int64_t end) {
    enum { BLOCK = 128 };
    float first[BLOCK], second[BLOCK];
    for (int64_t row = begin; row < end; row += BLOCK) {
        int64_t count = KELP_MIN(end - row, (int64_t)BLOCK);
        const float *x = p->x + 2 * row;
        float *y = p->y + 2 * row;
        for (int64_t i = 0; i < count; i++) {
            first[i] = x[2 * i] - x[2 * i + 1];
            second[i] = x[2 * i + 1] - x[2 * i];
        }
        elementwise->act[KELP_ACT_SIGMOID](first, first, count);
        elementwise->act[KELP_ACT_SIGMOID](second, second, count);
        for (int64_t i = 0; i < count; i++) {
            y[2 * i] = first[i];
            y[2 * i + 1] = second[i];
        }
    }
}

/* Length of short rows, which are computed as columns, and rows of a block of them. */
#define SHORT_LENGTH 24
#define SHORT_ROWS 64

static void softmax_short_rows(const softmax_plan *p, int64_t begin, int64_t end) {
    const kelp_layout_kernels *layout = kelp_layout_kernels_get();
    float block[SHORT_LENGTH * SHORT_ROWS];
    KELP_ASSERT(p->length <= SHORT_LENGTH);
    for (int64_t row = begin; row < end; row += SHORT_ROWS) {
        int64_t rows = KELP_MIN((int64_t)SHORT_ROWS, end - row), at = row * p->length;
        layout->transpose(block, SHORT_ROWS, (const void *)(p->x + at), p->length, rows, p->length);
        kelp_norm_kernels_get()->softmax_columns(block, block, SHORT_ROWS, p->length, rows, p->log);
        layout->transpose(p->y + at, p->length, (const void *)block, SHORT_ROWS, p->length, rows);
    }
}

static void softmax_rows(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_norm_kernels *norm = kelp_norm_kernels_get();
    const softmax_plan *p = userp;
    (void)worker;
    if (p->length == 2 && !p->log && end - begin > 4) {
        softmax_pairs(p, kelp_elementwise_kernels_get(), begin, end);
        return;
    }
    if (p->length <= SHORT_LENGTH && end - begin >= SHORT_ROWS / 4) {
        softmax_short_rows(p, begin, end);
        return;
    }
    for (int64_t i = begin; i < end; i++)
        norm->softmax(p->x + i * p->length, NULL, 1.0f, p->y + i * p->length, p->length, p->log);
}

/* Columns of an axis that is not the last, which are computed at a time. */
#define COLUMNS 512

static int64_t column_blocks(const softmax_plan *p) {
    return kelp_divide_up(p->inner, COLUMNS);
}

static void softmax_columns(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_norm_kernels *norm = kelp_norm_kernels_get();
    const softmax_plan *p = userp;
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        int64_t block = at % column_blocks(p) * COLUMNS;
        int64_t first = at / column_blocks(p) * p->length * p->inner + block;
        norm->softmax_columns(p->x + first, p->y + first, p->inner, p->length,
                              KELP_MIN((int64_t)COLUMNS, p->inner - block), p->log);
    }
}

static void softmax_floats(const kelp_op_env *env, softmax_plan *p) {
    int64_t columns = KELP_MIN((int64_t)COLUMNS, p->inner);
    if (p->inner == 1)
        kelp_op_parallel(env, p->outer, kelp_cpu_grain(KELP_GRAIN_ELEMENTS / 4, p->length),
                         softmax_rows, p);
    else
        kelp_op_parallel(env, p->outer * column_blocks(p),
                         kelp_cpu_grain(KELP_GRAIN_ELEMENTS / 2, p->length * columns),
                         softmax_columns, p);
}

void kelp_softmax_run(const kelp_op_env *env, const kelp_softmax *s) {
    softmax_plan p = {.outer = s->outer,
                      .length = s->length,
                      .inner = s->inner,
                      .log = s->log,
                      .x = s->x,
                      .y = s->y};
    softmax_floats(env, &p);
}

/* Computes the softmax of other types than float32, in double. */
static void softmax_typed(void *userp, int64_t begin, int64_t end, int worker) {
    const softmax_plan *p = userp;
    const kelp_tensor *x = p->args->inputs[0];
    kelp_tensor *y = p->args->outputs[0];
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        int64_t first = at / p->inner * p->length * p->inner + at % p->inner;
        double max = -INFINITY, sum = 0;
        for (int64_t k = 0; k < p->length; k++)
            max = fmax(max, kelp_ops_read_f64(x, first + k * p->inner));
        for (int64_t k = 0; k < p->length; k++)
            sum += exp(kelp_ops_read_f64(x, first + k * p->inner) - max);
        double log_sum = log(sum);
        for (int64_t k = 0; k < p->length; k++) {
            double value = kelp_ops_read_f64(x, first + k * p->inner) - max;
            kelp_tensor_set_f64(y, first + k * p->inner,
                                p->log ? value - log_sum : exp(value) / sum);
        }
    }
}

static kelp_status *softmax_invoke(const void *state, kelp_op_args *args) {
    softmax_plan *p = args->plan;
    (void)state;
    KELP_ASSERT(p->outer * p->length * p->inner == kelp_tensor_elements(args->inputs[0]));
    p->args = args;
    p->x = args->inputs[0]->data;
    p->y = args->outputs[0]->data;
    if (args->inputs[0]->dtype == KELP_F32)
        softmax_floats(args->env, p);
    else
        kelp_op_parallel(args->env, p->outer * p->inner,
                         kelp_cpu_grain(KELP_GRAIN_ELEMENTS / 4, p->length), softmax_typed, p);
    return NULL;
}

static kelp_status *reshape_Softmax(const void *state, kelp_op_args *args) {
    (void)state;
    return softmax_reshape(args, false);
}

static kelp_status *reshape_LogSoftmax(const void *state, kelp_op_args *args) {
    (void)state;
    return softmax_reshape(args, true);
}
KELP_KERNEL(Softmax, KELP_OP_INPLACE_0, sizeof(softmax_plan), 0, reshape_Softmax, softmax_invoke);
KELP_KERNEL(LogSoftmax, KELP_OP_INPLACE_0, sizeof(softmax_plan), 0, reshape_LogSoftmax,
            softmax_invoke);

/* ---- layer norms ---- */
/* A scale or bias: rows of the length of those of x, repeated if there are fewer. */
typedef struct scale_plan {
    kelp_tensor tensor; /* the input, or its expanded copy in scratch memory */
    int64_t rows;
    bool present, expanded;
    int32_t rank; /* of the expanded copy; `strides` are the source's */
    int64_t shape[KELP_MAX_RANK], strides[KELP_MAX_RANK];
    size_t offset, float_at; /* in scratch memory: of the expanded copy, and of floats */
    const float *data;
} scale_plan;

typedef struct norm_plan {
    int64_t rows, count;
    float epsilon;
    bool rms, typed;
    const float *x, *skip;
    float *y, *sum, *mean, *inverse;
    scale_plan gamma, beta;
    size_t row,
        unused;      /* in scratch memory: a row of other types than float; the omitted output 0 */
    kelp_tensor out; /* output 0, or scratch memory if it is omitted */
    const kelp_op_args *args;
} norm_plan;

/* Returns true if the scale broadcasts to `shape`, and sets the first axis along which it is not
 * broadcast. */
static bool scale_fits(const kelp_tensor *scale, int32_t rank, const int64_t *shape,
                       int32_t *out_first) {
    *out_first = rank;
    for (int32_t i = scale->rank - 1, at = rank - 1; i >= 0; i--, at--) {
        if (scale->shape[i] != 1 && (at < 0 || scale->shape[i] != shape[at]))
            return false;
        if (scale->shape[i] != 1)
            *out_first = at;
    }
    return true;
}

/* Plans input `index` for rows of `shape` from `axis` on. It is read in place if it is one row,
 * else expanded to the rows that differ. */
static kelp_status *scale_reshape(kelp_op_args *args, int32_t index, int32_t axis, int32_t rank,
                                  const int64_t *shape, scale_plan *s) {
    const kelp_tensor *scale = kelp_ops_in(args, index);
    int64_t count = kelp_ops_product(shape, axis, rank), strides[KELP_MAX_RANK];
    int32_t first = 0;
    KELP_ASSERT(axis >= 0 && axis <= rank);
    *s = (scale_plan){.present = scale != NULL, .rows = 1};
    if (scale == NULL)
        return NULL;
    if (!kelp_ops_is_float(scale->dtype))
        return kelp_ops_bad_type(args, scale->dtype);
    s->tensor = *scale;
    bool fits = scale_fits(scale, rank, shape, &first);
    if (kelp_tensor_elements(scale) == count && (!fits || (first >= axis && first < rank)))
        return kelp_ops_plan_f32(args, &s->tensor, &s->float_at);
    if (!fits)
        return kelp_ops_bad_shapes(args, args->inputs[0], scale,
                                   "scale and bias must broadcast to the input");
    first = KELP_MIN(first, axis);
    s->expanded = true;
    s->rows = kelp_ops_product(shape, first, axis);
    s->rank = rank - first;
    kelp_ops_strides(scale->rank, scale->shape, strides);
    for (int32_t i = 0; i < s->rank; i++) {
        int32_t from = i + scale->rank - s->rank;
        s->shape[i] = shape[first + i];
        s->strides[i] = from < 0 || scale->shape[from] == 1 ? 0 : strides[from];
    }
    KELP_TRY(kelp_tensor_init(&s->tensor, scale->dtype, s->rank, s->shape, NULL));
    KELP_TRY(kelp_ops_scratch(args, kelp_tensor_elements(&s->tensor),
                              kelp_ops_element_bytes(scale->dtype), &s->offset));
    return kelp_ops_plan_f32(args, &s->tensor, &s->float_at);
}

static void scale_invoke(const kelp_op_args *args, int32_t index, scale_plan *s) {
    const kelp_tensor *scale = kelp_ops_in(args, index);
    int64_t strides[KELP_MAX_RANK];
    if (scale == NULL)
        return;
    s->tensor.data = scale->data;
    if (s->expanded) {
        s->tensor.data = kelp_ops_scratch_at(args, s->offset);
        kelp_ops_strides(s->rank, s->shape, strides);
        kelp_ops_copy(args->env, kelp_ops_element_bytes(scale->dtype), s->rank, s->shape,
                      s->tensor.data, strides, scale->data, s->strides);
    }
    s->data = kelp_ops_get_f32(args, &s->tensor, s->float_at);
}

static const float *scale_row(const scale_plan *s, int64_t row, int64_t count) {
    return s->rows == 1 || !s->present ? s->data : s->data + row % s->rows * count;
}

/* Sets output 0, or reserves scratch memory for it if it is omitted: the kernels always write it.
 */
static kelp_status *set_output(kelp_op_args *args, kelp_dtype dtype, int32_t rank,
                               const int64_t *shape) {
    norm_plan *p = args->plan;
    KELP_TRY(kelp_tensor_init(&p->out, dtype, rank, shape, NULL));
    if (kelp_ops_out(args, 0) == NULL)
        return kelp_ops_scratch(args, kelp_tensor_elements(&p->out), kelp_ops_element_bytes(dtype),
                                &p->unused);
    return kelp_ops_set(args, 0, dtype, rank, shape);
}

static void *output_data(const kelp_op_args *args, const norm_plan *p) {
    return kelp_ops_out(args, 0) != NULL ? args->outputs[0]->data
                                         : kelp_ops_scratch_at(args, p->unused);
}

static kelp_status *norm_reshape(kelp_op_args *args, int32_t scales, int64_t axis_attr, bool rms) {
    norm_plan *p = args->plan;
    int32_t axis = 0;
    KELP_TRY(kelp_ops_check_inputs(args, scales + 1));
    const kelp_tensor *x = args->inputs[0];
    if (!kelp_ops_is_float(x->dtype))
        return kelp_ops_bad_type(args, x->dtype);
    KELP_TRY(kelp_ops_axis(args, axis_attr, x->rank, &axis));
    p->rows = kelp_ops_product(x->shape, 0, axis);
    p->count = kelp_ops_product(x->shape, axis, x->rank);
    p->epsilon = kelp_node_attr_f32(args->node, "epsilon", 1e-5f);
    p->rms = rms;
    KELP_TRY(scale_reshape(args, scales, axis, x->rank, x->shape, &p->gamma));
    KELP_TRY(scale_reshape(args, scales + 1, axis, x->rank, x->shape, &p->beta));
    kelp_dtype type = rms ? args->inputs[scales]->dtype : x->dtype;
    p->typed = x->dtype != KELP_F32 || type != KELP_F32;
    if (p->typed)
        KELP_TRY(kelp_ops_scratch(args, kelp_round_up(p->count, 8),
                                  sizeof(double) * (size_t)kelp_op_env_threads(args->env),
                                  &p->row));
    return set_output(args, type, x->rank, x->shape);
}

/* Normalizes a row of doubles in place. */
static void norm_doubles(const norm_plan *p, int64_t row, double *v, float *out_mean,
                         float *out_inverse) {
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < p->count && !p->rms; i++)
        mean += v[i];
    mean /= (double)p->count;
    for (int64_t i = 0; i < p->count; i++)
        squares += (v[i] - mean) * (v[i] - mean);
    double inverse = 1.0 / sqrt(squares / (double)p->count + (double)p->epsilon);
    int64_t gamma = row % p->gamma.rows * p->count, beta = row % p->beta.rows * p->count;
    for (int64_t i = 0; i < p->count; i++) {
        v[i] = (v[i] - mean) * inverse * kelp_ops_read_f64(&p->gamma.tensor, gamma + i);
        v[i] += p->beta.present ? kelp_ops_read_f64(&p->beta.tensor, beta + i) : 0.0;
    }
    *out_mean = (float)mean;
    *out_inverse = (float)inverse;
}

/* Normalizes rows of other types than float, in a row of scratch memory of the worker. */
static void norm_rows_typed(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_norm_kernels *norm = kelp_norm_kernels_get();
    const norm_plan *p = userp;
    const kelp_tensor *x = p->args->inputs[0];
    kelp_tensor out = p->out, *y = &out;
    double *wide =
        (double *)kelp_ops_scratch_at(p->args, p->row) + worker * kelp_round_up(p->count, 8);
    float *row = (float *)(void *)wide, mean, inverse;
    for (int64_t i = begin; i < end; i++) {
        if (x->dtype == KELP_F64 || y->dtype == KELP_F64) {
            for (int64_t j = 0; j < p->count; j++)
                wide[j] = kelp_ops_read_f64(x, i * p->count + j);
            norm_doubles(p, i, wide, &mean, &inverse);
            for (int64_t j = 0; j < p->count; j++)
                kelp_tensor_set_f64(y, i * p->count + j, wide[j]);
        } else {
            kelp_math_load_tensor(x, i * p->count, p->count, row);
            norm->layer_norm(row, NULL, scale_row(&p->gamma, i, p->count),
                             scale_row(&p->beta, i, p->count), p->epsilon, p->rms, NULL, row,
                             p->count, &mean, &inverse);
            kelp_math_store_tensor(y, i * p->count, p->count, row);
        }
        if (p->mean != NULL)
            p->mean[i] = mean;
        if (p->inverse != NULL)
            p->inverse[i] = inverse;
    }
}

static void norm_rows(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_norm_kernels *norm = kelp_norm_kernels_get();
    const norm_plan *p = userp;
    float mean, inverse;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        int64_t at = i * p->count;
        norm->layer_norm(p->x + at, p->skip != NULL ? p->skip + at : NULL,
                         scale_row(&p->gamma, i, p->count), scale_row(&p->beta, i, p->count),
                         p->epsilon, p->rms, p->sum != NULL ? p->sum + at : NULL, p->y + at,
                         p->count, &mean, &inverse);
        if (p->mean != NULL)
            p->mean[i] = mean;
        if (p->inverse != NULL)
            p->inverse[i] = inverse;
    }
}

static void *data_of(const kelp_tensor *tensor) {
    return tensor != NULL ? tensor->data : NULL;
}

static kelp_status *norm_run(kelp_op_args *args, int32_t scales) {
    norm_plan *p = args->plan;
    p->x = args->inputs[0]->data;
    p->skip = scales == 2 ? args->inputs[1]->data : NULL;
    p->args = args;
    scale_invoke(args, scales, &p->gamma);
    scale_invoke(args, scales + 1, &p->beta);
    p->y = p->out.data = output_data(args, p);
    KELP_ASSERT(p->rows * p->count == kelp_tensor_elements(args->inputs[0]));
    int64_t grain = kelp_cpu_grain(KELP_GRAIN_ELEMENTS / 2, p->count);
    kelp_op_parallel(args->env, p->rows, grain, p->typed ? norm_rows_typed : norm_rows, p);
    return NULL;
}

static kelp_status *statistics_shape(kelp_op_args *args, int32_t index) {
    const kelp_tensor *x = args->inputs[0];
    int64_t shape[KELP_MAX_RANK];
    int32_t axis = 0;
    KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", -1), x->rank, &axis));
    for (int32_t i = 0; i < x->rank; i++)
        shape[i] = i < axis ? x->shape[i] : 1;
    return kelp_ops_set(args, index, KELP_F32, x->rank, shape);
}

static kelp_status *layer_norm_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(norm_reshape(args, 1, kelp_node_attr_i64(args->node, "axis", -1), false));
    KELP_TRY(statistics_shape(args, 1));
    return statistics_shape(args, 2);
}

static kelp_status *layer_norm_invoke(const void *state, kelp_op_args *args) {
    norm_plan *p = args->plan;
    (void)state;
    p->mean = data_of(kelp_ops_out(args, 1));
    p->inverse = data_of(kelp_ops_out(args, 2));
    return norm_run(args, 1);
}
KELP_KERNEL(LayerNormalization, 0, sizeof(norm_plan), 0, layer_norm_reshape, layer_norm_invoke);

/* ONNX Runtime's SimplifiedLayerNormalization also has the inverse standard deviation as output 1.
 */
static kelp_status *rms_norm_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(norm_reshape(args, 1, kelp_node_attr_i64(args->node, "axis", -1), true));
    return statistics_shape(args, 1);
}

static kelp_status *rms_norm_invoke(const void *state, kelp_op_args *args) {
    norm_plan *p = args->plan;
    (void)state;
    p->inverse = data_of(kelp_ops_out(args, 1));
    return norm_run(args, 1);
}
KELP_KERNEL(RMSNormalization, 0, sizeof(norm_plan), 0, rms_norm_reshape, rms_norm_invoke);

/* kelp::SkipLayerNorm: y = LayerNormalization(x + skip), and optionally x + skip. If the operands
 * broadcast, the sum is written to memory first. */
typedef struct skip_plan {
    norm_plan norm; /* first member, because norm_rows and set_output read a norm_plan */
    bool broadcast;
    kelp_bcast walk;
    size_t sum_offset;
    const kelp_op_args *args;
    float *total;
} skip_plan;

static kelp_status *skip_broadcast(kelp_op_args *args) {
    skip_plan *p = args->plan;
    const kelp_tensor *x = args->inputs[0], *skip = args->inputs[1];
    int64_t shape[KELP_MAX_RANK];
    int32_t rank = x->rank;
    memcpy(shape, x->shape, sizeof shape);
    if (!kelp_ops_broadcast_shape(&rank, shape, skip->rank, skip->shape) || rank < 1)
        return kelp_ops_bad_shapes(args, x, skip, "the shapes do not broadcast");
    KELP_TRY(set_output(args, KELP_F32, rank, shape));
    kelp_bcast_init(&p->walk, rank, shape, args->inputs, 2);
    p->broadcast = true;
    p->norm.rows = kelp_ops_product(shape, 0, rank - 1);
    p->norm.count = shape[rank - 1];
    KELP_TRY(scale_reshape(args, 2, rank - 1, rank, shape, &p->norm.gamma));
    KELP_TRY(scale_reshape(args, 3, rank - 1, rank, shape, &p->norm.beta));
    KELP_TRY(kelp_ops_scratch(args, p->norm.rows * p->norm.count, sizeof(float), &p->sum_offset));
    return kelp_ops_set(args, 1, KELP_F32, rank, shape);
}

static kelp_status *skip_norm_reshape(const void *state, kelp_op_args *args) {
    skip_plan *p = args->plan;
    (void)state;
    KELP_TRY(kelp_ops_check_inputs(args, 3));
    const kelp_tensor *x = args->inputs[0], *skip = args->inputs[1];
    for (int32_t i = 0; i < args->input_count && i < 4; i++)
        if (args->inputs[i] != NULL && args->inputs[i]->dtype != KELP_F32)
            return kelp_ops_bad_type(args, args->inputs[i]->dtype);
    p->norm.epsilon = kelp_node_attr_f32(args->node, "epsilon", 1e-5f);
    if (x->rank != skip->rank ||
        memcmp(x->shape, skip->shape, (size_t)x->rank * sizeof *x->shape) != 0)
        return skip_broadcast(args);
    KELP_TRY(norm_reshape(args, 2, -1, false));
    return kelp_ops_set_like(args, 1, x);
}

static void add_rows(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const skip_plan *p = userp;
    int64_t offsets[KELP_BCAST_MAX];
    int last = p->walk.rank - 1;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        kelp_bcast_row(&p->walk, row, offsets);
        elementwise->bin[KELP_BIN_ADD](p->total + row * p->walk.inner,
                                       (const float *)p->args->inputs[0]->data + offsets[0],
                                       (const float *)p->args->inputs[1]->data + offsets[1],
                                       p->walk.inner, last < 0 ? 0 : (int)p->walk.strides[0][last],
                                       last < 0 ? 0 : (int)p->walk.strides[1][last]);
    }
}

static kelp_status *skip_norm_invoke(const void *state, kelp_op_args *args) {
    skip_plan *p = args->plan;
    (void)state;
    p->norm.sum = data_of(kelp_ops_out(args, 1));
    if (!p->broadcast)
        return norm_run(args, 2);
    KELP_ASSERT(p->walk.outer * p->walk.inner == p->norm.rows * p->norm.count);
    p->args = args;
    p->total =
        p->norm.sum != NULL ? p->norm.sum : (float *)kelp_ops_scratch_at(args, p->sum_offset);
    kelp_op_parallel(args->env, p->walk.outer, kelp_cpu_grain(KELP_GRAIN_ELEMENTS, p->walk.inner),
                     add_rows, p);
    p->norm.x = p->total;
    p->norm.skip = NULL;
    p->norm.sum = NULL;
    scale_invoke(args, 2, &p->norm.gamma);
    scale_invoke(args, 3, &p->norm.beta);
    p->norm.y = output_data(args, &p->norm);
    kelp_op_parallel(args->env, p->norm.rows,
                     kelp_cpu_grain(KELP_GRAIN_ELEMENTS / 2, p->norm.count), norm_rows, p);
    return NULL;
}
KELP_KERNEL(SkipLayerNorm, 0, sizeof(skip_plan), 0, skip_norm_reshape, skip_norm_invoke);
