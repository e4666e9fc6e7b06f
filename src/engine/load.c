/* SPDX-License-Identifier: Apache-2.0 */
/* Loading of engine images: selects the provider that recognizes the bytes, and maps files. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/domain.h"
#include "base/fs.h"
#include "engine/engine.h"

#include <kelp/engine_provider.h>

#include <unistd.h>

static const kelp_engine_provider *reader_of(const kelp_runtime *runtime, const void *data,
                                             size_t size_bytes) {
    for (size_t i = 0; i < kelp_engine_provider_count(runtime); i++) {
        const kelp_engine_provider *provider = kelp_engine_provider_at(runtime, i);
        if (provider->recognises(provider->self, data, size_bytes))
            return provider;
    }
    return NULL;
}

bool kelp_plan_is_known(const kelp_runtime *runtime, const void *data, size_t size_bytes) {
    return reader_of(runtime, data, size_bytes) != NULL;
}

bool kelp_plan_is_file(const kelp_runtime *runtime, const char *path) {
    char head[64];
    int file = -1;
    size_t size_bytes = 0;
    kelp_status *status = kelp_fs_open(path, &file, &size_bytes); /* rejects a pipe */
    ssize_t length = status == NULL ? read(file, head, sizeof head) : 0;
    if (status == NULL)
        close(file);
    kelp_status_free(status);
    return length > 0 && kelp_plan_is_known(runtime, head, (size_t)length);
}

static kelp_status *in_domain(kelp_status *status) {
    return kelp_in_domain(status, KELP_DOMAIN_RUNTIME);
}

kelp_status *kelp_engine_load(kelp_runtime *runtime, const void *data, size_t size_bytes,
                              const char *label, void (*release)(void *userp), void *userp,
                              kelp_engine **out) {
    const kelp_engine_provider *provider = reader_of(runtime, data, size_bytes);
    const char *name = label != NULL ? label : "plan";
    uint64_t began_ns = kelp_now_ns();
    if (provider != NULL) {
        KELP_TRY(in_domain(
            provider->load(provider->self, runtime, data, size_bytes, name, release, userp, out)));
        kelp_engine_log_created(*out, "plan", name, began_ns);
        return NULL;
    }
    if (release != NULL)
        release(userp);
    return in_domain(
        KELP_ERROR(KELP_INVALID_ARGUMENT,
                   "%s: no engine provider recognizes this plan (%zu providers, %zu bytes)", name,
                   kelp_engine_provider_count(runtime), size_bytes));
}

typedef struct mapped_plan {
    kelp_allocator allocator;
    kelp_mapping mapping;
} mapped_plan;

static void unmap_plan(void *userp) {
    mapped_plan *plan = userp;
    kelp_fs_unmap(&plan->mapping);
    kelp_free(plan->allocator, plan, sizeof *plan);
}

kelp_status *kelp_engine_load_guarded(kelp_runtime *runtime, kelp_file_guard *guard,
                                      const char *path, kelp_engine **out) {
    mapped_plan *plan = NULL;
    KELP_TRY(KELP_NEW(runtime->allocator, mapped_plan, &plan));
    plan->allocator = runtime->allocator;
    kelp_status *status = kelp_file_guard_map(guard, path, &plan->mapping);
    if (status != NULL) {
        kelp_free(plan->allocator, plan, sizeof *plan);
        return in_domain(status);
    }
    return kelp_engine_load(runtime, plan->mapping.data, plan->mapping.size_bytes, path, unmap_plan,
                            plan, out);
}

kelp_status *kelp_engine_load_file(kelp_runtime *runtime, const char *path, kelp_engine **out) {
    return kelp_engine_load_guarded(runtime, NULL, path, out);
}
