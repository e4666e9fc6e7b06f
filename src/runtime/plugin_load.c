/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries that bring operators, opsets or providers (kelp/plugin.h). They stay loaded. */
#include "runtime/runtime.h"
#include "runtime/plugin.h"

#include <kelp/compute.h>

kelp_status *kelp_runtime_load_plugin(kelp_runtime *runtime, const char *path) {
    kelp_dl library;
    const kelp_plugin *plugin = NULL;
    kelp_status *status = kelp_plugin_open(path, &library, &plugin);
    if (status == NULL && plugin->opset == NULL && plugin->compute == NULL)
        status = KELP_ERROR(KELP_NOT_FOUND,
                            "it calls itself '%s', and has neither operators nor models to offer",
                            plugin->name);
    if (status == NULL && plugin->opset != NULL)
        status = kelp_opset_register(runtime->opsets, plugin->opset, NULL);
    if (status == NULL && plugin->compute != NULL)
        status = kelp_compute_register(runtime, plugin->compute);
    return status != NULL ? KELP_ANNOTATE(status, "cannot load plugin '%s'", path) : NULL;
}
