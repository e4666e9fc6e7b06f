/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/v2/openapi.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/text/json.h"
#include "frontends/common/services.h"
#include "frontends/v2/routes.h"

#include <stdio.h>

#define MAX_PATTERN_BYTES 128
#define MAX_SCHEME_BYTES 256

/* A range of the text that describes endpoints with a service. */
typedef struct part {
    size_t begin, end;
    uint32_t services; /* 0: all */
} part;

struct kelp_openapi {
    kelp_allocator allocator;
    kelp_buf text;
    part *parts;
    size_t part_count, part_capacity;
};

/* The state of building. */
typedef struct builder {
    const kelp_openapi_options *options;
    kelp_openapi *openapi;
    kelp_json_writer json;
    const kelp_json *paths; /* of openapi.json */
} builder;

/* ---- copies of openapi.json ---- */

static void put_members(kelp_json_writer *json, const kelp_json *object);

static void put_key(kelp_json_writer *json, kelp_str key) {
    char name[MAX_PATTERN_BYTES];
    KELP_ASSERT(key.length < sizeof name);
    memcpy(name, key.data, key.length);
    name[key.length] = 0;
    kelp_json_key(json, name);
}

static void put_value(kelp_json_writer *json, const kelp_json *value) {
    switch (value->type) {
    case KELP_JSON_OBJECT:
        kelp_json_begin_object(json);
        put_members(json, value);
        kelp_json_end_object(json);
        break;
    case KELP_JSON_ARRAY:
        kelp_json_begin_array(json);
        for (const kelp_json *item = value->child; item != NULL; item = item->next)
            put_value(json, item);
        kelp_json_end_array(json);
        break;
    case KELP_JSON_STRING:
        kelp_json_put_string(json, value->string);
        break;
    case KELP_JSON_INT:
        kelp_json_put_i64(json, value->i64);
        break;
    case KELP_JSON_BOOL:
        kelp_json_put_bool(json, value->boolean);
        break;
    default:
        KELP_ASSERT(value->type == KELP_JSON_NULL);
        kelp_json_put_null(json);
    }
}

static void put_members(kelp_json_writer *json, const kelp_json *object) {
    for (const kelp_json *member = object->child; member != NULL; member = member->next) {
        put_key(json, member->key);
        put_value(json, member);
    }
}

/* ---- operations ---- */

/* Converts a pattern of a route to a path: "/v2/models/{model}/infer". With `versions`, the version
 * is a part of the path; openapi.json has no such paths. */
static void to_path(const char *pattern, bool versions, char path[MAX_PATTERN_BYTES]) {
    static const char version[] = "/versions/#";
    char *end = path;
    while (*pattern) {
        const char *name = *pattern == '#'                       ? "{version}"
                           : *pattern != '*'                     ? NULL
                           : !strncmp(pattern - 7, "region/", 7) ? "{region}"
                                                                 : "{model}";
        size_t skipped =
            !versions && !strncmp(pattern, version, sizeof version - 1) ? sizeof version - 1 : 0;
        if (skipped > 0) {
            pattern += skipped;
        } else if (name != NULL) {
            end = stpcpy(end, name);
            pattern++;
        } else {
            *end++ = *pattern++;
        }
        KELP_ASSERT(end < path + MAX_PATTERN_BYTES - 16);
    }
    *end = 0;
}

/* Returns the description of a route's operation. */
static const kelp_json *find_operation(const builder *b, const kelp_v2_row *row) {
    char path[MAX_PATTERN_BYTES];
    to_path(row->pattern, false, path);
    const kelp_json *item = kelp_json_get(b->paths, path);
    const kelp_json *operation = kelp_json_get(item, !strcmp(row->method, "GET") ? "get" : "post");
    KELP_ASSERT(operation != NULL);
    return operation;
}

/* Returns true if clients can use a route for shared memory. Regions in CUDA's memory require a
 * GPU, which is not supported, and a region that is registered requires a name. */
static bool is_shm_provided(const kelp_openapi_options *options, const kelp_v2_row *row) {
    static const char cuda[] = "/v2/cudasharedmemory/";
    if (!strncmp(row->pattern, cuda, sizeof cuda - 1) ||
        !strcmp(row->pattern, "/v2/systemsharedmemory/register"))
        return false;
    return options->shm && (options->register_shm || !strcmp(row->method, "GET"));
}

/* Returns true if clients can use a route. */
static bool is_provided(const kelp_openapi_options *options, const kelp_v2_row *row) {
    size_t length = strlen(row->pattern);
    switch (row->category) {
    case KELP_ACCESS_LOGGING:
        return options->logging;
    case KELP_ACCESS_TRACE:
        return options->tracing;
    case KELP_ACCESS_SHARED_MEMORY:
        return is_shm_provided(options, row);
    case KELP_ACCESS_MODEL_REPOSITORY:
        return options->load_models || strcmp(row->pattern + length - 4, "load") != 0;
    default:
        return true;
    }
}

/* Writes a reference to a component, as a member or, without a key, as an item. */
static void put_reference(kelp_json_writer *json, const char *key, const char *kind,
                          const char *name) {
    char text[MAX_PATTERN_BYTES];
    snprintf(text, sizeof text, "#/components/%s/%s", kind, name);
    if (key != NULL)
        kelp_json_key(json, key);
    kelp_json_begin_object(json);
    kelp_json_key(json, "$ref");
    kelp_json_put_cstr(json, text);
    kelp_json_end_object(json);
}

/* Adds the responses that every request may have, unless the operation describes them. */
static void put_responses(builder *b, const kelp_json *responses, const kelp_access_needs *needs) {
    static const char *const common[] = {"400", "408", "413", "429", "431", "500", "503"};
    kelp_json_begin_object(&b->json);
    put_members(&b->json, responses);
    for (size_t i = 0; i < KELP_COUNT(common); i++)
        if (kelp_json_get(responses, common[i]) == NULL)
            put_reference(&b->json, common[i], "responses", common[i]);
    if (needs->token)
        put_reference(&b->json, "401", "responses", "401");
    if (needs->header != NULL)
        put_reference(&b->json, "403", "responses", "403");
    kelp_json_end_object(&b->json);
}

/* Returns the name of the scheme for a header of restricted APIs. */
static const char *scheme_name(const char *header, char name[MAX_SCHEME_BYTES]) {
    snprintf(name, MAX_SCHEME_BYTES, "restricted-%s", header);
    return name;
}

static void put_security(builder *b, const kelp_access_needs *needs) {
    kelp_json_key(&b->json, "security");
    kelp_json_begin_array(&b->json);
    kelp_json_begin_object(&b->json);
    if (needs->token) {
        kelp_json_key(&b->json, "token");
        kelp_json_begin_array(&b->json);
        kelp_json_end_array(&b->json);
    }
    if (needs->header != NULL) {
        char name[MAX_SCHEME_BYTES];
        kelp_json_key(&b->json, scheme_name(needs->header, name));
        kelp_json_begin_array(&b->json);
        kelp_json_end_array(&b->json);
    }
    kelp_json_end_object(&b->json);
    kelp_json_end_array(&b->json);
}

static void put_operation(builder *b, const kelp_v2_row *row) {
    const kelp_json *operation = find_operation(b, row);
    kelp_access_needs needs = kelp_access_needs_of(b->options->access, row->category);
    kelp_json_key(&b->json, !strcmp(row->method, "GET") ? "get" : "post");
    kelp_json_begin_object(&b->json);
    for (const kelp_json *m = operation->child; m != NULL; m = m->next) {
        put_key(&b->json, m->key);
        if (kelp_str_is(m->key, "responses")) {
            put_responses(b, m, &needs);
        } else if (kelp_str_is(m->key, "operationId") && strchr(row->pattern, '#') != NULL) {
            char id[MAX_PATTERN_BYTES];
            snprintf(id, sizeof id, "%.*sOfVersion", KELP_STR_ARG(m->string));
            kelp_json_put_cstr(&b->json, id);
        } else {
            put_value(&b->json, m);
        }
    }
    if (needs.token || needs.header != NULL)
        put_security(b, &needs);
    kelp_json_end_object(&b->json);
}

/* Writes the parameters of a path. */
static void put_parameters(builder *b, const char *path) {
    static const char *const names[] = {"model", "version", "region"};
    kelp_json_key(&b->json, "parameters");
    kelp_json_begin_array(&b->json);
    for (size_t i = 0; i < KELP_COUNT(names); i++) {
        char braces[16];
        snprintf(braces, sizeof braces, "{%s}", names[i]);
        if (strstr(path, braces) != NULL)
            put_reference(&b->json, NULL, "parameters", names[i]);
    }
    kelp_json_end_array(&b->json);
}

/* ---- the description ---- */

/* Ends a part of the text. */
static kelp_status *end_part(builder *b, uint32_t services) {
    kelp_openapi *openapi = b->openapi;
    size_t begin = openapi->part_count ? openapi->parts[openapi->part_count - 1].end : 0;
    KELP_TRY(kelp_grow(openapi->allocator, (void **)&openapi->parts, &openapi->part_capacity,
                       openapi->part_count + 1, sizeof *openapi->parts));
    openapi->parts[openapi->part_count++] = (part){begin, openapi->text.length, services};
    return NULL;
}

/* Writes the routes from `first` to `end`, which have the same pattern. */
static kelp_status *put_path(builder *b, size_t first, size_t end) {
    char path[MAX_PATTERN_BYTES];
    size_t provided = 0;
    for (size_t i = first; i < end; i++)
        provided += is_provided(b->options, &kelp_v2_rows[i]);
    if (provided == 0)
        return NULL;
    to_path(kelp_v2_rows[first].pattern, true, path);
    kelp_json_key(&b->json, path);
    kelp_json_begin_object(&b->json);
    put_parameters(b, path);
    for (size_t i = first; i < end; i++)
        if (is_provided(b->options, &kelp_v2_rows[i]))
            put_operation(b, &kelp_v2_rows[i]);
    kelp_json_end_object(&b->json);
    return end_part(b, kelp_v2_rows[first].service);
}

static kelp_status *put_paths(builder *b) {
    kelp_json_key(&b->json, "paths");
    kelp_json_begin_object(&b->json);
    KELP_TRY(end_part(b, 0));
    for (size_t i = 0, end; i < kelp_v2_row_count; i = end) {
        end = i + 1;
        while (end < kelp_v2_row_count &&
               !strcmp(kelp_v2_rows[i].pattern, kelp_v2_rows[end].pattern))
            end++;
        KELP_TRY(put_path(b, i, end));
    }
    kelp_json_end_object(&b->json);
    return NULL;
}

static void put_info(builder *b) {
    kelp_json_key(&b->json, "info");
    kelp_json_begin_object(&b->json);
    kelp_json_key(&b->json, "title");
    kelp_json_put_cstr(&b->json, "Kelp");
    kelp_json_key(&b->json, "description");
    kelp_json_put_cstr(&b->json, "The KServe v2 inference protocol with the extensions of Triton");
    kelp_json_key(&b->json, "version");
    kelp_json_put_string(&b->json, b->options->version);
    kelp_json_end_object(&b->json);
}

static void put_scheme(builder *b, const char *key, const char *const members[][2], size_t count) {
    kelp_json_key(&b->json, key);
    kelp_json_begin_object(&b->json);
    for (size_t i = 0; i < count; i++) {
        kelp_json_key(&b->json, members[i][0]);
        kelp_json_put_cstr(&b->json, members[i][1]);
    }
    kelp_json_end_object(&b->json);
}

/* Returns true if a category before this one requires the same header. */
static bool is_repeated(const kelp_access *access, kelp_access_category category,
                        const char *header) {
    for (kelp_access_category c = 0; c < category; c++) {
        const char *other = kelp_access_needs_of(access, c).header;
        if (other != NULL && !strcmp(other, header))
            return true;
    }
    return false;
}

static void put_schemes(builder *b) {
    const kelp_access *access = b->options->access;
    kelp_json_key(&b->json, "securitySchemes");
    kelp_json_begin_object(&b->json);
    if (kelp_access_needs_of(access, KELP_ACCESS_OTHER).token) {
        const char *const token[][2] = {{"type", "http"}, {"scheme", "bearer"}};
        put_scheme(b, "token", token, KELP_COUNT(token));
    }
    for (kelp_access_category c = 0; c < KELP_ACCESS_OTHER; c++) {
        char name[MAX_SCHEME_BYTES];
        const char *header = kelp_access_needs_of(access, c).header;
        if (header == NULL || is_repeated(access, c, header))
            continue;
        const char *const key[][2] = {{"type", "apiKey"}, {"in", "header"}, {"name", header}};
        put_scheme(b, scheme_name(header, name), key, KELP_COUNT(key));
    }
    kelp_json_end_object(&b->json);
}

static kelp_status *build(builder *b, const kelp_json *document) {
    b->paths = kelp_json_get(document, "paths");
    kelp_json_writer_init(&b->json, &b->openapi->text);
    kelp_json_begin_object(&b->json);
    kelp_json_key(&b->json, "openapi");
    put_value(&b->json, kelp_json_get(document, "openapi"));
    put_info(b);
    KELP_TRY(put_paths(b));
    kelp_json_key(&b->json, "components");
    kelp_json_begin_object(&b->json);
    put_schemes(b);
    put_members(&b->json, kelp_json_get(document, "components"));
    kelp_json_end_object(&b->json);
    kelp_json_end_object(&b->json);
    KELP_TRY(end_part(b, 0));
    return kelp_buf_status(&b->openapi->text);
}

kelp_status *kelp_openapi_create(const kelp_openapi_options *options, kelp_openapi **out) {
    kelp_openapi *openapi;
    kelp_arena arena;
    kelp_json *document = NULL;
    KELP_TRY(KELP_NEW(options->allocator, kelp_openapi, &openapi));
    openapi->allocator = options->allocator;
    kelp_buf_init(&openapi->text, options->allocator);
    kelp_arena_init(&arena, options->allocator, 0);
    kelp_status *status = kelp_json_parse(&arena, "openapi.json", (const char *)kelp_openapi_json,
                                          kelp_openapi_json_bytes, &document);
    builder b = {.options = options, .openapi = openapi};
    if (status == NULL)
        status = build(&b, document);
    kelp_arena_deinit(&arena);
    if (status != NULL) {
        kelp_openapi_destroy(openapi);
        return status;
    }
    *out = openapi;
    return NULL;
}

void kelp_openapi_destroy(kelp_openapi *openapi) {
    if (openapi == NULL)
        return;
    kelp_buf_deinit(&openapi->text);
    kelp_free(openapi->allocator, openapi->parts, openapi->part_capacity * sizeof *openapi->parts);
    kelp_free(openapi->allocator, openapi, sizeof *openapi);
}

bool kelp_openapi_next(const kelp_openapi *openapi, uint32_t services, size_t *inout_part,
                       kelp_str *out) {
    const part *parts = openapi->parts;
    size_t i = *inout_part;
    while (i < openapi->part_count && parts[i].services && !(parts[i].services & services))
        i++;
    if (i == openapi->part_count)
        return false;
    size_t begin = parts[i].begin;
    size_t end = begin;
    for (; i < openapi->part_count && (!parts[i].services || parts[i].services & services); i++)
        end = parts[i].end;
    *inout_part = i;
    *out = (kelp_str){openapi->text.data + begin, end - begin};
    return true;
}
