/* SPDX-License-Identifier: Apache-2.0 */
/* Names and sizes of the enumerations of the C API. */
#include "base/checked.h"

#include <string.h>
#include <triton/core/tritonserver.h>

static const struct {
    const char *name;
    uint32_t size_bytes;
} datatypes[] = {
#define KELP_TYPE_ROW(triton, config, kelp, kind, size_bytes) \
    [TRITONSERVER_TYPE_##triton] = {#triton, size_bytes},
#include "base/triton/types.inc"
};

const char *TRITONSERVER_DataTypeString(TRITONSERVER_DataType datatype) {
    size_t index = (size_t)datatype;
    return index > 0 && index < KELP_COUNT(datatypes) ? datatypes[index].name : "<invalid>";
}

TRITONSERVER_DataType TRITONSERVER_StringToDataType(const char *dtype) {
    for (size_t i = 1; dtype != NULL && i < KELP_COUNT(datatypes); i++)
        if (strcmp(datatypes[i].name, dtype) == 0)
            return (TRITONSERVER_DataType)i;
    return TRITONSERVER_TYPE_INVALID;
}

uint32_t TRITONSERVER_DataTypeByteSize(TRITONSERVER_DataType datatype) {
    size_t index = (size_t)datatype;
    return index < KELP_COUNT(datatypes) ? datatypes[index].size_bytes : 0;
}

const char *TRITONSERVER_MemoryTypeString(TRITONSERVER_MemoryType memtype) {
    switch (memtype) {
    case TRITONSERVER_MEMORY_CPU:
        return "CPU";
    case TRITONSERVER_MEMORY_CPU_PINNED:
        return "CPU_PINNED";
    case TRITONSERVER_MEMORY_GPU:
        return "GPU";
    }
    return "<invalid>";
}

const char *TRITONSERVER_ParameterTypeString(TRITONSERVER_ParameterType paramtype) {
    switch (paramtype) {
    case TRITONSERVER_PARAMETER_STRING:
        return "STRING";
    case TRITONSERVER_PARAMETER_INT:
        return "INT";
    case TRITONSERVER_PARAMETER_BOOL:
        return "BOOL";
    case TRITONSERVER_PARAMETER_DOUBLE:
        return "DOUBLE";
    case TRITONSERVER_PARAMETER_BYTES:
        return "BYTES";
    }
    return "<invalid>";
}

const char *TRITONSERVER_InstanceGroupKindString(TRITONSERVER_InstanceGroupKind kind) {
    switch (kind) {
    case TRITONSERVER_INSTANCEGROUPKIND_AUTO:
        return "AUTO";
    case TRITONSERVER_INSTANCEGROUPKIND_CPU:
        return "CPU";
    case TRITONSERVER_INSTANCEGROUPKIND_GPU:
        return "GPU";
    case TRITONSERVER_INSTANCEGROUPKIND_MODEL:
        return "MODEL";
    }
    return "<invalid>";
}

const char *TRITONSERVER_InferenceTraceLevelString(TRITONSERVER_InferenceTraceLevel level) {
    switch (level) {
    case TRITONSERVER_TRACE_LEVEL_DISABLED:
        return "DISABLED";
    case TRITONSERVER_TRACE_LEVEL_MIN:
        return "MIN";
    case TRITONSERVER_TRACE_LEVEL_MAX:
        return "MAX";
    case TRITONSERVER_TRACE_LEVEL_TIMESTAMPS:
        return "TIMESTAMPS";
    case TRITONSERVER_TRACE_LEVEL_TENSORS:
        return "TENSORS";
    }
    return "<unknown>";
}

const char *
TRITONSERVER_InferenceTraceActivityString(TRITONSERVER_InferenceTraceActivity activity) {
    static const char *const names[] = {
        "REQUEST_START",        "QUEUE_START",           "COMPUTE_START",   "COMPUTE_INPUT_END",
        "COMPUTE_OUTPUT_START", "COMPUTE_END",           "REQUEST_END",     "TENSOR_QUEUE_INPUT",
        "TENSOR_BACKEND_INPUT", "TENSOR_BACKEND_OUTPUT", "CUSTOM_ACTIVITY",
    };
    size_t index = (size_t)activity;
    return index < KELP_COUNT(names) ? names[index] : "<unknown>";
}
