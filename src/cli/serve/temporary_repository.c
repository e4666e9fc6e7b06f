/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/temporary_repository.h"

#include "base/alloc.h"
#include "base/buf.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

kelp_status *kelp_temporary_repository_create(char **out_path) {
    const char *base = getenv("TMPDIR");
    kelp_buf path;
    kelp_buf_init(&path, kelp_allocator_system());
    kelp_buf_printf(&path, "%s/kelp-serve-XXXXXX", base != NULL && *base ? base : P_tmpdir);
    char *template = NULL;
    const char *text = kelp_buf_cstr(&path);
    kelp_status *status = kelp_buf_status(&path);
    if (status == NULL)
        status = kelp_strdup(kelp_allocator_system(), text, &template);
    kelp_buf_deinit(&path);
    KELP_TRY(status);
    if (mkdtemp(template) == NULL) {
        status = KELP_ERROR(KELP_INTERNAL, "cannot create '%s': %s", template, strerror(errno));
        kelp_free_string(kelp_allocator_system(), template);
        return status;
    }
    *out_path = template;
    return NULL;
}

/* Removes links without following them. */
static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where) {
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

void kelp_temporary_repository_remove(char *take_path) {
    if (take_path == NULL)
        return;
    nftw(take_path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    kelp_free_string(kelp_allocator_system(), take_path);
}
