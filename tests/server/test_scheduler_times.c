/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that executes a request, chosen by measured execution times. A fake clock advances by
 * the duration that a test assigns to executions. */
#include "server/request/factory.h"
#include "server/scheduler/scheduler.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { LIMIT_NS = 50000, SMALL_BYTES = 64, LARGE_BYTES = 65536, BATCH = 4 };
enum { LARGE_LIMIT_NS = LIMIT_NS + 4000 }; /* 4 us more for each 64 KiB of inputs */

/* ---- the clock and the executions ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t now_ns;
    uint64_t small_ns, large_ns; /* the duration of one request */
    unsigned requests;
    pthread_t thread; /* of the latest execution */
} world = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static uint64_t now_ns(void) {
    pthread_mutex_lock(&world.lock);
    uint64_t now = world.now_ns;
    pthread_mutex_unlock(&world.lock);
    return now;
}

static void execute(kelp_instance_base *instance, kelp_request **requests, uint32_t count) {
    (void)instance;
    pthread_mutex_lock(&world.lock);
    for (uint32_t i = 0; i < count; i++)
        world.now_ns += requests[i]->inputs[0]->data.size_bytes == SMALL_BYTES ? world.small_ns
                                                                               : world.large_ns;
    world.thread = pthread_self();
    world.requests += count;
    pthread_cond_broadcast(&world.changed);
    pthread_mutex_unlock(&world.lock);
}

/* ---- the pool ---- */

typedef struct fixture {
    kelp_model_config *config;
    kelp_policy *policy;
    kelp_instance_pool pool;
    kelp_instance_base instance;
    kelp_factory factory;
    kelp_input small, large;
    kelp_input *small_inputs[1], *large_inputs[1];
    kelp_request request;
    kelp_request batch[BATCH];
    kelp_model_base model;
    kelp_stats stats;
} fixture;

static fixture *fixture_of_model;

static void execute_due(kelp_model_base *model, kelp_due *due) {
    kelp_instance_pool_execute_due(&fixture_of_model->pool, model, due);
}

static int set_up_model(void **state, const char *text) {
    static fixture f;
    const kelp_config_load_options load = {.model_name = "m"};
    kelp_allocator heap = kelp_allocator_system();
    memset(&f, 0, sizeof f);
    world.now_ns = 1000;
    world.requests = 0;
    world.small_ns = 5000;
    world.large_ns = 2000000;
    assert_null(
        kelp_model_config_parse(heap, &load, "config.pbtxt", text, strlen(text), &f.config));
    assert_null(kelp_batch_policy_create(heap, f.config, &f.policy));
    const kelp_instance_pool_options options = {.policy = f.policy,
                                                .mode = KELP_EXECUTE_ON_CALLER,
                                                .caller_limit_ns = LIMIT_NS,
                                                .execute = execute,
                                                .stats = &f.stats,
                                                .now_ns = now_ns};
    assert_null(kelp_instance_pool_init(&f.pool, &options));
    kelp_stats_init(&f.instance.stats, heap);
    assert_null(kelp_instance_pool_add(&f.pool, &f.instance, NULL));
    f.small.data.size_bytes = SMALL_BYTES;
    f.large.data.size_bytes = LARGE_BYTES;
    f.small_inputs[0] = &f.small;
    f.large_inputs[0] = &f.large;
    *state = &f;
    return 0;
}

static int set_up(void **state) {
    return set_up_model(state, "backend: \"x\"");
}

/* A batch of BATCH requests is complete. */
static int set_up_batches(void **state) {
    (void)set_up_model(state, "backend: \"x\" max_batch_size: 4 dynamic_batching { "
                              "max_queue_delay_microseconds: 3600000000 }");
    ((fixture *)*state)->pool.joins_requests = true;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    kelp_instance_pool_stop(&f->pool);
    kelp_instance_pool_deinit(&f->pool);
    f->policy->ops->destroy(f->policy);
    kelp_model_config_release(f->config);
    return 0;
}

/* Waits until the worker has added its measurement and released the instance. */
static void wait_until_idle(fixture *f) {
    for (;;) {
        pthread_mutex_lock(&f->pool.lock);
        bool idle = f->pool.idle != NULL;
        pthread_mutex_unlock(&f->pool.lock);
        if (idle)
            return;
        sched_yield();
    }
}

static void submit(fixture *f, kelp_request *request, kelp_input **inputs) {
    request->factory = &f->factory;
    request->inputs = inputs;
    request->input_count = request->batch_size = 1;
    request->queue_start_ns = now_ns();
    request->deadline_ns = KELP_NEVER_NS;
    request->may_block = false; /* as kelp_scheduler_submit sets it */
    atomic_store(&request->state, KELP_REQUEST_PENDING);
    assert_null(kelp_instance_pool_submit(&f->pool, request));
}

/* Waits until a number of requests was executed; returns true if this thread did it. */
static bool wait_for_requests(fixture *f, unsigned count) {
    pthread_mutex_lock(&world.lock);
    while (world.requests < count)
        pthread_cond_wait(&world.changed, &world.lock);
    pthread_mutex_unlock(&world.lock);
    wait_until_idle(f);
    return pthread_equal(world.thread, pthread_self());
}

/* Executes a request; returns true if that happens on this thread. */
static bool runs_here(fixture *f, bool small) {
    unsigned before = world.requests;
    submit(f, &f->request, small ? f->small_inputs : f->large_inputs);
    return wait_for_requests(f, before + 1);
}

/* Executes a batch of small requests; returns true if that happens on this thread. */
static bool batch_runs_here(fixture *f) {
    unsigned before = world.requests;
    for (int i = 0; i < BATCH; i++) {
        assert_int_equal(world.requests, before);
        submit(f, &f->batch[i], f->small_inputs);
    }
    return wait_for_requests(f, before + BATCH);
}

/* ---- tests ---- */

static void test_unknown_sizes_run_on_workers(void **state) {
    fixture *f = *state;
    assert_false(runs_here(f, true)); /* the first execution is not counted */
    assert_false(runs_here(f, true));
    for (int i = 0; i < 20; i++)
        assert_true(runs_here(f, true));
}

static void test_first_execution_is_ignored(void **state) {
    fixture *f = *state;
    world.small_ns = 1000000000;
    assert_false(runs_here(f, true));
    world.small_ns = 5000;
    assert_false(runs_here(f, true));
    assert_true(runs_here(f, true));
}

static void test_long_requests_run_on_workers(void **state) {
    fixture *f = *state;
    for (int i = 0; i < 20; i++) {
        assert_false(runs_here(f, false));
        assert_int_equal(runs_here(f, true), i >= 2);
    }
}

/* On submitting threads, one of eight executions is measured. */
static void test_requests_that_become_long_move_to_workers(void **state) {
    fixture *f = *state;
    int here = 0, there = 0;
    for (int i = 0; i < 3; i++)
        (void)runs_here(f, true);
    world.small_ns = 2000000;
    while (runs_here(f, true))
        here++;
    assert_in_range(here, 0, 8);
    world.small_ns = 5000;
    while (!runs_here(f, true))
        there++;
    assert_in_range(there, 8, 64);
}

static void test_a_request_at_the_limit_is_short(void **state) {
    fixture *f = *state;
    world.small_ns = LIMIT_NS;
    world.large_ns = LARGE_LIMIT_NS + 1;
    for (int i = 0; i < 2; i++) {
        (void)runs_here(f, true);
        (void)runs_here(f, false);
    }
    assert_true(runs_here(f, true));
    assert_false(runs_here(f, false));
}

static void test_large_inputs_extend_the_limit(void **state) {
    fixture *f = *state;
    world.large_ns = LARGE_LIMIT_NS;
    for (int i = 0; i < 2; i++)
        (void)runs_here(f, false);
    assert_true(runs_here(f, false));
}

/* The thread that submits the last request of a batch executes it, if that is expected to be short.
 */
static void test_a_complete_batch_runs_on_its_last_thread(void **state) {
    fixture *f = *state;
    assert_false(batch_runs_here(f));
    assert_false(batch_runs_here(f));
    for (int i = 0; i < 20; i++)
        assert_true(batch_runs_here(f));
    world.small_ns = 2000000;
    for (int i = 0; i < 9 && batch_runs_here(f); i++)
        continue;
    assert_false(batch_runs_here(f));
}

/* A waiting thread that looks at the policy in time is not woken up. */
static void test_requests_that_wait_wake_no_thread(void **state) {
    fixture *f = *state;
    (void)batch_runs_here(f);
    submit(f, &f->batch[0], f->small_inputs);
    for (uint64_t check_ns = 0; check_ns == 0;) { /* the worker wakes up and waits for a time */
        pthread_mutex_lock(&f->pool.lock);
        check_ns = f->pool.next_check_ns != KELP_NEVER_NS ? f->pool.next_check_ns : 0;
        pthread_mutex_unlock(&f->pool.lock);
        sched_yield();
    }
    for (int i = 1; i < BATCH - 1; i++) {
        submit(f, &f->batch[i], f->small_inputs);
        pthread_mutex_lock(&f->pool.lock);
        uint64_t check_ns = f->pool.next_check_ns;
        pthread_mutex_unlock(&f->pool.lock);
        assert_int_not_equal(check_ns, 0); /* 0: a signal was sent */
    }
    submit(f, &f->batch[BATCH - 1], f->small_inputs);
    (void)wait_for_requests(f, 2 * BATCH);
}

/* ---- batches of a thread that can wait ---- */

enum { PROMISE_NS = 2000000 };
static const uint64_t delay_ns = 3600000000000u - 90000; /* without the time to wake up a thread */

/* The executions of BATCH small requests are known to be short. */
static void learn(fixture *f) {
    for (int i = 0; i < 3; i++)
        (void)batch_runs_here(f);
    assert_true(batch_runs_here(f));
}

/* Submits a request whose batch this thread executes when it is due. */
static void submit_due(fixture *f, size_t index, kelp_due *due) {
    kelp_request *request = &f->batch[index];
    request->due = due;
    request->model = &f->model;
    if (due != NULL)
        assert_null(kelp_due_reserve(due));
    submit(f, request, f->small_inputs);
}

static void pass_time(fixture *f, uint64_t time_ns) {
    pthread_mutex_lock(&world.lock);
    world.now_ns += time_ns;
    pthread_mutex_unlock(&world.lock);
    pthread_mutex_lock(&f->pool.lock);
    pthread_cond_broadcast(&f->pool.work);
    pthread_mutex_unlock(&f->pool.lock);
}

static void start_due(fixture *f, kelp_due *due) {
    static const kelp_model_ops ops = {.execute_due = execute_due};
    *due = (kelp_due){.allocator = kelp_allocator_system()};
    f->model.ops = &ops;
    fixture_of_model = f;
    atomic_store(&f->model.refs, 1);
    learn(f);
}

static void end_due(fixture *f, kelp_due *due) {
    kelp_due_deinit(due);
    assert_int_equal(atomic_load(&f->model.refs), 1);
    for (int i = 0; i < BATCH; i++)
        f->batch[i].due = NULL;
}

static void test_waiting_thread_executes_due_batches(void **state) {
    fixture *f = *state;
    kelp_due due;
    start_due(f, &due);
    unsigned before = world.requests;
    uint64_t begin_ns = now_ns();
    submit_due(f, 0, &due);
    submit_due(f, 1, &due);
    assert_int_equal(kelp_due_time_ns(&due), begin_ns + delay_ns);
    pass_time(f, delay_ns - 1);
    kelp_due_execute(&due, now_ns());
    assert_int_equal(world.requests, before);
    pass_time(f, 1);
    kelp_due_execute(&due, now_ns());
    assert_int_equal(world.requests, before + 2);
    assert_true(wait_for_requests(f, before + 2));
    assert_int_equal(kelp_due_time_ns(&due), KELP_NEVER_NS);
    end_due(f, &due);
}

/* The next batch has another time. */
static void test_waiting_thread_follows_the_queue(void **state) {
    fixture *f = *state;
    kelp_due due;
    start_due(f, &due);
    unsigned before = world.requests;
    submit_due(f, 0, &due);
    for (size_t i = 1; i < BATCH; i++)
        submit_due(f, i, &due); /* the last one executes the batch */
    assert_true(wait_for_requests(f, before + BATCH));
    uint64_t first_ns = kelp_due_time_ns(&due);
    uint64_t begin_ns = now_ns();
    submit_due(f, 0, &due);
    pass_time(f, first_ns - now_ns());
    kelp_due_execute(&due, now_ns());
    assert_int_equal(world.requests, before + BATCH);
    assert_int_equal(kelp_due_time_ns(&due), begin_ns + delay_ns);
    pass_time(f, begin_ns + delay_ns - now_ns());
    kelp_due_execute(&due, now_ns());
    assert_true(wait_for_requests(f, before + BATCH + 1));
    end_due(f, &due);
}

/* If the thread is late, a worker executes the batch; also if a request of another thread, which
 * cannot wait, is in the batch. */
static void test_worker_executes_what_waiting_threads_miss(void **state) {
    fixture *f = *state;
    kelp_due due;
    start_due(f, &due);
    unsigned before = world.requests;
    submit_due(f, 0, &due);
    pass_time(f, delay_ns + PROMISE_NS);
    assert_false(wait_for_requests(f, before + 1));
    kelp_due_execute(&due, now_ns());
    submit_due(f, 0, &due);
    submit_due(f, 1, NULL);
    pass_time(f, delay_ns);
    assert_false(wait_for_requests(f, before + 3));
    kelp_due_execute(&due, now_ns());
    assert_int_equal(world.requests, before + 3);
    end_due(f, &due);
}

/* An instance that becomes idle later is used by a worker. */
static void test_worker_executes_due_batches_of_busy_instances(void **state) {
    fixture *f = *state;
    kelp_due due;
    start_due(f, &due);
    unsigned before = world.requests;
    submit_due(f, 0, &due);
    pthread_mutex_lock(&f->pool.lock);
    kelp_instance_base *instance = f->pool.idle;
    f->pool.idle = NULL;
    pthread_mutex_unlock(&f->pool.lock);
    pass_time(f, delay_ns);
    kelp_due_execute(&due, now_ns());
    assert_int_equal(world.requests, before);
    assert_int_equal(kelp_due_time_ns(&due), KELP_NEVER_NS);
    pthread_mutex_lock(&f->pool.lock);
    f->pool.idle = instance;
    pthread_cond_broadcast(&f->pool.work);
    pthread_mutex_unlock(&f->pool.lock);
    assert_false(wait_for_requests(f, before + 1));
    end_due(f, &due);
}

/* Requests of busy threads do not wait, and neither do those that are queued before them. Long ones
 * wait, because other threads execute them. */
static void test_busy_threads_skip_the_delay(void **state) {
    fixture *f = *state;
    learn(f);
    unsigned before = world.requests;
    f->batch[1].skips_delay = f->batch[2].skips_delay = true;
    submit(f, &f->batch[1], f->small_inputs);
    assert_true(wait_for_requests(f, before + 1));
    submit(f, &f->batch[0], f->small_inputs);
    assert_int_equal(world.requests, before + 1);
    submit(f, &f->batch[1], f->small_inputs);
    assert_true(wait_for_requests(f, before + 3));
    submit(f, &f->batch[1], f->large_inputs);
    assert_int_equal(world.requests, before + 3);
    submit(f, &f->batch[2], f->small_inputs);
    assert_true(wait_for_requests(f, before + 4) || world.requests > before + 3);
    (void)wait_for_requests(f, before + 5);
    f->batch[1].skips_delay = f->batch[2].skips_delay = false;
}

static void test_warm_up_counts(void **state) {
    fixture *f = *state;
    kelp_request request = {.inputs = f->small_inputs, .input_count = 1};
    kelp_request *requests[] = {&request, &request};
    unsigned class_index = kelp_execution_class(kelp_execution_bytes(requests, 1));
    assert_int_equal(kelp_execution_class(kelp_execution_bytes(requests, 2)), class_index + 1);
    kelp_instance_pool_add_time(&f->pool, class_index, 1000000);
    kelp_instance_pool_add_time(&f->pool, class_index, 5000);
    assert_true(runs_here(f, true));
}

static void test_averages_follow_the_times(void **state) {
    (void)state;
    kelp_execution_times times = {0};
    assert_int_equal(kelp_execution_times_get(&times, 3), KELP_NEVER_NS);
    kelp_execution_times_add(&times, 3, 900, 10000);
    assert_int_equal(kelp_execution_times_get(&times, 3), KELP_NEVER_NS);
    kelp_execution_times_add(&times, 3, 800, 10000);
    assert_int_equal(kelp_execution_times_get(&times, 3), 800);
    kelp_execution_times_add(&times, 3, 1600, 10000);
    assert_int_equal(kelp_execution_times_get(&times, 3), 900);
    kelp_execution_times_add(&times, 3, 100, 10000);
    assert_int_equal(kelp_execution_times_get(&times, 3), 800);
    kelp_execution_times_add(&times, 3, UINT64_MAX, 1600);
    assert_int_equal(kelp_execution_times_get(&times, 3), 900);
    assert_int_equal(kelp_execution_times_get(&times, 4), KELP_NEVER_NS);
    assert_int_equal(kelp_execution_times_get(&times, 0), 900); /* a larger class is known */
}

static void test_classes_are_powers_of_two(void **state) {
    (void)state;
    kelp_input input = {0};
    kelp_input *inputs[] = {&input, &input};
    kelp_request request = {.inputs = inputs};
    kelp_request *requests[] = {&request};
    assert_int_equal(kelp_execution_class(kelp_execution_bytes(requests, 1)), 0);
    request.input_count = 2;
    assert_int_equal(kelp_execution_class(kelp_execution_bytes(requests, 1)), 0);
    input.data.size_bytes = 1;
    assert_int_equal(kelp_execution_class(kelp_execution_bytes(requests, 1)), 2);
    input.data.size_bytes = UINT64_MAX / 4;
    assert_int_equal(kelp_execution_class(kelp_execution_bytes(requests, 1)),
                     KELP_EXECUTION_CLASSES - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_unknown_sizes_run_on_workers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_first_execution_is_ignored, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_requests_run_on_workers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_requests_that_become_long_move_to_workers, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_request_at_the_limit_is_short, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_large_inputs_extend_the_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_complete_batch_runs_on_its_last_thread,
                                        set_up_batches, tear_down),
        cmocka_unit_test_setup_teardown(test_requests_that_wait_wake_no_thread, set_up_batches,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_waiting_thread_executes_due_batches, set_up_batches,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_waiting_thread_follows_the_queue, set_up_batches,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_worker_executes_what_waiting_threads_miss,
                                        set_up_batches, tear_down),
        cmocka_unit_test_setup_teardown(test_worker_executes_due_batches_of_busy_instances,
                                        set_up_batches, tear_down),
        cmocka_unit_test_setup_teardown(test_busy_threads_skip_the_delay, set_up_batches,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_warm_up_counts, set_up, tear_down),
        cmocka_unit_test(test_averages_follow_the_times),
        cmocka_unit_test(test_classes_are_powers_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
