/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights of an engine: those of its engine image, and, while an image is built, those that
 * kernels pack. Any thread. */
#ifndef KELP_CPU_EXEC_PACKS_H_
#define KELP_CPU_EXEC_PACKS_H_

#include "base/str.h"
#include "runtime/opset/pack.h"

#include <pthread.h>

/* A block in an engine image. Places of constants are offsets in the image's weights, or, with
 * KELP_CPU_PACK_ORIGINAL, in its originals. */
#define KELP_CPU_PACK_ORIGINAL ((uint64_t)1 << 63)
typedef struct kelp_cpu_pack_entry {
    uint32_t node, inputs; /* in the order in which kernels are made; as in kelp_op_packing */
    uint64_t place;        /* of the first of these inputs */
    uint64_t offset, length, hash;
    char layout[KELP_OP_LAYOUT_MAX + 1];
} kelp_cpu_pack_entry;
_Static_assert(sizeof(kelp_cpu_pack_entry) == 64, "an entry is 64 bytes");

typedef struct kelp_cpu_pack_record {
    struct kelp_cpu_pack_record *next;
    kelp_op_pack_site site;
    uint32_t inputs, replaces;
    size_t order;
    const void *data;
    size_t size_bytes;
    char layout[KELP_OP_LAYOUT_MAX + 1];
} kelp_cpu_pack_record;

/* Packed weights in an engine image; borrowed as long as the engine lives. Entries are in the order
 * of their nodes, and inside of `packed`. */
typedef struct kelp_cpu_pack_source {
    const kelp_cpu_pack_entry *entries;
    size_t entry_count;
    kelp_str packed, weights, originals;
    uint64_t originals_hash;
    const char *label;
} kelp_cpu_pack_source;

typedef struct kelp_cpu_packs {
    kelp_packs packs; /* first: kernels see this */
    kelp_allocator allocator;
    kelp_cpu_pack_source source;
    pthread_mutex_t lock; /* guards what follows */
    bool originals_checked;
    kelp_cpu_pack_record *records; /* newest first */
    size_t record_count;
    size_t taken_count, taken_bytes; /* of the image's blocks, by kernels */
} kelp_cpu_packs;

/* `keeps`: blocks that kernels pack are recorded. `source` may be NULL. */
kelp_status *kelp_cpu_packs_create(kelp_allocator allocator, bool keeps,
                                   const kelp_cpu_pack_source *source,
                                   kelp_cpu_packs **out) KELP_MUST_USE;
void kelp_cpu_packs_destroy(kelp_cpu_packs *packs);
/* Called before the originals are read. Fails with INVALID_ARGUMENT if they were altered. */
kelp_status *kelp_cpu_packs_check_originals(kelp_cpu_packs *packs) KELP_MUST_USE;
size_t kelp_cpu_packs_taken(kelp_cpu_packs *packs, size_t *out_bytes);
/* Lists the records in the order of nodes; free the array with kelp_free. */
kelp_status *kelp_cpu_packs_list(kelp_cpu_packs *packs, kelp_cpu_pack_record ***out) KELP_MUST_USE;

uint64_t kelp_cpu_image_hash(const void *data, size_t size_bytes);

#endif
