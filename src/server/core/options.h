/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a server. Every TRITONSERVER_ServerOptionsSet… function stores its value here. */
#ifndef KELP_SERVER_CORE_OPTIONS_H_
#define KELP_SERVER_CORE_OPTIONS_H_

#include "server/core/settings.h"

#include <triton/core/tritonserver.h>

/* The values of all options. */
typedef struct kelp_server_options {
    kelp_allocator allocator;
    char *server_id;
    char *model_config_name;
    char *backend_directory;
    char *repoagent_directory;
    char *cache_directory;
    kelp_string_list repositories;
    kelp_string_list startup_models;
    kelp_settings backend_config;
    kelp_settings host_policies;
    kelp_settings metrics_config;
    kelp_settings caches;         /* (cache, "config") -> JSON */
    kelp_settings rate_resources; /* (resource, device) -> count */
    kelp_settings device_limits;  /* (kind, device) -> fraction */
    kelp_settings gpu;            /* pool sizes; no effect on a CPU */
    TRITONSERVER_ModelControlMode control_mode;
    TRITONSERVER_RateLimitMode rate_limit_mode;
    bool strict_model_config;
    bool strict_readiness;
    bool exit_on_error;
    bool model_namespacing;
    bool peer_access;
    bool gpu_fallback; /* set when the server is created: instances of KIND_GPU use the CPU */
    bool metrics, gpu_metrics, cpu_metrics;
    unsigned exit_timeout_s;
    unsigned buffer_manager_threads;
    unsigned model_load_threads;
    unsigned model_load_retries;
    uint64_t metrics_interval_ms;
    uint64_t pinned_pool_bytes;
    uint64_t response_cache_bytes;
    double min_compute_capability;
    TRITONSERVER_LogCallbackFn_t log_callback; /* NULL: none */
    void *log_userp;
} kelp_server_options;

/* Creates options with Triton's defaults. */
kelp_status *kelp_server_options_create(kelp_allocator allocator,
                                        kelp_server_options **out) KELP_MUST_USE;
/* Copies options into memory of another allocator. */
kelp_status *kelp_server_options_clone(kelp_allocator allocator, const kelp_server_options *options,
                                       kelp_server_options **out) KELP_MUST_USE;
/* Frees options. NULL is ignored. */
void kelp_server_options_destroy(kelp_server_options *options);

#endif
