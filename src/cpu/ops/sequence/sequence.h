/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences, optionals and maps: KELP_LIST tensors (see kelp/tensor.h). All are dispatched: how
 * many elements there are, and what shapes they have, only data tell.
 *
 * What goes into a list is copied into the context's memory of this invoke, for the place it lay in
 * may be used again before the list is; what comes out is borrowed.
 */
#ifndef KELP_CPU_OPS_SEQUENCE_SEQUENCE_H_
#define KELP_CPU_OPS_SEQUENCE_SEQUENCE_H_

#include "runtime/opset/body.h"
#include "cpu/ops/kernel.h"

/* One call: as kelp_opset_backend.dispatch. */
typedef struct kelp_list_call {
    const kelp_op_env *env;
    const kelp_node *node;
    const kelp_tensor *const *inputs;
    size_t input_count; /* the node's own, without captures */
    kelp_tensor *outputs;
} kelp_list_call;

/* Runs the operator, if it is one of these; `out_found` says so. */
kelp_status *kelp_list_dispatch(const kelp_op_env *env, const kelp_node *node,
                                const kelp_tensor *const *inputs, kelp_tensor *outputs,
                                bool *out_found) KELP_MUST_USE;

#define KELP_LIST_ERROR(call, format, ...)                                                     \
    KELP_ERROR(KELP_INVALID_ARGUMENT, "node '%s' (%s): " format, kelp_node_name((call)->node), \
               kelp_node_op_type((call)->node), __VA_ARGS__)

/* ---- list.c ---- */
static inline const kelp_tensor *kelp_list_in(const kelp_list_call *call, size_t index) {
    return index < call->input_count ? call->inputs[index] : NULL;
}
static inline kelp_tensor *kelp_list_items(const kelp_tensor *list) {
    return list->data;
}
/* Memory of this invoke, for `count` items of `item_bytes`. */
kelp_status *kelp_list_alloc(const kelp_list_call *call, int64_t count, size_t item_bytes,
                             void *out) KELP_MUST_USE;
/* Describes a tensor and gives it memory. */
kelp_status *kelp_list_tensor(const kelp_list_call *call, kelp_dtype dtype, int32_t rank,
                              const int64_t *shape, kelp_tensor *out) KELP_MUST_USE;
/* An empty-handed sequence [count], optional [count,1] or map [2,1,1] by `rank`; items are zeroed.
 */
kelp_status *kelp_list_make(const kelp_list_call *call, int32_t rank, int64_t count,
                            kelp_tensor *out) KELP_MUST_USE;
/* A copy of the elements (of a list: of its descriptors). */
kelp_status *kelp_list_own(const kelp_list_call *call, const kelp_tensor *from,
                           kelp_tensor *out) KELP_MUST_USE;
/* INVALID_ARGUMENT unless the input is there and is a list of that rank. */
kelp_status *kelp_list_expect(const kelp_list_call *call, size_t index, int32_t rank,
                              const kelp_tensor **out) KELP_MUST_USE;
/* One int32 or int64 of an input, negative ones counted from `extent`; `fallback` when it is left
 * out. INVALID_ARGUMENT outside [0, limit]. */
kelp_status *kelp_list_position(const kelp_list_call *call, size_t index, int64_t extent,
                                int64_t limit, int64_t fallback, int64_t *out) KELP_MUST_USE;

/* ---- operators ---- */
typedef kelp_status *(*kelp_list_fn)(const kelp_list_call *call);
kelp_status *kelp_list_split(const kelp_list_call *call);     /* SplitToSequence */
kelp_status *kelp_list_concat(const kelp_list_call *call);    /* ConcatFromSequence */
kelp_status *kelp_list_zip_map(const kelp_list_call *call);   /* ai.onnx.ml ZipMap */
kelp_status *kelp_list_cast_map(const kelp_list_call *call);  /* ai.onnx.ml CastMap */
kelp_status *kelp_list_vectorize(const kelp_list_call *call); /* ai.onnx.ml DictVectorizer */

#endif
