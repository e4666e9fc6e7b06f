/* SPDX-License-Identifier: Apache-2.0 */
/* The C API for applications: start, stop, health, repositories and loads of a server. */
#include "server/core/error.h"
#include "server/core/heap.h"
#include "server/core/log.h"
#include "server/core/options.h"
#include "server/server.h"

static kelp_server *of(TRITONSERVER_Server *handle) {
    return (kelp_server *)handle;
}

TRITONSERVER_Error *TRITONSERVER_ServerNew(TRITONSERVER_Server **server,
                                           TRITONSERVER_ServerOptions *options) {
    if (server == NULL || options == NULL)
        return kelp_null_error(__func__, server != NULL ? "options" : "server");
    const kelp_server_options *own = (const kelp_server_options *)options;
    kelp_server_log_set_callback(own->log_callback, own->log_userp);
    return kelp_to_error(kelp_server_create(kelp_process_allocator(), own, (kelp_server **)server));
}

TRITONSERVER_Error *TRITONSERVER_ServerDelete(TRITONSERVER_Server *server) {
    if (server == NULL)
        return NULL;
    kelp_status *status = kelp_server_stop(of(server));
    if (status == NULL)
        kelp_server_release(of(server));
    return kelp_to_error(status);
}

TRITONSERVER_Error *TRITONSERVER_ServerStop(TRITONSERVER_Server *server) {
    if (server == NULL)
        return kelp_null_error(__func__, "server");
    return kelp_to_error(kelp_server_stop(of(server)));
}

TRITONSERVER_Error *TRITONSERVER_ServerSetExitTimeout(TRITONSERVER_Server *server,
                                                      unsigned int timeout) {
    if (server == NULL)
        return kelp_null_error(__func__, "server");
    kelp_server_set_exit_timeout(of(server), timeout);
    return NULL;
}

/* ---- health ---- */

TRITONSERVER_Error *TRITONSERVER_ServerIsLive(TRITONSERVER_Server *server, bool *live) {
    if (server == NULL || live == NULL)
        return kelp_null_error(__func__, server != NULL ? "live" : "server");
    return kelp_to_error(kelp_server_is_live(of(server), live));
}

TRITONSERVER_Error *TRITONSERVER_ServerIsReady(TRITONSERVER_Server *server, bool *ready) {
    if (server == NULL || ready == NULL)
        return kelp_null_error(__func__, server != NULL ? "ready" : "server");
    return kelp_to_error(kelp_server_is_ready(of(server), ready));
}

TRITONSERVER_Error *TRITONSERVER_ServerModelIsReady(TRITONSERVER_Server *server,
                                                    const char *model_name,
                                                    const int64_t model_version, bool *ready) {
    if (server == NULL || model_name == NULL || ready == NULL)
        return kelp_null_error(__func__, server == NULL       ? "server"
                                         : model_name == NULL ? "model_name"
                                                              : "ready");
    kelp_status *status = kelp_server_model_is_ready(of(server), model_name, model_version, ready);
    if (kelp_status_code(status) != KELP_NOT_FOUND)
        return kelp_to_error(status);
    kelp_status_free(status); /* an unknown model is not ready */
    return NULL;
}

/* ---- repositories ---- */

TRITONSERVER_Error *
TRITONSERVER_ServerRegisterModelRepository(TRITONSERVER_Server *server, const char *repository_path,
                                           const TRITONSERVER_Parameter **name_mapping,
                                           const uint32_t mapping_count) {
    if (server == NULL || repository_path == NULL || (name_mapping == NULL && mapping_count))
        return kelp_null_error(__func__, server == NULL            ? "server"
                                         : repository_path == NULL ? "repository_path"
                                                                   : "name_mapping");
    return kelp_to_error(kelp_repository_register(
        &of(server)->repository, repository_path,
        (const kelp_parameter *const *)(const void *)name_mapping, mapping_count));
}

TRITONSERVER_Error *TRITONSERVER_ServerUnregisterModelRepository(TRITONSERVER_Server *server,
                                                                 const char *repository_path) {
    if (server == NULL || repository_path == NULL)
        return kelp_null_error(__func__, server != NULL ? "repository_path" : "server");
    return kelp_to_error(kelp_repository_unregister(&of(server)->repository, repository_path));
}

TRITONSERVER_Error *TRITONSERVER_ServerPollModelRepository(TRITONSERVER_Server *server) {
    if (server == NULL)
        return kelp_null_error(__func__, "server");
    return kelp_to_error(kelp_server_poll(of(server)));
}

/* ---- loads ---- */

TRITONSERVER_Error *TRITONSERVER_ServerLoadModel(TRITONSERVER_Server *server,
                                                 const char *model_name) {
    if (server == NULL || model_name == NULL)
        return kelp_null_error(__func__, server != NULL ? "model_name" : "server");
    return kelp_to_error(kelp_server_load(of(server), model_name, NULL, 0));
}

TRITONSERVER_Error *
TRITONSERVER_ServerLoadModelWithParameters(TRITONSERVER_Server *server, const char *model_name,
                                           const TRITONSERVER_Parameter **parameters,
                                           const uint64_t parameter_count) {
    if (server == NULL || model_name == NULL || (parameters == NULL && parameter_count))
        return kelp_null_error(__func__, server == NULL       ? "server"
                                         : model_name == NULL ? "model_name"
                                                              : "parameters");
    return kelp_to_error(kelp_server_load(of(server), model_name,
                                          (const kelp_parameter *const *)(const void *)parameters,
                                          parameter_count));
}

static TRITONSERVER_Error *unload(const char *function, TRITONSERVER_Server *server,
                                  const char *model_name, bool dependents) {
    if (server == NULL || model_name == NULL)
        return kelp_null_error(function, server != NULL ? "model_name" : "server");
    return kelp_to_error(kelp_server_unload(of(server), model_name, dependents));
}

TRITONSERVER_Error *TRITONSERVER_ServerUnloadModel(TRITONSERVER_Server *server,
                                                   const char *model_name) {
    return unload(__func__, server, model_name, false);
}

TRITONSERVER_Error *TRITONSERVER_ServerUnloadModelAndDependents(TRITONSERVER_Server *server,
                                                                const char *model_name) {
    return unload(__func__, server, model_name, true);
}
