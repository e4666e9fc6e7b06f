/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that cannot be added: the message names the layer, what was expected and what was found.
 */
#include "builder/support.h"

#include <stdio.h>

static bench b;
static kelp_layer *layer;

static int open_bench(void **state) {
    (void)state;
    bench_open(&b);
    return 0;
}

static int close_bench(void **state) {
    (void)state;
    bench_close(&b);
    return 0;
}

/* Expects a failure of the network with INVALID_ARGUMENT, whose message contains `part`. */
static void rejected(kelp_status *status, const char *part) {
    if (status == NULL)
        fail_msg("accepted instead of: %s", part);
    assert_int_equal(kelp_status_domain(status), KELP_DOMAIN_NETWORK);
    expect_failure(status, KELP_INVALID_ARGUMENT, part);
}

static kelp_net_tensor *scalar(float value) {
    static float values[64];
    static size_t used;
    assert_true(used < sizeof values / sizeof *values);
    values[used] = value;
    check_ok(kelp_network_add_constant(b.network, dims(0),
                                       (kelp_weights){KELP_F32, &values[used++], 1, NULL}, &layer));
    return out_of(layer);
}

/* A tensor of `dtype` whose rank is not known before it runs. */
static kelp_net_tensor *of_unknown_rank(const char *name, kelp_dtype dtype) {
    char shape_name[32];
    snprintf(shape_name, sizeof shape_name, "%s_shape", name);
    kelp_net_tensor *x = input(&b, name, dtype, dims(1, -1));
    kelp_shuffle options = {.struct_size = sizeof options,
                            .shape = input(&b, shape_name, KELP_I64, dims(1, -1))};
    check_ok(kelp_network_add_shuffle(b.network, x, &options, &layer));
    assert_int_equal(kelp_net_tensor_dims(out_of(layer)).rank, -1);
    return out_of(layer);
}

/* ---- networks, inputs ---- */
static void inputs(void **state) {
    const kelp_shape below = {.rank = -1}, above = {.rank = KELP_MAX_RANK + 1};
    kelp_net_tensor *x = NULL;
    (void)state;
    rejected(kelp_network_add_input(b.network, "x", KELP_F32, below, &x),
             "input 'x': expected a type and 0 to 16 dimensions, found float32 and -1");
    rejected(kelp_network_add_input(b.network, "x", KELP_F32, above, &x),
             "0 to 16 dimensions, found float32 and 17");
    rejected(kelp_network_add_input(b.network, "x", KELP_DTYPE_INVALID, dims(0), &x),
             "input 'x': expected a type");
    rejected(kelp_network_add_input(b.network, "", KELP_F32, dims(0), &x), "the name is empty");
    assert_int_equal(kelp_network_input_count(b.network), 0);
}

/* A failure leaves no layer behind: the next one has the next number. */
static void messages_name_the_layer(void **state) {
    (void)state;
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(2, 3, 4));
    rejected(kelp_network_add_softmax(b.network, x, 0, &layer),
             "layer 1 'SoftMax_1' (SoftMax): the mask of axes is empty");
    check_ok(kelp_network_add_identity(b.network, x, &layer));
    check_ok(kelp_layer_set_name(layer, "copy"));
    rejected(kelp_recurrence_set_next(layer, x),
             "layer 1 'copy' (Identity): expected a recurrence layer");
}

/* ---- elementwise ---- */
static void elementwise(void **state) {
    (void)state;
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(2, 3, 4));
    kelp_net_tensor *n = input(&b, "n", KELP_I32, dims(2, 3, 4));
    kelp_net_tensor *unknown = of_unknown_rank("u", KELP_F32);
    const kelp_weights none = {0};
    rejected(kelp_network_add_unary(b.network, x, (kelp_unary)25, &layer),
             "(Unary): invalid unary operation 25");
    rejected(kelp_network_add_unary(b.network, x, (kelp_unary)-1, &layer),
             "invalid unary operation -1");
    rejected(kelp_network_add_unary(b.network, x, KELP_UNARY_NOT, &layer),
             "'x' must be of type bool, found float32");
    rejected(kelp_network_add_unary(b.network, n, KELP_UNARY_EXP, &layer),
             "'n' must be of a floating-point type, found int32");
    rejected(kelp_network_add_elementwise(b.network, x, x, (kelp_elementwise)14, &layer),
             "invalid elementwise operation 14");
    for (int op = KELP_ELEMENTWISE_AND; op <= KELP_ELEMENTWISE_XOR; op++)
        rejected(kelp_network_add_elementwise(b.network, x, x, (kelp_elementwise)op, &layer),
                 "(ElementWise): 'x' must be of type bool, found float32");
    rejected(kelp_network_add_activation(b.network, x, (kelp_activation)14, 0, 0, &layer),
             "invalid activation 14");
    rejected(kelp_network_add_activation(b.network, n, KELP_ACTIVATION_TANH, 0, 0, &layer),
             "'n' must be of a floating-point type, found int32");
    rejected(kelp_network_add_scale(b.network, n, KELP_SCALE_UNIFORM, none, none, none, 0, &layer),
             "'n' must be of a floating-point type, found int32");
    rejected(kelp_network_add_scale(b.network, x, KELP_SCALE_CHANNEL, none, none, none, 2, &layer),
             "axis 2 is out of range for 'x' of shape [3,4]");
    rejected(
        kelp_network_add_scale(b.network, unknown, KELP_SCALE_CHANNEL, none, none, none, 1, &layer),
        "(Scale): the input's rank must be known");
    rejected(kelp_network_add_select(b.network, x, x, x, &layer),
             "'x' must be of type bool, found float32");
    rejected(kelp_network_add_cast(b.network, x, (kelp_dtype)999, &layer),
             "(Cast): invalid element type 999");
    rejected(kelp_network_add_cast(b.network, x, KELP_DTYPE_INVALID, &layer),
             "(Cast): invalid element type 0");
}

static void scales_of_dynamic_axes(void **state) {
    static const float four[4] = {1, 2, 3, 4};
    const kelp_weights none = {0}, scale = {KELP_F32, four, 4, NULL};
    (void)state;
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(3, 2, -1, 4));
    rejected(kelp_network_add_scale(b.network, x, KELP_SCALE_CHANNEL, none, scale, none, 1, &layer),
             "(Scale): axis 1 of the input must be fixed");
    rejected(kelp_network_add_scale(b.network, x, KELP_SCALE_CHANNEL, none, scale, none, 0, &layer),
             "scale: shape [2,1,1] needs 2 weights, found 4");
    check_ok(
        kelp_network_add_scale(b.network, x, KELP_SCALE_CHANNEL, none, scale, none, 2, &layer));
}

/* ---- axes ---- */
static void axes_out_of_range(void **state) {
    (void)state;
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(2, 3, 4));
    kelp_net_tensor *zero = input(&b, "zero", KELP_F32, dims(0));
    kelp_net_tensor *unknown = of_unknown_rank("u", KELP_F32);
    rejected(kelp_network_add_cumulative(b.network, x, -1, false, false, &layer),
             "axis -1 is out of range for 'x' of shape [3,4]");
    rejected(kelp_network_add_cumulative(b.network, x, 2, false, false, &layer),
             "axis 2 is out of range for 'x' of shape [3,4]");
    rejected(kelp_network_add_cumulative(b.network, zero, 0, false, false, &layer),
             "axis 0 is out of range for 'zero' of shape []");
    rejected(kelp_network_add_cumulative(b.network, unknown, KELP_MAX_RANK, false, false, &layer),
             "axis 16 is out of range");
    check_ok(
        kelp_network_add_cumulative(b.network, unknown, KELP_MAX_RANK - 1, false, false, &layer));
    rejected(kelp_network_add_concatenation(b.network, &x, 1, -2, &layer),
             "axis -2 is out of range");
    rejected(kelp_network_add_softmax(b.network, x, 3, &layer),
             "the mask of axes 0x3 must have exactly one bit, found 2");
    rejected(kelp_network_add_reduce(b.network, x, KELP_REDUCE_NONE, 1, false, &layer),
             "(Reduce): invalid reduction 5");
    rejected(kelp_network_add_topk(b.network, x, true, 4, NULL, 1, KELP_I32, &layer),
             "k is 4, but axis 0 has 3 elements");
    rejected(kelp_network_add_topk(b.network, x, true, -1, NULL, 1, KELP_I32, &layer), "k is -1");
    rejected(kelp_network_add_topk(b.network, x, true, 1, NULL, 1, KELP_F32, &layer),
             "indices must be int32 or int64, found float32");
    rejected(
        kelp_network_add_ragged_softmax(b.network, x, input(&b, "n", KELP_I32, dims(1, 3)), &layer),
        "bounds have 1 dimensions, but the input has 2");
}

/* ---- matrices ---- */
static void matrices(void **state) {
    (void)state;
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(2, 3, 4));
    kelp_net_tensor *v = input(&b, "v", KELP_F32, dims(1, 4));
    kelp_net_tensor *batch = input(&b, "batch", KELP_F32, dims(3, 2, 4, 3));
    kelp_net_tensor *unknown = of_unknown_rank("u", KELP_F32);
    rejected(kelp_network_add_matrix_multiply(b.network, x, (kelp_matrix_op)7, x, KELP_MATRIX_NONE,
                                              &layer),
             "(MatrixMultiply): invalid matrix operation 7");
    rejected(kelp_network_add_matrix_multiply(b.network, x, KELP_MATRIX_NONE, v, KELP_MATRIX_NONE,
                                              &layer),
             "'v' must have at least 2 dimensions, found [4]");
    rejected(kelp_network_add_matrix_multiply(b.network, unknown, KELP_MATRIX_TRANSPOSE, x,
                                              KELP_MATRIX_NONE, &layer),
             "the rank of a transposed operand must be known");
    rejected(kelp_network_add_matrix_multiply(b.network, x, KELP_MATRIX_NONE, batch,
                                              KELP_MATRIX_NONE, &layer),
             "operands [3,4] and [2,4,3] have 0 and 1 batch dimensions");
    rejected(kelp_network_add_matrix_multiply(b.network, x, KELP_MATRIX_TRANSPOSE, v,
                                              KELP_MATRIX_VECTOR, &layer),
             "[3,4] and [4] do not match: inner dimensions are 3 and 4");
    rejected(kelp_network_add_matrix_multiply(b.network, x, KELP_MATRIX_NONE, x, KELP_MATRIX_NONE,
                                              &layer),
             "[3,4] and [3,4] do not match: inner dimensions are 4 and 3");
    rejected(kelp_network_add_einsum(b.network, &x, 0, "ij->ji", &layer),
             "einsum 'ij->ji': at least one tensor is expected");
    rejected(kelp_network_add_einsum(b.network, &x, 1, "ijk->i", &layer), "layer 6 'Einsum_6'");
}

static void attention(void **state) {
    const kelp_attention causal = {
        .struct_size = sizeof causal, .causal = true, .no_softmax = true};
    (void)state;
    kelp_net_tensor *q = input(&b, "q", KELP_F32, dims(4, 1, 2, 3, 4));
    kelp_net_tensor *v = input(&b, "v", KELP_F32, dims(3, 2, 3, 4));
    kelp_net_tensor *n = input(&b, "n", KELP_I32, dims(4, 1, 2, 3, 4));
    kelp_net_tensor *h = input(&b, "h", KELP_F16, dims(4, 1, 2, 3, 4));
    rejected(kelp_network_add_attention(b.network, q, q, q, &causal, &layer),
             "(Attention): causal attention requires softmax");
    rejected(kelp_network_add_attention(b.network, q, q, v, NULL, &layer),
             "'v' must have 4 dimensions, found [2,3,4]");
    rejected(kelp_network_add_attention(b.network, q, q, n, NULL, &layer),
             "'n' must be of a floating-point type, found int32");
    rejected(kelp_network_add_attention(b.network, q, h, q, NULL, &layer),
             "'q' and 'h' must have the same type, found float32 and float16");
    rejected(kelp_network_add_attention(b.network, q, q, h, NULL, &layer),
             "'q' and 'h' must have the same type, found float32 and float16");
    rejected(kelp_network_add_kv_cache_update(b.network, q, v, n, &layer),
             "'v' must have 4 dimensions, found [2,3,4]");
    rejected(kelp_network_add_rotary_embedding(b.network, q, v, v, n, false, 0, &layer),
             "'v' must have 2 dimensions, found [2,3,4]");
}

static void experts(void **state) {
    (void)state;
    kelp_net_tensor *hidden = input(&b, "hidden", KELP_F32, dims(3, 1, 2, 4));
    kelp_net_tensor *chosen = input(&b, "chosen", KELP_I32, dims(3, 1, 2, 1));
    kelp_net_tensor *scores = input(&b, "scores", KELP_F32, dims(3, 1, 2, 1));
    kelp_net_tensor *up = input(&b, "up", KELP_F32, dims(3, -1, 4, 6));
    rejected(kelp_network_add_moe(b.network, hidden, chosen, scores, NULL, up, NULL, NULL, &layer),
             "a mixture of experts needs 'up' and 'down' weights");
    rejected(kelp_network_add_moe(b.network, hidden, chosen, scores, NULL, up, up, NULL, &layer),
             "(MoE): the number of experts must be known");
    rejected(kelp_network_add_moe(b.network, hidden, scores, scores, NULL, up, up, NULL, &layer),
             "'scores' must be of type int32 or int64, found float32");
}

/* ---- windows ---- */
static void convolutions(void **state) {
    static const float kernel[8 * 4 * 9];
    const kelp_weights none = {0}, w = {KELP_F32, kernel, 8 * 2 * 9, NULL};
    const struct {
        int64_t maps, groups;
        const char *message;
    } cases[] = {
        {0, 1, "0 output maps and 4 channels cannot be split into 1 groups"},
        {-8, 2, "-8 output maps and 4 channels cannot be split into 2 groups"},
        {8, -1, "8 output maps and 4 channels cannot be split into -1 groups"},
        {7, 2, "7 output maps and 4 channels cannot be split into 2 groups"},
        {9, 3, "9 output maps and 4 channels cannot be split into 3 groups"},
        {8, 1, "kernel: shape [8,4,3,3] needs 288 weights, found 144"},
    };
    (void)state;
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(4, 1, 4, 5, 5));
    kelp_net_tensor *open = input(&b, "open", KELP_F32, dims(4, 1, -1, 5, 5));
    kelp_net_tensor *n = input(&b, "n", KELP_I32, dims(4, 1, 4, 5, 5));
    kelp_window options = {.struct_size = sizeof options};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        options.groups = cases[i].groups;
        rejected(kelp_network_add_convolution(b.network, x, cases[i].maps, dims(2, 3, 3), w, none,
                                              &options, &layer),
                 cases[i].message);
    }
    options.groups = 2;
    check_ok(
        kelp_network_add_convolution(b.network, x, 8, dims(2, 3, 3), w, none, &options, &layer));
    rejected(kelp_network_add_convolution(b.network, n, 8, dims(2, 3, 3), w, none, NULL, &layer),
             "'n' must be of a floating-point type, found int32");
    rejected(kelp_network_add_convolution(b.network, open, 8, dims(2, 3, 3), w, none, NULL, &layer),
             "(Convolution): the input's channels must be fixed");
    rejected(kelp_network_add_convolution(b.network, x, 8, dims(1, 3), w, none, NULL, &layer),
             "the window must have 2 or 3 dimensions, found 1");
    rejected(kelp_network_add_convolution(b.network, x, 8, dims(3, 3, 3, 3), w, none, NULL, &layer),
             "a window of 3 dimensions needs an input of 5 dimensions, found [1,4,5,5]");
    options.padding_mode = KELP_PADDING_EXPLICIT_ROUND_UP;
    rejected(
        kelp_network_add_deconvolution(b.network, x, 8, dims(2, 3, 3), w, none, &options, &layer),
        "(Deconvolution): a deconvolution does not support rounding up");
    options.post_padding[1] = -2;
    rejected(
        kelp_network_add_convolution(b.network, x, 8, dims(2, 3, 3), w, none, &options, &layer),
        "padding at least 0: axis 1 has 3, 1, 1, 0 and -2");
}

static void pooling_and_padding(void **state) {
    (void)state;
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(4, 1, 2, 3, 4));
    kelp_net_tensor *v = input(&b, "v", KELP_F32, dims(1, 4));
    kelp_net_tensor *open = input(&b, "open", KELP_F32, dims(4, 1, 2, 3, -1));
    kelp_net_tensor *unknown = of_unknown_rank("u", KELP_F32);
    const kelp_window round_up = {.struct_size = sizeof round_up,
                                  .padding_mode = KELP_PADDING_EXPLICIT_ROUND_UP};
    const kelp_weights none = {0};
    static const float kernel[4];
    rejected(kelp_network_add_pooling(b.network, x, (kelp_pooling)3, dims(2, 2, 2), NULL, &layer),
             "(Pooling): invalid pooling 3");
    rejected(kelp_network_add_convolution(b.network, open, 1, dims(2, 1, 2),
                                          (kelp_weights){KELP_F32, kernel, 4, NULL}, none,
                                          &round_up, &layer),
             "rounding up needs fixed dimensions, but axis 3 is dynamic");
    rejected(kelp_network_add_lrn(b.network, x, 0, 1, 1, 1, &layer),
             "(LRN): the window must be odd and at least 1, found 0");
    rejected(kelp_network_add_lrn(b.network, x, -1, 1, 1, 1, &layer), "at least 1, found -1");
    rejected(kelp_network_add_lrn(b.network, x, 2, 1, 1, 1, &layer), "must be odd and at least 1");
    rejected(kelp_network_add_padding(b.network, v, dims(2, 1, 1), dims(2, 1, 1), &layer),
             "'v' must have at least 2 dimensions, found [4]");
    rejected(kelp_network_add_padding(b.network, unknown, dims(2, 1, 1), dims(2, 1, 1), &layer),
             "(Padding): the input's rank must be known");
    rejected(kelp_network_add_padding(b.network, x, dims(1, 1), dims(3, 1, 1, 1), &layer),
             "padding needs two values before and two after, found 1 and 3");
    rejected(kelp_network_add_padding(b.network, x, dims(2, 0, -3), dims(2, 0, -2), &layer),
             "axis 3 has 4 elements: cannot pad by -3 and -2");
    rejected(kelp_network_add_padding(b.network, x, dims(2, 0, 0), dims(2, -4, 0), &layer),
             "axis 2 has 3 elements: cannot pad by 0 and -4");
    check_ok(kelp_network_add_padding(b.network, x, dims(2, 0, -3), dims(2, 0, -1), &layer));
    check_shape_is(out_of(layer), dims(4, 1, 2, 3, 0));
}

static void sampling(void **state) {
    kelp_resize options = {.struct_size = sizeof options};
    (void)state;
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(4, 1, 2, 3, 4));
    kelp_net_tensor *grid = input(&b, "grid", KELP_F32, dims(4, 1, 5, 5, 2));
    kelp_net_tensor *v = input(&b, "v", KELP_F32, dims(1, 4));
    rejected(kelp_network_add_resize(b.network, x, NULL, &layer),
             "(Resize): expected exactly one of dims, scales and shape, found 0");
    options.dims = dims(4, 1, 2, 3, 8);
    options.scale_count = 4;
    rejected(kelp_network_add_resize(b.network, x, &options, &layer), "shape, found 2");
    options.scale_count = 0;
    options.dims = dims(2, 3, 8);
    rejected(kelp_network_add_resize(b.network, x, &options, &layer),
             "the input has 4 dimensions, but the options have 2 values");
    options.dims = dims(0);
    options.shape = v;
    rejected(kelp_network_add_resize(b.network, x, &options, &layer),
             "'v' must be of type int64, found float32");
    options.mode = (kelp_interpolation)3;
    rejected(kelp_network_add_resize(b.network, x, &options, &layer),
             "invalid mode 3, coordinates 0 or rounding 0");
    rejected(kelp_network_add_grid_sample(b.network, x, grid, (kelp_interpolation)3, false,
                                          KELP_SAMPLE_FILL, &layer),
             "(GridSample): invalid interpolation 3");
    rejected(kelp_network_add_grid_sample(b.network, x, grid, KELP_INTERPOLATION_LINEAR, false,
                                          KELP_SAMPLE_WRAP, &layer),
             "outside must be FILL, CLAMP or REFLECT, found 1");
    rejected(kelp_network_add_grid_sample(b.network, x, v, KELP_INTERPOLATION_LINEAR, false,
                                          KELP_SAMPLE_FILL, &layer),
             "'v' must have 4 dimensions, found [4]");
}

/* ---- shapes and indices ---- */
static void transposes(void **state) {
    const int32_t wrong[][2] = {{0, 0}, {-1, 0}, {0, 2}};
    kelp_shuffle options = {.struct_size = sizeof options, .first_transpose_given = true};
    (void)state;
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(2, 3, 4));
    kelp_net_tensor *unknown = of_unknown_rank("u", KELP_F32);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(options.first_transpose, wrong[i], sizeof wrong[i]);
        rejected(kelp_network_add_shuffle(b.network, x, &options, &layer),
                 "(Shuffle): a transpose of 2 dimensions must name each axis once: position");
    }
    rejected(kelp_network_add_shuffle(b.network, unknown, &options, &layer),
             "the rank of a transposed tensor must be known");
    options.first_transpose_given = false;
    options.shape = x;
    rejected(kelp_network_add_shuffle(b.network, x, &options, &layer),
             "'x' must be of type int32 or int64, found float32");
}

static void slices(void **state) {
    const kelp_slice strict = {.struct_size = sizeof strict},
                     strange = {.struct_size = sizeof strange, .mode = (kelp_sample_mode)5};
    kelp_slice computed = strict;
    (void)state;
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(2, 3, 4));
    kelp_net_tensor *unknown = of_unknown_rank("u", KELP_F32);
    computed.start = input(&b, "start", KELP_I64, dims(1, 3));
    rejected(kelp_network_add_slice(b.network, x, dims(2, 0, 0), dims(2, 1, 1), dims(2, 1, 0),
                                    &strict, &layer),
             "(Slice): axis 1: the stride is 0");
    rejected(kelp_network_add_slice(b.network, x, dims(2, 0, 0), dims(2, -1, 1), dims(2, 1, 1),
                                    NULL, &layer),
             "axis 0: the size must not be negative, found -1");
    rejected(kelp_network_add_slice(b.network, x, dims(1, 0), dims(2, 1, 1), dims(2, 1, 1), NULL,
                                    &layer),
             "start has 1 values, but the input has 2 dimensions");
    rejected(kelp_network_add_slice(b.network, x, dims(0), dims(2, 1, 1), dims(2, 1, 1), &computed,
                                    &layer),
             "start has 3 values, but the input has 2 dimensions");
    rejected(kelp_network_add_slice(b.network, x, dims(2, 0, 0), dims(2, 1, 1), dims(2, 1, 1),
                                    &strange, &layer),
             "(Slice): invalid mode 5");
    rejected(kelp_network_add_slice(b.network, unknown, dims(1, 0), dims(1, 1), dims(1, 1), NULL,
                                    &layer),
             "(Slice): the input's rank must be known");
    /* an empty slice may begin at the end */
    check_ok(kelp_network_add_slice(b.network, x, dims(2, 3, 9), dims(2, 0, 0), dims(2, 1, 1), NULL,
                                    &layer));
    check_shape_is(out_of(layer), dims(2, 0, 0));
}

static void gathers(void **state) {
    int ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    (void)state;
    kelp_shape nine = {.rank = 9};
    for (int i = 0; i < 9; i++)
        nine.d[i] = ones[i];
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(2, 3, 4));
    kelp_net_tensor *wide = input(&b, "wide", KELP_F32, nine);
    kelp_net_tensor *places = input(&b, "places", KELP_I64, nine);
    kelp_net_tensor *i = input(&b, "i", KELP_I64, dims(2, 3, 2));
    kelp_net_tensor *none = input(&b, "none", KELP_I64, dims(0));
    rejected(kelp_network_add_gather(b.network, x, i, KELP_GATHER_DEFAULT, 2, 0, &layer),
             "(Gather): axis 2 is out of range for 'x' of shape [3,4]");
    rejected(kelp_network_add_gather(b.network, x, i, KELP_GATHER_ELEMENT, -1, 0, &layer),
             "(Gather): axis -1 is out of range for 'x' of shape [3,4]");
    rejected(kelp_network_add_gather(b.network, x, i, (kelp_gather_mode)3, 0, 0, &layer),
             "(Gather): invalid mode 3");
    rejected(kelp_network_add_gather(b.network, x, i, KELP_GATHER_DEFAULT, 0, -1, &layer),
             "invalid number of batch dimensions -1");
    rejected(kelp_network_add_gather(b.network, x, i, KELP_GATHER_DEFAULT, 0, 1, &layer),
             "axis 0 must come after the 1 batch dimensions of both inputs");
    rejected(kelp_network_add_gather(b.network, x, none, KELP_GATHER_DEFAULT, 1, 1, &layer),
             "axis 1 must come after the 1 batch dimensions of both inputs");
    rejected(kelp_network_add_gather(b.network, wide, places, KELP_GATHER_DEFAULT, 1, 0, &layer),
             "(Gather): the output would have 17 dimensions: at most 16 are supported");
    /* the axis does not apply */
    check_ok(kelp_network_add_gather(b.network, x, i, KELP_GATHER_ND, 9, 0, &layer));
    check_shape_is(out_of(layer), dims(1, 3));
    rejected(kelp_network_add_scatter(b.network, x, i, x, KELP_SCATTER_ELEMENT, 2, &layer),
             "(Scatter): axis 2 is out of range for 'x' of shape [3,4]");
    rejected(kelp_network_add_one_hot(b.network, i, x, none, 0, &layer),
             "'x' must have 1 dimensions, found [3,4]");
    rejected(kelp_network_add_non_zero(b.network, x, KELP_U8, &layer),
             "(NonZero): indices must be int32 or int64, found uint8");
    rejected(kelp_network_add_reverse_sequence(b.network, x, i, 1, 1, &layer),
             "batch and sequence are the same axis, 1");
    rejected(kelp_network_add_squeeze(b.network, x, i, &layer),
             "(Squeeze): the axes must be a constant");
}

static void batched_gathers_of_too_many_dimensions(void **state) {
    kelp_shape nine = {.rank = 9};
    (void)state;
    for (int i = 0; i < 9; i++)
        nine.d[i] = 1;
    kelp_net_tensor *x = input(&b, "x", KELP_F32, nine);
    kelp_net_tensor *places = input(&b, "places", KELP_I64, nine);
    check_ok(kelp_network_add_gather(b.network, x, places, KELP_GATHER_DEFAULT, 1, 1, &layer));
    assert_int_equal(kelp_net_tensor_dims(out_of(layer)).rank, 16);
    kelp_net_tensor *wide = NULL;
    nine.rank = 10;
    nine.d[9] = 1;
    check_ok(kelp_network_add_input(b.network, "wide", KELP_F32, nine, &wide));
    rejected(kelp_network_add_gather(b.network, wide, places, KELP_GATHER_DEFAULT, 1, 1, &layer),
             "(Gather): the output would have 17 dimensions");
}

static void fills(void **state) {
    kelp_fill_options options = {.struct_size = sizeof options};
    (void)state;
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(1, 3));
    kelp_net_tensor *open = input(&b, "open", KELP_I64, dims(1, -1));
    rejected(kelp_network_add_fill(b.network, dims(1, 3), (kelp_fill)3, NULL, &layer),
             "(Fill): invalid fill 3");
    rejected(
        kelp_network_add_fill(b.network, dims(2, 3, -1), KELP_FILL_RANDOM_NORMAL, NULL, &layer),
        "(Fill): axis 1 must not be negative, found -1");
    rejected(kelp_network_add_fill(b.network, dims(2, 3, 3), KELP_FILL_LINSPACE, NULL, &layer),
             "a fill of 2 dimensions needs a delta tensor with one value per dimension");
    options.delta = x;
    rejected(kelp_network_add_fill(b.network, dims(2, 3, 3), KELP_FILL_LINSPACE, &options, &layer),
             "delta has 3 values, but the fill has 2 dimensions");
    options.delta = input(&b, "nothing", KELP_F32, dims(1, 0));
    rejected(kelp_network_add_fill(b.network, dims(2, 3, 3), KELP_FILL_LINSPACE, &options, &layer),
             "delta has 0 values, but the fill has 2 dimensions");
    rejected(
        kelp_network_add_fill(b.network, dims(1, 3), KELP_FILL_RANDOM_UNIFORM, &options, &layer),
        "random fills need alpha and beta as numbers, not as tensors");
    options.delta = NULL;
    options.shape = x;
    rejected(kelp_network_add_fill(b.network, dims(0), KELP_FILL_LINSPACE, &options, &layer),
             "'x' must be of type int32 or int64, found float32");
    options.shape = open;
    rejected(kelp_network_add_fill(b.network, dims(0), KELP_FILL_LINSPACE, &options, &layer),
             "the shape must be a vector of known length, at most 16");
    kelp_shape all = {.rank = KELP_MAX_RANK};
    check_ok(kelp_network_add_fill(b.network, all, KELP_FILL_RANDOM_UNIFORM, NULL, &layer));
    check_shape_is(out_of(layer), all); /* no elements */
}

/* ---- normalization, quantization ---- */
static void normalization(void **state) {
    const kelp_normalization groups = {.struct_size = sizeof groups, .groups = 4};
    (void)state;
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(4, 2, 6, 3, 3));
    kelp_net_tensor *scale = input(&b, "scale", KELP_F32, dims(4, 1, 6, 1, 1));
    kelp_net_tensor *v = input(&b, "v", KELP_F32, dims(2, 2, 6));
    kelp_net_tensor *open = input(&b, "open", KELP_F32, dims(4, 2, -1, 3, 3));
    kelp_net_tensor *h = input(&b, "h", KELP_F16, dims(4, 1, 6, 1, 1));
    rejected(kelp_network_add_normalization(b.network, x, scale, scale, 0xc, &groups, &layer),
             "(Normalization): 6 channels cannot be split into 4 groups");
    rejected(kelp_network_add_normalization(b.network, open, scale, scale, 0xc, &groups, &layer),
             "the input's channels must be fixed");
    rejected(kelp_network_add_normalization(b.network, v, scale, scale, 1, &groups, &layer),
             "'v' must have at least 3 dimensions, found [2,6]");
    rejected(kelp_network_add_normalization(b.network, x, h, scale, 0xc, NULL, &layer),
             "'x' and 'h' must have the same type, found float32 and float16");
    rejected(kelp_network_add_normalization(b.network, x, scale, v, 0xc, NULL, &layer),
             "shape [2,6,3,3] of 'x' and shape [2,6] of 'v' do not broadcast");
}

static void quantization(void **state) {
    (void)state;
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(2, 4, 6));
    kelp_net_tensor *n = input(&b, "n", KELP_I8, dims(2, 4, 6));
    kelp_net_tensor *scales = input(&b, "scales", KELP_F32, dims(1, 6));
    kelp_net_tensor *table = input(&b, "table", KELP_F32, dims(2, 4, 6));
    kelp_net_tensor *empty = input(&b, "empty", KELP_F32, dims(2, 4, 0));
    kelp_net_tensor *open = input(&b, "open", KELP_F32, dims(2, 4, -1));
    kelp_net_tensor *one = scalar(0.5f);
    rejected(kelp_network_add_quantize(b.network, x, scales, NULL, 2, KELP_I8, &layer),
             "(Quantize): axis 2 is out of range for 'x' of shape [4,6]");
    check_ok(kelp_network_add_quantize(b.network, x, one, NULL, 2, KELP_I8, &layer));
    rejected(kelp_network_add_quantize(b.network, x, table, NULL, 1, KELP_I8, &layer),
             "'table' must have 0 to 1 dimensions, found [4,6]");
    rejected(kelp_network_add_quantize(b.network, x, one, NULL, 0, KELP_F32, &layer),
             "float32 is not a quantized type");
    rejected(kelp_network_add_dequantize(b.network, x, one, NULL, 0, KELP_F32, &layer),
             "(Dequantize): float32 is not a quantized type");
    rejected(kelp_network_add_dequantize(b.network, n, one, NULL, 0, KELP_I32, &layer),
             "the result type must be floating-point, found int32");
    rejected(kelp_network_add_dynamic_quantize(b.network, x, 1, 3, KELP_I8, KELP_F32, &layer),
             "the data type must be float4e2m1 or float8e4m3fn, found int8");
    rejected(kelp_network_add_dynamic_quantize(b.network, x, 1, 4, KELP_F8E4M3FN, KELP_F32, &layer),
             "6 elements of axis 1 cannot be split into blocks of 4");
    rejected(kelp_network_add_dynamic_quantize(b.network, x, 1, 0, KELP_F8E4M3FN, KELP_F32, &layer),
             "6 elements of axis 1 cannot be split into blocks of 0");
    rejected(
        kelp_network_add_dynamic_quantize(b.network, open, 1, 2, KELP_F8E4M3FN, KELP_F32, &layer),
        "axis 1 must be fixed and not empty, found -1");
    rejected(
        kelp_network_add_dynamic_quantize(b.network, empty, 0, 2, KELP_F8E4M3FN, KELP_F32, &layer),
        "axis 1 must be fixed and not empty, found 0");
}

static void detection_and_collectives(void **state) {
    const kelp_nms options = {.struct_size = sizeof options, .topk = -1};
    (void)state;
    kelp_net_tensor *boxes = input(&b, "boxes", KELP_F32, dims(3, 1, 9, 4));
    kelp_net_tensor *scores = input(&b, "scores", KELP_F32, dims(3, 1, 2, 9));
    kelp_net_tensor *most = input(&b, "most", KELP_I32, dims(0));
    rejected(kelp_network_add_nms(b.network, boxes, scores, most, &options, &layer),
             "(NMS): topk must be at least 0 (all candidates), found -1");
    rejected(kelp_network_add_nms(b.network, boxes, most, most, NULL, &layer),
             "'most' must have 3 dimensions, found []");
    rejected(kelp_network_add_collective(b.network, boxes, (kelp_collective)5, KELP_REDUCE_SUM, 0,
                                         1, &layer),
             "invalid collective: operation 5 with root 0 of 1 ranks");
    rejected(kelp_network_add_collective(b.network, boxes, KELP_COLLECTIVE_REDUCE, KELP_REDUCE_SUM,
                                         -1, 1, &layer),
             "invalid collective: operation 3 with root -1 of 1 ranks");
    rejected(kelp_network_add_collective(b.network, boxes, KELP_COLLECTIVE_REDUCE, KELP_REDUCE_SUM,
                                         1, 1, &layer),
             "operation 3 with root 1 of 1 ranks");
    kelp_status *status = kelp_network_add_collective(b.network, boxes, KELP_COLLECTIVE_REDUCE,
                                                      KELP_REDUCE_SUM, 1, 2, &layer);
    assert_int_equal(kelp_status_domain(status), KELP_DOMAIN_NETWORK);
    expect_failure(status, KELP_UNIMPLEMENTED, "the provider supports 1 rank, found 2");
}

/* ---- loops and conditionals ---- */
static void loops(void **state) {
    kelp_loop *loop = NULL, *other = NULL;
    kelp_layer *value = NULL;
    (void)state;
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(1, 3));
    kelp_net_tensor *n = input(&b, "n", KELP_I32, dims(1, 3));
    kelp_net_tensor *h = input(&b, "h", KELP_F32, dims(2, 3, 3));
    kelp_net_tensor *flag = input(&b, "flag", KELP_BOOL, dims(1, 1));
    check_ok(kelp_network_add_loop(b.network, &loop));
    check_ok(kelp_network_add_loop(b.network, &other));
    check_ok(kelp_loop_add_recurrence(loop, x, &value));
    rejected(kelp_loop_set_trip_count(loop, n),
             "trip count: expected a scalar of int32 or int64, found int32 [3] of 'n'");
    rejected(kelp_loop_set_trip_count(loop, scalar(3)), "found float32 [] of");
    rejected(kelp_loop_set_trip_count(loop, NULL), "trip count: expected a tensor of network");
    rejected(kelp_loop_set_condition(loop, flag),
             "loop condition: expected a scalar of bool, found bool [1] of 'flag'");
    rejected(kelp_recurrence_set_next(value, NULL),
             "(Recurrence): the next value must be a tensor of this network");
    rejected(kelp_recurrence_set_next(value, n),
             "the initial value is float32 [3], but the next value 'n' is int32 [3]");
    rejected(kelp_recurrence_set_next(value, h), "the next value 'h' is float32 [3,3]");
    rejected(kelp_loop_add_output(loop, out_of(value), (kelp_loop_output)3, 0, &layer),
             "(LoopOutput): invalid kind of loop output 3");
    rejected(kelp_loop_add_output(loop, x, KELP_LOOP_LAST_VALUE, 0, &layer),
             "'x' is not a recurrence of this loop");
    rejected(kelp_loop_add_output(other, out_of(value), KELP_LOOP_LAST_VALUE, 0, &layer),
             "is not a recurrence of this loop");
    rejected(kelp_loop_add_output(loop, out_of(value), KELP_LOOP_CONCATENATE, 2, &layer),
             "invalid axis 2: cannot insert it into 1 dimensions");
    rejected(kelp_loop_add_output(loop, out_of(value), KELP_LOOP_CONCATENATE, -1, &layer),
             "invalid axis -1: cannot insert it into 1 dimensions");
    rejected(kelp_loop_add_iterator(loop, x, 1, false, &layer),
             "(Iterator): axis 1 is out of range for 'x' of shape [3]");
}

/* The largest rank: an iterator removes an axis, an output of a loop cannot add one. */
static void iterators_of_the_largest_rank(void **state) {
    kelp_shape all = {.rank = KELP_MAX_RANK}, rest = {.rank = KELP_MAX_RANK - 1};
    kelp_loop *loop = NULL;
    (void)state;
    for (int i = 0; i < KELP_MAX_RANK; i++)
        all.d[i] = i + 1;
    for (int i = 0; i < KELP_MAX_RANK - 1; i++)
        rest.d[i] = i < 3 ? i + 1 : i + 2;
    kelp_net_tensor *x = input(&b, "x", KELP_F32, all);
    check_ok(kelp_network_add_loop(b.network, &loop));
    check_ok(kelp_loop_add_iterator(loop, x, 3, false, &layer));
    check_shape_is(out_of(layer), rest);
    check_ok(kelp_loop_add_recurrence(loop, x, &layer));
    rejected(kelp_loop_add_output(loop, out_of(layer), KELP_LOOP_CONCATENATE, 0, &layer),
             "invalid axis 0: cannot insert it into 16 dimensions");
}

static void conditionals(void **state) {
    kelp_conditional *conditional = NULL;
    (void)state;
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(1, 3));
    kelp_net_tensor *n = input(&b, "n", KELP_I32, dims(1, 3));
    kelp_net_tensor *h = input(&b, "h", KELP_F32, dims(2, 3, 3));
    kelp_net_tensor *flag = input(&b, "flag", KELP_BOOL, dims(0));
    rejected(kelp_network_add_conditional(b.network, x, &conditional),
             "condition: expected a scalar of bool, found float32 [3] of 'x'");
    check_ok(kelp_network_add_conditional(b.network, flag, &conditional));
    rejected(kelp_conditional_add_output(conditional, x, n, &layer),
             "'x' and 'n' must have the same type, found float32 and int32");
    rejected(kelp_conditional_add_output(conditional, x, h, &layer),
             "(ConditionalOutput): the branches have 1 and 2 dimensions: expected equally many");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_bench, close_bench)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(inputs),
        TEST(messages_name_the_layer),
        TEST(elementwise),
        TEST(scales_of_dynamic_axes),
        TEST(axes_out_of_range),
        TEST(matrices),
        TEST(attention),
        TEST(experts),
        TEST(convolutions),
        TEST(pooling_and_padding),
        TEST(sampling),
        TEST(transposes),
        TEST(slices),
        TEST(gathers),
        TEST(batched_gathers_of_too_many_dimensions),
        TEST(fills),
        TEST(normalization),
        TEST(quantization),
        TEST(detection_and_collectives),
        TEST(loops),
        TEST(iterators_of_the_largest_rank),
        TEST(conditionals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
