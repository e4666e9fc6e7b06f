/* SPDX-License-Identifier: Apache-2.0 */
/* The `reshape` of an input or output: the backend sees a different shape than clients do. */
#ifndef KELP_SERVER_CONFIG_RESHAPE_H_
#define KELP_SERVER_CONFIG_RESHAPE_H_

#include <kelp/status.h>

/* The highest rank of a request's input or output. */
#define KELP_SERVER_MAX_RANK 32

/* Converts a shape that matches `from` to one that matches `to`. In both, -1 is a dynamic
 * dimension. The n-th dynamic dimension of `to` gets the size of the n-th dynamic dimension of
 * `from`. The first `batch_dims` dimensions do not change. INTERNAL if the ranks do not match. */
kelp_status *kelp_reshape(const int64_t *from, uint32_t from_rank, const int64_t *to,
                          uint32_t to_rank, uint32_t batch_dims, int64_t *inout_shape,
                          uint32_t *inout_rank) KELP_MUST_USE;

#endif
