/* SPDX-License-Identifier: Apache-2.0 */
/* Loading what tests write, and looking at what came of it. */
#ifndef KELP_TESTS_GRAPH_SUPPORT_H_
#define KELP_TESTS_GRAPH_SUPPORT_H_

#include "onnx/onnx_writer.h"

#include <kelp/graph.h>

/* Loads a copy of the model's bytes, which goes with the graph. */
kelp_status *load_model(const pb *model, kelp_graph **out);
/* Must load. */
kelp_graph *loaded(const pb *model);
/* Must be refused, with these words in its message. */
void refused(const pb *model, kelp_code code, const char *words);
/* The status is a failure with these words; frees it. */
void expect_words(kelp_status *status, kelp_code code, const char *words);
/* "float32[2,n,?]" as pb_value takes it; kinds other than tensor by name in front. */
void expect_type(const kelp_value *value, const char *type);
/* The value of this name in the main graph. */
const kelp_value *value_named(const kelp_graph *graph, const char *name);

#endif
