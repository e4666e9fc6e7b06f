/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of type and shape inference, names of dynamic dimensions, and inconsistent models. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/support.h"

/* A node with inputs a, b, c, d of the types `in` ("" is omitted) and the type `expected` of its
 * output y. Instead of a type, "=1,-1" is an int64 constant vector and "=5!" a scalar. */
typedef struct one {
    const char *op_type;
    const char *in[4];
    const char *expected;
    const char *attr; /* "name=3" an int, "name=1,2" or "name=1," ints, "name:text" a string;
                         separated by blanks */
    int opset;        /* 0: 18 */
} one;

static size_t read_numbers(const char *text, int64_t *out) {
    size_t count = 0;
    while (*text != '\0' && *text != ' ' && *text != '!') {
        char *end = NULL;
        out[count++] = strtoll(text, &end, 10);
        assert_true(end != text);
        text = end + (*end == ',');
    }
    return count;
}

static void put_attrs(pb *node, const char *text) {
    while (text != NULL && *text != '\0') {
        char name[64] = {0}, value[64] = {0};
        int64_t numbers[16];
        size_t length = strcspn(text, "=:"), end = strcspn(text, " ");
        memcpy(name, text, length);
        memcpy(value, text + length + 1, end - length - 1);
        size_t count = text[length] == '=' ? read_numbers(value, numbers) : 0;
        if (text[length] == ':')
            pb_attr_text(node, name, value);
        else if (count == 1 && strchr(value, ',') == NULL)
            pb_attr_int(node, name, numbers[0]);
        else
            pb_attr_ints(node, name, count, numbers);
        text += end + (text[end] == ' ');
    }
}

static pb model_of(const one *c, const char *declared) {
    static const char *const names[4] = {"a", "b", "c", "d"};
    pb graph = {0};
    char inputs[32] = "";
    int64_t numbers[32];
    for (size_t i = 0; i < 4 && c->in[i] != NULL; i++) {
        const char *type = c->in[i];
        strcat(inputs, i > 0 ? " " : "");
        strcat(inputs, *type ? names[i] : "-");
        if (*type == '=') {
            size_t count = read_numbers(type + 1, numbers);
            int64_t dims[1] = {(int64_t)count};
            pb tensor =
                pb_tensor(names[i], KELP_I64, strchr(type, '!') ? 0 : 1, dims, numbers, count * 8);
            pb_add_initializer(&graph, &tensor);
        } else if (*type != '\0') {
            pb_add_input(&graph, names[i], type);
        }
    }
    pb node = pb_node(c->op_type, inputs, "y");
    put_attrs(&node, c->attr);
    pb_add_node(&graph, &node);
    pb_add_output(&graph, "y", declared);
    return pb_model(&graph, c->opset ? c->opset : 18);
}

static const one cases[] = {
    {"Relu", {"float32[n,3]"}, "float32[n,3]", NULL, 0},
    {"Add", {"float32[n,1,4]", "float32[3,1]"}, "float32[n,3,4]", NULL, 0},
    {"Add", {"float32[n]", "float32[n]"}, "float32[n]", NULL, 0},
    {"Add", {"float32[n]", "float32[m]"}, "float32[?]", NULL, 0},
    {"Add", {"float32[n]", "float32[8]"}, "float32[8]", NULL, 0},
    {"Add", {"float32[2,3,4]", "float32[3]"}, "float32[2,3,4]", "axis=1 broadcast=1", 6},
    {"Equal", {"int64[n]", "int64[]"}, "bool[n]", NULL, 0},
    {"Where", {"bool[4,1]", "float16[n]", "float16[]"}, "float16[4,n]", NULL, 0},
    {"Cast", {"int64[2]"}, "float16[2]", "to=10", 0},
    {"ArgMax", {"float32[n,10]"}, "int64[n]", "axis=1 keepdims=0", 0},
    {"MatMul", {"float32[b,h,s,64]", "float32[b,h,64,s]"}, "float32[b,h,s,s]", NULL, 0},
    {"MatMul", {"float32[4]", "float32[b,4,5]"}, "float32[b,5]", NULL, 0},
    {"MatMul", {"float32[4]", "float32[4]"}, "float32[]", NULL, 0},
    {"Gemm", {"float32[k,n]", "float32[10,k]"}, "float32[n,10]", "transA=1 transB=1", 0},
    {"Conv", {"float32[n,3,28,28]", "float32[8,3,5,5]"}, "float32[n,8,12,12]", "strides=2,2", 0},
    {"Conv", {"float32[n,3,h,28]", "float32[8,3,3,3]"}, "float32[n,8,?,28]", "pads=1,1,1,1", 0},
    {"Conv",
     {"float32[1,4,9,9]", "float32[8,2,3,3]"},
     "float32[1,8,5,5]",
     "group=2 dilations=2,2",
     0},
    {"Conv",
     {"float32[1,3,7,7]", "float32[8,3,3,3]"},
     "float32[1,8,4,4]",
     "auto_pad:SAME_UPPER strides=2,2",
     0},
    {"ConvTranspose",
     {"float32[1,3,4,4]", "float32[3,6,3,3]"},
     "float32[1,6,9,9]",
     "strides=2,2",
     0},
    {"MaxPool", {"float32[n,3,7,7]"}, "float32[n,3,3,3]", "kernel_shape=2,2 strides=2,2", 0},
    {"MaxPool",
     {"float32[n,3,7,7]"},
     "float32[n,3,4,4]",
     "kernel_shape=2,2 strides=2,2 ceil_mode=1",
     0},
    {"GlobalAveragePool", {"float32[n,3,7,7]"}, "float32[n,3,1,1]", NULL, 0},
    {"Reshape", {"float32[n,3,4]", "=0,-1"}, "float32[n,12]", NULL, 0},
    {"Reshape", {"float32[n,s,384]", "=0,0,12,32"}, "float32[n,s,12,32]", NULL, 0},
    {"Reshape", {"float32[2,3,4]", "=-1"}, "float32[24]", NULL, 0},
    {"Reshape", {"float32[n,4]", "=-1,2,2"}, "float32[n,2,2]", NULL, 0},
    {"Reshape", {"float32[n,m]", "=-1"}, "float32[?]", NULL, 0},
    {"Reshape", {"float32[n,m]", "int64[3]"}, "float32[?,?,?]", NULL, 0},
    {"Reshape", {"float32[0,3]", "=3,0"}, "float32[3,0]", "allowzero=1", 0},
    {"Transpose", {"float32[a,b,3]"}, "float32[3,a,b]", "perm=2,0,1", 0},
    {"Transpose", {"float32[a,b]"}, "float32[b,a]", NULL, 0},
    {"Flatten", {"float32[n,3,4]"}, "float32[n,12]", NULL, 0},
    {"Flatten", {"float32[2,3,4]"}, "float32[6,4]", "axis=-1", 0},
    {"Unsqueeze", {"float32[n,4]", "=0,-1"}, "float32[1,n,4,1]", NULL, 0},
    {"Unsqueeze", {"float32[n]"}, "float32[1,n]", "axes=0,", 11},
    {"Squeeze", {"float32[1,n,1]", "=0,2"}, "float32[n]", NULL, 0},
    {"Squeeze", {"float32[1,5,1]"}, "float32[5]", NULL, 0},
    {"Concat", {"float32[n,2]", "float32[n,3]"}, "float32[n,5]", "axis=-1", 0},
    {"Concat", {"float32[n,2]", "float32[4,m]"}, "float32[4,?]", "axis=1", 0},
    {"Slice", {"float32[n,10]", "=1", "=-1", "=1"}, "float32[n,8]", NULL, 0},
    {"Slice", {"float32[10]", "=0", "=9223372036854775807"}, "float32[10]", NULL, 0},
    {"Slice", {"float32[n,4]", "=0", "=9223372036854775807", "=0"}, "float32[n,4]", NULL, 0},
    {"Slice", {"float32[n,4]", "int64[1]", "int64[1]", "=1"}, "float32[n,?]", NULL, 0},
    {"Gather", {"float32[30522,384]", "int64[n,s]"}, "float32[n,s,384]", NULL, 0},
    {"Gather", {"float32[n,s,8]", "=0!"}, "float32[n,8]", "axis=1", 0},
    {"GatherElements", {"float32[n,8]", "int64[n,2]"}, "float32[n,2]", "axis=1", 0},
    {"Expand", {"float32[n,1]", "=1,5"}, "float32[n,5]", NULL, 0},
    {"Tile", {"float32[n,2]", "=1,3"}, "float32[n,6]", NULL, 0},
    {"Pad", {"float32[n,3]", "=0,1,0,2"}, "float32[n,6]", NULL, 0},
    {"Range", {"=0!", "=10!", "=3!"}, "int64[4]", NULL, 0},
    {"Range", {"=10!", "=0!", "=-4!"}, "int64[3]", NULL, 0},
    {"ConstantOfShape", {"=2,3"}, "float32[2,3]", NULL, 0},
    {"ReduceMean", {"float32[n,s,8]", "=-1"}, "float32[n,s,1]", NULL, 0},
    {"ReduceMean", {"float32[n,s,8]"}, "float32[n,s]", "axes=2, keepdims=0", 13},
    {"ReduceSum", {"float32[n,8]"}, "float32[1,1]", NULL, 0},
    {"ReduceSum", {"float32[n,8]"}, "float32[n,8]", "noop_with_empty_axes=1", 0},
    {"Shape", {"float32[n,3,4]"}, "int64[3]", NULL, 0},
    {"Shape", {"float32[n,3,4]"}, "int64[2]", "start=-2", 0},
    {"LayerNormalization", {"float32[n,s,8]", "float32[8]"}, "float32[n,s,8]", NULL, 0},
    {"Softmax", {"float32[n,s]"}, "float32[n,s]", NULL, 0},
    {"TopK", {"float32[n,8]", "=3"}, "float32[n,3]", NULL, 0},
    {"NonZero", {"float32[n,8]"}, "int64[2,?]", NULL, 0},
    {"DequantizeLinear", {"int8[n,3]", "float32[]"}, "float32[n,3]", NULL, 0},
    {"QuantizeLinear", {"float32[n,3]", "float32[]"}, "uint8[n,3]", NULL, 0},
    {"LSTM",
     {"float32[s,n,4]", "float32[1,32,4]", "float32[1,32,8]"},
     "float32[s,1,n,8]",
     "hidden_size=8",
     0},
    {"SequenceConstruct", {"float32[n]", "float32[2]"}, "sequence of float32", NULL, 0},
    {"Attention",
     {"float32[b,8,q,64]", "float32[b,2,k,64]", "float32[b,2,k,32]"},
     "float32[b,8,q,32]",
     NULL,
     23},
    {"Attention",
     {"float32[b,q,512]", "float32[b,k,128]", "float32[b,k,64]"},
     "float32[b,q,256]",
     "q_num_heads=8 kv_num_heads=2",
     23},
    {"Einsum", {"float32[b,i,4]", "float32[4,j]"}, "float32[b,j,i]", "equation:bik,kj->bji", 0},
    {"GridSample", {"float32[n,3,8,8]", "float32[n,5,w,2]"}, "float32[n,3,5,w]", NULL, 0},
    {"Unique", {"float32[4]"}, "float32[?]", NULL, 0},
    {"Compress", {"float32[4,n]", "bool[4]"}, "float32[?,n]", "axis=0", 0},
    {"DepthToSpace", {"float32[1,8,2,3]"}, "float32[1,2,4,6]", "blocksize=2", 0},
};

static void outputs_are_inferred_from_inputs(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pb model = model_of(&cases[i], "");
        kelp_graph *graph = loaded(&model);
        expect_type(value_named(graph, "y"), cases[i].expected);
        kelp_graph_release(graph);
    }
}

static void outputs_of_a_split_have_their_lengths(void **state) {
    (void)state;
    pb graph = {0}, node = pb_node("Split", "x", "p q r");
    pb_add_input(&graph, "x", "float32[n,8]");
    pb_attr_int(&node, "axis", 1);
    pb_attr_int(&node, "num_outputs", 3);
    pb_add_node(&graph, &node);
    pb_add_output(&graph, "r", "");
    pb model = pb_model(&graph, 18);
    kelp_graph *g = loaded(&model);
    expect_type(value_named(g, "p"), "float32[n,3]");
    expect_type(value_named(g, "r"), "float32[n,2]");
    kelp_graph_release(g);
}

/* The sum of the dimension and the number of outputs overflowed. */
static void a_split_of_the_largest_dimension_does_not_overflow(void **state) {
    (void)state;
    pb graph = {0}, node = pb_node("Split", "x", "p q r");
    pb_add_input(&graph, "x", "float32[9223372036854775807]");
    pb_attr_int(&node, "num_outputs", 3);
    pb_add_node(&graph, &node);
    pb_add_output(&graph, "r", "");
    pb model = pb_model(&graph, 18);
    kelp_graph *g = loaded(&model);
    expect_type(value_named(g, "p"), "float32[3074457345618258603]");
    expect_type(value_named(g, "r"), "float32[3074457345618258601]");
    kelp_graph_release(g);
}

/* Reshape of x [n,s,12] to [Shape(x)[0], Shape(x)[1], 3, -1], as exporters write it. */
static void computed_shapes_keep_the_names_of_dimensions(void **state) {
    (void)state;
    pb graph = {0};
    int64_t numbers[4] = {0, 1, 3, -1};
    const char *const names[4] = {"zero", "first", "three", "open"};
    for (size_t i = 0; i < 4; i++) {
        int64_t dims[1] = {1};
        pb tensor = pb_tensor(names[i], KELP_I64, i < 2 ? 0 : 1, dims, &numbers[i], 8);
        pb_add_initializer(&graph, &tensor);
    }
    pb axes = pb_tensor("axes", KELP_I64, 1, (int64_t[]){1}, (int64_t[]){0}, 8);
    pb_add_initializer(&graph, &axes);
    static const char *const nodes[][3] = {
        {"Shape", "x", "shape"},        {"Gather", "shape zero", "n"},
        {"Gather", "shape first", "s"}, {"Unsqueeze", "n axes", "n1"},
        {"Unsqueeze", "s axes", "s1"},  {"Concat", "n1 s1 three open", "target"},
        {"Reshape", "x target", "y"},   {"ConstantOfShape", "target", "z"}};
    pb_add_input(&graph, "x", "float32[n,s,12]");
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        pb node = pb_node(nodes[i][0], nodes[i][1], nodes[i][2]);
        if (strcmp(nodes[i][0], "Concat") == 0)
            pb_attr_int(&node, "axis", 0);
        pb_add_node(&graph, &node);
    }
    pb_add_output(&graph, "y", "");
    pb model = pb_model(&graph, 17);
    kelp_graph *g = loaded(&model);
    expect_type(value_named(g, "n"), "int64[]");
    expect_type(value_named(g, "target"), "int64[4]");
    expect_type(value_named(g, "y"), "float32[n,s,3,4]");
    kelp_graph_release(g);
}

static void types_of_branches_are_merged(void **state) {
    (void)state;
    pb graph = {0}, yes = {0}, no = {0}, branch = pb_node("If", "c", "y");
    pb relu = pb_node("Relu", "x", "p"), cut = pb_node("Concat", "x x", "q");
    pb_attr_int(&cut, "axis", 0);
    pb_add_node(&yes, &relu);
    pb_add_output(&yes, "p", "");
    pb_add_node(&no, &cut);
    pb_add_output(&no, "q", "");
    pb_attr_graph(&branch, "then_branch", &yes);
    pb_attr_graph(&branch, "else_branch", &no);
    pb_add_input(&graph, "x", "float32[2,k]");
    pb_add_input(&graph, "c", "bool[]");
    pb_add_node(&graph, &branch);
    pb_add_output(&graph, "y", "");
    pb model = pb_model(&graph, 17);
    kelp_graph *g = loaded(&model);
    expect_type(value_named(g, "y"), "float32[?,k]");
    kelp_graph_release(g);
}

/* Exporters may declare wrong shapes, which are replaced. Types must agree. */
static void inferred_shapes_replace_declared_shapes(void **state) {
    (void)state;
    one relu = {"Relu", {"float32[n,3]"}, NULL, NULL, 0};
    pb model = model_of(&relu, "float32[m,3]"); /* two names of one dimension */
    kelp_graph_release(loaded(&model));
    static const char *const wrong[] = {"float32[n,4]", "float32[n]", "float32[1,n,3]"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        model = model_of(&relu, wrong[i]);
        kelp_graph *g = loaded(&model);
        expect_type(value_named(g, "y"), "float32[n,3]");
        kelp_graph_release(g);
    }
    model = model_of(&relu, "float64[n,3]");
    expect_rejected(&model, KELP_INVALID_ARGUMENT,
                    "output 'y' is declared as float64: the operator returns float32");
}

static void inconsistent_inputs_are_rejected(void **state) {
    (void)state;
    static const struct {
        one c;
        const char *text;
    } wrong[] = {
        {{"Add", {"float32[2]", "float32[3]"}, NULL, NULL, 0}, "cannot be broadcast"},
        {{"Add", {"float32[2]", "float64[2]"}, NULL, NULL, 0}, "expected the same type"},
        {{"Add", {"string[2]", "string[2]"}, NULL, NULL, 0}, "the unsupported type string"},
        {{"MatMul", {"float32[2,3]", "float32[4,5]"}, NULL, NULL, 0}, "3 is not 4"},
        {{"MatMul", {"float32[]", "float32[4,5]"}, NULL, NULL, 0}, "scalar"},
        {{"Gemm", {"float32[2]", "float32[4,5]"}, NULL, NULL, 0}, "ranks 1 and 2"},
        {{"Conv", {"float32[1,4,8,8]", "float32[8,3,3,3]"}, NULL, NULL, 0}, "4 channels"},
        {{"Concat", {"float32[2,3]", "float32[2]"}, NULL, "axis=0", 0}, "rank"},
        {{"Concat", {"float32[2,3]", "float32[2,4]"}, NULL, "axis=0", 0}, "dimension 4 on axis 1"},
        {{"Transpose", {"float32[2,3]"}, NULL, "perm=0,0", 0}, "axis 0 is repeated"},
        {{"Transpose", {"float32[2,3]"}, NULL, "perm=0,1,2", 0}, "perm has 3 axes"},
        {{"Reshape", {"float32[2,3]", "=4,2"}, NULL, NULL, 0}, "[2,3] cannot be reshaped to [4,2]"},
        {{"Reshape", {"float32[2,3]", "=-1,-1"}, NULL, NULL, 0}, "more than one dimension of -1"},
        {{"Squeeze", {"float32[2,3]", "=0"}, NULL, NULL, 0}, "its dimension is 2"},
        {{"Gather", {"float32[2,3]", "int64[1]"}, NULL, "axis=2", 0}, "axis 2 does not exist"},
        {{"Slice", {"float32[4]", "=0", "=4", "=0,1"}, NULL, NULL, 0}, "1 starts, 1 ends, 2 axes"},
        {{"Range", {"=0!", "=4!", "=0!"}, NULL, NULL, 0}, "delta is 0"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        pb model = model_of(&wrong[i].c, "");
        expect_rejected(&model, KELP_INVALID_ARGUMENT, wrong[i].text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_are_inferred_from_inputs),
        cmocka_unit_test(outputs_of_a_split_have_their_lengths),
        cmocka_unit_test(a_split_of_the_largest_dimension_does_not_overflow),
        cmocka_unit_test(computed_shapes_keep_the_names_of_dimensions),
        cmocka_unit_test(types_of_branches_are_merged),
        cmocka_unit_test(inferred_shapes_replace_declared_shapes),
        cmocka_unit_test(inconsistent_inputs_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
