/* SPDX-License-Identifier: Apache-2.0 */
/* gzip and deflate through zlib. */
#include "frontends/http/encoding.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"

#ifdef KELP_HAVE_ZLIB
#include <zlib.h>
#define GZIP_WRAPPER 16                  /* added to windowBits; see zlib.h */
#define MAX_STEP_BYTES ((size_t)1 << 30) /* of input or output; zlib counts in unsigned int */
#define MIN_SPACE_BYTES ((size_t)4096)
#define STEP_BYTES ((size_t)16384)
#define DEFLATE_LEVEL 1  /* fastest: tensors compress badly at any level */
#define DEFLATE_MEMORY 8 /* zlib's default */
#endif

const char *kelp_http_coding_name(kelp_http_coding coding) {
    switch (coding) {
    case KELP_HTTP_GZIP:
        return "gzip";
    case KELP_HTTP_DEFLATE:
        return "deflate";
    case KELP_HTTP_IDENTITY:
    case KELP_HTTP_CODING_UNKNOWN:
        break;
    }
    return "identity";
}

kelp_http_coding kelp_http_coding_of(kelp_str value) {
    value = kelp_str_trim(value);
    if (!value.length || kelp_str_equal_nocase(value, KELP_STR("identity")))
        return KELP_HTTP_IDENTITY;
#ifdef KELP_HAVE_ZLIB
    if (kelp_str_equal_nocase(value, KELP_STR("gzip")) ||
        kelp_str_equal_nocase(value, KELP_STR("x-gzip")))
        return KELP_HTTP_GZIP;
    if (kelp_str_equal_nocase(value, KELP_STR("deflate")))
        return KELP_HTTP_DEFLATE;
#endif
    return KELP_HTTP_CODING_UNKNOWN;
}

/* Splits "name;q=0.5" and returns the weight; 1 when there is none, 0 when it is malformed. */
static double coding_weight(kelp_str item, kelp_str *out_name) {
    const char *semicolon = item.length ? memchr(item.data, ';', item.length) : NULL;
    *out_name = kelp_str_trim(item);
    if (semicolon == NULL)
        return 1.0;
    *out_name = kelp_str_trim((kelp_str){item.data, (size_t)(semicolon - item.data)});
    kelp_str rest = {semicolon + 1, item.length - (size_t)(semicolon - item.data) - 1};
    rest = kelp_str_trim(rest);
    if (rest.length < 3 || (rest.data[0] != 'q' && rest.data[0] != 'Q') || rest.data[1] != '=')
        return 0.0;
    double weight;
    if (!kelp_parse_f64((kelp_str){rest.data + 2, rest.length - 2}, &weight) ||
        !(weight >= 0.0 && weight <= 1.0))
        return 0.0;
    return weight;
}

kelp_http_coding kelp_http_coding_accepted(kelp_str accept_encoding) {
    kelp_http_coding best = KELP_HTTP_IDENTITY;
    double best_weight = 0.0;
    double identity_weight = 0.0;
    size_t start = 0;
    for (size_t i = 0; i <= accept_encoding.length; i++) {
        if (i < accept_encoding.length && accept_encoding.data[i] != ',')
            continue;
        kelp_str name;
        double weight = coding_weight((kelp_str){accept_encoding.data + start, i - start}, &name);
        start = i + 1;
        if (kelp_str_equal_nocase(name, KELP_STR("identity"))) {
            identity_weight = weight;
            continue;
        }
        kelp_http_coding coding =
            name.length ? kelp_http_coding_of(name) : KELP_HTTP_CODING_UNKNOWN;
        if (coding == KELP_HTTP_CODING_UNKNOWN)
            continue;
        if (weight > best_weight ||
            (weight == best_weight && weight > 0.0 && coding == KELP_HTTP_GZIP)) {
            best = coding;
            best_weight = weight;
        }
    }
    return best_weight > 0.0 && best_weight >= identity_weight ? best : KELP_HTTP_IDENTITY;
}

#ifdef KELP_HAVE_ZLIB

/* Returns windowBits for deflateInit2 and inflateInit2. */
static int window_bits(kelp_http_coding coding) {
    return coding == KELP_HTTP_GZIP ? MAX_WBITS + GZIP_WRAPPER : MAX_WBITS;
}

/* Gives zlib the next bytes of the input. Returns their number. */
static size_t give_input(z_stream *stream, const char *data, size_t length) {
    size_t piece = KELP_MIN(length, MAX_STEP_BYTES);
    stream->next_in = (Bytef *)(uintptr_t)data;
    stream->avail_in = (uInt)piece;
    return piece;
}

/* Gives zlib memory for output, for at most `left` bytes. */
static kelp_status *give_space(z_stream *stream, kelp_http_body *out, uint64_t left) {
    size_t space_bytes = out->capacity - out->skew - out->length;
    if (space_bytes < MIN_SPACE_BYTES)
        space_bytes = KELP_MAX(STEP_BYTES, out->length);
    space_bytes = KELP_MIN(space_bytes, MAX_STEP_BYTES);
    space_bytes = (size_t)KELP_MIN((uint64_t)space_bytes, left);
    size_t needed;
    if (!kelp_size_add(out->length, space_bytes, &needed) || !kelp_http_body_reserve(out, needed))
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                          "out of memory for the decompressed request body");
    stream->next_out = (Bytef *)(kelp_http_body_data(out) + out->length);
    stream->avail_out = (uInt)space_bytes;
    return NULL;
}

/* Decompresses up to the end, an error, or more than `limit_bytes`. */
static kelp_status *run_inflate(z_stream *stream, const char *name, kelp_str input,
                                uint64_t limit_bytes, kelp_http_body *out) {
    uint64_t produced = 0;
    size_t consumed = 0;
    int result = Z_OK;
    while (result != Z_STREAM_END) {
        if (stream->avail_in == 0 && consumed < input.length)
            consumed += give_input(stream, input.data + consumed, input.length - consumed);
        /* one byte more than the limit shows that there are more */
        KELP_TRY(give_space(stream, out, limit_bytes - produced + 1));
        uInt space_bytes = stream->avail_out;
        result = inflate(stream, Z_NO_FLUSH);
        size_t made = space_bytes - stream->avail_out;
        produced += made;
        if (produced > limit_bytes) {
            out->length += made - 1;
            return KELP_ERROR(KELP_OUT_OF_RANGE,
                              "the %s request body is larger than the limit of %llu bytes when "
                              "decompressed",
                              name, (unsigned long long)limit_bytes);
        }
        out->length += made;
        if (result != Z_OK && result != Z_STREAM_END)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "the request body is not valid %s: %s", name,
                              result == Z_BUF_ERROR ? "it ends early"
                              : stream->msg != NULL ? stream->msg
                                                    : "the data is corrupt");
    }
    return NULL;
}

kelp_status *kelp_http_decode(kelp_http_coding coding, const char *data, size_t length,
                              uint64_t limit_bytes, kelp_http_body *out) {
    KELP_ASSERT(coding == KELP_HTTP_GZIP || coding == KELP_HTTP_DEFLATE);
    z_stream stream = {0};
    if (inflateInit2(&stream, window_bits(coding)) != Z_OK)
        return kelp_status_oom();
    kelp_status *status = run_inflate(&stream, kelp_http_coding_name(coding),
                                      (kelp_str){data, length}, limit_bytes, out);
    inflateEnd(&stream);
    return status;
}

struct kelp_http_encoder {
    kelp_allocator allocator;
    kelp_buf *out;
    z_stream stream;
};

kelp_status *kelp_http_encoder_create(kelp_allocator allocator, kelp_http_coding coding,
                                      kelp_buf *out, kelp_http_encoder **out_encoder) {
    kelp_http_encoder *encoder;
    KELP_TRY(KELP_NEW(allocator, kelp_http_encoder, &encoder));
    encoder->allocator = allocator;
    encoder->out = out;
    if (deflateInit2(&encoder->stream, DEFLATE_LEVEL, Z_DEFLATED, window_bits(coding),
                     DEFLATE_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) {
        kelp_free(allocator, encoder, sizeof(*encoder));
        return kelp_status_oom();
    }
    *out_encoder = encoder;
    return NULL;
}

void kelp_http_encoder_destroy(kelp_http_encoder *encoder) {
    if (!encoder)
        return;
    deflateEnd(&encoder->stream);
    kelp_free(encoder->allocator, encoder, sizeof(*encoder));
}

static kelp_status *encoder_run(kelp_http_encoder *encoder, int flush) {
    int result;
    do {
        char *space = kelp_buf_reserve(encoder->out, STEP_BYTES);
        if (!space)
            return kelp_buf_status(encoder->out);
        encoder->stream.next_out = (Bytef *)space;
        encoder->stream.avail_out = (uInt)STEP_BYTES;
        result = deflate(&encoder->stream, flush);
        encoder->out->length += STEP_BYTES - encoder->stream.avail_out;
    } while (encoder->stream.avail_out == 0 || (flush == Z_FINISH && result == Z_OK));
    return NULL;
}

kelp_status *kelp_http_encoder_put(kelp_http_encoder *encoder, const void *data, size_t length) {
    const char *cursor = data;
    while (length > 0) {
        size_t piece = KELP_MIN(length, MAX_STEP_BYTES);
        encoder->stream.next_in = (Bytef *)(uintptr_t)cursor;
        encoder->stream.avail_in = (uInt)piece;
        KELP_TRY(encoder_run(encoder, Z_NO_FLUSH));
        cursor += piece;
        length -= piece;
    }
    return NULL;
}

kelp_status *kelp_http_encoder_end(kelp_http_encoder *encoder) {
    return encoder_run(encoder, Z_FINISH);
}

#else /* without zlib, kelp_http_coding_of returns only IDENTITY and CODING_UNKNOWN */

kelp_status *kelp_http_decode(kelp_http_coding coding, const char *data, size_t length,
                              uint64_t limit_bytes, kelp_http_body *out) {
    (void)data, (void)length, (void)limit_bytes, (void)out;
    return KELP_ERROR(KELP_UNIMPLEMENTED,
                      "cannot decompress %s: this build of Kelp does not contain zlib",
                      kelp_http_coding_name(coding));
}

kelp_status *kelp_http_encoder_create(kelp_allocator allocator, kelp_http_coding coding,
                                      kelp_buf *out, kelp_http_encoder **out_encoder) {
    (void)allocator, (void)out, (void)out_encoder;
    return KELP_ERROR(KELP_UNIMPLEMENTED,
                      "cannot compress as %s: this build of Kelp does not contain zlib",
                      kelp_http_coding_name(coding));
}

void kelp_http_encoder_destroy(kelp_http_encoder *encoder) {
    (void)encoder;
}

kelp_status *kelp_http_encoder_put(kelp_http_encoder *encoder, const void *data, size_t length) {
    (void)encoder, (void)data, (void)length;
    return NULL;
}

kelp_status *kelp_http_encoder_end(kelp_http_encoder *encoder) {
    (void)encoder;
    return NULL;
}

#endif
