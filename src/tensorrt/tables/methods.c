/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of each known version, from the columns of tables/methods.inc. */
#include "tensorrt/tables/methods.h"

#include "base/checked.h"

#include <string.h>

#define TRT_ABSENT INT64_MIN

static const trt_methods versions[] = {
#define TRT_METHOD(name, cxx, rtx_1_5, rtx_1_6, rtx_1_7, enterprise_11_4) [TRT_M_##name] = rtx_1_5,
    {TRT_FLAVOR_RTX,
     1,
     5,
     "rtx-1.5",
     0,
     {
#include "tensorrt/tables/methods.inc"
     }},
#undef TRT_METHOD
#define TRT_METHOD(name, cxx, rtx_1_5, rtx_1_6, rtx_1_7, enterprise_11_4) [TRT_M_##name] = rtx_1_6,
    {TRT_FLAVOR_RTX,
     1,
     6,
     "rtx-1.6",
     1,
     {
#include "tensorrt/tables/methods.inc"
     }},
#undef TRT_METHOD
#define TRT_METHOD(name, cxx, rtx_1_5, rtx_1_6, rtx_1_7, enterprise_11_4) [TRT_M_##name] = rtx_1_7,
    {TRT_FLAVOR_RTX,
     1,
     7,
     "rtx-1.7",
     2,
     {
#include "tensorrt/tables/methods.inc"
     }},
#undef TRT_METHOD
#define TRT_METHOD(name, cxx, rtx_1_5, rtx_1_6, rtx_1_7, enterprise_11_4) \
    [TRT_M_##name] = enterprise_11_4,
    {TRT_FLAVOR_ENTERPRISE,
     11,
     4,
     "enterprise-11.4",
     3,
     {
#include "tensorrt/tables/methods.inc"
     }},
#undef TRT_METHOD
};

static const char *const names[] = {
#define TRT_METHOD(name, cxx, ...) cxx,
#include "tensorrt/tables/methods.inc"
#undef TRT_METHOD
};

static const struct {
    const char *name;
    int64_t values[KELP_COUNT(versions)];
} values[] = {
#define TRT_VALUE(name, cxx, ...) {#name, {__VA_ARGS__}},
#include "tensorrt/tables/values.inc"
#undef TRT_VALUE
};

size_t trt_methods_count(void) {
    return KELP_COUNT(versions);
}

const trt_methods *trt_methods_at(size_t index) {
    return index < KELP_COUNT(versions) ? &versions[index] : NULL;
}

const trt_methods *trt_methods_named(const char *name) {
    for (size_t i = 0; i < KELP_COUNT(versions); i++)
        if (strcmp(versions[i].name, name) == 0)
            return &versions[i];
    return NULL;
}

void trt_split_version(int32_t version, trt_flavor *out_flavor, int *out_major, int *out_minor,
                       int *out_patch) {
    if (version < 10000) { /* as versions up to 9 counted: 8601 is 8.6.1 */
        *out_major = version / 1000;
        *out_minor = version / 100 % 10;
        *out_patch = version % 100;
        *out_flavor = TRT_FLAVOR_ENTERPRISE;
        return;
    }
    *out_major = version / 10000;
    *out_minor = version / 100 % 100;
    *out_patch = version % 100;
    *out_flavor = *out_major < 8 ? TRT_FLAVOR_RTX : TRT_FLAVOR_ENTERPRISE;
}

const trt_methods *trt_methods_for(int32_t version) {
    trt_flavor flavor;
    int major, minor, patch;
    trt_split_version(version, &flavor, &major, &minor, &patch);
    for (size_t i = 0; i < KELP_COUNT(versions); i++)
        if (versions[i].flavor == flavor && versions[i].major == major &&
            versions[i].minor == minor)
            return &versions[i];
    return NULL;
}

const char *trt_flavor_name(trt_flavor flavor) {
    return flavor == TRT_FLAVOR_RTX ? "TensorRT-RTX" : "TensorRT";
}

const char *trt_method_name(trt_method method) {
    return (size_t)method < KELP_COUNT(names) ? names[method] : "?";
}

bool trt_has_value(const trt_methods *m, const char *name) {
    for (size_t i = 0; i < KELP_COUNT(values); i++)
        if (strcmp(values[i].name, name) == 0)
            return values[i].values[m->column] != TRT_ABSENT;
    return true;
}
