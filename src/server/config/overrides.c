/* SPDX-License-Identifier: Apache-2.0 */
/* Load parameters; see overrides.h. Files go to a new folder under TMPDIR that only this user can
 * read. */
#include "server/config/overrides.h"

#include "base/fs.h"
#include "server/repository/scan.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where) {
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

void kelp_remove_tree(const char *path) {
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void kelp_override_clear(kelp_entry *entry) {
    kelp_allocator heap = kelp_allocator_system();
    kelp_free_string(heap, entry->override_config);
    entry->override_config = NULL;
    if (entry->override_directory)
        kelp_remove_tree(entry->override_directory);
    kelp_free_string(heap, entry->override_directory);
    entry->override_directory = NULL;
}

/* Makes the folders that lead to `path`, which begins with the existing folder of `base_length`
 * bytes. */
static kelp_status *make_parents(char *path, size_t base_length) {
    for (char *slash = path + base_length + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        int failed = mkdir(path, 0700) != 0 && errno != EEXIST;
        *slash = '/';
        if (failed)
            return KELP_ERROR(KELP_INTERNAL, "cannot make a folder for '%s'", path);
    }
    return NULL;
}

static kelp_status *write_files(kelp_entry *entry, const kelp_load_options *options) {
    static const char prefix[] = "file:";
    kelp_allocator heap = kelp_allocator_system();
    const char *base = getenv("TMPDIR");
    char template[4096];
    snprintf(template, sizeof template, "%s/kelp-model-XXXXXX", base && base[0] ? base : "/tmp");
    if (!mkdtemp(template))
        return KELP_ERROR(KELP_INTERNAL, "cannot make a folder for the files of model '%s' in '%s'",
                          entry->name, template);
    kelp_status *status = kelp_strdup(heap, template, &entry->override_directory);
    for (size_t i = 0; i < options->file_count && !status; i++) {
        const kelp_parameter *file = options->files[i];
        const char *relative = file->name + sizeof prefix - 1;
        char *path = NULL;
        if (!relative[0] || !kelp_fs_is_inside(relative)) {
            status = KELP_ERROR(KELP_INVALID_ARGUMENT,
                                "failed to load '%s': '%s' lies outside the model's folder",
                                entry->name, file->name);
            break;
        }
        status = kelp_fs_join(heap, template, relative, &path);
        if (!status)
            status = make_parents(path, strlen(template));
        if (!status)
            status = kelp_fs_write(path, file->bytes, file->size_bytes);
        kelp_free_string(heap, path);
    }
    return status;
}

kelp_status *kelp_override_apply(kelp_server *server, kelp_entry *entry, const char *path,
                                 const kelp_load_options *options, const char **out_directory) {
    kelp_allocator heap = kelp_allocator_system();
    (void)server;
    *out_directory = path;
    if (!options || (!options->config_json && options->file_count == 0)) {
        int64_t signature = 0;
        if (!entry->override_config)
            return NULL;
        KELP_TRY(kelp_scan_signature(path, &signature));
        if (entry->override_directory || signature != entry->signature)
            kelp_override_clear(entry);
        return NULL;
    }
    if (!options->config_json)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "failed to load '%s', override model directory requires additional "
                          "'config' parameter to be provided",
                          entry->name);
    kelp_override_clear(entry);
    KELP_TRY(kelp_strdup(heap, options->config_json, &entry->override_config));
    if (options->file_count > 0) {
        kelp_status *status = write_files(entry, options);
        if (status) {
            kelp_override_clear(entry);
            return status;
        }
        *out_directory = entry->override_directory;
    }
    return NULL;
}
