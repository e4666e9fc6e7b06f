/* SPDX-License-Identifier: Apache-2.0 */
/* Loading and unloading by name, at startup and by polling. Thread-safe; the busy flag of an entry
 * serializes loads and unloads of the entry. */
#include "base/assert.h"
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

/* Marks an entry as busy for a load or unload. The lock is held, and released while waiting. A
 * backend or agent that is called for a load may load other models, but not the same one. */
static kelp_status *entry_begin(kelp_repository *repository, kelp_entry *entry) {
    KELP_ASSERT_HELD(&repository->lock);
    while (entry->busy) {
        if (pthread_equal(entry->busy_thread, pthread_self()))
            return KELP_ERROR(KELP_UNAVAILABLE,
                              "model '%s' cannot be loaded or unloaded: the calling thread is "
                              "loading or unloading it",
                              entry->name);
        pthread_cond_wait(&repository->changed, &repository->lock);
    }
    if (atomic_load(&repository->stopping))
        return KELP_ERROR(KELP_UNAVAILABLE, "Server exiting");
    entry->busy = true;
    entry->busy_thread = pthread_self();
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
    if (path != NULL) {
        const char *slash = strrchr(path, '/');
        KELP_SERVER_LOG(KELP_LOG_ERROR, "Poll failed for model directory '%s': %s",
                        slash != NULL ? slash + 1 : path, reason);
    }
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

static bool entry_serves(const kelp_entry *entry) {
    for (size_t i = 0; i < entry->version_count; i++)
        if (entry->versions[i].model != NULL)
            return true;
    return false;
}

/* Loads a model of a repository or, if `found` is NULL, one that consists of the files of the
 * load's parameters. The lock is held, and released while loading. */
static kelp_status *load_found(kelp_repository *repository, const char *name,
                               const kelp_scan_model *found, const kelp_load_options *options,
                               bool only_missing) {
    KELP_ASSERT_HELD(&repository->lock);
    kelp_entry *entry = NULL;
    const char *space =
        found != NULL && repository->host->options->model_namespacing ? found->repository : "";
    if (found != NULL && found->conflict != NULL)
        return kelp_repository_poll_failure(
            name, found->path, KELP_ERROR(KELP_INVALID_ARGUMENT, "%s", found->conflict));
    KELP_TRY(kelp_repository_entry(repository, name, space, &entry));
    KELP_TRY(entry_begin(repository, entry));
    if (only_missing && entry_serves(entry)) {
        entry_end(repository, entry);
        return NULL;
    }
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

kelp_status *kelp_repository_scan_for(kelp_repository *repository, const char *name,
                                      kelp_scan **out) {
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

kelp_status *kelp_repository_load_named(kelp_repository *repository, const char *name,
                                        const char *space, const kelp_load_options *options,
                                        bool only_missing) {
    kelp_scan *scan = NULL;
    bool has_files = options != NULL && options->file_count > 0, found = false;
    pthread_mutex_lock(&repository->lock);
    kelp_status *status = kelp_repository_scan_for(repository, name, &scan);
    /* The files of the load's parameters are in no repository, and therefore in no namespace. */
    size_t count = status != NULL || (has_files && repository->host->options->model_namespacing)
                       ? 0
                       : scan->model_count;
    for (size_t i = 0; i < count; i++) {
        if (space != NULL && repository->host->options->model_namespacing &&
            strcmp(scan->models[i].repository, space) != 0)
            continue;
        found = true;
        status =
            join(status, load_found(repository, name, &scan->models[i], options, only_missing));
    }
    if (status == NULL && !found)
        status = has_files
                     ? load_found(repository, name, NULL, options, only_missing)
                     : kelp_repository_poll_failure(
                           name, NULL,
                           KELP_ERROR(KELP_NOT_FOUND, "model not found in any model repository"));
    pthread_mutex_unlock(&repository->lock);
    kelp_scan_destroy(scan);
    return status;
}

kelp_status *kelp_repository_load(kelp_repository *repository, const char *name,
                                  const kelp_load_options *options) {
    kelp_load_plan plan;
    kelp_load_plan_init(&plan, repository);
    kelp_status *status = kelp_load_plan_add(&plan, name, NULL, options);
    if (status == NULL)
        status = kelp_load_plan_run(&plan);
    if (status == NULL)
        status = kelp_load_plan_failure(&plan, "\n");
    kelp_load_plan_deinit(&plan);
    return status;
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

/* Adds the names of the models of the steps of an ensemble. The lock is held. */
static kelp_status *list_members(const kelp_entry *entry, kelp_string_list *out) {
    for (size_t i = 0; i < entry->version_count; i++) {
        const kelp_model *model = entry->versions[i].model;
        for (size_t k = 0; model != NULL && k < model->base.config->step_count; k++)
            if (!kelp_string_list_has(out, model->base.config->steps[k].model_name))
                KELP_TRY(kelp_string_list_add(out, model->base.config->steps[k].model_name));
    }
    return NULL;
}

/* Unloads members that are still loaded. */
static kelp_status *unload_members(kelp_repository *repository, const kelp_string_list *members) {
    kelp_status *all = NULL;
    for (size_t i = 0; i < members->count; i++) {
        kelp_status *status = kelp_repository_unload(repository, members->items[i], true);
        if (kelp_status_code(status) == KELP_NOT_FOUND) {
            kelp_status_free(status);
            status = NULL;
        }
        all = join(all, status);
    }
    return all;
}

kelp_status *kelp_repository_unload(kelp_repository *repository, const char *name,
                                    bool dependents) {
    kelp_status *status = NULL;
    bool known = false;
    kelp_string_list members;
    kelp_string_list_init(&members, repository->host->base.allocator);
    pthread_mutex_lock(&repository->lock);
    for (kelp_entry *entry = repository->first_entry; entry != NULL; entry = entry->next) {
        if (strcmp(entry->name, name) != 0 || entry->version_count == 0)
            continue;
        known = true;
        if (dependents)
            status = join(status, list_members(entry, &members));
        status = join(status, unload_entry(repository, entry));
    }
    if (!known)
        KELP_SERVER_LOG(KELP_LOG_VERBOSE, "model '%s' is not loaded: nothing to unload", name);
    pthread_mutex_unlock(&repository->lock);
    status = join(status, unload_members(repository, &members));
    kelp_string_list_deinit(&members);
    return status;
}

/* ---- several models ---- */

kelp_status *kelp_repository_scan(kelp_repository *repository) {
    kelp_scan *scan = NULL;
    pthread_mutex_lock(&repository->lock);
    kelp_status *status = kelp_repository_scan_for(repository, NULL, &scan);
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

void kelp_repository_note_failure(kelp_repository *repository, const char *name,
                                  const kelp_status *failure) {
    KELP_SERVER_LOG(KELP_LOG_ERROR, "failed to load '%s': %s", name, kelp_status_message(failure));
    pthread_mutex_lock(&repository->lock);
    for (kelp_entry *entry = repository->first_entry; entry != NULL; entry = entry->next)
        if (strcmp(entry->name, name) == 0 && !entry->busy)
            kelp_server_log_status("cannot keep a reason",
                                   kelp_text_set(repository->host->base.allocator, &entry->failure,
                                                 kelp_status_message(failure)));
    pthread_mutex_unlock(&repository->lock);
}

/* Loads the models of a plan. INTERNAL contains all failures. */
static kelp_status *load_all(kelp_load_plan *plan) {
    KELP_TRY(kelp_load_plan_run(plan));
    kelp_status *failure = kelp_load_plan_failure(plan, "; ");
    if (failure == NULL)
        return NULL;
    char text[16384];
    kelp_status_format(failure, text, sizeof text);
    kelp_status_free(failure);
    return KELP_ERROR(KELP_INTERNAL, "failed to load all models: %s", text);
}

/* Adds the models whose directories exist. */
static kelp_status *add_present(kelp_load_plan *plan) {
    kelp_status *status = NULL;
    pthread_mutex_lock(&plan->repository->lock);
    for (kelp_entry *entry = plan->repository->first_entry; entry != NULL && status == NULL;
         entry = entry->next)
        if (entry->present)
            status = kelp_load_plan_add(plan, entry->name, entry->space, NULL);
    pthread_mutex_unlock(&plan->repository->lock);
    return status;
}

/* Adds the models that the options name. */
static kelp_status *add_startup(kelp_load_plan *plan) {
    const kelp_server_options *options = plan->repository->host->options;
    const kelp_string_list *startup = &options->startup_models;
    if (options->control_mode != TRITONSERVER_MODEL_CONTROL_EXPLICIT)
        return add_present(plan);
    if (kelp_string_list_has(startup, "*")) {
        if (startup->count > 1)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "Wildcard model name '*' must be the ONLY startup model");
        return add_present(plan);
    }
    for (size_t i = 0; i < startup->count; i++)
        KELP_TRY(kelp_load_plan_add(plan, startup->items[i], NULL, NULL));
    return NULL;
}

kelp_status *kelp_repository_load_startup(kelp_repository *repository) {
    kelp_load_plan plan;
    kelp_status *status = kelp_repository_scan(repository);
    if (kelp_status_code(status) == KELP_NOT_FOUND) { /* Triton's code for a missing directory */
        kelp_status *missing = KELP_ERROR(KELP_INTERNAL, "%s", kelp_status_message(status));
        kelp_status_free(status);
        status = missing;
    }
    KELP_TRY(status);
    kelp_load_plan_init(&plan, repository);
    status = add_startup(&plan);
    bool listed = status == NULL;
    if (listed)
        status = load_all(&plan);
    kelp_load_plan_deinit(&plan);
    if (listed && status != NULL && !repository->host->options->exit_on_error) {
        kelp_status_free(status); /* each failure is in the log */
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

/* Unloads the models whose directories do not exist any more, and adds those to load. */
static kelp_status *add_changes(kelp_load_plan *plan) {
    kelp_repository *repository = plan->repository;
    kelp_status *status = NULL;
    pthread_mutex_lock(&repository->lock);
    for (kelp_entry *entry = repository->first_entry; entry != NULL && status == NULL;
         entry = entry->next) {
        if (!entry->present)
            entry->signature = 0; /* the same files are loaded when they come back */
        if ((!entry->present || entry->conflict) && entry_serves(entry))
            status = unload_entry(repository, entry);
        else if (entry->present &&
                 (entry->conflict || has_changed(repository->host->base.allocator, entry)))
            status = kelp_load_plan_add(plan, entry->name, entry->space, NULL);
    }
    pthread_mutex_unlock(&repository->lock);
    return status;
}

kelp_status *kelp_repository_poll(kelp_repository *repository) {
    kelp_load_plan plan;
    KELP_TRY(kelp_repository_scan(repository));
    kelp_load_plan_init(&plan, repository);
    kelp_status *status = add_changes(&plan);
    if (status == NULL)
        status = load_all(&plan);
    kelp_load_plan_deinit(&plan);
    return status;
}
