/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries that bring operators, opsets or providers (kelp/plugin.h). They stay loaded:
 * code that has made threads cannot be unloaded safely. */
#include "base/dl.h"
#include "engine/runtime.h"

#include <kelp/compute.h>
#include <kelp/plugin.h>
#include <string.h>

static kelp_status *query(const kelp_dl *library, const kelp_plugin **out) {
    kelp_plugin_query_fn ask;
    void *symbol = kelp_dl_own_symbol(library, KELP_PLUGIN_QUERY);
    if (symbol == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "it exports no %s", KELP_PLUGIN_QUERY);
    memcpy(&ask, &symbol, sizeof ask);
    const kelp_plugin *plugin = ask(KELP_PLUGIN_ABI_VERSION);
    if (plugin == NULL)
        return KELP_ERROR(KELP_UNIMPLEMENTED, "it does not serve plugin interface version %u",
                          KELP_PLUGIN_ABI_VERSION);
    if (plugin->magic != KELP_PLUGIN_MAGIC || plugin->abi_version != KELP_PLUGIN_ABI_VERSION ||
        plugin->struct_size < sizeof *plugin || plugin->name == NULL)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "its table (%u bytes, version %u) is none of plugin interface version %u",
                          plugin->struct_size, plugin->abi_version, KELP_PLUGIN_ABI_VERSION);
    if (plugin->opset == NULL && plugin->compute == NULL)
        return KELP_ERROR(KELP_NOT_FOUND,
                          "it calls itself '%s', and has neither operators nor "
                          "models to offer",
                          plugin->name);
    *out = plugin;
    return NULL;
}

kelp_status *kelp_runtime_load_plugin(kelp_runtime *runtime, const char *path) {
    kelp_dl library;
    const kelp_plugin *plugin = NULL;
    KELP_TRY(kelp_dl_open(path, &library));
    kelp_status *status = query(&library, &plugin);
    if (status == NULL && plugin->opset != NULL)
        status = kelp_opset_register(runtime->opsets, plugin->opset, NULL);
    if (status == NULL && plugin->compute != NULL)
        status = kelp_compute_register(runtime, plugin->compute);
    return status != NULL ? KELP_ANNOTATE(status, "cannot load plugin '%s'", path) : NULL;
}
