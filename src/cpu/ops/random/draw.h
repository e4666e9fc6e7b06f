/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers of the operators: MT19937, drawn as NumPy's RandomState draws, so that a seed
 * names the same values here, in NumPy and in ONNX's reference. Source: Matsumoto and Nishimura,
 * "Mersenne Twister", ACM TOMACS 8(1), 1998; Marsaglia and Bray, "A convenient method for
 * generating normal variables", SIAM Review 6(3), 1964; NumPy's documentation of RandomState.
 * Threads: a generator is used by one at a time.
 */
#ifndef KELP_CPU_OPS_RANDOM_DRAW_H_
#define KELP_CPU_OPS_RANDOM_DRAW_H_

#include "cpu/ops/kernel.h"

#define KELP_DRAW_WORDS 624

typedef struct kelp_draw {
    uint32_t words[KELP_DRAW_WORDS];
    int at;
    bool has_spare; /* normal numbers come in pairs */
    double spare;
} kelp_draw;

void kelp_draw_seed(kelp_draw *draw, uint32_t seed);
/* From attribute "seed", a float or an int, whose low 32 bits count; without it from the system:
 * every call gives other values. */
kelp_status *kelp_draw_begin(kelp_draw *draw, const kelp_node *node) KELP_MUST_USE;
/* In [0, 1), of 53 bits. */
double kelp_draw_uniform(kelp_draw *draw);
/* Of mean 0 and deviation 1. */
double kelp_draw_normal(kelp_draw *draw);
/* true with that probability; what lies outside [0, 1] counts as its nearer end, NaN as 0. */
bool kelp_draw_event(kelp_draw *draw, double probability);

#endif
