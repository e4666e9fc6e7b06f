/* SPDX-License-Identifier: Apache-2.0 */
/* Creation of ensembles, checks of their members, submission and cancellation. */
#include "server/ensemble/ensemble.h"

#include "base/assert.h"
#include "base/clock.h"
#include "server/ensemble/run.h"

/* ---- members ---- */

/* Prefers a model in the namespace of the ensemble. The choice does not change later. */
static void choose_namespace(const kelp_ensemble *ensemble, kelp_flow_step *step) {
    kelp_request_host *host = ensemble->model->host;
    kelp_model_base *model = NULL;
    if (step->near_name == NULL)
        return;
    kelp_status_free(host->ops->find_model(host, step->near_name, step->version, &model));
    if (model != NULL)
        step->lookup_name = step->near_name;
    kelp_model_release(model);
}

/* Enters the models of all steps and checks them. Stores their serial numbers on success. */
static kelp_status *check_members(kelp_ensemble *ensemble, bool first) {
    kelp_flow *flow = ensemble->flow;
    kelp_allocator heap = ensemble->allocator;
    kelp_model_base **models = NULL;
    kelp_status *status = NULL;
    KELP_TRY(kelp_alloc_zero(heap, flow->step_count, sizeof *models, (void **)&models));
    for (uint32_t i = 0; i < flow->step_count && status == NULL; i++) {
        if (first)
            choose_namespace(ensemble, &flow->steps[i]);
        status = kelp_ensemble_enter_member(ensemble, &flow->steps[i], &models[i]);
        if (status == NULL && models[i]->ops->check != NULL)
            status = models[i]->ops->check(models[i]);
    }
    if (status == NULL)
        status = kelp_flow_check(flow, models, first);
    for (uint32_t i = 0; i < flow->step_count; i++) {
        if (models[i] == NULL)
            continue;
        if (status == NULL)
            atomic_store_explicit(&flow->steps[i].checked, models[i]->serial, memory_order_release);
        kelp_model_leave(models[i]);
        kelp_model_release(models[i]);
    }
    kelp_free(heap, models, flow->step_count * sizeof *models);
    return status;
}

kelp_status *kelp_ensemble_check(kelp_ensemble *ensemble) {
    kelp_status *status = check_members(ensemble, false);
    if (kelp_status_code(status) != KELP_INVALID_ARGUMENT)
        return status;
    /* A member was replaced by one that does not fit. */
    kelp_status *unavailable = KELP_ERROR(KELP_UNAVAILABLE, "%s", kelp_status_message(status));
    kelp_status_free(status);
    return unavailable;
}

uint64_t kelp_ensemble_fingerprint(kelp_ensemble *ensemble) {
    const kelp_flow *flow = ensemble->flow;
    kelp_request_host *host = ensemble->model->host;
    uint64_t numbers[2] = {0};
    for (uint32_t i = 0; i < flow->step_count; i++) {
        kelp_model_base *model = NULL;
        kelp_status_free(host->ops->find_model(host, flow->steps[i].lookup_name,
                                               flow->steps[i].version, &model));
        numbers[1] = model != NULL ? model->serial ^ kelp_model_fingerprint(model) : 0;
        numbers[0] = kelp_hash_bytes(numbers, sizeof numbers);
        kelp_model_release(model);
    }
    return numbers[0];
}

kelp_model_base *kelp_ensemble_find_producer(const kelp_ensemble *ensemble, const char *output,
                                             const char **out_output) {
    const kelp_flow *flow = ensemble->flow;
    kelp_request_host *host = ensemble->model->host;
    kelp_model_base *model = NULL;
    for (size_t i = 0; i < flow->config->output_count && model == NULL; i++) {
        const kelp_flow_tensor *tensor = &flow->tensors[flow->outputs[i]];
        if (strcmp(tensor->name, output) != 0 || tensor->producer == KELP_FLOW_NONE)
            continue;
        const kelp_flow_step *step = &flow->steps[tensor->producer];
        *out_output = step->outputs[tensor->producer_link].name;
        kelp_status_free(host->ops->find_model(host, step->lookup_name, step->version, &model));
    }
    return model;
}

/* ---- creation ---- */

static kelp_status *init(kelp_ensemble *ensemble) {
    const kelp_model_config *config = ensemble->model->config;
    KELP_TRY(kelp_flow_create(ensemble->model, &ensemble->flow));
    KELP_TRY(kelp_alloc_zero(ensemble->allocator, ensemble->flow->link_count,
                             sizeof *ensemble->spare_buffers, (void **)&ensemble->spare_buffers));
    kelp_ensemble_init_buffers(ensemble);
    ensemble->max_in_flight = config->max_inflight_requests;
    return check_members(ensemble, true);
}

kelp_status *kelp_ensemble_create(kelp_model_base *model, kelp_ensemble **out) {
    kelp_ensemble *ensemble = NULL;
    KELP_TRY(KELP_NEW(model->host->allocator, kelp_ensemble, &ensemble));
    ensemble->allocator = model->host->allocator;
    ensemble->model = model;
    pthread_mutex_init(&ensemble->lock, NULL);
    kelp_status *status = init(ensemble);
    if (status != NULL)
        kelp_ensemble_destroy(ensemble);
    else
        *out = ensemble;
    return status;
}

void kelp_ensemble_destroy(kelp_ensemble *ensemble) {
    if (ensemble == NULL)
        return;
    for (kelp_run *run = ensemble->created_runs, *next; run != NULL; run = next) {
        next = run->next_created;
        kelp_run_free(run);
    }
    kelp_ensemble_free_buffers(ensemble);
    if (ensemble->flow != NULL)
        kelp_flow_destroy(ensemble->flow);
    pthread_mutex_destroy(&ensemble->lock);
    kelp_free(ensemble->allocator, ensemble, sizeof *ensemble);
}

bool kelp_ensemble_is_decoupled(const kelp_ensemble *ensemble) {
    return ensemble->flow->output_domain != 0;
}

/* ---- requests ---- */

/* Sets the fields of a run for a new request. */
static void reset(kelp_run *run, kelp_request *request) {
    const kelp_flow *flow = run->ensemble->flow;
    KELP_ASSERT(run->active == NULL && run->events == NULL && run->first_response == NULL);
    run->begun = run->delivered = false;
    run->request = request;
    memset(run->in_flight, 0, flow->step_count * sizeof *run->in_flight);
    run->frame_count = run->next_index = 0;
    run->start_ns = kelp_now_ns();
    pthread_mutex_lock(&run->lock);
    run->factory = request->factory;
    run->driving = true;
    run->ending = false;
    pthread_mutex_unlock(&run->lock);
}

kelp_status *kelp_ensemble_submit(kelp_ensemble *ensemble, kelp_request *request) {
    kelp_run *run = NULL;
    KELP_TRY(kelp_run_take(ensemble, &run));
    kelp_status *status = kelp_run_prepare(run, request);
    if (status != NULL) {
        kelp_run_put(run);
        return status;
    }
    kelp_request_start(request);
    reset(run, request);
    atomic_store(&request->factory->execution, run);
    kelp_run_drive(run);
    return NULL;
}

void kelp_ensemble_cancel(kelp_ensemble *ensemble, kelp_factory *factory) {
    kelp_run *run = atomic_load(&factory->execution);
    if (run == NULL)
        return;
    KELP_ASSERT(run->ensemble == ensemble);
    (void)ensemble;
    pthread_mutex_lock(&run->lock);
    if (run->factory == factory) {
        for (kelp_run_call *call = run->active; call != NULL; call = call->next_active)
            kelp_factory_cancel(call->factory);
        pthread_cond_broadcast(&run->changed);
    }
    pthread_mutex_unlock(&run->lock);
}
