/* SPDX-License-Identifier: Apache-2.0 */
/* Several servers in one process, on threads of their own: each has a repository that all of them
 * share, and one of its own. */
#include "server/support.h"

enum { SERVERS = 8, ROUNDS = 4 };

static repo shared;

static void infer(TRITONSERVER_Server *server, const char *model, float value) {
    float a[16], b[16];
    size_t size_bytes = 0;
    call c;
    call_init(&c, server, model, -1);
    call_addsub(&c, a, b, value);
    call_run(&c);
    const float *sum = call_output(&c, "OUTPUT0", &size_bytes);
    assert_int_equal(size_bytes, 16 * sizeof *sum);
    for (int i = 0; i < 16; i++)
        assert_true(sum[i] == a[i] + b[i]);
    call_deinit(&c);
}

static void is_not_served(TRITONSERVER_Server *server, const char *model) {
    TRITONSERVER_InferenceRequest *request = NULL;
    TRITONSERVER_Error *error = TRITONSERVER_InferenceRequestNew(&request, server, model, -1);
    assert_non_null(error);
    TRITONSERVER_ErrorDelete(error);
}

/* Loads, executes and unloads the models of both repositories. */
static void *serve(void *number) {
    int index = *(int *)number;
    repo own;
    char name[32], other[32];
    repo_make(&own);
    snprintf(name, sizeof name, "own%d", index);
    snprintf(other, sizeof other, "own%d", (index + 1) % SERVERS);
    repo_model(&own, name, addsub_config);
    for (int round = 0; round < ROUNDS; round++) {
        TRITONSERVER_Server *server =
            server_start(&shared, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                                  .second_repository = own.path});
        ok(TRITONSERVER_ServerLoadModel(server, "common"));
        ok(TRITONSERVER_ServerLoadModel(server, name));
        infer(server, "common", (float)index);
        infer(server, name, (float)round);
        is_not_served(server, other);
        if (round % 2 == 0) {
            ok(TRITONSERVER_ServerUnloadModel(server, "common"));
            is_not_served(server, "common");
            infer(server, name, 1);
        }
        server_end(server);
    }
    repo_remove(&own);
    return NULL;
}

static void test_servers_are_independent(void **state) {
    pthread_t threads[SERVERS];
    int numbers[SERVERS];
    (void)state;
    repo_make(&shared);
    repo_model(&shared, "common", addsub_config);
    for (int i = 0; i < SERVERS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, serve, &numbers[i]), 0);
    }
    for (int i = 0; i < SERVERS; i++)
        pthread_join(threads[i], NULL);
    repo_remove(&shared);
}

/* A server that is deleted does not end the models and metrics of another one. */
static void test_a_deleted_server_leaves_the_others(void **state) {
    static const server_setup setup = {.mode = TRITONSERVER_MODEL_CONTROL_NONE};
    (void)state;
    repo_make(&shared);
    repo_model(&shared, "common", addsub_config);
    TRITONSERVER_Server *first = server_start(&shared, &setup);
    TRITONSERVER_Server *second = server_start(&shared, &setup);
    infer(first, "common", 1);
    server_end(first);
    infer(second, "common", 2);
    char *metrics = metrics_of(second);
    contains(metrics, "nv_inference_count{model=\"common\",version=\"1\"} 1\n");
    free(metrics);
    server_end(second);
    repo_remove(&shared);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_servers_are_independent),
        cmocka_unit_test(test_a_deleted_server_leaves_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
