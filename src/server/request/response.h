/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Responses and what makes them. A kelp_response is what both TRITONSERVER_InferenceResponse and
 * TRITONBACKEND_Response point at; a kelp_factory belongs to one submission of a request and
 * outlives the request.
 *
 * A factory counts two things. `refs` keeps its memory. `open` counts what may still answer: the
 * executing request, each TRITONBACKEND_ResponseFactory, each response that is not sent. When it
 * reaches 0 and nobody said FINAL, the server says it: with an error when there was no response at
 * all, so that no client waits for ever. The model is busy until then.
 *
 * Threads: a response belongs to one thread at a time; a factory's counters and flag are atomic.
 */
#ifndef KELP_SERVER_REQUEST_RESPONSE_H_
#define KELP_SERVER_REQUEST_RESPONSE_H_

#include "server/request/request.h"
#include "server/metrics/stats.h"

struct kelp_factory {
    kelp_factory *next; /* in a pool */
    kelp_stripe *home;  /* whose pool it goes back to */
    kelp_model *model;  /* a reference */
    atomic_uint refs;
    atomic_uint open;
    atomic_bool cancelled;
    atomic_bool final_sent;
    uint64_t start_ns;            /* of the request; monotonic */
    atomic_ullong response_count; /* sent */
    atomic_bool failed;           /* one of them carried an error */
    atomic_ullong reported_count; /* of which statistics were reported */
    kelp_response_allocator *allocator;
    void *allocator_userp;
    TRITONSERVER_InferenceResponseCompleteFn_t response_fn;
    void *response_userp;
    kelp_text id;
    kelp_trace
        *trace; /* owned: given back when the submission is over and its responses are gone */
    atomic_uint trace_users;
    atomic_bool released; /* the request is its owner's again */
    atomic_ullong serial; /* of the submission: another one when the memory is used again */
    /* Whose statistics the server sees to, when all is said: set on release, for backends that
     * cannot report. */
    kelp_instance *counted_by;
    kelp_request_times times;
    uint32_t batch_size;
    _Atomic(struct kelp_cache_ticket *) ticket; /* owned; NULL unless the answer is to be cached */
};

typedef struct kelp_response kelp_response;

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

struct kelp_response {
    kelp_response *next;   /* in a pool */
    kelp_stripe *home;     /* whose pool it goes back to */
    kelp_factory *factory; /* a reference */
    bool sent;
    kelp_status *error;    /* owned */
    kelp_output **outputs; /* those beyond output_count are spare */
    size_t output_count;
    size_t output_spare;
    size_t output_capacity;
    kelp_params params;
};

/* For one submission: `refs` is 2 (the request's and that of `open`), `open` 1 (the request). Model
 * must be entered. */
kelp_status *kelp_factory_create(kelp_request *request, kelp_factory **out) KELP_MUST_USE;
void kelp_factory_retain(kelp_factory *factory);
void kelp_factory_release(kelp_factory *factory);
/* One more, one fewer who may answer. Closing the last one may call the response callback and lets
 * the model go. */
/* false when the submission is over: nobody can answer any more. */
bool kelp_factory_open(kelp_factory *factory);
void kelp_factory_close(kelp_factory *factory);
/* Counts a request of a backend that cannot report, by what was answered; once. Nobody else answers
 * at the same time. */
void kelp_factory_count(kelp_factory *factory);
/* Takes back a submission that failed before anybody saw it: closes without answering. */
void kelp_factory_abandon(kelp_factory *factory);
void kelp_factory_free(kelp_factory *factory); /* for the pool */

/* A response that counts as open. Runs the allocator's start callback. INTERNAL when the submission
 * is over. */
kelp_status *kelp_response_create(kelp_factory *factory, kelp_response **out) KELP_MUST_USE;
/* Gives buffers back through the allocator. A response that was not sent stops counting as open. */
void kelp_response_delete(kelp_response *response);
void kelp_response_free(kelp_response *response); /* for the pool */
/* Hands the response to the callback, who owns it then. `error` is copied. After FINAL nothing is
 * handed on: the response is deleted, and INTERNAL says so. */
kelp_status *kelp_response_send(kelp_response *take_response, uint32_t flags,
                                const kelp_status *error) KELP_MUST_USE;
/* Flags without a response. */
kelp_status *kelp_factory_send_flags(kelp_factory *factory, uint32_t flags) KELP_MUST_USE;

/* ALREADY_EXISTS when there is one of that name. */
kelp_status *kelp_response_add_output(kelp_response *response, const char *name,
                                      TRITONSERVER_DataType datatype, const int64_t *shape,
                                      uint32_t rank, kelp_output **out) KELP_MUST_USE;
/* The same for an output of the shape that clients see, as it was stored. */
kelp_status *kelp_response_restore_output(kelp_response *response, const char *name,
                                          TRITONSERVER_DataType datatype, const int64_t *shape,
                                          uint32_t rank, kelp_output **out) KELP_MUST_USE;
/* Runs the allocator; ALREADY_EXISTS on a second call. */
kelp_status *kelp_output_allocate(kelp_output *output, uint64_t size_bytes,
                                  TRITONSERVER_MemoryType memory_type, int64_t memory_type_id,
                                  void **out_buffer) KELP_MUST_USE;

#endif
