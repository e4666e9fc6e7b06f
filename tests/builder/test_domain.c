/* SPDX-License-Identifier: Apache-2.0 */
/* Failures tell the object that failed: kelp_status_domain of every family of functions of
 * kelp/builder.h, kelp/network.h, kelp/engine.h and kelp/cuda.h. */
#include "builder/support.h"

#include <kelp/cuda.h>

static void expect_domain(kelp_status *status, kelp_domain domain, kelp_code code, int line) {
    if (status == NULL)
        fail_msg("line %d succeeded", line);
    if (kelp_status_domain(status) != domain || kelp_status_code(status) != code)
        fail_msg("line %d: expected %s of '%s', found %s of '%s': %s", line, kelp_code_name(code),
                 kelp_domain_name(domain), kelp_code_name(kelp_status_code(status)),
                 kelp_domain_name(kelp_status_domain(status)), kelp_status_message(status));
    kelp_status_free(status);
}

#define PARAMETER(status, code) \
    expect_domain((status), KELP_DOMAIN_PARAMETER, KELP_##code, __LINE__)
#define ENGINE(status, code) expect_domain((status), KELP_DOMAIN_ENGINE, KELP_##code, __LINE__)
#define RUNTIME(status, code) expect_domain((status), KELP_DOMAIN_RUNTIME, KELP_##code, __LINE__)
#define BUILDER(status, code) expect_domain((status), KELP_DOMAIN_BUILDER, KELP_##code, __LINE__)
#define NETWORK(status, code) expect_domain((status), KELP_DOMAIN_NETWORK, KELP_##code, __LINE__)

/* y = x + w, x [-1,2] float32, w [1,2]; one profile: 1 to 4 rows */
static void open_engine(bench *b) {
    static const float w[2] = {1, 2};
    kelp_net_tensor *x = NULL;
    kelp_layer *constant = NULL, *sum = NULL;
    size_t profile = 0;
    bench_open(b);
    check_ok(kelp_network_add_input(b->network, "x", KELP_F32, dims(2, -1, 2), &x));
    check_ok(kelp_network_add_constant(b->network, dims(2, 1, 2),
                                       (kelp_weights){KELP_F32, w, 2, "w"}, &constant));
    check_ok(
        kelp_network_add_elementwise(b->network, x, out_of(constant), KELP_ELEMENTWISE_SUM, &sum));
    check_ok(kelp_net_tensor_set_name(out_of(sum), "y"));
    check_ok(kelp_network_mark_output(b->network, out_of(sum)));
    check_ok(kelp_builder_config_add_profile(b->config, &profile));
    for (int which = 0; which < 3; which++)
        check_ok(kelp_builder_config_set_profile_shape(b->config, profile, "x",
                                                       (kelp_profile_selector)which, 2,
                                                       dims(2, which == 0 ? 1 : 4, 2).d));
    check_ok(kelp_builder_config_set_flags(b->config, KELP_BUILD_REFIT));
    bench_build(b);
}

/* ---- building ---- */
static void builders_and_configurations(void **state) {
    bench b;
    kelp_builder *builder = NULL;
    kelp_builder_config *other_config = NULL;
    kelp_blob *plan = NULL;
    size_t profile = 0;
    (void)state;
    open_engine(&b);
    BUILDER(kelp_builder_create(b.runtime, "no such provider", &builder), NOT_FOUND);
    PARAMETER(kelp_builder_config_set_flags(b.config, 1u << 20), UNIMPLEMENTED);
    PARAMETER(kelp_builder_config_set_memory_limit(b.config, (kelp_memory_pool)9, 1),
              INVALID_ARGUMENT);
    PARAMETER(kelp_builder_config_set_optimization_level(b.config, 6), INVALID_ARGUMENT);
    PARAMETER(kelp_builder_config_add_compute_capability(b.config, 86), INVALID_ARGUMENT);
    PARAMETER(kelp_builder_config_set_timing_cache(b.config, "", 0), UNIMPLEMENTED);
    PARAMETER(kelp_builder_config_set_profile_shape(b.config, 9, "x", KELP_PROFILE_MIN, 0, NULL),
              OUT_OF_RANGE);
    PARAMETER(kelp_builder_config_set_profile_values(b.config, 9, "x", KELP_PROFILE_MIN, NULL, 0),
              OUT_OF_RANGE);
    check_ok(kelp_builder_create(b.runtime, "null", &builder));
    check_ok(kelp_builder_create_config(builder, &other_config));
    PARAMETER(kelp_builder_build(b.builder, b.network, other_config, &plan), INVALID_ARGUMENT);
    BUILDER(kelp_builder_build(builder, b.network, other_config, &plan), INVALID_ARGUMENT);
    check_ok(kelp_builder_config_add_profile(b.config, &profile));
    check_ok(
        kelp_builder_config_set_profile_shape(b.config, profile, "z", KELP_PROFILE_MIN, 0, NULL));
    BUILDER(kelp_builder_build(b.builder, b.network, b.config, &plan), NOT_FOUND);
    kelp_builder_config_release(other_config);
    check_ok(kelp_builder_create_config(b.builder, &other_config));
    check_ok(kelp_builder_build(b.builder, b.network, other_config, &plan));
    BUILDER(kelp_blob_save(plan, "/no/such/directory/x.plan"), NOT_FOUND);
    kelp_blob_release(plan);
    kelp_builder_config_release(other_config);
    kelp_builder_release(builder);
    bench_close(&b);
}

static void networks_and_layers(void **state) {
    bench b, other;
    kelp_net_tensor *x = NULL, *y = NULL;
    kelp_layer *layer = NULL;
    kelp_loop *loop = NULL;
    kelp_conditional *conditional = NULL;
    kelp_network *parsed = NULL;
    kelp_blob *blob = NULL;
    (void)state;
    bench_open(&b);
    bench_open(&other);
    NETWORK(kelp_builder_build(b.builder, b.network, b.config, &blob), FAILED_PRECONDITION);
    NETWORK(kelp_network_to_onnx(b.network, &blob), FAILED_PRECONDITION);
    NETWORK(kelp_network_set_name(b.network, ""), INVALID_ARGUMENT);
    NETWORK(kelp_network_add_input(b.network, "x", KELP_F32, dims(-3), &x), INVALID_ARGUMENT);
    check_ok(kelp_network_add_input(b.network, "x", KELP_F32, dims(2, -1, 2), &x));
    check_ok(kelp_network_add_input(other.network, "y", KELP_F32, dims(2, -1, 2), &y));
    NETWORK(kelp_network_add_input(b.network, "x", KELP_F32, dims(1, 2), &y), ALREADY_EXISTS);
    NETWORK(kelp_network_add_identity(b.network, NULL, &layer), INVALID_ARGUMENT);
    NETWORK(kelp_network_add_loop(b.network, NULL), INVALID_ARGUMENT);
    NETWORK(kelp_network_add_softmax(b.network, x, 1u << 9, &layer), INVALID_ARGUMENT);
    check_ok(kelp_network_add_identity(b.network, x, &layer));
    NETWORK(kelp_layer_set_name(layer, NULL), INVALID_ARGUMENT);
    NETWORK(kelp_net_tensor_set_name(out_of(layer), "x"), ALREADY_EXISTS);
    NETWORK(kelp_network_mark_output(b.network, NULL), INVALID_ARGUMENT);
    NETWORK(kelp_network_unmark_output(b.network, x), NOT_FOUND);
    NETWORK(kelp_network_mark_refittable(b.network, ""), INVALID_ARGUMENT);
    NETWORK(kelp_network_add_conditional(b.network, x, &conditional), INVALID_ARGUMENT);
    check_ok(kelp_network_add_loop(b.network, &loop));
    NETWORK(kelp_loop_set_trip_count(loop, x), INVALID_ARGUMENT);
    NETWORK(kelp_loop_set_condition(loop, NULL), INVALID_ARGUMENT);
    NETWORK(kelp_loop_add_iterator(loop, x, 5, false, &layer), INVALID_ARGUMENT);
    NETWORK(kelp_builder_parse_file(b.builder, "/no/such.onnx", &parsed), NOT_FOUND);
    NETWORK(kelp_builder_parse_bytes(b.builder, "no model", 8, NULL, NULL, NULL, &parsed),
            INVALID_ARGUMENT);
    bench_close(&other);
    bench_close(&b);
}

/* ---- runtimes and engines ---- */
static void runtimes_and_loading(void **state) {
    const kelp_runtime_options options = {.struct_size = sizeof options, .threads = -1};
    bench b;
    kelp_runtime *runtime = NULL;
    kelp_engine *engine = NULL;
    kelp_graph *graph = NULL;
    kelp_blob *model = NULL;
    kelp_engine_options wrong = {.struct_size = sizeof wrong, .precision = (kelp_precision)9};
    const kelp_engine_options unknown = {.struct_size = sizeof unknown, .providers = "nobody"};
    (void)state;
    RUNTIME(kelp_runtime_create(&options, &runtime), INVALID_ARGUMENT);
    open_engine(&b);
    RUNTIME(kelp_engine_load(b.runtime, "no plan", 7, NULL, NULL, NULL, &engine), INVALID_ARGUMENT);
    RUNTIME(kelp_engine_load(b.runtime, "KELPPLAN", 8, NULL, NULL, NULL, &engine),
            INVALID_ARGUMENT);
    RUNTIME(kelp_engine_load_file(b.runtime, "/no/such.plan", &engine), NOT_FOUND);
    check_ok(kelp_network_to_onnx(b.network, &model));
    check_ok(kelp_graph_load_bytes(kelp_runtime_allocator(b.runtime), kelp_blob_data(model),
                                   kelp_blob_size(model), "model", NULL, NULL, NULL, NULL, &graph));
    RUNTIME(kelp_engine_create(b.runtime, graph, &wrong, &engine), INVALID_ARGUMENT);
    RUNTIME(kelp_engine_create(b.runtime, graph, &unknown, &engine), NOT_FOUND);
    kelp_graph_release(graph);
    kelp_blob_release(model);
    bench_close(&b);
}

static void engines(void **state) {
    static const float w[2] = {3, 4};
    const kelp_weights unknown = {KELP_F32, w, 2, "v"}, large = {KELP_F32, w, 3, "w"};
    bench b;
    size_t bytes = 0;
    (void)state;
    open_engine(&b);
    PARAMETER(kelp_engine_workspace_bytes(b.engine, 9, &bytes), OUT_OF_RANGE);
    ENGINE(kelp_engine_refit(b.engine, &unknown, 1), NOT_FOUND);
    ENGINE(kelp_engine_refit(b.engine, &large, 1), INVALID_ARGUMENT);
    ENGINE(kelp_engine_set_runtime_cache(b.engine, "", 0), UNIMPLEMENTED);
    ENGINE(kelp_engine_write_runtime_cache(b.engine, NULL, NULL), UNIMPLEMENTED);
    ENGINE(kelp_engine_streamable_weights(b.engine, &bytes), UNIMPLEMENTED);
    ENGINE(kelp_engine_set_weight_budget(b.engine, 0), UNIMPLEMENTED);
    bench_close(&b);
}

/* ---- contexts ---- */
static void bindings_of_contexts(void **state) {
    _Alignas(64) static char workspace[128];
    float x[16] = {0};
    kelp_tensor tensor;
    bench b;
    (void)state;
    open_engine(&b);
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 2, dims(2, 2, 2).d, x));
    PARAMETER(kelp_context_set_input(b.context, 9, &tensor), INVALID_ARGUMENT);
    check_ok(kelp_tensor_init(&tensor, KELP_I32, 2, dims(2, 2, 2).d, x));
    PARAMETER(kelp_context_set_input(b.context, 0, &tensor), INVALID_ARGUMENT);
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 1, dims(1, 2).d, x));
    PARAMETER(kelp_context_set_input(b.context, 0, &tensor), INVALID_ARGUMENT);
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 2, dims(2, 5, 2).d, x)); /* outside the profile */
    PARAMETER(kelp_context_set_input(b.context, 0, &tensor), INVALID_ARGUMENT);
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 2, dims(2, 2, 2).d, NULL));
    PARAMETER(kelp_context_set_input(b.context, 0, &tensor), INVALID_ARGUMENT);
    PARAMETER(kelp_context_set_output(b.context, 9, x, sizeof x), INVALID_ARGUMENT);
    PARAMETER(kelp_context_set_output_allocator(b.context, 9, NULL, NULL), INVALID_ARGUMENT);
    PARAMETER(kelp_context_set_output_device(b.context, 9, (DLDevice){kDLCPU, 0}),
              INVALID_ARGUMENT);
    PARAMETER(kelp_context_set_output_device(b.context, 0, (DLDevice){kDLCUDA, 0}),
              INVALID_ARGUMENT);
    PARAMETER(kelp_context_set_workspace(b.context, workspace + 1, 64), INVALID_ARGUMENT);
    PARAMETER(kelp_context_set_profile(b.context, 9), OUT_OF_RANGE);
    bench_close(&b);
}

static void runs_of_contexts(void **state) {
    float x[8] = {0}, y[8];
    bench b;
    kelp_stream *stream = NULL, *wrapped = NULL;
    kelp_capture *recording = NULL;
    (void)state;
    open_engine(&b);
    check_ok(kelp_stream_create(b.runtime, &stream));
    check_ok(kelp_stream_wrap(b.runtime, x, &wrapped));
    ENGINE(kelp_context_prepare(b.context), FAILED_PRECONDITION);
    ENGINE(kelp_context_invoke(b.context), FAILED_PRECONDITION);
    ENGINE(kelp_context_capture(b.context, &recording), FAILED_PRECONDITION);
    check_ok(kelp_context_enqueue(b.context, stream, NULL));
    ENGINE(kelp_stream_synchronize(stream), FAILED_PRECONDITION);
    ENGINE(kelp_context_enqueue(b.context, wrapped, NULL), UNIMPLEMENTED);
    RUNTIME(kelp_stream_synchronize(wrapped), UNIMPLEMENTED);
    bind(b.context, 0, KELP_F32, dims(2, 4, 2), x);
    check_ok(kelp_context_set_output(b.context, 0, y, 4));
    ENGINE(kelp_context_invoke(b.context), OUT_OF_RANGE);
    check_ok(kelp_context_set_output(b.context, 0, y, sizeof y));
    check_ok(kelp_context_capture(b.context, &recording));
    check_ok(kelp_capture_replay(recording));
    check_ok(kelp_context_set_output(b.context, 0, y, sizeof y));
    ENGINE(kelp_capture_replay(recording), FAILED_PRECONDITION);
    kelp_context_destroy(b.context);
    b.context = NULL;
    ENGINE(kelp_capture_replay(recording), FAILED_PRECONDITION);
    kelp_capture_destroy(recording);
    kelp_stream_destroy(wrapped);
    kelp_stream_destroy(stream);
    bench_close(&b);
}

static void a_stripped_engine_has_no_contexts(void **state) {
    bench b;
    kelp_context *context = NULL;
    kelp_engine *engine = NULL;
    kelp_blob *plan = NULL;
    (void)state;
    open_engine(&b);
    check_ok(kelp_builder_config_set_flags(b.config, KELP_BUILD_STRIP_WEIGHTS));
    check_ok(kelp_builder_build(b.builder, b.network, b.config, &plan));
    check_ok(kelp_engine_load(b.runtime, kelp_blob_data(plan), kelp_blob_size(plan), "plan",
                              free_plan, plan, &engine));
    ENGINE(kelp_context_create(engine, &context), FAILED_PRECONDITION);
    kelp_engine_release(engine);
    bench_close(&b);
}

/* ---- devices ---- */
static void the_driver(void **state) {
    kelp_cuda *cuda = NULL;
    (void)state;
    setenv("KELP_CUDA_LIBRARY", "/no/such/libcuda.so", 1);
    expect_domain(kelp_cuda_open(kelp_allocator_system(), &cuda), KELP_DOMAIN_DEVICE,
                  KELP_UNAVAILABLE, __LINE__);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builders_and_configurations),
        cmocka_unit_test(networks_and_layers),
        cmocka_unit_test(runtimes_and_loading),
        cmocka_unit_test(engines),
        cmocka_unit_test(bindings_of_contexts),
        cmocka_unit_test(runs_of_contexts),
        cmocka_unit_test(a_stripped_engine_has_no_contexts),
        cmocka_unit_test(the_driver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
