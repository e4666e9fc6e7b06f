/* SPDX-License-Identifier: Apache-2.0 */
/* Ragged batches: the configuration, joined inputs, and split outputs. */
#include "ragged.h"

#include <stdlib.h>
#include <string.h>

/* ---- configuration ---- */

static const kelp_backend_value *field(const kelp_backend_model *model, const char *name) {
    return kelp_backend_value_get(kelp_backend_model_config(model), name);
}

static const char *text_of(const kelp_backend_value *message, const char *name) {
    return kelp_backend_value_text(kelp_backend_value_get(message, name), "");
}

static bool is_ragged(const kelp_backend_value *input) {
    return kelp_backend_value_bool(kelp_backend_value_get(input, "allow_ragged_batch"), false);
}

bool kelp_ragged_is_configured(const kelp_backend_model *model) {
    const kelp_backend_value *input = kelp_backend_value_first(field(model, "input"));
    for (; input != NULL; input = kelp_backend_value_next(input))
        if (is_ragged(input))
            return true;
    return kelp_backend_value_count(field(model, "batch_input")) +
               kelp_backend_value_count(field(model, "batch_output")) >
           0;
}

/* Returns true if a name is a target of the messages of a list. */
static bool is_target(const kelp_backend_value *list, const char *name) {
    for (const kelp_backend_value *one = kelp_backend_value_first(list); one != NULL;
         one = kelp_backend_value_next(one)) {
        const kelp_backend_value *target =
            kelp_backend_value_first(kelp_backend_value_get(one, "target_name"));
        for (; target != NULL; target = kelp_backend_value_next(target))
            if (strcmp(kelp_backend_value_text(target, ""), name) == 0)
                return true;
    }
    return false;
}

bool kelp_ragged_has_own_shape(const kelp_backend_model *model, const kelp_backend_value *tensor,
                               const char *name) {
    return is_ragged(tensor) || is_target(field(model, "batch_output"), name);
}

static kelp_status *find(const kelp_backend_model *model, const char *what, const char *name,
                         const kelp_io_info *tensors, size_t count, size_t *out) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(tensors[i].name, name) != 0)
            continue;
        *out = i;
        return NULL;
    }
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "model '%s': %s '%s' is not in the model",
                      kelp_backend_model_name(model), what, name);
}

static bool find_kind(const char *name, kelp_ragged_kind *out) {
    static const char *const names[] = {"BATCH_ELEMENT_COUNT",
                                        "BATCH_ACCUMULATED_ELEMENT_COUNT",
                                        "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
                                        "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE",
                                        "BATCH_ITEM_SHAPE",
                                        "BATCH_ITEM_SHAPE_FLATTEN"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) != 0)
            continue;
        *out = (kelp_ragged_kind)(KELP_RAGGED_COUNT + i);
        return true;
    }
    return false;
}

static kelp_status *read_batch_input(kelp_ragged *ragged, const kelp_backend_model *model,
                                     const kelp_compute_metadata *metadata,
                                     const kelp_backend_value *from) {
    const char *type = text_of(from, "data_type");
    kelp_dtype dtype = kelp_dtype_parse(type);
    kelp_ragged_input input = {0};
    const kelp_backend_value *source =
        kelp_backend_value_first(kelp_backend_value_get(from, "source_input"));
    if (!find_kind(text_of(from, "kind"), &input.kind))
        return KELP_ERROR(KELP_UNIMPLEMENTED, "model '%s': batch_input of unknown kind '%s'",
                          kelp_backend_model_name(model), text_of(from, "kind"));
    KELP_TRY(find(model, "source_input", kelp_backend_value_text(source, ""), metadata->inputs,
                  metadata->input_count, &input.source));
    const kelp_backend_value *target =
        kelp_backend_value_first(kelp_backend_value_get(from, "target_name"));
    for (; target != NULL; target = kelp_backend_value_next(target)) {
        const char *name = kelp_backend_value_text(target, "");
        size_t index = 0;
        KELP_TRY(find(model, "batch_input target", name, metadata->inputs, metadata->input_count,
                      &index));
        if (dtype != metadata->inputs[index].dtype ||
            (dtype != KELP_I32 && dtype != KELP_I64 && dtype != KELP_F32))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "model '%s': batch_input '%s': expected data_type TYPE_%s of the "
                              "model, which must be INT32, INT64 or FP32, found %s",
                              kelp_backend_model_name(model), name,
                              kelp_dtype_name(metadata->inputs[index].dtype), type);
        ragged->inputs[index] = input;
    }
    return NULL;
}

static kelp_status *read_batch_output(kelp_ragged *ragged, const kelp_backend_model *model,
                                      const kelp_compute_metadata *metadata,
                                      const kelp_backend_value *from) {
    size_t input = 0, output = 0;
    const kelp_backend_value *source =
        kelp_backend_value_first(kelp_backend_value_get(from, "source_input"));
    const kelp_backend_value *target =
        kelp_backend_value_first(kelp_backend_value_get(from, "target_name"));
    KELP_TRY(find(model, "source_input", kelp_backend_value_text(source, ""), metadata->inputs,
                  metadata->input_count, &input));
    for (; target != NULL; target = kelp_backend_value_next(target)) {
        KELP_TRY(find(model, "batch_output target", kelp_backend_value_text(target, ""),
                      metadata->outputs, metadata->output_count, &output));
        ragged->scatter_like[output] = input;
    }
    return NULL;
}

kelp_status *kelp_ragged_init(kelp_ragged *out, const kelp_backend_model *model,
                              const kelp_compute_metadata *metadata) {
    *out = (kelp_ragged){0};
    if (!kelp_ragged_is_configured(model))
        return NULL;
    out->inputs = calloc(metadata->input_count + 1, sizeof *out->inputs);
    out->scatter_like = calloc(metadata->output_count + 1, sizeof *out->scatter_like);
    if (out->inputs == NULL || out->scatter_like == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < metadata->output_count; i++)
        out->scatter_like[i] = SIZE_MAX;
    for (const kelp_backend_value *input = kelp_backend_value_first(field(model, "input"));
         input != NULL; input = kelp_backend_value_next(input)) {
        size_t index = 0;
        KELP_TRY(find(model, "input", text_of(input, "name"), metadata->inputs,
                      metadata->input_count, &index));
        if (is_ragged(input))
            out->inputs[index].kind = KELP_RAGGED_FLAT;
    }
    for (const kelp_backend_value *one = kelp_backend_value_first(field(model, "batch_input"));
         one != NULL; one = kelp_backend_value_next(one))
        KELP_TRY(read_batch_input(out, model, metadata, one));
    for (const kelp_backend_value *one = kelp_backend_value_first(field(model, "batch_output"));
         one != NULL; one = kelp_backend_value_next(one))
        KELP_TRY(read_batch_output(out, model, metadata, one));
    return NULL;
}

void kelp_ragged_deinit(kelp_ragged *ragged) {
    free(ragged->inputs);
    free(ragged->scatter_like);
}

/* ---- memory ---- */

kelp_status *kelp_ragged_buffers_init(kelp_ragged_buffers *out,
                                      const kelp_compute_metadata *metadata) {
    *out = (kelp_ragged_buffers){
        .inputs = calloc(metadata->input_count + 1, sizeof *out->inputs),
        .outputs = calloc(metadata->output_count + 1, sizeof *out->outputs),
        .memory = calloc(metadata->input_count + 1, sizeof *out->memory),
        .capacity_bytes = calloc(metadata->input_count + 1, sizeof *out->capacity_bytes),
        .input_count = metadata->input_count};
    return out->inputs != NULL && out->outputs != NULL && out->memory != NULL &&
                   out->capacity_bytes != NULL
               ? NULL
               : kelp_status_oom();
}

void kelp_ragged_buffers_deinit(kelp_ragged_buffers *buffers) {
    for (size_t i = 0; buffers->memory != NULL && i < buffers->input_count; i++)
        free(buffers->memory[i]);
    free(buffers->inputs);
    free(buffers->outputs);
    free(buffers->memory);
    free(buffers->capacity_bytes);
}

/* Ensures that the memory of an input has at least `size_bytes`. The contents are lost. */
static kelp_status *reserve(kelp_ragged_buffers *buffers, size_t input, size_t size_bytes) {
    if (size_bytes <= buffers->capacity_bytes[input])
        return NULL;
    size_t rounded = (size_bytes + 4095) / 4096 * 4096;
    void *memory = rounded < size_bytes ? NULL : aligned_alloc(64, rounded);
    if (memory == NULL)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "no memory for %zu bytes of a batch",
                          size_bytes);
    free(buffers->memory[input]);
    buffers->memory[input] = memory;
    buffers->capacity_bytes[input] = rounded;
    return NULL;
}

/* ---- inputs that describe the requests ---- */

static void put_number(kelp_tensor *tensor, int64_t index, int64_t value) {
    if (tensor->dtype == KELP_I32)
        ((int32_t *)tensor->data)[index] = (int32_t)value;
    else if (tensor->dtype == KELP_I64)
        ((int64_t *)tensor->data)[index] = value;
    else
        ((float *)tensor->data)[index] = (float)value;
}

/* Computes the shape of an input that describes the input `source` of the items. */
static void describe(kelp_ragged_kind kind, const kelp_infer_item *items, size_t count,
                     size_t source, int64_t shape[2], int32_t *out_rank) {
    int64_t rows = 0, maximum = 0, dims = items[0].inputs[source].rank - 1;
    for (size_t k = 0; k < count; k++) {
        const kelp_tensor *tensor = &items[k].inputs[source];
        int64_t elements = kelp_tensor_elements(tensor);
        rows += tensor->rank > 0 ? tensor->shape[0] : 1;
        maximum = elements > maximum ? elements : maximum;
    }
    *out_rank = kind == KELP_RAGGED_SHAPE ? 2 : 1;
    shape[1] = dims;
    if (kind == KELP_RAGGED_MAXIMUM)
        shape[0] = maximum;
    else if (kind == KELP_RAGGED_SHAPE)
        shape[0] = rows;
    else if (kind == KELP_RAGGED_SHAPE_FLAT)
        shape[0] = rows * dims;
    else
        shape[0] = (int64_t)count + (kind == KELP_RAGGED_SUM_ZERO);
}

/* Writes the shape of one row of an item's tensor, for each of its rows. */
static int64_t put_shapes(kelp_tensor *to, int64_t at, const kelp_tensor *from) {
    for (int64_t row = 0; row < from->shape[0]; row++)
        for (int32_t d = 1; d < from->rank; d++)
            put_number(to, at++, from->shape[d]);
    return at;
}

static kelp_status *fill_description(kelp_ragged_buffers *buffers, size_t input,
                                     const kelp_ragged_input *how, kelp_dtype dtype,
                                     const kelp_infer_item *items, size_t count) {
    kelp_tensor *tensor = &buffers->inputs[input];
    int64_t shape[2], at = 0, sum = 0;
    int32_t rank = 0;
    describe(how->kind, items, count, how->source, shape, &rank);
    KELP_TRY(kelp_tensor_init(tensor, dtype, rank, shape, NULL));
    KELP_TRY(reserve(buffers, input, kelp_tensor_bytes(tensor) + 1));
    tensor->data = buffers->memory[input];
    if (how->kind == KELP_RAGGED_MAXIMUM)
        memset(tensor->data, 0, kelp_tensor_bytes(tensor)); /* only the shape has a meaning */
    if (how->kind == KELP_RAGGED_SUM_ZERO)
        put_number(tensor, at++, 0);
    for (size_t k = 0; k < count && how->kind != KELP_RAGGED_MAXIMUM; k++) {
        const kelp_tensor *source = &items[k].inputs[how->source];
        if (how->kind == KELP_RAGGED_SHAPE || how->kind == KELP_RAGGED_SHAPE_FLAT) {
            at = put_shapes(tensor, at, source);
            continue;
        }
        sum = (how->kind == KELP_RAGGED_COUNT ? 0 : sum) + kelp_tensor_elements(source);
        put_number(tensor, at++, sum);
    }
    return NULL;
}

/* ---- inputs of the requests ---- */

static kelp_status *joined_shape(size_t input, bool flat, const kelp_infer_item *items,
                                 size_t count, kelp_tensor *out) {
    const kelp_tensor *first = &items[0].inputs[input];
    int64_t shape[KELP_MAX_RANK], length = 0;
    memcpy(shape, first->shape, sizeof shape);
    for (size_t k = 0; k < count; k++) {
        const kelp_tensor *part = &items[k].inputs[input];
        bool fits = part->rank == first->rank && part->rank > 0;
        for (int32_t d = 1; fits && !flat && d < part->rank; d++)
            fits = part->shape[d] == first->shape[d];
        if (!fits)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "the requests of a batch have different shapes of input %zu", input);
        if (__builtin_add_overflow(length, flat ? kelp_tensor_elements(part) : part->shape[0],
                                   &length))
            return kelp_status_oom();
    }
    shape[0] = length;
    return kelp_tensor_init(out, first->dtype, flat ? 1 : first->rank, shape, NULL);
}

/* Concatenates an input; in place if the parts are adjacent in memory. */
static kelp_status *join_input(kelp_ragged_buffers *buffers, size_t input, bool flat,
                               const kelp_infer_item *items, size_t count) {
    kelp_tensor *tensor = &buffers->inputs[input];
    const char *next = items[0].inputs[input].data;
    bool adjacent = true;
    KELP_TRY(joined_shape(input, flat, items, count, tensor));
    tensor->data = (void *)(uintptr_t)next;
    for (size_t k = 0; k < count; k++) {
        const kelp_tensor *part = &items[k].inputs[input];
        size_t bytes = kelp_tensor_bytes(part);
        adjacent = adjacent && (bytes == 0 || part->data == next);
        next += bytes;
    }
    if (adjacent && tensor->data != NULL)
        return NULL;
    KELP_TRY(reserve(buffers, input, kelp_tensor_bytes(tensor) + 1));
    char *at = tensor->data = buffers->memory[input];
    for (size_t k = 0; k < count; k++) {
        const kelp_tensor *part = &items[k].inputs[input];
        size_t bytes = kelp_tensor_bytes(part);
        if (bytes > 0)
            memcpy(at, part->data, bytes);
        at += bytes;
    }
    return NULL;
}

/* ---- outputs ---- */

/* Sets the shape of an item's part of an output. */
static kelp_status *part_shape(const kelp_ragged *ragged, size_t output, const kelp_tensor *joined,
                               const kelp_infer_item *item, int64_t rows, kelp_tensor *out) {
    size_t like = ragged->scatter_like[output];
    int64_t shape[KELP_MAX_RANK];
    if (like != SIZE_MAX)
        return kelp_tensor_init(out, joined->dtype, item->inputs[like].rank,
                                item->inputs[like].shape, NULL);
    memcpy(shape, joined->shape, sizeof shape);
    shape[0] = rows;
    return kelp_tensor_init(out, joined->dtype, joined->rank, shape, NULL);
}

/* Returns the batch size of an item: the first dimension of its inputs. */
static int64_t rows_of(const kelp_ragged *ragged, size_t input_count, const kelp_infer_item *item) {
    for (size_t i = 0; i < input_count; i++)
        if (ragged->inputs[i].kind <= KELP_RAGGED_FLAT)
            return item->inputs[i].shape[0];
    return 1;
}

static kelp_status *split_output(const kelp_ragged *ragged, const kelp_compute_metadata *metadata,
                                 size_t output, const kelp_tensor *joined, kelp_infer_item *items,
                                 size_t count) {
    size_t begin = 0, total = kelp_tensor_bytes(joined);
    for (size_t k = 0; k < count && joined->rank > 0; k++) {
        kelp_tensor *part = &items[k].outputs[output];
        int64_t rows = rows_of(ragged, metadata->input_count, &items[k]);
        KELP_TRY(part_shape(ragged, output, joined, &items[k], rows, part));
        size_t bytes = kelp_tensor_bytes(part);
        if (bytes > total - begin)
            break;
        part->data = (char *)joined->data + begin;
        begin += bytes;
    }
    if (joined->rank > 0 && begin == total)
        return NULL;
    char shape[256];
    kelp_shape_format(joined->rank, joined->shape, shape, sizeof shape);
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "output '%s' of a batch has shape %s, which does not have one part for each "
                      "request: expected %s",
                      metadata->outputs[output].name, shape,
                      ragged->scatter_like[output] != SIZE_MAX
                          ? "the elements of the source input of its batch_output"
                          : "one row for each row of the batch");
}

kelp_status *kelp_ragged_infer(const kelp_ragged *ragged, kelp_ragged_buffers *buffers,
                               kelp_compute_model *model, kelp_infer_item *items, size_t count) {
    const kelp_compute_metadata *metadata = kelp_compute_metadata_of(model);
    kelp_infer_item joined = {.inputs = buffers->inputs, .outputs = buffers->outputs};
    for (size_t i = 0; i < metadata->input_count; i++) {
        const kelp_ragged_input *how = &ragged->inputs[i];
        if (how->kind >= KELP_RAGGED_COUNT)
            KELP_TRY(fill_description(buffers, i, how, metadata->inputs[i].dtype, items, count));
        else
            KELP_TRY(join_input(buffers, i, how->kind == KELP_RAGGED_FLAT, items, count));
    }
    memset(buffers->outputs, 0, metadata->output_count * sizeof *buffers->outputs);
    KELP_TRY(kelp_compute_infer_one(model, &joined));
    for (size_t i = 0; i < metadata->output_count; i++)
        KELP_TRY(split_output(ragged, metadata, i, &buffers->outputs[i], items, count));
    return NULL;
}
