/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, loading and counting backends; see backend.h. The process's list is under one lock,
 * which loads take and requests do not. */
#include "server/model/backend.h"

#include "base/fs.h"
#include "base/json.h"
#include "server/core/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static kelp_backend *list;

/* {"cmdline":{…}}: what all backends are told, then what this one is. */
static kelp_status *make_config(const char *name, const kelp_server_options *options,
                                const char *backend_directory, kelp_message **out) {
    kelp_buf json;
    kelp_json_writer writer;
    kelp_buf_init(&json, kelp_allocator_system());
    kelp_json_writer_init(&writer, &json);
    kelp_json_begin_object(&writer);
    kelp_json_key(&writer, "cmdline");
    kelp_json_begin_object(&writer);
    const char *const defaults[][2] = {
        {"auto-complete-config", options->strict_model_config ? "false" : "true"},
        {"backend-directory", backend_directory},
        {"min-compute-capability", "6.000000"},
        {"default-max-batch-size", "4"},
    };
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++) {
        const char *own = kelp_settings_get(&options->backend_config, name, defaults[i][0]);
        const char *all = kelp_settings_get(&options->backend_config, "", defaults[i][0]);
        kelp_json_key(&writer, defaults[i][0]);
        kelp_json_put_cstr(&writer, own ? own : all ? all : defaults[i][1]);
    }
    for (size_t i = 0; i < options->backend_config.count; i++) {
        const kelp_setting *setting = &options->backend_config.items[i];
        bool written = false;
        for (size_t k = 0; k < sizeof defaults / sizeof defaults[0]; k++)
            written |= strcmp(defaults[k][0], setting->name) == 0;
        bool overridden = setting->owner[0] == '\0' && name[0] &&
                          kelp_settings_get(&options->backend_config, name, setting->name);
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

/* A library that does not hold the name of a function cannot call it, neither linked nor through
 * dlsym. */
static bool names(const kelp_mapping *file, const char *symbol) {
    return file->data && memmem(file->data, file->size_bytes, symbol, strlen(symbol));
}

static kelp_status *look_for_duties(const char *path, kelp_backend *backend) {
    kelp_mapping file;
    KELP_TRY(kelp_fs_map(path, &file));
    backend->never_releases = !names(&file, "TRITONBACKEND_RequestRelease");
    backend->never_reports = !names(&file, "TRITONBACKEND_ModelInstanceReportStatistics") &&
                             !names(&file, "TRITONBACKEND_ModelInstanceReportBatchStatistics");
    kelp_fs_unmap(&file);
    return NULL;
}

static void backend_free(kelp_backend *backend) {
    kelp_allocator heap = kelp_allocator_system();
    kelp_message_destroy(backend->config);
    kelp_free(heap, backend->attribute.groups,
              backend->attribute.group_capacity * sizeof *backend->attribute.groups);
    kelp_free_string(heap, backend->name);
    kelp_free_string(heap, backend->directory);
    kelp_free_string(heap, backend->identity);
    kelp_free_string(heap, backend->library);
    kelp_free(heap, backend, sizeof *backend);
}

/* ISO C has no conversion from object to function pointers; POSIX promises that this one works. */
#define BIND(field, symbol) (*(void **)(void *)&(field) = kelp_dl_own_symbol(&backend->dl, symbol))

static kelp_status *bind_library(kelp_backend *backend) {
    KELP_TRY(look_for_duties(backend->library, backend));
    KELP_TRY(kelp_dl_open(backend->library, &backend->dl));
    BIND(backend->fn.initialize, "TRITONBACKEND_Initialize");
    BIND(backend->fn.finalize, "TRITONBACKEND_Finalize");
    BIND(backend->fn.model_init, "TRITONBACKEND_ModelInitialize");
    BIND(backend->fn.model_fini, "TRITONBACKEND_ModelFinalize");
    BIND(backend->fn.instance_init, "TRITONBACKEND_ModelInstanceInitialize");
    BIND(backend->fn.instance_fini, "TRITONBACKEND_ModelInstanceFinalize");
    BIND(backend->fn.execute, "TRITONBACKEND_ModelInstanceExecute");
    BIND(backend->fn.attribute, "TRITONBACKEND_GetBackendAttribute");
    BIND(backend->ready, "TRITONBACKEND_ModelInstanceReady");
    BIND(backend->may_block, "KELP_BACKEND_MayBlock");
    if (!backend->fn.execute)
        return KELP_ERROR(KELP_NOT_FOUND,
                          "'%s' is no backend: it has no TRITONBACKEND_ModelInstanceExecute",
                          backend->library);
    return NULL;
}

static kelp_status *initialize(kelp_backend *backend) {
    if (backend->fn.initialize)
        KELP_TRY(kelp_from_error(backend->fn.initialize((TRITONBACKEND_Backend *)backend)));
    if (backend->fn.attribute)
        KELP_TRY(kelp_from_error(
            backend->fn.attribute((TRITONBACKEND_Backend *)backend,
                                  (TRITONBACKEND_BackendAttribute *)&backend->attribute)));
    return NULL;
}

static void finalize(kelp_backend *backend) {
    if (backend->fn.finalize)
        kelp_server_log_status(
            "failed to finalize a backend",
            kelp_from_error(backend->fn.finalize((TRITONBACKEND_Backend *)backend)));
}

/* The loaded backend of that identity, or a new one; list_lock held. `builtin` NULL: `library` is a
 * file. */
static kelp_status *acquire_locked(const char *name, const char *identity, const char *library,
                                   const char *directory, const kelp_builtin_backend *builtin,
                                   const kelp_server_options *options,
                                   const char *backend_directory, kelp_backend **out) {
    kelp_allocator heap = kelp_allocator_system();
    for (kelp_backend *known = list; known; known = known->next) {
        if (strcmp(known->identity, identity) == 0) {
            known->refs++;
            *out = known;
            return NULL;
        }
    }
    kelp_backend *backend = NULL;
    KELP_TRY(KELP_NEW(heap, kelp_backend, &backend));
    kelp_status *status = kelp_strdup(heap, name, &backend->name);
    if (!status)
        status = kelp_strdup(heap, identity, &backend->identity);
    if (!status)
        status = kelp_strdup(heap, library, &backend->library);
    if (!status)
        status = kelp_strdup(heap, directory, &backend->directory);
    if (!status)
        status = make_config(name, options, backend_directory, &backend->config);
    if (!status && builtin) {
        backend->builtin = true;
        backend->fn = *builtin;
    } else if (!status) {
        status = bind_library(backend);
    }
    bool begun = !status;
    if (!status)
        status = initialize(backend);
    if (status && begun)
        finalize(backend); /* see instance.c */
    if (status) {
        backend_free(backend);
        return status;
    }
    backend->refs = 1;
    backend->next = list;
    list = backend;
    *out = backend;
    return NULL;
}

void kelp_backend_retain(kelp_backend *backend) {
    pthread_mutex_lock(&list_lock);
    backend->refs++;
    pthread_mutex_unlock(&list_lock);
}

void kelp_backend_release(kelp_backend *backend) {
    if (!backend)
        return;
    pthread_mutex_lock(&list_lock);
    if (--backend->refs > 0) {
        pthread_mutex_unlock(&list_lock);
        return;
    }
    for (kelp_backend **link = &list; *link; link = &(*link)->next) {
        if (*link == backend) {
            *link = backend->next;
            break;
        }
    }
    finalize(backend);
    pthread_mutex_unlock(&list_lock);
    backend_free(backend);
}

/* ---- finding the library ---- */

/* What was looked for: the place where it was found, and in words all where it was not. */
typedef struct search {
    const kelp_backend_query *query;
    const char *backend_directory;
    char *own_folder; /* BACKENDS/NAME */
    kelp_buf path;
    kelp_buf tried;
} search;

static kelp_status *search_init(search *s, const kelp_backend_query *query,
                                const char *backend_directory) {
    kelp_allocator heap = kelp_allocator_system();
    *s = (search){.query = query, .backend_directory = backend_directory};
    kelp_buf_init(&s->path, heap);
    kelp_buf_init(&s->tried, heap);
    return kelp_fs_join(heap, backend_directory, query->name, &s->own_folder);
}

static void search_deinit(search *s) {
    kelp_free_string(kelp_allocator_system(), s->own_folder);
    kelp_buf_deinit(&s->path);
    kelp_buf_deinit(&s->tried);
}

/* Why a path is not that of a file. */
static const char *why_not(const char *path, const char *folder) {
    struct stat info;
    if (stat(path, &info) == 0)
        return S_ISDIR(info.st_mode) ? "it is a folder" : "it is no regular file";
    if (errno == EACCES)
        return "permission denied";
    if (errno == ELOOP || lstat(path, &info) == 0)
        return "it is a link to nothing";
    return kelp_fs_kind_of(folder) == KELP_FS_DIRECTORY ? "no such file" : "no such folder";
}

/* Whether the folder has the file, whose path is s->path then. */
static kelp_status *look(search *s, const char *folder, const char *file, bool *out_found) {
    kelp_buf_clear(&s->path);
    kelp_buf_printf(&s->path, "%s/%s", folder, file);
    if (!kelp_buf_cstr(&s->path))
        return kelp_status_oom();
    *out_found = kelp_fs_kind_of(s->path.data) == KELP_FS_FILE;
    if (!*out_found)
        kelp_buf_printf(&s->tried, "%s'%s' (%s)", s->tried.length ? ", " : "", s->path.data,
                        why_not(s->path.data, folder));
    return NULL;
}

/* The first of the folders that has the file; NULL when none has. */
static kelp_status *look_in(search *s, const char *const *folders, size_t count, const char *file,
                            const char **out_folder) {
    bool found = false;
    *out_folder = NULL;
    for (size_t i = 0; i < count && !found; i++) {
        KELP_TRY(look(s, folders[i], file, &found));
        if (found)
            *out_folder = folders[i];
    }
    return NULL;
}

/* A backend that is written in Python: BACKENDS/NAME/model.py, run by the library of the backend
 * "python". It is a backend of its own for each name. */
static kelp_status *acquire_python(search *s, kelp_backend **out) {
    const kelp_backend_query *query = s->query;
    bool found = false;
    const char *folder = NULL;
    char *identity = NULL, *shared = NULL;
    KELP_TRY(look(s, s->own_folder, "model.py", &found));
    if (!found)
        return NULL;
    kelp_allocator heap = kelp_allocator_system();
    kelp_status *status = kelp_strdup(heap, s->path.data, &identity);
    if (!status)
        status = kelp_fs_join(heap, s->backend_directory, "python", &shared);
    const char *folders[] = {query->version_directory, query->model_directory, s->own_folder,
                             shared};
    if (!status)
        status = look_in(s, folders, 4, "libtriton_python.so", &folder);
    if (!status && folder)
        status = acquire_locked(query->name, identity, s->path.data, s->own_folder, NULL,
                                query->options, s->backend_directory, out);
    if (!status && *out)
        (*out)->python_based = true;
    kelp_free_string(heap, identity);
    kelp_free_string(heap, shared);
    return status;
}

static kelp_status *acquire_file(const kelp_backend_query *query, const char *backend_directory,
                                 kelp_backend **out) {
    search s;
    char default_name[300];
    const char *file = query->library, *folder = NULL;
    bool given = file && file[0], python = given && strcmp(file, "model.py") == 0;
    *out = NULL;
    kelp_status *status = search_init(&s, query, backend_directory);
    if (!given) {
        snprintf(default_name, sizeof default_name, "libtriton_%s.so", query->name);
        file = default_name;
    }
    const char *folders[] = {query->version_directory, query->model_directory, s.own_folder};
    if (!status && !python)
        status = look_in(&s, folders, 3, file, &folder);
    if (!status && folder)
        status = acquire_locked(query->name, s.path.data, s.path.data, folder, NULL, query->options,
                                backend_directory, out);
    else if (!status && (python || !given))
        status = acquire_python(&s, out);
    if (status)
        status = KELP_ANNOTATE(status, "unable to load backend '%s' from '%s'", query->name,
                               s.path.data ? s.path.data : "");
    else if (!*out)
        status =
            KELP_ERROR(KELP_INVALID_ARGUMENT,
                       "unable to find '%s' for backend '%s': tried %s; '%s' is none of the "
                       "built-in backends",
                       file, query->name, kelp_buf_cstr(&s.tried) ? s.tried.data : "", query->name);
    search_deinit(&s);
    return status;
}

kelp_status *kelp_backend_acquire(const kelp_backend_query *query, kelp_backend **out) {
    const kelp_server_options *options = query->options;
    const char *directory = kelp_settings_get(&options->backend_config, "", "backend-directory");
    if (!directory)
        directory = options->backend_directory;
    if (!query->name[0] || strchr(query->name, '/') ||
        (query->library && strchr(query->library, '/')))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "'%s' is no name of a backend, or '%s' no name of its library",
                          query->name, query->library ? query->library : "");
    /* A configuration that names a library wants that file, also under a built-in backend's name.
     */
    const kelp_builtin_backend *builtin =
        query->library && query->library[0] ? NULL : kelp_builtin_find(query->name);
    pthread_mutex_lock(&list_lock);
    kelp_status *status;
    if (builtin) {
        char identity[64];
        snprintf(identity, sizeof identity, "builtin:%s", builtin->name);
        /* Under its own name, whichever alias was asked for first: its settings are found by that.
         */
        status = acquire_locked(builtin->name, identity, "", "", builtin, options, directory, out);
    } else {
        status = acquire_file(query, directory, out);
    }
    pthread_mutex_unlock(&list_lock);
    return status;
}
