/* SPDX-License-Identifier: Apache-2.0 */
/* Grouping of the nodes of a block that can become one node. */
#ifndef KELP_RUNTIME_PARTITION_REGIONS_H_
#define KELP_RUNTIME_PARTITION_REGIONS_H_

#include "graph/ir.h"

#define KELP_NO_REGION UINT32_MAX

/* Groups the candidates (by node index) into connected convex sets: no path leaves a set and enters
 * it again. Adjacent sets are joined where possible. `*out_of` has the region's number by node
 * index, or KELP_NO_REGION; numbers are dense. Deterministic. Allocates from `arena`. */
kelp_status *kelp_regions_grow(const kelp_block *block, const bool *candidates, kelp_arena *arena,
                               uint32_t **out_of, uint32_t *out_count) KELP_MUST_USE;

#endif
