/* SPDX-License-Identifier: Apache-2.0 */
/* A model for a small device that uses only kelp/compute_inline.h: a moving average of
 * accelerations and a perceptron. It needs no heap and no library; the caller provides the memory
 * of the state. */
#ifndef GESTURE_H_
#define GESTURE_H_

#include <kelp/compute_inline.h>

#define GESTURE_WINDOW 4

typedef struct acceleration {
    float x, y, z; /* m/s² */
} acceleration;

typedef enum gesture_kind { GESTURE_NONE = 0, GESTURE_SHAKE = 1, GESTURE_BROKEN = 2 } gesture_kind;

typedef struct gesture {
    acceleration window[GESTURE_WINDOW];
    uint32_t seen;
    bool ready;
} gesture;

static inline kelp_code gesture_clear(gesture *self) {
    *self = (gesture){.ready = true};
    return KELP_OK;
}

static inline float gesture_magnitude(const acceleration *a) {
    return (a->x < 0 ? -a->x : a->x) + (a->y < 0 ? -a->y : a->y) + (a->z < 0 ? -a->z : a->z);
}

/* Runs a step. FAILED_PRECONDITION before init; OUT_OF_RANGE for values that no sensor produces. */
static inline kelp_code gesture_step(gesture *self, const acceleration *input,
                                     gesture_kind *output) {
    float sum = 0;
    if (!self->ready)
        return KELP_FAILED_PRECONDITION;
    if (!(gesture_magnitude(input) < 1000))
        return KELP_OUT_OF_RANGE;
    self->window[self->seen++ % GESTURE_WINDOW] = *input;
    for (int i = 0; i < GESTURE_WINDOW; i++)
        sum += gesture_magnitude(&self->window[i]);
    *output = 0.25f * sum - 12.0f > 0 ? GESTURE_SHAKE : GESTURE_NONE;
    return KELP_OK;
}

static const kelp_inline_limits gesture_limits = {.max_batch = 16};
KELP_COMPUTE_INLINE(gesture, gesture, acceleration, gesture_kind, gesture_limits, gesture_clear,
                    gesture_step, kelp_inline_nothing, gesture_clear);

#endif
