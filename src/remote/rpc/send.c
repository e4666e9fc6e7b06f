/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes envelopes. Heads and tables are written; elements are sent in place. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/checked.h"
#include "remote/rpc/rpc.h"

struct kelp_envelope {
    kelp_allocator allocator;
    kelp_arena arena;
    kelp_span *spans;
    size_t span_count;
    size_t size_bytes;
};

static kelp_status *exceeds(const char *what, size_t found, size_t limit) {
    return KELP_ERROR(KELP_OUT_OF_RANGE, "the envelope exceeds the limit of %s: %zu of at most %zu",
                      what, found, limit);
}

static void add_span(kelp_envelope *e, const void *data, size_t size_bytes) {
    if (size_bytes > 0)
        e->spans[e->span_count++] = (kelp_span){data, size_bytes};
    e->size_bytes += size_bytes;
}

/* Encodes strings: descriptors with offsets, then the text. */
static kelp_status *encode_strings(kelp_envelope *e, const kelp_tensor *tensor,
                                   kelp_span *out_content) {
    const kelp_string *strings = tensor->data;
    size_t count = (size_t)kelp_tensor_elements(tensor), bytes = kelp_tensor_bytes(tensor);
    for (size_t i = 0; i < count; i++)
        if (!kelp_size_add(bytes, strings[i].length, &bytes))
            return kelp_status_oom();
    char *content = kelp_arena_alloc(&e->arena, bytes + 1, 8);
    if (content == NULL)
        return kelp_status_oom();
    size_t at = kelp_tensor_bytes(tensor);
    for (size_t i = 0; i < count; i++) {
        wire_put(content + i * sizeof(kelp_string), at, 8);
        wire_put(content + i * sizeof(kelp_string) + 8, strings[i].length, 8);
        if (strings[i].length > 0)
            memcpy(content + at, strings[i].data, strings[i].length);
        at += strings[i].length;
    }
    *out_content = (kelp_span){content, bytes};
    return NULL;
}

static kelp_status *encode_tensor(kelp_envelope *e, const kelp_tensor *tensor, size_t *out_bytes) {
    if (!kelp_tensor_is_compact(tensor) || tensor->device.device_type > kDLCPU ||
        tensor->dtype == KELP_LIST || kelp_dtype_bits(tensor->dtype) == 0)
        return KELP_ERROR(
            KELP_UNIMPLEMENTED,
            "cannot send a tensor of %s: expected a compact tensor in host memory, and not a list",
            kelp_dtype_name(tensor->dtype));
    KELP_ASSERT(tensor->rank >= 0 && tensor->rank <= KELP_MAX_RANK);
    size_t head_bytes = wire_tensor_head(tensor->rank);
    char *head = kelp_arena_alloc(&e->arena, head_bytes, 8);
    if (head == NULL)
        return kelp_status_oom();
    kelp_span content = {tensor->data, kelp_tensor_bytes(tensor)};
    if (tensor->dtype == KELP_STRING)
        KELP_TRY(encode_strings(e, tensor, &content));
    memset(head, 0, head_bytes);
    memcpy(head, "KTEN", 4);
    wire_put(head + 4, WIRE_VERSION, 2);
    wire_put(head + 6, (uint64_t)tensor->rank, 2);
    wire_put(head + 8, (uint64_t)tensor->dtype, 4);
    wire_put(head + 12, head_bytes, 4);
    wire_put(head + 16, content.size_bytes, 8);
    memcpy(head + TENSOR_HEAD_BYTES, tensor->shape, (size_t)tensor->rank * 8);
    add_span(e, head, head_bytes);
    add_span(e, content.data, content.size_bytes);
    *out_bytes = head_bytes + content.size_bytes;
    return NULL;
}

static kelp_status *encode_fill(kelp_envelope *e, const kelp_envelope_fill *fill, char *entry,
                                const kelp_wire_caps *caps) {
    size_t bytes = fill->size_bytes;
    uint64_t hash = fill->type_hash;
    if (fill->tensor != NULL)
        KELP_TRY(encode_tensor(e, fill->tensor, &bytes));
    else
        add_span(e, fill->data, bytes);
    if (fill->tensor != NULL && hash == 0)
        hash = kelp_type_of_tensor(fill->tensor->dtype);
    if (bytes > caps->fill_bytes)
        return exceeds("bytes of a fill", bytes, caps->fill_bytes);
    wire_put(entry, fill->slot, 4);
    wire_put(entry + 4, 0, 4);
    wire_put(entry + 8, hash, 8);
    wire_put(entry + 16, bytes, 8);
    return NULL;
}

static kelp_status *check_parts(const kelp_envelope_parts *parts, const kelp_wire_caps *caps,
                                size_t *out_address_bytes) {
    *out_address_bytes = 0;
    if (parts->fill_count > caps->fills)
        return exceeds("fills", parts->fill_count, caps->fills);
    if (parts->suffix_bytes > caps->suffix_bytes)
        return exceeds("bytes of the suffix", parts->suffix_bytes, caps->suffix_bytes);
    if (parts->address_count > KELP_MIN(caps->addresses, UINT16_MAX))
        return exceeds("addresses", parts->address_count, KELP_MIN(caps->addresses, UINT16_MAX));
    for (size_t i = 0; i < parts->address_count; i++) {
        if (parts->addresses[i].length > KELP_MIN(caps->address_bytes, UINT16_MAX))
            return exceeds("bytes of an address", parts->addresses[i].length,
                           KELP_MIN(caps->address_bytes, UINT16_MAX));
        *out_address_bytes += 2 + parts->addresses[i].length;
    }
    return NULL;
}

static kelp_status *encode(kelp_envelope *e, const kelp_envelope_parts *parts,
                           const kelp_wire_caps *caps) {
    size_t address_bytes = 0;
    KELP_TRY(check_parts(parts, caps, &address_bytes));
    size_t front = ENVELOPE_HEAD_BYTES + address_bytes + parts->suffix_bytes +
                   parts->fill_count * FILL_ENTRY_BYTES;
    char *head = kelp_arena_alloc(&e->arena, front, 8);
    e->spans = KELP_ARENA_ARRAY(&e->arena, 1 + 2 * parts->fill_count, kelp_span);
    if (head == NULL || e->spans == NULL)
        return kelp_status_oom();
    memset(head, 0, ENVELOPE_HEAD_BYTES);
    memcpy(head, "KENV", 4);
    wire_put(head + 4, WIRE_VERSION, 2);
    wire_put(head + 6, parts->address_count, 2);
    wire_put(head + 8, parts->fill_count, 4);
    wire_put(head + 12, parts->suffix_bytes, 4);
    wire_put(head + 16, address_bytes, 4);
    wire_put(head + 32, parts->correlation, 8);
    char *at = head + ENVELOPE_HEAD_BYTES;
    for (size_t i = 0; i < parts->address_count; i++) {
        const kelp_string *address = &parts->addresses[i];
        wire_put(at, address->length, 2);
        if (address->length > 0)
            memcpy(at + 2, address->data, address->length);
        at += 2 + address->length;
    }
    if (parts->suffix_bytes > 0)
        memcpy(at, parts->suffix, parts->suffix_bytes);
    at += parts->suffix_bytes;
    add_span(e, head, front);
    for (size_t i = 0; i < parts->fill_count; i++)
        KELP_TRY(encode_fill(e, &parts->fills[i], at + i * FILL_ENTRY_BYTES, caps));
    if (e->size_bytes > caps->envelope_bytes)
        return exceeds("its bytes", e->size_bytes, caps->envelope_bytes);
    wire_put(head + 24, e->size_bytes, 8);
    return NULL;
}

kelp_status *kelp_envelope_create(kelp_allocator allocator, const kelp_envelope_parts *parts,
                                  kelp_envelope **out) {
    kelp_wire_caps caps = parts->caps != NULL ? *parts->caps : kelp_wire_caps_default();
    kelp_envelope *envelope = NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_envelope, &envelope));
    envelope->allocator = allocator;
    kelp_arena_init(&envelope->arena, allocator, 1 << 10);
    kelp_status *status = encode(envelope, parts, &caps);
    if (status != NULL) {
        kelp_envelope_destroy(envelope);
        return status;
    }
    *out = envelope;
    return NULL;
}

void kelp_envelope_destroy(kelp_envelope *envelope) {
    if (envelope == NULL)
        return;
    kelp_arena_deinit(&envelope->arena);
    kelp_free(envelope->allocator, envelope, sizeof *envelope);
}

const kelp_span *kelp_envelope_spans(const kelp_envelope *envelope, size_t *out_count) {
    *out_count = envelope->span_count;
    return envelope->spans;
}

size_t kelp_envelope_bytes(const kelp_envelope *envelope) {
    return envelope->size_bytes;
}
