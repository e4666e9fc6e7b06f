/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution as [positions, depth] · [depth, output channels]. Source: Chellapilla, Puri and
 * Simard, "High Performance Convolutional Neural Networks for Document Processing", 2006, with the
 * operands in the other order. */
#include "ops/nn/conv_narrow.h"

#include "base/alloc.h"
#include "ops/linear/gemm.h"
#include "ops/nn/conv_winograd.h"

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
    const kelp_float_u *from = weights;
    if (rows < width)
        memset(out, 0, (size_t)(taps * width) * sizeof *out);
    if (((uintptr_t)from & (sizeof(float) - 1)) == 0) {
        simd->turn(out, width, (const float *)from, stride, rows, taps);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < taps; k++)
            out[k * width + i] = from[i * stride + k];
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
    size_t floats;
    void *room = NULL;
    if (turned ? !kelp_gemm_packed_size(simd, state->depth, state->channels, &floats)
               : !kelp_conv_winograd_size(simd, state->taps, state->depth / state->taps,
                                          state->channels, &floats))
        return NULL;
    if (!kelp_size_mul(floats, sizeof(float), &packing.size_bytes))
        return NULL;
    kelp_gemm_layout(simd, turned ? "taps" : "winograd", name);
    KELP_TRY(kelp_op_pack(&state->site, state->allocator, &packing, &out->packed, &room));
    if (room != NULL && turned)
        pack_taps(state, simd, room);
    else if (room != NULL)
        kelp_conv_winograd_pack(simd, state->taps, state->weights, state->depth / state->taps,
                                state->channels, room);
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
    int64_t filled = (positions + lanes - 1) / lanes * lanes;
    if (in_channels * w->kernel_size < 32 || out_channels < 16 ||
        batch * w->in_size > 8 * positions * w->kernel_size)
        return false;
    /* the usual order wastes what does not fill its vectors of positions; this one moves both the
     * input and the result once more */
    return positions <= KELP_CONV_NARROW_FEW ||
           (positions <= 64 && out_channels >= 64 && (positions + 2) * 9 < filled * 8);
}

/* ---- run ---- */
static bool is_plain(const kelp_window *w) {
    bool plain = w->kernel_size == 1;
    for (int i = 0; i < KELP_WINDOW_AXES; i++)
        plain = plain && w->stride[i] == 1 && w->before[i] == 0 && w->after[i] == 0;
    return plain;
}

int64_t kelp_conv_narrow_floats(const kelp_window *w, int64_t batch, int64_t in_channels,
                                int64_t out_channels) {
    int64_t positions = batch * w->out_size, floats = 0, pixels = 0;
    int64_t depth = is_plain(w) ? 0 : in_channels * w->kernel_size;
    return kelp_i64_mul(positions, depth + out_channels, &floats) &&
                   kelp_i64_mul(batch * w->in_size, in_channels, &pixels) &&
                   kelp_i64_add(floats, pixels, &floats)
               ? floats
               : -1;
}

typedef struct narrow_run {
    const kelp_conv_narrow *job;
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

/* What the positions see: taps, each with its channels; zeros outside. */
static void gather_taps(void *userp, int64_t begin, int64_t end, int worker) {
    const narrow_run *r = userp;
    const kelp_conv_narrow *job = r->job;
    const kelp_window *w = job->w;
    size_t bytes = (size_t)job->in_channels * sizeof(float);
    float *to = r->rows + begin * job->in_channels * w->kernel_size;
    (void)worker;
    for (int64_t position = begin; position < end; position++) {
        int64_t first[KELP_WINDOW_AXES], at = position % w->out_size;
        const float *image = r->pixels + position / w->out_size * w->in_size * job->in_channels;
        for (int i = KELP_WINDOW_AXES; i-- > 0; at /= w->out[i])
            first[i] = at % w->out[i] * w->stride[i] - w->before[i];
        for (int64_t tap = 0; tap < w->kernel_size; tap++, to += job->in_channels) {
            int64_t rest = tap, from = 0, step = 1;
            bool inside = true;
            for (int i = KELP_WINDOW_AXES; i-- > 0; rest /= w->kernel[i]) {
                int64_t x = first[i] + rest % w->kernel[i] * w->dilation[i];
                inside = inside && x >= 0 && x < w->in[i];
                from += x * step;
                step *= w->in[i];
            }
            if (inside)
                memcpy(to, image + from * job->in_channels, bytes);
            else
                memset(to, 0, bytes);
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
    bool plain = is_plain(w);
    int64_t depth = job->in_channels * w->kernel_size, positions = job->batch * w->out_size;
    narrow_run r = {.job = job, .pixels = job->buffer};
    r.rows = plain ? r.pixels : r.pixels + job->batch * w->in_size * job->in_channels;
    r.product = r.rows + positions * depth;
    kelp_op_parallel(env, blocks_of(job->in_channels),
                     MOVED / KELP_MAX((int64_t)1, job->batch * w->in_size * BLOCK) + 1, turn_pixels,
                     &r);
    if (!plain)
        kelp_op_parallel(env, positions, MOVED / KELP_MAX((int64_t)1, depth) + 1, gather_taps, &r);
    kelp_gemm_run(env,
                  &(kelp_gemm){.a = r.rows,
                               .c = r.product,
                               .m = positions,
                               .n = job->out_channels,
                               .k = depth,
                               .lda = depth,
                               .ldb = job->out_channels,
                               .ldc = job->out_channels,
                               .bias = job->bias,
                               .act = job->residual == NULL ? job->act : KELP_ACT_NONE,
                               .packed = job->panels,
                               .simd = job->simd},
                  1);
    kelp_op_parallel(env, blocks_of(job->out_channels),
                     MOVED / KELP_MAX((int64_t)1, positions * BLOCK) + 1, turn_back, &r);
}
