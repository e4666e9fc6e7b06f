/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repository agents: shared libraries that see a model before it is loaded and after it is
 * unloaded, and may put other files in place of its own. Those that a configuration names form a
 * chain, which lives as long as the models of that load: LOAD, then LOAD_COMPLETE or LOAD_FAIL,
 * UNLOAD when the first of them retires, UNLOAD_COMPLETE when the last is gone.
 *
 * Threads: loading threads and the reaper; one at a time for each chain. An agent is one a process
 * and library file.
 */
#ifndef KELP_SERVER_REPOSITORY_AGENTS_H_
#define KELP_SERVER_REPOSITORY_AGENTS_H_

#include "base/dl.h"
#include "server/core/values.h"
#include "server/core/options.h"
#include "server/config/config.h"

#include <triton/core/tritonrepoagent.h>

typedef struct kelp_agent kelp_agent;
struct kelp_agent {
    kelp_agent *next; /* in the process's list */
    unsigned refs;    /* under the list's lock */
    char *path;
    kelp_dl dl;
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
};

/* What one agent knows of one load of a model. */
typedef struct kelp_agent_model {
    kelp_agent *agent;
    kelp_model_config *config; /* a reference */
    kelp_config_parameter *parameters;
    size_t parameter_count;
    void *state;
    char *location; /* where the files lie now */
    char *acquired; /* a folder made for the agent; NULL when none */
    bool initialized;
    bool loading; /* the current action is LOAD */
    bool loaded;  /* LOAD succeeded */
} kelp_agent_model;

typedef struct kelp_agent_chain {
    atomic_uint refs;
    atomic_bool unloading;
    bool complete; /* LOAD_COMPLETE was said */
    kelp_agent_model *models;
    size_t count;
} kelp_agent_chain;

/* Runs the LOAD action of the agents that the configuration names. `*out` is NULL when it names
 * none; `*out_location`, borrowed from the chain or `directory` itself, is where the files are
 * then. A failure has been told to the agents. */
kelp_status *kelp_agent_chain_load(const kelp_server_options *options, kelp_model_config *config,
                                   const char *directory, kelp_agent_chain **out,
                                   const char **out_location) KELP_MUST_USE;
/* All that follow take NULL. */
void kelp_agent_chain_complete(kelp_agent_chain *chain);
void kelp_agent_chain_fail(kelp_agent_chain *chain);
/* Only the first call does anything. */
void kelp_agent_chain_unload(kelp_agent_chain *chain);
void kelp_agent_chain_retain(kelp_agent_chain *chain);
void kelp_agent_chain_release(kelp_agent_chain *chain);

/* A folder for files of the model, made once. */
kelp_status *kelp_agent_acquire_folder(kelp_agent_model *model, const char **out) KELP_MUST_USE;
void kelp_agent_release_folder(kelp_agent_model *model);

#endif
