/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The derivatives of operators. A rule gets the gradient of output 0 and emits those of the inputs;
 * kelp_tape_add sums over broadcast axes.
 */
#include "graph/passes/gradient/gradient.h"

#include "base/assert.h"

#include <string.h>

#define RULE(name) \
    static kelp_status *gradient_##name(kelp_tape *t, const kelp_node *n, kelp_value *g)

static kelp_value *input(const kelp_node *n, size_t index) {
    return index < n->input_count ? n->inputs[index] : NULL;
}

/* ---- unary operators ---- */
RULE(zero) {
    (void)t, (void)n, (void)g;
    return NULL;
}
RULE(same) {
    return kelp_tape_add(t, n->inputs[0], g);
}
RULE(negative) {
    KELP_TRY(kelp_tape_unary(t, KELP_OP(Neg), g, &g));
    return kelp_tape_add(t, n->inputs[0], g);
}
RULE(absolute) {
    kelp_value *x = n->inputs[0], *d = NULL;
    KELP_TRY(kelp_tape_unary(t, KELP_OP(Sign), x, &d));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), g, d, &g));
    return kelp_tape_add(t, x, g);
}
RULE(exponential) {
    kelp_value *x = n->inputs[0], *y = n->outputs[0];
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), g, y, &g));
    return kelp_tape_add(t, x, g);
}
RULE(logarithm) {
    kelp_value *x = n->inputs[0];
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Div), g, x, &g));
    return kelp_tape_add(t, x, g);
}
RULE(square_root) { /* g / (2 y) */
    kelp_value *x = n->inputs[0], *y = n->outputs[0], *d = NULL;
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Add), y, y, &d));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Div), g, d, &g));
    return kelp_tape_add(t, x, g);
}
RULE(reciprocal) { /* -g y² */
    kelp_value *x = n->inputs[0], *y = n->outputs[0], *d = NULL;
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), y, y, &d));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), g, d, &g));
    KELP_TRY(kelp_tape_unary(t, KELP_OP(Neg), g, &g));
    return kelp_tape_add(t, x, g);
}
RULE(sine) {
    kelp_value *x = n->inputs[0], *d = NULL;
    KELP_TRY(kelp_tape_unary(t, KELP_OP(Cos), x, &d));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), g, d, &g));
    return kelp_tape_add(t, x, g);
}
RULE(cosine) {
    kelp_value *x = n->inputs[0], *d = NULL;
    KELP_TRY(kelp_tape_unary(t, KELP_OP(Sin), x, &d));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), g, d, &g));
    KELP_TRY(kelp_tape_unary(t, KELP_OP(Neg), g, &g));
    return kelp_tape_add(t, x, g);
}
RULE(hyperbolic_tangent) { /* g (1 - y²) */
    kelp_value *x = n->inputs[0], *y = n->outputs[0], *d = NULL, *e = NULL;
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), y, y, &d));
    KELP_TRY(kelp_tape_scalar(t, 1, g, &e));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Sub), e, d, &d));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), g, d, &g));
    return kelp_tape_add(t, x, g);
}
RULE(sigmoid) { /* g y (1 - y) */
    kelp_value *x = n->inputs[0], *y = n->outputs[0], *d = NULL, *e = NULL;
    KELP_TRY(kelp_tape_scalar(t, 1, g, &e));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Sub), e, y, &d));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), y, d, &d));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), g, d, &g));
    return kelp_tape_add(t, x, g);
}
RULE(softplus) {
    kelp_value *x = n->inputs[0], *d = NULL;
    KELP_TRY(kelp_tape_unary(t, KELP_OP(Sigmoid), x, &d));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), g, d, &g));
    return kelp_tape_add(t, x, g);
}
RULE(error_function) { /* g 2/√π exp(-x²) */
    kelp_value *x = n->inputs[0], *d = NULL, *e = NULL;
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), x, x, &d));
    KELP_TRY(kelp_tape_unary(t, KELP_OP(Neg), d, &d));
    KELP_TRY(kelp_tape_unary(t, KELP_OP(Exp), d, &d));
    KELP_TRY(kelp_tape_scalar(t, 1.1283791670955126, g, &e));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), d, e, &d));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), g, d, &g));
    return kelp_tape_add(t, x, g);
}
/* Derivative of a function with slope 1 where x > 0 and `slope` elsewhere. */
static kelp_status *kinked(kelp_tape *t, const kelp_node *n, kelp_value *g, double slope) {
    kelp_value *x = n->inputs[0], *d = NULL, *e = NULL;
    kelp_value *nothing = NULL, *scaled = NULL;
    KELP_TRY(kelp_tape_scalar(t, 0, g, &nothing));
    KELP_TRY(kelp_tape_scalar(t, slope, g, &e));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), g, e, &scaled));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Greater), x, nothing, &d));
    KELP_TRY(kelp_tape_emit(t, KELP_OP(Where), (kelp_value *[]){d, g, scaled}, 3, &g, NULL));
    return kelp_tape_add(t, x, g);
}
RULE(relu) {
    return kinked(t, n, g, 0);
}
RULE(leaky_relu) {
    return kinked(t, n, g, (double)kelp_node_attr_f32(n, "alpha", 0.01f));
}

/* ---- operators of several inputs ---- */
RULE(every) { /* Add of two, Sum of any number */
    for (size_t i = 0; i < n->input_count; i++)
        KELP_TRY(kelp_tape_add(t, n->inputs[i], g));
    return NULL;
}
RULE(mean_of) {
    kelp_value *count = NULL;
    KELP_TRY(kelp_tape_scalar(t, (double)n->input_count, g, &count));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Div), g, count, &g));
    return gradient_every(t, n, g);
}
RULE(difference) {
    KELP_TRY(kelp_tape_add(t, n->inputs[0], g));
    KELP_TRY(kelp_tape_unary(t, KELP_OP(Neg), g, &g));
    return kelp_tape_add(t, n->inputs[1], g);
}
RULE(product) {
    for (size_t i = 0; i < 2; i++) {
        kelp_value *d = NULL;
        if (!kelp_tape_wants(t, n->inputs[i]))
            continue;
        KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), g, n->inputs[1 - i], &d));
        KELP_TRY(kelp_tape_add(t, n->inputs[i], d));
    }
    return NULL;
}
RULE(quotient) {
    kelp_value *x = n->inputs[0], *y = n->outputs[0], *d = NULL;
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Div), g, n->inputs[1], &d));
    KELP_TRY(kelp_tape_add(t, x, d));
    if (!kelp_tape_wants(t, n->inputs[1]))
        return NULL;
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), d, y, &d)); /* -g y / b */
    KELP_TRY(kelp_tape_unary(t, KELP_OP(Neg), d, &d));
    return kelp_tape_add(t, n->inputs[1], d);
}
RULE(power) {
    kelp_value *x = n->inputs[0], *y = n->outputs[0], *d = NULL, *e = NULL;
    kelp_value *p = n->inputs[1], *one = NULL;
    if (kelp_tape_wants(t, x)) { /* g p x^(p-1) */
        KELP_TRY(kelp_tape_scalar(t, 1, p, &one));
        KELP_TRY(kelp_tape_binary(t, KELP_OP(Sub), p, one, &d));
        KELP_TRY(kelp_tape_binary(t, KELP_OP(Pow), x, d, &d));
        KELP_TRY(kelp_tape_binary(t, KELP_OP(CastLike), p, x, &e));
        KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), d, e, &d));
        KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), g, d, &d));
        KELP_TRY(kelp_tape_add(t, x, d));
    }
    if (!kelp_tape_wants(t, p))
        return NULL;
    KELP_TRY(kelp_tape_unary(t, KELP_OP(Log), x, &d)); /* g y log x */
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), d, y, &d));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), g, d, &d));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(CastLike), d, p, &d));
    return kelp_tape_add(t, p, d);
}
/* Passes the gradient to the input with the extreme value; inputs with equal values share it. */
RULE(extreme) {
    kelp_value *count = NULL, *nothing = NULL;
    KELP_TRY(kelp_tape_scalar(t, 0, g, &nothing));
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n->input_count; i++) {
            kelp_value *chosen = NULL, *part = NULL;
            KELP_TRY(kelp_tape_binary(t, KELP_OP(Equal), n->inputs[i], n->outputs[0], &chosen));
            if (pass == 0) {
                KELP_TRY(kelp_tape_binary(t, KELP_OP(CastLike), chosen, g, &part));
                if (count == NULL)
                    count = part;
                else
                    KELP_TRY(kelp_tape_binary(t, KELP_OP(Add), count, part, &count));
                continue;
            }
            KELP_TRY(kelp_tape_emit(t, KELP_OP(Where), (kelp_value *[]){chosen, g, nothing}, 3,
                                    &part, NULL));
            KELP_TRY(kelp_tape_add(t, n->inputs[i], part));
        }
        if (pass == 0)
            KELP_TRY(kelp_tape_binary(t, KELP_OP(Div), g, count, &g));
    }
    return NULL;
}
RULE(where) {
    kelp_value *nothing = NULL, *part = NULL;
    KELP_TRY(kelp_tape_scalar(t, 0, g, &nothing));
    KELP_TRY(kelp_tape_emit(t, KELP_OP(Where), (kelp_value *[]){n->inputs[0], g, nothing}, 3, &part,
                            NULL));
    KELP_TRY(kelp_tape_add(t, n->inputs[1], part));
    KELP_TRY(kelp_tape_emit(t, KELP_OP(Where), (kelp_value *[]){n->inputs[0], nothing, g}, 3, &part,
                            NULL));
    return kelp_tape_add(t, n->inputs[2], part);
}

/* ---- MatMul and Gemm ---- */
static kelp_status *unsupported(const kelp_node *n, const char *why) {
    return KELP_ERROR(KELP_UNIMPLEMENTED, "Gradient through node '%s' (%s): %s", n->name,
                      n->op->name, why);
}

static kelp_status *swap_last(kelp_tape *t, kelp_value *a, int32_t rank, kelp_value **out) {
    int64_t perm[KELP_MAX_RANK];
    kelp_node *node = NULL;
    KELP_ASSERT(rank >= 2 && rank <= KELP_MAX_RANK);
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    KELP_TRY(kelp_tape_emit(t, KELP_OP(Transpose), &a, 1, out, &node));
    return kelp_node_set_i64s(node, "perm", perm, (size_t)rank);
}

static kelp_status *with_axis(kelp_tape *t, kelp_value *a, int64_t axis, kelp_value **out) {
    kelp_value *axes = NULL;
    KELP_TRY(kelp_tape_list(t, &axis, 1, &axes));
    return kelp_tape_binary(t, KELP_OP(Unsqueeze), a, axes, out);
}

/* Sums over broadcast axes, then removes the axis that was added to a vector. */
static kelp_status *add_operand(kelp_tape *t, kelp_value *operand, kelp_value *matrix,
                                kelp_value *g) {
    kelp_value *shape = NULL;
    if (matrix == operand)
        return kelp_tape_add(t, operand, g);
    KELP_TRY(kelp_tape_emit(t, KELP_OP_KELP(SumTo), (kelp_value *[]){g, matrix}, 2, &g, NULL));
    KELP_TRY(kelp_tape_unary(t, KELP_OP(Shape), operand, &shape));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Reshape), g, shape, &g));
    return kelp_tape_add(t, operand, g);
}

RULE(matmul) {
    kelp_value *a = n->inputs[0], *b = n->inputs[1], *d = NULL;
    int32_t a_rank = a->rank, b_rank = b->rank;
    if (a_rank < 1 || b_rank < 1)
        return unsupported(n, "the ranks of its inputs are not known");
    if (a_rank == 1) {
        KELP_TRY(with_axis(t, a, 0, &a));
        a_rank = 2;
    }
    if (b_rank == 1) {
        KELP_TRY(with_axis(t, b, 1, &b));
        KELP_TRY(with_axis(t, g, -1, &g));
        b_rank = 2;
    }
    if (a != n->inputs[0])
        KELP_TRY(with_axis(t, g, -2, &g));
    if (kelp_tape_wants(t, n->inputs[0])) {
        KELP_TRY(swap_last(t, b, b_rank, &d));
        KELP_TRY(kelp_tape_binary(t, KELP_OP(MatMul), g, d, &d));
        KELP_TRY(add_operand(t, n->inputs[0], a, d));
    }
    if (!kelp_tape_wants(t, n->inputs[1]))
        return NULL;
    KELP_TRY(swap_last(t, a, a_rank, &d));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(MatMul), d, g, &d));
    return add_operand(t, n->inputs[1], b, d);
}

static kelp_status *gemm_part(kelp_tape *t, const kelp_node *n, size_t operand, kelp_value *left,
                              kelp_value *right, int64_t left_transposed,
                              int64_t right_transposed) {
    kelp_node *node = NULL;
    kelp_value *d = NULL;
    if (!kelp_tape_wants(t, n->inputs[operand]))
        return NULL;
    KELP_TRY(kelp_tape_emit(t, KELP_OP(Gemm), (kelp_value *[]){left, right}, 2, &d, &node));
    KELP_TRY(kelp_node_set_f32(node, "alpha", kelp_node_attr_f32(n, "alpha", 1)));
    KELP_TRY(kelp_node_set_i64(node, "transA", left_transposed));
    KELP_TRY(kelp_node_set_i64(node, "transB", right_transposed));
    return kelp_tape_add(t, n->inputs[operand], d);
}

RULE(gemm) {
    kelp_value *a = n->inputs[0], *b = n->inputs[1], *beta = NULL;
    int64_t a_transposed = kelp_node_attr_i64(n, "transA", 0) != 0;
    int64_t b_transposed = kelp_node_attr_i64(n, "transB", 0) != 0;
    if (a_transposed)
        KELP_TRY(gemm_part(t, n, 0, b, g, b_transposed, 1));
    else
        KELP_TRY(gemm_part(t, n, 0, g, b, 0, !b_transposed));
    if (b_transposed)
        KELP_TRY(gemm_part(t, n, 1, g, a, 1, a_transposed));
    else
        KELP_TRY(gemm_part(t, n, 1, a, g, !a_transposed, 0));
    if (input(n, 2) == NULL || !kelp_tape_wants(t, input(n, 2)))
        return NULL;
    KELP_TRY(kelp_tape_scalar(t, (double)kelp_node_attr_f32(n, "beta", 1), g, &beta));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), g, beta, &g));
    return kelp_tape_add(t, input(n, 2), g);
}

/* ---- movement ---- */
RULE(reshaped) { /* Reshape, Flatten, Squeeze, Unsqueeze */
    kelp_value *shape = NULL;
    KELP_TRY(kelp_tape_unary(t, KELP_OP(Shape), n->inputs[0], &shape));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Reshape), g, shape, &g));
    return kelp_tape_add(t, n->inputs[0], g);
}
RULE(transposed) {
    const int64_t *perm = NULL;
    int64_t back[KELP_MAX_RANK];
    kelp_node *node = NULL;
    size_t rank = kelp_node_attr_i64s(n, "perm", &perm);
    for (size_t i = 0; i < rank; i++) {
        if (perm[i] < 0 || perm[i] >= (int64_t)rank || rank > KELP_MAX_RANK)
            return unsupported(n, "attribute 'perm' is not a permutation");
        back[perm[i]] = (int64_t)i;
    }
    KELP_TRY(kelp_tape_emit(t, KELP_OP(Transpose), &g, 1, &g, &node));
    if (rank > 0)
        KELP_TRY(kelp_node_set_i64s(node, "perm", back, rank));
    return kelp_tape_add(t, n->inputs[0], g);
}
/* The gradient of each input is a slice, which starts after the dimensions of the inputs before it.
 */
RULE(concatenated) {
    int64_t axis = kelp_node_attr_i64(n, "axis", 1), one = 1;
    kelp_value *begin = NULL, *axes = NULL, *item = NULL;
    KELP_TRY(kelp_tape_list(t, &axis, 1, &axes));
    KELP_TRY(kelp_tape_list(t, (int64_t[]){0}, 1, &begin));
    KELP_TRY(kelp_tape_list(t, &one, 1, &item));
    for (size_t i = 0; i < n->input_count; i++) {
        kelp_value *dimension = NULL, *end = NULL, *part = NULL;
        KELP_TRY(kelp_tape_unary(t, KELP_OP(Shape), n->inputs[i], &dimension));
        KELP_TRY(kelp_tape_binary(t, KELP_OP(Gather), dimension, axes, &dimension));
        KELP_TRY(kelp_tape_binary(t, KELP_OP(Add), begin, dimension, &end));
        KELP_TRY(kelp_tape_emit(t, KELP_OP(Slice), (kelp_value *[]){g, begin, end, axes, item}, 5,
                                &part, NULL));
        KELP_TRY(kelp_tape_add(t, n->inputs[i], part));
        begin = end;
    }
    return NULL;
}

/* ---- reductions ---- */
/* Broadcasts `g` to the shape of the input. The same reduction with keepdims has the shape with the
 * reduced axes. */
static kelp_status *spread(kelp_tape *t, const kelp_node *n, kelp_value **inout_g) {
    kelp_node *node = NULL;
    kelp_value *kept = NULL, *shape = NULL;
    KELP_TRY(kelp_tape_emit(t, n->op, n->inputs, n->input_count, &kept, &node));
    node->opset_version = n->opset_version;
    for (const kelp_attr *from = n->attributes; from != NULL; from = from->next) {
        kelp_attr *copy = KELP_ARENA_NEW(&t->block->graph->arena, kelp_attr);
        if (copy == NULL)
            return kelp_status_oom();
        *copy = *from;
        copy->next = node->attributes;
        node->attributes = copy;
    }
    KELP_TRY(kelp_node_set_i64(node, "keepdims", 1));
    KELP_TRY(kelp_tape_unary(t, KELP_OP(Shape), kept, &shape));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Reshape), *inout_g, shape, inout_g));
    KELP_TRY(kelp_tape_unary(t, KELP_OP(Shape), n->inputs[0], &shape));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Expand), *inout_g, shape, inout_g));
    return NULL;
}
RULE(reduce_sum) {
    KELP_TRY(spread(t, n, &g));
    return kelp_tape_add(t, n->inputs[0], g);
}
RULE(reduce_mean) {
    kelp_value *x = n->inputs[0], *y = n->outputs[0], *d = NULL, *e = NULL;
    KELP_TRY(spread(t, n, &g));
    KELP_TRY(kelp_tape_unary(t, KELP_OP(Size), x, &d));
    KELP_TRY(kelp_tape_unary(t, KELP_OP(Size), y, &e));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Div), d, e, &d));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(CastLike), d, g, &d));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Div), g, d, &g));
    return kelp_tape_add(t, x, g);
}
RULE(reduce_sum_square) { /* 2 g x */
    kelp_value *x = n->inputs[0], *d = NULL;
    KELP_TRY(spread(t, n, &g));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Add), x, x, &d));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), g, d, &g));
    return kelp_tape_add(t, x, g);
}

/* Emits the sum over the axis of a Softmax; the axis keeps dimension 1. */
static kelp_status *sum_along(kelp_tape *t, const kelp_node *n, kelp_value *a, kelp_value **out) {
    int64_t axis = kelp_node_attr_i64(n, "axis", -1);
    kelp_value *axes = NULL;
    if (n->opset_version < 13)
        return unsupported(n, "versions before 13 are unsupported");
    KELP_TRY(kelp_tape_list(t, &axis, 1, &axes));
    return kelp_tape_binary(t, KELP_OP(ReduceSum), a, axes, out);
}
RULE(softmax) { /* y (g - Σ g y) */
    kelp_value *x = n->inputs[0], *y = n->outputs[0], *d = NULL, *e = NULL;
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), g, y, &d));
    KELP_TRY(sum_along(t, n, d, &e));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Sub), g, e, &d));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), y, d, &d));
    return kelp_tape_add(t, x, d);
}
RULE(log_softmax) { /* g - exp(y) Σ g */
    kelp_value *x = n->inputs[0], *y = n->outputs[0], *d = NULL, *e = NULL;
    KELP_TRY(sum_along(t, n, g, &e));
    KELP_TRY(kelp_tape_unary(t, KELP_OP(Exp), y, &d));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Mul), d, e, &d));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Sub), g, d, &d));
    return kelp_tape_add(t, x, d);
}
RULE(cast) {
    kelp_value *x = n->inputs[0];
    KELP_TRY(kelp_tape_binary(t, KELP_OP(CastLike), g, x, &g));
    return kelp_tape_add(t, x, g);
}

/* All elements that SumTo added get the same gradient. */
RULE(summed) {
    kelp_value *shape = NULL;
    KELP_TRY(kelp_tape_unary(t, KELP_OP(Shape), n->inputs[0], &shape));
    KELP_TRY(kelp_tape_binary(t, KELP_OP(Expand), g, shape, &g));
    return kelp_tape_add(t, n->inputs[0], g);
}

/* ---- the column of the operator list ---- */
#define gradient_NONE NULL
static const kelp_gradient_rule rules[KELP_OPERATOR_COUNT + 1] = {
#define OPERATOR(domain, name, since, kernel, variant, infer, cost, gradient) gradient_##gradient,
#include "operator/operators.inc"
};

kelp_gradient_rule kelp_gradient_find_rule(const kelp_node *node) {
    KELP_ASSERT(node->op->id <= KELP_OPERATOR_COUNT);
    return rules[node->op->id];
}
