/* SPDX-License-Identifier: Apache-2.0 */
/* Reads ValueInfoProto and TypeProto, the declared types of values. */
#include "base/assert.h"
#include "base/checked.h"
#include "onnx/fields.h"
#include "onnx/reader.h"

static kelp_status *malformed(const kelp_onnx_reader *reader, const kelp_onnx_place *place) {
    return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                           "malformed: expected a protobuf message");
}

static kelp_status *read_dim(kelp_onnx_reader *reader, const kelp_onnx_place *place, kelp_str bytes,
                             int64_t *out_dim, kelp_str *out_symbol) {
    kelp_protobuf wire = kelp_protobuf_of(bytes);
    kelp_protobuf_field field;
    kelp_protobuf_result result;
    *out_dim = -1;
    while ((result = kelp_protobuf_next(&wire, &field)) == KELP_PROTOBUF_FIELD) {
        if (field.number == DIMENSION_DIM_VALUE && field.type == KELP_PROTOBUF_VARINT)
            *out_dim = (int64_t)field.value;
        else if (field.number == DIMENSION_DIM_PARAM && field.type == KELP_PROTOBUF_BYTES)
            *out_symbol = field.bytes;
    }
    if (result == KELP_PROTOBUF_MALFORMED)
        return malformed(reader, place);
    if (*out_dim < -1)
        return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                               "expected a dimension, found %lld", (long long)*out_dim);
    return NULL;
}

static kelp_status *read_shape(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                               kelp_str bytes, kelp_onnx_type *out) {
    kelp_protobuf wire = kelp_protobuf_of(bytes);
    kelp_protobuf_field field;
    kelp_protobuf_result result;
    out->rank = 0;
    while ((result = kelp_protobuf_next(&wire, &field)) == KELP_PROTOBUF_FIELD) {
        if (field.number != SHAPE_DIM || field.type != KELP_PROTOBUF_BYTES)
            continue;
        kelp_onnx_place inner = kelp_onnx_inside(place, "shape.dim", out->rank);
        if (out->rank == KELP_MAX_RANK)
            return kelp_onnx_error(reader, &inner, KELP_INVALID_ARGUMENT,
                                   "expected at most %d dimensions", KELP_MAX_RANK);
        KELP_TRY(read_dim(reader, &inner, field.bytes, &out->shape[out->rank],
                          &out->symbols[out->rank]));
        out->rank++;
    }
    return result == KELP_PROTOBUF_MALFORMED ? malformed(reader, place) : NULL;
}

static kelp_status *read_tensor_type(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                     kelp_str bytes, kelp_onnx_type *out) {
    kelp_protobuf wire = kelp_protobuf_of(bytes);
    kelp_protobuf_field field;
    kelp_protobuf_result result;
    while ((result = kelp_protobuf_next(&wire, &field)) == KELP_PROTOBUF_FIELD) {
        if (field.number == TENSOR_TYPE_ELEM_TYPE && field.type == KELP_PROTOBUF_VARINT) {
            out->dtype = (kelp_dtype)(field.value < KELP_DTYPE_COUNT ? field.value : 0);
            if (field.value != 0 && kelp_dtype_bits(out->dtype) == 0)
                return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                                       "elem_type: expected a data type, found %llu",
                                       (unsigned long long)field.value);
        } else if (field.number == TENSOR_TYPE_SHAPE && field.type == KELP_PROTOBUF_BYTES) {
            KELP_TRY(read_shape(reader, place, field.bytes, out));
        }
    }
    return result == KELP_PROTOBUF_MALFORMED ? malformed(reader, place) : NULL;
}

static kelp_status *read_type(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                              kelp_str bytes, kelp_onnx_type *out);

/* Reads the element type of a sequence or optional; only the type of the innermost tensor is kept.
 */
static kelp_status *read_container(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                   kelp_str bytes, kelp_value_kind kind, kelp_onnx_type *out) {
    kelp_protobuf wire = kelp_protobuf_of(bytes);
    kelp_protobuf_field field;
    kelp_protobuf_result result;
    uint32_t element = kind == KELP_VALUE_MAP ? MAP_TYPE_VALUE_TYPE : CONTAINER_TYPE_ELEM_TYPE;
    KELP_ASSERT(kind == KELP_VALUE_SEQUENCE || kind == KELP_VALUE_MAP ||
                kind == KELP_VALUE_OPTIONAL);
    while ((result = kelp_protobuf_next(&wire, &field)) == KELP_PROTOBUF_FIELD) {
        if (field.number != element || field.type != KELP_PROTOBUF_BYTES)
            continue;
        kelp_onnx_place inner = kelp_onnx_inside(place, "elem_type", -1);
        KELP_TRY(read_type(reader, &inner, field.bytes, out));
    }
    out->kind = kind;
    return result == KELP_PROTOBUF_MALFORMED ? malformed(reader, place) : NULL;
}

static kelp_status *read_type(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                              kelp_str bytes, kelp_onnx_type *out) {
    static const kelp_value_kind kinds[] = {[TYPE_TENSOR] = KELP_VALUE_TENSOR,
                                            [TYPE_SEQUENCE] = KELP_VALUE_SEQUENCE,
                                            [TYPE_MAP] = KELP_VALUE_MAP,
                                            [TYPE_SPARSE_TENSOR] = KELP_VALUE_SPARSE,
                                            [TYPE_OPTIONAL] = KELP_VALUE_OPTIONAL};
    if (place->depth > reader->limits.depth)
        return kelp_onnx_error(reader, place, KELP_RESOURCE_EXHAUSTED,
                               "types are nested deeper than %u", reader->limits.depth);
    kelp_protobuf wire = kelp_protobuf_of(bytes);
    kelp_protobuf_field field;
    kelp_protobuf_result result;
    while ((result = kelp_protobuf_next(&wire, &field)) == KELP_PROTOBUF_FIELD) {
        kelp_value_kind kind =
            field.number < KELP_COUNT(kinds) ? kinds[field.number] : KELP_VALUE_UNKNOWN;
        if (kind == KELP_VALUE_UNKNOWN || field.type != KELP_PROTOBUF_BYTES)
            continue;
        if (kind == KELP_VALUE_TENSOR || kind == KELP_VALUE_SPARSE) {
            KELP_TRY(read_tensor_type(reader, place, field.bytes, out));
            out->kind = kind;
        } else {
            KELP_TRY(read_container(reader, place, field.bytes, kind, out));
        }
    }
    return result == KELP_PROTOBUF_MALFORMED ? malformed(reader, place) : NULL;
}

kelp_status *kelp_onnx_read_value(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                  kelp_str bytes, kelp_onnx_value *out) {
    kelp_protobuf wire = kelp_protobuf_of(bytes);
    kelp_protobuf_field field;
    kelp_protobuf_result result;
    *out = (kelp_onnx_value){.type = {.rank = -1}};
    while ((result = kelp_protobuf_next(&wire, &field)) == KELP_PROTOBUF_FIELD) {
        if (field.number == VALUE_INFO_NAME && field.type == KELP_PROTOBUF_BYTES) {
            out->name = field.bytes;
        } else if (field.number == VALUE_INFO_TYPE && field.type == KELP_PROTOBUF_BYTES) {
            kelp_onnx_place inner = kelp_onnx_inside(place, "type", -1);
            KELP_TRY(read_type(reader, &inner, field.bytes, &out->type));
        }
    }
    return result == KELP_PROTOBUF_MALFORMED ? malformed(reader, place) : NULL;
}
