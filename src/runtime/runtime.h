/* SPDX-License-Identifier: Apache-2.0 */
/* The root object: what engines and models inherit. */
#ifndef KELP_RUNTIME_RUNTIME_H_
#define KELP_RUNTIME_RUNTIME_H_

#include "base/log.h"
#include "base/sync/thread.h"

#include <kelp/engine.h>

struct kelp_runtime {
    _Atomic uint32_t references;
    kelp_allocator allocator;
    kelp_pool *pool; /* NULL with one thread */
    int threads;
    kelp_logger logger;
    kelp_opset_registry *registry; /* of providers, see runtime/provider.h */
};

/* Creates a runtime without providers; the library root registers those that are built in. */
kelp_status *kelp_runtime_new(const kelp_runtime_options *options,
                              kelp_runtime **out) KELP_MUST_USE;

#endif
