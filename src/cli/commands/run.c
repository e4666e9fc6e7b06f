/* SPDX-License-Identifier: Apache-2.0 */
/* kelp run: runs a model once or repeatedly with inputs from the command line. */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/text/json.h"
#include "base/map.h"
#include "cli/compare/compare.h"
#include "cli/model.h"
#include "cli/profile.h"
#include "cli/show.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct run_options {
    kelp_arg_list positionals;
    kelp_model_options model;
    bool random;
    kelp_arg_list outputs;
    const char *output_dir;
    int64_t threads;
    int64_t repeat;
    bool json;
    bool profile, profile_nodes, compare;
    double rtol, atol;
    const char *trace;
    bool no_fusion;
} run_options;

#define AT(member) offsetof(run_options, member)
static const kelp_arg_spec specs[] = {
    KELP_CLI_INPUT(
        AT(model.inputs),
        "an input: a .npy, .npz or image file, or values separated by commas; or all inputs "
        "from a .npz file; may be repeated",
        "Inputs"),
    {.name = "random",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(random),
     .help = "use random values for other inputs: floats in [0,1), integers 0 or 1, the same in "
             "every run"},
    KELP_CLI_SHAPE(AT(model.shapes), "shape of an input with dynamic dimensions (1 each)"),
    KELP_CLI_IMAGE_OPTIONS(AT(model.image)),
    {.group = "Outputs",
     .name = "output",
     .letter = 'o',
     .kind = KELP_OPTION_LIST,
     .offset = AT(outputs),
     .value = "NAME[=@FILE]",
     .help = "print only this output, or write it to a .npy file; may be repeated"},
    {.name = "output-dir",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(output_dir),
     .value = "DIR",
     .choices = "@dir",
     .help = "write every output to DIR/NAME.npy"},
    {.name = "json",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(json),
     .help = "print outputs as JSON with all elements"},
    {.group = "Comparison",
     .name = "compare",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(compare),
     .help = "also run the model on ONNX Runtime, and print the differences instead of the "
             "outputs; exit code 1 if an output differs"},
    {.name = "rtol",
     .kind = KELP_ARG_F64,
     .offset = AT(rtol),
     .value = "F",
     .help = "relative tolerance of floating-point outputs (0.001)"},
    {.name = "atol",
     .kind = KELP_ARG_F64,
     .offset = AT(atol),
     .value = "F",
     .help = "absolute tolerance of floating-point outputs (0.00001)"},
    KELP_CLI_THREADS(AT(threads), "Execution"),
    {.name = "repeat",
     .kind = KELP_ARG_I64,
     .offset = AT(repeat),
     .value = "N",
     .min = 1,
     .max = 1000000000,
     .help = "run N times and print the duration to stderr (1)"},
    {.name = "profile",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(profile),
     .help = "print the time per operator of the last run to stderr"},
    {.name = "profile-nodes",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(profile_nodes),
     .help = "print the time of each node of the last run to stderr"},
    {.name = "trace",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(trace),
     .value = "FILE",
     .choices = "@file",
     .help = "write the time of each node of the last run as a trace for Perfetto"},
    {.name = "no-fusion",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(no_fusion),
     .help = "disable fusion"},
    KELP_CLI_MODEL_OPTIONS(AT(model)),
};
#undef AT

static void defaults(void *options) {
    run_options *o = options;
    o->repeat = 1;
    o->rtol = 1e-3;
    o->atol = 1e-5;
    o->model.precision = KELP_CLI_PRECISION_DEFAULT;
}

/* ---- outputs ---- */

typedef struct wanted_output {
    bool shown;
    const char *file; /* NULL: print the output */
} wanted_output;

static kelp_status *unknown_output(const kelp_engine *engine, const char *word) {
    kelp_buf names;
    kelp_buf_init(&names, kelp_allocator_system());
    for (size_t i = 0; i < kelp_engine_output_count(engine); i++)
        kelp_buf_printf(&names, "%s'%s'", i ? ", " : "", kelp_engine_output(engine, i)->name);
    const char *list = kelp_buf_cstr(&names);
    kelp_status *status = KELP_ERROR(KELP_INVALID_ARGUMENT,
                                     "option '--output': the model has no output '%s'; it has %s",
                                     word, list ? list : "others");
    kelp_buf_deinit(&names);
    return status;
}

static kelp_status *choose_outputs(const run_options *o, const kelp_engine *engine,
                                   wanted_output *wanted) {
    const kelp_arg_list *words = &o->outputs;
    size_t count = kelp_engine_output_count(engine);
    for (size_t i = 0; i < count; i++)
        wanted[i].shown = words->count == 0 && (!o->compare || o->output_dir != NULL);
    for (size_t w = 0; w < words->count; w++) {
        const char *word = words->items[w];
        const char *at = strstr(word, "=@");
        size_t length = at != NULL ? (size_t)(at - word) : strlen(word);
        size_t i = 0;
        while (i < count &&
               !kelp_str_is((kelp_str){word, length}, kelp_engine_output(engine, i)->name))
            i++;
        if (i == count)
            return unknown_output(engine, word);
        wanted[i] = (wanted_output){.shown = true, .file = at != NULL ? at + 2 : NULL};
    }
    return NULL;
}

/* Returns the file name of an output without characters such as '/'. */
static kelp_status *output_path(const char *directory, const char *name, char **out) {
    kelp_buf file;
    kelp_buf_init(&file, kelp_allocator_system());
    for (const char *c = name; *c; c++)
        kelp_buf_append_char(
            &file, strchr("/\\:*?\"<>|", *c) != NULL || (unsigned char)*c < ' ' ? '_' : *c);
    kelp_buf_append_cstr(&file, ".npy");
    const char *text = kelp_buf_cstr(&file);
    kelp_status *status = text != NULL ? kelp_fs_join(kelp_allocator_system(), directory, text, out)
                                       : kelp_buf_status(&file);
    kelp_buf_deinit(&file);
    return status;
}

static kelp_status *save_output(const char *path, const char *name, const kelp_tensor *tensor);

/* Writes each element of a sequence, optional or map to a file of its own: y.npy becomes y.0.npy,
 * y.1.npy and so on, or y.keys.npy and y.values.npy. */
static kelp_status *save_elements(const char *path, const char *name, const kelp_tensor *list) {
    size_t stem = strlen(path);
    if (stem >= 4 && strcmp(path + stem - 4, ".npy") == 0)
        stem -= 4;
    if (list->shape[0] == 0)
        fprintf(stderr, "kelp: output '%s' has no elements: no file is written\n", name);
    kelp_buf file;
    kelp_buf_init(&file, kelp_allocator_system());
    kelp_status *status = NULL;
    for (int64_t i = 0; i < list->shape[0] && status == NULL; i++) {
        kelp_buf_clear(&file);
        kelp_buf_append(&file, path, stem);
        if (list->rank == 3)
            kelp_buf_append_cstr(&file, i == 0 ? ".keys.npy" : ".values.npy");
        else
            kelp_buf_printf(&file, ".%" PRId64 ".npy", i);
        const char *text = kelp_buf_cstr(&file);
        status = text != NULL ? save_output(text, name, (const kelp_tensor *)list->data + i)
                              : kelp_buf_status(&file);
    }
    kelp_buf_deinit(&file);
    return status;
}

static kelp_status *save_output(const char *path, const char *name, const kelp_tensor *tensor) {
    if (tensor->dtype == KELP_LIST)
        return save_elements(path, name, tensor);
    kelp_status *status = kelp_npy_save(path, name, tensor);
    if (status != NULL)
        return KELP_ANNOTATE(status, "cannot write output '%s'", name);
    fprintf(stderr, "kelp: output '%s' written to %s\n", name, path);
    return NULL;
}

/* Writes outputs to files, or appends them to `text`. */
static kelp_status *put_outputs(const run_options *o, const kelp_cli_model *model,
                                const wanted_output *wanted, const kelp_comparison *comparison,
                                kelp_buf *text) {
    kelp_json_writer writer;
    kelp_json_writer_init(&writer, text);
    if (o->json) {
        kelp_json_begin_object(&writer);
        kelp_json_key(&writer, "outputs");
        kelp_json_begin_array(&writer);
    }
    for (size_t i = 0; i < kelp_engine_output_count(model->engine); i++) {
        const char *name = kelp_engine_output(model->engine, i)->name;
        const kelp_tensor *tensor = kelp_context_output(model->context, i);
        if (!wanted[i].shown)
            continue;
        if (tensor == NULL)
            return KELP_ERROR(KELP_INTERNAL, "the model did not produce output '%s'", name);
        if (wanted[i].file != NULL) {
            KELP_TRY(save_output(wanted[i].file, name, tensor));
        } else if (o->output_dir != NULL) {
            char *path;
            KELP_TRY(output_path(o->output_dir, name, &path));
            kelp_status *status = save_output(path, name, tensor);
            kelp_free_string(kelp_allocator_system(), path);
            KELP_TRY(status);
        } else if (o->json) {
            kelp_show_json(name, tensor, &writer);
        } else {
            kelp_show_tensor(name, tensor, text);
        }
    }
    if (o->json) {
        kelp_json_end_array(&writer);
        if (o->compare) {
            kelp_json_key(&writer, "comparison");
            kelp_comparison_put_json(comparison, &writer);
        }
        kelp_json_end_object(&writer);
        kelp_buf_append_char(text, '\n');
    } else if (o->compare) {
        kelp_comparison_put_text(comparison, text);
    }
    return NULL;
}

/* ---- execution ---- */

/* Prints the profile to stderr, and writes the trace. */
static kelp_status *put_profile(const run_options *o, const kelp_profile *profile) {
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_status *status = NULL;
    if (o->profile)
        status = kelp_profile_put_operators(profile, &text);
    if (status == NULL && o->profile_nodes)
        status = kelp_profile_put_nodes(profile, &text);
    const char *shown = kelp_buf_cstr(&text);
    if (status == NULL && shown != NULL)
        fputs(shown, stderr);
    kelp_buf_deinit(&text);
    if (status == NULL && o->trace != NULL)
        status = kelp_profile_save_trace(profile, o->trace);
    return status;
}

/* Runs the model; the last run is profiled. */
static kelp_status *invoke(const run_options *o, kelp_context *context) {
    KELP_ASSERT(o->repeat >= 1);
    kelp_profile profile = {0};
    bool profiled = o->profile || o->profile_nodes || o->trace != NULL;
    uint64_t began_ns = kelp_now_ns();
    kelp_status *status = NULL;
    for (int64_t i = 0; i < o->repeat - profiled && status == NULL; i++)
        status = kelp_context_invoke(context);
    if (profiled && status == NULL)
        status = kelp_profile_run(&profile, context, 1);
    uint64_t took_ns = kelp_now_ns() - began_ns;
    char mean[32], whole[32];
    if (status == NULL && o->repeat > 1)
        fprintf(stderr, "kelp: %lld runs in %s, %s each\n", (long long)o->repeat,
                kelp_cli_duration(took_ns, whole),
                kelp_cli_duration(took_ns / (uint64_t)o->repeat, mean));
    if (status == NULL && profiled)
        status = put_profile(o, &profile);
    kelp_profile_deinit(&profile);
    return status;
}

/* Compares the outputs of the context. */
static kelp_status *compare(const run_options *o, const kelp_cli_model *model,
                            const kelp_inputs *inputs, kelp_comparison *out) {
    const kelp_compare_options options = {
        .path = o->positionals.items[0], .model = &o->model, .rtol = o->rtol, .atol = o->atol};
    return kelp_compare(&options, model, inputs, out);
}

/* The objects of a run. */
typedef struct run_state {
    kelp_cli_model model;
    kelp_inputs inputs;
    kelp_comparison comparison;
    kelp_buf text;
} run_state;

static kelp_status *run_model(const run_options *o, run_state *s) {
    kelp_cli_model *model = &s->model;
    KELP_TRY(kelp_cli_model_open(&o->model, o->positionals.items[0], (int)o->threads, !o->no_fusion,
                                 model));
    if (o->output_dir != NULL && mkdir(o->output_dir, 0777) &&
        kelp_fs_kind_of(o->output_dir) != KELP_FS_DIRECTORY)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "option '--output-dir': cannot create directory '%s'", o->output_dir);
    KELP_TRY(kelp_cli_model_bind(&o->model, model, o->random ? KELP_FILL_RANDOM : KELP_FILL_NONE,
                                 &s->inputs));
    kelp_allocator allocator = kelp_allocator_system();
    size_t count = kelp_engine_output_count(model->engine);
    wanted_output *wanted = NULL;
    KELP_TRY(kelp_alloc_zero(allocator, count, sizeof *wanted, (void **)&wanted));
    kelp_status *status = choose_outputs(o, model->engine, wanted);
    if (status == NULL)
        status = invoke(o, model->context);
    if (status == NULL && o->compare)
        status = compare(o, model, &s->inputs, &s->comparison);
    if (status == NULL)
        status = put_outputs(o, model, wanted, &s->comparison, &s->text);
    kelp_free(allocator, wanted, count * sizeof *wanted);
    return status;
}

static int run(const kelp_command *command, void *options) {
    run_state s = {0};
    (void)command;
    kelp_buf_init(&s.text, kelp_allocator_system());
    kelp_status *status = run_model(options, &s);
    if (status == NULL)
        status = kelp_cli_print(&s.text);
    size_t differing = s.comparison.differing, count = s.comparison.count;
    if (status == NULL && differing > 0)
        status =
            KELP_ERROR(KELP_FAILED_PRECONDITION,
                       "%zu of %zu outputs differ from those of ONNX Runtime", differing, count);
    kelp_buf_deinit(&s.text);
    kelp_comparison_deinit(&s.comparison);
    kelp_cli_model_deinit(&s.model);
    kelp_inputs_deinit(&s.inputs);
    return kelp_cli_finish(status);
}

const kelp_command kelp_cmd_run = {
    .name = "run",
    .summary = "run a model",
    .usage = "MODEL.onnx|FILE.plan --input NAME=@FILE.npy [options]",
    .details =
        "Prints the outputs, or writes them to .npy files. The elements of a sequence or map "
        "have a file\neach: NAME.0.npy, NAME.keys.npy and so on.",
    .examples = "  kelp run model.onnx --input image=@examples/requests/digits.npy\n"
                "  kelp run model.onnx --input x=1,2,3,4 --shape x=2x2 --output y=@y.npy\n"
                "  kelp run model.onnx --input @inputs.npz --output-dir outputs\n"
                "  kelp run model.onnx --input image=@photo.jpg --image-fit crop --image-mean "
                "0.485,0.456,0.406 --image-std 0.229,0.224,0.225\n"
                "  kelp run model.onnx --random --shape ids=1x128 --repeat 100 --profile\n"
                "  kelp run model.onnx --random --trace trace.json\n"
                "  kelp run model.onnx --random --compare",
    .positional = "MODEL.onnx",
    .min_positionals = 1,
    .max_positionals = 1,
    .tables = KELP_ARG_TABLE(specs),
    .options_bytes = sizeof(run_options),
    .defaults = defaults,
    .run = run,
};
