/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: reshapes of several contexts may ask at once; a lock holds them apart. */
#include "cpu/ops/conv/conv_bf16_weights.h"

#include "base/alloc.h"

#include <pthread.h>

typedef struct conv_state {
    kelp_allocator allocator;
    kelp_op_pack_site site;
    const void *weights; /* the model's */
    int64_t channels, in_channels, taps;
    pthread_mutex_t lock;
    kelp_op_packed rows, panels,
        taps_first; /* of kelp_bf16_pair; without data: not asked for yet */
} conv_state;

kelp_status *kelp_bf16_conv_create(const kelp_node *node, const kelp_op_env *env,
                                   void **out_state) {
    const kelp_value *value = kelp_node_input_count(node) > 1 ? kelp_node_input(node, 1) : NULL;
    const kelp_tensor *w = value != NULL ? kelp_value_constant(value) : NULL;
    if (w == NULL || w->dtype != KELP_F32 || (w->rank != 3 && w->rank != 4))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "ConvBf16 expects constant float weights over one "
                                                 "or two axes as its second input");
    conv_state *state = NULL;
    KELP_TRY(KELP_NEW(kelp_op_env_allocator(env), conv_state, &state));
    state->allocator = kelp_op_env_allocator(env);
    state->site = kelp_op_env_pack_site(env);
    state->weights = w->data;
    state->channels = w->shape[0];
    state->in_channels = w->shape[1];
    state->taps = kelp_ops_product(w->shape, 2, w->rank);
    pthread_mutex_init(&state->lock, NULL);
    *out_state = state;
    return NULL;
}

void kelp_bf16_conv_destroy(void *userp, kelp_allocator allocator) {
    conv_state *state = userp;
    if (state == NULL)
        return;
    kelp_op_unpack(&state->rows, state->allocator);
    kelp_op_unpack(&state->panels, state->allocator);
    kelp_op_unpack(&state->taps_first, state->allocator);
    pthread_mutex_destroy(&state->lock);
    kelp_free(allocator, state, sizeof *state);
}

static kelp_status *reserve(conv_state *state, const char *layout, kelp_op_packed *out,
                            size_t pairs, void **out_room) {
    kelp_op_packing packing = {.layout = layout, .inputs = 1u << 1, .replaces = 1u << 1};
    if (!kelp_size_mul(pairs, sizeof(kelp_bf16_pair), &packing.size_bytes))
        return kelp_status_oom();
    return kelp_op_pack(&state->site, state->allocator, &packing, out, out_room);
}

static int64_t step_of(const conv_state *state) {
    return kelp_bf16_row_step((state->in_channels + 1) / 2 * state->taps);
}

static kelp_status *make_rows(conv_state *state) {
    const kelp_bf16 *table = kelp_bf16_get();
    int64_t step = step_of(state), taps = state->taps;
    const kelp_float_u *from = state->weights;
    size_t pairs;
    void *room = NULL;
    if (!kelp_size_mul((size_t)state->channels, (size_t)step, &pairs))
        return kelp_status_oom();
    KELP_TRY(reserve(state, "bf16rows/1", &state->rows, pairs, &room));
    for (int64_t m = 0; room != NULL && m < state->channels; m++) {
        kelp_bf16_pair *to = (kelp_bf16_pair *)room + m * step;
        for (int64_t c = 0; c < state->in_channels; c += 2, to += taps) {
            const kelp_float_u *even = from + (m * state->in_channels + c) * taps;
            table->pairs(even, c + 1 < state->in_channels ? even + taps : NULL, 0, 1, 1, taps, to,
                         0);
        }
    }
    return NULL;
}

static kelp_status *make_panels(conv_state *state) {
    int64_t depth = state->in_channels * state->taps;
    size_t pairs;
    void *room = NULL;
    if (!kelp_bf16_packed_size(depth, state->channels, &pairs))
        return kelp_status_oom();
    KELP_TRY(reserve(state, "bf16/1", &state->panels, pairs, &room));
    if (room != NULL)
        kelp_bf16_pack_turned(kelp_bf16_get(), state->weights, depth, depth, state->channels, room);
    return NULL;
}

/* One panel's output channels, each tap after tap, as rows of `depth` floats; `from` has them
 * channel after channel. */
static void order_taps(const conv_state *state, const kelp_float_u *from, int64_t count,
                       int64_t depth, float *to) {
    int64_t taps = state->taps, channels = state->in_channels;
    int64_t room = depth / taps;
    memset(to, 0, (size_t)(count * depth) * sizeof *to);
    for (int64_t j = 0; j < count; j++, from += channels * taps, to += depth)
        for (int64_t t = 0; t < taps; t++)
            for (int64_t c = 0; c < channels; c++)
                to[t * room + c] = from[c * taps + t];
}

static kelp_status *make_taps_first(conv_state *state) {
    int64_t channels = (state->in_channels + 1) / 2 * 2, depth = channels * state->taps;
    int64_t each = state->in_channels * state->taps;
    size_t pairs, bytes = (size_t)(depth * KELP_BF16_COLUMNS) * sizeof(float);
    void *room = NULL, *ordered = NULL;
    if (!kelp_bf16_packed_size(depth, state->channels, &pairs))
        return kelp_status_oom();
    KELP_TRY(kelp_alloc(state->allocator, bytes, &ordered));
    kelp_status *status = reserve(state, "bf16taps/1", &state->taps_first, pairs, &room);
    for (int64_t n = 0; room != NULL && n < state->channels; n += KELP_BF16_COLUMNS) {
        int64_t count = KELP_MIN((int64_t)KELP_BF16_COLUMNS, state->channels - n);
        order_taps(state, (const kelp_float_u *)state->weights + n * each, count, depth, ordered);
        kelp_bf16_pack_turned(kelp_bf16_get(), ordered, depth, depth, count,
                              (kelp_bf16_pair *)room + n * (depth / 2));
    }
    kelp_free(state->allocator, ordered, bytes);
    return status;
}

static kelp_status *layout_of(conv_state *state, const kelp_op_packed *layout,
                              kelp_status *(*make)(conv_state *state), const kelp_bf16_pair **out) {
    pthread_mutex_lock(&state->lock);
    kelp_status *status = layout->data != NULL ? NULL : make(state);
    *out = layout->data;
    pthread_mutex_unlock(&state->lock);
    return status;
}

kelp_status *kelp_bf16_conv_rows(const void *shared, const kelp_bf16_pair **out,
                                 int64_t *out_step) {
    conv_state *state = (conv_state *)shared; /* all contexts' own, behind the lock */
    *out_step = step_of(state);
    return layout_of(state, &state->rows, make_rows, out);
}

kelp_status *kelp_bf16_conv_panels(const void *shared, const kelp_bf16_pair **out) {
    conv_state *state = (conv_state *)shared;
    return layout_of(state, &state->panels, make_panels, out);
}

kelp_status *kelp_bf16_conv_taps_first(const void *shared, const kelp_bf16_pair **out) {
    conv_state *state = (conv_state *)shared;
    return layout_of(state, &state->taps_first, make_taps_first, out);
}
