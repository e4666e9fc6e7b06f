/* SPDX-License-Identifier: Apache-2.0 */
/* A model for a small device that uses only kelp/compute_inline.h: a moving average of
 * accelerations and a threshold. It needs no heap and no library; the caller provides the memory
 * of the state, and the bytes of the model, which may be in read-only memory. */
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
    const uint8_t *bytes; /* the artifact, borrowed; NULL before load */
    uint32_t seen;
    bool ready;
} gesture;

#define GESTURE_BYTES 4

/* Loads an artifact: the letters "GS", then the threshold of the average magnitude in 0.01 m/s² as
 * two bytes, the low one first. */
static inline kelp_code gesture_open(gesture *self, const void *bytes, size_t size_bytes) {
    const uint8_t *b = (const uint8_t *)bytes;
    if (size_bytes != GESTURE_BYTES || b[0] != 'G' || b[1] != 'S')
        return KELP_INVALID_ARGUMENT;
    *self = (gesture){.bytes = b};
    return KELP_OK;
}

static inline float gesture_threshold(const gesture *self) {
    return 0.01f * (float)(self->bytes[2] | self->bytes[3] << 8);
}

static inline kelp_code gesture_clear(gesture *self) {
    const uint8_t *bytes = self->bytes;
    if (bytes == NULL)
        return KELP_FAILED_PRECONDITION;
    *self = (gesture){.bytes = bytes, .ready = true};
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
    *output = 0.25f * sum > gesture_threshold(self) ? GESTURE_SHAKE : GESTURE_NONE;
    return KELP_OK;
}

static const kelp_inline_info gesture_info = {.max_batch = 16,
                                              .max_input_bytes = sizeof(acceleration),
                                              .preferred_input = KELP_MEMORY_HOST,
                                              .preferred_output = KELP_MEMORY_HOST,
                                              .dtype_mask = 1u << KELP_F32};
KELP_COMPUTE_INLINE(gesture, gesture, acceleration, gesture_kind, gesture_info, gesture_open,
                    gesture_clear, gesture_step, kelp_inline_nothing, gesture_clear);

#endif
