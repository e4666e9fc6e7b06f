/* SPDX-License-Identifier: Apache-2.0 */
/* A field of elements may be packed (all elements in one BYTES field), not packed, or both. The
 * first pass counts the elements, so that memory is allocated only for elements that exist. */
#include "frontends/grpc/codec/contents.h"

#include "base/checked.h"
#include "base/wire/protobuf.h"
#include "frontends/grpc/codec/decode.h"

#define DATA_ALIGNMENT 64
#define STRING_LENGTH_BYTES 4
#define FIELD_COUNT 9

/* The names of the fields, by number. */
static const char *const field_names[FIELD_COUNT] = {
    "",
    "bool_contents",
    "int_contents",
    "int64_contents",
    "uint_contents",
    "uint64_contents",
    "fp32_contents",
    "fp64_contents",
    "bytes_contents",
};

/* How elements of a type are stored. */
typedef struct storage {
    uint32_t number; /* of the field; 0: the type needs raw_input_contents */
    uint32_t wire;   /* type of an element that is not packed */
    bool is_signed;
    unsigned size_bytes; /* of an element of the tensor; 0 for BYTES */
} storage;

static storage storage_of(TRITONSERVER_DataType type) {
    unsigned size_bytes = TRITONSERVER_DataTypeByteSize(type);
    switch (type) {
    case TRITONSERVER_TYPE_BOOL:
        return (storage){1, KELP_PROTOBUF_VARINT, false, size_bytes};
    case TRITONSERVER_TYPE_INT8:
    case TRITONSERVER_TYPE_INT16:
    case TRITONSERVER_TYPE_INT32:
        return (storage){2, KELP_PROTOBUF_VARINT, true, size_bytes};
    case TRITONSERVER_TYPE_INT64:
        return (storage){3, KELP_PROTOBUF_VARINT, true, size_bytes};
    case TRITONSERVER_TYPE_UINT8:
    case TRITONSERVER_TYPE_UINT16:
    case TRITONSERVER_TYPE_UINT32:
        return (storage){4, KELP_PROTOBUF_VARINT, false, size_bytes};
    case TRITONSERVER_TYPE_UINT64:
        return (storage){5, KELP_PROTOBUF_VARINT, false, size_bytes};
    case TRITONSERVER_TYPE_FP32:
        return (storage){6, KELP_PROTOBUF_I32, false, size_bytes};
    case TRITONSERVER_TYPE_FP64:
        return (storage){7, KELP_PROTOBUF_I64, false, size_bytes};
    case TRITONSERVER_TYPE_BYTES:
        return (storage){8, KELP_PROTOBUF_BYTES, false, 0};
    default:
        return (storage){0};
    }
}

/* The state of reading the contents of an input. */
typedef struct reader {
    const char *input;
    storage storage;
    uint64_t count;      /* found elements */
    size_t string_bytes; /* of BYTES elements, with their lengths */
    kelp_str packed;     /* the last packed field */
    bool single;         /* all elements are in `packed` */
    char *out;           /* the next element; NULL while counting */
} reader;

/* ---- storing ---- */

static kelp_status *store(reader *r, uint64_t bits) {
    unsigned size = r->storage.size_bytes;
    if (r->storage.number == 1) /* BOOL */
        bits = bits != 0;
    if (r->storage.wire == KELP_PROTOBUF_VARINT && size < sizeof bits) {
        int64_t value = (int64_t)bits;
        int64_t limit = INT64_C(1) << (8 * size - (r->storage.is_signed ? 1 : 0));
        if (value >= limit || value < (r->storage.is_signed ? -limit : 0))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "input '%s': element %llu, %lld, does not fit into %u bytes",
                              r->input, (unsigned long long)r->count, (long long)value, size);
    }
    memcpy(r->out, &bits, size); /* little-endian */
    r->out += size;
    return NULL;
}

static kelp_status *take_element(reader *r, uint64_t bits) {
    if (r->out != NULL)
        KELP_TRY(store(r, bits));
    r->count++;
    return NULL;
}

static kelp_status *take_string(reader *r, kelp_str s) {
    if (s.length > UINT32_MAX ||
        !kelp_size_add(r->string_bytes, s.length + STRING_LENGTH_BYTES, &r->string_bytes))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "input '%s': a string is too long", r->input);
    if (r->out != NULL) {
        uint32_t length = (uint32_t)s.length;
        memcpy(r->out, &length, STRING_LENGTH_BYTES);
        if (s.length > 0)
            memcpy(r->out + STRING_LENGTH_BYTES, s.data, s.length);
        r->out += STRING_LENGTH_BYTES + s.length;
    }
    r->count++;
    return NULL;
}

/* ---- reading ---- */

/* Reads the elements of a packed field. */
static kelp_status *take_packed(reader *r, kelp_str packed) {
    kelp_protobuf wire = kelp_protobuf_of(packed);
    unsigned size = r->storage.size_bytes;
    r->single = r->count == 0;
    r->packed = packed;
    if (r->storage.wire != KELP_PROTOBUF_VARINT) {
        if (packed.length % size != 0)
            return kelp_grpc_malformed("InferTensorContents");
        r->count += packed.length / size;
        if (r->out != NULL) {
            memcpy(r->out, packed.data, packed.length);
            r->out += packed.length;
        }
        return NULL;
    }
    while (wire.at < wire.end) {
        uint64_t value;
        if (!kelp_protobuf_varint(&wire, &value))
            return kelp_grpc_malformed("InferTensorContents");
        KELP_TRY(take_element(r, value));
    }
    return NULL;
}

/* Fails for elements in the field of another type. Unknown fields are ignored. */
static kelp_status *check_other_field(const reader *r, const kelp_protobuf_field *field,
                                      TRITONSERVER_DataType type) {
    if (field->number >= FIELD_COUNT ||
        (field->type == KELP_PROTOBUF_BYTES && field->number != 8 && field->bytes.length == 0))
        return NULL;
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "input '%s': the contents of type %s are in the wrong field: expected %s, "
                      "found %s",
                      r->input, TRITONSERVER_DataTypeString(type), field_names[r->storage.number],
                      field_names[field->number]);
}

static kelp_status *read_fields(reader *r, TRITONSERVER_DataType type, kelp_str contents) {
    kelp_protobuf wire = kelp_protobuf_of(contents);
    kelp_protobuf_field field;
    bool more;
    KELP_TRY(kelp_grpc_next(&wire, "InferTensorContents", &field, &more));
    while (more) {
        if (field.number != r->storage.number) {
            KELP_TRY(check_other_field(r, &field, type));
        } else if (field.type == KELP_PROTOBUF_BYTES) {
            KELP_TRY(r->storage.size_bytes == 0 ? take_string(r, field.bytes)
                                                : take_packed(r, field.bytes));
        } else if (field.type == r->storage.wire) {
            KELP_TRY(take_element(r, field.value));
            r->single = false;
        } else {
            return kelp_grpc_malformed("InferTensorContents");
        }
        KELP_TRY(kelp_grpc_next(&wire, "InferTensorContents", &field, &more));
    }
    return NULL;
}

kelp_status *kelp_grpc_read_contents(kelp_arena *arena, const char *input,
                                     TRITONSERVER_DataType type, uint64_t count,
                                     const char *shape_text, kelp_str contents, kelp_str *out) {
    reader r = {.input = input, .storage = storage_of(type)};
    if (r.storage.number == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s': type %s needs raw_input_contents, because "
                          "InferTensorContents has no field for it",
                          input, TRITONSERVER_DataTypeString(type));
    KELP_TRY(read_fields(&r, type, contents));
    if (r.count != count)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s': expected %llu elements in %s for shape %s, found %llu",
                          input, (unsigned long long)count, field_names[r.storage.number],
                          shape_text, (unsigned long long)r.count);
    unsigned size = r.storage.size_bytes;
    if (r.single && r.storage.wire != KELP_PROTOBUF_VARINT && size > 0 &&
        (uintptr_t)r.packed.data % size == 0) {
        *out = r.packed;
        return NULL;
    }
    size_t total = size == 0 ? r.string_bytes : (size_t)count * size; /* count was found */
    char *bytes = kelp_arena_alloc(arena, total, DATA_ALIGNMENT);
    if (bytes == NULL)
        return kelp_status_oom();
    reader second = {.input = input, .storage = r.storage, .out = bytes};
    KELP_TRY(read_fields(&second, type, contents));
    *out = (kelp_str){bytes, total};
    return NULL;
}
