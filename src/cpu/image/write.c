/* SPDX-License-Identifier: Apache-2.0 */
/* Writes engine images. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/text/json.h"
#include "cpu/image/image.h"

#include <stdlib.h>
#include <string.h>

/* ---- information ---- */
static void write_bounds(kelp_json_writer *json, const kelp_shape bounds[3]) {
    static const char *const names[] = {"min", "opt", "max"};
    for (int which = 0; which < 3; which++) {
        kelp_json_key(json, names[which]);
        kelp_json_begin_array(json);
        for (int32_t i = 0; i < bounds[which].rank; i++)
            kelp_json_put_i64(json, bounds[which].d[i]);
        kelp_json_end_array(json);
    }
}

static void write_profile_entry(kelp_json_writer *json, const kelp_profile_shape *entry) {
    kelp_json_key(json, entry->input);
    kelp_json_begin_object(json);
    if (entry->has_shape)
        write_bounds(json, entry->shapes);
    if (entry->has_values) {
        kelp_json_key(json, "values");
        kelp_json_begin_object(json);
        write_bounds(json, entry->values);
        kelp_json_end_object(json);
    }
    kelp_json_end_object(json);
}

static void write_info(const kelp_cpu_image_contents *contents, size_t stripped_bytes,
                       kelp_buf *out) {
    kelp_json_writer json;
    const kelp_builder_config *config = contents->config;
    kelp_json_writer_init(&json, out);
    kelp_json_begin_object(&json);
    kelp_json_key(&json, "name");
    kelp_json_put_cstr(&json, contents->name);
    kelp_json_key(&json, "prepared");
    kelp_json_put_bool(&json, contents->prepared);
    kelp_json_key(&json, "stripped_bytes");
    kelp_json_put_u64(&json, stripped_bytes);
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
            write_profile_entry(&json, &shapes[i]);
        kelp_json_end_object(&json);
    }
    kelp_json_end_array(&json);
    kelp_json_end_object(&json);
}

/* ---- constants that kernels read ---- */
typedef struct readers {
    const kelp_cpu_image_contents *contents;
    kelp_cpu_pack_record **records; /* in the order of nodes */
    size_t record_count, at;
    kelp_map kinds; /* from the address of a constant to replaced_mark or read_mark */
    kelp_arena arena;
    bool rest; /* other constants are originals */
} readers;
static char replaced_mark, read_mark;

static kelp_status *note_reader(readers *r, const kelp_tensor *tensor, bool replaced) {
    const void *address = tensor->data, **key = NULL;
    kelp_str name = {(const char *)&address, sizeof address};
    void *before = kelp_map_get(&r->kinds, name);
    if (before != NULL && (before == &read_mark || replaced))
        return NULL;
    key = kelp_arena_alloc(&r->arena, sizeof *key, sizeof *key);
    if (key == NULL)
        return kelp_status_oom();
    *key = address;
    return kelp_map_put(&r->kinds, (kelp_str){(const char *)key, sizeof *key},
                        replaced ? &replaced_mark : &read_mark);
}

static uint32_t replaced_by(readers *r, uint32_t index) {
    uint32_t mask = 0;
    while (r->at < r->record_count && r->records[r->at]->site.index < index)
        r->at++;
    for (size_t i = r->at; i < r->record_count && r->records[i]->site.index == index; i++)
        mask |= r->records[i]->replaces;
    return mask;
}

static kelp_status *note_program(readers *r, const kelp_cpu_program *program) {
    for (size_t n = 0; n < program->node_count; n++) {
        const kelp_cpu_node *item = &program->nodes[n];
        const kelp_node *node = item->node;
        for (size_t k = 0; k < item->body_count; k++)
            KELP_TRY(note_program(r, item->bodies[k]));
        uint32_t mask = replaced_by(r, item->index);
        for (size_t i = 0; i < node->input_count; i++)
            if (node->inputs[i] != NULL && node->inputs[i]->constant != NULL)
                KELP_TRY(note_reader(r, node->inputs[i]->constant, i < 32 && (mask >> i & 1) != 0));
    }
    for (size_t i = 0; i < program->block->output_count; i++)
        if (program->block->outputs[i]->constant != NULL)
            KELP_TRY(note_reader(r, program->block->outputs[i]->constant, false));
    return NULL;
}

/* Returns false for dimensions, indices and conditions: the graph cannot be loaded without them. */
static bool is_weight(kelp_dtype dtype) {
    return dtype != KELP_I64 && dtype != KELP_I32 && dtype != KELP_U64 && dtype != KELP_U32 &&
           dtype != KELP_BOOL;
}

/* Returns true if an earlier constant has the same name. A refit replaces the first one. */
static bool is_second_of_name(const kelp_block *block, size_t index) {
    for (size_t i = 0; i < index; i++)
        if (block->values[i]->constant != NULL &&
            strcmp(block->values[i]->name, block->values[index]->name) == 0)
            return true;
    return false;
}

static bool is_stripped(const readers *r, const kelp_tensor *tensor) {
    const kelp_block *main = r->contents->graph->main;
    if (!is_weight(tensor->dtype))
        return false;
    for (size_t i = 0; i < main->value_count; i++)
        for (size_t k = 0; main->values[i]->constant == tensor && k < r->contents->refittable_count;
             k++)
            if (strcmp(main->values[i]->name, r->contents->refittable[k]) == 0 &&
                !is_second_of_name(main, i))
                return true;
    return false;
}

static kelp_graph_part choose(void *userp, const kelp_tensor *tensor) {
    const readers *r = userp;
    kelp_str name = {(const char *)&tensor->data, sizeof tensor->data};
    if (r->contents->stripped)
        return is_stripped(r, tensor) ? KELP_PART_STRIPPED : KELP_PART_WEIGHTS;
    return r->rest || kelp_map_get(&r->kinds, name) == &replaced_mark ? KELP_PART_ORIGINALS
                                                                      : KELP_PART_WEIGHTS;
}

/* ---- packed weights ---- */
static const char zeros[KELP_CPU_IMAGE_ALIGNMENT];

static void pad(kelp_buf *out) {
    size_t over = out->length % KELP_CPU_IMAGE_ALIGNMENT;
    kelp_buf_append(out, zeros, over > 0 ? KELP_CPU_IMAGE_ALIGNMENT - over : 0);
}

/* Appends a block, or refers to an equal one. */
static void put_block(const kelp_buf *table, kelp_buf *packed, kelp_cpu_pack_entry *entry,
                      const void *data) {
    kelp_cpu_pack_entry other;
    entry->hash = kelp_cpu_image_hash(data, entry->length);
    KELP_ASSERT(table->length % sizeof other == 0);
    for (size_t at = 0; at < table->length; at += sizeof other) {
        memcpy(&other, table->data + at, sizeof other);
        if (other.hash == entry->hash && other.length == entry->length &&
            memcmp(packed->data + other.offset, data, entry->length) == 0) {
            entry->offset = other.offset;
            return;
        }
    }
    pad(packed);
    entry->offset = packed->length;
    kelp_buf_append(packed, data, entry->length);
}

/* Returns the first of the constants that a block was packed from, or NULL. */
static const kelp_tensor *first_constant(const kelp_cpu_pack_record *record) {
    const kelp_node *node = record->site.node;
    size_t first = record->inputs != 0 ? (size_t)__builtin_ctz(record->inputs) : SIZE_MAX;
    const kelp_value *value = first < node->input_count ? node->inputs[first] : NULL;
    return value != NULL ? value->constant : NULL;
}

/* Writes the packed weights and their table. Leaves out blocks of constants that are inside the
 * model, which are small, and blocks without a constant to identify them; both are packed again. */
static kelp_status *write_packs(const readers *r, const kelp_graph_parts *parts, kelp_buf *table,
                                kelp_buf *packed) {
    for (size_t i = 0; i < r->record_count; i++) {
        const kelp_cpu_pack_record *record = r->records[i];
        const kelp_tensor *tensor = first_constant(record);
        size_t offset = 0;
        kelp_graph_part part = KELP_PART_WEIGHTS;
        kelp_cpu_pack_entry entry = {
            .node = record->site.index, .inputs = record->inputs, .length = record->size_bytes};
        if (record->site.index == UINT32_MAX || tensor == NULL ||
            !kelp_graph_parts_find(parts, tensor, &part, &offset))
            continue;
        KELP_ASSERT(part != KELP_PART_STRIPPED && record->data != NULL);
        entry.place = offset | (part == KELP_PART_ORIGINALS ? KELP_CPU_PACK_ORIGINAL : 0);
        memcpy(entry.layout, record->layout, sizeof entry.layout);
        put_block(table, packed, &entry, record->data);
        kelp_buf_append(table, &entry, sizeof entry);
        KELP_TRY(kelp_buf_status(table));
        KELP_TRY(kelp_buf_status(packed));
    }
    return NULL;
}

/* ---- the file ---- */
static kelp_status *assemble(const kelp_buf *const parts[KELP_SECTION_COUNT],
                             kelp_allocator allocator, char **out, size_t *out_bytes) {
    kelp_cpu_image_head head = {.version = KELP_CPU_IMAGE_VERSION,
                                .head_bytes = sizeof head,
                                .section_count = KELP_SECTION_COUNT,
                                .order = KELP_CPU_IMAGE_ORDER_MARK,
                                .processor = KELP_CPU_IMAGE_PROCESSOR,
                                .alignment = KELP_CPU_IMAGE_ALIGNMENT};
    kelp_cpu_image_section table[KELP_SECTION_COUNT];
    size_t offset = sizeof head + sizeof table;
    memcpy(head.magic, KELP_CPU_IMAGE_MAGIC, sizeof head.magic);
    for (uint32_t i = 0; i < KELP_SECTION_COUNT; i++) {
        offset = (offset + KELP_CPU_IMAGE_ALIGNMENT - 1) / KELP_CPU_IMAGE_ALIGNMENT *
                 KELP_CPU_IMAGE_ALIGNMENT;
        uint64_t hash = i != KELP_SECTION_PACKED
                            ? kelp_cpu_image_hash(parts[i]->data, parts[i]->length)
                            : 0; /* each block has a hash */
        table[i] = (kelp_cpu_image_section){
            .kind = i, .offset = offset, .length = parts[i]->length, .hash = hash};
        offset += parts[i]->length;
    }
    head.file_bytes = offset;
    head.hash = kelp_cpu_image_hash_head(&head, table);
    char *file = NULL;
    KELP_TRY(kelp_alloc_aligned(allocator, offset, KELP_CPU_IMAGE_ALIGNMENT, (void **)&file));
    memcpy(file, &head, sizeof head);
    memcpy(file + sizeof head, table, sizeof table);
    offset = sizeof head + sizeof table;
    for (uint32_t i = 0; i < KELP_SECTION_COUNT; i++) {
        KELP_ASSERT(table[i].offset >= offset);
        KELP_ASSERT(table[i].offset + table[i].length <= head.file_bytes);
        memset(file + offset, 0, table[i].offset - offset);
        if (parts[i]->length > 0)
            memcpy(file + table[i].offset, parts[i]->data, parts[i]->length);
        offset = table[i].offset + table[i].length;
    }
    *out = file;
    *out_bytes = offset;
    return NULL;
}

static kelp_status *write_parts(readers *r, kelp_graph_parts *parts, kelp_buf *sections,
                                kelp_allocator allocator, char **out, size_t *out_bytes) {
    const kelp_cpu_image_contents *contents = r->contents;
    const kelp_buf *all[KELP_SECTION_COUNT];
    if (contents->engine != NULL) {
        kelp_cpu_packs *packs = contents->engine->packs;
        r->record_count = packs->record_count;
        KELP_TRY(kelp_cpu_packs_list(packs, &r->records));
        KELP_TRY(note_program(r, contents->engine->program));
    }
    KELP_TRY(kelp_graph_save(contents->graph, parts, &sections[KELP_SECTION_GRAPH]));
    r->rest = true;
    if (contents->source != NULL)
        KELP_TRY(kelp_graph_save(contents->source, parts, &sections[KELP_SECTION_SOURCE]));
    KELP_TRY(write_packs(r, parts, &sections[KELP_SECTION_PACKS], &sections[KELP_SECTION_PACKED]));
    write_info(contents, parts->stripped_bytes, &sections[KELP_SECTION_INFO]);
    KELP_TRY(kelp_buf_status(&sections[KELP_SECTION_INFO]));
    for (int i = 0; i < KELP_SECTION_COUNT; i++)
        all[i] = &sections[i];
    all[KELP_SECTION_WEIGHTS] = &parts->bytes[KELP_PART_WEIGHTS];
    all[KELP_SECTION_ORIGINALS] = &parts->bytes[KELP_PART_ORIGINALS];
    return assemble(all, allocator, out, out_bytes);
}

kelp_status *kelp_cpu_image_write(const kelp_cpu_image_contents *contents, kelp_allocator allocator,
                                  char **out, size_t *out_bytes) {
    kelp_buf sections[KELP_SECTION_COUNT];
    kelp_graph_parts parts;
    readers r = {.contents = contents};
    for (int i = 0; i < KELP_SECTION_COUNT; i++)
        kelp_buf_init(&sections[i], allocator);
    kelp_graph_parts_init(&parts, allocator);
    kelp_map_init(&r.kinds, allocator);
    kelp_arena_init(&r.arena, allocator, 4 << 10);
    parts.choose = choose;
    parts.userp = &r;
    kelp_status *status = write_parts(&r, &parts, sections, allocator, out, out_bytes);
    if (r.records != NULL)
        kelp_free(contents->engine->packs->allocator, r.records,
                  (r.record_count + 1) * sizeof *r.records);
    kelp_arena_deinit(&r.arena);
    kelp_map_deinit(&r.kinds);
    kelp_graph_parts_deinit(&parts);
    for (int i = 0; i < KELP_SECTION_COUNT; i++)
        kelp_buf_deinit(&sections[i]);
    return status;
}
