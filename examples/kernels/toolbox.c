/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels in C with signatures: add, two blurs, a histogram, a sort, and an asynchronous sum.
 *
 *     cc -std=c17 -O3 -fPIC -shared -I include examples/kernels/toolbox.c -lm -o libtoolbox.so
 */
#include <kelp/kernel.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static int64_t elements(const DLTensor *tensor) {
    int64_t count = 1;
    for (int32_t i = 0; i < tensor->ndim; i++)
        count *= tensor->shape[i];
    return count;
}

static void *data_of(const DLTensor *tensor) {
    return (char *)tensor->data + tensor->byte_offset;
}

/* ---- add ---- */
static kelp_code add(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    float *y = data_of(args[0].as.tensor);
    const float *a = data_of(args[1].as.tensor), *b = data_of(args[2].as.tensor);
    int64_t count = elements(args[0].as.tensor);
    (void)context;
    for (int64_t i = 0; i < count; i++)
        y[i] = a[i] + b[i];
    return KELP_OK;
}

/* ---- box_blur: rows, then columns, in parallel ---- */
typedef struct blur_job {
    const float *from;
    float *to;
    int64_t height, width, radius;
} blur_job;

/* Computes means along a line of `count` values with stride `step`. Windows are cropped at the
 * edges. */
static void blur_line(const float *from, float *to, int64_t count, int64_t step, int64_t radius) {
    double sum = 0;
    int64_t first = 0, last = -1; /* the bounds of the window */
    for (int64_t i = 0; i < count; i++) {
        while (last < i + radius && last + 1 < count)
            sum += (double)from[++last * step];
        while (first < i - radius)
            sum -= (double)from[first++ * step];
        to[i * step] = (float)(sum / (double)(last - first + 1));
    }
}

static void blur_rows(void *userp, int64_t begin, int64_t end, int worker) {
    const blur_job *job = userp;
    (void)worker;
    for (int64_t row = begin; row < end; row++)
        blur_line(job->from + row * job->width, job->to + row * job->width, job->width, 1,
                  job->radius);
}

static void blur_columns(void *userp, int64_t begin, int64_t end, int worker) {
    const blur_job *job = userp;
    (void)worker;
    for (int64_t column = begin; column < end; column++)
        blur_line(job->from + column, job->to + column, job->height, job->width, job->radius);
}

static kelp_code box_blur(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    const DLTensor *image = args[1].as.tensor;
    int64_t height = image->shape[0], width = image->shape[1], radius = args[2].as.i;
    if (radius < 0) {
        context->fail(context, "radius must not be negative");
        return KELP_INVALID_ARGUMENT;
    }
    float *between = context->scratch(context, (size_t)(height * width) * sizeof *between);
    if (between == NULL)
        return KELP_RESOURCE_EXHAUSTED;
    blur_job rows = {data_of(image), between, height, width, radius};
    blur_job columns = {between, data_of(args[0].as.tensor), height, width, radius};
    context->parallel(context, height, 64, blur_rows, &rows);
    context->parallel(context, width, 64, blur_columns, &columns);
    return KELP_OK;
}

/* ---- gauss_blur: like box_blur with Gaussian weights; repeats the edges ---- */
typedef struct gauss_job {
    const float *from;
    float *to, *padded; /* one line with its edges per thread */
    const float *weights;
    int64_t height, width, radius;
} gauss_job;

static void gauss_rows(void *userp, int64_t begin, int64_t end, int worker) {
    const gauss_job *job = userp;
    int64_t width = job->width, radius = job->radius;
    float *restrict line = job->padded + worker * (width + 2 * radius);
    for (int64_t row = begin; row < end; row++) {
        const float *from = job->from + row * width;
        float *restrict to = job->to + row * width;
        for (int64_t i = 0; i < radius; i++) {
            line[i] = from[0];
            line[radius + width + i] = from[width - 1];
        }
        memcpy(line + radius, from, (size_t)width * sizeof *line);
        memset(to, 0, (size_t)width * sizeof *to);
        for (int64_t k = 0; k <= 2 * radius; k++) {
            for (int64_t i = 0; i < width; i++)
                to[i] += job->weights[k] * line[k + i];
        }
    }
}

static void gauss_columns(void *userp, int64_t begin, int64_t end, int worker) {
    const gauss_job *job = userp;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        float *restrict to = job->to + row * job->width;
        memset(to, 0, (size_t)job->width * sizeof *to);
        for (int64_t k = -job->radius; k <= job->radius; k++) {
            int64_t at = row + k < 0 ? 0 : row + k >= job->height ? job->height - 1 : row + k;
            const float *from = job->from + at * job->width, weight = job->weights[job->radius + k];
            for (int64_t i = 0; i < job->width; i++)
                to[i] += weight * from[i];
        }
    }
}

static kelp_code gauss_blur(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    const DLTensor *image = args[1].as.tensor;
    int64_t height = image->shape[0], width = image->shape[1];
    double sigma = args[2].as.f, sum = 0;
    if (!(sigma > 0 && sigma <= 100)) {
        context->fail(context, "sigma must be greater than 0 and at most 100");
        return KELP_INVALID_ARGUMENT;
    }
    if (height == 0 || width == 0)
        return KELP_OK;
    int64_t radius = (int64_t)ceil(3 * sigma), lines = context->threads > 0 ? context->threads : 1;
    float *weights = context->scratch(context, (size_t)(2 * radius + 1) * sizeof *weights);
    float *padded =
        context->scratch(context, (size_t)(lines * (width + 2 * radius)) * sizeof(float));
    float *between = context->scratch(context, (size_t)(height * width) * sizeof *between);
    if (weights == NULL || padded == NULL || between == NULL)
        return KELP_RESOURCE_EXHAUSTED;
    for (int64_t k = -radius; k <= radius; k++)
        sum += exp(-(double)(k * k) / (2 * sigma * sigma));
    for (int64_t k = -radius; k <= radius; k++)
        weights[radius + k] = (float)(exp(-(double)(k * k) / (2 * sigma * sigma)) / sum);
    gauss_job rows = {data_of(image), between, padded, weights, height, width, radius};
    gauss_job columns = {between, data_of(args[0].as.tensor), padded, weights, height, width,
                         radius};
    context->parallel(context, height, 16, gauss_rows, &rows);
    context->parallel(context, height, 16, gauss_columns, &columns);
    return KELP_OK;
}

/* ---- histogram ---- */
static kelp_code histogram(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    int64_t *bins = data_of(args[0].as.tensor);
    const uint8_t *image = data_of(args[1].as.tensor);
    int64_t count = elements(args[1].as.tensor);
    (void)context;
    memset(bins, 0, 256 * sizeof *bins);
    for (int64_t i = 0; i < count; i++)
        bins[image[i]]++;
    return KELP_OK;
}

/* ---- sort ---- */
static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static kelp_code sort(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    (void)context;
    qsort(data_of(args[0].as.tensor), (size_t)args[0].as.tensor->shape[0], sizeof(int64_t),
          by_value);
    return KELP_OK;
}

/* ---- later_sum: completes on another thread ---- */
typedef struct later_job {
    const kelp_kernel_context *context;
    kelp_kernel_completion *completion;
    double *sum;
    const double *values;
    int64_t count;
} later_job;

static void *later_main(void *userp) {
    later_job *job = userp;
    double sum = 0;
    for (int64_t i = 0; i < job->count; i++)
        sum += job->values[i];
    *job->sum = sum;
    bool finite = sum - sum == 0;
    job->context->complete(job->completion, finite ? KELP_OK : KELP_OUT_OF_RANGE,
                           "the sum is not finite");
    free(job);
    return NULL;
}

static kelp_code later_sum(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    pthread_t thread;
    later_job *job = malloc(sizeof *job);
    if (job == NULL)
        return KELP_RESOURCE_EXHAUSTED;
    *job = (later_job){context, context->later(context), data_of(args[0].as.tensor),
                       data_of(args[1].as.tensor), args[1].as.tensor->shape[0]};
    if (job->completion == NULL || pthread_create(&thread, NULL, later_main, job) != 0) {
        free(job);
        return KELP_RESOURCE_EXHAUSTED;
    }
    pthread_detach(thread);
    return KELP_OK;
}

static const kelp_kernel_def kernels[] = {
    {.name = "add",
     .signature = "out y: float32[...s], a: float32[...s], b: float32[...s]",
     .fn = add,
     .summary = "adds elementwise"},
    {.name = "box_blur",
     .signature = "out y: float32[h, w], x: float32[h, w], radius: int32",
     .fn = box_blur,
     .summary = "the mean of a square of 2*radius+1"},
    {.name = "gauss_blur",
     .signature = "out y: float32[h, w], x: float32[h, w], sigma: float32",
     .fn = gauss_blur,
     .summary = "the Gaussian-weighted mean with this sigma"},
    {.name = "histogram",
     .signature = "out bins: int64[256], image: uint8[...]",
     .fn = histogram,
     .summary = "counts the occurrences of each byte"},
    {.name = "sort",
     .signature = "inout values: int64[n]",
     .fn = sort,
     .summary = "sorts in place, in ascending order"},
    {.name = "later_sum",
     .signature = "out sum: float64[], values: float64[n]",
     .fn = later_sum,
     .flags = KELP_KERNEL_ASYNC,
     .summary = "the sum, computed by another thread"},
};
KELP_KERNEL_LIBRARY("toolbox", kernels)
