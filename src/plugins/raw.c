/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of bare functions. Parameters have the types of the signature; without one, numbers are
 * int64 and double. Functions return void.
 *
 * Integers and addresses of all widths are passed in 64-bit registers or stack slots (System V ABI
 * for AMD64, section 3.2.3; AAPCS64, section 6.8.2). So a function with a few such parameters is
 * called through a pointer to a function with 64-bit parameters. All other functions are called
 * through libffi, which is several times slower.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "plugins/internal.h"

#include <ffi.h>
#include <string.h>

#if defined(__x86_64__) || (defined(__aarch64__) && !defined(__APPLE__))
#define DIRECT_MAX 8u
#else
#define DIRECT_MAX 0u
#endif

/* The arguments of a call, in the order of the function's parameters. */
typedef struct raw_call {
    unsigned count;
    uint64_t floats, doubles; /* bit i: the type of value i; otherwise an integer or address */
    uint64_t values[KELP_SIGNATURE_PARAMS + 1];
    DLTensor moved[KELP_SIGNATURE_PARAMS]; /* copies without byte_offset */
} raw_call;

static void put(raw_call *call, uint64_t value) {
    KELP_ASSERT(call->count < KELP_COUNT(call->values));
    call->values[call->count++] = value;
}

static void put_float(raw_call *call, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t wide = bits;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    wide <<= 32; /* libffi reads the first four bytes */
#endif
    call->floats |= (uint64_t)1 << call->count;
    put(call, wide);
}

static void put_double(raw_call *call, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    call->doubles |= (uint64_t)1 << call->count;
    put(call, bits);
}

static void put_scalar(raw_call *call, kelp_dtype dtype, const kelp_kernel_arg *arg) {
    double number = arg->kind == KELP_ARG_INT ? (double)arg->as.i : arg->as.f;
    if (dtype == KELP_F32)
        put_float(call, (float)number);
    else if (dtype == KELP_F64)
        put_double(call, number);
    else /* extended to 64 bits: narrower types are the low bits */
        put(call, (uint64_t)arg->as.i);
}

/* Adds byte_offset to `data`: authors of bare functions usually ignore byte_offset. */
static void put_tensor(raw_call *call, const DLTensor *tensor, bool data_only, int32_t index) {
    if (data_only) {
        put(call, (uint64_t)((uintptr_t)tensor->data + tensor->byte_offset));
        return;
    }
    if (tensor->byte_offset != 0) {
        call->moved[index] = *tensor;
        call->moved[index].data = (char *)tensor->data + tensor->byte_offset;
        call->moved[index].byte_offset = 0;
        tensor = &call->moved[index];
    }
    put(call, (uint64_t)(uintptr_t)tensor);
}

static void call_direct(void *function, unsigned count, const uint64_t *v) {
    typedef uint64_t u;
    union {
        void *address;
        void (*f0)(void);
        void (*f1)(u);
        void (*f2)(u, u);
        void (*f3)(u, u, u);
        void (*f4)(u, u, u, u);
        void (*f5)(u, u, u, u, u);
        void (*f6)(u, u, u, u, u, u);
        void (*f7)(u, u, u, u, u, u, u);
        void (*f8)(u, u, u, u, u, u, u, u);
    } to = {function};
    switch (count) {
    case 0:
        to.f0();
        break;
    case 1:
        to.f1(v[0]);
        break;
    case 2:
        to.f2(v[0], v[1]);
        break;
    case 3:
        to.f3(v[0], v[1], v[2]);
        break;
    case 4:
        to.f4(v[0], v[1], v[2], v[3]);
        break;
    case 5:
        to.f5(v[0], v[1], v[2], v[3], v[4]);
        break;
    case 6:
        to.f6(v[0], v[1], v[2], v[3], v[4], v[5]);
        break;
    case 7:
        to.f7(v[0], v[1], v[2], v[3], v[4], v[5], v[6]);
        break;
    default:
        to.f8(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
        break;
    }
}

static kelp_status *call_ffi(const kelp_kernel *kernel, raw_call *call) {
    void *addresses[KELP_SIGNATURE_PARAMS + 1];
    ffi_type *types[KELP_SIGNATURE_PARAMS + 1];
    ffi_cif cif;
    for (unsigned i = 0; i < call->count; i++) {
        addresses[i] = &call->values[i];
        types[i] = (call->floats >> i & 1) != 0    ? &ffi_type_float
                   : (call->doubles >> i & 1) != 0 ? &ffi_type_double
                                                   : &ffi_type_uint64;
    }
    if (ffi_prep_cif(&cif, FFI_DEFAULT_ABI, call->count, &ffi_type_void, types) != FFI_OK)
        return KELP_ERROR(KELP_INTERNAL, "kernel '%s' cannot be called with these arguments",
                          kernel->name);
    ffi_call(&cif, FFI_FN(kernel->raw), NULL, addresses);
    return NULL;
}

kelp_status *kelp_kernel_call_raw(const kelp_kernel *kernel, const kelp_kernel_context *context,
                                  const kelp_kernel_arg *args, int32_t count) {
    raw_call call;
    KELP_ASSERT(kernel->raw != NULL);
    const kelp_signature_param *params = kernel->typed ? kernel->signature.params : NULL;
    call.count = 0;
    call.floats = call.doubles = 0;
    if (count > KELP_SIGNATURE_PARAMS)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "kernel '%s' has %d arguments: expected at most %d", kernel->name, count,
                          KELP_SIGNATURE_PARAMS);
    if (kernel->with_context)
        put(&call, (uint64_t)(uintptr_t)context);
    for (int32_t i = 0; i < count; i++) {
        const kelp_kernel_arg *arg = &args[i];
        if (arg->kind == KELP_ARG_TENSOR && arg->as.tensor != NULL && params == NULL &&
            arg->as.tensor->device.device_type != context->device.device_type)
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "kernel '%s': argument %d is on the wrong device: expected type %d, found type %d",
                kernel->name, i, (int)context->device.device_type,
                (int)arg->as.tensor->device.device_type);
        if (arg->kind == KELP_ARG_TENSOR && arg->as.tensor != NULL)
            put_tensor(&call, arg->as.tensor, params != NULL && params[i].data_only, i);
        else if (arg->kind == KELP_ARG_STRING)
            put(&call, (uint64_t)(uintptr_t)arg->as.s);
        else if (arg->kind == KELP_ARG_INT || arg->kind == KELP_ARG_FLOAT)
            put_scalar(&call,
                       params != NULL                ? params[i].dtype
                       : arg->kind == KELP_ARG_FLOAT ? KELP_F64
                                                     : KELP_I64,
                       arg);
        else if (params != NULL && params[i].optional) /* an omitted tensor */
            put(&call, 0);
        else
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "kernel '%s': argument %d is missing: expected a tensor, a number or a string",
                kernel->name, i);
    }
    if ((call.floats | call.doubles) == 0 && call.count <= DIRECT_MAX) {
        call_direct(kernel->raw, call.count, call.values);
        return NULL;
    }
    return call_ffi(kernel, &call);
}
