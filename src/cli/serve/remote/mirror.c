/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/remote/mirror.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/files/temporary.h"
#include "base/fs.h"
#include "cli/pull/sha256.h"
#include "cli/serve/remote/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY_MODE 0755
#define FILE_MODE 0644
#define HASH_DIGITS 16
#define NAME_BYTES 64

struct kelp_mirror {
    char *address;
    char *directory; /* CACHE/NAME-HASH */
    char *current;   /* DIRECTORY/current */
    kelp_buf name;   /* of a model whose name is not in the store */
    bool plain_http;
    int lock; /* -1: none */
};

/* An update that is in progress. */
typedef struct mirror_update {
    kelp_mirror *mirror;
    kelp_buf path;    /* temporary */
    kelp_buf blob;    /* temporary */
    kelp_sha256 tree; /* of the paths and versions */
} mirror_update;

/* ---- paths ---- */

/* Replaces the text by DIRECTORY/RELATIVE, and returns it. */
static kelp_status *set_path(const kelp_mirror *mirror, kelp_buf *out, const char *relative) {
    kelp_buf_clear(out);
    kelp_buf_printf(out, "%s/%s", mirror->directory, relative);
    (void)kelp_buf_cstr(out);
    return kelp_buf_status(out);
}

static kelp_status *make_directory(const char *path) {
    return mkdir(path, DIRECTORY_MODE) == 0 || errno == EEXIST
               ? NULL
               : kelp_fs_error("cannot create the directory", path, errno);
}

/* ---- creation ---- */

/* Returns the address in the form of kelp_pull_init: a prefix of S3 ends with '/'. */
static kelp_status *normalize(const char *address, kelp_buf *out) {
    kelp_buf_append_cstr(out, address);
    if (!strncmp(address, "s3://", 5) && out->data != NULL && out->data[out->length - 1] != '/' &&
        !kelp_tree_is_model_file(address) && strstr(address, "#sha256=") == NULL)
        kelp_buf_append_char(out, '/');
    (void)kelp_buf_cstr(out);
    return kelp_buf_status(out);
}

/* Removes the extension from the name. A file model.onnx has the name of its directory in a
 * repository. */
static kelp_status *set_name_of_file(kelp_mirror *mirror, const kelp_pull *pull) {
    mirror->name.length = (size_t)(strrchr(mirror->name.data, '.') - mirror->name.data);
    const kelp_str name = {mirror->name.data, mirror->name.length};
    const char *slash = memrchr(pull->address, '/', strcspn(pull->address, "?#"));
    if (slash == NULL || !kelp_str_is(name, "model"))
        return NULL;
    const kelp_str directory = {pull->address, (size_t)(slash - pull->address)};
    kelp_str found = kelp_tree_model_name(directory, name);
    if (found.data == name.data)
        return NULL;
    kelp_buf_clear(&mirror->name);
    return kelp_pull_decode(found.data, found.length, &mirror->name);
}

/* Sets the name of the model, if the files have none: that of the file or of the last component of
 * the address. */
static kelp_status *set_name(kelp_mirror *mirror, const kelp_pull *pull) {
    KELP_TRY(kelp_pull_name(pull, &mirror->name));
    const char *text = kelp_buf_cstr(&mirror->name);
    KELP_TRY(kelp_buf_status(&mirror->name));
    bool is_file = kelp_tree_is_model_file(text);
    bool is_oci = !strcmp(kelp_pull_scheme(pull), "oci");
    bool is_prefix =
        !strcmp(kelp_pull_scheme(pull), "s3") && pull->address[strlen(pull->address) - 1] == '/';
    if (!is_file && !is_oci && !is_prefix)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "'%s' cannot be served: expected a file NAME.onnx or NAME.plan",
                          mirror->address);
    if (is_file && !is_oci && !is_prefix)
        KELP_TRY(set_name_of_file(mirror, pull));
    text = kelp_buf_cstr(&mirror->name);
    KELP_TRY(kelp_buf_status(&mirror->name));
    if (*text == '\0' || *text == '.' || strchr(text, '/') != NULL) {
        kelp_buf_clear(&mirror->name);
        kelp_buf_append_cstr(&mirror->name, "model");
        (void)kelp_buf_cstr(&mirror->name);
    }
    return kelp_buf_status(&mirror->name);
}

static kelp_status *mirror_parse(const char *address, kelp_mirror **out) {
    kelp_mirror *mirror;
    kelp_buf text;
    kelp_pull pull = {.address = NULL};
    KELP_TRY(KELP_NEW(kelp_allocator_system(), kelp_mirror, &mirror));
    mirror->lock = -1;
    kelp_buf_init(&mirror->name, kelp_allocator_system());
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_status *status = normalize(address, &text);
    if (status == NULL)
        status = kelp_strdup(kelp_allocator_system(), kelp_buf_cstr(&text), &mirror->address);
    if (status == NULL)
        status = kelp_pull_init(&pull, mirror->address);
    if (status == NULL)
        status = set_name(mirror, &pull);
    kelp_pull_deinit(&pull);
    kelp_buf_deinit(&text);
    if (status != NULL)
        kelp_mirror_destroy(mirror);
    else
        *out = mirror;
    return status;
}

kelp_status *kelp_mirror_check(const char *address) {
    kelp_mirror *mirror = NULL;
    KELP_TRY(mirror_parse(address, &mirror));
    kelp_mirror_destroy(mirror);
    return NULL;
}

/* Sets the directory: the name, of which only safe characters are used, and a hash of the
 * address. */
static kelp_status *set_directory(kelp_mirror *mirror, const char *cache) {
    char digest[KELP_SHA256_TEXT_BYTES], name[NAME_BYTES];
    kelp_buf text;
    kelp_sha256 hash;
    kelp_sha256_init(&hash);
    kelp_sha256_update(&hash, mirror->address, strlen(mirror->address));
    kelp_sha256_text(&hash, digest);
    snprintf(name, sizeof name, "%s", kelp_buf_cstr(&mirror->name));
    for (char *c = name; *c != '\0'; c++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *c) == NULL)
            *c = '_';
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_buf_printf(&text, "%s/%s-%.*s", cache, name, HASH_DIGITS, digest);
    kelp_status *status = kelp_buf_status(&text);
    if (status == NULL)
        status = kelp_strdup(kelp_allocator_system(), kelp_buf_cstr(&text), &mirror->directory);
    if (status == NULL)
        status =
            kelp_fs_join(kelp_allocator_system(), mirror->directory, "current", &mirror->current);
    kelp_buf_deinit(&text);
    return status;
}

/* Creates the directories, and locks them for this process. */
static kelp_status *prepare(kelp_mirror *mirror) {
    static const char *const directories[] = {"blobs", "trees"};
    kelp_buf path;
    kelp_buf_init(&path, kelp_allocator_system());
    kelp_status *status = make_directory(mirror->directory);
    for (size_t i = 0; i < KELP_COUNT(directories) && status == NULL; i++) {
        status = set_path(mirror, &path, directories[i]);
        if (status == NULL)
            status = make_directory(path.data);
    }
    if (status == NULL)
        status = set_path(mirror, &path, "lock");
    if (status == NULL) {
        mirror->lock = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
        if (mirror->lock < 0)
            status = kelp_fs_error("cannot create", path.data, errno);
        else if (flock(mirror->lock, LOCK_EX | LOCK_NB) != 0)
            status = KELP_ERROR(KELP_ABORTED,
                                "another process uses '%s': expected one server for each address "
                                "and --model-cache",
                                mirror->directory);
    }
    kelp_buf_deinit(&path);
    return status;
}

kelp_status *kelp_mirror_create(const char *cache, const char *address, bool plain_http,
                                kelp_mirror **out) {
    kelp_mirror *mirror;
    KELP_TRY(mirror_parse(address, &mirror));
    mirror->plain_http = plain_http;
    kelp_status *status = make_directory(cache);
    if (status == NULL)
        status = set_directory(mirror, cache);
    if (status == NULL)
        status = prepare(mirror);
    if (status != NULL)
        kelp_mirror_destroy(mirror);
    else
        *out = mirror;
    return status;
}

void kelp_mirror_destroy(kelp_mirror *mirror) {
    if (mirror == NULL)
        return;
    if (mirror->lock >= 0)
        close(mirror->lock);
    kelp_free_string(kelp_allocator_system(), mirror->address);
    kelp_free_string(kelp_allocator_system(), mirror->directory);
    kelp_free_string(kelp_allocator_system(), mirror->current);
    kelp_buf_deinit(&mirror->name);
    kelp_free(kelp_allocator_system(), mirror, sizeof *mirror);
}

const char *kelp_mirror_address(const kelp_mirror *mirror) {
    return mirror->address;
}

const char *kelp_mirror_path(const kelp_mirror *mirror) {
    return mirror->current;
}

bool kelp_mirror_exists(const kelp_mirror *mirror) {
    return kelp_fs_kind_of(mirror->current) == KELP_FS_DIRECTORY;
}

/* ---- update ---- */

/* The ETag of a single file and the digest of its blob; empty: unknown. */
typedef struct single_state {
    char etag[KELP_FETCH_ETAG_BYTES];
    char digest[KELP_SHA256_TEXT_BYTES];
} single_state;

/* Reads the state of a single file. It is unknown if the file or its blob does not exist. */
static kelp_status *read_state(mirror_update *u, single_state *out) {
    kelp_buf text;
    *out = (single_state){.etag = ""};
    KELP_TRY(set_path(u->mirror, &u->path, "blobs/state"));
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_status *unreadable = kelp_fs_read(u->path.data, sizeof *out, &text);
    const char *content = unreadable == NULL ? kelp_buf_cstr(&text) : NULL;
    kelp_status_free(unreadable); /* the file is downloaded again */
    size_t digits = content != NULL ? strspn(content, "0123456789abcdef") : 0;
    if (digits == sizeof out->digest - 1 && content[digits] == '\n') {
        snprintf(out->digest, sizeof out->digest, "%s", content);
        snprintf(out->etag, sizeof out->etag, "%s", content + digits + 1);
    }
    kelp_buf_deinit(&text);
    kelp_buf_clear(&u->blob);
    kelp_buf_printf(&u->blob, "%s/blobs/%s", u->mirror->directory, out->digest);
    if (out->digest[0] == '\0' || kelp_fs_kind_of(kelp_buf_cstr(&u->blob)) != KELP_FS_FILE)
        *out = (single_state){.etag = ""};
    return kelp_buf_status(&u->blob);
}

static kelp_status *write_state(mirror_update *u, const kelp_fetch_file_info *info) {
    kelp_buf text;
    KELP_TRY(set_path(u->mirror, &u->path, "blobs/state"));
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_buf_printf(&text, "%s\n%s", info->digest, info->etag);
    kelp_status *status = kelp_buf_status(&text);
    if (status == NULL)
        status = kelp_fs_write(u->path.data, text.data, text.length);
    kelp_buf_deinit(&text);
    return status;
}

/* Downloads a single file if it has changed. `u->blob` receives the path of its blob. */
static kelp_status *fetch_single(mirror_update *u, kelp_fetch *fetch,
                                 const kelp_fetch_request *request, char out_version[65]) {
    kelp_fetch_request copy = *request;
    kelp_fetch_file_info info;
    single_state state;
    KELP_TRY(read_state(u, &state));
    bool has_digest = request->digest != NULL && !strcasecmp(request->digest, state.digest);
    if (state.etag[0] != '\0' && request->digest == NULL)
        copy.known_etag = state.etag;
    snprintf(out_version, KELP_SHA256_TEXT_BYTES, "%s", state.digest);
    if (has_digest)
        return NULL;
    KELP_TRY(set_path(u->mirror, &u->path, "blobs/single"));
    KELP_TRY(kelp_fetch_file(fetch, &copy, u->path.data, &info));
    if (info.unchanged)
        return NULL;
    kelp_buf_clear(&u->blob);
    kelp_buf_printf(&u->blob, "%s/blobs/%s", u->mirror->directory, info.digest);
    (void)kelp_buf_cstr(&u->blob);
    KELP_TRY(kelp_buf_status(&u->blob));
    /* The same content keeps the time of the file, so that its model is not loaded again. */
    if (strcmp(info.digest, state.digest) == 0)
        (void)unlink(u->path.data);
    else if (rename(u->path.data, u->blob.data) != 0)
        return kelp_fs_error("cannot write", u->blob.data, errno);
    snprintf(out_version, KELP_SHA256_TEXT_BYTES, "%s", info.digest);
    return write_state(u, &info);
}

/* Downloads a file of several if its version has no blob. `u->blob` receives the path. */
static kelp_status *fetch_one(mirror_update *u, kelp_fetch *fetch, const kelp_pull_item *item) {
    char id[KELP_SHA256_TEXT_BYTES];
    kelp_sha256 hash;
    kelp_fetch_file_info info;
    kelp_sha256_init(&hash);
    kelp_sha256_update(&hash, item->path, strlen(item->path) + 1);
    kelp_sha256_update(&hash, item->version, strlen(item->version));
    kelp_sha256_text(&hash, id);
    kelp_buf_clear(&u->blob);
    kelp_buf_printf(&u->blob, "%s/blobs/%s", u->mirror->directory, id);
    const char *path = kelp_buf_cstr(&u->blob);
    KELP_TRY(kelp_buf_status(&u->blob));
    if (kelp_fs_kind_of(path) == KELP_FS_FILE)
        return NULL;
    return kelp_fetch_file(fetch, item->request, path, &info);
}

/* Adds a file to the new tree. */
static kelp_status *take(void *userp, kelp_fetch *fetch, const kelp_pull_item *item) {
    mirror_update *u = userp;
    char digest[KELP_SHA256_TEXT_BYTES];
    const char *version = item->version != NULL ? item->version : digest;
    if (item->version != NULL)
        KELP_TRY(fetch_one(u, fetch, item));
    else
        KELP_TRY(fetch_single(u, fetch, item->request, digest));
    kelp_sha256_update(&u->tree, item->path, strlen(item->path) + 1);
    kelp_sha256_update(&u->tree, version, strlen(version) + 1);
    KELP_TRY(set_path(u->mirror, &u->path, "trees/new"));
    return kelp_tree_link(u->path.data, item->path, u->blob.data);
}

/* Lets `current` lead to a tree. */
static kelp_status *publish(mirror_update *u, const char *id) {
    char target[KELP_SHA256_TEXT_BYTES + 32];
    snprintf(target, sizeof target, "trees/%s/%s", id, KELP_TREE_REPOSITORY);
    KELP_TRY(set_path(u->mirror, &u->path, "current.new"));
    (void)unlink(u->path.data);
    if (symlink(target, u->path.data) != 0 || rename(u->path.data, u->mirror->current) != 0)
        return kelp_fs_error("cannot write", u->mirror->current, errno);
    return NULL;
}

/* Completes the new tree, whose files all exist. */
static kelp_status *finish(mirror_update *u) {
    char id[KELP_SHA256_TEXT_BYTES], relative[KELP_SHA256_TEXT_BYTES + 8];
    kelp_sha256_text(&u->tree, id);
    snprintf(relative, sizeof relative, "trees/%s", id);
    KELP_TRY(set_path(u->mirror, &u->blob, "trees/new"));
    KELP_TRY(set_path(u->mirror, &u->path, relative));
    if (kelp_fs_kind_of(u->path.data) == KELP_FS_DIRECTORY) {
        kelp_directory_remove(u->blob.data);
    } else {
        KELP_TRY(kelp_tree_arrange(u->blob.data, kelp_buf_cstr(&u->mirror->name)));
        if (rename(u->blob.data, u->path.data) != 0)
            return kelp_fs_error("cannot write", u->path.data, errno);
    }
    KELP_TRY(publish(u, id));
    KELP_TRY(set_path(u->mirror, &u->path, "trees"));
    kelp_tree_keep(u->path.data, id);
    KELP_TRY(set_path(u->mirror, &u->path, "blobs"));
    kelp_tree_remove_unlinked(u->path.data);
    return NULL;
}

kelp_status *kelp_mirror_update(kelp_mirror *mirror, kelp_fetch *fetch) {
    mirror_update u = {.mirror = mirror};
    kelp_pull pull = {.address = NULL};
    kelp_buf_init(&u.path, kelp_allocator_system());
    kelp_buf_init(&u.blob, kelp_allocator_system());
    kelp_sha256_init(&u.tree);
    kelp_status *status = set_path(mirror, &u.path, "trees/new");
    if (status == NULL) {
        kelp_directory_remove(u.path.data); /* of an interrupted update */
        status = kelp_pull_init(&pull, mirror->address);
    }
    if (status == NULL) {
        pull.fetch = fetch;
        pull.take = take;
        pull.userp = &u;
        pull.plain_http = mirror->plain_http;
        status = kelp_pull_run(&pull);
    }
    if (status == NULL)
        status = finish(&u);
    kelp_pull_deinit(&pull);
    kelp_buf_deinit(&u.path);
    kelp_buf_deinit(&u.blob);
    return status;
}
