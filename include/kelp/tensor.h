/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/tensor.h: element types and tensor descriptors.
 *
 * A kelp_tensor describes memory that it does not own: copying the struct copies no elements.
 * kelp_tensor_to_dl and kelp_tensor_from_dl convert between it and DLPack without copying
 * elements. String tensors (KELP_STRING) are arrays of kelp_string and have no DLPack form.
 *
 * A tensor is compact if it is row-major and has no gaps between elements. A dimension of -1 in a
 * shape is dynamic: its size is known only at run time.
 *
 * Thread safety: functions have no global state. They are thread-safe if their outputs differ.
 */
#ifndef KELP_TENSOR_H_
#define KELP_TENSOR_H_

#include <kelp/allocator.h>
#include <kelp/dlpack.h>
#include <kelp/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Element types ---- */

/* Element type. Values below KELP_LIST are those of onnx.TensorProto.DataType. Source: onnx.proto,
 * IR version 14. */
typedef enum kelp_dtype {
    KELP_DTYPE_INVALID = 0, /* no type, or type not known */
    KELP_F32 = 1,           /* IEEE 754 single precision */
    KELP_U8 = 2,            /* unsigned 8-bit integer */
    KELP_I8 = 3,            /* signed 8-bit integer */
    KELP_U16 = 4,           /* unsigned 16-bit integer */
    KELP_I16 = 5,           /* signed 16-bit integer */
    KELP_I32 = 6,           /* signed 32-bit integer */
    KELP_I64 = 7,           /* signed 64-bit integer */
    KELP_STRING = 8,        /* byte string, stored as a kelp_string */
    KELP_BOOL = 9,          /* one byte, 0 or 1 */
    KELP_F16 = 10,          /* IEEE 754 half precision */
    KELP_F64 = 11,          /* IEEE 754 double precision */
    KELP_U32 = 12,          /* unsigned 32-bit integer */
    KELP_U64 = 13,          /* unsigned 64-bit integer */
    KELP_C64 = 14,          /* complex number of two float32 */
    KELP_C128 = 15,         /* complex number of two float64 */
    KELP_BF16 = 16,         /* bfloat16: the upper half of a float32 */
    KELP_F8E4M3FN = 17,     /* 8-bit float, 4 exponent bits; no infinity */
    KELP_F8E4M3FNUZ = 18,   /* as E4M3FN, but one zero and one NaN */
    KELP_F8E5M2 = 19,       /* 8-bit float, 5 exponent bits; IEEE special values */
    KELP_F8E5M2FNUZ = 20,   /* 8-bit float, 5 exponent bits; no infinity, one zero, one NaN */
    KELP_U4 = 21,           /* unsigned 4-bit integer, packed */
    KELP_I4 = 22,           /* signed 4-bit integer, packed */
    KELP_F4E2M1 = 23,       /* 4-bit float, packed */
    KELP_F8E8M0 = 24,       /* power of two, 8 exponent bits, no sign */
    KELP_U2 = 25,           /* unsigned 2-bit integer, packed */
    KELP_I2 = 26,           /* signed 2-bit integer, packed */
    KELP_F6E2M3 = 27,       /* 6-bit float, one per byte */
    KELP_F6E3M2 = 28,       /* 6-bit float, one per byte */
    KELP_LIST = 64          /* Kelp's own: each element is a kelp_tensor, see "Lists" below */
} kelp_dtype;

/* Number of ONNX's element types, including KELP_DTYPE_INVALID and excluding KELP_LIST. */
#define KELP_DTYPE_COUNT 29

/* Returns the storage size of one element in bits, or 0 for an unknown type. Elements of less than
 * 8 bits are packed without padding between rows; the first element is in the lowest bits. The
 * exception are 6-bit floats, which take 8 bits each. Returns the size of kelp_string for
 * KELP_STRING and of kelp_tensor for KELP_LIST. */
KELP_API uint32_t kelp_dtype_bits(kelp_dtype dtype);

/* Returns a static name such as "float32", "int64" or "string"; "invalid" for an unknown type. */
KELP_API const char *kelp_dtype_name(kelp_dtype dtype);

/* Returns the type of a name, or KELP_DTYPE_INVALID for an unknown name or NULL. Accepts the names
 * of kelp_dtype_name ("float32"), of Triton ("FP32", "BYTES", with or without "TYPE_") and of ONNX
 * ("FLOAT", "STRING"). Case matters. */
KELP_API kelp_dtype kelp_dtype_parse(const char *name);

/* Returns Triton's name ("FP32", "BYTES", …), static, or NULL if Triton has no such type. */
KELP_API const char *kelp_dtype_triton_name(kelp_dtype dtype);

/* Element of a KELP_STRING tensor: bytes that need not be terminated and may contain NUL. The
 * function that fills the tensor documents who owns the bytes. */
typedef struct kelp_string {
    const char *data; /* first byte; may be NULL if `length` is 0 */
    size_t length;    /* in bytes */
} kelp_string;

/* ---- Tensors ---- */

/* Kind of memory that a model prefers. */
typedef enum kelp_memory_class {
    KELP_MEMORY_HOST = 0,   /* host memory */
    KELP_MEMORY_PINNED = 1, /* page-locked host memory */
    KELP_MEMORY_DEVICE = 2, /* device memory */
    KELP_MEMORY_SHARED = 3  /* memory that host and device both address */
} kelp_memory_class;

/* Maximum number of dimensions of a tensor. */
#define KELP_MAX_RANK 16

/* Descriptor of a tensor. Owns nothing.
 *
 * Lists: an ONNX sequence, optional or map is a tensor of KELP_LIST whose elements are kelp_tensor
 * descriptors. Its shape identifies the kind:
 *   sequence of n elements   shape [n]
 *   optional                 shape [0,1] (empty) or [1,1]
 *   map                      shape [2,1,1]: a vector of keys and a vector of values
 * Elements must be compact and in host memory; they may be lists themselves. In an output of a
 * context, the elements' data is valid until the next invoke. Lists have no DLPack form, and no
 * server protocol transports them. */
typedef struct kelp_tensor {
    void *data;                     /* first element; may be NULL if the tensor has no elements */
    kelp_dtype dtype;               /* element type */
    int32_t rank;                   /* number of dimensions, 0 (a scalar) to KELP_MAX_RANK */
    int64_t shape[KELP_MAX_RANK];   /* `rank` dimensions */
    int64_t strides[KELP_MAX_RANK]; /* `rank` strides, in elements, always set */
    DLDevice device;                /* where `data` is; zeroed means host memory */
    uint32_t flags;                 /* bits of KELP_TENSOR_* */
} kelp_tensor;

/* Flag of kelp_tensor: the elements must not be written. */
#define KELP_TENSOR_READ_ONLY 1u

/* A shape on its own. */
typedef struct kelp_shape {
    int32_t rank; /* number of dimensions; -1 where a function documents it as "unknown" */
    int64_t d[KELP_MAX_RANK]; /* `rank` dimensions */
} kelp_shape;

/* Constant data for a layer or a refit, which replaces weights of an engine. The data is compact
 * and borrowed. A zeroed struct means "no weights". */
typedef struct kelp_weights {
    kelp_dtype dtype; /* element type */
    const void *data; /* `count` elements */
    int64_t count;    /* number of elements */
    const char *name; /* identifies the weights in a refit; may be NULL */
} kelp_weights;

/* Fills in a compact descriptor over `data` (borrowed, may be NULL) in host memory. Fails with
 * INVALID_ARGUMENT if the rank is not 0 to KELP_MAX_RANK, a dimension is negative, the type is
 * unknown or the size in bytes exceeds size_t. */
KELP_API kelp_status *kelp_tensor_init(kelp_tensor *out, kelp_dtype dtype, int32_t rank,
                                       const int64_t *shape, void *data) KELP_MUST_USE;

/* Returns the number of elements; 1 for rank 0. The descriptor must be valid: the product of its
 * dimensions is not checked for overflow. */
KELP_API int64_t kelp_tensor_elements(const kelp_tensor *tensor);

/* Returns the size in bytes of a compact tensor of this type and shape. For KELP_STRING, this is
 * the size of the kelp_string array without the bytes that it points to. */
KELP_API size_t kelp_tensor_bytes(const kelp_tensor *tensor);

/* Computes the size in bytes of `elements` elements. Returns false, without writing, if the size
 * overflows, `elements` is negative or the type is unknown. */
KELP_API bool kelp_dtype_bytes(kelp_dtype dtype, int64_t elements, size_t *out_bytes);

/* Computes the product of the dimensions. Returns false, without writing, if it overflows or a
 * dimension is negative. */
KELP_API bool kelp_shape_elements(int32_t rank, const int64_t *shape, int64_t *out_elements);

/* Returns true if the tensor is compact. A tensor without elements is compact. */
KELP_API bool kelp_tensor_is_compact(const kelp_tensor *tensor);

/* Describes the same memory as a DLTensor. `out` points to the shape and strides inside `tensor`,
 * which must outlive it. Fails with UNIMPLEMENTED for types without a DLPack form: strings, lists
 * and 6-bit floats. */
KELP_API kelp_status *kelp_tensor_to_dl(const kelp_tensor *tensor, DLTensor *out) KELP_MUST_USE;

/* Describes the memory of a DLTensor, whose strides may be arbitrary. `byte_offset` is added to
 * `data`. Fails with UNIMPLEMENTED for more than one lane and for element types that Kelp does not
 * support, and with INVALID_ARGUMENT if kelp_tensor_init rejects the shape. */
KELP_API kelp_status *kelp_tensor_from_dl(const DLTensor *dl, kelp_tensor *out) KELP_MUST_USE;

/* Writes a shape as "[2,3,-1]", or "of unknown rank" for a negative rank. Truncates to `capacity`
 * bytes, including the terminating NUL. Returns the length of the whole text without the NUL, as
 * snprintf does. */
KELP_API size_t kelp_shape_format(int32_t rank, const int64_t *shape, char *buffer,
                                  size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
