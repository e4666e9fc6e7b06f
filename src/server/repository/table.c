/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of models, from names to the versions that serve. With namespaces, each repository may
 * have a model of the same name. The name is ambiguous if more than one of them was loaded.
 */
#include "server/repository/repository.h"

#include "base/assert.h"

#include <stdio.h>

#define MAX_QUALIFIED_NAME 8192 /* bytes of NAMESPACE::NAME: two paths */

const char *kelp_version_state_name(kelp_version_state state) {
    static const char *const names[] = {"UNKNOWN", "LOADING", "READY", "UNLOADING", "UNAVAILABLE"};
    return names[state];
}

const char *kelp_entry_format(const kelp_entry *entry, char *out, size_t size) {
    snprintf(out, size, "%s%s%s", entry->space, entry->space[0] ? "::" : "", entry->name);
    return out;
}

/* ---- entries ---- */

void kelp_entry_destroy(kelp_allocator allocator, kelp_entry *entry) {
    for (size_t i = 0; i < entry->version_count; i++)
        kelp_text_deinit(allocator, &entry->versions[i].reason);
    kelp_free(allocator, entry->versions, entry->version_capacity * sizeof *entry->versions);
    kelp_text_deinit(allocator, &entry->failure);
    kelp_override_clear(allocator, &entry->override);
    kelp_free_string(allocator, entry->name);
    kelp_free_string(allocator, entry->space);
    kelp_free_string(allocator, entry->path);
    kelp_free(allocator, entry, sizeof *entry);
}

static kelp_entry *find_entry(kelp_repository *repository, const char *name, const char *space) {
    kelp_entry *entry = kelp_map_get(&repository->entries, kelp_str_from(name));
    while (entry != NULL && strcmp(entry->space, space) != 0)
        entry = entry->next_space;
    return entry;
}

static kelp_status *create_entry(kelp_repository *repository, const char *name, const char *space,
                                 kelp_entry **out) {
    KELP_ASSERT_HELD(&repository->lock);
    kelp_allocator allocator = repository->host->base.allocator;
    kelp_entry *entry = NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_entry, &entry));
    kelp_status *status = kelp_strdup(allocator, name, &entry->name);
    if (status == NULL)
        status = kelp_strdup(allocator, space, &entry->space);
    if (status == NULL) {
        kelp_entry *same = kelp_map_get(&repository->entries, kelp_str_from(name));
        kelp_request_pools_lock(&repository->host->base.pools);
        if (same != NULL) {
            entry->next_space = same->next_space;
            same->next_space = entry;
        } else {
            status = kelp_map_put(&repository->entries, kelp_str_from(entry->name), entry);
        }
        kelp_request_pools_unlock(&repository->host->base.pools);
    }
    if (status != NULL)
        kelp_entry_destroy(allocator, entry);
    else
        *out = entry;
    return status;
}

kelp_status *kelp_repository_entry(kelp_repository *repository, const char *name, const char *space,
                                   kelp_entry **out) {
    KELP_ASSERT_HELD(&repository->lock);
    *out = find_entry(repository, name, space);
    if (*out != NULL)
        return NULL;
    KELP_TRY(create_entry(repository, name, space, out));
    if (repository->last_entry != NULL)
        repository->last_entry->next = *out;
    else
        repository->first_entry = *out;
    repository->last_entry = *out;
    return NULL;
}

/* Returns the entry of a client's model name, or NULL. If the name is ambiguous, *out_candidates is
 * greater than 1. The lock of the thread's pool is held. */
static kelp_entry *resolve(kelp_repository *repository, const char *name,
                           unsigned *out_candidates) {
    KELP_ASSERT_HELD(&kelp_request_pool_of_thread(&repository->host->base.pools)->lock);
    kelp_entry *first = kelp_map_get(&repository->entries, kelp_str_from(name)), *found = first;
    *out_candidates = 0;
    /* The search below is quadratic in the length of the name, which comes from a client. */
    if (first == NULL && repository->host->options->model_namespacing &&
        strlen(name) <= MAX_QUALIFIED_NAME) {
        for (const char *at = strstr(name, "::"); at != NULL; at = strstr(at + 1, "::")) {
            kelp_entry *entry = kelp_map_get(&repository->entries, kelp_str_from(at + 2));
            for (; entry != NULL; entry = entry->next_space)
                if (strlen(entry->space) == (size_t)(at - name) &&
                    memcmp(entry->space, name, (size_t)(at - name)) == 0)
                    return entry;
        }
    }
    if (first == NULL || first->next_space == NULL)
        return first;
    for (kelp_entry *entry = first; entry != NULL; entry = entry->next_space) {
        if (entry->wanted) {
            found = entry;
            ++*out_candidates;
        }
    }
    return *out_candidates > 1 ? NULL : found;
}

/* ---- versions ---- */

kelp_version *kelp_entry_version(kelp_entry *entry, int64_t number) {
    for (size_t i = 0; entry != NULL && i < entry->version_count; i++)
        if (entry->versions[i].number == number)
            return &entry->versions[i];
    return NULL;
}

/* Returns the highest version that is ready. */
static kelp_version *latest_ready(kelp_entry *entry) {
    for (size_t i = entry->version_count; i-- > 0;)
        if (entry->versions[i].model != NULL)
            return &entry->versions[i];
    return NULL;
}

static kelp_status *not_found(const char *name, int64_t version, const kelp_entry *entry,
                              const kelp_version *found) {
    static const char prefix[] = "Request for unknown model: ";
    if (entry == NULL || entry->version_count == 0)
        return KELP_ERROR(KELP_NOT_FOUND, "%s'%s' is not found", prefix, name);
    if (version == -1)
        return KELP_ERROR(KELP_NOT_FOUND, "%s'%s' has no available versions", prefix, name);
    if (found == NULL)
        return KELP_ERROR(KELP_NOT_FOUND, "%s'%s' version %lld is not found", prefix, name,
                          (long long)version);
    return KELP_ERROR(KELP_UNAVAILABLE, "%s'%s' version %lld is not at ready state", prefix, name,
                      (long long)version);
}

/* Returns a reference to a version of an entry, which may be NULL. The lock of a pool is held. */
static kelp_status *find_version(const char *name, kelp_entry *entry, int64_t version,
                                 kelp_model **out) {
    kelp_version *found = NULL;
    if (entry != NULL)
        found = version == -1 ? latest_ready(entry) : kelp_entry_version(entry, version);
    if (found == NULL || found->model == NULL)
        return not_found(name, version, entry, found);
    kelp_model_retain(&found->model->base);
    *out = found->model;
    return NULL;
}

kelp_status *kelp_repository_find(kelp_repository *repository, const char *name, int64_t version,
                                  kelp_model **out, kelp_request **out_request) {
    kelp_status *status = NULL;
    unsigned candidates = 0;
    kelp_request_pool *pool = kelp_request_pool_of_thread(&repository->host->base.pools);
    pthread_mutex_lock(&pool->lock);
    kelp_entry *entry = resolve(repository, name, &candidates);
    if (candidates > 1)
        status = KELP_ERROR(KELP_INVALID_ARGUMENT,
                            "Request for unknown model: there are %u models '%s' in different "
                            "namespaces: expected NAMESPACE::NAME to resolve the ambiguity",
                            candidates, name);
    else
        status = find_version(name, entry, version, out);
    if (status == NULL && out_request != NULL)
        *out_request = kelp_request_pool_take(pool);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

kelp_status *kelp_repository_find_version(kelp_repository *repository, kelp_entry *entry,
                                          int64_t version, kelp_model **out) {
    kelp_request_pool *pool = kelp_request_pool_of_thread(&repository->host->base.pools);
    pthread_mutex_lock(&pool->lock);
    kelp_status *status = find_version(entry->name, entry, version, out);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

bool kelp_repository_knows(kelp_repository *repository, const char *name) {
    bool known = false;
    pthread_mutex_lock(&repository->lock);
    const kelp_entry *entry = kelp_map_get(&repository->entries, kelp_str_from(name));
    for (; entry != NULL && !known; entry = entry->next_space)
        known = entry->present || entry->version_count > 0;
    pthread_mutex_unlock(&repository->lock);
    return known;
}

/* ---- lists ---- */

static kelp_status *add_models(const kelp_entry *entry, int64_t version, kelp_model_list *list) {
    for (size_t i = 0; i < entry->version_count; i++) {
        kelp_model *model = entry->versions[i].model;
        if (model == NULL || (version != -1 && entry->versions[i].number != version))
            continue;
        KELP_TRY(kelp_grow(list->allocator, (void **)&list->items, &list->capacity, list->count + 1,
                           sizeof *list->items));
        kelp_model_retain(&model->base);
        list->items[list->count++] = model;
    }
    return NULL;
}

kelp_status *kelp_repository_list(kelp_repository *repository, const kelp_entry *only,
                                  int64_t version, kelp_model_list *out) {
    kelp_status *status = NULL;
    *out = (kelp_model_list){.allocator = repository->host->base.allocator};
    pthread_mutex_lock(&repository->lock);
    for (const kelp_entry *entry = repository->first_entry; entry != NULL && status == NULL;
         entry = entry->next)
        if (only == NULL || entry == only)
            status = add_models(entry, version, out);
    pthread_mutex_unlock(&repository->lock);
    return status;
}

void kelp_model_list_deinit(kelp_model_list *list) {
    for (size_t i = 0; i < list->count; i++)
        kelp_model_release(&list->items[i]->base);
    kelp_free(list->allocator, list->items, list->capacity * sizeof *list->items);
}
