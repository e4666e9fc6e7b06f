/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/remote.h: parts of a model that run in another process.
 *
 * A worker listens on a Unix socket. The provider `remote` takes subgraphs (kelp/opset.h), sends
 * each to the worker as an ONNX model when the engine is made, and then, run by run, its inputs in
 * an envelope (kelp/wire.h), whose answer holds the outputs. Both ends check what arrives: caps,
 * types, budget. A connection serves one subgraph, one run at a time; one that broke is made again
 * by the next run.
 */
#ifndef KELP_REMOTE_H_
#define KELP_REMOTE_H_

#include <kelp/engine.h>
#include <kelp/wire.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- who sends ---- */
typedef struct kelp_remote_options { /* zeroed fields take the defaults */
    uint32_t struct_size;            /* sizeof(kelp_remote_options) */
    const char *name;                /* that engines ask for ["remote"] */
    const char *socket_path;         /* of the worker */
    uint64_t timeout_ns;             /* that an answer may take [60 s] */
    const kelp_wire_caps *caps;      /* of answers [kelp_wire_caps_default] */
    size_t budget_bytes;             /* of answers that are held at once [KELP_BUDGET_BYTES] */
} kelp_remote_options;
/* Registers the provider, which engines must name: "remote,cpu". No connection is made yet. A
 * subgraph that the worker does not cover, or whose inputs pass a cap, goes to the next provider;
 * without a worker making the engine fails (UNAVAILABLE). Runs fail with the worker's code, with
 * UNAVAILABLE when it is gone, DEADLINE_EXCEEDED, or CANCELLED. */
KELP_API kelp_status *kelp_remote_register(kelp_runtime *runtime,
                                           const kelp_remote_options *options) KELP_MUST_USE;
/* Registers one provider for each "remote:PATH" of a list as kelp_engine_options.providers has it
 * ("remote:/run/kelp.sock,cpu"; NULL: none), under that name. INVALID_ARGUMENT for a name of 256
 * bytes or more. */
KELP_API kelp_status *kelp_remote_register_named(kelp_runtime *runtime,
                                                 const char *providers) KELP_MUST_USE;

/* ---- who works ---- */
typedef struct kelp_worker_options { /* zeroed fields take the defaults */
    uint32_t struct_size;            /* sizeof(kelp_worker_options) */
    const char *socket_path;         /* made by it; a socket that nobody listens on is replaced */
    const kelp_wire_caps *caps;      /* of a run's inputs [kelp_wire_caps_default] */
    size_t budget_bytes;             /* of the inputs of all runs under way [KELP_BUDGET_BYTES] */
    size_t graph_bytes;              /* of a subgraph with its weights [1 GiB] */
    uint32_t connections;            /* at once; one more is refused [64] */
    const char *providers; /* who runs the subgraphs here, see kelp_engine_options [NULL] */
} kelp_worker_options;
typedef struct kelp_worker kelp_worker;
/* Listens. Retains the runtime. */
KELP_API kelp_status *kelp_worker_create(kelp_runtime *runtime, const kelp_worker_options *options,
                                         kelp_worker **out) KELP_MUST_USE;
/* Serves until it is stopped; each connection has a thread. One thread calls it, once. */
KELP_API kelp_status *kelp_worker_run(kelp_worker *worker) KELP_MUST_USE;
/* From any thread, and from a signal handler. */
KELP_API void kelp_worker_stop(kelp_worker *worker);
/* It is not running. Removes the socket. */
KELP_API void kelp_worker_destroy(kelp_worker *worker);

#ifdef __cplusplus
}
#endif
#endif
