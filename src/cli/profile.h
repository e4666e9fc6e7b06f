/* SPDX-License-Identifier: Apache-2.0 */
/* The time of each node of a model, over some runs. One thread. */
#ifndef KELP_CLI_PROFILE_H_
#define KELP_CLI_PROFILE_H_

#include "base/arena.h"
#include "base/json.h"

#include <kelp/engine.h>

/* One step of a run. Strings live in the profile's arena. */
typedef struct kelp_cli_step {
    const char *op_type, *name;
    const char *algorithm; /* NULL: there is no choice */
    uint64_t duration_ns;  /* of all runs */
} kelp_cli_step;

typedef struct kelp_cli_profile {
    kelp_arena strings;
    kelp_cli_step *steps;
    size_t count, capacity;
    uint64_t runs, total_ns;
    kelp_status *failed; /* of the callback */
} kelp_cli_profile;

/* Invokes the context `runs` times and adds up the time of each step. Deinitialize the profile also
 * when this fails. UNIMPLEMENTED by providers that do not measure. */
kelp_status *kelp_cli_profile_init(kelp_cli_profile *profile, kelp_context *context,
                                   uint64_t runs) KELP_MUST_USE;
void kelp_cli_profile_deinit(kelp_cli_profile *profile);

/* Appends a table of the steps, in the order in which they ran: operator, algorithm, the mean time,
 * its share, and the node. */
void kelp_cli_profile_put_text(const kelp_cli_profile *profile, kelp_buf *out);
/* Writes an array of the steps. */
void kelp_cli_profile_put_json(const kelp_cli_profile *profile, kelp_json_writer *writer);

#endif
