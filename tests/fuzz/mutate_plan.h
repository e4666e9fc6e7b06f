/* SPDX-License-Identifier: Apache-2.0 */
/* Modified plan files of the provider cpu. */
#ifndef KELP_TESTS_FUZZ_MUTATE_PLAN_H_
#define KELP_TESTS_FUZZ_MUTATE_PLAN_H_

#include <stddef.h>
#include <stdint.h>

/* Modifies a plan in place, reproducibly for a seed: changes bits, bytes and numbers in its
 * sections, its table or its head, or truncates it. Usually corrects the hashes, so that the
 * modified data is read. Returns the length, at most `size_bytes`. */
size_t mutate_plan(uint64_t seed, char *plan, size_t size_bytes);

#endif
