/* SPDX-License-Identifier: Apache-2.0 */
/* Selection of the tables of micro-kernels for this CPU. */
#include "cpu/kernels/isa/tables.h"

#include "base/assert.h"
#include "base/checked.h"
#include "cpu/kernels/cpu_features.h"

#define ADDRESS(operation, isa) &KELP_KERNEL_TABLE_NAME(operation, isa),

/* Defines kelp_OPERATION_kernels_get; `index` is the field of kelp_cpu_features. */
#define DEFINE_GET(operation, list, index)                                                 \
    static const kelp_##operation##_kernels *const operation##_tables[] = {                \
        list(ADDRESS, operation)};                                                         \
    const kelp_##operation##_kernels *kelp_##operation##_kernels_get(void) {               \
        KELP_ASSERT(kelp_cpu_features_get()->index < (int)KELP_COUNT(operation##_tables)); \
        return operation##_tables[kelp_cpu_features_get()->index];                         \
    }
#define DEFINE_F32_GET(operation) DEFINE_GET(operation, KELP_F32_ISAS, f32)

KELP_F32_OPERATIONS(DEFINE_F32_GET)
DEFINE_GET(int8, KELP_INT8_ISAS, int8)
DEFINE_GET(nbits_int8, KELP_INT8_ISAS, int8)
DEFINE_GET(bf16, KELP_BF16_ISAS, bf16)

const kelp_math_kernels *kelp_math_kernels_at(int index) {
    return index >= 0 && index <= kelp_cpu_features_all()->f32 ? math_tables[index] : NULL;
}

const kelp_int8_kernels *kelp_int8_kernels_at(int index) {
    return index >= 0 && index <= kelp_cpu_features_all()->int8 ? int8_tables[index] : NULL;
}

const kelp_bf16_kernels *kelp_bf16_kernels_at(int index) {
    return index >= 0 && index <= kelp_cpu_features_all()->bf16 ? bf16_tables[index] : NULL;
}
