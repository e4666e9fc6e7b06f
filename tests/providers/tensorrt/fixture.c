/* SPDX-License-Identifier: Apache-2.0 */
/* See fixture.h. */
#include "fixture.h"

#include <kelp/cuda.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

trt_library *library;

static float numbers[1 << 16]; /* weights must remain valid until the build */

void build_begin(build *b) {
    *b = (build){.m = library->methods};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        numbers[i] = (float)((i * 37 + 11) % 101) / 101.0f - 0.5f;
    check_ok(trt_log_create(kelp_allocator_system(), TRT_SEVERITY_VERBOSE, NULL, NULL, &b->log));
    check_ok(trt_create_builder(library, b->log, &b->builder));
    check_ok(trt_create_network(library, b->log, b->builder,
                                1u << TRT_NETWORK_DEFINITION_CREATION_FLAG_STRONGLY_TYPED,
                                &b->network));
    check_ok(trt_create_config(library, b->log, b->builder, &b->config));
}

void build_end(build *b) {
    trt_destroy(b->engine);
    trt_destroy_parser(b->parser);
    trt_destroy(b->config);
    trt_destroy(b->network);
    trt_destroy(b->builder);
    trt_log_destroy(b->log);
}

trt_dims dims(int rank, int64_t d0, int64_t d1, int64_t d2, int64_t d3) {
    return (trt_dims){rank, {d0, d1, d2, d3}};
}

void add_dense(build *b, trt_data_type type, int64_t in, int64_t out) {
    const trt_methods *m = b->m;
    trt_dims x_dims = dims(2, -1, in, 0, 0), w_dims = dims(2, in, out, 0, 0),
             b_dims = dims(2, 1, out, 0, 0);
    trt_tensor *x = trt_network_add_input(m, b->network, "x", type, &x_dims);
    trt_constant_layer *w =
        trt_network_add_constant(m, b->network, &w_dims, (trt_weights){type, numbers, in * out});
    trt_constant_layer *bias =
        trt_network_add_constant(m, b->network, &b_dims, (trt_weights){type, numbers + 7, out});
    assert_non_null(x);
    assert_non_null(w);
    assert_non_null(bias);
    trt_matrix_multiply_layer *product = trt_network_add_matrix_multiply(
        m, b->network, x, TRT_MATRIX_OPERATION_NONE, trt_layer_get_output(m, trt_as_layer(w), 0),
        TRT_MATRIX_OPERATION_NONE);
    assert_non_null(product);
    trt_element_wise_layer *sum = trt_network_add_element_wise(
        m, b->network, trt_layer_get_output(m, trt_as_layer(product), 0),
        trt_layer_get_output(m, trt_as_layer(bias), 0), TRT_ELEMENT_WISE_OPERATION_SUM);
    assert_non_null(sum);
    trt_activation_layer *relu = trt_network_add_activation(
        m, b->network, trt_layer_get_output(m, trt_as_layer(sum), 0), TRT_ACTIVATION_TYPE_RELU);
    assert_non_null(relu);
    trt_layer_set_name(m, trt_as_layer(w), "w");
    trt_tensor *y = trt_layer_get_output(m, trt_as_layer(relu), 0);
    trt_tensor_set_name(m, y, "y");
    trt_network_mark_output(m, b->network, y);
}

void add_profile(build *b, const char *input, trt_dims min, trt_dims opt, trt_dims max) {
    trt_profile *profile = trt_builder_create_optimization_profile(b->m, b->builder);
    assert_non_null(profile);
    check_ok(trt_set_profile(library, b->log, profile, input, &min, &opt, &max));
    assert_true(trt_profile_is_valid(b->m, profile));
    assert_true(trt_config_add_optimization_profile(b->m, b->config, profile) >= 0);
}

void build_engine(build *b) {
    check_ok(trt_build(library, b->log, b->builder, b->network, b->config, NULL, &b->engine));
}

const uint8_t *engine_data(const build *b, size_t *out_size) {
    *out_size = trt_memory_size(b->m, b->engine);
    return trt_memory_data(b->m, b->engine);
}

void needs_no_gpu(void) {
    kelp_cuda *cuda = NULL;
    kelp_status *status = kelp_cuda_open(kelp_allocator_system(), &cuda);
    kelp_cuda_destroy(cuda);
    if (status == NULL)
        skip();
    kelp_status_free(status);
}
