/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time of a call of a compute model: the author's function called directly, through
 * compute_inline.h, and through the table of compute.h with all checks. The three are interleaved;
 * the program prints medians and compares the results.
 *
 * usage: bench_compute [ROUNDS]
 */
#include "base/clock.h"
#include "gesture.h"

#include <kelp/compute.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS 200000

/* The same model behind the table: an item is three floats in, one int32 out. */
typedef struct table_model {
    kelp_compute_model base;
    gesture model;
    kelp_compute_metadata metadata;
    kelp_io_info io[2];
} table_model;

static kelp_status *table_init(kelp_compute_model *base) {
    gesture_init(&((table_model *)base)->model);
    return NULL;
}

static kelp_status *table_one(kelp_compute_model *base, kelp_infer_item *item) {
    kelp_code code =
        gesture_step(&((table_model *)base)->model, item->inputs[0].data, item->outputs[0].data);
    return code == KELP_OK ? NULL : KELP_ERROR(code, "the gesture model failed");
}

static kelp_status *table_nothing(kelp_compute_model *base) {
    (void)base;
    return NULL;
}

static const kelp_compute_metadata *table_metadata(const kelp_compute_model *base) {
    return &((const table_model *)base)->metadata;
}

static void table_destroy(kelp_compute_model *base) {
    free(base);
}

static kelp_status *table_load(void *self, kelp_runtime *runtime, const kelp_artifact *artifact,
                               kelp_compute_model **out) {
    static const kelp_compute_model_vtbl vtbl = {.struct_size = sizeof vtbl,
                                                 .init = table_init,
                                                 .infer_one = table_one,
                                                 .drain = table_nothing,
                                                 .reset = table_init,
                                                 .metadata = table_metadata,
                                                 .destroy = table_destroy};
    (void)self, (void)runtime;
    table_model *model = calloc(1, sizeof *model);
    if (model == NULL)
        return kelp_status_oom();
    model->base.vtbl = &vtbl;
    gesture_load(&model->model, artifact->data, artifact->size_bytes);
    model->io[0] = (kelp_io_info){.name = "a", .dtype = KELP_F32, .rank = 1, .shape = {3}};
    model->io[1] = (kelp_io_info){.name = "kind", .dtype = KELP_I32, .rank = 0};
    model->metadata = (kelp_compute_metadata){
        .input_count = 1, .inputs = &model->io[0], .output_count = 1, .outputs = &model->io[1]};
    *out = &model->base;
    return NULL;
}

static kelp_compute_capabilities table_capabilities(void *self) {
    (void)self;
    return (kelp_compute_capabilities){.dtype_mask = ~(uint64_t)0};
}

static acceleration inputs[64];

static long by_function(gesture *model) {
    long sum = 0;
    for (int i = 0; i < CALLS; i++) {
        gesture_kind kind;
        if (gesture_step(model, &inputs[i % 64], &kind) == KELP_OK)
            sum += (long)kind;
    }
    return sum;
}

static long by_inline(gesture *model) {
    long sum = 0;
    for (int i = 0; i < CALLS; i++) {
        gesture_kind kind;
        if (gesture_infer_one(model, &inputs[i % 64], &kind) == KELP_OK)
            sum += (long)kind;
    }
    return sum;
}

static long by_table(kelp_compute_model *model) {
    long sum = 0;
    const int64_t three = 3;
    int32_t kind;
    kelp_tensor in, out;
    if (kelp_tensor_init(&in, KELP_F32, 1, &three, inputs) != NULL ||
        kelp_tensor_init(&out, KELP_I32, 0, NULL, &kind) != NULL)
        exit(2);
    for (int i = 0; i < CALLS; i++) {
        in.data = &inputs[i % 64];
        kelp_infer_item item = {.inputs = &in, .outputs = &out};
        if (kelp_compute_infer_one(model, &item) == NULL)
            sum += kind;
    }
    return sum;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    static const kelp_compute_backend backend = {.abi_version = KELP_COMPUTE_ABI_VERSION,
                                                 .struct_size = sizeof backend,
                                                 .name = "gesture",
                                                 .capabilities = table_capabilities,
                                                 .load_model = table_load};
    int rounds = argc > 1 && atoi(argv[1]) > 0 ? atoi(argv[1]) : 51;
    kelp_runtime *runtime = NULL;
    kelp_compute_model *model = NULL;
    static const uint8_t model_bytes[GESTURE_BYTES] = {'G', 'S', 1200 & 255, 1200 >> 8};
    kelp_artifact artifact = {.data = model_bytes, .size_bytes = sizeof model_bytes};
    gesture bare, inlined;
    if (kelp_runtime_create(NULL, &runtime) != NULL ||
        kelp_compute_register(runtime, &backend) != NULL ||
        kelp_compute_load(runtime, "gesture", &artifact, &model) != NULL ||
        kelp_compute_init(model) != NULL ||
        gesture_load(&bare, model_bytes, sizeof model_bytes) != KELP_OK ||
        gesture_load(&inlined, model_bytes, sizeof model_bytes) != KELP_OK)
        return 2;
    for (int i = 0; i < 64; i++)
        inputs[i] = (acceleration){(float)(i % 7) * 3, (float)(i % 3), 9.8f};
    double *times[3];
    for (int i = 0; i < 3; i++)
        times[i] = calloc((size_t)rounds, sizeof(double));
    for (int round = 0; round < rounds; round++) {
        long sums[3];
        gesture_init(&bare), gesture_init(&inlined);
        if (kelp_compute_reset(model) != NULL)
            return 2;
        uint64_t t0 = kelp_now_ns();
        sums[0] = by_function(&bare);
        uint64_t t1 = kelp_now_ns();
        sums[1] = by_inline(&inlined);
        uint64_t t2 = kelp_now_ns();
        sums[2] = by_table(model);
        uint64_t t3 = kelp_now_ns();
        if (sums[0] != sums[1] || sums[0] != sums[2]) {
            printf("results differ: %ld, %ld, %ld\n", sums[0], sums[1], sums[2]);
            return 1;
        }
        times[0][round] = (double)(t1 - t0) / CALLS;
        times[1][round] = (double)(t2 - t1) / CALLS;
        times[2][round] = (double)(t3 - t2) / CALLS;
    }
    printf("| call | median ns | least | over the bare function |\n|---|---|---|---|\n");
    static const char *const names[] = {"the function", "compute_inline.h", "compute.h"};
    for (int i = 0; i < 3; i++) {
        qsort(times[i], (size_t)rounds, sizeof(double), by_value);
        printf("| %s | %.2f | %.2f | %+.2f |\n", names[i], times[i][rounds / 2], times[i][0],
               times[i][rounds / 2] - times[0][rounds / 2]);
        if (i > 0)
            free(times[i]);
    }
    free(times[0]);
    kelp_compute_destroy(model);
    kelp_runtime_release(runtime);
    return 0;
}
