/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/trace/writer.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sync/thread.h"

#include <stdio.h>
#include <errno.h>

#define MAX_QUEUED_BYTES ((size_t)64 * 1024 * 1024)

/* A queued text. */
typedef struct block {
    struct block *next;
    bool indexed;
    size_t length;
    char text[];
} block;

struct kelp_trace_writer {
    kelp_allocator allocator;
    const char *path;
    const kelp_logger *logger;
    pthread_mutex_t lock; /* guards what follows, except for the members of the thread */
    pthread_cond_t changed;
    block *first, *last;
    size_t queued_bytes;
    uint64_t dropped; /* texts since the last message */
    bool running, stopping;
    pthread_t thread;
    /* of the thread */
    FILE *file; /* the array in `path`, begun but not ended */
    uint64_t index;
};

kelp_status *kelp_trace_writer_create(kelp_allocator allocator, const char *path,
                                      const kelp_logger *logger, kelp_trace_writer **out) {
    kelp_trace_writer *writer;
    KELP_TRY(KELP_NEW(allocator, kelp_trace_writer, &writer));
    writer->allocator = allocator;
    writer->path = path;
    writer->logger = logger;
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->changed, NULL);
    *out = writer;
    return NULL;
}

static void block_free(const kelp_trace_writer *writer, block *b) {
    kelp_free(writer->allocator, b, sizeof *b + b->length);
}

/* ---- the thread ---- */

static void log_failure(const kelp_trace_writer *writer, const char *path) {
    char text[128] = "";
    const char *reason = strerror_r(errno, text, sizeof text);
    KELP_LOGF(writer->logger, KELP_LOG_ERROR, "cannot write trace file '%s': %s", path, reason);
}

/* Writes a complete array to the next indexed file. */
static void write_indexed(kelp_trace_writer *writer, const block *b) {
    char path[4096];
    snprintf(path, sizeof path, "%s.%llu", writer->path, (unsigned long long)writer->index++);
    FILE *file = fopen(path, "we");
    bool good = file != NULL && fputc('[', file) != EOF &&
                fwrite(b->text, 1, b->length, file) == b->length && fputc(']', file) != EOF;
    if (file != NULL && fclose(file) != 0)
        good = false;
    if (!good)
        log_failure(writer, path);
}

/* Continues the array in the file, which is created first. */
static void write_plain(kelp_trace_writer *writer, const block *b) {
    bool begin = writer->file == NULL;
    if (begin)
        writer->file = fopen(writer->path, "we");
    if (writer->file == NULL || fputc(begin ? '[' : ',', writer->file) == EOF ||
        fwrite(b->text, 1, b->length, writer->file) != b->length || fflush(writer->file) != 0)
        log_failure(writer, writer->path);
}

static void end_array(kelp_trace_writer *writer) {
    if (writer->file == NULL)
        return;
    bool good = fputc(']', writer->file) != EOF;
    if (fclose(writer->file) != 0 || !good)
        log_failure(writer, writer->path);
    writer->file = NULL;
}

static void *write_main(void *userp) {
    kelp_trace_writer *writer = userp;
    pthread_mutex_lock(&writer->lock);
    while (writer->first != NULL || !writer->stopping) {
        block *b = writer->first;
        if (b == NULL) {
            pthread_cond_wait(&writer->changed, &writer->lock);
            continue;
        }
        writer->first = b->next;
        writer->last = b->next != NULL ? writer->last : NULL;
        uint64_t dropped = writer->dropped;
        writer->dropped = 0;
        pthread_mutex_unlock(&writer->lock);
        if (dropped > 0)
            KELP_LOGF(writer->logger, KELP_LOG_WARNING,
                      "dropped %llu texts of traces, because '%s' is written too slowly",
                      (unsigned long long)dropped, writer->path);
        if (b->indexed)
            write_indexed(writer, b);
        else
            write_plain(writer, b);
        pthread_mutex_lock(&writer->lock);
        writer->queued_bytes -= b->length;
        block_free(writer, b);
    }
    pthread_mutex_unlock(&writer->lock);
    end_array(writer);
    return NULL;
}

/* ---- the queue ---- */

/* Appends a copy of the text. The lock is held. */
static kelp_status *enqueue(kelp_trace_writer *writer, kelp_str elements, bool indexed) {
    block *b;
    if (elements.length > MAX_QUEUED_BYTES - writer->queued_bytes)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "too many traces are queued");
    if (!writer->running) {
        KELP_TRY(kelp_thread_start(&writer->thread, "kelp-trace", write_main, writer));
        writer->running = true;
    }
    KELP_TRY(kelp_alloc(writer->allocator, sizeof *b + elements.length, (void **)&b));
    *b = (block){.indexed = indexed, .length = elements.length};
    memcpy(b->text, elements.data, elements.length);
    if (writer->last != NULL)
        writer->last->next = b;
    else
        writer->first = b;
    writer->last = b;
    writer->queued_bytes += b->length;
    pthread_cond_signal(&writer->changed);
    return NULL;
}

void kelp_trace_writer_put(kelp_trace_writer *writer, kelp_str elements, bool indexed) {
    if (elements.length == 0)
        return;
    pthread_mutex_lock(&writer->lock);
    KELP_ASSERT(!writer->stopping && writer->queued_bytes <= MAX_QUEUED_BYTES);
    kelp_status *status = enqueue(writer, elements, indexed);
    writer->dropped += status != NULL ? 1 : 0;
    pthread_mutex_unlock(&writer->lock);
    kelp_status_free(status);
}

void kelp_trace_writer_destroy(kelp_trace_writer *writer) {
    if (writer == NULL)
        return;
    pthread_mutex_lock(&writer->lock);
    writer->stopping = true;
    pthread_cond_signal(&writer->changed);
    bool running = writer->running;
    pthread_mutex_unlock(&writer->lock);
    if (running)
        (void)pthread_join(writer->thread, NULL);
    KELP_ASSERT(writer->first == NULL && writer->file == NULL);
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->lock);
    kelp_free(writer->allocator, writer, sizeof *writer);
}
