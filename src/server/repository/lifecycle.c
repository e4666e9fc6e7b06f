/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading and unloading. A load makes all versions of a model first and publishes them together:
 * what serves goes on until then, and goes on for good when the load fails. Threads: any; one at a
 * time for each entry (its busy flag).
 */
#include "base/thread.h"
#include "server/abi/log.h"
#include "server/repository/agents.h"
#include "server/repository/overrides.h"
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
    kelp_free_string(heap, entry->path);
    kelp_free(heap, entry, sizeof *entry);
}

/* The entry of that name, made when there is none; table_lock held. */
static kelp_status *entry_get(kelp_server *server, const char *name, kelp_entry **out) {
    kelp_allocator heap = kelp_allocator_system();
    kelp_entry *entry = kelp_server_entry(server, name);
    if (!entry) {
        KELP_TRY(KELP_NEW(heap, kelp_entry, &entry));
        kelp_status *status = kelp_strdup(heap, name, &entry->name);
        if (!status) {
            kelp_server_lock_all(server);
            status = kelp_map_put(&server->entries, kelp_str_from(entry->name), entry);
            kelp_server_unlock_all(server);
        }
        if (status) {
            kelp_entry_destroy(entry);
            return status;
        }
    }
    *out = entry;
    return NULL;
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
    kelp_model_config *config;
    kelp_agent_chain *agents; /* NULL when the configuration names none */
    int64_t *versions;
    size_t version_count;
    kelp_model **models;    /* as versions; NULL where it failed */
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
    }
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

/* Makes every version; a failure of one fails the load, and each failure is kept for the index. */
static kelp_status *make_models(load *job) {
    kelp_allocator heap = kelp_allocator_system();
    KELP_TRY(kelp_alloc_zero(heap, job->version_count, sizeof *job->models, (void **)&job->models));
    KELP_TRY(
        kelp_alloc_zero(heap, job->version_count, sizeof *job->failures, (void **)&job->failures));
    mark_loading(job);
    kelp_buf text;
    kelp_buf_init(&text, heap);
    kelp_code code = KELP_OK;
    for (size_t i = 0; i < job->version_count; i++) {
        for (unsigned attempt = 0; attempt <= job->server->options->model_load_retries; attempt++) {
            kelp_status_free(job->failures[i]);
            kelp_model_config_retain(job->config);
            job->failures[i] = kelp_model_create(job->server, job->entry->name, job->versions[i],
                                                 job->directory, job->config, &job->models[i]);
            if (!job->failures[i])
                break;
        }
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
    if (code != KELP_OK)
        status = KELP_ERROR(code, "load failed for model '%s': %s", job->entry->name,
                            kelp_buf_cstr(&text) ? text.data : "");
    kelp_buf_deinit(&text);
    return status;
}

/* Puts the new models in place and retires those that served, also of versions no longer selected;
 * table_lock held. */
static void publish(load *job) {
    kelp_server *server = job->server;
    kelp_entry *entry = job->entry;
    for (size_t i = 0; i < job->version_count; i++) {
        kelp_version *version = kelp_entry_version(entry, job->versions[i]);
        kelp_model *old = version->model;
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
    load job = {.server = server, .entry = entry};
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

kelp_status *kelp_server_load(kelp_server *server, const char *name,
                              const kelp_load_options *options) {
    kelp_entry *entry = NULL;
    kelp_scan *scan = NULL;
    pthread_mutex_lock(&server->table_lock);
    kelp_status *status =
        kelp_scan_one(kelp_allocator_system(), (const char *const *)server->repositories.items,
                      server->repositories.count, name, &scan);
    const kelp_scan_model *found = status ? NULL : kelp_scan_find(scan, name);
    bool has_files = options && options->file_count > 0;
    if (!status && !found && !has_files)
        status = KELP_ERROR(KELP_NOT_FOUND,
                            "failed to load '%s', failed to poll from model repository", name);
    if (!status && found && found->conflict)
        status =
            KELP_ERROR(KELP_INVALID_ARGUMENT, "failed to load '%s': %s", name, found->conflict);
    if (!status)
        status = entry_get(server, name, &entry);
    if (!status)
        status = entry_begin(server, entry);
    if (!status) {
        entry->present = found != NULL;
        if (found)
            status = set_path(entry, found->path);
        pthread_mutex_unlock(&server->table_lock);
        if (!status)
            status = run_load(server, entry, found ? found->path : "", options);
        pthread_mutex_lock(&server->table_lock);
        entry_end(server, entry);
    }
    pthread_mutex_unlock(&server->table_lock);
    kelp_scan_destroy(scan);
    return status;
}

kelp_status *kelp_server_unload(kelp_server *server, const char *name) {
    pthread_mutex_lock(&server->table_lock);
    kelp_entry *entry = kelp_server_entry(server, name);
    kelp_status *status = NULL;
    if (!entry || entry->version_count == 0)
        status = KELP_ERROR(KELP_NOT_FOUND, "failed to unload '%s': the model is not known", name);
    if (!status)
        status = entry_begin(server, entry);
    if (!status) {
        for (size_t i = 0; i < entry->version_count; i++)
            if (entry->versions[i].model)
                kelp_version_retire(server, &entry->versions[i]);
        kelp_override_clear(entry);
        entry_end(server, entry);
    }
    pthread_mutex_unlock(&server->table_lock);
    return status;
}

/* ---- many ---- */

kelp_status *kelp_server_scan(kelp_server *server) {
    kelp_scan *scan = NULL;
    pthread_mutex_lock(&server->table_lock);
    kelp_status *status = kelp_scan_repositories(kelp_allocator_system(),
                                                 (const char *const *)server->repositories.items,
                                                 server->repositories.count, &scan);
    if (!status) {
        for (kelp_map_entry *e = NULL; (e = kelp_map_next(&server->entries, e));)
            ((kelp_entry *)e->value)->present = false;
        for (size_t i = 0; i < scan->model_count && !status; i++) {
            kelp_entry *entry = NULL;
            status = entry_get(server, scan->models[i].name, &entry);
            if (!status)
                entry->present = true;
        }
    }
    pthread_mutex_unlock(&server->table_lock);
    kelp_scan_destroy(scan);
    return status;
}

typedef struct load_list {
    kelp_server *server;
    kelp_string_list names;
    atomic_size_t next;
    pthread_mutex_t lock;
    kelp_buf failures;
    size_t failure_count;
} load_list;

static void *load_some(void *userp) {
    load_list *list = userp;
    size_t index;
    while ((index = atomic_fetch_add(&list->next, 1)) < list->names.count) {
        kelp_status *status = kelp_server_load(list->server, list->names.items[index], NULL);
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

/* Loads all of the list on several threads; `take_list->names` is freed. INTERNAL names all that
 * failed. */
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
    kelp_string_list_deinit(&list->names);
    pthread_mutex_destroy(&list->lock);
    return status;
}

static kelp_status *add_present(kelp_server *server, kelp_string_list *names) {
    kelp_status *status = NULL;
    pthread_mutex_lock(&server->table_lock);
    for (kelp_map_entry *e = NULL; !status && (e = kelp_map_next(&server->entries, e));)
        if (((kelp_entry *)e->value)->present)
            status = kelp_string_list_add(names, ((kelp_entry *)e->value)->name);
    pthread_mutex_unlock(&server->table_lock);
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
        status = add_present(server, &list.names);
    else
        status = kelp_string_list_copy(startup, &list.names);
    if (status) {
        kelp_string_list_deinit(&list.names);
        return status;
    }
    status = load_all(&list);
    if (status && !options->exit_on_error) {
        kelp_server_log_status("not all models are loaded", status);
        status = NULL;
    }
    return status;
}

kelp_status *kelp_server_poll(kelp_server *server) {
    load_list list = {.server = server};
    kelp_string_list gone = {0};
    KELP_TRY(kelp_server_scan(server));
    kelp_status *status = NULL;
    pthread_mutex_lock(&server->table_lock);
    for (kelp_map_entry *e = NULL; !status && (e = kelp_map_next(&server->entries, e));) {
        kelp_entry *entry = e->value;
        bool serves = false;
        for (size_t i = 0; i < entry->version_count; i++)
            serves |= entry->versions[i].model != NULL;
        int64_t signature = 0;
        if (!entry->present) {
            if (serves)
                status = kelp_string_list_add(&gone, entry->name);
            continue;
        }
        kelp_status *unreadable = entry->path ? kelp_scan_signature(entry->path, &signature) : NULL;
        if (unreadable || !entry->path || signature != entry->signature) {
            kelp_status_free(unreadable); /* the load says what is wrong */
            status = kelp_string_list_add(&list.names, entry->name);
        }
    }
    pthread_mutex_unlock(&server->table_lock);
    for (size_t i = 0; i < gone.count && !status; i++)
        status = kelp_server_unload(server, gone.items[i]);
    kelp_string_list_deinit(&gone);
    if (status) {
        kelp_string_list_deinit(&list.names);
        return status;
    }
    return load_all(&list);
}
