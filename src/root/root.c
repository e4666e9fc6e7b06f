/* SPDX-License-Identifier: Apache-2.0 */
/* The library root: the one place that knows every built-in backend and wires them to a runtime. */
#include "builder/providers.h"
#include "runtime/runtime.h"
#include "cpu/kernels/cpu_features.h"
#include "cpu/ops/ops.h"
#include "runtime/providers.h"

#include <kelp/compute.h>

const char *kelp_version(void) {
    return KELP_VERSION;
}

const char *kelp_runtime_isa(const kelp_runtime *runtime) {
    (void)runtime;
    return kelp_cpu_isa_name();
}

kelp_status *kelp_runtime_create(const kelp_runtime_options *options, kelp_runtime **out) {
    kelp_runtime *runtime = NULL;
    KELP_TRY(kelp_cpu_isa_check());
    KELP_TRY(kelp_runtime_new(options, &runtime));
    kelp_status *status =
        kelp_opset_register(runtime->opsets, kelp_cpu_opset_backend(), runtime->opsets);
    if (status == NULL)
        status = kelp_opset_register(runtime->opsets, kelp_null_opset_backend(), NULL);
    if (status == NULL)
        status = kelp_opset_register(runtime->opsets, kelp_onnxruntime_opset_backend(), runtime);
    if (status == NULL)
        status = kelp_compute_register(runtime, kelp_cpu_compute_backend());
    if (status == NULL)
        status = kelp_compute_register(runtime, kelp_null_compute_backend());
    if (status == NULL)
        status = kelp_compute_register(runtime, kelp_onnxruntime_compute_backend());
    if (status == NULL)
        status = kelp_compute_register(runtime, kelp_kernels_compute_backend());
    if (status == NULL)
        status = kelp_engine_provider_register(runtime, kelp_cpu_engine_provider());
    if (status == NULL)
        status = kelp_engine_provider_register(runtime, kelp_null_engine_provider());
    if (status == NULL)
        status = kelp_engine_provider_register(runtime, kelp_tensorrt_engine_provider());
    if (status != NULL) {
        kelp_runtime_release(runtime);
        return status;
    }
    *out = runtime;
    return NULL;
}
