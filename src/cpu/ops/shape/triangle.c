/* SPDX-License-Identifier: Apache-2.0 */
/* Trilu, EyeLike, NonZero. Source: ONNX operator specification. */
#include "base/assert.h"
#include "cpu/ops/kernel.h"

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

/* ---- Trilu ---- */
static kelp_status *trilu_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    if (x->rank < 2)
        return kelp_ops_bad_shapes(args, x, NULL, "expected matrices");
    if (kelp_ops_element_bytes(x->dtype) == 0 || x->dtype == KELP_STRING)
        return kelp_ops_bad_type(args, x->dtype);
    return kelp_ops_set_like(args, 0, x);
}
static kelp_status *trilu_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0], *y = args->outputs[0], *shift = kelp_ops_in(args, 1);
    size_t size = kelp_ops_element_bytes(x->dtype);
    int64_t rows = x->shape[x->rank - 2], columns = x->shape[x->rank - 1];
    int64_t k = shift != NULL && kelp_tensor_elements(shift) == 1 ? kelp_ops_read_i64(shift, 0) : 0;
    bool upper = kelp_node_attr_i64(args->node, "upper", 1) != 0;
    int64_t all = columns > 0 ? kelp_tensor_elements(x) / columns : 0;
    (void)state;
    k = clamp(k, -rows - 1, columns + 1);
    for (int64_t r = 0; r < all; r++) {
        const char *from = (const char *)x->data + (size_t)(r * columns) * size;
        char *to = (char *)y->data + (size_t)(r * columns) * size;
        int64_t split = clamp(r % rows + k + (upper ? 0 : 1), 0, columns);
        size_t head = (size_t)split * size, tail = (size_t)(columns - split) * size;
        if (upper) {
            memset(to, 0, head);
            memmove(to + head, from + head, tail);
        } else {
            memmove(to, from, head);
            memset(to + head, 0, tail);
        }
    }
    return NULL;
}
KELP_KERNEL(Trilu, KELP_OP_INPLACE_0, 0, 1, trilu_reshape, trilu_invoke);

/* ---- EyeLike ---- */
static kelp_status *eye_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    kelp_dtype dtype = kelp_ops_attr_dtype(args->node, "dtype", (int64_t)x->dtype);
    size_t size = kelp_ops_element_bytes(dtype);
    if (x->rank != 2)
        return kelp_ops_bad_shapes(args, x, NULL, "expected a matrix");
    if (size == 0 || size > 8)
        return kelp_ops_bad_type(args, dtype);
    return kelp_ops_set(args, 0, dtype, 2, x->shape);
}
static kelp_status *eye_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *y = args->outputs[0];
    int64_t k = kelp_node_attr_i64(args->node, "k", 0);
    size_t size = kelp_ops_element_bytes(y->dtype);
    char one[8] = {1};
    (void)state;
    if (y->dtype == KELP_F32)
        memcpy(one, &(float){1}, 4);
    else if (y->dtype == KELP_F64)
        memcpy(one, &(double){1}, 8);
    else if (y->dtype == KELP_F16 || y->dtype == KELP_BF16)
        memcpy(one, &(uint16_t){y->dtype == KELP_F16 ? 0x3c00 : 0x3f80}, 2);
    memset(y->data, 0, kelp_tensor_bytes(y));
    for (int64_t i = 0; i < y->shape[0]; i++)
        if (k < y->shape[1] && k > -y->shape[0] && i + k >= 0 && i + k < y->shape[1])
            memcpy((char *)y->data + (size_t)(i * y->shape[1] + i + k) * size, one, size);
    return NULL;
}
KELP_KERNEL(EyeLike, KELP_OP_SHAPE_ONLY, 0, 1, eye_reshape, eye_invoke);

/* ---- NonZero ---- */
static bool is_nonzero(const kelp_tensor *x, int64_t i) {
    if (x->dtype == KELP_STRING)
        return ((const kelp_string *)x->data)[i].length > 0;
    if (x->dtype == KELP_C64)
        return ((const float *)x->data)[2 * i] != 0 || ((const float *)x->data)[2 * i + 1] != 0;
    if (x->dtype == KELP_C128)
        return ((const double *)x->data)[2 * i] != 0 || ((const double *)x->data)[2 * i + 1] != 0;
    return kelp_ops_is_float(x->dtype) ? kelp_ops_read_f64(x, i) != 0
                                       : kelp_ops_read_i64(x, i) != 0;
}
/* Elements that are tested at a time. */
#define BLOCK 512

#define TEST(dtype, type)                                 \
    case dtype: {                                         \
        const type *from = (const type *)x->data + first; \
        for (int64_t i = 0; i < count; i++)               \
            flags[i] = from[i] != 0;                      \
        return;                                           \
    }
/* Sets flags[i] to 1 if element first + i is not zero, else to 0; count <= BLOCK. */
static void test_block(const kelp_tensor *x, int64_t first, int64_t count, uint8_t *flags) {
    switch (x->dtype) {
        TEST(KELP_F32, float)
        TEST(KELP_F64, double)
        TEST(KELP_BOOL, uint8_t)
        TEST(KELP_U8, uint8_t)
        TEST(KELP_I8, uint8_t)
        TEST(KELP_I32, uint32_t)
        TEST(KELP_I64, uint64_t)
    default:
        for (int64_t i = 0; i < count; i++)
            flags[i] = is_nonzero(x, first + i);
    }
}

static kelp_status *nonzero_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    if (kelp_ops_defer(args, 0))
        return NULL;
    const kelp_tensor *x = args->inputs[0];
    if (kelp_ops_element_bytes(x->dtype) == 0)
        return kelp_ops_bad_type(args, x->dtype);
    int64_t all = kelp_tensor_elements(x), shape[2] = {x->rank, 0};
    uint8_t flags[BLOCK];
    for (int64_t i = 0; i < all; i += BLOCK) {
        int64_t count = KELP_MIN((int64_t)BLOCK, all - i);
        test_block(x, i, count, flags);
        for (int64_t k = 0; k < count; k++)
            shape[1] += flags[k];
    }
    return kelp_ops_set(args, 0, KELP_I64, 2, shape);
}

/* Writes the columns of elements of one row, from `found` on; returns the next column. */
static int64_t put_row(const kelp_tensor *x, int64_t row, int64_t width, const kelp_tensor *y,
                       int64_t found) {
    int64_t at[KELP_MAX_RANK] = {0}, *out = y->data, columns = y->shape[1], rest = row;
    uint8_t flags[BLOCK];
    for (int32_t k = x->rank - 2; k >= 0; k--) {
        at[k] = rest % x->shape[k];
        rest /= x->shape[k];
    }
    for (int64_t i = 0; i < width; i += BLOCK) {
        int64_t count = KELP_MIN((int64_t)BLOCK, width - i);
        test_block(x, row * width + i, count, flags);
        for (int64_t k = 0; k < count; k++) {
            if (flags[k] == 0)
                continue;
            KELP_ASSERT(found < columns);
            for (int32_t axis = 0; axis < x->rank - 1; axis++)
                out[axis * columns + found] = at[axis];
            if (x->rank > 0)
                out[(x->rank - 1) * columns + found] = i + k;
            found++;
        }
    }
    return found;
}

static kelp_status *nonzero_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0];
    int64_t width = x->rank > 0 ? x->shape[x->rank - 1] : 1, found = 0;
    int64_t rows = width > 0 ? kelp_tensor_elements(x) / width : 0;
    (void)state;
    for (int64_t row = 0; row < rows; row++)
        found = put_row(x, row, width, args->outputs[0], found);
    return NULL;
}
KELP_KERNEL(NonZero, 0, 0, 0, nonzero_reshape, nonzero_invoke);
