/* SPDX-License-Identifier: Apache-2.0 */
/* The shared memory regions that a request uses, as a list that is released as a whole. Used by one
 * thread at a time. */
#ifndef KELP_FRONTENDS_SHM_USES_H_
#define KELP_FRONTENDS_SHM_USES_H_

#include "base/arena.h"
#include "frontends/shm/registry.h"

/* A retained region, in the arena of its request. */
typedef struct kelp_shm_use {
    struct kelp_shm_use *next;
    kelp_shm_region *region;
} kelp_shm_use;

/* Returns the address of a range of a region, which is retained and added to the list. Fails like
 * kelp_shm_map, and with UNIMPLEMENTED if `registry` is NULL. */
kelp_status *kelp_shm_use_range(kelp_shm_registry *registry, kelp_arena *arena, const char *name,
                                uint64_t offset, uint64_t byte_size, kelp_shm_use **inout_uses,
                                void **out) KELP_MUST_USE;
/* Fails if a region was damaged while it was used. */
kelp_status *kelp_shm_check_uses(const kelp_shm_use *uses) KELP_MUST_USE;
/* Releases the regions, and empties the list. */
void kelp_shm_release_uses(kelp_shm_use **inout_uses);

#endif
