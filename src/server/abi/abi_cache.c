/* SPDX-License-Identifier: Apache-2.0 */
/* Two exports that Triton's library has and its headers do not declare. Response caches are not
 * supported. */
#include "server/abi/abi.h"

#include <triton/core/tritoncache.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT TRITONSERVER_Error *TRITONCACHE_CacheEntryNew(TRITONCACHE_CacheEntry **entry);
EXPORT TRITONSERVER_Error *TRITONCACHE_CacheEntryDelete(TRITONCACHE_CacheEntry *entry);

TRITONSERVER_Error *TRITONCACHE_CacheEntryNew(TRITONCACHE_CacheEntry **entry) {
    if (!entry)
        return kelp_abi_null(__func__, "entry");
    return kelp_to_error(KELP_ERROR(KELP_UNIMPLEMENTED, "%s is not supported", __func__));
}

TRITONSERVER_Error *TRITONCACHE_CacheEntryDelete(TRITONCACHE_CacheEntry *entry) {
    (void)entry;
    return kelp_to_error(KELP_ERROR(KELP_UNIMPLEMENTED, "%s is not supported", __func__));
}
