/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/remote/tree.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/files/temporary.h"
#include "base/fs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES "files"
#define DIRECTORY_MODE 0755

/* What the files of a tree are. */
typedef struct tree_contents {
    bool is_model; /* the directory of a model */
    size_t model_files;
    char file[256]; /* one of the model files */
} tree_contents;

/* Returns ".onnx" or ".plan", or NULL. */
static const char *extension_of(const char *path) {
    static const char *const extensions[] = {".onnx", ".plan"};
    size_t length = strlen(path);
    for (size_t i = 0; i < KELP_COUNT(extensions); i++) {
        size_t size = strlen(extensions[i]);
        if (length > size && !strcmp(path + length - size, extensions[i]) &&
            path[length - size - 1] != '/')
            return extensions[i];
    }
    return NULL;
}

bool kelp_tree_is_model_file(const char *path) {
    return extension_of(path) != NULL;
}

kelp_str kelp_tree_model_name(kelp_str directory, kelp_str otherwise) {
    const char *begin = directory.data, *end = begin + directory.length;
    while (end > begin && end[-1] >= '0' && end[-1] <= '9')
        end--;
    if (end == begin + directory.length || end == begin || end[-1] != '/')
        return otherwise;
    end--;
    const char *start = end;
    while (start > begin && start[-1] != '/')
        start--;
    return start < end ? (kelp_str){start, (size_t)(end - start)} : otherwise;
}

/* Sets the text to "A/B", and returns it, or NULL without memory. */
static const char *joined(kelp_buf *out, const char *a, const char *b) {
    kelp_buf_clear(out);
    kelp_buf_printf(out, "%s/%s", a, b);
    return kelp_buf_cstr(out);
}

kelp_status *kelp_tree_link(const char *tree, const char *name, const char *file) {
    kelp_buf path;
    kelp_buf_init(&path, kelp_allocator_system());
    kelp_buf_printf(&path, "%s/" FILES "/%s", tree, name);
    (void)kelp_buf_cstr(&path);
    kelp_status *status = kelp_buf_status(&path);
    for (char *slash = status == NULL ? path.data + strlen(tree) : NULL;
         slash != NULL && status == NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path.data, DIRECTORY_MODE) != 0 && errno != EEXIST)
            status = kelp_fs_error("cannot create the directory", path.data, errno);
        *slash = '/';
    }
    if (status == NULL && link(file, path.data) != 0)
        status = kelp_fs_error("cannot link", path.data, errno);
    kelp_buf_deinit(&path);
    return status;
}

static kelp_status *examine(const char *files, tree_contents *out) {
    kelp_fs_names names;
    kelp_buf path;
    *out = (tree_contents){.is_model = false};
    KELP_TRY(kelp_fs_list(kelp_allocator_system(), files, &names));
    kelp_buf_init(&path, kelp_allocator_system());
    for (size_t i = 0; i < names.count; i++) {
        const char *name = names.items[i];
        const char *full = joined(&path, files, name);
        bool is_directory = full != NULL && kelp_fs_kind_of(full) == KELP_FS_DIRECTORY;
        if (is_directory ? strspn(name, "0123456789") == strlen(name)
                         : !strcmp(name, "config.pbtxt"))
            out->is_model = true;
        if (!is_directory && extension_of(name) != NULL && strlen(name) < sizeof out->file) {
            out->model_files++;
            strcpy(out->file, name);
        }
    }
    kelp_status *status = kelp_buf_status(&path);
    kelp_buf_deinit(&path);
    kelp_fs_names_deinit(&names);
    return status;
}

static kelp_status *move(const char *from, const char *to) {
    return rename(from, to) == 0 ? NULL : kelp_fs_error("cannot write", to, errno);
}

/* Moves the files to repository/MODEL or, those of a version, to repository/MODEL/1. */
static kelp_status *move_model(const char *tree, const char *model, const tree_contents *contents,
                               kelp_buf *from, kelp_buf *to) {
    kelp_buf_clear(to);
    kelp_buf_printf(to, "%s/" KELP_TREE_REPOSITORY "/%s%s", tree, model,
                    contents->is_model ? "" : "/1");
    const char *target = kelp_buf_cstr(to);
    KELP_TRY(kelp_buf_status(to));
    size_t begin = strlen(tree) + 1;
    for (char *slash = strchr(to->data + begin, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(to->data, DIRECTORY_MODE) != 0 && errno != EEXIST)
            return kelp_fs_error("cannot create the directory", to->data, errno);
        *slash = '/';
    }
    KELP_TRY(move(joined(from, tree, FILES), target));
    if (contents->is_model)
        return NULL;
    kelp_buf_clear(from);
    kelp_buf_printf(from, "%s/%s", target, contents->file);
    kelp_buf_printf(to, "/model%s", extension_of(contents->file));
    const char *file = kelp_buf_cstr(from), *renamed = kelp_buf_cstr(to);
    KELP_TRY(kelp_buf_status(from));
    KELP_TRY(kelp_buf_status(to));
    return move(file, renamed);
}

/* Does the work of kelp_tree_arrange with temporary buffers. */
static kelp_status *arrange(const char *tree, const char *model, kelp_buf *from, kelp_buf *to) {
    tree_contents contents;
    const char *files = joined(from, tree, FILES);
    const char *repository = joined(to, tree, KELP_TREE_REPOSITORY);
    KELP_TRY(kelp_buf_status(from));
    KELP_TRY(kelp_buf_status(to));
    KELP_TRY(examine(files, &contents));
    if (!contents.is_model && contents.model_files == 0)
        return move(files, repository);
    if (!contents.is_model && contents.model_files > 1)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%zu model files have no directory, such as '%s': expected one, or a "
                          "model repository",
                          contents.model_files, contents.file);
    return move_model(tree, model, &contents, from, to);
}

kelp_status *kelp_tree_arrange(const char *tree, const char *model) {
    kelp_buf from, to;
    kelp_buf_init(&from, kelp_allocator_system());
    kelp_buf_init(&to, kelp_allocator_system());
    kelp_status *status = arrange(tree, model, &from, &to);
    kelp_buf_deinit(&from);
    kelp_buf_deinit(&to);
    return status;
}

/* Calls `use` for each name in a directory, with its path. */
static void for_each(const char *directory,
                     void (*use)(const char *path, const char *name, const char *userp),
                     const char *userp) {
    kelp_fs_names names;
    kelp_buf path;
    kelp_status *unreadable = kelp_fs_list(kelp_allocator_system(), directory, &names);
    if (unreadable != NULL) {
        kelp_status_free(unreadable);
        return;
    }
    kelp_buf_init(&path, kelp_allocator_system());
    for (size_t i = 0; i < names.count; i++) {
        const char *full = joined(&path, directory, names.items[i]);
        if (full != NULL)
            use(full, names.items[i], userp);
    }
    kelp_buf_deinit(&path);
    kelp_fs_names_deinit(&names);
}

static void remove_other(const char *path, const char *name, const char *kept) {
    if (strcmp(name, kept) != 0)
        kelp_directory_remove(path);
}

void kelp_tree_keep(const char *directory, const char *name) {
    for_each(directory, remove_other, name);
}

static void remove_unlinked(const char *path, const char *name, const char *kept) {
    struct stat info;
    if (strcmp(name, kept) != 0 && stat(path, &info) == 0 && info.st_nlink == 1)
        (void)unlink(path);
}

void kelp_tree_remove_unlinked(const char *directory) {
    for_each(directory, remove_unlinked, "state");
}
