/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the HTTP/1.1 parser: the requests of a stream are the same if it arrives at once, in
 * pieces, or directly in the body. */
#include "frontends/http/encoding.h"
#include "frontends/http/http1.h"
#include "frontends/tensor/base64.h"

#include <stdlib.h>

typedef struct summary {
    uint64_t hash;
    unsigned requests;
    int error;
} summary;

static void mix(summary *s, const void *data, size_t length) {
    s->hash = s->hash * UINT64_C(1099511628211) + kelp_hash_bytes(data, length);
}

static void add_request(summary *s, const kelp_http1_parser *parser) {
    const kelp_http_request *r = &parser->request;
    mix(s, r->method.data, r->method.length);
    mix(s, r->path.data, r->path.length);
    mix(s, r->query.data, r->query.length);
    mix(s, &parser->framing.keep_alive, sizeof(parser->framing.keep_alive));
    for (size_t i = 0; i < r->header_count; i++) {
        mix(s, r->headers[i].name.data, r->headers[i].name.length);
        mix(s, r->headers[i].value.data, r->headers[i].value.length);
    }
    mix(s, kelp_http_body_data(&parser->body), parser->body.length);
    s->requests++;
}

static summary drive(const char *bytes, size_t length, size_t step, bool direct) {
    summary s = {0};
    kelp_http1_limits limits = {.head_bytes = 4096, .header_count = 32, .body_bytes = 65536};
    kelp_http1_parser parser;
    kelp_http1_parser_init(&parser, kelp_allocator_system(), &limits);
    size_t at = 0;
    for (;;) {
        size_t n = length - at < step ? length - at : step;
        size_t room = 0, used = 0;
        char *space = direct ? kelp_http1_body_space(&parser, &room) : NULL;
        kelp_http1_event event;
        if (space && n) {
            used = n < room ? n : room;
            memcpy(space, bytes + at, used);
            event = kelp_http1_body_commit(&parser, used);
        } else {
            event = kelp_http1_feed(&parser, bytes + at, n, &used);
        }
        at += used;
        if (event == KELP_HTTP1_COMPLETE) {
            add_request(&s, &parser);
            kelp_http1_parser_clear(&parser);
        }
        if (event == KELP_HTTP1_FAILED) {
            s.error = parser.error_status;
            break;
        }
        if (at == length && event != KELP_HTTP1_HEAD)
            break;
    }
    kelp_http1_parser_deinit(&parser);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *bytes = (const char *)data;
    summary whole = drive(bytes, size, SIZE_MAX, false);
    for (int i = 0; i < 4; i++) {
        static const size_t steps[] = {1, 7, 61, SIZE_MAX};
        summary pieces = drive(bytes, size, steps[i], true);
        /* The position at which a long head is rejected depends on the pieces; the result does
         * not. */
        if (pieces.hash != whole.hash || pieces.requests != whole.requests ||
            (pieces.error != 0) != (whole.error != 0))
            abort();
    }
    kelp_str text = {bytes, size};
    (void)kelp_http_coding_accepted(text);
    char *out = malloc(size + 1);
    size_t n;
    if (out) {
        (void)kelp_http_percent_decode(text, out, &n);
        (void)kelp_v2_base64_decode(text, out, &n);
    }
    free(out);
    kelp_http_body unpacked;
    kelp_http_body_init(&unpacked, kelp_allocator_system());
    kelp_status_free(kelp_http_decode(KELP_HTTP_GZIP, bytes, size, 65536, &unpacked));
    kelp_http_body_deinit(&unpacked);
    return 0;
}
