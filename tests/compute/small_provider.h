/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compute provider for tests: input float32 [n], output [n], each element doubled. If an
 * element is -1, the inference fails with UNAVAILABLE. Calls are counted. The label of the artifact
 * selects a variant: "plain" (no infer_batch), "batch" (with infer_batch), "submit" (with
 * asynchronous submission), "gate" (waits until test_small_open), "narrow" (limits: 2 items, 16
 * input bytes), "types" (the output has an undeclared type), "rows" (input and output
 * have rank 2), "strings" (input and output are strings, of which the output has the first
 * characters), "sum" (the output has one element, the sum), "fixed" (the output has shape [3]).
 */
#ifndef KELP_TESTS_SMALL_PROVIDER_H_
#define KELP_TESTS_SMALL_PROVIDER_H_

#include <kelp/compute.h>

typedef struct test_small_counts {
    int inits, ones, batches, items, drains, resets, forks, models; /* models: alive */
    size_t longest;                                                 /* batch */
    const void *last_input;
} test_small_counts;
extern test_small_counts test_small;

const kelp_compute_backend *test_small_backend(const char *name);
/* Lets models of "gate" continue; they wait again after test_small_close. */
void test_small_open(void);
void test_small_close(void);

#endif
