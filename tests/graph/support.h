/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers that load models written by tests and check the graphs. */
#ifndef KELP_TESTS_GRAPH_SUPPORT_H_
#define KELP_TESTS_GRAPH_SUPPORT_H_

#include "onnx/onnx_writer.h"

#include <kelp/graph.h>

/* Loads a copy of the model, which is freed with the graph. */
kelp_status *load_model(const pb *model, kelp_graph **out);
/* Loads a model; fails the test on an error. */
kelp_graph *loaded(const pb *model);
/* Fails the test unless the model is rejected with a message that contains `text`. */
void expect_rejected(const pb *model, kelp_code code, const char *text);
/* Fails the test unless the status is an error with a message that contains `text`; frees it. */
void expect_error(kelp_status *status, kelp_code code, const char *text);
/* Compares a type in the notation of pb_value, such as "float32[2,n,?]", after the name of a kind
 * other than tensor. */
void expect_type(const kelp_value *value, const char *type);
/* Returns the value of this name in the main graph. */
const kelp_value *value_named(const kelp_graph *graph, const char *name);

#endif
