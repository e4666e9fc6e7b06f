/* SPDX-License-Identifier: Apache-2.0 */
/* The helpers for NVIDIA's driver: calls to the driver, and errors if it is missing.
 */
#include <kelp/cuda.h>

#include "base/dl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

static const char *fake;

static int ask_fake(const char *name) {
    kelp_dl dl;
    check_ok(kelp_dl_open(fake, &dl));
    int (*function)(void);
    void *address = kelp_dl_symbol(&dl, name);
    memcpy(&function, &address, sizeof function);
    int answer = function();
    kelp_dl_close(&dl);
    return answer;
}

static void missing_driver_is_reported(void **state) {
    (void)state;
    kelp_cuda *cuda;
    setenv("KELP_CUDA_LIBRARY", "/nowhere/libcuda.so.1", 1);
    expect_failure(kelp_cuda_open(kelp_allocator_system(), &cuda), KELP_UNAVAILABLE,
                   "there is no NVIDIA driver");
    assert_null(cuda);
    setenv("KELP_CUDA_LIBRARY", "libm.so.6", 1);
    expect_failure(kelp_cuda_open(kelp_allocator_system(), &cuda), KELP_UNAVAILABLE,
                   "'libm.so.6' lacks cuInit: expected CUDA 11.4");
    setenv("KELP_CUDA_LIBRARY", fake, 1);
    setenv("FAKE_CUDA_INIT", "100", 1);
    expect_failure(kelp_cuda_open(kelp_allocator_system(), &cuda), KELP_UNAVAILABLE,
                   "NVIDIA's driver (CUDA 12.8) finds no GPU");
    setenv("FAKE_CUDA_INIT", "999", 1);
    expect_failure(kelp_cuda_open(kelp_allocator_system(), &cuda), KELP_UNAVAILABLE,
                   "cuInit failed: something else (999, CUDA_ERROR_OTHER)");
    unsetenv("FAKE_CUDA_INIT");
}

static void devices_are_described(void **state) {
    (void)state;
    kelp_cuda *cuda;
    kelp_cuda_device device;
    check_ok(kelp_cuda_open(kelp_allocator_system(), &cuda));
    assert_int_equal(kelp_cuda_driver_version(cuda), 12080);
    assert_int_equal(kelp_cuda_device_count(cuda), 1);
    check_ok(kelp_cuda_describe(cuda, 0, &device));
    assert_string_equal(device.name, "Fake 9000");
    assert_int_equal(device.compute_major * 10 + device.compute_minor, 86);
    expect_failure(kelp_cuda_describe(cuda, 1, &device), KELP_OUT_OF_RANGE,
                   "no GPU 1: expected 0 to 0");
    expect_failure(kelp_cuda_use(cuda, -1), KELP_OUT_OF_RANGE, "no GPU -1");
    setenv("FAKE_CUDA_FAILS", "cuDevicePrimaryCtxRetain", 1);
    expect_failure(kelp_cuda_use(cuda, 0), KELP_UNAVAILABLE, "cuDevicePrimaryCtxRetain failed");
    unsetenv("FAKE_CUDA_FAILS");
    setenv("FAKE_CUDA_FAILS", "cuCtxSetCurrent", 1);
    expect_failure(kelp_cuda_use(cuda, 0), KELP_UNAVAILABLE, "cuCtxSetCurrent failed");
    unsetenv("FAKE_CUDA_FAILS");
    check_ok(kelp_cuda_use(cuda, 0));
    check_ok(kelp_cuda_use(cuda, 0)); /* one context */
    assert_int_equal(ask_fake("fake_cuda_live"), 1);
    kelp_cuda_destroy(cuda);
    assert_int_equal(ask_fake("fake_cuda_live"), 0);
}

static void copies_between_host_and_device_are_exact(void **state) {
    (void)state;
    kelp_cuda *cuda;
    void *stream;
    void *a, *b, *second;
    size_t free_bytes, total_bytes;
    char out[6] = "";
    void *pinned;
    check_ok(kelp_cuda_open(kelp_allocator_system(), &cuda));
    check_ok(kelp_cuda_use(cuda, 0));
    check_ok(kelp_cuda_stream_create(cuda, &stream));
    check_ok(kelp_cuda_alloc(cuda, 6, &a));
    check_ok(kelp_cuda_alloc(cuda, 6, &b));
    second = b;
    check_ok(kelp_cuda_alloc_host(cuda, 6, &pinned));
    memcpy(pinned, "hello", 6);
    check_ok(kelp_cuda_upload(cuda, a, pinned, 6, stream));
    check_ok(kelp_cuda_fill(cuda, b, 0, 6, stream));
    check_ok(kelp_cuda_copy(cuda, b, a, 4, stream));
    check_ok(kelp_cuda_download(cuda, out, b, 6, stream));
    check_ok(kelp_cuda_stream_wait(cuda, stream));
    assert_string_equal(out, "hell");
    check_ok(kelp_cuda_fill(cuda, b, 'c', 1, stream)); /* one byte */
    check_ok(kelp_cuda_copy(cuda, a, b, 1, stream));
    check_ok(kelp_cuda_download(cuda, out, a, 1, stream));
    check_ok(kelp_cuda_stream_wait(cuda, stream));
    assert_string_equal(out, "cell");
    check_ok(kelp_cuda_memory(cuda, &free_bytes, &total_bytes));
    assert_true(free_bytes < total_bytes);
    expect_failure(kelp_cuda_alloc(cuda, (size_t)1 << 40, &b), KELP_RESOURCE_EXHAUSTED,
                   "cuMemAlloc failed: out of memory");
    assert_null(b);
    check_ok(kelp_cuda_alloc(cuda, 0, &b));
    check_ok(kelp_cuda_free(cuda, b));
    check_ok(kelp_cuda_free(cuda, a));
    check_ok(kelp_cuda_free(cuda, second));
    check_ok(kelp_cuda_free_host(cuda, pinned));
    kelp_cuda_stream_destroy(cuda, stream);
    kelp_cuda_destroy(cuda);
    assert_int_equal(ask_fake("fake_cuda_live"), 0);
}

static void events_measure_and_graphs_replay(void **state) {
    (void)state;
    kelp_cuda *cuda;
    void *stream;
    void *begin, *end;
    void *graph;
    void *a;
    float milliseconds = 0;
    char byte = 7;
    check_ok(kelp_cuda_open(kelp_allocator_system(), &cuda));
    check_ok(kelp_cuda_use(cuda, 0));
    check_ok(kelp_cuda_stream_create(cuda, &stream));
    check_ok(kelp_cuda_event_create(cuda, &begin));
    check_ok(kelp_cuda_event_create(cuda, &end));
    check_ok(kelp_cuda_event_record(cuda, begin, stream));
    check_ok(kelp_cuda_stream_wait_event(cuda, stream, begin));
    check_ok(kelp_cuda_event_record(cuda, end, stream));
    check_ok(kelp_cuda_event_wait(cuda, end));
    check_ok(kelp_cuda_event_elapsed(cuda, begin, end, &milliseconds));
    assert_true(milliseconds == 1.5f);
    check_ok(kelp_cuda_alloc(cuda, 1, &a));
    check_ok(kelp_cuda_capture_begin(cuda, stream));
    check_ok(kelp_cuda_upload(cuda, a, &byte, 1, stream));
    check_ok(kelp_cuda_capture_end(cuda, stream, &graph));
    assert_int_equal(ask_fake("fake_cuda_launched"), 0);
    check_ok(kelp_cuda_graph_launch(cuda, graph, stream));
    check_ok(kelp_cuda_graph_launch(cuda, graph, stream));
    assert_int_equal(ask_fake("fake_cuda_launched"), 2);
    kelp_cuda_graph_destroy(cuda, graph);
    /* No capture was begun. */
    expect_failure(kelp_cuda_capture_end(cuda, stream, &graph), KELP_UNAVAILABLE,
                   "cuStreamEndCapture failed");
    assert_null(graph);
    kelp_cuda_graph_destroy(cuda, graph);
    check_ok(kelp_cuda_free(cuda, a));
    kelp_cuda_event_destroy(cuda, begin);
    kelp_cuda_event_destroy(cuda, end);
    kelp_cuda_stream_destroy(cuda, stream);
    kelp_cuda_destroy(cuda);
    assert_int_equal(ask_fake("fake_cuda_live"), 0);
}

/* ---- failures of the driver ---- */
static kelp_cuda *open_cuda;
static void *stream_of_test, *block;

static kelp_status *describe(void) {
    kelp_cuda_device device;
    return kelp_cuda_describe(open_cuda, 0, &device);
}
static kelp_status *alloc_device(void) {
    void *out;
    return kelp_cuda_alloc(open_cuda, 8, &out);
}
static kelp_status *alloc_host(void) {
    void *out;
    return kelp_cuda_alloc_host(open_cuda, 8, &out);
}
static kelp_status *free_device(void) {
    return kelp_cuda_free(open_cuda, block);
}
static kelp_status *free_host(void) {
    return kelp_cuda_free_host(open_cuda, block);
}
static kelp_status *memory(void) {
    size_t a, b;
    return kelp_cuda_memory(open_cuda, &a, &b);
}
static kelp_status *upload(void) {
    return kelp_cuda_upload(open_cuda, block, "abc", 3, stream_of_test);
}
static kelp_status *download(void) {
    char bytes[3];
    return kelp_cuda_download(open_cuda, bytes, block, 3, stream_of_test);
}
static kelp_status *copy(void) {
    return kelp_cuda_copy(open_cuda, block, (char *)block + 4, 3, stream_of_test);
}
static kelp_status *fill(void) {
    return kelp_cuda_fill(open_cuda, block, 1, 3, stream_of_test);
}
static kelp_status *create_stream(void) {
    void *out = block;
    kelp_status *status = kelp_cuda_stream_create(open_cuda, &out);
    assert_null(out);
    return status;
}
static kelp_status *wait_for_stream(void) {
    return kelp_cuda_stream_wait(open_cuda, stream_of_test);
}
static kelp_status *create_event(void) {
    void *out = block;
    kelp_status *status = kelp_cuda_event_create(open_cuda, &out);
    assert_null(out);
    return status;
}
static kelp_status *record_event(void) {
    return kelp_cuda_event_record(open_cuda, block, stream_of_test);
}
static kelp_status *wait_for_event(void) {
    return kelp_cuda_event_wait(open_cuda, block);
}
static kelp_status *stream_waits(void) {
    return kelp_cuda_stream_wait_event(open_cuda, stream_of_test, block);
}
static kelp_status *elapsed(void) {
    float milliseconds;
    return kelp_cuda_event_elapsed(open_cuda, block, stream_of_test, &milliseconds);
}
static kelp_status *begin_capture(void) {
    return kelp_cuda_capture_begin(open_cuda, stream_of_test);
}
static kelp_status *capture(void) {
    void *graph = block;
    unsetenv("FAKE_CUDA_FAILS");
    check_ok(kelp_cuda_capture_begin(open_cuda, stream_of_test));
    setenv("FAKE_CUDA_FAILS", "cuGraphInstantiateWithFlags", 1);
    kelp_status *status = kelp_cuda_capture_end(open_cuda, stream_of_test, &graph);
    assert_null(graph);
    return status;
}
static kelp_status *launch(void) {
    return kelp_cuda_graph_launch(open_cuda, block, stream_of_test);
}

static void failures_of_the_driver_are_reported(void **state) {
    (void)state;
    static const struct {
        kelp_status *(*call)(void);
        const char *function, *message;
    } rows[] = {{describe, "cuDeviceGet", "cuDeviceGet failed"},
                {describe, "cuDeviceGetName", "cuDeviceGetName failed"},
                {describe, "cuDeviceTotalMem_v2", "cuDeviceTotalMem_v2 failed"},
                {describe, "cuDeviceGetAttribute", "cuDeviceGetAttribute failed"},
                {alloc_device, "cuMemAlloc_v2", "cuMemAlloc failed"},
                {alloc_host, "cuMemAllocHost_v2", "cuMemAllocHost failed"},
                {free_device, "cuMemFree_v2", "cuMemFree failed"},
                {free_host, "cuMemFreeHost", "cuMemFreeHost failed"},
                {memory, "cuMemGetInfo_v2", "cuMemGetInfo failed"},
                {upload, "cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync failed"},
                {download, "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoHAsync failed"},
                {copy, "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoDAsync failed"},
                {fill, "cuMemsetD8Async", "cuMemsetD8Async failed"},
                {create_stream, "cuStreamCreate", "cuStreamCreate failed"},
                {wait_for_stream, "cuStreamSynchronize", "cuStreamSynchronize failed"},
                {create_event, "cuEventCreate", "cuEventCreate failed"},
                {record_event, "cuEventRecord", "cuEventRecord failed"},
                {wait_for_event, "cuEventSynchronize", "cuEventSynchronize failed"},
                {stream_waits, "cuStreamWaitEvent", "cuStreamWaitEvent failed"},
                {elapsed, "cuEventElapsedTime", "cuEventElapsedTime failed"},
                {begin_capture, "cuStreamBeginCapture_v2", "cuStreamBeginCapture failed"},
                {capture, "cuGraphInstantiateWithFlags", "cuGraphInstantiate failed"},
                {launch, "cuGraphLaunch", "cuGraphLaunch failed"}};
    check_ok(kelp_cuda_open(kelp_allocator_system(), &open_cuda));
    check_ok(kelp_cuda_use(open_cuda, 0));
    check_ok(kelp_cuda_stream_create(open_cuda, &stream_of_test));
    check_ok(kelp_cuda_alloc(open_cuda, 8, &block));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv("FAKE_CUDA_FAILS", rows[i].function, 1);
        expect_failure(rows[i].call(), KELP_UNAVAILABLE, rows[i].message);
    }
    unsetenv("FAKE_CUDA_FAILS");
    check_ok(kelp_cuda_free(open_cuda, block));
    kelp_cuda_stream_destroy(open_cuda, stream_of_test);
    kelp_cuda_destroy(open_cuda);
    assert_int_equal(ask_fake("fake_cuda_live"), 0);
    static const char *const opening[] = {"cuInit", "cuDeviceGetCount"};
    for (size_t i = 0; i < 2; i++) {
        setenv("FAKE_CUDA_FAILS", opening[i], 1);
        expect_failure(kelp_cuda_open(kelp_allocator_system(), &open_cuda), KELP_UNAVAILABLE,
                       opening[i]);
    }
    unsetenv("FAKE_CUDA_FAILS");
}

/* The driver rejects them, and has no context to release. */
static void nothing_is_transferred_or_destroyed_without_need(void **state) {
    (void)state;
    kelp_cuda *cuda;
    void *out = &cuda;
    check_ok(kelp_cuda_open(kelp_allocator_system(), &cuda));
    check_ok(kelp_cuda_upload(cuda, NULL, NULL, 0, NULL));
    check_ok(kelp_cuda_download(cuda, NULL, NULL, 0, NULL));
    check_ok(kelp_cuda_copy(cuda, NULL, NULL, 0, NULL));
    check_ok(kelp_cuda_fill(cuda, NULL, 1, 0, NULL));
    check_ok(kelp_cuda_alloc(cuda, 0, &out));
    assert_null(out);
    out = &cuda;
    check_ok(kelp_cuda_alloc_host(cuda, 0, &out));
    assert_null(out);
    check_ok(kelp_cuda_free(cuda, NULL));
    check_ok(kelp_cuda_free_host(cuda, NULL));
    kelp_cuda_stream_destroy(cuda, NULL);
    kelp_cuda_event_destroy(cuda, NULL);
    kelp_cuda_graph_destroy(cuda, NULL);
    assert_int_equal(ask_fake("fake_cuda_live"), 0);
    kelp_cuda_destroy(cuda);
    kelp_cuda_destroy(NULL);
    assert_int_equal(ask_fake("fake_cuda_live"), 0);
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    fake = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_driver_is_reported),
        cmocka_unit_test(devices_are_described),
        cmocka_unit_test(copies_between_host_and_device_are_exact),
        cmocka_unit_test(events_measure_and_graphs_replay),
        cmocka_unit_test(failures_of_the_driver_are_reported),
        cmocka_unit_test(nothing_is_transferred_or_destroyed_without_need),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
