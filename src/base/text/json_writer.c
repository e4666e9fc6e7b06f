/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the JSON writer. */
#include "base/text/json.h"
#include "base/text/json_scan.h"
#include "base/text/utf8.h"

#include "base/assert.h"

void kelp_json_writer_init(kelp_json_writer *writer, kelp_buf *out) {
    *writer = (kelp_json_writer){.out = out};
}

static uint64_t depth_bit(const kelp_json_writer *writer) {
    return (uint64_t)1 << (writer->depth & 63);
}

/* Writes the comma between this value and the previous one. */
static void separate(kelp_json_writer *writer) {
    if ((writer->need_comma & depth_bit(writer)) != 0)
        kelp_buf_append_char(writer->out, ',');
    writer->need_comma |= depth_bit(writer);
}

static void open(kelp_json_writer *writer, char c) {
    separate(writer);
    kelp_buf_append_char(writer->out, c);
    writer->depth++;
    writer->need_comma &= ~depth_bit(writer);
}

static void close(kelp_json_writer *writer, char c) {
    KELP_ASSERT(writer->depth > 0);
    kelp_buf_append_char(writer->out, c);
    writer->depth--;
    /* set unconditionally: below 64 levels a level shares its bit with an outer one */
    writer->need_comma |= depth_bit(writer);
}

void kelp_json_begin_object(kelp_json_writer *writer) {
    open(writer, '{');
}

void kelp_json_end_object(kelp_json_writer *writer) {
    close(writer, '}');
}

void kelp_json_begin_array(kelp_json_writer *writer) {
    open(writer, '[');
}

void kelp_json_end_array(kelp_json_writer *writer) {
    close(writer, ']');
}

void kelp_json_key(kelp_json_writer *writer, const char *key) {
    KELP_ASSERT(writer->depth > 0);
    separate(writer);
    kelp_json_escape(writer->out, kelp_str_from(key));
    kelp_buf_append_char(writer->out, ':');
    /* its value follows without a comma */
    writer->need_comma &= ~depth_bit(writer);
}

void kelp_json_put_string(kelp_json_writer *writer, kelp_str value) {
    separate(writer);
    kelp_json_escape(writer->out, value);
}

void kelp_json_put_cstr(kelp_json_writer *writer, const char *value) {
    kelp_json_put_string(writer, kelp_str_from(value));
}

void kelp_json_put_i64(kelp_json_writer *writer, int64_t value) {
    separate(writer);
    kelp_buf_append_i64(writer->out, value);
}

void kelp_json_put_u64(kelp_json_writer *writer, uint64_t value) {
    separate(writer);
    kelp_buf_append_u64(writer->out, value);
}

void kelp_json_put_f64(kelp_json_writer *writer, double value) {
    separate(writer);
    kelp_buf_append_f64(writer->out, value);
}

void kelp_json_put_bool(kelp_json_writer *writer, bool value) {
    separate(writer);
    kelp_buf_append_cstr(writer->out, value ? "true" : "false");
}

void kelp_json_put_null(kelp_json_writer *writer) {
    separate(writer);
    kelp_buf_append_cstr(writer->out, "null");
}

void kelp_json_put_raw(kelp_json_writer *writer, kelp_str json) {
    separate(writer);
    kelp_buf_append_str(writer->out, json);
}

void kelp_json_escape(kelp_buf *out, kelp_str text) {
    if (text.length == 0) { /* an empty string may have no address */
        kelp_buf_append_cstr(out, "\"\"");
        return;
    }
    size_t begin = 0, plain = kelp_json_plain_length(text, true);
    char *to = plain == text.length ? kelp_buf_reserve(out, plain + 2) : NULL;
    if (to != NULL) {
        to[0] = to[plain + 1] = '"';
        memcpy(to + 1, text.data, plain);
        out->length += plain + 2;
        return;
    }
    kelp_buf_append_char(out, '"');
    for (size_t i = plain; i < text.length; i++) {
        unsigned char c = (unsigned char)text.data[i];
        size_t bytes = 1; /* of the character; 0 if it is invalid */
        if (c >= 0x80)
            bytes = kelp_utf8_decode((kelp_str){text.data + i, text.length - i}, &(uint32_t){0});
        if (bytes > 0 && c >= 0x20 && c != '"' && c != '\\') {
            i += bytes - 1;
            continue;
        }
        kelp_buf_append(out, text.data + begin, i - begin);
        begin = i + 1;
        if (bytes == 0) {
            kelp_buf_append_cstr(out, "\xEF\xBF\xBD"); /* U+FFFD, so that the text is JSON */
            continue;
        }
        static const char escaped[] = "\b\f\n\r\t\"\\", letters[] = "bfnrt\"\\";
        const char *found = c != 0 ? strchr(escaped, c) : NULL;
        if (found != NULL) {
            kelp_buf_append_char(out, '\\');
            kelp_buf_append_char(out, letters[found - escaped]);
        } else {
            kelp_buf_printf(out, "\\u%04x", c);
        }
    }
    kelp_buf_append(out, text.data + begin, text.length - begin);
    kelp_buf_append_char(out, '"');
}
