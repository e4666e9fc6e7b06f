/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries that cannot be loaded, each for one reason. */
#include <kelp/backend.h>

#include <stdlib.h>

#if defined(BAD_EXECUTE)
#define EXECUTE .execute = execute, .execute_one = execute_one
#else
#define EXECUTE .execute_one = execute_one
#endif

static kelp_status *execute_one(kelp_backend_instance *instance, kelp_backend_request *request) {
    (void)instance;
    (void)request;
    return NULL;
}

#if defined(BAD_EXECUTE)
static kelp_status *execute(kelp_backend_instance *instance, kelp_backend_request **requests,
                            size_t request_count) {
    (void)instance;
    (void)requests;
    (void)request_count;
    return NULL;
}
#endif

#if defined(BAD_CREATE)
/* Fails after it set the state: destroy receives the state. */
static kelp_status *create(kelp_backend_host *host, void **out_state) {
    *out_state = malloc(100);
    return KELP_ERROR(KELP_UNAVAILABLE, "no licence in '%s'",
                      kelp_backend_host_setting(host, "licence", "the drawer"));
}
#endif

#if defined(BAD_PART)
TRITONSERVER_Error *TRITONBACKEND_ModelBatchFinalize(void *userp) {
    (void)userp;
    return NULL;
}
#endif

#if defined(BAD_MACRO)
static kelp_status *batch_include(kelp_backend_model *model, void *batch_state,
                                  kelp_backend_request *request, bool *out_include) {
    (void)model;
    (void)batch_state;
    (void)request;
    (void)out_include;
    return NULL;
}
#endif

static const kelp_backend_definition bad = {
#if defined(BAD_SIZE)
    .struct_size = 8,
#else
    .struct_size = sizeof bad,
#endif
    .name = "bad",
#if defined(BAD_CREATE)
    .create = create,
    .destroy = free,
#endif
#if defined(BAD_MACRO)
    .batch_include = batch_include,
#endif
    EXECUTE,
};
KELP_TRITON_BACKEND(bad)
