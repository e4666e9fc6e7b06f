/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/options/metrics.h"

#include "base/checked.h"
#include "cli/serve/options/options.h"

#include <stddef.h>

#define AT(member) offsetof(kelp_serve_options, metrics.member)
static const kelp_arg_spec specs[] = {
    {.group = "Metrics",
     .name = "allow-metrics",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(allow_metrics),
     .help = "collect metrics (true)"},
    {.name = "allow-cpu-metrics",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(allow_cpu_metrics),
     .help = "metrics of the machine's CPUs and memory (true)"},
    {.name = "metrics-address",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(address),
     .value = "ADDRESS",
     .help = "address of --metrics-port (that of HTTP)"},
    {.name = "metrics-port",
     .kind = KELP_ARG_I64,
     .offset = AT(port),
     .value = "PORT",
     .min = -1,
     .max = 65535,
     .help = "port that serves only /metrics, 0 for a free one, -1 for none; the HTTP port also "
             "serves it (-1)"},
    {.name = "metrics-config",
     .kind = KELP_OPTION_LIST,
     .offset = AT(metrics_config),
     .value = "KEY=VALUE",
     .help = "summary_latencies, histogram_latencies (true), counter_latencies (true), "
             "summary_quantiles (0.5:0.05,0.9:0.01), native_histograms, exemplars; may be "
             "repeated"},
};
#undef AT

const kelp_arg_table kelp_serve_metrics_table = {specs, KELP_COUNT(specs)};

void kelp_serve_metrics_defaults(kelp_serve_metrics *o) {
    o->allow_metrics = o->allow_cpu_metrics = true;
    o->port = -1;
    o->histograms = true;
}

static kelp_status *set_metrics_config(TRITONSERVER_ServerOptions *options, const char *text) {
    static const char *const known[] = {"summary_latencies", "histogram_latencies",
                                        "counter_latencies", "summary_quantiles",
                                        "native_histograms", "exemplars"};
    const char *equals = strchr(text, '=');
    for (size_t i = 0; equals != NULL && i < sizeof known / sizeof known[0]; i++)
        if (strlen(known[i]) == (size_t)(equals - text) &&
            memcmp(text, known[i], (size_t)(equals - text)) == 0)
            return kelp_serve_status(
                TRITONSERVER_ServerOptionsSetMetricsConfig(options, "", known[i], equals + 1),
                "option '--metrics-config'");
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "option '--metrics-config': expected KEY=VALUE with KEY one of %s, %s, %s, "
                      "%s, %s, %s, found '%s'",
                      known[0], known[1], known[2], known[3], known[4], known[5], text);
}

kelp_status *kelp_serve_metrics_apply(const kelp_serve_metrics *o,
                                      TRITONSERVER_ServerOptions *options) {
    KELP_TRY(kelp_serve_set(TRITONSERVER_ServerOptionsSetMetrics(options, o->allow_metrics)));
    KELP_TRY(
        kelp_serve_set(TRITONSERVER_ServerOptionsSetCpuMetrics(options, o->allow_cpu_metrics)));
    if (o->histograms)
        KELP_TRY(set_metrics_config(options, "histogram_latencies=true"));
    for (size_t i = 0; i < o->metrics_config.count; i++)
        KELP_TRY(set_metrics_config(options, o->metrics_config.items[i]));
    return NULL;
}
