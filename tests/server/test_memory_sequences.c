/* SPDX-License-Identifier: Apache-2.0 */
/* A server with sequences survives the failure of any allocation: each request gets one final
 * response and is released, and all memory is freed. */
#include "server/core/log.h"
#include "server/server.h"

#include "support/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Null requests fill the slot of the other sequence. */
static const char config[] =
    "backend: \"kelp\" max_batch_size: 4 instance_group { count: 1 }\n"
    "input [ { name: \"x\" data_type: TYPE_FP32 dims: [ 4 ] } ]\n"
    "output [ { name: \"y\" data_type: TYPE_FP32 dims: [ 4 ] } ]\n"
    "sequence_batching { direct { } max_sequence_idle_microseconds: 60000000\n"
    "control_input { name: \"start\" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, "
    "1 "
    "] } }\n"
    "state { input_name: \"sum\" output_name: \"next\" data_type: TYPE_FP32 dims: [ 4 ] } }\n";

/* ---- the repository ---- */

static char directory[64];
static const char *const parts[] = {"/m/1/model.onnx", "/m/1", "/m/config.pbtxt", "/m", ""};

static void path_of(size_t part, char *out, size_t size) {
    snprintf(out, size, "%s%s", directory, parts[part]);
}

static int set_up(void **state) {
    char path[256];
    (void)state;
    snprintf(directory, sizeof directory, "/tmp/kelp-test-repo-XXXXXX");
    assert_non_null(mkdtemp(directory));
    path_of(3, path, sizeof path);
    mkdir(path, 0755);
    path_of(1, path, sizeof path);
    mkdir(path, 0755);
    path_of(0, path, sizeof path);
    assert_int_equal(symlink(KELP_TEST_DATA "/models/running_sum.onnx", path), 0);
    path_of(2, path, sizeof path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(config, file);
    return fclose(file);
}

static int tear_down(void **state) {
    char path[256];
    (void)state;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        path_of(i, path, sizeof path);
        remove(path);
    }
    return 0;
}

/* ---- one request ---- */

typedef struct client {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned finals, releases, errors;
} client;

static TRITONSERVER_Error *allocate(TRITONSERVER_ResponseAllocator *allocator, const char *name,
                                    size_t size_bytes, TRITONSERVER_MemoryType type, int64_t id,
                                    void *userp, void **buffer, void **buffer_userp,
                                    TRITONSERVER_MemoryType *actual_type, int64_t *actual_id) {
    (void)allocator;
    (void)name;
    (void)type;
    (void)id;
    (void)userp;
    *buffer = malloc(size_bytes);
    *buffer_userp = NULL;
    *actual_type = TRITONSERVER_MEMORY_CPU;
    *actual_id = 0;
    return NULL;
}

static TRITONSERVER_Error *give_back(TRITONSERVER_ResponseAllocator *allocator, void *buffer,
                                     void *userp, size_t size_bytes, TRITONSERVER_MemoryType type,
                                     int64_t id) {
    (void)allocator;
    (void)userp;
    (void)size_bytes;
    (void)type;
    (void)id;
    free(buffer);
    return NULL;
}

static void on_release(TRITONSERVER_InferenceRequest *request, const uint32_t flags, void *userp) {
    client *c = userp;
    (void)request;
    (void)flags;
    pthread_mutex_lock(&c->lock);
    c->releases++;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static void on_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
                        void *userp) {
    client *c = userp;
    const kelp_status *error = response != NULL ? ((kelp_response *)response)->error : NULL;
    bool fails = error != NULL;
    /* INTERNAL would be a defect of the model; without memory, the client may repeat the request.
     */
    if (fails && strstr(kelp_status_message(error), "without a response") != NULL)
        fail_msg("%s", kelp_status_message(error));
    if (response != NULL)
        kelp_response_delete((kelp_response *)response);
    pthread_mutex_lock(&c->lock);
    c->errors += fails;
    c->finals += (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static kelp_status *fill(kelp_request *request) {
    static const float x[4] = {1, 2, 3, 4};
    static const int64_t shape[] = {1, 4};
    const kelp_buffer_attributes attributes = {.size_bytes = sizeof x};
    kelp_input *input = NULL;
    KELP_TRY(kelp_request_set_id(request, "a request"));
    KELP_TRY(kelp_request_add_input(request, "x", TRITONSERVER_TYPE_FP32, shape, 2, &input));
    return kelp_request_append(request, input, NULL, x, &attributes);
}

/* Runs a request; *out_error is set if its response was an error. */
static kelp_status *infer(kelp_server *server, uint64_t id, uint32_t flags, bool *out_error) {
    static kelp_response_allocator allocator = {.alloc_fn = allocate, .release_fn = give_back};
    kelp_request *request = NULL;
    client c = {.finals = 0};
    KELP_TRY(kelp_server_create_request(server, "m", -1, &request));
    pthread_mutex_init(&c.lock, NULL);
    pthread_cond_init(&c.changed, NULL);
    request->allocator = &allocator;
    request->response_fn = on_response;
    request->response_userp = &c;
    request->release_fn = on_release;
    request->release_userp = &c;
    request->correlation_id = id;
    request->flags = flags;
    kelp_status *status = fill(request);
    if (status == NULL)
        status = kelp_request_submit(&server->host.base, request, NULL);
    if (status == NULL) {
        pthread_mutex_lock(&c.lock);
        while (c.finals == 0 || c.releases == 0)
            pthread_cond_wait(&c.changed, &c.lock);
        pthread_mutex_unlock(&c.lock);
        assert_int_equal(c.finals, 1);
        assert_int_equal(c.releases, 1);
        *out_error |= c.errors > 0;
    } else {
        assert_int_equal(c.finals + c.releases, 0);
    }
    kelp_status *deleted = kelp_request_delete(request);
    assert_null(deleted);
    pthread_cond_destroy(&c.changed);
    pthread_mutex_destroy(&c.lock);
    return status;
}

/* ---- the tests ---- */

/* Runs two sequences. */
static kelp_status *run_sequences(kelp_server *server, bool *out_error) {
    static const uint32_t flags[] = {TRITONSERVER_REQUEST_FLAG_SEQUENCE_START, 0,
                                     TRITONSERVER_REQUEST_FLAG_SEQUENCE_END};
    for (size_t i = 0; i < 3; i++)
        for (uint64_t id = 1; id <= 2; id++)
            KELP_TRY(infer(server, id, flags[i], out_error));
    return NULL;
}

/* Ends sequences that failed, so that the server does not wait for them. */
static void end_sequences(kelp_server *server) {
    static const uint32_t flags =
        TRITONSERVER_REQUEST_FLAG_SEQUENCE_START | TRITONSERVER_REQUEST_FLAG_SEQUENCE_END;
    bool error = false;
    for (uint64_t i = 0; i < 4; i++)
        kelp_status_free(infer(server, 1 + i % 2, flags, &error));
}

/* Starts a server, runs requests and stops it. */
static kelp_status *run(kelp_allocator allocator, bool *out_error) {
    kelp_server_options *options = NULL;
    kelp_server *server = NULL;
    assert_null(kelp_server_options_create(kelp_allocator_system(), &options));
    options->control_mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT;
    assert_null(kelp_string_list_add(&options->repositories, directory));
    assert_null(kelp_string_list_add(&options->startup_models, "m"));
    kelp_status *status = kelp_server_create(allocator, options, &server);
    if (status == NULL) {
        status = run_sequences(server, out_error);
        if (status != NULL || *out_error)
            end_sequences(server);
        kelp_status *stopped = kelp_server_stop(server);
        kelp_server_release(server);
        assert_null(stopped);
    }
    kelp_server_options_destroy(options);
    return status;
}

static void test_all_memory_is_freed(void **state) {
    test_failing memory;
    bool fails = false;
    (void)state;
    test_failing_init(&memory, 0);
    kelp_status *status = run(test_failing_allocator(&memory), &fails);
    if (status != NULL)
        fail_msg("%s", kelp_status_message(status));
    assert_false(fails);
    test_failing_check(&memory);
    test_failing_deinit(&memory);
}

static void test_every_allocation_may_fail(void **state) {
    unsigned error_responses = 0, rejections = 0;
    (void)state;
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        bool fails = false;
        test_failing_init(&memory, n);
        kelp_status *status = run(test_failing_allocator(&memory), &fails);
        test_failing_check(&memory);
        bool failed = memory.failed;
        test_failing_deinit(&memory);
        error_responses += fails;
        rejections += status != NULL;
        kelp_status_free(status); /* some failures are only logged */
        if (!failed)
            break;
    }
    assert_true(error_responses > 0);
    assert_true(rejections > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_memory_is_freed),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    kelp_server_log_enable(KELP_LOG_ERROR, false);
    kelp_server_log_enable(KELP_LOG_INFO, false);
    kelp_server_log_enable(KELP_LOG_WARNING, false);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
