/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences, optionals and maps: KELP_LIST tensors (see kelp/tensor.h). All operators are
 * dispatched, because the number and the shapes of elements depend on data.
 *
 * An element that is added to a list is copied to memory of the run, because the memory of the
 * input may be reused before the list is read. An element that is read from a list is borrowed.
 */
#ifndef KELP_CPU_OPS_SEQUENCE_SEQUENCE_H_
#define KELP_CPU_OPS_SEQUENCE_SEQUENCE_H_

#include "runtime/opset/body.h"
#include "cpu/ops/kernel.h"

/* The arguments of one dispatch. */
typedef struct kelp_list_call {
    const kelp_op_env *env;
    const kelp_node *node;
    const kelp_tensor *const *inputs;
    size_t input_count; /* of the node, without captures */
    kelp_tensor *outputs;
} kelp_list_call;

/* Runs the operator if it is an operator on lists; sets *out_found to false otherwise. */
kelp_status *kelp_list_dispatch(const kelp_op_env *env, const kelp_node *node,
                                const kelp_tensor *const *inputs, kelp_tensor *outputs,
                                bool *out_found) KELP_MUST_USE;

/* Creates INVALID_ARGUMENT with the name and the operator of the node. */
#define KELP_LIST_ERROR(call, format, ...)                                                     \
    KELP_ERROR(KELP_INVALID_ARGUMENT, "node '%s' (%s): " format, kelp_node_name((call)->node), \
               kelp_node_op_type((call)->node), __VA_ARGS__)

/* ---- list.c ---- */
/* Returns input `index`; NULL if it is missing. */
static inline const kelp_tensor *kelp_list_in(const kelp_list_call *call, size_t index) {
    return index < call->input_count ? call->inputs[index] : NULL;
}
/* Returns the elements of a list. */
static inline kelp_tensor *kelp_list_items(const kelp_tensor *list) {
    return list->data;
}
/* Allocates memory of the run for `count` items of `item_bytes`. `out` is a pointer to a pointer.
 */
kelp_status *kelp_list_alloc(const kelp_list_call *call, int64_t count, size_t item_bytes,
                             void *out) KELP_MUST_USE;
/* Creates a tensor in memory of the run, without a value. */
kelp_status *kelp_list_tensor(const kelp_list_call *call, kelp_dtype dtype, int32_t rank,
                              const int64_t *shape, kelp_tensor *out) KELP_MUST_USE;
/* Creates a sequence [count], optional [count,1] or map [2,1,1], by `rank`, of zeroed items. */
kelp_status *kelp_list_make(const kelp_list_call *call, int32_t rank, int64_t count,
                            kelp_tensor *out) KELP_MUST_USE;
/* Copies a tensor; of a list, its descriptors. */
kelp_status *kelp_list_own(const kelp_list_call *call, const kelp_tensor *from,
                           kelp_tensor *out) KELP_MUST_USE;
/* Returns INVALID_ARGUMENT unless the input is a list of that rank. */
kelp_status *kelp_list_expect(const kelp_list_call *call, size_t index, int32_t rank,
                              const kelp_tensor **out) KELP_MUST_USE;
/* Reads a position from an input of one int32 or int64; `fallback` if the input is missing.
 * Negative positions are relative to `length`. Returns INVALID_ARGUMENT outside [0, limit]. */
kelp_status *kelp_list_position(const kelp_list_call *call, size_t index, int64_t length,
                                int64_t limit, int64_t fallback, int64_t *out) KELP_MUST_USE;

/* ---- operators ---- */
/* The implementation of one operator; sets the outputs. */
typedef kelp_status *(*kelp_list_fn)(const kelp_list_call *call);
/* Implements SplitToSequence, ConcatFromSequence, and ZipMap, CastMap, DictVectorizer of
 * ai.onnx.ml.
 */
kelp_status *kelp_list_split(const kelp_list_call *call);
kelp_status *kelp_list_concat(const kelp_list_call *call);
kelp_status *kelp_list_zip_map(const kelp_list_call *call);
kelp_status *kelp_list_cast_map(const kelp_list_call *call);
kelp_status *kelp_list_vectorize(const kelp_list_call *call);

#endif
