/* SPDX-License-Identifier: Apache-2.0 */
#include "server/repository/upload.h"

#include "server/builtin/builtin.h"

#include <string.h>

static kelp_status *rejected(const char *model_name, const char *what, const char *subject) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "failed to load '%s': %s '%s' may not be uploaded: expected the option "
                      "--allow-uploaded-code",
                      model_name, what, subject);
}

/* Returns true for names that the engine of models without code has, also if a library of that name
 * is installed. */
static bool has_data_only(const char *backend) {
    return backend == NULL || !backend[0] || kelp_builtin_find(backend) != NULL;
}

kelp_status *kelp_upload_check(const kelp_settings *backend_settings, const char *model_name,
                               const kelp_model_config *config, const char *config_json,
                               const kelp_load_options *options) {
    static const char elf[] = {0x7f, 'E', 'L', 'F'};
    const char *setting = kelp_settings_get(backend_settings, "", KELP_UPLOAD_SETTING);
    if (config_json == NULL || setting == NULL || strcmp(setting, "false") != 0)
        return NULL;
    const char *providers = kelp_model_config_parameter(config, "providers");
    if (providers != NULL && strchr(providers, ':') != NULL) /* "remote:ADDRESS" */
        return rejected(model_name, "the providers", providers);
    if (options == NULL || options->file_count == 0)
        return NULL;
    for (size_t i = 0; i < options->file_count; i++) {
        const kelp_parameter *file = options->files[i];
        if (file->size_bytes >= sizeof elf && memcmp(file->bytes, elf, sizeof elf) == 0)
            return rejected(model_name, "the shared library", file->name);
    }
    return has_data_only(config->backend)
               ? NULL
               : rejected(model_name, "files for the backend", config->backend);
}
