/* SPDX-License-Identifier: Apache-2.0 */
/* Timers: order, replacement, removal. */
#include "base/sync/timer.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MS = 1000000 };

typedef struct probe {
    kelp_timer timer;
    uint64_t called_at_ns; /* under `lock` */
    unsigned calls;
    unsigned order;
} probe;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t called = PTHREAD_COND_INITIALIZER;
static unsigned total;

static void on_time(void *userp) {
    probe *p = userp;
    pthread_mutex_lock(&lock);
    p->called_at_ns = kelp_now_ns();
    p->calls++;
    p->order = total++;
    pthread_cond_broadcast(&called);
    pthread_mutex_unlock(&lock);
}

static void wait_for(unsigned calls) {
    pthread_mutex_lock(&lock);
    while (total < calls)
        pthread_cond_wait(&called, &lock);
    pthread_mutex_unlock(&lock);
}

static kelp_timers *begin(probe *probes, size_t count) {
    kelp_timers *service = NULL;
    total = 0;
    assert_null(kelp_timers_create(kelp_allocator_system(), &service));
    for (size_t i = 0; i < count; i++) {
        probes[i] = (probe){0};
        assert_null(kelp_timer_add(service, &probes[i].timer, on_time, &probes[i]));
    }
    return service;
}

static void end(kelp_timers *service, probe *probes, size_t count) {
    for (size_t i = 0; i < count; i++)
        kelp_timer_remove(&probes[i].timer);
    kelp_timers_destroy(service);
}

static void test_timers_run_in_the_order_of_their_times(void **state) {
    static const unsigned delay_ms[] = {14, 2, 10, 6, 12, 4, 8};
    enum { COUNT = sizeof delay_ms / sizeof *delay_ms };
    probe probes[COUNT];
    (void)state;
    kelp_timers *service = begin(probes, COUNT);
    uint64_t start_ns = kelp_now_ns();
    for (size_t i = 0; i < COUNT; i++)
        assert_null(kelp_timer_set(&probes[i].timer, start_ns + (uint64_t)delay_ms[i] * MS));
    wait_for(COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(probes[i].calls, 1);
        assert_int_equal(probes[i].order, delay_ms[i] / 2 - 1);
        assert_true(probes[i].called_at_ns >= start_ns + (uint64_t)delay_ms[i] * MS);
    }
    end(service, probes, COUNT);
}

static void test_setting_a_timer_replaces_its_time(void **state) {
    probe probes[3];
    (void)state;
    kelp_timers *service = begin(probes, 3);
    uint64_t now_ns = kelp_now_ns();
    assert_null(kelp_timer_set(&probes[0].timer, now_ns + 3600000 * (uint64_t)MS));
    assert_null(kelp_timer_set(&probes[1].timer, now_ns + MS));
    assert_null(kelp_timer_set(&probes[1].timer, KELP_NEVER_NS));
    assert_null(kelp_timer_set(&probes[0].timer, now_ns)); /* in the past: runs now */
    assert_null(kelp_timer_set(&probes[2].timer, now_ns + 5 * MS));
    wait_for(2);
    assert_int_equal(probes[0].calls, 1);
    assert_int_equal(probes[1].calls, 0);
    assert_int_equal(probes[2].calls, 1);
    end(service, probes, 3);
}

static void test_set_timer_is_removed(void **state) {
    probe probes[2];
    (void)state;
    kelp_timers *service = begin(probes, 2);
    uint64_t never_soon_ns = kelp_now_ns() + 3600000 * (uint64_t)MS;
    assert_null(kelp_timer_set(&probes[0].timer, never_soon_ns));
    assert_null(kelp_timer_set(&probes[1].timer, never_soon_ns + 1));
    end(service, probes, 2);
    assert_int_equal(total, 0);
}

static void test_unused_service_has_no_thread(void **state) {
    (void)state;
    kelp_timers *service = begin(NULL, 0);
    kelp_timers_destroy(service);
    kelp_timers_destroy(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timers_run_in_the_order_of_their_times),
        cmocka_unit_test(test_setting_a_timer_replaces_its_time),
        cmocka_unit_test(test_set_timer_is_removed),
        cmocka_unit_test(test_unused_service_has_no_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
