/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One model on several providers, interleaved in one run: load time, first inference, median
 * inference, CPU time of the process, and the largest difference from the first provider's results.
 *
 * usage: bench_providers MODEL.onnx CASE.bin THREADS SECONDS PROVIDER…
 * CASE.bin contains the inputs (tests/ops/gen_cases.py). Prints one line of JSON per provider.
 */
#include "base/clock.h"
#include "support/case_file.h"

#include <kelp/compute.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS 8
#define MOST_RUNS 2000000

typedef struct contender {
    const char *name;
    kelp_compute_model *model;
    kelp_infer_item item;
    uint64_t load_ns, first_ns, cpu_ns;
    uint32_t *samples; /* ns */
    size_t count;
    double apart;
} contender;

static void must(kelp_status *status, const char *who) {
    char text[2048];
    if (status == NULL)
        return;
    kelp_status_format(status, text, sizeof text);
    fprintf(stderr, "%s: %s\n", who, text);
    exit(2);
}

static uint64_t cpu_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void infer(contender *c) {
    const kelp_compute_metadata *metadata = kelp_compute_metadata_of(c->model);
    for (size_t i = 0; i < metadata->output_count; i++)
        c->item.outputs[i] = (kelp_tensor){0};
    must(kelp_compute_infer_one(c->model, &c->item), c->name);
}

static void begin(contender *c, kelp_runtime *runtime, const char *path, const test_case *inputs) {
    kelp_artifact artifact = {.path = path};
    uint64_t before = kelp_now_ns();
    must(kelp_compute_load(runtime, c->name, &artifact, &c->model), c->name);
    must(kelp_compute_init(c->model), c->name);
    c->load_ns = kelp_now_ns() - before;
    const kelp_compute_metadata *metadata = kelp_compute_metadata_of(c->model);
    kelp_tensor *given = calloc(metadata->input_count + 1, sizeof *given);
    c->item.inputs = given;
    c->item.outputs = calloc(metadata->output_count + 1, sizeof *c->item.outputs);
    c->samples = malloc(MOST_RUNS * sizeof *c->samples);
    if (given == NULL || c->item.outputs == NULL || c->samples == NULL)
        exit(2);
    for (size_t i = 0; i < metadata->input_count; i++) {
        for (uint32_t k = 0; k < inputs->input_count; k++) {
            if (strcmp(metadata->inputs[i].name, inputs->inputs[k].name) == 0)
                given[i] = inputs->inputs[k].tensor;
        }
    }
    before = kelp_now_ns();
    infer(c);
    c->first_ns = kelp_now_ns() - before;
    infer(c);
}

static void run_block(contender *c, double seconds) {
    uint64_t cpu = cpu_now_ns(), start = kelp_now_ns(), at = start;
    uint64_t until = start + (uint64_t)(seconds * 1e9);
    do {
        infer(c);
        uint64_t now = kelp_now_ns();
        c->samples[c->count++] = (uint32_t)(now - at);
        at = now;
    } while (at < until && c->count < MOST_RUNS);
    usleep(20000); /* threads that spin after the work belong to it */
    c->cpu_ns += cpu_now_ns() - cpu;
}

/* The largest difference between float outputs, over the largest value. */
static double difference(const contender *a, const contender *b) {
    double most = 0, largest = 1e-30;
    const kelp_compute_metadata *metadata = kelp_compute_metadata_of(a->model);
    for (size_t o = 0; o < metadata->output_count; o++) {
        const kelp_tensor *x = &a->item.outputs[o], *y = &b->item.outputs[o];
        if (x->dtype != KELP_F32 || y->dtype != KELP_F32 ||
            kelp_tensor_elements(x) != kelp_tensor_elements(y))
            continue;
        for (int64_t i = 0; i < kelp_tensor_elements(x); i++) {
            double p = (double)((const float *)x->data)[i], q = (double)((const float *)y->data)[i];
            most = fmax(most, fabs(p - q));
            largest = fmax(largest, fabs(q));
        }
    }
    return most / largest;
}

static int by_value(const void *x, const void *y) {
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return (a > b) - (a < b);
}

int main(int argc, char **argv) {
    if (argc < 6) {
        fprintf(stderr, "usage: bench_providers MODEL.onnx CASE.bin THREADS SECONDS PROVIDER...\n");
        return 2;
    }
    int count = argc - 5;
    contender *contenders = calloc((size_t)count, sizeof *contenders);
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = atoi(argv[3])};
    kelp_runtime *runtime = NULL;
    test_case inputs;
    if (contenders == NULL)
        return 2;
    must(kelp_runtime_create(&options, &runtime), "runtime");
    test_case_read(&inputs, argv[2]);
    for (int i = 0; i < count; i++) {
        contenders[i].name = argv[5 + i];
        begin(&contenders[i], runtime, argv[1], &inputs);
    }
    for (int block = 0; block < BLOCKS; block++) {
        for (int i = 0; i < count; i++)
            run_block(&contenders[i], atof(argv[4]) / BLOCKS);
    }
    for (int i = 0; i < count; i++)
        contenders[i].apart = difference(&contenders[i], &contenders[0]);
    for (int i = 0; i < count; i++) {
        contender *c = &contenders[i];
        qsort(c->samples, c->count, sizeof *c->samples, by_value);
        printf("{\"provider\": \"%s\", \"load_ns\": %llu, \"first_ns\": %llu, \"median_ns\": %u, "
               "\"p99_ns\": %u, \"cpu_ns\": %llu, \"runs\": %zu, \"apart\": %.3g}\n",
               c->name, (unsigned long long)c->load_ns, (unsigned long long)c->first_ns,
               c->samples[c->count / 2], c->samples[c->count * 99 / 100],
               (unsigned long long)(c->cpu_ns / c->count), c->count, c->apart);
        kelp_compute_destroy(c->model);
        free((void *)(uintptr_t)c->item.inputs);
        free(c->item.outputs);
        free(c->samples);
    }
    test_case_free(&inputs);
    kelp_runtime_release(runtime);
    free(contenders);
    return 0;
}
