/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Branches and loops as planned subgraphs: exact for every shape, trip count and condition, in any
 * order; repeated runs do not allocate, memory is bounded; cancelled between iterations; shared by
 * contexts. The model is bodies() of tests/data/make_test_models.py.
 */
#include "support/failing_allocator.h"

#include <kelp/engine.h>

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

#define BODIES KELP_TEST_DATA "/models/bodies.onnx"
#define MAX_ROWS 8
#define MAX_TURNS 24

typedef struct session {
    kelp_runtime *runtime;
    kelp_graph *graph;
    kelp_engine *engine;
    kelp_context *context;
} session;

typedef struct inputs {
    int64_t rows, count, rate;
    float limit;
    float x[MAX_ROWS * 3];
} inputs;

static kelp_status *open_session(session *s, kelp_allocator allocator, int threads) {
    kelp_runtime_options options = {
        .struct_size = sizeof options, .allocator = allocator, .threads = threads};
    *s = (session){0};
    KELP_TRY(kelp_runtime_create(&options, &s->runtime));
    KELP_TRY(kelp_graph_load_file(allocator, BODIES, NULL, &s->graph));
    KELP_TRY(kelp_engine_create(s->runtime, s->graph, NULL, &s->engine));
    return kelp_context_create(s->engine, &s->context);
}

static void close_session(session *s) {
    kelp_runtime_release(s->runtime);
    kelp_graph_release(s->graph);
    kelp_engine_release(s->engine);
    kelp_context_destroy(s->context);
}

static inputs make_inputs(int64_t rows, int64_t count, int64_t rate, float limit) {
    inputs in = {rows, count, rate, limit, {0}};
    for (int64_t i = 0; i < rows * 3; i++)
        in.x[i] = (float)((i * 7 + count) % 5) - 1.0f;
    return in;
}

static kelp_status *run(kelp_context *context, inputs *in) {
    kelp_tensor tensor;
    const int64_t shape[2] = {in->rows, 3};
    KELP_TRY(kelp_tensor_init(&tensor, KELP_F32, 2, shape, in->x));
    KELP_TRY(kelp_context_set_input(context, 0, &tensor));
    KELP_TRY(kelp_tensor_init(&tensor, KELP_I64, 0, NULL, &in->count));
    KELP_TRY(kelp_context_set_input(context, 1, &tensor));
    KELP_TRY(kelp_tensor_init(&tensor, KELP_I64, 0, NULL, &in->rate));
    KELP_TRY(kelp_context_set_input(context, 2, &tensor));
    KELP_TRY(kelp_tensor_init(&tensor, KELP_F32, 0, NULL, &in->limit));
    KELP_TRY(kelp_context_set_input(context, 3, &tensor));
    return kelp_context_invoke(context);
}

static bool is(const kelp_context *context, size_t index, int32_t rank, const int64_t *shape,
               const float *expected) {
    const kelp_tensor *found = kelp_context_output(context, index);
    if (found->dtype != KELP_F32 || found->rank != rank ||
        memcmp(found->shape, shape, (size_t)rank * sizeof *shape) != 0)
        return false;
    for (int64_t i = 0; i < kelp_tensor_elements(found); i++)
        if (((const float *)found->data)[i] != expected[i])
            return false;
    return true;
}

/* The model in C. All values are small integers, so that sums are exact. */
static bool agrees(const kelp_context *context, const inputs *in) {
    int64_t size = in->rows * 3;
    float h[MAX_ROWS * 3], y[MAX_ROWS * 3], sum[MAX_ROWS * 3];
    float rows[MAX_TURNS * MAX_ROWS * 3], grown[(MAX_TURNS + 1) * MAX_ROWS * 3];
    for (int64_t k = 0; k < size; k++)
        y[k] = h[k] = in->rate == 16 ? in->x[k] + 1 : -2 * in->x[k];
    for (int64_t i = 0; i < in->count; i++)
        for (int64_t k = 0; k < size; k++) {
            y[k] += i % 2 == 0 ? in->x[k] : -h[k];
            rows[i * size + k] = 2 * y[k];
        }
    for (int64_t i = 0; i <= in->count; i++)
        memcpy(grown + i * size, in->x, (size_t)size * sizeof *grown);
    memcpy(sum, in->x, sizeof sum);
    bool goes_on = true;
    for (int64_t i = 0; i < in->count && goes_on; i++) {
        float total = 0;
        for (int64_t k = 0; k < size; k++)
            total += sum[k] += in->x[k];
        goes_on = total < in->limit;
    }
    const int64_t same[2] = {in->rows, 3}, stacked[3] = {in->count, in->rows, 3};
    const int64_t longer[2] = {in->rows * (in->count + 1), 3};
    return is(context, 0, 2, same, y) &&
           is(context, 1, 3, in->count ? stacked : kelp_context_output(context, 1)->shape, rows) &&
           is(context, 2, 2, longer, grown) && is(context, 3, 2, same, sum);
}

static void results_are_exact_for_all_shapes_counts_and_conditions(void **state) {
    (void)state;
    session s;
    check_ok(open_session(&s, kelp_allocator_system(), 1));
    for (int round = 0; round < 3; round++)
        for (int64_t rows = 1; rows <= 3; rows++)
            for (int64_t count = 0; count <= MAX_TURNS; count += 1 + count / 4 * 3)
                for (int64_t rate = 8; rate <= 16; rate += 8) {
                    inputs in = make_inputs(rows, count, rate, round == 1 ? 5.0f : 1e9f);
                    check_ok(run(s.context, &in));
                    assert_true(agrees(s.context, &in));
                }
    close_session(&s);
}

/* Integers that never repeat create a bounded number of plans and do not change results. */
static void changing_data_does_not_grow_memory(void **state) {
    (void)state;
    test_failing memory;
    session s;
    test_failing_init(&memory, 0);
    check_ok(open_session(&s, test_failing_allocator(&memory), 1));
    size_t after_first = 0;
    for (int64_t rate = 0; rate < 400; rate++) {
        inputs in = make_inputs(2, rate % 5, rate, 1e9f);
        check_ok(run(s.context, &in));
        assert_true(agrees(s.context, &in));
        if (rate == 200)
            after_first = memory.live_bytes;
    }
    assert_true(memory.live_bytes <= after_first);
    close_session(&s);
    test_failing_check(&memory);
    test_failing_deinit(&memory);
}

static void repeated_runs_do_not_allocate(void **state) {
    (void)state;
    test_failing memory;
    session s;
    uint64_t before = 0;
    test_failing_init(&memory, 0);
    check_ok(open_session(&s, test_failing_allocator(&memory), 1));
    for (int round = 0; round < 40; round++) {
        if (round == 20)
            before = memory.calls;
        inputs in = make_inputs(1 + round % 2, round / 2 % 2 ? 6 : 3, 16, 1e9f);
        check_ok(run(s.context, &in));
        assert_true(agrees(s.context, &in));
    }
    assert_int_equal(memory.calls, before);
    close_session(&s);
    test_failing_check(&memory);
    test_failing_deinit(&memory);
}

/* The rate determines the condition, and the count the trip count. Only the loop that grows and the
 * loop that ends early depend on data. */
static void bodies_with_known_integers_are_planned_in_advance(void **state) {
    (void)state;
    session s;
    check_ok(open_session(&s, kelp_allocator_system(), 1));
    inputs in = make_inputs(2, 4, 16, 1e9f);
    check_ok(run(s.context, &in));
    assert_int_equal(kelp_context_plan_stats(s.context).dynamic_steps, 2);
    assert_int_equal(kelp_context_output(s.context, 1)->rank, 3);
    /* preparing does not read data: shapes that depend on it are unknown */
    check_ok(kelp_context_prepare(s.context));
    assert_int_equal(kelp_context_output(s.context, 1)->rank, -1);
    check_ok(kelp_context_invoke(s.context));
    assert_true(agrees(s.context, &in));
    close_session(&s);
}

static void failed_allocations_are_reported(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        session s;
        inputs in = make_inputs(2, 3, 16, 1e9f);
        test_failing_init(&memory, n);
        kelp_status *status = open_session(&s, test_failing_allocator(&memory), 1);
        if (status == NULL)
            status = run(s.context, &in);
        if (status == NULL)
            assert_true(agrees(s.context, &in));
        close_session(&s);
        test_failing_check(&memory);
        bool failed = memory.failed;
        test_failing_deinit(&memory);
        /* a body that cannot be planned in advance is planned when it runs, without an error */
        if (status == NULL && !failed)
            break;
        if (status != NULL)
            expect_failure(status, KELP_RESOURCE_EXHAUSTED, "");
    }
}

/* ---- threads ---- */
typedef struct job {
    kelp_engine *engine;
    kelp_context *context;
    inputs in;
    kelp_status *status;
    bool agrees;
    atomic_bool done;
} job;

static void *run_many(void *userp) {
    job *j = userp;
    kelp_context *context = NULL;
    j->status = kelp_context_create(j->engine, &context);
    j->agrees = true;
    for (int i = 0; j->status == NULL && i < 40; i++) {
        j->status = run(context, &j->in);
        j->agrees = j->agrees && j->status == NULL && agrees(context, &j->in);
    }
    kelp_context_destroy(context);
    return NULL;
}

static void concurrent_contexts_share_bodies(void **state) {
    (void)state;
    session s;
    job jobs[3];
    pthread_t threads[3];
    check_ok(open_session(&s, kelp_allocator_system(), 2));
    for (int i = 0; i < 3; i++) {
        jobs[i] = (job){.engine = s.engine, .in = make_inputs(i + 1, i + 2, i * 8, 9.0f)};
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, &jobs[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        check_ok(jobs[i].status);
        assert_true(jobs[i].agrees);
    }
    close_session(&s);
}

static void *run_long(void *userp) {
    job *j = userp;
    j->status = run(j->context, &j->in);
    atomic_store(&j->done, true);
    return NULL;
}

static void long_loop_can_be_cancelled(void **state) {
    (void)state;
    session s;
    pthread_t thread;
    check_ok(open_session(&s, kelp_allocator_system(), 1));
    job j = {.context = s.context, .in = make_inputs(1, 1 << 23, 8, 1e30f)};
    memset(j.in.x, 0, sizeof j.in.x);
    assert_int_equal(pthread_create(&thread, NULL, run_long, &j), 0);
    while (!atomic_load(&j.done)) {
        kelp_context_cancel(s.context);
        sched_yield();
    }
    pthread_join(thread, NULL);
    expect_failure(j.status, KELP_CANCELLED, "cancelled");
    inputs in = make_inputs(2, 3, 8, 1e9f);
    check_ok(run(s.context, &in));
    assert_true(agrees(s.context, &in));
    close_session(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_exact_for_all_shapes_counts_and_conditions),
        cmocka_unit_test(changing_data_does_not_grow_memory),
        cmocka_unit_test(repeated_runs_do_not_allocate),
        cmocka_unit_test(bodies_with_known_integers_are_planned_in_advance),
        cmocka_unit_test(failed_allocations_are_reported),
        cmocka_unit_test(concurrent_contexts_share_bodies),
        cmocka_unit_test(long_loop_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
