/* SPDX-License-Identifier: Apache-2.0 */
/* Load parameters that replace a model's files. */
#include "server/config/overrides.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/fs.h"
#include "base/files/temporary.h"
#include "server/config/model_files.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

void kelp_override_clear(kelp_allocator allocator, kelp_override *override) {
    kelp_free_string(allocator, override->config_json);
    kelp_temporary_remove(allocator, override->directory);
    *override = (kelp_override){0};
}

/* Creates the parent directories of `path`, whose first `base_length` bytes are a directory that
 * exists. */
static kelp_status *make_parents(char *path, size_t base_length) {
    for (char *slash = path + base_length + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        int failed = mkdir(path, 0700) != 0 && errno != EEXIST;
        *slash = '/';
        if (failed)
            return KELP_ERROR(KELP_INTERNAL, "cannot create a directory for '%s'", path);
    }
    return NULL;
}

/* Creates the error of a file that cannot be written: INTERNAL with Triton's text and the reason,
 * unless the reason is a lack of memory. NULL is passed on. */
static kelp_status *write_failure(const char *model_name, const char *file,
                                  kelp_status *take_reason) {
    if (take_reason == NULL || kelp_status_code(take_reason) == KELP_RESOURCE_EXHAUSTED)
        return take_reason;
    kelp_status *status = KELP_ERROR(
        KELP_INTERNAL,
        "failed to load '%s', failed to poll from model repository: cannot write '%s': %s",
        model_name, file, kelp_status_message(take_reason));
    kelp_status_free(take_reason);
    return status;
}

static kelp_status *write_files(kelp_allocator allocator, kelp_override *override,
                                const char *model_name, const kelp_load_options *options) {
    static const char prefix[] = "file:";
    KELP_TRY(kelp_temporary_create(allocator, "model", &override->directory));
    kelp_status *status = NULL;
    for (size_t i = 0; i < options->file_count && status == NULL; i++) {
        const kelp_parameter *file = options->files[i];
        KELP_ASSERT(strncmp(file->name, prefix, sizeof prefix - 1) == 0);
        KELP_ASSERT(file->type == TRITONSERVER_PARAMETER_BYTES);
        const char *relative = file->name + sizeof prefix - 1;
        char *path = NULL;
        if (!relative[0] || !kelp_fs_is_inside(relative))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "failed to load '%s': '%s' is outside the model's directory",
                              model_name, file->name);
        status = kelp_fs_join(allocator, override->directory, relative, &path);
        if (status == NULL)
            status = make_parents(path, strlen(override->directory));
        if (status == NULL)
            status = kelp_fs_write(path, file->bytes, file->size_bytes);
        status = write_failure(model_name, file->name, status);
        kelp_free_string(allocator, path);
    }
    return status;
}

/* Prepares a load without parameters: keeps the configuration of an override if the model's files
 * have not changed since then; never keeps files. */
static kelp_status *keep_or_clear(kelp_allocator allocator, kelp_override *override,
                                  const char *path, int64_t loaded_signature) {
    int64_t signature = 0;
    if (override->config_json == NULL)
        return NULL;
    KELP_TRY(kelp_model_files_signature(allocator, path, &signature));
    if (override->directory != NULL || signature != loaded_signature)
        kelp_override_clear(allocator, override);
    return NULL;
}

kelp_status *kelp_override_apply(kelp_allocator allocator, kelp_override *override,
                                 const char *model_name, const char *path, int64_t loaded_signature,
                                 const kelp_load_options *options, const char **out_directory) {
    *out_directory = path;
    if (options == NULL || (options->config_json == NULL && options->file_count == 0))
        return keep_or_clear(allocator, override, path, loaded_signature);
    if (options->config_json == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "failed to load '%s', failed to poll from model repository: override "
                          "model directory requires additional 'config' parameter to be provided",
                          model_name);
    kelp_override_clear(allocator, override);
    KELP_TRY(kelp_strdup(allocator, options->config_json, &override->config_json));
    if (options->file_count == 0)
        return NULL;
    kelp_status *status = write_files(allocator, override, model_name, options);
    if (status != NULL)
        kelp_override_clear(allocator, override);
    else
        *out_directory = override->directory;
    return status;
}
