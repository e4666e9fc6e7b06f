/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plug-in library with an operator provider: com.example::RunningMean. Y[i] is the mean of the
 * last `window` elements of X up to X[i]; X is a float vector. The library is linked with nothing:
 * the process that loads it provides Kelp's functions.
 *
 *     cc -std=c17 -fPIC -shared running_mean.c -o librunning_mean.so $(pkg-config --cflags kelp)
 *     kelp run running_mean.onnx --plugin ./librunning_mean.so --input x=1,-2,3,5
 *
 * running_mean.onnx is y = RunningMean(Relu(x), window=2).
 */
#include <kelp/opset.h>
#include <kelp/plugin.h>

/* Declares the operators by domain and version. */
static const kelp_opset *extension_opsets(void *self, size_t *out_count) {
    static const kelp_opset_op operators[] = {{.name = "RunningMean", .since_version = 1}};
    static const kelp_opset opsets[] = {
        {.domain = "com.example", .version = 1, .ops = operators, .op_count = 1}};
    (void)self;
    *out_count = sizeof opsets / sizeof opsets[0];
    return opsets;
}

static kelp_status *check(const kelp_node *node, const kelp_tensor *x, int64_t window) {
    if (x->dtype != KELP_F32 || x->rank != 1)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "node '%s': expected a vector of float32, found %s with %d dimensions",
                          kelp_node_name(node), kelp_dtype_name(x->dtype), (int)x->rank);
    if (window < 1)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "node '%s': attribute 'window' is %lld: expected at least 1",
                          kelp_node_name(node), (long long)window);
    return NULL;
}

static void running_mean(const float *x, int64_t count, int64_t window, float *y) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += x[i];
        if (i >= window)
            sum -= x[i - window];
        y[i] = (float)(sum / (double)(i < window ? i + 1 : window));
    }
}

/* Executes a node when its inputs are known. The environment owns the memory of the output. */
static kelp_status *dispatch(void *self, const kelp_op_env *env, const kelp_node *node,
                             const kelp_tensor *const *inputs, kelp_tensor *outputs,
                             kelp_completion *completion, kelp_dispatch_result *out_result) {
    const kelp_tensor *x = inputs[0];
    int64_t window = kelp_node_attr_i64(node, "window", 1);
    (void)self;
    (void)completion;
    *out_result = KELP_DISPATCH_IMMEDIATE;
    KELP_TRY(check(node, x, window));
    KELP_TRY(kelp_tensor_init(&outputs[0], KELP_F32, x->rank, x->shape, NULL));
    /* One more byte: an empty tensor has memory too. */
    outputs[0].data = kelp_op_env_alloc(env, kelp_tensor_bytes(x) + 1);
    if (outputs[0].data == NULL)
        return kelp_status_oom();
    running_mean(x->data, x->shape[0], window, outputs[0].data);
    return NULL;
}

static const kelp_opset_backend operators = {.abi_version = KELP_OPSET_ABI_VERSION,
                                             .struct_size = sizeof operators,
                                             .name = "running_mean",
                                             .extension_opsets = extension_opsets,
                                             .dispatch = dispatch};

/* The only exported function. */
const kelp_plugin *kelp_plugin_query(uint32_t host_abi_version) {
    static const kelp_plugin plugin = {.magic = KELP_PLUGIN_MAGIC,
                                       .abi_version = KELP_PLUGIN_ABI_VERSION,
                                       .struct_size = sizeof plugin,
                                       .name = "running_mean",
                                       .opset = &operators};
    return host_abi_version == KELP_PLUGIN_ABI_VERSION ? &plugin : NULL;
}
