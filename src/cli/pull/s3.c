/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of stores with the interface of Amazon S3. libcurl signs the requests. The environment
 * has the names of AWS's tools. */
#include "base/alloc.h"
#include "base/checked.h"
#include "cli/pull/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The SHA-256 of an empty body, which is a part of the signature. */
#define EMPTY_BODY \
    "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* A bucket and how its requests are signed. */
typedef struct s3_bucket {
    kelp_pull *pull;
    kelp_buf base;   /* the URL of the bucket */
    kelp_buf region; /* "aws:amz:REGION:s3" */
    kelp_buf user;   /* "KEY:SECRET" */
    kelp_buf token;  /* a header */
    bool is_signed;
    size_t object_count; /* of those that were passed on */
} s3_bucket;

static const char *variable(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : otherwise;
}

static void bucket_init(s3_bucket *bucket, kelp_pull *pull) {
    *bucket = (s3_bucket){.pull = pull};
    kelp_buf_init(&bucket->base, kelp_allocator_system());
    kelp_buf_init(&bucket->region, kelp_allocator_system());
    kelp_buf_init(&bucket->user, kelp_allocator_system());
    kelp_buf_init(&bucket->token, kelp_allocator_system());
}

static void bucket_deinit(s3_bucket *bucket) {
    kelp_buf_deinit(&bucket->base);
    kelp_buf_deinit(&bucket->region);
    kelp_buf_deinit(&bucket->user);
    kelp_buf_deinit(&bucket->token);
}

/* Reads the environment. Other stores than Amazon's have the bucket in the path. */
static kelp_status *bucket_configure(s3_bucket *bucket, const char *name, size_t length) {
    const char *region = variable("AWS_REGION", variable("AWS_DEFAULT_REGION", "us-east-1"));
    const char *endpoint = variable("AWS_ENDPOINT_URL_S3", variable("AWS_ENDPOINT_URL", NULL));
    const char *key = variable("AWS_ACCESS_KEY_ID", NULL);
    const char *secret = variable("AWS_SECRET_ACCESS_KEY", NULL);
    const char *token = variable("AWS_SESSION_TOKEN", NULL);
    if ((key == NULL) != (secret == NULL))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "expected both or none of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
    if (endpoint != NULL) {
        size_t size = strlen(endpoint);
        while (size > 0 && endpoint[size - 1] == '/')
            size--;
        kelp_buf_printf(&bucket->base, "%.*s/%.*s", (int)size, endpoint, (int)length, name);
    } else {
        kelp_buf_printf(&bucket->base, "https://%.*s.s3.%s.amazonaws.com", (int)length, name,
                        region);
    }
    kelp_buf_printf(&bucket->region, "aws:amz:%s:s3", region);
    bucket->is_signed = key != NULL;
    if (key != NULL)
        kelp_buf_printf(&bucket->user, "%s:%s", key, secret);
    if (token != NULL)
        kelp_buf_printf(&bucket->token, "x-amz-security-token: %s", token);
    KELP_TRY(kelp_buf_status(&bucket->base));
    KELP_TRY(kelp_buf_status(&bucket->region));
    KELP_TRY(kelp_buf_status(&bucket->user));
    return kelp_buf_status(&bucket->token);
}

/* Returns a request without its URL. Without a key, it is anonymous. */
static kelp_fetch_request make_request(s3_bucket *bucket) {
    kelp_fetch_request request = {.name = NULL};
    if (bucket->is_signed) {
        request.sigv4 = kelp_buf_cstr(&bucket->region);
        request.user = kelp_buf_cstr(&bucket->user);
        request.headers[0] = EMPTY_BODY;
        request.headers[1] = bucket->token.length > 0 ? kelp_buf_cstr(&bucket->token) : NULL;
    }
    return request;
}

/* Passes on an object. `item` has its path and version. */
static kelp_status *take_object(s3_bucket *bucket, const char *key, kelp_pull_item *item) {
    kelp_buf url;
    kelp_buf_init(&url, kelp_allocator_system());
    kelp_buf_printf(&url, "%s/", kelp_buf_cstr(&bucket->base));
    kelp_pull_encode(key, strlen(key), "/", &url);
    kelp_status *status = kelp_buf_status(&url);
    kelp_fetch_request request = make_request(bucket);
    request.url = kelp_buf_cstr(&url);
    request.name = key;
    request.digest = item->is_single ? kelp_pull_digest(bucket->pull) : NULL;
    item->request = &request;
    if (status == NULL)
        status = kelp_pull_take(bucket->pull, item);
    bucket->object_count += status == NULL;
    kelp_buf_deinit(&url);
    return status;
}

static kelp_status *take_single(s3_bucket *bucket, const char *key) {
    const char *slash = strrchr(key, '/');
    kelp_pull_item item = {.path = slash != NULL ? slash + 1 : key, .is_single = true};
    return take_object(bucket, key, &item);
}

/* Finds the first element `name` in `text`. `out_end`, if not NULL, receives its end. */
static bool find_element(const char *name, kelp_str text, kelp_str *out, const char **out_end) {
    char open[64], close[64];
    int open_length = snprintf(open, sizeof open, "<%s>", name);
    int close_length = snprintf(close, sizeof close, "</%s>", name);
    const char *begin = memmem(text.data, text.length, open, (size_t)open_length);
    if (begin == NULL)
        return false;
    begin += open_length;
    const char *end =
        memmem(begin, (size_t)(text.data + text.length - begin), close, (size_t)close_length);
    if (end == NULL)
        return false;
    *out = (kelp_str){begin, (size_t)(end - begin)};
    if (out_end != NULL)
        *out_end = end + close_length;
    return true;
}

/* Appends text with the five named entities of XML replaced. */
static kelp_status *unescape(kelp_str text, kelp_buf *out) {
    static const char *const entities[][2] = {
        {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}};
    for (size_t at = 0; at < text.length;) {
        size_t length = 1;
        const char *replacement = NULL;
        for (size_t i = 0; i < KELP_COUNT(entities) && replacement == NULL; i++) {
            length = strlen(entities[i][0]);
            if (length <= text.length - at && !memcmp(text.data + at, entities[i][0], length))
                replacement = entities[i][1];
        }
        if (replacement == NULL && text.data[at] == '&')
            return KELP_ERROR(KELP_UNIMPLEMENTED,
                              "the list has a key with an unknown entity: '%.*s'",
                              KELP_STR_ARG(text));
        length = replacement != NULL ? length : 1;
        kelp_buf_append_char(out, replacement != NULL ? *replacement : text.data[at]);
        at += length;
    }
    return kelp_buf_status(out);
}

/* Passes on the object of a list's element. Its key is percent-encoded if the store supports that
 * (encoding-type=url), and otherwise escaped. Keys that end with '/' stand for directories. */
static kelp_status *take_element(s3_bucket *bucket, kelp_str element, bool is_encoded,
                                 size_t prefix_length) {
    kelp_str encoded, etag;
    kelp_buf key, version;
    if (!find_element("Key", element, &encoded, NULL))
        return NULL;
    kelp_buf_init(&key, kelp_allocator_system());
    kelp_buf_init(&version, kelp_allocator_system());
    bool has_etag = find_element("ETag", element, &etag, NULL) && etag.length > 0;
    kelp_buf_append_str(&version, has_etag ? etag : element);
    kelp_status *status =
        is_encoded ? kelp_pull_decode(encoded.data, encoded.length, &key) : unescape(encoded, &key);
    if (status == NULL)
        status = kelp_buf_status(&version);
    if (status == NULL && key.length > prefix_length && key.data[key.length - 1] != '/') {
        const char *text = kelp_buf_cstr(&key);
        kelp_pull_item item = {.path = text + prefix_length, .version = kelp_buf_cstr(&version)};
        status = take_object(bucket, text, &item);
    }
    kelp_buf_deinit(&key);
    kelp_buf_deinit(&version);
    return status;
}

/* Passes on the objects of a page of the list. */
static kelp_status *take_page(s3_bucket *bucket, kelp_str page, size_t prefix_length) {
    kelp_str element, encoding;
    bool is_encoded =
        find_element("EncodingType", page, &encoding, NULL) && kelp_str_is(encoding, "url");
    const char *end = page.data + page.length;
    while (find_element("Contents", page, &element, &page.data)) {
        page.length = (size_t)(end - page.data);
        KELP_TRY(take_element(bucket, element, is_encoded, prefix_length));
    }
    return NULL;
}

/* Sets the URL of a page; parameters are sorted, as the signature needs. */
static void set_list_url(s3_bucket *bucket, const char *prefix, const kelp_buf *next,
                         kelp_buf *out) {
    kelp_buf_clear(out);
    kelp_buf_printf(out, "%s/?", kelp_buf_cstr(&bucket->base));
    if (next->length > 0) {
        kelp_buf_append_cstr(out, "continuation-token=");
        kelp_pull_encode(next->data, next->length, "", out);
        kelp_buf_append_char(out, '&');
    }
    kelp_buf_append_cstr(out, "encoding-type=url&list-type=2&prefix=");
    kelp_pull_encode(prefix, strlen(prefix), "", out);
}

static kelp_status *take_prefix(s3_bucket *bucket, const char *prefix) {
    kelp_buf url, page, next;
    kelp_status *status = NULL;
    bool more = true;
    kelp_buf_init(&url, kelp_allocator_system());
    kelp_buf_init(&page, kelp_allocator_system());
    kelp_buf_init(&next, kelp_allocator_system());
    while (status == NULL && more) {
        long code = 0;
        kelp_str text;
        set_list_url(bucket, prefix, &next, &url);
        kelp_fetch_request request = make_request(bucket);
        request.url = kelp_buf_cstr(&url);
        kelp_buf_clear(&page);
        status = kelp_buf_status(&url);
        if (status == NULL)
            status = kelp_fetch_text(bucket->pull->fetch, &request, &page, &code, NULL);
        if (status == NULL && code != 200)
            status = kelp_fetch_failure("list", kelp_buf_cstr(&bucket->base), code, &page);
        if (status != NULL)
            break;
        const kelp_str all = {page.data, page.length};
        status = take_page(bucket, all, strlen(prefix));
        kelp_buf_clear(&next);
        more = status == NULL && find_element("NextContinuationToken", all, &text, NULL);
        if (more)
            status = unescape(text, &next);
    }
    kelp_buf_deinit(&url);
    kelp_buf_deinit(&page);
    kelp_buf_deinit(&next);
    return status;
}

kelp_status *kelp_pull_s3(kelp_pull *pull) {
    const char *slash = strchr(pull->address, '/');
    size_t length = slash != NULL ? (size_t)(slash - pull->address) : strlen(pull->address);
    const char *key = slash != NULL ? slash + 1 : "";
    bool is_prefix = *key == '\0' || key[strlen(key) - 1] == '/';
    if (length == 0)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "invalid address 's3://%s': expected s3://BUCKET/KEY or s3://BUCKET/PREFIX/",
            pull->address);
    if (is_prefix && kelp_pull_digest(pull) != NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "a prefix of S3 has no digest: expected s3://BUCKET/KEY");
    s3_bucket bucket;
    bucket_init(&bucket, pull);
    kelp_status *status = bucket_configure(&bucket, pull->address, length);
    if (status == NULL)
        status = is_prefix ? take_prefix(&bucket, key) : take_single(&bucket, key);
    if (status == NULL && bucket.object_count == 0)
        status = KELP_ERROR(KELP_NOT_FOUND, "the prefix 's3://%s' has no objects", pull->address);
    bucket_deinit(&bucket);
    return status;
}
