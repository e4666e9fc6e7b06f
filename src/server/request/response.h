/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Responses and their outputs. TRITONSERVER_InferenceResponse and TRITONBACKEND_Response are
 * pointers to kelp_response. A response is used by one thread at a time.
 */
#ifndef KELP_SERVER_REQUEST_RESPONSE_H_
#define KELP_SERVER_REQUEST_RESPONSE_H_

#include "server/request/factory.h"

/* An output of a response. */
typedef struct kelp_output {
    kelp_response *response;
    kelp_text name;
    TRITONSERVER_DataType datatype;
    uint32_t rank;
    int64_t shape[KELP_SERVER_MAX_RANK];
    bool allocated;
    void *buffer;
    void *buffer_userp;
    kelp_buffer_attributes attributes;
} kelp_output;

/* A response. */
struct kelp_response {
    kelp_response *next;     /* in a pool */
    kelp_request_pool *home; /* the pool that it returns to; holds its allocator */
    kelp_factory *factory;   /* a reference; NULL once it was deleted */
    bool sent;
    uint32_t held_flags;   /* while a slot of the model's order holds it */
    kelp_status *error;    /* owned */
    kelp_output **outputs; /* elements from output_count on are unused, and keep their memory */
    size_t output_count;
    size_t output_spare;
    size_t output_capacity;
    kelp_params params;
};

/* Creates a response, which counts as open, and calls the allocator's start callback. INTERNAL if
 * the submission is over. */
kelp_status *kelp_response_create(kelp_factory *factory, kelp_response **out) KELP_MUST_USE;
/* Returns the buffers to the allocator and the response to its pool. A response that was not sent
 * no longer counts as open. */
void kelp_response_delete(kelp_response *response);
/* Frees the memory that a response keeps for its next use. */
void kelp_response_trim(kelp_response *response);
/* Frees a response. Called by the pool. */
void kelp_response_free(kelp_response *response);
/* Passes the response to the response callback, which takes it. `error` is copied. After FINAL,
 * deletes the response and returns INTERNAL. */
kelp_status *kelp_response_send(kelp_response *take_response, uint32_t flags,
                                const kelp_status *error) KELP_MUST_USE;

/* Adds an output with the backend's shape. ALREADY_EXISTS if the name exists, INVALID_ARGUMENT if
 * the model has no such output. */
kelp_status *kelp_response_add_output(kelp_response *response, const char *name,
                                      TRITONSERVER_DataType datatype, const int64_t *shape,
                                      uint32_t rank, kelp_output **out) KELP_MUST_USE;
/* Adds an output with the clients' shape, which the cache stores. */
kelp_status *kelp_response_restore_output(kelp_response *response, const char *name,
                                          TRITONSERVER_DataType datatype, const int64_t *shape,
                                          uint32_t rank, kelp_output **out) KELP_MUST_USE;
/* Allocates the output's buffer with the response allocator; ALREADY_EXISTS on a second call. */
kelp_status *kelp_output_allocate(kelp_output *output, uint64_t size_bytes,
                                  TRITONSERVER_MemoryType memory_type, int64_t memory_type_id,
                                  void **out_buffer) KELP_MUST_USE;

#endif
