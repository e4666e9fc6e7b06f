/* SPDX-License-Identifier: Apache-2.0 */
/* Repositories that are registered and unregistered at run time. */
#include "base/assert.h"
#include "base/fs.h"
#include "server/repository/repository.h"

/* Removes a repository and its mappings; returns false if it was not registered. */
static bool remove_repository(kelp_repository *repository, const char *path) {
    KELP_ASSERT_HELD(&repository->lock);
    kelp_settings_remove(&repository->mappings, path);
    return kelp_string_list_remove(&repository->paths, path);
}

static bool is_mapped_to(const kelp_settings *mappings, const char *name) {
    for (size_t i = 0; i < mappings->count; i++)
        if (strcmp(mappings->items[i].name, name) == 0)
            return true;
    return false;
}

static kelp_status *add_mappings(kelp_repository *repository, const char *path,
                                 const kelp_parameter *const *mappings, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const kelp_parameter *mapping = mappings[i];
        if (mapping == NULL || mapping->type != TRITONSERVER_PARAMETER_STRING)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "name mapping %u of repository '%s': expected a STRING parameter", i,
                              path);
        if (is_mapped_to(&repository->mappings, mapping->string))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "failed to register '%s', there is a conflicting mapping for '%s'",
                              path, mapping->string);
        KELP_TRY(kelp_settings_set(&repository->mappings, path, mapping->string, mapping->name));
    }
    return NULL;
}

static kelp_status *add(kelp_repository *repository, const char *path,
                        const kelp_parameter *const *mappings, uint32_t count) {
    if (kelp_string_list_has(&repository->paths, path))
        return KELP_ERROR(KELP_ALREADY_EXISTS, "model repository '%s' has already been registered",
                          path);
    KELP_TRY(kelp_string_list_add(&repository->paths, path));
    kelp_status *status = add_mappings(repository, path, mappings, count);
    if (status != NULL)
        remove_repository(repository, path);
    return status;
}

static kelp_status *check_mode(const kelp_repository *repository, const char *action) {
    if (repository->host->options->control_mode == TRITONSERVER_MODEL_CONTROL_EXPLICIT)
        return NULL;
    return KELP_ERROR(KELP_UNIMPLEMENTED,
                      "repository %s is not allowed if model control mode is not EXPLICIT", action);
}

kelp_status *kelp_repository_register(kelp_repository *repository, const char *path,
                                      const kelp_parameter *const *mappings, uint32_t count) {
    KELP_TRY(check_mode(repository, "registration"));
    if (kelp_fs_kind_of(path) != KELP_FS_DIRECTORY)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "failed to register '%s', repository not found: expected a directory",
                          path);
    pthread_mutex_lock(&repository->lock);
    kelp_status *status = add(repository, path, mappings, count);
    pthread_mutex_unlock(&repository->lock);
    if (status == NULL)
        kelp_repository_warn_of_layout(repository, path);
    return status;
}

kelp_status *kelp_repository_unregister(kelp_repository *repository, const char *path) {
    KELP_TRY(check_mode(repository, "unregistration"));
    pthread_mutex_lock(&repository->lock);
    bool removed = remove_repository(repository, path);
    pthread_mutex_unlock(&repository->lock);
    if (removed)
        return NULL;
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "failed to unregister '%s', repository not found",
                      path);
}
