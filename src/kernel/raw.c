/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of bare functions through libffi: what the signature says, else int64 and double. */
#include "kernel/internal.h"

#include <ffi.h>

typedef union raw_value {
    void *pointer;
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint8_t boolean;
    float f32;
    double f64;
} raw_value;

static double as_number(const kelp_kernel_arg *arg) {
    return arg->kind == KELP_ARG_INT ? (double)arg->as.i : arg->as.f;
}

static ffi_type *set_scalar(kelp_dtype dtype, const kelp_kernel_arg *arg, raw_value *out) {
    switch (dtype) {
    case KELP_I32:
        out->i32 = (int32_t)arg->as.i;
        return &ffi_type_sint32;
    case KELP_U32:
        out->u32 = (uint32_t)arg->as.i;
        return &ffi_type_uint32;
    case KELP_BOOL:
        out->boolean = arg->as.i != 0;
        return &ffi_type_uint8;
    case KELP_F32:
        out->f32 = (float)as_number(arg);
        return &ffi_type_float;
    case KELP_F64:
        out->f64 = as_number(arg);
        return &ffi_type_double;
    default:
        out->i64 = arg->as.i;
        return &ffi_type_sint64;
    }
}

/* Without a signature the argument's own kind decides. */
static ffi_type *set_value(const kelp_kernel *kernel, int32_t index, const kelp_kernel_arg *arg,
                           raw_value *out) {
    if (arg->kind == KELP_ARG_TENSOR || arg->kind == KELP_ARG_STRING) {
        out->pointer =
            arg->kind == KELP_ARG_TENSOR ? (void *)arg->as.tensor : (void *)(uintptr_t)arg->as.s;
        return &ffi_type_pointer;
    }
    if (kernel->typed)
        return set_scalar(kernel->signature.params[index].dtype, arg, out);
    return set_scalar(arg->kind == KELP_ARG_FLOAT ? KELP_F64 : KELP_I64, arg, out);
}

kelp_status *kelp_kernel_call_raw(const kelp_kernel *kernel, const kelp_kernel_context *context,
                                  const kelp_kernel_arg *args, int32_t count) {
    ffi_type *types[KELP_SIGNATURE_PARAMS + 1];
    raw_value values[KELP_SIGNATURE_PARAMS + 1];
    void *addresses[KELP_SIGNATURE_PARAMS + 1];
    unsigned used = 0;
    ffi_cif cif;
    if (count > KELP_SIGNATURE_PARAMS)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "kernel '%s' is given %d arguments, more than %d",
                          kernel->name, count, KELP_SIGNATURE_PARAMS);
    if (kernel->with_context) {
        values[used].pointer = (void *)(uintptr_t)context;
        types[used++] = &ffi_type_pointer;
    }
    for (int32_t i = 0; i < count; i++, used++)
        types[used] = set_value(kernel, i, &args[i], &values[used]);
    for (unsigned i = 0; i < used; i++)
        addresses[i] = &values[i];
    if (ffi_prep_cif(&cif, FFI_DEFAULT_ABI, used, &ffi_type_void, types) != FFI_OK)
        return KELP_ERROR(KELP_INTERNAL, "kernel '%s' cannot be called with these arguments",
                          kernel->name);
    ffi_call(&cif, FFI_FN(kernel->raw), NULL, addresses);
    return NULL;
}
