/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend "budget": its own batching strategy and its own metrics. A batch ends before its
 * inputs exceed "max_batch_bytes", a parameter of the configuration. OUTPUT is INPUT, and BATCH is
 * the number of requests in the batch. "execute_delay_ms" is the duration of an execution.
 *
 *   INPUT FP32 [n]; OUTPUT FP32 [n], BATCH INT32 [1]
 *   budget_max_batch_bytes, a gauge; budget_requests_total, a counter; budget_batch_bytes, a
 *   histogram
 */
#include <kelp/backend.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The state of a model. */
typedef struct budget_model {
    int64_t max_batch_bytes, delay_ms;
    kelp_backend_metric *limit, *requests, *sizes;
} budget_model;

/* The state of a batch in formation. */
typedef struct budget_batch {
    uint64_t size_bytes;
} budget_batch;

static kelp_status *create_metrics(kelp_backend_model *model, budget_model *state) {
    static const double bounds[] = {64, 1024, 16384, 262144};
    kelp_backend_metric_spec spec = {.kind = TRITONSERVER_METRIC_KIND_GAUGE,
                                     .name = "budget_max_batch_bytes",
                                     .help = "Maximum size of the inputs of a batch"};
    KELP_TRY(kelp_backend_metric_create(model, &spec, &state->limit));
    spec.kind = TRITONSERVER_METRIC_KIND_COUNTER;
    spec.name = "budget_requests_total";
    spec.help = "Number of executed requests";
    KELP_TRY(kelp_backend_metric_create(model, &spec, &state->requests));
    spec = (kelp_backend_metric_spec){.kind = TRITONSERVER_METRIC_KIND_HISTOGRAM,
                                      .name = "budget_batch_bytes",
                                      .help = "Size of the inputs of a batch",
                                      .bounds = bounds,
                                      .bound_count = sizeof bounds / sizeof bounds[0]};
    return kelp_backend_metric_create(model, &spec, &state->sizes);
}

static kelp_status *model_create(kelp_backend_model *model, void **out_state) {
    budget_model *state = calloc(1, sizeof *state);
    if (state == NULL)
        return kelp_status_oom();
    *out_state = state;
    KELP_TRY(kelp_backend_model_i64(model, "max_batch_bytes", 65536, &state->max_batch_bytes));
    KELP_TRY(kelp_backend_model_i64(model, "execute_delay_ms", 0, &state->delay_ms));
    kelp_status *status = create_metrics(model, state);
    if (kelp_status_code(status) == KELP_UNIMPLEMENTED) {
        KELP_BACKEND_LOG_STATUS("the model has no metrics", status);
        return NULL;
    }
    KELP_TRY(status);
    return kelp_backend_metric_set(state->limit, (double)state->max_batch_bytes);
}

static void model_destroy(void *model_state) {
    budget_model *state = model_state;
    kelp_backend_metric_destroy(state->limit);
    kelp_backend_metric_destroy(state->requests);
    kelp_backend_metric_destroy(state->sizes);
    free(state);
}

static kelp_status *size_of(const kelp_backend_request *request, uint64_t *out_size_bytes) {
    kelp_backend_pieces input;
    KELP_TRY(kelp_backend_pieces_init(&input, request, "INPUT"));
    *out_size_bytes = input.size_bytes;
    return NULL;
}

/* The server holds a lock during this function: it only adds up sizes. */
static kelp_status *batch_include(kelp_backend_model *model, void *batch_state,
                                  kelp_backend_request *request, bool *out_include) {
    const budget_model *state = kelp_backend_model_state(model);
    budget_batch *batch = batch_state;
    uint64_t size_bytes;
    KELP_TRY(size_of(request, &size_bytes));
    batch->size_bytes += size_bytes;
    *out_include = batch->size_bytes <= (uint64_t)state->max_batch_bytes;
    return NULL;
}

static kelp_status *respond(kelp_backend_request *request, size_t request_count) {
    int64_t one[2] = {kelp_backend_request_batch(request), 1};
    kelp_tensor input;
    kelp_backend_response *response;
    int32_t *counts;
    KELP_TRY(kelp_backend_input(request, "INPUT", KELP_F32, KELP_ANY_RANK, &input));
    KELP_TRY(kelp_backend_respond(request, &response));
    KELP_TRY(kelp_backend_put_tensor(response, "OUTPUT", &input));
    KELP_TRY(kelp_backend_output(response, "BATCH", KELP_I32, 2, one, &counts));
    for (int64_t i = 0; i < one[0]; i++)
        counts[i] = (int32_t)request_count;
    return NULL;
}

static kelp_status *count(budget_model *state, size_t request_count, uint64_t size_bytes) {
    if (state->sizes == NULL)
        return NULL; /* the server has no metrics */
    KELP_TRY(kelp_backend_metric_add(state->requests, (double)request_count));
    return kelp_backend_metric_observe(state->sizes, (double)size_bytes);
}

static kelp_status *execute(kelp_backend_instance *instance, kelp_backend_request **requests,
                            size_t request_count) {
    budget_model *state = kelp_backend_model_state(kelp_backend_instance_model(instance));
    uint64_t total_bytes = 0;
    const struct timespec delay = {.tv_sec = state->delay_ms / 1000,
                                   .tv_nsec = (long)(state->delay_ms % 1000) * 1000000};
    nanosleep(&delay, NULL);
    for (size_t i = 0; i < request_count; i++) {
        uint64_t size_bytes = 0;
        kelp_status *status = respond(requests[i], request_count);
        if (status == NULL)
            status = size_of(requests[i], &size_bytes);
        total_bytes += size_bytes;
        if (status != NULL)
            kelp_backend_fail(requests[i], status);
    }
    return count(state, request_count, total_bytes);
}

static const kelp_backend_definition budget = {
    .struct_size = sizeof budget,
    .name = "budget",
    .model_create = model_create,
    .model_destroy = model_destroy,
    .execute = execute,
    .batch_include = batch_include,
    .batch_state_bytes = sizeof(budget_batch),
};
KELP_TRITON_BACKEND_WITH_BATCHING(budget)
