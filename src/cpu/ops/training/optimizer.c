/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Optimizer steps of any number of tensors: Adagrad, Adam and Momentum. The inputs are the learning
 * rate R, the update count T, all tensors X, all gradients G, and all tensors of each state. The
 * outputs are all X, then all tensors of each state. Arithmetic is in double, rounded once. Source:
 * ONNX operator specification, ai.onnx.preview.training version 1.
 */
#include "base/assert.h"
#include "cpu/ops/kernel.h"
#include "tensor/real.h"

#include <math.h>

/* The value, the gradient and the states of one element; a step updates them. */
typedef struct element {
    double x, g, v, h;
} element;

typedef struct step_plan {
    int32_t tensors;
    double rate, epsilon, norm, norm_post, alpha, beta;
    bool nesterov;
    int32_t index; /* of the current tensor */
    void (*step)(const struct step_plan *p, element *e);
    const kelp_op_args *args;
} step_plan;

static kelp_status *step_reshape(kelp_op_args *args, int32_t states) {
    step_plan *p = args->plan;
    int32_t kinds = 2 + states;
    KELP_TRY(kelp_ops_check_inputs(args, args->input_count));
    KELP_TRY(kelp_ops_check_inputs(args, 2 + kinds));
    const kelp_tensor *rate = args->inputs[0], *count = args->inputs[1];
    p->tensors = (args->input_count - 2) / kinds;
    if ((args->input_count - 2) % kinds != 0 || args->output_count > p->tensors * (1 + states))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator '%s': expected 2 inputs and %d for each tensor, and %d outputs "
                          "for each: found %d inputs, %d outputs",
                          kelp_node_op_type(args->node), kinds, 1 + states, args->input_count,
                          args->output_count);
    if ((rate->dtype != KELP_F32 && rate->dtype != KELP_F64) || count->dtype != KELP_I64 ||
        kelp_tensor_elements(rate) != 1 || kelp_tensor_elements(count) != 1)
        return kelp_ops_bad_shapes(args, rate, count,
                                   "R must be one float32 or float64 and T one int64");
    for (int32_t i = 0; i < p->tensors * kinds; i++) {
        const kelp_tensor *first = args->inputs[2 + i % p->tensors], *x = args->inputs[2 + i];
        if (x->dtype != KELP_F32 && x->dtype != KELP_F64)
            return kelp_ops_bad_type(args, x->dtype);
        if (x->dtype != first->dtype || x->rank != first->rank ||
            memcmp(x->shape, first->shape, (size_t)x->rank * sizeof *x->shape) != 0)
            return kelp_ops_bad_shapes(args, first, x,
                                       "expected the type and shape of the tensor for its gradient "
                                       "and states");
    }
    for (int32_t i = 0; i < p->tensors * (1 + states); i++)
        KELP_TRY(kelp_ops_set_like(args, i, args->inputs[2 + i % p->tensors]));
    return NULL;
}

/* Returns input number `kind` of the current tensor; NULL if the operator has fewer states. */
static const kelp_tensor *input_of(const step_plan *p, int32_t kind) {
    KELP_ASSERT(p->index >= 0 && p->index < p->tensors);
    return kelp_ops_in(p->args, 2 + kind * p->tensors + p->index);
}
static double read_of(const step_plan *p, int32_t kind, int64_t at) {
    const kelp_tensor *tensor = input_of(p, kind);
    return tensor != NULL ? kelp_ops_read_f64(tensor, at) : 0;
}
static void write_of(const step_plan *p, int32_t kind, int64_t at, double value) {
    kelp_tensor *tensor = kelp_ops_out(p->args, kind * p->tensors + p->index);
    if (tensor != NULL)
        kelp_tensor_set_f64(tensor, at, value);
}

static void step_range(void *userp, int64_t begin, int64_t end, int worker) {
    const step_plan *p = userp;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        element e = {read_of(p, 0, i), read_of(p, 1, i), read_of(p, 2, i), read_of(p, 3, i)};
        e.g += p->norm * e.x;
        p->step(p, &e);
        write_of(p, 0, i, e.x);
        write_of(p, 1, i, e.v);
        write_of(p, 2, i, e.h);
    }
}

static double number(const kelp_op_args *args, const char *name, float fallback) {
    return (double)kelp_node_attr_f32(args->node, name, fallback);
}

static int64_t step_begin(kelp_op_args *args) {
    step_plan *p = args->plan;
    p->args = args;
    p->rate = kelp_ops_read_f64(args->inputs[0], 0);
    p->norm = number(args, "norm_coefficient", 0);
    p->epsilon = number(args, "epsilon", 1e-6f);
    return kelp_ops_read_i64(args->inputs[1], 0);
}

static kelp_status *step_all(step_plan *p) {
    for (p->index = 0; p->index < p->tensors; p->index++)
        kelp_op_parallel(p->args->env, kelp_tensor_elements(input_of(p, 0)),
                         KELP_GRAIN_ELEMENTS / 4, step_range, p);
    return NULL;
}

/* ---- Adagrad: v is the sum of squares ---- */
static void adagrad_step(const step_plan *p, element *e) {
    e->v += e->g * e->g;
    e->x -= p->rate * e->g / (sqrt(e->v) + p->epsilon);
}

static kelp_status *adagrad_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return step_reshape(args, 1);
}

static kelp_status *adagrad_invoke(const void *state, kelp_op_args *args) {
    step_plan *p = args->plan;
    (void)state;
    double count = (double)step_begin(args);
    p->rate /= 1 + count * number(args, "decay_factor", 0);
    p->step = adagrad_step;
    return step_all(p);
}
KELP_KERNEL(Adagrad, 0, sizeof(step_plan), 0, adagrad_reshape, adagrad_invoke);

/* ---- Adam ---- */
static void adam_step(const step_plan *p, element *e) {
    e->v = p->alpha * e->v + (1 - p->alpha) * e->g;
    e->h = p->beta * e->h + (1 - p->beta) * e->g * e->g;
    e->x = (1 - p->norm_post) * (e->x - p->rate * e->v / (sqrt(e->h) + p->epsilon));
}

static kelp_status *adam_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return step_reshape(args, 2);
}

static kelp_status *adam_invoke(const void *state, kelp_op_args *args) {
    step_plan *p = args->plan;
    (void)state;
    int64_t count = step_begin(args);
    p->alpha = number(args, "alpha", 0.9f);
    p->beta = number(args, "beta", 0.999f);
    p->norm_post = number(args, "norm_coefficient_post", 0);
    if (count > 0) /* corrects the bias of averages that start at zero */
        p->rate *= sqrt(1 - pow(p->beta, (double)count)) / (1 - pow(p->alpha, (double)count));
    p->step = adam_step;
    return step_all(p);
}
KELP_KERNEL(Adam, 0, sizeof(step_plan), 0, adam_reshape, adam_invoke);

/* ---- Momentum ---- */
static void momentum_step(const step_plan *p, element *e) {
    e->v = p->alpha * e->v + p->beta * e->g;
    e->x -= p->rate * (p->nesterov ? e->g + p->alpha * e->v : e->v);
}

static kelp_status *momentum_reshape(const void *state, kelp_op_args *args) {
    step_plan *p = args->plan;
    const char *mode = kelp_node_attr_string(args->node, "mode", "standard", NULL);
    (void)state;
    p->nesterov = strcmp(mode, "nesterov") == 0;
    if (!p->nesterov && strcmp(mode, "standard") != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator 'Momentum': attribute 'mode' has an unknown value: expected "
                          "standard or nesterov, found '%s'",
                          mode);
    return step_reshape(args, 1);
}

static kelp_status *momentum_invoke(const void *state, kelp_op_args *args) {
    step_plan *p = args->plan;
    (void)state;
    int64_t count = step_begin(args);
    p->alpha = number(args, "alpha", 0);
    p->beta = count > 0 ? number(args, "beta", 0) : 1;
    p->step = momentum_step;
    return step_all(p);
}
KELP_KERNEL(Momentum, 0, sizeof(step_plan), 0, momentum_reshape, momentum_invoke);
