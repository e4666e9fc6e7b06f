/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the event loop: epoll for files, a binary heap for timers, an eventfd for posts and
 * stops. */
#include "base/sync/loop.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EPOLL_PWAIT2 441 /* the number of the system call on all architectures */
#define EVENTS_A_ROUND 64
/* Maximum number of tasks per round, so that many tasks, or tasks that post tasks, do not delay
 * files and timers. */
#define POSTS_A_ROUND 32
/* The share of time in which a loop works is averaged over LOAD_NS. */
#define LOAD_NS 5000000.0
static const double busy_load = 1.0 / 8, idle_load = 1.0 / 16;

struct kelp_event_loop {
    kelp_allocator allocator;
    int epoll_fd;
    int wake_fd;
    atomic_bool stopping;
    atomic_uint posting; /* threads inside kelp_event_loop_post() */
    kelp_queue posts;
    bool has_posts;                 /* some were left for the next round */
    kelp_event_loop_timer **timers; /* heap, indexed from 1 */
    size_t timer_count, timer_capacity;
    kelp_event_loop_deferred deferred; /* head of a circular list */
    uint64_t now_ns;
    double load; /* average share of time in which the loop works */
    bool busy;
    bool precise; /* the system has epoll_pwait2 */
    struct epoll_event events[EVENTS_A_ROUND];
    int event_count, event_at; /* events of the current round */
};

static kelp_status *system_error(const char *what) {
    int code = errno;
    char text[128];
    return KELP_ERROR(KELP_INTERNAL, "event loop: %s: %s", what,
                      strerror_r(code, text, sizeof text));
}

/* Waits for events, as epoll_pwait2, which not all versions of glibc declare. */
static int wait_precisely(int epoll_fd, struct epoll_event *events, int count, uint64_t wait_ns) {
    const struct {
        int64_t tv_sec, tv_nsec; /* the kernel's timespec, also on systems of 32 bits */
    } timeout = {(int64_t)(wait_ns / 1000000000), (int64_t)(wait_ns % 1000000000)};
    return (int)syscall(EPOLL_PWAIT2, epoll_fd, events, count, &timeout, NULL, (size_t)0);
}

kelp_status *kelp_event_loop_create(kelp_allocator allocator, kelp_event_loop **out) {
    kelp_event_loop *loop = NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_event_loop, &loop));
    loop->allocator = allocator;
    kelp_queue_init(&loop->posts);
    atomic_init(&loop->stopping, false);
    atomic_init(&loop->posting, 0);
    loop->deferred.previous = loop->deferred.next = &loop->deferred;
    loop->now_ns = kelp_now_ns();
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event wake = {.events = EPOLLIN, .data = {.ptr = NULL}};
    kelp_status *status = NULL;
    if (loop->epoll_fd < 0 || loop->wake_fd < 0 ||
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->wake_fd, &wake) != 0)
        status = system_error("cannot create");
    if (status != NULL) {
        kelp_event_loop_destroy(loop);
        return status;
    }
    loop->precise = wait_precisely(loop->epoll_fd, loop->events, EVENTS_A_ROUND, 0) >= 0;
    *out = loop;
    return NULL;
}

void kelp_event_loop_destroy(kelp_event_loop *loop) {
    if (loop == NULL)
        return;
    /* a thread whose task has run may still be inside kelp_event_loop_post() */
    while (atomic_load_explicit(&loop->posting, memory_order_acquire) != 0)
        sched_yield();
    if (loop->epoll_fd >= 0)
        close(loop->epoll_fd);
    if (loop->wake_fd >= 0)
        close(loop->wake_fd);
    kelp_free(loop->allocator, loop->timers, loop->timer_capacity * sizeof *loop->timers);
    kelp_free(loop->allocator, loop, sizeof *loop);
}

static void wake(kelp_event_loop *loop) {
    uint64_t one = 1;
    /* a full counter wakes up the loop too */
    while (write(loop->wake_fd, &one, sizeof one) < 0 && errno == EINTR) {
    }
}

void kelp_event_loop_stop(kelp_event_loop *loop) {
    int kept = errno; /* a signal handler must preserve errno */
    atomic_store(&loop->stopping, true);
    wake(loop);
    errno = kept;
}

void kelp_event_loop_post(kelp_event_loop *loop, kelp_event_loop_task *task) {
    KELP_ASSERT(task->fn != NULL);
    atomic_fetch_add_explicit(&loop->posting, 1, memory_order_relaxed);
    if (kelp_queue_push(&loop->posts, &task->node))
        wake(loop);
    atomic_fetch_sub_explicit(&loop->posting, 1, memory_order_release);
}

uint64_t kelp_event_loop_now_ns(const kelp_event_loop *loop) {
    return loop->now_ns;
}

/* ---- files ---- */
static uint32_t to_epoll(uint32_t events) {
    return (events & KELP_LOOP_READ ? EPOLLIN : 0u) | (events & KELP_LOOP_WRITE ? EPOLLOUT : 0u);
}

static kelp_status *control(kelp_event_loop *loop, int operation, kelp_event_loop_io *io,
                            uint32_t events) {
    struct epoll_event event = {.events = to_epoll(events), .data = {.ptr = io}};
    if (epoll_ctl(loop->epoll_fd, operation, io->fd, &event) != 0)
        return system_error(operation == EPOLL_CTL_ADD ? "cannot add a file" : "cannot modify");
    io->events = events;
    return NULL;
}

kelp_status *kelp_event_loop_add(kelp_event_loop *loop, kelp_event_loop_io *io, uint32_t events) {
    KELP_ASSERT(io->fn != NULL);
    return control(loop, EPOLL_CTL_ADD, io, events);
}

kelp_status *kelp_event_loop_modify(kelp_event_loop *loop, kelp_event_loop_io *io,
                                    uint32_t events) {
    return io->events == events ? NULL : control(loop, EPOLL_CTL_MOD, io, events);
}

void kelp_event_loop_remove(kelp_event_loop *loop, kelp_event_loop_io *io) {
    struct epoll_event unused = {0};
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, io->fd, &unused);
    /* pending events of this round must not reach it */
    for (int i = loop->event_at; i < loop->event_count; i++)
        if (loop->events[i].data.ptr == io)
            loop->events[i].events = 0;
}

kelp_status *kelp_event_loop_replace(kelp_event_loop *loop, kelp_event_loop_io *old,
                                     kelp_event_loop_io *io, uint32_t events) {
    KELP_ASSERT(io->fn != NULL && io->fd == old->fd);
    KELP_TRY(control(loop, EPOLL_CTL_MOD, io, events));
    for (int i = loop->event_at; i < loop->event_count; i++)
        if (loop->events[i].data.ptr == old)
            loop->events[i].data.ptr = io;
    return NULL;
}

/* ---- timers ---- */
static void put_timer(kelp_event_loop *loop, size_t at, kelp_event_loop_timer *timer) {
    KELP_ASSERT(at >= 1 && at <= loop->timer_count);
    loop->timers[at] = timer;
    timer->heap_index = at;
}

static void sift_up(kelp_event_loop *loop, size_t at, kelp_event_loop_timer *timer) {
    for (; at > 1 && loop->timers[at / 2]->deadline_ns > timer->deadline_ns; at /= 2)
        put_timer(loop, at, loop->timers[at / 2]);
    put_timer(loop, at, timer);
}

static void sift_down(kelp_event_loop *loop, size_t at, kelp_event_loop_timer *timer) {
    for (size_t child; (child = 2 * at) <= loop->timer_count; at = child) {
        if (child < loop->timer_count &&
            loop->timers[child + 1]->deadline_ns < loop->timers[child]->deadline_ns)
            child++;
        if (loop->timers[child]->deadline_ns >= timer->deadline_ns)
            break;
        put_timer(loop, at, loop->timers[child]);
    }
    put_timer(loop, at, timer);
}

void kelp_event_loop_timer_cancel(kelp_event_loop *loop, kelp_event_loop_timer *timer) {
    size_t at = timer->heap_index;
    if (at == 0)
        return;
    KELP_ASSERT(at <= loop->timer_count && loop->timers[at] == timer);
    timer->heap_index = 0;
    kelp_event_loop_timer *last = loop->timers[loop->timer_count--];
    if (last == timer)
        return;
    sift_down(loop, at, last);
    sift_up(loop, last->heap_index, last);
}

kelp_status *kelp_event_loop_timer_set(kelp_event_loop *loop, kelp_event_loop_timer *timer,
                                       uint64_t deadline_ns) {
    KELP_ASSERT(timer->fn != NULL);
    kelp_event_loop_timer_cancel(loop, timer);
    KELP_TRY(kelp_grow(loop->allocator, (void **)&loop->timers, &loop->timer_capacity,
                       loop->timer_count + 2, sizeof *loop->timers));
    timer->deadline_ns = deadline_ns;
    sift_up(loop, ++loop->timer_count, timer);
    return NULL;
}

static void run_timers(kelp_event_loop *loop) {
    /* counted, so that a timer that is set again for a past time runs in the next round */
    for (size_t left = loop->timer_count; left > 0; left--) {
        if (loop->timer_count == 0 || loop->timers[1]->deadline_ns > loop->now_ns)
            return;
        kelp_event_loop_timer *timer = loop->timers[1];
        kelp_event_loop_timer_cancel(loop, timer);
        timer->fn(timer);
    }
}

/* ---- deferred tasks ---- */
void kelp_event_loop_defer(kelp_event_loop *loop, kelp_event_loop_deferred *task) {
    KELP_ASSERT(task->fn != NULL);
    if (task->set)
        return;
    task->set = true;
    task->next = &loop->deferred;
    task->previous = loop->deferred.previous;
    task->previous->next = task->next->previous = task;
}

void kelp_event_loop_defer_cancel(kelp_event_loop *loop, kelp_event_loop_deferred *task) {
    (void)loop;
    if (!task->set)
        return;
    task->set = false;
    task->previous->next = task->next;
    task->next->previous = task->previous;
}

static void run_deferred(kelp_event_loop *loop) {
    while (loop->deferred.next != &loop->deferred) {
        kelp_event_loop_deferred *task = loop->deferred.next;
        kelp_event_loop_defer_cancel(loop, task);
        task->fn(task);
    }
}

/* ---- running ---- */
bool kelp_event_loop_is_busy(const kelp_event_loop *loop) {
    return loop->busy;
}

/* Adds the round that began at now_ns and the wait after it to the load. */
static void add_load(kelp_event_loop *loop, uint64_t worked_until_ns, uint64_t waited_until_ns) {
    double worked_ns = (double)(worked_until_ns - loop->now_ns);
    double waited_ns = (double)(waited_until_ns - worked_until_ns);
    loop->load = (loop->load * LOAD_NS + worked_ns) / (LOAD_NS + worked_ns + waited_ns);
    loop->busy = loop->load > (loop->busy ? idle_load : busy_load);
}

/* Returns the time until the first timer, at most a minute. */
static uint64_t time_left_ns(const kelp_event_loop *loop, uint64_t now_ns) {
    const uint64_t minute_ns = 60000000000;
    if (loop->has_posts)
        return 0;
    uint64_t deadline_ns = loop->timer_count > 0 ? loop->timers[1]->deadline_ns : UINT64_MAX;
    uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    return left_ns < minute_ns ? left_ns : minute_ns;
}

/* Waits for events until the first timer. */
static int wait_for_events(kelp_event_loop *loop, uint64_t now_ns) {
    uint64_t left_ns = time_left_ns(loop, now_ns);
    if (loop->precise)
        return wait_precisely(loop->epoll_fd, loop->events, EVENTS_A_ROUND, left_ns);
    return epoll_wait(loop->epoll_fd, loop->events, EVENTS_A_ROUND,
                      (int)((left_ns + 999999) / 1000000));
}

bool kelp_event_loop_is_precise(const kelp_event_loop *loop) {
    return loop->precise;
}

static void drain_wakes(const kelp_event_loop *loop) {
    uint64_t count;
    while (read(loop->wake_fd, &count, sizeof count) < 0 && errno == EINTR) {
    }
}

static bool run_post(kelp_event_loop *loop) {
    kelp_queue_node *node = kelp_queue_pop(&loop->posts);
    if (node == NULL)
        return false;
    kelp_event_loop_task *task = (kelp_event_loop_task *)(void *)node;
    task->fn(task);
    return true;
}

static void run_posts(kelp_event_loop *loop) {
    loop->has_posts = true; /* posts do not wake up a loop whose queue is not empty */
    for (int i = 0; i < POSTS_A_ROUND && loop->has_posts; i++)
        loop->has_posts = run_post(loop);
}

static void run_events(kelp_event_loop *loop, int count) {
    loop->event_count = count;
    for (loop->event_at = 0; loop->event_at < loop->event_count;) {
        const struct epoll_event *event = &loop->events[loop->event_at++];
        uint32_t bits = event->events;
        if (bits == 0)
            continue;
        kelp_event_loop_io *io = event->data.ptr;
        if (io == NULL) {
            drain_wakes(loop);
            continue;
        }
        uint32_t events = (bits & EPOLLIN ? KELP_LOOP_READ : 0u) |
                          (bits & EPOLLOUT ? KELP_LOOP_WRITE : 0u) |
                          (bits & (EPOLLHUP | EPOLLERR) ? KELP_LOOP_HANGUP : 0u);
        events &= io->events | KELP_LOOP_HANGUP; /* it may have been modified in this round */
        if (events != 0)
            io->fn(io, events);
    }
    loop->event_count = 0;
}

kelp_status *kelp_event_loop_run(kelp_event_loop *loop) {
    loop->now_ns = kelp_now_ns();
    while (!atomic_load(&loop->stopping)) {
        uint64_t wait_ns = kelp_now_ns();
        int count = wait_for_events(loop, wait_ns);
        if (count < 0 && errno != EINTR)
            return system_error("cannot wait");
        uint64_t now_ns = kelp_now_ns();
        add_load(loop, wait_ns, now_ns);
        loop->now_ns = now_ns;
        run_events(loop, count < 0 ? 0 : count);
        run_posts(loop);
        run_timers(loop);
        run_deferred(loop);
    }
    while (run_post(loop)) { /* tasks posted before the stop still run */
    }
    run_deferred(loop);
    atomic_store(&loop->stopping, false);
    return NULL;
}
