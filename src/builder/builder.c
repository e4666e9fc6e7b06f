/* SPDX-License-Identifier: Apache-2.0 */
/* Builders: they join a runtime and a provider, and see to what holds for all providers. */
#include "builder/builder.h"

#include "base/alloc.h"
#include "base/fs.h"
#include "builder/network.h"
#include "graph/save.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

/* ---- providers ---- */
kelp_status *kelp_engine_provider_register(kelp_runtime *runtime,
                                           const kelp_engine_provider *provider) {
    if (provider->abi_version != KELP_ENGINE_PROVIDER_ABI_VERSION ||
        provider->struct_size < offsetof(kelp_engine_provider, describe) ||
        provider->name == NULL || provider->build == NULL || provider->load == NULL ||
        provider->recognises == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "engine provider '%s': expected a table of version %d, %zu bytes, with "
                          "build, load and recognises; found version %u, %u bytes",
                          provider->name ? provider->name : "", KELP_ENGINE_PROVIDER_ABI_VERSION,
                          sizeof *provider, provider->abi_version, provider->struct_size);
    for (size_t i = 0; i < runtime->provider_count; i++)
        if (strcmp(runtime->providers[i]->name, provider->name) == 0)
            return KELP_ERROR(KELP_ALREADY_EXISTS, "there is an engine provider '%s' already",
                              provider->name);
    KELP_TRY(kelp_grow(runtime->allocator, (void **)&runtime->providers,
                       &runtime->provider_capacity, runtime->provider_count + 1,
                       sizeof *runtime->providers));
    runtime->providers[runtime->provider_count++] = provider;
    return NULL;
}

size_t kelp_engine_provider_count(const kelp_runtime *runtime) {
    return runtime->provider_count;
}

const kelp_engine_provider *kelp_engine_provider_at(const kelp_runtime *runtime, size_t index) {
    return index < runtime->provider_count ? runtime->providers[index] : NULL;
}

static kelp_status *find_provider(kelp_runtime *runtime, const char *name,
                                  const kelp_engine_provider **out) {
    kelp_buf names;
    for (size_t i = 0; i < runtime->provider_count; i++)
        if (strcmp(runtime->providers[i]->name, name) == 0) {
            *out = runtime->providers[i];
            return NULL;
        }
    kelp_buf_init(&names, runtime->allocator);
    for (size_t i = 0; i < runtime->provider_count; i++)
        kelp_buf_printf(&names, "%s'%s'", i ? ", " : "", runtime->providers[i]->name);
    const char *list = kelp_buf_cstr(&names);
    kelp_status *status =
        KELP_ERROR(KELP_NOT_FOUND, "there is no engine provider '%s'; there are %s", name,
                   list ? list : "others");
    kelp_buf_deinit(&names);
    return status;
}

/* ---- life ---- */
static kelp_status *in_domain(kelp_status *status, kelp_domain domain) {
    if (kelp_status_domain(status) == KELP_DOMAIN_NONE)
        kelp_status_set_domain(status, domain);
    return status;
}

kelp_status *kelp_builder_create(kelp_runtime *runtime, const char *provider, kelp_builder **out) {
    const kelp_engine_provider *found = NULL;
    kelp_builder *builder = NULL;
    kelp_status *status = find_provider(runtime, provider, &found);
    if (status == NULL && found->available != NULL)
        status = found->available(found->self, runtime);
    if (status == NULL)
        status = KELP_NEW(runtime->allocator, kelp_builder, &builder);
    if (status != NULL)
        return in_domain(status, KELP_DOMAIN_BUILDER);
    atomic_init(&builder->references, 1);
    builder->runtime = kelp_runtime_retain(runtime);
    builder->provider = found;
    *out = builder;
    return NULL;
}

kelp_builder *kelp_builder_retain(kelp_builder *builder) {
    atomic_fetch_add_explicit(&builder->references, 1, memory_order_relaxed);
    return builder;
}

void kelp_builder_release(kelp_builder *builder) {
    if (builder == NULL ||
        atomic_fetch_sub_explicit(&builder->references, 1, memory_order_acq_rel) != 1)
        return;
    kelp_runtime *runtime = builder->runtime;
    kelp_free(runtime->allocator, builder, sizeof *builder);
    kelp_runtime_release(runtime);
}

const char *kelp_builder_provider(const kelp_builder *builder) {
    return builder->provider->name;
}

/* ---- networks ---- */
kelp_status *kelp_builder_create_network(kelp_builder *builder, kelp_network **out) {
    return in_domain(kelp_network_new(builder, builder->runtime->allocator, NULL, out),
                     KELP_DOMAIN_NETWORK);
}

/* The source is there before the provider is asked: some read it themselves. */
static kelp_status *parsed(kelp_builder *builder, kelp_graph *graph, const char *path,
                           const void *data, size_t size_bytes, kelp_network **out) {
    kelp_network *network = NULL;
    KELP_TRY(kelp_network_new(builder, builder->runtime->allocator, graph, &network));
    const kelp_engine_provider *provider = builder->provider;
    kelp_status *status = NULL;
    network->source_data = data;
    network->source_bytes = size_bytes;
    if (path != NULL) {
        network->source_path = kelp_arena_strndup(&network->arena, path, strlen(path));
        status = network->source_path == NULL ? kelp_status_oom() : NULL;
    }
    if (status == NULL && provider->supports != NULL)
        status = provider->supports(provider->self, builder->runtime, network);
    if (status != NULL) {
        kelp_network_release(network);
        return status;
    }
    *out = network;
    return NULL;
}

kelp_status *kelp_builder_parse_file(kelp_builder *builder, const char *path, kelp_network **out) {
    kelp_graph *graph = NULL;
    kelp_graph_limits limits = kelp_runtime_graph_limits(builder->runtime);
    kelp_status *status = kelp_graph_load_file(builder->runtime->allocator, path, &limits, &graph);
    if (status == NULL)
        status = parsed(builder, graph, path, NULL, 0, out);
    kelp_graph_release(graph);
    return in_domain(status, KELP_DOMAIN_NETWORK);
}

kelp_status *kelp_builder_parse_bytes(kelp_builder *builder, const void *data, size_t size_bytes,
                                      const char *label, void (*release)(void *userp), void *userp,
                                      kelp_network **out) {
    kelp_graph *graph = NULL;
    kelp_graph_limits limits = kelp_runtime_graph_limits(builder->runtime);
    kelp_status *status =
        kelp_graph_load_bytes(builder->runtime->allocator, data, size_bytes,
                              label ? label : "model", NULL, release, userp, &limits, &graph);
    if (status == NULL)
        status = parsed(builder, graph, NULL, data, size_bytes, out);
    kelp_graph_release(graph);
    return in_domain(status, KELP_DOMAIN_NETWORK);
}

kelp_status *kelp_network_to_onnx(const kelp_network *network, kelp_blob **out) {
    kelp_graph *graph = NULL;
    kelp_buf model;
    KELP_TRY(kelp_network_lower(network, &graph));
    kelp_buf_init(&model, network->allocator);
    kelp_status *status = kelp_graph_save(graph, NULL, &model);
    if (status == NULL)
        status = kelp_blob_of(&model, out);
    kelp_buf_deinit(&model);
    kelp_graph_release(graph);
    return status;
}

/* ---- build ---- */
bool kelp_builder_supports(kelp_builder *builder, const kelp_network *network,
                           kelp_status **out_reason) {
    const kelp_engine_provider *provider = builder->provider;
    kelp_status *status = provider->supports != NULL
                              ? provider->supports(provider->self, builder->runtime, network)
                              : NULL;
    bool supported = status == NULL;
    if (out_reason != NULL)
        *out_reason = in_domain(status, KELP_DOMAIN_NETWORK);
    else
        kelp_status_free(status);
    return supported;
}

kelp_status *kelp_builder_build(kelp_builder *builder, const kelp_network *network,
                                kelp_builder_config *config, kelp_blob **out_plan) {
    const kelp_engine_provider *provider = builder->provider;
    kelp_status *status = NULL;
    if (network->builder->provider != provider)
        status = KELP_ERROR(KELP_INVALID_ARGUMENT,
                            "network '%s' was made for provider '%s', the builder is of '%s'",
                            network->name, network->builder->provider->name, provider->name);
    else if (network->output_count == 0)
        status = KELP_ERROR(KELP_FAILED_PRECONDITION,
                            "network '%s' has no output: mark one with kelp_network_mark_output",
                            network->name);
    if (status == NULL)
        status = kelp_builder_check_config(builder, network, config);
    if (status == NULL)
        status = provider->build(provider->self, builder->runtime, network, config, out_plan);
    return in_domain(status, KELP_DOMAIN_BUILDER);
}

/* ---- blobs ---- */
struct kelp_blob {
    _Atomic uint32_t references;
    kelp_allocator allocator;
    const void *data;
    size_t size_bytes;
    void (*release)(void *userp);
    void *userp;
};

kelp_status *kelp_blob_wrap(kelp_allocator allocator, const void *data, size_t size_bytes,
                            void (*release)(void *userp), void *userp, kelp_blob **out) {
    kelp_blob *blob = NULL;
    kelp_status *status = KELP_NEW(allocator, kelp_blob, &blob);
    if (status != NULL) {
        if (release != NULL)
            release(userp);
        return status;
    }
    atomic_init(&blob->references, 1);
    blob->allocator = allocator;
    blob->data = data;
    blob->size_bytes = size_bytes;
    blob->release = release;
    blob->userp = userp;
    *out = blob;
    return NULL;
}

typedef struct owned_text {
    kelp_allocator allocator;
    char *data;
    size_t capacity;
} owned_text;

static void free_text(void *userp) {
    owned_text *text = userp;
    kelp_allocator allocator = text->allocator;
    kelp_free(allocator, text->data, text->capacity);
    kelp_free(allocator, text, sizeof *text);
}

kelp_status *kelp_blob_of(kelp_buf *buf, kelp_blob **out) {
    owned_text *text = NULL;
    size_t length = 0;
    KELP_TRY(KELP_NEW(buf->allocator, owned_text, &text));
    text->allocator = buf->allocator;
    text->data = kelp_buf_take(buf, &length, &text->capacity);
    return kelp_blob_wrap(text->allocator, text->data, length, free_text, text, out);
}

const void *kelp_blob_data(const kelp_blob *blob) {
    return blob->data;
}

size_t kelp_blob_size(const kelp_blob *blob) {
    return blob->size_bytes;
}

kelp_blob *kelp_blob_retain(kelp_blob *blob) {
    atomic_fetch_add_explicit(&blob->references, 1, memory_order_relaxed);
    return blob;
}

void kelp_blob_release(kelp_blob *blob) {
    if (blob == NULL || atomic_fetch_sub_explicit(&blob->references, 1, memory_order_acq_rel) != 1)
        return;
    if (blob->release != NULL)
        blob->release(blob->userp);
    kelp_free(blob->allocator, blob, sizeof *blob);
}

kelp_status *kelp_blob_save(const kelp_blob *blob, const char *path) {
    return kelp_fs_write(path, blob->data, blob->size_bytes);
}
