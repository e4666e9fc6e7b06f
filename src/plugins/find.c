/* SPDX-License-Identifier: Apache-2.0 */
/* Finds library files: in the directories and files of the search path, then in the installation.
 */
#include "plugins/internal.h"

#include "base/fs.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef bool (*candidate_fn)(void *userp, const char *path);

static bool in_directory(const char *directory, const char *name, candidate_fn fn, void *userp) {
    static const struct {
        const char *before, *after;
    } patterns[] = {{"lib", "_backend.so"}, {"lib", ".so"}, {"", ".so"}};
    char path[4096];
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        int length = snprintf(path, sizeof path, "%s/%s%s%s", directory, patterns[i].before, name,
                              patterns[i].after);
        if (length > 0 && (size_t)length < sizeof path && fn(userp, path))
            return true;
    }
    int length = snprintf(path, sizeof path, "%s/%s/lib%s.so", directory, name, name);
    return length > 0 && (size_t)length < sizeof path && fn(userp, path);
}

static bool ends_in_so(const char *name) {
    size_t length = strlen(name);
    return length > 3 && strcmp(name + length - 3, ".so") == 0;
}

static bool all_in_directory(kelp_allocator allocator, const char *directory, candidate_fn fn,
                             void *userp) {
    kelp_fs_names names = {0};
    bool found = false;
    kelp_status *status = kelp_fs_list(allocator, directory, &names);
    if (status != NULL) { /* a missing directory has no libraries */
        kelp_status_free(status);
        return false;
    }
    for (size_t i = 0; !found && i < names.count; i++) {
        char path[4096];
        int length = snprintf(path, sizeof path, "%s/%s", directory, names.items[i]);
        if (ends_in_so(names.items[i]) && length > 0 && (size_t)length < sizeof path)
            found = fn(userp, path);
    }
    kelp_fs_names_deinit(&names);
    return found;
}

static bool entry(kelp_allocator allocator, const char *text, size_t length, const char *name,
                  candidate_fn fn, void *userp) {
    char path[4096];
    if (length == 0 || length >= sizeof path)
        return false;
    memcpy(path, text, length);
    path[length] = '\0';
    if (ends_in_so(path))
        return fn(userp, path);
    return name != NULL ? in_directory(path, name, fn, userp)
                        : all_in_directory(allocator, path, fn, userp);
}

static bool list(kelp_allocator allocator, const char *text, const char *name, candidate_fn fn,
                 void *userp) {
    while (text != NULL && *text != '\0') {
        size_t length = strcspn(text, ":");
        if (entry(allocator, text, length, name, fn, userp))
            return true;
        text += length + (text[length] == ':');
    }
    return false;
}

static const char anchor; /* an address inside this library, for dladdr */

/* The default directory is next to libkelp.so. If Kelp is linked statically, it is the
 * installation's directory. */
static bool in_default_directory(kelp_allocator allocator, const char *name, candidate_fn fn,
                                 void *userp) {
    char directory[4096];
    Dl_info info;
    const char *slash = NULL;
    if (dladdr((const void *)&anchor, &info) != 0 && info.dli_fname != NULL &&
        strstr(info.dli_fname, "libkelp.so") != NULL)
        slash = strrchr(info.dli_fname, '/');
    int length = slash == NULL ? snprintf(directory, sizeof directory, "%s", KELP_KERNEL_DIRECTORY)
                               : snprintf(directory, sizeof directory, "%.*s/kelp/kernels",
                                          (int)(slash - info.dli_fname), info.dli_fname);
    return length > 0 && (size_t)length < sizeof directory &&
           entry(allocator, directory, (size_t)length, name, fn, userp);
}

void kelp_kernel_candidates(kelp_allocator allocator, const char *search_path, const char *name,
                            candidate_fn fn, void *userp) {
    if (search_path != NULL) {
        list(allocator, search_path, name, fn, userp);
        return;
    }
    if (!list(allocator, getenv("KELP_BACKEND_PATH"), name, fn, userp) &&
        !list(allocator, getenv("TRITON_BACKEND_PATH"), name, fn, userp))
        in_default_directory(allocator, name, fn, userp);
}
