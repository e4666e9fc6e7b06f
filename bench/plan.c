/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load time and time of the first inference: a plan and the ONNX file with Kelp, and the ONNX file
 * with ONNX Runtime, interleaved. The results are compared.
 *
 * usage: bench_plan [--fresh] MODEL.onnx ROUNDS [NAME=1x128…]
 * All input elements are 1. Dynamic dimensions are 1 unless a shape is given. The plan is built for
 * these shapes before the measurement. The program prints medians, minima, maxima and ratios. A
 * first round warms up the file cache and is not counted. All loads happen in one process; with
 * --fresh, each load is the first of a new process, in which the libraries are already mapped.
 */
#include "base/clock.h"

#include <dlfcn.h>
#include <kelp/builder.h>
#include <kelp/compute.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAYS 3
#define MOST_ROUNDS 1001
#define MOST_ELEMENTS (1 << 18) /* of an answer, to compare */

typedef struct way {
    const char *label, *provider, *path;
    double load_us[MOST_ROUNDS], answer_us[MOST_ROUNDS]; /* the answer's with the load's */
    double again_us[MOST_ROUNDS];                        /* a second answer: what is arithmetic */
    int64_t faults;                                      /* pages of load and first answer */
    int64_t elements;
    float first[MOST_ELEMENTS]; /* output 0 of the last round */
} way;

static char plan_path[] = "bench-plan-XXXXXX"; /* gone when the program ends, however it ends */

static void remove_plan(void) {
    unlink(plan_path);
}

static void must(kelp_status *status, const char *who) {
    char text[2048];
    if (status == NULL)
        return;
    kelp_status_format(status, text, sizeof text);
    fprintf(stderr, "bench_plan: %s: %s\n", who, text);
    exit(2);
}

static int64_t given_extent(int argc, char **argv, const kelp_io_info *info, int32_t axis) {
    size_t length = strlen(info->name);
    for (int i = 3; i < argc; i++) {
        if (strncmp(argv[i], info->name, length) != 0 || argv[i][length] != '=')
            continue;
        const char *at = argv[i] + length + 1;
        for (int32_t k = 0; k < axis && at != NULL; k++) {
            at = strchr(at, 'x');
            at = at != NULL ? at + 1 : NULL;
        }
        return at != NULL ? atoll(at) : 1;
    }
    return 1;
}

static void fill(kelp_tensor *tensor) {
    int64_t count = kelp_tensor_elements(tensor);
    tensor->data = calloc((size_t)count + 1, 16);
    if (tensor->data == NULL)
        exit(2);
    for (int64_t i = 0; i < count; i++) {
        if (tensor->dtype == KELP_F32)
            ((float *)tensor->data)[i] = 1.0f;
        else if (tensor->dtype == KELP_I64)
            ((int64_t *)tensor->data)[i] = 1;
        else if (tensor->dtype == KELP_I32)
            ((int32_t *)tensor->data)[i] = 1;
    }
}

static kelp_tensor *make_inputs(const kelp_compute_metadata *metadata, int argc, char **argv) {
    kelp_tensor *inputs = calloc(metadata->input_count + 1, sizeof *inputs);
    if (inputs == NULL)
        exit(2);
    for (size_t i = 0; i < metadata->input_count; i++) {
        const kelp_io_info *info = &metadata->inputs[i];
        int64_t shape[KELP_MAX_RANK];
        for (int32_t axis = 0; axis < info->rank; axis++)
            shape[axis] =
                info->shape[axis] >= 0 ? info->shape[axis] : given_extent(argc, argv, info, axis);
        must(kelp_tensor_init(&inputs[i], info->dtype, info->rank, shape, NULL), info->name);
        fill(&inputs[i]);
    }
    return inputs;
}

static long page_faults(void) {
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_minflt + usage.ru_majflt : 0;
}

static void round_of(way *w, kelp_runtime *runtime, int argc, char **argv, int round) {
    kelp_artifact artifact = {.path = w->path};
    kelp_compute_model *model = NULL;
    long faults = page_faults();
    uint64_t began = kelp_now_ns();
    must(kelp_compute_load(runtime, w->provider, &artifact, &model), w->label);
    must(kelp_compute_init(model), w->label);
    uint64_t loaded = kelp_now_ns();
    const kelp_compute_metadata *metadata = kelp_compute_metadata_of(model);
    kelp_infer_item item = {.inputs = make_inputs(metadata, argc, argv),
                            .outputs = calloc(metadata->output_count + 1, sizeof(kelp_tensor))};
    if (item.outputs == NULL)
        exit(2);
    uint64_t asked = kelp_now_ns();
    must(kelp_compute_infer_one(model, &item), w->label);
    uint64_t answered = kelp_now_ns();
    w->faults += page_faults() - faults;
    must(kelp_compute_infer_one(model, &item), w->label);
    w->again_us[round] = (double)(kelp_now_ns() - answered) / 1e3;
    w->load_us[round] = (double)(loaded - began) / 1e3;
    w->answer_us[round] = (double)(loaded - began + answered - asked) / 1e3;
    if (item.outputs[0].dtype == KELP_F32) {
        w->elements = kelp_tensor_elements(&item.outputs[0]);
        if (w->elements > MOST_ELEMENTS)
            w->elements = MOST_ELEMENTS;
        memcpy(w->first, item.outputs[0].data, (size_t)w->elements * sizeof(float));
    }
    kelp_compute_destroy(model);
    for (size_t i = 0; item.inputs[i].data != NULL; i++)
        free(item.inputs[i].data);
    free((void *)(uintptr_t)item.inputs);
    free(item.outputs);
}

/* The round in a process of its own, which shares `w` with this one. */
static void round_apart(way *w, kelp_runtime *runtime, int argc, char **argv, int round) {
    int how = 0;
    pid_t pid = fork();
    if (pid == 0) {
        round_of(w, runtime, argc, argv, round);
        _exit(0); /* the plan is the parent's to remove */
    }
    if (pid < 0 || waitpid(pid, &how, 0) != pid || how != 0)
        exit(2);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double apart(const way *a, const way *b) {
    double most = 0, largest = 1e-30;
    if (a->elements != b->elements)
        return INFINITY;
    for (int64_t i = 0; i < a->elements; i++) {
        most = fmax(most, fabs((double)a->first[i] - (double)b->first[i]));
        largest = fmax(largest, fabs((double)b->first[i]));
    }
    return most / largest;
}

/* An ordinary run beside a captured one, in turn. */
static void compare_captured(kelp_runtime *runtime, const char *path, int argc, char **argv) {
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    kelp_capture *capture = NULL;
    double invoke_ns[16], replay_ns[16];
    must(kelp_engine_load_file(runtime, path, &engine), path);
    must(kelp_context_create(engine, &context), path);
    kelp_compute_metadata metadata = {.input_count = kelp_engine_input_count(engine),
                                      .inputs = kelp_engine_input(engine, 0)};
    kelp_tensor *inputs = make_inputs(&metadata, argc, argv);
    for (size_t i = 0; i < metadata.input_count; i++)
        must(kelp_context_set_input(context, i, &inputs[i]), metadata.inputs[i].name);
    must(kelp_context_invoke(context), path);
    kelp_status *status = kelp_context_capture(context, &capture);
    if (status == NULL) {
        for (int block = 0; block < 16; block++) {
            uint64_t began = kelp_now_ns();
            for (int i = 0; i < 2000; i++)
                must(kelp_context_invoke(context), path);
            uint64_t between = kelp_now_ns();
            for (int i = 0; i < 2000; i++)
                must(kelp_capture_replay(capture), path);
            invoke_ns[block] = (double)(between - began) / 2000;
            replay_ns[block] = (double)(kelp_now_ns() - between) / 2000;
        }
        qsort(invoke_ns, 16, sizeof(double), by_value);
        qsort(replay_ns, 16, sizeof(double), by_value);
        printf("run %.1f ns (%.1f..%.1f), replayed %.1f ns (%.1f..%.1f): %.3f\n", invoke_ns[8],
               invoke_ns[0], invoke_ns[15], replay_ns[8], replay_ns[0], replay_ns[15],
               replay_ns[8] / invoke_ns[8]);
    }
    kelp_status_free(status);
    kelp_capture_destroy(capture);
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    for (size_t i = 0; i < metadata.input_count; i++)
        free(inputs[i].data);
    free(inputs);
}

static void build(kelp_runtime *runtime, const char *model, const char *path) {
    kelp_builder *builder = NULL;
    kelp_network *network = NULL;
    kelp_builder_config *config = NULL;
    kelp_blob *plan = NULL;
    must(kelp_builder_create(runtime, "cpu", &builder), "builder");
    must(kelp_builder_parse_file(builder, model, &network), model);
    must(kelp_builder_create_config(builder, &config), "config");
    must(kelp_builder_build(builder, network, config, &plan), model);
    must(kelp_blob_save(plan, path), path);
    kelp_blob_release(plan);
    kelp_builder_config_release(config);
    kelp_network_release(network);
    kelp_builder_release(builder);
}

int main(int argc, char **argv) {
    bool fresh = argc > 1 && strcmp(argv[1], "--fresh") == 0;
    argc -= fresh;
    argv += fresh;
    int rounds = argc > 2 ? atoi(argv[2]) : 0;
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_runtime *runtime = NULL;
    way *ways =
        mmap(NULL, WAYS * sizeof *ways, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ways == MAP_FAILED)
        return 2;
    if (rounds < 1 || rounds >= MOST_ROUNDS) {
        fprintf(stderr, "usage: bench_plan [--fresh] MODEL.onnx ROUNDS [NAME=1x128...]\n");
        return 2;
    }
    must(kelp_runtime_create(&options, &runtime), "runtime");
    int file = mkstemp(plan_path);
    if (file < 0)
        return 2;
    close(file);
    atexit(remove_plan);
    build(runtime, argv[1], plan_path);
    for (int i = 0; i < WAYS; i++) {
        ways[i].label = i == 0 ? "plan" : i == 1 ? "onnx" : "onnxruntime";
        ways[i].provider = i == 2 ? "onnxruntime" : "cpu";
        ways[i].path = i == 0 ? plan_path : argv[1];
    }
    const char *library = getenv("KELP_ONNXRUNTIME_LIBRARY");
    if (fresh && library != NULL && dlopen(library, RTLD_NOW | RTLD_LOCAL) == NULL)
        fprintf(stderr, "bench_plan: %s\n", dlerror());
    for (int round = -1; round < rounds; round++)
        for (int i = 0; i < WAYS; i++)
            (fresh ? round_apart : round_of)(&ways[i], runtime, argc, argv, round < 0 ? 0 : round);
    double largest = ways[0].answer_us[rounds / 2] - ways[0].load_us[rounds / 2];
    if (largest < 1000) /* what is long hides the difference */
        compare_captured(runtime, plan_path, argc, argv);
    for (int i = 0; i < WAYS; i++) {
        way *w = &ways[i];
        qsort(w->load_us, (size_t)rounds, sizeof(double), by_value);
        qsort(w->answer_us, (size_t)rounds, sizeof(double), by_value);
        qsort(w->again_us, (size_t)rounds, sizeof(double), by_value);
        printf("%-12s load %10.1f us (%.1f..%.1f)  first answer %10.1f us (%.1f..%.1f)  second "
               "%.1f us (%.1f..)  %lld faults  apart %.2g\n",
               w->label, w->load_us[rounds / 2], w->load_us[0], w->load_us[rounds - 1],
               w->answer_us[rounds / 2], w->answer_us[0], w->answer_us[rounds - 1],
               w->again_us[rounds / 2], w->again_us[0], (long long)(w->faults / (rounds + 1)),
               apart(w, &ways[WAYS - 1]));
    }
    printf(
        "plan over onnxruntime: load %.4f, first answer %.4f; of the fastest rounds: %.4f, %.4f\n",
        ways[0].load_us[rounds / 2] / ways[2].load_us[rounds / 2],
        ways[0].answer_us[rounds / 2] / ways[2].answer_us[rounds / 2],
        ways[0].load_us[0] / ways[2].load_us[0], ways[0].answer_us[0] / ways[2].answer_us[0]);
    kelp_runtime_release(runtime);
    return 0;
}
