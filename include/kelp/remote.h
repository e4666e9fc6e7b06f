/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/remote.h: runs subgraphs of a model in another process.
 *
 * A worker listens on a Unix socket or a TCP port. The provider `remote` takes subgraphs
 * (kelp/opset.h). When an engine is created, it sends each subgraph to the worker as an ONNX model;
 * in each inference, it sends the inputs in an envelope (kelp/wire.h) and receives the outputs in
 * another. Both sides check limits, types and budgets of what they receive. A connection serves one
 * subgraph, one inference at a time; a broken connection is reopened by the next inference.
 *
 * Addresses of workers:
 *
 *   HOST:PORT, [IPV6]:PORT   TCP; without a host, ":PORT" is 127.0.0.1
 *   a path with a slash      Unix socket, such as /run/kelp.sock or ./kelp.sock
 *   unix:PATH                Unix socket, any path
 *
 * Security: the protocol has no encryption. A worker runs every model that it receives, and the
 * permissions of a Unix socket or a token are all that limits its clients. A token authenticates
 * clients, but is sent as plain text: over TCP, use a trusted network or a tunnel.
 *
 * Options structs begin with `struct_size`; zeroed fields take the defaults given in [brackets].
 */
#ifndef KELP_REMOTE_H_
#define KELP_REMOTE_H_

#include <kelp/engine.h>
#include <kelp/wire.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Client ---- */

/* Options of a `remote` provider. Strings and structs are copied. */
typedef struct kelp_remote_options {
    uint32_t struct_size; /* sizeof(kelp_remote_options) */
    /* name of the provider, used in kelp_engine_options.providers ["remote"] */
    const char *name;
    const char *address;         /* address of the worker, see above */
    uint64_t timeout_ns;         /* maximum time for a response, in nanoseconds [60 s] */
    uint64_t connect_timeout_ns; /* maximum time to connect by TCP, in nanoseconds [5 s] */
    const kelp_wire_caps *caps;  /* limits of responses [kelp_wire_caps_default] */
    size_t budget_bytes;         /* bytes of responses held at the same time [KELP_BUDGET_BYTES] */
    /* file with the token that the worker expects: 1 to 4096 bytes, without the white space at the
     * end [NULL: none] */
    const char *token_file;
} kelp_remote_options;

/* Registers a `remote` provider that engines must name ("remote,cpu"). Does not connect yet. Not
 * thread-safe: register before creating engines. When an engine is created, a subgraph that the
 * worker does not support or whose inputs exceed a limit is left to the next provider; if no
 * worker listens, creation fails with UNAVAILABLE, and if it rejects the token, with
 * UNAUTHENTICATED. Inferences fail with the worker's code, UNAVAILABLE if the connection broke,
 * DEADLINE_EXCEEDED or CANCELLED; the next inference connects again. Fails with INVALID_ARGUMENT
 * for an invalid address or token. */
KELP_API kelp_status *kelp_remote_register(kelp_runtime *runtime,
                                           const kelp_remote_options *options) KELP_MUST_USE;

/* Registers a provider for each "remote:ADDRESS" in a list like kelp_engine_options.providers,
 * under that name. The environment variable KELP_REMOTE_TOKEN_FILE, if it is not empty, names their
 * token file. NULL registers none. Fails with INVALID_ARGUMENT for a name of 256 bytes or more and
 * for an invalid address. */
KELP_API kelp_status *kelp_remote_register_named(kelp_runtime *runtime,
                                                 const char *providers) KELP_MUST_USE;

/* ---- Worker ---- */

/* Options of a worker. Strings and structs are copied. */
typedef struct kelp_worker_options {
    uint32_t struct_size; /* sizeof(kelp_worker_options) */
    /* address to listen on, see above. A Unix socket is created; a socket on which nobody listens
     * is replaced. Port 0 selects a free port. */
    const char *address;
    /* limits of the inputs of an inference [kelp_wire_caps_default] */
    const kelp_wire_caps *caps;
    /* bytes of the inputs of all inferences in flight [KELP_BUDGET_BYTES] */
    size_t budget_bytes;
    size_t graph_bytes;   /* maximum size of a subgraph with its weights [1 GiB] */
    uint32_t connections; /* maximum number of connections; more are rejected [64] */
    /* providers that run the subgraphs, see kelp_engine_options [NULL] */
    const char *providers;
    /* file with a token that clients must send, as in kelp_remote_options [NULL: any client] */
    const char *token_file;
} kelp_worker_options;

/* A worker. */
typedef struct kelp_worker kelp_worker;

/* Creates a worker and listens. Retains the runtime. Logs a warning if other machines can connect
 * without a token. Fails with INVALID_ARGUMENT for an invalid address or token and UNAVAILABLE if
 * the address cannot be used, for example because another process listens on it. */
KELP_API kelp_status *kelp_worker_create(kelp_runtime *runtime, const kelp_worker_options *options,
                                         kelp_worker **out) KELP_MUST_USE;

/* Returns the address on which the worker listens, with the number of the port, in the form that
 * clients use. Valid until the worker is destroyed. */
KELP_API const char *kelp_worker_address(const kelp_worker *worker);

/* Serves until kelp_worker_stop is called, with one thread per connection. Call once. */
KELP_API kelp_status *kelp_worker_run(kelp_worker *worker) KELP_MUST_USE;

/* Stops kelp_worker_run. Thread-safe and async-signal-safe. */
KELP_API void kelp_worker_stop(kelp_worker *worker);

/* Removes the socket and frees the worker, which must not be running. NULL is allowed. */
KELP_API void kelp_worker_destroy(kelp_worker *worker);

#ifdef __cplusplus
}
#endif
#endif
