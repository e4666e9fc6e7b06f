/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine image of the provider `cpu`, which is also the plan file. It is mapped, checked and
 * used in place.
 *
 *   offset 0    head, 64 bytes: "KELPPLAN", version, size of head, number of sections, byte order
 *               mark, length of the file, processor, alignment, 0, hash of head and table
 *   64          table: a section is {kind, 0, offset, length, hash}, 32 bytes
 *   after it    sections, each at a multiple of 64:
 *     INFO        JSON: names, profiles, refittable weights
 *     GRAPH       an ONNX model whose tensors are in WEIGHTS and ORIGINALS
 *     SOURCE      the model before the passes, for an image that can be refitted; otherwise empty
 *     WEIGHTS     tensors that kernels read in place
 *     PACKS       the table of PACKED: kelp_cpu_pack_entry, in the order of nodes
 *     PACKED      packed weights, for the instruction set that the image was built on
 *     ORIGINALS   tensors that are only read if the packed ones cannot be used
 *
 * Numbers are little-endian. Hashes are XXH3-64 (xxHash specification 0.1.1, with seed 0). Head,
 * table, INFO, GRAPH, WEIGHTS and PACKS are checked when the image is loaded. A block of PACKED is
 * checked when a kernel takes it; its hash is in its entry, and the hash of the section is 0.
 * SOURCE and ORIGINALS are checked before they are read: for a refit, or when weights are packed
 * again because the instruction set or the version of a layout differs.
 *
 * Increase KELP_CPU_IMAGE_VERSION when the head, the table, a section or a field of INFO changes,
 * and when an operator of the domain `kelp` changes its attributes, inputs or meaning, because
 * GRAPH contains such operators. A change of the layout of packed weights changes the name of the
 * layout instead. Then run tests/data/make_plans.py.
 */
#ifndef KELP_CPU_IMAGE_IMAGE_H_
#define KELP_CPU_IMAGE_IMAGE_H_

#include "base/buf.h"
#include "cpu/exec/engine.h"

#include <kelp/engine_provider.h>

/* The values of the members of the head. */
#define KELP_CPU_IMAGE_VERSION 2u
#define KELP_CPU_IMAGE_ALIGNMENT 64u
#define KELP_CPU_IMAGE_ORDER_MARK 0x01020304u
#define KELP_CPU_IMAGE_MAGIC "KELPPLAN" /* 8 bytes, not terminated */

#if defined(__x86_64__)
#define KELP_CPU_IMAGE_PROCESSOR "x86_64"
#elif defined(__aarch64__)
#define KELP_CPU_IMAGE_PROCESSOR "aarch64"
#else
#define KELP_CPU_IMAGE_PROCESSOR "other"
#endif

/* The sections, in the order of the file. */
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

/* The head of an engine image. */
typedef struct kelp_cpu_image_head {
    char magic[8];
    uint32_t version, head_bytes, section_count, order;
    uint64_t file_bytes;
    char processor[16];
    uint32_t alignment, reserved;
    uint64_t hash; /* of the head with 0 here, and of the table */
} kelp_cpu_image_head;
_Static_assert(sizeof(kelp_cpu_image_head) == 64, "the head is 64 bytes");

/* An entry of the table of sections. */
typedef struct kelp_cpu_image_section {
    uint32_t kind, reserved;
    uint64_t offset, length, hash;
} kelp_cpu_image_section;
_Static_assert(sizeof(kelp_cpu_image_section) == 32, "a section is 32 bytes");

/* Returns the hash of the head, without its own hash, and of the table. */
uint64_t kelp_cpu_image_hash_head(const kelp_cpu_image_head *head,
                                  const kelp_cpu_image_section *table);

/* ---- writing ---- */
/* The contents of an engine image. */
typedef struct kelp_cpu_image_contents {
    const char *name;
    const kelp_graph *graph;
    const kelp_graph *source; /* before the passes; NULL for an image without refits */
    kelp_cpu_engine *engine;  /* owner of `graph`, whose packed weights are written; or NULL */
    bool prepared;            /* the passes have run on `graph` */
    bool stripped;            /* refittable weights are left out */
    bool no_fusion;           /* option of the engine if the passes have not run */
    kelp_precision precision;
    const char *const *refittable;
    size_t refittable_count;
    const kelp_builder_config *config; /* profiles; NULL: none */
} kelp_cpu_image_contents;

/* Writes an engine image. `*out` is aligned to KELP_CPU_IMAGE_ALIGNMENT; the caller frees it with
 * kelp_free_aligned. */
kelp_status *kelp_cpu_image_write(const kelp_cpu_image_contents *contents, kelp_allocator allocator,
                                  char **out, size_t *out_bytes) KELP_MUST_USE;

/* ---- reading ---- */
/* Returns true if the data begins like an engine image. */
bool kelp_cpu_image_is(const void *data, size_t size_bytes);
/* Checks an engine image as far as it is checked when it is loaded, and returns its table. */
kelp_status *kelp_cpu_image_check(const char *data, size_t size_bytes, const char *label,
                                  kelp_cpu_image_section table[KELP_SECTION_COUNT]) KELP_MUST_USE;
/* Updates the length and the hashes of an engine image that was modified in place, as far as its
 * table is valid. For tests. */
void kelp_cpu_image_seal(void *data, size_t size_bytes);
/* Loads an engine image. See kelp_engine_load. */
kelp_status *kelp_cpu_image_load(kelp_runtime *runtime, const void *data, size_t size_bytes,
                                 const char *label, void (*release)(void *userp), void *userp,
                                 kelp_cpu_engine **out) KELP_MUST_USE;

#endif
