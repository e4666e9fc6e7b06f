/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that gen_null_calls.py writes, and what they share. */
#ifndef KELP_TESTS_ABI_NULL_CALLS_H_
#define KELP_TESTS_ABI_NULL_CALLS_H_

#include <stddef.h>
#include <triton/core/tritonserver.h>

typedef struct null_call {
    const char *what;
    void (*fn)(void);
} null_call;
extern const null_call null_calls[];
extern const size_t null_call_count;

/* Stands for any object: zeros, more than any has. */
extern char null_calls_blank[];
/* What a call returned; deleted. */
void null_calls_take(TRITONSERVER_Error *error);

#endif
