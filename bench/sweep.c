/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs small models in one engine, one after the other, so that bench/sweep.py can run several
 * engines in turn on thousands of models.
 *
 * usage: bench_sweep cpu|onnxruntime|openvino THREADS
 * Standard input contains one command per line. The program prints one line for each, "ok …" or
 * "error TEXT":
 *   load MODEL.onnx CASE.bin   loads a model and its inputs, and runs it once: ok LOAD_NS FIRST_NS
 *   run SECONDS RUNS           at least one inference, at most RUNS and SECONDS: ok MEDIAN_NS RUNS
 *   outputs FILE               writes the outputs of the last inference: ok OUTPUTS
 *   drop                       frees the model: ok
 * FILE contains for each output its element type, rank and dimensions as int64, and its elements.
 * KELP_ONNXRUNTIME_LIBRARY and KELP_OPENVINO_LIBRARY name the libraries.
 */
#include "base/clock.h"
#include "bench/turns_openvino.h"
#include "support/case_file.h"

#include <kelp/compute.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_RUNS 65536
#define LINE_BYTES 8192
#define SETTLE_STEPS 25
#define SETTLE_STEP_US 1000

static kelp_runtime *runtime;
static kelp_compute_model *model;
static kelp_infer_item item;
static test_case given;
static bool openvino, has_case;
static const char *engine;
static uint64_t samples[MOST_RUNS]; /* ns */
static char message[2048];

static const char *text_of(kelp_status *take_status) {
    if (take_status == NULL)
        return NULL;
    kelp_status_format(take_status, message, sizeof message);
    kelp_status_free(take_status);
    return message;
}

static uint64_t cpu_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Waits until the engine's threads sleep: they must not spin while another engine works. */
static void settle(void) {
    uint64_t before = cpu_now_ns();
    for (int step = 0; step < SETTLE_STEPS; step++) {
        usleep(SETTLE_STEP_US);
        uint64_t now = cpu_now_ns();
        if (now - before < SETTLE_STEP_US * 200u)
            return;
        before = now;
    }
}

static void drop(void) {
    if (openvino)
        turns_openvino_unload();
    else
        kelp_compute_destroy(model);
    model = NULL;
    free((void *)(uintptr_t)item.inputs);
    free(item.outputs);
    item = (kelp_infer_item){0};
    if (has_case)
        test_case_free(&given);
    has_case = false;
}

static const char *load_model(const char *path) {
    if (openvino)
        return turns_openvino_load(path, &given, false);
    kelp_artifact artifact = {.path = path};
    const char *error = text_of(kelp_compute_load(runtime, engine, &artifact, &model));
    if (error == NULL)
        error = text_of(kelp_compute_init(model));
    if (error != NULL)
        return error;
    const kelp_compute_metadata *metadata = kelp_compute_metadata_of(model);
    kelp_tensor *inputs = calloc(metadata->input_count + 1, sizeof *inputs);
    item.inputs = inputs;
    item.outputs = calloc(metadata->output_count + 1, sizeof *item.outputs);
    if (inputs == NULL || item.outputs == NULL)
        exit(2);
    for (size_t i = 0; i < metadata->input_count; i++) {
        for (uint32_t k = 0; k < given.input_count; k++) {
            if (strcmp(metadata->inputs[i].name, given.inputs[k].name) == 0)
                inputs[i] = given.inputs[k].tensor;
        }
    }
    return NULL;
}

static const char *infer(void) {
    if (openvino)
        return turns_openvino_infer();
    const kelp_compute_metadata *metadata = kelp_compute_metadata_of(model);
    for (size_t i = 0; i < metadata->output_count; i++)
        item.outputs[i] = (kelp_tensor){0};
    return text_of(kelp_compute_infer_one(model, &item));
}

static const char *load(const char *path, const char *case_path) {
    uint64_t before = kelp_now_ns();
    drop();
    test_case_read(&given, case_path);
    has_case = true;
    const char *error = load_model(path);
    uint64_t loaded = kelp_now_ns();
    if (error == NULL)
        error = infer();
    if (error != NULL)
        return error;
    printf("ok %llu %llu\n", (unsigned long long)(loaded - before),
           (unsigned long long)(kelp_now_ns() - loaded));
    return NULL;
}

static int by_value(const void *x, const void *y) {
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

static const char *run_block(double seconds, size_t runs) {
    size_t count = 0;
    uint64_t at = kelp_now_ns(), until = at + (uint64_t)(seconds * 1e9);
    do {
        const char *error = infer();
        if (error != NULL)
            return error;
        uint64_t now = kelp_now_ns();
        samples[count++] = now - at;
        at = now;
    } while (at < until && count < runs && count < MOST_RUNS);
    settle();
    qsort(samples, count, sizeof *samples, by_value);
    printf("ok %llu %zu\n", (unsigned long long)samples[count / 2], count);
    return NULL;
}

static const char *write_output(FILE *file, size_t index) {
    kelp_tensor output;
    if (openvino) {
        const char *error = turns_openvino_output(index, &output);
        if (error != NULL)
            return error;
    } else {
        output = item.outputs[index];
    }
    int64_t head[2 + KELP_MAX_RANK] = {output.dtype, output.rank};
    memcpy(head + 2, output.shape, (size_t)output.rank * sizeof *head);
    size_t count = 2 + (size_t)output.rank;
    if (output.dtype >= KELP_LIST || output.dtype == KELP_STRING)
        return "outputs that are no numbers are not written";
    size_t bytes = kelp_tensor_bytes(&output);
    bool written = fwrite(head, sizeof *head, count, file) == count &&
                   (bytes == 0 || fwrite(output.data, 1, bytes, file) == bytes);
    return written ? NULL : "cannot write the outputs";
}

static const char *write_answers(const char *path) {
    FILE *file = fopen(path, "wb");
    const char *error = file != NULL ? NULL : "cannot write the outputs";
    size_t count = 0;
    if (error == NULL)
        count = openvino ? turns_openvino_outputs() : kelp_compute_metadata_of(model)->output_count;
    for (size_t i = 0; error == NULL && i < count; i++)
        error = write_output(file, i);
    if (file != NULL && fclose(file) != 0 && error == NULL)
        error = "cannot write the outputs";
    if (error == NULL)
        printf("ok %zu\n", count);
    return error;
}

static const char *obey(char *line) {
    static char empty[] = "";
    char *words[3] = {empty, empty, empty}, *rest = NULL;
    line[strcspn(line, "\n")] = '\0';
    for (int i = 0; i < 3; i++) {
        char *word = strtok_r(i == 0 ? line : NULL, " ", &rest);
        if (word == NULL)
            break;
        words[i] = word;
    }
    if (strcmp(words[0], "load") == 0)
        return load(words[1], words[2]);
    if (strcmp(words[0], "drop") == 0) {
        drop();
        printf("ok\n");
        return NULL;
    }
    if (model == NULL && !openvino)
        return "no model is loaded";
    if (strcmp(words[0], "run") == 0)
        return run_block(atof(words[1]), strtoul(words[2], NULL, 10));
    if (strcmp(words[0], "outputs") == 0)
        return write_answers(words[1]);
    return "unknown command";
}

int main(int argc, char **argv) {
    static char line[LINE_BYTES];
    if (argc != 3) {
        fprintf(stderr, "usage: bench_sweep cpu|onnxruntime|openvino THREADS\n");
        return 2;
    }
    engine = argv[1];
    openvino = strcmp(engine, "openvino") == 0;
    if (openvino) {
        turns_openvino_open(atoi(argv[2]));
    } else {
        kelp_runtime_options options = {.struct_size = sizeof options, .threads = atoi(argv[2])};
        const char *error = text_of(kelp_runtime_create(&options, &runtime));
        if (error != NULL) {
            fprintf(stderr, "%s\n", error);
            return 2;
        }
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        const char *error = obey(line);
        if (error != NULL)
            printf("error %.*s\n", (int)strcspn(error, "\n"), error);
        fflush(stdout);
    }
    _exit(0); /* the libraries' own ends are not measured */
}
