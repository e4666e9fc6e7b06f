/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cpu's plan: a file that is mapped, checked and used where it lies.
 *
 *   offset 0    head, 64 bytes: "KELPPLAN", version, size of head, number of sections, mark of byte
 *               order, length of the whole file, processor, alignment, 0, hash of head and table
 *   64          table: a section is {kind, 0, offset, length, hash}, 32 bytes
 *   then        sections, each at a multiple of 64:
 *     INFO        JSON: names, profiles, what can be refitted
 *     GRAPH       an ONNX model whose tensors lie in WEIGHTS and ORIGINALS
 *     SOURCE      the same before the passes, for a plan that can be refitted; else empty
 *     WEIGHTS     tensors that kernels read where they lie
 *     PACKS       what lies in PACKED: kelp_pack_entry, in the order of nodes
 *     PACKED      weights as kernels lay them out, for the instruction set the plan was built on
 *     ORIGINALS   tensors that nobody reads as long as what is packed can be used
 *
 * Numbers are little-endian. Hashes are XXH3-64 (xxHash specification 0.1.1, with seed 0). Head,
 * table, INFO, GRAPH, WEIGHTS and PACKS are checked when the plan is loaded; a block of PACKED when
 * a kernel takes it (its hash is in its entry, the section's is 0); SOURCE and ORIGINALS when they
 * are wanted: for a refit, or when weights are packed anew because another instruction set, or
 * another version of a layout, is what the machine and this Kelp use.
 */
#ifndef KELP_CPU_IMAGE_PLAN_FILE_H_
#define KELP_CPU_IMAGE_PLAN_FILE_H_

#include "base/buf.h"
#include "cpu/exec/exec.h"

#include <kelp/engine_provider.h>

#define KELP_PLAN_VERSION 2u
#define KELP_PLAN_ALIGNMENT 64u
#define KELP_PLAN_ORDER_MARK 0x01020304u
#define KELP_PLAN_MAGIC "KELPPLAN" /* 8 bytes, not terminated */

#if defined(__x86_64__)
#define KELP_PLAN_PROCESSOR "x86_64"
#elif defined(__aarch64__)
#define KELP_PLAN_PROCESSOR "aarch64"
#else
#define KELP_PLAN_PROCESSOR "other"
#endif

enum {
    KELP_SECTION_INFO,
    KELP_SECTION_GRAPH,
    KELP_SECTION_SOURCE,
    KELP_SECTION_WEIGHTS,
    KELP_SECTION_PACKS,
    KELP_SECTION_PACKED,
    KELP_SECTION_ORIGINALS,
    KELP_SECTION_COUNT
};

typedef struct kelp_plan_head {
    char magic[8];
    uint32_t version, head_bytes, section_count, order;
    uint64_t file_bytes;
    char processor[16];
    uint32_t alignment, reserved;
    uint64_t hash; /* of the head with 0 here, and of the table */
} kelp_plan_head;
_Static_assert(sizeof(kelp_plan_head) == 64, "the head is 64 bytes");

typedef struct kelp_plan_section {
    uint32_t kind, reserved;
    uint64_t offset, length, hash;
} kelp_plan_section;
_Static_assert(sizeof(kelp_plan_section) == 32, "a section is 32 bytes");

uint64_t kelp_plan_hash_head(const kelp_plan_head *head, const kelp_plan_section *table);

/* ---- writing ---- */
typedef struct kelp_plan_contents {
    const char *name;
    const kelp_graph *graph;
    const kelp_graph *source; /* before the passes; NULL: refits are not asked for */
    kelp_cpu_engine
        *engine;    /* `graph` is its own, and what its kernels packed goes along; or NULL */
    bool prepared;  /* the passes have run: the graph is an engine's */
    bool stripped;  /* what can be refitted is left out */
    bool no_fusion; /* of one that is not prepared */
    kelp_precision precision;
    const char *const *refittable;
    size_t refittable_count;
    const kelp_builder_config *config; /* profiles; NULL: none */
} kelp_plan_contents;

/* `*out` is aligned as a plan wants to be, and freed with kelp_free_aligned. */
kelp_status *kelp_plan_file_write(const kelp_plan_contents *contents, kelp_allocator allocator,
                                  char **out, size_t *out_bytes) KELP_MUST_USE;

/* ---- reading ---- */
bool kelp_plan_file_is(const void *data, size_t size_bytes);
/* Everything that is checked when a plan is loaded. */
kelp_status *kelp_plan_file_check(const char *data, size_t size_bytes, const char *label,
                                  kelp_plan_section table[KELP_SECTION_COUNT]) KELP_MUST_USE;
/* Makes length and hashes of a plan right that was changed in place, as far as its table allows. */
void kelp_plan_file_seal(void *data, size_t size_bytes);
/* See kelp_engine_load. */
kelp_status *kelp_plan_file_load(kelp_runtime *runtime, const void *data, size_t size_bytes,
                                 const char *label, void (*release)(void *userp), void *userp,
                                 kelp_cpu_engine **out) KELP_MUST_USE;

#endif
