/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of one model. Its directory has one subdirectory for each version. The functions read
 * names, sizes and times, but no contents. Thread-safe and stateless.
 */
#ifndef KELP_SERVER_CONFIG_MODEL_FILES_H_
#define KELP_SERVER_CONFIG_MODEL_FILES_H_

#include <kelp/allocator.h>

/* Returns the versions of a model, ascending: subdirectories whose names are decimal numbers
 * without leading zeros that fit an int64. `warns`: logs the other subdirectories that are not for
 * data of the model. Free with kelp_free(allocator, versions, count * sizeof(int64_t)). */
kelp_status *kelp_model_files_versions(kelp_allocator allocator, const char *model_directory,
                                       bool warns, int64_t **out_versions,
                                       size_t *out_count) KELP_MUST_USE;

/* Returns a number that changes when a file or directory in the tree appears or disappears, or when
 * a file's size or time changes (also to an earlier one). Polling compares it. Ignores the
 * directories "__pycache__" that Python creates. Follows links, at most 64 levels. */
kelp_status *kelp_model_files_signature(kelp_allocator allocator, const char *path,
                                        int64_t *out_signature) KELP_MUST_USE;
/* Returns the signature of one version: of its directory and of the files that all versions share.
 * The configuration is excluded, because its text is compared instead. */
kelp_status *kelp_model_files_of_version(kelp_allocator allocator, const char *model_directory,
                                         int64_t version, int64_t *out_signature) KELP_MUST_USE;

#endif
