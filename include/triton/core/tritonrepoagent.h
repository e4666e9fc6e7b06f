/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C API between a Triton server and its repository agents, version 0.1, as implemented by Kelp.
 *
 * An agent receives actions when a model is loaded and unloaded, and can replace the model's files.
 * Names, values and signatures are those of Triton's public interface, and the comments describe
 * Kelp.
 *
 * The server calls functions marked TRITONREPOAGENT_ISPEC, which the agent defines. It may call
 * them for different models at once. The agent calls all others. The conventions of tritonserver.h
 * apply. The server owns agents and models.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "triton/core/tritonserver.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a function that the server library exports. */
#ifndef TRITONREPOAGENT_DECLSPEC
#if defined(__GNUC__)
#define TRITONREPOAGENT_DECLSPEC __attribute__((__visibility__("default")))
#else
#define TRITONREPOAGENT_DECLSPEC
#endif
#endif

/* Marks a function that an agent exports. */
#ifndef TRITONREPOAGENT_ISPEC
#if defined(__GNUC__)
#define TRITONREPOAGENT_ISPEC __attribute__((__visibility__("default")))
#else
#define TRITONREPOAGENT_ISPEC
#endif
#endif

/* ---- Opaque objects ---------------------------------------------------------------------- */

/* A loaded repository agent. */
struct TRITONREPOAGENT_Agent;
/* A model, as seen by one agent, from TRITONREPOAGENT_ModelInitialize until
 * TRITONREPOAGENT_ModelFinalize. Loading the model again creates another object. */
struct TRITONREPOAGENT_AgentModel;

typedef struct TRITONREPOAGENT_Agent TRITONREPOAGENT_Agent;
typedef struct TRITONREPOAGENT_AgentModel TRITONREPOAGENT_AgentModel;

/* ---- API version ------------------------------------------------------------------------- */

/* The version of this header. An incompatible change increments the major version, an addition the
 * minor version. */
#define TRITONREPOAGENT_API_VERSION_MAJOR 0
#define TRITONREPOAGENT_API_VERSION_MINOR 1

/* Gets the version that the server implements. An agent is compatible if it was compiled with the
 * same major version and the same or a lower minor version. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ApiVersion(uint32_t *major,
                                                                        uint32_t *minor);

/* ---- Location of a model ----------------------------------------------------------------- */

/* The form in which the files of a model are provided. Kelp supports only local directories. */
typedef enum TRITONREPOAGENT_artifacttype_enum {
    TRITONREPOAGENT_ARTIFACT_FILESYSTEM = 0,       /* local directory */
    TRITONREPOAGENT_ARTIFACT_REMOTE_FILESYSTEM = 1 /* remote directory, such as a bucket */
} TRITONREPOAGENT_ArtifactType;

/* An action on a model. If one agent rejects LOAD, only the agents before it receive LOAD_FAIL. */
typedef enum TRITONREPOAGENT_actiontype_enum {
    TRITONREPOAGENT_ACTION_LOAD = 0, /* before the model is loaded */
    /* the model is loaded; it serves requests afterwards */
    TRITONREPOAGENT_ACTION_LOAD_COMPLETE = 1,
    TRITONREPOAGENT_ACTION_LOAD_FAIL = 2,      /* the load failed */
    TRITONREPOAGENT_ACTION_UNLOAD = 3,         /* before the model is unloaded */
    TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE = 4 /* the model is unloaded */
} TRITONREPOAGENT_ActionType;

/* Gets the directory of the model's files, as set by this agent or an earlier one. '*location' is
 * valid until TRITONREPOAGENT_ModelRepositoryUpdate changes it or TRITONREPOAGENT_ModelFinalize
 * returns. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryLocation(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    TRITONREPOAGENT_ArtifactType *artifact_type, const char **location);

/* Creates an empty temporary directory for files of the model, or gets the one that this agent has
 * acquired for it. The server removes it after TRITONREPOAGENT_ModelFinalize unless it is released.
 * INVALID_ARG for a type other than FILESYSTEM, INTERNAL if the directory cannot be created. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryLocationAcquire(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char **location);

/* Removes an acquired directory and its contents. UNAVAILABLE if 'location' is not the acquired
 * directory. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryLocationRelease(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model, const char *location);

/* Sets the directory of the model's files, which must exist until the model is unloaded.
 * INVALID_ARG outside the action LOAD or for a type other than FILESYSTEM. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryUpdate(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char *location);

/* ---- Properties of a model --------------------------------------------------------------- */

/* Gets the number of parameters that the model's configuration contains for this agent. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelParameterCount(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
                                    uint32_t *count);

/* Gets a parameter. The strings are valid until TRITONREPOAGENT_ModelFinalize returns. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelParameter(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
                               const uint32_t index, const char **parameter_name,
                               const char **parameter_value);

/* Gets the configuration of the model as JSON, before the backend completes it. The agent deletes
 * the message. UNSUPPORTED for a 'config_version' other than 1. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelConfig(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
                            const uint32_t config_version, TRITONSERVER_Message **model_config);

/* Gets the pointer of TRITONREPOAGENT_ModelSetState; NULL if it is not set. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelState(TRITONREPOAGENT_AgentModel *model, void **state);

/* Sets a pointer for the agent's own use. The agent frees it in TRITONREPOAGENT_ModelFinalize. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelSetState(TRITONREPOAGENT_AgentModel *model, void *state);

/* Gets the pointer of TRITONREPOAGENT_SetState; NULL if it is not set. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_State(TRITONREPOAGENT_Agent *agent,
                                                                   void **state);

/* Sets a pointer for the agent's own use. The agent frees it in TRITONREPOAGENT_Finalize. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_SetState(TRITONREPOAGENT_Agent *agent,
                                                                      void *state);

/* ---- Defined by the agent ---------------------------------------------------------------- */

/* The server finds these functions by name. Only TRITONREPOAGENT_ModelAction is required. The
 * server takes ownership of the errors that they return, and logs those of Finalize functions. */

/* Initializes the agent when its library is loaded for a model. An error fails the load of the
 * model. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_Initialize(TRITONREPOAGENT_Agent *agent);

/* Finalizes the agent after its last model. The library stays loaded, and
 * TRITONREPOAGENT_Initialize may be called again later. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_Finalize(TRITONREPOAGENT_Agent *agent);

/* Initializes a model before its first action. An error fails the load of the model;
 * TRITONREPOAGENT_ModelFinalize is then not called. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelInitialize(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model);

/* Finalizes a model after its last action. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelFinalize(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model);

/* Processes an action on a model. An error during LOAD fails the load; errors of other actions are
 * logged. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelAction(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
                            const TRITONREPOAGENT_ActionType action_type);

#ifdef __cplusplus
}
#endif
