/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of loads and labels of metrics. */
#include "server/core/values.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "server/core/heap.h"

static kelp_status *set_value(kelp_parameter *parameter, const void *value, uint64_t size_bytes) {
    KELP_ASSERT(value != NULL || parameter->type == TRITONSERVER_PARAMETER_BYTES);
    switch (parameter->type) {
    case TRITONSERVER_PARAMETER_STRING:
        return kelp_strdup(kelp_process_allocator(), value, &parameter->string);
    case TRITONSERVER_PARAMETER_INT:
        parameter->i64 = *(const int64_t *)value;
        break;
    case TRITONSERVER_PARAMETER_BOOL:
        parameter->boolean = *(const bool *)value;
        break;
    case TRITONSERVER_PARAMETER_DOUBLE:
        parameter->f64 = *(const double *)value;
        break;
    case TRITONSERVER_PARAMETER_BYTES:
        parameter->bytes = value;
        parameter->size_bytes = size_bytes;
        break;
    }
    return NULL;
}

kelp_status *kelp_parameter_create(const char *name, TRITONSERVER_ParameterType type,
                                   const void *value, uint64_t size_bytes, kelp_parameter **out) {
    kelp_allocator heap = kelp_process_allocator();
    kelp_parameter *parameter = NULL;
    KELP_TRY(KELP_NEW(heap, kelp_parameter, &parameter));
    parameter->type = type;
    kelp_status *status = kelp_strdup(heap, name, &parameter->name);
    if (status == NULL)
        status = set_value(parameter, value, size_bytes);
    if (status != NULL)
        kelp_parameter_destroy(parameter);
    else
        *out = parameter;
    return status;
}

void kelp_parameter_destroy(kelp_parameter *parameter) {
    kelp_allocator heap = kelp_process_allocator();
    if (parameter == NULL)
        return;
    kelp_free_string(heap, parameter->string);
    kelp_free_string(heap, parameter->name);
    kelp_free(heap, parameter, sizeof *parameter);
}
