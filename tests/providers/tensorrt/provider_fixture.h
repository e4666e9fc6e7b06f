/* SPDX-License-Identifier: Apache-2.0 */
/* A builder of provider `tensorrt` and its results, through the public interface only. */
#ifndef KELP_TESTS_PROVIDERS_TENSORRT_PROVIDER_FIXTURE_H_
#define KELP_TESTS_PROVIDERS_TENSORRT_PROVIDER_FIXTURE_H_

#include <kelp/builder.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

typedef struct bench {
    kelp_runtime *runtime;
    kelp_builder *builder;
    kelp_network *network;
    kelp_builder_config *config;
    kelp_blob *plan;
} bench;

static inline kelp_shape shape(int32_t rank, int64_t d0, int64_t d1, int64_t d2, int64_t d3) {
    return (kelp_shape){rank, {d0, d1, d2, d3}};
}

static inline void bench_open(bench *b) {
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    *b = (bench){0};
    check_ok(kelp_runtime_create(&options, &b->runtime));
    check_ok(kelp_builder_create(b->runtime, "tensorrt", &b->builder));
    check_ok(kelp_builder_create_network(b->builder, &b->network));
    check_ok(kelp_builder_create_config(b->builder, &b->config));
}

static inline void bench_close(bench *b) {
    kelp_blob_release(b->plan);
    kelp_builder_config_release(b->config);
    kelp_network_release(b->network);
    kelp_builder_release(b->builder);
    kelp_runtime_release(b->runtime);
}

/* Builds and checks that the result is a plan. */
static inline void bench_build(bench *b) {
    check_ok(kelp_builder_build(b->builder, b->network, b->config, &b->plan));
    assert_true(kelp_blob_size(b->plan) > 1000);
    assert_true(kelp_plan_is_known(b->runtime, kelp_blob_data(b->plan), kelp_blob_size(b->plan)));
}

int run_layer_tests(void);

#endif
