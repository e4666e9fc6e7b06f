/* SPDX-License-Identifier: Apache-2.0 */
/* The C API: server options. Options without an effect, such as GPU pools, are accepted and stored.
 */
#include "server/core/options.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/str.h"
#include "server/core/error.h"
#include "server/core/heap.h"

#include <stdio.h>
#include <string.h>

static TRITONSERVER_Error *set_string(const char *function, char **inout, const char *value) {
    if (value == NULL)
        return kelp_null_error(function, "value");
    char *copy = NULL;
    KELP_ASSERT(*inout != NULL); /* kelp_server_options_create sets the default */
    kelp_allocator heap = kelp_process_allocator();
    kelp_status *status = kelp_strdup(heap, value, &copy);
    if (status != NULL)
        return kelp_to_error(status);
    kelp_free_string(heap, *inout);
    *inout = copy;
    return NULL;
}

static TRITONSERVER_Error *set_setting(const char *function, kelp_settings *settings,
                                       const char *owner, const char *name, const char *value) {
    if (owner == NULL || name == NULL || value == NULL)
        return kelp_null_error(function, owner == NULL  ? "name"
                                         : name == NULL ? "setting"
                                                        : "value");
    return kelp_to_error(kelp_settings_set(settings, owner, name, value));
}

static TRITONSERVER_Error *set_number(const char *function, kelp_settings *settings,
                                      const char *owner, int device, double value) {
    char name[32], text[64];
    snprintf(name, sizeof name, "%d", device);
    snprintf(text, sizeof text, "%.17g", value);
    kelp_plain_radix(text);
    return set_setting(function, settings, owner, name, text);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsNew(TRITONSERVER_ServerOptions **options) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    return kelp_to_error(
        kelp_server_options_create(kelp_process_allocator(), (kelp_server_options **)options));
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsDelete(TRITONSERVER_ServerOptions *options) {
    kelp_server_options_destroy((kelp_server_options *)options);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetServerId(TRITONSERVER_ServerOptions *options,
                                                          const char *server_id) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    return set_string(__func__, &o->server_id, server_id);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelRepositoryPath(TRITONSERVER_ServerOptions *options,
                                                 const char *model_repository_path) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    if (model_repository_path == NULL)
        return kelp_null_error(__func__, "model_repository_path");
    if (kelp_string_list_has(&o->repositories, model_repository_path))
        return NULL;
    return kelp_to_error(kelp_string_list_add(&o->repositories, model_repository_path));
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelControlMode(TRITONSERVER_ServerOptions *options,
                                              TRITONSERVER_ModelControlMode mode) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    if ((unsigned)mode > TRITONSERVER_MODEL_CONTROL_EXPLICIT)
        return kelp_to_error(
            KELP_ERROR(KELP_INVALID_ARGUMENT, "unknown control mode '%d'", (int)mode));
    o->control_mode = mode;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetStartupModel(TRITONSERVER_ServerOptions *options,
                                                              const char *model_name) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    if (model_name == NULL)
        return kelp_null_error(__func__, "model_name");
    if (kelp_string_list_has(&o->startup_models, model_name))
        return NULL;
    return kelp_to_error(kelp_string_list_add(&o->startup_models, model_name));
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetStrictModelConfig(TRITONSERVER_ServerOptions *options, bool strict) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    o->strict_model_config = strict;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelConfigName(TRITONSERVER_ServerOptions *options,
                                             const char *model_config_name) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    return set_string(__func__, &o->model_config_name, model_config_name);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetRateLimiterMode(TRITONSERVER_ServerOptions *options,
                                             TRITONSERVER_RateLimitMode mode) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    if ((unsigned)mode > TRITONSERVER_RATE_LIMIT_EXEC_COUNT)
        return kelp_to_error(
            KELP_ERROR(KELP_INVALID_ARGUMENT, "unknown rate limit mode '%d'", (int)mode));
    o->rate_limit_mode = mode;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsAddRateLimiterResource(TRITONSERVER_ServerOptions *options,
                                                 const char *resource_name,
                                                 const size_t resource_count, const int device) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    char name[32], text[32];
    snprintf(name, sizeof name, "%d", device);
    snprintf(text, sizeof text, "%zu", resource_count);
    return set_setting(__func__, &o->rate_resources, resource_name, name, text);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetPinnedMemoryPoolByteSize(TRITONSERVER_ServerOptions *options,
                                                      uint64_t size) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    o->pinned_pool_bytes = size;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize(TRITONSERVER_ServerOptions *options,
                                                    int gpu_device, uint64_t size) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    return set_number(__func__, &o->gpu, "cuda-memory-pool", gpu_device, (double)size);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetCudaVirtualAddressSize(
    TRITONSERVER_ServerOptions *options, int gpu_device, size_t cuda_virtual_address_size) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    return set_number(__func__, &o->gpu, "cuda-virtual-address", gpu_device,
                      (double)cuda_virtual_address_size);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetResponseCacheByteSize(TRITONSERVER_ServerOptions *options,
                                                   uint64_t size) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    o->response_cache_bytes = size;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetCacheConfig(TRITONSERVER_ServerOptions *options,
                                                             const char *cache_name,
                                                             const char *config_json) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    return set_setting(__func__, &o->caches, cache_name, "config", config_json);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetCacheDirectory(TRITONSERVER_ServerOptions *options,
                                                                const char *cache_dir) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    return set_string(__func__, &o->cache_directory, cache_dir);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability(TRITONSERVER_ServerOptions *options,
                                                           double cc) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    o->min_compute_capability = cc;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetExitOnError(TRITONSERVER_ServerOptions *options,
                                                             bool exit) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    o->exit_on_error = exit;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetStrictReadiness(TRITONSERVER_ServerOptions *options, bool strict) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    o->strict_readiness = strict;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetExitTimeout(TRITONSERVER_ServerOptions *options,
                                                             unsigned int timeout) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    o->exit_timeout_s = timeout;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetBufferManagerThreadCount(TRITONSERVER_ServerOptions *options,
                                                      unsigned int thread_count) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    o->buffer_manager_threads = thread_count;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadThreadCount(TRITONSERVER_ServerOptions *options,
                                                  unsigned int thread_count) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    o->model_load_threads = thread_count ? thread_count : 1;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadRetryCount(TRITONSERVER_ServerOptions *options,
                                                 unsigned int retry_count) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    o->model_load_retries = retry_count;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelNamespacing(TRITONSERVER_ServerOptions *options,
                                              bool enable_namespace) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    o->model_namespacing = enable_namespace;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetEnablePeerAccess(TRITONSERVER_ServerOptions *options,
                                              bool enable_peer_access) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    o->peer_access = enable_peer_access;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetMetrics(TRITONSERVER_ServerOptions *options,
                                                         bool metrics) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    o->metrics = metrics;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetGpuMetrics(TRITONSERVER_ServerOptions *options,
                                                            bool gpu_metrics) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    o->gpu_metrics = gpu_metrics;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetCpuMetrics(TRITONSERVER_ServerOptions *options,
                                                            bool cpu_metrics) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    o->cpu_metrics = cpu_metrics;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMetricsInterval(TRITONSERVER_ServerOptions *options,
                                             uint64_t metrics_interval_ms) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    o->metrics_interval_ms = metrics_interval_ms;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetBackendDirectory(TRITONSERVER_ServerOptions *options,
                                              const char *backend_dir) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    return set_string(__func__, &o->backend_directory, backend_dir);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetRepoAgentDirectory(TRITONSERVER_ServerOptions *options,
                                                const char *repoagent_dir) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    return set_string(__func__, &o->repoagent_directory, repoagent_dir);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(TRITONSERVER_ServerOptions *options,
                                                  const TRITONSERVER_InstanceGroupKind kind,
                                                  const int device_id, const double fraction) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    if (kind != TRITONSERVER_INSTANCEGROUPKIND_GPU)
        return kelp_to_error(KELP_ERROR(KELP_INVALID_ARGUMENT,
                                        "a load limit for kind '%s' is not supported: expected GPU",
                                        TRITONSERVER_InstanceGroupKindString(kind)));
    if (device_id < 0)
        return kelp_to_error(KELP_ERROR(KELP_INVALID_ARGUMENT,
                                        "load limit: expects device ID >= 0, got %d", device_id));
    if (!(fraction >= 0.0 && fraction <= 1.0))
        return kelp_to_error(KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "load limit: expects limit fraction to be in range [0.0, 1.0], got %g", fraction));
    return set_number(__func__, &o->device_limits, "GPU", device_id, fraction);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetBackendConfig(TRITONSERVER_ServerOptions *options,
                                                               const char *backend_name,
                                                               const char *setting,
                                                               const char *value) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    return set_setting(__func__, &o->backend_config, backend_name, setting, value);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetHostPolicy(TRITONSERVER_ServerOptions *options,
                                                            const char *policy_name,
                                                            const char *setting,
                                                            const char *value) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    static const char *const known[] = {"numa-node", "cpu-cores"};
    if (setting == NULL)
        return kelp_null_error(__func__, "setting");
    if (strcmp(setting, known[0]) != 0 && strcmp(setting, known[1]) != 0)
        return kelp_to_error(KELP_ERROR(KELP_UNIMPLEMENTED,
                                        "Unsupported host policy setting '%s': expected %s or %s",
                                        setting, known[0], known[1]));
    return set_setting(__func__, &o->host_policies, policy_name, setting, value);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetMetricsConfig(TRITONSERVER_ServerOptions *options,
                                                               const char *name,
                                                               const char *setting,
                                                               const char *value) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *o = (kelp_server_options *)options;
    return set_setting(__func__, &o->metrics_config, name, setting, value);
}
