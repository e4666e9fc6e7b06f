/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Built-in backends: a hidden static table with the signatures of Triton's plugin side, so that a
 * built-in and a foreign backend are one code path. Never exported TRITONBACKEND_* entry points: a
 * dlsym on a plugin's handle also searches the plugin's dependencies, and would find ours.
 */
#ifndef KELP_SERVER_BUILTIN_BUILTIN_H_
#define KELP_SERVER_BUILTIN_BUILTIN_H_

#include <triton/core/tritonbackend.h>

typedef struct kelp_builtin_backend {
    const char *name;           /* "kelp" */
    const char *const *aliases; /* other values of `backend` or `platform` that mean this one; ends
                                   with NULL; may be NULL */
    TRITONSERVER_Error *(*initialize)(
        TRITONBACKEND_Backend *backend); /* may be NULL, as all but execute */
    TRITONSERVER_Error *(*finalize)(TRITONBACKEND_Backend *backend);
    TRITONSERVER_Error *(*model_init)(TRITONBACKEND_Model *model);
    TRITONSERVER_Error *(*model_fini)(TRITONBACKEND_Model *model);
    TRITONSERVER_Error *(*instance_init)(TRITONBACKEND_ModelInstance *instance);
    TRITONSERVER_Error *(*instance_fini)(TRITONBACKEND_ModelInstance *instance);
    TRITONSERVER_Error *(*execute)(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, const uint32_t request_count);
    TRITONSERVER_Error *(*attribute)(TRITONBACKEND_Backend *backend,
                                     TRITONBACKEND_BackendAttribute *attributes);
    /* execute neither blocks nor sleeps: it runs to completion on the thread that submits (see
     * scheduler.h). */
    bool inline_execute;
} kelp_builtin_backend;

/* The table; entries live for ever. */
const kelp_builtin_backend *const *kelp_builtin_backends(size_t *out_count);
/* The entry of that name or alias, or NULL. */
const kelp_builtin_backend *kelp_builtin_find(const char *name);

#endif
