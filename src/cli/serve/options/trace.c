/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/options/trace.h"

#include "base/checked.h"
#include "base/str.h"
#include "cli/serve/options/options.h"

#include <stddef.h>

#define AT(member) offsetof(kelp_serve_options, trace.member)
static const kelp_arg_spec specs[] = {
    {.group = "Tracing",
     .name = "trace-config",
     .kind = KELP_OPTION_LIST,
     .offset = AT(config),
     .value = "[MODE,]SETTING=VALUE",
     .help = "level=OFF|TIMESTAMPS|TENSORS, rate=N, count=N, triton,file=FILE or "
             "triton,log-frequency=N; repeatable"},
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
    o->rate = 1000;
    o->count = -1;
}

/* Returns true if `text` is one of the words, in any case. */
static bool is_one_of(const char *text, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!strcasecmp(text, words[i]))
            return true;
    }
    return false;
}

/* Adds a level. MIN and MAX are older names of TIMESTAMPS. */
static kelp_status *add_level(const char *name, kelp_serve_trace_values *inout, bool *inout_off) {
    static const char *const timestamps[] = {"TIMESTAMPS", "MIN", "MAX", "true", "on"};
    static const char *const off[] = {"OFF", "false"};
    if (is_one_of(name, timestamps, KELP_COUNT(timestamps)))
        inout->level |= TRITONSERVER_TRACE_LEVEL_TIMESTAMPS;
    else if (!strcasecmp(name, "TENSORS"))
        inout->level |= TRITONSERVER_TRACE_LEVEL_TENSORS;
    else if (is_one_of(name, off, KELP_COUNT(off)))
        *inout_off = true;
    else
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "invalid trace level '%s': expected OFF, TIMESTAMPS or TENSORS", name);
    return NULL;
}

static kelp_status *set_number(const char *setting, const char *text, int64_t min, int64_t max,
                               int64_t *out) {
    if (!kelp_parse_i64(kelp_str_from(text), out) || *out < min || *out > max)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "option '--trace-config': '%s': expected a number from %lld to %lld, "
                          "found '%s'",
                          setting, (long long)min, (long long)max, text);
    return NULL;
}

/* Applies "[MODE,]SETTING=VALUE". */
static kelp_status *apply(const char *item, kelp_serve_trace_values *inout, bool *inout_off) {
    const char *comma = strchr(item, ','), *equals = strchr(item, '=');
    if (equals == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "option '--trace-config': expected [MODE,]SETTING=VALUE, found '%s'",
                          item);
    bool has_mode = comma != NULL && comma < equals;
    const char *name = has_mode ? comma + 1 : item;
    kelp_str mode = has_mode ? (kelp_str){item, (size_t)(comma - item)} : KELP_STR("");
    kelp_str setting = {name, (size_t)(equals - name)};
    if (kelp_str_is(mode, "opentelemetry") ||
        (!has_mode && kelp_str_is(setting, "mode") && strcmp(equals + 1, "triton") != 0))
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "option '--trace-config %s': only the mode 'triton' is supported", item);
    if (!has_mode && kelp_str_is(setting, "mode"))
        return NULL;
    if (!has_mode && kelp_str_is(setting, "level"))
        return add_level(equals + 1, inout, inout_off);
    if (!has_mode && kelp_str_is(setting, "rate"))
        return set_number("rate", equals + 1, 0, UINT32_MAX, &inout->rate);
    if (!has_mode && kelp_str_is(setting, "count"))
        return set_number("count", equals + 1, -1, INT32_MAX, &inout->count);
    if (kelp_str_is(mode, "triton") && kelp_str_is(setting, "file")) {
        inout->file = equals + 1;
        return NULL;
    }
    if (kelp_str_is(mode, "triton") && kelp_str_is(setting, "log-frequency"))
        return set_number("log-frequency", equals + 1, 0, UINT32_MAX, &inout->log_frequency);
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "option '--trace-config': unknown setting '%s': expected mode, level, rate, "
                      "count, 'triton,file' or 'triton,log-frequency'",
                      item);
}

kelp_status *kelp_serve_trace_parse(const kelp_serve_trace *o, kelp_serve_trace_values *out) {
    *out = (kelp_serve_trace_values){.file = o->file != NULL ? o->file : "",
                                     .rate = o->rate,
                                     .count = o->count,
                                     .log_frequency = o->log_frequency};
    bool off = false; /* OFF disables tracing, whatever the other levels */
    for (size_t i = 0; i < o->levels.count; i++)
        KELP_TRY(add_level(o->levels.items[i], out, &off));
    for (size_t i = 0; i < o->config.count; i++)
        KELP_TRY(apply(o->config.items[i], out, &off));
    if (off)
        out->level = 0;
    return NULL;
}
