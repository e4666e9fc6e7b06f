/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that only move elements made to take those of less than a byte. The first of a byte lies
 * in its low bits. Source: ONNX's TensorProto, raw_data. */
#include "ops/spread.h"

static kelp_spread *frame_of(const kelp_op_args *args, size_t plan_bytes) {
    return (kelp_spread *)(void *)((char *)args->plan + (plan_bytes + 15) / 16 * 16);
}

static void spread(const kelp_tensor *from, uint8_t *to) {
    uint32_t bits = kelp_dtype_bits(from->dtype), each = 8 / bits;
    int64_t count = kelp_tensor_elements(from);
    for (int64_t i = 0; i < count; i++)
        to[i] = (uint8_t)(((const uint8_t *)from->data)[i / each] >> i % each * bits &
                          ((1u << bits) - 1));
}

static void pack(const uint8_t *from, const kelp_tensor *to) {
    uint32_t bits = kelp_dtype_bits(to->dtype), each = 8 / bits;
    int64_t count = kelp_tensor_elements(to);
    memset(to->data, 0, kelp_tensor_bytes(to));
    for (int64_t i = 0; i < count; i++)
        ((uint8_t *)to->data)[i / each] |= (uint8_t)(from[i] << i % each * bits);
}

kelp_status *kelp_spread_reshape(const void *state, kelp_op_args *args,
                                 kelp_status *(*inner)(const void *state, kelp_op_args *args),
                                 size_t plan_bytes) {
    const kelp_tensor *first = kelp_ops_in(args, 0);
    kelp_spread *s = frame_of(args, plan_bytes);
    if (first == NULL || !kelp_ops_is_packed(first->dtype) ||
        args->input_count > KELP_SPREAD_INPUTS)
        return inner(state, args);
    KELP_TRY(kelp_ops_check(args, 1));
    s->used = true;
    for (int32_t i = 0; i < args->input_count; i++) {
        const kelp_tensor *x = s->inputs[i] = args->inputs[i];
        if (x == NULL || x->dtype != first->dtype)
            continue;
        KELP_TRY(kelp_ops_scratch(args, kelp_tensor_elements(x), 1, &s->in_bytes[i]));
        KELP_TRY(kelp_tensor_init(&s->in[i], KELP_U8, x->rank, x->shape, NULL));
        s->inputs[i] = &s->in[i];
    }
    s->outputs[0] = &s->out;
    kelp_op_args bytes = *args;
    bytes.inputs = s->inputs;
    bytes.outputs = s->outputs;
    bytes.scratch_bytes = 0;
    KELP_TRY(inner(state, &bytes));
    KELP_TRY(kelp_ops_scratch(args, 1, bytes.scratch_bytes, &s->scratch));
    args->deferred = bytes.deferred;
    if (args->deferred)
        return NULL;
    KELP_TRY(kelp_ops_scratch(args, kelp_tensor_elements(&s->out), 1, &s->out_bytes));
    return kelp_ops_set(args, 0, first->dtype, s->out.rank, s->out.shape);
}

kelp_status *kelp_spread_invoke(const void *state, kelp_op_args *args,
                                kelp_status *(*inner)(const void *state, kelp_op_args *args),
                                size_t plan_bytes) {
    kelp_spread *s = frame_of(args, plan_bytes);
    if (!s->used)
        return inner(state, args);
    char *scratch = args->scratch;
    for (int32_t i = 0; i < args->input_count; i++) {
        const kelp_tensor *x = s->inputs[i] = args->inputs[i];
        if (x == NULL || x->dtype != args->inputs[0]->dtype)
            continue;
        s->in[i].data = scratch + s->in_bytes[i];
        spread(x, s->in[i].data);
        s->inputs[i] = &s->in[i];
    }
    s->out.data = scratch + s->out_bytes;
    s->outputs[0] = &s->out;
    kelp_op_args bytes = *args;
    bytes.inputs = s->inputs;
    bytes.outputs = s->outputs;
    bytes.scratch = scratch + s->scratch;
    KELP_TRY(inner(state, &bytes));
    pack(s->out.data, args->outputs[0]);
    return NULL;
}
