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
    kelp_arena staging; /* copies of inputs for the call in progress */
    kelp_arena batch;   /* descriptions, joined inputs and kept outputs of a batch */
    kelp_compute_copies copies;
    kelp_compute_stream *stream; /* the stream that owns the model, or NULL */
    bool ready;                  /* init has succeeded */
    bool batched;                /* items can be joined along the first dimension */
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
/* Checks the limit of the outputs' size. */
kelp_status *kelp_compute_check_outputs(const kelp_compute_model *model,
                                        const kelp_infer_item *item) KELP_MUST_USE;
/* Checks that the model is ready and that no stream owns it. */
kelp_status *kelp_compute_check_owner(const kelp_compute_model *model) KELP_MUST_USE;
/* Checks that every input and output has a dynamic first dimension. */
kelp_status *kelp_compute_check_batched(const kelp_compute_backend *backend,
                                        const kelp_compute_metadata *metadata) KELP_MUST_USE;
/* Returns true if the host can access the memory of the tensor. */
bool kelp_compute_on_host(const kelp_tensor *tensor);
/* Runs items that have passed the checks with infer_one, joined if the model is batched. */
kelp_status *kelp_compute_join(kelp_compute_model *model, kelp_infer_item *items, size_t count,
                               kelp_batch_mode mode) KELP_MUST_USE;
/* Waits until no item is in flight. */
void kelp_compute_stream_wait(kelp_compute_stream *stream);

#endif
