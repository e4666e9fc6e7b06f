/* SPDX-License-Identifier: Apache-2.0 */
/* Formats FP32 values for JSON with the fewest digits that read back to the same value. */
#ifndef KELP_FRONTENDS_TENSOR_FLOAT_TEXT_H_
#define KELP_FRONTENDS_TENSOR_FLOAT_TEXT_H_

#include "base/buf.h"

#include <stdint.h>

/* Appends a value in the format of kelp_format_f64: "0.1", "3.0", "1e+22", "NaN". */
void kelp_v2_append_float(kelp_buf *out, float value);

/* Appends `count` values with commas between them. `bytes` needs no alignment. */
void kelp_v2_append_floats(kelp_buf *out, const void *bytes, size_t count);

#endif
