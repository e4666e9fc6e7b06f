/* SPDX-License-Identifier: Apache-2.0 */
/* The layer under the TensorRT provider without NVIDIA's library: tables, the objects that the
 * library calls, and the errors if it is missing. */
#include "tensorrt/call.h"

#include "base/alloc.h"
#include "base/sync/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"
#include "support/failing_allocator.h"

/* Calls through the table at the start of the object, like a C++ caller. */
#define SLOT(object, slot) ((*(void *const *const *)(const void *)(object))[slot])

static char *formatted(const kelp_status *status) {
    static char text[8192];
    kelp_status_format(status, text, sizeof text);
    return text;
}

static void versions_select_their_table(void **state) {
    (void)state;
    trt_flavor flavor;
    int major, minor, patch;
    trt_split_version(10701, &flavor, &major, &minor, &patch);
    assert_int_equal(flavor, TRT_FLAVOR_RTX);
    assert_int_equal(major * 10000 + minor * 100 + patch, 10701);
    trt_split_version(110400, &flavor, &major, &minor, &patch);
    assert_int_equal(flavor, TRT_FLAVOR_ENTERPRISE);
    assert_int_equal(major, 11);
    trt_split_version(8601, &flavor, &major, &minor, &patch);
    assert_int_equal(flavor, TRT_FLAVOR_ENTERPRISE);
    assert_int_equal(major * 100 + minor * 10 + patch, 861);
    assert_string_equal(trt_methods_for(10701)->name, "rtx-1.7");
    assert_string_equal(trt_methods_for(10599)->name, "rtx-1.5");
    assert_string_equal(trt_methods_for(110400)->name, "enterprise-11.4");
    assert_null(trt_methods_for(10400));
    assert_null(trt_methods_for(10800));
    assert_null(trt_methods_for(110300));
    assert_null(trt_methods_for(8601));
}

/* Slots read from NVIDIA's headers, to find shifted tables. */
static void tables_have_known_slots(void **state) {
    (void)state;
    const trt_methods *rtx = trt_methods_named("rtx-1.7"), *old = trt_methods_named("rtx-1.5"),
                      *enterprise = trt_methods_named("enterprise-11.4");
    assert_int_equal(trt_methods_count(), 4);
    for (size_t i = 0; i < trt_methods_count(); i++) {
        const trt_methods *m = trt_methods_at(i);
        assert_int_equal(m->slots[TRT_M_network_add_input], 2);
        assert_int_equal(m->slots[TRT_M_builder_create_network_v2], 6);
        assert_int_equal(m->slots[TRT_M_builder_build_serialized_network], 11);
        assert_int_equal(m->slots[TRT_M_layer_get_output], 8);
        assert_int_equal(m->slots[TRT_M_parser_parse], 0); /* without a destructor before it */
    }
    assert_true(trt_has(rtx, TRT_M_engine_create_weights_manager));
    assert_false(trt_has(old, TRT_M_engine_create_weights_manager));
    assert_true(trt_has(rtx, TRT_M_runtime_cache_serialize));
    assert_false(trt_has(enterprise, TRT_M_runtime_cache_serialize));
    assert_true(trt_has_value(rtx, "TRT_COMPUTE_CAPABILITY_SM120"));
    assert_false(trt_has_value(enterprise, "TRT_COMPUTE_CAPABILITY_SM120"));
    assert_true(trt_has_value(enterprise, "TRT_DATA_TYPE_FLOAT"));
    assert_string_equal(trt_method_name(TRT_M_network_add_input), "INetworkDefinition::addInput");
}

/* ---- messages ---- */
typedef struct heard {
    int count;
    trt_severity last;
} heard;

static void hear(void *userp, trt_severity severity, const char *text) {
    heard *h = userp;
    assert_non_null(text);
    h->count++;
    h->last = severity;
}

static void say(trt_log *log, trt_severity severity, const char *text) {
    typedef void (*fn)(void *, int32_t, const char *);
    trt_logger *logger = trt_log_logger(log);
    TRT_AS(fn, SLOT(logger, TRT_SLOT_LOGGER_LOG))(logger, severity, text);
}

static bool record(trt_log *log, trt_error_code code, const char *text) {
    typedef bool (*fn)(void *, int32_t, const char *);
    trt_error_recorder *recorder = trt_log_recorder(log);
    return TRT_AS(fn, SLOT(recorder, TRT_SLOT_ERROR_RECORDER_REPORT_ERROR))(recorder, code, text);
}

static void messages_become_the_cause_of_errors(void **state) {
    (void)state;
    trt_log *log;
    heard h = {0};
    check_ok(trt_log_create(kelp_allocator_system(), TRT_SEVERITY_INFO, hear, &h, &log));
    say(log, TRT_SEVERITY_VERBOSE, "chatter");
    assert_int_equal(h.count, 0);
    say(log, TRT_SEVERITY_INFO, "news");
    say(log, TRT_SEVERITY_WARNING, "beware");
    assert_int_equal(h.count, 2);
    assert_int_equal(h.last, TRT_SEVERITY_WARNING);
    assert_false(trt_log_has_errors(log));
    char *warnings;
    check_ok(trt_log_warnings(log, &warnings));
    assert_string_equal(warnings, "beware");
    kelp_free_string(kelp_allocator_system(), warnings);
    /* The same message through the logger, with a location before it, is reported once. */
    say(log, TRT_SEVERITY_ERROR, "[graph.cpp:7] bad shape");
    assert_true(record(log, TRT_ERROR_CODE_INVALID_ARGUMENT, "bad shape"));
    assert_true(record(log, TRT_ERROR_CODE_INVALID_STATE, "and worse"));
    kelp_status *status = trt_log_failure(log, KELP_INTERNAL, "cannot %s", "build");
    assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
    assert_string_equal(formatted(status), "cannot build: [graph.cpp:7] bad shape; and worse");
    kelp_status_free(status);
    status = trt_log_failure(log, KELP_INTERNAL, "cannot run");
    assert_int_equal(kelp_status_code(status), KELP_INTERNAL);
    assert_string_equal(formatted(status), "cannot run (the library gave no reason)");
    kelp_status_free(status);
    trt_log_destroy(log);
}

static void recorder_implements_the_interface_of_the_library(void **state) {
    (void)state;
    typedef int32_t (*count_fn)(const void *);
    typedef int32_t (*code_fn)(const void *, int32_t);
    typedef const char *(*text_fn)(const void *, int32_t);
    typedef void (*clear_fn)(void *);
    typedef trt_interface_info (*info_fn)(const void *);
    trt_log *log;
    check_ok(trt_log_create(kelp_allocator_system(), TRT_SEVERITY_INFO, NULL, NULL, &log));
    trt_error_recorder *r = trt_log_recorder(log);
    trt_interface_info info = TRT_AS(info_fn, SLOT(r, 1))(r);
    assert_string_equal(info.kind, "IErrorRecorder");
    assert_int_equal(info.major, 1);
    assert_int_equal(TRT_AS(count_fn, SLOT(r, 0))(r), TRT_API_LANGUAGE_CPP);
    record(log, TRT_ERROR_CODE_FAILED_ALLOCATION, "no room");
    say(log, TRT_SEVERITY_ERROR, "not recorded");
    record(log, TRT_ERROR_CODE_INVALID_CONFIG, "no way");
    assert_int_equal(TRT_AS(count_fn, SLOT(r, TRT_SLOT_ERROR_RECORDER_GET_NB_ERRORS))(r), 2);
    assert_int_equal(TRT_AS(code_fn, SLOT(r, TRT_SLOT_ERROR_RECORDER_GET_ERROR_CODE))(r, 1),
                     TRT_ERROR_CODE_INVALID_CONFIG);
    assert_string_equal(TRT_AS(text_fn, SLOT(r, TRT_SLOT_ERROR_RECORDER_GET_ERROR_DESC))(r, 0),
                        "no room");
    assert_string_equal(TRT_AS(text_fn, SLOT(r, TRT_SLOT_ERROR_RECORDER_GET_ERROR_DESC))(r, 9), "");
    assert_int_equal(TRT_AS(count_fn, SLOT(r, TRT_SLOT_ERROR_RECORDER_INC_REF_COUNT))(r), 1);
    assert_int_equal(TRT_AS(count_fn, SLOT(r, TRT_SLOT_ERROR_RECORDER_DEC_REF_COUNT))(r), 0);
    TRT_AS(clear_fn, SLOT(r, TRT_SLOT_ERROR_RECORDER_CLEAR))(r);
    assert_int_equal(TRT_AS(count_fn, SLOT(r, TRT_SLOT_ERROR_RECORDER_GET_NB_ERRORS))(r), 0);
    /* Errors that the library cleared are still reported. */
    kelp_status *status = trt_log_failure(log, KELP_INTERNAL, "it");
    assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
    assert_string_equal(formatted(status), "it: no room; not recorded; no way");
    kelp_status_free(status);
    trt_log_destroy(log);
}

static void *talk(void *userp) {
    for (int i = 0; i < 200; i++) {
        say(userp, TRT_SEVERITY_ERROR, "one");
        record(userp, TRT_ERROR_CODE_INVALID_STATE, "two");
        (void)trt_log_has_errors(userp);
    }
    return NULL;
}

static void recorder_accepts_concurrent_messages(void **state) {
    (void)state;
    trt_log *log;
    pthread_t threads[4];
    check_ok(trt_log_create(kelp_allocator_system(), TRT_SEVERITY_INFO, NULL, NULL, &log));
    for (int i = 0; i < 4; i++)
        check_ok(kelp_thread_start(&threads[i], "talk", talk, log));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    kelp_status *status = trt_log_failure(log, KELP_INTERNAL, "all");
    /* Of 1600 messages, 512 are kept. */
    assert_non_null(strstr(formatted(status), "and 1088 more"));
    kelp_status_free(status);
    trt_log_destroy(log);
}

/* ---- callbacks ---- */
static bool stop_at_two(void *userp, const char *phase, int32_t step) {
    (void)userp, (void)phase;
    return step < 2;
}

static void progress_monitor_cancels(void **state) {
    (void)state;
    typedef bool (*step_fn)(void *, const char *, int32_t);
    trt_progress progress;
    trt_progress_init(&progress);
    trt_progress_monitor *p = TRT_PROGRESS(&progress);
    step_fn step = TRT_AS(step_fn, SLOT(p, TRT_SLOT_PROGRESS_MONITOR_STEP_COMPLETE));
    assert_true(step(p, "a", 5));
    progress.step = stop_at_two;
    assert_true(step(p, "a", 1));
    assert_false(step(p, "a", 2));
    assert_true(atomic_load(&progress.cancelled));
    assert_false(step(p, "a", 1)); /* permanently */
}

static void *give(void *userp, const char *tensor, void *current, uint64_t size, uint64_t alignment,
                  trt_stream stream) {
    (void)current, (void)alignment, (void)stream;
    assert_string_equal(tensor, "y");
    *(uint64_t *)userp = size;
    return userp;
}

static void output_allocator_is_called(void **state) {
    (void)state;
    typedef void *(*async_fn)(void *, const char *, void *, uint64_t, uint64_t, void *);
    typedef void *(*plain_fn)(void *, const char *, void *, uint64_t, uint64_t);
    uint64_t size = 0;
    trt_output_memory memory;
    trt_output_memory_init(trt_methods_named("rtx-1.7"), &memory);
    memory.reallocate = give;
    memory.userp = &size;
    trt_output_allocator *o = TRT_OUTPUT_MEMORY(&memory);
    assert_ptr_equal(TRT_AS(async_fn, SLOT(o, 4))(o, "y", NULL, 12, 1, NULL), &size);
    assert_int_equal(size, 12);
    /* The other library has one more method before it. */
    trt_output_memory_init(trt_methods_named("enterprise-11.4"), &memory);
    memory.reallocate = give;
    memory.userp = &size;
    assert_ptr_equal(TRT_AS(plain_fn, SLOT(o, 4))(o, "y", NULL, 13, 1), &size);
    assert_ptr_equal(TRT_AS(async_fn, SLOT(o, 5))(o, "y", NULL, 14, 1, NULL), &size);
    assert_int_equal(size, 14);
}

/* ---- a missing library ---- */
static void all_searched_paths_are_listed(void **state) {
    (void)state;
    trt_library *library = NULL;
    trt_library_options options = {.path = "/nowhere/libtensorrt_rtx.so.1"};
    kelp_status *status = trt_library_open(kelp_allocator_system(), &options, &library);
    assert_null(library);
    assert_int_equal(kelp_status_code(status), KELP_NOT_FOUND);
    assert_non_null(strstr(formatted(status), "/nowhere/libtensorrt_rtx.so.1: no such file"));
    assert_null(strchr(strchr(kelp_status_message(status), '\n') + 1, '\n'));
    kelp_status_free(status);
    /* A different library, then directories, then the search path of the loader. */
    options.path = "libm.so.6";
    status = trt_library_open(kelp_allocator_system(), &options, &library);
    assert_non_null(
        strstr(formatted(status), "it is not TensorRT's library: it lacks getInferLibVersion"));
    kelp_status_free(status);
    options = (trt_library_options){.search_path = "/nowhere:/elsewhere", .wanted = TRT_WANT_RTX};
    status = trt_library_open(kelp_allocator_system(), &options, &library);
    if (status != NULL) {
        assert_non_null(strstr(formatted(status), "/nowhere/{,lib/,tensorrt_rtx_libs/}lib"));
        assert_non_null(strstr(formatted(status), "/elsewhere/{"));
        assert_non_null(strstr(formatted(status), "\nlibtensorrt_rtx.so.1: cannot load"));
        assert_null(strstr(formatted(status), "libnvinfer"));
        kelp_status_free(status);
    } else { /* installed on this machine */
        assert_non_null(strstr(library->tried, "/elsewhere/{"));
        trt_library_destroy(library);
    }
}

/* ---- memory ---- */
static kelp_status *log_and_look(kelp_allocator allocator) {
    trt_log *log = NULL;
    trt_library *library = NULL;
    char *warnings = NULL;
    KELP_TRY(trt_log_create(allocator, TRT_SEVERITY_INFO, NULL, NULL, &log));
    /* A message that cannot be stored is counted. */
    say(log, TRT_SEVERITY_WARNING, "beware");
    record(log, TRT_ERROR_CODE_INVALID_STATE, "bad");
    kelp_status *status = trt_log_warnings(log, &warnings);
    if (status == NULL) {
        bool all = strcmp(warnings, "beware\nbad") == 0;
        if (!all)
            assert_non_null(strstr(warnings, "and "));
        kelp_free_string(allocator, warnings);
        if (!all)
            status = kelp_status_oom();
    }
    trt_log_destroy(log);
    if (status != NULL)
        return status;
    trt_library_options options = {.path = "/nowhere/libtensorrt_rtx.so.1"};
    status = trt_library_open(allocator, &options, &library);
    assert_null(library);
    if (kelp_status_code(status) != KELP_NOT_FOUND)
        return status;
    kelp_status_free(status);
    return NULL;
}

static void failed_allocations_are_reported(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        test_failing_init(&memory, n);
        kelp_status *status = log_and_look(test_failing_allocator(&memory));
        if (test_failing_ended(&memory, status))
            break;
        assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
        kelp_status_free(status);
    }
}

/* ---- values ---- */
static void dims_and_types_convert(void **state) {
    (void)state;
    trt_dims d;
    char text[64];
    const int64_t shape[9] = {-1, 3, 1234567890123, 1, 1, 1, 1, 1, 1};
    check_ok(trt_dims_from(3, shape, &d));
    assert_int_equal(trt_dims_format(&d, text, sizeof text), strlen("[-1,3,1234567890123]"));
    assert_string_equal(text, "[-1,3,1234567890123]");
    kelp_status *status = trt_dims_from(9, shape, &d);
    assert_int_equal(kelp_status_code(status), KELP_OUT_OF_RANGE);
    kelp_status_free(status);
    for (trt_data_type type = 0; type <= TRT_DATA_TYPE_E8M0; type++) {
        kelp_dtype dtype;
        trt_data_type back = -1;
        check_ok(trt_data_type_to(type, &dtype));
        check_ok(trt_data_type_from(dtype, &back));
        assert_int_equal(back, type);
    }
    trt_data_type none;
    status = trt_data_type_from(KELP_STRING, &none);
    assert_int_equal(kelp_status_code(status), KELP_UNIMPLEMENTED);
    kelp_status_free(status);
}

int main(void) {
    /* An installed library must not be found. */
    unsetenv("KELP_TENSORRT_LIBRARY");
    unsetenv("KELP_TENSORRT_PATH");
    unsetenv("KELP_TENSORRT_TABLE");
    unsetenv("VIRTUAL_ENV");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_select_their_table),
        cmocka_unit_test(tables_have_known_slots),
        cmocka_unit_test(messages_become_the_cause_of_errors),
        cmocka_unit_test(recorder_implements_the_interface_of_the_library),
        cmocka_unit_test(recorder_accepts_concurrent_messages),
        cmocka_unit_test(progress_monitor_cancels),
        cmocka_unit_test(output_allocator_is_called),
        cmocka_unit_test(all_searched_paths_are_listed),
        cmocka_unit_test(failed_allocations_are_reported),
        cmocka_unit_test(dims_and_types_convert),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
