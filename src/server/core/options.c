/* SPDX-License-Identifier: Apache-2.0 */
/* Creation, copying and destruction of server options. */
#include "server/core/options.h"

#include "base/alloc.h"
#include "base/assert.h"

enum { STRINGS = 5, LISTS = 2, SETTINGS = 7 };

/* The members that own memory. Creation, copying and destruction iterate over them. */
typedef struct owned {
    char **strings[STRINGS];
    kelp_string_list *lists[LISTS];
    kelp_settings *settings[SETTINGS];
} owned;

static owned owned_of(kelp_server_options *o) {
    return (owned){
        .strings = {&o->server_id, &o->model_config_name, &o->backend_directory,
                    &o->repoagent_directory, &o->cache_directory},
        .lists = {&o->repositories, &o->startup_models},
        .settings = {&o->backend_config, &o->host_policies, &o->metrics_config, &o->caches,
                     &o->rate_resources, &o->device_limits, &o->gpu},
    };
}

static void init_lists(owned *parts, kelp_allocator allocator) {
    for (size_t i = 0; i < LISTS; i++)
        kelp_string_list_init(parts->lists[i], allocator);
    for (size_t i = 0; i < SETTINGS; i++)
        kelp_settings_init(parts->settings[i], allocator);
}

kelp_status *kelp_server_options_create(kelp_allocator allocator, kelp_server_options **out) {
    static char *const defaults[STRINGS] = {
        (char *)"triton", (char *)"", (char *)"/opt/tritonserver/backends",
        (char *)"/opt/tritonserver/repoagents", (char *)"/opt/tritonserver/caches"};
    kelp_server_options *options = NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_server_options, &options));
    options->allocator = allocator;
    options->strict_model_config = true;
    options->strict_readiness = true;
    options->exit_on_error = true;
    options->metrics = options->gpu_metrics = options->cpu_metrics = true;
    options->exit_timeout_s = 30;
    options->model_load_threads = 4;
    options->metrics_interval_ms = 2000;
    options->pinned_pool_bytes = 1u << 28;
    options->min_compute_capability = 6.0;
    owned parts = owned_of(options);
    init_lists(&parts, allocator);
    for (size_t i = 0; i < STRINGS; i++) {
        kelp_status *status = kelp_strdup(allocator, defaults[i], parts.strings[i]);
        if (status != NULL) {
            kelp_server_options_destroy(options);
            return status;
        }
    }
    *out = options;
    return NULL;
}

kelp_status *kelp_server_options_clone(kelp_allocator allocator, const kelp_server_options *options,
                                       kelp_server_options **out) {
    kelp_server_options *copy = NULL;
    KELP_ASSERT(options->allocator.realloc != NULL);
    kelp_server_options source = *options;
    KELP_TRY(KELP_NEW(allocator, kelp_server_options, &copy));
    *copy = source;
    copy->allocator = allocator;
    owned from = owned_of(&source), to = owned_of(copy);
    for (size_t i = 0; i < STRINGS; i++)
        *to.strings[i] = NULL;
    init_lists(&to, allocator);
    kelp_status *status = NULL;
    for (size_t i = 0; i < STRINGS && status == NULL; i++)
        status = kelp_strdup(allocator, *from.strings[i], to.strings[i]);
    for (size_t i = 0; i < LISTS && status == NULL; i++)
        status = kelp_string_list_append(to.lists[i], from.lists[i]);
    for (size_t i = 0; i < SETTINGS && status == NULL; i++)
        status = kelp_settings_merge(to.settings[i], from.settings[i]);
    if (status != NULL) {
        kelp_server_options_destroy(copy);
        return status;
    }
    *out = copy;
    return NULL;
}

void kelp_server_options_destroy(kelp_server_options *options) {
    if (options == NULL)
        return;
    kelp_allocator allocator = options->allocator;
    owned parts = owned_of(options);
    for (size_t i = 0; i < STRINGS; i++)
        kelp_free_string(allocator, *parts.strings[i]);
    for (size_t i = 0; i < LISTS; i++)
        kelp_string_list_deinit(parts.lists[i]);
    for (size_t i = 0; i < SETTINGS; i++)
        kelp_settings_deinit(parts.settings[i]);
    kelp_free(allocator, options, sizeof *options);
}
