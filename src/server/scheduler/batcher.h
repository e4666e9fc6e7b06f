/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Custom batching strategies: TRITONBACKEND_ModelBatch* of a library, which decide which queued
 * requests join a batch in addition to the rules of the policy. Called with the pool's lock held.
 */
#ifndef KELP_SERVER_SCHEDULER_BATCHER_H_
#define KELP_SERVER_SCHEDULER_BATCHER_H_

#include "server/request/request.h"

#include <triton/core/tritonbackend.h>

/* The entry points of a batching strategy, and its state for a model. */
typedef struct kelp_batcher {
    TRITONSERVER_Error *(*initialize)(TRITONBACKEND_Batcher **batcher, TRITONBACKEND_Model *model);
    TRITONSERVER_Error *(*finalize)(TRITONBACKEND_Batcher *batcher);
    TRITONSERVER_Error *(*batch_initialize)(const TRITONBACKEND_Batcher *batcher, void **userp);
    TRITONSERVER_Error *(*batch_include)(TRITONBACKEND_Request *request, void *userp,
                                         bool *should_include);
    TRITONSERVER_Error *(*batch_finalize)(void *userp);
    TRITONBACKEND_Batcher *raw; /* of the model */
} kelp_batcher;

/* A batch in formation. */
typedef struct kelp_custom_batch {
    const kelp_batcher *batcher;
    bool open; /* BatchInitialize has succeeded */
    void *userp;
} kelp_custom_batch;

/* Begins a batch with its first request, which it always includes. */
void kelp_custom_batch_begin(kelp_custom_batch *batch, const kelp_batcher *batcher,
                             kelp_request *first);
/* Returns true if the next request joins the batch; false after a failure, which is logged. */
bool kelp_custom_batch_include(const kelp_custom_batch *batch, kelp_request *request);
/* Ends a batch. */
void kelp_custom_batch_end(const kelp_custom_batch *batch);

#endif
