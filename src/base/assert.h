/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assertions: active in debug and sanitizer builds, nothing in release builds. They check what a
 * programmer got wrong, never input. A failed assertion prints its place and aborts.
 */
#ifndef KELP_BASE_ASSERT_H_
#define KELP_BASE_ASSERT_H_

#ifdef KELP_ENABLE_ASSERT
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

_Noreturn static inline void kelp_assert_failed(const char *file, int line, const char *text) {
    (void)fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, text);
    abort();
}

#define KELP_ASSERT(condition) \
    ((condition) ? (void)0 : kelp_assert_failed(__FILE__, __LINE__, #condition))
/* Checks that a thread holds the mutex. */
#define KELP_ASSERT_LOCKED(mutex) KELP_ASSERT(pthread_mutex_trylock(mutex) != 0)
#else
/* The operand is compiled, so that it stays valid, and never evaluated. */
#define KELP_ASSERT(condition) ((void)sizeof((condition) ? 1 : 0))
#define KELP_ASSERT_LOCKED(mutex) ((void)sizeof(mutex))
#endif

#endif
