/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/otlp/context.h"

#include "base/checked.h"
#include "base/clock.h"

#include <sys/random.h>
#include <unistd.h>

#define MAX_MEMBERS 32
#define MAX_KEY 256
#define MAX_TENANT 241
#define MAX_SYSTEM 14
#define MAX_VALUE 256

/* ---- tracestate ---- */

static bool is_letter(char c) {
    return c >= 'a' && c <= 'z';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Returns true for a part of a key: its first character, and the others. */
static bool is_key_part(kelp_str part, size_t max, bool may_begin_with_digit) {
    if (part.length == 0 || part.length > max)
        return false;
    if (!is_letter(part.data[0]) && !(may_begin_with_digit && is_digit(part.data[0])))
        return false;
    for (size_t i = 1; i < part.length; i++) {
        char c = part.data[i];
        if (!is_letter(c) && !is_digit(c) && c != '_' && c != '-' && c != '*' && c != '/')
            return false;
    }
    return true;
}

static bool is_key(kelp_str key) {
    const char *at = key.length > 0 ? memchr(key.data, '@', key.length) : NULL;
    if (at == NULL)
        return is_key_part(key, MAX_KEY, false);
    size_t tenant = (size_t)(at - key.data);
    return is_key_part((kelp_str){key.data, tenant}, MAX_TENANT, true) &&
           is_key_part((kelp_str){at + 1, key.length - tenant - 1}, MAX_SYSTEM, false);
}

static bool is_value(kelp_str value) {
    if (value.length == 0 || value.length > MAX_VALUE)
        return false;
    for (size_t i = 0; i < value.length; i++) {
        char c = value.data[i];
        if (c < 0x20 || c > 0x7e || c == ',' || c == '=')
            return false;
    }
    return value.data[value.length - 1] != ' ';
}

/* The members of a list, which is written to `text`. */
typedef struct state_list {
    kelp_str keys[MAX_MEMBERS];
    size_t count;
    char *text;
    size_t length;
} state_list;

/* Appends a member. Returns false if it is malformed or one too many. */
static bool add_member(state_list *list, kelp_str member) {
    if (member.length == 0)
        return true;
    const char *equals = memchr(member.data, '=', member.length);
    if (equals == NULL || list->count == MAX_MEMBERS)
        return false;
    kelp_str key = {member.data, (size_t)(equals - member.data)};
    kelp_str value = {equals + 1, member.length - key.length - 1};
    if (!is_key(key) || !is_value(value))
        return false;
    for (size_t i = 0; i < list->count; i++)
        if (kelp_str_equal(list->keys[i], key))
            return false;
    list->keys[list->count++] = key;
    if (list->length > 0)
        list->text[list->length++] = ',';
    memcpy(list->text + list->length, member.data, member.length);
    list->length += member.length;
    return true;
}

static bool add_members(state_list *list, kelp_str rest) {
    while (rest.length > 0) {
        const char *comma = memchr(rest.data, ',', rest.length);
        size_t length = comma != NULL ? (size_t)(comma - rest.data) : rest.length;
        if (!add_member(list, kelp_str_trim((kelp_str){rest.data, length})))
            return false;
        length += comma != NULL ? 1 : 0;
        rest = (kelp_str){rest.data + length, rest.length - length};
    }
    return true;
}

static bool is_state(const kelp_http_header *header) {
    return kelp_str_equal_nocase(header->name, KELP_STR("tracestate"));
}

kelp_str kelp_tracestate_parse(kelp_arena *arena, const kelp_http_header *headers, size_t count) {
    state_list list = {0};
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += is_state(&headers[i]) ? headers[i].value.length + 1 : 0;
    list.text = total > 0 ? kelp_arena_alloc(arena, total, 1) : NULL;
    for (size_t i = 0; i < count && list.text != NULL; i++)
        if (is_state(&headers[i]) && !add_members(&list, headers[i].value))
            return (kelp_str){"", 0};
    return (kelp_str){list.text != NULL ? list.text : "", list.length};
}

void kelp_trace_context_read(kelp_arena *arena, const kelp_http_request *request,
                             kelp_trace_context *out) {
    const kelp_str *parent = NULL;
    size_t parents = 0;
    *out = (kelp_trace_context){0};
    for (size_t i = 0; i < request->header_count; i++) {
        if (kelp_str_equal_nocase(request->headers[i].name, KELP_STR("traceparent"))) {
            parent = &request->headers[i].value;
            parents++;
        }
    }
    if (parents != 1 || !kelp_traceparent_parse(*parent, out)) {
        *out = (kelp_trace_context){0};
        return;
    }
    out->state = kelp_tracestate_parse(arena, request->headers, request->header_count);
}

/* ---- identifiers ---- */

void kelp_trace_ids_init(kelp_trace_ids *ids) {
    atomic_init(&ids->next, 1);
    if (getrandom(ids->seeds, sizeof ids->seeds, GRND_NONBLOCK) == (ssize_t)sizeof ids->seeds)
        return;
    ids->seeds[0] = kelp_wall_now_ns(); /* before the system has random bytes */
    ids->seeds[1] = kelp_now_ns() ^ (uint64_t)getpid() << 32;
    ids->seeds[2] = (uint64_t)(uintptr_t)ids;
}

/* Mixes a number so that each bit of the result depends on each bit of it (splitmix64). Source: G.
 * Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", 2014. */
static uint64_t mix(uint64_t x) {
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Writes random bytes that are not all zero. */
static void generate(kelp_trace_ids *ids, const uint64_t *seeds, unsigned char *out, size_t words) {
    uint64_t values[2] = {0};
    while (values[0] == 0 && values[1] == 0) {
        uint64_t step = atomic_fetch_add_explicit(&ids->next, 1, memory_order_relaxed);
        for (size_t i = 0; i < words; i++)
            values[i] = mix(seeds[i] + step * UINT64_C(0x9e3779b97f4a7c15));
    }
    memcpy(out, values, words * sizeof *values);
}

kelp_trace_id kelp_trace_ids_trace(kelp_trace_ids *ids) {
    kelp_trace_id id;
    generate(ids, ids->seeds, id.bytes, 2);
    return id;
}

kelp_span_id kelp_trace_ids_span(kelp_trace_ids *ids) {
    kelp_span_id id;
    generate(ids, ids->seeds + 2, id.bytes, 1);
    return id;
}
