/* SPDX-License-Identifier: Apache-2.0 */
/* The process's registry of metrics. */
#include "server/metrics/metrics.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "server/core/heap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A double with atomic addition, stored as the bits of an integer. */
typedef struct atomic_number {
    _Atomic uint64_t bits;
} atomic_number;

/* A time series. */
struct kelp_metric {
    kelp_metric *next; /* in the family */
    kelp_metric_family *family;
    unsigned refs; /* handles; under the lock */
    char *labels;  /* a="b",c="d"; unique in the family */
    size_t labels_capacity;
    atomic_number value; /* the sum, for a histogram */
    double *bounds;
    size_t bound_count;
    atomic_ullong *buckets; /* one more than bounds: the last has no upper bound */
};

/* A family of series. */
struct kelp_metric_family {
    kelp_metric_family *next;
    unsigned refs; /* handles; under the lock */
    TRITONSERVER_MetricKind kind;
    char *name;
    char *description;
    kelp_metric *metrics; /* in the order of creation */
};

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static kelp_metric_family *registry;

static double number_get(const atomic_number *number) {
    uint64_t bits = atomic_load_explicit(&number->bits, memory_order_relaxed);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void number_set(atomic_number *number, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    atomic_store_explicit(&number->bits, bits, memory_order_relaxed);
}

static void number_add(atomic_number *number, double value) {
    uint64_t old = atomic_load_explicit(&number->bits, memory_order_relaxed), bits;
    do {
        double sum;
        memcpy(&sum, &old, sizeof sum);
        sum += value;
        memcpy(&bits, &sum, sizeof bits);
    } while (!atomic_compare_exchange_weak_explicit(&number->bits, &old, bits, memory_order_relaxed,
                                                    memory_order_relaxed));
}

/* ---- families ---- */

static void family_free(kelp_metric_family *family) {
    kelp_allocator heap = kelp_process_allocator();
    kelp_free_string(heap, family->name);
    kelp_free_string(heap, family->description);
    kelp_free(heap, family, sizeof *family);
}

static kelp_status *acquire_family(TRITONSERVER_MetricKind kind, const char *name,
                                   const char *description, kelp_metric_family **out) {
    KELP_ASSERT_HELD(&registry_lock);
    kelp_allocator heap = kelp_process_allocator();
    kelp_metric_family **link = &registry;
    for (; *link != NULL; link = &(*link)->next) {
        if (strcmp((*link)->name, name) != 0)
            continue;
        if ((*link)->kind != kind)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "metric family '%s' already exists with a different kind", name);
        (*link)->refs++;
        *out = *link;
        return NULL;
    }
    kelp_metric_family *family = NULL;
    KELP_TRY(KELP_NEW(heap, kelp_metric_family, &family));
    kelp_status *status = kelp_strdup(heap, name, &family->name);
    if (status == NULL)
        status = kelp_strdup(heap, description, &family->description);
    if (status != NULL) {
        family_free(family);
        return status;
    }
    family->kind = kind;
    family->refs = 1;
    *link = family;
    *out = family;
    return NULL;
}

kelp_status *kelp_metric_family_acquire(TRITONSERVER_MetricKind kind, const char *name,
                                        const char *description, kelp_metric_family **out) {
    pthread_mutex_lock(&registry_lock);
    kelp_status *status = acquire_family(kind, name, description, out);
    pthread_mutex_unlock(&registry_lock);
    return status;
}

kelp_status *kelp_metric_family_release(kelp_metric_family *family) {
    kelp_status *status = NULL;
    pthread_mutex_lock(&registry_lock);
    if (family->refs == 1 && family->metrics != NULL) {
        status = KELP_ERROR(KELP_INTERNAL,
                            "metric family '%s' cannot be deleted while it has metrics: call "
                            "TRITONSERVER_MetricDelete for each of them first",
                            family->name);
    } else if (--family->refs == 0) {
        kelp_metric_family **link = &registry;
        while (*link != family)
            link = &(*link)->next;
        *link = family->next;
        family_free(family);
    }
    pthread_mutex_unlock(&registry_lock);
    return status;
}

TRITONSERVER_MetricKind kelp_metric_family_kind(const kelp_metric_family *family) {
    return family->kind;
}

/* ---- series ---- */

static void metric_free(kelp_metric *metric) {
    kelp_allocator heap = kelp_process_allocator();
    kelp_free(heap, metric->labels, metric->labels_capacity);
    kelp_free(heap, metric->bounds, metric->bound_count * sizeof *metric->bounds);
    if (metric->buckets != NULL)
        kelp_free(heap, metric->buckets, (metric->bound_count + 1) * sizeof *metric->buckets);
    kelp_free(heap, metric, sizeof *metric);
}

static int compare_labels(const void *a, const void *b) {
    const kelp_parameter *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

/* Writes labels in the order of their names, so that equal sets of labels are one series. */
static kelp_status *write_labels(const kelp_parameter *const *labels, size_t count, kelp_buf *out) {
    kelp_allocator heap = kelp_process_allocator();
    const kelp_parameter **sorted = NULL;
    for (size_t i = 0; i < count; i++)
        if (labels[i] == NULL || labels[i]->type != TRITONSERVER_PARAMETER_STRING)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "label %zu of the metric: expected a parameter of type STRING", i);
    KELP_TRY(kelp_alloc_zero(heap, count, sizeof *sorted, (void **)&sorted));
    if (count > 0) {
        memcpy(sorted, labels, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, compare_labels);
    }
    for (size_t i = 0; i < count; i++)
        kelp_metrics_write_label(out, i ? "," : "", sorted[i]->name, sorted[i]->string);
    kelp_free(heap, sorted, count * sizeof *sorted);
    return kelp_buf_cstr(out) != NULL ? NULL : kelp_status_oom();
}

static kelp_status *copy_bounds(kelp_metric *metric, const double *bounds, size_t count) {
    kelp_allocator heap = kelp_process_allocator();
    for (size_t i = 1; i < count; i++)
        if (!(bounds[i - 1] < bounds[i]))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "the buckets of a histogram must be ascending");
    KELP_TRY(kelp_alloc_zero(heap, count + 1, sizeof *metric->buckets, (void **)&metric->buckets));
    metric->bound_count = count;
    KELP_TRY(kelp_alloc_zero(heap, count, sizeof *metric->bounds, (void **)&metric->bounds));
    if (count)
        memcpy(metric->bounds, bounds, count * sizeof *bounds);
    return NULL;
}

kelp_status *kelp_metric_args_create(kelp_metric_args **out) {
    return KELP_NEW(kelp_process_allocator(), kelp_metric_args, out);
}

kelp_status *kelp_metric_args_set_bounds(kelp_metric_args *args, const double *bounds,
                                         size_t count) {
    double *copy = NULL;
    KELP_TRY(kelp_alloc_zero(kelp_process_allocator(), count, sizeof *copy, (void **)&copy));
    if (count)
        memcpy(copy, bounds, count * sizeof *copy);
    kelp_free(kelp_process_allocator(), args->bounds, args->count * sizeof *args->bounds);
    args->bounds = copy;
    args->count = count;
    args->is_set = true;
    return NULL;
}

void kelp_metric_args_destroy(kelp_metric_args *args) {
    if (args == NULL)
        return;
    kelp_free(kelp_process_allocator(), args->bounds, args->count * sizeof *args->bounds);
    kelp_free(kelp_process_allocator(), args, sizeof *args);
}

kelp_status *kelp_metric_acquire(kelp_metric_family *family, const kelp_parameter *const *labels,
                                 size_t label_count, const double *bounds, size_t bound_count,
                                 kelp_metric **out) {
    kelp_allocator heap = kelp_process_allocator();
    kelp_metric *fresh = NULL;
    kelp_buf text;
    kelp_buf_init(&text, heap);
    kelp_status *status = write_labels(labels, label_count, &text);
    if (status == NULL)
        status = KELP_NEW(heap, kelp_metric, &fresh);
    if (status == NULL && family->kind == TRITONSERVER_METRIC_KIND_HISTOGRAM)
        status = copy_bounds(fresh, bounds, bound_count);
    if (status != NULL) {
        if (fresh != NULL)
            metric_free(fresh);
        kelp_buf_deinit(&text);
        return status;
    }
    size_t length;
    fresh->labels = kelp_buf_take(&text, &length, &fresh->labels_capacity);
    fresh->family = family;
    fresh->refs = 1;
    pthread_mutex_lock(&registry_lock);
    kelp_metric **link = &family->metrics;
    while (*link != NULL && strcmp((*link)->labels, fresh->labels) != 0)
        link = &(*link)->next;
    if (*link != NULL) {
        (*link)->refs++;
        *out = *link;
    } else {
        *link = *out = fresh;
        fresh = NULL;
    }
    pthread_mutex_unlock(&registry_lock);
    if (fresh != NULL)
        metric_free(fresh);
    return NULL;
}

void kelp_metric_release(kelp_metric *metric) {
    pthread_mutex_lock(&registry_lock);
    KELP_ASSERT(metric->family->refs > 0); /* a family with metrics is not deleted */
    bool last = --metric->refs == 0;
    if (last) {
        kelp_metric **link = &metric->family->metrics;
        while (*link != metric)
            link = &(*link)->next;
        *link = metric->next;
    }
    pthread_mutex_unlock(&registry_lock);
    if (last)
        metric_free(metric);
}

TRITONSERVER_MetricKind kelp_metric_kind(const kelp_metric *metric) {
    return metric->family->kind;
}

static kelp_status *unsupported(const kelp_metric *metric, const char *what) {
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    return KELP_ERROR(KELP_UNIMPLEMENTED, "metric '%s' is a %s, which %s", metric->family->name,
                      kinds[metric->family->kind], what);
}

kelp_status *kelp_metric_value(const kelp_metric *metric, double *out) {
    if (metric->family->kind == TRITONSERVER_METRIC_KIND_HISTOGRAM)
        return unsupported(metric, "has no single value");
    *out = number_get(&metric->value);
    return NULL;
}

kelp_status *kelp_metric_increment(kelp_metric *metric, double value) {
    if (metric->family->kind == TRITONSERVER_METRIC_KIND_HISTOGRAM)
        return unsupported(metric, "cannot be incremented");
    if (metric->family->kind == TRITONSERVER_METRIC_KIND_COUNTER && !(value >= 0))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "counter '%s' cannot decrease: increment by %g",
                          metric->family->name, value);
    number_add(&metric->value, value);
    return NULL;
}

kelp_status *kelp_metric_set(kelp_metric *metric, double value) {
    if (metric->family->kind != TRITONSERVER_METRIC_KIND_GAUGE)
        return unsupported(metric, "cannot be set");
    number_set(&metric->value, value);
    return NULL;
}

kelp_status *kelp_metric_observe(kelp_metric *metric, double value) {
    if (metric->family->kind != TRITONSERVER_METRIC_KIND_HISTOGRAM)
        return unsupported(metric, "cannot observe values");
    size_t at = 0;
    while (at < metric->bound_count && value > metric->bounds[at])
        at++;
    atomic_fetch_add_explicit(&metric->buckets[at], 1, memory_order_relaxed);
    number_add(&metric->value, value);
    return NULL;
}

/* ---- text ---- */

void kelp_metrics_write_label(kelp_buf *out, const char *separator, const char *name,
                              const char *value) {
    kelp_buf_printf(out, "%s%s=\"", separator, name);
    for (; *value; value++) {
        if (*value == '\n')
            kelp_buf_append_cstr(out, "\\n");
        else if (*value == '"' || *value == '\\')
            kelp_buf_printf(out, "\\%c", *value);
        else
            kelp_buf_append_char(out, *value);
    }
    kelp_buf_append_char(out, '"');
}

void kelp_metrics_write_header(kelp_buf *out, const char *name, const char *help,
                               const char *type) {
    kelp_buf_printf(out, "# HELP %s ", name);
    for (; *help; help++) {
        if (*help == '\n')
            kelp_buf_append_cstr(out, "\\n");
        else if (*help == '\\')
            kelp_buf_append_cstr(out, "\\\\");
        else
            kelp_buf_append_char(out, *help);
    }
    kelp_buf_printf(out, "\n# TYPE %s %s\n", name, type);
}

void kelp_metrics_write_number(kelp_buf *out, double value) {
    if (value >= -9e15 && value <= 9e15 && (double)(int64_t)value == value)
        kelp_buf_append_i64(out, (int64_t)value);
    else if (value != value)
        kelp_buf_append_cstr(out, "NaN");
    else if (value > 1.7976931348623157e308 || value < -1.7976931348623157e308)
        kelp_buf_append_cstr(out, value > 0 ? "+Inf" : "-Inf");
    else
        kelp_buf_append_f64(out, value);
}

static void write_sample(kelp_buf *out, const char *name, const char *suffix, const char *labels,
                         double value) {
    kelp_buf_printf(out, "%s%s", name, suffix);
    if (labels[0])
        kelp_buf_printf(out, "{%s}", labels);
    kelp_buf_append_char(out, ' ');
    kelp_metrics_write_number(out, value);
    kelp_buf_append_char(out, '\n');
}

static void write_histogram(kelp_buf *out, const kelp_metric *metric) {
    KELP_ASSERT(metric->buckets != NULL);
    const char *name = metric->family->name;
    unsigned long long total = 0;
    for (size_t i = 0; i <= metric->bound_count; i++) {
        total += atomic_load_explicit(&metric->buckets[i], memory_order_relaxed);
        kelp_buf_printf(out, "%s_bucket{%s%sle=\"", name, metric->labels,
                        metric->labels[0] ? "," : "");
        if (i < metric->bound_count)
            kelp_metrics_write_number(out, metric->bounds[i]);
        else
            kelp_buf_append_cstr(out, "+Inf");
        kelp_buf_printf(out, "\"} %llu\n", total);
    }
    write_sample(out, name, "_sum", metric->labels, number_get(&metric->value));
    write_sample(out, name, "_count", metric->labels, (double)total);
}

void kelp_metrics_write(kelp_buf *out) {
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    pthread_mutex_lock(&registry_lock);
    for (const kelp_metric_family *family = registry; family != NULL; family = family->next) {
        if (family->metrics != NULL)
            kelp_metrics_write_header(out, family->name, family->description, kinds[family->kind]);
        for (const kelp_metric *metric = family->metrics; metric != NULL; metric = metric->next) {
            if (family->kind == TRITONSERVER_METRIC_KIND_HISTOGRAM)
                write_histogram(out, metric);
            else
                write_sample(out, family->name, "", metric->labels, number_get(&metric->value));
        }
    }
    pthread_mutex_unlock(&registry_lock);
}
