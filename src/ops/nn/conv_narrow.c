/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution as [positions, depth] · [depth, output channels]. Source: Chellapilla, Puri and
 * Simard, "High Performance Convolutional Neural Networks for Document Processing", 2006, with the
 * operands in the other order. */
#include "ops/nn/conv_narrow.h"

#include "base/alloc.h"
#include "ops/linear/gemm.h"
#include "ops/nn/conv_winograd.h"

#include <pthread.h>

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
    kelp_gemm_layout(simd, turned ? "gemm" : "winograd", name);
    KELP_TRY(kelp_op_pack(&state->site, state->allocator, &packing, &out->packed, &room));
    if (room != NULL && turned)
        kelp_gemm_pack_turned(simd, state->weights, state->depth, state->depth, state->channels,
                              room);
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

/* A tile of the usual order has 12 channels and 32 positions, of which these fill a part. */
bool kelp_conv_narrow_pays(int64_t positions, int64_t depth, int64_t out_channels) {
    return positions <= 10 && depth >= 32 && out_channels >= 16;
}

/* ---- run ---- */
int64_t kelp_conv_narrow_floats(const kelp_window *w, int64_t batch, int64_t in_channels,
                                int64_t out_channels) {
    int64_t positions = batch * w->out_size, floats = 0;
    return kelp_i64_mul(positions, in_channels * w->kernel_size + out_channels, &floats) ? floats
                                                                                         : -1;
}

/* The taps of one kernel row that lie inside, the others zero. */
static void gather_row(const kelp_window *w, const float *row, int64_t first, float *to) {
    int64_t step = w->dilation[2];
    if (step == 1 && first >= 0 && first + w->kernel[2] <= w->in[2]) {
        for (int64_t t = 0; t < w->kernel[2]; t++)
            to[t] = row[first + t];
        return;
    }
    for (int64_t t = 0; t < w->kernel[2]; t++) {
        int64_t at = first + t * step;
        to[t] = at >= 0 && at < w->in[2] ? row[at] : 0.0f;
    }
}

/* What position `at` of an image sees: channels, then taps. */
static void gather(const kelp_conv_narrow *job, const float *x, int64_t at, float *to) {
    const kelp_window *w = job->w;
    int64_t first[KELP_WINDOW_AXES];
    for (int i = KELP_WINDOW_AXES; i-- > 0; at /= w->out[i])
        first[i] = at % w->out[i] * w->stride[i] - w->before[i];
    for (int64_t c = 0; c < job->in_channels; c++)
        for (int64_t a = 0; a < w->kernel[0]; a++)
            for (int64_t b = 0; b < w->kernel[1]; b++, to += w->kernel[2]) {
                int64_t z = first[0] + a * w->dilation[0], r = first[1] + b * w->dilation[1];
                if (z < 0 || z >= w->in[0] || r < 0 || r >= w->in[1])
                    memset(to, 0, (size_t)w->kernel[2] * sizeof *to);
                else
                    gather_row(w, x + ((c * w->in[0] + z) * w->in[1] + r) * w->in[2], first[2], to);
            }
}

void kelp_conv_narrow_run(const kelp_op_env *env, const kelp_conv_narrow *job) {
    const kelp_window *w = job->w;
    int64_t depth = job->in_channels * w->kernel_size, size = w->out_size;
    int64_t positions = job->batch * size;
    float *product = job->buffer + positions * depth;
    for (int64_t i = 0; i < positions; i++)
        gather(job, job->x + i / size * job->in_channels * w->in_size, i % size,
               job->buffer + i * depth);
    kelp_gemm_run(env,
                  &(kelp_gemm){.a = job->buffer,
                               .c = product,
                               .m = positions,
                               .n = job->out_channels,
                               .k = depth,
                               .lda = depth,
                               .ldb = job->out_channels,
                               .ldc = job->out_channels,
                               .bias = job->bias,
                               .act = job->act,
                               .packed = job->panels,
                               .simd = job->simd},
                  1);
    for (int64_t i = 0; i < job->batch; i++)
        job->simd->turn(job->y + i * job->out_channels * size, size,
                        product + i * size * job->out_channels, job->out_channels, size,
                        job->out_channels);
}
