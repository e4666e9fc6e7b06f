/* SPDX-License-Identifier: Apache-2.0 */
/* The root object: what engines and compute backends inherit. */
#ifndef KELP_RUNTIME_RUNTIME_H_
#define KELP_RUNTIME_RUNTIME_H_

#include "base/log.h"
#include "base/thread.h"

#include <kelp/engine.h>

struct kelp_compute_backend;
struct kelp_engine_provider;

struct kelp_runtime {
    _Atomic uint32_t references;
    kelp_allocator allocator;
    kelp_pool *pool; /* NULL with one thread */
    int threads;
    kelp_logger logger;
    kelp_opset_registry *opsets;
    const struct kelp_compute_backend **compute; /* table of src/compute */
    size_t compute_count, compute_capacity;
    const struct kelp_engine_provider **providers; /* table of src/builder */
    size_t provider_count, provider_capacity;
};

/* A runtime without backends; the library root adds those that are built in. */
kelp_status *kelp_runtime_new(const kelp_runtime_options *options,
                              kelp_runtime **out) KELP_MUST_USE;

#endif
