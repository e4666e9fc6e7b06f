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
#include "cli/model.h"
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
    bool profile;
    bool no_fusion;
} run_options;

#define AT(member) offsetof(run_options, member)
static const kelp_arg_spec specs[] = {
    KELP_CLI_INPUT(AT(model.inputs),
                   "an input: a .npy file, or values separated by commas; may be repeated",
                   "Inputs"),
    {.name = "random",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(random),
     .help = "use random values for other inputs: floats in [0,1), integers 0 or 1, the same in "
             "every run"},
    KELP_CLI_SHAPE(AT(model.shapes), "shape of an input with dynamic dimensions (1 each)"),
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

static kelp_status *choose_outputs(const kelp_engine *engine, const kelp_arg_list *words,
                                   wanted_output *wanted) {
    size_t count = kelp_engine_output_count(engine);
    for (size_t i = 0; i < count; i++)
        wanted[i].shown = words->count == 0;
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
                                const wanted_output *wanted, kelp_buf *text) {
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
        kelp_json_end_object(&writer);
        kelp_buf_append_char(text, '\n');
    }
    return NULL;
}

/* ---- profile ---- */

#define PROFILE_TYPES 256
typedef struct profile_row {
    char op_type[64];
    size_t calls;
    uint64_t duration_ns;
} profile_row;
typedef struct profile {
    profile_row rows[PROFILE_TYPES];
    size_t count;
    uint64_t total_ns;
} profile;

static void profile_step(void *userp, size_t step, const char *op_type, const char *name,
                         const char *algorithm, uint64_t duration_ns) {
    profile *p = userp;
    (void)step;
    (void)name;
    (void)algorithm;
    p->total_ns += duration_ns;
    size_t i = 0;
    while (i < p->count && strcmp(p->rows[i].op_type, op_type))
        i++;
    if (i == PROFILE_TYPES)
        return;
    if (i == p->count) {
        snprintf(p->rows[i].op_type, sizeof p->rows[i].op_type, "%s", op_type);
        p->count++;
    }
    p->rows[i].calls++;
    p->rows[i].duration_ns += duration_ns;
}

static int slower_first(const void *a, const void *b) {
    uint64_t x = ((const profile_row *)a)->duration_ns, y = ((const profile_row *)b)->duration_ns;
    return (x < y) - (x > y);
}

static void print_profile(profile *p) {
    KELP_ASSERT(p->count <= PROFILE_TYPES);
    qsort(p->rows, p->count, sizeof p->rows[0], slower_first);
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_table table;
    kelp_table_init(&table, 4);
    static const char *const heads[] = {"operator", "calls", "time", "share"};
    for (size_t i = 0; i < KELP_COUNT(heads); i++)
        kelp_table_cell(&table, "%s", heads[i]);
    for (size_t i = 0; i < p->count; i++) {
        char duration[32];
        kelp_table_cell(&table, "%s", p->rows[i].op_type);
        kelp_table_cell(&table, "%zu", p->rows[i].calls);
        kelp_table_cell(&table, "%s", kelp_cli_duration(p->rows[i].duration_ns, duration));
        kelp_table_cell(&table, "%.1f %%",
                        p->total_ns ? 100.0 * (double)p->rows[i].duration_ns / (double)p->total_ns
                                    : 0.0);
    }
    kelp_table_plain(&table, "", &text);
    const char *shown = kelp_buf_cstr(&text);
    fputs(shown != NULL ? shown : "", stderr);
    kelp_buf_deinit(&text);
}

static kelp_status *invoke(const run_options *o, kelp_context *context) {
    KELP_ASSERT(o->repeat >= 1);
    profile *p = NULL;
    if (o->profile)
        KELP_TRY(KELP_NEW(kelp_allocator_system(), profile, &p));
    uint64_t began_ns = kelp_now_ns();
    kelp_status *status = NULL;
    for (int64_t i = 0; i < o->repeat && status == NULL; i++) {
        if (p != NULL && i + 1 == o->repeat)
            status = kelp_context_set_profiler(context, profile_step, p);
        if (status == NULL)
            status = kelp_context_invoke(context);
    }
    uint64_t took_ns = kelp_now_ns() - began_ns;
    char mean[32], whole[32];
    if (status == NULL && o->repeat > 1)
        fprintf(stderr, "kelp: %lld runs in %s, %s each\n", (long long)o->repeat,
                kelp_cli_duration(took_ns, whole),
                kelp_cli_duration(took_ns / (uint64_t)o->repeat, mean));
    if (status == NULL && p != NULL)
        print_profile(p);
    if (p != NULL)
        kelp_status_free(
            kelp_context_set_profiler(context, NULL, NULL)); /* the first call succeeded */
    kelp_free(kelp_allocator_system(), p, sizeof *p);
    return status;
}

static kelp_status *run_model(const run_options *o, kelp_cli_model *model, kelp_inputs *inputs,
                              kelp_buf *text) {
    KELP_TRY(kelp_cli_model_open(&o->model, o->positionals.items[0], (int)o->threads, !o->no_fusion,
                                 model));
    if (o->output_dir != NULL && mkdir(o->output_dir, 0777) &&
        kelp_fs_kind_of(o->output_dir) != KELP_FS_DIRECTORY)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "option '--output-dir': cannot create directory '%s'", o->output_dir);
    KELP_TRY(kelp_cli_model_bind(&o->model, model, o->random ? KELP_FILL_RANDOM : KELP_FILL_NONE,
                                 inputs));
    kelp_allocator allocator = kelp_allocator_system();
    size_t count = kelp_engine_output_count(model->engine);
    wanted_output *wanted = NULL;
    KELP_TRY(kelp_alloc_zero(allocator, count, sizeof *wanted, (void **)&wanted));
    kelp_status *status = choose_outputs(model->engine, &o->outputs, wanted);
    if (status == NULL)
        status = invoke(o, model->context);
    if (status == NULL)
        status = put_outputs(o, model, wanted, text);
    kelp_free(allocator, wanted, count * sizeof *wanted);
    return status;
}

static int run(const kelp_command *command, void *options) {
    (void)command;
    kelp_cli_model model = {0};
    kelp_inputs inputs = {0};
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_status *status = run_model(options, &model, &inputs, &text);
    if (status == NULL)
        status = kelp_cli_print(&text);
    kelp_buf_deinit(&text);
    kelp_cli_model_deinit(&model);
    kelp_inputs_deinit(&inputs);
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
                "  kelp run model.onnx --random --shape ids=1x128 --repeat 100 --profile",
    .positional = "MODEL.onnx",
    .min_positionals = 1,
    .max_positionals = 1,
    .tables = KELP_ARG_TABLE(specs),
    .options_bytes = sizeof(run_options),
    .defaults = defaults,
    .run = run,
};
