/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors as text: numpy-like for people, flat arrays for JSON. */
#ifndef KELP_CLI_SHOW_H_
#define KELP_CLI_SHOW_H_

#include "base/json.h"

#include <kelp/tensor.h>

/* "FLOAT [2,3]" and the elements in brackets; long tensors are shortened to the ends of each axis.
 */
void kelp_show_tensor(const char *name, const kelp_tensor *tensor, kelp_buf *out);
/* {"name":…,"datatype":…,"shape":[…],"data":[…]}, all elements, as the v2 protocol writes outputs.
 */
void kelp_show_json(const char *name, const kelp_tensor *tensor, kelp_json_writer *writer);

#endif
