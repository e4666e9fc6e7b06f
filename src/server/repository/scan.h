/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The models of model repositories: one directory for each model. Looks only at names. Thread-safe;
 * keeps nothing between calls.
 */
#ifndef KELP_SERVER_REPOSITORY_SCAN_H_
#define KELP_SERVER_REPOSITORY_SCAN_H_

#include "base/arena.h"
#include "server/config/config.h"

typedef struct kelp_scan_model {
    const char *name;       /* that it is served under: the folder's, or what it is mapped to */
    const char *path;       /* REPOSITORY/FOLDER */
    const char *repository; /* as given */
    const char *conflict;   /* NULL; else why the model cannot be served: it lies in
                               two repositories, and these are no namespaces */
} kelp_scan_model;

/* A folder whose model is served under another name. */
typedef struct kelp_scan_mapping {
    const char *repository;
    const char *folder;
    const char *name;
} kelp_scan_mapping;

/* Where to look. */
typedef struct kelp_scan_places {
    const char *const *repositories;
    size_t repository_count;
    const kelp_scan_mapping *mappings;
    size_t mapping_count;
    bool namespaces; /* one name in two repositories is two models */
} kelp_scan_places;

typedef struct kelp_scan {
    kelp_allocator allocator;
    kelp_arena arena;
    kelp_scan_model *models; /* sorted by name, each name once; with namespaces once a repository */
    size_t model_count;
} kelp_scan;

/* Lists the folders of the repositories (links to folders too; names that begin
 * with '.' are left out). A repository that is missing or cannot be read fails
 * the scan, NOT_FOUND or PERMISSION_DENIED. */
kelp_status *kelp_scan_repositories(kelp_allocator allocator, const kelp_scan_places *places,
                                    kelp_scan **out) KELP_MUST_USE;
/* The same for one name, without listing: model_count is 0 when no repository
 * has it. A folder mapped to the name goes before those that are called so. A
 * name that is empty, "." or "..", or holds a '/' is INVALID_ARGUMENT. */
kelp_status *kelp_scan_one(kelp_allocator allocator, const kelp_scan_places *places,
                           const char *name, kelp_scan **out) KELP_MUST_USE;
void kelp_scan_destroy(kelp_scan *scan);

/* Returns those of a model's versions (kelp_model_files_versions) that a policy selects,
 * ascending, freed like these. NOT_FOUND
 * when it selects none, with what is there. Specific versions that are not
 * there are left out when others are; *out_warning (may be NULL) then says
 * which, else NULL. */
kelp_status *kelp_scan_select(kelp_allocator allocator, const char *model_name,
                              const kelp_version_policy *policy, const int64_t *versions,
                              size_t count, int64_t **out_selected, size_t *out_selected_count,
                              kelp_status **out_warning) KELP_MUST_USE;

#endif
