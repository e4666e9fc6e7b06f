/* SPDX-License-Identifier: Apache-2.0 */
/* Constant folding: evaluates nodes that do not depend on inputs, with the same kernels. */
#include "base/alloc.h"
#include "base/assert.h"
#include "cpu/exec/engine.h"
#include "graph/passes/passes.h"
#include "runtime/opset/env.h"

#include <string.h>

/* Larger results are not folded: memory costs more than the computation. */
#define FOLD_MAX_BYTES ((size_t)256 << 20)

static bool is_foldable(const kelp_node *node, const kelp_opset_match *match) {
    if (match->op->kernel == NULL || (match->op->kernel->flags & KELP_OP_IMPURE) != 0)
        return false;
    if (node->input_count == 0 && node->output_count == 0)
        return false;
    for (size_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NULL && node->inputs[i]->constant == NULL)
            return false;
    for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
        if (attr->blocks != NULL)
            return false;
    return true;
}

/* Copies a tensor to memory of the engine, with the text of its strings. */
static kelp_status *own_tensor(kelp_cpu_engine *engine, const kelp_tensor *result,
                               kelp_tensor *out) {
    size_t bytes = kelp_tensor_bytes(result), text_bytes = 0;
    int64_t elements = kelp_tensor_elements(result);
    const kelp_string *strings = result->data;
    if (result->dtype == KELP_STRING)
        for (int64_t i = 0; i < elements; i++)
            text_bytes += strings[i].length;
    *out = *result;
    KELP_TRY(kelp_cpu_engine_own(engine, bytes + text_bytes, &out->data));
    if (bytes > 0)
        memcpy(out->data, result->data, bytes);
    if (result->dtype == KELP_STRING) {
        char *text = (char *)out->data + bytes;
        kelp_string *moved = out->data;
        for (int64_t i = 0; i < elements; i++) {
            if (strings[i].length > 0)
                memcpy(text, strings[i].data, strings[i].length);
            moved[i].data = text;
            text += strings[i].length;
        }
        KELP_ASSERT(text == (char *)out->data + bytes + text_bytes);
    }
    return NULL;
}

static kelp_status *fold_node(kelp_cpu_engine *engine, const kelp_op_env *env, kelp_node *node,
                              const kelp_opset_match *match) {
    const kelp_tensor **inputs =
        KELP_ARENA_ARRAY(env->arena, node->input_count + 1, const kelp_tensor *);
    kelp_tensor *outputs = KELP_ARENA_ARRAY(env->arena, node->output_count + 1, kelp_tensor);
    if (inputs == NULL || outputs == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == NULL)
            continue;
        kelp_tensor *aligned = KELP_ARENA_NEW(env->arena, kelp_tensor);
        if (aligned == NULL)
            return kelp_status_oom();
        *aligned = *node->inputs[i]->constant;
        if (((uintptr_t)aligned->data & 15) != 0) {
            size_t bytes = kelp_tensor_bytes(aligned);
            void *copy = kelp_arena_alloc(env->arena, bytes, KELP_TENSOR_ALIGNMENT);
            if (copy == NULL)
                return kelp_status_oom();
            memcpy(copy, aligned->data, bytes);
            aligned->data = copy;
        }
        inputs[i] = aligned;
    }
    kelp_status *status = kelp_opset_dispatch(match, env, node, inputs, outputs);
    if (status != NULL)
        return KELP_ANNOTATE(status, "cannot evaluate constant node '%s' (%s) of model '%s'",
                             node->name, node->op->name, engine->graph->info.label);
    for (size_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NULL && kelp_tensor_bytes(&outputs[i]) > FOLD_MAX_BYTES)
            return NULL;
    for (size_t i = 0; i < node->output_count; i++) {
        kelp_value *value = node->outputs[i];
        if (value == NULL)
            continue;
        kelp_tensor *constant = KELP_ARENA_NEW(&engine->graph->arena, kelp_tensor);
        if (constant == NULL)
            return kelp_status_oom();
        KELP_ASSERT(value->producer == node && value->constant == NULL);
        KELP_TRY(own_tensor(engine, &outputs[i], constant));
        value->constant = constant;
        value->kind = KELP_VALUE_TENSOR;
        value->dtype = constant->dtype;
        value->rank = constant->rank;
        memcpy(value->shape, constant->shape, sizeof value->shape);
        memset(value->symbols, 0, sizeof value->symbols);
        value->producer = NULL;
    }
    node->removed = true;
    return NULL;
}

/* Returns true for a node that converts weights of 8 or 16 bits to floats. */
static bool widens_weights(const kelp_node *node) {
    if (node->op == KELP_OP(DequantizeLinear) || node->op == KELP_OP_MS(DequantizeLinear))
        return true;
    const kelp_tensor *x =
        node->input_count == 1 && node->inputs[0] != NULL ? node->inputs[0]->constant : NULL;
    return node->op == KELP_OP(Cast) && x != NULL && x->rank >= 2 &&
           (x->dtype == KELP_U8 || x->dtype == KELP_I8 || x->dtype == KELP_F16 ||
            x->dtype == KELP_BF16);
}

static kelp_status *fold_block(kelp_cpu_engine *engine, kelp_op_env *env, kelp_block *block,
                               bool keep_weights);

/* Folds the bodies of a node. An If with a known condition is replaced by its branch, which is
 * visited next. */
static kelp_status *fold_bodies(kelp_cpu_engine *engine, kelp_op_env *env, kelp_node *node,
                                bool keep_weights) {
    bool has_blocks = false;
    for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
        has_blocks = has_blocks || attr->blocks != NULL;
    if (!has_blocks || kelp_is_subgraph_node(node))
        return NULL;
    kelp_node_share_constants(node);
    kelp_block *branch = NULL;
    const kelp_value *condition = node->input_count > 0 ? node->inputs[0] : NULL;
    if (condition != NULL && kelp_cpu_engine_known_branch(node, condition->constant, &branch))
        return kelp_node_take_branch(node, branch);
    for (kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
        for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++)
            KELP_TRY(fold_block(engine, env, attr->blocks[k], keep_weights));
    return NULL;
}

static kelp_status *fold_block(kelp_cpu_engine *engine, kelp_op_env *env, kelp_block *block,
                               bool keep_weights) {
    for (size_t i = 0; i < block->node_count; i++) {
        kelp_node *node = block->nodes[i];
        kelp_opset_match match;
        if (node->removed)
            continue;
        KELP_TRY(fold_bodies(engine, env, node, keep_weights));
        if (node->removed) {
            i--; /* the branch is at the index of the node */
            continue;
        }
        if (!kelp_opset_find(engine->runtime->registry, node, &match) || !is_foldable(node, &match))
            continue;
        if (keep_weights && widens_weights(node))
            continue;
        KELP_TRY(fold_node(engine, env, node, &match));
        kelp_arena_clear(env->arena);
        if (env->arena->total_bytes > (size_t)64 << 20) { /* keep only a small arena */
            kelp_arena_deinit(env->arena);
            kelp_arena_init(env->arena, engine->allocator, 64 << 10);
        }
    }
    kelp_block_sweep(block);
    return NULL;
}

bool kelp_cpu_engine_known_branch(const kelp_node *node, const kelp_tensor *condition,
                                  kelp_block **out_branch) {
    if (node->op != KELP_OP(If) || condition == NULL || condition->data == NULL ||
        condition->dtype != KELP_BOOL || kelp_tensor_elements(condition) != 1)
        return false;
    bool taken = *(const uint8_t *)condition->data != 0;
    const kelp_attr *attr = kelp_node_find_attr(node, taken ? "then_branch" : "else_branch");
    if (attr == NULL || attr->blocks == NULL || attr->count != 1 ||
        attr->blocks[0]->output_count < node->output_count)
        return false;
    *out_branch = attr->blocks[0];
    return true;
}

kelp_status *kelp_cpu_engine_fold_constants(kelp_cpu_engine *engine, bool keep_weights) {
    kelp_arena arena;
    kelp_arena_init(&arena, engine->allocator, 64 << 10);
    kelp_op_env env = {
        .allocator = engine->allocator, .pool = engine->runtime->pool, .arena = &arena};
    kelp_status *status = fold_block(engine, &env, engine->graph->main, keep_weights);
    kelp_arena_deinit(&arena);
    return status;
}
