/* SPDX-License-Identifier: Apache-2.0 */
/* The registry's row of the provider `cpu`. */
#include "cpu/provider.h"

const kelp_provider kelp_cpu_provider = {
    .name = "cpu",
    .operators = &kelp_cpu_operators,
    .models = &kelp_cpu_models,
    .engines = &kelp_cpu_engines,
};
