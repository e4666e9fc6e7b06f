/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Built-in backends: a hidden table with the signatures of Triton's entry points, so that built-in
 * backends and those in shared libraries share their code path. The library must not export
 * TRITONBACKEND_* entry points: dlsym on the handle of a backend also searches the backend's
 * dependencies, and would find them.
 */
#ifndef KELP_SERVER_BUILTIN_BUILTIN_H_
#define KELP_SERVER_BUILTIN_BUILTIN_H_

#include <triton/core/tritonbackend.h>

/* A built-in backend. All functions except `execute` may be NULL. */
typedef struct kelp_builtin_backend {
    const char *name;           /* "kelp" */
    const char *const *aliases; /* other values of `backend` or `platform` that select it; NULL ends
                                   the list; may be NULL */
    TRITONSERVER_Error *(*initialize)(TRITONBACKEND_Backend *backend);
    TRITONSERVER_Error *(*finalize)(TRITONBACKEND_Backend *backend);
    TRITONSERVER_Error *(*model_init)(TRITONBACKEND_Model *model);
    TRITONSERVER_Error *(*model_fini)(TRITONBACKEND_Model *model);
    TRITONSERVER_Error *(*instance_init)(TRITONBACKEND_ModelInstance *instance);
    TRITONSERVER_Error *(*instance_fini)(TRITONBACKEND_ModelInstance *instance);
    TRITONSERVER_Error *(*execute)(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, const uint32_t request_count);
    TRITONSERVER_Error *(*attribute)(TRITONBACKEND_Backend *backend,
                                     TRITONBACKEND_BackendAttribute *attributes);
    /* `execute` does not block: short executions run on the submitting thread (instance_pool.h). */
    bool inline_execute;
} kelp_builtin_backend;

/* Returns the table, whose entries are static. */
const kelp_builtin_backend *const *kelp_builtin_backends(size_t *out_count);
/* Returns the entry of a name or alias, or NULL. */
const kelp_builtin_backend *kelp_builtin_find(const char *name);

#endif
