/* SPDX-License-Identifier: Apache-2.0 */
/* kelp new: creates the project of a backend. */
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
     .help = "directory of the project (NAME); created if it does not exist"},
};

/* The name is used in file names, C identifiers and configurations. */
static kelp_status *check_name(const char *name) {
    static const char *const taken[] = {"kelp", "onnxruntime", "ensemble", "python",
                                        "test", "int",         "float",    "double",
                                        "main", "static",      "const",    "kelp_status"};
    size_t length = strlen(name);
    bool good = length > 0 && length <= 64 && name[0] >= 'a' && name[0] <= 'z';
    for (size_t i = 0; i < length && good; i++)
        good = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9') ||
               name[i] == '_';
    if (!good)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "invalid backend name '%s': expected a lower-case letter, then letters, "
                          "digits and underscores, at most 64 characters",
                          name);
    for (size_t i = 0; i < KELP_COUNT(taken); i++) {
        if (!strcmp(name, taken[i]))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "invalid backend name '%s': the name is reserved", name);
    }
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

/* Returns DIR/FILE with the file name of the template. */
static const char *path_of(const char *directory, const kelp_template *template, const char *name,
                           kelp_buf *out) {
    kelp_buf_clear(out);
    kelp_buf_append_cstr(out, directory);
    kelp_buf_append_char(out, '/');
    if (!strcmp(template->name, "backend.c"))
        kelp_buf_printf(out, "%s.c", name);
    else if (!strcmp(template->name, "gitignore"))
        kelp_buf_append_cstr(out, ".gitignore");
    else
        kelp_buf_append_cstr(out, template->name);
    return kelp_buf_cstr(out);
}

/* Checks all names before the first file is written, so that no file is overwritten. */
static kelp_status *check_free(const char *directory, const char *name, kelp_buf *path) {
    for (const kelp_template *t = kelp_backend_templates; t->name != NULL; t++) {
        const char *file = path_of(directory, t, name, path);
        KELP_TRY(kelp_buf_status(path));
        if (kelp_fs_kind_of(file) != KELP_FS_NONE)
            return KELP_ERROR(KELP_ALREADY_EXISTS, "'%s' already exists and is not overwritten",
                              file);
    }
    return NULL;
}

static kelp_status *write_project(const char *directory, const char *name, kelp_buf *path,
                                  kelp_buf *text) {
    if (mkdir(directory, 0777) != 0 && errno != EEXIST)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "cannot create directory '%s': %s", directory,
                          strerror(errno));
    KELP_TRY(check_free(directory, name, path));
    for (const kelp_template *t = kelp_backend_templates; t->name != NULL; t++) {
        const char *file = path_of(directory, t, name, path);
        kelp_buf_clear(text);
        expand(t->text, name, text);
        KELP_TRY(kelp_buf_status(path));
        KELP_TRY(kelp_buf_status(text));
        KELP_TRY(kelp_fs_write(file, text->data, text->length));
        if (!strcmp(t->name, "test.sh") && chmod(file, 0755) != 0)
            return KELP_ERROR(KELP_INTERNAL, "cannot make '%s' executable: %s", file,
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
    snprintf(package, sizeof package, "%s/lib/cmake/kelp/kelp-config.cmake", out);
    return kelp_fs_kind_of(package) == KELP_FS_FILE;
}

static void say_what_next(const char *directory, const char *name, kelp_buf *out) {
    char prefix[4096];
    bool installed = find_prefix(prefix, sizeof prefix);
    kelp_buf_clear(out);
    kelp_buf_printf(out, "Created backend '%s' in %s. Next steps:\n\n", name, directory);
    if (!installed)
        kelp_buf_append_cstr(out, "  make install PREFIX=...    (in Kelp's sources, because this "
                                  "kelp is not installed)\n");
    kelp_buf_printf(out, "  cd %s\n  cmake -S . -B build -DCMAKE_PREFIX_PATH=%s\n", directory,
                    installed ? prefix : "...");
    kelp_buf_append_cstr(out, "  cmake --build build\n  ctest --test-dir build\n");
    kelp_buf_printf(out, "  kelp serve --with-backend build/libtriton_%s.so\n", name);
}

static int run(const kelp_command *command, void *options) {
    const new_options *o = options;
    const char *kind = o->positionals.items[0], *name = o->positionals.items[1];
    kelp_buf path, text;
    if (strcmp(kind, "backend"))
        return kelp_cli_usage(command,
                              KELP_ERROR(KELP_INVALID_ARGUMENT,
                                         "unknown kind of project '%s': expected 'backend'", kind));
    kelp_status *status = check_name(name);
    if (status != NULL)
        return kelp_cli_usage(command, status);
    kelp_buf_init(&path, kelp_allocator_system());
    kelp_buf_init(&text, kelp_allocator_system());
    const char *directory = o->directory != NULL ? o->directory : name;
    status = write_project(directory, name, &path, &text);
    if (status == NULL) {
        say_what_next(directory, name, &text);
        status = kelp_cli_print(&text);
    }
    kelp_buf_deinit(&path);
    kelp_buf_deinit(&text);
    return kelp_cli_finish(status);
}

const kelp_command kelp_cmd_new = {
    .name = "new",
    .summary = "create the project of a backend in C",
    .usage = "backend NAME [--dir DIR]",
    .details = "Writes a source file, CMakeLists.txt, a configuration and a test. The project "
               "builds and passes\nits test unchanged. docs/backends.md is the tutorial. Existing "
               "files are not overwritten.",
    .examples = "  kelp new backend my_backend\n"
                "  kelp new backend my_backend --dir src/my_backend",
    .positional = "backend NAME",
    .min_positionals = 2,
    .max_positionals = 2,
    .specs = specs,
    .spec_count = KELP_COUNT(specs),
    .options_bytes = sizeof(new_options),
    .run = run,
};
