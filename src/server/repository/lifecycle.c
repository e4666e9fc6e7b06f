/* SPDX-License-Identifier: Apache-2.0 */
/* Loading and unloading by name, at startup and by polling. Thread-safe; the busy flag of an entry
 * serializes loads and unloads of the entry. */
#include "base/assert.h"
#include "base/sync/thread.h"
#include "server/config/model_files.h"
#include "server/core/log.h"
#include "server/repository/repository.h"
#include "server/repository/scan.h"

static kelp_status *set_path(kelp_allocator heap, kelp_entry *entry, const char *path) {
    char *copy = NULL;
    KELP_TRY(kelp_strdup(heap, path, &copy));
    kelp_free_string(heap, entry->path);
    entry->path = copy;
    return NULL;
}

/* Marks an entry as busy for a load or unload. The lock is held, and released while waiting. */
static kelp_status *entry_begin(kelp_repository *repository, kelp_entry *entry) {
    KELP_ASSERT_HELD(&repository->lock);
    while (entry->busy)
        pthread_cond_wait(&repository->changed, &repository->lock);
    if (atomic_load(&repository->stopping))
        return KELP_ERROR(KELP_UNAVAILABLE, "Server exiting");
    entry->busy = true;
    return NULL;
}

static void entry_end(kelp_repository *repository, kelp_entry *entry) {
    KELP_ASSERT_HELD(&repository->lock);
    KELP_ASSERT(entry->busy);
    entry->busy = false;
    pthread_cond_broadcast(&repository->changed);
}

/* ---- one name ---- */

kelp_status *kelp_repository_poll_failure(const char *name, const char *path,
                                          kelp_status *take_reason) {
    char reason[2048];
    kelp_code code = kelp_status_code(take_reason);
    kelp_status_format(take_reason, reason, sizeof reason);
    kelp_status_free(take_reason);
    if (path != NULL)
        KELP_SERVER_LOG(KELP_LOG_ERROR, "Poll failed for model directory '%s': %s", path, reason);
    /* Triton's code, which its clients check. */
    if (code == KELP_INVALID_ARGUMENT || code == KELP_NOT_FOUND)
        code = KELP_INTERNAL;
    return KELP_ERROR(code, "failed to load '%s', failed to poll from model repository: %s", name,
                      reason);
}

static void set_wanted(kelp_repository *repository, kelp_entry *entry, bool wanted) {
    KELP_ASSERT_HELD(&repository->lock);
    kelp_request_pools_lock(&repository->host->base.pools);
    entry->wanted = wanted;
    kelp_request_pools_unlock(&repository->host->base.pools);
}

/* Loads a model of a repository or, if `found` is NULL, one that consists of the files of the
 * load's parameters. The lock is held, and released while loading. */
static kelp_status *load_found(kelp_repository *repository, const char *name,
                               const kelp_scan_model *found, const kelp_load_options *options) {
    KELP_ASSERT_HELD(&repository->lock);
    kelp_entry *entry = NULL;
    const char *space =
        found != NULL && repository->host->options->model_namespacing ? found->repository : "";
    if (found != NULL && found->conflict != NULL)
        return kelp_repository_poll_failure(
            name, found->path, KELP_ERROR(KELP_INVALID_ARGUMENT, "%s", found->conflict));
    KELP_TRY(kelp_repository_entry(repository, name, space, &entry));
    KELP_TRY(entry_begin(repository, entry));
    entry->present = found != NULL;
    bool wanted = entry->wanted;
    set_wanted(repository, entry, true);
    kelp_status *status =
        found != NULL ? set_path(repository->host->base.allocator, entry, found->path) : NULL;
    pthread_mutex_unlock(&repository->lock);
    if (status == NULL)
        status = kelp_entry_load(repository, entry, found != NULL ? found->path : "", options);
    pthread_mutex_lock(&repository->lock);
    if (status != NULL && entry->version_count == 0)
        set_wanted(repository, entry, wanted); /* the name is as ambiguous as before */
    entry_end(repository, entry);
    return status;
}

/* Returns the directories to scan; the caller frees out_mappings. The lock is held. */
static kelp_status *places_of(kelp_repository *repository, kelp_scan_places *out,
                              kelp_scan_mapping **out_mappings) {
    const kelp_settings *mappings = &repository->mappings;
    KELP_TRY(kelp_alloc_zero(repository->host->base.allocator, mappings->count,
                             sizeof **out_mappings, (void **)out_mappings));
    for (size_t i = 0; i < mappings->count; i++)
        (*out_mappings)[i] = (kelp_scan_mapping){.repository = mappings->items[i].owner,
                                                 .directory = mappings->items[i].value,
                                                 .name = mappings->items[i].name};
    *out = (kelp_scan_places){.repositories = (const char *const *)repository->paths.items,
                              .repository_count = repository->paths.count,
                              .mappings = *out_mappings,
                              .mapping_count = mappings->count,
                              .namespaces = repository->host->options->model_namespacing};
    return NULL;
}

/* Scans the repositories for one name, or for all models if `name` is NULL. The lock is held. */
static kelp_status *scan_places(kelp_repository *repository, const char *name, kelp_scan **out) {
    KELP_ASSERT_HELD(&repository->lock);
    kelp_allocator heap = repository->host->base.allocator;
    kelp_scan_mapping *mappings = NULL;
    kelp_scan_places places;
    KELP_TRY(places_of(repository, &places, &mappings));
    kelp_status *status = name != NULL ? kelp_scan_one(heap, &places, name, out)
                                       : kelp_scan_repositories(heap, &places, out);
    kelp_free(heap, mappings, places.mapping_count * sizeof *mappings);
    return status;
}

/* Joins two failures into one with the code of the first and both messages. */
static kelp_status *join(kelp_status *first, kelp_status *next) {
    if (first == NULL || next == NULL)
        return first != NULL ? first : next;
    kelp_status *both = KELP_ERROR(kelp_status_code(first), "%s\n%s", kelp_status_message(first),
                                   kelp_status_message(next));
    kelp_status_free(first);
    kelp_status_free(next);
    return both;
}

/* Loads all models of a name or, if `only_space` is not NULL, that of one namespace. */
static kelp_status *load_named(kelp_repository *repository, const char *name,
                               const char *only_space, const kelp_load_options *options) {
    kelp_scan *scan = NULL;
    bool has_files = options != NULL && options->file_count > 0, found = false;
    pthread_mutex_lock(&repository->lock);
    kelp_status *status = scan_places(repository, name, &scan);
    /* The files of the load's parameters are in no repository, and therefore in no namespace. */
    size_t count = status != NULL || (has_files && repository->host->options->model_namespacing)
                       ? 0
                       : scan->model_count;
    for (size_t i = 0; i < count; i++) {
        if (only_space != NULL && repository->host->options->model_namespacing &&
            strcmp(scan->models[i].repository, only_space) != 0)
            continue;
        found = true;
        status = join(status, load_found(repository, name, &scan->models[i], options));
    }
    if (status == NULL && !found)
        status = has_files
                     ? load_found(repository, name, NULL, options)
                     : kelp_repository_poll_failure(
                           name, NULL, KELP_ERROR(KELP_NOT_FOUND, "no repository has this model"));
    pthread_mutex_unlock(&repository->lock);
    kelp_scan_destroy(scan);
    return status;
}

kelp_status *kelp_repository_load(kelp_repository *repository, const char *name,
                                  const kelp_load_options *options) {
    return load_named(repository, name, NULL, options);
}

static kelp_status *unload_entry(kelp_repository *repository, kelp_entry *entry) {
    KELP_ASSERT_HELD(&repository->lock);
    KELP_TRY(entry_begin(repository, entry));
    for (size_t i = 0; i < entry->version_count; i++)
        if (entry->versions[i].model != NULL)
            kelp_version_retire(repository, &entry->versions[i]);
    kelp_override_clear(repository->host->base.allocator, &entry->override);
    set_wanted(repository, entry, false);
    entry_end(repository, entry);
    return NULL;
}

kelp_status *kelp_repository_unload(kelp_repository *repository, const char *name) {
    kelp_status *status = NULL;
    bool known = false;
    pthread_mutex_lock(&repository->lock);
    for (kelp_entry *entry = repository->first_entry; entry != NULL; entry = entry->next) {
        if (strcmp(entry->name, name) != 0 || entry->version_count == 0)
            continue;
        known = true;
        status = join(status, unload_entry(repository, entry));
    }
    if (!known)
        status = KELP_ERROR(KELP_NOT_FOUND, "failed to unload '%s': unknown model", name);
    pthread_mutex_unlock(&repository->lock);
    return status;
}

/* ---- several models ---- */

kelp_status *kelp_repository_scan(kelp_repository *repository) {
    kelp_scan *scan = NULL;
    pthread_mutex_lock(&repository->lock);
    kelp_status *status = scan_places(repository, NULL, &scan);
    if (status == NULL) {
        for (kelp_entry *entry = repository->first_entry; entry != NULL; entry = entry->next)
            entry->present = entry->conflict = false;
        for (size_t i = 0; i < scan->model_count && status == NULL; i++) {
            const kelp_scan_model *found = &scan->models[i];
            const char *space =
                repository->host->options->model_namespacing ? found->repository : "";
            kelp_entry *entry = NULL;
            status = kelp_repository_entry(repository, found->name, space, &entry);
            if (status == NULL) {
                entry->present = true;
                entry->conflict = found->conflict != NULL;
            }
        }
    }
    pthread_mutex_unlock(&repository->lock);
    kelp_scan_destroy(scan);
    return status;
}

/* Models to load on several threads. */
typedef struct load_list {
    kelp_repository *repository;
    kelp_string_list names;
    kelp_string_list spaces; /* one for each name; empty if each name means all namespaces */
    atomic_size_t next;
    pthread_mutex_t lock;
    kelp_buf failures;
    size_t failure_count;
} load_list;

static void *load_some(void *userp) {
    load_list *list = userp;
    size_t index;
    while ((index = atomic_fetch_add(&list->next, 1)) < list->names.count) {
        const char *space = list->spaces.count ? list->spaces.items[index] : NULL;
        kelp_status *status = load_named(list->repository, list->names.items[index], space, NULL);
        if (status == NULL)
            continue;
        pthread_mutex_lock(&list->lock);
        kelp_buf_printf(&list->failures, "%s%s", list->failure_count++ ? "; " : "",
                        kelp_status_message(status));
        pthread_mutex_unlock(&list->lock);
        kelp_status_free(status);
    }
    return NULL;
}

static void list_init(load_list *list, kelp_repository *repository) {
    *list = (load_list){.repository = repository};
    kelp_string_list_init(&list->names, repository->host->base.allocator);
    kelp_string_list_init(&list->spaces, repository->host->base.allocator);
}

static void list_deinit(load_list *list) {
    kelp_string_list_deinit(&list->names);
    kelp_string_list_deinit(&list->spaces);
}

static kelp_status *list_add(load_list *list, const kelp_entry *entry) {
    KELP_TRY(kelp_string_list_add(&list->names, entry->name));
    return kelp_string_list_add(&list->spaces, entry->space);
}

/* Loads the models of the list on several threads, and frees the list. INTERNAL contains all
 * failures. */
static kelp_status *load_all(load_list *list) {
    enum { MAX_THREADS = 64 };
    pthread_t threads[MAX_THREADS];
    unsigned wanted = list->repository->host->options->model_load_threads, started = 0;
    pthread_mutex_init(&list->lock, NULL);
    kelp_buf_init(&list->failures, list->repository->host->base.allocator);
    while (started + 1 < wanted && started + 1 < list->names.count && started < MAX_THREADS) {
        kelp_status *status = kelp_thread_start(&threads[started], "kelp-load", load_some, list);
        if (status != NULL) {
            kelp_status_free(status); /* fewer threads load the same models */
            break;
        }
        started++;
    }
    load_some(list);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    kelp_status *status = NULL;
    if (list->failure_count)
        status = KELP_ERROR(KELP_INTERNAL, "failed to load all models: %s",
                            kelp_buf_cstr(&list->failures) ? list->failures.data : "");
    kelp_buf_deinit(&list->failures);
    list_deinit(list);
    pthread_mutex_destroy(&list->lock);
    return status;
}

static kelp_status *add_present(load_list *list) {
    kelp_status *status = NULL;
    pthread_mutex_lock(&list->repository->lock);
    for (kelp_entry *entry = list->repository->first_entry; entry != NULL && status == NULL;
         entry = entry->next)
        if (entry->present)
            status = list_add(list, entry);
    pthread_mutex_unlock(&list->repository->lock);
    return status;
}

kelp_status *kelp_repository_load_startup(kelp_repository *repository) {
    const kelp_server_options *options = repository->host->options;
    const kelp_string_list *startup = &options->startup_models;
    load_list list;
    list_init(&list, repository);
    kelp_status *status = kelp_repository_scan(repository);
    if (kelp_status_code(status) == KELP_NOT_FOUND) { /* Triton's code for a missing directory */
        kelp_status *missing = KELP_ERROR(KELP_INTERNAL, "%s", kelp_status_message(status));
        kelp_status_free(status);
        status = missing;
    }
    KELP_TRY(status);
    bool all = options->control_mode != TRITONSERVER_MODEL_CONTROL_EXPLICIT;
    if (!all && kelp_string_list_has(startup, "*")) {
        if (startup->count > 1)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "Wildcard model name '*' must be the ONLY startup model");
        all = true;
    }
    if (all)
        status = add_present(&list);
    else
        status = kelp_string_list_append(&list.names, startup);
    if (status != NULL) {
        list_deinit(&list);
        return status;
    }
    status = load_all(&list);
    if (status != NULL && !options->exit_on_error) {
        kelp_server_log_status("not all models are loaded", status);
        status = NULL;
    }
    return status;
}

/* Returns true if the model's files have changed since they were loaded. The lock is held. */
static bool has_changed(kelp_allocator allocator, const kelp_entry *entry) {
    int64_t signature = 0;
    if (entry->path == NULL)
        return true;
    kelp_status *unreadable = kelp_model_files_signature(allocator, entry->path, &signature);
    bool changed = unreadable != NULL || signature != entry->signature;
    kelp_status_free(unreadable); /* the load reports it */
    return changed;
}

kelp_status *kelp_repository_poll(kelp_repository *repository) {
    load_list list;
    list_init(&list, repository);
    KELP_TRY(kelp_repository_scan(repository));
    kelp_status *status = NULL;
    pthread_mutex_lock(&repository->lock);
    for (kelp_entry *entry = repository->first_entry; entry != NULL && status == NULL;
         entry = entry->next) {
        bool serves = false;
        for (size_t i = 0; i < entry->version_count; i++)
            serves |= entry->versions[i].model != NULL;
        if ((!entry->present || entry->conflict) && serves)
            status = unload_entry(repository, entry);
        else if (entry->present &&
                 (entry->conflict || has_changed(repository->host->base.allocator, entry)))
            status = list_add(&list, entry);
    }
    pthread_mutex_unlock(&repository->lock);
    if (status != NULL) {
        list_deinit(&list);
        return status;
    }
    return load_all(&list);
}
