/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inference requests. A kelp_request is what both TRITONSERVER_InferenceRequest and
 * TRITONBACKEND_Request point at.
 *
 * States: INITIALIZED (the caller's) -> PENDING (queued) -> EXECUTING (the backend's) -> RELEASED
 * (the caller's again, who deletes or resubmits it). A submission that fails leaves it INITIALIZED.
 *
 * Threads: one at a time, except for cancellation, which is an atomic flag of the factory. Memory
 * is kept from use to use, and requests are pooled (pool.h), so that a warm server submits without
 * allocating.
 */
#ifndef KELP_SERVER_REQUEST_REQUEST_H_
#define KELP_SERVER_REQUEST_REQUEST_H_

#include "server/config/reshape.h"
#include "server/core/params.h"
#include "server/core/values.h"
#include "server/request/model_base.h"

typedef struct kelp_trace kelp_trace;

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

/* Data that only instances with a host policy read. */
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

struct kelp_request {
    kelp_request *next;      /* in a queue or a pool */
    kelp_request_pool *home; /* the pool that it returns to; holds its allocator */
    kelp_model_base *model;  /* a reference; NULL once it was deleted */
    kelp_factory *factory;   /* a reference; of the latest submission */
    kelp_trace *trace;       /* borrowed from the factory while submitted */
    int64_t requested_version;
    _Atomic int state; /* kelp_request_state */
    uint32_t flags;
    bool correlation_is_string;
    bool raw_input; /* the only input, whose type and shape the model decides */
    bool may_block; /* its backend says that executing it may block; set on submission */
    uint64_t correlation_id;
    kelp_text correlation_string;
    uint64_t priority;
    uint64_t timeout_us;
    uint32_t batch_size; /* at least 1; set on submission */
    kelp_text id;
    kelp_input **inputs; /* those from input_count on are unused: they only keep memory */
    size_t input_count;
    size_t input_spare; /* allocated objects */
    size_t input_capacity;
    /* Requested outputs, sorted and unique; those from output_count on only keep memory. */
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
    uint64_t execute_start_ns; /* valid if `counted_by` is set */
    kelp_stats *counted_by;    /* of the instance, if the server counts for a backend that cannot
                                  report; else NULL */
};

/* Creates a request that belongs to the caller. Takes the reference to the model, also on failure.
 * `pooled` is an object from the calling thread's pool, or NULL if that is empty. */
kelp_status *kelp_request_create(kelp_model_base *take_model, int64_t version, kelp_request *pooled,
                                 kelp_request **out) KELP_MUST_USE;
/* Prepares a request to be executed without the queue. */
kelp_status *kelp_request_begin(kelp_request *request) KELP_MUST_USE;
/* INTERNAL while it is submitted: the request then stays. */
kelp_status *kelp_request_delete(kelp_request *request) KELP_MUST_USE;
/* Frees the memory that a request keeps for its next use. */
void kelp_request_trim(kelp_request *request);
/* Frees a request that is in no pool; called by the pool. */
void kelp_request_free(kelp_request *request);

kelp_status *kelp_request_set_id(kelp_request *request, const char *id) KELP_MUST_USE;
/* INVALID_ARGUMENT if it is longer than 128 characters. */
kelp_status *kelp_request_set_correlation_string(kelp_request *request,
                                                 const char *id) KELP_MUST_USE;

/* "[request id: ID] ": the beginning of Triton's messages. */
#define KELP_REQUEST_TAG "[request id: %s] "
const char *kelp_request_tag(const kelp_request *request);

/* ---- inputs and outputs ---- */
/* Adds an input. ALREADY_EXISTS if the name exists, INVALID_ARGUMENT if the rank is too high. */
kelp_status *kelp_request_add_input(kelp_request *request, const char *name,
                                    TRITONSERVER_DataType datatype, const int64_t *shape,
                                    uint64_t rank, kelp_input **out) KELP_MUST_USE;
/* Adds the only input of a request, whose type and shape follow from the model's configuration.
 * INVALID_ARGUMENT if there are others. */
kelp_status *kelp_request_add_raw_input(kelp_request *request, const char *name) KELP_MUST_USE;
kelp_input *kelp_request_find_input(const kelp_request *request, const char *name);
/* INVALID_ARGUMENT "input 'NAME' does not exist in request". */
kelp_status *kelp_request_get_input(const kelp_request *request, const char *name,
                                    kelp_input **out) KELP_MUST_USE;
kelp_status *kelp_request_remove_input(kelp_request *request, const char *name) KELP_MUST_USE;
void kelp_request_remove_inputs(kelp_request *request);
void kelp_input_clear_data(kelp_input *input);
/* Appends a block of data, which stays the caller's; `policy` may be NULL. */
kelp_status *kelp_request_append(kelp_request *request, kelp_input *input, const char *policy,
                                 const void *base,
                                 const kelp_buffer_attributes *attributes) KELP_MUST_USE;
/* Returns the data for a host policy, or the common data if the policy (or NULL) has none. */
const kelp_data *kelp_input_data(const kelp_input *input, const char *policy);

kelp_status *kelp_request_add_output(kelp_request *request, const char *name) KELP_MUST_USE;
void kelp_request_remove_output(kelp_request *request, const char *name);

/* The requested outputs, or all outputs of the model if none was requested. */
size_t kelp_request_output_count(const kelp_request *request);
const char *kelp_request_output_name(const kelp_request *request, size_t index);

/* ---- submission ---- */
/* Checks the request against its model's configuration; sets batch_size and the shapes that the
 * backend sees. */
kelp_status *kelp_request_normalize(kelp_request *request) KELP_MUST_USE;
/* Submits a request to the server that created it. On success request and trace are the server's
 * until their release callbacks; on failure both stay the caller's. */
kelp_status *kelp_request_submit(kelp_request_host *host, kelp_request *request,
                                 kelp_trace *trace) KELP_MUST_USE;
/* INTERNAL if the request was never submitted. Thread-safe. */
kelp_status *kelp_request_cancel(kelp_request *request) KELP_MUST_USE;
kelp_status *kelp_request_is_cancelled(const kelp_request *request, bool *out) KELP_MUST_USE;

/* ---- execution ---- */
/* PENDING -> EXECUTING. */
void kelp_request_start(kelp_request *request);
/* Returns an executing request to its caller. INTERNAL if it is not executing. */
kelp_status *kelp_request_release(kelp_request *request, uint32_t flags) KELP_MUST_USE;
/* Responds with an error, which stays the caller's, and releases an executing request. */
void kelp_request_fail(kelp_request *request, const kelp_status *error);
/* Rejects a pending request that will not be executed: counts it in `stats`, responds with the
 * error, which stays the caller's, and releases it. */
void kelp_request_reject(kelp_request *request, kelp_stats *stats, const kelp_status *error);

#endif
