/* SPDX-License-Identifier: Apache-2.0 */
/* The pool under one caller, under several, nested, and asleep between. Meant to be run under
 * ThreadSanitizer too. */
#include "base/sync/thread.h"

#include "base/checked.h"
#include "support/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ITEMS 10007

typedef struct tally {
    kelp_pool *pool;
    unsigned char seen[ITEMS]; /* not atomic: two visits of one item are a race that TSan reports */
    _Atomic int inside[64];    /* by worker */
    _Atomic int worst;
    int64_t count;
    int64_t grain;
    _Atomic int64_t short_chunks;
} tally;

static void visit(void *userp, int64_t begin, int64_t end, int worker) {
    tally *into = userp;
    if (atomic_fetch_add(&into->inside[worker], 1) != 0)
        atomic_store(&into->worst, 1); /* one worker number used twice at once */
    if (worker < 0 || worker >= kelp_pool_threads(into->pool) || begin >= end)
        atomic_store(&into->worst, 2);
    /* a quarter of a grain goes to a worker that is awake, in two halves where there is no more */
    if (8 * (end - begin) < into->grain && end - begin != into->count)
        atomic_fetch_add(&into->short_chunks, 1);
    for (int64_t i = begin; i < end; i++)
        into->seen[i]++;
    atomic_fetch_sub(&into->inside[worker], 1);
}

static void run_and_check(kelp_pool *pool, tally *into, int64_t count, int64_t grain) {
    memset(into, 0, sizeof(*into));
    into->pool = pool;
    into->count = count;
    into->grain = grain;
    kelp_pool_run(pool, count, grain, visit, into);
    assert_int_equal(atomic_load(&into->worst), 0);
    assert_int_equal(atomic_load(&into->short_chunks), 0);
    for (int64_t i = 0; i < ITEMS; i++) {
        if (into->seen[i] != (i < count))
            fail_msg("item %d was visited %d times", (int)i, into->seen[i]);
    }
}

static void every_item_once(void **state) {
    (void)state;
    static tally into;
    for (int threads = 1; threads <= 9; threads += 2) {
        kelp_pool *pool;
        assert_null(kelp_pool_create(kelp_allocator_system(), threads, &pool));
        assert_int_equal(kelp_pool_threads(pool), threads);
        static const int64_t counts[] = {0, 1, 2, 7, 8, 100, 1000, ITEMS};
        for (size_t i = 0; i < KELP_COUNT(counts); i++) {
            run_and_check(pool, &into, counts[i], 1);
            run_and_check(pool, &into, counts[i], 64);
            run_and_check(pool, &into, counts[i], 1000000);
        }
        for (int i = 0; i < 200; i++)
            run_and_check(pool, &into, 50 + i, 1);
        kelp_pool_destroy(pool);
    }
    run_and_check(NULL, &into, 100, 1);
    assert_int_equal(kelp_pool_threads(NULL), 1);
    kelp_pool_destroy(NULL);
}

static void count_only(void *userp, int64_t begin, int64_t end, int worker) {
    (void)worker;
    atomic_fetch_add((_Atomic int64_t *)userp, end - begin);
}

static void huge_counts_do_not_overflow(void **state) {
    (void)state;
    kelp_pool *pool;
    assert_null(kelp_pool_create(kelp_allocator_system(), 3, &pool));
    _Atomic int64_t total = 0;
    kelp_pool_run(pool, INT64_MAX, 1, count_only, &total);
    assert_true(atomic_load(&total) == INT64_MAX);
    atomic_store(&total, 0);
    kelp_pool_run(pool, INT64_MAX, INT64_MAX / 2, count_only, &total);
    assert_true(atomic_load(&total) == INT64_MAX);
    kelp_pool_run(pool, -5, 1, count_only, &total);
    assert_true(atomic_load(&total) == INT64_MAX);
    kelp_pool_destroy(pool);
}

/* Workers sleep between regions: each of these starts from a pool at rest. */
static void wakes_after_sleep(void **state) {
    (void)state;
    kelp_pool *pool;
    assert_null(kelp_pool_create(kelp_allocator_system(), 4, &pool));
    for (int i = 0; i < 20; i++) {
        const struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
        _Atomic int64_t total = 0;
        kelp_pool_run(pool, 1000, 1, count_only, &total);
        assert_int_equal(atomic_load(&total), 1000);
    }
    kelp_pool_destroy(pool);
}

typedef struct rendezvous {
    _Atomic int arrived;
    int wanted;
} rendezvous;

/* Returns only when as many chunks run at once as there are threads: proof that workers do work. */
static void meet(void *userp, int64_t begin, int64_t end, int worker) {
    rendezvous *at = userp;
    (void)end;
    (void)worker;
    (void)begin;
    atomic_fetch_add(&at->arrived, 1);
    while (atomic_load(&at->arrived) < at->wanted)
        sched_yield();
}

static void workers_do_work(void **state) {
    (void)state;
    kelp_pool *pool;
    assert_null(kelp_pool_create(kelp_allocator_system(), 4, &pool));
    for (int i = 0; i < 50; i++) {
        rendezvous at = {0, 4};
        kelp_pool_run(pool, 4, 1, meet, &at);
        assert_int_equal(atomic_load(&at.arrived), 4);
    }
    kelp_pool_destroy(pool);
}

typedef struct placement {
    rendezvous at;
    cpu_set_t all;
    int caller_cpu, worker_cpu;
    pid_t worker_id;
    bool stays; /* the worker goes to the CPU of the caller */
} placement;

static void take_place(void *userp, int64_t begin, int64_t end, int worker) {
    placement *p = userp;
    if (worker != 0) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET((size_t)p->caller_cpu, &one);
        if (p->stays) {
            sched_setaffinity(0, sizeof one, &one);
            sched_setaffinity(0, sizeof p->all, &p->all);
        }
        p->worker_cpu = sched_getcpu();
        p->worker_id = (pid_t)syscall(SYS_gettid);
    }
    meet(&p->at, begin, end, worker);
}

/* A worker that fell asleep on the CPU of the caller wakes up on another, if it may use one. */
static void workers_leave_the_cpu_of_the_caller(void **state) {
    const struct timespec pause = {0, 5000000};
    placement p = {{0, 2}, .stays = true};
    cpu_set_t one, after;
    kelp_pool *pool;
    (void)state;
    if (sched_getaffinity(0, sizeof p.all, &p.all) != 0 || CPU_COUNT(&p.all) < 2)
        skip();
    assert_null(kelp_pool_create(kelp_allocator_system(), 2, &pool));
    p.caller_cpu = sched_getcpu();
    CPU_ZERO(&one);
    CPU_SET((size_t)p.caller_cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    for (int i = 0; i < 10; i++) {
        p.stays = i % 2 == 0;
        atomic_store(&p.at.arrived, 0);
        kelp_pool_run(pool, 2, 1, take_place, &p);
        if (!p.stays)
            assert_int_not_equal(p.worker_cpu, p.caller_cpu);
        nanosleep(&pause, NULL);
    }
    nanosleep(&pause, NULL);
    assert_int_equal(sched_getaffinity(p.worker_id, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&after, &p.all));
    kelp_pool_destroy(pool);
    assert_int_equal(sched_setaffinity(0, sizeof p.all, &p.all), 0);
}

static void note_worker(void *userp, int64_t begin, int64_t end, int worker) {
    (void)begin;
    (void)end;
    if (worker != 0)
        atomic_store((_Atomic int *)userp, worker);
}

/* Less than a grain at a time, after a pause: the caller does it, workers sleep on. */
static void small_regions_wake_nobody(void **state) {
    (void)state;
    kelp_pool *pool;
    _Atomic int helper = 0;
    assert_null(kelp_pool_create(kelp_allocator_system(), 4, &pool));
    for (int i = 0; i < 100; i++) {
        const struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
        kelp_pool_run(pool, 64, 64, note_worker, &helper);
    }
    assert_int_equal(atomic_load(&helper), 0);
    kelp_pool_destroy(pool);
}

static int64_t cpu_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Returns the CPU time of all other threads. */
static int64_t cpu_ns_of_others(void) {
    return cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Regions with long pauses: after a while, the worker spins for less than its 50 µs after each. */
static void workers_stop_spinning_in_vain(void **state) {
    enum { ROUNDS = 200, SPIN_NS = 50000 };
    (void)state;
    kelp_pool *pool;
    int64_t before_ns = 0;
    _Atomic int64_t total = 0;
    assert_null(kelp_pool_create(kelp_allocator_system(), 2, &pool));
    for (int i = -32; i < ROUNDS; i++) {
        const struct timespec pause = {0, 300000};
        before_ns = i == 0 ? cpu_ns_of_others() : before_ns;
        kelp_pool_run(pool, 2, 1, count_only, &total);
        nanosleep(&pause, NULL);
    }
    assert_true(cpu_ns_of_others() - before_ns < (int64_t)ROUNDS * SPIN_NS);
    kelp_pool_destroy(pool);
}

/* One after the other without a pause they are as good as a large one. */
static void many_small_regions_are_shared(void **state) {
    (void)state;
    kelp_pool *pool;
    _Atomic int helper = 0;
    assert_null(kelp_pool_create(kelp_allocator_system(), 4, &pool));
    while (atomic_load(&helper) == 0)
        kelp_pool_run(pool, 64, 64, note_worker, &helper);
    assert_int_not_equal(atomic_load(&helper), 0);
    kelp_pool_destroy(pool);
}

typedef struct nest {
    kelp_pool *pool;
    _Atomic int64_t total;
} nest;

static void inner(void *userp, int64_t begin, int64_t end, int worker) {
    nest *into = userp;
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        kelp_pool_run(into->pool, 10, 1, count_only, &into->total);
}

static void nested_regions_run_alone(void **state) {
    (void)state;
    nest into = {0};
    assert_null(kelp_pool_create(kelp_allocator_system(), 3, &into.pool));
    kelp_pool_run(into.pool, 100, 1, inner, &into);
    assert_int_equal(atomic_load(&into.total), 1000);
    kelp_pool_destroy(into.pool);
}

static void *caller(void *userp) {
    kelp_pool *pool = userp;
    uintptr_t wrong = 0;
    for (int i = 0; i < 500; i++) {
        _Atomic int64_t total = 0;
        kelp_pool_run(pool, 64, 1, count_only, &total);
        wrong += atomic_load(&total) != 64;
    }
    return (void *)wrong;
}

static void several_callers(void **state) {
    (void)state;
    kelp_pool *pool;
    pthread_t threads[4];
    assert_null(kelp_pool_create(kelp_allocator_system(), 3, &pool));
    for (size_t i = 0; i < KELP_COUNT(threads); i++)
        assert_null(kelp_thread_start(&threads[i], "caller", caller, pool));
    for (size_t i = 0; i < KELP_COUNT(threads); i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    kelp_pool_destroy(pool);
}

/* ---- regions that may be stopped ---- */
typedef struct stopped {
    kelp_stop stop;
    _Atomic int64_t done;
    int64_t at; /* units after which it is stopped */
    int asked;
} stopped;

static void stop_after(void *userp, int64_t begin, int64_t end, int worker) {
    stopped *s = userp;
    (void)worker;
    if (atomic_fetch_add(&s->done, end - begin) + end - begin >= s->at)
        atomic_store(&s->stop.set, true);
}

/* Work, so that time passes between questions. */
static void take_time(void *userp, int64_t begin, int64_t end, int worker) {
    stopped *s = userp;
    const struct timespec pause = {0, 200000};
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        nanosleep(&pause, NULL);
    atomic_fetch_add(&s->done, end - begin);
}

static bool ask(void *userp) {
    stopped *s = userp;
    return ++s->asked == 3;
}

static void stopped_regions_leave_the_rest(void **state) {
    (void)state;
    const int64_t huge = INT64_MAX / 2;
    for (int threads = 1; threads <= 4; threads++) {
        kelp_pool *pool = NULL;
        if (threads > 1)
            assert_null(kelp_pool_create(kelp_allocator_system(), threads, &pool));
        /* a unit, or a grain, may be long: what is not begun is left */
        stopped s = {.at = 1};
        kelp_pool_run_until(pool, huge, 1, stop_after, &s, &s.stop);
        assert_in_range(s.done, 1, 1000 * threads);
        kelp_pool_run_until(pool, huge, 1, stop_after, &s, &s.stop); /* it stays set */
        assert_in_range(s.done, 1, 1000 * threads);
        s = (stopped){.at = 1};
        kelp_pool_run_until(pool, huge, 1000, stop_after, &s, &s.stop);
        assert_in_range(s.done, 1, 1000 * 1000 * threads);
        /* what nobody stops is done whole */
        s = (stopped){.at = INT64_MAX};
        kelp_pool_run_until(pool, huge, 1, stop_after, &s, &s.stop);
        assert_true(s.done == huge);
        s = (stopped){.at = 1};
        kelp_pool_run_until(pool, 1000000, 1, stop_after, &s, NULL);
        assert_int_equal(s.done, 1000000);
        kelp_pool_destroy(pool);
    }
}

/* The caller asks, and no worker; its yes is heard by all. */
static void callers_are_asked(void **state) {
    (void)state;
    for (int threads = 1; threads <= 3; threads += 2) {
        kelp_pool *pool = NULL;
        if (threads > 1)
            assert_null(kelp_pool_create(kelp_allocator_system(), threads, &pool));
        stopped s = {.at = INT64_MAX};
        s.stop.interrupt = ask;
        s.stop.interrupt_userp = &s;
        kelp_pool_run_until(pool, 1000000, 1, take_time, &s, &s.stop);
        assert_int_equal(s.asked, 3);
        assert_true(kelp_stop_is_set(&s.stop));
        assert_true(s.done < 1000000);
        assert_true(kelp_stop_asked(&s.stop)); /* without asking again */
        assert_int_equal(s.asked, 3);
        kelp_pool_destroy(pool);
    }
    assert_false(kelp_stop_asked(NULL));
}

static void memory_is_kept_straight(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        kelp_pool *pool;
        test_failing_init(&memory, n);
        kelp_status *status = kelp_pool_create(test_failing_allocator(&memory), 3, &pool);
        bool failed = memory.failed;
        assert_int_equal(failed, status != NULL);
        assert_int_equal(failed, pool == NULL);
        if (!failed) {
            _Atomic int64_t total = 0;
            uint64_t calls = memory.calls;
            kelp_pool_run(pool, 100, 1, count_only, &total);
            assert_int_equal(memory.calls, calls);
        }
        kelp_status_free(status);
        kelp_pool_destroy(pool);
        test_failing_check(&memory);
        test_failing_deinit(&memory);
        if (!failed)
            break;
    }
}

static void counts_of_threads(void **state) {
    (void)state;
    kelp_pool *pool;
    assert_true(kelp_cpu_count() >= 1);
    assert_null(kelp_pool_create(kelp_allocator_system(), 0, &pool));
    assert_int_equal(kelp_pool_threads(pool), kelp_cpu_count());
    kelp_pool_destroy(pool);
    kelp_status *status = kelp_pool_create(kelp_allocator_system(), -1, &pool);
    assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
    assert_null(pool);
    kelp_status_free(status);
    /* One CPU allowed is one CPU counted. */
    cpu_set_t before;
    cpu_set_t one;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &before)) {
            CPU_SET(cpu, &one);
            break;
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(kelp_cpu_count(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

static bool put_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return false;
    bool written = fputs(text, file) >= 0;
    return fclose(file) == 0 && written;
}

/* Counts the CPUs in a process that has its own /sys/fs/cgroup, with the files given. Returns 0 if
 * the system does not permit that. */
static int count_with(const char *const files[][2], size_t count) {
    pid_t child = fork();
    int code = 0;
    if (child == 0) {
        char users[32], groups[32];
        snprintf(users, sizeof users, "0 %u 1", (unsigned)getuid());
        snprintf(groups, sizeof groups, "0 %u 1", (unsigned)getgid());
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || !put_text("/proc/self/uid_map", users) ||
            !put_text("/proc/self/setgroups", "deny") || !put_text("/proc/self/gid_map", groups) ||
            mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL) != 0 ||
            mkdir("/sys/fs/cgroup/cpu", 0700) != 0)
            _exit(0);
        for (size_t i = 0; i < count; i++)
            if (!put_text(files[i][0], files[i][1]))
                _exit(0);
        _exit(kelp_cpu_count());
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code));
    return WEXITSTATUS(code);
}

/* The quota of a cgroup limits the number of threads. */
static void quotas_limit_the_count(void **state) {
    static const char v2[] = "/sys/fs/cgroup/cpu.max";
    static const char quota[] = "/sys/fs/cgroup/cpu/cpu.cfs_quota_us";
    static const char period[] = "/sys/fs/cgroup/cpu/cpu.cfs_period_us";
    const char *const none[][2] = {{v2, "max 100000\n"}, {quota, "-1\n"}, {period, "100000\n"}};
    const char *const one[][2] = {{v2, "100000 100000\n"}};
    const char *const half[][2] = {{v2, "50000 100000\n"}};
    const char *const large[][2] = {{v2, "400000000 100000\n"}};
    (void)state;
    int usable = count_with(none, KELP_COUNT(none));
    if (usable == 0)
        skip();
    assert_int_equal(count_with(one, KELP_COUNT(one)), 1);
    assert_int_equal(count_with(half, KELP_COUNT(half)), 1); /* rounded up */
    assert_int_equal(count_with(large, KELP_COUNT(large)), usable);
    char text[4096] = "";
    FILE *file = fopen("/proc/self/cgroup", "r");
    size_t length = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file != NULL)
        (void)fclose(file);
    text[length] = '\0';
    if (strstr(text, ":cpu:") == NULL && strstr(text, ":cpu,cpuacct:") == NULL)
        return; /* only version 2 */
    const char *const old[][2] = {{quota, "70000\n"}, {period, "100000\n"}};
    assert_int_equal(count_with(old, KELP_COUNT(old)), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_once),
        cmocka_unit_test(huge_counts_do_not_overflow),
        cmocka_unit_test(wakes_after_sleep),
        cmocka_unit_test(workers_do_work),
        cmocka_unit_test(workers_leave_the_cpu_of_the_caller),
        cmocka_unit_test(nested_regions_run_alone),
        cmocka_unit_test(several_callers),
        cmocka_unit_test(stopped_regions_leave_the_rest),
        cmocka_unit_test(callers_are_asked),
        cmocka_unit_test(memory_is_kept_straight),
        cmocka_unit_test(counts_of_threads),
        cmocka_unit_test(quotas_limit_the_count),
        cmocka_unit_test(small_regions_wake_nobody),
        cmocka_unit_test(workers_stop_spinning_in_vain),
        cmocka_unit_test(many_small_regions_are_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
