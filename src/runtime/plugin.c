/* SPDX-License-Identifier: Apache-2.0 */
/* Loading of plug-in libraries: checks the file and its table, and registers what it offers. */
#include "runtime/plugin.h"

#include "base/alloc.h"
#include "base/arena.h"
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
    if (symbol == NULL && kelp_dl_own_symbol(dl, "RegisterCustomOps") != NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "it is a custom-operator library of ONNX Runtime (it exports "
                          "'RegisterCustomOps'): expected a plug-in library of Kelp, which exports "
                          "'%s' (kelp/plugin.h)",
                          KELP_PLUGIN_QUERY);
    if (symbol == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "it does not export '%s', which a plug-in library of Kelp does "
                          "(kelp/plugin.h)",
                          KELP_PLUGIN_QUERY);
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
    kelp_dl_share_own(); /* a plug-in library need not be linked with Kelp */
    KELP_TRY(kelp_dl_open(here, out_library));
    return query(out_library, out);
}

/* Maximum number of settings of a library in the text form. */
#define SETTINGS_MAX 64

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

static kelp_status *check_settings(const kelp_plugin *plugin, const kelp_plugin_setting *settings,
                                   size_t count) {
    if (count > 0 && plugin->create == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "plug-in '%s' has no settings: found '%s'",
                          plugin->name, settings[0].name != NULL ? settings[0].name : "");
    for (size_t i = 0; i < count; i++) {
        const char *name = settings[i].name;
        if (name == NULL || *name == '\0' || settings[i].value == NULL)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "setting %zu ('%s') has no %s", i,
                              name != NULL ? name : "",
                              name == NULL || *name == '\0' ? "name" : "value");
        for (size_t k = 0; k < i; k++)
            if (strcmp(settings[k].name, name) == 0)
                return KELP_ERROR(KELP_INVALID_ARGUMENT, "setting '%s' has two values: '%s', '%s'",
                                  name, settings[k].value, settings[i].value);
    }
    return NULL;
}

static kelp_status *create_self(const kelp_plugin *plugin, const kelp_plugin_setting *settings,
                                size_t count, void **out_self) {
    char error[512] = "";
    if (plugin->create == NULL)
        return NULL;
    kelp_code code = plugin->create(settings, count, out_self, error, sizeof error);
    error[sizeof error - 1] = '\0';
    return code == KELP_OK ? NULL
                           : KELP_ERROR(code, "plug-in '%s' failed: %s", plugin->name,
                                        error[0] != '\0' ? error : kelp_code_name(code));
}

/* Creates the plug-in of a runtime, with copies of its tables. */
static kelp_status *new_plugin(kelp_runtime *runtime, const kelp_plugin *table,
                               const kelp_plugin_setting *settings, size_t count,
                               kelp_loaded_plugin **out) {
    kelp_loaded_plugin *plugin = NULL;
    KELP_TRY(check_settings(table, settings, count));
    KELP_TRY(KELP_NEW(runtime->allocator, kelp_loaded_plugin, &plugin));
    plugin->table = *table;
    kelp_status *status = create_self(table, settings, count, &plugin->self);
    if (status != NULL) {
        kelp_free(runtime->allocator, plugin, sizeof *plugin);
        return status;
    }
    if (table->compute != NULL) {
        memcpy(&plugin->compute, table->compute,
               KELP_MIN(table->compute->struct_size, sizeof plugin->compute));
        plugin->compute.struct_size =
            KELP_MIN(table->compute->struct_size, (uint32_t)sizeof plugin->compute);
        if (plugin->compute.self == NULL)
            plugin->compute.self = plugin->self;
    }
    if (table->engine != NULL) {
        memcpy(&plugin->engine, table->engine,
               KELP_MIN(table->engine->struct_size, sizeof plugin->engine));
        plugin->engine.struct_size =
            KELP_MIN(table->engine->struct_size, (uint32_t)sizeof plugin->engine);
        if (plugin->engine.self == NULL)
            plugin->engine.self = plugin->self;
    }
    *out = plugin;
    return NULL;
}

void kelp_plugins_destroy(kelp_loaded_plugin *first, kelp_allocator allocator) {
    for (kelp_loaded_plugin *plugin = first, *next; plugin != NULL; plugin = next) {
        next = plugin->next;
        if (plugin->table.create != NULL && plugin->table.destroy != NULL)
            plugin->table.destroy(plugin->self);
        kelp_free(allocator, plugin, sizeof *plugin);
    }
}

static kelp_status *register_all(kelp_runtime *runtime, const char *path,
                                 const kelp_loaded_plugin *plugin) {
    const kelp_plugin *table = &plugin->table;
    if (table->opset != NULL)
        KELP_TRY(kelp_opset_register(runtime->registry, table->opset, plugin->self));
    if (table->compute != NULL)
        KELP_TRY(kelp_compute_register(runtime, &plugin->compute));
    if (table->engine != NULL)
        KELP_TRY(kelp_engine_provider_register(runtime, &plugin->engine));
    return table->kernels != NULL ? register_kernels(runtime, path, table) : NULL;
}

static kelp_status *load(kelp_runtime *runtime, const char *path,
                         const kelp_plugin_setting *settings, size_t count) {
    kelp_dl library;
    kelp_plugin table;
    kelp_loaded_plugin *plugin = NULL;
    KELP_TRY(kelp_plugin_open(path, &library, &table));
    if (table.opset == NULL && table.compute == NULL && table.engine == NULL &&
        table.kernels == NULL)
        return KELP_ERROR(KELP_NOT_FOUND,
                          "plug-in '%s' offers neither operators nor kernels nor models nor "
                          "engines",
                          table.name);
    KELP_TRY(new_plugin(runtime, &table, settings, count, &plugin));
    /* a part may be registered when another fails, so that the plug-in exists until the runtime is
     * destroyed */
    plugin->next = runtime->plugins;
    runtime->plugins = plugin;
    return register_all(runtime, path, plugin);
}

kelp_status *kelp_runtime_load_plugin_with(kelp_runtime *runtime, const char *path,
                                           const kelp_plugin_setting *settings,
                                           size_t setting_count) {
    return KELP_ANNOTATE(load(runtime, path, settings, setting_count),
                         "cannot load plug-in library '%s'", path);
}

kelp_status *kelp_runtime_load_plugin(kelp_runtime *runtime, const char *path) {
    return kelp_runtime_load_plugin_with(runtime, path, NULL, 0);
}

/* ---- text ---- */
/* Copies text up to one of `ends`, without its backslashes, and moves `*inout_text` there. */
static kelp_status *read_part(kelp_arena *arena, const char *ends, const char **inout_text,
                              const char **out) {
    const char *from = *inout_text;
    char *copy = KELP_ARENA_ARRAY(arena, strlen(from) + 1, char);
    size_t length = 0;
    if (copy == NULL)
        return kelp_status_oom();
    for (; *from != '\0' && strchr(ends, *from) == NULL; from++) {
        if (*from == '\\' && from[1] != '\0' && strchr(",:=\\", from[1]) != NULL)
            from++;
        copy[length++] = *from;
    }
    *inout_text = from;
    *out = copy;
    return NULL;
}

/* Reads one library with its settings, and moves `*inout_text` past its ':'. */
static kelp_status *load_next(kelp_runtime *runtime, kelp_arena *arena, const char **inout_text) {
    const char *path = NULL, *text = *inout_text;
    kelp_plugin_setting settings[SETTINGS_MAX];
    size_t count = 0;
    KELP_TRY(read_part(arena, ",:", &text, &path));
    while (*text == ',') {
        text++;
        if (count == SETTINGS_MAX)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "plug-in '%s' has more than %d settings", path,
                              SETTINGS_MAX);
        KELP_TRY(read_part(arena, "=,:", &text, &settings[count].name));
        if (*text != '=')
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "plug-in '%s': expected NAME=VALUE after ',', found '%s'", path,
                              settings[count].name);
        text++;
        KELP_TRY(read_part(arena, ",:", &text, &settings[count++].value));
    }
    *inout_text = text + (*text == ':');
    if (*path == '\0' && count == 0)
        return NULL;
    return kelp_runtime_load_plugin_with(runtime, path, settings, count);
}

kelp_status *kelp_runtime_load_plugins(kelp_runtime *runtime, const char *text) {
    kelp_arena arena;
    kelp_arena_init(&arena, runtime->allocator, 0);
    kelp_status *status = NULL;
    while (status == NULL && *text != '\0')
        status = load_next(runtime, &arena, &text);
    kelp_arena_deinit(&arena);
    return status;
}
