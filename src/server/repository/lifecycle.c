/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading and unloading. A load makes all versions of a model first and publishes them together:
 * what serves goes on until then, and goes on for good when the load fails. Threads: any; one at a
 * time for each entry (its busy flag).
 */
#include "base/thread.h"
#include "server/core/log.h"
#include "server/repository/agents.h"
#include "server/config/overrides.h"
#include "server/repository/scan.h"
#include "server/server.h"

#include <stdio.h>

/* ---- entries ---- */

void kelp_entry_destroy(kelp_entry *entry) {
    kelp_allocator heap = kelp_allocator_system();
    for (size_t i = 0; i < entry->version_count; i++)
        kelp_text_deinit(&entry->versions[i].reason);
    kelp_free(heap, entry->versions, entry->version_capacity * sizeof *entry->versions);
    kelp_text_deinit(&entry->failure);
    kelp_override_clear(entry);
    kelp_free_string(heap, entry->name);
    kelp_free_string(heap, entry->space);
    kelp_free_string(heap, entry->path);
    kelp_free(heap, entry, sizeof *entry);
}

static kelp_status *set_path(kelp_entry *entry, const char *path) {
    kelp_allocator heap = kelp_allocator_system();
    char *copy = NULL;
    KELP_TRY(kelp_strdup(heap, path, &copy));
    kelp_free_string(heap, entry->path);
    entry->path = copy;
    return NULL;
}

/* The version of that number, made in order when there is none; table_lock and all stripes held. */
static kelp_status *version_get(kelp_entry *entry, int64_t number, kelp_version **out) {
    size_t at = 0;
    while (at < entry->version_count && entry->versions[at].number < number)
        at++;
    if (at == entry->version_count || entry->versions[at].number != number) {
        KELP_TRY(kelp_grow(kelp_allocator_system(), (void **)&entry->versions,
                           &entry->version_capacity, entry->version_count + 1,
                           sizeof *entry->versions));
        memmove(&entry->versions[at + 1], &entry->versions[at],
                (entry->version_count - at) * sizeof *entry->versions);
        entry->versions[at] = (kelp_version){.number = number, .state = KELP_VERSION_UNKNOWN};
        entry->version_count++;
    }
    *out = &entry->versions[at];
    return NULL;
}

/* Takes the entry for one load or unload; table_lock held, and let go of while waiting. */
static kelp_status *entry_begin(kelp_server *server, kelp_entry *entry) {
    while (entry->busy)
        pthread_cond_wait(&server->table_changed, &server->table_lock);
    if (atomic_load(&server->state) >= KELP_SERVER_STOPPING)
        return KELP_ERROR(KELP_UNAVAILABLE, "Server exiting");
    entry->busy = true;
    return NULL;
}

static void entry_end(kelp_server *server, kelp_entry *entry) {
    entry->busy = false;
    pthread_cond_broadcast(&server->table_changed);
}

/* ---- one load ---- */

typedef struct load {
    kelp_server *server;
    kelp_entry *entry;
    const char *directory; /* of the model's files: the repository's, or an override's */
    const char *folder;    /* its name in the repository, which the configuration may use */
    kelp_model_config *config;
    kelp_agent_chain *agents; /* NULL when the configuration names none */
    int64_t *versions;
    size_t version_count;
    kelp_model **models;    /* as versions; NULL where it failed, or where one stays */
    kelp_model **staying;   /* as versions: entered models whose instances are all that changes */
    kelp_status **failures; /* as versions */
    int64_t signature;
} load;

static void load_deinit(load *job) {
    kelp_allocator heap = kelp_allocator_system();
    for (size_t i = 0; i < job->version_count; i++) {
        if (job->models && job->models[i]) {
            kelp_model_finalize(job->models[i]);
            kelp_model_release(job->models[i]);
        }
        if (job->failures)
            kelp_status_free(job->failures[i]);
        if (job->staying && job->staying[i]) {
            kelp_model_leave(job->staying[i]);
            kelp_model_release(job->staying[i]);
        }
    }
    if (job->staying)
        kelp_free(heap, job->staying, job->version_count * sizeof *job->staying);
    if (job->models)
        kelp_free(heap, job->models, job->version_count * sizeof *job->models);
    if (job->failures)
        kelp_free(heap, job->failures, job->version_count * sizeof *job->failures);
    if (job->versions)
        kelp_free(heap, job->versions, job->version_count * sizeof *job->versions);
    kelp_agent_chain_release(job->agents);
    kelp_model_config_release(job->config);
}

/* Configuration and versions. */
static kelp_status *read_model(load *job) {
    kelp_allocator heap = kelp_allocator_system();
    const kelp_server_options *options = job->server->options;
    const char *json = job->entry->override_config;
    const kelp_config_load_options config_options = {
        .model_directory = job->directory,
        .model_name = job->entry->name,
        .folder_name = job->folder,
        .config_name = options->model_config_name,
        .override_json = json,
        .override_length = json ? strlen(json) : 0,
        .strict = options->strict_model_config,
    };
    KELP_TRY(kelp_scan_signature(job->directory, &job->signature));
    KELP_TRY(kelp_model_config_load(heap, &config_options, &job->config));
    int64_t *present = NULL;
    size_t present_count = 0;
    kelp_status *warning = NULL;
    KELP_TRY(kelp_scan_versions(heap, job->directory, &present, &present_count));
    kelp_status *status =
        kelp_scan_select(heap, job->entry->name, &job->config->version_policy, present,
                         present_count, &job->versions, &job->version_count, &warning);
    kelp_free(heap, present, present_count * sizeof *present);
    if (warning) {
        KELP_SERVER_LOG(KELP_LOG_WARNING, "%s", kelp_status_message(warning));
        kelp_status_free(warning);
    }
    return status;
}

/* Lets the agents have their say; the model is read again where they put its files elsewhere. */
static kelp_status *run_agents(load *job) {
    const char *location = NULL;
    KELP_TRY(kelp_agent_chain_load(job->server->options, job->config, job->directory, &job->agents,
                                   &location));
    if (strcmp(location, job->directory) == 0)
        return NULL;
    int64_t signature = job->signature; /* polling looks at the repository's own files */
    kelp_free(kelp_allocator_system(), job->versions, job->version_count * sizeof *job->versions);
    job->versions = NULL;
    job->version_count = 0;
    kelp_model_config_release(job->config);
    job->config = NULL;
    job->directory = location;
    kelp_status *status = read_model(job);
    job->signature = signature;
    return status;
}

static void mark_loading(load *job) {
    kelp_server *server = job->server;
    pthread_mutex_lock(&server->table_lock);
    kelp_server_lock_all(server);
    for (size_t i = 0; i < job->version_count; i++) {
        kelp_version *version = NULL;
        kelp_status *status = version_get(job->entry, job->versions[i], &version);
        if (status)
            job->failures[i] = status;
        else if (!version->model)
            version->state = KELP_VERSION_LOADING;
    }
    kelp_server_unlock_all(server);
    pthread_mutex_unlock(&server->table_lock);
}

/* Whether a model that serves is what would be made, but for its instances. */
static kelp_status *can_stay(const load *job, const kelp_model *model, bool *out_can) {
    int64_t files = 0;
    *out_can = false;
    if (job->agents || model->agents || strcmp(model->directory, job->directory) != 0)
        return NULL;
    KELP_TRY(kelp_scan_files(job->directory, model->version, &files));
    return files == model->files ? kelp_model_config_same_model(model->origin, job->config, out_can)
                                 : NULL;
}

/* Finds the versions whose models stay. */
static kelp_status *find_staying(load *job) {
    kelp_status *status = NULL;
    for (size_t i = 0; i < job->version_count && !status; i++) {
        bool can = false;
        pthread_mutex_lock(&job->server->table_lock);
        const kelp_version *version = kelp_entry_version(job->entry, job->versions[i]);
        kelp_model *model = version ? version->model : NULL;
        if (model && kelp_model_enter(model))
            kelp_model_retain(model);
        else
            model = NULL;
        pthread_mutex_unlock(&job->server->table_lock);
        if (!model)
            continue;
        status = can_stay(job, model, &can);
        if (can) {
            job->staying[i] = model;
        } else {
            kelp_model_leave(model);
            kelp_model_release(model);
        }
    }
    return status;
}

/* Makes one version. */
static kelp_status *make_model(load *job, size_t index) {
    kelp_status *status = NULL;
    for (unsigned attempt = 0; attempt <= job->server->options->model_load_retries; attempt++) {
        kelp_status_free(status);
        kelp_model_config_retain(job->config);
        status = kelp_model_create(job->server, job->entry, job->versions[index], job->directory,
                                   job->config, &job->models[index]);
        if (!status)
            break;
    }
    return status;
}

/* The instances of those that stay, once all others are made: of all of them, or of none. */
static kelp_status *update_staying(load *job) {
    kelp_allocator heap = kelp_allocator_system();
    kelp_model_update **updates = NULL;
    kelp_status *status = NULL;
    KELP_TRY(kelp_alloc_zero(heap, job->version_count, sizeof *updates, (void **)&updates));
    for (size_t i = 0; i < job->version_count && !status; i++) {
        if (!job->staying[i])
            continue;
        status = kelp_model_prepare_update(job->staying[i], job->config, &updates[i]);
        if (status)
            status = KELP_ANNOTATE(status, "cannot update the instances of model '%s' version %lld",
                                   job->entry->name, (long long)job->versions[i]);
    }
    for (size_t i = 0; i < job->version_count; i++) {
        if (status)
            kelp_model_cancel_update(updates[i]);
        else if (updates[i])
            kelp_model_commit_update(updates[i]);
    }
    kelp_free(heap, updates, job->version_count * sizeof *updates);
    return status;
}

/* Makes every version; a failure of one fails the load, and each failure is kept for the index. */
static kelp_status *make_models(load *job) {
    kelp_allocator heap = kelp_allocator_system();
    KELP_TRY(kelp_alloc_zero(heap, job->version_count, sizeof *job->models, (void **)&job->models));
    KELP_TRY(
        kelp_alloc_zero(heap, job->version_count, sizeof *job->failures, (void **)&job->failures));
    KELP_TRY(
        kelp_alloc_zero(heap, job->version_count, sizeof *job->staying, (void **)&job->staying));
    KELP_TRY(find_staying(job));
    mark_loading(job);
    kelp_buf text;
    kelp_buf_init(&text, heap);
    kelp_code code = KELP_OK;
    for (size_t i = 0; i < job->version_count; i++) {
        if (!job->staying[i] && !job->failures[i])
            job->failures[i] = make_model(job, i);
        if (!job->failures[i])
            continue;
        char reason[2048];
        kelp_status_format(job->failures[i], reason, sizeof reason);
        kelp_buf_printf(&text, "version %lld is at UNAVAILABLE state: %s;\n",
                        (long long)job->versions[i], reason);
        if (code == KELP_OK)
            code = kelp_status_code(job->failures[i]);
    }
    kelp_status *status = NULL;
    char name[1024];
    if (code != KELP_OK)
        status = KELP_ERROR(code, "load failed for model '%s': %s",
                            kelp_entry_format(job->entry, name, sizeof name),
                            kelp_buf_cstr(&text) ? text.data : "");
    kelp_buf_deinit(&text);
    return status ? status : update_staying(job);
}

/* Puts the new models in place and retires those that served, also of versions no longer selected;
 * table_lock held. */
static void publish(load *job) {
    kelp_server *server = job->server;
    kelp_entry *entry = job->entry;
    for (size_t i = 0; i < job->version_count; i++) {
        kelp_version *version = kelp_entry_version(entry, job->versions[i]);
        kelp_model *old = version->model;
        if (job->staying[i]) {
            KELP_SERVER_LOG(KELP_LOG_INFO, "successfully updated '%s' version %lld", entry->name,
                            (long long)job->versions[i]);
            continue;
        }
        job->models[i]->agents = job->agents;
        kelp_agent_chain_retain(job->agents);
        kelp_server_lock_all(server);
        version->model = job->models[i];
        version->state = KELP_VERSION_READY;
        version->leaving = NULL;
        kelp_text_clear(&version->reason);
        kelp_server_unlock_all(server);
        job->models[i] = NULL;
        server->live_models++;
        KELP_SERVER_LOG(KELP_LOG_INFO, "successfully loaded '%s' version %lld", entry->name,
                        (long long)job->versions[i]);
        if (old) {
            pthread_mutex_unlock(&server->table_lock);
            kelp_model_retire(old);
            pthread_mutex_lock(&server->table_lock);
        }
    }
    for (size_t i = 0; i < entry->version_count; i++) {
        bool selected = false;
        for (size_t k = 0; k < job->version_count; k++)
            selected |= job->versions[k] == entry->versions[i].number;
        if (!selected && entry->versions[i].model)
            kelp_version_retire(server, &entry->versions[i]);
    }
    entry->signature = job->signature;
}

/* Says why in the index, for versions that do not go on serving; table_lock held. */
static void note_failure(load *job) {
    kelp_server *server = job->server;
    kelp_server_lock_all(server);
    for (size_t i = 0; job->failures && i < job->version_count; i++) {
        kelp_version *version = kelp_entry_version(job->entry, job->versions[i]);
        if (!version || version->model)
            continue;
        char reason[2048] = "";
        kelp_status_format(job->failures[i], reason, sizeof reason);
        version->state = KELP_VERSION_UNAVAILABLE;
        kelp_server_log_status(
            "cannot keep a reason",
            kelp_text_set(&version->reason,
                          job->failures[i] ? reason : "another version failed to load"));
    }
    kelp_server_unlock_all(server);
}

/* A configuration that cannot be read leaves no version to blame. */
static void note_early_failure(kelp_entry *entry, const kelp_status *status) {
    char reason[2048];
    kelp_status_format(status, reason, sizeof reason);
    kelp_server_log_status("cannot keep a reason", kelp_text_set(&entry->failure, reason));
}

/* The whole load of an entry that this thread has begun. */
static kelp_status *run_load(kelp_server *server, kelp_entry *entry, const char *path,
                             const kelp_load_options *options) {
    const char *slash = strrchr(path, '/');
    load job = {.server = server, .entry = entry, .folder = slash ? slash + 1 : path};
    kelp_status *status = kelp_override_apply(server, entry, path, options, &job.directory);
    if (!status)
        status = read_model(&job);
    if (!status)
        status = run_agents(&job);
    if (!status)
        status = make_models(&job);
    if (status)
        kelp_agent_chain_fail(job.agents);
    else
        kelp_agent_chain_complete(job.agents);
    pthread_mutex_lock(&server->table_lock);
    kelp_text_clear(&entry->failure);
    if (status)
        note_failure(&job);
    else
        publish(&job);
    if (status && entry->version_count == 0)
        note_early_failure(entry, status);
    if (status && options)
        kelp_override_clear(entry); /* a plain load must not fail for it */
    pthread_mutex_unlock(&server->table_lock);
    load_deinit(&job);
    if (status)
        KELP_SERVER_LOG(KELP_LOG_ERROR, "failed to load '%s': %s", entry->name,
                        kelp_status_message(status));
    return status;
}

/* ---- one name ---- */

static void set_wanted(kelp_server *server, kelp_entry *entry, bool wanted) {
    kelp_server_lock_all(server);
    entry->wanted = wanted;
    kelp_server_unlock_all(server);
}

/* Loads the model that was found, or (found NULL) one that consists of its override's files;
 * table_lock held, and let go of while loading. */
static kelp_status *load_found(kelp_server *server, const char *name, const kelp_scan_model *found,
                               const kelp_load_options *options) {
    kelp_entry *entry = NULL;
    const char *space = found && server->options->model_namespacing ? found->repository : "";
    if (found && found->conflict)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "failed to load '%s': %s", name, found->conflict);
    KELP_TRY(kelp_server_entry_get(server, name, space, &entry));
    KELP_TRY(entry_begin(server, entry));
    entry->present = found != NULL;
    bool wanted = entry->wanted;
    set_wanted(server, entry, true);
    kelp_status *status = found ? set_path(entry, found->path) : NULL;
    pthread_mutex_unlock(&server->table_lock);
    if (!status)
        status = run_load(server, entry, found ? found->path : "", options);
    pthread_mutex_lock(&server->table_lock);
    if (status && entry->version_count == 0)
        set_wanted(server, entry, wanted); /* there is no model to mistake another for */
    entry_end(server, entry);
    return status;
}

/* The places to look for models; out_mappings is the caller's to free. table_lock held. */
static kelp_status *places_of(kelp_server *server, kelp_scan_places *out,
                              kelp_scan_mapping **out_mappings) {
    const kelp_settings *mappings = &server->mappings;
    KELP_TRY(kelp_alloc_zero(kelp_allocator_system(), mappings->count, sizeof **out_mappings,
                             (void **)out_mappings));
    for (size_t i = 0; i < mappings->count; i++)
        (*out_mappings)[i] = (kelp_scan_mapping){.repository = mappings->items[i].owner,
                                                 .folder = mappings->items[i].name,
                                                 .name = mappings->items[i].value};
    *out = (kelp_scan_places){.repositories = (const char *const *)server->repositories.items,
                              .repository_count = server->repositories.count,
                              .mappings = *out_mappings,
                              .mapping_count = mappings->count,
                              .namespaces = server->options->model_namespacing};
    return NULL;
}

/* What the repositories hold: of one name, or (NULL) all. table_lock held. */
static kelp_status *look(kelp_server *server, const char *name, kelp_scan **out) {
    kelp_allocator heap = kelp_allocator_system();
    kelp_scan_mapping *mappings = NULL;
    kelp_scan_places places;
    KELP_TRY(places_of(server, &places, &mappings));
    kelp_status *status =
        name ? kelp_scan_one(heap, &places, name, out) : kelp_scan_repositories(heap, &places, out);
    kelp_free(heap, mappings, places.mapping_count * sizeof *mappings);
    return status;
}

/* Keeps the first failure, and the words of the others. */
static kelp_status *join(kelp_status *first, kelp_status *next) {
    if (!first || !next)
        return first ? first : next;
    kelp_status *both = KELP_ERROR(kelp_status_code(first), "%s\n%s", kelp_status_message(first),
                                   kelp_status_message(next));
    kelp_status_free(first);
    kelp_status_free(next);
    return both;
}

/* Loads the models of that name: all of them, or (only_space not NULL) that of one namespace. */
static kelp_status *load_named(kelp_server *server, const char *name, const char *only_space,
                               const kelp_load_options *options) {
    kelp_scan *scan = NULL;
    bool has_files = options && options->file_count > 0, found = false;
    pthread_mutex_lock(&server->table_lock);
    kelp_status *status = look(server, name, &scan);
    /* The files of an override belong to no repository, and so to no namespace. */
    size_t count =
        status || (has_files && server->options->model_namespacing) ? 0 : scan->model_count;
    for (size_t i = 0; i < count; i++) {
        if (only_space && server->options->model_namespacing &&
            strcmp(scan->models[i].repository, only_space) != 0)
            continue;
        found = true;
        status = join(status, load_found(server, name, &scan->models[i], options));
    }
    if (!status && !found)
        status = has_files ? load_found(server, name, NULL, options)
                           : KELP_ERROR(KELP_NOT_FOUND,
                                        "failed to load '%s', failed to poll from model repository",
                                        name);
    pthread_mutex_unlock(&server->table_lock);
    kelp_scan_destroy(scan);
    return status;
}

kelp_status *kelp_server_load(kelp_server *server, const char *name,
                              const kelp_load_options *options) {
    return load_named(server, name, NULL, options);
}

static kelp_status *unload_entry(kelp_server *server, kelp_entry *entry) {
    KELP_TRY(entry_begin(server, entry));
    for (size_t i = 0; i < entry->version_count; i++)
        if (entry->versions[i].model)
            kelp_version_retire(server, &entry->versions[i]);
    kelp_override_clear(entry);
    set_wanted(server, entry, false);
    entry_end(server, entry);
    return NULL;
}

kelp_status *kelp_server_unload(kelp_server *server, const char *name) {
    kelp_status *status = NULL;
    bool known = false;
    pthread_mutex_lock(&server->table_lock);
    for (kelp_entry *entry = server->first_entry; entry; entry = entry->next) {
        if (strcmp(entry->name, name) != 0 || entry->version_count == 0)
            continue;
        known = true;
        status = join(status, unload_entry(server, entry));
    }
    if (!known)
        status = KELP_ERROR(KELP_NOT_FOUND, "failed to unload '%s': the model is not known", name);
    pthread_mutex_unlock(&server->table_lock);
    return status;
}

/* ---- many ---- */

kelp_status *kelp_server_scan(kelp_server *server) {
    kelp_scan *scan = NULL;
    pthread_mutex_lock(&server->table_lock);
    kelp_status *status = look(server, NULL, &scan);
    if (!status) {
        for (kelp_entry *entry = server->first_entry; entry; entry = entry->next)
            entry->present = entry->conflict = false;
        for (size_t i = 0; i < scan->model_count && !status; i++) {
            const kelp_scan_model *found = &scan->models[i];
            const char *space = server->options->model_namespacing ? found->repository : "";
            kelp_entry *entry = NULL;
            status = kelp_server_entry_get(server, found->name, space, &entry);
            if (!status) {
                entry->present = true;
                entry->conflict = found->conflict != NULL;
            }
        }
    }
    pthread_mutex_unlock(&server->table_lock);
    kelp_scan_destroy(scan);
    return status;
}

typedef struct load_list {
    kelp_server *server;
    kelp_string_list names;
    kelp_string_list spaces; /* as names; empty when each name means all namespaces */
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
        kelp_status *status = load_named(list->server, list->names.items[index], space, NULL);
        if (!status)
            continue;
        pthread_mutex_lock(&list->lock);
        kelp_buf_printf(&list->failures, "%s%s", list->failure_count++ ? "; " : "",
                        kelp_status_message(status));
        pthread_mutex_unlock(&list->lock);
        kelp_status_free(status);
    }
    return NULL;
}

static void list_deinit(load_list *list) {
    kelp_string_list_deinit(&list->names);
    kelp_string_list_deinit(&list->spaces);
}

static kelp_status *list_add(load_list *list, const kelp_entry *entry) {
    KELP_TRY(kelp_string_list_add(&list->names, entry->name));
    return kelp_string_list_add(&list->spaces, entry->space);
}

/* Loads all of the list, which is freed, on several threads. INTERNAL names all that failed. */
static kelp_status *load_all(load_list *list) {
    enum { MOST = 64 };
    pthread_t threads[MOST];
    unsigned wanted = list->server->options->model_load_threads, started = 0;
    pthread_mutex_init(&list->lock, NULL);
    kelp_buf_init(&list->failures, kelp_allocator_system());
    while (started + 1 < wanted && started + 1 < list->names.count && started < MOST) {
        kelp_status *status = kelp_thread_start(&threads[started], "kelp-load", load_some, list);
        if (status) {
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
    pthread_mutex_lock(&list->server->table_lock);
    for (kelp_entry *entry = list->server->first_entry; entry && !status; entry = entry->next)
        if (entry->present)
            status = list_add(list, entry);
    pthread_mutex_unlock(&list->server->table_lock);
    return status;
}

kelp_status *kelp_server_load_startup(kelp_server *server) {
    const kelp_server_options *options = server->options;
    const kelp_string_list *startup = &options->startup_models;
    load_list list = {.server = server};
    KELP_TRY(kelp_server_scan(server));
    kelp_status *status = NULL;
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
        status = kelp_string_list_copy(startup, &list.names);
    if (status) {
        list_deinit(&list);
        return status;
    }
    status = load_all(&list);
    if (status && !options->exit_on_error) {
        kelp_server_log_status("not all models are loaded", status);
        status = NULL;
    }
    return status;
}

/* Whether the model's files have changed since they were loaded; table_lock held. */
static bool has_changed(const kelp_entry *entry) {
    int64_t signature = 0;
    if (!entry->path)
        return true;
    kelp_status *unreadable = kelp_scan_signature(entry->path, &signature);
    bool changed = unreadable || signature != entry->signature;
    kelp_status_free(unreadable); /* the load says what is wrong */
    return changed;
}

kelp_status *kelp_server_poll(kelp_server *server) {
    load_list list = {.server = server};
    KELP_TRY(kelp_server_scan(server));
    kelp_status *status = NULL;
    pthread_mutex_lock(&server->table_lock);
    for (kelp_entry *entry = server->first_entry; entry && !status; entry = entry->next) {
        bool serves = false;
        for (size_t i = 0; i < entry->version_count; i++)
            serves |= entry->versions[i].model != NULL;
        if ((!entry->present || entry->conflict) && serves)
            status = unload_entry(server, entry);
        else if (entry->present && (entry->conflict || has_changed(entry)))
            status = list_add(&list, entry);
    }
    pthread_mutex_unlock(&server->table_lock);
    if (status) {
        list_deinit(&list);
        return status;
    }
    return load_all(&list);
}
