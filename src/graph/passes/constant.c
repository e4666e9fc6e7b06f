/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and creates constants for passes. */
#include "base/assert.h"
#include "graph/passes/passes.h"

#include <string.h>

double kelp_pass_f32_at(const kelp_tensor *tensor, int64_t index) {
    KELP_ASSERT(tensor->dtype == KELP_F32);
    KELP_ASSERT(index >= 0 && index < kelp_tensor_elements(tensor));
    float value; /* weights may be unaligned */
    memcpy(&value, (const char *)tensor->data + (size_t)index * sizeof value, sizeof value);
    return (double)value;
}

kelp_status *kelp_pass_new_f32(kelp_block *block, const char *name, int32_t rank,
                               const int64_t *shape, kelp_value **out, float **out_data) {
    kelp_arena *arena = &block->graph->arena;
    kelp_tensor *tensor = KELP_ARENA_NEW(arena, kelp_tensor);
    if (tensor == NULL)
        return kelp_status_oom();
    KELP_TRY(kelp_tensor_init(tensor, KELP_F32, rank, shape, NULL));
    KELP_TRY(kelp_block_add_value(block, name, out));
    tensor->data = *out_data = kelp_arena_alloc(arena, kelp_tensor_bytes(tensor), 64);
    if (tensor->data == NULL)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "out of memory for weights '%s'", name);
    (*out)->constant = tensor;
    (*out)->kind = KELP_VALUE_TENSOR;
    (*out)->dtype = KELP_F32;
    (*out)->rank = rank;
    (*out)->is_own = true;
    memcpy((*out)->shape, tensor->shape, sizeof tensor->shape);
    return NULL;
}

kelp_status *kelp_pass_own_f32(kelp_block *block, kelp_value *value, kelp_value **out,
                               float **out_data) {
    const kelp_tensor *old = value->constant;
    KELP_ASSERT(old != NULL && old->dtype == KELP_F32);
    if (value->is_own && value->block == block && kelp_used_once(value)) {
        *out = value;
        *out_data = old->data;
        return NULL;
    }
    KELP_TRY(kelp_pass_new_f32(block, value->name, old->rank, old->shape, out, out_data));
    if (kelp_tensor_bytes(old) > 0)
        memcpy(*out_data, old->data, kelp_tensor_bytes(old));
    return NULL;
}

bool kelp_match_channels(const kelp_value *value, int32_t rank, int64_t channels) {
    if (value == NULL || value->constant == NULL || value->constant->dtype != KELP_F32 ||
        value->constant->rank > rank)
        return false;
    const kelp_tensor *tensor = value->constant;
    for (int32_t axis = 0; axis < tensor->rank; axis++) {
        bool channel_axis = axis + rank - tensor->rank == 1;
        if (tensor->shape[axis] != 1 && !(channel_axis && tensor->shape[axis] == channels))
            return false;
    }
    return true;
}

double kelp_match_channel_at(const kelp_tensor *tensor, int64_t channel) {
    return kelp_pass_f32_at(tensor, kelp_tensor_elements(tensor) == 1 ? 0 : channel);
}
