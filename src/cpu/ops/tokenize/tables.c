/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/ops/tokenize/tables.h"

#include "base/assert.h"

/* Returns the next part between separators, which is not empty. */
static bool next_part(kelp_str *inout_text, char separator, kelp_str *out) {
    kelp_str text = *inout_text;
    while (text.length > 0 && *text.data == separator)
        text = (kelp_str){text.data + 1, text.length - 1};
    if (text.length == 0)
        return false;
    const char *end = memchr(text.data, separator, text.length);
    *out = (kelp_str){text.data, end != NULL ? (size_t)(end - text.data) : text.length};
    *inout_text = (kelp_str){text.data + out->length, text.length - out->length};
    return true;
}

static size_t count_parts(kelp_str text, char separator) {
    size_t count = 0;
    for (kelp_str part; next_part(&text, separator, &part);)
        count++;
    return count;
}

static kelp_status *read_vector(kelp_text_table *t, const kelp_node *node, kelp_str text,
                                int64_t **out) {
    kelp_str part;
    size_t count = 0;
    *out = KELP_ARENA_ARRAY(&t->arena, t->vector_length + 1, int64_t);
    if (*out == NULL)
        return kelp_status_oom();
    if (count_parts(text, ' ') != t->vector_length)
        return KELP_TEXT_ERROR(node, "expected vectors of %zu integers, found '%.*s'",
                               t->vector_length, KELP_STR_ARG(text));
    while (next_part(&text, ' ', &part))
        if (!kelp_parse_i64(part, &(*out)[count++]))
            return KELP_TEXT_ERROR(node, "expected integers, found '%.*s'", KELP_STR_ARG(part));
    return NULL;
}

static kelp_status *read_line(kelp_text_table *t, const kelp_node *node, kelp_table_kind kind,
                              kelp_str line) {
    kelp_str rest = line, key, value;
    if (count_parts(line, '\t') != 2 || !next_part(&rest, '\t', &key) ||
        !next_part(&rest, '\t', &value))
        return KELP_TEXT_ERROR(node,
                               "attribute 'map' is malformed: expected KEY<tab>VALUE, found '%.*s'",
                               KELP_STR_ARG(line));
    kelp_table_row *row = KELP_ARENA_NEW(&t->arena, kelp_table_row);
    if (row == NULL)
        return kelp_status_oom();
    if (kind == KELP_TABLE_TEXTS) {
        row->text = value;
        return kelp_map_put(&t->rows, key, row);
    }
    row->text = key;
    if (t->vector_length == 0)
        t->vector_length = count_parts(value, ' ');
    KELP_TRY(read_vector(t, node, value, &row->vector));
    if (kind == KELP_TABLE_FROM_VECTOR)
        key = (kelp_str){(const char *)row->vector, t->vector_length * sizeof *row->vector};
    return kelp_map_put(&t->rows, key, row);
}

static kelp_status *read_all(kelp_text_table *t, const kelp_node *node, kelp_table_kind kind) {
    kelp_str map, line;
    KELP_TRY(kelp_text_required_attr(node, "map", &map));
    while (next_part(&map, '\n', &line))
        KELP_TRY(read_line(t, node, kind, line));
    if (kind == KELP_TABLE_TEXTS)
        return NULL;
    if (t->vector_length == 0)
        return KELP_TEXT_ERROR(node, "attribute '%s' has no vectors", "map");
    t->unknown_text = kelp_text_attr(node, "unk", "");
    return kind == KELP_TABLE_TO_VECTOR ? read_vector(t, node, t->unknown_text, &t->unknown_vector)
                                        : NULL;
}

kelp_status *kelp_text_table_init(kelp_text_table *out, const kelp_node *node,
                                  kelp_allocator allocator, kelp_table_kind kind) {
    *out = (kelp_text_table){0};
    kelp_arena_init(&out->arena, allocator, 0);
    kelp_map_init(&out->rows, allocator);
    return read_all(out, node, kind);
}

void kelp_text_table_deinit(kelp_text_table *table) {
    kelp_map_deinit(&table->rows);
    kelp_arena_deinit(&table->arena);
}
