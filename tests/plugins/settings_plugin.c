/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in library with settings: operators, models and engines that know the setting 'factor'. */
#include <kelp/compute.h>
#include <kelp/engine_provider.h>
#include <kelp/opset.h>
#include <kelp/plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of calls, for the test. */
KELP_PLUGIN_EXPORT extern int settings_plugin_created, settings_plugin_destroyed;
int settings_plugin_created, settings_plugin_destroyed;

typedef struct plugin_self {
    int factor;
} plugin_self;

static kelp_code create(const kelp_plugin_setting *settings, size_t setting_count, void **out_self,
                        char *error, size_t error_capacity) {
    plugin_self *self = calloc(1, sizeof *self);
    if (self == NULL)
        return KELP_RESOURCE_EXHAUSTED;
    self->factor = 2;
    for (size_t i = 0; i < setting_count; i++) {
        if (strcmp(settings[i].name, "factor") != 0) {
            snprintf(error, error_capacity, "unknown setting '%s=%s': expected 'factor'",
                     settings[i].name, settings[i].value);
            free(self);
            return KELP_INVALID_ARGUMENT;
        }
        self->factor = atoi(settings[i].value);
    }
    settings_plugin_created++;
    *out_self = self;
    return KELP_OK;
}

static void destroy(void *self) {
    settings_plugin_destroyed++;
    free(self);
}

/* ---- operators ---- */
static const kelp_opset_op ops[] = {{.name = "Times",
                                     .since_version = 1,
                                     .signature = "out y: T[...s], x: T[...s] where T: float32"}};
static const kelp_opset opset = {"com.example", 1, ops, 1};

static const kelp_opset *extension_opsets(void *self, size_t *out_count) {
    (void)self;
    *out_count = 1;
    return &opset;
}

static kelp_status *dispatch(void *self, const kelp_op_env *env, const kelp_node *node,
                             const kelp_tensor *const *inputs, kelp_tensor *outputs,
                             kelp_completion *completion, kelp_dispatch_result *out_result) {
    const kelp_tensor *x = inputs[0];
    (void)node, (void)completion;
    *out_result = KELP_DISPATCH_IMMEDIATE;
    KELP_TRY(kelp_tensor_init(&outputs[0], KELP_F32, x->rank, x->shape, NULL));
    float *y = outputs[0].data = kelp_op_env_alloc(env, kelp_tensor_bytes(x) + 1);
    if (y == NULL)
        return kelp_status_oom();
    for (int64_t i = 0; i < kelp_tensor_elements(x); i++)
        y[i] = ((const float *)x->data)[i] * (float)((const plugin_self *)self)->factor;
    return NULL;
}

static const kelp_opset_backend operators = {.abi_version = KELP_OPSET_ABI_VERSION,
                                             .struct_size = sizeof operators,
                                             .name = "settings",
                                             .extension_opsets = extension_opsets,
                                             .dispatch = dispatch};

/* ---- models and engines, which report the factor ---- */
static kelp_compute_capabilities capabilities(void *self) {
    return (kelp_compute_capabilities){.max_batch = (size_t)((const plugin_self *)self)->factor};
}

static kelp_status *load_model(void *self, kelp_runtime *runtime, const kelp_artifact *artifact,
                               kelp_compute_model **out) {
    (void)self, (void)runtime, (void)artifact, (void)out;
    return KELP_ERROR(KELP_UNIMPLEMENTED, "this provider has no models");
}

static const kelp_compute_backend models = {.abi_version = KELP_COMPUTE_ABI_VERSION,
                                            .struct_size = sizeof models,
                                            .name = "settings",
                                            .capabilities = capabilities,
                                            .load_model = load_model};

static kelp_status *available(void *self, kelp_runtime *runtime) {
    (void)runtime;
    return KELP_ERROR(KELP_UNAVAILABLE, "factor %d", ((const plugin_self *)self)->factor);
}

static kelp_status *build(void *self, kelp_runtime *runtime, const kelp_network *network,
                          kelp_builder_config *config, kelp_blob **out) {
    (void)self, (void)runtime, (void)network, (void)config, (void)out;
    return KELP_ERROR(KELP_UNIMPLEMENTED, "this provider builds nothing");
}

static bool recognizes(void *self, const void *image, size_t size_bytes) {
    (void)self, (void)image, (void)size_bytes;
    return false;
}

static kelp_status *load(void *self, kelp_runtime *runtime, const void *image, size_t size_bytes,
                         const char *label, void (*release)(void *userp), void *userp,
                         kelp_engine **out) {
    (void)self, (void)runtime, (void)image, (void)size_bytes, (void)label, (void)out;
    if (release != NULL)
        release(userp);
    return KELP_ERROR(KELP_UNIMPLEMENTED, "this provider loads nothing");
}

static const kelp_engine_provider engines = {.abi_version = KELP_ENGINE_PROVIDER_ABI_VERSION,
                                             .struct_size = sizeof engines,
                                             .name = "settings",
                                             .available = available,
                                             .build = build,
                                             .recognises = recognizes,
                                             .load = load};

const kelp_plugin *kelp_plugin_query(uint32_t host_abi_version) {
    static const kelp_plugin plugin = {.magic = KELP_PLUGIN_MAGIC,
                                       .abi_version = KELP_PLUGIN_ABI_VERSION,
                                       .struct_size = sizeof plugin,
                                       .name = "settings",
                                       .opset = &operators,
                                       .compute = &models,
                                       .engine = &engines,
                                       .create = create,
                                       .destroy = destroy};
    return host_abi_version == KELP_PLUGIN_ABI_VERSION ? &plugin : NULL;
}
