/* SPDX-License-Identifier: Apache-2.0 */
/* The table of compute backends. */
#include "base/alloc.h"
#include "base/buf.h"
#include "runtime/runtime.h"

#include <kelp/compute.h>

#include <string.h>

/* ---- table ---- */
kelp_status *kelp_compute_register(kelp_runtime *runtime, const kelp_compute_backend *backend) {
    if (backend->abi_version != KELP_COMPUTE_ABI_VERSION)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "cannot register a compute backend of ABI version %u: this Kelp speaks "
                          "version %d",
                          backend->abi_version, KELP_COMPUTE_ABI_VERSION);
    if (backend->struct_size < sizeof *backend || backend->name == NULL ||
        backend->capabilities == NULL || backend->load_model == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "cannot register compute backend '%s': name, capabilities and load_model "
                          "are required in a table of at least %zu bytes (found %u)",
                          backend->name ? backend->name : "(none)", sizeof *backend,
                          backend->struct_size);
    for (size_t i = 0; i < runtime->compute_count; i++)
        if (strcmp(runtime->compute[i]->name, backend->name) == 0)
            return KELP_ERROR(KELP_ALREADY_EXISTS, "compute backend '%s' is registered already",
                              backend->name);
    KELP_TRY(kelp_grow(runtime->allocator, (void **)&runtime->compute, &runtime->compute_capacity,
                       runtime->compute_count + 1, sizeof *runtime->compute));
    runtime->compute[runtime->compute_count++] = backend;
    return NULL;
}

size_t kelp_compute_count(const kelp_runtime *runtime) {
    return runtime->compute_count;
}

const kelp_compute_backend *kelp_compute_at(const kelp_runtime *runtime, size_t index) {
    return index < runtime->compute_count ? runtime->compute[index] : NULL;
}

kelp_status *kelp_compute_find(kelp_runtime *runtime, const char *name,
                               const kelp_compute_backend **out) {
    kelp_buf names;
    for (size_t i = 0; i < runtime->compute_count; i++) {
        if (strcmp(runtime->compute[i]->name, name) == 0) {
            *out = runtime->compute[i];
            return NULL;
        }
    }
    kelp_buf_init(&names, runtime->allocator);
    for (size_t i = 0; i < runtime->compute_count; i++)
        kelp_buf_printf(&names, "%s%s", i ? ", " : "", runtime->compute[i]->name);
    kelp_status *status = kelp_buf_status(&names);
    if (status == NULL)
        status = KELP_ERROR(KELP_NOT_FOUND, "there is no compute backend '%s': found %s", name,
                            runtime->compute_count ? kelp_buf_cstr(&names) : "none");
    kelp_buf_deinit(&names);
    return status;
}
