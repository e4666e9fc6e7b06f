/* SPDX-License-Identifier: Apache-2.0 */
/* See compare.h. */
#include "support/compare.h"

#include "tensor/convert.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_float(kelp_dtype dtype) {
    return dtype == KELP_F32 || dtype == KELP_F64 || dtype == KELP_F16 || dtype == KELP_BF16 ||
           dtype == KELP_C64 || dtype == KELP_C128;
}

/* Element `i` of a floating-point tensor; of complex ones each part counts. */
static double number_at(const kelp_tensor *tensor, int64_t i) {
    switch (tensor->dtype) {
    case KELP_F32:
    case KELP_C64:
        return (double)((const float *)tensor->data)[i];
    case KELP_F64:
    case KELP_C128:
        return ((const double *)tensor->data)[i];
    case KELP_F16:
        return (double)kelp_f16_to_f32(((const uint16_t *)tensor->data)[i]);
    default:
        return (double)kelp_bf16_to_f32(((const uint16_t *)tensor->data)[i]);
    }
}

static bool same_strings(const kelp_string *x, const kelp_string *y) {
    return x->length == y->length && (x->length == 0 || memcmp(x->data, y->data, x->length) == 0);
}

bool test_same(const kelp_tensor *found, const kelp_tensor *expected, double rtol, double atol,
               char *why, size_t room) {
    char a[256], b[256];
    kelp_shape_format(found->rank, found->shape, a, sizeof a);
    kelp_shape_format(expected->rank, expected->shape, b, sizeof b);
    if (found->dtype != expected->dtype || strcmp(a, b) != 0) {
        snprintf(why, room, "is %s%s, expected %s%s", kelp_dtype_name(found->dtype), a,
                 kelp_dtype_name(expected->dtype), b);
        return false;
    }
    if (expected->dtype == KELP_BF16) /* ONNX's runner permits two units in the last place */
        rtol = fmax(rtol, 0x1p-6);
    for (int64_t i = 0; expected->dtype == KELP_LIST && i < expected->shape[0]; i++) {
        char inner[900];
        if (!test_same((const kelp_tensor *)found->data + i,
                       (const kelp_tensor *)expected->data + i, rtol, atol, inner, sizeof inner)) {
            snprintf(why, room, "element %lld %s", (long long)i, inner);
            return false;
        }
    }
    if (expected->dtype == KELP_LIST)
        return true;
    bool complex = expected->dtype == KELP_C64 || expected->dtype == KELP_C128;
    int64_t count = kelp_tensor_elements(expected) * (complex ? 2 : 1);
    for (int64_t i = 0; i < count; i++) {
        bool good;
        snprintf(why, room, "differs at %lld", (long long)i);
        if (expected->dtype == KELP_STRING) {
            good = same_strings((const kelp_string *)found->data + i,
                                (const kelp_string *)expected->data + i);
        } else if (is_float(expected->dtype)) {
            double x = number_at(found, i), y = number_at(expected, i);
            good = x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= atol + rtol * fabs(y);
            snprintf(why, room, "at %lld is %.9g, expected %.9g", (long long)i, x, y);
        } else {
            uint32_t bits = kelp_dtype_bits(expected->dtype);
            size_t first = (size_t)i * bits / 8, size = bits < 8 ? 1 : bits / 8;
            good = memcmp((const char *)found->data + first, (const char *)expected->data + first,
                          size) == 0;
        }
        if (!good)
            return false;
    }
    return true;
}
