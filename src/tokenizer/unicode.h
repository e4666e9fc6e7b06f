/* SPDX-License-Identifier: Apache-2.0 */
/* Characters: decoding of text that may be invalid, classes and lower case of Unicode 13.0. */
#ifndef KELP_TOKENIZER_UNICODE_H_
#define KELP_TOKENIZER_UNICODE_H_

#include "base/str.h"

#include <kelp/allocator.h>

typedef enum kelp_char_class {
    KELP_CHAR_OTHER,
    KELP_CHAR_LETTER, /* general category L */
    KELP_CHAR_NUMBER, /* general category N */
    KELP_CHAR_SPACE   /* general category Z, tab, LF, VT, FF, CR */
} kelp_char_class;

kelp_char_class kelp_char_class_of(uint32_t c);

/* Some general categories. */
typedef enum kelp_char_part {
    KELP_CHAR_PART_NONE,  /* letters: Lm, Lo */
    KELP_CHAR_PART_UPPER, /* Lu, Lt */
    KELP_CHAR_PART_LOWER, /* Ll */
    KELP_CHAR_PART_MARK   /* M */
} kelp_char_part;

kelp_char_part kelp_char_part_of(uint32_t c);
/* Returns the lower case of a character, itself if it has none. */
uint32_t kelp_char_lower(uint32_t c);

/* Returns the upper case of a character, itself if it has none of one character. */
uint32_t kelp_char_upper(uint32_t c);

/* A character and the bytes of the text that contain it. */
typedef struct kelp_char {
    uint32_t c; /* below 0x200000 */
    size_t begin, end;
} kelp_char;

/* Decodes the character at byte `at`, as described in tokenizer/tokenizer.h. */
kelp_char kelp_char_at(kelp_str text, size_t at);
/* Decodes a text. `*out` has a capacity of text.length characters; free it with kelp_free. */
kelp_status *kelp_chars_decode(kelp_allocator allocator, kelp_str text, kelp_char **out,
                               size_t *out_count) KELP_MUST_USE;

#endif
