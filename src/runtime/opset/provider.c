/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of providers: models and engines. Operators are indexed in registry.c. */
#include "runtime/provider.h"

#include "base/assert.h"
#include "base/buf.h"
#include "runtime/opset/registry.h"
#include "runtime/runtime.h"

#include <stddef.h>
#include <string.h>

kelp_status *kelp_provider_register(kelp_runtime *runtime, const kelp_provider *provider,
                                    void *self) {
    KELP_ASSERT(provider->operators != NULL || provider->models != NULL ||
                provider->engines != NULL);
    if (provider->operators != NULL)
        KELP_TRY(kelp_opset_register(runtime->registry, provider->operators, self));
    if (provider->models != NULL)
        KELP_TRY(kelp_compute_register(runtime, provider->models));
    if (provider->engines != NULL)
        KELP_TRY(kelp_engine_provider_register(runtime, provider->engines));
    kelp_provider *row = NULL;
    KELP_TRY(kelp_registry_row(runtime->registry, provider->name, &row));
    row->check = provider->check;
    return NULL;
}

bool kelp_runtime_provider_at(const kelp_runtime *runtime, size_t index, kelp_provider_info *out) {
    if (index >= runtime->registry->row_count)
        return false;
    const kelp_provider *row = &runtime->registry->rows[index];
    *out = (kelp_provider_info){.name = row->name,
                                .offers = (row->operators ? KELP_OFFERS_SUBGRAPHS : 0) |
                                          (row->models ? KELP_OFFERS_MODELS : 0) |
                                          (row->engines ? KELP_OFFERS_ENGINES : 0)};
    return true;
}

kelp_status *kelp_runtime_check_provider(kelp_runtime *runtime, const char *name) {
    for (size_t i = 0; i < runtime->registry->row_count; i++) {
        const kelp_provider *row = &runtime->registry->rows[i];
        if (strcmp(row->name, name) != 0)
            continue;
        if (row->check != NULL)
            KELP_TRY(row->check());
        return row->engines != NULL && row->engines->available != NULL
                   ? row->engines->available(row->engines->self, runtime)
                   : NULL;
    }
    return KELP_ERROR(KELP_NOT_FOUND, "no provider '%s' is registered", name);
}

/* Lists the names of the providers for which `offers` returns true. */
static void list_names(const kelp_runtime *runtime, bool (*offers)(const kelp_provider *row),
                       kelp_buf *out) {
    const kelp_opset_registry *registry = runtime->registry;
    kelp_buf_init(out, runtime->allocator);
    for (size_t i = 0; i < registry->row_count; i++)
        if (offers(&registry->rows[i]))
            kelp_buf_printf(out, "%s%s", out->length > 0 ? ", " : "", registry->rows[i].name);
}

/* ---- models ---- */
static bool offers_models(const kelp_provider *row) {
    return row->models != NULL;
}

kelp_status *kelp_compute_register(kelp_runtime *runtime, const kelp_compute_backend *backend) {
    kelp_provider *row = NULL;
    if (backend->abi_version != KELP_COMPUTE_ABI_VERSION)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "cannot register a provider of models of ABI version %u: this Kelp supports "
            "version %d",
            backend->abi_version, KELP_COMPUTE_ABI_VERSION);
    if (backend->struct_size < sizeof *backend || backend->name == NULL ||
        backend->capabilities == NULL || backend->load_model == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "cannot register provider '%s': name, capabilities and load_model "
                          "are required in a table of at least %zu bytes (found %u)",
                          backend->name ? backend->name : "(none)", sizeof *backend,
                          backend->struct_size);
    KELP_TRY(kelp_registry_row(runtime->registry, backend->name, &row));
    if (row->models != NULL)
        return KELP_ERROR(KELP_ALREADY_EXISTS, "provider '%s' already offers models",
                          backend->name);
    row->models = backend;
    return NULL;
}

size_t kelp_compute_count(const kelp_runtime *runtime) {
    size_t count = 0;
    for (size_t i = 0; i < runtime->registry->row_count; i++)
        count += runtime->registry->rows[i].models != NULL;
    return count;
}

const kelp_compute_backend *kelp_compute_at(const kelp_runtime *runtime, size_t index) {
    for (size_t i = 0; i < runtime->registry->row_count; i++)
        if (runtime->registry->rows[i].models != NULL && index-- == 0)
            return runtime->registry->rows[i].models;
    return NULL;
}

kelp_status *kelp_compute_find(kelp_runtime *runtime, const char *name,
                               const kelp_compute_backend **out) {
    const kelp_opset_registry *registry = runtime->registry;
    kelp_buf names;
    for (size_t i = 0; i < registry->row_count; i++)
        if (registry->rows[i].models != NULL && strcmp(registry->rows[i].name, name) == 0) {
            *out = registry->rows[i].models;
            return NULL;
        }
    list_names(runtime, offers_models, &names);
    kelp_status *status = kelp_buf_status(&names);
    if (status == NULL)
        status = KELP_ERROR(KELP_NOT_FOUND, "no provider '%s' offers models: found %s", name,
                            names.length > 0 ? kelp_buf_cstr(&names) : "none");
    kelp_buf_deinit(&names);
    return status;
}

/* ---- engines ---- */
static bool offers_engines(const kelp_provider *row) {
    return row->engines != NULL;
}

kelp_status *kelp_engine_provider_register(kelp_runtime *runtime,
                                           const kelp_engine_provider *provider) {
    kelp_provider *row = NULL;
    if (provider == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "cannot register an engine provider: its table is "
                                                 "NULL");
    if (provider->abi_version != KELP_ENGINE_PROVIDER_ABI_VERSION ||
        provider->struct_size < offsetof(kelp_engine_provider, describe) ||
        provider->name == NULL || *provider->name == '\0' || provider->build == NULL ||
        provider->load == NULL || provider->recognises == NULL)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "cannot register engine provider '%s': expected a table of version %d, "
            "at least %zu bytes, with a name, build, load and recognises; found version %u, "
            "%u bytes",
            provider->name ? provider->name : "(none)", KELP_ENGINE_PROVIDER_ABI_VERSION,
            offsetof(kelp_engine_provider, describe), provider->abi_version, provider->struct_size);
    KELP_TRY(kelp_registry_row(runtime->registry, provider->name, &row));
    if (row->engines != NULL)
        return KELP_ERROR(KELP_ALREADY_EXISTS, "provider '%s' already offers engines",
                          provider->name);
    row->engines = provider;
    return NULL;
}

size_t kelp_engine_provider_count(const kelp_runtime *runtime) {
    size_t count = 0;
    for (size_t i = 0; i < runtime->registry->row_count; i++)
        count += runtime->registry->rows[i].engines != NULL;
    return count;
}

const kelp_engine_provider *kelp_engine_provider_at(const kelp_runtime *runtime, size_t index) {
    for (size_t i = 0; i < runtime->registry->row_count; i++)
        if (runtime->registry->rows[i].engines != NULL && index-- == 0)
            return runtime->registry->rows[i].engines;
    return NULL;
}

kelp_status *kelp_engine_provider_find(const kelp_runtime *runtime, const char *name,
                                       const kelp_engine_provider **out) {
    const kelp_opset_registry *registry = runtime->registry;
    kelp_buf names;
    KELP_ASSERT(name != NULL);
    for (size_t i = 0; i < registry->row_count; i++)
        if (registry->rows[i].engines != NULL && strcmp(registry->rows[i].name, name) == 0) {
            *out = registry->rows[i].engines;
            return NULL;
        }
    list_names(runtime, offers_engines, &names);
    kelp_status *status = kelp_buf_status(&names);
    if (status == NULL)
        status = KELP_ERROR(KELP_NOT_FOUND, "no provider '%s' offers engines: found %s", name,
                            names.length > 0 ? kelp_buf_cstr(&names) : "none");
    kelp_buf_deinit(&names);
    return status;
}
