/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/otlp/client.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/clock.h"
#include "frontends/http/encoding.h"
#include "frontends/otlp/curl.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define MAX_REPLY_BYTES ((size_t)64 * 1024)
#define MAX_POLL_MS 1000
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)
#define MAX_RETRY_AFTER_S 3600

struct kelp_otlp_client {
    kelp_allocator allocator;
    const kelp_curl *curl;
    CURLM *multi;
    CURL *easy;
    curl_slist *headers;
    bool gzip;
    kelp_buf packed, reply;
    uint64_t retry_after_ns;
    char error[CURL_ERROR_SIZE];
    atomic_uint_fast64_t deadline_ns;
};

/* ---- callbacks of libcurl ---- */

/* Keeps the start of the response's body. */
static size_t on_body(const char *data, size_t size, size_t count, void *userp) {
    kelp_otlp_client *client = userp;
    size_t length = size * count, space = MAX_REPLY_BYTES - client->reply.length;
    kelp_buf_append(&client->reply, data, KELP_MIN(length, space));
    return length;
}

/* Parses the value of Retry-After: seconds or a date. */
static uint64_t parse_retry_after(const kelp_curl *curl, kelp_str value) {
    uint64_t seconds = 0;
    char text[64];
    if (!kelp_parse_u64(value, &seconds)) {
        snprintf(text, sizeof text, "%.*s", KELP_STR_ARG(value));
        time_t then = curl->curl_getdate(text, NULL), now = time(NULL);
        seconds = then > now ? (uint64_t)(then - now) : 0;
    }
    return KELP_MIN(seconds, (uint64_t)MAX_RETRY_AFTER_S) * NS_PER_S;
}

static size_t on_header(const char *data, size_t size, size_t count, void *userp) {
    kelp_otlp_client *client = userp;
    kelp_str line = {data, size * count}, name = KELP_STR("retry-after:");
    if (line.length > name.length && kelp_str_equal_nocase((kelp_str){data, name.length}, name))
        client->retry_after_ns = parse_retry_after(
            client->curl, kelp_str_trim((kelp_str){data + name.length, line.length - name.length}));
    return line.length;
}

/* ---- requests ---- */

static kelp_status *compress(kelp_otlp_client *client, kelp_str *inout_body) {
    kelp_http_encoder *encoder = NULL;
    kelp_buf_clear(&client->packed);
    kelp_status *status =
        kelp_http_encoder_create(client->allocator, KELP_HTTP_GZIP, &client->packed, &encoder);
    if (status == NULL)
        status = kelp_http_encoder_put(encoder, inout_body->data, inout_body->length);
    if (status == NULL)
        status = kelp_http_encoder_end(encoder);
    kelp_http_encoder_destroy(encoder);
    *inout_body = (kelp_str){client->packed.data, client->packed.length};
    return status != NULL ? status : kelp_buf_status(&client->packed);
}

static int poll_ms(uint64_t now_ns, uint64_t deadline_ns) {
    return (int)KELP_MIN((deadline_ns - now_ns) / NS_PER_MS + 1, (uint64_t)MAX_POLL_MS);
}

/* Runs the transfer until its end or the deadline. */
static void run(kelp_otlp_client *client, kelp_otlp_reply *out) {
    const kelp_curl *curl = client->curl;
    int running = 1, left, ready;
    const char *reason = "the time to stop is over";
    while (curl->curl_multi_perform(client->multi, &running) == CURLE_OK && running > 0) {
        uint64_t now_ns = kelp_now_ns(), deadline_ns = atomic_load(&client->deadline_ns);
        if (now_ns >= deadline_ns)
            break;
        if (curl->curl_multi_poll(client->multi, NULL, 0, poll_ms(now_ns, deadline_ns), &ready) !=
            CURLE_OK)
            break;
    }
    const CURLMsg *message = curl->curl_multi_info_read(client->multi, &left);
    if (message != NULL && message->msg == CURLMSG_DONE) {
        long status = 0;
        if (message->data.result == CURLE_OK &&
            curl->curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK)
            out->status = (unsigned)status;
        reason =
            client->error[0] != 0 ? client->error : curl->curl_easy_strerror(message->data.result);
    }
    snprintf(out->reason, sizeof out->reason, "%s", reason);
}

kelp_status *kelp_otlp_client_send(kelp_otlp_client *client, kelp_str body, kelp_otlp_reply *out) {
    const kelp_curl *curl = client->curl;
    *out = (kelp_otlp_reply){0};
    if (client->gzip)
        KELP_TRY(compress(client, &body));
    kelp_buf_clear(&client->reply);
    client->retry_after_ns = 0;
    client->error[0] = 0;
    curl->curl_easy_setopt(client->easy, CURLOPT_POSTFIELDS, body.data);
    curl->curl_easy_setopt(client->easy, CURLOPT_POSTFIELDSIZE_LARGE, (long long)body.length);
    if (curl->curl_multi_add_handle(client->multi, client->easy) != CURLE_OK)
        return kelp_status_oom();
    run(client, out);
    curl->curl_multi_remove_handle(client->multi, client->easy);
    out->retry_after_ns = client->retry_after_ns;
    if (!client->reply.failed)
        out->body = (kelp_str){client->reply.data, client->reply.length};
    return NULL;
}

void kelp_otlp_client_limit(kelp_otlp_client *client, uint64_t deadline_ns) {
    atomic_store(&client->deadline_ns, deadline_ns);
    client->curl->curl_multi_wakeup(client->multi);
}

/* ---- the object ---- */

static bool add_header(kelp_otlp_client *client, const char *line) {
    curl_slist *longer = client->curl->curl_slist_append(client->headers, line);
    client->headers = longer != NULL ? longer : client->headers;
    return longer != NULL;
}

static bool add_headers(kelp_otlp_client *client, const kelp_otlp_client_options *options) {
    bool good = add_header(client, "Content-Type: application/x-protobuf") &&
                add_header(client, "Expect:"); /* do not wait for 100 Continue */
    if (options->gzip)
        good = good && add_header(client, "Content-Encoding: gzip");
    for (size_t i = 0; i < options->header_count; i++)
        good = good && add_header(client, options->headers[i]);
    return good;
}

/* Sets an option that is a text, which libcurl copies. */
static bool set_text(const kelp_otlp_client *client, int option, const char *text) {
    return text == NULL || client->curl->curl_easy_setopt(client->easy, option, text) == CURLE_OK;
}

static bool configure(kelp_otlp_client *client, const kelp_otlp_client_options *options) {
    const kelp_curl *curl = client->curl;
    CURL *easy = client->easy;
    char agent[64];
    snprintf(agent, sizeof agent, "kelp/%s", options->version);
    curl->curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl->curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl->curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl->curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)options->timeout_ms);
    curl->curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, client->error);
    curl->curl_easy_setopt(easy, CURLOPT_HTTPHEADER, client->headers);
    curl->curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl->curl_easy_setopt(easy, CURLOPT_WRITEDATA, client);
    curl->curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl->curl_easy_setopt(easy, CURLOPT_HEADERDATA, client);
    return set_text(client, CURLOPT_URL, options->url) &&
           set_text(client, CURLOPT_USERAGENT, agent) &&
           set_text(client, CURLOPT_CAINFO, options->ca_file) &&
           set_text(client, CURLOPT_SSLCERT, options->cert_file) &&
           set_text(client, CURLOPT_SSLKEY, options->key_file);
}

void kelp_otlp_client_destroy(kelp_otlp_client *client) {
    if (client == NULL)
        return;
    if (client->easy != NULL)
        client->curl->curl_easy_cleanup(client->easy);
    if (client->multi != NULL)
        client->curl->curl_multi_cleanup(client->multi);
    client->curl->curl_slist_free_all(client->headers);
    kelp_buf_deinit(&client->packed);
    kelp_buf_deinit(&client->reply);
    kelp_free(client->allocator, client, sizeof *client);
}

/* Fails if the build has no zlib. */
static kelp_status *check_gzip(kelp_allocator allocator) {
    kelp_http_encoder *encoder = NULL;
    kelp_buf unused;
    kelp_buf_init(&unused, allocator);
    kelp_status *status = kelp_http_encoder_create(allocator, KELP_HTTP_GZIP, &unused, &encoder);
    kelp_http_encoder_destroy(encoder);
    kelp_buf_deinit(&unused);
    return status;
}

kelp_status *kelp_otlp_client_create(kelp_allocator allocator,
                                     const kelp_otlp_client_options *options,
                                     kelp_otlp_client **out) {
    const kelp_curl *curl;
    kelp_otlp_client *client;
    KELP_TRY(kelp_curl_load(&curl));
    if (options->gzip)
        KELP_TRY(check_gzip(allocator));
    KELP_TRY(KELP_NEW(allocator, kelp_otlp_client, &client));
    client->allocator = allocator;
    client->curl = curl;
    client->gzip = options->gzip;
    atomic_init(&client->deadline_ns, KELP_NEVER_NS);
    kelp_buf_init(&client->packed, allocator);
    kelp_buf_init(&client->reply, allocator);
    client->multi = curl->curl_multi_init();
    client->easy = curl->curl_easy_init();
    if (client->multi == NULL || client->easy == NULL || !add_headers(client, options) ||
        !configure(client, options)) {
        kelp_otlp_client_destroy(client);
        return kelp_status_oom();
    }
    *out = client;
    return NULL;
}
