/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of Gradient nodes that cannot be expanded. Their derivatives are cases of tests/ops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/support.h"
#include "graph/text.h"

#define X "x:f32[2,3]; z:f32[2,3]; y=Neg(x); v=Mul(y,z); "

static void invalid_gradients_are_rejected(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
        kelp_code code;
    } rows[] = {
        {X "g=p.Gradient(x){xs=[nowhere],y=y}; g; y",
         "node 'g' (Gradient): 'nowhere' of xs or zs is not a value of the graph",
         KELP_INVALID_ARGUMENT},
        {X "g=p.Gradient(x,z){xs=[x],zs=[nowhere],y=v}; g; v",
         "'nowhere' of xs or zs is not a value of the graph", KELP_INVALID_ARGUMENT},
        {X "g=p.Gradient(x,_){xs=[x],zs=[z],y=v}; g; v", "'z' of xs or zs has no input",
         KELP_INVALID_ARGUMENT},
        {X "g=p.Gradient(x){xs=[x],y=nowhere}; g; y", "y 'nowhere' is not a value of the graph",
         KELP_INVALID_ARGUMENT},
        {X "g=p.Gradient(x){y=y}; g; y", "expected an input for each of the 0 xs and 0 zs",
         KELP_INVALID_ARGUMENT},
        {X "g=p.Gradient(x){xs=[x,z],y=v}; g; v", "found 1 inputs and 1 outputs",
         KELP_INVALID_ARGUMENT},
        {X "g,h=p.Gradient(x){xs=[x],y=v}; g; v", "found 1 inputs and 2 outputs",
         KELP_INVALID_ARGUMENT},
        {X "a,i=TopK(x,[1]); g=p.Gradient(x){xs=[x],y=a}; g; a",
         "no derivative is known for output 0 of operator 'TopK' (node 'a')", KELP_UNIMPLEMENTED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kelp_graph *graph = graph_from_text(rows[i].text);
        expect_error(kelp_pass_gradient(graph->main), rows[i].code, rows[i].message);
        kelp_graph_release(graph);
    }
}

/* A Gradient leaves no node of its own behind, and use counts are up to date. */
static void gradients_are_replaced_by_other_nodes(void **state) {
    (void)state;
    kelp_graph *graph = graph_from_text(
        X "g,h=p.Gradient(x,z){xs=[x,z],y=v}; k=p.Gradient(x){xs=[x],y=y}; g; h; k; v; y");
    assert_null(kelp_pass_gradient(graph->main));
    check_block(graph->main);
    for (size_t n = 0; n < graph->main->node_count; n++)
        assert_string_not_equal(graph->main->nodes[n]->op->name, "Gradient");
    static const char *const names[5] = {"g", "h", "k", "v", "y"};
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(graph->main->outputs[i]->name, names[i]);
    kelp_graph_release(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invalid_gradients_are_rejected),
        cmocka_unit_test(gradients_are_replaced_by_other_nodes),
    };
    return cmocka_run_group_tests_name("gradient", tests, NULL, NULL);
}
