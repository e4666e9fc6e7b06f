/* SPDX-License-Identifier: Apache-2.0 */
/* Loads engine images. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/text/json.h"
#include "base/map.h"
#include "cpu/image/image.h"

#include <string.h>
#include <sys/mman.h>

/* ---- information ---- */
static kelp_status *read_bounds(const kelp_json *json, const char *label, kelp_shape bounds[3]) {
    static const char *const names[] = {"min", "opt", "max"};
    for (int which = 0; which < 3; which++) {
        const kelp_json *list = kelp_json_get(json, names[which]);
        if (list == NULL || list->type != KELP_JSON_ARRAY || list->count > KELP_MAX_RANK)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: a profile lacks '%s'", label,
                              names[which]);
        bounds[which].rank = 0;
        for (const kelp_json *item = list->child; item != NULL; item = item->next)
            bounds[which].d[bounds[which].rank++] = item->i64;
    }
    return NULL;
}

/* Allocates the bounds of all inputs in all profiles, with rank -1. */
static kelp_status *reserve_bounds(kelp_cpu_engine *engine, size_t profiles,
                                   kelp_shape (**out)[3]) {
    size_t count;
    if (!kelp_size_mul(profiles, engine->input_count, &count))
        return kelp_status_oom();
    *out = kelp_arena_array(&engine->arena, count + 1, sizeof **out);
    if (*out == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < 3 * count; i++)
        (*out)[i / 3][i % 3].rank = -1;
    return NULL;
}

/* Reads an entry, which has bounds of the shape, of the values, or of both. `input` is an index
 * over all profiles. */
static kelp_status *read_entry(kelp_cpu_engine *engine, const kelp_json *entry, const char *label,
                               size_t input) {
    const kelp_json *values = kelp_json_get(entry, "values");
    KELP_ASSERT(input < engine->profile_count * engine->input_count);
    if (values != NULL && values->type != KELP_JSON_OBJECT)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: 'values' of a profile has the wrong type: expected an object",
                          label);
    if (values != NULL && engine->profile_values == NULL)
        KELP_TRY(reserve_bounds(engine, engine->profile_count, &engine->profile_values));
    if (values != NULL)
        KELP_TRY(read_bounds(values, label, engine->profile_values[input]));
    return values == NULL || kelp_json_get(entry, "min") != NULL
               ? read_bounds(entry, label, engine->profile_shapes[input])
               : NULL;
}

static kelp_status *read_profile(kelp_cpu_engine *engine, const kelp_json *json, const char *label,
                                 size_t profile) {
    for (const kelp_json *entry = json->child; entry != NULL; entry = entry->next)
        for (size_t i = 0; i < engine->input_count; i++)
            if (kelp_str_is(entry->key, engine->inputs[i].name))
                KELP_TRY(read_entry(engine, entry, label, profile * engine->input_count + i));
    return NULL;
}

/* Reads the names of refittable weights. They are unique, because check_stripped adds their sizes.
 */
static kelp_status *read_names(kelp_cpu_engine *engine, const kelp_json *names, const char *label,
                               kelp_map *seen) {
    size_t count = names != NULL ? names->count : 0;
    engine->refittable = KELP_ARENA_ARRAY(&engine->arena, count + 1, const char *);
    if (engine->refittable == NULL)
        return kelp_status_oom();
    for (const kelp_json *item = count > 0 ? names->child : NULL; item != NULL; item = item->next) {
        char *name = kelp_arena_strndup(&engine->arena, item->string.data, item->string.length);
        if (name == NULL)
            return kelp_status_oom();
        if (kelp_map_find(seen, kelp_str_from(name), NULL))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "%s: 'refittable' contains the name '%s' twice", label, name);
        KELP_TRY(kelp_map_put(seen, kelp_str_from(name), name));
        engine->refittable[engine->refittable_count++] = name;
    }
    return NULL;
}

static kelp_status *read_lists(kelp_cpu_engine *engine, const kelp_json *info, const char *label) {
    const kelp_json *profiles = kelp_json_get(info, "profiles");
    size_t count = profiles != NULL ? profiles->count : 0;
    kelp_map seen;
    size_t profile = 0;
    engine->profile_count = count;
    KELP_TRY(reserve_bounds(engine, count, &engine->profile_shapes));
    for (const kelp_json *item = count > 0 ? profiles->child : NULL; item != NULL;
         item = item->next)
        KELP_TRY(read_profile(engine, item, label, profile++));
    kelp_map_init(&seen, engine->allocator);
    kelp_status *status = read_names(engine, kelp_json_get(info, "refittable"), label, &seen);
    kelp_map_deinit(&seen);
    return status;
}

static bool is_true(const kelp_json *info, const char *key) {
    const kelp_json *value = kelp_json_get(info, key);
    return value != NULL && value->type == KELP_JSON_BOOL && value->boolean;
}

static kelp_status *read_precision(const kelp_json *info, const char *label, kelp_precision *out) {
    const kelp_json *value = kelp_json_get(info, "precision");
    char name[16] = "";
    if (value != NULL && value->type == KELP_JSON_STRING && value->string.length < sizeof name)
        memcpy(name, value->string.data, value->string.length);
    if (!kelp_precision_parse(name, out))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: 'precision' has an unknown value: expected f32 or bf16", label);
    return NULL;
}

static kelp_status *read_stripped(const kelp_json *info, const char *label, size_t *out) {
    const kelp_json *value = kelp_json_get(info, "stripped_bytes");
    *out = 0;
    if (value == NULL || value->type != KELP_JSON_INT || value->i64 < 0 ||
        value->i64 > (int64_t)1 << 46)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: 'stripped_bytes' is missing or out of range",
                          label);
    *out = (size_t)value->i64;
    return NULL;
}

/* ---- bytes ---- */
/* The bytes that the graph borrows. Stripped weights are read-only pages of zeros, which use
 * address space but no memory. */
typedef struct image_bytes {
    kelp_allocator allocator;
    void (*release)(void *userp);
    void *userp;
    void *stripped;
    size_t stripped_bytes;
} image_bytes;

static void release_bytes(void *userp) {
    image_bytes *bytes = userp;
    if (bytes->stripped != NULL)
        munmap(bytes->stripped, bytes->stripped_bytes);
    if (bytes->release != NULL)
        bytes->release(bytes->userp);
    kelp_free(bytes->allocator, bytes, sizeof *bytes);
}

static kelp_status *reserve_stripped(image_bytes *bytes, size_t size_bytes, const char *label) {
    if (size_bytes == 0)
        return NULL;
    void *pages =
        mmap(NULL, size_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                          "%s: no address space for %zu bytes of stripped weights", label,
                          size_bytes);
    bytes->stripped = pages;
    bytes->stripped_bytes = size_bytes;
    return NULL;
}

/* ---- the engine ---- */
typedef struct reader {
    kelp_runtime *runtime;
    const char *label, *data;
    kelp_cpu_image_section table[KELP_SECTION_COUNT];
    kelp_str parts[KELP_PART_COUNT];
    kelp_json *info;
} reader;

static kelp_str section(const reader *r, int kind) {
    KELP_ASSERT(kind >= 0 && kind < KELP_SECTION_COUNT);
    return (kelp_str){r->data + r->table[kind].offset, r->table[kind].length};
}

/* Checks that the refittable weights are as large as the stripped ones, so that the file cannot
 * make a refit allocate more. */
static kelp_status *check_stripped(const kelp_cpu_engine *engine, const reader *r) {
    size_t all = 0, wanted = r->parts[KELP_PART_STRIPPED].length;
    for (size_t i = 0; i < engine->refittable_count; i++) {
        size_t bytes = kelp_cpu_engine_missing_bytes(engine, engine->refittable[i]);
        if (!kelp_size_align(bytes, KELP_CPU_IMAGE_ALIGNMENT, &bytes) ||
            !kelp_size_add(all, bytes, &all))
            all = SIZE_MAX;
    }
    if (all < wanted) /* names may share their bytes */
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "%s: 'stripped_bytes' is too large: expected at most %zu bytes of refittable weights, "
            "found %zu",
            r->label, all, wanted);
    return NULL;
}

/* Creates the engine of `graph`, which retains the bytes of the image. */
static kelp_status *make_engine(const reader *r, kelp_graph *graph, kelp_cpu_engine **out) {
    kelp_engine_options options = {.struct_size = sizeof options,
                                   .disable_fusion = is_true(r->info, "no_fusion")};
    kelp_cpu_origin origin = {.prepared = is_true(r->info, "prepared"),
                              .bare = r->parts[KELP_PART_STRIPPED].length > 0};
    KELP_TRY(read_precision(r->info, r->label, &options.precision));
    kelp_str entries = section(r, KELP_SECTION_PACKS);
    kelp_cpu_pack_source packs = {.entries = (const void *)entries.data,
                                  .entry_count = entries.length / sizeof(kelp_cpu_pack_entry),
                                  .packed = section(r, KELP_SECTION_PACKED),
                                  .weights = section(r, KELP_SECTION_WEIGHTS),
                                  .originals = section(r, KELP_SECTION_ORIGINALS),
                                  .originals_hash = r->table[KELP_SECTION_ORIGINALS].hash,
                                  .label = graph->info.label};
    kelp_cpu_engine *engine = NULL;
    if (((uintptr_t)r->data & (KELP_CPU_IMAGE_ALIGNMENT - 1)) != 0)
        packs.entry_count = 0; /* unaligned: kernels pack the weights again */
    KELP_TRY(kelp_cpu_packs_create(r->runtime->allocator, false, &packs, &origin.take_packs));
    KELP_TRY(kelp_cpu_engine_make(r->runtime, graph, &options, &origin, &engine));
    engine->refittable_source = (kelp_cpu_image_source){
        .model = section(r, KELP_SECTION_SOURCE), .model_hash = r->table[KELP_SECTION_SOURCE].hash};
    memcpy(engine->refittable_source.parts, r->parts, sizeof r->parts);
    kelp_status *status = read_lists(engine, r->info, r->label);
    if (status == NULL && origin.bare)
        status = check_stripped(engine, r);
    if (status != NULL) {
        kelp_cpu_engine_release(engine);
        return status;
    }
    *out = engine;
    return NULL;
}

static kelp_status *load(reader *r, kelp_arena *arena, image_bytes *take_bytes,
                         kelp_cpu_engine **out) {
    kelp_str text = section(r, KELP_SECTION_INFO);
    size_t stripped = 0;
    kelp_graph *graph = NULL;
    kelp_status *status = kelp_json_parse(arena, r->label, text.data, text.length, &r->info);
    if (status == NULL)
        status = read_stripped(r->info, r->label, &stripped);
    if (status == NULL)
        status = reserve_stripped(take_bytes, stripped, r->label);
    if (status != NULL) {
        release_bytes(take_bytes);
        return status;
    }
    r->parts[KELP_PART_WEIGHTS] = section(r, KELP_SECTION_WEIGHTS);
    r->parts[KELP_PART_ORIGINALS] = section(r, KELP_SECTION_ORIGINALS);
    r->parts[KELP_PART_STRIPPED] = (kelp_str){take_bytes->stripped, stripped};
    kelp_graph_limits limits = kelp_runtime_graph_limits(r->runtime);
    KELP_TRY(kelp_graph_load_parts(r->runtime->allocator, section(r, KELP_SECTION_GRAPH), r->parts,
                                   r->label, release_bytes, take_bytes, &limits, &graph));
    status = make_engine(r, graph, out);
    kelp_graph_release(graph);
    return status;
}

kelp_status *kelp_cpu_image_load(kelp_runtime *runtime, const void *data, size_t size_bytes,
                                 const char *label, void (*release)(void *userp), void *userp,
                                 kelp_cpu_engine **out) {
    reader r = {.runtime = runtime, .label = label, .data = data};
    image_bytes *bytes = NULL;
    kelp_arena arena;
    kelp_status *status = kelp_cpu_image_check(data, size_bytes, label, r.table);
    if (status == NULL)
        status = KELP_NEW(runtime->allocator, image_bytes, &bytes);
    if (status != NULL) {
        if (release != NULL)
            release(userp);
        return status;
    }
    *bytes = (image_bytes){.allocator = runtime->allocator, .release = release, .userp = userp};
    kelp_arena_init(&arena, runtime->allocator, 4 << 10);
    status = load(&r, &arena, bytes, out);
    kelp_arena_deinit(&arena);
    return status;
}
