/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/1.1 parser and writer: the requests of a stream do not depend on how it is split. */
#include "frontends/http/http1.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Writes the requests of a stream as text: "METHOD path body|" for each request, then "!status" on
 * failure. */
static void drive(const char *bytes, size_t length, size_t step, const kelp_http1_limits *limits,
                  bool direct, kelp_buf *out) {
    kelp_http1_parser parser;
    kelp_http1_parser_init(&parser, kelp_allocator_system(), limits);
    size_t at = 0;
    bool end = false;
    while (!end) {
        size_t room = 0;
        char *space = direct ? kelp_http1_body_space(&parser, &room) : NULL;
        size_t n = length - at < step ? length - at : step;
        kelp_http1_event event;
        if (space && n) {
            n = n < room ? n : room;
            memcpy(space, bytes + at, n);
            event = kelp_http1_body_commit(&parser, n);
            at += n;
        } else {
            size_t used = 0;
            event = kelp_http1_feed(&parser, bytes + at, n, &used);
            at += used;
        }
        end = at == length && event == KELP_HTTP1_MORE;
        if (event == KELP_HTTP1_FAILED) {
            kelp_buf_printf(out, "!%d", (int)parser.error_status);
            assert_non_null(parser.error_text);
            break;
        }
        if (event == KELP_HTTP1_COMPLETE) {
            const kelp_http_request *r = &parser.request;
            kelp_buf_append_str(out, r->method);
            kelp_buf_append_char(out, ' ');
            kelp_buf_append_str(out, r->path);
            kelp_buf_append_char(out, ' ');
            kelp_buf_append(out, kelp_http_body_data(&parser.body), parser.body.length);
            kelp_buf_append_cstr(out, parser.framing.keep_alive ? "|" : "|close ");
            kelp_http1_parser_clear(&parser);
            assert_true(kelp_http1_parser_idle(&parser));
            end = at == length;
        }
    }
    kelp_http1_parser_deinit(&parser);
}

static void check_steps(const char *bytes, size_t length, const kelp_http1_limits *limits,
                        const char *expected) {
    for (size_t step = 1; step <= length; step++) {
        for (int direct = 0; direct < 2; direct++) {
            kelp_buf out;
            kelp_buf_init(&out, kelp_allocator_system());
            drive(bytes, length, step, limits, direct, &out);
            const char *text = kelp_buf_cstr(&out);
            if (strcmp(text, expected) != 0)
                fail_msg("step %zu: expected '%s', found '%s'", step, expected, text);
            kelp_buf_deinit(&out);
        }
    }
}

static void check(const char *bytes, const char *expected) {
    check_steps(bytes, strlen(bytes), NULL, expected);
}

static void requests_without_a_body(void **state) {
    (void)state;
    check("GET /v2 HTTP/1.1\r\nHost: a\r\n\r\n", "GET /v2 |");
    check("GET /v2?x=1 HTTP/1.1\nHost: h\n\n", "GET /v2 |");
    check("\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / |");
    check("GET http://host:8000/v2/models HTTP/1.1\r\nHost: h\r\n\r\n", "GET /v2/models |");
    check("GET http://host HTTP/1.1\r\nHost: h\r\n\r\n", "GET / |");
    check("GET http:// HTTP/1.1\r\nHost: h\r\n\r\n", "GET / |");
    check("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "OPTIONS * |");
}

static void keep_alive_follows_version_and_header(void **state) {
    (void)state;
    check("GET / HTTP/1.0\r\n\r\n", "GET / |close ");
    check("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "GET / |");
    check("GET / HTTP/1.1\r\nHost: h\r\nConnection: foo, Close\r\n\r\n", "GET / |close ");
}

static void a_body_has_its_declared_length(void **state) {
    (void)state;
    check("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello", "POST /a hello|");
    check("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", "POST /a |");
    check("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\ncontent-length: 2\r\n\r\nok",
          "POST /a ok|");
}

static void pipelined_requests_are_separated(void **state) {
    (void)state;
    check(
        "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\noneGET /b HTTP/1.1\r\nHost: "
        "h\r\n\r\n\r\nPOST /c "
        "HTTP/1.1\r\nHost: h\r\n"
        "Transfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\nGET /d HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /a one|GET /b |POST /c two|GET /d |");
}

static void chunks_are_joined(void **state) {
    (void)state;
    check("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
          "chunked\r\n\r\n5\r\nhello\r\n6;name=\"x\"\r\n "
          "world\r\n0\r\n\r\n",
          "POST /a hello world|");
    check("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: CHUNKED\r\n\r\nA "
          "\r\n0123456789\r\n00\r\nX: "
          "y\r\nZ: w\r\n\r\n",
          "POST /a 0123456789|");
    /* with Content-Length: chunked wins, and the connection closes */
    check("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 99\r\nTransfer-Encoding: "
          "chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
          "POST /a ok|close ");
}

static void malformed_requests_are_rejected(void **state) {
    (void)state;
    check("GARBAGE\r\n\r\n", "!400");
    check("GET /\r\n\r\n", "!400");
    check("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
    check("GET / HTTP/1.1 \r\n\r\n", "!400");
    check("GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
    check("GET a HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
    check("G@T / HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
    check("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "!505");
    check("GET / HTTP/1.1\r\n\r\n", "!400");
    check("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "!400");
    check("GET / HTTP/1.1\r\nHost: h\r\nNo colon\r\n\r\n", "!400");
    check("GET / HTTP/1.1\r\nHost: h\r\nName : x\r\n\r\n", "!400");
    check("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n folded\r\n\r\n", "!400");
    check("GET / HTTP/1.1\r\nHost: h\r\nA: b\001c\r\n\r\n", "!400");
    check("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", "!400");
    check("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\n", "!400");
    check("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1x\r\n\r\n", "!400");
    check("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999999\r\n\r\n", "!400");
    check("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "!400");
    check("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "!501");
    check("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
          "chunked\r\n\r\n",
          "!400");
    check("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", "!400");
    check("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "!400");
    check("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n", "!400");
    check("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n",
          "!400");
    check("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
          "!413");
    check("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551615\r\n\r\n", "!413");
}

static void limits_are_enforced(void **state) {
    (void)state;
    kelp_http1_limits limits = {.head_bytes = 90, .header_count = 4, .body_bytes = 4};
    static const char *const cases[][2] = {
        {"GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n", "GET / |"},
        {"GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\n\r\n", "!431"},
        {"GET / HTTP/1.1\r\nHost: h\r\nA: "
         "0123456789012345678901234567890123456789012345678901234567890123456789\r\n\r\n",
         "!431"},
        {"GET "
         "/012345678901234567890123456789012345678901234567890123456789012345678901234567890123456"
         "7",
         "!431"},
        {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nabcd", "POST / abcd|"},
        {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabcde", "!413"},
        {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
         "chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n",
         "POST / abcd|"},
        {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
         "chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n",
         "!413"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_steps(cases[i][0], strlen(cases[i][0]), &limits, cases[i][1]);
}

static void many_small_chunks_do_not_copy_quadratically(void **state) {
    (void)state;
    kelp_buf in, out, expected;
    kelp_buf_init(&in, kelp_allocator_system());
    kelp_buf_init(&out, kelp_allocator_system());
    kelp_buf_init(&expected, kelp_allocator_system());
    kelp_buf_append_cstr(&in, "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    kelp_buf_append_cstr(&expected, "POST /c ");
    for (int i = 0; i < 100000; i++) {
        kelp_buf_append_cstr(&in, "1\r\nx\r\n");
        kelp_buf_append_char(&expected, 'x');
    }
    kelp_buf_append_cstr(&in, "0\r\n\r\n");
    kelp_buf_append_char(&expected, '|');
    drive(in.data, in.length, 65536, NULL, true, &out);
    assert_int_equal(out.length, expected.length);
    assert_memory_equal(out.data, expected.data, out.length);
    kelp_buf_deinit(&in);
    kelp_buf_deinit(&out);
    kelp_buf_deinit(&expected);
}

static void the_chosen_offset_of_the_body_is_aligned(void **state) {
    (void)state;
    for (size_t offset = 0; offset < 130; offset += 13) {
        kelp_http1_parser parser;
        kelp_http1_parser_init(&parser, kelp_allocator_system(), NULL);
        static const char head[] = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 200\r\n\r\n";
        char body[200];
        memset(body, 'b', sizeof(body));
        size_t used;
        assert_int_equal(kelp_http1_feed(&parser, head, strlen(head), &used), KELP_HTTP1_HEAD);
        parser.align_offset = offset;
        assert_int_equal(kelp_http1_feed(&parser, body, sizeof(body), &used), KELP_HTTP1_COMPLETE);
        assert_int_equal((uintptr_t)(kelp_http_body_data(&parser.body) + offset) % 64, 0);
        assert_memory_equal(kelp_http_body_data(&parser.body), body, sizeof(body));
        kelp_http1_parser_deinit(&parser);
    }
}

/* Feeds a head and three bytes of the body; returns the memory that the parser then has for it. */
static size_t reserved_bytes(const char *head) {
    kelp_http1_parser parser;
    kelp_http1_parser_init(&parser, kelp_allocator_system(), NULL);
    size_t used;
    assert_int_equal(kelp_http1_feed(&parser, head, strlen(head), &used), KELP_HTTP1_HEAD);
    size_t rest = strlen(head) - used;
    assert_int_equal(kelp_http1_feed(&parser, head + used, rest, &used), KELP_HTTP1_MORE);
    size_t reserved = parser.body.capacity;
    kelp_http1_parser_deinit(&parser);
    return reserved;
}

/* The parser used to reserve memory for the announced size, in huge pages. */
static void an_announced_size_alone_reserves_little_memory(void **state) {
    (void)state;
    assert_in_range(
        reserved_bytes("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 60000000\r\n\r\nabc"), 3,
        65536);
    assert_in_range(
        reserved_bytes(
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3000000\r\nabc"),
        3, 65536);
}

static void a_large_body_is_received_completely_and_aligned(void **state) {
    (void)state;
    enum { BODY_BYTES = 3000000 };
    static const char head[] = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n";
    char *body = malloc(BODY_BYTES);
    assert_non_null(body);
    for (size_t i = 0; i < BODY_BYTES; i++)
        body[i] = (char)(i * 31);
    kelp_http1_parser parser;
    kelp_http1_parser_init(&parser, kelp_allocator_system(), NULL);
    size_t used;
    assert_int_equal(kelp_http1_feed(&parser, head, strlen(head), &used), KELP_HTTP1_HEAD);
    parser.align_offset = 7;
    assert_int_equal(kelp_http1_feed(&parser, body, BODY_BYTES, &used), KELP_HTTP1_COMPLETE);
    assert_int_equal(used, BODY_BYTES);
    assert_int_equal((uintptr_t)(kelp_http_body_data(&parser.body) + 7) % 64, 0);
    assert_memory_equal(kelp_http_body_data(&parser.body), body, BODY_BYTES);
    kelp_http1_parser_deinit(&parser);
    free(body);
}

/* A kept buffer may be smaller than the offset that aligns the next body. */
static void a_small_buffer_is_reused_with_another_alignment(void **state) {
    (void)state;
    static const char text[] = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n";
    kelp_http1_parser parser;
    kelp_http1_parser_init(&parser, kelp_allocator_system(), NULL);
    for (size_t offset = 0; offset < 2; offset++) {
        size_t used;
        assert_int_equal(kelp_http1_feed(&parser, text, strlen(text), &used), KELP_HTTP1_HEAD);
        parser.align_offset = offset;
        assert_int_equal(kelp_http1_feed(&parser, "ab", 2, &used), KELP_HTTP1_COMPLETE);
        assert_memory_equal(kelp_http_body_data(&parser.body), "ab", 2);
        kelp_http1_parser_clear(&parser);
    }
    kelp_http1_parser_deinit(&parser);
}

static void headers_are_found_in_any_case(void **state) {
    (void)state;
    kelp_http1_parser parser;
    kelp_http1_parser_init(&parser, kelp_allocator_system(), NULL);
    static const char text[] = "POST /m HTTP/1.1\r\nHost: h\r\nX-One:  spaced value \t\r\nExpect: "
                               "100-Continue\r\n"
                               "Empty:\r\nContent-Length: 1\r\n\r\n";
    size_t used;
    assert_int_equal(kelp_http1_feed(&parser, text, strlen(text), &used), KELP_HTTP1_HEAD);
    assert_int_equal(used, strlen(text));
    assert_true(parser.framing.expect_continue);
    assert_true(kelp_str_is(*kelp_http_find(&parser.request, "x-one"), "spaced value"));
    assert_int_equal(kelp_http_find(&parser.request, "EMPTY")->length, 0);
    assert_null(kelp_http_find(&parser.request, "other"));
    assert_int_equal(kelp_http1_feed(&parser, NULL, 0, &used), KELP_HTTP1_MORE);
    assert_int_equal(kelp_http1_feed(&parser, "z", 1, &used), KELP_HTTP1_COMPLETE);
    kelp_http1_parser_deinit(&parser);
}

static void percent_encoding_is_decoded(void **state) {
    (void)state;
    char out[32];
    size_t n;
    assert_true(kelp_http_percent_decode(KELP_STR("a%20b%2Fc%c3%A9"), out, &n));
    assert_int_equal(n, 7);
    assert_memory_equal(out, "a b/c\xc3\xa9", 7);
    assert_false(kelp_http_percent_decode(KELP_STR("%"), out, &n));
    assert_false(kelp_http_percent_decode(KELP_STR("%4"), out, &n));
    assert_false(kelp_http_percent_decode(KELP_STR("%zz"), out, &n));
    assert_false(kelp_http_percent_decode(KELP_STR("a%00"), out, &n));
}

static void response_heads_are_written(void **state) {
    (void)state;
    kelp_buf out;
    kelp_buf_init(&out, kelp_allocator_system());
    kelp_http1_put_status(&out, KELP_HTTP_NOT_FOUND);
    kelp_http1_put_header(&out, KELP_STR("Content-Type"), KELP_STR("application/json"));
    kelp_http1_end_head(&out, 1, true, 21);
    assert_string_equal(kelp_buf_cstr(&out), "HTTP/1.1 404 Not Found\r\nContent-Type: "
                                             "application/json\r\nContent-Length: 21\r\n\r\n");
    kelp_buf_clear(&out);
    kelp_http1_put_status(&out, KELP_HTTP_OK);
    kelp_http1_end_head(&out, 1, false, 0);
    assert_string_equal(kelp_buf_cstr(&out), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: "
                                             "close\r\n\r\n");
    kelp_buf_clear(&out);
    kelp_http1_end_head(&out, 0, true, 0);
    assert_string_equal(kelp_buf_cstr(&out), "Content-Length: 0\r\nConnection: keep-alive\r\n\r\n");
    kelp_buf_deinit(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_without_a_body),
        cmocka_unit_test(keep_alive_follows_version_and_header),
        cmocka_unit_test(a_body_has_its_declared_length),
        cmocka_unit_test(pipelined_requests_are_separated),
        cmocka_unit_test(chunks_are_joined),
        cmocka_unit_test(malformed_requests_are_rejected),
        cmocka_unit_test(limits_are_enforced),
        cmocka_unit_test(many_small_chunks_do_not_copy_quadratically),
        cmocka_unit_test(the_chosen_offset_of_the_body_is_aligned),
        cmocka_unit_test(an_announced_size_alone_reserves_little_memory),
        cmocka_unit_test(a_large_body_is_received_completely_and_aligned),
        cmocka_unit_test(a_small_buffer_is_reused_with_another_alignment),
        cmocka_unit_test(headers_are_found_in_any_case),
        cmocka_unit_test(percent_encoding_is_decoded),
        cmocka_unit_test(response_heads_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
