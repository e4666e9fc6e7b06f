/* SPDX-License-Identifier: Apache-2.0 */
/* kelp new: creates the project of a backend, kernel library, plug-in or provider. */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/fs.h"
#include "cli/templates.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct new_options {
    kelp_arg_list positionals;
    const char *directory;
} new_options;

static const kelp_arg_spec specs[] = {
    {.name = "dir",
     .letter = 'd',
     .kind = KELP_OPTION_TEXT,
     .offset = offsetof(new_options, directory),
     .value = "DIR",
     .choices = "@dir",
     .help = "directory of the project (NAME); it and its parents are created if necessary"},
};

/* A kind of project. */
typedef struct project_kind {
    const char *name;               /* the argument */
    const char *noun;               /* in messages */
    const kelp_template *templates; /* its files */
    const char *reserved[8];        /* names that the server or the runtime uses */
    const char *next;               /* commands after the test; @NAME@ is replaced */
} project_kind;

static const project_kind kinds[] = {
    {"backend",
     "backend",
     kelp_backend_templates,
     {"kelp", "onnxruntime", "ensemble", "python"},
     "  kelp serve --with-backend build/libtriton_@NAME@.so\n"},
    {"kernels",
     "kernel library",
     kelp_kernels_templates,
     {"kelp"},
     "  kelp kernels --library build/lib@NAME@.so\n"},
    {"plugin",
     "plug-in",
     kelp_plugin_templates,
     {"kelp", "cpu", "null", "onnxruntime", "remote"},
     "  kelp run model.onnx --plugin build/lib@NAME@.so\n"},
    {"provider",
     "provider",
     kelp_provider_templates,
     {"kelp", "cpu", "null", "onnxruntime", "tensorrt", "kernels"},
     "  kelp serve --model-repository models --plugin build/lib@NAME@.so\n"},
};

static bool contains(const char *const *names, size_t count, const char *name) {
    for (size_t i = 0; i < count && names[i] != NULL; i++) {
        if (!strcmp(names[i], name))
            return true;
    }
    return false;
}

/* The name is used in file names, C identifiers and configurations. */
static kelp_status *check_name(const project_kind *kind, const char *name) {
    static const char *const words[] = {"test", "int",    "float", "double",
                                        "main", "static", "const", "kelp_status"};
    size_t length = strlen(name);
    bool good = length > 0 && length <= 64 && name[0] >= 'a' && name[0] <= 'z';
    for (size_t i = 0; i < length && good; i++)
        good = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9') ||
               name[i] == '_';
    if (!good)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "invalid %s name '%s': expected a lower-case letter, then letters, "
                          "digits and underscores, at most 64 characters",
                          kind->noun, name);
    if (contains(words, KELP_COUNT(words), name) ||
        contains(kind->reserved, KELP_COUNT(kind->reserved), name))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "invalid %s name '%s': the name is reserved",
                          kind->noun, name);
    return NULL;
}

/* Appends the text and replaces each @NAME@. */
static void expand(const char *text, const char *name, kelp_buf *out) {
    static const char mark[] = "@NAME@";
    for (const char *at; (at = strstr(text, mark)) != NULL; text = at + sizeof mark - 1) {
        kelp_buf_append(out, text, (size_t)(at - text));
        kelp_buf_append_cstr(out, name);
    }
    kelp_buf_append_cstr(out, text);
}

/* Sets `out` to DIR/FILE of a template. */
static kelp_status *set_path(const char *directory, const kelp_template *template, const char *name,
                             kelp_buf *out) {
    kelp_buf_clear(out);
    kelp_buf_append_cstr(out, directory);
    kelp_buf_append_char(out, '/');
    expand(template->path, name, out);
    (void)kelp_buf_cstr(out);
    return kelp_buf_status(out);
}

/* Checks all names before the first file is written, so that no file is overwritten. */
static kelp_status *check_free(const project_kind *kind, const char *directory, const char *name,
                               kelp_buf *path) {
    for (const kelp_template *t = kind->templates; t->path != NULL; t++) {
        KELP_TRY(set_path(directory, t, name, path));
        if (kelp_fs_kind_of(path->data) != KELP_FS_NONE)
            return KELP_ERROR(KELP_ALREADY_EXISTS, "'%s' already exists and is not overwritten",
                              path->data);
    }
    return NULL;
}

/* Creates the directories of a file. Modifies the path, but restores it. */
static kelp_status *make_directories(char *path) {
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        kelp_status *status = NULL;
        /* A read-only parent that exists is not an error. */
        if (mkdir(path, 0777) != 0 && kelp_fs_kind_of(path) != KELP_FS_DIRECTORY)
            status = KELP_ERROR(KELP_INVALID_ARGUMENT, "cannot create directory '%s': %s", path,
                                strerror(errno));
        *slash = '/';
        KELP_TRY(status);
    }
    return NULL;
}

static kelp_status *write_project(const project_kind *kind, const char *directory, const char *name,
                                  kelp_buf *path, kelp_buf *text) {
    KELP_TRY(check_free(kind, directory, name, path));
    for (const kelp_template *t = kind->templates; t->path != NULL; t++) {
        KELP_TRY(set_path(directory, t, name, path));
        KELP_TRY(make_directories(path->data));
        kelp_buf_clear(text);
        expand(t->text, name, text);
        KELP_TRY(kelp_buf_status(text));
        KELP_TRY(kelp_fs_write(path->data, text->data, text->length));
        if (!strcmp(t->path, "test.sh") && chmod(path->data, 0755) != 0)
            return KELP_ERROR(KELP_INTERNAL, "cannot make '%s' executable: %s", path->data,
                              strerror(errno));
    }
    return NULL;
}

/* Returns the installation prefix of this program; false if it runs from a build directory. */
static bool find_prefix(char *out, size_t capacity) {
    char package[4200];
    ssize_t length = readlink("/proc/self/exe", out, capacity - 1);
    for (int level = 0; level < 2 && length > 0; level++) {
        while (length > 0 && out[length - 1] != '/')
            length--;
        length -= length > 0;
    }
    if (length <= 0)
        return false;
    out[length] = '\0';
    snprintf(package, sizeof package, "%s/" KELP_LIBDIR "/cmake/kelp/kelp-config.cmake", out);
    return kelp_fs_kind_of(package) == KELP_FS_FILE;
}

static void say_what_next(const project_kind *kind, const char *directory, const char *name,
                          kelp_buf *out) {
    char prefix[4096];
    bool installed = find_prefix(prefix, sizeof prefix);
    kelp_buf_clear(out);
    kelp_buf_printf(out, "Created %s '%s' in %s. Next steps:\n\n", kind->noun, name, directory);
    if (!installed)
        kelp_buf_append_cstr(out, "  make install PREFIX=...    (in Kelp's sources, because this "
                                  "kelp is not installed)\n");
    kelp_buf_printf(out, "  cd %s\n  cmake -S . -B build -DCMAKE_PREFIX_PATH=%s\n", directory,
                    installed ? prefix : "...");
    kelp_buf_append_cstr(out, "  cmake --build build\n  ctest --test-dir build\n");
    expand(kind->next, name, out);
}

static const project_kind *find_kind(const char *name) {
    for (size_t i = 0; i < KELP_COUNT(kinds); i++) {
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    }
    return NULL;
}

static int run(const kelp_command *command, void *options) {
    const new_options *o = options;
    const char *name = o->positionals.items[1];
    const project_kind *kind = find_kind(o->positionals.items[0]);
    kelp_buf path, text;
    if (kind == NULL)
        return kelp_cli_usage(command, KELP_ERROR(KELP_INVALID_ARGUMENT,
                                                  "unknown kind of project '%s': expected backend, "
                                                  "kernels, plugin or provider",
                                                  o->positionals.items[0]));
    kelp_status *status = check_name(kind, name);
    if (status != NULL)
        return kelp_cli_usage(command, status);
    kelp_buf_init(&path, kelp_allocator_system());
    kelp_buf_init(&text, kelp_allocator_system());
    const char *directory = o->directory != NULL ? o->directory : name;
    status = write_project(kind, directory, name, &path, &text);
    if (status == NULL) {
        say_what_next(kind, directory, name, &text);
        status = kelp_cli_print(&text);
    }
    kelp_buf_deinit(&path);
    kelp_buf_deinit(&text);
    return kelp_cli_finish(status);
}

const kelp_command kelp_cmd_new = {
    .name = "new",
    .summary = "create the project of a backend or plug-in library in C",
    .usage = "backend|kernels|plugin|provider NAME [--dir DIR]",
    .details =
        "Writes source files, CMakeLists.txt and a test. The project builds and passes its test "
        "unchanged.\nExisting files are not overwritten.\n\n"
        "  backend   a backend of Triton's API, which serves models (docs/backends.md)\n"
        "  kernels   a library of functions on tensors, for C, Python and models "
        "(docs/kernels.md)\n"
        "  plugin    a plug-in library with operators for ONNX models (docs/extending.md)\n"
        "  provider  a plug-in library that runs models of its own format (docs/compute.md)",
    .examples = "  kelp new backend my_backend\n"
                "  kelp new kernels my_kernels --dir src/my_kernels\n"
                "  kelp new plugin my_operators",
    .positional = "backend|kernels|plugin|provider, or NAME",
    .first_choices = "backend|kernels|plugin|provider",
    .min_positionals = 2,
    .max_positionals = 2,
    .tables = KELP_ARG_TABLE(specs),
    .options_bytes = sizeof(new_options),
    .run = run,
};
