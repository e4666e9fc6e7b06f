/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KELP_FRONTENDS_TENSOR_BASE64_H_
#define KELP_FRONTENDS_TENSOR_BASE64_H_

#include "base/str.h"

/* Decodes padded or unpadded base64 (RFC 4648 section 4), in which the repository extension sends
 * files. The size of `out` is at least in.length bytes. Returns false for a character outside the
 * alphabet. */
bool kelp_v2_base64_decode(kelp_str in, char *out, size_t *out_length);

#endif
