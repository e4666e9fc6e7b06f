/* SPDX-License-Identifier: Apache-2.0 */
/* What operators see of the context that runs them. */
#include "opset/env.h"

#include "base/alloc.h"

#include <stdatomic.h>

void kelp_op_parallel(const kelp_op_env *env, int64_t count, int64_t grain,
                      void (*fn)(void *userp, int64_t begin, int64_t end, int worker),
                      void *userp) {
    if (count <= 0)
        return;
    if (env->pool == NULL || count <= grain)
        fn(userp, 0, count, 0);
    else
        kelp_pool_run(env->pool, count, grain, fn, userp);
}

int kelp_op_env_threads(const kelp_op_env *env) {
    return kelp_pool_threads(env->pool);
}

bool kelp_op_env_cancelled(const kelp_op_env *env) {
    return env->cancel != NULL && atomic_load_explicit(env->cancel, memory_order_relaxed);
}

kelp_allocator kelp_op_env_allocator(const kelp_op_env *env) {
    return env->allocator;
}

void *kelp_op_env_alloc(const kelp_op_env *env, size_t size_bytes) {
    if (env->arena == NULL)
        return NULL;
    return kelp_arena_alloc(env->arena, size_bytes, KELP_TENSOR_ALIGNMENT);
}
