/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inference responses: JSON with id, model_name, model_version, parameters and outputs, in this
 * order; then the binary outputs, which are sent from the memory that the model wrote.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "base/text/json.h"
#include "frontends/v2/exchange.h"
#include "frontends/tensor/classify.h"
#include "frontends/tensor/tensor.h"

const kelp_v2_requested_output *kelp_v2_find_requested(const kelp_v2_exchange *exchange,
                                                       const char *name) {
    for (size_t i = 0; i < exchange->requested_count; i++)
        if (strcmp(exchange->requested[i].name, name) == 0)
            return &exchange->requested[i];
    return NULL;
}

static kelp_status *write_parameters(kelp_v2_exchange *exchange, kelp_json_writer *json) {
    uint32_t count = 0;
    KELP_TRY(
        kelp_v2_status(TRITONSERVER_InferenceResponseParameterCount(exchange->response, &count)));
    if (count == 0)
        return NULL;
    kelp_json_key(json, "parameters");
    kelp_json_begin_object(json);
    for (uint32_t i = 0; i < count; i++) {
        const char *name;
        TRITONSERVER_ParameterType type;
        const void *value;
        KELP_TRY(kelp_v2_status(
            TRITONSERVER_InferenceResponseParameter(exchange->response, i, &name, &type, &value)));
        kelp_json_key(json, name);
        switch (type) {
        case TRITONSERVER_PARAMETER_INT:
            kelp_json_put_i64(json, *(const int64_t *)value);
            break;
        case TRITONSERVER_PARAMETER_BOOL:
            kelp_json_put_bool(json, *(const bool *)value);
            break;
        case TRITONSERVER_PARAMETER_DOUBLE:
            kelp_json_put_f64(json, *(const double *)value);
            break;
        case TRITONSERVER_PARAMETER_STRING:
            kelp_json_put_cstr(json, value);
            break;
        default:
            return KELP_ERROR(KELP_UNIMPLEMENTED,
                              "response parameter '%s' has a type that JSON cannot represent",
                              name);
        }
    }
    kelp_json_end_object(json);
    return NULL;
}

static kelp_status *model_batches(kelp_v2_exchange *exchange, bool *out) {
    uint32_t flags = 0;
    void *detail = NULL;
    KELP_TRY(kelp_v2_status(TRITONSERVER_ServerModelBatchProperties(
        kelp_v2_service_of(exchange)->core, exchange->model, exchange->version, &flags, &detail)));
    *out = (flags & TRITONSERVER_BATCH_FIRST_DIM) != 0;
    return NULL;
}

/* An output tensor. */
typedef struct tensor {
    const char *name;
    TRITONSERVER_DataType type;
    const int64_t *shape;
    uint64_t rank;
    const void *bytes;
    size_t size_bytes;
} tensor;

static bool is_binary(const kelp_v2_exchange *exchange, const kelp_v2_requested_output *requested) {
    return requested != NULL && requested->have_binary ? requested->binary
                                                       : exchange->binary_default;
}

static kelp_status *write_tensor(kelp_v2_exchange *exchange, kelp_json_writer *json,
                                 const tensor *t, const kelp_v2_requested_output *requested) {
    kelp_json_begin_object(json);
    kelp_json_key(json, "name");
    kelp_json_put_cstr(json, t->name);
    kelp_json_key(json, "datatype");
    kelp_json_put_cstr(json, TRITONSERVER_DataTypeString(t->type));
    kelp_json_key(json, "shape");
    kelp_json_begin_array(json);
    for (uint64_t i = 0; i < t->rank; i++)
        kelp_json_put_i64(json, t->shape[i]);
    kelp_json_end_array(json);
    if (requested != NULL && requested->region != NULL) {
        /* Only the shape is new to the client. Triton's C++ client rejects other parameters than
         * binary_data_size. */
    } else if (is_binary(exchange, requested)) {
        kelp_json_key(json, "parameters");
        kelp_json_begin_object(json);
        kelp_json_key(json, "binary_data_size");
        kelp_json_put_u64(json, t->size_bytes);
        kelp_json_end_object(json);
        KELP_TRY(kelp_http_exchange_add_piece(&exchange->base, t->bytes, t->size_bytes));
    } else {
        kelp_json_key(json, "data");
        kelp_json_put_raw(json, KELP_STR("")); /* writes the comma; the value is written below */
        KELP_TRY(kelp_v2_write_data(&exchange->base.text, t->name, t->type, t->bytes, t->size_bytes,
                                    false));
    }
    kelp_json_end_object(json);
    return NULL;
}

static kelp_status *write_output(kelp_v2_exchange *exchange, kelp_json_writer *json,
                                 uint32_t index) {
    tensor t;
    TRITONSERVER_MemoryType memory_type;
    int64_t memory_id;
    void *userp;
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceResponseOutput(
        exchange->response, index, &t.name, &t.type, &t.shape, &t.rank, &t.bytes, &t.size_bytes,
        &memory_type, &memory_id, &userp)));
    if (memory_type == TRITONSERVER_MEMORY_GPU)
        return KELP_ERROR(KELP_INTERNAL, "output '%s' is in GPU memory: expected CPU memory",
                          t.name);
    const kelp_v2_requested_output *requested = kelp_v2_find_requested(exchange, t.name);
    kelp_v2_classes classes;
    if (requested != NULL && requested->classes) {
        bool batched;
        KELP_TRY(model_batches(exchange, &batched));
        KELP_TRY(kelp_v2_classify(&exchange->arena, exchange->response, index, t.name, t.type,
                                  t.shape, (size_t)t.rank, batched, t.bytes, t.size_bytes,
                                  requested->classes, &classes));
        t.type = TRITONSERVER_TYPE_BYTES;
        t.shape = classes.shape;
        t.rank = classes.rank;
        t.bytes = classes.bytes;
        t.size_bytes = classes.size_bytes;
    }
    return write_tensor(exchange, json, &t, requested);
}

static kelp_status *write_model(kelp_v2_exchange *exchange, kelp_json_writer *json) {
    const char *id = NULL;
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceResponseId(exchange->response, &id)));
    if (id != NULL && *id) {
        kelp_json_key(json, "id");
        kelp_json_put_cstr(json, id);
    }
    const char *model = NULL;
    int64_t version = 0;
    KELP_TRY(
        kelp_v2_status(TRITONSERVER_InferenceResponseModel(exchange->response, &model, &version)));
    exchange->base.entry.version = version;
    kelp_json_key(json, "model_name");
    kelp_json_put_cstr(json, model);
    kelp_json_key(json, "model_version");
    kelp_json_put_raw(json, KELP_STR("\"")); /* a string, as in Triton */
    kelp_buf_append_i64(json->out, version);
    kelp_buf_append_char(json->out, '"');
    return NULL;
}

/* Adds Content-Type, and the length of the JSON if binary outputs follow it. */
static void add_headers(kelp_v2_exchange *exchange) {
    kelp_http_exchange *base = &exchange->base;
    if (!base->piece_count) {
        kelp_http_exchange_add_header(base, KELP_STR("Content-Type"), KELP_STR("application/json"));
        return;
    }
    size_t length = kelp_format_u64(base->text.length, exchange->json_length);
    kelp_http_exchange_add_header(base, KELP_STR("Content-Type"),
                                  KELP_STR("application/octet-stream"));
    kelp_http_exchange_add_header(base, KELP_STR("Inference-Header-Content-Length"),
                                  (kelp_str){exchange->json_length, length});
}

uint64_t kelp_v2_encoded_bytes(const kelp_v2_exchange *exchange) {
    uint64_t sum_bytes = 0;
    uint32_t count = 0;
    if (exchange->response == NULL)
        return 0;
    TRITONSERVER_Error *failed =
        TRITONSERVER_InferenceResponseOutputCount(exchange->response, &count);
    if (failed != NULL) /* the encoding reports it */
        TRITONSERVER_ErrorDelete(failed);
    for (uint32_t i = 0; i < count; i++) {
        tensor t;
        TRITONSERVER_MemoryType memory_type;
        int64_t memory_id;
        void *userp;
        TRITONSERVER_Error *error = TRITONSERVER_InferenceResponseOutput(
            exchange->response, i, &t.name, &t.type, &t.shape, &t.rank, &t.bytes, &t.size_bytes,
            &memory_type, &memory_id, &userp);
        if (error != NULL) {
            TRITONSERVER_ErrorDelete(error);
            continue;
        }
        const kelp_v2_requested_output *requested = kelp_v2_find_requested(exchange, t.name);
        if ((requested == NULL || requested->region == NULL) &&
            (!is_binary(exchange, requested) || exchange->response_coding != KELP_HTTP_IDENTITY))
            sum_bytes += t.size_bytes;
    }
    return sum_bytes;
}

kelp_status *kelp_v2_encode_response(kelp_v2_exchange *exchange) {
    KELP_ASSERT(exchange->response && !exchange->in_flight);
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceResponseError(exchange->response)));
    KELP_TRY(kelp_shm_check_uses(exchange->regions));
    kelp_http_exchange_respond(&exchange->base, KELP_HTTP_OK);
    kelp_json_writer json;
    kelp_json_writer_init(&json, &exchange->base.text);
    kelp_json_begin_object(&json);
    KELP_TRY(write_model(exchange, &json));
    KELP_TRY(write_parameters(exchange, &json));
    uint32_t count = 0;
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceResponseOutputCount(exchange->response, &count)));
    kelp_json_key(&json, "outputs");
    kelp_json_begin_array(&json);
    for (uint32_t i = 0; i < count; i++)
        KELP_TRY(write_output(exchange, &json, i));
    kelp_json_end_array(&json);
    kelp_json_end_object(&json);
    KELP_TRY(kelp_buf_status(&exchange->base.text));
    add_headers(exchange);
    return NULL;
}
