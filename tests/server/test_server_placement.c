/* SPDX-License-Identifier: Apache-2.0 */
/* Where instances run: CPUs of host policies, and GPU groups on a server without a GPU. */
#include "server/support.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define MODEL                                                             \
    "backend: \"identity\"\n"                                             \
    "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n" \
    "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"

static char first_cpu[16];

static int set_up_policy(void **state, const char *setting, const char *value) {
    return world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                             .host_policy = {"near", setting, value}});
}

static int set_up_cpu(void **state) {
    cpu_set_t usable;
    int cpu = 0;
    assert_int_equal(sched_getaffinity(0, sizeof usable, &usable), 0);
    while (!CPU_ISSET(cpu, &usable))
        cpu++;
    snprintf(first_cpu, sizeof first_cpu, "%d", cpu);
    return set_up_policy(state, "cpu-cores", first_cpu);
}

static int set_up_bad_list(void **state) {
    return set_up_policy(state, "cpu-cores", "0-3,,8");
}

static int set_up_bad_order(void **state) {
    return set_up_policy(state, "cpu-cores", "3-0");
}

static int set_up_no_such_cpu(void **state) {
    return set_up_policy(state, "cpu-cores", "1023");
}

static int set_up_no_such_node(void **state) {
    return set_up_policy(state, "numa-node", "4096");
}

static int set_up_fallback(void **state) {
    return world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                             .backend_setting = {"", "gpu-fallback", "cpu"}});
}

static int set_up_plain(void **state) {
    return world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT});
}

/* ---- host policies ---- */

typedef struct seen {
    call c;
    cpu_set_t cpus; /* of the thread that calls the response callback */
} seen;

static void note(TRITONSERVER_InferenceResponse *response, const uint32_t flags, void *userp) {
    seen *s = userp;
    if (response)
        ok(TRITONSERVER_InferenceResponseDelete(response));
    pthread_mutex_lock(&s->c.lock);
    sched_getaffinity(0, sizeof s->cpus, &s->cpus);
    s->c.finals += flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL;
    pthread_cond_broadcast(&s->c.changed);
    pthread_mutex_unlock(&s->c.lock);
}

static cpu_set_t cpus_of(world *w, const char *model) {
    static const int64_t shape[] = {2};
    static const int32_t data[] = {1, 2};
    seen s;
    call_init(&s.c, w->server, model, -1);
    ok(TRITONSERVER_InferenceRequestSetResponseCallback(s.c.request, s.c.allocator, &s.c, note,
                                                        &s));
    call_input(&s.c, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 1, data, sizeof data);
    call_start(&s.c);
    call_wait(&s.c);
    call_deinit(&s.c);
    return s.cpus;
}

static void test_instances_run_on_the_cpus_of_their_policy(void **state) {
    world *w = *state;
    cpu_set_t before, after, cpus;
    sched_getaffinity(0, sizeof before, &before);
    world_load(w, "near", MODEL "instance_group [ { kind: KIND_CPU host_policy: \"near\" } ]\n");
    world_load(w, "free",
               MODEL "instance_group [ { kind: KIND_CPU } ]\n"
                     "parameters { key: \"kelp_execute_on\" value { string_value: "
                     "\"instance\" } }\n");
    sched_getaffinity(0, sizeof after, &after);
    assert_true(CPU_EQUAL(&before, &after));
    cpus = cpus_of(w, "near");
    assert_int_equal(CPU_COUNT(&cpus), 1);
    assert_true(CPU_ISSET(atoi(first_cpu), &cpus));
    cpus = cpus_of(w, "free");
    assert_true(CPU_EQUAL(&before, &cpus));
}

static void rejects(world *w, const char *message) {
    repo_model(&w->r, "near",
               MODEL "instance_group [ { kind: KIND_CPU host_policy: \"near\" } ]\n");
    fails(TRITONSERVER_ServerLoadModel(w->server, "near"), TRITONSERVER_ERROR_INVALID_ARG, message);
    world_load(w, "free", MODEL "instance_group [ { kind: KIND_CPU } ]\n");
}

static void test_invalid_list_of_cpus_is_an_error(void **state) {
    rejects(*state, "host policy 'near': setting 'cpu-cores': expected a list of CPUs such as "
                    "0-3,8, found '0-3,,8'");
}

static void test_descending_list_of_cpus_is_an_error(void **state) {
    rejects(*state, "found '3-0'");
}

static void test_unusable_cpus_are_an_error(void **state) {
    rejects(*state, "cannot run on the CPUs of the host policy");
}

static void test_unknown_node_is_an_error(void **state) {
    rejects(*state, "host policy 'near': setting 'numa-node': expected the number of a node of "
                    "this machine, found '4096'");
}

/* ---- GPU groups ---- */

#define GPU_MODEL MODEL "instance_group [ { kind: KIND_GPU gpus: [ 0, 1 ] count: 2 } ]\n"

static void test_gpu_group_is_an_error_by_default(void **state) {
    world *w = *state;
    repo_model(&w->r, "gpu", GPU_MODEL);
    fails(TRITONSERVER_ServerLoadModel(w->server, "gpu"), TRITONSERVER_ERROR_INTERNAL,
          "kind KIND_GPU, but this server has no GPU");
}

static void test_gpu_group_falls_back_to_the_cpu(void **state) {
    world *w = *state;
    TRITONSERVER_Message *message = NULL;
    world_load(w, "gpu", GPU_MODEL);
    (void)cpus_of(w, "gpu"); /* it executes */
    ok(TRITONSERVER_ServerModelConfig(w->server, "gpu", -1, 1, &message));
    char *text = message_text(message);
    contains(text, "\"kind\":\"KIND_CPU\",\"count\":2");
    contains(text, "\"gpus\":[]");
    free(text);
}

static void test_fallback_must_be_known(void **state) {
    (void)state;
    repo r;
    TRITONSERVER_Server *server = NULL;
    repo_make(&r);
    fails(server_try(&r,
                     &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                     .backend_setting = {"", "gpu-fallback", "moon"}},
                     &server),
          TRITONSERVER_ERROR_INVALID_ARG,
          "setting 'gpu-fallback': expected error or cpu, found 'moon'");
    repo_remove(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_instances_run_on_the_cpus_of_their_policy, set_up_cpu,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_invalid_list_of_cpus_is_an_error, set_up_bad_list,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_descending_list_of_cpus_is_an_error, set_up_bad_order,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_unusable_cpus_are_an_error, set_up_no_such_cpu,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_unknown_node_is_an_error, set_up_no_such_node,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_gpu_group_is_an_error_by_default, set_up_plain,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_gpu_group_falls_back_to_the_cpu, set_up_fallback,
                                        world_close),
        cmocka_unit_test(test_fallback_must_be_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
