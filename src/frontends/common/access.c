/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/common/access.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/fs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define RECHECK_NS UINT64_C(1000000000)
#define TOKEN_FILE_MAX_BYTES ((size_t)1 << 20)

static const char *const category_names[KELP_ACCESS_OTHER] = {
    [KELP_ACCESS_HEALTH] = "health",
    [KELP_ACCESS_METADATA] = "metadata",
    [KELP_ACCESS_INFERENCE] = "inference",
    [KELP_ACCESS_SHARED_MEMORY] = "shared-memory",
    [KELP_ACCESS_MODEL_CONFIG] = "model-config",
    [KELP_ACCESS_MODEL_REPOSITORY] = "model-repository",
    [KELP_ACCESS_STATISTICS] = "statistics",
    [KELP_ACCESS_TRACE] = "trace",
    [KELP_ACCESS_LOGGING] = "logging",
};

/* The header that a category requires. */
typedef struct restriction {
    char *header; /* with the prefix; NULL: not restricted */
    char *value;
    const char *noun;
} restriction;

struct kelp_access {
    kelp_allocator allocator;
    const kelp_logger *logger;
    bool limited;
    restriction restrictions[KELP_ACCESS_OTHER];
    char *token_path; /* NULL: no tokens */
    bool health_exempt;
    atomic_ullong checked_ns;
    pthread_rwlock_t lock;
    kelp_buf tokens;          /* the file; the lock is held */
    struct timespec modified; /* of the file that was read */
    off_t size;
    ino_t inode;
    bool failed; /* the last attempt to read; logged once */
};

kelp_status *kelp_access_create(kelp_allocator allocator, const kelp_logger *logger,
                                kelp_access **out) {
    kelp_access *access;
    KELP_TRY(KELP_NEW(allocator, kelp_access, &access));
    access->allocator = allocator;
    access->logger = logger;
    atomic_init(&access->checked_ns, 0);
    pthread_rwlock_init(&access->lock, NULL);
    kelp_buf_init(&access->tokens, allocator);
    *out = access;
    return NULL;
}

void kelp_access_destroy(kelp_access *access) {
    if (access == NULL)
        return;
    for (size_t i = 0; i < KELP_COUNT(access->restrictions); i++) {
        kelp_free_string(access->allocator, access->restrictions[i].header);
        kelp_free_string(access->allocator, access->restrictions[i].value);
    }
    kelp_free_string(access->allocator, access->token_path);
    kelp_buf_deinit(&access->tokens);
    pthread_rwlock_destroy(&access->lock);
    kelp_free(access->allocator, access, sizeof *access);
}

/* ---- restricted categories ---- */

static kelp_status *copy(kelp_access *access, const char *prefix, kelp_str text, char **out) {
    kelp_buf buf;
    kelp_buf_init(&buf, access->allocator);
    kelp_buf_append_cstr(&buf, prefix);
    kelp_buf_append_str(&buf, text);
    const char *joined = kelp_buf_cstr(&buf);
    kelp_status *status = kelp_buf_status(&buf);
    if (status == NULL)
        status = kelp_strdup(access->allocator, joined, out);
    kelp_buf_deinit(&buf);
    return status;
}

/* Returns the noun as Triton's messages about its options have it. */
static const char *noun_of_option(const char *noun) {
    return strcmp(noun, "API") == 0 ? "api" : noun;
}

static kelp_status *restrict_one(kelp_access *access, kelp_str category, kelp_str header,
                                 kelp_str value, const char *noun, const char *prefix) {
    for (size_t i = 0; i < KELP_COUNT(category_names); i++) {
        restriction *at = &access->restrictions[i];
        if (!kelp_str_is(category, category_names[i]))
            continue;
        if (at->header != NULL)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "restricted %s '%s' can not be specified in multiple config groups",
                              noun_of_option(noun), category_names[i]);
        KELP_TRY(copy(access, prefix, header, &at->header));
        at->noun = noun;
        access->limited = true;
        return copy(access, "", value, &at->value);
    }
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "unknown restricted %s '%.*s': expected health, metadata, inference, "
                      "shared-memory, model-config, model-repository, statistics, trace or logging",
                      noun_of_option(noun), KELP_STR_ARG(category));
}

kelp_status *kelp_access_restrict(kelp_access *access, const char *rule, const char *noun,
                                  const char *prefix) {
    const char *colon = strchr(rule, ':');
    const char *equals = colon != NULL ? strchr(colon, '=') : NULL;
    if (equals == NULL || colon == rule || equals == colon + 1 || !equals[1])
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "restricted %s: expected CATEGORY[,CATEGORY]:HEADER=VALUE, found '%s'",
                          noun, rule);
    kelp_str header = {colon + 1, (size_t)(equals - colon - 1)};
    for (const char *at = rule;; at++) {
        size_t length = strcspn(at, ",:");
        KELP_TRY(restrict_one(access, (kelp_str){at, length}, header, kelp_str_from(equals + 1),
                              noun, prefix));
        at += length;
        if (at == colon)
            return NULL;
    }
}

/* ---- tokens ---- */

/* Takes the next token of the text. Returns false at the end. */
static bool next_token(kelp_str *inout_text, kelp_str *out) {
    while (inout_text->length > 0) {
        const char *end = memchr(inout_text->data, '\n', inout_text->length);
        size_t length = end != NULL ? (size_t)(end - inout_text->data) : inout_text->length;
        kelp_str line = kelp_str_trim((kelp_str){inout_text->data, length});
        length += end != NULL;
        inout_text->data += length;
        inout_text->length -= length;
        if (line.length > 0 && line.data[line.length - 1] == '\r')
            line.length--;
        if (line.length > 0 && line.data[0] != '#') {
            *out = line;
            return true;
        }
    }
    return false;
}

/* Reads the file. The lock is held for writing, or no check has begun. */
static kelp_status *read_tokens(kelp_access *access, const struct stat *info) {
    kelp_buf text;
    kelp_str rest, token;
    kelp_buf_init(&text, access->allocator);
    kelp_status *status = kelp_fs_read(access->token_path, TOKEN_FILE_MAX_BYTES, &text);
    rest = (kelp_str){text.data, text.length};
    if (status == NULL && !next_token(&rest, &token))
        status =
            KELP_ERROR(KELP_INVALID_ARGUMENT, "token file '%s' has no token", access->token_path);
    if (status != NULL) {
        kelp_buf_deinit(&text);
        return status;
    }
    kelp_buf_deinit(&access->tokens);
    access->tokens = text;
    access->modified = info->st_mtim;
    access->size = info->st_size;
    access->inode = info->st_ino;
    return NULL;
}

kelp_status *kelp_access_set_token_file(kelp_access *access, const char *path, bool health_exempt) {
    struct stat info = {0};
    KELP_TRY(kelp_strdup(access->allocator, path, &access->token_path));
    access->health_exempt = health_exempt;
    access->limited = true;
    (void)stat(path, &info); /* reading reports the failure */
    return read_tokens(access, &info);
}

static bool has_changed(const kelp_access *access, const struct stat *info) {
    return info->st_mtim.tv_sec != access->modified.tv_sec ||
           info->st_mtim.tv_nsec != access->modified.tv_nsec || info->st_size != access->size ||
           info->st_ino != access->inode;
}

/* Reads the file again if it changed. Done by one thread at most once a second. */
static void refresh(kelp_access *access) {
    struct stat info = {0};
    unsigned long long now_ns = kelp_now_ns();
    unsigned long long checked_ns = atomic_load_explicit(&access->checked_ns, memory_order_relaxed);
    if (now_ns - checked_ns < RECHECK_NS ||
        !atomic_compare_exchange_strong(&access->checked_ns, &checked_ns, now_ns))
        return;
    kelp_status *status = NULL;
    pthread_rwlock_wrlock(&access->lock);
    if (stat(access->token_path, &info) != 0 || has_changed(access, &info))
        status = read_tokens(access, &info);
    bool report = status != NULL && !access->failed;
    access->failed = status != NULL;
    pthread_rwlock_unlock(&access->lock);
    if (report)
        KELP_LOGF(access->logger, KELP_LOG_WARNING, "the previous tokens remain: %s",
                  kelp_status_message(status));
    kelp_status_free(status);
}

/* Compares in a time that only depends on the lengths. */
static bool equal_in_constant_time(kelp_str given, kelp_str expected) {
    unsigned char difference = given.length != expected.length;
    for (size_t i = 0; i < given.length && expected.length > 0; i++)
        difference |= (unsigned char)(given.data[i] ^ expected.data[i % expected.length]);
    return difference == 0;
}

static bool is_token(kelp_access *access, kelp_str given) {
    bool found = false;
    kelp_str token;
    refresh(access);
    pthread_rwlock_rdlock(&access->lock);
    kelp_str rest = {access->tokens.data, access->tokens.length};
    while (next_token(&rest, &token)) /* all of them, for a constant time */
        found |= equal_in_constant_time(given, token);
    pthread_rwlock_unlock(&access->lock);
    return found;
}

static kelp_status *check_token(kelp_access *access, kelp_access_find_fn find, const void *userp) {
    static const kelp_str scheme = {"bearer ", 7};
    const kelp_str *value = find(userp, "authorization");
    bool bearer = value != NULL && value->length > scheme.length &&
                  kelp_str_equal_nocase((kelp_str){value->data, scheme.length}, scheme);
    kelp_str given = {0};
    if (bearer)
        given =
            kelp_str_trim((kelp_str){value->data + scheme.length, value->length - scheme.length});
    if (bearer && given.length > 0 && is_token(access, given))
        return NULL;
    return KELP_ERROR(KELP_UNAUTHENTICATED, bearer
                                                ? "the bearer token is not valid"
                                                : "expecting header 'Authorization: Bearer TOKEN'");
}

bool kelp_access_is_limited(const kelp_access *access) {
    return access != NULL && access->limited;
}

kelp_access_needs kelp_access_needs_of(const kelp_access *access, kelp_access_category category) {
    kelp_access_needs needs = {0};
    if (!kelp_access_is_limited(access) || category == KELP_ACCESS_PUBLIC)
        return needs;
    needs.token =
        access->token_path != NULL && !(access->health_exempt && category == KELP_ACCESS_HEALTH);
    if (category < KELP_ACCESS_OTHER)
        needs.header = access->restrictions[category].header;
    return needs;
}

kelp_status *kelp_access_check(kelp_access *access, kelp_access_category category,
                               kelp_access_find_fn find, const void *userp) {
    kelp_access_needs needs = kelp_access_needs_of(access, category);
    if (needs.token)
        KELP_TRY(check_token(access, find, userp));
    if (needs.header == NULL)
        return NULL;
    const restriction *at = &access->restrictions[category];
    const kelp_str *value = find(userp, at->header);
    if (value != NULL && equal_in_constant_time(*value, kelp_str_from(at->value)))
        return NULL;
    return KELP_ERROR(KELP_PERMISSION_DENIED, "This %s is restricted, expecting header '%s'",
                      at->noun, at->header);
}
