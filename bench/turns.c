/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one model in one engine. A block of inferences runs for each line of standard input, so that
 * bench/peers.py can run several engines in turn and measure the peak memory of each.
 *
 * usage: bench_turns MODEL.onnx CASE.bin THREADS OUTPUTS cpu|onnxruntime|openvino [bf16]
 * CASE.bin contains the inputs (tests/ops/gen_cases.py). Each line of standard input is the number
 * of seconds of a block; "done" is printed after it. At the end of the input, the program writes
 * the float outputs to the file OUTPUTS and prints one line of JSON with the measurements. The
 * libraries that KELP_ONNXRUNTIME_LIBRARY and KELP_OPENVINO_LIBRARY name are mapped before the load
 * time starts. With bf16, Kelp and OpenVINO multiply in bfloat16; ONNX Runtime cannot on a CPU.
 */
#include "base/clock.h"
#include "bench/turns_openvino.h"
#include "support/case_file.h"

#include <dlfcn.h>
#include <kelp/compute.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_RUNS 2000000

static kelp_runtime *runtime;
static kelp_compute_model *model;
static kelp_infer_item item;
static bool openvino;
static uint32_t samples[MOST_RUNS]; /* ns */
static size_t sample_count;

static void must(kelp_status *status) {
    char text[2048];
    if (status == NULL)
        return;
    kelp_status_format(status, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    exit(2);
}

static void must_openvino(const char *error) {
    if (error == NULL)
        return;
    fprintf(stderr, "%s\n", error);
    exit(2);
}

static uint64_t cpu_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void load(const char *engine, const char *path, const test_case *inputs, bool bf16) {
    kelp_artifact artifact = {.path = path,
                              .precision = bf16 ? KELP_PRECISION_BF16 : KELP_PRECISION_F32};
    if (openvino) {
        must_openvino(turns_openvino_load(path, inputs, bf16));
        return;
    }
    must(kelp_compute_load(runtime, engine, &artifact, &model));
    must(kelp_compute_init(model));
    const kelp_compute_metadata *metadata = kelp_compute_metadata_of(model);
    kelp_tensor *given = calloc(metadata->input_count + 1, sizeof *given);
    item.inputs = given;
    item.outputs = calloc(metadata->output_count + 1, sizeof *item.outputs);
    if (given == NULL || item.outputs == NULL)
        exit(2);
    for (size_t i = 0; i < metadata->input_count; i++) {
        for (uint32_t k = 0; k < inputs->input_count; k++) {
            if (strcmp(metadata->inputs[i].name, inputs->inputs[k].name) == 0)
                given[i] = inputs->inputs[k].tensor;
        }
    }
}

static void infer(void) {
    if (openvino) {
        must_openvino(turns_openvino_infer());
        return;
    }
    const kelp_compute_metadata *metadata = kelp_compute_metadata_of(model);
    for (size_t i = 0; i < metadata->output_count; i++)
        item.outputs[i] = (kelp_tensor){0};
    must(kelp_compute_infer_one(model, &item));
}

static uint64_t run_block(double seconds) {
    uint64_t cpu = cpu_now_ns(), at = kelp_now_ns(), until = at + (uint64_t)(seconds * 1e9);
    do {
        infer();
        uint64_t now = kelp_now_ns();
        samples[sample_count++] = (uint32_t)(now - at);
        at = now;
    } while (at < until && sample_count < MOST_RUNS);
    usleep(20000); /* threads that spin after the work belong to it */
    return cpu_now_ns() - cpu;
}

/* Not getrusage: its peak includes the memory of the process that started this one. */
static long long peak_bytes(void) {
    char line[256];
    long long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL && sscanf(line, "VmHWM: %lld", &kib) != 1)
        continue;
    fclose(file);
    return kib * 1024;
}

/* The float outputs in the model's order, one after the other. */
static void write_answers(const char *path) {
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        exit(2);
    size_t count =
        openvino ? turns_openvino_outputs() : kelp_compute_metadata_of(model)->output_count;
    for (size_t i = 0; i < count; i++) {
        kelp_tensor output;
        if (openvino)
            must_openvino(turns_openvino_output(i, &output));
        else
            output = item.outputs[i];
        size_t elements = output.dtype == KELP_F32 ? (size_t)kelp_tensor_elements(&output) : 0;
        if (elements > 0 && fwrite(output.data, sizeof(float), elements, file) != elements)
            exit(2);
    }
    if (fclose(file) != 0)
        exit(2);
}

static int by_value(const void *x, const void *y) {
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return (a > b) - (a < b);
}

int main(int argc, char **argv) {
    test_case inputs;
    char line[64];
    bool bf16 = argc == 7 && strcmp(argv[6], "bf16") == 0;
    if (argc != 6 && !bf16) {
        fprintf(stderr, "usage: bench_turns MODEL CASE THREADS OUTPUTS ENGINE [bf16]\n");
        return 2;
    }
    int threads = atoi(argv[3]);
    openvino = strcmp(argv[5], "openvino") == 0;
    if (openvino) {
        turns_openvino_open(threads);
    } else {
        kelp_runtime_options options = {.struct_size = sizeof options, .threads = threads};
        const char *library = getenv("KELP_ONNXRUNTIME_LIBRARY");
        must(kelp_runtime_create(&options, &runtime));
        if (strcmp(argv[5], "onnxruntime") == 0 && library != NULL)
            dlopen(library, RTLD_NOW | RTLD_LOCAL);
    }
    test_case_read(&inputs, argv[2]);
    uint64_t before = kelp_now_ns();
    load(argv[5], argv[1], &inputs, bf16);
    uint64_t load_ns = kelp_now_ns() - before;
    before = kelp_now_ns();
    infer();
    uint64_t first_ns = kelp_now_ns() - before, cpu_ns = 0;
    infer();
    printf("done\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        cpu_ns += run_block(atof(line));
        printf("done\n");
        fflush(stdout);
    }
    if (sample_count == 0)
        return 2;
    write_answers(argv[4]);
    qsort(samples, sample_count, sizeof *samples, by_value);
    printf("{\"load_ns\": %llu, \"first_ns\": %llu, \"median_ns\": %u, \"p99_ns\": %u, \"cpu_ns\": "
           "%llu, \"peak_bytes\": %lld, \"runs\": %zu}\n",
           (unsigned long long)load_ns, (unsigned long long)first_ns, samples[sample_count / 2],
           samples[sample_count * 99 / 100], (unsigned long long)(cpu_ns / sample_count),
           peak_bytes(), sample_count);
    fflush(stdout);
    _exit(0); /* the libraries' own ends are not measured */
}
