/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backends. A backend is a shared library with Triton's entry points, or an entry of the table of
 * built-in backends. Both are used through the same function pointers.
 *
 * Thread-safe. As in Triton, there is one backend for each library file of the process. Servers
 * share it, so that it uses the process-wide allocator. Finalize runs when the last server releases
 * the backend; the library stays loaded (library.h). No lock is held while a backend is initialized
 * or finalized.
 */
#ifndef KELP_SERVER_MODEL_BACKEND_H_
#define KELP_SERVER_MODEL_BACKEND_H_

#include "server/builtin/builtin.h"
#include "server/config/config.h"
#include "server/core/message.h"
#include "server/core/options.h"
#include "server/core/shared_library.h"
#include "server/scheduler/batcher.h"

#include <pthread.h>

/* The values that TRITONBACKEND_GetBackendAttribute sets. */
typedef struct kelp_server_backend_attribute {
    kelp_preferred_group *groups;
    size_t group_count;
    size_t group_capacity;
    bool parallel_loading;
} kelp_server_backend_attribute;

typedef struct kelp_server_backend kelp_server_backend;
/* A loaded backend. */
struct kelp_server_backend {
    /* The identity is the library, the model.py, or "builtin:NAME". */
    kelp_shared_library shared;
    char *name;
    char *directory;         /* of the library, or of the model.py; "" for a built-in one */
    char *library;           /* its path; "" for a built-in one */
    kelp_builtin_backend fn; /* the entry points */
    TRITONSERVER_Error *(*ready)(TRITONBACKEND_ModelInstance *instance);
    /* Kelp's own entry point, in libraries that use its SDK; see kelp/backend.h. */
    bool (*may_block)(TRITONBACKEND_Model *model, TRITONBACKEND_Request *request);
    kelp_batcher batcher; /* its batching strategy; the entry points are NULL if it has none */
    bool builtin;
    bool python_based;   /* its code is a model.py, which the library executes */
    bool never_releases; /* the library does not use TRITONBACKEND_RequestRelease: the server
                            releases its requests */
    bool never_reports;  /* the library reports no statistics: the server counts its requests */
    void *state;
    kelp_message *config;
    TRITONBACKEND_ExecutionPolicy policy;
    kelp_server_backend_attribute attribute;
};

/* The parameters of the search for a backend. The directories are searched in this order: version,
 * model, backend. */
typedef struct kelp_server_backend_query {
    const char *name;    /* "addsub" */
    const char *library; /* the configuration's `runtime`, a file name; NULL or "": none */
    const char *version_directory; /* of the model */
    const char *model_directory;
    const kelp_server_options *options;
} kelp_server_backend_query;

/* Returns a reference to the backend, which is loaded and initialized. INVALID_ARGUMENT lists every
 * path that was tried and the reason why it was not used. */
kelp_status *kelp_server_backend_acquire(const kelp_server_backend_query *query,
                                         kelp_server_backend **out) KELP_MUST_USE;
void kelp_server_backend_retain(kelp_server_backend *backend);
/* Drops a reference. NULL is ignored. */
void kelp_server_backend_release(kelp_server_backend *backend);
/* Adds a preferred instance group. */
kelp_status *kelp_server_backend_prefer_group(kelp_server_backend_attribute *attribute,
                                              TRITONSERVER_InstanceGroupKind kind,
                                              uint64_t count) KELP_MUST_USE;

/* The backends that a server has used. The server holds references until it stops, so that a
 * backend is not finalized between two loads. Thread-safe. */
typedef struct kelp_server_backend_set {
    kelp_allocator allocator;
    pthread_mutex_t lock;
    kelp_server_backend **items;
    size_t count;
    size_t capacity;
} kelp_server_backend_set;

void kelp_server_backend_set_init(kelp_server_backend_set *set, kelp_allocator allocator);
/* Adds a reference to a backend that is not in the set. */
kelp_status *kelp_server_backend_set_add(kelp_server_backend_set *set,
                                         kelp_server_backend *backend) KELP_MUST_USE;
/* Releases all backends of the set. */
void kelp_server_backend_set_clear(kelp_server_backend_set *set);
void kelp_server_backend_set_deinit(kelp_server_backend_set *set);

#endif
