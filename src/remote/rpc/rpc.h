/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of envelopes and tensors, for both ends (kelp/wire.h describes it). */
#ifndef KELP_REMOTE_RPC_RPC_H_
#define KELP_REMOTE_RPC_RPC_H_

#include <kelp/wire.h>

#include <string.h>

#define WIRE_VERSION 1
#define ENVELOPE_HEAD_BYTES 40u
#define FILL_ENTRY_BYTES 24u
#define TENSOR_HEAD_BYTES 24u /* before the extents */
/* A fill's memory: elements behind the head are then where kernels want them. */
#define WIRE_ALIGNMENT 64u
/* Fills are aligned blocks, also if their owner is a provider. */

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "envelopes are written and read in place by little-endian machines"
#endif

static inline uint64_t wire_get(const void *bytes, size_t size) {
    uint64_t value = 0;
    memcpy(&value, bytes, size);
    return value;
}

static inline void wire_put(void *bytes, uint64_t value, size_t size) {
    memcpy(bytes, &value, size);
}

/* Bytes of a tensor before its elements. */
static inline size_t wire_tensor_head(int32_t rank) {
    size_t bytes = TENSOR_HEAD_BYTES + 8 * (size_t)rank;
    return (bytes + WIRE_ALIGNMENT - 1) / WIRE_ALIGNMENT * WIRE_ALIGNMENT;
}

/* A failure whose message begins with the kind's name. */
#define WIRE_ERROR(kind, code, format, ...) \
    KELP_ERROR((code), "%s: " format, kelp_wire_kind_name(kind), __VA_ARGS__)

#endif
