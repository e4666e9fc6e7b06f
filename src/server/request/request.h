/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inference requests. TRITONSERVER_InferenceRequest and TRITONBACKEND_Request are pointers to
 * kelp_request.
 *
 * States: INITIALIZED (owned by the caller) -> PENDING (queued) -> EXECUTING (owned by the backend)
 * -> RELEASED (owned by the caller, which deletes or resubmits it). A failed submission leaves the
 * request INITIALIZED.
 *
 * A request is used by one thread at a time, except for cancellation, which is an atomic flag of
 * the factory. Requests are pooled and keep their memory (pool.h), so that a warm server submits
 * without allocating.
 */
#ifndef KELP_SERVER_REQUEST_REQUEST_H_
#define KELP_SERVER_REQUEST_REQUEST_H_

#include "server/config/reshape.h"
#include "server/core/params.h"
#include "server/core/ordered_tree.h"
#include "server/core/values.h"
#include "server/request/model_base.h"

typedef struct kelp_trace kelp_trace;
typedef struct kelp_sequence kelp_sequence;                 /* sequence.h */
typedef struct kelp_request_sequence kelp_request_sequence; /* sequence.h */
typedef struct kelp_sequence_states kelp_sequence_states;   /* states.h */

/* A contiguous part of the data of an input. */
typedef struct kelp_data_block {
    const void *base;
    kelp_buffer_attributes attributes;
} kelp_data_block;

/* The data of an input. Blocks are not empty. */
typedef struct kelp_data {
    kelp_data_block *blocks;
    size_t count;
    size_t capacity;
    uint64_t size_bytes; /* of all blocks */
} kelp_data;

/* Data for the instances with a host policy. */
typedef struct kelp_policy_data {
    kelp_text policy;
    kelp_data data;
} kelp_policy_data;

/* An input of a request. */
typedef struct kelp_input {
    kelp_text name;
    TRITONSERVER_DataType datatype;
    uint32_t client_rank;
    uint32_t rank;
    int64_t client_shape[KELP_SERVER_MAX_RANK]; /* as the client sent it */
    int64_t shape[KELP_SERVER_MAX_RANK];        /* for the backend: after `reshape` */
    kelp_data data;
    kelp_policy_data *policies;
    size_t policy_count;
    size_t policy_capacity;
} kelp_input;

/* The state of a request. */
typedef enum kelp_request_state {
    KELP_REQUEST_INITIALIZED,
    KELP_REQUEST_PENDING,
    KELP_REQUEST_EXECUTING,
    KELP_REQUEST_RELEASING, /* until its release callback is called */
    KELP_REQUEST_RELEASED
} kelp_request_state;

/* A flag of the states EXECUTING and RELEASING: the caller has deleted the request. */
#define KELP_REQUEST_DISCARDED 0x100

/* The reason why a policy rejects a queued request before its deadline. */
typedef enum kelp_rejection {
    KELP_REJECTION_NONE,
    KELP_REJECTION_SEQUENCE_TIMEOUT,  /* of a request of the same sequence */
    KELP_REJECTION_SEQUENCE_CANCELLED /* a request of the same sequence */
} kelp_rejection;

/* A request. */
struct kelp_request {
    kelp_request *next;      /* in a queue or a pool */
    kelp_request_pool *home; /* the pool that it returns to; holds its allocator */
    kelp_model_base *model;  /* a reference; NULL once it was deleted */
    kelp_factory *factory;   /* a reference; of the latest submission */
    kelp_factory *earlier;   /* a reference; of the submission before a prepared one */
    kelp_trace *trace;       /* borrowed from the factory while submitted */
    int64_t requested_version;
    _Atomic int state; /* kelp_request_state */
    uint32_t flags;
    bool correlation_is_string;
    bool raw_input;      /* the only input is raw: its type and shape are deduced */
    uint32_t raw_length; /* the length word of a raw string */
    bool may_block;      /* its execution may block, according to the backend, or takes long; set on
                            submission */
    bool avoids_caller;  /* the execution may wait for the submitting thread */
    bool skips_delay;    /* on the submitting thread, it does not wait for others to join it */
    kelp_due *due;       /* of the submitting thread, borrowed; NULL: other threads execute */
    uint64_t correlation_id;
    kelp_text correlation_string;
    uint64_t priority;
    uint64_t timeout_us;
    uint32_t batch_size; /* at least 1; set on submission */
    kelp_text id;
    kelp_input **inputs; /* elements from input_count on are unused, and keep their memory */
    size_t input_count;
    size_t input_spare; /* allocated objects */
    size_t input_capacity;
    /* Requested outputs, sorted and unique. Elements from output_count on are unused. */
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
    uint64_t deadline_ns; /* it is rejected if it is still queued; set when it is queued */
    kelp_ordered_node queue_order, queue_expiry; /* while it is queued: scheduler/queue.h */
    uint64_t execute_start_ns;                   /* valid if `counted_by` is set */
    kelp_stats *counted_by; /* of the instance, if the server counts for a backend that cannot
                               report; else NULL */
    /* Of models that batch sequences. */
    kelp_request_sequence *sequence; /* memory; NULL until it is needed */
    kelp_sequence *place;         /* the sequence in which it is queued or executes; the policy's */
    kelp_sequence_states *states; /* that its backend may write; NULL: none */
    uint32_t slot;                /* of its sequence, while it executes */
    uint32_t span;         /* direct: the execution has this many slots, from that of the instance's
                              first; 0: no null requests are added */
    uint32_t client_flags; /* the flags to restore on release */
    uint32_t added_inputs; /* the last inputs, which the server added */
    bool in_sequence;      /* kelp_request_enter_sequence was called */
    bool has_generated_id;
    bool replaces_run; /* it starts a sequence whose ID belonged to one that has not ended */
    bool is_null;      /* it fills an empty slot: it requests no outputs, and is not counted */
    kelp_rejection rejection;
};

/* Creates a request, which the caller owns. Takes the reference to the model, also on failure.
 * `pooled` is an object from the calling thread's pool, or NULL if the pool is empty. */
kelp_status *kelp_request_create(kelp_model_base *take_model, int64_t version, kelp_request *pooled,
                                 kelp_request **out) KELP_MUST_USE;
/* Prepares a request to be executed without the queue. */
kelp_status *kelp_request_begin(kelp_request *request) KELP_MUST_USE;
/* Does the same while another request of the model executes, also if the model is retired. */
kelp_status *kelp_request_begin_again(kelp_request *request) KELP_MUST_USE;
/* Returns a request to its pool. INTERNAL, without effect, while it is submitted. */
kelp_status *kelp_request_delete(kelp_request *request) KELP_MUST_USE;
/* Frees the memory that a request keeps for its next use. */
void kelp_request_trim(kelp_request *request);
/* Frees a request. Called by the pool. */
void kelp_request_free(kelp_request *request);

kelp_status *kelp_request_set_id(kelp_request *request, const char *id) KELP_MUST_USE;
/* Sets the correlation ID. INVALID_ARGUMENT if it is longer than 128 characters. */
kelp_status *kelp_request_set_correlation_string(kelp_request *request,
                                                 const char *id) KELP_MUST_USE;

/* The beginning of Triton's messages about a request, for kelp_request_tag. */
#define KELP_REQUEST_TAG "[request id: %s] "
/* Returns the id, or "<id_unknown>". */
const char *kelp_request_tag(const kelp_request *request);

/* ---- inputs and outputs ---- */
/* Adds an input. ALREADY_EXISTS if the name exists, INVALID_ARGUMENT if the rank is too high or the
 * model has far fewer inputs. */
kelp_status *kelp_request_add_input(kelp_request *request, const char *name,
                                    TRITONSERVER_DataType datatype, const int64_t *shape,
                                    uint64_t rank, kelp_input **out) KELP_MUST_USE;
/* Adds a raw input, whose type and shape are deduced from the model's configuration.
 * INVALID_ARGUMENT if the request has other inputs. */
kelp_status *kelp_request_add_raw_input(kelp_request *request, const char *name) KELP_MUST_USE;
/* Returns an input by name, or NULL. */
kelp_input *kelp_request_find_input(const kelp_request *request, const char *name);
/* Returns an input by name. INVALID_ARGUMENT "input 'NAME' does not exist in request". */
kelp_status *kelp_request_get_input(const kelp_request *request, const char *name,
                                    kelp_input **out) KELP_MUST_USE;
kelp_status *kelp_request_remove_input(kelp_request *request, const char *name) KELP_MUST_USE;
void kelp_request_remove_inputs(kelp_request *request);
void kelp_input_clear_data(kelp_input *input);
/* Appends a block of data, which is borrowed. `policy` is a host policy or NULL. Ignores empty
 * blocks. */
kelp_status *kelp_request_append(kelp_request *request, kelp_input *input, const char *policy,
                                 const void *base,
                                 const kelp_buffer_attributes *attributes) KELP_MUST_USE;
/* Returns the data for a host policy; the common data if there is none for it, or it is NULL. */
const kelp_data *kelp_input_data(const kelp_input *input, const char *policy);

/* Requests an output; no effect if it is requested already. INVALID_ARGUMENT if the model has far
 * fewer outputs. */
kelp_status *kelp_request_add_output(kelp_request *request, const char *name) KELP_MUST_USE;
void kelp_request_remove_output(kelp_request *request, const char *name);

/* Returns the number or a name of the requested outputs; of all outputs of the model if none was
 * requested, except for null requests. */
size_t kelp_request_output_count(const kelp_request *request);
const char *kelp_request_output_name(const kelp_request *request, size_t index);

/* ---- submission ---- */
/* Checks the request against its model's configuration; sets batch_size and the shapes for the
 * backend. */
kelp_status *kelp_request_normalize(kelp_request *request) KELP_MUST_USE;
/* Submits a request to the server that created it. On success, the server owns request and trace
 * until it calls their release callbacks. On failure, the caller still owns both. */
kelp_status *kelp_request_submit(kelp_request_host *host, kelp_request *request,
                                 kelp_trace *trace) KELP_MUST_USE;
/* Returns UNAVAILABLE, and counts a rejection, if the queue of the model is full for every request.
 * NULL if that is unknown before the submission. INTERNAL for a deleted request. */
kelp_status *kelp_request_check_queue(const kelp_request *request) KELP_MUST_USE;
/* The two parts of a submission, for requests that are a part of another submission and therefore
 * are accepted while the server stops. kelp_request_prepare checks the request and creates its
 * factory; the caller has entered the model for it. kelp_request_dispatch queues or executes it. On
 * failure of either, the model is left, and the caller still owns request and trace. */
kelp_status *kelp_request_prepare(kelp_request *request, kelp_trace *trace) KELP_MUST_USE;
kelp_status *kelp_request_dispatch(kelp_request *request) KELP_MUST_USE;
/* Sets or reads the flag that the latest submission is cancelled. INTERNAL if the request was never
 * submitted. Thread-safe. */
kelp_status *kelp_request_cancel(kelp_request *request) KELP_MUST_USE;
kelp_status *kelp_request_is_cancelled(const kelp_request *request, bool *out) KELP_MUST_USE;

/* ---- execution ---- */
/* Changes the state from PENDING to EXECUTING. */
void kelp_request_start(kelp_request *request);
/* Returns an executing request to its caller. INTERNAL if it is not executing. */
kelp_status *kelp_request_release(kelp_request *request, uint32_t flags) KELP_MUST_USE;
/* Responds with an error, which is copied, and releases an executing request. */
void kelp_request_fail(kelp_request *request, const kelp_status *error);
/* Rejects a started request before it reaches the backend: counts it in `stats`, responds with the
 * error, which is copied, and releases the request. */
void kelp_request_reject(kelp_request *request, kelp_stats *stats, const kelp_status *error);

#endif
