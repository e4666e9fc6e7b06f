/* SPDX-License-Identifier: Apache-2.0 */
/* The contract between scheduling policies and the instance pool, with a policy that holds requests
 * back: it executes pairs, and single requests after a delay. */
#include "base/clock.h"
#include "server/request/factory.h"
#include "server/scheduler/scheduler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAX_EXECUTIONS = 16 };

/* ---- the policy ---- */

typedef struct pair_policy {
    kelp_policy base;
    kelp_queue_limits limits;
    kelp_request_queue queue;
    uint64_t delay_ns;
} pair_policy;

static kelp_status *pair_admit(const kelp_policy *base, const kelp_request *request) {
    const pair_policy *policy = (const pair_policy *)base;
    return kelp_request_queue_admit(&policy->queue, &policy->limits, request);
}

static void pair_push(kelp_policy *base, kelp_request *request, uint64_t now_ns) {
    pair_policy *policy = (pair_policy *)base;
    (void)now_ns;
    kelp_request_queue_push(&policy->queue, &policy->limits, request);
}

static bool pair_bypass(const kelp_policy *base, const kelp_request *request) {
    (void)base, (void)request;
    return false;
}

static uint64_t pair_ready_at_ns(const kelp_policy *base, const kelp_instance_base *instance) {
    (void)instance;
    const pair_policy *policy = (const pair_policy *)base;
    if (!policy->queue.head)
        return KELP_NEVER_NS;
    return policy->queue.size >= 2 ? 0 : policy->queue.head->queue_start_ns + policy->delay_ns;
}

static uint32_t pair_take(kelp_policy *base, const kelp_instance_base *instance, bool may_block,
                          uint64_t now_ns, kelp_request **out_requests) {
    (void)instance, (void)now_ns;
    kelp_request_queue *queue = &((pair_policy *)base)->queue;
    uint32_t count = 0;
    (void)may_block;
    while (count < 2 && queue->head)
        out_requests[count++] = kelp_request_queue_pop(queue);
    return count;
}

static uint64_t pair_expires_at_ns(const kelp_policy *base) {
    return kelp_request_queue_expires_at_ns(&((const pair_policy *)base)->queue);
}

static kelp_request *pair_expire(kelp_policy *base, uint64_t now_ns) {
    return kelp_request_queue_expire(&((pair_policy *)base)->queue, now_ns, true);
}

static uint32_t pair_size(const kelp_policy *base) {
    return ((const pair_policy *)base)->queue.size;
}

static void pair_destroy(kelp_policy *base) {
    (void)base;
}

static const kelp_policy_ops pair_ops = {.admit = pair_admit,
                                         .push = pair_push,
                                         .bypass = pair_bypass,
                                         .ready_at_ns = pair_ready_at_ns,
                                         .take = pair_take,
                                         .expires_at_ns = pair_expires_at_ns,
                                         .expire = pair_expire,
                                         .size = pair_size,
                                         .destroy = pair_destroy};

/* ---- the pool ---- */

/* The executed requests, in order. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned executions, requests;
    uint32_t counts[MAX_EXECUTIONS];
    uint64_t times_ns[MAX_EXECUTIONS];
    pthread_t threads[MAX_EXECUTIONS];
} record = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void execute(kelp_instance_base *instance, kelp_request **requests, uint32_t count) {
    (void)instance;
    pthread_mutex_lock(&record.lock);
    assert_true(record.executions < MAX_EXECUTIONS);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(atomic_load(&requests[i]->state), KELP_REQUEST_EXECUTING);
    record.counts[record.executions] = count;
    record.times_ns[record.executions] = kelp_now_ns();
    record.threads[record.executions++] = pthread_self();
    record.requests += count;
    pthread_cond_broadcast(&record.changed);
    pthread_mutex_unlock(&record.lock);
}

static void wait_for(unsigned requests) {
    pthread_mutex_lock(&record.lock);
    while (record.requests < requests)
        pthread_cond_wait(&record.changed, &record.lock);
    pthread_mutex_unlock(&record.lock);
}

typedef struct fixture {
    kelp_instance_pool pool;
    kelp_instance_base instances[2];
    kelp_factory factory;
    kelp_request requests[4];
    kelp_stats stats;
} fixture;

static void start(fixture *f, kelp_policy *policy, kelp_execution_mode mode, size_t instances) {
    memset(f, 0, sizeof *f);
    record.executions = record.requests = 0;
    const kelp_instance_pool_options options = {
        .policy = policy, .mode = mode, .execute = execute, .stats = &f->stats};
    assert_null(kelp_instance_pool_init(&f->pool, &options));
    for (size_t i = 0; i < instances; i++) {
        kelp_stats_init(&f->instances[i].stats, kelp_allocator_system());
        assert_null(kelp_instance_pool_add(&f->pool, &f->instances[i], NULL));
    }
}

static kelp_status *submit(fixture *f, size_t index) {
    kelp_request *request = &f->requests[index];
    request->factory = &f->factory;
    request->queue_start_ns = kelp_now_ns();
    request->deadline_ns = KELP_NEVER_NS;
    atomic_store(&request->state, KELP_REQUEST_PENDING);
    return kelp_instance_pool_submit(&f->pool, request);
}

static void stop(fixture *f) {
    kelp_instance_pool_stop(&f->pool);
    kelp_instance_pool_deinit(&f->pool);
}

/* ---- tests ---- */

static void requests_wait_for_a_pair(kelp_execution_mode mode) {
    fixture f;
    pair_policy policy = {.base = {.ops = &pair_ops}, .delay_ns = 30000000000};
    start(&f, &policy.base, mode, 2);
    for (size_t i = 0; i < 4; i++)
        assert_null(submit(&f, i));
    wait_for(4);
    assert_int_equal(kelp_instance_pool_queued(&f.pool), 0);
    stop(&f);
    assert_int_equal(record.executions, 2);
    assert_int_equal(record.counts[0], 2);
    assert_int_equal(record.counts[1], 2);
    assert_int_equal(pthread_equal(record.threads[0], pthread_self()) != 0,
                     mode == KELP_EXECUTE_ON_CALLER);
}

static void held_request_runs_after_its_delay(kelp_execution_mode mode) {
    fixture f;
    pair_policy policy = {.base = {.ops = &pair_ops}, .delay_ns = 20000000};
    start(&f, &policy.base, mode, 2);
    assert_null(submit(&f, 0));
    wait_for(1);
    stop(&f);
    assert_int_equal(record.counts[0], 1);
    assert_true(record.times_ns[0] - f.requests[0].queue_start_ns >= policy.delay_ns);
}

static void test_policy_pairs_requests_on_instances(void **state) {
    (void)state;
    requests_wait_for_a_pair(KELP_EXECUTE_ON_INSTANCE);
}

static void test_policy_pairs_requests_on_callers(void **state) {
    (void)state;
    requests_wait_for_a_pair(KELP_EXECUTE_ON_CALLER);
}

static void test_policy_delays_requests_on_instances(void **state) {
    (void)state;
    held_request_runs_after_its_delay(KELP_EXECUTE_ON_INSTANCE);
}

static void test_policy_delays_requests_on_callers(void **state) {
    (void)state;
    held_request_runs_after_its_delay(KELP_EXECUTE_ON_CALLER);
}

/* After a submitting thread has executed queued requests, a worker gives such threads a little time
 * to take the next ones. */
static void test_worker_leaves_due_requests_to_callers(void **state) {
    enum { HANDOVER_NS = 50000 };
    fixture f;
    pair_policy policy = {.base = {.ops = &pair_ops}, .delay_ns = 200000000};
    (void)state;
    start(&f, &policy.base, KELP_EXECUTE_ON_CALLER, 1);
    for (size_t i = 0; i < 3; i++)
        assert_null(submit(&f, i));
    assert_int_equal(record.executions, 1);
    assert_true(pthread_equal(record.threads[0], pthread_self()));
    wait_for(3);
    stop(&f);
    assert_int_equal(record.counts[1], 1);
    assert_false(pthread_equal(record.threads[1], pthread_self()));
    assert_true(record.times_ns[1] - f.requests[2].queue_start_ns >= policy.delay_ns + HANDOVER_NS);
}

static void test_full_queue_rejects_requests(void **state) {
    fixture f;
    pair_policy policy = {
        .base = {.ops = &pair_ops}, .limits = {.max_size = 1}, .delay_ns = 30000000000};
    (void)state;
    start(&f, &policy.base, KELP_EXECUTE_ON_INSTANCE, 1);
    assert_null(submit(&f, 0));
    kelp_status *full = submit(&f, 1);
    assert_int_equal(kelp_status_code(full), KELP_UNAVAILABLE);
    kelp_status_free(full);
    pthread_mutex_lock(&f.pool.lock);
    policy.delay_ns = 0;
    pthread_cond_signal(&f.pool.work);
    pthread_mutex_unlock(&f.pool.lock);
    wait_for(1);
    stop(&f);
}

static void test_queue_returns_requests_past_their_deadline(void **state) {
    fixture f;
    kelp_request_queue queue = {0};
    const kelp_queue_limits limits = {.timeout_us = 5, .reject_on_timeout = true};
    (void)state;
    memset(&f, 0, sizeof f);
    for (size_t i = 0; i < 3; i++) {
        f.requests[i].factory = &f.factory;
        f.requests[i].queue_start_ns = 1000 * i;
        kelp_request_queue_push(&queue, &limits, &f.requests[i]);
    }
    assert_int_equal(kelp_request_queue_expires_at_ns(&queue), 5000);
    assert_null(kelp_request_queue_expire(&queue, 4999, true));
    kelp_request *expired = kelp_request_queue_expire(&queue, 6000, true);
    assert_ptr_equal(expired, &f.requests[0]);
    assert_ptr_equal(expired->next, &f.requests[1]);
    assert_null(f.requests[1].next);
    assert_int_equal(kelp_request_queue_expires_at_ns(&queue), 7000);
    assert_ptr_equal(kelp_request_queue_pop(&queue), &f.requests[2]);
    assert_int_equal(kelp_request_queue_expires_at_ns(&queue), KELP_NEVER_NS);
    assert_int_equal(queue.size, 0);
}

static void test_default_scheduler_runs_on_the_caller(void **state) {
    static const char text[] = "backend: \"x\"";
    const kelp_config_load_options options = {.model_name = "m"};
    kelp_allocator heap = kelp_allocator_system();
    kelp_model_config *config = NULL;
    kelp_policy *policy = NULL;
    fixture f;
    (void)state;
    assert_null(
        kelp_model_config_parse(heap, &options, "config.pbtxt", text, strlen(text), &config));
    assert_null(kelp_batch_policy_create(heap, config, &policy));
    start(&f, policy, KELP_EXECUTE_ON_CALLER, 1);
    assert_null(submit(&f, 0));
    assert_int_equal(record.executions, 1); /* at the return of submit */
    assert_true(pthread_equal(record.threads[0], pthread_self()));
    stop(&f);
    policy->ops->destroy(policy);
    kelp_model_config_release(config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policy_pairs_requests_on_instances),
        cmocka_unit_test(test_policy_pairs_requests_on_callers),
        cmocka_unit_test(test_policy_delays_requests_on_instances),
        cmocka_unit_test(test_policy_delays_requests_on_callers),
        cmocka_unit_test(test_worker_leaves_due_requests_to_callers),
        cmocka_unit_test(test_full_queue_rejects_requests),
        cmocka_unit_test(test_queue_returns_requests_past_their_deadline),
        cmocka_unit_test(test_default_scheduler_runs_on_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
