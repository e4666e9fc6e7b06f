/* SPDX-License-Identifier: Apache-2.0 */
/* Borrowed byte slices, and number parsing that is independent of the locale. */
#ifndef KELP_BASE_STR_H_
#define KELP_BASE_STR_H_

#include <kelp/status.h>

#include <string.h>

typedef struct kelp_str {
    const char *data; /* may be NULL when length is 0; not terminated */
    size_t length;
} kelp_str;

#define KELP_STR(literal) ((kelp_str){(literal), sizeof(literal) - 1})
/* For printf: "%.*s", KELP_STR_ARG(s) */
#define KELP_STR_ARG(s) (int)((s).length > 65536 ? 65536 : (s).length), ((s).data ? (s).data : "")

static inline kelp_str kelp_str_from(const char *text) {
    return (kelp_str){text, text != NULL ? strlen(text) : 0};
}

static inline bool kelp_str_equal(kelp_str a, kelp_str b) {
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

static inline bool kelp_str_is(kelp_str a, const char *text) {
    return kelp_str_equal(a, kelp_str_from(text));
}

static inline bool kelp_str_starts(kelp_str s, kelp_str prefix) {
    return s.length >= prefix.length &&
           (prefix.length == 0 || memcmp(s.data, prefix.data, prefix.length) == 0);
}

/* Compares ASCII letters without case, as for HTTP header names. */
bool kelp_str_equal_nocase(kelp_str a, kelp_str b);
/* Returns the value of a hexadecimal digit in either case, or -1. */
int kelp_hex_value(char c);
kelp_str kelp_str_trim(kelp_str s); /* removes spaces, tabs, CR and LF at both ends */

/* These functions parse a whole slice as a decimal integer; they return false on anything else and
 * on overflow. */
bool kelp_parse_i64(kelp_str s, int64_t *out);
bool kelp_parse_u64(kelp_str s, uint64_t *out);
/* Parses a decimal float as in JSON and pbtxt, and inf, -inf, nan, Infinity, -Infinity, NaN.
 * Correctly rounded and independent of the locale. */
bool kelp_parse_f64(kelp_str s, double *out);
/* Writes the shortest text that reads back to the same value ("0.1", "1e+22", "3.0"), or NaN,
 * Infinity, -Infinity. `buffer` has 32 bytes. Returns the length. Independent of the locale. */
size_t kelp_format_f64(double value, char *buffer);

/* Writes decimal digits without a terminator; needs 20 bytes. Returns the length. */
size_t kelp_format_u64(uint64_t value, char *buffer);

/* Replaces the locale's radix in a number written by printf by a point, in place. Returns the
 * length. */
size_t kelp_plain_radix(char *inout_text);

/* Computes the 64-bit FNV-1a hash (offset basis cbf29ce484222325, prime 100000001b3). Source:
 * draft-eastlake-fnv. */
uint64_t kelp_hash_bytes(const void *data, size_t length);
uint64_t kelp_hash_str(kelp_str s);

#endif
