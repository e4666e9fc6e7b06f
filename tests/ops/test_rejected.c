/* SPDX-License-Identifier: Apache-2.0 */
/* Windows with attributes that are out of range are rejected, with the attribute, the expected and
 * the found value; biases of a wrong length are rejected although passes move nodes into the
 * convolution. */
#include "onnx/onnx_writer.h"

#include <kelp/engine.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

#define MAX_VALUES 4
#define HUGE ((int64_t)1 << 60)

/* A node that must be rejected. */
typedef struct rejected_node {
    const char *op_type, *inputs, *types[2];
    struct {
        const char *name;
        size_t count;
        int64_t values[MAX_VALUES];
    } attributes[2];
    const char *message; /* part of the message */
} rejected_node;

#define IMAGE "float32[1,2,8,9]"
#define KERNEL "float32[2,2,3,3]"

static const rejected_node cases[] = {
    {"Conv",
     "a b",
     {IMAGE, KERNEL},
     {{"pads", 4, {0, 0, HUGE, 0}}},
     "operator 'Conv': attribute 'pads' is out of range: expected -1099511627776 to 1099511627776, "
     "found 1152921504606846976 as value 2"},
    {"Conv",
     "a b",
     {IMAGE, KERNEL},
     {{"strides", 2, {1, 0}}},
     "attribute 'strides' is out of range: expected 1 to 1099511627776, found 0 as value 1"},
    {"Conv",
     "a b",
     {IMAGE, KERNEL},
     {{"dilations", 2, {-3, 1}}},
     "attribute 'dilations' is out of range: expected 1 to 1099511627776, found -3 as value 0"},
    {"Conv",
     "a b",
     {IMAGE, KERNEL},
     {{"strides", 3, {1, 1, 1}}},
     "attribute 'strides' has 3 values: expected 2"},
    {"Conv",
     "a b",
     {IMAGE, KERNEL},
     {{"pads", 2, {1, 1}}},
     "attribute 'pads' has 2 values: expected 4"},
    {"Conv",
     "a b",
     {IMAGE, KERNEL},
     {{"dilations", 2, {1, (int64_t)1 << 40}}},
     "the kernel is out of range along spatial axis 1: expected a size of 1 to 1 with a "
     "dilation of 1099511627776, found 3"},
    {"Conv",
     "a b",
     {IMAGE, KERNEL},
     {{"dilations", 2, {1, 5}}},
     "the kernel is larger than the padded input along spatial axis 1: it spans 11 elements of 9"},
    {"ConvTranspose",
     "a b",
     {IMAGE, KERNEL},
     {{"pads", 4, {0, HUGE, 0, 0}}},
     "operator 'ConvTranspose': attribute 'pads' is out of range: expected 0 to 1073741824, found "
     "1152921504606846976 as value 1"},
    {"ConvTranspose",
     "a b",
     {IMAGE, KERNEL},
     {{"strides", 2, {0, 1}}},
     "attribute 'strides' is out of range: expected 1 to 1073741824, found 0 as value 0"},
    {"ConvTranspose",
     "a b",
     {IMAGE, KERNEL},
     {{"output_padding", 1, {1}}},
     "attribute 'output_padding' has 1 values: expected 2"},
    {"MaxPool",
     "a",
     {IMAGE},
     {{"kernel_shape", 2, {2, 2}}, {"pads", 4, {0, 0, 0, -HUGE}}},
     "operator 'MaxPool': attribute 'pads' is out of range"},
    {"AveragePool",
     "a",
     {IMAGE},
     {{"kernel_shape", 2, {2, 0}}},
     "operator 'AveragePool': the kernel is out of range along spatial axis 1: expected a size of "
     "1 to 1099511627776 with a dilation of 1, found 0"},
    {"LpPool",
     "a",
     {IMAGE},
     {{"kernel_shape", 2, {2, 2}}, {"strides", 2, {1, -1}}},
     "operator 'LpPool': attribute 'strides' is out of range"},
    {"MaxUnpool",
     "a b",
     {"float32[1,2,4,4]", "int64[1,2,4,4]"},
     {{"kernel_shape", 2, {2, 2}}, {"pads", 4, {0, 0, -1, 0}}},
     "operator 'MaxUnpool': attribute 'pads' is out of range: expected 0 to 1073741824, found -1"},
};

/* Loads and schedules the model, without running it. */
static kelp_status *prepare(const pb *model) {
    static char zeros[1024];
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_runtime *runtime = NULL;
    kelp_graph *graph = NULL;
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    check_ok(kelp_runtime_create(&options, &runtime));
    kelp_status *status = kelp_graph_load_bytes(kelp_allocator_system(), model->data, model->length,
                                                "model", NULL, NULL, NULL, NULL, &graph);
    if (status == NULL)
        status = kelp_engine_create(runtime, graph, NULL, &engine);
    if (status == NULL)
        status = kelp_context_create(engine, &context);
    for (size_t i = 0; status == NULL && i < kelp_engine_input_count(engine); i++) {
        const kelp_io_info *info = kelp_engine_input(engine, i);
        kelp_tensor tensor;
        check_ok(kelp_tensor_init(&tensor, info->dtype, info->rank, info->shape, zeros));
        assert_true(kelp_tensor_bytes(&tensor) <= sizeof zeros);
        check_ok(kelp_context_set_input(context, i, &tensor));
    }
    if (status == NULL)
        status = kelp_context_prepare(context);
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    kelp_graph_release(graph);
    kelp_runtime_release(runtime);
    return status;
}

static void windows_out_of_range_are_rejected(void **state) {
    static const char *const names[] = {"a", "b"};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rejected_node *c = &cases[i];
        pb graph = {0}, node = pb_node(c->op_type, c->inputs, "y");
        for (size_t k = 0; k < 2 && c->attributes[k].name != NULL; k++)
            pb_attr_ints(&node, c->attributes[k].name, c->attributes[k].count,
                         c->attributes[k].values);
        pb_add_node(&graph, &node);
        for (size_t k = 0; k < 2 && c->types[k] != NULL; k++)
            pb_add_input(&graph, names[k], c->types[k]);
        pb_add_output(&graph, "y", "float32");
        pb model = pb_model(&graph, 22);
        expect_failure(prepare(&model), KELP_INVALID_ARGUMENT, c->message);
    }
}

/* Passes that move nodes before or after a convolution into it read its bias. */
static void biases_of_wrong_length_are_rejected(void **state) {
    static const float ones[64] = {1};
    const int64_t weights[4] = {3, 2, 1, 1};
    (void)state;
    for (int64_t count = 0; count < 3; count++)
        for (int form = 0; form < 3; form++) {
            pb graph = {0};
            pb before = pb_node(form == 1 ? "Mul" : "Add", "x k", "m");
            pb conv = pb_node("Conv", form == 2 ? "x w b" : "m w b", form == 2 ? "m" : "y");
            pb after = pb_node("Mul", "m k", "y");
            pb w = pb_tensor("w", KELP_F32, 4, weights, ones, 6 * sizeof *ones);
            pb b = pb_tensor("b", KELP_F32, 1, &count, ones, (size_t)count * sizeof *ones);
            pb k = pb_tensor("k", KELP_F32, 0, NULL, ones, sizeof *ones);
            if (form != 2)
                pb_add_node(&graph, &before);
            pb_add_node(&graph, &conv);
            if (form == 2)
                pb_add_node(&graph, &after);
            pb_add_initializer(&graph, &w);
            pb_add_initializer(&graph, &b);
            pb_add_initializer(&graph, &k);
            pb_add_input(&graph, "x", "float32[1,2,4,4]");
            pb_add_output(&graph, "y", "float32");
            pb model = pb_model(&graph, 17);
            expect_failure(prepare(&model), KELP_INVALID_ARGUMENT,
                           "expected one bias for each output channel");
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_out_of_range_are_rejected),
        cmocka_unit_test(biases_of_wrong_length_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
