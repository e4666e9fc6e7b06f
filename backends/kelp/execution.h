/* SPDX-License-Identifier: Apache-2.0 */
/* The execution of requests on a model of an instance. Not thread-safe. */
#ifndef KELP_BACKENDS_KELP_EXECUTION_H_
#define KELP_BACKENDS_KELP_EXECUTION_H_

#include "ragged.h"

typedef struct kelp_execution {
    kelp_compute_model *model; /* initialized; not owned */
    const kelp_compute_metadata *metadata;
    kelp_backend_memory input_memory, output_memory; /* that the model prefers */
    size_t max_items;                                /* per batch; 0: unlimited */
    size_t capacity;        /* number of requests for which there is memory */
    kelp_infer_item *items; /* one for each request */
    kelp_tensor *inputs, *outputs;
    bool *requested;     /* by request and output */
    const char **states; /* by output: its name as a state of sequences, or NULL */
    bool has_states;
    bool resets;                     /* a new sequence resets the model */
    kelp_backend_request **requests; /* the requests that run */
    size_t request_count;
    const kelp_ragged *ragged; /* its `inputs` is NULL: the model has no ragged batches */
} kelp_execution;

/* Allocates memory for one request. The caller has set `model` and `ragged`. `of` is the model in
 * the server. On failure, the caller still deinitializes the execution. */
kelp_status *kelp_execution_init(kelp_execution *execution, const kelp_backend_model *of,
                                 size_t max_items) KELP_MUST_USE;
void kelp_execution_deinit(kelp_execution *execution);

/* Runs one request, or several as one batch. A request of a batch that fails does so alone; the
 * returned failure is of all requests. Does not allocate once it has run as many requests. */
kelp_status *kelp_execution_run(kelp_execution *execution, kelp_backend_instance *instance,
                                kelp_backend_request **requests, size_t count) KELP_MUST_USE;

#endif
