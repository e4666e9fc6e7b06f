/* SPDX-License-Identifier: Apache-2.0 */
/* Distributions of durations in the metrics: summaries, and the histogram of first responses,
 * only if the configuration enables them. */
#include "server/support.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distributions_are_disabled_by_default),
        cmocka_unit_test(test_summaries_are_reported),
        cmocka_unit_test(test_summaries_of_a_cache_are_reported),
        cmocka_unit_test(test_first_responses_are_counted),
        cmocka_unit_test(test_invalid_settings_are_rejected),
        cmocka_unit_test(test_incomplete_controls_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
