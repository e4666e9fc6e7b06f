/* SPDX-License-Identifier: Apache-2.0 */
/* OpenVINO for bench/turns.c and bench/sweep.c: one model at a time, one request, one thread that
 * calls. Functions that can fail return NULL, or a message that is valid until the next call. */
#ifndef KELP_BENCH_TURNS_OPENVINO_H_
#define KELP_BENCH_TURNS_OPENVINO_H_

#include "support/case_file.h"

/* Maps the library that KELP_OPENVINO_LIBRARY names and makes a core with `threads` threads. Ends
 * the program with a message if it fails. */
void turns_openvino_open(int threads);

/* Reads and compiles the model for f32 or bf16, and sets its inputs, which stay borrowed. */
const char *turns_openvino_load(const char *path, const test_case *inputs, bool bf16);
void turns_openvino_unload(void);
const char *turns_openvino_infer(void);
size_t turns_openvino_outputs(void);

/* Describes an output of the last inference; its data is lent until the next. */
const char *turns_openvino_output(size_t index, kelp_tensor *out);

#endif
