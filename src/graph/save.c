/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serializes the IR as an ONNX ModelProto. Each message is written into a buffer of its own,
 * innermost first.
 * Source: onnx.proto of release 1.23 (field numbers).
 */
#include "graph/save.h"

#include "base/assert.h"
#include "base/checked.h"
#include "onnx/fields.h"
#include "base/wire/protobuf_write.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct saver {
    const kelp_graph *graph;
    kelp_allocator allocator;
    kelp_graph_parts *parts;
    kelp_map names;    /* used names -> value */
    kelp_map blocks;   /* address of a block -> number + 1 */
    kelp_map captures; /* address of a captured value in a body -> outer value */
    kelp_arena arena;  /* memory of keys */
} saver;

static kelp_status *save_graph(saver *s, const kelp_block *block, kelp_buf *out);

/* ---- names ---- */
static void *get_by_address(const kelp_map *map, const void *address) {
    return kelp_map_get(map, (kelp_str){(const char *)&address, sizeof address});
}

static kelp_status *put_by_address(saver *s, kelp_map *map, const void *address, void *value) {
    const void **key = kelp_arena_alloc(&s->arena, sizeof *key, sizeof *key);
    if (key == NULL)
        return kelp_status_oom();
    *key = address;
    return kelp_map_put(map, (kelp_str){(const char *)key, sizeof *key}, value);
}

/* Gets the number of a block, which makes generated names unique. */
static kelp_status *number_of(saver *s, const kelp_block *block, size_t *out) {
    void *found = get_by_address(&s->blocks, block);
    if (found == NULL) {
        found = (void *)(s->blocks.count + 1);
        KELP_TRY(put_by_address(s, &s->blocks, block, found));
    }
    *out = (size_t)found - 1;
    return NULL;
}

/* Gets the name of a value. `buffer` holds a generated name. */
static kelp_status *name_of(saver *s, const kelp_value *value, char *buffer, size_t capacity,
                            const char **out) {
    const kelp_value *outer = NULL;
    while ((outer = get_by_address(&s->captures, value)) != NULL)
        value = outer;
    KELP_ASSERT(value->id < value->block->value_count);
    bool keeps = value->name != NULL && value->name[0] != '\0' && value->name[0] != '#' &&
                 (value->is_input || value->is_output || value->constant != NULL);
    if (keeps) {
        const kelp_value *owner = kelp_map_get(&s->names, kelp_str_from(value->name));
        if (owner == NULL) {
            void *taken = (void *)(uintptr_t)value;
            KELP_TRY(kelp_map_put(&s->names, kelp_str_from(value->name), taken));
            owner = value;
        }
        *out = value->name;
        if (owner == value)
            return NULL;
    }
    size_t number = 0;
    KELP_TRY(number_of(s, value->block, &number));
    snprintf(buffer, capacity, "#%zu.%" PRIu32, number, value->id);
    *out = buffer;
    return NULL;
}

static kelp_status *put_name(saver *s, kelp_buf *out, uint32_t field, const kelp_value *value) {
    char buffer[48];
    const char *name = "";
    if (value != NULL)
        KELP_TRY(name_of(s, value, buffer, sizeof buffer, &name));
    kelp_protobuf_put_text(out, field, name);
    return NULL;
}

/* ---- tensors ---- */
static void put_external(kelp_buf *out, const char *key, const char *value, kelp_buf *entry) {
    kelp_protobuf_put_text(entry, ENTRY_KEY, key);
    kelp_protobuf_put_text(entry, ENTRY_VALUE, value);
    kelp_protobuf_put_message(out, TENSOR_EXTERNAL_DATA, entry);
}

/* Bytes that were written once: bodies share constants with the enclosing graph, and models saved
 * together share theirs. */
typedef struct stored_bytes {
    const void *data; /* the first three fields are the key */
    size_t bytes;
    size_t is_stripped; /* 0 or 1: only some of the tied weights may be stripped; no padding inside
                           the key */
    kelp_graph_part part;
    size_t offset;
} stored_bytes;
#define KEY_BYTES offsetof(stored_bytes, part)

void kelp_graph_parts_init(kelp_graph_parts *parts, kelp_allocator allocator) {
    *parts = (kelp_graph_parts){.stripped_bytes = 0};
    for (int i = 0; i < KELP_PART_COUNT; i++)
        kelp_buf_init(&parts->bytes[i], allocator);
    kelp_map_init(&parts->stored, allocator);
    kelp_arena_init(&parts->arena, allocator, 4 << 10);
}

void kelp_graph_parts_deinit(kelp_graph_parts *parts) {
    for (int i = 0; i < KELP_PART_COUNT; i++)
        kelp_buf_deinit(&parts->bytes[i]);
    kelp_map_deinit(&parts->stored);
    kelp_arena_deinit(&parts->arena);
}

static kelp_graph_part choose_part(const kelp_graph_parts *parts, const kelp_tensor *tensor) {
    return parts->choose != NULL ? parts->choose(parts->userp, tensor) : KELP_PART_WEIGHTS;
}

static const stored_bytes *find_stored(const kelp_graph_parts *parts, const kelp_tensor *tensor,
                                       kelp_graph_part chosen) {
    stored_bytes key = {.data = tensor->data,
                        .bytes = kelp_tensor_bytes(tensor),
                        .is_stripped = chosen == KELP_PART_STRIPPED};
    return kelp_map_get(&parts->stored, (kelp_str){(const char *)&key, KEY_BYTES});
}

bool kelp_graph_parts_find(const kelp_graph_parts *parts, const kelp_tensor *tensor,
                           kelp_graph_part *out_part, size_t *out_offset) {
    const stored_bytes *found = find_stored(parts, tensor, choose_part(parts, tensor));
    if (found == NULL)
        return false;
    *out_part = found->part;
    *out_offset = found->offset;
    return true;
}

static kelp_status *store_bytes(kelp_graph_parts *parts, const kelp_tensor *tensor, size_t bytes,
                                kelp_graph_part part, const stored_bytes **out) {
    static const char zeros[64];
    *out = find_stored(parts, tensor, part);
    if (*out != NULL)
        return NULL;
    kelp_buf *buf = &parts->bytes[part];
    stored_bytes *made = kelp_arena_alloc(&parts->arena, sizeof *made, sizeof(void *));
    if (made == NULL)
        return kelp_status_oom();
    *made = (stored_bytes){.data = tensor->data,
                           .bytes = bytes,
                           .is_stripped = part == KELP_PART_STRIPPED,
                           .part = part};
    if (part == KELP_PART_STRIPPED) {
        made->offset = parts->stripped_bytes;
        if (!kelp_size_add(made->offset, bytes, &parts->stripped_bytes) ||
            !kelp_size_align(parts->stripped_bytes, 64, &parts->stripped_bytes))
            return kelp_status_oom();
    } else {
        kelp_buf_append(buf, zeros, (64 - buf->length % 64) % 64);
        made->offset = buf->length;
        KELP_ASSERT(buf->failed || made->offset % 64 == 0);
        kelp_buf_append(buf, tensor->data, bytes);
    }
    *out = made;
    return kelp_map_put(&parts->stored, (kelp_str){(const char *)made, KEY_BYTES}, made);
}

static kelp_status *save_bytes(saver *s, const kelp_tensor *tensor, kelp_buf *out) {
    static const char *const locations[] = {KELP_WEIGHTS_LOCATION, KELP_ORIGINALS_LOCATION,
                                            KELP_STRIPPED_LOCATION};
    size_t bytes = kelp_tensor_bytes(tensor);
    const stored_bytes *at = NULL;
    kelp_buf entry;
    char number[32];
    kelp_graph_part part =
        s->parts != NULL && bytes > 0 ? choose_part(s->parts, tensor) : KELP_PART_WEIGHTS;
    if (s->parts == NULL || (bytes < 64 && part != KELP_PART_STRIPPED)) {
        kelp_protobuf_put_bytes(out, TENSOR_RAW_DATA, tensor->data, bytes);
        return NULL;
    }
    KELP_TRY(store_bytes(s->parts, tensor, bytes, part, &at));
    kelp_buf_init(&entry, s->allocator);
    kelp_protobuf_put_i64(out, TENSOR_DATA_LOCATION, DATA_LOCATION_EXTERNAL);
    put_external(out, "location", locations[at->part], &entry);
    snprintf(number, sizeof number, "%zu", at->offset);
    put_external(out, "offset", number, &entry);
    snprintf(number, sizeof number, "%zu", bytes);
    put_external(out, "length", number, &entry);
    kelp_buf_deinit(&entry);
    return NULL;
}

static kelp_status *save_tensor(saver *s, const kelp_tensor *tensor, kelp_buf *out) {
    for (int32_t i = 0; i < tensor->rank; i++)
        kelp_protobuf_put_i64(out, TENSOR_DIMS, tensor->shape[i]);
    kelp_protobuf_put_i64(out, TENSOR_DATA_TYPE, tensor->dtype);
    if (tensor->dtype != KELP_STRING)
        return save_bytes(s, tensor, out);
    const kelp_string *strings = tensor->data;
    for (int64_t i = 0; i < kelp_tensor_elements(tensor); i++)
        kelp_protobuf_put_bytes(out, TENSOR_STRING_DATA, strings[i].data, strings[i].length);
    return NULL;
}

/* ---- types ---- */
static void save_type(const saver *s, const kelp_value *value, kelp_buf *out) {
    /* fields of TypeProto and of the element type in it; the key type of a map is not needed */
    static const uint32_t fields[][2] = {
        [KELP_VALUE_SEQUENCE] = {TYPE_SEQUENCE, CONTAINER_TYPE_ELEM_TYPE},
        [KELP_VALUE_MAP] = {TYPE_MAP, MAP_TYPE_VALUE_TYPE},
        [KELP_VALUE_OPTIONAL] = {TYPE_OPTIONAL, CONTAINER_TYPE_ELEM_TYPE}};
    kelp_buf tensor, shape, dim, type;
    kelp_buf_init(&tensor, s->allocator);
    kelp_buf_init(&shape, s->allocator);
    kelp_buf_init(&dim, s->allocator);
    kelp_buf_init(&type, s->allocator);
    kelp_protobuf_put_i64(&tensor, TENSOR_TYPE_ELEM_TYPE, value->dtype);
    for (int32_t i = 0; i < value->rank; i++) {
        if (value->shape[i] >= 0)
            kelp_protobuf_put_i64(&dim, DIMENSION_DIM_VALUE, value->shape[i]);
        else if (value->symbols[i] != NULL)
            kelp_protobuf_put_text(&dim, DIMENSION_DIM_PARAM, value->symbols[i]);
        kelp_protobuf_put_message(&shape, SHAPE_DIM, &dim);
    }
    if (value->rank >= 0)
        kelp_protobuf_put_message(&tensor, TENSOR_TYPE_SHAPE, &shape);
    if (value->kind == KELP_VALUE_SEQUENCE || value->kind == KELP_VALUE_MAP ||
        value->kind == KELP_VALUE_OPTIONAL) {
        kelp_protobuf_put_message(&type, TYPE_TENSOR, &tensor);
        kelp_protobuf_put_message(&dim, fields[value->kind][1], &type);
        kelp_protobuf_put_message(out, fields[value->kind][0], &dim);
    } else {
        kelp_protobuf_put_message(out, TYPE_TENSOR, &tensor);
    }
    kelp_buf_deinit(&tensor);
    kelp_buf_deinit(&shape);
    kelp_buf_deinit(&dim);
    kelp_buf_deinit(&type);
}

static kelp_status *save_value(saver *s, const kelp_value *value, uint32_t field, kelp_buf *out) {
    kelp_buf info, type;
    kelp_buf_init(&info, s->allocator);
    kelp_buf_init(&type, s->allocator);
    kelp_status *status = put_name(s, &info, VALUE_INFO_NAME, value);
    if (value->kind != KELP_VALUE_UNKNOWN && value->dtype != KELP_DTYPE_INVALID) {
        save_type(s, value, &type);
        kelp_protobuf_put_message(&info, VALUE_INFO_TYPE, &type);
    }
    kelp_protobuf_put_message(out, field, &info);
    kelp_buf_deinit(&info);
    kelp_buf_deinit(&type);
    return status;
}

/* ---- attributes and nodes ---- */
static kelp_status *save_attr(saver *s, const kelp_attr *attr, kelp_buf *out) {
    kelp_status *status = NULL;
    kelp_buf inner;
    kelp_buf_init(&inner, s->allocator);
    kelp_protobuf_put_text(out, ATTRIBUTE_NAME, attr->name);
    kelp_protobuf_put_i64(out, ATTRIBUTE_TYPE, attr->type);
    if (attr->ref != NULL)
        kelp_protobuf_put_text(out, ATTRIBUTE_REF_ATTR_NAME, attr->ref);
    if (attr->type == KELP_ATTR_FLOAT)
        kelp_protobuf_put_f32(out, ATTRIBUTE_F, attr->f);
    if (attr->type == KELP_ATTR_INT)
        kelp_protobuf_put_i64(out, ATTRIBUTE_I, attr->i);
    if (attr->type == KELP_ATTR_STRING)
        kelp_protobuf_put_bytes(out, ATTRIBUTE_S, attr->s.data, attr->s.length);
    for (size_t i = 0; i < attr->count; i++) {
        if (attr->floats != NULL)
            kelp_protobuf_put_f32(out, ATTRIBUTE_FLOATS, attr->floats[i]);
        if (attr->ints != NULL)
            kelp_protobuf_put_i64(out, ATTRIBUTE_INTS, attr->ints[i]);
        if (attr->strings != NULL)
            kelp_protobuf_put_bytes(out, ATTRIBUTE_STRINGS, attr->strings[i].data,
                                    attr->strings[i].length);
        if (attr->tensor != NULL && status == NULL) {
            status = save_tensor(s, &attr->tensor[i], &inner);
            kelp_protobuf_put_message(
                out, attr->type == KELP_ATTR_TENSOR ? ATTRIBUTE_T : ATTRIBUTE_TENSORS, &inner);
        }
        if (attr->blocks != NULL && status == NULL) {
            status = save_graph(s, attr->blocks[i], &inner);
            kelp_protobuf_put_message(
                out, attr->type == KELP_ATTR_GRAPH ? ATTRIBUTE_G : ATTRIBUTE_GRAPHS, &inner);
        }
    }
    kelp_buf_deinit(&inner);
    return status;
}

static kelp_status *save_version(saver *s, const kelp_node *node, kelp_buf *out, kelp_buf *inner) {
    int64_t imported = kelp_graph_opset_version(s->graph, node->op->domain);
    if (imported == node->opset_version || (s->parts == NULL && imported == 0))
        return NULL;
    if (s->parts == NULL)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "node '%s' (%s) has opset version %lld, but the model imports version "
                          "%lld of domain '%s': ONNX allows one version per domain",
                          node->name, node->op->name, (long long)node->opset_version,
                          (long long)kelp_graph_opset_version(s->graph, node->op->domain),
                          node->op->domain);
    kelp_attr version = {
        .name = KELP_OPSET_ATTRIBUTE, .type = KELP_ATTR_INT, .i = node->opset_version};
    KELP_TRY(save_attr(s, &version, inner));
    kelp_protobuf_put_message(out, NODE_ATTRIBUTE, inner);
    return NULL;
}

/* Maps the inputs of a body that are captured values to these values, whose names they get. */
static kelp_status *note_captures(saver *s, const kelp_node *node, size_t first) {
    for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
        for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++) {
            const kelp_block *block = attr->blocks[k];
            for (size_t i = first; i < node->input_count; i++) {
                KELP_ASSERT(node->input_count - i <= block->input_count);
                const kelp_value *local =
                    block->inputs[block->input_count - (node->input_count - i)];
                KELP_TRY(put_by_address(s, &s->captures, local, node->inputs[i]));
            }
        }
    return NULL;
}

static kelp_status *save_node_into(saver *s, const kelp_node *node, kelp_buf *out,
                                   kelp_buf *inner) {
    size_t inputs = kelp_node_first_capture(node);
    KELP_TRY(note_captures(s, node, inputs));
    for (size_t i = 0; i < inputs; i++)
        KELP_TRY(put_name(s, out, NODE_INPUT, node->inputs[i]));
    for (size_t i = 0; i < node->output_count; i++)
        KELP_TRY(put_name(s, out, NODE_OUTPUT, node->outputs[i]));
    kelp_protobuf_put_text(out, NODE_NAME, node->name);
    kelp_protobuf_put_text(out, NODE_OP_TYPE, node->op->name);
    if (*node->op->domain != '\0')
        kelp_protobuf_put_text(out, NODE_DOMAIN, node->op->domain);
    for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next) {
        if (strcmp(attr->name, KELP_CAPTURES_ATTRIBUTE) == 0)
            continue;
        KELP_TRY(save_attr(s, attr, inner));
        kelp_protobuf_put_message(out, NODE_ATTRIBUTE, inner);
    }
    return save_version(s, node, out, inner);
}

static kelp_status *save_node(saver *s, const kelp_node *node, kelp_buf *out) {
    kelp_buf message, inner;
    kelp_buf_init(&message, s->allocator);
    kelp_buf_init(&inner, s->allocator);
    kelp_status *status = save_node_into(s, node, &message, &inner);
    kelp_protobuf_put_message(out, GRAPH_NODE, &message);
    kelp_buf_deinit(&message);
    kelp_buf_deinit(&inner);
    return status;
}

/* ---- blocks ---- */
/* Returns true if all outputs of the node are constants. */
bool kelp_node_is_folded(const kelp_node *node) {
    size_t known = 0;
    for (size_t i = 0; i < node->output_count; i++)
        known += node->outputs[i] == NULL || node->outputs[i]->constant != NULL;
    return known == node->output_count;
}

static kelp_status *save_constant(saver *s, const kelp_value *value, kelp_buf *out) {
    kelp_buf message;
    kelp_buf_init(&message, s->allocator);
    kelp_status *status = put_name(s, &message, TENSOR_NAME, value);
    if (status == NULL)
        status = save_tensor(s, value->constant, &message);
    kelp_protobuf_put_message(out, GRAPH_INITIALIZER, &message);
    kelp_buf_deinit(&message);
    return status;
}

static kelp_status *save_graph(saver *s, const kelp_block *block, kelp_buf *out) {
    /* values that keep their names claim them first */
    char buffer[48];
    const char *name = NULL;
    const kelp_node *owner = block->owner;
    size_t captures = owner != NULL ? owner->input_count - kelp_node_first_capture(owner) : 0;
    KELP_ASSERT(captures <= block->input_count);
    size_t own_inputs = block->input_count - captures;
    for (size_t i = 0; i < own_inputs; i++)
        KELP_TRY(name_of(s, block->inputs[i], buffer, sizeof buffer, &name));
    for (size_t i = 0; i < block->output_count; i++)
        KELP_TRY(name_of(s, block->outputs[i], buffer, sizeof buffer, &name));
    kelp_protobuf_put_text(out, GRAPH_NAME, block->name != NULL ? block->name : "");
    for (size_t i = 0; i < block->value_count; i++) {
        const kelp_value *value = block->values[i];
        if (value->constant != NULL && (value->use_count > 0 || value->is_output))
            KELP_TRY(save_constant(s, value, out));
    }
    for (size_t n = 0; n < block->node_count; n++)
        if (!block->nodes[n]->removed && !kelp_node_is_folded(block->nodes[n]))
            KELP_TRY(save_node(s, block->nodes[n], out));
    for (size_t i = 0; i < own_inputs; i++)
        KELP_TRY(save_value(s, block->inputs[i], GRAPH_INPUT, out));
    for (size_t i = 0; i < block->output_count; i++)
        KELP_TRY(save_value(s, block->outputs[i], GRAPH_OUTPUT, out));
    for (size_t i = 0; i < block->value_count; i++) {
        const kelp_value *value = block->values[i];
        if (!value->is_input && !value->is_output && value->constant == NULL &&
            value->producer != NULL && !value->producer->removed && value->use_count > 0)
            KELP_TRY(save_value(s, value, GRAPH_VALUE_INFO, out));
    }
    return kelp_buf_status(out);
}

/* ---- the model ---- */
/* Domains that passes introduced and that the model does not import. */
#define ADDED_MAX 8
typedef struct added_imports {
    kelp_opset_import imports[ADDED_MAX];
    size_t count;
} added_imports;

static void find_added(const saver *s, const kelp_block *block, added_imports *out) {
    for (size_t n = 0; n < block->node_count; n++) {
        const kelp_node *node = block->nodes[n];
        bool known = node->removed || kelp_graph_opset_version(s->graph, node->op->domain) != 0;
        for (size_t i = 0; i < out->count; i++)
            known = known || strcmp(out->imports[i].domain, node->op->domain) == 0;
        KELP_ASSERT(known || out->count < ADDED_MAX);
        if (!known && out->count < ADDED_MAX)
            out->imports[out->count++] = (kelp_opset_import){node->op->domain, node->opset_version};
        for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
            for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++)
                find_added(s, attr->blocks[k], out);
    }
}

static void save_import(kelp_buf *out, const kelp_opset_import *import, kelp_buf *message) {
    kelp_protobuf_put_text(message, OPSET_ID_DOMAIN, import->domain);
    kelp_protobuf_put_i64(message, OPSET_ID_VERSION, import->version);
    kelp_protobuf_put_message(out, MODEL_OPSET_IMPORT, message);
}

static kelp_status *save_model(saver *s, kelp_buf *out) {
    const kelp_graph *graph = s->graph;
    kelp_buf message;
    added_imports more = {.count = 0};
    kelp_buf_init(&message, s->allocator);
    find_added(s, graph->main, &more);
    kelp_protobuf_put_i64(out, MODEL_IR_VERSION,
                          graph->info.ir_version > 0 ? graph->info.ir_version : 10);
    kelp_protobuf_put_text(out, MODEL_PRODUCER_NAME, graph->info.producer_name);
    kelp_protobuf_put_text(out, MODEL_PRODUCER_VERSION, graph->info.producer_version);
    kelp_protobuf_put_text(out, MODEL_DOMAIN, graph->info.domain);
    kelp_protobuf_put_i64(out, MODEL_MODEL_VERSION, graph->info.model_version);
    for (size_t i = 0; i < graph->import_count; i++)
        save_import(out, &graph->imports[i], &message);
    for (size_t i = 0; i < more.count; i++)
        save_import(out, &more.imports[i], &message);
    for (size_t i = 0; i < graph->info.metadata_count; i++) {
        kelp_protobuf_put_text(&message, ENTRY_KEY, graph->metadata[2 * i]);
        kelp_protobuf_put_text(&message, ENTRY_VALUE, graph->metadata[2 * i + 1]);
        kelp_protobuf_put_message(out, MODEL_METADATA_PROPS, &message);
    }
    kelp_status *status = save_graph(s, graph->main, &message);
    kelp_protobuf_put_message(out, MODEL_GRAPH, &message);
    kelp_buf_deinit(&message);
    return status != NULL ? status : kelp_buf_status(out);
}

kelp_status *kelp_graph_save(const kelp_graph *graph, kelp_graph_parts *parts, kelp_buf *out) {
    saver s = {.graph = graph, .allocator = out->allocator, .parts = parts};
    kelp_map_init(&s.names, s.allocator);
    kelp_map_init(&s.blocks, s.allocator);
    kelp_map_init(&s.captures, s.allocator);
    kelp_arena_init(&s.arena, s.allocator, 1 << 10);
    kelp_status *status = save_model(&s, out);
    for (int i = 0; status == NULL && parts != NULL && i < KELP_PART_COUNT; i++)
        status = kelp_buf_status(&parts->bytes[i]);
    kelp_map_deinit(&s.names);
    kelp_map_deinit(&s.blocks);
    kelp_map_deinit(&s.captures);
    kelp_arena_deinit(&s.arena);
    return status;
}
