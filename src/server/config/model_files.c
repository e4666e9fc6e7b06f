/* SPDX-License-Identifier: Apache-2.0 */
/* Versions and signatures of a model's directory. */
#include "server/config/model_files.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/fs.h"
#include "base/checked.h"
#include "server/core/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TREE_DEPTH_MAX 64

/* ---- versions ---- */
static bool is_version(const char *name, int64_t *out) {
    if (*name < '1' || *name > '9')
        return false;
    for (const char *c = name; *c != '\0'; c++)
        if (*c < '0' || *c > '9')
            return false;
    return kelp_parse_i64(kelp_str_from(name), out);
}

/* Warns of a directory that looks like a version but is not one. */
static void warn_of_ignored(const char *name) {
    static const char *const others[] = {"warmup", "initial_state", "configs"};
    for (size_t i = 0; i < KELP_COUNT(others); i++)
        if (strcmp(name, others[i]) == 0)
            return;
    KELP_SERVER_LOG(KELP_LOG_WARNING, "ignore version directory '%s' which %s", name,
                    name[0] == '0' && name[1] != '\0'
                        ? "contains leading zeros in its directory name"
                        : "fails to convert to integral number");
}

static int compare_versions(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

kelp_status *kelp_model_files_versions(kelp_allocator allocator, const char *model_directory,
                                       bool warns, int64_t **out_versions, size_t *out_count) {
    kelp_fs_names names = {0};
    int64_t version, *versions = NULL;
    size_t count = 0;
    *out_versions = NULL;
    *out_count = 0;
    KELP_TRY(kelp_fs_list(allocator, model_directory, &names));
    for (size_t i = 0; i < names.count; i++)
        count += is_version(names.items[i], &version);
    kelp_status *status = kelp_alloc_zero(allocator, count, sizeof *versions, (void **)&versions);
    size_t found = 0;
    for (size_t i = 0; status == NULL && i < names.count; i++) {
        char *path = NULL;
        status = kelp_fs_join(allocator, model_directory, names.items[i], &path);
        bool is_directory = status == NULL && kelp_fs_kind_of(path) == KELP_FS_DIRECTORY;
        kelp_free_string(allocator, path);
        if (is_directory && is_version(names.items[i], &version))
            versions[found++] = version;
        else if (is_directory && warns)
            warn_of_ignored(names.items[i]);
    }
    kelp_fs_names_deinit(&names);
    if (status == NULL && found > 0 && found < count) {
        int64_t *exact = NULL; /* the caller frees it by its count */
        status = kelp_alloc_zero(allocator, found, sizeof *exact, (void **)&exact);
        if (status == NULL)
            memcpy(exact, versions, found * sizeof *exact);
        kelp_free(allocator, versions, count * sizeof *versions);
        versions = exact;
        count = found;
    }
    if (status != NULL || found == 0) {
        kelp_free(allocator, versions, count * sizeof *versions);
        return status;
    }
    KELP_ASSERT(found == count); /* the caller frees by this count */
    qsort(versions, found, sizeof *versions, compare_versions);
    *out_versions = versions;
    *out_count = found;
    return NULL;
}

/* ---- signatures ---- */
typedef void (*visit_fn)(void *userp, const char *path, const struct stat *info);

static kelp_status *visit_tree(kelp_allocator allocator, const char *path, uint32_t depth,
                               visit_fn fn, void *userp) {
    struct stat info;
    kelp_fs_names names = {0};
    if (stat(path, &info) != 0) {
        /* Inside the tree, a file may be deleted concurrently, and a link may be dangling. */
        if (depth > 0)
            return NULL;
        return KELP_ERROR(KELP_NOT_FOUND, "cannot read '%s': error %d", path, errno);
    }
    fn(userp, path, &info);
    if (!S_ISDIR(info.st_mode) || depth >= TREE_DEPTH_MAX)
        return NULL;
    KELP_TRY(kelp_fs_list(allocator, path, &names));
    kelp_status *status = NULL;
    for (size_t i = 0; status == NULL && i < names.count; i++) {
        char *inner = NULL;
        if (strcmp(names.items[i], "__pycache__") == 0) /* written by Python when it imports */
            continue;
        status = kelp_fs_join(allocator, path, names.items[i], &inner);
        if (status == NULL)
            status = visit_tree(allocator, inner, depth + 1, fn, userp);
        kelp_free_string(allocator, inner);
    }
    kelp_fs_names_deinit(&names);
    return status;
}

static int64_t time_of(const struct stat *info) {
    return (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

static void mix_signature(void *userp, const char *path, const struct stat *info) {
    uint64_t *signature = userp;
    /* The time and size of a directory do not count, only its contents. */
    bool is_directory = S_ISDIR(info->st_mode);
    uint64_t parts[4] = {*signature, kelp_hash_str(kelp_str_from(path)),
                         is_directory ? 0 : (uint64_t)time_of(info),
                         is_directory ? 0 : (uint64_t)info->st_size};
    *signature = kelp_hash_bytes(parts, sizeof parts);
}

kelp_status *kelp_model_files_signature(kelp_allocator allocator, const char *path,
                                        int64_t *out_signature) {
    uint64_t signature = 0;
    KELP_TRY(visit_tree(allocator, path, 0, mix_signature, &signature));
    *out_signature = (int64_t)signature;
    return NULL;
}

/* Returns true if a version depends on the file or directory of that name in the model's directory.
 */
static bool belongs_to_version(const char *name, const char *version) {
    if (strcmp(name, "config.pbtxt") == 0 || strcmp(name, "configs") == 0)
        return false;
    return name[strspn(name, "0123456789")] != '\0' || strcmp(name, version) == 0;
}

kelp_status *kelp_model_files_of_version(kelp_allocator allocator, const char *model_directory,
                                         int64_t version, int64_t *out_signature) {
    kelp_fs_names names = {0};
    uint64_t signature = 0;
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)version);
    KELP_TRY(kelp_fs_list(allocator, model_directory, &names));
    kelp_status *status = NULL;
    for (size_t i = 0; status == NULL && i < names.count; i++) {
        char *inner = NULL;
        if (!belongs_to_version(names.items[i], number))
            continue;
        status = kelp_fs_join(allocator, model_directory, names.items[i], &inner);
        if (status == NULL)
            status = visit_tree(allocator, inner, 1, mix_signature, &signature);
        kelp_free_string(allocator, inner);
    }
    kelp_fs_names_deinit(&names);
    *out_signature = (int64_t)signature;
    return status;
}
