/* SPDX-License-Identifier: Apache-2.0 */
/* The headers traceparent and tracestate, as the W3C recommendation defines them. */
#include "frontends/otlp/context.h"
#include "support/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"
#define VALID "00-" TRACE "-" SPAN "-01"

static bool parses(const char *text) {
    kelp_trace_context context;
    return kelp_traceparent_parse(kelp_str_from(text), &context);
}

static void a_traceparent_is_read_and_written(void **state) {
    (void)state;
    kelp_trace_context context;
    char text[KELP_TRACEPARENT_SIZE];
    assert_true(kelp_traceparent_parse(KELP_STR(VALID), &context));
    assert_true(kelp_str_is(kelp_traceparent_trace_id(KELP_STR(VALID)), TRACE));
    assert_int_equal(kelp_traceparent_trace_id(KELP_STR("00-" TRACE)).length, 0);
    assert_int_equal(context.trace.bytes[0], 0x0a);
    assert_int_equal(context.trace.bytes[15], 0x9c);
    assert_int_equal(context.span.bytes[0], 0xb7);
    assert_int_equal(context.flags, KELP_TRACE_SAMPLED);
    kelp_traceparent_format(&context, text);
    assert_string_equal(text, VALID);
    assert_true(kelp_traceparent_parse(KELP_STR("00-" TRACE "-" SPAN "-ff"), &context));
    assert_int_equal(context.flags, KELP_TRACE_SAMPLED | KELP_TRACE_RANDOM);
    assert_true(kelp_traceparent_parse(KELP_STR("00-" TRACE "-" SPAN "-00"), &context));
    assert_int_equal(context.flags, 0);
}

static void later_versions_may_have_more_fields(void **state) {
    (void)state;
    assert_true(parses("01-" TRACE "-" SPAN "-01"));
    assert_true(parses("cc-" TRACE "-" SPAN "-01-what the future brings"));
    assert_true(parses("fe-" TRACE "-" SPAN "-01-"));
    assert_false(parses("cc-" TRACE "-" SPAN "-01.more"));
    assert_false(parses("ff-" TRACE "-" SPAN "-01"));
    assert_false(parses(VALID "-more"));
    assert_false(parses(VALID " "));
}

static void malformed_traceparents_are_rejected(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "00",
                                        "00-" TRACE "-" SPAN,
                                        "00-" TRACE "-" SPAN "-",
                                        "00-" TRACE "-" SPAN "-0",
                                        "00-" TRACE "-" SPAN "-0G",
                                        "00-" TRACE "-" SPAN "-0A",
                                        "0-" TRACE "-" SPAN "-01",
                                        "0A-" TRACE "-" SPAN "-01",
                                        "00_" TRACE "-" SPAN "-01",
                                        "00-" TRACE "_" SPAN "-01",
                                        "00-" TRACE "-" SPAN "_01",
                                        "00-00000000000000000000000000000000-" SPAN "-01",
                                        "00-" TRACE "-0000000000000000-01",
                                        "00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
                                        "00-" TRACE "-B7AD6B7169203331-01",
                                        "00-" TRACE "-b7ad6b716920333.-01",
                                        " " VALID};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (parses(texts[i]))
            fail_msg("'%s' was accepted", texts[i]);
}

/* Parses the values of up to three tracestate headers. */
static const char *state_of(const char *first, const char *second, const char *third) {
    static char text[1024];
    kelp_http_header headers[3];
    size_t count = 0;
    kelp_arena arena;
    for (const char *const *value = (const char *const[]){first, second, third, NULL};
         *value != NULL; value++)
        headers[count++] = (kelp_http_header){KELP_STR("TraceState"), kelp_str_from(*value)};
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_str state = kelp_tracestate_parse(&arena, headers, count);
    snprintf(text, sizeof text, "%.*s", KELP_STR_ARG(state));
    kelp_arena_deinit(&arena);
    return text;
}

static void the_members_of_all_tracestates_are_one_list(void **state) {
    (void)state;
    assert_string_equal(state_of("a=1", NULL, NULL), "a=1");
    assert_string_equal(state_of("a=1 , b=2", "c=3", NULL), "a=1,b=2,c=3");
    assert_string_equal(state_of(",, a=1\t,", "", "b=2"), "a=1,b=2");
    assert_string_equal(state_of("t-1@sys=x y!~", NULL, NULL), "t-1@sys=x y!~");
    assert_string_equal(state_of("1a@b=1,a_-*/0=2", NULL, NULL), "1a@b=1,a_-*/0=2");
    assert_string_equal(state_of(NULL, NULL, NULL), "");
}

static void malformed_tracestates_are_dropped(void **state) {
    (void)state;
    static const char *const texts[] = {
        "a",      "=1",   "a=",   "A=1",   "1a=1",    "a b=1",   "a=1=",  "a=\t",
        "a=\x7f", "a@=1", "@a=1", "a@1=1", "a@b@c=1", "a=1,a=2", "a=1,b", "a@bcdefghijklmnop=1"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (*state_of(texts[i], NULL, NULL) != 0)
            fail_msg("'%s' was accepted", texts[i]);
    assert_string_equal(state_of("a=1", "b=2", "a=3"), "");
}

/* Returns the length of the parsed list `text`. */
static size_t length_of(const char *text) {
    const kelp_http_header header = {KELP_STR("tracestate"), kelp_str_from(text)};
    kelp_arena arena;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    size_t length = kelp_tracestate_parse(&arena, &header, 1).length;
    kelp_arena_deinit(&arena);
    return length;
}

static void a_tracestate_has_limits(void **state) {
    (void)state;
    char text[1024], *at = text;
    for (int i = 0; i < 32; i++)
        at += sprintf(at, "k%d=1,", i);
    assert_int_equal(length_of(text), strlen(text) - 1);
    sprintf(at, "k32=1");
    assert_int_equal(length_of(text), 0);
    memset(text, 'a', 256); /* a key of 256 characters */
    strcpy(text + 256, "=1");
    assert_int_equal(length_of(text), 258);
    memset(text, 'a', 257);
    strcpy(text + 257, "=1");
    assert_int_equal(length_of(text), 0);
    strcpy(text, "a=");
    memset(text + 2, 'v', 256);
    text[258] = 0;
    assert_int_equal(length_of(text), 258);
    strcat(text, "v");
    assert_int_equal(length_of(text), 0);
}

static kelp_trace_context read_headers(kelp_allocator allocator, const kelp_http_header *headers,
                                       size_t count) {
    const kelp_http_request request = {.headers = headers, .header_count = count};
    kelp_trace_context context;
    kelp_arena arena;
    kelp_arena_init(&arena, allocator, 0);
    kelp_trace_context_read(&arena, &request, &context);
    kelp_arena_deinit(&arena);
    return context;
}

static void a_context_needs_exactly_one_valid_traceparent(void **state) {
    (void)state;
    const kelp_http_header headers[] = {{KELP_STR("host"), KELP_STR("x")},
                                        {KELP_STR("Traceparent"), KELP_STR(VALID)},
                                        {KELP_STR("tracestate"), KELP_STR("a=1")},
                                        {KELP_STR("traceparent"), KELP_STR(VALID)}};
    const kelp_http_header bad[] = {{KELP_STR("traceparent"), KELP_STR("00")},
                                    {KELP_STR("tracestate"), KELP_STR("a=1")}};
    kelp_allocator heap = kelp_allocator_system();
    kelp_trace_context context = read_headers(heap, headers, 3);
    assert_true(kelp_trace_context_is_valid(&context));
    assert_int_equal(context.state.length, 3);
    context = read_headers(heap, headers, 4);
    assert_false(kelp_trace_context_is_valid(&context));
    context = read_headers(heap, headers, 1);
    assert_false(kelp_trace_context_is_valid(&context));
    context = read_headers(heap, bad, 2);
    assert_false(kelp_trace_context_is_valid(&context));
    assert_int_equal(context.state.length, 0);
}

static void a_context_without_memory_has_no_state(void **state) {
    (void)state;
    const kelp_http_header headers[] = {{KELP_STR("traceparent"), KELP_STR(VALID)},
                                        {KELP_STR("tracestate"), KELP_STR("a=1")}};
    test_failing memory;
    test_failing_init(&memory, 1);
    kelp_trace_context context = read_headers(test_failing_allocator(&memory), headers, 2);
    assert_true(kelp_trace_context_is_valid(&context));
    assert_int_equal(context.state.length, 0);
    test_failing_check(&memory);
    test_failing_deinit(&memory);
}

static void identifiers_differ(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    static kelp_span_id spans[COUNT];
    kelp_trace_ids ids, others;
    kelp_trace_ids_init(&ids);
    kelp_trace_ids_init(&others);
    kelp_trace_id one = kelp_trace_ids_trace(&ids), two = kelp_trace_ids_trace(&others);
    assert_memory_not_equal(one.bytes, two.bytes, sizeof one.bytes);
    for (int i = 0; i < COUNT; i++) {
        spans[i] = kelp_trace_ids_span(&ids);
        for (int k = 0; k < i; k++)
            assert_memory_not_equal(spans[i].bytes, spans[k].bytes, sizeof spans[i].bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_traceparent_is_read_and_written),
        cmocka_unit_test(later_versions_may_have_more_fields),
        cmocka_unit_test(malformed_traceparents_are_rejected),
        cmocka_unit_test(the_members_of_all_tracestates_are_one_list),
        cmocka_unit_test(malformed_tracestates_are_dropped),
        cmocka_unit_test(a_tracestate_has_limits),
        cmocka_unit_test(a_context_needs_exactly_one_valid_traceparent),
        cmocka_unit_test(a_context_without_memory_has_no_state),
        cmocka_unit_test(identifiers_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
