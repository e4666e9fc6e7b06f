/* SPDX-License-Identifier: Apache-2.0 */
/* The entry of the `kelp` backend (backends/kelp), which consists of the SDK's entry points. */
#include "server/builtin/builtin.h"

#include <kelp/backend.h>

extern const kelp_backend_definition kelp_backend_kelp; /* backends/kelp/kelp.c */

static TRITONSERVER_Error *initialize(TRITONBACKEND_Backend *backend) {
    return kelp_backend_entry_initialize(&kelp_backend_kelp, false, backend);
}

static const char *const aliases[] = {"onnxruntime", "onnxruntime_onnx", "tensorrt",
                                      "tensorrt_plan", NULL};

extern const kelp_builtin_backend kelp_builtin_kelp; /* builtin.c */
const kelp_builtin_backend kelp_builtin_kelp = {
    .name = "kelp",
    .aliases = aliases,
    .initialize = initialize,
    .finalize = kelp_backend_entry_finalize,
    .model_init = kelp_backend_entry_model_initialize,
    .model_fini = kelp_backend_entry_model_finalize,
    .instance_init = kelp_backend_entry_instance_initialize,
    .instance_fini = kelp_backend_entry_instance_finalize,
    .execute = kelp_backend_entry_execute,
    .attribute = kelp_backend_entry_attributes,
    .inline_execute = true,
};
