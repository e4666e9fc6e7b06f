/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a load with parameters puts in place of a model's own files: "config" stays in force over
 * later plain loads until the files change or the model is unloaded; "file:PATH" replaces the whole
 * folder, for this load only.
 */
#ifndef KELP_SERVER_CONFIG_OVERRIDES_H_
#define KELP_SERVER_CONFIG_OVERRIDES_H_

#include "server/server.h"

/* Applies the parameters of a load (NULL: a plain one) to an entry that is busy. *out_directory is
 * borrowed from the entry, or is `path`. */
kelp_status *kelp_override_apply(kelp_server *server, kelp_entry *entry, const char *path,
                                 const kelp_load_options *options,
                                 const char **out_directory) KELP_MUST_USE;
/* Removes a temporary folder with all in it. What stays harms nobody, so a failure is not reported.
 */
void kelp_remove_tree(const char *path);
/* Forgets overrides and removes their files. */
void kelp_override_clear(kelp_entry *entry);

#endif
