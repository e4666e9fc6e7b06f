/* SPDX-License-Identifier: Apache-2.0 */
/* Text of FP32 values as JSON replies carry them: widened to double, in the shortest digits that
 * read back to that double. */
#ifndef KELP_FRONTENDS_V2_FLOAT_TEXT_H_
#define KELP_FRONTENDS_V2_FLOAT_TEXT_H_

#include "base/buf.h"

/* Appends what kelp_buf_append_f64((double)value) would, but for usual magnitudes many times
 * faster. */
void kelp_v2_append_float(kelp_buf *out, float value);

#endif
