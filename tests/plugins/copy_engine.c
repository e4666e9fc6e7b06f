/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in library with an engine provider that uses only public headers. Its engines copy x to y.
 * Its images list the compute capabilities that they were built for. */
#include <kelp/engine_provider.h>
#include <kelp/plugin.h>

#include <stdlib.h>
#include <string.h>

static const char signature[8] = "KELPCOPY";

typedef struct copy_context {
    kelp_tensor x;
    void *y;
} copy_context;

static kelp_status *create_context(void *engine, void **out) {
    (void)engine;
    *out = calloc(1, sizeof(copy_context));
    return *out != NULL ? NULL : KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "no memory for a context");
}

static kelp_status *set_input(void *context, size_t index, const kelp_tensor *tensor) {
    (void)index;
    ((copy_context *)context)->x = *tensor;
    return NULL;
}

static kelp_status *set_output(void *context, size_t index, void *data, size_t capacity_bytes) {
    (void)index, (void)capacity_bytes;
    ((copy_context *)context)->y = data;
    return NULL;
}

static kelp_status *invoke(void *userp, kelp_tensor *out_outputs) {
    const copy_context *context = userp;
    out_outputs[0] = context->x;
    out_outputs[0].data = context->y;
    memcpy(context->y, context->x.data, kelp_tensor_bytes(&context->x));
    return NULL;
}

static kelp_status *enqueue(void *context, void *native_stream) {
    kelp_tensor output;
    (void)native_stream;
    return invoke(context, &output);
}

/* ---- a device ---- */
static char cache[64];
static size_t cache_bytes, budget_bytes;

static kelp_status *set_runtime_cache(void *engine, const void *data, size_t size_bytes) {
    (void)engine;
    if (size_bytes > sizeof cache)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "the runtime cache is too large");
    memcpy(cache, data, size_bytes);
    cache_bytes = size_bytes;
    return NULL;
}

static kelp_status *write_runtime_cache(void *engine,
                                        void (*write)(void *userp, const char *data, size_t length),
                                        void *userp) {
    (void)engine;
    write(userp, cache, cache_bytes / 2);
    write(userp, cache + cache_bytes / 2, cache_bytes - cache_bytes / 2);
    return NULL;
}

static kelp_status *streamable_weights(void *engine, size_t *out_bytes) {
    (void)engine;
    *out_bytes = 100 - budget_bytes;
    return NULL;
}

static kelp_status *set_weight_budget(void *engine, size_t device_bytes) {
    (void)engine;
    budget_bytes = device_bytes;
    return NULL;
}

static const kelp_engine_vtbl vtbl = {
    .struct_size = sizeof(kelp_engine_vtbl),
    .create_context = create_context,
    .destroy_context = free,
    .set_input = set_input,
    .set_output = set_output,
    .invoke = invoke,
    .enqueue = enqueue,
    .set_runtime_cache = set_runtime_cache,
    .write_runtime_cache = write_runtime_cache,
    .streamable_weights = streamable_weights,
    .set_weight_budget = set_weight_budget,
};

static kelp_status *build(void *self, kelp_runtime *runtime, const kelp_network *network,
                          kelp_builder_config *config, kelp_blob **out_plan) {
    const int *capabilities = NULL;
    size_t count = kelp_builder_config_capabilities(config, &capabilities);
    size_t size_bytes = sizeof signature + count * sizeof *capabilities;
    char *image = malloc(size_bytes);
    (void)self, (void)network;
    if (image == NULL)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "no memory for an image");
    memcpy(image, signature, sizeof signature);
    if (count > 0)
        memcpy(image + sizeof signature, capabilities, count * sizeof *capabilities);
    return kelp_blob_wrap(kelp_runtime_allocator(runtime), image, size_bytes, free, image,
                          out_plan);
}

static bool recognizes(void *self, const void *data, size_t size_bytes) {
    (void)self;
    return size_bytes >= sizeof signature && memcmp(data, signature, sizeof signature) == 0;
}

static kelp_status *load(void *self, kelp_runtime *runtime, const void *data, size_t size_bytes,
                         const char *label, void (*release)(void *userp), void *userp,
                         kelp_engine **out) {
    static const kelp_io_info x = {.name = "x", .dtype = KELP_F32, .rank = 1, .shape = {-1}},
                              y = {.name = "y", .dtype = KELP_F32, .rank = 1, .shape = {-1}};
    static char engine;
    const kelp_engine_parts parts = {.struct_size = sizeof parts,
                                     .provider = "copy",
                                     .vtbl = &vtbl,
                                     .engine = &engine,
                                     .inputs = &x,
                                     .outputs = &y,
                                     .input_count = 1,
                                     .output_count = 1};
    (void)self, (void)data, (void)size_bytes, (void)label;
    if (release != NULL)
        release(userp);
    return kelp_engine_wrap(runtime, &parts, out);
}

static const kelp_engine_provider provider = {
    .abi_version = KELP_ENGINE_PROVIDER_ABI_VERSION,
    .struct_size = sizeof(kelp_engine_provider),
    .name = "copy",
    .has_devices = true,
    .build = build,
    .recognises = recognizes,
    .load = load,
};

const kelp_plugin *kelp_plugin_query(uint32_t host_abi_version) {
    static const kelp_plugin plugin = {.magic = KELP_PLUGIN_MAGIC,
                                       .abi_version = KELP_PLUGIN_ABI_VERSION,
                                       .struct_size = sizeof plugin,
                                       .name = "copy",
                                       .engine = &provider};
    return host_abi_version == KELP_PLUGIN_ABI_VERSION ? &plugin : NULL;
}
