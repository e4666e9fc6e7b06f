/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pull/fetch.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/fs.h"
#include "cli/pull/progress.h"
#include "cli/pull/sha256.h"
#include "frontends/otlp/curl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ATTEMPTS 5
#define FIRST_WAIT_NS 250000000L
#define MAX_TEXT_BYTES ((size_t)16 << 20)
#define MAX_ERROR_BYTES ((size_t)4096)
#define SHOWN_ERROR_BYTES 300
#define STOP_CHECK_NS 50000000L
#define CONNECT_TIMEOUT_MS 10000L
#define STALL_SECONDS 30L
#define MAX_REDIRECTS 10L
#define FILE_MODE 0644
enum {
    HTTP_OK = 200,
    HTTP_PARTIAL = 206,
    HTTP_NOT_MODIFIED = 304,
    HTTP_RANGE = 416,
    HTTP_MANY = 429,
    HTTP_SERVER = 500
};

struct kelp_fetch {
    const kelp_curl *curl;
    CURL *easy;
    atomic_bool *stop; /* or NULL */
    kelp_progress progress;
};

/* A file that is being downloaded. */
typedef struct part_file {
    char *path, *etag_path; /* PATH.part, PATH.part.etag */
    int fd;
    char etag[KELP_FETCH_ETAG_BYTES]; /* of the bytes that exist; empty: unknown */
} part_file;

/* One attempt. */
typedef struct transfer {
    kelp_fetch *fetch;
    part_file *part;     /* NULL: `text` receives the body */
    kelp_buf *text;      /* a text, or the beginning of the body of an error */
    size_t limit_bytes;  /* of `text` */
    kelp_buf *challenge; /* or NULL */
    uint64_t offset;     /* at which the body of a file begins */
    char etag[KELP_FETCH_ETAG_BYTES];
    kelp_status *failure; /* of writing */
    bool noted;           /* the ETag of the file is written */
    bool too_long;
} transfer;

kelp_status *kelp_fetch_create(bool quiet, atomic_bool *stop, kelp_fetch **out) {
    const kelp_curl *curl;
    KELP_TRY(kelp_curl_load(&curl));
    kelp_fetch *fetch;
    KELP_TRY(KELP_NEW(kelp_allocator_system(), kelp_fetch, &fetch));
    fetch->curl = curl;
    fetch->stop = stop;
    fetch->progress.enabled = !quiet && isatty(STDERR_FILENO);
    fetch->easy = curl->curl_easy_init();
    if (fetch->easy == NULL) {
        kelp_free(kelp_allocator_system(), fetch, sizeof *fetch);
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "libcurl cannot create a handle");
    }
    *out = fetch;
    return NULL;
}

void kelp_fetch_destroy(kelp_fetch *fetch) {
    if (fetch == NULL)
        return;
    fetch->curl->curl_easy_cleanup(fetch->easy);
    kelp_free(kelp_allocator_system(), fetch, sizeof *fetch);
}

static bool is_stopped(const kelp_fetch *fetch) {
    return fetch->stop != NULL && atomic_load(fetch->stop);
}

/* ---- callbacks of libcurl ---- */

static long response_code(const kelp_fetch *fetch) {
    long code = 0;
    (void)fetch->curl->curl_easy_getinfo(fetch->easy, CURLINFO_RESPONSE_CODE, &code);
    return code;
}

/* Notes the ETag of the bytes that arrive, so that another process can continue. */
static kelp_status *part_note(part_file *part, const char *etag) {
    if (!strcmp(part->etag, etag))
        return NULL;
    snprintf(part->etag, sizeof part->etag, "%s", etag);
    return kelp_fs_write(part->etag_path, etag, strlen(etag));
}

/* Writes to the file. A response with the whole file instead of the rest replaces it. */
static kelp_status *write_file(transfer *t, const char *data, size_t size, long code) {
    part_file *part = t->part;
    if (code == HTTP_OK && t->offset > 0) {
        t->offset = 0;
        if (ftruncate(part->fd, 0) != 0 || lseek(part->fd, 0, SEEK_SET) != 0)
            return kelp_fs_error("cannot write", part->path, errno);
    }
    if (!t->noted)
        KELP_TRY(part_note(part, t->etag));
    t->noted = true;
    for (size_t done = 0; done < size;) {
        ssize_t put = write(part->fd, data + done, size - done);
        if (put < 0 && errno != EINTR)
            return kelp_fs_error("cannot write", part->path, errno);
        done += put > 0 ? (size_t)put : 0;
    }
    return NULL;
}

static size_t on_body(char *data, size_t one, size_t size, void *userp) {
    transfer *t = userp;
    (void)one;
    long code = response_code(t->fetch);
    if (t->part != NULL && (code == HTTP_OK || code == HTTP_PARTIAL)) {
        t->failure = write_file(t, data, size, code);
        return t->failure == NULL ? size : 0;
    }
    size_t room = t->limit_bytes - KELP_MIN(t->limit_bytes, t->text->length);
    if (size > room && t->part == NULL) {
        t->too_long = true;
        return 0;
    }
    kelp_buf_append(t->text, data, KELP_MIN(size, room));
    return size;
}

/* Returns the value of a header line, without spaces around it, or false. */
static bool header_value(const char *line, size_t size, const char *name, kelp_str *out) {
    size_t length = strlen(name);
    if (size <= length || strncasecmp(line, name, length) != 0 || line[length] != ':')
        return false;
    const char *begin = line + length + 1, *end = line + size;
    while (begin < end && (*begin == ' ' || *begin == '\t'))
        begin++;
    while (end > begin && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' '))
        end--;
    *out = (kelp_str){begin, (size_t)(end - begin)};
    return true;
}

static size_t on_header(char *line, size_t one, size_t size, void *userp) {
    transfer *t = userp;
    kelp_str value;
    (void)one;
    if (size > 5 && !strncmp(line, "HTTP/", 5)) { /* of a redirection before, too */
        t->etag[0] = '\0';
        if (t->challenge != NULL)
            kelp_buf_clear(t->challenge);
    }
    if (header_value(line, size, "ETag", &value) && value.length < sizeof t->etag)
        snprintf(t->etag, sizeof t->etag, "%.*s", KELP_STR_ARG(value));
    if (t->challenge != NULL && header_value(line, size, "WWW-Authenticate", &value)) {
        kelp_buf_clear(t->challenge);
        kelp_buf_append_str(t->challenge, value);
    }
    return size;
}

static int on_progress(void *userp, int64_t total, int64_t done, int64_t up_total, int64_t up) {
    transfer *t = userp;
    (void)up_total;
    (void)up;
    if (t->part != NULL && done > 0)
        kelp_progress_show(&t->fetch->progress, t->offset + (uint64_t)done,
                           total > 0 ? t->offset + (uint64_t)total : 0);
    return is_stopped(t->fetch); /* true ends the transfer */
}

/* ---- one attempt ---- */

/* Sets the options that identify the client. */
static kelp_status *set_identity(kelp_fetch *fetch, const kelp_fetch_request *request) {
    const kelp_curl *curl = fetch->curl;
    if (request->sigv4 != NULL &&
        curl->curl_easy_setopt(fetch->easy, CURLOPT_AWS_SIGV4, request->sigv4) != CURLE_OK)
        return KELP_ERROR(
            KELP_FAILED_PRECONDITION,
            "this libcurl cannot sign requests to S3: expected version 7.75 or newer");
    if (request->user != NULL)
        curl->curl_easy_setopt(fetch->easy, CURLOPT_USERPWD, request->user);
    return NULL;
}

/* Returns the headers of a request, or NULL. */
static curl_slist *make_headers(const kelp_curl *curl, const kelp_fetch_request *request) {
    curl_slist *list = NULL;
    for (size_t i = 0; i < KELP_FETCH_HEADERS && request->headers[i] != NULL; i++)
        list = curl->curl_slist_append(list, request->headers[i]);
    const char *conditions[][2] = {
        {"If-Range", request->offset > 0 ? request->validator : NULL},
        {"If-None-Match", request->known_etag},
    };
    for (size_t i = 0; i < KELP_COUNT(conditions); i++) {
        char text[KELP_FETCH_ETAG_BYTES + 16];
        if (conditions[i][1] == NULL)
            continue;
        snprintf(text, sizeof text, "%s: %s", conditions[i][0], conditions[i][1]);
        list = curl->curl_slist_append(list, text);
    }
    return list;
}

/* Sends the request once. Returns the result of libcurl; its text is in `error`. */
static kelp_status *perform(transfer *t, const kelp_fetch_request *request, char *error,
                            int *out_result) {
    const kelp_curl *curl = t->fetch->curl;
    CURL *easy = t->fetch->easy;
    long protocols = CURLPROTO_HTTP | CURLPROTO_HTTPS;
    char range[24];
    curl->curl_easy_reset(easy);
    *error = '\0';
    curl->curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error);
    curl->curl_easy_setopt(easy, CURLOPT_URL, request->url);
    curl->curl_easy_setopt(easy, CURLOPT_USERAGENT, "kelp");
    curl->curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl->curl_easy_setopt(easy, CURLOPT_PROTOCOLS, protocols);
    curl->curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS, protocols);
    curl->curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl->curl_easy_setopt(easy, CURLOPT_MAXREDIRS, MAX_REDIRECTS);
    curl->curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    curl->curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl->curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, STALL_SECONDS);
    curl->curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl->curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
    curl->curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl->curl_easy_setopt(easy, CURLOPT_HEADERDATA, t);
    curl->curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl->curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl->curl_easy_setopt(easy, CURLOPT_XFERINFODATA, t);
    KELP_TRY(set_identity(t->fetch, request));
    curl_slist *headers = make_headers(curl, request);
    curl->curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    if (request->offset > 0) {
        snprintf(range, sizeof range, "%llu-", (unsigned long long)request->offset);
        curl->curl_easy_setopt(easy, CURLOPT_RANGE, range);
    }
    *out_result = curl->curl_easy_perform(easy);
    curl->curl_easy_setopt(easy, CURLOPT_HTTPHEADER, NULL);
    curl->curl_slist_free_all(headers);
    if (is_stopped(t->fetch)) {
        kelp_progress_end(&t->fetch->progress);
        return KELP_ERROR(KELP_CANCELLED, "the download was stopped");
    }
    if (*error == '\0')
        snprintf(error, CURL_ERROR_SIZE, "%s", curl->curl_easy_strerror(*out_result));
    return NULL;
}

/* Returns true if another attempt may succeed. */
static bool is_transient(int result, long code) {
    switch (result) {
    case CURLE_OK:
        return code == HTTP_MANY || code >= HTTP_SERVER;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_WRITE_ERROR:
    case CURLE_OUT_OF_MEMORY:
    case CURLE_TOO_MANY_REDIRECTS:
    case CURLE_PEER_FAILED_VERIFICATION:
        return false;
    default:
        return true;
    }
}

static void wait_before(const kelp_fetch *fetch, int attempt) {
    const struct timespec step = {.tv_nsec = STOP_CHECK_NS};
    for (long left = FIRST_WAIT_NS << (attempt - 1); left > 0 && !is_stopped(fetch);
         left -= STOP_CHECK_NS)
        (void)nanosleep(&step, NULL);
}

static const char *name_of(const kelp_fetch_request *request) {
    return request->name != NULL ? request->name : request->url;
}

kelp_status *kelp_fetch_failure(const char *what, const char *name, long code,
                                const kelp_buf *body) {
    int kind = code == 404                  ? KELP_NOT_FOUND
               : code == 401 || code == 403 ? KELP_PERMISSION_DENIED
                                            : KELP_UNAVAILABLE;
    char text[SHOWN_ERROR_BYTES + 1];
    size_t length = KELP_MIN(body->length, SHOWN_ERROR_BYTES);
    if (length > 0)
        memcpy(text, body->data, length);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ')
            text[i] = ' ';
    return KELP_ERROR(kind, "cannot %s '%s': HTTP status %ld%s%.*s", what, name, code,
                      length > 0 ? ": " : "", (int)length, text);
}

/* ---- texts ---- */

kelp_status *kelp_fetch_text(kelp_fetch *fetch, const kelp_fetch_request *request, kelp_buf *out,
                             long *out_code, kelp_buf *out_challenge) {
    char error[CURL_ERROR_SIZE];
    size_t before = out->length;
    for (int attempt = 1;; attempt++) {
        transfer t = {.fetch = fetch,
                      .text = out,
                      .limit_bytes = before + MAX_TEXT_BYTES,
                      .challenge = out_challenge};
        int result;
        out->length = before;
        KELP_TRY(perform(&t, request, error, &result));
        *out_code = response_code(fetch);
        KELP_TRY(kelp_buf_status(out));
        if (t.too_long)
            return KELP_ERROR(KELP_OUT_OF_RANGE, "the response of '%s' is longer than %zu bytes",
                              name_of(request), MAX_TEXT_BYTES);
        bool again = is_transient(result, *out_code) && attempt < ATTEMPTS;
        if (!again && result != CURLE_OK)
            return KELP_ERROR(KELP_UNAVAILABLE, "cannot reach '%s': %s", name_of(request), error);
        if (!again)
            return NULL;
        wait_before(fetch, attempt);
    }
}

/* ---- files ---- */

/* Creates the directories of a path. */
static kelp_status *make_directories(const char *path) {
    char *copy;
    kelp_status *status = NULL;
    KELP_TRY(kelp_strdup(kelp_allocator_system(), path, &copy));
    for (char *slash = strchr(copy + 1, '/'); slash != NULL && status == NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0755) != 0 && errno != EEXIST)
            status = kelp_fs_error("cannot create the directory", copy, errno);
        *slash = '/';
    }
    kelp_free_string(kelp_allocator_system(), copy);
    return status;
}

static kelp_status *add_suffix(const char *path, const char *suffix, char **out) {
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_buf_printf(&text, "%s%s", path, suffix);
    kelp_status *status = kelp_buf_status(&text);
    if (status == NULL)
        status = kelp_strdup(kelp_allocator_system(), kelp_buf_cstr(&text), out);
    kelp_buf_deinit(&text);
    return status;
}

static kelp_status *part_open(part_file *part, const char *path) {
    kelp_buf etag;
    KELP_TRY(make_directories(path));
    KELP_TRY(add_suffix(path, ".part", &part->path));
    KELP_TRY(add_suffix(path, ".part.etag", &part->etag_path));
    kelp_buf_init(&etag, kelp_allocator_system());
    kelp_status *ignored = kelp_fs_read(part->etag_path, KELP_FETCH_ETAG_BYTES - 1, &etag);
    if (ignored == NULL)
        snprintf(part->etag, sizeof part->etag, "%s", kelp_buf_cstr(&etag));
    kelp_status_free(ignored); /* an unknown ETag: the download starts again */
    kelp_buf_deinit(&etag);
    part->fd = open(part->path, O_WRONLY | O_CREAT | O_CLOEXEC, FILE_MODE);
    return part->fd >= 0 ? NULL : kelp_fs_error("cannot create", part->path, errno);
}

static void part_close(part_file *part) {
    if (part->fd >= 0)
        close(part->fd);
    kelp_free_string(kelp_allocator_system(), part->path);
    kelp_free_string(kelp_allocator_system(), part->etag_path);
}

/* Returns the offset from which the download continues: 0 if it is not known whether the file at
 * the server is still the same. A weak ETag does not prove that. */
static kelp_status *part_offset(part_file *part, bool restart, uint64_t *out) {
    *out = 0;
    if (!restart && part->etag[0] == '"') {
        off_t end = lseek(part->fd, 0, SEEK_END);
        *out = end > 0 ? (uint64_t)end : 0;
    }
    if (*out == 0 && (ftruncate(part->fd, 0) != 0 || lseek(part->fd, 0, SEEK_SET) != 0))
        return kelp_fs_error("cannot write", part->path, errno);
    return NULL;
}

/* Sends the request until the part is complete, or the file at the server has not changed. */
static kelp_status *download(kelp_fetch *fetch, kelp_fetch_request *request, part_file *part,
                             kelp_buf *body, kelp_fetch_file_info *out) {
    char error[CURL_ERROR_SIZE];
    bool restart = false;
    for (int attempt = 1;; attempt++) {
        transfer t = {.fetch = fetch, .part = part, .text = body, .limit_bytes = MAX_ERROR_BYTES};
        int result;
        kelp_buf_clear(body);
        KELP_TRY(part_offset(part, restart, &request->offset));
        t.offset = request->offset;
        request->validator = part->etag;
        kelp_progress_begin(&fetch->progress, name_of(request), t.offset);
        KELP_TRY(perform(&t, request, error, &result));
        kelp_progress_end(&fetch->progress);
        long code = response_code(fetch);
        KELP_TRY(t.failure);
        out->unchanged =
            result == CURLE_OK && code == HTTP_NOT_MODIFIED && request->known_etag != NULL;
        if (out->unchanged || (result == CURLE_OK && (code == HTTP_OK || code == HTTP_PARTIAL))) {
            snprintf(out->etag, sizeof out->etag, "%s", t.etag);
            return NULL;
        }
        restart = code == HTTP_RANGE; /* the part is not the beginning of the file */
        bool again = (restart && request->offset > 0) || is_transient(result, code);
        if (again && attempt < ATTEMPTS) {
            wait_before(fetch, attempt);
            continue;
        }
        if (result != CURLE_OK)
            return KELP_ERROR(KELP_UNAVAILABLE, "cannot download '%s': %s; the part stays in '%s'",
                              name_of(request), error, part->path);
        return kelp_fetch_failure("download", name_of(request), code, body);
    }
}

/* Removes what exists of a download. */
static void part_remove(const part_file *part) {
    unlink(part->path);
    unlink(part->etag_path);
}

/* Checks the part and gives it the name of the file. */
static kelp_status *finish(const kelp_fetch_request *request, const part_file *part,
                           const char *path, char out_digest[65]) {
    if (fsync(part->fd) != 0)
        return kelp_fs_error("cannot write", part->path, errno);
    KELP_TRY(kelp_sha256_file(part->path, out_digest));
    if (request->digest != NULL && strcasecmp(out_digest, request->digest) != 0) {
        part_remove(part);
        return KELP_ERROR(KELP_DATA_LOSS,
                          "'%s' has the wrong digest: expected sha256:%s, found sha256:%s",
                          name_of(request), request->digest, out_digest);
    }
    if (rename(part->path, path) != 0)
        return kelp_fs_error("cannot write", path, errno);
    unlink(part->etag_path);
    return NULL;
}

kelp_status *kelp_fetch_file(kelp_fetch *fetch, const kelp_fetch_request *request, const char *path,
                             kelp_fetch_file_info *out) {
    *out = (kelp_fetch_file_info){.unchanged = false};
    if (request->digest != NULL && kelp_fs_kind_of(path) == KELP_FS_FILE) {
        KELP_TRY(kelp_sha256_file(path, out->digest));
        if (!strcasecmp(out->digest, request->digest))
            return NULL;
    }
    part_file part = {.fd = -1};
    kelp_fetch_request copy = *request;
    kelp_buf body;
    kelp_buf_init(&body, kelp_allocator_system());
    kelp_status *status = part_open(&part, path);
    if (status == NULL)
        status = download(fetch, &copy, &part, &body, out);
    if (status == NULL && out->unchanged)
        part_remove(&part);
    else if (status == NULL)
        status = finish(request, &part, path, out->digest);
    part_close(&part);
    kelp_buf_deinit(&body);
    return status;
}
