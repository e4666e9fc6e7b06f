/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system shared memory extension: regions of POSIX shared memory that clients register under a
 * name, and then use as inputs and outputs of requests. All protocols of a server share a registry.
 *
 * A client can truncate a region at any time, or its file system can become full. Access to the
 * missing pages then raises SIGBUS, which would end the server. Therefore, the first registration
 * installs a handler for SIGBUS that replaces the rest of such a region by private zero pages and
 * marks the region as damaged: requests that use it fail, the server continues. Other SIGBUS
 * signals go to the previous handler.
 *
 * The contents of a region can change while the server reads it. A protocol must therefore copy
 * data that it validates before use, such as the lengths of BYTES elements.
 *
 * Thread-safe. kelp_shm_map and kelp_shm_region_release neither allocate nor block each other.
 */
#ifndef KELP_FRONTENDS_SHM_REGISTRY_H_
#define KELP_FRONTENDS_SHM_REGISTRY_H_

#include "base/str.h"

#include <kelp/allocator.h>

typedef struct kelp_shm_registry kelp_shm_registry;
typedef struct kelp_shm_region kelp_shm_region;

/* Limits for clients; a process has at most so many regions. */
#define KELP_SHM_MAX_REGIONS 1024
#define KELP_SHM_MAX_NAME_BYTES 256
#define KELP_SHM_MAX_KEY_BYTES 255 /* without leading slashes, as in shm_open */

/* Creates a registry without regions. If `allow_clients` is false, clients cannot register or
 * unregister regions. */
kelp_status *kelp_shm_create(kelp_allocator allocator, bool allow_clients,
                             kelp_shm_registry **out) KELP_MUST_USE;

/* Returns true if clients may register and unregister regions. */
bool kelp_shm_allows_clients(const kelp_shm_registry *registry);

/* Unmaps all regions. No region may be retained. NULL is allowed. */
void kelp_shm_destroy(kelp_shm_registry *registry);

/*
 * Maps `byte_size` bytes at `offset` of the shared memory object `key` (the name for shm_open) for
 * reading and writing, and registers them as `name`. The offset does not need to be a multiple of
 * the page size. Fails with UNIMPLEMENTED if clients may not register regions, ALREADY_EXISTS for a
 * name in use, RESOURCE_EXHAUSTED for too many regions, INVALID_ARGUMENT for an invalid name or
 * key, an object that cannot be opened, and a range that exceeds the object.
 */
kelp_status *kelp_shm_register(kelp_shm_registry *registry, kelp_str name, kelp_str key,
                               uint64_t offset, uint64_t byte_size) KELP_MUST_USE;

/* Unregisters a region, or all regions if `name` is empty. An unknown name is no failure. A
 * retained region is unregistered when it is released for the last time; until then, it is usable
 * and its name is in use. Fails with INVALID_ARGUMENT for a name that no region can have,
 * UNIMPLEMENTED if clients may not unregister regions. */
kelp_status *kelp_shm_unregister(kelp_shm_registry *registry, kelp_str name) KELP_MUST_USE;

/* A registered region, for status requests. */
typedef struct kelp_shm_info {
    kelp_str name, key;
    uint64_t offset, byte_size; /* as registered */
} kelp_shm_info;
/* Receives a region. Must not use the registry. */
typedef void (*kelp_shm_visit)(void *userp, const kelp_shm_info *info);

/* Calls `visit` for a region, or for all regions in order of their names if `name` is empty. Fails
 * with NOT_FOUND for an unknown name. */
kelp_status *kelp_shm_status(kelp_shm_registry *registry, kelp_str name, kelp_shm_visit visit,
                             void *userp) KELP_MUST_USE;

/* ---- requests ---- */
/* Retains the region `name` and returns it with the address of `byte_size` bytes at `offset`. Fails
 * with NOT_FOUND for an unknown name, INVALID_ARGUMENT for a range that exceeds the region and for
 * a damaged region. */
kelp_status *kelp_shm_map(kelp_shm_registry *registry, kelp_str name, uint64_t offset,
                          uint64_t byte_size, kelp_shm_region **out_region,
                          void **out_address) KELP_MUST_USE;

/* Fails with INVALID_ARGUMENT if the region is damaged. Call it after the last access, before the
 * results are used: zeros were read, or what was written is lost. */
kelp_status *kelp_shm_region_check(const kelp_shm_region *region) KELP_MUST_USE;

/* Drops a reference. The region may be unmapped at once. */
void kelp_shm_region_release(kelp_shm_region *region);

/* ---- CUDA shared memory, which requires a GPU ---- */
/* Fails with INVALID_ARGUMENT, because GPUs are not supported. */
kelp_status *kelp_shm_register_cuda(const kelp_shm_registry *registry, kelp_str name) KELP_MUST_USE;
/* Succeeds, as for an unknown region. Fails with UNIMPLEMENTED if clients may not unregister
 * regions. */
kelp_status *kelp_shm_unregister_cuda(const kelp_shm_registry *registry) KELP_MUST_USE;
/* Fails with NOT_FOUND, unless `name` is empty: there are no such regions. */
kelp_status *kelp_shm_status_cuda(kelp_str name) KELP_MUST_USE;

#endif
