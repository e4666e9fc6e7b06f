/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of a backend. In some servers, deleting a family removes it although other handles refer
 * to it. The library therefore has one handle for each family, which its metrics share.
 */
#include "sdk/sdk.h"

#include <stdio.h>
#include <stdlib.h>

/* A family of metrics: one handle of the server. */
typedef struct family family;
struct family {
    family *next;
    TRITONSERVER_MetricFamily *raw;
    TRITONSERVER_MetricKind kind;
    size_t refs; /* metrics */
    char name[]; /* terminated by NUL */
};

struct kelp_backend_metric {
    TRITONSERVER_Metric *raw;
    family *family;
};

static pthread_mutex_t families_lock = PTHREAD_MUTEX_INITIALIZER;
static family *families;

static const char *kind_name(TRITONSERVER_MetricKind kind) {
    switch (kind) {
    case TRITONSERVER_METRIC_KIND_COUNTER:
        return "counter";
    case TRITONSERVER_METRIC_KIND_GAUGE:
        return "gauge";
    case TRITONSERVER_METRIC_KIND_HISTOGRAM:
        return "histogram";
    }
    return "unknown";
}

/* ---- checks ---- */

/* Checks a name of Prometheus: letters, digits and '_', no digit first; `others` are permitted
 * too. */
static bool is_name(const char *name, const char *others) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    bool valid = name != NULL && name[0] != '\0' && !(name[0] >= '0' && name[0] <= '9');
    for (const char *at = name; valid && *at != '\0'; at++)
        valid = strchr(letters, *at) != NULL || (*at >= '0' && *at <= '9') ||
                strchr(others, *at) != NULL;
    return valid;
}

static kelp_status *check_bounds(const kelp_backend_metric_spec *spec) {
    bool is_histogram = spec->kind == TRITONSERVER_METRIC_KIND_HISTOGRAM;
    if (is_histogram != (spec->bound_count > 0) || (is_histogram && spec->bounds == NULL))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "the %s needs %s, found %zu",
                          kind_name(spec->kind), is_histogram ? "at least one bound" : "no bounds",
                          spec->bound_count);
    for (size_t i = 1; i < spec->bound_count; i++) {
        if (!(spec->bounds[i - 1] < spec->bounds[i]))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "bound %zu is %g: expected more than the previous one, %g", i,
                              spec->bounds[i], spec->bounds[i - 1]);
    }
    return NULL;
}

static kelp_status *check_labels(const kelp_backend_model *model,
                                 const kelp_backend_metric_spec *spec) {
    for (size_t i = 0; i < spec->label_count; i++) {
        const kelp_backend_label *label = &spec->labels[i];
        if (!is_name(label->name, "") || label->value == NULL)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "label %zu is invalid: expected a name of letters, digits and '_', "
                              "and a value; found '%s'",
                              i, label->name != NULL ? label->name : "NULL");
        bool repeated = model != NULL &&
                        (strcmp(label->name, "model") == 0 || strcmp(label->name, "version") == 0);
        for (size_t k = 0; k < i; k++)
            repeated |= strcmp(label->name, spec->labels[k].name) == 0;
        if (repeated)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "label '%s' occurs twice", label->name);
    }
    return NULL;
}

static kelp_status *check_spec(const kelp_backend_model *model,
                               const kelp_backend_metric_spec *spec) {
    if ((unsigned)spec->kind > TRITONSERVER_METRIC_KIND_HISTOGRAM)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "expected a counter, gauge or histogram, found kind %d", (int)spec->kind);
    if (!is_name(spec->name, ":"))
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "the name is invalid: expected letters, digits, '_' and ':', and no digit first");
    if (spec->help == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "the help text is missing");
    if (spec->label_count > 0 && spec->labels == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "the labels are NULL");
    KELP_TRY(check_bounds(spec));
    return check_labels(model, spec);
}

/* ---- families ---- */

static kelp_status *family_create(const kelp_backend_metric_spec *spec, family **out) {
    size_t length = strlen(spec->name);
    family *created = calloc(1, sizeof *created + length + 1);
    if (created == NULL)
        return kelp_status_oom();
    memcpy(created->name, spec->name, length + 1);
    created->kind = spec->kind;
    kelp_status *status =
        sdk_status(TRITONSERVER_MetricFamilyNew(&created->raw, spec->kind, spec->name, spec->help));
    if (status != NULL) {
        free(created);
        return status;
    }
    created->next = families;
    families = created;
    *out = created;
    return NULL;
}

/* Returns a reference to the family of a spec. The lock is held. */
static kelp_status *family_acquire(const kelp_backend_metric_spec *spec, family **out) {
    KELP_ASSERT_HELD(&families_lock);
    *out = families;
    while (*out != NULL && strcmp((*out)->name, spec->name) != 0)
        *out = (*out)->next;
    if (*out == NULL)
        KELP_TRY(family_create(spec, out));
    if ((*out)->kind != spec->kind)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the family has another kind: expected %s, found %s",
                          kind_name((*out)->kind), kind_name(spec->kind));
    (*out)->refs++;
    return NULL;
}

/* Drops a reference. The lock is held. */
static void family_release(family *released) {
    KELP_ASSERT_HELD(&families_lock);
    KELP_ASSERT(released->refs > 0);
    if (--released->refs > 0)
        return;
    family **link = &families;
    while (*link != released)
        link = &(*link)->next;
    *link = released->next;
    (void)sdk_ok(TRITONSERVER_MetricFamilyDelete(released->raw));
    free(released);
}

/* ---- metrics ---- */

/* Creates the labels of a metric: those of the model, and those of the spec. The caller deletes
 * them, also on failure. */
static kelp_status *open_labels(const kelp_backend_model *model,
                                const kelp_backend_metric_spec *spec,
                                TRITONSERVER_Parameter **out_labels, size_t *out_count) {
    char version[24];
    size_t count = 0;
    if (model != NULL) {
        snprintf(version, sizeof version, "%llu", (unsigned long long)model->version);
        const kelp_backend_label own[] = {{"model", model->name}, {"version", version}};
        for (; count < KELP_COUNT(own); count++)
            out_labels[count] = TRITONSERVER_ParameterNew(
                own[count].name, TRITONSERVER_PARAMETER_STRING, own[count].value);
    }
    for (size_t i = 0; i < spec->label_count; i++)
        out_labels[count++] = TRITONSERVER_ParameterNew(
            spec->labels[i].name, TRITONSERVER_PARAMETER_STRING, spec->labels[i].value);
    *out_count = count;
    for (size_t i = 0; i < count; i++) {
        if (out_labels[i] == NULL)
            return kelp_status_oom();
    }
    return NULL;
}

static kelp_status *metric_new(const kelp_backend_metric_spec *spec, const family *parent,
                               const TRITONSERVER_Parameter **labels, size_t count,
                               TRITONSERVER_Metric **out) {
    TRITONSERVER_MetricArgs *args = NULL;
    if (spec->kind != TRITONSERVER_METRIC_KIND_HISTOGRAM)
        return kelp_backend_status(TRITONSERVER_MetricNew(out, parent->raw, labels, count));
    KELP_TRY(sdk_status(TRITONSERVER_MetricArgsNew(&args)));
    kelp_status *status = sdk_status(
        TRITONSERVER_MetricArgsSetHistogram(args, spec->bounds, (uint64_t)spec->bound_count));
    if (status == NULL)
        status = sdk_status(TRITONSERVER_MetricNewWithArgs(out, parent->raw, labels, count, args));
    (void)sdk_ok(TRITONSERVER_MetricArgsDelete(args));
    return status;
}

static kelp_status *open_metric(const kelp_backend_model *model,
                                const kelp_backend_metric_spec *spec, const family *parent,
                                TRITONSERVER_Metric **out) {
    size_t count = 0, capacity = 0;
    if (!kelp_size_add(spec->label_count, 2, &capacity))
        return kelp_status_oom();
    TRITONSERVER_Parameter **labels = calloc(capacity, sizeof *labels);
    if (labels == NULL)
        return kelp_status_oom();
    kelp_status *status = open_labels(model, spec, labels, &count);
    if (status == NULL)
        status =
            metric_new(spec, parent, (const TRITONSERVER_Parameter **)(void *)labels, count, out);
    for (size_t i = 0; i < count; i++) {
        if (labels[i] != NULL)
            TRITONSERVER_ParameterDelete(labels[i]);
    }
    free(labels);
    return status;
}

static kelp_status *metric_open(kelp_backend_metric *metric, const kelp_backend_model *model,
                                const kelp_backend_metric_spec *spec) {
    KELP_TRY(check_spec(model, spec));
    pthread_mutex_lock(&families_lock);
    kelp_status *status = family_acquire(spec, &metric->family);
    if (status == NULL) {
        status = open_metric(model, spec, metric->family, &metric->raw);
        if (status != NULL)
            family_release(metric->family);
    }
    pthread_mutex_unlock(&families_lock);
    return status;
}

kelp_status *kelp_backend_metric_create(kelp_backend_model *model,
                                        const kelp_backend_metric_spec *spec,
                                        kelp_backend_metric **out) {
    kelp_backend_metric *metric = calloc(1, sizeof *metric);
    if (metric == NULL)
        return kelp_status_oom();
    kelp_status *status = metric_open(metric, model, spec);
    if (status != NULL) {
        free(metric);
        return KELP_ANNOTATE(status, "cannot create metric '%s'",
                             spec->name != NULL ? spec->name : "NULL");
    }
    *out = metric;
    return NULL;
}

/* Servers differ in the operations that they accept and in their messages: the SDK checks. */
static kelp_status *unsupported(const kelp_backend_metric *metric, const char *what) {
    return KELP_ERROR(KELP_UNIMPLEMENTED, "metric '%s' is a %s, which %s", metric->family->name,
                      kind_name(metric->family->kind), what);
}

kelp_status *kelp_backend_metric_add(kelp_backend_metric *metric, double value) {
    if (metric->family->kind == TRITONSERVER_METRIC_KIND_HISTOGRAM)
        return unsupported(metric, "has no value to add to");
    if (metric->family->kind == TRITONSERVER_METRIC_KIND_COUNTER && !(value >= 0))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "counter '%s' cannot decrease: expected at least 0, found %g",
                          metric->family->name, value);
    return sdk_status(TRITONSERVER_MetricIncrement(metric->raw, value));
}

kelp_status *kelp_backend_metric_set(kelp_backend_metric *metric, double value) {
    if (metric->family->kind != TRITONSERVER_METRIC_KIND_GAUGE)
        return unsupported(metric, "cannot be set");
    return sdk_status(TRITONSERVER_MetricSet(metric->raw, value));
}

kelp_status *kelp_backend_metric_observe(kelp_backend_metric *metric, double value) {
    if (metric->family->kind != TRITONSERVER_METRIC_KIND_HISTOGRAM)
        return unsupported(metric, "cannot observe values");
    return sdk_status(TRITONSERVER_MetricObserve(metric->raw, value));
}

kelp_status *kelp_backend_metric_value(const kelp_backend_metric *metric, double *out) {
    if (metric->family->kind == TRITONSERVER_METRIC_KIND_HISTOGRAM)
        return unsupported(metric, "has no single value");
    return sdk_status(TRITONSERVER_MetricValue(metric->raw, out));
}

void kelp_backend_metric_destroy(kelp_backend_metric *metric) {
    if (metric == NULL)
        return;
    (void)sdk_ok(TRITONSERVER_MetricDelete(metric->raw));
    pthread_mutex_lock(&families_lock);
    family_release(metric->family);
    pthread_mutex_unlock(&families_lock);
    free(metric);
}
