/* SPDX-License-Identifier: Apache-2.0 */
/* Every layer type through the tables: it is added, has the expected type and shapes in the
 * library, and is built. This finds wrong slots and wrong orders of parameters. */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

#define F32 TRT_DATA_TYPE_FLOAT
#define I32 TRT_DATA_TYPE_INT32
#define I64 TRT_DATA_TYPE_INT64
#define L(layer) trt_as_layer(layer)

static const float floats[4096] = {1.0f, 2.0f, 0.5f};
static const int32_t ints[64] = {1, 2, 3};
static const int64_t longs[8] = {0};

static trt_tensor *input(build *b, const char *name, trt_data_type type, trt_dims shape) {
    trt_tensor *tensor = trt_network_add_input(b->m, b->network, name, type, &shape);
    assert_non_null(tensor);
    return tensor;
}

static trt_tensor *constant(build *b, trt_data_type type, trt_dims shape, const void *values) {
    int64_t count = 1;
    for (int i = 0; i < shape.rank; i++)
        count *= shape.d[i];
    trt_constant_layer *layer =
        trt_network_add_constant(b->m, b->network, &shape, (trt_weights){type, values, count});
    assert_non_null(layer);
    return trt_layer_get_output(b->m, L(layer), 0);
}

static trt_weights weights(int64_t count) {
    return (trt_weights){F32, count > 0 ? floats : NULL, count};
}

#define X dims(4, 2, 4, 6, 8)
#define NET b->m, b->network
#define CASE(name) static trt_layer *name(build *b)

CASE(activation) {
    trt_activation_layer *l =
        trt_network_add_activation(NET, input(b, "x", F32, X), TRT_ACTIVATION_TYPE_ELU);
    trt_activation_layer_set_alpha(b->m, l, 0.25f);
    assert_true(trt_activation_layer_get_alpha(b->m, l) == 0.25f);
    assert_int_equal(trt_activation_layer_get_activation_type(b->m, l), TRT_ACTIVATION_TYPE_ELU);
    return L(l);
}
CASE(lrn) {
    trt_lrn_layer *l = trt_network_add_lrn(NET, input(b, "x", F32, X), 3, 1e-4f, 0.75f, 2.0f);
    assert_int_equal(trt_lrn_layer_get_window_size(b->m, l), 3);
    assert_true(trt_lrn_layer_get_beta(b->m, l) == 0.75f);
    assert_true(trt_lrn_layer_get_k(b->m, l) == 2.0f);
    return L(l);
}
CASE(scale) {
    trt_scale_layer *l = trt_network_add_scale(NET, input(b, "x", F32, X), TRT_SCALE_MODE_CHANNEL,
                                               weights(4), weights(4), weights(0));
    trt_weights shift = trt_scale_layer_get_shift(b->m, l);
    assert_ptr_equal(shift.values, floats);
    assert_int_equal(shift.count, 4);
    return L(l);
}
CASE(scale_nd) {
    return L(trt_network_add_scale_nd(NET, input(b, "x", F32, X), TRT_SCALE_MODE_CHANNEL,
                                      weights(4), weights(4), weights(0), 1));
}
CASE(soft_max) {
    trt_soft_max_layer *l = trt_network_add_soft_max(NET, input(b, "x", F32, X));
    trt_soft_max_layer_set_axes(b->m, l, 1u << 2);
    assert_int_equal(trt_soft_max_layer_get_axes(b->m, l), 4);
    return L(l);
}
CASE(concatenation) {
    trt_tensor *both[] = {input(b, "x", F32, X), input(b, "y", F32, dims(4, 2, 3, 6, 8))};
    trt_concatenation_layer *l = trt_network_add_concatenation(NET, both, 2);
    trt_concatenation_layer_set_axis(b->m, l, 1);
    return L(l);
}
CASE(element_wise) {
    return L(trt_network_add_element_wise(NET, input(b, "x", F32, X), input(b, "y", F32, X),
                                          TRT_ELEMENT_WISE_OPERATION_DIV));
}
CASE(unary) {
    return L(trt_network_add_unary(NET, input(b, "x", F32, X), TRT_UNARY_OPERATION_EXP));
}
CASE(shuffle) {
    trt_shuffle_layer *l = trt_network_add_shuffle(NET, input(b, "x", F32, X));
    const trt_dims shape = dims(3, 2, 24, 8, 0);
    const trt_permutation turn = {{0, 2, 1, 3}};
    trt_shuffle_layer_set_first_transpose(b->m, l, &turn);
    trt_shuffle_layer_set_reshape_dimensions(b->m, l, &shape);
    assert_int_equal(trt_shuffle_layer_get_first_transpose(b->m, l)->order[1], 2);
    assert_int_equal(trt_shuffle_layer_get_reshape_dimensions(b->m, l).d[1], 24);
    return L(l);
}
CASE(reduce) {
    return L(trt_network_add_reduce(NET, input(b, "x", F32, X), TRT_REDUCE_OPERATION_AVG, 6, true));
}
CASE(topk) {
    return L(trt_network_add_topk(NET, input(b, "x", F32, X), TRT_TOPK_OPERATION_MAX, 3, 1u << 3));
}
CASE(topk_v2) {
    return L(trt_network_add_topk_v2(NET, input(b, "x", F32, X), TRT_TOPK_OPERATION_MIN, 2, 1u << 3,
                                     I64));
}
CASE(gather) {
    return L(trt_network_add_gather(NET, input(b, "x", F32, X),
                                    input(b, "at", I32, dims(1, 3, 0, 0, 0)), 1));
}
CASE(gather_v2) {
    return L(trt_network_add_gather_v2(
        NET, input(b, "x", F32, X), input(b, "at", I32, dims(2, 5, 4, 0, 0)), TRT_GATHER_MODE_ND));
}
CASE(ragged_soft_max) {
    return L(trt_network_add_ragged_soft_max(NET, input(b, "x", F32, dims(3, 2, 5, 7, 0)),
                                             input(b, "n", I32, dims(3, 2, 5, 1, 0))));
}
CASE(matrix_multiply) {
    return L(trt_network_add_matrix_multiply(
        NET, input(b, "x", F32, dims(2, 3, 5, 0, 0)), TRT_MATRIX_OPERATION_NONE,
        input(b, "y", F32, dims(2, 4, 5, 0, 0)), TRT_MATRIX_OPERATION_TRANSPOSE));
}
CASE(constant_layer) {
    const trt_dims shape = dims(2, 2, 3, 0, 0);
    return L(trt_network_add_constant(NET, &shape, weights(6)));
}
CASE(identity) {
    return L(trt_network_add_identity(NET, input(b, "x", F32, X)));
}
CASE(cast) {
    return L(trt_network_add_cast(NET, input(b, "x", F32, X), TRT_DATA_TYPE_HALF));
}
CASE(slice) {
    const trt_dims start = dims(4, 0, 1, 1, 0), size = dims(4, 2, 2, 2, 4),
                   stride = dims(4, 1, 1, 2, 2);
    return L(trt_network_add_slice(NET, input(b, "x", F32, X), &start, &size, &stride));
}
CASE(shape) {
    return L(trt_network_add_shape(NET, input(b, "x", F32, X)));
}
CASE(parametric_relu) {
    return L(trt_network_add_parametric_relu(NET, input(b, "x", F32, X),
                                             constant(b, F32, dims(4, 1, 4, 1, 1), floats)));
}
CASE(convolution) {
    const trt_dims kernel = dims(2, 3, 3, 0, 0), stride = dims(2, 2, 1, 0, 0),
                   padding = dims(2, 1, 1, 0, 0);
    trt_convolution_layer *l = trt_network_add_convolution_nd(NET, input(b, "x", F32, X), 5,
                                                              &kernel, weights(180), weights(5));
    trt_convolution_layer_set_stride_nd(b->m, l, &stride);
    trt_convolution_layer_set_padding_nd(b->m, l, &padding);
    assert_int_equal(trt_convolution_layer_get_kernel_weights(b->m, l).count, 180);
    return L(l);
}
CASE(deconvolution) {
    const trt_dims kernel = dims(2, 2, 2, 0, 0), stride = dims(2, 2, 2, 0, 0);
    trt_deconvolution_layer *l = trt_network_add_deconvolution_nd(NET, input(b, "x", F32, X), 3,
                                                                  &kernel, weights(48), weights(0));
    trt_deconvolution_layer_set_stride_nd(b->m, l, &stride);
    return L(l);
}
CASE(pooling) {
    const trt_dims window = dims(2, 2, 3, 0, 0);
    return L(
        trt_network_add_pooling_nd(NET, input(b, "x", F32, X), TRT_POOLING_TYPE_AVERAGE, &window));
}
CASE(resize) {
    trt_resize_layer *l = trt_network_add_resize(NET, input(b, "x", F32, X));
    const float scales[] = {1.0f, 1.0f, 2.0f, 1.5f};
    trt_resize_layer_set_scales(b->m, l, scales, 4);
    trt_resize_layer_set_resize_mode(b->m, l, TRT_INTERPOLATION_MODE_LINEAR);
    return L(l);
}
CASE(select_layer) {
    trt_tensor *x = input(b, "x", F32, X), *y = input(b, "y", F32, X);
    return L(trt_network_add_select(NET, input(b, "c", TRT_DATA_TYPE_BOOL, X), x, y));
}
CASE(padding) {
    const trt_dims before = dims(2, 1, 0, 0, 0), after = dims(2, 0, 2, 0, 0);
    return L(trt_network_add_padding_nd(NET, input(b, "x", F32, X), &before, &after));
}
CASE(scatter) {
    trt_tensor *x = input(b, "x", F32, dims(2, 4, 6, 0, 0));
    trt_scatter_layer *l =
        trt_network_add_scatter(NET, x, input(b, "at", I32, dims(2, 2, 3, 0, 0)),
                                input(b, "u", F32, dims(2, 2, 3, 0, 0)), TRT_SCATTER_MODE_ELEMENT);
    trt_scatter_layer_set_axis(b->m, l, 1);
    return L(l);
}
CASE(einsum) {
    trt_tensor *both[] = {input(b, "x", F32, dims(2, 3, 5, 0, 0)),
                          input(b, "y", F32, dims(2, 5, 4, 0, 0))};
    return L(trt_network_add_einsum(NET, both, 2, "ij,jk->ik"));
}
CASE(assertion) {
    trt_tensor *yes = constant(b, TRT_DATA_TYPE_BOOL, dims(1, 1, 0, 0, 0), "\1");
    trt_assertion_layer *l = trt_network_add_assertion(NET, yes, "must hold");
    assert_string_equal(trt_assertion_layer_get_message(b->m, l), "must hold");
    trt_identity_layer *other = trt_network_add_identity(NET, input(b, "x", F32, X));
    trt_network_mark_output(NET, trt_layer_get_output(b->m, L(other), 0));
    return L(l);
}
CASE(one_hot) {
    return L(trt_network_add_one_hot(NET, input(b, "at", I32, dims(2, 2, 3, 0, 0)),
                                     constant(b, F32, dims(1, 2, 0, 0, 0), floats),
                                     constant(b, I32, dims(0, 0, 0, 0, 0), ints + 2), -1));
}
CASE(non_zero) {
    return L(trt_network_add_non_zero(NET, input(b, "x", F32, dims(2, 3, 4, 0, 0))));
}
CASE(non_zero_v2) {
    return L(trt_network_add_non_zero_v2(NET, input(b, "x", F32, dims(2, 3, 4, 0, 0)), I64));
}
CASE(grid_sample) {
    return L(trt_network_add_grid_sample(NET, input(b, "x", F32, X),
                                         input(b, "g", F32, dims(4, 2, 3, 5, 2))));
}
static trt_tensor *few(build *b) {
    return constant(b, I32, dims(0, 0, 0, 0, 0), ints + 2);
}
CASE(nms) {
    return L(trt_network_add_nms(NET, input(b, "boxes", F32, dims(3, 1, 8, 4, 0)),
                                 input(b, "scores", F32, dims(3, 1, 8, 2, 0)), few(b)));
}
CASE(nms_v2) {
    return L(trt_network_add_nms_v2(NET, input(b, "boxes", F32, dims(3, 1, 8, 4, 0)),
                                    input(b, "scores", F32, dims(3, 1, 8, 2, 0)), few(b), I64));
}
CASE(reverse_sequence) {
    return L(trt_network_add_reverse_sequence(NET, input(b, "x", F32, dims(3, 5, 2, 3, 0)),
                                              input(b, "n", I32, dims(1, 2, 0, 0, 0))));
}
static trt_layer *normalized(build *b, bool newer) {
    trt_tensor *x = input(b, "x", F32, dims(3, 2, 4, 6, 0)),
               *s = constant(b, F32, dims(3, 1, 1, 6, 0), floats),
               *bias = constant(b, F32, dims(3, 1, 1, 6, 0), floats);
    trt_normalization_layer *l = newer ? trt_network_add_normalization_v2(NET, x, s, bias, 4)
                                       : trt_network_add_normalization(NET, x, s, bias, 4);
    assert_non_null(l);
    trt_normalization_layer_set_epsilon(b->m, l, 1e-3f);
    assert_int_equal(trt_normalization_layer_get_axes(b->m, l), 4);
    return L(l);
}
CASE(normalization) {
    return normalized(b, false);
}
CASE(normalization_v2) {
    return normalized(b, true);
}
CASE(quantize) {
    return L(trt_network_add_quantize_v2(NET, input(b, "x", F32, X),
                                         constant(b, F32, dims(0, 0, 0, 0, 0), floats),
                                         TRT_DATA_TYPE_INT8));
}
CASE(dequantize) {
    trt_quantize_layer *q = trt_network_add_quantize_v2(
        NET, input(b, "x", F32, X), constant(b, F32, dims(0, 0, 0, 0, 0), floats),
        TRT_DATA_TYPE_INT8);
    return L(trt_network_add_dequantize_v2(NET, trt_layer_get_output(b->m, L(q), 0),
                                           constant(b, F32, dims(0, 0, 0, 0, 0), floats), F32));
}
CASE(fill) {
    const trt_dims size = dims(1, 7, 0, 0, 0);
    trt_fill_layer *l = trt_network_add_fill_v2(NET, &size, TRT_FILL_OPERATION_LINSPACE, F32);
    trt_fill_layer_set_alpha(b->m, l, 1.0);
    trt_fill_layer_set_beta(b->m, l, 0.5);
    assert_true(trt_fill_layer_get_beta(b->m, l) == 0.5);
    return L(l);
}
CASE(squeeze) {
    return L(trt_network_add_squeeze(NET, input(b, "x", F32, dims(3, 1, 4, 6, 0)),
                                     constant(b, I64, dims(1, 1, 0, 0, 0), longs)));
}
CASE(unsqueeze) {
    return L(trt_network_add_unsqueeze(NET, input(b, "x", F32, dims(2, 4, 6, 0, 0)),
                                       constant(b, I64, dims(1, 1, 0, 0, 0), longs)));
}
CASE(dynamic_quantize) {
    trt_dynamic_quantize_layer *l =
        trt_network_add_dynamic_quantize(NET, input(b, "x", F32, dims(2, 32, 32, 0, 0)), 1, 16,
                                         TRT_DATA_TYPE_FP4, TRT_DATA_TYPE_FP8);
    /* The scale of the scales. */
    trt_layer_set_input(b->m, L(l), 1, constant(b, F32, dims(0, 0, 0, 0, 0), floats));
    return L(l);
}
CASE(dynamic_quantize_v2) {
    const trt_dims block = dims(2, 1, 32, 0, 0);
    return L(trt_network_add_dynamic_quantize_v2(NET, input(b, "x", F32, dims(2, 32, 64, 0, 0)),
                                                 &block, TRT_DATA_TYPE_FP8, TRT_DATA_TYPE_E8M0));
}
CASE(cumulative) {
    return L(trt_network_add_cumulative(NET, input(b, "x", F32, dims(2, 4, 6, 0, 0)),
                                        constant(b, I32, dims(0, 0, 0, 0, 0), ints),
                                        TRT_CUMULATIVE_OPERATION_SUM, false, true));
}
CASE(rotary_embedding) {
    return L(trt_network_add_rotary_embedding(NET, input(b, "x", F32, dims(4, 2, 2, 4, 8)),
                                              input(b, "c", F32, dims(3, 2, 4, 4, 0)),
                                              input(b, "s", F32, dims(3, 2, 4, 4, 0)), false, 0));
}
CASE(kvcache_update) {
    const trt_dims size = dims(4, 2, 2, 16, 8);
    return L(trt_network_add_kvcache_update(
        NET, input(b, "c", F32, size), input(b, "u", F32, dims(4, 2, 2, 1, 8)),
        input(b, "at", I32, dims(1, 2, 0, 0, 0)), TRT_KVCACHE_MODE_LINEAR));
}
static trt_layer *attend(build *b, bool newer) {
    const trt_dims size = dims(4, 2, 2, 16, 32);
    trt_tensor *q = input(b, "q", TRT_DATA_TYPE_HALF, size),
               *k = input(b, "k", TRT_DATA_TYPE_HALF, size),
               *v = input(b, "v", TRT_DATA_TYPE_HALF, size);
    trt_attention *a =
        newer ? trt_network_add_attention_v2(NET, q, k, v, TRT_ATTENTION_NORMALIZATION_OP_SOFTMAX,
                                             TRT_CAUSAL_MASK_KIND_NONE)
              : trt_network_add_attention(NET, q, k, v, TRT_ATTENTION_NORMALIZATION_OP_SOFTMAX,
                                          false);
    assert_non_null(a);
    assert_int_equal(trt_attention_get_nb_inputs(b->m, a), 3);
    trt_attention_set_decomposable(b->m, a, true);
    trt_tensor *y = trt_attention_get_output(b->m, a, 0);
    trt_network_mark_output(NET, y);
    /* It represents two layers, one for its inputs and one for its output. */
    return trt_network_get_layer(NET, trt_network_get_nb_layers(NET) - 1);
}
CASE(attention) {
    return attend(b, false);
}
CASE(attention_v2) {
    return attend(b, true);
}
CASE(moe) {
    trt_tensor *up = constant(b, TRT_DATA_TYPE_HALF, dims(3, 2, 16, 16, 0), floats),
               *gate = constant(b, TRT_DATA_TYPE_HALF, dims(3, 2, 16, 16, 0), floats),
               *down = constant(b, TRT_DATA_TYPE_HALF, dims(3, 2, 16, 16, 0), floats);
    trt_moe_layer *l =
        trt_network_add_moe(NET, input(b, "x", TRT_DATA_TYPE_HALF, dims(3, 1, 4, 16, 0)),
                            input(b, "which", I32, dims(3, 1, 4, 1, 0)),
                            input(b, "scores", TRT_DATA_TYPE_HALF, dims(3, 1, 4, 1, 0)));
    assert_non_null(l);
    trt_moe_layer_set_gated_weights(b->m, l, gate, up, down, TRT_MOE_ACT_TYPE_SILU);
    return L(l);
}
CASE(dist_collective) {
    return L(trt_network_add_dist_collective(NET, input(b, "x", F32, X),
                                             TRT_COLLECTIVE_OPERATION_ALL_REDUCE,
                                             TRT_REDUCE_OPERATION_SUM, -1, NULL, 0));
}
/* A sum over the rows of x, in a loop: iterator, recurrence, limit, output. */
CASE(loop) {
    trt_tensor *x = input(b, "x", F32, dims(2, 5, 3, 0, 0));
    trt_loop *l = trt_network_add_loop(NET);
    assert_non_null(l);
    trt_loop_set_name(b->m, l, "rows");
    trt_trip_limit_layer *limit = trt_loop_add_trip_limit(
        b->m, l, constant(b, I32, dims(0, 0, 0, 0, 0), ints + 2), TRT_TRIP_LIMIT_COUNT);
    trt_iterator_layer *row = trt_loop_add_iterator(b->m, l, x, 0, false);
    trt_recurrence_layer *sum =
        trt_loop_add_recurrence(b->m, l, constant(b, F32, dims(1, 3, 0, 0, 0), floats));
    trt_element_wise_layer *add = trt_network_add_element_wise(
        NET, trt_layer_get_output(b->m, L(sum), 0), trt_layer_get_output(b->m, L(row), 0),
        TRT_ELEMENT_WISE_OPERATION_SUM);
    trt_layer_set_input(b->m, L(sum), 1, trt_layer_get_output(b->m, L(add), 0));
    assert_int_equal(trt_layer_get_type(b->m, L(limit)), TRT_LAYER_TYPE_TRIP_LIMIT);
    assert_int_equal(trt_layer_get_type(b->m, L(row)), TRT_LAYER_TYPE_ITERATOR);
    assert_int_equal(trt_layer_get_type(b->m, L(sum)), TRT_LAYER_TYPE_RECURRENCE);
    assert_ptr_equal(trt_loop_boundary_layer_get_loop(b->m, trt_as_loop_boundary(row)), l);
    assert_string_equal(trt_loop_get_name(b->m, l), "rows");
    return L(trt_loop_add_loop_output(b->m, l, trt_layer_get_output(b->m, L(sum), 0),
                                      TRT_LOOP_OUTPUT_LAST_VALUE, 0));
}
CASE(condition) {
    trt_if_conditional *c = trt_network_add_if_conditional(NET);
    assert_non_null(c);
    trt_condition_layer *test = trt_if_conditional_set_condition(
        b->m, c, input(b, "c", TRT_DATA_TYPE_BOOL, dims(0, 0, 0, 0, 0)));
    trt_if_conditional_input_layer *in =
        trt_if_conditional_add_input(b->m, c, input(b, "x", F32, X));
    trt_tensor *x = trt_layer_get_output(b->m, L(in), 0);
    trt_unary_layer *yes = trt_network_add_unary(NET, x, TRT_UNARY_OPERATION_NEG);
    trt_unary_layer *no = trt_network_add_unary(NET, x, TRT_UNARY_OPERATION_EXP);
    assert_int_equal(trt_layer_get_type(b->m, L(test)), TRT_LAYER_TYPE_CONDITION);
    assert_int_equal(trt_layer_get_type(b->m, L(in)), TRT_LAYER_TYPE_CONDITIONAL_INPUT);
    assert_ptr_equal(
        trt_if_conditional_boundary_layer_get_conditional(b->m, trt_as_if_boundary(in)), c);
    return L(trt_if_conditional_add_output(b->m, c, trt_layer_get_output(b->m, L(yes), 0),
                                           trt_layer_get_output(b->m, L(no), 0)));
}

#undef CASE
#define KIND(name) TRT_LAYER_TYPE_##name
static const struct layer_case {
    const char *name;
    trt_layer *(*add)(build *);
    trt_layer_type kind;
    const char *shape; /* of the first output; NULL: only the type is checked */
} cases[] = {
    {"activation", activation, KIND(ACTIVATION), "[2,4,6,8]"},
    {"lrn", lrn, KIND(LRN), "[2,4,6,8]"},
    {"scale", scale, KIND(SCALE), "[2,4,6,8]"},
    {"scale_nd", scale_nd, KIND(SCALE), "[2,4,6,8]"},
    {"soft_max", soft_max, KIND(SOFTMAX), "[2,4,6,8]"},
    {"concatenation", concatenation, KIND(CONCATENATION), "[2,7,6,8]"},
    {"element_wise", element_wise, KIND(ELEMENTWISE), "[2,4,6,8]"},
    {"unary", unary, KIND(UNARY), "[2,4,6,8]"},
    {"shuffle", shuffle, KIND(SHUFFLE), "[2,24,8]"},
    {"reduce", reduce, KIND(REDUCE), "[2,1,1,8]"},
    {"topk", topk, KIND(TOPK), "[2,4,6,3]"},
    {"topk_v2", topk_v2, KIND(TOPK), "[2,4,6,2]"},
    {"gather", gather, KIND(GATHER), "[2,3,6,8]"},
    {"gather_v2", gather_v2, KIND(GATHER), "[5]"},
    {"ragged_soft_max", ragged_soft_max, KIND(RAGGED_SOFTMAX), "[2,5,7]"},
    {"matrix_multiply", matrix_multiply, KIND(MATRIX_MULTIPLY), "[3,4]"},
    {"constant", constant_layer, KIND(CONSTANT), "[2,3]"},
    {"identity", identity, KIND(IDENTITY), "[2,4,6,8]"},
    {"cast", cast, KIND(CAST), "[2,4,6,8]"},
    {"slice", slice, KIND(SLICE), "[2,2,2,4]"},
    {"shape", shape, KIND(SHAPE), "[4]"},
    {"parametric_relu", parametric_relu, KIND(PARAMETRIC_RELU), "[2,4,6,8]"},
    {"convolution", convolution, KIND(CONVOLUTION), "[2,5,3,8]"},
    {"deconvolution", deconvolution, KIND(DECONVOLUTION), "[2,3,12,16]"},
    {"pooling", pooling, KIND(POOLING), "[2,4,5,6]"},
    {"resize", resize, KIND(RESIZE), "[2,4,12,12]"},
    {"select", select_layer, KIND(SELECT), "[2,4,6,8]"},
    {"padding", padding, KIND(PADDING), "[2,4,7,10]"},
    {"scatter", scatter, KIND(SCATTER), "[4,6]"},
    {"einsum", einsum, KIND(EINSUM), "[3,4]"},
    {"assertion", assertion, KIND(ASSERTION), NULL},
    {"one_hot", one_hot, KIND(ONE_HOT), "[2,3,3]"},
    {"non_zero", non_zero, KIND(NON_ZERO), "[2,-1]"},
    {"non_zero_v2", non_zero_v2, KIND(NON_ZERO), "[2,-1]"},
    {"grid_sample", grid_sample, KIND(GRID_SAMPLE), "[2,4,3,5]"},
    {"nms", nms, KIND(NMS), "[-1,3]"},
    {"nms_v2", nms_v2, KIND(NMS), "[-1,3]"},
    {"reverse_sequence", reverse_sequence, KIND(REVERSE_SEQUENCE), "[5,2,3]"},
    {"normalization", normalization, KIND(NORMALIZATION), "[2,4,6]"},
    {"normalization_v2", normalization_v2, KIND(NORMALIZATION), "[2,4,6]"},
    {"quantize", quantize, KIND(QUANTIZE), "[2,4,6,8]"},
    {"dequantize", dequantize, KIND(DEQUANTIZE), "[2,4,6,8]"},
    {"fill", fill, KIND(FILL), "[7]"},
    {"squeeze", squeeze, KIND(SQUEEZE), "[4,6]"},
    {"unsqueeze", unsqueeze, KIND(UNSQUEEZE), "[1,4,6]"},
    {"dynamic_quantize", dynamic_quantize, KIND(DYNAMIC_QUANTIZE), "[32,32]"},
    {"dynamic_quantize_v2", dynamic_quantize_v2, KIND(DYNAMIC_QUANTIZE), "[32,64]"},
    {"cumulative", cumulative, KIND(CUMULATIVE), "[4,6]"},
    {"rotary_embedding", rotary_embedding, KIND(ROTARY_EMBEDDING), "[2,2,4,8]"},
    {"kvcache_update", kvcache_update, KIND(KVCACHE_UPDATE), "[2,2,16,8]"},
    {"attention", attention, KIND(ATTENTION_OUTPUT), NULL},
    {"attention_v2", attention_v2, KIND(ATTENTION_OUTPUT), NULL},
    {"moe", moe, KIND(MOE), "[1,4,16]"},
    {"dist_collective", dist_collective, KIND(DIST_COLLECTIVE), "[2,4,6,8]"},
    {"loop", loop, KIND(LOOP_OUTPUT), "[3]"},
    {"condition", condition, KIND(CONDITIONAL_OUTPUT), "[2,4,6,8]"},
};

/* Layers that are added but not built: without a GPU, NVIDIA's builder has no implementation of
 * them.
 */
static const char *const not_built[] = {"non_zero", "non_zero_v2", "nms", "nms_v2", "moe"};

static bool is_built(const char *name) {
    for (size_t i = 0; i < sizeof not_built / sizeof *not_built; i++)
        if (strcmp(not_built[i], name) == 0)
            return false;
    return true;
}

static void add_case(build *b, const struct layer_case *c) {
    trt_layer *layer = c->add(b);
    check_ok(trt_check_layer(library, b->log, layer, c->name));
    assert_int_equal(trt_layer_get_type(b->m, layer), c->kind);
    trt_layer_set_name(b->m, layer, c->name);
    assert_string_equal(trt_layer_get_name(b->m, layer), c->name);
    for (int32_t i = 0; c->shape != NULL && i < trt_layer_get_nb_outputs(b->m, layer); i++) {
        char text[160];
        trt_tensor *output = trt_layer_get_output(b->m, layer, i);
        trt_dims found = trt_tensor_get_dimensions(b->m, output);
        trt_dims_format(&found, text, sizeof text);
        if (i == 0 && strcmp(text, c->shape) != 0)
            fail_msg("%s: %s, expected %s", c->name, text, c->shape);
        trt_network_mark_output(b->m, b->network, output);
    }
}

static void every_layer_is_added_and_builds(void **state) {
    (void)state;
    int built = 0, total = 0, wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        build b;
        char text[2000];
        if (cases[i].add == dist_collective && library->version < 10600)
            continue; /* "not supported in this configuration" */
        build_begin(&b);
        add_case(&b, &cases[i]);
        kelp_status *status =
            trt_build(library, b.log, b.builder, b.network, b.config, NULL, &b.engine);
        kelp_status_format(status, text, sizeof text);
        if (status != NULL)
            printf("%s: %s\n", cases[i].name, text);
        built += status == NULL;
        total++;
        wrong += status != NULL && is_built(cases[i].name);
        kelp_status_free(status);
        build_end(&b);
    }
    printf("%d of %d layers built\n", built, total);
    assert_int_equal(wrong, 0);
}

int run_layer_tests(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_layer_is_added_and_builds)};
    return cmocka_run_group_tests_name("layers", tests, NULL, NULL);
}
