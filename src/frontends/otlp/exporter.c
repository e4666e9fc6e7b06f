/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/otlp/exporter.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/sync/thread.h"
#include "frontends/otlp/counters.h"
#include "frontends/otlp/request.h"

#include <pthread.h>
#include <stdio.h>

#define MAX_QUEUED_BYTES ((size_t)64 * 1024 * 1024)
#define MAX_BATCH_BYTES ((size_t)4 * 1024 * 1024)
#define NS_PER_MS UINT64_C(1000000)
#define FIRST_WAIT_NS (UINT64_C(1000) * NS_PER_MS)
#define MAX_WAIT_NS (UINT64_C(5000) * NS_PER_MS)
#define LOG_INTERVAL_NS (UINT64_C(60000) * NS_PER_MS)

/* A queued span. */
typedef struct item {
    struct item *next;
    uint64_t queued_ns;
    size_t length;
    char span[];
} item;

/* Spans of one request. */
typedef struct batch {
    item *first;
    size_t count;
} batch;

struct kelp_otlp_exporter {
    kelp_allocator allocator;
    const kelp_logger *logger;
    char *url;
    uint32_t max_queue, max_batch;
    uint64_t start_ns, delay_ns, export_timeout_ns;
    kelp_otlp_client *client;
    kelp_otlp_counters counters;
    pthread_mutex_t lock; /* guards what follows, except for the members of the thread */
    pthread_cond_t changed;
    item *first, *last;
    size_t count, bytes;
    uint64_t dropped; /* since the last message */
    bool running, stopping;
    bool gave_up;         /* an attempt failed while stopping */
    uint64_t deadline_ns; /* of the stop */
    pthread_t thread;
    /* of the thread */
    kelp_otlp_request request;
    uint64_t next_log_ns, next_drop_log_ns;
    bool unreachable; /* the last attempt failed */
};

/* ---- the log ---- */

static void log_failure(kelp_otlp_exporter *exporter, size_t count, const char *reason,
                        const char *next) {
    uint64_t now_ns = kelp_now_ns();
    if (now_ns < exporter->next_log_ns)
        return;
    exporter->next_log_ns = now_ns + LOG_INTERVAL_NS;
    KELP_LOGF(exporter->logger, KELP_LOG_WARNING, "cannot export %zu spans to '%s': %s; %s", count,
              exporter->url, reason, next);
}

/* Reports spans that were dropped since the last message. The lock is held, and released for the
 * message. */
static void log_dropped(kelp_otlp_exporter *exporter) {
    uint64_t dropped = exporter->dropped, now_ns = kelp_now_ns();
    if (dropped == 0 || (now_ns < exporter->next_drop_log_ns && !exporter->stopping))
        return;
    exporter->dropped = 0;
    exporter->next_drop_log_ns = now_ns + LOG_INTERVAL_NS;
    pthread_mutex_unlock(&exporter->lock);
    KELP_LOGF(exporter->logger, KELP_LOG_WARNING,
              /* the first sentence is that of OpenTelemetry's C++ SDK */
              "BatchSpanProcessor queue is full - dropping span. Dropped %llu spans: the queue of "
              "%u spans to '%s' was full",
              (unsigned long long)dropped, exporter->max_queue, exporter->url);
    pthread_mutex_lock(&exporter->lock);
}

/* ---- sending, on the thread ---- */

/* Waits on the condition until a time. The lock is held. */
static void wait_until(kelp_otlp_exporter *exporter, uint64_t time_ns) {
    const struct timespec when = {.tv_sec = (time_t)(time_ns / 1000000000),
                                  .tv_nsec = (long)(time_ns % 1000000000)};
    (void)pthread_cond_timedwait(&exporter->changed, &exporter->lock, &when);
}

/* Waits before another attempt. Returns false if there is none, because the exporter stops. */
static bool wait_to_retry(kelp_otlp_exporter *exporter, uint64_t time_ns) {
    pthread_mutex_lock(&exporter->lock);
    bool stopped = exporter->stopping; /* the attempt that failed was the last one */
    exporter->gave_up = stopped;
    while (!exporter->stopping && kelp_now_ns() < time_ns)
        wait_until(exporter, time_ns);
    pthread_mutex_unlock(&exporter->lock);
    return !stopped;
}

static void drop(kelp_otlp_exporter *exporter, kelp_otlp_drop reason, size_t count) {
    kelp_otlp_count_dropped(&exporter->counters, reason, count);
}

/* Counts the spans of a request that the collector accepted. */
static void accept_reply(kelp_otlp_exporter *exporter, const kelp_otlp_reply *reply, size_t count) {
    char reason[KELP_OTLP_MAX_REASON] = "";
    uint64_t rejected = kelp_otlp_rejected(reply->body, reason, sizeof reason);
    rejected = KELP_MIN(rejected, (uint64_t)count);
    kelp_otlp_count_exported(&exporter->counters, count - rejected);
    if (exporter->unreachable)
        KELP_LOGF(exporter->logger, KELP_LOG_INFO, "'%s' accepts spans again", exporter->url);
    exporter->unreachable = false;
    if (rejected == 0)
        return;
    drop(exporter, KELP_OTLP_REJECTED, (size_t)rejected);
    log_failure(exporter, (size_t)rejected, reason, "they are dropped");
}

static bool may_retry(unsigned status) {
    return status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
}

static uint64_t longer(uint64_t wait_ns) {
    return KELP_MIN(wait_ns + wait_ns / 2, MAX_WAIT_NS);
}

/* Returns the time of the next attempt: the interval with a deviation of at most a fifth. */
static uint64_t retry_time(const kelp_otlp_reply *reply, uint64_t now_ns, uint64_t wait_ns) {
    uint64_t fifth = wait_ns / 5;
    uint64_t varied = wait_ns - fifth + now_ns / 1000 % 1024 * (2 * fifth) / 1024;
    return now_ns + (reply->retry_after_ns > 0 ? reply->retry_after_ns : varied);
}

/* Sends the request until the collector accepts or rejects it, or the time is over. */
static kelp_status *send_request(kelp_otlp_exporter *exporter, kelp_str body, size_t count) {
    uint64_t wait_ns = FIRST_WAIT_NS, give_up_ns = kelp_now_ns() + exporter->export_timeout_ns;
    for (;;) {
        kelp_otlp_reply reply;
        KELP_TRY(kelp_otlp_client_send(exporter->client, body, &reply));
        if (reply.status >= 200 && reply.status < 300) {
            accept_reply(exporter, &reply, count);
            return NULL;
        }
        if (reply.status != 0)
            snprintf(reply.reason, sizeof reply.reason, "status %u", reply.status);
        exporter->unreachable = true;
        uint64_t now_ns = kelp_now_ns(), next_ns = retry_time(&reply, now_ns, wait_ns);
        if (reply.retry_after_ns > 0) /* the collector expects the batch later */
            give_up_ns = KELP_MAX(give_up_ns, next_ns);
        bool again = may_retry(reply.status) && next_ns <= give_up_ns;
        log_failure(exporter, count, reply.reason, again ? "trying again" : "they are dropped");
        if (!again || !wait_to_retry(exporter, next_ns)) {
            drop(exporter, may_retry(reply.status) ? KELP_OTLP_UNREACHABLE : KELP_OTLP_REJECTED,
                 count);
            return NULL;
        }
        wait_ns = longer(wait_ns);
    }
}

static void free_batch(const kelp_otlp_exporter *exporter, batch *b) {
    while (b->first != NULL) {
        item *next = b->first->next;
        kelp_free(exporter->allocator, b->first, sizeof *b->first + b->first->length);
        b->first = next;
    }
}

static void export_batch(kelp_otlp_exporter *exporter, batch *b) {
    kelp_str body;
    kelp_otlp_request_begin(&exporter->request);
    for (const item *i = b->first; i != NULL; i = i->next)
        kelp_otlp_request_add(&exporter->request, (kelp_str){i->span, i->length});
    free_batch(exporter, b);
    kelp_status *status = kelp_otlp_request_end(&exporter->request, &body);
    if (status == NULL)
        status = send_request(exporter, body, b->count);
    if (status == NULL)
        return;
    drop(exporter, KELP_OTLP_NO_MEMORY, b->count);
    log_failure(exporter, b->count, kelp_status_message(status), "they are dropped");
    kelp_status_free(status);
}

/* ---- the thread ---- */

/* Removes the spans of a request from the queue. The lock is held. */
static batch take_batch(kelp_otlp_exporter *exporter) {
    batch b = {.first = exporter->first};
    item *last = NULL;
    size_t bytes = 0;
    for (item *i = b.first; i != NULL; i = i->next) {
        if (b.count == exporter->max_batch || (b.count > 0 && bytes + i->length > MAX_BATCH_BYTES))
            break;
        bytes += i->length;
        last = i;
        b.count++;
    }
    KELP_ASSERT(last != NULL && exporter->bytes >= bytes);
    exporter->first = last->next;
    exporter->last = last->next != NULL ? exporter->last : NULL;
    last->next = NULL;
    exporter->count -= b.count;
    exporter->bytes -= bytes;
    return b;
}

/* Returns the time at which the next batch is sent. Batches that are not full are sent at a fixed
 * interval, so that a span waits for half of the delay on average. The lock is held. */
static uint64_t due_ns(const kelp_otlp_exporter *exporter) {
    uint64_t delay_ns = exporter->delay_ns;
    if (exporter->count == 0)
        return KELP_NEVER_NS;
    if (exporter->count >= exporter->max_batch || delay_ns == 0)
        return 0;
    uint64_t intervals = (exporter->first->queued_ns - exporter->start_ns) / delay_ns;
    return exporter->start_ns + (intervals + 1) * delay_ns;
}

/* Returns true if the stop leaves no time or reason to export more. The lock is held. */
static bool is_over(const kelp_otlp_exporter *exporter) {
    return exporter->stopping &&
           (exporter->count == 0 || exporter->gave_up || kelp_now_ns() >= exporter->deadline_ns);
}

static void *export_main(void *userp) {
    kelp_otlp_exporter *exporter = userp;
    pthread_mutex_lock(&exporter->lock);
    while (!is_over(exporter)) {
        uint64_t time_ns = due_ns(exporter);
        log_dropped(exporter);
        if (exporter->stopping || kelp_now_ns() >= time_ns) {
            batch b = take_batch(exporter);
            pthread_mutex_unlock(&exporter->lock);
            export_batch(exporter, &b);
            pthread_mutex_lock(&exporter->lock);
        } else if (time_ns == KELP_NEVER_NS) {
            pthread_cond_wait(&exporter->changed, &exporter->lock);
        } else {
            wait_until(exporter, time_ns);
        }
    }
    log_dropped(exporter);
    pthread_mutex_unlock(&exporter->lock);
    return NULL;
}

/* ---- the queue ---- */

/* Appends a copy. Returns the reason if the span is dropped. The lock is held. */
static kelp_otlp_drop enqueue(kelp_otlp_exporter *exporter, kelp_str span) {
    item *i;
    if (exporter->count >= exporter->max_queue || exporter->stopping ||
        span.length > MAX_QUEUED_BYTES - exporter->bytes)
        return KELP_OTLP_QUEUE_FULL;
    kelp_status *status = kelp_alloc(exporter->allocator, sizeof *i + span.length, (void **)&i);
    if (status != NULL) {
        kelp_status_free(status);
        return KELP_OTLP_NO_MEMORY;
    }
    *i = (item){.queued_ns = kelp_now_ns(), .length = span.length};
    memcpy(i->span, span.data, span.length);
    if (exporter->last != NULL)
        exporter->last->next = i;
    else
        exporter->first = i;
    exporter->last = i;
    exporter->bytes += span.length;
    exporter->count++;
    if (exporter->count == 1 || exporter->count == exporter->max_batch)
        pthread_cond_signal(&exporter->changed);
    return KELP_OTLP_DROP_COUNT;
}

void kelp_otlp_exporter_put(kelp_otlp_exporter *exporter, kelp_str span) {
    pthread_mutex_lock(&exporter->lock);
    kelp_otlp_drop reason = enqueue(exporter, span);
    exporter->dropped += reason == KELP_OTLP_QUEUE_FULL ? 1 : 0;
    pthread_mutex_unlock(&exporter->lock);
    if (reason != KELP_OTLP_DROP_COUNT)
        kelp_otlp_count_dropped(&exporter->counters, reason, 1);
}

void kelp_otlp_exporter_lost(kelp_otlp_exporter *exporter) {
    kelp_otlp_count_dropped(&exporter->counters, KELP_OTLP_NO_MEMORY, 1);
}

/* ---- the object ---- */

void kelp_otlp_exporter_stop(kelp_otlp_exporter *exporter, uint64_t timeout_ns) {
    uint64_t deadline_ns = kelp_now_ns() + timeout_ns;
    pthread_mutex_lock(&exporter->lock);
    bool running = exporter->running;
    exporter->running = false;
    exporter->stopping = true;
    exporter->deadline_ns = deadline_ns;
    pthread_cond_signal(&exporter->changed);
    pthread_mutex_unlock(&exporter->lock);
    if (!running)
        return;
    kelp_otlp_client_limit(exporter->client, deadline_ns);
    (void)pthread_join(exporter->thread, NULL);
    if (exporter->count == 0)
        return;
    drop(exporter, KELP_OTLP_UNREACHABLE, exporter->count);
    KELP_LOGF(exporter->logger, KELP_LOG_WARNING,
              "dropped %zu spans: '%s' did not accept them before the server stopped",
              exporter->count, exporter->url);
}

void kelp_otlp_exporter_destroy(kelp_otlp_exporter *exporter) {
    if (exporter == NULL)
        return;
    kelp_otlp_exporter_stop(exporter, 0);
    batch rest = {.first = exporter->first};
    free_batch(exporter, &rest);
    kelp_otlp_request_deinit(&exporter->request);
    kelp_otlp_counters_deinit(&exporter->counters);
    kelp_otlp_client_destroy(exporter->client);
    pthread_cond_destroy(&exporter->changed);
    pthread_mutex_destroy(&exporter->lock);
    kelp_free_string(exporter->allocator, exporter->url);
    kelp_free(exporter->allocator, exporter, sizeof *exporter);
}

static void init_lock(kelp_otlp_exporter *exporter) {
    pthread_condattr_t attributes;
    pthread_mutex_init(&exporter->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&exporter->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static kelp_status *start(kelp_otlp_exporter *exporter, const kelp_otlp_options *options) {
    kelp_allocator allocator = exporter->allocator;
    KELP_TRY(kelp_strdup(allocator, options->client.url, &exporter->url));
    KELP_TRY(kelp_otlp_client_create(allocator, &options->client, &exporter->client));
    KELP_TRY(kelp_otlp_counters_init(&exporter->counters));
    KELP_TRY(kelp_otlp_request_init(&exporter->request, allocator, options));
    KELP_TRY(kelp_thread_start(&exporter->thread, "kelp-otlp", export_main, exporter));
    exporter->running = true;
    return NULL;
}

kelp_status *kelp_otlp_exporter_create(kelp_allocator allocator, const kelp_logger *logger,
                                       const kelp_otlp_options *options, kelp_otlp_exporter **out) {
    kelp_otlp_exporter *exporter;
    KELP_ASSERT(options->max_queue > 0 && options->max_batch > 0);
    KELP_TRY(KELP_NEW(allocator, kelp_otlp_exporter, &exporter));
    exporter->allocator = allocator;
    exporter->logger = logger;
    exporter->max_queue = options->max_queue;
    exporter->max_batch = KELP_MIN(options->max_batch, options->max_queue);
    exporter->start_ns = kelp_now_ns();
    exporter->delay_ns = options->delay_ms * NS_PER_MS;
    exporter->export_timeout_ns = options->export_timeout_ms * NS_PER_MS;
    init_lock(exporter);
    kelp_status *status = start(exporter, options);
    if (status != NULL) {
        kelp_otlp_exporter_destroy(exporter);
        return status;
    }
    *out = exporter;
    return NULL;
}
