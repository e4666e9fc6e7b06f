/* SPDX-License-Identifier: Apache-2.0 */
/* The preparation of a run: the steps that are needed, and their models. */
#include "base/assert.h"
#include "server/ensemble/run.h"

/* Counts the readers of each tensor: the inputs of the steps that run, and the client. */
static void count_uses(kelp_run *run, const kelp_request *request, bool *out_needed) {
    const kelp_flow *flow = run->ensemble->flow;
    const kelp_model_config *config = flow->config;
    memset(run->uses, 0, flow->tensor_count * sizeof *run->uses);
    run->requested = 0;
    for (size_t i = 0; i < config->output_count; i++) {
        bool requested = request->output_count == 0;
        for (size_t k = 0; k < request->output_count && !requested; k++)
            requested = strcmp(kelp_text_get(&request->outputs[k]), config->outputs[i].name) == 0;
        run->wanted[flow->outputs[i]] = requested;
        run->uses[flow->outputs[i]] = requested;
        run->requested += requested;
    }
    /* A step without readers runs only if the client requests everything, as in Triton. */
    bool all = run->requested == config->output_count;
    for (uint32_t i = flow->step_count; i-- > 0;) {
        const kelp_flow_step *step = &flow->steps[flow->order[i]];
        bool needed = all;
        for (uint32_t k = 0; k < step->output_count; k++)
            needed = needed || run->uses[step->outputs[k].tensor] > 0;
        out_needed[flow->order[i]] = needed;
        for (uint32_t k = 0; needed && k < step->input_count; k++)
            run->uses[step->inputs[k].tensor]++;
    }
}

kelp_status *kelp_ensemble_enter_member(kelp_ensemble *ensemble, const kelp_flow_step *step,
                                        kelp_model_base **out) {
    kelp_request_host *host = ensemble->model->host;
    enum { MAX_ATTEMPTS = 4 };
    kelp_status *status = NULL;
    /* A model that is being replaced rejects the entry. */
    for (int attempt = 0; attempt < MAX_ATTEMPTS && status == NULL; attempt++) {
        kelp_model_base *model = NULL;
        status = host->ops->find_model(host, step->lookup_name, step->version, &model);
        if (status == NULL && kelp_model_enter(model)) {
            *out = model;
            return NULL;
        }
        kelp_model_release(model);
    }
    kelp_status *unavailable =
        KELP_ERROR(KELP_UNAVAILABLE,
                   "in ensemble '%s', step[%td] depends on model '%s', which is not ready%s%s",
                   ensemble->flow->name, step - ensemble->flow->steps, step->model_name,
                   status != NULL ? ": " : "", kelp_status_message(status));
    kelp_status_free(status);
    return unavailable;
}

void kelp_run_leave_models(kelp_run *run) {
    for (uint32_t i = 0; i < run->ensemble->flow->step_count; i++) {
        if (run->models[i] == NULL)
            continue;
        kelp_model_leave(run->models[i]);
        kelp_model_release(run->models[i]);
        run->models[i] = NULL;
    }
}

/* Checks all models if one that the run needs was loaded after the last check. */
static kelp_status *check_models(kelp_run *run) {
    kelp_flow *flow = run->ensemble->flow;
    bool changed = false;
    for (uint32_t i = 0; i < flow->step_count; i++)
        changed = changed || (run->models[i] != NULL &&
                              atomic_load_explicit(&flow->steps[i].checked, memory_order_acquire) !=
                                  run->models[i]->serial);
    return changed ? kelp_ensemble_check(run->ensemble) : NULL;
}

kelp_status *kelp_run_prepare(kelp_run *run, const kelp_request *request) {
    const kelp_flow *flow = run->ensemble->flow;
    enum { MAX_ON_STACK = 64 };
    bool on_stack[MAX_ON_STACK];
    bool *needed = on_stack;
    kelp_allocator heap = run->ensemble->allocator;
    if (flow->step_count > MAX_ON_STACK)
        KELP_TRY(kelp_alloc(heap, flow->step_count * sizeof *needed, (void **)&needed));
    count_uses(run, request, needed);
    kelp_status *status = NULL;
    for (uint32_t i = 0; i < flow->step_count && status == NULL; i++)
        if (needed[i])
            status = kelp_ensemble_enter_member(run->ensemble, &flow->steps[i], &run->models[i]);
    if (needed != on_stack)
        kelp_free(heap, needed, flow->step_count * sizeof *needed);
    if (status == NULL)
        status = check_models(run);
    if (status != NULL)
        kelp_run_leave_models(run);
    return status;
}
