/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows are copied to the columns of a matrix, a strip of output rows (of the last two axes) at a
 * time, and multiplied by the weights. Source: Chellapilla, Puri and Simard, "High Performance
 * Convolutional Neural Networks for Document Processing", 2006.
 */
#include "base/assert.h"
#include "cpu/kernels/conv/conv.h"
#include "cpu/kernels/conv/unroll.h"
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/kernels/layout/layout_kernels.h"
#include "cpu/kernels/tuning.h"

static bool is_applicable(const kelp_conv *conv) {
    return !conv->is_f64;
}

/* Rounds a strip so that its columns fill the tiles of the GEMM, if the number of rows allows it.
 */
static int64_t fill_tiles(const kelp_conv *conv, int64_t strip, int64_t width) {
    int64_t tile = conv->gemm->tile_columns, columns = strip * width;
    int64_t up = kelp_round_up(columns, tile), down = columns / tile * tile;
    int64_t wanted = up <= columns + columns / 3 ? up : down;
    return wanted > 0 && wanted % width == 0 ? KELP_MIN(conv->shape.window.out[1], wanted / width)
                                             : strip;
}

/* Chooses enough columns to fill the tiles of the GEMM, and few enough for the cache: some rows of
 * a large image, or several small images. */
static void choose_blocking(const kelp_conv *conv, kelp_conv_im2col *out) {
    const kelp_conv_window *w = &conv->shape.window;
    int64_t depth = conv->shape.in_channels * w->kernel_size;
    int64_t width = KELP_MAX((int64_t)1, w->out[2]);
    int64_t wanted = KELP_MAX((int64_t)1, KELP_IM2COL_COLUMNS / width);
    int64_t fitting =
        KELP_MAX((int64_t)1, KELP_IM2COL_FLOATS / KELP_MAX((int64_t)1, depth * width));
    out->strip = KELP_MAX((int64_t)1, KELP_MIN(w->out[1], KELP_MIN(wanted, fitting)));
    if (out->strip < w->out[1])
        out->strip = fill_tiles(conv, out->strip, width);
    out->images = 1;
    if (out->strip == w->out[1] && w->out[0] == 1) {
        int64_t size = KELP_MAX((int64_t)1, w->out_size);
        int64_t fitting_images = KELP_IM2COL_FLOATS / KELP_MAX((int64_t)1, depth * size);
        out->images = KELP_MIN(KELP_IM2COL_BATCH_COLUMNS / size, fitting_images);
        out->images = KELP_MIN(out->images, kelp_divide_up(conv->shape.batch, conv->threads));
        out->images = KELP_MAX((int64_t)1, out->images);
    }
}

static bool reserve(kelp_conv *conv) {
    const kelp_conv_window *w = &conv->shape.window;
    kelp_conv_im2col *b = &conv->blocking.im2col;
    choose_blocking(conv, b);
    int64_t columns = b->images * b->strip * w->out[2];
    b->result_floats = b->images > 1 ? conv->shape.out_channels * columns : 0;
    b->plane_floats = kelp_unroll_plane(w, b->strip, b->images);
    return kelp_i64_mul(conv->shape.in_channels * w->kernel_size, columns + KELP_UNROLL_SLACK,
                        &b->matrix_floats) &&
           kelp_i64_add(b->matrix_floats, b->result_floats + b->plane_floats, &conv->worker_floats);
}

/* A strip of one group of one image, or of several small images. */
typedef struct unit {
    int64_t group, image, images, depth, row, rows;
    int64_t to; /* of the result, and of the residual */
} unit;

static unit unit_at(const kelp_conv *conv, int64_t index) {
    const kelp_conv_shape *s = &conv->shape;
    const kelp_conv_window *w = &s->window;
    const kelp_conv_im2col *b = &conv->blocking.im2col;
    int64_t strips = kelp_divide_up(w->out[1], b->strip);
    unit u = {.group = index / strips / w->out[0] % s->groups,
              .image = index / strips / w->out[0] / s->groups * b->images,
              .depth = index / strips % w->out[0],
              .row = index % strips * b->strip};
    u.images = KELP_MIN(b->images, s->batch - u.image);
    u.rows = KELP_MIN(b->strip, w->out[1] - u.row);
    u.to = (u.image * s->groups + u.group) * s->out_channels * w->out_size +
           (u.depth * w->out[1] + u.row) * w->out[2];
    return u;
}

/* Copies the result of the GEMM to several images, then adds the residual. */
static void scatter(const kelp_conv *conv, const float *result, const unit *u) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const kelp_layout_kernels *layout = kelp_layout_kernels_get();
    const float *residual = conv->residual;
    int64_t size = conv->shape.window.out_size, channels = conv->shape.out_channels;
    int64_t step = conv->shape.groups * channels * size;
    float *y = conv->y + u->to;
    for (int64_t c = 0; c < channels; c++) {
        layout->copy_rows(y + c * size, step, result + c * u->images * size, size, u->images, size);
        for (int64_t i = 0; i < u->images && residual != NULL; i++) {
            int64_t at = i * step + c * size;
            elementwise->finish(y + at, NULL, kelp_conv_bias(conv, u->group * channels + c),
                                residual + u->to + at, size, conv->act);
        }
    }
}

static void multiply(const kelp_conv *conv, const unit *u, const float *matrix, int64_t columns,
                     int64_t ld, float *result) {
    const kelp_conv_shape *s = &conv->shape;
    int64_t depth = s->in_channels * s->window.kernel_size;
    kelp_gemm job = {.a = (const kelp_float_u *)conv->weights + u->group * s->out_channels * depth,
                     .b = matrix,
                     .c = u->images > 1 ? result : conv->y + u->to,
                     .m = s->out_channels,
                     .n = columns,
                     .k = depth,
                     .lda = depth,
                     .ldb = ld,
                     .ldc = u->images > 1 ? columns : s->window.out_size};
    if (u->images == 1 || conv->residual == NULL) {
        job.row_bias = conv->bias != NULL ? conv->bias + u->group * s->out_channels : NULL;
        job.residual = conv->residual != NULL ? conv->residual + u->to : NULL;
        job.act = conv->act;
    }
    kelp_gemm_run_serial(conv->gemm, &job);
    if (u->images > 1)
        scatter(conv, result, u);
}

static void units(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_conv *conv = userp;
    const kelp_conv_shape *s = &conv->shape;
    const kelp_conv_window *w = &s->window;
    const kelp_conv_im2col *b = &conv->blocking.im2col;
    float *matrix = kelp_conv_worker_scratch(conv, worker);
    float *result = matrix + b->matrix_floats;
    for (int64_t index = begin; index < end; index++) {
        unit at = unit_at(conv, index);
        int64_t columns = at.images * at.rows * w->out[2], ld = columns + KELP_UNROLL_SLACK;
        kelp_unroll_run(&(kelp_unroll){.w = w,
                                       .x = conv->x + (at.image * s->groups + at.group) *
                                                          s->in_channels * w->in_size,
                                       .channels = s->in_channels,
                                       .images = at.images,
                                       .image_step = s->groups * s->in_channels * w->in_size,
                                       .depth = at.depth,
                                       .row = at.row,
                                       .rows = at.rows,
                                       .matrix = matrix,
                                       .ld = ld,
                                       .plane = result + b->result_floats});
        multiply(conv, &at, matrix, columns, ld, result);
    }
}

static void run(const kelp_op_env *env, kelp_conv *conv) {
    const kelp_conv_shape *s = &conv->shape;
    const kelp_conv_window *w = &s->window;
    const kelp_conv_im2col *b = &conv->blocking.im2col;
    KELP_ASSERT(b->strip > 0 && b->images > 0 && conv->scratch != NULL);
    KELP_ASSERT(conv->x != NULL && conv->weights != NULL && conv->y != NULL);
    int64_t work = s->in_channels * w->kernel_size * w->out[2] * s->out_channels;
    kelp_op_parallel(env,
                     kelp_divide_up(s->batch, b->images) * s->groups * w->out[0] *
                         kelp_divide_up(w->out[1], b->strip),
                     kelp_cpu_grain(KELP_GRAIN_TILES, work) / b->strip / b->images + 1, units,
                     conv);
}

const kelp_conv_algorithm kelp_conv_im2col_gemm = {
    .name = "im2col_gemm", .is_applicable = is_applicable, .reserve = reserve, .run = run};
