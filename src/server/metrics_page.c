/* SPDX-License-Identifier: Apache-2.0 */
/* The server's metrics: the counters of each model under Triton's names, then those that others
 * made. */
#include "server/core/values.h"
#include "server/metrics/metrics.h"
#include "server/server.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

/* One row for each model that serves. */
typedef struct row {
    kelp_model *model; /* a reference */
    char *labels;      /* {model="…",version="…"} */
    size_t labels_capacity;
    uint32_t pending; /* requests in the queue */
    double load_s;
    kelp_stats stats;
} row;

typedef struct rows {
    row *items;
    size_t count;
    size_t capacity;
} rows;

/* A family of Triton's: a counter of kelp_stats, in microseconds where it is a time. */
typedef struct family {
    const char *name;
    const char *help;
    size_t offset;
    bool is_time;
} family;

#define COUNT(member) offsetof(kelp_stats, member)
static const family families[] = {
    {"nv_inference_request_success", "Successful inference requests", COUNT(success.count), false},
    {"nv_inference_count", "Inferences performed; a batch of n counts n", COUNT(inference_count),
     false},
    {"nv_inference_exec_count", "Executions of the model", COUNT(execution_count), false},
    {"nv_inference_request_duration_us", "Time of requests from begin to end, in microseconds",
     COUNT(success.ns), true},
    {"nv_inference_queue_duration_us", "Time of requests in queues, in microseconds",
     COUNT(queue.ns), true},
    {"nv_inference_compute_input_duration_us", "Time spent on inputs, in microseconds",
     COUNT(compute_input.ns), true},
    {"nv_inference_compute_infer_duration_us", "Time spent on inference, in microseconds",
     COUNT(compute_infer.ns), true},
    {"nv_inference_compute_output_duration_us", "Time spent on outputs, in microseconds",
     COUNT(compute_output.ns), true},
    {"nv_cache_num_hits_per_model", "Requests that the response cache answered",
     COUNT(cache_hit.count), false},
    {"nv_cache_num_misses_per_model", "Requests that the response cache did not answer",
     COUNT(cache_miss.count), false},
    {"nv_cache_hit_duration_per_model", "Time of look-ups that found a response, in microseconds",
     COUNT(cache_hit.ns), true},
    {"nv_cache_miss_duration_per_model",
     "Time of look-ups that found none and of storing the response, in microseconds",
     COUNT(cache_miss.ns), true},
};

static kelp_status *add_row(rows *list, kelp_model *model) {
    kelp_allocator heap = kelp_allocator_system();
    KELP_TRY(kelp_grow(heap, (void **)&list->items, &list->capacity, list->count + 1,
                       sizeof *list->items));
    row *added = &list->items[list->count++];
    memset(added, 0, sizeof *added);
    kelp_model_retain(model);
    added->model = model;
    kelp_stats_init(&added->stats);
    char version[24];
    snprintf(version, sizeof version, "%" PRId64, model->version);
    kelp_buf text;
    kelp_buf_init(&text, heap);
    kelp_buf_append_char(&text, '{');
    kelp_metrics_write_label(&text, "", "model", model->name);
    kelp_metrics_write_label(&text, ",", "version", version);
    if (model->entry->space[0])
        kelp_metrics_write_label(&text, ",", "namespace", model->entry->space);
    for (size_t i = 0; i < model->config->metric_tag_count; i++) {
        char name[128];
        snprintf(name, sizeof name, "_%s", model->config->metric_tags[i].key);
        kelp_metrics_write_label(&text, ",", name, model->config->metric_tags[i].value);
    }
    added->pending = kelp_scheduler_queued(&model->scheduler);
    added->load_s = (double)model->load_ns / 1e9;
    kelp_buf_append_char(&text, '}');
    kelp_status *status = kelp_buf_cstr(&text) ? NULL : kelp_status_oom();
    if (!status)
        status = kelp_stats_add(&added->stats, &model->stats);
    pthread_rwlock_rdlock(&model->change_lock);
    for (size_t i = 0; i < model->instance_count && !status; i++)
        status = kelp_stats_add(&added->stats, &model->instances[i]->stats);
    pthread_rwlock_unlock(&model->change_lock);
    size_t length;
    added->labels = status ? NULL : kelp_buf_take(&text, &length, &added->labels_capacity);
    kelp_buf_deinit(&text);
    return status;
}

static void rows_deinit(rows *list) {
    kelp_allocator heap = kelp_allocator_system();
    for (size_t i = 0; i < list->count; i++) {
        kelp_free(heap, list->items[i].labels, list->items[i].labels_capacity);
        kelp_stats_deinit(&list->items[i].stats);
        kelp_model_release(list->items[i].model);
    }
    kelp_free(heap, list->items, list->capacity * sizeof *list->items);
}

static kelp_status *collect(kelp_server *server, rows *list) {
    kelp_status *status = NULL;
    pthread_mutex_lock(&server->table_lock);
    for (const kelp_entry *entry = server->first_entry; entry && !status; entry = entry->next) {
        /* A model that is in the table has its instances: it is finalized only after it has left.
         */
        for (size_t i = 0; i < entry->version_count && !status; i++)
            if (entry->versions[i].model)
                status = add_row(list, entry->versions[i].model);
    }
    pthread_mutex_unlock(&server->table_lock);
    return status;
}

/* Distributions, of the models that keep them. */
static kelp_status *write_latencies(const rows *list, kelp_buf *out) {
    kelp_latency_row *latencies = NULL;
    kelp_allocator heap = kelp_allocator_system();
    KELP_TRY(kelp_alloc_zero(heap, list->count, sizeof *latencies, (void **)&latencies));
    for (size_t i = 0; i < list->count; i++)
        latencies[i] = (kelp_latency_row){list->items[i].model->latency, list->items[i].labels};
    kelp_latency_write(out, latencies, list->count);
    kelp_free(heap, latencies, list->count * sizeof *latencies);
    return NULL;
}

static void write_rows(const rows *list, bool with_times, kelp_buf *out) {
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++) {
        if (families[f].is_time && !with_times)
            continue;
        kelp_metrics_write_header(out, families[f].name, families[f].help, "counter");
        for (size_t i = 0; i < list->count; i++) {
            uint64_t value;
            memcpy(&value, (const char *)&list->items[i].stats + families[f].offset, sizeof value);
            kelp_buf_printf(out, "%s%s %" PRIu64 "\n", families[f].name, list->items[i].labels,
                            families[f].is_time ? value / 1000 : value);
        }
    }
    kelp_metrics_write_header(out, "nv_inference_request_failure", "Failed inference requests",
                              "counter");
    for (size_t i = 0; i < list->count; i++) {
        static const char *const reasons[] = {"BACKEND", "REJECTED", "CANCELED", "OTHER"};
        const char *labels = list->items[i].labels;
        for (int k = 0; k < KELP_FAILURE_COUNT; k++)
            kelp_buf_printf(out, "nv_inference_request_failure%.*s,reason=\"%s\"} %" PRIu64 "\n",
                            (int)strlen(labels) - 1, labels, reasons[k],
                            list->items[i].stats.failures[k]);
    }
    kelp_metrics_write_header(out, "nv_inference_pending_request_count",
                              "Requests that wait to be executed", "gauge");
    for (size_t i = 0; i < list->count; i++)
        kelp_buf_printf(out, "nv_inference_pending_request_count%s %" PRIu32 "\n",
                        list->items[i].labels, list->items[i].pending);
    kelp_metrics_write_header(out, "nv_model_load_duration_secs",
                              "Time that making the model took, in seconds", "gauge");
    for (size_t i = 0; i < list->count; i++) {
        kelp_buf_printf(out, "nv_model_load_duration_secs%s ", list->items[i].labels);
        kelp_metrics_write_number(out, list->items[i].load_s);
        kelp_buf_append_char(out, '\n');
    }
}

TRITONSERVER_Error *TRITONSERVER_ServerMetrics(TRITONSERVER_Server *server,
                                               TRITONSERVER_Metrics **metrics) {
    if (!server || !metrics)
        return kelp_abi_null(__func__, server ? "metrics" : "server");
    kelp_server *s = (kelp_server *)server;
    if (!s->options->metrics)
        return kelp_to_error(KELP_ERROR(KELP_UNIMPLEMENTED, "metrics are turned off"));
    rows list = {0};
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_status *status = collect(s, &list);
    if (!status) {
        write_rows(&list, s->latency_rules.counters, &text);
        status = write_latencies(&list, &text);
    }
    if (!status) {
        if (s->options->cpu_metrics)
            kelp_metrics_write_host(&text);
        kelp_metrics_write(&text);
        status = kelp_message_create(&text, (kelp_message **)metrics);
    }
    kelp_buf_deinit(&text);
    rows_deinit(&list);
    return kelp_to_error(status);
}

TRITONSERVER_Error *TRITONSERVER_MetricsDelete(TRITONSERVER_Metrics *metrics) {
    kelp_message_destroy((kelp_message *)metrics);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MetricsFormatted(TRITONSERVER_Metrics *metrics,
                                                  TRITONSERVER_MetricFormat format,
                                                  const char **base, size_t *byte_size) {
    if (!metrics || !base || !byte_size)
        return kelp_abi_null(__func__, metrics ? "an output" : "metrics");
    if (format != TRITONSERVER_METRIC_PROMETHEUS)
        return kelp_to_error(
            KELP_ERROR(KELP_INVALID_ARGUMENT, "unknown metrics format '%d'", (int)format));
    *base = ((const kelp_message *)metrics)->text;
    *byte_size = ((const kelp_message *)metrics)->length;
    return NULL;
}
