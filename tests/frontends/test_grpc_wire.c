/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that a client library of gRPC does not send. */
#include "base/clock.h"
#include "frontends/common/services.h"
#include "frontends/common/workers.h"
#include "frontends/grpc/service.h"
#include "frontends/http/server.h"
#include "server/support.h"

#include "http2_client.h"

#include <pthread.h>
#include <unistd.h>

#define INFER "/inference.GRPCInferenceService/ModelInfer"
#define STREAM "/inference.GRPCInferenceService/ModelStreamInfer"
#define SECOND_NS UINT64_C(1000000000)
#define PREFIX_BYTES 5
#define MAX_BODY_BYTES 65536

/* A server, and a client of it. */
typedef struct fixture {
    repo repo;
    TRITONSERVER_Server *core;
    kelp_workers *loaders;
    kelp_http_server *server;
    http2_client client;
    uint64_t stop_ns; /* the duration of a stop */
} fixture;

static void open_world(fixture *w, uint64_t max_body_bytes) {
    memset(w, 0, sizeof *w);
    repo_make(&w->repo);
    repo_model(&w->repo, "identity",
               "backend: \"identity\"\n"
               "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "instance_group [ { kind: KIND_CPU count: 1 } ]\n");
    repo_model(&w->repo, "slow",
               "backend: \"identity\"\n"
               "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "parameters { key: \"execute_delay_ms\" value { string_value: \"1000\" } }\n"
               "dynamic_batching { default_queue_policy { max_queue_size: 1 } }\n"
               "instance_group [ { kind: KIND_CPU count: 1 } ]\n");
    w->core = server_start(&w->repo, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_NONE});
    assert_null(kelp_workers_create(kelp_allocator_system(), 1, &w->loaders));
    kelp_grpc_options grpc = {.loaders = w->loaders};
    kelp_http_handler *handler;
    assert_null(kelp_grpc_create(w->core, &grpc, &handler));
    kelp_http_endpoint endpoint = {.address = "127.0.0.1", .services = KELP_SERVICE_GRPC};
    kelp_http_server_options options = {.endpoints = &endpoint,
                                        .endpoint_count = 1,
                                        .threads = 1,
                                        .max_body_bytes = max_body_bytes};
    assert_null(kelp_http_server_create(&handler, 1, &options, &w->server));
    assert_null(kelp_http_server_start(w->server));
    http2_client_connect(&w->client, kelp_http_server_port(w->server, 0));
}

static void close_world(fixture *w) {
    http2_client_close(&w->client);
    assert_null(kelp_http_server_stop(w->server, 10 * SECOND_NS));
    server_end(w->core);
    kelp_http_server_destroy(w->server);
    kelp_workers_destroy(w->loaders);
    repo_remove(&w->repo);
}

/* A message with INPUT0 INT32 [4], and its prefix. */
static const unsigned char request[] = {
    0,    0,  0,    0,   56,                                           /* prefix */
    0x0a, 8,  'i',  'd', 'e',  'n', 't', 'i', 't', 'y',                /* model_name */
    0x2a, 18, 0x0a, 6,   'I',  'N', 'P', 'U', 'T', '0',                /* inputs: name */
    0x12, 5,  'I',  'N', 'T',  '3', '2',                               /* datatype */
    0x1a, 1,  4,                                                       /* shape, packed */
    0x3a, 16, 1,    0,   0,    0,   2,   0,   0,   0,   3,   0,  0, 0, /* raw_input_contents */
    4,    0,  0,    0,   0x1a, 6,   'n', 'u', 'm', 'b', 'e', 'r'};

static void expect(fixture *w, const char *path, const void *bytes, size_t length,
                   const char *code) {
    char expected[32];
    http2_reply *reply = http2_client_call(&w->client, path, NULL, bytes, length);
    http2_client_wait(&w->client, reply);
    snprintf(expected, sizeof expected, "grpc-status: %s\n", code);
    if (strstr(reply->trailers, expected) == NULL && strstr(reply->head, expected) == NULL)
        fail_msg("%s, %zu bytes: expected %s, found %s%s", path, length, expected, reply->head,
                 reply->trailers);
}

static void an_incomplete_message_is_an_error(void **state) {
    (void)state;
    fixture w;
    open_world(&w, 0);
    for (size_t length = 0; length < sizeof request; length++)
        expect(&w, INFER, request, length, "13");
    expect(&w, INFER, request, sizeof request, "0");
    expect(&w, STREAM, request, 0, "0");
    for (size_t length = 1; length < sizeof request; length++)
        expect(&w, STREAM, request, length, "13");
    unsigned char two[sizeof(request) + PREFIX_BYTES];
    memcpy(two, request, sizeof request);
    memcpy(two + sizeof request, request, PREFIX_BYTES);
    for (size_t more = 1; more <= PREFIX_BYTES; more++)
        expect(&w, STREAM, two, sizeof(request) + more, "13");
    expect(&w, STREAM, request, sizeof request, "0");
    close_world(&w);
}

/* Messages count as bodies: together they use at most the memory that is configured. */
static void messages_are_limited_together(void **state) {
    (void)state;
    static unsigned char large[2 * MAX_BODY_BYTES];
    fixture w;
    open_world(&w, MAX_BODY_BYTES);
    large[2] = sizeof(large) >> 16;
    large[3] = (sizeof(large) >> 8) & 255;
    expect(&w, INFER, large, sizeof large, "8");
    expect(&w, INFER, request, sizeof request, "0");
    close_world(&w);
}

/* ---- stopping ---- */

static void *stop_server(void *userp) {
    fixture *w = userp;
    uint64_t begin_ns = kelp_now_ns();
    assert_null(kelp_http_server_stop(w->server, 60 * SECOND_NS));
    w->stop_ns = kelp_now_ns() - begin_ns;
    return NULL;
}

/* Calls without a complete message have a second when the server stops. */
static void incomplete_calls_end_when_the_server_stops(void **state) {
    (void)state;
    static const char reflection[] = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    static const struct {
        const char *path;
        size_t length; /* of the message */
    } calls[] = {{INFER, 0}, {INFER, 3}, {INFER, 20}, {STREAM, 20}, {reflection, 0}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        fixture w;
        pthread_t id;
        open_world(&w, 0);
        http2_reply *reply =
            http2_client_call(&w.client, calls[i].path, NULL, request, calls[i].length);
        reply->body_ended = false;
        http2_client_flush(&w.client);
        usleep(50000);
        assert_int_equal(pthread_create(&id, NULL, stop_server, &w), 0);
        http2_client_wait(&w.client, reply);
        assert_non_null(strstr(reply->head, "grpc-status: 14\n"));
        pthread_join(id, NULL);
        assert_in_range(w.stop_ns, 0, 10 * SECOND_NS);
        close_world(&w);
    }
}

/* ---- compression ---- */

/* Appends a compressed message with its prefix: bytes, then values of an unknown field, which are
 * large also when they are compressed, then zeros. */
static void put_message(kelp_buf *out, const void *bytes, size_t length, size_t fields,
                        size_t zero_count) {
    static const char zeros[65536];
    kelp_buf packed;
    kelp_http_encoder *encoder;
    kelp_buf_init(&packed, kelp_allocator_system());
    assert_null(
        kelp_http_encoder_create(kelp_allocator_system(), KELP_HTTP_GZIP, &packed, &encoder));
    assert_null(kelp_http_encoder_put(encoder, bytes, length));
    uint32_t random = 1;
    for (size_t i = 0; i < fields; i++) {
        random = random * 1664525 + 1013904223;
        const char field[] = {0x78, (char)(random >> 25)};
        assert_null(kelp_http_encoder_put(encoder, field, sizeof field));
    }
    for (size_t at = 0; at < zero_count; at += sizeof zeros)
        assert_null(kelp_http_encoder_put(encoder, zeros, sizeof zeros));
    assert_null(kelp_http_encoder_end(encoder));
    kelp_http_encoder_destroy(encoder);
    const char prefix[PREFIX_BYTES] = {1, (char)(packed.length >> 24), (char)(packed.length >> 16),
                                       (char)(packed.length >> 8), (char)packed.length};
    kelp_buf_append(out, prefix, sizeof prefix);
    kelp_buf_append(out, packed.data, packed.length);
    kelp_buf_deinit(&packed);
}

static void put_zeros(kelp_buf *out, size_t count) {
    put_message(out, "", 0, 0, count);
}

static void put_request(kelp_buf *out) {
    put_message(out, request + PREFIX_BYTES, sizeof(request) - PREFIX_BYTES, 8192, 0);
}

static void decompression_does_not_delay_other_calls(void **state) {
    (void)state;
    fixture w;
    kelp_buf packed;
    kelp_buf_init(&packed, kelp_allocator_system());
    put_zeros(&packed, (size_t)128 << 20);
    open_world(&w, 0);
    http2_reply *slow = http2_client_call(&w.client, INFER, "gzip", packed.data, packed.length);
    http2_client_flush(&w.client);
    while (slow->body_sent < slow->body_bytes)
        assert_true(http2_client_step(&w.client));
    expect(&w, INFER, request, sizeof request, "0");
    assert_false(slow->closed);
    http2_client_wait(&w.client, slow);
    assert_non_null(strstr(slow->head, "grpc-status: 13\n")); /* zeros are no request */
    /* The client leaves during the decompression. */
    slow = http2_client_call(&w.client, STREAM, "gzip", packed.data, packed.length);
    http2_client_flush(&w.client);
    while (slow->body_sent < slow->body_bytes)
        assert_true(http2_client_step(&w.client));
    close_world(&w);
    kelp_buf_deinit(&packed);
}

/* The limit of memory counts decompressed bytes. */
static void decompressed_messages_are_limited_together(void **state) {
    (void)state;
    static const size_t lengths[] = {65536, (size_t)4 << 20}; /* on this thread, and on another */
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        fixture w;
        kelp_buf packed;
        kelp_buf_init(&packed, kelp_allocator_system());
        put_zeros(&packed, lengths[i]);
        open_world(&w, 32768);
        http2_reply *reply =
            http2_client_call(&w.client, INFER, "gzip", packed.data, packed.length);
        http2_client_wait(&w.client, reply);
        assert_non_null(strstr(reply->head, "grpc-status: 8\n"));
        expect(&w, INFER, request, sizeof request, "0");
        close_world(&w);
        kelp_buf_deinit(&packed);
    }
}

/* A request to a full queue is rejected before it is decompressed, or before its contents are
 * converted: they would be invalid. */
static void requests_to_a_full_queue_are_rejected_before_decoding(void **state) {
    (void)state;
    static const unsigned char model[] = {0x0a, 4, 's', 'l', 'o', 'w'};
    fixture w;
    open_world(&w, 0);
    kelp_buf valid, packed, plain;
    kelp_buf_init(&valid, kelp_allocator_system());
    kelp_buf_init(&packed, kelp_allocator_system());
    kelp_buf_init(&plain, kelp_allocator_system());
    kelp_buf_append(&valid, "\0\0\0\0\x34", PREFIX_BYTES);
    kelp_buf_append(&valid, (const char *)model, sizeof model);
    kelp_buf_append(&valid, (const char *)request + 15, sizeof(request) - 15);
    put_message(&packed, model, sizeof model, 8192, 0);
    packed.length -= 16; /* the end is missing */
    packed.data[3] = (char)((packed.length - PREFIX_BYTES) >> 8);
    packed.data[4] = (char)(packed.length - PREFIX_BYTES);
    kelp_buf_append(&plain, "\0\0\0\x20\x06", PREFIX_BYTES);
    kelp_buf_append(&plain, (const char *)model, sizeof model);
    for (int i = 0; i < 4096; i++)
        kelp_buf_append(&plain, "\x22\0", 2); /* parameters without a name */
    http2_reply *running[2];
    for (int i = 0; i < 2; i++) { /* one is executed, and one waits */
        running[i] = http2_client_call(&w.client, INFER, NULL, valid.data, valid.length);
        http2_client_flush(&w.client);
        usleep(200000);
    }
    http2_reply *reply = http2_client_call(&w.client, INFER, "gzip", packed.data, packed.length);
    http2_client_wait(&w.client, reply);
    assert_non_null(strstr(reply->head, "grpc-status: 14\n"));
    assert_non_null(strstr(reply->head, "Exceeds maximum queue size"));
    reply = http2_client_call(&w.client, INFER, NULL, plain.data, plain.length);
    http2_client_wait(&w.client, reply);
    assert_non_null(strstr(reply->head, "grpc-status: 14\n"));
    assert_false(running[1]->closed);
    for (int i = 0; i < 2; i++) {
        http2_client_wait(&w.client, running[i]);
        assert_non_null(strstr(running[i]->trailers, "grpc-status: 0\n"));
    }
    reply = http2_client_call(&w.client, INFER, "gzip", packed.data, packed.length);
    http2_client_wait(&w.client, reply);
    assert_non_null(strstr(reply->head, "it ends early"));
    close_world(&w);
    kelp_buf_deinit(&valid);
    kelp_buf_deinit(&packed);
    kelp_buf_deinit(&plain);
}

static void compressed_messages_keep_their_order(void **state) {
    (void)state;
    fixture w;
    kelp_buf calls;
    kelp_buf_init(&calls, kelp_allocator_system());
    for (int i = 0; i < 20; i++) {
        put_request(&calls);
        assert_true(i > 0 || calls.length > 4096); /* a separate thread decompresses it */
        kelp_buf_append(&calls, (const char *)request, sizeof request);
    }
    open_world(&w, 0);
    http2_reply *reply = http2_client_call(&w.client, STREAM, "gzip", calls.data, calls.length);
    http2_client_wait(&w.client, reply);
    assert_non_null(strstr(reply->trailers, "grpc-status: 0\n"));
    size_t messages = 0;
    for (size_t at = 0; at < reply->length; messages++)
        at += PREFIX_BYTES + (unsigned char)reply->data[at + 4] +
              (size_t)(unsigned char)reply->data[at + 3] * 256;
    assert_int_equal(messages, 40);
    kelp_buf_clear(&calls);
    put_request(&calls);
    reply = http2_client_call(&w.client, INFER, "gzip", calls.data, calls.length);
    http2_client_wait(&w.client, reply);
    assert_non_null(strstr(reply->trailers, "grpc-status: 0\n"));
    close_world(&w);
    kelp_buf_deinit(&calls);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decompression_does_not_delay_other_calls),
        cmocka_unit_test(compressed_messages_keep_their_order),
        cmocka_unit_test(an_incomplete_message_is_an_error),
        cmocka_unit_test(messages_are_limited_together),
        cmocka_unit_test(requests_to_a_full_queue_are_rejected_before_decoding),
        cmocka_unit_test(decompressed_messages_are_limited_together),
        cmocka_unit_test(incomplete_calls_end_when_the_server_stops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
