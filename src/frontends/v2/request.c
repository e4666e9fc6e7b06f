/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes inference requests: creates a TRITONSERVER_InferenceRequest from the JSON object and the
 * binary tensors after it. The server uses binary tensors in place in the body.
 *
 * Source: the inference protocol of KServe V2 with its binary tensor, classification and sequence
 * extensions.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "base/text/json.h"
#include "base/text/utf8.h"
#include "frontends/v2/exchange.h"
#include "frontends/tensor/tensor.h"

#define MAX_RANK 64
#define MAX_CLASSES 1000000
#define TENSOR_ALIGNMENT 64
#define FIRST_REQUESTED_CAPACITY 8

/* The state of decoding. */
typedef struct decoder {
    kelp_v2_exchange *exchange;
    kelp_json_reader json;
    kelp_str binary; /* the bytes after the JSON that do not belong to an input yet */
    uint32_t flags;  /* of the sequence */
    size_t requested_capacity;
    kelp_v2_requested_output *requested;
    unsigned seen; /* members of the request */
} decoder;

/* Members that may be in an object once. */
enum {
    SEEN_NAME = 1 << 0,
    SEEN_DATATYPE = 1 << 1,
    SEEN_SHAPE = 1 << 2,
    SEEN_PARAMETERS = 1 << 3,
    SEEN_INPUTS = 1 << 4,
    SEEN_OUTPUTS = 1 << 5,
    SEEN_ID = 1 << 6
};

/* Notes a member. INVALID_ARGUMENT the second time: readers disagree about which one counts. */
static kelp_status *note_member(unsigned *inout_seen, unsigned bit, kelp_str key) {
    if (*inout_seen & bit)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "member '%.*s' is in the same object twice",
                          KELP_STR_ARG(key));
    *inout_seen |= bit;
    return NULL;
}

/* Reads the value of the member `key` into `target`. */
typedef kelp_status *(*member_fn)(decoder *d, void *target, kelp_str key);

static kelp_status *bad_type(const char *what, const char *expected, kelp_json_type found) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: expected %s, found %s", what, expected,
                      kelp_json_type_name(found));
}

/* Reads the next token, and fails if it has a different type. */
static kelp_status *expect(decoder *d, kelp_json_type type, const char *what, const char *expected,
                           kelp_json_token *out) {
    KELP_TRY(kelp_json_next(&d->json, out));
    return out->type == type ? NULL : bad_type(what, expected, out->type);
}

/* Copies text and terminates it. Text that contains NUL cannot be a name; text that is not UTF-8
 * could not be in a response. */
static kelp_status *copy_text(decoder *d, kelp_str s, const char *what, const char **out) {
    if (!kelp_utf8_count(s, NULL))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: the text is not valid UTF-8", what);
    if (s.length && memchr(s.data, 0, s.length) != NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: a NUL character is not allowed", what);
    *out = kelp_arena_strndup(&d->exchange->arena, s.data != NULL ? s.data : "", s.length);
    return *out != NULL ? NULL : kelp_status_oom();
}

static kelp_status *read_text(decoder *d, const char *what, const char **out) {
    kelp_json_token token;
    KELP_TRY(expect(d, KELP_JSON_STRING, what, "a string", &token));
    return copy_text(d, token.string, what, out);
}

static kelp_status *token_u64(const kelp_json_token *token, const char *what, uint64_t *out) {
    if (token->type != KELP_JSON_UINT && (token->type != KELP_JSON_INT || token->i64 < 0))
        return bad_type(what, "a non-negative integer", token->type);
    *out = token->u64;
    return NULL;
}

static kelp_status *token_bool(const kelp_json_token *token, const char *what, bool *out) {
    if (token->type != KELP_JSON_BOOL)
        return bad_type(what, "true or false", token->type);
    *out = token->boolean;
    return NULL;
}

/* Reads the members of an object whose beginning has been read. */
static kelp_status *read_members(decoder *d, member_fn read_member, void *target) {
    kelp_json_token token;
    for (;;) {
        KELP_TRY(kelp_json_next(&d->json, &token));
        if (token.type == KELP_JSON_OBJECT_END)
            return NULL;
        KELP_TRY(read_member(d, target, token.string));
    }
}

static kelp_status *read_object(decoder *d, const char *what, member_fn read_member, void *target) {
    kelp_json_token token;
    KELP_TRY(expect(d, KELP_JSON_OBJECT, what, "an object", &token));
    return read_members(d, read_member, target);
}

/* Reads an array of objects; `read_item` is called after the beginning of each object. */
static kelp_status *read_objects(decoder *d, const char *what, const char *item,
                                 kelp_status *(*read_item)(decoder *d)) {
    kelp_json_token token;
    KELP_TRY(expect(d, KELP_JSON_ARRAY, what, "an array", &token));
    for (;;) {
        KELP_TRY(kelp_json_next(&d->json, &token));
        if (token.type == KELP_JSON_ARRAY_END)
            return NULL;
        if (token.type != KELP_JSON_OBJECT)
            return bad_type(item, "an object", token.type);
        KELP_TRY(read_item(d));
    }
}

/* The range of a shared memory region that is an input or an output. */
typedef struct range {
    const char *region; /* NULL: none */
    uint64_t offset, byte_size;
} range;

/* Reads the value of a parameter whose name begins with "shared_memory_". */
static kelp_status *read_range(decoder *d, kelp_str key, range *inout) {
    kelp_json_token token;
    if (kelp_str_is(key, "shared_memory_region"))
        return read_text(d, "shared_memory_region", &inout->region);
    if (kelp_str_is(key, "shared_memory_offset")) {
        KELP_TRY(kelp_json_next(&d->json, &token));
        return token_u64(&token, "shared_memory_offset", &inout->offset);
    }
    if (kelp_str_is(key, "shared_memory_byte_size")) {
        KELP_TRY(kelp_json_next(&d->json, &token));
        return token_u64(&token, "shared_memory_byte_size", &inout->byte_size);
    }
    return kelp_json_skip(&d->json);
}

/* ---- inputs ---- */

/* An input while it is decoded. */
typedef struct input {
    unsigned seen; /* members */
    const char *name;
    TRITONSERVER_DataType type;
    bool have_type;
    bool have_shape;
    bool have_data;
    bool have_binary;
    bool data_read; /* otherwise `data` at data_position is read when type and shape are known */
    int64_t shape[MAX_RANK];
    size_t rank;
    size_t data_position;
    uint64_t binary_bytes;
    range shared;
    kelp_v2_data data;
} input;

static kelp_status *read_shape(decoder *d, input *in) {
    kelp_json_token token;
    KELP_TRY(expect(d, KELP_JSON_ARRAY, "the shape of an input", "an array of numbers", &token));
    in->rank = 0;
    for (;;) {
        KELP_TRY(kelp_json_next(&d->json, &token));
        if (token.type == KELP_JSON_ARRAY_END)
            break;
        if (token.type != KELP_JSON_INT)
            return bad_type("the shape of an input", "integers", token.type);
        if (in->rank == MAX_RANK)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "input '%s': a shape has at most %d dimensions",
                              in->name ? in->name : "", MAX_RANK);
        in->shape[in->rank++] = token.i64;
    }
    in->have_shape = true;
    return NULL;
}

/* Computes the number of elements, and the shape as text for messages. */
static kelp_status *count_elements(decoder *d, const input *in, uint64_t *out_count,
                                   const char **out_shape) {
    *out_shape = kelp_v2_shape_text(&d->exchange->arena, in->shape, in->rank);
    if (!kelp_v2_element_count(in->shape, in->rank, out_count))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s': shape %s has a negative dimension or too many elements",
                          in->name, *out_shape);
    return NULL;
}

static kelp_status *read_input_data(decoder *d, input *in, size_t *inout_position) {
    uint64_t count;
    const char *shape;
    KELP_TRY(count_elements(d, in, &count, &shape));
    return kelp_v2_read_data(&d->exchange->arena, in->name, in->type, count, shape, d->json.text,
                             d->json.length, inout_position, &in->data);
}

static kelp_status *read_data_member(decoder *d, input *in) {
    if (in->have_data)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "input '%s' has more than one 'data'",
                          in->name ? in->name : "");
    in->have_data = true;
    in->data_position = kelp_json_value_offset(&d->json);
    if (in->name == NULL || !in->have_type || !in->have_shape) /* members may be in any order */
        return kelp_json_skip(&d->json);
    size_t position = in->data_position;
    KELP_TRY(read_input_data(d, in, &position));
    in->data_read = true;
    kelp_json_skip_to(&d->json, position);
    return NULL;
}

static kelp_status *read_input_parameter(decoder *d, void *target, kelp_str key) {
    input *in = target;
    if (kelp_str_is(key, "binary_data_size")) {
        kelp_json_token token;
        KELP_TRY(kelp_json_next(&d->json, &token));
        in->have_binary = true;
        return token_u64(&token, "binary_data_size", &in->binary_bytes);
    }
    if (kelp_str_starts(key, KELP_STR("shared_memory_")))
        return read_range(d, key, &in->shared);
    return kelp_json_skip(&d->json);
}

static kelp_status *read_input_member(decoder *d, void *target, kelp_str key) {
    input *in = target;
    if (kelp_str_is(key, "name")) {
        KELP_TRY(note_member(&in->seen, SEEN_NAME, key));
        return read_text(d, "the name of an input", &in->name);
    }
    if (kelp_str_is(key, "shape")) {
        KELP_TRY(note_member(&in->seen, SEEN_SHAPE, key));
        return read_shape(d, in);
    }
    if (kelp_str_is(key, "data"))
        return read_data_member(d, in);
    if (kelp_str_is(key, "parameters")) {
        KELP_TRY(note_member(&in->seen, SEEN_PARAMETERS, key));
        return read_object(d, "the parameters of an input", read_input_parameter, in);
    }
    if (!kelp_str_is(key, "datatype"))
        return kelp_json_skip(&d->json);
    KELP_TRY(note_member(&in->seen, SEEN_DATATYPE, key));
    const char *text;
    KELP_TRY(read_text(d, "the datatype of an input", &text));
    in->type = TRITONSERVER_StringToDataType(text);
    if (in->type == TRITONSERVER_TYPE_INVALID)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s': unknown datatype '%s': expected BOOL, UINT8 to UINT64, INT8 "
                          "to INT64, FP16, FP32, FP64, BF16 or BYTES",
                          in->name ? in->name : "", text);
    in->have_type = true;
    return NULL;
}

/* Checks that the declared size of a binary input matches its type and shape. */
static kelp_status *check_binary_size(decoder *d, const input *in) {
    if (in->binary_bytes > d->binary.length)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s': binary_data_size is %llu, but only %zu bytes remain after "
                          "the JSON",
                          in->name, (unsigned long long)in->binary_bytes, d->binary.length);
    size_t element = TRITONSERVER_DataTypeByteSize(in->type);
    uint64_t count;
    const char *shape;
    KELP_TRY(count_elements(d, in, &count, &shape));
    size_t expected;
    if (count > SIZE_MAX || !kelp_size_mul((size_t)count, element, &expected))
        expected = SIZE_MAX;
    if (element && expected != in->binary_bytes)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input byte size mismatch for input '%s' for model '%s'. Expected %zu, "
                          "got %llu for shape %s of %s",
                          in->name, d->exchange->model, expected,
                          (unsigned long long)in->binary_bytes, shape,
                          TRITONSERVER_DataTypeString(in->type));
    return NULL;
}

/* Returns true if the elements can be used in place. */
static bool is_aligned(const input *in) {
    size_t element = TRITONSERVER_DataTypeByteSize(in->type);
    return element <= 1 || (uintptr_t)in->data.bytes % element == 0;
}

static kelp_status *copy_data(decoder *d, input *in) {
    void *copy = kelp_arena_alloc(&d->exchange->arena, in->data.size_bytes, TENSOR_ALIGNMENT);
    if (copy == NULL)
        return kelp_status_oom();
    memcpy(copy, in->data.bytes, in->data.size_bytes);
    in->data.bytes = copy;
    return NULL;
}

/* Takes the input's bytes from those after the JSON. */
static kelp_status *take_binary(decoder *d, input *in) {
    KELP_ASSERT(in->have_binary && in->have_type && in->have_shape);
    KELP_ASSERT(in->rank <= MAX_RANK);
    KELP_TRY(check_binary_size(d, in));
    size_t size = (size_t)in->binary_bytes;
    in->data.bytes = (void *)(uintptr_t)d->binary.data;
    in->data.size_bytes = size;
    d->binary.data += size;
    d->binary.length -= size;
    /* Elements must be aligned, because backends read them in place. Only tensors after a tensor of
     * odd size are copied. */
    return is_aligned(in) ? NULL : copy_data(d, in);
}

/* Takes the input's bytes from a shared memory region. Strings are copied, because the client could
 * change their lengths after they were checked. */
static kelp_status *take_shared(decoder *d, input *in) {
    uint64_t limit = kelp_v2_service_of(d->exchange)->max_body_size_bytes;
    bool strings = in->type == TRITONSERVER_TYPE_BYTES;
    if (strings && in->shared.byte_size > limit)
        return KELP_ERROR(
            KELP_OUT_OF_RANGE, "input '%s': expected at most %llu bytes of strings, found %llu",
            in->name, (unsigned long long)limit, (unsigned long long)in->shared.byte_size);
    KELP_TRY(kelp_v2_use_region(d->exchange, in->shared.region, in->shared.offset,
                                in->shared.byte_size, &in->data.bytes));
    in->data.size_bytes = (size_t)in->shared.byte_size;
    return is_aligned(in) && !strings ? NULL : copy_data(d, in);
}

static kelp_status *add_input(decoder *d, input *in) {
    if (in->name == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "an input has no 'name'");
    if (!in->have_type || !in->have_shape)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "input '%s' has no '%s'", in->name,
                          in->have_shape ? "datatype" : "shape");
    int sources = in->have_data + in->have_binary + (in->shared.region != NULL);
    if (sources != 1)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "input '%s': expected one of 'data', the parameter 'binary_data_size' and "
            "the parameter 'shared_memory_region', found %d of them",
            in->name, sources);
    if (in->have_binary) {
        KELP_TRY(take_binary(d, in));
    } else if (in->shared.region != NULL) {
        KELP_TRY(take_shared(d, in));
    } else if (!in->data_read) {
        size_t position = in->data_position;
        KELP_TRY(read_input_data(d, in, &position));
    }
    TRITONSERVER_InferenceRequest *request = d->exchange->request;
    KELP_TRY(kelp_v2_status(
        TRITONSERVER_InferenceRequestAddInput(request, in->name, in->type, in->shape, in->rank)));
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceRequestAppendInputData(
        request, in->name, in->data.bytes, in->data.size_bytes, TRITONSERVER_MEMORY_CPU, 0)));
    return NULL;
}

static kelp_status *read_input(decoder *d) {
    input in = {0};
    KELP_TRY(read_members(d, read_input_member, &in));
    return add_input(d, &in);
}

/* ---- outputs ---- */

/* A requested output while it is decoded. */
typedef struct output {
    unsigned seen; /* members */
    const char *name;
    bool have_binary;
    bool binary;
    uint64_t classes;
    range shared;
} output;

static kelp_status *read_output_parameter(decoder *d, void *target, kelp_str key) {
    output *out = target;
    kelp_json_token token;
    if (kelp_str_is(key, "binary_data")) {
        KELP_TRY(kelp_json_next(&d->json, &token));
        out->have_binary = true;
        return token_bool(&token, "binary_data", &out->binary);
    }
    if (kelp_str_is(key, "classification")) {
        KELP_TRY(kelp_json_next(&d->json, &token));
        KELP_TRY(token_u64(&token, "classification", &out->classes));
        if (out->classes > MAX_CLASSES)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "classification: expected at most %d classes, found %llu",
                              MAX_CLASSES, (unsigned long long)out->classes);
        return NULL;
    }
    if (kelp_str_starts(key, KELP_STR("shared_memory_")))
        return read_range(d, key, &out->shared);
    return kelp_json_skip(&d->json);
}

static kelp_status *read_output_member(decoder *d, void *target, kelp_str key) {
    output *out = target;
    if (kelp_str_is(key, "name")) {
        KELP_TRY(note_member(&out->seen, SEEN_NAME, key));
        return read_text(d, "the name of an output", &out->name);
    }
    if (kelp_str_is(key, "parameters")) {
        KELP_TRY(note_member(&out->seen, SEEN_PARAMETERS, key));
        return read_object(d, "the parameters of an output", read_output_parameter, out);
    }
    return kelp_json_skip(&d->json);
}

static kelp_status *add_requested(decoder *d, const output *out) {
    kelp_v2_exchange *exchange = d->exchange;
    if (out->name == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "an output has no 'name'");
    if (out->shared.region != NULL && (out->classes != 0 || (out->have_binary && out->binary)))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "output '%s': 'shared_memory_region' cannot be combined with '%s'",
                          out->name, out->classes != 0 ? "classification" : "binary_data");
    if (exchange->requested_count == d->requested_capacity) {
        size_t capacity =
            d->requested_capacity ? d->requested_capacity * 2 : FIRST_REQUESTED_CAPACITY;
        kelp_v2_requested_output *requested =
            KELP_ARENA_ARRAY(&exchange->arena, capacity, kelp_v2_requested_output);
        if (requested == NULL)
            return kelp_status_oom();
        if (exchange->requested_count)
            memcpy(requested, d->requested, exchange->requested_count * sizeof *requested);
        d->requested = requested;
        exchange->requested = requested;
        d->requested_capacity = capacity;
    }
    kelp_v2_requested_output *added = &d->requested[exchange->requested_count];
    *added = (kelp_v2_requested_output){.name = out->name,
                                        .have_binary = out->have_binary,
                                        .binary = out->binary,
                                        .classes = (uint32_t)out->classes,
                                        .region = out->shared.region,
                                        .offset = out->shared.offset,
                                        .memory_bytes = out->shared.byte_size};
    if (out->shared.region != NULL)
        KELP_TRY(kelp_v2_use_region(exchange, out->shared.region, out->shared.offset,
                                    out->shared.byte_size, &added->memory));
    exchange->requested_count++;
    return kelp_v2_status(
        TRITONSERVER_InferenceRequestAddRequestedOutput(exchange->request, out->name));
}

static kelp_status *read_output(decoder *d) {
    output out = {0};
    KELP_TRY(read_members(d, read_output_member, &out));
    return add_requested(d, &out);
}

/* ---- parameters of the request ---- */

static kelp_status *set_sequence_id(decoder *d, const kelp_json_token *token) {
    TRITONSERVER_InferenceRequest *request = d->exchange->request;
    if (token->type == KELP_JSON_STRING) {
        const char *text;
        KELP_TRY(copy_text(d, token->string, "sequence_id", &text));
        return kelp_v2_status(TRITONSERVER_InferenceRequestSetCorrelationIdString(request, text));
    }
    uint64_t id = 0;
    KELP_TRY(token_u64(token, "sequence_id", &id));
    return kelp_v2_status(TRITONSERVER_InferenceRequestSetCorrelationId(request, id));
}

static kelp_status *set_flag(decoder *d, const kelp_json_token *token, const char *name,
                             uint32_t flag) {
    bool on = false;
    KELP_TRY(token_bool(token, name, &on));
    d->flags = on ? d->flags | flag : d->flags & ~flag;
    return NULL;
}

static kelp_status *set_custom_parameter(decoder *d, const char *key,
                                         const kelp_json_token *token) {
    TRITONSERVER_InferenceRequest *request = d->exchange->request;
    const char *text;
    switch (token->type) {
    case KELP_JSON_STRING:
        KELP_TRY(copy_text(d, token->string, key, &text));
        return kelp_v2_status(TRITONSERVER_InferenceRequestSetStringParameter(request, key, text));
    case KELP_JSON_INT:
        return kelp_v2_status(
            TRITONSERVER_InferenceRequestSetIntParameter(request, key, token->i64));
    case KELP_JSON_BOOL:
        return kelp_v2_status(
            TRITONSERVER_InferenceRequestSetBoolParameter(request, key, token->boolean));
    case KELP_JSON_DOUBLE:
        return kelp_v2_status(
            TRITONSERVER_InferenceRequestSetDoubleParameter(request, key, token->f64));
    default:
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "parameter '%s': expected a string, a number or a boolean, found %s", key,
                          kelp_json_type_name(token->type));
    }
}

static kelp_status *read_parameter(decoder *d, void *target, kelp_str key) {
    (void)target;
    kelp_json_token token;
    const char *name;
    TRITONSERVER_InferenceRequest *request = d->exchange->request;
    KELP_TRY(copy_text(d, key, "the name of a parameter", &name));
    KELP_TRY(kelp_json_next(&d->json, &token));
    if (strcmp(name, "sequence_id") == 0)
        return set_sequence_id(d, &token);
    if (strcmp(name, "sequence_start") == 0)
        return set_flag(d, &token, name, TRITONSERVER_REQUEST_FLAG_SEQUENCE_START);
    if (strcmp(name, "sequence_end") == 0)
        return set_flag(d, &token, name, TRITONSERVER_REQUEST_FLAG_SEQUENCE_END);
    if (strcmp(name, "binary_data_output") == 0)
        return token_bool(&token, name, &d->exchange->binary_default);
    bool priority = strcmp(name, "priority") == 0;
    if (priority || strcmp(name, "timeout") == 0) {
        uint64_t value = 0;
        KELP_TRY(token_u64(&token, name, &value));
        return kelp_v2_status(
            priority ? TRITONSERVER_InferenceRequestSetPriorityUInt64(request, value)
                     : TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(request, value));
    }
    if (kelp_str_starts(key, KELP_STR("triton_")))
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "parameter '%s': names that begin with 'triton_' are reserved for Triton usage", name);
    return set_custom_parameter(d, name, &token);
}

/* ---- the request ---- */

static kelp_status *read_member(decoder *d, void *target, kelp_str key) {
    (void)target;
    if (kelp_str_is(key, "inputs")) {
        KELP_TRY(note_member(&d->seen, SEEN_INPUTS, key));
        return read_objects(d, "'inputs'", "an input", read_input);
    }
    if (kelp_str_is(key, "outputs")) {
        KELP_TRY(note_member(&d->seen, SEEN_OUTPUTS, key));
        return read_objects(d, "'outputs'", "an output", read_output);
    }
    if (kelp_str_is(key, "parameters")) {
        KELP_TRY(note_member(&d->seen, SEEN_PARAMETERS, key));
        return read_object(d, "'parameters'", read_parameter, NULL);
    }
    if (!kelp_str_is(key, "id"))
        return kelp_json_skip(&d->json);
    KELP_TRY(note_member(&d->seen, SEEN_ID, key));
    const char *id;
    KELP_TRY(read_text(d, "'id'", &id));
    return kelp_v2_status(TRITONSERVER_InferenceRequestSetId(d->exchange->request, id));
}

kelp_status *kelp_v2_decode_request(kelp_v2_exchange *exchange, kelp_str json, kelp_str binary) {
    decoder d = {.exchange = exchange, .binary = binary};
    kelp_json_token token;
    kelp_json_reader_init(&d.json, &exchange->arena, json.data, json.length);
    KELP_TRY(read_object(&d, "the request", read_member, NULL));
    KELP_TRY(expect(&d, KELP_JSON_END, "the text after the JSON object", "nothing", &token));
    if (!(d.seen & SEEN_INPUTS))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "the request has no 'inputs'");
    if (d.binary.length)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%zu bytes after the JSON do not belong to an input: expected %zu bytes, "
                          "the sum of binary_data_size, found %zu",
                          d.binary.length, binary.length - d.binary.length, binary.length);
    if (d.flags)
        KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceRequestSetFlags(exchange->request, d.flags)));
    return NULL;
}

/* The server gives a raw input the name of the model's only input, and rejects the request if the
 * model has several inputs. */
kelp_status *kelp_v2_decode_raw(kelp_v2_exchange *exchange, kelp_str body) {
    static const char name[] = "raw_input";
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceRequestAddRawInput(exchange->request, name)));
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceRequestAppendInputData(
        exchange->request, name, body.data, body.length, TRITONSERVER_MEMORY_CPU, 0)));
    exchange->binary_default = true;
    return NULL;
}
