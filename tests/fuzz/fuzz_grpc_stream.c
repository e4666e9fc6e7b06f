/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes calls of gRPC on a running server with a model. The first byte selects the method, the
 * second one the coding and the end of the call, the third one the size of DATA frames; the others
 * are the body. Every complete call has a response. */
#include "server/support.h"

#include "base/assert.h"
#include "base/clock.h"
#include "frontends/common/services.h"
#include "frontends/common/workers.h"
#include "frontends/grpc/service.h"
#include "frontends/http/server.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define HEAD_BYTES 9
#define PATIENCE_MS 60000
#define MAX_BODY_BYTES ((size_t)1 << 16)

enum { DATA, HEADERS, RST_STREAM = 3, SETTINGS, GOAWAY = 7 };
enum { END_STREAM = 1, END_HEADERS = 4 };

static const char *const paths[] = {
    "/inference.GRPCInferenceService/ModelStreamInfer",
    "/inference.GRPCInferenceService/ModelInfer",
    "/inference.GRPCInferenceService/ServerLive",
    "/inference.GRPCInferenceService/ModelMetadata",
    "/inference.GRPCInferenceService/ModelConfig",
    "/inference.GRPCInferenceService/ModelStatistics",
    "/inference.GRPCInferenceService/RepositoryIndex",
    "/inference.GRPCInferenceService/TraceSetting",
    "/inference.GRPCInferenceService/SystemSharedMemoryRegister",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.health.v1.Health/Check",
};
static const char *const codings[] = {"identity", "gzip", "deflate", "other"};

static repo repository;
static TRITONSERVER_Server *core;
static kelp_workers *loaders;
static kelp_http_server *server;
static char path[64]; /* of its socket */

static void stop(void) {
    kelp_status_free(kelp_http_server_stop(server, UINT64_C(10000000000)));
    server_end(core);
    kelp_http_server_destroy(server);
    kelp_workers_destroy(loaders);
    repo_remove(&repository);
}

static void start(void) {
    char text[sizeof path + 8];
    repo_make(&repository);
    repo_model(&repository, "identity",
               "backend: \"identity\"\n"
               "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "instance_group [ { kind: KIND_CPU count: 1 } ]\n");
    core = server_start(&repository, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_NONE});
    kelp_status *status = kelp_workers_create(kelp_allocator_system(), 1, &loaders);
    kelp_grpc_options grpc = {.loaders = loaders, .max_message_bytes = 1 << 20};
    kelp_http_handler *handler;
    if (status == NULL)
        status = kelp_grpc_create(core, &grpc, &handler);
    if (status != NULL)
        abort();
    snprintf(path, sizeof path, P_tmpdir "/kelp-fuzz-grpc-%d", (int)getpid());
    snprintf(text, sizeof text, "unix:%s", path);
    kelp_http_endpoint endpoint = {.address = text, .services = KELP_SERVICE_GRPC};
    kelp_http_server_options options = {
        .endpoints = &endpoint, .endpoint_count = 1, .threads = 1, .max_body_bytes = 8 << 20};
    status = kelp_http_server_create(&handler, 1, &options, &server);
    if (status == NULL)
        status = kelp_http_server_start(server);
    if (status != NULL)
        abort();
    atexit(stop);
}

/* ---- frames ---- */

typedef struct output {
    unsigned char bytes[MAX_BODY_BYTES * 12];
    size_t length;
} output;

static void put(output *out, const void *bytes, size_t length) {
    KELP_ASSERT(out->length + length <= sizeof out->bytes);
    if (length > 0)
        memcpy(out->bytes + out->length, bytes, length);
    out->length += length;
}

static void put_frame(output *out, int type, int flags, const void *bytes, size_t length) {
    const unsigned char stream = type == SETTINGS ? 0 : 1;
    const unsigned char head[HEAD_BYTES] = {0,
                                            (unsigned char)(length >> 8),
                                            (unsigned char)length,
                                            (unsigned char)type,
                                            (unsigned char)flags,
                                            0,
                                            0,
                                            0,
                                            stream};
    put(out, head, sizeof head);
    put(out, bytes, length);
}

/* Appends a header as a literal that is not indexed. */
static void put_header(output *out, const char *name, const char *value) {
    const unsigned char name_head[] = {0, (unsigned char)strlen(name)};
    const unsigned char value_head = (unsigned char)strlen(value);
    put(out, name_head, sizeof name_head);
    put(out, name, strlen(name));
    put(out, &value_head, 1);
    put(out, value, strlen(value));
}

static void put_call(output *out, unsigned method, unsigned coding) {
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    static output block;
    block.length = 0;
    put(out, preface, sizeof preface - 1);
    put_frame(out, SETTINGS, 0, NULL, 0);
    put_header(&block, ":method", "POST");
    put_header(&block, ":scheme", "http");
    put_header(&block, ":authority", "localhost");
    put_header(&block, ":path", paths[method % (sizeof paths / sizeof *paths)]);
    put_header(&block, "content-type", "application/grpc");
    put_header(&block, "te", "trailers");
    put_header(&block, "grpc-encoding", codings[coding % 4]);
    put_frame(out, HEADERS, END_HEADERS, block.bytes, block.length);
}

static void send_all(int fd, const output *out) {
    for (size_t at = 0; at < out->length;) {
        ssize_t n = send(fd, out->bytes + at, out->length - at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* the server has closed the connection */
        at += (size_t)n;
    }
}

/* Reads until the stream or the connection ends. */
static void await_end(int fd) {
    static unsigned char bytes[1 << 18];
    size_t length = 0;
    for (;;) {
        size_t at = 0, size;
        for (; length - at >= HEAD_BYTES; at += HEAD_BYTES + size) {
            const unsigned char *head = bytes + at;
            size = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
            if (length - at < HEAD_BYTES + size)
                break;
            bool ends = (head[3] == DATA || head[3] == HEADERS) && (head[4] & END_STREAM) != 0;
            if (ends || head[3] == RST_STREAM || head[3] == GOAWAY)
                return;
        }
        memmove(bytes, bytes + at, length - at);
        length -= at;
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        int count = poll(&poll_fd, 1, PATIENCE_MS);
        if (count < 0 && errno == EINTR) /* a signal of libFuzzer */
            continue;
        if (count != 1)
            abort(); /* no response */
        ssize_t n = recv(fd, bytes + length, sizeof bytes - length, 0);
        if (n <= 0)
            return;
        length += (size_t)n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static output out;
    if (size < 3 || size > MAX_BODY_BYTES)
        return 0;
    if (server == NULL)
        start();
    unsigned end = data[1] / 4 % 8; /* 0: the call is incomplete; 1: reset; others: complete */
    size_t piece = data[2] + (size_t)1;
    out.length = 0;
    put_call(&out, data[0], data[1]);
    for (size_t at = 3; at < size; at += piece) {
        size_t n = size - at < piece ? size - at : piece;
        put_frame(&out, DATA, 0, data + at, n);
    }
    if (end == 1)
        put_frame(&out, RST_STREAM, 0, "\0\0\0\10", 4);
    else if (end > 1)
        put_frame(&out, DATA, END_STREAM, NULL, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, sizeof path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        abort();
    send_all(fd, &out);
    if (end > 1)
        await_end(fd);
    close(fd);
    return 0;
}
