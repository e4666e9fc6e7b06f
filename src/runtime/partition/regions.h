/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes of a block can become one. */
#ifndef KELP_RUNTIME_PARTITION_REGIONS_H_
#define KELP_RUNTIME_PARTITION_REGIONS_H_

#include "graph/ir.h"

#define KELP_NO_REGION UINT32_MAX

/* Groups the candidates (by node index) into connected sets that no path leaves and enters again,
 * each as large as joining neighbours makes it. `out_of`: a region's number by node index, or
 * KELP_NO_REGION; numbers are dense. Deterministic. Scratch and result come from `arena`. */
kelp_status *kelp_regions_grow(const kelp_block *block, const bool *candidates, kelp_arena *arena,
                               uint32_t **out_of, uint32_t *out_count) KELP_MUST_USE;

#endif
