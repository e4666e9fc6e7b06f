/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading plans of the cpu. */
#include "engine/plan_file.h"

#include "base/alloc.h"
#include "base/json.h"
#include "graph/save.h"

#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static const char magic[8] = {'K', 'E', 'L', 'P', 'P', 'L', 'A', 'N'};
#define ORDER_MARK 0x01020304u
#define ALIGNMENT 64u

#if defined(__x86_64__)
#define PROCESSOR "x86_64"
#elif defined(__aarch64__)
#define PROCESSOR "aarch64"
#else
#define PROCESSOR "other"
#endif

enum { SECTION_INFO, SECTION_GRAPH, SECTION_WEIGHTS, SECTION_COUNT };

typedef struct plan_head {
    char magic[8];
    uint32_t version, head_bytes, section_count, order;
    uint64_t file_bytes;
    char processor[16];
    uint32_t alignment, reserved;
    uint64_t hash; /* of the head with 0 here, and of the table */
} plan_head;
_Static_assert(sizeof(plan_head) == 64, "the head is 64 bytes");

typedef struct plan_section {
    uint32_t kind, reserved;
    uint64_t offset, length, hash;
} plan_section;
_Static_assert(sizeof(plan_section) == 32, "a section is 32 bytes");

static uint64_t hash_head(const plan_head *head, const plan_section *table, size_t count) {
    plan_head copy = *head;
    copy.hash = 0;
    return XXH3_64bits(&copy, sizeof copy) ^ XXH3_64bits(table, count * sizeof *table);
}

/* ---- writing ---- */
static void write_bound(kelp_json_writer *json, const kelp_shape bounds[3]) {
    static const char *const names[] = {"min", "opt", "max"};
    kelp_json_begin_object(json);
    for (int which = 0; which < 3; which++) {
        kelp_json_key(json, names[which]);
        kelp_json_begin_array(json);
        for (int32_t i = 0; i < bounds[which].rank; i++)
            kelp_json_put_i64(json, bounds[which].d[i]);
        kelp_json_end_array(json);
    }
    kelp_json_end_object(json);
}

static void write_info(const kelp_plan_contents *contents, kelp_buf *out) {
    kelp_json_writer json;
    const kelp_builder_config *config = contents->config;
    kelp_json_writer_init(&json, out);
    kelp_json_begin_object(&json);
    kelp_json_key(&json, "name");
    kelp_json_put_cstr(&json, contents->name);
    kelp_json_key(&json, "prepared");
    kelp_json_put_bool(&json, contents->prepared);
    kelp_json_key(&json, "no_fusion");
    kelp_json_put_bool(&json, contents->no_fusion);
    kelp_json_key(&json, "precision");
    kelp_json_put_cstr(&json, kelp_precision_name(contents->precision));
    kelp_json_key(&json, "refittable");
    kelp_json_begin_array(&json);
    for (size_t i = 0; i < contents->refittable_count; i++)
        kelp_json_put_cstr(&json, contents->refittable[i]);
    kelp_json_end_array(&json);
    kelp_json_key(&json, "profiles");
    kelp_json_begin_array(&json);
    size_t profiles = config != NULL ? kelp_builder_config_profile_count(config) : 0;
    for (size_t p = 0; p < profiles; p++) {
        const kelp_profile_shape *shapes = NULL;
        size_t count = kelp_builder_config_profile(config, p, &shapes);
        kelp_json_begin_object(&json);
        for (size_t i = 0; i < count; i++)
            if (shapes[i].has_shape) {
                kelp_json_key(&json, shapes[i].input);
                write_bound(&json, shapes[i].shapes);
            }
        kelp_json_end_object(&json);
    }
    kelp_json_end_array(&json);
    kelp_json_end_object(&json);
}

static void pad(kelp_buf *out) {
    static const char zeros[ALIGNMENT];
    kelp_buf_append(out, zeros, (ALIGNMENT - out->length % ALIGNMENT) % ALIGNMENT);
}

static kelp_status *assemble(const kelp_buf *const parts[SECTION_COUNT], kelp_buf *out) {
    plan_head head = {.version = KELP_PLAN_VERSION,
                      .head_bytes = sizeof head,
                      .section_count = SECTION_COUNT,
                      .order = ORDER_MARK,
                      .processor = PROCESSOR,
                      .alignment = ALIGNMENT};
    plan_section table[SECTION_COUNT];
    size_t offset = sizeof head + sizeof table;
    memcpy(head.magic, magic, sizeof magic);
    for (uint32_t i = 0; i < SECTION_COUNT; i++) {
        offset = (offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        table[i] = (plan_section){.kind = i,
                                  .offset = offset,
                                  .length = parts[i]->length,
                                  .hash = XXH3_64bits(parts[i]->data, parts[i]->length)};
        offset += parts[i]->length;
    }
    head.file_bytes = offset;
    head.hash = hash_head(&head, table, SECTION_COUNT);
    if (kelp_buf_reserve(out, offset) == NULL)
        return kelp_status_oom();
    kelp_buf_append(out, &head, sizeof head);
    kelp_buf_append(out, table, sizeof table);
    for (uint32_t i = 0; i < SECTION_COUNT; i++) {
        pad(out);
        kelp_buf_append(out, parts[i]->data, parts[i]->length);
    }
    return kelp_buf_status(out);
}

kelp_status *kelp_plan_file_write(const kelp_plan_contents *contents, kelp_buf *out) {
    kelp_buf info, graph, weights;
    const kelp_buf *const parts[SECTION_COUNT] = {&info, &graph, &weights};
    kelp_buf_init(&info, out->allocator);
    kelp_buf_init(&graph, out->allocator);
    kelp_buf_init(&weights, out->allocator);
    write_info(contents, &info);
    kelp_status *status = kelp_graph_save(contents->graph, &weights, &graph);
    if (status == NULL)
        status = kelp_buf_status(&info);
    if (status == NULL)
        status = assemble(parts, out);
    kelp_buf_deinit(&info);
    kelp_buf_deinit(&graph);
    kelp_buf_deinit(&weights);
    return status;
}

/* ---- checking ---- */
bool kelp_plan_file_is(const void *data, size_t size_bytes) {
    return size_bytes >= sizeof magic && memcmp(data, magic, sizeof magic) == 0;
}

void kelp_plan_file_seal(void *data, size_t size_bytes) {
    char *bytes = data;
    plan_head head;
    plan_section table[SECTION_COUNT];
    if (size_bytes < sizeof head + sizeof table)
        return;
    memcpy(&head, bytes, sizeof head);
    memcpy(table, bytes + sizeof head, sizeof table);
    head.file_bytes = size_bytes;
    for (uint32_t i = 0; i < SECTION_COUNT; i++)
        if (table[i].offset <= size_bytes && table[i].length <= size_bytes - table[i].offset)
            table[i].hash = XXH3_64bits(bytes + table[i].offset, table[i].length);
    head.hash = hash_head(&head, table, SECTION_COUNT);
    memcpy(bytes, &head, sizeof head);
    memcpy(bytes + sizeof head, table, sizeof table);
}

#define PLAN_FAIL(code, ...) return KELP_ERROR((code), __VA_ARGS__)

static kelp_status *check_head(const plan_head *head, size_t size_bytes, const char *label) {
    if (head->order != ORDER_MARK)
        PLAN_FAIL(KELP_FAILED_PRECONDITION,
                  "%s: the plan was made on a machine of the other byte order", label);
    if (head->version != KELP_PLAN_VERSION || head->head_bytes != sizeof *head)
        PLAN_FAIL(KELP_FAILED_PRECONDITION,
                  "%s: the plan is of version %u, this Kelp reads version %u: build it again",
                  label, head->version, KELP_PLAN_VERSION);
    if (head->file_bytes != size_bytes)
        PLAN_FAIL(KELP_INVALID_ARGUMENT,
                  "%s: the plan is cut short or has bytes behind it: expected %llu, found %zu",
                  label, (unsigned long long)head->file_bytes, size_bytes);
    if (head->section_count != SECTION_COUNT || head->alignment != ALIGNMENT)
        PLAN_FAIL(KELP_INVALID_ARGUMENT,
                  "%s: expected %d sections at multiples of %u, found %u at %u", label,
                  SECTION_COUNT, ALIGNMENT, head->section_count, head->alignment);
    return NULL;
}

static kelp_status *check_section(const char *data, size_t size_bytes, const plan_section *section,
                                  uint32_t kind, const char *label) {
    static const char *const names[] = {"information", "graph", "weights"};
    if (section->kind != kind || section->offset % ALIGNMENT != 0 || section->offset > size_bytes ||
        section->length > size_bytes - section->offset)
        PLAN_FAIL(KELP_INVALID_ARGUMENT, "%s: section %u (%s) lies outside of the plan", label,
                  kind, names[kind]);
    if (XXH3_64bits(data + section->offset, section->length) != section->hash)
        PLAN_FAIL(
            KELP_INVALID_ARGUMENT,
            "%s: section %u (%s) was altered: its hash is not the one that it was written with",
            label, kind, names[kind]);
    return NULL;
}

static kelp_status *check_plan(const char *data, size_t size_bytes, const char *label,
                               plan_section table[SECTION_COUNT]) {
    plan_head head;
    if (size_bytes < sizeof head + SECTION_COUNT * sizeof *table)
        PLAN_FAIL(KELP_INVALID_ARGUMENT, "%s: the plan is cut short: found %zu bytes", label,
                  size_bytes);
    memcpy(&head, data, sizeof head);
    if (memcmp(head.magic, magic, sizeof magic) != 0)
        PLAN_FAIL(KELP_INVALID_ARGUMENT, "%s: this is no plan of the cpu", label);
    KELP_TRY(check_head(&head, size_bytes, label));
    memcpy(table, data + sizeof head, SECTION_COUNT * sizeof *table);
    if (hash_head(&head, table, SECTION_COUNT) != head.hash)
        PLAN_FAIL(KELP_INVALID_ARGUMENT, "%s: the plan's head was altered", label);
    head.processor[sizeof head.processor - 1] = '\0';
    if (strcmp(head.processor, PROCESSOR) != 0)
        PLAN_FAIL(KELP_FAILED_PRECONDITION,
                  "%s: the plan was built for %s, this is %s: build it here", label, head.processor,
                  PROCESSOR);
    size_t end = sizeof head + SECTION_COUNT * sizeof *table;
    for (uint32_t i = 0; i < SECTION_COUNT; i++) {
        KELP_TRY(check_section(data, size_bytes, &table[i], i, label));
        for (; end < table[i].offset; end++)
            if (data[end] != 0)
                PLAN_FAIL(KELP_INVALID_ARGUMENT,
                          "%s: byte %zu, before section %u, was altered: expected 0", label, end,
                          i);
        end = table[i].offset + table[i].length;
    }
    return NULL;
}

/* ---- reading ---- */
static kelp_status *read_bounds(const kelp_json *json, const char *label, kelp_shape bounds[3]) {
    static const char *const names[] = {"min", "opt", "max"};
    for (int which = 0; which < 3; which++) {
        const kelp_json *list = kelp_json_get(json, names[which]);
        if (list == NULL || list->type != KELP_JSON_ARRAY || list->count > KELP_MAX_RANK)
            PLAN_FAIL(KELP_INVALID_ARGUMENT, "%s: a profile lacks '%s'", label, names[which]);
        bounds[which].rank = 0;
        for (const kelp_json *item = list->child; item != NULL; item = item->next)
            bounds[which].d[bounds[which].rank++] = item->i64;
    }
    return NULL;
}

static kelp_status *read_profile(kelp_engine *engine, const kelp_json *json, const char *label,
                                 kelp_engine_profile *out) {
    out->bounds = kelp_arena_array(&engine->arena, engine->input_count + 1, sizeof *out->bounds);
    if (out->bounds == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < engine->input_count; i++)
        out->bounds[i][0].rank = out->bounds[i][1].rank = out->bounds[i][2].rank = -1;
    for (const kelp_json *entry = json->child; entry != NULL; entry = entry->next)
        for (size_t i = 0; i < engine->input_count; i++)
            if (kelp_str_is(entry->key, engine->inputs[i].name))
                KELP_TRY(read_bounds(entry, label, out->bounds[i]));
    return NULL;
}

static kelp_status *read_lists(kelp_engine *engine, const kelp_json *info, const char *label) {
    const kelp_json *profiles = kelp_json_get(info, "profiles");
    const kelp_json *names = kelp_json_get(info, "refittable");
    size_t count = profiles != NULL ? profiles->count : 0;
    size_t name_count = names != NULL ? names->count : 0;
    engine->profiles = KELP_ARENA_ARRAY(&engine->arena, count + 1, kelp_engine_profile);
    engine->refittable = KELP_ARENA_ARRAY(&engine->arena, name_count + 1, const char *);
    if (engine->profiles == NULL || engine->refittable == NULL)
        return kelp_status_oom();
    for (const kelp_json *item = count > 0 ? profiles->child : NULL; item != NULL;
         item = item->next) {
        KELP_TRY(read_profile(engine, item, label, &engine->profiles[engine->profile_count]));
        engine->profile_count++;
    }
    for (const kelp_json *item = name_count > 0 ? names->child : NULL; item != NULL;
         item = item->next) {
        const char *name =
            kelp_arena_strndup(&engine->arena, item->string.data, item->string.length);
        if (name == NULL)
            return kelp_status_oom();
        engine->refittable[engine->refittable_count++] = name;
    }
    return NULL;
}

static bool is_true(const kelp_json *info, const char *key) {
    const kelp_json *value = kelp_json_get(info, key);
    return value != NULL && value->type == KELP_JSON_BOOL && value->boolean;
}

/* Plans of earlier versions have none: float32. */
static kelp_status *read_precision(const kelp_json *info, const char *label, kelp_precision *out) {
    const kelp_json *value = kelp_json_get(info, "precision");
    char name[16] = "f32";
    if (value != NULL && (value->type != KELP_JSON_STRING ||
                          snprintf(name, sizeof name, "%.*s", (int)value->string.length,
                                   value->string.data) >= (int)sizeof name))
        name[0] = '\0';
    if (!kelp_precision_parse(name, out))
        PLAN_FAIL(KELP_INVALID_ARGUMENT, "%s: expected precision f32 or bf16, found another",
                  label);
    return NULL;
}

/* `graph` keeps the bytes. */
static kelp_status *make_engine(kelp_runtime *runtime, kelp_graph *graph, kelp_str text,
                                const char *label, kelp_arena *arena, kelp_engine **out) {
    kelp_json *info = NULL;
    KELP_TRY(kelp_json_parse(arena, label, text.data, text.length, &info));
    kelp_engine_options options = {.struct_size = sizeof options,
                                   .disable_fusion = is_true(info, "no_fusion")};
    KELP_TRY(read_precision(info, label, &options.precision));
    kelp_engine_origin origin = {.prepared = is_true(info, "prepared")};
    kelp_engine *engine = NULL;
    KELP_TRY(kelp_engine_make(runtime, graph, &options, &origin, &engine));
    kelp_status *status = read_lists(engine, info, label);
    if (status != NULL) {
        kelp_engine_release(engine);
        return status;
    }
    *out = engine;
    return NULL;
}

kelp_status *kelp_plan_file_load(kelp_runtime *runtime, const void *data, size_t size_bytes,
                                 const char *label, void (*release)(void *userp), void *userp,
                                 kelp_engine **out) {
    plan_section table[SECTION_COUNT];
    const char *bytes = data;
    kelp_graph *graph = NULL;
    kelp_arena arena;
    kelp_status *status = check_plan(bytes, size_bytes, label, table);
    if (status != NULL) {
        if (release != NULL)
            release(userp);
        return status;
    }
    kelp_str model = {bytes + table[SECTION_GRAPH].offset, table[SECTION_GRAPH].length};
    kelp_str weights = {bytes + table[SECTION_WEIGHTS].offset, table[SECTION_WEIGHTS].length};
    kelp_str text = {bytes + table[SECTION_INFO].offset, table[SECTION_INFO].length};
    KELP_TRY(
        kelp_graph_load_parts(runtime->allocator, model, weights, label, release, userp, &graph));
    kelp_arena_init(&arena, runtime->allocator, 4 << 10);
    status = make_engine(runtime, graph, text, label, &arena, out);
    kelp_arena_deinit(&arena);
    kelp_graph_release(graph);
    return status;
}
