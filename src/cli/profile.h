/* SPDX-License-Identifier: Apache-2.0 */
/* The time of each node of an inference: as a table of nodes or of operators, as JSON, and as a
 * trace. */
#ifndef KELP_CLI_PROFILE_H_
#define KELP_CLI_PROFILE_H_

#include "base/arena.h"
#include "base/text/json.h"

#include <kelp/engine.h>

/* One kernel call of an inference. Strings live in the arena of the profile. */
typedef struct kelp_profile_step {
    const char *op_type, *name;
    const char *algorithm; /* NULL: there is no choice */
    uint64_t total_ns;     /* of all runs */
    uint64_t end_ns;       /* of the last run, by kelp_now_ns */
    uint64_t last_ns;      /* duration in the last run */
} kelp_profile_step;

typedef struct kelp_profile {
    kelp_arena strings;
    kelp_profile_step *steps; /* in the order in which they ran */
    size_t count, capacity;
    uint64_t runs, total_ns;
    uint64_t begin_ns, end_ns; /* of the last run */
    kelp_status *failed;       /* of the callback */
} kelp_profile;

/* Invokes the context `runs` times and measures each step. Fails with UNIMPLEMENTED for providers
 * that do not measure. The caller calls deinit, also after a failure. */
kelp_status *kelp_profile_run(kelp_profile *out, kelp_context *context,
                              uint64_t runs) KELP_MUST_USE;
/* A zeroed profile is empty. */
void kelp_profile_deinit(kelp_profile *profile);

/* Append a table: a row for each node, in the order in which they ran, or for each operator, the
 * slowest first. */
kelp_status *kelp_profile_put_nodes(const kelp_profile *profile, kelp_buf *out) KELP_MUST_USE;
kelp_status *kelp_profile_put_operators(const kelp_profile *profile, kelp_buf *out) KELP_MUST_USE;
/* Writes an array with an object for each node. */
void kelp_profile_put_json(const kelp_profile *profile, kelp_json_writer *writer);
/* Writes the last run to a file in the Trace Event Format, which Perfetto and chrome://tracing
 * open, with the names of events that ONNX Runtime's profiles have. */
kelp_status *kelp_profile_save_trace(const kelp_profile *profile, const char *path) KELP_MUST_USE;

#endif
