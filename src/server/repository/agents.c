/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, loading and running repository agents. */
#include "server/repository/agents.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/files/temporary.h"
#include "base/checked.h"
#include "base/fs.h"
#include "server/config/overrides.h"
#include "server/config/view.h"
#include "server/core/error.h"
#include "server/core/heap.h"
#include "server/core/library.h"
#include "server/core/log.h"

#include <pthread.h>
#include <string.h>

/* ---- agents ---- */

static kelp_status *agent_open(kelp_shared_library *shared, void *userp) {
    kelp_agent *agent = (kelp_agent *)shared;
    (void)userp;
    static const kelp_entry_point entry_points[] = {
        {"TRITONREPOAGENT_ModelAction", offsetof(kelp_agent, model_action), true},
        {"TRITONREPOAGENT_Initialize", offsetof(kelp_agent, initialize), false},
        {"TRITONREPOAGENT_Finalize", offsetof(kelp_agent, finalize), false},
        {"TRITONREPOAGENT_ModelInitialize", offsetof(kelp_agent, model_initialize), false},
        {"TRITONREPOAGENT_ModelFinalize", offsetof(kelp_agent, model_finalize), false},
    };
    KELP_TRY(kelp_library_open(shared->identity, "repository agent", entry_points,
                               KELP_COUNT(entry_points), agent));
    return agent->initialize != NULL
               ? kelp_from_error(agent->initialize((TRITONREPOAGENT_Agent *)agent))
               : NULL;
}

static void agent_close(kelp_shared_library *shared) {
    kelp_agent *agent = (kelp_agent *)shared;
    if (agent->finalize != NULL)
        kelp_server_log_status("failed to finalize a repository agent",
                               kelp_from_error(agent->finalize((TRITONREPOAGENT_Agent *)agent)));
}

static kelp_shared_libraries loaded_agents = {.kind = "repository agent",
                                              .size_bytes = sizeof(kelp_agent),
                                              .open = agent_open,
                                              .close = agent_close,
                                              .lock = PTHREAD_MUTEX_INITIALIZER,
                                              .changed = PTHREAD_COND_INITIALIZER};

static kelp_status *agent_acquire(const kelp_server_options *options, const char *name,
                                  kelp_agent **out) {
    kelp_buf path;
    if (!name[0] || strchr(name, '/') != NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "'%s' is not the name of a repository agent",
                          name);
    kelp_buf_init(&path, kelp_process_allocator());
    kelp_buf_printf(&path, "%s/%s/libtritonrepoagent_%s.so", options->repoagent_directory, name,
                    name);
    kelp_status *status = kelp_buf_cstr(&path) != NULL ? NULL : kelp_status_oom();
    if (status == NULL && kelp_fs_kind_of(path.data) != KELP_FS_FILE)
        status = KELP_ERROR(KELP_NOT_FOUND, "unable to find repository agent '%s': no file '%s'",
                            name, path.data);
    if (status == NULL) {
        kelp_shared_library *shared = NULL;
        status = kelp_shared_library_acquire(&loaded_agents, path.data, NULL, &shared);
        *out = (kelp_agent *)shared;
        if (status != NULL)
            status = KELP_ANNOTATE(status, "unable to load repository agent '%s'", name);
    }
    kelp_buf_deinit(&path);
    return status;
}

static void agent_release(kelp_agent *agent) {
    if (agent != NULL)
        kelp_shared_library_release(&loaded_agents, &agent->shared);
}

/* ---- one agent and one model ---- */

static kelp_status *act(kelp_agent_model *model, TRITONREPOAGENT_ActionType action) {
    KELP_ASSERT(model->agent && model->initialized);
    return kelp_from_error(model->agent->model_action((TRITONREPOAGENT_Agent *)model->agent,
                                                      (TRITONREPOAGENT_AgentModel *)model, action));
}

kelp_status *kelp_agent_acquire_directory(kelp_agent_model *model, const char **out) {
    if (model->acquired == NULL)
        KELP_TRY(kelp_temporary_create(model->allocator, "agent", &model->acquired));
    *out = model->acquired;
    return NULL;
}

static void remove_acquired(kelp_agent_model *model) {
    kelp_temporary_remove(model->allocator, model->acquired);
    model->acquired = NULL;
}

kelp_status *kelp_agent_release_directory(kelp_agent_model *model, const char *path) {
    if (model->acquired == NULL || strcmp(model->acquired, path) != 0)
        return KELP_ERROR(KELP_UNAVAILABLE, "location '%s' was not acquired for the model", path);
    remove_acquired(model);
    return NULL;
}

kelp_status *kelp_agent_set_location(kelp_agent_model *model, const char *location) {
    char *copy = NULL;
    if (!model->loading)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "cannot change the location of a model's files: expected during the "
                          "action LOAD");
    KELP_TRY(kelp_strdup(model->allocator, location, &copy));
    kelp_free_string(model->allocator, model->location);
    model->location = copy;
    return NULL;
}

static kelp_status *read_parameters(kelp_agent_model *model, const kelp_config_message *message) {
    const kelp_config_value *first = kelp_config_get(message, "parameters");
    size_t count = 0;
    for (const kelp_config_value *v = first; v != NULL; v = v->next)
        count++;
    KELP_TRY(kelp_alloc_zero(model->allocator, count, sizeof *model->parameters,
                             (void **)&model->parameters));
    model->parameter_count = count;
    count = 0;
    for (const kelp_config_value *v = first; v != NULL; v = v->next, count++) {
        const char *key = kelp_arena_strndup(model->config->arena, v->key.data, v->key.length);
        const char *value = kelp_arena_strndup(model->config->arena, v->text.data, v->text.length);
        if (key == NULL || value == NULL)
            return kelp_status_oom();
        model->parameters[count] = (kelp_config_parameter){key, value};
    }
    return NULL;
}

/* Adds the name of the agent to its reason. */
static kelp_status *rejected(const char *agent, kelp_status *take_reason) {
    char reason[2048];
    kelp_status_format(take_reason, reason, sizeof reason);
    kelp_status *status = KELP_ERROR(kelp_status_code(take_reason),
                                     "%s (rejected by repository agent '%s')", reason, agent);
    kelp_status_free(take_reason);
    return status;
}

static kelp_status *start(const kelp_server_options *options, kelp_model_config *config,
                          const kelp_config_message *message, const char *location,
                          kelp_agent_model *model) {
    KELP_ASSERT(!model->initialized);
    const char *name = kelp_config_text(config->arena, message, "name");
    if (name == NULL)
        return kelp_status_oom();
    kelp_model_config_retain(config);
    model->config = config;
    KELP_TRY(kelp_strdup(model->allocator, location, &model->location));
    KELP_TRY(read_parameters(model, message));
    KELP_TRY(agent_acquire(options, name, &model->agent));
    if (model->agent->model_initialize != NULL)
        KELP_TRY(kelp_from_error(model->agent->model_initialize(
            (TRITONREPOAGENT_Agent *)model->agent, (TRITONREPOAGENT_AgentModel *)model)));
    model->initialized = true;
    model->loading = true;
    kelp_status *status = act(model, TRITONREPOAGENT_ACTION_LOAD);
    model->loading = false;
    model->loaded = status == NULL;
    return status != NULL ? rejected(name, status) : NULL;
}

static void end(kelp_agent_model *model) {
    if (model->initialized && model->agent->model_finalize != NULL)
        kelp_server_log_status(
            "failed to finalize a model of a repository agent",
            kelp_from_error(model->agent->model_finalize((TRITONREPOAGENT_Agent *)model->agent,
                                                         (TRITONREPOAGENT_AgentModel *)model)));
    remove_acquired(model);
    agent_release(model->agent);
    kelp_free(model->allocator, model->parameters,
              model->parameter_count * sizeof *model->parameters);
    kelp_free_string(model->allocator, model->location);
    kelp_model_config_release(model->config);
}

/* ---- chains ---- */

/* Runs an action of the agents whose LOAD succeeded, in reverse order. */
static void act_reversed(kelp_agent_chain *chain, TRITONREPOAGENT_ActionType action) {
    for (size_t i = chain->count; i-- > 0;)
        if (chain->models[i].loaded)
            kelp_server_log_status("a repository agent failed", act(&chain->models[i], action));
}

/* Creates a chain of `count` agents that have not started. */
static kelp_status *chain_create(kelp_allocator allocator, size_t count, kelp_agent_chain **out) {
    kelp_agent_chain *chain = NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_agent_chain, &chain));
    chain->allocator = allocator;
    atomic_store(&chain->refs, 1);
    kelp_status *status =
        kelp_alloc_zero(allocator, count, sizeof *chain->models, (void **)&chain->models);
    if (status != NULL) {
        kelp_free(allocator, chain, sizeof *chain);
        return status;
    }
    chain->count = count;
    for (size_t i = 0; i < count; i++)
        chain->models[i].allocator = allocator;
    *out = chain;
    return NULL;
}

/* Starts the agents one after the other. */
static kelp_status *start_all(kelp_agent_chain *chain, const kelp_server_options *options,
                              kelp_model_config *config, const kelp_config_value *first,
                              const kelp_config_load_options *config_options) {
    kelp_config_load_options next_options = *config_options;
    kelp_model_config *current = config; /* of the present location */
    kelp_status *status = NULL;
    size_t index = 0;
    kelp_model_config_retain(current);
    for (const kelp_config_value *v = first; v != NULL && status == NULL; v = v->next, index++) {
        const char *location = next_options.model_directory;
        status = start(options, current, v->message, location, &chain->models[index]);
        if (status != NULL || strcmp(chain->models[index].location, location) == 0)
            continue;
        kelp_model_config_release(current);
        current = NULL;
        next_options.model_directory = chain->models[index].location;
        if (v->next != NULL)
            status = kelp_model_config_load(chain->allocator, &next_options, &current);
    }
    kelp_model_config_release(current);
    return status;
}

kelp_status *kelp_agent_chain_load(kelp_allocator allocator, const kelp_server_options *options,
                                   kelp_model_config *config,
                                   const kelp_config_load_options *config_options,
                                   kelp_agent_chain **out, const char **out_location) {
    const kelp_config_message *agents = kelp_config_sub(config->tree, "model_repository_agents");
    const kelp_config_value *first = agents != NULL ? kelp_config_get(agents, "agents") : NULL;
    kelp_agent_chain *chain = NULL;
    size_t count = 0;
    *out = NULL;
    *out_location = config_options->model_directory;
    for (const kelp_config_value *v = first; v != NULL; v = v->next)
        count++;
    if (count == 0)
        return NULL;
    KELP_TRY(chain_create(allocator, count, &chain));
    kelp_status *status = start_all(chain, options, config, first, config_options);
    if (status != NULL) {
        kelp_agent_chain_fail(chain);
        kelp_agent_chain_release(chain);
        return status;
    }
    *out = chain;
    *out_location = chain->models[count - 1].location;
    return NULL;
}

void kelp_agent_chain_complete(kelp_agent_chain *chain) {
    if (chain == NULL)
        return;
    chain->complete = true;
    act_reversed(chain, TRITONREPOAGENT_ACTION_LOAD_COMPLETE);
}

void kelp_agent_chain_fail(kelp_agent_chain *chain) {
    if (chain != NULL)
        act_reversed(chain, TRITONREPOAGENT_ACTION_LOAD_FAIL);
}

void kelp_agent_chain_unload(kelp_agent_chain *chain) {
    if (chain == NULL || atomic_exchange(&chain->unloading, true))
        return;
    for (size_t i = 0; i < chain->count; i++)
        kelp_server_log_status("a repository agent failed",
                               act(&chain->models[i], TRITONREPOAGENT_ACTION_UNLOAD));
}

void kelp_agent_chain_retain(kelp_agent_chain *chain) {
    if (chain != NULL)
        atomic_fetch_add_explicit(&chain->refs, 1, memory_order_relaxed);
}

void kelp_agent_chain_release(kelp_agent_chain *chain) {
    if (chain == NULL || atomic_fetch_sub_explicit(&chain->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (chain->complete) {
        kelp_agent_chain_unload(chain);
        act_reversed(chain, TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE);
    }
    for (size_t i = chain->count; i-- > 0;)
        end(&chain->models[i]);
    kelp_allocator allocator = chain->allocator;
    kelp_free(allocator, chain->models, chain->count * sizeof *chain->models);
    kelp_free(allocator, chain, sizeof *chain);
}
