/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuses Gelu as exporters write it: (Erf(x / sqrt 2) + 1) * x * 1/2 with the factors in any order,
 * or with Tanh(sqrt(2 / pi) (x + 0.044715 x^3)) instead of the error function. Source: Hendrycks
 * and Gimpel, "Gaussian Error Linear Units", 2016.
 */
#include "base/assert.h"
#include "graph/passes/passes.h"

#include <math.h>
#include <string.h>

/* Returns x of x / sqrt(2) or x * (1 / sqrt(2)), or NULL. */
static kelp_value *match_scaled(const kelp_value *value) {
    kelp_node *div = kelp_match_producer(value, KELP_OP(Div));
    if (div != NULL && kelp_match_scalar_near(div->inputs[1], sqrt(2.0)))
        return div->inputs[0];
    kelp_node *mul = kelp_match_producer(value, KELP_OP(Mul));
    for (int k = 0; mul != NULL && k < 2; k++)
        if (kelp_match_scalar_near(mul->inputs[k], sqrt(0.5)))
            return mul->inputs[1 - k];
    return NULL;
}

#define MAX_FACTORS 4
typedef struct factors {
    kelp_value *items[MAX_FACTORS];
    size_t count;
} factors;

/* Collects the factors of a tree of multiplications; Pow(x, 3) is three factors x. False if there
 * are too many factors or the tree is too deep. */
static bool take_factors(kelp_value *value, const kelp_value *x, int depth, factors *out) {
    kelp_node *mul = value != x ? kelp_match_producer(value, KELP_OP(Mul)) : NULL;
    kelp_node *power = kelp_match_producer(value, KELP_OP(Pow));
    if (mul != NULL)
        return depth < MAX_FACTORS && take_factors(mul->inputs[0], x, depth + 1, out) &&
               take_factors(mul->inputs[1], x, depth + 1, out);
    bool cube = power != NULL && kelp_match_scalar_near(power->inputs[1], 3.0);
    for (int k = 0; k < (cube ? 3 : 1); k++) {
        if (out->count == MAX_FACTORS)
            return false;
        out->items[out->count++] = cube ? power->inputs[0] : value;
    }
    return true;
}

static bool is_cubic(kelp_value *value, const kelp_value *x) {
    factors f = {.count = 0};
    size_t scalars = 0, same = 0;
    if (!take_factors(value, x, 0, &f))
        return false;
    for (size_t i = 0; i < f.count; i++) {
        same += x != NULL && f.items[i] == x;
        scalars += kelp_match_scalar_near(f.items[i], 0.044715);
    }
    return f.count == 4 && same == 3 && scalars == 1;
}

/* Returns x of sqrt(2 / pi) * (x + 0.044715 * x * x * x), or NULL. */
static kelp_value *match_cubic(const kelp_value *value) {
    kelp_node *mul = kelp_match_producer(value, KELP_OP(Mul)), *add = NULL;
    for (int k = 0; mul != NULL && k < 2; k++)
        if (kelp_match_scalar_near(mul->inputs[k], 0.7978845608))
            add = kelp_match_producer(mul->inputs[1 - k], KELP_OP(Add));
    for (int k = 0; add != NULL && k < 2; k++)
        if (is_cubic(add->inputs[1 - k], add->inputs[k]))
            return add->inputs[k];
    return NULL;
}

/* Returns the other operand of a node with the operand `known`, or NULL. */
static kelp_value *other_input(const kelp_node *node, const kelp_value *known) {
    if (node->inputs[0] == known)
        return node->inputs[1];
    return node->inputs[1] == known ? node->inputs[0] : NULL;
}

/* Returns the value of gelu(x), or NULL. `sum` is 1 + erf(x / sqrt 2) or its approximation in (sum
 * * x) * ½, (sum * ½) * x or sum * (x * ½). */
static kelp_value *match_products(const kelp_value *sum, const kelp_value *x) {
    kelp_node *first = kelp_value_only_user(sum);
    if (first == NULL || kelp_match_producer(first->outputs[0], KELP_OP(Mul)) != first)
        return NULL;
    kelp_value *other = other_input(first, sum);
    kelp_node *half = kelp_match_producer(other, KELP_OP(Mul));
    if (half != NULL && other_input(half, x) != NULL &&
        kelp_match_scalar_near(other_input(half, x), 0.5))
        return first->outputs[0];
    bool by_x = other == x, by_half = kelp_match_scalar_near(other, 0.5);
    kelp_node *second = kelp_value_only_user(first->outputs[0]);
    if ((!by_x && !by_half) || second == NULL ||
        kelp_match_producer(second->outputs[0], KELP_OP(Mul)) != second)
        return NULL;
    other = other_input(second, first->outputs[0]);
    if (by_x ? kelp_match_scalar_near(other, 0.5) : other == x)
        return second->outputs[0];
    return NULL;
}

static kelp_status *fuse(kelp_block *block, kelp_node *erf, bool *out_done) {
    bool by_tanh = kelp_match_producer(erf->outputs[0], KELP_OP(Tanh)) == erf;
    if (!by_tanh && kelp_match_producer(erf->outputs[0], KELP_OP(Erf)) != erf)
        return NULL;
    kelp_value *x = by_tanh ? match_cubic(erf->inputs[0]) : match_scaled(erf->inputs[0]);
    kelp_node *add = kelp_value_only_user(erf->outputs[0]);
    if (x == NULL || x->dtype != KELP_F32 || add == NULL ||
        kelp_match_producer(add->outputs[0], KELP_OP(Add)) != add ||
        !kelp_match_scalar_near(other_input(add, erf->outputs[0]), 1.0))
        return NULL;
    kelp_value *result = match_products(add->outputs[0], x);
    if (result == NULL || result->rank != x->rank)
        return NULL;
    kelp_node *last = result->producer, *gelu = NULL;
    KELP_ASSERT(last != NULL && erf->index < last->index);
    kelp_value *output = NULL;
    KELP_TRY(kelp_block_add_value(block, result->name, &output));
    output->kind = KELP_VALUE_TENSOR;
    output->dtype = x->dtype;
    output->rank = result->rank;
    memcpy(output->shape, result->shape, sizeof output->shape);
    memcpy(output->symbols, result->symbols, sizeof output->symbols);
    KELP_TRY(kelp_block_insert_node(block, last, KELP_OP(Gelu), 20, last->name, &x, 1, &output, 1,
                                    NULL, &gelu));
    if (by_tanh)
        KELP_TRY(kelp_node_set_string(gelu, "approximate", "tanh"));
    kelp_block_replace_uses(block, result, output);
    last->removed = true;
    *out_done = true;
    return NULL;
}

kelp_status *kelp_pass_gelu(kelp_block *block) {
    return kelp_pass_each(block, fuse);
}
