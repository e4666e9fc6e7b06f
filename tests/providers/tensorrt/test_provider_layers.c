/* SPDX-License-Identifier: Apache-2.0 */
/* Every layer of kelp/network.h built by NVIDIA's library: each in a separate network, and those
 * that build without a GPU in one network. */
#include "provider_fixture.h"

#include <stdio.h>

static const float floats[8192] = {1.0f, 2.0f, 0.5f};
static const uint16_t halves[1024] = {0};
static const int32_t ints[64] = {1, 2, 3};
static const int64_t longs[8] = {0};
static const char *current = ""; /* name of the current case, for unique names */

static kelp_net_tensor *input(kelp_network *n, const char *name, kelp_dtype type,
                              kelp_shape shape) {
    kelp_net_tensor *tensor = NULL;
    char whole[80];
    snprintf(whole, sizeof whole, "%s.%s", current, name);
    check_ok(kelp_network_add_input(n, whole, type, shape, &tensor));
    return tensor;
}

static kelp_net_tensor *constant(kelp_network *n, kelp_dtype type, kelp_shape shape,
                                 const void *values) {
    kelp_layer *layer = NULL;
    int64_t count = 1;
    for (int32_t i = 0; i < shape.rank; i++)
        count *= shape.d[i];
    check_ok(
        kelp_network_add_constant(n, shape, (kelp_weights){type, values, count, NULL}, &layer));
    return kelp_layer_output(layer, 0);
}

static kelp_weights weights(int64_t count) {
    return (kelp_weights){KELP_F32, count > 0 ? floats : NULL, count, NULL};
}

#define F32 KELP_F32
#define I32 KELP_I32
#define I64 KELP_I64
#define X shape(4, 2, 4, 6, 8)
#define CASE(name) static kelp_layer *name(kelp_network *n)
#define IN(name, type, dims) input(n, name, type, dims)
#define ADD(call)       \
    do {                \
        check_ok(call); \
        return layer;   \
    } while (0)
#define LAYER kelp_layer *layer = NULL

CASE(activation) {
    LAYER;
    kelp_net_tensor *x = IN("x", F32, X);
    for (int i = 0; i < 14; i++) { /* in sequence, each with the arguments that it needs */
        check_ok(kelp_network_add_activation(n, x, (kelp_activation)i, 0.25f, 0.75f, &layer));
        x = kelp_layer_output(layer, 0);
    }
    return layer;
}
CASE(unary) {
    LAYER;
    ADD(kelp_network_add_unary(n, IN("x", F32, X), KELP_UNARY_EXP, &layer));
}
CASE(elementwise) {
    LAYER;
    ADD(kelp_network_add_elementwise(n, IN("x", F32, X), IN("y", F32, shape(4, 2, 1, 6, 1)),
                                     KELP_ELEMENTWISE_DIV, &layer));
}
CASE(scale) {
    LAYER;
    ADD(kelp_network_add_scale(n, IN("x", F32, X), KELP_SCALE_CHANNEL, weights(4), weights(4),
                               weights(0), 1, &layer));
}
CASE(scale_of_a_matrix) {
    LAYER;
    ADD(kelp_network_add_scale(n, IN("x", F32, shape(2, 3, 5, 0, 0)), KELP_SCALE_CHANNEL,
                               weights(5), weights(5), weights(5), 1, &layer));
}
CASE(parametric_relu) {
    LAYER;
    ADD(kelp_network_add_parametric_relu(n, IN("x", F32, X),
                                         constant(n, F32, shape(4, 1, 4, 1, 1), floats), &layer));
}
CASE(select_layer) {
    LAYER;
    ADD(kelp_network_add_select(n, IN("c", KELP_BOOL, X), IN("x", F32, X), IN("y", F32, X),
                                &layer));
}
CASE(identity) {
    LAYER;
    ADD(kelp_network_add_identity(n, IN("x", F32, X), &layer));
}
CASE(cast) {
    LAYER;
    ADD(kelp_network_add_cast(n, IN("x", F32, X), KELP_F16, &layer));
}
CASE(constant_layer) {
    LAYER;
    ADD(kelp_network_add_constant(n, shape(2, 2, 3, 0, 0), weights(6), &layer));
}
CASE(convolution) {
    LAYER;
    kelp_window w = {
        .struct_size = sizeof w, .stride = {2, 1}, .pre_padding = {1, 1}, .post_padding = {1, 1}};
    ADD(kelp_network_add_convolution(n, IN("x", F32, X), 5, shape(2, 3, 3, 0, 0), weights(180),
                                     weights(5), &w, &layer));
}
CASE(convolution_by_tensor) {
    LAYER;
    kelp_window w = {.struct_size = sizeof w, .groups = 2, .padding_mode = KELP_PADDING_SAME_UPPER};
    w.kernel = constant(n, F32, shape(4, 4, 2, 3, 3), floats);
    ADD(kelp_network_add_convolution(n, IN("x", F32, X), 4, shape(2, 3, 3, 0, 0), weights(0),
                                     weights(4), &w, &layer));
}
CASE(deconvolution) {
    LAYER;
    kelp_window w = {.struct_size = sizeof w, .stride = {2, 2}};
    ADD(kelp_network_add_deconvolution(n, IN("x", F32, X), 3, shape(2, 2, 2, 0, 0), weights(48),
                                       weights(0), &w, &layer));
}
CASE(pooling) {
    LAYER;
    ADD(kelp_network_add_pooling(n, IN("x", F32, X), KELP_POOLING_AVERAGE, shape(2, 2, 3, 0, 0),
                                 NULL, &layer));
}
CASE(pooling_blend) {
    LAYER;
    kelp_window w = {.struct_size = sizeof w, .stride = {1, 1}, .blend = 0.5f};
    ADD(kelp_network_add_pooling(n, IN("x", F32, X), KELP_POOLING_BLEND, shape(2, 2, 2, 0, 0), &w,
                                 &layer));
}
CASE(lrn) {
    LAYER;
    ADD(kelp_network_add_lrn(n, IN("x", F32, X), 3, 1e-4f, 0.75f, 2.0f, &layer));
}
CASE(padding) {
    LAYER;
    ADD(kelp_network_add_padding(n, IN("x", F32, X), shape(2, 1, 0, 0, 0), shape(2, 0, 2, 0, 0),
                                 &layer));
}
CASE(resize) {
    LAYER;
    kelp_resize r = {.struct_size = sizeof r,
                     .dims = shape(4, 2, 4, 12, 12),
                     .mode = KELP_INTERPOLATION_LINEAR,
                     .coordinates = KELP_COORDINATES_HALF_PIXEL};
    ADD(kelp_network_add_resize(n, IN("x", F32, X), &r, &layer));
}
CASE(resize_by_scales) {
    LAYER;
    kelp_resize r = {.struct_size = sizeof r,
                     .scale_count = 4,
                     .scales = {1, 1, 2, 2},
                     .mode = KELP_INTERPOLATION_CUBIC};
    ADD(kelp_network_add_resize(n, IN("x", F32, X), &r, &layer));
}
CASE(grid_sample) {
    LAYER;
    ADD(kelp_network_add_grid_sample(n, IN("x", F32, X), IN("g", F32, shape(4, 2, 3, 5, 2)),
                                     KELP_INTERPOLATION_LINEAR, true, KELP_SAMPLE_CLAMP, &layer));
}
CASE(shuffle) {
    LAYER;
    kelp_shuffle s = {.struct_size = sizeof s,
                      .first_transpose_given = true,
                      .first_transpose = {0, 2, 1, 3},
                      .reshape_given = true,
                      .reshape = shape(3, 2, 24, 8, 0),
                      .second_transpose_given = true,
                      .second_transpose = {1, 0, 2}};
    ADD(kelp_network_add_shuffle(n, IN("x", F32, X), &s, &layer));
}
CASE(concatenation) {
    LAYER;
    kelp_net_tensor *both[] = {IN("x", F32, X), IN("y", F32, shape(4, 2, 3, 6, 8))};
    ADD(kelp_network_add_concatenation(n, both, 2, 1, &layer));
}
CASE(slice) {
    LAYER;
    ADD(kelp_network_add_slice(n, IN("x", F32, X), shape(4, 0, 1, 1, 0), shape(4, 2, 2, 2, 4),
                               shape(4, 1, 1, 2, 2), NULL, &layer));
}
CASE(slice_by_tensor) {
    LAYER;
    static const int64_t start[] = {0, 1, 1, 0};
    kelp_slice s = {.struct_size = sizeof s,
                    .mode = KELP_SAMPLE_CLAMP,
                    .start = constant(n, I64, shape(1, 4, 0, 0, 0), start)};
    ADD(kelp_network_add_slice(n, IN("x", F32, X), shape(4, 0, 0, 0, 0), shape(4, 2, 2, 2, 4),
                               shape(4, 1, 1, 2, 2), &s, &layer));
}
CASE(shape_layer) {
    LAYER;
    ADD(kelp_network_add_shape(n, IN("x", F32, X), &layer));
}
CASE(squeeze) {
    LAYER;
    ADD(kelp_network_add_squeeze(n, IN("x", F32, shape(3, 1, 4, 6, 0)),
                                 constant(n, I64, shape(1, 1, 0, 0, 0), longs), &layer));
}
CASE(unsqueeze) {
    LAYER;
    ADD(kelp_network_add_unsqueeze(n, IN("x", F32, shape(2, 4, 6, 0, 0)),
                                   constant(n, I64, shape(1, 1, 0, 0, 0), longs), &layer));
}
CASE(gather) {
    LAYER;
    ADD(kelp_network_add_gather(n, IN("x", F32, X), IN("at", I32, shape(1, 3, 0, 0, 0)),
                                KELP_GATHER_DEFAULT, 1, 0, &layer));
}
CASE(gather_nd) {
    LAYER;
    ADD(kelp_network_add_gather(n, IN("x", F32, X), IN("at", I32, shape(2, 5, 4, 0, 0)),
                                KELP_GATHER_ND, 0, 0, &layer));
}
CASE(scatter) {
    LAYER;
    ADD(kelp_network_add_scatter(
        n, IN("x", F32, shape(2, 4, 6, 0, 0)), IN("at", I32, shape(2, 2, 3, 0, 0)),
        IN("u", F32, shape(2, 2, 3, 0, 0)), KELP_SCATTER_ELEMENT, 1, &layer));
}
CASE(one_hot) {
    LAYER;
    ADD(kelp_network_add_one_hot(n, IN("at", I32, shape(2, 2, 3, 0, 0)),
                                 constant(n, F32, shape(1, 2, 0, 0, 0), floats),
                                 constant(n, I32, shape(0, 0, 0, 0, 0), ints + 2), -1, &layer));
}
CASE(non_zero) {
    LAYER;
    ADD(kelp_network_add_non_zero(n, IN("x", F32, shape(2, 3, 4, 0, 0)), I64, &layer));
}
CASE(reverse_sequence) {
    LAYER;
    ADD(kelp_network_add_reverse_sequence(n, IN("x", F32, shape(3, 5, 2, 3, 0)),
                                          IN("n", I32, shape(1, 2, 0, 0, 0)), 1, 0, &layer));
}
CASE(fill) {
    LAYER;
    kelp_fill_options f = {.struct_size = sizeof f, .alpha = 1.0, .beta = 0.5};
    ADD(kelp_network_add_fill(n, shape(1, 7, 0, 0, 0), KELP_FILL_LINSPACE, &f, &layer));
}
CASE(fill_randomly) {
    LAYER;
    ADD(kelp_network_add_fill(n, shape(2, 7, 5, 0, 0), KELP_FILL_RANDOM_UNIFORM, NULL, &layer));
}
CASE(assertion) {
    LAYER, *other = NULL;
    static const uint8_t yes = 1;
    kelp_net_tensor *condition = constant(n, KELP_BOOL, shape(1, 1, 0, 0, 0), &yes);
    check_ok(kelp_network_add_assertion(n, condition, "must hold", &layer));
    check_ok(kelp_network_add_identity(n, IN("x", F32, X), &other));
    return other;
}
CASE(reduce) {
    LAYER;
    ADD(kelp_network_add_reduce(n, IN("x", F32, X), KELP_REDUCE_AVERAGE, 6, true, &layer));
}
CASE(softmax) {
    LAYER;
    ADD(kelp_network_add_softmax(n, IN("x", F32, X), 1u << 2, &layer));
}
CASE(ragged_softmax) {
    LAYER;
    ADD(kelp_network_add_ragged_softmax(n, IN("x", F32, shape(3, 2, 5, 7, 0)),
                                        IN("n", I32, shape(3, 2, 5, 1, 0)), &layer));
}
CASE(topk) {
    LAYER;
    ADD(kelp_network_add_topk(n, IN("x", F32, X), true, 3, NULL, 1u << 3, I32, &layer));
}
CASE(cumulative) {
    LAYER;
    ADD(kelp_network_add_cumulative(n, IN("x", F32, shape(2, 4, 6, 0, 0)), 1, false, true, &layer));
}
CASE(normalization) {
    LAYER;
    ADD(kelp_network_add_normalization(
        n, IN("x", F32, shape(3, 2, 4, 6, 0)), constant(n, F32, shape(3, 1, 1, 6, 0), floats),
        constant(n, F32, shape(3, 1, 1, 6, 0), floats), 4, NULL, &layer));
}
CASE(normalization_of_groups) {
    LAYER;
    kelp_normalization o = {.struct_size = sizeof o, .groups = 2, .epsilon = 1e-3f};
    ADD(kelp_network_add_normalization(
        n, IN("x", F32, X), constant(n, F32, shape(4, 1, 4, 1, 1), floats),
        constant(n, F32, shape(4, 1, 4, 1, 1), floats), 12, &o, &layer));
}
CASE(matrix_multiply) {
    LAYER;
    ADD(kelp_network_add_matrix_multiply(n, IN("x", F32, shape(2, 3, 5, 0, 0)), KELP_MATRIX_NONE,
                                         IN("y", F32, shape(2, 4, 5, 0, 0)), KELP_MATRIX_TRANSPOSE,
                                         &layer));
}
CASE(einsum) {
    LAYER;
    kelp_net_tensor *both[] = {IN("x", F32, shape(2, 3, 5, 0, 0)),
                               IN("y", F32, shape(2, 5, 4, 0, 0))};
    ADD(kelp_network_add_einsum(n, both, 2, "ij,jk->ik", &layer));
}
CASE(attention) {
    LAYER;
    kelp_attention o = {.struct_size = sizeof o, .causal = true};
    kelp_shape size = shape(4, 2, 2, 16, 32);
    ADD(kelp_network_add_attention(n, IN("q", KELP_F16, size), IN("k", KELP_F16, size),
                                   IN("v", KELP_F16, size), &o, &layer));
}
CASE(rotary_embedding) {
    LAYER;
    ADD(kelp_network_add_rotary_embedding(
        n, IN("x", F32, shape(4, 2, 2, 4, 8)), IN("c", F32, shape(3, 2, 4, 4, 0)),
        IN("s", F32, shape(3, 2, 4, 4, 0)), NULL, false, 0, &layer));
}
CASE(kv_cache_update) {
    LAYER;
    ADD(kelp_network_add_kv_cache_update(n, IN("c", F32, shape(4, 2, 2, 16, 8)),
                                         IN("u", F32, shape(4, 2, 2, 1, 8)),
                                         IN("at", I32, shape(1, 2, 0, 0, 0)), &layer));
}
CASE(moe) {
    LAYER;
    kelp_moe o = {.struct_size = sizeof o, .swish = true};
    kelp_shape square = shape(3, 2, 16, 16, 0);
    ADD(kelp_network_add_moe(
        n, IN("x", KELP_F16, shape(3, 1, 4, 16, 0)), IN("which", I32, shape(3, 1, 4, 1, 0)),
        IN("scores", KELP_F16, shape(3, 1, 4, 1, 0)), constant(n, KELP_F16, square, halves),
        constant(n, KELP_F16, square, halves), constant(n, KELP_F16, square, halves), &o, &layer));
}
CASE(quantize_and_back) {
    LAYER;
    kelp_net_tensor *factor = constant(n, F32, shape(0, 0, 0, 0, 0), floats);
    check_ok(kelp_network_add_quantize(n, IN("x", F32, X), factor, NULL, 0, KELP_I8, &layer));
    ADD(kelp_network_add_dequantize(n, kelp_layer_output(layer, 0), factor, NULL, 0, F32, &layer));
}
CASE(dynamic_quantize) {
    LAYER;
    ADD(kelp_network_add_dynamic_quantize(n, IN("x", F32, shape(2, 32, 32, 0, 0)), 1, 16,
                                          KELP_F4E2M1, KELP_F8E4M3FN, &layer));
}
CASE(dynamic_quantize_to_f8) {
    LAYER;
    ADD(kelp_network_add_dynamic_quantize(n, IN("x", F32, shape(2, 32, 64, 0, 0)), 1, 32,
                                          KELP_F8E4M3FN, KELP_F8E8M0, &layer));
}
CASE(nms) {
    LAYER;
    ADD(kelp_network_add_nms(n, IN("boxes", F32, shape(3, 1, 8, 4, 0)),
                             IN("scores", F32, shape(3, 1, 2, 8, 0)),
                             constant(n, I32, shape(0, 0, 0, 0, 0), ints + 2), NULL, &layer));
}
CASE(collective) {
    LAYER;
    ADD(kelp_network_add_collective(n, IN("x", F32, X), KELP_COLLECTIVE_ALL_REDUCE, KELP_REDUCE_SUM,
                                    0, 1, &layer));
}
/* Running sums of the rows of x: the last one, and all of them. */
CASE(loop) {
    LAYER, *row = NULL, *sum = NULL;
    kelp_loop *l = NULL;
    check_ok(kelp_network_add_loop(n, &l));
    check_ok(kelp_loop_set_trip_count(l, constant(n, I32, shape(0, 0, 0, 0, 0), ints + 2)));
    check_ok(kelp_loop_add_iterator(l, IN("x", F32, shape(2, 3, 3, 0, 0)), 0, false, &row));
    check_ok(kelp_loop_add_recurrence(l, constant(n, F32, shape(1, 3, 0, 0, 0), floats), &sum));
    check_ok(kelp_network_add_elementwise(n, kelp_layer_output(sum, 0), kelp_layer_output(row, 0),
                                          KELP_ELEMENTWISE_SUM, &layer));
    kelp_net_tensor *next = kelp_layer_output(layer, 0);
    check_ok(kelp_recurrence_set_next(sum, next));
    check_ok(kelp_loop_add_output(l, next, KELP_LOOP_CONCATENATE, 0, &layer));
    check_ok(kelp_network_mark_output(n, kelp_layer_output(layer, 0)));
    ADD(kelp_loop_add_output(l, kelp_layer_output(sum, 0), KELP_LOOP_LAST_VALUE, 0, &layer));
}
/* Doubles a value while it is below a limit. */
CASE(loop_while) {
    LAYER, *value = NULL;
    kelp_loop *l = NULL;
    check_ok(kelp_network_add_loop(n, &l));
    check_ok(kelp_loop_add_recurrence(l, IN("x", F32, shape(0, 0, 0, 0, 0)), &value));
    kelp_net_tensor *x = kelp_layer_output(value, 0);
    check_ok(kelp_network_add_elementwise(n, x, x, KELP_ELEMENTWISE_SUM, &layer));
    check_ok(kelp_recurrence_set_next(value, kelp_layer_output(layer, 0)));
    check_ok(kelp_network_add_elementwise(n, x, constant(n, F32, shape(0, 0, 0, 0, 0), floats + 1),
                                          KELP_ELEMENTWISE_LESS, &layer));
    check_ok(kelp_loop_set_condition(l, kelp_layer_output(layer, 0)));
    ADD(kelp_loop_add_output(l, x, KELP_LOOP_LAST_VALUE, 0, &layer));
}
CASE(conditional) {
    LAYER, *yes = NULL, *no = NULL;
    kelp_conditional *c = NULL;
    check_ok(kelp_network_add_conditional(n, IN("c", KELP_BOOL, shape(0, 0, 0, 0, 0)), &c));
    check_ok(kelp_conditional_add_input(c, IN("x", F32, X), &layer));
    kelp_net_tensor *x = kelp_layer_output(layer, 0);
    check_ok(kelp_network_add_unary(n, x, KELP_UNARY_NEG, &yes));
    check_ok(kelp_network_add_unary(n, x, KELP_UNARY_EXP, &no));
    ADD(kelp_conditional_add_output(c, kelp_layer_output(yes, 0), kelp_layer_output(no, 0),
                                    &layer));
}

/* Layers without an implementation if there is no GPU: NVIDIA's builder fails. */
static const struct layer_case {
    const char *name;
    kelp_layer *(*add)(kelp_network *);
    bool is_built;
} cases[] = {
#define ROW(name) \
    { #name, name, true }
    ROW(activation),
    ROW(unary),
    ROW(elementwise),
    ROW(scale),
    ROW(scale_of_a_matrix),
    ROW(parametric_relu),
    ROW(select_layer),
    ROW(identity),
    ROW(cast),
    ROW(constant_layer),
    ROW(convolution),
    ROW(convolution_by_tensor),
    ROW(deconvolution),
    ROW(pooling),
    ROW(pooling_blend),
    ROW(lrn),
    ROW(padding),
    ROW(resize),
    ROW(resize_by_scales),
    ROW(grid_sample),
    ROW(shuffle),
    ROW(concatenation),
    ROW(slice),
    ROW(slice_by_tensor),
    ROW(shape_layer),
    ROW(squeeze),
    ROW(unsqueeze),
    ROW(gather),
    ROW(gather_nd),
    ROW(scatter),
    ROW(one_hot),
    ROW(reverse_sequence),
    ROW(fill),
    ROW(fill_randomly),
    ROW(assertion),
    ROW(reduce),
    ROW(softmax),
    ROW(ragged_softmax),
    ROW(topk),
    ROW(cumulative),
    ROW(normalization),
    ROW(normalization_of_groups),
    ROW(matrix_multiply),
    ROW(einsum),
    ROW(attention),
    ROW(rotary_embedding),
    ROW(kv_cache_update),
    ROW(quantize_and_back),
    ROW(dynamic_quantize),
    ROW(dynamic_quantize_to_f8),
    ROW(collective),
    ROW(loop),
    ROW(loop_while),
    ROW(conditional),
#undef ROW
    {"non_zero", non_zero, false},
    {"nms", nms, false},
    {"moe", moe, false}};

#define COUNT (sizeof cases / sizeof *cases)

static void add_case(kelp_network *network, const struct layer_case *c) {
    current = c->name;
    kelp_layer *layer = c->add(network);
    for (size_t i = 0; i < kelp_layer_output_count(layer); i++)
        check_ok(kelp_network_mark_output(network, kelp_layer_output(layer, i)));
}

static void every_layer_builds(void **state) {
    (void)state;
    int built = 0, wrong = 0;
    for (size_t i = 0; i < COUNT; i++) {
        char text[2000];
        bench b;
        bench_open(&b);
        add_case(b.network, &cases[i]);
        kelp_status *status = kelp_builder_build(b.builder, b.network, b.config, &b.plan);
        kelp_status_format(status, text, sizeof text);
        if (status != NULL)
            printf("%s: %s\n", cases[i].name, text);
        built += status == NULL;
        wrong += status != NULL && cases[i].is_built;
        kelp_status_free(status);
        bench_close(&b);
    }
    printf("%d of %zu kinds of layers built\n", built, COUNT);
    assert_int_equal(wrong, 0);
}

static void all_layers_build_in_one_network(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    for (size_t i = 0; i < COUNT; i++)
        if (cases[i].is_built)
            add_case(b.network, &cases[i]);
    bench_build(&b);
    printf("%zu layers in one network\n", kelp_network_layer_count(b.network));
    bench_close(&b);
}

int run_layer_tests(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layer_builds),
        cmocka_unit_test(all_layers_build_in_one_network),
    };
    return cmocka_run_group_tests_name("layers", tests, NULL, NULL);
}
