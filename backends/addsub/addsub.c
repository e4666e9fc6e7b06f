/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend "addsub": OUTPUT0 = INPUT0 + INPUT1, OUTPUT1 = INPUT0 - INPUT1, for FP32 and INT32
 * tensors of any shape. The simplest example of a backend: no state, one function.
 */
#include <kelp/backend.h>

#include <string.h>

static void compute(const kelp_tensor *a, const kelp_tensor *b, bool subtract, void *out) {
    int64_t count = kelp_tensor_elements(a);
    if (a->dtype == KELP_F32) {
        const float *x = a->data, *y = b->data;
        float *z = out;
        for (int64_t i = 0; i < count; i++)
            z[i] = subtract ? x[i] - y[i] : x[i] + y[i];
    } else {
        const uint32_t *x = a->data, *y = b->data; /* unsigned, so that overflow wraps */
        uint32_t *z = out;
        for (int64_t i = 0; i < count; i++)
            z[i] = subtract ? x[i] - y[i] : x[i] + y[i];
    }
}

static kelp_status *execute(kelp_backend_instance *instance, kelp_backend_request *request) {
    kelp_tensor a, b;
    kelp_backend_response *response;
    (void)instance;
    KELP_TRY(kelp_backend_input(request, "INPUT0", KELP_DTYPE_INVALID, KELP_ANY_RANK, &a));
    KELP_TRY(kelp_backend_input(request, "INPUT1", a.dtype, a.rank, &b));
    if (a.dtype != KELP_F32 && a.dtype != KELP_I32)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "input 'INPUT0' has the wrong type: expected FP32 or INT32");
    if (memcmp(a.shape, b.shape, (size_t)a.rank * sizeof *a.shape) != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the inputs 'INPUT0' and 'INPUT1' differ in shape");
    KELP_TRY(kelp_backend_respond(request, &response));
    for (size_t i = 0; i < kelp_backend_request_output_count(request); i++) {
        const char *name = kelp_backend_request_output_name(request, i);
        void *out;
        KELP_TRY(kelp_backend_output(response, name, a.dtype, a.rank, a.shape, &out));
        compute(&a, &b, strcmp(name, "OUTPUT1") == 0, out);
    }
    return NULL;
}

static const kelp_backend_definition addsub = {
    .struct_size = sizeof addsub,
    .name = "addsub",
    .flags = KELP_BACKEND_DOES_NOT_BLOCK,
    .execute_one = execute,
};
KELP_TRITON_BACKEND(addsub)
