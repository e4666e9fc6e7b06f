/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a TensorProto: borrows raw data in place, decodes typed fields into the arena, maps
 * external data.
 * Source: onnx.proto (TensorProto), docs/ExternalData.md.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "onnx/fields.h"
#include "onnx/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct raw_tensor {
    int64_t dims[KELP_MAX_RANK];
    int32_t rank;
    uint64_t data_type;
    kelp_str raw;
    bool has_raw, external;
    kelp_str location, offset, length;
    size_t counts[TENSOR_UINT64_DATA + 1]; /* elements in the typed data, by field number */
} raw_tensor;

static size_t count_varints(kelp_str bytes) {
    size_t count = 0;
    for (size_t i = 0; i < bytes.length; i++)
        count += ((uint8_t)bytes.data[i] & 0x80) == 0;
    return count;
}

kelp_status *kelp_onnx_read_dims(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                 const kelp_protobuf_field *field, int64_t *dims,
                                 int32_t *inout_rank) {
    KELP_ASSERT(*inout_rank >= 0 && *inout_rank <= KELP_MAX_RANK);
    kelp_protobuf packed = kelp_protobuf_of(field->bytes);
    uint64_t value = field->value;
    do {
        if (field->type == KELP_PROTOBUF_BYTES) {
            if (packed.at == packed.end)
                return NULL;
            if (!kelp_protobuf_varint(&packed, &value))
                return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                                       "dims: malformed packed numbers");
        }
        if (*inout_rank == KELP_MAX_RANK)
            return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                                   "dims: expected at most %d", KELP_MAX_RANK);
        if ((int64_t)value < 0)
            return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                                   "dims[%d]: expected a dimension, found %lld", *inout_rank,
                                   (long long)value);
        dims[(*inout_rank)++] = (int64_t)value;
    } while (field->type == KELP_PROTOBUF_BYTES);
    return NULL;
}

static void read_external_entry(kelp_str bytes, raw_tensor *raw) {
    kelp_protobuf wire = kelp_protobuf_of(bytes);
    kelp_protobuf_field field;
    kelp_str key = {0}, value = {0};
    while (kelp_protobuf_next(&wire, &field) == KELP_PROTOBUF_FIELD) {
        if (field.type == KELP_PROTOBUF_BYTES && field.number == ENTRY_KEY)
            key = field.bytes;
        else if (field.type == KELP_PROTOBUF_BYTES && field.number == ENTRY_VALUE)
            value = field.bytes;
    }
    if (kelp_str_is(key, "location"))
        raw->location = value;
    else if (kelp_str_is(key, "offset"))
        raw->offset = value;
    else if (kelp_str_is(key, "length"))
        raw->length = value;
}

/* Returns the number of elements in one occurrence of a field with typed data. */
static size_t count_elements(const kelp_protobuf_field *field) {
    if (field->type != KELP_PROTOBUF_BYTES)
        return 1;
    switch (field->number) {
    case TENSOR_FLOAT_DATA:
        return field->bytes.length / sizeof(float);
    case TENSOR_DOUBLE_DATA:
        return field->bytes.length / sizeof(double);
    case TENSOR_STRING_DATA:
        return 1;
    default:
        return count_varints(field->bytes);
    }
}

/* Ignores unknown fields, and known fields with another wire type. */
static kelp_status *scan_field(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                               const kelp_protobuf_field *field, kelp_str *out_name,
                               raw_tensor *raw) {
    bool is_bytes = field->type == KELP_PROTOBUF_BYTES;
    switch (field->number) {
    case TENSOR_DIMS:
        return kelp_onnx_read_dims(reader, place, field, raw->dims, &raw->rank);
    case TENSOR_DATA_TYPE:
        raw->data_type = is_bytes ? raw->data_type : field->value;
        return NULL;
    case TENSOR_SEGMENT:
        return is_bytes ? kelp_onnx_error(reader, place, KELP_UNIMPLEMENTED,
                                          "segment: segmented tensors are not supported")
                        : NULL;
    case TENSOR_NAME:
        *out_name = is_bytes ? field->bytes : *out_name;
        return NULL;
    case TENSOR_RAW_DATA:
        raw->raw = is_bytes ? field->bytes : raw->raw;
        raw->has_raw = raw->has_raw || is_bytes;
        return NULL;
    case TENSOR_EXTERNAL_DATA:
        if (is_bytes)
            read_external_entry(field->bytes, raw);
        return NULL;
    case TENSOR_DATA_LOCATION:
        raw->external = is_bytes ? raw->external : field->value == DATA_LOCATION_EXTERNAL;
        return NULL;
    case TENSOR_FLOAT_DATA:
    case TENSOR_INT32_DATA:
    case TENSOR_STRING_DATA:
    case TENSOR_INT64_DATA:
    case TENSOR_DOUBLE_DATA:
    case TENSOR_UINT64_DATA:
        raw->counts[field->number] += count_elements(field);
        return NULL;
    default:
        return NULL;
    }
}

static kelp_status *scan(kelp_onnx_reader *reader, const kelp_onnx_place *place, kelp_str bytes,
                         kelp_str *out_name, raw_tensor *raw) {
    kelp_protobuf wire = kelp_protobuf_of(bytes);
    kelp_protobuf_field field;
    kelp_protobuf_result result;
    while ((result = kelp_protobuf_next(&wire, &field)) == KELP_PROTOBUF_FIELD)
        KELP_TRY(scan_field(reader, place, &field, out_name, raw));
    if (result == KELP_PROTOBUF_MALFORMED)
        return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                               "malformed: expected a TensorProto");
    return NULL;
}

/* ---- external data ---- */
/* Returns whether an absolute path without links is in a directory, or in one below it. */
static bool is_within(const char *real, const char *directory) {
    char *base = realpath(directory, NULL);
    size_t length = base != NULL ? strlen(base) : 0;
    bool inside =
        base != NULL && strncmp(real, base, length) == 0 && (real[length] == '/' || length == 1);
    free(base);
    return inside;
}

/* Returns whether an absolute path without links is in the directory of the file that the path of
 * the model leads to. Download caches store files under other names, and link to them. */
static bool is_beside_model(const char *real, const char *path) {
    char *model = path != NULL ? realpath(path, NULL) : NULL;
    char *slash = model != NULL ? strrchr(model, '/') : NULL;
    if (slash != NULL)
        slash[slash == model ? 1 : 0] = '\0';
    bool inside = model != NULL && is_within(real, model);
    free(model);
    return inside;
}

static kelp_status *map_file(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                             kelp_str location, const kelp_mapping **out) {
    for (kelp_onnx_file *file = reader->files; file != NULL; file = file->next)
        if (kelp_str_equal(file->location, location)) {
            *out = &file->mapping;
            return NULL;
        }
    char *name = kelp_arena_strndup(reader->arena, location.data, location.length);
    if (name == NULL)
        return kelp_status_oom();
    if (strlen(name) != location.length || !kelp_fs_is_inside(name) || location.length == 0)
        return kelp_onnx_error(reader, place, KELP_PERMISSION_DENIED,
                               "external_data: location '%s' is outside the model's directory",
                               name);
    if (reader->directory == NULL)
        return kelp_onnx_error(
            reader, place, KELP_INVALID_ARGUMENT,
            "external_data: location '%s': the model was loaded without a directory", name);
    char *path = kelp_arena_printf(reader->arena, "%s/%s", reader->directory, name);
    if (path == NULL)
        return kelp_status_oom();
    /* a symbolic link may lead out of the directory */
    char *real = realpath(path, NULL);
    bool inside =
        real == NULL || is_within(real, reader->directory) || is_beside_model(real, reader->path);
    char *target = real != NULL ? kelp_arena_strndup(reader->arena, real, strlen(real)) : path;
    free(real);
    if (target == NULL)
        return kelp_status_oom();
    if (!inside)
        return kelp_onnx_error(
            reader, place, KELP_PERMISSION_DENIED,
            "external_data: location '%s' links to a file outside the model's directory", name);
    kelp_onnx_file *file = KELP_ARENA_NEW(reader->data, kelp_onnx_file);
    if (file == NULL)
        return kelp_status_oom();
    kelp_status *status = kelp_file_guard_map(reader->guard, target, &file->mapping);
    if (status != NULL)
        return KELP_ANNOTATE(status, "%s: cannot map external data '%s'", reader->label, name);
    file->location = location;
    file->next = reader->files;
    reader->files = file;
    *out = &file->mapping;
    return NULL;
}

static kelp_status *find_external(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                  raw_tensor *raw, size_t needed) {
    const kelp_mapping *mapping = NULL;
    uint64_t offset = 0, length = needed;
    if (raw->offset.length > 0 && !kelp_parse_u64(raw->offset, &offset))
        return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                               "external_data: offset: expected a number, found '%.*s'",
                               KELP_STR_ARG(raw->offset));
    if (raw->length.length > 0 && !kelp_parse_u64(raw->length, &length))
        return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                               "external_data: length: expected a number, found '%.*s'",
                               KELP_STR_ARG(raw->length));
    if (length != needed)
        return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                               "external_data: length: the shape needs %zu bytes, found %llu",
                               needed, (unsigned long long)length);
    KELP_TRY(map_file(reader, place, raw->location, &mapping));
    if (offset > mapping->size_bytes || length > mapping->size_bytes - offset)
        return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                               "external_data: %llu bytes from offset %llu: '%.*s' has %zu bytes",
                               (unsigned long long)length, (unsigned long long)offset,
                               KELP_STR_ARG(raw->location), mapping->size_bytes);
    reader->external_bytes += length;
    if (reader->external_bytes > reader->limits.external_bytes)
        return kelp_onnx_error(reader, place, KELP_RESOURCE_EXHAUSTED,
                               "external data exceeds the limit of %zu bytes",
                               reader->limits.external_bytes);
    raw->raw = (kelp_str){length > 0 ? (const char *)mapping->data + offset : NULL, (size_t)length};
    raw->has_raw = true;
    return NULL;
}

/* ---- typed fields ---- */
/* Returns the field with the typed data of an element type. int32_data holds elements of 8 to 32
 * bits and floats of up to 16 bits as their bits; packed sub-byte elements take one byte each. */
static uint32_t typed_field(kelp_dtype dtype) {
    switch (dtype) {
    case KELP_F32:
    case KELP_C64:
        return TENSOR_FLOAT_DATA;
    case KELP_F64:
    case KELP_C128:
        return TENSOR_DOUBLE_DATA;
    case KELP_I64:
        return TENSOR_INT64_DATA;
    case KELP_U32:
    case KELP_U64:
        return TENSOR_UINT64_DATA;
    case KELP_STRING:
        return TENSOR_STRING_DATA;
    default:
        return TENSOR_INT32_DATA;
    }
}

static void store(char *to, size_t item, size_t index, uint64_t value) {
    memcpy(to + index * item, &value, item); /* little-endian: low bytes first */
}

/* Appends the elements of one occurrence of a field with typed data. Returns false if a number is
 * malformed. */
static bool decode_field(const kelp_protobuf_field *field, size_t item, char *to,
                         size_t *inout_index) {
    if (field->number == TENSOR_STRING_DATA) {
        kelp_string text = {field->bytes.data, field->bytes.length};
        memcpy(to + (*inout_index)++ * sizeof text, &text, sizeof text);
        return true;
    }
    if (field->type != KELP_PROTOBUF_BYTES) {
        store(to, item, (*inout_index)++, field->value);
        return true;
    }
    if (field->number == TENSOR_FLOAT_DATA || field->number == TENSOR_DOUBLE_DATA) {
        if (field->bytes.length % item != 0)
            return false;
        if (field->bytes.length > 0)
            memcpy(to + *inout_index * item, field->bytes.data, field->bytes.length);
        *inout_index += field->bytes.length / item;
        return true;
    }
    kelp_protobuf packed = kelp_protobuf_of(field->bytes);
    uint64_t value;
    while (packed.at < packed.end) {
        if (!kelp_protobuf_varint(&packed, &value))
            return false;
        store(to, item, (*inout_index)++, value);
    }
    return true;
}

/* Decodes all occurrences of a field with typed data. `count` is the number of elements that the
 * field was found to have. Returns false if a number is malformed. */
static bool decode_typed(kelp_str message, uint32_t number, size_t item, size_t count, char *to) {
    kelp_protobuf wire = kelp_protobuf_of(message);
    kelp_protobuf_field field;
    size_t index = 0;
    while (kelp_protobuf_next(&wire, &field) == KELP_PROTOBUF_FIELD)
        if (field.number == number && !decode_field(&field, item, to, &index))
            return false;
    KELP_ASSERT(index == count);
    return true;
}

static kelp_status *read_typed(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                               kelp_str message, const raw_tensor *raw, kelp_tensor *tensor,
                               size_t needed) {
    bool complex_type = tensor->dtype == KELP_C64 || tensor->dtype == KELP_C128;
    uint32_t bits = kelp_dtype_bits(tensor->dtype);
    size_t elements = (size_t)kelp_tensor_elements(tensor);
    size_t expected = complex_type ? 2 * elements : bits < 8 ? needed : elements;
    uint32_t number = typed_field(tensor->dtype);
    size_t found = raw->counts[number];
    if (found != expected)
        return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                               "expected %zu values of %s, found %zu", expected,
                               kelp_dtype_name(tensor->dtype), found);
    size_t item = complex_type ? bits / 16 : bits < 8 ? 1 : bits / 8;
    char *data = kelp_arena_alloc(reader->data, needed + 8, 64);
    if (data == NULL)
        return kelp_status_oom();
    KELP_ASSERT(found * item == needed);
    if (!decode_typed(message, number, item, found, data))
        return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                               "malformed packed numbers of %s", kelp_dtype_name(tensor->dtype));
    tensor->data = data;
    return NULL;
}

kelp_status *kelp_onnx_read_tensor(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                   kelp_str bytes, kelp_onnx_tensor *out) {
    raw_tensor raw = {0};
    int64_t elements;
    size_t needed;
    *out = (kelp_onnx_tensor){0};
    KELP_TRY(scan(reader, place, bytes, &out->name, &raw));
    kelp_dtype dtype = (kelp_dtype)(raw.data_type < KELP_DTYPE_COUNT ? raw.data_type : 0);
    if (kelp_dtype_bits(dtype) == 0)
        return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                               "tensor '%.*s': data_type: expected a data type, found %llu",
                               KELP_STR_ARG(out->name), (unsigned long long)raw.data_type);
    if (!kelp_shape_elements(raw.rank, raw.dims, &elements) ||
        !kelp_dtype_bytes(dtype, elements, &needed))
        return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                               "tensor '%.*s': dims: the number of elements overflows",
                               KELP_STR_ARG(out->name));
    KELP_TRY(kelp_tensor_init(&out->tensor, dtype, raw.rank, raw.dims, NULL));
    out->tensor.flags = KELP_TENSOR_READ_ONLY;
    if (raw.external && dtype == KELP_STRING)
        return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                               "tensor '%.*s': strings cannot be external data",
                               KELP_STR_ARG(out->name));
    if (raw.external)
        KELP_TRY(find_external(reader, place, &raw, needed));
    if (!raw.has_raw && needed == 0 && raw.counts[typed_field(dtype)] == 0)
        return NULL;
    if (!raw.has_raw)
        return read_typed(reader, place, bytes, &raw, &out->tensor, needed);
    if (dtype == KELP_STRING || raw.raw.length != needed)
        return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                               "tensor '%.*s': raw_data: expected %zu bytes of %s, found %zu",
                               KELP_STR_ARG(out->name), needed, kelp_dtype_name(dtype),
                               raw.raw.length);
    union { /* marked read-only above */
        const char *from;
        void *to;
    } data = {raw.raw.data};
    out->tensor.data = data.to;
    return NULL;
}
