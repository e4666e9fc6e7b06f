/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries with one defect each, selected by MISTAKE. */
#include <kelp/kernel.h>
#include <stdio.h>

static kelp_code nothing(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    (void)context, (void)args;
    return KELP_OK;
}

#if MISTAKE == 6
static kelp_code fail(const kelp_device_config *configs, size_t config_count, void **out_state,
                      char *error, size_t error_capacity) {
    (void)configs, (void)config_count, (void)out_state;
    snprintf(error, error_capacity, "the device is on fire");
    return KELP_UNAVAILABLE;
}

static void never(void *state) {
    (void)state;
    __builtin_trap(); /* finalize after a failed initialize */
}
#endif

static const kelp_kernel_def kernels[] = {
#if MISTAKE == 5
    {.name = "nothing", .signature = "out y: float33[n]", .fn = nothing},
#else
    {.name = "nothing", .signature = "out y: float32[n]", .fn = nothing},
#endif
};

static const kelp_kernel_library_def def = {
    .struct_size = sizeof def,
    .kernel_count = 1,
    .kernels = kernels,
#if MISTAKE == 6
    .initialize = fail,
    .finalize = never,
#endif
};

static const kelp_plugin plugin = {
    .magic = MISTAKE == 1 ? 7 : KELP_PLUGIN_MAGIC,
    .abi_version = MISTAKE == 2 ? 99 : KELP_PLUGIN_ABI_VERSION,
    .struct_size = MISTAKE == 3 ? 8 : sizeof plugin,
    .name = MISTAKE == 7 ? "somebody_else" : "mistake",
    .kernels = MISTAKE == 4 ? NULL : &def,
};

KELP_PLUGIN_EXPORT const kelp_plugin *kelp_plugin_query(uint32_t host_abi_version) {
    (void)host_abi_version;
    return &plugin;
}
