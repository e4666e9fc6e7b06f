/* SPDX-License-Identifier: Apache-2.0 */
/*
 * com.microsoft QLinearAdd, QLinearMul, QLinearWhere, QLinearSigmoid, QLinearLeakyRelu,
 * QLinearConcat and QLinearSoftmax. Unary operators use a table of 256 results. Source: ONNX
 * Runtime, ContribOperators.md.
 */
#include "cpu/ops/quantize/qlinear.h"

#include "base/assert.h"

kelp_status *kelp_quant_check(const kelp_op_args *args, kelp_dtype dtype, int32_t scale,
                              int32_t zero) {
    const kelp_tensor *s = kelp_ops_in(args, scale), *z = kelp_ops_in(args, zero);
    if (!kelp_quant_is(dtype))
        return kelp_ops_bad_type(args, dtype);
    if (s == NULL || s->dtype != KELP_F32 || kelp_tensor_elements(s) != 1 ||
        (z != NULL && (z->dtype != dtype || kelp_tensor_elements(z) != 1)))
        return kelp_ops_bad_shapes(args, s, z,
                                   "expected one float scale, and one zero point of the "
                                   "operand's type");
    return NULL;
}

kelp_quant kelp_quant_read(const kelp_op_args *args, kelp_dtype dtype, int32_t scale,
                           int32_t zero) {
    const kelp_tensor *z = kelp_ops_in(args, zero);
    KELP_ASSERT(kelp_quant_is(dtype) && args->inputs[scale]->dtype == KELP_F32);
    kelp_quant q = {.scale = *(const float *)args->inputs[scale]->data};
    q.zero = z != NULL ? kelp_quant_get(z, 0) : 0;
    q.min = dtype == KELP_I8 ? -128 : 0;
    q.max = dtype == KELP_I8 ? 127 : 255;
    return q;
}

void kelp_quant_values(const kelp_quant *q, kelp_dtype dtype, float *out) {
    for (int32_t i = 0; i < 256; i++)
        out[i] = (float)((dtype == KELP_I8 ? (int8_t)(uint8_t)i : i) - q->zero) * q->scale;
}

/* ---- binary operators ---- */
typedef struct binary_plan {
    kelp_bcast walk;
    kelp_quant out, sum; /* sum: `out` without its zero point, which is part of the table of `a` */
    float a[256], b[256];
    bool multiplies;
    const kelp_op_args *args;
} binary_plan;

static kelp_status *binary_reshape(kelp_op_args *args, bool multiplies) {
    binary_plan *p = args->plan;
    KELP_TRY(kelp_ops_check_inputs(args, 2));
    const kelp_tensor *a = args->inputs[0], *b = kelp_ops_in(args, 3);
    if (b == NULL || b->dtype != a->dtype || kelp_ops_out(args, 0) == NULL)
        return kelp_ops_bad_shapes(args, a, b, "expected two operands of one type");
    KELP_TRY(kelp_quant_check(args, a->dtype, 1, 2));
    KELP_TRY(kelp_quant_check(args, a->dtype, 4, 5));
    KELP_TRY(kelp_quant_check(args, a->dtype, 6, 7));
    int64_t shape[KELP_MAX_RANK];
    int32_t rank = a->rank;
    memcpy(shape, a->shape, sizeof shape);
    if (!kelp_ops_broadcast_shape(&rank, shape, b->rank, b->shape))
        return kelp_ops_bad_shapes(args, a, b, "the shapes do not broadcast");
    KELP_TRY(kelp_ops_set(args, 0, a->dtype, rank, shape));
    kelp_bcast_init(&p->walk, rank, shape, (const kelp_tensor *const[2]){a, b}, 2);
    p->multiplies = multiplies;
    return NULL;
}

static void binary_range(void *userp, int64_t begin, int64_t end, int worker) {
    const binary_plan *p = userp;
    int64_t last = p->walk.rank - 1, offsets[KELP_BCAST_MAX];
    int64_t sa = p->walk.strides[0][last], sb = p->walk.strides[1][last];
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        kelp_bcast_row(&p->walk, row, offsets);
        const uint8_t *a = (const uint8_t *)p->args->inputs[0]->data + offsets[0];
        const uint8_t *b = (const uint8_t *)p->args->inputs[3]->data + offsets[1];
        uint8_t *y = (uint8_t *)p->args->outputs[0]->data + row * p->walk.inner;
        for (int64_t i = 0; i < p->walk.inner; i++) {
            float x = p->a[a[i * sa]], z = p->b[b[i * sb]];
            y[i] = p->multiplies ? kelp_quant_byte(&p->out, x * z / p->out.scale)
                                 : kelp_quant_byte(&p->sum, x + z);
        }
    }
}

/* Folds all zero points into one constant and divides both scales by the scale of the result. This
 * is ONNX Runtime's order of operations, so that ties are rounded as there. */
static void fold_zeros(binary_plan *p, kelp_dtype dtype, const kelp_quant *a, const kelp_quant *b) {
    float ra = a->scale / p->out.scale, rb = b->scale / p->out.scale;
    float fixed = (float)p->out.zero - (ra * (float)a->zero + rb * (float)b->zero);
    for (int i = 0; i < 256; i++) {
        float value = (float)(dtype == KELP_I8 ? (int8_t)(uint8_t)i : i);
        p->a[i] = value * ra + fixed;
        p->b[i] = value * rb;
    }
    p->sum = p->out;
    p->sum.zero = 0;
}

static kelp_status *binary_invoke(const void *state, kelp_op_args *args) {
    binary_plan *p = args->plan;
    kelp_dtype dtype = args->inputs[0]->dtype;
    KELP_ASSERT(args->inputs[3]->dtype == dtype && args->outputs[0]->dtype == dtype);
    kelp_quant a = kelp_quant_read(args, dtype, 1, 2), b = kelp_quant_read(args, dtype, 4, 5);
    (void)state;
    p->args = args;
    p->out = kelp_quant_read(args, dtype, 6, 7);
    kelp_quant_values(&a, dtype, p->a);
    kelp_quant_values(&b, dtype, p->b);
    if (!p->multiplies)
        fold_zeros(p, dtype, &a, &b);
    int64_t rows = p->walk.inner > 0 ? p->walk.outer : 0;
    kelp_op_parallel(args->env, rows, kelp_cpu_grain(KELP_GRAIN_ELEMENTS, p->walk.inner),
                     binary_range, p);
    return NULL;
}

static kelp_status *add_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return binary_reshape(args, false);
}
static kelp_status *mul_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return binary_reshape(args, true);
}
KELP_KERNEL(MsQLinearAdd, 0, sizeof(binary_plan), 0, add_reshape, binary_invoke);
KELP_KERNEL(MsQLinearMul, 0, sizeof(binary_plan), 0, mul_reshape, binary_invoke);

/* ---- QLinearWhere ---- */
typedef struct where_plan {
    kelp_bcast walk;
    uint8_t tables[2][256]; /* the result for each byte of X and Y */
    const kelp_op_args *args;
} where_plan;

static kelp_status *where_reshape(const void *state, kelp_op_args *args) {
    where_plan *p = args->plan;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 8));
    const kelp_tensor *in[3] = {args->inputs[0], args->inputs[1], args->inputs[4]};
    int64_t shape[KELP_MAX_RANK];
    int32_t rank = in[0]->rank;
    if (in[0]->dtype != KELP_BOOL || in[1]->dtype != in[2]->dtype)
        return kelp_ops_bad_type(args, in[in[0]->dtype != KELP_BOOL ? 0 : 2]->dtype);
    KELP_TRY(kelp_quant_check(args, in[1]->dtype, 2, 3));
    KELP_TRY(kelp_quant_check(args, in[1]->dtype, 5, 6));
    KELP_TRY(kelp_quant_check(args, in[1]->dtype, 7, 8));
    memcpy(shape, in[0]->shape, sizeof shape);
    if (!kelp_ops_broadcast_shape(&rank, shape, in[1]->rank, in[1]->shape) ||
        !kelp_ops_broadcast_shape(&rank, shape, in[2]->rank, in[2]->shape))
        return kelp_ops_bad_shapes(args, in[1], in[2], "the operands do not broadcast");
    kelp_bcast_init(&p->walk, rank, shape, in, 3);
    return kelp_ops_set(args, 0, in[1]->dtype, rank, shape);
}

static void where_range(void *userp, int64_t begin, int64_t end, int worker) {
    const where_plan *p = userp;
    const uint8_t *chosen = p->args->inputs[0]->data, *x = p->args->inputs[1]->data,
                  *y = p->args->inputs[4]->data;
    uint8_t *to = (uint8_t *)p->args->outputs[0]->data + begin * p->walk.inner;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        int64_t at[KELP_BCAST_MAX], step[KELP_BCAST_MAX];
        kelp_bcast_row(&p->walk, row, at);
        for (int k = 0; k < KELP_BCAST_MAX; k++)
            step[k] = p->walk.strides[k][p->walk.rank - 1];
        for (int64_t i = 0; i < p->walk.inner; i++)
            *to++ = chosen[at[0] + i * step[0]] != 0 ? p->tables[0][x[at[1] + i * step[1]]]
                                                     : p->tables[1][y[at[2] + i * step[2]]];
    }
}

static kelp_status *where_invoke(const void *state, kelp_op_args *args) {
    where_plan *p = args->plan;
    kelp_dtype dtype = args->inputs[1]->dtype;
    kelp_quant out = kelp_quant_read(args, dtype, 7, 8);
    (void)state;
    KELP_ASSERT(p->walk.operands == 3);
    for (int k = 0; k < 2; k++) {
        kelp_quant in = kelp_quant_read(args, dtype, 2 + 3 * k, 3 + 3 * k);
        float values[256];
        kelp_quant_values(&in, dtype, values);
        for (int i = 0; i < 256; i++)
            p->tables[k][i] = kelp_quant_byte(&out, values[i] / out.scale);
    }
    p->args = args;
    int64_t count = p->walk.inner > 0 ? p->walk.outer : 0;
    kelp_op_parallel(args->env, count, kelp_cpu_grain(KELP_GRAIN_ELEMENTS, 2 * p->walk.inner),
                     where_range, p);
    return NULL;
}
KELP_KERNEL(MsQLinearWhere, 0, sizeof(where_plan), 0, where_reshape, where_invoke);

/* ---- unary operators, by a table ---- */
typedef struct table_job {
    uint8_t table[256];
    const uint8_t *x;
    uint8_t *y;
} table_job;

static void table_range(void *userp, int64_t begin, int64_t end, int worker) {
    const table_job *job = userp;
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        job->y[i] = job->table[job->x[i]];
}

static kelp_status *unary_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    KELP_TRY(kelp_quant_check(args, args->inputs[0]->dtype, 1, 2));
    KELP_TRY(kelp_quant_check(args, args->inputs[0]->dtype, 3, 4));
    return kelp_ops_set_like(args, 0, args->inputs[0]);
}

static kelp_status *unary_run(kelp_op_args *args, float (*fn)(float x, float alpha), float alpha) {
    table_job *job = args->plan;
    kelp_dtype dtype = args->inputs[0]->dtype;
    kelp_quant in = kelp_quant_read(args, dtype, 1, 2), out = kelp_quant_read(args, dtype, 3, 4);
    float values[256];
    kelp_quant_values(&in, dtype, values);
    for (int i = 0; i < 256; i++)
        job->table[i] = kelp_quant_byte(&out, fn(values[i], alpha) / out.scale);
    job->x = args->inputs[0]->data;
    job->y = args->outputs[0]->data;
    kelp_op_parallel(args->env, kelp_tensor_elements(args->inputs[0]), KELP_GRAIN_ELEMENTS,
                     table_range, job);
    return NULL;
}

static float sigmoid(float x, float alpha) {
    (void)alpha;
    return 1.0f / (1.0f + expf(-x));
}
static float leaky_relu(float x, float alpha) {
    return x >= 0 ? x : alpha * x;
}
static kelp_status *sigmoid_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    return unary_run(args, sigmoid, 0);
}
static kelp_status *leaky_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    return unary_run(args, leaky_relu, kelp_node_attr_f32(args->node, "alpha", 0.01f));
}
KELP_KERNEL(MsQLinearSigmoid, KELP_OP_INPLACE_0, sizeof(table_job), 0, unary_reshape,
            sigmoid_invoke);
KELP_KERNEL(MsQLinearLeakyRelu, KELP_OP_INPLACE_0, sizeof(table_job), 0, unary_reshape,
            leaky_invoke);

/* ---- QLinearConcat: inputs 0 and 1 are the scale and zero point of the output; then each operand
 * has a tensor, scale and zero point ---- */
typedef struct concat_plan {
    int32_t axis;
    int64_t outer;
} concat_plan;

static kelp_status *concat_reshape(const void *state, kelp_op_args *args) {
    concat_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    (void)state;
    KELP_TRY(kelp_ops_check(args, 5));
    const kelp_tensor *first = args->inputs[2];
    KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", 0), first->rank, &p->axis));
    KELP_TRY(kelp_quant_check(args, first->dtype, 0, 1));
    if ((args->input_count - 2) % 3 != 0)
        return kelp_ops_bad_shapes(args, first, NULL,
                                   "expected a tensor, a scale and a zero point of each operand");
    memcpy(shape, first->shape, sizeof shape);
    shape[p->axis] = 0;
    for (int32_t i = 2; i < args->input_count; i += 3) {
        const kelp_tensor *x = args->inputs[i];
        if (x == NULL || x->dtype != first->dtype || x->rank != first->rank)
            return kelp_ops_bad_shapes(args, first, x,
                                       "the types or shapes of the tensors do not match");
        KELP_TRY(kelp_quant_check(args, x->dtype, i + 1, i + 2));
        for (int32_t k = 0; k < x->rank; k++)
            if (k != p->axis && x->shape[k] != shape[k])
                return kelp_ops_bad_shapes(args, first, x,
                                           "the types or shapes of the tensors do not match");
        if (!kelp_i64_add(shape[p->axis], x->shape[p->axis], &shape[p->axis]))
            return kelp_ops_bad_shapes(args, first, x, "the result is too large");
    }
    p->outer = kelp_ops_product(shape, 0, p->axis);
    return kelp_ops_set(args, 0, first->dtype, first->rank, shape);
}

static kelp_status *concat_invoke(const void *state, kelp_op_args *args) {
    const concat_plan *p = args->plan;
    const kelp_tensor *y = args->outputs[0];
    kelp_quant out = kelp_quant_read(args, y->dtype, 0, 1);
    int64_t row = kelp_ops_product(y->shape, p->axis, y->rank), at = 0;
    (void)state;
    for (int32_t i = 2; i < args->input_count; i += 3) {
        const kelp_tensor *x = args->inputs[i];
        kelp_quant in = kelp_quant_read(args, x->dtype, i + 1, i + 2);
        int64_t count = kelp_ops_product(x->shape, p->axis, x->rank);
        bool same = in.scale == out.scale && in.zero == out.zero;
        float values[256];
        uint8_t table[256];
        kelp_quant_values(&in, x->dtype, values);
        for (int k = 0; k < 256; k++)
            table[k] = same ? (uint8_t)k : kelp_quant_byte(&out, values[k] / out.scale);
        for (int64_t o = 0; o < p->outer; o++)
            for (int64_t k = 0; k < count; k++)
                ((uint8_t *)y->data)[o * row + at + k] =
                    table[((const uint8_t *)x->data)[o * count + k]];
        at += count;
    }
    KELP_ASSERT(at == row);
    return NULL;
}
KELP_KERNEL(MsQLinearConcat, 0, sizeof(concat_plan), 0, concat_reshape, concat_invoke);

/* ---- QLinearSoftmax; attribute opset is the version of Softmax ---- */
typedef struct softmax_plan {
    int64_t outer, length, inner;
    float powers[256]; /* e^(scale * -i) */
    kelp_quant out;
    const kelp_op_args *args;
} softmax_plan;

static kelp_status *softmax_reshape(const void *state, kelp_op_args *args) {
    softmax_plan *p = args->plan;
    int32_t axis = 0;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    KELP_TRY(kelp_quant_check(args, x->dtype, 1, 2));
    KELP_TRY(kelp_quant_check(args, x->dtype, 3, 4));
    bool matrix = kelp_node_attr_i64(args->node, "opset", 13) < 13;
    KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", -1), x->rank, &axis));
    p->outer = kelp_ops_product(x->shape, 0, axis);
    p->length = matrix ? kelp_ops_product(x->shape, axis, x->rank) : x->shape[axis];
    p->inner = matrix ? 1 : kelp_ops_product(x->shape, axis + 1, x->rank);
    return kelp_ops_set_like(args, 0, x);
}

static void softmax_range(void *userp, int64_t begin, int64_t end, int worker) {
    const softmax_plan *p = userp;
    const kelp_tensor *x = p->args->inputs[0];
    uint8_t *y = p->args->outputs[0]->data;
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        int64_t first = at / p->inner * p->length * p->inner + at % p->inner;
        int32_t max = INT32_MIN;
        float sum = 0;
        for (int64_t k = 0; k < p->length; k++)
            max = KELP_MAX(max, kelp_quant_get(x, first + k * p->inner));
        for (int64_t k = 0; k < p->length; k++)
            sum += p->powers[max - kelp_quant_get(x, first + k * p->inner)];
        for (int64_t k = 0; k < p->length; k++) {
            int64_t i = first + k * p->inner;
            y[i] = kelp_quant_byte(&p->out,
                                   p->powers[max - kelp_quant_get(x, i)] / sum / p->out.scale);
        }
    }
}

static kelp_status *softmax_invoke(const void *state, kelp_op_args *args) {
    softmax_plan *p = args->plan;
    kelp_dtype dtype = args->inputs[0]->dtype;
    kelp_quant in = kelp_quant_read(args, dtype, 1, 2);
    (void)state;
    KELP_ASSERT(p->outer * p->length * p->inner == kelp_tensor_elements(args->inputs[0]));
    p->args = args;
    p->out = kelp_quant_read(args, dtype, 3, 4);
    for (int i = 0; i < 256; i++)
        p->powers[i] = expf(-(float)i * in.scale);
    kelp_op_parallel(args->env, p->outer * p->inner, kelp_cpu_grain(KELP_GRAIN_ELEMENTS, p->length),
                     softmax_range, p);
    return NULL;
}
KELP_KERNEL(MsQLinearSoftmax, 0, sizeof(softmax_plan), 0, softmax_reshape, softmax_invoke);
