/* SPDX-License-Identifier: Apache-2.0 */
/* The C API for backends: the implicit state of sequences. */
#include "server/core/error.h"
#include "server/request/sequence.h"

#include <triton/core/tritonbackend.h>

static kelp_status *find_state(const kelp_request *request, const char *name, kelp_state **out) {
    if (request->states == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          KELP_REQUEST_TAG "unable to add state '%s'. State configuration is "
                                           "missing for model '%s'.",
                          kelp_request_tag(request), name,
                          request->model != NULL ? request->model->name : "");
    *out = kelp_sequence_states_find(request->states, name);
    if (*out == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          KELP_REQUEST_TAG "state '%s' is not a valid state name: expected an "
                                           "'output_name' of sequence_batching.state",
                          kelp_request_tag(request), name);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_StateNew(TRITONBACKEND_State **state,
                                           TRITONBACKEND_Request *request, const char *name,
                                           const TRITONSERVER_DataType datatype,
                                           const int64_t *shape, const uint32_t dims_count) {
    kelp_state *found = NULL;
    if (state == NULL || request == NULL || name == NULL || (shape == NULL && dims_count > 0))
        return kelp_null_error(__func__, state == NULL     ? "state"
                                         : request == NULL ? "request"
                                         : name == NULL    ? "name"
                                                           : "shape");
    kelp_status *status = find_state((const kelp_request *)request, name, &found);
    if (status == NULL)
        status = kelp_state_begin(found, datatype, shape, dims_count);
    if (status == NULL)
        *state = (TRITONBACKEND_State *)found;
    return kelp_to_error(status);
}

TRITONSERVER_Error *TRITONBACKEND_StateUpdate(TRITONBACKEND_State *state) {
    if (state == NULL)
        return kelp_null_error(__func__, "state");
    return kelp_to_error(kelp_state_update((kelp_state *)state));
}

TRITONSERVER_Error *TRITONBACKEND_StateBuffer(TRITONBACKEND_State *state, void **buffer,
                                              const uint64_t buffer_byte_size,
                                              TRITONSERVER_MemoryType *memory_type,
                                              int64_t *memory_type_id) {
    if (state == NULL || buffer == NULL || memory_type == NULL || memory_type_id == NULL)
        return kelp_null_error(__func__, state == NULL ? "state" : NULL);
    kelp_status *status = kelp_state_memory((kelp_state *)state, buffer_byte_size, buffer);
    if (status == NULL) {
        *memory_type = TRITONSERVER_MEMORY_CPU;
        *memory_type_id = 0;
    }
    return kelp_to_error(status);
}

TRITONSERVER_Error *
TRITONBACKEND_StateBufferAttributes(TRITONBACKEND_State *state,
                                    TRITONSERVER_BufferAttributes **buffer_attributes) {
    if (state == NULL || buffer_attributes == NULL)
        return kelp_null_error(__func__, state == NULL ? "state" : "buffer_attributes");
    *buffer_attributes = (TRITONSERVER_BufferAttributes *)&((kelp_state *)state)->attributes;
    return NULL;
}
