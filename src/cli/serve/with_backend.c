/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/with_backend.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/fs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static kelp_status *failed(const char *doing, const char *path) {
    return KELP_ERROR(KELP_INTERNAL, "cannot %s '%s': %s", doing, path, strerror(errno));
}

/* The model of one library. Paths have at most PATH_MAX bytes, the limit of realpath. */
typedef struct linked_model {
    char library[PATH_MAX];
    char directory[PATH_MAX]; /* directory to search for the configuration */
    char name[256];
    kelp_buf model; /* directory of the model */
    kelp_buf path;  /* temporary buffer */
} linked_model;

/* Extracts NAME from "…/libtriton_NAME.so". */
static kelp_status *find_name(linked_model *p, const char *word) {
    static const char prefix[] = "libtriton_", suffix[] = ".so";
    if (realpath(word, p->library) == NULL)
        return KELP_ERROR(KELP_NOT_FOUND, "option '--with-backend': '%s': %s", word,
                          strerror(errno));
    /* A link may have this name although its target does not. */
    const char *slash = strrchr(word, '/');
    const char *file = slash != NULL ? slash + 1 : word;
    size_t length = strlen(file), around = sizeof prefix - 1 + sizeof suffix - 1;
    if (length <= around || length - around >= sizeof p->name ||
        strncmp(file, prefix, sizeof prefix - 1) || strcmp(file + length - 3, suffix))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "option '--with-backend': expected a file named libtriton_NAME.so, found "
                          "'%s'",
                          word);
    memcpy(p->name, file + sizeof prefix - 1, length - around);
    p->name[length - around] = '\0';
    strcpy(p->directory, p->library);
    return NULL;
}

/* Removes the last component of a path. */
static void remove_last(char *path) {
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        *slash = '\0';
}

static const char *joined(kelp_buf *out, const char *directory, const char *name) {
    kelp_buf_clear(out);
    kelp_buf_printf(out, "%s/%s", directory, name);
    return kelp_buf_cstr(out);
}

static kelp_status *link_into(linked_model *p, const char *target, const char *name) {
    KELP_ASSERT(target[0] == '/'); /* links are relative to another directory */
    const char *path = joined(&p->path, kelp_buf_cstr(&p->model), name);
    KELP_TRY(kelp_buf_status(&p->path));
    return symlink(target, path) == 0 ? NULL : failed("link", path);
}

/* Numbered directories next to the configuration are the versions of the model. */
static kelp_status *link_versions(linked_model *p) {
    kelp_fs_names names;
    kelp_buf target;
    KELP_TRY(kelp_fs_list(kelp_allocator_system(), p->directory, &names));
    kelp_buf_init(&target, kelp_allocator_system());
    kelp_status *status = NULL;
    size_t linked = 0;
    for (size_t i = 0; i < names.count && status == NULL; i++) {
        const char *name = names.items[i];
        if (strspn(name, "0123456789") != strlen(name))
            continue;
        const char *path = joined(&target, p->directory, name);
        status = kelp_buf_status(&target);
        if (status != NULL || kelp_fs_kind_of(path) != KELP_FS_DIRECTORY)
            continue;
        status = link_into(p, path, name);
        linked++;
    }
    kelp_buf_deinit(&target);
    kelp_fs_names_deinit(&names);
    if (status != NULL || linked)
        return status;
    const char *path = joined(&p->path, kelp_buf_cstr(&p->model), "1");
    KELP_TRY(kelp_buf_status(&p->path));
    return mkdir(path, 0700) == 0 ? NULL : failed("create", path);
}

static kelp_status *write_config(linked_model *p) {
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_buf_printf(&text, "backend: \"%s\"\n", p->name);
    kelp_status *status = kelp_buf_status(&text);
    const char *path = joined(&p->path, kelp_buf_cstr(&p->model), "config.pbtxt");
    if (status == NULL)
        status = kelp_buf_status(&p->path);
    if (status == NULL)
        status = kelp_fs_write(path, text.data, text.length);
    kelp_buf_deinit(&text);
    return status;
}

static kelp_status *link_config(linked_model *p) {
    /* Two levels up, because cargo writes libraries to target/release. */
    for (int level = 0; level < 3; level++) {
        remove_last(p->directory);
        const char *path = joined(&p->path, p->directory, "config.pbtxt");
        KELP_TRY(kelp_buf_status(&p->path));
        if (kelp_fs_kind_of(path) != KELP_FS_FILE)
            continue;
        char *target;
        KELP_TRY(kelp_strdup(kelp_allocator_system(), path, &target));
        kelp_status *status = link_into(p, target, "config.pbtxt");
        kelp_free_string(kelp_allocator_system(), target);
        return status != NULL ? status : link_versions(p);
    }
    fprintf(stderr,
            "kelp: no config.pbtxt in the directory of '%s' or the two above: the backend must "
            "complete the configuration\n",
            p->library);
    KELP_TRY(write_config(p));
    const char *path = joined(&p->path, kelp_buf_cstr(&p->model), "1");
    KELP_TRY(kelp_buf_status(&p->path));
    return mkdir(path, 0700) == 0 ? NULL : failed("create", path);
}

static kelp_status *create_model(linked_model *p, const char *repository) {
    char file[300];
    const char *model = joined(&p->model, repository, p->name);
    KELP_TRY(kelp_buf_status(&p->model));
    if (mkdir(model, 0700) != 0)
        return errno == EEXIST
                   ? KELP_ERROR(
                         KELP_ALREADY_EXISTS,
                         "option '--with-backend': two libraries have the name libtriton_%s.so",
                         p->name)
                   : failed("create", model);
    snprintf(file, sizeof file, "libtriton_%s.so", p->name);
    KELP_TRY(link_into(p, p->library, file));
    return link_config(p);
}

kelp_status *kelp_with_backend_add(const kelp_arg_list *libraries, const char *repository) {
    linked_model *p = NULL;
    kelp_status *status = NULL;
    if (libraries->count == 0)
        return NULL;
    KELP_TRY(KELP_NEW(kelp_allocator_system(), linked_model, &p));
    kelp_buf_init(&p->model, kelp_allocator_system());
    kelp_buf_init(&p->path, kelp_allocator_system());
    for (size_t i = 0; i < libraries->count && status == NULL; i++) {
        status = find_name(p, libraries->items[i]);
        if (status == NULL)
            status = create_model(p, repository);
    }
    kelp_buf_deinit(&p->model);
    kelp_buf_deinit(&p->path);
    kelp_free(kelp_allocator_system(), p, sizeof *p);
    return status;
}
