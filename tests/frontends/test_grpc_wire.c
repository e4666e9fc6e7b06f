/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that a client library of gRPC does not send. */
#include "frontends/common/services.h"
#include "frontends/common/workers.h"
#include "frontends/grpc/service.h"
#include "frontends/http/server.h"
#include "server/support.h"

#include "http2_client.h"

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
} fixture;

static void open_world(fixture *w, uint64_t max_body_bytes) {
    memset(w, 0, sizeof *w);
    repo_make(&w->repo);
    repo_model(&w->repo, "identity",
               "backend: \"identity\"\n"
               "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_incomplete_message_is_an_error),
                                       cmocka_unit_test(messages_are_limited_together)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
