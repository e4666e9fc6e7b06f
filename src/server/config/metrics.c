/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics section of a model's configuration (`model_metrics`). */
#include "base/assert.h"
#include "server/config/view.h"
#include "server/core/log.h"

#include <math.h>

static const char first_family[] = "nv_inference_first_response_histogram_ms";

static kelp_status *read_bounds(const kelp_config_value *bounds, const char *model,
                                kelp_latency_options *out) {
    out->bound_count = 0;
    for (; bounds != NULL; bounds = bounds->next) {
        size_t at = out->bound_count;
        if (at == KELP_LATENCY_MAX_BOUNDS || isnan(bounds->f) ||
            (at > 0 && bounds->f <= out->bounds_ms[at - 1]))
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "model '%s': model_metrics: expected at most %d ascending buckets for "
                "'%s'",
                model, KELP_LATENCY_MAX_BOUNDS, first_family);
        out->bounds_ms[out->bound_count++] = bounds->f;
    }
    return NULL;
}

/* Checks that a control has the fields that it needs. */
static kelp_status *check_control(const kelp_config_message *control, const char *model) {
    const kelp_config_message *identifier = kelp_config_sub(control, "metric_identifier");
    const kelp_config_message *options = kelp_config_sub(control, "histogram_options");
    const kelp_config_value *family = kelp_config_get(identifier, "family");
    const char *problem = NULL;
    if (identifier == NULL)
        problem = "metric control must specify 'metric_identifier'";
    else if (family == NULL || family->text.length == 0)
        problem = "metric identifier must specify non-empty 'family'";
    else if (options == NULL)
        problem = "metric control must specify 'histogram_options'";
    else if (kelp_config_get(options, "buckets") == NULL)
        problem = "histogram options must specify non-empty 'buckets'";
    return problem == NULL
               ? NULL
               : KELP_ERROR(KELP_INVALID_ARGUMENT, "model '%s': model_metrics: %s", model, problem);
}

kelp_status *kelp_model_config_latency(const kelp_model_config *config, kelp_latency_options *out) {
    static const double defaults_ms[] = {100, 500, 2000, 5000};
    out->bound_count = sizeof defaults_ms / sizeof *defaults_ms;
    memcpy(out->bounds_ms, defaults_ms, sizeof defaults_ms);
    const kelp_config_message *metrics = kelp_config_sub(config->tree, "model_metrics");
    const kelp_config_value *control = kelp_config_get(metrics, "metric_control");
    for (; control != NULL; control = control->next) {
        const kelp_config_value *family =
            kelp_config_get(kelp_config_sub(control->message, "metric_identifier"), "family");
        KELP_ASSERT(control->message != NULL);
        KELP_TRY(check_control(control->message, config->name));
        const kelp_config_message *options = kelp_config_sub(control->message, "histogram_options");
        if (!kelp_str_is(family->text, first_family))
            KELP_SERVER_LOG(KELP_LOG_WARNING,
                            "model '%s': model_metrics: '%.*s' is not a configurable metric: "
                            "expected '%s'",
                            config->name, KELP_STR_ARG(family->text), first_family);
        else
            KELP_TRY(read_bounds(kelp_config_get(options, "buckets"), config->name, out));
    }
    return NULL;
}
