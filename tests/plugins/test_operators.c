/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of kernel libraries that a runtime loads as plug-ins or finds by domain. */
#include "support/failing_allocator.h"

#include <kelp/engine.h>
#include <kelp/opset.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

#define MODEL KELP_TEST_DATA "/models/toolbox_ops.onnx"

static const char *folder;

static int unset_paths(void **state) {
    (void)state;
    unsetenv("KELP_BACKEND_PATH");
    unsetenv("TRITON_BACKEND_PATH");
    return 0;
}

static kelp_runtime *new_runtime(kelp_allocator allocator) {
    kelp_runtime_options options = {
        .struct_size = sizeof options, .threads = 2, .allocator = allocator};
    kelp_runtime *runtime = NULL;
    kelp_status_free(kelp_runtime_create(&options, &runtime));
    return runtime;
}

static kelp_status *run_model(kelp_engine *engine) {
    float x[12];
    kelp_tensor input;
    kelp_context *context = NULL;
    for (int i = 0; i < 12; i++)
        x[i] = (float)i;
    KELP_TRY(kelp_tensor_init(&input, KELP_F32, 2, (const int64_t[]){3, 4}, x));
    KELP_TRY(kelp_context_create(engine, &context));
    kelp_status *status = kelp_context_set_input(context, 0, &input);
    if (status == NULL)
        status = kelp_context_invoke(context);
    if (status == NULL) /* the blurred picture and the picture */
        assert_true(((const float *)kelp_context_output(context, 0)->data)[5] == 5 + 5);
    kelp_context_destroy(context);
    return status;
}

/* Creates an engine of the model and runs it. */
static kelp_status *use(kelp_runtime *runtime) {
    kelp_graph *graph = NULL;
    kelp_engine *engine = NULL;
    KELP_TRY(kelp_graph_load_file(kelp_runtime_allocator(runtime), MODEL, NULL, &graph));
    kelp_status *status = kelp_engine_create(runtime, graph, NULL, &engine);
    if (status == NULL)
        status = run_model(engine);
    kelp_engine_release(engine);
    kelp_graph_release(graph);
    return status;
}

static void a_library_is_found_by_domain(void **state) {
    (void)state;
    kelp_runtime *runtime = new_runtime(kelp_allocator_system());
    expect_failure(use(runtime), KELP_UNIMPLEMENTED, "toolbox::box_blur");
    setenv("KELP_BACKEND_PATH", "/nowhere", 1); /* read when an engine is created */
    expect_failure(use(runtime), KELP_UNIMPLEMENTED, "/nowhere/libtoolbox.so: no such file");
    setenv("TRITON_BACKEND_PATH", folder, 1);
    check_ok(use(runtime));
    unset_paths(NULL);
    check_ok(use(runtime)); /* the runtime keeps the library */
    kelp_runtime_release(runtime);
}

static void a_plugin_with_kernels_provides_operators(void **state) {
    (void)state;
    char path[4096];
    kelp_opset_declared declared;
    bool seen = false;
    kelp_runtime *runtime = new_runtime(kelp_allocator_system());
    snprintf(path, sizeof path, "%s/libtoolbox.so", folder);
    check_ok(kelp_runtime_load_plugin(runtime, path));
    check_ok(use(runtime));
    for (size_t i = 0; kelp_opset_registry_at(kelp_runtime_opsets(runtime), i, &declared); i++)
        seen = seen || strcmp(declared.opset->domain, "toolbox") == 0;
    assert_true(seen);
    snprintf(path, sizeof path, "%s/libcustom_add_backend.so", folder);
    expect_failure(kelp_runtime_load_plugin(runtime, path), KELP_NOT_FOUND,
                   "no kernel of library 'custom_add' can be an operator");
    snprintf(path, sizeof path, "%s/libmistake_4.so", folder);
    expect_failure(kelp_runtime_load_plugin(runtime, path), KELP_NOT_FOUND,
                   "neither operators nor kernels nor models nor engines");
    kelp_runtime_release(runtime);
}

static void *use_on_thread(void *runtime) {
    return use(runtime);
}

static void threads_create_engines_at_once(void **state) {
    (void)state;
    pthread_t threads[4];
    kelp_runtime *runtime = new_runtime(kelp_allocator_system());
    setenv("KELP_BACKEND_PATH", folder, 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_on_thread, runtime), 0);
    for (int i = 0; i < 4; i++) {
        void *status = NULL;
        pthread_join(threads[i], &status);
        check_ok(status);
    }
    kelp_runtime_release(runtime);
}

static kelp_status *scenario(kelp_allocator allocator) {
    kelp_runtime *runtime = new_runtime(allocator);
    if (runtime == NULL)
        return NULL;
    kelp_status *status = use(runtime);
    kelp_runtime_release(runtime);
    return status;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    setenv("KELP_BACKEND_PATH", folder, 1);
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        test_failing_init(&memory, n);
        kelp_status *status = scenario(test_failing_allocator(&memory));
        test_failing_check(&memory);
        bool failed = memory.failed;
        test_failing_deinit(&memory);
        if (!failed) {
            check_ok(status);
            break;
        }
        kelp_status_free(status);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_library_is_found_by_domain, unset_paths),
        cmocka_unit_test_setup(a_plugin_with_kernels_provides_operators, unset_paths),
        cmocka_unit_test_setup(threads_create_engines_at_once, unset_paths),
        cmocka_unit_test_setup(every_allocation_may_fail, unset_paths),
    };
    folder = getenv("KERNEL_FOLDER");
    return folder ? cmocka_run_group_tests_name("plugins.operators", tests, NULL, NULL) : 2;
}
