/* SPDX-License-Identifier: Apache-2.0 */
/* Optimization profiles: the shapes that an engine was built for. */
#include "engine/engine.h"

#include <stdio.h>

size_t kelp_engine_profile_count(const kelp_engine *engine) {
    return engine->profile_count;
}

bool kelp_engine_profile_shape(const kelp_engine *engine, size_t profile, size_t input, int which,
                               kelp_shape *out) {
    if (profile >= engine->profile_count || input >= engine->input_count || which < 0 ||
        which > 2 || engine->profile_shapes == NULL)
        return false;
    *out = engine->profile_shapes[profile * engine->input_count + input][which];
    return out->rank >= 0;
}

static bool fits(const kelp_engine *engine, size_t profile, size_t input,
                 const kelp_tensor *tensor) {
    kelp_shape low, high;
    if (!kelp_engine_profile_shape(engine, profile, input, KELP_PROFILE_MIN, &low) ||
        !kelp_engine_profile_shape(engine, profile, input, KELP_PROFILE_MAX, &high))
        return true;
    bool inside = low.rank == tensor->rank;
    for (int32_t i = 0; inside && i < low.rank; i++)
        inside = tensor->shape[i] >= low.d[i] && tensor->shape[i] <= high.d[i];
    return inside;
}

kelp_status *kelp_engine_check_profile(const kelp_engine *engine, size_t profile, size_t input,
                                       const kelp_tensor *tensor) {
    kelp_shape low = {.rank = 0}, high = {.rank = 0};
    char least[160], most[160], found[160], other[64] = "";
    if (fits(engine, profile, input, tensor))
        return NULL;
    kelp_engine_profile_shape(engine, profile, input, KELP_PROFILE_MIN, &low);
    kelp_engine_profile_shape(engine, profile, input, KELP_PROFILE_MAX, &high);
    kelp_shape_format(low.rank, low.d, least, sizeof least);
    kelp_shape_format(high.rank, high.d, most, sizeof most);
    kelp_shape_format(tensor->rank, tensor->shape, found, sizeof found);
    for (size_t i = 0; i < engine->profile_count && *other == '\0'; i++)
        if (i != profile && fits(engine, i, input, tensor))
            snprintf(other, sizeof other, "; profile %zu takes it", i);
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "input '%s' has the wrong shape for profile %zu: expected from %s to %s, "
                      "found %s%s",
                      engine->inputs[input].name, profile, least, most, found, other);
}
