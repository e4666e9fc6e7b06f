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
    const char *name;       /* that it is served as: the directory's, or what it is mapped to */
    const char *path;       /* REPOSITORY/DIRECTORY */
    const char *repository; /* as given */
    const char *conflict; /* NULL, or why the model cannot be served: it is in two repositories that
                             are not namespaces */
} kelp_scan_model;

/* A directory whose model is served as another name. */
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
    kelp_scan_model *models; /* sorted by name, each name once; with namespaces once in each
                                repository */
    size_t model_count;
} kelp_scan;

/* Lists the directories of the repositories, and links to directories; omits names that begin with
 * '.'. NOT_FOUND or PERMISSION_DENIED if a repository cannot be read. */
kelp_status *kelp_scan_repositories(kelp_allocator allocator, const kelp_scan_places *places,
                                    kelp_scan **out) KELP_MUST_USE;
/* Looks up one name without listing; model_count is 0 if no repository has it. A directory that is
 * mapped to the name takes precedence over those with the name. INVALID_ARGUMENT if the name is
 * empty, "." or "..", or contains a '/'. */
kelp_status *kelp_scan_one(kelp_allocator allocator, const kelp_scan_places *places,
                           const char *name, kelp_scan **out) KELP_MUST_USE;
void kelp_scan_destroy(kelp_scan *scan);

/* Returns those of a model's versions (kelp_model_files_versions) that a policy selects, ascending,
 * freed like these. NOT_FOUND if it selects none; the message lists the versions. If specific
 * versions are missing and others are not, *out_warning (may be NULL) lists them; otherwise it is
 * NULL. */
kelp_status *kelp_scan_select(kelp_allocator allocator, const char *model_name,
                              const kelp_version_policy *policy, const int64_t *versions,
                              size_t count, int64_t **out_selected, size_t *out_selected_count,
                              kelp_status **out_warning) KELP_MUST_USE;

#endif
