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
    setenv("FAKE_CUDA_RETAIN", "999", 1);
    expect_failure(kelp_cuda_use(cuda, 0), KELP_UNAVAILABLE, "cuDevicePrimaryCtxRetain failed");
    unsetenv("FAKE_CUDA_RETAIN");
    setenv("FAKE_CUDA_SET", "999", 1);
    expect_failure(kelp_cuda_use(cuda, 0), KELP_UNAVAILABLE, "cuCtxSetCurrent failed");
    unsetenv("FAKE_CUDA_SET");
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

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    fake = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_driver_is_reported),
        cmocka_unit_test(devices_are_described),
        cmocka_unit_test(copies_between_host_and_device_are_exact),
        cmocka_unit_test(events_measure_and_graphs_replay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
