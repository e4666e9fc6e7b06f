/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of saved graphs: what is loaded again equals what was saved. */
#include "graph/save.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "graph/support.h"
#include "graph/text.h"
#include "support/failing_allocator.h"

#define MODELS KELP_TEST_DATA "/models/"

/* ---- equal graphs ---- */
/* The values of two graphs that correspond to each other. */
typedef struct pairs {
    const kelp_value *a[4096], *b[4096];
    size_t count;
} pairs;

static void same_block(pairs *p, const kelp_block *a, const kelp_block *b);

static void same_tensor(const kelp_tensor *a, const kelp_tensor *b) {
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->rank, b->rank);
    assert_memory_equal(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape);
    if (a->dtype != KELP_STRING) {
        assert_memory_equal(a->data, b->data, kelp_tensor_bytes(a));
        return;
    }
    const kelp_string *s = a->data, *t = b->data;
    for (int64_t i = 0; i < kelp_tensor_elements(a); i++) {
        assert_int_equal(s[i].length, t[i].length);
        assert_memory_equal(s[i].data, t[i].data, s[i].length);
    }
}

static void same_type(const kelp_value *a, const kelp_value *b) {
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->rank, b->rank);
    for (int32_t i = 0; i < a->rank; i++) {
        assert_int_equal(a->shape[i], b->shape[i]);
        if (a->shape[i] < 0) {
            assert_int_equal(a->symbols[i] != NULL, b->symbols[i] != NULL);
            assert_true(a->symbols[i] == NULL || strcmp(a->symbols[i], b->symbols[i]) == 0);
        }
    }
}

static void same_value(pairs *p, const kelp_value *a, const kelp_value *b) {
    assert_int_equal(a != NULL, b != NULL);
    if (a == NULL)
        return;
    assert_int_equal(a->constant != NULL, b->constant != NULL);
    if (a->constant != NULL) { /* bodies may share one */
        same_tensor(a->constant, b->constant);
        same_type(a, b);
        return;
    }
    for (size_t i = 0; i < p->count; i++)
        if (p->a[i] == a || p->b[i] == b) {
            assert_ptr_equal(p->a[i], a);
            assert_ptr_equal(p->b[i], b);
            return;
        }
    assert_true(p->count < 4096);
    p->a[p->count] = a;
    p->b[p->count++] = b;
    assert_int_equal(a->is_input, b->is_input);
    assert_int_equal(a->is_output, b->is_output);
    if ((a->is_input || a->is_output) && a->block->parent == NULL)
        assert_string_equal(a->name, b->name);
    same_type(a, b);
}

static void same_attr(pairs *p, const kelp_attr *a, const kelp_attr *b) {
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->i, b->i);
    assert_true(memcmp(&a->f, &b->f, sizeof a->f) == 0);
    assert_int_equal(a->s.length, b->s.length);
    assert_true(a->s.length == 0 || memcmp(a->s.data, b->s.data, a->s.length) == 0);
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        if (a->ints != NULL)
            assert_int_equal(a->ints[i], b->ints[i]);
        if (a->floats != NULL)
            assert_true(a->floats[i] == b->floats[i]);
        if (a->strings != NULL)
            assert_memory_equal(a->strings[i].data, b->strings[i].data, a->strings[i].length + 1);
        if (a->tensor != NULL)
            same_tensor(&a->tensor[i], &b->tensor[i]);
        if (a->blocks != NULL)
            same_block(p, a->blocks[i], b->blocks[i]);
    }
}

static void same_node(pairs *p, const kelp_node *a, const kelp_node *b) {
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->op->name, b->op->name);
    assert_string_equal(a->op->domain, b->op->domain);
    assert_int_equal(a->opset_version, b->opset_version);
    assert_int_equal(a->input_count, b->input_count);
    for (size_t i = 0; i < a->input_count; i++)
        same_value(p, a->inputs[i], b->inputs[i]);
    assert_int_equal(a->output_count, b->output_count);
    const kelp_attr *s = a->attributes, *t = b->attributes;
    for (; s != NULL && t != NULL; s = s->next, t = t->next)
        same_attr(p, s, t);
    assert_true(s == NULL && t == NULL);
    for (size_t i = 0; i < a->output_count; i++)
        same_value(p, a->outputs[i], b->outputs[i]);
}

/* Compares blocks; nodes of `a` whose outputs are constants are left out of `b`. */
static void same_block(pairs *p, const kelp_block *a, const kelp_block *b) {
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->input_count, b->input_count);
    for (size_t i = 0; i < a->input_count; i++)
        same_value(p, a->inputs[i], b->inputs[i]);
    size_t at = 0;
    for (size_t n = 0; n < a->node_count; n++)
        if (!kelp_node_is_folded(a->nodes[n])) {
            assert_true(at < b->node_count);
            same_node(p, a->nodes[n], b->nodes[at++]);
        }
    assert_int_equal(at, b->node_count);
    assert_int_equal(a->output_count, b->output_count);
    for (size_t i = 0; i < a->output_count; i++)
        same_value(p, a->outputs[i], b->outputs[i]);
}

static void same_graph(const kelp_graph *a, const kelp_graph *b) {
    kelp_graph_info info = kelp_graph_get_info(a), found = kelp_graph_get_info(b);
    static pairs p;
    p.count = 0;
    same_block(&p, a->main, b->main);
    assert_string_equal(info.producer_name, found.producer_name);
    assert_string_equal(info.producer_version, found.producer_version);
    assert_string_equal(info.domain, found.domain);
    assert_int_equal(info.model_version, found.model_version);
    assert_int_equal(info.metadata_count, found.metadata_count);
    for (size_t i = 0; i < 2 * info.metadata_count; i++)
        assert_string_equal(a->metadata[i], b->metadata[i]);
    for (size_t i = 0; i < a->import_count; i++)
        assert_int_equal(kelp_graph_opset_version(b, a->imports[i].domain), a->imports[i].version);
}

/* ---- saving and loading ---- */
static void check_ok(kelp_status *status) {
    if (status != NULL)
        fail_msg("%s", kelp_status_message(status));
}

static kelp_graph *saved_and_loaded(const kelp_graph *graph, kelp_buf *bytes) {
    kelp_graph *again = NULL;
    kelp_buf_init(bytes, kelp_allocator_system());
    check_ok(kelp_graph_save(graph, NULL, bytes));
    check_ok(kelp_graph_load_bytes(kelp_allocator_system(), bytes->data, bytes->length, "m.onnx",
                                   NULL, NULL, NULL, NULL, &again));
    return again;
}

static kelp_graph *engine_graph(const char *path) {
    kelp_graph *graph = NULL, *clone = NULL;
    check_ok(kelp_graph_load_file(kelp_allocator_system(), path, NULL, &graph));
    check_ok(kelp_graph_clone_for_engine(graph, &clone));
    kelp_graph_release(graph);
    kelp_block_count_uses(clone->main);
    return clone;
}

static void check_in_parts(const kelp_graph *graph) {
    kelp_graph_parts parts;
    kelp_graph *again = NULL;
    kelp_buf bytes;
    kelp_graph_parts_init(&parts, kelp_allocator_system());
    kelp_buf_init(&bytes, kelp_allocator_system());
    check_ok(kelp_graph_save(graph, &parts, &bytes));
    kelp_str all[KELP_PART_COUNT] = {{parts.bytes[0].data, parts.bytes[0].length}, {0}, {0}};
    check_ok(kelp_graph_load_parts(kelp_allocator_system(), (kelp_str){bytes.data, bytes.length},
                                   all, "m", NULL, NULL, NULL, &again));
    same_graph(graph, again);
    kelp_graph_release(again);
    kelp_buf_deinit(&bytes);
    kelp_graph_parts_deinit(&parts);
}

static void check_model(const char *file) {
    char path[sizeof MODELS + 1024];
    snprintf(path, sizeof path, MODELS "%s", file);
    kelp_graph *graph = engine_graph(path), *captured = engine_graph(path);
    kelp_buf bytes;
    kelp_graph *again = saved_and_loaded(graph, &bytes);
    same_graph(graph, again);
    kelp_graph_release(again);
    kelp_buf_deinit(&bytes);
    /* captures are left out */
    check_ok(kelp_pass_captures(captured->main));
    kelp_block_count_uses(captured->main);
    again = saved_and_loaded(captured, &bytes);
    kelp_graph *plain = NULL;
    check_ok(kelp_graph_clone_for_engine(again, &plain));
    same_graph(graph, plain);
    kelp_graph_release(plain);
    kelp_graph_release(again);
    kelp_buf_deinit(&bytes);
    check_in_parts(graph);
    kelp_graph_release(graph);
    kelp_graph_release(captured);
}

static void every_model_is_the_same_after_saving(void **state) {
    (void)state;
    char line[1024];
    size_t count = 0;
    FILE *index = fopen(MODELS "index.tsv", "r");
    assert_non_null(index);
    while (fgets(line, sizeof line, index) != NULL) {
        char *tab = strchr(line, '\t');
        if (line[0] == '#' || tab == NULL || strncmp(tab + 1, "bad", 3) == 0)
            continue;
        *tab = '\0';
        check_model(line);
        count++;
    }
    fclose(index);
    assert_true(count >= 15);
}

/* ---- attributes and properties ---- */
static const kelp_operator custom = {.domain = "com.example",
                                     .name = "Custom",
                                     .id = KELP_OPERATOR_COUNT,
                                     .schema = KELP_ONNX_NO_SCHEMA};

static kelp_graph *graph_of_attributes(void) {
    static int64_t ints[2] = {-1, 5};
    static float floats[3] = {0.5f, -2, 1};
    static kelp_string strings[2] = {{"one", 3}, {"", 0}};
    static float items[2] = {3, 4};
    static kelp_tensor tensors[2];
    static kelp_attr attrs[8];
    static const char *metadata[4] = {"author", "somebody", "licence", ""};
    static kelp_opset_import imports[2] = {{"", 17}, {"com.example", 3}};
    int64_t two = 2;
    assert_null(kelp_tensor_init(&tensors[0], KELP_F32, 1, &two, items));
    assert_null(kelp_tensor_init(&tensors[1], KELP_STRING, 1, &two, strings));
    attrs[0] = (kelp_attr){.name = "i", .type = KELP_ATTR_INT, .i = -7};
    attrs[1] = (kelp_attr){.name = "f", .type = KELP_ATTR_FLOAT, .f = 0.25f};
    attrs[2] = (kelp_attr){.name = "s", .type = KELP_ATTR_STRING, .s = {"a\0b", 3}};
    attrs[3] = (kelp_attr){.name = "ints", .type = KELP_ATTR_INTS, .count = 2, .ints = ints};
    attrs[4] =
        (kelp_attr){.name = "floats", .type = KELP_ATTR_FLOATS, .count = 3, .floats = floats};
    attrs[5] =
        (kelp_attr){.name = "strings", .type = KELP_ATTR_STRINGS, .count = 2, .strings = strings};
    attrs[6] =
        (kelp_attr){.name = "tensor", .type = KELP_ATTR_TENSOR, .count = 1, .tensor = tensors};
    attrs[7] =
        (kelp_attr){.name = "tensors", .type = KELP_ATTR_TENSORS, .count = 2, .tensor = tensors};
    for (size_t i = 0; i < 7; i++)
        attrs[i].next = &attrs[i + 1];
    kelp_graph *graph = graph_from_text("x:f32[n,2]; w:f32[2]=1; y=Add(x,w); z=Neg(y)");
    kelp_node *node = graph->main->nodes[1];
    node->op = &custom;
    node->opset_version = 3;
    node->attributes = attrs;
    graph->main->name = "g";
    graph->info.producer_name = "test";
    graph->info.producer_version = "1.2";
    graph->info.domain = "org.example";
    graph->info.model_version = 42;
    graph->info.metadata_count = 2;
    graph->metadata = metadata;
    graph->imports = imports;
    graph->import_count = 2;
    return graph;
}

static kelp_graph *with_inputs(kelp_graph *graph) {
    kelp_block *block = graph->main;
    block->inputs = KELP_ARENA_ARRAY(&graph->arena, block->value_count, kelp_value *);
    for (size_t i = 0; i < block->value_count; i++)
        if (block->values[i]->is_input)
            block->inputs[block->input_count++] = block->values[i];
    if (block->name == NULL)
        block->name = "g";
    return graph;
}

static void attributes_and_properties_are_saved(void **state) {
    (void)state;
    kelp_graph *graph = with_inputs(graph_of_attributes());
    kelp_buf bytes;
    kelp_graph *again = saved_and_loaded(graph, &bytes);
    same_graph(graph, again);
    assert_int_equal(kelp_graph_get_info(again).ir_version, 10);
    kelp_graph_release(again);
    kelp_buf_deinit(&bytes);
    graph->info.ir_version = 9;
    again = saved_and_loaded(graph, &bytes);
    assert_int_equal(kelp_graph_get_info(again).ir_version, 9);
    kelp_graph_release(again);
    kelp_buf_deinit(&bytes);
    kelp_graph_release(graph);
}

static void domains_of_fused_operators_are_imported(void **state) {
    (void)state;
    kelp_graph *graph = with_inputs(graph_from_text(
        "x:f32[2,4]; w:f32[4,4]=1; a:f32[2,4]=kelp.MatMulBias(x,w){activation=relu}; "
        "b:f32[2,4]=ms.QuickGelu(a); "
        "c:f32[2,4]=kelp.MatMulBias(b,w){activation=tanh}; y=Tanh(c)"));
    kelp_buf bytes;
    kelp_graph *again = saved_and_loaded(graph, &bytes);
    same_graph(graph, again);
    assert_int_equal(kelp_graph_opset_count(again), 3);
    assert_int_equal(kelp_graph_opset_version(again, "kelp"), 1);
    assert_int_equal(kelp_graph_opset_version(again, "com.microsoft"), 1);
    assert_int_equal(kelp_graph_opset_version(again, ""), 17);
    kelp_graph_release(again);
    kelp_buf_deinit(&bytes);
    kelp_graph_release(graph);
}

static void a_node_of_another_version_needs_parts(void **state) {
    (void)state;
    static kelp_opset_import import = {"", 17};
    kelp_graph *graph = with_inputs(graph_from_text("x:f32[2]; a=Relu(x)@13; y=Tanh(a)"));
    kelp_buf bytes;
    graph->imports = &import;
    graph->import_count = 1;
    kelp_buf_init(&bytes, kelp_allocator_system());
    expect_error(kelp_graph_save(graph, NULL, &bytes), KELP_UNIMPLEMENTED,
                 "node 'a' (Relu) has opset version 13, but the model imports version 17 of domain "
                 "''");
    kelp_buf_deinit(&bytes);
    check_in_parts(graph);
    kelp_graph_release(graph);
}

/* ---- names ---- */
static void names_of_values_that_differ_stay_different(void **state) {
    (void)state;
    kelp_graph *graph =
        with_inputs(graph_from_text("x:f32[2]; w:f32[2]=1; v:f32[2]=5; a=Add(x,w); y=Mul(a,v)"));
    graph->main->values[2]->name = "w"; /* passes give new values the names of old ones */
    kelp_buf bytes;
    kelp_graph *again = saved_and_loaded(graph, &bytes);
    same_graph(graph, again);
    kelp_graph_release(again);
    kelp_buf_deinit(&bytes);
    graph->main->values[2]->name = "y"; /* outputs keep their names */
    again = saved_and_loaded(graph, &bytes);
    same_graph(graph, again);
    assert_string_equal(again->main->outputs[0]->name, "y");
    kelp_graph_release(again);
    kelp_buf_deinit(&bytes);
    kelp_graph_release(graph);
}

static void unused_constants_and_removed_nodes_are_left_out(void **state) {
    (void)state;
    kelp_graph *graph = with_inputs(
        graph_from_text("x:f32[2]; w:f32[2]=1; v:f32[2]=5; a=Neg(x); b=Add(x,w); y=Tanh(b)"));
    graph->main->nodes[0]->removed = true;
    kelp_buf bytes;
    kelp_graph *again = saved_and_loaded(graph, &bytes);
    assert_string_equal(nodes_as_text(again->main), "#0.4=Add(x,<1 x2>)#b; y=Tanh(#0.4)");
    for (size_t i = 0; i < again->main->value_count; i++)
        assert_string_not_equal(again->main->values[i]->name, "v");
    kelp_graph_release(again);
    kelp_buf_deinit(&bytes);
    kelp_graph_release(graph);
}

/* ---- parts ---- */
/* Chooses the part by the number of elements. */
static kelp_graph_part by_size(void *userp, const kelp_tensor *tensor) {
    assert_string_equal(userp, "user");
    int64_t count = kelp_tensor_elements(tensor);
    return count == 101  ? KELP_PART_ORIGINALS
           : count < 100 ? KELP_PART_STRIPPED
                         : KELP_PART_WEIGHTS;
}

static const kelp_tensor *constant_of(const kelp_graph *graph, const char *name) {
    return value_named(graph, name)->constant;
}

static void expect_at(const kelp_graph_parts *parts, const kelp_tensor *tensor,
                      kelp_graph_part part, size_t offset) {
    kelp_graph_part found_part = KELP_PART_COUNT;
    size_t found = SIZE_MAX;
    assert_true(kelp_graph_parts_find(parts, tensor, &found_part, &found));
    assert_int_equal(found_part, part);
    assert_int_equal(found, offset);
    if (part != KELP_PART_STRIPPED)
        assert_memory_equal(parts->bytes[part].data + offset, tensor->data,
                            kelp_tensor_bytes(tensor));
}

static void count_release(void *userp) {
    ++*(int *)userp;
}

#define WEIGHTS                                                                                   \
    "x:f32[]; v:f32[100]=up; w:f32[102]=3; o:f32[101]=2; s:f32[2]=7 8; t:f32[30]=9; e:f32[0]=1; " \
    "a=Add(x,v); b=Add(x,w); c=Add(x,o); d=Add(x,s); f=Add(x,t); g=Add(x,e); a; b; c; d; f; g"

static void tensors_are_stored_in_the_chosen_parts(void **state) {
    (void)state;
    char user[] = "user";
    int released = 0;
    kelp_graph *graph = with_inputs(graph_from_text(WEIGHTS)), *again = NULL;
    kelp_graph_parts parts;
    kelp_buf bytes, second;
    kelp_graph_parts_init(&parts, kelp_allocator_system());
    kelp_buf_init(&bytes, kelp_allocator_system());
    kelp_buf_init(&second, kelp_allocator_system());
    parts.choose = by_size;
    parts.userp = user;
    check_ok(kelp_graph_save(graph, &parts, &bytes));
    expect_at(&parts, constant_of(graph, "v"), KELP_PART_WEIGHTS, 0);
    expect_at(&parts, constant_of(graph, "w"), KELP_PART_WEIGHTS, 448); /* 400, aligned to 64 */
    expect_at(&parts, constant_of(graph, "o"), KELP_PART_ORIGINALS, 0);
    expect_at(&parts, constant_of(graph, "s"), KELP_PART_STRIPPED, 0);
    expect_at(&parts, constant_of(graph, "t"), KELP_PART_STRIPPED, 64);
    assert_int_equal(parts.bytes[KELP_PART_WEIGHTS].length, 448 + 408);
    assert_int_equal(parts.bytes[KELP_PART_ORIGINALS].length, 404);
    assert_int_equal(parts.bytes[KELP_PART_STRIPPED].length, 0);
    assert_int_equal(parts.stripped_bytes, 192);
    /* a second model shares the bytes */
    check_ok(kelp_graph_save(graph, &parts, &second));
    assert_int_equal(parts.bytes[KELP_PART_WEIGHTS].length, 448 + 408);
    assert_int_equal(parts.stripped_bytes, 192);
    assert_int_equal(second.length, bytes.length);
    assert_memory_equal(second.data, bytes.data, bytes.length);
    /* tensors are used in place; stripped ones are supplied */
    float supplied[48] = {7, 8};
    for (size_t i = 16; i < 48; i++)
        supplied[i] = 9;
    kelp_str all[KELP_PART_COUNT] = {{parts.bytes[0].data, parts.bytes[0].length},
                                     {parts.bytes[1].data, parts.bytes[1].length},
                                     {(const char *)supplied, sizeof supplied}};
    check_ok(kelp_graph_load_parts(kelp_allocator_system(), (kelp_str){bytes.data, bytes.length},
                                   all, "m", count_release, &released, NULL, &again));
    same_graph(graph, again);
    assert_ptr_equal(constant_of(again, "w")->data, parts.bytes[0].data + 448);
    assert_ptr_equal(constant_of(again, "t")->data, (const char *)supplied + 64);
    assert_int_equal(released, 0);
    kelp_graph_release(again);
    assert_int_equal(released, 1);
    /* a part that is too short */
    all[0].length--;
    expect_error(kelp_graph_load_parts(kelp_allocator_system(),
                                       (kelp_str){bytes.data, bytes.length}, all, "m",
                                       count_release, &released, NULL, &again),
                 KELP_INVALID_ARGUMENT, "has 855 bytes");
    assert_int_equal(released, 2);
    kelp_buf_deinit(&bytes);
    kelp_buf_deinit(&second);
    kelp_graph_parts_deinit(&parts);
    kelp_graph_release(graph);
}

static void small_tensors_are_in_the_model(void **state) {
    (void)state;
    kelp_graph *graph = with_inputs(
        graph_from_text("x:f32[]; s:f32[15]=1; t:f32[16]=2; a=Add(x,s); b=Add(x,t); a; b"));
    kelp_graph_parts parts;
    kelp_buf bytes;
    kelp_graph_part part;
    size_t offset;
    kelp_graph_parts_init(&parts, kelp_allocator_system());
    kelp_buf_init(&bytes, kelp_allocator_system());
    check_ok(kelp_graph_save(graph, &parts, &bytes));
    assert_false(kelp_graph_parts_find(&parts, constant_of(graph, "s"), &part, &offset));
    expect_at(&parts, constant_of(graph, "t"), KELP_PART_WEIGHTS, 0);
    assert_int_equal(parts.bytes[KELP_PART_WEIGHTS].length, 64);
    kelp_buf_deinit(&bytes);
    kelp_graph_parts_deinit(&parts);
    kelp_graph_release(graph);
}

static kelp_status *save_in_parts(kelp_allocator allocator, const kelp_graph *graph) {
    kelp_graph_parts parts;
    kelp_buf bytes;
    char user[] = "user";
    kelp_graph_parts_init(&parts, allocator);
    kelp_buf_init(&bytes, allocator);
    parts.choose = by_size;
    parts.userp = user;
    kelp_status *status = kelp_graph_save(graph, &parts, &bytes);
    kelp_buf_deinit(&bytes);
    kelp_graph_parts_deinit(&parts);
    return status;
}

static void every_allocation_of_saving_may_fail(void **state) {
    (void)state;
    kelp_graph *graph = with_inputs(graph_from_text(WEIGHTS));
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        test_failing_init(&memory, n);
        kelp_status *status = save_in_parts(test_failing_allocator(&memory), graph);
        if (test_failing_ended(&memory, status))
            break;
        assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
        kelp_status_free(status);
    }
    kelp_graph_release(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_is_the_same_after_saving),
        cmocka_unit_test(attributes_and_properties_are_saved),
        cmocka_unit_test(domains_of_fused_operators_are_imported),
        cmocka_unit_test(a_node_of_another_version_needs_parts),
        cmocka_unit_test(names_of_values_that_differ_stay_different),
        cmocka_unit_test(unused_constants_and_removed_nodes_are_left_out),
        cmocka_unit_test(tensors_are_stored_in_the_chosen_parts),
        cmocka_unit_test(small_tensors_are_in_the_model),
        cmocka_unit_test(every_allocation_of_saving_may_fail),
    };
    return cmocka_run_group_tests_name("save", tests, NULL, NULL);
}
