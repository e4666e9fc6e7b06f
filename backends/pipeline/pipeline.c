/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend "pipeline": OUTPUT = (INPUT0 + INPUT1) * (INPUT0 - INPUT1). Two other models compute
 * the sum and the difference at the same time; the parameters "sum_model" and "difference_model"
 * (default "addsub") are their names. Both have the FP32 inputs INPUT0 and INPUT1.
 *
 * No thread waits: execute keeps the request, starts the two calls and returns. The call that ends
 * last combines the results and sends the response.
 */
#include <kelp/backend.h>

#include <stdatomic.h>
#include <stdlib.h>

enum { CALLS = 2 };
static const char *const parameters[CALLS] = {"sum_model", "difference_model"};
static const char *const outputs[CALLS] = {"OUTPUT0", "OUTPUT1"};

typedef struct job {
    kelp_backend_request *request;
    kelp_backend_call *calls[CALLS]; /* NULL: not created */
    kelp_status *failure;            /* a failure to start the calls */
    atomic_uint open;                /* calls in flight, and execute */
} job;

static kelp_status *join(job *j) {
    kelp_tensor parts[CALLS];
    kelp_backend_response *response;
    float *out;
    for (int i = 0; i < CALLS; i++) {
        KELP_TRY(kelp_status_clone(kelp_backend_call_failure(j->calls[i])));
        KELP_TRY(kelp_backend_call_output(j->calls[i], 0, outputs[i], KELP_F32, KELP_ANY_RANK,
                                          &parts[i]));
    }
    int64_t count = kelp_tensor_elements(&parts[0]);
    if (kelp_tensor_elements(&parts[1]) != count)
        return KELP_ERROR(KELP_INTERNAL, "the outputs of the two models differ in shape");
    KELP_TRY(kelp_backend_respond(j->request, &response));
    KELP_TRY(
        kelp_backend_output(response, "OUTPUT", KELP_F32, parts[0].rank, parts[0].shape, &out));
    for (int64_t i = 0; i < count; i++)
        out[i] = ((const float *)parts[0].data)[i] * ((const float *)parts[1].data)[i];
    return NULL;
}

/* Ends a call or execute. The last one sends the response. */
static void leave(job *j) {
    if (atomic_fetch_sub(&j->open, 1) != 1)
        return;
    kelp_status *status = j->failure != NULL ? j->failure : join(j);
    if (status != NULL)
        kelp_backend_fail(j->request, status);
    for (int i = 0; i < CALLS; i++)
        kelp_backend_call_destroy(j->calls[i]);
    kelp_backend_release(j->request); /* last: the request keeps the model and this code loaded */
    free(j);
}

static void on_call(kelp_backend_call *call, const kelp_status *failure, bool is_last,
                    void *userp) {
    (void)call;
    (void)failure;
    if (is_last)
        leave(userp);
}

static kelp_status *start(job *j, kelp_backend_model *model, int index) {
    kelp_tensor input;
    kelp_backend_call **call = &j->calls[index];
    KELP_TRY(kelp_backend_call_create(
        model, j->request, kelp_backend_model_text(model, parameters[index], "addsub"), -1, call));
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "INPUT1" : "INPUT0";
        KELP_TRY(kelp_backend_input(j->request, name, KELP_F32, KELP_ANY_RANK, &input));
        KELP_TRY(kelp_backend_call_input(*call, name, &input));
    }
    KELP_TRY(kelp_backend_call_wants(*call, outputs[index]));
    atomic_fetch_add(&j->open, 1);
    kelp_status *status = kelp_backend_call_start(*call, on_call, j);
    if (status != NULL)
        atomic_fetch_sub(&j->open, 1);
    return status;
}

static kelp_status *execute(kelp_backend_instance *instance, kelp_backend_request *request) {
    job *j = calloc(1, sizeof *j);
    if (j == NULL)
        return kelp_status_oom();
    j->request = request;
    atomic_init(&j->open, 1);
    kelp_backend_keep(request);
    for (int i = 0; i < CALLS && j->failure == NULL; i++)
        j->failure = start(j, kelp_backend_instance_model(instance), i);
    leave(j);
    return NULL;
}

static const kelp_backend_definition pipeline = {
    .struct_size = sizeof pipeline, .name = "pipeline", .execute_one = execute};
KELP_TRITON_BACKEND(pipeline)
