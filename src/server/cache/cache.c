/* SPDX-License-Identifier: Apache-2.0 */
/* Cache entries, and finding and loading the cache. */
#include "server/cache/cache.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/fs.h"
#include "server/core/error.h"
#include "server/core/library.h"
#include "server/core/log.h"

#include <stdio.h>
#include <string.h>

void kelp_cache_entry_init(kelp_cache_entry *entry, kelp_allocator allocator) {
    *entry = (kelp_cache_entry){.allocator = allocator};
}

void kelp_cache_entry_deinit(kelp_cache_entry *entry) {
    kelp_free(entry->allocator, entry->buffers, entry->capacity * sizeof *entry->buffers);
    kelp_cache_entry_init(entry, entry->allocator);
}

kelp_status *kelp_cache_entry_add(kelp_cache_entry *entry, void *base,
                                  const kelp_buffer_attributes *attributes) {
    KELP_ASSERT(entry->count <= entry->capacity && entry->allocator.realloc);
    KELP_TRY(kelp_grow(entry->allocator, (void **)&entry->buffers, &entry->capacity,
                       entry->count + 1, sizeof *entry->buffers));
    entry->buffers[entry->count++] = (kelp_cache_buffer){.base = base, .attributes = *attributes};
    return NULL;
}

static kelp_status *bind_library(kelp_cache *cache, const char *path) {
    static const kelp_entry_point entry_points[] = {
        {"TRITONCACHE_CacheInitialize", offsetof(kelp_cache_functions, initialize), true},
        {"TRITONCACHE_CacheFinalize", offsetof(kelp_cache_functions, finalize), true},
        {"TRITONCACHE_CacheLookup", offsetof(kelp_cache_functions, lookup), true},
        {"TRITONCACHE_CacheInsert", offsetof(kelp_cache_functions, insert), true},
    };
    return kelp_library_open(path, "cache", entry_points, KELP_COUNT(entry_points), &cache->fn);
}

static kelp_status *open_named(kelp_cache *cache, const char *directory, const char *name,
                               const char *config) {
    kelp_buf path;
    kelp_buf_init(&path, cache->allocator);
    kelp_buf_printf(&path, "%s/%s/libtritoncache_%s.so", directory, name, name);
    kelp_status *status = kelp_buf_cstr(&path) != NULL ? NULL : kelp_status_oom();
    bool found = status == NULL && kelp_fs_kind_of(path.data) == KELP_FS_FILE;
    bool local = strcmp(name, "local") == 0;
    if (status == NULL && found)
        status = bind_library(cache, path.data);
    else if (status == NULL && local)
        cache->fn = kelp_cache_local;
    else if (status == NULL)
        status = KELP_ERROR(KELP_NOT_FOUND,
                            "unable to find cache '%s': no file '%s', and it is not the built-in "
                            "cache 'local'",
                            name, path.data);
    if (status == NULL) {
        KELP_SERVER_LOG(KELP_LOG_INFO, "response cache '%s' from %s", name,
                        found ? path.data : "the built-in caches");
        status = cache->fn.initialize != NULL
                     ? kelp_from_error(cache->fn.initialize(&cache->handle, config))
                     : kelp_cache_local_create(cache->allocator, config, &cache->handle);
        if (status != NULL)
            status = KELP_ANNOTATE(status, "cannot create the response cache '%s'", name);
    }
    kelp_buf_deinit(&path);
    return status;
}

kelp_status *kelp_cache_open(kelp_allocator allocator, const kelp_server_options *options,
                             kelp_cache **out) {
    const kelp_setting *chosen = options->caches.count ? &options->caches.items[0] : NULL;
    *out = NULL;
    if (chosen == NULL && !options->response_cache_bytes)
        return NULL;
    for (size_t i = 1; i < options->caches.count; i++)
        if (strcmp(options->caches.items[i].owner, chosen->owner) != 0)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "multiple cache configurations: '%s' and '%s'; expected one cache",
                              chosen->owner, options->caches.items[i].owner);
    const char *name = chosen != NULL ? chosen->owner : "local";
    if (!name[0] || strchr(name, '/') != NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "'%s' is not the name of a cache", name);
    char size[64];
    snprintf(size, sizeof size, "{\"size\": %llu}",
             (unsigned long long)options->response_cache_bytes);
    kelp_cache *cache = NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_cache, &cache));
    cache->allocator = allocator;
    cache->base.ops = &kelp_cache_ops;
    kelp_status *status =
        open_named(cache, options->cache_directory, name, chosen != NULL ? chosen->value : size);
    if (status != NULL) {
        kelp_cache_close(cache);
        return status;
    }
    *out = cache;
    return NULL;
}

void kelp_cache_close(kelp_cache *cache) {
    if (cache == NULL)
        return;
    if (cache->handle != NULL)
        kelp_server_log_status("failed to finalize the response cache",
                               kelp_from_error(cache->fn.finalize(cache->handle)));
    kelp_free(cache->allocator, cache, sizeof *cache);
}
