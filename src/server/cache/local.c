/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The built-in cache: a table in memory of limited size, which evicts the least recently used
 * entries. Configuration: {"size": BYTES}, as a number or a string.
 *
 * Thread-safe. One lock guards the table. Bytes are copied without the lock, from reference-counted
 * nodes.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/text/json.h"
#include "base/map.h"
#include "server/cache/cache.h"
#include "server/core/error.h"
#include "server/metrics/metrics.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct node {
    struct node *newer, *older;
    unsigned refs; /* of the table and of lookups in flight; under the lock */
    char *key;
    void **bases;
    size_t *sizes;
    size_t buffer_count;
    uint64_t size_bytes; /* in total */
} node;

/* Metrics, with the names of Triton's local cache. */
typedef enum figure {
    USED, /* fraction of the limit */
    ENTRIES,
    HITS,
    MISSES,
    LOOKUPS,
    EVICTIONS,
    LOOKUP_TIME,
    INSERTION_TIME,
    FIGURES
} figure;

static const struct {
    const char *name, *help;
} described[FIGURES] = {
    {"nv_cache_util", "Fraction of the response cache in use, 0 to 1"},
    {"nv_cache_num_entries", "Responses in the cache"},
    {"nv_cache_num_hits", "Lookups that found a response"},
    {"nv_cache_num_misses", "Lookups that found no response"},
    {"nv_cache_num_lookups", "Lookups"},
    {"nv_cache_num_evictions", "Evicted responses"},
    {"nv_cache_lookup_duration", "Total time of lookups, in microseconds"},
    {"nv_cache_insertion_duration", "Total time of insertions, in microseconds"},
};

typedef struct local {
    kelp_allocator allocator;
    pthread_mutex_t lock;
    kelp_map nodes;
    node *newest, *oldest;
    uint64_t size_bytes, limit_bytes;
    kelp_metric_family *families[FIGURES];
    kelp_metric *figures[FIGURES];
} local;

static local *of(TRITONCACHE_Cache *cache) {
    return (local *)cache;
}

static void node_free(const local *l, node *n) {
    kelp_allocator heap = l->allocator;
    for (size_t i = 0; n->bases != NULL && i < n->buffer_count; i++)
        kelp_free(heap, n->bases[i], n->sizes[i]);
    kelp_free(heap, n->bases, n->buffer_count * sizeof *n->bases);
    kelp_free(heap, n->sizes, n->buffer_count * sizeof *n->sizes);
    kelp_free_string(heap, n->key);
    kelp_free(heap, n, sizeof *n);
}

static void unlink_node(local *l, node *n) {
    KELP_ASSERT_HELD(&l->lock);
    KELP_ASSERT(l->newest && l->oldest);
    *(n->newer != NULL ? &n->newer->older : &l->newest) = n->older;
    *(n->older != NULL ? &n->older->newer : &l->oldest) = n->newer;
}

static void link_newest(local *l, node *n) {
    KELP_ASSERT_HELD(&l->lock);
    n->newer = NULL;
    n->older = l->newest;
    *(l->newest != NULL ? &l->newest->newer : &l->oldest) = n;
    l->newest = n;
}

static bool release(node *n) {
    KELP_ASSERT(n->refs > 0);
    return --n->refs == 0;
}

static void evict_oldest(local *l) {
    KELP_ASSERT_HELD(&l->lock);
    KELP_ASSERT(l->oldest && l->size_bytes >= l->oldest->size_bytes);
    node *n = l->oldest;
    unlink_node(l, n);
    kelp_map_remove(&l->nodes, kelp_str_from(n->key));
    l->size_bytes -= n->size_bytes;
    if (release(n))
        node_free(l, n);
}

static void add(local *l, figure which, double value) {
    kelp_status_free(kelp_metric_increment(l->figures[which], value));
}

static void add_time(local *l, figure which, uint64_t start_ns) {
    add(l, which, (double)(kelp_now_ns() - start_ns) / 1000);
}

static TRITONSERVER_Error *local_finalize(TRITONCACHE_Cache *cache) {
    local *l = of(cache);
    pthread_mutex_lock(&l->lock);
    while (l->oldest != NULL)
        evict_oldest(l);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < FIGURES; i++) {
        if (l->figures[i] != NULL)
            kelp_metric_release(l->figures[i]);
        if (l->families[i] != NULL)
            kelp_status_free(kelp_metric_family_release(l->families[i]));
    }
    kelp_map_deinit(&l->nodes);
    pthread_mutex_destroy(&l->lock);
    kelp_free(l->allocator, l, sizeof *l);
    return NULL;
}

static kelp_status *read_size(kelp_allocator allocator, const char *config, uint64_t *out_bytes) {
    kelp_arena arena;
    kelp_json *json = NULL;
    kelp_arena_init(&arena, allocator, 0);
    kelp_status *status =
        kelp_json_parse(&arena, "configuration of cache 'local'", config, strlen(config), &json);
    const kelp_json *size = status != NULL ? NULL : kelp_json_get(json, "size");
    *out_bytes = 0;
    if (size != NULL && (size->type == KELP_JSON_INT || size->type == KELP_JSON_UINT) &&
        (size->type == KELP_JSON_UINT || size->i64 > 0)) {
        *out_bytes = size->u64;
    } else if (size != NULL && size->type == KELP_JSON_STRING && size->string.length < 20) {
        char digits[24] = "", *end = digits;
        memcpy(digits, size->string.data, size->string.length);
        if (digits[0] >= '0' && digits[0] <= '9')
            *out_bytes = strtoull(digits, &end, 10);
        if (*end)
            *out_bytes = 0;
    }
    if (status == NULL && *out_bytes == 0)
        status =
            KELP_ERROR(KELP_INVALID_ARGUMENT,
                       "cache 'local': expected \"size\": a number of bytes, found '%s'", config);
    kelp_arena_deinit(&arena);
    return status;
}

kelp_status *kelp_cache_local_create(kelp_allocator allocator, const char *config,
                                     TRITONCACHE_Cache **out) {
    local *l = NULL;
    uint64_t limit_bytes = 0;
    KELP_TRY(read_size(allocator, config, &limit_bytes));
    KELP_TRY(KELP_NEW(allocator, local, &l));
    l->allocator = allocator;
    l->limit_bytes = limit_bytes;
    pthread_mutex_init(&l->lock, NULL);
    kelp_map_init(&l->nodes, allocator);
    kelp_status *status = NULL;
    for (int i = 0; i < FIGURES && status == NULL; i++) {
        status = kelp_metric_family_acquire(TRITONSERVER_METRIC_KIND_GAUGE, described[i].name,
                                            described[i].help, &l->families[i]);
        if (status == NULL)
            status = kelp_metric_acquire(l->families[i], NULL, 0, NULL, 0, &l->figures[i]);
    }
    if (status != NULL)
        kelp_error_discard(local_finalize((TRITONCACHE_Cache *)l));
    else
        *out = (TRITONCACHE_Cache *)l;
    return status;
}

static kelp_status *copy(TRITONCACHE_Allocator *allocator, kelp_cache_entry *entry) {
    kelp_cache_copier *copier = (kelp_cache_copier *)allocator;
    return copier->copy(copier, entry);
}

static TRITONSERVER_Error *local_lookup(TRITONCACHE_Cache *cache, const char *key,
                                        TRITONCACHE_CacheEntry *entry,
                                        TRITONCACHE_Allocator *allocator) {
    local *l = of(cache);
    uint64_t start_ns = kelp_now_ns();
    pthread_mutex_lock(&l->lock);
    node *n = kelp_map_get(&l->nodes, kelp_str_from(key));
    if (n != NULL) {
        n->refs++;
        unlink_node(l, n);
        link_newest(l, n);
    }
    pthread_mutex_unlock(&l->lock);
    add(l, LOOKUPS, 1);
    add(l, n != NULL ? HITS : MISSES, 1);
    add_time(l, LOOKUP_TIME, start_ns);
    if (n == NULL)
        return kelp_to_error(KELP_ERROR(KELP_NOT_FOUND, "key '%s' is not in the cache", key));
    kelp_status *status = NULL;
    for (size_t i = 0; i < n->buffer_count && status == NULL; i++) {
        const kelp_buffer_attributes attributes = {.size_bytes = n->sizes[i]};
        status = kelp_cache_entry_add((kelp_cache_entry *)entry, n->bases[i], &attributes);
    }
    if (status == NULL)
        status = copy(allocator, (kelp_cache_entry *)entry);
    pthread_mutex_lock(&l->lock);
    bool last = release(n);
    pthread_mutex_unlock(&l->lock);
    if (last)
        node_free(l, n);
    return kelp_to_error(status);
}

/* Creates a node with memory for the entry's bytes, and sets the entry's buffers to that memory. */
static kelp_status *make_node(kelp_allocator heap, const char *key, kelp_cache_entry *entry,
                              node **out) {
    node *n = NULL;
    KELP_TRY(KELP_NEW(heap, node, &n));
    *out = n;
    n->refs = 1;
    n->size_bytes = sizeof *n + strlen(key) + 1;
    KELP_TRY(kelp_strdup(heap, key, &n->key));
    KELP_TRY(kelp_alloc_zero(heap, entry->count, sizeof *n->bases, (void **)&n->bases));
    n->buffer_count = entry->count;
    KELP_TRY(kelp_alloc_zero(heap, entry->count, sizeof *n->sizes, (void **)&n->sizes));
    for (size_t i = 0; i < entry->count; i++) {
        size_t size_bytes = entry->buffers[i].attributes.size_bytes;
        KELP_TRY(kelp_alloc(heap, size_bytes, &n->bases[i]));
        n->sizes[i] = size_bytes;
        n->size_bytes += size_bytes + sizeof *n->bases + sizeof *n->sizes;
        entry->buffers[i].base = n->bases[i];
    }
    return NULL;
}

/* Inserts a node; returns true if the table owns it then. */
static bool put(local *l, node *n, kelp_status **out_status) {
    bool taken = false;
    unsigned evicted = 0;
    pthread_mutex_lock(&l->lock);
    if (kelp_map_get(&l->nodes, kelp_str_from(n->key)) != NULL) {
        *out_status =
            KELP_ERROR(KELP_ALREADY_EXISTS, "key '%s' already exists in the cache", n->key);
    } else if ((*out_status = kelp_map_put(&l->nodes, kelp_str_from(n->key), n)) == NULL) {
        taken = true;
        link_newest(l, n);
        l->size_bytes += n->size_bytes;
        for (; l->size_bytes > l->limit_bytes; evicted++)
            evict_oldest(l);
        /* Under the lock, so that the values are those of the last change. */
        kelp_status_free(
            kelp_metric_set(l->figures[USED], (double)l->size_bytes / (double)l->limit_bytes));
        kelp_status_free(kelp_metric_set(l->figures[ENTRIES], (double)l->nodes.count));
    }
    pthread_mutex_unlock(&l->lock);
    if (evicted)
        add(l, EVICTIONS, evicted);
    return taken;
}

static TRITONSERVER_Error *local_insert(TRITONCACHE_Cache *cache, const char *key,
                                        TRITONCACHE_CacheEntry *entry,
                                        TRITONCACHE_Allocator *allocator) {
    local *l = of(cache);
    kelp_cache_entry *source = (kelp_cache_entry *)entry;
    uint64_t total_bytes = sizeof(node) + strlen(key) + 1;
    for (size_t i = 0; i < source->count; i++) {
        uint64_t more = source->buffers[i].attributes.size_bytes + sizeof(void *) + sizeof(size_t);
        total_bytes = more > UINT64_MAX - total_bytes ? UINT64_MAX : total_bytes + more;
    }
    if (total_bytes > l->limit_bytes)
        return kelp_to_error(KELP_ERROR(
            KELP_INVALID_ARGUMENT, "an entry of %llu bytes does not fit the cache of %llu",
            (unsigned long long)total_bytes, (unsigned long long)l->limit_bytes));
    node *n = NULL;
    uint64_t start_ns = kelp_now_ns();
    kelp_status *status = make_node(l->allocator, key, source, &n);
    if (status == NULL)
        status = copy(allocator, (kelp_cache_entry *)entry);
    if (n != NULL && (status != NULL || !put(l, n, &status)))
        node_free(l, n);
    add_time(l, INSERTION_TIME, start_ns);
    return kelp_to_error(status);
}

const kelp_cache_functions kelp_cache_local = {
    .finalize = local_finalize, .lookup = local_lookup, .insert = local_insert};
