/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements the thread pool. Workers may join a region as long as its caller has chunks to take;
 * then the caller closes the gate and waits only for the workers that have joined. A worker that
 * wakes up late finds the gate closed and sleeps again, so that no thread waits for an idle one.
 * Thread safety: kelp_pool_run may be called by any thread; the fields under "the region" are
 * written by the caller while the gate is closed and empty, and read by workers after they have
 * joined.
 */
#include "base/sync/thread.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPIN_NS 50000u
/* Parameters of workers that spin in vain: see next_generation. */
#define SHORT_SPIN_NS 5000u
#define MAX_PATIENCE 16
#define PATIENCE_GAIN 4
#define CACHE_LINE 64
#define MAX_THREADS 4096
#define CHUNKS_A_THREAD 8
/* Parameters of regions that can be stopped: see take_parts. */
#define PART_NS 4000000
#define FIRST_GRAINS 256
#define FIRST_UNITS 4
#define PART_GROWTH 16
/* Parameters of regions smaller than a grain: see share_small. */
#define AWAKE_PARTS 4
#define GRAIN_NS 16000.0
#define CREDIT_NS 48000
#define REST_NS 10000000u

/* The gate: the low bits count the workers inside. */
#define GATE_OPEN 0x10000u
#define GATE_WAITED_FOR 0x20000u
#define GATE_INSIDE 0xFFFFu

#define NO_CPU (-1)

typedef struct worker {
    kelp_pool *pool;
    pthread_t thread;
    int index;
    pid_t id;        /* of the kernel; valid once `cpu` has been set */
    _Atomic int cpu; /* on which it went to sleep; NO_CPU while it is awake */
    atomic_bool moved;
    cpu_set_t allowed; /* if it was moved: the CPUs before */
} worker;

/* A function, its range and how the range is divided. */
typedef struct region {
    kelp_range_fn fn;
    void *userp;
    kelp_stop *stop;
    int64_t grain;
    int64_t first; /* length of a thread's first part */
    bool divided;  /* the first part is not the whole range */
} region;

struct kelp_pool {
    kelp_allocator allocator;
    int thread_count;
    int started_count; /* number of running workers: thread_count - 1 after creation */
    worker *workers;
    atomic_flag busy;
    atomic_bool stop;
    /* For small regions: credit that their work has earned, when it was last updated, and the time
     * until which none is shared. */
    _Atomic int64_t credit_ns;
    _Atomic uint64_t credited_ns;
    _Atomic uint64_t rest_until_ns;
    /* the region */
    region region;
    int64_t count;
    int64_t chunk;
    int64_t longer; /* number of chunks that are one item longer */
    int64_t chunk_count;
    /* a cache line each, because threads contend for them */
    _Alignas(CACHE_LINE) _Atomic int64_t next_chunk;
    _Alignas(CACHE_LINE) _Atomic uint32_t gate;
    _Alignas(CACHE_LINE) _Atomic uint32_t
        generation; /* number of regions; idle workers sleep on it */
    _Atomic uint32_t sleeping;
};

/* True on worker threads, which do not poll interrupt callbacks. */
static _Thread_local bool is_worker;

static void futex_wait(_Atomic uint32_t *word, uint32_t expected) {
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int count) {
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static inline void pause_cpu(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" ::: "memory");
#endif
}

/* State of spinning, for callers and workers. The clock is read once per 32 iterations. */
typedef struct spin {
    uint64_t since_ns;
    uint64_t spent_ns; /* at the last reading */
    uint32_t turns;
} spin;

/* Returns false when the time is over. */
static bool spin_on(spin *inout_spin, uint64_t limit_ns) {
    pause_cpu();
    if (inout_spin->turns++ % 32 != 0)
        return true;
    uint64_t now_ns = kelp_now_ns();
    if (inout_spin->since_ns == 0)
        inout_spin->since_ns = now_ns;
    inout_spin->spent_ns = now_ns - inout_spin->since_ns;
    return inout_spin->spent_ns < limit_ns;
}

bool kelp_stop_asked(kelp_stop *stop) {
    if (stop == NULL || kelp_stop_is_set(stop))
        return stop != NULL;
    if (stop->interrupt == NULL || is_worker || !stop->interrupt(stop->interrupt_userp))
        return false;
    atomic_store_explicit(&stop->set, true, memory_order_relaxed);
    return true;
}

/* Estimates how many units take PART_NS, given that `done` took the time since `since_ns`. Only
 * the last part is known, so that lengths grow in steps. */
static int64_t next_part(const region *r, int64_t done, uint64_t since_ns) {
    uint64_t took_ns = KELP_MAX(kelp_now_ns() - since_ns, (uint64_t)1);
    double part = (double)done * KELP_MIN((double)PART_NS / (double)took_ns, (double)PART_GROWTH);
    int64_t units = part < 0x1p62 ? KELP_MAX((int64_t)part, (int64_t)1) : INT64_MAX;
    return units > r->grain ? units - units % r->grain : units;
}

/*
 * Processes [begin, end) in parts; returns false if it was stopped. A grain promises about 16 µs
 * of work, but a grain of one unit may take far longer. A thread therefore begins with the number
 * of grains that should take a few milliseconds, or with a few units, and measures if more is
 * left: parts of PART_NS are long enough to make the measurement negligible. `*inout_part` is the
 * current length of a part.
 */
static bool take_parts(const region *r, int64_t begin, int64_t end, int worker_index,
                       int64_t *inout_part) {
    KELP_ASSERT(r->grain >= 1 && *inout_part >= 1);
    while (begin < end) {
        if (kelp_stop_is_set(r->stop))
            return false;
        int64_t part = KELP_MIN(*inout_part, end - begin);
        uint64_t since_ns = part < end - begin ? kelp_now_ns() : 0;
        r->fn(r->userp, begin, begin + part, worker_index);
        begin += part;
        if (begin < end)
            *inout_part = next_part(r, part, since_ns);
        if (r->divided && kelp_stop_asked(r->stop))
            return false;
    }
    return true;
}

static region make_region(kelp_range_fn fn, void *userp, kelp_stop *stop, int64_t count,
                          int64_t grain) {
    grain = KELP_MAX(grain, (int64_t)1);
    int64_t first = grain > INT64_MAX / FIRST_GRAINS ? INT64_MAX
                    : grain > 1                      ? grain * FIRST_GRAINS
                                                     : FIRST_UNITS;
    bool divided = stop != NULL && count > first;
    return (region){fn, userp, stop, grain, divided ? first : INT64_MAX, divided};
}

static void take_chunks(kelp_pool *pool, int worker_index) {
    const region *r = &pool->region;
    int64_t part = r->first;
    for (;;) {
        int64_t i = atomic_fetch_add_explicit(&pool->next_chunk, 1, memory_order_relaxed);
        if (i >= pool->chunk_count)
            return;
        int64_t begin = i * pool->chunk + KELP_MIN(i, pool->longer);
        if (!take_parts(r, begin, begin + pool->chunk + (i < pool->longer), worker_index, &part))
            return;
    }
}

static bool gate_enter(kelp_pool *pool) {
    uint32_t gate = atomic_load_explicit(&pool->gate, memory_order_relaxed);
    while (gate & GATE_OPEN) {
        if (atomic_compare_exchange_weak_explicit(&pool->gate, &gate, gate + 1,
                                                  memory_order_acquire, memory_order_relaxed))
            return true;
    }
    return false;
}

static void gate_leave(kelp_pool *pool) {
    uint32_t before = atomic_fetch_sub_explicit(&pool->gate, 1, memory_order_release);
    KELP_ASSERT((before & GATE_INSIDE) != 0);
    if (before == (GATE_WAITED_FOR | 1u))
        futex_wake(&pool->gate, 1);
}

/* Closes the gate and waits until the last worker has left; returns false if it had to sleep. */
static bool gate_close(kelp_pool *pool) {
    spin waiting = {0};
    uint32_t gate = atomic_fetch_and_explicit(&pool->gate, ~GATE_OPEN, memory_order_acquire);
    gate &= ~GATE_OPEN;
    while ((gate & GATE_INSIDE) && spin_on(&waiting, SPIN_NS))
        gate = atomic_load_explicit(&pool->gate, memory_order_acquire);
    if ((gate & GATE_INSIDE) == 0)
        return true;
    gate = atomic_fetch_or_explicit(&pool->gate, GATE_WAITED_FOR, memory_order_acquire) |
           GATE_WAITED_FOR;
    while (gate & GATE_INSIDE) {
        futex_wait(&pool->gate, gate);
        gate = atomic_load_explicit(&pool->gate, memory_order_acquire);
    }
    return false;
}

/* Adapts the patience of a worker to the time until the next region. */
static void learn_patience(int *inout_patience, uint64_t spent_ns) {
    if (spent_ns >= SPIN_NS)
        *inout_patience -= *inout_patience > 0;
    else if (spent_ns >= SHORT_SPIN_NS)
        *inout_patience = KELP_MIN(*inout_patience + PATIENCE_GAIN, MAX_PATIENCE);
}

/*
 * Makes workers that fell asleep on the CPU of the calling thread wake up on another one. The
 * scheduler wakes a thread up where it slept if the machine was busy, even if other CPUs are idle;
 * the worker would then run only after the caller. It restores the set of its CPUs itself.
 */
static void move_sleepers(kelp_pool *pool) {
    int own = sched_getcpu();
    for (int i = 0; i < pool->started_count; i++) {
        worker *w = &pool->workers[i];
        cpu_set_t others;
        if (own < 0 || atomic_load_explicit(&w->cpu, memory_order_acquire) != own ||
            atomic_load_explicit(&w->moved, memory_order_acquire) ||
            sched_getaffinity(w->id, sizeof w->allowed, &w->allowed) != 0)
            continue;
        others = w->allowed;
        CPU_CLR((size_t)own, &others);
        if (CPU_COUNT(&others) == 0 || sched_setaffinity(w->id, sizeof others, &others) != 0)
            continue;
        atomic_store_explicit(&w->moved, true, memory_order_release);
    }
}

static void restore_cpus(worker *w) {
    if (!atomic_load_explicit(&w->moved, memory_order_acquire))
        return;
    (void)sched_setaffinity(0, sizeof w->allowed, &w->allowed);
    atomic_store_explicit(&w->moved, false, memory_order_release);
}

/*
 * Waits for a region other than `seen` and returns its number. A worker spins for SPIN_NS if
 * regions often follow within this time, but not within SHORT_SPIN_NS, as in a model whose parts
 * run on one thread between its regions. If it mostly spins in vain, as after each of many short
 * inferences of a server, it takes the CPU from other threads: it then spins for SHORT_SPIN_NS.
 */
static uint32_t next_generation(worker *self, uint32_t seen, int *inout_patience) {
    kelp_pool *pool = self->pool;
    spin waiting = {0};
    uint64_t limit_ns = *inout_patience > 0 ? SPIN_NS : SHORT_SPIN_NS;
    for (;;) {
        uint32_t now = atomic_load_explicit(&pool->generation, memory_order_acquire);
        if (now != seen) {
            learn_patience(inout_patience, waiting.spent_ns);
            return now;
        }
        if (spin_on(&waiting, limit_ns))
            continue;
        restore_cpus(self);
        atomic_store_explicit(&self->cpu, sched_getcpu(), memory_order_release);
        /* Counted before the futex checks the word, as the caller changes the word before it
         * checks the count: one of them sees the other. */
        atomic_fetch_add_explicit(&pool->sleeping, 1, memory_order_seq_cst);
        while ((now = atomic_load_explicit(&pool->generation, memory_order_seq_cst)) == seen)
            futex_wait(&pool->generation, seen);
        atomic_fetch_sub_explicit(&pool->sleeping, 1, memory_order_relaxed);
        atomic_store_explicit(&self->cpu, NO_CPU, memory_order_relaxed);
        learn_patience(inout_patience, kelp_now_ns() - waiting.since_ns);
        return now;
    }
}

static void *worker_main(void *userp) {
    worker *self = userp;
    kelp_pool *pool = self->pool;
    uint32_t seen = 0;
    int patience = MAX_PATIENCE;
    is_worker = true;
    self->id = (pid_t)syscall(SYS_gettid);
    for (;;) {
        seen = next_generation(self, seen, &patience);
        if (atomic_load_explicit(&pool->stop, memory_order_acquire))
            return NULL;
        if (gate_enter(pool)) {
            take_chunks(pool, self->index);
            gate_leave(pool);
        }
    }
}

static void announce(kelp_pool *pool, int wanted) {
    atomic_fetch_add_explicit(&pool->generation, 1, memory_order_seq_cst);
    if (wanted > 0 && atomic_load_explicit(&pool->sleeping, memory_order_seq_cst) != 0) {
        move_sleepers(pool);
        futex_wake(&pool->generation, wanted);
    }
}

/*
 * Decides whether a region smaller than a grain is shared and whether workers are woken up.
 * Handing work to a worker that is awake costs about 0.3 µs, waking one up tens of µs. Small
 * regions are therefore shared among awake workers, and wake others up only if they follow each
 * other so closely that they fill most of the time and add up to several grains. If they fill
 * less, they are not shared, so that workers fall asleep. If a worker lost its CPU during a
 * region, CPUs are contended: for a while small regions run on their callers.
 */
static bool share_small(kelp_pool *pool, int64_t count, int64_t grain, bool *out_wake) {
    uint64_t now_ns = kelp_now_ns();
    uint64_t before_ns = atomic_exchange_explicit(&pool->credited_ns, now_ns, memory_order_relaxed);
    int64_t passed_ns = (int64_t)KELP_MIN(now_ns - before_ns, (uint64_t)2 * CREDIT_NS);
    int64_t credit_ns =
        atomic_load_explicit(&pool->credit_ns, memory_order_relaxed) - passed_ns / 2;
    bool dense = credit_ns > 0;
    credit_ns =
        KELP_MAX(credit_ns, (int64_t)0) + (int64_t)((double)count * GRAIN_NS / (double)grain);
    uint32_t sleeping = atomic_load_explicit(&pool->sleeping, memory_order_relaxed);
    bool rest = now_ns < atomic_load_explicit(&pool->rest_until_ns, memory_order_relaxed);
    *out_wake = credit_ns >= CREDIT_NS && sleeping > 0 && !rest;
    credit_ns = *out_wake ? CREDIT_NS / 2 : KELP_MIN(credit_ns, (int64_t)CREDIT_NS);
    atomic_store_explicit(&pool->credit_ns, credit_ns, memory_order_relaxed);
    return *out_wake || (dense && sleeping < (uint32_t)pool->started_count && !rest);
}

/* Runs a region after the pool was acquired; wakes up to `wanted` sleeping workers. */
static void run_region(kelp_pool *pool, int64_t count, int64_t chunks, int wanted) {
    KELP_ASSERT(chunks >= 1 && chunks <= count);
    KELP_ASSERT((atomic_load_explicit(&pool->gate, memory_order_relaxed) & GATE_INSIDE) == 0);
    pool->count = count;
    pool->chunk = count / chunks;
    pool->longer = count % chunks;
    pool->chunk_count = chunks;
    atomic_store_explicit(&pool->next_chunk, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->gate, GATE_OPEN, memory_order_release);
    announce(pool, wanted);
    take_chunks(pool, 0);
}

void kelp_pool_run(kelp_pool *pool, int64_t count, int64_t grain, kelp_range_fn fn, void *userp) {
    kelp_pool_run_until(pool, count, grain, fn, userp, NULL);
}

void kelp_pool_run_until(kelp_pool *pool, int64_t count, int64_t grain, kelp_range_fn fn,
                         void *userp, kelp_stop *stop) {
    if (count <= 0)
        return;
    region r = make_region(fn, userp, stop, count, grain);
    int64_t part = KELP_MAX(grain / AWAKE_PARTS, (int64_t)1);
    bool small = count <= grain, wake = true;
    if (pool == NULL || pool->started_count == 0 || count <= part ||
        (small && !share_small(pool, count, grain, &wake)) ||
        atomic_flag_test_and_set_explicit(&pool->busy, memory_order_acquire)) {
        (void)take_parts(&r, 0, count, 0, &r.first);
        return;
    }
    if (!small) /* awake workers may share the following small regions */
        atomic_store_explicit(&pool->credit_ns, CREDIT_NS, memory_order_relaxed);
    /* A few chunks per thread balance slow threads; equally many of equal length per thread leave
     * no remainder if all are equally fast. */
    int64_t threads = pool->thread_count;
    int64_t chunks =
        KELP_MAX(KELP_MIN(threads * CHUNKS_A_THREAD, count / (small ? part : grain)), (int64_t)2);
    if (small)
        chunks = KELP_MIN(chunks, threads);
    if (chunks > threads)
        chunks -= chunks % threads;
    pool->region = r;
    run_region(pool, count, chunks,
               wake ? (int)KELP_MIN(chunks - 1, (int64_t)pool->started_count) : 0);
    if (!gate_close(pool) && small)
        atomic_store_explicit(&pool->rest_until_ns, kelp_now_ns() + REST_NS, memory_order_relaxed);
    atomic_flag_clear_explicit(&pool->busy, memory_order_release);
}

int kelp_pool_threads(const kelp_pool *pool) {
    return pool != NULL ? pool->thread_count : 1;
}

void kelp_pool_destroy(kelp_pool *pool) {
    if (pool == NULL)
        return;
    kelp_allocator allocator = pool->allocator;
    atomic_store_explicit(&pool->stop, true, memory_order_release);
    announce(pool, INT_MAX);
    for (int i = 0; i < pool->started_count; i++)
        (void)pthread_join(pool->workers[i].thread, NULL);
    kelp_free(allocator, pool->workers, (size_t)(pool->thread_count - 1) * sizeof(worker));
    kelp_free_aligned(allocator, pool, sizeof *pool, CACHE_LINE);
}

kelp_status *kelp_pool_create(kelp_allocator allocator, int thread_count, kelp_pool **out) {
    void *memory = NULL;
    void *workers = NULL;
    *out = NULL;
    if (thread_count < 0 || thread_count > MAX_THREADS)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "cannot create a thread pool: expected 0 to %d threads, found %d",
                          MAX_THREADS, thread_count);
    if (thread_count == 0)
        thread_count = KELP_MIN(kelp_cpu_count(), MAX_THREADS);
    KELP_TRY(kelp_alloc_aligned(allocator, sizeof(kelp_pool), CACHE_LINE, &memory));
    memset(memory, 0, sizeof(kelp_pool));
    kelp_pool *pool = memory;
    pool->allocator = allocator;
    pool->thread_count = thread_count;
    atomic_flag_clear(&pool->busy);
    kelp_status *status =
        kelp_alloc_zero(allocator, (size_t)thread_count - 1, sizeof(worker), &workers);
    pool->workers = workers;
    for (int i = 0; status == NULL && i < thread_count - 1; i++) {
        char name[24];
        pool->workers[i].pool = pool;
        pool->workers[i].index = i + 1;
        atomic_init(&pool->workers[i].cpu, NO_CPU);
        (void)snprintf(name, sizeof name, "kelp-%d", i + 1);
        status = kelp_thread_start(&pool->workers[i].thread, name, worker_main, &pool->workers[i]);
        if (status == NULL)
            pool->started_count++;
    }
    if (status != NULL) {
        kelp_pool_destroy(pool);
        return status;
    }
    *out = pool;
    return NULL;
}

kelp_status *kelp_thread_start(pthread_t *out, const char *name, void *(*fn)(void *), void *userp) {
    int error = pthread_create(out, NULL, fn, userp);
    if (error != 0) {
        char text[128];
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "cannot start thread '%s': %s", name,
                          strerror_r(error, text, sizeof(text)));
    }
    (void)pthread_setname_np(*out, name);
    return NULL;
}

/* The first version of the kernel's struct sched_attr, which libraries declare only from glibc 2.41
 * on. */
typedef struct sched_attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns; /* SCHED_OTHER: runtime_ns is the time slice */
} sched_attributes;

void kelp_thread_prefer_latency(void) {
    enum { SLICE_NS = 100000 }; /* the minimum */
    sched_attributes attributes = {.size = sizeof attributes};
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0 ||
        attributes.policy != SCHED_OTHER)
        return;
    attributes.runtime_ns = SLICE_NS;
    (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

void kelp_thread_wait_precisely(void) {
    enum { SLACK_NS = 1000 };
    (void)prctl(PR_SET_TIMERSLACK, (unsigned long)SLACK_NS, 0ul, 0ul, 0ul);
}

/* Returns the number of CPUs that the scheduler may use for this thread; grows the set until the
 * kernel's fits. */
static int affinity_count(void) {
    for (int cpus = 1024; cpus <= 1024 * 1024; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        if (set == NULL)
            break;
        size_t set_bytes = CPU_ALLOC_SIZE(cpus);
        CPU_ZERO_S(set_bytes, set);
        int failed = sched_getaffinity(0, set_bytes, set);
        int error = errno;
        int count = failed ? 0 : CPU_COUNT_S(set_bytes, set);
        CPU_FREE(set);
        if (count > 0)
            return count;
        if (error != EINVAL)
            break;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

/* Reads a small file as text; returns false if it cannot be read completely. */
static bool read_small(const char *path, char *buffer, size_t capacity) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, buffer, capacity - 1);
    (void)close(fd);
    if (got < 0)
        return false;
    buffer[got] = '\0';
    return true;
}

/* Reads a file of a cgroup in a hierarchy ("" or "/cpu"). */
static bool read_of_cgroup(const char *hierarchy, const char *directory, const char *name,
                           char *text, size_t capacity) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "/sys/fs/cgroup%s%s/%s", hierarchy, directory, name);
    return length >= 0 && (size_t)length < sizeof path && read_small(path, text, capacity);
}

/* Returns the CPUs of a quota, rounded up; 0: no quota. */
static int cpus_of(long long quota, long long period) {
    if (quota <= 0 || period <= 0)
        return 0;
    long long cpus = quota / period + (quota % period != 0);
    return (int)KELP_MIN(cpus, INT_MAX);
}

/* Returns the CPU quota of a cgroup from "max 100000" or "150000 100000" (kernel documentation,
 * cgroup-v2, cpu.max); 0: no quota. */
static int quota_of_v2(const char *directory) {
    char text[64];
    long long quota, period;
    return read_of_cgroup("", directory, "cpu.max", text, sizeof text) &&
                   sscanf(text, "%lld %lld", &quota, &period) == 2
               ? cpus_of(quota, period)
               : 0;
}

/* Returns the CPU quota of a cgroup of version 1 (kernel documentation, CFS Bandwidth Control), -1
 * in its file without a quota; 0: no quota. */
static int quota_of_v1(const char *directory) {
    char quota[32], period[32];
    return read_of_cgroup("/cpu", directory, "cpu.cfs_quota_us", quota, sizeof quota) &&
                   read_of_cgroup("/cpu", directory, "cpu.cfs_period_us", period, sizeof period)
               ? cpus_of(strtoll(quota, NULL, 10), strtoll(period, NULL, 10))
               : 0;
}

/* Returns the smaller of two quotas, of which 0 means none. */
static int tighter(int a, int b) {
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* Returns the smallest quota of a cgroup and its ancestors; 0: none. Shortens the path. */
static int smallest_quota(char *inout_group, int (*quota_of)(const char *directory)) {
    int smallest = 0;
    for (;;) {
        smallest = tighter(smallest, quota_of(strcmp(inout_group, "/") == 0 ? "" : inout_group));
        char *slash = strrchr(inout_group, '/');
        if (slash == NULL)
            return smallest;
        *slash = '\0';
    }
}

/* Returns true if a list of controllers, such as "cpu,cpuacct", contains "cpu". */
static bool has_cpu(const char *controllers) {
    for (const char *at = controllers; (at = strstr(at, "cpu")) != NULL; at += 3)
        if ((at == controllers || at[-1] == ',') && (at[3] == '\0' || at[3] == ','))
            return true;
    return false;
}

/* Returns the smallest quota of this process's cgroups and their ancestors; 0: none. The lines of
 * the file are "ID:CONTROLLERS:PATH"; version 2 has ID 0 and no controllers. */
static int cgroup_count(void) {
    char text[PATH_MAX];
    char *next = text;
    int smallest = 0;
    if (!read_small("/proc/self/cgroup", text, sizeof text))
        return 0;
    for (char *line; (line = strsep(&next, "\n")) != NULL;) {
        (void)strsep(&line, ":");
        char *controllers = strsep(&line, ":");
        if (line == NULL)
            continue;
        if (*controllers == '\0')
            smallest = tighter(smallest, smallest_quota(line, quota_of_v2));
        else if (has_cpu(controllers))
            smallest = tighter(smallest, smallest_quota(line, quota_of_v1));
    }
    return smallest;
}

int kelp_cpu_count(void) {
    return tighter(affinity_count(), cgroup_count());
}
