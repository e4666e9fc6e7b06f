/* SPDX-License-Identifier: Apache-2.0 */
/* Repositories that do not have the expected layout. */
#include "server/repository/scan.h"

#include "base/alloc.h"
#include "base/fs.h"

#include <string.h>

#define MAX_NAMES 5

typedef struct contents {
    size_t directories, numbers, files;
    const char *model; /* a file with a model, or NULL */
} contents;

static bool ends_in(const char *name, const char *suffix) {
    size_t length = strlen(name), end = strlen(suffix);
    return length > end && strcmp(name + length - end, suffix) == 0;
}

static kelp_status *count(kelp_allocator allocator, const char *repository,
                          const kelp_fs_names *names, contents *out) {
    *out = (contents){0};
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->items[i];
        char *path = NULL;
        if (*name == '.')
            continue;
        KELP_TRY(kelp_fs_join(allocator, repository, name, &path));
        bool is_directory = kelp_fs_kind_of(path) == KELP_FS_DIRECTORY;
        kelp_free_string(allocator, path);
        out->directories += is_directory;
        out->files += !is_directory;
        out->numbers += is_directory && strspn(name, "0123456789") == strlen(name);
        if (!is_directory && (ends_in(name, ".onnx") || ends_in(name, ".plan")))
            out->model = name;
    }
    return NULL;
}

static void list_names(const kelp_fs_names *names, size_t total, kelp_buf *out) {
    size_t listed = 0;
    for (size_t i = 0; i < names->count && listed < MAX_NAMES; i++)
        if (names->items[i][0] != '.')
            kelp_buf_printf(out, "%s'%s'", listed++ > 0 ? ", " : "", names->items[i]);
    if (total == 0)
        kelp_buf_append_cstr(out, "an empty directory");
    else if (total > listed)
        kelp_buf_printf(out, " and %zu more", total - listed);
}

static void describe(const char *repository, const kelp_fs_names *names, const contents *found,
                     kelp_buf *out) {
    size_t stem = found->model != NULL ? (size_t)(strrchr(found->model, '.') - found->model) : 0;
    if (found->directories > 0 && found->numbers == found->directories) {
        kelp_buf_printf(out,
                        "model repository '%s' has the layout of a model, with versions: expected "
                        "the directory that contains it",
                        repository);
    } else if (found->directories == 0) {
        kelp_buf_printf(out,
                        "model repository '%s' has no models: expected "
                        "%s/MODEL/VERSION/model.onnx, such as %s/%.*s/1/model.onnx, found ",
                        repository, repository, repository, stem > 0 ? (int)stem : 6,
                        stem > 0 ? found->model : "digits");
        list_names(names, found->files, out);
    } else if (found->model != NULL) {
        kelp_buf_printf(out,
                        "model repository '%s': '%s' is not in the directory of a model and is not "
                        "served: expected %s/%.*s/1/model%s",
                        repository, found->model, repository, (int)stem, found->model,
                        found->model + stem);
    }
}

kelp_status *kelp_scan_describe_layout(kelp_allocator allocator, const char *repository,
                                       kelp_buf *out) {
    kelp_fs_names names = {0};
    contents found;
    kelp_status *status = kelp_fs_list(allocator, repository, &names);
    if (status == NULL)
        status = count(allocator, repository, &names, &found);
    if (status == NULL)
        describe(repository, &names, &found, out);
    kelp_fs_names_deinit(&names);
    return status != NULL ? status : kelp_buf_status(out);
}
