/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/options/log.h"

#include "base/checked.h"
#include "base/log.h"
#include "cli/serve/options/options.h"

#include <stddef.h>

#define AT(member) offsetof(kelp_serve_options, log.member)
static const kelp_arg_spec specs[] = {
    {.group = "Log",
     .name = "log-verbose",
     .kind = KELP_ARG_I64,
     .offset = AT(verbose),
     .value = "LEVEL",
     .min = 0,
     .max = INT32_MAX,
     .help = "log verbose messages up to this level (0)"},
    {.name = "log-info",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(info),
     .help = "log information (true)"},
    {.name = "log-warning",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(warning),
     .help = "log warnings (true)"},
    {.name = "log-error",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(error),
     .help = "log errors (true)"},
    {.name = "log-format",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(format),
     .value = "FORMAT",
     .choices = "default|ISO8601|json",
     .help = "format of lines of the log: default (Triton's), ISO8601 (with the date), or json "
             "(default)"},
    {.name = "log-file",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(file),
     .value = "FILE",
     .choices = "@file",
     .help = "log file (stderr, and stdout for information)"},
    {.name = "access-log",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(access_file),
     .value = "FILE",
     .choices = "@file",
     .help =
         "write a line of JSON for each request over HTTP and gRPC, - for stdout; a file that was "
         "moved is created again (none)"},
};
#undef AT

const kelp_arg_table kelp_serve_log_table = {specs, KELP_COUNT(specs)};

void kelp_serve_log_defaults(kelp_serve_log *o) {
    o->info = o->warning = o->error = true;
    o->format = "default";
}

TRITONSERVER_LogFormat kelp_serve_log_format(const char *name) {
    /* 2 is an extension: lines of JSON. */
    return !strcmp(name, "json")      ? (TRITONSERVER_LogFormat)KELP_LOG_JSON
           : !strcmp(name, "ISO8601") ? TRITONSERVER_LOG_ISO8601
                                      : TRITONSERVER_LOG_DEFAULT;
}

kelp_status *kelp_serve_log_apply(const kelp_serve_log *o, TRITONSERVER_ServerOptions *options) {
    KELP_TRY(kelp_serve_set(
        TRITONSERVER_ServerOptionsSetLogFormat(options, kelp_serve_log_format(o->format))));
    KELP_TRY(kelp_serve_set(TRITONSERVER_ServerOptionsSetLogInfo(options, o->info)));
    KELP_TRY(kelp_serve_set(TRITONSERVER_ServerOptionsSetLogWarn(options, o->warning)));
    KELP_TRY(kelp_serve_set(TRITONSERVER_ServerOptionsSetLogError(options, o->error)));
    KELP_TRY(kelp_serve_set(TRITONSERVER_ServerOptionsSetLogVerbose(options, (int)o->verbose)));
    return o->file != NULL ? kelp_serve_set(TRITONSERVER_ServerOptionsSetLogFile(options, o->file))
                           : NULL;
}

bool kelp_serve_logs_errors(const kelp_serve_options *o) {
    return o->log.error && o->log.file == NULL;
}
