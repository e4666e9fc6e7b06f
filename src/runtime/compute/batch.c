/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: checks the items, and runs those of batched models as one inference. */
#include "base/arena.h"
#include "base/assert.h"
#include "base/checked.h"
#include "runtime/compute/state.h"

#include <string.h>

static kelp_status *not_batched(const kelp_compute_backend *backend, const char *what,
                                const kelp_io_info *info) {
    char shape[256];
    kelp_shape_format(info->rank, info->shape, shape, sizeof shape);
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "provider '%s' cannot run the model in batches: expected a dynamic first "
                      "dimension of %s '%s', found shape %s",
                      backend->name, what, info->name, shape);
}

kelp_status *kelp_compute_check_batched(const kelp_compute_backend *backend,
                                        const kelp_compute_metadata *metadata) {
    for (size_t i = 0; i < metadata->input_count; i++) {
        const kelp_io_info *info = &metadata->inputs[i];
        if (info->rank == 0 || (info->rank > 0 && info->shape[0] >= 0))
            return not_batched(backend, "input", info);
    }
    for (size_t i = 0; i < metadata->output_count; i++) {
        const kelp_io_info *info = &metadata->outputs[i];
        if (info->rank == 0 || (info->rank > 0 && info->shape[0] >= 0))
            return not_batched(backend, "output", info);
    }
    return NULL;
}

/* ---- kept outputs ---- */
static kelp_status *no_memory(size_t size_bytes) {
    return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "no memory for %zu bytes of a batch", size_bytes);
}

static kelp_status *keep_strings(kelp_arena *arena, kelp_tensor *inout) {
    kelp_string *strings = inout->data;
    int64_t count = kelp_tensor_elements(inout);
    for (int64_t i = 0; i < count; i++) {
        char *copy = kelp_arena_alloc(arena, strings[i].length, 1);
        if (copy == NULL)
            return no_memory(strings[i].length);
        if (strings[i].length > 0)
            memcpy(copy, strings[i].data, strings[i].length);
        strings[i].data = copy;
    }
    return NULL;
}

/* Copies an output in memory of the model, which the next inference overwrites. */
static kelp_status *keep(kelp_compute_model *model, const kelp_io_info *info, kelp_tensor *inout) {
    struct kelp_compute_state *state = model->state;
    size_t bytes = kelp_tensor_bytes(inout);
    if (!kelp_compute_on_host(inout))
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "output '%s' is on a device: provide memory for the outputs of a batch",
                          info->name);
    void *copy = kelp_arena_alloc(&state->batch, bytes, 64);
    if (copy == NULL)
        return no_memory(bytes);
    if (bytes > 0)
        memcpy(copy, inout->data, bytes);
    inout->data = copy;
    state->copies.outputs++;
    state->copies.output_bytes += bytes;
    return inout->dtype == KELP_STRING ? keep_strings(&state->batch, inout) : NULL;
}

/* ---- one batch ---- */
typedef struct batch {
    kelp_compute_model *model;
    const kelp_compute_metadata *metadata;
    kelp_infer_item *items;
    size_t count;
    bool *taken;    /* by item: it belongs to a group that has run or runs */
    size_t *group;  /* the items that run together */
    bool *unbound;  /* by output of the item that runs: the model provides the memory */
    size_t pending; /* number of items that are not taken */
    kelp_tensor *inputs, *outputs;
} batch;

static kelp_status *batch_init(batch *b, kelp_compute_model *model, kelp_infer_item *items,
                               size_t count) {
    kelp_arena *arena = &model->state->batch;
    const kelp_compute_metadata *metadata = model->vtbl->metadata(model);
    *b = (batch){.model = model,
                 .metadata = metadata,
                 .items = items,
                 .count = count,
                 .taken = KELP_ARENA_ARRAY(arena, count, bool),
                 .group = KELP_ARENA_ARRAY(arena, count, size_t),
                 .unbound = KELP_ARENA_ARRAY(arena, metadata->output_count, bool),
                 .pending = count,
                 .inputs = KELP_ARENA_ARRAY(arena, metadata->input_count, kelp_tensor),
                 .outputs = KELP_ARENA_ARRAY(arena, metadata->output_count, kelp_tensor)};
    return b->taken != NULL && b->group != NULL && b->unbound != NULL && b->inputs != NULL &&
                   b->outputs != NULL
               ? NULL
               : no_memory(count);
}

/* Runs one item. Keeps its outputs if another inference follows. */
static kelp_status *run_alone(batch *b, kelp_infer_item *item, bool is_last) {
    for (size_t i = 0; i < b->metadata->output_count; i++)
        b->unbound[i] = item->outputs[i].data == NULL;
    KELP_TRY(b->model->vtbl->infer_one(b->model, item));
    for (size_t i = 0; !is_last && i < b->metadata->output_count; i++) {
        if (b->unbound[i])
            KELP_TRY(keep(b->model, &b->metadata->outputs[i], &item->outputs[i]));
    }
    return NULL;
}

static kelp_status *run_each(batch *b, size_t group_count, kelp_batch_mode mode) {
    for (size_t k = 0; k < group_count; k++) {
        size_t i = b->group[k];
        kelp_status *status = run_alone(b, &b->items[i], b->pending == 0 && k + 1 == group_count);
        if (status != NULL && mode == KELP_BATCH_STOP_AT_FIRST)
            return KELP_ANNOTATE(status, "item %zu of a batch of %zu", i, b->count);
        b->items[i].status = status;
    }
    return NULL;
}

/* ---- groups ---- */
static bool whole_bytes(const kelp_tensor *tensor) {
    return tensor->dtype != KELP_LIST && kelp_dtype_bits(tensor->dtype) % 8 == 0;
}

/* Returns true if the item has the same first dimension in all inputs, and host memory. */
static bool can_join(const batch *b, const kelp_infer_item *item) {
    for (size_t i = 0; i < b->metadata->input_count; i++) {
        const kelp_tensor *tensor = &item->inputs[i];
        if (tensor->rank < 1 || tensor->shape[0] != item->inputs[0].shape[0] ||
            !whole_bytes(tensor) || !kelp_compute_on_host(tensor))
            return false;
    }
    for (size_t i = 0; i < b->metadata->output_count; i++)
        if (item->outputs[i].data != NULL && !kelp_compute_on_host(&item->outputs[i]))
            return false;
    return b->metadata->input_count > 0;
}

static bool fits(const batch *b, const kelp_infer_item *item, const kelp_infer_item *other) {
    for (size_t i = 0; i < b->metadata->input_count; i++) {
        const kelp_tensor *left = &item->inputs[i], *right = &other->inputs[i];
        if (left->dtype != right->dtype || left->rank != right->rank)
            return false;
        for (int32_t d = 1; d < left->rank; d++)
            if (left->shape[d] != right->shape[d])
                return false;
    }
    return can_join(b, other);
}

/* Selects the items that run with item `first`, and returns their number. */
static size_t select_group(batch *b, size_t first, kelp_batch_mode mode) {
    size_t group_count = 0;
    bool joins = b->model->state->batched && can_join(b, &b->items[first]);
    for (size_t i = first; i < b->count; i++) {
        if (b->taken[i])
            continue;
        if (i > first && !(joins && fits(b, &b->items[first], &b->items[i]))) {
            if (!joins || mode == KELP_BATCH_STOP_AT_FIRST)
                break;
            continue;
        }
        b->taken[i] = true;
        b->group[group_count++] = i;
    }
    KELP_ASSERT(group_count > 0 && group_count <= b->pending);
    b->pending -= group_count;
    return group_count;
}

/* Sets the data of the joined input: in place if the items are adjacent, otherwise a copy. */
static kelp_status *join_data(batch *b, size_t group_count, size_t input, kelp_tensor *inout) {
    const char *next = b->items[b->group[0]].inputs[input].data;
    struct kelp_compute_state *state = b->model->state;
    bool adjacent = true;
    inout->data = (void *)(uintptr_t)next;
    for (size_t k = 0; k < group_count; k++) {
        const kelp_tensor *part = &b->items[b->group[k]].inputs[input];
        size_t bytes = kelp_tensor_bytes(part);
        adjacent = adjacent && (bytes == 0 || part->data == next);
        next += bytes;
    }
    if (adjacent)
        return NULL;
    size_t total_bytes = kelp_tensor_bytes(inout);
    char *copy = kelp_arena_alloc(&state->batch, total_bytes, 64);
    if (copy == NULL)
        return no_memory(total_bytes);
    inout->data = copy;
    for (size_t k = 0; k < group_count; k++) {
        const kelp_tensor *part = &b->items[b->group[k]].inputs[input];
        size_t bytes = kelp_tensor_bytes(part);
        if (bytes > 0)
            memcpy(copy, part->data, bytes);
        copy += bytes;
    }
    state->copies.inputs += group_count;
    state->copies.input_bytes += total_bytes;
    return NULL;
}

static kelp_status *join_inputs(batch *b, size_t group_count, int64_t *out_rows) {
    int64_t rows = 0, shape[KELP_MAX_RANK];
    for (size_t k = 0; k < group_count; k++)
        if (!kelp_i64_add(rows, b->items[b->group[k]].inputs[0].shape[0], &rows))
            return no_memory(SIZE_MAX);
    for (size_t i = 0; i < b->metadata->input_count; i++) {
        const kelp_tensor *first = &b->items[b->group[0]].inputs[i];
        memcpy(shape, first->shape, sizeof shape);
        shape[0] = rows;
        KELP_TRY(kelp_tensor_init(&b->inputs[i], first->dtype, first->rank, shape, NULL));
        KELP_TRY(join_data(b, group_count, i, &b->inputs[i]));
    }
    *out_rows = rows;
    return NULL;
}

/* Returns true if every output has one row for each row of the inputs. */
static bool can_split(const batch *b, int64_t rows) {
    for (size_t i = 0; i < b->metadata->output_count; i++) {
        const kelp_tensor *output = &b->outputs[i];
        if (output->rank < 1 || output->shape[0] != rows || !whole_bytes(output) ||
            !kelp_compute_on_host(output) || !kelp_tensor_is_compact(output))
            return false;
    }
    return true;
}

/* Sets an output of an item to its rows of the joined output. */
static kelp_status *split_output(batch *b, size_t index, int64_t begin, int64_t rows,
                                 kelp_tensor *inout) {
    const kelp_io_info *info = &b->metadata->outputs[index];
    const kelp_tensor *joined = &b->outputs[index];
    kelp_tensor part = *joined;
    kelp_tensor before = *joined;
    before.shape[0] = begin;
    part.shape[0] = rows;
    size_t bytes = kelp_tensor_bytes(&part);
    if (joined->data != NULL)
        part.data = (char *)joined->data + kelp_tensor_bytes(&before);
    if (inout->data != NULL) {
        size_t capacity_bytes = kelp_tensor_bytes(inout);
        if (capacity_bytes < bytes)
            return KELP_ERROR(KELP_OUT_OF_RANGE,
                              "the memory for output '%s' is too small: expected %zu bytes, found "
                              "%zu",
                              info->name, bytes, capacity_bytes);
        if (bytes > 0)
            memcpy(inout->data, part.data, bytes);
        part.data = inout->data;
        part.device = inout->device;
        b->model->state->copies.outputs++;
        b->model->state->copies.output_bytes += bytes;
    } else if (b->pending > 0) {
        KELP_TRY(keep(b->model, info, &part));
    }
    *inout = part;
    return NULL;
}

static kelp_status *split_outputs(batch *b, size_t group_count, kelp_batch_mode mode) {
    int64_t begin = 0;
    for (size_t k = 0; k < group_count; k++) {
        kelp_infer_item *item = &b->items[b->group[k]];
        int64_t rows = item->inputs[0].shape[0];
        kelp_status *status = NULL;
        for (size_t i = 0; status == NULL && i < b->metadata->output_count; i++)
            status = split_output(b, i, begin, rows, &item->outputs[i]);
        if (status != NULL && mode == KELP_BATCH_STOP_AT_FIRST)
            return KELP_ANNOTATE(status, "item %zu of a batch of %zu", b->group[k], b->count);
        item->status = status;
        begin += rows;
    }
    return NULL;
}

static kelp_status *run_group(batch *b, size_t group_count, kelp_batch_mode mode) {
    int64_t rows = 0;
    if (group_count == 1)
        return run_each(b, 1, mode);
    for (size_t i = 0; i < b->metadata->output_count; i++)
        b->outputs[i] = (kelp_tensor){0};
    kelp_infer_item joined = {.inputs = b->inputs, .outputs = b->outputs};
    kelp_status *status = join_inputs(b, group_count, &rows);
    if (status == NULL)
        status = b->model->vtbl->infer_one(b->model, &joined);
    if (status == NULL && can_split(b, rows))
        return split_outputs(b, group_count, mode);
    if (status == NULL)
        b->model->state->batched = false; /* the outputs do not follow the batch */
    kelp_status_free(status);
    return run_each(b, group_count, mode);
}

kelp_status *kelp_compute_join(kelp_compute_model *model, kelp_infer_item *items, size_t count,
                               kelp_batch_mode mode) {
    batch b;
    KELP_TRY(batch_init(&b, model, items, count));
    for (size_t i = 0; i < count; i++) {
        if (!b.taken[i])
            KELP_TRY(run_group(&b, select_group(&b, i, mode), mode));
    }
    return NULL;
}

/* ---- checks ---- */
/* The items that pass the checks, with copies of inputs that cannot be read in place. */
typedef struct checked {
    kelp_infer_item *items;
    size_t *index; /* in the caller's items */
    size_t count;
} checked;

/* Checks the items. With KELP_BATCH_STOP_AT_FIRST, stops at the first that fails and sets
 * `*out_failed`; otherwise, sets its status. */
static kelp_status *check_items(kelp_compute_model *model, kelp_infer_item *items, size_t count,
                                kelp_batch_mode mode, checked *out, kelp_status **out_failed) {
    kelp_arena *arena = &model->state->batch;
    *out = (checked){.items = KELP_ARENA_ARRAY(arena, count, kelp_infer_item),
                     .index = KELP_ARENA_ARRAY(arena, count, size_t)};
    if (out->items == NULL || out->index == NULL)
        return no_memory(count * sizeof *out->items);
    kelp_arena_clear(&model->state->staging);
    for (size_t i = 0; i < count; i++) {
        bool adapt = false;
        kelp_infer_item item = items[i];
        kelp_status *status = kelp_compute_check_item(model, &items[i], &adapt);
        if (status == NULL && adapt)
            status = kelp_compute_adapt(model, &items[i], &item);
        if (status == NULL) {
            out->index[out->count] = i;
            out->items[out->count++] = item;
            continue;
        }
        if (mode == KELP_BATCH_STOP_AT_FIRST) {
            *out_failed = KELP_ANNOTATE(status, "item %zu of a batch of %zu", i, count);
            return NULL;
        }
        items[i].status = status;
    }
    return NULL;
}

static kelp_status *run_checked(kelp_compute_model *model, const checked *c, kelp_batch_mode mode) {
    if (c->count == 0)
        return NULL;
    if (model->vtbl->infer_batch == NULL)
        return kelp_compute_join(model, c->items, c->count, mode);
    return KELP_ANNOTATE(model->vtbl->infer_batch(model, c->items, c->count, mode),
                         "a batch of %zu items", c->count);
}

static kelp_status *run_batch(kelp_compute_model *model, kelp_infer_item *items, size_t count,
                              kelp_batch_mode mode) {
    checked c;
    kelp_status *failed = NULL;
    KELP_TRY(check_items(model, items, count, mode, &c, &failed));
    kelp_status *status = run_checked(model, &c, mode);
    for (size_t k = 0; k < c.count; k++) {
        size_t i = c.index[k];
        kelp_status *result = c.items[k].status;
        if (result == NULL && status == NULL)
            result = kelp_compute_check_outputs(model, &items[i]);
        if (mode == KELP_BATCH_EACH)
            items[i].status = result;
        else if (status == NULL && result != NULL)
            status = KELP_ANNOTATE(result, "item %zu of a batch of %zu", i, count);
        else
            kelp_status_free(result);
    }
    if (status == NULL)
        return failed;
    kelp_status_free(failed);
    return status;
}

/* Runs a batch of one item, which needs no descriptions. */
static kelp_status *run_only(kelp_compute_model *model, kelp_infer_item *item,
                             kelp_batch_mode mode) {
    kelp_status *status = kelp_compute_run_item(model, item);
    if (mode == KELP_BATCH_STOP_AT_FIRST)
        return KELP_ANNOTATE(status, "item 0 of a batch of 1");
    item->status = status;
    return NULL;
}

static kelp_status *check_count(const kelp_compute_model *model, size_t count) {
    size_t max_batch = model->state->capabilities.max_batch;
    return max_batch == 0 || count <= max_batch
               ? NULL
               : KELP_ERROR(KELP_OUT_OF_RANGE,
                            "the batch has %zu items: provider '%s' accepts at most %zu", count,
                            model->state->backend->name, max_batch);
}

kelp_status *kelp_compute_infer_batch(kelp_compute_model *model, kelp_infer_item *items,
                                      size_t count, kelp_batch_mode mode) {
    KELP_TRY(kelp_compute_check_owner(model));
    for (size_t i = 0; i < count; i++)
        items[i].status = NULL;
    KELP_TRY(check_count(model, count));
    if (count == 1 && model->vtbl->infer_batch == NULL)
        return run_only(model, items, mode);
    kelp_arena_clear(&model->state->batch);
    return run_batch(model, items, count, mode);
}

kelp_status *kelp_compute_infer_arrays(kelp_compute_model *model, const kelp_tensor *inputs,
                                       size_t input_count, kelp_tensor *outputs,
                                       size_t output_count) {
    const kelp_compute_metadata *metadata = model->vtbl->metadata(model);
    if (metadata->input_count != 1 || metadata->output_count != 1)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the model has %zu inputs and %zu outputs: arrays need one of each",
                          metadata->input_count, metadata->output_count);
    if (input_count != output_count)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the arrays differ in length: %zu inputs, %zu outputs", input_count,
                          output_count);
    KELP_TRY(kelp_compute_check_owner(model));
    KELP_TRY(check_count(model, input_count));
    kelp_arena_clear(&model->state->batch);
    kelp_infer_item *items = KELP_ARENA_ARRAY(&model->state->batch, input_count, kelp_infer_item);
    if (items == NULL)
        return no_memory(input_count * sizeof *items);
    for (size_t i = 0; i < input_count; i++)
        items[i] = (kelp_infer_item){.inputs = &inputs[i], .outputs = &outputs[i]};
    return run_batch(model, items, input_count, KELP_BATCH_STOP_AT_FIRST);
}
