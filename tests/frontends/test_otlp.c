/* SPDX-License-Identifier: Apache-2.0 */
/* Spans and their exporter, with a collector of the test: a thread that responds to each request.
 */
#include "base/wire/protobuf.h"
#include "frontends/otlp/exporter.h"
#include "frontends/otlp/request.h"
#include "frontends/otlp/span.h"
#include "frontends/trace/tracing.h"
#include "support/failing_allocator.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static const kelp_logger silent = {0};

/* ---- protobuf ---- */

/* Returns occurrence `index` of a field, which must exist. */
static kelp_protobuf_field field(kelp_str message, uint32_t number, size_t index) {
    kelp_protobuf wire = kelp_protobuf_of(message);
    kelp_protobuf_field found;
    kelp_protobuf_result result;
    while ((result = kelp_protobuf_next(&wire, &found)) == KELP_PROTOBUF_FIELD)
        if (found.number == number && index-- == 0)
            return found;
    assert_int_equal(result, KELP_PROTOBUF_END);
    fail_msg("field %u is missing", number);
    return found;
}

static void assert_text(kelp_str text, const char *expected) {
    if (!kelp_str_is(text, expected))
        fail_msg("expected '%s', found '%.*s'", expected, KELP_STR_ARG(text));
}

/* ---- the collector ---- */

enum { MAX_BODIES = 16 };

typedef struct collector {
    int listener;
    char url[64];
    pthread_t thread;
    pthread_mutex_t lock;
    kelp_buf bodies[MAX_BODIES];
    size_t count;
} collector;

/* Reads a request and keeps its body. Returns false if the connection is closed. */
static bool read_request(collector *c, int connection) {
    char head[4096];
    size_t length = 0, body = 0;
    const char *end = NULL;
    while (end == NULL) {
        ssize_t n = read(connection, head + length, sizeof head - 1 - length);
        if (n <= 0)
            return false;
        length += (size_t)n;
        head[length] = 0;
        end = strstr(head, "\r\n\r\n");
    }
    const char *value = strstr(head, "Content-Length: ");
    assert_non_null(value);
    body = (size_t)strtoul(value + strlen("Content-Length: "), NULL, 10);
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_buf_append(&text, end + 4, length - (size_t)(end + 4 - head));
    while (text.length < body) {
        char *space = kelp_buf_reserve(&text, body - text.length);
        ssize_t n = read(connection, space, body - text.length);
        assert_true(n > 0);
        text.length += (size_t)n;
    }
    pthread_mutex_lock(&c->lock);
    if (c->count < MAX_BODIES)
        c->bodies[c->count++] = text;
    else
        kelp_buf_deinit(&text);
    pthread_mutex_unlock(&c->lock);
    return true;
}

static void *collect(void *userp) {
    static const char response[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    collector *c = userp;
    for (int connection; (connection = accept(c->listener, NULL, NULL)) >= 0;) {
        while (read_request(c, connection))
            assert_int_equal(write(connection, response, strlen(response)), strlen(response));
        close(connection);
    }
    return NULL;
}

static void collector_start(collector *c) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    *c = (collector){.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_true(c->listener >= 0);
    assert_int_equal(bind(c->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(c->listener, 4), 0);
    assert_int_equal(getsockname(c->listener, (struct sockaddr *)&address, &size), 0);
    snprintf(c->url, sizeof c->url, "http://127.0.0.1:%d/v1/traces", ntohs(address.sin_port));
    pthread_mutex_init(&c->lock, NULL);
    assert_int_equal(pthread_create(&c->thread, NULL, collect, c), 0);
}

/* Waits for the end of the connections. The bodies may be read then. */
static void collector_stop(collector *c) {
    shutdown(c->listener, SHUT_RDWR);
    assert_int_equal(pthread_join(c->thread, NULL), 0);
    close(c->listener);
}

static void collector_free(collector *c) {
    for (size_t i = 0; i < c->count; i++)
        kelp_buf_deinit(&c->bodies[i]);
    pthread_mutex_destroy(&c->lock);
}

/* Returns a span of a request, which must exist. */
static kelp_str span_of(const collector *c, size_t request, size_t index) {
    assert_true(request < c->count);
    const kelp_buf *body = &c->bodies[request];
    kelp_str resource = field((kelp_str){body->data, body->length}, 1, 0).bytes;
    return field(field(resource, 2, 0).bytes, 2, index).bytes;
}

static size_t spans_in(const collector *c, size_t request) {
    const kelp_buf *body = &c->bodies[request];
    kelp_str resource = field((kelp_str){body->data, body->length}, 1, 0).bytes;
    return kelp_protobuf_count(field(resource, 2, 0).bytes, 2);
}

static kelp_otlp_options options_for(const char *url) {
    static const kelp_otlp_attribute resource[] = {{"service.name", "test"}};
    return (kelp_otlp_options){.client = {.url = url, .version = "0", .timeout_ms = 10000},
                               .max_queue = 8,
                               .max_batch = 4,
                               .delay_ms = 60000,
                               .export_timeout_ms = 1000,
                               .resource = resource,
                               .resource_count = 1};
}

/* ---- spans ---- */

static void a_span_has_the_fields_of_otlp(void **state) {
    (void)state;
    kelp_otlp_span_start start = {.self = {.state = KELP_STR("a=1"), .flags = KELP_TRACE_SAMPLED},
                                  .remote = true,
                                  .name = KELP_STR("the \xff name"),
                                  .kind = KELP_OTLP_SPAN_SERVER,
                                  .time_ns = 10};
    kelp_otlp_span span;
    memset(start.self.trace.bytes, 0x11, sizeof start.self.trace.bytes);
    memset(start.self.span.bytes, 0x22, sizeof start.self.span.bytes);
    memset(start.parent.bytes, 0x33, sizeof start.parent.bytes);
    kelp_otlp_span_begin(&span, kelp_allocator_system(), &start);
    kelp_otlp_span_put_text(&span, "text", KELP_STR("\xc3\xa4"));
    kelp_otlp_span_put_number(&span, "number", -5);
    for (int i = 0; i < KELP_OTLP_SPAN_MAX_EVENTS + 3; i++)
        kelp_otlp_span_add_event(&span, KELP_STR("event"), 11);
    kelp_otlp_span_fail(&span, KELP_STR("first"));
    kelp_otlp_span_fail(&span, KELP_STR("second"));
    kelp_otlp_span_end(&span, 12);
    assert_false(span.message.failed);
    kelp_str m = {span.message.data, span.message.length};
    assert_memory_equal(field(m, 1, 0).bytes.data, start.self.trace.bytes, 16);
    assert_memory_equal(field(m, 2, 0).bytes.data, start.self.span.bytes, 8);
    assert_text(field(m, 3, 0).bytes, "a=1");
    assert_memory_equal(field(m, 4, 0).bytes.data, start.parent.bytes, 8);
    assert_text(field(m, 5, 0).bytes, "the ? name");
    assert_int_equal(field(m, 6, 0).value, KELP_OTLP_SPAN_SERVER);
    assert_int_equal(field(m, 7, 0).value, 10);
    assert_int_equal(field(m, 8, 0).value, 12);
    assert_text(field(field(m, 9, 0).bytes, 1, 0).bytes, "text");
    assert_text(field(field(field(m, 9, 0).bytes, 2, 0).bytes, 1, 0).bytes, "\xc3\xa4");
    assert_int_equal((int64_t)field(field(field(m, 9, 1).bytes, 2, 0).bytes, 3, 0).value, -5);
    assert_int_equal(kelp_protobuf_count(m, 11), KELP_OTLP_SPAN_MAX_EVENTS);
    assert_int_equal(field(m, 12, 0).value, 3);
    assert_text(field(field(m, 15, 0).bytes, 2, 0).bytes, "first");
    assert_int_equal(field(field(m, 15, 0).bytes, 3, 0).value, 2);
    assert_int_equal(kelp_protobuf_count(m, 15), 1);
    assert_int_equal(field(m, 16, 0).value, 0x301);
    kelp_otlp_span_deinit(&span);
}

static void a_response_may_reject_spans(void **state) {
    (void)state;
    char text[64] = "";
    static const char partial[] = "\x0a\x07\x08\x03\x12\x03old";
    assert_int_equal(kelp_otlp_rejected(KELP_STR(partial), text, sizeof text), 3);
    assert_string_equal(text, "the collector rejected them: old");
    assert_int_equal(kelp_otlp_rejected(KELP_STR("\x0a\x02\x08\x05"), text, 8), 5);
    assert_int_equal(kelp_otlp_rejected(KELP_STR(""), text, sizeof text), 0);
    assert_int_equal(kelp_otlp_rejected(KELP_STR("\x0a\x00"), text, sizeof text), 0);
    assert_int_equal(kelp_otlp_rejected(KELP_STR("<html>"), text, sizeof text), 0);
    assert_int_equal(kelp_otlp_rejected(KELP_STR("\x0a\x7f\x08"), text, sizeof text), 0);
}

/* ---- the exporter ---- */

static void put_text(kelp_otlp_exporter *exporter, const char *text) {
    kelp_otlp_exporter_put(exporter, kelp_str_from(text));
}

static void complete_batches_are_sent_at_once_and_the_rest_at_the_stop(void **state) {
    (void)state;
    collector c;
    collector_start(&c);
    kelp_otlp_exporter *exporter;
    kelp_otlp_options options = options_for(c.url);
    assert_null(kelp_otlp_exporter_create(kelp_allocator_system(), &silent, &options, &exporter));
    for (int i = 0; i < 4; i++)
        put_text(exporter, "\x2a\x01x");
    size_t count = 0;
    while (count == 0) {
        usleep(1000);
        pthread_mutex_lock(&c.lock);
        count = c.count;
        pthread_mutex_unlock(&c.lock);
    }
    put_text(exporter, "\x2a\x01y");
    kelp_otlp_exporter_stop(exporter, UINT64_C(10000000000));
    kelp_otlp_exporter_stop(exporter, 0); /* no effect */
    put_text(exporter, "late");
    kelp_otlp_exporter_destroy(exporter);
    collector_stop(&c);
    assert_int_equal(c.count, 2);
    assert_int_equal(spans_in(&c, 0), 4);
    assert_int_equal(spans_in(&c, 1), 1);
    assert_text(field(span_of(&c, 1, 0), 5, 0).bytes, "y");
    collector_free(&c);
}

static void a_full_queue_drops_spans(void **state) {
    (void)state;
    collector c;
    collector_start(&c);
    kelp_otlp_exporter *exporter;
    kelp_otlp_options options = options_for(c.url);
    options.max_batch = 100; /* becomes that of the queue */
    options.max_queue = 3;
    assert_null(kelp_otlp_exporter_create(kelp_allocator_system(), &silent, &options, &exporter));
    for (int i = 0; i < 3000; i++)
        put_text(exporter, "\x2a\x01x");
    kelp_otlp_exporter_destroy(exporter);
    collector_stop(&c);
    for (size_t i = 0; i < c.count; i++)
        assert_int_equal(spans_in(&c, i), 3);
    collector_free(&c);
}

static void *put_many(void *userp) {
    for (int i = 0; i < 2000; i++)
        put_text(userp, "\x2a\x01x");
    return NULL;
}

static void threads_export_at_the_same_time(void **state) {
    (void)state;
    kelp_otlp_exporter *exporter;
    pthread_t threads[3];
    kelp_otlp_options options = options_for("http://127.0.0.1:1/");
    assert_null(kelp_otlp_exporter_create(kelp_allocator_system(), &silent, &options, &exporter));
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, put_many, exporter), 0);
    usleep(2000);
    kelp_otlp_exporter_stop(exporter, 1000000);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    kelp_otlp_exporter_destroy(exporter);
    kelp_otlp_exporter_destroy(NULL);
}

/* ---- records ---- */

static kelp_status *create(kelp_allocator allocator, const kelp_otlp_options *otlp,
                           kelp_tracing **out) {
    const kelp_tracing_options options = {
        .values = {.level = TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, .rate = 1, .count = -1},
        .file = "",
        .otlp = otlp,
        .sampler = {.parent_based = true, .ratio = 1}};
    return kelp_tracing_create(allocator, NULL, &silent, &options, out);
}

static void report(TRITONSERVER_InferenceTrace *trace, const char *name) {
    TRITONSERVER_Error *error = TRITONSERVER_InferenceTraceReportActivity(trace, 5, name);
    if (error != NULL)
        TRITONSERVER_ErrorDelete(error);
}

/* Traces a request whose backend reports custom activities. */
static void trace_one(kelp_tracing *tracing, const char *const *activities) {
    static const kelp_http_header headers[] = {
        {KELP_STR("traceparent"),
         KELP_STR("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")},
        {KELP_STR("tracestate"), KELP_STR("a=1")}};
    const kelp_http_request request = {.headers = headers, .header_count = 2};
    kelp_trace_origin origin = {.model = "m", .grpc = true, .path = KELP_STR("/s/m")};
    kelp_arena arena;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_tracing_read_parent(tracing, &request, &arena, &origin.parent);
    kelp_trace_record *record = kelp_tracing_sample(tracing, &origin);
    kelp_arena_deinit(&arena);
    TRITONSERVER_InferenceTrace *trace = kelp_trace_submit(record);
    for (size_t i = 0; activities[i] != NULL && trace != NULL; i++)
        report(trace, activities[i]);
    kelp_trace_take_back(record, trace); /* as after a failed submission */
    kelp_trace_stamp(record, "STAMP");
    kelp_trace_finish(record, 13, "it failed");
    kelp_trace_record_release(record);
}

static void custom_activities_begin_and_end_spans(void **state) {
    (void)state;
    static const char *const activities[] = {"EVENT", "A_START", "B_START", "INNER",   "A_END",
                                             "A_END", "_START",  "_END",    "C_START", NULL};
    static const struct {
        const char *name;
        size_t events;
        int parent;
    } expected[] = {{"B", 2, 1}, {"A", 2, 3}, {"C", 1, 3}, {"InferRequest", 5, -1}};
    collector c;
    kelp_tracing *tracing;
    collector_start(&c);
    kelp_otlp_options options = options_for(c.url);
    assert_null(create(kelp_allocator_system(), &options, &tracing));
    trace_one(tracing, activities);
    kelp_tracing_destroy(tracing);
    collector_stop(&c);
    assert_int_equal(c.count, 1);
    assert_int_equal(spans_in(&c, 0), 4);
    for (size_t i = 0; i < 4; i++) {
        kelp_str span = span_of(&c, 0, i);
        assert_text(field(span, 5, 0).bytes, expected[i].name);
        assert_text(field(span, 3, 0).bytes, "a=1");
        assert_int_equal(kelp_protobuf_count(span, 11), expected[i].events);
        if (expected[i].parent >= 0)
            assert_memory_equal(field(span, 4, 0).bytes.data,
                                field(span_of(&c, 0, (size_t)expected[i].parent), 2, 0).bytes.data,
                                8);
    }
    assert_text(field(field(span_of(&c, 0, 3), 15, 0).bytes, 2, 0).bytes, "it failed");
    collector_free(&c);
}

static void only_the_first_message_of_a_failure_counts(void **state) {
    (void)state;
    collector c;
    kelp_tracing *tracing;
    const kelp_trace_origin origin = {.model = "m", .method = KELP_STR("POST")};
    size_t messages = 0;
    collector_start(&c);
    kelp_otlp_options options = options_for(c.url);
    assert_null(create(kelp_allocator_system(), &options, &tracing));
    kelp_trace_record *record = kelp_tracing_sample(tracing, &origin);
    kelp_trace_finish(record, 499, "the client left");
    kelp_trace_finish(record, 499, "cancelled");
    kelp_trace_finish(record, 500, "failed");
    kelp_trace_record_release(record);
    kelp_tracing_destroy(tracing);
    collector_stop(&c);
    kelp_str span = span_of(&c, 0, 0);
    for (size_t i = 0; i < kelp_protobuf_count(span, 9); i++) {
        kelp_str attribute = field(span, 9, i).bytes;
        if (!kelp_str_is(field(attribute, 1, 0).bytes, "error.message"))
            continue;
        assert_text(field(field(attribute, 2, 0).bytes, 1, 0).bytes, "the client left");
        messages++;
    }
    assert_int_equal(messages, 1);
    assert_int_equal(kelp_protobuf_count(span, 15), 0); /* the status */
    collector_free(&c);
}

static void settings_reject_what_the_mode_lacks(void **state) {
    (void)state;
    kelp_tracing *tracing;
    kelp_otlp_options options = options_for("http://127.0.0.1:1/");
    kelp_str tensors = KELP_STR("TENSORS"), zero = KELP_STR("0");
    const kelp_trace_change level = {KELP_STR("trace_level"), false, &tensors, 1};
    const kelp_trace_change rate = {KELP_STR("trace_rate"), false, &zero, 1};
    assert_null(create(kelp_allocator_system(), &options, &tracing));
    kelp_status *status = kelp_tracing_update(tracing, "", &level, 1);
    assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
    kelp_status_free(status);
    assert_null(kelp_tracing_update(tracing, "", &rate, 1));
    kelp_tracing_destroy(tracing);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    static const char *const activities[] = {"A_START", "EVENT", NULL};
    kelp_otlp_options options = options_for("http://127.0.0.1:1/");
    options.client.gzip = true;
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        kelp_tracing *tracing = NULL;
        test_failing_init(&memory, n);
        kelp_status *status = create(test_failing_allocator(&memory), &options, &tracing);
        if (status == NULL)
            trace_one(tracing, activities);
        kelp_tracing_destroy(tracing);
        test_failing_check(&memory);
        bool failed = memory.failed;
        test_failing_deinit(&memory);
        kelp_status_free(status); /* a trace that has no memory is dropped */
        if (!failed)
            break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_has_the_fields_of_otlp),
        cmocka_unit_test(a_response_may_reject_spans),
        cmocka_unit_test(complete_batches_are_sent_at_once_and_the_rest_at_the_stop),
        cmocka_unit_test(a_full_queue_drops_spans),
        cmocka_unit_test(threads_export_at_the_same_time),
        cmocka_unit_test(custom_activities_begin_and_end_spans),
        cmocka_unit_test(only_the_first_message_of_a_failure_counts),
        cmocka_unit_test(settings_reject_what_the_mode_lacks),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
