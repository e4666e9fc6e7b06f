/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engines, contexts and recordings: data that is common to all providers, and the table of the
 * provider's functions. What computes is in the provider's directory.
 */
#ifndef KELP_ENGINE_ENGINE_H_
#define KELP_ENGINE_ENGINE_H_

#include "base/arena.h"
#include "runtime/runtime.h"

#include <kelp/engine_provider.h>

struct kelp_engine {
    _Atomic uint32_t references;
    kelp_runtime *runtime;
    kelp_allocator allocator;
    kelp_arena arena;             /* holds the table and the arrays below */
    const kelp_engine_vtbl *vtbl; /* complete: what the provider's table lacks is NULL */
    void *self;                   /* the provider's engine, first argument of the table's calls */
    const char *provider;
    kelp_io_info *inputs, *outputs;
    size_t input_count, output_count;
    kelp_shape (*profile_shapes)[3]; /* [profile_count * input_count]; NULL: nothing is bounded */
    size_t profile_count;
    const char **refittable;
    size_t refittable_count;
};

struct kelp_context {
    kelp_engine *engine;
    const kelp_engine_vtbl *vtbl; /* the engine's */
    void *self;                   /* the provider's context */
    kelp_tensor *outputs;         /* the provider's array, or own_outputs */
    kelp_tensor *own_outputs;
    bool *bound;              /* by input */
    size_t unbound_count;     /* inputs that are not bound */
    size_t profile;           /* the optimization profile that inputs are checked against */
    kelp_capture *recordings; /* they lose their context when it is destroyed */
};

/* Returns FAILED_PRECONDITION for the first input that is not bound, NULL when all are. */
kelp_status *kelp_context_check_bound(const kelp_context *context) KELP_MUST_USE;

/* Returns INVALID_ARGUMENT with the bounds for a shape outside of the profile's. */
kelp_status *kelp_engine_check_profile(const kelp_engine *engine, size_t profile, size_t input,
                                       const kelp_tensor *tensor) KELP_MUST_USE;

/* Prepares a new context for the shapes that the model declares, so that the first run takes no
 * longer than the next. Best effort: shapes that cannot be prepared fail when they are bound. */
void kelp_context_warm_up(kelp_context *context);

/* Releases the provider's part of every recording of the context, which can be replayed no more. */
void kelp_context_drop_recordings(kelp_context *context);

/* Logs that an engine was created from a "model" or loaded from a "plan", and how long it took. */
void kelp_engine_log_created(const kelp_engine *engine, const char *what, const char *label,
                             uint64_t began_ns);

/* Returns UNIMPLEMENTED: engines of this provider have no `feature`. */
kelp_status *kelp_engine_lacks(const kelp_engine *engine, const char *feature) KELP_MUST_USE;

#endif
