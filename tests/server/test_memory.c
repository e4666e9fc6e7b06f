/* SPDX-License-Identifier: Apache-2.0 */
/* The server's memory comes from its allocator and returns to it, also if any allocation fails. */
#include "server/core/log.h"
#include "server/server.h"

#include "support/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static kelp_status *inspect(kelp_server *server) {
    kelp_message *message = NULL;
    kelp_request *request = NULL;
    kelp_input *input = NULL;
    static const int64_t shape[] = {1, 1, 8, 8};
    static float pixels[8 * 8];
    const kelp_buffer_attributes attributes = {.size_bytes = sizeof pixels};
    KELP_TRY(kelp_server_metrics(server, KELP_FORMAT_TEXT, &message));
    kelp_message_destroy(message);
    KELP_TRY(kelp_server_describe_model(server, "digits", -1, &message));
    kelp_message_destroy(message);
    KELP_TRY(kelp_server_model_stats(server, "", -1, &message));
    kelp_message_destroy(message);
    KELP_TRY(kelp_server_index(server, false, &message));
    kelp_message_destroy(message);
    KELP_TRY(kelp_server_create_request(server, "digits", -1, &request));
    kelp_status *status = kelp_request_set_id(request, "1");
    if (!status)
        status = kelp_request_add_input(request, "image", TRITONSERVER_TYPE_FP32, shape, 4, &input);
    if (!status)
        status = kelp_request_append(request, input, NULL, pixels, &attributes);
    if (!status)
        status = kelp_request_add_output(request, "digit");
    kelp_status *deleted = kelp_request_delete(request);
    return status ? status : deleted;
}

/* Starts a server with a model, uses it and stops it. */
static kelp_status *run(kelp_allocator allocator) {
    kelp_server_options *options = NULL;
    kelp_server *server = NULL;
    assert_null(kelp_server_options_create(kelp_allocator_system(), &options));
    options->strict_model_config = false;
    options->control_mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT;
    assert_null(kelp_string_list_add(&options->repositories, KELP_SOURCE_DIR "/examples/models"));
    assert_null(kelp_string_list_add(&options->startup_models, "digits"));
    assert_null(kelp_settings_set(&options->caches, "local", "config", "{\"size\": 65536}"));
    /* Not the default directory, where this machine may have a cache "local". */
    kelp_free_string(kelp_allocator_system(), options->cache_directory);
    options->cache_directory = NULL;
    assert_null(kelp_strdup(kelp_allocator_system(), "/nowhere", &options->cache_directory));
    assert_null(kelp_settings_set(&options->metrics_config, "", "summary_latencies", "true"));
    kelp_status *status = kelp_server_create(allocator, options, &server);
    if (!status) {
        status = inspect(server);
        kelp_status *stopped = kelp_server_stop(server);
        kelp_server_release(server);
        assert_null(stopped);
    }
    kelp_server_options_destroy(options);
    return status;
}

static void test_all_memory_is_freed(void **state) {
    test_failing memory;
    (void)state;
    test_failing_init(&memory, 0);
    kelp_status *status = run(test_failing_allocator(&memory));
    if (status)
        fail_msg("%s", kelp_status_message(status));
    assert_true(memory.calls > 50);
    test_failing_check(&memory);
    test_failing_deinit(&memory);
}

static void test_every_allocation_may_fail(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        test_failing_init(&memory, n);
        kelp_status *status = run(test_failing_allocator(&memory));
        test_failing_check(&memory);
        bool failed = memory.failed;
        test_failing_deinit(&memory);
        kelp_status_free(status); /* some failures are only logged */
        if (!failed)
            break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_memory_is_freed),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    kelp_server_log_enable(KELP_LOG_ERROR, false);
    kelp_server_log_enable(KELP_LOG_INFO, false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
