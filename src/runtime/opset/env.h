/* SPDX-License-Identifier: Apache-2.0 */
/* The definition of kelp_op_env: resources of a context for the operators that it runs. */
#ifndef KELP_RUNTIME_OPSET_ENV_H_
#define KELP_RUNTIME_OPSET_ENV_H_

#include "base/arena.h"
#include "base/sync/thread.h"

#include <kelp/opset.h>

struct kelp_op_env {
    kelp_allocator allocator;
    kelp_pool *pool;             /* NULL: the calling thread only */
    kelp_stop *stop;             /* NULL: cannot be cancelled */
    kelp_arena *arena;           /* for kelp_op_env_alloc; NULL: it returns NULL */
    struct kelp_placed **placed; /* tensors on devices of the run, see placed.h; may be NULL */
    struct kelp_body *bodies;    /* bodies of the node, see body.h */
    kelp_op_pack_site pack;      /* the node whose kernel is being created */
    /* see kelp_op_env_release_pages; may be NULL */
    void (*release_pages)(void *userp);
    void *release_userp;
};

/* Releases pages of the model's file. Call it after packing some MiB of constants: their unpacked
 * pages would otherwise stay in memory. Thread-safe. */
static inline void kelp_op_env_release_pages(const kelp_op_env *env) {
    if (env->release_pages != NULL)
        env->release_pages(env->release_userp);
}

/* Returns true while a schedule is compiled: kelp_op_env_alloc has no memory that lives until
 * invoke. */
static inline bool kelp_op_env_is_planning(const kelp_op_env *env) {
    return env->arena == NULL;
}

#endif
