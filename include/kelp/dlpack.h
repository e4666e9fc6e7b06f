/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/dlpack.h: an independent declaration of the DLPack ABI, version 1.1.
 *
 * Names, values and layouts are those of DLPack. The include guard is DLPack's own, so that a
 * program that includes both headers gets whichever comes first.
 *
 * Source: specification "C API" of DLPack (github.com/dmlc/dlpack).
 */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

#include <stddef.h>
#include <stdint.h>

/* Version of the ABI. */
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the ABI that a tensor was exported with. */
typedef struct {
    uint32_t major; /* layouts of different major versions are incompatible */
    uint32_t minor; /* a higher minor version adds enum values */
} DLPackVersion;

/* Kind of device. */
#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
    kDLCPU = 1,          /* host memory */
    kDLCUDA = 2,         /* CUDA device memory */
    kDLCUDAHost = 3,     /* page-locked host memory of CUDA */
    kDLOpenCL = 4,       /* OpenCL buffer */
    kDLVulkan = 7,       /* Vulkan buffer */
    kDLMetal = 8,        /* Metal buffer */
    kDLVPI = 9,          /* Verilog simulator memory */
    kDLROCM = 10,        /* ROCm device memory */
    kDLROCMHost = 11,    /* page-locked host memory of ROCm */
    kDLExtDev = 12,      /* reserved for extensions */
    kDLCUDAManaged = 13, /* managed memory of CUDA */
    kDLOneAPI = 14,      /* oneAPI unified shared memory */
    kDLWebGPU = 15,      /* WebGPU buffer */
    kDLHexagon = 16,     /* Hexagon DSP */
    kDLMAIA = 17,        /* Microsoft MAIA */
} DLDeviceType;

/* A device. */
typedef struct {
    DLDeviceType device_type; /* kind of device */
    int32_t device_id;        /* index of the device; 0 for host memory */
} DLDevice;

/* Kind of number. The name of a small float lists exponent and mantissa bits and its special
 * values: "fn" has no infinity, "uz" has no negative zero. */
typedef enum {
    kDLInt = 0U,                /* signed integer */
    kDLUInt = 1U,               /* unsigned integer */
    kDLFloat = 2U,              /* IEEE 754 float */
    kDLOpaqueHandle = 3U,       /* opaque handle */
    kDLBfloat = 4U,             /* bfloat16 */
    kDLComplex = 5U,            /* complex number: real and imaginary part */
    kDLBool = 6U,               /* boolean */
    kDLFloat8_e3m4 = 7U,        /* 8-bit float */
    kDLFloat8_e4m3 = 8U,        /* 8-bit float */
    kDLFloat8_e4m3b11fnuz = 9U, /* 8-bit float with exponent bias 11 */
    kDLFloat8_e4m3fn = 10U,     /* 8-bit float */
    kDLFloat8_e4m3fnuz = 11U,   /* 8-bit float */
    kDLFloat8_e5m2 = 12U,       /* 8-bit float */
    kDLFloat8_e5m2fnuz = 13U,   /* 8-bit float */
    kDLFloat8_e8m0fnu = 14U,    /* power of two */
    kDLFloat6_e2m3fn = 15U,     /* 6-bit float */
    kDLFloat6_e3m2fn = 16U,     /* 6-bit float */
    kDLFloat4_e2m1fn = 17U,     /* 4-bit float */
} DLDataTypeCode;

/* Element type. Elements of less than 8 bits are packed, the first one in the lowest bits. */
typedef struct {
    uint8_t code;   /* a DLDataTypeCode */
    uint8_t bits;   /* bits of one lane */
    uint16_t lanes; /* lanes of a vector type; 1 for a scalar type */
} DLDataType;

/* Descriptor of a tensor. Owns nothing. */
typedef struct {
    void *data;           /* base address; the first element is byte_offset bytes after it */
    DLDevice device;      /* device of the memory */
    int32_t ndim;         /* number of dimensions */
    DLDataType dtype;     /* element type */
    int64_t *shape;       /* `ndim` dimensions */
    int64_t *strides;     /* `ndim` strides in elements; NULL: compact and row-major */
    uint64_t byte_offset; /* offset of the first element in bytes */
} DLTensor;

/* A tensor with an owner, as before version 1.0. Python capsule name "dltensor". */
typedef struct DLManagedTensor {
    DLTensor dl_tensor; /* the tensor */
    void *manager_ctx;  /* private to the producer */
    /* Frees the tensor. The consumer calls it once; NULL: nothing to free. */
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

/* Flags of DLManagedTensorVersioned: the elements must not be written; the elements were copied for
 * the consumer; sub-byte elements take a whole byte each. */
#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (1UL << 2UL)

/* A tensor with an owner, since version 1.0. Python capsule name "dltensor_versioned". */
typedef struct DLManagedTensorVersioned {
    DLPackVersion version; /* version of the producer; check `major` before reading the rest */
    void *manager_ctx;     /* private to the producer */
    /* Frees the tensor. The consumer calls it once; NULL: nothing to free. */
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;     /* bits of DLPACK_FLAG_BITMASK_* */
    DLTensor dl_tensor; /* the tensor */
} DLManagedTensorVersioned;

#ifdef __cplusplus
}
#endif
#endif
