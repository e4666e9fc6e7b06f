/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a closed loop and their samples. */
#include "cli/bench/load.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/sync/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SAMPLES (1u << 20)
#define MIN_RUNS 10u
#define BAR_INTERVAL_NS UINT64_C(100000000)
#define BAR_WIDTH 30

typedef struct load load;
typedef struct worker {
    load *all;
    size_t index;
    pthread_t thread;
    uint64_t *samples;
    uint64_t count; /* operations that succeeded */
    uint64_t failures, sum_ns, end_ns, random;
    kelp_status *status;
} worker;

struct load {
    const kelp_bench_load_options *options;
    pthread_mutex_t gate; /* held until the workers may start */
    uint64_t begin_ns, deadline_ns;
    size_t samples_max; /* of a worker */
    uint64_t min_runs;  /* of a worker */
    atomic_bool stop;
    worker *workers;
    uint64_t *samples;
};

/* Draws the progress bar if stderr is a terminal. */
static void draw_bar(const char *label, double done) {
    if (label == NULL || !isatty(STDERR_FILENO))
        return;
    char bar[BAR_WIDTH + 1];
    int filled = (int)(done * BAR_WIDTH);
    for (int i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[BAR_WIDTH] = '\0';
    fprintf(stderr, "\r%s [%s] %3.0f %%", label, bar, done * 100);
    if (done >= 1)
        fprintf(stderr, "\r%78s\r", "");
}

/* Keeps a sample, or replaces a random one by it once there are too many.
 * Source: Vitter, "Random Sampling with a Reservoir" (ACM TOMS 11, 1, 1985), algorithm R. */
static void keep_sample(worker *w, uint64_t duration_ns) {
    uint64_t at = w->count++;
    w->sum_ns += duration_ns;
    if (at >= w->all->samples_max) {
        w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        at = (w->random >> 11) % w->count;
    }
    if (at < w->all->samples_max)
        w->samples[at] = duration_ns;
}

static void work(worker *w) {
    load *all = w->all;
    const kelp_bench_load_options *o = all->options;
    uint64_t now_ns = kelp_now_ns(), bar_ns = now_ns;
    while (!atomic_load(&all->stop) &&
           (now_ns < all->deadline_ns || w->count + w->failures < all->min_runs)) {
        bool failed = false;
        uint64_t before_ns = now_ns;
        w->status = o->invoke(o->userp, w->index, &failed);
        now_ns = kelp_now_ns();
        if (w->status != NULL) {
            atomic_store(&all->stop, true);
            break;
        }
        if (failed)
            w->failures++;
        else
            keep_sample(w, now_ns - before_ns);
        if (w->index == 0 && now_ns - bar_ns > BAR_INTERVAL_NS) {
            bar_ns = now_ns;
            double left = now_ns < all->deadline_ns ? (double)(all->deadline_ns - now_ns) : 0;
            draw_bar(o->label, KELP_MIN(1 - left / (o->seconds * 1e9 + 1), 0.99));
        }
    }
    w->end_ns = now_ns;
}

static void *worker_main(void *userp) {
    worker *w = userp;
    pthread_mutex_lock(&w->all->gate);
    pthread_mutex_unlock(&w->all->gate);
    work(w);
    return NULL;
}

/* Starts the threads of all workers except the first, and opens the gate. */
static kelp_status *run_workers(load *all) {
    kelp_status *status = NULL;
    size_t started = 1;
    pthread_mutex_lock(&all->gate);
    for (; started < all->options->workers; started++) {
        worker *w = &all->workers[started];
        status = kelp_thread_start(&w->thread, "kelp-bench", worker_main, w);
        if (status != NULL)
            break;
    }
    atomic_store(&all->stop, status != NULL);
    all->begin_ns = kelp_now_ns();
    all->deadline_ns = all->begin_ns + (uint64_t)(all->options->seconds * 1e9);
    pthread_mutex_unlock(&all->gate);
    work(&all->workers[0]);
    for (size_t i = 1; i < started; i++)
        pthread_join(all->workers[i].thread, NULL);
    draw_bar(all->options->label, 1);
    return status;
}

static int smaller_first(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Joins the samples of the workers, and computes the percentiles. */
static void summarize(load *all, kelp_bench_load_result *out) {
    size_t kept = 0;
    uint64_t end_ns = all->begin_ns, sum_ns = 0;
    for (size_t i = 0; i < all->options->workers; i++) {
        const worker *w = &all->workers[i];
        size_t own = (size_t)KELP_MIN(w->count, (uint64_t)all->samples_max);
        memmove(all->samples + kept, w->samples, own * sizeof *all->samples);
        kept += own;
        out->runs += w->count;
        out->failures += w->failures;
        sum_ns += w->sum_ns;
        end_ns = KELP_MAX(end_ns, w->end_ns);
    }
    out->elapsed_ns = end_ns - all->begin_ns;
    if (kept == 0)
        return;
    out->mean_ns = sum_ns / out->runs;
    qsort(all->samples, kept, sizeof *all->samples, smaller_first);
    for (size_t p = 0; p < KELP_BENCH_LOAD_POINTS; p++)
        out->quantiles_ns[p] =
            all->samples[KELP_MIN(kept * p / (KELP_BENCH_LOAD_POINTS - 1), kept - 1)];
    out->p99_9_ns = all->samples[KELP_MIN(kept * 999 / 1000, kept - 1)];
}

kelp_status *kelp_bench_load_run(const kelp_bench_load_options *options,
                                 kelp_bench_load_result *out) {
    kelp_allocator allocator = kelp_allocator_system();
    size_t count = options->workers, bytes = MAX_SAMPLES * sizeof(uint64_t);
    KELP_ASSERT(count >= 1 && count <= KELP_BENCH_LOAD_MAX_WORKERS);
    load all = {.options = options,
                .samples_max = MAX_SAMPLES / count,
                .min_runs = (MIN_RUNS + count - 1) / count};
    *out = (kelp_bench_load_result){0};
    KELP_TRY(kelp_alloc(allocator, bytes, (void **)&all.samples));
    kelp_status *status =
        kelp_alloc_zero(allocator, count, sizeof *all.workers, (void **)&all.workers);
    if (status == NULL) {
        pthread_mutex_init(&all.gate, NULL);
        for (size_t i = 0; i < count; i++)
            all.workers[i] = (worker){.all = &all,
                                      .index = i,
                                      .samples = all.samples + i * all.samples_max,
                                      .random = i + 1};
        status = run_workers(&all);
        pthread_mutex_destroy(&all.gate);
    }
    for (size_t i = 0; all.workers != NULL && i < count; i++) {
        if (status == NULL)
            status = all.workers[i].status;
        else
            kelp_status_free(all.workers[i].status);
    }
    if (status == NULL)
        summarize(&all, out);
    kelp_free(allocator, all.workers, count * sizeof *all.workers);
    kelp_free(allocator, all.samples, bytes);
    return status;
}
