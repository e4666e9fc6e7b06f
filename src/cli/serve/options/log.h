/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `kelp serve` for the log. */
#ifndef KELP_CLI_SERVE_OPTIONS_LOG_H_
#define KELP_CLI_SERVE_OPTIONS_LOG_H_

#include "cli/args.h"

#include <triton/core/tritonserver.h>

typedef struct kelp_serve_log {
    int64_t verbose;
    bool info, warning, error;
    const char *format;
    const char *file;
    const char *access_file; /* "-": standard output; NULL: no access log */
} kelp_serve_log;

extern const kelp_arg_table kelp_serve_log_table;
void kelp_serve_log_defaults(kelp_serve_log *o);
/* Sets the options of the server. INVALID_ARGUMENT names the option. */
kelp_status *kelp_serve_log_apply(const kelp_serve_log *o,
                                  TRITONSERVER_ServerOptions *options) KELP_MUST_USE;

/* Returns the format of a name of --log-format. */
TRITONSERVER_LogFormat kelp_serve_log_format(const char *name);

#endif
