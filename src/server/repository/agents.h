/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repository agents: shared libraries that are called before a model is loaded and after it is
 * unloaded, and may replace its files. The agents of a configuration form a chain, which exists as
 * long as the models of that load. Its actions are LOAD, then LOAD_COMPLETE or LOAD_FAIL, UNLOAD
 * when the first of the models retires, and UNLOAD_COMPLETE when the last one is finalized.
 *
 * A chain is used by one thread at a time, a loading thread or the reaper. There is one agent for
 * each library file of the process. Servers share it, so that it uses the process-wide allocator.
 */
#ifndef KELP_SERVER_REPOSITORY_AGENTS_H_
#define KELP_SERVER_REPOSITORY_AGENTS_H_

#include "server/config/config.h"
#include "server/core/options.h"
#include "server/core/shared_library.h"

#include <triton/core/tritonrepoagent.h>

/* A loaded agent. */
typedef struct kelp_agent {
    kelp_shared_library shared; /* the identity is the path of the library */
    void *state;
    TRITONSERVER_Error *(*initialize)(TRITONREPOAGENT_Agent *agent);
    TRITONSERVER_Error *(*finalize)(TRITONREPOAGENT_Agent *agent);
    TRITONSERVER_Error *(*model_initialize)(TRITONREPOAGENT_Agent *agent,
                                            TRITONREPOAGENT_AgentModel *model);
    TRITONSERVER_Error *(*model_finalize)(TRITONREPOAGENT_Agent *agent,
                                          TRITONREPOAGENT_AgentModel *model);
    TRITONSERVER_Error *(*model_action)(TRITONREPOAGENT_Agent *agent,
                                        TRITONREPOAGENT_AgentModel *model,
                                        const TRITONREPOAGENT_ActionType action_type);
} kelp_agent;

/* An agent and a load of a model. TRITONREPOAGENT_AgentModel is a pointer to it. */
typedef struct kelp_agent_model {
    kelp_allocator allocator;
    kelp_agent *agent;
    kelp_model_config *config; /* a reference */
    kelp_config_parameter *parameters;
    size_t parameter_count;
    void *state;
    char *location; /* current directory of the files */
    char *acquired; /* a directory created for the agent; NULL if none */
    bool initialized;
    bool loading; /* during the action LOAD */
    bool loaded;  /* LOAD succeeded */
} kelp_agent_model;

/* The agents of a load. */
typedef struct kelp_agent_chain {
    kelp_allocator allocator;
    atomic_uint refs;
    atomic_bool unloading;
    bool complete; /* LOAD_COMPLETE was sent */
    kelp_agent_model *models;
    size_t count;
} kelp_agent_chain;

/* Runs the action LOAD of the configuration's agents; *out is NULL if it has none. An agent that
 * follows one that changes the location sees the configuration there, read with `config_options`.
 * *out_location, borrowed from the chain or the options' directory itself, is the directory of the
 * files after that. If an agent fails, runs LOAD_FAIL. */
kelp_status *kelp_agent_chain_load(kelp_allocator allocator, const kelp_server_options *options,
                                   kelp_model_config *config,
                                   const kelp_config_load_options *config_options,
                                   kelp_agent_chain **out, const char **out_location) KELP_MUST_USE;
/* Runs LOAD_COMPLETE or LOAD_FAIL. This and the following functions ignore a chain that is NULL. */
void kelp_agent_chain_complete(kelp_agent_chain *chain);
void kelp_agent_chain_fail(kelp_agent_chain *chain);
/* Runs UNLOAD, on the first call only. */
void kelp_agent_chain_unload(kelp_agent_chain *chain);
/* Adds or drops a reference. Dropping the last one runs UNLOAD_COMPLETE. */
void kelp_agent_chain_retain(kelp_agent_chain *chain);
void kelp_agent_chain_release(kelp_agent_chain *chain);

/* Returns a directory for the model's files, which is created on the first call. */
kelp_status *kelp_agent_acquire_directory(kelp_agent_model *model, const char **out) KELP_MUST_USE;
/* Removes the directory. UNAVAILABLE if `path` was not acquired. */
kelp_status *kelp_agent_release_directory(kelp_agent_model *model, const char *path) KELP_MUST_USE;
/* Replaces the location of the model's files. INVALID_ARGUMENT outside LOAD. */
kelp_status *kelp_agent_set_location(kelp_agent_model *model, const char *location) KELP_MUST_USE;

#endif
