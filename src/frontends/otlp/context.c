/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/otlp/context.h"

#include "base/checked.h"
#include "base/clock.h"

#include <sys/random.h>
#include <unistd.h>

#define KNOWN_FLAGS (KELP_TRACE_SAMPLED | KELP_TRACE_RANDOM)
#define MAX_MEMBERS 32
#define MAX_KEY 256
#define MAX_TENANT 241
#define MAX_SYSTEM 14
#define MAX_VALUE 256

/* ---- traceparent ---- */

/* Returns the value of a lower-case hexadecimal digit, or -1. */
static int digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parses 2 * `count` digits. */
static bool parse_bytes(const char *text, unsigned char *out, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

static bool is_zero(const unsigned char *bytes, size_t count) {
    unsigned sum = 0;
    for (size_t i = 0; i < count; i++)
        sum |= bytes[i];
    return sum == 0;
}

bool kelp_traceparent_parse(kelp_str text, kelp_trace_context *out) {
    enum { TRACE = 3, SPAN = 36, FLAGS = 53, LENGTH = 55 };
    unsigned char version, flags;
    if (text.length < LENGTH || !parse_bytes(text.data, &version, 1) || version == 0xff)
        return false;
    /* A later version may append fields. */
    if (text.length > LENGTH && (version == 0 || text.data[LENGTH] != '-'))
        return false;
    if (text.data[TRACE - 1] != '-' || text.data[SPAN - 1] != '-' || text.data[FLAGS - 1] != '-')
        return false;
    *out = (kelp_trace_context){0};
    if (!parse_bytes(text.data + TRACE, out->trace.bytes, sizeof out->trace.bytes) ||
        !parse_bytes(text.data + SPAN, out->span.bytes, sizeof out->span.bytes) ||
        !parse_bytes(text.data + FLAGS, &flags, 1))
        return false;
    out->flags = flags & KNOWN_FLAGS;
    return !is_zero(out->trace.bytes, sizeof out->trace.bytes) &&
           !is_zero(out->span.bytes, sizeof out->span.bytes);
}

static char *format_bytes(const unsigned char *bytes, size_t count, char *out) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    return out;
}

void kelp_traceparent_format(const kelp_trace_context *context, char out[KELP_TRACEPARENT_SIZE]) {
    const unsigned char version = 0, flags = (unsigned char)context->flags;
    char *at = format_bytes(&version, 1, out);
    *at++ = '-';
    at = format_bytes(context->trace.bytes, sizeof context->trace.bytes, at);
    *at++ = '-';
    at = format_bytes(context->span.bytes, sizeof context->span.bytes, at);
    *at++ = '-';
    at = format_bytes(&flags, 1, at);
    *at = 0;
}

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

static kelp_str trim(kelp_str text) {
    while (text.length > 0 && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = (kelp_str){text.data + 1, text.length - 1};
    while (text.length > 0 &&
           (text.data[text.length - 1] == ' ' || text.data[text.length - 1] == '\t'))
        text.length--;
    return text;
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
        if (!add_member(list, trim((kelp_str){rest.data, length})))
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
