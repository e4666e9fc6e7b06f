/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations of the whole process, counted by taking the place of malloc and its kin: what is
 * linked with count_malloc.c. Any thread. Under a sanitizer, which takes that place itself, and
 * with another C library than glibc nothing is counted.
 */
#ifndef KELP_TESTS_COUNT_MALLOC_H_
#define KELP_TESTS_COUNT_MALLOC_H_

#include <stdbool.h>
#include <stdint.h>

bool test_allocations_counted(void);
/* malloc, calloc, realloc, aligned_alloc, memalign and posix_memalign so far; what libraries call
 * is among them. */
uint64_t test_allocations(void);

#endif
