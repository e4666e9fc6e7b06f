/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights: those of an engine image, or memory for new ones. Thread-safe. */
#include "runtime/opset/pack.h"

#include "base/alloc.h"
#include "runtime/opset/env.h"

#include <string.h>

kelp_op_pack_site kelp_op_env_pack_site(const kelp_op_env *env) {
    return env->pack;
}

kelp_status *kelp_op_pack(const kelp_op_pack_site *site, kelp_allocator allocator,
                          const kelp_op_packing *packing, kelp_op_packed *out, void **out_bytes) {
    kelp_packs *packs = site->packs;
    void *bytes = NULL;
    *out = (kelp_op_packed){.size_bytes = packing->size_bytes};
    *out_bytes = NULL;
    if (packs != NULL)
        KELP_TRY(packs->take(packs, site, packing, &out->data));
    if (out->data != NULL) {
        out->borrowed = true;
        return NULL;
    }
    KELP_TRY(kelp_alloc_aligned(allocator, packing->size_bytes, KELP_TENSOR_ALIGNMENT, &bytes));
    if (packs != NULL && packs->keeps)
        memset(bytes, 0, packing->size_bytes);
    out->data = *out_bytes = bytes;
    kelp_status *status = packs != NULL ? packs->made(packs, site, packing, bytes) : NULL;
    if (status != NULL)
        kelp_op_unpack(out, allocator);
    return status;
}

void kelp_op_unpack(kelp_op_packed *packed, kelp_allocator allocator) {
    if (packed->data != NULL && !packed->borrowed)
        kelp_free_aligned(allocator, (void *)(uintptr_t)packed->data, packed->size_bytes,
                          KELP_TENSOR_ALIGNMENT);
    *packed = (kelp_op_packed){0};
}
