/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of envelopes and tensors, for senders and receivers. kelp/wire.h describes it. */
#ifndef KELP_REMOTE_RPC_RPC_H_
#define KELP_REMOTE_RPC_RPC_H_

#include "base/assert.h"

#include <kelp/wire.h>

#include <string.h>

#define WIRE_VERSION 1
#define ENVELOPE_HEAD_BYTES 40u
#define FILL_ENTRY_BYTES 24u
#define TENSOR_HEAD_BYTES 24u /* before the dimensions */
/* Alignment of a fill's memory and of the elements after a tensor's head. */
#define WIRE_ALIGNMENT 64u

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "envelopes are read and written in place on little-endian machines only"
#endif

static inline uint64_t wire_get(const void *bytes, size_t size) {
    uint64_t value = 0;
    KELP_ASSERT(size <= sizeof value);
    memcpy(&value, bytes, size);
    return value;
}

static inline void wire_put(void *bytes, uint64_t value, size_t size) {
    KELP_ASSERT(size == sizeof value || value >> (8 * size) == 0); /* limits were checked */
    memcpy(bytes, &value, size);
}

/* Returns the size of a tensor's head, which precedes the elements. */
static inline size_t wire_tensor_head(int32_t rank) {
    KELP_ASSERT(rank >= 0 && rank <= KELP_MAX_RANK);
    size_t bytes = TENSOR_HEAD_BYTES + 8 * (size_t)rank;
    return (bytes + WIRE_ALIGNMENT - 1) / WIRE_ALIGNMENT * WIRE_ALIGNMENT;
}

/* Creates a status whose message begins with the name of the kind. */
#define WIRE_ERROR(kind, code, format, ...) \
    KELP_ERROR((code), "%s: " format, kelp_wire_kind_name(kind), __VA_ARGS__)

#endif
