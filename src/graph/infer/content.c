/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the elements of small integer vectors that are known before a run, such as the target
 * shape of a Reshape that Shape, Gather and Concat produce. Names of dynamic dimensions are kept.
 */
#include "graph/infer/infer.h"

#include "base/assert.h"
#include "base/checked.h"

#include <string.h>

static bool content_of_tensor(const kelp_tensor *tensor, kelp_content *out) {
    if (tensor->rank > 1 || (tensor->dtype != KELP_I64 && tensor->dtype != KELP_I32))
        return false;
    int64_t count = kelp_tensor_elements(tensor);
    if (count > KELP_MAX_RANK)
        return false;
    *out = (kelp_content){.rank = tensor->rank, .count = (size_t)count};
    for (size_t i = 0; i < out->count; i++) {
        out->items[i].known = true;
        if (tensor->dtype == KELP_I64) {
            memcpy(&out->items[i].value, (const char *)tensor->data + 8 * i, 8);
        } else {
            int32_t narrow;
            memcpy(&narrow, (const char *)tensor->data + 4 * i, 4);
            out->items[i].value = narrow;
        }
    }
    return true;
}

static bool content_of_constant(const kelp_node *node, kelp_content *out) {
    const kelp_attr *attr = kelp_node_find_attr(node, "value_int");
    const int64_t *ints = NULL;
    size_t count = kelp_node_attr_i64s(node, "value_ints", &ints);
    if (kelp_node_attr_tensor(node, "value") != NULL)
        return content_of_tensor(kelp_node_attr_tensor(node, "value"), out);
    if (attr != NULL && attr->type == KELP_ATTR_INT) {
        *out = (kelp_content){.rank = 0, .count = 1};
        out->items[0].known = true;
        out->items[0].value = attr->i;
        return true;
    }
    if (ints == NULL || count > KELP_MAX_RANK)
        return false;
    *out = (kelp_content){.rank = 1, .count = count};
    for (size_t i = 0; i < count; i++) {
        out->items[i].known = true;
        out->items[i].value = ints[i];
    }
    return true;
}

bool kelp_infer_content(const kelp_infer *infer, const kelp_value *value, kelp_content *out) {
    if (value->constant != NULL)
        return content_of_tensor(value->constant, out);
    for (; infer != NULL; infer = infer->parent)
        if (infer->block == value->block && infer->contents[value->id] != NULL) {
            *out = *infer->contents[value->id];
            return true;
        }
    return false;
}

bool kelp_infer_i64s(const kelp_infer *infer, const kelp_value *value, int64_t *out,
                     size_t *out_count) {
    kelp_content content;
    if (!kelp_infer_content(infer, value, &content))
        return false;
    KELP_ASSERT(content.count <= KELP_MAX_RANK);
    for (size_t i = 0; i < content.count; i++) {
        if (!content.items[i].known)
            return false;
        out[i] = content.items[i].value;
    }
    *out_count = content.count;
    return true;
}

/* ---- operators ---- */
static bool input(const kelp_infer *infer, const kelp_node *node, size_t index, kelp_content *out) {
    return index < node->input_count && node->inputs[index] != NULL &&
           kelp_infer_content(infer, node->inputs[index], out);
}

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

bool kelp_content_shape(const kelp_infer *infer, const kelp_node *node, kelp_content *out) {
    kelp_dims in;
    (void)infer;
    if (!kelp_dims_load(node, 0, &in))
        return false;
    int64_t start = kelp_node_attr_i64(node, "start", 0);
    int64_t end = kelp_node_attr_i64(node, "end", in.rank);
    start = clamp(start < 0 ? start + in.rank : start, 0, in.rank);
    end = clamp(end < 0 ? end + in.rank : end, 0, in.rank);
    *out = (kelp_content){.rank = 1};
    for (int64_t i = start; i < end; i++, out->count++) {
        out->items[out->count].known = in.shape[i] >= 0;
        out->items[out->count].value = in.shape[i];
        out->items[out->count].symbol = in.symbols[i];
    }
    return true;
}

bool kelp_content_gather(const kelp_infer *infer, const kelp_node *node, kelp_content *out) {
    kelp_content data, at;
    if (!input(infer, node, 0, &data) || !input(infer, node, 1, &at) || data.rank != 1)
        return false;
    *out = (kelp_content){.rank = at.rank, .count = at.count};
    for (size_t i = 0; i < at.count; i++) {
        int64_t index = at.items[i].value;
        index = index < 0 ? index + (int64_t)data.count : index;
        if (!at.items[i].known || index < 0 || index >= (int64_t)data.count)
            return false;
        out->items[i] = data.items[index];
    }
    return true;
}

bool kelp_content_concat(const kelp_infer *infer, const kelp_node *node, kelp_content *out) {
    *out = (kelp_content){.rank = 1};
    for (size_t i = 0; i < node->input_count; i++) {
        kelp_content part;
        if (!input(infer, node, i, &part) || part.rank != 1 ||
            out->count + part.count > KELP_MAX_RANK)
            return false;
        memcpy(&out->items[out->count], part.items, part.count * sizeof part.items[0]);
        out->count += part.count;
    }
    return true;
}

bool kelp_content_slice(const kelp_infer *infer, const kelp_node *node, kelp_content *out) {
    kelp_content data;
    kelp_infer_call call = {.infer = infer, .node = node};
    int64_t start[KELP_MAX_RANK], end[KELP_MAX_RANK], axes[KELP_MAX_RANK], step[KELP_MAX_RANK];
    size_t starts, ends, axis_count, steps;
    if (!input(infer, node, 0, &data) || data.rank != 1 ||
        !kelp_infer_list(&call, "starts", 1, start, &starts) || starts != 1 ||
        !kelp_infer_list(&call, "ends", 2, end, &ends) || ends != 1 ||
        !kelp_infer_list(&call, "axes", 3, axes, &axis_count) ||
        !kelp_infer_list(&call, NULL, 4, step, &steps) || (steps == 1 && step[0] != 1))
        return false;
    int64_t count = (int64_t)data.count;
    int64_t from = clamp(start[0] < 0 ? start[0] + count : start[0], 0, count);
    int64_t to = clamp(end[0] < 0 ? end[0] + count : end[0], 0, count);
    *out = (kelp_content){.rank = 1};
    for (int64_t i = from; i < to; i++)
        out->items[out->count++] = data.items[i];
    return true;
}

bool kelp_content_same(const kelp_infer *infer, const kelp_node *node, kelp_content *out) {
    return input(infer, node, 0, out);
}

/* Values that do not fit into 32 bits stay unknown. A dynamic dimension fits: no tensor is larger.
 */
bool kelp_content_cast(const kelp_infer *infer, const kelp_node *node, kelp_content *out) {
    int64_t to = kelp_node_attr_i64(node, "to", 0);
    if ((to != KELP_I64 && to != KELP_I32) || !input(infer, node, 0, out))
        return false;
    for (size_t i = 0; to == KELP_I32 && i < out->count; i++)
        if (out->items[i].known && out->items[i].value != (int32_t)out->items[i].value)
            return false;
    return true;
}

bool kelp_content_unsqueeze(const kelp_infer *infer, const kelp_node *node, kelp_content *out) {
    if (!input(infer, node, 0, out) || out->rank != 0)
        return false;
    out->rank = 1;
    return node->outputs[0]->rank == 1;
}

bool kelp_content_squeeze(const kelp_infer *infer, const kelp_node *node, kelp_content *out) {
    if (!input(infer, node, 0, out) || out->rank != 1 || out->count != 1)
        return false;
    out->rank = 0;
    return node->outputs[0]->rank == 0;
}

/* Handles reshapes from a vector or scalar to a vector or scalar. */
bool kelp_content_reshape(const kelp_infer *infer, const kelp_node *node, kelp_content *out) {
    if (!input(infer, node, 0, out) || node->outputs[0]->rank < 0 || node->outputs[0]->rank > 1)
        return false;
    out->rank = node->outputs[0]->rank;
    return true;
}

typedef bool (*calculate_fn)(int64_t a, int64_t b, int64_t *out);

/* Rounds towards zero. */
static bool divide(int64_t a, int64_t b, int64_t *out) {
    if (b == 0 || (a == INT64_MIN && b == -1))
        return false;
    *out = a / b;
    return true;
}

static bool arithmetic(const kelp_infer *infer, const kelp_node *node, calculate_fn calculate,
                       kelp_content *out) {
    kelp_content a, b;
    if (!input(infer, node, 0, &a) || !input(infer, node, 1, &b) ||
        (a.count != b.count && a.count != 1 && b.count != 1))
        return false;
    *out = (kelp_content){.rank = a.rank > b.rank ? a.rank : b.rank,
                          .count = a.count == 1 ? b.count : a.count};
    for (size_t i = 0; i < out->count; i++) {
        size_t at_a = a.count == 1 ? 0 : i, at_b = b.count == 1 ? 0 : i;
        out->items[i].known =
            a.items[at_a].known && b.items[at_b].known &&
            calculate(a.items[at_a].value, b.items[at_b].value, &out->items[i].value);
    }
    return true;
}

bool kelp_content_add(const kelp_infer *infer, const kelp_node *node, kelp_content *out) {
    return arithmetic(infer, node, kelp_i64_add, out);
}

bool kelp_content_subtract(const kelp_infer *infer, const kelp_node *node, kelp_content *out) {
    return arithmetic(infer, node, kelp_i64_sub, out);
}

bool kelp_content_multiply(const kelp_infer *infer, const kelp_node *node, kelp_content *out) {
    return arithmetic(infer, node, kelp_i64_mul, out);
}

bool kelp_content_divide(const kelp_infer *infer, const kelp_node *node, kelp_content *out) {
    return arithmetic(infer, node, divide, out);
}

bool kelp_content_constant(const kelp_infer *infer, const kelp_node *node, kelp_content *out) {
    (void)infer;
    return content_of_constant(node, out);
}

kelp_status *kelp_infer_note_content(kelp_infer *infer, const kelp_node *node,
                                     kelp_content_fn rule) {
    kelp_value *value = node->output_count > 0 ? node->outputs[0] : NULL;
    kelp_content content;
    if (rule == NULL || value == NULL || value->block != infer->block ||
        (value->dtype != KELP_I64 && value->dtype != KELP_I32) || !rule(infer, node, &content))
        return NULL;
    kelp_content *kept = KELP_ARENA_NEW(infer->arena, kelp_content);
    if (kept == NULL)
        return kelp_status_oom();
    KELP_ASSERT(value->id < infer->block->value_count && content.count <= KELP_MAX_RANK);
    KELP_ASSERT(content.rank == 1 || content.count == 1);
    *kept = content;
    infer->contents[value->id] = kept;
    return NULL;
}
