/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers of the operators: MT19937 with the distributions of NumPy's RandomState, so that a
 * seed yields the same values as in NumPy and in ONNX's reference implementation. Source: Matsumoto
 * and Nishimura, "Mersenne Twister", ACM TOMACS 8(1), 1998; Marsaglia and Bray, "A convenient
 * method for generating normal variables", SIAM Review 6(3), 1964; NumPy's documentation of
 * RandomState. A generator is used by one thread at a time.
 */
#ifndef KELP_CPU_OPS_RANDOM_DRAW_H_
#define KELP_CPU_OPS_RANDOM_DRAW_H_

#include "cpu/ops/kernel.h"

#define KELP_DRAW_WORDS 624 /* of the state of MT19937 */

/* A generator. */
typedef struct kelp_draw {
    uint32_t words[KELP_DRAW_WORDS];
    uint32_t drawn[KELP_DRAW_WORDS]; /* the random numbers of the words */
    int at;                          /* next number; even, because each draw takes two */
    bool has_spare;                  /* normal numbers are generated in pairs */
    double spare;
} kelp_draw;

/* Seeds the generator. */
void kelp_draw_seed(kelp_draw *draw, uint32_t seed);
/* Seeds the generator from the low 32 bits of the attribute "seed", a float or an int; without the
 * attribute, from random bytes of the system. */
kelp_status *kelp_draw_begin(kelp_draw *draw, const kelp_node *node) KELP_MUST_USE;
/* Returns a number in [0, 1) with 53 random bits. */
double kelp_draw_uniform(kelp_draw *draw);
/* Draws `count` such numbers. */
void kelp_draw_uniforms(kelp_draw *draw, double *out, int64_t count);
/* Returns a number of the normal distribution with mean 0 and deviation 1. */
double kelp_draw_normal(kelp_draw *draw);
/* Returns true with that probability, which is clamped to [0, 1]; NaN is 0. */
bool kelp_draw_event(kelp_draw *draw, double probability);

#endif
