/* SPDX-License-Identifier: Apache-2.0 */
/* Transposition of a matrix of elements of 1, 2, 4 or 8 bytes. */
#ifndef KELP_CPU_OPS_TRANSPOSE_H_
#define KELP_CPU_OPS_TRANSPOSE_H_

#include <stddef.h>
#include <stdint.h>

/* to[c * to_step + r] = from[r * from_step + c], r < rows, c < columns. Steps are in elements; data
 * may have any address. Reads and writes nothing else. Thread-safe. */
void kelp_ops_transpose(size_t element_bytes, void *to, int64_t to_step, const void *from,
                        int64_t from_step, int64_t rows, int64_t columns);

#endif
