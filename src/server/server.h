/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server object: options, pools of requests, the response cache, and the repository of models.
 * The root of the server's memory: every object below it inherits its allocator.
 *
 * Memory: the server is counted. Its handle is one reference and each model another, so that a
 * request or response that outlives the handle finds what it needs.
 *
 * Thread-safe, except that kelp_server_stop is called by one thread at a time.
 */
#ifndef KELP_SERVER_SERVER_H_
#define KELP_SERVER_SERVER_H_

#include "server/repository/repository.h"
#include "server/request/trace.h"

#define KELP_SERVER_VERSION "0.1.0"

typedef enum kelp_server_state {
    KELP_SERVER_STARTING,
    KELP_SERVER_READY,
    KELP_SERVER_STOPPING,
    KELP_SERVER_STOPPED
} kelp_server_state;

typedef struct kelp_server {
    kelp_model_host host;
    atomic_uint refs;
    _Atomic int state; /* kelp_server_state */
    kelp_repository repository;
} kelp_server;

/* Creates a server and loads what the options ask for. `options` are copied. */
kelp_status *kelp_server_create(kelp_allocator allocator, const kelp_server_options *options,
                                kelp_server **out) KELP_MUST_USE;
/* Rejects requests, waits for those in flight until the exit timeout, unloads all models. INTERNAL
 * if the time was not enough. */
kelp_status *kelp_server_stop(kelp_server *server) KELP_MUST_USE;
void kelp_server_release(kelp_server *server);
void kelp_server_set_exit_timeout(kelp_server *server, unsigned timeout_s);

/* ---- requests ---- */
/* Creates a request for a model that is ready. */
kelp_status *kelp_server_create_request(kelp_server *server, const char *model_name,
                                        int64_t version, kelp_request **out) KELP_MUST_USE;

/* ---- health.c ---- */
/* UNAVAILABLE unless the server accepts requests. */
kelp_status *kelp_server_check_ready(const kelp_server *server) KELP_MUST_USE;
/* UNAVAILABLE while the server stops. */
kelp_status *kelp_server_check_live(const kelp_server *server) KELP_MUST_USE;
/* Tests whether the server accepts requests and, with strict readiness, whether every version is
 * ready or was unloaded on purpose. UNAVAILABLE while the server stops. */
kelp_status *kelp_server_is_ready(kelp_server *server, bool *out) KELP_MUST_USE;
kelp_status *kelp_server_model_is_ready(kelp_server *server, const char *name, int64_t version,
                                        bool *out) KELP_MUST_USE;

/* ---- loads, as the control mode allows them ---- */
/* `parameters` are "config" and "file:PATH"; none for a plain load. */
kelp_status *kelp_server_load(kelp_server *server, const char *name,
                              const kelp_parameter *const *parameters,
                              uint64_t count) KELP_MUST_USE;
kelp_status *kelp_server_unload(kelp_server *server, const char *name) KELP_MUST_USE;
kelp_status *kelp_server_poll(kelp_server *server) KELP_MUST_USE;

/* ---- describe.c: JSON for clients ---- */
kelp_status *kelp_server_describe(kelp_server *server, kelp_message **out) KELP_MUST_USE;
kelp_status *kelp_server_describe_model(kelp_server *server, const char *name, int64_t version,
                                        kelp_message **out) KELP_MUST_USE;
kelp_status *kelp_server_model_config(kelp_server *server, const char *name, int64_t version,
                                      uint32_t config_version, kelp_message **out) KELP_MUST_USE;
/* `name` "" means all models, `version` -1 all versions. */
kelp_status *kelp_server_model_stats(kelp_server *server, const char *name, int64_t version,
                                     kelp_message **out) KELP_MUST_USE;
kelp_status *kelp_server_index(kelp_server *server, bool only_ready,
                               kelp_message **out) KELP_MUST_USE;
/* Returns what TRITONSERVER_ServerModelBatchProperties and …TransactionProperties report. */
kelp_status *kelp_server_model_properties(kelp_server *server, const char *name, int64_t version,
                                          bool *out_batches, bool *out_decoupled) KELP_MUST_USE;

/* ---- metrics_page.c ---- */
/* Returns all metrics in the text format of Prometheus. UNIMPLEMENTED if they are disabled. */
kelp_status *kelp_server_metrics(kelp_server *server, kelp_message **out) KELP_MUST_USE;

#endif
