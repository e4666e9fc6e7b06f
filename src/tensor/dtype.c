/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the element types: widths and names. */
#include <kelp/tensor.h>

#include <string.h>

typedef struct dtype_info {
    uint32_t bits;
    const char *name;
    const char *onnx;
    uint8_t dl_code;
    bool has_dl;
} dtype_info;

/* The DLPack code and width of each type; strings have none. */
static const dtype_info infos[KELP_DTYPE_COUNT] = {
    [KELP_DTYPE_INVALID] = {0, "invalid", "UNDEFINED", 0, false},
    [KELP_F32] = {32, "float32", "FLOAT", kDLFloat, true},
    [KELP_U8] = {8, "uint8", "UINT8", kDLUInt, true},
    [KELP_I8] = {8, "int8", "INT8", kDLInt, true},
    [KELP_U16] = {16, "uint16", "UINT16", kDLUInt, true},
    [KELP_I16] = {16, "int16", "INT16", kDLInt, true},
    [KELP_I32] = {32, "int32", "INT32", kDLInt, true},
    [KELP_I64] = {64, "int64", "INT64", kDLInt, true},
    [KELP_STRING] = {8 * sizeof(kelp_string), "string", "STRING", 0, false},
    [KELP_BOOL] = {8, "bool", "BOOL", kDLBool, true},
    [KELP_F16] = {16, "float16", "FLOAT16", kDLFloat, true},
    [KELP_F64] = {64, "float64", "DOUBLE", kDLFloat, true},
    [KELP_U32] = {32, "uint32", "UINT32", kDLUInt, true},
    [KELP_U64] = {64, "uint64", "UINT64", kDLUInt, true},
    [KELP_C64] = {64, "complex64", "COMPLEX64", kDLComplex, true},
    [KELP_C128] = {128, "complex128", "COMPLEX128", kDLComplex, true},
    [KELP_BF16] = {16, "bfloat16", "BFLOAT16", kDLBfloat, true},
    [KELP_F8E4M3FN] = {8, "float8_e4m3fn", "FLOAT8E4M3FN", kDLFloat8_e4m3fn, true},
    [KELP_F8E4M3FNUZ] = {8, "float8_e4m3fnuz", "FLOAT8E4M3FNUZ", kDLFloat8_e4m3fnuz, true},
    [KELP_F8E5M2] = {8, "float8_e5m2", "FLOAT8E5M2", kDLFloat8_e5m2, true},
    [KELP_F8E5M2FNUZ] = {8, "float8_e5m2fnuz", "FLOAT8E5M2FNUZ", kDLFloat8_e5m2fnuz, true},
    [KELP_U4] = {4, "uint4", "UINT4", kDLUInt, true},
    [KELP_I4] = {4, "int4", "INT4", kDLInt, true},
    [KELP_F4E2M1] = {4, "float4_e2m1", "FLOAT4E2M1", kDLFloat4_e2m1fn, true},
    [KELP_F8E8M0] = {8, "float8_e8m0", "FLOAT8E8M0", kDLFloat8_e8m0fnu, true},
    [KELP_U2] = {2, "uint2", "UINT2", kDLUInt, true},
    [KELP_I2] = {2, "int2", "INT2", kDLInt, true},
    [KELP_F6E2M3] = {8, "float6_e2m3", "FLOAT6E2M3", kDLFloat6_e2m3fn, false},
    [KELP_F6E3M2] = {8, "float6_e3m2", "FLOAT6E3M2", kDLFloat6_e3m2fn, false},
};

/* NULL: Triton lacks the type. */
static const char *const triton_names[KELP_DTYPE_COUNT] = {
#define KELP_TYPE_ROW(triton, config, kelp, kind, size_bytes) [KELP_##kelp] = #triton,
#include "base/triton/types.inc"
};

static const dtype_info list_info = {8 * sizeof(kelp_tensor), "list", "", 0, false};

static const dtype_info *info_of(kelp_dtype dtype) {
    unsigned index = (unsigned)dtype;
    if (dtype == KELP_LIST)
        return &list_info;
    return &infos[index < KELP_DTYPE_COUNT ? index : 0];
}

uint32_t kelp_dtype_bits(kelp_dtype dtype) {
    return info_of(dtype)->bits;
}

const char *kelp_dtype_name(kelp_dtype dtype) {
    return info_of(dtype)->name;
}

const char *kelp_dtype_triton_name(kelp_dtype dtype) {
    return (unsigned)dtype < KELP_DTYPE_COUNT ? triton_names[dtype] : NULL;
}

kelp_dtype kelp_dtype_parse(const char *name) {
    if (name == NULL)
        return KELP_DTYPE_INVALID;
    if (strncmp(name, "TYPE_", 5) == 0)
        name += 5;
    for (int i = 1; i < KELP_DTYPE_COUNT; i++) {
        const dtype_info *info = &infos[i];
        if (strcmp(name, info->name) == 0 || strcmp(name, info->onnx) == 0 ||
            (triton_names[i] != NULL && strcmp(name, triton_names[i]) == 0))
            return (kelp_dtype)i;
    }
    return KELP_DTYPE_INVALID;
}

kelp_status *kelp_tensor_to_dl(const kelp_tensor *tensor, DLTensor *out) {
    const dtype_info *info = info_of(tensor->dtype);
    if (!info->has_dl)
        return KELP_ERROR(KELP_UNIMPLEMENTED, "tensors of type %s have no DLPack form", info->name);
    union { /* DLPack lacks const; consumers only read these */
        const int64_t *from;
        int64_t *to;
    } shape = {tensor->shape}, strides = {tensor->strides};
    *out = (DLTensor){.data = tensor->data,
                      .device = tensor->device,
                      .ndim = tensor->rank,
                      .dtype = {info->dl_code, (uint8_t)info->bits, 1},
                      .shape = shape.to,
                      .strides = strides.to,
                      .byte_offset = 0};
    return NULL;
}

static kelp_dtype dtype_from_dl(DLDataType type) {
    if (type.lanes != 1)
        return KELP_DTYPE_INVALID;
    for (int i = 1; i < KELP_DTYPE_COUNT; i++)
        if (infos[i].has_dl && infos[i].dl_code == type.code && infos[i].bits == type.bits)
            return (kelp_dtype)i;
    return KELP_DTYPE_INVALID;
}

kelp_status *kelp_tensor_from_dl(const DLTensor *dl, kelp_tensor *out) {
    kelp_dtype dtype = dtype_from_dl(dl->dtype);
    if (dtype == KELP_DTYPE_INVALID)
        return KELP_ERROR(KELP_UNIMPLEMENTED, "unsupported DLPack type: code %u, %u bits, %u lanes",
                          dl->dtype.code, dl->dtype.bits, dl->dtype.lanes);
    KELP_TRY(kelp_tensor_init(out, dtype, dl->ndim, dl->shape, NULL));
    out->data = dl->data == NULL ? NULL : (char *)dl->data + dl->byte_offset;
    out->device = dl->device;
    for (int32_t i = 0; dl->strides != NULL && i < dl->ndim; i++)
        out->strides[i] = dl->strides[i];
    return NULL;
}
