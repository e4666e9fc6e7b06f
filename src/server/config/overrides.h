/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of a load that replace a model's own files. "config" also applies to later loads
 * without parameters, until the files change or the model is unloaded. "file:PATH" replaces the
 * whole directory for this load only. An override is used by one thread at a time.
 */
#ifndef KELP_SERVER_CONFIG_OVERRIDES_H_
#define KELP_SERVER_CONFIG_OVERRIDES_H_

#include "server/core/values.h"

#include <kelp/allocator.h>

/* The parameters of a load. */
typedef struct kelp_load_options {
    const char *config_json;            /* NULL: the model's own configuration */
    const kelp_parameter *const *files; /* BYTES "file:PATH" */
    size_t file_count;
} kelp_load_options;

/* The replacements that apply to a model. Zero: none. */
typedef struct kelp_override {
    char *config_json; /* NULL if none */
    char *directory;   /* a temporary directory with the files; NULL if none */
} kelp_override;

/* Applies the parameters of a load (NULL: none) to a model whose own files are at `path` and had
 * the signature `loaded_signature` when it was last loaded. *out_directory is borrowed from the
 * override, or is `path`. */
kelp_status *kelp_override_apply(kelp_allocator allocator, kelp_override *override,
                                 const char *model_name, const char *path, int64_t loaded_signature,
                                 const kelp_load_options *options,
                                 const char **out_directory) KELP_MUST_USE;
/* Resets the override and removes its files. */
void kelp_override_clear(kelp_allocator allocator, kelp_override *override);

#endif
