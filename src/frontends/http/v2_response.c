/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inference replies: JSON in the order id, model_name, model_version, parameters, outputs; then the
 * outputs that the client wants in binary, which are sent from where the model wrote them.
 */
#include "base/checked.h"
#include "base/json.h"
#include "frontends/http/call.h"
#include "frontends/http/v2_classify.h"
#include "frontends/http/v2_tensor.h"

#include <stdio.h>

static const kelp_http_output_wish *wish_for(const kelp_http_call *call, const char *name) {
    for (size_t i = 0; i < call->wish_count; i++)
        if (strcmp(call->wishes[i].name, name) == 0)
            return &call->wishes[i];
    return NULL;
}

static kelp_status *write_parameters(kelp_http_call *call, kelp_json_writer *json) {
    uint32_t count = 0;
    KELP_HTTP_TRY(TRITONSERVER_InferenceResponseParameterCount(call->response, &count));
    if (count == 0)
        return NULL;
    kelp_json_key(json, "parameters");
    kelp_json_begin_object(json);
    for (uint32_t i = 0; i < count; i++) {
        const char *name;
        TRITONSERVER_ParameterType type;
        const void *value;
        KELP_HTTP_TRY(
            TRITONSERVER_InferenceResponseParameter(call->response, i, &name, &type, &value));
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
                              "response parameter '%s' is of a type that JSON cannot carry", name);
        }
    }
    kelp_json_end_object(json);
    return NULL;
}

static kelp_status *model_batches(kelp_http_call *call, bool *out) {
    uint32_t flags = 0;
    void *detail = NULL;
    KELP_HTTP_TRY(TRITONSERVER_ServerModelBatchProperties(kelp_http_core(call->server), call->model,
                                                          call->version, &flags, &detail));
    *out = (flags & TRITONSERVER_BATCH_FIRST_DIM) != 0;
    return NULL;
}

typedef struct tensor {
    const char *name;
    TRITONSERVER_DataType type;
    const int64_t *shape;
    uint64_t rank;
    const void *bytes;
    size_t size_bytes;
} tensor;

static kelp_status *write_tensor(kelp_http_call *call, kelp_json_writer *json, const tensor *t,
                                 bool binary) {
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
    if (binary) {
        kelp_json_key(json, "parameters");
        kelp_json_begin_object(json);
        kelp_json_key(json, "binary_data_size");
        kelp_json_put_u64(json, t->size_bytes);
        kelp_json_end_object(json);
        KELP_TRY(kelp_http_add_piece(call, t->bytes, t->size_bytes));
    } else {
        kelp_json_key(json, "data");
        kelp_json_put_raw(json,
                          KELP_STR("")); /* the comma is the writer's; the value is written below */
        KELP_TRY(kelp_v2_write_data(&call->text, t->name, t->type, t->bytes, t->size_bytes));
    }
    kelp_json_end_object(json);
    return NULL;
}

static kelp_status *write_output(kelp_http_call *call, kelp_json_writer *json, uint32_t index) {
    tensor t;
    TRITONSERVER_MemoryType memory_type;
    int64_t memory_id;
    void *userp;
    KELP_HTTP_TRY(TRITONSERVER_InferenceResponseOutput(call->response, index, &t.name, &t.type,
                                                       &t.shape, &t.rank, &t.bytes, &t.size_bytes,
                                                       &memory_type, &memory_id, &userp));
    if (memory_type == TRITONSERVER_MEMORY_GPU)
        return KELP_ERROR(KELP_INTERNAL, "output '%s' lies in GPU memory", t.name);
    const kelp_http_output_wish *wish = wish_for(call, t.name);
    bool binary = wish && wish->have_binary ? wish->binary : call->binary_default;
    kelp_v2_classes classes;
    if (wish && wish->classes) {
        bool batched;
        KELP_TRY(model_batches(call, &batched));
        KELP_TRY(kelp_v2_classify(&call->arena, call->response, index, t.name, t.type, t.shape,
                                  (size_t)t.rank, batched, t.bytes, t.size_bytes, wish->classes,
                                  &classes));
        t.type = TRITONSERVER_TYPE_BYTES;
        t.shape = classes.shape;
        t.rank = classes.rank;
        t.bytes = classes.bytes;
        t.size_bytes = classes.size_bytes;
    }
    return write_tensor(call, json, &t, binary);
}

kelp_status *kelp_v2_encode_response(kelp_http_call *call) {
    KELP_TRY(kelp_http_status_of(TRITONSERVER_InferenceResponseError(call->response)));
    kelp_json_writer json;
    kelp_buf_clear(&call->text);
    call->piece_count = 0;
    kelp_json_writer_init(&json, &call->text);
    kelp_json_begin_object(&json);

    const char *id = NULL;
    KELP_HTTP_TRY(TRITONSERVER_InferenceResponseId(call->response, &id));
    if (id && *id) {
        kelp_json_key(&json, "id");
        kelp_json_put_cstr(&json, id);
    }
    const char *model = NULL;
    int64_t version = 0;
    KELP_HTTP_TRY(TRITONSERVER_InferenceResponseModel(call->response, &model, &version));
    char digits[24];
    snprintf(digits, sizeof(digits), "%lld", (long long)version);
    kelp_json_key(&json, "model_name");
    kelp_json_put_cstr(&json, model);
    kelp_json_key(&json, "model_version");
    kelp_json_put_cstr(&json, digits);
    KELP_TRY(write_parameters(call, &json));

    uint32_t count = 0;
    KELP_HTTP_TRY(TRITONSERVER_InferenceResponseOutputCount(call->response, &count));
    kelp_json_key(&json, "outputs");
    kelp_json_begin_array(&json);
    for (uint32_t i = 0; i < count; i++)
        KELP_TRY(write_output(call, &json, i));
    kelp_json_end_array(&json);
    kelp_json_end_object(&json);
    KELP_TRY(kelp_buf_status(&call->text));

    call->status = 200;
    call->content_type = "application/json";
    size_t binary_bytes = 0;
    for (size_t i = 0; i < call->piece_count; i++)
        binary_bytes += call->pieces[i].length;
    if (binary_bytes) {
        call->content_type = "application/octet-stream";
        call->has_header_length = true;
        call->header_length = call->text.length;
    }
    return NULL;
}

kelp_status *kelp_v2_compress_reply(kelp_http_call *call) {
    if (call->reply_coding == KELP_HTTP_IDENTITY || call->status != 200)
        return NULL;
    kelp_buf packed;
    kelp_buf_init(&packed, call->allocator);
    kelp_http_encoder *encoder = NULL;
    kelp_status *status =
        kelp_http_encoder_create(call->allocator, call->reply_coding, &packed, &encoder);
    if (!status)
        status = kelp_http_encoder_put(encoder, call->text.data, call->text.length);
    for (size_t i = 0; !status && i < call->piece_count; i++)
        status = kelp_http_encoder_put(encoder, call->pieces[i].data, call->pieces[i].length);
    if (!status)
        status = kelp_http_encoder_end(encoder);
    kelp_http_encoder_destroy(encoder);
    if (status) {
        kelp_buf_deinit(&packed);
        return status;
    }
    kelp_buf_deinit(&call->text);
    call->text = packed;
    call->piece_count = 0;
    call->coding = call->reply_coding;
    return NULL;
}
