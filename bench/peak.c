/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peak rates of the machine, for bench/peers.py: multiplications and additions of floats in
 * registers, and bytes read from memory, with a given number of threads. The result is the best of
 * many short rounds, because other work can only lower the rate.
 *
 * usage: bench_peak THREADS
 * Prints one line of JSON.
 */
#include "base/clock.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SUMS 12
#define ROUNDS 60
#define STEPS 400000                  /* some 2 ms */
#define READ_BYTES ((size_t)64 << 20) /* of a thread: more than caches hold */
#define MOST_THREADS 64

typedef float wide __attribute__((vector_size(64)));
typedef float middle __attribute__((vector_size(32)));

typedef struct worker {
    pthread_t thread;
    pthread_barrier_t *start, *end;
    uint64_t begin_ns, end_ns; /* of the round */
    float *memory;
    float kept;
} worker;

/* The sums stay in registers: each is a chain of its own. */
#define PRODUCTS(name, vector, attributes)                                                     \
    attributes static float name(float seed) {                                                 \
        vector x = (vector){0} + seed, y = x * 0.5f, sums[SUMS];                               \
        for (int i = 0; i < SUMS; i++)                                                         \
            sums[i] = x * (float)i;                                                            \
        for (int step = 0; step < STEPS; step++) {                                             \
            _Pragma("GCC unroll 12") for (int i = 0; i < SUMS; i++) sums[i] = sums[i] * x + y; \
        }                                                                                      \
        for (int i = 1; i < SUMS; i++)                                                         \
            sums[0] += sums[i];                                                                \
        return sums[0][0] + sums[0][1];                                                        \
    }
#define READS(name, vector, attributes)                                \
    attributes static float name(const float *from) {                  \
        const vector *at = (const vector *)(const void *)from;         \
        vector a = at[0], b = at[1], c = at[2], d = at[3];             \
        for (size_t i = 4; i + 4 <= READ_BYTES / sizeof *at; i += 4) { \
            a += at[i];                                                \
            b += at[i + 1];                                            \
            c += at[i + 2];                                            \
            d += at[i + 3];                                            \
        }                                                              \
        a += b + c + d;                                                \
        return a[0] + a[1];                                            \
    }
#if defined(__x86_64__)
PRODUCTS(products_512, wide, __attribute__((target("avx512f"))))
READS(reads_512, wide, __attribute__((target("avx512f"))))
PRODUCTS(products_256, middle, __attribute__((target("avx2,fma"))))
READS(reads_256, middle, __attribute__((target("avx2,fma"))))
#endif
typedef float narrow __attribute__((vector_size(16)));
PRODUCTS(products_128, narrow, )
READS(reads_128, narrow, )

static float (*products)(float) = products_128;
static float (*reads)(const float *) = reads_128;
static double lanes = 4;

static void choose(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        products = products_512;
        reads = reads_512;
        lanes = 16;
    } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        products = products_256;
        reads = reads_256;
        lanes = 8;
    }
#endif
}

static void *work(void *userp) {
    worker *w = userp;
    for (int round = 0; round < 2 * ROUNDS; round++) {
        (void)pthread_barrier_wait(w->start);
        w->begin_ns = kelp_now_ns();
        w->kept += round < ROUNDS ? products(0.5f + w->kept * 1e-30f) : reads(w->memory);
        w->end_ns = kelp_now_ns();
        (void)pthread_barrier_wait(w->end);
    }
    return NULL;
}

static void *room(void) {
    size_t bytes = READ_BYTES + ((size_t)2 << 20);
    void *memory = NULL;
    if (posix_memalign(&memory, (size_t)2 << 20, bytes) != 0)
        exit(2);
#ifdef MADV_HUGEPAGE
    (void)madvise(memory, READ_BYTES, MADV_HUGEPAGE);
#endif
    memset(memory, 0, bytes);
    return memory;
}

int main(int argc, char **argv) {
    int threads = argc == 2 ? atoi(argv[1]) : 0;
    if (threads < 1 || threads > MOST_THREADS) {
        fprintf(stderr, "usage: bench_peak THREADS\n");
        return 2;
    }
    static worker workers[MOST_THREADS];
    pthread_barrier_t start, end;
    uint64_t best[2] = {UINT64_MAX, UINT64_MAX};
    choose();
    if (pthread_barrier_init(&start, NULL, (unsigned)threads + 1) != 0 ||
        pthread_barrier_init(&end, NULL, (unsigned)threads + 1) != 0)
        return 2;
    for (int i = 0; i < threads; i++) {
        workers[i] = (worker){.start = &start, .end = &end, .memory = room()};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return 2;
    }
    for (int round = 0; round < 2 * ROUNDS; round++) {
        (void)pthread_barrier_wait(&start);
        (void)pthread_barrier_wait(&end);
        uint64_t begin = UINT64_MAX, last = 0;
        for (int i = 0; i < threads; i++) {
            begin = workers[i].begin_ns < begin ? workers[i].begin_ns : begin;
            last = workers[i].end_ns > last ? workers[i].end_ns : last;
        }
        uint64_t took = last - begin;
        if (took < best[round >= ROUNDS])
            best[round >= ROUNDS] = took;
    }
    float kept = 0;
    for (int i = 0; i < threads; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        kept += workers[i].kept;
        free(workers[i].memory);
    }
    double flops = 2.0 * lanes * SUMS * STEPS * threads / ((double)best[0] * 1e-9);
    double bytes = (double)READ_BYTES * threads / ((double)best[1] * 1e-9);
    printf("{\"flops\": %.6g, \"bytes\": %.6g, \"kept\": %d}\n", flops, bytes, kept == 12345.0f);
    return 0;
}
