/* SPDX-License-Identifier: Apache-2.0 */
/* The options of Triton's server that `tritonserver` accepts, but that have no effect. */
#ifndef KELP_CLI_SERVE_ACCEPTED_H_
#define KELP_CLI_SERVE_ACCEPTED_H_

#include "cli/args.h"

/* The last value of each kind, which nothing reads, and the options that were warned about. */
typedef struct kelp_serve_accepted {
    bool flag;
    int64_t integer;
    double number;
    const char *text;
    uint64_t warned; /* a bit for each option */
} kelp_serve_accepted;

extern const kelp_arg_table kelp_serve_accepted_table;
/* Returns true for a row of that table. */
bool kelp_serve_is_accepted(const kelp_arg_spec *spec);
/* Checks the value of such an option, and prints a warning the first time. */
kelp_status *kelp_serve_accept(kelp_serve_accepted *accepted, const kelp_arg_spec *spec,
                               const char *value) KELP_MUST_USE;

#endif
