/* SPDX-License-Identifier: Apache-2.0 */
/* The rate limiter: capacities, order, and pools that share a resource. */
#include "server/request/factory.h"
#include "server/scheduler/scheduler.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define GROUP(number, ...)                                                                   \
    (kelp_config_instance_group) {                                                           \
        .priority = (number), .resources = (const kelp_config_resource[]){__VA_ARGS__},      \
        .resource_count =                                                                    \
            sizeof(const kelp_config_resource[]){__VA_ARGS__} / sizeof(kelp_config_resource) \
    }

static kelp_rate_limiter *create(const char *name, const char *device, const char *count) {
    kelp_rate_limiter *limiter = NULL;
    kelp_settings capacities;
    kelp_settings_init(&capacities, kelp_allocator_system());
    if (name)
        assert_null(kelp_settings_set(&capacities, name, device, count));
    assert_null(kelp_rate_limiter_create(kelp_allocator_system(), &capacities, &limiter));
    kelp_settings_deinit(&capacities);
    return limiter;
}

static void add(kelp_rate_limiter *limiter, kelp_rate_ticket *ticket,
                kelp_config_instance_group group) {
    *ticket = (kelp_rate_ticket){0};
    assert_null(kelp_rate_limiter_add(limiter, &group, 0, "one", ticket));
}

static void rejects(kelp_rate_limiter *limiter, kelp_config_instance_group group,
                    const char *message) {
    kelp_rate_ticket ticket = {0};
    kelp_status *status = kelp_rate_limiter_add(limiter, &group, 0, "one", &ticket);
    assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
    if (!strstr(kelp_status_message(status), message))
        fail_msg("'%s' does not contain '%s'", kelp_status_message(status), message);
    kelp_status_free(status);
    kelp_rate_ticket_remove(&ticket); /* no effect */
}

static void remove_all(kelp_rate_limiter *limiter, kelp_rate_ticket *tickets, size_t count) {
    for (size_t i = 0; i < count; i++)
        kelp_rate_ticket_remove(&tickets[i]);
    kelp_rate_limiter_destroy(limiter);
}

/* ---- capacities ---- */

static void test_undeclared_capacity_is_the_maximum_need(void **state) {
    (void)state;
    kelp_rate_limiter *limiter = create(NULL, NULL, NULL);
    kelp_rate_ticket t[3];
    add(limiter, &t[0], GROUP(1, {"R", false, 2}));
    add(limiter, &t[1], GROUP(1, {"R", false, 3}));
    add(limiter, &t[2], GROUP(1, {"R", false, 1}));
    assert_true(kelp_rate_ticket_request(&t[0]));
    assert_true(kelp_rate_ticket_request(&t[2])); /* 2 + 1 of 3 */
    assert_false(kelp_rate_ticket_request(&t[1]));
    kelp_rate_ticket_release(&t[0], false);
    assert_false(t[1].granted);
    kelp_rate_ticket_release(&t[2], false);
    assert_true(t[1].granted);
    kelp_rate_ticket_release(&t[1], false);
    remove_all(limiter, t, 3);
}

static void test_undeclared_capacity_shrinks_with_its_instances(void **state) {
    (void)state;
    kelp_rate_limiter *limiter = create(NULL, NULL, NULL);
    kelp_rate_ticket t[3];
    add(limiter, &t[0], GROUP(1, {"R", false, 1}));
    add(limiter, &t[1], GROUP(1, {"R", false, 1}));
    add(limiter, &t[2], GROUP(1, {"R", false, 2}));
    assert_true(kelp_rate_ticket_request(&t[0]));
    assert_true(kelp_rate_ticket_request(&t[1]));
    kelp_rate_ticket_remove(&t[2]); /* 2 units of 1 are used now */
    kelp_rate_ticket_release(&t[0], false);
    assert_false(kelp_rate_ticket_request(&t[0]));
    kelp_rate_ticket_release(&t[1], false);
    assert_true(t[0].granted);
    kelp_rate_ticket_release(&t[0], false);
    remove_all(limiter, t, 2);
}

static void test_capacity_below_a_need_is_an_error(void **state) {
    (void)state;
    kelp_rate_limiter *limiter = create("R", "-1", "3");
    kelp_rate_ticket t;
    rejects(limiter, GROUP(1, {"R", false, 4}),
            "instance 'one': Resource count for \"R\" is limited to 3 which will prevent "
            "scheduling of one or more model instances, the minimum required count is 4");
    rejects(limiter, GROUP(1, {"R", true, 4}), "limited to 3");
    rejects(limiter, GROUP(1, {"R", false, 2}, {"R", false, 2}), "required count is 4");
    add(limiter, &t, GROUP(1, {"R", false, 3}));
    assert_true(kelp_rate_ticket_request(&t));
    kelp_rate_ticket_release(&t, false);
    remove_all(limiter, &t, 1);
}

static void test_capacity_of_another_device_only(void **state) {
    (void)state;
    kelp_rate_limiter *limiter = create("R", "10", "10");
    rejects(limiter, GROUP(1, {"R", false, 1}), "Resource count for \"R\" is limited to 0");
    kelp_rate_limiter_destroy(limiter);
}

/* Two busy instances, of which one has half the share of the other. */
static void test_busy_instances_share_by_priority(void **state) {
    (void)state;
    kelp_rate_limiter *limiter = create("R", "-1", "4");
    kelp_rate_ticket t[2];
    unsigned executions[2] = {0};
    add(limiter, &t[0], GROUP(1, {"R", false, 4}));
    add(limiter, &t[1], GROUP(2, {"R", false, 2}));
    assert_true(kelp_rate_ticket_request(&t[0]));
    assert_false(kelp_rate_ticket_request(&t[1]));
    for (int i = 0; i < 300; i++) {
        unsigned running = t[1].granted;
        assert_int_not_equal(t[0].granted, t[1].granted);
        executions[running]++;
        kelp_rate_ticket_release(&t[running], true);
        (void)kelp_rate_ticket_request(&t[running]); /* no effect: it is requested */
    }
    assert_in_range(executions[0], 199, 201);
    for (int i = 0; i < 2; i++)
        kelp_rate_ticket_withdraw(&t[i]);
    kelp_rate_ticket_withdraw(&t[0]); /* no effect */
    remove_all(limiter, t, 2);
}

/* An instance that was idle does not execute alone until it has caught up. */
static void test_idle_instances_have_no_advantage(void **state) {
    (void)state;
    kelp_rate_limiter *limiter = create("R", "-1", "1");
    kelp_rate_ticket t[2];
    add(limiter, &t[0], GROUP(1, {"R", false, 1}));
    add(limiter, &t[1], GROUP(2, {"R", false, 1}));
    assert_true(kelp_rate_ticket_request(&t[0]));
    for (int i = 0; i < 9; i++)
        kelp_rate_ticket_release(&t[0], true);
    assert_false(kelp_rate_ticket_request(&t[1])); /* 9 executions of the other one */
    kelp_rate_ticket_release(&t[0], true);
    assert_true(t[0].granted); /* 10 and 10: the lower priority number is first */
    kelp_rate_ticket_release(&t[0], true);
    assert_true(t[1].granted);
    kelp_rate_ticket_release(&t[1], true);
    assert_true(t[0].granted); /* 11 and 12 */
    for (int i = 0; i < 2; i++)
        kelp_rate_ticket_withdraw(&t[i]);
    remove_all(limiter, t, 2);
}

static void test_capacity_of_a_device(void **state) {
    (void)state;
    kelp_rate_limiter *limiter = create("R", "0", "1");
    rejects(limiter, GROUP(1, {"R", false, 2}), "limited to 1");
    rejects(limiter, GROUP(1, {"R", true, 2}), "limited to 1"); /* the device is ignored */
    kelp_rate_limiter_destroy(limiter);
}

static void test_resource_is_global_or_of_devices(void **state) {
    (void)state;
    kelp_rate_limiter *limiter = create(NULL, NULL, NULL);
    kelp_rate_ticket t[2];
    add(limiter, &t[0], GROUP(1, {"R", true, 1}));
    rejects(limiter, GROUP(1, {"R", false, 1}), "present as both global and device-specific");
    kelp_rate_ticket_remove(&t[0]);
    add(limiter, &t[1], GROUP(1, {"R", false, 1}));
    kelp_rate_ticket_remove(&t[1]);
    kelp_rate_limiter_destroy(limiter);
}

static void test_invalid_capacity_is_an_error(void **state) {
    (void)state;
    kelp_rate_limiter *limiter = NULL;
    kelp_settings capacities;
    kelp_settings_init(&capacities, kelp_allocator_system());
    assert_null(kelp_settings_set(&capacities, "R", "-1", "many"));
    kelp_status *status = kelp_rate_limiter_create(kelp_allocator_system(), &capacities, &limiter);
    assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
    assert_null(limiter);
    kelp_status_free(status);
    kelp_settings_deinit(&capacities);
}

/* ---- order ---- */

/* Runs instances that always wait, with one unit of a resource; counts their executions. */
static void compete(kelp_rate_ticket *t, size_t count, unsigned executions, unsigned *out_counts) {
    size_t running = 0;
    for (size_t i = 0; i < count; i++) {
        out_counts[i] = 0;
        if (kelp_rate_ticket_request(&t[i]))
            running = i;
    }
    for (unsigned k = 0; k < executions; k++) {
        out_counts[running]++;
        kelp_rate_ticket_release(&t[running], false);
        size_t last = running;
        for (size_t i = 0; i < count; i++)
            if (t[i].granted)
                running = i;
        assert_true(running != last || count == 1);
        (void)kelp_rate_ticket_request(&t[last]);
    }
    for (size_t i = 0; i < count; i++)
        kelp_rate_ticket_cancel(&t[i]);
    kelp_rate_ticket_withdraw(&t[running]);
}

static void test_lower_priority_number_runs_more_often(void **state) {
    (void)state;
    kelp_rate_limiter *limiter = create(NULL, NULL, NULL);
    kelp_rate_ticket t[3];
    unsigned counts[3];
    add(limiter, &t[0], GROUP(2, {"R", true, 1}));
    add(limiter, &t[1], GROUP(1, {"R", true, 1}));
    add(limiter, &t[2], GROUP(4, {"R", true, 1}));
    compete(t, 3, 700, counts);
    /* An instance never runs twice in a row, because it requests again only after the release. */
    assert_in_range(counts[1], 345, 405);
    assert_in_range(counts[0], 190, 250);
    assert_in_range(counts[2], 95, 125);
    remove_all(limiter, t, 3);
}

static void test_new_instance_does_not_catch_up(void **state) {
    (void)state;
    kelp_rate_limiter *limiter = create(NULL, NULL, NULL);
    kelp_rate_ticket t[3] = {0};
    unsigned counts[3];
    add(limiter, &t[0], GROUP(0, {"R", true, 1})); /* priority 0 is 1 */
    for (int i = 0; i < 1000; i++) {
        assert_true(kelp_rate_ticket_request(&t[0]));
        kelp_rate_ticket_release(&t[0], false);
    }
    add(limiter, &t[1], GROUP(1, {"R", true, 1}));
    add(limiter, &t[2], GROUP(1, {"R", true, 1}));
    compete(t, 3, 300, counts);
    for (size_t i = 0; i < 3; i++)
        assert_in_range(counts[i], 99, 101);
    remove_all(limiter, t, 3);
}

/* The first waiting instance reserves its resources; others pass it if they need other ones. */
static void test_large_need_is_not_overtaken(void **state) {
    (void)state;
    kelp_rate_limiter *limiter = create("R", "-1", "2");
    kelp_rate_ticket t[4];
    add(limiter, &t[0], GROUP(1, {"R", false, 1}));
    add(limiter, &t[1], GROUP(1, {"R", false, 2}));
    add(limiter, &t[2], GROUP(1, {"R", false, 1}));
    add(limiter, &t[3], GROUP(1, {"S", false, 1}));
    assert_true(kelp_rate_ticket_request(&t[0]));
    assert_false(kelp_rate_ticket_request(&t[1]));
    assert_false(kelp_rate_ticket_request(&t[2])); /* a unit is free, but reserved */
    assert_true(kelp_rate_ticket_request(&t[3]));
    kelp_rate_ticket_release(&t[0], false);
    assert_true(t[1].granted);
    assert_false(t[2].granted);
    kelp_rate_ticket_release(&t[1], false);
    assert_true(t[2].granted);
    kelp_rate_ticket_release(&t[2], false);
    kelp_rate_ticket_release(&t[3], false);
    remove_all(limiter, t, 4);
}

static void test_cancelled_instance_makes_room(void **state) {
    (void)state;
    kelp_rate_limiter *limiter = create("R", "-1", "2");
    kelp_rate_ticket t[3];
    add(limiter, &t[0], GROUP(1, {"R", false, 1}));
    add(limiter, &t[1], GROUP(1, {"R", false, 2}));
    add(limiter, &t[2], GROUP(1, {"R", false, 1}));
    assert_true(kelp_rate_ticket_request(&t[0]));
    assert_false(kelp_rate_ticket_request(&t[1]));
    assert_false(kelp_rate_ticket_request(&t[2]));
    kelp_rate_ticket_cancel(&t[1]);
    assert_true(t[2].granted);
    assert_false(kelp_rate_ticket_request(&t[1]));
    assert_false(kelp_rate_ticket_wait(&t[1])); /* returns at once */
    kelp_rate_ticket_release(&t[0], false);
    kelp_rate_ticket_release(&t[2], false);
    remove_all(limiter, t, 3);
}

/* ---- pools ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned running, most, done;
    bool open;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void execute(kelp_instance_base *instance, kelp_request **requests, uint32_t count) {
    (void)instance, (void)requests;
    assert_int_equal(count, 1);
    pthread_mutex_lock(&gate.lock);
    gate.running++;
    gate.most = gate.running > gate.most ? gate.running : gate.most;
    pthread_cond_broadcast(&gate.changed);
    while (!gate.open)
        pthread_cond_wait(&gate.changed, &gate.lock);
    gate.running--;
    gate.done++;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static void wait_for(const unsigned *number, unsigned at_least) {
    pthread_mutex_lock(&gate.lock);
    while (*number < at_least)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

typedef struct fixture {
    kelp_model_config *config;
    kelp_policy *policy;
    kelp_instance_pool pool;
    kelp_instance_base instances[2];
    kelp_factory factory;
    kelp_request requests[8];
    kelp_stats stats;
} fixture;

static void start(fixture *f, kelp_rate_limiter *limiter) {
    static const char text[] = "backend: \"x\"";
    const kelp_config_load_options load = {.model_name = "m"};
    kelp_allocator heap = kelp_allocator_system();
    memset(f, 0, sizeof *f);
    assert_null(
        kelp_model_config_parse(heap, &load, "config.pbtxt", text, strlen(text), &f->config));
    assert_null(kelp_batch_policy_create(heap, f->config, &f->policy));
    const kelp_instance_pool_options options = {.policy = f->policy,
                                                .mode = KELP_EXECUTE_ON_INSTANCE,
                                                .execute = execute,
                                                .stats = &f->stats};
    assert_null(kelp_instance_pool_init(&f->pool, &options));
    for (int i = 0; i < 2; i++) {
        kelp_stats_init(&f->instances[i].stats, heap);
        add(limiter, &f->instances[i].ticket, GROUP(1, {"R", true, 1}));
        assert_null(kelp_instance_pool_add(&f->pool, &f->instances[i], NULL));
    }
}

static void submit(fixture *f, unsigned index) {
    kelp_request *request = &f->requests[index];
    request->factory = &f->factory;
    request->batch_size = 1;
    request->queue_start_ns = kelp_now_ns();
    request->deadline_ns = KELP_NEVER_NS;
    atomic_store(&request->state, KELP_REQUEST_PENDING);
    assert_null(kelp_instance_pool_submit(&f->pool, request));
}

static void stop(fixture *f) {
    kelp_instance_pool_stop(&f->pool);
    kelp_rate_ticket_remove(&f->instances[0].ticket);
    kelp_rate_ticket_remove(&f->instances[1].ticket);
    kelp_instance_pool_deinit(&f->pool);
    f->policy->ops->destroy(f->policy);
    kelp_model_config_release(f->config);
}

/* Waits until no instance waits for requests: both wait for the rate limiter, or are about to. */
static void wait_until_limited(fixture *f) {
    for (unsigned waiting = 2; waiting > 0; sched_yield()) {
        pthread_mutex_lock(&f->pool.lock);
        waiting = f->pool.waiting;
        pthread_mutex_unlock(&f->pool.lock);
    }
}

static void test_pools_share_a_resource(void **state) {
    (void)state;
    static fixture a, b;
    kelp_rate_limiter *limiter = create(NULL, NULL, NULL);
    gate.running = gate.most = gate.done = 0;
    gate.open = false;
    start(&a, limiter);
    start(&b, limiter);
    submit(&a, 0);
    wait_for(&gate.running, 1);
    for (unsigned i = 1; i < 8; i++)
        submit(&a, i);
    for (unsigned i = 0; i < 8; i++)
        submit(&b, i);
    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
    wait_for(&gate.done, 16);
    assert_int_equal(gate.most, 1);
    stop(&a);
    stop(&b);
    kelp_rate_limiter_destroy(limiter);
}

/* The thread of an instance that waits for the rate limiter can be removed. */
static void test_waiting_instance_is_removed(void **state) {
    (void)state;
    static fixture a, b;
    kelp_rate_limiter *limiter = create(NULL, NULL, NULL);
    gate.running = gate.most = gate.done = 0;
    gate.open = false;
    start(&a, limiter);
    start(&b, limiter);
    submit(&a, 0);
    wait_for(&gate.running, 1);
    submit(&b, 0);
    submit(&b, 1);
    wait_until_limited(&b);
    kelp_instance_pool_remove(&b.pool, &b.instances[0]);
    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
    wait_for(&gate.done, 3);
    stop(&a);
    stop(&b);
    kelp_rate_limiter_destroy(limiter);
}

/* If the resources of one instance are in use, another instance executes the request. */
static void test_free_resources_are_used(void **state) {
    (void)state;
    static fixture a;
    kelp_rate_ticket holder;
    kelp_rate_limiter *limiter = create(NULL, NULL, NULL);
    gate.running = gate.most = gate.done = 0;
    gate.open = true;
    add(limiter, &holder, GROUP(1, {"R", true, 1}));
    start(&a, limiter);
    kelp_rate_ticket_remove(&a.instances[1].ticket); /* the instance does not execute yet */
    add(limiter, &a.instances[1].ticket, GROUP(1, {"S", true, 1}));
    assert_true(kelp_rate_ticket_request(&holder));
    for (unsigned i = 0; i < 8; i++) {
        submit(&a, i);
        wait_for(&gate.done, i + 1);
    }
    kelp_rate_ticket_release(&holder, false);
    stop(&a);
    kelp_rate_ticket_remove(&holder);
    kelp_rate_limiter_destroy(limiter);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_undeclared_capacity_is_the_maximum_need),
        cmocka_unit_test(test_undeclared_capacity_shrinks_with_its_instances),
        cmocka_unit_test(test_capacity_below_a_need_is_an_error),
        cmocka_unit_test(test_capacity_of_a_device),
        cmocka_unit_test(test_idle_instances_have_no_advantage),
        cmocka_unit_test(test_capacity_of_another_device_only),
        cmocka_unit_test(test_busy_instances_share_by_priority),
        cmocka_unit_test(test_resource_is_global_or_of_devices),
        cmocka_unit_test(test_invalid_capacity_is_an_error),
        cmocka_unit_test(test_lower_priority_number_runs_more_often),
        cmocka_unit_test(test_new_instance_does_not_catch_up),
        cmocka_unit_test(test_large_need_is_not_overtaken),
        cmocka_unit_test(test_cancelled_instance_makes_room),
        cmocka_unit_test(test_pools_share_a_resource),
        cmocka_unit_test(test_waiting_instance_is_removed),
        cmocka_unit_test(test_free_resources_are_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
