/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of products in panels: rows of a wide matrix lie pages apart, and read where they lie
 * they would cost a miss of the TLB each. */
#include "ops/linear/panels.h"

#include "base/alloc.h"
#include "ops/linear/gemm.h"

struct kelp_panels {
    const kelp_simd *simd; /* the table that they are laid out for */
    kelp_op_packed packed;
};

const kelp_tensor *kelp_panels_constant(const kelp_node *node) {
    const kelp_value *value = kelp_node_input_count(node) > 1 ? kelp_node_input(node, 1) : NULL;
    const kelp_tensor *b = value != NULL ? kelp_value_constant(value) : NULL;
    return b != NULL && b->rank == 2 && b->dtype == KELP_F32 && kelp_tensor_bytes(b) > 0 ? b : NULL;
}

kelp_status *kelp_panels_create(const kelp_op_env *env, const kelp_tensor *b, bool turned,
                                kelp_panels **out) {
    const kelp_simd *simd = kelp_simd_get();
    int64_t k = b->shape[turned ? 1 : 0], n = b->shape[turned ? 0 : 1];
    char layout[KELP_OP_LAYOUT_MAX + 1];
    kelp_op_packing packing = {.layout = layout, .inputs = 1u << 1, .replaces = 1u << 1};
    kelp_panels *panels = NULL;
    size_t floats;
    void *room = NULL;
    *out = NULL;
    if (!kelp_gemm_packed_size(simd, k, n, &floats) ||
        !kelp_size_mul(floats, sizeof(float), &packing.size_bytes))
        return NULL;
    kelp_gemm_layout(simd, "gemm", layout);
    kelp_allocator allocator = kelp_op_env_allocator(env);
    kelp_op_pack_site site = kelp_op_env_pack_site(env);
    KELP_TRY(KELP_NEW(allocator, kelp_panels, &panels));
    kelp_status *status = kelp_op_pack(&site, allocator, &packing, &panels->packed, &room);
    if (status != NULL) {
        kelp_free(allocator, panels, sizeof *panels);
        return status;
    }
    panels->simd = simd;
    if (room != NULL && turned)
        kelp_gemm_pack_turned(simd, b->data, k, k, n, room);
    else if (room != NULL)
        kelp_gemm_pack(simd, b->data, k, n, room);
    *out = panels;
    return NULL;
}

void kelp_panels_destroy(kelp_panels *panels, kelp_allocator allocator) {
    if (panels == NULL)
        return;
    kelp_op_unpack(&panels->packed, allocator);
    kelp_free(allocator, panels, sizeof *panels);
}

const float *kelp_panels_data(const kelp_panels *panels) {
    return panels != NULL && panels->simd == kelp_simd_get() ? panels->packed.data : NULL;
}

const kelp_simd *kelp_panels_simd(const kelp_panels *panels) {
    return panels->simd;
}
