/* SPDX-License-Identifier: Apache-2.0 */
/* What kelp_op_env is: the things a context lends to the operators it runs. */
#ifndef KELP_RUNTIME_OPSET_ENV_H_
#define KELP_RUNTIME_OPSET_ENV_H_

#include "base/arena.h"
#include "base/thread.h"

#include <kelp/opset.h>

struct kelp_op_env {
    kelp_allocator allocator;
    kelp_pool *pool;            /* NULL: the caller's thread alone */
    kelp_stop *stop;            /* NULL: cannot be cancelled */
    kelp_arena *arena;          /* behind kelp_op_env_alloc; NULL: there is none */
    struct kelp_body *bodies;   /* of the node that is run, see body.h */
    kelp_op_pack_site pack;     /* of the node that is made */
    void (*relax)(void *userp); /* see kelp_op_env_relax; may be NULL */
    void *relax_userp;
};

/* Constants were read that are not needed soon: their pages of the model's file may leave memory,
 * which else holds them beside what was packed of them. For some MiB at a time. Any thread. */
static inline void kelp_op_env_relax(const kelp_op_env *env) {
    if (env->relax != NULL)
        env->relax(env->relax_userp);
}

#endif
