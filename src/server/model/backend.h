/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backends: what runs models. A foreign one is a shared library with Triton's entry points, a
 * built-in one a row of a hidden table; both are the same function pointers from here on.
 *
 * Foreign backends are one a process and library file, as in Triton: servers share them. A library
 * stays loaded once it is (unloading code that has threads or thread-local destructors cannot be
 * made safe); Finalize runs when the last server lets go.
 */
#ifndef KELP_SERVER_MODEL_BACKEND_H_
#define KELP_SERVER_MODEL_BACKEND_H_

#include "base/dl.h"
#include "server/core/options.h"
#include "server/builtin/builtin.h"

typedef struct kelp_preferred_group {
    TRITONSERVER_InstanceGroupKind kind;
    uint64_t count;
} kelp_preferred_group;

/* What TRITONBACKEND_GetBackendAttribute fills in. */
typedef struct kelp_backend_attribute {
    kelp_preferred_group *groups;
    size_t group_count;
    size_t group_capacity;
    bool parallel_loading;
} kelp_backend_attribute;

typedef struct kelp_backend kelp_backend;
struct kelp_backend {
    kelp_backend *next; /* in the process's list */
    unsigned refs;      /* under the list's lock */
    char *name;
    char *directory; /* of the library, or of the model.py; "" for a built-in one */
    char *library;   /* its path; "" for a built-in one */
    char *identity;  /* that path, or that of the model.py; "builtin:NAME" */
    kelp_dl dl;
    kelp_builtin_backend fn; /* the entry points, from either source */
    TRITONSERVER_Error *(*ready)(TRITONBACKEND_ModelInstance *instance);
    /* Kelp's own entry point, of libraries made with its kit; see kelp/backend.h. */
    bool (*may_block)(TRITONBACKEND_Model *model, TRITONBACKEND_Request *request);
    bool builtin;
    bool python_based;   /* its code is a model.py, which the library runs */
    bool never_releases; /* the library does not know TRITONBACKEND_RequestRelease: the server
                            releases for it */
    bool never_reports;  /* nor a function that reports statistics: the server counts */
    void *state;
    kelp_message *config;
    TRITONBACKEND_ExecutionPolicy policy;
    kelp_backend_attribute attribute;
};

/* Where a library is looked for, in this order. */
typedef struct kelp_backend_query {
    const char *name;              /* "addsub" */
    const char *library;           /* file name from the configuration's `runtime`, or NULL or "" */
    const char *version_directory; /* of the model */
    const char *model_directory;
    const kelp_server_options *options;
} kelp_backend_query;

/* A reference to the backend, loaded and initialized. NOT_FOUND lists every path that was tried and
 * why it did not serve. */
kelp_status *kelp_backend_acquire(const kelp_backend_query *query,
                                  kelp_backend **out) KELP_MUST_USE;
void kelp_backend_retain(kelp_backend *backend);
void kelp_backend_release(kelp_backend *backend);

#endif
