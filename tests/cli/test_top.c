/* SPDX-License-Identifier: Apache-2.0 */
/* The table of `kelp top`: metrics become rates, and rows are in order. */
#include "base/checked.h"
#include "cli/top/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char metrics[] =
    "# HELP nv_inference_request_success Successful inference requests\n"
    "nv_cpu_utilization 0.25\n"
    "nv_cpu_memory_used_bytes 1048576\n"
    "nv_cpu_memory_total_bytes 4194304\n"
    "nv_inference_request_success{model=\"a\",version=\"1\"} 30\n"
    "nv_inference_request_success{model=\"b\",version=\"1\"} 10\n"
    "nv_inference_request_success{version=\"2\",model=\"b\"} 20\n"
    "nv_inference_request_success{model=\"absent\",version=\"1\"} 7\n"
    "nv_inference_request_failure{model=\"a\",version=\"1\",reason=\"OTHER\"} 4\n"
    "nv_inference_request_failure{model=\"a\",version=\"1\",reason=\"a \\\"b\\\" c\"} 6\n"
    "nv_inference_count{model=\"a\",version=\"1\"} 60\n"
    "nv_inference_exec_count{model=\"a\",version=\"1\"} 15\n"
    "nv_inference_request_duration_us{model=\"a\",version=\"1\"} 6000\n"
    "nv_inference_request_duration_us{model=\"b\",version=\"1\"} 90000\n"
    "nv_inference_queue_duration_us{model=\"a\",version=\"1\"} 1500\n"
    "nv_inference_compute_infer_duration_us{model=\"a\",version=\"1\"} 3000\n"
    "nv_inference_pending_request_count{model=\"b\",version=\"2\"} 3\n"
    "nv_inference_request_success{model=\"a\",version=\"1\"} x\n"
    "other{model=\"a\",version=\"1\"} 1000\n"
    "nv_inference_count{model=\"b\"\n";

static void shown(kelp_top_order order, size_t rows, size_t first, size_t width,
                  const char *expected) {
    kelp_top_model before_models[] = {{.name = "a", .version = "1"}},
                   models[] = {
                       {.name = "b", .version = "2", .state = "READY", .reason = ""},
                       {.name = "a", .version = "1", .state = "READY", .reason = ""},
                       {.name = "b", .version = "1", .state = "UNAVAILABLE", .reason = "unloaded"}};
    kelp_top_sample before = {.models = before_models, .count = 1},
                    now = {.server = "kelp 1",
                           .models = models,
                           .count = KELP_COUNT(models),
                           .time_ns = 2000000000};
    kelp_buf text;
    before_models[0].counters[KELP_TOP_SUCCESS] = 10;
    before_models[0].counters[KELP_TOP_INFERENCES] = 100; /* it was loaded again */
    kelp_top_parse_metrics(KELP_STR(metrics), &now);
    const kelp_top_view view = {.url = "http://x",
                                .before = &before,
                                .now = &now,
                                .order = order,
                                .rows = rows,
                                .first = first,
                                .width = width};
    kelp_buf_init(&text, kelp_allocator_system());
    assert_null(kelp_top_put_view(&view, &text));
    assert_string_equal(kelp_buf_cstr(&text), expected);
    kelp_buf_deinit(&text);
}

#define SUMMARY                                                           \
    "kelp 1 at http://x: 3 models, 25.0 requests per second, 3 pending\n" \
    "CPU 25 %, memory 1.0 MiB of 4.0 MiB\n"
#define HEADS                                                                                 \
    "MODEL  VERSION  STATE        REQ/S  FAIL/S  INF/S  LATENCY   QUEUE    COMPUTE   BATCH  " \
    "PENDING\n"
#define A1 \
    "a      1        READY        10.0   5.0     30.0   300.0 us  75.0 us  150.0 us  4.0    0\n"
#define B1                                                                                         \
    "b      1        UNAVAILABLE  5.0    0.0     0.0    9.00 ms   -        -         0.0    0    " \
    "    unloaded\n"
#define B2 \
    "b      2        READY        10.0   0.0     0.0    -         -        -         0.0    3\n"

static void rows_are_in_order(void **state) {
    (void)state;
    shown(KELP_TOP_BY_NAME, 0, 0, 0, SUMMARY HEADS A1 B1 B2);
    shown(KELP_TOP_BY_REQUESTS, 0, 0, 0, SUMMARY HEADS A1 B2 B1);
    shown(KELP_TOP_BY_LATENCY, 0, 0, 0, SUMMARY HEADS B1 A1 B2);
    shown(KELP_TOP_BY_PENDING, 0, 0, 0, SUMMARY HEADS B2 A1 B1);
}

#define KEYS(order) "q quit  s sort (" order ")  space pause  up/down scroll\n"

static void rows_fit_the_terminal(void **state) {
    (void)state;
    shown(KELP_TOP_BY_NAME, 5, 1, 14,
          "kelp 1 at http\nCPU 25 %, memo\nMODEL  VERSION\nb      1\nq quit  s sort\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_in_order),
        cmocka_unit_test(rows_fit_the_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
