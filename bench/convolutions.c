/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions of Kelp and of oneDNN on shapes of published models: f32 images and weights, bias
 * and Relu, with one or more threads. The libraries run in turn; the program prints medians and
 * compares the results.
 *
 * usage: bench_convolutions [--bf16] [--threads N] [ROUNDS]
 * Kelp's images are NCHW. oneDNN runs twice: "plain" with NCHW images, and "blocked" with images
 * in oneDNN's preferred layout. The time of converting images to this layout is not measured.
 * Both libraries pack the weights before the measurement.
 */
#include "base/clock.h"
#include "base/checked.h"

#include <dnnl.h>
#include <kelp/builder.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_ROUNDS 1001
enum { KELP, PLAIN, BLOCKED, WAYS };

typedef struct shape {
    const char *of;
    int64_t channels, height, width, maps, kernel[2], stride, groups;
} shape;

static const shape shapes[] = {
    {"residual, first", 3, 224, 224, 64, {7, 7}, 2, 1},
    {"residual, 56", 64, 56, 56, 64, {1, 1}, 1, 1},
    {"residual, 56", 64, 56, 56, 64, {3, 3}, 1, 1},
    {"residual, 56", 64, 56, 56, 256, {1, 1}, 1, 1},
    {"residual, 28", 512, 28, 28, 128, {1, 1}, 1, 1},
    {"residual, 28", 128, 28, 28, 128, {3, 3}, 1, 1},
    {"residual, 28, stride 2", 512, 28, 28, 1024, {1, 1}, 2, 1},
    {"residual, 14", 256, 14, 14, 256, {3, 3}, 1, 1},
    {"residual, 14", 256, 14, 14, 1024, {1, 1}, 1, 1},
    {"residual, 7", 512, 7, 7, 512, {3, 3}, 1, 1},
    {"residual, 7", 2048, 7, 7, 512, {1, 1}, 1, 1},
    {"detection, 13", 192, 13, 13, 192, {3, 3}, 1, 1},
    {"mobile, first", 3, 224, 224, 16, {3, 3}, 2, 1},
    {"mobile, depthwise", 96, 56, 56, 96, {3, 3}, 1, 96},
    {"mobile, depthwise, stride 2", 96, 56, 56, 96, {5, 5}, 2, 96},
    {"mobile, few channels", 96, 28, 28, 24, {1, 1}, 1, 1},
    {"text lines", 64, 12, 160, 128, {3, 3}, 1, 1},
    {"audio, 1-D", 384, 1, 750, 384, {1, 3}, 1, 1},
    {"audio, 2-D", 32, 172, 264, 32, {5, 5}, 1, 1},
};

/* A shape with its numbers, and both libraries' ways to the answer. */
typedef struct job {
    const shape *s;
    int64_t out[2], pad[2];
    float *image, *weights, *bias, *results[WAYS];
    kelp_context *context;
    kelp_engine *engine;
    dnnl_primitive_t primitive[WAYS];
    dnnl_exec_arg_t args[WAYS][4];
    double ns[WAYS][MOST_ROUNDS];
} job;

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void must(kelp_status *status) {
    char text[2048];
    if (status == NULL)
        return;
    kelp_status_format(status, text, sizeof text);
    fprintf(stderr, "bench_convolutions: %s\n", text);
    exit(2);
}

static void well(dnnl_status_t status, const char *what) {
    if (status == dnnl_success)
        return;
    fprintf(stderr, "bench_convolutions: oneDNN: %s: error %d\n", what, (int)status);
    exit(2);
}

static float *floats(int64_t count, unsigned seed, float scale) {
    float *data = malloc((size_t)(count + 1) * sizeof *data);
    if (data == NULL)
        exit(2);
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1103515245u + 12345u;
        data[i] = ((float)(seed >> 16 & 0x7fff) / 16384.f - 1.f) * scale;
    }
    return data;
}

static int64_t image_size(const job *j) {
    return j->s->channels * j->s->height * j->s->width;
}

static int64_t result_size(const job *j) {
    return j->s->maps * j->out[0] * j->out[1];
}

static int64_t weight_size(const job *j) {
    return j->s->maps * (j->s->channels / j->s->groups) * j->s->kernel[0] * j->s->kernel[1];
}

/* ---- Kelp ---- */
static void build_ours(job *j, kelp_runtime *runtime, bool bf16) {
    const shape *s = j->s;
    kelp_builder *builder = NULL;
    kelp_builder_config *config = NULL;
    kelp_network *network = NULL;
    kelp_net_tensor *input = NULL;
    kelp_layer *layer = NULL;
    kelp_blob *plan = NULL;
    kelp_window window = {.struct_size = sizeof window,
                          .stride = {s->stride, s->stride},
                          .pre_padding = {j->pad[0], j->pad[1]},
                          .post_padding = {j->pad[0], j->pad[1]},
                          .groups = s->groups};
    kelp_weights weights = {.dtype = KELP_F32, .data = j->weights, .count = weight_size(j)};
    kelp_weights bias = {.dtype = KELP_F32, .data = j->bias, .count = s->maps};
    kelp_shape dims = {.rank = 4, .d = {1, s->channels, s->height, s->width}};
    kelp_tensor image;
    must(kelp_builder_create(runtime, "cpu", &builder));
    must(kelp_builder_create_network(builder, &network));
    must(kelp_builder_create_config(builder, &config));
    if (bf16)
        must(kelp_builder_config_set_flags(config, KELP_BUILD_BF16));
    must(kelp_network_add_input(network, "image", KELP_F32, dims, &input));
    must(kelp_network_add_convolution(network, input, s->maps,
                                      (kelp_shape){.rank = 2, .d = {s->kernel[0], s->kernel[1]}},
                                      weights, bias, &window, &layer));
    must(kelp_network_add_activation(network, kelp_layer_output(layer, 0), KELP_ACTIVATION_RELU, 0,
                                     0, &layer));
    must(kelp_network_mark_output(network, kelp_layer_output(layer, 0)));
    must(kelp_builder_build(builder, network, config, &plan));
    must(kelp_engine_load(runtime, kelp_blob_data(plan), kelp_blob_size(plan), "plan", NULL, NULL,
                          &j->engine));
    must(kelp_context_create(j->engine, &j->context));
    must(kelp_tensor_init(&image, KELP_F32, dims.rank, dims.d, j->image));
    must(kelp_context_set_input(j->context, 0, &image));
    must(kelp_context_set_output(j->context, 0, j->results[KELP],
                                 (size_t)result_size(j) * sizeof(float)));
    must(kelp_context_invoke(j->context));
    kelp_builder_config_release(config);
    kelp_network_release(network);
    kelp_builder_release(builder);
}

/* ---- oneDNN ---- */
static dnnl_memory_t memory(const dnnl_memory_desc_t *desc, void *data) {
    dnnl_memory_t made = NULL;
    well(dnnl_memory_create(&made, desc, engine, data), "memory");
    return made;
}

static void reorder(dnnl_memory_t from, dnnl_memory_t to) {
    const dnnl_memory_desc_t *source = NULL, *target = NULL;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t primitive = NULL;
    well(dnnl_memory_get_memory_desc(from, &source), "source");
    well(dnnl_memory_get_memory_desc(to, &target), "target");
    well(dnnl_reorder_primitive_desc_create(&desc, source, engine, target, engine, NULL),
         "reorder");
    well(dnnl_primitive_create(&primitive, desc), "reorder");
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    well(dnnl_primitive_execute(primitive, stream, 2, args), "reorder");
    well(dnnl_stream_wait(stream), "reorder");
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(desc);
}

static dnnl_memory_desc_t plain(const job *j, int what, dnnl_data_type_t type,
                                dnnl_format_tag_t tag) {
    const shape *s = j->s;
    bool grouped = s->groups > 1;
    dnnl_dims_t image = {1, s->channels, s->height, s->width};
    dnnl_dims_t answer = {1, s->maps, j->out[0], j->out[1]};
    dnnl_dims_t weights = {s->maps, s->channels, s->kernel[0], s->kernel[1]};
    dnnl_dims_t parts = {s->groups, s->maps / s->groups, s->channels / s->groups, s->kernel[0],
                         s->kernel[1]};
    dnnl_dims_t bias = {s->maps};
    dnnl_memory_desc_t desc;
    const dnnl_dim_t *dims = what == DNNL_ARG_SRC    ? image
                             : what == DNNL_ARG_DST  ? answer
                             : what == DNNL_ARG_BIAS ? bias
                             : grouped               ? parts
                                                     : weights;
    int rank = what == DNNL_ARG_BIAS ? 1 : what == DNNL_ARG_WEIGHTS && grouped ? 5 : 4;
    if (tag != dnnl_format_tag_any)
        tag = rank == 1 ? dnnl_a : rank == 5 ? dnnl_abcde : dnnl_abcd;
    well(dnnl_memory_desc_init_by_tag(&desc, rank, dims, type, tag), "description");
    return desc;
}

/* The memory of `what` as the primitive wants it, with `data` (plain floats, may be NULL) in it. */
static dnnl_memory_t wanted(const job *j, const_dnnl_primitive_desc_t primitive, int what,
                            void *data) {
    dnnl_query_t query = what == DNNL_ARG_SRC       ? dnnl_query_src_md
                         : what == DNNL_ARG_WEIGHTS ? dnnl_query_weights_md
                                                    : dnnl_query_dst_md;
    dnnl_memory_t made =
        memory(dnnl_primitive_desc_query_md(primitive, query, 0), DNNL_MEMORY_ALLOCATE);
    if (data != NULL) {
        dnnl_memory_desc_t desc = plain(j, what, dnnl_f32, dnnl_abcd);
        dnnl_memory_t from = memory(&desc, data);
        reorder(from, made);
        dnnl_memory_destroy(from);
    }
    return made;
}

static void build_theirs(job *j, int way, bool bf16) {
    const shape *s = j->s;
    dnnl_data_type_t type = bf16 ? dnnl_bf16 : dnnl_f32;
    dnnl_format_tag_t tag = way == PLAIN ? dnnl_abcd : dnnl_format_tag_any;
    dnnl_memory_desc_t source = plain(j, DNNL_ARG_SRC, type, tag);
    dnnl_memory_desc_t weights = plain(j, DNNL_ARG_WEIGHTS, type, dnnl_format_tag_any);
    dnnl_memory_desc_t bias = plain(j, DNNL_ARG_BIAS, dnnl_f32, dnnl_a);
    dnnl_memory_desc_t target = plain(j, DNNL_ARG_DST, type, tag);
    dnnl_dims_t strides = {s->stride, s->stride}, pads = {j->pad[0], j->pad[1]};
    dnnl_dims_t dilations = {0, 0};
    dnnl_convolution_desc_t desc;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t after = NULL;
    dnnl_primitive_desc_t made = NULL;
    well(dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_inference,
                                                    dnnl_convolution_auto, &source, &weights, &bias,
                                                    &target, strides, dilations, pads, pads),
         "convolution");
    well(dnnl_primitive_attr_create(&attr), "attributes");
    well(dnnl_post_ops_create(&after), "what follows");
    well(dnnl_post_ops_append_eltwise(after, 1, dnnl_eltwise_relu, 0, 0), "relu");
    well(dnnl_primitive_attr_set_post_ops(attr, after), "what follows");
    well(dnnl_primitive_desc_create(&made, &desc, attr, engine, NULL), "convolution");
    well(dnnl_primitive_create(&j->primitive[way], made), "convolution");
    dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, wanted(j, made, DNNL_ARG_SRC, j->image)},
                              {DNNL_ARG_WEIGHTS, wanted(j, made, DNNL_ARG_WEIGHTS, j->weights)},
                              {DNNL_ARG_BIAS, memory(&bias, j->bias)},
                              {DNNL_ARG_DST, wanted(j, made, DNNL_ARG_DST, NULL)}};
    memcpy(j->args[way], args, sizeof args);
    dnnl_primitive_desc_destroy(made);
    dnnl_primitive_attr_destroy(attr);
    dnnl_post_ops_destroy(after);
}

static void take_answer(job *j, int way) {
    dnnl_memory_desc_t desc = plain(j, DNNL_ARG_DST, dnnl_f32, dnnl_abcd);
    dnnl_memory_t to = memory(&desc, j->results[way]);
    reorder(j->args[way][3].memory, to);
    dnnl_memory_destroy(to);
}

/* ---- both ---- */
static double run(job *j, int way, int repeat) {
    uint64_t began = kelp_now_ns();
    for (int i = 0; i < repeat; i++) {
        if (way == KELP) {
            must(kelp_context_invoke(j->context));
        } else {
            well(dnnl_primitive_execute(j->primitive[way], stream, 4, j->args[way]), "run");
            well(dnnl_stream_wait(stream), "run");
        }
    }
    return (double)(kelp_now_ns() - began) / repeat;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The largest difference from oneDNN's answer, to its largest value. */
static double apart(const job *j, int way) {
    double most = 0, largest = 1e-30;
    for (int64_t i = 0; i < result_size(j); i++) {
        most = fmax(most, fabs((double)j->results[KELP][i] - (double)j->results[way][i]));
        largest = fmax(largest, fabs((double)j->results[way][i]));
    }
    return most / largest;
}

static void release(job *j) {
    for (int way = PLAIN; way < WAYS; way++) {
        dnnl_primitive_destroy(j->primitive[way]);
        for (int i = 0; i < 4; i++)
            dnnl_memory_destroy(j->args[way][i].memory);
    }
    kelp_context_destroy(j->context);
    kelp_engine_release(j->engine);
    free(j->image), free(j->weights), free(j->bias);
    for (int way = 0; way < WAYS; way++)
        free(j->results[way]);
}

/* Kelp's time to the better of oneDNN's with plain images, and to the one with blocked ones. */
static void compare(job *j, kelp_runtime *runtime, bool bf16, int rounds, double *ratios) {
    const shape *s = j->s;
    double flop = 2.0 * (double)weight_size(j);
    for (int i = 0; i < 2; i++) {
        int64_t in = i == 0 ? s->height : s->width;
        j->pad[i] = s->kernel[i] / 2;
        j->out[i] = (in + 2 * j->pad[i] - s->kernel[i]) / s->stride + 1;
        if (in == 1)
            j->out[i] = 1;
        flop *= (double)j->out[i];
    }
    j->image = floats(image_size(j), 1, 1);
    j->weights = floats(weight_size(j), 2, 0.1f);
    j->bias = floats(s->maps, 3, 1);
    for (int way = 0; way < WAYS; way++)
        j->results[way] = floats(result_size(j), 0, 0);
    build_ours(j, runtime, bf16);
    for (int way = PLAIN; way < WAYS; way++)
        build_theirs(j, way, bf16);
    int repeat = (int)(1e8 / flop) + 1;
    for (int round = -1; round < rounds; round++)
        for (int way = 0; way < WAYS; way++)
            j->ns[way][round < 0 ? 0 : round] = run(j, way, repeat);
    for (int way = 0; way < WAYS; way++)
        qsort(j->ns[way], (size_t)rounds, sizeof(double), by_value);
    double worst = 0;
    for (int way = PLAIN; way < WAYS; way++) {
        take_answer(j, way);
        worst = fmax(worst, apart(j, way));
    }
    const double *median[WAYS] = {&j->ns[0][rounds / 2], &j->ns[1][rounds / 2],
                                  &j->ns[2][rounds / 2]};
    ratios[0] = *median[KELP] / *median[PLAIN];
    ratios[1] = *median[KELP] / *median[BLOCKED];
    printf("| %s | %lldx%lldx%lld, %lldx%lld/%lld to %lld%s | %.1f | %.1f | %.1f | %.1f | %.2f | "
           "%.2f | %.0e |\n",
           s->of, (long long)s->channels, (long long)s->height, (long long)s->width,
           (long long)s->kernel[0], (long long)s->kernel[1], (long long)s->stride,
           (long long)s->maps, s->groups > 1 ? ", depthwise" : "", *median[KELP] / 1e3,
           flop / *median[KELP], *median[PLAIN] / 1e3, *median[BLOCKED] / 1e3, ratios[0], ratios[1],
           worst);
    if (!(worst < (bf16 ? 2e-2 : 1e-4))) {
        fprintf(stderr, "bench_convolutions: results differ\n");
        exit(1);
    }
    release(j);
}

int main(int argc, char **argv) {
    bool bf16 = false;
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_runtime *runtime = NULL;
    int rounds = 15;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bf16") == 0)
            bf16 = true;
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            options.threads = atoi(argv[++i]);
        else
            rounds = atoi(argv[i]);
    }
    if (rounds < 1 || rounds > MOST_ROUNDS || options.threads < 1) {
        fprintf(stderr, "usage: bench_convolutions [--bf16] [--threads N] [ROUNDS]\n");
        return 2;
    }
    /* OpenMP, which oneDNN's threads are, reads this when the program begins. */
    char threads[16];
    snprintf(threads, sizeof threads, "%d", options.threads);
    const char *said = getenv("OMP_NUM_THREADS");
    if (said == NULL || strcmp(said, threads) != 0) {
        setenv("OMP_NUM_THREADS", threads, 1);
        execv("/proc/self/exe", argv);
        return 2;
    }
    must(kelp_runtime_create(&options, &runtime));
    well(dnnl_engine_create(&engine, dnnl_cpu, 0), "engine");
    well(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "stream");
    printf("| layer | image, kernel/stride to channels | Kelp us | GFLOP/s | oneDNN plain us | "
           "oneDNN blocked us | Kelp / plain | Kelp / blocked | difference "
           "|\n|---|---|--:|--:|--:|--:|--:|--:|--:|\n");
    double sums[2] = {0, 0};
    static job jobs[KELP_COUNT(shapes)];
    for (size_t i = 0; i < KELP_COUNT(shapes); i++) {
        double ratios[2];
        jobs[i].s = &shapes[i];
        compare(&jobs[i], runtime, bf16, rounds, ratios);
        sums[0] += log(ratios[0]);
        sums[1] += log(ratios[1]);
    }
    printf("| geometric mean | | | | | | %.2f | %.2f | |\n", exp(sums[0] / KELP_COUNT(shapes)),
           exp(sums[1] / KELP_COUNT(shapes)));
    dnnl_stream_destroy(stream);
    dnnl_engine_destroy(engine);
    kelp_runtime_release(runtime);
    return 0;
}
