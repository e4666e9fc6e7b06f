/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata of the server, as all protocols show it. */
#ifndef KELP_FRONTENDS_COMMON_METADATA_H_
#define KELP_FRONTENDS_COMMON_METADATA_H_

#include "base/arena.h"
#include "base/buf.h"
#include "frontends/shm/registry.h"

#include <triton/core/tritonserver.h>

/* The extensions that depend on the front-end. */
typedef struct kelp_v2_extensions {
    const kelp_shm_registry *shm; /* NULL: not provided */
    bool logging, trace;
    bool generate;
} kelp_v2_extensions;

/* Appends the metadata of `core` as JSON, with exactly the extensions that clients can use. Parses
 * in `arena`. */
kelp_status *kelp_v2_put_metadata(TRITONSERVER_Server *core, const kelp_v2_extensions *extensions,
                                  kelp_arena *arena, kelp_buf *out) KELP_MUST_USE;

#endif
