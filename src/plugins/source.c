/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel libraries as a source of operators for a runtime: by file (kelp_runtime_load_plugin), and
 * by domain, in the directories of the environment. */
#include "base/alloc.h"
#include "plugins/internal.h"
#include "plugins/provider.h"
#include "runtime/runtime.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct kernel_source {
    kelp_runtime *runtime;         /* owns this */
    pthread_mutex_t mutex;         /* guards the creation of `kernels` */
    kelp_kernel_registry *kernels; /* created by the first library */
} kernel_source;

static void log_line(void *userp, int level, const char *text) {
    const kernel_source *source = userp;
    KELP_LOGF(&source->runtime->logger, (kelp_log_level)level, "%s", text);
}

static kelp_status *open_registry(kernel_source *source, kelp_kernel_registry **out) {
    kelp_runtime *runtime = source->runtime;
    kelp_kernel_registry_options options = {.struct_size = sizeof options,
                                            .threads = runtime->threads,
                                            .allocator = runtime->allocator,
                                            .log = log_line,
                                            .log_userp = source};
    kelp_status *status = NULL;
    pthread_mutex_lock(&source->mutex);
    if (source->kernels == NULL)
        status = kelp_kernel_registry_create_on(&options, runtime->pool, &source->kernels);
    *out = source->kernels;
    pthread_mutex_unlock(&source->mutex);
    return status;
}

static kelp_status *source_load(void *self, const char *path, const kelp_opset_backend **out,
                                void **out_self) {
    kelp_kernel_registry *registry = NULL;
    kelp_kernel_library *library = NULL;
    KELP_TRY(open_registry(self, &registry));
    KELP_TRY(kelp_kernel_registry_load(registry, path, &library));
    return kelp_kernel_library_opset(library, out, out_self);
}

/* Returns true if a domain may be a part of a file name. A domain comes from a model, which must
 * not choose a directory. */
static bool is_plain(const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && strchr("_-.", name[i]) == NULL)
            return false;
    return length > 0 && length <= 128 && name[0] != '.';
}

/* Returns the directories of the environment; "" if there are none. The caller deinitializes the
 * buffer. */
static const char *environment_path(kelp_buf *out) {
    static const char *const names[] = {"KELP_BACKEND_PATH", "TRITON_BACKEND_PATH"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && *value != '\0')
            kelp_buf_printf(out, "%s%s", out->length > 0 ? ":" : "", value);
    }
    return out->length > 0 ? kelp_buf_cstr(out) : "";
}

static kelp_status *find_in(kernel_source *source, const char *search_path, const char *name,
                            const kelp_opset_backend **out, void **out_self) {
    kelp_kernel_registry *registry = NULL;
    kelp_kernel_library *library = NULL;
    if (search_path == NULL)
        return kelp_status_oom();
    if (*search_path == '\0')
        return NULL;
    KELP_TRY(open_registry(source, &registry));
    KELP_TRY(kelp_kernel_registry_open_in(registry, search_path, name, &library));
    return kelp_kernel_library_opset(library, out, out_self);
}

static kelp_status *source_find(void *self, const char *name, const kelp_opset_backend **out,
                                void **out_self) {
    kernel_source *source = self;
    kelp_buf path;
    if (!is_plain(name))
        return NULL;
    kelp_buf_init(&path, source->runtime->allocator);
    kelp_status *status = find_in(source, environment_path(&path), name, out, out_self);
    kelp_buf_deinit(&path);
    return status;
}

static void source_destroy(void *self) {
    kernel_source *source = self;
    kelp_allocator allocator = source->runtime->allocator;
    kelp_kernel_registry_release(source->kernels);
    pthread_mutex_destroy(&source->mutex);
    kelp_free(allocator, source, sizeof *source);
}

static const kelp_opset_source kernel_libraries = {
    .load = source_load, .find = source_find, .destroy = source_destroy};

kelp_status *kelp_kernels_attach(kelp_runtime *runtime) {
    kernel_source *source = NULL;
    KELP_TRY(KELP_NEW(runtime->allocator, kernel_source, &source));
    if (pthread_mutex_init(&source->mutex, NULL) != 0) {
        kelp_free(runtime->allocator, source, sizeof *source);
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "no memory for a mutex");
    }
    source->runtime = runtime;
    kelp_opset_set_source(runtime->registry, &kernel_libraries, source);
    return NULL;
}
