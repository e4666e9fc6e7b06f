/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the commands of the `kelp` program. Results are written to stdout,
 * messages to stderr. Not thread-safe. */
#ifndef KELP_CLI_CLI_H_
#define KELP_CLI_CLI_H_

#include "base/fs.h"
#include "cli/args.h"

#include <kelp/engine.h>

#include <stdio.h>

/* Exit codes of the process. */
enum { KELP_EXIT_OK = 0, KELP_EXIT_FAILURE = 1, KELP_EXIT_USAGE = 2 };

extern const kelp_command kelp_cmd_serve;
extern const kelp_command kelp_cmd_run;
extern const kelp_command kelp_cmd_build;
extern const kelp_command kelp_cmd_inspect;
extern const kelp_command kelp_cmd_bench;
extern const kelp_command kelp_cmd_new;
extern const kelp_command kelp_cmd_kernels;
extern const kelp_command kelp_cmd_worker;
extern const kelp_command kelp_cmd_ops;
extern const kelp_command kelp_cmd_doctor;
extern const kelp_command kelp_cmd_completion;

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

/* The option --precision, stored at offset `at`. */
#define KELP_CLI_PRECISION(at)                                                                   \
    {                                                                                            \
        .name = "precision", .kind = KELP_OPTION_TEXT, .offset = (at), .value = "f32|bf16",      \
        .choices = "f32|bf16",                                                                   \
        .help =                                                                                  \
            "precision of float32 GEMM and convolutions; bf16 is less precise, and takes about " \
            "half the time on CPUs with AVX512_BF16 (f32)"                                       \
    }

/* The option --plugin, stored at offset `at`. */
#define KELP_CLI_PLUGIN(at)                                                                       \
    {                                                                                             \
        .name = "plugin", .kind = KELP_OPTION_TEXT, .offset = (at), .value = "FILE.so",           \
        .choices = "@file", .help = "plug-in library with operators or providers (kelp/plugin.h)" \
    }
/* The option --providers, stored at offset `at`. */
#define KELP_CLI_PROVIDERS(at, text)                                                           \
    {                                                                                          \
        .name = "providers", .kind = KELP_OPTION_TEXT, .offset = (at), .value = "NAME,NAME,…", \
        .help = (text)                                                                         \
    }

/* ---- the model of a command ---- */
typedef struct kelp_cli_model {
    const char *plugin;       /* plug-in library, or NULL; set before load */
    const char *providers;    /* as in kelp_engine_options; set before build */
    kelp_precision precision; /* as in kelp_engine_options; set before build */
    bool engine_only;         /* create no context for a plan file; set before load */
    kelp_runtime *runtime;
    kelp_graph *graph;     /* NULL for a plan file, whose engine exists after load */
    kelp_engine *engine;   /* NULL until kelp_cli_model_build */
    kelp_context *context; /* NULL until kelp_cli_model_build */
} kelp_cli_model;
/* Creates the runtime, and the graph of a model or the engine and context of a plan file. 0
 * `threads` uses all CPUs. */
kelp_status *kelp_cli_model_load(const char *path, int threads,
                                 kelp_cli_model *inout_model) KELP_MUST_USE;
/* Creates the engine and context unless they exist. */
kelp_status *kelp_cli_model_build(kelp_cli_model *inout_model, bool fusion) KELP_MUST_USE;
void kelp_cli_model_deinit(kelp_cli_model *model);

/* A table of text with aligned columns. */
#define KELP_TABLE_COLUMNS 8
typedef struct kelp_table {
    kelp_buf text; /* cells, each NUL-terminated */
    size_t cells;
    size_t columns;
} kelp_table;
void kelp_table_init(kelp_table *table, size_t columns);
void kelp_table_cell(kelp_table *table, const char *format, ...) KELP_PRINTF(2, 3);
/* Append the table and clear it. Plain: `indent`, then columns separated by two spaces. Framed:
 * with lines, and the first row as a heading. */
void kelp_table_plain(kelp_table *table, const char *indent, kelp_buf *out);
void kelp_table_framed(kelp_table *table, kelp_buf *out);

#endif
