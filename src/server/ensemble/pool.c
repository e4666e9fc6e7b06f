/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of runs. */
#include "base/assert.h"
#include "server/ensemble/run.h"

#include <time.h>

/* The maximum number of unused frames, calls and values that a run keeps. */
enum { MAX_SPARE = 64 };

kelp_status *kelp_run_copy_sequence(kelp_allocator allocator, kelp_run_sequence *to,
                                    const kelp_run_sequence *from) {
    to->flags = from->flags;
    to->is_string = from->is_string;
    to->id = from->id;
    return from->is_string ? kelp_text_set(allocator, &to->string, kelp_text_get(&from->string))
                           : NULL;
}

/* ---- frames ---- */

static size_t frame_bytes(const kelp_flow *flow) {
    return sizeof(kelp_run_frame) + flow->tensor_count * sizeof(kelp_run_slot) +
           flow->step_count * sizeof(uint32_t);
}

static void free_frame(kelp_run *run, kelp_run_frame *frame) {
    kelp_free(run->ensemble->allocator, frame, frame_bytes(run->ensemble->flow));
}

/* Sets the counts of a new frame. */
static void reset_frame(const kelp_run *run, kelp_run_frame *frame) {
    const kelp_flow *flow = run->ensemble->flow;
    memset(frame->slots, 0, flow->tensor_count * sizeof *frame->slots);
    for (uint32_t i = 0; i < flow->tensor_count; i++)
        frame->slots[i].uses = run->uses[i];
    for (uint32_t i = 0; i < flow->step_count; i++)
        frame->inputs_left[i] = flow->steps[i].input_count;
}

kelp_status *kelp_run_take_frame(kelp_run *run, uint32_t source, kelp_run_frame **out) {
    const kelp_flow *flow = run->ensemble->flow;
    kelp_run_frame *frame = run->spare_frames;
    if (frame != NULL) {
        run->spare_frames = frame->next;
        run->spare_count--;
    } else {
        KELP_TRY(kelp_alloc(run->ensemble->allocator, frame_bytes(flow), (void **)&frame));
        frame->slots = (kelp_run_slot *)(void *)(frame + 1);
        frame->inputs_left = (uint32_t *)(void *)(frame->slots + flow->tensor_count);
    }
    frame->next = NULL;
    uint32_t domain = source != KELP_FLOW_NONE ? flow->steps[source].domain : 0;
    frame->source = source;
    frame->refs = 1;
    frame->outputs_left = run->requested;
    frame->index = domain == flow->output_domain ? run->frame_count++ : 0;
    reset_frame(run, frame);
    *out = frame;
    return NULL;
}

void kelp_run_end_use(kelp_run *run, kelp_run_slot *slot) {
    KELP_ASSERT(slot->uses > 0);
    if (--slot->uses > 0 || slot->value == NULL)
        return;
    kelp_run_release_value(run, slot->value);
    slot->value = NULL;
    slot->output = NULL;
}

void kelp_run_release_frame(kelp_run *run, kelp_run_frame *frame) {
    KELP_ASSERT(frame->refs > 0);
    if (--frame->refs > 0)
        return;
    for (uint32_t i = 0; i < run->ensemble->flow->tensor_count; i++)
        if (frame->slots[i].value != NULL)
            kelp_run_release_value(run, frame->slots[i].value);
    if (frame->source != KELP_FLOW_NONE) {
        pthread_mutex_lock(&run->lock);
        KELP_ASSERT(run->backlog[frame->source] > 0);
        run->backlog[frame->source]--;
        pthread_cond_broadcast(&run->changed);
        pthread_mutex_unlock(&run->lock);
    }
    if (run->spare_count == MAX_SPARE) {
        free_frame(run, frame);
        return;
    }
    run->spare_count++;
    frame->next = run->spare_frames;
    run->spare_frames = frame;
}

/* ---- calls ---- */

static void free_call(kelp_run *run, kelp_run_call *call) {
    kelp_text_deinit(run->ensemble->allocator, &call->sequence.string);
    kelp_free(run->ensemble->allocator, call, sizeof *call);
}

kelp_status *kelp_run_take_call(kelp_run *run, kelp_run_frame *frame, uint32_t step,
                                kelp_run_call **out) {
    kelp_run_call *call = run->spare_calls;
    if (call != NULL) {
        run->spare_calls = call->next;
        run->spare_count--;
    } else {
        KELP_TRY(KELP_NEW(run->ensemble->allocator, kelp_run_call, &call));
        call->run = run;
    }
    call->next = NULL;
    call->frame = frame;
    frame->refs++;
    call->step = step;
    call->posted = call->seen = call->done = 0;
    call->responded = false;
    *out = call;
    return NULL;
}

void kelp_run_put_call(kelp_run_call *call) {
    kelp_run *run = call->run;
    KELP_ASSERT(call->request == NULL && call->factory == NULL && call->posted == 0);
    kelp_run_release_frame(run, call->frame);
    call->frame = NULL;
    if (run->spare_count == MAX_SPARE) {
        free_call(run, call);
        return;
    }
    run->spare_count++;
    call->next = run->spare_calls;
    run->spare_calls = call;
}

/* ---- values ---- */

static void free_value(kelp_run *run, kelp_run_value *value) {
    kelp_text_deinit(run->ensemble->allocator, &value->sequence.string);
    kelp_free(run->ensemble->allocator, value, sizeof *value);
}

kelp_status *kelp_run_take_value(kelp_run *run, kelp_response *response, kelp_run_value **out) {
    kelp_run_value *value = run->spare_values;
    if (value != NULL) {
        run->spare_values = value->next;
        run->spare_count--;
    } else {
        KELP_TRY(KELP_NEW(run->ensemble->allocator, kelp_run_value, &value));
    }
    value->response = response;
    value->refs = 1;
    *out = value;
    return NULL;
}

void kelp_run_release_value(kelp_run *run, kelp_run_value *value) {
    KELP_ASSERT(value->refs > 0);
    if (--value->refs > 0)
        return;
    kelp_response_delete(value->response);
    value->response = NULL;
    if (run->spare_count == MAX_SPARE) {
        free_value(run, value);
        return;
    }
    run->spare_count++;
    value->next = run->spare_values;
    run->spare_values = value;
}

/* ---- runs ---- */

static void init_locks(kelp_run *run) {
    pthread_condattr_t attributes;
    pthread_mutex_init(&run->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&run->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static kelp_status *create(kelp_ensemble *ensemble, kelp_run **out) {
    kelp_allocator heap = ensemble->allocator;
    const kelp_flow *flow = ensemble->flow;
    kelp_run *run = NULL;
    KELP_TRY(KELP_NEW(heap, kelp_run, &run));
    run->ensemble = ensemble;
    init_locks(run);
    kelp_status *status =
        kelp_alloc_zero(heap, flow->step_count, sizeof *run->models, (void **)&run->models);
    if (status == NULL)
        status = kelp_alloc_zero(heap, flow->tensor_count, sizeof *run->uses, (void **)&run->uses);
    if (status == NULL)
        status =
            kelp_alloc_zero(heap, flow->tensor_count, sizeof *run->wanted, (void **)&run->wanted);
    if (status == NULL)
        status =
            kelp_alloc_zero(heap, flow->step_count, sizeof *run->backlog, (void **)&run->backlog);
    if (status == NULL)
        status = kelp_alloc_zero(heap, flow->step_count, sizeof *run->in_flight,
                                 (void **)&run->in_flight);
    if (status == NULL)
        status =
            kelp_alloc_zero(heap, flow->step_count, sizeof *run->deferred, (void **)&run->deferred);
    if (status != NULL)
        kelp_run_free(run);
    else
        *out = run;
    return status;
}

void kelp_run_free(kelp_run *run) {
    kelp_allocator heap = run->ensemble->allocator;
    const kelp_flow *flow = run->ensemble->flow;
    KELP_ASSERT(run->factory == NULL && run->error == NULL);
    for (kelp_run_frame *frame = run->spare_frames, *next; frame != NULL; frame = next) {
        next = frame->next;
        free_frame(run, frame);
    }
    for (kelp_run_call *call = run->spare_calls, *next; call != NULL; call = next) {
        next = call->next;
        free_call(run, call);
    }
    for (kelp_run_value *value = run->spare_values, *next; value != NULL; value = next) {
        next = value->next;
        free_value(run, value);
    }
    kelp_free(heap, run->models, flow->step_count * sizeof *run->models);
    kelp_free(heap, run->uses, flow->tensor_count * sizeof *run->uses);
    kelp_free(heap, run->wanted, flow->tensor_count * sizeof *run->wanted);
    kelp_free(heap, run->backlog, flow->step_count * sizeof *run->backlog);
    kelp_free(heap, run->in_flight, flow->step_count * sizeof *run->in_flight);
    kelp_free(heap, run->deferred, flow->step_count * sizeof *run->deferred);
    pthread_cond_destroy(&run->changed);
    pthread_mutex_destroy(&run->lock);
    kelp_free(heap, run, sizeof *run);
}

kelp_status *kelp_run_take(kelp_ensemble *ensemble, kelp_run **out) {
    pthread_mutex_lock(&ensemble->lock);
    kelp_run *run = ensemble->spare_runs;
    if (run != NULL)
        ensemble->spare_runs = run->next;
    pthread_mutex_unlock(&ensemble->lock);
    if (run == NULL) {
        KELP_TRY(create(ensemble, &run));
        pthread_mutex_lock(&ensemble->lock);
        run->next_created = ensemble->created_runs;
        ensemble->created_runs = run;
        pthread_mutex_unlock(&ensemble->lock);
    }
    run->next = NULL;
    *out = run;
    return NULL;
}

void kelp_run_put(kelp_run *run) {
    kelp_ensemble *ensemble = run->ensemble;
    KELP_ASSERT(run->open == 0 && run->unfinished == 0 && run->waiting == NULL);
    pthread_mutex_lock(&ensemble->lock);
    run->next = ensemble->spare_runs;
    ensemble->spare_runs = run;
    pthread_mutex_unlock(&ensemble->lock);
}
