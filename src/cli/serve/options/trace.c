/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/options/trace.h"

#include "base/checked.h"
#include "base/str.h"
#include "cli/serve/options/options.h"

#include <stddef.h>
#include <stdio.h>

#define DEFAULT_RATE 1000

#define AT(member) offsetof(kelp_serve_options, trace.member)
static const kelp_arg_spec specs[] = {
    {.group = "Tracing",
     .name = "trace-config",
     .kind = KELP_OPTION_LIST,
     .offset = AT(config),
     .value = "[MODE,]SETTING=VALUE",
     .help = "mode=triton|opentelemetry, level=OFF|TIMESTAMPS|TENSORS, rate=N, count=N; "
             "triton,file=FILE; triton,log-frequency=N; opentelemetry,url=URL; "
             "opentelemetry,resource=KEY=VALUE; opentelemetry,bsp_max_queue_size=N; "
             "opentelemetry,bsp_schedule_delay=MS; opentelemetry,bsp_max_export_batch_size=N; "
             "repeatable"},
    {.name = "trace-file",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(file),
     .value = "FILE",
     .choices = "@file",
     .help = "the same as --trace-config triton,file=FILE"},
    {.name = "trace-level",
     .kind = KELP_OPTION_LIST,
     .offset = AT(levels),
     .value = "LEVEL",
     .choices = "OFF|TIMESTAMPS|TENSORS",
     .help = "what to trace (OFF); repeatable"},
    {.name = "trace-rate",
     .kind = KELP_ARG_I64,
     .offset = AT(rate),
     .value = "N",
     .min = 0,
     .max = UINT32_MAX,
     .help = "trace one of N requests (1000)"},
    {.name = "trace-count",
     .kind = KELP_ARG_I64,
     .offset = AT(count),
     .value = "N",
     .min = -1,
     .max = INT32_MAX,
     .help = "trace at most N requests, -1 for any number (-1)"},
    {.name = "trace-log-frequency",
     .kind = KELP_ARG_I64,
     .offset = AT(log_frequency),
     .value = "N",
     .min = 0,
     .max = UINT32_MAX,
     .help = "write N traces to each of the files FILE.0, FILE.1 and so on (0: all to FILE)"},
};
#undef AT

const kelp_arg_table kelp_serve_trace_table = {specs, KELP_COUNT(specs)};

void kelp_serve_trace_defaults(kelp_serve_trace *o) {
    o->rate = -1;
    o->count = -1;
    o->from_environment = true;
    o->service_name = "kelp";
}

/* What the command line sets. */
typedef struct parsed {
    kelp_serve_otel_settings otel;
    const char *file;
    unsigned level;
    bool has_level;
    bool off; /* disables tracing, whatever the other levels */
    enum { NO_MODE, TRITON, OPENTELEMETRY } mode;
    const char *of_triton, *of_opentelemetry; /* the first option of a mode, or NULL */
    int64_t rate, count, log_frequency;
} parsed;

/* Returns true if `text` is one of the words, in any case. */
static bool is_one_of(const char *text, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!strcasecmp(text, words[i]))
            return true;
    }
    return false;
}

/* Adds a level. MIN and MAX are older names of TIMESTAMPS. */
static kelp_status *add_level(const char *name, parsed *inout) {
    static const char *const timestamps[] = {"TIMESTAMPS", "MIN", "MAX", "true", "on"};
    static const char *const off[] = {"OFF", "false"};
    inout->has_level = true;
    if (is_one_of(name, timestamps, KELP_COUNT(timestamps)))
        inout->level |= TRITONSERVER_TRACE_LEVEL_TIMESTAMPS;
    else if (!strcasecmp(name, "TENSORS"))
        inout->level |= TRITONSERVER_TRACE_LEVEL_TENSORS;
    else if (is_one_of(name, off, KELP_COUNT(off)))
        inout->off = true;
    else
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "invalid trace level '%s': expected OFF, TIMESTAMPS or TENSORS", name);
    return NULL;
}

static kelp_status *set_number(const char *setting, const char *text, int64_t min, int64_t max,
                               int64_t *out) {
    if (!kelp_parse_i64(kelp_str_from(text), out) || *out < min || *out > max)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "Bad option: \"--trace-config %s\": expected a number from %lld to %lld, "
                          "found '%s'",
                          setting, (long long)min, (long long)max, text);
    return NULL;
}

static kelp_status *unknown_setting(const char *item, const char *expected) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "option '--trace-config': unknown setting '%s': expected %s", item, expected);
}

/* Applies a setting of all modes. */
static kelp_status *apply_global(const char *item, kelp_str setting, const char *value,
                                 parsed *inout) {
    if (kelp_str_is(setting, "level"))
        return add_level(value, inout);
    if (kelp_str_is(setting, "rate"))
        return set_number("rate", value, 0, UINT32_MAX, &inout->rate);
    if (kelp_str_is(setting, "count"))
        return set_number("count", value, -1, INT32_MAX, &inout->count);
    if (!kelp_str_is(setting, "mode"))
        return unknown_setting(item, "mode, level, rate, count, 'triton,SETTING' or "
                                     "'opentelemetry,SETTING'");
    inout->mode = !strcasecmp(value, "triton")          ? TRITON
                  : !strcasecmp(value, "opentelemetry") ? OPENTELEMETRY
                                                        : NO_MODE;
    return inout->mode != NO_MODE
               ? NULL
               : KELP_ERROR(KELP_INVALID_ARGUMENT,
                            "option '--trace-config': 'mode': expected triton or opentelemetry, "
                            "found '%s'",
                            value);
}

static kelp_status *apply_triton(const char *item, kelp_str setting, const char *value,
                                 parsed *inout) {
    inout->of_triton = inout->of_triton != NULL ? inout->of_triton : item;
    if (kelp_str_is(setting, "log-frequency"))
        return set_number("triton,log-frequency", value, 0, UINT32_MAX, &inout->log_frequency);
    if (!kelp_str_is(setting, "file"))
        return unknown_setting(item, "'triton,file' or 'triton,log-frequency'");
    inout->file = value;
    return NULL;
}

static kelp_status *apply_otel(const char *item, kelp_str setting, const char *value,
                               parsed *inout) {
    kelp_serve_otel_settings *otel = &inout->otel;
    inout->of_opentelemetry = inout->of_opentelemetry != NULL ? inout->of_opentelemetry : item;
    if (kelp_str_is(setting, "bsp_max_queue_size"))
        return set_number("opentelemetry,bsp_max_queue_size", value, 1, INT32_MAX,
                          &otel->max_queue);
    if (kelp_str_is(setting, "bsp_schedule_delay"))
        return set_number("opentelemetry,bsp_schedule_delay", value, 0, INT32_MAX, &otel->delay_ms);
    if (kelp_str_is(setting, "bsp_max_export_batch_size"))
        return set_number("opentelemetry,bsp_max_export_batch_size", value, 1, INT32_MAX,
                          &otel->max_batch);
    if (kelp_str_is(setting, "url")) {
        otel->url = value;
        return NULL;
    }
    if (!kelp_str_is(setting, "resource"))
        return unknown_setting(item, "'opentelemetry,NAME' with NAME one of url, resource, "
                                     "bsp_max_queue_size, bsp_schedule_delay, "
                                     "bsp_max_export_batch_size");
    if (strchr(value, '=') == NULL || value[0] == '=')
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "option '--trace-config': 'resource': expected KEY=VALUE, found '%s'",
                          value);
    otel->resources[otel->resource_count++] = value;
    return NULL;
}

/* Applies "[MODE,]SETTING=VALUE". */
static kelp_status *apply(const char *item, parsed *inout) {
    const char *comma = strchr(item, ','), *equals = strchr(item, '=');
    if (equals == NULL || equals[1] == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "option '--trace-config': expected [MODE,]SETTING=VALUE, found '%s'",
                          item);
    bool has_mode = comma != NULL && comma < equals;
    const char *name = has_mode ? comma + 1 : item;
    kelp_str mode = has_mode ? (kelp_str){item, (size_t)(comma - item)} : KELP_STR("");
    kelp_str setting = {name, (size_t)(equals - name)};
    if (!has_mode)
        return apply_global(item, setting, equals + 1, inout);
    if (kelp_str_equal_nocase(mode, KELP_STR("triton")))
        return apply_triton(item, setting, equals + 1, inout);
    if (kelp_str_equal_nocase(mode, KELP_STR("opentelemetry")))
        return apply_otel(item, setting, equals + 1, inout);
    return unknown_setting(item, "'triton,SETTING' or 'opentelemetry,SETTING'");
}

/* Parses the options of the command line. */
static kelp_status *parse_options(const kelp_serve_trace *o, kelp_arena *arena, parsed *out) {
    *out = (parsed){.file = o->file,
                    .of_triton = o->file != NULL ? "--trace-file" : NULL,
                    .rate = o->rate,
                    .count = o->count,
                    .log_frequency = o->log_frequency,
                    .otel = {.max_queue = -1, .delay_ms = -1, .max_batch = -1}};
    out->otel.resources = KELP_ARENA_ARRAY(arena, o->config.count + 1, const char *);
    if (out->otel.resources == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < o->levels.count; i++)
        KELP_TRY(add_level(o->levels.items[i], out));
    for (size_t i = 0; i < o->config.count; i++)
        KELP_TRY(apply(o->config.items[i], out));
    if (out->off)
        out->level = 0;
    return NULL;
}

/* Warns about an option of the mode that is not used. */
static void warn_unused(const parsed *p, bool opentelemetry) {
    const char *unused = opentelemetry ? p->of_triton : p->of_opentelemetry;
    if (unused != NULL)
        fprintf(stderr, "kelp: warning: '%s' has no effect, because the trace mode is %s\n", unused,
                opentelemetry ? "opentelemetry" : "triton");
}

kelp_status *kelp_serve_trace_parse(const kelp_serve_trace *o, kelp_serve_trace_values *out) {
    parsed p;
    bool has_sampler = false;
    *out = (kelp_serve_trace_values){0};
    kelp_arena_init(&out->arena, kelp_allocator_system(), 0);
    KELP_TRY(parse_options(o, &out->arena, &p));
    bool wanted = p.mode == NO_MODE && p.of_triton == NULL && o->from_environment &&
                  kelp_serve_otlp_is_wanted();
    bool opentelemetry = p.mode == OPENTELEMETRY || wanted;
    warn_unused(&p, opentelemetry);
    if (opentelemetry && p.level & TRITONSERVER_TRACE_LEVEL_TENSORS)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "option '--trace-config': 'level': expected TIMESTAMPS or OFF in the mode "
            "opentelemetry, found 'TENSORS'");
    if (opentelemetry)
        KELP_TRY(kelp_serve_otlp_sampler(&out->options.sampler, &has_sampler));
    if (wanted && !p.has_level)
        p.level = TRITONSERVER_TRACE_LEVEL_TIMESTAMPS;
    if (!opentelemetry && p.level != 0 && (p.file == NULL || p.file[0] == '\0')) {
        fprintf(stderr, "kelp: warning: requests are not traced, because '--trace-config "
                        "triton,file=FILE' is missing\n"); /* as in Triton, the server starts */
        p.level = 0;
    }
    if (p.rate < 0)
        p.rate = wanted || has_sampler ? 1 : DEFAULT_RATE;
    out->otel = p.otel;
    out->options.file = p.file != NULL ? p.file : "";
    out->options.values = (kelp_trace_values){.level = p.level,
                                              .rate = (uint32_t)p.rate,
                                              .count = (int32_t)p.count,
                                              .log_frequency = (uint32_t)p.log_frequency};
    if (!opentelemetry)
        return NULL;
    out->options.otlp = &out->otlp;
    return kelp_serve_otlp_apply(o->service_name, out);
}

void kelp_serve_trace_deinit(kelp_serve_trace_values *values) {
    if (values->arena.allocator.realloc != NULL)
        kelp_arena_deinit(&values->arena);
}
