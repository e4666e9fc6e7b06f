/* SPDX-License-Identifier: Apache-2.0 */
/* Finds, loads and checks NVIDIA's libraries. */
#include "tensorrt/library.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/checked.h"
#include "base/fs.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_CAPACITY 4096

/* The file names of each flavor, and the directory in its pip wheel. */
static const struct flavor {
    trt_wanted wanted;
    const char *library, *parser, *wheel;
} flavors[] = {
    {TRT_WANT_RTX, "libtensorrt_rtx.so.1", "libtensorrt_onnxparser_rtx.so.1", "tensorrt_rtx_libs"},
    {TRT_WANT_ENTERPRISE, "libnvinfer.so.11", "libnvonnxparser.so.11", "tensorrt_libs"},
};

typedef struct search {
    kelp_allocator allocator;
    trt_library_options options;
    const char *table; /* requested by the caller or the environment, or NULL */
    trt_library *library;
    kelp_buf tried;
    bool found;       /* `library` is ready */
    bool unsupported; /* a library was found, but its version has no tables */
} search;

static const char *from_environment(const char *value, const char *name) {
    if (value == NULL)
        value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

static void note(search *s, const char *path, const char *reason) {
    kelp_buf_printf(&s->tried, "%s%s: %s", s->tried.length > 0 ? "\n" : "", path, reason);
}

static void note_status(search *s, const char *path, kelp_status *take_status) {
    note(s, path, kelp_status_message(take_status));
    kelp_status_free(take_status);
}

/* ---- one file ---- */
static void symbol(const kelp_dl *dl, const char *name, void *out_function) {
    void *address = kelp_dl_symbol(dl, name);
    memcpy(out_function, &address, sizeof address);
}

static void known_names(char *buffer, size_t capacity) {
    size_t length = 0;
    buffer[0] = '\0';
    for (size_t i = 0; i < trt_methods_count() && length < capacity; i++)
        length += (size_t)snprintf(buffer + length, capacity - length, "%s%s", i > 0 ? ", " : "",
                                   trt_methods_at(i)->name);
}

/* Selects the requested tables, or those of the library's version. */
static kelp_status *choose_tables(const search *s, trt_library *l) {
    char known[128];
    l->methods = trt_methods_for(l->version);
    if (s->table == NULL && l->methods != NULL)
        return NULL;
    known_names(known, sizeof known);
    if (s->table == NULL)
        return KELP_ERROR(
            KELP_UNIMPLEMENTED,
            "unsupported version: %s %d.%d.%d, expected %s; KELP_TENSORRT_TABLE=NAME uses the "
            "tables of one of these versions at your own risk: methods may have moved",
            trt_flavor_name(l->flavor), l->major, l->minor, l->patch, known);
    l->methods = trt_methods_named(s->table);
    if (l->methods == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "unknown tables '%s': expected %s", s->table,
                          known);
    if (l->methods->flavor != l->flavor)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "it is %s %d.%d.%d: tables '%s' are for another library",
                          trt_flavor_name(l->flavor), l->major, l->minor, l->patch, s->table);
    return NULL;
}

static kelp_status *read_library(search *s, trt_library *l, const char *path) {
    int32_t (*version)(void) = NULL, (*build)(void) = NULL;
    symbol(&l->dl, "getInferLibVersion", &version);
    symbol(&l->dl, "getInferLibBuildVersion", &build);
    symbol(&l->dl, "createInferBuilder_INTERNAL", &l->create_builder);
    symbol(&l->dl, "createInferRuntime_INTERNAL", &l->create_runtime);
    symbol(&l->dl, "createInferRefitter_INTERNAL", &l->create_refitter);
    /* A runtime-only library has no builder. */
    if (version == NULL || l->create_runtime == NULL || l->create_refitter == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "it is not TensorRT's library: it lacks %s",
                          version == NULL ? "getInferLibVersion" : "createInferRuntime_INTERNAL");
    l->version = version();
    l->build = build != NULL ? build() : 0;
    trt_split_version(l->version, &l->flavor, &l->major, &l->minor, &l->patch);
    Dl_info info;
    void *address = kelp_dl_symbol(&l->dl, "getInferLibVersion");
    if (dladdr(address, &info) != 0 && info.dli_fname != NULL && info.dli_fname[0] != '\0')
        path = info.dli_fname;
    KELP_ASSERT(l->path == NULL); /* clear_library freed that of the previous file */
    KELP_TRY(kelp_strdup(s->allocator, path, &l->path));
    return choose_tables(s, l);
}

/* Opens the parser: next to the library, or where the dynamic loader finds it. */
static kelp_status *open_parser(search *s, trt_library *l) {
    char path[PATH_CAPACITY];
    const struct flavor *flavor = &flavors[l->flavor == TRT_FLAVOR_RTX ? 0 : 1];
    const char *slash = strrchr(l->path, '/');
    int directory = slash != NULL ? (int)(slash - l->path) + 1 : 0;
    snprintf(path, sizeof path, "%.*s%s", directory, l->path, flavor->parser);
    kelp_status *status = kelp_dl_open(path, &l->parser_dl);
    if (status != NULL && slash != NULL) {
        kelp_status *again = kelp_dl_open(flavor->parser, &l->parser_dl);
        if (again == NULL) {
            kelp_status_free(status);
            status = NULL;
            snprintf(path, sizeof path, "%s", flavor->parser);
        }
        kelp_status_free(again);
    }
    if (status != NULL) {
        kelp_status *copied =
            kelp_strdup(s->allocator, kelp_status_message(status), &l->parser_reason);
        kelp_status_free(status);
        return copied;
    }
    int (*version)(void) = NULL;
    symbol(&l->parser_dl, "getNvOnnxParserVersion", &version);
    symbol(&l->parser_dl, "createNvOnnxParser_INTERNAL", &l->create_parser);
    symbol(&l->parser_dl, "createNvOnnxParserRefitter_INTERNAL", &l->create_parser_refitter);
    if (version == NULL || l->create_parser == NULL)
        return kelp_strdup(s->allocator, "the parser's library lacks createNvOnnxParser_INTERNAL",
                           &l->parser_reason);
    l->parser_version = version();
    return kelp_strdup(s->allocator, path, &l->parser_path);
}

static void clear_library(trt_library *l) {
    kelp_free_string(l->allocator, l->path);
    kelp_free_string(l->allocator, l->parser_path);
    kelp_free_string(l->allocator, l->parser_reason);
    kelp_free_string(l->allocator, l->tried);
    *l = (trt_library){.allocator = l->allocator};
}

/* Tries one file. Fails only if there is not enough memory. */
static kelp_status *try_file(search *s, const char *path) {
    trt_library *l = s->library;
    if (strchr(path, '/') != NULL && kelp_fs_kind_of(path) != KELP_FS_FILE) {
        note(s, path, "no such file");
        return NULL;
    }
    kelp_status *status = kelp_dl_open(path, &l->dl);
    if (status != NULL) {
        note_status(s, path, status);
        return NULL;
    }
    status = read_library(s, l, path);
    if (status == NULL) {
        s->found = true;
        return open_parser(s, l);
    }
    /* An unknown library stays loaded: it may not support unloading. */
    s->unsupported = s->unsupported || kelp_status_code(status) == KELP_UNIMPLEMENTED;
    if (status == kelp_status_oom())
        return status;
    note_status(s, path, status);
    clear_library(l);
    return NULL;
}

/* ---- search ---- */
static bool is_wanted(const search *s, const struct flavor *flavor) {
    return s->options.wanted == TRT_WANT_ANY || s->options.wanted == flavor->wanted;
}

static kelp_status *try_directory(search *s, const char *directory, size_t length) {
    for (size_t i = 0; i < KELP_COUNT(flavors) && !s->found; i++) {
        const char *suffixes[] = {"", "lib/", flavors[i].wheel};
        if (!is_wanted(s, &flavors[i]))
            continue;
        bool any = false;
        char path[PATH_CAPACITY];
        for (size_t j = 0; j < KELP_COUNT(suffixes) && !s->found; j++) {
            snprintf(path, sizeof path, "%.*s/%s%s%s", (int)length, directory, suffixes[j],
                     j == 2 ? "/" : "", flavors[i].library);
            if (kelp_fs_kind_of(path) != KELP_FS_FILE)
                continue;
            any = true;
            KELP_TRY(try_file(s, path));
        }
        if (!any) {
            snprintf(path, sizeof path, "%.*s/{,lib/,%s/}%s", (int)length, directory,
                     flavors[i].wheel, flavors[i].library);
            note(s, path, "no such file");
        }
    }
    return NULL;
}

static kelp_status *try_directories(search *s, const char *list) {
    while (list != NULL && *list != '\0' && !s->found) {
        size_t length = strcspn(list, ":");
        if (length > 0)
            KELP_TRY(try_directory(s, list, length));
        list += length + (list[length] == ':');
    }
    return NULL;
}

/* Tries lib/python3.X/site-packages of an activated virtual environment. */
static kelp_status *try_virtual_env(search *s) {
    const char *root = from_environment(NULL, "VIRTUAL_ENV");
    char path[PATH_CAPACITY];
    kelp_fs_names names;
    if (root == NULL)
        return NULL;
    snprintf(path, sizeof path, "%s/lib", root);
    kelp_status *status = kelp_fs_list(s->allocator, path, &names);
    if (status != NULL) {
        note_status(s, path, status);
        return NULL;
    }
    for (size_t i = 0; i < names.count && status == NULL && !s->found; i++) {
        if (strncmp(names.items[i], "python3", 7) != 0)
            continue;
        int length = snprintf(path, sizeof path, "%s/lib/%s/site-packages", root, names.items[i]);
        if (length < (int)sizeof path)
            status = try_directory(s, path, (size_t)length);
    }
    kelp_fs_names_deinit(&names);
    return status;
}

static kelp_status *try_all(search *s) {
    const char *path = from_environment(s->options.path, "KELP_TENSORRT_LIBRARY");
    if (path != NULL) {
        if (kelp_fs_kind_of(path) == KELP_FS_DIRECTORY)
            return try_directory(s, path, strlen(path));
        return try_file(s, path);
    }
    KELP_TRY(try_directories(s, from_environment(s->options.search_path, "KELP_TENSORRT_PATH")));
    if (!s->found)
        KELP_TRY(try_virtual_env(s));
    for (size_t i = 0; i < KELP_COUNT(flavors) && !s->found; i++)
        if (is_wanted(s, &flavors[i]))
            KELP_TRY(try_file(s, flavors[i].library));
    return NULL;
}

static kelp_status *not_found(search *s) {
    const char *tried = kelp_buf_cstr(&s->tried);
    if (tried == NULL)
        return kelp_status_oom();
    return KELP_ERROR(s->unsupported ? KELP_UNIMPLEMENTED : KELP_NOT_FOUND,
                      "cannot find a supported TensorRT library: install one (pip install "
                      "tensorrt-rtx-cu12-libs), or set KELP_TENSORRT_LIBRARY to its file. "
                      "Tried:\n%s",
                      tried);
}

kelp_status *trt_library_open(kelp_allocator allocator, const trt_library_options *options,
                              trt_library **out) {
    search s = {.allocator = allocator};
    *out = NULL;
    if (options != NULL)
        s.options = *options;
    s.table = from_environment(s.options.table, "KELP_TENSORRT_TABLE");
    KELP_TRY(KELP_NEW(allocator, trt_library, &s.library));
    s.library->allocator = allocator;
    kelp_buf_init(&s.tried, allocator);
    kelp_status *status = try_all(&s);
    if (status == NULL && !s.found)
        status = not_found(&s);
    if (status == NULL) {
        const char *tried = kelp_buf_cstr(&s.tried);
        status =
            tried != NULL ? kelp_strdup(allocator, tried, &s.library->tried) : kelp_status_oom();
    }
    kelp_buf_deinit(&s.tried);
    if (status != NULL) {
        trt_library_destroy(s.library);
        return status;
    }
    *out = s.library;
    return NULL;
}

void trt_library_destroy(trt_library *library) {
    if (library == NULL)
        return;
    clear_library(library);
    kelp_free(library->allocator, library, sizeof *library);
}

size_t trt_library_describe(const trt_library *l, char *buffer, size_t capacity) {
    return (size_t)snprintf(buffer, capacity, "%s %d.%d.%d.%d (%s)", trt_flavor_name(l->flavor),
                            l->major, l->minor, l->patch, l->build, l->path);
}
