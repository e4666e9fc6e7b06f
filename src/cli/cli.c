/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the commands: errors, output, and a model with its engine. */
#include "cli/cli.h"

#include "base/checked.h"

#include <kelp/remote.h>

#include <errno.h>
#include <unistd.h>

static void report(const kelp_status *status) {
    char text[4096];
    if (kelp_status_format(status, text, sizeof text) < sizeof text) {
        fprintf(stderr, "kelp: %s\n", text);
        return;
    }
    /* A list of unsupported operators may be long; print all of it. */
    fprintf(stderr, "kelp: ");
    for (const kelp_status *at = status; at != NULL; at = kelp_status_cause(at))
        fprintf(stderr, "%s%s", at == status ? "" : ": ", kelp_status_message(at));
    fprintf(stderr, "\n");
}

int kelp_cli_finish(kelp_status *take_status) {
    if (take_status == NULL)
        return KELP_EXIT_OK;
    report(take_status);
    kelp_status_free(take_status);
    return KELP_EXIT_FAILURE;
}

int kelp_cli_usage(const kelp_command *command, kelp_status *take_status) {
    report(take_status);
    fprintf(stderr, "Usage: kelp %s %s\nSee 'kelp help %s'.\n", command->name, command->usage,
            command->name);
    kelp_status_free(take_status);
    return KELP_EXIT_USAGE;
}

kelp_status *kelp_cli_print(kelp_buf *text) {
    KELP_TRY(kelp_buf_status(text));
    if (!text->length)
        return NULL;
    /* A closed pipe (`| head`) is not an error. */
    bool written = text->length == 0 || fwrite(text->data, 1, text->length, stdout) == text->length;
    if (!written || fflush(stdout)) {
        if (errno == EPIPE)
            return NULL;
        return KELP_ERROR(KELP_UNAVAILABLE, "cannot write to standard output: %s", strerror(errno));
    }
    return NULL;
}

const char *kelp_cli_bytes(uint64_t bytes, char *buffer) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < KELP_COUNT(units)) {
        value /= 1024;
        unit++;
    }
    snprintf(buffer, 32, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return buffer;
}

const char *kelp_cli_duration(uint64_t duration_ns, char *buffer) {
    double value = (double)duration_ns;
    if (value < 1e3)
        snprintf(buffer, 32, "%.0f ns", value);
    else if (value < 1e6)
        snprintf(buffer, 32, "%.1f us", value / 1e3);
    else if (value < 1e9)
        snprintf(buffer, 32, "%.2f ms", value / 1e6);
    else
        snprintf(buffer, 32, "%.2f s", value / 1e9);
    return buffer;
}

static void log_line(void *userp, int level, const char *file, int line, const char *text,
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
        .struct_size = sizeof options, .threads = threads, .log = log_line, .log_level = 1};
    KELP_TRY(kelp_runtime_create(&options, &inout_model->runtime));
    if (inout_model->plugin != NULL)
        KELP_TRY(kelp_runtime_load_plugin(inout_model->runtime, inout_model->plugin));
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
