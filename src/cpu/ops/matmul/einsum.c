/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Einsum: sums of products over the labels of an equation. This file reads the equation; the plan
 * (einsum.h) consists of matrix multiplications and vectorized loops. Source: ONNX operator
 * specification, Einsum; numpy.einsum for the meaning of an ellipsis.
 */
#include "base/assert.h"
#include "cpu/ops/converted.h"
#include "cpu/ops/matmul/einsum.h"

#define OPERANDS KELP_EINSUM_OPERANDS
/* Labels: the letters, then the dimensions of "...", counted from the last. */
#define LETTERS 52
#define LABELS (LETTERS + KELP_MAX_RANK)

/* The labels of one operand or of the output. */
typedef struct term {
    int32_t count;
    int32_t labels[KELP_MAX_RANK];
} term;

/* isalpha would depend on the locale of the process. */
static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int32_t label_of(char c) {
    KELP_ASSERT(is_letter(c));
    return c >= 'a' ? c - 'a' : c - 'A' + LETTERS / 2;
}

/* Reads the labels of one term. `rank` is the operand's, or -1 for the output, whose ellipsis has
 * `dots` dimensions. */
static kelp_status *read_term(const kelp_op_args *args, const char **at, int32_t rank, int32_t dots,
                              term *out) {
    const char *text = kelp_node_attr_string(args->node, "equation", "", NULL);
    int32_t letters = 0;
    for (const char *c = *at; *c != '\0' && *c != ',' && *c != '-'; c++)
        letters += is_letter(*c);
    if (rank >= 0)
        dots = rank - letters;
    out->count = 0;
    for (; **at != '\0' && **at != ',' && **at != '-'; (*at)++) {
        char c = **at;
        if (c == ' ')
            continue;
        int32_t more = c == '.' ? dots : 1;
        if (c == '.' ? strncmp(*at, "...", 3) != 0 : !is_letter(c))
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "operator 'Einsum': equation '%s' has '%c' at character %d: expected a letter, "
                "'...', ',' or '->'",
                text, c, (int)(*at - text) + 1);
        if (more < 0 || out->count + more > KELP_MAX_RANK)
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "operator 'Einsum': equation '%s' does not match the ranks of its inputs", text);
        for (int32_t i = 0; i < more; i++)
            out->labels[out->count++] = c == '.' ? LETTERS + dots - 1 - i : label_of(c);
        if (c == '.')
            *at += 2;
    }
    if (rank >= 0 && out->count != rank)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "operator 'Einsum': a term of equation '%s' has %d labels for an input of rank %d",
            text, out->count, rank);
    return NULL;
}

/* Makes the output of an equation without "->": the ellipsis, then the letters that occur once, in
 * alphabetical order (capitals first). Returns false if these are more than the maximum rank. */
static bool implicit_output(const term *terms, int32_t count, term *out) {
    int32_t seen[LABELS] = {0};
    for (int32_t t = 0; t < count; t++) {
        for (int32_t i = 0; i < terms[t].count; i++)
            seen[terms[t].labels[i]]++;
    }
    out->count = 0;
    for (int32_t label = LABELS - 1; label >= LETTERS; label--) {
        if (seen[label] > 0)
            out->labels[out->count++] = label;
    }
    for (int32_t i = 0; i < LETTERS; i++) {
        int32_t label = (i + LETTERS / 2) % LETTERS;
        if (seen[label] != 1)
            continue;
        if (out->count == KELP_MAX_RANK)
            return false;
        out->labels[out->count++] = label;
    }
    return true;
}

static kelp_status *read_equation(const kelp_op_args *args, term *terms, term *out) {
    const char *text = kelp_node_attr_string(args->node, "equation", "", NULL), *at = text;
    int32_t dots = 0;
    for (int32_t t = 0; t < args->input_count; t++) {
        if (t > 0 && *at++ != ',')
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "operator 'Einsum': equation '%s' has fewer terms than the %d inputs",
                              text, args->input_count);
        KELP_TRY(read_term(args, &at, args->inputs[t]->rank, 0, &terms[t]));
        for (int32_t i = 0; i < terms[t].count; i++)
            dots = KELP_MAX(dots, terms[t].labels[i] - LETTERS + 1);
    }
    if (*at == '\0')
        return implicit_output(terms, args->input_count, out)
                   ? NULL
                   : KELP_ERROR(KELP_INVALID_ARGUMENT,
                                "operator 'Einsum': the result of equation '%s' has more than %d "
                                "dimensions",
                                text, KELP_MAX_RANK);
    if (at[0] != '-' || at[1] != '>')
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator 'Einsum': equation '%s' has more terms than inputs", text);
    at += 2;
    return read_term(args, &at, -1, dots, out);
}

static kelp_status *set_dims(const kelp_op_args *args, const term *terms, int64_t *dims) {
    for (int32_t i = 0; i < LABELS; i++)
        dims[i] = -1;
    for (int32_t t = 0; t < args->input_count; t++) {
        for (int32_t i = 0; i < terms[t].count; i++) {
            int64_t *dim = &dims[terms[t].labels[i]], found = args->inputs[t]->shape[i];
            if (*dim < 0 || *dim == 1)
                *dim = found;
            if (found != *dim && found != 1)
                return kelp_ops_bad_shapes(args, args->inputs[0], args->inputs[t],
                                           "the dimensions of a label differ");
        }
    }
    return NULL;
}

/* Views of the operands and the output by label, before labels are merged. */
typedef struct views {
    int32_t count; /* operands, then the output */
    int64_t dims[LABELS];
    int64_t strides[OPERANDS + 1][LABELS]; /* 0: the tensor lacks the label or repeats along it */
} views;

static void set_view(views *v, int32_t index, const term *labels, int32_t rank,
                     const int64_t *shape) {
    int64_t strides[KELP_MAX_RANK];
    kelp_ops_strides(rank, shape, strides);
    for (int32_t i = 0; i < labels->count; i++)
        if (shape[i] != 1)
            v->strides[index][labels->labels[i]] += strides[i]; /* a diagonal adds up */
}

/* Returns true if label `next` always follows `label`, so that both are one dimension. */
static bool are_adjacent(const views *v, int32_t label, int32_t next) {
    for (int32_t t = 0; t < v->count; t++)
        if (v->strides[t][label] != v->strides[t][next] * v->dims[next])
            return false;
    return true;
}

/* Merges labels, and drops those of size 1. Returns the number of labels that remain. */
static int32_t merge_labels(views *v) {
    int32_t count = 0;
    for (int32_t label = 0; label < LABELS; label++) {
        for (int32_t next = 0; next < LABELS && v->dims[label] > 1; next++) {
            if (next == label || v->dims[next] <= 1 || !are_adjacent(v, label, next))
                continue;
            v->dims[next] *= v->dims[label];
            v->dims[label] = 1;
        }
    }
    for (int32_t label = 0; label < LABELS; label++) {
        if (v->dims[label] <= 1)
            continue;
        for (int32_t t = 0; t < v->count; t++)
            v->strides[t][count] = v->strides[t][label];
        v->dims[count++] = v->dims[label];
    }
    return count;
}

/* Fills the tensors of the plan. */
static kelp_status *set_tensors(const kelp_op_args *args, views *v, kelp_einsum *e) {
    const kelp_tensor *first = args->inputs[0];
    for (int32_t label = 0; label < LABELS; label++)
        e->is_empty = e->is_empty || v->dims[label] == 0;
    if (e->is_empty)
        return NULL;
    int32_t labels = merge_labels(v);
    if (labels > KELP_EINSUM_LABELS)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "operator 'Einsum': equation '%s' has %d dimensions: expected at most %d",
                          kelp_node_attr_string(args->node, "equation", "", NULL), labels,
                          KELP_EINSUM_LABELS);
    e->type = first->dtype == KELP_F32                               ? KELP_PRODUCT_F32
              : first->dtype == KELP_F64                             ? KELP_PRODUCT_F64
              : first->dtype == KELP_I32 || first->dtype == KELP_U32 ? KELP_PRODUCT_U32
                                                                     : KELP_PRODUCT_U64;
    e->operands = args->input_count;
    e->tensors = v->count;
    e->labels = labels;
    memcpy(e->dims, v->dims, (size_t)labels * sizeof *e->dims);
    for (int32_t t = 0; t < v->count; t++) {
        e->tensor[t].input = t < e->operands ? t : KELP_EINSUM_RESULT;
        e->tensor[t].labels = 0;
        memcpy(e->tensor[t].strides, v->strides[t], (size_t)labels * sizeof(int64_t));
        for (int32_t i = 0; i < labels; i++)
            if (v->strides[t][i] != 0)
                e->tensor[t].labels |= 1u << i;
    }
    e->result = e->tensor[e->operands].labels;
    return NULL;
}

static kelp_status *check_operands(const kelp_op_args *args) {
    if (args->input_count < 1 || args->input_count > OPERANDS)
        return KELP_ERROR(KELP_UNIMPLEMENTED, "operator 'Einsum' has %d inputs: expected 1 to %d",
                          args->input_count, OPERANDS);
    KELP_TRY(kelp_ops_check(args, args->input_count));
    kelp_dtype dtype = args->inputs[0]->dtype;
    for (int32_t t = 1; t < args->input_count; t++)
        if (args->inputs[t]->dtype != dtype)
            return kelp_ops_bad_type(args, args->inputs[t]->dtype);
    if (dtype != KELP_F32 && dtype != KELP_F64 && dtype != KELP_I32 && dtype != KELP_U32 &&
        dtype != KELP_I64 && dtype != KELP_U64)
        return kelp_ops_bad_type(args, dtype);
    return NULL;
}

static kelp_status *einsum_reshape(const void *state, kelp_op_args *args) {
    term terms[OPERANDS], out;
    views v = {.count = args->input_count + 1};
    int64_t shape[KELP_MAX_RANK];
    uint64_t seen[2] = {0, 0};
    (void)state;
    KELP_TRY(check_operands(args));
    KELP_TRY(read_equation(args, terms, &out));
    KELP_TRY(set_dims(args, terms, v.dims));
    for (int32_t i = 0; i < out.count; i++) {
        int32_t label = out.labels[i];
        if (v.dims[label] < 0 || (seen[label / 64] >> label % 64 & 1) != 0)
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "operator 'Einsum': a label of the output occurs twice, or in no input");
        seen[label / 64] |= (uint64_t)1 << label % 64;
        shape[i] = v.dims[label];
    }
    KELP_TRY(kelp_ops_set(args, 0, args->inputs[0]->dtype, out.count, shape));
    for (int32_t t = 0; t < args->input_count; t++)
        set_view(&v, t, &terms[t], args->inputs[t]->rank, args->inputs[t]->shape);
    set_view(&v, args->input_count, &out, out.count, shape);
    KELP_TRY(set_tensors(args, &v, args->plan));
    return kelp_einsum_plan(args->plan, args);
}

static kelp_status *einsum_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    kelp_einsum_run(args->plan, args);
    return NULL;
}

/* ---- integers of 8 and 16 bits, which are computed in 32 ---- */
static bool is_narrow(kelp_dtype dtype) {
    return dtype == KELP_I8 || dtype == KELP_I16 || dtype == KELP_U8 || dtype == KELP_U16;
}

static void load_narrow(const kelp_op_env *env, const kelp_tensor *from, void *to) {
    int64_t count = kelp_tensor_elements(from);
    (void)env;
    for (int64_t i = 0; i < count; i++)
        ((uint32_t *)to)[i] = (uint32_t)kelp_ops_read_i64(from, i);
}

static void store_narrow(const kelp_op_env *env, const void *from, kelp_tensor *to) {
    int64_t count = kelp_tensor_elements(to);
    const uint32_t *values = from;
    (void)env;
    for (int64_t i = 0; i < count; i++) { /* the low bits: sums wrap */
        if (kelp_ops_element_bytes(to->dtype) == 1)
            ((uint8_t *)to->data)[i] = (uint8_t)values[i];
        else
            ((uint16_t *)to->data)[i] = (uint16_t)values[i];
    }
}

static const kelp_conversion widened_integers = {is_narrow, KELP_U32, sizeof(uint32_t), load_narrow,
                                                 store_narrow};

static const kelp_conversion *conversion_of(const kelp_op_args *args) {
    const kelp_tensor *x = kelp_ops_in(args, 0);
    return x != NULL && is_narrow(x->dtype) ? &widened_integers : &kelp_widened;
}

static kelp_status *einsum_reshape_any(const void *state, kelp_op_args *args) {
    return kelp_converted_reshape(conversion_of(args), state, args, einsum_reshape,
                                  sizeof(kelp_einsum));
}

static kelp_status *einsum_invoke_any(const void *state, kelp_op_args *args) {
    return kelp_converted_invoke(conversion_of(args), state, args, einsum_invoke,
                                 sizeof(kelp_einsum));
}
KELP_KERNEL(Einsum, 0, KELP_CONVERTED_PLAN(sizeof(kelp_einsum)), 255, einsum_reshape_any,
            einsum_invoke_any);
