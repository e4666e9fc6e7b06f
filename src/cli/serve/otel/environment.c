/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/otel/environment.h"

#include "base/checked.h"
#include "frontends/http/message.h"

#include <kelp/engine.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define DEFAULT_URL "http://localhost:4318/v1/traces"
#define MAX_ATTRIBUTES 128
#define MAX_HEADERS 64

/* Returns a variable; NULL if it is not set or empty. */
static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value != NULL && value[0] != 0 ? value : NULL;
}

/* Returns OTEL_EXPORTER_OTLP_TRACES_SUFFIX or OTEL_EXPORTER_OTLP_SUFFIX, whose name is stored. */
static const char *exporter_variable(kelp_arena *arena, const char *suffix, const char **out_name) {
    static const char *const prefixes[] = {"OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"};
    for (size_t i = 0; i < KELP_COUNT(prefixes); i++) {
        const char *name = kelp_arena_printf(arena, "%s%s", prefixes[i], suffix);
        const char *value = name != NULL ? variable(name) : NULL;
        *out_name = name;
        if (value != NULL)
            return value;
    }
    return NULL;
}

static kelp_status *bad_variable(const char *name, const char *expected, const char *value) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "variable '%s': expected %s, found '%s'", name,
                      expected, value);
}

/* Stores the number of a variable, if it is set. The message begins as Triton's. */
static kelp_status *read_number(const char *name, const char *value, int64_t min, uint32_t *inout) {
    int64_t number;
    if (value == NULL)
        return NULL;
    if (!kelp_parse_i64(kelp_str_from(value), &number) || number < min || number > INT32_MAX)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "Bad option: \"%s\": expected a number from %lld to %d, found '%s'", name,
                          (long long)min, INT32_MAX, value);
    *inout = (uint32_t)number;
    return NULL;
}

bool kelp_serve_otlp_is_wanted(void) {
    const char *disabled = variable("OTEL_SDK_DISABLED"),
               *exporter = variable("OTEL_TRACES_EXPORTER");
    if (disabled != NULL && strcasecmp(disabled, "true") == 0)
        return false;
    if (exporter != NULL)
        return kelp_http_has_token(kelp_str_from(exporter), "otlp");
    return variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != NULL ||
           variable("OTEL_EXPORTER_OTLP_ENDPOINT") != NULL;
}

/* ---- sampler ---- */

kelp_status *kelp_serve_otlp_sampler(kelp_trace_sampler *out, bool *out_given) {
    static const struct {
        const char *name;
        bool parent_based, has_ratio;
        double ratio;
    } samplers[] = {{"always_on", false, false, 1},
                    {"always_off", false, false, 0},
                    {"traceidratio", false, true, 1},
                    {"parentbased_always_on", true, false, 1},
                    {"parentbased_always_off", true, false, 0},
                    {"parentbased_traceidratio", true, true, 1}};
    const char *name = variable("OTEL_TRACES_SAMPLER");
    const char *argument = variable("OTEL_TRACES_SAMPLER_ARG");
    *out = (kelp_trace_sampler){.parent_based = true, .ratio = 1};
    *out_given = name != NULL;
    for (size_t i = 0; i < KELP_COUNT(samplers) && name != NULL; i++) {
        if (strcmp(name, samplers[i].name) != 0)
            continue;
        *out = (kelp_trace_sampler){samplers[i].parent_based, samplers[i].ratio};
        if (samplers[i].has_ratio && argument != NULL &&
            (!kelp_parse_f64(kelp_str_from(argument), &out->ratio) || !(out->ratio >= 0) ||
             out->ratio > 1))
            return bad_variable("OTEL_TRACES_SAMPLER_ARG", "a number from 0 to 1", argument);
        return NULL;
    }
    return name == NULL
               ? NULL
               : bad_variable("OTEL_TRACES_SAMPLER",
                              "always_on, always_off or traceidratio, each with or without "
                              "'parentbased_' before it",
                              name);
}

/* ---- lists of the form "key=value,key=value", percent-encoded ---- */

/* Returns a decoded copy without surrounding spaces, or NULL if it is malformed or there is no
 * memory. */
static const char *decode(kelp_arena *arena, kelp_str text) {
    size_t length;
    text = kelp_str_trim(text);
    char *copy = kelp_arena_alloc(arena, text.length + 1, 1);
    if (copy == NULL || !kelp_http_percent_decode(text, copy, &length))
        return NULL;
    copy[length] = 0;
    return copy;
}

/* Takes the first entry from a list. */
static kelp_status *next_entry(kelp_arena *arena, const char *name, const char **inout_list,
                               kelp_otlp_attribute *out) {
    const char *list = *inout_list, *comma = strchr(list, ',');
    size_t length = comma != NULL ? (size_t)(comma - list) : strlen(list);
    const char *equals = memchr(list, '=', length);
    *inout_list = list + length + (comma != NULL ? 1 : 0);
    if (equals == NULL)
        return bad_variable(name, "KEY=VALUE,KEY=VALUE", list);
    size_t key = (size_t)(equals - list);
    out->key = decode(arena, (kelp_str){list, key});
    out->value = decode(arena, (kelp_str){equals + 1, length - key - 1});
    return out->key != NULL && out->value != NULL && out->key[0] != 0
               ? NULL
               : bad_variable(name, "KEY=VALUE,KEY=VALUE with percent-encoded values", list);
}

/* ---- resource ---- */

typedef struct attribute_list {
    kelp_otlp_attribute *items;
    size_t count;
} attribute_list;

/* Adds an attribute, or replaces one of the same key. */
static kelp_status *set_attribute(attribute_list *list, const char *key, const char *value) {
    size_t i = 0;
    while (i < list->count && strcmp(list->items[i].key, key) != 0)
        i++;
    if (i == MAX_ATTRIBUTES)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "too many attributes of the resource: expected at most %d",
                          MAX_ATTRIBUTES);
    list->items[i] = (kelp_otlp_attribute){key, value};
    list->count = KELP_MAX(list->count, i + 1);
    return NULL;
}

static kelp_status *read_resource(const char *service_name, kelp_serve_trace_values *inout) {
    static const char variable_name[] = "OTEL_RESOURCE_ATTRIBUTES";
    kelp_arena *arena = &inout->arena;
    attribute_list list = {KELP_ARENA_ARRAY(arena, MAX_ATTRIBUTES, kelp_otlp_attribute), 0};
    if (list.items == NULL)
        return kelp_status_oom();
    KELP_TRY(set_attribute(&list, "service.name", service_name));
    KELP_TRY(set_attribute(&list, "telemetry.sdk.name", "kelp"));
    KELP_TRY(set_attribute(&list, "telemetry.sdk.language", "c"));
    KELP_TRY(set_attribute(&list, "telemetry.sdk.version", kelp_version()));
    for (const char *at = variable(variable_name); at != NULL && *at != 0;) {
        kelp_otlp_attribute entry;
        KELP_TRY(next_entry(arena, variable_name, &at, &entry));
        KELP_TRY(set_attribute(&list, entry.key, entry.value));
    }
    if (variable("OTEL_SERVICE_NAME") != NULL)
        KELP_TRY(set_attribute(&list, "service.name", variable("OTEL_SERVICE_NAME")));
    for (size_t i = 0; i < inout->otel.resource_count; i++) {
        const char *text = inout->otel.resources[i], *equals = strchr(text, '=');
        const char *key = kelp_arena_strndup(arena, text, (size_t)(equals - text));
        if (key == NULL)
            return kelp_status_oom();
        KELP_TRY(set_attribute(&list, key, equals + 1));
    }
    inout->otlp.resource = list.items;
    inout->otlp.resource_count = list.count;
    return NULL;
}

/* ---- client ---- */

/* Returns true for a header that does not break the request. */
static bool is_header(const kelp_otlp_attribute *header) {
    for (const char *c = header->key; *c != 0; c++)
        if (*c <= ' ' || *c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", *c) != NULL)
            return false;
    for (const char *c = header->value; *c != 0; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return false;
    return true;
}

static kelp_status *read_headers(kelp_serve_trace_values *inout) {
    kelp_arena *arena = &inout->arena;
    const char *name, *at = exporter_variable(arena, "HEADERS", &name);
    const char **headers = KELP_ARENA_ARRAY(arena, MAX_HEADERS, const char *);
    size_t count = 0;
    if (headers == NULL)
        return kelp_status_oom();
    while (at != NULL && *at != 0) {
        kelp_otlp_attribute entry;
        KELP_TRY(next_entry(arena, name, &at, &entry));
        if (!is_header(&entry) || count == MAX_HEADERS)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "variable '%s': expected at most %d valid headers, found '%s'", name,
                              MAX_HEADERS, entry.key);
        headers[count] = kelp_arena_printf(arena, "%s: %s", entry.key, entry.value);
        if (headers[count++] == NULL)
            return kelp_status_oom();
    }
    inout->otlp.client.headers = headers;
    inout->otlp.client.header_count = count;
    return NULL;
}

/* Returns true for a host with an optional port, as "localhost:4318" or "[::1]:4318". */
static bool is_host(const char *host, size_t length) {
    const char *bracket = memchr(host, ']', length);
    const char *name_end = bracket != NULL ? bracket + 1 : memchr(host, ':', length);
    int64_t port = 0;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)host[i] <= ' ' || host[i] == 0x7f)
            return false;
    if (length == 0 || name_end == host)
        return false;
    if (name_end == NULL || name_end == host + length)
        return true;
    size_t port_length = length - (size_t)(name_end - host) - 1;
    return *name_end == ':' && kelp_parse_i64((kelp_str){name_end + 1, port_length}, &port) &&
           port > 0 && port <= UINT16_MAX;
}

/* Checks that the URL can be shown to clients, and that it is valid. `source` is the option or the
 * variable. */
static kelp_status *check_url(const char *source, const char *url) {
    const char *scheme_end = strstr(url, "://");
    const char *host = scheme_end != NULL ? scheme_end + strlen("://") : url;
    bool known = scheme_end == NULL || strncmp(url, "http://", strlen("http://")) == 0 ||
                 strncmp(url, "https://", strlen("https://")) == 0;
    size_t length = strcspn(host, "/?#");
    if (known && memchr(host, '@', length) != NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: clients can read a password in the URL: expected a URL without user "
                          "and password; use OTEL_EXPORTER_OTLP_HEADERS for credentials",
                          source);
    return known && is_host(host, length)
               ? NULL
               : KELP_ERROR(KELP_INVALID_ARGUMENT,
                            "%s: expected a URL http://HOST[:PORT][/PATH] or https://…, found '%s'",
                            source, url);
}

static kelp_status *read_url(kelp_serve_trace_values *inout) {
    const char *source = "option '--trace-config': 'opentelemetry,url'", *url = inout->otel.url;
    const char *base = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
    if (url == NULL) {
        source = "variable 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'";
        url = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    }
    if (url == NULL && base != NULL) {
        size_t length = strlen(base);
        KELP_TRY(check_url("variable 'OTEL_EXPORTER_OTLP_ENDPOINT'", base));
        while (length > 0 && base[length - 1] == '/')
            length--;
        url = kelp_arena_printf(&inout->arena, "%.*s/v1/traces", (int)length, base);
        if (url == NULL)
            return kelp_status_oom();
    }
    inout->otlp.client.url = url != NULL ? url : DEFAULT_URL;
    return check_url(source, inout->otlp.client.url);
}

/* Reads the name of a file, which must be readable. */
static kelp_status *read_file_name(kelp_arena *arena, const char *suffix, const char **out) {
    const char *name;
    *out = exporter_variable(arena, suffix, &name);
    return *out == NULL || access(*out, R_OK) == 0
               ? NULL
               : KELP_ERROR(KELP_INVALID_ARGUMENT, "variable '%s': cannot read the file '%s': %s",
                            name, *out, strerror(errno));
}

static kelp_status *read_client(kelp_serve_trace_values *inout) {
    kelp_arena *arena = &inout->arena;
    kelp_otlp_client_options *client = &inout->otlp.client;
    const char *name, *text = exporter_variable(arena, "PROTOCOL", &name);
    if (text != NULL && strcmp(text, "http/protobuf") != 0)
        return bad_variable(name, "http/protobuf", text);
    text = exporter_variable(arena, "COMPRESSION", &name);
    if (text != NULL && strcmp(text, "gzip") != 0 && strcmp(text, "none") != 0)
        return bad_variable(name, "gzip or none", text);
    client->gzip = text != NULL && strcmp(text, "gzip") == 0;
    client->timeout_ms = 10000;
    text = exporter_variable(arena, "TIMEOUT", &name);
    KELP_TRY(read_number(name, text, 0, &client->timeout_ms));
    KELP_TRY(read_file_name(arena, "CERTIFICATE", &client->ca_file));
    KELP_TRY(read_file_name(arena, "CLIENT_CERTIFICATE", &client->cert_file));
    KELP_TRY(read_file_name(arena, "CLIENT_KEY", &client->key_file));
    client->version = kelp_version();
    KELP_TRY(read_url(inout));
    return read_headers(inout);
}

/* ---- batches ---- */

/* Stores the number of the command line, of the environment, or the default. */
static kelp_status *read_batch_number(const char *name, int64_t given, int64_t min,
                                      uint32_t by_default, uint32_t *out) {
    *out = given >= 0 ? (uint32_t)given : by_default;
    return given >= 0 ? NULL : read_number(name, variable(name), min, out);
}

static kelp_status *read_batches(kelp_serve_trace_values *inout) {
    const kelp_serve_otel_settings *otel = &inout->otel;
    kelp_otlp_options *otlp = &inout->otlp;
    KELP_TRY(
        read_batch_number("OTEL_BSP_MAX_QUEUE_SIZE", otel->max_queue, 1, 2048, &otlp->max_queue));
    KELP_TRY(read_batch_number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", otel->max_batch, 1, 512,
                               &otlp->max_batch));
    KELP_TRY(
        read_batch_number("OTEL_BSP_SCHEDULE_DELAY", otel->delay_ms, 0, 5000, &otlp->delay_ms));
    return read_batch_number("OTEL_BSP_EXPORT_TIMEOUT", -1, 0, 30000, &otlp->export_timeout_ms);
}

/* Adds a setting that clients can read. */
static bool show(kelp_serve_trace_values *inout, kelp_trace_shown *list, const char *name,
                 const char *value) {
    const char **values = KELP_ARENA_ARRAY(&inout->arena, 1, const char *);
    if (values == NULL || value == NULL)
        return false;
    values[0] = value;
    list[inout->options.shown_count++] = (kelp_trace_shown){name, values, 1};
    return true;
}

static bool show_number(kelp_serve_trace_values *inout, kelp_trace_shown *list, const char *name,
                        uint32_t value) {
    return show(inout, list, name, kelp_arena_printf(&inout->arena, "%u", value));
}

static kelp_status *show_settings(kelp_serve_trace_values *inout) {
    enum { MAX_SHOWN = 5 };
    const kelp_otlp_options *otlp = &inout->otlp;
    kelp_trace_shown *list = KELP_ARENA_ARRAY(&inout->arena, MAX_SHOWN, kelp_trace_shown);
    if (list == NULL)
        return kelp_status_oom();
    inout->options.shown = list;
    inout->options.shown_count = 0;
    if (inout->otel.resource_count > 0)
        list[inout->options.shown_count++] =
            (kelp_trace_shown){"resource", inout->otel.resources, inout->otel.resource_count};
    return show(inout, list, "url", otlp->client.url) &&
                   show_number(inout, list, "bsp_max_queue_size", otlp->max_queue) &&
                   show_number(inout, list, "bsp_schedule_delay", otlp->delay_ms) &&
                   show_number(inout, list, "bsp_max_export_batch_size", otlp->max_batch)
               ? NULL
               : kelp_status_oom();
}

kelp_status *kelp_serve_otlp_apply(const char *service_name, kelp_serve_trace_values *inout) {
    KELP_TRY(read_client(inout));
    KELP_TRY(read_batches(inout));
    KELP_TRY(read_resource(service_name, inout));
    return show_settings(inout);
}
