/* SPDX-License-Identifier: Apache-2.0 */
/* Reads arrays of FP32 values from JSON, as fast as their usual forms permit. */
#ifndef KELP_FRONTENDS_TENSOR_FLOAT_READ_H_
#define KELP_FRONTENDS_TENSOR_FLOAT_READ_H_

#include <stddef.h>

/*
 * Reads numbers with commas between them, beginning at text[*inout_position], into `out`, correctly
 * rounded. Stops at the capacity and before anything but a number of at most 19 digits without an
 * exponent, which the caller must read. Returns how many numbers were read; if there are any, the
 * position is moved behind the last one.
 */
size_t kelp_v2_read_floats(const char *text, size_t length, size_t *inout_position, float *out,
                           size_t capacity);

#endif
