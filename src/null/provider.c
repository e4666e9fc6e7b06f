/* SPDX-License-Identifier: Apache-2.0 */
/* The row of the provider `null`. */
#include "null/provider.h"

const kelp_provider kelp_null_provider = {
    .name = "null",
    .operators = &kelp_null_operators,
    .models = &kelp_null_models,
    .engines = &kelp_null_engines,
};
