/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct reader {
    const char *text, *at;
    kelp_graph *graph;
    kelp_block *block;
} reader;

static void wrong(const reader *r, const char *expected) {
    fail_msg("expected %s at '%s' in '%s'", expected, r->at, r->text);
}

static bool take(reader *r, char c) {
    while (*r->at == ' ')
        r->at++;
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

static void need(reader *r, char c) {
    const char expected[] = {'\'', c, '\'', '\0'};
    if (!take(r, c))
        wrong(r, expected);
}

static bool at_number(const reader *r) {
    return isdigit((unsigned char)*r->at) || *r->at == '-' || strncmp(r->at, "inf", 3) == 0 ||
           strncmp(r->at, "nan", 3) == 0;
}

static double number(reader *r) {
    char *end = NULL;
    double found = strtod(r->at, &end);
    if (end == r->at)
        wrong(r, "a number");
    r->at = end;
    return found;
}

/* Reads letters, digits, '_' and '.'. */
static char *word(reader *r) {
    while (*r->at == ' ')
        r->at++;
    const char *begin = r->at;
    while (isalnum((unsigned char)*r->at) || *r->at == '_' || *r->at == '.')
        r->at++;
    if (r->at == begin)
        wrong(r, "a name");
    return kelp_arena_strndup(&r->graph->arena, begin, (size_t)(r->at - begin));
}

static kelp_value *find(const reader *r, const char *name) {
    for (size_t i = 0; i < r->block->value_count; i++)
        if (strcmp(r->block->values[i]->name, name) == 0)
            return r->block->values[i];
    return NULL;
}

static kelp_value *add_value(reader *r, const char *name) {
    kelp_value *value = NULL;
    assert_null(kelp_block_add_value(r->block, name, &value));
    value->kind = KELP_VALUE_TENSOR;
    return value;
}

/* ---- types and constants ---- */
static void type(reader *r, kelp_value *value) {
    static const struct {
        const char *name;
        kelp_dtype dtype;
    } rows[] = {{"f32", KELP_F32}, {"f16", KELP_F16}, {"bf16", KELP_BF16},
                {"f64", KELP_F64}, {"u8", KELP_U8},   {"i8", KELP_I8},
                {"i32", KELP_I32}, {"i64", KELP_I64}, {"bool", KELP_BOOL}};
    const char *name = word(r);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].name, name) == 0)
            value->dtype = rows[i].dtype;
    if (value->dtype == KELP_DTYPE_INVALID)
        wrong(r, "the name of a type before this");
    value->rank = -1;
    if (!take(r, '['))
        return;
    value->rank = 0;
    while (!take(r, ']')) {
        int32_t axis = value->rank++;
        value->shape[axis] = -1;
        if (at_number(r))
            value->shape[axis] = (int64_t)number(r);
        else if (!take(r, '?'))
            value->symbols[axis] = word(r);
        take(r, ',');
    }
}

static void set_item(kelp_tensor *tensor, int64_t i, double item) {
    void *data = tensor->data;
    switch (tensor->dtype) {
    case KELP_F32:
        ((float *)data)[i] = (float)item;
        break;
    case KELP_F64:
        ((double *)data)[i] = item;
        break;
    case KELP_I64:
        ((int64_t *)data)[i] = (int64_t)item;
        break;
    case KELP_I32:
        ((int32_t *)data)[i] = (int32_t)item;
        break;
    case KELP_I8:
        ((int8_t *)data)[i] = (int8_t)item;
        break;
    case KELP_U8:
        ((uint8_t *)data)[i] = (uint8_t)item;
        break;
    case KELP_BOOL:
        ((bool *)data)[i] = item != 0;
        break;
    case KELP_F16:
    case KELP_BF16:
        ((uint16_t *)data)[i] = (uint16_t)item;
        break;
    default:
        fail_msg("constants of this type are not supported");
    }
}

/* Constants of a loaded model may be unaligned. */
static double item_of(const kelp_tensor *tensor, int64_t i) {
    size_t size = kelp_tensor_bytes(tensor) / (size_t)kelp_tensor_elements(tensor);
    union {
        float f32;
        double f64;
        int64_t i64;
        int32_t i32;
        int8_t i8;
        uint8_t u8;
        uint16_t u16;
    } item = {0};
    memcpy(&item, (const char *)tensor->data + (size_t)i * size, size);
    switch (tensor->dtype) {
    case KELP_F32:
        return (double)item.f32;
    case KELP_F64:
        return item.f64;
    case KELP_I64:
        return (double)item.i64;
    case KELP_I32:
        return item.i32;
    case KELP_I8:
        return item.i8;
    case KELP_U8:
        return item.u8;
    case KELP_BOOL:
        return item.u8;
    default:
        return item.u16;
    }
}

static kelp_tensor *new_constant(reader *r, kelp_value *value) {
    kelp_arena *arena = &r->graph->arena;
    kelp_tensor *tensor = KELP_ARENA_NEW(arena, kelp_tensor);
    assert_null(kelp_tensor_init(tensor, value->dtype, value->rank, value->shape, NULL));
    tensor->data = kelp_arena_alloc(arena, kelp_tensor_bytes(tensor) + 1, 64);
    value->constant = tensor;
    return tensor;
}

static void items(reader *r, kelp_value *value) {
    kelp_tensor *tensor = new_constant(r, value);
    bool up = strncmp(r->at, "up", 2) == 0;
    double item = 0;
    r->at += up ? 2 : 0;
    if (kelp_tensor_elements(tensor) == 0)
        number(r); /* of no element */
    for (int64_t i = 0; i < kelp_tensor_elements(tensor); i++) {
        while (*r->at == ' ')
            r->at++;
        if (up)
            item = (double)i;
        else if (i == 0 || at_number(r))
            item = number(r);
        set_item(tensor, i, item);
    }
}

/* ---- nodes ---- */
static kelp_value *literal(reader *r) {
    kelp_value *value = add_value(r, "");
    value->rank = 0;
    if (take(r, '[')) {
        double list[8];
        int64_t count = 0;
        while (!take(r, ']')) {
            assert_true(count < 8);
            list[count++] = number(r);
            take(r, ',');
        }
        value->rank = 1;
        value->shape[0] = count;
        value->dtype = KELP_I64;
        kelp_tensor *tensor = new_constant(r, value);
        for (int64_t i = 0; i < count; i++)
            set_item(tensor, i, list[i]);
        return value;
    }
    bool is_bool = take(r, 'b');
    value->dtype = is_bool ? KELP_BOOL : KELP_F32;
    items(r, value);
    return value;
}

static kelp_value *operand(reader *r) {
    while (*r->at == ' ')
        r->at++;
    if (at_number(r) || *r->at == '[' || (*r->at == 'b' && isdigit((unsigned char)r->at[1])))
        return literal(r);
    const char *name = word(r);
    if (strcmp(name, "_") == 0)
        return NULL;
    kelp_value *value = find(r, name);
    if (value == NULL)
        wrong(r, "the name of a value before this");
    return value;
}

static const kelp_operator any_operator = {.domain = "com.example",
                                           .name = "Custom",
                                           .id = KELP_OPERATOR_COUNT,
                                           .schema = KELP_ONNX_NO_SCHEMA};

static const kelp_operator *operator_of(reader *r, int64_t *out_version) {
    const char *name = word(r), *dot = strchr(name, '.'), *domain = "";
    if (dot != NULL) {
        domain = name[0] == 'k'   ? "kelp"
                 : name[0] == 'p' ? "ai.onnx.preview.training"
                                  : "com.microsoft";
        name = dot + 1;
    }
    *out_version = dot != NULL ? 1 : 17;
    if (dot != NULL && strcmp(name, any_operator.name) == 0)
        return &any_operator;
    const kelp_operator *op = kelp_operator_find(kelp_str_from(domain), kelp_str_from(name));
    if (op == NULL)
        wrong(r, "the name of an operator before this");
    return op;
}

/* A list of words. */
static void strings(reader *r, kelp_node *node, const char *name) {
    kelp_string *list = KELP_ARENA_ARRAY(&r->graph->arena, 8, kelp_string);
    assert_null(kelp_node_set_i64(node, name, 0));
    kelp_attr *attr = (kelp_attr *)(uintptr_t)kelp_node_find_attr(node, name);
    attr->type = KELP_ATTR_STRINGS;
    attr->strings = list;
    while (!take(r, ']')) {
        assert_true(attr->count < 8);
        list[attr->count].data = word(r);
        list[attr->count].length = strlen(list[attr->count].data);
        attr->count++;
        take(r, ',');
    }
}

static void attribute(reader *r, kelp_node *node) {
    const char *name = word(r);
    need(r, '=');
    if (*r->at == '[' && isalpha((unsigned char)r->at[1])) {
        r->at++;
        strings(r, node, name);
    } else if (take(r, '[')) {
        int64_t list[8];
        size_t count = 0;
        while (!take(r, ']')) {
            assert_true(count < 8);
            list[count++] = (int64_t)number(r);
            take(r, ',');
        }
        assert_null(kelp_node_set_i64s(node, name, list, count));
    } else if (at_number(r)) {
        const char *begin = r->at;
        double found = number(r);
        if (memchr(begin, '.', (size_t)(r->at - begin)) != NULL)
            assert_null(kelp_node_set_f32(node, name, (float)found));
        else
            assert_null(kelp_node_set_i64(node, name, (int64_t)found));
    } else {
        assert_null(kelp_node_set_string(node, name, word(r)));
    }
}

static void new_node(reader *r, kelp_value **outputs, size_t output_count) {
    kelp_value *inputs[16];
    size_t count = 0;
    int64_t version = 0;
    kelp_node *node = NULL;
    const kelp_operator *op = operator_of(r, &version);
    need(r, '(');
    while (!take(r, ')')) {
        assert_true(count < 16);
        inputs[count++] = operand(r);
        take(r, ',');
    }
    const char *name = outputs[0] != NULL ? outputs[0]->name : "";
    assert_null(kelp_block_add_node(r->block, op, version, name, inputs, count, outputs,
                                    output_count, NULL, &node));
    if (take(r, '{'))
        while (!take(r, '}')) {
            attribute(r, node);
            take(r, ',');
        }
    if (take(r, '@'))
        node->opset_version = (int64_t)number(r);
}

static void output(reader *r, kelp_value *value) {
    kelp_value **outputs =
        KELP_ARENA_ARRAY(&r->graph->arena, r->block->output_count + 1, kelp_value *);
    for (size_t i = 0; i < r->block->output_count; i++)
        outputs[i] = r->block->outputs[i];
    outputs[r->block->output_count++] = value;
    r->block->outputs = outputs;
    value->is_output = true;
}

static void statement(reader *r) {
    kelp_value *outputs[4] = {NULL}, *known = NULL;
    size_t count = 0;
    do {
        assert_true(count < 4);
        const char *name = word(r);
        known = find(r, name);
        if (strcmp(name, "_") != 0 && known == NULL)
            outputs[count] = add_value(r, name);
        if (take(r, ':'))
            type(r, outputs[count]);
        count++;
    } while (take(r, ','));
    if (known != NULL) {
        output(r, known);
    } else if (!take(r, '=')) {
        outputs[0]->is_input = true;
    } else if (at_number(r) || strncmp(r->at, "up", 2) == 0) {
        items(r, outputs[0]);
    } else {
        new_node(r, outputs, count);
    }
}

kelp_graph *graph_from_text(const char *text) {
    reader r = {.text = text, .at = text};
    assert_null(kelp_graph_new(kelp_allocator_system(), &r.graph));
    r.block = r.graph->main;
    do {
        statement(&r);
    } while (take(&r, ';'));
    take(&r, ' ');
    if (*r.at != '\0')
        wrong(&r, "';'");
    if (r.block->output_count == 0) {
        assert_true(r.block->node_count > 0);
        output(&r, r.block->nodes[r.block->node_count - 1]->outputs[0]);
    }
    kelp_status *status = kelp_block_infer(r.block);
    if (status != NULL)
        fail_msg("%s in '%s'", kelp_status_message(status), text);
    kelp_block_count_uses(r.block);
    return r.graph;
}

/* ---- the remaining nodes ---- */
typedef struct writer {
    char text[4096];
    size_t length;
} writer;

static void put(writer *w, const char *format, ...) KELP_PRINTF(2, 3);
static void put(writer *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    w->length +=
        (size_t)vsnprintf(w->text + w->length, sizeof w->text - w->length, format, arguments);
    va_end(arguments);
    assert_true(w->length < sizeof w->text);
}

static void put_constant(writer *w, const kelp_value *value) {
    const kelp_tensor *tensor = value->constant;
    int64_t count = kelp_tensor_elements(tensor), same = 0;
    while (same < count && item_of(tensor, same) == item_of(tensor, 0))
        same++;
    if (tensor->rank == 0) {
        put(w, "%g", item_of(tensor, 0));
    } else if (count > 1 && same == count) {
        put(w, "<%g x%" PRId64 ">", item_of(tensor, 0), count);
    } else if (count > 8) {
        put(w, "%s", value->name);
    } else {
        for (int64_t i = 0; i < count; i++)
            put(w, "%s%g", i == 0 ? "<" : " ", item_of(tensor, i));
        put(w, count == 0 ? "<>" : ">");
    }
}

static void put_attributes(writer *w, const kelp_node *node) {
    for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next) {
        put(w, "%s%s=", attr == node->attributes ? "{" : ",", attr->name);
        if (attr->type == KELP_ATTR_INT)
            put(w, "%" PRId64, attr->i);
        else if (attr->type == KELP_ATTR_FLOAT)
            put(w, "%g", (double)attr->f);
        else if (attr->type == KELP_ATTR_STRING)
            put(w, "%.*s", (int)attr->s.length, attr->s.data);
        for (size_t i = 0; attr->type == KELP_ATTR_INTS && i < attr->count; i++)
            put(w, "%s%" PRId64, i == 0 ? "[" : " ", attr->ints[i]);
        if (attr->type == KELP_ATTR_INTS)
            put(w, attr->count == 0 ? "[]" : "]");
    }
    if (node->attributes != NULL)
        put(w, "}");
}

const char *nodes_as_text(const kelp_block *block) {
    static writer w;
    w.length = 0;
    w.text[0] = '\0';
    for (size_t n = 0; n < block->node_count; n++) {
        const kelp_node *node = block->nodes[n];
        if (n > 0)
            put(&w, "; ");
        for (size_t i = 0; i < node->output_count; i++)
            put(&w, "%s%s", i > 0 ? "," : "",
                node->outputs[i] != NULL ? node->outputs[i]->name : "_");
        put(&w, "=%s(", node->op->name);
        for (size_t i = 0; i < node->input_count; i++) {
            const kelp_value *value = node->inputs[i];
            put(&w, i > 0 ? "," : "");
            if (value != NULL && value->constant != NULL)
                put_constant(&w, value);
            else
                put(&w, "%s", value != NULL ? value->name : "_");
        }
        put(&w, ")");
        put_attributes(&w, node);
        if (node->outputs[0] != NULL && strcmp(node->name, node->outputs[0]->name) != 0)
            put(&w, "#%s", node->name);
    }
    return w.text;
}

/* ---- checks ---- */
static const char *type_as_text(const kelp_value *value) {
    static writer w;
    w.length = 0;
    put(&w, "%d %d %d:", (int)value->kind, (int)value->dtype, (int)value->rank);
    for (int32_t i = 0; i < value->rank; i++)
        put(&w, " %" PRId64 "%s", value->shape[i],
            value->shape[i] < 0 && value->symbols[i] != NULL ? value->symbols[i] : "");
    return w.text;
}

static void check_input(const kelp_node *node, const kelp_value *value) {
    if (value == NULL || value->constant != NULL || value->is_input)
        return;
    assert_non_null(value->producer);
    assert_false(value->producer->removed);
    assert_true(value->producer->index < node->index);
}

void check_block(const kelp_block *block) {
    uint32_t *uses = calloc(block->value_count + 1, sizeof *uses);
    assert_non_null(uses);
    for (size_t n = 0; n < block->node_count; n++) {
        const kelp_node *node = block->nodes[n];
        assert_int_equal(node->index, n);
        assert_false(node->removed);
        for (size_t i = 0; i < node->input_count; i++) {
            check_input(node, node->inputs[i]);
            if (node->inputs[i] != NULL)
                uses[node->inputs[i]->id]++;
        }
        for (size_t i = 0; i < node->output_count; i++)
            if (node->outputs[i] != NULL)
                assert_ptr_equal(node->outputs[i]->producer, node);
    }
    for (size_t i = 0; i < block->output_count; i++) {
        assert_true(block->outputs[i]->is_output);
        uses[block->outputs[i]->id]++;
    }
    for (size_t i = 0; i < block->value_count; i++) {
        assert_int_equal(block->values[i]->id, i);
        assert_int_equal(block->values[i]->use_count, uses[i]);
    }
    free(uses);
}

/* Returns the number of outputs of nodes without a known type and rank. */
static size_t untyped(const kelp_block *block) {
    size_t count = 0;
    for (size_t n = 0; n < block->node_count; n++)
        for (size_t i = 0; i < block->nodes[n]->output_count; i++) {
            const kelp_value *value = block->nodes[n]->outputs[i];
            count += value != NULL && (value->dtype == KELP_DTYPE_INVALID || value->rank < 0);
        }
    return count;
}

/* Passes keep the known types of outputs, and set those of the values that they create. */
static void check_types(const kelp_block *block, const char *const *types) {
    for (size_t i = 0; i < block->output_count; i++)
        if (types[i] != NULL)
            assert_string_equal(type_as_text(block->outputs[i]), types[i]);
    for (size_t n = 0; n < block->node_count; n++)
        for (size_t i = 0; i < block->nodes[n]->input_count; i++) {
            const kelp_value *value = block->nodes[n]->inputs[i];
            if (value == NULL || value->constant == NULL)
                continue;
            assert_int_equal(value->kind, KELP_VALUE_TENSOR);
            assert_int_equal(value->dtype, value->constant->dtype);
            assert_int_equal(value->rank, value->constant->rank);
            assert_memory_equal(value->shape, value->constant->shape,
                                (size_t)value->rank * sizeof *value->shape);
        }
}

void expect_passes(kelp_status *(*pass)(kelp_block *block), const pass_case *cases, size_t count) {
    size_t different = 0;
    for (size_t i = 0; i < count; i++) {
        kelp_graph *graph = graph_from_text(cases[i].before);
        char before[4096];
        const char *types[8];
        kelp_block_remove_dead(graph->main);
        snprintf(before, sizeof before, "%s", nodes_as_text(graph->main));
        kelp_block_count_uses(graph->main);
        assert_true(graph->main->output_count <= 8);
        for (size_t k = 0; k < graph->main->output_count; k++)
            types[k] =
                graph->main->outputs[k]->dtype != KELP_DTYPE_INVALID
                    ? kelp_arena_printf(&graph->arena, "%s", type_as_text(graph->main->outputs[k]))
                    : NULL;
        size_t unknown = untyped(graph->main);
        assert_null(pass(graph->main));
        check_block(graph->main);
        assert_true(untyped(graph->main) <= unknown);
        check_types(graph->main, types);
        kelp_block_remove_dead(graph->main);
        const char *after = nodes_as_text(graph->main);
        const char *expected = cases[i].after != NULL ? cases[i].after : before;
        if (strcmp(after, expected) != 0) {
            print_error("%s\n  expected %s\n  found    %s\n", cases[i].before, expected, after);
            different++;
        }
        kelp_graph_release(graph);
    }
    assert_int_equal(different, 0);
}
