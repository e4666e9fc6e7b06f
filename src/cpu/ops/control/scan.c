/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scan: a body over the slices of its inputs along one axis each, carrying state. How often it runs
 * shapes tell, so that it is planned unless its body's shapes hang on data. Source: ONNX operator
 * specification, Scan-8 (with a batch axis and lengths) and Scan-9 to 25.
 */
#include "runtime/opset/body.h"
#include "cpu/ops/control/control.h"

#define SCAN_ERROR(s, format, ...)                                 \
    KELP_ERROR(KELP_INVALID_ARGUMENT, "node '%s' (Scan): " format, \
               kelp_node_name((s)->args->node), __VA_ARGS__)

typedef struct scan {
    kelp_op_args *args;
    kelp_body *body;
    size_t own;                    /* inputs without captures */
    size_t first;                  /* input that is the first state */
    size_t states, scans, results; /* carried; scanned; stacked */
    bool batched;                  /* version 8 */
    int64_t batches, steps;        /* slices there are */
    const kelp_tensor **in;        /* of the body */
    kelp_tensor *state;
    kelp_tensor *scanned; /* this batch's */
    kelp_tensor *slices;  /* of this step */
    kelp_tensor *given;   /* by the body */
    kelp_tensor *items;   /* what is stacked: type and shape of the first */
    kelp_tensor *made;    /* outputs of the body as the node gives them */
    int64_t *in_axes, *in_reverse, *out_axes, *out_reverse;
    void **copies; /* per scan input: where a slice that does not lie in one piece is gathered */
} scan;

/* ---- memory ---- */
static void *part(char *memory, size_t *inout_bytes, size_t count, size_t item) {
    char *at = memory != NULL ? memory + *inout_bytes : NULL;
    *inout_bytes += (count * item + 63) / 64 * 64;
    return at;
}

/* Places what a run needs in `memory` (NULL: only says how much that is); nothing of it is set. */
static size_t lay_out(scan *s, char *memory) {
    size_t captures = (size_t)s->args->input_count - s->own, bytes = 0;
    s->in = part(memory, &bytes, s->states + s->scans + captures, sizeof *s->in);
    s->state = part(memory, &bytes, s->states, sizeof *s->state);
    s->scanned = part(memory, &bytes, s->scans, sizeof *s->scanned);
    s->slices = part(memory, &bytes, s->scans, sizeof *s->slices);
    s->given = part(memory, &bytes, s->states + s->results, sizeof *s->given);
    s->items = part(memory, &bytes, s->states + s->results, sizeof *s->items);
    s->made = part(memory, &bytes, s->states + s->results, sizeof *s->made);
    s->in_axes = part(memory, &bytes, s->scans, sizeof *s->in_axes);
    s->in_reverse = part(memory, &bytes, s->scans, sizeof *s->in_reverse);
    s->out_axes = part(memory, &bytes, s->results, sizeof *s->out_axes);
    s->out_reverse = part(memory, &bytes, s->results, sizeof *s->out_reverse);
    s->copies = part(memory, &bytes, s->scans, sizeof *s->copies);
    for (size_t i = 0; i < s->scans; i++) {
        const kelp_tensor *from = s->args->inputs[s->first + s->states + i];
        void *copy = part(memory, &bytes, 1, kelp_tensor_bytes(from));
        if (memory != NULL)
            s->copies[i] = copy;
    }
    return bytes;
}

static void *take(const scan *s, size_t bytes) {
    return kelp_op_env_alloc(s->args->env, bytes ? bytes : 1);
}

/* ---- attributes ---- */
static kelp_status *read_list(const scan *s, const char *name, size_t count, int64_t fallback,
                              int64_t *out) {
    const int64_t *given = NULL;
    size_t length = kelp_node_attr_i64s(s->args->node, name, &given);
    if (length != 0 && length != count)
        return SCAN_ERROR(s, "attribute '%s' has %zu values, expected %zu", name, length, count);
    for (size_t i = 0; i < count; i++)
        out[i] = length ? given[i] : fallback;
    return NULL;
}

static kelp_status *read_directions(const scan *s, const char *name, size_t count, int64_t *out) {
    KELP_TRY(read_list(s, name, count, 0, out));
    for (size_t i = 0; i < count; i++)
        if (out[i] != 0 && out[i] != 1)
            return SCAN_ERROR(s, "attribute '%s': a direction is 0 or 1, found %lld", name,
                              (long long)out[i]);
    return NULL;
}

static kelp_status *open_scan(scan *s, kelp_op_args *args) {
    *s = (scan){.args = args, .own = kelp_node_own_inputs(args->node)};
    s->batched = kelp_node_opset_version(args->node) < 9;
    s->first = s->batched ? 1 : 0;
    KELP_TRY(kelp_env_body(args->env, args->node, "body", &s->body));
    int64_t scans = kelp_node_attr_i64(args->node, "num_scan_inputs", 0);
    size_t most = s->own - KELP_MIN(s->own, s->first);
    if (scans < 1 || (size_t)scans > most)
        return SCAN_ERROR(s, "num_scan_inputs: expected 1 to %zu, found %lld", most,
                          (long long)scans);
    s->scans = (size_t)scans;
    s->states = s->own - s->first - s->scans;
    size_t captures = (size_t)args->input_count - s->own;
    size_t outputs = kelp_block_output_count(s->body->block);
    if (kelp_block_input_count(s->body->block) != s->states + s->scans + captures ||
        outputs < s->states)
        return SCAN_ERROR(s, "its body must take %zu inputs and give at least %zu outputs",
                          s->states + s->scans, s->states);
    s->results = outputs - s->states;
    if ((size_t)args->output_count > outputs)
        return SCAN_ERROR(s, "its body gives %zu outputs, the node has %d", outputs,
                          args->output_count);
    for (size_t i = s->first; i < s->own; i++)
        if (args->inputs[i] == NULL || args->inputs[i]->dtype == KELP_LIST)
            return SCAN_ERROR(s, "input %zu is missing, or no tensor", i);
    s->body->carried = s->states;
    s->body->first_output = s->body->first_input = 0;
    return NULL;
}

/* Version 8 knows no elements of less than a byte, and batches of them need not begin with one. */
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
        int64_t given = s->in_axes[i], axis = given < 0 ? given + rank : given;
        if (axis < 0 || axis >= rank || scanned[i]->dtype == KELP_DTYPE_INVALID)
            return SCAN_ERROR(s, "scan input %zu has %d axes, and is scanned along axis %lld", i,
                              rank, (long long)given);
        if (s->steps >= 0 && scanned[i]->shape[axis] != s->steps)
            return SCAN_ERROR(s, "scan input %zu has %lld slices, input 0 has %lld", i,
                              (long long)scanned[i]->shape[axis], (long long)s->steps);
        if (!may_slice(s, scanned[i]->dtype))
            return SCAN_ERROR(s, "elements of %s cannot be sliced",
                              kelp_dtype_name(scanned[i]->dtype));
        s->steps = scanned[i]->shape[axis];
        s->in_axes[i] = s->batched ? 0 : axis; /* of a batch's part */
    }
    if (!s->batched) {
        s->batches = 1;
        return NULL;
    }
    s->batches = scanned[0]->shape[0];
    for (size_t i = s->first; i < s->own; i++)
        if (s->args->inputs[i]->rank < 1 || s->args->inputs[i]->shape[0] != s->batches)
            return SCAN_ERROR(s, "input %zu: expected a first axis of %lld", i,
                              (long long)s->batches);
    for (size_t i = s->first; i < s->own; i++)
        if (!may_slice(s, s->args->inputs[i]->dtype))
            return SCAN_ERROR(s, "elements of %s cannot be sliced",
                              kelp_dtype_name(s->args->inputs[i]->dtype));
    if (s->batches == 0)
        return SCAN_ERROR(s, "%s", "there is no batch");
    return NULL;
}

/* ---- slices ---- */
/* Index `at` of `axis`: its shape, and its data when `from` has any, borrowed where they lie in one
 * piece, else gathered at `copy`. */
static kelp_status *slice(const kelp_tensor *from, int64_t axis, int64_t at, void *copy,
                          kelp_tensor *out) {
    int64_t shape[KELP_MAX_RANK];
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

/* The other way round: `from` goes to index `at` of `axis`. */
static void place(const kelp_tensor *from, kelp_tensor *to, int32_t axis, int64_t at) {
    int64_t inner = kelp_ops_product(to->shape, axis + 1, to->rank);
    int64_t outer = kelp_ops_product(to->shape, 0, axis);
    for (int64_t i = 0; i < outer; i++)
        kelp_ops_copy_elements(to->dtype, to->data, (i * to->shape[axis] + at) * inner, from->data,
                               i * inner, inner);
}

/* What goes into the body at the first step of batch `b`. */
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
        return SCAN_ERROR(s, "output %zu: %d axes of %s cannot be stacked along axis %lld",
                          s->states + k, rank, kelp_dtype_name(s->items[s->states + k].dtype),
                          (long long)s->out_axes[k]);
    *out = (int32_t)axis;
    return NULL;
}

/* Types and shapes of the outputs, given those of what the body gives (`items`). */
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
        KELP_TRY(kelp_tensor_init(&s->made[i], item->dtype, rank, shape, NULL));
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

/* Types and shapes of what the body gives before it ever ran: as planned, and known when it keeps
 * those of the states; as declared when there is no step. */
static kelp_status *plan_items(scan *s, bool *out_known) {
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
        kelp_status_free(status); /* a body that cannot be planned says why when it runs */
        *out_known = false;
    }
    for (size_t i = 0; *out_known && i < s->states + s->results; i++)
        *out_known = s->items[i].dtype != KELP_LIST && s->items[i].dtype != KELP_STRING &&
                     (i >= s->states || same_type(&s->items[i], &s->state[i]));
    return NULL;
}

/* The first results tell what the outputs are; they get memory of this invoke. */
static kelp_status *make_outputs(scan *s) {
    KELP_TRY(shape_outputs(s));
    for (size_t i = 0; i < s->states + s->results; i++) {
        size_t bytes = kelp_tensor_bytes(&s->made[i]);
        s->made[i].data = take(s, bytes);
        if (s->made[i].data == NULL)
            return kelp_status_oom();
        memset(s->made[i].data, 0, bytes);
    }
    return NULL;
}

/* ---- running ---- */
/* Batch `b` of a stacked output. */
static kelp_tensor part_of(const scan *s, size_t k, int64_t b) {
    kelp_tensor whole = s->made[s->states + k];
    if (s->batched && whole.data != NULL) {
        size_t each = kelp_tensor_bytes(&whole) / (size_t)s->batches;
        whole.data = (char *)whole.data + (size_t)b * each;
        whole.rank--;
        memmove(whole.shape, whole.shape + 1, (size_t)whole.rank * sizeof *whole.shape);
    }
    return whole;
}

static kelp_status *keep_results(scan *s, int64_t b, int64_t t, int64_t steps, bool *inout_made) {
    for (size_t i = 0; !*inout_made && i < s->states + s->results; i++)
        s->items[i] = s->given[i];
    if (!*inout_made)
        KELP_TRY(make_outputs(s));
    *inout_made = true;
    for (size_t i = 0; i < s->states; i++)
        s->state[i] = s->given[i];
    for (size_t k = 0; k < s->results; k++) {
        const kelp_tensor *item = &s->given[s->states + k];
        kelp_tensor to = part_of(s, k, b);
        int32_t axis = 0;
        if (to.data == NULL)
            continue; /* nobody wants it */
        KELP_TRY(stack_axis(s, k, &axis));
        if (!same_type(item, &s->items[s->states + k]))
            return SCAN_ERROR(s, "output %zu changes its shape in step %lld", s->states + k,
                              (long long)t);
        place(item, &to, axis, s->out_reverse[k] ? steps - 1 - t : t);
    }
    return NULL;
}

static kelp_status *run_batch(scan *s, int64_t b, int64_t steps, bool *inout_made) {
    KELP_TRY(begin_batch(s, b));
    for (int64_t t = 0; t < steps; t++) {
        if (kelp_op_env_cancelled(s->args->env))
            return KELP_ERROR(KELP_CANCELLED, "node '%s' (Scan) was cancelled",
                              kelp_node_name(s->args->node));
        for (size_t i = 0; i < s->scans; i++)
            KELP_TRY(slice(&s->scanned[i], s->in_axes[i], s->in_reverse[i] ? steps - 1 - t : t,
                           s->copies[i], &s->slices[i]));
        for (size_t i = 0; i < s->states + s->results; i++)
            s->given[i].data = NULL;
        KELP_TRY(kelp_body_run(s->body, s->in, s->given));
        KELP_TRY(keep_results(s, b, t, steps, inout_made));
    }
    if (!*inout_made) { /* no step told */
        bool known;
        int64_t all = s->steps;
        s->steps = all > 0 && steps == 0 ? 0 : all;
        KELP_TRY(plan_items(s, &known));
        s->steps = all;
        KELP_TRY(make_outputs(s));
        *inout_made = true;
    }
    for (size_t i = 0; i < s->states; i++) {
        kelp_tensor *to = &s->made[i];
        size_t each = kelp_tensor_bytes(to) / (size_t)s->batches;
        if (to->data == NULL)
            continue;
        if (kelp_tensor_bytes(&s->state[i]) != each || s->state[i].dtype != to->dtype)
            return SCAN_ERROR(s, "output %zu has another shape than before", i);
        if (each > 0)
            memcpy((char *)to->data + (size_t)b * each, s->state[i].data, each);
    }
    return NULL;
}

/* `made`: outputs have their places. */
static kelp_status *run(scan *s, bool made) {
    const kelp_tensor *lengths = s->batched ? s->args->inputs[0] : NULL;
    if (lengths != NULL &&
        (lengths->dtype != KELP_I64 || kelp_tensor_elements(lengths) != s->batches))
        return SCAN_ERROR(s, "sequence_lens: expected %lld of int64", (long long)s->batches);
    for (int64_t b = 0; b < s->batches; b++) {
        int64_t steps = lengths ? ((const int64_t *)lengths->data)[b] : s->steps;
        if (steps < 0 || steps > s->steps)
            return SCAN_ERROR(s, "sequence_lens[%lld] is %lld, there are %lld steps", (long long)b,
                              (long long)steps, (long long)s->steps);
        KELP_TRY(run_batch(s, b, steps, &made));
    }
    return NULL;
}

/* ---- the kernel ---- */
static kelp_status *run_now(scan *s) {
    size_t bytes = lay_out(s, NULL);
    char *memory = take(s, bytes);
    if (memory == NULL)
        return kelp_status_oom();
    memset(memory, 0, bytes);
    lay_out(s, memory);
    KELP_TRY(read_axes(s));
    KELP_TRY(run(s, false));
    for (int32_t i = 0; i < s->args->output_count; i++)
        if (s->args->outputs[i] != NULL)
            *s->args->outputs[i] = s->made[i];
    s->args->placed = true;
    return NULL;
}

static kelp_status *plan_scan(scan *s) {
    bool known = false;
    KELP_TRY(read_axes(s));
    KELP_TRY(begin_batch(s, 0));
    KELP_TRY(plan_items(s, &known));
    if (!known) {
        s->args->deferred = true;
        return NULL;
    }
    KELP_TRY(shape_outputs(s));
    for (int32_t i = 0; i < s->args->output_count; i++)
        if (s->args->outputs[i] != NULL)
            *s->args->outputs[i] = s->made[i];
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
    size_t bytes = lay_out(&s, NULL);
    KELP_TRY(kelp_alloc_zero(allocator, bytes, 1, (void **)&memory));
    lay_out(&s, memory);
    kelp_status *status = plan_scan(&s);
    args->scratch_bytes = status == NULL && !args->deferred ? bytes : 0;
    kelp_free(allocator, memory, bytes);
    return status;
}

static kelp_status *scan_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    scan s;
    KELP_TRY(open_scan(&s, args));
    memset(args->scratch, 0, args->scratch_bytes);
    lay_out(&s, args->scratch);
    KELP_TRY(read_axes(&s));
    for (size_t i = 0; i < s.states + s.results; i++) {
        const kelp_tensor *out = i < (size_t)args->output_count ? args->outputs[i] : NULL;
        if (out == NULL)
            continue;
        s.made[i] = s.items[i] = *out;
        if (s.batched)
            memset(out->data, 0, kelp_tensor_bytes(out));
        if (i < s.states)
            continue;
        kelp_ops_clear_end(out);
        int64_t lead = s.batched ? 1 : 0, rank = out->rank - lead - 1;
        int64_t axis = s.out_axes[i - s.states];
        axis = axis < 0 ? axis + rank + 1 : axis;
        for (int64_t k = 0, to = 0; k < rank + 1; k++) /* an item has not the axis of steps */
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
