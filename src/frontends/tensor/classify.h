/* SPDX-License-Identifier: Apache-2.0 */
/* The classification extension: returns the highest elements of an output as text
 * "score:index[:label]". */
#ifndef KELP_FRONTENDS_TENSOR_CLASSIFY_H_
#define KELP_FRONTENDS_TENSOR_CLASSIFY_H_

#include "base/arena.h"

#include <triton/core/tritonserver.h>

/* The selected classes of an output, as a tensor. */
typedef struct kelp_v2_classes {
    void *bytes; /* BYTES elements, in the arena */
    size_t size_bytes;
    int64_t shape[2]; /* [classes], or [batch, classes] */
    size_t rank;
} kelp_v2_classes;

/*
 * Selects the `count` highest elements of each batch row of output `index` of the response, or all
 * if there are fewer. Equal elements are ordered by index. `batched`: shape[0] is the batch
 * dimension. Labels come from the response. Fails with INVALID_ARGUMENT for BYTES.
 */
kelp_status *kelp_v2_classify(kelp_arena *arena, TRITONSERVER_InferenceResponse *response,
                              uint32_t index, const char *name, TRITONSERVER_DataType type,
                              const int64_t *shape, size_t rank, bool batched, const void *bytes,
                              size_t size_bytes, uint32_t count,
                              kelp_v2_classes *out) KELP_MUST_USE;

#endif
