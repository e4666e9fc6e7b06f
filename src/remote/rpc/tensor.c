/* SPDX-License-Identifier: Apache-2.0 */
/* Creates tensors from received bytes, in place. The head before the elements is overwritten by the
 * owner of the memory. */
#include "base/alloc.h"
#include "base/checked.h"
#include "remote/rpc/rpc.h"

/* The owner of a tensor's memory. It overwrites the head of the tensor. */
typedef struct owner_note {
    kelp_allocator owner;
    void *bytes;
    size_t size_bytes;
} owner_note;

_Static_assert(sizeof(owner_note) <= WIRE_ALIGNMENT, "the note fits in the smallest head");
_Static_assert(sizeof(kelp_string) == 16 && offsetof(kelp_string, length) == 8,
               "strings are converted in place");

#define DECODE_ERROR(...) WIRE_ERROR(KELP_WIRE_DECODE_FAILED, KELP_DATA_LOSS, __VA_ARGS__)

/* Converts the offsets of strings to addresses. */
static kelp_status *convert_strings(char *elements, size_t size_bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char *at = elements + i * sizeof(kelp_string);
        uint64_t offset = wire_get(at, 8), length = wire_get(at + 8, 8);
        if (offset > size_bytes || length > size_bytes - offset ||
            offset < count * sizeof(kelp_string))
            return DECODE_ERROR("string %zu is out of bounds: offset %llu, %llu bytes, of %zu", i,
                                (unsigned long long)offset, (unsigned long long)length, size_bytes);
        kelp_string string = {elements + offset, (size_t)length};
        memcpy(at, &string, sizeof string);
    }
    return NULL;
}

static kelp_status *decode(uint64_t type_hash, char *bytes, size_t size_bytes, kelp_tensor *out) {
    int64_t shape[KELP_MAX_RANK];
    if (size_bytes < WIRE_ALIGNMENT || memcmp(bytes, "KTEN", 4) != 0)
        return DECODE_ERROR("not a tensor: expected 'KTEN' at the beginning of %zu bytes",
                            size_bytes);
    uint64_t version = wire_get(bytes + 4, 2), rank = wire_get(bytes + 6, 2);
    uint64_t dtype = wire_get(bytes + 8, 4), head = wire_get(bytes + 12, 4);
    uint64_t content = wire_get(bytes + 16, 8);
    if (version != WIRE_VERSION || rank > KELP_MAX_RANK)
        return DECODE_ERROR("the tensor has version %llu and rank %llu: expected version %d and a "
                            "rank of at most %d",
                            (unsigned long long)version, (unsigned long long)rank, WIRE_VERSION,
                            KELP_MAX_RANK);
    if (head != wire_tensor_head((int32_t)rank) || head > size_bytes ||
        content != size_bytes - head)
        return DECODE_ERROR("the tensor of rank %llu has a head of %llu bytes and %llu bytes of "
                            "elements, in %zu bytes: expected a head of %zu bytes",
                            (unsigned long long)rank, (unsigned long long)head,
                            (unsigned long long)content, size_bytes,
                            wire_tensor_head((int32_t)rank));
    if (dtype == KELP_DTYPE_INVALID || dtype >= KELP_DTYPE_COUNT ||
        kelp_type_of_tensor((kelp_dtype)dtype) != type_hash)
        return DECODE_ERROR("the tensor has type %s, which does not match its type hash %016llx",
                            kelp_dtype_name((kelp_dtype)dtype), (unsigned long long)type_hash);
    memcpy(shape, bytes + TENSOR_HEAD_BYTES, (size_t)rank * sizeof *shape);
    kelp_status *status =
        kelp_tensor_init(out, (kelp_dtype)dtype, (int32_t)rank, shape, bytes + head);
    if (status != NULL) {
        kelp_status *failure =
            DECODE_ERROR("the tensor has an invalid shape: %s", kelp_status_message(status));
        kelp_status_free(status);
        return failure;
    }
    size_t needed = kelp_tensor_bytes(out);
    bool is_text = dtype == KELP_STRING;
    if (is_text ? needed > content : needed != content)
        return DECODE_ERROR(
            "the tensor has %llu bytes of elements: expected %zu for its type and shape",
            (unsigned long long)content, needed);
    return is_text
               ? convert_strings(bytes + head, (size_t)content, (size_t)kelp_tensor_elements(out))
               : NULL;
}

kelp_status *kelp_wire_materialize(void *self, uint64_t type_hash, kelp_allocator owner,
                                   void *take_bytes, size_t size_bytes, kelp_tensor *out) {
    (void)self;
    kelp_status *status = decode(type_hash, take_bytes, size_bytes, out);
    if (status != NULL) {
        kelp_free_aligned(owner, take_bytes, size_bytes, WIRE_ALIGNMENT);
        return status;
    }
    owner_note note = {owner, take_bytes, size_bytes};
    memcpy(take_bytes, &note, sizeof note);
    return NULL;
}

void kelp_wire_release_tensor(void *self, kelp_tensor *tensor) {
    (void)self;
    owner_note note;
    if (tensor->data == NULL)
        return;
    memcpy(&note, (char *)tensor->data - wire_tensor_head(tensor->rank), sizeof note);
    KELP_ASSERT((char *)note.bytes + wire_tensor_head(tensor->rank) == tensor->data);
    kelp_free_aligned(note.owner, note.bytes, note.size_bytes, WIRE_ALIGNMENT);
    tensor->data = NULL;
}
