/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scan: runs a body for each slice of its inputs, with carried state. The input shapes determine
 * the number of steps, so that the output shapes are known in advance unless those of the body
 * depend on data. Source: ONNX operator specification, Scan-8 (with a batch axis and lengths) and
 * Scan-9 to 25.
 */
#include "base/assert.h"
#include "runtime/opset/body.h"
#include "cpu/ops/control/control.h"

#define SCAN_ERROR(s, format, ...)                                 \
    KELP_ERROR(KELP_INVALID_ARGUMENT, "node '%s' (Scan): " format, \
               kelp_node_name((s)->args->node), __VA_ARGS__)

typedef struct scan {
    kelp_op_args *args;
    kelp_body *body;
    size_t own;                    /* number of inputs without captures */
    size_t first;                  /* index of the first state input */
    size_t states, scans, results; /* numbers of carried, scanned and stacked values */
    bool batched;                  /* version 8 */
    int64_t batches, steps;
    const kelp_tensor **in; /* of the body */
    kelp_tensor *state;
    kelp_tensor *scanned;   /* the scanned inputs of the current batch */
    kelp_tensor *slices;    /* of the current step */
    kelp_tensor *body_outs; /* of the current step */
    kelp_tensor *items;     /* types and shapes of the body's outputs in the first step */
    kelp_tensor *outs;      /* states and stacked results of the node */
    int64_t *in_axes, *in_reverse, *out_axes, *out_reverse;
    void **copies; /* per scan input: memory for a slice that is not contiguous */
} scan;

/* ---- memory ---- */
static void *carve(char *memory, size_t *inout_bytes, size_t count, size_t item) {
    char *at = memory != NULL ? memory + *inout_bytes : NULL;
    *inout_bytes += (count * item + 63) / 64 * 64;
    return at;
}

/* Assigns the arrays of a run to `memory` and returns their size. `memory` may be NULL. */
static size_t assign_memory(scan *s, char *memory) {
    size_t captures = (size_t)s->args->input_count - s->own, bytes = 0;
    s->in = carve(memory, &bytes, s->states + s->scans + captures, sizeof *s->in);
    s->state = carve(memory, &bytes, s->states, sizeof *s->state);
    s->scanned = carve(memory, &bytes, s->scans, sizeof *s->scanned);
    s->slices = carve(memory, &bytes, s->scans, sizeof *s->slices);
    s->body_outs = carve(memory, &bytes, s->states + s->results, sizeof *s->body_outs);
    s->items = carve(memory, &bytes, s->states + s->results, sizeof *s->items);
    s->outs = carve(memory, &bytes, s->states + s->results, sizeof *s->outs);
    s->in_axes = carve(memory, &bytes, s->scans, sizeof *s->in_axes);
    s->in_reverse = carve(memory, &bytes, s->scans, sizeof *s->in_reverse);
    s->out_axes = carve(memory, &bytes, s->results, sizeof *s->out_axes);
    s->out_reverse = carve(memory, &bytes, s->results, sizeof *s->out_reverse);
    s->copies = carve(memory, &bytes, s->scans, sizeof *s->copies);
    for (size_t i = 0; i < s->scans; i++) {
        const kelp_tensor *from = s->args->inputs[s->first + s->states + i];
        void *copy = carve(memory, &bytes, 1, kelp_tensor_bytes(from));
        if (memory != NULL)
            s->copies[i] = copy;
    }
    return bytes;
}

static void *run_alloc(const scan *s, size_t bytes) {
    return kelp_op_env_alloc(s->args->env, bytes ? bytes : 1);
}

/* ---- attributes ---- */
static kelp_status *read_list(const scan *s, const char *name, size_t count, int64_t fallback,
                              int64_t *out) {
    const int64_t *values = NULL;
    size_t length = kelp_node_attr_i64s(s->args->node, name, &values);
    if (length != 0 && length != count)
        return SCAN_ERROR(s, "attribute '%s' has the wrong length: expected %zu, found %zu", name,
                          count, length);
    for (size_t i = 0; i < count; i++)
        out[i] = length ? values[i] : fallback;
    return NULL;
}

static kelp_status *read_directions(const scan *s, const char *name, size_t count, int64_t *out) {
    KELP_TRY(read_list(s, name, count, 0, out));
    for (size_t i = 0; i < count; i++)
        if (out[i] != 0 && out[i] != 1)
            return SCAN_ERROR(s, "attribute '%s' has an invalid value: expected 0 or 1, found %lld",
                              name, (long long)out[i]);
    return NULL;
}

static kelp_status *open_scan(scan *s, kelp_op_args *args) {
    *s = (scan){.args = args, .own = kelp_node_own_inputs(args->node)};
    s->batched = kelp_node_opset_version(args->node) < 9;
    s->first = s->batched ? 1 : 0;
    KELP_TRY(kelp_env_body(args->env, args->node, "body", &s->body));
    int64_t scans = kelp_node_attr_i64(args->node, "num_scan_inputs", 0);
    size_t max = s->own - KELP_MIN(s->own, s->first);
    if (scans < 1 || (size_t)scans > max)
        return SCAN_ERROR(s, "num_scan_inputs: expected 1 to %zu, found %lld", max,
                          (long long)scans);
    s->scans = (size_t)scans;
    s->states = s->own - s->first - s->scans;
    size_t captures = (size_t)args->input_count - s->own;
    size_t outputs = kelp_block_output_count(s->body->block);
    KELP_ASSERT(s->own <= (size_t)args->input_count);
    if (kelp_block_input_count(s->body->block) != s->states + s->scans + captures ||
        outputs < s->states)
        return SCAN_ERROR(s,
                          "its body has the wrong signature: expected %zu inputs and at least %zu "
                          "outputs",
                          s->states + s->scans, s->states);
    s->results = outputs - s->states;
    if ((size_t)args->output_count > outputs)
        return SCAN_ERROR(s, "the node has too many outputs: expected at most %zu, found %d",
                          outputs, args->output_count);
    for (size_t i = s->first; i < s->own; i++)
        if (args->inputs[i] == NULL || args->inputs[i]->dtype == KELP_LIST)
            return SCAN_ERROR(s, "input %zu is missing, or a list: expected a tensor", i);
    s->body->carried = s->states;
    s->body->first_output = s->body->first_input = 0;
    return NULL;
}

/* Returns true if slices of the type are supported. Version 8 has no packed types, and batches of
 * them would begin inside a byte. */
static bool may_slice(const scan *s, kelp_dtype dtype) {
    return kelp_ops_element_bytes(dtype) > 0 || (!s->batched && kelp_ops_is_packed(dtype));
}

static kelp_status *read_axes(scan *s) {
    const kelp_tensor *const *scanned = s->args->inputs + s->first + s->states;
    KELP_TRY(read_directions(s, s->batched ? "directions" : "scan_input_directions", s->scans,
                             s->in_reverse));
    KELP_TRY(read_directions(s, "scan_output_directions", s->results, s->out_reverse));
    KELP_TRY(read_list(s, "scan_input_axes", s->scans, s->batched ? 1 : 0, s->in_axes));
    KELP_TRY(read_list(s, "scan_output_axes", s->results, 0, s->out_axes));
    s->steps = -1;
    for (size_t i = 0; i < s->scans; i++) {
        int32_t rank = scanned[i]->rank;
        int64_t value = s->in_axes[i], axis = value < 0 ? value + rank : value;
        if (axis < 0 || axis >= rank || scanned[i]->dtype == KELP_DTYPE_INVALID)
            return SCAN_ERROR(s, "the axis %lld of scan input %zu is out of range: found rank %d",
                              (long long)value, i, rank);
        if (s->steps >= 0 && scanned[i]->shape[axis] != s->steps)
            return SCAN_ERROR(s, "scan input %zu has the wrong length: expected %lld, found %lld",
                              i, (long long)s->steps, (long long)scanned[i]->shape[axis]);
        if (!may_slice(s, scanned[i]->dtype))
            return SCAN_ERROR(s, "scan input %zu has the unsupported type %s", i,
                              kelp_dtype_name(scanned[i]->dtype));
        s->steps = scanned[i]->shape[axis];
        s->in_axes[i] = s->batched ? 0 : axis; /* of one batch */
    }
    if (!s->batched) {
        s->batches = 1;
        return NULL;
    }
    s->batches = scanned[0]->shape[0];
    for (size_t i = s->first; i < s->own; i++)
        if (s->args->inputs[i]->rank < 1 || s->args->inputs[i]->shape[0] != s->batches)
            return SCAN_ERROR(s, "input %zu has the wrong shape: expected a first dimension %lld",
                              i, (long long)s->batches);
    for (size_t i = s->first; i < s->own; i++)
        if (!may_slice(s, s->args->inputs[i]->dtype))
            return SCAN_ERROR(s, "input %zu has the unsupported type %s", i,
                              kelp_dtype_name(s->args->inputs[i]->dtype));
    if (s->batches == 0)
        return SCAN_ERROR(s, "%s", "the batch is empty");
    return NULL;
}

/* ---- slices ---- */
/* Describes slice `at` of `axis`. If `from` has data, the slice borrows it where it is contiguous,
 * and is copied to `copy` otherwise. */
static kelp_status *slice(const kelp_tensor *from, int64_t axis, int64_t at, void *copy,
                          kelp_tensor *out) {
    int64_t shape[KELP_MAX_RANK];
    KELP_ASSERT(axis >= 0 && axis < from->rank && at >= 0);
    for (int32_t i = 0, k = 0; i < from->rank; i++)
        if (i != axis)
            shape[k++] = from->shape[i];
    KELP_TRY(kelp_tensor_init(out, from->dtype, from->rank - 1, shape, NULL));
    if (from->data == NULL)
        return NULL;
    int64_t outer = kelp_ops_product(from->shape, 0, (int32_t)axis);
    int64_t inner = kelp_ops_product(from->shape, (int32_t)axis + 1, from->rank);
    if (outer == 1 && inner * kelp_dtype_bits(from->dtype) % 8 == 0) {
        out->data = (char *)from->data + (size_t)at * kelp_tensor_bytes(out);
        return NULL;
    }
    out->data = copy;
    kelp_ops_clear_end(out);
    for (int64_t i = 0; i < outer; i++)
        kelp_ops_copy_elements(from->dtype, copy, i * inner, from->data,
                               (i * from->shape[axis] + at) * inner, inner);
    return NULL;
}

/* Copies `from` to slice `at` of `axis`. */
static void store_slice(const kelp_tensor *from, kelp_tensor *to, int32_t axis, int64_t at) {
    int64_t inner = kelp_ops_product(to->shape, axis + 1, to->rank);
    int64_t outer = kelp_ops_product(to->shape, 0, axis);
    KELP_ASSERT(at >= 0 && at < to->shape[axis] && from->dtype == to->dtype);
    for (int64_t i = 0; i < outer; i++)
        kelp_ops_copy_elements(to->dtype, to->data, (i * to->shape[axis] + at) * inner, from->data,
                               i * inner, inner);
}

/* Sets the inputs of the body for the first step of batch `b`. */
static kelp_status *begin_batch(scan *s, int64_t b) {
    const kelp_tensor *const *inputs = s->args->inputs + s->first;
    for (size_t i = 0; i < s->states + s->scans; i++) {
        kelp_tensor *to = i < s->states ? &s->state[i] : &s->scanned[i - s->states];
        *to = *inputs[i];
        if (s->batched)
            KELP_TRY(slice(inputs[i], 0, b, NULL, to));
        s->in[i] = i < s->states ? &s->state[i] : &s->slices[i - s->states];
    }
    for (size_t i = s->own; i < (size_t)s->args->input_count; i++)
        s->in[s->states + s->scans + i - s->own] = s->args->inputs[i];
    return NULL;
}

/* ---- outputs ---- */
static bool same_type(const kelp_tensor *a, const kelp_tensor *b) {
    return a->dtype == b->dtype && a->rank == b->rank &&
           (a->rank <= 0 || memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0);
}

static kelp_status *stack_axis(const scan *s, size_t k, int32_t *out) {
    int32_t rank = s->items[s->states + k].rank + 1;
    int64_t axis = s->out_axes[k] < 0 ? s->out_axes[k] + rank : s->out_axes[k];
    if (axis < 0 || axis >= rank || rank + (s->batched ? 1 : 0) > KELP_MAX_RANK ||
        !may_slice(s, s->items[s->states + k].dtype))
        return SCAN_ERROR(s, "output %zu cannot be stacked: rank %d, type %s, axis %lld",
                          s->states + k, rank, kelp_dtype_name(s->items[s->states + k].dtype),
                          (long long)s->out_axes[k]);
    *out = (int32_t)axis;
    return NULL;
}

/* Computes the types and shapes of the outputs from those of the body's outputs. */
static kelp_status *shape_outputs(scan *s) {
    for (size_t i = 0; i < s->states + s->results; i++) {
        const kelp_tensor *item = &s->items[i];
        int64_t shape[KELP_MAX_RANK + 2];
        int32_t lead = s->batched ? 1 : 0, axis = -1, rank = item->rank + lead;
        if (i >= s->states) {
            KELP_TRY(stack_axis(s, i - s->states, &axis));
            rank++;
        }
        if (rank > KELP_MAX_RANK)
            return SCAN_ERROR(s, "output %zu has too many axes", i);
        shape[0] = s->batches;
        for (int32_t k = lead, from = 0; k < rank; k++)
            shape[k] = k - lead == axis ? s->steps : item->shape[from++];
        KELP_TRY(kelp_tensor_init(&s->outs[i], item->dtype, rank, shape, NULL));
    }
    return NULL;
}

static kelp_status *declared_item(const scan *s, size_t i, kelp_tensor *out) {
    const kelp_value *declared = kelp_block_output(s->body->block, i);
    int64_t shape[KELP_MAX_RANK] = {0};
    int32_t rank = KELP_MAX(kelp_value_rank(declared), 0);
    for (int32_t k = 0; k < rank; k++)
        shape[k] = KELP_MAX(kelp_value_dim(declared, k, NULL), 0);
    return kelp_tensor_init(out, kelp_value_dtype(declared), rank, shape, NULL);
}

/* Computes the types and shapes of the body's outputs before it runs. They are known if the states
 * keep theirs. Without steps they are as declared. */
static kelp_status *infer_items(scan *s, bool *out_known) {
    *out_known = true;
    if (s->steps == 0) {
        for (size_t i = 0; i < s->states; i++)
            s->items[i] = s->state[i];
        for (size_t i = s->states; i < s->states + s->results; i++)
            KELP_TRY(declared_item(s, i, &s->items[i]));
        return NULL;
    }
    for (size_t i = 0; i < s->scans; i++)
        KELP_TRY(slice(&s->scanned[i], s->in_axes[i], 0, s->copies[i], &s->slices[i]));
    kelp_status *status = kelp_body_shape(s->body, s->in, s->items, out_known);
    if (status != NULL) {
        kelp_status_free(status); /* the run reports the same failure */
        *out_known = false;
    }
    for (size_t i = 0; *out_known && i < s->states + s->results; i++)
        *out_known = s->items[i].dtype != KELP_LIST && s->items[i].dtype != KELP_STRING &&
                     (i >= s->states || same_type(&s->items[i], &s->state[i]));
    return NULL;
}

/* Allocates the outputs in memory of the run, when s->items is known. */
static kelp_status *alloc_outputs(scan *s) {
    KELP_TRY(shape_outputs(s));
    for (size_t i = 0; i < s->states + s->results; i++) {
        size_t bytes = kelp_tensor_bytes(&s->outs[i]);
        s->outs[i].data = run_alloc(s, bytes);
        if (s->outs[i].data == NULL)
            return kelp_status_oom();
        memset(s->outs[i].data, 0, bytes);
    }
    return NULL;
}

/* ---- running ---- */
/* Returns batch `b` of a stacked output. */
static kelp_tensor batch_of(const scan *s, size_t k, int64_t b) {
    kelp_tensor whole = s->outs[s->states + k];
    KELP_ASSERT(k < s->results && b >= 0 && b < s->batches);
    if (s->batched && whole.data != NULL) {
        size_t bytes = kelp_tensor_bytes(&whole) / (size_t)s->batches;
        whole.data = (char *)whole.data + (size_t)b * bytes;
        whole.rank--;
        memmove(whole.shape, whole.shape + 1, (size_t)whole.rank * sizeof *whole.shape);
    }
    return whole;
}

/* Stores the results of step `t`. The first step defines the outputs unless they are allocated. */
static kelp_status *keep_results(scan *s, int64_t b, int64_t t, int64_t steps,
                                 bool *inout_allocated) {
    for (size_t i = 0; !*inout_allocated && i < s->states + s->results; i++)
        s->items[i] = s->body_outs[i];
    if (!*inout_allocated)
        KELP_TRY(alloc_outputs(s));
    *inout_allocated = true;
    for (size_t i = 0; i < s->states; i++)
        s->state[i] = s->body_outs[i];
    for (size_t k = 0; k < s->results; k++) {
        const kelp_tensor *item = &s->body_outs[s->states + k];
        kelp_tensor to = batch_of(s, k, b);
        int32_t axis = 0;
        if (to.data == NULL)
            continue; /* an unused output */
        KELP_TRY(stack_axis(s, k, &axis));
        if (!same_type(item, &s->items[s->states + k]))
            return SCAN_ERROR(s, "output %zu changes its shape in step %lld", s->states + k,
                              (long long)t);
        store_slice(item, &to, axis, s->out_reverse[k] ? steps - 1 - t : t);
    }
    return NULL;
}

static kelp_status *run_batch(scan *s, int64_t b, int64_t steps, bool *inout_allocated) {
    KELP_TRY(begin_batch(s, b));
    for (int64_t t = 0; t < steps; t++) {
        if (kelp_op_env_cancelled(s->args->env))
            return KELP_ERROR(KELP_CANCELLED, "node '%s' (Scan) was cancelled",
                              kelp_node_name(s->args->node));
        for (size_t i = 0; i < s->scans; i++)
            KELP_TRY(slice(&s->scanned[i], s->in_axes[i], s->in_reverse[i] ? steps - 1 - t : t,
                           s->copies[i], &s->slices[i]));
        for (size_t i = 0; i < s->states + s->results; i++)
            s->body_outs[i].data = NULL;
        KELP_TRY(kelp_body_run(s->body, s->in, s->body_outs));
        KELP_TRY(keep_results(s, b, t, steps, inout_allocated));
    }
    if (!*inout_allocated) { /* there was no step */
        bool known;
        int64_t all = s->steps;
        s->steps = all > 0 && steps == 0 ? 0 : all;
        KELP_TRY(infer_items(s, &known));
        s->steps = all;
        KELP_TRY(alloc_outputs(s));
        *inout_allocated = true;
    }
    for (size_t i = 0; i < s->states; i++) {
        kelp_tensor *to = &s->outs[i];
        size_t bytes = kelp_tensor_bytes(to) / (size_t)s->batches;
        if (to->data == NULL)
            continue;
        if (kelp_tensor_bytes(&s->state[i]) != bytes || s->state[i].dtype != to->dtype)
            return SCAN_ERROR(s, "output %zu changes its shape in batch %lld", i, (long long)b);
        if (bytes > 0)
            memcpy((char *)to->data + (size_t)b * bytes, s->state[i].data, bytes);
    }
    return NULL;
}

/* Runs all batches. `allocated`: the outputs have memory. */
static kelp_status *run(scan *s, bool allocated) {
    const kelp_tensor *lengths = s->batched ? s->args->inputs[0] : NULL;
    if (lengths != NULL &&
        (lengths->dtype != KELP_I64 || kelp_tensor_elements(lengths) != s->batches))
        return SCAN_ERROR(s, "sequence_lens is invalid: expected %lld elements of int64",
                          (long long)s->batches);
    for (int64_t b = 0; b < s->batches; b++) {
        int64_t steps = lengths != NULL ? ((const int64_t *)lengths->data)[b] : s->steps;
        if (steps < 0 || steps > s->steps)
            return SCAN_ERROR(s,
                              "sequence_lens[%lld] is out of range: expected 0 to %lld, found "
                              "%lld",
                              (long long)b, (long long)s->steps, (long long)steps);
        KELP_TRY(run_batch(s, b, steps, &allocated));
    }
    return NULL;
}

/* ---- the kernel ---- */
static kelp_status *run_now(scan *s) {
    size_t bytes = assign_memory(s, NULL);
    char *memory = run_alloc(s, bytes);
    if (memory == NULL)
        return kelp_status_oom();
    memset(memory, 0, bytes);
    assign_memory(s, memory);
    KELP_TRY(read_axes(s));
    KELP_TRY(run(s, false));
    for (int32_t i = 0; i < s->args->output_count; i++)
        if (s->args->outputs[i] != NULL)
            *s->args->outputs[i] = s->outs[i];
    s->args->placed = true;
    return NULL;
}

static kelp_status *infer_outputs(scan *s) {
    bool known = false;
    KELP_TRY(read_axes(s));
    KELP_TRY(begin_batch(s, 0));
    KELP_TRY(infer_items(s, &known));
    if (!known) {
        s->args->deferred = true;
        return NULL;
    }
    KELP_TRY(shape_outputs(s));
    for (int32_t i = 0; i < s->args->output_count; i++)
        if (s->args->outputs[i] != NULL)
            *s->args->outputs[i] = s->outs[i];
    return NULL;
}

static kelp_status *scan_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    scan s;
    char *memory = NULL;
    KELP_TRY(open_scan(&s, args));
    if (kelp_control_has_data(args))
        return run_now(&s);
    kelp_allocator allocator = kelp_op_env_allocator(args->env);
    size_t bytes = assign_memory(&s, NULL);
    KELP_TRY(kelp_alloc_zero(allocator, bytes, 1, (void **)&memory));
    assign_memory(&s, memory);
    kelp_status *status = infer_outputs(&s);
    args->scratch_bytes = status == NULL && !args->deferred ? bytes : 0;
    kelp_free(allocator, memory, bytes);
    return status;
}

static kelp_status *scan_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    scan s;
    KELP_TRY(open_scan(&s, args));
    KELP_ASSERT(assign_memory(&s, NULL) <= args->scratch_bytes);
    memset(args->scratch, 0, args->scratch_bytes);
    assign_memory(&s, args->scratch);
    KELP_TRY(read_axes(&s));
    for (size_t i = 0; i < s.states + s.results; i++) {
        const kelp_tensor *out = i < (size_t)args->output_count ? args->outputs[i] : NULL;
        if (out == NULL)
            continue;
        s.outs[i] = s.items[i] = *out;
        if (s.batched)
            memset(out->data, 0, kelp_tensor_bytes(out));
        if (i < s.states)
            continue;
        kelp_ops_clear_end(out);
        int64_t lead = s.batched ? 1 : 0, rank = out->rank - lead - 1;
        int64_t axis = s.out_axes[i - s.states];
        axis = axis < 0 ? axis + rank + 1 : axis;
        for (int64_t k = 0, to = 0; k < rank + 1; k++) /* an item lacks the axis of the steps */
            if (k != axis)
                s.items[i].shape[to++] = out->shape[lead + k];
        s.items[i].rank = (int32_t)rank;
    }
    return run(&s, true);
}

const kelp_op_kernel kelp_op_Scan = {.struct_size = sizeof(kelp_op_kernel),
                                     .flags = KELP_OP_IMPURE | KELP_OP_LISTS,
                                     .reshape = scan_reshape,
                                     .invoke = scan_invoke};
