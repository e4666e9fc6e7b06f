/* SPDX-License-Identifier: Apache-2.0 */
/* The backend "burst": sends one response for each element of IN while it executes the request, the
 * last one as the final response. The parameter delay_ms delays each of them. */
#include <kelp/backend.h>

#include <stdlib.h>
#include <time.h>

static kelp_status *model_create(kelp_backend_model *model, void **out_state) {
    int64_t *delay_ms = calloc(1, sizeof *delay_ms);
    if (delay_ms == NULL)
        return kelp_status_oom();
    *out_state = delay_ms;
    return kelp_backend_model_i64(model, "delay_ms", 0, delay_ms);
}

static kelp_status *execute(kelp_backend_instance *instance, kelp_backend_request *request) {
    static const int64_t one[] = {1};
    const int64_t *delay_ms = kelp_backend_model_state(kelp_backend_instance_model(instance));
    kelp_tensor in;
    KELP_TRY(kelp_backend_input(request, "IN", KELP_I32, 1, &in));
    for (int64_t i = 0; i < in.shape[0]; i++) {
        kelp_backend_response *response;
        nanosleep(&(struct timespec){.tv_nsec = (long)*delay_ms * 1000000}, NULL);
        KELP_TRY(kelp_backend_respond(request, &response));
        KELP_TRY(kelp_backend_put(response, "OUT", KELP_I32, 1, one, (int32_t *)in.data + i));
        KELP_TRY(kelp_backend_send(response, i + 1 == in.shape[0] ? KELP_BACKEND_FINAL : 0, NULL));
    }
    return NULL;
}

static const kelp_backend_definition burst = {
    .struct_size = sizeof burst,
    .name = "burst",
    .flags = KELP_BACKEND_DOES_NOT_BLOCK,
    .model_create = model_create,
    .model_destroy = free,
    .execute_one = execute,
};
KELP_TRITON_BACKEND(burst)
