/* SPDX-License-Identifier: Apache-2.0 */
/* Models and versions in model repositories. */
#include "server/repository/scan.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/fs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- models ---- */
static kelp_status *scan_new(kelp_allocator allocator, kelp_scan **out) {
    KELP_TRY(KELP_NEW(allocator, kelp_scan, out));
    (*out)->allocator = allocator;
    kelp_arena_init(&(*out)->arena, allocator, 0);
    return NULL;
}

void kelp_scan_destroy(kelp_scan *scan) {
    if (scan == NULL)
        return;
    kelp_allocator allocator = scan->allocator;
    kelp_arena_deinit(&scan->arena);
    kelp_free(allocator, scan, sizeof *scan);
}

static bool maps(const kelp_scan_mapping *mapping, const char *repository, const char *directory) {
    return strcmp(mapping->repository, repository) == 0 &&
           strcmp(mapping->directory, directory) == 0;
}

/* Returns true if a directory is served with other names than its own. */
static bool is_mapped(const kelp_scan_places *places, const char *repository,
                      const char *directory) {
    for (size_t i = 0; i < places->mapping_count; i++)
        if (maps(&places->mappings[i], repository, directory))
            return true;
    return false;
}

/* Adds a model, if `directory` exists and is a directory. */
static kelp_status *add_model(kelp_scan *scan, const kelp_scan_places *places,
                              const char *repository, const char *directory, const char *name,
                              size_t *capacity) {
    char *path = kelp_arena_printf(&scan->arena, "%s/%s", repository, directory);
    if (path == NULL)
        return kelp_status_oom();
    if (kelp_fs_kind_of(path) != KELP_FS_DIRECTORY)
        return NULL;
    for (size_t i = 0; i < scan->model_count; i++) {
        kelp_scan_model *other = &scan->models[i];
        if (strcmp(other->name, name) != 0 ||
            (places->namespaces && strcmp(other->repository, repository) != 0))
            continue;
        if (other->conflict == NULL)
            other->conflict =
                kelp_arena_printf(&scan->arena, "model '%s' is in two repositories: '%s' and '%s'",
                                  name, other->repository, repository);
        return other->conflict != NULL ? NULL : kelp_status_oom();
    }
    if (scan->model_count == *capacity) {
        size_t grown = *capacity ? *capacity * 2 : 16;
        kelp_scan_model *models = KELP_ARENA_ARRAY(&scan->arena, grown, kelp_scan_model);
        if (models == NULL)
            return kelp_status_oom();
        if (scan->model_count > 0)
            memcpy(models, scan->models, scan->model_count * sizeof *models);
        scan->models = models;
        *capacity = grown;
    }
    const char *own_name = kelp_arena_strndup(&scan->arena, name, strlen(name));
    const char *own_repository = kelp_arena_strndup(&scan->arena, repository, strlen(repository));
    if (own_name == NULL || own_repository == NULL)
        return kelp_status_oom();
    scan->models[scan->model_count++] = (kelp_scan_model){own_name, path, own_repository, NULL};
    return NULL;
}

static int compare_models(const void *a, const void *b) {
    const kelp_scan_model *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order ? order : strcmp(left->repository, right->repository);
}

static kelp_status *scan_one_repository(kelp_scan *scan, const kelp_scan_places *places,
                                        const char *repository, size_t *capacity) {
    kelp_fs_names names = {0};
    kelp_status *status = kelp_fs_list(scan->allocator, repository, &names);
    if (status != NULL)
        return KELP_ANNOTATE(status, "cannot read model repository '%s'", repository);
    for (size_t i = 0; status == NULL && i < names.count; i++) {
        const char *directory = names.items[i];
        if (directory[0] == '.')
            continue;
        if (!is_mapped(places, repository, directory))
            status = add_model(scan, places, repository, directory, directory, capacity);
        for (size_t k = 0; k < places->mapping_count && status == NULL; k++)
            if (maps(&places->mappings[k], repository, directory))
                status = add_model(scan, places, repository, directory, places->mappings[k].name,
                                   capacity);
    }
    kelp_fs_names_deinit(&names);
    return status;
}

kelp_status *kelp_scan_repositories(kelp_allocator allocator, const kelp_scan_places *places,
                                    kelp_scan **out) {
    kelp_scan *scan = NULL;
    size_t capacity = 0;
    KELP_TRY(scan_new(allocator, &scan));
    kelp_status *status = NULL;
    for (size_t i = 0; status == NULL && i < places->repository_count; i++)
        status = scan_one_repository(scan, places, places->repositories[i], &capacity);
    if (status != NULL) {
        kelp_scan_destroy(scan);
        return status;
    }
    if (scan->model_count > 1)
        qsort(scan->models, scan->model_count, sizeof *scan->models, compare_models);
    *out = scan;
    return NULL;
}

kelp_status *kelp_scan_one(kelp_allocator allocator, const kelp_scan_places *places,
                           const char *name, kelp_scan **out) {
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        strchr(name, '/') != NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "'%s' is not a valid model name", name);
    kelp_scan *scan = NULL;
    kelp_status *status = NULL;
    size_t capacity = 0;
    bool mapped = false;
    KELP_TRY(scan_new(allocator, &scan));
    for (size_t i = 0; i < places->mapping_count && status == NULL; i++) {
        const kelp_scan_mapping *mapping = &places->mappings[i];
        if (strcmp(mapping->name, name) != 0)
            continue;
        mapped = true;
        status = add_model(scan, places, mapping->repository, mapping->directory, name, &capacity);
    }
    for (size_t i = 0; i < places->repository_count && status == NULL && !mapped; i++) {
        const char *repository = places->repositories[i];
        if (!is_mapped(places, repository, name))
            status = add_model(scan, places, repository, name, name, &capacity);
    }
    if (status != NULL) {
        kelp_scan_destroy(scan);
        return status;
    }
    *out = scan;
    return NULL;
}

/* ---- versions ---- */
static bool selects(const kelp_version_policy *policy, const int64_t *versions, size_t count,
                    size_t index) {
    if (policy->kind == KELP_VERSIONS_ALL)
        return true;
    if (policy->kind == KELP_VERSIONS_LATEST)
        return count - index <= policy->latest;
    for (size_t i = 0; i < policy->version_count; i++)
        if (policy->versions[i] == versions[index])
            return true;
    return false;
}

static void list_numbers(const int64_t *numbers, size_t count, char *out, size_t size) {
    size_t length = 0;
    snprintf(out, size, "none");
    for (size_t i = 0; i < count && length + 24 < size; i++)
        length += (size_t)snprintf(out + length, size - length, "%s%lld", i ? ", " : "",
                                   (long long)numbers[i]);
}

kelp_status *kelp_scan_select(kelp_allocator allocator, const char *model_name,
                              const kelp_version_policy *policy, const int64_t *versions,
                              size_t count, int64_t **out_selected, size_t *out_selected_count,
                              kelp_status **out_warning) {
    char found[256], requested[256];
    size_t selected = 0;
    int64_t *items = NULL;
    if (out_warning != NULL)
        *out_warning = NULL;
    for (size_t i = 0; i < count; i++)
        selected += selects(policy, versions, count, i);
    list_numbers(versions, count, found, sizeof found);
    list_numbers(policy->versions, policy->version_count, requested, sizeof requested);
    if (selected == 0)
        return policy->kind == KELP_VERSIONS_SPECIFIC
                   ? KELP_ERROR(KELP_NOT_FOUND,
                                "model '%s' has none of the versions of its policy: expected %s, "
                                "found %s",
                                model_name, requested, found)
                   : KELP_ERROR(
                         KELP_NOT_FOUND,
                         "model '%s' has no version: expected a directory whose name is a number, "
                         "such as '1'",
                         model_name);
    KELP_TRY(kelp_alloc_zero(allocator, selected, sizeof *items, (void **)&items));
    size_t at = 0;
    for (size_t i = 0; i < count; i++)
        if (selects(policy, versions, count, i))
            items[at++] = versions[i];
    KELP_ASSERT(at == selected);
    if (out_warning != NULL && policy->kind == KELP_VERSIONS_SPECIFIC &&
        selected < policy->version_count)
        *out_warning =
            KELP_ERROR(KELP_NOT_FOUND,
                       "model '%s' lacks some of the versions of its policy: expected %s, found %s",
                       model_name, requested, found);
    *out_selected = items;
    *out_selected_count = selected;
    return NULL;
}
