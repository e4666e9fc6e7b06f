/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on sequences and optionals, and the table of all operators on lists. Source: ONNX
 * operator specification, Sequence…-11 to 24, Optional…-15 to 28, SequenceMap-17. */
#include "base/assert.h"
#include "cpu/ops/sequence/sequence.h"
#include "graph/ir.h"

/* ---- helpers ---- */
kelp_status *kelp_list_alloc(const kelp_list_call *call, int64_t count, size_t item_bytes,
                             void *out) {
    size_t bytes;
    void *data = NULL;
    if (count >= 0 && kelp_size_mul((size_t)count, item_bytes, &bytes))
        data = kelp_op_env_alloc(call->env, bytes ? bytes : 1);
    memcpy(out, &data, sizeof data);
    return data == NULL ? kelp_status_oom() : NULL;
}

kelp_status *kelp_list_tensor(const kelp_list_call *call, kelp_dtype dtype, int32_t rank,
                              const int64_t *shape, kelp_tensor *out) {
    KELP_TRY(kelp_tensor_init(out, dtype, rank, shape, NULL));
    return kelp_list_alloc(call, (int64_t)kelp_tensor_bytes(out), 1, &out->data);
}

kelp_status *kelp_list_make(const kelp_list_call *call, int32_t rank, int64_t count,
                            kelp_tensor *out) {
    const int64_t shape[3] = {count, 1, 1};
    KELP_ASSERT(rank >= 1 && rank <= 3 && count >= 0);
    KELP_TRY(kelp_list_tensor(call, KELP_LIST, rank, shape, out));
    memset(out->data, 0, kelp_tensor_bytes(out));
    return NULL;
}

kelp_status *kelp_list_own(const kelp_list_call *call, const kelp_tensor *from, kelp_tensor *out) {
    size_t bytes = kelp_tensor_bytes(from);
    kelp_tensor copy = *from;
    KELP_TRY(kelp_list_alloc(call, (int64_t)bytes, 1, &copy.data));
    if (bytes > 0)
        memcpy(copy.data, from->data, bytes);
    copy.flags = 0;
    *out = copy;
    return NULL;
}

static const char *kind_name(int32_t rank) {
    return rank == 1 ? "sequence" : rank == 2 ? "optional" : "map";
}

kelp_status *kelp_list_expect(const kelp_list_call *call, size_t index, int32_t rank,
                              const kelp_tensor **out) {
    const kelp_tensor *input = kelp_list_in(call, index);
    /* a Reshape can give a list another shape, which is none of the three kinds */
    bool fits = input != NULL && input->dtype == KELP_LIST && input->rank == rank &&
                (rank < 2 || input->shape[1] == 1) &&
                (rank < 3 || (input->shape[0] == 2 && input->shape[2] == 1));
    if (!fits)
        return KELP_LIST_ERROR(call, "input %zu: expected a %s, found %s", index, kind_name(rank),
                               input == NULL               ? "none"
                               : input->dtype != KELP_LIST ? "a tensor"
                                                           : kind_name(input->rank));
    *out = input;
    return NULL;
}

kelp_status *kelp_list_position(const kelp_list_call *call, size_t index, int64_t length,
                                int64_t limit, int64_t fallback, int64_t *out) {
    const kelp_tensor *input = kelp_list_in(call, index);
    *out = fallback;
    if (input != NULL) {
        if ((input->dtype != KELP_I32 && input->dtype != KELP_I64) ||
            kelp_tensor_elements(input) != 1)
            return KELP_LIST_ERROR(call,
                                   "the position is invalid: expected one int32 or int64, found "
                                   "%lld of %s",
                                   (long long)kelp_tensor_elements(input),
                                   kelp_dtype_name(input->dtype));
        *out = kelp_ops_read_i64(input, 0);
    }
    int64_t position = *out;
    if (position < 0 && position >= -length)
        *out += length;
    if (*out < 0 || *out > limit)
        return KELP_LIST_ERROR(call, "position %lld is outside the sequence of length %lld",
                               (long long)position, (long long)length);
    return NULL;
}

/* Checks that elements of a sequence have one type. */
static kelp_status *same_type(const kelp_list_call *call, const kelp_tensor *a,
                              const kelp_tensor *b) {
    if (a->dtype != b->dtype)
        return KELP_LIST_ERROR(call, "the element has the wrong type: expected %s, found %s",
                               kelp_dtype_name(a->dtype), kelp_dtype_name(b->dtype));
    return NULL;
}

/* ---- sequences ---- */
static kelp_status *construct(const kelp_list_call *call) {
    KELP_TRY(kelp_list_make(call, 1, (int64_t)call->input_count, &call->outputs[0]));
    for (size_t i = 0; i < call->input_count; i++) {
        if (call->inputs[i] == NULL)
            return KELP_LIST_ERROR(call, "input %zu is missing", i);
        KELP_TRY(same_type(call, call->inputs[0], call->inputs[i]));
        KELP_TRY(kelp_list_own(call, call->inputs[i], kelp_list_items(&call->outputs[0]) + i));
    }
    return NULL;
}

static kelp_status *empty(const kelp_list_call *call) {
    return kelp_list_make(call, 1, 0, &call->outputs[0]);
}

static kelp_status *insert(const kelp_list_call *call) {
    const kelp_tensor *list = NULL, *item = kelp_list_in(call, 1);
    int64_t at = 0;
    KELP_TRY(kelp_list_expect(call, 0, 1, &list));
    if (item == NULL)
        return KELP_LIST_ERROR(call, "%s", "input 1 is missing");
    int64_t count = list->shape[0];
    KELP_TRY(kelp_list_position(call, 2, count, count, count, &at));
    const kelp_tensor *from = kelp_list_items(list);
    if (count > 0)
        KELP_TRY(same_type(call, &from[0], item));
    KELP_TRY(kelp_list_make(call, 1, count + 1, &call->outputs[0]));
    kelp_tensor *to = kelp_list_items(&call->outputs[0]);
    for (int64_t i = 0; i < count; i++)
        to[i < at ? i : i + 1] = from[i];
    return kelp_list_own(call, item, &to[at]);
}

static kelp_status *erase(const kelp_list_call *call) {
    const kelp_tensor *list = NULL;
    int64_t at = 0;
    KELP_TRY(kelp_list_expect(call, 0, 1, &list));
    int64_t count = list->shape[0];
    KELP_TRY(kelp_list_position(call, 1, count, count - 1, count - 1, &at));
    KELP_TRY(kelp_list_make(call, 1, count - 1, &call->outputs[0]));
    for (int64_t i = 0, k = 0; i < count; i++)
        if (i != at)
            kelp_list_items(&call->outputs[0])[k++] = kelp_list_items(list)[i];
    return NULL;
}

static kelp_status *at(const kelp_list_call *call) {
    const kelp_tensor *list = NULL;
    int64_t position = 0;
    KELP_TRY(kelp_list_expect(call, 0, 1, &list));
    KELP_TRY(kelp_list_position(call, 1, list->shape[0], list->shape[0] - 1, -1, &position));
    KELP_ASSERT(position >= 0 && position < list->shape[0]);
    call->outputs[0] = kelp_list_items(list)[position];
    return NULL;
}

static kelp_status *length(const kelp_list_call *call) {
    const kelp_tensor *list = NULL;
    KELP_TRY(kelp_list_expect(call, 0, 1, &list));
    KELP_TRY(kelp_list_tensor(call, KELP_I64, 0, NULL, &call->outputs[0]));
    *(int64_t *)call->outputs[0].data = list->shape[0];
    return NULL;
}

/* ---- optionals ---- */
static kelp_status *optional(const kelp_list_call *call) {
    const kelp_tensor *item = kelp_list_in(call, 0);
    KELP_TRY(kelp_list_make(call, 2, item != NULL, &call->outputs[0]));
    return item != NULL ? kelp_list_own(call, item, kelp_list_items(&call->outputs[0])) : NULL;
}

static bool is_optional(const kelp_tensor *input) {
    return input->dtype == KELP_LIST && input->rank == 2 && input->shape[1] == 1;
}

static kelp_status *has_element(const kelp_list_call *call) {
    const kelp_tensor *input = kelp_list_in(call, 0);
    KELP_TRY(kelp_list_tensor(call, KELP_BOOL, 0, NULL, &call->outputs[0]));
    *(uint8_t *)call->outputs[0].data =
        input != NULL && (!is_optional(input) || input->shape[0] > 0);
    return NULL;
}

/* Since version 18, the element of a tensor or sequence is the input itself. */
static kelp_status *get_element(const kelp_list_call *call) {
    const kelp_tensor *input = kelp_list_in(call, 0);
    if (input == NULL || (is_optional(input) && input->shape[0] == 0))
        return KELP_LIST_ERROR(call, "%s", "the optional is empty");
    call->outputs[0] = is_optional(input) ? kelp_list_items(input)[0] : *input;
    return NULL;
}

/* ---- SequenceMap ---- */
static kelp_status *map_one(const kelp_list_call *call, kelp_body *body, int64_t index) {
    size_t all = kelp_node_input_count(call->node), outputs = kelp_block_output_count(body->block);
    const kelp_tensor **in;
    kelp_tensor *results;
    KELP_TRY(kelp_list_alloc(call, (int64_t)all, sizeof *in, &in));
    KELP_TRY(kelp_list_alloc(call, (int64_t)outputs, sizeof *results, &results));
    memset(results, 0, outputs * sizeof *results);
    for (size_t i = 0; i < all; i++) {
        const kelp_tensor *input = call->inputs[i];
        if (input == NULL)
            return KELP_LIST_ERROR(call, "input %zu is missing", i);
        in[i] = input;
        if (input->dtype == KELP_LIST && input->rank == 1 && i < call->input_count) {
            if (index >= input->shape[0])
                return KELP_LIST_ERROR(
                    call, "input %zu has too few elements: expected %lld, found %lld", i,
                    (long long)call->inputs[0]->shape[0], (long long)input->shape[0]);
            in[i] = &kelp_list_items(input)[index];
        }
    }
    KELP_TRY(kelp_body_run(body, in, results));
    for (size_t i = 0; i < kelp_node_output_count(call->node); i++)
        KELP_TRY(kelp_list_own(call, &results[i], kelp_list_items(&call->outputs[i]) + index));
    return NULL;
}

static kelp_status *map(const kelp_list_call *call) {
    const kelp_tensor *list = NULL;
    kelp_body *body = NULL;
    KELP_TRY(kelp_list_expect(call, 0, 1, &list));
    KELP_TRY(kelp_env_body(call->env, call->node, "body", &body));
    if (kelp_block_input_count(body->block) != kelp_node_input_count(call->node) ||
        kelp_block_output_count(body->block) < kelp_node_output_count(call->node))
        return KELP_LIST_ERROR(call,
                               "its body has the wrong signature: expected %zu inputs and at least "
                               "%zu outputs",
                               call->input_count, kelp_node_output_count(call->node));
    for (size_t i = 0; i < kelp_node_output_count(call->node); i++)
        KELP_TRY(kelp_list_make(call, 1, list->shape[0], &call->outputs[i]));
    for (int64_t i = 0; i < list->shape[0]; i++) {
        if (kelp_op_env_cancelled(call->env))
            return KELP_ERROR(KELP_CANCELLED, "node '%s' (SequenceMap) was cancelled",
                              kelp_node_name(call->node));
        KELP_TRY(map_one(call, body, i));
    }
    return NULL;
}

/* ---- dispatch ---- */
static const kelp_list_fn operators[KELP_OPERATOR_COUNT + 1] = {
    [KELP_OPERATOR_ONNX_SequenceAt] = at,
    [KELP_OPERATOR_ONNX_SequenceConstruct] = construct,
    [KELP_OPERATOR_ONNX_SequenceEmpty] = empty,
    [KELP_OPERATOR_ONNX_SequenceErase] = erase,
    [KELP_OPERATOR_ONNX_SequenceInsert] = insert,
    [KELP_OPERATOR_ONNX_SequenceLength] = length,
    [KELP_OPERATOR_ONNX_SequenceMap] = map,
    [KELP_OPERATOR_ONNX_SplitToSequence] = kelp_list_split,
    [KELP_OPERATOR_ONNX_ConcatFromSequence] = kelp_list_concat,
    [KELP_OPERATOR_ONNX_Optional] = optional,
    [KELP_OPERATOR_ONNX_OptionalHasElement] = has_element,
    [KELP_OPERATOR_ONNX_OptionalGetElement] = get_element,
    [KELP_OPERATOR_ML_ZipMap] = kelp_list_zip_map,
    [KELP_OPERATOR_ML_CastMap] = kelp_list_cast_map,
    [KELP_OPERATOR_ML_DictVectorizer] = kelp_list_vectorize,
};

kelp_status *kelp_list_dispatch(const kelp_op_env *env, const kelp_node *node,
                                const kelp_tensor *const *inputs, kelp_tensor *outputs,
                                bool *out_found) {
    kelp_list_call call = {env, node, inputs, 0, outputs};
    call.input_count = kelp_node_own_inputs(node);
    KELP_ASSERT(node->op->id <= KELP_OPERATOR_COUNT);
    kelp_list_fn fn = operators[node->op->id];
    *out_found = fn != NULL;
    return fn != NULL ? fn(&call) : NULL;
}
