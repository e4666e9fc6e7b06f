/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of outputs that are not computed. */
#include "null/shape.h"

#include "base/assert.h"

#include <string.h>

void kelp_null_describe(const kelp_value *value, kelp_io_info *out) {
    out->name = kelp_value_name(value);
    out->dtype = kelp_value_dtype(value);
    out->rank = kelp_value_rank(value);
    for (int32_t axis = 0; axis < out->rank; axis++)
        out->shape[axis] = kelp_value_dim(value, axis, &out->symbols[axis]);
}

/* Returns true if an output's dynamic dimension follows this dimension of an input. */
static bool is_source(const kelp_io_info *input, int32_t axis, const char *symbol) {
    if (symbol == NULL)
        return input->shape[axis] < 0;
    return input->symbols[axis] != NULL && strcmp(input->symbols[axis], symbol) == 0;
}

static int64_t dynamic_dimension(const char *symbol, const kelp_io_info *inputs,
                                 const kelp_tensor *tensors, size_t count) {
    for (size_t i = 0; i < count; i++)
        for (int32_t axis = 0; axis < inputs[i].rank && axis < tensors[i].rank; axis++)
            if (is_source(&inputs[i], axis, symbol))
                return tensors[i].shape[axis];
    return 1;
}

kelp_status *kelp_null_output(const kelp_io_info *output, const kelp_io_info *inputs,
                              const kelp_tensor *tensors, size_t count, kelp_tensor *out) {
    int64_t shape[KELP_MAX_RANK];
    KELP_ASSERT(output->rank <= KELP_MAX_RANK);
    for (int32_t axis = 0; axis < output->rank; axis++)
        shape[axis] = output->shape[axis] >= 0
                          ? output->shape[axis]
                          : dynamic_dimension(output->symbols[axis], inputs, tensors, count);
    return kelp_tensor_init(out, output->dtype, output->rank < 0 ? 0 : output->rank, shape, NULL);
}
