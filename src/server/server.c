/* SPDX-License-Identifier: Apache-2.0 */
/* The server object: start, stop, look-up, pools, and the thread that finalizes models; see
 * server.h. */
#include "server/server.h"

#include "base/clock.h"
#include "base/thread.h"
#include "server/core/log.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

/* ---- stripes ---- */

kelp_stripe *kelp_server_stripe(kelp_server *server) {
    static atomic_uint next;
    static _Thread_local unsigned mine; /* 0: not given yet */
    if (!mine)
        mine = 1 + atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % KELP_SERVER_STRIPES;
    return &server->stripes[mine - 1];
}

void kelp_server_lock_all(kelp_server *server) {
    for (size_t i = 0; i < KELP_SERVER_STRIPES; i++)
        pthread_mutex_lock(&server->stripes[i].lock);
}

void kelp_server_unlock_all(kelp_server *server) {
    for (size_t i = KELP_SERVER_STRIPES; i-- > 0;)
        pthread_mutex_unlock(&server->stripes[i].lock);
}

kelp_status *kelp_server_check_ready(const kelp_server *server) {
    int state = atomic_load_explicit(&server->state, memory_order_acquire);
    if (state == KELP_SERVER_READY)
        return NULL;
    return KELP_ERROR(KELP_UNAVAILABLE,
                      state == KELP_SERVER_STARTING ? "Server not ready" : "Server exiting");
}

kelp_status *kelp_server_keep_backend(kelp_server *server, kelp_backend *backend) {
    kelp_status *status = NULL;
    pthread_mutex_lock(&server->table_lock);
    bool known = false;
    for (size_t i = 0; i < server->backend_count; i++)
        known |= server->backends[i] == backend;
    if (!known) {
        status = kelp_grow(kelp_allocator_system(), (void **)&server->backends,
                           &server->backend_capacity, server->backend_count + 1,
                           sizeof *server->backends);
        if (!status) {
            kelp_backend_retain(backend);
            server->backends[server->backend_count++] = backend;
        }
    }
    pthread_mutex_unlock(&server->table_lock);
    return status;
}

/* ---- the reaper ---- */

void kelp_server_reap(kelp_server *server, kelp_model *model) {
    pthread_mutex_lock(&server->table_lock);
    model->next_retired = server->retired;
    server->retired = model;
    pthread_cond_broadcast(&server->table_changed);
    pthread_mutex_unlock(&server->table_lock);
}

/* The version that was waiting for this model's end is unavailable now; table_lock held. */
static void mark_unloaded(kelp_server *server, const kelp_model *model) {
    kelp_version *version = kelp_entry_version(model->entry, model->version);
    if (!version || version->leaving != model)
        return;
    kelp_server_lock_all(server);
    version->leaving = NULL;
    version->state = KELP_VERSION_UNAVAILABLE;
    kelp_server_log_status("cannot keep a reason", kelp_text_set(&version->reason, "unloaded"));
    kelp_server_unlock_all(server);
    KELP_SERVER_LOG(KELP_LOG_INFO, "successfully unloaded '%s' version %lld", model->name,
                    (long long)model->version);
}

static void *reap(void *userp) {
    kelp_server *server = userp;
    pthread_mutex_lock(&server->table_lock);
    for (;;) {
        kelp_model *model = server->retired;
        if (model) {
            server->retired = model->next_retired;
            pthread_mutex_unlock(&server->table_lock);
            kelp_model_finalize(model);
            pthread_mutex_lock(&server->table_lock);
            mark_unloaded(server, model);
            server->live_models--;
            pthread_cond_broadcast(&server->table_changed);
            pthread_mutex_unlock(&server->table_lock);
            kelp_model_release(model);
            pthread_mutex_lock(&server->table_lock);
            continue;
        }
        if (server->reaper_stop)
            break;
        pthread_cond_wait(&server->table_changed, &server->table_lock);
    }
    pthread_mutex_unlock(&server->table_lock);
    return NULL;
}

static void stop_reaper(kelp_server *server) {
    pthread_mutex_lock(&server->table_lock);
    server->reaper_stop = true;
    bool running = server->reaper_running;
    server->reaper_running = false;
    pthread_cond_broadcast(&server->table_changed);
    pthread_mutex_unlock(&server->table_lock);
    if (running)
        pthread_join(server->reaper, NULL);
}

/* ---- start and stop ---- */

static kelp_status *start(kelp_server *server, const kelp_server_options *options) {
    KELP_TRY(kelp_server_options_clone(options, &server->options));
    if (server->options->metrics)
        KELP_TRY(kelp_latency_rules_read(&server->options->metrics_config, &server->latency_rules));
    KELP_TRY(kelp_string_list_copy(&server->options->repositories, &server->repositories));
    if (server->repositories.count == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "no model repository is given");
    KELP_TRY(kelp_cache_open(server->options, &server->cache));
    KELP_TRY(kelp_thread_start(&server->reaper, "kelp-reaper", reap, server));
    server->reaper_running = true;
    return kelp_server_load_startup(server);
}

kelp_status *kelp_server_create(const kelp_server_options *options, kelp_server **out) {
    kelp_allocator heap = kelp_allocator_system();
    void *memory = NULL;
    KELP_TRY(kelp_alloc_aligned(heap, sizeof(kelp_server), _Alignof(kelp_server), &memory));
    kelp_server *server = memory;
    memset(server, 0, sizeof *server);
    for (size_t i = 0; i < KELP_SERVER_STRIPES; i++)
        pthread_mutex_init(&server->stripes[i].lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&server->table_changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&server->table_lock, NULL);
    kelp_map_init(&server->entries, heap);
    atomic_store(&server->refs, 1);
    kelp_status *status = start(server, options);
    if (status) {
        kelp_server_log_status("cannot stop the server", kelp_server_stop(server));
        kelp_server_release(server);
        return status;
    }
    atomic_store(&server->state, KELP_SERVER_READY);
    *out = server;
    return NULL;
}

/* A version that serves, or NULL; waits for loads that are under way. table_lock held. */
static kelp_version *next_serving(kelp_server *server) {
    for (;;) {
        bool busy = false;
        for (kelp_entry *entry = server->first_entry; entry; entry = entry->next) {
            busy |= entry->busy;
            for (size_t i = 0; i < entry->version_count; i++)
                if (entry->versions[i].model)
                    return &entry->versions[i];
        }
        if (!busy)
            return NULL;
        pthread_cond_wait(&server->table_changed, &server->table_lock);
    }
}

void kelp_version_retire(kelp_server *server, kelp_version *version) {
    kelp_model *model = version->model;
    kelp_server_lock_all(server);
    version->model = NULL;
    version->leaving = model;
    version->state = KELP_VERSION_UNLOADING;
    kelp_text_clear(&version->reason);
    kelp_server_unlock_all(server);
    /* Retiring may hand the model to the reaper, which takes the table's lock. */
    pthread_mutex_unlock(&server->table_lock);
    kelp_model_retire(model);
    pthread_mutex_lock(&server->table_lock);
}

static void retire_all(kelp_server *server) {
    kelp_version *version;
    pthread_mutex_lock(&server->table_lock);
    while ((version = next_serving(server)))
        kelp_version_retire(server, version);
    pthread_mutex_unlock(&server->table_lock);
}

/* true when all models are gone. */
static bool wait_for_models(kelp_server *server, unsigned *out_timeout_s) {
    struct timespec until;
    int result = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    pthread_mutex_lock(&server->table_lock);
    *out_timeout_s = server->options->exit_timeout_s;
    until.tv_sec += (time_t)*out_timeout_s;
    while (server->live_models > 0 && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&server->table_changed, &server->table_lock, &until);
    bool gone = server->live_models == 0;
    pthread_mutex_unlock(&server->table_lock);
    return gone;
}

kelp_status *kelp_server_stop(kelp_server *server) {
    if (atomic_load(&server->state) == KELP_SERVER_STOPPED)
        return NULL;
    atomic_store(&server->state, KELP_SERVER_STOPPING);
    if (server->options) {
        unsigned timeout_s = 0;
        retire_all(server);
        if (!wait_for_models(server, &timeout_s))
            return KELP_ERROR(KELP_INTERNAL,
                              "Exit timeout expired: requests are still in flight after %u s",
                              timeout_s);
    }
    stop_reaper(server);
    for (size_t i = 0; i < server->backend_count; i++)
        kelp_backend_release(server->backends[i]);
    server->backend_count = 0;
    kelp_cache_close(server->cache);
    server->cache = NULL;
    atomic_store(&server->state, KELP_SERVER_STOPPED);
    return NULL;
}

void kelp_server_retain(kelp_server *server) {
    atomic_fetch_add_explicit(&server->refs, 1, memory_order_relaxed);
}

static void free_requests(kelp_request *request) {
    while (request) {
        kelp_request *next = request->next;
        kelp_request_free(request);
        request = next;
    }
}

static void free_responses(kelp_response *response) {
    while (response) {
        kelp_response *next = response->next;
        kelp_response_free(response);
        response = next;
    }
}

static void free_pools(kelp_stripe *stripe) {
    free_requests(stripe->requests);
    free_requests(stripe->bare_requests);
    free_responses(stripe->responses);
    free_responses(stripe->bare_responses);
    while (stripe->factories) {
        kelp_factory *factory = stripe->factories;
        stripe->factories = factory->next;
        kelp_factory_free(factory);
    }
}

void kelp_server_release(kelp_server *server) {
    if (atomic_fetch_sub_explicit(&server->refs, 1, memory_order_acq_rel) != 1)
        return;
    kelp_allocator heap = kelp_allocator_system();
    for (size_t i = 0; i < KELP_SERVER_STRIPES; i++) {
        free_pools(&server->stripes[i]);
        pthread_mutex_destroy(&server->stripes[i].lock);
    }
    for (kelp_entry *entry = server->first_entry, *next; entry; entry = next) {
        next = entry->next;
        kelp_entry_destroy(entry);
    }
    kelp_map_deinit(&server->entries);
    kelp_string_list_deinit(&server->repositories);
    kelp_settings_deinit(&server->mappings);
    kelp_free(heap, server->backends, server->backend_capacity * sizeof *server->backends);
    kelp_server_options_destroy(server->options);
    pthread_cond_destroy(&server->table_changed);
    pthread_mutex_destroy(&server->table_lock);
    kelp_free_aligned(heap, server, sizeof *server, _Alignof(kelp_server));
}
