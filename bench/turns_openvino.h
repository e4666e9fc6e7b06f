/* SPDX-License-Identifier: Apache-2.0 */
/* OpenVINO for bench/turns.c: one model, one request, one thread that calls. A failure ends the
 * program with its message. */
#ifndef KELP_BENCH_TURNS_OPENVINO_H_
#define KELP_BENCH_TURNS_OPENVINO_H_

#include "support/case_file.h"

/* Maps the library that KELP_OPENVINO_LIBRARY names and makes a core with `threads` threads. */
void turns_openvino_open(int threads);

/* Reads and compiles the model for f32 or bf16, and sets its inputs, which stay borrowed. */
void turns_openvino_load(const char *path, const test_case *inputs, bool bf16);
void turns_openvino_infer(void);
size_t turns_openvino_outputs(void);

/* The output of the last inference, lent until the next; NULL where it does not hold floats. */
const float *turns_openvino_output(size_t index, size_t *out_elements);

#endif
