/* SPDX-License-Identifier: Apache-2.0 */
/* Where packed weights come from, and who wants to hear of them: an engine. */
#ifndef KELP_RUNTIME_OPSET_PACK_H_
#define KELP_RUNTIME_OPSET_PACK_H_

#include <kelp/opset.h>

typedef struct kelp_packs kelp_packs;
struct kelp_packs {
    bool keeps; /* what is made goes into a plan: every byte of it is set */
    /* `*out` is the plan's bytes, or NULL when it has none that fit. */
    kelp_status *(*take)(kelp_packs *packs, const kelp_op_pack_site *site,
                         const kelp_op_packing *packing, const void **out);
    /* Told of what is packed anew; `data` stands as long as the node's kernel. */
    kelp_status *(*made)(kelp_packs *packs, const kelp_op_pack_site *site,
                         const kelp_op_packing *packing, const void *data);
};

#endif
