/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generate extension: requests and responses as flat JSON objects. A member of a request with
 * the name of an input is that input, `id` is the request's ID, the members of `parameters` count
 * as members of the request, and all others are parameters.
 *
 * Source: the generate extension of Triton's HTTP protocol.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "base/text/json.h"
#include "frontends/v2/exchange.h"
#include "frontends/tensor/tensor.h"

#include <stdlib.h>

#define MAX_RANK 64

/* ---- the request ---- */

/* The state of decoding. */
typedef struct decoder {
    kelp_v2_exchange *exchange;
    kelp_json_reader json;
    const kelp_json *inputs; /* of the model's metadata */
} decoder;

/* Copies and terminates text. */
static kelp_status *copy_text(decoder *d, kelp_str s, const char *what, const char **out) {
    if (s.length && memchr(s.data, 0, s.length) != NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: a NUL character is not allowed", what);
    *out = kelp_arena_strndup(&d->exchange->arena, s.data != NULL ? s.data : "", s.length);
    return *out != NULL ? NULL : kelp_status_oom();
}

/* Returns the metadata of an input, or NULL. */
static const kelp_json *find_input(const decoder *d, kelp_str name) {
    const kelp_json *input = d->inputs != NULL ? d->inputs->child : NULL;
    for (; input != NULL; input = input->next) {
        const kelp_json *own = kelp_json_get(input, "name");
        if (own != NULL && kelp_str_equal(own->string, name))
            return input;
    }
    return NULL;
}

static kelp_status *read_metadata(decoder *d) {
    kelp_v2_exchange *exchange = d->exchange;
    TRITONSERVER_Message *message = NULL;
    const char *text = NULL;
    size_t length = 0;
    KELP_TRY(kelp_v2_status(TRITONSERVER_ServerModelMetadata(
        kelp_v2_service_of(exchange)->core, exchange->model, exchange->version, &message)));
    kelp_status *status =
        kelp_v2_status(TRITONSERVER_MessageSerializeToJson(message, &text, &length));
    const char *copy = status == NULL ? kelp_arena_strndup(&exchange->arena, text, length) : NULL;
    kelp_status_free(kelp_v2_status(TRITONSERVER_MessageDelete(message)));
    if (status == NULL && copy == NULL)
        status = kelp_status_oom();
    kelp_json *metadata = NULL;
    if (status == NULL)
        status = kelp_json_parse(&exchange->arena, "model metadata", copy, length, &metadata);
    d->inputs = kelp_json_get(metadata, "inputs");
    return status;
}

/* Distributes `count` elements over the dimensions of an input: the innermost dynamic dimension
 * takes those that fixed dimensions leave, other dynamic dimensions are 1. */
static bool fill_shape(const kelp_json *dims, uint64_t count, int64_t *shape, size_t *out_rank) {
    size_t rank = 0;
    for (const kelp_json *dim = dims != NULL ? dims->child : NULL; dim != NULL; dim = dim->next) {
        if (rank == MAX_RANK)
            return false;
        shape[rank++] = dim->i64;
    }
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] < 0)
            continue;
        if (shape[i] == 0 || count % (uint64_t)shape[i] != 0)
            return false;
        count /= (uint64_t)shape[i];
    }
    for (size_t i = rank; i-- > 0;) {
        if (shape[i] < 0) {
            shape[i] = (int64_t)count;
            count = 1;
        }
    }
    *out_rank = rank;
    return count == 1;
}

/* Reads the value, a scalar or a one-dimensional array, as elements of the input. */
static kelp_status *read_elements(decoder *d, const char *name, TRITONSERVER_DataType type,
                                  kelp_v2_data *out) {
    kelp_arena *arena = &d->exchange->arena;
    size_t begin = kelp_json_value_offset(&d->json), position = 0;
    KELP_TRY(kelp_json_skip(&d->json));
    size_t length = d->json.position - begin;
    const char *text = d->json.text + begin;
    if (length == 0 || text[0] != '[') {
        char *array = kelp_arena_alloc(arena, length + 2, 1);
        if (array == NULL)
            return kelp_status_oom();
        array[0] = '[';
        memcpy(array + 1, text, length);
        array[length + 1] = ']';
        text = array;
        length += 2;
    }
    return kelp_v2_read_data(arena, name, type, KELP_V2_ANY_COUNT, "", text, length, &position,
                             out);
}

static kelp_status *read_input(decoder *d, const char *name, const kelp_json *input) {
    const kelp_json *type_name = kelp_json_get(input, "datatype");
    const kelp_json *dims = kelp_json_get(input, "shape");
    int64_t shape[MAX_RANK];
    size_t rank = 0;
    kelp_v2_data data;
    const char *text;
    if (type_name == NULL)
        return KELP_ERROR(KELP_INTERNAL, "input '%s': the metadata has no datatype", name);
    KELP_TRY(copy_text(d, type_name->string, "datatype", &text));
    TRITONSERVER_DataType type = TRITONSERVER_StringToDataType(text);
    KELP_TRY(read_elements(d, name, type, &data));
    if (!fill_shape(dims, data.count, shape, &rank))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "The schema can not convert input '%s' to tensor with proper shape: %llu "
                          "elements do not fill the model's dimensions",
                          name, (unsigned long long)data.count);
    TRITONSERVER_InferenceRequest *request = d->exchange->request;
    KELP_TRY(
        kelp_v2_status(TRITONSERVER_InferenceRequestAddInput(request, name, type, shape, rank)));
    return kelp_v2_status(TRITONSERVER_InferenceRequestAppendInputData(
        request, name, data.bytes, data.size_bytes, TRITONSERVER_MEMORY_CPU, 0));
}

/* Reads a parameter. Messages begin with `where`. */
static kelp_status *read_parameter(decoder *d, const char *where, const char *name) {
    TRITONSERVER_InferenceRequest *request = d->exchange->request;
    kelp_json_token token;
    const char *text;
    KELP_TRY(kelp_json_next(&d->json, &token));
    if (strncmp(name, "triton_", 7) == 0)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "parameter '%s': names that begin with 'triton_' are reserved for Triton usage", name);
    switch (token.type) {
    case KELP_JSON_STRING:
        KELP_TRY(copy_text(d, token.string, name, &text));
        return kelp_v2_status(TRITONSERVER_InferenceRequestSetStringParameter(request, name, text));
    case KELP_JSON_INT:
        return kelp_v2_status(
            TRITONSERVER_InferenceRequestSetIntParameter(request, name, token.i64));
    case KELP_JSON_BOOL:
        return kelp_v2_status(
            TRITONSERVER_InferenceRequestSetBoolParameter(request, name, token.boolean));
    case KELP_JSON_DOUBLE:
        return kelp_v2_status(
            TRITONSERVER_InferenceRequestSetDoubleParameter(request, name, token.f64));
    default:
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%sparameter '%s' has invalid type. Expected a string, a number or a "
                          "boolean, found %s",
                          where, name, kelp_json_type_name(token.type));
    }
}

static kelp_status *read_id(decoder *d) {
    kelp_json_token token;
    const char *id;
    KELP_TRY(kelp_json_next(&d->json, &token));
    if (token.type != KELP_JSON_STRING)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "'id': expected a string, found %s",
                          kelp_json_type_name(token.type));
    KELP_TRY(copy_text(d, token.string, "'id'", &id));
    return kelp_v2_status(TRITONSERVER_InferenceRequestSetId(d->exchange->request, id));
}

/* Reads the value of a member that is an input or a parameter. */
static kelp_status *read_value(decoder *d, const char *where, kelp_str key) {
    const kelp_json *input = find_input(d, key);
    const char *name;
    KELP_TRY(copy_text(d, key, "the name of a member", &name));
    return input != NULL ? read_input(d, name, input) : read_parameter(d, where, name);
}

/* Reads the members of `parameters`. */
static kelp_status *read_nested(decoder *d) {
    kelp_json_token token;
    if (find_input(d, KELP_STR("parameters")) != NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "Keyword 'parameters' for nested schema also given as input tensor name");
    KELP_TRY(kelp_json_next(&d->json, &token));
    if (token.type != KELP_JSON_OBJECT)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "Expected JSON object for keyword: 'parameters', found %s",
                          kelp_json_type_name(token.type));
    for (;;) {
        KELP_TRY(kelp_json_next(&d->json, &token));
        if (token.type == KELP_JSON_OBJECT_END)
            return NULL;
        KELP_TRY(read_value(d, "Converting keyword: 'parameters': ", token.string));
    }
}

static kelp_status *read_members(decoder *d) {
    kelp_json_token token;
    for (;;) {
        KELP_TRY(kelp_json_next(&d->json, &token));
        if (token.type == KELP_JSON_OBJECT_END)
            return NULL;
        if (kelp_str_is(token.string, "id"))
            KELP_TRY(read_id(d));
        else if (kelp_str_is(token.string, "parameters"))
            KELP_TRY(read_nested(d));
        else
            KELP_TRY(read_value(d, "", token.string));
    }
}

kelp_status *kelp_v2_decode_generate(kelp_v2_exchange *exchange, kelp_str json) {
    decoder d = {.exchange = exchange};
    kelp_json_token token;
    KELP_TRY(read_metadata(&d));
    if (kelp_str_trim(json).length == 0)
        return NULL;
    kelp_json_reader_init(&d.json, &exchange->arena, json.data, json.length);
    KELP_TRY(kelp_json_next(&d.json, &token));
    if (token.type != KELP_JSON_OBJECT)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "the request: expected an object, found %s",
                          kelp_json_type_name(token.type));
    KELP_TRY(read_members(&d));
    return kelp_json_next(&d.json, &token); /* fails unless it is the end */
}

/* ---- the response ---- */

/* A member of the response. */
typedef struct member {
    const char *name;
    enum { TEXT, VERSION, PARAMETER, TENSOR } kind;
    const char *text; /* TEXT */
    int64_t version;
    uint32_t index; /* PARAMETER, TENSOR */
} member;

static int compare_members(const void *a, const void *b) {
    const member *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->kind > y->kind) - (x->kind < y->kind);
}

static kelp_status *write_parameter(TRITONSERVER_InferenceResponse *response, uint32_t index,
                                    kelp_json_writer *json) {
    const char *name;
    TRITONSERVER_ParameterType type;
    const void *value;
    KELP_TRY(kelp_v2_status(
        TRITONSERVER_InferenceResponseParameter(response, index, &name, &type, &value)));
    switch (type) {
    case TRITONSERVER_PARAMETER_INT:
        kelp_json_put_i64(json, *(const int64_t *)value);
        return NULL;
    case TRITONSERVER_PARAMETER_BOOL:
        kelp_json_put_bool(json, *(const bool *)value);
        return NULL;
    case TRITONSERVER_PARAMETER_DOUBLE:
        kelp_json_put_f64(json, *(const double *)value);
        return NULL;
    case TRITONSERVER_PARAMETER_STRING:
        kelp_json_put_cstr(json, value);
        return NULL;
    default:
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "response parameter '%s' has a type that JSON cannot represent", name);
    }
}

/* Writes an output as a flat array, or as a scalar if it has one element. */
static kelp_status *write_tensor(TRITONSERVER_InferenceResponse *response, uint32_t index,
                                 kelp_json_writer *json) {
    const char *name;
    TRITONSERVER_DataType type;
    const int64_t *shape;
    uint64_t rank, count;
    const void *bytes;
    size_t size_bytes;
    TRITONSERVER_MemoryType memory_type;
    int64_t memory_id;
    void *userp;
    KELP_TRY(kelp_v2_status(
        TRITONSERVER_InferenceResponseOutput(response, index, &name, &type, &shape, &rank, &bytes,
                                             &size_bytes, &memory_type, &memory_id, &userp)));
    kelp_buf *out = json->out;
    kelp_json_put_raw(json, KELP_STR("")); /* the value is written below */
    size_t begin = out->length;
    /* A part of generated text may end inside a character. */
    KELP_TRY(kelp_v2_write_data(out, name, type, bytes, size_bytes, true));
    if (!out->failed && kelp_v2_element_count(shape, (size_t)rank, &count) && count == 1) {
        out->length -= 2; /* the brackets */
        memmove(out->data + begin, out->data + begin + 1, out->length - begin);
    }
    return NULL;
}

static kelp_status *write_member(TRITONSERVER_InferenceResponse *response, const member *m,
                                 kelp_json_writer *json) {
    kelp_json_key(json, m->name);
    switch (m->kind) {
    case TEXT:
        kelp_json_put_cstr(json, m->text);
        return NULL;
    case VERSION:
        kelp_json_put_raw(json, KELP_STR("\"")); /* a string, as in Triton */
        kelp_buf_append_i64(json->out, m->version);
        kelp_buf_append_char(json->out, '"');
        return NULL;
    case PARAMETER:
        return write_parameter(response, m->index, json);
    default:
        return write_tensor(response, m->index, json);
    }
}

/* Lists the members of a response in `members`, which has room for all. */
static kelp_status *list_members(TRITONSERVER_InferenceResponse *response, uint32_t parameters,
                                 uint32_t outputs, member *members, size_t *out_count) {
    const char *id = NULL, *model = NULL;
    int64_t version = 0;
    size_t n = 0;
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceResponseId(response, &id)));
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceResponseModel(response, &model, &version)));
    if (id != NULL && *id)
        members[n++] = (member){.name = "id", .kind = TEXT, .text = id};
    members[n++] = (member){.name = "model_name", .kind = TEXT, .text = model};
    members[n++] = (member){.name = "model_version", .kind = VERSION, .version = version};
    for (uint32_t i = 0; i < parameters; i++, n++) {
        TRITONSERVER_ParameterType type;
        const void *value;
        members[n] = (member){.kind = PARAMETER, .index = i};
        KELP_TRY(kelp_v2_status(
            TRITONSERVER_InferenceResponseParameter(response, i, &members[n].name, &type, &value)));
    }
    for (uint32_t i = 0; i < outputs; i++, n++) {
        TRITONSERVER_DataType type;
        const int64_t *shape;
        uint64_t rank;
        const void *bytes;
        size_t size_bytes;
        TRITONSERVER_MemoryType memory_type;
        int64_t memory_id;
        void *userp;
        members[n] = (member){.kind = TENSOR, .index = i};
        KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceResponseOutput(
            response, i, &members[n].name, &type, &shape, &rank, &bytes, &size_bytes, &memory_type,
            &memory_id, &userp)));
    }
    *out_count = n;
    return NULL;
}

static kelp_status *write_members(TRITONSERVER_InferenceResponse *response, kelp_arena *arena,
                                  kelp_buf *out) {
    uint32_t parameters = 0, outputs = 0;
    size_t count = 0;
    kelp_json_writer json;
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceResponseParameterCount(response, &parameters)));
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceResponseOutputCount(response, &outputs)));
    member *members = KELP_ARENA_ARRAY(arena, (size_t)3 + parameters + outputs, member);
    if (members == NULL)
        return kelp_status_oom();
    KELP_TRY(list_members(response, parameters, outputs, members, &count));
    qsort(members, count, sizeof *members, compare_members);
    kelp_json_writer_init(&json, out);
    kelp_json_begin_object(&json);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(members[i].name, members[i - 1].name) != 0)
            KELP_TRY(write_member(response, &members[i], &json));
    kelp_json_end_object(&json);
    return kelp_buf_status(out);
}

kelp_status *kelp_v2_encode_generate(TRITONSERVER_InferenceResponse *response, kelp_buf *out) {
    kelp_arena arena;
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceResponseError(response)));
    kelp_arena_init(&arena, out->allocator, 0);
    kelp_status *status = write_members(response, &arena, out);
    kelp_arena_deinit(&arena);
    return status;
}
