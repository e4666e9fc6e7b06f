/* SPDX-License-Identifier: Apache-2.0 */
/* Formats FP32 values for JSON: widened to double, with the fewest digits that read back to that
 * double. */
#ifndef KELP_FRONTENDS_V2_FLOAT_TEXT_H_
#define KELP_FRONTENDS_V2_FLOAT_TEXT_H_

#include "base/buf.h"

/* Appends the same text as kelp_buf_append_f64((double)value), faster for usual magnitudes. */
void kelp_v2_append_float(kelp_buf *out, float value);

#endif
