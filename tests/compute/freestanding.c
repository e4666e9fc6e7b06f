/* SPDX-License-Identifier: Apache-2.0 */
/* Uses every function of the embedded model. check_freestanding.sh compiles it. */
#include "gesture.h"

kelp_code gesture_test(gesture *model, const void *bytes, size_t size_bytes,
                       const acceleration *inputs, gesture_kind *kinds, size_t count);

kelp_code gesture_test(gesture *model, const void *bytes, size_t size_bytes,
                       const acceleration *inputs, gesture_kind *kinds, size_t count) {
    size_t done = 0;
    kelp_code code = gesture_load(model, bytes, size_bytes);
    if (code == KELP_OK)
        code = gesture_init(model);
    if (code == KELP_OK && count > gesture_capabilities().max_batch)
        code = KELP_OUT_OF_RANGE;
    if (code == KELP_OK && gesture_metadata().input_bytes != sizeof *inputs)
        code = KELP_INTERNAL;
    if (code == KELP_OK)
        code = gesture_infer_one(model, inputs, kinds);
    if (code == KELP_OK)
        code =
            gesture_infer_batch(model, inputs, count, kinds, count, KELP_INLINE_EACH, NULL, &done);
    if (code == KELP_OK)
        code = gesture_drain(model);
    return code == KELP_OK ? gesture_reset_model(model) : code;
}
