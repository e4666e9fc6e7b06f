/* SPDX-License-Identifier: Apache-2.0 */
/* Creation and reference counting of the runtime. */
#include "runtime/plugin.h"
#include "runtime/runtime.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"

#include <stdatomic.h>
#include <string.h>

/* Converts the logger's level from an enum to the callback's int; the values are the same. */
typedef struct log_bridge {
    kelp_log_callback fn;
    void *userp;
} log_bridge;

typedef struct runtime_box {
    kelp_runtime runtime;
    log_bridge log;
} runtime_box;

static void log_line(void *userp, kelp_log_level level, const char *file, int line,
                     const char *text, size_t length) {
    const log_bridge *bridge = userp;
    bridge->fn(bridge->userp, (int)level, file, line, text, length);
}

kelp_status *kelp_runtime_new(const kelp_runtime_options *caller_options, kelp_runtime **out) {
    kelp_runtime_options options = {0};
    if (caller_options != NULL)
        memcpy(&options, caller_options, KELP_MIN(caller_options->struct_size, sizeof options));
    if (options.allocator.realloc == NULL)
        options.allocator = kelp_allocator_system();
    if (options.threads < 0 || options.threads > 4096)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "cannot create a runtime with %d threads: expected 0 (all usable CPUs) "
                          "to 4096",
                          options.threads);
    runtime_box *box = NULL;
    KELP_TRY(KELP_NEW(options.allocator, runtime_box, &box));
    kelp_runtime *runtime = &box->runtime;
    atomic_init(&runtime->references, 1);
    runtime->allocator = options.allocator;
    runtime->threads = options.threads ? options.threads : kelp_cpu_count();
    box->log = (log_bridge){options.log, options.log_userp};
    if (options.log != NULL)
        runtime->logger = (kelp_logger){log_line, &box->log, (kelp_log_level)options.log_level, 0};
    kelp_status *status = kelp_opset_registry_create(runtime->allocator, &runtime->registry);
    if (status == NULL)
        status = kelp_file_guard_create(runtime->allocator, &runtime->logger, &runtime->files);
    if (status == NULL && runtime->threads > 1)
        status = kelp_pool_create(runtime->allocator, runtime->threads, &runtime->pool);
    if (status != NULL) {
        kelp_runtime_release(runtime);
        return status;
    }
    *out = runtime;
    return NULL;
}

kelp_runtime *kelp_runtime_retain(kelp_runtime *runtime) {
    atomic_fetch_add_explicit(&runtime->references, 1, memory_order_relaxed);
    return runtime;
}

void kelp_runtime_release(kelp_runtime *runtime) {
    if (runtime == NULL ||
        atomic_fetch_sub_explicit(&runtime->references, 1, memory_order_acq_rel) != 1)
        return;
    KELP_ASSERT(atomic_load(&runtime->references) == 0);
    kelp_pool_destroy(runtime->pool);
    kelp_opset_registry_destroy(runtime->registry);
    kelp_plugins_destroy(runtime->plugins, runtime->allocator);
    kelp_file_guard_close(runtime->files);
    kelp_free(runtime->allocator, runtime, sizeof(runtime_box));
}

kelp_status *kelp_runtime_register_opset(kelp_runtime *runtime, const kelp_opset_backend *backend,
                                         void *self) {
    return kelp_opset_register(runtime->registry, backend, self);
}

const kelp_opset_registry *kelp_runtime_opsets(const kelp_runtime *runtime) {
    return runtime->registry;
}

kelp_graph_limits kelp_runtime_graph_limits(const kelp_runtime *runtime) {
    kelp_graph_limits limits = {0};
    kelp_opset_declared declared;
    for (size_t i = 0; kelp_opset_registry_at(runtime->registry, i, &declared); i++) {
        const char *domain = declared.opset->domain;
        if (*domain == '\0' || strcmp(domain, "ai.onnx") == 0)
            limits.newest_onnx = KELP_MAX(limits.newest_onnx, (int64_t)declared.opset->version);
    }
    return limits;
}

kelp_allocator kelp_runtime_allocator(const kelp_runtime *runtime) {
    return runtime->allocator;
}

int kelp_runtime_threads(const kelp_runtime *runtime) {
    return runtime->threads;
}
