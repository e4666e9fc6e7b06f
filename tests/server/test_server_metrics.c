/* SPDX-License-Identifier: Apache-2.0 */
/* Distributions of durations in the metrics: summaries, and the histogram of first responses,
 * only if the configuration enables them. */
#include "server/support.h"

#include <kelp/server.h>
#include <time.h>

#define SLOW                                                                \
    "backend: \"identity\"\n"                                               \
    "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"   \
    "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n" \
    "instance_group [ { kind: KIND_CPU count: 1 } ]\n"

static void ask(TRITONSERVER_Server *server, const char *model, int64_t delay_ms) {
    static const int64_t shape[] = {2};
    static const int32_t data[] = {1, 2};
    call c;
    call_init(&c, server, model, -1);
    call_input(&c, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 1, data, sizeof data);
    ok(TRITONSERVER_InferenceRequestSetIntParameter(c.request, "delay_ms", delay_ms));
    call_run(&c);
    ok(TRITONSERVER_InferenceResponseError(c.response));
    call_deinit(&c);
}

/* Returns the page of metrics after it has counted so many requests. Free it. */
static char *page_after(TRITONSERVER_Server *server, const char *key, long long count) {
    for (int i = 0;; i++) {
        char *page = metrics_of(server);
        if (number_after(page, key) >= count || i == 1000)
            return page;
        free(page);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

static void test_distributions_are_disabled_by_default(void **state) {
    repo r;
    (void)state;
    repo_make(&r);
    repo_model(&r, "slow", SLOW);
    TRITONSERVER_Server *server = server_start(&r, &(server_setup){0});
    ask(server, "slow", 0);
    char *page = metrics_of(server);
    assert_null(strstr(page, "summary"));
    assert_null(strstr(page, "histogram"));
    contains(page, "nv_inference_request_duration_us{");
    free(page);
    server_end(server);
    repo_remove(&r);
}

static void test_summaries_are_reported(void **state) {
    repo r;
    (void)state;
    repo_make(&r);
    repo_model(&r, "slow", SLOW);
    repo_model(&r, "idle", SLOW);
    TRITONSERVER_Server *server = server_start(
        &r, &(server_setup){.metrics_setting = {{"summary_latencies", "true"},
                                                {"summary_quantiles", "0.5:0.05,0.99:0.0.1"},
                                                {"counter_latencies", "false"}}});
    for (int i = 0; i < 4; i++)
        ask(server, "slow", 20);
    char *page = page_after(
        server, "nv_inference_request_summary_us_count{model=\"slow\",version=\"1\"} ", 4);
    contains(page, "# TYPE nv_inference_request_summary_us summary\n");
    static const char median[] =
        "nv_inference_request_summary_us{model=\"slow\",version=\"1\",quantile=\"0.5\"} ";
    static const char last[] =
        "nv_inference_request_summary_us{model=\"slow\",version=\"1\",quantile=\"0.99\"} ";
    assert_true(number_after(page, median) >= 19000); /* the permitted error is 2 % */
    assert_true(number_after(page, last) >= number_after(page, median));
    assert_true(
        number_after(page, "nv_inference_request_summary_us_sum{model=\"slow\",version=\"1\"} ") >=
        80000);
    assert_int_equal(
        number_after(page, "nv_inference_queue_summary_us_count{model=\"slow\",version=\"1\"} "),
        4);
    contains(page, "nv_inference_compute_input_summary_us_count{");
    contains(page, "nv_inference_compute_infer_summary_us_count{");
    contains(page, "nv_inference_compute_output_summary_us_count{");
    contains(page, "nv_inference_request_summary_us_count{model=\"idle\",version=\"1\"} 0\n");
    contains(page, "nv_inference_request_summary_us{model=\"idle\",version=\"1\",quantile=\"0.5\"} "
                   "NaN\n");
    assert_null(strstr(page, "quantile=\"0.9\""));
    assert_null(strstr(page, "duration_us"));
    assert_null(strstr(page, "nv_cache_hit_summary"));
    contains(page, "nv_inference_request_success{model=\"slow\",version=\"1\"} 4\n");
    free(page);
    server_end(server);
    repo_remove(&r);
}

static void test_summaries_of_a_cache_are_reported(void **state) {
    repo r;
    (void)state;
    repo_make(&r);
    repo_model(&r, "kept", SLOW "response_cache { enable: true }\n");
    TRITONSERVER_Server *server =
        server_start(&r, &(server_setup){.cache = "local",
                                         .cache_config = "{\"size\":1048576}",
                                         .metrics_setting = {{"summary_latencies", "true"}}});
    for (int i = 0; i < 3; i++)
        ask(server, "kept", 0);
    char *page = page_after(
        server, "nv_cache_hit_summary_per_model_count{model=\"kept\",version=\"1\"} ", 2);
    contains(page, "nv_cache_hit_summary_per_model_count{model=\"kept\",version=\"1\"} 2\n");
    contains(page, "nv_cache_miss_summary_per_model_count{model=\"kept\",version=\"1\"} 1\n");
    contains(page, "nv_inference_compute_infer_summary_us_count{model=\"kept\",version=\"1\"} 1\n");
    /* Requests with a cached response also have a queue time. */
    contains(page, "nv_inference_queue_summary_us_count{model=\"kept\",version=\"1\"} 3\n");
    assert_null(strstr(page, "nv_inference_request_summary_us"));
    free(page);
    server_end(server);
    repo_remove(&r);
}

static void test_first_responses_are_counted(void **state) {
    repo r;
    (void)state;
    repo_make(&r);
    repo_model(&r, "usual", SLOW);
    repo_model(&r, "own",
               SLOW "model_metrics { metric_control [ { metric_identifier { family: "
                    "\"nv_inference_first_response_histogram_ms\" } histogram_options { buckets: "
                    "[ 10, 60000 ] } } ] }\n");
    TRITONSERVER_Server *server =
        server_start(&r, &(server_setup){.metrics_setting = {{"histogram_latencies", "true"}}});
    ask(server, "own", 20);
    ask(server, "usual", 0);
    char *page = metrics_of(server);
    contains(page, "# TYPE nv_inference_first_response_histogram_ms histogram\n");
    contains(page, "_histogram_ms_bucket{model=\"own\",version=\"1\",le=\"10\"} 0\n");
    contains(page, "_histogram_ms_bucket{model=\"own\",version=\"1\",le=\"60000\"} 1\n");
    contains(page, "_histogram_ms_bucket{model=\"own\",version=\"1\",le=\"+Inf\"} 1\n");
    contains(page, "_histogram_ms_count{model=\"own\",version=\"1\"} 1\n");
    assert_true(number_after(page, "_histogram_ms_sum{model=\"own\",version=\"1\"} ") >= 20);
    contains(page, "_histogram_ms_bucket{model=\"usual\",version=\"1\",le=\"5000\"} 1\n");
    free(page);
    server_end(server);
    repo_remove(&r);
}

static void test_invalid_settings_are_rejected(void **state) {
    static const char *const wrong[][2] = {{"summary_latencies", "yes"},
                                           {"summary_quantiles", "0.5"},
                                           {"summary_quantiles", "0.5:0.1,"},
                                           {"summary_quantiles", "0.5:x"},
                                           {"summary_quantiles", "1.5:0.1"}};
    repo r;
    (void)state;
    repo_make(&r);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        TRITONSERVER_Server *server = NULL;
        server_setup setup = {.metrics_setting = {{wrong[i][0], wrong[i][1]}}};
        fails(server_try(&r, &setup, &server), TRITONSERVER_ERROR_INVALID_ARG, wrong[i][0]);
    }
    repo_model(&r, "falls",
               SLOW "model_metrics { metric_control [ { metric_identifier { family: "
                    "\"nv_inference_first_response_histogram_ms\" } histogram_options { buckets: "
                    "[ 10, 10 ] } } ] }\n");
    TRITONSERVER_Server *server = NULL;
    fails(server_try(&r, &(server_setup){.metrics_setting = {{"histogram_latencies", "true"}}},
                     &server),
          TRITONSERVER_ERROR_INTERNAL, "ascending buckets");
    repo_remove(&r);
}

static void test_incomplete_controls_are_rejected(void **state) {
    static const server_setup setup = {.metrics_setting = {{"histogram_latencies", "true"}}};
    static const char *const rows[][2] = {
        {"histogram_options { buckets: [ 1 ] }", "metric control must specify 'metric_identifier'"},
        {"metric_identifier { }", "metric identifier must specify non-empty 'family'"},
        {"metric_identifier { family: \"\" }", "metric identifier must specify non-empty 'family'"},
        {"metric_identifier { family: \"nv_inference_first_response_histogram_ms\" }",
         "metric control must specify 'histogram_options'"},
        {"metric_identifier { family: \"nv_inference_first_response_histogram_ms\" } "
         "histogram_options { }",
         "histogram options must specify non-empty 'buckets'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        repo r;
        char config[2048];
        TRITONSERVER_Server *server = NULL;
        repo_make(&r);
        snprintf(config, sizeof config, SLOW "model_metrics { metric_control [ { %s } ] }\n",
                 rows[i][0]);
        repo_model(&r, "m", config);
        fails(server_try(&r, &setup, &server), TRITONSERVER_ERROR_INTERNAL, rows[i][1]);
        repo_remove(&r);
    }
}

/* ---- other formats ---- */

static void on_activity(TRITONSERVER_InferenceTrace *trace,
                        TRITONSERVER_InferenceTraceActivity activity, uint64_t timestamp_ns,
                        void *userp) {
    (void)trace, (void)activity, (void)timestamp_ns, (void)userp;
}

static void on_trace_release(TRITONSERVER_InferenceTrace *trace, void *userp) {
    (void)userp;
    ok(TRITONSERVER_InferenceTraceDelete(trace));
}

/* Sends a request with a trace that has this context. */
static void ask_traced(TRITONSERVER_Server *server, const char *context) {
    static const int64_t shape[] = {2};
    static const int32_t data[] = {1, 2};
    TRITONSERVER_InferenceTrace *trace = NULL;
    call c;
    call_init(&c, server, "slow", -1);
    call_input(&c, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 1, data, sizeof data);
    ok(TRITONSERVER_InferenceTraceNew(&trace, TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0, on_activity,
                                      on_trace_release, NULL));
    ok(TRITONSERVER_InferenceTraceSetContext(trace, context));
    ok(TRITONSERVER_ServerInferAsync(server, c.request, trace));
    call_wait(&c);
    ok(TRITONSERVER_InferenceResponseError(c.response));
    call_deinit(&c);
}

/* Returns a page in another format, with a terminating NUL. Free it. */
static char *page_in(TRITONSERVER_Server *server, KELP_MetricsFormat format, size_t *out_bytes) {
    TRITONSERVER_Metrics *metrics = NULL;
    const char *base = NULL;
    ok(KELP_ServerMetrics(server, format, &metrics));
    ok(TRITONSERVER_MetricsFormatted(metrics, TRITONSERVER_METRIC_PROMETHEUS, &base, out_bytes));
    char *copy = calloc(1, *out_bytes + 1);
    assert_non_null(copy);
    memcpy(copy, base, *out_bytes);
    ok(TRITONSERVER_MetricsDelete(metrics));
    return copy;
}

static void test_exemplars_are_those_of_traced_requests(void **state) {
    repo r;
    size_t length = 0;
    (void)state;
    repo_make(&r);
    repo_model(&r, "slow", SLOW);
    TRITONSERVER_Server *server =
        server_start(&r, &(server_setup){.metrics_setting = {{"histogram_latencies", "true"},
                                                             {"exemplars", "true"}}});
    ask(server, "slow", 0);
    ask_traced(server, "");
    ask_traced(server, "{\"traceparent\":\"00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331\"}");
    char *page = page_in(server, KELP_METRICS_OPENMETRICS, &length);
    assert_null(strstr(page, "trace_id"));
    free(page);
    ask_traced(server,
               "{\"traceparent\":\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\"}");
    page = page_in(server, KELP_METRICS_OPENMETRICS, &length);
    const char *found = strstr(page, " # {trace_id=\"0af7651916cd43dd8448eb211c80319c\"} ");
    assert_non_null(found);
    contains(page, "# TYPE nv_inference_request_success unknown\n");
    contains(page, "# TYPE nv_inference_first_response_histogram_ms histogram\n");
    assert_null(strstr(page, " counter\n"));
    assert_string_equal(page + length - 6, "# EOF\n");
    free(page);
    page = metrics_of(server); /* the text format has no exemplars */
    assert_null(strstr(page, "trace_id"));
    contains(page, "# TYPE nv_inference_request_success counter\n");
    free(page);
    server_end(server);
    repo_remove(&r);
}

static void test_texts_of_custom_metrics_are_escaped(void **state) {
    repo r;
    size_t length = 0;
    (void)state;
    repo_make(&r);
    repo_model(&r, "slow", SLOW);
    TRITONSERVER_Server *server =
        server_start(&r, &(server_setup){.metrics_setting = {{"histogram_latencies", "true"},
                                                             {"native_histograms", "true"}}});
    TRITONSERVER_MetricFamily *family = NULL;
    TRITONSERVER_Metric *metric = NULL;
    TRITONSERVER_Parameter *label =
        TRITONSERVER_ParameterNew("l", TRITONSERVER_PARAMETER_STRING, "a\"}\\ \n,b=\"c");
    ok(TRITONSERVER_MetricFamilyNew(&family, TRITONSERVER_METRIC_KIND_GAUGE, "custom_gauge",
                                    "first\nsecond \\n"));
    ok(TRITONSERVER_MetricNew(&metric, family, (const TRITONSERVER_Parameter **)(void *)&label, 1));
    ok(TRITONSERVER_MetricSet(metric, -2.5));
    char *page = metrics_of(server);
    contains(page, "# HELP custom_gauge first\\nsecond \\\\n\n");
    contains(page, "custom_gauge{l=\"a\\\"}\\\\ \\n,b=\\\"c\"} -2.5\n");
    free(page);
    page = page_in(server, KELP_METRICS_PROTOBUF, &length);
    static const char expected[] = "\x0a\x0c"
                                   "custom_gauge"
                                   "\x12\x0f"
                                   "first\nsecond \\n"
                                   "\x18\x01\x22\x1d\x0a\x10\x0a\x01l\x12\x0b"
                                   "a\"}\\ \n,b=\"c"
                                   "\x12\x09\x09\0\0\0\0\0\0\x04\xc0";
    assert_non_null(memmem(page, length, expected, sizeof expected - 1));
    free(page);
    ok(TRITONSERVER_MetricDelete(metric));
    ok(TRITONSERVER_MetricFamilyDelete(family));
    TRITONSERVER_ParameterDelete(label);
    server_end(server);
    repo_remove(&r);
}

static void test_other_formats_must_be_enabled(void **state) {
    repo r;
    TRITONSERVER_Metrics *metrics = NULL;
    (void)state;
    repo_make(&r);
    repo_model(&r, "slow", SLOW);
    TRITONSERVER_Server *server =
        server_start(&r, &(server_setup){.metrics_setting = {{"histogram_latencies", "true"}}});
    fails(KELP_ServerMetrics(server, KELP_METRICS_OPENMETRICS, &metrics),
          TRITONSERVER_ERROR_UNSUPPORTED, "'exemplars'");
    fails(KELP_ServerMetrics(server, KELP_METRICS_PROTOBUF, &metrics),
          TRITONSERVER_ERROR_UNSUPPORTED, "'native_histograms'");
    fails(KELP_ServerMetrics(server, (KELP_MetricsFormat)7, &metrics),
          TRITONSERVER_ERROR_INVALID_ARG, "unknown metrics format '7'");
    fails(KELP_ServerMetrics(NULL, KELP_METRICS_PROTOBUF, &metrics), TRITONSERVER_ERROR_INVALID_ARG,
          "server");
    fails(KELP_ServerMetrics(server, KELP_METRICS_PROTOBUF, NULL), TRITONSERVER_ERROR_INVALID_ARG,
          "metrics");
    server_end(server);
    repo_remove(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distributions_are_disabled_by_default),
        cmocka_unit_test(test_summaries_are_reported),
        cmocka_unit_test(test_summaries_of_a_cache_are_reported),
        cmocka_unit_test(test_first_responses_are_counted),
        cmocka_unit_test(test_invalid_settings_are_rejected),
        cmocka_unit_test(test_incomplete_controls_are_rejected),
        cmocka_unit_test(test_exemplars_are_those_of_traced_requests),
        cmocka_unit_test(test_texts_of_custom_metrics_are_escaped),
        cmocka_unit_test(test_other_formats_must_be_enabled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
