/* SPDX-License-Identifier: Apache-2.0 */
/* Environments for hosts that run single operators without an engine. */
#include "base/alloc.h"
#include "runtime/opset/placed.h"
#include "runtime/runtime.h"

typedef struct host_env {
    kelp_op_env env; /* first: callers see this */
    kelp_arena arena;
    kelp_placed *placed;
    kelp_runtime *runtime;
} host_env;

kelp_status *kelp_op_env_create(kelp_runtime *runtime, kelp_op_env **out) {
    host_env *host = NULL;
    KELP_TRY(KELP_NEW(runtime->allocator, host_env, &host));
    kelp_arena_init(&host->arena, runtime->allocator, 0);
    host->runtime = kelp_runtime_retain(runtime);
    host->env = (kelp_op_env){.allocator = runtime->allocator,
                              .pool = runtime->pool,
                              .arena = &host->arena,
                              .placed = &host->placed};
    *out = &host->env;
    return NULL;
}

void kelp_op_env_reset(kelp_op_env *env) {
    host_env *host = (host_env *)env;
    kelp_placed_release(&host->placed, NULL);
    kelp_arena_clear(&host->arena);
}

void kelp_op_env_destroy(kelp_op_env *env) {
    host_env *host = (host_env *)env;
    if (host == NULL)
        return;
    kelp_runtime *runtime = host->runtime;
    kelp_placed_release(&host->placed, NULL);
    kelp_arena_deinit(&host->arena);
    kelp_free(runtime->allocator, host, sizeof *host);
    kelp_runtime_release(runtime);
}
