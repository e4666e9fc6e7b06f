/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of attention, einsum, sampling, and selections whose size depends on data. */
#include "graph/infer/infer.h"

#include "base/checked.h"

#include <string.h>

/* Q, K, V: [batch, heads, length, width], or [batch, length, heads * width]. */
static bool attention(kelp_infer_call *call, kelp_dims *out) {
    kelp_dims q, v;
    int64_t q_heads = kelp_node_attr_i64(call->node, "q_num_heads", 0);
    int64_t kv_heads = kelp_node_attr_i64(call->node, "kv_num_heads", 0), width = -1;
    if (!kelp_dims_load(call->node, 0, &q))
        return false;
    if (q.rank != 3 && q.rank != 4)
        return kelp_infer_problem(call, "Q has rank %d: expected 3 or 4", q.rank);
    if (call->output > 0) { /* the present keys and values: past and new ones */
        out->rank = 4;
        for (int32_t i = 0; i < 4; i++)
            kelp_dims_set(out, i, -1);
        kelp_dims_copy(out, 0, &q, 0);
        return true;
    }
    bool known = kelp_dims_load(call->node, 2, &v) && v.rank == q.rank;
    *out = q;
    if (q.rank == 4) {
        kelp_dims_set(out, 3, -1);
        if (known)
            kelp_dims_copy(out, 3, &v, 3);
        return true;
    }
    if (known && v.shape[2] >= 0 && kv_heads > 0 && q_heads > 0 &&
        !kelp_i64_mul(v.shape[2] / kv_heads, q_heads, &width))
        width = -1;
    kelp_dims_set(out, 2, width);
    return true;
}

/* Parses one term of an equation; false when it contains anything but letters. */
static bool read_term(const char **at, char *letters, int32_t *out_count) {
    *out_count = 0;
    for (; **at != '\0' && **at != ',' && **at != '-'; (*at)++) {
        char c = **at;
        if (c == ' ')
            continue;
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) || *out_count == KELP_MAX_RANK)
            return false;
        letters[(*out_count)++] = c;
    }
    return true;
}

static bool einsum(kelp_infer_call *call, kelp_dims *out) {
    const char *at = kelp_node_attr_string(call->node, "equation", "", NULL);
    kelp_dims dimensions = {.rank = 0}, in;
    char seen[KELP_MAX_RANK], letters[KELP_MAX_RANK];
    int32_t seen_count = 0, count = 0;
    for (size_t i = 0; i < call->node->input_count; i++) {
        if (!read_term(&at, letters, &count))
            return false;
        bool known = kelp_dims_load(call->node, i, &in);
        if (known && in.rank != count)
            return kelp_infer_problem(call, "input %zu has rank %d, its term %d letters", i,
                                      in.rank, count);
        for (int32_t k = 0; known && k < count; k++) {
            int32_t s = 0;
            while (s < seen_count && seen[s] != letters[k])
                s++;
            if (s == KELP_MAX_RANK)
                return false;
            if (s == seen_count || dimensions.shape[s] < 0)
                kelp_dims_copy(&dimensions, s, &in, k);
            if (s == seen_count)
                seen[seen_count++] = letters[k];
        }
        at += *at == ',';
    }
    if (at[0] != '-' || at[1] != '>')
        return false;
    at += 2;
    if (!read_term(&at, letters, &count))
        return false;
    out->rank = count;
    for (int32_t k = 0; k < count; k++) {
        const char *found = memchr(seen, letters[k], (size_t)seen_count);
        kelp_dims_set(out, k, -1);
        if (found != NULL)
            kelp_dims_copy(out, k, &dimensions, (int32_t)(found - seen));
    }
    return true;
}

/* X [n, c, …], grid [n, …, axes] */
static bool grid_sample(kelp_infer_call *call, kelp_dims *out) {
    kelp_dims grid;
    if (!kelp_dims_load(call->node, 0, out) || !kelp_dims_load(call->node, 1, &grid) ||
        grid.rank != out->rank)
        return false;
    for (int32_t i = 2; i < out->rank; i++)
        kelp_dims_copy(out, i, &grid, i - 1);
    return true;
}

static bool roi_align(kelp_infer_call *call, kelp_dims *out) {
    kelp_dims rois;
    if (!kelp_dims_load(call->node, 0, out) || out->rank != 4)
        return false;
    kelp_dims_set(out, 0, -1);
    if (kelp_dims_load(call->node, 1, &rois) && rois.rank > 0)
        kelp_dims_copy(out, 0, &rois, 0);
    kelp_dims_set(out, 2, kelp_node_attr_i64(call->node, "output_height", 1));
    kelp_dims_set(out, 3, kelp_node_attr_i64(call->node, "output_width", 1));
    return true;
}

/* Unique and Compress select elements, or slices along an axis. */
static bool select_some(kelp_infer_call *call, kelp_dims *out) {
    int64_t axis = kelp_node_attr_i64(call->node, "axis", 0);
    bool has_axis = kelp_node_attr_type(call->node, "axis") != KELP_ATTR_NONE;
    if (call->output > 0 || !has_axis) {
        out->rank = 1;
        kelp_dims_set(out, 0, -1);
        return true;
    }
    if (!kelp_dims_load(call->node, 0, out) || !kelp_infer_axis(call, &axis, out->rank))
        return false;
    kelp_dims_set(out, (int32_t)axis, -1);
    return true;
}

static bool determinant(kelp_infer_call *call, kelp_dims *out) {
    if (!kelp_dims_load(call->node, 0, out))
        return false;
    if (out->rank < 2)
        return kelp_infer_problem(call, "expected matrices, found rank %d", out->rank);
    out->rank -= 2;
    return true;
}

/* ---- rules ---- */
const kelp_infer_rule kelp_rule_attention = {.shape = attention, .each_output = true};
const kelp_infer_rule kelp_rule_einsum = {.shape = einsum};
const kelp_infer_rule kelp_rule_grid_sample = {.shape = grid_sample};
const kelp_infer_rule kelp_rule_roi_align = {.shape = roi_align};
const kelp_infer_rule kelp_rule_select = {.shape = select_some, .each_output = true};
const kelp_infer_rule kelp_rule_determinant = {.shape = determinant};
