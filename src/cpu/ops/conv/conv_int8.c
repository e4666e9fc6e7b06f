/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ConvInteger, QLinearConv, and kelp::QConv, which passes make (inputs as kelp::QMatMul's; Conv's
 * attributes and activation).
 *
 * Images are turned so that a position's channels lie side by side, with their padding around them;
 * a row of the product is then what a window sees. Where windows lie one behind the other, rows are
 * read where they are. Kernels of one channel are summed without a product. Source: ONNX operator
 * specification.
 */
#include "base/alloc.h"
#include "cpu/ops/activation.h"
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/ops/kernel.h"
#include "cpu/ops/conv/window.h"
#include "cpu/ops/conv/conv_int8_weights.h"
#include "cpu/ops/matmul/int8_epilogue.h"
#include "cpu/ops/variant.h"

static const kelp_int8_places integer_places = {-1, 2, 1, -1, 3, -1, -1, -1, -1, -1, -1};
static const kelp_int8_places linear_places = {1, 2, 3, 4, 5, 8, -1, -1, -1, 6, 7};
static const kelp_int8_places fused_places = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

#define ROWS 48 /* output positions of a unit */

typedef struct conv_plan {
    kelp_window w;
    kelp_int8_conv_shape shape;
    int64_t batch;
    kelp_act act;
    bool padded, direct; /* direct: rows of the product lie in the frame */
    int64_t frame[KELP_WINDOW_AXES], frame_bytes, plain_bytes, row_bytes;
    size_t plain, frames, rows, weights, buffer, finish, taps;
    /* of an invoke */
    const kelp_op_args *args;
    const kelp_int8 *loops;
    kelp_int8_conv_weights b;
    kelp_int8_product product; /* of the first group */
    uint8_t flip;
} conv_plan;

static const kelp_int8_places *places_of(const kelp_node *node) {
    switch (kelp_op_variant_of(node)) {
    case KELP_VARIANT_INT8_INTEGER:
        return &integer_places;
    case KELP_VARIANT_INT8_LINEAR:
        return &linear_places;
    default:
        return &fused_places;
    }
}

static void *at_offset(const kelp_op_args *args, size_t offset) {
    return (char *)args->scratch + offset;
}

/* ---- constant weights ---- */
typedef struct conv_state {
    kelp_int8_conv_weights b;
    kelp_op_packed packed;
} conv_state;

static const kelp_tensor *constant(const kelp_node *node, int place, bool *out_there) {
    const kelp_value *value = place >= 0 && (size_t)place < kelp_node_input_count(node)
                                  ? kelp_node_input(node, (size_t)place)
                                  : NULL;
    *out_there = value != NULL;
    return value != NULL ? kelp_value_constant(value) : NULL;
}

static kelp_status *conv_create(const kelp_node *node, const kelp_op_env *env, void **out_state) {
    const kelp_int8_places *places = places_of(node);
    bool there, has_zero;
    const kelp_tensor *w = constant(node, places->b, &there),
                      *zero = constant(node, places->b_zero, &has_zero);
    kelp_int8_conv_shape shape;
    kelp_allocator allocator = kelp_op_env_allocator(env);
    conv_state *state = NULL;
    kelp_op_packing packing = {
        .layout = KELP_INT8_CONV_LAYOUT, .inputs = 1u << places->b, .replaces = 1u << places->b};
    size_t buffer_bytes;
    void *room = NULL, *buffer = NULL;
    if (w == NULL || (has_zero && zero == NULL) ||
        !kelp_int8_conv_shape_of(w, zero, kelp_node_attr_i64(node, "group", 1), &shape))
        return NULL; /* reshape says what is wrong */
    if (!kelp_int8_conv_weights_size(&shape, &packing.size_bytes, &buffer_bytes))
        return kelp_status_oom();
    kelp_op_pack_site site = kelp_op_env_pack_site(env);
    KELP_TRY(KELP_NEW(allocator, conv_state, &state));
    *out_state = state;
    KELP_TRY(kelp_op_pack(&site, allocator, &packing, &state->packed, &room));
    if (room != NULL) {
        KELP_TRY(kelp_alloc_aligned(allocator, buffer_bytes, 64, &buffer));
        kelp_int8_conv_weights_lay(kelp_int8_get(), &shape, w, zero, room, buffer);
        kelp_free_aligned(allocator, buffer, buffer_bytes, 64);
    }
    kelp_int8_conv_weights_view(&shape, state->packed.data, &state->b);
    return NULL;
}

static void conv_destroy(void *state, kelp_allocator allocator) {
    conv_state *s = state;
    if (s == NULL)
        return;
    kelp_op_unpack(&s->packed, allocator);
    kelp_free(allocator, s, sizeof *s);
}

/* ---- shapes ---- */
static kelp_status *conv_shapes(kelp_op_args *args, const kelp_int8_places *places,
                                int32_t *out_rank, int64_t *out_shape) {
    conv_plan *p = args->plan;
    KELP_TRY(kelp_int8_check_operands(args, places));
    const kelp_tensor *x = args->inputs[0], *w = args->inputs[places->b];
    const kelp_tensor *x_zero = kelp_int8_place(args, places->a_zero),
                      *w_zero = kelp_int8_place(args, places->b_zero);
    if (x->dtype != KELP_U8 && x->dtype != KELP_I8)
        return kelp_ops_bad_type(args, x->dtype);
    if (w->dtype != KELP_U8 && w->dtype != KELP_I8)
        return kelp_ops_bad_type(args, w->dtype);
    if (x_zero != NULL && x_zero->dtype != x->dtype)
        return kelp_ops_bad_type(args, x_zero->dtype);
    if (x_zero != NULL && kelp_tensor_elements(x_zero) != 1)
        return kelp_ops_bad_shapes(args, x, x_zero, "expected one zero point of the input");
    if (x->rank < 3 || w->rank != x->rank)
        return kelp_ops_bad_shapes(args, x, w, "expected as many axes in both, three or more");
    if (!kelp_int8_conv_shape_of(w, w_zero, kelp_node_attr_i64(args->node, "group", 1),
                                 &p->shape) ||
        x->shape[1] != p->shape.in_channels * p->shape.groups)
        return kelp_ops_bad_shapes(args, x, w, "the channels, groups or zero points do not fit");
    KELP_TRY(kelp_window_init(&p->w, args, x, w->shape + 2, x->rank - 2));
    p->batch = x->shape[0];
    *out_rank = kelp_window_shape(&p->w, p->batch, w->shape[0], out_shape);
    return NULL;
}

/* Whether what windows see lies in the frame one behind the other. */
static bool lies_in_rows(const conv_plan *p) {
    const kelp_window *w = &p->w;
    if (p->shape.groups != 1 || w->kernel[0] != 1 || w->kernel[1] != 1 ||
        (w->kernel[2] > 1 && w->dilation[2] != 1))
        return false;
    bool line = w->out[0] == 1 && w->out[1] == 1;
    bool points = w->kernel[2] == 1 && !p->padded && w->stride[0] == 1 && w->stride[1] == 1 &&
                  w->stride[2] == 1;
    return line || points;
}

static kelp_status *reserve(kelp_op_args *args, conv_plan *p, const void *state) {
    const kelp_window *w = &p->w;
    int64_t channels = p->shape.groups * p->shape.in_channels, rows;
    p->padded = false;
    p->frame_bytes = channels;
    for (int i = 0; i < KELP_WINDOW_AXES; i++) {
        /* what no window reaches is left out, and what one reaches behind the padding is there */
        p->frame[i] = (w->out[i] - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1;
        p->frame[i] = KELP_MAX((int64_t)0, p->frame[i]);
        p->padded = p->padded || w->before[i] != 0 || p->frame[i] != w->in[i];
        if (!kelp_i64_mul(p->frame_bytes, p->frame[i], &p->frame_bytes))
            return kelp_ops_bad_shapes(args, args->inputs[0], NULL, "the padding is too large");
    }
    p->plain_bytes = w->in_size * channels;
    p->direct = lies_in_rows(p);
    KELP_TRY(kelp_ops_scratch(args, p->batch, (size_t)p->plain_bytes, &p->plain));
    if (p->padded)
        KELP_TRY(kelp_ops_scratch(args, p->batch, (size_t)p->frame_bytes, &p->frames));
    p->row_bytes = w->kernel_size * p->shape.in_channels;
    if (!p->direct && !p->shape.depthwise) {
        if (!kelp_i64_mul(p->row_bytes, ROWS * kelp_op_env_threads(args->env), &rows))
            return kelp_ops_bad_shapes(args, args->inputs[0], NULL, "the kernel is too large");
        KELP_TRY(kelp_ops_scratch(args, rows, 1, &p->rows));
    }
    if (p->shape.depthwise)
        KELP_TRY(kelp_ops_scratch(args, w->kernel_size, sizeof(int64_t), &p->taps));
    if (state != NULL)
        return NULL;
    size_t bytes, buffer_bytes;
    if (!kelp_int8_conv_weights_size(&p->shape, &bytes, &buffer_bytes))
        return kelp_status_oom();
    KELP_TRY(kelp_ops_scratch(args, 1, bytes, &p->weights));
    return kelp_ops_scratch(args, 1, buffer_bytes, &p->buffer);
}

static kelp_status *conv_reshape(const void *state, kelp_op_args *args) {
    conv_plan *p = args->plan;
    const kelp_int8_places *places = places_of(args->node);
    int64_t shape[KELP_MAX_RANK];
    int32_t rank = 0;
    kelp_dtype dtype = KELP_I32;
    KELP_TRY(conv_shapes(args, places, &rank, shape));
    KELP_TRY(reserve(args, p, state));
    if (places != &integer_places) {
        KELP_TRY(kelp_int8_epilogue_plan(args, places, p->shape.out_channels * p->shape.groups,
                                         &dtype, &p->finish));
        if (!kelp_act_parse(kelp_node_attr_string(args->node, "activation", "", NULL), &p->act))
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "QConv knows no activation '%s'",
                              kelp_node_attr_string(args->node, "activation", "", NULL));
    }
    return kelp_ops_set(args, 0, dtype, rank, shape);
}

/* ---- images ---- */
/* A unit is some positions of an image. */
#define TURN_POSITIONS 256

static void turn_range(void *userp, int64_t begin, int64_t end, int worker) {
    const conv_plan *p = userp;
    int64_t channels = p->shape.groups * p->shape.in_channels, size = p->w.in_size;
    int64_t parts = (size + TURN_POSITIONS - 1) / TURN_POSITIONS;
    const uint8_t *x = p->args->inputs[0]->data;
    uint8_t *plain = at_offset(p->args, p->plain);
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t image = unit / parts, first = unit % parts * TURN_POSITIONS;
        p->loops->turn(plain + image * p->plain_bytes + first * channels, channels,
                       x + image * p->plain_bytes + first, size, channels,
                       KELP_MIN((int64_t)TURN_POSITIONS, size - first), p->flip);
    }
}

/* A unit is a row of a frame. */
static void frame_range(void *userp, int64_t begin, int64_t end, int worker) {
    const conv_plan *p = userp;
    const kelp_window *w = &p->w;
    int64_t channels = p->shape.groups * p->shape.in_channels, rows = p->frame[0] * p->frame[1];
    int64_t width = p->frame[2], left = KELP_MIN(width, KELP_MAX((int64_t)0, w->before[2]));
    int64_t from = KELP_MAX((int64_t)0, -w->before[2]);
    int64_t inside = KELP_MAX((int64_t)0, KELP_MIN(width - left, w->in[2] - from));
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t image = unit / rows, z = unit % rows / p->frame[1] - w->before[0];
        int64_t y = unit % p->frame[1] - w->before[1];
        bool there = z >= 0 && z < w->in[0] && y >= 0 && y < w->in[1] && inside > 0;
        uint8_t *to = (uint8_t *)at_offset(p->args, p->frames) + unit * width * channels;
        if (!there) {
            memset(to, p->product.a_zero, (size_t)(width * channels));
            continue;
        }
        const uint8_t *row = (const uint8_t *)at_offset(p->args, p->plain) +
                             image * p->plain_bytes +
                             ((z * w->in[1] + y) * w->in[2] + from) * channels;
        memset(to, p->product.a_zero, (size_t)(left * channels));
        memcpy(to + left * channels, row, (size_t)(inside * channels));
        memset(to + (left + inside) * channels, p->product.a_zero,
               (size_t)((width - left - inside) * channels));
    }
}

/* Where the window at output position `position` begins in a frame. */
static int64_t window_at(const conv_plan *p, int64_t position) {
    const kelp_window *w = &p->w;
    int64_t z = position / (w->out[1] * w->out[2]), y = position / w->out[2] % w->out[1];
    int64_t x = position % w->out[2];
    return ((z * w->stride[0] * p->frame[1] + y * w->stride[1]) * p->frame[2] + x * w->stride[2]) *
           p->shape.groups * p->shape.in_channels;
}

/* What `rows` windows of one group see. */
static void gather_rows(const conv_plan *p, const uint8_t *frame, int64_t group, int64_t first,
                        int64_t rows, uint8_t *to) {
    const kelp_window *w = &p->w;
    int64_t channels = p->shape.groups * p->shape.in_channels, each = p->shape.in_channels;
    bool run = p->shape.groups == 1 && w->dilation[2] == 1;
    int64_t taps = run ? 1 : w->kernel[2], bytes = run ? each * w->kernel[2] : each;
    for (int64_t i = 0; i < rows; i++) {
        const uint8_t *from = frame + window_at(p, first + i) + group * each;
        for (int64_t a = 0; a < w->kernel[0]; a++)
            for (int64_t b = 0; b < w->kernel[1]; b++)
                for (int64_t c = 0; c < taps; c++, to += bytes)
                    memcpy(to,
                           from + ((a * w->dilation[0] * p->frame[1] + b * w->dilation[1]) *
                                       p->frame[2] +
                                   c * w->dilation[2]) *
                                      channels,
                           (size_t)bytes);
    }
}

static const uint8_t *frame_of(const conv_plan *p, int64_t image) {
    return p->padded ? (const uint8_t *)at_offset(p->args, p->frames) + image * p->frame_bytes
                     : (const uint8_t *)at_offset(p->args, p->plain) + image * p->plain_bytes;
}

/* ---- products ---- */
/* The product of a group, whose results begin at output position `first` of an image. */
static kelp_int8_product of_group(const conv_plan *p, int64_t image, int64_t group, int64_t first) {
    kelp_int8_product g = p->product;
    const kelp_tensor *y = p->args->outputs[0];
    int64_t columns = p->shape.depthwise ? p->shape.groups : p->shape.out_channels;
    int64_t channel = group * columns;
    size_t each = kelp_ops_element_bytes(y->dtype);
    g.y = (char *)y->data +
          (size_t)((image * p->shape.groups * p->shape.out_channels + channel) * p->w.out_size +
                   first) *
              each;
    g.b.n = columns;
    g.b.panels = p->b.panels + (size_t)group * p->b.group_bytes;
    g.b.balance += channel;
    g.b.zeros = g.b.zeros != NULL ? g.b.zeros + channel : NULL;
    g.finish.scale = g.finish.scale != NULL ? g.finish.scale + channel : NULL;
    g.finish.bias = g.finish.bias != NULL ? g.finish.bias + channel : NULL;
    g.finish.addend = g.finish.addend != NULL ? g.finish.addend + channel : NULL;
    return g;
}

/* A unit is ROWS positions of one group of one image. */
static void conv_range(void *userp, int64_t begin, int64_t end, int worker) {
    const conv_plan *p = userp;
    int64_t parts = (p->w.out_size + ROWS - 1) / ROWS, columns = p->shape.out_channels;
    uint8_t *rows = NULL;
    if (!p->direct)
        rows = (uint8_t *)at_offset(p->args, p->rows) + worker * ROWS * p->row_bytes;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t first = unit % parts * ROWS, group = unit / parts % p->shape.groups;
        int64_t image = unit / parts / p->shape.groups;
        int64_t count = KELP_MIN((int64_t)ROWS, p->w.out_size - first);
        kelp_int8_product g = of_group(p, image, group, first);
        if (p->direct) {
            g.a = frame_of(p, image) + window_at(p, first);
            g.lda = p->w.stride[2] * p->shape.in_channels;
        } else {
            gather_rows(p, frame_of(p, image), group, first, count, rows);
            g.a = rows;
            g.lda = p->row_bytes;
        }
        g.m = count;
        for (int64_t column = 0; column < columns; column += KELP_INT8_TURNED_COLUMNS)
            kelp_int8_product_block(p->loops, &g, 0, column, count,
                                    KELP_MIN((int64_t)KELP_INT8_TURNED_COLUMNS, columns - column));
    }
}

/* The same of kernels of one channel: all groups are the columns. */
static void depthwise_range(void *userp, int64_t begin, int64_t end, int worker) {
    const conv_plan *p = userp;
    int64_t parts = (p->w.out_size + ROWS - 1) / ROWS, channels = p->shape.groups;
    const int64_t *taps = at_offset(p->args, p->taps);
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t image = unit / parts, first = unit % parts * ROWS;
        int64_t count = KELP_MIN((int64_t)ROWS, p->w.out_size - first);
        kelp_int8_product g = of_group(p, image, 0, first);
        for (int64_t c = 0; c < channels; c += KELP_INT8_TURNED_COLUMNS) {
            int32_t sums[ROWS * KELP_INT8_TURNED_COLUMNS];
            int64_t width = KELP_MIN((int64_t)KELP_INT8_TURNED_COLUMNS, channels - c);
            for (int64_t i = 0; i < count; i++)
                p->loops->taps(sums + i * width, frame_of(p, image) + window_at(p, first + i) + c,
                               taps, p->w.kernel_size, p->b.taps + c, channels, width);
            kelp_int8_product_finish(p->loops, &g, 0, c, count, width, sums);
        }
    }
}

static void list_taps(const conv_plan *p, int64_t *out) {
    const kelp_window *w = &p->w;
    for (int64_t t = 0; t < w->kernel_size; t++) {
        int64_t a = t / (w->kernel[1] * w->kernel[2]), b = t / w->kernel[2] % w->kernel[1];
        out[t] = ((a * w->dilation[0] * p->frame[1] + b * w->dilation[1]) * p->frame[2] +
                  t % w->kernel[2] * w->dilation[2]) *
                 p->shape.groups;
    }
}

static void prepare(const void *state, kelp_op_args *args, const kelp_int8_places *places) {
    conv_plan *p = args->plan;
    const conv_state *s = state;
    p->args = args;
    p->loops = kelp_int8_get();
    p->flip = args->inputs[0]->dtype == KELP_I8 ? 0x80 : 0;
    if (s != NULL) {
        p->b = s->b;
    } else {
        kelp_int8_conv_weights_lay(p->loops, &p->shape, args->inputs[places->b],
                                   kelp_int8_place(args, places->b_zero),
                                   at_offset(args, p->weights), at_offset(args, p->buffer));
        kelp_int8_conv_weights_view(&p->shape, at_offset(args, p->weights), &p->b);
    }
    p->product = (kelp_int8_product){
        .a_zero = kelp_int8_zero(kelp_int8_place(args, places->a_zero), 0) + p->flip,
        .b = {.k = p->row_bytes,
              .n = p->shape.groups * p->shape.out_channels,
              .balance = p->b.balance,
              .zeros = p->b.zeros,
              .zero = p->b.zero},
        .finish = {.dtype = KELP_I32},
        .ldy = p->w.out_size,
        .turned = true};
}

static kelp_status *conv_invoke(const void *state, kelp_op_args *args) {
    conv_plan *p = args->plan;
    const kelp_int8_places *places = places_of(args->node);
    int64_t channels = p->shape.groups * p->shape.in_channels;
    if (kelp_tensor_elements(args->outputs[0]) == 0)
        return NULL;
    prepare(state, args, places);
    int64_t parts = (p->w.in_size + TURN_POSITIONS - 1) / TURN_POSITIONS;
    kelp_op_parallel(args->env, p->batch * parts,
                     KELP_OPS_GRAIN * 4 / (TURN_POSITIONS * KELP_MAX((int64_t)1, channels)) + 1,
                     turn_range, p);
    if (p->padded)
        kelp_op_parallel(args->env, p->batch * p->frame[0] * p->frame[1],
                         KELP_OPS_GRAIN * 4 / KELP_MAX((int64_t)1, p->frame[2] * channels) + 1,
                         frame_range, p);
    if (places != &integer_places) {
        const kelp_tensor *scale = kelp_int8_place(args, places->a_scale);
        kelp_int8_epilogue_make(args, places, scale != NULL ? kelp_int8_scale(scale, 0) : 1.0f,
                                p->act, p->finish, &p->product);
    }
    parts = (p->w.out_size + ROWS - 1) / ROWS;
    if (p->shape.depthwise) {
        list_taps(p, at_offset(args, p->taps));
        kelp_op_parallel(args->env, p->batch * parts,
                         100000 / (ROWS * channels * p->w.kernel_size) + 1, depthwise_range, p);
        return NULL;
    }
    int64_t work = ROWS * p->row_bytes * p->shape.out_channels;
    kelp_op_parallel(args->env, p->batch * p->shape.groups * parts,
                     2000000 / KELP_MAX((int64_t)1, work) + 1, conv_range, p);
    return NULL;
}

#define CONV_KERNEL(name)                                                         \
    const kelp_op_kernel kelp_op_##name = {.struct_size = sizeof(kelp_op_kernel), \
                                           .flags = KELP_OP_STATE_OPTIONAL,       \
                                           .plan_bytes = sizeof(conv_plan),       \
                                           .create = conv_create,                 \
                                           .destroy = conv_destroy,               \
                                           .reshape = conv_reshape,               \
                                           .invoke = conv_invoke}
CONV_KERNEL(ConvInteger);
CONV_KERNEL(QLinearConv);
CONV_KERNEL(QConv);
