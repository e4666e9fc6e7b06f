/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads, and the pool that kernels run on.
 *
 * The pool runs one parallel region at a time for each caller: kelp_pool_run splits [0, count) into
 * chunks taken by an atomic counter; the caller works too. Workers spin at most 50 µs after the
 * last region, then sleep in a futex, so an idle pool costs no CPU. A region that is too small to
 * wake anyone for is shared among the workers that are still awake; such regions wake one only
 * where they come one after the other and fill most of the time. Several threads may call at once:
 * a caller that finds the pool busy runs its region alone. A pool of 1 has no threads. No
 * allocation a run.
 *
 * A region that may be stopped goes by parts of some ms, also where one thread runs it: before each
 * the stop is looked at, and once it is set what has not begun is left out.
 */
#ifndef KELP_BASE_THREAD_H_
#define KELP_BASE_THREAD_H_

#include <kelp/allocator.h>

#include <pthread.h>
#include <stdatomic.h>

typedef struct kelp_pool kelp_pool;

/* Works on [begin, end). `worker` is 0 … thread_count - 1, unique among those that run at once. */
typedef void (*kelp_range_fn)(void *userp, int64_t begin, int64_t end, int worker);

/* `thread_count` counts the caller; 0 takes the number of usable CPUs (affinity and cgroup quota
 * respected). */
kelp_status *kelp_pool_create(kelp_allocator allocator, int thread_count,
                              kelp_pool **out) KELP_MUST_USE;
void kelp_pool_destroy(kelp_pool *pool);
int kelp_pool_threads(const kelp_pool *pool); /* 1 for NULL */
/* Runs fn over [0, count). `grain` is the count whose work, some 16 µs, is worth waking a thread
 * for: chunks are of at least `grain`, or two equal ones when there are fewer than twice as many.
 * Up to a grain, workers that are awake get chunks of about a quarter of it, or it runs inline. So
 * does every region when pool is NULL or busy. */
void kelp_pool_run(kelp_pool *pool, int64_t count, int64_t grain, kelp_range_fn fn, void *userp);

/* Who may end a region, or a run of many, before its end. */
typedef struct kelp_stop {
    _Atomic bool set; /* from any thread */
    bool (*interrupt)(
        void *userp); /* asked whether to stop, by no worker of a pool; NULL: nobody */
    void *interrupt_userp;
} kelp_stop;
/* true once it was set. Costs a load. Any thread; NULL is never set. */
static inline bool kelp_stop_is_set(const kelp_stop *stop) {
    return stop != NULL && atomic_load_explicit(&stop->set, memory_order_relaxed);
}
/* The same; besides, a thread that is no worker asks `interrupt`, whose yes sets it. */
bool kelp_stop_asked(kelp_stop *stop);
/* kelp_pool_run that `stop`, when there is one, may end: who called must look whether it is set
 * afterwards, for then parts of the range may be left out. No part that has begun is broken off. */
void kelp_pool_run_until(kelp_pool *pool, int64_t count, int64_t grain, kelp_range_fn fn,
                         void *userp, kelp_stop *stop);

int kelp_cpu_count(void);

/* pthread wrappers that report failure as a status; `name` (at most 15 bytes) shows in debuggers.
 */
kelp_status *kelp_thread_start(pthread_t *out, const char *name, void *(*fn)(void *),
                               void *userp) KELP_MUST_USE;

#endif
