/* SPDX-License-Identifier: Apache-2.0 */
/* The options that a server is made with: every setter of the C API keeps its value here. */
#ifndef KELP_SERVER_CORE_OPTIONS_H_
#define KELP_SERVER_CORE_OPTIONS_H_

#include "server/core/values.h"

/* A growing list of strings, each a copy. */
typedef struct kelp_string_list {
    char **items;
    size_t count;
    size_t capacity;
} kelp_string_list;

kelp_status *kelp_string_list_add(kelp_string_list *list, const char *text) KELP_MUST_USE;
bool kelp_string_list_has(const kelp_string_list *list, const char *text);
/* false when it was not there */
bool kelp_string_list_remove(kelp_string_list *list, const char *text);
void kelp_string_list_deinit(kelp_string_list *list);
kelp_status *kelp_string_list_copy(const kelp_string_list *from,
                                   kelp_string_list *out) KELP_MUST_USE;

/* (owner, setting) -> value, in the order in which they were first set; a later value replaces an
 * earlier one. */
typedef struct kelp_setting {
    char *owner; /* a backend, a host policy, a cache, a metric, a resource; may be "" */
    char *name;
    char *value;
} kelp_setting;
typedef struct kelp_settings {
    kelp_setting *items;
    size_t count;
    size_t capacity;
} kelp_settings;

kelp_status *kelp_settings_set(kelp_settings *settings, const char *owner, const char *name,
                               const char *value) KELP_MUST_USE;
/* NULL when not set. */
const char *kelp_settings_get(const kelp_settings *settings, const char *owner, const char *name);
/* All that belong to the owner. */
void kelp_settings_remove(kelp_settings *settings, const char *owner);
void kelp_settings_deinit(kelp_settings *settings);
kelp_status *kelp_settings_copy(const kelp_settings *from, kelp_settings *out) KELP_MUST_USE;

typedef struct kelp_server_options {
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
    kelp_settings gpu;            /* pool sizes and the like: kept, without effect on a CPU */
    TRITONSERVER_ModelControlMode control_mode;
    TRITONSERVER_RateLimitMode rate_limit_mode;
    bool strict_model_config;
    bool strict_readiness;
    bool exit_on_error;
    bool model_namespacing;
    bool peer_access;
    bool metrics, gpu_metrics, cpu_metrics;
    bool log_to_file;
    unsigned exit_timeout_s;
    unsigned buffer_manager_threads;
    unsigned model_load_threads;
    unsigned model_load_retries;
    uint64_t metrics_interval_ms;
    uint64_t pinned_pool_bytes;
    uint64_t response_cache_bytes;
    double min_compute_capability;
} kelp_server_options;

kelp_status *kelp_server_options_create(kelp_server_options **out) KELP_MUST_USE;
kelp_status *kelp_server_options_clone(const kelp_server_options *options,
                                       kelp_server_options **out) KELP_MUST_USE;
void kelp_server_options_destroy(kelp_server_options *options);

#endif
