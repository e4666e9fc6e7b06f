/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inference requests. A kelp_request is what both TRITONSERVER_InferenceRequest and
 * TRITONBACKEND_Request point at.
 *
 * Life: INITIALIZED (the caller's) -> PENDING (queued) -> EXECUTING (the backend's) -> RELEASED
 * (the caller's again, who deletes or resubmits it). A submission that fails leaves it INITIALIZED.
 *
 * Threads: one at a time, apart from cancellation, which is the factory's atomic flag. Memory is
 * kept from use to use, and whole requests are pooled, so that a warm server submits without
 * allocating. The objects themselves stay in the pool until the server goes, however many, so that
 * one that is used after it was deleted is known as such; of those beyond a number only the bare
 * object.
 */
#ifndef KELP_SERVER_REQUEST_REQUEST_H_
#define KELP_SERVER_REQUEST_REQUEST_H_

#include "server/core/params.h"

#include <stdatomic.h>

#define KELP_SERVER_MAX_RANK 32

typedef struct kelp_server kelp_server;
typedef struct kelp_model kelp_model;
typedef struct kelp_instance kelp_instance;
typedef struct kelp_factory kelp_factory;
typedef struct kelp_trace kelp_trace;
typedef struct kelp_stripe kelp_stripe;

typedef struct kelp_data_block {
    const void *base;
    kelp_buffer_attributes attributes;
} kelp_data_block;

typedef struct kelp_data {
    kelp_data_block *blocks;
    size_t count;
    size_t capacity;
    uint64_t size_bytes; /* of all blocks */
} kelp_data;

/* Data that only instances under a host policy read. */
typedef struct kelp_policy_data {
    kelp_text policy;
    kelp_data data;
} kelp_policy_data;

typedef struct kelp_input {
    kelp_text name;
    TRITONSERVER_DataType datatype;
    uint32_t given_rank;
    uint32_t rank; /* of `shape` */
    int64_t given_shape[KELP_SERVER_MAX_RANK];
    int64_t shape[KELP_SERVER_MAX_RANK]; /* what the backend sees: batch first, reshape applied */
    kelp_data data;
    kelp_policy_data *policies;
    size_t policy_count;
    size_t policy_capacity;
} kelp_input;

typedef enum kelp_request_state {
    KELP_REQUEST_INITIALIZED,
    KELP_REQUEST_PENDING,
    KELP_REQUEST_EXECUTING,
    KELP_REQUEST_RELEASED
} kelp_request_state;

typedef struct kelp_request kelp_request;
struct kelp_request {
    kelp_request *next;    /* in a queue or a pool */
    kelp_stripe *home;     /* whose pool it goes back to, from whatever thread */
    kelp_model *model;     /* a reference */
    kelp_factory *factory; /* a reference; of the latest submission */
    kelp_trace *trace;     /* borrowed from the factory while submitted */
    int64_t requested_version;
    _Atomic int state; /* kelp_request_state */
    uint32_t flags;
    bool correlation_is_string;
    bool raw_input; /* the only input, whose type and shape the model decides */
    bool may_block; /* when it is executed, so its backend says; set on submission */
    uint64_t correlation_id;
    kelp_text correlation_string;
    uint64_t priority;
    uint64_t timeout_us;
    uint32_t batch_size; /* at least 1; set on submission */
    kelp_text id;
    kelp_input **inputs; /* those beyond input_count are spare */
    size_t input_count;
    size_t input_spare; /* allocated objects */
    size_t input_capacity;
    /* Asked for, sorted, without repeats; those beyond output_count are spare. */
    kelp_text *outputs;
    size_t output_count;
    size_t output_capacity;
    kelp_params params;
    TRITONSERVER_InferenceRequestReleaseFn_t release_fn;
    void *release_userp;
    kelp_response_allocator *allocator;
    void *allocator_userp;
    TRITONSERVER_InferenceResponseCompleteFn_t response_fn;
    void *response_userp;
    uint64_t request_start_ns; /* monotonic */
    uint64_t queue_start_ns;
    uint64_t execute_start_ns; /* valid while `counted_by` is set */
    kelp_instance *counted_by; /* whose statistics the server sees to, as the backend cannot */
};

/* A request of the caller's for a model that is ready. */
kelp_status *kelp_request_create(kelp_server *server, const char *model_name, int64_t version,
                                 kelp_request **out) KELP_MUST_USE;
/* One for a model that need not be ready, with callbacks and inputs to be set by the caller. */
kelp_status *kelp_request_create_for(kelp_model *model, kelp_request **out) KELP_MUST_USE;
/* Makes it ready to be executed past the queue. */
kelp_status *kelp_request_begin(kelp_request *request) KELP_MUST_USE;
/* INTERNAL, and the request stays, while it is submitted. */
kelp_status *kelp_request_delete(kelp_request *request) KELP_MUST_USE;
/* Gives back the memory that a request keeps for its next use. */
void kelp_request_trim(kelp_request *request);
/* Frees the memory of a request that is in no pool (for the pool). */
void kelp_request_free(kelp_request *request);

/* "[request id: ID] ", as Triton begins its messages. */
#define KELP_REQUEST_TAG "[request id: %s] "
const char *kelp_request_tag(const kelp_request *request);

/* ---- inputs and outputs ---- */
kelp_status *kelp_request_add_input(kelp_request *request, const char *name,
                                    TRITONSERVER_DataType datatype, const int64_t *shape,
                                    uint64_t rank, kelp_input **out) KELP_MUST_USE;
kelp_input *kelp_request_find_input(const kelp_request *request, const char *name);
/* INVALID_ARGUMENT "input 'NAME' does not exist in request". */
kelp_status *kelp_request_get_input(const kelp_request *request, const char *name,
                                    kelp_input **out) KELP_MUST_USE;
kelp_status *kelp_request_remove_input(kelp_request *request, const char *name) KELP_MUST_USE;
void kelp_request_remove_inputs(kelp_request *request);
void kelp_input_clear_data(kelp_input *input);
/* `policy` may be NULL. */
kelp_status *kelp_input_append(kelp_input *input, const char *policy, const void *base,
                               const kelp_buffer_attributes *attributes) KELP_MUST_USE;
/* The data for a host policy, or the common data when the policy (or NULL) has none of its own. */
const kelp_data *kelp_input_data(const kelp_input *input, const char *policy);

kelp_status *kelp_request_add_output(kelp_request *request, const char *name) KELP_MUST_USE;
void kelp_request_remove_output(kelp_request *request, const char *name);

/* Those asked for, or all of the model's when none was. */
size_t kelp_request_output_count(const kelp_request *request);
const char *kelp_request_output_name(const kelp_request *request, size_t index);

/* ---- submission ---- */
/* Checks the request against its model's configuration and sets batch_size and the shapes that the
 * backend sees. */
kelp_status *kelp_request_normalize(kelp_request *request) KELP_MUST_USE;
/* On success request and trace are the server's. On failure both stay the caller's. */
kelp_status *kelp_request_submit(kelp_server *server, kelp_request *request,
                                 kelp_trace *trace) KELP_MUST_USE;

/* ---- from the backend's side ---- */
/* Gives an executing request back to whoever submitted it. INTERNAL when it is not executing. */
kelp_status *kelp_request_release(kelp_request *request, uint32_t flags) KELP_MUST_USE;
/* Answers with an error and releases; for the server's own refusals. The error stays the caller's.
 */
void kelp_request_fail(kelp_request *request, const kelp_status *error);

#endif
