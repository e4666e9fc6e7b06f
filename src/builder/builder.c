/* SPDX-License-Identifier: Apache-2.0 */
/* Builders: functions that all providers share, and dispatch to the provider's table. */
#include "builder/builder.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "builder/network.h"
#include "runtime/provider.h"

#include <stdatomic.h>
#include <string.h>

/* ---- lifetime ---- */
kelp_status *kelp_builder_create(kelp_runtime *runtime, const char *provider, kelp_builder **out) {
    const kelp_engine_provider *found = NULL;
    kelp_builder *builder = NULL;
    kelp_status *status = kelp_engine_provider_find(runtime, provider, &found);
    if (status == NULL && found->available != NULL)
        status = found->available(found->self, runtime);
    if (status == NULL)
        status = KELP_NEW(runtime->allocator, kelp_builder, &builder);
    if (status != NULL)
        return kelp_in_domain(status, KELP_DOMAIN_BUILDER);
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
    KELP_ASSERT(runtime != NULL);
    kelp_free(runtime->allocator, builder, sizeof *builder);
    kelp_runtime_release(runtime);
}

const char *kelp_builder_provider(const kelp_builder *builder) {
    return builder->provider->name;
}

/* ---- networks ---- */
kelp_status *kelp_builder_create_network(kelp_builder *builder, kelp_network **out) {
    return kelp_in_domain(kelp_network_new(builder, builder->runtime->allocator, NULL, out),
                          KELP_DOMAIN_NETWORK);
}

/* Creates a network from a parsed graph. Sets the source before calling the provider, because some
 * providers read it themselves. */
static kelp_status *create_parsed(kelp_builder *builder, kelp_graph *graph, const char *path,
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
        status = create_parsed(builder, graph, path, NULL, 0, out);
    kelp_graph_release(graph);
    return kelp_in_domain(status, KELP_DOMAIN_NETWORK);
}

kelp_status *kelp_builder_parse_bytes(kelp_builder *builder, const void *data, size_t size_bytes,
                                      const char *label, void (*release)(void *userp), void *userp,
                                      kelp_network **out) {
    kelp_graph *graph = NULL;
    kelp_graph_limits limits = kelp_runtime_graph_limits(builder->runtime);
    kelp_status *status = kelp_graph_load_bytes(builder->runtime->allocator, data, size_bytes,
                                                label != NULL ? label : "model", NULL, release,
                                                userp, &limits, &graph);
    if (status == NULL)
        status = create_parsed(builder, graph, NULL, data, size_bytes, out);
    kelp_graph_release(graph);
    return kelp_in_domain(status, KELP_DOMAIN_NETWORK);
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
        *out_reason = kelp_in_domain(status, KELP_DOMAIN_NETWORK);
    else
        kelp_status_free(status);
    return supported;
}

kelp_status *kelp_builder_build(kelp_builder *builder, const kelp_network *network,
                                kelp_builder_config *config, kelp_blob **out_plan) {
    const kelp_engine_provider *provider = builder->provider;
    kelp_status *status = NULL;
    KELP_ASSERT(provider != NULL && provider->build != NULL); /* checked at registration */
    if (network->builder->provider != provider)
        status =
            KELP_ERROR(KELP_INVALID_ARGUMENT,
                       "network '%s' belongs to provider '%s': the builder is of provider '%s'",
                       network->name, network->builder->provider->name, provider->name);
    else
        status = kelp_network_check_outputs(network);
    if (status == NULL)
        status = kelp_builder_check_config(builder, network, config);
    uint64_t began_ns = kelp_now_ns();
    if (status == NULL)
        status = provider->build(provider->self, builder->runtime, network, config, out_plan);
    if (status == NULL)
        KELP_LOGF(&builder->runtime->logger, KELP_LOG_INFO,
                  "network '%s': plan of %zu bytes for provider '%s' built in %.1f ms",
                  network->name, kelp_blob_size(*out_plan), provider->name,
                  (double)(kelp_now_ns() - began_ns) / 1e6);
    return kelp_in_domain(status, KELP_DOMAIN_BUILDER);
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
    KELP_ASSERT(length <= text->capacity);
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
    return kelp_in_domain(kelp_fs_write(path, blob->data, blob->size_bytes), KELP_DOMAIN_BUILDER);
}
