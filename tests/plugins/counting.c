/* SPDX-License-Identifier: Apache-2.0 */
/* A library with functions of its own, and kernels with integers that have the name of a dimension,
 * and with other scalars. */
#include <kelp/kernel.h>

static kelp_code repeat(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    float *y = args[0].as.tensor->data;
    const float *x = args[1].as.tensor->data;
    int64_t width = args[1].as.tensor->shape[0];
    (void)context;
    for (int64_t i = 0; i < args[2].as.i * width; i++)
        y[i] = x[i % width];
    return KELP_OK;
}

static kelp_code twice(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    float *y = args[0].as.tensor->data;
    const float *x = args[1].as.tensor->data;
    (void)context;
    for (int64_t i = 0; i < args[2].as.i; i++)
        y[i] = 2 * x[i];
    return KELP_OK;
}

/* y[0] is `negate`, y[1] the length of `text`; x is added to the second output. */
static kelp_code describe(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    float *y = args[0].as.tensor->data, *z = args[1].as.tensor->data;
    const char *text = args[4].as.s;
    (void)context;
    y[0] = (float)args[3].as.i;
    for (y[1] = 0; *text != '\0'; text++)
        y[1]++;
    for (int64_t i = 0; i < args[1].as.tensor->shape[0]; i++)
        z[i] = ((const float *)args[2].as.tensor->data)[i];
    return KELP_OK;
}

static kelp_code scale(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    float *y = args[0].as.tensor->data;
    const float *x = args[1].as.tensor->data;
    const float *offset = args[3].kind == KELP_ARG_TENSOR ? args[3].as.tensor->data : NULL;
    (void)context;
    for (int64_t i = 0; i < args[1].as.tensor->shape[0]; i++)
        y[i] = (float)args[2].as.f * x[i] + (offset != NULL ? offset[i] : 0);
    return KELP_OK;
}

static const kelp_kernel_def kernels[] = {
    {.name = "scale",
     .signature = "out y: float32[n], x: float32[n], factor: float32 = 2, optional offset: "
                  "float32[n]",
     .fn = scale},
    {.name = "describe",
     .signature = "out y: float32[2], out z: float32[n], x: float32[n], negate: bool, text: string",
     .fn = describe},
    {.name = "repeat", .signature = "out y: float32[n, k], x: float32[k], n: int64", .fn = repeat},
    {.name = "twice", .signature = "out y: float32[n], x: float32[n], n: uint32", .fn = twice},
};

/* initialized, finalized */
static int counts[2];

static kelp_code initialize(const kelp_device_config *configs, size_t config_count,
                            void **out_state, char *error, size_t error_capacity) {
    (void)configs, (void)config_count, (void)error, (void)error_capacity;
    counts[0]++;
    *out_state = counts;
    return KELP_OK;
}

static void finalize(void *state) {
    ((int *)state)[1]++;
}

static void *function(void *state, const char *name) {
    return name[0] == 'c' ? state : NULL; /* "counts" */
}

static const char *const devices[] = {"cpu", "cuda", NULL};
KELP_KERNEL_LIBRARY_WITH("counting", kernels, .initialize = initialize, .finalize = finalize,
                         .get_function_ptr = function, .devices = devices)
