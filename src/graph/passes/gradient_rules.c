/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derivatives, operator by operator. Each rule is given the gradient of output 0 and writes those
 * of the inputs; sums over broadcast axes are kelp_tape_add's work.
 */
#include "graph/passes/gradient.h"

#include <string.h>

#define UNARY(op, a, out) KELP_TRY(kelp_tape_unary(t, op, a, out))
#define BINARY(op, a, b, out) KELP_TRY(kelp_tape_binary(t, op, a, b, out))
#define SCALAR(number, out) KELP_TRY(kelp_tape_scalar(t, number, g, out))
#define RULE(name) \
    static kelp_status *gradient_##name(kelp_tape *t, const kelp_node *n, kelp_value *g)
/* What most rules begin with: the first input, the output, room for what is written. */
#define LOCALS                                                              \
    kelp_value *x = n->inputs[0], *y = n->outputs[0], *d = NULL, *e = NULL; \
    (void)y, (void)d, (void)e

static kelp_value *input(const kelp_node *n, size_t index) {
    return index < n->input_count ? n->inputs[index] : NULL;
}

/* ---- of one tensor ---- */
RULE(zero) {
    (void)t, (void)n, (void)g;
    return NULL;
}
RULE(same) {
    return kelp_tape_add(t, n->inputs[0], g);
}
RULE(negative) {
    UNARY(KELP_OP(Neg), g, &g);
    return kelp_tape_add(t, n->inputs[0], g);
}
RULE(absolute) {
    LOCALS;
    UNARY(KELP_OP(Sign), x, &d);
    BINARY(KELP_OP(Mul), g, d, &g);
    return kelp_tape_add(t, x, g);
}
RULE(exponential) {
    LOCALS;
    BINARY(KELP_OP(Mul), g, y, &g);
    return kelp_tape_add(t, x, g);
}
RULE(logarithm) {
    LOCALS;
    BINARY(KELP_OP(Div), g, x, &g);
    return kelp_tape_add(t, x, g);
}
RULE(square_root) { /* g / (2 y) */
    LOCALS;
    BINARY(KELP_OP(Add), y, y, &d);
    BINARY(KELP_OP(Div), g, d, &g);
    return kelp_tape_add(t, x, g);
}
RULE(reciprocal) { /* -g y² */
    LOCALS;
    BINARY(KELP_OP(Mul), y, y, &d);
    BINARY(KELP_OP(Mul), g, d, &g);
    UNARY(KELP_OP(Neg), g, &g);
    return kelp_tape_add(t, x, g);
}
RULE(sine) {
    LOCALS;
    UNARY(KELP_OP(Cos), x, &d);
    BINARY(KELP_OP(Mul), g, d, &g);
    return kelp_tape_add(t, x, g);
}
RULE(cosine) {
    LOCALS;
    UNARY(KELP_OP(Sin), x, &d);
    BINARY(KELP_OP(Mul), g, d, &g);
    UNARY(KELP_OP(Neg), g, &g);
    return kelp_tape_add(t, x, g);
}
RULE(hyperbolic_tangent) { /* g (1 - y²) */
    LOCALS;
    BINARY(KELP_OP(Mul), y, y, &d);
    SCALAR(1, &e);
    BINARY(KELP_OP(Sub), e, d, &d);
    BINARY(KELP_OP(Mul), g, d, &g);
    return kelp_tape_add(t, x, g);
}
RULE(sigmoid) { /* g y (1 - y) */
    LOCALS;
    SCALAR(1, &e);
    BINARY(KELP_OP(Sub), e, y, &d);
    BINARY(KELP_OP(Mul), y, d, &d);
    BINARY(KELP_OP(Mul), g, d, &g);
    return kelp_tape_add(t, x, g);
}
RULE(softplus) {
    LOCALS;
    UNARY(KELP_OP(Sigmoid), x, &d);
    BINARY(KELP_OP(Mul), g, d, &g);
    return kelp_tape_add(t, x, g);
}
RULE(error_function) { /* g 2/√π exp(-x²) */
    LOCALS;
    BINARY(KELP_OP(Mul), x, x, &d);
    UNARY(KELP_OP(Neg), d, &d);
    UNARY(KELP_OP(Exp), d, &d);
    SCALAR(1.1283791670955126, &e);
    BINARY(KELP_OP(Mul), d, e, &d);
    BINARY(KELP_OP(Mul), g, d, &g);
    return kelp_tape_add(t, x, g);
}
/* `slope` where x < 0, 0 at 0 when the slope is 0. */
static kelp_status *kinked(kelp_tape *t, const kelp_node *n, kelp_value *g, double slope) {
    LOCALS;
    kelp_value *nothing = NULL, *scaled = NULL;
    SCALAR(0, &nothing);
    SCALAR(slope, &e);
    BINARY(KELP_OP(Mul), g, e, &scaled);
    BINARY(KELP_OP(Greater), x, nothing, &d);
    KELP_TRY(kelp_tape_emit(t, KELP_OP(Where), (kelp_value *[]){d, g, scaled}, 3, &g, NULL));
    return kelp_tape_add(t, x, g);
}
RULE(relu) {
    return kinked(t, n, g, 0);
}
RULE(leaky_relu) {
    return kinked(t, n, g, (double)kelp_node_attr_f32(n, "alpha", 0.01f));
}

/* ---- of two or more ---- */
RULE(every) { /* Add of two, Sum of any number */
    for (size_t i = 0; i < n->input_count; i++)
        KELP_TRY(kelp_tape_add(t, n->inputs[i], g));
    return NULL;
}
RULE(mean_of) {
    kelp_value *count = NULL;
    SCALAR((double)n->input_count, &count);
    BINARY(KELP_OP(Div), g, count, &g);
    return gradient_every(t, n, g);
}
RULE(difference) {
    KELP_TRY(kelp_tape_add(t, n->inputs[0], g));
    UNARY(KELP_OP(Neg), g, &g);
    return kelp_tape_add(t, n->inputs[1], g);
}
RULE(product) {
    for (size_t i = 0; i < 2; i++) {
        kelp_value *d = NULL;
        if (!kelp_tape_wants(t, n->inputs[i]))
            continue;
        BINARY(KELP_OP(Mul), g, n->inputs[1 - i], &d);
        KELP_TRY(kelp_tape_add(t, n->inputs[i], d));
    }
    return NULL;
}
RULE(quotient) {
    LOCALS;
    BINARY(KELP_OP(Div), g, n->inputs[1], &d);
    KELP_TRY(kelp_tape_add(t, x, d));
    if (!kelp_tape_wants(t, n->inputs[1]))
        return NULL;
    BINARY(KELP_OP(Mul), d, y, &d); /* -g y / b */
    UNARY(KELP_OP(Neg), d, &d);
    return kelp_tape_add(t, n->inputs[1], d);
}
RULE(power) {
    LOCALS;
    kelp_value *p = n->inputs[1], *one = NULL;
    if (kelp_tape_wants(t, x)) { /* g p x^(p-1) */
        KELP_TRY(kelp_tape_scalar(t, 1, p, &one));
        BINARY(KELP_OP(Sub), p, one, &d);
        BINARY(KELP_OP(Pow), x, d, &d);
        BINARY(KELP_OP(CastLike), p, x, &e);
        BINARY(KELP_OP(Mul), d, e, &d);
        BINARY(KELP_OP(Mul), g, d, &d);
        KELP_TRY(kelp_tape_add(t, x, d));
    }
    if (!kelp_tape_wants(t, p))
        return NULL;
    UNARY(KELP_OP(Log), x, &d); /* g y log x */
    BINARY(KELP_OP(Mul), d, y, &d);
    BINARY(KELP_OP(Mul), g, d, &d);
    BINARY(KELP_OP(CastLike), d, p, &d);
    return kelp_tape_add(t, p, d);
}
/* The gradient goes where the extreme is; equal ones share it. */
RULE(extreme) {
    kelp_value *count = NULL, *nothing = NULL;
    SCALAR(0, &nothing);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n->input_count; i++) {
            kelp_value *chosen = NULL, *part = NULL;
            BINARY(KELP_OP(Equal), n->inputs[i], n->outputs[0], &chosen);
            if (pass == 0) {
                BINARY(KELP_OP(CastLike), chosen, g, &part);
                if (count == NULL)
                    count = part;
                else
                    BINARY(KELP_OP(Add), count, part, &count);
                continue;
            }
            KELP_TRY(kelp_tape_emit(t, KELP_OP(Where), (kelp_value *[]){chosen, g, nothing}, 3,
                                    &part, NULL));
            KELP_TRY(kelp_tape_add(t, n->inputs[i], part));
        }
        if (pass == 0)
            BINARY(KELP_OP(Div), g, count, &g);
    }
    return NULL;
}
RULE(where) {
    kelp_value *nothing = NULL, *part = NULL;
    SCALAR(0, &nothing);
    KELP_TRY(kelp_tape_emit(t, KELP_OP(Where), (kelp_value *[]){n->inputs[0], g, nothing}, 3, &part,
                            NULL));
    KELP_TRY(kelp_tape_add(t, n->inputs[1], part));
    KELP_TRY(kelp_tape_emit(t, KELP_OP(Where), (kelp_value *[]){n->inputs[0], nothing, g}, 3, &part,
                            NULL));
    return kelp_tape_add(t, n->inputs[2], part);
}

/* ---- products of matrices ---- */
static kelp_status *unknown_rank(const kelp_node *n, const char *why) {
    return KELP_ERROR(KELP_UNIMPLEMENTED, "Gradient through node '%s' (%s): %s", n->name,
                      n->op->name, why);
}

static kelp_status *swap_last(kelp_tape *t, kelp_value *a, int32_t rank, kelp_value **out) {
    int64_t perm[KELP_MAX_RANK];
    kelp_node *node = NULL;
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

/* Sums what was broadcast, then drops the axis that a vector was given. */
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
        return unknown_rank(n, "the ranks of its inputs are not known");
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
        BINARY(KELP_OP(MatMul), g, d, &d);
        KELP_TRY(add_operand(t, n->inputs[0], a, d));
    }
    if (!kelp_tape_wants(t, n->inputs[1]))
        return NULL;
    KELP_TRY(swap_last(t, a, a_rank, &d));
    BINARY(KELP_OP(MatMul), d, g, &d);
    return add_operand(t, n->inputs[1], b, d);
}

static kelp_status *gemm_part(kelp_tape *t, const kelp_node *n, size_t operand, kelp_value *left,
                              kelp_value *right, int64_t left_turned, int64_t right_turned) {
    kelp_node *node = NULL;
    kelp_value *d = NULL;
    if (!kelp_tape_wants(t, n->inputs[operand]))
        return NULL;
    KELP_TRY(kelp_tape_emit(t, KELP_OP(Gemm), (kelp_value *[]){left, right}, 2, &d, &node));
    KELP_TRY(kelp_node_set_f32(node, "alpha", kelp_node_attr_f32(n, "alpha", 1)));
    KELP_TRY(kelp_node_set_i64(node, "transA", left_turned));
    KELP_TRY(kelp_node_set_i64(node, "transB", right_turned));
    return kelp_tape_add(t, n->inputs[operand], d);
}

RULE(gemm) {
    kelp_value *a = n->inputs[0], *b = n->inputs[1], *beta = NULL;
    int64_t a_turned = kelp_node_attr_i64(n, "transA", 0) != 0;
    int64_t b_turned = kelp_node_attr_i64(n, "transB", 0) != 0;
    if (a_turned)
        KELP_TRY(gemm_part(t, n, 0, b, g, b_turned, 1));
    else
        KELP_TRY(gemm_part(t, n, 0, g, b, 0, !b_turned));
    if (b_turned)
        KELP_TRY(gemm_part(t, n, 1, g, a, 1, a_turned));
    else
        KELP_TRY(gemm_part(t, n, 1, a, g, !a_turned, 0));
    if (input(n, 2) == NULL || !kelp_tape_wants(t, input(n, 2)))
        return NULL;
    SCALAR((double)kelp_node_attr_f32(n, "beta", 1), &beta);
    BINARY(KELP_OP(Mul), g, beta, &g);
    return kelp_tape_add(t, input(n, 2), g);
}

/* ---- movement ---- */
RULE(reshaped) { /* Reshape, Flatten, Squeeze, Unsqueeze */
    kelp_value *shape = NULL;
    UNARY(KELP_OP(Shape), n->inputs[0], &shape);
    BINARY(KELP_OP(Reshape), g, shape, &g);
    return kelp_tape_add(t, n->inputs[0], g);
}
RULE(transposed) {
    const int64_t *perm = NULL;
    int64_t back[KELP_MAX_RANK];
    kelp_node *node = NULL;
    size_t rank = kelp_node_attr_i64s(n, "perm", &perm);
    for (size_t i = 0; i < rank; i++) {
        if (perm[i] < 0 || perm[i] >= (int64_t)rank || rank > KELP_MAX_RANK)
            return unknown_rank(n, "attribute 'perm' is wrong");
        back[perm[i]] = (int64_t)i;
    }
    KELP_TRY(kelp_tape_emit(t, KELP_OP(Transpose), &g, 1, &g, &node));
    if (rank > 0)
        KELP_TRY(kelp_node_set_i64s(node, "perm", back, rank));
    return kelp_tape_add(t, n->inputs[0], g);
}
/* Each input's part of the gradient is a slice: extents before it, and its own. */
RULE(concatenated) {
    int64_t axis = kelp_node_attr_i64(n, "axis", 1), one = 1;
    kelp_value *begin = NULL, *axes = NULL, *item = NULL;
    KELP_TRY(kelp_tape_list(t, &axis, 1, &axes));
    KELP_TRY(kelp_tape_list(t, (int64_t[]){0}, 1, &begin));
    KELP_TRY(kelp_tape_list(t, &one, 1, &item));
    for (size_t i = 0; i < n->input_count; i++) {
        kelp_value *extent = NULL, *end = NULL, *part = NULL;
        UNARY(KELP_OP(Shape), n->inputs[i], &extent);
        BINARY(KELP_OP(Gather), extent, axes, &extent);
        BINARY(KELP_OP(Add), begin, extent, &end);
        KELP_TRY(kelp_tape_emit(t, KELP_OP(Slice), (kelp_value *[]){g, begin, end, axes, item}, 5,
                                &part, NULL));
        KELP_TRY(kelp_tape_add(t, n->inputs[i], part));
        begin = end;
    }
    return NULL;
}

/* ---- reductions ---- */
/* `g` with the reduced axes back, as long as the input's: the same reduction that keeps its axes
 * says how. */
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
    UNARY(KELP_OP(Shape), kept, &shape);
    BINARY(KELP_OP(Reshape), *inout_g, shape, inout_g);
    UNARY(KELP_OP(Shape), n->inputs[0], &shape);
    BINARY(KELP_OP(Expand), *inout_g, shape, inout_g);
    return NULL;
}
RULE(reduce_sum) {
    KELP_TRY(spread(t, n, &g));
    return kelp_tape_add(t, n->inputs[0], g);
}
RULE(reduce_mean) {
    LOCALS;
    KELP_TRY(spread(t, n, &g));
    UNARY(KELP_OP(Size), x, &d);
    UNARY(KELP_OP(Size), y, &e);
    BINARY(KELP_OP(Div), d, e, &d);
    BINARY(KELP_OP(CastLike), d, g, &d);
    BINARY(KELP_OP(Div), g, d, &g);
    return kelp_tape_add(t, x, g);
}
RULE(reduce_sum_square) { /* 2 g x */
    LOCALS;
    KELP_TRY(spread(t, n, &g));
    BINARY(KELP_OP(Add), x, x, &d);
    BINARY(KELP_OP(Mul), g, d, &g);
    return kelp_tape_add(t, x, g);
}

/* The sum over the axis of a Softmax, which stays with extent 1. */
static kelp_status *sum_along(kelp_tape *t, const kelp_node *n, kelp_value *a, kelp_value **out) {
    int64_t axis = kelp_node_attr_i64(n, "axis", -1);
    kelp_value *axes = NULL;
    if (n->opset_version < 13)
        return unknown_rank(n, "before version 13 it is not carried out");
    KELP_TRY(kelp_tape_list(t, &axis, 1, &axes));
    return kelp_tape_binary(t, KELP_OP(ReduceSum), a, axes, out);
}
RULE(softmax) { /* y (g - Σ g y) */
    LOCALS;
    BINARY(KELP_OP(Mul), g, y, &d);
    KELP_TRY(sum_along(t, n, d, &e));
    BINARY(KELP_OP(Sub), g, e, &d);
    BINARY(KELP_OP(Mul), y, d, &d);
    return kelp_tape_add(t, x, d);
}
RULE(log_softmax) { /* g - exp(y) Σ g */
    LOCALS;
    KELP_TRY(sum_along(t, n, g, &e));
    UNARY(KELP_OP(Exp), y, &d);
    BINARY(KELP_OP(Mul), d, e, &d);
    BINARY(KELP_OP(Sub), g, d, &d);
    return kelp_tape_add(t, x, d);
}
RULE(cast) {
    kelp_value *x = n->inputs[0];
    BINARY(KELP_OP(CastLike), g, x, &g);
    return kelp_tape_add(t, x, g);
}

/* What SumTo took together gets the same gradient. */
RULE(summed) {
    kelp_value *shape = NULL;
    UNARY(KELP_OP(Shape), n->inputs[0], &shape);
    BINARY(KELP_OP(Expand), g, shape, &g);
    return kelp_tape_add(t, n->inputs[0], g);
}

/* ---- the list's column ---- */
#define gradient_NONE NULL
static const kelp_gradient_rule rules[KELP_OPERATOR_COUNT + 1] = {
#define OPERATOR(domain, name, since, kernel, variant, infer, cost, gradient) gradient_##gradient,
#include "operator/operators.inc"
};

kelp_gradient_rule kelp_gradient_find_rule(const kelp_node *node) {
    return rules[node->op->id];
}
