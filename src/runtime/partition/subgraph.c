/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of kelp::BackendSubgraph nodes: the provider runs the body. */
#include "base/assert.h"
#include "runtime/opset/bridge.h"
#include "runtime/opset/env.h"
#include "runtime/opset/placed.h"
#include "runtime/partition/partition.h"

#include <string.h>

static kelp_status *run_and_wait(const kelp_subgraph *s, const kelp_op_env *env,
                                 const kelp_tensor *const *inputs, kelp_tensor *results) {
    kelp_completion completion;
    kelp_dispatch_result result = KELP_DISPATCH_IMMEDIATE;
    KELP_TRY(kelp_completion_begin(&completion, s->registry));
    kelp_status *status = s->entry->table.run_subgraph(
        s->entry->self, s->state, env, s->graph->main, inputs, results, &completion, &result);
    return kelp_completion_end(&completion, s->registry, status, result);
}

static kelp_status *run(const kelp_subgraph *s, const kelp_op_env *env,
                        const kelp_tensor *const *inputs, kelp_tensor **out_results) {
    const kelp_block *body = s->graph->main;
    KELP_ASSERT(kelp_opset_takes_subgraphs(s->entry));
    kelp_tensor *results =
        kelp_op_env_alloc(env, (body->output_count ? body->output_count : 1) * sizeof *results);
    if (results == NULL)
        return kelp_status_oom();
    memset(results, 0, body->output_count * sizeof *results);
    *out_results = results;
    const kelp_opset_backend *table = &s->entry->table;
    KELP_TRY(kelp_placed_check_inputs(s->entry, s->node, inputs, s->node->input_count));
    kelp_status *status = NULL;
    if (table->run_subgraph != NULL)
        status = run_and_wait(s, env, inputs, results);
    else
        status = table->execute_graph(s->entry->self, env, body, inputs, results);
    if (status != NULL)
        return KELP_ANNOTATE(status, "provider '%s' failed", table->name);
    KELP_TRY(kelp_placed_own(s->entry, env, results, body->output_count));
    for (size_t i = 0; i < body->output_count; i++)
        KELP_TRY(kelp_bridge_check_result(s->entry->backend, body->outputs[i], &results[i]));
    return NULL;
}

/* Sets the output shapes if all are fixed in the model: they are known before the run. */
static kelp_status *fixed_shapes(const kelp_block *body, kelp_op_args *args, bool *out_fixed) {
    *out_fixed = false;
    for (size_t i = 0; i < body->output_count; i++) {
        const kelp_value *value = body->outputs[i];
        if (value->kind != KELP_VALUE_TENSOR || value->rank < 0 ||
            value->dtype == KELP_DTYPE_INVALID)
            return NULL;
        for (int32_t axis = 0; axis < value->rank; axis++)
            if (value->shape[axis] < 0)
                return NULL;
    }
    for (size_t i = 0; i < body->output_count; i++)
        if (args->outputs[i] != NULL)
            KELP_TRY(kelp_tensor_init(args->outputs[i], body->outputs[i]->dtype,
                                      body->outputs[i]->rank, body->outputs[i]->shape, NULL));
    *out_fixed = true;
    return NULL;
}

typedef struct subgraph_plan {
    kelp_tensor *results; /* NULL: invoke runs the subgraph */
} subgraph_plan;

static kelp_status *subgraph_reshape(const void *state, kelp_op_args *args) {
    const kelp_subgraph *s = state;
    subgraph_plan *plan = args->plan;
    bool fixed = false;
    plan->results = NULL;
    if (!kelp_places(s->entry)) /* otherwise, results may be on a device */
        KELP_TRY(fixed_shapes(s->graph->main, args, &fixed));
    if (fixed)
        return NULL;
    for (int32_t i = 0; i < args->input_count; i++) {
        const kelp_tensor *input = args->inputs[i];
        if (input->data == NULL && kelp_tensor_elements(input) > 0) {
            args->deferred = true;
            return NULL;
        }
    }
    if (kelp_op_env_is_planning(args->env)) {
        args->deferred = true;
        return NULL;
    }
    KELP_TRY(run(s, args->env, args->inputs, &plan->results));
    const kelp_placer placer = {s->entry, s->node, s->stays};
    if (kelp_places(s->entry))
        return kelp_placed_set_all(&placer, args, plan->results);
    for (int32_t i = 0; i < args->output_count; i++) {
        const kelp_tensor *result = &plan->results[i];
        if (args->outputs[i] != NULL)
            KELP_TRY(kelp_tensor_init(args->outputs[i], result->dtype, result->rank, result->shape,
                                      NULL));
    }
    return NULL;
}

static bool same_shape(const kelp_tensor *a, const kelp_tensor *b) {
    return a->dtype == b->dtype && a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0);
}

static kelp_status *subgraph_invoke(const void *state, kelp_op_args *args) {
    const kelp_subgraph *s = state;
    const subgraph_plan *plan = args->plan;
    kelp_tensor *results = plan->results;
    KELP_ASSERT((size_t)args->output_count == s->graph->main->output_count);
    if (results == NULL)
        KELP_TRY(run(s, args->env, args->inputs, &results));
    for (int32_t i = 0; i < args->output_count; i++) {
        if (args->outputs[i] == NULL)
            continue;
        if (!same_shape(&results[i], args->outputs[i])) {
            char expected[256], found[256];
            kelp_shape_format(args->outputs[i]->rank, args->outputs[i]->shape, expected,
                              sizeof expected);
            kelp_shape_format(results[i].rank, results[i].shape, found, sizeof found);
            return KELP_ERROR(KELP_INTERNAL, "provider '%s' returned %s%s for '%s': expected %s%s",
                              s->entry->backend->name, kelp_dtype_name(results[i].dtype), found,
                              s->graph->main->outputs[i]->name,
                              kelp_dtype_name(args->outputs[i]->dtype), expected);
        }
        const kelp_placer placer = {s->entry, s->node, s->stays};
        KELP_TRY(
            kelp_placed_copy(&placer, args->env, (size_t)i, &results[i], args->outputs[i]->data));
    }
    return NULL;
}

const kelp_op_kernel kelp_subgraph_kernel = {.struct_size = sizeof(kelp_op_kernel),
                                             .flags = KELP_OP_IMPURE | KELP_OP_LISTS,
                                             .plan_bytes = sizeof(subgraph_plan),
                                             .unaligned_inputs = 0,
                                             .create = NULL,
                                             .destroy = NULL,
                                             .reshape = subgraph_reshape,
                                             .invoke = subgraph_invoke};
