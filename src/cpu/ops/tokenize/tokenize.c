/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/ops/tokenize/tokenize.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "runtime/opset/env.h"

kelp_status *kelp_state_create(const kelp_node *node, const kelp_op_env *env, size_t size_bytes,
                               kelp_status *(*read)(void *state, const kelp_node *node,
                                                    kelp_allocator allocator),
                               void (*deinit)(void *state), void **out_state) {
    void *state = NULL;
    kelp_allocator allocator = kelp_op_env_allocator(env);
    KELP_TRY(kelp_alloc_zero(allocator, 1, size_bytes, &state));
    kelp_status *status = read(state, node, allocator);
    if (status != NULL) {
        kelp_state_destroy(state, allocator, size_bytes, deinit);
        return status;
    }
    *out_state = state;
    return NULL;
}

void kelp_state_destroy(void *state, kelp_allocator allocator, size_t size_bytes,
                        void (*deinit)(void *state)) {
    if (state == NULL)
        return;
    deinit(state);
    kelp_free(allocator, state, size_bytes);
}

bool kelp_results_begin(kelp_op_args *args) {
    for (int32_t i = 0; i < args->input_count; i++)
        (void)kelp_ops_defer(args, i);
    args->deferred |= kelp_op_env_is_planning(args->env);
    return !args->deferred;
}

kelp_status *kelp_results_set(kelp_op_args *args, int32_t index, kelp_dtype dtype, int32_t rank,
                              const int64_t *shape, const void *data) {
    kelp_results *results = args->plan;
    KELP_ASSERT(index < KELP_RESULTS_MAX);
    results->data[index] = data;
    return kelp_ops_set(args, index, dtype, rank, shape);
}

kelp_status *kelp_results_invoke(const void *state, kelp_op_args *args) {
    const kelp_results *results = args->plan;
    (void)state;
    for (int32_t i = 0; i < args->output_count; i++) {
        const kelp_tensor *y = kelp_ops_out(args, i);
        if (y != NULL && kelp_tensor_bytes(y) > 0)
            memcpy(y->data, results->data[i], kelp_tensor_bytes(y));
    }
    return NULL;
}

static void *run_realloc(void *userp, void *pointer, size_t old_size_bytes, size_t new_size_bytes,
                         size_t alignment) {
    KELP_ASSERT(alignment <= 64);
    if (new_size_bytes == 0)
        return NULL;
    void *block = kelp_op_env_alloc(userp, new_size_bytes);
    if (block != NULL && pointer != NULL)
        memcpy(block, pointer, KELP_MIN(old_size_bytes, new_size_bytes));
    return block;
}

kelp_allocator kelp_run_allocator(const kelp_op_env *env) {
    return (kelp_allocator){run_realloc, (void *)env};
}

kelp_status *kelp_run_array(const kelp_op_env *env, size_t count, size_t element_bytes,
                            void **out) {
    size_t bytes;
    if (!kelp_size_mul(KELP_MAX(count, 1), element_bytes, &bytes))
        return kelp_status_oom();
    *out = kelp_op_env_alloc(env, bytes);
    return *out != NULL ? NULL : kelp_status_oom();
}

kelp_str kelp_text_of(const kelp_string *element) {
    if (element->length == 0)
        return (kelp_str){"", 0};
    const char *end = memchr(element->data, '\0', element->length);
    return (kelp_str){element->data, end != NULL ? (size_t)(end - element->data) : element->length};
}

kelp_status *kelp_text_check(const kelp_op_args *args, int32_t count, kelp_dtype dtype) {
    KELP_TRY(kelp_ops_check_inputs(args, count));
    for (int32_t i = 0; i < count; i++)
        if (args->inputs[i]->dtype != dtype)
            return kelp_ops_bad_type(args, args->inputs[i]->dtype);
    return NULL;
}

kelp_str kelp_text_attr(const kelp_node *node, const char *name, const char *fallback) {
    kelp_str text;
    text.data = kelp_node_attr_string(node, name, NULL, &text.length);
    return text.data != NULL ? text : kelp_str_from(fallback);
}

kelp_status *kelp_text_required_attr(const kelp_node *node, const char *name, kelp_str *out) {
    *out = kelp_text_attr(node, name, "");
    if (out->length == 0)
        return KELP_TEXT_ERROR(node, "attribute '%s' is missing or empty", name);
    return NULL;
}

bool kelp_flag_attr(const kelp_node *node, const char *name, bool fallback) {
    return kelp_node_attr_i64(node, name, fallback) != 0;
}
