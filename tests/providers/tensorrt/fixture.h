/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of NVIDIA's library: the library, a builder with its objects, and builds to
 * bytes. */
#ifndef KELP_TESTS_PROVIDERS_TENSORRT_FIXTURE_H_
#define KELP_TESTS_PROVIDERS_TENSORRT_FIXTURE_H_

#include "tensorrt/call.h"

extern trt_library *library; /* opened by main */

typedef struct build {
    const trt_methods *m;
    trt_log *log;
    trt_builder *builder;
    trt_network *network;
    trt_config *config;
    trt_parser *parser;
    trt_memory *engine;
} build;

void build_begin(build *b);
void build_end(build *b);
trt_dims dims(int rank, int64_t d0, int64_t d1, int64_t d2, int64_t d3);
/* y = relu(x * w + b), x [-1, in], w [in, out] of `type`. */
void add_dense(build *b, trt_data_type type, int64_t in, int64_t out);
void add_profile(build *b, const char *input, trt_dims min, trt_dims opt, trt_dims max);
/* Builds. Fails the test if the build fails. */
void build_engine(build *b);
const uint8_t *engine_data(const build *b, size_t *out_size);

/* Skips the test if this machine has a GPU. */
void needs_no_gpu(void);

int run_network_tests(void);
int run_onnx_tests(void);
int run_layer_tests(void);

#endif
