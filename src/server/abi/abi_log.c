/* SPDX-License-Identifier: Apache-2.0 */
/* The C API: the log. */
#include "server/core/error.h"
#include "server/core/log.h"
#include "server/core/options.h"

static bool from_triton(TRITONSERVER_LogLevel level, kelp_log_level *out) {
    switch (level) {
    case TRITONSERVER_LOG_INFO:
        *out = KELP_LOG_INFO;
        return true;
    case TRITONSERVER_LOG_WARN:
        *out = KELP_LOG_WARNING;
        return true;
    case TRITONSERVER_LOG_ERROR:
        *out = KELP_LOG_ERROR;
        return true;
    case TRITONSERVER_LOG_VERBOSE:
        *out = KELP_LOG_VERBOSE;
        return true;
    }
    return false;
}

bool TRITONSERVER_LogIsEnabled(TRITONSERVER_LogLevel level) {
    kelp_log_level own_level;
    return from_triton(level, &own_level) && kelp_server_log_enabled(own_level);
}

TRITONSERVER_Error *TRITONSERVER_LogMessage(TRITONSERVER_LogLevel level, const char *filename,
                                            const int line, const char *msg) {
    kelp_log_level own_level;
    if (msg == NULL)
        return kelp_null_error(__func__, "msg");
    if (!from_triton(level, &own_level))
        return kelp_to_error(
            KELP_ERROR(KELP_INVALID_ARGUMENT, "unknown log level '%d'", (int)level));
    kelp_server_log_write(own_level, filename != NULL ? filename : "", line, msg);
    return NULL;
}

/* ---- setters ---- */
/* `options` may be NULL where the setting takes effect at once, because the log belongs to the
 * process. */

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetLogFile(TRITONSERVER_ServerOptions *options,
                                                         const char *file) {
    if (file == NULL)
        return kelp_null_error(__func__, "file");
    (void)options;
    return kelp_to_error(kelp_server_log_open(file));
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetLogInfo(TRITONSERVER_ServerOptions *options,
                                                         bool log) {
    (void)options;
    kelp_server_log_enable(KELP_LOG_INFO, log);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetLogWarn(TRITONSERVER_ServerOptions *options,
                                                         bool log) {
    (void)options;
    kelp_server_log_enable(KELP_LOG_WARNING, log);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetLogError(TRITONSERVER_ServerOptions *options,
                                                          bool log) {
    (void)options;
    kelp_server_log_enable(KELP_LOG_ERROR, log);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetLogFormat(TRITONSERVER_ServerOptions *options,
                                                           const TRITONSERVER_LogFormat format) {
    (void)options;
    /* Format 2, lines of JSON, is an extension of Kelp. */
    if ((unsigned)format > KELP_LOG_JSON)
        return kelp_to_error(KELP_ERROR(KELP_INVALID_ARGUMENT,
                                        "unknown log format '%d': expected 0 (default), 1 "
                                        "(ISO8601) or 2 (JSON lines)",
                                        (int)format));
    kelp_server_log_set_format((kelp_log_format)format);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetLogVerbose(TRITONSERVER_ServerOptions *options,
                                                            int level) {
    (void)options;
    kelp_server_log_set_verbosity(level);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetLogCallback(TRITONSERVER_ServerOptions *options,
                                                             TRITONSERVER_LogCallbackFn_t callback,
                                                             void *userp) {
    if (options == NULL)
        return kelp_null_error(__func__, "options");
    kelp_server_options *own = (kelp_server_options *)options;
    own->log_callback = callback;
    own->log_userp = callback != NULL ? userp : NULL;
    return NULL;
}
