/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes ONNX models: reads, checks, infers and clones a model as an engine does, and reads all
 * descriptions. */
#include <kelp/graph.h>

#include "graph/ir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink; /* so that the compiler does not remove the reads */

static void look_at_tensor(const kelp_tensor *tensor) {
    size_t bytes = kelp_tensor_bytes(tensor);
    const unsigned char *at = tensor->data;
    for (size_t i = 0; at != NULL && tensor->dtype != KELP_STRING && i < bytes; i++)
        sink += at[i];
    const kelp_string *strings = tensor->data;
    for (size_t i = 0; tensor->dtype == KELP_STRING && i < bytes / sizeof *strings; i++)
        for (size_t k = 0; k < strings[i].length; k++)
            sink += (unsigned char)strings[i].data[k];
}

static void look_at_value(const kelp_value *value) {
    if (value == NULL)
        return;
    for (int32_t i = 0; i < kelp_value_rank(value); i++) {
        const char *symbol = NULL;
        sink += (size_t)kelp_value_dim(value, i, &symbol) + (symbol ? strlen(symbol) : 0);
    }
    sink += strlen(kelp_value_name(value));
    if (kelp_value_constant(value) != NULL)
        look_at_tensor(kelp_value_constant(value));
}

static void look_at_block(const kelp_block *block) {
    for (size_t n = 0; n < kelp_block_node_count(block); n++) {
        const kelp_node *node = kelp_block_node(block, n);
        for (size_t i = 0; i < kelp_node_input_count(node); i++)
            look_at_value(kelp_node_input(node, i));
        for (size_t i = 0; i < kelp_node_output_count(node); i++)
            look_at_value(kelp_node_output(node, i));
        for (size_t i = 0; i < kelp_node_attr_count(node); i++) {
            const char *name = kelp_node_attr_name(node, i);
            const kelp_block *inner = kelp_node_attr_block(node, name);
            if (kelp_node_attr_tensor(node, name) != NULL)
                look_at_tensor(kelp_node_attr_tensor(node, name));
            if (inner != NULL)
                look_at_block(inner);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const kelp_graph_limits limits = {.nodes = 4096};
    kelp_graph *graph = NULL, *clone = NULL;
    kelp_status *status = kelp_graph_load_bytes(kelp_allocator_system(), data, size, "fuzz.onnx",
                                                NULL, NULL, NULL, &limits, &graph);
    if (status == NULL) {
        look_at_block(kelp_graph_main(graph));
        status = kelp_graph_clone_for_engine(graph, &clone);
    }
    if (status == NULL)
        look_at_block(kelp_graph_main(clone));
    kelp_status_free(status);
    kelp_graph_release(graph);
    kelp_graph_release(clone);
    return 0;
}
