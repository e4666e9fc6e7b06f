/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution as [positions, depth] · [depth, output channels]. Source: Chellapilla, Puri and
 * Simard, "High Performance Convolutional Neural Networks for Document Processing", 2006, with the
 * operands in the other order. */
#include "cpu/kernels/conv/im2row.h"

#include "base/alloc.h"
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/kernels/conv/winograd.h"

#include <pthread.h>

#define PACK_TAPS 128 /* turned at a time */
#define BLOCK 64      /* channels */
#define MOVED 60000   /* floats that are worth a thread */

/* ---- weights ---- */
typedef struct conv_panels {
    const kelp_simd *simd; /* the table that they are laid out for */
    kelp_op_packed packed;
} conv_panels;

struct kelp_conv_state {
    kelp_allocator allocator;
    kelp_op_pack_site site;
    const void *weights;
    int64_t depth, taps, channels; /* depth: input channels by taps */
    pthread_mutex_t lock;
    conv_panels layouts[KELP_CONV_LAYOUTS];
};

kelp_status *kelp_conv_state_create(const kelp_node *node, const kelp_op_env *env,
                                    void **out_state) {
    const kelp_value *value = kelp_node_input_count(node) > 1 ? kelp_node_input(node, 1) : NULL;
    const kelp_tensor *w = value != NULL ? kelp_value_constant(value) : NULL;
    if (w == NULL || w->dtype != KELP_F32 || w->rank < 3 || kelp_tensor_elements(w) == 0 ||
        kelp_node_attr_i64(node, "group", 1) != 1)
        return NULL;
    kelp_conv_state *state = NULL;
    KELP_TRY(KELP_NEW(kelp_op_env_allocator(env), kelp_conv_state, &state));
    state->allocator = kelp_op_env_allocator(env);
    state->site = kelp_op_env_pack_site(env);
    state->weights = w->data;
    state->channels = w->shape[0];
    state->depth = kelp_tensor_elements(w) / w->shape[0];
    state->taps = state->depth / w->shape[1];
    pthread_mutex_init(&state->lock, NULL);
    *out_state = state;
    return NULL;
}

void kelp_conv_state_destroy(void *userp, kelp_allocator allocator) {
    kelp_conv_state *state = userp;
    if (state == NULL)
        return;
    for (int i = 0; i < KELP_CONV_LAYOUTS; i++)
        kelp_op_unpack(&state->layouts[i].packed, allocator);
    pthread_mutex_destroy(&state->lock);
    kelp_free(allocator, state, sizeof *state);
}

void kelp_conv_turn(const kelp_simd *simd, const void *weights, int64_t stride, int64_t rows,
                    int64_t taps, float *out) {
    int64_t width = simd->tile_columns;
    if (rows < width)
        memset(out, 0, (size_t)(taps * width) * sizeof *out);
    simd->turn(out, width, weights, stride, rows, taps);
}

/* Panels [taps, input channels] of output channels, as the rows of gather_taps are. */
static void pack_taps(const kelp_conv_state *state, const kelp_simd *simd, float *out) {
    float piece[PACK_TAPS * KELP_SIMD_COLUMNS];
    int64_t width = simd->tile_columns, taps = state->taps, depth = state->depth;
    int64_t inputs = depth / taps;
    for (int64_t m = 0; m < state->channels; m += width, out += depth * width)
        for (int64_t k = 0; k < depth; k += PACK_TAPS) {
            int64_t count = KELP_MIN((int64_t)PACK_TAPS, depth - k);
            kelp_conv_turn(simd, (const kelp_float_u *)state->weights + m * depth + k, depth,
                           KELP_MIN(width, state->channels - m), count, piece);
            for (int64_t i = 0; i < count; i++)
                memcpy(out + ((k + i) % taps * inputs + (k + i) / taps) * width, piece + i * width,
                       (size_t)width * sizeof *out);
        }
}

static kelp_status *make_panels(const kelp_conv_state *state, const kelp_simd *simd,
                                kelp_conv_layout layout, conv_panels *out) {
    char name[KELP_OP_LAYOUT_MAX + 1];
    kelp_op_packing packing = {.layout = name, .inputs = 1u << 1}; /* other shapes read it still */
    bool turned = layout == KELP_CONV_TURNED;
    int64_t points = layout == KELP_CONV_WINOGRAD_4 ? 4 : 6, inputs = state->depth / state->taps;
    size_t floats;
    void *room = NULL;
    if (turned
            ? !kelp_gemm_packed_size(simd, state->depth, state->channels, &floats)
            : !kelp_conv_winograd_size(simd, state->taps, points, inputs, state->channels, &floats))
        return NULL;
    if (!kelp_size_mul(floats, sizeof(float), &packing.size_bytes))
        return NULL;
    kelp_gemm_layout(simd, turned ? "taps" : points == 4 ? "winograd4" : "winograd", name);
    KELP_TRY(kelp_op_pack(&state->site, state->allocator, &packing, &out->packed, &room));
    if (room != NULL && turned)
        pack_taps(state, simd, room);
    else if (room != NULL)
        kelp_conv_winograd_pack(simd, state->taps, points, state->weights, inputs, state->channels,
                                room);
    out->simd = simd;
    return NULL;
}

kelp_status *kelp_conv_panels(const kelp_conv_state *shared, const kelp_simd *simd,
                              kelp_conv_layout layout, const float **out) {
    kelp_conv_state *state = (kelp_conv_state *)shared; /* all contexts' own, behind the lock */
    kelp_status *status = NULL;
    *out = NULL;
    if (state == NULL)
        return NULL;
    conv_panels *panels = &state->layouts[layout];
    pthread_mutex_lock(&state->lock);
    if (panels->packed.data == NULL)
        status = make_panels(state, simd, layout, panels);
    if (panels->simd == simd)
        *out = panels->packed.data;
    pthread_mutex_unlock(&state->lock);
    return status;
}

bool kelp_conv_narrow_pays(const kelp_window *w, const kelp_simd *simd, int64_t batch,
                           int64_t in_channels, int64_t out_channels) {
    int64_t positions = batch * w->out_size, lanes = simd->tile_columns / 2;
    if (positions < 1 || positions > 64 || in_channels * w->kernel_size < 32 || out_channels < 16 ||
        batch * w->in_size > 8 * positions * w->kernel_size)
        return false;
    /* the usual order wastes what does not fill its vectors of positions; this one moves both the
     * input and the result once more */
    int64_t filled = (positions + lanes - 1) / lanes * lanes;
    return positions <= KELP_CONV_NARROW_FEW ||
           (out_channels >= 64 && (positions + 2) * 9 < filled * 8);
}

/* ---- run ---- */
/* What the positions see are pieces of the image as it is, pixel by pixel: stride[2] pixels from
 * one to the next. */
static bool lie_in_image(const kelp_window *w, int64_t batch) {
    bool plain = w->kernel_size == 1, line = batch == 1 && w->dilation[2] == 1;
    for (int i = 0; i < KELP_WINDOW_AXES; i++) {
        plain = plain && w->stride[i] == 1 && w->before[i] == 0 && w->after[i] == 0;
        line = line && w->before[i] == 0 && (i == 2 || (w->in[i] == 1 && w->out[i] == 1));
    }
    line = line && w->kernel[0] == 1 && w->kernel[1] == 1;
    return plain || (line && (w->out[2] - 1) * w->stride[2] + w->kernel[2] <= w->in[2]);
}

int64_t kelp_conv_narrow_floats(const kelp_window *w, int64_t batch, int64_t in_channels,
                                int64_t out_channels) {
    int64_t positions = batch * w->out_size, floats = 0, pixels = 0;
    int64_t depth = lie_in_image(w, batch) ? 0 : in_channels * w->kernel_size;
    return kelp_i64_mul(positions, depth + out_channels, &floats) &&
                   kelp_i64_mul(batch * w->in_size, in_channels, &pixels) &&
                   kelp_i64_add(floats, pixels, &floats)
               ? floats
               : -1;
}

typedef struct narrow_run {
    const kelp_conv_narrow *job;
    const float *image; /* pixel by pixel */
    float *pixels, *rows, *product;
} narrow_run;

/* Blocks of input channels: every pixel's lie together. */
static void turn_pixels(void *userp, int64_t begin, int64_t end, int worker) {
    const narrow_run *r = userp;
    const kelp_conv_narrow *job = r->job;
    int64_t size = job->w->in_size, first = begin * BLOCK;
    int64_t count = KELP_MIN(end * BLOCK, job->in_channels) - first;
    (void)worker;
    for (int64_t i = 0; i < job->batch; i++)
        job->simd->turn(r->pixels + i * size * job->in_channels + first, job->in_channels,
                        job->x + (i * job->in_channels + first) * size, size, count, size);
}

/* What a row of the kernel sees from pixel `first` of a row of the image on (NULL: of none), each
 * tap with its channels; zeros outside. */
static float *gather_row(const kelp_conv_narrow *job, const float *row, int64_t first, float *to) {
    const kelp_window *w = job->w;
    int64_t taps = w->kernel[2], step = w->dilation[2], channels = job->in_channels;
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

/* What the positions see, one after the other. */
static void gather_taps(void *userp, int64_t begin, int64_t end, int worker) {
    const narrow_run *r = userp;
    const kelp_conv_narrow *job = r->job;
    const kelp_window *w = job->w;
    float *to = r->rows + begin * job->in_channels * w->kernel_size;
    (void)worker;
    for (int64_t position = begin; position < end; position++) {
        int64_t first[KELP_WINDOW_AXES], at = position % w->out_size;
        const float *image = r->image + position / w->out_size * w->in_size * job->in_channels;
        for (int i = KELP_WINDOW_AXES; i-- > 0; at /= w->out[i])
            first[i] = at % w->out[i] * w->stride[i] - w->before[i];
        for (int64_t a = 0; a < w->kernel[0]; a++)
            for (int64_t b = 0; b < w->kernel[1]; b++) {
                int64_t z = first[0] + a * w->dilation[0], y = first[1] + b * w->dilation[1];
                bool inside = z >= 0 && z < w->in[0] && y >= 0 && y < w->in[1];
                int64_t pixel = (z * w->in[1] + y) * w->in[2];
                to =
                    gather_row(job, inside ? image + pixel * job->in_channels : NULL, first[2], to);
            }
    }
}

/* Blocks of output channels, to where they belong. */
static void turn_back(void *userp, int64_t begin, int64_t end, int worker) {
    const narrow_run *r = userp;
    const kelp_conv_narrow *job = r->job;
    int64_t size = job->w->out_size, first = begin * BLOCK;
    int64_t count = KELP_MIN(end * BLOCK, job->out_channels) - first;
    (void)worker;
    for (int64_t i = 0; i < job->batch; i++) {
        int64_t to = (i * job->out_channels + first) * size;
        job->simd->turn(job->y + to, size, r->product + i * size * job->out_channels + first,
                        job->out_channels, size, count);
        if (job->residual != NULL)
            job->simd->finish(job->y + to, NULL, 0.0f, job->residual + to, count * size, job->act);
    }
}

static int64_t blocks_of(int64_t channels) {
    return (channels + BLOCK - 1) / BLOCK;
}

void kelp_conv_narrow_run(const kelp_op_env *env, const kelp_conv_narrow *job) {
    const kelp_window *w = job->w;
    bool gathers = !lie_in_image(w, job->batch);
    int64_t depth = job->in_channels * w->kernel_size, positions = job->batch * w->out_size;
    narrow_run r = {.job = job, .image = job->x, .pixels = job->buffer};
    r.rows = r.pixels + job->batch * w->in_size * job->in_channels;
    r.product = w->out_size == 1 ? job->y : r.rows + (gathers ? positions * depth : 0);
    if (job->in_channels > 1 && w->in_size > 1) {
        kelp_op_parallel(env, blocks_of(job->in_channels),
                         MOVED / KELP_MAX((int64_t)1, job->batch * w->in_size * BLOCK) + 1,
                         turn_pixels, &r);
        r.image = r.pixels;
    }
    if (gathers)
        kelp_op_parallel(env, positions, MOVED / KELP_MAX((int64_t)1, depth) + 1, gather_taps, &r);
    kelp_gemm_run(
        env,
        &(kelp_gemm){.a = gathers ? r.rows : r.image,
                     .c = r.product,
                     .m = positions,
                     .n = job->out_channels,
                     .k = depth,
                     .lda = gathers ? depth : w->stride[2] * job->in_channels,
                     .ldb = job->out_channels,
                     .ldc = job->out_channels,
                     .bias = job->bias,
                     .residual = w->out_size == 1 ? job->residual : NULL,
                     .act = job->residual == NULL || w->out_size == 1 ? job->act : KELP_ACT_NONE,
                     .packed = job->panels,
                     .simd = job->simd},
        1);
    if (w->out_size > 1)
        kelp_op_parallel(env, blocks_of(job->out_channels),
                         MOVED / KELP_MAX((int64_t)1, positions * BLOCK) + 1, turn_back, &r);
}
