/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a server: models are finalized in parallel, and requests end in time. */
#include "server/support.h"

#include <dlfcn.h>
#include <time.h>

#define MODEL(backend)                                                    \
    "backend: \"" backend "\"\n"                                          \
    "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n" \
    "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"

static void test_models_are_finalized_in_parallel(void **state) {
    static const char library[] = KELP_TEST_BACKENDS "/meeting/libtriton_meeting.so";
    world *w = *state;
    world_load(w, "a", MODEL("meeting"));
    world_load(w, "b", MODEL("meeting"));
    world_load(w, "c", MODEL("meeting"));
    void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(handle);
    int (*most)(void) = (int (*)(void))dlsym(handle, "meeting_most");
    assert_non_null(most);
    ok(TRITONSERVER_ServerStop(w->server));
    assert_int_equal(most(), 3);
    dlclose(handle);
}

static int set_up_meeting(void **state) {
    return world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                             .exit_timeout_s = 90,
                                             .backends = KELP_TEST_BACKENDS});
}

static int set_up_short(void **state) {
    return world_open(
        state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT, .exit_timeout_s = 1});
}

/* The stop fails after the timeout while a request executes, and succeeds after its end. */
static void test_stop_waits_for_the_exit_timeout(void **state) {
    static const int64_t shape[] = {1};
    static const int32_t data[] = {1};
    struct timespec began, ended;
    world *w = *state;
    call c;
    world_load(w, "m", MODEL("identity"));
    call_init(&c, w->server, "m", -1);
    call_input(&c, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 1, data, sizeof data);
    ok(TRITONSERVER_InferenceRequestSetIntParameter(c.request, "delay_ms", 3600000));
    call_start(&c);
    clock_gettime(CLOCK_MONOTONIC, &began);
    fails(TRITONSERVER_ServerStop(w->server), TRITONSERVER_ERROR_INTERNAL, "Exit timeout expired");
    clock_gettime(CLOCK_MONOTONIC, &ended);
    assert_in_range(ended.tv_sec - began.tv_sec, 0, 30);
    ok(TRITONSERVER_InferenceRequestCancel(c.request));
    call_wait(&c);
    call_deinit(&c);
    ok(TRITONSERVER_ServerSetExitTimeout(w->server, 30));
    ok(TRITONSERVER_ServerStop(w->server));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_models_are_finalized_in_parallel, set_up_meeting,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_stop_waits_for_the_exit_timeout, set_up_short,
                                        world_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
