/* SPDX-License-Identifier: Apache-2.0 */
/* Loading of plug-in libraries: checks the file and its table, and registers what it offers. */
#include "runtime/plugin.h"

#include "base/checked.h"
#include "runtime/provider.h"
#include "runtime/runtime.h"

#include <kelp/compute.h>
#include <kelp/engine_provider.h>

#include <elf.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- the file ---- */
static const char *machine_name(unsigned machine) {
    return machine == EM_X86_64    ? "x86-64"
           : machine == EM_AARCH64 ? "arm64"
           : machine == EM_386     ? "x86, 32 bits"
           : machine == EM_ARM     ? "arm, 32 bits"
           : machine == EM_RISCV   ? "RISC-V"
                                   : "another machine";
}

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#elif defined(__riscv)
#define OWN_MACHINE EM_RISCV
#endif

/* Checks the file first: the dynamic loader's messages do not say what is wrong with it. */
static kelp_status *check_file(const char *path) {
    unsigned char head[20];
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return KELP_ERROR(KELP_NOT_FOUND, "no such file");
    size_t got = fread(head, 1, sizeof head, file);
    fclose(file);
    if (got < sizeof head || memcmp(head, ELFMAG, SELFMAG) != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "it is not a shared library (ELF)");
#ifdef OWN_MACHINE
    unsigned machine = head[EI_DATA] == ELFDATA2LSB ? head[18] | (unsigned)head[19] << 8
                                                    : head[19] | (unsigned)head[18] << 8;
    if (machine != OWN_MACHINE)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "it is built for %s: this process runs on %s",
                          machine_name(machine), machine_name(OWN_MACHINE));
#endif
    return NULL;
}

/* ---- handshake ---- */
/* Size of the table in the first version. */
#define FIRST_TABLE_BYTES offsetof(kelp_plugin, engine)

static kelp_status *query(const kelp_dl *dl, kelp_plugin *out) {
    kelp_plugin_query_fn ask;
    void *symbol = kelp_dl_own_symbol(dl, KELP_PLUGIN_QUERY);
    if (symbol == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "it does not export '%s'", KELP_PLUGIN_QUERY);
    memcpy(&ask, &symbol, sizeof ask);
    const kelp_plugin *plugin = ask(KELP_PLUGIN_ABI_VERSION);
    if (plugin == NULL)
        return KELP_ERROR(KELP_UNIMPLEMENTED, "it does not support plug-in interface version %u",
                          KELP_PLUGIN_ABI_VERSION);
    if (plugin->magic != KELP_PLUGIN_MAGIC)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "bad plug-in magic 0x%08x, expected 0x%08x",
                          plugin->magic, KELP_PLUGIN_MAGIC);
    if (plugin->abi_version != KELP_PLUGIN_ABI_VERSION)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "it was built for plug-in interface version %u: this Kelp has version %u",
                          plugin->abi_version, KELP_PLUGIN_ABI_VERSION);
    if (plugin->struct_size < FIRST_TABLE_BYTES || plugin->name == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "its table has %u bytes: expected at least %zu and a name",
                          plugin->struct_size, FIRST_TABLE_BYTES);
    *out = (kelp_plugin){.magic = 0};
    memcpy(out, plugin, KELP_MIN(plugin->struct_size, sizeof *out));
    return NULL;
}

kelp_status *kelp_plugin_open(const char *path, kelp_dl *out_library, kelp_plugin *out) {
    char here[PATH_MAX];
    KELP_TRY(check_file(path));
    /* without a slash the loader would search its path, not this directory */
    int length = snprintf(here, sizeof here, "%s%s", strchr(path, '/') == NULL ? "./" : "", path);
    if (length < 0 || (size_t)length >= sizeof here)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "its path is longer than %d bytes", PATH_MAX - 1);
    KELP_TRY(kelp_dl_open(here, out_library));
    return query(out_library, out);
}

/* ---- registration ---- */
/* Registers the kernels as operators. If the library offers more, its kernels need not be
 * suitable. */
static kelp_status *register_kernels(kelp_runtime *runtime, const char *path,
                                     const kelp_plugin *plugin) {
    bool offers_more = plugin->opset != NULL || plugin->compute != NULL || plugin->engine != NULL;
    kelp_status *status = kelp_opset_register_kernels(runtime->registry, path);
    if (kelp_status_code(status) != KELP_NOT_FOUND || !offers_more)
        return status;
    kelp_status_free(status);
    return NULL;
}

kelp_status *kelp_runtime_load_plugin(kelp_runtime *runtime, const char *path) {
    kelp_dl library;
    kelp_plugin plugin;
    kelp_status *status = kelp_plugin_open(path, &library, &plugin);
    if (status == NULL && plugin.opset == NULL && plugin.compute == NULL && plugin.engine == NULL &&
        plugin.kernels == NULL)
        status = KELP_ERROR(KELP_NOT_FOUND,
                            "plug-in '%s' offers neither operators nor kernels nor models nor "
                            "engines",
                            plugin.name);
    if (status == NULL && plugin.opset != NULL)
        status = kelp_opset_register(runtime->registry, plugin.opset, NULL);
    if (status == NULL && plugin.compute != NULL)
        status = kelp_compute_register(runtime, plugin.compute);
    if (status == NULL && plugin.engine != NULL)
        status = kelp_engine_provider_register(runtime, plugin.engine);
    if (status == NULL && plugin.kernels != NULL)
        status = register_kernels(runtime, path, &plugin);
    return status != NULL ? KELP_ANNOTATE(status, "cannot load plug-in library '%s'", path) : NULL;
}
