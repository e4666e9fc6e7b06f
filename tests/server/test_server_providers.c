/* SPDX-License-Identifier: Apache-2.0 */
/* Models of a plug-in library's compute provider in the server: instances, drains, memory. */
#include "server/provider_plugin.h"
#include "server/support.h"

#include <kelp/dlpack.h>

#include <dlfcn.h>

static tally_counts *counted;

static int set_up(void **state) {
    void *library = dlopen(KELP_TEST_PROVIDER, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return -1;
    counted = dlsym(library, "tally_counted"); /* the library stays loaded */
    memset(counted, 0, sizeof *counted);
    return world_open(state,
                      &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                      .backend_setting = {"kelp", "plugin", KELP_TEST_PROVIDER}});
}

static const char one_instance[] =
    "backend: \"kelp\"\nparameters { key: \"provider\" value { string_value: \"tally\" } }\n"
    "input [ { name: \"x\" data_type: TYPE_FP32 dims: [ -1, 2 ] } ]\n"
    "output [ { name: \"y\" data_type: TYPE_FP32 dims: [ -1, 2 ] } ]\n"
    "instance_group [ { kind: KIND_CPU count: 1 } ]\n";

/* Creates a model that prefers a kind of memory. */
static void make(world *w, const char *name, const char *kind) {
    char path[64];
    repo_model(&w->r, name, one_instance);
    snprintf(path, sizeof path, "%s/1/model.onnx", name);
    repo_file(&w->r, path, kind);
}

static const float values[4] = {1, 2, 3, -4};
static const int64_t shape[2] = {2, 2};

/* Prepares a request whose input is in memory of a type. */
static void ask(call *c, world *w, const char *model, TRITONSERVER_MemoryType memory,
                TRITONSERVER_MemoryType provided) {
    call_init(c, w->server, model, -1);
    c->memory = provided;
    c->memory_id = provided == TRITONSERVER_MEMORY_GPU;
    ok(TRITONSERVER_InferenceRequestAddInput(c->request, "x", TRITONSERVER_TYPE_FP32, shape, 2));
    ok(TRITONSERVER_InferenceRequestAppendInputData(c->request, "x", values, sizeof values, memory,
                                                    memory == TRITONSERVER_MEMORY_GPU));
    call_run(c);
}

static void check_result(call *c) {
    size_t size_bytes = 0;
    const float *y = call_output(c, "y", &size_bytes);
    assert_int_equal(size_bytes, sizeof values);
    for (int i = 0; i < 4; i++)
        assert_true(y[i] == 2 * values[i]);
}

static void model_without_forks_has_one_instance(void **state) {
    world *w = *state;
    call c;
    make(w, "one", "host");
    ok(TRITONSERVER_ServerLoadModel(w->server, "one"));
    ask(&c, w, "one", TRITONSERVER_MEMORY_CPU, TRITONSERVER_MEMORY_CPU);
    check_result(&c);
    call_deinit(&c);
    assert_int_equal(counted->loads, 1);
    assert_int_equal(counted->inits, 1);

    char config[sizeof one_instance];
    memcpy(config, one_instance, sizeof config);
    *(strstr(config, "count: 1") + strlen("count: ")) = '2';
    make(w, "two", "host");
    repo_file(&w->r, "two/config.pbtxt", config);
    fails(TRITONSERVER_ServerLoadModel(w->server, "two"), TRITONSERVER_ERROR_UNSUPPORTED,
          "model 'two' can have one instance only, because provider 'tally' has no fork: set "
          "instance_group [ { count: 1 } ]");
    world_unload(w, "one");
    assert_int_equal(counted->destroys, 2);
    assert_int_equal(counted->undrained, 0);
}

static void models_are_drained_before_they_are_destroyed(void **state) {
    world *w = *state;
    make(w, "unloaded", "host");
    make(w, "stopped", "host");
    ok(TRITONSERVER_ServerLoadModel(w->server, "unloaded"));
    ok(TRITONSERVER_ServerLoadModel(w->server, "stopped"));
    assert_int_equal(counted->drains, 0);
    world_unload(w, "unloaded");
    for (int i = 0; i < 1000 && counted->destroys == 0; i++)
        wait_for_index(w->server, "\"stopped\"");
    assert_int_equal(counted->drains, 1);
    assert_int_equal(counted->destroys, 1);
    ok(TRITONSERVER_ServerStop(w->server));
    server_end(w->server);
    w->server = NULL;
    assert_int_equal(counted->drains, 2);
    assert_int_equal(counted->destroys, 2);
    assert_int_equal(counted->undrained, 0);
}

static void buffers_are_requested_in_preferred_memory(void **state) {
    static const struct {
        const char *kind;
        TRITONSERVER_MemoryType input, requested, provided;
        int input_device, output_device;
    } rows[] = {
        {"host", TRITONSERVER_MEMORY_CPU, TRITONSERVER_MEMORY_CPU, TRITONSERVER_MEMORY_CPU, kDLCPU,
         kDLCPU},
        {"pinned", TRITONSERVER_MEMORY_CPU_PINNED, TRITONSERVER_MEMORY_CPU_PINNED,
         TRITONSERVER_MEMORY_CPU_PINNED, kDLCUDAHost, kDLCUDAHost},
        {"pinned", TRITONSERVER_MEMORY_CPU, TRITONSERVER_MEMORY_CPU_PINNED, TRITONSERVER_MEMORY_CPU,
         kDLCPU, kDLCPU}, /* the server has none */
        {"device", TRITONSERVER_MEMORY_GPU, TRITONSERVER_MEMORY_GPU, TRITONSERVER_MEMORY_GPU,
         kDLCUDA, kDLCUDA},
        {"device", TRITONSERVER_MEMORY_CPU, TRITONSERVER_MEMORY_GPU, TRITONSERVER_MEMORY_CPU,
         kDLCPU, kDLCPU},
    };
    world *w = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[16];
        call c;
        snprintf(name, sizeof name, "model%zu", i);
        make(w, name, rows[i].kind);
        ok(TRITONSERVER_ServerLoadModel(w->server, name));
        ask(&c, w, name, rows[i].input, rows[i].provided);
        check_result(&c);
        assert_int_equal(c.requested, rows[i].requested);
        assert_int_equal(counted->input_device, rows[i].input_device);
        assert_int_equal(counted->output_device, rows[i].output_device);
        call_deinit(&c);
    }
}

static void memory_that_a_model_cannot_read_is_rejected(void **state) {
    world *w = *state;
    call c;
    make(w, "host", "host");
    make(w, "pinned", "pinned");
    ok(TRITONSERVER_ServerLoadModel(w->server, "host"));
    ok(TRITONSERVER_ServerLoadModel(w->server, "pinned"));
    ask(&c, w, "host", TRITONSERVER_MEMORY_GPU, TRITONSERVER_MEMORY_CPU);
    call_fails(&c, TRITONSERVER_ERROR_UNSUPPORTED, "input 'x' is in the memory of GPU");
    call_deinit(&c);
    ask(&c, w, "pinned", TRITONSERVER_MEMORY_GPU, TRITONSERVER_MEMORY_CPU);
    call_fails(&c, TRITONSERVER_ERROR_UNSUPPORTED,
               "input 'x' is on a device that provider 'tally' cannot read");
    call_deinit(&c);
    ask(&c, w, "pinned", TRITONSERVER_MEMORY_CPU, TRITONSERVER_MEMORY_GPU);
    call_fails(&c, TRITONSERVER_ERROR_UNSUPPORTED,
               "output 'y' is on a device that provider 'tally' cannot write");
    call_deinit(&c);
    assert_int_equal(counted->runs, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(model_without_forks_has_one_instance, set_up, world_close),
        cmocka_unit_test_setup_teardown(models_are_drained_before_they_are_destroyed, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(buffers_are_requested_in_preferred_memory, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(memory_that_a_model_cannot_read_is_rejected, set_up,
                                        world_close),
    };
    return cmocka_run_group_tests_name("server.providers", tests, NULL, NULL);
}
