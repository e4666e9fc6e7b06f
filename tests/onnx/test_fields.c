/* SPDX-License-Identifier: Apache-2.0 */
/* Every field of a model: what is written is read, unknown wire types are ignored or rejected, and
 * each failed allocation is a status. Sparse tensors become dense ones. */
#include "base/checked.h"
#include "onnx/fields.h"
#include "onnx/model.h"
#include "onnx/onnx_writer.h"
#include "base/wire/protobuf.h"
#include "base/wire/protobuf_write.h"
#include "support/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

typedef struct fixture {
    kelp_arena arena;
    kelp_onnx_reader reader;
    kelp_onnx_model model;
} fixture;

static kelp_status *read_with(fixture *f, kelp_allocator allocator, const pb *model) {
    kelp_arena_init(&f->arena, allocator, 1);
    f->reader = (kelp_onnx_reader){.arena = &f->arena,
                                   .data = &f->arena,
                                   .label = "m.onnx",
                                   .limits = {.nodes = 1000, .depth = 8}};
    return kelp_onnx_read(&f->reader, (kelp_str){model->data, model->length}, &f->model);
}

static void read_model(fixture *f, const pb *model) {
    kelp_status *status = read_with(f, kelp_allocator_system(), model);
    if (status != NULL)
        fail_msg("%s", kelp_status_message(status));
}

static void assert_rejected(const pb *model, kelp_code code, const char *part) {
    fixture f;
    kelp_status *status = read_with(&f, kelp_allocator_system(), model);
    char text[512];
    assert_non_null(status);
    kelp_status_format(status, text, sizeof text);
    if (strstr(text, part) == NULL)
        fail_msg("expected '%s' in '%s'", part, text);
    assert_int_equal(kelp_status_code(status), code);
    kelp_status_free(status);
    kelp_arena_deinit(&f.arena);
}

/* ---- attributes ---- */
/* A model with one node with one attribute, of `type` or of the type that its field implies (0). */
static pb model_of_attribute(pb *attribute, uint64_t type) {
    static pb node, graph;
    node = pb_node("X", "", "y");
    graph = (pb){0};
    pb_text(attribute, ATTRIBUTE_NAME, "a");
    if (type != 0)
        pb_int(attribute, ATTRIBUTE_TYPE, type);
    pb_message(&node, NODE_ATTRIBUTE, attribute);
    pb_add_node(&graph, &node);
    return pb_model(&graph, 17);
}

static void put_value(pb *out, kelp_attr_type type) {
    static const int64_t one[] = {1};
    pb tensor = pb_tensor("t", KELP_U8, 1, one, "\x07", 1), graph = {0};
    pb_text(&graph, GRAPH_NAME, "inner");
    *out = (pb){0};
    for (int i = 0; i < 2; i++) {
        if (type == KELP_ATTR_FLOAT && i == 0)
            pb_float(out, ATTRIBUTE_F, 1.5f);
        if (type == KELP_ATTR_INT && i == 0)
            pb_int(out, ATTRIBUTE_I, (uint64_t)-3);
        if (type == KELP_ATTR_STRING && i == 0)
            pb_text(out, ATTRIBUTE_S, "text");
        if (type == KELP_ATTR_TENSOR && i == 0)
            pb_message(out, ATTRIBUTE_T, &tensor);
        if (type == KELP_ATTR_GRAPH && i == 0)
            pb_message(out, ATTRIBUTE_G, &graph);
        if (type == KELP_ATTR_FLOATS)
            pb_float(out, ATTRIBUTE_FLOATS, 2.5f);
        if (type == KELP_ATTR_INTS)
            pb_int(out, ATTRIBUTE_INTS, 4);
        if (type == KELP_ATTR_STRINGS)
            pb_text(out, ATTRIBUTE_STRINGS, "s");
        if (type == KELP_ATTR_TENSORS)
            pb_message(out, ATTRIBUTE_TENSORS, &tensor);
        if (type == KELP_ATTR_GRAPHS)
            pb_message(out, ATTRIBUTE_GRAPHS, &graph);
    }
}

static void check_value(const kelp_onnx_attr *a, kelp_attr_type type) {
    assert_true(kelp_str_is(a->name, "a"));
    assert_int_equal(a->type, type);
    bool is_one = type <= KELP_ATTR_STRING, is_single = type <= KELP_ATTR_GRAPH;
    assert_int_equal(a->count, is_one ? 0 : is_single ? 1 : 2);
    size_t last = a->count > 0 ? a->count - 1 : 0;
    if (type == KELP_ATTR_FLOAT)
        assert_true(a->f == 1.5f);
    else if (type == KELP_ATTR_INT)
        assert_int_equal(a->i, -3);
    else if (type == KELP_ATTR_STRING)
        assert_true(kelp_str_is(a->s, "text"));
    else if (type == KELP_ATTR_FLOATS)
        assert_true(a->floats[last] == 2.5f);
    else if (type == KELP_ATTR_INTS)
        assert_int_equal(a->ints[last], 4);
    else if (type == KELP_ATTR_STRINGS)
        assert_memory_equal(a->strings[last].data, "s", 1);
    else if (type == KELP_ATTR_TENSOR || type == KELP_ATTR_TENSORS)
        assert_int_equal(*(const uint8_t *)a->tensors[last].tensor.data, 7);
    else
        assert_true(kelp_str_is(a->graphs[last].name, "inner"));
}

static const kelp_attr_type attr_types[] = {
    KELP_ATTR_FLOAT,  KELP_ATTR_INT,  KELP_ATTR_STRING,  KELP_ATTR_TENSOR,  KELP_ATTR_GRAPH,
    KELP_ATTR_FLOATS, KELP_ATTR_INTS, KELP_ATTR_STRINGS, KELP_ATTR_TENSORS, KELP_ATTR_GRAPHS};

static void attributes_of_every_type_are_read_with_and_without_their_type(void **state) {
    (void)state;
    for (size_t i = 0; i < KELP_COUNT(attr_types); i++) {
        for (int declared = 0; declared < 2; declared++) {
            static pb attribute, model;
            fixture f;
            put_value(&attribute, attr_types[i]);
            model = model_of_attribute(&attribute, declared ? (uint64_t)attr_types[i] : 0);
            read_model(&f, &model);
            check_value(&f.model.graph.nodes[0].attrs[0], attr_types[i]);
            kelp_arena_deinit(&f.arena);
        }
    }
}

static void attributes_without_a_value_or_name(void **state) {
    (void)state;
    static pb attribute, model, node, graph;
    fixture f;
    attribute = (pb){0};
    model = model_of_attribute(&attribute, 0);
    read_model(&f, &model);
    assert_int_equal(f.model.graph.nodes[0].attrs[0].type, KELP_ATTR_NONE);
    kelp_arena_deinit(&f.arena);
    attribute = (pb){0};
    pb_int(&attribute, ATTRIBUTE_I, 1);
    node = pb_node("X", "", "y");
    pb_message(&node, NODE_ATTRIBUTE, &attribute);
    graph = (pb){0};
    pb_add_node(&graph, &node);
    model = pb_model(&graph, 17);
    assert_rejected(&model, KELP_INVALID_ARGUMENT, "name: expected one, found none");
    attribute = (pb){0};
    pb_bytes(&attribute, ATTRIBUTE_INTS, "\x80", 1);
    model = model_of_attribute(&attribute, KELP_ATTR_INTS);
    assert_rejected(&model, KELP_INVALID_ARGUMENT, "ints: malformed packed numbers");
}

/* ---- types of values ---- */
static pb model_with_type(const pb *type) {
    static pb value, graph;
    value = (pb){0};
    graph = (pb){0};
    pb_text(&value, VALUE_INFO_NAME, "x");
    pb_text(&value, 3, "documentation");
    pb_message(&value, VALUE_INFO_TYPE, type);
    pb_message(&graph, GRAPH_INPUT, &value);
    return pb_model(&graph, 17);
}

static void containers_keep_the_type_of_their_tensors(void **state) {
    (void)state;
    static const struct {
        uint32_t field, element;
        kelp_value_kind kind;
    } cases[] = {{TYPE_SEQUENCE, CONTAINER_TYPE_ELEM_TYPE, KELP_VALUE_SEQUENCE},
                 {TYPE_OPTIONAL, CONTAINER_TYPE_ELEM_TYPE, KELP_VALUE_OPTIONAL},
                 {TYPE_MAP, MAP_TYPE_VALUE_TYPE, KELP_VALUE_MAP}};
    for (size_t i = 0; i < KELP_COUNT(cases); i++) {
        static pb tensor, inner, container, type, shape, dim, model;
        fixture f;
        tensor = inner = container = type = shape = dim = (pb){0};
        pb_int(&dim, DIMENSION_DIM_VALUE, 5);
        pb_message(&shape, SHAPE_DIM, &dim);
        pb_int(&tensor, TENSOR_TYPE_ELEM_TYPE, KELP_F16);
        pb_message(&tensor, TENSOR_TYPE_SHAPE, &shape);
        pb_message(&inner, TYPE_TENSOR, &tensor);
        if (cases[i].kind == KELP_VALUE_MAP)
            pb_int(&container, 1, KELP_I64); /* the key's type */
        pb_text(&container, 7, "not the element");
        pb_message(&container, cases[i].element, &inner);
        pb_message(&type, cases[i].field, &container);
        model = model_with_type(&type);
        read_model(&f, &model);
        const kelp_onnx_value *value = &f.model.graph.inputs[0];
        assert_true(kelp_str_is(value->name, "x"));
        assert_int_equal(value->type.kind, cases[i].kind);
        assert_int_equal(value->type.dtype, KELP_F16);
        assert_int_equal(value->type.rank, 1);
        assert_int_equal(value->type.shape[0], 5);
        kelp_arena_deinit(&f.arena);
    }
}

static void wrong_types_of_values_are_rejected(void **state) {
    (void)state;
    static pb tensor, type, shape, dim, model;
    for (int fault = 0; fault < 5; fault++) {
        tensor = type = shape = dim = (pb){0};
        if (fault == 0)
            pb_int(&dim, DIMENSION_DIM_VALUE, (uint64_t)-2);
        if (fault == 1)
            pb_varint(&dim, 0x80);
        pb_message(&shape, SHAPE_DIM, &dim);
        if (fault == 2)
            pb_varint(&shape, 7 << 3);
        pb_int(&tensor, TENSOR_TYPE_ELEM_TYPE, fault == 3 ? 1000 : KELP_F32);
        pb_message(&tensor, TENSOR_TYPE_SHAPE, &shape);
        if (fault == 4)
            pb_varint(&tensor, 7 << 3);
        pb_message(&type, TYPE_TENSOR, &tensor);
        model = model_with_type(&type);
        static const char *const parts[] = {
            "shape.dim[0]: expected a dimension, found -2", "malformed", "malformed",
            "elem_type: expected a data type, found 1000", "malformed"};
        assert_rejected(&model, KELP_INVALID_ARGUMENT, parts[fault]);
    }
}

/* A field with the number of a known one and another wire type is not that field. */
static void fields_of_other_wire_types_are_ignored_in_types(void **state) {
    (void)state;
    static pb tensor, type, shape, dim, model;
    fixture f;
    tensor = type = shape = dim = (pb){0};
    pb_text(&dim, DIMENSION_DIM_VALUE, "text");
    pb_int(&dim, DIMENSION_DIM_PARAM, 4);
    pb_int(&dim, 3, 77);
    pb_text(&dim, 3, "denotation");
    pb_message(&shape, SHAPE_DIM, &dim);
    pb_int(&shape, SHAPE_DIM, 3);
    pb_text(&tensor, TENSOR_TYPE_ELEM_TYPE, "text");
    pb_int(&tensor, 5, KELP_I8);
    pb_int(&tensor, TENSOR_TYPE_SHAPE, 9);
    pb_message(&tensor, TENSOR_TYPE_SHAPE, &shape);
    pb_message(&type, TYPE_TENSOR, &tensor);
    pb_int(&type, TYPE_SEQUENCE, 1);
    model = model_with_type(&type);
    read_model(&f, &model);
    const kelp_onnx_type *read = &f.model.graph.inputs[0].type;
    assert_int_equal(read->kind, KELP_VALUE_TENSOR);
    assert_int_equal(read->dtype, KELP_DTYPE_INVALID);
    assert_int_equal(read->rank, 1);
    assert_int_equal(read->shape[0], -1);
    assert_int_equal(read->symbols[0].length, 0);
    kelp_arena_deinit(&f.arena);
}

/* ---- tensors ---- */
static void packed_data_in_several_fields_is_joined(void **state) {
    (void)state;
    static const int64_t dims[] = {3};
    static pb tensor, graph, model;
    const float two[] = {1.5f, -2.0f}, one[] = {4.0f};
    fixture f;
    tensor = graph = (pb){0};
    pb_bytes(&tensor, TENSOR_DIMS, "\x03", 1); /* packed */
    pb_int(&tensor, TENSOR_DATA_TYPE, KELP_F32);
    pb_bytes(&tensor, TENSOR_FLOAT_DATA, two, sizeof two);
    pb_bytes(&tensor, TENSOR_FLOAT_DATA, one, sizeof one);
    pb_add_initializer(&graph, &tensor);
    model = pb_model(&graph, 17);
    read_model(&f, &model);
    const kelp_tensor *read = &f.model.graph.initializers[0].tensor;
    assert_int_equal(read->shape[0], dims[0]);
    const float expected[] = {1.5f, -2.0f, 4.0f};
    assert_memory_equal(read->data, expected, sizeof expected);
    kelp_arena_deinit(&f.arena);
    tensor = graph = (pb){0};
    pb_bytes(&tensor, TENSOR_DIMS, "\x03\x80", 2);
    pb_add_initializer(&graph, &tensor);
    model = pb_model(&graph, 17);
    assert_rejected(&model, KELP_INVALID_ARGUMENT, "dims: malformed packed numbers");
}

/* ---- sparse tensors ---- */
static pb sparse_tensor(kelp_dtype dtype, const void *values, size_t bytes, int64_t count,
                        int32_t index_rank, const int64_t *indices, int32_t rank,
                        const int64_t *dims) {
    static pb value, index, out;
    int64_t index_dims[] = {count, rank};
    out = (pb){0};
    value = pb_tensor("w", dtype, 1, &count, values, bytes);
    index = pb_tensor("", KELP_I64, index_rank, index_dims, indices,
                      (size_t)(count * (index_rank == 2 ? rank : 1)) * sizeof *indices);
    pb_message(&out, SPARSE_VALUES, &value);
    pb_message(&out, SPARSE_INDICES, &index);
    for (int32_t i = 0; i < rank; i++)
        pb_int(&out, SPARSE_DIMS, (uint64_t)dims[i]);
    return out;
}

static pb model_of_sparse(const pb *sparse) {
    static pb graph;
    graph = (pb){0};
    pb_message(&graph, GRAPH_SPARSE_INITIALIZER, sparse);
    return pb_model(&graph, 17);
}

static void sparse_tensors_are_read_as_dense_ones(void **state) {
    (void)state;
    static const int64_t dims[] = {2, 3}, linear[] = {1, 5}, by_axis[] = {0, 1, 1, 2};
    const int16_t values[] = {7, -9}, expected[] = {0, 7, 0, 0, 0, -9};
    for (int32_t index_rank = 1; index_rank <= 2; index_rank++) {
        static pb sparse, model;
        fixture f;
        sparse = sparse_tensor(KELP_I16, values, sizeof values, 2, index_rank,
                               index_rank == 1 ? linear : by_axis, 2, dims);
        model = model_of_sparse(&sparse);
        read_model(&f, &model);
        const kelp_onnx_tensor *read = &f.model.graph.initializers[0];
        assert_int_equal(f.model.graph.initializer_count, 1);
        assert_true(kelp_str_is(read->name, "w"));
        assert_int_equal(read->tensor.dtype, KELP_I16);
        assert_int_equal(read->tensor.rank, 2);
        assert_true(read->tensor.flags & KELP_TENSOR_READ_ONLY);
        assert_memory_equal(read->tensor.data, expected, sizeof expected);
        kelp_arena_deinit(&f.arena);
    }
}

static void wrong_sparse_tensors_are_rejected(void **state) {
    (void)state;
    static const int64_t dims[] = {2, 3}, huge[] = {1 << 20, 1 << 20};
    static const struct {
        kelp_dtype dtype;
        size_t bytes;
        int32_t index_rank;
        int64_t indices[4];
        const char *part;
        kelp_code code;
    } cases[] = {
        {KELP_U8, 2, 1, {0, 6}, "index 6 of value 1 is outside [0, 6)", KELP_INVALID_ARGUMENT},
        {KELP_U8, 2, 1, {-1, 1}, "index -1 of value 0 is outside [0, 6)", KELP_INVALID_ARGUMENT},
        {KELP_U8,
         2,
         2,
         {0, 0, 1, 3},
         "index 3 of value 1 is outside [0, 3)",
         KELP_INVALID_ARGUMENT},
        {KELP_U8,
         2,
         2,
         {0, 0, 2, 0},
         "index 2 of value 1 is outside [0, 2)",
         KELP_INVALID_ARGUMENT},
        {KELP_I4, 1, 1, {0, 1}, "values: expected a vector", KELP_INVALID_ARGUMENT},
    };
    static pb sparse, model;
    for (size_t i = 0; i < KELP_COUNT(cases); i++) {
        sparse = sparse_tensor(cases[i].dtype, "\x01\x02", cases[i].bytes, 2, cases[i].index_rank,
                               cases[i].indices, 2, dims);
        model = model_of_sparse(&sparse);
        assert_rejected(&model, cases[i].code, cases[i].part);
    }
    sparse = sparse_tensor(KELP_U8, "\x01\x02", 2, 2, 1, (int64_t[]){0, 1}, 2, huge);
    model = model_of_sparse(&sparse);
    assert_rejected(&model, KELP_RESOURCE_EXHAUSTED, "the dense tensor takes 1099511627776 bytes");
    static pb part;
    for (int missing = 0; missing < 2; missing++) { /* only indices, only values */
        sparse = (pb){0};
        part = pb_tensor("", missing == 0 ? KELP_I64 : KELP_U8, 1, (int64_t[]){1}, "\0\0\0\0\0\0\0",
                         missing == 0 ? 8 : 1);
        pb_message(&sparse, missing == 0 ? SPARSE_INDICES : SPARSE_VALUES, &part);
        pb_int(&sparse, SPARSE_DIMS, 4);
        model = model_of_sparse(&sparse);
        assert_rejected(&model, KELP_INVALID_ARGUMENT,
                        "expected a SparseTensorProto with values and indices");
    }
    /* indices of another shape or type than the values need */
    for (int fault = 0; fault < 2; fault++) {
        sparse = (pb){0};
        part = pb_tensor("", KELP_U8, 1, (int64_t[]){2}, "\1\2", 2);
        pb_message(&sparse, SPARSE_VALUES, &part);
        part = fault == 0 ? pb_tensor("", KELP_I64, 1, (int64_t[]){1}, "\0\0\0\0\0\0\0", 8)
                          : pb_tensor("", KELP_I32, 1, (int64_t[]){2}, "\0\0\0\0\1\0\0", 8);
        pb_message(&sparse, SPARSE_INDICES, &part);
        pb_int(&sparse, SPARSE_DIMS, 4);
        model = model_of_sparse(&sparse);
        assert_rejected(&model, KELP_INVALID_ARGUMENT, "indices: expected int64 [2] or [2,1]");
    }
}

static void a_sparse_attribute_is_a_tensor(void **state) {
    (void)state;
    static const int64_t dims[] = {4}, at[] = {2};
    static pb sparse, attribute, model;
    fixture f;
    sparse = sparse_tensor(KELP_U8, "\x05", 1, 1, 1, at, 1, dims);
    attribute = (pb){0};
    pb_message(&attribute, ATTRIBUTE_SPARSE_TENSOR, &sparse);
    model = model_of_attribute(&attribute, KELP_ATTR_SPARSE_TENSOR);
    read_model(&f, &model);
    const kelp_onnx_attr *read = &f.model.graph.nodes[0].attrs[0];
    assert_int_equal(read->type, KELP_ATTR_TENSOR);
    assert_int_equal(read->count, 1);
    assert_memory_equal(read->tensors[0].tensor.data, "\0\0\x05\0", 4);
    kelp_arena_deinit(&f.arena);
}

/* ---- graphs, functions and models ---- */
static pb complete_model(void) {
    static pb graph, node, attribute, model, function, sparse;
    static const int64_t one[] = {1};
    graph = attribute = function = (pb){0};
    node = pb_node("Twice", "x", "y");
    pb_text(&node, NODE_DOMAIN, "own");
    pb_text(&node, NODE_OVERLOAD, "f32");
    put_value(&attribute, KELP_ATTR_TENSORS);
    pb_text(&attribute, ATTRIBUTE_NAME, "a");
    pb_int(&attribute, ATTRIBUTE_TYPE, KELP_ATTR_TENSORS);
    pb_message(&node, NODE_ATTRIBUTE, &attribute);
    pb_add_node(&graph, &node);
    node = (pb){0};
    pb_text(&node, NODE_OUTPUT, "first");
    pb_text(&node, NODE_OUTPUT, "second");
    pb_text(&node, NODE_OP_TYPE, "Unnamed");
    pb_add_node(&graph, &node);
    sparse = sparse_tensor(KELP_U8, "\x05", 1, 1, 1, (const int64_t[]){0}, 1, one);
    pb_message(&graph, GRAPH_SPARSE_INITIALIZER, &sparse);
    pb tensor = pb_tensor("v", KELP_U8, 1, one, "\x09", 1);
    pb_add_initializer(&graph, &tensor);
    pb_text(&graph, GRAPH_NAME, "g");
    pb_text(&graph, GRAPH_DOC_STRING, "about the graph");
    pb_add_input(&graph, "x", "float32[1]");
    pb_add_output(&graph, "y", "float32[1]");
    model = pb_model(&graph, 17);
    pb_text(&model, MODEL_PRODUCER_NAME, "maker");
    pb_text(&model, MODEL_PRODUCER_VERSION, "1.2");
    pb_text(&model, MODEL_DOMAIN, "org.example");
    pb_int(&model, MODEL_MODEL_VERSION, 42);
    pb_text(&model, MODEL_DOC_STRING, "about the model");
    pb_text(&function, FUNCTION_NAME, "Twice");
    pb_text(&function, FUNCTION_DOMAIN, "own");
    pb_text(&function, FUNCTION_OVERLOAD, "f32");
    pb_text(&function, FUNCTION_INPUT, "a");
    pb_text(&function, FUNCTION_OUTPUT, "b");
    pb_text(&function, FUNCTION_ATTRIBUTE, "scale");
    node = pb_node("Add", "a a", "b");
    pb_message(&function, FUNCTION_NODE, &node);
    pb_message(&model, MODEL_FUNCTIONS, &function);
    return model;
}

static void every_field_of_a_model_is_kept(void **state) {
    (void)state;
    static pb model;
    fixture f;
    model = complete_model();
    read_model(&f, &model);
    const kelp_onnx_model *m = &f.model;
    assert_true(kelp_str_is(m->producer_name, "maker"));
    assert_true(kelp_str_is(m->producer_version, "1.2"));
    assert_true(kelp_str_is(m->domain, "org.example"));
    assert_int_equal(m->model_version, 42);
    assert_true(kelp_str_is(m->doc, "about the model"));
    assert_true(kelp_str_is(m->graph.doc, "about the graph"));
    assert_int_equal(m->graph.initializer_count, 2);
    assert_true(kelp_str_is(m->graph.initializers[0].name, "w"));
    assert_true(kelp_str_is(m->graph.initializers[1].name, "v"));
    assert_true(kelp_str_is(m->graph.nodes[0].op_type, "Twice:f32"));
    assert_true(kelp_str_is(m->graph.nodes[0].domain, "own"));
    assert_int_equal(m->graph.nodes[0].attrs[0].count, 2);
    assert_true(kelp_str_is(m->graph.nodes[1].name, "first"));
    const kelp_onnx_function *function = &m->functions[0];
    assert_true(kelp_str_is(function->name, "Twice:f32"));
    assert_true(kelp_str_is(function->domain, "own"));
    assert_true(kelp_str_is(function->inputs[0], "a"));
    assert_true(kelp_str_is(function->outputs[0], "b"));
    assert_true(kelp_str_is(function->attributes[0], "scale"));
    assert_true(kelp_str_is(function->nodes[0].op_type, "Add"));
    kelp_arena_deinit(&f.arena);
}

static void each_failed_allocation_is_a_status(void **state) {
    (void)state;
    static pb model;
    model = complete_model();
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        fixture f;
        test_failing_init(&memory, n);
        kelp_status *status = read_with(&f, test_failing_allocator(&memory), &model);
        bool failed = memory.failed;
        kelp_arena_deinit(&f.arena);
        test_failing_check(&memory);
        test_failing_deinit(&memory);
        assert_int_equal(kelp_status_code(status), failed ? KELP_RESOURCE_EXHAUSTED : KELP_OK);
        kelp_status_free(status);
        if (!failed)
            break;
    }
}

static void a_graph_that_ends_early_is_rejected(void **state) {
    (void)state;
    static pb graph, model;
    graph = (pb){0};
    pb_text(&graph, GRAPH_NAME, "g");
    pb_varint(&graph, 1 << 3 | 2);
    model = pb_model(&graph, 17);
    assert_rejected(&model, KELP_INVALID_ARGUMENT, "GraphProto");
}

static void nodes_have_a_limit_of_attributes(void **state) {
    (void)state;
    static pb node, graph, model;
    node = pb_node("X", "", "y");
    graph = (pb){0};
    for (int i = 0; i < 20000; i++)
        pb_bytes(&node, NODE_ATTRIBUTE, "", 0);
    pb_add_node(&graph, &node);
    model = pb_model(&graph, 17);
    assert_rejected(&model, KELP_RESOURCE_EXHAUSTED, "a node has more than");
}

/* ---- writing ---- */
static void written_fields_are_read_back(void **state) {
    (void)state;
    static const uint64_t numbers[] = {0, 1, 127, 128, 300, 1ull << 35, UINT64_MAX};
    kelp_buf buf, inner;
    kelp_buf_init(&buf, kelp_allocator_system());
    kelp_buf_init(&inner, kelp_allocator_system());
    for (size_t i = 0; i < KELP_COUNT(numbers); i++)
        kelp_protobuf_put_i64(&buf, (uint32_t)(1 + 40 * i), (int64_t)numbers[i]);
    kelp_protobuf_put_f32(&buf, 2, -1.5f);
    kelp_protobuf_put_text(&buf, 3, "text");
    kelp_protobuf_put_i64(&inner, 1, 5);
    kelp_protobuf_put_message(&buf, 4, &inner);
    assert_int_equal(inner.length, 0);
    kelp_protobuf wire = kelp_protobuf_of((kelp_str){buf.data, buf.length});
    kelp_protobuf_field field;
    for (size_t i = 0; i < KELP_COUNT(numbers); i++) {
        assert_int_equal(kelp_protobuf_next(&wire, &field), KELP_PROTOBUF_FIELD);
        assert_int_equal(field.number, 1 + 40 * i);
        assert_int_equal(field.type, KELP_PROTOBUF_VARINT);
        assert_true(field.value == numbers[i]);
    }
    assert_int_equal(kelp_protobuf_next(&wire, &field), KELP_PROTOBUF_FIELD);
    float f32;
    memcpy(&f32, &field.value, sizeof f32);
    assert_int_equal(field.type, KELP_PROTOBUF_I32);
    assert_true(f32 == -1.5f);
    assert_int_equal(kelp_protobuf_next(&wire, &field), KELP_PROTOBUF_FIELD);
    assert_true(kelp_str_is(field.bytes, "text"));
    assert_int_equal(kelp_protobuf_next(&wire, &field), KELP_PROTOBUF_FIELD);
    assert_int_equal(field.number, 4);
    assert_memory_equal(field.bytes.data, "\x08\x05", 2);
    assert_int_equal(field.bytes.length, 2);
    assert_int_equal(kelp_protobuf_next(&wire, &field), KELP_PROTOBUF_END);
    inner.failed = true; /* a message without memory fails the one around it */
    kelp_protobuf_put_message(&buf, 4, &inner);
    assert_true(buf.failed);
    kelp_buf_deinit(&buf);
    kelp_buf_deinit(&inner);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_of_every_type_are_read_with_and_without_their_type),
        cmocka_unit_test(attributes_without_a_value_or_name),
        cmocka_unit_test(containers_keep_the_type_of_their_tensors),
        cmocka_unit_test(wrong_types_of_values_are_rejected),
        cmocka_unit_test(fields_of_other_wire_types_are_ignored_in_types),
        cmocka_unit_test(packed_data_in_several_fields_is_joined),
        cmocka_unit_test(sparse_tensors_are_read_as_dense_ones),
        cmocka_unit_test(wrong_sparse_tensors_are_rejected),
        cmocka_unit_test(a_sparse_attribute_is_a_tensor),
        cmocka_unit_test(every_field_of_a_model_is_kept),
        cmocka_unit_test(each_failed_allocation_is_a_status),
        cmocka_unit_test(a_graph_that_ends_early_is_rejected),
        cmocka_unit_test(nodes_have_a_limit_of_attributes),
        cmocka_unit_test(written_fields_are_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
