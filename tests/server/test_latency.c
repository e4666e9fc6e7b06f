/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of durations: the error of quantiles over the whole range. */
#include "base/alloc.h"
#include "server/metrics/exposition.h"
#include "server/metrics/latency.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/failing_allocator.h"

static kelp_latency *make(const char *quantiles) {
    kelp_settings settings;
    kelp_latency_rules rules;
    kelp_latency *latency = NULL;
    kelp_settings_init(&settings, kelp_allocator_system());
    assert_null(kelp_settings_set(&settings, "", "summary_latencies", "true"));
    assert_null(kelp_settings_set(&settings, "", "summary_quantiles", quantiles));
    assert_null(kelp_latency_rules_read(&settings, &rules));
    kelp_settings_deinit(&settings);
    assert_null(
        kelp_latency_create(kelp_allocator_system(), &rules, &(kelp_latency_options){0}, &latency));
    return latency;
}

/* Returns the number after a key in the text. */
static double written(kelp_latency *latency, const char *key) {
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_latency_write(&text, KELP_FORMAT_TEXT, &(kelp_latency_row){latency, "{m=\"a\"}"}, 1);
    const char *at = strstr(kelp_buf_cstr(&text), key);
    if (!at)
        fail_msg("expected '%s' in: %s", key, text.data);
    double value = strtod(at + strlen(key), NULL);
    kelp_buf_deinit(&text);
    return value;
}

static void near(double found, double expected) {
    if (!(found >= expected * 0.98 && found <= expected * 1.02))
        fail_msg("expected about %g, found %g", expected, found);
}

static void errors_of_quantiles_are_below_the_limit(void **state) {
    static const char family[] = "nv_inference_queue_summary_us";
    (void)state;
    for (uint64_t unit_ns = 1000; unit_ns <= 1000000000; unit_ns *= 10) {
        kelp_latency *latency = make("0:0,0.25:0,0.5:0.05,0.9:0.01,1:0");
        for (uint64_t i = 1000; i >= 1; i--)
            kelp_latency_add(latency, KELP_LATENCY_QUEUE, i * unit_ns);
        static const double shares[] = {0, 0.25, 0.5, 0.9, 1};
        for (size_t i = 0; i < 5; i++) {
            char key[128];
            snprintf(key, sizeof key, "%s{m=\"a\",quantile=\"%g\"} ", family, shares[i]);
            double rank = shares[i] > 0 ? shares[i] * 1000 : 1;
            near(written(latency, key), rank * (double)unit_ns / 1000);
        }
        assert_true(written(latency, "nv_inference_queue_summary_us_count{m=\"a\"} ") == 1000);
        assert_true(written(latency, "nv_inference_queue_summary_us_sum{m=\"a\"} ") ==
                    500500.0 * (double)unit_ns / 1000);
        kelp_latency_destroy(latency);
    }
}

/* Zero, and the longest duration. */
static void extreme_durations_are_counted(void **state) {
    (void)state;
    kelp_latency *latency = make("1:0");
    kelp_latency_add(latency, KELP_LATENCY_REQUEST, 0);
    assert_true(written(latency, "nv_inference_request_summary_us{m=\"a\",quantile=\"1\"} ") <
                0.001);
    kelp_latency_add(latency, KELP_LATENCY_REQUEST, UINT64_MAX);
    assert_true(written(latency, "nv_inference_request_summary_us{m=\"a\",quantile=\"1\"} ") > 4e9);
    kelp_latency_add(latency, KELP_LATENCY_CACHE_HIT, 1); /* there is no summary for it */
    kelp_latency_add(NULL, KELP_LATENCY_REQUEST, 1);
    kelp_latency_destroy(latency);
    kelp_latency_destroy(NULL);
}

/* Returns the histogram of one duration as a comment. Free it. */
static char *native_of(uint64_t duration_ns) {
    kelp_native_histogram *histogram = calloc(1, sizeof *histogram);
    kelp_buf text;
    assert_non_null(histogram);
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_native_histogram_add(histogram, duration_ns);
    kelp_native_histogram_write(histogram, &text);
    char *copy = strdup(kelp_buf_cstr(&text));
    kelp_buf_deinit(&text);
    free(histogram);
    return copy;
}

static void bounds_of_native_buckets_are_inclusive(void **state) {
    static const struct {
        uint64_t duration_ns;
        const char *expected; /* after the sum */
    } rows[] = {
        {0, " 1\n"},
        {1, " 1\n"}, /* below 2^-10 ms */
        {976, " 1\n"},
        {977, " 0 -79:1\n"},
        {1000000, " 0 0:1\n"},
        {1000001, " 0 1:1\n"},
        {1090507, " 0 1:1\n"}, /* 2^(1/8) is 1.0905077 */
        {1090508, " 0 2:1\n"},
        {2000000, " 0 8:1\n"},
        {2000001, " 0 9:1\n"},
        {500000, " 0 -8:1\n"},
        {UINT64_C(4194304000000), " 0 176:1\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *found = native_of(rows[i].duration_ns);
        assert_string_equal(strchr(found + strlen("# NATIVE "), ' '), rows[i].expected);
        free(found);
    }
    char *found = native_of(UINT64_MAX);
    assert_non_null(strstr(found, " 176:1\n")); /* the last bucket */
    free(found);
}

/* Malformed pages are failures, whatever they contain. */
static void malformed_pages_cannot_be_converted(void **state) {
    static const char *const pages[] = {
        "# HELP a b\n# TYPE a gauge\na x\n",
        "# HELP a b\n# TYPE a gauge\na{l=\"1 1\n",
        "# HELP a b\n# TYPE a gauge\nb 1\n",
        "# HELP a b\n# TYPE a histogram\na_bucket{le=\"x\"} 1\n",
        "# NATIVE 1 x\n",
        "# NATIVE 1 0 1\n",
        "# NATIVE 1 0 1:x\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        kelp_buf out;
        kelp_buf_init(&out, kelp_allocator_system());
        kelp_status *status = kelp_exposition_put_protobuf(kelp_str_from(pages[i]), &out);
        if (kelp_status_code(status) != KELP_INTERNAL)
            fail_msg("accepted: %s", pages[i]);
        kelp_status_free(status);
        kelp_buf_deinit(&out);
    }
    kelp_buf empty;
    kelp_buf_init(&empty, kelp_allocator_system());
    assert_null(kelp_exposition_put_protobuf(KELP_STR(""), &empty));
    assert_int_equal(empty.length, 0);
    kelp_exposition_to_openmetrics(&empty);
    assert_string_equal(kelp_buf_cstr(&empty), "# EOF\n");
    kelp_buf_deinit(&empty);
}

/* Creates a histogram with exemplars, and converts its page. */
static kelp_status *convert(kelp_allocator allocator) {
    const kelp_latency_rules rules = {.histograms = true, .native = true, .exemplars = true};
    const kelp_latency_options options = {.bounds_ms = {1, 10}, .bound_count = 2};
    kelp_latency *latency;
    kelp_buf text, out;
    KELP_TRY(kelp_latency_create(allocator, &rules, &options, &latency));
    kelp_latency_add_first(
        latency, 5000000,
        "{\"traceparent\":\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\"}");
    kelp_buf_init(&text, allocator);
    kelp_buf_init(&out, allocator);
    kelp_latency_write(&text, KELP_FORMAT_PROTOBUF, &(kelp_latency_row){latency, "{m=\"a\"}"}, 1);
    kelp_status *status = kelp_buf_status(&text);
    if (status == NULL)
        status = kelp_exposition_put_protobuf((kelp_str){text.data, text.length}, &out);
    kelp_buf_deinit(&text);
    kelp_buf_deinit(&out);
    kelp_buf_init(&text, allocator);
    kelp_latency_write(&text, KELP_FORMAT_OPENMETRICS, &(kelp_latency_row){latency, "{m=\"a\"}"},
                       1);
    kelp_exposition_to_openmetrics(&text);
    if (status == NULL)
        status = kelp_buf_status(&text);
    if (status == NULL)
        assert_non_null(
            strstr(kelp_buf_cstr(&text),
                   "le=\"10\"} 1 # {trace_id=\"0af7651916cd43dd8448eb211c80319c\"} 5 "));
    kelp_buf_deinit(&text);
    kelp_latency_destroy(latency);
    return status;
}

static void a_failed_allocation_is_a_failure(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        test_failing_init(&memory, n);
        kelp_status *status = convert(test_failing_allocator(&memory));
        test_failing_check(&memory);
        bool failed = memory.failed;
        test_failing_deinit(&memory);
        assert_int_equal(kelp_status_code(status), failed ? KELP_RESOURCE_EXHAUSTED : KELP_OK);
        kelp_status_free(status);
        if (!failed)
            break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_of_quantiles_are_below_the_limit),
        cmocka_unit_test(extreme_durations_are_counted),
        cmocka_unit_test(bounds_of_native_buckets_are_inclusive),
        cmocka_unit_test(malformed_pages_cannot_be_converted),
        cmocka_unit_test(a_failed_allocation_is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
