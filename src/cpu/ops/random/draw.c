/* SPDX-License-Identifier: Apache-2.0 */
/* MT19937, and the distributions. */
#include "cpu/ops/random/draw.h"

#include "base/assert.h"
#include "tensor/convert.h"

#include <errno.h>
#include <math.h>
#include <sys/random.h>

#define MIDDLE 397

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

static void refill(kelp_draw *draw) {
    uint32_t *w = draw->words;
    for (int i = 0; i < KELP_DRAW_WORDS; i++) {
        uint32_t y = (w[i] & 0x80000000u) | (w[(i + 1) % KELP_DRAW_WORDS] & 0x7fffffffu);
        w[i] = w[(i + MIDDLE) % KELP_DRAW_WORDS] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    draw->at = 0;
}

static uint32_t next_word(kelp_draw *draw) {
    KELP_ASSERT(draw->at >= 0 && draw->at <= KELP_DRAW_WORDS);
    if (draw->at == KELP_DRAW_WORDS)
        refill(draw);
    uint32_t y = draw->words[draw->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

double kelp_draw_uniform(kelp_draw *draw) {
    uint32_t high = next_word(draw) >> 5, low = next_word(draw) >> 6;
    return ((double)high * 67108864.0 + (double)low) / 9007199254740992.0;
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
    double none = exp(log(1 - rarer));
    bool happened;
    for (;;) {
        double u = kelp_draw_uniform(draw);
        happened = u > none;
        if (!happened || u - none <= rarer * none / (1 - rarer))
            break; /* otherwise u is outside both outcomes, by rounding */
    }
    return happened == (probability <= 0.5);
}
