/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operators RNN, GRU and LSTM, and com.microsoft DynamicQuantizeLSTM, whose weights have
 * 8 bits. Constant weights are packed when the engine is created. float16 and bfloat16 are
 * computed as floats. Source: ONNX operator specification.
 */
#include "base/assert.h"
#include "cpu/ops/operand.h"
#include "cpu/ops/rnn/rnn.h"

#include "base/alloc.h"
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/ops/converted.h"
#include "cpu/ops/kernel.h"
#include "cpu/ops/quantize/dynamic.h"
#include "cpu/ops/variant.h"
#include "tensor/real.h"

#include <strings.h>

typedef struct rnn_state {
    kelp_op_packed packed; /* floats: W of each direction, then R of each */
} rnn_state;

typedef struct rnn_plan {
    kelp_rnn rnn;
    bool plain;          /* weights are read in the layout of the operator */
    bool copies_weights; /* weights are misaligned and copied first */
    size_t x_copy, x_bytes, packed, scratch, in_at[8], out_at[3]; /* offsets in scratch memory */
} rnn_plan;

enum { X, W, R, BIAS, LENGTHS, H, C, PEEPHOLES, W_SCALE, W_ZERO, R_SCALE, R_ZERO };

static kelp_rnn_kind kind_of(const kelp_node *node) {
    kelp_op_variant variant = kelp_op_variant_of(node);
    if (variant == KELP_VARIANT_LSTM || variant == KELP_VARIANT_LSTM_INT8)
        return KELP_LSTM;
    return variant == KELP_VARIANT_GRU ? KELP_GRU : KELP_RNN;
}

/* Returns true for DynamicQuantizeLSTM, with 8-bit weights [directions, inputs, gates * hidden]. */
static bool is_quantized(const kelp_node *node) {
    return kelp_op_variant_of(node) == KELP_VARIANT_LSTM_INT8;
}

/* ---- packing ---- */
typedef struct pack_sizes {
    size_t w, r_first, r_rest; /* floats of one direction */
} pack_sizes;

/* Floats before the bytes of a matrix of 8 bits: the scales of its columns, up to a multiple of 64
 * bytes. */
static size_t scale_floats(int64_t columns) {
    return (size_t)kelp_round_up(columns, 16);
}

/* Computes the floats that a matrix of 8 bits and its scales take; false on overflow. */
static bool bytes_size(int64_t rows, int64_t columns, size_t *out_floats) {
    size_t bytes;
    return kelp_int8_weights_size(rows, columns, &bytes) && kelp_size_align(bytes, 64, &bytes) &&
           kelp_size_add(bytes / sizeof(float), scale_floats(columns), out_floats);
}

/* Computes the sizes of the packed weights; false on overflow. */
static bool sizes_of(const kelp_rnn *rnn, pack_sizes *out, size_t *out_all) {
    const kelp_gemm_kernels *gemm = kelp_gemm_kernels_get();
    int64_t width = rnn->gates * rnn->hidden,
            first = rnn->kind == KELP_GRU ? 2 * rnn->hidden : width;
    KELP_ASSERT(rnn->gates >= 1 && rnn->gates <= 4 && rnn->directions >= 1);
    size_t each;
    out->r_rest = 0;
    if (rnn->quantizes)
        return bytes_size(rnn->inputs, width, &out->w) &&
               bytes_size(rnn->hidden, width, &out->r_first) &&
               kelp_size_add(out->w, out->r_first, &each) &&
               kelp_size_mul(each, (size_t)rnn->directions, out_all);
    return kelp_gemm_packed_size(gemm, rnn->inputs, width, &out->w) &&
           kelp_gemm_packed_size(gemm, rnn->hidden, first, &out->r_first) &&
           (first == width ||
            kelp_gemm_packed_size(gemm, rnn->hidden, rnn->hidden, &out->r_rest)) &&
           kelp_size_add(out->w, out->r_first, &each) && kelp_size_add(each, out->r_rest, &each) &&
           kelp_size_mul(each, (size_t)rnn->directions, out_all);
}

static void pack(const kelp_rnn *rnn, const void *w, const void *r, float *to) {
    const kelp_gemm_kernels *gemm = kelp_gemm_kernels_get();
    int64_t n = rnn->hidden, width = rnn->gates * n, first = rnn->kind == KELP_GRU ? 2 * n : width;
    pack_sizes sizes;
    size_t all;
    (void)sizes_of(rnn, &sizes, &all);
    for (int64_t d = 0; d < rnn->directions; d++, to += sizes.w)
        kelp_gemm_pack_transposed(gemm, (const kelp_float_u *)w + d * width * rnn->inputs,
                                  rnn->inputs, rnn->inputs, width, to);
    for (int64_t d = 0; d < rnn->directions; d++) {
        const kelp_float_u *from = (const kelp_float_u *)r + d * width * n;
        kelp_gemm_pack_transposed(gemm, from, n, n, first, to);
        to += sizes.r_first;
        if (first < width)
            kelp_gemm_pack_transposed(gemm, from + first * n, n, n, width - first, to);
        to += sizes.r_rest;
    }
}

/* Packs a matrix of bytes [directions, rows, gates * hidden]. Scales and zero points are one for
 * each direction, or one for each column of each direction. */
static void pack_bytes(const kelp_rnn *rnn, const kelp_tensor *q, const kelp_tensor *scale,
                       const kelp_tensor *zero, int64_t direction, int64_t rows, float *to) {
    int64_t columns = rnn->gates * rnn->hidden;
    bool many_scales = kelp_tensor_elements(scale) > rnn->directions;
    bool many_zeros = kelp_tensor_elements(zero) > rnn->directions;
    kelp_int8_weights weights;
    kelp_tensor one_zero = {.dtype = zero->dtype, .data = (char *)zero->data + direction};
    for (int64_t j = 0; j < columns; j++)
        to[j] = (float)kelp_ops_read_f64(scale, many_scales ? direction * columns + j : direction);
    kelp_int8_matrix matrix = {.data = (const char *)q->data + direction * rows * columns,
                               .dtype = q->dtype,
                               .k = rows,
                               .n = columns,
                               .row_stride = columns,
                               .column_stride = 1,
                               .zero = many_zeros ? zero : &one_zero,
                               .zero_first = many_zeros ? direction * columns : 0};
    kelp_int8_weights_pack(kelp_int8_kernels_get(), &matrix, to + scale_floats(columns), &weights);
}

static void pack_quantized(const kelp_rnn *rnn, const kelp_tensor *const *in, float *to) {
    pack_sizes sizes;
    size_t all;
    (void)sizes_of(rnn, &sizes, &all);
    for (int64_t d = 0; d < rnn->directions; d++, to += sizes.w)
        pack_bytes(rnn, in[W], in[W_SCALE], in[W_ZERO], d, rnn->inputs, to);
    for (int64_t d = 0; d < rnn->directions; d++, to += sizes.r_first)
        pack_bytes(rnn, in[R], in[R_SCALE], in[R_ZERO], d, rnn->hidden, to);
}

static void view_bytes(const float *packed, int64_t rows, int64_t columns, kelp_rnn_bytes *out) {
    out->scales = packed;
    kelp_int8_weights_view(rows, columns, packed + scale_floats(columns), &out->weights);
}

static void use_packed(const kelp_rnn *rnn, const float *packed, kelp_rnn_data *data) {
    pack_sizes sizes;
    size_t all;
    (void)sizes_of(rnn, &sizes, &all);
    const float *r = packed + (size_t)rnn->directions * sizes.w;
    for (int64_t d = 0; d < rnn->directions; d++) {
        data->w[d] = packed + (size_t)d * sizes.w;
        data->r[d] = r + (size_t)d * (sizes.r_first + sizes.r_rest);
        if (rnn->quantizes) {
            view_bytes(data->w[d], rnn->inputs, rnn->gates * rnn->hidden, &data->w_bytes[d]);
            view_bytes(data->r[d], rnn->hidden, rnn->gates * rnn->hidden, &data->r_bytes[d]);
        }
    }
}

static const kelp_tensor *weights_of(const kelp_node *node, int32_t index, bool any) {
    const kelp_tensor *tensor = kelp_ops_constant(node, index);
    return tensor != NULL && (any || (tensor->rank == 3 && tensor->dtype == KELP_F32)) ? tensor
                                                                                       : NULL;
}

static bool is_byte(const kelp_tensor *tensor) {
    return kelp_ops_is_byte(tensor->dtype);
}

/* Returns true if the weights have 8 bits, with scales and zero points for each direction or for
 * each column. */
static bool are_parameters(const kelp_tensor *const *in, const kelp_tensor *w) {
    int64_t each = w->shape[0] * w->shape[2];
    for (int i = W_SCALE; i <= R_ZERO; i++) {
        int64_t count = in[i] != NULL ? kelp_tensor_elements(in[i]) : 0;
        if (count != w->shape[0] && count != each)
            return false;
    }
    return is_byte(in[W]) && is_byte(in[R]) && is_byte(in[W_ZERO]) && is_byte(in[R_ZERO]) &&
           in[W_SCALE]->dtype == KELP_F32 && in[R_SCALE]->dtype == KELP_F32;
}

static kelp_status *rnn_create(const kelp_node *node, const kelp_op_env *env, void **out_state) {
    const kelp_tensor *in[R_ZERO + 1] = {0};
    bool quantized = is_quantized(node);
    for (int32_t i = 0; i <= R_ZERO; i++) {
        in[i] = weights_of(node, i, quantized);
        if (quantized && i >= W_SCALE && in[i] == NULL)
            return NULL;
    }
    const kelp_tensor *w = in[W], *r = in[R];
    kelp_rnn rnn = {.kind = kind_of(node), .quantizes = quantized};
    pack_sizes sizes;
    rnn_state *state = NULL;
    char layout[KELP_OP_LAYOUT_MAX + 1];
    kelp_op_packing packing = {
        .layout = layout, .inputs = 1u << W | 1u << R, .replaces = 1u << W | 1u << R};
    void *memory = NULL;
    size_t all;
    if (w == NULL || r == NULL || kelp_tensor_bytes(w) == 0 || w->rank != 3 || r->rank != 3 ||
        (quantized && !are_parameters(in, w)))
        return NULL;
    rnn.gates = rnn.kind == KELP_LSTM ? 4 : rnn.kind == KELP_GRU ? 3 : 1;
    rnn.directions = w->shape[0];
    int row = quantized ? 2 : 1; /* the axis of gates */
    rnn.inputs = w->shape[3 - row];
    rnn.hidden = r->shape[3 - row];
    if (rnn.directions > 2 || w->shape[row] != rnn.gates * rnn.hidden ||
        r->shape[0] != w->shape[0] || r->shape[row] != w->shape[row] ||
        !sizes_of(&rnn, &sizes, &all) || !kelp_size_mul(all, sizeof(float), &packing.size_bytes))
        return NULL; /* not packed; reshape reports errors */
    kelp_allocator allocator = kelp_op_env_allocator(env);
    kelp_op_pack_site site = kelp_op_env_pack_site(env);
    if (quantized)
        memcpy(layout, "qrnn8/1", sizeof "qrnn8/1"); /* the same for every instruction set */
    else
        kelp_gemm_layout(kelp_gemm_kernels_get(), "rnn", layout, sizeof layout);
    KELP_TRY(KELP_NEW(allocator, rnn_state, &state));
    *out_state = state;
    KELP_TRY(kelp_op_pack(&site, allocator, &packing, &state->packed, &memory));
    if (memory != NULL && quantized)
        pack_quantized(&rnn, in, memory);
    else if (memory != NULL)
        pack(&rnn, w->data, r->data, memory);
    return NULL;
}

static void rnn_destroy(void *state, kelp_allocator allocator) {
    rnn_state *s = state;
    if (s == NULL)
        return;
    kelp_op_unpack(&s->packed, allocator);
    kelp_free(allocator, s, sizeof *s);
}

/* ---- attributes ---- */
static const struct {
    const char *name;
    bool takes_alpha, takes_beta;
    float alpha, beta;
} functions[] = {
    [KELP_RNN_TANH] = {"Tanh", false, false, 0, 0},
    [KELP_RNN_SIGMOID] = {"Sigmoid", false, false, 0, 0},
    [KELP_RNN_RELU] = {"Relu", false, false, 0, 0},
    [KELP_RNN_AFFINE] = {"Affine", true, true, 1.0f, 0},
    [KELP_RNN_LEAKY_RELU] = {"LeakyRelu", true, false, 0.01f, 0},
    [KELP_RNN_THRESHOLDED_RELU] = {"ThresholdedRelu", true, false, 1.0f, 0},
    [KELP_RNN_SCALED_TANH] = {"ScaledTanh", true, true, 1.0f, 1.0f},
    [KELP_RNN_HARD_SIGMOID] = {"HardSigmoid", true, true, 0.2f, 0.5f},
    [KELP_RNN_ELU] = {"Elu", true, false, 1.0f, 0},
    [KELP_RNN_SOFTSIGN] = {"Softsign", false, false, 0, 0},
    [KELP_RNN_SOFTPLUS] = {"Softplus", false, false, 0, 0},
};

static kelp_status *function_of(const kelp_node *node, const kelp_string *name, kelp_rnn_act *out) {
    for (size_t i = 0; i < KELP_COUNT(functions); i++)
        if (strlen(functions[i].name) == name->length &&
            strncasecmp(functions[i].name, name->data, name->length) == 0) {
            *out = (kelp_rnn_act){(kelp_rnn_function)i, functions[i].alpha, functions[i].beta};
            return NULL;
        }
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "operator '%s': activation '%.*s' is not supported",
                      kelp_node_op_type(node), (int)KELP_MIN(name->length, (size_t)64), name->data);
}

static kelp_status *read_activations(const kelp_node *node, kelp_rnn *rnn) {
    static const kelp_rnn_function defaults[3][3] = {
        [KELP_RNN] = {KELP_RNN_TANH, KELP_RNN_TANH, KELP_RNN_TANH},
        [KELP_GRU] = {KELP_RNN_SIGMOID, KELP_RNN_TANH, KELP_RNN_TANH},
        [KELP_LSTM] = {KELP_RNN_SIGMOID, KELP_RNN_TANH, KELP_RNN_TANH}};
    const kelp_string *names = NULL;
    const float *alphas = NULL, *betas = NULL;
    size_t each = rnn->kind == KELP_LSTM ? 3 : rnn->kind == KELP_GRU ? 2 : 1;
    size_t count = kelp_node_attr_strings(node, "activations", &names), a = 0, b = 0;
    size_t alpha_count = kelp_node_attr_f32s(node, "activation_alpha", &alphas);
    size_t beta_count = kelp_node_attr_f32s(node, "activation_beta", &betas);
    if (count != 0 && count < each * (size_t)rnn->directions)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "operator '%s' needs %zu activations: found %zu",
                          kelp_node_op_type(node), each * (size_t)rnn->directions, count);
    for (size_t d = 0; d < (size_t)rnn->directions; d++)
        for (size_t i = 0; i < each; i++) {
            kelp_rnn_act *act = &rnn->acts[d][i];
            *act = (kelp_rnn_act){defaults[rnn->kind][i], 0, 0};
            if (count != 0)
                KELP_TRY(function_of(node, &names[d * each + i], act));
            if (functions[act->function].takes_alpha && a < alpha_count)
                act->alpha = alphas[a++];
            if (functions[act->function].takes_beta && b < beta_count)
                act->beta = betas[b++];
        }
    return NULL;
}

static kelp_status *read_attributes(const kelp_node *node, kelp_rnn *rnn) {
    const char *direction = kelp_node_attr_string(node, "direction", "forward", NULL);
    rnn->kind = kind_of(node);
    rnn->gates = rnn->kind == KELP_LSTM ? 4 : rnn->kind == KELP_GRU ? 3 : 1;
    rnn->directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    rnn->backward = strcmp(direction, "reverse") == 0;
    if (rnn->directions == 1 && !rnn->backward && strcmp(direction, "forward") != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator '%s': attribute 'direction' is '%s': expected 'forward', "
                          "'reverse' or 'bidirectional'",
                          kelp_node_op_type(node), direction);
    rnn->linear_before_reset = kelp_node_attr_i64(node, "linear_before_reset", 0) != 0;
    rnn->input_forget = kelp_node_attr_i64(node, "input_forget", 0) != 0;
    rnn->clip = kelp_node_attr_f32(node, "clip", 0.0f);
    return read_activations(node, rnn);
}

/* ---- shapes ---- */
static bool has_shape(const kelp_tensor *tensor, int32_t rank, const int64_t *shape) {
    return tensor == NULL || (tensor->rank == rank &&
                              memcmp(tensor->shape, shape, (size_t)rank * sizeof *shape) == 0);
}

static kelp_status *check_shapes(const kelp_op_args *args, const kelp_rnn *rnn, bool batch_first) {
    const kelp_tensor *x = args->inputs[X], *lengths = kelp_ops_in(args, LENGTHS);
    int64_t width = rnn->gates * rnn->hidden;
    int64_t states[3] = {rnn->directions, rnn->batch, rnn->hidden};
    if (batch_first) {
        states[0] = rnn->batch;
        states[1] = rnn->directions;
    }
    int64_t w[3] = {rnn->directions, width, rnn->inputs};
    int64_t r[3] = {rnn->directions, width, rnn->hidden};
    if (rnn->quantizes) {
        memcpy(w + 1, (int64_t[2]){rnn->inputs, width}, 2 * sizeof *w);
        memcpy(r + 1, (int64_t[2]){rnn->hidden, width}, 2 * sizeof *r);
    }
    if (!has_shape(args->inputs[W], 3, w))
        return kelp_ops_bad_shapes(args, x, args->inputs[W],
                                   "the shape of the weights does not match");
    if (!has_shape(args->inputs[R], 3, r))
        return kelp_ops_bad_shapes(args, x, args->inputs[R],
                                   "the shape of the recurrent weights does not match");
    if (!has_shape(kelp_ops_in(args, BIAS), 2, (int64_t[2]){rnn->directions, 2 * width}))
        return kelp_ops_bad_shapes(args, x, args->inputs[BIAS],
                                   "the shape of the bias does not match");
    if (lengths != NULL &&
        (lengths->dtype != KELP_I32 || !has_shape(lengths, 1, (int64_t[1]){rnn->batch})))
        return kelp_ops_bad_shapes(args, x, lengths, "expected an int32 length for each sequence");
    if (!has_shape(kelp_ops_in(args, H), 3, states))
        return kelp_ops_bad_shapes(args, x, args->inputs[H],
                                   "the shape of the initial state does not match");
    if (!has_shape(kelp_ops_in(args, C), 3, states))
        return kelp_ops_bad_shapes(args, x, args->inputs[C],
                                   "the shape of the initial cell state does not match");
    if (!has_shape(kelp_ops_in(args, PEEPHOLES), 2, (int64_t[2]){rnn->directions, 3 * rnn->hidden}))
        return kelp_ops_bad_shapes(args, x, args->inputs[PEEPHOLES],
                                   "the shape of the peephole weights does not match");
    return NULL;
}

static kelp_status *set_outputs(kelp_op_args *args, kelp_rnn *rnn, bool batch_first) {
    kelp_dtype dtype = args->inputs[X]->dtype;
    int64_t n = rnn->hidden, d = rnn->directions, b = rnn->batch;
    int64_t y[4] = {rnn->steps, d, b, n}, states[3] = {d, b, n};
    rnn->y_step = d * b * n;
    rnn->y_direction = rnn->h_direction = b * n;
    rnn->y_batch = rnn->h_batch = n;
    if (batch_first) {
        memcpy(y, (int64_t[4]){b, rnn->steps, d, n}, sizeof y);
        memcpy(states, (int64_t[3]){b, d, n}, sizeof states);
        rnn->y_step = d * n;
        rnn->y_direction = rnn->h_direction = n;
        rnn->y_batch = rnn->steps * d * n;
        rnn->h_batch = d * n;
    }
    KELP_TRY(kelp_ops_set(args, 0, dtype, 4, y));
    KELP_TRY(kelp_ops_set(args, 1, dtype, 3, states));
    return kelp_ops_set(args, 2, dtype, 3, states);
}

/* Returns true if the data of a constant is not aligned to its elements. */
static bool is_misaligned(const kelp_tensor *tensor, size_t size) {
    return ((uintptr_t)tensor->data & (size - 1)) != 0;
}

static kelp_status *reserve(kelp_op_args *args, rnn_plan *p, bool packed, bool batch_first) {
    kelp_dtype dtype = args->inputs[X]->dtype;
    size_t size = dtype == KELP_F64 ? 8 : 4, elements, all;
    pack_sizes sizes;
    for (int32_t i = 0; i < args->input_count && i < 8; i++)
        if (dtype != KELP_F64 && i != LENGTHS &&
            !((packed || p->rnn.quantizes) && (i == W || i == R)))
            KELP_TRY(kelp_ops_plan_f32(args, args->inputs[i], &p->in_at[i]));
    for (int32_t i = 0; i < 3 && dtype != KELP_F64; i++)
        KELP_TRY(kelp_ops_plan_f32(args, kelp_ops_out(args, i), &p->out_at[i]));
    if (batch_first)
        KELP_TRY(kelp_ops_scratch(args, kelp_tensor_elements(args->inputs[X]), size, &p->x_copy));
    if (p->rnn.quantizes)
        KELP_TRY(kelp_ops_scratch(args, kelp_tensor_elements(args->inputs[X]), 1, &p->x_bytes));
    if (!sizes_of(&p->rnn, &sizes, &all))
        all = SIZE_MAX;
    bool misaligned = !p->rnn.quantizes && (is_misaligned(args->inputs[W], size) ||
                                            is_misaligned(args->inputs[R], size));
    for (int i = W; i <= R && dtype == KELP_F64 && misaligned; i++)
        KELP_TRY(kelp_ops_scratch(args, kelp_tensor_elements(args->inputs[i]), size, &p->in_at[i]));
    p->copies_weights = dtype == KELP_F64 && misaligned;
    /* packing is not profitable for weights that are read a few times */
    p->plain = !packed && !p->rnn.quantizes && p->rnn.steps * p->rnn.batch <= 8 &&
               (dtype != KELP_F32 || !misaligned);
    if (!packed && dtype != KELP_F64 && !p->plain)
        KELP_TRY(kelp_ops_scratch(args, sizeof(float), all, &p->packed));
    if (!kelp_rnn_scratch(&p->rnn, &elements))
        elements = SIZE_MAX;
    return kelp_ops_scratch(args, (int64_t)size, elements, &p->scratch);
}

static kelp_status *rnn_reshape(const void *state, kelp_op_args *args) {
    rnn_plan *p = args->plan;
    kelp_rnn *rnn = &p->rnn;
    rnn->quantizes = is_quantized(args->node);
    KELP_TRY(kelp_ops_check_inputs(args, 3));
    const kelp_tensor *x = args->inputs[X], *r = args->inputs[R];
    bool batch_first = kelp_node_attr_i64(args->node, "layout", 0) != 0;
    for (int32_t i = 0; i < args->input_count && i < 8; i++)
        if (args->inputs[i] != NULL && i != LENGTHS && !(rnn->quantizes && (i == W || i == R)) &&
            (!kelp_ops_is_float(x->dtype) || args->inputs[i]->dtype != x->dtype))
            return kelp_ops_bad_type(args, args->inputs[i]->dtype);
    KELP_TRY(read_attributes(args->node, rnn));
    if (x->rank != 3 || r->rank != 3)
        return kelp_ops_bad_shapes(args, x, r, "expected inputs and weights of rank 3");
    rnn->steps = x->shape[batch_first ? 1 : 0];
    rnn->batch = x->shape[batch_first ? 0 : 1];
    rnn->inputs = x->shape[2];
    rnn->hidden = r->shape[rnn->quantizes ? 1 : 2];
    KELP_TRY(check_shapes(args, rnn, batch_first));
    if (rnn->quantizes && (x->dtype != KELP_F32 || args->input_count <= R_ZERO ||
                           !are_parameters(args->inputs, args->inputs[W])))
        return kelp_ops_bad_shapes(args, x, args->inputs[W],
                                   "expected float inputs, and 8-bit weights with scales and zero "
                                   "points");
    KELP_TRY(set_outputs(args, rnn, batch_first));
    return reserve(args, p, state != NULL, batch_first);
}

/* ---- invoke ---- */
/* Copies `x` from batch first to steps first. */
static const void *steps_first(const kelp_op_args *args, const rnn_plan *p, const void *x,
                               size_t size) {
    const kelp_rnn *rnn = &p->rnn;
    int64_t shape[3] = {rnn->steps, rnn->batch, rnn->inputs};
    int64_t to[3] = {rnn->batch * rnn->inputs, rnn->inputs, 1};
    int64_t from[3] = {rnn->inputs, rnn->steps * rnn->inputs, 1};
    void *out = kelp_ops_scratch_at(args, p->x_copy);
    kelp_ops_copy(args->env, size, 3, shape, out, to, x, from);
    return out;
}

/* Returns the elements of an input in the type of the run; NULL if it is omitted. */
static const void *operand(const kelp_op_args *args, const rnn_plan *p, int32_t index) {
    const kelp_tensor *tensor = kelp_ops_in(args, index);
    if (tensor == NULL)
        return NULL;
    if (tensor->dtype != KELP_F64)
        return kelp_ops_get_f32(args, tensor, p->in_at[index]);
    if (!p->copies_weights || (index != W && index != R))
        return tensor->data;
    return memcpy(kelp_ops_scratch_at(args, p->in_at[index]), tensor->data,
                  kelp_tensor_bytes(tensor));
}

static kelp_status *check_lengths(const kelp_op_args *args, const kelp_rnn *rnn) {
    const kelp_tensor *lengths = kelp_ops_in(args, LENGTHS);
    for (int64_t b = 0; b < rnn->batch && lengths != NULL; b++) {
        int32_t length = ((const int32_t *)lengths->data)[b];
        if (length < 0 || length > rnn->steps)
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT, "operator '%s': sequence %lld of %lld steps has length %d",
                kelp_node_op_type(args->node), (long long)b, (long long)rnn->steps, length);
    }
    return NULL;
}

static void use_plain(const kelp_rnn *rnn, const float *w, const float *r, kelp_rnn_data *data) {
    data->plain = true;
    for (int64_t d = 0; d < rnn->directions; d++) {
        int64_t rows = d * rnn->gates * rnn->hidden;
        data->w[d] = w + rows * rnn->inputs;
        data->r[d] = r + rows * rnn->hidden;
    }
}

static void use_weights(const rnn_state *state, const kelp_op_args *args, const rnn_plan *p,
                        kelp_rnn_data *data) {
    const kelp_rnn *rnn = &p->rnn;
    if (state != NULL) {
        use_packed(rnn, state->packed.data, data);
    } else if (rnn->quantizes) {
        pack_quantized(rnn, args->inputs, kelp_ops_scratch_at(args, p->packed));
        use_packed(rnn, kelp_ops_scratch_at(args, p->packed), data);
    } else if (args->inputs[X]->dtype != KELP_F64) {
        if (p->plain) {
            use_plain(rnn, operand(args, p, W), operand(args, p, R), data);
            return;
        }
        pack(rnn, operand(args, p, W), operand(args, p, R), kelp_ops_scratch_at(args, p->packed));
        use_packed(rnn, kelp_ops_scratch_at(args, p->packed), data);
    } else {
        const double *w = operand(args, p, W), *r = operand(args, p, R);
        for (int64_t d = 0; d < rnn->directions; d++) {
            int64_t rows = d * rnn->gates * rnn->hidden;
            data->w[d] = w + rows * rnn->inputs;
            data->r[d] = r + rows * rnn->hidden;
        }
    }
}

/* Returns memory for the floats of output `i`: the tensor, or scratch memory that is converted. */
static float *float_output(const kelp_op_args *args, const rnn_plan *p, int32_t i) {
    return args->outputs[i]->dtype == KELP_F32 ? args->outputs[i]->data
                                               : kelp_ops_scratch_at(args, p->out_at[i]);
}

static kelp_status *rnn_invoke(const void *state, kelp_op_args *args) {
    const rnn_plan *p = args->plan;
    bool wide = args->inputs[X]->dtype == KELP_F64;
    kelp_rnn_data data = {.scratch = kelp_ops_scratch_at(args, p->scratch)};
    void *outs[3] = {0};
    KELP_ASSERT(p->rnn.directions == 1 || p->rnn.directions == 2);
    KELP_ASSERT(args->inputs[X]->shape[2] == p->rnn.inputs);
    KELP_TRY(check_lengths(args, &p->rnn));
    data.x = operand(args, p, X);
    if (kelp_node_attr_i64(args->node, "layout", 0) != 0)
        data.x = steps_first(args, p, data.x, wide ? 8 : 4);
    if (p->rnn.quantizes) {
        uint8_t *bytes = kelp_ops_scratch_at(args, p->x_bytes);
        kelp_quantize_dynamic(args->env, data.x, kelp_tensor_elements(args->inputs[X]), bytes,
                              &data.x_bytes.scale, &data.x_bytes.zero);
        data.x_bytes.data = bytes;
    }
    use_weights(state, args, p, &data);
    data.bias = operand(args, p, BIAS);
    data.lengths = kelp_ops_in(args, LENGTHS) != NULL ? args->inputs[LENGTHS]->data : NULL;
    data.h = operand(args, p, H);
    data.c = operand(args, p, C);
    data.peepholes = operand(args, p, PEEPHOLES);
    for (int32_t i = 0; i < 3; i++)
        if (kelp_ops_out(args, i) != NULL)
            outs[i] = wide ? args->outputs[i]->data : float_output(args, p, i);
    data.y = outs[0];
    data.y_h = outs[1];
    data.y_c = outs[2];
    if (wide)
        kelp_rnn_run_f64(args->env, &p->rnn, &data);
    else
        kelp_rnn_run_f32(args->env, &p->rnn, &data);
    for (int32_t i = 0; i < 3 && !wide; i++)
        if (outs[i] != NULL && args->outputs[i]->dtype != KELP_F32)
            kelp_ops_store_f32(args->env, outs[i], args->outputs[i]);
    return NULL;
}

#define RNN_KERNEL(name)                                                          \
    const kelp_op_kernel kelp_op_##name = {.struct_size = sizeof(kelp_op_kernel), \
                                           .flags = KELP_OP_STATE_OPTIONAL,       \
                                           .plan_bytes = sizeof(rnn_plan),        \
                                           .unaligned_inputs = 1u << W | 1u << R, \
                                           .create = rnn_create,                  \
                                           .destroy = rnn_destroy,                \
                                           .reshape = rnn_reshape,                \
                                           .invoke = rnn_invoke}
RNN_KERNEL(RNN);
RNN_KERNEL(GRU);
RNN_KERNEL(LSTM);
RNN_KERNEL(MsDynamicQuantizeLSTM);
