/* SPDX-License-Identifier: Apache-2.0 */
/* Reshapes between what clients and what backends see. */
#include "server/config/reshape.h"

#include "server/model/model.h"

kelp_status *kelp_reshape(const int64_t *from, uint32_t from_rank, const int64_t *to,
                          uint32_t to_rank, uint32_t batch_dims, int64_t *inout_shape,
                          uint32_t *inout_rank) {
    int64_t result[KELP_SERVER_MAX_RANK];
    if (*inout_rank != from_rank + batch_dims || to_rank + batch_dims > KELP_SERVER_MAX_RANK)
        return KELP_ERROR(KELP_INTERNAL, "cannot reshape %u dimensions: expected %u", *inout_rank,
                          from_rank + batch_dims);
    for (uint32_t i = 0; i < batch_dims; i++)
        result[i] = inout_shape[i];
    uint32_t wildcard = 0;
    for (uint32_t i = 0; i < to_rank; i++) {
        int64_t extent = to[i];
        if (extent == -1) {
            while (wildcard < from_rank && from[wildcard] != -1)
                wildcard++;
            if (wildcard == from_rank)
                return KELP_ERROR(KELP_INTERNAL, "a reshape has more wildcards than its origin");
            extent = inout_shape[batch_dims + wildcard++];
        }
        result[batch_dims + i] = extent;
    }
    *inout_rank = to_rank + batch_dims;
    memcpy(inout_shape, result, *inout_rank * sizeof *result);
    return NULL;
}

kelp_status *kelp_output_reshape(const kelp_model *model, kelp_output *output) {
    const char *name = kelp_text_get(&output->name);
    const kelp_config_io *io = kelp_model_config_output(model->config, kelp_str_from(name));
    if (!io)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "unexpected inference output '%s' for model '%s'",
                          name, model->name);
    if (!io->has_reshape)
        return NULL;
    return kelp_reshape(io->reshape, io->reshape_rank, io->dims, io->rank,
                        model->config->max_batch_size > 0, output->shape, &output->rank);
}
