/* SPDX-License-Identifier: Apache-2.0 */
/* Server options as a value: defaults, copy, lists and settings. */
#include "server/core/options.h"

#include <string.h>

kelp_status *kelp_string_list_add(kelp_string_list *list, const char *text) {
    kelp_allocator heap = kelp_allocator_system();
    KELP_TRY(kelp_grow(heap, (void **)&list->items, &list->capacity, list->count + 1,
                       sizeof *list->items));
    KELP_TRY(kelp_strdup(heap, text, &list->items[list->count]));
    list->count++;
    return NULL;
}

bool kelp_string_list_has(const kelp_string_list *list, const char *text) {
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], text) == 0)
            return true;
    return false;
}

bool kelp_string_list_remove(kelp_string_list *list, const char *text) {
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i], text) != 0)
            continue;
        kelp_free_string(kelp_allocator_system(), list->items[i]);
        memmove(&list->items[i], &list->items[i + 1], (list->count - i - 1) * sizeof *list->items);
        list->count--;
        return true;
    }
    return false;
}

void kelp_string_list_deinit(kelp_string_list *list) {
    kelp_allocator heap = kelp_allocator_system();
    for (size_t i = 0; i < list->count; i++)
        kelp_free_string(heap, list->items[i]);
    kelp_free(heap, list->items, list->capacity * sizeof *list->items);
    *list = (kelp_string_list){0};
}

kelp_status *kelp_string_list_copy(const kelp_string_list *from, kelp_string_list *out) {
    *out = (kelp_string_list){0};
    for (size_t i = 0; i < from->count; i++)
        KELP_TRY(kelp_string_list_add(out, from->items[i]));
    return NULL;
}

static kelp_setting *find(const kelp_settings *settings, const char *owner, const char *name) {
    for (size_t i = 0; i < settings->count; i++)
        if (strcmp(settings->items[i].owner, owner) == 0 &&
            strcmp(settings->items[i].name, name) == 0)
            return &settings->items[i];
    return NULL;
}

kelp_status *kelp_settings_set(kelp_settings *settings, const char *owner, const char *name,
                               const char *value) {
    kelp_allocator heap = kelp_allocator_system();
    char *copy = NULL;
    KELP_TRY(kelp_strdup(heap, value, &copy));
    kelp_setting *setting = find(settings, owner, name);
    if (setting) {
        kelp_free_string(heap, setting->value);
        setting->value = copy;
        return NULL;
    }
    kelp_setting fresh = {.value = copy};
    kelp_status *status = kelp_grow(heap, (void **)&settings->items, &settings->capacity,
                                    settings->count + 1, sizeof *settings->items);
    if (!status)
        status = kelp_strdup(heap, owner, &fresh.owner);
    if (!status)
        status = kelp_strdup(heap, name, &fresh.name);
    if (status) {
        kelp_free_string(heap, fresh.owner);
        kelp_free_string(heap, copy);
        return status;
    }
    settings->items[settings->count++] = fresh;
    return NULL;
}

const char *kelp_settings_get(const kelp_settings *settings, const char *owner, const char *name) {
    const kelp_setting *setting = find(settings, owner, name);
    return setting ? setting->value : NULL;
}

static void setting_deinit(kelp_setting *setting) {
    kelp_allocator heap = kelp_allocator_system();
    kelp_free_string(heap, setting->owner);
    kelp_free_string(heap, setting->name);
    kelp_free_string(heap, setting->value);
}

void kelp_settings_remove(kelp_settings *settings, const char *owner) {
    size_t kept = 0;
    for (size_t i = 0; i < settings->count; i++) {
        if (strcmp(settings->items[i].owner, owner) == 0)
            setting_deinit(&settings->items[i]);
        else
            settings->items[kept++] = settings->items[i];
    }
    settings->count = kept;
}

void kelp_settings_deinit(kelp_settings *settings) {
    kelp_allocator heap = kelp_allocator_system();
    for (size_t i = 0; i < settings->count; i++)
        setting_deinit(&settings->items[i]);
    kelp_free(heap, settings->items, settings->capacity * sizeof *settings->items);
    *settings = (kelp_settings){0};
}

kelp_status *kelp_settings_copy(const kelp_settings *from, kelp_settings *out) {
    *out = (kelp_settings){0};
    for (size_t i = 0; i < from->count; i++)
        KELP_TRY(kelp_settings_set(out, from->items[i].owner, from->items[i].name,
                                   from->items[i].value));
    return NULL;
}

/* The members that own memory, so that copy and destroy name each of them once. */
typedef struct owned {
    char **strings[5];
    kelp_string_list *lists[2];
    kelp_settings *settings[7];
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

kelp_status *kelp_server_options_create(kelp_server_options **out) {
    static char *const defaults[5] = {
        (char *)"triton", (char *)"", (char *)"/opt/tritonserver/backends",
        (char *)"/opt/tritonserver/repoagents", (char *)"/opt/tritonserver/caches"};
    kelp_allocator heap = kelp_allocator_system();
    kelp_server_options *options = NULL;
    KELP_TRY(KELP_NEW(heap, kelp_server_options, &options));
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
    for (size_t i = 0; i < 5; i++) {
        kelp_status *status = kelp_strdup(heap, defaults[i], parts.strings[i]);
        if (status) {
            kelp_server_options_destroy(options);
            return status;
        }
    }
    *out = options;
    return NULL;
}

kelp_status *kelp_server_options_clone(const kelp_server_options *options,
                                       kelp_server_options **out) {
    kelp_allocator heap = kelp_allocator_system();
    kelp_server_options *copy = NULL;
    kelp_server_options source = *options;
    KELP_TRY(KELP_NEW(heap, kelp_server_options, &copy));
    *copy = source;
    owned from = owned_of(&source), to = owned_of(copy);
    for (size_t i = 0; i < 5; i++)
        *to.strings[i] = NULL;
    for (size_t i = 0; i < 2; i++)
        *to.lists[i] = (kelp_string_list){0};
    for (size_t i = 0; i < 7; i++)
        *to.settings[i] = (kelp_settings){0};
    kelp_status *status = NULL;
    for (size_t i = 0; i < 5 && !status; i++)
        status = kelp_strdup(heap, *from.strings[i], to.strings[i]);
    for (size_t i = 0; i < 2 && !status; i++)
        status = kelp_string_list_copy(from.lists[i], to.lists[i]);
    for (size_t i = 0; i < 7 && !status; i++)
        status = kelp_settings_copy(from.settings[i], to.settings[i]);
    if (status) {
        kelp_server_options_destroy(copy);
        return status;
    }
    *out = copy;
    return NULL;
}

void kelp_server_options_destroy(kelp_server_options *options) {
    if (!options)
        return;
    kelp_allocator heap = kelp_allocator_system();
    owned parts = owned_of(options);
    for (size_t i = 0; i < 5; i++)
        kelp_free_string(heap, *parts.strings[i]);
    for (size_t i = 0; i < 2; i++)
        kelp_string_list_deinit(parts.lists[i]);
    for (size_t i = 0; i < 7; i++)
        kelp_settings_deinit(parts.settings[i]);
    kelp_free(heap, options, sizeof *options);
}
