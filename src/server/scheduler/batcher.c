/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a custom batching strategy. */
#include "server/scheduler/batcher.h"

#include "server/core/error.h"
#include "server/core/log.h"

static bool succeeds(TRITONSERVER_Error *take_error) {
    bool success = take_error == NULL;
    kelp_server_log_status("the batching strategy failed", kelp_from_error(take_error));
    return success;
}

void kelp_custom_batch_begin(kelp_custom_batch *batch, const kelp_batcher *batcher,
                             kelp_request *first) {
    *batch = (kelp_custom_batch){.batcher = batcher};
    batch->open = succeeds(batcher->batch_initialize(batcher->raw, &batch->userp));
    if (batch->open)
        (void)kelp_custom_batch_include(batch, first); /* a batch has at least one request */
}

bool kelp_custom_batch_include(const kelp_custom_batch *batch, kelp_request *request) {
    bool included = false;
    return batch->open &&
           succeeds(batch->batcher->batch_include((TRITONBACKEND_Request *)request, batch->userp,
                                                  &included)) &&
           included;
}

void kelp_custom_batch_end(const kelp_custom_batch *batch) {
    if (batch->open)
        (void)succeeds(batch->batcher->batch_finalize(batch->userp));
}
