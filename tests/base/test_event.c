/* SPDX-License-Identifier: Apache-2.0 */
/* Events: completion, timeouts, and destruction while work is in flight. */
#include "base/sync/event.h"

#include "base/clock.h"
#include "support/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <time.h>

static void a_new_event_is_complete(void **state) {
    (void)state;
    kelp_event *event = NULL;
    assert_null(kelp_event_create(kelp_allocator_system(), &event));
    assert_true(kelp_event_done(event));
    assert_true(kelp_event_wait(event, 0));
    assert_true(kelp_event_wait(event, UINT64_MAX));
    kelp_event_destroy(event);
    kelp_event_destroy(NULL);
    kelp_event_set_pending(NULL, true);
}

static void a_timeout_ends_a_wait_and_not_too_early(void **state) {
    (void)state;
    kelp_event *event = NULL;
    assert_null(kelp_event_create(kelp_allocator_system(), &event));
    kelp_event_set_pending(event, true);
    assert_false(kelp_event_done(event));
    for (int i = 0; i < 20; i++) { /* deadlines with different fractions of a second */
        uint64_t before = kelp_now_ns();
        assert_false(kelp_event_wait(event, 2000000));
        assert_true(kelp_now_ns() - before >= 2000000);
    }
    kelp_event_set_pending(event, false);
    assert_true(kelp_event_done(event));
    assert_true(kelp_event_wait(event, 0));
    kelp_event_destroy(event);
}

typedef struct job {
    kelp_event *event;
    atomic_bool finished;
} job;

static void *finish_later(void *userp) {
    job *work = userp;
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    atomic_store(&work->finished, true);
    kelp_event_set_pending(work->event, false);
    return NULL;
}

static void waiting_and_destroying_last_until_the_work_is_done(void **state) {
    (void)state;
    for (int destroys = 0; destroys < 3; destroys++) {
        job work = {0};
        pthread_t thread;
        assert_null(kelp_event_create(kelp_allocator_system(), &work.event));
        kelp_event_set_pending(work.event, true);
        assert_int_equal(pthread_create(&thread, NULL, finish_later, &work), 0);
        if (destroys == 0)
            assert_true(kelp_event_wait(work.event, UINT64_MAX));
        else if (destroys == 1)
            assert_true(kelp_event_wait(work.event, 3600 * (uint64_t)1000000000));
        if (destroys == 2)
            kelp_event_destroy(work.event);
        assert_true(atomic_load(&work.finished));
        assert_int_equal(pthread_join(thread, NULL), 0);
        if (destroys != 2)
            kelp_event_destroy(work.event);
    }
}

static void memory_comes_from_the_allocator(void **state) {
    (void)state;
    for (uint64_t n = 1; n <= 2; n++) {
        test_failing memory;
        test_failing_init(&memory, n);
        kelp_event *event = NULL;
        kelp_status *status = kelp_event_create(test_failing_allocator(&memory), &event);
        assert_int_equal(kelp_status_code(status), n == 1 ? KELP_RESOURCE_EXHAUSTED : KELP_OK);
        kelp_status_free(status);
        kelp_event_destroy(event);
        test_failing_check(&memory);
        test_failing_deinit(&memory);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_event_is_complete),
        cmocka_unit_test(a_timeout_ends_a_wait_and_not_too_early),
        cmocka_unit_test(waiting_and_destroying_last_until_the_work_is_done),
        cmocka_unit_test(memory_comes_from_the_allocator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
