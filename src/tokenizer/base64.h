/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648) of models in attributes and JSON. */
#ifndef KELP_TOKENIZER_BASE64_H_
#define KELP_TOKENIZER_BASE64_H_

#include "base/str.h"

/* Decodes base64. `out` has a capacity of text.length bytes. Returns false if it is not base64. */
bool kelp_base64_read(kelp_str text, char *out, size_t *out_length);

#endif
