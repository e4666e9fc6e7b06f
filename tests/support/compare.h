/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison of a tensor or list with the expected one. */
#ifndef KELP_TESTS_COMPARE_H_
#define KELP_TESTS_COMPARE_H_

#include <kelp/tensor.h>

/* Returns false, and a text with the first difference in `why`. Floats may differ by atol + rtol
 * * |expected|; NaN equals NaN, and infinity equals itself. Other elements must be equal. */
bool test_same(const kelp_tensor *found, const kelp_tensor *expected, double rtol, double atol,
               char *why, size_t room);

#endif
