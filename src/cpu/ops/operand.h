/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of a node before their shapes are known, for phase create of kernels. */
#ifndef KELP_CPU_OPS_OPERAND_H_
#define KELP_CPU_OPS_OPERAND_H_

#include "cpu/ops/kernel.h"

/* Returns true if the node has input `index`. Negative indices are omitted inputs. */
static inline bool kelp_ops_has_input(const kelp_node *node, int32_t index) {
    return index >= 0 && (size_t)index < kelp_node_input_count(node) &&
           kelp_node_input(node, (size_t)index) != NULL;
}

/* Returns the value of constant input `index`; NULL if it is omitted or not constant. */
static inline const kelp_tensor *kelp_ops_constant(const kelp_node *node, int32_t index) {
    return kelp_ops_has_input(node, index)
               ? kelp_value_constant(kelp_node_input(node, (size_t)index))
               : NULL;
}

/* Returns true for the 8-bit integers. */
static inline bool kelp_ops_is_byte(kelp_dtype dtype) {
    return dtype == KELP_U8 || dtype == KELP_I8;
}

#endif
