/* SPDX-License-Identifier: Apache-2.0 */
/* kelp bench: measures load time, latency and peak memory of a model. A child process measures each
 * number of threads, so that peak memory belongs to that run. It writes its result to a pipe. */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/text/json.h"
#include "cli/in_flight.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct bench_options {
    kelp_arg_list positionals;
    const char *threads;
    double seconds;
    kelp_model_options model;
    int64_t in_flight; /* 0: measure latencies */
    const char *models;
    bool profile, json;
} bench_options;

#define AT(member) offsetof(bench_options, member)
static const kelp_arg_spec specs[] = {
    {.name = "threads",
     .letter = 't',
     .kind = KELP_OPTION_TEXT,
     .offset = AT(threads),
     .value = "N,N,…",
     .help = "numbers of threads to measure (1,2)"},
    {.name = "seconds",
     .kind = KELP_ARG_F64,
     .offset = AT(seconds),
     .value = "S",
     .help = "duration of each measurement in seconds (3); at least ten runs"},
    KELP_CLI_INPUT(AT(model.inputs),
                   "an input; other inputs are random as with 'kelp run --random'", NULL),
    KELP_CLI_SHAPE(AT(model.shapes), "shape of an input with dynamic dimensions (1 each)"),
    KELP_CLI_MODEL_OPTIONS(AT(model)),
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
    {.name = "profile",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(profile),
     .help = "also print the time of each node and the algorithm chosen for it"},
    {.name = "json", .kind = KELP_OPTION_BOOL, .offset = AT(json), .help = "print JSON"},
};
#undef AT

#define MAX_RUNS 16
#define MAX_SAMPLES (1u << 20)
#define MIN_SAMPLES 10u
#define PROFILED_RUNS 10u

static void defaults(void *options) {
    bench_options *o = options;
    o->threads = "1,2";
    o->models = "cpu";
    o->model.precision = KELP_CLI_PRECISION_DEFAULT;
    o->seconds = 3;
}

typedef struct result {
    int64_t threads;
    uint64_t load_ns; /* from file to ready */
    uint64_t first_ns;
    uint64_t median_ns, p90_ns, p99_ns;
    uint64_t runs;
    uint64_t peak_bytes;
    kelp_in_flight_result in_flight;
} result;

/* ---- time of each node ---- */
/* One step of a run. Strings live in the profile's arena. */
typedef struct bench_step {
    const char *op_type, *name;
    const char *algorithm; /* NULL: there is no choice */
    uint64_t duration_ns;  /* of all runs */
} bench_step;

typedef struct bench_profile {
    kelp_arena strings;
    bench_step *steps;
    size_t count, capacity;
    uint64_t runs, total_ns;
    kelp_status *failed; /* of the callback */
} bench_profile;

static kelp_status *add_step(bench_profile *p, const char *op_type, const char *name,
                             const char *algorithm) {
    const char *const texts[] = {op_type, name, algorithm};
    char *copies[KELP_COUNT(texts)] = {NULL};
    for (size_t i = 0; i < KELP_COUNT(texts); i++) {
        if (texts[i] != NULL)
            copies[i] = kelp_arena_strndup(&p->strings, texts[i], strlen(texts[i]));
        if (texts[i] != NULL && copies[i] == NULL)
            return kelp_status_oom();
    }
    KELP_TRY(kelp_grow(p->strings.allocator, (void **)&p->steps, &p->capacity, p->count + 1,
                       sizeof *p->steps));
    p->steps[p->count++] =
        (bench_step){.op_type = copies[0], .name = copies[1], .algorithm = copies[2]};
    return NULL;
}

/* Steps come in the same order in each run. */
static void note_step(void *userp, size_t step, const char *op_type, const char *name,
                      const char *algorithm, uint64_t duration_ns) {
    bench_profile *p = userp;
    if (p->failed == NULL && step == p->count)
        p->failed = add_step(p, op_type, name, algorithm);
    if (step < p->count)
        p->steps[step].duration_ns += duration_ns;
    p->total_ns += duration_ns;
}

/* Invokes the context `runs` times and adds up the time of each step. UNIMPLEMENTED by providers
 * that do not measure. */
static kelp_status *profile_init(bench_profile *profile, kelp_context *context, uint64_t runs) {
    *profile = (bench_profile){.runs = runs};
    kelp_arena_init(&profile->strings, kelp_allocator_system(), 0);
    KELP_TRY(kelp_context_set_profiler(context, note_step, profile));
    kelp_status *status = NULL;
    for (uint64_t i = 0; i < runs && status == NULL; i++)
        status = kelp_context_invoke(context);
    kelp_status_free(kelp_context_set_profiler(context, NULL, NULL)); /* succeeded above */
    if (status == NULL) {
        status = profile->failed;
        profile->failed = NULL;
    }
    return status;
}

static void profile_deinit(bench_profile *profile) {
    kelp_free(profile->strings.allocator, profile->steps,
              profile->capacity * sizeof *profile->steps);
    kelp_arena_deinit(&profile->strings);
    kelp_status_free(profile->failed);
}

/* Appends a table of the steps in the order in which they ran. */
static void profile_put_text(const bench_profile *p, kelp_buf *out) {
    KELP_ASSERT(p->runs > 0);
    static const char *const heads[] = {"operator", "algorithm", "mean", "share", "node"};
    kelp_table table;
    kelp_table_init(&table, KELP_COUNT(heads));
    for (size_t i = 0; i < KELP_COUNT(heads); i++)
        kelp_table_cell(&table, "%s", heads[i]);
    for (size_t i = 0; i < p->count; i++) {
        const bench_step *step = &p->steps[i];
        char text[32];
        kelp_table_cell(&table, "%s", step->op_type);
        kelp_table_cell(&table, "%s", step->algorithm != NULL ? step->algorithm : "-");
        kelp_table_cell(&table, "%s", kelp_cli_duration(step->duration_ns / p->runs, text));
        kelp_table_cell(&table, "%.1f %%",
                        p->total_ns ? 100.0 * (double)step->duration_ns / (double)p->total_ns
                                    : 0.0);
        kelp_table_cell(&table, "%s", step->name);
    }
    kelp_table_plain(&table, "", out);
}

static void profile_put_json(const bench_profile *p, kelp_json_writer *writer) {
    KELP_ASSERT(p->runs > 0);
    kelp_json_begin_array(writer);
    for (size_t i = 0; i < p->count; i++) {
        const bench_step *step = &p->steps[i];
        kelp_json_begin_object(writer);
        kelp_json_key(writer, "operator");
        kelp_json_put_cstr(writer, step->op_type);
        kelp_json_key(writer, "node");
        kelp_json_put_cstr(writer, step->name);
        if (step->algorithm != NULL) {
            kelp_json_key(writer, "algorithm");
            kelp_json_put_cstr(writer, step->algorithm);
        }
        kelp_json_key(writer, "mean_ns");
        kelp_json_put_u64(writer, step->duration_ns / p->runs);
        kelp_json_end_object(writer);
    }
    kelp_json_end_array(writer);
}

/* ---- measurement ---- */
static int smaller_first(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Draws a progress bar if stderr is a terminal. */
static void progress(int64_t threads, double done) {
    if (!isatty(STDERR_FILENO))
        return;
    char bar[31];
    int filled = (int)(done * 30);
    for (int i = 0; i < 30; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[30] = '\0';
    fprintf(stderr, "\r%lld thread%s [%s] %3.0f %%", (long long)threads, threads == 1 ? "" : "s",
            bar, done * 100);
    if (done >= 1)
        fprintf(stderr, "\r%60s\r", "");
}

static kelp_status *sample(const bench_options *o, kelp_context *context, uint64_t *samples,
                           result *out) {
    uint64_t began_ns = kelp_now_ns(), last_bar_ns = began_ns, now_ns = began_ns;
    uint64_t limit_ns = (uint64_t)(o->seconds * 1e9);
    size_t count = 0;
    while (count < MAX_SAMPLES && (count < MIN_SAMPLES || now_ns - began_ns < limit_ns)) {
        uint64_t before_ns = kelp_now_ns();
        KELP_TRY(kelp_context_invoke(context));
        now_ns = kelp_now_ns();
        samples[count++] = now_ns - before_ns;
        if (now_ns - last_bar_ns > 100000000u) {
            last_bar_ns = now_ns;
            double done = limit_ns ? (double)(now_ns - began_ns) / (double)limit_ns : 0;
            progress(out->threads, KELP_MIN(done, 0.99));
        }
    }
    KELP_ASSERT(count >= MIN_SAMPLES);
    progress(out->threads, 1);
    qsort(samples, count, sizeof *samples, smaller_first);
    out->runs = count;
    out->median_ns = samples[count / 2];
    out->p90_ns = samples[count * 9 / 10];
    out->p99_ns = samples[count * 99 / 100];
    return NULL;
}

static kelp_status *load(const bench_options *o, int64_t threads, kelp_cli_model *model) {
    return kelp_cli_model_open(&o->model, o->positionals.items[0], (int)threads, true, model);
}

static kelp_status *bind(const bench_options *o, const kelp_cli_model *model, kelp_inputs *inputs) {
    return kelp_cli_model_bind(&o->model, model, KELP_FILL_RANDOM, inputs);
}

static kelp_status *measure_in_flight(const bench_options *o, result *out) {
    kelp_in_flight_options options = {.model = &o->model,
                                      .path = o->positionals.items[0],
                                      .provider = o->models,
                                      .threads = (int)out->threads,
                                      .count = (size_t)o->in_flight,
                                      .seconds = o->seconds};
    return kelp_in_flight_measure(&options, &out->in_flight);
}

static kelp_status *measure(const bench_options *o, kelp_cli_model *model, kelp_inputs *inputs,
                            result *out) {
    if (o->in_flight > 0)
        return measure_in_flight(o, out);
    uint64_t began_ns = kelp_now_ns();
    KELP_TRY(load(o, out->threads, model));
    out->load_ns = kelp_now_ns() - began_ns;
    KELP_TRY(bind(o, model, inputs));
    began_ns = kelp_now_ns();
    KELP_TRY(kelp_context_invoke(model->context));
    out->first_ns = kelp_now_ns() - began_ns;
    uint64_t *samples;
    size_t bytes = MAX_SAMPLES * sizeof *samples;
    KELP_TRY(kelp_alloc(kelp_allocator_system(), bytes, (void **)&samples));
    kelp_status *status = sample(o, model->context, samples, out);
    kelp_free(kelp_allocator_system(), samples, bytes);
    return status;
}

/* Runs the child process. It prints its own failure, because a status cannot be passed between
 * processes. */
static _Noreturn void child(const bench_options *o, result *out, int pipe_fd) {
    kelp_cli_model model = {0};
    kelp_inputs inputs = {0};
    int code = kelp_cli_finish(measure(o, &model, &inputs, out));
    kelp_cli_model_deinit(&model);
    kelp_inputs_deinit(&inputs);
    if (!code && write(pipe_fd, out, sizeof *out) != (ssize_t)sizeof *out)
        code = KELP_EXIT_FAILURE;
    _exit(code);
}

/* Sets *out_failed if the child failed and printed the reason. */
static kelp_status *measure_in_child(const bench_options *o, result *inout, bool *out_failed) {
    int ends[2];
    if (pipe(ends))
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "cannot create a pipe: %s", strerror(errno));
    int64_t threads = inout->threads;
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        child(o, inout, ends[1]);
    }
    close(ends[1]);
    ssize_t length = pid < 0 ? -1 : read(ends[0], inout, sizeof *inout);
    close(ends[0]);
    if (pid < 0)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "cannot fork: %s", strerror(errno));
    int code = 0;
    struct rusage usage;
    if (wait4(pid, &code, 0, &usage) != pid)
        return KELP_ERROR(KELP_INTERNAL, "cannot wait for the measurement: %s", strerror(errno));
    if (WIFSIGNALED(code))
        return KELP_ERROR(KELP_INTERNAL,
                          "the measurement with %lld threads was terminated by signal %d",
                          (long long)threads, WTERMSIG(code));
    *out_failed = WEXITSTATUS(code) != 0 || length != (ssize_t)sizeof *inout;
    inout->peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
    return NULL;
}

/* Profiles some runs with `threads` threads, after one that is not counted. */
static kelp_status *profile_nodes(const bench_options *o, int64_t threads, bench_profile *out) {
    kelp_cli_model model = {0};
    kelp_inputs inputs = {0};
    kelp_status *status = load(o, threads, &model);
    if (status == NULL)
        status = bind(o, &model, &inputs);
    if (status == NULL)
        status = kelp_context_invoke(model.context);
    if (status == NULL)
        status = profile_init(out, model.context, PROFILED_RUNS);
    kelp_cli_model_deinit(&model);
    kelp_inputs_deinit(&inputs);
    return status;
}

static kelp_status *parse_threads(const char *text, result *results, size_t *out_count) {
    *out_count = 0;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ",");
        int64_t threads;
        if (*out_count == MAX_RUNS || !kelp_parse_i64((kelp_str){at, length}, &threads) ||
            threads < 1 || threads > KELP_CLI_THREADS_MAX)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "option '--threads': expected at most %d numbers from 1 to %d, "
                              "found '%s'",
                              MAX_RUNS, KELP_CLI_THREADS_MAX, text);
        results[(*out_count)++] = (result){.threads = threads};
        at += length + (at[length] == ',');
    }
    if (*out_count == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "option '--threads': expected numbers, found ''");
    return NULL;
}

static void put_text(const result *results, size_t count, kelp_buf *out) {
    static const char *const heads[] = {"threads", "load", "first", "median",
                                        "p90",     "p99",  "runs",  "peak memory"};
    kelp_table table;
    kelp_table_init(&table, KELP_COUNT(heads));
    for (size_t i = 0; i < KELP_COUNT(heads); i++)
        kelp_table_cell(&table, "%s", heads[i]);
    for (size_t i = 0; i < count; i++) {
        const result *r = &results[i];
        const uint64_t durations[] = {r->load_ns, r->first_ns, r->median_ns, r->p90_ns, r->p99_ns};
        char text[32];
        kelp_table_cell(&table, "%lld", (long long)r->threads);
        for (size_t d = 0; d < KELP_COUNT(durations); d++)
            kelp_table_cell(&table, "%s", kelp_cli_duration(durations[d], text));
        kelp_table_cell(&table, "%llu", (unsigned long long)r->runs);
        kelp_table_cell(&table, "%s", kelp_cli_bytes(r->peak_bytes, text));
    }
    kelp_table_plain(&table, "", out);
}

static double per_second(const kelp_in_flight_result *r) {
    return r->elapsed_ns > 0 ? (double)r->runs * 1e9 / (double)r->elapsed_ns : 0;
}

static void put_in_flight_text(const bench_options *o, const result *results, size_t count,
                               kelp_buf *out) {
    static const char *const heads[] = {"threads",    "in flight", "load",       "runs",
                                        "per second", "copied",    "peak memory"};
    kelp_table table;
    kelp_table_init(&table, KELP_COUNT(heads));
    for (size_t i = 0; i < KELP_COUNT(heads); i++)
        kelp_table_cell(&table, "%s", heads[i]);
    for (size_t i = 0; i < count; i++) {
        const kelp_in_flight_result *r = &results[i].in_flight;
        char text[32];
        kelp_table_cell(&table, "%lld", (long long)results[i].threads);
        kelp_table_cell(&table, "%lld", (long long)o->in_flight);
        kelp_table_cell(&table, "%s", kelp_cli_duration(r->load_ns, text));
        kelp_table_cell(&table, "%llu", (unsigned long long)r->runs);
        kelp_table_cell(&table, "%.1f", per_second(r));
        kelp_table_cell(&table, "%llu inputs", (unsigned long long)r->copies.inputs);
        kelp_table_cell(&table, "%s", kelp_cli_bytes(results[i].peak_bytes, text));
    }
    kelp_table_plain(&table, "", out);
}

static void put_in_flight_json(const bench_options *o, const result *r, kelp_json_writer *w) {
    const struct {
        const char *key;
        uint64_t value;
    } members[] = {
        {"threads", (uint64_t)r->threads},
        {"in_flight", (uint64_t)o->in_flight},
        {"load_ns", r->in_flight.load_ns},
        {"runs", r->in_flight.runs},
        {"elapsed_ns", r->in_flight.elapsed_ns},
        {"copied_inputs", r->in_flight.copies.inputs},
        {"copied_input_bytes", r->in_flight.copies.input_bytes},
        {"peak_rss_bytes", r->peak_bytes},
    };
    kelp_json_begin_object(w);
    for (size_t m = 0; m < KELP_COUNT(members); m++) {
        kelp_json_key(w, members[m].key);
        kelp_json_put_u64(w, members[m].value);
    }
    kelp_json_key(w, "per_second");
    kelp_json_put_f64(w, per_second(&r->in_flight));
    kelp_json_end_object(w);
}

static void put_latencies_json(const result *r, kelp_json_writer *w) {
    const struct {
        const char *key;
        uint64_t value;
    } members[] = {
        {"threads", (uint64_t)r->threads},
        {"load_ns", r->load_ns},
        {"first_ns", r->first_ns},
        {"median_ns", r->median_ns},
        {"p90_ns", r->p90_ns},
        {"p99_ns", r->p99_ns},
        {"runs", r->runs},
        {"peak_rss_bytes", r->peak_bytes},
    };
    kelp_json_begin_object(w);
    for (size_t m = 0; m < KELP_COUNT(members); m++) {
        kelp_json_key(w, members[m].key);
        kelp_json_put_u64(w, members[m].value);
    }
    kelp_json_end_object(w);
}

static void put_json(const bench_options *o, const result *results, size_t count,
                     const bench_profile *profile, kelp_buf *out) {
    kelp_json_writer w;
    kelp_json_writer_init(&w, out);
    kelp_json_begin_object(&w);
    kelp_json_key(&w, "model");
    kelp_json_put_cstr(&w, o->positionals.items[0]);
    kelp_json_key(&w, "results");
    kelp_json_begin_array(&w);
    for (size_t i = 0; i < count; i++) {
        if (o->in_flight > 0)
            put_in_flight_json(o, &results[i], &w);
        else
            put_latencies_json(&results[i], &w);
    }
    kelp_json_end_array(&w);
    if (profile->runs > 0) {
        kelp_json_key(&w, "profile");
        profile_put_json(profile, &w);
    }
    kelp_json_end_object(&w);
    kelp_buf_append_char(out, '\n');
}

static int print(const bench_options *o, const result *results, size_t count,
                 const bench_profile *profile) {
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    if (o->json) {
        put_json(o, results, count, profile, &text);
    } else {
        if (o->in_flight > 0)
            put_in_flight_text(o, results, count, &text);
        else
            put_text(results, count, &text);
        if (profile->runs > 0) {
            kelp_buf_append_char(&text, '\n');
            profile_put_text(profile, &text);
        }
    }
    int code = kelp_cli_finish(kelp_cli_print(&text));
    kelp_buf_deinit(&text);
    return code;
}

static int run(const kelp_command *command, void *options) {
    const bench_options *o = options;
    result results[MAX_RUNS];
    size_t count = 0;
    kelp_status *status = parse_threads(o->threads, results, &count);
    if (status == NULL && !(o->seconds >= 0 && o->seconds <= 3600))
        status = KELP_ERROR(KELP_INVALID_ARGUMENT, "option '--seconds': expected 0 to 3600");
    if (status == NULL && o->in_flight == 0 && strcmp(o->models, "cpu") != 0)
        status = KELP_ERROR(KELP_INVALID_ARGUMENT, "option '--models' requires '--in-flight'");
    if (status == NULL && o->in_flight > 0 && o->profile)
        status = KELP_ERROR(KELP_INVALID_ARGUMENT,
                            "options '--profile' and '--in-flight' exclude each other");
    if (status != NULL)
        return kelp_cli_usage(command, status);
    for (size_t i = 0; i < count; i++) {
        bool failed = false;
        status = measure_in_child(o, &results[i], &failed);
        if (status != NULL)
            return kelp_cli_finish(status);
        if (failed)
            return KELP_EXIT_FAILURE;
    }
    bench_profile profile = {0};
    status = o->profile ? profile_nodes(o, results[0].threads, &profile) : NULL;
    int code = kelp_cli_finish(status);
    if (code == KELP_EXIT_OK)
        code = print(o, results, count, &profile);
    profile_deinit(&profile);
    return code;
}

const kelp_command kelp_cmd_bench = {
    .name = "bench",
    .summary = "measure load time, latency and memory of a model",
    .usage = "MODEL.onnx|FILE.plan [options]",
    .details = "Runs the model repeatedly with one set of inputs, and prints a row per number of "
               "threads.\n"
               "With --in-flight, each inference in flight has a fork of the model, as in a server "
               "with N\n"
               "instances; providers that run submissions themselves get all of them on one model.",
    .examples = "  kelp bench examples/models/digits/1/model.onnx --profile\n"
                "  kelp bench model.onnx --threads 1,2,4 --seconds 5 --shape ids=8x128 --json\n"
                "  kelp bench model.onnx --threads 1 --in-flight 4 --models onnxruntime",
    .positional = "MODEL.onnx",
    .min_positionals = 1,
    .max_positionals = 1,
    .tables = KELP_ARG_TABLE(specs),
    .options_bytes = sizeof(bench_options),
    .defaults = defaults,
    .run = run,
};
