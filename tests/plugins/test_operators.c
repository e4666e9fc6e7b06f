/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of kernel libraries that a runtime loads as plug-ins or finds by domain. */
#include "support/failing_allocator.h"

#include <kelp/engine.h>
#include <kelp/kernel.h>
#include <kelp/opset.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    bool found = false;
    kelp_runtime *runtime = new_runtime(kelp_allocator_system());
    snprintf(path, sizeof path, "%s/libtoolbox.so", folder);
    check_ok(kelp_runtime_load_plugin(runtime, path));
    check_ok(use(runtime));
    for (size_t i = 0; kelp_opset_registry_at(kelp_runtime_opsets(runtime), i, &declared); i++)
        found = found || strcmp(declared.opset->domain, "toolbox") == 0;
    assert_true(found);
    snprintf(path, sizeof path, "%s/libcustom_add_backend.so", folder);
    expect_failure(kelp_runtime_load_plugin(runtime, path), KELP_NOT_FOUND,
                   "no kernel of library 'custom_add' can be an operator");
    snprintf(path, sizeof path, "%s/libmistake_4.so", folder);
    expect_failure(kelp_runtime_load_plugin(runtime, path), KELP_NOT_FOUND,
                   "neither operators nor kernels nor models nor engines");
    kelp_runtime_release(runtime);
}

/* ---- scalars as attributes ---- */
typedef struct scalars {
    double f;
    int64_t i;
    char s[16];
    bool with_offset;
} scalars;
static scalars seen;

static kelp_code record(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    (void)context;
    seen.f = args[2].as.f;
    seen.i = args[3].as.i;
    snprintf(seen.s, sizeof seen.s, "%s", args[4].as.s);
    seen.with_offset = args[5].kind == KELP_ARG_TENSOR;
    for (int64_t i = 0; i < args[0].as.tensor->shape[0]; i++)
        ((float *)args[0].as.tensor->data)[i] = ((const float *)args[1].as.tensor->data)[0];
    return KELP_OK;
}

/* Fills y [k, n]. */
static kelp_code record_many(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    const DLTensor *y = args[0].as.tensor;
    (void)context;
    for (int64_t i = 0; i < y->shape[0] * y->shape[1]; i++)
        ((float *)y->data)[i] = 5;
    return y->shape[0] == args[2].as.i ? KELP_OK : KELP_INTERNAL;
}

static kelp_code nothing(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    (void)context, (void)args;
    return KELP_OK;
}

typedef struct own_operators {
    kelp_kernel_registry *registry;
    kelp_kernel_library *library;
    kelp_runtime *runtime;
    const char *domain; /* of nodes */
} own_operators;

static void define(own_operators *o, const char *name, const char *signature, kelp_kernel_fn fn) {
    const kelp_kernel *kernel = NULL;
    const kelp_kernel_def def = {.name = name, .signature = signature, .fn = fn};
    check_ok(kelp_kernel_library_define(o->library, &def, &kernel));
}

static void begin(own_operators *o) {
    const kelp_device_config devices[2] = {{.device = "cpu"}, {.device = "cuda", .id = 1}};
    kelp_kernel_registry_options options = {
        .struct_size = sizeof options, .threads = 1, .configs = devices, .config_count = 2};
    check_ok(kelp_kernel_registry_create(&options, &o->registry));
    check_ok(kelp_kernel_registry_add(o->registry, "mine", &o->library));
    o->runtime = new_runtime(kelp_allocator_system());
    o->domain = "mine";
}

static void end(own_operators *o) {
    kelp_runtime_release(o->runtime);
    kelp_kernel_registry_release(o->registry);
}

/* Runs a node of the operator with inputs of two elements; `count` of them. */
static kelp_status *run_node(own_operators *o, const char *name, size_t count,
                             const kelp_node_attribute *attributes, size_t attribute_count) {
    float x[2] = {5, 6};
    kelp_tensor tensor;
    const kelp_tensor *const inputs[2] = {&tensor, &tensor};
    kelp_node_desc desc = {.struct_size = sizeof desc,
                           .domain = o->domain,
                           .name = name,
                           .version = 1,
                           .inputs = inputs,
                           .input_count = count,
                           .output_count = 1,
                           .attributes = attributes,
                           .attribute_count = attribute_count};
    kelp_graph *graph = NULL;
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 1, (const int64_t[]){2}, x));
    check_ok(kelp_graph_create_node(kelp_allocator_system(), &desc, NULL, &graph));
    kelp_status *status = kelp_engine_create(o->runtime, graph, NULL, &engine);
    if (status == NULL) {
        check_ok(kelp_context_create(engine, &context));
        for (size_t i = 0; i < count; i++)
            check_ok(kelp_context_set_input(context, i, &tensor));
        status = kelp_context_invoke(context);
        if (status == NULL)
            assert_true(((const float *)kelp_context_output(context, 0)->data)[0] == 5);
    }
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    kelp_graph_release(graph);
    return status;
}

static void scalars_of_kernels_are_attributes(void **state) {
    (void)state;
    own_operators o;
    const kelp_opset_backend *backend = NULL;
    void *self = NULL;
    const kelp_node_attribute attributes[] = {
        {.name = "f", .type = KELP_ATTR_FLOAT, .f = 0.25f},
        {.name = "i", .type = KELP_ATTR_INT, .i = -7},
        {.name = "s", .type = KELP_ATTR_STRING, .s = {"text", 4}},
        {.name = "k", .type = KELP_ATTR_INT, .i = 3},
    };
    begin(&o);
    define(&o, "reads", "x: float32[n], f: float32 = 1", nothing);
    /* a library whose kernels write nothing has no operators */
    expect_failure(kelp_kernel_library_opset(o.library, &backend, &self), KELP_NOT_FOUND,
                   "no kernel of library 'mine' can be an operator");
    define(&o, "record",
           "out y: float32[n], x: float32[n], f: float32 = 1.5, i: int64, s: string = 'none', "
           "optional offset: float32[n]",
           record);
    define(&o, "many", "out y: float32[k, n], x: float32[n], k: int64", record_many);
    check_ok(kelp_kernel_library_opset(o.library, &backend, &self));
    check_ok(kelp_runtime_register_opset(o.runtime, backend, self));
    check_ok(run_node(&o, "record", 2, attributes, 3));
    assert_true(seen.f == 0.25);
    assert_int_equal(seen.i, -7);
    assert_string_equal(seen.s, "text");
    assert_true(seen.with_offset);
    check_ok(run_node(&o, "record", 1, attributes + 1, 1)); /* defaults, no offset */
    assert_true(seen.f == 1.5);
    assert_string_equal(seen.s, "none");
    assert_false(seen.with_offset);
    expect_failure(run_node(&o, "record", 1, attributes, 1), KELP_INVALID_ARGUMENT,
                   "attribute 'i' is missing: expected int");
    check_ok(run_node(&o, "many", 1, attributes + 3, 1));
    expect_failure(run_node(&o, "many", 1, NULL, 0), KELP_INVALID_ARGUMENT,
                   "attribute 'k' is missing: expected int");
    expect_failure(run_node(&o, "reads", 1, NULL, 0), KELP_UNIMPLEMENTED, "mine::reads");
    end(&o);
}

/* A domain comes from a model, which must not choose a directory. */
static void only_plain_domains_are_searched(void **state) {
    (void)state;
    char longest[130];
    memset(longest, 'd', sizeof longest);
    longest[128] = '\0';
    const struct {
        const char *domain;
        bool is_searched;
    } rows[] = {{"plain-1.2_x", true}, {"X", true},      {longest, true},       {".hidden", false},
                {"..", false},         {"a/b", false},   {"../up", false},      {"/root", false},
                {"two words", false},  {"semi;", false}, {"back\\slash", false}};
    setenv("KELP_BACKEND_PATH", "/nowhere", 1);
    for (size_t i = 0; i <= sizeof rows / sizeof *rows; i++) {
        bool last = i == sizeof rows / sizeof *rows;
        own_operators o;
        begin(&o);
        if (last)
            memset(longest, 'd', 129); /* one too many */
        longest[129] = '\0';
        o.domain = last ? longest : rows[i].domain;
        kelp_status *status = run_node(&o, "Custom", 1, NULL, 0);
        char message[4096];
        kelp_status_format(status, message, sizeof message);
        assert_int_equal(kelp_status_code(status), KELP_UNIMPLEMENTED);
        bool searched = strstr(message, "/nowhere/") != NULL;
        if (searched != (!last && rows[i].is_searched))
            fail_msg("domain '%s': %s", o.domain, message);
        kelp_status_free(status);
        end(&o);
    }
}

/* Without a search path and the environment, libraries are in a directory of the installation. */
static void the_default_directory_is_that_of_the_installation(void **state) {
    (void)state;
    kelp_kernel_registry *registry = NULL;
    kelp_kernel_library *library = NULL;
    char message[4096], self[4096];
    check_ok(kelp_kernel_registry_create(NULL, &registry));
    kelp_status *status = kelp_kernel_registry_open(registry, "absent", &library);
    assert_int_equal(kelp_status_code(status), KELP_NOT_FOUND);
    kelp_status_format(status, message, sizeof message);
    assert_non_null(strstr(message, "/kelp/kernels/libabsent.so: no such file"));
    /* this program is linked statically */
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    assert_null(strstr(message, self));
    kelp_status_free(status);
    kelp_kernel_registry_release(registry);
}

static void a_library_is_loaded_once(void **state) {
    (void)state;
    kelp_kernel_registry *registry = NULL;
    kelp_kernel_library *library = NULL, *same = NULL;
    const kelp_kernel *add = NULL;
    char path[4096];
    snprintf(path, sizeof path, "%s/libtoolbox.so", folder);
    check_ok(kelp_kernel_registry_create(NULL, &registry));
    check_ok(kelp_kernel_registry_open(registry, path, &library));
    check_ok(kelp_kernel_registry_open(registry, path, &same));
    assert_ptr_equal(library, same);
    assert_int_equal(kelp_kernel_registry_count(registry), 1);
    check_ok(kelp_kernel_library_find(library, "add", &add));
    assert_string_equal(kelp_kernel_summary(add), "adds elementwise");
    kelp_kernel_registry_release(registry);
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
        if (test_failing_ended(&memory, status))
            break;
        kelp_status_free(status);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_library_is_found_by_domain, unset_paths),
        cmocka_unit_test_setup(a_plugin_with_kernels_provides_operators, unset_paths),
        cmocka_unit_test_setup(scalars_of_kernels_are_attributes, unset_paths),
        cmocka_unit_test_setup(only_plain_domains_are_searched, unset_paths),
        cmocka_unit_test_setup(the_default_directory_is_that_of_the_installation, unset_paths),
        cmocka_unit_test_setup(a_library_is_loaded_once, unset_paths),
        cmocka_unit_test_setup(threads_create_engines_at_once, unset_paths),
        cmocka_unit_test_setup(every_allocation_may_fail, unset_paths),
    };
    folder = getenv("KERNEL_FOLDER");
    return folder ? cmocka_run_group_tests_name("plugins.operators", tests, NULL, NULL) : 2;
}
