/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server object: options, pools of requests, the response cache, and the repository of models.
 * It is the root of the server's memory: all its objects inherit its allocator.
 *
 * The server is reference counted. Its handle and each model hold references, so that requests and
 * responses may outlive the handle.
 *
 * Thread-safe, except that kelp_server_stop must be called by one thread at a time.
 */
#ifndef KELP_SERVER_SERVER_H_
#define KELP_SERVER_SERVER_H_

#include "server/repository/repository.h"
#include "server/request/trace.h"

#define KELP_SERVER_VERSION "0.1.0"

/* The state of a server. */
typedef enum kelp_server_state {
    KELP_SERVER_STARTING,
    KELP_SERVER_FAILED, /* could not start, and does not exit on errors: neither live nor ready */
    KELP_SERVER_READY,
    KELP_SERVER_STOPPING,
    KELP_SERVER_STOPPED
} kelp_server_state;

/* A server. TRITONSERVER_Server is a pointer to it. */
typedef struct kelp_server {
    kelp_model_host host;
    atomic_uint refs;
    _Atomic int state; /* kelp_server_state */
    kelp_repository repository;
} kelp_server;

/* Creates a server and loads its startup models. `options` are copied. If `exit_on_error` is not
 * set, a failure is logged and the server is neither live nor ready. */
kelp_status *kelp_server_create(kelp_allocator allocator, const kelp_server_options *options,
                                kelp_server **out) KELP_MUST_USE;
/* Rejects further requests, except those of sequences that have begun, waits for the sequences and
 * the requests in flight at most for the exit timeout, and unloads all models. INTERNAL if the
 * timeout expired. */
kelp_status *kelp_server_stop(kelp_server *server) KELP_MUST_USE;
/* Drops a reference. */
void kelp_server_release(kelp_server *server);
/* Replaces the exit timeout. */
void kelp_server_set_exit_timeout(kelp_server *server, unsigned timeout_s);

/* ---- requests ---- */
/* Creates a request for a model that is ready. */
kelp_status *kelp_server_create_request(kelp_server *server, const char *model_name,
                                        int64_t version, kelp_request **out) KELP_MUST_USE;

/* ---- health.c ---- */
/* Returns UNAVAILABLE unless the server accepts requests. */
kelp_status *kelp_server_check_ready(const kelp_server *server) KELP_MUST_USE;
/* Tests whether the server started. UNAVAILABLE while it stops. */
kelp_status *kelp_server_is_live(const kelp_server *server, bool *out) KELP_MUST_USE;
/* Tests whether the server accepts requests and, with strict readiness, whether every version is
 * ready or was unloaded on request. UNAVAILABLE while the server stops. */
kelp_status *kelp_server_is_ready(kelp_server *server, bool *out) KELP_MUST_USE;
kelp_status *kelp_server_model_is_ready(kelp_server *server, const char *name, int64_t version,
                                        bool *out) KELP_MUST_USE;

/* ---- loads, if the control mode permits them ---- */
/* Loads a model. `parameters` are "config" and "file:PATH". */
kelp_status *kelp_server_load(kelp_server *server, const char *name,
                              const kelp_parameter *const *parameters,
                              uint64_t count) KELP_MUST_USE;
/* Unloads a model and, with `dependents`, the members of an ensemble. */
kelp_status *kelp_server_unload(kelp_server *server, const char *name,
                                bool dependents) KELP_MUST_USE;
kelp_status *kelp_server_poll(kelp_server *server) KELP_MUST_USE;

/* ---- describe.c ---- */
/* Create JSON for clients. */
kelp_status *kelp_server_describe(kelp_server *server, kelp_message **out) KELP_MUST_USE;
kelp_status *kelp_server_describe_model(kelp_server *server, const char *name, int64_t version,
                                        kelp_message **out) KELP_MUST_USE;
kelp_status *kelp_server_model_config(kelp_server *server, const char *name, int64_t version,
                                      uint32_t config_version, kelp_message **out) KELP_MUST_USE;
/* Creates statistics; `name` "" selects all models, `version` -1 all versions. */
kelp_status *kelp_server_model_stats(kelp_server *server, const char *name, int64_t version,
                                     kelp_message **out) KELP_MUST_USE;
kelp_status *kelp_server_index(kelp_server *server, bool only_ready,
                               kelp_message **out) KELP_MUST_USE;
/* Returns the properties of TRITONSERVER_ServerModelBatchProperties and …TransactionProperties. */
kelp_status *kelp_server_model_properties(kelp_server *server, const char *name, int64_t version,
                                          bool *out_batches, bool *out_decoupled) KELP_MUST_USE;

/* ---- metrics_page.c ---- */
/* Returns all metrics in the text format of Prometheus. UNIMPLEMENTED if they are disabled. */
kelp_status *kelp_server_metrics(kelp_server *server, kelp_metrics_format format,
                                 kelp_message **out) KELP_MUST_USE;

#endif
