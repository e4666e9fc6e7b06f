/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a request against its model's configuration before it is queued. The messages are
 * Triton's, for compatibility. Shapes come from the network, so that sizes are computed with
 * overflow checks.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "server/request/request.h"

static const char batch_note[] =
    ". NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to "
    "be prepended to each input shape. If you want to specify the full shape including the batch "
    "dim in your input dims config, try setting max_batch_size to zero. See the model "
    "configuration docs for more info on max_batch_size.";

size_t kelp_request_output_count(const kelp_request *request) {
    if (request->output_count || request->model == NULL || request->is_null)
        return request->output_count;
    return request->model->config->output_count;
}

const char *kelp_request_output_name(const kelp_request *request, size_t index) {
    KELP_ASSERT(index < kelp_request_output_count(request));
    return request->output_count ? kelp_text_get(&request->outputs[index])
                                 : request->model->config->outputs[index].name;
}

static kelp_status *check_outputs(const kelp_request *request) {
    const kelp_model_base *model = request->model;
    for (size_t i = 0; i < request->output_count; i++) {
        const char *name = kelp_text_get(&request->outputs[i]);
        if (kelp_model_config_output(model->config, kelp_str_from(name)) == NULL)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              KELP_REQUEST_TAG "unexpected inference output '%s' for model '%s'",
                              kelp_request_tag(request), name, model->name);
    }
    return NULL;
}

/* ---- strings: each element is a 4-byte little-endian length and its bytes ---- */

typedef struct cursor {
    const kelp_data *data;
    size_t block;
    size_t offset;
    uint64_t left; /* bytes */
} cursor;

/* Reads the length of a string. As in Triton, it must not span two blocks. */
static bool read_length(cursor *at, uint32_t *out) {
    KELP_ASSERT(at->left > 0);
    while (at->block < at->data->count &&
           at->offset == at->data->blocks[at->block].attributes.size_bytes) {
        at->block++;
        at->offset = 0;
    }
    if (at->block == at->data->count)
        return false;
    const kelp_data_block *block = &at->data->blocks[at->block];
    if (block->attributes.size_bytes - at->offset < 4)
        return false;
    const unsigned char *word = (const unsigned char *)block->base + at->offset;
    *out = (uint32_t)word[0] | (uint32_t)word[1] << 8 | (uint32_t)word[2] << 16 |
           (uint32_t)word[3] << 24;
    at->offset += 4;
    at->left -= 4;
    return true;
}

static void skip(cursor *at, uint64_t count) {
    KELP_ASSERT(count <= at->left);
    at->left -= count;
    while (count > 0) {
        size_t here = at->data->blocks[at->block].attributes.size_bytes - at->offset;
        if (count < here) {
            at->offset += count;
            return;
        }
        count -= here;
        at->block++;
        at->offset = 0;
    }
}

/* Returns false if a block is in GPU memory, which cannot be read here. */
static bool on_cpu(const kelp_data *data) {
    for (size_t i = 0; i < data->count; i++)
        if (data->blocks[i].attributes.memory_type == TRITONSERVER_MEMORY_GPU)
            return false;
    return true;
}

/* Counts the strings of an input of type BYTES, which is in CPU memory. */
static kelp_status *count_strings(const kelp_request *request, const kelp_input *input,
                                  uint64_t *out_count) {
    KELP_ASSERT(on_cpu(&input->data));
    cursor at = {.data = &input->data, .left = input->data.size_bytes};
    uint64_t count = 0;
    while (at.left > 0) {
        uint32_t length;
        uint64_t before = at.left;
        if (!read_length(&at, &length))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              KELP_REQUEST_TAG "incomplete string length indicator for inference "
                                               "input '%s' for model '%s', expecting 4 bytes but "
                                               "only %llu bytes available in its buffer",
                              kelp_request_tag(request), kelp_text_get(&input->name),
                              request->model->name, (unsigned long long)(before < 4 ? before : 3));
        if (length > at.left)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              KELP_REQUEST_TAG "incomplete string data for inference input '%s' "
                                               "for model '%s', expecting string of length %u but "
                                               "only %llu bytes available",
                              kelp_request_tag(request), kelp_text_get(&input->name),
                              request->model->name, length, (unsigned long long)at.left);
        skip(&at, length);
        count++;
    }
    *out_count = count;
    return NULL;
}

/* ---- shapes ---- */

/* Computes the number of elements; returns false if a dimension is negative or the number too
 * large.
 */
static bool elements_of(const int64_t *shape, uint32_t rank, int64_t *out) {
    int64_t product = 1;
    for (uint32_t i = 0; i < rank; i++)
        if (shape[i] < 0 || !kelp_i64_mul(product, shape[i], &product))
            return false;
    *out = product;
    return true;
}

static kelp_status *bad_shape(const kelp_request *request, const kelp_input *input,
                              const kelp_config_io *io) {
    bool batched = request->model->config->max_batch_size > 0 && !io->is_shape_tensor;
    int64_t expected[KELP_SERVER_MAX_RANK + 1] = {0};
    uint32_t rank = 0;
    char wanted[512], found[512];
    if (batched)
        expected[rank++] = -1;
    for (uint32_t i = 0; i < io->rank && rank <= KELP_SERVER_MAX_RANK; i++)
        expected[rank++] = io->dims[i];
    kelp_shape_format((int32_t)rank, expected, wanted, sizeof wanted);
    kelp_shape_format((int32_t)input->client_rank, input->client_shape, found, sizeof found);
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      KELP_REQUEST_TAG "unexpected shape for input '%s' for model '%s'. Expected "
                                       "%s, got %s%s",
                      kelp_request_tag(request), kelp_text_get(&input->name), request->model->name,
                      wanted, found, batched ? batch_note : "");
}

/* Puts the length word before a raw string; replaces that of an earlier submission. */
static kelp_status *put_raw_length(kelp_request *request, kelp_input *input) {
    kelp_data *data = &input->data;
    const kelp_buffer_attributes attributes = {.size_bytes = sizeof request->raw_length,
                                               .memory_type = TRITONSERVER_MEMORY_CPU};
    bool has_word = data->count > 0 && data->blocks[0].base == &request->raw_length;
    uint64_t length = data->size_bytes - (has_word ? attributes.size_bytes : 0);
    if (length > UINT32_MAX)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          KELP_REQUEST_TAG "raw input '%s' has %llu bytes: expected at most %u, "
                                           "because it is one string",
                          kelp_request_tag(request), kelp_text_get(&input->name),
                          (unsigned long long)length, UINT32_MAX);
    request->raw_length = (uint32_t)length;
    if (has_word)
        return NULL;
    KELP_TRY(kelp_request_append(request, input, NULL, &request->raw_length, &attributes));
    kelp_data_block word = data->blocks[data->count - 1];
    memmove(data->blocks + 1, data->blocks, (data->count - 1) * sizeof *data->blocks);
    data->blocks[0] = word;
    return NULL;
}

/* Deduces the type and shape of a raw input from the configuration and the number of its bytes. */
static kelp_status *describe_raw(kelp_request *request) {
    const kelp_model_config *config = request->model->config;
    kelp_input *input = request->inputs[0];
    if (config->input_count != 1)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          KELP_REQUEST_TAG "Raw request must only have 1 input (found 1) to be "
                                           "deduced but got %zu inputs in '%s' model configuration",
                          kelp_request_tag(request), config->input_count, request->model->name);
    const kelp_config_io *io = &config->inputs[0];
    KELP_TRY(kelp_text_set(request->home->allocator, &input->name, io->name));
    input->datatype = io->data_type;
    uint32_t rank = 0, wildcard = UINT32_MAX, wildcards = 0;
    if (config->max_batch_size > 0)
        input->client_shape[rank++] = 1;
    int64_t known = 1;
    for (uint32_t i = 0; i < io->rank && rank < KELP_SERVER_MAX_RANK; i++) {
        if (io->dims[i] == -1) {
            wildcard = rank;
            wildcards++;
        } else if (!kelp_i64_mul(known, io->dims[i], &known)) {
            known = 0;
        }
        input->client_shape[rank++] = io->dims[i];
    }
    input->client_rank = rank;
    if (wildcards > 1)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          KELP_REQUEST_TAG "The shape of the raw input '%s' can not be deduced "
                                           "because there are more than one variable-sized "
                                           "dimension",
                          kelp_request_tag(request), io->name);
    if (wildcards == 0 && known == 1 && io->data_type == TRITONSERVER_TYPE_BYTES)
        return put_raw_length(request, input);
    if (wildcards == 0)
        return NULL;
    uint64_t count = 0;
    uint32_t element = TRITONSERVER_DataTypeByteSize(input->datatype);
    if (element == 0 && !on_cpu(&input->data))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          KELP_REQUEST_TAG "The shape of the raw input '%s' can not be deduced "
                                           "because its strings are in GPU memory",
                          kelp_request_tag(request), io->name);
    if (element)
        count = input->data.size_bytes / element;
    else
        KELP_TRY(count_strings(request, input, &count));
    input->client_shape[wildcard] = known > 0 ? (int64_t)(count / (uint64_t)known) : 0;
    return NULL;
}

/* Sets batch_size from the first dimension of the inputs, which must agree. */
static kelp_status *read_batch_size(kelp_request *request) {
    const kelp_model_base *model = request->model;
    int64_t batch = 1; /* also if there are only shape tensors, or no inputs */
    bool seen = false;
    request->batch_size = 1;
    if (model->config->max_batch_size <= 0)
        return NULL;
    for (size_t i = 0; i < request->input_count; i++) {
        const kelp_input *input = request->inputs[i];
        const char *name = kelp_text_get(&input->name);
        const kelp_config_io *io = kelp_model_config_input(model->config, kelp_str_from(name));
        if (io != NULL && io->is_shape_tensor)
            continue;
        if (input->client_rank == 0)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              KELP_REQUEST_TAG "input '%s' has no shape but model requires batch "
                                               "dimension for '%s'",
                              kelp_request_tag(request), name, model->name);
        if (!seen)
            batch = input->client_shape[0];
        else if (batch != input->client_shape[0])
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              KELP_REQUEST_TAG "input '%s' batch size does not match other inputs "
                                               "for '%s'",
                              kelp_request_tag(request), name, model->name);
        seen = true;
    }
    if (batch < 1 || batch > model->config->max_batch_size)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          KELP_REQUEST_TAG "inference request batch-size must be <= %d for '%s'",
                          kelp_request_tag(request), model->config->max_batch_size, model->name);
    request->batch_size = (uint32_t)batch;
    return NULL;
}

/* Appends "['A','B']": the inputs of the request (`present`), or the required inputs that it lacks.
 */
static void append_names(kelp_buf *text, const kelp_request *request, bool present) {
    const kelp_model_config *config = request->model->config;
    const char *separator = "";
    kelp_buf_append_char(text, '[');
    if (present) {
        for (size_t i = 0; i < request->input_count; i++, separator = ",")
            kelp_buf_printf(text, "%s'%s'", separator, kelp_text_get(&request->inputs[i]->name));
    } else {
        for (size_t i = 0; i < config->input_count; i++) {
            const kelp_config_io *io = &config->inputs[i];
            if (io->optional || kelp_request_find_input(request, io->name) != NULL)
                continue;
            kelp_buf_printf(text, "%s'%s'", separator, io->name);
            separator = ",";
        }
    }
    kelp_buf_append_char(text, ']');
}

static kelp_status *check_input_count(const kelp_request *request) {
    const kelp_model_config *config = request->model->config;
    size_t required = 0, present = 0;
    for (size_t i = 0; i < config->input_count; i++) {
        if (config->inputs[i].optional)
            continue;
        required++;
        present += kelp_request_find_input(request, config->inputs[i].name) != NULL;
    }
    if (request->input_count <= config->input_count && present == required)
        return NULL;
    /* check_input reports an unknown name in more detail. */
    for (size_t i = 0; i < request->input_count; i++) {
        const char *name = kelp_text_get(&request->inputs[i]->name);
        if (request->input_count == config->input_count &&
            kelp_model_config_input(config, kelp_str_from(name)) == NULL)
            return NULL;
    }
    kelp_buf text;
    kelp_buf_init(&text, request->home->allocator);
    if (required == config->input_count)
        kelp_buf_printf(&text, "expected %zu inputs but got %zu inputs for model '%s'", required,
                        request->input_count, request->model->name);
    else
        kelp_buf_printf(&text,
                        "expected number of inputs between %zu and %zu but got %zu inputs for "
                        "model '%s'",
                        required, config->input_count, request->input_count, request->model->name);
    if (present < required) {
        kelp_buf_append_cstr(&text, ". Got input(s) ");
        append_names(&text, request, true);
        kelp_buf_append_cstr(&text, ", but missing required input(s) ");
        append_names(&text, request, false);
        kelp_buf_append_cstr(&text, ". Please provide all required input(s).");
    }
    const char *message = kelp_buf_cstr(&text);
    kelp_status *status = message != NULL ? KELP_ERROR(KELP_INVALID_ARGUMENT, KELP_REQUEST_TAG "%s",
                                                       kelp_request_tag(request), message)
                                          : kelp_status_oom();
    kelp_buf_deinit(&text);
    return status;
}

static kelp_status *check_bytes(const kelp_request *request, const kelp_input *input,
                                int64_t elements) {
    const char *name = kelp_text_get(&input->name);
    if (input->datatype == TRITONSERVER_TYPE_BYTES) {
        uint64_t count = 0;
        if (!on_cpu(&input->data))
            return NULL;
        KELP_TRY(count_strings(request, input, &count));
        if (count != (uint64_t)elements)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              KELP_REQUEST_TAG "unexpected number of string elements %llu for "
                                               "inference input '%s' for model '%s', expecting "
                                               "%lld",
                              kelp_request_tag(request), (unsigned long long)count, name,
                              request->model->name, (long long)elements);
        return NULL;
    }
    int64_t expected;
    if (!kelp_i64_mul(elements, TRITONSERVER_DataTypeByteSize(input->datatype), &expected))
        expected = INT64_MAX;
    if ((uint64_t)expected != input->data.size_bytes)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          KELP_REQUEST_TAG "input byte size mismatch for input '%s' for model "
                                           "'%s'. Expected %lld, got %llu",
                          kelp_request_tag(request), name, request->model->name,
                          (long long)expected, (unsigned long long)input->data.size_bytes);
    return NULL;
}

static kelp_status *check_input(kelp_request *request, kelp_input *input) {
    const kelp_model_base *model = request->model;
    const char *name = kelp_text_get(&input->name);
    const kelp_config_io *io = kelp_model_config_input(model->config, kelp_str_from(name));
    if (io == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          KELP_REQUEST_TAG "unexpected inference input '%s' for model '%s'",
                          kelp_request_tag(request), name, model->name);
    if (io->data_type != input->datatype)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          KELP_REQUEST_TAG "inference input '%s' data-type is '%s', but model '%s' "
                                           "expects '%s'",
                          kelp_request_tag(request), name,
                          TRITONSERVER_DataTypeString(input->datatype), model->name,
                          TRITONSERVER_DataTypeString(io->data_type));
    uint32_t batch_dims = model->config->max_batch_size > 0 && !io->is_shape_tensor;
    if (input->client_rank != io->rank + batch_dims)
        return bad_shape(request, input, io);
    for (uint32_t i = 0; i < io->rank; i++) {
        int64_t dimension = input->client_shape[i + batch_dims];
        if (dimension < 0 || (io->dims[i] != -1 && io->dims[i] != dimension))
            return bad_shape(request, input, io);
    }
    int64_t elements;
    if (!elements_of(input->client_shape, input->client_rank, &elements))
        return bad_shape(request, input, io);
    KELP_TRY(check_bytes(request, input, elements));
    input->rank = input->client_rank;
    memcpy(input->shape, input->client_shape, input->client_rank * sizeof *input->shape);
    if (io->has_reshape)
        KELP_TRY(kelp_reshape(io->dims, io->rank, io->reshape, io->reshape_rank, batch_dims,
                              input->shape, &input->rank));
    return NULL;
}

kelp_status *kelp_request_normalize(kelp_request *request) {
    KELP_ASSERT(request->model && request->batch_size >= 1);
    KELP_TRY(check_outputs(request));
    if (request->raw_input && request->input_count == 1)
        KELP_TRY(describe_raw(request));
    KELP_TRY(read_batch_size(request));
    KELP_TRY(check_input_count(request));
    for (size_t i = 0; i < request->input_count; i++)
        KELP_TRY(check_input(request, request->inputs[i]));
    return NULL;
}
