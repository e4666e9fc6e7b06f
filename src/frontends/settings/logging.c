/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/settings/logging.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "frontends/common/status.h"

#include <pthread.h>
#include <triton/core/tritonserver.h>

struct kelp_logging {
    kelp_allocator allocator;
    pthread_mutex_t lock; /* guards the values, and keeps them equal to those of the log */
    kelp_logging_values values;
};

static const char *const formats[] = {
    [KELP_LOG_DEFAULT] = "default", [KELP_LOG_ISO8601] = "ISO8601", [KELP_LOG_JSON] = "json"};

kelp_status *kelp_logging_create(kelp_allocator allocator, const kelp_logging_values *initial,
                                 kelp_logging **out) {
    kelp_logging *logging;
    KELP_TRY(KELP_NEW(allocator, kelp_logging, &logging));
    logging->allocator = allocator;
    logging->values = *initial;
    pthread_mutex_init(&logging->lock, NULL);
    *out = logging;
    return NULL;
}

void kelp_logging_destroy(kelp_logging *logging) {
    if (logging == NULL)
        return;
    pthread_mutex_destroy(&logging->lock);
    kelp_free(logging->allocator, logging, sizeof *logging);
}

kelp_logging_values kelp_logging_get(kelp_logging *logging) {
    pthread_mutex_lock(&logging->lock);
    kelp_logging_values values = logging->values;
    pthread_mutex_unlock(&logging->lock);
    return values;
}

const char *kelp_logging_format_name(kelp_log_format format) {
    return formats[format];
}

/* ---- changes ---- */

static kelp_status *wrong(const kelp_logging_change *change, const char *expected) {
    static const char *const kinds[] = {[KELP_LOGGING_BOOL] = "a boolean",
                                        [KELP_LOGGING_NUMBER] = "a number",
                                        [KELP_LOGGING_TEXT] = "a string"};
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "log setting '%.*s': expected %s, found %s",
                      KELP_STR_ARG(change->name), expected, kinds[change->kind]);
}

static kelp_status *change_level(const kelp_logging_change *change, bool *out) {
    if (change->kind != KELP_LOGGING_BOOL)
        return wrong(change, "a boolean");
    *out = change->boolean;
    return NULL;
}

static kelp_status *change_verbose(const kelp_logging_change *change, uint32_t *out) {
    if (change->kind != KELP_LOGGING_NUMBER)
        return wrong(change, "a number");
    if (change->number > INT32_MAX)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "log setting 'log_verbose_level': expected at most %d, found %llu",
                          INT32_MAX, (unsigned long long)change->number);
    *out = (uint32_t)change->number;
    return NULL;
}

static kelp_status *change_format(const kelp_logging_change *change, kelp_log_format *out) {
    if (change->kind != KELP_LOGGING_TEXT)
        return wrong(change, "a string");
    for (size_t i = 0; i < KELP_COUNT(formats); i++) {
        if (kelp_str_is(change->text, formats[i])) {
            *out = (kelp_log_format)i;
            return NULL;
        }
    }
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "invalid argument for --log_format, got: %.*s; expected default, ISO8601 or "
                      "json",
                      KELP_STR_ARG(change->text));
}

static kelp_status *apply_change(kelp_logging_values *inout, const kelp_logging_change *change) {
    if (kelp_str_is(change->name, "log_info"))
        return change_level(change, &inout->info);
    if (kelp_str_is(change->name, "log_warning"))
        return change_level(change, &inout->warning);
    if (kelp_str_is(change->name, "log_error"))
        return change_level(change, &inout->error);
    if (kelp_str_is(change->name, "log_verbose_level"))
        return change_verbose(change, &inout->verbose);
    if (kelp_str_is(change->name, "log_format"))
        return change_format(change, &inout->format);
    if (kelp_str_is(change->name, "log_file"))
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "log file location can not be updated through network protocol");
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "unknown log setting '%.*s': expected log_info, log_warning, log_error, "
                      "log_verbose_level or log_format",
                      KELP_STR_ARG(change->name));
}

/* Sets the values of the log, which belongs to the process. They are valid. */
static void apply(const kelp_logging_values *values) {
    kelp_v2_ignore(TRITONSERVER_ServerOptionsSetLogInfo(NULL, values->info));
    kelp_v2_ignore(TRITONSERVER_ServerOptionsSetLogWarn(NULL, values->warning));
    kelp_v2_ignore(TRITONSERVER_ServerOptionsSetLogError(NULL, values->error));
    kelp_v2_ignore(TRITONSERVER_ServerOptionsSetLogVerbose(NULL, (int)values->verbose));
    kelp_v2_ignore(
        TRITONSERVER_ServerOptionsSetLogFormat(NULL, (TRITONSERVER_LogFormat)values->format));
}

kelp_status *kelp_logging_update(kelp_logging *logging, const kelp_logging_change *changes,
                                 size_t count) {
    kelp_status *status = NULL;
    pthread_mutex_lock(&logging->lock);
    kelp_logging_values values = logging->values;
    for (size_t i = 0; i < count && status == NULL; i++)
        status = apply_change(&values, &changes[i]);
    if (status == NULL) {
        logging->values = values;
        apply(&values);
    }
    pthread_mutex_unlock(&logging->lock);
    return status;
}
