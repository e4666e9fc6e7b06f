/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C API between a Triton server and its repository agents, version 0.1, as Kelp provides it.
 *
 * An agent sees a model before it is loaded and after it is unloaded, and may put other files in
 * place of its own. Names, values and signatures are those of Triton's public interface; the
 * contracts are Kelp's, with the conventions at the head of tritonserver.h. Functions marked
 * TRITONREPOAGENT_ISPEC are defined by the agent and called by the server.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "triton/core/tritonserver.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TRITONREPOAGENT_DECLSPEC
#if defined(__GNUC__)
#define TRITONREPOAGENT_DECLSPEC __attribute__((__visibility__("default")))
#else
#define TRITONREPOAGENT_DECLSPEC
#endif
#endif

#ifndef TRITONREPOAGENT_ISPEC
#if defined(__GNUC__)
#define TRITONREPOAGENT_ISPEC __attribute__((__visibility__("default")))
#else
#define TRITONREPOAGENT_ISPEC
#endif
#endif

/* ---- Opaque objects ---------------------------------------------------------------------- */

struct TRITONREPOAGENT_Agent;
struct TRITONREPOAGENT_AgentModel;

typedef struct TRITONREPOAGENT_Agent TRITONREPOAGENT_Agent;
typedef struct TRITONREPOAGENT_AgentModel TRITONREPOAGENT_AgentModel;

/* ---- API version ------------------------------------------------------------------------- */

/* The major number changes when an agent has to change, the minor one when something is added. */
#define TRITONREPOAGENT_API_VERSION_MAJOR 0
#define TRITONREPOAGENT_API_VERSION_MINOR 1

/* Gives the version that the server implements. An agent needs an equal major number and a minor
 * number that is at least its own. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ApiVersion(uint32_t *major,
                                                                        uint32_t *minor);

/* ---- Where a model lies ------------------------------------------------------------------ */

/* How the files of a model are given. */
typedef enum TRITONREPOAGENT_artifacttype_enum {
    TRITONREPOAGENT_ARTIFACT_FILESYSTEM = 0,       /* a folder of this machine */
    TRITONREPOAGENT_ARTIFACT_REMOTE_FILESYSTEM = 1 /* a folder elsewhere, such as a bucket */
} TRITONREPOAGENT_ArtifactType;

/* What the server does with a model. LOAD is followed by LOAD_COMPLETE or LOAD_FAIL, UNLOAD by
 * UNLOAD_COMPLETE. */
typedef enum TRITONREPOAGENT_actiontype_enum {
    TRITONREPOAGENT_ACTION_LOAD = 0,
    TRITONREPOAGENT_ACTION_LOAD_COMPLETE = 1,
    TRITONREPOAGENT_ACTION_LOAD_FAIL = 2,
    TRITONREPOAGENT_ACTION_UNLOAD = 3,
    TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE = 4
} TRITONREPOAGENT_ActionType;

/* Gives where the model's files lie now, as an agent before this one may have left them; borrowed
 * for the current action. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryLocation(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    TRITONREPOAGENT_ArtifactType *artifact_type, const char **location);

/* Makes an empty folder for files of the model, or gives the one that was made before. It lasts
 * until it is released or the model is unloaded. INVALID_ARG for a type other than a folder of this
 * machine. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryLocationAcquire(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char **location);

/* Removes a folder that was acquired, with what is in it. UNAVAILABLE when none was acquired. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryLocationRelease(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model, const char *location);

/* Makes the server take the model's files from another place, which must stay until the model is
 * unloaded. INVALID_ARG unless the current action is LOAD. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryUpdate(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char *location);

/* ---- What is known of a model ------------------------------------------------------------ */

/* Gives the number of parameters that the model's configuration has for this agent. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelParameterCount(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
                                    uint32_t *count);

/* Gives one parameter; a name may occur more than once. INVALID_ARG when 'index' is out of range.
 */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelParameter(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
                               const uint32_t index, const char **parameter_name,
                               const char **parameter_value);

/* Gives the model's configuration, not yet completed, as a message that the agent owns and deletes.
 * 'config_version' is 1; any other is UNSUPPORTED. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelConfig(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
                            const uint32_t config_version, TRITONSERVER_Message **model_config);

/* Gives the pointer set with TRITONREPOAGENT_ModelSetState, NULL before. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelState(TRITONREPOAGENT_AgentModel *model, void **state);

/* Keeps a pointer of the agent's own, which it frees in TRITONREPOAGENT_ModelFinalize. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelSetState(TRITONREPOAGENT_AgentModel *model, void *state);

/* Gives the pointer set with TRITONREPOAGENT_SetState, NULL before. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_State(TRITONREPOAGENT_Agent *agent,
                                                                   void **state);

/* Keeps a pointer of the agent's own, which it frees in TRITONREPOAGENT_Finalize. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_SetState(TRITONREPOAGENT_Agent *agent,
                                                                      void *state);

/* ---- Defined by the agent ---------------------------------------------------------------- */

/* All but TRITONREPOAGENT_ModelAction may be left out. A server finds them by name. */

/* Called once when the agent is loaded. An error refuses it. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_Initialize(TRITONREPOAGENT_Agent *agent);

/* Called once before the agent is unloaded, after its last model. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_Finalize(TRITONREPOAGENT_Agent *agent);

/* Called before the first action on a model. An error refuses the model. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelInitialize(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model);

/* Called after the last action on a model. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelFinalize(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model);

/* Called for each action on a model. An error during LOAD keeps the model from being loaded; during
 * any other action it is logged and has no effect. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelAction(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
                            const TRITONREPOAGENT_ActionType action_type);

#ifdef __cplusplus
}
#endif
