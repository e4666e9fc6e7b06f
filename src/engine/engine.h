/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engines, contexts and recordings: the data that all providers share, and the table of the
 * provider's functions. The provider's directory has the implementation.
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
    kelp_arena arena;             /* owns the table and the following arrays */
    const kelp_engine_vtbl *vtbl; /* members that the provider's table lacks are NULL */
    void *self;                   /* the provider's engine */
    const char *provider;
    kelp_io_info *inputs, *outputs;
    size_t input_count, output_count;
    kelp_shape (*profile_shapes)[3]; /* [profile_count * input_count]; NULL: no bounds */
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
    size_t profile;           /* the selected optimization profile */
    kelp_capture *recordings; /* invalidated when the context is destroyed */
};

/* Returns FAILED_PRECONDITION for the first input that is not bound, or NULL. */
kelp_status *kelp_context_check_bound(const kelp_context *context) KELP_MUST_USE;

/* Returns INVALID_ARGUMENT, with the bounds, if the shape is outside the profile. */
kelp_status *kelp_engine_check_profile(const kelp_engine *engine, size_t profile, size_t input,
                                       const kelp_tensor *tensor) KELP_MUST_USE;

/* Warms up a new context for the shapes that the model declares, so that the first run is as fast
 * as the next. Ignores errors: invalid shapes are reported when they are bound. */
void kelp_context_warm_up(kelp_context *context);

/* Releases the provider's part of all recordings of the context. They cannot be replayed again. */
void kelp_context_drop_recordings(kelp_context *context);

/* Loads an engine image like kelp_engine_load_file. The file is mapped by `guard`, so that it may
 * be modified in place while the engine exists; NULL: it may not. */
kelp_status *kelp_engine_load_guarded(kelp_runtime *runtime, kelp_file_guard *guard,
                                      const char *path, kelp_engine **out) KELP_MUST_USE;

/* Logs that an engine was created from a "model" or loaded from a "plan", and how long it took. */
void kelp_engine_log_created(const kelp_engine *engine, const char *what, const char *label,
                             uint64_t began_ns);

/* Returns UNIMPLEMENTED: engines of this provider lack `feature`. */
kelp_status *kelp_engine_lacks(const kelp_engine *engine, const char *feature) KELP_MUST_USE;

#endif
