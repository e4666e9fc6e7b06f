/* SPDX-License-Identifier: Apache-2.0 */
/* kelp::Assert, the Assertion layer of networks: copies input 0 if all elements of input 1 are
 * true, and fails with the attribute "message" otherwise. */
#include "base/assert.h"
#include "cpu/ops/kernel.h"

#include <string.h>

static kelp_status *reshape_assert(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    if (args->inputs[1]->dtype != KELP_BOOL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the condition has the wrong type: expected bool, found %s",
                          kelp_dtype_name(args->inputs[1]->dtype));
    return kelp_ops_set_like(args, 0, args->inputs[0]);
}

static kelp_status *invoke_assert(const void *state, kelp_op_args *args) {
    const uint8_t *condition = args->inputs[1]->data;
    (void)state;
    KELP_ASSERT(args->inputs[1]->dtype == KELP_BOOL);
    for (int64_t i = 0; i < kelp_tensor_elements(args->inputs[1]); i++)
        if (condition[i] == 0)
            return KELP_ERROR(KELP_FAILED_PRECONDITION, "the assertion failed: %s",
                              kelp_node_attr_string(args->node, "message", "", NULL));
    if (args->outputs[0]->data != args->inputs[0]->data)
        memcpy(args->outputs[0]->data, args->inputs[0]->data, kelp_tensor_bytes(args->inputs[0]));
    return NULL;
}
KELP_KERNEL(Assert, KELP_OP_INPLACE_0 | KELP_OP_SERIAL, 0, 0, reshape_assert, invoke_assert);
