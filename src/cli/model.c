/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the engine of a command from its options. */
#include "cli/model.h"

#include "base/assert.h"
#include "base/checked.h"

#include <kelp/remote.h>

#include <stdio.h>
#include <string.h>

void kelp_cli_log(void *userp, int level, const char *file, int line, const char *text,
                  size_t length) {
    static const char *const names[] = {"error", "warning", "info", "verbose"};
    (void)userp;
    (void)file;
    (void)line;
    fprintf(stderr, "kelp: %s: %.*s\n", names[(unsigned)level & 3u],
            (int)KELP_MIN(length, (size_t)65536), text);
}

/* Returns true for files with the contents or the name of a plan file. Errors then refer to that
 * format. */
static bool is_plan(const kelp_runtime *runtime, const char *path) {
    size_t length = strlen(path);
    return kelp_plan_is_file(runtime, path) ||
           (length > 5 && strcmp(path + length - 5, ".plan") == 0);
}

kelp_status *kelp_cli_model_load(const char *path, int threads, kelp_cli_model *inout_model) {
    kelp_runtime_options options = {
        .struct_size = sizeof options, .threads = threads, .log = kelp_cli_log, .log_level = 1};
    KELP_TRY(kelp_runtime_create(&options, &inout_model->runtime));
    if (inout_model->plugin != NULL)
        KELP_TRY(kelp_runtime_load_plugins(inout_model->runtime, inout_model->plugin));
    if (is_plan(inout_model->runtime, path)) {
        KELP_TRY(kelp_engine_load_file(inout_model->runtime, path, &inout_model->engine));
        return inout_model->engine_only
                   ? NULL
                   : kelp_context_create(inout_model->engine, &inout_model->context);
    }
    kelp_graph_limits limits = kelp_runtime_graph_limits(inout_model->runtime);
    return kelp_graph_load_file(kelp_runtime_allocator(inout_model->runtime), path, &limits,
                                &inout_model->graph);
}

kelp_status *kelp_cli_model_build(kelp_cli_model *inout_model, bool fusion) {
    KELP_TRY(kelp_remote_register_named(inout_model->runtime, inout_model->providers));
    kelp_engine_options options = {.struct_size = sizeof options,
                                   .disable_fusion = !fusion,
                                   .providers = inout_model->providers,
                                   .precision = inout_model->precision};
    if (inout_model->engine != NULL)
        return NULL;
    KELP_TRY(kelp_engine_create(inout_model->runtime, inout_model->graph, &options,
                                &inout_model->engine));
    return kelp_context_create(inout_model->engine, &inout_model->context);
}

void kelp_cli_model_deinit(kelp_cli_model *model) {
    kelp_context_destroy(model->context);
    if (model->engine != NULL)
        kelp_engine_release(model->engine);
    kelp_graph_release(model->graph);
    if (model->runtime != NULL)
        kelp_runtime_release(model->runtime);
    *model = (kelp_cli_model){0};
}

kelp_status *kelp_cli_model_open(const kelp_model_options *options, const char *path, int threads,
                                 bool fusion, kelp_cli_model *inout_model) {
    inout_model->plugin = options->plugin;
    inout_model->providers = options->providers;
    KELP_ASSERT(options->precision != NULL);
    (void)kelp_precision_parse(options->precision,
                               &inout_model->precision); /* one of the choices */
    KELP_TRY(kelp_cli_model_load(path, threads, inout_model));
    return kelp_cli_model_build(inout_model, fusion);
}

kelp_status *kelp_cli_model_bind(const kelp_model_options *options, const kelp_cli_model *model,
                                 kelp_input_fill fill, kelp_inputs *out) {
    KELP_ASSERT(model->engine != NULL && model->context != NULL);
    KELP_TRY(kelp_inputs_init(out, kelp_engine_input(model->engine, 0),
                              kelp_engine_input_count(model->engine), &options->inputs,
                              &options->shapes, &options->image, fill));
    return kelp_inputs_bind(out, model->context);
}
