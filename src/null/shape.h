/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of outputs that are not computed, for operators, models and engines. */
#ifndef KELP_NULL_SHAPE_H_
#define KELP_NULL_SHAPE_H_

#include <kelp/engine.h>

/* Describes an input or output of a graph, which owns the names. */
void kelp_null_describe(const kelp_value *value, kelp_io_info *out);

/* Sets `out` to the type and shape of an output, without data. A dynamic dimension has the size of
 * the input dimension with the same name; without a name, the size of the first dynamic dimension
 * of an input; otherwise 1. `tensors` are the `count` inputs of a run. */
kelp_status *kelp_null_output(const kelp_io_info *output, const kelp_io_info *inputs,
                              const kelp_tensor *tensors, size_t count,
                              kelp_tensor *out) KELP_MUST_USE;

#endif
