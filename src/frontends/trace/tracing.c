/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of all models, and their changes. */
#include "frontends/trace/tracing.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "frontends/common/status.h"
#include "frontends/trace/record.h"

#include <stdatomic.h>

/* The time to export what is queued when the server stops. */
#define STOP_NS (UINT64_C(5) * 1000000000)

/* The values that are set, as bits. */
enum { LEVEL = 1, RATE = 2, COUNT = 4, FREQUENCY = 8 };

/* The settings of a model, or the global ones. */
typedef struct scope {
    char *model; /* NULL: global */
    unsigned set;
    kelp_trace_values values; /* those that are set */
    kelp_trace_setting *setting;
} scope;

struct kelp_tracing {
    kelp_allocator allocator;
    TRITONSERVER_Server *core;
    kelp_tracing_options options; /* `otlp` is only compared with NULL */
    kelp_trace_writer *writer;    /* of mode triton */
    kelp_otlp_exporter *exporter; /* of mode opentelemetry */
    kelp_trace_ids ids;
    atomic_bool enabled;  /* some setting traces */
    pthread_mutex_t lock; /* guards what follows */
    scope global;
    scope *models;
    size_t count, capacity;
};

/* ---- values ---- */

static void overlay(kelp_trace_values *inout, const scope *s) {
    inout->level = s->set & LEVEL ? s->values.level : inout->level;
    inout->rate = s->set & RATE ? s->values.rate : inout->rate;
    inout->count = s->set & COUNT ? s->values.count : inout->count;
    inout->log_frequency = s->set & FREQUENCY ? s->values.log_frequency : inout->log_frequency;
}

static kelp_status *check(const kelp_tracing *tracing, const kelp_trace_values *values) {
    const char *reason = NULL;
    if (tracing->exporter != NULL) /* a rate of 0: only requests with a trace context */
        reason = values->level & TRITONSERVER_TRACE_LEVEL_TENSORS
                     ? "the mode opentelemetry does not support the level TENSORS; use TIMESTAMPS"
                     : NULL;
    else if (values->level != 0 && values->rate == 0)
        reason = "sample rate must be non-zero";
    else if (values->level != 0 && tracing->options.file[0] == 0)
        reason = "trace file name is not given";
    return reason == NULL ? NULL
                          : KELP_ERROR(KELP_INVALID_ARGUMENT,
                                       "Attempting to set invalid trace setting :%s", reason);
}

static kelp_status *parse_level(const kelp_trace_change *change, unsigned *out) {
    *out = 0;
    for (size_t i = 0; i < change->count; i++) {
        if (kelp_str_is(change->values[i], "TIMESTAMPS"))
            *out |= TRITONSERVER_TRACE_LEVEL_TIMESTAMPS;
        else if (kelp_str_is(change->values[i], "TENSORS"))
            *out |= TRITONSERVER_TRACE_LEVEL_TENSORS;
        else if (!kelp_str_is(change->values[i], "OFF"))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "'trace_level': expected OFF, TIMESTAMPS or TENSORS, found '%.*s'",
                              KELP_STR_ARG(change->values[i]));
        else if (change->count > 1)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "Expect only one trace level 'OFF' is specified");
    }
    return NULL;
}

/* Parses the only value of a change as an integer. */
static kelp_status *parse_number(const kelp_trace_change *change, int64_t min, int64_t max,
                                 int64_t *out) {
    kelp_str text = change->count == 1 ? change->values[0] : (kelp_str){0};
    if (change->count != 1)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "expect only 1 value for '%.*s', got %zu",
                          KELP_STR_ARG(change->name), change->count);
    if (!kelp_parse_i64(text, out))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "Unable to parse '%.*s', got: %.*s",
                          KELP_STR_ARG(change->name), KELP_STR_ARG(text));
    if (*out < min || *out > max)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "Unable to parse '%.*s', value is out of range [ %lld, %lld ], got: %.*s",
                          KELP_STR_ARG(change->name), (long long)min, (long long)max,
                          KELP_STR_ARG(text));
    return NULL;
}

static kelp_status *apply_change(scope *s, const kelp_trace_change *change) {
    unsigned bit = 0;
    int64_t number = 0;
    if (kelp_str_is(change->name, "trace_level")) {
        bit = LEVEL;
        if (!change->reset)
            KELP_TRY(parse_level(change, &s->values.level));
    } else if (kelp_str_is(change->name, "trace_rate")) {
        bit = RATE;
        if (!change->reset)
            KELP_TRY(parse_number(change, 0, UINT32_MAX, &number));
        s->values.rate = (uint32_t)number;
    } else if (kelp_str_is(change->name, "trace_count")) {
        bit = COUNT;
        if (!change->reset)
            KELP_TRY(parse_number(change, -1, INT32_MAX, &number));
        s->values.count = (int32_t)number;
    } else if (kelp_str_is(change->name, "log_frequency")) {
        bit = FREQUENCY;
        if (!change->reset)
            KELP_TRY(parse_number(change, 0, UINT32_MAX, &number));
        s->values.log_frequency = (uint32_t)number;
    } else if (kelp_str_is(change->name, "trace_file")) {
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "trace file location can not be updated through network protocol");
    } else {
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "unknown trace setting '%.*s': expected trace_level, trace_rate, "
                          "trace_count or log_frequency",
                          KELP_STR_ARG(change->name));
    }
    s->set = change->reset ? s->set & ~bit : s->set | bit;
    return NULL;
}

/* ---- scopes ---- */

static scope *find(kelp_tracing *tracing, const char *model) {
    for (size_t i = 0; i < tracing->count; i++)
        if (strcmp(tracing->models[i].model, model) == 0)
            return &tracing->models[i];
    return NULL;
}

/* Returns the values of a scope, given the global scope. */
static kelp_trace_values values_of(const kelp_tracing *tracing, const scope *global,
                                   const scope *s) {
    kelp_trace_values values = tracing->options.values;
    overlay(&values, global);
    overlay(&values, s);
    return values;
}

/* Gives a scope the setting that follows from its values. */
static kelp_status *renew(kelp_tracing *tracing, const scope *global, scope *inout) {
    kelp_trace_values values = values_of(tracing, global, inout);
    kelp_trace_setting *setting = NULL;
    KELP_TRY(check(tracing, &values));
    KELP_TRY(kelp_trace_setting_create(tracing->allocator, tracing->writer, &values, &setting));
    kelp_trace_setting_release(inout->setting);
    inout->setting = setting;
    return NULL;
}

static void remove_model(kelp_tracing *tracing, scope *s) {
    kelp_trace_setting_release(s->setting);
    kelp_free_string(tracing->allocator, s->model);
    *s = tracing->models[--tracing->count];
}

static void note_enabled(kelp_tracing *tracing) {
    bool enabled = tracing->global.setting->values.level != 0;
    for (size_t i = 0; i < tracing->count; i++)
        enabled = enabled || tracing->models[i].setting->values.level != 0;
    atomic_store(&tracing->enabled, enabled);
}

static kelp_status *add_model(kelp_tracing *tracing, const char *model, scope **out) {
    if (tracing->count == KELP_TRACING_MAX_MODELS)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                          "too many models with trace settings: expected at most %d",
                          KELP_TRACING_MAX_MODELS);
    KELP_TRY(kelp_grow(tracing->allocator, (void **)&tracing->models, &tracing->capacity,
                       tracing->count + 1, sizeof *tracing->models));
    scope *s = &tracing->models[tracing->count];
    *s = (scope){0};
    KELP_TRY(kelp_strdup(tracing->allocator, model, &s->model));
    tracing->count++;
    *out = s;
    return NULL;
}

/* Updates the settings of a model. The lock is held. */
static kelp_status *update_model(kelp_tracing *tracing, const char *model,
                                 const kelp_trace_change *changes, size_t count) {
    scope *s = find(tracing, model);
    scope next = s != NULL ? *s : (scope){0};
    for (size_t i = 0; i < count; i++)
        KELP_TRY(apply_change(&next, &changes[i]));
    if (next.set == 0) {
        if (s != NULL)
            remove_model(tracing, s);
        return NULL;
    }
    kelp_trace_setting *old = next.setting;
    next.setting = NULL;
    KELP_TRY(renew(tracing, &tracing->global, &next));
    kelp_status *status = s == NULL ? add_model(tracing, model, &s) : NULL;
    if (status != NULL) {
        kelp_trace_setting_release(next.setting);
        return status;
    }
    next.model = s->model;
    *s = next;
    kelp_trace_setting_release(old);
    return NULL;
}

/* Updates the global settings, and those of the models that depend on them. The lock is held. */
static kelp_status *update_global(kelp_tracing *tracing, const kelp_trace_change *changes,
                                  size_t count) {
    scope next = tracing->global;
    for (size_t i = 0; i < count; i++)
        KELP_TRY(apply_change(&next, &changes[i]));
    for (size_t i = 0; i < tracing->count; i++) {
        kelp_trace_values values = values_of(tracing, &next, &tracing->models[i]);
        KELP_TRY(check(tracing, &values));
    }
    next.setting = NULL;
    KELP_TRY(renew(tracing, &next, &next));
    kelp_trace_setting_release(tracing->global.setting);
    tracing->global = next;
    for (size_t i = 0; i < tracing->count; i++)
        KELP_TRY(renew(tracing, &tracing->global, &tracing->models[i]));
    return NULL;
}

/* Fails for a model that is not ready. */
static kelp_status *check_model(const kelp_tracing *tracing, const char *model) {
    bool ready = false;
    if (model[0] == 0)
        return NULL;
    kelp_v2_ignore(TRITONSERVER_ServerModelIsReady(tracing->core, model, -1, &ready));
    return ready ? NULL
                 : KELP_ERROR(KELP_INVALID_ARGUMENT, "Request for unknown model : %s", model);
}

kelp_status *kelp_tracing_update(kelp_tracing *tracing, const char *model,
                                 const kelp_trace_change *changes, size_t count) {
    KELP_TRY(check_model(tracing, model));
    pthread_mutex_lock(&tracing->lock);
    kelp_status *status = model[0] != 0 ? update_model(tracing, model, changes, count)
                                        : update_global(tracing, changes, count);
    note_enabled(tracing);
    pthread_mutex_unlock(&tracing->lock);
    return status;
}

kelp_status *kelp_tracing_get(kelp_tracing *tracing, const char *model, kelp_trace_values *out) {
    KELP_TRY(check_model(tracing, model));
    pthread_mutex_lock(&tracing->lock);
    const scope *s = find(tracing, model);
    *out = kelp_trace_setting_values(s != NULL ? s->setting : tracing->global.setting);
    pthread_mutex_unlock(&tracing->lock);
    return NULL;
}

const kelp_tracing_options *kelp_tracing_start_options(const kelp_tracing *tracing) {
    return &tracing->options;
}

/* ---- requests ---- */

static bool is_enabled(kelp_tracing *tracing) {
    return tracing != NULL && atomic_load_explicit(&tracing->enabled, memory_order_relaxed);
}

void kelp_tracing_read_parent(kelp_tracing *tracing, const kelp_http_request *request,
                              kelp_arena *arena, kelp_trace_context *out) {
    *out = (kelp_trace_context){0};
    if (is_enabled(tracing) && tracing->exporter != NULL)
        kelp_trace_context_read(arena, request, out);
}

/* Returns true if the ratio of the sampler includes a trace. Programs that continue a trace decide
 * alike, because the last 8 bytes of its ID decide. */
static bool in_ratio(const kelp_trace_sampler *sampler, const kelp_trace_id *id) {
    const double range = 0x1p63;
    uint64_t number = 0;
    if (sampler->ratio >= 1)
        return true;
    for (size_t i = 8; i < sizeof id->bytes; i++)
        number = number << 8 | id->bytes[i];
    return (double)(number >> 1) < sampler->ratio * range;
}

/* Returns true if a request is traced. *out_id is the ID of its trace. */
static bool is_sampled(kelp_tracing *tracing, kelp_trace_setting *setting,
                       const kelp_trace_context *parent, kelp_trace_id *out_id) {
    const kelp_trace_sampler *sampler = &tracing->options.sampler;
    if (tracing->exporter == NULL)
        return kelp_trace_setting_sample(setting, KELP_TRACE_BY_RATE);
    if (kelp_trace_context_is_valid(parent)) {
        *out_id = parent->trace;
        bool sampled = sampler->parent_based ? (parent->flags & KELP_TRACE_SAMPLED) != 0
                                             : in_ratio(sampler, out_id);
        return kelp_trace_setting_sample(setting, sampled ? KELP_TRACE_ALWAYS : KELP_TRACE_NEVER);
    }
    *out_id = kelp_trace_ids_trace(&tracing->ids);
    return in_ratio(sampler, out_id) && kelp_trace_setting_sample(setting, KELP_TRACE_BY_RATE);
}

/* Returns the setting of a model with a new reference. */
static kelp_trace_setting *setting_of(kelp_tracing *tracing, const char *model) {
    pthread_mutex_lock(&tracing->lock);
    const scope *s = find(tracing, model);
    kelp_trace_setting *setting = s != NULL ? s->setting : tracing->global.setting;
    kelp_trace_setting_retain(setting);
    pthread_mutex_unlock(&tracing->lock);
    return setting;
}

kelp_trace_record *kelp_tracing_sample(kelp_tracing *tracing, const kelp_trace_origin *origin) {
    kelp_trace_record *record = NULL;
    if (!is_enabled(tracing))
        return NULL;
    kelp_trace_target target = {.exporter = tracing->exporter, .ids = &tracing->ids};
    kelp_trace_setting *setting = setting_of(tracing, origin->model);
    if (is_sampled(tracing, setting, &origin->parent, &target.trace_id)) {
        kelp_status *status =
            kelp_trace_record_create(tracing->allocator, setting, origin, &target, &record);
        if (status == NULL)
            return record;
        kelp_trace_setting_collect(setting, (kelp_str){0});
        kelp_status_free(status); /* the request is more important than its trace */
    }
    kelp_trace_setting_release(setting);
    return NULL;
}

/* ---- the object ---- */

void kelp_tracing_stop(kelp_tracing *tracing) {
    if (tracing != NULL && tracing->exporter != NULL)
        kelp_otlp_exporter_stop(tracing->exporter, STOP_NS);
}

void kelp_tracing_destroy(kelp_tracing *tracing) {
    if (tracing == NULL)
        return;
    kelp_tracing_stop(tracing);
    while (tracing->count > 0)
        remove_model(tracing, &tracing->models[0]);
    kelp_trace_setting_release(tracing->global.setting);
    kelp_trace_writer_destroy(tracing->writer);
    kelp_otlp_exporter_destroy(tracing->exporter);
    kelp_free(tracing->allocator, tracing->models, tracing->capacity * sizeof *tracing->models);
    pthread_mutex_destroy(&tracing->lock);
    kelp_free(tracing->allocator, tracing, sizeof *tracing);
}

kelp_status *kelp_tracing_create(kelp_allocator allocator, TRITONSERVER_Server *core,
                                 const kelp_logger *logger, const kelp_tracing_options *options,
                                 kelp_tracing **out) {
    kelp_tracing *tracing;
    KELP_TRY(KELP_NEW(allocator, kelp_tracing, &tracing));
    tracing->allocator = allocator;
    tracing->core = core;
    tracing->options = *options;
    pthread_mutex_init(&tracing->lock, NULL);
    kelp_trace_ids_init(&tracing->ids);
    kelp_status *status =
        options->otlp != NULL
            ? kelp_otlp_exporter_create(allocator, logger, options->otlp, &tracing->exporter)
            : kelp_trace_writer_create(allocator, options->file, logger, &tracing->writer);
    if (status == NULL)
        status = renew(tracing, &tracing->global, &tracing->global);
    if (status != NULL) {
        kelp_tracing_destroy(tracing);
        return status;
    }
    note_enabled(tracing);
    if (options->otlp != NULL)
        KELP_LOGF(logger, KELP_LOG_INFO, "traces are exported to '%s'%s", options->otlp->client.url,
                  options->values.level != 0 ? "" : " when their level is TIMESTAMPS; it is OFF");
    *out = tracing;
    return NULL;
}
