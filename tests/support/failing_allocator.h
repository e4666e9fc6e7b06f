/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An allocator for tests: its nth allocation fails, it counts the live blocks, and it checks that
 * each block is freed with its size and alignment. Thread-safe.
 *
 * Tests every failure of a function like this:
 *
 *     for (uint64_t n = 1;; n++) {
 *         test_failing memory;
 *         test_failing_init(&memory, n);
 *         kelp_status *status = make_and_destroy(test_failing_allocator(&memory));
 *         if (test_failing_ended(&memory, status))
 *             break;
 *         assert_non_null(status); kelp_status_free(status);
 *     }
 */
#ifndef KELP_TESTS_FAILING_ALLOCATOR_H_
#define KELP_TESTS_FAILING_ALLOCATOR_H_

#include <kelp/allocator.h>
#include <kelp/status.h>

#include <pthread.h>

typedef struct test_failing {
    pthread_mutex_t lock;
    uint64_t fail_at; /* the number, from 1, of the allocation or growth that fails; 0: none */
    bool fail_from;   /* later ones fail, too */
    bool failed;      /* an allocation has failed */
    uint64_t calls;   /* allocations and growths so far */
    size_t live_blocks;
    size_t live_bytes;
    size_t peak_bytes;
    const char *mistake; /* a text about the first misuse, or NULL */
} test_failing;

void test_failing_init(test_failing *failing, uint64_t fail_at);
void test_failing_deinit(test_failing *failing);
/* Returns the allocator, which refers to `failing`. */
kelp_allocator test_failing_allocator(test_failing *failing);
/* Fails the cmocka test if a block was not freed or was misused. */
void test_failing_check(test_failing *failing);
/* Checks the allocator like test_failing_check, and deinitializes it. Returns true if no allocation
 * failed; the status must then be NULL. */
bool test_failing_ended(test_failing *failing, kelp_status *status);

#endif
