/* SPDX-License-Identifier: Apache-2.0 */
/* Constant weights of bfloat16 convolutions, packed for the algorithms that run. */
#include "cpu/ops/conv/conv_bf16_weights.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "cpu/kernels/gemm/gemm_bf16.h"
#include "cpu/ops/kernel.h"

#include <pthread.h>

struct kelp_conv_bf16_weights {
    kelp_allocator allocator;
    kelp_op_pack_site site;
    const void *weights; /* of the model */
    int64_t channels, in_channels, taps;
    pthread_mutex_t lock;
    kelp_op_packed layouts[KELP_CONV_BF16_LAYOUTS]; /* of kelp_bf16_pair; NULL: not packed yet */
};

kelp_status *kelp_conv_bf16_weights_create(const kelp_node *node, const kelp_op_env *env,
                                           void **out_state) {
    const kelp_value *value = kelp_node_input_count(node) > 1 ? kelp_node_input(node, 1) : NULL;
    const kelp_tensor *w = value != NULL ? kelp_value_constant(value) : NULL;
    if (w == NULL || w->dtype != KELP_F32 || (w->rank != 3 && w->rank != 4))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator 'ConvBf16' expects constant float weights over one or two axes "
                          "as input 1");
    kelp_conv_bf16_weights *state = NULL;
    KELP_TRY(KELP_NEW(kelp_op_env_allocator(env), kelp_conv_bf16_weights, &state));
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

void kelp_conv_bf16_weights_destroy(void *userp, kelp_allocator allocator) {
    kelp_conv_bf16_weights *state = userp;
    if (state == NULL)
        return;
    for (int i = 0; i < KELP_CONV_BF16_LAYOUTS; i++)
        kelp_op_unpack(&state->layouts[i], state->allocator);
    pthread_mutex_destroy(&state->lock);
    kelp_free(allocator, state, sizeof *state);
}

/* Names of the layouts in engine images. */
static const char *const layout_names[KELP_CONV_BF16_LAYOUTS] = {
    [KELP_CONV_BF16_ROWS] = "bf16rows/1",
    [KELP_CONV_BF16_PANELS] = "bf16/1",
    [KELP_CONV_BF16_TAPS_FIRST] = "bf16taps/1"};

/* Returns the floats of one output channel, with an even number of input channels. */
static int64_t even_depth(const kelp_conv_bf16_weights *w) {
    return kelp_round_up(w->in_channels, 2) * w->taps;
}

static bool packed_pairs(const kelp_conv_bf16_weights *w, kelp_conv_bf16_layout layout,
                         size_t *out) {
    if (layout == KELP_CONV_BF16_ROWS)
        return kelp_size_mul((size_t)w->channels,
                             (size_t)kelp_conv_bf16_row_step(w->in_channels, w->taps), out);
    int64_t depth = layout == KELP_CONV_BF16_PANELS ? w->in_channels * w->taps : even_depth(w);
    return kelp_bf16_packed_size(depth, w->channels, out);
}

static kelp_status *pack_taps_first(const kelp_conv_bf16_weights *w, kelp_bf16_pair *out) {
    size_t bytes = (size_t)(even_depth(w) * KELP_BF16_COLUMNS) * sizeof(float);
    void *ordered = NULL;
    KELP_TRY(kelp_alloc(w->allocator, bytes, &ordered));
    kelp_conv_bf16_pack_taps_first(kelp_bf16_kernels_get(), w->weights, w->taps, w->in_channels,
                                   w->channels, ordered, out);
    kelp_free(w->allocator, ordered, bytes);
    return NULL;
}

static kelp_status *pack(kelp_conv_bf16_weights *w, kelp_conv_bf16_layout layout) {
    kelp_op_packing packing = {
        .layout = layout_names[layout], .inputs = 1u << 1, .replaces = 1u << 1};
    int64_t depth = w->in_channels * w->taps;
    size_t pairs;
    void *memory = NULL;
    KELP_ASSERT(layout < KELP_CONV_BF16_LAYOUTS);
    KELP_ASSERT_HELD(&w->lock);
    if (!packed_pairs(w, layout, &pairs) ||
        !kelp_size_mul(pairs, sizeof(kelp_bf16_pair), &packing.size_bytes))
        return kelp_status_oom();
    KELP_TRY(kelp_op_pack(&w->site, w->allocator, &packing, &w->layouts[layout], &memory));
    if (memory == NULL)
        return NULL;
    if (layout == KELP_CONV_BF16_TAPS_FIRST) {
        kelp_status *status = pack_taps_first(w, memory);
        if (status != NULL)
            kelp_op_unpack(&w->layouts[layout], w->allocator);
        else
            kelp_op_pack_done(&w->layouts[layout]);
        return status;
    }
    if (layout == KELP_CONV_BF16_ROWS)
        kelp_conv_bf16_pack_rows(kelp_bf16_kernels_get(), w->weights, w->taps, w->in_channels,
                                 w->channels, memory);
    else
        kelp_bf16_pack_transposed(kelp_bf16_kernels_get(), w->weights, depth, depth, w->channels,
                                  memory);
    kelp_op_pack_done(&w->layouts[layout]);
    return NULL;
}

kelp_status *kelp_conv_bf16_weights_get(const kelp_conv_bf16_weights *shared,
                                        kelp_conv_bf16_layout layout, const kelp_bf16_pair **out) {
    kelp_conv_bf16_weights *w = (kelp_conv_bf16_weights *)shared; /* protected by the lock */
    pthread_mutex_lock(&w->lock);
    kelp_status *status = w->layouts[layout].data != NULL ? NULL : pack(w, layout);
    *out = w->layouts[layout].data;
    pthread_mutex_unlock(&w->lock);
    return status;
}
