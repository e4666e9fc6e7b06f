/* SPDX-License-Identifier: Apache-2.0 */
/* The page of metrics: the counters of the models with Triton's names, then the metrics that
 * backends and applications created. */
#include "base/assert.h"
#include "server/metrics/exposition.h"
#include "server/metrics/metrics.h"
#include "server/server.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

/* The metrics of a model that serves. */
typedef struct row {
    kelp_model *model; /* a reference */
    char *labels;      /* {model="…",version="…"} */
    size_t labels_capacity;
    uint32_t pending; /* requests in the queue */
    double load_s;
    kelp_stats stats;
} row;

typedef struct rows {
    kelp_allocator allocator;
    row *items;
    size_t count;
    size_t capacity;
} rows;

/* A family of Triton's metrics: a counter of kelp_stats; times are reported in microseconds. */
typedef struct family {
    const char *name;
    const char *help;
    size_t offset;
    bool is_time;
    bool is_of_cache; /* only for models with the response cache */
} family;

#define COUNT(member) offsetof(kelp_stats, member)
static const family families[] = {
    {"nv_inference_request_success", "Successful inference requests", COUNT(success.count), false,
     false},
    {"nv_inference_count", "Inferences; a batch of n counts as n", COUNT(inference_count), false,
     false},
    {"nv_inference_exec_count", "Executions of the model", COUNT(execution_count), false, false},
    {"nv_inference_request_duration_us", "Total time of requests, in microseconds",
     COUNT(success.ns), true, false},
    {"nv_inference_queue_duration_us", "Time of requests in queues, in microseconds",
     COUNT(queue.ns), true, false},
    {"nv_inference_compute_input_duration_us", "Time spent on inputs, in microseconds",
     COUNT(compute_input.ns), true, false},
    {"nv_inference_compute_infer_duration_us", "Time spent on inference, in microseconds",
     COUNT(compute_infer.ns), true, false},
    {"nv_inference_compute_output_duration_us", "Time spent on outputs, in microseconds",
     COUNT(compute_output.ns), true, false},
    {"nv_cache_num_hits_per_model", "Requests with a response from the response cache",
     COUNT(cache_hit.count), false, true},
    {"nv_cache_num_misses_per_model", "Requests without a response in the response cache",
     COUNT(cache_miss.count), false, true},
    {"nv_cache_hit_duration_per_model", "Time of lookups that found a response, in microseconds",
     COUNT(cache_hit.ns), true, true},
    {"nv_cache_miss_duration_per_model",
     "Time of lookups that found no response and of storing it, in microseconds",
     COUNT(cache_miss.ns), true, true},
};

/* Writes the tags in the order of their names. A model has few. */
static void write_tags(kelp_buf *out, const kelp_model_config *config) {
    const kelp_config_parameter *last = NULL;
    for (size_t n = 0; n < config->metric_tag_count; n++) {
        const kelp_config_parameter *next = NULL;
        for (size_t i = 0; i < config->metric_tag_count; i++) {
            const kelp_config_parameter *tag = &config->metric_tags[i];
            if ((last == NULL || strcmp(tag->key, last->key) > 0) &&
                (next == NULL || strcmp(tag->key, next->key) < 0))
                next = tag;
        }
        if (next == NULL)
            return;
        char name[128];
        snprintf(name, sizeof name, "_%s", next->key);
        kelp_metrics_write_label(out, last != NULL ? "," : "", name, next->value);
        last = next;
    }
}

static kelp_status *add_row(rows *list, kelp_model *model) {
    kelp_allocator heap = list->allocator;
    KELP_TRY(kelp_grow(heap, (void **)&list->items, &list->capacity, list->count + 1,
                       sizeof *list->items));
    row *added = &list->items[list->count++];
    memset(added, 0, sizeof *added);
    kelp_model_retain(&model->base);
    added->model = model;
    kelp_stats_init(&added->stats, heap);
    char version[24];
    snprintf(version, sizeof version, "%" PRId64, model->base.version);
    kelp_buf text;
    kelp_buf_init(&text, heap);
    kelp_buf_append_char(&text, '{');
    write_tags(&text, model->base.config);
    kelp_metrics_write_label(&text, text.length > 1 ? "," : "", "model", model->base.name);
    if (model->entry->space[0])
        kelp_metrics_write_label(&text, ",", "namespace", model->entry->space);
    kelp_metrics_write_label(&text, ",", "version", version);
    added->pending = kelp_model_queued(model);
    added->load_s = (double)model->load_ns / 1e9;
    kelp_buf_append_char(&text, '}');
    kelp_status *status = kelp_buf_cstr(&text) != NULL ? NULL : kelp_status_oom();
    if (status == NULL)
        status = kelp_model_add_stats(model, &added->stats);
    size_t length;
    added->labels = status != NULL ? NULL : kelp_buf_take(&text, &length, &added->labels_capacity);
    kelp_buf_deinit(&text);
    return status;
}

static void rows_deinit(rows *list) {
    kelp_allocator heap = list->allocator;
    for (size_t i = 0; i < list->count; i++) {
        kelp_free(heap, list->items[i].labels, list->items[i].labels_capacity);
        kelp_stats_deinit(&list->items[i].stats);
        kelp_model_release(&list->items[i].model->base);
    }
    kelp_free(heap, list->items, list->capacity * sizeof *list->items);
}

static kelp_status *collect(kelp_repository *repository, rows *list) {
    kelp_status *status = NULL;
    pthread_mutex_lock(&repository->lock);
    for (const kelp_entry *entry = repository->first_entry; entry != NULL && status == NULL;
         entry = entry->next) {
        /* A model in the table has instances: it is finalized after its removal from the table. */
        for (size_t i = 0; i < entry->version_count && status == NULL; i++)
            if (entry->versions[i].model != NULL)
                status = add_row(list, entry->versions[i].model);
    }
    pthread_mutex_unlock(&repository->lock);
    return status;
}

/* Writes the distributions of the models that have them. */
static kelp_status *write_latencies(const rows *list, kelp_metrics_format format, kelp_buf *out) {
    kelp_latency_row *latencies = NULL;
    kelp_allocator heap = list->allocator;
    KELP_TRY(kelp_alloc_zero(heap, list->count, sizeof *latencies, (void **)&latencies));
    for (size_t i = 0; i < list->count; i++)
        latencies[i] =
            (kelp_latency_row){list->items[i].model->base.latency, list->items[i].labels};
    kelp_latency_write(out, format, latencies, list->count);
    kelp_free(heap, latencies, list->count * sizeof *latencies);
    return NULL;
}

static void write_rows(const rows *list, bool with_times, kelp_buf *out) {
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++) {
        if (families[f].is_time && !with_times)
            continue;
        bool has_header = false;
        for (size_t i = 0; i < list->count; i++) {
            uint64_t value;
            if (families[f].is_of_cache && list->items[i].model->base.cache == NULL)
                continue;
            if (!has_header)
                kelp_metrics_write_header(out, families[f].name, families[f].help, "counter");
            has_header = true;
            memcpy(&value, (const char *)&list->items[i].stats + families[f].offset, sizeof value);
            kelp_buf_printf(out, "%s%s %" PRIu64 "\n", families[f].name, list->items[i].labels,
                            families[f].is_time ? value / 1000 : value);
        }
    }
    kelp_metrics_write_header(out, "nv_inference_request_failure", "Failed inference requests",
                              "counter");
    for (size_t i = 0; i < list->count; i++) {
        static const char *const reasons[] = {"BACKEND", "REJECTED", "CANCELED", "OTHER"};
        /* The labels are sorted by name; a quote in the value of another label is escaped. */
        const char *labels = list->items[i].labels, *rest = strstr(labels, ",version=\"");
        KELP_ASSERT(rest != NULL);
        for (int k = 0; k < KELP_FAILURE_COUNT; k++)
            kelp_buf_printf(out, "nv_inference_request_failure%.*s,reason=\"%s\"%s %" PRIu64 "\n",
                            (int)(rest - labels), labels, reasons[k], rest,
                            list->items[i].stats.failures[k]);
    }
    kelp_metrics_write_header(out, "nv_inference_pending_request_count", "Requests in queues",
                              "gauge");
    for (size_t i = 0; i < list->count; i++)
        kelp_buf_printf(out, "nv_inference_pending_request_count%s %" PRIu32 "\n",
                        list->items[i].labels, list->items[i].pending);
    kelp_metrics_write_header(out, "nv_model_load_duration_secs",
                              "Time of loading the model, in seconds", "gauge");
    for (size_t i = 0; i < list->count; i++) {
        kelp_buf_printf(out, "nv_model_load_duration_secs%s ", list->items[i].labels);
        kelp_metrics_write_number(out, list->items[i].load_s);
        kelp_buf_append_char(out, '\n');
    }
}

/* Converts the page to another format. */
static kelp_status *convert(kelp_metrics_format format, kelp_buf *inout_text) {
    if (format == KELP_FORMAT_OPENMETRICS)
        kelp_exposition_to_openmetrics(inout_text);
    if (format != KELP_FORMAT_PROTOBUF)
        return NULL;
    kelp_buf out;
    kelp_buf_init(&out, inout_text->allocator);
    kelp_status *status = kelp_buf_status(inout_text);
    if (status == NULL)
        status =
            kelp_exposition_put_protobuf((kelp_str){inout_text->data, inout_text->length}, &out);
    kelp_buf_deinit(inout_text);
    *inout_text = out;
    return status;
}

kelp_status *kelp_server_metrics(kelp_server *server, kelp_metrics_format format,
                                 kelp_message **out) {
    const kelp_server_options *options = server->host.options;
    const kelp_latency_rules *rules = &server->host.latency_rules;
    if (!options->metrics)
        return KELP_ERROR(KELP_UNIMPLEMENTED, "metrics are disabled");
    if ((format == KELP_FORMAT_OPENMETRICS && !rules->exemplars) ||
        (format == KELP_FORMAT_PROTOBUF && !rules->native))
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "metrics in this format require the metrics configuration '%s'",
                          format == KELP_FORMAT_PROTOBUF ? "native_histograms" : "exemplars");
    rows list = {.allocator = server->host.base.allocator};
    kelp_buf text;
    kelp_buf_init(&text, list.allocator);
    kelp_status *status = collect(&server->repository, &list);
    if (status == NULL) {
        write_rows(&list, server->host.latency_rules.counters, &text);
        status = write_latencies(&list, format, &text);
    }
    if (status == NULL) {
        if (options->cpu_metrics)
            kelp_metrics_write_host(&text);
        kelp_metrics_write(&text);
        status = convert(format, &text);
    }
    if (status == NULL) {
        status = kelp_message_create(&text, out);
    }
    kelp_buf_deinit(&text);
    rows_deinit(&list);
    return status;
}
