/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/common/batches.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "frontends/common/status.h"

#include <kelp/server.h>

/* The batches of a thread. */
typedef struct batches {
    kelp_http_thread_data base; /* first */
    kelp_allocator allocator;
    kelp_event_loop *loop;
    kelp_event_loop_deferred task; /* at the end of a round in which requests were queued */
    kelp_event_loop_timer timer;
    KELP_DueBatches *due;
} batches;

static void destroy(kelp_http_thread_data *base) {
    batches *b = (batches *)base;
    kelp_status_free(kelp_v2_status(KELP_DueBatchesDelete(b->due)));
    kelp_free(b->allocator, b, sizeof *b);
}

/* Executes what is due, and sets the timer. If that fails, a thread of the server executes the
 * batches. */
static void execute(batches *b) {
    uint64_t next_ns = UINT64_MAX;
    kelp_status *status = kelp_v2_status(KELP_DueBatchesExecute(b->due, &next_ns));
    if (status == NULL && next_ns != UINT64_MAX)
        status = kelp_event_loop_timer_set(b->loop, &b->timer, next_ns);
    else
        kelp_event_loop_timer_cancel(b->loop, &b->timer);
    kelp_status_free(status);
}

static void on_round(kelp_event_loop_deferred *task) {
    execute((batches *)((char *)task - offsetof(batches, task)));
}

static void on_timer(kelp_event_loop_timer *timer) {
    execute(timer->userp);
}

static kelp_status *create(kelp_http_thread *thread) {
    batches *b = NULL;
    KELP_TRY(KELP_NEW(thread->allocator, batches, &b));
    b->base.destroy = destroy;
    b->allocator = thread->allocator;
    b->loop = thread->loop;
    b->task.fn = on_round;
    b->timer.fn = on_timer;
    b->timer.userp = b;
    kelp_status *status = kelp_v2_status(KELP_DueBatchesNew(&b->due));
    if (status != NULL)
        kelp_free(b->allocator, b, sizeof *b);
    else
        thread->data = &b->base;
    return status;
}

kelp_status *kelp_batches_prepare(kelp_http_thread *thread,
                                  TRITONSERVER_InferenceRequest *request) {
    KELP_ASSERT(kelp_http_current_thread() == thread);
    if (kelp_event_loop_is_busy(thread->loop))
        KELP_TRY(kelp_v2_status(KELP_InferenceRequestSkipQueueDelay(request)));
    if (!kelp_event_loop_is_precise(thread->loop))
        return NULL;
    if (thread->data == NULL)
        KELP_TRY(create(thread));
    const batches *b = (const batches *)thread->data;
    return kelp_v2_status(KELP_InferenceRequestSetDueBatches(request, b->due));
}

void kelp_batches_wait(kelp_http_thread *thread) {
    batches *b = (batches *)thread->data;
    if (b != NULL)
        kelp_event_loop_defer(b->loop, &b->task);
}
