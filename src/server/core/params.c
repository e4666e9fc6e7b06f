/* SPDX-License-Identifier: Apache-2.0 */
/* Named parameters of a request or a response. */
#include "server/core/params.h"

#include "base/assert.h"

void kelp_params_clear(kelp_params *params) {
    params->count = 0;
}

void kelp_params_deinit(kelp_allocator allocator, kelp_params *params) {
    for (size_t i = 0; i < params->capacity; i++) {
        kelp_text_deinit(allocator, &params->items[i].name);
        kelp_text_deinit(allocator, &params->items[i].string);
    }
    kelp_free(allocator, params->items, params->capacity * sizeof *params->items);
    *params = (kelp_params){0};
}

kelp_status *kelp_params_add(kelp_allocator allocator, kelp_params *params, const char *name,
                             TRITONSERVER_ParameterType type, kelp_param **out) {
    KELP_ASSERT(params->count <= params->capacity);
    for (size_t i = 0; i < params->count; i++)
        if (strcmp(kelp_text_get(&params->items[i].name), name) == 0)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "parameter '%s' already exists", name);
    if (params->count >= KELP_PARAMS_MAX)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "cannot add parameter '%s': expected at most %d parameters", name,
                          KELP_PARAMS_MAX);
    size_t old = params->capacity;
    KELP_TRY(kelp_grow(allocator, (void **)&params->items, &params->capacity, params->count + 1,
                       sizeof *params->items));
    if (params->capacity > old)
        memset(&params->items[old], 0, (params->capacity - old) * sizeof *params->items);
    kelp_param *param = &params->items[params->count];
    KELP_TRY(kelp_text_set(allocator, &param->name, name));
    kelp_text_clear(&param->string); /* of an earlier use */
    param->type = type;
    params->count++;
    *out = param;
    return NULL;
}

kelp_status *kelp_params_add_string(kelp_allocator allocator, kelp_params *params, const char *name,
                                    const char *value) {
    kelp_param *param = NULL;
    KELP_TRY(kelp_params_add(allocator, params, name, TRITONSERVER_PARAMETER_STRING, &param));
    return kelp_text_set(allocator, &param->string, value);
}

const void *kelp_param_value(const kelp_param *param) {
    KELP_ASSERT((unsigned)param->type <= TRITONSERVER_PARAMETER_DOUBLE);
    switch (param->type) {
    case TRITONSERVER_PARAMETER_STRING:
        return kelp_text_get(&param->string);
    case TRITONSERVER_PARAMETER_INT:
        return &param->i64;
    case TRITONSERVER_PARAMETER_BOOL:
        return &param->boolean;
    case TRITONSERVER_PARAMETER_DOUBLE:
        return &param->f64;
    case TRITONSERVER_PARAMETER_BYTES:
        break;
    }
    return NULL;
}
