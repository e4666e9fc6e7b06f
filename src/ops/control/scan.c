/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scan: a body over the slices of its inputs along one axis each, carrying state. Source: ONNX
 * operator specification, Scan-8 (with a batch axis and lengths) and Scan-9 to 25.
 */
#include "opset/bridge.h"
#include "ops/control/control.h"
#include "ops/kernel.h"

#define SCAN_FAIL(s, format, ...)                                         \
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "node '%s' (Scan): " format, \
                      kelp_node_name((s)->node), __VA_ARGS__)

typedef struct scan {
    const kelp_opset_registry *registry;
    const kelp_op_env *env;
    const kelp_node *node;
    const kelp_block *body;
    kelp_captures captures;
    size_t states, scans, results; /* carried; scanned; stacked */
    bool batched;                  /* version 8 */
    kelp_tensor *state;
    kelp_tensor *scanned; /* this batch's */
    int32_t *in_axes;
    bool *in_reverse, *out_reverse;
    int64_t *out_axes; /* may be negative until the rank is known */
    int64_t steps;     /* slices there are */
    kelp_tensor **stacks;
} scan;

static void *take(const scan *s, size_t bytes) {
    return kelp_op_env_alloc(s->env, bytes ? bytes : 1);
}

/* Index `at` of `axis`, compact; borrowed where it lies so already. */
static kelp_status *slice(const scan *s, const kelp_tensor *from, int32_t axis, int64_t at,
                          kelp_tensor *out) {
    int64_t shape[KELP_MAX_RANK];
    size_t item = kelp_ops_element_bytes(from->dtype);
    for (int32_t i = 0, k = 0; i < from->rank; i++)
        if (i != axis)
            shape[k++] = from->shape[i];
    KELP_TRY(kelp_tensor_init(out, from->dtype, from->rank - 1, shape, NULL));
    int64_t outer = kelp_ops_product(from->shape, 0, axis);
    size_t inner = (size_t)kelp_ops_product(from->shape, axis + 1, from->rank) * item;
    if (item == 0)
        SCAN_FAIL(s, "elements of %s cannot be sliced", kelp_dtype_name(from->dtype));
    if (outer == 1) {
        out->data = (char *)from->data + (size_t)at * inner;
        return NULL;
    }
    out->data = take(s, kelp_tensor_bytes(out));
    if (out->data == NULL)
        return kelp_status_oom();
    for (int64_t i = 0; i < outer && inner > 0; i++)
        memcpy((char *)out->data + (size_t)i * inner,
               (const char *)from->data + (size_t)(i * from->shape[axis] + at) * inner, inner);
    return NULL;
}

/* The other way round: `from` goes to index `at` of `axis`. */
static void place(const kelp_tensor *from, kelp_tensor *to, int32_t axis, int64_t at) {
    size_t inner =
        (size_t)kelp_ops_product(to->shape, axis + 1, to->rank) * kelp_ops_element_bytes(to->dtype);
    int64_t outer = kelp_ops_product(to->shape, 0, axis);
    for (int64_t i = 0; i < outer && inner > 0; i++)
        memcpy((char *)to->data + (size_t)(i * to->shape[axis] + at) * inner,
               (const char *)from->data + (size_t)i * inner, inner);
}

/* ---- attributes ---- */
static kelp_status *read_list(const scan *s, const char *name, size_t count, int64_t fallback,
                              int64_t *out) {
    const int64_t *given = NULL;
    size_t length = kelp_node_attr_i64s(s->node, name, &given);
    if (length != 0 && length != count)
        SCAN_FAIL(s, "attribute '%s' has %zu values, expected %zu", name, length, count);
    for (size_t i = 0; i < count; i++)
        out[i] = length ? given[i] : fallback;
    return NULL;
}

static kelp_status *read_directions(const scan *s, const char *name, size_t count, bool *out) {
    int64_t *values = take(s, count * sizeof *values);
    if (values == NULL)
        return kelp_status_oom();
    KELP_TRY(read_list(s, name, count, 0, values));
    for (size_t i = 0; i < count; i++) {
        if (values[i] != 0 && values[i] != 1)
            SCAN_FAIL(s, "attribute '%s': a direction is 0 or 1, found %lld", name,
                      (long long)values[i]);
        out[i] = values[i] == 1;
    }
    return NULL;
}

static kelp_status *read_shape_of_scan(scan *s, const kelp_tensor *const *inputs, size_t own) {
    size_t first = s->batched ? 1 : 0;
    int64_t scans = kelp_node_attr_i64(s->node, "num_scan_inputs", 0);
    s->body = kelp_node_attr_block(s->node, "body");
    if (s->body == NULL || scans < 1 || (size_t)scans > own - KELP_MIN(own, first))
        SCAN_FAIL(s, "num_scan_inputs: expected 1 to %zu, found %lld", own - KELP_MIN(own, first),
                  (long long)scans);
    s->scans = (size_t)scans;
    s->states = own - first - s->scans;
    size_t body_outputs = kelp_block_output_count(s->body);
    if (kelp_block_input_count(s->body) != s->states + s->scans + s->captures.count ||
        body_outputs < s->states)
        SCAN_FAIL(s, "its body must take %zu inputs and give at least %zu outputs",
                  s->states + s->scans, s->states);
    s->results = body_outputs - s->states;
    if (kelp_node_output_count(s->node) > body_outputs)
        SCAN_FAIL(s, "its body gives %zu outputs, the node has %zu", body_outputs,
                  kelp_node_output_count(s->node));
    for (size_t i = first; i < own; i++)
        if (inputs[i] == NULL)
            SCAN_FAIL(s, "input %zu is missing", i);
    s->state = take(s, s->states * sizeof *s->state);
    s->scanned = take(s, s->scans * sizeof *s->scanned);
    s->in_axes = take(s, s->scans * sizeof *s->in_axes);
    s->in_reverse = take(s, s->scans * sizeof *s->in_reverse);
    s->out_reverse = take(s, s->results * sizeof *s->out_reverse);
    s->out_axes = take(s, s->results * sizeof *s->out_axes);
    s->stacks = take(s, s->results * sizeof *s->stacks);
    if (!s->state || !s->scanned || !s->in_axes || !s->in_reverse || !s->out_reverse ||
        !s->out_axes || !s->stacks)
        return kelp_status_oom();
    return NULL;
}

static kelp_status *read_axes(scan *s, const kelp_tensor *const *scanned) {
    int64_t *axes = take(s, s->scans * sizeof *axes);
    if (axes == NULL)
        return kelp_status_oom();
    KELP_TRY(read_directions(s, s->batched ? "directions" : "scan_input_directions", s->scans,
                             s->in_reverse));
    KELP_TRY(read_directions(s, "scan_output_directions", s->results, s->out_reverse));
    KELP_TRY(read_list(s, "scan_input_axes", s->scans, s->batched ? 1 : 0, axes));
    KELP_TRY(read_list(s, "scan_output_axes", s->results, 0, s->out_axes));
    s->steps = -1;
    for (size_t i = 0; i < s->scans; i++) {
        int32_t rank = scanned[i]->rank;
        int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank || scanned[i]->dtype == KELP_DTYPE_INVALID)
            SCAN_FAIL(s, "scan input %zu has %d axes, and is scanned along axis %lld", i, rank,
                      (long long)axes[i]);
        if (s->steps >= 0 && scanned[i]->shape[axis] != s->steps)
            SCAN_FAIL(s, "scan input %zu has %lld slices, input 0 has %lld", i,
                      (long long)scanned[i]->shape[axis], (long long)s->steps);
        s->steps = scanned[i]->shape[axis];
        s->in_axes[i] = (int32_t)axis;
    }
    return NULL;
}

/* ---- one sequence ---- */
static kelp_status *run_steps(scan *s, int64_t steps) {
    size_t in_count = s->states + s->scans, out_count = s->states + s->results;
    for (size_t k = 0; k < s->results; k++) {
        size_t bytes;
        if (!kelp_size_mul((size_t)steps, sizeof(kelp_tensor), &bytes) ||
            (s->stacks[k] = take(s, bytes)) == NULL)
            return kelp_status_oom();
    }
    for (int64_t t = 0; t < steps; t++) {
        if (kelp_op_env_cancelled(s->env))
            return KELP_ERROR(KELP_CANCELLED, "node '%s' (Scan) was cancelled",
                              kelp_node_name(s->node));
        kelp_tensor *slices = take(s, s->scans * sizeof *slices);
        kelp_tensor *results = take(s, out_count * sizeof *results);
        const kelp_tensor **in = take(s, in_count * sizeof *in);
        if (slices == NULL || results == NULL || in == NULL)
            return kelp_status_oom();
        for (size_t i = 0; i < s->states; i++)
            in[i] = &s->state[i];
        for (size_t i = 0; i < s->scans; i++) {
            int64_t at = s->in_reverse[i] ? steps - 1 - t : t;
            KELP_TRY(slice(s, &s->scanned[i], s->in_axes[i], at, &slices[i]));
            in[s->states + i] = &slices[i];
        }
        KELP_TRY(kelp_opset_walk_block(s->registry, s->env, s->body, &s->captures, in, results));
        for (size_t i = 0; i < s->states; i++)
            s->state[i] = results[i];
        for (size_t k = 0; k < s->results; k++)
            s->stacks[k][s->out_reverse[k] ? steps - 1 - t : t] = results[s->states + k];
    }
    return NULL;
}

/* Shape and type of what is stacked: of the first item, or as declared when there is none. */
static kelp_status *item_shape(const scan *s, size_t k, int64_t steps, kelp_tensor *out) {
    if (steps > 0) {
        *out = s->stacks[k][0];
        return NULL;
    }
    const kelp_value *declared = kelp_block_output(s->body, s->states + k);
    int64_t shape[KELP_MAX_RANK] = {0};
    int32_t rank = KELP_MAX(kelp_value_rank(declared), 0);
    for (int32_t i = 0; i < rank; i++)
        shape[i] = KELP_MAX(kelp_value_dim(declared, i, NULL), 0);
    return kelp_tensor_init(out, kelp_value_dtype(declared), rank, shape, NULL);
}

/* Makes output `k` with the axis of steps (and the batch before it), zeroed. */
static kelp_status *make_stacked(const scan *s, size_t k, const kelp_tensor *item, int64_t batches,
                                 int64_t steps, int32_t *out_axis, kelp_tensor *out) {
    int64_t shape[KELP_MAX_RANK + 2];
    int32_t rank = item->rank + 1, lead = s->batched ? 1 : 0;
    int64_t axis = s->out_axes[k] < 0 ? s->out_axes[k] + rank : s->out_axes[k];
    if (axis < 0 || axis >= rank || rank + lead > KELP_MAX_RANK ||
        kelp_ops_element_bytes(item->dtype) == 0)
        SCAN_FAIL(s, "output %zu: %d axes of %s cannot be stacked along axis %lld", s->states + k,
                  rank, kelp_dtype_name(item->dtype), (long long)s->out_axes[k]);
    shape[0] = batches;
    for (int32_t i = 0, from = 0; i < rank; i++)
        shape[lead + i] = i == axis ? steps : item->shape[from++];
    *out_axis = (int32_t)axis;
    KELP_TRY(kelp_tensor_init(out, item->dtype, rank + lead, shape, NULL));
    out->data = take(s, kelp_tensor_bytes(out));
    if (out->data == NULL)
        return kelp_status_oom();
    memset(out->data, 0, kelp_tensor_bytes(out));
    return NULL;
}

static kelp_status *stack(const scan *s, size_t k, int64_t steps, int32_t axis, kelp_tensor *to) {
    for (int64_t t = 0; t < steps; t++) {
        const kelp_tensor *item = &s->stacks[k][t];
        bool fits = item->rank == to->rank - 1 && item->dtype == to->dtype;
        for (int32_t i = 0, from = 0; fits && i < to->rank; i++)
            fits = i == axis || to->shape[i] == item->shape[from++];
        if (!fits)
            SCAN_FAIL(s, "output %zu changes its shape in step %lld", s->states + k, (long long)t);
        place(item, to, axis, t);
    }
    return NULL;
}

static kelp_status *run_plain(scan *s, const kelp_tensor *const *inputs, kelp_tensor *outputs) {
    KELP_TRY(read_axes(s, inputs + s->states));
    for (size_t i = 0; i < s->states; i++)
        s->state[i] = *inputs[i];
    for (size_t i = 0; i < s->scans; i++)
        s->scanned[i] = *inputs[s->states + i];
    KELP_TRY(run_steps(s, s->steps));
    for (size_t i = 0; i < kelp_node_output_count(s->node); i++) {
        if (i < s->states)
            outputs[i] = s->state[i];
        else if (kelp_node_output(s->node, i) != NULL) {
            kelp_tensor item;
            int32_t axis;
            KELP_TRY(item_shape(s, i - s->states, s->steps, &item));
            KELP_TRY(make_stacked(s, i - s->states, &item, 1, s->steps, &axis, &outputs[i]));
            KELP_TRY(stack(s, i - s->states, s->steps, axis, &outputs[i]));
        }
    }
    return NULL;
}

/* ---- version 8 ---- */
static kelp_status *one_batch(scan *s, const kelp_tensor *const *inputs, int64_t b, int64_t batches,
                              int64_t steps, kelp_tensor *outputs) {
    for (size_t i = 0; i < s->states + s->scans; i++) {
        const kelp_tensor *from = inputs[1 + i];
        if (from->rank < 1 || from->shape[0] != batches)
            SCAN_FAIL(s, "input %zu: expected a first axis of %lld", 1 + i, (long long)batches);
        KELP_TRY(slice(s, from, 0, b, i < s->states ? &s->state[i] : &s->scanned[i - s->states]));
    }
    KELP_TRY(run_steps(s, steps));
    for (size_t i = 0; i < kelp_node_output_count(s->node); i++) {
        kelp_tensor item, part;
        int32_t axis = 0;
        if (i < s->states)
            item = s->state[i];
        else
            KELP_TRY(item_shape(s, i - s->states, steps, &item));
        if (b == 0 && i < s->states) {
            int64_t shape[KELP_MAX_RANK + 1] = {batches};
            memcpy(shape + 1, item.shape, (size_t)item.rank * sizeof *shape);
            KELP_TRY(kelp_tensor_init(&outputs[i], item.dtype, item.rank + 1, shape, NULL));
            outputs[i].data = take(s, kelp_tensor_bytes(&outputs[i]));
            if (outputs[i].data == NULL)
                return kelp_status_oom();
        } else if (b == 0) {
            KELP_TRY(make_stacked(s, i - s->states, &item, batches, s->steps, &axis, &outputs[i]));
        }
        KELP_TRY(slice(s, &outputs[i], 0, b, &part));
        if (i >= s->states)
            KELP_TRY(stack(s, i - s->states, steps, axis, &part));
        else if (kelp_tensor_bytes(&item) != kelp_tensor_bytes(&part))
            SCAN_FAIL(s, "output %zu has another shape for batch %lld", i, (long long)b);
        else
            place(&item, &outputs[i], 0, b);
    }
    return NULL;
}

static kelp_status *run_batched(scan *s, const kelp_tensor *const *inputs, kelp_tensor *outputs) {
    const kelp_tensor *lengths = inputs[0], *first = inputs[1 + s->states];
    int64_t batches = first->rank > 0 ? first->shape[0] : 0;
    KELP_TRY(read_axes(s, inputs + 1 + s->states));
    for (size_t i = 0; i < s->scans; i++)
        s->in_axes[i] = 0; /* of a batch's part */
    if (lengths != NULL && (lengths->dtype != KELP_I64 || kelp_tensor_elements(lengths) != batches))
        SCAN_FAIL(s, "sequence_lens: expected %lld of int64", (long long)batches);
    if (batches == 0)
        SCAN_FAIL(s, "%s", "there is no batch");
    for (int64_t b = 0; b < batches; b++) {
        int64_t steps = lengths ? ((const int64_t *)lengths->data)[b] : s->steps;
        if (steps < 0 || steps > s->steps)
            SCAN_FAIL(s, "sequence_lens[%lld] is %lld, there are %lld steps", (long long)b,
                      (long long)steps, (long long)s->steps);
        KELP_TRY(one_batch(s, inputs, b, batches, steps, outputs));
    }
    return NULL;
}

kelp_status *kelp_control_scan(const kelp_opset_registry *registry, const kelp_op_env *env,
                               const kelp_node *node, const kelp_tensor *const *inputs,
                               kelp_tensor *outputs) {
    scan s = {.registry = registry, .env = env, .node = node};
    size_t own =
        (size_t)kelp_node_attr_i64(node, "kelp.captures", (int64_t)kelp_node_input_count(node));
    s.batched = kelp_node_opset_version(node) < 9;
    s.captures = kelp_node_captures(node, inputs);
    KELP_TRY(read_shape_of_scan(&s, inputs, own));
    return s.batched ? run_batched(&s, inputs, outputs) : run_plain(&s, inputs, outputs);
}
