/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a command: the options that commands share, and the engine and inputs that they
 * determine. Not thread-safe. */
#ifndef KELP_CLI_MODEL_H_
#define KELP_CLI_MODEL_H_

#include "cli/args.h"
#include "cli/inputs.h"

#include <kelp/engine.h>

#include <stddef.h>

/* ---- options ---- */
/* Rows for tables of options, stored at offset `at`. */
#define KELP_CLI_PRECISION(at)                                                                 \
    {                                                                                          \
        .name = "precision", .kind = KELP_OPTION_TEXT, .offset = (at), .value = "f32|bf16",    \
        .choices = "f32|bf16",                                                                 \
        .help = "precision of float32 GEMM and convolutions; bf16 is less precise, and takes " \
                "about half the time on CPUs with AVX512_BF16 (f32)"                           \
    }
#define KELP_CLI_PLUGIN(at)                                                                \
    {                                                                                      \
        .name = "plugin", .kind = KELP_OPTION_TEXT, .offset = (at), .value = "FILES",      \
        .choices = "@file",                                                                \
        .help = "plug-in libraries with operators, kernels or providers (kelp/plugin.h): " \
                "FILE.so[,NAME=VALUE]…, separated by ':'"                                \
    }
#define KELP_CLI_PROVIDERS(at, text)                                                           \
    {                                                                                          \
        .name = "providers", .kind = KELP_OPTION_TEXT, .offset = (at), .value = "NAME,NAME,…", \
        .help = (text)                                                                         \
    }
#define KELP_CLI_INPUT(at, text, heading)                                             \
    {                                                                                 \
        .group = (heading), .name = "input", .letter = 'i', .kind = KELP_OPTION_LIST, \
        .offset = (at), .value = "NAME=@FILE|NAME=V,V,…|@FILE.npz", .help = (text)    \
    }
#define KELP_CLI_SHAPE(at, text)                                                  \
    {                                                                             \
        .name = "shape", .letter = 's', .kind = KELP_OPTION_LIST, .offset = (at), \
        .value = "NAME=1x8x8", .help = (text)                                     \
    }
/* `at` is the offset of an int64_t. */
#define KELP_CLI_THREADS(at, heading)                                               \
    {                                                                               \
        .group = (heading), .name = "threads", .letter = 't', .kind = KELP_ARG_I64, \
        .offset = (at), .value = "N", .min = 0, .max = KELP_CLI_THREADS_MAX,        \
        .help = "threads per operator (0: all CPUs)"                                \
    }
#define KELP_CLI_THREADS_MAX 1024

/* The options of commands that run a model. */
typedef struct kelp_model_options {
    kelp_arg_list inputs, shapes;
    const char *providers, *precision, *plugin;
    kelp_image_options image;
} kelp_model_options;

/* The rows of the options --precision, --plugin and --providers of a kelp_model_options at offset
 * `at`. */
#define KELP_CLI_MODEL_OPTIONS(at)                                      \
    KELP_CLI_PRECISION((at) + offsetof(kelp_model_options, precision)), \
        KELP_CLI_PLUGIN((at) + offsetof(kelp_model_options, plugin)),   \
        KELP_CLI_PROVIDERS(                                             \
            (at) + offsetof(kelp_model_options, providers),             \
            "providers in order of priority; each runs the subgraphs that it supports")

/* The default of --precision. */
#define KELP_CLI_PRECISION_DEFAULT "f32"

/* Writes a line of the runtime's log to stderr; for kelp_runtime_options.log. */
void kelp_cli_log(void *userp, int level, const char *file, int line, const char *text,
                  size_t length);

/* ---- the model ---- */
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

/* Loads the model at `path` and creates its engine and context. On failure, the caller still
 * deinitializes the model. */
kelp_status *kelp_cli_model_open(const kelp_model_options *options, const char *path, int threads,
                                 bool fusion, kelp_cli_model *inout_model) KELP_MUST_USE;
/* Creates the inputs and binds them to the context. The caller deinitializes them, also after a
 * failure. */
kelp_status *kelp_cli_model_bind(const kelp_model_options *options, const kelp_cli_model *model,
                                 kelp_input_fill fill, kelp_inputs *out) KELP_MUST_USE;

#endif
