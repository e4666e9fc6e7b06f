/* SPDX-License-Identifier: Apache-2.0 */
/* ConvInteger, QLinearConv, and kelp::QConv, which passes create (the inputs of kelp::QMatMul;
 * Conv's attributes and activation). Source: ONNX operator specification. */
#include "base/alloc.h"
#include "base/assert.h"
#include "cpu/kernels/conv/conv_int8.h"
#include "cpu/ops/activation.h"
#include "cpu/ops/conv/conv_args.h"
#include "cpu/ops/matmul/int8_epilogue.h"
#include "cpu/ops/operand.h"
#include "cpu/ops/variant.h"

static const kelp_int8_operands integer_operands = {-1, 2, 1, -1, 3, -1, -1, -1, -1, -1, -1};
static const kelp_int8_operands linear_operands = {1, 2, 3, 4, 5, 8, -1, -1, -1, 6, 7};
static const kelp_int8_operands fused_operands = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

typedef struct conv_plan {
    kelp_conv_int8 conv;
    const kelp_conv_int8_algorithm *algorithm;
    kelp_conv_int8_weights_shape weights_shape;
    kelp_act act;
    size_t scratch, finish;         /* offsets */
    size_t weights, weights_buffer; /* of weights that are not constant */
} conv_plan;

static const kelp_int8_operands *operands_of(const kelp_node *node) {
    switch (kelp_op_variant_of(node)) {
    case KELP_VARIANT_INT8_INTEGER:
        return &integer_operands;
    case KELP_VARIANT_INT8_LINEAR:
        return &linear_operands;
    default:
        return &fused_operands;
    }
}

/* ---- constant weights ---- */
typedef struct conv_state {
    kelp_conv_int8_weights weights;
    kelp_op_packed packed;
} conv_state;

static kelp_status *conv_create(const kelp_node *node, const kelp_op_env *env, void **out_state) {
    const kelp_int8_operands *map = operands_of(node);
    bool has_zero = kelp_ops_has_input(node, map->b_zero);
    const kelp_tensor *w = kelp_ops_constant(node, map->b),
                      *zero = kelp_ops_constant(node, map->b_zero);
    kelp_conv_int8_weights_shape shape;
    kelp_allocator allocator = kelp_op_env_allocator(env);
    conv_state *state = NULL;
    kelp_op_packing packing = {
        .layout = KELP_CONV_INT8_LAYOUT, .inputs = 1u << map->b, .replaces = 1u << map->b};
    size_t buffer_bytes;
    void *memory = NULL, *buffer = NULL;
    if (w == NULL || (has_zero && zero == NULL) ||
        !kelp_conv_int8_weights_shape_of(w, zero, kelp_node_attr_i64(node, "group", 1), &shape))
        return NULL; /* not packed; reshape reports errors */
    if (!kelp_conv_int8_packed_size(&shape, &packing.size_bytes, &buffer_bytes))
        return kelp_status_oom();
    kelp_op_pack_site site = kelp_op_env_pack_site(env);
    KELP_TRY(KELP_NEW(allocator, conv_state, &state));
    *out_state = state;
    KELP_TRY(kelp_op_pack(&site, allocator, &packing, &state->packed, &memory));
    if (memory != NULL) {
        KELP_TRY(kelp_alloc_aligned(allocator, buffer_bytes, 64, &buffer));
        kelp_conv_int8_pack(kelp_int8_kernels_get(), &shape, w, zero, memory, buffer);
        kelp_free_aligned(allocator, buffer, buffer_bytes, 64);
    }
    kelp_conv_int8_packed_view(&shape, state->packed.data, &state->weights);
    return NULL;
}

static void conv_destroy(void *state, kelp_allocator allocator) {
    conv_state *s = state;
    if (s == NULL)
        return;
    kelp_op_unpack(&s->packed, allocator);
    kelp_free(allocator, s, sizeof *s);
}

/* ---- reshape ---- */
static kelp_status *check_types(const kelp_op_args *args, const kelp_int8_operands *map) {
    KELP_TRY(kelp_int8_check_operands(args, map));
    const kelp_tensor *x = args->inputs[0], *w = args->inputs[map->b];
    const kelp_tensor *x_zero = kelp_int8_operand(args, map->a_zero);
    if (x->dtype != KELP_U8 && x->dtype != KELP_I8)
        return kelp_ops_bad_type(args, x->dtype);
    if (w->dtype != KELP_U8 && w->dtype != KELP_I8)
        return kelp_ops_bad_type(args, w->dtype);
    if (x_zero != NULL && x_zero->dtype != x->dtype)
        return kelp_ops_bad_type(args, x_zero->dtype);
    if (x_zero != NULL && kelp_tensor_elements(x_zero) != 1)
        return kelp_ops_bad_shapes(args, x, x_zero, "expected one zero point of the input");
    return NULL;
}

static kelp_status *read_args(kelp_op_args *args, const kelp_int8_operands *map, int32_t *out_rank,
                              int64_t *out_dims) {
    conv_plan *p = args->plan;
    kelp_conv_int8 *conv = &p->conv;
    KELP_TRY(check_types(args, map));
    const kelp_tensor *w = args->inputs[map->b];
    KELP_TRY(kelp_conv_read_shape(args, w, &conv->shape, out_rank, out_dims));
    if (!kelp_conv_int8_weights_shape_of(w, kelp_int8_operand(args, map->b_zero),
                                         conv->shape.groups, &p->weights_shape))
        return kelp_ops_bad_shapes(args, args->inputs[0], w,
                                   "expected one zero point of the weights, or one for each output "
                                   "channel");
    conv->depthwise = p->weights_shape.depthwise;
    return NULL;
}

static kelp_status *reserve(kelp_op_args *args, conv_plan *p, bool packed) {
    size_t bytes, buffer_bytes;
    if (!kelp_conv_int8_reserve(&p->conv, p->algorithm))
        return kelp_conv_too_large(args);
    KELP_TRY(kelp_ops_scratch(args, p->conv.scratch_bytes, 1, &p->scratch));
    if (packed)
        return NULL;
    if (!kelp_conv_int8_packed_size(&p->weights_shape, &bytes, &buffer_bytes))
        return kelp_status_oom();
    KELP_TRY(kelp_ops_scratch(args, 1, bytes, &p->weights));
    return kelp_ops_scratch(args, 1, buffer_bytes, &p->weights_buffer);
}

static kelp_status *conv_reshape(const void *state, kelp_op_args *args) {
    conv_plan *p = args->plan;
    kelp_conv_int8 *conv = &p->conv;
    const kelp_int8_operands *map = operands_of(args->node);
    int64_t dims[KELP_MAX_RANK];
    int32_t rank = 0;
    kelp_dtype dtype = KELP_I32;
    KELP_TRY(read_args(args, map, &rank, dims));
    conv->threads = kelp_op_env_threads(args->env);
    if (!kelp_conv_int8_plan_images(conv))
        return kelp_conv_too_large(args);
    KELP_ASSERT(conv->shape.groups > 0);
    p->algorithm = kelp_conv_int8_choose(conv);
    args->algorithm = p->algorithm->name;
    KELP_TRY(reserve(args, p, state != NULL));
    if (map != &integer_operands) {
        KELP_TRY(kelp_int8_epilogue_plan(args, map, conv->shape.out_channels * conv->shape.groups,
                                         &dtype, &p->finish));
        KELP_TRY(kelp_act_read(args, &p->act));
    }
    return kelp_ops_set(args, 0, dtype, rank, dims);
}

/* ---- invoke ---- */
static void set_weights(const conv_state *state, const kelp_op_args *args,
                        const kelp_int8_operands *map, conv_plan *p) {
    kelp_conv_int8 *conv = &p->conv;
    if (state != NULL) {
        conv->weights = state->weights;
        return;
    }
    kelp_conv_int8_pack(conv->kernels, &p->weights_shape, args->inputs[map->b],
                        kelp_int8_operand(args, map->b_zero), kelp_ops_scratch_at(args, p->weights),
                        kelp_ops_scratch_at(args, p->weights_buffer));
    kelp_conv_int8_packed_view(&p->weights_shape, kelp_ops_scratch_at(args, p->weights),
                               &conv->weights);
}

static kelp_status *conv_invoke(const void *state, kelp_op_args *args) {
    conv_plan *p = args->plan;
    kelp_conv_int8 *conv = &p->conv;
    const kelp_int8_operands *map = operands_of(args->node);
    if (kelp_tensor_elements(args->outputs[0]) == 0)
        return NULL;
    KELP_ASSERT(p->algorithm != NULL && args->scratch != NULL);
    conv->kernels = kelp_int8_kernels_get();
    conv->x = args->inputs[0]->data;
    conv->flip = args->inputs[0]->dtype == KELP_I8 ? 0x80 : 0;
    conv->scratch = kelp_ops_scratch_at(args, p->scratch);
    set_weights(state, args, map, p);
    conv->gemm = (kelp_int8_gemm){
        .a_zero = kelp_int8_zero(kelp_int8_operand(args, map->a_zero), 0) + conv->flip,
        .b = {.k = conv->window_bytes,
              .n = conv->shape.groups * conv->shape.out_channels,
              .balance = conv->weights.balance,
              .zeros = conv->weights.zeros,
              .zero = conv->weights.zero},
        .finish = {.dtype = KELP_I32},
        .y = args->outputs[0]->data,
        .ldy = conv->shape.window.out_size,
        .transposed = true};
    conv->padding = conv->gemm.a_zero; /* which the epilogue may change */
    if (map != &integer_operands) {
        const kelp_tensor *scale = kelp_int8_operand(args, map->a_scale);
        kelp_int8_epilogue_make(args, map, scale != NULL ? kelp_int8_scale(scale, 0) : 1.0f, p->act,
                                p->finish, &conv->gemm);
    }
    kelp_conv_int8_run(args->env, p->algorithm, conv);
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
