/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Einsum: sums of products over the labels of an equation, by one loop over all labels. Source:
 * ONNX operator specification, Einsum; numpy.einsum for the meaning of an ellipsis.
 */
#include "base/assert.h"
#include "cpu/ops/kernel.h"
#include "tensor/real.h"

#define OPERANDS 8
/* Labels: the letters, then the dimensions of "...", counted from the last. */
#define LETTERS 52
#define LABELS (LETTERS + KELP_MAX_RANK)

typedef struct einsum_plan {
    int32_t operands;
    int32_t loops; /* number of labels that occur; those of the output are first */
    int32_t kept;  /* number of labels of the output */
    int64_t dims[LABELS];
    int64_t strides[OPERANDS][LABELS]; /* of each operand, by loop */
} einsum_plan;

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

static kelp_status *einsum_reshape(const void *state, kelp_op_args *args) {
    einsum_plan *p = args->plan;
    term terms[OPERANDS], out;
    int64_t dims[LABELS], shape[KELP_MAX_RANK], strides[KELP_MAX_RANK];
    int32_t place[LABELS];
    (void)state;
    if (args->input_count < 1 || args->input_count > OPERANDS)
        return KELP_ERROR(KELP_UNIMPLEMENTED, "operator 'Einsum' has %d inputs: expected 1 to %d",
                          args->input_count, OPERANDS);
    KELP_TRY(kelp_ops_check(args, args->input_count));
    for (int32_t t = 0; t < args->input_count; t++) {
        if (!kelp_real_takes(args->inputs[t]->dtype) ||
            args->inputs[t]->dtype != args->inputs[0]->dtype)
            return kelp_ops_bad_type(args, args->inputs[t]->dtype);
    }
    KELP_TRY(read_equation(args, terms, &out));
    KELP_TRY(set_dims(args, terms, dims));
    p->operands = args->input_count;
    p->loops = 0;
    for (int32_t i = 0; i < LABELS; i++)
        place[i] = -1;
    for (int32_t i = 0; i < out.count; i++) {
        if (dims[out.labels[i]] < 0 || place[out.labels[i]] >= 0)
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "operator 'Einsum': a label of the output occurs twice, or in no input");
        shape[i] = dims[out.labels[i]];
        place[out.labels[i]] = p->loops;
        p->dims[p->loops++] = shape[i];
    }
    p->kept = p->loops;
    for (int32_t i = 0; i < LABELS; i++) {
        if (dims[i] >= 0 && place[i] < 0) {
            place[i] = p->loops;
            p->dims[p->loops++] = dims[i];
        }
    }
    memset(p->strides, 0, sizeof p->strides);
    for (int32_t t = 0; t < args->input_count; t++) {
        kelp_ops_strides(args->inputs[t]->rank, args->inputs[t]->shape, strides);
        for (int32_t i = 0; i < terms[t].count; i++) {
            if (args->inputs[t]->shape[i] != 1)
                p->strides[t][place[terms[t].labels[i]]] += strides[i]; /* a diagonal adds up */
        }
    }
    return kelp_ops_set(args, 0, args->inputs[0]->dtype, out.count, shape);
}

/* Computes one element of the output. `first` are its offsets in the operands. */
static double sum_at(const kelp_op_args *args, const einsum_plan *p, const int64_t *first) {
    int64_t index[LABELS] = {0}, at[OPERANDS];
    double sum = 0;
    memcpy(at, first, (size_t)p->operands * sizeof *at);
    for (int32_t i = p->kept; i < p->loops; i++) {
        if (p->dims[i] == 0)
            return 0;
    }
    for (;;) {
        double product = 1;
        for (int32_t t = 0; t < p->operands; t++)
            product *= kelp_ops_read_f64(args->inputs[t], at[t]);
        sum += product;
        int32_t loop = p->loops - 1;
        for (; loop >= p->kept; loop--) {
            for (int32_t t = 0; t < p->operands; t++)
                at[t] += p->strides[t][loop];
            if (++index[loop] < p->dims[loop])
                break;
            for (int32_t t = 0; t < p->operands; t++)
                at[t] -= p->strides[t][loop] * p->dims[loop];
            index[loop] = 0;
        }
        if (loop < p->kept)
            return sum;
    }
}

static void einsum_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_op_args *args = userp;
    const einsum_plan *p = args->plan;
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        int64_t first[OPERANDS] = {0}, rest = at;
        for (int32_t loop = p->kept - 1; loop >= 0; loop--) {
            for (int32_t t = 0; t < p->operands; t++)
                first[t] += rest % p->dims[loop] * p->strides[t][loop];
            rest /= p->dims[loop];
        }
        double sum = sum_at(args, p, first);
        kelp_real_store_f64(args->outputs[0]->dtype, args->outputs[0]->data, at, 1, &sum);
    }
}

static kelp_status *einsum_invoke(const void *state, kelp_op_args *args) {
    const einsum_plan *p = args->plan;
    double terms = 1;
    (void)state;
    KELP_ASSERT(p->operands == args->input_count && p->kept <= p->loops && p->loops <= LABELS);
    for (int32_t i = p->kept; i < p->loops; i++)
        terms *= (double)p->dims[i];
    kelp_op_parallel(args->env, kelp_tensor_elements(args->outputs[0]),
                     (int64_t)(KELP_GRAIN_ELEMENTS / 8 / KELP_MAX(terms, 1.0)) + 1, einsum_range,
                     args);
    return NULL;
}
KELP_KERNEL(Einsum, 0, sizeof(einsum_plan), 0, einsum_reshape, einsum_invoke);

/* ---- Det: Gaussian elimination with partial pivoting ---- */
static kelp_status *det_reshape(const void *state, kelp_op_args *args) {
    size_t at;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    if (!kelp_ops_is_float(x->dtype))
        return kelp_ops_bad_type(args, x->dtype);
    if (x->rank < 2 || x->shape[x->rank - 1] != x->shape[x->rank - 2])
        return kelp_ops_bad_shapes(args, x, NULL, "expected square matrices");
    int64_t n = x->shape[x->rank - 1];
    KELP_TRY(kelp_ops_scratch(args, n * n, sizeof(double), &at));
    return kelp_ops_set(args, 0, x->dtype, x->rank - 2, x->shape);
}

static double determinant(const kelp_op_env *env, double *m, int64_t n) {
    double result = 1;
    for (int64_t k = 0; k < n && !kelp_op_env_cancelled(env); k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++) {
            double a = m[i * n + k], b = m[pivot * n + k];
            if ((a < 0 ? -a : a) > (b < 0 ? -b : b))
                pivot = i;
        }
        if (m[pivot * n + k] == 0)
            return 0;
        for (int64_t j = 0; pivot != k && j < n; j++) {
            double kept = m[k * n + j];
            m[k * n + j] = m[pivot * n + j];
            m[pivot * n + j] = kept;
        }
        result *= pivot != k ? -m[k * n + k] : m[k * n + k];
        for (int64_t i = k + 1; i < n; i++) {
            double factor = m[i * n + k] / m[k * n + k];
            for (int64_t j = k; j < n; j++)
                m[i * n + j] -= factor * m[k * n + j];
        }
    }
    return result;
}

static kelp_status *det_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0];
    int64_t n = x->shape[x->rank - 1];
    (void)state;
    KELP_ASSERT(n == x->shape[x->rank - 2] && kelp_ops_is_float(x->dtype));
    for (int64_t at = 0; at < kelp_tensor_elements(args->outputs[0]); at++) {
        kelp_real_load_f64(x->dtype, x->data, at * n * n, n * n, args->scratch);
        double result = determinant(args->env, args->scratch, n);
        kelp_real_store_f64(x->dtype, args->outputs[0]->data, at, 1, &result);
    }
    return NULL;
}
KELP_KERNEL(Det, KELP_OP_SERIAL, 0, 0, det_reshape, det_invoke);
