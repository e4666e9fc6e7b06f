/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend "repeat", for decoupled models: sends one response for each element of IN. Response i
 * has OUT = IN[i] and IDX = i, and is sent DELAY[i] milliseconds after the previous one. The
 * instance is busy for WAIT[0] milliseconds. A separate thread sends the responses with a factory,
 * after the release of the request. Cancellation ends them.
 *
 *   IN INT32 [n], DELAY UINT32 [n] (optional), WAIT UINT32 [1] (optional); OUT INT32 [1],
 *   IDX UINT32 [1]
 */
#include <kelp/backend.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct work {
    kelp_backend_factory *factory;
    size_t count;
    uint32_t *delays_ms; /* NULL: no delays */
    int32_t values[];    /* followed by the delays */
} work;

static void wait_ms(uint32_t ms) {
    struct timespec delay = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&delay, NULL);
}

/* Waits in small steps, so that it ends soon after a cancellation. */
static void wait_for_next(const work *w, uint32_t ms) {
    while (ms > 0 && !kelp_backend_factory_is_cancelled(w->factory)) {
        uint32_t slice = ms < 10 ? ms : 10;
        wait_ms(slice);
        ms -= slice;
    }
}

static kelp_status *send_one(const work *w, size_t index) {
    static const int64_t one[] = {1};
    uint32_t number = (uint32_t)index;
    kelp_backend_response *response;
    KELP_TRY(kelp_backend_factory_respond(w->factory, &response));
    kelp_status *status = kelp_backend_put(response, "OUT", KELP_I32, 1, one, &w->values[index]);
    if (status == NULL)
        status = kelp_backend_put(response, "IDX", KELP_U32, 1, one, &number);
    return kelp_backend_send(response, status != NULL ? KELP_BACKEND_FINAL : 0, status);
}

static void *stream(void *userp) {
    work *w = userp;
    kelp_status *status = NULL;
    for (size_t i = 0; i < w->count && status == NULL; i++) {
        if (w->delays_ms != NULL)
            wait_for_next(w, w->delays_ms[i]);
        if (kelp_backend_factory_is_cancelled(w->factory))
            break;
        status = send_one(w, i);
    }
    KELP_BACKEND_LOG_STATUS("repeat", status);
    kelp_backend_factory_destroy(w->factory); /* sends the final flag */
    free(w);
    return NULL;
}

static kelp_status *copy_work(kelp_backend_request *request, work **out) {
    kelp_tensor in, delays;
    bool delayed = kelp_backend_has_input(request, "DELAY");
    KELP_TRY(kelp_backend_input(request, "IN", KELP_I32, 1, &in));
    if (delayed) {
        KELP_TRY(kelp_backend_input(request, "DELAY", KELP_U32, 1, &delays));
        if (delays.shape[0] != in.shape[0])
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "input 'DELAY' has the wrong shape: expected %lld elements, found %lld",
                (long long)in.shape[0], (long long)delays.shape[0]);
    }
    size_t count = (size_t)in.shape[0];
    work *w = calloc(1, sizeof *w + 2 * count * sizeof w->values[0]);
    if (w == NULL)
        return kelp_status_oom();
    w->count = count;
    if (count > 0)
        memcpy(w->values, in.data, count * sizeof w->values[0]);
    if (delayed && count > 0) {
        w->delays_ms = (uint32_t *)&w->values[count];
        memcpy(w->delays_ms, delays.data, count * sizeof *w->delays_ms);
    }
    *out = w;
    return NULL;
}

static kelp_status *execute(kelp_backend_instance *instance, kelp_backend_request *request) {
    work *w = NULL;
    kelp_tensor wait;
    pthread_t thread;
    uint32_t busy_ms = 0;
    (void)instance;
    if (kelp_backend_has_input(request, "WAIT")) {
        KELP_TRY(kelp_backend_input(request, "WAIT", KELP_U32, 1, &wait));
        busy_ms = kelp_tensor_elements(&wait) > 0 ? KELP_AT(const uint32_t, &wait, 0) : 0;
    }
    KELP_TRY(copy_work(request, &w));
    kelp_status *status = kelp_backend_factory_create(request, &w->factory);
    if (status == NULL && pthread_create(&thread, NULL, stream, w) != 0)
        status = KELP_ERROR(KELP_UNAVAILABLE, "cannot start a thread");
    if (status != NULL) {
        kelp_backend_fail(request, status);
        kelp_backend_factory_destroy(w->factory);
        free(w);
        return NULL;
    }
    pthread_detach(thread);
    wait_ms(busy_ms);
    return NULL;
}

static kelp_status *model_create(kelp_backend_model *model, void **out_state) {
    *out_state = NULL;
    if (!kelp_backend_model_is_decoupled(model))
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "model '%s' is not decoupled: expected model_transaction_policy { decoupled: true }",
            kelp_backend_model_name(model));
    return NULL;
}

static const kelp_backend_definition repeat = {
    .struct_size = sizeof repeat,
    .name = "repeat",
    .model_create = model_create,
    .execute_one = execute,
};
KELP_TRITON_BACKEND(repeat)
