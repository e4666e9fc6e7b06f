/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inference requests: the JSON object, and the binary tensors behind it, become a
 * TRITONSERVER_InferenceRequest. Nothing is copied that need not be: binary tensors are handed to
 * the server where they lie in the body.
 *
 * Source: the inference protocol of KServe V2 with its binary tensor, classification and sequence
 * extensions.
 */
#include "base/checked.h"
#include "base/json.h"
#include "frontends/http/call.h"
#include "frontends/http/v2_tensor.h"

#define MAX_RANK 64
#define MAX_CLASSES 1000000

typedef struct decoder {
    kelp_http_call *call;
    kelp_json_reader json;
    kelp_str binary; /* not yet taken */
    uint32_t flags;  /* of the sequence */
    size_t wish_capacity;
    kelp_http_output_wish *wishes;
    bool have_inputs;
} decoder;

typedef struct input {
    const char *name;
    TRITONSERVER_DataType type;
    bool have_type;
    bool have_shape;
    bool have_data;
    bool have_binary;
    bool data_read; /* else it waits at data_position for type and shape */
    int64_t shape[MAX_RANK];
    size_t rank;
    size_t data_position;
    uint64_t binary_bytes;
    kelp_v2_data data;
} input;

static kelp_status *bad_type(const char *what, const char *expected, kelp_json_type found) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: expected %s, found %s", what, expected,
                      kelp_json_type_name(found));
}

/* The next token, of that type. */
static kelp_status *expect(decoder *d, kelp_json_type type, const char *what, const char *expected,
                           kelp_json_token *out) {
    KELP_TRY(kelp_json_next(&d->json, out));
    return out->type == type ? NULL : bad_type(what, expected, out->type);
}

/* A terminated copy; text with a NUL inside cannot be a name. */
static kelp_status *copy_text(decoder *d, kelp_str s, const char *what, const char **out) {
    if (s.length && memchr(s.data, 0, s.length))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: a NUL character is not allowed", what);
    *out = kelp_arena_strndup(&d->call->arena, s.data ? s.data : "", s.length);
    return *out ? NULL : kelp_status_oom();
}

static kelp_status *read_text(decoder *d, const char *what, const char **out) {
    kelp_json_token token;
    KELP_TRY(expect(d, KELP_JSON_STRING, what, "a string", &token));
    return copy_text(d, token.string, what, out);
}

static kelp_status *token_u64(const kelp_json_token *token, const char *what, uint64_t *out) {
    if (token->type != KELP_JSON_UINT && (token->type != KELP_JSON_INT || token->i64 < 0))
        return bad_type(what, "a number that is not negative", token->type);
    *out = token->u64;
    return NULL;
}

static kelp_status *token_bool(const kelp_json_token *token, const char *what, bool *out) {
    if (token->type != KELP_JSON_BOOL)
        return bad_type(what, "true or false", token->type);
    *out = token->boolean;
    return NULL;
}

/* Moves the reader behind a value that was read by other means and ends at `end`. The reader is
 * shown a null in its place, so that its grammar goes on after the value; the colon is shown too
 * where the reader has not yet passed it. */
static kelp_status *jump(kelp_json_reader *json, size_t end) {
    const char *text = json->text;
    size_t length = json->length;
    size_t at = json->position;
    while (at < length &&
           (text[at] == ' ' || text[at] == '\t' || text[at] == '\r' || text[at] == '\n'))
        at++;
    kelp_str stand_in = at < length && text[at] == ':' ? KELP_STR(":null ") : KELP_STR("null ");
    kelp_json_token token;
    json->text = stand_in.data;
    json->length = stand_in.length;
    json->position = 0;
    kelp_status *status = kelp_json_next(json, &token);
    json->text = text;
    json->length = length;
    json->position = end;
    return status;
}

/* Where the value behind the key that was just read begins. */
static size_t value_position(const kelp_json_reader *json) {
    size_t at = json->position;
    bool colon = false;
    while (at < json->length) {
        char c = json->text[at];
        if (c == ':' && !colon)
            colon = true;
        else if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
            break;
        at++;
    }
    return at;
}

/* ---- inputs ---- */

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

static kelp_status *read_input_data(decoder *d, input *in, size_t *inout_position) {
    uint64_t count;
    const char *shape = kelp_v2_shape_text(&d->call->arena, in->shape, in->rank);
    if (!kelp_v2_element_count(in->shape, in->rank, &count))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s': shape %s has a negative extent or too many elements",
                          in->name, shape);
    return kelp_v2_read_data(&d->call->arena, in->name, in->type, count, shape, d->json.text,
                             d->json.length, inout_position, &in->data);
}

static kelp_status *read_data_member(decoder *d, input *in) {
    if (in->have_data)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "input '%s' has 'data' twice",
                          in->name ? in->name : "");
    in->have_data = true;
    in->data_position = value_position(&d->json);
    if (!in->name || !in->have_type || !in->have_shape) /* legal in any order: come back later */
        return kelp_json_skip(&d->json);
    size_t position = in->data_position;
    KELP_TRY(read_input_data(d, in, &position));
    in->data_read = true;
    return jump(&d->json, position);
}

static kelp_status *read_input_parameters(decoder *d, input *in) {
    kelp_json_token token;
    KELP_TRY(expect(d, KELP_JSON_OBJECT, "the parameters of an input", "an object", &token));
    for (;;) {
        KELP_TRY(kelp_json_next(&d->json, &token));
        if (token.type == KELP_JSON_OBJECT_END)
            return NULL;
        kelp_str key = token.string;
        if (kelp_str_is(key, "binary_data_size")) {
            KELP_TRY(kelp_json_next(&d->json, &token));
            KELP_TRY(token_u64(&token, "binary_data_size", &in->binary_bytes));
            in->have_binary = true;
        } else if (kelp_str_starts(key, KELP_STR("shared_memory_"))) {
            return KELP_ERROR(KELP_UNIMPLEMENTED,
                              "input '%s': shared memory regions are not served here",
                              in->name ? in->name : "");
        } else {
            KELP_TRY(kelp_json_skip(&d->json));
        }
    }
}

static kelp_status *read_input_member(decoder *d, input *in, kelp_str key) {
    if (kelp_str_is(key, "name"))
        return read_text(d, "the name of an input", &in->name);
    if (kelp_str_is(key, "shape"))
        return read_shape(d, in);
    if (kelp_str_is(key, "data"))
        return read_data_member(d, in);
    if (kelp_str_is(key, "parameters"))
        return read_input_parameters(d, in);
    if (!kelp_str_is(key, "datatype"))
        return kelp_json_skip(&d->json);
    const char *text;
    KELP_TRY(read_text(d, "the datatype of an input", &text));
    in->type = TRITONSERVER_StringToDataType(text);
    if (in->type == TRITONSERVER_TYPE_INVALID)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s': '%s' is not a datatype; those are BOOL, UINT8 to UINT64, "
                          "INT8 to "
                          "INT64, FP16, FP32, FP64, BF16 and BYTES",
                          in->name ? in->name : "", text);
    in->have_type = true;
    return NULL;
}

/* The input's share of the bytes behind the JSON. */
static kelp_status *take_binary(decoder *d, input *in) {
    if (in->binary_bytes > d->binary.length)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s': binary_data_size is %llu, but only %zu bytes are left "
                          "behind "
                          "the JSON",
                          in->name, (unsigned long long)in->binary_bytes, d->binary.length);
    size_t size = (size_t)in->binary_bytes;
    size_t element = TRITONSERVER_DataTypeByteSize(in->type);
    uint64_t count;
    const char *shape = kelp_v2_shape_text(&d->call->arena, in->shape, in->rank);
    if (!kelp_v2_element_count(in->shape, in->rank, &count))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s': shape %s has a negative extent or too many elements",
                          in->name, shape);
    size_t expected;
    if (element &&
        (count > SIZE_MAX || !kelp_size_mul((size_t)count, element, &expected) || expected != size))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s': expected %llu elements of %zu bytes for shape %s of %s, "
                          "found "
                          "%zu bytes",
                          in->name, (unsigned long long)count, element, shape,
                          TRITONSERVER_DataTypeString(in->type), size);
    in->data.bytes = (void *)(uintptr_t)d->binary.data;
    in->data.size_bytes = size;
    d->binary.data += size;
    d->binary.length -= size;
    if (element > 1 && (uintptr_t)in->data.bytes % element != 0) {
        /* Backends read elements in place; C wants them aligned. Only tensors behind an odd-sized
         * one come here. */
        void *copy = kelp_arena_alloc(&d->call->arena, size, 64);
        if (!copy)
            return kelp_status_oom();
        memcpy(copy, in->data.bytes, size);
        in->data.bytes = copy;
    }
    return NULL;
}

static kelp_status *add_input(decoder *d, input *in) {
    if (!in->name)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "an input has no 'name'");
    if (!in->have_type || !in->have_shape)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "input '%s' has no '%s'", in->name,
                          in->have_shape ? "datatype" : "shape");
    if (in->have_data == in->have_binary)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s' must have either 'data' or the parameter "
                          "'binary_data_size', and has %s",
                          in->name, in->have_data ? "both" : "neither");
    if (in->have_binary) {
        KELP_TRY(take_binary(d, in));
    } else if (!in->data_read) {
        size_t position = in->data_position;
        KELP_TRY(read_input_data(d, in, &position));
    }
    TRITONSERVER_InferenceRequest *request = d->call->request;
    KELP_HTTP_TRY(
        TRITONSERVER_InferenceRequestAddInput(request, in->name, in->type, in->shape, in->rank));
    KELP_HTTP_TRY(TRITONSERVER_InferenceRequestAppendInputData(
        request, in->name, in->data.bytes, in->data.size_bytes, TRITONSERVER_MEMORY_CPU, 0));
    return NULL;
}

static kelp_status *read_inputs(decoder *d) {
    kelp_json_token token;
    KELP_TRY(expect(d, KELP_JSON_ARRAY, "'inputs'", "an array", &token));
    d->have_inputs = true;
    for (;;) {
        KELP_TRY(kelp_json_next(&d->json, &token));
        if (token.type == KELP_JSON_ARRAY_END)
            return NULL;
        if (token.type != KELP_JSON_OBJECT)
            return bad_type("an input", "an object", token.type);
        input in = {0};
        for (;;) {
            KELP_TRY(kelp_json_next(&d->json, &token));
            if (token.type == KELP_JSON_OBJECT_END)
                break;
            KELP_TRY(read_input_member(d, &in, token.string));
        }
        KELP_TRY(add_input(d, &in));
    }
}

/* ---- outputs ---- */

typedef struct output {
    const char *name;
    bool have_binary;
    bool binary;
    uint64_t classes;
} output;

static kelp_status *read_output_parameters(decoder *d, output *out) {
    kelp_json_token token;
    KELP_TRY(expect(d, KELP_JSON_OBJECT, "the parameters of an output", "an object", &token));
    for (;;) {
        KELP_TRY(kelp_json_next(&d->json, &token));
        if (token.type == KELP_JSON_OBJECT_END)
            return NULL;
        kelp_str key = token.string;
        if (kelp_str_is(key, "binary_data")) {
            KELP_TRY(kelp_json_next(&d->json, &token));
            KELP_TRY(token_bool(&token, "binary_data", &out->binary));
            out->have_binary = true;
        } else if (kelp_str_is(key, "classification")) {
            KELP_TRY(kelp_json_next(&d->json, &token));
            KELP_TRY(token_u64(&token, "classification", &out->classes));
            if (out->classes > MAX_CLASSES)
                return KELP_ERROR(KELP_INVALID_ARGUMENT,
                                  "classification asks for %llu classes; at "
                                  "most %d are given",
                                  (unsigned long long)out->classes, MAX_CLASSES);
        } else if (kelp_str_starts(key, KELP_STR("shared_memory_"))) {
            return KELP_ERROR(KELP_UNIMPLEMENTED,
                              "output '%s': shared memory regions are not served here",
                              out->name ? out->name : "");
        } else {
            KELP_TRY(kelp_json_skip(&d->json));
        }
    }
}

static kelp_status *add_wish(decoder *d, const output *out) {
    kelp_http_call *call = d->call;
    if (!out->name)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "an output has no 'name'");
    if (call->wish_count == d->wish_capacity) {
        size_t capacity = d->wish_capacity ? d->wish_capacity * 2 : 8;
        kelp_http_output_wish *wishes =
            KELP_ARENA_ARRAY(&call->arena, capacity, kelp_http_output_wish);
        if (!wishes)
            return kelp_status_oom();
        if (call->wish_count)
            memcpy(wishes, d->wishes, call->wish_count * sizeof(*wishes));
        d->wishes = wishes;
        call->wishes = wishes;
        d->wish_capacity = capacity;
    }
    d->wishes[call->wish_count++] =
        (kelp_http_output_wish){out->name, out->have_binary, out->binary, (uint32_t)out->classes};
    KELP_HTTP_TRY(TRITONSERVER_InferenceRequestAddRequestedOutput(call->request, out->name));
    return NULL;
}

static kelp_status *read_outputs(decoder *d) {
    kelp_json_token token;
    KELP_TRY(expect(d, KELP_JSON_ARRAY, "'outputs'", "an array", &token));
    for (;;) {
        KELP_TRY(kelp_json_next(&d->json, &token));
        if (token.type == KELP_JSON_ARRAY_END)
            return NULL;
        if (token.type != KELP_JSON_OBJECT)
            return bad_type("an output", "an object", token.type);
        output out = {0};
        for (;;) {
            KELP_TRY(kelp_json_next(&d->json, &token));
            if (token.type == KELP_JSON_OBJECT_END)
                break;
            if (kelp_str_is(token.string, "name"))
                KELP_TRY(read_text(d, "the name of an output", &out.name));
            else if (kelp_str_is(token.string, "parameters"))
                KELP_TRY(read_output_parameters(d, &out));
            else
                KELP_TRY(kelp_json_skip(&d->json));
        }
        KELP_TRY(add_wish(d, &out));
    }
}

/* ---- parameters of the request ---- */

static kelp_status *set_sequence_id(decoder *d, const kelp_json_token *token) {
    TRITONSERVER_InferenceRequest *request = d->call->request;
    if (token->type == KELP_JSON_STRING) {
        const char *text;
        KELP_TRY(copy_text(d, token->string, "sequence_id", &text));
        return kelp_http_status_of(
            TRITONSERVER_InferenceRequestSetCorrelationIdString(request, text));
    }
    uint64_t id = 0;
    KELP_TRY(token_u64(token, "sequence_id", &id));
    return kelp_http_status_of(TRITONSERVER_InferenceRequestSetCorrelationId(request, id));
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
    TRITONSERVER_InferenceRequest *request = d->call->request;
    const char *text;
    switch (token->type) {
    case KELP_JSON_STRING:
        KELP_TRY(copy_text(d, token->string, key, &text));
        return kelp_http_status_of(
            TRITONSERVER_InferenceRequestSetStringParameter(request, key, text));
    case KELP_JSON_INT:
        return kelp_http_status_of(
            TRITONSERVER_InferenceRequestSetIntParameter(request, key, token->i64));
    case KELP_JSON_BOOL:
        return kelp_http_status_of(
            TRITONSERVER_InferenceRequestSetBoolParameter(request, key, token->boolean));
    case KELP_JSON_DOUBLE:
        return kelp_http_status_of(
            TRITONSERVER_InferenceRequestSetDoubleParameter(request, key, token->f64));
    default:
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "parameter '%s': expected a string, a number or a boolean, found %s", key,
                          kelp_json_type_name(token->type));
    }
}

static kelp_status *read_parameter(decoder *d, kelp_str key) {
    kelp_json_token token;
    const char *name;
    TRITONSERVER_InferenceRequest *request = d->call->request;
    KELP_TRY(copy_text(d, key, "the name of a parameter", &name));
    KELP_TRY(kelp_json_next(&d->json, &token));
    if (strcmp(name, "sequence_id") == 0)
        return set_sequence_id(d, &token);
    if (strcmp(name, "sequence_start") == 0)
        return set_flag(d, &token, name, TRITONSERVER_REQUEST_FLAG_SEQUENCE_START);
    if (strcmp(name, "sequence_end") == 0)
        return set_flag(d, &token, name, TRITONSERVER_REQUEST_FLAG_SEQUENCE_END);
    if (strcmp(name, "binary_data_output") == 0)
        return token_bool(&token, name, &d->call->binary_default);
    bool priority = strcmp(name, "priority") == 0;
    if (priority || strcmp(name, "timeout") == 0) {
        uint64_t value = 0;
        KELP_TRY(token_u64(&token, name, &value));
        return kelp_http_status_of(
            priority ? TRITONSERVER_InferenceRequestSetPriorityUInt64(request, value)
                     : TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(request, value));
    }
    if (strncmp(name, "triton_", 7) == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "parameter '%s': names that begin with 'triton_' are reserved", name);
    return set_custom_parameter(d, name, &token);
}

static kelp_status *read_parameters(decoder *d) {
    kelp_json_token token;
    KELP_TRY(expect(d, KELP_JSON_OBJECT, "'parameters'", "an object", &token));
    for (;;) {
        KELP_TRY(kelp_json_next(&d->json, &token));
        if (token.type == KELP_JSON_OBJECT_END)
            return NULL;
        KELP_TRY(read_parameter(d, token.string));
    }
}

/* ---- the request ---- */

static kelp_status *read_member(decoder *d, kelp_str key) {
    if (kelp_str_is(key, "inputs"))
        return read_inputs(d);
    if (kelp_str_is(key, "outputs"))
        return read_outputs(d);
    if (kelp_str_is(key, "parameters"))
        return read_parameters(d);
    if (!kelp_str_is(key, "id"))
        return kelp_json_skip(&d->json);
    const char *id;
    KELP_TRY(read_text(d, "'id'", &id));
    return kelp_http_status_of(TRITONSERVER_InferenceRequestSetId(d->call->request, id));
}

kelp_status *kelp_v2_decode_request(kelp_http_call *call, kelp_str json, kelp_str binary) {
    decoder d = {.call = call, .binary = binary};
    kelp_json_token token;
    kelp_json_reader_init(&d.json, &call->arena, json.data, json.length);
    KELP_TRY(expect(&d, KELP_JSON_OBJECT, "the request", "a JSON object", &token));
    for (;;) {
        KELP_TRY(kelp_json_next(&d.json, &token));
        if (token.type == KELP_JSON_OBJECT_END)
            break;
        KELP_TRY(read_member(&d, token.string));
    }
    KELP_TRY(expect(&d, KELP_JSON_END, "the text behind the request's JSON", "nothing", &token));
    if (!d.have_inputs)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "the request has no 'inputs'");
    if (d.binary.length)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%zu bytes behind the JSON belong to no input: the inputs' "
                          "binary_data_size "
                          "add up to %zu, and the body has %zu",
                          d.binary.length, binary.length - d.binary.length, binary.length);
    if (d.flags)
        KELP_HTTP_TRY(TRITONSERVER_InferenceRequestSetFlags(call->request, d.flags));
    return NULL;
}

/* The name of the only input, out of the model's metadata. */
static kelp_status *only_input_name(kelp_http_call *call, const char **out) {
    TRITONSERVER_Message *message = NULL;
    KELP_HTTP_TRY(TRITONSERVER_ServerModelMetadata(kelp_http_core(call->server), call->model,
                                                   call->version, &message));
    const char *text;
    size_t length;
    kelp_json *metadata = NULL;
    kelp_status *status =
        kelp_http_status_of(TRITONSERVER_MessageSerializeToJson(message, &text, &length));
    if (!status)
        status = kelp_json_parse(&call->arena, "model metadata", text, length, &metadata);
    if (!status) {
        const kelp_json *inputs = kelp_json_get(metadata, "inputs");
        const kelp_json *name = inputs ? kelp_json_get(inputs->child, "name") : NULL;
        if (!name || inputs->count != 1)
            status = KELP_ERROR(KELP_INVALID_ARGUMENT,
                                "a body without JSON is one input's bytes, but model '%s' has %zu "
                                "inputs",
                                call->model, inputs ? inputs->count : (size_t)0);
        else
            *out = kelp_arena_strndup(&call->arena, name->string.data, name->string.length);
    }
    status = status ? status : *out ? NULL : kelp_status_oom();
    kelp_status_free(kelp_http_status_of(TRITONSERVER_MessageDelete(message)));
    return status;
}

kelp_status *kelp_v2_decode_raw(kelp_http_call *call, kelp_str body) {
    const char *name = NULL;
    KELP_TRY(only_input_name(call, &name));
    KELP_HTTP_TRY(TRITONSERVER_InferenceRequestAddRawInput(call->request, name));
    KELP_HTTP_TRY(TRITONSERVER_InferenceRequestAppendInputData(
        call->request, name, body.data, body.length, TRITONSERVER_MEMORY_CPU, 0));
    call->binary_default = true;
    return NULL;
}
