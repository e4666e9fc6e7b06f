/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands of the `kelp` program share. One thread; results go to stdout, everything said
 * about them to stderr. */
#ifndef KELP_CLI_CLI_H_
#define KELP_CLI_CLI_H_

#include "base/fs.h"
#include "cli/args.h"

#include <kelp/engine.h>

#include <stdio.h>

/* The process's exit codes. */
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

/* All commands in the order of help; NULL after the last. */
const kelp_command *kelp_cli_command(size_t index);

/* Prints "kelp: failure: cause" to stderr, frees the status and returns KELP_EXIT_FAILURE; NULL
 * returns KELP_EXIT_OK. */
int kelp_cli_finish(kelp_status *take_status);
/* The same for a command line that is wrong: adds where help is; KELP_EXIT_USAGE. */
int kelp_cli_usage(const kelp_command *command, kelp_status *take_status);
/* Writes the whole of `text` to stdout; UNAVAILABLE when stdout does not take it. */
kelp_status *kelp_cli_print(kelp_buf *text) KELP_MUST_USE;

/* Columns that a terminal gives the text: UTF-8's continuation bytes take none. */
size_t kelp_cli_columns(const char *text, size_t length);
/* "1.5 MiB" and "12.3 ms" into a buffer of 32 bytes, which is returned. */
const char *kelp_cli_bytes(uint64_t bytes, char *buffer);
const char *kelp_cli_duration(uint64_t duration_ns, char *buffer);

/* The option that sets the text at `at`, a kelp_cli_model's precision by its name. */
#define KELP_CLI_PRECISION(at)                                                                 \
    {                                                                                          \
        .name = "precision", .kind = KELP_OPTION_TEXT, .offset = (at), .value = "f32|bf16",    \
        .choices = "f32|bf16",                                                                 \
        .help = "what float32 products multiply in; bf16 takes about half the time where the " \
                "processor has AVX512_BF16, and rounds (f32)"                                  \
    }

/* The option that sets the file of a kelp_cli_model's plugin at `at`, */
#define KELP_CLI_PLUGIN(at)                                                             \
    {                                                                                   \
        .name = "plugin", .kind = KELP_OPTION_TEXT, .offset = (at), .value = "FILE.so", \
        .choices = "@file",                                                             \
        .help = "load a library of operators or providers first (kelp/plugin.h)"        \
    }
/* and its providers. */
#define KELP_CLI_PROVIDERS(at, text)                                                           \
    {                                                                                          \
        .name = "providers", .kind = KELP_OPTION_TEXT, .offset = (at), .value = "NAME,NAME,…", \
        .help = (text)                                                                         \
    }

/* ---- a model that a command works on ---- */
typedef struct kelp_cli_model {
    const char *plugin;       /* a library to load, or NULL; set by the command before load */
    const char *providers;    /* as kelp_engine_options has it; set by the command before build */
    kelp_precision precision; /* the same */
    bool engine_only;         /* of a plan: without a context; set before load */
    kelp_runtime *runtime;
    kelp_graph *graph;     /* NULL: `path` is a plan, whose engine is there at once */
    kelp_engine *engine;   /* NULL until kelp_cli_model_build */
    kelp_context *context; /* NULL until kelp_cli_model_build */
} kelp_cli_model;
/* Runtime and graph, or, of a plan, engine and context. `threads` 0 takes all CPUs. */
kelp_status *kelp_cli_model_load(const char *path, int threads,
                                 kelp_cli_model *inout_model) KELP_MUST_USE;
/* Engine and context, unless they are there. */
kelp_status *kelp_cli_model_build(kelp_cli_model *inout_model, bool fusion) KELP_MUST_USE;
void kelp_cli_model_deinit(kelp_cli_model *model);

/* Rows of text in aligned columns. */
#define KELP_TABLE_COLUMNS 8
typedef struct kelp_table {
    kelp_buf text; /* cells, each terminated */
    size_t cells;
    size_t columns;
} kelp_table;
void kelp_table_init(kelp_table *table, size_t columns);
void kelp_table_cell(kelp_table *table, const char *format, ...) KELP_PRINTF(2, 3);
/* Plain: columns two blanks apart, led by `indent`. Framed: with rules, the first row as a heading.
 * Empties the table. */
void kelp_table_plain(kelp_table *table, const char *indent, kelp_buf *out);
void kelp_table_framed(kelp_table *table, kelp_buf *out);

#endif
