/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-in libraries with wrong tables; FAULT selects the fault. */
#include <kelp/plugin.h>

static const kelp_plugin table = {
    .magic = FAULT == 1 ? 0x6b656c71u : KELP_PLUGIN_MAGIC,
    .abi_version = FAULT == 2 ? 9 : KELP_PLUGIN_ABI_VERSION,
    .struct_size = FAULT == 3 ? 24 : sizeof table,
    .name = FAULT == 4 ? (const char *)0 : "wrong",
};

const kelp_plugin *kelp_plugin_query(uint32_t host_abi_version) {
    return FAULT == 5 && host_abi_version == KELP_PLUGIN_ABI_VERSION ? (const kelp_plugin *)0
                                                                     : &table;
}
