/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON (RFC 8259) as inference clients send it: keeps duplicate keys in order, accepts and writes
 * NaN and ±Infinity, reads 64-bit integers exactly, allows NUL in strings and any depth up to a
 * limit, without recursion.
 * Two readers: the pull reader (kelp_json_reader) iterates over tokens and allocates from the
 * arena only for strings with escapes; the hot path uses it. The tree (kelp_json) is for
 * configuration. Both report line and column.
 */
#ifndef KELP_BASE_TEXT_JSON_H_
#define KELP_BASE_TEXT_JSON_H_

#include "base/arena.h"
#include "base/buf.h"

typedef enum kelp_json_type {
    KELP_JSON_NULL,
    KELP_JSON_BOOL,
    KELP_JSON_INT,    /* fits in int64 */
    KELP_JSON_UINT,   /* above INT64_MAX, fits in uint64 */
    KELP_JSON_DOUBLE, /* anything else, NaN and Infinity included */
    KELP_JSON_STRING,
    KELP_JSON_ARRAY,
    KELP_JSON_OBJECT,
    /* only from the pull reader: */
    KELP_JSON_KEY,
    KELP_JSON_ARRAY_END,
    KELP_JSON_OBJECT_END,
    KELP_JSON_END /* end of the text */
} kelp_json_type;

const char *kelp_json_type_name(kelp_json_type type); /* Returns a static description for messages:
                                                         "an object", "a string", … */

/* ---- pull reader ---- */
typedef struct kelp_json_token {
    kelp_json_type type;
    bool boolean;
    int64_t i64;     /* INT */
    uint64_t u64;    /* INT when >= 0, UINT */
    double f64;      /* INT, UINT, DOUBLE */
    kelp_str string; /* STRING, KEY: decoded, borrowed from the text or the arena */
    size_t offset;   /* offset of the token in the text */
} kelp_json_token;

#define KELP_JSON_MAX_DEPTH 512
typedef struct kelp_json_reader {
    const char *text;
    size_t length;
    size_t position;
    kelp_arena *arena;
    uint32_t depth;
    uint8_t expect; /* state of the grammar at this depth */
    uint64_t object_bits[KELP_JSON_MAX_DEPTH / 64];
} kelp_json_reader;

void kelp_json_reader_init(kelp_json_reader *reader, kelp_arena *arena, const char *text,
                           size_t length);
/* Reads the next token. Fails with INVALID_ARGUMENT, line and column on a syntax error. Returns
 * KELP_JSON_END again after the end. */
kelp_status *kelp_json_next(kelp_json_reader *reader, kelp_json_token *out) KELP_MUST_USE;
/* Skips the value that begins with the next token (whole arrays and objects). */
kelp_status *kelp_json_skip(kelp_json_reader *reader) KELP_MUST_USE;
/* After a key, returns the offset in the text at which its value begins. A caller may then parse
 * the value by other means, and continue with kelp_json_skip_to. */
size_t kelp_json_value_offset(const kelp_json_reader *reader);
/* After a key, skips its value, which ends before `end` and has been validated by the caller. */
void kelp_json_skip_to(kelp_json_reader *reader, size_t end);
/* Computes line and column, from 1, of an offset in the text; columns count bytes. */
void kelp_json_where(const char *text, size_t length, size_t offset, size_t *out_line,
                     size_t *out_column);

/* ---- tree ---- */
typedef struct kelp_json kelp_json;
struct kelp_json {
    kelp_json_type type;
    bool boolean;
    int64_t i64;
    uint64_t u64;
    double f64;
    kelp_str string;
    kelp_str key;     /* name if it is a member of an object */
    kelp_json *child; /* first item or member */
    kelp_json *next;  /* sibling */
    size_t count;     /* number of children */
    size_t offset;    /* offset in the text */
};
/* Parses a text. Everything is allocated in the arena; strings may borrow from the text. `name`
 * identifies the text in errors: INVALID_ARGUMENT "NAME:LINE:COLUMN: …". */
kelp_status *kelp_json_parse(kelp_arena *arena, const char *name, const char *text, size_t length,
                             kelp_json **out) KELP_MUST_USE;
/* Returns the first member of this name, or NULL, also if `object` is NULL or not an object. */
const kelp_json *kelp_json_get(const kelp_json *object, const char *key);

/* ---- writer: appends compact JSON with commas and quoting ---- */
typedef struct kelp_json_writer {
    kelp_buf *out;
    uint64_t need_comma; /* one bit per level of depth */
    uint32_t depth;
} kelp_json_writer;
void kelp_json_writer_init(kelp_json_writer *writer, kelp_buf *out);
void kelp_json_begin_object(kelp_json_writer *writer);
void kelp_json_end_object(kelp_json_writer *writer);
void kelp_json_begin_array(kelp_json_writer *writer);
void kelp_json_end_array(kelp_json_writer *writer);
void kelp_json_key(kelp_json_writer *writer, const char *key);
void kelp_json_put_string(kelp_json_writer *writer, kelp_str value);
void kelp_json_put_cstr(kelp_json_writer *writer, const char *value);
void kelp_json_put_i64(kelp_json_writer *writer, int64_t value);
void kelp_json_put_u64(kelp_json_writer *writer, uint64_t value);
void kelp_json_put_f64(kelp_json_writer *writer,
                       double value); /* writes NaN and Infinity as such */
void kelp_json_put_bool(kelp_json_writer *writer, bool value);
void kelp_json_put_null(kelp_json_writer *writer);
void kelp_json_put_raw(kelp_json_writer *writer, kelp_str json); /* a value already in JSON */
void kelp_json_escape(kelp_buf *out, kelp_str text);             /* with the quotes */

#endif
