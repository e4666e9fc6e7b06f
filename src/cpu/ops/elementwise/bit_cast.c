/* SPDX-License-Identifier: Apache-2.0 */
/* BitCast: the same bits as another type of the same width. Source: ONNX operator specification,
 * BitCast-26. */
#include "base/assert.h"
#include "cpu/ops/kernel.h"

static kelp_status *reshape_BitCast(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    kelp_dtype to = kelp_ops_attr_dtype(args->node, "to", 0);
    if (x->dtype == KELP_STRING || to == KELP_STRING ||
        kelp_dtype_bits(x->dtype) != kelp_dtype_bits(to))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator 'BitCast' from %s to %s (type %d): expected two types of the "
                          "same width, neither of them string",
                          kelp_dtype_name(x->dtype), kelp_dtype_name(to), (int)to);
    return kelp_ops_set(args, 0, to, x->rank, x->shape);
}

static kelp_status *invoke_BitCast(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0];
    (void)state;
    KELP_ASSERT(kelp_tensor_bytes(args->outputs[0]) == kelp_tensor_bytes(x));
    kelp_ops_memcpy(args->env, args->outputs[0]->data, x->data, kelp_tensor_bytes(x));
    return NULL;
}
KELP_KERNEL(BitCast, 0, 0, 0, reshape_BitCast, invoke_BitCast);
