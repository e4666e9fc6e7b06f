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
    kelp_shape min, max;
    if (!kelp_engine_profile_shape(engine, profile, input, KELP_PROFILE_MIN, &min) ||
        !kelp_engine_profile_shape(engine, profile, input, KELP_PROFILE_MAX, &max))
        return true;
    bool inside = min.rank == tensor->rank;
    for (int32_t i = 0; inside && i < min.rank; i++)
        inside = tensor->shape[i] >= min.d[i] && tensor->shape[i] <= max.d[i];
    return inside;
}

kelp_status *kelp_engine_check_profile(const kelp_engine *engine, size_t profile, size_t input,
                                       const kelp_tensor *tensor) {
    kelp_shape min = {.rank = 0}, max = {.rank = 0};
    char min_text[160], max_text[160], found[160], other[64] = "";
    if (fits(engine, profile, input, tensor))
        return NULL;
    kelp_engine_profile_shape(engine, profile, input, KELP_PROFILE_MIN, &min);
    kelp_engine_profile_shape(engine, profile, input, KELP_PROFILE_MAX, &max);
    kelp_shape_format(min.rank, min.d, min_text, sizeof min_text);
    kelp_shape_format(max.rank, max.d, max_text, sizeof max_text);
    kelp_shape_format(tensor->rank, tensor->shape, found, sizeof found);
    for (size_t i = 0; i < engine->profile_count && *other == '\0'; i++)
        if (i != profile && fits(engine, i, input, tensor))
            snprintf(other, sizeof other, "; profile %zu accepts it", i);
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "input '%s' has the wrong shape for profile %zu: expected from %s to %s, "
                      "found %s%s",
                      engine->inputs[input].name, profile, min_text, max_text, found, other);
}
