/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution as [positions, depth] · [depth, output channels]. Source: Chellapilla, Puri and
 * Simard, "High Performance Convolutional Neural Networks for Document Processing", 2006, with the
 * operands in the other order. */
#include "base/assert.h"
#include "cpu/kernels/conv/conv.h"
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/kernels/layout/layout_kernels.h"
#include "cpu/kernels/tuning.h"

#define PACK_TAPS 128 /* transposed at a time */
#define BLOCK KELP_IM2ROW_BLOCK
#define MIN_DEPTH 32
#define MIN_OUT_CHANNELS 16

/* ---- weights ---- */
void kelp_conv_transpose_weights(int64_t width, const void *weights, int64_t stride, int64_t rows,
                                 int64_t taps, float *out) {
    KELP_ASSERT(rows <= width);
    if (rows < width)
        memset(out, 0, (size_t)(taps * width) * sizeof *out);
    kelp_layout_kernels_get()->transpose(out, width, weights, stride, rows, taps);
}

void kelp_conv_im2row_pack(const kelp_gemm_kernels *kernels, const void *weights, int64_t taps,
                           int64_t in_channels, int64_t out_channels, float *out) {
    float piece[PACK_TAPS * KELP_GEMM_MAX_TILE_COLUMNS];
    int64_t width = kernels->tile_columns, depth = taps * in_channels;
    for (int64_t m = 0; m < out_channels; m += width, out += depth * width)
        for (int64_t k = 0; k < depth; k += PACK_TAPS) {
            int64_t count = KELP_MIN((int64_t)PACK_TAPS, depth - k);
            kelp_conv_transpose_weights(width, (const kelp_float_u *)weights + m * depth + k, depth,
                                        KELP_MIN(width, out_channels - m), count, piece);
            for (int64_t i = 0; i < count; i++)
                memcpy(out + ((k + i) % taps * in_channels + (k + i) / taps) * width,
                       piece + i * width, (size_t)width * sizeof *out);
        }
}

/* ---- choice ---- */
static bool is_few(const kelp_conv *conv) {
    return conv->shape.batch * conv->shape.window.out_size <= KELP_IM2ROW_FEW;
}

static bool is_applicable(const kelp_conv *conv) {
    return conv->shape.groups == 1 && kelp_conv_fits_int32(conv);
}

static bool is_applicable_few(const kelp_conv *conv) {
    return is_applicable(conv) && is_few(conv);
}

/* With positions as columns, the part of the last vector without positions is wasted; with
 * positions as rows, the input and the result are transposed. */
static bool is_profitable(const kelp_conv *conv) {
    const kelp_conv_shape *s = &conv->shape;
    const kelp_conv_window *w = &s->window;
    int64_t positions = s->batch * w->out_size, lanes = conv->gemm->tile_columns / 2;
    if (positions < 1 || positions > KELP_IM2ROW_MAX ||
        s->in_channels * w->kernel_size < MIN_DEPTH || s->out_channels < MIN_OUT_CHANNELS ||
        s->batch * w->in_size > 8 * positions * w->kernel_size)
        return false;
    int64_t filled = kelp_round_up(positions, lanes);
    return is_few(conv) || (s->out_channels >= 64 && (positions + 2) * 9 < filled * 8);
}

/* ---- run ---- */
/* Returns true if the windows are contiguous in the NHWC image, stride[2] pixels apart. */
static bool are_in_image(const kelp_conv_window *w, int64_t batch) {
    bool plain = w->kernel_size == 1, line = batch == 1 && w->dilation[2] == 1;
    for (int i = 0; i < KELP_WINDOW_AXES; i++) {
        plain = plain && w->stride[i] == 1 && w->before[i] == 0 && w->after[i] == 0;
        line = line && w->before[i] == 0 && (i == 2 || (w->in[i] == 1 && w->out[i] == 1));
    }
    line = line && w->kernel[0] == 1 && w->kernel[1] == 1;
    return plain || (line && (w->out[2] - 1) * w->stride[2] + w->kernel[2] <= w->in[2]);
}

static bool reserve(kelp_conv *conv) {
    const kelp_conv_shape *s = &conv->shape;
    const kelp_conv_window *w = &s->window;
    int64_t positions = s->batch * w->out_size, floats = 0, pixels = 0;
    int64_t depth = are_in_image(w, s->batch) ? 0 : s->in_channels * w->kernel_size;
    return kelp_i64_mul(positions, depth + s->out_channels, &floats) &&
           kelp_i64_mul(s->batch * w->in_size, s->in_channels, &pixels) &&
           kelp_i64_add(floats, pixels, &conv->shared_floats);
}

typedef struct im2row_run {
    const kelp_conv *conv;
    const float *image; /* NHWC */
    float *pixels, *rows, *result;
} im2row_run;

/* Transposes blocks of input channels to NHWC. */
static void to_nhwc(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_layout_kernels *layout = kelp_layout_kernels_get();
    const im2row_run *r = userp;
    const kelp_conv *conv = r->conv;
    int64_t size = conv->shape.window.in_size, first = begin * BLOCK;
    int64_t count = KELP_MIN(end * BLOCK, conv->shape.in_channels) - first;
    (void)worker;
    for (int64_t i = 0; i < conv->shape.batch; i++)
        layout->transpose(
            r->pixels + i * size * conv->shape.in_channels + first, conv->shape.in_channels,
            conv->x + (i * conv->shape.in_channels + first) * size, size, count, size);
}

/* Gathers the channels of each tap of one kernel row, from pixel `first` of an image row (NULL:
 * outside the image); zeros outside. */
static float *gather_row(const kelp_conv *conv, const float *row, int64_t first, float *to) {
    const kelp_conv_window *w = &conv->shape.window;
    int64_t taps = w->kernel[2], step = w->dilation[2], channels = conv->shape.in_channels;
    int64_t begin = row == NULL ? taps : first >= 0 ? 0 : KELP_MIN(taps, (step - 1 - first) / step);
    int64_t end = first >= w->in[2] ? begin : KELP_MIN(taps, (w->in[2] - 1 - first) / step + 1);
    end = KELP_MAX(begin, end);
    memset(to, 0, (size_t)(begin * channels) * sizeof *to);
    for (int64_t t = begin, run = step == 1 ? end - begin : 1; t < end; t += run)
        memcpy(to + t * channels, row + (first + t * step) * channels,
               (size_t)(run * channels) * sizeof *to);
    memset(to + end * channels, 0, (size_t)((taps - end) * channels) * sizeof *to);
    return to + taps * channels;
}

/* Gathers the windows of output positions [begin, end). */
static void gather_taps(void *userp, int64_t begin, int64_t end, int worker) {
    const im2row_run *r = userp;
    const kelp_conv *conv = r->conv;
    const kelp_conv_window *w = &conv->shape.window;
    float *to = r->rows + begin * conv->shape.in_channels * w->kernel_size;
    (void)worker;
    for (int64_t position = begin; position < end; position++) {
        int64_t first[KELP_WINDOW_AXES], at = position % w->out_size;
        const float *image =
            r->image + position / w->out_size * w->in_size * conv->shape.in_channels;
        for (int i = KELP_WINDOW_AXES; i-- > 0; at /= w->out[i])
            first[i] = at % w->out[i] * w->stride[i] - w->before[i];
        for (int64_t a = 0; a < w->kernel[0]; a++)
            for (int64_t b = 0; b < w->kernel[1]; b++) {
                int64_t z = first[0] + a * w->dilation[0], y = first[1] + b * w->dilation[1];
                bool inside = z >= 0 && z < w->in[0] && y >= 0 && y < w->in[1];
                int64_t pixel = (z * w->in[1] + y) * w->in[2];
                to = gather_row(conv, inside ? image + pixel * conv->shape.in_channels : NULL,
                                first[2], to);
            }
    }
}

/* Transposes blocks of output channels to NCHW. */
static void to_nchw(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const kelp_layout_kernels *layout = kelp_layout_kernels_get();
    const im2row_run *r = userp;
    const kelp_conv *conv = r->conv;
    int64_t size = conv->shape.window.out_size, first = begin * BLOCK;
    int64_t count = KELP_MIN(end * BLOCK, conv->shape.out_channels) - first;
    (void)worker;
    for (int64_t i = 0; i < conv->shape.batch; i++) {
        int64_t to = (i * conv->shape.out_channels + first) * size;
        layout->transpose(conv->y + to, size,
                          r->result + i * size * conv->shape.out_channels + first,
                          conv->shape.out_channels, size, count);
        if (conv->residual != NULL)
            elementwise->finish(conv->y + to, NULL, 0.0f, conv->residual + to, count * size,
                                conv->act);
    }
}

static int64_t blocks_of(int64_t channels) {
    return kelp_divide_up(channels, BLOCK);
}

static void run(const kelp_op_env *env, kelp_conv *conv) {
    const kelp_conv_shape *s = &conv->shape;
    const kelp_conv_window *w = &s->window;
    bool gathers = !are_in_image(w, s->batch), one = w->out_size == 1;
    int64_t depth = s->in_channels * w->kernel_size, positions = s->batch * w->out_size;
    im2row_run r = {.conv = conv, .image = conv->x, .pixels = conv->scratch};
    KELP_ASSERT(s->groups == 1 && conv->packed_weights != NULL && conv->scratch != NULL);
    r.rows = r.pixels + s->batch * w->in_size * s->in_channels;
    r.result = one ? conv->y : r.rows + (gathers ? positions * depth : 0);
    if (s->in_channels > 1 && w->in_size > 1) {
        kelp_op_parallel(env, blocks_of(s->in_channels),
                         kelp_cpu_grain(KELP_GRAIN_TRANSPOSE, s->batch * w->in_size * BLOCK),
                         to_nhwc, &r);
        r.image = r.pixels;
    }
    if (gathers)
        kelp_op_parallel(env, positions, kelp_cpu_grain(KELP_GRAIN_TRANSPOSE, depth), gather_taps,
                         &r);
    kelp_gemm_run(env,
                  &(kelp_gemm){.a = gathers ? r.rows : r.image,
                               .c = r.result,
                               .m = positions,
                               .n = s->out_channels,
                               .k = depth,
                               .lda = gathers ? depth : w->stride[2] * s->in_channels,
                               .ldb = s->out_channels,
                               .ldc = s->out_channels,
                               .bias = conv->bias,
                               .residual = one ? conv->residual : NULL,
                               .act = conv->residual == NULL || one ? conv->act : KELP_ACT_NONE,
                               .packed = conv->packed_weights,
                               .kernels = conv->gemm},
                  1);
    if (!one)
        kelp_op_parallel(env, blocks_of(s->out_channels),
                         kelp_cpu_grain(KELP_GRAIN_TRANSPOSE, positions * BLOCK), to_nchw, &r);
}

const kelp_conv_algorithm kelp_conv_im2row_few = {.name = "im2row_few",
                                                  .layout = KELP_CONV_IM2ROW,
                                                  .is_applicable = is_applicable_few,
                                                  .is_profitable = is_profitable,
                                                  .reserve = reserve,
                                                  .run = run};
const kelp_conv_algorithm kelp_conv_im2row = {.name = "im2row",
                                              .layout = KELP_CONV_IM2ROW,
                                              .is_applicable = is_applicable,
                                              .is_profitable = is_profitable,
                                              .reserve = reserve,
                                              .run = run};
