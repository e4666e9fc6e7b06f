/* SPDX-License-Identifier: Apache-2.0 */
/* The definition of kelp_op_env: resources of a context for the operators that it runs. */
#ifndef KELP_RUNTIME_OPSET_ENV_H_
#define KELP_RUNTIME_OPSET_ENV_H_

#include "base/arena.h"
#include "base/sync/thread.h"

#include <kelp/opset.h>

struct kelp_op_env {
    kelp_allocator allocator;
    kelp_pool *pool;            /* NULL: the calling thread only */
    kelp_stop *stop;            /* NULL: cannot be cancelled */
    kelp_arena *arena;          /* of kelp_op_env_alloc; NULL: there is none */
    struct kelp_body *bodies;   /* bodies of the node, see body.h */
    kelp_op_pack_site pack;     /* while its kernel is created: the node */
    void (*relax)(void *userp); /* see kelp_op_env_relax; may be NULL */
    void *relax_userp;
};

/* Releases pages of the model's file: constants were read that are not needed soon, and would stay
 * in memory besides the packed ones. Call it for some MiB at a time. Any thread. */
static inline void kelp_op_env_relax(const kelp_op_env *env) {
    if (env->relax != NULL)
        env->relax(env->relax_userp);
}

#endif
