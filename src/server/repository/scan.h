/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies in model repositories: one folder a model, in it one folder a
 * version. Looks at names and times only; contents are others' business. Any
 * thread; nothing is kept between calls.
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

/* The version folders of a model, ascending: names of digits that do not begin
 * with 0 and fit an int64; anything else is not a version. Free with
 * kelp_free(allocator, versions, count * sizeof(int64_t)). */
kelp_status *kelp_scan_versions(kelp_allocator allocator, const char *model_directory,
                                int64_t **out_versions, size_t *out_count) KELP_MUST_USE;

/* Which of these a policy selects, ascending; freed like the above. NOT_FOUND
 * when it selects none, with what is there. Specific versions that are not
 * there are left out when others are; *out_warning (may be NULL) then says
 * which, else NULL. */
kelp_status *kelp_scan_select(kelp_allocator allocator, const char *model_name,
                              const kelp_version_policy *policy, const int64_t *versions,
                              size_t count, int64_t **out_selected, size_t *out_selected_count,
                              kelp_status **out_warning) KELP_MUST_USE;

/* The newest modification time in a tree of files and folders, itself included.
 * Links are followed, 64 levels at most. */
kelp_status *kelp_scan_mtime_ns(const char *path, int64_t *out_mtime_ns) KELP_MUST_USE;
/* A number that changes when a file or folder in the tree appears, goes, or a file changes its size
 * or time (also to an older one): what polling compares. Without what Python keeps beside its
 * sources ("__pycache__"). */
kelp_status *kelp_scan_signature(const char *path, int64_t *out_signature) KELP_MUST_USE;
/* The same of what one version is made of: its folder and what the model's versions share, without
 * the configuration, whose text says whether it has changed. */
kelp_status *kelp_scan_files(const char *model_directory, int64_t version,
                             int64_t *out_signature) KELP_MUST_USE;

#endif
