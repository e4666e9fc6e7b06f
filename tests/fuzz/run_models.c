/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs generated or mutated models, which graphs.py and mutants.py write, and prints the outcome of
 * each. No content of a model may end the process, stall it, or leak memory.
 *
 * usage: run_models DIR [--isas 013] [--seconds N] [--memory MIB] [--plans N [--seed N]]
 * DIR/cases.txt lists the cases (see gen_cases.py). Each is loaded, planned and run twice with and
 * without fusion, for each instruction set. Without an expected output, every output is accepted.
 * Prints a line for each case: its outcome, name and message, separated by tabs. Outcomes: same,
 * different, refused, ran (no expected output), late (canceled after N seconds of CPU time),
 * crashed, stalled (did not react to the cancellation), leaked.
 *
 * --plans: instead, each model is built into a plan, of which N modified copies are loaded,
 * described and run; every output is accepted.
 *
 * A worker runs the cases one after another. If it dies, the parent records the case and forks the
 * next worker.
 */
#include "mutate_plan.h"
#include "cpu/kernels/cpu_features.h"
#include "support/case_file.h"
#include "support/compare.h"

#include <kelp/builder.h>
#include <kelp/engine.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef enum outcome {
    SAME,
    DIFFERENT,
    REFUSED,
    RAN,
    LATE,
    LEAKED,
} outcome;
static const char *const outcome_names[] = {"same", "different", "refused",
                                            "ran",  "late",      "leaked"};

typedef struct settings {
    const char *directory, *isas;
    double seconds;
    size_t memory_bytes, plans, seed;
} settings;

/* The state of the worker that the parent reads. */
typedef struct progress {
    size_t at, plan; /* the current case, and its modified plan */
    size_t plans, loaded, ran;
} progress;

/* ---- memory of the exact size, with a budget ---- */
typedef struct budget {
    atomic_size_t live_bytes;
    size_t most_bytes;
} budget;

static void *budget_realloc(void *userp, void *pointer, size_t old_size, size_t new_size,
                            size_t alignment) {
    budget *b = userp;
    if (new_size == 0) {
        atomic_fetch_sub(&b->live_bytes, old_size);
        free(pointer);
        return NULL;
    }
    size_t live = atomic_load(&b->live_bytes);
    void *fresh = NULL;
    if (new_size > b->most_bytes || live > b->most_bytes - new_size ||
        posix_memalign(&fresh, alignment < sizeof(void *) ? sizeof(void *) : alignment, new_size))
        return NULL;
    size_t kept = old_size < new_size ? old_size : new_size;
    if (pointer != NULL && kept > 0)
        memcpy(fresh, pointer, kept);
    memset((char *)fresh + kept, 0xFF, new_size - kept); /* NaN, so that no code relies on it */
    free(pointer);
    atomic_fetch_add(&b->live_bytes, new_size);
    atomic_fetch_sub(&b->live_bytes, old_size);
    return fresh;
}

/* ---- time ---- */
static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool is_late(void *userp) {
    return cpu_seconds() > *(const double *)userp;
}

/* ---- a model in a configuration ---- */
typedef struct attempt {
    kelp_runtime *runtime;
    double deadline;
    bool fused;
    size_t plans, seed; /* modified copies of each plan, and the seed of the first one */
} attempt;

/* Exact copies, so that the sanitizer detects reads past the end. */
static kelp_status *bind(const test_case *c, kelp_engine *engine, kelp_context *context,
                         void **copies) {
    for (uint32_t i = 0; i < c->input_count; i++) {
        kelp_tensor tensor = c->inputs[i].tensor;
        size_t index = kelp_engine_find_input(engine, c->inputs[i].name);
        size_t size = kelp_tensor_bytes(&tensor);
        if (index == SIZE_MAX)
            continue;
        if (tensor.dtype != KELP_LIST && tensor.dtype != KELP_STRING) {
            if (copies[i] == NULL && posix_memalign(&copies[i], 64, size > 0 ? size : 1) != 0)
                exit(2);
            if (size > 0)
                memcpy(copies[i], tensor.data, size);
            tensor.data = copies[i];
        }
        KELP_TRY(kelp_context_set_input(context, index, &tensor));
    }
    return NULL;
}

static void compare(const test_case *c, kelp_engine *engine, kelp_context *context, int round,
                    char *why, size_t room) {
    for (uint32_t i = 0; i < c->output_count && *why == '\0'; i++) {
        char text[1000];
        size_t index = kelp_engine_find_output(engine, c->outputs[i].name);
        if (index == SIZE_MAX)
            snprintf(why, room, "there is no output '%s'", c->outputs[i].name);
        else if (!test_same(kelp_context_output(context, index), &c->outputs[i].tensor, c->rtol,
                            c->atol, text, sizeof text))
            snprintf(why, room, "output '%s' %s (round %d)", c->outputs[i].name, text, round);
    }
}

static kelp_status *run(attempt *a, const char *model, const test_case *c, char *why, size_t room) {
    kelp_engine_options options = {.struct_size = sizeof options, .disable_fusion = !a->fused};
    kelp_graph *graph = NULL;
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    void **copies = calloc(c->input_count + 1, sizeof *copies);
    if (copies == NULL)
        exit(2);
    kelp_status *status =
        kelp_graph_load_file(kelp_runtime_allocator(a->runtime), model, NULL, &graph);
    if (status == NULL)
        status = kelp_engine_create(a->runtime, graph, &options, &engine);
    if (status == NULL)
        status = kelp_context_create(engine, &context);
    if (status == NULL)
        kelp_context_set_interrupt(context, is_late, &a->deadline);
    for (int round = 0; status == NULL && round < 2 && *why == '\0'; round++) {
        status = bind(c, engine, context, copies);
        if (status == NULL)
            status = kelp_context_invoke(context);
        if (status == NULL)
            compare(c, engine, context, round, why, room);
    }
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    kelp_graph_release(graph);
    for (uint32_t i = 0; i < c->input_count; i++)
        free(copies[i]);
    free(copies);
    return status;
}

/* ---- the plans of a model ---- */
static void forget(void *userp, const char *text, size_t length) {
    (void)userp, (void)text, (void)length;
}

/* Builds the model as a plan, with or without refit. */
static kelp_status *build_plan(attempt *a, const char *model, kelp_blob **out) {
    kelp_builder *builder = NULL;
    kelp_network *network = NULL;
    kelp_builder_config *config = NULL;
    kelp_status *status = kelp_builder_create(a->runtime, "cpu", &builder);
    if (status == NULL)
        status = kelp_builder_parse_file(builder, model, &network);
    if (status == NULL)
        status = kelp_builder_create_config(builder, &config);
    if (status == NULL)
        status = kelp_builder_config_set_flags(config, a->fused ? 0 : KELP_BUILD_REFIT);
    if (status == NULL)
        status = kelp_builder_build(builder, network, config, out);
    kelp_builder_config_release(config);
    kelp_network_release(network);
    kelp_builder_release(builder);
    return status;
}

static kelp_status *run_plan(attempt *a, const test_case *c, const char *plan, size_t size,
                             void **copies, progress *shared) {
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    kelp_status *status = kelp_engine_load(a->runtime, plan, size, "plan", NULL, NULL, &engine);
    shared->plans++;
    shared->loaded += status == NULL;
    if (status == NULL)
        status = kelp_engine_inspect(engine, true, forget, NULL);
    if (status == NULL)
        status = kelp_context_create(engine, &context);
    if (status == NULL)
        kelp_context_set_interrupt(context, is_late, &a->deadline);
    if (status == NULL)
        status = bind(c, engine, context, copies);
    if (status == NULL)
        status = kelp_context_invoke(context);
    shared->ran += status == NULL;
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    return status;
}

static kelp_status *run_plans(attempt *a, const char *model, const test_case *c, progress *shared) {
    kelp_blob *plan = NULL;
    void **copies = calloc(c->input_count + 1, sizeof *copies);
    double seconds = a->deadline - cpu_seconds();
    kelp_status *status = build_plan(a, model, &plan);
    for (shared->plan = 0; status == NULL && shared->plan < a->plans; shared->plan++) {
        void *changed = NULL;
        size_t size = kelp_blob_size(plan);
        if (copies == NULL || posix_memalign(&changed, 64, size) != 0)
            exit(2);
        memcpy(changed, kelp_blob_data(plan), size);
        size = mutate_plan(a->seed + 2 * shared->plan, changed, size);
        a->deadline = cpu_seconds() + seconds;
        kelp_status_free(run_plan(a, c, changed, size, copies, shared));
        free(changed);
    }
    kelp_blob_release(plan);
    for (uint32_t i = 0; i < c->input_count && copies != NULL; i++)
        free(copies[i]);
    free(copies);
    return status;
}

/* Replaces tabs and line ends, which separate fields. */
static void flatten(char *text) {
    for (; *text != '\0'; text++)
        if (*text == '\n' || *text == '\t')
            *text = ' ';
}

static outcome run_one_way(const settings *s, const char *model, const test_case *c, int isa,
                           bool fused, progress *shared, char *why, size_t room) {
    budget memory = {.most_bytes = s->memory_bytes};
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    options.allocator = (kelp_allocator){budget_realloc, &memory};
    attempt a = {.deadline = cpu_seconds() + s->seconds, .fused = fused, .plans = s->plans};
    a.seed = (s->seed + shared->at) * 2 * s->plans + fused;
    outcome result = c->output_count > 0 && s->plans == 0 ? SAME : RAN;
    kelp_cpu_isa_limit((kelp_cpu_isa)isa);
    kelp_status *status = kelp_runtime_create(&options, &a.runtime);
    if (status == NULL)
        status = s->plans > 0 ? run_plans(&a, model, c, shared) : run(&a, model, c, why, room);
    if (status != NULL) {
        result = kelp_status_code(status) == KELP_CANCELLED ? LATE : REFUSED;
        kelp_status_format(status, why, room);
        kelp_status_free(status);
    } else if (*why != '\0') {
        result = DIFFERENT;
    }
    kelp_runtime_release(a.runtime);
    if (atomic_load(&memory.live_bytes) > 0) {
        snprintf(why, room, "%zu bytes are live at the end", atomic_load(&memory.live_bytes));
        result = LEAKED;
    }
    return result;
}

/* The first configuration that fails determines the result. It is also a difference if only some
 * configurations reject the model. */
static outcome run_every_way(const settings *s, const char *model, const test_case *c,
                             progress *shared, char *why, size_t room) {
    outcome result = RAN;
    char how[64] = "", text[2048];
    for (const char *isa = s->isas; *isa != '\0'; isa++) {
        for (int fused = 0; fused < 2; fused++) {
            *text = '\0';
            outcome found = run_one_way(s, model, c, *isa - '0', fused, shared, text, sizeof text);
            bool first = *how == '\0';
            snprintf(how, sizeof how, "isa %c, fusion %s", *isa, fused ? "on" : "off");
            if (found == LATE || found == LEAKED || found == DIFFERENT) {
                snprintf(why, room, "%s: %s", how, text);
                return found;
            }
            if (!first && found != result) {
                snprintf(why, room, "%s alone: %s %s", how, outcome_names[found],
                         found == REFUSED ? text : why);
                return DIFFERENT;
            }
            result = found;
            snprintf(why, room, "%s", text);
        }
    }
    return result;
}

/* ---- the worker ---- */
static void work(const settings *s, char **names, size_t count, progress *shared) {
    for (; shared->at < count; shared->at++) {
        char path[4096], why[2200] = "";
        test_case c;
        alarm((unsigned)(s->seconds * 60 *
                         (double)(s->plans + 1))); /* detects a wait, which uses no CPU time */
        /* the interrupt is polled between nodes only */
        double most = s->seconds * 12 * (double)(s->plans + 1);
        struct rlimit limit = {(rlim_t)(cpu_seconds() + most), RLIM_INFINITY};
        setrlimit(RLIMIT_CPU, &limit);
        snprintf(path, sizeof path, "%s/%s.bin", s->directory, names[shared->at]);
        test_case_read(&c, path);
        snprintf(path, sizeof path, "%s/%s.onnx", s->directory, names[shared->at]);
        outcome result = run_every_way(s, path, &c, shared, why, sizeof why);
        flatten(why);
        printf("%s\t%s\t%s\n", outcome_names[result], names[shared->at], why);
        fflush(stdout);
        test_case_free(&c);
    }
    exit(0); /* the leak sanitizer checks now */
}

static char **read_names(const char *directory, size_t *out_count) {
    char path[4096], name[512];
    char **names = NULL;
    snprintf(path, sizeof path, "%s/cases.txt", directory);
    FILE *list = fopen(path, "r");
    if (list == NULL) {
        fprintf(stderr, "there is no '%s'\n", path);
        exit(2);
    }
    *out_count = 0;
    while (fgets(name, sizeof name, list) != NULL) {
        name[strcspn(name, "\n")] = '\0';
        names = realloc(names, (*out_count + 1) * sizeof *names);
        if (names == NULL || (names[*out_count] = strdup(name)) == NULL)
            exit(2);
        ++*out_count;
    }
    fclose(list);
    return names;
}

int main(int argc, char **argv) {
    settings s = {.directory = argc > 1 ? argv[1] : ".", .isas = "013", .seconds = 10};
    s.memory_bytes = (size_t)1 << 30;
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--isas") == 0)
            s.isas = argv[i + 1];
        else if (strcmp(argv[i], "--seconds") == 0)
            s.seconds = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--memory") == 0)
            s.memory_bytes = (size_t)atoi(argv[i + 1]) << 20;
        else if (strcmp(argv[i], "--plans") == 0)
            s.plans = (size_t)atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            s.seed = (size_t)strtoull(argv[i + 1], NULL, 10);
    }
    size_t count = 0;
    char **names = read_names(s.directory, &count);
    progress *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 2;
    while (shared->at < count) {
        pid_t worker = fork();
        if (worker == 0)
            work(&s, names, count, shared);
        int ended = 0;
        if (worker < 0 || waitpid(worker, &ended, 0) < 0)
            return 2;
        if (WIFSIGNALED(ended) || (WEXITSTATUS(ended) != 0 && shared->at < count)) {
            int number = WIFSIGNALED(ended) ? WTERMSIG(ended) : 0;
            printf("%s\t%s\t%s %d, plan %zu\n",
                   number == SIGALRM || number == SIGXCPU ? "stalled" : "crashed",
                   names[shared->at], number ? "signal" : "exit status",
                   number ? number : WEXITSTATUS(ended), shared->plan);
            fflush(stdout);
            shared->at++;
        } else if (WEXITSTATUS(ended) != 0) {
            printf("leaked\t(some case)\tthe leak sanitizer's words are on standard error\n");
        }
    }
    if (s.plans > 0)
        fprintf(stderr, "%zu changed plans: %zu loaded, %zu ran\n", shared->plans, shared->loaded,
                shared->ran);
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    munmap(shared, sizeof *shared);
    return 0;
}
