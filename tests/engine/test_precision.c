/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engines with bfloat16 precision: convolutions and products of many shapes against sums of rounded
 * operands in double precision, on every instruction set of the CPU. Without the option, results do
 * not change.
 */
#include "onnx/onnx_writer.h"
#include "cpu/kernels/cpu_features.h"
#include "support/failing_allocator.h"

#include <kelp/engine.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

static uint32_t seed = 7;

static void fill(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)seed * 0x1p-31f;
    }
}

static double rounded(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

/* ---- one node in an engine ---- */
typedef struct session {
    kelp_runtime *runtime;
    kelp_graph *graph;
    kelp_engine *engine;
    kelp_context *context;
} session;

static void open_session(session *s, const pb *model, kelp_precision precision, int threads,
                         kelp_allocator allocator) {
    kelp_runtime_options options = {
        .struct_size = sizeof options, .threads = threads, .allocator = allocator};
    kelp_engine_options chosen = {.struct_size = sizeof chosen, .precision = precision};
    check_ok(kelp_runtime_create(&options, &s->runtime));
    check_ok(kelp_graph_load_bytes(allocator, model->data, model->length, "model", NULL, NULL, NULL,
                                   NULL, &s->graph));
    check_ok(kelp_engine_create(s->runtime, s->graph, &chosen, &s->engine));
    check_ok(kelp_context_create(s->engine, &s->context));
}

static void close_session(session *s) {
    kelp_context_destroy(s->context);
    kelp_engine_release(s->engine);
    kelp_graph_release(s->graph);
    kelp_runtime_release(s->runtime);
}

static const float *run(session *s, int32_t rank, const int64_t *shape, float *x) {
    kelp_tensor tensor;
    check_ok(kelp_tensor_init(&tensor, KELP_F32, rank, shape, x));
    check_ok(kelp_context_set_input(s->context, 0, &tensor));
    check_ok(kelp_context_invoke(s->context));
    return kelp_context_output(s->context, 0)->data;
}

static void close_to(double found, double expected, double size) {
    if (!(fabs(found - expected) <= 2e-6 * size))
        fail_msg("expected %.9g, found %.9g, of terms that sum to %.3g", expected, found, size);
}

/* ---- convolutions ---- */
typedef struct conv_case {
    int64_t batch, groups, in, out; /* channels per group */
    int64_t size[2], kernel[2], stride[2], dilation[2], pads[4];
    bool one_axis; /* size[0] and the other first elements are 1 and not used */
    bool relu;
} conv_case;

static const conv_case convs[] = {
    /* kernels of size 1; dilated; a wide image */
    {1, 1, 33, 32, {9, 11}, {1, 1}, {1, 1}, {1, 1}, {0}, false, true},
    {2, 1, 32, 33, {10, 7}, {1, 1}, {2, 2}, {1, 1}, {0}, false, false},
    {1, 1, 17, 64, {3, 300}, {1, 1}, {1, 1}, {1, 1}, {0}, false, false},
    /* more pairs than one sum has */
    {1, 1, 71, 5, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, false, true},
    {2, 1, 9, 13, {14, 15}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, false, false},
    {1, 1, 9, 13, {15, 14}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, false, true},
    {1, 1, 3, 24, {33, 37}, {7, 5}, {2, 3}, {1, 1}, {3, 2, 0, 1}, false, false},
    {1, 1, 8, 16, {20, 21}, {3, 3}, {1, 1}, {2, 3}, {2, 3, 2, 3}, false, false},
    {1, 1, 8, 16, {20, 21}, {3, 3}, {2, 2}, {3, 2}, {3, 2, 1, 0}, false, false},
    {1, 1, 8, 15, {12, 13}, {4, 3}, {1, 1}, {1, 1}, {-1, 2, 3, -1}, false, false},
    {2, 4, 5, 6, {11, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, false, true},
    /* kernels larger than the remainders of the stride, and smaller than the stride */
    {1, 1, 8, 40, {16, 16}, {2, 2}, {3, 4}, {1, 1}, {0}, false, false},
    {1, 1, 16, 20, {70, 40}, {2, 3}, {1, 1}, {1, 1}, {0, 1, 1, 1}, false, false},
    /* few positions */
    {1, 1, 40, 30, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {0}, false, true},
    {2, 1, 9, 18, {3, 4}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, false, false},
    /* one axis */
    {1, 1, 20, 24, {1, 200}, {1, 3}, {1, 1}, {1, 1}, {0, 1, 0, 1}, true, true},
    {3, 1, 11, 24, {1, 50}, {1, 5}, {1, 2}, {1, 2}, {0, 4, 0, 4}, true, false},
};

static int64_t output_dim(const conv_case *c, int axis) {
    return (c->size[axis] + c->pads[axis] + c->pads[axis + 2] -
            (c->kernel[axis] - 1) * c->dilation[axis] - 1) /
               c->stride[axis] +
           1;
}

static pb conv_model(const conv_case *c, const float *weights, const float *bias) {
    pb graph = {0}, node = pb_node("Conv", "x w b", "y");
    int skip = c->one_axis ? 1 : 0;
    size_t axes = c->one_axis ? 1 : 2;
    int64_t channels = c->groups * c->out, shape[4] = {channels, c->in, c->kernel[0], c->kernel[1]};
    int64_t elements = channels * c->in * c->kernel[0] * c->kernel[1], pads[2];
    pads[0] = c->pads[1];
    pads[1] = c->pads[3];
    if (c->one_axis)
        shape[2] = c->kernel[1];
    pb_attr_int(&node, "group", c->groups);
    pb_attr_ints(&node, "strides", axes, c->stride + skip);
    pb_attr_ints(&node, "dilations", axes, c->dilation + skip);
    pb_attr_ints(&node, "pads", 2 * axes, c->one_axis ? pads : c->pads);
    pb_add_node(&graph, &node);
    if (c->relu) {
        pb relu = pb_node("Relu", "y", "z");
        pb_add_node(&graph, &relu);
    }
    pb_add_input(&graph, "x", c->one_axis ? "float32[n,c,w]" : "float32[n,c,h,w]");
    pb_add_output(&graph, c->relu ? "z" : "y", c->one_axis ? "float32[n,d,v]" : "float32[n,d,g,v]");
    pb tensor = pb_tensor("w", KELP_F32, c->one_axis ? 3 : 4, shape, weights,
                          (size_t)elements * sizeof *weights);
    pb_add_initializer(&graph, &tensor);
    tensor = pb_tensor("b", KELP_F32, 1, &channels, bias, (size_t)channels * sizeof *bias);
    pb_add_initializer(&graph, &tensor);
    return pb_model(&graph, 13);
}

static double conv_at(const conv_case *c, const float *x, const float *w, int64_t channel,
                      int64_t row, int64_t column, double *out_size) {
    double sum = 0;
    const float *from = x + channel / c->out * c->in * c->size[0] * c->size[1];
    const float *taps = w + channel * c->in * c->kernel[0] * c->kernel[1];
    for (int64_t i = 0; i < c->in; i++)
        for (int64_t a = 0; a < c->kernel[0]; a++)
            for (int64_t b = 0; b < c->kernel[1]; b++, taps++) {
                int64_t y = row * c->stride[0] + a * c->dilation[0] - c->pads[0];
                int64_t z = column * c->stride[1] + b * c->dilation[1] - c->pads[1];
                if (y < 0 || y >= c->size[0] || z < 0 || z >= c->size[1])
                    continue;
                double term = rounded(from[(i * c->size[0] + y) * c->size[1] + z]) * rounded(*taps);
                sum += term;
                *out_size += fabs(term);
            }
    return sum;
}

static void check_conv(const conv_case *c, const float *x, const float *w, const float *bias,
                       const float *found) {
    int64_t high = output_dim(c, 0), wide = output_dim(c, 1), channels = c->groups * c->out;
    int64_t image = c->groups * c->in * c->size[0] * c->size[1];
    for (int64_t n = 0; n < c->batch; n++)
        for (int64_t channel = 0; channel < channels; channel++)
            for (int64_t i = 0; i < high * wide; i++, found++) {
                double size = 1;
                double sum = (double)bias[channel] +
                             conv_at(c, x + n * image, w, channel, i / wide, i % wide, &size);
                close_to((double)*found, c->relu && sum < 0 ? 0 : sum, size);
            }
}

static void run_conv(const conv_case *c, int threads) {
    int64_t weight_count = c->groups * c->out * c->in * c->kernel[0] * c->kernel[1];
    int64_t count = c->batch * c->groups * c->in * c->size[0] * c->size[1];
    float *x = malloc((size_t)count * sizeof *x);
    float *w = malloc((size_t)weight_count * sizeof *w), bias[64];
    int64_t shape[4] = {c->batch, c->groups * c->in, c->size[0], c->size[1]};
    if (c->one_axis)
        shape[2] = c->size[1];
    fill(x, count);
    fill(w, weight_count);
    fill(bias, 64);
    pb model = conv_model(c, w, bias);
    session s;
    open_session(&s, &model, KELP_PRECISION_BF16, threads, kelp_allocator_system());
    assert_int_equal(kelp_engine_get_stats(s.engine).nodes_bf16, 1);
    check_conv(c, x, w, bias, run(&s, c->one_axis ? 3 : 4, shape, x));
    close_session(&s);
    free(w);
    free(x);
}

static void convolutions_multiply_rounded_operands(void **state) {
    (void)state;
    for (int isa = KELP_ISA_PORTABLE; isa <= KELP_ISA_BEST; isa++) {
        kelp_cpu_isa_limit((kelp_cpu_isa)isa);
        for (size_t i = 0; i < sizeof convs / sizeof convs[0]; i++)
            for (int threads = 1; threads <= 5; threads += 2)
                run_conv(&convs[i], threads);
    }
    kelp_cpu_isa_limit(KELP_ISA_BEST);
}

/* ---- products ---- */
typedef struct product_case {
    const char *op; /* MatMul or Gemm; Gemm has transB */
    int64_t rows, k, n;
    bool bias;
} product_case;

static const product_case products[] = {
    {"MatMul", 1, 70, 40, false}, {"MatMul", 130, 33, 50, true}, {"MatMul", 7, 64, 31, true},
    {"Gemm", 1, 100, 12, true},   {"Gemm", 40, 65, 24, false},   {"Gemm", 5, 128, 8, true},
};

static pb product_model(const product_case *c, const float *weights, const float *bias) {
    bool gemm = strcmp(c->op, "Gemm") == 0;
    int64_t shape[2] = {gemm ? c->n : c->k, gemm ? c->k : c->n};
    pb graph = {0}, node = pb_node(c->op, gemm && c->bias ? "x w b" : "x w", "y");
    if (gemm)
        pb_attr_int(&node, "transB", 1);
    pb_add_node(&graph, &node);
    if (!gemm && c->bias) {
        pb add = pb_node("Add", "y b", "z");
        pb_add_node(&graph, &add);
    }
    pb_add_input(&graph, "x", gemm ? "float32[n,k]" : "float32[n,m,k]");
    pb_add_output(&graph, !gemm && c->bias ? "z" : "y", gemm ? "float32[n,q]" : "float32[n,m,q]");
    pb tensor = pb_tensor("w", KELP_F32, 2, shape, weights, (size_t)(c->k * c->n) * 4);
    pb_add_initializer(&graph, &tensor);
    tensor = pb_tensor("b", KELP_F32, 1, &c->n, bias, (size_t)c->n * 4);
    pb_add_initializer(&graph, &tensor);
    return pb_model(&graph, 13);
}

static void run_product(const product_case *c, int threads) {
    bool gemm = strcmp(c->op, "Gemm") == 0;
    float *x = malloc((size_t)(c->rows * c->k) * sizeof *x);
    float *w = malloc((size_t)(c->k * c->n) * sizeof *w), bias[64];
    int64_t shape[3] = {1, c->rows, c->k};
    fill(x, c->rows * c->k);
    fill(w, c->k * c->n);
    fill(bias, 64);
    pb model = product_model(c, w, bias);
    session s;
    open_session(&s, &model, KELP_PRECISION_BF16, threads, kelp_allocator_system());
    assert_int_equal(kelp_engine_get_stats(s.engine).nodes_bf16, 1);
    const float *found = run(&s, gemm ? 2 : 3, gemm ? shape + 1 : shape, x);
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->n; j++) {
            double sum = c->bias ? (double)bias[j] : 0, size = 1;
            for (int64_t p = 0; p < c->k; p++) {
                double term =
                    rounded(x[i * c->k + p]) * rounded(gemm ? w[j * c->k + p] : w[p * c->n + j]);
                sum += term;
                size += fabs(term);
            }
            close_to((double)found[i * c->n + j], sum, size);
        }
    close_session(&s);
    free(w);
    free(x);
}

static void products_multiply_rounded_operands(void **state) {
    (void)state;
    for (int isa = KELP_ISA_PORTABLE; isa <= KELP_ISA_BEST; isa++) {
        kelp_cpu_isa_limit((kelp_cpu_isa)isa);
        for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
            for (int threads = 1; threads <= 3; threads += 2)
                run_product(&products[i], threads);
    }
    kelp_cpu_isa_limit(KELP_ISA_BEST);
}

/* ---- the option ---- */
static void default_precision_is_exact(void **state) {
    (void)state;
    const conv_case *c = &convs[4];
    float x[2 * 9 * 14 * 15], w[13 * 9 * 9], bias[13];
    int64_t shape[4] = {2, 9, 14, 15};
    fill(x, 2 * 9 * 14 * 15);
    fill(w, 13 * 9 * 9);
    fill(bias, 13);
    pb model = conv_model(c, w, bias);
    session f32, bf16;
    open_session(&f32, &model, KELP_PRECISION_F32, 1, kelp_allocator_system());
    open_session(&bf16, &model, KELP_PRECISION_BF16, 1, kelp_allocator_system());
    assert_int_equal(kelp_engine_get_stats(f32.engine).nodes_bf16, 0);
    const float *exact = run(&f32, 4, shape, x), *coarse = run(&bf16, 4, shape, x);
    bool differs = false;
    for (int64_t i = 0; i < 2 * 13 * 14 * 15; i++) {
        differs = differs || exact[i] != coarse[i];
        assert_true(fabsf(exact[i] - coarse[i]) < 0.1f); /* 81 terms below 1, 8 bits each */
    }
    assert_true(differs);
    close_session(&f32);
    close_session(&bf16);
    kelp_engine_options options = {.struct_size = sizeof options, .precision = (kelp_precision)9};
    kelp_engine *engine = NULL;
    session s;
    open_session(&s, &model, KELP_PRECISION_F32, 1, kelp_allocator_system());
    expect_failure(kelp_engine_create(s.runtime, s.graph, &options, &engine), KELP_INVALID_ARGUMENT,
                   "precision");
    close_session(&s);
}

static void small_and_unusual_nodes_stay_exact(void **state) {
    (void)state;
    static const conv_case depthwise = {1,      30,           1,     1,    {9, 9}, {7, 7}, {1, 1},
                                        {1, 1}, {3, 3, 3, 3}, false, false};
    static const conv_case small = {1,     1,    4, 4, {9, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1},
                                    false, false};
    float w[30 * 49], bias[64];
    fill(w, 30 * 49);
    fill(bias, 64);
    const conv_case *cases[] = {&depthwise, &small};
    for (int i = 0; i < 2; i++) {
        pb model = conv_model(cases[i], w, bias);
        session s;
        open_session(&s, &model, KELP_PRECISION_BF16, 1, kelp_allocator_system());
        assert_int_equal(kelp_engine_get_stats(s.engine).nodes_bf16, 0);
        close_session(&s);
    }
}

/* x + Conv(x), then Relu: one node with the result of the three. */
static void added_operand_is_fused(void **state) {
    (void)state;
    static const conv_case c = {1,      1,      12,           12,    {11, 13}, {3, 3},
                                {1, 1}, {1, 1}, {1, 1, 1, 1}, false, false};
    float x[12 * 11 * 13], w[12 * 12 * 9], bias[12];
    int64_t shape[4] = {1, 12, 11, 13};
    fill(x, 12 * 11 * 13);
    fill(w, 12 * 12 * 9);
    fill(bias, 12);
    pb graph = {0}, conv = pb_node("Conv", "x w b", "y"), add = pb_node("Add", "x y", "s"),
       relu = pb_node("Relu", "s", "z");
    pb_attr_ints(&conv, "pads", 4, c.pads);
    pb_add_node(&graph, &conv);
    pb_add_node(&graph, &add);
    pb_add_node(&graph, &relu);
    pb_add_input(&graph, "x", "float32[1,12,11,13]");
    pb_add_output(&graph, "z", "float32[1,12,11,13]");
    int64_t dims[4] = {12, 12, 3, 3};
    pb tensor = pb_tensor("w", KELP_F32, 4, dims, w, sizeof w);
    pb_add_initializer(&graph, &tensor);
    tensor = pb_tensor("b", KELP_F32, 1, dims, bias, sizeof bias);
    pb_add_initializer(&graph, &tensor);
    pb model = pb_model(&graph, 13);
    session s;
    open_session(&s, &model, KELP_PRECISION_BF16, 1, kelp_allocator_system());
    assert_int_equal(kelp_engine_get_stats(s.engine).nodes_planned, 1);
    const float *found = run(&s, 4, shape, x);
    for (int64_t i = 0; i < 12 * 11 * 13; i++) {
        double size = 2;
        double sum = (double)bias[i / 143] + (double)x[i] +
                     conv_at(&c, x, w, i / 143, i % 143 / 13, i % 13, &size);
        close_to((double)found[i], sum < 0 ? 0 : sum, size);
    }
    close_session(&s);
}

/* ---- chains ---- */
/* Three convolutions with an activation between them. Intermediate tensors are bfloat16 if the
 * channels allow it. `added`: the inputs of the second and third are added to their results;
 * `given`: x is added to the result of the third. All values are small integers, so that results
 * are exact in any order of summation. */
typedef struct chain_case {
    int64_t batch, in, mid, out, size[2], kernel, stride, dilation; /* of the second */
    bool added, given, one_axis;
    int64_t most; /* of the activation; 0: none */
    int64_t pool; /* window of a max pooling with stride 2 after the first; 0: none */
} chain_case;

static const chain_case chains[] = {
    {1, 20, 16, 20, {9, 11}, 3, 1, 1, true, false, false, 0, 0},
    {2, 20, 64, 64, {7, 7}, 1, 1, 1, true, false, false, 0, 0},
    {1, 33, 48, 17, {14, 13}, 3, 2, 1, false, false, false, 0, 0},
    {2, 16, 32, 50, {8, 30}, 1, 2, 1, false, false, false, 6, 0},
    {1, 20, 90, 20, {13, 12}, 1, 1, 1, false, true, false, 0, 0},
    {1, 20, 26, 20, {13, 12}, 5, 1, 1, false, true, false, 0, 0},
    {1, 6, 48, 33, {6, 40}, 3, 1, 2, true, false, false, 6, 0},
    {3, 9, 32, 31, {1, 130}, 3, 1, 3, true, false, true, 0, 0},
    {1, 12, 32, 16, {90, 1}, 1, 1, 1, false, false, false, 0, 0},
    {2, 20, 48, 20, {17, 20}, 3, 1, 1, true, false, false, 0, 3},
    {1, 20, 30, 20, {16, 12}, 1, 1, 1, false, false, false, 0, 2},
    {2, 20, 32, 16, {1, 70}, 3, 1, 1, true, false, true, 6, 3},
    /* channels that do not fill panels are not interleaved, and neither are the intermediate
       tensors */
    {2, 8, 34, 40, {10, 10}, 3, 1, 1, true, false, false, 0, 0},
    {1, 20, 18, 13, {11, 13}, 3, 1, 1, true, false, false, 0, 0},
};

typedef struct layer {
    int64_t in, out, kernel, stride, dilation;
    float *w, *bias;
} layer;

/* Up to six weights of -1 and 1 per output channel. */
static void make_layer(layer *l) {
    int64_t count = l->in * l->kernel * l->kernel;
    l->w = calloc((size_t)(l->out * count), sizeof *l->w);
    l->bias = calloc((size_t)l->out, sizeof *l->bias);
    for (int64_t i = 0; i < l->out; i++) {
        float draw[7];
        fill(draw, 7);
        for (int k = 0; k < 6; k++)
            l->w[i * count + (int64_t)((double)fabsf(draw[k]) * (double)(count - 1))] =
                draw[k] < 0 ? -1 : 1;
        l->bias[i] = floorf(draw[6] * 3);
    }
}

static int64_t layer_out(const layer *l, int64_t dim) {
    int64_t pad = l->kernel / 2 * l->dilation;
    return (dim + 2 * pad - (l->kernel - 1) * l->dilation - 1) / l->stride + 1;
}

/* The definition. NULL: not added; most 0: no limit. */
static float *run_layer(const layer *l, bool one_axis, const float *x, int64_t batch, int64_t high,
                        int64_t wide, const float *add, bool relu, int64_t most) {
    int64_t pad = l->kernel / 2 * l->dilation, tall = one_axis ? 1 : l->kernel;
    int64_t rows = one_axis ? 1 : layer_out(l, high), columns = layer_out(l, wide);
    float *y = malloc((size_t)(batch * l->out * rows * columns) * sizeof *y);
    for (int64_t i = 0; i < batch * l->out * rows * columns; i++) {
        int64_t image = i / columns / rows / l->out, channel = i / columns / rows % l->out;
        double sum = (double)l->bias[channel];
        for (int64_t k = 0; k < l->in * tall * l->kernel; k++) {
            int64_t r = one_axis ? 0
                                 : i / columns % rows * l->stride +
                                       k / l->kernel % tall * l->dilation - pad;
            int64_t c = i % columns * l->stride + k % l->kernel * l->dilation - pad;
            if (r >= 0 && r < high && c >= 0 && c < wide)
                sum += (double)l->w[channel * l->in * tall * l->kernel + k] *
                       (double)x[((image * l->in + k / l->kernel / tall) * high + r) * wide + c];
        }
        sum += add != NULL ? (double)add[i] : 0;
        sum = relu && sum < 0 ? 0 : sum;
        y[i] = (float)(most > 0 && sum > (double)most ? (double)most : sum);
    }
    return y;
}

static void add_layer(pb *graph, const layer *l, bool one_axis, const char *names, const char *x,
                      const char *y) {
    char inputs[16];
    int64_t pads[4], strides[2] = {l->stride, l->stride}, dilations[2] = {l->dilation, l->dilation};
    int64_t shape[4] = {l->out, l->in, l->kernel, l->kernel};
    for (int i = 0; i < 4; i++)
        pads[i] = l->kernel / 2 * l->dilation;
    snprintf(inputs, sizeof inputs, "%s w%s b%s", x, names, names);
    pb conv = pb_node("Conv", inputs, y);
    size_t axes = one_axis ? 1 : 2;
    pb_attr_ints(&conv, "pads", 2 * axes, pads);
    pb_attr_ints(&conv, "strides", axes, strides);
    pb_attr_ints(&conv, "dilations", axes, dilations);
    pb_add_node(graph, &conv);
    char name[8];
    size_t count = (size_t)(l->out * l->in * l->kernel * (one_axis ? 1 : l->kernel));
    snprintf(name, sizeof name, "w%s", names);
    pb tensor = pb_tensor(name, KELP_F32, one_axis ? 3 : 4, shape, l->w, count * sizeof(float));
    pb_add_initializer(graph, &tensor);
    snprintf(name, sizeof name, "b%s", names);
    tensor = pb_tensor(name, KELP_F32, 1, &l->out, l->bias, (size_t)l->out * sizeof(float));
    pb_add_initializer(graph, &tensor);
}

static void add_activation(pb *graph, const chain_case *c, const char *x, const char *y) {
    char inputs[16];
    snprintf(inputs, sizeof inputs, c->most > 0 ? "%s least most" : "%s", x);
    pb node = pb_node(c->most > 0 ? "Clip" : "Relu", inputs, y);
    pb_add_node(graph, &node);
}

static void add_pool(pb *graph, const chain_case *c) {
    int64_t kernel[2] = {c->pool, c->pool}, strides[2] = {2, 2}, pads[4];
    for (int i = 0; i < 4; i++)
        pads[i] = c->pool / 2 - (c->pool == 2);
    pb node = pb_node("MaxPool", "y0", "p0");
    size_t axes = c->one_axis ? 1 : 2;
    pb_attr_ints(&node, "kernel_shape", axes, kernel);
    pb_attr_ints(&node, "strides", axes, strides);
    pb_attr_ints(&node, "pads", 2 * axes, pads);
    pb_add_node(graph, &node);
}

static pb chain_model(const chain_case *c, const layer *layers) {
    pb graph = {0};
    add_layer(&graph, &layers[0], c->one_axis, "0", "x", "c0");
    add_activation(&graph, c, "c0", "y0");
    const char *between = c->pool > 0 ? "p0" : "y0";
    if (c->pool > 0)
        add_pool(&graph, c);
    add_layer(&graph, &layers[1], c->one_axis, "1", between, "c1");
    if (c->added) {
        pb add = pb_node("Add", c->pool > 0 ? "c1 p0" : "c1 y0", "s1");
        pb_add_node(&graph, &add);
    }
    add_activation(&graph, c, c->added ? "s1" : "c1", "y1");
    add_layer(&graph, &layers[2], c->one_axis, "2", "y1", c->added || c->given ? "c2" : "y");
    if (c->added || c->given) {
        pb add = pb_node("Add", c->given ? "x c2" : "y1 c2", "y");
        pb_add_node(&graph, &add);
    }
    char type[64]; /* dimensions are known, so that shapes can be compared */
    if (c->one_axis)
        snprintf(type, sizeof type, "float32[%d,%d,%d]", (int)c->batch, (int)c->in,
                 (int)c->size[1]);
    else
        snprintf(type, sizeof type, "float32[%d,%d,%d,%d]", (int)c->batch, (int)c->in,
                 (int)c->size[0], (int)c->size[1]);
    pb_add_input(&graph, "x", type);
    pb_add_output(&graph, "y", c->one_axis ? "float32[n,d,v]" : "float32[n,d,g,v]");
    float least = 0, most = (float)c->most;
    pb tensor = pb_tensor("least", KELP_F32, 0, NULL, &least, sizeof least);
    pb_add_initializer(&graph, &tensor);
    tensor = pb_tensor("most", KELP_F32, 0, NULL, &most, sizeof most);
    pb_add_initializer(&graph, &tensor);
    return pb_model(&graph, 13);
}

static int64_t pooled_dim(const chain_case *c, int64_t dim) {
    int64_t pad = c->pool / 2 - (c->pool == 2);
    return c->pool == 0 || dim == 1 ? dim : (dim + 2 * pad - c->pool) / 2 + 1;
}

static float *run_pool(const chain_case *c, float *x) {
    int64_t pad = c->pool / 2 - (c->pool == 2);
    int64_t high = pooled_dim(c, c->size[0]), wide = pooled_dim(c, c->size[1]);
    float *y = malloc((size_t)(c->batch * c->mid * high * wide) * sizeof *y);
    for (int64_t i = 0; i < c->batch * c->mid * high * wide; i++) {
        const float *plane = x + i / wide / high * c->size[0] * c->size[1];
        y[i] = -INFINITY;
        for (int64_t k = 0; k < c->pool * c->pool; k++) {
            int64_t row = c->size[0] == 1 ? 0 : i / wide % high * 2 + k / c->pool - pad;
            int64_t column = i % wide * 2 + k % c->pool - pad;
            if (row >= 0 && row < c->size[0] && column >= 0 && column < c->size[1])
                y[i] = fmaxf(y[i], plane[row * c->size[1] + column]);
        }
    }
    free(x);
    return y;
}

static float *expected_chain(const chain_case *c, const layer *layers, const float *x,
                             int64_t *out_count) {
    int64_t tall = pooled_dim(c, c->size[0]), broad = pooled_dim(c, c->size[1]);
    int64_t high = c->one_axis ? 1 : layer_out(&layers[1], tall);
    int64_t wide = layer_out(&layers[1], broad);
    float *first = run_layer(&layers[0], c->one_axis, x, c->batch, c->size[0], c->size[1], NULL,
                             true, c->most);
    if (c->pool > 0)
        first = run_pool(c, first);
    float *second = run_layer(&layers[1], c->one_axis, first, c->batch, tall, broad,
                              c->added ? first : NULL, true, c->most);
    const float *add = c->added ? second : c->given ? x : NULL;
    float *third = run_layer(&layers[2], c->one_axis, second, c->batch, high, wide, add, false, 0);
    *out_count = c->batch * c->out * high * wide;
    free(first);
    free(second);
    return third;
}

static void run_chain(const chain_case *c) {
    layer layers[3] = {{.in = c->in, .out = c->mid, .kernel = 1, .stride = 1, .dilation = 1},
                       {.in = c->mid, .out = c->mid},
                       {.in = c->mid, .out = c->out, .kernel = 1, .stride = 1, .dilation = 1}};
    layers[1].kernel = c->kernel;
    layers[1].stride = c->stride;
    layers[1].dilation = c->dilation;
    if (c->added) /* the input of the third is its residual, with equal channels */
        layers[2].out = c->mid;
    chain_case whole = *c;
    whole.out = layers[2].out;
    int64_t shape[4] = {c->batch, c->in, c->size[0], c->size[1]}, count = 0;
    int64_t elements = c->batch * c->in * c->size[0] * c->size[1];
    float *x = malloc((size_t)elements * sizeof *x);
    fill(x, elements);
    for (int64_t i = 0; i < elements; i++)
        x[i] = floorf(x[i] * 3);
    for (int i = 0; i < 3; i++)
        make_layer(&layers[i]);
    pb model = chain_model(c, layers);
    float *expected = expected_chain(&whole, layers, x, &count);
    if (c->one_axis)
        shape[2] = c->size[1];
    for (int isa = KELP_ISA_PORTABLE; isa <= KELP_ISA_BEST; isa++)
        for (int threads = 1; threads <= 5; threads += 2) {
            session s;
            kelp_cpu_isa_limit((kelp_cpu_isa)isa);
            open_session(&s, &model, KELP_PRECISION_BF16, threads, kelp_allocator_system());
            assert_int_equal(kelp_engine_get_stats(s.engine).nodes_planned, 3 + (c->pool > 0));
            assert_int_equal(kelp_engine_get_stats(s.engine).nodes_bf16, 3 + (c->pool > 0));
            const float *found = run(&s, c->one_axis ? 3 : 4, shape, x);
            for (int64_t i = 0; i < count; i++)
                if (found[i] != expected[i])
                    fail_msg("chain %d, isa %d, %d threads: expected %g at %d, found %g",
                             (int)(c - chains), isa, threads, (double)expected[i], (int)i,
                             (double)found[i]);
            close_session(&s);
        }
    kelp_cpu_isa_limit(KELP_ISA_BEST);
    for (int i = 0; i < 3; i++) {
        free(layers[i].w);
        free(layers[i].bias);
    }
    free(expected);
    free(x);
}

static void chains_stay_in_bfloat16(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof chains / sizeof chains[0]; i++)
        run_chain(&chains[i]);
}

/* ---- attention ---- */
#define HEADS 3
#define SIZE 13
#define QUERIES 70
#define KEYS 37

static void attend(const float *q, const float *k, const float *v, const float *mask, int64_t query,
                   int64_t head, double *out) {
    double scores[KEYS], most = -1e300, sum = 0;
    const float *row = q + query * HEADS * SIZE + head * SIZE;
    for (int64_t j = 0; j < KEYS; j++) {
        scores[j] = 0;
        for (int64_t d = 0; d < SIZE; d++)
            scores[j] += rounded(row[d]) * rounded(k[j * HEADS * SIZE + head * SIZE + d]);
        scores[j] = scores[j] * 0.5 + (double)mask[j];
        most = fmax(most, scores[j]);
    }
    for (int64_t j = 0; j < KEYS; j++)
        sum += scores[j] = exp(scores[j] - most);
    for (int64_t d = 0; d < SIZE; d++) {
        out[d] = 0;
        for (int64_t j = 0; j < KEYS; j++)
            out[d] += scores[j] / sum * rounded(v[j * HEADS * SIZE + head * SIZE + d]);
    }
}

static pb attention_model(const float *k, const float *v, const float *mask) {
    static const int64_t shape[3] = {1, KEYS, HEADS * SIZE}, dims[4] = {1, 1, 1, KEYS};
    pb graph = {0}, node = pb_node("Attention", "q k v m", "y");
    pb_text(&node, 7, "kelp");
    pb_attr_int(&node, "num_heads", HEADS);
    pb scale = {0};
    pb_text(&scale, 1, "scale");
    pb_float(&scale, 2, 0.5f);
    pb_int(&scale, 20, 1);
    pb_message(&node, 5, &scale);
    pb_add_node(&graph, &node);
    pb_add_input(&graph, "q", "float32[1,n,39]");
    pb_add_output(&graph, "y", "float32[1,n,39]");
    pb tensor = pb_tensor("k", KELP_F32, 3, shape, k, KEYS * HEADS * SIZE * 4);
    pb_add_initializer(&graph, &tensor);
    tensor = pb_tensor("v", KELP_F32, 3, shape, v, KEYS * HEADS * SIZE * 4);
    pb_add_initializer(&graph, &tensor);
    tensor = pb_tensor("m", KELP_F32, 4, dims, mask, KEYS * 4);
    pb_add_initializer(&graph, &tensor);
    pb model = pb_model(&graph, 13);
    pb_import(&model, "kelp", 1);
    return model;
}

static void attention_rounds_both_products(void **state) {
    (void)state;
    static float q[QUERIES * HEADS * SIZE], k[KEYS * HEADS * SIZE], v[KEYS * HEADS * SIZE],
        mask[KEYS];
    static const int64_t shape[3] = {1, QUERIES, HEADS * SIZE};
    fill(q, QUERIES * HEADS * SIZE);
    fill(k, KEYS * HEADS * SIZE);
    fill(v, KEYS * HEADS * SIZE);
    fill(mask, KEYS);
    pb model = attention_model(k, v, mask);
    for (int isa = KELP_ISA_PORTABLE; isa <= KELP_ISA_BEST; isa++)
        for (int threads = 1; threads <= 3; threads += 2) {
            session s;
            kelp_cpu_isa_limit((kelp_cpu_isa)isa);
            open_session(&s, &model, KELP_PRECISION_BF16, threads, kelp_allocator_system());
            assert_int_equal(kelp_engine_get_stats(s.engine).nodes_bf16, 1);
            const float *found = run(&s, 3, shape, q);
            for (int64_t i = 0; i < QUERIES * HEADS; i++) {
                double expected[SIZE]; /* the result of the softmax is rounded too, to 8 bits */
                attend(q, k, v, mask, i / HEADS, i % HEADS, expected);
                for (int64_t d = 0; d < SIZE; d++)
                    assert_true(fabs((double)found[i * SIZE + d] - expected[d]) < 0x1p-9);
            }
            close_session(&s);
        }
    kelp_cpu_isa_limit(KELP_ISA_BEST);
}

static void repeated_invoke_does_not_allocate(void **state) {
    (void)state;
    test_failing memory;
    float x[40 * 65 + 2 * 9 * 14 * 15], w[65 * 24], bias[64];
    fill(x, (int64_t)(sizeof x / sizeof *x));
    fill(w, 65 * 24);
    fill(bias, 64);
    pb models[2] = {conv_model(&convs[4], w, bias), product_model(&products[4], w, bias)};
    const int64_t shapes[2][4] = {{2, 9, 14, 15}, {40, 65}};
    for (int i = 0; i < 2; i++) {
        session s;
        test_failing_init(&memory, 0);
        open_session(&s, &models[i], KELP_PRECISION_BF16, 2, test_failing_allocator(&memory));
        run(&s, i == 0 ? 4 : 2, shapes[i], x);
        uint64_t before = memory.calls;
        for (int round = 0; round < 5; round++)
            run(&s, i == 0 ? 4 : 2, shapes[i], x);
        assert_int_equal(memory.calls, before);
        close_session(&s);
        test_failing_check(&memory);
        test_failing_deinit(&memory);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_multiply_rounded_operands),
        cmocka_unit_test(products_multiply_rounded_operands),
        cmocka_unit_test(default_precision_is_exact),
        cmocka_unit_test(small_and_unusual_nodes_stay_exact),
        cmocka_unit_test(added_operand_is_fused),
        cmocka_unit_test(chains_stay_in_bfloat16),
        cmocka_unit_test(attention_rounds_both_products),
        cmocka_unit_test(repeated_invoke_does_not_allocate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
