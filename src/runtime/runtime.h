/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime: allocator, thread pool, logger and providers that engines and models share. */
#ifndef KELP_RUNTIME_RUNTIME_H_
#define KELP_RUNTIME_RUNTIME_H_

#include "base/file_guard.h"
#include "base/log.h"
#include "base/sync/thread.h"

#include <kelp/engine.h>

struct kelp_runtime {
    _Atomic uint32_t references;
    kelp_allocator allocator;
    kelp_pool *pool; /* NULL with one thread */
    int threads;
    kelp_logger logger;
    kelp_file_guard *files;             /* maps the files of artifacts with keep_contents */
    kelp_opset_registry *registry;      /* providers, see runtime/provider.h */
    struct kelp_loaded_plugin *plugins; /* see runtime/plugin.h; the newest first */
};

/* Creates a runtime without providers. src/root registers the built-in ones. */
kelp_status *kelp_runtime_new(const kelp_runtime_options *options,
                              kelp_runtime **out) KELP_MUST_USE;

#endif
