/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches: joins the inputs of several requests, splits outputs, and computes the batch inputs of a
 * configuration (ModelConfig.batch_input in Triton's model_config.proto).
 */
#include "sdk/sdk.h"

/* ---- joining ---- */

static bool same_items(const kelp_backend_pieces *a, const kelp_backend_pieces *b) {
    if (a->rank != b->rank || a->dtype != b->dtype)
        return false;
    for (int32_t i = 1; i < a->rank; i++) {
        if (a->shape[i] != b->shape[i])
            return false;
    }
    return true;
}

/* The size and shape of a joined input. The first dimension is the sum of the first dimensions, or
 * of all elements if flat. */
typedef struct joined {
    size_t size_bytes;
    int32_t rank;
    int64_t shape[KELP_MAX_RANK];
} joined;

static kelp_status *add_shape(const kelp_backend_pieces *first, const kelp_backend_pieces *pieces,
                              bool flat, joined *inout) {
    int64_t rows = pieces->rank > 0 ? pieces->shape[0] : 1;
    if (!flat && pieces->rank < 1)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "input '%s' has no dimension to join along",
                          pieces->name);
    if (pieces->dtype != first->dtype || (!flat && !same_items(first, pieces)))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s': requests with different types or shapes cannot be joined",
                          pieces->name);
    if ((flat && !kelp_shape_elements(pieces->rank, pieces->shape, &rows)) ||
        !kelp_i64_add(inout->shape[0], rows, &inout->shape[0]) ||
        !kelp_size_add(inout->size_bytes, (size_t)pieces->size_bytes, &inout->size_bytes))
        return kelp_status_oom();
    return NULL;
}

static kelp_status *measure(kelp_backend_request **requests, size_t count, const char *name,
                            kelp_dtype dtype, int32_t rank, bool flat, joined *out) {
    kelp_backend_pieces first = {0}, pieces;
    *out = (joined){.rank = 1};
    for (size_t i = 0; i < count; i++) {
        KELP_TRY(kelp_backend_pieces_init(&pieces, requests[i], name));
        KELP_TRY(kelp_sdk_check("input", pieces.name, pieces.dtype, pieces.rank, dtype, rank));
        if (i == 0 && !flat) {
            out->rank = pieces.rank;
            for (int32_t d = 1; d < pieces.rank; d++)
                out->shape[d] = pieces.shape[d];
        }
        if (i == 0)
            first = pieces;
        KELP_TRY(add_shape(&first, &pieces, flat, out));
    }
    return NULL;
}

/* Returns the bytes of the joined input if they are adjacent in memory and aligned for every
 * element type, otherwise NULL. */
static kelp_status *find_adjacent(kelp_backend_request **requests, size_t count, const char *name,
                                  const char **out) {
    enum { ALIGNMENT = 8 };
    const char *next = NULL;
    *out = NULL;
    for (size_t i = 0; i < count; i++) {
        kelp_backend_pieces pieces;
        KELP_TRY(kelp_backend_pieces_init(&pieces, requests[i], name));
        for (;;) {
            const void *data = NULL;
            size_t size_bytes = 0;
            KELP_TRY(kelp_backend_pieces_next(&pieces, &data, &size_bytes));
            if (data == NULL)
                break;
            if (next == NULL)
                *out = data;
            else if (data != next)
                *out = NULL;
            if (*out == NULL)
                return NULL;
            next = (const char *)data + size_bytes;
        }
    }
    if ((uintptr_t)*out % ALIGNMENT != 0)
        *out = NULL;
    return NULL;
}

static kelp_status *join(kelp_backend_request **requests, size_t count, const char *name,
                         kelp_dtype dtype, int32_t rank, bool flat, kelp_tensor *out) {
    joined j;
    size_t filled = 0;
    kelp_backend_pieces pieces;
    KELP_TRY(measure(requests, count, name, dtype, rank, flat, &j));
    const char *adjacent = NULL;
    KELP_TRY(find_adjacent(requests, count, name, &adjacent));
    char *data = adjacent != NULL ? (char *)(uintptr_t)adjacent
                                  : kelp_backend_request_alloc(requests[0], j.size_bytes);
    if (data == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < count; i++) {
        KELP_TRY(kelp_backend_pieces_init(&pieces, requests[i], name));
        if (adjacent != NULL)
            continue;
        KELP_ASSERT(filled + pieces.size_bytes <= j.size_bytes); /* measured before */
        KELP_TRY(kelp_backend_pieces_copy(&pieces, data + filled, j.size_bytes - filled));
        filled += (size_t)pieces.size_bytes;
    }
    return kelp_sdk_tensor_from_wire(&requests[0]->arena, "input", pieces.name, pieces.dtype,
                                     j.rank, j.shape, data, j.size_bytes, out);
}

static kelp_status *no_requests(const char *name) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "input '%s': expected at least one request to join, found 0", name);
}

kelp_status *kelp_backend_gather(kelp_backend_request **requests, size_t request_count,
                                 const char *name, kelp_dtype dtype, int32_t rank,
                                 kelp_tensor *out) {
    if (request_count == 0)
        return no_requests(name);
    if (request_count == 1)
        return kelp_backend_input(requests[0], name, dtype, rank, out);
    return join(requests, request_count, name, dtype, rank, false, out);
}

kelp_status *kelp_backend_gather_flat(kelp_backend_request **requests, size_t request_count,
                                      const char *name, kelp_dtype dtype, kelp_tensor *out) {
    if (request_count == 0)
        return no_requests(name);
    return join(requests, request_count, name, dtype, KELP_ANY_RANK, true, out);
}

/* ---- splitting ---- */

/* Returns the part of a request, from `row` on. It has as many rows as the request's batch or, if
 * `like` is not NULL, the shape of that input. */
static kelp_status *part_of(const kelp_backend_request *request, const char *like,
                            const kelp_tensor *tensor, int64_t row, int64_t *out_rows,
                            kelp_tensor *out) {
    kelp_backend_pieces pieces;
    if (like == NULL) {
        *out_rows = request->batch;
        return kelp_backend_slice(tensor, 0, row, row + request->batch, out);
    }
    KELP_TRY(kelp_backend_pieces_init(&pieces, request, like));
    int64_t elements = 0, row_elements = 1;
    for (int32_t i = 1; i < tensor->rank; i++)
        row_elements *= tensor->shape[i];
    if (!kelp_shape_elements(pieces.rank, pieces.shape, &elements) || row_elements == 0 ||
        elements % row_elements)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "input '%s' has %lld elements: expected a multiple of %lld, the elements of a row",
            like, (long long)elements, (long long)row_elements);
    kelp_tensor rows;
    *out_rows = elements / row_elements;
    KELP_TRY(kelp_backend_slice(tensor, 0, row, row + *out_rows, &rows));
    if (!kelp_tensor_is_compact(&rows))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "a tensor with strides cannot be split by the shape of an input");
    return kelp_tensor_init(out, tensor->dtype, pieces.rank, pieces.shape, rows.data);
}

kelp_status *kelp_backend_scatter(kelp_backend_request **requests, size_t request_count,
                                  const char *name, const char *like, const kelp_tensor *tensor) {
    int64_t row = 0;
    if (tensor->rank < 1)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "output '%s' has no dimension to split along",
                          name);
    for (size_t i = 0; i < request_count; i++) {
        kelp_tensor part;
        int64_t rows = 0;
        kelp_backend_response *response;
        kelp_status *status = part_of(requests[i], like, tensor, row, &rows, &part);
        if (status != NULL)
            return KELP_ANNOTATE(status, "output '%s': cannot split the batch", name);
        row += rows;
        if (!kelp_backend_request_wants(requests[i], name))
            continue;
        KELP_TRY(kelp_backend_respond(requests[i], &response));
        KELP_TRY(kelp_backend_put_tensor(response, name, &part));
    }
    if (row != tensor->shape[0])
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "output '%s': the requests have %lld rows in total, the tensor has %lld",
                          name, (long long)row, (long long)tensor->shape[0]);
    return NULL;
}

/* ---- batch_input of the configuration ---- */

typedef enum kind {
    ELEMENT_COUNT,
    ACCUMULATED,
    ACCUMULATED_WITH_ZERO,
    MAX_AS_SHAPE,
    ITEM_SHAPE,
    ITEM_SHAPE_FLATTEN,
    KINDS
} kind;
static const char *const kind_names[KINDS] = {
    "BATCH_ELEMENT_COUNT",
    "BATCH_ACCUMULATED_ELEMENT_COUNT",
    "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
    "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE",
    "BATCH_ITEM_SHAPE",
    "BATCH_ITEM_SHAPE_FLATTEN",
};

/* An array of numbers in the type that the configuration requires. */
typedef struct numbers {
    kelp_dtype dtype;
    char *data;
    int64_t count;
    size_t capacity;
} numbers;

static kelp_status *add_number(numbers *out, int64_t value) {
    int64_t at = out->count++;
    KELP_ASSERT((size_t)at < out->capacity);
    if (out->dtype == KELP_I32 && (value < INT32_MIN || value > INT32_MAX))
        return KELP_ERROR(KELP_OUT_OF_RANGE, "a batch input of INT32 cannot have the value %lld",
                          (long long)value);
    if (out->dtype == KELP_I32)
        ((int32_t *)(void *)out->data)[at] = (int32_t)value;
    else if (out->dtype == KELP_I64)
        ((int64_t *)(void *)out->data)[at] = value;
    else
        ((float *)(void *)out->data)[at] = (float)value;
    return NULL;
}

/* Returns the first dimension of an item: without the batch dimension, if the model has one. */
static int32_t item_begin(const kelp_backend_request *request) {
    return request->instance->model->max_batch > 0 ? 1 : 0;
}

static kelp_status *fill(kind k, kelp_backend_request **requests, size_t count, const char *source,
                         numbers *out, int64_t *out_max) {
    int64_t sum = 0;
    if (k == ACCUMULATED_WITH_ZERO)
        KELP_TRY(add_number(out, 0));
    for (size_t i = 0; i < count; i++) {
        kelp_backend_pieces pieces;
        int64_t elements = 0;
        KELP_TRY(kelp_backend_pieces_init(&pieces, requests[i], source));
        if (!kelp_shape_elements(pieces.rank, pieces.shape, &elements) ||
            !kelp_i64_add(sum, elements, &sum))
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "input '%s' has too many elements", source);
        *out_max = KELP_MAX(*out_max, elements);
        if (k == ELEMENT_COUNT)
            KELP_TRY(add_number(out, elements));
        else if (k == ACCUMULATED || k == ACCUMULATED_WITH_ZERO)
            KELP_TRY(add_number(out, sum));
        for (int64_t b = 0; k >= ITEM_SHAPE && b < requests[i]->batch; b++) {
            for (int32_t d = item_begin(requests[i]); d < pieces.rank; d++)
                KELP_TRY(add_number(out, pieces.shape[d]));
        }
    }
    return NULL;
}

/* Allocates memory for the maximum number of values that `fill` writes. */
static kelp_status *reserve(kind k, kelp_backend_request **requests, size_t count,
                            const char *source, numbers *out, int64_t *out_batch,
                            int64_t *out_rank) {
    size_t values = count + 1, size_bytes;
    *out_batch = 0;
    *out_rank = -1;
    for (size_t i = 0; i < count && k >= ITEM_SHAPE; i++) {
        kelp_backend_pieces pieces;
        KELP_TRY(kelp_backend_pieces_init(&pieces, requests[i], source));
        int64_t rank = pieces.rank - item_begin(requests[i]);
        if (*out_rank >= 0 && rank != *out_rank)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "input '%s': the items of the batch differ in rank", source);
        *out_rank = rank;
        *out_batch += requests[i]->batch;
    }
    if (k >= ITEM_SHAPE && !kelp_size_mul((size_t)*out_batch, (size_t)*out_rank, &values))
        return kelp_status_oom();
    if (!kelp_size_mul(values, sizeof(int64_t), &size_bytes))
        return kelp_status_oom();
    out->capacity = values;
    out->data = kelp_backend_request_alloc(requests[0], size_bytes);
    return out->data != NULL ? NULL : kelp_status_oom();
}

static kelp_status *make(kind k, kelp_backend_request **requests, size_t count, const char *source,
                         kelp_dtype dtype, kelp_tensor *out) {
    numbers values = {.dtype = dtype};
    int64_t batch, rank, max_elements = 0;
    KELP_TRY(reserve(k, requests, count, source, &values, &batch, &rank));
    KELP_TRY(fill(k, requests, count, source, &values, &max_elements));
    if (k == ITEM_SHAPE)
        return kelp_tensor_init(out, dtype, 2, (int64_t[]){batch, rank}, values.data);
    if (k != MAX_AS_SHAPE)
        return kelp_tensor_init(out, dtype, 1, (int64_t[]){values.count}, values.data);
    size_t size_bytes;
    if (!kelp_dtype_bytes(dtype, max_elements, &size_bytes))
        return kelp_status_oom();
    void *data = kelp_backend_request_alloc(requests[0], size_bytes);
    if (data == NULL)
        return kelp_status_oom();
    memset(data, 0, size_bytes);
    return kelp_tensor_init(out, dtype, 1, (int64_t[]){max_elements}, data);
}

static const kelp_backend_value *batch_inputs(const kelp_backend_model *model) {
    return kelp_backend_value_get(kelp_backend_model_config(model), "batch_input");
}

size_t kelp_backend_batch_input_count(const kelp_backend_model *model) {
    return kelp_backend_value_count(batch_inputs(model));
}

static const char *first_text(const kelp_backend_value *value, const char *name) {
    return kelp_backend_value_text(kelp_backend_value_first(kelp_backend_value_get(value, name)),
                                   "");
}

kelp_status *kelp_backend_batch_input(kelp_backend_request **requests, size_t request_count,
                                      size_t index, const char **out_name, kelp_tensor *out) {
    if (request_count == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "a batch input needs at least one request: found 0");
    const kelp_backend_model *model = requests[0]->instance->model;
    const kelp_backend_value *value = kelp_backend_value_first(batch_inputs(model));
    for (size_t i = 0; i < index && value != NULL; i++)
        value = kelp_backend_value_next(value);
    if (value == NULL)
        return KELP_ERROR(KELP_OUT_OF_RANGE, "model '%s' has no batch_input %zu", model->name,
                          index);
    const char *name =
        kelp_backend_value_text(kelp_backend_value_get(value, "kind"), kind_names[ELEMENT_COUNT]);
    kelp_dtype dtype =
        kelp_dtype_parse(kelp_backend_value_text(kelp_backend_value_get(value, "data_type"), ""));
    if (dtype != KELP_I32 && dtype != KELP_I64 && dtype != KELP_F32)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "batch_input '%s' of model '%s': expected INT32, INT64 or FP32, found %s",
                          first_text(value, "target_name"), model->name, kelp_dtype_name(dtype));
    for (int k = 0; k < KINDS; k++) {
        if (strcmp(name, kind_names[k]) != 0)
            continue;
        *out_name = first_text(value, "target_name");
        return make((kind)k, requests, request_count, first_text(value, "source_input"), dtype,
                    out);
    }
    return KELP_ERROR(KELP_UNIMPLEMENTED, "batch_input of model '%s': unknown kind '%s'",
                      model->name, name);
}
