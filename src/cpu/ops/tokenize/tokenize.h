/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the operators of onnxruntime-extensions (domain ai.onnx.contrib). The sizes of their
 * results depend on the values of inputs: reshape computes the results in memory of the run, and
 * invoke copies them.
 */
#ifndef KELP_CPU_OPS_TOKENIZE_TOKENIZE_H_
#define KELP_CPU_OPS_TOKENIZE_TOKENIZE_H_

#include "cpu/ops/kernel.h"
#include "tokenizer/tokenizer.h"

#define KELP_TEXT_ERROR(node, format, ...)                                             \
    KELP_ERROR(KELP_INVALID_ARGUMENT, "node '%s' (%s): " format, kelp_node_name(node), \
               kelp_node_op_type(node), __VA_ARGS__)

/* ---- state of kernels ---- */
/* Allocates a zeroed state and reads it. If `read` fails, frees the state. */
kelp_status *kelp_state_create(const kelp_node *node, const kelp_op_env *env, size_t size_bytes,
                               kelp_status *(*read)(void *state, const kelp_node *node,
                                                    kelp_allocator allocator),
                               void (*deinit)(void *state), void **out_state) KELP_MUST_USE;
void kelp_state_destroy(void *state, kelp_allocator allocator, size_t size_bytes,
                        void (*deinit)(void *state));

/* Defines NAME_create and NAME_destroy for kernels whose state is of `type`. `read_fn` fills a
 * zeroed state; `deinit_fn` frees what a state owns, also after a failure of `read_fn`. */
#define KELP_STATE(name, type, read_fn, deinit_fn)                                            \
    static kelp_status *name##_create(const kelp_node *node, const kelp_op_env *env,          \
                                      void **out_state) {                                     \
        return kelp_state_create(node, env, sizeof(type), (read_fn), (deinit_fn), out_state); \
    }                                                                                         \
    static void name##_destroy(void *state, kelp_allocator allocator) {                       \
        kelp_state_destroy(state, allocator, sizeof(type), (deinit_fn));                      \
    }

/* Defines the kernel of an operator whose state is defined with KELP_STATE. */
#define KELP_STATE_KERNEL(op, name, plan, reshape_fn, invoke_fn)                \
    const kelp_op_kernel kelp_op_##op = {.struct_size = sizeof(kelp_op_kernel), \
                                         .flags = KELP_OP_SERIAL,               \
                                         .plan_bytes = (plan),                  \
                                         .create = name##_create,               \
                                         .destroy = name##_destroy,             \
                                         .reshape = (reshape_fn),               \
                                         .invoke = (invoke_fn)}

/* ---- results ---- */
#define KELP_RESULTS_MAX 4

/* The plan of these kernels. */
typedef struct kelp_results {
    const void *data[KELP_RESULTS_MAX]; /* of each output, in memory of the run */
} kelp_results;

/* Returns true if the values of all inputs and memory of the run are available; else sets
 * args->deferred. */
bool kelp_results_begin(kelp_op_args *args);
/* Sets type, shape and elements of output `index`, unless it is omitted. */
kelp_status *kelp_results_set(kelp_op_args *args, int32_t index, kelp_dtype dtype, int32_t rank,
                              const int64_t *shape, const void *data) KELP_MUST_USE;
/* Copies the results; `invoke` of these kernels. */
kelp_status *kelp_results_invoke(const void *state, kelp_op_args *args);

/* Returns an allocator over memory of the run; freeing has no effect. */
kelp_allocator kelp_run_allocator(const kelp_op_env *env);
/* Allocates `count` elements of memory of the run. */
kelp_status *kelp_run_array(const kelp_op_env *env, size_t count, size_t element_bytes,
                            void **out) KELP_MUST_USE;

/* Returns the text of an element, which ends at its first NUL, as in onnxruntime-extensions. */
kelp_str kelp_text_of(const kelp_string *element);
/* Returns INVALID_ARGUMENT if one of the first `count` inputs is omitted or is not of `dtype`. */
kelp_status *kelp_text_check(const kelp_op_args *args, int32_t count,
                             kelp_dtype dtype) KELP_MUST_USE;
/* Returns the attribute, or `fallback` if the node lacks it. */
kelp_str kelp_text_attr(const kelp_node *node, const char *name, const char *fallback);
/* The same for a required attribute that is not empty. */
kelp_status *kelp_text_required_attr(const kelp_node *node, const char *name,
                                     kelp_str *out) KELP_MUST_USE;
bool kelp_flag_attr(const kelp_node *node, const char *name, bool fallback);

/* Reshapes a replacement in texts: inputs are the texts, one pattern and one replacement. */
kelp_status *kelp_replace_reshape(const void *state, kelp_op_args *args) KELP_MUST_USE;

#endif
