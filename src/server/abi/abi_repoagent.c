/* SPDX-License-Identifier: Apache-2.0 */
/* The C API for repository agents: models. */
#include "base/assert.h"
#include "server/core/error.h"
#include "server/core/message.h"
#include "server/repository/agents.h"

static kelp_agent_model *of(TRITONREPOAGENT_AgentModel *model) {
    return (kelp_agent_model *)model;
}

static TRITONSERVER_Error *check_type(TRITONREPOAGENT_ArtifactType type) {
    if (type == TRITONREPOAGENT_ARTIFACT_FILESYSTEM)
        return NULL;
    return kelp_to_error(KELP_ERROR(
        KELP_INVALID_ARGUMENT, "unexpected artifact type '%d': expected FILESYSTEM", (int)type));
}

TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryLocation(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    TRITONREPOAGENT_ArtifactType *artifact_type, const char **location) {
    (void)agent;
    if (model == NULL || artifact_type == NULL || location == NULL)
        return kelp_null_error(__func__, model == NULL           ? "model"
                                         : artifact_type == NULL ? "artifact_type"
                                                                 : "location");
    *artifact_type = TRITONREPOAGENT_ARTIFACT_FILESYSTEM;
    KELP_ASSERT(of(model)->location != NULL); /* set before the agent is called */
    *location = of(model)->location;
    return NULL;
}

TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryLocationAcquire(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char **location) {
    (void)agent;
    if (model == NULL || location == NULL)
        return kelp_null_error(__func__, model != NULL ? "location" : "model");
    TRITONSERVER_Error *error = check_type(artifact_type);
    return error != NULL ? error : kelp_to_error(kelp_agent_acquire_directory(of(model), location));
}

TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryLocationRelease(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model, const char *location) {
    (void)agent;
    if (model == NULL || location == NULL)
        return kelp_null_error(__func__, model != NULL ? "location" : "model");
    return kelp_to_error(kelp_agent_release_directory(of(model), location));
}

TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryUpdate(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char *location) {
    (void)agent;
    if (model == NULL || location == NULL)
        return kelp_null_error(__func__, model != NULL ? "location" : "model");
    TRITONSERVER_Error *error = check_type(artifact_type);
    return error != NULL ? error : kelp_to_error(kelp_agent_set_location(of(model), location));
}

TRITONSERVER_Error *TRITONREPOAGENT_ModelParameterCount(TRITONREPOAGENT_Agent *agent,
                                                        TRITONREPOAGENT_AgentModel *model,
                                                        uint32_t *count) {
    (void)agent;
    if (model == NULL || count == NULL)
        return kelp_null_error(__func__, model != NULL ? "count" : "model");
    *count = (uint32_t)of(model)->parameter_count;
    return NULL;
}

TRITONSERVER_Error *TRITONREPOAGENT_ModelParameter(TRITONREPOAGENT_Agent *agent,
                                                   TRITONREPOAGENT_AgentModel *model,
                                                   const uint32_t index,
                                                   const char **parameter_name,
                                                   const char **parameter_value) {
    (void)agent;
    if (model == NULL || parameter_name == NULL || parameter_value == NULL)
        return kelp_null_error(__func__, model != NULL ? NULL : "model");
    if (index >= of(model)->parameter_count)
        return kelp_to_error(KELP_ERROR(KELP_INVALID_ARGUMENT,
                                        "out of bounds index %u: the agent has %zu parameters",
                                        index, of(model)->parameter_count));
    KELP_ASSERT(of(model)->parameters[index].key != NULL);
    *parameter_name = of(model)->parameters[index].key;
    *parameter_value = of(model)->parameters[index].value;
    return NULL;
}

TRITONSERVER_Error *TRITONREPOAGENT_ModelConfig(TRITONREPOAGENT_Agent *agent,
                                                TRITONREPOAGENT_AgentModel *model,
                                                const uint32_t config_version,
                                                TRITONSERVER_Message **model_config) {
    (void)agent;
    if (model == NULL || model_config == NULL)
        return kelp_null_error(__func__, model != NULL ? "model_config" : "model");
    kelp_buf json;
    kelp_buf_init(&json, of(model)->allocator);
    kelp_status *status = kelp_model_config_to_json(of(model)->config, config_version, &json);
    if (status == NULL)
        status = kelp_message_create(&json, (kelp_message **)model_config);
    kelp_buf_deinit(&json);
    return kelp_to_error(status);
}

TRITONSERVER_Error *TRITONREPOAGENT_ModelState(TRITONREPOAGENT_AgentModel *model, void **state) {
    if (model == NULL || state == NULL)
        return kelp_null_error(__func__, model != NULL ? "state" : "model");
    *state = of(model)->state;
    return NULL;
}

TRITONSERVER_Error *TRITONREPOAGENT_ModelSetState(TRITONREPOAGENT_AgentModel *model, void *state) {
    if (model == NULL)
        return kelp_null_error(__func__, "model");
    of(model)->state = state;
    return NULL;
}

TRITONSERVER_Error *TRITONREPOAGENT_State(TRITONREPOAGENT_Agent *agent, void **state) {
    if (agent == NULL || state == NULL)
        return kelp_null_error(__func__, agent != NULL ? "state" : "agent");
    *state = ((kelp_agent *)agent)->state;
    return NULL;
}

TRITONSERVER_Error *TRITONREPOAGENT_SetState(TRITONREPOAGENT_Agent *agent, void *state) {
    if (agent == NULL)
        return kelp_null_error(__func__, "agent");
    ((kelp_agent *)agent)->state = state;
    return NULL;
}
