/* SPDX-License-Identifier: Apache-2.0 */
/* An engine provider of a plug-in library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <kelp/engine_provider.h>

#include "support/check_status.h"

static const char *library(void) {
    return getenv("KELP_TEST_LIBRARY");
}

static void loading_a_plugin_registers_its_engine_provider(void **state) {
    (void)state;
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_runtime *runtime = NULL;
    check_ok(kelp_runtime_create(&options, &runtime));
    size_t built_in = kelp_engine_provider_count(runtime);
    check_ok(kelp_runtime_load_plugin(runtime, library()));
    assert_int_equal(kelp_engine_provider_count(runtime), built_in + 1);
    assert_string_equal(kelp_engine_provider_at(runtime, built_in)->name, "copy");
    expect_failure(kelp_runtime_load_plugin(runtime, library()), KELP_ALREADY_EXISTS, "'copy'");
    kelp_runtime_release(runtime);
}

static void engines_of_a_plugin_can_be_built_loaded_and_run(void **state) {
    (void)state;
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_runtime *runtime = NULL;
    kelp_builder *builder = NULL;
    kelp_network *network = NULL;
    kelp_builder_config *config = NULL;
    kelp_blob *image = NULL;
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    kelp_net_tensor *x = NULL;
    kelp_tensor tensor;
    const int64_t three = 3;
    float in[3] = {1, 2, 3}, out[3] = {0};
    check_ok(kelp_runtime_create(&options, &runtime));
    check_ok(kelp_runtime_load_plugin(runtime, library()));
    check_ok(kelp_builder_create(runtime, "copy", &builder));
    check_ok(kelp_builder_create_network(builder, &network));
    check_ok(kelp_builder_create_config(builder, &config));
    check_ok(kelp_network_add_input(network, "x", KELP_F32, (kelp_shape){.rank = 1, .d = {3}}, &x));
    check_ok(kelp_network_mark_output(network, x));
    check_ok(kelp_builder_build(builder, network, config, &image));
    assert_true(kelp_plan_is_known(runtime, kelp_blob_data(image), kelp_blob_size(image)));
    check_ok(kelp_engine_load(runtime, kelp_blob_data(image), kelp_blob_size(image), "image", NULL,
                              NULL, &engine));
    assert_string_equal(kelp_engine_provider_name(engine), "copy");
    check_ok(kelp_context_create(engine, &context));
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 1, &three, in));
    check_ok(kelp_context_set_output(context, 0, out, sizeof out));
    expect_failure(kelp_context_invoke(context), KELP_FAILED_PRECONDITION, "'x'");
    check_ok(kelp_context_set_input(context, 0, &tensor));
    check_ok(kelp_context_invoke(context));
    assert_memory_equal(out, in, sizeof in);
    expect_failure(kelp_context_prepare(context), KELP_UNIMPLEMENTED, "provider 'copy'");
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    kelp_blob_release(image);
    kelp_builder_config_release(config);
    kelp_network_release(network);
    kelp_builder_release(builder);
    kelp_runtime_release(runtime);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loading_a_plugin_registers_its_engine_provider),
        cmocka_unit_test(engines_of_a_plugin_can_be_built_loaded_and_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
