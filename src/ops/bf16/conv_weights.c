/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: reshapes of several contexts may ask at once; a lock holds them apart. */
#include "ops/bf16/conv_weights.h"

#include "base/alloc.h"

#include <pthread.h>

typedef struct packed {
    kelp_bf16_pair *pairs; /* NULL: not asked for yet */
    size_t size_bytes;
} packed;

typedef struct conv_state {
    kelp_allocator allocator;
    const void *weights; /* the model's */
    int64_t channels, in_channels, taps;
    pthread_mutex_t lock;
    packed rows, panels;
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
    state->weights = w->data;
    state->channels = w->shape[0];
    state->in_channels = w->shape[1];
    state->taps = kelp_ops_product(w->shape, 2, w->rank);
    pthread_mutex_init(&state->lock, NULL);
    *out_state = state;
    return NULL;
}

static void drop(conv_state *state, packed *layout) {
    if (layout->pairs != NULL)
        state->allocator.realloc(state->allocator.userp, layout->pairs, layout->size_bytes, 0, 64);
}

void kelp_bf16_conv_destroy(void *userp, kelp_allocator allocator) {
    conv_state *state = userp;
    if (state == NULL)
        return;
    drop(state, &state->rows);
    drop(state, &state->panels);
    pthread_mutex_destroy(&state->lock);
    kelp_free(allocator, state, sizeof *state);
}

static bool reserve(conv_state *state, packed *layout, size_t pairs) {
    if (!kelp_size_mul(pairs, sizeof *layout->pairs, &layout->size_bytes))
        return false;
    layout->pairs =
        state->allocator.realloc(state->allocator.userp, NULL, 0, layout->size_bytes, 64);
    return layout->pairs != NULL;
}

static int64_t step_of(const conv_state *state) {
    return kelp_bf16_row_step((state->in_channels + 1) / 2 * state->taps);
}

static bool make_rows(conv_state *state) {
    const kelp_bf16 *table = kelp_bf16_get();
    int64_t step = step_of(state), taps = state->taps;
    const kelp_float_u *from = state->weights;
    size_t pairs;
    if (!kelp_size_mul((size_t)state->channels, (size_t)step, &pairs) ||
        !reserve(state, &state->rows, pairs))
        return false;
    for (int64_t m = 0; m < state->channels; m++) {
        kelp_bf16_pair *to = state->rows.pairs + m * step;
        for (int64_t c = 0; c < state->in_channels; c += 2, to += taps) {
            const kelp_float_u *even = from + (m * state->in_channels + c) * taps;
            table->pairs(even, c + 1 < state->in_channels ? even + taps : NULL, 0, 1, 1, taps, to,
                         0);
        }
    }
    return true;
}

static bool make_panels(conv_state *state) {
    int64_t depth = state->in_channels * state->taps;
    size_t pairs;
    if (!kelp_bf16_packed_size(depth, state->channels, &pairs) ||
        !reserve(state, &state->panels, pairs))
        return false;
    kelp_bf16_pack_turned(kelp_bf16_get(), state->weights, depth, depth, state->channels,
                          state->panels.pairs);
    return true;
}

static kelp_status *layout_of(conv_state *state, packed *layout, bool (*make)(conv_state *state),
                              const kelp_bf16_pair **out) {
    pthread_mutex_lock(&state->lock);
    bool made = layout->pairs != NULL || make(state);
    *out = layout->pairs;
    pthread_mutex_unlock(&state->lock);
    return made ? NULL : kelp_status_oom();
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
