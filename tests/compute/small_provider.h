/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider for tests, as an author would write one: float32 [n] in, [n] out, each element twice.
 * A first element of -1 makes the run fail, with UNAVAILABLE. What it was asked is counted. The
 * artifact's label chooses: "plain" (no infer_batch), "batch" (its own), "submit" (runs by itself),
 * "gate" (waits until test_small_open), "narrow" (limits: 2 items, 16 bytes in), "types" (its
 * output is of a type that it does not declare).
 */
#ifndef KELP_TESTS_SMALL_PROVIDER_H_
#define KELP_TESTS_SMALL_PROVIDER_H_

#include <kelp/compute.h>

typedef struct test_small_counts {
    int ones, batches, items, drains, resets, forks, models; /* models: alive */
    size_t longest;                                          /* batch */
    const void *last_input;
} test_small_counts;
extern test_small_counts test_small;

const kelp_compute_backend *test_small_backend(const char *name);
/* Lets models of "gate" run on; they wait again after test_small_close. */
void test_small_open(void);
void test_small_close(void);

#endif
