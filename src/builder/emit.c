/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for layers: emit nodes and constants, and check inputs. */
#include "builder/emit.h"

#include "tensor/convert.h"

#include <stdio.h>
#include <string.h>

const kelp_emit_fn kelp_emit_table[KELP_LAYER_TYPE_COUNT] = {
#define KELP_LAYER(name, text) [KELP_LAYER_##name] = kelp_emit_##name,
#include <kelp/layers.inc>
#undef KELP_LAYER
};

/* ---- nodes ---- */
static kelp_arena *arena_of(kelp_emit *e) {
    return &e->block->graph->arena;
}

static kelp_status *new_value(kelp_emit *e, kelp_value **out) {
    const char *name =
        kelp_arena_printf(arena_of(e), "%s.%zu", e->layer->name, e->block->value_count);
    return name != NULL ? kelp_block_add_value(e->block, name, out) : kelp_status_oom();
}

kelp_status *kelp_emit_nodes(kelp_emit *e, const kelp_operator *op, kelp_value *const *inputs,
                             size_t input_count, kelp_value **out_values, size_t output_count,
                             kelp_node **out_node) {
    const char *name = kelp_arena_strndup(arena_of(e), e->layer->name, strlen(e->layer->name));
    kelp_value **values = KELP_ARENA_ARRAY(arena_of(e), output_count + 1, kelp_value *);
    if (name == NULL || values == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < output_count; i++)
        KELP_TRY(new_value(e, &values[i]));
    while (input_count > 0 && inputs[input_count - 1] == NULL)
        input_count--;
    int64_t version = kelp_operator_is_onnx(op) ? KELP_BUILDER_OPSET : 1;
    KELP_TRY(kelp_block_add_node(e->block, op, version, name, inputs, input_count, values,
                                 output_count, NULL, out_node));
    /* written last: an output may replace the input that it is computed from */
    memcpy(out_values, values, output_count * sizeof *values);
    return NULL;
}

kelp_status *kelp_emit_node(kelp_emit *e, const kelp_operator *op, kelp_value *const *inputs,
                            size_t input_count, kelp_value **out_value, kelp_node **out_node) {
    return kelp_emit_nodes(e, op, inputs, input_count, out_value, 1, out_node);
}

/* ---- constants ---- */
static kelp_status *constant(kelp_emit *e, const char *name, kelp_dtype dtype, int32_t rank,
                             const int64_t *shape, void *data, kelp_value **out) {
    kelp_value *value = NULL;
    kelp_tensor *tensor = KELP_ARENA_NEW(arena_of(e), kelp_tensor);
    if (tensor == NULL)
        return kelp_status_oom();
    KELP_TRY(kelp_tensor_init(tensor, dtype, rank, shape, data));
    if (name != NULL)
        KELP_TRY(kelp_block_add_value(e->block, name, &value));
    else
        KELP_TRY(new_value(e, &value));
    value->kind = KELP_VALUE_TENSOR;
    value->is_generated = name == NULL;
    value->constant = tensor;
    value->dtype = dtype;
    value->rank = rank;
    memcpy(value->shape, tensor->shape, sizeof value->shape);
    *out = value;
    return NULL;
}

kelp_status *kelp_emit_i64s(kelp_emit *e, const int64_t *values, size_t count, kelp_value **out) {
    KELP_ASSERT(count <= 2 * KELP_MAX_RANK); /* axes, shapes or pairs of them */
    int64_t *copy = KELP_ARENA_ARRAY(arena_of(e), count + 1, int64_t);
    int64_t shape = (int64_t)count;
    if (copy == NULL)
        return kelp_status_oom();
    if (count > 0)
        memcpy(copy, values, count * sizeof *values);
    return constant(e, NULL, KELP_I64, 1, &shape, copy, out);
}

kelp_status *kelp_emit_i64(kelp_emit *e, int64_t value, kelp_value **out) {
    int64_t *copy = KELP_ARENA_NEW(arena_of(e), int64_t);
    if (copy == NULL)
        return kelp_status_oom();
    *copy = value;
    return constant(e, NULL, KELP_I64, 0, NULL, copy, out);
}

kelp_status *kelp_emit_scalar(kelp_emit *e, kelp_dtype dtype, double value, kelp_value **out) {
    union {
        double f64;
        float f32;
        int64_t i64;
        int32_t i32;
        uint16_t u16;
        uint8_t u8;
    } *data = kelp_arena_alloc(arena_of(e), 8, 8);
    if (data == NULL)
        return kelp_status_oom();
    switch (dtype) {
    case KELP_F64:
        data->f64 = value;
        break;
    case KELP_F32:
        data->f32 = (float)value;
        break;
    case KELP_F16:
        data->u16 = kelp_f32_to_f16((float)value);
        break;
    case KELP_BF16:
        data->u16 = kelp_f32_to_bf16((float)value);
        break;
    case KELP_I64:
    case KELP_U64:
        data->i64 = (int64_t)value;
        break;
    case KELP_I32:
    case KELP_U32:
        data->i32 = (int32_t)value;
        break;
    case KELP_BOOL:
    case KELP_I8:
    case KELP_U8:
        data->u8 = (uint8_t)(int)value;
        break;
    default:
        return kelp_emit_fail(e, "constants of type %s are not supported here",
                              kelp_dtype_name(dtype));
    }
    return constant(e, NULL, dtype, 0, NULL, data, out);
}

kelp_status *kelp_emit_weights(kelp_emit *e, const kelp_weights *weights, const char *role,
                               int32_t rank, const int64_t *shape, kelp_value **out) {
    int64_t count = 0;
    char found[160];
    kelp_shape_format(rank, shape, found, sizeof found);
    if (!kelp_shape_elements(rank, shape, &count))
        return kelp_emit_fail(e, "%s: shape %s is too large or unknown", role, found);
    if (weights->count != count || (weights->data == NULL && count > 0))
        return kelp_emit_fail(e, "%s: shape %s needs %lld weights, found %lld%s", role, found,
                              (long long)count, (long long)weights->count,
                              weights->data == NULL ? " without data" : "");
    const char *name = weights->name != NULL
                           ? kelp_arena_strndup(arena_of(e), weights->name, strlen(weights->name))
                           : kelp_arena_printf(arena_of(e), "%s.%s", e->layer->name, role);
    if (name == NULL)
        return kelp_status_oom();
    void *data = NULL;
    memcpy(&data, &weights->data, sizeof data); /* casts const away: constants are not written */
    return constant(e, name, weights->dtype, rank, shape, data, out);
}

kelp_status *kelp_emit_cast(kelp_emit *e, kelp_value *value, kelp_dtype to, kelp_value **out) {
    kelp_node *node = NULL;
    KELP_ASSERT(value != NULL);
    if (value->dtype == to) {
        *out = value;
        return NULL;
    }
    KELP_TRY(kelp_emit_node(e, KELP_OP(Cast), &value, 1, out, &node));
    return kelp_node_set_i64(node, "to", to);
}

bool kelp_emit_is_float(kelp_dtype dtype) {
    return dtype == KELP_F32 || dtype == KELP_F16 || dtype == KELP_BF16 || dtype == KELP_F64;
}

/* ---- checks ---- */
kelp_status *kelp_emit_fail(const kelp_emit *e, const char *format, ...) {
    char text[640];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return kelp_layer_error(e->layer, "%s", text);
}

static const char *input_name(const kelp_emit *e, size_t input) {
    KELP_ASSERT(input < e->layer->input_count && e->layer->inputs[input] != NULL);
    return e->layer->inputs[input]->name;
}

static const char *show(const kelp_value *value, char *buffer, size_t capacity) {
    kelp_shape_format(value->rank, value->shape, buffer, capacity);
    return buffer;
}

kelp_status *kelp_emit_check_rank(const kelp_emit *e, size_t input, int32_t min_rank,
                                  int32_t max_rank) {
    const kelp_value *value = e->inputs[input];
    KELP_ASSERT(value != NULL && min_rank <= max_rank);
    char found[160];
    if (value->rank < 0 || (value->rank >= min_rank && value->rank <= max_rank))
        return NULL;
    if (min_rank == max_rank)
        return kelp_emit_fail(e, "'%s' must have %d dimensions, found %s", input_name(e, input),
                              min_rank, show(value, found, sizeof found));
    if (max_rank >= KELP_MAX_RANK)
        return kelp_emit_fail(e, "'%s' must have at least %d dimensions, found %s",
                              input_name(e, input), min_rank, show(value, found, sizeof found));
    return kelp_emit_fail(e, "'%s' must have %d to %d dimensions, found %s", input_name(e, input),
                          min_rank, max_rank, show(value, found, sizeof found));
}

kelp_status *kelp_emit_check_shape(const kelp_emit *e, const kelp_shape *shape, const char *what) {
    if (shape->rank >= 0 && shape->rank <= KELP_MAX_RANK)
        return NULL;
    return kelp_emit_fail(e, "%s: expected 0 to %d dimensions, found %d", what, KELP_MAX_RANK,
                          shape->rank);
}

kelp_status *kelp_emit_check_axis(const kelp_emit *e, size_t input, int32_t axis) {
    const kelp_value *value = e->inputs[input];
    char found[160];
    if (axis >= 0 && axis < KELP_MAX_RANK && (value->rank < 0 || axis < value->rank))
        return NULL;
    return kelp_emit_fail(e, "axis %d is out of range for '%s' of shape %s", axis,
                          input_name(e, input), show(value, found, sizeof found));
}

kelp_status *kelp_emit_check_float(const kelp_emit *e, size_t input) {
    kelp_dtype found = e->inputs[input]->dtype;
    if (kelp_emit_is_float(found) || found == KELP_DTYPE_INVALID)
        return NULL;
    return kelp_emit_fail(e, "'%s' must be of a floating-point type, found %s",
                          input_name(e, input), kelp_dtype_name(found));
}

kelp_status *kelp_emit_check_dtype(const kelp_emit *e, size_t input, kelp_dtype dtype) {
    kelp_dtype found = e->inputs[input]->dtype;
    if (found == dtype || found == KELP_DTYPE_INVALID)
        return NULL;
    return kelp_emit_fail(e, "'%s' must be of type %s, found %s", input_name(e, input),
                          kelp_dtype_name(dtype), kelp_dtype_name(found));
}

kelp_status *kelp_emit_check_index(const kelp_emit *e, size_t input) {
    kelp_dtype found = e->inputs[input]->dtype;
    if (found == KELP_I32 || found == KELP_I64 || found == KELP_DTYPE_INVALID)
        return NULL;
    return kelp_emit_fail(e, "'%s' must be of type int32 or int64, found %s", input_name(e, input),
                          kelp_dtype_name(found));
}

kelp_status *kelp_emit_check_same_dtype(const kelp_emit *e, size_t a, size_t b) {
    kelp_dtype first = e->inputs[a]->dtype, second = e->inputs[b]->dtype;
    if (first == second || first == KELP_DTYPE_INVALID || second == KELP_DTYPE_INVALID)
        return NULL;
    return kelp_emit_fail(e, "'%s' and '%s' must have the same type, found %s and %s",
                          input_name(e, a), input_name(e, b), kelp_dtype_name(first),
                          kelp_dtype_name(second));
}

kelp_status *kelp_emit_check_broadcast(const kelp_emit *e, size_t a, size_t b) {
    const kelp_value *x = e->inputs[a], *y = e->inputs[b];
    KELP_ASSERT(x != NULL && y != NULL);
    char first[160], second[160];
    if (x->rank < 0 || y->rank < 0)
        return NULL;
    bool fits = x->rank == y->rank;
    for (int32_t i = 0; fits && i < x->rank; i++)
        fits = x->shape[i] < 0 || y->shape[i] < 0 || x->shape[i] == y->shape[i] ||
               x->shape[i] == 1 || y->shape[i] == 1;
    if (fits)
        return NULL;
    return kelp_emit_fail(e,
                          "shape %s of '%s' and shape %s of '%s' do not broadcast: ranks must be "
                          "equal, and dimensions equal or 1",
                          show(x, first, sizeof first), input_name(e, a),
                          show(y, second, sizeof second), input_name(e, b));
}
