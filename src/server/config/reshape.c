/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion between the shapes that clients and backends see. */
#include "server/config/reshape.h"

#include "base/assert.h"

#include <string.h>

kelp_status *kelp_reshape(const int64_t *from, uint32_t from_rank, const int64_t *to,
                          uint32_t to_rank, uint32_t batch_dims, int64_t *inout_shape,
                          uint32_t *inout_rank) {
    KELP_ASSERT(batch_dims <= 1);
    int64_t result[KELP_SERVER_MAX_RANK];
    if (*inout_rank != from_rank + batch_dims || to_rank + batch_dims > KELP_SERVER_MAX_RANK)
        return KELP_ERROR(KELP_INTERNAL, "cannot reshape %u dimensions: expected %u", *inout_rank,
                          from_rank + batch_dims);
    for (uint32_t i = 0; i < batch_dims; i++)
        result[i] = inout_shape[i];
    uint32_t dynamic = 0;
    for (uint32_t i = 0; i < to_rank; i++) {
        int64_t dim = to[i];
        if (dim == -1) {
            while (dynamic < from_rank && from[dynamic] != -1)
                dynamic++;
            if (dynamic == from_rank)
                return KELP_ERROR(KELP_INTERNAL,
                                  "a reshape has more dynamic dimensions than the original shape");
            dim = inout_shape[batch_dims + dynamic++];
        }
        result[batch_dims + i] = dim;
    }
    *inout_rank = to_rank + batch_dims;
    memcpy(inout_shape, result, *inout_rank * sizeof *result);
    return NULL;
}
