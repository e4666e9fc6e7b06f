/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/shm/uses.h"

kelp_status *kelp_shm_use_range(kelp_shm_registry *registry, kelp_arena *arena, const char *name,
                                uint64_t offset, uint64_t byte_size, kelp_shm_use **inout_uses,
                                void **out) {
    if (registry == NULL)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "region '%s': shared memory regions are not supported", name);
    kelp_shm_use *use = KELP_ARENA_NEW(arena, kelp_shm_use);
    if (use == NULL)
        return kelp_status_oom();
    KELP_TRY(kelp_shm_map(registry, kelp_str_from(name), offset, byte_size, &use->region, out));
    use->next = *inout_uses;
    *inout_uses = use;
    return NULL;
}

kelp_status *kelp_shm_check_uses(const kelp_shm_use *uses) {
    for (const kelp_shm_use *use = uses; use != NULL; use = use->next)
        KELP_TRY(kelp_shm_region_check(use->region));
    return NULL;
}

void kelp_shm_release_uses(kelp_shm_use **inout_uses) {
    const kelp_shm_use *use = *inout_uses;
    if (use == NULL) /* other threads may test an empty list */
        return;
    *inout_uses = NULL;
    for (; use != NULL; use = use->next)
        kelp_shm_region_release(use->region);
}
