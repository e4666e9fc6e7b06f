/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights of an engine: those of its engine image, and, during the build of an image, those
 * that kernels pack. Thread-safe. */
#ifndef KELP_CPU_EXEC_PACKS_H_
#define KELP_CPU_EXEC_PACKS_H_

#include "base/str.h"
#include "runtime/opset/pack.h"

#include <pthread.h>

/* A block of packed weights in an engine image. `place` is the offset of a constant in the section
 * WEIGHTS, or, with the bit KELP_CPU_PACK_ORIGINAL, in the section ORIGINALS. */
#define KELP_CPU_PACK_ORIGINAL ((uint64_t)1 << 63)
typedef struct kelp_cpu_pack_entry {
    uint32_t node, inputs; /* kelp_cpu_node.index; as in kelp_op_packing */
    uint64_t place;        /* of the first of these inputs */
    uint64_t offset, length, hash;
    char layout[KELP_OP_LAYOUT_MAX + 1];
} kelp_cpu_pack_entry;
_Static_assert(sizeof(kelp_cpu_pack_entry) == 64, "an entry is 64 bytes");

/* A block that a kernel packed during the build of an engine image. */
typedef struct kelp_cpu_pack_record {
    struct kelp_cpu_pack_record *next;
    kelp_op_pack_site site;
    uint32_t inputs, replaces;
    size_t order;
    const void *data;
    size_t size_bytes;
    char layout[KELP_OP_LAYOUT_MAX + 1];
} kelp_cpu_pack_record;

/* The packed weights of an engine image, borrowed for the lifetime of the engine. The entries are
 * sorted by node, and their blocks are inside `packed`. */
typedef struct kelp_cpu_pack_source {
    const kelp_cpu_pack_entry *entries;
    size_t entry_count;
    kelp_str packed, weights, originals;
    uint64_t originals_hash;
    const char *label;
} kelp_cpu_pack_source;

/* The packed weights of one engine. */
typedef struct kelp_cpu_packs {
    kelp_packs packs; /* the interface for kernels; the first member */
    kelp_allocator allocator;
    kelp_cpu_pack_source source;
    pthread_mutex_t lock; /* guards the members below */
    bool originals_checked;
    kelp_cpu_pack_record *records; /* newest first */
    size_t record_count;
    size_t taken_count, taken_bytes; /* blocks of the image that kernels use */
} kelp_cpu_packs;

/* Creates the packs of an engine. `keeps`: records the blocks that kernels pack. `source` may be
 * NULL. */
kelp_status *kelp_cpu_packs_create(kelp_allocator allocator, bool keeps,
                                   const kelp_cpu_pack_source *source,
                                   kelp_cpu_packs **out) KELP_MUST_USE;
/* Destroys the packs or NULL; the packed weights belong to the kernels. */
void kelp_cpu_packs_destroy(kelp_cpu_packs *packs);
/* Checks the hash of the originals before they are read. Fails with INVALID_ARGUMENT if they were
 * altered. */
kelp_status *kelp_cpu_packs_check_originals(kelp_cpu_packs *packs) KELP_MUST_USE;
/* Returns the number and the bytes of the image's blocks that kernels use. */
size_t kelp_cpu_packs_taken(kelp_cpu_packs *packs, size_t *out_bytes);
/* Lists the records in the order of nodes. The caller frees the array of record_count + 1 pointers
 * with kelp_free. */
kelp_status *kelp_cpu_packs_list(kelp_cpu_packs *packs, kelp_cpu_pack_record ***out) KELP_MUST_USE;

/* Returns the XXH3-64 hash. */
uint64_t kelp_cpu_image_hash(const void *data, size_t size_bytes);

#endif
