/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folds operators that scale and shift the output channels of a convolution with constant weights
 * into its weights and bias: BatchNormalization in inference mode, and Mul or Add of one constant
 * per channel. The new weights belong to the graph. Sums are computed in double precision.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "graph/passes/passes.h"

#include <math.h>
#include <string.h>

/* y[c] = scale[c] · x[c] + shift[c] */
typedef struct affine {
    double *scale, *shift;
    int64_t channels;
} affine;

static bool is_f32(const kelp_value *value) {
    return value != NULL && value->constant != NULL && value->constant->dtype == KELP_F32;
}

static bool take_batch_norm(const kelp_node *node, affine *out) {
    int64_t version = node->opset_version;
    if (node->input_count < 5 || kelp_node_attr_i64(node, "training_mode", 0) != 0 ||
        (version < 7 && kelp_node_attr_i64(node, "is_test", 0) == 0) ||
        (version < 9 && kelp_node_attr_i64(node, "spatial", 1) == 0))
        return false;
    for (size_t i = 1; i < node->output_count; i++) {
        if (node->outputs[i] != NULL && node->outputs[i]->use_count > 0)
            return false;
    }
    for (size_t i = 1; i < 5; i++) {
        if (!is_f32(node->inputs[i]) ||
            kelp_tensor_elements(node->inputs[i]->constant) != out->channels)
            return false;
    }
    double epsilon = (double)kelp_node_attr_f32(node, "epsilon", 1e-5f);
    for (int64_t c = 0; c < out->channels; c++) {
        double scale = kelp_pass_f32_at(node->inputs[1]->constant, c) /
                       sqrt(kelp_pass_f32_at(node->inputs[4]->constant, c) + epsilon);
        out->scale[c] = scale;
        out->shift[c] = kelp_pass_f32_at(node->inputs[2]->constant, c) -
                        scale * kelp_pass_f32_at(node->inputs[3]->constant, c);
    }
    return true;
}

/* Mul or Add, in a version that broadcasts as NumPy does. */
static bool take_binary(const kelp_node *node, const kelp_value *x, int32_t rank, affine *out) {
    bool multiplies = node->op == KELP_OP(Mul);
    const kelp_value *other = node->inputs[0] == x ? node->inputs[1] : node->inputs[0];
    if (node->opset_version < 7 || !kelp_match_channels(other, rank, out->channels))
        return false;
    for (int64_t c = 0; c < out->channels; c++) {
        double value = kelp_match_channel_at(other->constant, c);
        out->scale[c] = multiplies ? value : 1;
        out->shift[c] = multiplies ? 0 : value;
    }
    return true;
}

static bool take(const kelp_node *node, const kelp_value *x, int32_t rank, affine *out) {
    if (node->input_count < 2)
        return false;
    if (node->op == KELP_OP(BatchNormalization))
        return node->inputs[0] == x && take_batch_norm(node, out);
    if (node->op == KELP_OP(Mul) || node->op == KELP_OP(Add))
        return node->input_count == 2 && take_binary(node, x, rank, out);
    return false;
}

/* Computes the weights and bias of a convolution followed by `change`. */
static kelp_status *apply(kelp_block *block, kelp_node *conv, const affine *change,
                          kelp_value **out_weights, kelp_value **out_bias) {
    const kelp_tensor *old = conv->inputs[1]->constant;
    const kelp_tensor *old_bias =
        conv->input_count > 2 && conv->inputs[2] != NULL ? conv->inputs[2]->constant : NULL;
    KELP_ASSERT(old != NULL && old->shape[0] == change->channels);
    int64_t each = change->channels > 0 ? kelp_tensor_elements(old) / change->channels : 0;
    float *weights, *bias;
    KELP_TRY(kelp_pass_own_f32(block, conv->inputs[1], out_weights, &weights));
    KELP_TRY(
        kelp_pass_new_f32(block, conv->outputs[0]->name, 1, &change->channels, out_bias, &bias));
    for (int64_t c = 0; c < change->channels; c++) {
        for (int64_t i = 0; i < each; i++)
            weights[c * each + i] = (float)((double)weights[c * each + i] * change->scale[c]);
        double before = old_bias != NULL ? kelp_pass_f32_at(old_bias, c) : 0;
        bias[c] = (float)(before * change->scale[c] + change->shift[c]);
    }
    return NULL;
}

/* Returns the next node if it can be folded, or NULL. */
static kelp_node *follower(kelp_node *conv, affine *change) {
    if (conv->removed || conv->output_count == 0 || conv->input_count < 2 ||
        kelp_match_producer(conv->outputs[0], KELP_OP(Conv)) != conv || !is_f32(conv->inputs[1]) ||
        (conv->input_count > 2 && conv->inputs[2] != NULL && !is_f32(conv->inputs[2])) ||
        !kelp_used_once(conv->outputs[0]))
        return NULL;
    kelp_node *next = kelp_value_only_user(conv->outputs[0]);
    const kelp_tensor *weights = conv->inputs[1]->constant;
    if (next == NULL || weights->rank < 3)
        return NULL;
    if (conv->input_count > 2 && conv->inputs[2] != NULL &&
        kelp_tensor_elements(conv->inputs[2]->constant) != weights->shape[0])
        return NULL; /* the kernel reports the error */
    change->channels = weights->shape[0];
    return next;
}

static kelp_status *fold_next(kelp_block *block, kelp_node *conv, kelp_node *next,
                              const affine *change) {
    kelp_node *fused = NULL;
    kelp_value *weights = NULL, *bias = NULL;
    KELP_TRY(apply(block, conv, change, &weights, &bias));
    kelp_value *inputs[3] = {conv->inputs[0], weights, bias};
    KELP_TRY(kelp_block_insert_node(block, next, KELP_OP(Conv), conv->opset_version, conv->name,
                                    inputs, 3, next->outputs, 1, conv->attributes, &fused));
    conv->removed = true;
    next->removed = true;
    return NULL;
}

kelp_status *kelp_pass_affine(kelp_block *block) {
    kelp_arena scratch;
    kelp_status *status = NULL;
    kelp_arena_init(&scratch, block->graph->allocator, 0);
    for (size_t i = 0; status == NULL && i < block->node_count; i++) {
        affine change = {0};
        kelp_node *next = follower(block->nodes[i], &change);
        if (next == NULL)
            continue;
        kelp_arena_clear(&scratch);
        change.scale = KELP_ARENA_ARRAY(&scratch, (size_t)change.channels, double);
        change.shift = KELP_ARENA_ARRAY(&scratch, (size_t)change.channels, double);
        if (change.scale == NULL || change.shift == NULL) {
            status = KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "out of memory while folding node '%s'",
                                next->name);
            break;
        }
        if (!take(next, block->nodes[i]->outputs[0], block->nodes[i]->inputs[1]->constant->rank,
                  &change))
            continue;
        status = fold_next(block, block->nodes[i], next, &change);
        if (status == NULL) {
            kelp_block_sweep(block);
            kelp_block_count_uses(block);
            i--; /* the next node may be folded into the new one */
        }
    }
    kelp_arena_deinit(&scratch);
    return status;
}
