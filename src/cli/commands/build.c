/* SPDX-License-Identifier: Apache-2.0 */
/* kelp build: builds a plan file from an ONNX model. */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/model.h"

#include <kelp/builder.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct build_options {
    kelp_arg_list positionals;
    const char *output;
    const char *provider;
    kelp_arg_list shapes[3]; /* min, opt, max */
    bool refit;
    bool strip_weights;
    kelp_arg_list refit_names;
    bool no_fusion;
    const char *precision;
    bool weight_streaming;
    bool version_compatible;
    kelp_arg_list capabilities;
    int64_t workspace_mib;
    int64_t level;
    const char *timing_cache;
    const char *plugin;
} build_options;

#define AT(member) offsetof(build_options, member)
static const kelp_arg_spec specs[] = {
    {.group = "Plan file",
     .name = "output",
     .letter = 'o',
     .kind = KELP_OPTION_TEXT,
     .offset = AT(output),
     .value = "FILE.plan",
     .choices = "@file",
     .help = "the plan file to write (the name of the model with .plan)"},
    {.name = "provider",
     .letter = 'p',
     .kind = KELP_OPTION_TEXT,
     .offset = AT(provider),
     .value = "NAME",
     .help = "provider that runs the engine: cpu, tensorrt, null (cpu)"},
    {.group = "Shapes",
     .name = "min",
     .kind = KELP_OPTION_LIST,
     .offset = AT(shapes[0]),
     .value = "NAME:1x3x224x224",
     .help = "minimum shape of an input; repeat for other inputs and profiles"},
    {.name = "opt",
     .kind = KELP_OPTION_LIST,
     .offset = AT(shapes[1]),
     .value = "NAME:8x3x224x224",
     .help = "shape to optimize for (the maximum)"},
    {.name = "max",
     .kind = KELP_OPTION_LIST,
     .offset = AT(shapes[2]),
     .value = "NAME:32x3x224x224",
     .help = "maximum shape"},
    {.group = "Weights and versions",
     .name = "refit",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(refit),
     .help = "allow replacing all weights of the engine"},
    {.name = "refit-weights",
     .kind = KELP_OPTION_LIST,
     .offset = AT(refit_names),
     .value = "NAME",
     .help = "allow replacing only this weight; may be repeated"},
    {.name = "strip-weights",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(strip_weights),
     .help = "omit the refittable weights (all, or those of --refit-weights); a refit must supply "
             "them before the first run"},
    {.name = "weight-streaming",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(weight_streaming),
     .help = "allow weights in host memory (tensorrt)"},
    {.name = "version-compatible",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(version_compatible),
     .help = "make the plan file usable with later versions of the provider's library (tensorrt)"},
    {.group = "Building",
     .name = "compute-capability",
     .kind = KELP_OPTION_LIST,
     .offset = AT(capabilities),
     .value = "86,89",
     .help = "compute capabilities of target GPUs, 10 * major + minor; may be repeated (tensorrt)"},
    {.name = "workspace",
     .kind = KELP_ARG_I64,
     .offset = AT(workspace_mib),
     .value = "MIB",
     .min = 0,
     .max = 1 << 20,
     .help = "memory limit for activations (0: no limit)"},
    {.name = "level",
     .kind = KELP_ARG_I64,
     .offset = AT(level),
     .value = "N",
     .min = 0,
     .max = 5,
     .help = "optimization level (3); for cpu, levels 0 to 2 make a smaller file that is optimized "
             "when it is loaded"},
    {.name = "timing-cache",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(timing_cache),
     .value = "FILE",
     .choices = "@file",
     .help = "timing cache: read if it exists, written after the build (tensorrt)"},
    KELP_CLI_PLUGIN(AT(plugin)),
    KELP_CLI_PRECISION(AT(precision)),
    {.name = "no-fusion",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(no_fusion),
     .help = "disable fusion"},
};
#undef AT

static void defaults(void *options) {
    build_options *o = options;
    o->provider = "cpu";
    o->level = 3;
    o->precision = KELP_CLI_PRECISION_DEFAULT;
}

/* ---- shapes ---- */
/* Parses "name:1x3x224x224"; names may contain colons. */
static kelp_status *parse_shape(const char *option, const char *word, kelp_str *out_name,
                                kelp_shape *out) {
    const char *colon = strrchr(word, ':');
    const char *at = colon != NULL ? colon + 1 : word;
    *out = (kelp_shape){.rank = 0};
    if (colon == NULL || colon == word)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "option '--%s': expected NAME:1x3x224x224, found '%s'", option, word);
    *out_name = (kelp_str){word, (size_t)(colon - word)};
    while (*at != '\0') {
        char *end = NULL;
        long long dim = strtoll(at, &end, 10);
        if (end == at || dim < 0 || out->rank == KELP_MAX_RANK || (*end != 'x' && *end != '\0'))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "option '--%s': expected dimensions such as 1x3x224x224, found '%s'",
                              option, colon + 1);
        out->d[out->rank++] = dim;
        at = *end == 'x' ? end + 1 : end;
        if (*end == 'x' && *at == '\0')
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "option '--%s': expected dimensions such as 1x3x224x224, found '%s'",
                              option, colon + 1);
    }
    return NULL;
}

/* Returns the profile of a word: the n-th shape of an input belongs to the n-th profile. */
static kelp_status *profile_of(kelp_builder_config *config, const kelp_arg_list *words, size_t word,
                               const char *option, kelp_str name, size_t *out, size_t *inout_made) {
    *out = 0;
    for (size_t i = 0; i < word; i++) {
        kelp_str other;
        kelp_shape shape;
        KELP_TRY(parse_shape(option, words->items[i], &other, &shape));
        *out += kelp_str_equal(other, name);
    }
    while (*inout_made <= *out) {
        size_t index = 0;
        KELP_TRY(kelp_builder_config_add_profile(config, &index));
        *inout_made = index + 1;
    }
    KELP_ASSERT(*out < *inout_made);
    return NULL;
}

static kelp_status *set_shapes(const build_options *o, kelp_builder_config *config) {
    static const char *const names[] = {"min", "opt", "max"};
    size_t made = 0;
    for (int which = 2; which >= 0; which--) {
        for (size_t w = 0; w < o->shapes[which].count; w++) {
            kelp_str name;
            kelp_shape shape;
            char input[256];
            size_t profile = 0;
            KELP_TRY(parse_shape(names[which], o->shapes[which].items[w], &name, &shape));
            if (name.length >= sizeof input)
                return KELP_ERROR(KELP_INVALID_ARGUMENT, "option '--%s': the name is too long",
                                  names[which]);
            memcpy(input, name.data, name.length);
            input[name.length] = '\0';
            KELP_TRY(profile_of(config, &o->shapes[which], w, names[which], name, &profile, &made));
            KELP_TRY(kelp_builder_config_set_profile_shape(
                config, profile, input, (kelp_profile_selector)which, shape.rank, shape.d));
            if (which == KELP_PROFILE_MAX && o->shapes[KELP_PROFILE_OPT].count == 0)
                KELP_TRY(kelp_builder_config_set_profile_shape(
                    config, profile, input, KELP_PROFILE_OPT, shape.rank, shape.d));
        }
    }
    return NULL;
}

/* ---- configuration ---- */
static kelp_status *read_timing_cache(const build_options *o, kelp_builder_config *config) {
    kelp_buf bytes;
    if (o->timing_cache == NULL)
        return NULL;
    /* A provider without timing caches fails here. */
    if (kelp_fs_kind_of(o->timing_cache) == KELP_FS_NONE)
        return kelp_builder_config_set_timing_cache(config, NULL, 0);
    kelp_buf_init(&bytes, kelp_allocator_system());
    kelp_status *status = kelp_fs_read(o->timing_cache, 0, &bytes);
    if (status == NULL)
        status = kelp_builder_config_set_timing_cache(config, bytes.data, bytes.length);
    kelp_buf_deinit(&bytes);
    return status;
}

/* Adds the capabilities of a list such as "86,89". */
static kelp_status *add_capabilities(kelp_builder_config *config, const char *list) {
    for (const char *at = list;; at++) {
        char *end = NULL;
        long capability = strtol(at, &end, 10);
        if (end == at || (*end != '\0' && *end != ',') || capability < 10 || capability > 999)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "option '--compute-capability': expected 10 * major + minor, such as "
                              "86 or 86,89, found '%s'",
                              list);
        KELP_TRY(kelp_builder_config_add_compute_capability(config, (int)capability));
        if (*end == '\0')
            return NULL;
        at = end;
    }
}

static kelp_status *configure(const build_options *o, kelp_network *network,
                              kelp_builder_config *config) {
    uint32_t flags = 0;
    flags |= o->refit ? KELP_BUILD_REFIT : 0u;
    flags |= o->refit_names.count > 0 ? KELP_BUILD_REFIT_INDIVIDUAL : 0u;
    flags |= o->strip_weights ? KELP_BUILD_STRIP_WEIGHTS : 0u;
    flags |= strcmp(o->precision, "bf16") == 0 ? KELP_BUILD_BF16 : 0u;
    flags |= o->no_fusion ? KELP_BUILD_DISABLE_FUSION : 0u;
    flags |= o->weight_streaming ? KELP_BUILD_WEIGHT_STREAMING : 0u;
    flags |= o->version_compatible ? KELP_BUILD_VERSION_COMPATIBLE : 0u;
    KELP_TRY(kelp_builder_config_set_flags(config, flags));
    for (size_t i = 0; i < o->refit_names.count; i++)
        KELP_TRY(kelp_network_mark_refittable(network, o->refit_names.items[i]));
    for (size_t i = 0; i < o->capabilities.count; i++)
        KELP_TRY(add_capabilities(config, o->capabilities.items[i]));
    KELP_TRY(kelp_builder_config_set_memory_limit(config, KELP_POOL_WORKSPACE,
                                                  (size_t)o->workspace_mib << 20));
    KELP_TRY(kelp_builder_config_set_optimization_level(config, (int)o->level));
    KELP_TRY(read_timing_cache(o, config));
    return set_shapes(o, config);
}

/* ---- progress ---- */
typedef struct progress {
    uint64_t began_ns;
    bool draws, shown;
} progress;

/* The first signal cancels the build at its next step without writing a file. The second one ends
 * the process. */
static volatile sig_atomic_t interrupted;

static void interrupt(int number) {
    (void)number;
    interrupted = 1;
}

static void watch_signals(void) {
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESETHAND | SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static bool show_progress(void *userp, const char *phase, const char *parent, int step, int steps) {
    progress *p = userp;
    char bar[25];
    (void)parent;
    if (interrupted)
        return false;
    if (steps <= 0 || !p->draws)
        return true;
    int filled = step * 24 / steps;
    for (int i = 0; i < 24; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[24] = '\0';
    fprintf(stderr, "\rkelp: [%s] %-32.32s", bar, phase);
    fflush(stderr);
    p->shown = true;
    return true;
}

/* ---- build ---- */
/* Returns "model.plan" for "dir/model.onnx". */
static kelp_status *plan_path(const build_options *o, char **out) {
    const char *model = o->positionals.items[0], *slash = strrchr(model, '/');
    const char *name = slash != NULL ? slash + 1 : model, *dot = strrchr(name, '.');
    kelp_buf path;
    if (o->output != NULL)
        return kelp_strdup(kelp_allocator_system(), o->output, out);
    kelp_buf_init(&path, kelp_allocator_system());
    kelp_buf_append(&path, name, dot != NULL ? (size_t)(dot - name) : strlen(name));
    kelp_buf_append_cstr(&path, ".plan");
    const char *text = kelp_buf_cstr(&path);
    kelp_status *status =
        text != NULL ? kelp_strdup(kelp_allocator_system(), text, out) : kelp_buf_status(&path);
    kelp_buf_deinit(&path);
    return status;
}

typedef struct building {
    kelp_runtime *runtime;
    kelp_builder *builder;
    kelp_network *network;
    kelp_builder_config *config;
    kelp_blob *plan;
    char *path;
} building;

static kelp_status *build(const build_options *o, building *b) {
    kelp_runtime_options options = {.struct_size = sizeof options};
    progress p = {.began_ns = kelp_now_ns(), .draws = isatty(STDERR_FILENO) != 0};
    watch_signals();
    KELP_TRY(plan_path(o, &b->path));
    KELP_TRY(kelp_runtime_create(&options, &b->runtime));
    if (o->plugin != NULL)
        KELP_TRY(kelp_runtime_load_plugins(b->runtime, o->plugin));
    KELP_TRY(kelp_builder_create(b->runtime, o->provider, &b->builder));
    KELP_TRY(kelp_builder_parse_file(b->builder, o->positionals.items[0], &b->network));
    KELP_TRY(kelp_builder_create_config(b->builder, &b->config));
    KELP_TRY(configure(o, b->network, b->config));
    kelp_builder_config_set_progress(b->config, show_progress, &p);
    kelp_status *status = kelp_builder_build(b->builder, b->network, b->config, &b->plan);
    if (p.shown)
        fputs("\r\033[K", stderr);
    if (kelp_status_code(status) == KELP_CANCELLED) {
        kelp_status_free(status);
        return KELP_ERROR(KELP_CANCELLED, "interrupted: '%s' was not written", b->path);
    }
    KELP_TRY(status);
    KELP_TRY(kelp_blob_save(b->plan, b->path));
    if (o->timing_cache != NULL) {
        size_t size_bytes = 0;
        const void *data = kelp_builder_config_timing_cache(b->config, &size_bytes);
        if (size_bytes > 0)
            KELP_TRY(kelp_fs_write(o->timing_cache, data, size_bytes));
        else
            fprintf(stderr, "kelp: %s: not written: the build has no timing cache\n",
                    o->timing_cache);
    }
    char size[32], took[32];
    fprintf(stderr, "kelp: %s: %s for provider %s, built in %s\n", b->path,
            kelp_cli_bytes(kelp_blob_size(b->plan), size), o->provider,
            kelp_cli_duration(kelp_now_ns() - p.began_ns, took));
    return NULL;
}

static int run(const kelp_command *command, void *options) {
    building b = {0};
    (void)command;
    kelp_status *status = build(options, &b);
    kelp_blob_release(b.plan);
    kelp_builder_config_release(b.config);
    kelp_network_release(b.network);
    kelp_builder_release(b.builder);
    if (b.runtime != NULL)
        kelp_runtime_release(b.runtime);
    kelp_free_string(kelp_allocator_system(), b.path);
    return kelp_cli_finish(status);
}

const kelp_command kelp_cmd_build = {
    .name = "build",
    .summary = "build a plan file from a model",
    .usage = "MODEL.onnx -o FILE.plan [options]",
    .details = "A plan file contains the optimized graph and prepacked weights. It loads faster "
               "than the model.\n'kelp run', 'kelp inspect', 'kelp bench' and 'kelp serve' accept "
               "it in place of a model.\nThe n-th --min, --opt and --max of an input belong to the "
               "n-th optimization profile.",
    .examples = "  kelp build examples/models/digits/1/model.onnx -o digits.plan\n"
                "  kelp build model.onnx --min x:1x3x224x224 --opt x:8x3x224x224 --max "
                "x:32x3x224x224\n"
                "  kelp build model.onnx --provider tensorrt --compute-capability 86,89",
    .positional = "MODEL.onnx",
    .min_positionals = 1,
    .max_positionals = 1,
    .tables = KELP_ARG_TABLE(specs),
    .options_bytes = sizeof(build_options),
    .defaults = defaults,
    .run = run,
};
