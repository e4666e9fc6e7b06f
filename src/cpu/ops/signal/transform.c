/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DFT and STFT. Arithmetic is in double. Two real lines are transformed as one complex line. If the
 * model has a constant length, the tables are computed once. Source: ONNX operator specification,
 * DFT-20 and STFT-17.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "cpu/ops/kernel.h"
#include "tensor/real.h"
#include "cpu/ops/signal/fft.h"

typedef struct fft_state {
    size_t size_bytes;
    kelp_fft fft;
} fft_state;

typedef struct transform_plan {
    int64_t length, bins;           /* of the transform; of the result */
    int64_t outer, inner, in, out;  /* lines of `in` elements, `inner` apart */
    int64_t channels, out_channels; /* 1: real, 2: complex */
    int64_t frames, step;           /* STFT */
    bool inverse, onesided;
    size_t table_offset;
    size_t buffer_offset, buffer_bytes, work_bytes; /* one buffer for each worker */
    const kelp_fft *fft;
    const kelp_op_args *args;
} transform_plan;

/* ---- tables of a constant length ---- */
static kelp_status *state_create(const kelp_op_env *env, int64_t length, void **out_state) {
    kelp_allocator allocator = kelp_op_env_allocator(env);
    size_t table, work, bytes;
    if (!kelp_fft_table_bytes(length, &table) || !kelp_fft_work_bytes(length, &work) ||
        length > 1 << 24 || !kelp_size_add(table, sizeof(fft_state) + 64, &bytes))
        return NULL;
    fft_state *state = NULL;
    void *scratch = NULL;
    KELP_TRY(kelp_alloc_aligned(allocator, work, 64, &scratch));
    kelp_status *status = kelp_alloc_aligned(allocator, bytes, 64, (void **)&state);
    if (status == NULL) {
        state->size_bytes = bytes;
        kelp_fft_init(&state->fft, length, (char *)state + (sizeof *state + 63) / 64 * 64, scratch);
        *out_state = state;
    }
    kelp_free_aligned(allocator, scratch, work, 64);
    return status;
}

static void state_destroy(void *state, kelp_allocator allocator) {
    if (state != NULL)
        kelp_free_aligned(allocator, state, ((fft_state *)state)->size_bytes, 64);
}

/* Returns the value of a constant integer input; 0 for other inputs. */
static int64_t constant_input(const kelp_node *node, size_t index) {
    const kelp_value *value =
        index < kelp_node_input_count(node) ? kelp_node_input(node, index) : NULL;
    const kelp_tensor *tensor = value != NULL ? kelp_value_constant(value) : NULL;
    if (tensor == NULL || (tensor->dtype != KELP_I64 && tensor->dtype != KELP_I32) ||
        kelp_tensor_elements(tensor) != 1)
        return 0;
    return kelp_ops_read_i64(tensor, 0);
}

static kelp_status *dft_create(const kelp_node *node, const kelp_op_env *env, void **out_state) {
    int64_t length = constant_input(node, 1);
    return length > 0 ? state_create(env, length, out_state) : NULL;
}

static kelp_status *stft_create(const kelp_node *node, const kelp_op_env *env, void **out_state) {
    int64_t length = constant_input(node, 3);
    const kelp_value *window = kelp_node_input_count(node) > 2 ? kelp_node_input(node, 2) : NULL;
    if (length == 0 && window != NULL && kelp_value_rank(window) == 1)
        length = kelp_value_dim(window, 0, NULL);
    return length > 0 ? state_create(env, length, out_state) : NULL;
}

/* ---- shared by DFT and STFT ---- */
static kelp_status *reserve(transform_plan *p, kelp_op_args *args) {
    size_t table = 0, line = 0;
    if (!kelp_fft_table_bytes(p->length, &table) ||
        !kelp_fft_work_bytes(p->length, &p->work_bytes) ||
        !kelp_size_mul((size_t)p->length, 2 * sizeof(kelp_complex), &line) ||
        !kelp_size_add(line, p->work_bytes, &p->buffer_bytes))
        return kelp_ops_bad_shapes(args, args->inputs[0], NULL,
                                   "the transform is empty, or too long");
    KELP_TRY(kelp_ops_scratch(args, (int64_t)table, 1, &p->table_offset));
    KELP_TRY(
        kelp_ops_scratch(args, kelp_op_env_threads(args->env), p->buffer_bytes, &p->buffer_offset));
    return NULL;
}

/* Sets p->fft to the tables of the state, or to tables in scratch memory if their length differs.
 * `local` must outlive the invoke. */
static void set_tables(transform_plan *p, const void *state, kelp_op_args *args, kelp_fft *local) {
    const fft_state *known = state;
    p->args = args;
    if (known != NULL && known->fft.length == p->length) {
        p->fft = &known->fft;
        return;
    }
    kelp_fft_init(local, p->length, (char *)args->scratch + p->table_offset,
                  (char *)args->scratch + p->buffer_offset);
    p->fft = local;
}

typedef struct buffers {
    kelp_complex *from, *to;
    void *work;
} buffers;

static buffers buffers_of(const transform_plan *p, int worker) {
    char *at = (char *)p->args->scratch + p->buffer_offset + (size_t)worker * p->buffer_bytes;
    size_t line = (size_t)p->length * sizeof(kelp_complex);
    KELP_ASSERT(worker >= 0 && 2 * line + p->work_bytes == p->buffer_bytes);
    KELP_ASSERT(p->fft != NULL && p->fft->length == p->length);
    return (buffers){(kelp_complex *)(void *)at, (kelp_complex *)(void *)(at + line),
                     at + 2 * line};
}

static double read(const kelp_tensor *t, int64_t at) {
    if (t->dtype == KELP_F32)
        return (double)((const float *)t->data)[at];
    double value;
    kelp_real_load_f64(t->dtype, t->data, at, 1, &value);
    return value;
}

static void write(const kelp_tensor *t, int64_t at, double value) {
    if (t->dtype == KELP_F32)
        ((float *)t->data)[at] = (float)value;
    else
        kelp_real_store_f64(t->dtype, t->data, at, 1, &value);
}

/* Returns bin k of the first or second of two real lines that were transformed as the real and
 * imaginary parts of one line. */
static kelp_complex part_of(const kelp_complex *z, int64_t length, int64_t k, bool second) {
    kelp_complex a = z[k], b = z[k == 0 ? 0 : length - k];
    if (second)
        return (kelp_complex){(a.im + b.im) / 2, (b.re - a.re) / 2};
    return (kelp_complex){(a.re + b.re) / 2, (a.im - b.im) / 2};
}

/* ---- DFT ---- */
static kelp_status *dft_length(transform_plan *p, kelp_op_args *args) {
    const kelp_tensor *length = kelp_ops_in(args, 1);
    bool half = p->inverse && p->onesided;
    p->length = half ? 2 * (p->in - 1) : p->in;
    if (length != NULL) {
        if (kelp_ops_defer(args, 1))
            return NULL;
        if (kelp_tensor_elements(length) != 1)
            return kelp_ops_bad_shapes(args, length, NULL, "expected one dft_length");
        p->length = kelp_ops_read_i64(length, 0);
    }
    if (p->length < 1)
        return kelp_ops_bad_shapes(args, args->inputs[0], length, "the transform is empty");
    p->bins = p->onesided && !p->inverse ? p->length / 2 + 1 : p->length;
    return NULL;
}

static kelp_status *dft_reshape(const void *state, kelp_op_args *args) {
    transform_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK], axis_value = -2;
    int32_t axis = 0;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0], *axis_input = kelp_ops_in(args, 2);
    if (!kelp_ops_is_float(x->dtype))
        return kelp_ops_bad_type(args, x->dtype);
    p->inverse = kelp_node_attr_i64(args->node, "inverse", 0) != 0;
    p->onesided = kelp_node_attr_i64(args->node, "onesided", 0) != 0;
    if (kelp_ops_version(args) < 20)
        axis_value = kelp_node_attr_i64(args->node, "axis", 1);
    if (axis_input != NULL) {
        if (kelp_ops_defer(args, 2))
            return NULL;
        if (kelp_tensor_elements(axis_input) != 1)
            return kelp_ops_bad_shapes(args, axis_input, NULL, "expected one axis");
        axis_value = kelp_ops_read_i64(axis_input, 0);
    }
    KELP_TRY(kelp_ops_axis(args, axis_value, x->rank, &axis));
    p->channels = x->rank > 1 ? x->shape[x->rank - 1] : 0;
    if (axis == x->rank - 1 || p->channels < 1 || p->channels > 2)
        return kelp_ops_bad_shapes(args, x, NULL,
                                   "expected a last dimension of 1 (real) or 2 (complex), which "
                                   "cannot be transformed");
    p->in = x->shape[axis];
    KELP_TRY(dft_length(p, args));
    if (args->deferred)
        return NULL;
    p->out = p->bins;
    p->out_channels = p->inverse && p->onesided ? 1 : 2;
    p->outer = kelp_ops_product(x->shape, 0, axis);
    p->inner = kelp_ops_product(x->shape, axis + 1, x->rank - 1);
    memcpy(shape, x->shape, sizeof shape);
    shape[axis] = p->bins;
    shape[x->rank - 1] = p->out_channels;
    KELP_TRY(kelp_ops_set(args, 0, x->dtype, x->rank, shape));
    return reserve(p, args);
}

/* Loads a line, truncated or padded with zeros, and adds the mirrored half of a onesided input.
 * With `part`, loads a real line as the imaginary part. */
static void load_line(const transform_plan *p, int64_t line, bool part, kelp_complex *to) {
    const kelp_tensor *x = p->args->inputs[0];
    int64_t base = line / p->inner * p->in * p->inner + line % p->inner;
    int64_t half = p->inverse && p->onesided ? p->length / 2 + 1 : p->length;
    int64_t count = KELP_MIN(p->in, half);
    KELP_ASSERT(line >= 0 && line < p->outer * p->inner);
    for (int64_t i = 0; i < p->length; i++) {
        int64_t at = (base + i * p->inner) * p->channels;
        double re = i < count ? read(x, at) : 0;
        if (part) {
            to[i].im = re;
            continue;
        }
        to[i].re = re;
        to[i].im = i < count && p->channels == 2 ? read(x, at + 1) : 0;
    }
    if (half == p->length)
        return;
    to[0].im = 0;
    if (p->length % 2 == 0)
        to[p->length / 2].im = 0;
    for (int64_t i = half; i < p->length; i++)
        to[i] = (kelp_complex){to[p->length - i].re, -to[p->length - i].im};
}

static void store_line(const transform_plan *p, int64_t line, const kelp_complex *from, int pair) {
    const kelp_tensor *y = p->args->outputs[0];
    int64_t base = line / p->inner * p->out * p->inner + line % p->inner;
    double scale = p->inverse ? 1 / (double)p->length : 1;
    for (int64_t k = 0; k < p->out; k++) {
        kelp_complex value = pair < 0 ? from[k] : part_of(from, p->length, k, pair == 1);
        int64_t at = (base + k * p->inner) * p->out_channels;
        write(y, at, value.re * scale);
        if (p->out_channels == 2)
            write(y, at + 1, value.im * scale);
    }
}

static void dft_range(void *userp, int64_t begin, int64_t end, int worker) {
    const transform_plan *p = userp;
    buffers b = buffers_of(p, worker);
    for (int64_t line = begin; line < end; line++) {
        bool pair = p->channels == 1 && !p->inverse && line + 1 < end;
        load_line(p, line, false, b.from);
        if (pair)
            load_line(p, line + 1, true, b.from);
        kelp_fft_run(p->fft, b.from, b.to, p->inverse, b.work);
        store_line(p, line, b.to, pair ? 0 : -1);
        if (pair)
            store_line(p, ++line, b.to, 1);
    }
}

static kelp_status *dft_invoke(const void *state, kelp_op_args *args) {
    transform_plan *p = args->plan;
    kelp_fft local;
    if (kelp_tensor_elements(args->outputs[0]) == 0)
        return NULL;
    set_tables(p, state, args, &local);
    kelp_op_parallel(args->env, p->outer * p->inner,
                     kelp_cpu_grain(KELP_GRAIN_ELEMENTS / 8, p->length), dft_range, p);
    return NULL;
}
const kelp_op_kernel kelp_op_DFT = {.struct_size = sizeof(kelp_op_kernel),
                                    .plan_bytes = sizeof(transform_plan),
                                    .create = dft_create,
                                    .destroy = state_destroy,
                                    .reshape = dft_reshape,
                                    .invoke = dft_invoke};

/* ---- STFT ---- */
static kelp_status *stft_reshape(const void *state, kelp_op_args *args) {
    transform_plan *p = args->plan;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0], *window = kelp_ops_in(args, 2);
    const kelp_tensor *length = kelp_ops_in(args, 3);
    if (!kelp_ops_is_float(x->dtype) || (window != NULL && !kelp_ops_is_float(window->dtype)))
        return kelp_ops_bad_type(args, x->dtype);
    bool tailed = x->rank == 3;
    p->channels = tailed ? x->shape[2] : 1;
    if (x->rank < 2 || x->rank > 3 || p->channels < 1 || p->channels > 2 ||
        (window != NULL && window->rank != 1))
        return kelp_ops_bad_shapes(args, x, window,
                                   "expected a signal [N, length, 1 or 2] and a list of weights");
    if (kelp_tensor_elements(args->inputs[1]) != 1 ||
        (length != NULL && kelp_tensor_elements(length) != 1))
        return kelp_ops_bad_shapes(args, args->inputs[1], length,
                                   "expected one frame_step and one frame_length");
    if (kelp_ops_defer(args, 1) || (length != NULL && kelp_ops_defer(args, 3)))
        return NULL;
    p->in = x->shape[1];
    p->step = kelp_ops_read_i64(args->inputs[1], 0);
    p->length = length != NULL   ? kelp_ops_read_i64(length, 0)
                : window != NULL ? window->shape[0]
                                 : p->in;
    if (p->step < 1 || p->length < 1 || p->length > p->in ||
        (window != NULL && window->shape[0] != p->length))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "STFT: frame_length or frame_step is out of range: expected frames of 1 "
                          "to %lld samples, as long as the window (%lld), and a step of 1 or more, "
                          "found %lld and %lld",
                          (long long)p->in,
                          (long long)(window != NULL ? window->shape[0] : p->length),
                          (long long)p->length, (long long)p->step);
    p->onesided = kelp_node_attr_i64(args->node, "onesided", 1) != 0;
    p->frames = (p->in - p->length) / p->step + 1;
    p->bins = p->onesided ? p->length / 2 + 1 : p->length;
    int64_t shape[4] = {x->shape[0], p->frames, p->bins, 2};
    KELP_TRY(kelp_ops_set(args, 0, x->dtype, 4, shape));
    return reserve(p, args);
}

static void load_frame(const transform_plan *p, int64_t unit, bool part, kelp_complex *to) {
    const kelp_tensor *x = p->args->inputs[0], *window = kelp_ops_in(p->args, 2);
    int64_t base = unit / p->frames * p->in + unit % p->frames * p->step;
    KELP_ASSERT(unit % p->frames * p->step + p->length <= p->in);
    for (int64_t i = 0; i < p->length; i++) {
        double weight = window != NULL ? read(window, i) : 1;
        int64_t at = (base + i) * p->channels;
        if (part) {
            to[i].im = read(x, at) * weight;
            continue;
        }
        to[i].re = read(x, at) * weight;
        to[i].im = p->channels == 2 ? read(x, at + 1) * weight : 0;
    }
}

static void stft_range(void *userp, int64_t begin, int64_t end, int worker) {
    const transform_plan *p = userp;
    const kelp_tensor *y = p->args->outputs[0];
    buffers b = buffers_of(p, worker);
    for (int64_t unit = begin; unit < end; unit++) {
        bool pair = p->channels == 1 && unit + 1 < end;
        load_frame(p, unit, false, b.from);
        if (pair)
            load_frame(p, unit + 1, true, b.from);
        kelp_fft_run(p->fft, b.from, b.to, false, b.work);
        for (int second = 0; second <= (int)pair; second++)
            for (int64_t k = 0; k < p->bins; k++) {
                kelp_complex value = pair ? part_of(b.to, p->length, k, second) : b.to[k];
                write(y, ((unit + second) * p->bins + k) * 2, value.re);
                write(y, ((unit + second) * p->bins + k) * 2 + 1, value.im);
            }
        unit += pair;
    }
}

static kelp_status *stft_invoke(const void *state, kelp_op_args *args) {
    transform_plan *p = args->plan;
    kelp_fft local;
    if (kelp_tensor_elements(args->outputs[0]) == 0)
        return NULL;
    set_tables(p, state, args, &local);
    kelp_op_parallel(args->env, args->outputs[0]->shape[0] * p->frames,
                     kelp_cpu_grain(KELP_GRAIN_ELEMENTS / 8, p->length), stft_range, p);
    return NULL;
}
const kelp_op_kernel kelp_op_STFT = {.struct_size = sizeof(kelp_op_kernel),
                                     .plan_bytes = sizeof(transform_plan),
                                     .create = stft_create,
                                     .destroy = state_destroy,
                                     .reshape = stft_reshape,
                                     .invoke = stft_invoke};
