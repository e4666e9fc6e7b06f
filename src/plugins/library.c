/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel library: loading, and its list of kernels. */
#include "plugins/internal.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/fs.h"
#include "runtime/plugin.h"

#include <string.h>

static kelp_status *check_table(const kelp_plugin *plugin) {
    if (plugin->kernels == NULL)
        return KELP_ERROR(KELP_NOT_FOUND, "plug-in '%s' has no kernels", plugin->name);
    if (plugin->kernels->struct_size < sizeof *plugin->kernels)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "its table of kernels has %u bytes: expected at least %zu",
                          plugin->kernels->struct_size, sizeof *plugin->kernels);
    return NULL;
}

/* ---- kernels ---- */
/* Returns the supported devices. Functions that a program registers may use every device. */
static uint32_t device_bits(const kelp_kernel_library *library) {
    uint32_t bits = 0;
    if (library->def == NULL)
        return UINT32_MAX;
    for (size_t i = 0; kelp_kernel_library_device(library, i) != NULL; i++)
        bits |= (uint32_t)1 << kelp_kernel_device_type(kelp_kernel_library_device(library, i));
    return bits;
}

static kelp_status *add_kernel(kelp_kernel_library *library, const char *name,
                               const char *signature, kelp_kernel **out) {
    kelp_kernel_registry *registry = library->registry;
    KELP_ASSERT_HELD(&registry->mutex);
    kelp_kernel *kernel = KELP_ARENA_NEW(&registry->arena, kelp_kernel);
    if (kernel == NULL || name == NULL)
        return kernel == NULL ? kelp_status_oom()
                              : KELP_ERROR(KELP_INVALID_ARGUMENT, "a kernel has no name");
    kernel->library = library;
    kernel->name = kelp_arena_strndup(&registry->arena, name, strlen(name));
    kernel->summary = "";
    kernel->devices = device_bits(library);
    kernel->signature_text = "";
    if (kernel->name == NULL)
        return kelp_status_oom();
    if (signature != NULL) {
        kernel->signature_text = kelp_arena_strndup(&registry->arena, signature, strlen(signature));
        if (kernel->signature_text == NULL)
            return kelp_status_oom();
        kelp_status *status =
            kelp_signature_parse(&registry->arena, kernel->signature_text, &kernel->signature);
        if (status == NULL)
            status = kelp_signature_check_kernel(&kernel->signature);
        if (status != NULL)
            return KELP_ANNOTATE(status, "kernel '%s'", name);
        kernel->typed = true;
    }
    KELP_TRY(kelp_grow(registry->allocator, (void **)&library->kernels, &library->kernel_capacity,
                       library->kernel_count + 1, sizeof *library->kernels));
    library->kernels[library->kernel_count++] = kernel;
    *out = kernel;
    return NULL;
}

static kelp_status *add_declared(kelp_kernel_library *library) {
    for (uint32_t i = 0; i < library->def->kernel_count; i++) {
        const kelp_kernel_def *def = &library->def->kernels[i];
        kelp_kernel *kernel = NULL;
        if (def->fn == NULL || def->signature == NULL)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "its kernel '%s' has no %s",
                              def->name ? def->name : "(unnamed)",
                              def->fn == NULL ? "function" : "signature");
        KELP_TRY(add_kernel(library, def->name, def->signature, &kernel));
        kernel->fn = def->fn;
        kernel->flags = def->flags;
        kernel->summary = def->summary != NULL ? def->summary : "";
    }
    return NULL;
}

/* ---- lifetime ---- */
kelp_status *kelp_kernel_library_new(kelp_kernel_registry *registry, const char *name,
                                     const char *path, kelp_kernel_library **out) {
    KELP_ASSERT_HELD(&registry->mutex);
    kelp_kernel_library *library = KELP_ARENA_NEW(&registry->arena, kelp_kernel_library);
    if (library == NULL)
        return kelp_status_oom();
    library->registry = registry;
    library->name = kelp_arena_strndup(&registry->arena, name, strlen(name));
    library->path = kelp_arena_strndup(&registry->arena, path, strlen(path));
    if (library->name == NULL || library->path == NULL)
        return kelp_status_oom();
    *out = library;
    return NULL;
}

void kelp_kernel_library_finalize(kelp_kernel_library *library) {
    if (library->def != NULL && library->def->finalize != NULL)
        library->def->finalize(library->state);
    kelp_free(library->registry->allocator, library->kernels,
              library->kernel_capacity * sizeof *library->kernels);
}

static kelp_status *initialize(kelp_kernel_library *library) {
    static const kelp_device_config cpu = {.device = "cpu"};
    const kelp_kernel_registry *registry = library->registry;
    char error[KELP_FAIL_TEXT] = "";
    if (library->def->initialize == NULL)
        return NULL;
    const kelp_device_config *configs = registry->configs != NULL ? registry->configs : &cpu;
    size_t count = registry->configs != NULL ? registry->config_count : 1;
    kelp_code code = library->def->initialize(configs, count, &library->state, error, sizeof error);
    error[sizeof error - 1] = '\0';
    return code == KELP_OK ? NULL
                           : KELP_ERROR(code, "it failed to initialize: %s",
                                        error[0] != '\0' ? error : kelp_code_name(code));
}

kelp_status *kelp_kernel_library_load(kelp_kernel_registry *registry, const char *path,
                                      const char *name, kelp_kernel_library **out) {
    KELP_ASSERT_HELD(&registry->mutex);
    kelp_dl dl = {0};
    kelp_plugin plugin;
    kelp_kernel_library *library = NULL;
    KELP_TRY(kelp_plugin_open(path, &dl, &plugin)); /* stays loaded, even on failure */
    KELP_TRY(check_table(&plugin));
    if (name != NULL && strcmp(name, plugin.name) != 0)
        return KELP_ERROR(KELP_NOT_FOUND, "its name is '%s'", plugin.name);
    for (size_t i = 0; i < registry->count; i++) {
        if (strcmp(registry->libraries[i]->name, plugin.name) == 0) {
            *out = registry->libraries[i];
            return NULL;
        }
    }
    KELP_TRY(kelp_kernel_library_new(registry, plugin.name, path, &library));
    library->dl = dl;
    library->def = plugin.kernels;
    kelp_status *status = add_declared(library);
    if (status == NULL)
        status = kelp_grow(registry->allocator, (void **)&registry->libraries, &registry->capacity,
                           registry->count + 1, sizeof *registry->libraries);
    if (status == NULL)
        status = initialize(library);
    if (status != NULL) {
        kelp_free(registry->allocator, library->kernels,
                  library->kernel_capacity * sizeof *library->kernels);
        return status;
    }
    registry->libraries[registry->count++] = library;
    *out = library;
    return NULL;
}

/* ---- public functions ---- */
const char *kelp_kernel_library_name(const kelp_kernel_library *library) {
    return library->name;
}

const char *kelp_kernel_library_path(const kelp_kernel_library *library) {
    return library->path;
}

const char *kelp_kernel_library_device(const kelp_kernel_library *library, size_t index) {
    if (library->def == NULL || library->def->devices == NULL)
        return index == 0 ? "cpu" : NULL;
    for (size_t i = 0; i < index; i++) {
        if (library->def->devices[i] == NULL)
            return NULL;
    }
    return library->def->devices[index];
}

size_t kelp_kernel_library_count(const kelp_kernel_library *library) {
    pthread_mutex_lock(&library->registry->mutex);
    size_t count = library->kernel_count;
    pthread_mutex_unlock(&library->registry->mutex);
    return count;
}

const kelp_kernel *kelp_kernel_library_at(const kelp_kernel_library *library, size_t index) {
    pthread_mutex_lock(&library->registry->mutex);
    const kelp_kernel *kernel = index < library->kernel_count ? library->kernels[index] : NULL;
    pthread_mutex_unlock(&library->registry->mutex);
    return kernel;
}

void *kelp_kernel_library_function(kelp_kernel_library *library, const char *name) {
    if (library->def != NULL && library->def->get_function_ptr != NULL)
        return library->def->get_function_ptr(library->state, name);
    pthread_mutex_lock(&library->registry->mutex);
    void *function = NULL;
    for (size_t i = 0; i < library->kernel_count; i++) {
        if (strcmp(library->kernels[i]->name, name) == 0)
            function = library->kernels[i]->raw;
    }
    pthread_mutex_unlock(&library->registry->mutex);
    return function;
}

static kelp_status *find_locked(kelp_kernel_library *library, const char *name,
                                const kelp_kernel **out) {
    KELP_ASSERT_HELD(&library->registry->mutex);
    kelp_buf names;
    for (size_t i = 0; i < library->kernel_count; i++) {
        if (strcmp(library->kernels[i]->name, name) == 0) {
            *out = library->kernels[i];
            return NULL;
        }
    }
    void *function = library->def != NULL && library->def->get_function_ptr != NULL
                         ? library->def->get_function_ptr(library->state, name)
                         : NULL;
    if (function != NULL) {
        kelp_kernel *kernel = NULL;
        KELP_TRY(add_kernel(library, name, NULL, &kernel));
        kernel->raw = function;
        kernel->with_context = true;
        *out = kernel;
        return NULL;
    }
    kelp_buf_init(&names, library->registry->allocator);
    for (size_t i = 0; i < library->kernel_count; i++)
        kelp_buf_printf(&names, "%s'%s'", i > 0 ? ", " : "", library->kernels[i]->name);
    kelp_status *status = kelp_buf_status(&names);
    if (status == NULL)
        status =
            KELP_ERROR(KELP_NOT_FOUND, "library '%s' has no kernel '%s': found %s", library->name,
                       name, library->kernel_count > 0 ? kelp_buf_cstr(&names) : "none");
    kelp_buf_deinit(&names);
    return status;
}

kelp_status *kelp_kernel_library_find(kelp_kernel_library *library, const char *name,
                                      const kelp_kernel **out) {
    pthread_mutex_lock(&library->registry->mutex);
    kelp_status *status = find_locked(library, name, out);
    pthread_mutex_unlock(&library->registry->mutex);
    return status;
}

static kelp_status *check_name_free(const kelp_kernel_library *library, const char *name) {
    for (size_t i = 0; i < library->kernel_count; i++) {
        if (strcmp(library->kernels[i]->name, name) == 0)
            return KELP_ERROR(KELP_ALREADY_EXISTS, "library '%s' already has a kernel '%s'",
                              library->name, name);
    }
    return NULL;
}

static kelp_status *register_locked(kelp_kernel_library *library, const char *name, void *function,
                                    const char *signature, bool with_context,
                                    const kelp_kernel **out) {
    KELP_ASSERT_HELD(&library->registry->mutex);
    KELP_TRY(check_name_free(library, name));
    kelp_kernel *kernel = NULL;
    KELP_TRY(add_kernel(library, name, signature, &kernel));
    kernel->raw = function;
    kernel->with_context = with_context;
    *out = kernel;
    return NULL;
}

kelp_status *kelp_kernel_library_register(kelp_kernel_library *library, const char *name,
                                          void *function, const char *signature, bool with_context,
                                          const kelp_kernel **out) {
    if (function == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "kernel '%s' has no address", name);
    pthread_mutex_lock(&library->registry->mutex);
    kelp_status *status = register_locked(library, name, function, signature, with_context, out);
    pthread_mutex_unlock(&library->registry->mutex);
    return status;
}

kelp_status *kelp_kernel_library_define(kelp_kernel_library *library, const kelp_kernel_def *def,
                                        const kelp_kernel **out) {
    if (def->fn == NULL || def->name == NULL || def->signature == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "kernel '%s' has no %s: expected name, signature and function",
                          def->name ? def->name : "", def->fn == NULL ? "function" : "signature");
    pthread_mutex_lock(&library->registry->mutex);
    kelp_status *status = check_name_free(library, def->name);
    kelp_kernel *kernel = NULL;
    if (status == NULL)
        status = add_kernel(library, def->name, def->signature, &kernel);
    if (status == NULL) {
        kernel->fn = def->fn;
        kernel->flags = def->flags;
        kernel->summary = def->summary != NULL ? def->summary : "";
        *out = kernel;
    }
    pthread_mutex_unlock(&library->registry->mutex);
    return status;
}

const char *kelp_kernel_name(const kelp_kernel *kernel) {
    return kernel->name;
}

const char *kelp_kernel_signature(const kelp_kernel *kernel) {
    return kernel->signature_text;
}

const char *kelp_kernel_summary(const kelp_kernel *kernel) {
    return kernel->summary;
}

uint32_t kelp_kernel_flags(const kelp_kernel *kernel) {
    return kernel->flags;
}

int32_t kelp_kernel_param_count(const kelp_kernel *kernel) {
    return kernel->typed ? kernel->signature.count : -1;
}

kelp_kernel_param kelp_kernel_param_at(const kelp_kernel *kernel, int32_t index) {
    if (!kernel->typed || index < 0 || index >= kernel->signature.count)
        return (kelp_kernel_param){.name = ""};
    const kelp_signature_param *p = &kernel->signature.params[index];
    return (kelp_kernel_param){p->name, p->kind, p->direction, p->dtype,
                               p->optional || p->has_default};
}

kelp_kernel_shape kelp_kernel_param_shape(const kelp_kernel *kernel, int32_t index) {
    const kelp_signature *s = &kernel->signature;
    kelp_kernel_shape shape = {.rank = -1};
    if (!kernel->typed || index < 0 || index >= s->count ||
        s->params[index].kind != KELP_ARG_TENSOR)
        return shape;
    const kelp_signature_param *p = &s->params[index];
    shape.rank = p->dim_count;
    shape.leading = p->leading;
    shape.leading_name = p->leading_symbol >= 0 ? s->leadings[p->leading_symbol] : NULL;
    for (int32_t i = 0; i < p->dim_count; i++) {
        shape.extents[i] = p->dims[i] >= 0 ? p->dims[i] : -1;
        shape.names[i] = p->dims[i] <= -2 ? s->symbols[-2 - p->dims[i]] : NULL;
    }
    return shape;
}
