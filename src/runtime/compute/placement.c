/* SPDX-License-Identifier: Apache-2.0 */
/* Placement of tensors: decides if a model can read them in place, and copies them otherwise.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "runtime/compute/state.h"

#include <string.h>

kelp_placements kelp_placement_of(DLDevice device) {
    switch ((int)device.device_type) {
    case 0: /* not set */
    case kDLCPU:
        return KELP_PLACED_HOST;
    case kDLCUDAHost:
    case kDLROCMHost:
        return KELP_PLACED_PINNED;
    case kDLCUDAManaged:
        return KELP_PLACED_SHARED;
    case kDLCUDA:
    case kDLROCM:
        return device.device_id >= 0 && device.device_id < 16 ? KELP_PLACED_DEVICE(device.device_id)
                                                              : 0;
    default:
        return 0;
    }
}

#define HOST_READABLE (KELP_PLACED_HOST | KELP_PLACED_PINNED | KELP_PLACED_SHARED)

bool kelp_compute_on_host(const kelp_tensor *tensor) {
    return (kelp_placement_of(tensor->device) & HOST_READABLE) != 0;
}

kelp_placing kelp_compute_decide_placement(kelp_placements accepted, const kelp_tensor *tensor) {
    const kelp_placements readable = HOST_READABLE;
    kelp_placements placement = kelp_placement_of(tensor->device);
    if (accepted == 0)
        accepted = KELP_PLACED_HOST;
    bool accessible = (placement & accepted) != 0 ||
                      ((accepted & KELP_PLACED_HOST) != 0 && (placement & readable) != 0);
    if (accessible && kelp_tensor_is_compact(tensor))
        return KELP_PLACING_ZERO_COPY;
    bool whole_bytes = kelp_dtype_bits(tensor->dtype) % 8 == 0;
    if ((placement & readable) != 0 && (accepted & KELP_PLACED_HOST) != 0 && whole_bytes)
        return KELP_PLACING_ADAPT;
    return KELP_PLACING_IMPOSSIBLE;
}

/* Copies the elements from `axis` on, `size` bytes each, to compact memory. */
static void copy_axis(const kelp_tensor *from, int32_t axis, const char *at, size_t size,
                      char **inout_to) {
    KELP_ASSERT(axis <= from->rank && size > 0);
    if (axis == from->rank) {
        memcpy(*inout_to, at, size);
        *inout_to += size;
        return;
    }
    for (int64_t i = 0; i < from->shape[axis]; i++)
        copy_axis(from, axis + 1, at + i * from->strides[axis] * (int64_t)size, size, inout_to);
}

kelp_status *kelp_compute_adapt(kelp_compute_model *model, const kelp_infer_item *item,
                                kelp_infer_item *out) {
    const kelp_compute_metadata *metadata = model->vtbl->metadata(model);
    kelp_arena *staging = &model->state->staging;
    kelp_tensor *inputs = KELP_ARENA_ARRAY(staging, metadata->input_count, kelp_tensor);
    if (inputs == NULL)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "no memory for the descriptions of %zu inputs",
                          metadata->input_count);
    for (size_t i = 0; i < metadata->input_count; i++) {
        const kelp_tensor *from = &item->inputs[i];
        inputs[i] = *from;
        if (kelp_compute_decide_placement(metadata->input_placements, from) != KELP_PLACING_ADAPT)
            continue;
        char *to = kelp_arena_alloc(staging, kelp_tensor_bytes(from), 64);
        if (to == NULL)
            return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "no memory for a copy of input '%s'",
                              metadata->inputs[i].name);
        KELP_TRY(kelp_tensor_init(&inputs[i], from->dtype, from->rank, from->shape, to));
        copy_axis(from, 0, from->data, kelp_dtype_bits(from->dtype) / 8, &to);
        model->state->copies.inputs++;
        model->state->copies.input_bytes += kelp_tensor_bytes(from);
    }
    *out = *item;
    out->inputs = inputs;
    return NULL;
}
