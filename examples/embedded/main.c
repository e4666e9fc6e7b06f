/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the gesture model on recorded data, with its state in a static buffer.
 *
 *     cc -std=c17 -O2 -I include examples/embedded/main.c -o gesture && ./gesture
 */
#include "gesture.h"

#include <stdio.h>

static const acceleration recording[] = {{0, 0, 9.8f}, {1, 0, 9.7f},   {14, 3, 9},   {-15, 2, 9},
                                         {16, -4, 10}, {-14, 1, 9.5f}, {2, 0, 9.8f}, {0, 0, 9.8f}};
#define COUNT (sizeof recording / sizeof *recording)

/* The model: a threshold of 12 m/s². */
static const uint8_t model_bytes[GESTURE_BYTES] = {'G', 'S', 1200 & 255, 1200 >> 8};

int main(void) {
    static gesture model;
    gesture_kind kinds[COUNT];
    size_t done = 0;
    if (gesture_infer_one(&model, recording, kinds) != KELP_FAILED_PRECONDITION ||
        gesture_load(&model, model_bytes, sizeof model_bytes) != KELP_OK ||
        gesture_init(&model) != KELP_OK || COUNT > gesture_capabilities().max_batch)
        return 1;
    printf("%zu bytes to %zu bytes\n", gesture_metadata().input_bytes,
           gesture_metadata().output_bytes);
    kelp_code code = gesture_infer_batch(&model, recording, COUNT, kinds, COUNT,
                                         KELP_INLINE_STOP_AT_FIRST, NULL, &done);
    for (size_t i = 0; i < done; i++)
        printf("%zu %s\n", i, kinds[i] == GESTURE_SHAKE ? "shake" : "-");
    return code == KELP_OK && gesture_drain(&model) == KELP_OK &&
                   gesture_reset_model(&model) == KELP_OK
               ? 0
               : 1;
}
