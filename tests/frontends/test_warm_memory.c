/* SPDX-License-Identifier: Apache-2.0 */
/* A warm server allocates nothing for an inference over HTTP or gRPC. The client writes requests
 * and frames of HTTP/2 without a library, because it must not allocate either. */
#include "frontends/common/services.h"
#include "frontends/grpc/service.h"
#include "frontends/http/server.h"
#include "frontends/v2/service.h"
#include "server/support.h"
#include "support/count_malloc.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define FRAME_HEAD_BYTES 9
#define HEADERS 1
#define SETTINGS 4
#define END_STREAM 1
#define END_HEADERS 4
#define ACK 1
#define WARM_CALLS 300
#define COUNTED_CALLS 300
#define SECOND_NS UINT64_C(1000000000)

/* A connection, and the next stream. */
typedef struct peer {
    int fd;
    uint32_t stream;
    size_t message_bytes; /* of the latest response, without prefixes */
} peer;

static kelp_http_server *start(TRITONSERVER_Server *core, kelp_workers *loaders,
                               kelp_request_log *log) {
    kelp_grpc_options grpc = {.loaders = loaders};
    kelp_v2_options v2 = {.loaders = loaders};
    kelp_http_handler *handlers[2];
    assert_null(kelp_grpc_create(core, &grpc, &handlers[0]));
    assert_null(kelp_v2_create(core, &v2, &handlers[1]));
    kelp_http_endpoint endpoint = {.address = "127.0.0.1",
                                   .services = KELP_SERVICE_GRPC | KELP_SERVICE_HTTP};
    kelp_http_server_options options = {
        .endpoints = &endpoint, .endpoint_count = 1, .threads = 1, .request_log = log};
    kelp_http_server *server;
    assert_null(kelp_http_server_create(handlers, 2, &options, &server));
    assert_null(kelp_http_server_start(server));
    return server;
}

/* ---- frames ---- */

static size_t put_frame(unsigned char *out, size_t length, int type, int flags, uint32_t stream) {
    const unsigned char head[FRAME_HEAD_BYTES] = {
        (unsigned char)(length >> 16), (unsigned char)(length >> 8), (unsigned char)length,
        (unsigned char)type,           (unsigned char)flags,         (unsigned char)(stream >> 24),
        (unsigned char)(stream >> 16), (unsigned char)(stream >> 8), (unsigned char)stream};
    memcpy(out, head, sizeof head);
    return sizeof head;
}

/* Appends a header as a literal that is not indexed. */
static size_t put_header(unsigned char *out, const char *name, const char *value) {
    size_t n = 0;
    out[n++] = 0;
    out[n++] = (unsigned char)strlen(name);
    memcpy(out + n, name, strlen(name));
    n += strlen(name);
    out[n++] = (unsigned char)strlen(value);
    memcpy(out + n, value, strlen(value));
    return n + strlen(value);
}

static void send_bytes(const peer *p, const void *bytes, size_t length) {
    assert_int_equal(send(p->fd, bytes, length, MSG_NOSIGNAL), (ssize_t)length);
}

static void receive(const peer *p, unsigned char *out, size_t length) {
    for (size_t at = 0; at < length;) {
        ssize_t n = recv(p->fd, out + at, length - at, 0);
        assert_true(n > 0);
        at += (size_t)n;
    }
}

/* Receives frames until the stream ends. */
static void receive_response(peer *p, uint32_t stream) {
    unsigned char frame[16384];
    p->message_bytes = 0;
    for (;;) {
        receive(p, frame, FRAME_HEAD_BYTES);
        size_t length = (size_t)frame[0] << 16 | (size_t)frame[1] << 8 | frame[2];
        int type = frame[3], flags = frame[4];
        uint32_t id = (uint32_t)frame[7] << 8 | frame[8];
        assert_true(length <= sizeof frame);
        receive(p, frame, length);
        assert_true(type <= HEADERS || id == 0); /* no RST_STREAM */
        if (type == 0)
            p->message_bytes += length - 5;
        if (id == stream && type <= HEADERS && (flags & END_STREAM) != 0)
            return;
    }
}

static peer connect_to(const kelp_http_server *server) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(kelp_http_server_port(server, 0)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    peer p = {.fd = socket(AF_INET, SOCK_STREAM, 0), .stream = 1};
    struct timeval patience = {.tv_sec = 60};
    setsockopt(p.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(p.fd, (struct sockaddr *)&address, sizeof address), 0);
    return p;
}

static peer connect_to_grpc(const kelp_http_server *server) {
    peer p = connect_to(server);
    unsigned char frames[2 * FRAME_HEAD_BYTES];
    size_t n = put_frame(frames, 0, SETTINGS, 0, 0);
    n += put_frame(frames + n, 0, SETTINGS, ACK, 0);
    send_bytes(&p, PREFACE, sizeof(PREFACE) - 1);
    send_bytes(&p, frames, n);
    return p;
}

/* ---- calls ---- */

static size_t put_head(unsigned char *out, const char *path, uint32_t stream) {
    size_t n = FRAME_HEAD_BYTES;
    n += put_header(out + n, ":method", "POST");
    n += put_header(out + n, ":scheme", "http");
    n += put_header(out + n, ":path", path);
    n += put_header(out + n, ":authority", "localhost");
    n += put_header(out + n, "content-type", "application/grpc");
    n += put_header(out + n, "te", "trailers");
    put_frame(out, n - FRAME_HEAD_BYTES, HEADERS, END_HEADERS, stream);
    return n;
}

/* A ModelInferRequest of the model identity with INPUT0 INT32 [4]. */
static size_t put_request(unsigned char *out) {
    static const unsigned char message[] = {
        0x0a, 8,  'i',  'd', 'e', 'n', 't', 'i', 't', 'y',            /* model_name */
        0x1a, 2,  'r',  '1',                                          /* id */
        0x2a, 18, 0x0a, 6,   'I', 'N', 'P', 'U', 'T', '0',            /* inputs: name */
        0x12, 5,  'I',  'N', 'T', '3', '2',                           /* datatype */
        0x1a, 1,  4,                                                  /* shape, packed */
        0x32, 9,  0x0a, 7,   'O', 'U', 'T', 'P', 'U', 'T', '0',       /* outputs */
        0x3a, 16, 1,    0,   0,   0,   2,   0,   0,   0,   3,   0, 0, /* raw_input_contents */
        0,    4,  0,    0,   0};
    memset(out, 0, 5);
    out[4] = sizeof message;
    memcpy(out + 5, message, sizeof message);
    return sizeof message + 5;
}

static void infer_over_grpc(peer *p) {
    unsigned char frames[1024];
    size_t n = put_head(frames, "/inference.GRPCInferenceService/ModelInfer", p->stream);
    size_t length = put_request(frames + n + FRAME_HEAD_BYTES);
    put_frame(frames + n, length, 0, END_STREAM, p->stream);
    send_bytes(p, frames, n + FRAME_HEAD_BYTES + length);
    receive_response(p, p->stream);
    assert_true(p->message_bytes > 16);
    p->stream += 2;
}

/* Receives a response of HTTP/1.1 byte by byte, and checks its status and the end of its body. */
static void receive_http(const peer *p, const char *body_end, size_t end_bytes) {
    unsigned char bytes[1024] = {0};
    size_t length = 0;
    const char *head_end = NULL;
    while (head_end == NULL) {
        assert_true(length < sizeof bytes - 1);
        receive(p, bytes + length++, 1);
        head_end = strstr((const char *)bytes, "\r\n\r\n");
    }
    assert_memory_equal(bytes, "HTTP/1.1 200", 12);
    const char *field = strstr((const char *)bytes, "\r\nContent-Length: ");
    assert_non_null(field);
    size_t body_bytes = strtoul(strchr(field, ' ') + 1, NULL, 10);
    assert_in_range(body_bytes, end_bytes, sizeof bytes);
    receive(p, bytes, body_bytes);
    assert_memory_equal(bytes + body_bytes - end_bytes, body_end, end_bytes);
}

/* Sends INPUT0 INT32 [4] as binary data. */
static void infer_over_http(peer *p) {
    static const char text[] =
        "POST /v2/models/identity/infer HTTP/1.1\r\nHost: localhost\r\n"
        "Inference-Header-Content-Length: 163\r\nContent-Length: 179\r\n\r\n"
        "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":[4],"
        "\"parameters\":{\"binary_data_size\":16}}],"
        "\"outputs\":[{\"name\":\"OUTPUT0\",\"parameters\":{\"binary_data\":true}}]}"
        "abcdefghijklmnop";
    send_bytes(p, text, sizeof text - 1);
    receive_http(p, "abcdefghijklmnop", 16);
}

static void check_inference(peer (*open)(const kelp_http_server *server), void (*infer)(peer *p),
                            kelp_request_log *log) {
    repo r;
    repo_make(&r);
    repo_model(&r, "identity",
               "backend: \"identity\"\n"
               "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "instance_group [ { kind: KIND_CPU count: 1 } ]\n");
    TRITONSERVER_Server *core =
        server_start(&r, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_NONE});
    kelp_workers *loaders;
    assert_null(kelp_workers_create(kelp_allocator_system(), 1, &loaders));
    kelp_http_server *server = start(core, loaders, log);
    peer p = open(server);
    for (int i = 0; i < WARM_CALLS; i++)
        infer(&p);
    uint64_t before = test_allocations();
    for (int i = 0; i < COUNTED_CALLS; i++)
        infer(&p);
    assert_int_equal(test_allocations() - before, 0);
    close(p.fd);
    assert_null(kelp_http_server_stop(server, 10 * SECOND_NS));
    server_end(core);
    kelp_http_server_destroy(server);
    kelp_workers_destroy(loaders);
    repo_remove(&r);
}

static void a_warm_inference_over_http_does_not_allocate(void **state) {
    (void)state;
    check_inference(connect_to, infer_over_http, NULL);
}

static void a_warm_inference_over_grpc_does_not_allocate(void **state) {
    (void)state;
    check_inference(connect_to_grpc, infer_over_grpc, NULL);
}

static void the_access_log_does_not_allocate(void **state) {
    (void)state;
    const kelp_request_log_options options = {.path = "/dev/null"};
    kelp_request_log *log;
    assert_null(kelp_request_log_create(&options, &log));
    check_inference(connect_to, infer_over_http, log);
    check_inference(connect_to_grpc, infer_over_grpc, log);
    kelp_request_log_destroy(log);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_warm_inference_over_http_does_not_allocate),
        cmocka_unit_test(a_warm_inference_over_grpc_does_not_allocate),
        cmocka_unit_test(the_access_log_does_not_allocate)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
