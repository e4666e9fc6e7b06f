/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of steps. */
#include "base/assert.h"
#include "server/core/log.h"
#include "server/ensemble/run.h"
#include "server/request/trace.h"

void kelp_run_convert_shape(const int64_t *dims, uint32_t dims_rank, bool reader_batches,
                            uint32_t batch_size, const int64_t *shape, uint32_t rank,
                            int64_t *out_shape, uint32_t *out_rank) {
    bool matches = kelp_flow_dims_match(dims, dims_rank, shape, rank);
    uint32_t added = 0, removed = 0;
    if (reader_batches && batch_size == 0 && matches && rank < KELP_SERVER_MAX_RANK)
        added = 1; /* a batch of one */
    else if (!reader_batches && batch_size == 1 && !matches && rank > 0)
        removed = 1;
    if (added)
        out_shape[0] = 1;
    memcpy(out_shape + added, shape + removed, (rank - removed) * sizeof *shape);
    *out_rank = rank - removed + added;
}

/* ---- inputs ---- */

static kelp_status *append_blocks(kelp_request *request, kelp_input *input, const char *policy,
                                  const kelp_data *data) {
    for (size_t i = 0; i < data->count; i++)
        KELP_TRY(kelp_request_append(request, input, policy, data->blocks[i].base,
                                     &data->blocks[i].attributes));
    return NULL;
}

/* Adds an input of the ensemble, with its data for host policies. */
static kelp_status *append_input(kelp_request *request, kelp_input *input, const kelp_input *from) {
    KELP_TRY(append_blocks(request, input, NULL, &from->data));
    for (size_t i = 0; i < from->policy_count; i++)
        KELP_TRY(append_blocks(request, input, kelp_text_get(&from->policies[i].policy),
                               &from->policies[i].data));
    return NULL;
}

static kelp_status *add_input(kelp_run_call *call, const kelp_flow_link *link) {
    const kelp_run_slot *slot = &call->frame->slots[link->tensor];
    const kelp_run *run = call->run;
    kelp_request *request = call->request;
    const kelp_model_config *config = request->model->config;
    if (slot->input == NULL && slot->output == NULL)
        return NULL; /* an absent optional input */
    const kelp_config_io *io = kelp_model_config_input(config, kelp_str_from(link->name));
    if (io == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "input '%s' does not exist in the model",
                          link->name);
    bool own = slot->input != NULL;
    uint32_t batch_size = !own ? slot->value->batch_size
                          : run->ensemble->flow->config->max_batch_size > 0
                              ? run->request->batch_size
                              : 0;
    int64_t shape[KELP_SERVER_MAX_RANK];
    uint32_t rank = 0;
    kelp_run_convert_shape(io->dims, io->rank, config->max_batch_size > 0 && !io->is_shape_tensor,
                           batch_size, own ? slot->input->shape : slot->output->shape,
                           own ? slot->input->rank : slot->output->rank, shape, &rank);
    kelp_input *input = NULL;
    KELP_TRY(kelp_request_add_input(request, link->name,
                                    own ? slot->input->datatype : slot->output->datatype, shape,
                                    rank, &input));
    return own ? append_input(request, input, slot->input)
               : kelp_request_append(request, input, NULL, slot->output->buffer,
                                     &slot->output->attributes);
}

/* ---- other properties ---- */

static kelp_status *copy_params(kelp_request *to, const kelp_params *from) {
    kelp_allocator heap = to->home->allocator;
    for (size_t i = 0; i < from->count; i++) {
        const kelp_param *source = &from->items[i];
        kelp_param *param = NULL;
        KELP_TRY(
            kelp_params_add(heap, &to->params, kelp_text_get(&source->name), source->type, &param));
        param->i64 = source->i64;
        param->f64 = source->f64;
        param->boolean = source->boolean;
        if (source->type == TRITONSERVER_PARAMETER_STRING)
            KELP_TRY(kelp_text_set(heap, &param->string, kelp_text_get(&source->string)));
    }
    return NULL;
}

/* Determines the sequence of a call: that of a response on which it depends, or else that of the
 * ensemble's request. */
static kelp_status *set_sequence(kelp_run_call *call) {
    const kelp_request *source = call->run->request;
    const kelp_flow_step *step = &call->run->ensemble->flow->steps[call->step];
    kelp_allocator heap = call->run->ensemble->allocator;
    for (uint32_t i = 0; i < step->input_count; i++) {
        const kelp_run_slot *slot = &call->frame->slots[step->inputs[i].tensor];
        if (slot->value != NULL)
            return kelp_run_copy_sequence(heap, &call->sequence, &slot->value->sequence);
    }
    call->sequence.flags = source->flags;
    call->sequence.is_string = source->correlation_is_string;
    call->sequence.id = source->correlation_id;
    return source->correlation_is_string ? kelp_text_set(heap, &call->sequence.string,
                                                         kelp_text_get(&source->correlation_string))
                                         : NULL;
}

static kelp_status *set_properties(kelp_run_call *call) {
    kelp_request *request = call->request;
    const kelp_request *source = call->run->request;
    KELP_TRY(set_sequence(call));
    request->flags = call->sequence.flags;
    request->correlation_id = call->sequence.id;
    if (call->sequence.is_string)
        KELP_TRY(
            kelp_request_set_correlation_string(request, kelp_text_get(&call->sequence.string)));
    request->priority = source->priority;
    request->timeout_us = source->timeout_us;
    KELP_TRY(kelp_request_set_id(request, kelp_text_get(&source->id)));
    return copy_params(request, &source->params);
}

/* Requests the outputs that are read. */
static kelp_status *add_outputs(kelp_run_call *call) {
    const kelp_flow_step *step = &call->run->ensemble->flow->steps[call->step];
    for (uint32_t i = 0; i < step->output_count; i++)
        if (call->run->uses[step->outputs[i].tensor] > 0)
            KELP_TRY(kelp_request_add_output(call->request, step->outputs[i].name));
    return NULL;
}

static void on_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
                        void *userp) {
    kelp_run_post(userp, (kelp_response *)response,
                  (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) ? KELP_CALL_FINAL : 0);
}

static void on_release(TRITONSERVER_InferenceRequest *request, const uint32_t flags, void *userp) {
    (void)request;
    (void)flags;
    kelp_run_post(userp, NULL, KELP_CALL_RELEASED);
}

/* ---- submission ---- */

static kelp_status *create_request(kelp_run_call *call) {
    kelp_model_base *model = call->run->models[call->step];
    kelp_request_pool *pool = kelp_request_pool_of_thread(&model->host->pools);
    pthread_mutex_lock(&pool->lock);
    kelp_request *pooled = kelp_request_pool_take(pool);
    pthread_mutex_unlock(&pool->lock);
    kelp_model_retain(model);
    const kelp_flow_step *step = &call->run->ensemble->flow->steps[call->step];
    KELP_TRY(kelp_request_create(model, step->version, pooled, &call->request));
    /* A response beyond max_inflight_requests waits until this thread has processed others. */
    call->request->avoids_caller = step->decoupled && call->run->ensemble->max_in_flight > 0;
    call->request->release_fn = on_release;
    call->request->release_userp = call;
    call->request->response_fn = on_response;
    call->request->response_userp = call;
    call->request->allocator = &call->run->ensemble->buffers;
    call->request->allocator_userp = call;
    return NULL;
}

static kelp_status *fill_request(kelp_run_call *call) {
    const kelp_flow_step *step = &call->run->ensemble->flow->steps[call->step];
    for (uint32_t i = 0; i < step->input_count; i++)
        KELP_TRY(add_input(call, &step->inputs[i]));
    KELP_TRY(add_outputs(call));
    return set_properties(call);
}

/* Makes the submission visible to cancellations. */
static void link_call(kelp_run_call *call) {
    kelp_run *run = call->run;
    kelp_factory *factory = call->request->factory;
    kelp_factory_retain(factory);
    pthread_mutex_lock(&run->lock);
    call->factory = factory;
    call->previous_active = NULL;
    call->next_active = run->active;
    if (run->active != NULL)
        run->active->previous_active = call;
    run->active = call;
    if (atomic_load(&run->factory->cancelled))
        kelp_factory_cancel(factory); /* a cancellation before this one saw no factory */
    pthread_mutex_unlock(&run->lock);
}

void kelp_run_unlink_call(kelp_run_call *call) {
    kelp_run *run = call->run;
    kelp_factory *factory = call->factory;
    pthread_mutex_lock(&run->lock);
    if (call->previous_active != NULL)
        call->previous_active->next_active = call->next_active;
    else
        run->active = call->next_active;
    if (call->next_active != NULL)
        call->next_active->previous_active = call->previous_active;
    call->factory = NULL;
    pthread_mutex_unlock(&run->lock);
    kelp_factory_release(factory);
}

void kelp_run_delete_request(kelp_run_call *call) {
    kelp_request *request = call->request;
    call->request = NULL;
    if (request != NULL)
        kelp_server_log_status("cannot delete the request of a step", kelp_request_delete(request));
}

static kelp_status *submit(kelp_run_call *call, kelp_trace *trace) {
    kelp_model_enter_again(call->request->model);
    KELP_TRY(kelp_request_prepare(call->request, trace));
    call->batch_size = call->request->batch_size;
    link_call(call);
    kelp_status *status = kelp_request_dispatch(call->request);
    if (status != NULL)
        kelp_run_unlink_call(call);
    return status;
}

kelp_status *kelp_run_start_call(kelp_run_call *call) {
    const kelp_trace *parent = call->run->request->trace;
    kelp_trace *trace = NULL;
    kelp_status *status = create_request(call);
    if (status == NULL)
        status = fill_request(call);
    if (status == NULL && parent != NULL)
        status = kelp_trace_spawn(parent, &trace);
    if (status == NULL)
        status = submit(call, trace);
    if (status == NULL)
        return NULL;
    if (trace != NULL)
        kelp_trace_release(trace);
    kelp_run_delete_request(call);
    return status;
}
