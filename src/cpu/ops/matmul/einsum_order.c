/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which Einsum multiplies its operands: the one with the fewest multiplications, by
 * dynamic programming over the subsets of operands. Source: Pfeifer, Haegeman and Verstraete,
 * "Faster identification of optimal contraction sequences for tensor networks", 2014. */
#include "base/assert.h"
#include "cpu/ops/matmul/einsum.h"

#define SUBSETS (1 << KELP_EINSUM_OPERANDS)

typedef struct order {
    uint32_t labels[SUBSETS]; /* of the product of a subset, after sums over all others */
    double cost[SUBSETS];
    uint8_t split[SUBSETS]; /* the part of a subset that is computed first */
} order;

static double work(const kelp_einsum *e, uint32_t labels) {
    double product = 1;
    for (int32_t i = 0; i < e->labels; i++)
        if (labels >> i & 1)
            product *= (double)e->dims[i];
    return product;
}

/* Returns the labels of the operands of a subset. */
static uint32_t labels_of(const kelp_einsum *e, uint32_t subset) {
    uint32_t labels = 0;
    for (int32_t t = 0; t < e->operands; t++)
        if (subset >> t & 1)
            labels |= e->tensor[t].labels;
    return labels;
}

static void choose_order(const kelp_einsum *e, order *o) {
    uint32_t all = (1u << e->operands) - 1;
    for (uint32_t subset = 1; subset <= all; subset++) {
        uint32_t first = subset & (~subset + 1);
        o->labels[subset] = labels_of(e, subset) & (e->result | labels_of(e, all & ~subset));
        o->cost[subset] = 0;
        o->split[subset] = 0;
        for (uint32_t part = (subset - 1) & subset; part > 0; part = (part - 1) & subset) {
            if ((part & first) == 0)
                continue; /* each split once */
            double cost = o->cost[part] + o->cost[subset ^ part] +
                          work(e, o->labels[part] | o->labels[subset ^ part]);
            if (o->split[subset] == 0 || cost < o->cost[subset]) {
                o->cost[subset] = cost;
                o->split[subset] = (uint8_t)part;
            }
        }
    }
}

/* Plans the product of a subset; `c` is the tensor to write, or KELP_EINSUM_NONE. */
static kelp_status *plan_subset(kelp_einsum *e, kelp_op_args *args, const order *o, uint32_t subset,
                                uint8_t c, uint8_t *out) {
    uint32_t part = o->split[subset];
    uint8_t a = 0, b = KELP_EINSUM_NONE;
    if (part == 0) {
        while ((subset >> a & 1) == 0)
            a++;
        *out = a;
        if (c == KELP_EINSUM_NONE && e->tensor[a].labels == o->labels[subset])
            return NULL;
    } else {
        KELP_TRY(plan_subset(e, args, o, part, KELP_EINSUM_NONE, &a));
        KELP_TRY(plan_subset(e, args, o, subset ^ part, KELP_EINSUM_NONE, &b));
    }
    return kelp_einsum_plan_product(e, args, a, b, c, o->labels[subset], out);
}

kelp_status *kelp_einsum_plan(kelp_einsum *e, kelp_op_args *args) {
    order o;
    uint8_t out;
    e->steps = 0;
    if (e->is_empty)
        return NULL;
    KELP_ASSERT(e->operands > 0 && e->operands <= KELP_EINSUM_OPERANDS);
    KELP_ASSERT(e->labels <= KELP_EINSUM_LABELS && e->tensors == e->operands + 1);
    if (e->type == KELP_PRODUCT_F32)
        KELP_TRY(kelp_ops_scratch(args, KELP_EINSUM_JOBS, sizeof(kelp_gemm), &e->jobs));
    choose_order(e, &o);
    return plan_subset(e, args, &o, (1u << e->operands) - 1, (uint8_t)e->operands, &out);
}
