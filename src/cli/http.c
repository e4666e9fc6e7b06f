/* SPDX-License-Identifier: Apache-2.0 */
/* Requests through libcurl's easy interface. */
#include "cli/http.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/checked.h"
#include "base/text/json.h"
#include "frontends/otlp/curl.h"

#include <stdio.h>

#define TIMEOUT_MS 60000L
#define MAX_REPLY_BYTES ((size_t)1 << 30)

struct kelp_cli_http {
    const kelp_curl *curl;
    CURL *easy;
    const kelp_cli_http_options *options;
    curl_slist *headers, *post_headers;
    size_t json_length; /* of post_headers */
    kelp_buf reply;
    char error[CURL_ERROR_SIZE];
};

bool kelp_cli_http_is_url(const char *text) {
    return strncmp(text, "http://", strlen("http://")) == 0 ||
           strncmp(text, "https://", strlen("https://")) == 0;
}

static size_t on_body(const char *data, size_t size, size_t count, void *userp) {
    kelp_buf *reply = userp;
    size_t length = size * count;
    if (length > MAX_REPLY_BYTES - KELP_MIN(reply->length, MAX_REPLY_BYTES))
        return 0;
    kelp_buf_append(reply, data, length);
    return reply->failed ? 0 : length;
}

static bool add_header(const kelp_curl *curl, curl_slist **inout_list, const char *line) {
    curl_slist *longer = curl->curl_slist_append(*inout_list, line);
    *inout_list = longer != NULL ? longer : *inout_list;
    return longer != NULL;
}

/* Appends the headers of the options. */
static kelp_status *add_headers(kelp_cli_http *client, curl_slist **inout_list) {
    for (size_t i = 0; i < client->options->headers.count; i++) {
        const char *line = client->options->headers.items[i];
        if (strchr(line, ':') == NULL)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "option '--header': expected 'NAME: VALUE', found '%s'", line);
        if (!add_header(client->curl, inout_list, line))
            return kelp_status_oom();
    }
    return NULL;
}

/* Creates the headers of a POST request unless they exist. */
static kelp_status *make_post_headers(kelp_cli_http *client, size_t json_length) {
    char line[64];
    if (client->post_headers != NULL && client->json_length == json_length)
        return NULL;
    client->curl->curl_slist_free_all(client->post_headers);
    client->post_headers = NULL;
    client->json_length = json_length;
    KELP_TRY(add_headers(client, &client->post_headers));
    snprintf(line, sizeof line, "Inference-Header-Content-Length: %zu", json_length);
    if (!add_header(client->curl, &client->post_headers,
                    "Content-Type: application/octet-stream") ||
        !add_header(client->curl, &client->post_headers, "Expect:") ||
        (json_length > 0 && !add_header(client->curl, &client->post_headers, line)))
        return kelp_status_oom();
    return NULL;
}

kelp_status *kelp_cli_http_create(const kelp_cli_http_options *options, kelp_cli_http **out) {
    const kelp_curl *curl;
    kelp_cli_http *client = NULL;
    KELP_TRY(kelp_curl_load(&curl));
    KELP_TRY(KELP_NEW(kelp_allocator_system(), kelp_cli_http, &client));
    client->curl = curl;
    client->options = options;
    kelp_buf_init(&client->reply, kelp_allocator_system());
    client->easy = curl->curl_easy_init();
    kelp_status *status =
        client->easy != NULL ? add_headers(client, &client->headers) : kelp_status_oom();
    if (status != NULL) {
        kelp_cli_http_destroy(client);
        return status;
    }
    curl->curl_easy_setopt(client->easy, CURLOPT_NOSIGNAL, 1L);
    curl->curl_easy_setopt(client->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl->curl_easy_setopt(client->easy, CURLOPT_PROTOCOLS,
                           (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl->curl_easy_setopt(client->easy, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
    curl->curl_easy_setopt(client->easy, CURLOPT_ERRORBUFFER, client->error);
    curl->curl_easy_setopt(client->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl->curl_easy_setopt(client->easy, CURLOPT_WRITEDATA, &client->reply);
    if (options->ca_file != NULL &&
        curl->curl_easy_setopt(client->easy, CURLOPT_CAINFO, options->ca_file) != CURLE_OK)
        status = kelp_status_oom();
    if (status != NULL)
        kelp_cli_http_destroy(client);
    else
        *out = client;
    return status;
}

void kelp_cli_http_destroy(kelp_cli_http *client) {
    if (client == NULL)
        return;
    if (client->easy != NULL)
        client->curl->curl_easy_cleanup(client->easy);
    client->curl->curl_slist_free_all(client->headers);
    client->curl->curl_slist_free_all(client->post_headers);
    kelp_buf_deinit(&client->reply);
    kelp_free(kelp_allocator_system(), client, sizeof *client);
}

static kelp_status *perform(kelp_cli_http *client, const char *url, unsigned *out_code,
                            kelp_str *out_body) {
    const kelp_curl *curl = client->curl;
    long code = 0;
    kelp_buf_clear(&client->reply);
    client->error[0] = '\0';
    if (curl->curl_easy_setopt(client->easy, CURLOPT_URL, url) != CURLE_OK)
        return kelp_status_oom();
    int result = curl->curl_easy_perform(client->easy);
    if (result != CURLE_OK)
        return KELP_ERROR(KELP_UNAVAILABLE, "no response from '%s': %s", url,
                          client->error[0] ? client->error : curl->curl_easy_strerror(result));
    if (curl->curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &code) != CURLE_OK)
        return KELP_ERROR(KELP_INTERNAL, "the response of '%s' has no status code", url);
    *out_code = (unsigned)code;
    *out_body = (kelp_str){client->reply.data, client->reply.length};
    return NULL;
}

kelp_status *kelp_cli_http_get(kelp_cli_http *client, const char *url, unsigned *out_code,
                               kelp_str *out_body) {
    client->curl->curl_easy_setopt(client->easy, CURLOPT_HTTPGET, 1L);
    client->curl->curl_easy_setopt(client->easy, CURLOPT_HTTPHEADER, client->headers);
    return perform(client, url, out_code, out_body);
}

kelp_status *kelp_cli_http_post(kelp_cli_http *client, const char *url, kelp_str body,
                                size_t json_length, unsigned *out_code, kelp_str *out_body) {
    const kelp_curl *curl = client->curl;
    KELP_TRY(make_post_headers(client, json_length));
    curl->curl_easy_setopt(client->easy, CURLOPT_POST, 1L);
    curl->curl_easy_setopt(client->easy, CURLOPT_POSTFIELDS, body.data);
    curl->curl_easy_setopt(client->easy, CURLOPT_POSTFIELDSIZE_LARGE, (long long)body.length);
    curl->curl_easy_setopt(client->easy, CURLOPT_HTTPHEADER, client->post_headers);
    return perform(client, url, out_code, out_body);
}

kelp_status *kelp_cli_http_expect(const char *url, unsigned code, kelp_str body) {
    enum { CODE_OK = 200 };
    kelp_arena arena;
    kelp_json *tree = NULL;
    if (code == CODE_OK)
        return NULL;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    /* The body of an error of a proxy need not be JSON. */
    kelp_status_free(kelp_json_parse(&arena, url, body.data, body.length, &tree));
    const kelp_json *error = kelp_json_get(tree, "error");
    kelp_str text = error != NULL && error->type == KELP_JSON_STRING ? error->string : KELP_STR("");
    kelp_status *status = KELP_ERROR(KELP_UNAVAILABLE, "'%s' responded with status %u%s%.*s", url,
                                     code, text.length > 0 ? ": " : "", KELP_STR_ARG(text));
    kelp_arena_deinit(&arena);
    return status;
}
