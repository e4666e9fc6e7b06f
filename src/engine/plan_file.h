/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cpu's plan: a file that is mapped, checked and used where it lies.
 *
 *   offset 0    head, 64 bytes: "KELPPLAN", version, size of head, number of sections, flags,
 *               length of the whole file, mark of byte order, processor, hash of head and table
 *   64          table: a section is {kind, 0, offset, length, hash}, 32 bytes
 *   then        sections, each at a multiple of 64: INFO (JSON: names, profiles, what can be
 *               refitted), GRAPH (an ONNX model whose tensors lie in WEIGHTS), WEIGHTS
 *
 * Numbers are little-endian. Hashes are XXH3-64 (xxHash specification 0.1.1, with seed 0).
 */
#ifndef KELP_ENGINE_PLAN_FILE_H_
#define KELP_ENGINE_PLAN_FILE_H_

#include "base/buf.h"
#include "engine/engine_internal.h"

#include <kelp/engine_provider.h>

#define KELP_PLAN_VERSION 1u

typedef struct kelp_plan_contents {
    const char *name;
    const kelp_graph *graph;
    bool prepared;  /* the passes have run: the graph is an engine's */
    bool no_fusion; /* of one that is not prepared */
    kelp_precision precision;
    const char *const *refittable;
    size_t refittable_count;
    const kelp_builder_config *config; /* profiles; NULL: none */
} kelp_plan_contents;

kelp_status *kelp_plan_file_write(const kelp_plan_contents *contents, kelp_buf *out) KELP_MUST_USE;
/* Makes length and hashes of a plan right that was changed in place, as far as its table allows. */
void kelp_plan_file_seal(void *data, size_t size_bytes);
bool kelp_plan_file_is(const void *data, size_t size_bytes);
/* See kelp_engine_load. */
kelp_status *kelp_plan_file_load(kelp_runtime *runtime, const void *data, size_t size_bytes,
                                 const char *label, void (*release)(void *userp), void *userp,
                                 kelp_engine **out) KELP_MUST_USE;

#endif
