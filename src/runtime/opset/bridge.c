/* SPDX-License-Identifier: Apache-2.0 */
/* Runs operators of a provider: through its kernel, its dispatch, or as a graph of one node. */
#include "runtime/opset/bridge.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/arena.h"
#include "graph/ir.h"
#include "runtime/opset/env.h"
#include "runtime/opset/placed.h"
#include "runtime/opset/registry.h"
#include "runtime/opset/typed.h"

#include <string.h>

/* ---- waiting for an asynchronous dispatch ---- */
void kelp_completion_done(kelp_completion *completion, kelp_status *take_error) {
    pthread_mutex_lock(&completion->lock);
    KELP_ASSERT(!completion->done);
    completion->error = take_error;
    completion->done = true;
    /* signaled under the lock: the waiting thread may destroy the object once it has the lock */
    pthread_cond_signal(&completion->done_cond);
    pthread_mutex_unlock(&completion->lock);
}

kelp_status *kelp_completion_begin(kelp_completion *completion, kelp_opset_registry *registry) {
    KELP_TRY(kelp_opset_begin_pending(registry));
    *completion = (kelp_completion){.done = false};
    pthread_mutex_init(&completion->lock, NULL);
    pthread_cond_init(&completion->done_cond, NULL);
    return NULL;
}

kelp_status *kelp_completion_end(kelp_completion *completion, kelp_opset_registry *registry,
                                 kelp_status *take_status, kelp_dispatch_result result) {
    kelp_status *status = take_status;
    pthread_mutex_lock(&completion->lock);
    while (status == NULL && result == KELP_DISPATCH_LATER && !completion->done)
        pthread_cond_wait(&completion->done_cond, &completion->lock);
    pthread_mutex_unlock(&completion->lock);
    if (status == NULL) /* also if the dispatch was completed before it returned */
        status = completion->error;
    else
        kelp_status_free(completion->error);
    pthread_cond_destroy(&completion->done_cond);
    pthread_mutex_destroy(&completion->lock);
    kelp_opset_end_pending(registry);
    return status;
}

kelp_status *kelp_bridge_check_result(const kelp_opset_backend *backend, const kelp_value *value,
                                      const kelp_tensor *result) {
    if (result->dtype == KELP_DTYPE_INVALID)
        return KELP_ERROR(KELP_INTERNAL, "provider '%s' returned no tensor for '%s'", backend->name,
                          value->name);
    if (value->kind == KELP_VALUE_TENSOR && value->dtype != KELP_DTYPE_INVALID &&
        result->dtype != value->dtype)
        return KELP_ERROR(KELP_INTERNAL, "provider '%s' returned %s for '%s': expected %s",
                          backend->name, kelp_dtype_name(result->dtype), value->name,
                          kelp_dtype_name(value->dtype));
    if (!kelp_tensor_is_compact(result))
        return KELP_ERROR(
            KELP_UNIMPLEMENTED,
            "provider '%s' returned a strided tensor for '%s': expected a compact one",
            backend->name, value->name);
    if (result->data == NULL && kelp_tensor_bytes(result) > 0)
        return KELP_ERROR(KELP_INTERNAL,
                          "provider '%s' returned no data for '%s': expected %zu bytes",
                          backend->name, value->name, kelp_tensor_bytes(result));
    return NULL;
}

static kelp_status *dispatch_and_wait(const kelp_opset_match *match, const kelp_op_env *env,
                                      const kelp_node *node, const kelp_tensor *const *inputs,
                                      kelp_tensor *outputs) {
    kelp_completion completion;
    kelp_dispatch_result result = KELP_DISPATCH_IMMEDIATE;
    KELP_TRY(kelp_completion_begin(&completion, match->registry));
    kelp_status *status =
        match->backend->dispatch(match->self, env, node, inputs, outputs, &completion, &result);
    return kelp_completion_end(&completion, match->registry, status, result);
}

/* ---- one run of an operator ---- */
kelp_status *kelp_opset_check_lists(const kelp_op_kernel *kernel, const kelp_op_args *args) {
    for (int32_t i = 0; (kernel->flags & KELP_OP_LISTS) == 0 && i < args->input_count; i++)
        if (args->inputs[i] != NULL && args->inputs[i]->dtype == KELP_LIST)
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "input %d of %s is a sequence, an optional or a map: expected a tensor", i,
                kelp_node_op_type(args->node));
    return NULL;
}

static kelp_status *run_kernel(const kelp_op_kernel *kernel, const kelp_op_env *env,
                               const kelp_node *node, const kelp_tensor *const *inputs,
                               kelp_tensor *outputs) {
    size_t output_count = kelp_node_output_count(node);
    kelp_tensor **wanted =
        kelp_op_env_alloc(env, (output_count ? output_count : 1) * sizeof *wanted);
    void *plan = kernel->plan_bytes ? kelp_op_env_alloc(env, kernel->plan_bytes) : NULL;
    if (wanted == NULL || (kernel->plan_bytes && plan == NULL))
        return kelp_status_oom();
    if (plan != NULL)
        memset(plan, 0, kernel->plan_bytes);
    for (size_t i = 0; i < output_count; i++)
        wanted[i] = kelp_node_output(node, i) != NULL ? &outputs[i] : NULL;
    kelp_op_args args = {.node = node,
                         .input_count = (int32_t)kelp_node_input_count(node),
                         .output_count = (int32_t)output_count,
                         .inputs = inputs,
                         .outputs = wanted,
                         .plan = plan,
                         .env = env};
    void *state = NULL;
    kelp_status *status = NULL;
    KELP_TRY(kelp_opset_check_lists(kernel, &args));
    if (kernel->create != NULL && (kernel->flags & KELP_OP_STATE_OPTIONAL) == 0)
        status = kernel->create(node, env, &state);
    if (status == NULL)
        status = kernel->reshape(state, &args);
    if (status == NULL && args.deferred)
        status = KELP_ERROR(KELP_INTERNAL,
                            "operator '%s' defers its shape although all inputs have data",
                            kelp_node_op_type(node));
    for (size_t i = 0; status == NULL && i < output_count; i++) {
        if (wanted[i] == NULL)
            continue;
        size_t bytes = kelp_tensor_bytes(wanted[i]);
        wanted[i]->data = kelp_op_env_alloc(env, bytes ? bytes : 1);
        if (wanted[i]->data == NULL)
            status = kelp_status_oom();
    }
    if (status == NULL && args.scratch_bytes > 0) {
        args.scratch = kelp_op_env_alloc(env, args.scratch_bytes);
        if (args.scratch == NULL)
            status = kelp_status_oom();
    }
    if (status == NULL)
        status = kernel->invoke(state, &args);
    if (kernel->destroy != NULL && state != NULL)
        kernel->destroy(state, kelp_op_env_allocator(env));
    return status;
}

static kelp_status *run_as_graph(const kelp_opset_match *match, const kelp_op_env *env,
                                 const kelp_node *node, const kelp_tensor *const *inputs,
                                 kelp_tensor *outputs) {
    kelp_graph *graph = NULL;
    KELP_TRY(kelp_graph_of_node(kelp_op_env_allocator(env), node, inputs, &graph));
    /* The block has the inputs that are present and the outputs that are requested, in order. */
    size_t input_count = kelp_node_input_count(node), output_count = kelp_node_output_count(node);
    const kelp_tensor **present =
        kelp_op_env_alloc(env, (input_count ? input_count : 1) * sizeof *present);
    kelp_tensor *results =
        kelp_op_env_alloc(env, (output_count ? output_count : 1) * sizeof *results);
    kelp_status *status = present == NULL || results == NULL ? kelp_status_oom() : NULL;
    if (status == NULL) {
        size_t count = 0;
        for (size_t i = 0; i < input_count; i++)
            if (inputs[i] != NULL)
                present[count++] = inputs[i];
        memset(results, 0, output_count * sizeof *results);
        status = match->backend->execute_graph(match->self, env, kelp_graph_main(graph), present,
                                               results);
    }
    if (status == NULL) {
        size_t count = 0;
        for (size_t i = 0; i < output_count; i++)
            if (kelp_node_output(node, i) != NULL)
                outputs[i] = results[count++];
    }
    kelp_graph_release(graph);
    return status;
}

static kelp_status *run_operator(const kelp_opset_match *match, const kelp_op_env *env,
                                 const kelp_node *node, const kelp_tensor *const *inputs,
                                 kelp_tensor *outputs) {
    KELP_ASSERT(match->op->kernel != NULL || match->backend->dispatch != NULL ||
                match->backend->execute_graph != NULL); /* checked at registration */
    if (match->op->kernel != NULL)
        return run_kernel(match->op->kernel, env, node, inputs, outputs);
    if (match->backend->dispatch != NULL)
        return dispatch_and_wait(match, env, node, inputs, outputs);
    return run_as_graph(match, env, node, inputs, outputs);
}

/* Runs an operator and checks its tensors. `signature` may be NULL. */
static kelp_status *run_checked(const kelp_opset_match *match, const kelp_opset_entry *entry,
                                const kelp_signature *signature, const kelp_op_env *env,
                                const kelp_node *node, const kelp_tensor *const *inputs,
                                kelp_tensor *outputs) {
    kelp_signature_facts facts;
    KELP_TRY(kelp_placed_check_inputs(entry, node, inputs, node->input_count));
    if (signature != NULL)
        KELP_TRY(kelp_typed_check_inputs(signature, node, inputs, &facts));
    KELP_TRY(run_operator(match, env, node, inputs, outputs));
    if (match->op->kernel == NULL)
        KELP_TRY(kelp_placed_own(entry, env, outputs, node->output_count));
    return signature != NULL
               ? kelp_typed_check_results(signature, node, &facts, match->backend->name, outputs)
               : NULL;
}

kelp_status *kelp_opset_dispatch(const kelp_opset_match *match, const kelp_op_env *env,
                                 const kelp_node *node, const kelp_tensor *const *inputs,
                                 kelp_tensor *outputs) {
    const kelp_opset_entry *entry = kelp_opset_match_entry(match);
    if (match->op->kernel == NULL)
        memset(outputs, 0, node->output_count * sizeof *outputs);
    return run_checked(match, entry, kelp_opset_entry_signature(entry, match->op, node), env, node,
                       inputs, outputs);
}

/* ---- an operator as a kernel ---- */
typedef struct bridge_state {
    kelp_opset_match match;
    const kelp_node *node;
    const kelp_signature *signature; /* NULL: none */
    kelp_placer placer;
} bridge_state;

kelp_status *kelp_bridge_create(const kelp_opset_match *match, const kelp_node *node,
                                uint64_t stays, kelp_allocator allocator, void **out_state) {
    bridge_state *state = NULL;
    KELP_TRY(KELP_NEW(allocator, bridge_state, &state));
    state->match = *match;
    state->node = node;
    state->placer = (kelp_placer){kelp_opset_match_entry(match), node, stays};
    state->signature = kelp_opset_entry_signature(state->placer.entry, match->op, node);
    *out_state = state;
    return NULL;
}

static void bridge_destroy(void *state, kelp_allocator allocator) {
    kelp_free(allocator, state, sizeof(bridge_state));
}

typedef struct bridge_plan {
    kelp_tensor *results; /* NULL: invoke runs the operator */
} bridge_plan;

/* Runs the operator and checks its results. */
static kelp_status *bridge_run(const bridge_state *s, const kelp_op_args *args,
                               kelp_tensor *results) {
    memset(results, 0, (size_t)args->output_count * sizeof *results);
    KELP_TRY(run_checked(&s->match, s->placer.entry, s->signature, args->env, s->node, args->inputs,
                         results));
    for (int32_t i = 0; i < args->output_count; i++)
        if (args->outputs[i] != NULL)
            KELP_TRY(kelp_bridge_check_result(s->match.backend,
                                              kelp_node_output(s->node, (size_t)i), &results[i]));
    return NULL;
}

static kelp_tensor *new_results(const kelp_op_args *args) {
    size_t count = args->output_count > 0 ? (size_t)args->output_count : 1;
    return kelp_op_env_alloc(args->env, count * sizeof(kelp_tensor));
}

/* Describes the outputs if the signature determines their types and shapes. */
static kelp_status *describe_outputs(const bridge_state *s, kelp_op_args *args, bool *out_known) {
    kelp_signature_facts facts;
    *out_known = false;
    if (s->signature == NULL || kelp_places(s->placer.entry)) /* results may be on a device */
        return NULL;
    KELP_TRY(kelp_typed_check_inputs(s->signature, s->node, args->inputs, &facts));
    *out_known = kelp_typed_describe_outputs(s->signature, s->node, &facts, args->outputs);
    return NULL;
}

static kelp_status *bridge_reshape(const void *state, kelp_op_args *args) {
    const bridge_state *s = state;
    bridge_plan *plan = args->plan;
    bool known = false;
    plan->results = NULL;
    KELP_TRY(describe_outputs(s, args, &known));
    if (known)
        return NULL;
    for (int32_t i = 0; i < args->input_count; i++) {
        const kelp_tensor *input = args->inputs[i];
        if (input != NULL && input->data == NULL && kelp_tensor_elements(input) > 0) {
            args->deferred = true;
            return NULL;
        }
    }
    plan->results = new_results(args);
    if (plan->results == NULL) {
        /* while a schedule is compiled, there is no memory that lives until invoke */
        args->deferred = true;
        return NULL;
    }
    KELP_TRY(bridge_run(s, args, plan->results));
    if (kelp_places(s->placer.entry))
        return kelp_placed_set_all(&s->placer, args, plan->results);
    for (int32_t i = 0; i < args->output_count; i++) {
        const kelp_tensor *result = &plan->results[i];
        if (args->outputs[i] != NULL)
            KELP_TRY(kelp_tensor_init(args->outputs[i], result->dtype, result->rank, result->shape,
                                      NULL));
    }
    return NULL;
}

static kelp_status *bridge_invoke(const void *state, kelp_op_args *args) {
    const bridge_state *s = state;
    const bridge_plan *plan = args->plan;
    kelp_tensor *results = plan->results;
    if (results == NULL) {
        results = new_results(args);
        if (results == NULL)
            return kelp_status_oom();
        KELP_TRY(bridge_run(s, args, results));
    }
    for (int32_t i = 0; i < args->output_count; i++)
        if (args->outputs[i] != NULL)
            KELP_TRY(kelp_placed_copy(&s->placer, args->env, (size_t)i, &results[i],
                                      args->outputs[i]->data));
    return NULL;
}

const kelp_op_kernel kelp_bridge_kernel = {.struct_size = sizeof(kelp_op_kernel),
                                           .flags = KELP_OP_IMPURE | KELP_OP_LISTS,
                                           .plan_bytes = sizeof(bridge_plan),
                                           .unaligned_inputs = 0,
                                           .create = NULL,
                                           .destroy = bridge_destroy,
                                           .reshape = bridge_reshape,
                                           .invoke = bridge_invoke};
