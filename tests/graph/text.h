/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs as text, for tables of tests. A graph is a list of statements, separated by ';':
 *
 *   x:f32[2,?,n]                    an input; ? and n are dynamic dimensions
 *   w:f32[2,3]=1 2                  a constant; the last number is repeated; `up` counts from 0
 *   y=Conv(x,w){group=2}@13         a node of ai.onnx 13 [17]; the first output is its name
 *   y:f32[2,3],z=ms.Gelu(x,_,0.5)   a node of com.microsoft 1 (`kelp.`: Kelp's own operators; `p.`:
 * preview.training) with declared types; `_` is omitted y=any.Custom(x)                 an operator
 * of com.example, which Kelp does not know y                               an output of the graph
 * [the first output of the last node]
 *
 * Operands may be numbers (a float scalar), `b` and a number (a bool scalar) or lists [1,2]
 * (int64). Attributes are integers, numbers with a point, words, or lists of integers or words.
 * Types that are not declared are inferred. Type names: f32, f16, bf16, f64, u8, i8, i32, i64,
 * bool.
 */
#ifndef KELP_TESTS_GRAPH_TEXT_H_
#define KELP_TESTS_GRAPH_TEXT_H_

#include "graph/passes/passes.h"

/* Builds a graph; fails the test on an error in the text. The caller releases it. */
kelp_graph *graph_from_text(const char *text);
/* Returns the nodes of a block as text, in order, separated by "; ". A node whose name is not that
 * of its first output has its name after '#'. Constants are shown by their items: <1 2 3>, or
 * <2 x6> if all are equal, with `name` if there are more than eight. The next call overwrites it.
 */
const char *nodes_as_text(const kelp_block *block);
/* Fails the test unless the block is consistent: indices, producers, order and use counts. */
void check_block(const kelp_block *block);

/* A graph before a pass and its nodes afterwards; NULL: they are unchanged. */
typedef struct pass_case {
    const char *before, *after;
} pass_case;
/* Runs a pass, or a list of them, on each graph and compares the remaining nodes whose outputs are
 * used. The types of the graph's outputs must be the same. */
void expect_passes(kelp_status *(*pass)(kelp_block *block), const pass_case *cases, size_t count);
#define EXPECT_PASSES(pass, cases) expect_passes((pass), (cases), sizeof(cases) / sizeof *(cases))

#endif
