/* SPDX-License-Identifier: Apache-2.0 */
/*
 * com.microsoft GroupNorm and SkipGroupNorm: group normalization of images, NHWC or NCHW, with an
 * optional SiLU; SkipGroupNorm first adds a second image and a bias. Source: ONNX Runtime,
 * ContribOperators.md; Wu and He, "Group Normalization", 2018.
 */
#include "base/assert.h"
#include "cpu/kernels/elementwise/elementwise_kernels.h"
#include "cpu/kernels/vector/vector_kernels.h"
#include "cpu/ops/converted.h"

#include <math.h>

/* Parts into which the positions of an image are divided, each with sums of its own. */
#define MAX_PARTS 16
/* Elements of a part that justify it. */
#define PART_ELEMENTS 8192

/* The image as rows: the channels of a position in NHWC, the positions of a channel in NCHW. */
typedef struct group_plan {
    int64_t batch, rows, columns, channels, groups, parts;
    bool last, silu, skips; /* last: NHWC */
    float epsilon;
    int64_t skip_rows;    /* of one image: all, or 1 */
    size_t sums_offset;   /* in scratch memory: the sums of each part; NHWC: of channels */
    size_t factor_offset; /* of each image: factors, then summands of the channels */
    const kelp_op_args *args;
    const float *x; /* the sum, in SkipGroupNorm */
    float *y;
} group_plan;

static kelp_status *group_shape(group_plan *p, const kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0];
    int64_t groups = kelp_node_attr_i64(args->node, "groups", 0);
    if (x->dtype != KELP_F32)
        return kelp_ops_bad_type(args, x->dtype);
    p->last = kelp_node_attr_i64(args->node, "channels_last", 1) != 0;
    p->silu = kelp_node_attr_i64(args->node, "activation", 0) == 1;
    p->epsilon = kelp_node_attr_f32(args->node, "epsilon", 1e-5f);
    if (x->rank < 3)
        return kelp_ops_bad_shapes(args, x, NULL, "expected a batch, channels and spatial axes");
    p->batch = x->shape[0];
    p->channels = x->shape[p->last ? x->rank - 1 : 1];
    int64_t positions = p->last ? kelp_ops_product(x->shape, 1, x->rank - 1)
                                : kelp_ops_product(x->shape, 2, x->rank);
    p->rows = p->last ? positions : p->channels;
    p->columns = p->last ? p->channels : positions;
    p->groups = groups;
    if (groups < 1 || p->channels % groups != 0)
        return kelp_ops_bad_shapes(args, x, NULL, "the channels must be a multiple of 'groups'");
    for (int32_t i = 1; i < 3; i++)
        if (args->inputs[i]->dtype != KELP_F32 ||
            kelp_tensor_elements(args->inputs[i]) != p->channels)
            return kelp_ops_bad_shapes(args, x, args->inputs[i],
                                       "expected one gamma and one beta for each channel");
    return NULL;
}

/* `skip` has the shape of x, or one value for each image and channel. */
static kelp_status *skip_shape(group_plan *p, const kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0], *skip = args->inputs[3], *bias = kelp_ops_in(args, 4);
    bool whole = skip->rank == x->rank &&
                 memcmp(skip->shape, x->shape, (size_t)x->rank * sizeof *x->shape) == 0;
    bool of_channels = skip->rank > 1 && skip->shape[0] == p->batch &&
                       kelp_tensor_elements(skip) == p->batch * p->channels &&
                       skip->shape[!p->last && skip->rank > 2 ? 1 : skip->rank - 1] == p->channels;
    p->skips = true;
    p->skip_rows = whole ? p->rows : 1;
    if (skip->dtype != KELP_F32 || (!whole && !of_channels))
        return kelp_ops_bad_shapes(args, x, skip,
                                   "'skip' must have the shape of X or one value for each channel");
    if (bias != NULL && (bias->dtype != KELP_F32 || kelp_tensor_elements(bias) != p->channels))
        return kelp_ops_bad_shapes(args, x, bias, "expected one bias for each channel");
    return kelp_ops_set_like((kelp_op_args *)args, 1, x);
}

static kelp_status *group_reshape(kelp_op_args *args, bool skips) {
    group_plan *p = args->plan;
    KELP_TRY(kelp_ops_check(args, skips ? 4 : 3));
    KELP_TRY(group_shape(p, args));
    if (skips)
        KELP_TRY(skip_shape(p, args));
    int64_t parts = p->rows * p->columns / PART_ELEMENTS;
    p->parts = KELP_MAX((int64_t)1, KELP_MIN(parts, KELP_MIN((int64_t)MAX_PARTS, p->rows)));
    KELP_TRY(
        kelp_ops_scratch(args, p->batch * p->parts * p->channels, sizeof(float), &p->sums_offset));
    KELP_TRY(kelp_ops_scratch(args, p->batch * p->channels, 2 * sizeof(float), &p->factor_offset));
    return kelp_ops_set_like(args, 0, args->inputs[0]);
}

/* ---- units: parts of images ---- */
typedef struct part {
    int64_t image, first, last; /* rows of the image */
    int64_t at;                 /* index of the first element */
} part;

static part part_of(const group_plan *p, int64_t unit) {
    int64_t each = kelp_divide_up(p->rows, p->parts), index = unit % p->parts;
    part r = {.image = unit / p->parts, .first = KELP_MIN(index * each, p->rows)};
    r.last = KELP_MIN(r.first + each, p->rows);
    r.at = (r.image * p->rows + r.first) * p->columns;
    return r;
}

/* Adds `skip` and bias to x. */
static void add_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const group_plan *p = userp;
    const kelp_op_args *args = p->args;
    const float *skip = args->inputs[3]->data;
    const float *bias = kelp_ops_in(args, 4) != NULL ? args->inputs[4]->data : NULL;
    int64_t n = p->columns;
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        part r = part_of(p, unit);
        for (int64_t row = r.first; row < r.last; row++, r.at += n) {
            const float *x = (const float *)args->inputs[0]->data + r.at;
            float *to = (float *)p->x + r.at;
            bool of_channels = p->skip_rows != p->rows;
            if (!of_channels)
                elementwise->bin[KELP_BIN_ADD](to, x, skip + r.at, n, 1, 1);
            else if (p->last)
                elementwise->bin[KELP_BIN_ADD](to, x, skip + r.image * p->channels, n, 1, 1);
            else
                elementwise->bin[KELP_BIN_ADD](to, x, skip + r.image * p->channels + row, n, 1, 0);
            if (bias != NULL)
                elementwise->bin[KELP_BIN_ADD](to, to, bias + (p->last ? 0 : row), n, 1,
                                               p->last ? 1 : 0);
        }
    }
}

/* Adds the rows of a part: for NHWC to the sums of channels, for NCHW to the sum of each row. The
 * second pass adds the squared differences to the means, which are the summands. */
static void sum_part(const group_plan *p, int64_t unit, bool squares) {
    const kelp_vector_kernels *vector = kelp_vector_kernels_get();
    part r = part_of(p, unit);
    float *sums = (float *)kelp_ops_scratch_at(p->args, p->sums_offset) + unit * p->channels;
    const float *means = (const float *)kelp_ops_scratch_at(p->args, p->factor_offset) +
                         (2 * r.image + 1) * p->channels;
    const float *x = p->x + r.at;
    memset(sums, 0, (size_t)p->channels * sizeof *sums);
    for (int64_t row = r.first; row < r.last; row++, x += p->columns) {
        if (!squares && p->last) {
            vector->accumulate(sums, x, 1, p->channels);
        } else if (!squares) {
            sums[row] = vector->sum(x, p->columns);
        } else if (p->last) {
            for (int64_t c = 0; c < p->channels; c++)
                sums[c] += (x[c] - means[c]) * (x[c] - means[c]);
        } else {
            sums[row] = vector->squares(x, means[row], p->columns);
        }
    }
}

static void sum_range(void *userp, int64_t begin, int64_t end, int worker) {
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++)
        sum_part(userp, unit, false);
}

static void square_range(void *userp, int64_t begin, int64_t end, int worker) {
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++)
        sum_part(userp, unit, true);
}

/* Returns the mean of a group of an image over the sums of all parts. */
static double group_mean(const group_plan *p, int64_t image, int64_t group) {
    const float *sums = (const float *)kelp_ops_scratch_at(p->args, p->sums_offset) +
                        image * p->parts * p->channels;
    int64_t each = p->channels / p->groups;
    double total = 0;
    for (int64_t i = 0; i < p->parts; i++)
        for (int64_t c = group * each; c < (group + 1) * each; c++)
            total += (double)sums[i * p->channels + c];
    return total / ((double)p->rows * (double)p->columns / (double)p->groups);
}

/* Replaces the summands by the means, or the means by the factors and summands of the result. */
static void finish_statistics(const group_plan *p, bool squares) {
    const float *gamma = p->args->inputs[1]->data, *beta = p->args->inputs[2]->data;
    int64_t each = p->channels / p->groups;
    for (int64_t image = 0; image < p->batch; image++) {
        float *factors =
            (float *)kelp_ops_scratch_at(p->args, p->factor_offset) + 2 * image * p->channels;
        float *summands = factors + p->channels;
        for (int64_t c = 0; c < p->channels; c++) {
            if (c % each == 0)
                factors[c] = (float)group_mean(p, image, c / each);
            float value = factors[c - c % each];
            if (!squares)
                summands[c] = value;
        }
        for (int64_t c = p->channels - 1; c >= 0 && squares; c--) {
            float factor = gamma[c] / sqrtf(factors[c - c % each] + p->epsilon);
            summands[c] = beta[c] - summands[c] * factor;
            factors[c] = factor;
        }
    }
}

static void scale_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const group_plan *p = userp;
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        part r = part_of(p, unit);
        const float *factors = (const float *)kelp_ops_scratch_at(p->args, p->factor_offset) +
                               2 * r.image * p->channels;
        const float *summands = factors + p->channels;
        for (int64_t row = r.first; row < r.last; row++, r.at += p->columns) {
            int64_t c = p->last ? 0 : row;
            elementwise->scale(p->y + r.at, p->x + r.at, factors + c, summands + c, p->columns,
                               p->last ? 1 : 0);
            if (p->silu)
                elementwise->act[KELP_ACT_SILU](p->y + r.at, p->y + r.at, p->columns);
        }
    }
}

static kelp_status *group_invoke(const void *state, kelp_op_args *args) {
    group_plan *p = args->plan;
    int64_t units = p->batch * p->parts;
    (void)state;
    if (kelp_tensor_elements(args->inputs[0]) == 0)
        return NULL;
    KELP_ASSERT(p->parts > 0 && p->groups > 0);
    p->args = args;
    p->x = args->inputs[0]->data;
    p->y = args->outputs[0]->data;
    if (p->skips) {
        p->x = kelp_ops_out(args, 1) != NULL ? args->outputs[1]->data : p->y;
        kelp_op_parallel(args->env, units, 1, add_range, p);
    }
    kelp_op_parallel(args->env, units, 2, sum_range, p);
    finish_statistics(p, false);
    kelp_op_parallel(args->env, units, 2, square_range, p);
    finish_statistics(p, true);
    kelp_op_parallel(args->env, units, 1, scale_range, p);
    return NULL;
}

static kelp_status *norm_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return group_reshape(args, false);
}
static kelp_status *skip_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return group_reshape(args, true);
}
KELP_CONVERTED_PHASES(norm, kelp_widened, sizeof(group_plan), norm_reshape, group_invoke)
KELP_KERNEL(MsGroupNorm, 0, KELP_CONVERTED_PLAN(sizeof(group_plan)), 0, norm_reshape_any,
            norm_invoke_any);
KELP_CONVERTED_PHASES(skip, kelp_widened, sizeof(group_plan), skip_reshape, group_invoke)
KELP_KERNEL(MsSkipGroupNorm, 0, KELP_CONVERTED_PLAN(sizeof(group_plan)), 0, skip_reshape_any,
            skip_invoke_any);
