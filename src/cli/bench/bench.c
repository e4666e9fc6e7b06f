/* SPDX-License-Identifier: Apache-2.0 */
/* kelp bench: measures latency, throughput, load time and memory of a model, in this process or of
 * a server. */
#include "cli/bench/bench.h"

#include "base/assert.h"
#include "base/checked.h"
#include "cli/cli.h"

#include <stddef.h>
#include <string.h>

#define AT(member) offsetof(kelp_bench_options, member)
static const kelp_arg_spec specs[] = {
    {.name = "threads",
     .letter = 't',
     .kind = KELP_OPTION_TEXT,
     .offset = AT(threads),
     .value = "N,N,…",
     .help = "numbers of threads per operator to measure (1,2)"},
    {.name = "concurrency",
     .letter = 'c',
     .kind = KELP_OPTION_TEXT,
     .offset = AT(concurrency),
     .value = "N,N,…",
     .help = "numbers of inferences that run at the same time: contexts of one engine, or "
             "connections to a server (1)"},
    {.name = "seconds",
     .kind = KELP_ARG_F64,
     .offset = AT(seconds),
     .value = "S",
     .help = "duration of each measurement in seconds (3); at least ten runs"},
    {.name = "warmup",
     .kind = KELP_ARG_I64,
     .offset = AT(warmup),
     .value = "N",
     .min = 0,
     .max = 1000000,
     .help = "inferences of each context or connection before the measurement (1)"},
    {.name = "in-flight",
     .kind = KELP_ARG_I64,
     .offset = AT(in_flight),
     .value = "N",
     .min = 0,
     .max = KELP_CLI_THREADS_MAX,
     .help = "measure throughput with N inferences in flight (kelp_compute_submit), and count the "
             "inputs that are copied"},
    {.name = "models",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(models),
     .value = "NAME",
     .help = "with --in-flight: provider that loads the model (cpu), such as onnxruntime, kernels "
             "or that of a plug-in library"},
    KELP_CLI_INPUT(AT(model.inputs),
                   "an input; other inputs are random as with 'kelp run --random'", "Model"),
    KELP_CLI_SHAPE(AT(model.shapes), "shape of an input with dynamic dimensions (1 each)"),
    KELP_CLI_MODEL_OPTIONS(AT(model)),
    KELP_CLI_IMAGE_OPTIONS(AT(model.image)),
    KELP_CLI_HTTP_OPTIONS(AT(http)),
    {.group = "Report",
     .name = "json",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(json),
     .help = "print JSON"},
    {.name = "csv", .kind = KELP_OPTION_BOOL, .offset = AT(csv), .help = "print CSV"},
    {.name = "plot",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(plot),
     .help = "also print the latencies as bars"},
    {.name = "svg",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(svg),
     .value = "FILE",
     .choices = "@file",
     .help = "write a plot of latencies and throughput"},
    {.name = "profile",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(profile),
     .help = "also print the time of each node and the algorithm chosen for it"},
    {.name = "trace",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(trace),
     .value = "FILE",
     .choices = "@file",
     .help = "write the time of each node of one run as a trace for Perfetto"},
};
#undef AT

static const char usual_threads[] = "1,2";
static const char usual_models[] = "cpu";

static void defaults(void *options) {
    kelp_bench_options *o = options;
    o->threads = usual_threads;
    o->concurrency = "1";
    o->models = usual_models;
    o->model.precision = KELP_CLI_PRECISION_DEFAULT;
    o->seconds = 3;
    o->warmup = 1;
}

#define NUMBERS_MAX 16
typedef struct numbers {
    int64_t items[NUMBERS_MAX];
    size_t count;
} numbers;

static kelp_status *parse_numbers(const char *option, const char *text, int64_t max, numbers *out) {
    *out = (numbers){0};
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ",");
        int64_t number;
        if (out->count == NUMBERS_MAX || !kelp_parse_i64((kelp_str){at, length}, &number) ||
            number < 1 || number > max)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "option '--%s': expected at most %d numbers from 1 to %lld, "
                              "found '%s'",
                              option, NUMBERS_MAX, (long long)max, text);
        out->items[out->count++] = number;
        at += length + (at[length] == ',');
    }
    if (out->count == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "option '--%s': expected numbers, found ''",
                          option);
    return NULL;
}

static kelp_status *exclude(bool first, const char *first_name, bool second,
                            const char *second_name) {
    if (first && second)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "options '--%s' and '--%s' exclude each other",
                          first_name, second_name);
    return NULL;
}

/* Rejects options of a model file if a server is measured. */
static kelp_status *check_remote(const kelp_bench_options *o) {
    const struct {
        const char *name;
        bool is_set;
    } local[] = {{"threads", o->threads != usual_threads},
                 {"in-flight", o->in_flight > 0},
                 {"profile", o->profile},
                 {"trace", o->trace != NULL},
                 {"plugin", o->model.plugin != NULL},
                 {"providers", o->model.providers != NULL}};
    for (size_t i = 0; i < KELP_COUNT(local); i++)
        if (local[i].is_set)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "option '--%s' requires a model file",
                              local[i].name);
    return NULL;
}

/* Creates the rows to measure: each number of threads with each concurrency. */
static kelp_status *plan_rows(const kelp_bench_options *o, kelp_bench_row *rows,
                              size_t *out_count) {
    numbers threads, concurrency;
    bool is_remote = kelp_bench_is_remote(o), in_flight = o->in_flight > 0;
    if (is_remote)
        KELP_TRY(check_remote(o));
    KELP_TRY(parse_numbers("threads", o->threads, KELP_CLI_THREADS_MAX, &threads));
    KELP_TRY(
        parse_numbers("concurrency", o->concurrency, KELP_BENCH_LOAD_MAX_WORKERS, &concurrency));
    if (!(o->seconds >= 0 && o->seconds <= 3600))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "option '--seconds': expected 0 to 3600");
    if (!in_flight && strcmp(o->models, usual_models) != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "option '--models' requires '--in-flight'");
    KELP_TRY(exclude(o->profile, "profile", in_flight, "in-flight"));
    KELP_TRY(exclude(o->trace != NULL, "trace", in_flight, "in-flight"));
    KELP_TRY(exclude(o->plot || o->svg != NULL, o->plot ? "plot" : "svg", in_flight, "in-flight"));
    KELP_TRY(exclude(strcmp(o->concurrency, "1") != 0, "concurrency", in_flight, "in-flight"));
    KELP_TRY(exclude(o->csv, "csv", o->json, "json"));
    KELP_TRY(exclude(o->csv, "csv", o->profile, "profile"));
    if (is_remote)
        threads = (numbers){.items = {0}, .count = 1};
    *out_count = 0;
    for (size_t t = 0; t < threads.count; t++) {
        for (size_t c = 0; c < concurrency.count; c++) {
            if (*out_count == KELP_BENCH_ROWS_MAX)
                return KELP_ERROR(KELP_INVALID_ARGUMENT,
                                  "options '--threads' and '--concurrency': expected at most %d "
                                  "measurements",
                                  KELP_BENCH_ROWS_MAX);
            rows[(*out_count)++] =
                (kelp_bench_row){.threads = threads.items[t], .concurrency = concurrency.items[c]};
        }
    }
    return NULL;
}

static kelp_status *save_svg(const kelp_bench_report *report) {
    kelp_buf drawing;
    kelp_buf_init(&drawing, kelp_allocator_system());
    kelp_bench_put_svg(report, &drawing);
    kelp_status *status = kelp_buf_status(&drawing);
    if (status == NULL)
        status = kelp_fs_write(report->options->svg, drawing.data, drawing.length);
    kelp_buf_deinit(&drawing);
    return status != NULL ? KELP_ANNOTATE(status, "cannot write the plot") : NULL;
}

static kelp_status *put_report(const kelp_bench_report *report, kelp_buf *text) {
    const kelp_bench_options *o = report->options;
    if (o->csv)
        kelp_bench_put_csv(report, text);
    else if (o->json)
        kelp_bench_put_json(report, text);
    else
        kelp_bench_put_table(report, text);
    bool readable = !o->csv && !o->json;
    if (o->plot && readable)
        kelp_bench_put_plot(report, text);
    if (o->profile && readable) {
        kelp_buf_append_char(text, '\n');
        KELP_TRY(kelp_profile_put_nodes(report->profile, text));
    }
    if (o->svg != NULL)
        KELP_TRY(save_svg(report));
    return o->trace != NULL ? kelp_profile_save_trace(report->profile, o->trace) : NULL;
}

static int print(const kelp_bench_report *report) {
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_status *status = put_report(report, &text);
    if (status == NULL)
        status = kelp_cli_print(&text);
    kelp_buf_deinit(&text);
    return kelp_cli_finish(status);
}

/* Measures a row, and sets `*out_failed` if the reason of a failure has been printed. */
static kelp_status *measure(const kelp_bench_options *o, kelp_bench_row *row, bool *out_failed) {
    return kelp_bench_is_remote(o) ? kelp_bench_measure_server(o, row)
                                   : kelp_bench_measure(o, row, out_failed);
}

static int run(const kelp_command *command, void *options) {
    const kelp_bench_options *o = options;
    kelp_bench_row rows[KELP_BENCH_ROWS_MAX];
    size_t count = 0;
    kelp_status *status = plan_rows(o, rows, &count);
    if (status != NULL)
        return kelp_cli_usage(command, status);
    for (size_t i = 0; i < count; i++) {
        bool failed = false;
        status = measure(o, &rows[i], &failed);
        if (status != NULL)
            return kelp_cli_finish(status);
        if (failed)
            return KELP_EXIT_FAILURE;
    }
    kelp_profile profile = {0};
    if (o->profile || o->trace != NULL)
        status = kelp_bench_profile(o, rows[0].threads, &profile);
    int code = kelp_cli_finish(status);
    const kelp_bench_report report = {o, rows, count, &profile};
    if (code == KELP_EXIT_OK)
        code = print(&report);
    kelp_profile_deinit(&profile);
    return code;
}

const kelp_command kelp_cmd_bench = {
    .name = "bench",
    .summary = "measure latency, throughput, load time and memory of a model",
    .usage = "MODEL.onnx|FILE.plan|URL [options]",
    .details = "Runs the model repeatedly with one set of inputs, and prints a row for each number "
               "of threads\nand each concurrency. Each inference starts when the last one of its "
               "context has ended.\n"
               "A URL, http://HOST:PORT/v2/models/NAME, measures a model of a running server over "
               "HTTP.\n"
               "With --in-flight, each inference in flight has a fork of the model, as in a server "
               "with N\n"
               "instances; providers that run submissions themselves get all of them on one model.",
    .examples = "  kelp bench examples/models/digits/1/model.onnx --profile\n"
                "  kelp bench model.onnx --threads 1,2,4 --seconds 5 --shape ids=8x128 --json\n"
                "  kelp bench model.onnx --threads 1 --concurrency 1,2,4 --plot --svg plot.svg\n"
                "  kelp bench http://localhost:8000/v2/models/digits --concurrency 1,8,32 --csv\n"
                "  kelp bench model.onnx --threads 1 --in-flight 4 --models onnxruntime",
    .positional = "MODEL.onnx",
    .min_positionals = 1,
    .max_positionals = 1,
    .tables = KELP_ARG_TABLE(specs),
    .options_bytes = sizeof(kelp_bench_options),
    .defaults = defaults,
    .run = run,
};
