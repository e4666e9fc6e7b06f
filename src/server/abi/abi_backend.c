/* SPDX-License-Identifier: Apache-2.0 */
/* The C API for backends: backends and models. */
#include "base/assert.h"
#include "server/core/error.h"
#include "server/model/model.h"

static kelp_server_backend *backend_of(TRITONBACKEND_Backend *handle) {
    return (kelp_server_backend *)handle;
}

static kelp_model *model_of(TRITONBACKEND_Model *handle) {
    return (kelp_model *)handle;
}

/* ---- backend ---- */

TRITONSERVER_Error *TRITONBACKEND_BackendName(TRITONBACKEND_Backend *backend, const char **name) {
    if (backend == NULL || name == NULL)
        return kelp_null_error(__func__, backend != NULL ? "name" : "backend");
    *name = backend_of(backend)->name;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_BackendConfig(TRITONBACKEND_Backend *backend,
                                                TRITONSERVER_Message **backend_config) {
    if (backend == NULL || backend_config == NULL)
        return kelp_null_error(__func__, backend != NULL ? "backend_config" : "backend");
    KELP_ASSERT(backend_of(backend)->config != NULL); /* created before Initialize */
    *backend_config = (TRITONSERVER_Message *)backend_of(backend)->config;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_BackendExecutionPolicy(TRITONBACKEND_Backend *backend,
                                                         TRITONBACKEND_ExecutionPolicy *policy) {
    if (backend == NULL || policy == NULL)
        return kelp_null_error(__func__, backend != NULL ? "policy" : "backend");
    *policy = backend_of(backend)->policy;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_BackendSetExecutionPolicy(TRITONBACKEND_Backend *backend,
                                                            TRITONBACKEND_ExecutionPolicy policy) {
    if (backend == NULL)
        return kelp_null_error(__func__, "backend");
    backend_of(backend)->policy = policy;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_BackendArtifacts(TRITONBACKEND_Backend *backend,
                                                   TRITONBACKEND_ArtifactType *artifact_type,
                                                   const char **location) {
    if (backend == NULL || artifact_type == NULL || location == NULL)
        return kelp_null_error(__func__, backend != NULL ? NULL : "backend");
    *artifact_type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
    *location = backend_of(backend)->directory;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_BackendMemoryManager(TRITONBACKEND_Backend *backend,
                                                       TRITONBACKEND_MemoryManager **manager) {
    if (backend == NULL || manager == NULL)
        return kelp_null_error(__func__, backend != NULL ? "manager" : "backend");
    /* There is only one heap, so that any handle that is not NULL will do. */
    *manager = (TRITONBACKEND_MemoryManager *)backend;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_BackendState(TRITONBACKEND_Backend *backend, void **state) {
    if (backend == NULL || state == NULL)
        return kelp_null_error(__func__, backend != NULL ? "state" : "backend");
    *state = backend_of(backend)->state;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_BackendSetState(TRITONBACKEND_Backend *backend, void *state) {
    if (backend == NULL)
        return kelp_null_error(__func__, "backend");
    backend_of(backend)->state = state;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    TRITONBACKEND_BackendAttribute *backend_attributes, const TRITONSERVER_InstanceGroupKind kind,
    const uint64_t count, const uint64_t *device_ids, const uint64_t id_count) {
    (void)device_ids; /* GPUs, which are not supported */
    (void)id_count;
    if (backend_attributes == NULL)
        return kelp_null_error(__func__, "backend_attributes");
    return kelp_to_error(kelp_server_backend_prefer_group(
        (kelp_server_backend_attribute *)backend_attributes, kind, count));
}

TRITONSERVER_Error *TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
    TRITONBACKEND_BackendAttribute *backend_attributes, bool enabled) {
    if (backend_attributes == NULL)
        return kelp_null_error(__func__, "backend_attributes");
    ((kelp_server_backend_attribute *)backend_attributes)->parallel_loading = enabled;
    return NULL;
}

/* ---- model ---- */

TRITONSERVER_Error *TRITONBACKEND_ModelName(TRITONBACKEND_Model *model, const char **name) {
    if (model == NULL || name == NULL)
        return kelp_null_error(__func__, model != NULL ? "name" : "model");
    *name = model_of(model)->base.name;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelVersion(TRITONBACKEND_Model *model, uint64_t *version) {
    if (model == NULL || version == NULL)
        return kelp_null_error(__func__, model != NULL ? "version" : "model");
    *version = (uint64_t)model_of(model)->base.version;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelRepository(TRITONBACKEND_Model *model,
                                                  TRITONBACKEND_ArtifactType *artifact_type,
                                                  const char **location) {
    if (model == NULL || artifact_type == NULL || location == NULL)
        return kelp_null_error(__func__, model != NULL ? NULL : "model");
    *artifact_type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
    KELP_ASSERT(model_of(model)->directory != NULL);
    *location = model_of(model)->directory;
    return NULL;
}

static TRITONSERVER_Error *check_config_version(uint32_t version) {
    if (version == 1)
        return NULL;
    return kelp_to_error(KELP_ERROR(KELP_UNIMPLEMENTED,
                                    "model configuration version %u is not supported: expected 1",
                                    version));
}

TRITONSERVER_Error *TRITONBACKEND_ModelConfig(TRITONBACKEND_Model *model,
                                              const uint32_t config_version,
                                              TRITONSERVER_Message **model_config) {
    if (model == NULL || model_config == NULL)
        return kelp_null_error(__func__, model != NULL ? "model_config" : "model");
    TRITONSERVER_Error *error = check_config_version(config_version);
    if (error != NULL)
        return error;
    kelp_model *m = model_of(model);
    pthread_rwlock_rdlock(&m->change_lock);
    KELP_ASSERT(m->config_json != NULL); /* written before ModelInitialize */
    kelp_status *status = kelp_message_copy(m->base.host->allocator, m->config_json->text,
                                            m->config_json->length, (kelp_message **)model_config);
    pthread_rwlock_unlock(&m->change_lock);
    return kelp_to_error(status);
}

TRITONSERVER_Error *TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model *model,
                                                          bool *auto_complete_config) {
    if (model == NULL || auto_complete_config == NULL)
        return kelp_null_error(__func__, model != NULL ? "auto_complete_config" : "model");
    *auto_complete_config = model_of(model)->auto_complete;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model *model,
                                                 const uint32_t config_version,
                                                 TRITONSERVER_Message *model_config) {
    if (model == NULL || model_config == NULL)
        return kelp_null_error(__func__, model != NULL ? "model_config" : "model");
    TRITONSERVER_Error *error = check_config_version(config_version);
    if (error != NULL)
        return error;
    const kelp_message *json = (const kelp_message *)model_config;
    return kelp_to_error(kelp_model_complete_config(model_of(model), json->text, json->length));
}

TRITONSERVER_Error *TRITONBACKEND_ModelServer(TRITONBACKEND_Model *model,
                                              TRITONSERVER_Server **server) {
    if (model == NULL || server == NULL)
        return kelp_null_error(__func__, model != NULL ? "server" : "model");
    *server = (TRITONSERVER_Server *)model_of(model)->base.host;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelBackend(TRITONBACKEND_Model *model,
                                               TRITONBACKEND_Backend **backend) {
    if (model == NULL || backend == NULL)
        return kelp_null_error(__func__, model != NULL ? "backend" : "model");
    *backend = (TRITONBACKEND_Backend *)model_of(model)->backend;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelState(TRITONBACKEND_Model *model, void **state) {
    if (model == NULL || state == NULL)
        return kelp_null_error(__func__, model != NULL ? "state" : "model");
    *state = model_of(model)->state;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelSetState(TRITONBACKEND_Model *model, void *state) {
    if (model == NULL)
        return kelp_null_error(__func__, "model");
    model_of(model)->state = state;
    return NULL;
}
