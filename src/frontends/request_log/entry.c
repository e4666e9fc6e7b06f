/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/request_log/entry.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/text/json.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <time.h>

#define MAX_PATH_BYTES 2048
#define MAX_NAME_BYTES 256 /* of other texts */

kelp_http_peer kelp_http_peer_of(const struct sockaddr *address) {
    kelp_http_peer peer = {.family = (uint8_t)address->sa_family};
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;
        memcpy(peer.address, &in->sin_addr, sizeof in->sin_addr);
        peer.port = ntohs(in->sin_port);
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)(const void *)address;
        memcpy(peer.address, &in->sin6_addr, sizeof in->sin6_addr);
        peer.port = ntohs(in->sin6_port);
    }
    return peer;
}

/* ---- members ---- */

/* Begins a member; `key` contains its quotes, the colon, and a comma before it. */
static void put_key(kelp_request_entry *entry, const char *key) {
    kelp_buf_append_cstr(&entry->line, key);
}

static void put_text(kelp_request_entry *entry, const char *key, kelp_str text, size_t limit) {
    put_key(entry, key);
    kelp_json_escape(&entry->line, (kelp_str){text.data, KELP_MIN(text.length, limit)});
}

/* Writes a number with leading zeros. */
static char *put_digits(char *out, unsigned value, int digits) {
    for (int i = digits - 1; i >= 0; i--, value /= 10)
        out[i] = (char)('0' + value % 10);
    return out + digits;
}

static void put_time(kelp_request_entry *entry, uint64_t wall_ns) {
    static const struct {
        char before;
        int digits;
    } parts[] = {{'"', 4}, {'-', 2}, {'-', 2}, {'T', 2}, {':', 2}, {':', 2}, {'.', 6}};
    time_t seconds = (time_t)(wall_ns / UINT64_C(1000000000));
    struct tm utc = {0};
    char text[32], *end = text;
    (void)gmtime_r(&seconds, &utc);
    const unsigned values[KELP_COUNT(parts)] = {(unsigned)utc.tm_year + 1900,
                                                (unsigned)utc.tm_mon + 1,
                                                (unsigned)utc.tm_mday,
                                                (unsigned)utc.tm_hour,
                                                (unsigned)utc.tm_min,
                                                (unsigned)utc.tm_sec,
                                                (unsigned)(wall_ns % UINT64_C(1000000000) / 1000)};
    for (size_t i = 0; i < KELP_COUNT(parts); i++) {
        *end++ = parts[i].before;
        end = put_digits(end, values[i], parts[i].digits);
    }
    *end++ = 'Z';
    *end++ = '"';
    put_key(entry, "{\"time\":");
    kelp_buf_append(&entry->line, text, (size_t)(end - text));
}

static void put_peer(kelp_request_entry *entry, const kelp_http_peer *peer) {
    char text[INET6_ADDRSTRLEN + 16] = "unix", address[INET6_ADDRSTRLEN];
    if (peer->family == AF_INET || peer->family == AF_INET6) {
        bool is_v6 = peer->family == AF_INET6;
        (void)inet_ntop(peer->family, peer->address, address, sizeof address);
        snprintf(text, sizeof text, "%s%s%s:%u", is_v6 ? "[" : "", address, is_v6 ? "]" : "",
                 (unsigned)peer->port);
    }
    put_text(entry, ",\"client\":", kelp_str_from(text), sizeof text);
}

/* ---- the entry ---- */

void kelp_request_entry_begin(kelp_request_entry *entry, kelp_request_log *log,
                              const kelp_http_peer *peer, const kelp_request_facts *facts) {
    entry->log = log;
    if (log == NULL)
        return;
    entry->received_bytes = entry->sent_bytes = 0;
    entry->version = -1;
    entry->bodyless = kelp_str_is(facts->method, "HEAD");
    entry->has_model = entry->has_id = false;
    kelp_buf_clear(&entry->line);
    put_time(entry, kelp_wall_now_ns() - facts->age_ns);
    put_peer(entry, peer);
    put_text(entry, ",\"protocol\":", kelp_str_from(facts->protocol), MAX_NAME_BYTES);
    put_text(entry, ",\"method\":", facts->method, MAX_NAME_BYTES);
    put_text(entry, ",\"path\":", facts->path, MAX_PATH_BYTES);
    if (facts->user_agent != NULL)
        put_text(entry, ",\"user_agent\":", *facts->user_agent, MAX_NAME_BYTES);
    if (facts->trace_id.length > 0)
        put_text(entry, ",\"trace_id\":", facts->trace_id, MAX_NAME_BYTES);
}

void kelp_request_entry_set_model(kelp_request_entry *entry, const char *model, int64_t version) {
    if (entry->log == NULL || entry->has_model || model[0] == 0)
        return;
    entry->has_model = true;
    entry->version = version;
    put_text(entry, ",\"model\":", kelp_str_from(model), MAX_NAME_BYTES);
}

void kelp_request_entry_set_id(kelp_request_entry *entry, const char *id) {
    if (entry->log == NULL || entry->has_id || id == NULL || id[0] == 0)
        return;
    entry->has_id = true;
    put_text(entry, ",\"request_id\":", kelp_str_from(id), MAX_NAME_BYTES);
}

static void put_number(kelp_request_entry *entry, const char *key, uint64_t value) {
    put_key(entry, key);
    kelp_buf_append_u64(&entry->line, value);
}

void kelp_request_entry_end(kelp_request_entry *entry, const kelp_request_result *result) {
    kelp_buf *line = &entry->line;
    if (entry->log == NULL)
        return;
    if (entry->version >= 0)
        put_number(entry, ",\"version\":", (uint64_t)entry->version);
    put_number(entry, ",\"status\":", result->status);
    if (result->rpc_status != NULL) {
        put_key(entry, ",\"grpc_status\":");
        kelp_buf_append_str(line, *result->rpc_status);
    }
    put_number(entry, ",\"bytes_in\":", result->received_bytes + entry->received_bytes);
    put_number(entry, ",\"bytes_out\":", entry->sent_bytes);
    put_number(entry, ",\"duration_us\":", result->duration_ns / 1000);
    if (result->aborted)
        put_key(entry, ",\"aborted\":true");
    put_key(entry, "}\n");
    kelp_request_log_put(entry->log, (kelp_str){line->data, line->failed ? 0 : line->length});
    kelp_buf_clear(line);
    entry->log = NULL;
}
