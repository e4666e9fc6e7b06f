/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/options/backends.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/fs.h"
#include "base/checked.h"
#include "cli/serve/options/options.h"

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define AT(member) offsetof(kelp_serve_options, backends.member)
static const kelp_arg_spec specs[] = {
    {.group = "Backends",
     .name = "backend-directory",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(backend_directory),
     .value = "DIR",
     .choices = "@dir",
     .help = "directory with NAME/libtriton_NAME.so (../backends of the program's directory, or "
             "/opt/tritonserver/backends)"},
    {.name = "onnx-engine",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(onnx_engine),
     .value = "auto|builtin",
     .choices = "auto|builtin",
     .help = "engine of models with backend onnxruntime or tensorrt: auto uses the library of that "
             "backend if it is installed (auto)"},
    {.name = "backend-config",
     .kind = KELP_OPTION_LIST,
     .offset = AT(backend_config),
     .value = "[NAME,]KEY=VALUE",
     .help = "setting of a backend, or of all backends; may be repeated"},
    {.name = "auto-batch",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(auto_batch),
     .help = "batch requests dynamically to every model with a batch dimension and without a "
             "scheduler in its configuration, and to ONNX models without a configuration whose "
             "first dimensions are dynamic"},
    {.name = "host-policy",
     .kind = KELP_OPTION_LIST,
     .offset = AT(host_policies),
     .value = "NAME,KEY=VALUE",
     .help = "CPUs of the instances with host_policy NAME (cpu, model: without host_policy): "
             "cpu-cores=0-3,8 or numa-node=0; may be repeated"},
    {.name = "gpu-fallback",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(gpu_fallback),
     .value = "MODE",
     .choices = "error|cpu",
     .help =
         "instance groups of KIND_GPU, without a GPU: do not load the model (error), or use the "
         "CPU with a warning (cpu) (error)"},
    {.name = "rate-limit",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(rate_limit),
     .value = "MODE",
     .choices = "off|execution_count",
     .help = "execution_count: executions wait for the resources of rate_limiter (off)"},
    {.name = "rate-limit-resource",
     .kind = KELP_OPTION_LIST,
     .offset = AT(rate_resources),
     .value = "NAME:COUNT[:DEVICE]",
     .help = "amount of a resource of the rate limiter, on all devices or one (the maximum that an "
             "instance needs); may be repeated"},
    {.name = "precision",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(precision),
     .value = "f32|bf16",
     .choices = "f32|bf16",
     .help = "precision of float32 GEMM and convolutions in ONNX models; the model parameter "
             "'precision' overrides it (f32)"},
    {.name = "providers",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(providers),
     .value = "NAMES",
     .help = "providers of subgraphs of ONNX models in order of priority: onnxruntime,cpu or "
             "remote:ADDRESS,cpu; the model parameter 'providers' overrides it"},
    {.name = "plugin",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(plugin),
     .value = "FILES",
     .choices = "@file",
     .help = "plug-in libraries with operators, kernels or providers (kelp/plugin.h): "
             "FILE.so[,NAME=VALUE]…, separated by ':'"},
    {.name = "with-backend",
     .kind = KELP_OPTION_LIST,
     .offset = AT(with_backends),
     .value = "LIBRARY",
     .choices = "@file",
     .help = "serve a model NAME with this backend, libtriton_NAME.so, and the config.pbtxt in its "
             "directory or one of the two above; may be repeated"},
};
#undef AT

const kelp_arg_table kelp_serve_backends_table = {specs, KELP_COUNT(specs)};

void kelp_serve_backends_defaults(kelp_serve_backends *o) {
    o->gpu_fallback = "error";
    o->rate_limit = "off";
}

/* Returns the directory of backends of the prefix of this program if it exists: of an installation,
 * or of a build, which has "backends". */
static kelp_status *default_backends(char **out) {
    kelp_allocator allocator = kelp_allocator_system();
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    for (int level = 0; level < 2 && length > 0; level++) {
        while (length > 0 && program[length - 1] != '/')
            length--;
        length -= length > 0;
    }
    KELP_ASSERT(length < (ssize_t)sizeof program);
    if (length > 0) {
        program[length] = '\0';
        static const char *const names[] = {KELP_BACKENDS_DIR, "backends"};
        for (size_t i = 0; i < KELP_COUNT(names); i++) {
            KELP_TRY(kelp_fs_join(allocator, program, names[i], out));
            if (kelp_fs_kind_of(*out) == KELP_FS_DIRECTORY)
                return NULL;
            kelp_free_string(allocator, *out);
        }
    }
    return kelp_strdup(allocator, "/opt/tritonserver/backends", out);
}

/* Parses "[NAME,]KEY=VALUE". */
static kelp_status *set_backend_config(TRITONSERVER_ServerOptions *options, const char *text) {
    kelp_allocator allocator = kelp_allocator_system();
    char *copy;
    KELP_TRY(kelp_strdup(allocator, text, &copy));
    size_t size = strlen(text) + 1;
    char *equals = strchr(copy, '=');
    char *comma = strchr(copy, ',');
    kelp_status *status = NULL;
    if (equals == NULL || equals[1] == '\0' || comma == copy) {
        status = KELP_ERROR(KELP_INVALID_ARGUMENT,
                            "--backend-config option format is [NAME,]KEY=VALUE, found '%s'", text);
    } else {
        *equals = '\0';
        bool named = comma != NULL && comma < equals;
        if (named)
            *comma = '\0';
        status =
            kelp_serve_status(TRITONSERVER_ServerOptionsSetBackendConfig(
                                  options, named ? copy : "", named ? comma + 1 : copy, equals + 1),
                              "option '--backend-config'");
    }
    kelp_free(allocator, copy, size);
    return status;
}

/* Parses "NAME,KEY=VALUE". */
static kelp_status *set_host_policy(TRITONSERVER_ServerOptions *options, const char *text) {
    kelp_allocator allocator = kelp_allocator_system();
    char *copy;
    const char *comma = strchr(text, ',');
    const char *equals = comma != NULL ? strchr(comma, '=') : NULL;
    if (equals == NULL || comma == text)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "option '--host-policy': expected NAME,KEY=VALUE, found '%s'", text);
    KELP_TRY(kelp_strdup(allocator, text, &copy));
    copy[comma - text] = copy[equals - text] = '\0';
    kelp_status *status =
        kelp_serve_status(TRITONSERVER_ServerOptionsSetHostPolicy(
                              options, copy, copy + (comma - text) + 1, copy + (equals - text) + 1),
                          "option '--host-policy'");
    kelp_free(allocator, copy, strlen(text) + 1);
    return status;
}

/* Parses "NAME:COUNT[:DEVICE]". The name may contain colons. */
static kelp_status *set_rate_resource(TRITONSERVER_ServerOptions *options, const char *text) {
    kelp_allocator allocator = kelp_allocator_system();
    uint64_t count = 0, device = 0;
    char *copy;
    KELP_TRY(kelp_strdup(allocator, text, &copy));
    char *last = strrchr(copy, ':'), *first = last;
    bool valid = last != NULL && kelp_parse_u64(kelp_str_from(last + 1), &count);
    while (valid && first > copy && first[-1] >= '0' && first[-1] <= '9')
        first--;
    bool has_device = valid && first < last && first > copy && first[-1] == ':';
    if (has_device) {
        device = count;
        *last = '\0';
        last = first - 1;
        valid = kelp_parse_u64(kelp_str_from(first), &count) && device <= INT32_MAX;
    }
    if (valid)
        *last = '\0';
    kelp_status *status =
        valid && *copy
            ? kelp_serve_status(TRITONSERVER_ServerOptionsAddRateLimiterResource(
                                    options, copy, (size_t)count, has_device ? (int)device : -1),
                                "option '--rate-limit-resource'")
            : KELP_ERROR(KELP_INVALID_ARGUMENT,
                         "option '--rate-limit-resource': expected NAME:COUNT[:DEVICE], found '%s'",
                         text);
    kelp_free(allocator, copy, strlen(text) + 1);
    return status;
}

/* Sets the options for the instances of models. */
static kelp_status *fill_instances(const kelp_serve_backends *o,
                                   TRITONSERVER_ServerOptions *options) {
    for (size_t i = 0; i < o->host_policies.count; i++)
        KELP_TRY(set_host_policy(options, o->host_policies.items[i]));
    if (strcmp(o->gpu_fallback, "error") != 0)
        KELP_TRY(kelp_serve_set(TRITONSERVER_ServerOptionsSetBackendConfig(
            options, "", "gpu-fallback", o->gpu_fallback)));
    KELP_TRY(kelp_serve_set(TRITONSERVER_ServerOptionsSetRateLimiterMode(
        options, strcmp(o->rate_limit, "off") == 0 ? TRITONSERVER_RATE_LIMIT_OFF
                                                   : TRITONSERVER_RATE_LIMIT_EXEC_COUNT)));
    for (size_t i = 0; i < o->rate_resources.count; i++)
        KELP_TRY(set_rate_resource(options, o->rate_resources.items[i]));
    return NULL;
}

static kelp_status *set_backend_value(TRITONSERVER_ServerOptions *options, const char *backend,
                                      const char *key, const char *value) {
    return kelp_serve_set(TRITONSERVER_ServerOptionsSetBackendConfig(options, backend, key, value));
}

static kelp_status *set_directory(const kelp_serve_backends *o,
                                  TRITONSERVER_ServerOptions *options) {
    char *directory = NULL;
    if (o->backend_directory == NULL)
        KELP_TRY(default_backends(&directory));
    kelp_status *status =
        kelp_serve_status(TRITONSERVER_ServerOptionsSetBackendDirectory(
                              options, directory != NULL ? directory : o->backend_directory),
                          "option '--backend-directory'");
    kelp_free_string(kelp_allocator_system(), directory);
    return status;
}

kelp_status *kelp_serve_backends_apply(const kelp_serve_backends *o,
                                       TRITONSERVER_ServerOptions *options) {
    for (size_t i = 0; i < o->backend_config.count; i++)
        KELP_TRY(set_backend_config(options, o->backend_config.items[i]));
    if (o->onnx_engine != NULL)
        KELP_TRY(set_backend_value(options, "", "onnx-engine", o->onnx_engine));
    if (o->auto_batch)
        KELP_TRY(set_backend_value(options, "", "auto-batch", "true"));
    KELP_TRY(fill_instances(o, options));
    if (o->precision != NULL)
        KELP_TRY(set_backend_value(options, "kelp", "precision", o->precision));
    if (o->providers != NULL)
        KELP_TRY(set_backend_value(options, "kelp", "providers", o->providers));
    if (o->plugin != NULL)
        KELP_TRY(set_backend_value(options, "kelp", "plugin", o->plugin));
    return set_directory(o, options);
}
