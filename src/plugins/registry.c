/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of kernel libraries. There is no global registry. */
#include "plugins/internal.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"

#include <string.h>

static kelp_status *copy_options(kelp_kernel_registry *registry,
                                 const kelp_kernel_registry_options *options) {
    kelp_arena *arena = &registry->arena;
    if (options->search_path != NULL) {
        registry->search_path =
            kelp_arena_strndup(arena, options->search_path, strlen(options->search_path));
        if (registry->search_path == NULL)
            return kelp_status_oom();
    }
    if (options->configs != NULL) {
        kelp_device_config *configs =
            KELP_ARENA_ARRAY(arena, options->config_count + 1, kelp_device_config);
        if (configs == NULL)
            return kelp_status_oom();
        for (size_t i = 0; i < options->config_count; i++) {
            configs[i] = options->configs[i];
            configs[i].device =
                kelp_arena_strndup(arena, configs[i].device, strlen(configs[i].device));
            if (configs[i].device == NULL)
                return kelp_status_oom();
        }
        registry->configs = configs;
        registry->config_count = options->config_count;
    }
    registry->log = options->log;
    registry->log_userp = options->log_userp;
    return NULL;
}

static kelp_status *new_registry(const kelp_kernel_registry_options *caller_options,
                                 kelp_kernel_registry **out) {
    kelp_kernel_registry_options options = {0};
    if (caller_options != NULL)
        memcpy(&options, caller_options, KELP_MIN(caller_options->struct_size, sizeof options));
    if (options.allocator.realloc == NULL)
        options.allocator = kelp_allocator_system();
    kelp_kernel_registry *registry = NULL;
    KELP_TRY(KELP_NEW(options.allocator, kelp_kernel_registry, &registry));
    atomic_init(&registry->references, 1);
    registry->allocator = options.allocator;
    kelp_arena_init(&registry->arena, options.allocator, 0);
    if (pthread_mutex_init(&registry->mutex, NULL) != 0) {
        kelp_free(options.allocator, registry, sizeof *registry);
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "no memory for a mutex");
    }
    registry->threads = options.threads > 0 ? options.threads : kelp_cpu_count();
    kelp_status *status = copy_options(registry, &options);
    if (status != NULL) {
        kelp_kernel_registry_release(registry);
        return status;
    }
    *out = registry;
    return NULL;
}

kelp_status *kelp_kernel_registry_create_on(const kelp_kernel_registry_options *options,
                                            kelp_pool *pool, kelp_kernel_registry **out) {
    KELP_TRY(new_registry(options, out));
    (*out)->pool = pool;
    (*out)->borrows_pool = true;
    (*out)->threads = kelp_pool_threads(pool);
    return NULL;
}

kelp_status *kelp_kernel_registry_create(const kelp_kernel_registry_options *options,
                                         kelp_kernel_registry **out) {
    kelp_kernel_registry *registry = NULL;
    KELP_TRY(new_registry(options, &registry));
    kelp_status *status = NULL;
    if (registry->threads > 1)
        status = kelp_pool_create(registry->allocator, registry->threads, &registry->pool);
    if (status != NULL) {
        kelp_kernel_registry_release(registry);
        return status;
    }
    *out = registry;
    return NULL;
}

kelp_kernel_registry *kelp_kernel_registry_retain(kelp_kernel_registry *registry) {
    atomic_fetch_add_explicit(&registry->references, 1, memory_order_relaxed);
    return registry;
}

void kelp_kernel_registry_release(kelp_kernel_registry *registry) {
    if (registry == NULL ||
        atomic_fetch_sub_explicit(&registry->references, 1, memory_order_acq_rel) != 1)
        return;
    kelp_allocator allocator = registry->allocator;
    while (registry->spare != NULL) {
        kelp_kernel_session *session = registry->spare;
        KELP_ASSERT(session->in_registry && !session->pending);
        registry->spare = session->next;
        kelp_kernel_session_destroy(session);
    }
    while (registry->count > 0)
        kelp_kernel_library_finalize(registry->libraries[--registry->count]);
    kelp_free(allocator, registry->libraries, registry->capacity * sizeof *registry->libraries);
    if (!registry->borrows_pool)
        kelp_pool_destroy(registry->pool);
    kelp_arena_deinit(&registry->arena);
    pthread_mutex_destroy(&registry->mutex);
    kelp_free(allocator, registry, sizeof *registry);
}

/* ---- opening ---- */
typedef struct search {
    kelp_kernel_registry *registry;
    const char *search_path;
    const char *name; /* NULL: all libraries */
    kelp_kernel_library *found;
    kelp_buf tried; /* a line for each file that was not used */
    void (*report)(void *userp, const char *path, const kelp_status *why); /* or NULL */
    void *userp;
} search;

static bool try_file(void *userp, const char *path) {
    search *s = userp;
    kelp_status *status = kelp_kernel_library_load(s->registry, path, s->name, &s->found);
    if (status == NULL)
        return s->name != NULL;
    char text[1024];
    if (s->report != NULL)
        s->report(s->userp, path, status);
    kelp_status_format(status, text, sizeof text);
    kelp_buf_printf(&s->tried, "\n  %s: %s", path, text);
    kelp_status_free(status);
    return false;
}

static kelp_status *open_by_name(search s, kelp_kernel_library **out) {
    kelp_kernel_registry *registry = s.registry;
    const char *name = s.name;
    KELP_ASSERT_HELD(&registry->mutex);
    for (size_t i = 0; i < registry->count; i++) {
        if (strcmp(registry->libraries[i]->name, name) == 0) {
            *out = registry->libraries[i];
            return NULL;
        }
    }
    kelp_buf_init(&s.tried, registry->allocator);
    kelp_kernel_candidates(registry->allocator, s.search_path, name, try_file, &s);
    kelp_status *status = NULL;
    if (s.found == NULL)
        status = kelp_buf_status(&s.tried);
    if (s.found == NULL && status == NULL)
        status = KELP_ERROR(KELP_NOT_FOUND, "there is no kernel library '%s' in %s; tried:%s", name,
                            s.search_path != NULL
                                ? s.search_path
                                : "KELP_BACKEND_PATH, TRITON_BACKEND_PATH or the default directory",
                            s.tried.length > 0 ? kelp_buf_cstr(&s.tried) : " no files");
    kelp_buf_deinit(&s.tried);
    *out = s.found;
    return status;
}

kelp_status *kelp_kernel_registry_open(kelp_kernel_registry *registry, const char *name,
                                       kelp_kernel_library **out) {
    return kelp_kernel_registry_search(registry, name, NULL, NULL, out);
}

kelp_status *kelp_kernel_registry_search(kelp_kernel_registry *registry, const char *name,
                                         void (*tried)(void *userp, const char *path,
                                                       const kelp_status *why),
                                         void *userp, kelp_kernel_library **out) {
    search s = {.registry = registry,
                .search_path = registry->search_path,
                .name = name,
                .report = tried,
                .userp = userp};
    kelp_status *status;
    pthread_mutex_lock(&registry->mutex);
    if (strchr(name, '/') != NULL) {
        status = kelp_kernel_library_load(registry, name, NULL, out);
        if (status != NULL && tried != NULL)
            tried(userp, name, status);
        if (status != NULL)
            status = KELP_ANNOTATE(status, "cannot open kernel library '%s'", name);
    } else {
        status = open_by_name(s, out);
    }
    pthread_mutex_unlock(&registry->mutex);
    return status;
}

kelp_status *kelp_kernel_registry_open_in(kelp_kernel_registry *registry, const char *search_path,
                                          const char *name, kelp_kernel_library **out) {
    search s = {.registry = registry, .search_path = search_path, .name = name};
    pthread_mutex_lock(&registry->mutex);
    kelp_status *status = open_by_name(s, out);
    pthread_mutex_unlock(&registry->mutex);
    return status;
}

kelp_status *kelp_kernel_registry_load(kelp_kernel_registry *registry, const char *path,
                                       kelp_kernel_library **out) {
    pthread_mutex_lock(&registry->mutex);
    kelp_status *status = kelp_kernel_library_load(registry, path, NULL, out);
    pthread_mutex_unlock(&registry->mutex);
    return status;
}

kelp_status *kelp_kernel_registry_add(kelp_kernel_registry *registry, const char *name,
                                      kelp_kernel_library **out) {
    kelp_status *status = NULL;
    pthread_mutex_lock(&registry->mutex);
    for (size_t i = 0; status == NULL && i < registry->count; i++) {
        if (strcmp(registry->libraries[i]->name, name) == 0)
            status = KELP_ERROR(KELP_ALREADY_EXISTS, "kernel library '%s' already exists", name);
    }
    if (status == NULL)
        status = kelp_grow(registry->allocator, (void **)&registry->libraries, &registry->capacity,
                           registry->count + 1, sizeof *registry->libraries);
    if (status == NULL)
        status = kelp_kernel_library_new(registry, name, "", out);
    if (status == NULL)
        registry->libraries[registry->count++] = *out;
    pthread_mutex_unlock(&registry->mutex);
    return status;
}

size_t kelp_kernel_registry_count(kelp_kernel_registry *registry) {
    pthread_mutex_lock(&registry->mutex);
    size_t count = registry->count;
    pthread_mutex_unlock(&registry->mutex);
    return count;
}

kelp_kernel_library *kelp_kernel_registry_at(kelp_kernel_registry *registry, size_t index) {
    pthread_mutex_lock(&registry->mutex);
    kelp_kernel_library *library = index < registry->count ? registry->libraries[index] : NULL;
    pthread_mutex_unlock(&registry->mutex);
    return library;
}

size_t kelp_kernel_registry_scan(kelp_kernel_registry *registry) {
    search s = {.registry = registry, .search_path = registry->search_path};
    pthread_mutex_lock(&registry->mutex);
    kelp_buf_init(&s.tried, registry->allocator);
    kelp_kernel_candidates(registry->allocator, s.search_path, NULL, try_file, &s);
    if (s.tried.length > 0 && registry->log != NULL)
        registry->log(registry->log_userp, 1, kelp_buf_cstr(&s.tried));
    kelp_buf_deinit(&s.tried);
    size_t count = registry->count;
    pthread_mutex_unlock(&registry->mutex);
    return count;
}
