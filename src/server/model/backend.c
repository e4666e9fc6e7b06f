/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and loading backends. */
#include "server/model/backend.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/fs.h"
#include "base/text/json.h"
#include "server/core/error.h"
#include "server/core/heap.h"
#include "server/core/library.h"
#include "server/core/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Returns a setting of the backend, or for a built-in one of the backend that it stands for. */
static const char *own_setting(const kelp_server_options *options, const char *name,
                               const kelp_builtin_backend *builtin, const char *key) {
    const char *value = kelp_settings_get(&options->backend_config, name, key);
    const char *const *alias = builtin != NULL ? builtin->aliases : NULL;
    for (; value == NULL && alias != NULL && *alias != NULL; alias++)
        value = kelp_settings_get(&options->backend_config, *alias, key);
    return value;
}

/* Creates {"cmdline":{…}}: the settings for all backends and for this one, which take precedence.
 */
static kelp_status *make_config(const char *name, const kelp_server_options *options,
                                const char *backend_directory, const kelp_builtin_backend *builtin,
                                kelp_message **out) {
    kelp_buf json;
    kelp_json_writer writer;
    kelp_buf_init(&json, kelp_process_allocator());
    kelp_json_writer_init(&writer, &json);
    kelp_json_begin_object(&writer);
    kelp_json_key(&writer, "cmdline");
    kelp_json_begin_object(&writer);
    const char *const defaults[][2] = {
        {"auto-complete-config", options->strict_model_config ? "false" : "true"},
        {"backend-directory", backend_directory},
        {"min-compute-capability", "6.000000"},
        {"default-max-batch-size", builtin != NULL ? "0" : "4"},
    };
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++) {
        const char *own = own_setting(options, name, builtin, defaults[i][0]);
        const char *all = kelp_settings_get(&options->backend_config, "", defaults[i][0]);
        const char *value = own != NULL ? own : all != NULL ? all : defaults[i][1];
        kelp_json_key(&writer, defaults[i][0]);
        kelp_json_put_cstr(&writer, value);
        if (!strcmp(defaults[i][0], "default-max-batch-size"))
            KELP_SERVER_LOG(KELP_LOG_VERBOSE, "%s: %s,%s",
                            value == defaults[i][1] ? "Adding default backend config setting"
                                                    : "Found overwritten default setting",
                            defaults[i][0], value);
    }
    for (size_t i = 0; i < options->backend_config.count; i++) {
        const kelp_setting *setting = &options->backend_config.items[i];
        bool written = false;
        for (size_t k = 0; k < sizeof defaults / sizeof defaults[0]; k++)
            written |= strcmp(defaults[k][0], setting->name) == 0;
        bool overridden = setting->owner[0] == '\0' && name[0] &&
                          kelp_settings_get(&options->backend_config, name, setting->name) != NULL;
        if (written || overridden || (setting->owner[0] && strcmp(setting->owner, name) != 0))
            continue;
        kelp_json_key(&writer, setting->name);
        kelp_json_put_cstr(&writer, setting->value);
    }
    kelp_json_end_object(&writer);
    kelp_json_end_object(&writer);
    kelp_status *status = kelp_message_create(&json, out);
    kelp_buf_deinit(&json);
    return status;
}

/* Determines which functions of the API the library uses. */
static kelp_status *read_references(kelp_server_backend *backend) {
    static const char *const symbols[] = {"TRITONBACKEND_RequestRelease",
                                          "TRITONBACKEND_ModelInstanceReportStatistics",
                                          "TRITONBACKEND_ModelInstanceReportBatchStatistics"};
    bool found[KELP_COUNT(symbols)];
    KELP_TRY(kelp_library_refers(backend->library, symbols, KELP_COUNT(symbols), found));
    backend->never_releases = !found[0];
    backend->never_reports = !found[1] && !found[2];
    return NULL;
}

static void free_members(kelp_server_backend *backend) {
    kelp_allocator heap = kelp_process_allocator();
    kelp_message_destroy(backend->config);
    kelp_free(heap, backend->attribute.groups,
              backend->attribute.group_capacity * sizeof *backend->attribute.groups);
    kelp_free_string(heap, backend->name);
    kelp_free_string(heap, backend->directory);
    kelp_free_string(heap, backend->library);
}

/* Checks that the library has all entry points of a batching strategy, or none. */
static kelp_status *check_batcher(const kelp_server_backend *backend) {
    const kelp_batcher *batcher = &backend->batcher;
    int found = (batcher->initialize != NULL) + (batcher->finalize != NULL) +
                (batcher->batch_initialize != NULL) + (batcher->batch_include != NULL) +
                (batcher->batch_finalize != NULL);
    if (found == 0 || found == 5)
        return NULL;
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "'%s' has %d of the 5 functions of a batching strategy "
                      "(TRITONBACKEND_ModelBatch*): expected all of them or none",
                      backend->library, found);
}

static kelp_status *bind_library(kelp_server_backend *backend) {
    static const kelp_entry_point entry_points[] = {
        {"TRITONBACKEND_ModelInstanceExecute", offsetof(kelp_server_backend, fn.execute), true},
        {"TRITONBACKEND_Initialize", offsetof(kelp_server_backend, fn.initialize), false},
        {"TRITONBACKEND_Finalize", offsetof(kelp_server_backend, fn.finalize), false},
        {"TRITONBACKEND_ModelInitialize", offsetof(kelp_server_backend, fn.model_init), false},
        {"TRITONBACKEND_ModelFinalize", offsetof(kelp_server_backend, fn.model_fini), false},
        {"TRITONBACKEND_ModelInstanceInitialize", offsetof(kelp_server_backend, fn.instance_init),
         false},
        {"TRITONBACKEND_ModelInstanceFinalize", offsetof(kelp_server_backend, fn.instance_fini),
         false},
        {"TRITONBACKEND_GetBackendAttribute", offsetof(kelp_server_backend, fn.attribute), false},
        {"TRITONBACKEND_ModelInstanceReady", offsetof(kelp_server_backend, ready), false},
        {"KELP_BACKEND_MayBlock", offsetof(kelp_server_backend, may_block), false},
        {"TRITONBACKEND_ModelBatcherInitialize", offsetof(kelp_server_backend, batcher.initialize),
         false},
        {"TRITONBACKEND_ModelBatcherFinalize", offsetof(kelp_server_backend, batcher.finalize),
         false},
        {"TRITONBACKEND_ModelBatchInitialize",
         offsetof(kelp_server_backend, batcher.batch_initialize), false},
        {"TRITONBACKEND_ModelBatchIncludeRequest",
         offsetof(kelp_server_backend, batcher.batch_include), false},
        {"TRITONBACKEND_ModelBatchFinalize", offsetof(kelp_server_backend, batcher.batch_finalize),
         false},
    };
    KELP_TRY(read_references(backend));
    KELP_TRY(kelp_library_open(backend->library, "backend", entry_points, KELP_COUNT(entry_points),
                               backend));
    return check_batcher(backend);
}

static kelp_status *initialize(kelp_server_backend *backend) {
    if (backend->fn.initialize != NULL)
        KELP_TRY(kelp_from_error(backend->fn.initialize((TRITONBACKEND_Backend *)backend)));
    if (backend->fn.attribute != NULL)
        KELP_TRY(kelp_from_error(
            backend->fn.attribute((TRITONBACKEND_Backend *)backend,
                                  (TRITONBACKEND_BackendAttribute *)&backend->attribute)));
    return NULL;
}

static void finalize(kelp_server_backend *backend) {
    if (backend->fn.finalize != NULL)
        kelp_server_log_status(
            "failed to finalize a backend",
            kelp_from_error(backend->fn.finalize((TRITONBACKEND_Backend *)backend)));
}

/* The parameters of a backend that is opened. `builtin` is NULL if `library` is a file. */
typedef struct origin {
    const char *name, *library, *directory;
    const kelp_builtin_backend *builtin;
    bool python_based;
    const kelp_server_options *options;
    const char *backend_directory;
} origin;

static kelp_status *set_members(kelp_server_backend *backend, const origin *from) {
    kelp_allocator heap = kelp_process_allocator();
    KELP_TRY(kelp_strdup(heap, from->name, &backend->name));
    KELP_TRY(kelp_strdup(heap, from->library, &backend->library));
    KELP_TRY(kelp_strdup(heap, from->directory, &backend->directory));
    KELP_TRY(make_config(from->name, from->options, from->backend_directory, from->builtin,
                         &backend->config));
    backend->python_based = from->python_based;
    if (from->builtin == NULL)
        return bind_library(backend);
    backend->builtin = true;
    backend->fn = *from->builtin;
    return NULL;
}

static kelp_status *open_backend(kelp_shared_library *shared, void *userp) {
    kelp_server_backend *backend = (kelp_server_backend *)shared;
    kelp_status *status = set_members(backend, userp);
    bool bound = status == NULL;
    if (status == NULL)
        status = initialize(backend);
    if (status != NULL && bound)
        finalize(backend); /* as Triton does after a failed Initialize */
    if (status != NULL)
        free_members(backend);
    return status;
}

static void close_backend(kelp_shared_library *shared) {
    kelp_server_backend *backend = (kelp_server_backend *)shared;
    finalize(backend);
    free_members(backend);
}

static kelp_shared_libraries loaded_backends = {.kind = "backend",
                                                .size_bytes = sizeof(kelp_server_backend),
                                                .open = open_backend,
                                                .close = close_backend,
                                                .lock = PTHREAD_MUTEX_INITIALIZER,
                                                .changed = PTHREAD_COND_INITIALIZER};

static kelp_status *acquire(const char *identity, origin *from, kelp_server_backend **out) {
    kelp_shared_library *shared = NULL;
    KELP_TRY(kelp_shared_library_acquire(&loaded_backends, identity, from, &shared));
    *out = (kelp_server_backend *)shared;
    return NULL;
}

void kelp_server_backend_retain(kelp_server_backend *backend) {
    kelp_shared_library_retain(&loaded_backends, &backend->shared);
}

void kelp_server_backend_release(kelp_server_backend *backend) {
    if (backend != NULL)
        kelp_shared_library_release(&loaded_backends, &backend->shared);
}

/* ---- finding the library ---- */

/* A search for a library: the current path, and a list of the paths without the file, for errors.
 */
typedef struct search {
    const kelp_server_backend_query *query;
    const char *backend_directory;
    char *own_directory; /* BACKENDS/NAME */
    char default_file[300];
    const char *file;      /* of the configuration, or libtriton_NAME.so */
    bool named, python;    /* the configuration names the file; it is model.py */
    const char *directory; /* the one that contains the file, or NULL */
    kelp_buf path;
    kelp_buf tried;
} search;

static kelp_status *search_init(search *s, const kelp_server_backend_query *query,
                                const char *backend_directory) {
    kelp_allocator heap = kelp_process_allocator();
    *s = (search){.query = query, .backend_directory = backend_directory, .file = query->library};
    s->named = s->file != NULL && s->file[0];
    s->python = s->named && strcmp(s->file, "model.py") == 0;
    if (!s->named) {
        snprintf(s->default_file, sizeof s->default_file, "libtriton_%s.so", query->name);
        s->file = s->default_file;
    }
    kelp_buf_init(&s->path, heap);
    kelp_buf_init(&s->tried, heap);
    return kelp_fs_join(heap, backend_directory, query->name, &s->own_directory);
}

static void search_deinit(search *s) {
    kelp_free_string(kelp_process_allocator(), s->own_directory);
    kelp_buf_deinit(&s->path);
    kelp_buf_deinit(&s->tried);
}

/* Returns the reason why a path is not a file. */
static const char *reason_of(const char *path, const char *directory) {
    struct stat info;
    if (stat(path, &info) == 0)
        return S_ISDIR(info.st_mode) ? "it is a directory" : "it is not a regular file";
    if (errno == EACCES)
        return "permission denied";
    if (errno == ELOOP || lstat(path, &info) == 0)
        return "it is a dangling link";
    return kelp_fs_kind_of(directory) == KELP_FS_DIRECTORY ? "no such file" : "no such directory";
}

/* Tests whether a directory contains a file; sets s->path to its path. */
static kelp_status *test_path(search *s, const char *directory, const char *file, bool *out_found) {
    kelp_buf_clear(&s->path);
    kelp_buf_printf(&s->path, "%s/%s", directory, file);
    if (kelp_buf_cstr(&s->path) == NULL)
        return kelp_status_oom();
    *out_found = kelp_fs_kind_of(s->path.data) == KELP_FS_FILE;
    if (!*out_found)
        kelp_buf_printf(&s->tried, "%s'%s' (%s)", s->tried.length ? ", " : "", s->path.data,
                        reason_of(s->path.data, directory));
    return NULL;
}

/* Returns the first directory that contains the file, or NULL. */
static kelp_status *find_in(search *s, const char *const *directories, size_t count,
                            const char *file, const char **out_directory) {
    bool found = false;
    *out_directory = NULL;
    for (size_t i = 0; i < count && !found; i++) {
        KELP_TRY(test_path(s, directories[i], file, &found));
        if (found)
            *out_directory = directories[i];
    }
    return NULL;
}

/* Acquires a backend that is written in Python: the library of the backend "python" executes
 * BACKENDS/NAME/model.py. Each name is a separate backend. */
static kelp_status *acquire_python(search *s, kelp_server_backend **out) {
    const kelp_server_backend_query *query = s->query;
    bool found = false;
    const char *directory = NULL;
    char *identity = NULL, *shared = NULL;
    KELP_TRY(test_path(s, s->own_directory, "model.py", &found));
    if (!found)
        return NULL;
    kelp_allocator heap = kelp_process_allocator();
    kelp_status *status = kelp_strdup(heap, s->path.data, &identity);
    if (status == NULL)
        status = kelp_fs_join(heap, s->backend_directory, "python", &shared);
    const char *directories[] = {query->version_directory, query->model_directory, s->own_directory,
                                 shared};
    if (status == NULL)
        status = find_in(s, directories, 4, "libtriton_python.so", &directory);
    origin from = {.name = query->name,
                   .library = s->path.data,
                   .directory = s->own_directory,
                   .python_based = true,
                   .options = query->options,
                   .backend_directory = s->backend_directory};
    if (status == NULL && directory != NULL)
        status = acquire(identity, &from, out);
    kelp_free_string(heap, identity);
    kelp_free_string(heap, shared);
    return status;
}

/* Searches the library; s->directory and s->path are those of the library afterwards. */
static kelp_status *search_library(search *s) {
    const char *directories[] = {s->query->version_directory, s->query->model_directory,
                                 s->own_directory};
    return s->python ? NULL : find_in(s, directories, 3, s->file, &s->directory);
}

/* Acquires the backend of the library that was found, or one that is written in Python. */
static kelp_status *acquire_file(search *s, kelp_server_backend **out) {
    const kelp_server_backend_query *query = s->query;
    kelp_status *status = NULL;
    *out = NULL;
    origin from = {.name = query->name,
                   .library = s->path.data,
                   .directory = s->directory,
                   .options = query->options,
                   .backend_directory = s->backend_directory};
    if (s->directory != NULL)
        status = acquire(s->path.data, &from, out);
    else if (s->python || !s->named)
        status = acquire_python(s, out);
    if (status != NULL)
        return KELP_ANNOTATE(status, "unable to load backend '%s' from '%s'", query->name,
                             s->path.data ? s->path.data : "");
    if (*out == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "unable to find '%s' for backend '%s': tried %s; '%s' is not a "
                          "built-in backend",
                          s->file, query->name, kelp_buf_cstr(&s->tried) ? s->tried.data : "",
                          query->name);
    return NULL;
}

/* Decides whether an installed library takes the place of a built-in backend: if the configuration
 * names another backend for which that one stands in, such as "onnxruntime", unless
 * --onnx-engine=builtin. */
static kelp_status *is_replaceable(const kelp_server_backend_query *query,
                                   const kelp_builtin_backend *builtin, bool *out) {
    *out = false;
    if (strcmp(builtin->name, query->name) == 0)
        return NULL;
    const char *engine = kelp_settings_get(&query->options->backend_config, "", "onnx-engine");
    *out = engine == NULL || strcmp(engine, "auto") == 0;
    if (!*out && strcmp(engine, "builtin") != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "setting 'onnx-engine': expected auto or builtin, found '%s'", engine);
    return NULL;
}

/* Acquires the built-in backend, if there is one and no installed library replaces it, or that of
 * a library. */
static kelp_status *acquire_either(search *s, const kelp_builtin_backend *builtin,
                                   kelp_server_backend **out) {
    const kelp_server_backend_query *query = s->query;
    bool searched = builtin == NULL;
    if (builtin != NULL)
        KELP_TRY(is_replaceable(query, builtin, &searched));
    if (searched)
        KELP_TRY(search_library(s));
    if (builtin != NULL && strcmp(builtin->name, query->name) != 0)
        KELP_SERVER_LOG(KELP_LOG_INFO, "backend '%s': using %s", query->name,
                        s->directory ? "the installed library" : "the built-in engine");
    if (builtin == NULL || s->directory != NULL)
        return acquire_file(s, out);
    char identity[64];
    snprintf(identity, sizeof identity, "builtin:%s", builtin->name);
    /* Use its own name instead of an alias, because its settings use that name. */
    origin from = {.name = builtin->name,
                   .library = "",
                   .directory = "",
                   .builtin = builtin,
                   .options = query->options,
                   .backend_directory = s->backend_directory};
    return acquire(identity, &from, out);
}

kelp_status *kelp_server_backend_acquire(const kelp_server_backend_query *query,
                                         kelp_server_backend **out) {
    const kelp_server_options *options = query->options;
    const char *directory = kelp_settings_get(&options->backend_config, "", "backend-directory");
    search s;
    if (directory == NULL)
        directory = options->backend_directory;
    if (!query->name[0] || strchr(query->name, '/') != NULL ||
        (query->library != NULL && strchr(query->library, '/') != NULL))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "'%s' is not a valid backend name, or '%s' is not a valid library name",
                          query->name, query->library ? query->library : "");
    kelp_status *status = search_init(&s, query, directory);
    /* A library in the configuration takes precedence over a built-in backend of the same name. */
    if (status == NULL)
        status = acquire_either(&s, s.named ? NULL : kelp_builtin_find(query->name), out);
    search_deinit(&s);
    return status;
}

kelp_status *kelp_server_backend_prefer_group(kelp_server_backend_attribute *attribute,
                                              TRITONSERVER_InstanceGroupKind kind, uint64_t count) {
    KELP_TRY(kelp_grow(kelp_process_allocator(), (void **)&attribute->groups,
                       &attribute->group_capacity, attribute->group_count + 1,
                       sizeof *attribute->groups));
    attribute->groups[attribute->group_count++] =
        (kelp_preferred_group){.kind = kind, .count = count};
    return NULL;
}

/* ---- sets ---- */

void kelp_server_backend_set_init(kelp_server_backend_set *set, kelp_allocator allocator) {
    *set = (kelp_server_backend_set){.allocator = allocator};
    pthread_mutex_init(&set->lock, NULL);
}

kelp_status *kelp_server_backend_set_add(kelp_server_backend_set *set,
                                         kelp_server_backend *backend) {
    kelp_status *status = NULL;
    bool known = false;
    pthread_mutex_lock(&set->lock);
    for (size_t i = 0; i < set->count; i++)
        known |= set->items[i] == backend;
    if (!known)
        status = kelp_grow(set->allocator, (void **)&set->items, &set->capacity, set->count + 1,
                           sizeof *set->items);
    if (!known && status == NULL) {
        kelp_server_backend_retain(backend);
        set->items[set->count++] = backend;
    }
    pthread_mutex_unlock(&set->lock);
    return status;
}

void kelp_server_backend_set_clear(kelp_server_backend_set *set) {
    for (size_t i = 0; i < set->count; i++)
        kelp_server_backend_release(set->items[i]);
    set->count = 0;
}

void kelp_server_backend_set_deinit(kelp_server_backend_set *set) {
    kelp_server_backend_set_clear(set);
    kelp_free(set->allocator, set->items, set->capacity * sizeof *set->items);
    pthread_mutex_destroy(&set->lock);
}
