/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resize in the linear and cubic modes, with or without antialiasing. One pass resizes one axis;
 * each output is a weighted sum of neighbours. If the last axis of the tensor is resized, its pass
 * is fused with the pass before it, row by row, while the row is in cache. Arithmetic is in float,
 * or in double for types that float cannot represent.
 */
#include "base/assert.h"
#include "cpu/ops/image/resize.h"
#include "tensor/real.h"
#include "cpu/kernels/resize/resize_kernels.h"

enum { INPUT, OUTPUT, FIRST, SECOND };

typedef struct blend_pass {
    const kelp_resize_axis *axis;
    int64_t outer, inner;
} blend_pass;

typedef struct blend_job {
    const kelp_resize_plan *r;
    const kelp_op_args *args;
    blend_pass pass, next; /* next.axis is NULL unless a pass is fused with `pass` */
    const char *x;
    char *y;
    size_t size; /* sizeof(float) or sizeof(double) */
} blend_job;

static int32_t list_passes(const kelp_resize_plan *r, blend_pass *passes) {
    int32_t count = 0;
    for (int32_t i = 0; i < r->rank; i++) {
        if (!r->axes[i].resized)
            continue;
        passes[count] = (blend_pass){&r->axes[i], 1, 1};
        for (int32_t k = 0; k < i; k++)
            passes[count].outer *= r->axes[k].out;
        for (int32_t k = i + 1; k < r->rank; k++)
            passes[count].inner *= r->axes[k].in;
        count++;
    }
    return count;
}

/* Computes an upper bound of the elements between two passes; false if it overflows. */
static bool max_between(const kelp_resize_plan *r, int64_t *out) {
    *out = 1;
    for (int32_t i = 0; i < r->rank; i++)
        if (!kelp_i64_mul(*out, KELP_MAX(r->axes[i].in, r->axes[i].out), out))
            return false;
    return true;
}

kelp_status *kelp_resize_blend_reserve(kelp_resize_plan *r, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0];
    blend_pass passes[KELP_MAX_RANK];
    int64_t between = 0;
    r->wide = !kelp_real_fits_f32(x->dtype);
    size_t size = r->wide ? sizeof(double) : sizeof(float);
    int32_t count = list_passes(r, passes);
    if (!max_between(r, &between))
        return kelp_ops_bad_shapes(args, x, NULL, "the result is too large");
    if (x->dtype != (r->wide ? KELP_F64 : KELP_F32)) {
        KELP_TRY(kelp_ops_scratch(args, kelp_tensor_elements(x), size, &r->buffer_offsets[INPUT]));
        KELP_TRY(kelp_ops_scratch(args, kelp_tensor_elements(args->outputs[0]), size,
                                  &r->buffer_offsets[OUTPUT]));
    }
    bool fused = count > 1 && passes[count - 1].inner == 1;
    for (int32_t i = 0; i < 2 && i + 1 + fused < count; i++)
        KELP_TRY(kelp_ops_scratch(args, between, size, &r->buffer_offsets[FIRST + i]));
    r->row_elements = fused ? passes[count - 2].inner : 0;
    int64_t all = 0;
    if (!kelp_i64_mul(r->row_elements, kelp_op_env_threads(args->env), &all))
        return kelp_ops_bad_shapes(args, x, NULL, "the result is too large");
    return kelp_ops_scratch(args, all, size, &r->rows_offset);
}

/* ---- one row of outputs ---- */
static void fill(const blend_job *job, char *y, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (job->r->wide)
            ((double *)(void *)y)[i] = (double)job->r->extrapolation;
        else
            ((float *)(void *)y)[i] = job->r->extrapolation;
}

/* Computes output `at` of the axis of `pass`: the weighted sum of rows of pass->inner elements. */
static void blend_rows(const blend_job *job, const blend_pass *pass, const char *x, int64_t at,
                       char *y) {
    const kelp_resize_kernels *resize = kelp_resize_kernels_get();
    const kelp_resize_axis *axis = pass->axis;
    const char *scratch = job->args->scratch;
    int64_t first = ((const int32_t *)(const void *)(scratch + axis->first_offset))[at];
    const void *weights = scratch + axis->weights_offset;
    KELP_ASSERT(at < axis->out && first + axis->taps <= axis->in);
    if (first < 0) {
        fill(job, y, pass->inner);
        return;
    }
    x += (size_t)(first * pass->inner) * job->size;
    if (!job->r->wide) {
        resize->blend((float *)(void *)y, (const float *)(const void *)x, pass->inner,
                      (const float *)weights + at, axis->out, axis->taps, pass->inner);
        return;
    }
    const double *from = (const double *)(const void *)x, *w = (const double *)weights + at;
    for (int64_t i = 0; i < pass->inner; i++) {
        double sum = 0;
        for (int64_t t = 0; t < axis->taps; t++)
            sum += w[t * axis->out] * from[t * pass->inner + i];
        ((double *)(void *)y)[i] = sum;
    }
}

/* Resizes one row along the last axis. */
static void blend_along(const blend_job *job, const kelp_resize_axis *axis, const char *x,
                        char *y) {
    const kelp_resize_kernels *resize = kelp_resize_kernels_get();
    const char *scratch = job->args->scratch;
    const int32_t *first = (const int32_t *)(const void *)(scratch + axis->first_offset);
    const void *weights = scratch + axis->weights_offset;
    if (!job->r->wide && job->r->coordinates != KELP_RESIZE_CROP) {
        resize->gather_blend((float *)(void *)y, (const float *)(const void *)x, first, weights,
                             axis->out, axis->taps, axis->out);
        return;
    }
    for (int64_t i = 0; i < axis->out; i++) {
        double sum = 0;
        if (first[i] < 0) {
            fill(job, y + (size_t)i * job->size, 1);
            continue;
        }
        for (int64_t t = 0; t < axis->taps; t++)
            sum += job->r->wide ? ((const double *)weights)[t * axis->out + i] *
                                      ((const double *)(const void *)x)[first[i] + t]
                                : (double)(((const float *)weights)[t * axis->out + i] *
                                           ((const float *)(const void *)x)[first[i] + t]);
        if (job->r->wide)
            ((double *)(void *)y)[i] = sum;
        else
            ((float *)(void *)y)[i] = (float)sum;
    }
}

static void blend_range(void *userp, int64_t begin, int64_t end, int worker) {
    const blend_job *job = userp;
    const blend_pass *pass = &job->pass, *next = &job->next;
    const kelp_resize_axis *axis = pass->axis;
    char *row = (char *)job->args->scratch + job->r->rows_offset +
                (size_t)(worker * job->r->row_elements) * job->size;
    for (int64_t unit = begin; unit < end; unit++) {
        const char *x = job->x + (size_t)(unit / axis->out * axis->in * pass->inner) * job->size;
        if (next->axis == NULL) {
            blend_rows(job, pass, x, unit % axis->out,
                       job->y + (size_t)(unit * pass->inner) * job->size);
            continue;
        }
        int64_t rows = pass->inner / next->axis->in;
        blend_rows(job, pass, x, unit % axis->out, row);
        for (int64_t i = 0; i < rows; i++)
            blend_along(job, next->axis, row + (size_t)(i * next->axis->in) * job->size,
                        job->y + (size_t)((unit * rows + i) * next->axis->out) * job->size);
    }
}

static void along_range(void *userp, int64_t begin, int64_t end, int worker) {
    const blend_job *job = userp;
    const kelp_resize_axis *axis = job->pass.axis;
    (void)worker;
    for (int64_t row = begin; row < end; row++)
        blend_along(job, axis, job->x + (size_t)(row * axis->in) * job->size,
                    job->y + (size_t)(row * axis->out) * job->size);
}

/* ---- types ---- */
typedef struct convert_job {
    const kelp_tensor *tensor;
    void *reals;
    bool wide, load;
} convert_job;

static void convert_range(void *userp, int64_t begin, int64_t end, int worker) {
    const convert_job *job = userp;
    const kelp_tensor *t = job->tensor;
    (void)worker;
    if (job->wide && job->load)
        kelp_real_load_f64(t->dtype, t->data, begin, end - begin, (double *)job->reals + begin);
    else if (job->wide)
        kelp_real_store_f64(t->dtype, t->data, begin, end - begin, (double *)job->reals + begin);
    else if (job->load)
        kelp_real_load_f32(t->dtype, t->data, begin, end - begin, (float *)job->reals + begin);
    else
        kelp_real_store_f32(t->dtype, t->data, begin, end - begin, (float *)job->reals + begin);
}

void kelp_resize_blend(const kelp_resize_plan *r, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0], *y = args->outputs[0];
    blend_pass passes[KELP_MAX_RANK];
    int32_t count = list_passes(r, passes);
    bool direct = x->dtype == (r->wide ? KELP_F64 : KELP_F32);
    KELP_ASSERT(count > 0 && x->dtype == y->dtype && r->mode != KELP_RESIZE_NEAREST);
    char *buffers[4];
    for (int i = 0; i < 4; i++)
        buffers[i] = (char *)args->scratch + r->buffer_offsets[i];
    blend_job job = {.r = r, .args = args, .x = x->data};
    job.size = r->wide ? sizeof(double) : sizeof(float);
    if (!direct) {
        convert_job load = {x, buffers[INPUT], r->wide, true};
        kelp_op_parallel(args->env, kelp_tensor_elements(x), KELP_GRAIN_ELEMENTS, convert_range,
                         &load);
        job.x = buffers[INPUT];
    }
    for (int32_t i = 0; i < count; i++) {
        job.pass = passes[i];
        bool fused = i + 2 == count && passes[i + 1].inner == 1;
        job.next = fused ? passes[i + 1] : (blend_pass){NULL, 0, 0};
        i += fused;
        job.y = i + 1 < count ? buffers[FIRST + i % 2] : direct ? y->data : buffers[OUTPUT];
        int64_t units = job.pass.outer * job.pass.axis->out, cost = job.pass.inner;
        if (!fused && cost == 1)
            kelp_op_parallel(args->env, job.pass.outer,
                             kelp_cpu_grain(KELP_GRAIN_ELEMENTS, job.pass.axis->out), along_range,
                             &job);
        else
            kelp_op_parallel(args->env, units, kelp_cpu_grain(KELP_GRAIN_ELEMENTS, cost),
                             blend_range, &job);
        job.x = job.y;
    }
    if (!direct) {
        convert_job store = {y, buffers[OUTPUT], r->wide, false};
        kelp_op_parallel(args->env, kelp_tensor_elements(y), KELP_GRAIN_ELEMENTS, convert_range,
                         &store);
    }
}
