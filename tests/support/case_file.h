/* SPDX-License-Identifier: Apache-2.0 */
/* The .bin file of an operator's case or a benchmark's model: inputs and expected outputs, in
 * the format of tests/ops/gen_cases.py. A malformed file ends the program. */
#ifndef KELP_TESTS_CASE_FILE_H_
#define KELP_TESTS_CASE_FILE_H_

#include "base/arena.h"
#include "base/fs.h"

#include <kelp/tensor.h>

typedef struct test_named {
    const char *name;
    kelp_tensor tensor;
} test_named;

/* A case; its arena holds the data, which may be borrowed from the mapped file. */
typedef struct test_case {
    kelp_arena arena;
    kelp_mapping mapping;
    double rtol, atol;
    uint32_t input_count, output_count;
    test_named *inputs, *outputs;
} test_case;

void test_case_read(test_case *out, const char *path);
void test_case_free(test_case *c);

#endif
