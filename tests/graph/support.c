/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/ir.h"

kelp_status *load_model(const pb *model, kelp_graph **out) {
    /* an exact copy, so that sanitizers detect a read after its end */
    char *copy = malloc(model->length ? model->length : 1);
    assert_non_null(copy);
    memcpy(copy, model->data, model->length);
    return kelp_graph_load_bytes(kelp_allocator_system(), copy, model->length, "m.onnx", NULL, free,
                                 copy, NULL, out);
}

kelp_graph *loaded(const pb *model) {
    kelp_graph *graph = NULL;
    kelp_status *status = load_model(model, &graph);
    if (status != NULL)
        fail_msg("%s", kelp_status_message(status));
    return graph;
}

void expect_error(kelp_status *status, kelp_code code, const char *text) {
    char message[1024];
    kelp_status_format(status, message, sizeof message);
    if (kelp_status_code(status) != code || strstr(message, text) == NULL)
        fail_msg("expected %s '%s', found %s: %s", kelp_code_name(code), text,
                 kelp_code_name(kelp_status_code(status)), message);
    kelp_status_free(status);
}

void expect_rejected(const pb *model, kelp_code code, const char *text) {
    kelp_graph *graph = NULL;
    expect_error(load_model(model, &graph), code, text);
    assert_null(graph);
}

void expect_type(const kelp_value *value, const char *type) {
    static const char *const kinds[] = {"?", "", "sequence of ", "optional ", "map of ", "sparse "};
    char text[256];
    int n = snprintf(text, sizeof text, "%s%s", kinds[kelp_value_kind_of(value)],
                     kelp_dtype_name(kelp_value_dtype(value)));
    int32_t rank = kelp_value_rank(value);
    for (int32_t i = 0; i < rank; i++) {
        const char *symbol = NULL, *before = i == 0 ? "[" : ",";
        int64_t dim = kelp_value_dim(value, i, &symbol);
        n += dim >= 0
                 ? snprintf(text + n, sizeof text - (size_t)n, "%s%lld", before, (long long)dim)
                 : snprintf(text + n, sizeof text - (size_t)n, "%s%s", before,
                            symbol ? symbol : "?");
    }
    if (rank >= 0)
        snprintf(text + n, sizeof text - (size_t)n, rank == 0 ? "[]" : "]");
    if (strcmp(text, type) != 0)
        fail_msg("value '%s': expected %s, found %s", kelp_value_name(value), type, text);
}

const kelp_value *value_named(const kelp_graph *graph, const char *name) {
    const kelp_block *block = kelp_graph_main(graph);
    for (size_t i = 0; i < block->value_count; i++)
        if (strcmp(block->values[i]->name, name) == 0)
            return block->values[i];
    fail_msg("there is no value '%s'", name);
    return NULL;
}
