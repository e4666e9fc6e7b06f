/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend that executes batches: it joins INPUT0 of all requests, doubles it and splits the
 * result. The model's name selects further behavior. A request with the id "gate" blocks its
 * execution until it is cancelled, so that a test can have several requests in one batch.
 */
#include "sdk_backend.h"

#include <time.h>

static kelp_status *pass_gate(kelp_backend_request *request) {
    if (strcmp(kelp_backend_request_id(request), "gate") != 0)
        return NULL;
    while (!kelp_backend_request_is_cancelled(request))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return KELP_ERROR(KELP_CANCELLED, "the gate is open");
}

static void wait_a_little(void) {
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

/* Waits before, in and after the computation. */
static kelp_status *waiting(kelp_backend_instance *instance, kelp_backend_request **requests,
                            size_t count) {
    kelp_tensor x;
    wait_a_little();
    KELP_TRY(kelp_backend_gather(requests, count, "INPUT0", KELP_I32, 2, &x));
    kelp_backend_compute_begins(instance);
    wait_a_little();
    kelp_backend_compute_ends(instance);
    wait_a_little();
    return kelp_backend_scatter(requests, count, "OUTPUT0", NULL, &x);
}

/* Checks tensors that cannot be split by the shapes of an input. */
static void check_wrong_tensors(kelp_backend_request **requests, size_t count) {
    static int32_t zeros[2000];
    static const int64_t primes[] = {4, 101}, none[] = {4, 0}, many[] = {1000};
    kelp_tensor t;
    CHECK(kelp_tensor_init(&t, KELP_I32, 2, primes, zeros) == NULL);
    CHECK(fails_with(kelp_backend_scatter(requests, count, "OUTPUT0", "INPUT0", &t),
                     KELP_INVALID_ARGUMENT, "expected a multiple of 101"));
    CHECK(kelp_tensor_init(&t, KELP_I32, 2, none, zeros) == NULL);
    CHECK(fails_with(kelp_backend_scatter(requests, count, "OUTPUT0", "INPUT0", &t),
                     KELP_INVALID_ARGUMENT, "expected a multiple of 0"));
    CHECK(kelp_tensor_init(&t, KELP_I32, 1, many, zeros) == NULL);
    t.strides[0] = 2;
    CHECK(fails_with(kelp_backend_scatter(requests, count, "OUTPUT0", "INPUT0", &t),
                     KELP_INVALID_ARGUMENT, "a tensor with strides cannot be split"));
}

static kelp_status *twofold(kelp_backend_request **requests, size_t count, const char *like) {
    kelp_tensor x, y;
    kelp_backend_instance *instance = kelp_backend_request_instance(requests[0]);
    if (like)
        KELP_TRY(kelp_backend_gather_flat(requests, count, "INPUT0", KELP_I32, &x));
    else
        KELP_TRY(kelp_backend_gather(requests, count, "INPUT0", KELP_I32, 2, &x));
    int64_t elements = kelp_tensor_elements(&x);
    int32_t *out = kelp_backend_request_alloc(requests[0], kelp_tensor_bytes(&x) + 1);
    if (!out)
        return kelp_status_oom();
    kelp_backend_compute_begins(instance);
    for (int64_t i = 0; i < elements; i++)
        out[i] = 2 * ((const int32_t *)x.data)[i];
    kelp_backend_compute_ends(instance);
    KELP_TRY(kelp_tensor_init(&y, KELP_I32, x.rank, x.shape, out));
    return kelp_backend_scatter(requests, count, "OUTPUT0", like, &y);
}

/* Returns the batch inputs of the configuration as outputs of the first request. */
static kelp_status *batch_inputs(kelp_backend_request **requests, size_t count) {
    kelp_backend_model *model =
        kelp_backend_instance_model(kelp_backend_request_instance(requests[0]));
    kelp_backend_response *response;
    kelp_tensor t;
    const char *name;
    KELP_TRY(kelp_backend_respond(requests[0], &response));
    for (size_t i = 0; i < kelp_backend_batch_input_count(model); i++) {
        KELP_TRY(kelp_backend_batch_input(requests, count, i, &name, &t));
        KELP_TRY(kelp_backend_put_tensor(response, name, &t));
    }
    CHECK(fails_with(kelp_backend_batch_input(requests, count, 99, &name, &t), KELP_OUT_OF_RANGE,
                     "no batch_input 99"));
    return NULL;
}

/* Checks whether joined inputs are in the buffer of the first request. */
static kelp_status *check_place(kelp_backend_request **requests, size_t count, bool in_place) {
    kelp_tensor rows, flat;
    kelp_backend_pieces pieces;
    const void *data = NULL;
    size_t size_bytes = 0;
    KELP_TRY(kelp_backend_pieces_init(&pieces, requests[0], "INPUT0"));
    KELP_TRY(kelp_backend_pieces_next(&pieces, &data, &size_bytes));
    KELP_TRY(kelp_backend_gather(requests, count, "INPUT0", KELP_I32, 2, &rows));
    KELP_TRY(kelp_backend_gather_flat(requests, count, "INPUT0", KELP_I32, &flat));
    CHECK(count == 3 && (rows.data == data) == in_place && (flat.data == data) == in_place);
    return twofold(requests, count, NULL);
}

static kelp_status *execute(kelp_backend_instance *instance, kelp_backend_request **requests,
                            size_t request_count) {
    const char *name = kelp_backend_model_name(kelp_backend_instance_model(instance));
    KELP_TRY(pass_gate(requests[0]));
    if (strcmp(name, "fail") == 0 && request_count > 1) {
        /* The second request already has its response; the others get the failure. */
        kelp_backend_response *response;
        KELP_TRY(twofold(&requests[1], 1, NULL));
        KELP_TRY(kelp_backend_respond(requests[1], &response));
        KELP_TRY(kelp_backend_send(response, KELP_BACKEND_FINAL, NULL));
        return KELP_ERROR(KELP_INTERNAL, "the batch broke");
    }
    if (strcmp(name, "adjacent") == 0 || strcmp(name, "apart") == 0)
        return check_place(requests, request_count, strcmp(name, "adjacent") == 0);
    if (strcmp(name, "waiting") == 0) {
        check_wrong_tensors(requests, request_count);
        return waiting(instance, requests, request_count);
    }
    if (strcmp(name, "batch_input") == 0) {
        KELP_TRY(batch_inputs(requests, request_count));
        return twofold(requests, request_count, "INPUT0");
    }
    return twofold(requests, request_count, NULL);
}

static const kelp_backend_definition sdkbatch = {
    .struct_size = sizeof sdkbatch, .name = "sdkbatch", .execute = execute};
KELP_TRITON_BACKEND(sdkbatch)
