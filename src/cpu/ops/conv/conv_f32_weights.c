/* SPDX-License-Identifier: Apache-2.0 */
/* Constant weights of float convolutions, packed for the algorithms that run. */
#include "cpu/ops/conv/conv_f32_weights.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "cpu/kernels/conv/conv_kernels.h"
#include "cpu/kernels/gemm/gemm.h"

#include <pthread.h>

typedef struct packed_weights {
    const kelp_gemm_kernels *kernels; /* instruction set for which they are packed */
    kelp_op_packed packed;
} packed_weights;

struct kelp_conv_weights {
    kelp_allocator allocator;
    kelp_op_pack_site site;
    const void *data;
    int64_t taps, in_channels, out_channels;
    pthread_mutex_t lock;
    packed_weights layouts[KELP_CONV_LAYOUTS];
};

kelp_status *kelp_conv_weights_create(const kelp_node *node, const kelp_op_env *env,
                                      void **out_state) {
    const kelp_value *value = kelp_node_input_count(node) > 1 ? kelp_node_input(node, 1) : NULL;
    const kelp_tensor *w = value != NULL ? kelp_value_constant(value) : NULL;
    if (w == NULL || w->dtype != KELP_F32 || w->rank < 3 || kelp_tensor_elements(w) == 0 ||
        kelp_node_attr_i64(node, "group", 1) != 1)
        return NULL;
    kelp_conv_weights *weights = NULL;
    KELP_TRY(KELP_NEW(kelp_op_env_allocator(env), kelp_conv_weights, &weights));
    weights->allocator = kelp_op_env_allocator(env);
    weights->site = kelp_op_env_pack_site(env);
    weights->data = w->data;
    weights->out_channels = w->shape[0];
    weights->in_channels = w->shape[1];
    weights->taps = kelp_tensor_elements(w) / (w->shape[0] * w->shape[1]);
    pthread_mutex_init(&weights->lock, NULL);
    *out_state = weights;
    return NULL;
}

void kelp_conv_weights_destroy(void *state, kelp_allocator allocator) {
    kelp_conv_weights *weights = state;
    if (weights == NULL)
        return;
    for (int i = 0; i < KELP_CONV_LAYOUTS; i++)
        kelp_op_unpack(&weights->layouts[i].packed, allocator);
    pthread_mutex_destroy(&weights->lock);
    kelp_free(allocator, weights, sizeof *weights);
}

/* Names of the layouts in engine images. */
static const char *const layout_names[KELP_CONV_LAYOUTS] = {[KELP_CONV_IM2ROW] = "taps",
                                                            [KELP_CONV_WINOGRAD_6] = "winograd",
                                                            [KELP_CONV_WINOGRAD_4] = "winograd4"};

static kelp_status *pack(const kelp_conv_weights *w, const kelp_gemm_kernels *kernels,
                         kelp_conv_layout layout, packed_weights *out) {
    char name[KELP_OP_LAYOUT_MAX + 1];
    /* algorithms for other shapes may read the plain weights, so these are not replaced */
    kelp_op_packing packing = {.layout = name, .inputs = 1u << 1};
    int64_t points = layout == KELP_CONV_WINOGRAD_4 ? 4 : 6, depth = w->in_channels * w->taps;
    bool im2row = layout == KELP_CONV_IM2ROW;
    size_t floats;
    void *memory = NULL;
    KELP_ASSERT(layout != KELP_CONV_UNPACKED && layout < KELP_CONV_LAYOUTS);
    KELP_ASSERT_HELD((pthread_mutex_t *)&w->lock);
    if (im2row ? !kelp_gemm_packed_size(kernels, depth, w->out_channels, &floats)
               : !kelp_conv_winograd_size(kernels, w->taps, points, w->in_channels, w->out_channels,
                                          &floats))
        return NULL;
    if (!kelp_size_mul(floats, sizeof(float), &packing.size_bytes))
        return NULL;
    kelp_gemm_layout(kernels, layout_names[layout], name, sizeof name);
    KELP_TRY(kelp_op_pack(&w->site, w->allocator, &packing, &out->packed, &memory));
    if (memory != NULL && im2row)
        kelp_conv_im2row_pack(kernels, w->data, w->taps, w->in_channels, w->out_channels, memory);
    else if (memory != NULL)
        kelp_conv_winograd_pack(kelp_conv_kernels_get(), w->taps, points, w->data, w->in_channels,
                                w->out_channels, memory);
    kelp_op_pack_done(&out->packed);
    out->kernels = kernels;
    return NULL;
}

kelp_status *kelp_conv_weights_get(const kelp_conv_weights *shared,
                                   const kelp_gemm_kernels *kernels, kelp_conv_layout layout,
                                   const float **out) {
    kelp_conv_weights *weights = (kelp_conv_weights *)shared; /* protected by the lock */
    kelp_status *status = NULL;
    *out = NULL;
    if (weights == NULL)
        return NULL;
    packed_weights *packed = &weights->layouts[layout];
    pthread_mutex_lock(&weights->lock);
    if (packed->packed.data == NULL)
        status = pack(weights, kernels, layout, packed);
    if (packed->kernels == kernels)
        *out = packed->packed.data;
    pthread_mutex_unlock(&weights->lock);
    return status;
}
