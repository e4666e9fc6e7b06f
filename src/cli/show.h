/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors as text in numpy's style, and as flat arrays in JSON. */
#ifndef KELP_CLI_SHOW_H_
#define KELP_CLI_SHOW_H_

#include "base/text/json.h"

#include <kelp/tensor.h>

/* Appends "FLOAT [2,3]" and the elements in brackets. Large tensors show only the ends of each
 * axis. */
void kelp_show_tensor(const char *name, const kelp_tensor *tensor, kelp_buf *out);
/* Writes {"name":…,"datatype":…,"shape":[…],"data":[…]} with all elements, as in the v2 protocol.
 */
void kelp_show_json(const char *name, const kelp_tensor *tensor, kelp_json_writer *writer);
/* Writes the member "shape" of an object. */
void kelp_show_shape_json(const kelp_tensor *tensor, kelp_json_writer *writer);

/* Convert an element to a number. Return false for other types. */
bool kelp_show_real(const kelp_tensor *tensor, size_t index, double *out);
bool kelp_show_whole(const kelp_tensor *tensor, size_t index, int64_t *out);

#endif
