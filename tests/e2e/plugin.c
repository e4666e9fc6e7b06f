/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in library: com.example::Triple, and the same operator as Thrice of a newer version of
 * ai.onnx than Kelp implements. */
#include <kelp/opset.h>
#include <kelp/plugin.h>

static const kelp_opset *triple_opsets(void *self, size_t *out_count) {
    static const kelp_opset_op ops[] = {{.name = "Triple", .since_version = 1}};
    static const kelp_opset_op newer[] = {{.name = "Thrice", .since_version = 99}};
    static const kelp_opset opsets[] = {{"com.example", 1, ops, 1}, {"", 99, newer, 1}};
    (void)self;
    *out_count = 2;
    return opsets;
}

static kelp_status *dispatch(void *self, const kelp_op_env *env, const kelp_node *node,
                             const kelp_tensor *const *inputs, kelp_tensor *outputs,
                             kelp_completion *completion, kelp_dispatch_result *out_result) {
    const kelp_tensor *x = inputs[0];
    (void)self, (void)node, (void)completion;
    *out_result = KELP_DISPATCH_IMMEDIATE;
    KELP_TRY(kelp_tensor_init(&outputs[0], KELP_F32, x->rank, x->shape, NULL));
    float *y = outputs[0].data = kelp_op_env_alloc(env, kelp_tensor_bytes(x) + 1);
    if (y == NULL)
        return kelp_status_oom();
    for (int64_t i = 0; i < kelp_tensor_elements(x); i++)
        y[i] = 3 * ((const float *)x->data)[i];
    return NULL;
}

const kelp_plugin *kelp_plugin_query(uint32_t host_abi_version) {
    static const kelp_opset_backend backend = {.abi_version = KELP_OPSET_ABI_VERSION,
                                               .struct_size = sizeof backend,
                                               .name = "triple",
                                               .extension_opsets = triple_opsets,
                                               .dispatch = dispatch};
    static const kelp_plugin plugin = {.magic = KELP_PLUGIN_MAGIC,
                                       .abi_version = KELP_PLUGIN_ABI_VERSION,
                                       .struct_size = sizeof plugin,
                                       .name = "triple",
                                       .opset = &backend};
    return host_abi_version == KELP_PLUGIN_ABI_VERSION ? &plugin : NULL;
}
