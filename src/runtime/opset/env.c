/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of kelp_op_env for operators. */
#include "runtime/opset/env.h"

#include "base/alloc.h"
#include "runtime/opset/body.h"

void kelp_op_parallel(const kelp_op_env *env, int64_t count, int64_t grain,
                      void (*fn)(void *userp, int64_t begin, int64_t end, int worker),
                      void *userp) {
    kelp_pool_run_until(env->pool, count, grain, fn, userp, env->stop);
}

int kelp_op_env_threads(const kelp_op_env *env) {
    return kelp_pool_threads(env->pool);
}

bool kelp_op_env_cancelled(const kelp_op_env *env) {
    return kelp_stop_asked(env->stop);
}

kelp_allocator kelp_op_env_allocator(const kelp_op_env *env) {
    return env->allocator;
}

void *kelp_op_env_alloc(const kelp_op_env *env, size_t size_bytes) {
    if (env->arena == NULL)
        return NULL;
    return kelp_arena_alloc(env->arena, size_bytes, KELP_TENSOR_ALIGNMENT);
}

/* ---- bodies ---- */
kelp_status *kelp_env_body(const kelp_op_env *env, const kelp_node *node, const char *attribute,
                           kelp_body **out) {
    const kelp_block *block = kelp_node_attr_block(node, attribute);
    if (block == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "node '%s' (%s): graph '%s' is missing",
                          kelp_node_name(node), kelp_node_op_type(node), attribute);
    for (*out = env->bodies; *out != NULL; *out = (*out)->next)
        if ((*out)->block == block)
            return NULL;
    return KELP_ERROR(KELP_UNIMPLEMENTED,
                      "node '%s' (%s): graph '%s' can run only inside an engine",
                      kelp_node_name(node), kelp_node_op_type(node), attribute);
}

size_t kelp_node_own_inputs(const kelp_node *node) {
    return (size_t)kelp_node_attr_i64(node, "kelp.captures", (int64_t)kelp_node_input_count(node));
}
