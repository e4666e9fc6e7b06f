/* SPDX-License-Identifier: Apache-2.0 */
/* Measures a model of this process. A child process writes its result to a pipe. */
#include "cli/bench/bench.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "cli/cli.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROFILED_RUNS 10u

/* A model with one context per worker, and inputs that all of them read. */
typedef struct bench_model {
    kelp_cli_model model;
    kelp_inputs inputs;
    kelp_context **contexts; /* the first is that of the model */
    size_t count;
} bench_model;

static kelp_status *load_model(const kelp_bench_options *o, int64_t threads, bench_model *out) {
    return kelp_cli_model_open(&o->model, o->positionals.items[0], (int)threads, true, &out->model);
}

static kelp_status *bind_inputs(const kelp_bench_options *o, bench_model *inout) {
    return kelp_cli_model_bind(&o->model, &inout->model, KELP_FILL_RANDOM, &inout->inputs);
}

static void bench_model_deinit(bench_model *b) {
    for (size_t i = 1; b->contexts != NULL && i < b->count; i++)
        kelp_context_destroy(b->contexts[i]);
    kelp_free(kelp_allocator_system(), b->contexts, b->count * sizeof(kelp_context *));
    kelp_cli_model_deinit(&b->model);
    kelp_inputs_deinit(&b->inputs);
}

/* Creates the contexts, and runs the warm-up in each. */
static kelp_status *make_contexts(const kelp_bench_options *o, size_t count, bench_model *b) {
    KELP_TRY(kelp_alloc_zero(kelp_allocator_system(), count, sizeof(kelp_context *),
                             (void **)&b->contexts));
    b->count = count;
    b->contexts[0] = b->model.context;
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            KELP_TRY(kelp_context_create(b->model.engine, &b->contexts[i]));
            KELP_TRY(kelp_inputs_bind(&b->inputs, b->contexts[i]));
        }
        for (int64_t run = i == 0 ? 1 : 0; run < o->warmup; run++)
            KELP_TRY(kelp_context_invoke(b->contexts[i]));
    }
    return NULL;
}

static kelp_status *invoke(void *userp, size_t worker, bool *out_failed) {
    bench_model *b = userp;
    KELP_ASSERT(worker < b->count);
    *out_failed = false;
    return kelp_context_invoke(b->contexts[worker]);
}

static kelp_status *measure_in_flight(const kelp_bench_options *o, kelp_bench_row *out) {
    kelp_in_flight_options options = {.model = &o->model,
                                      .path = o->positionals.items[0],
                                      .provider = o->models,
                                      .threads = (int)out->threads,
                                      .count = (size_t)o->in_flight,
                                      .seconds = o->seconds};
    return kelp_in_flight_measure(&options, &out->in_flight);
}

static kelp_status *measure_model(const kelp_bench_options *o, bench_model *b,
                                  kelp_bench_row *out) {
    char label[64];
    uint64_t began_ns = kelp_now_ns();
    KELP_TRY(load_model(o, out->threads, b));
    out->load_ns = kelp_now_ns() - began_ns;
    KELP_TRY(bind_inputs(o, b));
    began_ns = kelp_now_ns();
    KELP_TRY(kelp_context_invoke(b->model.context));
    out->first_ns = kelp_now_ns() - began_ns;
    KELP_TRY(make_contexts(o, (size_t)out->concurrency, b));
    snprintf(label, sizeof label, "threads %lld, concurrency %lld", (long long)out->threads,
             (long long)out->concurrency);
    kelp_bench_load_options options = {.workers = (size_t)out->concurrency,
                                       .seconds = o->seconds,
                                       .label = label,
                                       .invoke = invoke,
                                       .userp = b};
    return kelp_bench_load_run(&options, &out->load);
}

/* Runs the child process. It prints its own failure, because a status cannot be passed between
 * processes. */
static _Noreturn void run_child(const kelp_bench_options *o, kelp_bench_row *out, int pipe_fd) {
    bench_model b = {0};
    int code =
        kelp_cli_finish(o->in_flight > 0 ? measure_in_flight(o, out) : measure_model(o, &b, out));
    bench_model_deinit(&b);
    if (!code && write(pipe_fd, out, sizeof *out) != (ssize_t)sizeof *out)
        code = KELP_EXIT_FAILURE;
    _exit(code);
}

kelp_status *kelp_bench_measure(const kelp_bench_options *options, kelp_bench_row *inout,
                                bool *out_failed) {
    int ends[2];
    if (pipe(ends))
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "cannot create a pipe: %s", strerror(errno));
    int64_t threads = inout->threads;
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        run_child(options, inout, ends[1]);
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

kelp_status *kelp_bench_profile(const kelp_bench_options *options, int64_t threads,
                                kelp_profile *out) {
    bench_model b = {0};
    kelp_status *status = load_model(options, threads, &b);
    if (status == NULL)
        status = bind_inputs(options, &b);
    if (status == NULL)
        status = kelp_context_invoke(b.model.context);
    if (status == NULL)
        status = kelp_profile_run(out, b.model.context, PROFILED_RUNS);
    bench_model_deinit(&b);
    return status;
}
