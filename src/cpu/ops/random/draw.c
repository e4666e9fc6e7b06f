/* SPDX-License-Identifier: Apache-2.0 */
/* MT19937, and the distributions. */
#include "cpu/ops/random/draw.h"

#include "base/assert.h"
#include "tensor/convert.h"

#include <errno.h>
#include <math.h>
#include <sys/random.h>

#define MIDDLE 397
#define NEAR 1e-13 /* more than the errors of exp(log(x)) */

void kelp_draw_seed(kelp_draw *draw, uint32_t seed) {
    for (uint32_t i = 0; i < KELP_DRAW_WORDS; i++) {
        draw->words[i] = seed;
        seed = 1812433253u * (seed ^ seed >> 30) + i + 1;
    }
    draw->at = KELP_DRAW_WORDS;
    draw->has_spare = false;
}

kelp_status *kelp_draw_begin(kelp_draw *draw, const kelp_node *node) {
    kelp_attr_type type = kelp_node_attr_type(node, "seed");
    if (type == KELP_ATTR_INT) {
        kelp_draw_seed(draw, (uint32_t)kelp_node_attr_i64(node, "seed", 0));
        return NULL;
    }
    if (type == KELP_ATTR_FLOAT) {
        float seed = kelp_node_attr_f32(node, "seed", 0);
        bool whole = seed > -0x1p63f && seed < 0x1p63f;
        kelp_draw_seed(draw, whole ? (uint32_t)(int64_t)seed : kelp_f32_bits(seed));
        return NULL;
    }
    kelp_draw_seed(draw, 0);
    ssize_t got;
    do
        got = getrandom(draw->words, sizeof draw->words, 0);
    while (got < 0 && errno == EINTR);
    if (got < 16)
        return KELP_ERROR(KELP_UNAVAILABLE, "cannot read random bytes from the system: %s",
                          strerror(errno));
    draw->words[0] |= 0x80000000u; /* a state of zeros would only produce zeros */
    return NULL;
}

/* Returns the next state of a word from it and the two words that it depends on. */
static inline uint32_t next_state(uint32_t word, uint32_t next, uint32_t middle) {
    uint32_t y = (word & 0x80000000u) | (next & 0x7fffffffu);
    return middle ^ y >> 1 ^ (0x9908b0dfu & (0 - (y & 1)));
}

/* Three loops without a modulus, which the compiler vectorizes. */
static void refill(kelp_draw *draw) {
    enum { FIRST = KELP_DRAW_WORDS - MIDDLE, LAST = KELP_DRAW_WORDS - 1 };
    uint32_t *w = draw->words;
    for (int i = 0; i < FIRST; i++)
        w[i] = next_state(w[i], w[i + 1], w[i + MIDDLE]);
    for (int i = FIRST; i < LAST; i++)
        w[i] = next_state(w[i], w[i + 1], w[i - FIRST]);
    w[LAST] = next_state(w[LAST], w[0], w[MIDDLE - 1]);
    for (int i = 0; i < KELP_DRAW_WORDS; i++) {
        uint32_t y = w[i];
        y ^= y >> 11;
        y ^= y << 7 & 0x9d2c5680u;
        y ^= y << 15 & 0xefc60000u;
        draw->drawn[i] = y ^ y >> 18;
    }
    draw->at = 0;
}

/* Combines 27 and 26 bits, which fit into int32, for whose conversion there is an instruction. */
static inline double uniform_of(const uint32_t *pair) {
    int32_t high = (int32_t)(pair[0] >> 5), low = (int32_t)(pair[1] >> 6);
    return ((double)high * 67108864.0 + (double)low) / 9007199254740992.0;
}

void kelp_draw_uniforms(kelp_draw *draw, double *out, int64_t count) {
    KELP_ASSERT(draw->at >= 0 && draw->at % 2 == 0);
    while (count > 0) {
        if (draw->at == KELP_DRAW_WORDS)
            refill(draw);
        int64_t n = KELP_MIN(count, (int64_t)(KELP_DRAW_WORDS - draw->at) / 2);
        for (int64_t i = 0; i < n; i++)
            out[i] = uniform_of(draw->drawn + draw->at + 2 * i);
        draw->at += (int)(2 * n);
        out += n;
        count -= n;
    }
}

double kelp_draw_uniform(kelp_draw *draw) {
    if (draw->at == KELP_DRAW_WORDS)
        refill(draw);
    draw->at += 2;
    return uniform_of(draw->drawn + draw->at - 2);
}

double kelp_draw_normal(kelp_draw *draw) {
    double x, y, square;
    if (draw->has_spare) {
        draw->has_spare = false;
        return draw->spare;
    }
    do {
        x = 2 * kelp_draw_uniform(draw) - 1;
        y = 2 * kelp_draw_uniform(draw) - 1;
        square = x * x + y * y;
    } while (square >= 1 || square == 0);
    double factor = sqrt(-2 * log(square) / square);
    draw->spare = factor * x;
    draw->has_spare = true;
    return factor * y;
}

/* Draws a binomial number of one trial by inversion, for the rarer of the two outcomes. */
bool kelp_draw_event(kelp_draw *draw, double probability) {
    probability = probability > 0 ? fmin(probability, 1) : 0;
    double rarer = probability <= 0.5 ? probability : 1 - probability;
    bool happened;
    for (;;) {
        double u = kelp_draw_uniform(draw);
        /* exp and log only decide near the limits, where they round to another value */
        happened = u > 1 - rarer;
        if (fabs(u - (1 - rarer)) > NEAR && u < 1 - NEAR)
            break;
        double none = exp(log(1 - rarer));
        happened = u > none;
        if (!happened || u - none <= rarer * none / (1 - rarer))
            break; /* otherwise u is outside both outcomes, by rounding */
    }
    return happened == (probability <= 0.5);
}
