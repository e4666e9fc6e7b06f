/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the commands of the `kelp` program. Results are written to stdout,
 * messages to stderr. Not thread-safe. */
#ifndef KELP_CLI_CLI_H_
#define KELP_CLI_CLI_H_

#include "base/fs.h"
#include "cli/args.h"

#include <stdio.h>

/* Exit codes of the process. */
enum { KELP_EXIT_OK = 0, KELP_EXIT_FAILURE = 1, KELP_EXIT_USAGE = 2 };

extern const kelp_command kelp_cmd_serve;
extern const kelp_command kelp_cmd_run;
extern const kelp_command kelp_cmd_build;
extern const kelp_command kelp_cmd_inspect;
extern const kelp_command kelp_cmd_bench;
extern const kelp_command kelp_cmd_top;
extern const kelp_command kelp_cmd_new;
extern const kelp_command kelp_cmd_kernels;
extern const kelp_command kelp_cmd_worker;
extern const kelp_command kelp_cmd_ops;
extern const kelp_command kelp_cmd_doctor;
extern const kelp_command kelp_cmd_health;
extern const kelp_command kelp_cmd_pull;
extern const kelp_command kelp_cmd_completion;
extern const kelp_command kelp_cmd_tritonserver;

/* Returns the commands in the order of help; NULL after the last. */
const kelp_command *kelp_cli_command(size_t index);

/* Prints "kelp: failure: cause" to stderr, frees the status and returns KELP_EXIT_FAILURE. Returns
 * KELP_EXIT_OK for NULL. */
int kelp_cli_finish(kelp_status *take_status);
/* Does the same for an invalid command line: also prints the usage; returns KELP_EXIT_USAGE. */
int kelp_cli_usage(const kelp_command *command, kelp_status *take_status);
/* Writes `text` to stdout. UNAVAILABLE if that fails. */
kelp_status *kelp_cli_print(kelp_buf *text) KELP_MUST_USE;

/* Returns the width of UTF-8 text on a terminal, one column per code point. */
size_t kelp_cli_columns(const char *text, size_t length);
/* Write "1.5 MiB" or "12.3 ms" to a buffer of 32 bytes, and return it. */
const char *kelp_cli_bytes(uint64_t bytes, char *buffer);
const char *kelp_cli_duration(uint64_t duration_ns, char *buffer);

/* A table of text with aligned columns. */
#define KELP_TABLE_COLUMNS 12
typedef struct kelp_table {
    kelp_buf text; /* cells, each NUL-terminated */
    size_t cells;
    size_t columns;
} kelp_table;
void kelp_table_init(kelp_table *table, size_t columns);
void kelp_table_cell(kelp_table *table, const char *format, ...) KELP_PRINTF(2, 3);
/* Append the table and clear it. Plain: `indent`, then columns separated by two spaces. Framed:
 * with lines, and the first row as a heading; the widest cells are cut to the width of the
 * terminal. */
void kelp_table_plain(kelp_table *table, const char *indent, kelp_buf *out);
void kelp_table_framed(kelp_table *table, kelp_buf *out);

#endif
