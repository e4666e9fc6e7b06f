/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loop. It is static if its trip count is known, its body never ends it early, and the carried
 * values keep their shapes. A static loop writes each item directly to its stacked output. Other
 * loops run in reshape, when their data is available. Carried values are passed on without a copy,
 * see kelp_body. Source: ONNX operator specification, Loop (versions 1 to 25).
 */
#include "base/assert.h"
#include "runtime/opset/body.h"
#include "cpu/ops/control/control.h"

/* Longer loops are rejected before they exhaust memory one iteration at a time. */
#define LOOP_MAX_ITERATIONS ((int64_t)1 << 24)

/* The stacked items of one output of a loop that is not static. */
typedef struct stack {
    kelp_tensor item; /* of the first iteration */
    char *data;
    size_t item_bytes, capacity; /* in bytes */
} stack;

typedef struct loop {
    kelp_op_args *args;
    kelp_body *body;
    size_t own, carried, scans;
    int64_t limit; /* INT64_MAX: none; -1: not known yet */
    bool condition, condition_known;
    const kelp_tensor **in; /* of the body */
    kelp_tensor *results;   /* of the body */
    kelp_tensor *state;     /* the carried values */
    kelp_tensor head[2];    /* iteration and condition: inputs 0 and 1 of the body */
    int64_t iteration;
    uint8_t continues; /* the condition as the body reads it */
    stack *stacks;
} loop;

#define LOOP_ERROR(l, format, ...)                                 \
    KELP_ERROR(KELP_INVALID_ARGUMENT, "node '%s' (Loop): " format, \
               kelp_node_name((l)->args->node), __VA_ARGS__)

/* ---- trip count and memory ---- */
static kelp_status *read_limits(loop *l) {
    const kelp_op_args *args = l->args;
    const kelp_tensor *limit = l->own > 0 ? args->inputs[0] : NULL;
    const kelp_tensor *condition = l->own > 1 ? args->inputs[1] : NULL;
    l->limit = INT64_MAX;
    l->condition = l->condition_known = true;
    if (limit != NULL && (limit->dtype != KELP_I64 || kelp_tensor_elements(limit) != 1))
        return LOOP_ERROR(l, "the trip count is invalid: expected one int64, found %lld of %s",
                          (long long)kelp_tensor_elements(limit), kelp_dtype_name(limit->dtype));
    if (limit != NULL && limit->data == NULL)
        l->limit = -1;
    else if (limit != NULL)
        memcpy(&l->limit, limit->data, sizeof l->limit);
    if (limit != NULL && limit->data != NULL && l->limit < 0)
        l->limit = 0;
    if (condition != NULL && condition->data == NULL)
        l->condition_known = false;
    else if (condition != NULL)
        KELP_TRY(kelp_control_bool(args->node, condition, &l->condition));
    return NULL;
}

/* Returns the size of all arrays of a run. */
static size_t loop_bytes(const loop *l) {
    size_t inputs = 2 + l->carried + (size_t)l->args->input_count - l->own;
    return (inputs * sizeof(kelp_tensor *) + 63) / 64 * 64 +
           (1 + l->carried + l->scans) * sizeof(kelp_tensor) +
           (l->carried + 1) * sizeof(kelp_tensor) + (l->scans + 1) * sizeof(stack);
}

/* Assigns the arrays to `memory` and sets the inputs of the first iteration. */
static void assign_memory(loop *l, char *memory) {
    size_t inputs = 2 + l->carried + (size_t)l->args->input_count - l->own;
    memset(memory, 0, loop_bytes(l));
    l->in = (const kelp_tensor **)(void *)memory;
    l->results = (kelp_tensor *)(void *)(memory + (inputs * sizeof(kelp_tensor *) + 63) / 64 * 64);
    l->state = l->results + 1 + l->carried + l->scans;
    l->stacks = (stack *)(void *)(l->state + l->carried + 1);
    KELP_ASSERT((char *)(l->stacks + l->scans + 1) <= memory + loop_bytes(l));
    l->in[0] = &l->head[0];
    l->in[1] = &l->head[1];
    for (size_t i = 0; i < l->carried; i++) {
        l->state[i] = *l->args->inputs[2 + i];
        l->in[2 + i] = &l->state[i];
    }
    for (size_t i = l->own; i < (size_t)l->args->input_count; i++)
        l->in[2 + l->carried + i - l->own] = l->args->inputs[i];
}

static kelp_status *open_loop(loop *l, kelp_op_args *args) {
    *l = (loop){.args = args, .own = kelp_node_own_inputs(args->node)};
    KELP_TRY(kelp_env_body(args->env, args->node, "body", &l->body));
    l->carried = l->own < 2 ? 0 : l->own - 2;
    size_t captures = (size_t)args->input_count - l->own;
    if (kelp_block_input_count(l->body->block) != 2 + l->carried + captures ||
        kelp_block_output_count(l->body->block) < 1 + l->carried ||
        kelp_block_output_count(l->body->block) < (size_t)args->output_count + 1)
        return LOOP_ERROR(l,
                          "its body has the wrong signature: expected %zu inputs and at least %zu "
                          "outputs",
                          2 + l->carried, 1 + KELP_MAX(l->carried, (size_t)args->output_count));
    l->scans = kelp_block_output_count(l->body->block) - 1 - l->carried;
    for (size_t i = 0; i < l->carried; i++)
        if (args->inputs[2 + i] == NULL)
            return LOOP_ERROR(l, "input %zu is missing", 2 + i);
    l->body->carried = l->carried;
    l->body->first_output = 1;
    l->body->first_input = 2;
    KELP_TRY(kelp_tensor_init(&l->head[0], KELP_I64, 0, NULL, NULL));
    KELP_TRY(kelp_tensor_init(&l->head[1], KELP_BOOL, 0, NULL, NULL));
    return read_limits(l);
}

static bool same_type(const kelp_tensor *a, const kelp_tensor *b) {
    return a->dtype == b->dtype && a->rank == b->rank &&
           (a->rank <= 0 || memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0);
}

/* ---- shapes of outputs ---- */
static kelp_status *set_stacked(loop *l, size_t scan, const kelp_tensor *item, int64_t count,
                                kelp_tensor *out) {
    int64_t shape[KELP_MAX_RANK] = {count};
    if (item->rank + 1 > KELP_MAX_RANK)
        return LOOP_ERROR(l, "output %zu has too many axes", l->carried + scan);
    KELP_ASSERT(count >= 0 && scan < l->scans);
    if (item->rank > 0)
        memcpy(shape + 1, item->shape, (size_t)item->rank * sizeof *shape);
    return kelp_tensor_init(out, item->dtype, item->rank + 1, shape, NULL);
}

/* Describes the item of a loop without iterations, as the body declares it. */
static kelp_status *declared_item(const loop *l, size_t scan, kelp_tensor *out) {
    const kelp_value *declared = kelp_block_output(l->body->block, 1 + l->carried + scan);
    int64_t shape[KELP_MAX_RANK] = {0};
    int32_t rank = KELP_MAX(kelp_value_rank(declared), 0);
    for (int32_t i = 0; i < rank; i++)
        shape[i] = KELP_MAX(kelp_value_dim(declared, i, NULL), 0);
    return kelp_tensor_init(out, kelp_value_dtype(declared), rank, shape, NULL);
}

/* Returns true if the body never ends the loop: its condition is the input condition, or true. */
static bool never_ends_early(const loop *l) {
    const kelp_tensor *known = &l->results[0];
    if (known->data != NULL && known->dtype == KELP_BOOL && kelp_tensor_elements(known) == 1)
        return *(const uint8_t *)known->data != 0;
    return l->body->output_is_input(l->body, 0, 1);
}

/* Sets the shapes of the outputs if the loop is static. */
static kelp_status *shape_outputs(loop *l, bool *out_known) {
    kelp_op_args *args = l->args;
    bool runs = l->limit > 0 && l->condition;
    *out_known = false;
    if (l->limit < 0 || l->limit > LOOP_MAX_ITERATIONS || !l->condition_known)
        return NULL;
    if (runs) {
        bool known = false;
        kelp_status *status = kelp_body_shape(l->body, l->in, l->results, &known);
        bool failed = status != NULL;
        kelp_status_free(status); /* the run reports the same failure */
        if (failed || !known || !never_ends_early(l))
            return NULL;
        for (size_t i = 0; i < l->carried; i++)
            if (!same_type(&l->results[1 + i], &l->state[i]))
                return NULL;
        for (size_t i = 0; i < l->carried + l->scans; i++)
            if (l->results[1 + i].dtype == KELP_LIST || l->results[1 + i].dtype == KELP_STRING)
                return NULL;
    }
    for (size_t i = 0; i < (size_t)args->output_count; i++) {
        kelp_tensor *out = args->outputs[i];
        if (out == NULL)
            continue;
        if (i < l->carried) {
            if (l->state[i].dtype == KELP_LIST || l->state[i].dtype == KELP_STRING)
                return NULL;
            KELP_TRY(kelp_tensor_init(out, l->state[i].dtype, l->state[i].rank, l->state[i].shape,
                                      NULL));
            continue;
        }
        kelp_tensor item = l->results[1 + i];
        if (!runs)
            KELP_TRY(declared_item(l, i - l->carried, &item));
        KELP_TRY(set_stacked(l, i - l->carried, &item, runs ? l->limit : 0, out));
    }
    *out_known = true;
    return NULL;
}

/* ---- running ---- */
/* Returns true if items of packed elements are not a whole number of bytes, so that an item begins
 * inside the last byte of the previous one. */
static bool shares_bytes(const kelp_tensor *item) {
    return kelp_tensor_elements(item) * kelp_dtype_bits(item->dtype) % 8 != 0;
}

/* Makes the body of a static loop write to the outputs: the stacked items of every iteration, and
 * the carried values of the last. */
static void bind_results(loop *l, int64_t n) {
    KELP_ASSERT(n >= 0 && n < l->limit);
    for (size_t i = 0; i < (size_t)l->args->output_count; i++) {
        const kelp_tensor *out = l->args->outputs[i];
        kelp_tensor *result = &l->results[1 + i];
        if (out == NULL)
            continue;
        if (i < l->carried) {
            if (n == l->limit - 1)
                *result = *out;
            continue;
        }
        *result = *out;
        result->rank = out->rank - 1;
        memmove(result->shape, result->shape + 1, (size_t)result->rank * sizeof *result->shape);
        result->data =
            shares_bytes(result) ? NULL : (char *)out->data + (size_t)n * kelp_tensor_bytes(result);
        KELP_ASSERT(n < out->shape[0]);
    }
}

/* Copies the items that the body could not write to the outputs. */
static void copy_shared(const loop *l, int64_t n) {
    for (size_t i = l->carried; i < (size_t)l->args->output_count; i++) {
        const kelp_tensor *out = l->args->outputs[i], *item = &l->results[1 + i];
        if (out == NULL || !shares_bytes(item))
            continue;
        if (n == 0)
            kelp_ops_clear_end(out);
        int64_t count = kelp_tensor_elements(item);
        kelp_ops_copy_elements(out->dtype, out->data, n * count, item->data, 0, count);
    }
}

static kelp_status *push(loop *l, size_t scan, int64_t n) {
    stack *s = &l->stacks[scan];
    const kelp_tensor *item = &l->results[1 + l->carried + scan];
    if (n == 0) {
        s->item = *item;
        s->item_bytes = kelp_tensor_bytes(item);
    }
    if (!same_type(item, &s->item))
        return LOOP_ERROR(l, "output %zu changes its shape in iteration %lld", l->carried + scan,
                          (long long)n);
    int64_t elements = kelp_tensor_elements(item);
    bool shares = shares_bytes(item);
    size_t used = (size_t)n * s->item_bytes; /* an upper bound if items share bytes */
    KELP_ASSERT(used <= s->capacity);
    if (s->capacity - used < s->item_bytes || s->data == NULL) {
        size_t capacity = KELP_MAX(s->capacity * 2, s->item_bytes * 16 + 64);
        char *data = kelp_op_env_alloc(l->args->env, capacity);
        if (data == NULL)
            return kelp_status_oom();
        if (used > 0)
            memcpy(data, s->data, used);
        if (shares)
            memset(data + used, 0, capacity - used);
        s->data = data;
        s->capacity = capacity;
    }
    if (shares)
        kelp_ops_copy_elements(item->dtype, s->data, n * elements, item->data, 0, elements);
    else if (s->item_bytes > 0)
        memcpy(s->data + used, item->data, s->item_bytes);
    return NULL;
}

static kelp_status *check_iteration(const loop *l, int64_t n) {
    if (kelp_op_env_cancelled(l->args->env))
        return KELP_ERROR(KELP_CANCELLED, "node '%s' (Loop) was cancelled",
                          kelp_node_name(l->args->node));
    if (n >= LOOP_MAX_ITERATIONS)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                          "node '%s' (Loop) has too many iterations: expected at most %lld",
                          kelp_node_name(l->args->node), (long long)LOOP_MAX_ITERATIONS);
    return NULL;
}

static kelp_status *run_iteration(loop *l, bool is_static) {
    int64_t n = l->iteration;
    KELP_TRY(check_iteration(l, n));
    l->continues = 1;
    l->head[0].data = &l->iteration;
    l->head[1].data = &l->continues;
    for (size_t i = 0; i < 1 + l->carried + l->scans; i++)
        l->results[i].data = NULL;
    if (is_static)
        bind_results(l, n);
    KELP_TRY(kelp_body_run(l->body, l->in, l->results));
    KELP_TRY(kelp_control_bool(l->args->node, &l->results[0], &l->condition));
    for (size_t i = 0; i < l->carried; i++)
        l->state[i] = l->results[1 + i];
    if (is_static)
        copy_shared(l, n);
    for (size_t i = 0; i < l->scans && !is_static; i++)
        if (l->carried + i < (size_t)l->args->output_count)
            KELP_TRY(push(l, i, n));
    return NULL;
}

/* Makes output `i` borrow a carried value. A value that is still the input is copied, because the
 * memory of the input is reused after the node. */
static kelp_status *lend_carried(const loop *l, size_t i, kelp_tensor *out) {
    size_t bytes = kelp_tensor_bytes(&l->state[i]);
    *out = l->state[i];
    if (out->data != l->args->inputs[2 + i]->data || bytes == 0)
        return NULL;
    out->data = kelp_op_env_alloc(l->args->env, bytes);
    if (out->data == NULL)
        return kelp_status_oom();
    memcpy(out->data, l->state[i].data, bytes);
    return NULL;
}

static kelp_status *set_outputs(loop *l) {
    for (size_t i = 0; i < (size_t)l->args->output_count; i++) {
        kelp_tensor *out = l->args->outputs[i];
        if (out == NULL)
            continue;
        if (i < l->carried) {
            KELP_TRY(lend_carried(l, i, out));
            continue;
        }
        stack *s = &l->stacks[i - l->carried];
        if (l->iteration == 0)
            KELP_TRY(declared_item(l, i - l->carried, &s->item));
        KELP_TRY(set_stacked(l, i - l->carried, &s->item, l->iteration, out));
        out->data = s->data;
        if (out->data == NULL && (out->data = kelp_op_env_alloc(l->args->env, 1)) == NULL)
            return kelp_status_oom();
    }
    return NULL;
}

static kelp_status *run_now(loop *l) {
    KELP_ASSERT(l->limit >= 0 && l->condition_known && l->iteration == 0);
    for (; l->iteration < l->limit && l->condition; l->iteration++)
        KELP_TRY(run_iteration(l, false));
    l->args->placed = true;
    return set_outputs(l);
}

/* ---- the kernel ---- */
static kelp_status *loop_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    loop l;
    KELP_TRY(open_loop(&l, args));
    if (kelp_control_has_data(args)) {
        char *memory = kelp_op_env_alloc(args->env, loop_bytes(&l));
        if (memory == NULL)
            return kelp_status_oom();
        assign_memory(&l, memory);
        return run_now(&l);
    }
    kelp_allocator allocator = kelp_op_env_allocator(args->env);
    size_t bytes = loop_bytes(&l);
    char *memory = NULL;
    bool known = false;
    KELP_TRY(kelp_alloc_zero(allocator, bytes, 1, (void **)&memory));
    assign_memory(&l, memory);
    kelp_status *status = shape_outputs(&l, &known);
    kelp_free(allocator, memory, bytes);
    args->deferred = !known;
    args->scratch_bytes = known ? bytes : 0;
    return status;
}

static kelp_status *loop_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    loop l;
    KELP_TRY(open_loop(&l, args));
    assign_memory(&l, args->scratch);
    for (; l.iteration < l.limit && l.condition; l.iteration++)
        KELP_TRY(run_iteration(&l, true));
    for (size_t i = 0; i < l.carried && i < (size_t)args->output_count; i++) {
        kelp_tensor *out = args->outputs[i];
        size_t bytes = out != NULL ? kelp_tensor_bytes(out) : 0;
        if (bytes > 0 && out->data != l.state[i].data)
            memcpy(out->data, l.state[i].data, bytes);
    }
    return NULL;
}

const kelp_op_kernel kelp_op_Loop = {.struct_size = sizeof(kelp_op_kernel),
                                     .flags = KELP_OP_IMPURE | KELP_OP_LISTS,
                                     .reshape = loop_reshape,
                                     .invoke = loop_invoke};
