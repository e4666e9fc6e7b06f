/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/wire.h: tensors that come from another process or machine.
 *
 * A sender puts fills into an envelope: a slot's number, the hash of the declared type, bytes. A
 * receiver has slots, each of which expects a type and has a backend that makes a tensor of the
 * bytes. What is checked, in this order:
 *
 *   1. caps of the envelope (how large, how many), before any memory is taken for it;
 *   2. the type: declared at all, and the one that the slot expects;
 *   3. the budget, which is charged the fill's bytes until its tensor is overwritten or evicted;
 *   4. memory; the transport then reads the bytes straight into it;
 *   5. the backend, to which that memory is moved: nothing is copied.
 *
 * A fill that fails is dropped and says why; the envelope's other fills are still delivered. An
 * envelope that is malformed or passes a cap fails as a whole, before its first fill.
 *
 * The codecs do no I/O. Everything in an envelope is little-endian; the layout is at the end of
 * this file. Threads: types and budgets are shared by any number of threads (declare before use);
 * an envelope or a receiver belongs to one at a time.
 */
#ifndef KELP_WIRE_H_
#define KELP_WIRE_H_

#include <kelp/opset.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- types ---- */

/* FNV-1a, 64 bits (offset cbf29ce484222325, prime 100000001b3), of the bytes of a declared type
 * string: the same in every process, build and language. */
KELP_API uint64_t kelp_type_hash(const char *type);

/* The types that a receiver knows. */
typedef struct kelp_types kelp_types;
/* Declares the tensors of every element type: "kelp.tensor.float32" and so on, with ONNX's names
 * "tensor(float)" as aliases. */
KELP_API kelp_status *kelp_types_create(kelp_allocator allocator, kelp_types **out) KELP_MUST_USE;
KELP_API void kelp_types_destroy(kelp_types *types);
/* `out_hash` (may be NULL) is what slots and fills carry. Again with the same string: no change.
 * ALREADY_EXISTS: another string has this hash. */
KELP_API kelp_status *kelp_types_declare(kelp_types *types, const char *type,
                                         uint64_t *out_hash) KELP_MUST_USE;
/* Fills of type `alias` count as `type`. NOT_FOUND: `type` was not declared. */
KELP_API kelp_status *kelp_types_alias(kelp_types *types, const char *alias,
                                       const char *type) KELP_MUST_USE;
/* The declared string that a hash stands for, or NULL; `out_hash` (may be NULL) is that string's,
 * which differs from `hash` for an alias. */
KELP_API const char *kelp_types_find(const kelp_types *types, uint64_t hash, uint64_t *out_hash);
/* The hash of "kelp.tensor.<dtype>". */
KELP_API uint64_t kelp_type_of_tensor(kelp_dtype dtype);

/* ---- budgets ---- */
typedef struct kelp_budget kelp_budget;
#define KELP_BUDGET_BYTES ((size_t)256 << 20)
/* `limit_bytes` 0: KELP_BUDGET_BYTES. */
KELP_API kelp_status *kelp_budget_create(kelp_allocator allocator, size_t limit_bytes,
                                         kelp_budget **out) KELP_MUST_USE;
KELP_API void kelp_budget_destroy(kelp_budget *budget);
/* false when less is left; `out_remaining` (may be NULL) is what was left before. */
KELP_API bool kelp_budget_charge(kelp_budget *budget, size_t bytes, size_t *out_remaining);
KELP_API void kelp_budget_release(kelp_budget *budget, size_t bytes);
KELP_API size_t kelp_budget_used(const kelp_budget *budget);

/* ---- caps ---- */
typedef struct kelp_wire_caps {
    size_t envelope_bytes;
    size_t fills;
    size_t fill_bytes;
    size_t suffix_bytes;
    size_t addresses;
    size_t address_bytes; /* of each */
} kelp_wire_caps;
KELP_API kelp_wire_caps kelp_wire_caps_default(void); /* 16 MiB, 256, 4 MiB, 4 KiB, 8, 256 B */
KELP_API kelp_wire_caps
kelp_wire_caps_edge(void); /* 256 KiB, 16, 64 KiB, 512 B, 8, 256 B: small devices */

/* ---- why a fill was dropped ---- */
typedef enum kelp_wire_kind {
    KELP_WIRE_DELIVERED = 0,
    KELP_WIRE_UNKNOWN_TYPE_HASH = 1,          /* NOT_FOUND: no such type is declared */
    KELP_WIRE_TYPE_MISMATCH = 2,              /* INVALID_ARGUMENT: not what the slot expects */
    KELP_WIRE_DECODE_FAILED = 3,              /* DATA_LOSS: the bytes are no such thing */
    KELP_WIRE_ALLOCATION_FAILED = 4,          /* RESOURCE_EXHAUSTED: no memory for them */
    KELP_WIRE_BUDGET_EXCEEDED = 5,            /* RESOURCE_EXHAUSTED */
    KELP_WIRE_BACKEND_MATERIALIZE_FAILED = 6, /* the backend's own code */
    KELP_WIRE_UNKNOWN_SLOT = 7                /* OUT_OF_RANGE: there is no slot of that number */
} kelp_wire_kind;
/* "TypeMismatch" and so on. */
KELP_API const char *kelp_wire_kind_name(kelp_wire_kind kind);
/* The kind that a fill's status tells of; KELP_WIRE_DELIVERED for any other status. */
KELP_API kelp_wire_kind kelp_wire_kind_of(const kelp_status *status);

/* What became of a fill. */
typedef struct kelp_fill_report {
    uint32_t slot;
    kelp_wire_kind kind;
    uint64_t type_hash;     /* as sent */
    uint64_t expected_hash; /* the slot's; 0 when it takes any type */
    size_t size_bytes;
    size_t remaining_bytes;    /* BUDGET_EXCEEDED: what the budget had left */
    const kelp_status *status; /* NULL when delivered; the receiver's, until the next envelope */
} kelp_fill_report;

/* ---- receiving ---- */
typedef struct kelp_wire_slot {
    const char *name;                  /* for messages; may be NULL */
    uint64_t type_hash;                /* expected; 0: any declared type */
    const kelp_opset_backend *backend; /* whose materialize; NULL: Kelp's own tensors */
    void *self;
} kelp_wire_slot;

typedef struct kelp_receiver_options {
    uint32_t struct_size;     /* sizeof(kelp_receiver_options) */
    kelp_allocator allocator; /* of the bytes of fills too */
    const kelp_types *types;
    kelp_budget *budget;         /* may be shared with other receivers */
    const kelp_wire_caps *caps;  /* NULL: kelp_wire_caps_default */
    const kelp_wire_slot *slots; /* copied; names are borrowed */
    size_t slot_count;
} kelp_receiver_options;

typedef struct kelp_receiver kelp_receiver;
/* All memory but that of fills is taken here. Types and budget outlive it. UNIMPLEMENTED: a slot's
 * backend has no materialize. */
KELP_API kelp_status *kelp_receiver_create(const kelp_receiver_options *options,
                                           kelp_receiver **out) KELP_MUST_USE;
/* Evicts every slot. */
KELP_API void kelp_receiver_destroy(kelp_receiver *receiver);
/* Where the next bytes of the envelope go, and how many at most; NULL when it is complete. */
KELP_API void *kelp_receiver_want(kelp_receiver *receiver, size_t *out_bytes);
/* `bytes` were put there. An error is the whole envelope's: INVALID_ARGUMENT (malformed),
 * OUT_OF_RANGE (a cap, which is named). */
KELP_API kelp_status *kelp_receiver_got(kelp_receiver *receiver, size_t bytes) KELP_MUST_USE;
KELP_API bool kelp_receiver_is_complete(const kelp_receiver *receiver);
/* Ready for another envelope, also after a failure; slots keep their tensors. */
KELP_API void kelp_receiver_next(kelp_receiver *receiver);

/* Of the envelope that was received, until the next. Addresses and suffix are bytes. */
KELP_API uint64_t kelp_receiver_correlation(const kelp_receiver *receiver);
KELP_API const void *kelp_receiver_suffix(const kelp_receiver *receiver, size_t *out_bytes);
KELP_API size_t kelp_receiver_address_count(const kelp_receiver *receiver);
KELP_API const void *kelp_receiver_address(const kelp_receiver *receiver, size_t index,
                                           size_t *out_bytes);
KELP_API size_t kelp_receiver_report_count(const kelp_receiver *receiver);
KELP_API const kelp_fill_report *kelp_receiver_report(const kelp_receiver *receiver, size_t index);

/* What a slot holds, from whichever envelope; NULL: nothing. */
KELP_API const kelp_tensor *kelp_receiver_tensor(const kelp_receiver *receiver, size_t slot);
/* Frees what it holds and releases its charge. */
KELP_API void kelp_receiver_evict(kelp_receiver *receiver, size_t slot);

/* ---- sending ---- */
typedef struct kelp_envelope_fill {
    uint32_t slot;
    uint64_t type_hash;        /* 0: that of a tensor of this dtype */
    const kelp_tensor *tensor; /* compact, host memory; not a list. NULL: `data` is sent as it is */
    const void *data;
    size_t size_bytes;
} kelp_envelope_fill;

typedef struct kelp_envelope_parts {
    uint64_t correlation; /* the sender's own number, which an answer repeats */
    const kelp_envelope_fill *fills;
    size_t fill_count;
    const void *suffix;
    size_t suffix_bytes;
    const kelp_string *addresses; /* where it comes from */
    size_t address_count;
    const kelp_wire_caps *caps; /* NULL: kelp_wire_caps_default */
} kelp_envelope_parts;

typedef struct kelp_span {
    const void *data;
    size_t size_bytes;
} kelp_span;

typedef struct kelp_envelope kelp_envelope;
/* Tensors' elements are borrowed until it is destroyed, not copied (text of strings is).
 * OUT_OF_RANGE: a cap is passed. */
KELP_API kelp_status *kelp_envelope_create(kelp_allocator allocator,
                                           const kelp_envelope_parts *parts,
                                           kelp_envelope **out) KELP_MUST_USE;
KELP_API void kelp_envelope_destroy(kelp_envelope *envelope);
/* Its bytes, in order. */
KELP_API const kelp_span *kelp_envelope_spans(const kelp_envelope *envelope, size_t *out_count);
KELP_API size_t kelp_envelope_bytes(const kelp_envelope *envelope);

/* ---- Kelp's own tensors ---- the `materialize` and `release_tensor` of a backend whose tensors
 * lie in host memory. The tensor's elements are where the bytes were put. */
KELP_API kelp_status *kelp_wire_materialize(void *self, uint64_t type_hash, kelp_allocator owner,
                                            void *take_bytes, size_t size_bytes,
                                            kelp_tensor *out) KELP_MUST_USE;
KELP_API void kelp_wire_release_tensor(void *self, kelp_tensor *tensor);

/*
 * Layout, version 1. Integers are little-endian.
 *
 *   envelope   "KENV"  u16 version  u16 addresses  u32 fills  u32 suffix bytes  u32 bytes of
 *              addresses  u32 zero  u64 bytes of the whole  u64 correlation
 *              addresses: u16 length, bytes; the suffix
 *              a table of fills: u32 slot  u32 zero  u64 type hash  u64 bytes
 *              the fills' bytes, one after the other
 *   tensor     "KTEN"  u16 version  u16 rank  u32 dtype (ONNX's number)  u32 bytes before the
 *              elements, a multiple of 64  u64 bytes of the elements  i64 extents …, zeros,
 * elements; a string is u64 offset (from the first element), u64 length; the text follows
 */

#ifdef __cplusplus
}
#endif
#endif
