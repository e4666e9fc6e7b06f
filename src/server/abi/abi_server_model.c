/* SPDX-License-Identifier: Apache-2.0 */
/* The C API for applications: descriptions of the server and its models. */
#include "server/core/error.h"
#include "server/server.h"

static kelp_server *of(TRITONSERVER_Server *handle) {
    return (kelp_server *)handle;
}

TRITONSERVER_Error *TRITONSERVER_ServerMetadata(TRITONSERVER_Server *server,
                                                TRITONSERVER_Message **server_metadata) {
    if (server == NULL || server_metadata == NULL)
        return kelp_null_error(__func__, server != NULL ? "server_metadata" : "server");
    return kelp_to_error(kelp_server_describe(of(server), (kelp_message **)server_metadata));
}

static TRITONSERVER_Error *check(const char *function, TRITONSERVER_Server *server,
                                 const char *model_name, const void *out) {
    if (server != NULL && model_name != NULL && out != NULL)
        return NULL;
    return kelp_null_error(function, server == NULL       ? "server"
                                     : model_name == NULL ? "model_name"
                                                          : NULL);
}

TRITONSERVER_Error *TRITONSERVER_ServerModelBatchProperties(TRITONSERVER_Server *server,
                                                            const char *model_name,
                                                            const int64_t model_version,
                                                            uint32_t *flags, void **voidp) {
    bool batches = false, decoupled = false;
    TRITONSERVER_Error *error = check(__func__, server, model_name, flags);
    if (error == NULL)
        error = kelp_to_error(kelp_server_model_properties(of(server), model_name, model_version,
                                                           &batches, &decoupled));
    if (error != NULL)
        return error;
    *flags = batches ? TRITONSERVER_BATCH_FIRST_DIM : TRITONSERVER_BATCH_UNKNOWN;
    if (voidp != NULL)
        *voidp = NULL;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerModelTransactionProperties(TRITONSERVER_Server *server,
                                                                  const char *model_name,
                                                                  const int64_t model_version,
                                                                  uint32_t *txn_flags,
                                                                  void **voidp) {
    bool batches = false, decoupled = false;
    TRITONSERVER_Error *error = check(__func__, server, model_name, txn_flags);
    if (error == NULL)
        error = kelp_to_error(kelp_server_model_properties(of(server), model_name, model_version,
                                                           &batches, &decoupled));
    if (error != NULL)
        return error;
    *txn_flags = decoupled ? TRITONSERVER_TXN_DECOUPLED : TRITONSERVER_TXN_ONE_TO_ONE;
    if (voidp != NULL)
        *voidp = NULL;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerModelMetadata(TRITONSERVER_Server *server,
                                                     const char *model_name,
                                                     const int64_t model_version,
                                                     TRITONSERVER_Message **model_metadata) {
    TRITONSERVER_Error *error = check(__func__, server, model_name, model_metadata);
    return error != NULL
               ? error
               : kelp_to_error(kelp_server_describe_model(of(server), model_name, model_version,
                                                          (kelp_message **)model_metadata));
}

TRITONSERVER_Error *TRITONSERVER_ServerModelConfig(TRITONSERVER_Server *server,
                                                   const char *model_name,
                                                   const int64_t model_version,
                                                   const uint32_t config_version,
                                                   TRITONSERVER_Message **model_config) {
    TRITONSERVER_Error *error = check(__func__, server, model_name, model_config);
    return error != NULL ? error
                         : kelp_to_error(kelp_server_model_config(of(server), model_name,
                                                                  model_version, config_version,
                                                                  (kelp_message **)model_config));
}

TRITONSERVER_Error *TRITONSERVER_ServerModelStatistics(TRITONSERVER_Server *server,
                                                       const char *model_name,
                                                       const int64_t model_version,
                                                       TRITONSERVER_Message **model_stats) {
    TRITONSERVER_Error *error = check(__func__, server, model_name, model_stats);
    return error != NULL
               ? error
               : kelp_to_error(kelp_server_model_stats(of(server), model_name, model_version,
                                                       (kelp_message **)model_stats));
}

TRITONSERVER_Error *TRITONSERVER_ServerModelIndex(TRITONSERVER_Server *server, uint32_t flags,
                                                  TRITONSERVER_Message **model_index) {
    if (server == NULL || model_index == NULL)
        return kelp_null_error(__func__, server != NULL ? "model_index" : "server");
    return kelp_to_error(kelp_server_index(of(server), (flags & TRITONSERVER_INDEX_FLAG_READY) != 0,
                                           (kelp_message **)model_index));
}
