/* SPDX-License-Identifier: Apache-2.0 */
/* Single operators that a host runs without an engine. */
#include <kelp/engine.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

static float a[3] = {1, 2, 3}, b[3] = {10, 20, 30};

typedef struct host {
    kelp_runtime *runtime;
    kelp_op_env *env;
    kelp_tensor x, y;
    const kelp_tensor *inputs[3];
    kelp_node_desc desc;
} host;

static void begin(host *h) {
    const int64_t shape[1] = {3};
    *h = (host){.runtime = NULL};
    check_ok(kelp_runtime_create(NULL, &h->runtime));
    check_ok(kelp_op_env_create(h->runtime, &h->env));
    check_ok(kelp_tensor_init(&h->x, KELP_F32, 1, shape, a));
    check_ok(kelp_tensor_init(&h->y, KELP_F32, 1, shape, b));
    h->inputs[0] = &h->x;
    h->inputs[1] = &h->y;
    h->desc = (kelp_node_desc){.struct_size = sizeof h->desc,
                               .name = "Add",
                               .version = 17,
                               .inputs = h->inputs,
                               .input_count = 2,
                               .output_count = 1};
}

static void end(host *h) {
    kelp_op_env_destroy(h->env);
    kelp_runtime_release(h->runtime);
}

static kelp_status *run(host *h, kelp_tensor *outputs) {
    kelp_graph *graph = NULL;
    kelp_opset_match match;
    kelp_graph_limits limits = kelp_runtime_graph_limits(h->runtime);
    KELP_TRY(kelp_graph_create_node(kelp_allocator_system(), &h->desc, &limits, &graph));
    const kelp_node *node = kelp_block_node(kelp_graph_main(graph), 0);
    kelp_status *status = NULL;
    if (kelp_opset_find(kelp_runtime_opsets(h->runtime), node, &match))
        status = kelp_opset_dispatch(&match, h->env, node, h->inputs, outputs);
    else
        status = KELP_ERROR(KELP_UNIMPLEMENTED, "no provider");
    kelp_graph_release(graph);
    return status;
}

static void built_in_operator_runs(void **state) {
    (void)state;
    host h;
    kelp_tensor sum;
    begin(&h);
    check_ok(run(&h, &sum));
    assert_int_equal(sum.rank, 1);
    assert_true(((const float *)sum.data)[2] == 33.0f);
    for (int i = 0; i < 3; i++) {
        kelp_op_env_reset(h.env);
        check_ok(run(&h, &sum));
    }
    assert_true(((const float *)sum.data)[0] == 11.0f);
    end(&h);
    kelp_op_env_destroy(NULL);
}

static void attributes_and_omitted_inputs_are_passed(void **state) {
    (void)state;
    host h;
    kelp_tensor out;
    begin(&h);
    const int64_t one = 1;
    kelp_tensor axes;
    check_ok(kelp_tensor_init(&axes, KELP_I64, 1, &one, (int64_t[1]){0}));
    const kelp_node_attribute keep = {.name = "keepdims", .type = KELP_ATTR_INT, .i = 0};
    h.desc.name = "ReduceSum";
    h.desc.attributes = &keep;
    h.desc.attribute_count = 1;
    h.inputs[1] = &axes;
    check_ok(run(&h, &out));
    assert_int_equal(out.rank, 0);
    assert_true(*(const float *)out.data == 6.0f);
    float two = 2;
    kelp_tensor maximum;
    check_ok(kelp_tensor_init(&maximum, KELP_F32, 0, NULL, &two));
    h.desc.name = "Clip";
    h.desc.attribute_count = 0;
    h.desc.input_count = 3;
    h.inputs[1] = NULL;
    h.inputs[2] = &maximum;
    check_ok(run(&h, &out));
    assert_true(((const float *)out.data)[2] == 2.0f);
    end(&h);
}

/* Its kernel uses scratch memory. */
static void operator_with_scratch_memory_runs(void **state) {
    (void)state;
    host h;
    kelp_tensor out;
    begin(&h);
    static float image[64], weights[9] = {0, 0, 0, 0, 1, 0, 0, 0, 0};
    const int64_t image_shape[4] = {1, 1, 8, 8}, weight_shape[4] = {1, 1, 3, 3};
    const int64_t pads[4] = {1, 1, 1, 1};
    const kelp_node_attribute padding = {
        .name = "pads", .type = KELP_ATTR_INTS, .ints = pads, .count = 4};
    for (int i = 0; i < 64; i++)
        image[i] = (float)i;
    check_ok(kelp_tensor_init(&h.x, KELP_F32, 4, image_shape, image));
    check_ok(kelp_tensor_init(&h.y, KELP_F32, 4, weight_shape, weights));
    h.desc.name = "Conv";
    h.desc.attributes = &padding;
    h.desc.attribute_count = 1;
    check_ok(run(&h, &out));
    assert_int_equal(out.shape[3], 8);
    assert_memory_equal(out.data, image, sizeof image); /* the filter copies */
    end(&h);
}

static void attributes_of_all_types_are_copied(void **state) {
    (void)state;
    static const int64_t ints[2] = {1, 2};
    static const float floats[1] = {0.5f};
    static const kelp_string strings[1] = {{"abc", 3}};
    host h;
    begin(&h);
    const kelp_node_attribute all[] = {
        {.name = "i", .type = KELP_ATTR_INT, .i = 7},
        {.name = "f", .type = KELP_ATTR_FLOAT, .f = 1.5f},
        {.name = "s", .type = KELP_ATTR_STRING, .s = {"text", 4}},
        {.name = "is", .type = KELP_ATTR_INTS, .ints = ints, .count = 2},
        {.name = "fs", .type = KELP_ATTR_FLOATS, .floats = floats, .count = 1},
        {.name = "ss", .type = KELP_ATTR_STRINGS, .strings = strings, .count = 1},
        {.name = "t", .type = KELP_ATTR_TENSOR, .tensor = &h.x}};
    kelp_graph *graph = NULL;
    h.desc.domain = "com.example";
    h.desc.name = "Anything";
    h.desc.version = 3;
    h.desc.output_count = 2;
    h.desc.attributes = all;
    h.desc.attribute_count = sizeof all / sizeof all[0];
    check_ok(kelp_graph_create_node(kelp_allocator_system(), &h.desc, NULL, &graph));
    const kelp_node *node = kelp_block_node(kelp_graph_main(graph), 0);
    assert_string_equal(kelp_node_op_type(node), "Anything");
    assert_string_equal(kelp_node_domain(node), "com.example");
    assert_int_equal(kelp_node_opset_version(node), 3);
    assert_int_equal(kelp_node_output_count(node), 2);
    assert_int_equal(kelp_value_dtype(kelp_node_input(node, 1)), KELP_F32);
    assert_int_equal(kelp_node_attr_i64(node, "i", 0), 7);
    assert_true(kelp_node_attr_f32(node, "f", 0) == 1.5f);
    assert_string_equal(kelp_node_attr_string(node, "s", "", NULL), "text");
    const int64_t *got = NULL;
    assert_int_equal(kelp_node_attr_i64s(node, "is", &got), 2);
    assert_int_equal(got[1], 2);
    const kelp_tensor *tensor = kelp_node_attr_tensor(node, "t");
    assert_non_null(tensor);
    assert_memory_equal(tensor->data, a, sizeof a);
    assert_ptr_not_equal(tensor->data, a);
    kelp_graph_release(graph);
    end(&h);
}

static void invalid_descriptions_are_rejected(void **state) {
    (void)state;
    host h;
    kelp_tensor out;
    kelp_graph *graph = NULL;
    begin(&h);
    h.desc.input_count = 1;
    expect_failure(run(&h, &out), KELP_INVALID_ARGUMENT, "Add");
    h.desc.input_count = 2;
    h.y.dtype = KELP_I32;
    expect_failure(run(&h, &out), KELP_INVALID_ARGUMENT, "expected the same type");
    h.y.dtype = KELP_LIST;
    expect_failure(run(&h, &out), KELP_INVALID_ARGUMENT, "input 1 is not a tensor");
    h.y.dtype = KELP_F32;
    const kelp_node_attribute nothing = {.name = "axis", .type = KELP_ATTR_GRAPH};
    h.desc.attributes = &nothing;
    h.desc.attribute_count = 1;
    expect_failure(run(&h, &out), KELP_INVALID_ARGUMENT, "attribute 0 ('axis') has no name or no");
    h.desc.attribute_count = 0;
    h.desc.version = 0;
    expect_failure(run(&h, &out), KELP_INVALID_ARGUMENT, "name 'Add', version 0");
    h.desc.version = 17;
    h.desc.name = "Frobnicate";
    h.desc.domain = "com.example";
    expect_failure(run(&h, &out), KELP_UNIMPLEMENTED, "no provider");
    h.desc.struct_size = 4;
    expect_failure(kelp_graph_create_node(kelp_allocator_system(), &h.desc, NULL, &graph),
                   KELP_INVALID_ARGUMENT, "found 4 bytes");
    end(&h);
}

static int allocations_left;

static void *scarce(void *userp, void *memory, size_t old_bytes, size_t new_bytes,
                    size_t alignment) {
    kelp_allocator system = kelp_allocator_system();
    (void)userp;
    if (new_bytes > 0 && allocations_left-- <= 0)
        return NULL;
    return system.realloc(system.userp, memory, old_bytes, new_bytes, alignment);
}

static void exhausted_memory_is_an_error(void **state) {
    (void)state;
    host h;
    kelp_allocator allocator = kelp_allocator_system();
    allocator.realloc = scarce;
    begin(&h);
    for (int budget = 0;; budget++) {
        kelp_graph *graph = NULL;
        allocations_left = budget;
        kelp_status *status = kelp_graph_create_node(allocator, &h.desc, NULL, &graph);
        if (status == NULL) {
            kelp_graph_release(graph);
            break;
        }
        assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
        kelp_status_free(status);
        assert_true(budget < 1000);
    }
    end(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_in_operator_runs),
        cmocka_unit_test(attributes_and_omitted_inputs_are_passed),
        cmocka_unit_test(operator_with_scratch_memory_runs),
        cmocka_unit_test(attributes_of_all_types_are_copied),
        cmocka_unit_test(invalid_descriptions_are_rejected),
        cmocka_unit_test(exhausted_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
