/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of instances: counting, addition, printing. */
#include "server/metrics/stats.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "server/metrics/latency.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void kelp_stats_init(kelp_stats *stats, kelp_allocator allocator) {
    memset(stats, 0, sizeof *stats);
    stats->allocator = allocator;
    pthread_mutex_init(&stats->lock, NULL);
}

void kelp_stats_deinit(kelp_stats *stats) {
    kelp_allocator heap = stats->allocator;
    kelp_free(heap, stats->batches, stats->batch_capacity * sizeof *stats->batches);
    kelp_free(heap, stats->responses, stats->response_capacity * sizeof *stats->responses);
    kelp_free(heap, stats->usage, stats->usage_capacity * sizeof *stats->usage);
    pthread_mutex_destroy(&stats->lock);
    memset(stats, 0, sizeof *stats);
}

/* Returns a duration; 0 if a backend reported the end before the start. */
static uint64_t span(uint64_t start_ns, uint64_t end_ns) {
    return start_ns && end_ns > start_ns ? end_ns - start_ns : 0;
}

static void add(kelp_duration *duration, uint64_t ns) {
    duration->count++;
    duration->ns += ns;
}

static void observe(kelp_latency *latency, const kelp_request_times *times, uint64_t now_ns) {
    kelp_latency_add(latency, KELP_LATENCY_REQUEST, span(times->request_start_ns, now_ns));
    kelp_latency_add(latency, KELP_LATENCY_QUEUE,
                     span(times->queue_start_ns, times->execute_start_ns));
    kelp_latency_add(latency, KELP_LATENCY_COMPUTE_INPUT,
                     span(times->execute_start_ns, times->compute_start_ns));
    kelp_latency_add(latency, KELP_LATENCY_COMPUTE_INFER,
                     span(times->compute_start_ns, times->compute_end_ns));
    kelp_latency_add(latency, KELP_LATENCY_COMPUTE_OUTPUT,
                     span(times->compute_end_ns, times->execute_end_ns));
}

void kelp_stats_request(kelp_stats *stats, bool success, uint32_t batch_size,
                        const kelp_request_times *times) {
    uint64_t now_ns = kelp_now_ns();
    uint64_t now_ms = kelp_wall_about_ns() / 1000000;
    pthread_mutex_lock(&stats->lock);
    if (now_ms > stats->last_inference_ms)
        stats->last_inference_ms = now_ms;
    if (success) {
        stats->inference_count += batch_size;
        add(&stats->success, span(times->request_start_ns, now_ns));
        add(&stats->queue, span(times->queue_start_ns, times->execute_start_ns));
        add(&stats->compute_input, span(times->execute_start_ns, times->compute_start_ns));
        add(&stats->compute_infer, span(times->compute_start_ns, times->compute_end_ns));
        add(&stats->compute_output, span(times->compute_end_ns, times->execute_end_ns));
    } else {
        add(&stats->fail, span(times->request_start_ns, now_ns));
        stats->failures[KELP_FAILURE_BACKEND]++;
    }
    pthread_mutex_unlock(&stats->lock);
    if (success && stats->latency != NULL)
        observe(stats->latency, times, now_ns);
}

void kelp_stats_rejection(kelp_stats *stats, kelp_code code, uint64_t request_start_ns) {
    kelp_failure reason = code == KELP_CANCELLED     ? KELP_FAILURE_CANCELED
                          : code == KELP_UNAVAILABLE ? KELP_FAILURE_REJECTED
                                                     : KELP_FAILURE_OTHER;
    uint64_t now_ns = kelp_now_ns();
    pthread_mutex_lock(&stats->lock);
    add(&stats->fail, span(request_start_ns, now_ns));
    stats->failures[reason]++;
    pthread_mutex_unlock(&stats->lock);
}

void kelp_stats_cache_hit(kelp_stats *stats, uint64_t request_start_ns, uint64_t queue_ns,
                          uint64_t lookup_ns) {
    uint64_t now_ns = kelp_now_ns();
    uint64_t now_ms = kelp_wall_about_ns() / 1000000;
    pthread_mutex_lock(&stats->lock);
    if (now_ms > stats->last_inference_ms)
        stats->last_inference_ms = now_ms;
    add(&stats->success, span(request_start_ns, now_ns));
    add(&stats->queue, queue_ns);
    add(&stats->cache_hit, lookup_ns);
    pthread_mutex_unlock(&stats->lock);
    kelp_latency_add(stats->latency, KELP_LATENCY_QUEUE, queue_ns);
    kelp_latency_add(stats->latency, KELP_LATENCY_CACHE_HIT, lookup_ns);
}

void kelp_stats_cache_miss(kelp_stats *stats, uint64_t spent_ns) {
    pthread_mutex_lock(&stats->lock);
    add(&stats->cache_miss, spent_ns);
    pthread_mutex_unlock(&stats->lock);
    kelp_latency_add(stats->latency, KELP_LATENCY_CACHE_MISS, spent_ns);
}

/* Returns the entry of a batch size, and creates it if needed. The lock is held. */
static kelp_status *batch_entry(kelp_stats *stats, uint64_t batch_size, kelp_batch_stats **out) {
    KELP_ASSERT(stats->batch_count <= stats->batch_capacity);
    size_t at = 0;
    while (at < stats->batch_count && stats->batches[at].batch_size < batch_size)
        at++;
    if (at == stats->batch_count || stats->batches[at].batch_size != batch_size) {
        KELP_TRY(kelp_grow(stats->allocator, (void **)&stats->batches, &stats->batch_capacity,
                           stats->batch_count + 1, sizeof *stats->batches));
        memmove(&stats->batches[at + 1], &stats->batches[at],
                (stats->batch_count - at) * sizeof *stats->batches);
        stats->batches[at] = (kelp_batch_stats){.batch_size = batch_size};
        stats->batch_count++;
    }
    *out = &stats->batches[at];
    return NULL;
}

kelp_status *kelp_stats_batch(kelp_stats *stats, uint64_t batch_size,
                              const kelp_request_times *times) {
    kelp_batch_stats *batch = NULL;
    pthread_mutex_lock(&stats->lock);
    kelp_status *status = batch_entry(stats, batch_size, &batch);
    if (status == NULL) {
        stats->execution_count++;
        batch->count++;
        batch->input_ns += span(times->execute_start_ns, times->compute_start_ns);
        batch->infer_ns += span(times->compute_start_ns, times->compute_end_ns);
        batch->output_ns += span(times->compute_end_ns, times->execute_end_ns);
    }
    pthread_mutex_unlock(&stats->lock);
    return status;
}

/* Returns the entry of a response's index, and creates it if needed. The lock is held. */
static kelp_status *response_entry(kelp_stats *stats, uint64_t index, kelp_response_stats **out) {
    KELP_ASSERT(stats->response_count <= stats->response_capacity);
    if (index >= stats->response_count) {
        KELP_TRY(kelp_grow(stats->allocator, (void **)&stats->responses, &stats->response_capacity,
                           index + 1, sizeof *stats->responses));
        memset(&stats->responses[stats->response_count], 0,
               (index + 1 - stats->response_count) * sizeof *stats->responses);
        stats->response_count = index + 1;
    }
    *out = &stats->responses[index];
    return NULL;
}

kelp_status *kelp_stats_response(kelp_stats *stats, uint64_t index, uint64_t start_ns,
                                 uint64_t output_start_ns, uint64_t end_ns,
                                 const kelp_status *error) {
    /* Further responses count as the last one, so that long streams need no memory. */
    enum { MAX_RESPONSES = 4096 };
    kelp_response_stats *entry = NULL;
    pthread_mutex_lock(&stats->lock);
    kelp_status *status =
        response_entry(stats, index < MAX_RESPONSES ? index : MAX_RESPONSES - 1, &entry);
    if (status == NULL) {
        uint64_t total_ns = span(start_ns, end_ns);
        if (kelp_status_code(error) == KELP_CANCELLED) {
            add(&entry->cancel, total_ns);
        } else if (!output_start_ns) {
            if (error == NULL) /* as in Triton: an empty response ends the inference */
                add(&entry->compute_infer, total_ns);
            add(error != NULL ? &entry->fail : &entry->empty, total_ns);
        } else {
            add(&entry->compute_infer, span(start_ns, output_start_ns));
            add(&entry->compute_output, span(output_start_ns, end_ns));
            add(error != NULL ? &entry->fail : &entry->success, total_ns);
        }
    }
    pthread_mutex_unlock(&stats->lock);
    return status;
}

/* Adds to the entry of a memory type and id, and creates it if needed. The lock is held. */
static kelp_status *add_usage(kelp_stats *stats, const kelp_memory_usage *usage) {
    KELP_ASSERT(stats->usage_count <= stats->usage_capacity);
    for (size_t i = 0; i < stats->usage_count; i++) {
        if (stats->usage[i].type == usage->type && stats->usage[i].id == usage->id) {
            stats->usage[i].size_bytes += usage->size_bytes;
            return NULL;
        }
    }
    KELP_TRY(kelp_grow(stats->allocator, (void **)&stats->usage, &stats->usage_capacity,
                       stats->usage_count + 1, sizeof *stats->usage));
    stats->usage[stats->usage_count++] = *usage;
    return NULL;
}

kelp_status *kelp_stats_set_usage(kelp_stats *stats, const kelp_memory_usage *usage, size_t count) {
    kelp_status *status = NULL;
    pthread_mutex_lock(&stats->lock);
    stats->usage_count = 0;
    for (size_t i = 0; i < count && status == NULL; i++)
        status = add_usage(stats, &usage[i]);
    pthread_mutex_unlock(&stats->lock);
    return status;
}

static void add_duration(kelp_duration *into, const kelp_duration *from) {
    into->count += from->count;
    into->ns += from->ns;
}

static kelp_status *add_lists(kelp_stats *into, const kelp_stats *from) {
    for (size_t i = 0; i < from->batch_count; i++) {
        kelp_batch_stats *batch = NULL;
        KELP_TRY(batch_entry(into, from->batches[i].batch_size, &batch));
        batch->count += from->batches[i].count;
        batch->input_ns += from->batches[i].input_ns;
        batch->infer_ns += from->batches[i].infer_ns;
        batch->output_ns += from->batches[i].output_ns;
    }
    for (size_t i = 0; i < from->response_count; i++) {
        kelp_response_stats *entry = NULL;
        KELP_TRY(response_entry(into, i, &entry));
        const kelp_response_stats *source = &from->responses[i];
        add_duration(&entry->compute_infer, &source->compute_infer);
        add_duration(&entry->compute_output, &source->compute_output);
        add_duration(&entry->success, &source->success);
        add_duration(&entry->fail, &source->fail);
        add_duration(&entry->empty, &source->empty);
        add_duration(&entry->cancel, &source->cancel);
    }
    for (size_t i = 0; i < from->usage_count; i++)
        KELP_TRY(add_usage(into, &from->usage[i]));
    return NULL;
}

kelp_status *kelp_stats_add(kelp_stats *into, kelp_stats *from) {
    pthread_mutex_lock(&from->lock);
    if (from->last_inference_ms > into->last_inference_ms)
        into->last_inference_ms = from->last_inference_ms;
    into->inference_count += from->inference_count;
    into->execution_count += from->execution_count;
    add_duration(&into->success, &from->success);
    add_duration(&into->fail, &from->fail);
    for (int i = 0; i < KELP_FAILURE_COUNT; i++)
        into->failures[i] += from->failures[i];
    add_duration(&into->queue, &from->queue);
    add_duration(&into->compute_input, &from->compute_input);
    add_duration(&into->compute_infer, &from->compute_infer);
    add_duration(&into->compute_output, &from->compute_output);
    add_duration(&into->cache_hit, &from->cache_hit);
    add_duration(&into->cache_miss, &from->cache_miss);
    kelp_status *status = add_lists(into, from);
    pthread_mutex_unlock(&from->lock);
    return status;
}

static void write_duration(kelp_json_writer *writer, const char *key, uint64_t count, uint64_t ns) {
    kelp_json_key(writer, key);
    kelp_json_begin_object(writer);
    kelp_json_key(writer, "count");
    kelp_json_put_u64(writer, count);
    kelp_json_key(writer, "ns");
    kelp_json_put_u64(writer, ns);
    kelp_json_end_object(writer);
}

static void write_pair(kelp_json_writer *writer, const char *key, const kelp_duration *duration) {
    write_duration(writer, key, duration->count, duration->ns);
}

static void write_responses(const kelp_stats *stats, kelp_json_writer *writer) {
    kelp_json_key(writer, "response_stats");
    kelp_json_begin_object(writer);
    for (size_t i = 0; i < stats->response_count; i++) {
        const kelp_response_stats *entry = &stats->responses[i];
        char key[24];
        snprintf(key, sizeof key, "%zu", i);
        kelp_json_key(writer, key);
        kelp_json_begin_object(writer);
        write_pair(writer, "compute_infer", &entry->compute_infer);
        write_pair(writer, "compute_output", &entry->compute_output);
        write_pair(writer, "success", &entry->success);
        write_pair(writer, "fail", &entry->fail);
        write_pair(writer, "empty_response", &entry->empty);
        write_pair(writer, "cancel", &entry->cancel);
        kelp_json_end_object(writer);
    }
    kelp_json_end_object(writer);
}

void kelp_stats_write(const kelp_stats *stats, const char *name, int64_t version,
                      kelp_json_writer *writer) {
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, version);
    kelp_json_begin_object(writer);
    kelp_json_key(writer, "name");
    kelp_json_put_cstr(writer, name);
    kelp_json_key(writer, "version");
    kelp_json_put_cstr(writer, text);
    kelp_json_key(writer, "last_inference");
    kelp_json_put_u64(writer, stats->last_inference_ms);
    kelp_json_key(writer, "inference_count");
    kelp_json_put_u64(writer, stats->inference_count);
    kelp_json_key(writer, "execution_count");
    kelp_json_put_u64(writer, stats->execution_count);
    kelp_json_key(writer, "inference_stats");
    kelp_json_begin_object(writer);
    write_pair(writer, "success", &stats->success);
    write_pair(writer, "fail", &stats->fail);
    write_pair(writer, "queue", &stats->queue);
    write_pair(writer, "compute_input", &stats->compute_input);
    write_pair(writer, "compute_infer", &stats->compute_infer);
    write_pair(writer, "compute_output", &stats->compute_output);
    write_pair(writer, "cache_hit", &stats->cache_hit);
    write_pair(writer, "cache_miss", &stats->cache_miss);
    kelp_json_end_object(writer);
    write_responses(stats, writer);
    kelp_json_key(writer, "batch_stats");
    kelp_json_begin_array(writer);
    for (size_t i = 0; i < stats->batch_count; i++) {
        const kelp_batch_stats *batch = &stats->batches[i];
        kelp_json_begin_object(writer);
        kelp_json_key(writer, "batch_size");
        kelp_json_put_u64(writer, batch->batch_size);
        write_duration(writer, "compute_input", batch->count, batch->input_ns);
        write_duration(writer, "compute_infer", batch->count, batch->infer_ns);
        write_duration(writer, "compute_output", batch->count, batch->output_ns);
        kelp_json_end_object(writer);
    }
    kelp_json_end_array(writer);
    kelp_json_key(writer, "memory_usage");
    kelp_json_begin_array(writer);
    for (size_t i = 0; i < stats->usage_count; i++) {
        kelp_json_begin_object(writer);
        kelp_json_key(writer, "type");
        kelp_json_put_cstr(writer, TRITONSERVER_MemoryTypeString(stats->usage[i].type));
        kelp_json_key(writer, "id");
        kelp_json_put_i64(writer, stats->usage[i].id);
        kelp_json_key(writer, "byte_size");
        kelp_json_put_u64(writer, stats->usage[i].size_bytes);
        kelp_json_end_object(writer);
    }
    kelp_json_end_array(writer);
    kelp_json_end_object(writer);
}
