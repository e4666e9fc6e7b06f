/* SPDX-License-Identifier: Apache-2.0 */
/* A batching strategy without the SDK, batchstrategy.so: batches of at most two requests. */
#include <stdlib.h>
#include <triton/core/tritonbackend.h>

enum { MAX_REQUESTS = 2 };

TRITONSERVER_Error *TRITONBACKEND_ModelBatcherInitialize(TRITONBACKEND_Batcher **batcher,
                                                         TRITONBACKEND_Model *model) {
    const char *name = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelName(model, &name);
    if (error == NULL && name[0] == 'x')
        error = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "no strategy for model x");
    *batcher = (TRITONBACKEND_Batcher *)model;
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ModelBatcherFinalize(TRITONBACKEND_Batcher *batcher) {
    (void)batcher;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelBatchInitialize(const TRITONBACKEND_Batcher *batcher,
                                                       void **userp) {
    *userp = batcher != NULL ? calloc(1, sizeof(int)) : NULL;
    return *userp != NULL ? NULL : TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "no batch");
}

TRITONSERVER_Error *TRITONBACKEND_ModelBatchIncludeRequest(TRITONBACKEND_Request *request,
                                                           void *userp, bool *should_include) {
    int *count = userp;
    (void)request;
    *should_include = ++*count <= MAX_REQUESTS;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelBatchFinalize(void *userp) {
    free(userp);
    return NULL;
}
