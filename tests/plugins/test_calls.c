/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of kernels that a program defines: how arguments are passed, the services of the context,
 * and asynchronous
 * calls. */
#include "support/failing_allocator.h"

#include <kelp/kernel.h>

#include <pthread.h>
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
    kelp_kernel_library *own;
} fixture;

static void begin_with(fixture *f, const kelp_kernel_registry_options *options) {
    memset(f, 0, sizeof *f);
    check_ok(kelp_kernel_registry_create(options, &f->registry));
    check_ok(kelp_kernel_session_create(f->registry, NULL, &f->session));
    check_ok(kelp_kernel_registry_add(f->registry, "mine", &f->own));
}

static void begin(fixture *f) {
    kelp_kernel_registry_options options = {.struct_size = sizeof options, .threads = 2};
    begin_with(f, &options);
}

static void end(fixture *f) {
    kelp_kernel_session_destroy(f->session);
    kelp_kernel_registry_release(f->registry);
}

static const kelp_kernel *registered(fixture *f, const char *name, void *function,
                                     const char *signature, bool with_context) {
    const kelp_kernel *kernel = NULL;
    check_ok(
        kelp_kernel_library_register(f->own, name, function, signature, with_context, &kernel));
    return kernel;
}

static const kelp_kernel *defined(fixture *f, const char *name, const char *signature,
                                  kelp_kernel_fn fn, uint32_t flags) {
    const kelp_kernel *kernel = NULL;
    kelp_kernel_def def = {.name = name, .signature = signature, .fn = fn, .flags = flags};
    check_ok(kelp_kernel_library_define(f->own, &def, &kernel));
    return kernel;
}

static DLTensor floats(float *data, int64_t *shape) {
    return (DLTensor){
        .data = data, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = shape};
}

/* ---- bare functions ---- */
static int64_t seen[9];

#define SEE(count, ...)                            \
    {                                              \
        const int64_t all[] = {__VA_ARGS__};       \
        memset(seen, 0, sizeof seen);              \
        memcpy(seen, all, (count) * sizeof *seen); \
    }
#define I int64_t
static void f1(I a) SEE(1, a) static void f2(I a, I b) SEE(2, a, b) static void f3(I a, I b, I c)
    SEE(3, a, b, c) static void f4(I a, I b, I c,
                                   I d) SEE(4, a, b, c, d) static void f5(I a, I b, I c, I d, I e)
        SEE(5, a, b, c, d, e) static void f6(I a, I b, I c, I d, I e, I f)
            SEE(6, a, b, c, d, e, f) static void f7(I a, I b, I c, I d, I e, I f, I g)
                SEE(7, a, b, c, d, e, f, g) static void f8(I a, I b, I c, I d, I e, I f, I g, I h)
                    SEE(8, a, b, c, d, e, f, g, h) static void f9(I a, I b, I c, I d, I e, I f, I g,
                                                                  I h, I i)
                        SEE(9, a, b, c, d, e, f, g, h, i)
#undef I

                            static int called;
static void f0(void) {
    called++;
}

static void bare_functions_receive_any_number_of_integers_in_order(void **state) {
    (void)state;
    fixture f;
    void *const functions[10] = {(void *)f0, (void *)f1, (void *)f2, (void *)f3, (void *)f4,
                                 (void *)f5, (void *)f6, (void *)f7, (void *)f8, (void *)f9};
    kelp_kernel_arg args[9];
    begin(&f);
    for (int i = 0; i < 9; i++)
        args[i] = (kelp_kernel_arg){.kind = KELP_ARG_INT, .as.i = -100 - i};
    for (int32_t count = 0; count < 10; count++) {
        char name[8];
        snprintf(name, sizeof name, "f%d", count);
        const kelp_kernel *kernel = registered(&f, name, functions[count], NULL, false);
        assert_string_equal(kelp_kernel_name(kernel), name);
        assert_string_equal(kelp_kernel_signature(kernel), "");
        assert_string_equal(kelp_kernel_summary(kernel), "");
        assert_int_equal(kelp_kernel_flags(kernel), 0);
        check_ok(kelp_kernel_call(kernel, f.session, args, count));
        for (int i = 0; i < 9 && count > 0; i++)
            assert_int_equal(seen[i], i < count ? -100 - i : 0);
    }
    assert_int_equal(called, 1);
    kelp_kernel_arg many[65] = {{0}};
    const kelp_kernel *kernel = NULL;
    check_ok(kelp_kernel_library_find(f.own, "f9", &kernel));
    expect_failure(kelp_kernel_call(kernel, f.session, many, 65), KELP_INVALID_ARGUMENT,
                   "kernel 'f9' has 65 arguments: expected at most ");
    expect_failure(kelp_kernel_call(kernel, f.session, many, 9), KELP_INVALID_ARGUMENT,
                   "kernel 'f9': argument 0 is missing: expected a tensor, a number or a string");
    end(&f);
}

static double numbers[6];
static void mixed(double a, int64_t b, float c, const char *d, double e, float f) {
    const double all[6] = {a, (double)b, (double)c, d[0], e, (double)f};
    memcpy(numbers, all, sizeof numbers);
}

static void bare_functions_receive_floats_and_integers_in_order(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    const kelp_kernel *kernel = registered(
        &f, "mixed", (void *)mixed,
        "a: float64, b: int64, c: float32, d: string, e: float64, f: float32 = 7.5", false);
    kelp_kernel_arg args[6] = {
        {.kind = KELP_ARG_FLOAT, .as.f = 0.1}, {.kind = KELP_ARG_INT, .as.i = -2},
        {.kind = KELP_ARG_FLOAT, .as.f = 2.5}, {.kind = KELP_ARG_STRING, .as.s = "A"},
        {.kind = KELP_ARG_INT, .as.i = 4},     {.kind = 0}};
    check_ok(kelp_kernel_call(kernel, f.session, args, 6));
    const double expected[6] = {0.1, -2, 2.5, 'A', 4, 7.5};
    assert_memory_equal(numbers, expected, sizeof expected);
    args[5] = (kelp_kernel_arg){.kind = KELP_ARG_FLOAT, .as.f = -1};
    check_ok(kelp_kernel_call(kernel, f.session, args, 6));
    assert_true(numbers[5] == -1);
    end(&f);
}

static const void *addresses[3];
static uint64_t offset;
static void look(const DLTensor *a, const float *b, const DLTensor *c) {
    addresses[0] = a != NULL ? a->data : NULL;
    addresses[1] = b;
    addresses[2] = c;
    offset = a != NULL ? a->byte_offset : 0;
}

static void bare_functions_receive_tensors_without_an_offset(void **state) {
    (void)state;
    fixture f;
    float x[4] = {0};
    int64_t two = 2;
    DLTensor t = floats(x, &two), plain = floats(x, &two);
    begin(&f);
    t.byte_offset = 4;
    const kelp_kernel *kernel = registered(
        &f, "look", (void *)look, "a: float32[n], b: *float32[n], optional c: float32[n]", false);
    kelp_kernel_arg args[3] = {{.kind = KELP_ARG_TENSOR, .as.tensor = &t},
                               {.kind = KELP_ARG_TENSOR, .as.tensor = &t},
                               {.kind = 0}};
    check_ok(kelp_kernel_call(kernel, f.session, args, 3));
    assert_ptr_equal(addresses[0], x + 1);
    assert_int_equal(offset, 0);
    assert_ptr_equal(addresses[1], x + 1);
    assert_null(addresses[2]); /* omitted */
    assert_int_equal(t.byte_offset, 4);
    args[2] = (kelp_kernel_arg){.kind = KELP_ARG_TENSOR, .as.tensor = &plain};
    check_ok(kelp_kernel_call(kernel, f.session, args, 3));
    assert_ptr_equal(addresses[2], &plain);
    args[1] = (kelp_kernel_arg){.kind = 0};
    expect_failure(kelp_kernel_call(kernel, f.session, args, 3), KELP_INVALID_ARGUMENT, "'b'");
    end(&f);
}

static void complain(const kelp_kernel_context *context, int64_t code) {
    if (code != 0)
        (context->fail)(context, "a bare complaint"); /* cmocka has a macro of this name */
}

static void bare_functions_fail_by_their_message(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    const kelp_kernel *kernel = registered(&f, "complain", (void *)complain, NULL, true);
    kelp_kernel_arg arg = {.kind = KELP_ARG_INT, .as.i = 1};
    expect_failure(kelp_kernel_call(kernel, f.session, &arg, 1), KELP_INTERNAL,
                   "kernel 'complain' of library 'mine' failed: a bare complaint");
    arg.as.i = 0; /* the message of the last call is gone */
    check_ok(kelp_kernel_call(kernel, f.session, &arg, 1));
    end(&f);
}

/* ---- services of the context ---- */
typedef struct chunks {
    atomic_int counts[1000];
    atomic_int calls, smallest, workers;
    int64_t count;
} chunks;

static void count_chunk(void *userp, int64_t first, int64_t last, int worker) {
    chunks *c = userp;
    atomic_fetch_add(&c->calls, 1);
    if ((int)(last - first) < atomic_load(&c->smallest) && last != c->count)
        atomic_store(&c->smallest, (int)(last - first));
    if (worker >= atomic_load(&c->workers))
        atomic_store(&c->workers, worker + 1);
    for (int64_t i = first; i < last; i++)
        atomic_fetch_add(&c->counts[i], 1);
}

static void check_parallel(const kelp_kernel_context *context, int64_t count, int64_t grain) {
    static chunks c;
    memset(&c, 0, sizeof c);
    atomic_store(&c.smallest, 1000);
    c.count = count;
    context->parallel(context, count, grain, count_chunk, &c);
    for (int64_t i = 0; i < 1000; i++)
        assert_int_equal(atomic_load(&c.counts[i]), i < count);
    assert_true(atomic_load(&c.workers) <= context->threads);
    if (count > 0 && count <= grain)
        assert_int_equal(atomic_load(&c.calls), 1);
    if (count <= 0)
        assert_int_equal(atomic_load(&c.calls), 0);
    if (count >= 2 * grain)
        assert_true(atomic_load(&c.smallest) >= grain);
}

static void parallel_runs_every_index_once(void **state) {
    (void)state;
    static const int64_t counts[] = {-1, 0, 1, 7, 64, 1000}, grains[] = {-5, 0, 1, 10, 999, 5000};
    for (int threads = 1; threads <= 3; threads++) {
        fixture f;
        kelp_kernel_registry_options options = {.struct_size = sizeof options, .threads = threads};
        begin_with(&f, &options);
        const kelp_kernel_context *context = kelp_kernel_session_context(f.session);
        assert_int_equal(context->threads, threads);
        assert_int_equal(context->struct_size, sizeof *context);
        assert_int_equal(context->device.device_type, kDLCPU);
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            for (size_t k = 0; k < sizeof grains / sizeof *grains; k++)
                check_parallel(context, counts[i], grains[k]);
        end(&f);
    }
}

static void *blocks[2];
static kelp_code use_scratch(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    size_t size = (size_t)args[0].as.i;
    for (int i = 0; i < 2; i++) {
        blocks[i] = context->scratch(context, size);
        if (blocks[i] == NULL)
            return KELP_RESOURCE_EXHAUSTED;
        memset(blocks[i], i + 1, size);
    }
    return ((char *)blocks[0])[size - 1] == 1 ? KELP_OK : KELP_INTERNAL;
}

static void scratch_memory_is_used_again_by_the_next_call(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    const kelp_kernel *kernel = defined(&f, "use_scratch", "size: int64", use_scratch, 0);
    kelp_kernel_arg arg = {.kind = KELP_ARG_INT, .as.i = 1000};
    check_ok(kelp_kernel_call(kernel, f.session, &arg, 1));
    assert_int_equal((uintptr_t)blocks[0] % 64, 0);
    assert_int_equal((uintptr_t)blocks[1] % 64, 0);
    const void *first = blocks[0];
    for (int i = 0; i < 3; i++)
        check_ok(kelp_kernel_call(kernel, f.session, &arg, 1));
    assert_ptr_equal(blocks[0], first);
    end(&f);
}

typedef struct messages {
    char text[1024];
    int level, count;
} messages;

static void keep_message(void *userp, int level, const char *text) {
    messages *m = userp;
    snprintf(m->text, sizeof m->text, "%s", text);
    m->level = level;
    m->count++;
}

static void messages_of_kernels_are_logged(void **state) {
    (void)state;
    fixture f;
    messages m = {.level = -1};
    kelp_kernel_registry_options options = {
        .struct_size = sizeof options, .threads = 1, .log = keep_message, .log_userp = &m};
    begin_with(&f, &options);
    const kelp_kernel_context *context = kelp_kernel_session_context(f.session);
    context->log(context, 2, "hello");
    assert_string_equal(m.text, "hello");
    assert_int_equal(m.level, 2);
    assert_int_equal(m.count, 1);
    end(&f);
    begin(&f); /* no log */
    context = kelp_kernel_session_context(f.session);
    context->log(context, 2, "nobody");
    assert_int_equal(m.count, 1);
    end(&f);
}

static int released;
static void release_one(void *resource) {
    released += *(int *)resource;
}

static void a_resource_is_released_at_once_without_memory(void **state) {
    (void)state;
    fixture f;
    test_failing memory;
    int one = 1;
    test_failing_init(&memory, 0);
    kelp_kernel_registry_options options = {
        .struct_size = sizeof options, .threads = 1, .allocator = test_failing_allocator(&memory)};
    begin_with(&f, &options);
    const kelp_kernel_context *context = kelp_kernel_session_context(f.session);
    memory.fail_at = memory.calls + 1;
    released = 0;
    assert_false(context->own(context, release_one, &one));
    assert_int_equal(released, 1);
    assert_true(context->own(context, release_one, &one));
    assert_int_equal(released, 1);
    end(&f);
    assert_int_equal(released, 2);
    test_failing_check(&memory);
    test_failing_deinit(&memory);
}

static void sessions_are_for_known_devices(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int type;
    } rows[] = {{"cpu", kDLCPU},       {"cuda", kDLCUDA},   {"rocm", kDLROCM},
                {"vulkan", kDLVulkan}, {"metal", kDLMetal}, {"opencl", kDLOpenCL}};
    fixture f;
    kelp_kernel_session *session = NULL;
    begin(&f);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int stream = 0;
        kelp_device_config config = {.device = rows[i].name, .id = 3, .stream = &stream};
        check_ok(kelp_kernel_session_create(f.registry, &config, &session));
        const kelp_kernel_context *context = kelp_kernel_session_context(session);
        assert_int_equal(context->device.device_type, rows[i].type);
        assert_int_equal(context->device.device_id, 3);
        assert_ptr_equal(context->stream, &stream);
        kelp_kernel_session_destroy(session);
    }
    const kelp_device_config abacus = {.device = "abacus"};
    expect_failure(kelp_kernel_session_create(f.registry, &abacus, &session), KELP_INVALID_ARGUMENT,
                   "unknown device 'abacus': expected cpu, cuda");
    end(&f);
}

/* ---- asynchronous calls ---- */
static kelp_kernel_completion *completion;

static kelp_code begin_later(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    (void)args;
    completion = context->later(context);
    return completion != NULL && context->later(context) == NULL ? KELP_OK : KELP_INTERNAL;
}

/* Completes before it returns. */
static kelp_code end_early(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    context->complete(context->later(context), (kelp_code)args[0].as.i, NULL);
    return KELP_OK;
}

/* Is asynchronous, but has nothing to wait for. */
static kelp_code not_later(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    (void)context;
    (void)args;
    return KELP_OK;
}

static kelp_code cannot_be_later(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    (void)args;
    return context->later(context) == NULL ? KELP_OK : KELP_INTERNAL;
}

static void one_asynchronous_call_of_a_session_is_in_flight(void **state) {
    (void)state;
    fixture f;
    kelp_event *event = NULL;
    begin(&f);
    check_ok(kelp_event_create(kelp_allocator_system(), &event));
    const kelp_kernel *later = defined(&f, "later", "", begin_later, KELP_KERNEL_ASYNC);
    const kelp_kernel *now = defined(&f, "now", "", cannot_be_later, 0);
    const kelp_kernel_context *context = kelp_kernel_session_context(f.session);
    assert_int_equal(kelp_kernel_flags(later), KELP_KERNEL_ASYNC);
    check_ok(kelp_kernel_call(now, f.session, NULL, 0));
    check_ok(kelp_kernel_submit(later, f.session, NULL, 0, event));
    assert_false(kelp_event_done(event));
    expect_failure(kelp_kernel_submit(later, f.session, NULL, 0, NULL), KELP_FAILED_PRECONDITION,
                   "kernel 'later' is still in progress in this session");
    expect_failure(kelp_kernel_call(later, f.session, NULL, 0), KELP_FAILED_PRECONDITION,
                   "kernel 'later' is still in progress in this session");
    expect_failure(kelp_kernel_call(now, f.session, NULL, 0), KELP_FAILED_PRECONDITION,
                   "kernel 'later' is still in progress in this session");
    context->complete(completion, KELP_OK, NULL);
    assert_true(kelp_event_done(event));
    context->complete(completion, KELP_INTERNAL, "twice"); /* has no effect */
    check_ok(kelp_kernel_session_result(f.session));
    check_ok(kelp_kernel_call(now, f.session, NULL, 0));
    /* failures, with and without a message */
    check_ok(kelp_kernel_submit(later, f.session, NULL, 0, event));
    context->complete(completion, KELP_UNAVAILABLE, "the device was lost");
    expect_failure(kelp_kernel_session_result(f.session), KELP_UNAVAILABLE,
                   "kernel 'later' of library 'mine' failed: the device was lost");
    check_ok(kelp_kernel_session_result(f.session)); /* it is returned once */
    check_ok(kelp_kernel_submit(later, f.session, NULL, 0, NULL));
    context->complete(completion, KELP_OUT_OF_RANGE, NULL);
    expect_failure(kelp_kernel_session_result(f.session), KELP_OUT_OF_RANGE,
                   kelp_code_name(KELP_OUT_OF_RANGE));
    /* a text without a failure is not a message of a later failure */
    check_ok(kelp_kernel_submit(later, f.session, NULL, 0, NULL));
    context->complete(completion, KELP_OK, "all is well");
    check_ok(kelp_kernel_session_result(f.session));
    /* the next submission drops a result that nobody asked for */
    check_ok(kelp_kernel_submit(later, f.session, NULL, 0, NULL));
    context->complete(completion, KELP_UNAVAILABLE, "lost");
    check_ok(kelp_kernel_submit(later, f.session, NULL, 0, NULL));
    context->complete(completion, KELP_OK, NULL);
    check_ok(kelp_kernel_session_result(f.session));
    kelp_event_destroy(event);
    end(&f);
}

static void asynchronous_kernels_may_be_done_when_they_return(void **state) {
    (void)state;
    fixture f;
    kelp_event *event = NULL;
    kelp_kernel_arg arg = {.kind = KELP_ARG_INT, .as.i = KELP_OK};
    begin(&f);
    check_ok(kelp_event_create(kelp_allocator_system(), &event));
    const kelp_kernel *early = defined(&f, "early", "code: int64", end_early, KELP_KERNEL_ASYNC);
    const kelp_kernel *never = defined(&f, "never", "", not_later, KELP_KERNEL_ASYNC);
    check_ok(kelp_kernel_submit(early, f.session, &arg, 1, event));
    assert_true(kelp_event_done(event));
    check_ok(kelp_kernel_session_result(f.session));
    check_ok(kelp_kernel_call(early, f.session, &arg, 1));
    arg.as.i = KELP_UNAVAILABLE;
    expect_failure(kelp_kernel_call(early, f.session, &arg, 1), KELP_UNAVAILABLE, "'early'");
    check_ok(kelp_kernel_submit(never, f.session, NULL, 0, event));
    assert_true(kelp_event_done(event));
    check_ok(kelp_kernel_session_result(f.session));
    check_ok(kelp_kernel_call(never, f.session, NULL, 0));
    kelp_event_destroy(event);
    end(&f);
}

/* ---- registries ---- */
static void registries_list_their_libraries(void **state) {
    (void)state;
    fixture f;
    messages m = {.count = 0};
    kelp_kernel_library *library = NULL, *same = NULL;
    char path[4096];
    kelp_kernel_registry_options options = {.struct_size = sizeof options,
                                            .threads = 1,
                                            .search_path = folder,
                                            .log = keep_message,
                                            .log_userp = &m};
    begin_with(&f, &options);
    assert_int_equal(kelp_kernel_registry_count(f.registry), 1);
    assert_ptr_equal(kelp_kernel_registry_at(f.registry, 0), f.own);
    assert_null(kelp_kernel_registry_at(f.registry, 1));
    assert_string_equal(kelp_kernel_library_path(f.own), "");
    check_ok(kelp_kernel_registry_open(f.registry, "toolbox", &library));
    assert_ptr_equal(kelp_kernel_registry_at(f.registry, 1), library);
    check_ok(kelp_kernel_registry_open(f.registry, "toolbox", &same));
    assert_ptr_equal(library, same);
    snprintf(path, sizeof path, "%s/libtoolbox.so", folder); /* the same file by its path */
    check_ok(kelp_kernel_registry_open(f.registry, path, &same));
    assert_ptr_equal(library, same);
    assert_int_equal(kelp_kernel_registry_count(f.registry), 2);
    assert_null(kelp_kernel_library_at(library, kelp_kernel_library_count(library)));
    assert_string_equal(kelp_kernel_name(kelp_kernel_library_at(library, 0)), "add");
    assert_null(kelp_kernel_library_function(library, "no such function"));
    /* every library of the directory, and the reasons for the files that are none */
    assert_int_equal(m.count, 0);
    size_t count = kelp_kernel_registry_scan(f.registry);
    assert_true(count > 3);
    assert_int_equal(kelp_kernel_registry_count(f.registry), count);
    assert_int_equal(m.count, 1);
    assert_int_equal(m.level, 1);
    assert_non_null(strstr(m.text, ".so: "));
    end(&f);
}

static void definitions_are_complete(void **state) {
    (void)state;
    fixture f;
    const kelp_kernel *kernel = NULL;
    begin(&f);
    expect_failure(kelp_kernel_library_register(f.own, "f", NULL, NULL, false, &kernel),
                   KELP_INVALID_ARGUMENT, "kernel 'f' has no address");
    kelp_kernel_def def = {.name = "g", .fn = not_later};
    expect_failure(kelp_kernel_library_define(f.own, &def, &kernel), KELP_INVALID_ARGUMENT,
                   "kernel 'g' has no signature");
    def.signature = "a: ints"; /* only of operators */
    expect_failure(kelp_kernel_library_define(f.own, &def, &kernel), KELP_INVALID_ARGUMENT,
                   "kernel 'g'");
    def.signature = "";
    def.summary = "does nothing";
    check_ok(kelp_kernel_library_define(f.own, &def, &kernel));
    assert_string_equal(kelp_kernel_summary(kernel), "does nothing");
    assert_string_equal(kelp_kernel_param_at(kernel, 0).name, "");
    expect_failure(kelp_kernel_library_find(f.own, "h", &kernel), KELP_NOT_FOUND,
                   "library 'mine' has no kernel 'h': found 'g'");
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bare_functions_receive_any_number_of_integers_in_order),
        cmocka_unit_test(bare_functions_receive_floats_and_integers_in_order),
        cmocka_unit_test(bare_functions_receive_tensors_without_an_offset),
        cmocka_unit_test(bare_functions_fail_by_their_message),
        cmocka_unit_test(parallel_runs_every_index_once),
        cmocka_unit_test(scratch_memory_is_used_again_by_the_next_call),
        cmocka_unit_test(messages_of_kernels_are_logged),
        cmocka_unit_test(a_resource_is_released_at_once_without_memory),
        cmocka_unit_test(sessions_are_for_known_devices),
        cmocka_unit_test(one_asynchronous_call_of_a_session_is_in_flight),
        cmocka_unit_test(asynchronous_kernels_may_be_done_when_they_return),
        cmocka_unit_test(registries_list_their_libraries),
        cmocka_unit_test(definitions_are_complete),
    };
    folder = getenv("KERNEL_FOLDER");
    return folder ? cmocka_run_group_tests_name("calls", tests, NULL, NULL) : 2;
}
