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

void kelp_quant_floats(const kelp_quant *q, kelp_dtype dtype, const float *x, uint8_t *y,
                       int64_t count) {
    kelp_int8_kernels_get()->quantize(&(kelp_quantize_run){
        .x = x, .y = y, .count = count, .dtype = dtype, .scale = &q->scale, .zero = &q->zero});
}

void kelp_quant_values(const kelp_quant *q, kelp_dtype dtype, float *out) {
    for (int32_t i = 0; i < 256; i++)
        out[i] = (float)((dtype == KELP_I8 ? (int8_t)(uint8_t)i : i) - q->zero) * q->scale;
}

void kelp_quant_look_up(const uint8_t *table, const uint8_t *x, uint8_t *y, int64_t count) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        uint8_t from[8]; /* read before y, which the compiler assumes to overlap, is written */
        memcpy(from, x + i, sizeof from);
        for (int k = 0; k < 8; k++)
            y[i + k] = table[from[k]];
    }
    for (; i < count; i++)
        y[i] = table[x[i]];
}

/* ---- binary operators ---- */
typedef struct binary_plan {
    kelp_bcast walk;
    kelp_byte_pairs pairs; /* of all elements */
    bool multiplies;
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

static void binary_part(void *userp, const kelp_bcast_part *part) {
    const kelp_int8_kernels *kernels = kelp_int8_kernels_get();
    const binary_plan *p = userp;
    kelp_byte_pairs pairs = p->pairs;
    pairs.a = (const char *)pairs.a + part->from[0];
    pairs.b = (const char *)pairs.b + part->from[1];
    pairs.y = (char *)pairs.y + part->to;
    pairs.a_stride = part->steps[0];
    pairs.b_stride = part->steps[1];
    pairs.count = part->count;
    (p->multiplies ? kernels->multiply_pairs : kernels->add_pairs)(&pairs);
}

/* The order of operations is that of ONNX Runtime, so that ties are rounded as there: a sum folds
 * all zero points into one constant and divides both scales by the scale of the result. */
static kelp_status *binary_invoke(const void *state, kelp_op_args *args) {
    binary_plan *p = args->plan;
    kelp_dtype dtype = args->inputs[0]->dtype;
    KELP_ASSERT(args->inputs[3]->dtype == dtype && args->outputs[0]->dtype == dtype);
    kelp_quant a = kelp_quant_read(args, dtype, 1, 2), b = kelp_quant_read(args, dtype, 4, 5);
    kelp_quant out = kelp_quant_read(args, dtype, 6, 7);
    (void)state;
    p->pairs = (kelp_byte_pairs){.a = args->inputs[0]->data,
                                 .b = args->inputs[3]->data,
                                 .y = args->outputs[0]->data,
                                 .dtype = dtype,
                                 .a_scale = a.scale / out.scale,
                                 .b_scale = b.scale / out.scale,
                                 .scale = a.scale * b.scale / out.scale,
                                 .a_zero = a.zero,
                                 .b_zero = b.zero};
    if (p->multiplies)
        p->pairs.zero = out.zero;
    else
        p->pairs.shift =
            (float)out.zero - (p->pairs.a_scale * (float)a.zero + p->pairs.b_scale * (float)b.zero);
    kelp_bcast_run(args->env, &p->walk, 4 * KELP_GRAIN_ELEMENTS, binary_part, p);
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

static void where_part(void *userp, const kelp_bcast_part *part) {
    const where_plan *p = userp;
    const uint8_t *chosen = (const uint8_t *)p->args->inputs[0]->data + part->from[0];
    const uint8_t *x = (const uint8_t *)p->args->inputs[1]->data + part->from[1];
    const uint8_t *y = (const uint8_t *)p->args->inputs[4]->data + part->from[2];
    uint8_t *to = (uint8_t *)p->args->outputs[0]->data + part->to;
    int c = part->steps[0], a = part->steps[1], b = part->steps[2];
    for (int64_t i = 0; i < part->count; i++)
        to[i] = chosen[i * c] != 0 ? p->tables[0][x[i * a]] : p->tables[1][y[i * b]];
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
    kelp_bcast_run(args->env, &p->walk, KELP_GRAIN_ELEMENTS / 2, where_part, p);
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
    kelp_quant_look_up(job->table, job->x + begin, job->y + begin, end - begin);
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
    int64_t count = kelp_tensor_elements(args->inputs[0]);
    const uint8_t *x = args->inputs[0]->data;
    float values[256];
    kelp_quant_values(&in, dtype, values);
    if (count < 256) { /* only the entries that are needed */
        for (int64_t i = 0; i < count; i++)
            job->table[x[i]] = kelp_quant_byte(&out, fn(values[x[i]], alpha) / out.scale);
    } else {
        for (int i = 0; i < 256; i++)
            job->table[i] = kelp_quant_byte(&out, fn(values[i], alpha) / out.scale);
    }
    job->x = args->inputs[0]->data;
    job->y = args->outputs[0]->data;
    kelp_op_parallel(args->env, count, 2 * KELP_GRAIN_ELEMENTS, table_range, job);
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

/* The copy of one operand to its place in each row of the output. */
typedef struct concat_job {
    const uint8_t *x;
    uint8_t *y;
    int64_t count, row; /* bytes of a row of the operand, and of the output */
    bool same;          /* both have one quantization */
    uint8_t table[256];
} concat_job;

static void concat_rows(void *userp, int64_t begin, int64_t end, int worker) {
    const concat_job *job = userp;
    (void)worker;
    for (int64_t o = begin; o < end; o++) {
        if (job->same)
            memcpy(job->y + o * job->row, job->x + o * job->count, (size_t)job->count);
        else
            kelp_quant_look_up(job->table, job->x + o * job->count, job->y + o * job->row,
                               job->count);
    }
}

static void concat_row_range(void *userp, int64_t begin, int64_t end, int worker) {
    const concat_job *whole = userp;
    concat_job part = *whole;
    part.x += begin;
    part.y += begin;
    part.count = end - begin;
    concat_rows(&part, 0, 1, worker);
}

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
    concat_job job = {.y = y->data, .row = kelp_ops_product(y->shape, p->axis, y->rank)};
    (void)state;
    for (int32_t i = 2; i < args->input_count; i += 3, job.y += job.count) {
        const kelp_tensor *x = args->inputs[i];
        kelp_quant in = kelp_quant_read(args, x->dtype, i + 1, i + 2);
        job.x = x->data;
        job.count = kelp_ops_product(x->shape, p->axis, x->rank);
        job.same = in.scale == out.scale && in.zero == out.zero;
        float values[256];
        kelp_quant_values(&in, x->dtype, values);
        for (int k = 0; k < 256 && !job.same; k++)
            job.table[k] = kelp_quant_byte(&out, values[k] / out.scale);
        if (job.count == 0)
            continue;
        if (p->outer == 1)
            kelp_op_parallel(args->env, job.count, 2 * KELP_GRAIN_ELEMENTS, concat_row_range, &job);
        else
            kelp_op_parallel(args->env, p->outer,
                             kelp_cpu_grain(2 * KELP_GRAIN_ELEMENTS, job.count), concat_rows, &job);
    }
    KELP_ASSERT(kelp_tensor_elements(y) == 0 || job.y == (uint8_t *)y->data + job.row);
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

/* Computes a row that is not strided. A result depends on the difference of a byte and the maximum,
 * so that rows of more than 256 bytes need only a table of results. */
static void softmax_row(const softmax_plan *p, const uint8_t *x, uint8_t *y) {
    enum { LANES = 4 };
    uint8_t flip = p->args->inputs[0]->dtype == KELP_I8 ? 0x80 : 0, table[256], by_byte[256];
    int32_t max = 0;
    int64_t i = 0;
    for (; i < p->length; i++)
        max = KELP_MAX(max, x[i] ^ flip);
    float sums[LANES] = {0}, values[256];
    const float *powers = p->powers + max;
    for (i = 0; i + LANES <= p->length; i += LANES)
        for (int k = 0; k < LANES; k++)
            sums[k] += powers[-(x[i + k] ^ flip)];
    for (; i < p->length; i++)
        sums[0] += powers[-(x[i] ^ flip)];
    float sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    if (p->length <= 256) {
        for (i = 0; i < p->length; i++)
            values[i] = powers[-(x[i] ^ flip)] / sum;
        kelp_quant_floats(&p->out, p->args->inputs[0]->dtype, values, y, p->length);
        return;
    }
    for (int k = 0; k <= max; k++)
        values[k] = powers[-k] / sum;
    kelp_quant_floats(&p->out, p->args->inputs[0]->dtype, values, table, max + 1);
    for (int k = 0; k <= max; k++)
        by_byte[k ^ flip] = table[k];
    kelp_quant_look_up(by_byte, x, y, p->length);
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
        if (p->inner == 1) {
            softmax_row(p, (const uint8_t *)x->data + first, y + first);
            continue;
        }
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
