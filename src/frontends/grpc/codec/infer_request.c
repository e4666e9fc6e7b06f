/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/grpc/codec/infer_request.h"

#include "base/assert.h"
#include "base/checked.h"
#include "frontends/grpc/codec/contents.h"
#include "frontends/grpc/codec/decode.h"
#include "frontends/common/status.h"
#include "frontends/tensor/tensor.h"

#define MAX_RANK 64
#define MAX_CLASSES 1000000
#define MAX_TYPE_NAME 15
#define TENSOR_ALIGNMENT 64

enum {
    REQUEST_MODEL = 1,
    REQUEST_VERSION,
    REQUEST_ID,
    REQUEST_PARAMETERS,
    REQUEST_INPUTS,
    REQUEST_OUTPUTS,
    REQUEST_RAW
};
enum { INPUT_NAME = 1, INPUT_TYPE, INPUT_SHAPE, INPUT_PARAMETERS, INPUT_CONTENTS };
enum { OUTPUT_NAME = 1, OUTPUT_PARAMETERS };

/* ---- finding the parts ---- */

size_t kelp_grpc_find_tensor(const void *message, size_t length) {
    kelp_protobuf wire = kelp_protobuf_of((kelp_str){message, length});
    const uint8_t *start = wire.at;
    while (wire.at < wire.end) {
        uint64_t key, size;
        if (!kelp_protobuf_varint(&wire, &key) || (key & 7) != KELP_PROTOBUF_BYTES ||
            !kelp_protobuf_varint(&wire, &size))
            return 0;
        if (key >> 3 == REQUEST_RAW)
            return (size_t)(wire.at - start);
        if (size >= (uint64_t)(wire.end - wire.at))
            return 0;
        wire.at += size;
    }
    return 0;
}

static kelp_status *scan_field(kelp_arena *arena, const kelp_protobuf_field *field,
                               kelp_grpc_infer_request *out) {
    const char *version;
    switch (field->number) {
    case REQUEST_MODEL:
        return kelp_grpc_text(arena, field, "model_name", &out->model);
    case REQUEST_VERSION:
        KELP_TRY(kelp_grpc_text(arena, field, "model_version", &version));
        return kelp_grpc_parse_version(version, &out->version);
    case REQUEST_ID:
        return kelp_grpc_text(arena, field, "id", &out->id);
    case REQUEST_PARAMETERS:
        return kelp_grpc_add_slice(arena, &out->parameters, field, "parameters");
    case REQUEST_INPUTS:
        return kelp_grpc_add_slice(arena, &out->inputs, field, "inputs");
    case REQUEST_OUTPUTS:
        return kelp_grpc_add_slice(arena, &out->outputs, field, "outputs");
    case REQUEST_RAW:
        return kelp_grpc_add_slice(arena, &out->raw, field, "raw_input_contents");
    default:
        return NULL;
    }
}

kelp_status *kelp_grpc_scan_request(kelp_arena *arena, kelp_str message,
                                    kelp_grpc_infer_request *out) {
    kelp_protobuf wire = kelp_protobuf_of(message);
    kelp_protobuf_field field;
    bool more;
    *out = (kelp_grpc_infer_request){.model = "", .version = -1, .id = ""};
    KELP_TRY(kelp_grpc_next(&wire, "ModelInferRequest", &field, &more));
    while (more) {
        KELP_TRY(scan_field(arena, &field, out));
        KELP_TRY(kelp_grpc_next(&wire, "ModelInferRequest", &field, &more));
    }
    return NULL;
}

kelp_status *kelp_grpc_peek_model(kelp_arena *arena, kelp_str first, const char **out_model,
                                  int64_t *out_version) {
    kelp_protobuf wire = kelp_protobuf_of(first);
    kelp_protobuf_field field;
    kelp_grpc_infer_request found = {.version = -1};
    while (kelp_protobuf_next(&wire, &field) == KELP_PROTOBUF_FIELD &&
           (field.number == REQUEST_MODEL || field.number == REQUEST_VERSION))
        KELP_TRY(scan_field(arena, &field, &found));
    *out_model = found.model;
    *out_version = found.version;
    return NULL;
}

/* ---- parameters ---- */

static kelp_status *wrong_kind(const kelp_grpc_parameter *p, const char *expected) {
    static const char *const kinds[] = {"no value",     "bool_param",   "int64_param",
                                        "uint64_param", "double_param", "string_param",
                                        "bytes_param"};
    KELP_ASSERT((size_t)p->kind < KELP_COUNT(kinds));
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "parameter '%s' has the wrong type: expected %s, found %s", p->name, expected,
                      kinds[p->kind]);
}

/* Returns a parameter that must be an integer of at least 0. */
static kelp_status *unsigned_value(const kelp_grpc_parameter *p, uint64_t *out) {
    if (p->kind != KELP_GRPC_UINT_VALUE && p->kind != KELP_GRPC_INT_VALUE)
        return wrong_kind(p, "int64_param or uint64_param");
    if (p->kind == KELP_GRPC_INT_VALUE && (int64_t)p->u64 < 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "parameter '%s': expected an integer of at least 0, found %lld", p->name,
                          (long long)p->u64);
    *out = p->u64;
    return NULL;
}

static kelp_status *text_value(kelp_arena *arena, const kelp_grpc_parameter *p, const char **out) {
    kelp_protobuf_field field = {.type = KELP_PROTOBUF_BYTES, .bytes = p->bytes};
    if (p->kind != KELP_GRPC_STRING_VALUE)
        return wrong_kind(p, "string_param");
    return kelp_grpc_text(arena, &field, p->name, out);
}

/* The state of filling in a request. */
typedef struct filler {
    kelp_arena *arena;
    kelp_shm_registry *shm; /* may be NULL */
    kelp_grpc_infer_request *decoded;
    TRITONSERVER_InferenceRequest *request;
    uint32_t flags;  /* of the sequence */
    size_t next_raw; /* the first of the raw contents that belongs to no input yet */
} filler;

static kelp_status *set_sequence_id(filler *f, const kelp_grpc_parameter *p) {
    uint64_t id = p->u64;
    const char *text;
    if (p->kind == KELP_GRPC_STRING_VALUE) {
        KELP_TRY(text_value(f->arena, p, &text));
        return kelp_v2_status(
            TRITONSERVER_InferenceRequestSetCorrelationIdString(f->request, text));
    }
    if (p->kind != KELP_GRPC_INT_VALUE && p->kind != KELP_GRPC_UINT_VALUE)
        return wrong_kind(p, "int64_param or string_param");
    return kelp_v2_status(TRITONSERVER_InferenceRequestSetCorrelationId(f->request, id));
}

static kelp_status *set_flag(filler *f, const kelp_grpc_parameter *p, uint32_t flag) {
    if (p->kind != KELP_GRPC_BOOL_VALUE)
        return wrong_kind(p, "bool_param");
    f->flags = p->u64 != 0 ? f->flags | flag : f->flags & ~flag;
    return NULL;
}

static kelp_status *set_custom(filler *f, const kelp_grpc_parameter *p) {
    TRITONSERVER_InferenceRequest *request = f->request;
    const char *text;
    switch (p->kind) {
    case KELP_GRPC_STRING_VALUE:
        KELP_TRY(text_value(f->arena, p, &text));
        return kelp_v2_status(
            TRITONSERVER_InferenceRequestSetStringParameter(request, p->name, text));
    case KELP_GRPC_BOOL_VALUE:
        return kelp_v2_status(
            TRITONSERVER_InferenceRequestSetBoolParameter(request, p->name, p->u64 != 0));
    case KELP_GRPC_DOUBLE_VALUE:
        return kelp_v2_status(
            TRITONSERVER_InferenceRequestSetDoubleParameter(request, p->name, p->f64));
    case KELP_GRPC_UINT_VALUE:
        if (p->u64 > INT64_MAX)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "parameter '%s': expected at most %lld, found %llu", p->name,
                              (long long)INT64_MAX, (unsigned long long)p->u64);
        return kelp_v2_status(
            TRITONSERVER_InferenceRequestSetIntParameter(request, p->name, (int64_t)p->u64));
    case KELP_GRPC_INT_VALUE:
        return kelp_v2_status(
            TRITONSERVER_InferenceRequestSetIntParameter(request, p->name, (int64_t)p->u64));
    default:
        return wrong_kind(p, "a value");
    }
}

static kelp_status *set_parameter(filler *f, const kelp_grpc_parameter *p) {
    uint64_t value;
    if (strcmp(p->name, "sequence_id") == 0)
        return set_sequence_id(f, p);
    if (strcmp(p->name, "sequence_start") == 0)
        return set_flag(f, p, TRITONSERVER_REQUEST_FLAG_SEQUENCE_START);
    if (strcmp(p->name, "sequence_end") == 0)
        return set_flag(f, p, TRITONSERVER_REQUEST_FLAG_SEQUENCE_END);
    if (strcmp(p->name, "priority") == 0) {
        KELP_TRY(unsigned_value(p, &value));
        return kelp_v2_status(TRITONSERVER_InferenceRequestSetPriorityUInt64(f->request, value));
    }
    if (strcmp(p->name, "timeout") == 0) {
        KELP_TRY(unsigned_value(p, &value));
        return kelp_v2_status(
            TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(f->request, value));
    }
    if (strcmp(p->name, "triton_enable_empty_final_response") == 0) {
        if (p->kind != KELP_GRPC_BOOL_VALUE)
            return wrong_kind(p, "bool_param");
        f->decoded->sends_empty_final = p->u64 != 0;
        return NULL;
    }
    if (strncmp(p->name, "triton_", 7) == 0)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "parameter '%s': names that begin with 'triton_' are reserved for Triton usage",
            p->name);
    return set_custom(f, p);
}

/* The range of a shared memory region that is an input or an output. */
typedef struct range {
    const char *region; /* NULL: none */
    uint64_t offset, byte_size;
} range;

/* Reads a parameter of a shared memory region; ignores others. */
static kelp_status *read_range(kelp_arena *arena, const kelp_grpc_parameter *p, range *inout) {
    if (strcmp(p->name, "shared_memory_region") == 0)
        return text_value(arena, p, &inout->region);
    if (strcmp(p->name, "shared_memory_offset") == 0)
        return unsigned_value(p, &inout->offset);
    if (strcmp(p->name, "shared_memory_byte_size") == 0)
        return unsigned_value(p, &inout->byte_size);
    return NULL;
}

/* ---- inputs ---- */

/* An input while it is decoded. */
typedef struct input {
    const char *name;
    TRITONSERVER_DataType type;
    int64_t shape[MAX_RANK];
    size_t rank;
    bool have_contents;
    kelp_str contents;
    range shared;
    uint64_t count; /* of elements */
    const char *shape_text;
} input;

static kelp_status *add_dimension(input *in, uint64_t value) {
    if (in->rank == MAX_RANK)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "input '%s': a shape has at most %d dimensions",
                          in->name, MAX_RANK);
    in->shape[in->rank++] = (int64_t)value;
    return NULL;
}

static kelp_status *read_shape(input *in, const kelp_protobuf_field *field) {
    if (field->type == KELP_PROTOBUF_VARINT)
        return add_dimension(in, field->value);
    if (field->type != KELP_PROTOBUF_BYTES)
        return kelp_grpc_malformed("InferInputTensor");
    kelp_protobuf wire = kelp_protobuf_of(field->bytes);
    while (wire.at < wire.end) {
        uint64_t value;
        if (!kelp_protobuf_varint(&wire, &value))
            return kelp_grpc_malformed("InferInputTensor");
        KELP_TRY(add_dimension(in, value));
    }
    return NULL;
}

static kelp_status *read_type(input *in, const kelp_protobuf_field *field) {
    char name[MAX_TYPE_NAME + 1] = "";
    if (field->type != KELP_PROTOBUF_BYTES)
        return kelp_grpc_malformed("InferInputTensor");
    if (field->bytes.length <= MAX_TYPE_NAME && field->bytes.length > 0)
        memcpy(name, field->bytes.data, field->bytes.length);
    in->type = TRITONSERVER_StringToDataType(name);
    if (in->type == TRITONSERVER_TYPE_INVALID)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s': unknown datatype '%.*s': expected BOOL, UINT8 to UINT64, "
                          "INT8 to INT64, FP16, FP32, FP64, BF16 or BYTES",
                          in->name, (int)KELP_MIN(field->bytes.length, (size_t)MAX_TYPE_NAME),
                          field->bytes.data);
    return NULL;
}

static kelp_status *read_input_parameter(filler *f, input *in, const kelp_protobuf_field *field) {
    kelp_grpc_parameter p;
    if (field->type != KELP_PROTOBUF_BYTES)
        return kelp_grpc_malformed("InferInputTensor");
    KELP_TRY(kelp_grpc_read_parameter(f->arena, field->bytes, false, &p));
    return read_range(f->arena, &p, &in->shared);
}

static kelp_status *read_input_field(filler *f, input *in, const kelp_protobuf_field *field) {
    switch (field->number) {
    case INPUT_NAME:
        return kelp_grpc_text(f->arena, field, "the name of an input", &in->name);
    case INPUT_TYPE:
        return read_type(in, field);
    case INPUT_SHAPE:
        return read_shape(in, field);
    case INPUT_PARAMETERS:
        return read_input_parameter(f, in, field);
    case INPUT_CONTENTS:
        if (field->type != KELP_PROTOBUF_BYTES)
            return kelp_grpc_malformed("InferInputTensor");
        if (in->have_contents)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "input '%s' has more than one 'contents'",
                              in->name);
        in->have_contents = true;
        in->contents = field->bytes;
        return NULL;
    default:
        return NULL;
    }
}

static kelp_status *read_input(filler *f, kelp_str message, input *out) {
    kelp_protobuf wire = kelp_protobuf_of(message);
    kelp_protobuf_field field;
    bool more;
    KELP_TRY(kelp_grpc_next(&wire, "InferInputTensor", &field, &more));
    while (more) {
        KELP_TRY(read_input_field(f, out, &field));
        KELP_TRY(kelp_grpc_next(&wire, "InferInputTensor", &field, &more));
    }
    if (out->type == TRITONSERVER_TYPE_INVALID)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "input '%s' has no 'datatype'", out->name);
    if (!kelp_v2_element_count(out->shape, out->rank, &out->count))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s': shape %s has a negative dimension or too many elements",
                          out->name, kelp_v2_shape_text(f->arena, out->shape, out->rank));
    return NULL;
}

static kelp_status *copy_data(filler *f, kelp_str *inout) {
    void *copy = kelp_arena_alloc(f->arena, inout->length, TENSOR_ALIGNMENT);
    if (copy == NULL)
        return kelp_status_oom();
    if (inout->length > 0)
        memcpy(copy, inout->data, inout->length);
    inout->data = copy;
    return NULL;
}

/* Checks the size of an input's bytes. Copies them if they are not aligned for backends, which read
 * elements in place. */
static kelp_status *check_bytes(filler *f, const input *in, kelp_str *inout) {
    size_t element = TRITONSERVER_DataTypeByteSize(in->type), expected;
    if (!kelp_size_mul((size_t)in->count, element, &expected))
        expected = SIZE_MAX;
    if (element > 0 && expected != inout->length)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input byte size mismatch for input '%s' for model '%s'. Expected %zu, "
                          "got %zu for shape %s of %s",
                          in->name, f->decoded->model, expected, inout->length,
                          kelp_v2_shape_text(f->arena, in->shape, in->rank),
                          TRITONSERVER_DataTypeString(in->type));
    if (element > 1 && (uintptr_t)inout->data % element != 0)
        return copy_data(f, inout);
    return NULL;
}

/* Takes the next raw contents. */
static kelp_status *take_raw(filler *f, const input *in, kelp_str *out) {
    const kelp_grpc_slices *raw = &f->decoded->raw;
    if (in->have_contents && in->contents.length > 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "contents field must not be specified when using raw_input_contents for "
                          "'%s' for model '%s'",
                          in->name, f->decoded->model);
    if (f->next_raw == raw->count)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s' has no data: expected an entry of raw_input_contents for "
                          "each input that is not in shared memory, found %zu",
                          in->name, raw->count);
    *out = raw->items[f->next_raw++];
    return check_bytes(f, in, out);
}

/* Takes the bytes from a shared memory region. Strings are copied, because the client could change
 * their lengths after they were checked. */
static kelp_status *take_shared(filler *f, const input *in, kelp_str *out) {
    void *address;
    if (in->have_contents && in->contents.length > 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "unexpected 'contents' for input '%s': its data is in shared memory",
                          in->name);
    if (in->type == TRITONSERVER_TYPE_BYTES && in->shared.byte_size > UINT32_MAX)
        return KELP_ERROR(KELP_OUT_OF_RANGE,
                          "input '%s': expected at most %u bytes of strings, found %llu", in->name,
                          UINT32_MAX, (unsigned long long)in->shared.byte_size);
    KELP_TRY(kelp_shm_use_range(f->shm, f->arena, in->shared.region, in->shared.offset,
                                in->shared.byte_size, &f->decoded->regions, &address));
    *out = (kelp_str){address, (size_t)in->shared.byte_size};
    return in->type == TRITONSERVER_TYPE_BYTES ? copy_data(f, out) : check_bytes(f, in, out);
}

static kelp_status *add_input(filler *f, kelp_str message) {
    input in = {.name = ""};
    kelp_str data = {0};
    KELP_TRY(read_input(f, message, &in));
    KELP_TRY(kelp_v2_status(
        TRITONSERVER_InferenceRequestAddInput(f->request, in.name, in.type, in.shape, in.rank)));
    if (in.shared.region != NULL)
        KELP_TRY(take_shared(f, &in, &data));
    else if (f->decoded->raw.count > 0)
        KELP_TRY(take_raw(f, &in, &data));
    else
        KELP_TRY(kelp_grpc_read_contents(f->arena, in.name, in.type, in.count,
                                         kelp_v2_shape_text(f->arena, in.shape, in.rank),
                                         in.contents, &data));
    return kelp_v2_status(TRITONSERVER_InferenceRequestAppendInputData(
        f->request, in.name, data.data != NULL ? data.data : "", data.length,
        TRITONSERVER_MEMORY_CPU, 0));
}

/* ---- outputs ---- */

static kelp_status *read_output_parameter(filler *f, const kelp_protobuf_field *field,
                                          kelp_grpc_requested_output *out, range *inout_shared) {
    kelp_grpc_parameter p;
    uint64_t classes;
    if (field->type != KELP_PROTOBUF_BYTES)
        return kelp_grpc_malformed("InferRequestedOutputTensor");
    KELP_TRY(kelp_grpc_read_parameter(f->arena, field->bytes, false, &p));
    if (strcmp(p.name, "classification") != 0)
        return read_range(f->arena, &p, inout_shared);
    KELP_TRY(unsigned_value(&p, &classes));
    if (classes > MAX_CLASSES)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "output '%s': classification: expected at most %d classes, found %llu",
                          out->name, MAX_CLASSES, (unsigned long long)classes);
    out->classes = (uint32_t)classes;
    return NULL;
}

static kelp_status *add_output(filler *f, kelp_str message, kelp_grpc_requested_output *out) {
    kelp_protobuf wire = kelp_protobuf_of(message);
    kelp_protobuf_field field;
    bool more;
    range shared = {0};
    out->name = "";
    KELP_TRY(kelp_grpc_next(&wire, "InferRequestedOutputTensor", &field, &more));
    while (more) {
        if (field.number == OUTPUT_NAME)
            KELP_TRY(kelp_grpc_text(f->arena, &field, "the name of an output", &out->name));
        else if (field.number == OUTPUT_PARAMETERS)
            KELP_TRY(read_output_parameter(f, &field, out, &shared));
        KELP_TRY(kelp_grpc_next(&wire, "InferRequestedOutputTensor", &field, &more));
    }
    if (shared.region != NULL) {
        if (out->classes > 0)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "output '%s': 'shared_memory_region' cannot be combined with "
                              "'classification'",
                              out->name);
        out->region = shared.region;
        out->memory_bytes = shared.byte_size;
        KELP_TRY(kelp_shm_use_range(f->shm, f->arena, shared.region, shared.offset,
                                    shared.byte_size, &f->decoded->regions, &out->memory));
    }
    return kelp_v2_status(TRITONSERVER_InferenceRequestAddRequestedOutput(f->request, out->name));
}

static kelp_status *add_outputs(filler *f) {
    const kelp_grpc_slices *outputs = &f->decoded->outputs;
    if (outputs->count == 0)
        return NULL;
    kelp_grpc_requested_output *requested =
        KELP_ARENA_ARRAY(f->arena, outputs->count, kelp_grpc_requested_output);
    if (requested == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < outputs->count; i++)
        KELP_TRY(add_output(f, outputs->items[i], &requested[i]));
    f->decoded->requested = requested;
    f->decoded->requested_count = outputs->count;
    return NULL;
}

const kelp_grpc_requested_output *kelp_grpc_find_requested(const kelp_grpc_infer_request *request,
                                                           size_t index, const char *name) {
    /* Most models return the outputs in the requested order. */
    if (index < request->requested_count && strcmp(request->requested[index].name, name) == 0)
        return &request->requested[index];
    for (size_t i = 0; i < request->requested_count; i++)
        if (strcmp(request->requested[i].name, name) == 0)
            return &request->requested[i];
    return NULL;
}

/* ---- the request ---- */

kelp_status *kelp_grpc_fill_request(kelp_arena *arena, kelp_shm_registry *shm,
                                    kelp_grpc_infer_request *inout,
                                    TRITONSERVER_InferenceRequest *request) {
    filler f = {.arena = arena, .shm = shm, .decoded = inout, .request = request};
    if (*inout->id != '\0')
        KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceRequestSetId(request, inout->id)));
    for (size_t i = 0; i < inout->parameters.count; i++) {
        kelp_grpc_parameter p;
        KELP_TRY(kelp_grpc_read_parameter(arena, inout->parameters.items[i], false, &p));
        KELP_TRY(set_parameter(&f, &p));
    }
    for (size_t i = 0; i < inout->inputs.count; i++)
        KELP_TRY(add_input(&f, inout->inputs.items[i]));
    if (f.next_raw != inout->raw.count)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "raw_input_contents has more entries than the request has inputs "
                          "that are not in shared memory: expected %zu, found %zu",
                          f.next_raw, inout->raw.count);
    KELP_TRY(add_outputs(&f));
    if (f.flags != 0)
        KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceRequestSetFlags(request, f.flags)));
    return NULL;
}
