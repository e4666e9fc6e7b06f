/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/tensor.h: element types and tensors.
 *
 * A kelp_tensor is a plain descriptor {dtype, shape, strides, data} over memory that somebody else
 * owns; copying the struct copies no elements. kelp_tensor_to_dl / _from_dl move between it and
 * DLPack without touching data. Strings (KELP_STRING) are an array of kelp_string and never leave
 * as DLPack.
 */
#ifndef KELP_TENSOR_H_
#define KELP_TENSOR_H_

#include <kelp/allocator.h>
#include <kelp/dlpack.h>
#include <kelp/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers are those of onnx.TensorProto.DataType (onnx.proto, IR version 14). */
typedef enum kelp_dtype {
    KELP_DTYPE_INVALID = 0,
    KELP_F32 = 1,
    KELP_U8 = 2,
    KELP_I8 = 3,
    KELP_U16 = 4,
    KELP_I16 = 5,
    KELP_I32 = 6,
    KELP_I64 = 7,
    KELP_STRING = 8,
    KELP_BOOL = 9,
    KELP_F16 = 10,
    KELP_F64 = 11,
    KELP_U32 = 12,
    KELP_U64 = 13,
    KELP_C64 = 14,
    KELP_C128 = 15,
    KELP_BF16 = 16,
    KELP_F8E4M3FN = 17,
    KELP_F8E4M3FNUZ = 18,
    KELP_F8E5M2 = 19,
    KELP_F8E5M2FNUZ = 20,
    KELP_U4 = 21,
    KELP_I4 = 22,
    KELP_F4E2M1 = 23,
    KELP_F8E8M0 = 24,
    KELP_U2 = 25,
    KELP_I2 = 26,
    KELP_F6E2M3 = 27,
    KELP_F6E3M2 = 28,
    /* Kelp's own: each element is a kelp_tensor, see KELP_LIST below. */
    KELP_LIST = 64
} kelp_dtype;
/* Of the element types that ONNX numbers; KELP_LIST is none of them. */
#define KELP_DTYPE_COUNT 29

/* Bits of one element: 2, 4, 6 (stored in 8), 8 … 128; of KELP_STRING the bits of kelp_string; 0
 * for an unknown type. Sub-byte elements are packed from the low bits, rows are not padded. */
KELP_API uint32_t kelp_dtype_bits(kelp_dtype dtype);

/* "float32", "int64", "string", … ; "invalid" for an unknown type. */
KELP_API const char *kelp_dtype_name(kelp_dtype dtype);

/* The reverse of kelp_dtype_name; also accepts Triton's "FP32", "INT64", "BYTES", "TYPE_FP32" and
 * ONNX's "FLOAT", "INT64", "STRING". KELP_DTYPE_INVALID when none. */
KELP_API kelp_dtype kelp_dtype_parse(const char *name);

/* Triton's name ("FP32", "BYTES", …), NULL where Triton has no such type. */
KELP_API const char *kelp_dtype_triton_name(kelp_dtype dtype);

/* A string element: bytes, not terminated, may hold NUL. Who owns `data` is said where a tensor is
 * made. */
typedef struct kelp_string {
    const char *data;
    size_t length;
} kelp_string;

/*
 * ONNX's sequences, optionals and maps are tensors of KELP_LIST, whose elements are kelp_tensor
 * descriptors; the rank says which:
 *   a sequence of n elements has shape [n], an optional [0,1] (empty) or [1,1], a map [2,1,1]: two
 *   vectors, keys and values.
 * Elements are compact, in host memory, and may be lists themselves. Those that an operator made
 * have their data in the context's memory until its next invoke, or borrow it from the context's
 * inputs. A list never leaves as DLPack, and no server protocol carries one.
 */

/* No tensor of Kelp has more dimensions. */
#define KELP_MAX_RANK 16

/* One tensor. `shape` and `strides` hold `rank` values; strides count elements and are valid
 * always. `data` may be NULL when an extent is 0. */
typedef struct kelp_tensor {
    void *data;
    kelp_dtype dtype;
    int32_t rank;
    int64_t shape[KELP_MAX_RANK];
    int64_t strides[KELP_MAX_RANK];
    DLDevice device;
    uint32_t flags; /* KELP_TENSOR_READ_ONLY */
} kelp_tensor;
#define KELP_TENSOR_READ_ONLY 1u

/* A shape by itself. */
typedef struct kelp_shape {
    int32_t rank;
    int64_t d[KELP_MAX_RANK];
} kelp_shape;

/* `count` elements at `data`, borrowed. `name` says what they are for. A zeroed struct: none. */
typedef struct kelp_weights {
    kelp_dtype dtype;
    const void *data;
    int64_t count;
    const char *name;
} kelp_weights;

/* Fills a compact row-major CPU descriptor over `data`. Fails with INVALID_ARGUMENT for rank >
 * KELP_MAX_RANK, a negative extent, an unknown type, or a size that does not fit size_t. */
KELP_API kelp_status *kelp_tensor_init(kelp_tensor *out, kelp_dtype dtype, int32_t rank,
                                       const int64_t *shape, void *data) KELP_MUST_USE;

/* Number of elements; 1 for rank 0. The descriptor is valid, so this cannot overflow. */
KELP_API int64_t kelp_tensor_elements(const kelp_tensor *tensor);

/* Bytes of a compact tensor with this type and shape; of KELP_STRING the bytes of its kelp_string
 * array. */
KELP_API size_t kelp_tensor_bytes(const kelp_tensor *tensor);

/* Bytes of `elements` elements, checked. false when it overflows or the type is unknown. */
KELP_API bool kelp_dtype_bytes(kelp_dtype dtype, int64_t elements, size_t *out_bytes);

/* Product of extents, checked: false on overflow or a negative extent. */
KELP_API bool kelp_shape_elements(int32_t rank, const int64_t *shape, int64_t *out_elements);

/* true when row-major and without gaps. */
KELP_API bool kelp_tensor_is_compact(const kelp_tensor *tensor);

/* Describes the same memory as a DLTensor. `out` borrows `tensor`'s shape and strides arrays.
 * UNIMPLEMENTED for KELP_STRING. */
KELP_API kelp_status *kelp_tensor_to_dl(const kelp_tensor *tensor, DLTensor *out) KELP_MUST_USE;

/* Reads a DLTensor (any strides, byte_offset applied). UNIMPLEMENTED for lanes > 1 or a type that
 * Kelp has not; INVALID_ARGUMENT for rank > KELP_MAX_RANK or negative extents. */
KELP_API kelp_status *kelp_tensor_from_dl(const DLTensor *dl, kelp_tensor *out) KELP_MUST_USE;

/* Writes "[2,3,-1]" into `buffer`, always terminated; returns the length needed, as snprintf does.
 */
KELP_API size_t kelp_shape_format(int32_t rank, const int64_t *shape, char *buffer,
                                  size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
