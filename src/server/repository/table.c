/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of models: from the name that a client gives to the version that serves. With
 * namespaces a name may stand for a model in each repository; it is refused when more than one of
 * them was asked for, because it does not say which. Threads: see server.h.
 */
#include "server/server.h"

#include <stdio.h>

const char *kelp_version_state_name(kelp_version_state state) {
    static const char *const names[] = {"UNKNOWN", "LOADING", "READY", "UNLOADING", "UNAVAILABLE"};
    return names[state];
}

const char *kelp_entry_format(const kelp_entry *entry, char *out, size_t size) {
    snprintf(out, size, "%s%s%s", entry->space, entry->space[0] ? "::" : "", entry->name);
    return out;
}

/* ---- entries ---- */

kelp_entry *kelp_server_entry(kelp_server *server, const char *name, const char *space) {
    kelp_entry *entry = kelp_map_get(&server->entries, kelp_str_from(name));
    while (entry && strcmp(entry->space, space) != 0)
        entry = entry->next_space;
    return entry;
}

kelp_status *kelp_server_entry_get(kelp_server *server, const char *name, const char *space,
                                   kelp_entry **out) {
    kelp_allocator heap = kelp_allocator_system();
    kelp_entry *entry = kelp_server_entry(server, name, space);
    *out = entry;
    if (entry)
        return NULL;
    KELP_TRY(KELP_NEW(heap, kelp_entry, &entry));
    kelp_status *status = kelp_strdup(heap, name, &entry->name);
    if (!status)
        status = kelp_strdup(heap, space, &entry->space);
    if (!status) {
        kelp_entry *same = kelp_map_get(&server->entries, kelp_str_from(name));
        kelp_server_lock_all(server);
        if (same) {
            entry->next_space = same->next_space;
            same->next_space = entry;
        } else {
            status = kelp_map_put(&server->entries, kelp_str_from(entry->name), entry);
        }
        kelp_server_unlock_all(server);
    }
    if (status) {
        kelp_entry_destroy(entry);
        return status;
    }
    if (server->last_entry)
        server->last_entry->next = entry;
    else
        server->first_entry = entry;
    server->last_entry = entry;
    *out = entry;
    return NULL;
}

/* The entry that a client means, or NULL and, where the name is not clear, how many it may mean. A
 * stripe is locked. */
static kelp_entry *resolve(kelp_server *server, const char *name, unsigned *out_candidates) {
    kelp_entry *first = kelp_map_get(&server->entries, kelp_str_from(name)), *found = first;
    *out_candidates = 0;
    if (!first && server->options->model_namespacing) {
        for (const char *at = strstr(name, "::"); at; at = strstr(at + 1, "::")) {
            kelp_entry *entry = kelp_map_get(&server->entries, kelp_str_from(at + 2));
            for (; entry; entry = entry->next_space)
                if (strlen(entry->space) == (size_t)(at - name) &&
                    memcmp(entry->space, name, (size_t)(at - name)) == 0)
                    return entry;
        }
    }
    if (!first || !first->next_space)
        return first;
    for (kelp_entry *entry = first; entry; entry = entry->next_space) {
        if (entry->wanted) {
            found = entry;
            ++*out_candidates;
        }
    }
    return *out_candidates > 1 ? NULL : found;
}

/* ---- versions ---- */

kelp_version *kelp_entry_version(kelp_entry *entry, int64_t number) {
    for (size_t i = 0; entry && i < entry->version_count; i++)
        if (entry->versions[i].number == number)
            return &entry->versions[i];
    return NULL;
}

/* The highest version that is ready. */
static kelp_version *latest_ready(kelp_entry *entry) {
    for (size_t i = entry->version_count; i-- > 0;)
        if (entry->versions[i].model)
            return &entry->versions[i];
    return NULL;
}

static kelp_status *not_found(const char *name, int64_t version, const kelp_entry *entry,
                              const kelp_version *found) {
    static const char prefix[] = "Request for unknown model: ";
    if (!entry || entry->version_count == 0)
        return KELP_ERROR(KELP_NOT_FOUND, "%s'%s' is not found", prefix, name);
    if (version == -1)
        return KELP_ERROR(KELP_NOT_FOUND, "%s'%s' has no available versions", prefix, name);
    if (!found)
        return KELP_ERROR(KELP_NOT_FOUND, "%s'%s' version %lld is not found", prefix, name,
                          (long long)version);
    return KELP_ERROR(KELP_UNAVAILABLE, "%s'%s' version %lld is not at ready state", prefix, name,
                      (long long)version);
}

/* A reference to the version of the entry, which may be NULL; a stripe is locked. */
static kelp_status *find_version(const char *name, kelp_entry *entry, int64_t version,
                                 kelp_model **out) {
    kelp_version *found = NULL;
    if (entry)
        found = version == -1 ? latest_ready(entry) : kelp_entry_version(entry, version);
    if (!found || !found->model)
        return not_found(name, version, entry, found);
    kelp_model_retain(found->model);
    *out = found->model;
    return NULL;
}

/* A pooled request, or NULL; the stripe's lock is held. */
static kelp_request *take_pooled(kelp_stripe *stripe) {
    bool bare = !stripe->requests;
    kelp_request **list = bare ? &stripe->bare_requests : &stripe->requests;
    kelp_request *request = *list;
    if (!request)
        return NULL;
    *list = request->next;
    if (!bare)
        stripe->request_count--;
    return request;
}

kelp_status *kelp_server_find_model(kelp_server *server, const char *name, int64_t version,
                                    kelp_model **out, kelp_request **out_request) {
    kelp_status *status = NULL;
    unsigned candidates = 0;
    kelp_stripe *stripe = kelp_server_stripe(server);
    pthread_mutex_lock(&stripe->lock);
    kelp_entry *entry = resolve(server, name, &candidates);
    if (candidates > 1)
        status = KELP_ERROR(KELP_INVALID_ARGUMENT,
                            "Request for unknown model: there are %u models '%s', each in a "
                            "namespace of its own: the namespace must be given to tell them apart",
                            candidates, name);
    else
        status = find_version(name, entry, version, out);
    if (!status && out_request)
        *out_request = take_pooled(stripe);
    pthread_mutex_unlock(&stripe->lock);
    return status;
}

kelp_status *kelp_server_find_version(kelp_server *server, kelp_entry *entry, int64_t version,
                                      kelp_model **out) {
    kelp_stripe *stripe = kelp_server_stripe(server);
    pthread_mutex_lock(&stripe->lock);
    kelp_status *status = find_version(entry->name, entry, version, out);
    pthread_mutex_unlock(&stripe->lock);
    return status;
}
