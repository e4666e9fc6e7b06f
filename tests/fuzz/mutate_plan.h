/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of the cpu with something changed in them. */
#ifndef KELP_TESTS_FUZZ_MUTATE_PLAN_H_
#define KELP_TESTS_FUZZ_MUTATE_PLAN_H_

#include <stddef.h>
#include <stdint.h>

/* Changes a plan in place, the same way for the same seed: bits, bytes and numbers, in any of its
 * sections, its table or its head, or its end is cut off. As a rule its hashes are made right again
 * so that what was changed is looked at. Gives its length, at most `size_bytes`. */
size_t mutate_plan(uint64_t seed, char *plan, size_t size_bytes);

#endif
