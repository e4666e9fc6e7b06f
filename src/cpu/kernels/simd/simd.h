/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The float loops that carry the weight, in one table for each instruction set. The loops are
 * written once (kernels.inc) and compiled several times; which table is used is asked of the CPU
 * when a kernel runs.
 */
#ifndef KELP_CPU_KERNELS_SIMD_SIMD_H_
#define KELP_CPU_KERNELS_SIMD_SIMD_H_

#include <stdbool.h>
#include <stdint.h>

/* Functions of one float. KELP_ACT_NONE copies. */
typedef enum kelp_act {
    KELP_ACT_NONE = 0,
    KELP_ACT_RELU,
    KELP_ACT_GELU,      /* x/2 (1 + erf(x/√2)) */
    KELP_ACT_GELU_TANH, /* its approximation by tanh */
    KELP_ACT_TANH,
    KELP_ACT_SIGMOID,
    KELP_ACT_SILU,
    KELP_ACT_HARD_SWISH, /* x min(max(x / 6 + 1/2, 0), 1) */
    KELP_ACT_RELU6,
    KELP_ACT_EXP,
    KELP_ACT_ERF,
    KELP_ACT_SQRT,
    KELP_ACT_COUNT
} kelp_act;

/* Of so few instructions that it is worth a copy in loops that have the vector at hand. */
static inline bool kelp_act_is_light(kelp_act act) {
    return act == KELP_ACT_NONE || act == KELP_ACT_RELU || act == KELP_ACT_RELU6 ||
           act == KELP_ACT_HARD_SWISH;
}

typedef enum kelp_bin {
    KELP_BIN_ADD = 0,
    KELP_BIN_SUB,
    KELP_BIN_MUL,
    KELP_BIN_DIV,
    KELP_BIN_PRELU, /* a < 0 ? a * b : a */
    KELP_BIN_COUNT
} kelp_bin;

/* A weight may lie at any address. */
typedef float kelp_float_u __attribute__((aligned(1), may_alias));
typedef double kelp_double_u __attribute__((aligned(1), may_alias));

/* One block of C[m,n] = A[m,k] · B[k,n], row-major; with `accumulate`, C += …; with `finishes`, C =
 * act(C + row_bias[m] + bias[n] + residual), which lies as C does; each of the three may be NULL,
 * and act is one that kelp_act_is_light allows. */
typedef struct kelp_gemm_block {
    const kelp_float_u *a, *b;
    float *c;
    int64_t lda, ldb, ldc, m, n, k;
    bool accumulate, finishes;
    const float *row_bias, *bias, *residual;
    kelp_act act;
} kelp_gemm_block;

/* C[m,n] = A[m,k] · B[k,n], row-major, up to KELP_SKINNY_ROWS rows, k at least 4. Each element is
 * the sum over p below k / 4 of the four terms p, p + k / 4, p + k / 2 and p + 3 k / 4, one after
 * the other, and then of the rest, whatever n is. */
#define KELP_SKINNY_ROWS 4
typedef struct kelp_skinny {
    const kelp_float_u *a, *b;
    float *c;
    int64_t lda, ldb, ldc, m, n, k;
} kelp_skinny;

/* A window that slides over a padded tile: rows of `width` outputs, row_step floats of the tile
 * apart; taps are tap_row_step and tap_step floats apart. */
typedef enum kelp_slide_op { KELP_SLIDE_WEIGHTED, KELP_SLIDE_SUM, KELP_SLIDE_MAX } kelp_slide_op;
typedef struct kelp_slide {
    kelp_slide_op op;
    float *y;
    const float *x;
    const kelp_float_u *w; /* of KELP_SLIDE_WEIGHTED: one a tap */
    int64_t rows, width, row_step, stride;
    int64_t tap_rows, taps, tap_row_step, tap_step;
    int64_t rows_apart, tap_rows_apart; /* row_step and tap_row_step in rows of the tile */
    int64_t first, last; /* rows of the tile that hold input; the others are not read */
    int64_t begin, end;  /* see bare: columns that hold input */
    bool bare; /* the tile is the unpadded image: values outside columns [begin, end) are undefined.
                  Only if kelp_slide_takes_bare allows it; with weights begin and end are ignored,
                  and bias and act are applied to the sum. */
    float bias;
    kelp_act act; /* that kelp_act_is_light allows */
} kelp_slide;
static inline bool kelp_slide_takes_bare(kelp_slide_op op, int64_t taps, int64_t stride,
                                         int64_t tap_step) {
    return op != KELP_SLIDE_WEIGHTED && taps == 3 && stride == 2 && tap_step == 1;
}

/* A convolution at one output position of tile_columns interleaved images: y[m * y_step + image]
 * = Σ w[m * depth + c * kernel + tap] * x[(c * plane + offset) * tile_columns + image], over
 * channels and the taps that are inside the image. */
typedef struct kelp_lanes {
    const kelp_float_u *w;
    const float *x;
    float *y;
    int64_t m, depth, channels, kernel, plane, y_step;
    int64_t taps;
    const int32_t *tap_index, *tap_offset;
} kelp_lanes;

/* C[m,n] = A[m,k] · B[k,n], or C += …; row p of B begins at x + offset[p]. Nothing after the
 * last column of a row is read; C's rows are padded to whole vectors. */
typedef struct kelp_taps {
    const kelp_float_u *a;
    const float *x;
    const int32_t *offset;
    float *c;
    int64_t lda, ldc, m, n, k;
    bool accumulate;
} kelp_taps;

/* Copies rows of `width` floats from the result of a GEMM to the output, with bias, residual (or
 * NULL; laid out like `to`) and activation. `from` is padded to whole vectors. */
typedef struct kelp_finish {
    const float *from, *residual;
    float *to;
    int64_t from_step, to_step, rows, width;
    float bias;
} kelp_finish;

/* `down` x `across` tiles of `tall` x `wide` outputs: 4 x 4 or 2 x 2, or 4 or 2 in a line. The
 * image holds pixels of `channels` floats (a multiple of the vector): outputs are as large as the
 * tiles, inputs larger by what reaches six pixels, or four of a tile of 2 x 2, in each direction
 * that is not 1. Of each tile the 36 or 16 parts (6 in a line) lie `step` floats apart, tiles are
 * `channels` apart. */
typedef struct kelp_winograd {
    float *image, *parts;
    int64_t tall, wide, down, across, channels, step;
} kelp_winograd;

typedef struct kelp_simd {
    const char *name;
    int32_t tile_rows, tile_columns; /* of gemm: blocks of their multiples waste nothing */
    bool slides_image;               /* slide takes weights over a bare image */
#define KELP_SIMD_COLUMNS 32         /* tile_columns at most */
    void (*act[KELP_ACT_COUNT])(const float *x, float *y, int64_t count);
    /* Strides are 0 or 1. y may be a or b. */
    void (*bin[KELP_BIN_COUNT])(float *y, const float *a, const float *b, int64_t count,
                                int a_stride, int b_stride);
    void (*gemm)(const kelp_gemm_block *block);
    void (*skinny)(const kelp_skinny *job);
    void (*lanes)(const kelp_lanes *lanes);
    void (*taps)(const kelp_taps *taps);
    /* Of each of `channels` the taps (9, 3 or 5) of tile_columns kernels side by side to their
     * `count` parts (36 or 16 of 9, else 6), `step` floats apart, channels one behind the other. */
    void (*winograd_weights)(const float *given, int64_t taps, int64_t count, int64_t channels,
                             float *parts, int64_t step);
    void (*winograd_in)(const kelp_winograd *job);  /* from the image to the parts */
    void (*winograd_out)(const kelp_winograd *job); /* and back */
    /* to = act(from + bias + residual) */
    void (*finish_rows)(const kelp_finish *finish, kelp_act act);
    /* even[i] = from[2 i] of each row, i < evens; odd[i] = from[2 i + 1], i < odds */
    void (*split_rows)(float *even, float *odd, int64_t to_step, const float *from,
                       int64_t from_step, int64_t rows, int64_t evens, int64_t odds);
    /* to[c * to_step + r] = from[r * from_step + c] */
    void (*turn)(float *to, int64_t to_step, const kelp_float_u *from, int64_t from_step,
                 int64_t rows, int64_t columns);
    /* y = act(y + bias + row_bias + residual) over one row; bias and residual may be NULL */
    void (*finish)(float *y, const float *bias, float row_bias, const float *residual,
                   int64_t count, kelp_act act);
    /* Softmax of x + mask (may be NULL) scaled by `scale` before the mask: y = softmax(scale * x +
     * mask); or its logarithm. */
    void (*softmax)(const float *x, const float *mask, float scale, float *y, int64_t count,
                    bool log);
    /* y = (v - mean(v)) / sqrt(var(v) + epsilon) * gamma + beta, v = x + skip. skip, gamma, beta,
     * sum may be NULL. `rms`: no mean. */
    void (*layer_norm)(const float *x, const float *skip, const float *gamma, const float *beta,
                       float epsilon, bool rms, float *sum, float *y, int64_t count,
                       float *out_mean, float *out_inverse);
    /* out[j] = sum of a[i] * b[j * stride + i], i below `size` */
    void (*dots)(const float *a, const float *b, int64_t stride, int64_t count, int64_t size,
                 float *out);
    /* low[i] = (low half of from[i] - zero) * scale, and so the high halves */
    void (*nibbles)(const uint8_t *from, int64_t bytes, float zero, float scale, float *low,
                    float *high);
    /* c[j] = the sum of a[i] * b[i][j], i below k, j below n; b in panels of 2 * tile_columns, the
     * last one filled up. */
    void (*byte_product)(const float *a, const uint8_t *panels, int64_t k, int64_t n, float *c);
    /* The sum over blocks of `bytes` bytes, a multiple of tile_columns / 2, of scales[b] times the
     * sum of halves times a: of each block first those of the low halves, then those of the high.
     */
    float (*nibble_dot)(const uint8_t *from, const float *scales, const float *a, int64_t blocks,
                        int64_t bytes);
    /* The same of whole bytes. */
    float (*byte_dot)(const uint8_t *from, const float *scales, const float *a, int64_t blocks,
                      int64_t bytes);
    /* y[i] += w * x[i * stride] */
    void (*axpy)(float *y, const float *x, float w, int64_t stride, int64_t count);
    /* Copies `rows` rows of `width` floats, steps apart. */
    void (*copy_rows)(float *to, int64_t to_step, const float *from, int64_t from_step,
                      int64_t rows, int64_t width);
    /* Rows of `width` floats, `stride` apart in `from`, one behind the other in `to`; `rows` of
     * each of `images`. Reads up to 31 floats, and writes up to 15, behind the last. */
    void (*spread)(float *to, const float *from, int64_t images, int64_t image_step, int64_t rows,
                   int64_t row_step, int64_t width, int64_t stride);
    /* Reads up to 31 floats behind the frame, or behind the last column that a row of outputs sees.
     * A NaN stays a maximum. */
    void (*slide)(const kelp_slide *s);
    /* Maxima of 2 x 2 windows, 2 apart, of an image `width` wide: `rows` of width / 2. */
    void (*halve)(float *y, const float *x, int64_t rows, int64_t width);
    /* y[i] += x[i * stride], or the greater of both; a NaN stays */
    void (*gather_up)(float *y, const float *x, int64_t stride, int64_t count, bool most);
    /* Sum, or maximum, of one or more. */
    float (*reduce)(const float *x, int64_t count, bool most);
    /* y[i] = Σ w[t * w_stride] * x[t * stride + i], t < taps */
    void (*blend)(float *y, const float *x, int64_t stride, const float *w, int64_t w_stride,
                  int64_t taps, int64_t count);
    /* y[i] = Σ w[t * w_stride + i] * x[first[i] + t], t < taps */
    void (*gather_blend)(float *y, const float *x, const int32_t *first, const float *w,
                         int64_t w_stride, int64_t taps, int64_t count);
} kelp_simd;

/* The best table that the CPU can run, within kelp_cpu_isa_limit. Any thread. */
const kelp_simd *kelp_simd_get(void);

extern const kelp_simd kelp_simd_portable;
#if defined(__x86_64__)
extern const kelp_simd kelp_simd_avx2;
extern const kelp_simd kelp_simd_avx512;
#elif defined(__aarch64__)
extern const kelp_simd kelp_simd_neon;
#endif

#endif
