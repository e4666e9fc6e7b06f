/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A smoke test of TensorRT without a test framework, so that it can be compiled for another machine
 * and run there or under an emulator: structures by value in both directions, many parameters,
 * callbacks, errors, a model. Exits with 0 on success, with 77 without the library.
 *
 *     smoke MODEL.onnx     a model of one input of two dimensions, the first of them dynamic
 */
#include "tensorrt/call.h"

#include <stdio.h>
#include <string.h>

static int wrong;

static void expect(bool holds, const char *what) {
    if (!holds) {
        printf("wrong: %s\n", what);
        wrong++;
    }
}

static void expect_ok(kelp_status *status, const char *what) {
    if (status != NULL) {
        char text[2048];
        kelp_status_format(status, text, sizeof text);
        printf("wrong: %s: %s\n", what, text);
        kelp_status_free(status);
        wrong++;
    }
}

static void expect_words(kelp_status *status, const char *words) {
    char text[2048];
    kelp_status_format(status, text, sizeof text);
    expect(status != NULL && strstr(text, words) != NULL, words);
    printf("as expected: %.200s\n", text);
    kelp_status_free(status);
}

static bool stop(void *userp, const char *phase, int32_t step) {
    (void)phase, (void)step;
    return --*(int *)userp > 0;
}

static void layers(const trt_methods *m, trt_network *network) {
    static const float numbers[256] = {0.5f, -1.0f};
    const trt_dims image = {4, {2, 4, 6, 8}}, kernel = {2, {3, 3}}, flat = {2, {2, -1}};
    trt_tensor *x = trt_network_add_input(m, network, "x", TRT_DATA_TYPE_FLOAT, &image);
    trt_convolution_layer *convolution = trt_network_add_convolution_nd(
        m, network, x, 5, &kernel, (trt_weights){TRT_DATA_TYPE_FLOAT, numbers, 180},
        (trt_weights){TRT_DATA_TYPE_FLOAT, numbers + 7, 5});
    trt_weights bias = trt_convolution_layer_get_bias_weights(m, convolution);
    expect(bias.values == numbers + 7 && bias.count == 5, "weights come back");
    trt_lrn_layer *lrn = trt_network_add_lrn(
        m, network, trt_layer_get_output(m, trt_as_layer(convolution), 0), 3, 1e-4f, 0.75f, 2.0f);
    expect(trt_lrn_layer_get_k(m, lrn) == 2.0f, "floats come back");
    trt_scale_layer *scale = trt_network_add_scale(
        m, network, trt_layer_get_output(m, trt_as_layer(lrn), 0), TRT_SCALE_MODE_UNIFORM,
        (trt_weights){TRT_DATA_TYPE_FLOAT, numbers, 1},
        (trt_weights){TRT_DATA_TYPE_FLOAT, numbers + 1, 1}, (trt_weights){0});
    expect(trt_scale_layer_get_scale(m, scale).values == numbers + 1, "three weights in order");
    trt_shuffle_layer *shuffle =
        trt_network_add_shuffle(m, network, trt_layer_get_output(m, trt_as_layer(scale), 0));
    trt_shuffle_layer_set_reshape_dimensions(m, shuffle, &flat);
    trt_tensor *y = trt_layer_get_output(m, trt_as_layer(shuffle), 0);
    trt_dims shape = trt_tensor_get_dimensions(m, y);
    expect(shape.rank == 2 && shape.d[0] == 2 && shape.d[1] == 120, "a shape comes back");
    trt_network_mark_output(m, network, y);
}

static void build(const trt_library *library, trt_log *log, const char *model) {
    const trt_methods *m = library->methods;
    trt_builder *builder = NULL;
    trt_network *network = NULL, *read = NULL;
    trt_config *config = NULL;
    trt_parser *parser = NULL;
    trt_memory *engine = NULL;
    trt_progress progress;
    int steps = 2;
    expect_ok(trt_create_builder(library, log, &builder), "a builder");
    expect_ok(trt_create_network(library, log, builder, 1, &network), "a network");
    expect_ok(trt_create_config(library, log, builder, &config), "a configuration");
    layers(m, network);
    expect_ok(trt_build(library, log, builder, network, config, NULL, &engine), "an engine");
    printf("engine of %zu bytes\n", trt_memory_size(m, engine));
    trt_progress_init(&progress);
    progress.step = stop;
    progress.userp = &steps;
    trt_memory *none = NULL;
    expect_words(trt_build(library, log, builder, network, config, &progress, &none), "cancelled");
    expect_ok(trt_create_network(library, log, builder, 1, &read), "another network");
    expect_ok(trt_create_parser(library, log, read, &parser), "a parser");
    expect_ok(trt_parse_file(library, log, parser, model), model);
    trt_tensor *x = trt_network_get_input(m, read, 0);
    expect(x != NULL, "the model has an input");
    expect_words(trt_build(library, log, builder, read, config, NULL, &none), "profile");
    trt_dims min = trt_tensor_get_dimensions(m, x), max = min;
    min.d[0] = 1;
    max.d[0] = 8;
    trt_profile *profile = trt_builder_create_optimization_profile(m, builder);
    expect_ok(trt_set_profile(library, log, profile, trt_tensor_get_name(m, x), &min, &max, &max),
              "a profile");
    trt_config_add_optimization_profile(m, config, profile);
    expect_ok(trt_build(library, log, builder, read, config, NULL, &none), "the model's engine");
    printf("engine of %zu bytes\n", trt_memory_size(m, none));
    trt_destroy(none);
    trt_destroy(engine);
    trt_destroy_parser(parser);
    trt_destroy(read);
    trt_destroy(config);
    trt_destroy(network);
    trt_destroy(builder);
}

int main(int argc, char **argv) {
    trt_library *library = NULL;
    trt_log *log = NULL;
    char text[4200];
    if (argc != 2)
        return 2;
    kelp_status *status = trt_library_open(kelp_allocator_system(), NULL, &library);
    if (status != NULL) {
        printf("skipped: %s\n", kelp_status_message(status));
        kelp_status_free(status);
        return 77;
    }
    trt_library_describe(library, text, sizeof text);
    printf("%s\n", text);
    expect_ok(trt_log_create(kelp_allocator_system(), TRT_SEVERITY_WARNING, NULL, NULL, &log),
              "a log");
    build(library, log, argv[1]);
    trt_log_destroy(log);
    trt_library_destroy(library);
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
