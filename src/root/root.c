/* SPDX-License-Identifier: Apache-2.0 */
/* The library root: registers the built-in providers. No other module depends on all of them. */
#include "base/checked.h"
#include "base/domain.h"
#include "cpu/kernels/cpu_features.h"
#include "cpu/provider.h"
#include "null/provider.h"
#include "onnxruntime/provider.h"
#include "plugins/provider.h"
#include "runtime/runtime.h"
#include "tensorrt/provider.h"

/* In order of registration. The last provider that covers an operator has priority. */
static const kelp_provider *const providers[] = {
    &kelp_cpu_provider,     &kelp_null_provider,     &kelp_onnxruntime_provider,
    &kelp_kernels_provider, &kelp_tensorrt_provider,
};

const char *kelp_version(void) {
    return KELP_VERSION;
}

const char *kelp_runtime_isa(const kelp_runtime *runtime) {
    (void)runtime;
    return kelp_cpu_isa_name();
}

static kelp_status *create(const kelp_runtime_options *options, kelp_runtime **out) {
    kelp_runtime *runtime = NULL;
    KELP_TRY(kelp_cpu_isa_check());
    KELP_TRY(kelp_runtime_new(options, &runtime));
    kelp_status *status = NULL;
    for (size_t i = 0; status == NULL && i < KELP_COUNT(providers); i++)
        status = kelp_provider_register(runtime, providers[i], runtime);
    if (status == NULL)
        status = kelp_kernels_attach(runtime);
    if (status != NULL) {
        kelp_runtime_release(runtime);
        return status;
    }
    *out = runtime;
    return NULL;
}

kelp_status *kelp_runtime_create(const kelp_runtime_options *options, kelp_runtime **out) {
    return kelp_in_domain(create(options, out), KELP_DOMAIN_RUNTIME);
}
