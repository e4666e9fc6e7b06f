/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of a run: events, the steps that follow from them, and the end. */
#include "base/assert.h"
#include "base/clock.h"
#include "server/core/log.h"
#include "server/ensemble/run.h"

#include <errno.h>
#include <time.h>

/* The maximum number of runs that a thread drives inside each other. */
enum { MAX_NESTED_RUNS = 4 };

/* Runs of this thread: nested ones, and those to process after the nested ones. */
static _Thread_local unsigned nested_runs;
static _Thread_local kelp_run *first_postponed, *last_postponed;

static void append_call(kelp_call_list *list, kelp_run_call *call) {
    call->next = NULL;
    if (list->tail != NULL)
        list->tail->next = call;
    else
        list->head = call;
    list->tail = call;
}

static kelp_run_call *pop_call(kelp_call_list *list) {
    kelp_run_call *call = list->head;
    if (call != NULL) {
        list->head = call->next;
        if (list->head == NULL)
            list->tail = NULL;
    }
    return call;
}

/* ---- failures ---- */

/* Records the first failure, cancels the other steps and wakes waiting threads. */
static void fail(kelp_run *run, kelp_status *take_error) {
    if (run->error != NULL) {
        kelp_status_free(take_error);
        return;
    }
    run->error = take_error;
    pthread_mutex_lock(&run->lock);
    run->ending = true;
    for (kelp_run_call *call = run->active; call != NULL; call = call->next_active)
        kelp_factory_cancel(call->factory);
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    for (uint32_t i = 0; i < run->ensemble->flow->step_count; i++)
        for (kelp_run_call *call; (call = pop_call(&run->deferred[i])) != NULL;)
            append_call(&run->ready, call);
}

static void fail_step(kelp_run *run, uint32_t step, kelp_status *take_error) {
    const kelp_flow *flow = run->ensemble->flow;
    fail(run, KELP_ANNOTATE(take_error, "in ensemble '%s', step[%u] of model '%s'", flow->name,
                            step, flow->steps[step].model_name));
}

static void fail_deadlock(kelp_run *run) {
    fail(run, KELP_ERROR(KELP_INVALID_ARGUMENT,
                         "in ensemble '%s', " KELP_REQUEST_TAG
                         "unexpected deadlock, at least one output is not set while no more "
                         "ensemble steps can be made",
                         run->ensemble->flow->name, kelp_request_tag(run->request)));
}

/* ---- tensors ---- */

/* Adds a call of a step whose inputs are set. */
static void add_call(kelp_run *run, kelp_run_frame *frame, uint32_t step) {
    kelp_run_call *call = NULL;
    kelp_status *status = kelp_run_take_call(run, frame, step, &call);
    if (status != NULL) {
        fail(run, status);
        return;
    }
    run->open++;
    run->unfinished++;
    append_call(&run->ready, call);
}

/* Inserts a frame whose outputs are set. */
static void add_waiting(kelp_run *run, kelp_run_frame *frame) {
    kelp_run_frame **link = &run->waiting;
    while (*link != NULL && (*link)->index < frame->index)
        link = &(*link)->next;
    frame->next = *link;
    *link = frame;
    frame->refs++;
}

/* Sets a tensor: `input` or `output`, or neither if it is absent. */
static void set_slot(kelp_run *run, kelp_run_frame *frame, uint32_t index, const kelp_input *input,
                     const kelp_output *output, kelp_run_value *value) {
    const kelp_flow_tensor *tensor = &run->ensemble->flow->tensors[index];
    kelp_run_slot *slot = &frame->slots[index];
    KELP_ASSERT(!slot->set);
    slot->set = true;
    slot->input = input;
    if (slot->uses > 0 && value != NULL) {
        slot->output = output;
        slot->value = value;
        value->refs++;
    }
    if (run->wanted[index] && --frame->outputs_left == 0)
        add_waiting(run, frame);
    for (uint32_t i = 0; i < tensor->consumer_count; i++) {
        uint32_t step = tensor->consumers[i];
        if (--frame->inputs_left[step] == 0 && run->models[step] != NULL)
            add_call(run, frame, step);
    }
}

/* Starts the run: sets the inputs of the ensemble. */
static void begin(kelp_run *run) {
    const kelp_flow *flow = run->ensemble->flow;
    kelp_run_frame *frame = NULL;
    run->begun = true;
    kelp_status *status = kelp_run_take_frame(run, KELP_FLOW_NONE, &frame);
    if (status != NULL) {
        fail(run, status);
        return;
    }
    for (size_t i = 0; i < flow->config->input_count; i++)
        set_slot(run, frame, flow->inputs[i],
                 kelp_request_find_input(run->request, flow->config->inputs[i].name), NULL, NULL);
    for (uint32_t i = 0; i < flow->step_count; i++)
        if (flow->steps[i].input_count == 0 && run->models[i] != NULL)
            add_call(run, frame, i);
    kelp_run_release_frame(run, frame);
}

/* ---- responses ---- */

static kelp_status *bad_parameter(const char *name, const char *expected) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "expected parameter '%s' to be %s", name, expected);
}

/* Determines the sequence of a response: that of its request, unless parameters replace it. */
static kelp_status *read_sequence(const kelp_run_call *call, const kelp_response *response,
                                  kelp_run_sequence *out) {
    kelp_allocator heap = call->run->ensemble->allocator;
    uint32_t flags = 0;
    bool replaced = false;
    KELP_TRY(kelp_run_copy_sequence(heap, out, &call->sequence));
    for (size_t i = 0; i < response->params.count; i++) {
        const kelp_param *param = &response->params.items[i];
        const char *name = kelp_text_get(&param->name);
        bool starts = strcmp(name, "sequence_start") == 0;
        if (strcmp(name, "sequence_id") == 0) {
            if (param->type != TRITONSERVER_PARAMETER_INT &&
                param->type != TRITONSERVER_PARAMETER_STRING)
                return bad_parameter(name,
                                     "TRITONSERVER_PARAMETER_INT or TRITONSERVER_PARAMETER_STRING");
            out->is_string = param->type == TRITONSERVER_PARAMETER_STRING;
            out->id = out->is_string ? 0 : (uint64_t)param->i64;
            if (out->is_string)
                KELP_TRY(kelp_text_set(heap, &out->string, kelp_text_get(&param->string)));
        } else if (starts || strcmp(name, "sequence_end") == 0) {
            if (param->type != TRITONSERVER_PARAMETER_BOOL)
                return bad_parameter(name, "TRITONSERVER_PARAMETER_BOOL");
            if (param->boolean)
                flags |= starts ? TRITONSERVER_REQUEST_FLAG_SEQUENCE_START
                                : TRITONSERVER_REQUEST_FLAG_SEQUENCE_END;
        } else {
            continue;
        }
        replaced = true;
    }
    if (replaced)
        out->flags = flags;
    return NULL;
}

static const kelp_output *find_output(const kelp_response *response, const char *name) {
    for (size_t i = 0; i < response->output_count; i++)
        if (strcmp(kelp_text_get(&response->outputs[i]->name), name) == 0)
            return response->outputs[i];
    return NULL;
}

/* Sets the tensors of a response's iteration. */
static void set_outputs(kelp_run *run, kelp_run_call *call, kelp_run_frame *frame,
                        kelp_run_value *value) {
    const kelp_flow_step *step = &run->ensemble->flow->steps[call->step];
    for (uint32_t i = 0; i < step->output_count; i++)
        set_slot(run, frame, step->outputs[i].tensor, NULL,
                 find_output(value->response, step->outputs[i].name), value);
}

/* Adds the tensors of a response, which `value` holds. *out_framed: a frame counts the response of
 * a decoupled step. */
static kelp_status *accept(kelp_run *run, kelp_run_call *call, kelp_run_value *value,
                           bool *out_framed) {
    const kelp_flow_step *step = &run->ensemble->flow->steps[call->step];
    kelp_run_frame *frame = call->frame;
    const kelp_model_base *model = run->models[call->step];
    if (call->responded && !step->decoupled)
        return KELP_ERROR(KELP_INTERNAL,
                          "the model is not decoupled, but sent more than one response");
    call->responded = true;
    value->batch_size = model->config->max_batch_size > 0 ? call->batch_size : 0;
    KELP_TRY(read_sequence(call, value->response, &value->sequence));
    if (step->decoupled)
        KELP_TRY(kelp_run_take_frame(run, call->step, &frame));
    *out_framed = step->decoupled;
    set_outputs(run, call, frame, value);
    if (step->decoupled)
        kelp_run_release_frame(run, frame);
    return NULL;
}

/* Undoes the count of a response that has no frame. */
static void drop_backlog(kelp_run *run, uint32_t step) {
    pthread_mutex_lock(&run->lock);
    KELP_ASSERT(run->backlog[step] > 0);
    run->backlog[step]--;
    pthread_mutex_unlock(&run->lock);
}

static void process_response(kelp_run *run, kelp_response *response) {
    kelp_run_call *call = response->factory->response_userp;
    bool decoupled = run->ensemble->flow->steps[call->step].decoupled;
    bool framed = false;
    kelp_run_value *value = NULL;
    kelp_status *status = NULL;
    if (response->error != NULL)
        status = kelp_status_clone(response->error);
    else if (run->error == NULL)
        status = kelp_run_take_value(run, response, &value);
    if (value != NULL) {
        status = accept(run, call, value, &framed);
        kelp_run_release_value(run, value);
    } else {
        kelp_response_delete(response);
    }
    if (decoupled && !framed)
        drop_backlog(run, call->step);
    if (status != NULL)
        fail_step(run, call->step, status);
}

/* ---- calls ---- */

static void end_call(kelp_run *run, kelp_run_call *call) {
    run->open--;
    kelp_run_put_call(call);
}

static void process_events(kelp_run *run, kelp_run_call *call) {
    const kelp_flow_step *step = &run->ensemble->flow->steps[call->step];
    unsigned events = call->seen & ~call->done;
    call->done = call->seen;
    if (events & KELP_CALL_FINAL) {
        run->unfinished--;
        run->in_flight[call->step]--;
        kelp_run_call *deferred = pop_call(&run->deferred[call->step]);
        if (deferred != NULL)
            append_call(&run->ready, deferred);
        if (!step->decoupled && !call->responded)
            fail_deadlock(run);
    }
    if (events & KELP_CALL_RELEASED) {
        kelp_run_delete_request(call);
        for (uint32_t i = 0; i < step->input_count; i++)
            kelp_run_end_use(run, &call->frame->slots[step->inputs[i].tensor]);
    }
    if (call->done == KELP_CALL_OVER) {
        kelp_run_unlink_call(call);
        end_call(run, call);
    }
}

/* Submits the calls that are ready. */
static void start_calls(kelp_run *run) {
    uint64_t limit = run->ensemble->max_in_flight;
    for (kelp_run_call *call; (call = pop_call(&run->ready)) != NULL;) {
        uint32_t step = call->step;
        if (run->error == NULL && atomic_load(&run->request->factory->cancelled))
            fail(run, KELP_ERROR(KELP_CANCELLED, "in ensemble '%s', Request cancelled",
                                 run->ensemble->flow->name));
        if (run->error == NULL && limit > 0 && run->in_flight[step] >= limit) {
            append_call(&run->deferred[step], call);
            continue;
        }
        kelp_status *status = NULL;
        if (run->error == NULL) {
            run->in_flight[step]++;
            status = kelp_run_start_call(call);
            if (status == NULL)
                continue;
            run->in_flight[step]--;
        }
        run->unfinished--;
        end_call(run, call);
        if (status != NULL)
            fail_step(run, step, status);
    }
}

/* ---- the end ---- */

/* Returns the complete iteration that is the next one to send, or NULL. */
static kelp_run_frame *next_iteration(const kelp_run *run) {
    return run->waiting != NULL && run->waiting->index == run->next_index ? run->waiting : NULL;
}

/* Sends the iterations of a decoupled ensemble that are complete, in their order. The last one, if
 * it is known, remains for `deliver`, which sends it with the flag FINAL. */
static void send_iterations(kelp_run *run) {
    if (!kelp_ensemble_is_decoupled(run->ensemble))
        return;
    for (kelp_run_frame *frame; run->error == NULL && (frame = next_iteration(run)) != NULL;) {
        if (run->unfinished == 0 && frame->next == NULL)
            return;
        run->waiting = frame->next;
        run->next_index++;
        kelp_response *response = NULL;
        kelp_status *status = kelp_run_create_response(run, frame, &response);
        if (status == NULL)
            status = kelp_response_send(response, 0, NULL);
        kelp_run_release_frame(run, frame);
        if (status != NULL)
            fail(run, status);
    }
}

static void count(const kelp_run *run) {
    const kelp_request *request = run->request;
    kelp_stats *stats = &run->ensemble->model->stats;
    uint64_t now_ns = kelp_now_ns();
    const kelp_request_times times = {.request_start_ns = request->request_start_ns,
                                      .queue_start_ns = request->queue_start_ns,
                                      .execute_start_ns = run->start_ns,
                                      .compute_start_ns = run->start_ns,
                                      .compute_end_ns = now_ns,
                                      .execute_end_ns = now_ns};
    if (run->error != NULL) { /* the models of the steps count the reasons */
        bool cancelled = kelp_status_code(run->error) == KELP_CANCELLED;
        kelp_stats_rejection(stats, cancelled ? KELP_CANCELLED : KELP_INTERNAL,
                             request->request_start_ns);
        return;
    }
    kelp_stats_request(stats, true, request->batch_size, &times);
    kelp_server_log_status("cannot count an execution",
                           kelp_stats_batch(stats, request->batch_size, &times));
}

/* Sends the final response. All calls have sent theirs. */
static void deliver(kelp_run *run) {
    kelp_response *response = NULL;
    KELP_ASSERT(!run->delivered && run->unfinished == 0);
    run->delivered = true;
    if (run->error == NULL && next_iteration(run) != NULL) {
        kelp_status *status = kelp_run_create_response(run, run->waiting, &response);
        if (status != NULL)
            fail(run, status);
    } else if (run->error == NULL && !kelp_ensemble_is_decoupled(run->ensemble)) {
        fail_deadlock(run);
    }
    for (kelp_run_frame *frame = run->waiting, *next; frame != NULL; frame = next) {
        next = frame->next;
        kelp_run_release_frame(run, frame);
    }
    run->waiting = NULL;
    count(run); /* before the client can read the statistics */
    if (response == NULL)
        kelp_run_send_end(run);
    else
        kelp_server_log_status(
            "cannot send the response of an ensemble",
            kelp_response_send(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL));
}

/* Ends the run. The release of the request may destroy the ensemble. */
static void finish(kelp_run *run) {
    kelp_request *request = run->request;
    KELP_ASSERT(run->delivered && run->open == 0);
    pthread_mutex_lock(&run->lock);
    KELP_ASSERT(run->active == NULL && run->events == NULL);
    run->factory = NULL;
    pthread_mutex_unlock(&run->lock);
    kelp_status_free(run->error);
    run->error = NULL;
    kelp_run_leave_models(run);
    kelp_run_put(run);
    kelp_server_log_status("cannot release the request of an ensemble",
                           kelp_request_release(request, TRITONSERVER_REQUEST_RELEASE_ALL));
}

/* ---- the loop ---- */

/* Takes the posted events. Returns false, and ends the role of the driver, if there are none and
 * calls are open. */
static bool take_events(kelp_run *run, kelp_response **out_responses, kelp_run_call **out_events) {
    pthread_mutex_lock(&run->lock);
    *out_responses = run->first_response;
    *out_events = run->events;
    run->first_response = run->last_response = NULL;
    run->events = NULL;
    for (kelp_run_call *call = *out_events; call != NULL; call = call->next_event) {
        call->next = call->next_event; /* which the next event of the call changes */
        call->seen |= call->posted;
        call->posted = 0;
    }
    bool drives = *out_responses != NULL || *out_events != NULL || run->open == 0;
    run->driving = drives;
    pthread_mutex_unlock(&run->lock);
    return drives;
}

static void process(kelp_run *run) {
    kelp_response *response;
    kelp_run_call *call;
    if (!run->begun)
        begin(run);
    for (;;) {
        start_calls(run);
        send_iterations(run);
        if (run->ready.head != NULL)
            continue;
        if (run->unfinished == 0 && !run->delivered)
            deliver(run);
        if (!take_events(run, &response, &call))
            return;
        if (response == NULL && call == NULL) {
            finish(run);
            return;
        }
        for (kelp_response *next; response != NULL; response = next) {
            next = response->next;
            process_response(run, response);
        }
        for (kelp_run_call *next; call != NULL; call = next) {
            next = call->next;
            process_events(run, call);
        }
    }
}

void kelp_run_drive(kelp_run *run) {
    if (nested_runs == MAX_NESTED_RUNS) {
        run->next = NULL;
        if (last_postponed != NULL)
            last_postponed->next = run;
        else
            first_postponed = run;
        last_postponed = run;
        return;
    }
    nested_runs++;
    process(run);
    while (nested_runs == 1 && first_postponed != NULL) {
        kelp_run *postponed = first_postponed;
        first_postponed = postponed->next;
        if (first_postponed == NULL)
            last_postponed = NULL;
        process(postponed);
    }
    nested_runs--;
}

/* Waits until few responses of a step are unprocessed. A call of the step is open. Only the
 * following steps have to proceed for that, so that waiting threads do not depend on each other. */
static void wait_for_room(kelp_run *run, uint32_t step) {
    uint64_t until_ns = kelp_now_ns() + KELP_ENSEMBLE_MAX_WAIT_NS;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                   .tv_nsec = (long)(until_ns % 1000000000)};
    int result = 0;
    pthread_mutex_lock(&run->lock);
    while (run->backlog[step] > run->ensemble->max_in_flight && !run->ending &&
           !atomic_load(&run->factory->cancelled) && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&run->changed, &run->lock, &until);
    pthread_mutex_unlock(&run->lock);
}

void kelp_run_post(kelp_run_call *call, kelp_response *take_response, unsigned events) {
    kelp_run *run = call->run;
    uint32_t step = call->step;
    bool counts = take_response != NULL && run->ensemble->flow->steps[step].decoupled;
    pthread_mutex_lock(&run->lock);
    if (take_response != NULL) {
        take_response->next = NULL;
        if (run->last_response != NULL)
            run->last_response->next = take_response;
        else
            run->first_response = take_response;
        run->last_response = take_response;
        run->backlog[step] += counts;
    }
    if (events != 0) {
        if (call->posted == 0) {
            call->next_event = run->events;
            run->events = call;
        }
        call->posted |= events;
    }
    bool drives = !run->driving;
    run->driving = true;
    pthread_mutex_unlock(&run->lock);
    if (drives)
        kelp_run_drive(run);
    /* After FINAL, the run may be over. */
    if (counts && !(events & KELP_CALL_FINAL) && nested_runs == 0 &&
        run->ensemble->max_in_flight > 0)
        wait_for_room(run, step);
}
