/* SPDX-License-Identifier: Apache-2.0 */
#include "server/scheduler/execution_times.h"

#include "base/assert.h"
#include "base/checked.h"

enum { AVERAGED_EXECUTIONS = 8 };

uint64_t kelp_execution_bytes(kelp_request *const *requests, uint32_t count) {
    uint64_t size_bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        for (size_t k = 0; k < requests[i]->input_count; k++)
            size_bytes += requests[i]->inputs[k]->data.size_bytes;
    return size_bytes;
}

unsigned kelp_execution_class(uint64_t size_bytes) {
    unsigned bits = size_bytes ? 64u - (unsigned)__builtin_clzll(size_bytes) : 0;
    return KELP_MIN(bits, KELP_EXECUTION_CLASSES - 1u);
}

void kelp_execution_times_add(kelp_execution_times *times, unsigned class_index,
                              uint64_t duration_ns, uint64_t max_ns) {
    KELP_ASSERT(class_index < KELP_EXECUTION_CLASSES);
    kelp_execution_time *time = &times->classes[class_index];
    uint64_t counted_ns = KELP_MIN(duration_ns, max_ns);
    if (time->executions < 2)
        time->executions++;
    else if (counted_ns >= time->average_ns)
        counted_ns = time->average_ns + (counted_ns - time->average_ns) / AVERAGED_EXECUTIONS;
    else
        counted_ns = time->average_ns - (time->average_ns - counted_ns) / AVERAGED_EXECUTIONS;
    time->average_ns = counted_ns;
}

uint64_t kelp_execution_times_get(const kelp_execution_times *times, unsigned class_index) {
    KELP_ASSERT(class_index < KELP_EXECUTION_CLASSES);
    for (unsigned k = class_index; k < KELP_EXECUTION_CLASSES; k++)
        if (times->classes[k].executions >= 2)
            return times->classes[k].average_ns;
    return KELP_NEVER_NS;
}
