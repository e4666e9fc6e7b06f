/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime, a builder and their results, shared by the tests of builders. */
#ifndef KELP_TESTS_BUILDER_SUPPORT_H_
#define KELP_TESTS_BUILDER_SUPPORT_H_

#include <kelp/builder.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

typedef struct bench {
    kelp_runtime *runtime;
    kelp_builder *builder;
    kelp_network *network;
    kelp_builder_config *config;
    kelp_engine *engine;
    kelp_context *context;
} bench;

static inline kelp_shape dims(int32_t rank, ...) {
    kelp_shape shape = {.rank = rank};
    va_list args;
    va_start(args, rank);
    for (int32_t i = 0; i < rank; i++)
        shape.d[i] = va_arg(args, int);
    va_end(args);
    return shape;
}

static inline void bench_open(bench *b) {
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    *b = (bench){0};
    check_ok(kelp_runtime_create(&options, &b->runtime));
    check_ok(kelp_builder_create(b->runtime, "cpu", &b->builder));
    check_ok(kelp_builder_create_network(b->builder, &b->network));
    check_ok(kelp_builder_create_config(b->builder, &b->config));
}

static inline kelp_net_tensor *input(bench *b, const char *name, kelp_dtype dtype,
                                     kelp_shape shape) {
    kelp_net_tensor *tensor = NULL;
    check_ok(kelp_network_add_input(b->network, name, dtype, shape, &tensor));
    return tensor;
}

static inline void bench_close(bench *b) {
    kelp_context_destroy(b->context);
    kelp_engine_release(b->engine);
    kelp_builder_config_release(b->config);
    kelp_network_release(b->network);
    kelp_builder_release(b->builder);
    kelp_runtime_release(b->runtime);
}

static inline void free_plan(void *plan) {
    kelp_blob_release(plan);
}

/* Builds, loads and creates a context. */
static inline void bench_build(bench *b) {
    kelp_blob *plan = NULL;
    check_ok(kelp_builder_build(b->builder, b->network, b->config, &plan));
    check_ok(kelp_engine_load(b->runtime, kelp_blob_data(plan), kelp_blob_size(plan), "test",
                              free_plan, plan, &b->engine));
    check_ok(kelp_context_create(b->engine, &b->context));
}

static inline void bind(kelp_context *context, size_t index, kelp_dtype dtype, kelp_shape shape,
                        void *data) {
    kelp_tensor tensor;
    check_ok(kelp_tensor_init(&tensor, dtype, shape.rank, shape.d, data));
    check_ok(kelp_context_set_input(context, index, &tensor));
}

static inline kelp_net_tensor *out_of(kelp_layer *layer) {
    return kelp_layer_output(layer, 0);
}

static inline void check_shape_is(const kelp_net_tensor *tensor, kelp_shape expected) {
    kelp_shape found = kelp_net_tensor_dims(tensor);
    assert_int_equal(found.rank, expected.rank);
    for (int32_t i = 0; i < found.rank; i++)
        assert_int_equal(found.d[i], expected.d[i]);
}

#endif
