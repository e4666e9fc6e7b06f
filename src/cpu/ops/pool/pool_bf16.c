/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp::MaxPoolBf16: MaxPool of bfloat16, NHWC, over one or two axes between convolutions of
 * bfloat16. The maximum of rounded values equals the rounded maximum.
 */
#include "base/assert.h"
#include "cpu/kernels/bf16/bf16_kernels.h"
#include "cpu/ops/conv/window.h"

typedef struct pool_plan {
    kelp_conv_window w;
    int64_t batch, channels;
    size_t taps_offset;
    const kelp_op_args *args;
    const kelp_bf16_kernels *kernels;
} pool_plan;

static kelp_status *pool_reshape(const void *state, kelp_op_args *args) {
    pool_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK], all = 0;
    const int64_t *kernel = NULL;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    if (x->dtype != KELP_BF16)
        return kelp_ops_bad_type(args, x->dtype);
    if ((x->rank != 3 && x->rank != 4) ||
        kelp_node_attr_i64s(args->node, "kernel_shape", &kernel) != (size_t)x->rank - 2)
        return kelp_ops_bad_shapes(args, x, NULL, "expected one or two spatial axes");
    KELP_TRY(kelp_window_init(&p->w, args, x, kernel, x->rank - 2));
    if (x->shape[1] % 2 != 0)
        return kelp_ops_bad_shapes(args, x, NULL,
                                   "expected an even number of channels of bfloat16");
    p->batch = x->shape[0];
    p->channels = x->shape[1];
    int32_t rank = kelp_window_shape(&p->w, p->batch, p->channels, shape);
    KELP_TRY(kelp_ops_set(args, 0, KELP_BF16, rank, shape));
    if (!kelp_i64_mul(p->w.kernel_size, kelp_op_env_threads(args->env), &all))
        return kelp_ops_bad_shapes(args, x, NULL, "the window is too large");
    return kelp_ops_scratch(args, all, sizeof(int64_t), &p->taps_offset);
}

/* Lists the offsets, in elements, of the taps inside the image of the window at (row, column).
 * Returns their number. */
static int64_t taps_at(const pool_plan *p, int64_t row, int64_t column, int64_t *taps) {
    const kelp_conv_window *w = &p->w;
    int64_t count = 0;
    for (int64_t a = 0; a < w->kernel[1]; a++) {
        int64_t y = row * w->stride[1] - w->before[1] + a * w->dilation[1];
        for (int64_t b = 0; b < w->kernel[2] && y >= 0 && y < w->in[1]; b++) {
            int64_t x = column * w->stride[2] - w->before[2] + b * w->dilation[2];
            if (x >= 0 && x < w->in[2])
                taps[count++] = (y * w->in[2] + x) * p->channels;
        }
    }
    return count;
}

static void pool_line(const pool_plan *p, const uint16_t *image, int64_t row, int64_t *taps,
                      uint16_t *to) {
    const kelp_conv_window *w = &p->w;
    int64_t count = 0, reach = (w->kernel[2] - 1) * w->dilation[2], known = -1;
    for (int64_t column = 0; column < w->out[2]; column++, to += p->channels) {
        int64_t x = column * w->stride[2] - w->before[2];
        bool inside = x >= 0 && x + reach < w->in[2];
        if (!inside || known < 0) /* windows inside the image have the same offsets */
            count = taps_at(p, row, column, taps);
        known = !inside ? -1 : known < 0 ? x : known;
        p->kernels->max_pool(image + (inside ? x - known : 0) * p->channels, taps, count,
                             p->channels, to);
    }
}

static void run_range(void *userp, int64_t begin, int64_t end, int worker) {
    const pool_plan *p = userp;
    const kelp_conv_window *w = &p->w;
    int64_t *taps =
        (int64_t *)kelp_ops_scratch_at(p->args, p->taps_offset) + worker * w->kernel_size;
    uint16_t *to = (uint16_t *)p->args->outputs[0]->data + begin * w->out[2] * p->channels;
    for (int64_t line = begin; line < end; line++, to += w->out[2] * p->channels) {
        const uint16_t *image = (const uint16_t *)p->args->inputs[0]->data +
                                line / w->out[1] * w->in_size * p->channels;
        pool_line(p, image, line % w->out[1], taps, to);
    }
}

static kelp_status *pool_invoke(const void *state, kelp_op_args *args) {
    pool_plan *p = args->plan;
    (void)state;
    if (kelp_tensor_elements(args->outputs[0]) == 0)
        return NULL;
    KELP_ASSERT(p->channels % 2 == 0 && args->scratch != NULL);
    p->args = args;
    p->kernels = kelp_bf16_kernels_get();
    double work = (double)p->w.out[2] * (double)p->w.kernel_size * (double)p->channels;
    kelp_op_parallel(args->env, p->batch * p->w.out[1],
                     (int64_t)(KELP_GRAIN_POOL_BF16 / (work + 1)) + 1, run_range, p);
    return NULL;
}

const kelp_op_kernel kelp_op_MaxPoolBf16 = {.struct_size = sizeof(kelp_op_kernel),
                                            .plan_bytes = sizeof(pool_plan),
                                            .reshape = pool_reshape,
                                            .invoke = pool_invoke};
