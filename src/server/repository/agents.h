/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repository agents: shared libraries that are told of a model before it is loaded and after it is
 * unloaded, and may replace its files. The agents that a configuration names form a chain, which
 * exists as long as the models of that load: LOAD, then LOAD_COMPLETE or LOAD_FAIL, UNLOAD when the
 * first of them retires, UNLOAD_COMPLETE when the last one is finalized.
 *
 * Threads: loading threads and the reaper; one at a time for each chain. There is one agent for
 * each library file of the process: servers share them, so they use the process-wide allocator.
 */
#ifndef KELP_SERVER_REPOSITORY_AGENTS_H_
#define KELP_SERVER_REPOSITORY_AGENTS_H_

#include "server/config/config.h"
#include "server/core/options.h"

#include <triton/core/tritonrepoagent.h>

typedef struct kelp_agent kelp_agent;
struct kelp_agent {
    kelp_agent *next; /* in the process's list */
    unsigned refs;    /* under the list's lock */
    char *path;
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

/* One agent and one load of a model. */
typedef struct kelp_agent_model {
    kelp_allocator allocator;
    kelp_agent *agent;
    kelp_model_config *config; /* a reference */
    kelp_config_parameter *parameters;
    size_t parameter_count;
    void *state;
    char *location; /* where the files are now */
    char *acquired; /* a directory created for the agent; NULL if none */
    bool initialized;
    bool loading; /* the current action is LOAD */
    bool loaded;  /* LOAD succeeded */
} kelp_agent_model;

typedef struct kelp_agent_chain {
    kelp_allocator allocator;
    atomic_uint refs;
    atomic_bool unloading;
    bool complete; /* LOAD_COMPLETE was sent */
    kelp_agent_model *models;
    size_t count;
} kelp_agent_chain;

/* Runs the LOAD action of the agents that the configuration names; *out is NULL if it names none.
 * *out_location, borrowed from the chain or `directory` itself, is where the files are then. After
 * a failure the agents have been told LOAD_FAIL. */
kelp_status *kelp_agent_chain_load(kelp_allocator allocator, const kelp_server_options *options,
                                   kelp_model_config *config, const char *directory,
                                   kelp_agent_chain **out, const char **out_location) KELP_MUST_USE;
/* All functions below ignore NULL. */
void kelp_agent_chain_complete(kelp_agent_chain *chain);
void kelp_agent_chain_fail(kelp_agent_chain *chain);
/* Runs UNLOAD on the first call. */
void kelp_agent_chain_unload(kelp_agent_chain *chain);
void kelp_agent_chain_retain(kelp_agent_chain *chain);
void kelp_agent_chain_release(kelp_agent_chain *chain);

/* Returns a directory for files of the model, which is created on the first call. */
kelp_status *kelp_agent_acquire_directory(kelp_agent_model *model, const char **out) KELP_MUST_USE;
/* UNAVAILABLE if `path` was not acquired. */
kelp_status *kelp_agent_release_directory(kelp_agent_model *model, const char *path) KELP_MUST_USE;
/* Replaces the location of the model's files. INVALID_ARGUMENT outside LOAD. */
kelp_status *kelp_agent_set_location(kelp_agent_model *model, const char *location) KELP_MUST_USE;

#endif
