/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of scattered values with the elements of the data. */
#ifndef KELP_CPU_OPS_SHAPE_SCATTER_JOIN_H_
#define KELP_CPU_OPS_SHAPE_SCATTER_JOIN_H_

#include "cpu/ops/kernel.h"

/* Joins `count` elements. Integers wrap; the sum of bool is "or". */
typedef struct kelp_join {
    /* to[offsets[i]] = to[offsets[i]] op from[sources[i]], in ascending order of i; `sources` NULL:
     * from[i]. */
    void (*scatter)(const struct kelp_join *join, char *to, const int64_t *offsets,
                    const char *from, const int32_t *sources, int64_t count);
    /* to[i] = to[i] op from[i]. */
    void (*row)(const struct kelp_join *join, char *to, const char *from, int64_t count);
    kelp_dtype dtype;
    size_t size; /* of an element */
    int how;     /* for types without functions of their own */
} kelp_join;

/* Reads the attribute "reduction". INVALID_ARGUMENT: unknown; UNIMPLEMENTED: not for the type of
 * input 0. */
kelp_status *kelp_join_read(const kelp_op_args *args, kelp_join *out) KELP_MUST_USE;

#endif
