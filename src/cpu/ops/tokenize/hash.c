/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ai.onnx.contrib StringEqual, StringToHashBucket and StringToHashBucketFast. Source:
 * onnxruntime-extensions, docs/custom_ops.md.
 */
#include "cpu/ops/tokenize/tokenize.h"

/* ---- StringEqual ---- */
/* The operand with more elements has the shape of the result. The axes of the other one are aligned
 * with its first axes, and have its dimension or 1. */
static kelp_status *equal_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    KELP_TRY(kelp_text_check(args, 2, KELP_STRING));
    const kelp_tensor *a = args->inputs[0], *b = args->inputs[1];
    bool first = kelp_tensor_elements(a) >= kelp_tensor_elements(b);
    const kelp_tensor *large = first ? a : b, *small = first ? b : a;
    bool fits = small->rank <= large->rank;
    for (int32_t i = 0; fits && i < small->rank; i++)
        fits = small->shape[i] == 1 || small->shape[i] == large->shape[i];
    if (!fits)
        return kelp_ops_bad_shapes(args, a, b, "the shapes do not broadcast from the first axis");
    return kelp_ops_set(args, 0, KELP_BOOL, large->rank, large->shape);
}

static kelp_status *equal_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *a = args->inputs[0], *b = args->inputs[1];
    bool first = kelp_tensor_elements(a) >= kelp_tensor_elements(b);
    const kelp_tensor *large = first ? a : b, *small = first ? b : a;
    int64_t index[KELP_MAX_RANK] = {0}, at = 0, strides[KELP_MAX_RANK] = {0}, stride = 1;
    uint8_t *y = args->outputs[0]->data;
    (void)state;
    for (int32_t i = small->rank - 1; i >= 0; i--) {
        strides[i] = small->shape[i] == 1 ? 0 : stride;
        stride *= small->shape[i];
    }
    for (int64_t i = 0; i < kelp_tensor_elements(large); i++) {
        kelp_str left = kelp_text_of((const kelp_string *)large->data + i);
        kelp_str right = kelp_text_of((const kelp_string *)small->data + at);
        y[i] = left.length == right.length && memcmp(left.data, right.data, left.length) == 0;
        for (int32_t axis = large->rank - 1; axis >= 0; axis--) {
            at += strides[axis];
            if (++index[axis] < large->shape[axis])
                break;
            at -= strides[axis] * large->shape[axis];
            index[axis] = 0;
        }
    }
    return NULL;
}
KELP_KERNEL(StringEqual, KELP_OP_SERIAL, 0, 0, equal_reshape, equal_invoke);

/* ---- hashes: MurmurHash64A ---- */
#define FACTOR UINT64_C(0xc6a4a7935bd1e995)
#define SEED UINT64_C(0xdecafcaffe)    /* of TensorFlow */
#define SEED_FAST UINT64_C(0xc70f6907) /* of std::hash in libstdc++ */

static uint64_t mix(uint64_t value) {
    return value ^ value >> 47;
}

/* Reads up to 8 bytes, the first one as the lowest. */
static uint64_t read_bytes(const char *from, size_t count) {
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value |= (uint64_t)(uint8_t)from[i] << 8 * i;
    return value;
}

/* onnxruntime-extensions multiplies once more for a length that is a multiple of 8
 * (`multiplies_empty_rest`). */
static uint64_t hash(kelp_str text, uint64_t seed, bool multiplies_empty_rest) {
    uint64_t value = seed ^ text.length * FACTOR;
    size_t rest = text.length % 8, at = 0;
    for (; at < text.length - rest; at += 8)
        value = (value ^ mix(read_bytes(text.data + at, 8) * FACTOR) * FACTOR) * FACTOR;
    if (rest > 0 || multiplies_empty_rest)
        value = (value ^ read_bytes(text.data + at, rest)) * FACTOR;
    return mix(mix(value) * FACTOR);
}

static kelp_status *bucket_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    KELP_TRY(kelp_text_check(args, 1, KELP_STRING));
    const kelp_tensor *count = args->inputs[1];
    if (count->dtype != KELP_I64)
        return kelp_ops_bad_type(args, count->dtype);
    if (kelp_tensor_elements(count) != 1)
        return kelp_ops_bad_shapes(args, count, NULL, "expected one number of buckets");
    return kelp_ops_set(args, 0, KELP_I64, args->inputs[0]->rank, args->inputs[0]->shape);
}

static kelp_status *bucket(kelp_op_args *args, uint64_t seed, bool multiplies_empty_rest) {
    const kelp_string *x = args->inputs[0]->data;
    int64_t *y = args->outputs[0]->data, count = *(const int64_t *)args->inputs[1]->data;
    if (count <= 0)
        return KELP_TEXT_ERROR(args->node,
                               "input 1, the number of buckets, is out of range: expected more "
                               "than 0, found %lld",
                               (long long)count);
    for (int64_t i = 0; i < kelp_tensor_elements(args->inputs[0]); i++)
        y[i] = (int64_t)(hash(kelp_text_of(&x[i]), seed, multiplies_empty_rest) % (uint64_t)count);
    return NULL;
}

static kelp_status *bucket_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    return bucket(args, SEED, true);
}
KELP_KERNEL(StringToHashBucket, KELP_OP_SERIAL, 0, 0, bucket_reshape, bucket_invoke);

static kelp_status *fast_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    return bucket(args, SEED_FAST, false);
}
KELP_KERNEL(StringToHashBucketFast, KELP_OP_SERIAL, 0, 0, bucket_reshape, fast_invoke);
