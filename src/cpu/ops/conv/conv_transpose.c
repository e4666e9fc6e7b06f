/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ConvTranspose in one to three dimensions: a GEMM multiplies the transposed weights by some rows
 * of the input, and the products are added to the output row by row (col2im). Source: ONNX operator
 * specification, ConvTranspose-22.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/kernels/vector/vector_kernels.h"
#include "cpu/ops/kernel.h"
#include "cpu/kernels/conv/conv.h"
#include "cpu/kernels/tuning.h"
#include "cpu/ops/conv/window.h"
#include "cpu/ops/converted.h"
#include "operator/window.h"

#define AXES 3

typedef struct deconv_plan {
    int64_t in[AXES], out[AXES], kernel[AXES], stride[AXES], dilation[AXES], before[AXES];
    int64_t batch, groups, in_channels, out_channels; /* channels a group */
    int64_t in_size, out_size, kernel_size;
    int64_t block, strip;                   /* output channels and input rows of one GEMM */
    int64_t product_elements, row_elements; /* of a worker */
    bool is_one_to_one;                     /* each output depends on exactly one input */
    size_t weights_offset, buffer_offset;
    const float *weights; /* [group, output channel, kernel position, input channel] */
    const kelp_op_args *args;
} deconv_plan;

/* Constant weights, transposed once. */
typedef struct deconv_state {
    kelp_op_packed weights;
} deconv_state;

/* Transposes [groups x input channels, outputs] to [groups, outputs, input channels]; outputs
 * are channels and kernel positions. */
static void transpose(const kelp_float_u *from, int64_t groups, int64_t inputs, int64_t outputs,
                      float *to) {
    for (int64_t g = 0; g < groups; g++, from += inputs * outputs, to += inputs * outputs)
        for (int64_t i = 0; i < inputs; i++)
            for (int64_t o = 0; o < outputs; o++)
                to[o * inputs + i] = from[i * outputs + o];
}

static kelp_status *deconv_create(const kelp_node *node, const kelp_op_env *env, void **out_state) {
    const kelp_value *value = kelp_node_input_count(node) > 1 ? kelp_node_input(node, 1) : NULL;
    const kelp_tensor *w = value != NULL ? kelp_value_constant(value) : NULL;
    int64_t groups = kelp_node_attr_i64(node, "group", 1);
    kelp_op_packing packing = {.layout = "transposed/1", .inputs = 1u << 1, .replaces = 1u << 1};
    deconv_state *state = NULL;
    void *memory = NULL;
    if (w == NULL || w->dtype != KELP_F32 || w->rank < 3 || groups < 1 ||
        w->shape[0] % groups != 0 || kelp_tensor_elements(w) == 0)
        return NULL;
    kelp_allocator allocator = kelp_op_env_allocator(env);
    kelp_op_pack_site site = kelp_op_env_pack_site(env);
    packing.size_bytes = kelp_tensor_bytes(w);
    KELP_TRY(KELP_NEW(allocator, deconv_state, &state));
    kelp_status *status = kelp_op_pack(&site, allocator, &packing, &state->weights, &memory);
    if (status != NULL) {
        kelp_free(allocator, state, sizeof *state);
        return status;
    }
    if (memory != NULL)
        transpose(w->data, groups, w->shape[0] / groups, kelp_ops_product(w->shape, 1, w->rank),
                  memory);
    *out_state = state;
    return NULL;
}

static void deconv_destroy(void *state, kelp_allocator allocator) {
    deconv_state *s = state;
    if (s == NULL)
        return;
    kelp_op_unpack(&s->weights, allocator);
    kelp_free(allocator, s, sizeof *s);
}

static kelp_status *init_axis(deconv_plan *p, const kelp_op_args *args, size_t axes, size_t axis) {
    const kelp_tensor *x = args->inputs[0], *w = args->inputs[1];
    const int64_t max = (int64_t)1 << 30;
    const char *auto_pad = kelp_node_attr_string(args->node, "auto_pad", "NOTSET", NULL);
    size_t at = axis + AXES - axes;
    int64_t in = x->shape[axis + 2], kernel = w->shape[axis + 2];
    int64_t stride = 1, dilation = 1, before = 0, after = 0, extra = 0, wanted = -1;
    const kelp_window_range steps = {1, max}, pads = {0, max}, sizes = {0, max * max};
    KELP_TRY(kelp_window_attr(args, "strides", axes, axis, steps, &stride));
    KELP_TRY(kelp_window_attr(args, "dilations", axes, axis, steps, &dilation));
    KELP_TRY(kelp_window_attr(args, "pads", 2 * axes, axis, pads, &before));
    KELP_TRY(kelp_window_attr(args, "pads", 2 * axes, axis + axes, pads, &after));
    KELP_TRY(kelp_window_attr(args, "output_padding", axes, axis, pads, &extra));
    KELP_TRY(kelp_window_attr(args, "output_shape", axes, axis, sizes, &wanted));
    if (in < 1 || in > max || kernel < 1 || kernel > max)
        return kelp_ops_bad_shapes(args, x, w, "a dimension is out of range");
    kelp_window_axis a = {in, kernel, stride, dilation, before, after};
    bool left = kelp_window_transposed_output(&a, kelp_auto_pad_parse(auto_pad),
                                              (kelp_window_transposed){extra, wanted}, &p->out[at]);
    p->in[at] = in;
    p->kernel[at] = kernel;
    p->stride[at] = stride;
    p->dilation[at] = dilation;
    p->before[at] = a.before;
    p->is_one_to_one =
        p->is_one_to_one && kernel == stride && dilation == 1 && extra == 0 && a.after >= 0;
    if (!left)
        return kelp_ops_bad_shapes(args, x, w, "the padding leaves no output");
    return NULL;
}

/* Chooses the rows and columns of one GEMM and reserves scratch memory. */
static kelp_status *deconv_reserve(const deconv_state *state, deconv_plan *p, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0], *w = args->inputs[1];
    int64_t width = KELP_MAX((int64_t)1, p->in[2]), columns, all = 0;
    KELP_ASSERT(p->kernel_size > 0 && p->in_size > 0);
    p->block =
        KELP_MAX((int64_t)1, KELP_MIN(p->out_channels, KELP_CONV_TRANSPOSE_ROWS / p->kernel_size));
    p->strip = KELP_MAX((int64_t)1, KELP_MIN(p->in[1], KELP_CONV_TRANSPOSE_COLUMNS / width));
    p->row_elements = p->out[2] + p->stride[2];
    columns = p->strip * p->in[2];
    if (!kelp_i64_mul(p->block * columns, p->kernel_size, &p->product_elements) ||
        !kelp_i64_add(p->product_elements, p->row_elements, &all) ||
        !kelp_i64_mul(all, kelp_op_env_threads(args->env), &all))
        return kelp_ops_bad_shapes(args, x, w, "the scratch memory would be too large");
    if (state == NULL)
        KELP_TRY(
            kelp_ops_scratch(args, kelp_tensor_elements(w), sizeof(float), &p->weights_offset));
    return kelp_ops_scratch(args, all, sizeof(float), &p->buffer_offset);
}

static kelp_status *deconv_reshape(const void *state, kelp_op_args *args) {
    deconv_plan *p = args->plan;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0], *w = args->inputs[1], *bias = kelp_ops_in(args, 2);
    kelp_dtype dtype = x->dtype;
    if ((dtype != KELP_F32 && dtype != KELP_F64) || w->dtype != dtype ||
        (bias != NULL && bias->dtype != dtype))
        return kelp_ops_bad_type(args, w->dtype);
    p->groups = kelp_node_attr_i64(args->node, "group", 1);
    if (x->rank < 3 || x->rank > AXES + 2 || w->rank != x->rank || p->groups < 1 ||
        x->shape[1] % p->groups != 0 || w->shape[0] != x->shape[1])
        return kelp_ops_bad_shapes(args, x, w, "the channels of input and weights do not match");
    p->batch = x->shape[0];
    p->in_channels = x->shape[1] / p->groups;
    p->out_channels = w->shape[1];
    int64_t shape[KELP_MAX_RANK] = {p->batch, 0};
    if (!kelp_i64_mul(p->out_channels, p->groups, &shape[1]) ||
        (bias != NULL && kelp_tensor_elements(bias) != shape[1]))
        return kelp_ops_bad_shapes(args, w, bias, "expected one bias for each output channel");
    size_t axes = (size_t)x->rank - 2;
    p->is_one_to_one = true;
    for (size_t i = 0; i < AXES; i++)
        p->in[i] = p->out[i] = p->kernel[i] = p->stride[i] = p->dilation[i] = 1;
    for (size_t i = 0; i < axes; i++) {
        KELP_TRY(init_axis(p, args, axes, i));
        shape[i + 2] = p->out[i + AXES - axes];
    }
    p->in_size = kelp_ops_product(p->in, 0, AXES);
    p->kernel_size = kelp_ops_product(p->kernel, 0, AXES);
    KELP_TRY(kelp_ops_set(args, 0, dtype, x->rank, shape));
    p->out_size = kelp_ops_product(p->out, 0, AXES);
    return dtype == KELP_F64 ? NULL : deconv_reserve(state, p, args);
}

/* Adds the products of one kernel column and an input row to an output row. With a stride above 1,
 * `row` collects the outputs of each remainder of the division by the stride. */
static void add_row(const deconv_plan *p, const float *from, int64_t tap, float *y, float *row) {
    const kelp_vector_kernels *vector = kelp_vector_kernels_get();
    int64_t stride = p->stride[2], at = tap * p->dilation[2] - p->before[2];
    int64_t rest = (at % stride + stride) % stride, shift = (at - rest) / stride;
    int64_t outputs = (p->out[2] - rest + stride - 1) / stride; /* with this remainder */
    int64_t first = KELP_MAX((int64_t)0, -shift), last = KELP_MIN(p->in[2], outputs - shift);
    float *to = stride == 1 ? y : row + rest * (p->row_elements / stride);
    if (first < last)
        vector->accumulate(to + shift + first, from + first, 1, last - first);
}

/* Adds the outputs that add_row collected to an output row. */
static void merge_row(const deconv_plan *p, const float *row, float *y) {
    int64_t stride = p->stride[2], step = p->row_elements / stride;
    if (stride == 2) {
        const float *odd = row + step;
        for (int64_t i = 0; i < p->out[2] / 2; i++) {
            y[2 * i] += row[i];
            y[2 * i + 1] += odd[i];
        }
        if (p->out[2] % 2 == 1)
            y[p->out[2] - 1] += row[p->out[2] / 2];
        return;
    }
    for (int64_t rest = 0; rest < stride; rest++)
        for (int64_t i = 0; i * stride + rest < p->out[2]; i++)
            y[i * stride + rest] += row[rest * step + i];
}

/* Adds the products of input rows [first, first + rows) of plane `depth` to one output channel. */
static void add_rows(const deconv_plan *p, const float *product, int64_t depth, int64_t first,
                     int64_t rows, float *plane, float *row) {
    int64_t ld = rows * p->in[2], reach = (p->kernel[1] - 1) * p->dilation[1];
    int64_t top = KELP_MAX((int64_t)0, first * p->stride[1] - p->before[1]);
    int64_t bottom =
        KELP_MIN(p->out[1] - 1, (first + rows - 1) * p->stride[1] - p->before[1] + reach);
    for (int64_t a = 0; a < p->kernel[0]; a++) {
        int64_t z = depth * p->stride[0] + a * p->dilation[0] - p->before[0];
        if (z < 0 || z >= p->out[0])
            continue;
        for (int64_t o = top; o <= bottom; o++) {
            float *y = plane + (z * p->out[1] + o) * p->out[2];
            if (p->stride[2] > 1)
                memset(row, 0, (size_t)p->row_elements * sizeof *row);
            for (int64_t b = 0; b < p->kernel[1]; b++) {
                int64_t at = o + p->before[1] - b * p->dilation[1];
                int64_t source = at / p->stride[1] - first;
                if (at < 0 || at % p->stride[1] != 0 || source < 0 || source >= rows)
                    continue;
                const float *from =
                    product + (a * p->kernel[1] + b) * p->kernel[2] * ld + source * p->in[2];
                for (int64_t c = 0; c < p->kernel[2]; c++)
                    add_row(p, from + c * ld, c, y, row);
            }
            if (p->stride[2] > 1)
                merge_row(p, row, y);
        }
    }
}

/* Stores an output row whose elements depend on one kernel element each. */
static void set_row(const deconv_plan *p, const float *from, int64_t ld, float bias, float *y) {
    int64_t stride = p->stride[2], before = p->before[2];
    if (stride == 2 && before == 0 && p->out[2] == 2 * p->in[2]) {
        const float *odd = from + ld;
        for (int64_t i = 0; i < p->in[2]; i++) {
            y[2 * i] = from[i] + bias;
            y[2 * i + 1] = odd[i] + bias;
        }
        return;
    }
    for (int64_t tap = 0; tap < stride; tap++) {
        int64_t first = tap < before ? (before - tap + stride - 1) / stride : 0;
        for (int64_t i = first; i * stride + tap - before < p->out[2]; i++)
            y[i * stride + tap - before] = from[tap * ld + i] + bias;
    }
}

/* Stores the products, where each output depends on one input; otherwise like add_rows. */
static void set_rows(const deconv_plan *p, const float *product, int64_t depth, int64_t first,
                     int64_t rows, float bias, float *plane) {
    int64_t ld = rows * p->in[2], taps = p->kernel[0] * p->kernel[1];
    for (int64_t tap = 0; tap < taps; tap++, product += p->kernel[2] * ld) {
        int64_t z = depth * p->stride[0] + tap / p->kernel[1] - p->before[0];
        for (int64_t row = 0; row < rows; row++) {
            int64_t o = (first + row) * p->stride[1] + tap % p->kernel[1] - p->before[1];
            if (z >= 0 && z < p->out[0] && o >= 0 && o < p->out[1])
                set_row(p, product + row * p->in[2], ld, bias,
                        plane + (z * p->out[1] + o) * p->out[2]);
        }
    }
}

static float bias_of(const deconv_plan *p, int64_t channel) {
    const kelp_tensor *bias = kelp_ops_in(p->args, 2);
    return bias != NULL ? ((const float *)bias->data)[channel] : 0.0f;
}

/* Runs units. A unit is some output channels of one group of one image. */
static void deconv_units(void *userp, int64_t begin, int64_t end, int worker) {
    const deconv_plan *p = userp;
    int64_t blocks = (p->out_channels + p->block - 1) / p->block;
    float *product = (float *)kelp_ops_scratch_at(p->args, p->buffer_offset) +
                     worker * (p->product_elements + p->row_elements);
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t group = unit / blocks % p->groups, image = unit / blocks / p->groups;
        int64_t first = group * p->out_channels + unit % blocks * p->block;
        int64_t channels = KELP_MIN(p->block, (group + 1) * p->out_channels - first);
        const float *x = (const float *)p->args->inputs[0]->data +
                         (image * p->groups + group) * p->in_channels * p->in_size;
        float *y = (float *)p->args->outputs[0]->data +
                   (image * p->groups * p->out_channels + first) * p->out_size;
        for (int64_t c = 0; c < channels && !p->is_one_to_one; c++) {
            float start = bias_of(p, first + c);
            kelp_ops_fill(y + c * p->out_size, sizeof start, p->out_size, &start);
        }
        for (int64_t at = 0; at < p->in[0] * p->in[1];) {
            int64_t depth = at / p->in[1], top = at % p->in[1];
            int64_t rows = KELP_MIN(p->strip, p->in[1] - top);
            kelp_gemm job = {.a = p->weights + first * p->kernel_size * p->in_channels,
                             .b = x + at * p->in[2],
                             .c = product,
                             .m = channels * p->kernel_size,
                             .n = rows * p->in[2],
                             .k = p->in_channels,
                             .lda = p->in_channels,
                             .ldb = p->in_size,
                             .ldc = rows * p->in[2]};
            kelp_gemm_run_serial(kelp_gemm_kernels_get(), &job);
            for (int64_t c = 0; c < channels; c++) {
                const float *from = product + c * p->kernel_size * job.ldc;
                if (p->is_one_to_one)
                    set_rows(p, from, depth, top, rows, bias_of(p, first + c), y + c * p->out_size);
                else
                    add_rows(p, from, depth, top, rows, y + c * p->out_size,
                             product + p->product_elements);
            }
            at += rows;
        }
    }
}

static void run_f64(const deconv_plan *p) {
    const kelp_op_args *args = p->args;
    const kelp_tensor *bias = kelp_ops_in(args, 2);
    kelp_conv conv = {.is_f64 = true,
                      .x = args->inputs[0]->data,
                      .weights = args->inputs[1]->data,
                      .bias = bias != NULL ? bias->data : NULL,
                      .y = args->outputs[0]->data};
    kelp_conv_window *w = &conv.shape.window;
    *w = (kelp_conv_window){.axes = AXES,
                            .in_size = p->in_size,
                            .out_size = p->out_size,
                            .kernel_size = p->kernel_size};
    for (int i = 0; i < AXES; i++) {
        w->in[i] = p->in[i];
        w->out[i] = p->out[i];
        w->kernel[i] = p->kernel[i];
        w->stride[i] = p->stride[i];
        w->dilation[i] = p->dilation[i];
        w->before[i] = p->before[i];
    }
    conv.shape.batch = p->batch;
    conv.shape.groups = p->groups;
    conv.shape.in_channels = p->in_channels;
    conv.shape.out_channels = p->out_channels;
    kelp_conv_transpose_reference_f64(args->env, &conv);
}

static kelp_status *deconv_invoke(const void *state, kelp_op_args *args) {
    deconv_plan *p = args->plan;
    const deconv_state *known = state;
    p->args = args;
    if (kelp_tensor_elements(args->outputs[0]) == 0)
        return NULL;
    if (args->inputs[0]->dtype == KELP_F64) {
        run_f64(p);
        return NULL;
    }
    if (known != NULL) {
        p->weights = known->weights.data;
    } else {
        float *to = kelp_ops_scratch_at(args, p->weights_offset);
        transpose(args->inputs[1]->data, p->groups, p->in_channels,
                  p->out_channels * p->kernel_size, to);
        p->weights = to;
    }
    KELP_ASSERT(p->block > 0 && p->strip > 0 && args->scratch != NULL);
    int64_t blocks = (p->out_channels + p->block - 1) / p->block;
    int64_t work = p->block * p->kernel_size * p->in_channels * p->in_size;
    kelp_op_parallel(args->env, p->batch * p->groups * blocks,
                     kelp_cpu_grain(KELP_GRAIN_TILES, work), deconv_units, p);
    return NULL;
}
KELP_CONVERTED_PHASES(deconv, kelp_widened, sizeof(deconv_plan), deconv_reshape, deconv_invoke)
const kelp_op_kernel kelp_op_ConvTranspose = {.struct_size = sizeof(kelp_op_kernel),
                                              .plan_bytes =
                                                  KELP_CONVERTED_PLAN(sizeof(deconv_plan)),
                                              .unaligned_inputs = 2,
                                              .create = deconv_create,
                                              .destroy = deconv_destroy,
                                              .reshape = deconv_reshape_any,
                                              .invoke = deconv_invoke_any};
