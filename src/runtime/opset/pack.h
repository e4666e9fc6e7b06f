/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights of an engine, as kernels find them. */
#ifndef KELP_RUNTIME_OPSET_PACK_H_
#define KELP_RUNTIME_OPSET_PACK_H_

#include <kelp/opset.h>
#include <pthread.h>

typedef struct kelp_packs kelp_packs;
struct kelp_packs {
    bool keeps; /* blocks are written to an engine image: all bytes must be initialized */
    /* Finds the block in the engine image. `*out` is NULL if it has no matching block. */
    kelp_status *(*take)(kelp_packs *packs, const kelp_op_pack_site *site,
                         const kelp_op_packing *packing, const void **out);
    /* Called after a kernel packed a block; `data` lives as long as the node's kernel. */
    kelp_status *(*made)(kelp_packs *packs, const kelp_op_pack_site *site,
                         const kelp_op_packing *packing, const void *data);
};

/* Blocks that several nodes of an engine may use: nodes of one operator with the same attributes
 * and constants pack the same bytes. Thread-safe. */
typedef struct kelp_pack_shares {
    pthread_mutex_t lock;
    struct kelp_pack_share *first;
    bool creating; /* kernels are created, one after the other */
} kelp_pack_shares;

void kelp_pack_shares_init(kelp_pack_shares *shares);
/* Ends the creation of kernels: all blocks are written. */
void kelp_pack_shares_close(kelp_pack_shares *shares);
/* All blocks must have been freed. */
void kelp_pack_shares_deinit(kelp_pack_shares *shares);

#endif
