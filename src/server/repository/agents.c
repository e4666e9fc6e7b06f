/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, loading and running repository agents; see agents.h. */
#include "server/repository/agents.h"

#include "base/fs.h"
#include "server/core/log.h"
#include "server/config/view.h"
#include "server/config/overrides.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static kelp_agent *list;

/* ---- agents ---- */

static void agent_free(kelp_agent *agent) {
    kelp_allocator heap = kelp_allocator_system();
    kelp_free_string(heap, agent->path);
    kelp_free(heap, agent, sizeof *agent);
}

/* ISO C has no conversion from object to function pointers; POSIX promises that this one works. */
#define BIND(field, symbol) \
    (*(void **)(void *)&(agent->field) = kelp_dl_own_symbol(&agent->dl, symbol))

static kelp_status *agent_open(kelp_agent *agent) {
    KELP_TRY(kelp_dl_open(agent->path, &agent->dl));
    BIND(initialize, "TRITONREPOAGENT_Initialize");
    BIND(finalize, "TRITONREPOAGENT_Finalize");
    BIND(model_initialize, "TRITONREPOAGENT_ModelInitialize");
    BIND(model_finalize, "TRITONREPOAGENT_ModelFinalize");
    BIND(model_action, "TRITONREPOAGENT_ModelAction");
    if (!agent->model_action)
        return KELP_ERROR(KELP_NOT_FOUND,
                          "'%s' is no repository agent: it has no TRITONREPOAGENT_ModelAction",
                          agent->path);
    return agent->initialize ? kelp_from_error(agent->initialize((TRITONREPOAGENT_Agent *)agent))
                             : NULL;
}

/* list_lock held */
static kelp_status *acquire_locked(const char *path, kelp_agent **out) {
    for (kelp_agent *known = list; known; known = known->next) {
        if (strcmp(known->path, path) == 0) {
            known->refs++;
            *out = known;
            return NULL;
        }
    }
    kelp_agent *agent = NULL;
    KELP_TRY(KELP_NEW(kelp_allocator_system(), kelp_agent, &agent));
    kelp_status *status = kelp_strdup(kelp_allocator_system(), path, &agent->path);
    if (!status)
        status = agent_open(agent);
    if (status) {
        agent_free(agent);
        return status;
    }
    agent->refs = 1;
    agent->next = list;
    list = agent;
    *out = agent;
    return NULL;
}

static kelp_status *agent_acquire(const kelp_server_options *options, const char *name,
                                  kelp_agent **out) {
    kelp_buf path;
    if (!name[0] || strchr(name, '/'))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "'%s' is no name of a repository agent", name);
    kelp_buf_init(&path, kelp_allocator_system());
    kelp_buf_printf(&path, "%s/%s/libtritonrepoagent_%s.so", options->repoagent_directory, name,
                    name);
    kelp_status *status = kelp_buf_cstr(&path) ? NULL : kelp_status_oom();
    if (!status && kelp_fs_kind_of(path.data) != KELP_FS_FILE)
        status = KELP_ERROR(KELP_NOT_FOUND, "unable to find repository agent '%s': no file '%s'",
                            name, path.data);
    if (!status) {
        pthread_mutex_lock(&list_lock);
        status = acquire_locked(path.data, out);
        pthread_mutex_unlock(&list_lock);
        if (status)
            status = KELP_ANNOTATE(status, "unable to load repository agent '%s'", name);
    }
    kelp_buf_deinit(&path);
    return status;
}

/* The code stays loaded, as that of backends does. */
static void agent_release(kelp_agent *agent) {
    if (!agent)
        return;
    pthread_mutex_lock(&list_lock);
    bool last = --agent->refs == 0;
    for (kelp_agent **link = &list; last && *link; link = &(*link)->next) {
        if (*link == agent) {
            *link = agent->next;
            break;
        }
    }
    if (last && agent->finalize)
        kelp_server_log_status("failed to finalize a repository agent",
                               kelp_from_error(agent->finalize((TRITONREPOAGENT_Agent *)agent)));
    pthread_mutex_unlock(&list_lock);
    if (last)
        agent_free(agent);
}

/* ---- one agent and one model ---- */

static kelp_status *act(kelp_agent_model *model, TRITONREPOAGENT_ActionType action) {
    return kelp_from_error(model->agent->model_action((TRITONREPOAGENT_Agent *)model->agent,
                                                      (TRITONREPOAGENT_AgentModel *)model, action));
}

kelp_status *kelp_agent_acquire_folder(kelp_agent_model *model, const char **out) {
    if (!model->acquired) {
        const char *base = getenv("TMPDIR");
        char template[4096];
        snprintf(template, sizeof template, "%s/kelp-agent-XXXXXX",
                 base && base[0] ? base : "/tmp");
        if (!mkdtemp(template))
            return KELP_ERROR(KELP_INTERNAL, "cannot make a folder like '%s'", template);
        KELP_TRY(kelp_strdup(kelp_allocator_system(), template, &model->acquired));
    }
    *out = model->acquired;
    return NULL;
}

void kelp_agent_release_folder(kelp_agent_model *model) {
    if (model->acquired)
        kelp_remove_tree(model->acquired);
    kelp_free_string(kelp_allocator_system(), model->acquired);
    model->acquired = NULL;
}

static kelp_status *read_parameters(kelp_agent_model *model, const kelp_config_message *message) {
    const kelp_config_value *first = kelp_config_get(message, "parameters");
    size_t count = 0;
    for (const kelp_config_value *v = first; v; v = v->next)
        count++;
    KELP_TRY(kelp_alloc_zero(kelp_allocator_system(), count, sizeof *model->parameters,
                             (void **)&model->parameters));
    model->parameter_count = count;
    count = 0;
    for (const kelp_config_value *v = first; v; v = v->next, count++) {
        const char *key = kelp_arena_strndup(model->config->arena, v->key.data, v->key.length);
        const char *value = kelp_arena_strndup(model->config->arena, v->text.data, v->text.length);
        if (!key || !value)
            return kelp_status_oom();
        model->parameters[count] = (kelp_config_parameter){key, value};
    }
    return NULL;
}

static kelp_status *start(const kelp_server_options *options, kelp_model_config *config,
                          const kelp_config_message *message, const char *location,
                          kelp_agent_model *model) {
    const char *name = kelp_config_text(config->arena, message, "name");
    if (!name)
        return kelp_status_oom();
    kelp_model_config_retain(config);
    model->config = config;
    KELP_TRY(kelp_strdup(kelp_allocator_system(), location, &model->location));
    KELP_TRY(read_parameters(model, message));
    KELP_TRY(agent_acquire(options, name, &model->agent));
    if (model->agent->model_initialize)
        KELP_TRY(kelp_from_error(model->agent->model_initialize(
            (TRITONREPOAGENT_Agent *)model->agent, (TRITONREPOAGENT_AgentModel *)model)));
    model->initialized = true;
    model->loading = true;
    kelp_status *status = act(model, TRITONREPOAGENT_ACTION_LOAD);
    model->loading = false;
    model->loaded = !status;
    return status ? KELP_ANNOTATE(status, "repository agent '%s' refuses the model", name) : NULL;
}

static void end(kelp_agent_model *model) {
    if (model->initialized && model->agent->model_finalize)
        kelp_server_log_status(
            "failed to finalize a model of a repository agent",
            kelp_from_error(model->agent->model_finalize((TRITONREPOAGENT_Agent *)model->agent,
                                                         (TRITONREPOAGENT_AgentModel *)model)));
    kelp_agent_release_folder(model);
    agent_release(model->agent);
    kelp_free(kelp_allocator_system(), model->parameters,
              model->parameter_count * sizeof *model->parameters);
    kelp_free_string(kelp_allocator_system(), model->location);
    kelp_model_config_release(model->config);
}

/* ---- chains ---- */

/* Those whose LOAD succeeded, the last first. */
static void tell_back(kelp_agent_chain *chain, TRITONREPOAGENT_ActionType action) {
    for (size_t i = chain->count; i-- > 0;)
        if (chain->models[i].loaded)
            kelp_server_log_status("a repository agent failed", act(&chain->models[i], action));
}

kelp_status *kelp_agent_chain_load(const kelp_server_options *options, kelp_model_config *config,
                                   const char *directory, kelp_agent_chain **out,
                                   const char **out_location) {
    kelp_allocator heap = kelp_allocator_system();
    const kelp_config_message *agents = kelp_config_sub(config->tree, "model_repository_agents");
    const kelp_config_value *first = agents ? kelp_config_get(agents, "agents") : NULL;
    kelp_agent_chain *chain = NULL;
    *out = NULL;
    *out_location = directory;
    if (!first)
        return NULL;
    KELP_TRY(KELP_NEW(heap, kelp_agent_chain, &chain));
    atomic_store(&chain->refs, 1);
    size_t count = 0;
    for (const kelp_config_value *v = first; v; v = v->next)
        count++;
    kelp_status *status =
        kelp_alloc_zero(heap, count, sizeof *chain->models, (void **)&chain->models);
    if (!status)
        chain->count = count;
    const char *location = directory;
    size_t index = 0;
    for (const kelp_config_value *v = first; v && !status; v = v->next, index++) {
        status = start(options, config, v->message, location, &chain->models[index]);
        location = chain->models[index].location;
    }
    if (status) {
        kelp_agent_chain_fail(chain);
        kelp_agent_chain_release(chain);
        return status;
    }
    *out = chain;
    *out_location = location;
    return NULL;
}

void kelp_agent_chain_complete(kelp_agent_chain *chain) {
    if (!chain)
        return;
    chain->complete = true;
    tell_back(chain, TRITONREPOAGENT_ACTION_LOAD_COMPLETE);
}

void kelp_agent_chain_fail(kelp_agent_chain *chain) {
    if (chain)
        tell_back(chain, TRITONREPOAGENT_ACTION_LOAD_FAIL);
}

void kelp_agent_chain_unload(kelp_agent_chain *chain) {
    if (!chain || atomic_exchange(&chain->unloading, true))
        return;
    for (size_t i = 0; i < chain->count; i++)
        kelp_server_log_status("a repository agent failed",
                               act(&chain->models[i], TRITONREPOAGENT_ACTION_UNLOAD));
}

void kelp_agent_chain_retain(kelp_agent_chain *chain) {
    if (chain)
        atomic_fetch_add_explicit(&chain->refs, 1, memory_order_relaxed);
}

void kelp_agent_chain_release(kelp_agent_chain *chain) {
    if (!chain || atomic_fetch_sub_explicit(&chain->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (chain->complete) {
        kelp_agent_chain_unload(chain);
        tell_back(chain, TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE);
    }
    for (size_t i = chain->count; i-- > 0;)
        end(&chain->models[i]);
    kelp_free(kelp_allocator_system(), chain->models, chain->count * sizeof *chain->models);
    kelp_free(kelp_allocator_system(), chain, sizeof *chain);
}
