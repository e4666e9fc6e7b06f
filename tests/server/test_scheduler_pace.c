/* SPDX-License-Identifier: Apache-2.0 */
/* Latency-targeted batching, with a clock that the tests set: a simulated model with one or two
 * instances, whose execution time grows with the batch size, under random arrivals. */
#include "base/clock.h"
#include "server/request/factory.h"
#include "server/scheduler/pace.h"
#include "server/scheduler/policy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define IO                                                \
    "input { name: \"X\" data_type: TYPE_FP32 dims: 4 } " \
    "output { name: \"Y\" data_type: TYPE_FP32 dims: 4 } "
#define TARGET(us) \
    "parameters { key: \"kelp_latency_target_us\" value { string_value: \"" us "\" } } "

enum { REQUESTS = 40000, WARM = 4000, TARGET_NS = 10000000, INSTANCES = 2 };

static kelp_model_config *parse(const char *text) {
    const kelp_config_load_options options = {.model_name = "m"};
    kelp_model_config *config = NULL;
    kelp_status *status = kelp_model_config_parse(kelp_allocator_system(), &options, "config.pbtxt",
                                                  text, strlen(text), &config);
    if (status != NULL)
        fail_msg("%s", kelp_status_message(status));
    return config;
}

/* ---- the simulation ---- */

/* An execution in progress. */
typedef struct running {
    bool busy;
    uint64_t start_ns, end_ns;
    uint32_t count;
    size_t requests[KELP_MAX_EXECUTION_REQUESTS];
} running;

typedef struct simulation {
    kelp_policy *policy;
    kelp_model_base model;
    kelp_factory factory;
    kelp_request *requests;
    uint64_t latencies[REQUESTS];
    running running[INSTANCES];
    size_t arrived, ended, executions;
    uint64_t seed, now_ns, next_arrival_ns;
    double base_ns, row_ns, rate; /* execution time, arrivals per second */
    double stall_ns, stall_share; /* of executions that lose the CPU for a while */
} simulation;

static double uniform(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)((*seed >> 33) + 1) / 2147483649.0;
}

static void arrive(simulation *s) {
    kelp_request *request = &s->requests[s->arrived++];
    request->factory = &s->factory;
    request->model = &s->model;
    request->batch_size = 1;
    request->queue_start_ns = s->now_ns;
    assert_null(s->policy->ops->admit(s->policy, request));
    s->policy->ops->push(s->policy, request, s->now_ns);
    s->next_arrival_ns = s->now_ns + (uint64_t)(-log(uniform(&s->seed)) / s->rate * 1e9);
}

static void begin(simulation *s, running *r) {
    kelp_request *taken[KELP_MAX_EXECUTION_REQUESTS];
    r->count = s->policy->ops->take(s->policy, NULL, true, s->now_ns, taken);
    if (r->count == 0)
        return;
    for (uint32_t i = 0; i < r->count; i++)
        r->requests[i] = (size_t)(taken[i] - s->requests);
    double jitter = 0.9 + 0.2 * uniform(&s->seed);
    r->busy = true;
    r->start_ns = s->now_ns;
    r->end_ns = s->now_ns + (uint64_t)((s->base_ns + s->row_ns * r->count) * jitter);
    if (uniform(&s->seed) < s->stall_share)
        r->end_ns += (uint64_t)s->stall_ns;
    s->executions++;
}

static void end(simulation *s, running *r) {
    kelp_execution_report report = {
        .oldest_ns = KELP_NEVER_NS, .start_ns = r->start_ns, .end_ns = s->now_ns};
    for (uint32_t i = 0; i < r->count; i++) {
        uint64_t submitted_ns = s->requests[r->requests[i]].queue_start_ns;
        s->latencies[r->requests[i]] = s->now_ns - submitted_ns;
        report.batch_size++;
        if (submitted_ns < report.oldest_ns)
            report.oldest_ns = submitted_ns;
    }
    s->ended += r->count;
    r->busy = false;
    if (s->policy->wants_reports)
        s->policy->ops->executed(s->policy, &report);
}

/* Advances to the next event. */
static void step(simulation *s) {
    uint64_t next_ns = s->arrived < REQUESTS ? s->next_arrival_ns : KELP_NEVER_NS;
    bool idle = false;
    for (size_t i = 0; i < INSTANCES; i++) {
        if (s->running[i].busy && s->running[i].end_ns < next_ns)
            next_ns = s->running[i].end_ns;
        idle = idle || !s->running[i].busy;
    }
    uint64_t ready_ns = s->policy->ops->ready_at_ns(s->policy, NULL);
    if (idle && ready_ns < next_ns)
        next_ns = ready_ns;
    s->now_ns = next_ns > s->now_ns ? next_ns : s->now_ns;
    for (size_t i = 0; i < INSTANCES; i++)
        if (s->running[i].busy && s->running[i].end_ns <= s->now_ns)
            end(s, &s->running[i]);
    if (s->arrived < REQUESTS && s->next_arrival_ns <= s->now_ns)
        arrive(s);
    for (size_t i = 0; i < INSTANCES; i++)
        if (!s->running[i].busy && s->policy->ops->ready_at_ns(s->policy, NULL) <= s->now_ns)
            begin(s, &s->running[i]);
}

static int compare(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

typedef struct outcome {
    double p50_ms, p99_ms, batch;
} outcome;

/* Runs requests that arrive at a rate, and returns percentiles without the first requests. A share
 * of the executions takes `stall_us` longer. */
static outcome simulate_stalls(const char *config_text, double base_us, double row_us, double rate,
                               double stall_us, double stall_share) {
    simulation *s = calloc(1, sizeof *s);
    kelp_model_config *config = parse(config_text);
    assert_non_null(s);
    s->requests = calloc(REQUESTS, sizeof *s->requests);
    assert_non_null(s->requests);
    assert_null(kelp_batch_policy_create(kelp_allocator_system(), config, &s->policy));
    s->seed = 42;
    s->now_ns = s->next_arrival_ns = 1000000000;
    s->base_ns = base_us * 1000;
    s->row_ns = row_us * 1000;
    s->rate = rate;
    s->stall_ns = stall_us * 1000;
    s->stall_share = stall_share;
    while (s->ended < REQUESTS)
        step(s);
    qsort(s->latencies + WARM, REQUESTS - WARM, sizeof *s->latencies, compare);
    size_t count = REQUESTS - WARM;
    outcome o = {(double)s->latencies[WARM + count / 2] / 1e6,
                 (double)s->latencies[WARM + count * 99 / 100] / 1e6,
                 (double)REQUESTS / (double)s->executions};
    s->policy->ops->destroy(s->policy);
    kelp_model_config_release(config);
    free(s->requests);
    free(s);
    return o;
}

static outcome simulate(const char *config_text, double base_us, double row_us, double rate) {
    return simulate_stalls(config_text, base_us, row_us, rate, 0, 0);
}

static const char paced[] = "backend: \"x\" max_batch_size: 64 " IO TARGET(
    "10000") "dynamic_batching { } instance_group [ { count: 2 } ]";

/* ---- tests ---- */

static void test_p99_stays_below_the_target(void **state) {
    /* 2 instances of 1 ms + 0.05 ms for each row: at most about 27,000 rows per second in time */
    static const double rates[] = {10, 100, 500, 1000, 2000, 4000, 8000, 16000, 20000};
    (void)state;
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        outcome o = simulate(paced, 1000, 50, rates[i]);
        print_message("rate %.0f/s: p50 %.2f ms, p99 %.2f ms, batch %.1f\n", rates[i], o.p50_ms,
                      o.p99_ms, o.batch);
        assert_true(o.p99_ms <= 10);
    }
}

static void test_low_load_does_not_wait(void **state) {
    (void)state;
    outcome o = simulate(paced, 1000, 50, 20);
    assert_true(o.p99_ms <= 1.3);
    assert_true(o.batch < 1.1);
}

static void test_high_load_forms_batches(void **state) {
    (void)state;
    outcome o = simulate(paced, 1000, 50, 8000); /* 4 times the capacity of single requests */
    assert_true(o.batch >= 5);
}

/* Threads that lose their CPU for 4 ms, 20 times a second, do not make a fast model look slow. */
static void test_rare_stalls_do_not_cause_delays(void **state) {
    static const char text[] =
        "backend: \"x\" max_batch_size: 32 " IO TARGET("5000") "dynamic_batching { }";
    static const double rates[] = {5000, 10000, 20000, 40000, 60000};
    (void)state;
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        outcome o = simulate_stalls(text, 5, 1, rates[i], 4000, 20 / rates[i]);
        print_message("rate %.0f/s: p50 %.3f ms, p99 %.2f ms, batch %.1f\n", rates[i], o.p50_ms,
                      o.p99_ms, o.batch);
        assert_true(o.p50_ms <= 0.02);
        assert_true(o.p99_ms <= 4.1);
        assert_true(o.batch <= 1.5);
    }
}

/* The delay uses the time that the target leaves: fewer executions than without a target. */
static void test_target_saves_executions(void **state) {
    (void)state;
    outcome with = simulate(paced, 1000, 50, 4000);
    outcome without = simulate("backend: \"x\" max_batch_size: 64 " IO
                               "dynamic_batching { } instance_group [ { count: 2 } ]",
                               1000, 50, 4000);
    assert_true(with.batch > 1.5 * without.batch);
}

static void test_configured_delay_is_an_upper_bound(void **state) {
    kelp_pace pace;
    (void)state;
    kelp_pace_init(&pace, TARGET_NS, 500000, 64, 1);
    for (uint64_t i = 1; i <= 1000; i++) {
        kelp_pace_arrive(&pace, 1, i * 1000000);
        kelp_pace_executed(&pace, 1, i * 1000000, i * 1000000, i * 1000000 + 900000);
    }
    assert_int_equal(pace.delay_ns, 500000);
}

static void test_times_determine_the_largest_batch(void **state) {
    kelp_pace pace;
    (void)state;
    kelp_pace_init(&pace, TARGET_NS, 0, 64, 1);
    assert_int_equal(pace.max_size, 64); /* nothing is known */
    assert_int_equal(kelp_pace_time_ns(&pace, 4), 0);
    for (uint64_t i = 1; i <= 1000; i++) {
        kelp_pace_arrive(&pace, 1, i * 100000000);
        kelp_pace_executed(&pace, 1, i * 100000000, i * 100000000, i * 100000000 + 1000000);
        kelp_pace_executed(&pace, 8, i * 100000000, i * 100000000, i * 100000000 + 4000000);
    }
    assert_in_range(kelp_pace_time_ns(&pace, 8), 3990000, 4010000);
    assert_in_range(kelp_pace_time_ns(&pace, 16), 7980000, 8020000);
    assert_in_range(pace.max_size, 7, 8);
    assert_int_equal(pace.delay_ns, 0); /* the load is low */
}

static void test_late_executions_shrink_the_budget(void **state) {
    kelp_pace pace;
    (void)state;
    kelp_pace_init(&pace, TARGET_NS, 0, 64, 1);
    double before = pace.fraction;
    for (uint64_t i = 1; i <= 200; i++)
        kelp_pace_executed(&pace, 1, 0, 10000000, 11000000);
    assert_true(pace.fraction < before / 2);
    for (uint64_t i = 1; i <= 5000; i++)
        kelp_pace_executed(&pace, 1, 10000000, 10000000, 11000000);
    assert_true(pace.fraction == before);
}

static void test_deadlines_order_requests(void **state) {
    kelp_model_config *config = parse(paced);
    kelp_policy *policy = NULL;
    kelp_request requests[4] = {0}, *taken[KELP_MAX_EXECUTION_REQUESTS];
    kelp_factory factory = {0};
    static const uint64_t timeouts_us[] = {0, 50000, 1000, 9000}; /* 0: the target, 10,000 */
    static const size_t order[] = {2, 3, 0, 1};
    (void)state;
    assert_null(kelp_batch_policy_create(kelp_allocator_system(), config, &policy));
    for (size_t i = 0; i < 4; i++) {
        requests[i].factory = &factory;
        requests[i].batch_size = 1;
        requests[i].timeout_us = timeouts_us[i];
        requests[i].queue_start_ns = i;
        policy->ops->push(policy, &requests[i], i);
    }
    assert_int_equal(policy->ops->take(policy, NULL, true, 4, taken), 4);
    for (size_t i = 0; i < 4; i++)
        assert_ptr_equal(taken[i], &requests[order[i]]);
    policy->ops->destroy(policy);
    kelp_model_config_release(config);
}

static void test_wrong_targets_are_rejected(void **state) {
    static const char *const rows[][2] = {
        {"backend: \"x\" max_batch_size: 8 " IO TARGET("soon") "dynamic_batching { }",
         "expected a number"},
        {"backend: \"x\" max_batch_size: 8 " IO TARGET("5"), "requires dynamic_batching"},
        {"backend: \"x\" max_batch_size: 8 " IO TARGET(
             "5") "dynamic_batching { preferred_batch_size: 4 }",
         "remove 'preferred_batch_size'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kelp_model_config *config = parse(rows[i][0]);
        kelp_policy *policy = NULL;
        kelp_status *status = kelp_batch_policy_create(kelp_allocator_system(), config, &policy);
        assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
        if (strstr(kelp_status_message(status), rows[i][1]) == NULL)
            fail_msg("%s", kelp_status_message(status));
        kelp_status_free(status);
        kelp_model_config_release(config);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_p99_stays_below_the_target),
        cmocka_unit_test(test_low_load_does_not_wait),
        cmocka_unit_test(test_high_load_forms_batches),
        cmocka_unit_test(test_rare_stalls_do_not_cause_delays),
        cmocka_unit_test(test_target_saves_executions),
        cmocka_unit_test(test_configured_delay_is_an_upper_bound),
        cmocka_unit_test(test_times_determine_the_largest_batch),
        cmocka_unit_test(test_late_executions_shrink_the_budget),
        cmocka_unit_test(test_deadlines_order_requests),
        cmocka_unit_test(test_wrong_targets_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
