/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads, and the pool that runs kernels.
 * The pool runs one parallel region at a time: kelp_pool_run splits [0, count) into chunks, which
 * the caller and the workers take from an atomic counter. Workers spin for at most 50 µs after the
 * last region, or 5 µs if they spun in vain after most of the regions before, then sleep on a
 * futex, so that an idle pool uses no CPU. A region that is too small to justify waking up a thread
 * is shared among awake workers; such regions wake up a worker only if they follow each other and
 * fill most of the time. If several threads call at the same time, a caller that finds the pool
 * busy runs its region alone. A pool of one has no threads. Running a region does not allocate.
 * A region that can be stopped runs in parts of a few milliseconds, even on one thread: before
 * each part the stop flag is checked, and once it is set the remaining parts are skipped.
 */
#ifndef KELP_BASE_SYNC_THREAD_H_
#define KELP_BASE_SYNC_THREAD_H_

#include <kelp/allocator.h>

#include <pthread.h>
#include <stdatomic.h>

typedef struct kelp_pool kelp_pool;

/* Callback that processes [begin, end). `worker` is 0 … thread_count - 1, unique among concurrent
 * calls of a region. */
typedef void (*kelp_range_fn)(void *userp, int64_t begin, int64_t end, int worker);

/* Creates a pool. `thread_count` includes the caller; 0 means the number of usable CPUs (affinity
 * and cgroup quota). */
kelp_status *kelp_pool_create(kelp_allocator allocator, int thread_count,
                              kelp_pool **out) KELP_MUST_USE;
void kelp_pool_destroy(kelp_pool *pool);
int kelp_pool_threads(const kelp_pool *pool); /* 1 for NULL */
/* Runs `fn` over [0, count). `grain` is the number of items whose work, about 16 µs, justifies
 * waking up a thread: chunks have at least `grain` items, or there are two equal ones if there are
 * fewer than twice as many. Up to one grain, awake workers get chunks of about a quarter, or the
 * region runs inline. Every region runs inline if the pool is NULL or busy. */
void kelp_pool_run(kelp_pool *pool, int64_t count, int64_t grain, kelp_range_fn fn, void *userp);

/* Stops a region, or a run of many, before its end. */
typedef struct kelp_stop {
    _Atomic bool set; /* set from any thread */
    bool (*interrupt)(
        void *userp); /* polled, except on worker threads; returns true to stop; may be NULL */
    void *interrupt_userp;
} kelp_stop;
/* Returns true once the flag is set. Costs one load. Thread-safe; false for NULL. */
static inline bool kelp_stop_is_set(const kelp_stop *stop) {
    return stop != NULL && atomic_load_explicit(&stop->set, memory_order_relaxed);
}
/* Returns true once the flag is set. On threads that are not workers, also polls `interrupt` and
 * sets the flag if it returns true. */
bool kelp_stop_asked(kelp_stop *stop);
/* Runs a region that `stop` (may be NULL) can end. The caller must check afterwards whether it is
 * set, because parts of the range may have been skipped. A part that has begun is not interrupted.
 */
void kelp_pool_run_until(kelp_pool *pool, int64_t count, int64_t grain, kelp_range_fn fn,
                         void *userp, kelp_stop *stop);

int kelp_cpu_count(void);

/* These functions wrap pthread calls and report failures as a status; `name` (at most 15 bytes) is
 * visible in debuggers. */
kelp_status *kelp_thread_start(pthread_t *out, const char *name, void *(*fn)(void *),
                               void *userp) KELP_MUST_USE;
/* Asks the kernel to run the calling thread soon after each wake-up, before threads that compute,
 * in return for shorter time slices. For threads that work for a short time, such as event loops.
 * Needs no privileges; without effect before Linux 6.12. */
void kelp_thread_prefer_latency(void);
/* Ends the timed waits of the calling thread within a microsecond of their time, instead of 50. */
void kelp_thread_wait_precisely(void);

#endif
