/* SPDX-License-Identifier: Apache-2.0 */
/* The state that Kelp keeps for a provider's model. Used by the model's thread only. */
#ifndef KELP_RUNTIME_COMPUTE_STATE_H_
#define KELP_RUNTIME_COMPUTE_STATE_H_

#include "base/arena.h"

#include <kelp/compute.h>

struct kelp_compute_state {
    kelp_allocator allocator;
    const kelp_compute_backend *backend;
    kelp_compute_capabilities capabilities;
    kelp_arena staging;          /* copies of inputs for the run in progress */
    kelp_compute_stream *stream; /* the stream that owns the model, or NULL */
    bool ready;                  /* init has succeeded */
};

/* Checks and runs the item, even if a stream owns the model. */
kelp_status *kelp_compute_run_item(kelp_compute_model *model, kelp_infer_item *item) KELP_MUST_USE;
/* Checks element types, limits and placement. Sets `out_adapt` if an input must be copied first. */
kelp_status *kelp_compute_check_item(const kelp_compute_model *model, const kelp_infer_item *item,
                                     bool *out_adapt) KELP_MUST_USE;
/* Copies inputs that cannot be read in place into the state's arena. `*out` is the item with the
 * copies. */
kelp_status *kelp_compute_adapt(kelp_compute_model *model, const kelp_infer_item *item,
                                kelp_infer_item *out) KELP_MUST_USE;
/* Waits until no item is in flight. */
void kelp_compute_stream_wait(kelp_compute_stream *stream);

#endif
