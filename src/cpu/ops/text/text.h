/* SPDX-License-Identifier: Apache-2.0 */
/* Letters of UTF-8 text, whatever the process's locale is. */
#ifndef KELP_CPU_OPS_TEXT_TEXT_H_
#define KELP_CPU_OPS_TEXT_TEXT_H_

#include "cpu/ops/kernel.h"

/* Changes the case of each letter that has one single letter of the other case (Latin, Greek,
 * Cyrillic, Armenian); bytes that are no UTF-8 stay. `to` has room for 2 x length + 1 bytes;
 * returns the length written. Source: Unicode's simple case mappings. */
size_t kelp_text_lower(const char *from, size_t length, char *to);
size_t kelp_text_upper(const char *from, size_t length, char *to);
bool kelp_text_same(const kelp_string *a, const kelp_string *b);

#endif
