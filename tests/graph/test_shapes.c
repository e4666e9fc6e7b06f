/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of inferred shapes that depend on computed integers, and of bodies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/support.h"
#include "graph/text.h"

/* Elements of integer vectors are known, although a node computes them. */
#define OF(target) "x:f32[n,4,6]; s=Shape(x); " target "; y=Reshape(x,t)"

static const struct {
    const char *text, *type;
} rows[] = {
    {OF("a=Slice(s,[0],[1]); t=Concat(a,[24]){axis=0}"), "float32[n,24]"},
    {OF("a=Slice(s,[0],[1],[0]); t=Concat(a,[24]){axis=0}"), "float32[n,24]"},
    {OF("a=Slice(s,[0],[1],[0],[1]); t=Concat(a,[24]){axis=0}"), "float32[n,24]"},
    {OF("a=Slice(s,[-3],[-2]); t=Concat(a,[24]){axis=0}"), "float32[n,24]"},
    {OF("a=Slice(s,[0],[3],[0],[2]); t=Concat(a,[4]){axis=0}"), "float32[?,?,?]"},
    {OF("a=Slice(s,[1],[9]); t=Concat([-1],a){axis=0}"), "float32[n,4,6]"},
    {OF("a=Shape(x){start=1}; t=Concat([-1],a){axis=0}"), "float32[n,4,6]"},
    {OF("a=Shape(x){start=-2,end=-1}; t=Concat([0],a,[6]){axis=0}"), "float32[n,4,6]"},
    {OF("a=Shape(x){end=1}; t=Concat(a,[24]){axis=0}"), "float32[n,24]"},
    {OF("a=Gather(s,[-2]); t=Concat([0],a,[6]){axis=0}"), "float32[n,4,6]"},
    {OF("a=Gather(s,[2,1]); t=Concat([0],a){axis=0}"), "float32[n,6,4]"},
    {OF("i:i32[]=1; a=Gather(s,i); b=Unsqueeze(a,[0]); t=Concat([0],b,[6]){axis=0}"),
     "float32[n,4,6]"},
    {OF("i:i64[1]; a=Gather(s,i); t=Concat([0],a,[6]){axis=0}"), "float32[?,?,?]"},
    {OF("c=Cast(s){to=6}; d=Cast(c){to=7}; t=Concat(d){axis=0}"), "float32[n,4,6]"},
    {OF("c=Cast(s){to=1}; d=Cast(c){to=7}; t=Concat(d){axis=0}"), "float32[?,?,?]"},
    {OF("a=Gather(s,[1]); b=Mul(a,[6]); t=Concat([0],b){axis=0}"), "float32[n,24]"},
    {OF("a=Slice(s,[1],[3]); b=Mul(a,[2]); c=Div(b,[2]); t=Concat([0],c){axis=0}"),
     "float32[n,4,6]"},
    {OF("a=Slice(s,[1],[3]); b=Mul([1],a); t=Concat([0],b){axis=0}"), "float32[n,4,6]"},
    {OF("a=Slice(s,[1],[3]); b=Add(a,[1,-1]); c=Sub(b,[1,-1]); t=Concat([0],c){axis=0}"),
     "float32[n,4,6]"},
    {OF("a=Gather(s,[1]); b=Div(a,[0]); t=Concat([0],b,[6]){axis=0}"), "float32[n,?,6]"},
    {OF("i:i64[]=1; a=Gather(s,i); r=Reshape(a,[1]); t=Concat([0],r,[6]){axis=0}"),
     "float32[n,4,6]"},
    {OF("a=Gather(s,[1]); q=Squeeze(a,[0]); u=Unsqueeze(q,[0]); t=Concat([0],u,[6]){axis=0}"),
     "float32[n,4,6]"},
    {OF("a=Identity(s); t=Concat(a){axis=0}"), "float32[n,4,6]"},
    {OF("k=Constant(){value_ints=[0,24]}; t=Identity(k)"), "float32[n,24]"},
    {OF("k=Constant(){value_int=24}; u=Unsqueeze(k,[0]); t=Concat([0],u){axis=0}"),
     "float32[n,24]"},
    {OF("k=Constant(){value_int=24}; a=Add(k,[0]); t=Concat([0],a){axis=0}"), "float32[n,24]"},
    {"x:f32[2,3]; y=Constant(){value_ints=[4,5]}", "int64[2]"},
    {"x:f32[2,3]; y=Constant(){value_float=4.5}", "float32[]"},
    /* slices, as in NumPy */
    {"x:f32[10]; y=Slice(x,[-3],[100])", "float32[3]"},
    {"x:f32[10]; y=Slice(x,[2],[-2])", "float32[6]"},
    {"x:f32[10]; y=Slice(x,[-100],[2])", "float32[2]"},
    {"x:f32[10]; y=Slice(x,[8],[2])", "float32[0]"},
    {"x:f32[10]; y=Slice(x,[1],[8],[0],[3])", "float32[3]"},
    {"x:f32[10]; y=Slice(x,[9],[0],[0],[-2])", "float32[5]"},
    {"x:f32[10]; y=Slice(x,[100],[-100],[0],[-1])", "float32[10]"},
    {"x:f32[10]; y=Slice(x,[-2],[3],[-1],[-1])", "float32[5]"},
    {"x:f32[0]; y=Slice(x,[0],[5])", "float32[0]"},
    {"x:f32[5,7]; y=Slice(x,[1],[3])", "float32[2,7]"},
    {"x:f32[5,7]; y=Slice(x,[1,2],[3,4])", "float32[2,2]"},
    {"x:f32[5,7]; y=Slice(x,[1],[3],[1])", "float32[5,2]"},
    {"x:f32[n,7]; y=Slice(x,[1],[3])", "float32[?,7]"},
    {"x:f32[n,7]; a:i64[1]; y=Slice(x,a,[3])", "float32[?,?]"},
    {"x:f32[n,7]; a:i64[1]; y=Slice(x,[1],[3],a)", "float32[?,?]"},
    {"x:f32[n,7]; y=Slice(x){starts=[1],ends=[3],axes=[1]}@9", "float32[n,2]"},
    /* indices */
    {"x:f32[n,4,6]; i:i64[m,2]; y=GatherND(x,i)", "float32[m,6]"},
    {"x:f32[n,4,6]; i:i64[m,3]; y=GatherND(x,i)", "float32[m]"},
    {"x:f32[n,4,6]; i:i64[n,5,1]; y=GatherND(x,i){batch_dims=1}", "float32[n,5,6]"},
    {"b:f32[1,n,4]; s:f32[1,2,n]; y=NonMaxSuppression(b,s)", "int64[?,3]"},
    {"x:f32[n,4]; y=TopK(x,[3]){axis=0}", "float32[3,4]"},
    {"x:i64[n,4]; d:i64[]=5; v:f32[2]=0 1; y=OneHot(x,d,v){axis=1}", "float32[n,5,4]"},
    {"x:i64[n,4]; d:i64[]; v:f32[2]=0 1; y=OneHot(x,d,v)", "float32[n,4,?]"},
    {"x:f32[n]; y=NonZero(x)", "int64[1,?]"},
    {"x:f32[n,4]; y=Unsqueeze(x,[1,3])", "float32[n,1,4,1]"},
    {"x:f32[2,1,1,1,1,1,1,1,1,1,1,1,1,1,n]; y=Unsqueeze(x,[0])",
     "float32[1,2,1,1,1,1,1,1,1,1,1,1,1,1,1,n]"},
    {"x:f32[n,4]; a:i64[2]; y=Unsqueeze(x,a)", "float32[?,?,?,?]"},
    /* images */
    {"x:f32[n,2,4,w]; y=SpaceToDepth(x){blocksize=2}", "float32[n,8,2,?]"},
    {"x:f32[n,c,4,6]; y=SpaceToDepth(x){blocksize=2}", "float32[n,?,2,3]"},
    {"x:f32[n,8,h,6]; y=DepthToSpace(x){blocksize=2}", "float32[n,2,?,12]"},
    {"x:f32[n,0,5]; w:f32[3,0,2]=1; y=Conv(x,w)", "float32[n,3,4]"},
    {"x:f32[n,c,5]; w:f32[3,2,2]=1; y=Conv(x,w)", "float32[n,3,4]"},
};

static void shapes_depend_on_computed_integers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kelp_graph *graph = graph_from_text(rows[i].text);
        print_message("%s\n", rows[i].text);
        expect_type(value_named(graph, "y"), rows[i].type);
        kelp_graph_release(graph);
    }
}

/* ---- bodies ---- */
static void branch(pb *owner, const char *name, const char *op_type, const char *inputs) {
    pb body = {0}, node = pb_node(op_type, inputs, "out");
    pb_add_node(&body, &node);
    pb_add_output(&body, "out", "");
    pb_attr_graph(owner, name, &body);
}

static pb model_of_if(const char *then_op, const char *then_inputs, const char *else_op,
                      const char *else_inputs) {
    static const int64_t two = 2, shape[2] = {-1, 1};
    pb graph = {0}, choice = pb_node("If", "c", "y");
    branch(&choice, "then_branch", then_op, then_inputs);
    branch(&choice, "else_branch", else_op, else_inputs);
    pb target = pb_tensor("target", KELP_I64, 1, &two, shape, sizeof shape);
    pb_add_initializer(&graph, &target);
    pb_add_input(&graph, "x", "float32[2,k]");
    pb_add_input(&graph, "v", "float32[6]");
    pb_add_input(&graph, "c", "bool[]");
    pb_add_node(&graph, &choice);
    pb_add_output(&graph, "y", "");
    return pb_model(&graph, 17);
}

static void branches_of_different_ranks_have_no_common_shape(void **state) {
    (void)state;
    static const struct {
        const char *then_op, *then_inputs, *else_op, *else_inputs, *type;
    } cases[] = {{"Relu", "x", "Relu", "v", "float32"},
                 {"Relu", "v", "Relu", "x", "float32"},
                 {"Relu", "x", "Neg", "x", "float32[2,k]"},
                 {"Relu", "x", "Reshape", "v target", "float32[?,?]"},
                 {"Shape", "x", "Shape", "v", "int64[?]"},
                 {"SequenceConstruct", "x", "SequenceConstruct", "v", "sequence of float32"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pb model = model_of_if(cases[i].then_op, cases[i].then_inputs, cases[i].else_op,
                               cases[i].else_inputs);
        kelp_graph *graph = loaded(&model);
        expect_type(value_named(graph, "y"), cases[i].type);
        kelp_graph_release(graph);
    }
    pb model = model_of_if("Relu", "x", "Shape", "x");
    expect_rejected(&model, KELP_INVALID_ARGUMENT,
                    "output 'y' is declared as float32: the operator returns int64");
}

/* A Loop whose body has the inputs i, c and v, and the outputs c, v and i. */
static void inputs_of_a_loop_have_types(void **state) {
    (void)state;
    pb graph = {0}, body = {0}, loop = pb_node("Loop", "- - x", "last all");
    pb same = pb_node("Identity", "c", "go"), neg = pb_node("Neg", "v", "w"),
       add = pb_node("Add", "i i", "twice");
    pb_add_input(&body, "i", "");
    pb_add_input(&body, "c", "");
    pb_add_input(&body, "v", "");
    pb_add_node(&body, &same);
    pb_add_node(&body, &neg);
    pb_add_node(&body, &add);
    pb_add_output(&body, "go", "");
    pb_add_output(&body, "w", "");
    pb_add_output(&body, "twice", "");
    pb_attr_graph(&loop, "body", &body);
    pb_add_input(&graph, "x", "float16[2,k]");
    pb_add_node(&graph, &loop);
    pb_add_output(&graph, "last", "");
    pb_add_output(&graph, "all", "");
    pb model = pb_model(&graph, 17);
    kelp_graph *g = loaded(&model);
    expect_type(value_named(g, "last"), "float16");
    expect_type(value_named(g, "all"), "int64");
    const kelp_block *inside = g->main->nodes[0]->attributes->blocks[0];
    expect_type(inside->inputs[0], "int64");
    expect_type(inside->inputs[1], "bool");
    expect_type(inside->inputs[2], "float16");
    kelp_graph_release(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_depend_on_computed_integers),
        cmocka_unit_test(branches_of_different_ranks_have_no_common_shape),
        cmocka_unit_test(inputs_of_a_loop_have_types),
    };
    return cmocka_run_group_tests_name("shapes", tests, NULL, NULL);
}
