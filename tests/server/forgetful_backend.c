/* SPDX-License-Identifier: Apache-2.0 */
/* A backend that sends no responses and releases no requests, as some backends without the
 * helper library do. */
#include <triton/core/tritonbackend.h>

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                       TRITONBACKEND_Request **requests,
                                                       const uint32_t request_count) {
    (void)instance;
    (void)requests;
    (void)request_count;
    return NULL;
}
