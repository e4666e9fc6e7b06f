/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The models of model repositories. Each model has a directory. The functions read only names.
 * Thread-safe and stateless.
 */
#ifndef KELP_SERVER_REPOSITORY_SCAN_H_
#define KELP_SERVER_REPOSITORY_SCAN_H_

#include "base/arena.h"
#include "server/config/config.h"

/* A model in a repository. */
typedef struct kelp_scan_model {
    const char *name;       /* of the served model: the directory's, or that of its mapping */
    const char *path;       /* REPOSITORY/DIRECTORY */
    const char *repository; /* as in kelp_scan_places */
    const char *conflict;   /* NULL, or the reason why the model cannot be served: it is in two
                               repositories that are not namespaces */
} kelp_scan_model;

/* A directory whose model is served with a different name. */
typedef struct kelp_scan_mapping {
    const char *repository;
    const char *directory;
    const char *name;
} kelp_scan_mapping;

/* The repositories to scan. */
typedef struct kelp_scan_places {
    const char *const *repositories;
    size_t repository_count;
    const kelp_scan_mapping *mappings;
    size_t mapping_count;
    bool namespaces; /* models of the same name in different repositories are different models */
} kelp_scan_places;

/* The result of a scan. */
typedef struct kelp_scan {
    kelp_allocator allocator;
    kelp_arena arena;
    kelp_scan_model *models; /* sorted; names are unique, with namespaces in each repository */
    size_t model_count;
} kelp_scan;

/* Lists the directories and links to directories in the repositories, except for names that begin
 * with '.'. NOT_FOUND or PERMISSION_DENIED if a repository cannot be read. */
kelp_status *kelp_scan_repositories(kelp_allocator allocator, const kelp_scan_places *places,
                                    kelp_scan **out) KELP_MUST_USE;
/* Finds the models of one name; model_count is 0 if there are none. A directory that is mapped to
 * the name takes precedence over directories of that name. INVALID_ARGUMENT if the name is empty,
 * "." or "..", or contains a '/'. */
kelp_status *kelp_scan_one(kelp_allocator allocator, const kelp_scan_places *places,
                           const char *name, kelp_scan **out) KELP_MUST_USE;
void kelp_scan_destroy(kelp_scan *scan);

/* Appends a warning, without a newline, if a repository has no models, is the directory of one
 * model, or has model files outside of the directories of models. Otherwise appends nothing. */
kelp_status *kelp_scan_describe_layout(kelp_allocator allocator, const char *repository,
                                       kelp_buf *out) KELP_MUST_USE;

/* Returns the versions that a policy selects from those of kelp_model_files_versions, ascending;
 * the result is freed in the same way. NOT_FOUND, with the list of versions, if it selects none. If
 * only some of the specific versions of a policy exist, *out_warning (may be NULL) is a status with
 * both lists; otherwise it is NULL. */
kelp_status *kelp_scan_select(kelp_allocator allocator, const char *model_name,
                              const kelp_version_policy *policy, const int64_t *versions,
                              size_t count, int64_t **out_selected, size_t *out_selected_count,
                              kelp_status **out_warning) KELP_MUST_USE;

#endif
