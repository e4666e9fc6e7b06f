/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a SparseTensorProto as a dense tensor, so that other code need not handle sparse ones.
 * Source: onnx.proto (SparseTensorProto): values [NNZ]; indices [NNZ] in row-major order, or [NNZ,
 * rank].
 */
#include "base/assert.h"
#include "onnx/fields.h"
#include "onnx/reader.h"

#include <string.h>

/* Limit of the dense size, because a few bytes can declare any size. */
#define DENSE_MAX_BYTES ((size_t)256 << 20)

typedef struct sparse {
    kelp_onnx_tensor values, indices;
    bool has_values, has_indices;
    int64_t dims[KELP_MAX_RANK];
    int32_t rank;
} sparse;

static kelp_status *read_fields(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                kelp_str bytes, sparse *s) {
    kelp_protobuf wire = kelp_protobuf_of(bytes);
    kelp_protobuf_field field;
    kelp_protobuf_result result;
    while ((result = kelp_protobuf_next(&wire, &field)) == KELP_PROTOBUF_FIELD) {
        if (field.number == SPARSE_DIMS) {
            KELP_TRY(kelp_onnx_read_dims(reader, place, &field, s->dims, &s->rank));
        } else if (field.number == SPARSE_VALUES && field.type == KELP_PROTOBUF_BYTES) {
            kelp_onnx_place inner = kelp_onnx_inside(place, "values", -1);
            KELP_TRY(kelp_onnx_read_tensor(reader, &inner, field.bytes, &s->values));
            s->has_values = true;
        } else if (field.number == SPARSE_INDICES && field.type == KELP_PROTOBUF_BYTES) {
            kelp_onnx_place inner = kelp_onnx_inside(place, "indices", -1);
            KELP_TRY(kelp_onnx_read_tensor(reader, &inner, field.bytes, &s->indices));
            s->has_indices = true;
        }
    }
    if (result == KELP_PROTOBUF_MALFORMED || !s->has_values || !s->has_indices)
        return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                               "malformed: expected a SparseTensorProto with values and indices");
    return NULL;
}

static kelp_status *check(kelp_onnx_reader *reader, const kelp_onnx_place *place, const sparse *s) {
    const kelp_tensor *values = &s->values.tensor, *indices = &s->indices.tensor;
    uint32_t bits = kelp_dtype_bits(values->dtype);
    if (values->rank != 1 || values->dtype == KELP_STRING || bits < 8)
        return kelp_onnx_error(
            reader, place, KELP_INVALID_ARGUMENT,
            "values: expected a vector of elements of whole bytes, found rank %d of %s",
            values->rank, kelp_dtype_name(values->dtype));
    bool linear = indices->rank == 1 && indices->shape[0] == values->shape[0];
    bool by_axis =
        indices->rank == 2 && indices->shape[0] == values->shape[0] && indices->shape[1] == s->rank;
    if (indices->dtype != KELP_I64 || (!linear && !by_axis))
        return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                               "indices: expected int64 [%lld] or [%lld,%d]",
                               (long long)values->shape[0], (long long)values->shape[0], s->rank);
    return NULL;
}

static kelp_status *scatter(kelp_onnx_reader *reader, const kelp_onnx_place *place, const sparse *s,
                            kelp_tensor *dense) {
    const kelp_tensor *indices = &s->indices.tensor;
    const char *index_bytes = indices->data, *values = s->values.tensor.data;
    size_t item = kelp_dtype_bits(dense->dtype) / 8;
    KELP_ASSERT(indices->dtype == KELP_I64 && item > 0);
    int64_t elements = kelp_tensor_elements(dense);
    for (int64_t i = 0; i < s->values.tensor.shape[0]; i++) {
        int64_t at = 0;
        for (int32_t k = 0; k < (indices->rank == 1 ? 1 : s->rank); k++) {
            int64_t index, dim = indices->rank == 1 ? elements : s->dims[k];
            size_t number = indices->rank == 1 ? (size_t)i : (size_t)(i * s->rank + k);
            memcpy(&index, index_bytes + number * sizeof index, sizeof index);
            if (index < 0 || index >= dim)
                return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                                       "indices: index %lld of value %lld is outside [0, %lld)",
                                       (long long)index, (long long)i, (long long)dim);
            at = indices->rank == 1 ? index : at * dim + index;
        }
        KELP_ASSERT(at >= 0 && at < elements);
        memcpy((char *)dense->data + (size_t)at * item, values + (size_t)i * item, item);
    }
    return NULL;
}

kelp_status *kelp_onnx_read_sparse(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                   kelp_str bytes, kelp_onnx_tensor *out) {
    sparse s = {0};
    KELP_TRY(read_fields(reader, place, bytes, &s));
    KELP_TRY(check(reader, place, &s));
    out->name = s.values.name;
    kelp_status *status =
        kelp_tensor_init(&out->tensor, s.values.tensor.dtype, s.rank, s.dims, NULL);
    if (status != NULL)
        return KELP_ANNOTATE(status, "%s: sparse tensor '%.*s'", reader->label,
                             KELP_STR_ARG(out->name));
    size_t size = kelp_tensor_bytes(&out->tensor);
    if (size > DENSE_MAX_BYTES)
        return kelp_onnx_error(reader, place, KELP_RESOURCE_EXHAUSTED,
                               "dims: the dense tensor takes %zu bytes: expected at most %zu", size,
                               DENSE_MAX_BYTES);
    out->tensor.flags = KELP_TENSOR_READ_ONLY;
    out->tensor.data = kelp_arena_alloc(reader->data, size + 8, 64);
    if (out->tensor.data == NULL)
        return kelp_status_oom();
    memset(out->tensor.data, 0, size + 8);
    return scatter(reader, place, &s, &out->tensor);
}
