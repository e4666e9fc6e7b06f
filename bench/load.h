/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the load generator: load.c measures, load_http1.c and load_http2.c send requests. */
#ifndef KELP_BENCH_LOAD_H_
#define KELP_BENCH_LOAD_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A connection with at most one request. */
typedef struct load_connection {
    int fd;
    unsigned index;
    bool busy, failed;
    uint64_t arrival_ns;   /* of its request */
    size_t response_bytes; /* of the response's body that were read */
    void *state;           /* of the protocol */
} load_connection;

/* A protocol. */
typedef struct load_protocol {
    const char *name;
    /* Builds the request that all connections send. */
    void (*prepare)(const char *path, const char *body, size_t body_bytes, size_t json_bytes);
    /* Creates the state of a connection that is established. */
    void (*open)(load_connection *connection);
    /* Starts a request. */
    void (*begin)(load_connection *connection);
    void (*on_readable)(load_connection *connection);
    void (*on_writable)(load_connection *connection);
} load_protocol;

extern const load_protocol load_http1, load_grpc, load_grpc_stream;

/* Prints the error of the last system call, or a text, and exits. */
_Noreturn void load_die(const char *what);
_Noreturn void load_fail(const char *text);
void *load_alloc(size_t size);
/* Polls for bytes, and for space to write if `writable`. */
void load_watch(load_connection *connection, bool writable);
/* Compares the next bytes of a response with the first response if this is requested. */
void load_receive(load_connection *connection, const char *bytes, size_t length);
/* Ends a request: its response is complete. */
void load_finish(load_connection *connection);

#endif
