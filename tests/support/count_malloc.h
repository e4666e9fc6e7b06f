/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the allocations of the process on all threads: programs that are linked with
 * count_malloc.c replace malloc and related functions. Counts nothing with a sanitizer, which also
 * replaces them, and with C libraries other than glibc.
 */
#ifndef KELP_TESTS_COUNT_MALLOC_H_
#define KELP_TESTS_COUNT_MALLOC_H_

#include <stdbool.h>
#include <stdint.h>

bool test_allocations_counted(void);
/* Returns the number of calls of malloc, calloc, realloc, aligned_alloc, memalign and
 * posix_memalign, including those of libraries. */
uint64_t test_allocations(void);

#endif
