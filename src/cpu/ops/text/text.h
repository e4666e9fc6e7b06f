/* SPDX-License-Identifier: Apache-2.0 */
/* Case conversion of UTF-8 text, independent of the locale. */
#ifndef KELP_CPU_OPS_TEXT_TEXT_H_
#define KELP_CPU_OPS_TEXT_TEXT_H_

#include "cpu/ops/kernel.h"

/* Converts letters by Unicode's simple case mappings; copies other bytes. `to` has a capacity of 2
 * * length + 1 bytes. Returns the length written. */
size_t kelp_text_lower(const char *from, size_t length, char *to);
size_t kelp_text_upper(const char *from, size_t length, char *to);
/* Returns true if the strings have equal bytes. */
bool kelp_text_same(const kelp_string *a, const kelp_string *b);

#endif
