/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/model_file.h"

#include "base/alloc.h"
#include "base/fs.h"
#include "cli/serve/remote/tree.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *extension;
    const char *backend;
} formats[] = {{".onnx", "onnxruntime"}, {".plan", "tensorrt"}};

/* The parts of the path of a model file. */
typedef struct model_file {
    char directory[PATH_MAX]; /* absolute */
    const char *file;         /* last component */
    kelp_str name;            /* of the model */
    const char *backend;
} model_file;

static kelp_status *split(const char *path, model_file *out) {
    if (realpath(path, out->directory) == NULL)
        return KELP_ERROR(KELP_NOT_FOUND, "cannot serve '%s': %s", path, strerror(errno));
    char *slash = strrchr(out->directory, '/');
    out->file = slash + 1;
    *slash = '\0';
    size_t length = strlen(out->file);
    out->backend = NULL;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        size_t extension = strlen(formats[i].extension);
        if (length <= extension || strcmp(out->file + length - extension, formats[i].extension))
            continue;
        out->backend = formats[i].backend;
        out->name = (kelp_str){out->file, length - extension};
    }
    if (out->backend != NULL && kelp_str_is(out->name, "model"))
        out->name = kelp_tree_model_name(kelp_str_from(out->directory), out->name);
    return out->backend != NULL
               ? NULL
               : KELP_ERROR(KELP_INVALID_ARGUMENT,
                            "'%s' cannot be served: expected a directory, or a file NAME.onnx or "
                            "NAME.plan",
                            path);
}

/* Appends a quoted string of the text format of protobuf. */
static void put_quoted(kelp_buf *out, const char *text) {
    kelp_buf_append_char(out, '"');
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c < ' ' || *c == '"' || *c == '\\' || *c >= 0x7f)
            kelp_buf_printf(out, "\\%03o", *c);
        else
            kelp_buf_append_char(out, (char)*c);
    }
    kelp_buf_append_char(out, '"');
}

static kelp_status *failed(const char *doing, const char *path) {
    return KELP_ERROR(KELP_INTERNAL, "cannot %s '%s': %s", doing, path, strerror(errno));
}

/* Writes the model's directory `path`, whose length is `path->length`. */
static kelp_status *write_model(const model_file *file, kelp_buf *path, kelp_buf *config) {
    size_t length = path->length;
    const char *text = kelp_buf_cstr(path);
    KELP_TRY(kelp_buf_status(path));
    if (mkdir(text, 0700) != 0)
        return errno == EEXIST
                   ? KELP_ERROR(KELP_ALREADY_EXISTS,
                                "two models have the name '%.*s'; the second is '%s/%s'",
                                KELP_STR_ARG(file->name), file->directory, file->file)
                   : failed("create", text);
    kelp_buf_append_cstr(path, "/1");
    text = kelp_buf_cstr(path);
    KELP_TRY(kelp_buf_status(path));
    if (symlink(*file->directory ? file->directory : "/", text) != 0)
        return failed("link", text);
    path->length = length;
    kelp_buf_append_cstr(path, "/config.pbtxt");
    kelp_buf_printf(config, "backend: \"%s\"\ndefault_model_filename: ", file->backend);
    put_quoted(config, file->file);
    kelp_buf_append_char(config, '\n');
    text = kelp_buf_cstr(path);
    KELP_TRY(kelp_buf_status(path));
    KELP_TRY(kelp_buf_status(config));
    return kelp_fs_write(text, config->data, config->length);
}

static kelp_status *add_file(const char *word, const char *repository) {
    model_file file;
    kelp_buf path, config;
    KELP_TRY(split(word, &file));
    kelp_buf_init(&path, kelp_allocator_system());
    kelp_buf_init(&config, kelp_allocator_system());
    kelp_buf_printf(&path, "%s/%.*s", repository, KELP_STR_ARG(file.name));
    kelp_status *status = write_model(&file, &path, &config);
    kelp_buf_deinit(&config);
    kelp_buf_deinit(&path);
    return status;
}

kelp_status *kelp_model_file_add(const kelp_arg_list *files, const char *repository) {
    for (size_t i = 0; i < files->count; i++)
        KELP_TRY(add_file(files->items[i], repository));
    return NULL;
}
