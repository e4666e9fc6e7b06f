/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a tensor or list is what a case expects. */
#ifndef KELP_TESTS_COMPARE_H_
#define KELP_TESTS_COMPARE_H_

#include <kelp/tensor.h>

/* false, and the first difference in words in `why`. Floats may differ by atol + rtol * |expected|;
 * NaN is the same as NaN, infinity as itself; everything else must be equal. */
bool test_same(const kelp_tensor *found, const kelp_tensor *expected, double rtol, double atol,
               char *why, size_t room);

#endif
