/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend "identity": the output OUTPUT… is a copy of the input INPUT…, of any type and shape;
 * there is no output for an optional input that the request lacks.
 * Options for tests and benchmarks:
 *
 *   configuration   execute_delay_ms      delays each execution
 *                   instance_delay_ms     delays the creation of an instance
 *   request         delay_ms              delays its execution, unless it is cancelled
 *                   echo (true)           the response has the request's parameters
 */
#include <kelp/backend.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct model {
    int64_t execute_delay_ms, instance_delay_ms;
} model;

static void wait_ms(int64_t ms) {
    struct timespec delay = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    if (ms > 0)
        nanosleep(&delay, NULL);
}

static kelp_status *model_create(kelp_backend_model *handle, void **out_state) {
    model *m = calloc(1, sizeof *m);
    if (m == NULL)
        return kelp_status_oom();
    *out_state = m;
    KELP_TRY(kelp_backend_model_i64(handle, "execute_delay_ms", 0, &m->execute_delay_ms));
    return kelp_backend_model_i64(handle, "instance_delay_ms", 0, &m->instance_delay_ms);
}

static kelp_status *instance_create(kelp_backend_instance *instance, void **out_state) {
    const model *m = kelp_backend_model_state(kelp_backend_instance_model(instance));
    wait_ms(m->instance_delay_ms);
    *out_state = NULL;
    return NULL;
}

static bool may_block(kelp_backend_model *handle, kelp_backend_request *request) {
    const model *m = kelp_backend_model_state(handle);
    int64_t delay_ms = 0;
    kelp_status *status = kelp_backend_request_i64(request, "delay_ms", 0, &delay_ms);
    kelp_status_free(status); /* execute reports it again */
    return m->execute_delay_ms > 0 || delay_ms > 0;
}

/* Waits in small steps, so that it ends soon after a cancellation. */
static kelp_status *wait_for_request(kelp_backend_request *request) {
    int64_t left_ms = 0;
    KELP_TRY(kelp_backend_request_i64(request, "delay_ms", 0, &left_ms));
    for (; left_ms > 0; left_ms -= 5) {
        if (kelp_backend_request_is_cancelled(request))
            return KELP_ERROR(KELP_CANCELLED, "the request was cancelled");
        wait_ms(left_ms < 5 ? left_ms : 5);
    }
    return NULL;
}

static kelp_status *echo_parameters(const kelp_backend_request *request,
                                    kelp_backend_response *response) {
    kelp_backend_parameter p;
    bool echo;
    KELP_TRY(kelp_backend_request_bool(request, "echo", false, &echo));
    for (size_t i = 0; echo && kelp_backend_request_parameter(request, i, &p); i++) {
        if (p.type == TRITONSERVER_PARAMETER_STRING)
            KELP_TRY(kelp_backend_set_text(response, p.name, p.text));
        else if (p.type == TRITONSERVER_PARAMETER_INT)
            KELP_TRY(kelp_backend_set_i64(response, p.name, p.i64));
        else if (p.type == TRITONSERVER_PARAMETER_BOOL)
            KELP_TRY(kelp_backend_set_bool(response, p.name, p.boolean));
        else if (p.type == TRITONSERVER_PARAMETER_DOUBLE)
            KELP_TRY(kelp_backend_set_f64(response, p.name, p.f64));
    }
    return NULL;
}

/* Copies the bytes of a tensor, including serialized strings. */
static kelp_status *copy_tensor(kelp_backend_request *request, kelp_backend_response *response,
                                const char *output_name) {
    char input_name[256];
    kelp_backend_pieces pieces;
    void *out;
    if (strncmp(output_name, "OUTPUT", 6) != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "identity expects outputs named OUTPUT..., not '%s'", output_name);
    snprintf(input_name, sizeof input_name, "INPUT%s", output_name + 6);
    if (!kelp_backend_has_input(request, input_name))
        return NULL; /* an optional input that the request lacks */
    KELP_TRY(kelp_backend_pieces_init(&pieces, request, input_name));
    KELP_TRY(kelp_backend_output_bytes(response, output_name, pieces.dtype, pieces.rank,
                                       pieces.shape, (size_t)pieces.size_bytes, &out));
    return kelp_backend_pieces_copy(&pieces, out, (size_t)pieces.size_bytes);
}

static kelp_status *respond_to(kelp_backend_request *request) {
    kelp_backend_response *response;
    KELP_TRY(wait_for_request(request));
    KELP_TRY(kelp_backend_respond(request, &response));
    KELP_TRY(echo_parameters(request, response));
    for (size_t i = 0; i < kelp_backend_request_output_count(request); i++)
        KELP_TRY(copy_tensor(request, response, kelp_backend_request_output_name(request, i)));
    return NULL;
}

/* Waits once per batch, like a slow model. Each request fails by itself. */
static kelp_status *execute(kelp_backend_instance *instance, kelp_backend_request **requests,
                            size_t request_count) {
    const model *m = kelp_backend_model_state(kelp_backend_instance_model(instance));
    wait_ms(m->execute_delay_ms);
    for (size_t i = 0; i < request_count; i++) {
        kelp_status *status = respond_to(requests[i]);
        if (status != NULL)
            kelp_backend_fail(requests[i], status);
        kelp_backend_release(requests[i]);
    }
    return NULL;
}

static const kelp_backend_definition identity = {
    .struct_size = sizeof identity,
    .name = "identity",
    .flags = KELP_BACKEND_DOES_NOT_BLOCK,
    .model_create = model_create,
    .model_destroy = free,
    .instance_create = instance_create,
    .may_block = may_block,
    .execute = execute,
};
KELP_TRITON_BACKEND(identity)
