/* SPDX-License-Identifier: Apache-2.0 */
/* kelp serve: serves a model repository over HTTP, with the options of Triton's server. The main
 * thread creates the server and waits for SIGINT or SIGTERM. It blocks both before it starts other
 * threads, so that only the signalfd receives them. */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/text/json.h"
#include "cli/with_backend.h"
#include "frontends/http/server.h"
#include "frontends/v2/service.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Limit of a reason in the table of models; the table should fit on a terminal. */
#define REASON_BYTES 80

typedef struct serve_options {
    kelp_arg_list positionals;
    kelp_arg_list repositories;
    const char *control_mode;
    kelp_arg_list load_models;
    int64_t poll_secs;
    bool strict_model_config;
    bool disable_auto_complete;
    const char *config_name;
    bool exit_on_error;
    int64_t exit_timeout_secs;
    int64_t drain_secs;
    bool strict_readiness;
    const char *id;
    int64_t load_threads;
    int64_t load_retries;
    bool namespacing;
    const char *backend_directory;
    kelp_arg_list backend_config;
    const char *onnx_engine;
    bool auto_batch;
    kelp_arg_list host_policies;
    const char *gpu_fallback;
    const char *rate_limit;
    kelp_arg_list rate_resources;
    const char *precision, *providers, *plugin;
    kelp_arg_list cache_config, metrics_config;
    const char *cache_directory;
    const char *repoagent_directory;
    kelp_arg_list with_backends;
    char *with_repository; /* repository of the models of with_backends */
    bool allow_http;
    const char *http_address;
    int64_t http_port;
    int64_t http_threads;
    bool reuse_port;
    int64_t http_max_input_size;
    bool allow_grpc;
    bool allow_metrics;
    int64_t log_verbose;
    bool log_info, log_warning, log_error;
    const char *log_format;
    const char *log_file;
} serve_options;

#define AT(member) offsetof(serve_options, member)
static const kelp_arg_spec specs[] = {
    {.group = "Models",
     .name = "model-repository",
     .kind = KELP_OPTION_LIST,
     .offset = AT(repositories),
     .value = "DIR",
     .choices = "@dir",
     .help = "model repository with <model>/<version>/…; may be repeated"},
    {.name = "model-store",
     .kind = KELP_OPTION_LIST,
     .offset = AT(repositories),
     .value = "DIR",
     .choices = "@dir",
     .help = "alias of --model-repository"},
    {.name = "model-control-mode",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(control_mode),
     .value = "MODE",
     .choices = "none|explicit|poll",
     .help = "none: load all models at startup (default); explicit: load the models of "
             "--load-model, then on request; poll: reload models when the repository changes"},
    {.name = "load-model",
     .kind = KELP_OPTION_LIST,
     .offset = AT(load_models),
     .value = "NAME",
     .help = "model to load at startup in explicit mode, * for all; may be repeated"},
    {.name = "repository-poll-secs",
     .kind = KELP_ARG_I64,
     .offset = AT(poll_secs),
     .value = "N",
     .min = 1,
     .max = 86400,
     .help = "poll interval of the repository in poll mode, in seconds (15)"},
    {.name = "strict-model-config",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(strict_model_config),
     .help = "do not complete config.pbtxt from the model (false)"},
    {.name = "disable-auto-complete-config",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(disable_auto_complete),
     .help = "alias of --strict-model-config"},
    {.name = "model-config-name",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(config_name),
     .value = "NAME",
     .help = "use configs/NAME.pbtxt of a model if it exists"},
    {.name = "model-load-thread-count",
     .kind = KELP_ARG_I64,
     .offset = AT(load_threads),
     .value = "N",
     .min = 1,
     .max = 256,
     .help = "number of models to load in parallel (4)"},
    {.name = "model-load-retry-count",
     .kind = KELP_ARG_I64,
     .offset = AT(load_retries),
     .value = "N",
     .min = 0,
     .max = 1000,
     .help = "number of retries if a model does not load (0)"},
    {.name = "model-namespacing",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(namespacing),
     .help = "allow models with the same name in different repositories (false)"},
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
    {.group = "Caches and repository agents",
     .name = "cache-config",
     .kind = KELP_OPTION_LIST,
     .offset = AT(cache_config),
     .value = "NAME,KEY=VALUE",
     .help = "response cache NAME and one of its settings, for models that enable response_cache; "
             "local,size=BYTES is built in; may be repeated"},
    {.name = "cache-directory",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(cache_directory),
     .value = "DIR",
     .choices = "@dir",
     .help = "directory with NAME/libtritoncache_NAME.so (/opt/tritonserver/caches)"},
    {.name = "repoagent-directory",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(repoagent_directory),
     .value = "DIR",
     .choices = "@dir",
     .help = "directory with NAME/libtritonrepoagent_NAME.so (/opt/tritonserver/repoagents)"},
    {.group = "Server",
     .name = "id",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(id),
     .value = "NAME",
     .help = "name of the server in its metadata"},
    {.name = "exit-on-error",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(exit_on_error),
     .help = "exit if a model does not load at startup (true); false serves the other models"},
    {.name = "exit-timeout-secs",
     .kind = KELP_ARG_I64,
     .offset = AT(exit_timeout_secs),
     .value = "N",
     .min = 0,
     .max = 86400,
     .help = "time limit for requests in flight at shutdown, in seconds (30)"},
    {.name = "drain-secs",
     .kind = KELP_ARG_I64,
     .offset = AT(drain_secs),
     .value = "N",
     .min = 0,
     .max = 86400,
     .help = "after SIGTERM, keep serving for N seconds and answer readiness with 503, so that "
             "load balancers notice (0)"},
    {.name = "strict-readiness",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(strict_readiness),
     .help = "the server is ready only if all models are ready (true)"},
    {.group = "HTTP",
     .name = "allow-http",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(allow_http),
     .help = "serve HTTP (true)"},
    {.name = "http-address",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(http_address),
     .value = "ADDRESS",
     .help = "address to listen on, or unix:/path (0.0.0.0)"},
    {.name = "http-port",
     .kind = KELP_ARG_I64,
     .offset = AT(http_port),
     .value = "PORT",
     .min = 0,
     .max = 65535,
     .help = "port to listen on, 0 for a free one (8000)"},
    {.name = "http-thread-count",
     .kind = KELP_ARG_I64,
     .offset = AT(http_threads),
     .value = "N",
     .min = 1,
     .max = 256,
     .help = "event loops (CPUs, at most 8)"},
    {.name = "reuse-http-port",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(reuse_port),
     .help = "allow several servers on one port (false)"},
    {.name = "http-max-input-size",
     .kind = KELP_ARG_I64,
     .offset = AT(http_max_input_size),
     .value = "BYTES",
     .min = 1,
     .max = INT64_MAX,
     .help = "maximum size of a body without binary tensors (67108864)"},
    {.name = "allow-grpc",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(allow_grpc),
     .help = "not supported: there is no gRPC (false)"},
    {.name = "allow-metrics",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(allow_metrics),
     .help = "collect metrics (true)"},
    {.name = "metrics-config",
     .kind = KELP_OPTION_LIST,
     .offset = AT(metrics_config),
     .value = "KEY=VALUE",
     .help = "summary_latencies, histogram_latencies, counter_latencies (true or false), "
             "summary_quantiles (0.5:0.05,0.9:0.01); may be repeated"},
    {.group = "Log",
     .name = "log-verbose",
     .kind = KELP_ARG_I64,
     .offset = AT(log_verbose),
     .value = "LEVEL",
     .min = 0,
     .max = 9,
     .help = "log verbose messages up to this level (0)"},
    {.name = "log-info",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(log_info),
     .help = "log information (true)"},
    {.name = "log-warning",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(log_warning),
     .help = "log warnings (true)"},
    {.name = "log-error",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(log_error),
     .help = "log errors (true)"},
    {.name = "log-format",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(log_format),
     .value = "FORMAT",
     .choices = "default|ISO8601|json",
     .help = "format of the log"},
    {.name = "log-file",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(log_file),
     .value = "FILE",
     .choices = "@file",
     .help = "log file (stderr)"},
};
#undef AT

static void defaults(void *options) {
    serve_options *o = options;
    o->control_mode = "none";
    o->poll_secs = 15;
    o->exit_on_error = true;
    o->exit_timeout_secs = 30;
    o->strict_readiness = true;
    o->allow_http = true;
    o->http_address = "0.0.0.0";
    o->http_port = 8000;
    o->load_threads = 4;
    o->gpu_fallback = "error";
    o->rate_limit = "off";
    o->allow_metrics = true;
    o->log_info = o->log_warning = o->log_error = true;
    o->log_format = "default";
}

/* Converts an error of Triton's API to a status. */
static kelp_status *from_triton(TRITONSERVER_Error *take_error, const char *doing) {
    if (take_error == NULL)
        return NULL;
    kelp_status *status =
        KELP_ERROR(KELP_INTERNAL, "%s: %s", doing, TRITONSERVER_ErrorMessage(take_error));
    TRITONSERVER_ErrorDelete(take_error);
    return status;
}

/* Returns ../backends of the program's directory if it exists, in an installation or a build. */
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
        KELP_TRY(kelp_fs_join(allocator, program, "backends", out));
        if (kelp_fs_kind_of(*out) == KELP_FS_DIRECTORY)
            return NULL;
        kelp_free_string(allocator, *out);
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
    if (equals == NULL) {
        status =
            KELP_ERROR(KELP_INVALID_ARGUMENT,
                       "option '--backend-config': expected [NAME,]KEY=VALUE, found '%s'", text);
    } else {
        *equals = '\0';
        bool named = comma != NULL && comma < equals;
        if (named)
            *comma = '\0';
        status = from_triton(TRITONSERVER_ServerOptionsSetBackendConfig(
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
        from_triton(TRITONSERVER_ServerOptionsSetHostPolicy(
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
            ? from_triton(TRITONSERVER_ServerOptionsAddRateLimiterResource(
                              options, copy, (size_t)count, has_device ? (int)device : -1),
                          "option '--rate-limit-resource'")
            : KELP_ERROR(KELP_INVALID_ARGUMENT,
                         "option '--rate-limit-resource': expected NAME:COUNT[:DEVICE], found '%s'",
                         text);
    kelp_free(allocator, copy, strlen(text) + 1);
    return status;
}

static kelp_status *set_metrics_config(TRITONSERVER_ServerOptions *options, const char *text) {
    static const char *const known[] = {"summary_latencies", "histogram_latencies",
                                        "counter_latencies", "summary_quantiles"};
    const char *equals = strchr(text, '=');
    for (size_t i = 0; equals != NULL && i < sizeof known / sizeof known[0]; i++)
        if (strlen(known[i]) == (size_t)(equals - text) &&
            memcmp(text, known[i], (size_t)(equals - text)) == 0)
            return from_triton(
                TRITONSERVER_ServerOptionsSetMetricsConfig(options, "", known[i], equals + 1),
                "option '--metrics-config'");
    return KELP_ERROR(
        KELP_INVALID_ARGUMENT,
        "option '--metrics-config': expected KEY=VALUE with KEY one of %s, %s, %s, %s, found '%s'",
        known[0], known[1], known[2], known[3], text);
}

/* Converts all "NAME,KEY=VALUE" to one JSON object. INVALID_ARGUMENT if they name different caches.
 */
static kelp_status *set_caches(const kelp_arg_list *list, TRITONSERVER_ServerOptions *options) {
    if (list->count == 0)
        return NULL;
    kelp_str name = {0};
    kelp_buf json, owner;
    kelp_json_writer writer;
    kelp_buf_init(&json, kelp_allocator_system());
    kelp_buf_init(&owner, kelp_allocator_system());
    kelp_json_writer_init(&writer, &json);
    kelp_json_begin_object(&writer);
    kelp_status *status = NULL;
    for (size_t i = 0; i < list->count && status == NULL; i++) {
        const char *text = list->items[i];
        const char *comma = strchr(text, ','), *equals = comma != NULL ? strchr(comma, '=') : NULL;
        kelp_str mine = {text, comma != NULL ? (size_t)(comma - text) : 0};
        if (equals == NULL || mine.length == 0)
            status =
                KELP_ERROR(KELP_INVALID_ARGUMENT,
                           "option '--cache-config': expected NAME,KEY=VALUE, found '%s'", text);
        else if (name.length && !kelp_str_equal(name, mine))
            status = KELP_ERROR(KELP_INVALID_ARGUMENT,
                                "option '--cache-config': '%s' names a second cache", text);
        if (status != NULL)
            break;
        name = mine;
        kelp_buf key;
        kelp_buf_init(&key, kelp_allocator_system());
        kelp_buf_append(&key, comma + 1, (size_t)(equals - comma - 1));
        if (kelp_buf_cstr(&key) != NULL)
            kelp_json_key(&writer, key.data);
        kelp_buf_deinit(&key);
        kelp_json_put_cstr(&writer, equals + 1);
    }
    kelp_json_end_object(&writer);
    kelp_buf_append_str(&owner, name);
    if (status == NULL && (kelp_buf_cstr(&json) == NULL || kelp_buf_cstr(&owner) == NULL))
        status = kelp_status_oom();
    if (status == NULL)
        status =
            from_triton(TRITONSERVER_ServerOptionsSetCacheConfig(options, owner.data, json.data),
                        "option '--cache-config'");
    kelp_buf_deinit(&json);
    kelp_buf_deinit(&owner);
    return status;
}

static TRITONSERVER_ModelControlMode control_mode(const char *name) {
    return !strcmp(name, "explicit") ? TRITONSERVER_MODEL_CONTROL_EXPLICIT
           : !strcmp(name, "poll")   ? TRITONSERVER_MODEL_CONTROL_POLL
                                     : TRITONSERVER_MODEL_CONTROL_NONE;
}

static TRITONSERVER_LogFormat log_format(const char *name) {
    /* 2 is an extension: lines of JSON. */
    return !strcmp(name, "json")      ? (TRITONSERVER_LogFormat)KELP_LOG_JSON
           : !strcmp(name, "ISO8601") ? TRITONSERVER_LOG_ISO8601
                                      : TRITONSERVER_LOG_DEFAULT;
}

static kelp_status *set(TRITONSERVER_Error *take_error) {
    return from_triton(take_error, "cannot set the server's options");
}

static kelp_status *fill_log(const serve_options *o, TRITONSERVER_ServerOptions *options) {
    KELP_TRY(set(TRITONSERVER_ServerOptionsSetLogFormat(options, log_format(o->log_format))));
    KELP_TRY(set(TRITONSERVER_ServerOptionsSetLogInfo(options, o->log_info)));
    KELP_TRY(set(TRITONSERVER_ServerOptionsSetLogWarn(options, o->log_warning)));
    KELP_TRY(set(TRITONSERVER_ServerOptionsSetLogError(options, o->log_error)));
    KELP_TRY(set(TRITONSERVER_ServerOptionsSetLogVerbose(options, (int)o->log_verbose)));
    if (o->log_file != NULL)
        KELP_TRY(set(TRITONSERVER_ServerOptionsSetLogFile(options, o->log_file)));
    return NULL;
}

/* Adds the models of --with-backend to the startup models of explicit mode. */
static kelp_status *start_with_backends(const serve_options *o,
                                        TRITONSERVER_ServerOptions *options) {
    kelp_fs_names names;
    if (o->with_repository == NULL || strcmp(o->control_mode, "explicit"))
        return NULL;
    for (size_t i = 0; i < o->load_models.count; i++) {
        if (!strcmp(o->load_models.items[i],
                    "*")) /* '*' loads all models and must be the only one */
            return NULL;
    }
    KELP_TRY(kelp_fs_list(kelp_allocator_system(), o->with_repository, &names));
    kelp_status *status = NULL;
    for (size_t i = 0; i < names.count && status == NULL; i++)
        status = from_triton(TRITONSERVER_ServerOptionsSetStartupModel(options, names.items[i]),
                             "option '--with-backend'");
    kelp_fs_names_deinit(&names);
    return status;
}

/* Sets the options for the instances of models. */
static kelp_status *fill_instances(const serve_options *o, TRITONSERVER_ServerOptions *options) {
    for (size_t i = 0; i < o->host_policies.count; i++)
        KELP_TRY(set_host_policy(options, o->host_policies.items[i]));
    if (strcmp(o->gpu_fallback, "error") != 0)
        KELP_TRY(set(TRITONSERVER_ServerOptionsSetBackendConfig(options, "", "gpu-fallback",
                                                                o->gpu_fallback)));
    KELP_TRY(set(TRITONSERVER_ServerOptionsSetRateLimiterMode(
        options, strcmp(o->rate_limit, "off") == 0 ? TRITONSERVER_RATE_LIMIT_OFF
                                                   : TRITONSERVER_RATE_LIMIT_EXEC_COUNT)));
    for (size_t i = 0; i < o->rate_resources.count; i++)
        KELP_TRY(set_rate_resource(options, o->rate_resources.items[i]));
    return NULL;
}

static kelp_status *fill_options(const serve_options *o, TRITONSERVER_ServerOptions *options) {
    KELP_TRY(fill_log(o, options));
    for (size_t i = 0; i < o->repositories.count; i++)
        KELP_TRY(set(
            TRITONSERVER_ServerOptionsSetModelRepositoryPath(options, o->repositories.items[i])));
    if (o->with_repository != NULL)
        KELP_TRY(
            set(TRITONSERVER_ServerOptionsSetModelRepositoryPath(options, o->with_repository)));
    KELP_TRY(
        set(TRITONSERVER_ServerOptionsSetModelControlMode(options, control_mode(o->control_mode))));
    for (size_t i = 0; i < o->load_models.count; i++)
        KELP_TRY(set(TRITONSERVER_ServerOptionsSetStartupModel(options, o->load_models.items[i])));
    KELP_TRY(start_with_backends(o, options));
    KELP_TRY(set(TRITONSERVER_ServerOptionsSetStrictModelConfig(
        options, o->strict_model_config || o->disable_auto_complete)));
    if (o->config_name != NULL)
        KELP_TRY(set(TRITONSERVER_ServerOptionsSetModelConfigName(options, o->config_name)));
    if (o->id != NULL)
        KELP_TRY(set(TRITONSERVER_ServerOptionsSetServerId(options, o->id)));
    KELP_TRY(set(TRITONSERVER_ServerOptionsSetExitOnError(options, o->exit_on_error)));
    KELP_TRY(
        set(TRITONSERVER_ServerOptionsSetExitTimeout(options, (unsigned)o->exit_timeout_secs)));
    KELP_TRY(set(TRITONSERVER_ServerOptionsSetStrictReadiness(options, o->strict_readiness)));
    KELP_TRY(
        set(TRITONSERVER_ServerOptionsSetModelLoadThreadCount(options, (unsigned)o->load_threads)));
    if (o->load_retries)
        KELP_TRY(set(
            TRITONSERVER_ServerOptionsSetModelLoadRetryCount(options, (unsigned)o->load_retries)));
    if (o->namespacing)
        KELP_TRY(set(TRITONSERVER_ServerOptionsSetModelNamespacing(options, true)));
    KELP_TRY(set(TRITONSERVER_ServerOptionsSetMetrics(options, o->allow_metrics)));
    for (size_t i = 0; i < o->backend_config.count; i++)
        KELP_TRY(set_backend_config(options, o->backend_config.items[i]));
    for (size_t i = 0; i < o->metrics_config.count; i++)
        KELP_TRY(set_metrics_config(options, o->metrics_config.items[i]));
    if (o->onnx_engine != NULL)
        KELP_TRY(set(TRITONSERVER_ServerOptionsSetBackendConfig(options, "", "onnx-engine",
                                                                o->onnx_engine)));
    if (o->auto_batch)
        KELP_TRY(
            set(TRITONSERVER_ServerOptionsSetBackendConfig(options, "", "auto-batch", "true")));
    KELP_TRY(fill_instances(o, options));
    if (o->precision != NULL)
        KELP_TRY(set(TRITONSERVER_ServerOptionsSetBackendConfig(options, "kelp", "precision",
                                                                o->precision)));
    if (o->providers != NULL)
        KELP_TRY(set(TRITONSERVER_ServerOptionsSetBackendConfig(options, "kelp", "providers",
                                                                o->providers)));
    if (o->plugin != NULL)
        KELP_TRY(
            set(TRITONSERVER_ServerOptionsSetBackendConfig(options, "kelp", "plugin", o->plugin)));
    KELP_TRY(set_caches(&o->cache_config, options));
    if (o->cache_directory != NULL)
        KELP_TRY(set(TRITONSERVER_ServerOptionsSetCacheDirectory(options, o->cache_directory)));
    if (o->repoagent_directory != NULL)
        KELP_TRY(
            set(TRITONSERVER_ServerOptionsSetRepoAgentDirectory(options, o->repoagent_directory)));
    char *backends = NULL;
    if (o->backend_directory == NULL)
        KELP_TRY(default_backends(&backends));
    kelp_status *status =
        from_triton(TRITONSERVER_ServerOptionsSetBackendDirectory(
                        options, backends != NULL ? backends : o->backend_directory),
                    "option '--backend-directory'");
    kelp_free_string(kelp_allocator_system(), backends);
    return status;
}

static kelp_status *make_core(const serve_options *o, TRITONSERVER_Server **out) {
    TRITONSERVER_ServerOptions *options = NULL;
    KELP_TRY(set(TRITONSERVER_ServerOptionsNew(&options)));
    kelp_status *status = fill_options(o, options);
    if (status == NULL)
        status = from_triton(TRITONSERVER_ServerNew(out, options), "cannot start the server");
    TRITONSERVER_Error *error = TRITONSERVER_ServerOptionsDelete(options);
    if (error != NULL)
        TRITONSERVER_ErrorDelete(error);
    return status;
}

static kelp_str member(const kelp_json *object, const char *key) {
    const kelp_json *found = kelp_json_get(object, key);
    return found != NULL && found->type == KELP_JSON_STRING ? found->string : KELP_STR("");
}

/* Returns the number of bytes of a message that fit into a cell of the table. */
static size_t cell_bytes(kelp_str text) {
    size_t length = KELP_MIN(text.length, (size_t)REASON_BYTES);
    const char *line = memchr(text.data, '\n', length);
    if (line != NULL)
        length = (size_t)(line - text.data);
    while (length > 0 && length < text.length && ((unsigned char)text.data[length] & 0xC0) == 0x80)
        length--; /* inside of a UTF-8 character */
    return length;
}

/* Appends the table of models, as Triton prints it at startup. The log has the full reasons. */
static kelp_status *append_models(TRITONSERVER_Server *core, kelp_arena *arena, kelp_buf *out) {
    TRITONSERVER_Message *index = NULL;
    KELP_TRY(from_triton(TRITONSERVER_ServerModelIndex(core, 0, &index), "cannot list the models"));
    const char *text = NULL;
    size_t length = 0;
    kelp_json *models = NULL;
    kelp_status *status = from_triton(TRITONSERVER_MessageSerializeToJson(index, &text, &length),
                                      "cannot list the models");
    if (status == NULL)
        status = kelp_json_parse(arena, "model index", text, length, &models);
    if (status == NULL) {
        kelp_table table;
        kelp_table_init(&table, 3);
        kelp_table_cell(&table, "Model");
        kelp_table_cell(&table, "Version");
        kelp_table_cell(&table, "Status");
        for (const kelp_json *model = models->child; model != NULL; model = model->next) {
            kelp_str version = member(model, "version"), state = member(model, "state"),
                     reason = member(model, "reason");
            kelp_table_cell(&table, "%.*s", KELP_STR_ARG(member(model, "name")));
            kelp_table_cell(&table, "%.*s", KELP_STR_ARG(version.length ? version : KELP_STR("-")));
            size_t shown = reason.length > 0 ? cell_bytes(reason) : 0;
            kelp_table_cell(&table, "%.*s%s%.*s%s",
                            KELP_STR_ARG(state.length ? state : KELP_STR("not loaded")),
                            reason.length ? ": " : "", (int)shown, reason.data,
                            shown < reason.length ? "…" : "");
        }
        kelp_table_framed(&table, out);
    }
    TRITONSERVER_Error *error = TRITONSERVER_MessageDelete(index);
    if (error != NULL)
        TRITONSERVER_ErrorDelete(error);
    return status;
}

static kelp_status *announce(const serve_options *o, TRITONSERVER_Server *core,
                             const kelp_http_server *http) {
    kelp_arena arena;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_status *status = append_models(core, &arena, &text);
    if (status == NULL && http != NULL) {
        const char *address = o->http_address;
        if (!strncmp(address, "unix:", 5))
            kelp_buf_printf(&text, "HTTP  %s\n", address);
        else if (!strcmp(address, "0.0.0.0") || !strcmp(address, "::"))
            kelp_buf_printf(&text, "HTTP  http://127.0.0.1:%u (all addresses)\n",
                            kelp_http_server_port(http, 0));
        else
            kelp_buf_printf(&text,
                            strchr(address, ':') != NULL ? "HTTP  http://[%s]:%u\n"
                                                         : "HTTP  http://%s:%u\n",
                            address, kelp_http_server_port(http, 0));
    }
    if (status == NULL)
        status = kelp_cli_print(&text);
    kelp_buf_deinit(&text);
    kelp_arena_deinit(&arena);
    return status;
}

/* The front end writes to the log of the server. */
static void log_to_core(void *userp, kelp_log_level level, const char *file, int line,
                        const char *text, size_t length) {
    static const TRITONSERVER_LogLevel levels[] = {TRITONSERVER_LOG_ERROR, TRITONSERVER_LOG_WARN,
                                                   TRITONSERVER_LOG_INFO, TRITONSERVER_LOG_VERBOSE};
    (void)userp;
    char message[2048];
    snprintf(message, sizeof message, "%.*s", (int)KELP_MIN(length, sizeof message - 1), text);
    TRITONSERVER_Error *error =
        TRITONSERVER_LogMessage(levels[(unsigned)level & 3u], file, line, message);
    if (error != NULL)
        TRITONSERVER_ErrorDelete(error);
}

/* Returns true if only processes of this machine can connect. */
static bool is_local(const char *address) {
    return !strncmp(address, "unix:", 5) || !strncmp(address, "127.", 4) ||
           !strcmp(address, "::1") || !strcmp(address, "localhost");
}

static kelp_status *start_http(const serve_options *o, TRITONSERVER_Server *core,
                               kelp_shm_registry **out_shm, kelp_http_handler **out_handler,
                               kelp_http_server **out) {
    KELP_ASSERT(o->http_port >= 0 && o->http_port <= UINT16_MAX);
    kelp_http_endpoint endpoint = {
        .address = o->http_address, .port = (uint16_t)o->http_port, .services = UINT32_MAX};
    kelp_http_server_options options = {
        .endpoints = &endpoint,
        .endpoint_count = 1,
        .threads = (uint32_t)o->http_threads,
        .reuse_port = o->reuse_port,
        .logger = {.fn = log_to_core,
                   .level = o->log_verbose ? KELP_LOG_VERBOSE : KELP_LOG_INFO,
                   .verbosity = (int)o->log_verbose},
    };
    KELP_TRY(kelp_shm_create(kelp_allocator_system(), is_local(o->http_address), out_shm));
    kelp_v2_options v2 = {.max_input_size_bytes = (uint64_t)o->http_max_input_size,
                          .shm = *out_shm};
    KELP_TRY(kelp_v2_create(core, &v2, out_handler));
    KELP_TRY(kelp_http_server_create(out_handler, 1, &options, out));
    return kelp_http_server_start(*out);
}

/* Returns after SIGINT or SIGTERM. Polls the repository in poll mode. */
static kelp_status *wait_for_signal(const serve_options *o, TRITONSERVER_Server *core, int signals,
                                    int *out_signal) {
    KELP_ASSERT(signals >= 0);
    bool polls = !strcmp(o->control_mode, "poll");
    for (;;) {
        struct pollfd fd = {.fd = signals, .events = POLLIN};
        int ready = poll(&fd, 1, polls ? (int)o->poll_secs * 1000 : -1);
        struct signalfd_siginfo taken;
        if (ready > 0 && read(signals, &taken, sizeof taken) == (ssize_t)sizeof taken) {
            *out_signal = (int)taken.ssi_signo;
            return NULL;
        }
        if (ready < 0 && errno != EINTR)
            return KELP_ERROR(KELP_INTERNAL, "cannot wait for signals: %s", strerror(errno));
        if (ready == 0) {
            TRITONSERVER_Error *error = TRITONSERVER_ServerPollModelRepository(core);
            if (error != NULL) {
                fprintf(stderr, "kelp: cannot poll the repository: %s\n",
                        TRITONSERVER_ErrorMessage(error));
                TRITONSERVER_ErrorDelete(error);
            }
        }
    }
}

static kelp_status *block_signals(int *out_fd) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    signal(SIGPIPE, SIG_IGN);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
        return KELP_ERROR(KELP_INTERNAL, "cannot block signals");
    *out_fd = signalfd(-1, &set, SFD_CLOEXEC);
    if (*out_fd < 0)
        return KELP_ERROR(KELP_INTERNAL, "cannot create a signal descriptor: %s", strerror(errno));
    return NULL;
}

/* A second signal during the shutdown ends the process immediately. */
static void unblock_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Keeps serving while load balancers notice that the server is not ready. */
static void drain(const serve_options *o, kelp_http_handler *handler) {
    uint64_t end_ns = kelp_now_ns() + (uint64_t)o->drain_secs * 1000000000u;
    fprintf(stderr, "kelp: not ready, stopping in %lld s\n", (long long)o->drain_secs);
    kelp_v2_drain(handler);
    for (uint64_t now_ns = kelp_now_ns(); now_ns < end_ns; now_ns = kelp_now_ns())
        (void)poll(NULL, 0, (int)KELP_MIN((end_ns - now_ns) / 1000000 + 1, 1000u));
}

/* Keeps the first failure and prints the others. */
static void keep_first(kelp_status **inout_first, kelp_status *take_next) {
    if (*inout_first == NULL)
        *inout_first = take_next;
    else if (take_next != NULL)
        (void)kelp_cli_finish(take_next);
}

/* Stops the models. If all requests are over, models have at least a second to unload. */
static void stop_core(TRITONSERVER_Server *core, uint64_t deadline_ns, bool over,
                      kelp_status **inout_first) {
    uint64_t now_ns = kelp_now_ns();
    uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    unsigned left_s = (unsigned)(left_ns / 1000000000);
    if (over)
        left_s = KELP_MAX(left_s, 1u);
    keep_first(inout_first, set(TRITONSERVER_ServerSetExitTimeout(core, left_s)));
    kelp_status *status = from_triton(TRITONSERVER_ServerStop(core), "cannot stop the server");
    if (status != NULL) /* ServerDelete would wait again */
        keep_first(inout_first, set(TRITONSERVER_ServerSetExitTimeout(core, 0)));
    keep_first(inout_first, status);
}

/* Stops the front end and then the server. The exit timeout is for both together. */
static void stop(const serve_options *o, TRITONSERVER_Server *core, kelp_http_server *http,
                 kelp_status **inout_first) {
    uint64_t timeout_ns = (uint64_t)o->exit_timeout_secs * 1000000000u;
    uint64_t deadline_ns = kelp_now_ns() + timeout_ns;
    uint64_t unload_ns = KELP_MIN(timeout_ns / 8, 1000000000u); /* for the models */
    kelp_status *status = NULL;
    if (http != NULL)
        status = kelp_http_server_stop(http, timeout_ns - unload_ns);
    bool over = status == NULL;
    keep_first(inout_first, status);
    if (core != NULL)
        stop_core(core, deadline_ns, over, inout_first);
    kelp_http_server_destroy(http);
    if (core != NULL)
        keep_first(inout_first,
                   from_triton(TRITONSERVER_ServerDelete(core), "cannot delete the server"));
}

/* Limits the number of heaps of glibc, which otherwise has up to 8 for each CPU: a thread that
 * loads a model often uses another one than the thread that frees it, so that reloads use more and
 * more memory. Serving a request does not allocate. */
static void limit_heaps(void) {
#ifdef M_ARENA_MAX
    (void)mallopt(M_ARENA_MAX, 2);
#endif
}

static int run(const kelp_command *command, void *options) {
    serve_options *o = options;
    limit_heaps();
    if (o->repositories.count == 0 && o->with_backends.count == 0)
        return kelp_cli_usage(
            command, KELP_ERROR(KELP_INVALID_ARGUMENT, "missing option '--model-repository'"));
    if (o->allow_grpc)
        return kelp_cli_usage(command,
                              KELP_ERROR(KELP_UNIMPLEMENTED,
                                         "option '--allow-grpc': gRPC is not supported; use HTTP"));
    if (o->load_models.count && strcmp(o->control_mode, "explicit"))
        return kelp_cli_usage(
            command, KELP_ERROR(KELP_INVALID_ARGUMENT,
                                "option '--load-model' requires '--model-control-mode explicit'"));
    int signals = -1;
    TRITONSERVER_Server *core = NULL;
    kelp_http_server *http = NULL;
    kelp_http_handler *handler = NULL;
    kelp_shm_registry *shm = NULL;
    int signal_number = 0;
    kelp_status *status = block_signals(&signals);
    if (status == NULL && o->with_backends.count)
        status = kelp_with_backend_make(&o->with_backends, &o->with_repository);
    if (status == NULL)
        status = make_core(o, &core);
    if (status == NULL && o->allow_http)
        status = start_http(o, core, &shm, &handler, &http);
    if (status == NULL)
        status = announce(o, core, http);
    if (status == NULL) {
        status = wait_for_signal(o, core, signals, &signal_number);
        unblock_signals();
        if (http != NULL && signal_number == SIGTERM && o->drain_secs > 0)
            drain(o, handler);
        if (http != NULL)
            kelp_v2_drain(handler); /* requests that are still answered */
        fprintf(stderr, "kelp: stopping\n");
    }
    stop(o, core, http, &status);
    kelp_shm_destroy(shm);
    kelp_with_backend_remove(o->with_repository);
    if (signals >= 0)
        close(signals);
    return kelp_cli_finish(status);
}

const kelp_command kelp_cmd_serve = {
    .name = "serve",
    .summary = "serve a model repository over HTTP",
    .usage = "--model-repository DIR [options]",
    .details = "Implements the KServe v2 protocol with Triton's extensions. Options have Triton's "
               "names. SIGINT or\nSIGTERM stops the server after the requests in flight.",
    .examples =
        "  kelp serve --model-repository examples/models\n"
        "  kelp serve --model-repository models --http-port 0 --exit-on-error=false\n"
        "  kelp serve --model-repository models --model-control-mode explicit --load-model digits\n"
        "  kelp serve --with-backend build/libtriton_my_backend.so\n"
        "  curl -s localhost:8000/v2/models/digits/infer -d @examples/requests/digits.json",
    .positional = "",
    .specs = specs,
    .spec_count = KELP_COUNT(specs),
    .options_bytes = sizeof(serve_options),
    .defaults = defaults,
    .run = run,
};
