/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed weights of an engine: those that its plan brought, and, while a plan is built, those that
 * kernels made. Any thread.
 */
#ifndef KELP_CPU_EXEC_PACKS_H_
#define KELP_CPU_EXEC_PACKS_H_

#include "base/str.h"
#include "runtime/opset/pack.h"

#include <pthread.h>

/* A block in a plan. Places of constants are offsets in the plan's weights, or in its originals
 * with KELP_PACK_ORIGINAL. */
#define KELP_PACK_ORIGINAL ((uint64_t)1 << 63)
typedef struct kelp_pack_entry {
    uint32_t node, inputs; /* in the order in which kernels are made; as in kelp_op_packing */
    uint64_t place;        /* of the first of these inputs */
    uint64_t offset, length, hash;
    char layout[KELP_OP_LAYOUT_MAX + 1];
} kelp_pack_entry;
_Static_assert(sizeof(kelp_pack_entry) == 64, "an entry is 64 bytes");

typedef struct kelp_pack_record {
    struct kelp_pack_record *next;
    kelp_op_pack_site site;
    uint32_t inputs, replaces;
    size_t order;
    const void *data;
    size_t size_bytes;
    char layout[KELP_OP_LAYOUT_MAX + 1];
} kelp_pack_record;

/* What a plan brings; all borrowed, and alive as long as the engine. Entries are in the order of
 * their nodes, and lie inside of `packed`. */
typedef struct kelp_pack_source {
    const kelp_pack_entry *entries;
    size_t entry_count;
    kelp_str packed, weights, originals;
    uint64_t originals_hash;
    const char *label;
} kelp_pack_source;

typedef struct kelp_cpu_packs {
    kelp_packs packs; /* first: kernels see this */
    kelp_allocator allocator;
    kelp_pack_source source;
    pthread_mutex_t lock; /* of what follows */
    bool originals_checked;
    kelp_pack_record *records; /* newest first */
    size_t record_count;
    size_t taken_count, taken_bytes; /* of the plan's, by kernels */
} kelp_cpu_packs;

/* `keeps`: what kernels make is recorded. `source` may be NULL. */
kelp_status *kelp_cpu_packs_create(kelp_allocator allocator, bool keeps,
                                   const kelp_pack_source *source,
                                   kelp_cpu_packs **out) KELP_MUST_USE;
void kelp_cpu_packs_destroy(kelp_cpu_packs *packs);
/* The originals are about to be read: INVALID_ARGUMENT when they were altered. */
kelp_status *kelp_cpu_packs_check_originals(kelp_cpu_packs *packs) KELP_MUST_USE;
size_t kelp_cpu_packs_taken(kelp_cpu_packs *packs, size_t *out_bytes);
/* Records in the order of nodes; the array is freed with kelp_free. */
kelp_status *kelp_cpu_packs_list(kelp_cpu_packs *packs, kelp_pack_record ***out) KELP_MUST_USE;

uint64_t kelp_plan_hash(const void *data, size_t size_bytes);

#endif
