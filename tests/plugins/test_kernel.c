/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel libraries: loading, calls, errors, asynchronous kernels, kernels as operators. */
#include "support/failing_allocator.h"

#include <kelp/compute.h>
#include <kelp/engine.h>
#include <kelp/kernel.h>
#include <kelp/opset.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

static const char *folder;

typedef struct fixture {
    kelp_kernel_registry *registry;
    kelp_kernel_session *session;
    kelp_kernel_library *library;
} fixture;

static kelp_status *open_library(fixture *f, const char *path, const char *name,
                                 kelp_allocator allocator) {
    kelp_kernel_registry_options options = {
        .struct_size = sizeof options, .threads = 2, .allocator = allocator, .search_path = path};
    memset(f, 0, sizeof *f);
    KELP_TRY(kelp_kernel_registry_create(&options, &f->registry));
    KELP_TRY(kelp_kernel_session_create(f->registry, NULL, &f->session));
    return kelp_kernel_registry_open(f->registry, name, &f->library);
}

static void close_library(fixture *f) {
    kelp_kernel_session_destroy(f->session);
    kelp_kernel_registry_release(f->registry);
}

static void begin(fixture *f, const char *name) {
    check_ok(open_library(f, folder, name, kelp_allocator_system()));
}

static const kelp_kernel *find(fixture *f, const char *name) {
    const kelp_kernel *kernel = NULL;
    check_ok(kelp_kernel_library_find(f->library, name, &kernel));
    return kernel;
}

static DLTensor tensor_of(void *data, uint8_t code, uint8_t bits, int32_t rank, int64_t *shape) {
    return (DLTensor){.data = data,
                      .device = {kDLCPU, 0},
                      .ndim = rank,
                      .dtype = {code, bits, 1},
                      .shape = shape};
}

static kelp_kernel_arg tensor_arg(DLTensor *tensor) {
    return (kelp_kernel_arg){.kind = KELP_ARG_TENSOR, .as.tensor = tensor};
}

/* ---- a C++ class with get_function_ptr only ---- */
static void finds_kernels_of_a_class_by_function_name(void **state) {
    (void)state;
    fixture f;
    float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, y[4] = {0};
    int64_t four = 4;
    begin(&f, "custom_add");
    assert_string_equal(kelp_kernel_library_name(f.library), "custom_add");
    assert_non_null(strstr(kelp_kernel_library_path(f.library), "libcustom_add_backend.so"));
    assert_string_equal(kelp_kernel_library_device(f.library, 0), "cpu");
    assert_null(kelp_kernel_library_device(f.library, 1));
    assert_non_null(kelp_kernel_library_function(f.library, "add"));
    assert_null(kelp_kernel_library_function(f.library, "subtract"));
    DLTensor ta = tensor_of(a, kDLFloat, 32, 1, &four), tb = tensor_of(b, kDLFloat, 32, 1, &four),
             ty = tensor_of(y, kDLFloat, 32, 1, &four);
    const kelp_kernel *add = find(&f, "add");
    assert_int_equal(kelp_kernel_param_count(add), -1);
    kelp_kernel_arg args[] = {
        tensor_arg(&ty), tensor_arg(&ta), tensor_arg(&tb), {.kind = KELP_ARG_INT, .as.i = 4}};
    check_ok(kelp_kernel_call(add, f.session, args, 4));
    for (int i = 0; i < 4; i++)
        assert_true(y[i] == a[i] + b[i]);
    /* a direct call of the function, with the context */
    void (*bare)(const kelp_kernel_context *, DLTensor *, DLTensor *, DLTensor *, uint32_t);
    void *address = kelp_kernel_library_function(f.library, "add");
    memcpy(&bare, &address, sizeof bare);
    memset(y, 0, sizeof y);
    bare(kelp_kernel_session_context(f.session), &ty, &ta, &tb, 4);
    assert_true(y[3] == 12);
    const kelp_kernel *none = NULL;
    expect_failure(kelp_kernel_library_find(f.library, "subtract", &none), KELP_NOT_FOUND,
                   "has no kernel 'subtract': found 'add'");
    close_library(&f);
}

/* ---- a C library with signatures ---- */
static void calls_check_arguments_against_the_signature(void **state) {
    (void)state;
    fixture f;
    float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 1, 1, 1, 1, 1}, y[6];
    int64_t shape[2] = {2, 3};
    begin(&f, "toolbox");
    assert_int_equal(kelp_kernel_library_count(f.library), 6);
    const kelp_kernel *add = find(&f, "add");
    assert_int_equal(kelp_kernel_param_count(add), 3);
    assert_string_equal(kelp_kernel_param_at(add, 0).name, "y");
    assert_int_equal(kelp_kernel_param_at(add, 0).direction, KELP_PARAM_OUT);
    assert_int_equal(kelp_kernel_param_at(add, 1).dtype, KELP_F32);
    DLTensor ta = tensor_of(a, kDLFloat, 32, 2, shape), tb = tensor_of(b, kDLFloat, 32, 2, shape),
             ty = tensor_of(y, kDLFloat, 32, 2, shape);
    kelp_kernel_arg args[] = {tensor_arg(&ty), tensor_arg(&ta), tensor_arg(&tb)};
    check_ok(kelp_kernel_call(add, f.session, args, 3));
    assert_true(y[5] == 7);
    tb.dtype.bits = 64;
    expect_failure(kelp_kernel_call(add, f.session, args, 3), KELP_INVALID_ARGUMENT,
                   "cannot call kernel 'add' of library 'toolbox': argument 'b' has the wrong "
                   "type: expected float32, found float64");
    /* an error that the kernel reports */
    kelp_kernel_arg blur[] = {tensor_arg(&ty), tensor_arg(&ta), {.kind = KELP_ARG_INT, .as.i = -1}};
    expect_failure(kelp_kernel_call(find(&f, "box_blur"), f.session, blur, 3),
                   KELP_INVALID_ARGUMENT,
                   "kernel 'box_blur' of library 'toolbox' failed: radius must not be negative");
    blur[2].as.i = 1;
    check_ok(kelp_kernel_call(find(&f, "box_blur"), f.session, blur, 3));
    assert_true(y[0] == 3); /* the mean of 1 2 4 5 */
    int64_t values[5] = {3, -1, 2, 9, 0}, five = 5;
    DLTensor tv = tensor_of(values, kDLInt, 64, 1, &five);
    kelp_kernel_arg sort[] = {tensor_arg(&tv)};
    check_ok(kelp_kernel_call(find(&f, "sort"), f.session, sort, 1));
    for (int i = 1; i < 5; i++)
        assert_true(values[i - 1] <= values[i]);
    close_library(&f);
}

static void count_completion(void *userp) {
    atomic_fetch_add((atomic_int *)userp, 1);
}

static void asynchronous_kernels_complete_later(void **state) {
    (void)state;
    fixture f;
    double values[3] = {1, 2, 3.5}, sum = 0;
    int64_t three = 3;
    kelp_event *event = NULL;
    begin(&f, "toolbox");
    check_ok(kelp_event_create(kelp_allocator_system(), &event));
    DLTensor tv = tensor_of(values, kDLFloat, 64, 1, &three),
             ts = tensor_of(&sum, kDLFloat, 64, 0, NULL);
    int64_t numbers[3] = {3, 1, 2};
    DLTensor tn = tensor_of(numbers, kDLInt, 64, 1, &three);
    kelp_kernel_arg args[] = {tensor_arg(&ts), tensor_arg(&tv)}, sorted = tensor_arg(&tn);
    atomic_int completed = 0;
    kelp_event_set_callback(event, count_completion, &completed);
    for (int i = 0; i < 20; i++) {
        sum = 0;
        check_ok(kelp_kernel_submit(find(&f, "later_sum"), f.session, args, 2, event));
        assert_true(kelp_event_wait(event, UINT64_MAX));
        check_ok(kelp_kernel_session_result(f.session));
        assert_true(sum == 6.5);
        assert_int_equal(atomic_load(&completed), i + 1); /* before the wait ended */
    }
    check_ok(kelp_kernel_submit(find(&f, "sort"), f.session, &sorted, 1, event));
    assert_int_equal(atomic_load(&completed), 21); /* completed by the submission */
    kelp_event_set_callback(event, NULL, NULL);
    sum = 0;
    check_ok(kelp_kernel_call(find(&f, "later_sum"), f.session, args, 2)); /* waits */
    assert_true(sum == 6.5);
    values[0] = 1.0 / 0.0;
    expect_failure(kelp_kernel_call(find(&f, "later_sum"), f.session, args, 2), KELP_OUT_OF_RANGE,
                   "the sum is not finite");
    check_ok(kelp_kernel_submit(find(&f, "later_sum"), f.session, args, 2, event));
    close_library(&f); /* waits for the kernel in progress */
    assert_true(kelp_event_done(event));
    kelp_event_destroy(event);
}

/* ---- resources of a session ---- */
static char order[8];
static void note(void *resource) {
    strcat(order, resource);
}

static void resources_are_released_in_reverse_order(void **state) {
    (void)state;
    fixture f;
    begin(&f, "toolbox");
    order[0] = '\0';
    const kelp_kernel_context *context = kelp_kernel_session_context(f.session);
    char one[] = "1", two[] = "2", three[] = "3";
    assert_true(context->own(context, note, one));
    assert_true(context->own(context, note, two));
    assert_true(context->own(context, note, three));
    assert_string_equal(order, "");
    close_library(&f);
    assert_string_equal(order, "321");
}

/* ---- functions by address, such as those of a JIT compiler ---- */
static void scale(double *unused, DLTensor *tensor, float by, int32_t times) {
    (void)unused;
    for (int64_t i = 0; i < tensor->shape[0]; i++)
        ((float *)tensor->data)[i] *= by * (float)times;
}

static int64_t last_seen;
static void see(int64_t value, double other) {
    last_seen = value + (int64_t)other;
}

static void functions_can_be_registered_by_address(void **state) {
    (void)state;
    fixture f;
    kelp_kernel_library *own = NULL;
    const kelp_kernel *kernel = NULL;
    float x[3] = {1, 2, 3};
    int64_t three = 3;
    void *address;
    begin(&f, "toolbox");
    check_ok(kelp_kernel_registry_add(f.registry, "mine", &own));
    expect_failure(kelp_kernel_registry_add(f.registry, "mine", &own), KELP_ALREADY_EXISTS, "mine");
    void (*typed)(double *, DLTensor *, float, int32_t) = scale;
    memcpy(&address, &typed, sizeof address);
    check_ok(kelp_kernel_library_register(
        own, "scale", address, "inout x: float32[n], by: float32, times: int32", true, &kernel));
    DLTensor tx = tensor_of(x, kDLFloat, 32, 1, &three);
    kelp_kernel_arg args[] = {
        tensor_arg(&tx), {.kind = KELP_ARG_FLOAT, .as.f = 0.5}, {.kind = KELP_ARG_INT, .as.i = 4}};
    check_ok(kelp_kernel_call(kernel, f.session, args, 3));
    assert_true(x[2] == 6);
    args[0].flags = KELP_ARG_READ_ONLY;
    expect_failure(kelp_kernel_call(kernel, f.session, args, 3), KELP_INVALID_ARGUMENT,
                   "argument 'x' is read-only");
    void (*bare)(int64_t, double) = see;
    memcpy(&address, &bare, sizeof address);
    check_ok(kelp_kernel_library_register(own, "see", address, NULL, false, &kernel));
    kelp_kernel_arg numbers[] = {{.kind = KELP_ARG_INT, .as.i = -3},
                                 {.kind = KELP_ARG_FLOAT, .as.f = 10.25}};
    check_ok(kelp_kernel_call(kernel, f.session, numbers, 2));
    assert_int_equal(last_seen, 7);
    assert_ptr_equal(kelp_kernel_library_function(own, "see"), address);
    expect_failure(kelp_kernel_library_register(own, "see", address, NULL, false, &kernel),
                   KELP_ALREADY_EXISTS, "already has a kernel 'see'");
    expect_failure(
        kelp_kernel_library_register(own, "bad", address, "x float32[n]", false, &kernel),
        KELP_INVALID_ARGUMENT, "malformed at character");
    close_library(&f);
}

/* Functions as numba's cfunc creates them: addresses of elements, and any number of parameters. */
static void saxpy(float *y, const float *x, float alpha, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] += alpha * x[i];
}

static int64_t seen[10];
static void ten(int8_t a, uint8_t b, int32_t c, uint32_t d, int64_t e, const char *f, int64_t g,
                int64_t h, int64_t i, int32_t j) {
    const int64_t all[10] = {a, b, c, d, e, f[0], g, h, i, j};
    memcpy(seen, all, sizeof seen);
}

static void bare_functions_receive_addresses_of_elements(void **state) {
    (void)state;
    fixture f;
    kelp_kernel_library *own = NULL;
    const kelp_kernel *kernel = NULL;
    float x[4] = {9, 1, 2, 3}, y[3] = {10, 20, 30};
    int64_t three = 3;
    begin(&f, "toolbox");
    check_ok(kelp_kernel_registry_add(f.registry, "mine", &own));
    check_ok(kelp_kernel_library_register(
        own, "saxpy", (void *)saxpy,
        "inout y: *float32[n], x: *float32[n], alpha: float32, n: int64", false, &kernel));
    DLTensor tx = tensor_of(x, kDLFloat, 32, 1, &three), ty = tensor_of(y, kDLFloat, 32, 1, &three);
    tx.byte_offset = 4; /* its first element is x[1] */
    kelp_kernel_arg args[] = {tensor_arg(&ty),
                              tensor_arg(&tx),
                              {.kind = KELP_ARG_FLOAT, .as.f = 2},
                              {.kind = KELP_ARG_INT, .as.i = 3}};
    check_ok(kelp_kernel_call(kernel, f.session, args, 4));
    assert_true(y[0] == 12 && y[1] == 24 && y[2] == 36);
    args[3].as.i = 4; /* it would write past the end */
    expect_failure(kelp_kernel_call(kernel, f.session, args, 4), KELP_INVALID_ARGUMENT,
                   "argument 'n' is 4: expected 3");
    check_ok(kelp_kernel_library_register(own, "ten", (void *)ten, NULL, false, &kernel));
    kelp_kernel_arg many[10];
    for (int i = 0; i < 10; i++)
        many[i] = (kelp_kernel_arg){.kind = KELP_ARG_INT, .as.i = i % 2 ? i : -i};
    many[5] = (kelp_kernel_arg){.kind = KELP_ARG_STRING, .as.s = "A"};
    many[1].as.i = 200;
    many[3].as.i = 4000000000;
    many[9].as.i = -9;
    check_ok(kelp_kernel_call(kernel, f.session, many, 10));
    const int64_t expected[10] = {0, 200, -2, 4000000000, -4, 'A', -6, 7, -8, -9};
    assert_memory_equal(seen, expected, sizeof seen);
    close_library(&f);
}

/* ---- kernels that the program defines ---- */
static kelp_code fill(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    (void)context;
    for (int64_t i = 0; i < args[0].as.tensor->shape[0]; i++)
        ((int64_t *)args[0].as.tensor->data)[i] = args[1].as.i;
    return KELP_OK;
}

static void programs_can_define_kernels(void **state) {
    (void)state;
    fixture f;
    kelp_kernel_library *own = NULL;
    const kelp_kernel *kernel = NULL;
    int64_t x[2] = {0}, two = 2;
    const kelp_kernel_def def = {
        .name = "fill", .signature = "out x: int64[n], value: int64", .fn = fill};
    begin(&f, "toolbox");
    check_ok(kelp_kernel_registry_add(f.registry, "mine", &own));
    check_ok(kelp_kernel_library_define(own, &def, &kernel));
    expect_failure(kelp_kernel_library_define(own, &def, &kernel), KELP_ALREADY_EXISTS, "'fill'");
    const kelp_kernel_def empty = {.name = "fill", .signature = ""};
    expect_failure(kelp_kernel_library_define(own, &empty, &kernel), KELP_INVALID_ARGUMENT,
                   "has no function");
    DLTensor tx = tensor_of(x, kDLInt, 64, 1, &two);
    kelp_kernel_arg args[] = {tensor_arg(&tx), {.kind = KELP_ARG_INT, .as.i = 7}};
    check_ok(kelp_kernel_call(kernel, f.session, args, 2));
    assert_int_equal(x[1], 7);
    close_library(&f);
}

/* Two C++ libraries at once, and two registries with the same library: each has its own object. */
static void classes_have_separate_objects(void **state) {
    (void)state;
    fixture f, g;
    kelp_kernel_library *other = NULL;
    begin(&f, "custom_add");
    begin(&g, "custom_add");
    check_ok(kelp_kernel_registry_open(f.registry, "other_class", &other));
    assert_string_equal(kelp_kernel_library_name(other), "other_class");
    assert_non_null(kelp_kernel_library_function(other, "nothing"));
    assert_null(kelp_kernel_library_function(other, "add"));
    assert_null(kelp_kernel_library_function(other, "throw"));
    assert_non_null(kelp_kernel_library_function(f.library, "add"));
    assert_int_equal(setenv("OTHER_CLASS_THROWS", "1", 1), 0);
    expect_failure(kelp_kernel_registry_open(g.registry, "other_class", &other), KELP_NOT_FOUND,
                   "failed to initialize: no device is good enough");
    assert_int_equal(unsetenv("OTHER_CLASS_THROWS"), 0);
    close_library(&f);
    assert_non_null(kelp_kernel_library_function(g.library, "add")); /* its object is alive */
    close_library(&g);
}

static void rejects_tensors_on_unsupported_devices(void **state) {
    (void)state;
    fixture f;
    const kelp_device_config cuda = {.device = "cuda"};
    kelp_kernel_session *session = NULL;
    const kelp_kernel *kernel = NULL;
    int64_t two = 2;
    float x[2] = {1, 2};
    begin(&f, "custom_add");
    check_ok(kelp_kernel_session_create(f.registry, &cuda, &session));
    DLTensor tx = tensor_of(x, kDLFloat, 32, 1, &two);
    kelp_kernel_arg args[] = {
        tensor_arg(&tx), tensor_arg(&tx), tensor_arg(&tx), {.kind = KELP_ARG_INT, .as.i = 2}};
    kernel = find(&f, "add");
    expect_failure(kelp_kernel_call(kernel, session, args, 4), KELP_INVALID_ARGUMENT,
                   "the session is for device type 2, but the library supports only cpu");
    check_ok(kelp_kernel_call(kernel, f.session, args, 4));
    assert_true(x[1] == 4);
    tx.device.device_type = kDLCUDA;
    expect_failure(kelp_kernel_call(kernel, f.session, args, 4), KELP_INVALID_ARGUMENT,
                   "argument 0 is on the wrong device: expected type 1, found type 2");
    kelp_kernel_session_destroy(session);
    close_library(&f);
}

/* ---- libraries that cannot be loaded ---- */
static void error_for_a_missing_library_lists_the_tried_files(void **state) {
    (void)state;
    fixture f;
    char path[4096];
    snprintf(path, sizeof path, "/no/such/folder:%s", folder);
    kelp_status *status = open_library(&f, path, "absent", kelp_allocator_system());
    char text[4096];
    kelp_status_format(status, text, sizeof text);
    assert_int_equal(kelp_status_code(status), KELP_NOT_FOUND);
    assert_non_null(strstr(text, "/no/such/folder/libabsent_backend.so: no such file"));
    assert_non_null(strstr(text, "/libabsent.so: no such file"));
    assert_non_null(strstr(text, folder));
    kelp_status_free(status);
    close_library(&f);
    begin(&f, "toolbox");
    close_library(&f);
}

static void search_path_comes_from_the_environment(void **state) {
    (void)state;
    fixture f;
    setenv("KELP_BACKEND_PATH", "/nowhere", 1);
    setenv("TRITON_BACKEND_PATH", folder, 1);
    check_ok(open_library(&f, NULL, "toolbox", kelp_allocator_system()));
    close_library(&f);
    char file[4096];
    snprintf(file, sizeof file, "%s/libtoolbox.so", folder);
    setenv("KELP_BACKEND_PATH", file, 1); /* an entry can be a file */
    unsetenv("TRITON_BACKEND_PATH");
    check_ok(open_library(&f, NULL, "toolbox", kelp_allocator_system()));
    close_library(&f);
    unsetenv("KELP_BACKEND_PATH");
}

static void invalid_libraries_are_rejected_with_the_reason(void **state) {
    (void)state;
    static const struct {
        const char *file, *words;
    } rows[] = {
        {"libmistake_1.so", "bad plug-in magic"},
        {"libmistake_2.so", "built for plug-in interface version 99"},
        {"libmistake_3.so", "its table has 8 bytes"},
        {"libmistake_4.so", "plug-in 'mistake' has no kernels"},
        {"libmistake_5.so", "found 'float33'"},
        {"libmistake_6.so", "failed to initialize: the device is on fire"},
        {"no_such_file.so", "no such file"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fixture f;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, rows[i].file);
        kelp_status *status = open_library(&f, "", path, kelp_allocator_system());
        char text[2048];
        kelp_status_format(status, text, sizeof text);
        if (status == NULL || strstr(text, rows[i].words) == NULL ||
            strstr(text, rows[i].file) == NULL)
            fail_msg("expected '%s' in: %s", rows[i].words, text);
        kelp_status_free(status);
        assert_int_equal(kelp_kernel_registry_count(f.registry), 0);
        close_library(&f);
    }
}

static void rejects_files_for_other_machines(void **state) {
    (void)state;
    fixture f;
    unsigned char head[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    char path[] = "/tmp/kelp-kernel-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "wb");
    head[18] = 8; /* MIPS */
    assert_int_equal(fwrite(head, 1, sizeof head, file), sizeof head);
    fclose(file);
    expect_failure(open_library(&f, "", path, kelp_allocator_system()), KELP_INVALID_ARGUMENT,
                   "it is built for another machine: this process runs on");
    close_library(&f);
    file = fopen(path, "wb");
    assert_int_equal(fwrite("not at all a library", 1, 20, file), 20);
    fclose(file);
    expect_failure(open_library(&f, "", path, kelp_allocator_system()), KELP_INVALID_ARGUMENT,
                   "it is not a shared library");
    close_library(&f);
    remove(path);
}

typedef struct search_log {
    size_t count;
    char last[4096];
    kelp_code code;
} search_log;

static void log_file(void *userp, const char *path, const kelp_status *why) {
    search_log *t = userp;
    t->count++;
    snprintf(t->last, sizeof t->last, "%s", path);
    t->code = kelp_status_code(why);
}

static void search_reports_each_tried_file(void **state) {
    (void)state;
    fixture f;
    search_log t = {0};
    char path[4096];
    begin(&f, "toolbox");
    snprintf(path, sizeof path, "%s/absent/libabsent.so", folder);
    expect_failure(kelp_kernel_registry_search(f.registry, "absent", log_file, &t, &f.library),
                   KELP_NOT_FOUND, path);
    assert_int_equal(t.count, 4);
    assert_string_equal(t.last, path);
    assert_int_equal(t.code, KELP_NOT_FOUND);
    expect_failure(kelp_kernel_registry_search(f.registry, "./absent.so", log_file, &t, &f.library),
                   KELP_NOT_FOUND, "./absent.so");
    assert_string_equal(t.last, "./absent.so");
    close_library(&f);
}

/* Information that a host needs to call an unknown kernel: parameters and output shapes. */
static void signatures_can_be_queried(void **state) {
    (void)state;
    fixture f;
    float x[6] = {0};
    int64_t shape[2] = {2, 3};
    kelp_tensor y;
    begin(&f, "toolbox");
    const kelp_kernel *blur = find(&f, "box_blur"), *add = find(&f, "add");
    kelp_kernel_shape found = kelp_kernel_param_shape(blur, 0);
    assert_int_equal(found.rank, 2);
    assert_false(found.leading);
    assert_string_equal(found.names[1], "w");
    assert_int_equal(found.extents[1], -1);
    assert_int_equal(kelp_kernel_param_shape(blur, 2).rank, -1);
    assert_int_equal(kelp_kernel_param_shape(blur, 9).rank, -1);
    found = kelp_kernel_param_shape(add, 0);
    assert_int_equal(found.rank, 0);
    assert_true(found.leading);
    assert_string_equal(found.leading_name, "s");
    assert_int_equal(kelp_kernel_param_shape(find(&f, "histogram"), 0).extents[0], 256);

    DLTensor image = tensor_of(x, kDLFloat, 32, 2, shape);
    kelp_kernel_arg args[3] = {{0}, tensor_arg(&image), {0}};
    check_ok(kelp_kernel_infer_shapes(blur, args, 3, &y));
    assert_int_equal(y.dtype, KELP_F32);
    assert_int_equal(y.rank, 2);
    assert_int_equal(y.shape[1], 3);
    assert_null(y.data);
    expect_failure(kelp_kernel_infer_shapes(blur, args, 2, &y), KELP_INVALID_ARGUMENT,
                   "it has 3 parameters: found 2 arguments");
    args[1].kind = 0;
    expect_failure(kelp_kernel_infer_shapes(blur, args, 3, &y), KELP_INVALID_ARGUMENT,
                   "argument 'x' is missing");
    args[1] = tensor_arg(&image);
    image.dtype.bits = 64;
    expect_failure(kelp_kernel_infer_shapes(blur, args, 3, &y), KELP_INVALID_ARGUMENT,
                   "expected float32, found float64");
    check_ok(kelp_kernel_registry_open(f.registry, "custom_add", &f.library));
    expect_failure(kelp_kernel_infer_shapes(find(&f, "add"), args, 3, &y), KELP_FAILED_PRECONDITION,
                   "no signature");
    close_library(&f);
}

static void rejects_a_library_with_another_name(void **state) {
    (void)state;
    fixture f;
    kelp_status *status = open_library(&f, folder, "mistake_7", kelp_allocator_system());
    expect_failure(status, KELP_NOT_FOUND, "its name is 'somebody_else'");
    close_library(&f);
}

static void libraries_in_c_have_functions_and_devices(void **state) {
    (void)state;
    fixture f;
    begin(&f, "counting");
    const int *counts = kelp_kernel_library_function(f.library, "counts");
    assert_non_null(counts);
    int initialized = counts[0], finalized = counts[1];
    assert_int_equal(initialized, finalized + 1);
    assert_string_equal(kelp_kernel_library_device(f.library, 1), "cuda");
    assert_null(kelp_kernel_library_device(f.library, 2));
    close_library(&f);
    assert_int_equal(counts[1], finalized + 1); /* the code stays loaded */
}

/* ---- as operators ---- */
static void kernels_can_be_operators(void **state) {
    (void)state;
    fixture f;
    const kelp_opset_backend *backend = NULL;
    void *self = NULL;
    kelp_runtime *runtime = NULL;
    kelp_graph *graph = NULL;
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    float x[12];
    const int64_t shape[2] = {3, 4};
    kelp_tensor input;
    begin(&f, "toolbox");
    check_ok(kelp_kernel_library_opset(f.library, &backend, &self));
    check_ok(kelp_runtime_create(NULL, &runtime));
    check_ok(kelp_graph_load_file(kelp_allocator_system(),
                                  KELP_TEST_DATA "/models/toolbox_ops.onnx", NULL, &graph));
    expect_failure(kelp_engine_create(runtime, graph, NULL, &engine), KELP_UNIMPLEMENTED,
                   "toolbox::box_blur");
    check_ok(kelp_runtime_register_opset(runtime, backend, self));
    check_ok(kelp_engine_create(runtime, graph, NULL, &engine));
    check_ok(kelp_context_create(engine, &context));
    for (int i = 0; i < 12; i++)
        x[i] = (float)i;
    check_ok(kelp_tensor_init(&input, KELP_F32, 2, shape, x));
    for (int round = 0; round < 2; round++) {
        check_ok(kelp_context_set_input(context, 0, &input));
        check_ok(kelp_context_invoke(context));
        const kelp_tensor *y = kelp_context_output(context, 0);
        assert_int_equal(y->rank, 2);
        /* blur, then add the picture itself */
        assert_true(((const float *)y->data)[0] == (0 + 1 + 4 + 5) / 4.0f + 0);
        assert_true(((const float *)y->data)[5] == 5 + 5);
    }
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    kelp_graph_release(graph);
    kelp_runtime_release(runtime);
    close_library(&f);
}

/* An integer with the name of a dimension sets the shape of an output, or is set by the inputs. */
static kelp_status *infer_counting(kelp_runtime *runtime, const char *text, const kelp_tensor *in,
                                   kelp_tensor *out, float *copy) {
    char artifact_text[4096];
    snprintf(artifact_text, sizeof artifact_text, "%s/libcounting.so\n%s", folder, text);
    kelp_artifact artifact = {
        .data = artifact_text, .size_bytes = strlen(artifact_text), .label = "counting"};
    kelp_compute_model *model = NULL;
    kelp_infer_item item = {.inputs = in, .outputs = out};
    *out = (kelp_tensor){0};
    KELP_TRY(kelp_compute_load(runtime, "kernels", &artifact, &model));
    kelp_status *status = kelp_compute_init(model);
    if (status == NULL)
        status = kelp_compute_infer_one(model, &item);
    if (status == NULL)
        memcpy(copy, out->data, kelp_tensor_bytes(out));
    kelp_compute_destroy(model);
    return status;
}

static void integers_set_dimensions_of_outputs(void **state) {
    (void)state;
    kelp_runtime *runtime = NULL;
    kelp_tensor in, out;
    float x[2] = {1, 2}, y[8];
    check_ok(kelp_runtime_create(NULL, &runtime));
    check_ok(kelp_tensor_init(&in, KELP_F32, 1, (const int64_t[]){2}, x));
    check_ok(infer_counting(runtime, "repeat\nn=3\n", &in, &out, y));
    assert_int_equal(out.shape[0], 3);
    assert_int_equal(out.shape[1], 2);
    assert_true(y[5] == 2);
    expect_failure(infer_counting(runtime, "repeat\n", &in, &out, y), KELP_INVALID_ARGUMENT,
                   "parameter 'n' has no value");
    check_ok(infer_counting(runtime, "twice\n", &in, &out, y)); /* n is 2, from the input */
    assert_int_equal(out.shape[0], 2);
    assert_true(y[1] == 4);
    expect_failure(infer_counting(runtime, "twice\nn=3\n", &in, &out, y), KELP_INVALID_ARGUMENT,
                   "argument 'n' is 3: expected 2");
    kelp_runtime_release(runtime);
}

static void served_bools_are_words_or_digits(void **state) {
    (void)state;
    kelp_runtime *runtime = NULL;
    kelp_tensor in, outs[2];
    float x[2] = {1, 2}, y[8];
    static const struct {
        const char *text;
        float expected;
    } cases[] = {{"describe\nnegate=true\ntext=a\n", 1},
                 {"describe\nnegate=false\ntext=a\n", 0},
                 {"describe\nnegate=1\ntext=a\n", 1},
                 {"describe\nnegate=0\ntext=a\n", 0}};
    check_ok(kelp_runtime_create(NULL, &runtime));
    check_ok(kelp_tensor_init(&in, KELP_F32, 1, (const int64_t[]){2}, x));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        outs[1] = (kelp_tensor){0};
        check_ok(infer_counting(runtime, cases[i].text, &in, outs, y));
        assert_true(y[0] == cases[i].expected);
    }
    outs[1] = (kelp_tensor){0};
    expect_failure(infer_counting(runtime, "describe\nnegate=yes\ntext=a\n", &in, outs, y),
                   KELP_INVALID_ARGUMENT, "'yes': expected true, false, 0 or 1");
    expect_failure(infer_counting(runtime, "describe\nnegate=2\ntext=a\n", &in, outs, y),
                   KELP_INVALID_ARGUMENT, "2 is not a valid bool");
    kelp_runtime_release(runtime);
}

/* ---- memory ---- */
static kelp_status *scenario(kelp_allocator allocator) {
    fixture f;
    float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
    int64_t shape[2] = {2, 3};
    const kelp_kernel *blur = NULL;
    kelp_status *status = open_library(&f, folder, "toolbox", allocator);
    if (status == NULL)
        status = kelp_kernel_library_find(f.library, "box_blur", &blur);
    DLTensor tx = tensor_of(x, kDLFloat, 32, 2, shape), ty = tensor_of(y, kDLFloat, 32, 2, shape);
    kelp_kernel_arg args[] = {tensor_arg(&ty), tensor_arg(&tx), {.kind = KELP_ARG_INT, .as.i = 1}};
    if (status == NULL)
        status = kelp_kernel_call(blur, f.session, args, 3);
    close_library(&f);
    return status;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        test_failing_init(&memory, n);
        kelp_status *status = scenario(test_failing_allocator(&memory));
        if (test_failing_ended(&memory, status))
            break;
        kelp_status_free(status); /* NULL if only a message about another file was lost */
    }
}

static void warm_calls_do_not_allocate(void **state) {
    (void)state;
    fixture f;
    test_failing memory;
    float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
    int64_t shape[2] = {2, 3};
    test_failing_init(&memory, 0);
    check_ok(open_library(&f, folder, "toolbox", test_failing_allocator(&memory)));
    const kelp_kernel *blur = find(&f, "box_blur");
    DLTensor tx = tensor_of(x, kDLFloat, 32, 2, shape), ty = tensor_of(y, kDLFloat, 32, 2, shape);
    kelp_kernel_arg args[] = {tensor_arg(&ty), tensor_arg(&tx), {.kind = KELP_ARG_INT, .as.i = 1}};
    check_ok(kelp_kernel_call(blur, f.session, args, 3));
    uint64_t before = memory.calls;
    for (int i = 0; i < 100; i++)
        check_ok(kelp_kernel_call(blur, f.session, args, 3));
    assert_int_equal(memory.calls, before);
    close_library(&f);
    test_failing_check(&memory);
    test_failing_deinit(&memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_kernels_of_a_class_by_function_name),
        cmocka_unit_test(calls_check_arguments_against_the_signature),
        cmocka_unit_test(asynchronous_kernels_complete_later),
        cmocka_unit_test(resources_are_released_in_reverse_order),
        cmocka_unit_test(functions_can_be_registered_by_address),
        cmocka_unit_test(bare_functions_receive_addresses_of_elements),
        cmocka_unit_test(programs_can_define_kernels),
        cmocka_unit_test(classes_have_separate_objects),
        cmocka_unit_test(rejects_tensors_on_unsupported_devices),
        cmocka_unit_test(error_for_a_missing_library_lists_the_tried_files),
        cmocka_unit_test(search_path_comes_from_the_environment),
        cmocka_unit_test(invalid_libraries_are_rejected_with_the_reason),
        cmocka_unit_test(rejects_files_for_other_machines),
        cmocka_unit_test(search_reports_each_tried_file),
        cmocka_unit_test(signatures_can_be_queried),
        cmocka_unit_test(rejects_a_library_with_another_name),
        cmocka_unit_test(libraries_in_c_have_functions_and_devices),
        cmocka_unit_test(kernels_can_be_operators),
        cmocka_unit_test(integers_set_dimensions_of_outputs),
        cmocka_unit_test(served_bools_are_words_or_digits),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(warm_calls_do_not_allocate),
    };
    folder = getenv("KERNEL_FOLDER");
    return folder ? cmocka_run_group_tests_name("kernel.kernel", tests, NULL, NULL) : 2;
}
