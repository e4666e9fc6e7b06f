/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions of ECMAScript, as std::regex of libstdc++ reads them, for PCRE2. */
#ifndef KELP_CPU_OPS_TOKENIZE_ECMA_H_
#define KELP_CPU_OPS_TOKENIZE_ECMA_H_

#include "cpu/ops/text/regex.h"
#include "cpu/ops/tokenize/tokenize.h"

/* Compiles a pattern into memory of the run. INVALID_ARGUMENT, with the position, for a malformed
 * pattern. `subject` names the input in messages. */
kelp_status *kelp_ecma_compile(const kelp_regex *library, const kelp_op_args *args,
                               const char *subject, kelp_str pattern, bool ignore_case,
                               kelp_regex *out) KELP_MUST_USE;

/* Iterates over the matches in a text, in order: after an empty match, a match that is not empty at
 * the same place, or else the next one. */
typedef struct kelp_ecma_iterator {
    kelp_matcher *matcher;
    kelp_str text;
    size_t begin, end; /* of the match; before the first one, SIZE_MAX and 0 */
} kelp_ecma_iterator;

/* Sets `*out_found` to false after the last match. */
kelp_status *kelp_ecma_next(kelp_ecma_iterator *iterator, bool *out_found) KELP_MUST_USE;

#endif
