/* SPDX-License-Identifier: Apache-2.0 */
/* What kelp_op_env is: the things a context lends to the operators it runs. */
#ifndef KELP_OPSET_ENV_H_
#define KELP_OPSET_ENV_H_

#include "base/arena.h"
#include "base/thread.h"

#include <kelp/opset.h>

/* Who may end an invoke. */
typedef struct kelp_op_stop {
    _Atomic bool cancel;            /* set from any thread */
    bool (*interrupt)(void *userp); /* asked whether to stop; NULL: nobody */
    void *interrupt_userp;
} kelp_op_stop;

struct kelp_op_env {
    kelp_allocator allocator;
    kelp_pool *pool;          /* NULL: the caller's thread alone */
    const kelp_op_stop *stop; /* NULL: cannot be cancelled */
    kelp_arena *arena;        /* behind kelp_op_env_alloc; NULL: there is none */
    struct kelp_body *bodies; /* of the node that is run, see body.h */
    kelp_op_pack_site pack;   /* of the node that is made */
};

#endif
