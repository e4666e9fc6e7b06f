/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft MurmurHash3: a 32-bit hash of each element. Source: ONNX Runtime,
 * ContribOperators.md; Appleby, MurmurHash3_x86_32. */
#include "base/assert.h"
#include "cpu/ops/kernel.h"

static uint32_t rotate(uint32_t x, int bits) {
    return x << bits | x >> (32 - bits);
}

static uint32_t mix_block(uint32_t block) {
    return rotate(block * 0xcc9e2d51u, 15) * 0x1b873593u;
}

static uint32_t murmur(const uint8_t *data, size_t size, uint32_t hash) {
    size_t i = 0;
    for (; i + 4 <= size; i += 4) {
        uint32_t block = data[i] | (uint32_t)data[i + 1] << 8 | (uint32_t)data[i + 2] << 16 |
                         (uint32_t)data[i + 3] << 24;
        hash = rotate(hash ^ mix_block(block), 13) * 5 + 0xe6546b64u;
    }
    uint32_t rest = 0;
    for (size_t k = i; k < size; k++)
        rest |= (uint32_t)data[k] << 8 * (k - i);
    if (i < size)
        hash ^= mix_block(rest);
    hash ^= (uint32_t)size;
    hash = (hash ^ hash >> 16) * 0x85ebca6bu;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
    return hash ^ hash >> 16;
}

static kelp_status *hash_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    bool positive = kelp_node_attr_i64(args->node, "positive", 1) != 0;
    switch (x->dtype) {
    case KELP_STRING:
    case KELP_I32:
    case KELP_U32:
    case KELP_I64:
    case KELP_U64:
    case KELP_F32:
    case KELP_F64:
        return kelp_ops_set(args, 0, positive ? KELP_U32 : KELP_I32, x->rank, x->shape);
    default:
        return kelp_ops_bad_type(args, x->dtype);
    }
}

static void hash_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_op_args *args = userp;
    const kelp_tensor *x = args->inputs[0];
    uint32_t seed = (uint32_t)kelp_node_attr_i64(args->node, "seed", 0);
    uint32_t *y = args->outputs[0]->data;
    size_t size = kelp_ops_element_bytes(x->dtype);
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        if (x->dtype == KELP_STRING) {
            const kelp_string *text = (const kelp_string *)x->data + i;
            y[i] = murmur((const uint8_t *)text->data, text->length, seed);
        } else {
            y[i] = murmur((const uint8_t *)x->data + (size_t)i * size, size, seed);
        }
    }
}

static kelp_status *hash_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_ASSERT(kelp_tensor_elements(args->inputs[0]) == kelp_tensor_elements(args->outputs[0]));
    kelp_op_parallel(args->env, kelp_tensor_elements(args->inputs[0]), KELP_GRAIN_ELEMENTS / 8,
                     hash_range, args);
    return NULL;
}
KELP_KERNEL(MsMurmurHash3, 0, 0, 0, hash_reshape, hash_invoke);
