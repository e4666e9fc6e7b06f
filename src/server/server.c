/* SPDX-License-Identifier: Apache-2.0 */
/* The server object: start, stop, references, creation of requests, loads. */
#include "server/server.h"

#include "base/assert.h"
#include "server/cache/cache.h"
#include "server/core/log.h"

#include <string.h>

/* ---- the interface to requests: request/host.h ---- */

static void retain(kelp_request_host *host) {
    unsigned refs =
        atomic_fetch_add_explicit(&((kelp_server *)host)->refs, 1, memory_order_relaxed);
    KELP_ASSERT(refs > 0);
}

static void release(kelp_request_host *host) {
    kelp_server_release((kelp_server *)host);
}

static kelp_status *check_ready(const kelp_request_host *host) {
    return kelp_server_check_ready((const kelp_server *)host);
}

static kelp_status *find_successor(kelp_request_host *host, const kelp_model_base *retired,
                                   int64_t version, kelp_model_base **out) {
    kelp_repository *repository = &((kelp_server *)host)->repository;
    kelp_model *model = NULL;
    KELP_TRY(kelp_repository_find_version(repository, ((const kelp_model *)retired)->entry, version,
                                          &model));
    *out = &model->base;
    return NULL;
}

static kelp_status *find_model(kelp_request_host *host, const char *name, int64_t version,
                               kelp_model_base **out) {
    kelp_model *model = NULL;
    KELP_TRY(kelp_repository_find(&((kelp_server *)host)->repository, name, version, &model, NULL));
    *out = &model->base;
    return NULL;
}

static void reap(kelp_request_host *host, kelp_model_base *model) {
    KELP_ASSERT(((kelp_model *)model)->entry != NULL);
    kelp_repository_reap(&((kelp_server *)host)->repository, (kelp_model *)model);
}

static const kelp_request_host_ops ops = {.retain = retain,
                                          .release = release,
                                          .check_ready = check_ready,
                                          .find_successor = find_successor,
                                          .find_model = find_model,
                                          .reap = reap};

/* ---- start and stop ---- */

/* Reads the setting "gpu-fallback" of all backends. */
static kelp_status *read_gpu_fallback(kelp_server_options *options) {
    const char *mode = kelp_settings_get(&options->backend_config, "", "gpu-fallback");
    options->gpu_fallback = mode != NULL && strcmp(mode, "cpu") == 0;
    return mode == NULL || options->gpu_fallback || strcmp(mode, "error") == 0
               ? NULL
               : KELP_ERROR(KELP_INVALID_ARGUMENT,
                            "setting 'gpu-fallback': expected error or cpu, found '%s'", mode);
}

static kelp_status *start(kelp_server *server, const kelp_server_options *options) {
    kelp_model_host *host = &server->host;
    kelp_allocator allocator = host->base.allocator;
    kelp_cache *cache = NULL;
    KELP_TRY(kelp_server_options_clone(allocator, options, &host->options));
    KELP_TRY(read_gpu_fallback(host->options));
    KELP_TRY(kelp_timers_create(allocator, &host->timers));
    if (host->options->rate_limit_mode == TRITONSERVER_RATE_LIMIT_EXEC_COUNT)
        KELP_TRY(kelp_rate_limiter_create(allocator, &host->options->rate_resources,
                                          &host->rate_limiter));
    if (host->options->metrics)
        KELP_TRY(kelp_latency_rules_read(&host->options->metrics_config, &host->latency_rules));
    KELP_TRY(kelp_cache_open(allocator, host->options, &cache));
    host->cache = cache != NULL ? &cache->base : NULL;
    return kelp_repository_start(&server->repository);
}

/* Returns true if a server that could not start remains, so that its health can be read. */
static bool remains(const kelp_server *server, const kelp_status *failure) {
    const kelp_server_options *options = server->host.options;
    return options != NULL && !options->exit_on_error &&
           kelp_status_code(failure) != KELP_RESOURCE_EXHAUSTED;
}

kelp_status *kelp_server_create(kelp_allocator allocator, const kelp_server_options *options,
                                kelp_server **out) {
    void *memory = NULL;
    KELP_TRY(kelp_alloc_aligned(allocator, sizeof(kelp_server), _Alignof(kelp_server), &memory));
    kelp_server *server = memory;
    memset(server, 0, sizeof *server);
    server->host.base.ops = &ops;
    server->host.base.allocator = allocator;
    kelp_request_pools_init(&server->host.base.pools, allocator);
    kelp_server_backend_set_init(&server->host.backends, allocator);
    kelp_repository_init(&server->repository, &server->host);
    atomic_store(&server->refs, 1);
    kelp_status *status = start(server, options);
    bool failed = status != NULL;
    if (failed && remains(server, status)) {
        kelp_server_log_status("the server could not start", status);
        status = NULL;
    }
    if (status != NULL) {
        kelp_server_log_status("cannot stop the server", kelp_server_stop(server));
        kelp_server_release(server);
        return status;
    }
    atomic_store(&server->state, failed ? KELP_SERVER_FAILED : KELP_SERVER_READY);
    *out = server;
    return NULL;
}

kelp_status *kelp_server_stop(kelp_server *server) {
    kelp_model_host *host = &server->host;
    if (atomic_load(&server->state) == KELP_SERVER_STOPPED)
        return NULL;
    atomic_store(&server->state, KELP_SERVER_STOPPING);
    if (host->options != NULL)
        KELP_TRY(kelp_repository_stop(&server->repository));
    kelp_server_backend_set_clear(&host->backends);
    kelp_cache_close((kelp_cache *)host->cache);
    host->cache = NULL;
    kelp_timers_destroy(host->timers);
    host->timers = NULL;
    kelp_rate_limiter_destroy(host->rate_limiter);
    host->rate_limiter = NULL;
    atomic_store(&server->state, KELP_SERVER_STOPPED);
    return NULL;
}

void kelp_server_release(kelp_server *server) {
    unsigned refs = atomic_fetch_sub_explicit(&server->refs, 1, memory_order_acq_rel);
    KELP_ASSERT(refs > 0);
    if (refs != 1)
        return;
    kelp_allocator allocator = server->host.base.allocator;
    kelp_request_pools_deinit(&server->host.base.pools);
    kelp_repository_deinit(&server->repository);
    kelp_server_backend_set_deinit(&server->host.backends);
    kelp_timers_destroy(server->host.timers); /* if the server did not stop in time */
    kelp_rate_limiter_destroy(server->host.rate_limiter);
    kelp_server_options_destroy(server->host.options);
    kelp_free_aligned(allocator, server, sizeof *server, _Alignof(kelp_server));
}

void kelp_server_set_exit_timeout(kelp_server *server, unsigned timeout_s) {
    pthread_mutex_lock(&server->repository.lock);
    server->host.options->exit_timeout_s = timeout_s;
    pthread_mutex_unlock(&server->repository.lock);
}

/* ---- requests ---- */

/* Returns UNAVAILABLE unless the server accepts requests for a model: while it stops, only those of
 * sequences that have begun, which the submission checks. */
static kelp_status *check_ready_for(kelp_server *server, const char *model_name, int64_t version) {
    kelp_model *model = NULL;
    kelp_status *status = kelp_server_check_ready(server);
    if (status == NULL || atomic_load(&server->state) != KELP_SERVER_STOPPING)
        return status;
    kelp_status *missing =
        kelp_repository_find(&server->repository, model_name, version, &model, NULL);
    bool continues = missing == NULL && model->base.config->sequence != NULL;
    kelp_status_free(missing);
    if (model != NULL)
        kelp_model_release(&model->base);
    if (!continues)
        return status;
    kelp_status_free(status);
    return NULL;
}

kelp_status *kelp_server_create_request(kelp_server *server, const char *model_name,
                                        int64_t version, kelp_request **out) {
    kelp_model *model = NULL;
    kelp_request *pooled = NULL;
    KELP_TRY(check_ready_for(server, model_name, version));
    KELP_TRY(kelp_repository_find(&server->repository, model_name, version, &model, &pooled));
    return kelp_request_create(&model->base, version, pooled, out);
}

/* ---- loads ---- */

static kelp_status *check_explicit(const kelp_server *server) {
    KELP_TRY(kelp_server_check_ready(server));
    TRITONSERVER_ModelControlMode mode = server->host.options->control_mode;
    if (mode == TRITONSERVER_MODEL_CONTROL_POLL)
        return KELP_ERROR(KELP_UNAVAILABLE,
                          "explicit model load / unload is not allowed if polling is enabled");
    if (mode != TRITONSERVER_MODEL_CONTROL_EXPLICIT)
        return KELP_ERROR(KELP_UNAVAILABLE,
                          "explicit model load / unload is not allowed in model control mode "
                          "'none': expected mode 'explicit' (--model-control-mode explicit)");
    return NULL;
}

static kelp_status *read_parameters(const kelp_parameter *const *parameters, uint64_t count,
                                    const kelp_parameter **files, kelp_load_options *out) {
    for (uint64_t i = 0; i < count; i++) {
        const kelp_parameter *parameter = parameters[i];
        if (parameter == NULL)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "load parameter %llu is NULL",
                              (unsigned long long)i);
        if (strcmp(parameter->name, "config") == 0) {
            if (parameter->type != TRITONSERVER_PARAMETER_STRING)
                return KELP_ERROR(KELP_INVALID_ARGUMENT,
                                  "Config parameter 'config' must have string type for its value");
            out->config_json = parameter->string;
        } else if (strncmp(parameter->name, "file:", 5) == 0) {
            if (parameter->type != TRITONSERVER_PARAMETER_BYTES)
                return KELP_ERROR(KELP_INVALID_ARGUMENT,
                                  "File parameter '%s' must have bytes type for its value",
                                  parameter->name);
            files[out->file_count++] = parameter;
        } else {
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "Unrecognized load parameter '%s' with type '%s'", parameter->name,
                              TRITONSERVER_ParameterTypeString(parameter->type));
        }
    }
    out->files = files;
    return NULL;
}

kelp_status *kelp_server_load(kelp_server *server, const char *name,
                              const kelp_parameter *const *parameters, uint64_t count) {
    kelp_allocator allocator = server->host.base.allocator;
    const kelp_parameter **files = NULL;
    kelp_load_options options = {0};
    KELP_TRY(check_explicit(server));
    KELP_TRY(kelp_alloc_zero(allocator, count, sizeof *files, (void **)&files));
    kelp_status *status = read_parameters(parameters, count, files, &options);
    if (status == NULL)
        status = kelp_repository_load(&server->repository, name, count ? &options : NULL);
    kelp_free(allocator, files, count * sizeof *files);
    return status;
}

kelp_status *kelp_server_unload(kelp_server *server, const char *name, bool dependents) {
    KELP_TRY(check_explicit(server));
    return kelp_repository_unload(&server->repository, name, dependents);
}

kelp_status *kelp_server_poll(kelp_server *server) {
    if (server->host.options->control_mode != TRITONSERVER_MODEL_CONTROL_POLL)
        return KELP_ERROR(KELP_UNAVAILABLE, "polling is disabled");
    KELP_TRY(kelp_server_check_ready(server));
    return kelp_repository_poll(&server->repository);
}
