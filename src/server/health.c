/* SPDX-License-Identifier: Apache-2.0 */
/* Liveness and readiness. */
#include "server/server.h"

static kelp_server_state state_of(const kelp_server *server) {
    return (kelp_server_state)atomic_load_explicit(&server->state, memory_order_acquire);
}

kelp_status *kelp_server_check_ready(const kelp_server *server) {
    kelp_server_state state = state_of(server);
    if (state == KELP_SERVER_READY)
        return NULL;
    return KELP_ERROR(KELP_UNAVAILABLE,
                      state < KELP_SERVER_READY ? "Server not ready" : "Server exiting");
}

kelp_status *kelp_server_is_live(const kelp_server *server, bool *out) {
    kelp_server_state state = state_of(server);
    *out = state == KELP_SERVER_READY;
    return state >= KELP_SERVER_STOPPING ? KELP_ERROR(KELP_UNAVAILABLE, "Server exiting") : NULL;
}

/* Returns true if all versions serve, except for those that were unloaded on request. */
static bool all_serve(kelp_repository *repository) {
    bool all = true;
    pthread_mutex_lock(&repository->lock);
    for (const kelp_entry *entry = repository->first_entry; entry != NULL && all;
         entry = entry->next) {
        for (size_t i = 0; i < entry->version_count && all; i++) {
            const kelp_version *version = &entry->versions[i];
            all = version->model != NULL ||
                  (version->state == KELP_VERSION_UNAVAILABLE &&
                   strcmp(kelp_text_get(&version->reason), "unloaded") == 0);
        }
    }
    pthread_mutex_unlock(&repository->lock);
    return all;
}

/* Returns true for a model that is being unloaded, because it does not make the server unready, and
 * for an ensemble, because its members are tested themselves. */
static bool model_ready(kelp_model *model) {
    if (model->ensemble != NULL || !kelp_model_enter(&model->base))
        return true;
    bool ready = kelp_model_is_ready(model);
    kelp_model_leave(&model->base);
    return ready;
}

/* Tests all models. Calls the backends without the table's lock. */
static kelp_status *all_ready(kelp_server *server, bool *out) {
    kelp_model_list models;
    *out = all_serve(&server->repository);
    if (!*out)
        return NULL;
    kelp_status *status = kelp_repository_list(&server->repository, NULL, -1, &models);
    for (size_t i = 0; i < models.count && *out && status == NULL; i++)
        *out = model_ready(models.items[i]);
    kelp_model_list_deinit(&models);
    return status;
}

kelp_status *kelp_server_is_ready(kelp_server *server, bool *out) {
    bool ready = false;
    *out = false;
    KELP_TRY(kelp_server_is_live(server, &ready));
    if (ready && server->host.options->strict_readiness)
        KELP_TRY(all_ready(server, &ready));
    *out = ready;
    return NULL;
}

kelp_status *kelp_server_model_is_ready(kelp_server *server, const char *name, int64_t version,
                                        bool *out) {
    kelp_model *model = NULL;
    *out = false;
    KELP_TRY(kelp_server_check_ready(server));
    kelp_status *status = kelp_repository_find(&server->repository, name, version, &model, NULL);
    if (kelp_status_code(status) == KELP_UNAVAILABLE ||
        (kelp_status_code(status) == KELP_NOT_FOUND && version == -1 &&
         kelp_repository_knows(&server->repository, name))) {
        kelp_status_free(status); /* the model exists, but is not ready */
        return NULL;
    }
    KELP_TRY(status);
    if (kelp_model_enter(&model->base)) {
        *out = kelp_model_is_ready(model);
        kelp_model_leave(&model->base);
    }
    kelp_model_release(&model->base);
    return NULL;
}
