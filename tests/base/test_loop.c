/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop on real pipes, threads and signals: order of posts and timers, files removed in
 * the middle of a round, stops from anywhere, the load. Nothing here depends on how fast the
 * machine is. */
#include "base/sync/loop.h"

#include "base/checked.h"
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static kelp_event_loop *create(void) {
    kelp_event_loop *loop = NULL;
    assert_null(kelp_event_loop_create(kelp_allocator_system(), &loop));
    return loop;
}

/* ---- files ---- */
typedef struct pipe_end {
    kelp_event_loop_io io;
    kelp_event_loop *loop;
    int write_fd;
    int calls;
    uint32_t seen;
    struct pipe_end *other; /* removed when this one is called */
} pipe_end;

static void open_pipe(pipe_end *end, kelp_event_loop *loop, kelp_event_loop_io_fn fn) {
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    *end = (pipe_end){.io = {.fd = fds[0], .fn = fn}, .loop = loop, .write_fd = fds[1]};
    end->io.userp = end;
    assert_null(kelp_event_loop_add(loop, &end->io, KELP_LOOP_READ));
}

static void close_pipe(pipe_end *end) {
    close(end->io.fd);
    if (end->write_fd >= 0)
        close(end->write_fd);
}

static void read_and_stop(kelp_event_loop_io *io, uint32_t events) {
    pipe_end *end = io->userp;
    char c;
    end->calls++;
    end->seen |= events;
    if (events & KELP_LOOP_READ)
        assert_int_equal(read(io->fd, &c, 1), 1);
    kelp_event_loop_remove(end->loop, io);
    kelp_event_loop_stop(end->loop);
}

static void readable_and_hung_up(void **state) {
    (void)state;
    kelp_event_loop *loop = create();
    pipe_end end;
    open_pipe(&end, loop, read_and_stop);
    assert_int_equal(write(end.write_fd, "x", 1), 1);
    assert_null(kelp_event_loop_run(loop));
    assert_int_equal(end.calls, 1);
    assert_int_equal(end.seen, KELP_LOOP_READ);
    end.seen = 0;
    close(end.write_fd);
    end.write_fd = -1;
    assert_null(kelp_event_loop_add(loop, &end.io, 0));
    assert_null(kelp_event_loop_run(loop));
    assert_int_equal(end.seen, KELP_LOOP_HANGUP);
    close_pipe(&end);
    kelp_event_loop_destroy(loop);
}

/* Both are ready in the same round; whoever comes first takes the other away and closes it. */
static void remove_the_other(kelp_event_loop_io *io, uint32_t events) {
    pipe_end *end = io->userp;
    (void)events;
    end->calls++;
    kelp_event_loop_remove(end->loop, &end->other->io);
    close_pipe(end->other);
    memset(&end->other->io, 0xa5, sizeof(end->other->io)); /* as if its memory were freed */
    kelp_event_loop_remove(end->loop, io);
    kelp_event_loop_stop(end->loop);
}

static void removal_within_a_round(void **state) {
    (void)state;
    kelp_event_loop *loop = create();
    pipe_end a, b;
    open_pipe(&a, loop, remove_the_other);
    open_pipe(&b, loop, remove_the_other);
    a.other = &b;
    b.other = &a;
    assert_int_equal(write(a.write_fd, "x", 1), 1);
    assert_int_equal(write(b.write_fd, "x", 1), 1);
    assert_null(kelp_event_loop_run(loop));
    assert_int_equal(a.calls + b.calls, 1);
    close_pipe(a.calls ? &a : &b);
    kelp_event_loop_destroy(loop);
}

static void mute_the_other(kelp_event_loop_io *io, uint32_t events) {
    pipe_end *end = io->userp;
    (void)events;
    end->calls++;
    assert_null(kelp_event_loop_modify(end->loop, &end->other->io, 0));
    assert_null(kelp_event_loop_modify(end->loop, io, 0));
    kelp_event_loop_stop(end->loop);
}

static void modification_within_a_round(void **state) {
    (void)state;
    kelp_event_loop *loop = create();
    pipe_end a, b;
    open_pipe(&a, loop, mute_the_other);
    open_pipe(&b, loop, mute_the_other);
    a.other = &b;
    b.other = &a;
    assert_int_equal(write(a.write_fd, "x", 1), 1);
    assert_int_equal(write(b.write_fd, "x", 1), 1);
    assert_null(kelp_event_loop_run(loop));
    assert_int_equal(a.calls + b.calls, 1);
    close_pipe(&a);
    close_pipe(&b);
    kelp_event_loop_destroy(loop);
}

static void a_bad_file_is_a_status(void **state) {
    (void)state;
    kelp_event_loop *loop = create();
    kelp_event_loop_io io = {.fd = -1, .fn = read_and_stop};
    kelp_status *status = kelp_event_loop_add(loop, &io, KELP_LOOP_READ);
    assert_non_null(status);
    assert_non_null(strstr(kelp_status_message(status), "cannot add a file"));
    kelp_status_free(status);
    kelp_event_loop_destroy(loop);
}

/* ---- timers ---- */
typedef struct alarm_clock {
    kelp_event_loop_timer timer;
    kelp_event_loop *loop;
    int *order;
    int *count;
    int id;
    int repeats;
    bool stops;
} alarm_clock;

static void ring(kelp_event_loop_timer *timer) {
    alarm_clock *alarm = (alarm_clock *)(void *)timer;
    assert_int_equal(timer->heap_index, 0);
    assert_true(kelp_event_loop_now_ns(alarm->loop) >= timer->deadline_ns);
    if (alarm->order != NULL)
        alarm->order[(*alarm->count)++] = alarm->id;
    if (alarm->repeats-- > 0)
        assert_null(
            kelp_event_loop_timer_set(alarm->loop, timer, kelp_event_loop_now_ns(alarm->loop)));
    else if (alarm->stops)
        kelp_event_loop_stop(alarm->loop);
}

static void timers_in_order_of_their_deadlines(void **state) {
    (void)state;
    enum { TIMERS = 200 };
    static alarm_clock alarms[TIMERS];
    int order[TIMERS], count = 0, expected = 0;
    kelp_event_loop *loop = create();
    uint64_t base = kelp_now_ns();
    for (int i = 0; i < TIMERS; i++) {
        int place = (i * 77 + 13) % TIMERS; /* 77 and 200 share no factor: each place once */
        alarms[i] = (alarm_clock){
            .timer = {.fn = ring}, .loop = loop, .order = order, .count = &count, .id = place};
        alarms[i].stops = place == TIMERS - 1;
        /* once for a wrong time, then again: arming anew moves it */
        assert_null(kelp_event_loop_timer_set(loop, &alarms[i].timer, base + (uint64_t)i));
        assert_null(
            kelp_event_loop_timer_set(loop, &alarms[i].timer, base + 1000 * (uint64_t)place));
    }
    for (int i = 0; i < TIMERS; i++) {
        if (alarms[i].id % 3 == 0)
            kelp_event_loop_timer_cancel(loop, &alarms[i].timer);
        if (alarms[i].id % 6 == 0)
            kelp_event_loop_timer_cancel(loop, &alarms[i].timer); /* twice does nothing */
    }
    assert_null(kelp_event_loop_run(loop));
    for (int id = 0; id < TIMERS; id++) {
        if (id % 3 != 0)
            assert_int_equal(order[expected++], id);
    }
    assert_int_equal(count, expected);
    kelp_event_loop_destroy(loop);
}

/* A timer that is always due rings once a round. */
static void a_timer_due_at_once_does_not_starve_files(void **state) {
    (void)state;
    kelp_event_loop *loop = create();
    pipe_end end;
    alarm_clock alarm = {.timer = {.fn = ring}, .loop = loop, .repeats = INT32_MAX};
    open_pipe(&end, loop, read_and_stop);
    assert_null(kelp_event_loop_timer_set(loop, &alarm.timer, kelp_now_ns()));
    assert_int_equal(write(end.write_fd, "x", 1), 1);
    assert_null(kelp_event_loop_run(loop));
    assert_int_equal(end.calls, 1);
    assert_int_equal(alarm.repeats, INT32_MAX - 1);
    close_pipe(&end);
    kelp_event_loop_destroy(loop);
}

/* ---- posts and stops ---- */
typedef struct job {
    kelp_event_loop_task task;
    kelp_event_loop *loop;
    int producer, number;
    int *next; /* by producer: the number that must come */
    int *left;
} job;

static void run_job(kelp_event_loop_task *task) {
    job *self = (job *)(void *)task;
    assert_int_equal(self->next[self->producer]++, self->number);
    if (--*self->left == 0)
        kelp_event_loop_stop(self->loop);
}

enum { PRODUCERS = 3, EACH = 5000 };

static void *post_all(void *userp) {
    job *jobs = userp;
    for (int i = 0; i < EACH; i++)
        kelp_event_loop_post(jobs[i].loop, &jobs[i].task);
    return NULL;
}

static void posts_from_threads_in_their_order(void **state) {
    (void)state;
    static job jobs[PRODUCERS][EACH];
    int next[PRODUCERS] = {0}, left = PRODUCERS * EACH;
    pthread_t threads[PRODUCERS];
    kelp_event_loop *loop = create();
    for (int p = 0; p < PRODUCERS; p++) {
        for (int i = 0; i < EACH; i++)
            jobs[p][i] = (job){.task = {.fn = run_job},
                               .loop = loop,
                               .producer = p,
                               .number = i,
                               .next = next,
                               .left = &left};
        assert_int_equal(pthread_create(&threads[p], NULL, post_all, jobs[p]), 0);
    }
    assert_null(kelp_event_loop_run(loop));
    for (int p = 0; p < PRODUCERS; p++)
        assert_int_equal(pthread_join(threads[p], NULL), 0);
    assert_int_equal(left, 0);
    kelp_event_loop_destroy(loop);
}

/* More than a round takes, all posted before a stop: none is lost. */
static void posts_before_a_stop_run(void **state) {
    (void)state;
    static job jobs[1000];
    int next[1] = {0}, left = (int)KELP_COUNT(jobs) + 1;
    kelp_event_loop *loop = create();
    for (int i = 0; i < (int)KELP_COUNT(jobs); i++) {
        jobs[i] =
            (job){.task = {.fn = run_job}, .loop = loop, .number = i, .next = next, .left = &left};
        kelp_event_loop_post(loop, &jobs[i].task);
    }
    kelp_event_loop_stop(loop);
    assert_null(kelp_event_loop_run(loop));
    assert_int_equal(left, 1);
    kelp_event_loop_destroy(loop);
}

static void run_and_stop(kelp_event_loop_task *task) {
    kelp_event_loop_stop(((job *)(void *)task)->loop);
}

static void *post_and_leave(void *userp) {
    job *self = userp;
    kelp_event_loop_post(self->loop, &self->task);
    return NULL;
}

/* The loop, awake by itself, may be destroyed as soon as a task has run, while its poster is on its
 * way out. */
static void destroyed_under_a_poster(void **state) {
    (void)state;
    for (int round = 0; round < 300; round++) {
        kelp_event_loop *loop = create();
        job posted = {.task = {.fn = run_and_stop}, .loop = loop};
        alarm_clock busy = {.timer = {.fn = ring}, .loop = loop, .repeats = INT_MAX};
        assert_null(kelp_event_loop_timer_set(loop, &busy.timer, 0));
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, post_and_leave, &posted), 0);
        assert_null(kelp_event_loop_run(loop));
        kelp_event_loop_destroy(loop);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
}

typedef struct endless {
    kelp_event_loop_task task;
    kelp_event_loop *loop;
    const pipe_end *until;
    int runs;
} endless;

static void post_again(kelp_event_loop_task *task) {
    endless *self = (endless *)(void *)task;
    if (++self->runs == 1000)
        assert_int_equal(write(self->until->write_fd, "x", 1), 1);
    if (self->until->calls == 0)
        kelp_event_loop_post(self->loop, task);
}

/* It writes what the file's callback waits for, and only that callback ends it. */
static void a_task_that_posts_itself_does_not_starve_files(void **state) {
    (void)state;
    kelp_event_loop *loop = create();
    pipe_end end;
    endless task = {.task = {.fn = post_again}, .loop = loop, .until = &end};
    open_pipe(&end, loop, read_and_stop);
    kelp_event_loop_post(loop, &task.task);
    assert_null(kelp_event_loop_run(loop));
    assert_int_equal(end.calls, 1);
    close_pipe(&end);
    kelp_event_loop_destroy(loop);
}

static kelp_event_loop *volatile signalled;

static void on_signal(int number) {
    (void)number;
    kelp_event_loop_stop(signalled);
}

static void *signal_main(void *userp) {
    pthread_kill(*(pthread_t *)userp, SIGUSR1);
    return NULL;
}

static void stop_from_a_signal_handler(void **state) {
    (void)state;
    kelp_event_loop *loop = create();
    pthread_t self = pthread_self(), thread;
    struct sigaction action = {.sa_handler = on_signal}, before;
    signalled = loop;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    assert_int_equal(pthread_create(&thread, NULL, signal_main, &self), 0);
    assert_null(kelp_event_loop_run(loop));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    kelp_event_loop_destroy(loop);
}

static void stop_before_run_and_run_again(void **state) {
    (void)state;
    kelp_event_loop *loop = create();
    errno = 77;
    kelp_event_loop_stop(loop);
    assert_int_equal(errno, 77);
    assert_null(kelp_event_loop_run(loop));
    alarm_clock alarm = {.timer = {.fn = ring}, .loop = loop, .repeats = 2, .stops = true};
    assert_null(kelp_event_loop_timer_set(loop, &alarm.timer, 0));
    assert_null(kelp_event_loop_run(loop));
    assert_int_equal(alarm.repeats, -1);
    kelp_event_loop_destroy(loop);
    kelp_event_loop_destroy(NULL);
}

/* ---- the load ---- */
typedef struct load_watch {
    kelp_event_loop_timer timer;
    kelp_event_loop *loop;
    bool works; /* or waits */
} load_watch;

static void work_or_wait(kelp_event_loop_timer *timer) {
    enum { STEP_NS = 10000000 };
    load_watch *watch = timer->userp;
    if (kelp_event_loop_is_busy(watch->loop) == watch->works) {
        kelp_event_loop_stop(watch->loop);
        return;
    }
    uint64_t end_ns = kelp_now_ns() + STEP_NS;
    while (watch->works && kelp_now_ns() < end_ns)
        continue;
    assert_null(kelp_event_loop_timer_set(watch->loop, timer, end_ns));
}

static void a_loop_that_works_is_busy(void **state) {
    (void)state;
    kelp_event_loop *loop = create();
    load_watch watch = {.timer = {.fn = work_or_wait}, .loop = loop};
    watch.timer.userp = &watch;
    assert_false(kelp_event_loop_is_busy(loop));
    for (int i = 0; i < 4; i++) {
        watch.works = i % 2 == 0;
        assert_null(kelp_event_loop_timer_set(loop, &watch.timer, 0));
        assert_null(kelp_event_loop_run(loop));
        assert_int_equal(kelp_event_loop_is_busy(loop), watch.works);
    }
    kelp_event_loop_destroy(loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readable_and_hung_up),
        cmocka_unit_test(removal_within_a_round),
        cmocka_unit_test(modification_within_a_round),
        cmocka_unit_test(a_bad_file_is_a_status),
        cmocka_unit_test(timers_in_order_of_their_deadlines),
        cmocka_unit_test(a_timer_due_at_once_does_not_starve_files),
        cmocka_unit_test(posts_from_threads_in_their_order),
        cmocka_unit_test(posts_before_a_stop_run),
        cmocka_unit_test(destroyed_under_a_poster),
        cmocka_unit_test(a_task_that_posts_itself_does_not_starve_files),
        cmocka_unit_test(stop_from_a_signal_handler),
        cmocka_unit_test(stop_before_run_and_run_again),
        cmocka_unit_test(a_loop_that_works_is_busy),
    };
    return cmocka_run_group_tests_name("base.loop", tests, NULL, NULL);
}
