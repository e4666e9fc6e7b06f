/* SPDX-License-Identifier: Apache-2.0 */
/* What a model's configuration says about a tensor beyond its type: reshapes between client and
 * backend, labels of classes. */
#ifndef KELP_SERVER_CONFIG_RESHAPE_H_
#define KELP_SERVER_CONFIG_RESHAPE_H_

#include "server/request/response.h"

struct kelp_config_io;

/* Turns a shape of the form `from` (wildcards are -1) into the form `to`: the n-th wildcard of `to`
 * takes the extent at the n-th wildcard of `from`. The first `batch_dims` extents are kept.
 * INTERNAL when the ranks do not fit. */
kelp_status *kelp_reshape(const int64_t *from, uint32_t from_rank, const int64_t *to,
                          uint32_t to_rank, uint32_t batch_dims, int64_t *inout_shape,
                          uint32_t *inout_rank) KELP_MUST_USE;
/* Checks that the model has the output, and turns the shape that the backend gave into the one that
 * clients see. */
kelp_status *kelp_output_reshape(const kelp_model *model, kelp_output *output) KELP_MUST_USE;

#endif
