/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/grpc/codec/infer_response.h"

#include "base/checked.h"
#include "base/wire/protobuf_write.h"
#include "frontends/tensor/classify.h"
#include "frontends/common/status.h"

enum { RESPONSE_MODEL = 1, RESPONSE_VERSION, RESPONSE_ID, RESPONSE_PARAMETERS };
enum { RESPONSE_OUTPUTS = 5, RESPONSE_RAW };
enum { ENTRY_KEY = 1, ENTRY_VALUE };
enum { VALUE_BOOL = 1, VALUE_INT64, VALUE_STRING, VALUE_DOUBLE };
enum { OUTPUT_NAME = 1, OUTPUT_TYPE, OUTPUT_SHAPE };

/* An output tensor. */
typedef struct tensor {
    const char *name;
    TRITONSERVER_DataType type;
    const int64_t *shape;
    uint64_t rank;
    const void *bytes;
    size_t size_bytes;
} tensor;

/* ---- model, id and parameters ---- */

static void put_version(kelp_buf *out, int64_t version) {
    size_t start = out->length;
    kelp_buf_append_i64(out, version);
    kelp_protobuf_wrap(out, RESPONSE_VERSION, start);
}

static kelp_status *put_model(kelp_buf *out, TRITONSERVER_InferenceResponse *response) {
    const char *model = NULL, *id = NULL;
    int64_t version = 0;
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceResponseModel(response, &model, &version)));
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceResponseId(response, &id)));
    kelp_protobuf_put_text(out, RESPONSE_MODEL, model);
    put_version(out, version);
    if (id != NULL && *id != '\0')
        kelp_protobuf_put_text(out, RESPONSE_ID, id);
    return NULL;
}

static void put_final(kelp_buf *out, bool final) {
    size_t start = out->length;
    kelp_protobuf_put_text(out, ENTRY_KEY, "triton_final_response");
    size_t value = out->length;
    kelp_protobuf_put_i64(out, VALUE_BOOL, final);
    kelp_protobuf_wrap(out, ENTRY_VALUE, value);
    kelp_protobuf_wrap(out, RESPONSE_PARAMETERS, start);
}

static kelp_status *put_parameter(kelp_buf *out, TRITONSERVER_InferenceResponse *response,
                                  uint32_t index) {
    const char *name;
    TRITONSERVER_ParameterType type;
    const void *value;
    KELP_TRY(kelp_v2_status(
        TRITONSERVER_InferenceResponseParameter(response, index, &name, &type, &value)));
    size_t start = out->length;
    kelp_protobuf_put_text(out, ENTRY_KEY, name);
    size_t choice = out->length;
    switch (type) {
    case TRITONSERVER_PARAMETER_INT:
        kelp_protobuf_put_i64(out, VALUE_INT64, *(const int64_t *)value);
        break;
    case TRITONSERVER_PARAMETER_BOOL:
        kelp_protobuf_put_i64(out, VALUE_BOOL, *(const bool *)value);
        break;
    case TRITONSERVER_PARAMETER_DOUBLE:
        kelp_protobuf_put_f64(out, VALUE_DOUBLE, *(const double *)value);
        break;
    case TRITONSERVER_PARAMETER_STRING:
        kelp_protobuf_put_text(out, VALUE_STRING, value);
        break;
    default:
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "response parameter '%s' has a type that InferParameter cannot represent",
                          name);
    }
    kelp_protobuf_wrap(out, ENTRY_VALUE, choice);
    kelp_protobuf_wrap(out, RESPONSE_PARAMETERS, start);
    return NULL;
}

/* ---- outputs ---- */

static kelp_status *classify(const kelp_grpc_response_options *options, kelp_arena *arena,
                             TRITONSERVER_InferenceResponse *response, uint32_t index,
                             uint32_t classes, tensor *inout) {
    uint32_t flags = 0;
    void *detail = NULL;
    kelp_v2_classes *found = KELP_ARENA_NEW(arena, kelp_v2_classes);
    if (found == NULL)
        return kelp_status_oom();
    KELP_TRY(kelp_v2_status(TRITONSERVER_ServerModelBatchProperties(
        options->core, options->request->model, options->request->version, &flags, &detail)));
    KELP_TRY(kelp_v2_classify(arena, response, index, inout->name, inout->type, inout->shape,
                              (size_t)inout->rank, (flags & TRITONSERVER_BATCH_FIRST_DIM) != 0,
                              inout->bytes, inout->size_bytes, classes, found));
    *inout = (tensor){inout->name,  TRITONSERVER_TYPE_BYTES, found->shape, found->rank,
                      found->bytes, found->size_bytes};
    return NULL;
}

static kelp_status *get_output(const kelp_grpc_response_options *options, kelp_arena *arena,
                               TRITONSERVER_InferenceResponse *response, uint32_t index,
                               tensor *out) {
    TRITONSERVER_MemoryType memory_type;
    int64_t memory_id;
    void *userp;
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceResponseOutput(
        response, index, &out->name, &out->type, &out->shape, &out->rank, &out->bytes,
        &out->size_bytes, &memory_type, &memory_id, &userp)));
    if (memory_type == TRITONSERVER_MEMORY_GPU)
        return KELP_ERROR(KELP_INTERNAL, "output '%s' is in GPU memory: expected CPU memory",
                          out->name);
    const kelp_grpc_requested_output *requested =
        kelp_grpc_find_requested(options->request, index, out->name);
    if (requested != NULL && requested->region != NULL)
        out->size_bytes = 0; /* the client reads the region */
    if (requested != NULL && requested->classes > 0)
        return classify(options, arena, response, index, requested->classes, out);
    return NULL;
}

static void put_output(kelp_buf *out, const tensor *t) {
    size_t start = out->length;
    kelp_protobuf_put_text(out, OUTPUT_NAME, t->name);
    kelp_protobuf_put_text(out, OUTPUT_TYPE, TRITONSERVER_DataTypeString(t->type));
    size_t shape = out->length;
    for (uint64_t i = 0; i < t->rank; i++)
        kelp_protobuf_put_varint(out, (uint64_t)t->shape[i]);
    if (t->rank > 0)
        kelp_protobuf_wrap(out, OUTPUT_SHAPE, shape);
    kelp_protobuf_wrap(out, RESPONSE_OUTPUTS, start);
}

static kelp_status *put_outputs(kelp_grpc_message *message, kelp_arena *arena,
                                const kelp_grpc_response_options *options,
                                TRITONSERVER_InferenceResponse *response) {
    uint32_t count = 0;
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceResponseOutputCount(response, &count)));
    tensor *tensors = KELP_ARENA_ARRAY(arena, count, tensor);
    if (tensors == NULL)
        return kelp_status_oom();
    for (uint32_t i = 0; i < count; i++) {
        KELP_TRY(get_output(options, arena, response, i, &tensors[i]));
        put_output(&message->text, &tensors[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        kelp_protobuf_put_length(&message->text, RESPONSE_RAW, tensors[i].size_bytes);
        KELP_TRY(kelp_grpc_message_add_tensor(message, tensors[i].bytes, tensors[i].size_bytes));
    }
    return NULL;
}

/* ---- the message ---- */

kelp_status *kelp_grpc_put_response(kelp_grpc_message *message, kelp_arena *arena,
                                    const kelp_grpc_response_options *options,
                                    TRITONSERVER_InferenceResponse *response) {
    uint32_t count = 0;
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceResponseError(response)));
    KELP_TRY(put_model(&message->text, response));
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceResponseParameterCount(response, &count)));
    for (uint32_t i = 0; i < count; i++)
        KELP_TRY(put_parameter(&message->text, response, i));
    if (options->streamed)
        put_final(&message->text, options->final);
    KELP_TRY(put_outputs(message, arena, options, response));
    return kelp_buf_status(&message->text);
}

void kelp_grpc_put_empty_response(kelp_grpc_message *message,
                                  const kelp_grpc_response_options *options) {
    const kelp_grpc_infer_request *request = options->request;
    kelp_protobuf_put_text(&message->text, RESPONSE_MODEL, request->model);
    if (request->version >= 0)
        put_version(&message->text, request->version);
    if (*request->id != '\0')
        kelp_protobuf_put_text(&message->text, RESPONSE_ID, request->id);
    put_final(&message->text, true);
}
