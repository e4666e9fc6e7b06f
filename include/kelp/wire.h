/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/wire.h: tensors from another process or machine.
 *
 * An envelope carries fills: each has a slot number, the hash of a declared type and bytes. A
 * receiver has slots; each expects a type and has a provider that creates a tensor from the bytes.
 * The receiver checks, in this order:
 *
 *   1. limits of the envelope (sizes and counts), before it allocates anything;
 *   2. the type: it is declared, and it is the one that the slot expects;
 *   3. the budget, which is charged with the fill's bytes until its tensor is replaced or evicted;
 *   4. memory; the transport then reads the bytes directly into it;
 *   5. the provider, which takes over the memory without a copy.
 *
 * A fill that fails is dropped and reported; the other fills of the envelope are still delivered.
 * A malformed envelope, or one that exceeds a limit, fails as a whole before its first fill.
 *
 * The functions do no I/O. The format of an envelope is below.
 *
 * Thread safety: types (once declared) and budgets may be shared by any number of threads; an
 * envelope or a receiver is used by one thread at a time. Destroy functions accept NULL.
 */
#ifndef KELP_WIRE_H_
#define KELP_WIRE_H_

#include <kelp/opset.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Format, version 1 ----
 *
 * Integers are little-endian.
 *
 *   envelope   "KENV"  u16 version  u16 addresses  u32 fills  u32 bytes of suffix
 *              u32 bytes of addresses  u32 zero  u64 bytes of the envelope  u64 correlation
 *              addresses, each u16 length and bytes; the suffix
 *              for each fill: u32 slot  u32 zero  u64 type hash  u64 bytes
 *              the bytes of the fills, one after the other
 *   tensor     "KTEN"  u16 version  u16 rank  u32 dtype (a kelp_dtype)
 *              u32 bytes before the elements, a multiple of 64  u64 bytes of the elements
 *              i64 dimensions; zeros up to the elements; elements
 *   string     as an element: u64 offset from the first element, u64 length; the text of all
 * strings follows the elements */

/* ---- Types ---- */

/* Returns the 64-bit FNV-1a hash (offset basis cbf29ce484222325, prime 100000001b3) of a declared
 * type string. It is the same in every process, build and language. Source: FNV hash,
 * draft-eastlake-fnv. */
KELP_API uint64_t kelp_type_hash(const char *type);

/* The types that a receiver knows. */
typedef struct kelp_types kelp_types;

/* Creates a set that declares tensors of every element type as "kelp.tensor.float32" and so on,
 * with ONNX's names, such as "tensor(float)", as aliases. */
KELP_API kelp_status *kelp_types_create(kelp_allocator allocator, kelp_types **out) KELP_MUST_USE;

/* Frees the set. No receiver may use it any more. */
KELP_API void kelp_types_destroy(kelp_types *types);

/* Declares a type. `out_hash` (may be NULL) receives the hash that slots and fills use. Declaring
 * a type again has no effect. Fails with ALREADY_EXISTS if another string has the same hash. */
KELP_API kelp_status *kelp_types_declare(kelp_types *types, const char *type,
                                         uint64_t *out_hash) KELP_MUST_USE;

/* Makes fills of type `alias` count as `type`. Fails with NOT_FOUND if `type` is not declared. */
KELP_API kelp_status *kelp_types_alias(kelp_types *types, const char *alias,
                                       const char *type) KELP_MUST_USE;

/* Returns the declared string of a hash, or NULL. `out_hash` (may be NULL) receives the hash of
 * that string, which differs from `hash` for an alias. */
KELP_API const char *kelp_types_find(const kelp_types *types, uint64_t hash, uint64_t *out_hash);

/* Returns the hash of "kelp.tensor.<dtype>". */
KELP_API uint64_t kelp_type_of_tensor(kelp_dtype dtype);

/* ---- Budgets ---- */

/* A limit of bytes held by receivers. All functions are thread-safe. */
typedef struct kelp_budget kelp_budget;

/* Default limit: 256 MiB. */
#define KELP_BUDGET_BYTES ((size_t)256 << 20)

/* Creates a budget of `limit_bytes` bytes; 0: KELP_BUDGET_BYTES. */
KELP_API kelp_status *kelp_budget_create(kelp_allocator allocator, size_t limit_bytes,
                                         kelp_budget **out) KELP_MUST_USE;

/* Frees the budget. No receiver may use it any more. */
KELP_API void kelp_budget_destroy(kelp_budget *budget);

/* Charges `bytes`. Returns false, without charging, if less is left. `out_remaining` (may be NULL)
 * receives what was left before. */
KELP_API bool kelp_budget_charge(kelp_budget *budget, size_t bytes, size_t *out_remaining);

/* Returns charged bytes to the budget. */
KELP_API void kelp_budget_release(kelp_budget *budget, size_t bytes);

/* Returns the number of charged bytes. */
KELP_API size_t kelp_budget_used(const kelp_budget *budget);

/* ---- Limits ---- */

/* Limits of an envelope. */
typedef struct kelp_wire_caps {
    size_t envelope_bytes; /* size of the envelope */
    size_t fills;          /* number of fills */
    size_t fill_bytes;     /* size of one fill */
    size_t suffix_bytes;   /* size of the suffix */
    size_t addresses;      /* number of addresses */
    size_t address_bytes;  /* size of one address */
} kelp_wire_caps;

/* Returns the default limits: 16 MiB, 256 fills, 4 MiB, 4 KiB, 8 addresses, 256 bytes. */
KELP_API kelp_wire_caps kelp_wire_caps_default(void);

/* Returns limits for small devices: 256 KiB, 16 fills, 64 KiB, 512 bytes, 8 addresses, 256 bytes.
 */
KELP_API kelp_wire_caps kelp_wire_caps_edge(void);

/* ---- Reports ---- */

/* Outcome of a fill, and the code of its status. */
typedef enum kelp_wire_kind {
    KELP_WIRE_DELIVERED = 0,         /* the slot holds the tensor */
    KELP_WIRE_UNKNOWN_TYPE_HASH = 1, /* NOT_FOUND: the type is not declared */
    KELP_WIRE_TYPE_MISMATCH = 2,     /* INVALID_ARGUMENT: the slot expects another type */
    /* DATA_LOSS: the bytes do not have the format of the type */
    KELP_WIRE_DECODE_FAILED = 3,
    KELP_WIRE_ALLOCATION_FAILED = 4,          /* RESOURCE_EXHAUSTED: no memory */
    KELP_WIRE_BUDGET_EXCEEDED = 5,            /* RESOURCE_EXHAUSTED: the budget is exceeded */
    KELP_WIRE_BACKEND_MATERIALIZE_FAILED = 6, /* the code of the provider's materialize */
    KELP_WIRE_UNKNOWN_SLOT = 7                /* OUT_OF_RANGE: there is no such slot */
} kelp_wire_kind;

/* Returns a static name such as "TypeMismatch". */
KELP_API const char *kelp_wire_kind_name(kelp_wire_kind kind);

/* Returns the outcome that a fill's status stands for; KELP_WIRE_DELIVERED for any other status. */
KELP_API kelp_wire_kind kelp_wire_kind_of(const kelp_status *status);

/* Outcome of one fill. */
typedef struct kelp_fill_report {
    uint32_t slot;             /* slot number */
    kelp_wire_kind kind;       /* outcome */
    uint64_t type_hash;        /* type that was sent */
    uint64_t expected_hash;    /* type that the slot expects; 0: any */
    size_t size_bytes;         /* size of the fill */
    size_t remaining_bytes;    /* with KELP_WIRE_BUDGET_EXCEEDED: bytes left in the budget */
    const kelp_status *status; /* NULL if delivered; valid until the next envelope */
} kelp_fill_report;

/* ---- Receiving ---- */

/* A destination of fills. */
typedef struct kelp_wire_slot {
    const char *name;   /* name in messages, borrowed; may be NULL */
    uint64_t type_hash; /* expected type; 0: any declared type */
    /* provider whose `materialize` is used; NULL: tensors in host memory */
    const kelp_opset_backend *backend;
    void *self; /* passed to the provider */
} kelp_wire_slot;

/* Options of a receiver. */
typedef struct kelp_receiver_options {
    uint32_t struct_size;        /* sizeof(kelp_receiver_options) */
    kelp_allocator allocator;    /* allocator, also for the bytes of fills */
    const kelp_types *types;     /* declared types; must outlive the receiver */
    kelp_budget *budget;         /* budget, may be shared; must outlive the receiver */
    const kelp_wire_caps *caps;  /* limits; NULL: kelp_wire_caps_default */
    const kelp_wire_slot *slots; /* slots; copied */
    size_t slot_count;           /* number of slots */
} kelp_receiver_options;

/* Decodes envelopes and holds the tensors of its slots. */
typedef struct kelp_receiver kelp_receiver;

/* Creates a receiver. Allocates everything except the bytes of fills. Fails with UNIMPLEMENTED if
 * the provider of a slot has no `materialize`. */
KELP_API kelp_status *kelp_receiver_create(const kelp_receiver_options *options,
                                           kelp_receiver **out) KELP_MUST_USE;

/* Evicts every slot and frees the receiver. */
KELP_API void kelp_receiver_destroy(kelp_receiver *receiver);

/* Returns where the next bytes of the envelope must be stored and sets `*out_bytes` to their
 * maximum number. Returns NULL if the envelope is complete. */
KELP_API void *kelp_receiver_want(kelp_receiver *receiver, size_t *out_bytes);

/* Processes `bytes` bytes that were stored there. A failure concerns the whole envelope:
 * INVALID_ARGUMENT if it is malformed, OUT_OF_RANGE if it exceeds a limit (names the limit). */
KELP_API kelp_status *kelp_receiver_got(kelp_receiver *receiver, size_t bytes) KELP_MUST_USE;

/* Returns true if the envelope has been received completely. */
KELP_API bool kelp_receiver_is_complete(const kelp_receiver *receiver);

/* Prepares for the next envelope, also after a failure. Slots keep their tensors. */
KELP_API void kelp_receiver_next(kelp_receiver *receiver);

/* Returns the correlation number of the received envelope. Valid, like the following, until the
 * next one. */
KELP_API uint64_t kelp_receiver_correlation(const kelp_receiver *receiver);

/* Returns the suffix, uninterpreted bytes. */
KELP_API const void *kelp_receiver_suffix(const kelp_receiver *receiver, size_t *out_bytes);

/* Returns the number of addresses. */
KELP_API size_t kelp_receiver_address_count(const kelp_receiver *receiver);

/* Returns an address, uninterpreted bytes, or NULL if `index` is out of range. */
KELP_API const void *kelp_receiver_address(const kelp_receiver *receiver, size_t index,
                                           size_t *out_bytes);

/* Returns the number of reports, one per fill. */
KELP_API size_t kelp_receiver_report_count(const kelp_receiver *receiver);

/* Returns the report of a fill, or NULL if `index` is out of range. */
KELP_API const kelp_fill_report *kelp_receiver_report(const kelp_receiver *receiver, size_t index);

/* Returns the tensor that a slot holds, from this or an earlier envelope, or NULL. */
KELP_API const kelp_tensor *kelp_receiver_tensor(const kelp_receiver *receiver, size_t slot);

/* Frees the tensor of a slot and releases its bytes from the budget. */
KELP_API void kelp_receiver_evict(kelp_receiver *receiver, size_t slot);

/* ---- Sending ---- */

/* A fill to send. */
typedef struct kelp_envelope_fill {
    uint32_t slot;      /* slot number */
    uint64_t type_hash; /* type; 0: that of a tensor of its dtype */
    /* compact tensor in host memory, not a list; NULL: `data` is sent as is */
    const kelp_tensor *tensor;
    const void *data;  /* bytes to send if `tensor` is NULL */
    size_t size_bytes; /* size of `data` */
} kelp_envelope_fill;

/* Contents of an envelope. */
typedef struct kelp_envelope_parts {
    uint64_t correlation;            /* number chosen by the sender; a response repeats it */
    const kelp_envelope_fill *fills; /* fills */
    size_t fill_count;               /* number of fills */
    const void *suffix;              /* uninterpreted bytes */
    size_t suffix_bytes;             /* size of the suffix */
    const kelp_string *addresses;    /* uninterpreted bytes that identify the sender */
    size_t address_count;            /* number of addresses */
    const kelp_wire_caps *caps;      /* limits; NULL: kelp_wire_caps_default */
} kelp_envelope_parts;

/* A contiguous range of bytes. */
typedef struct kelp_span {
    const void *data;  /* first byte */
    size_t size_bytes; /* size in bytes */
} kelp_span;

/* An encoded envelope. */
typedef struct kelp_envelope kelp_envelope;

/* Encodes an envelope. Elements of tensors are borrowed until it is destroyed; strings are copied.
 * Fails with OUT_OF_RANGE if a limit is exceeded and UNIMPLEMENTED if a tensor is a list, not
 * compact or not in host memory. */
KELP_API kelp_status *kelp_envelope_create(kelp_allocator allocator,
                                           const kelp_envelope_parts *parts,
                                           kelp_envelope **out) KELP_MUST_USE;

/* Frees the envelope. */
KELP_API void kelp_envelope_destroy(kelp_envelope *envelope);

/* Returns the bytes as spans, to be sent in order. */
KELP_API const kelp_span *kelp_envelope_spans(const kelp_envelope *envelope, size_t *out_count);

/* Returns the total size in bytes. */
KELP_API size_t kelp_envelope_bytes(const kelp_envelope *envelope);

/* ---- Tensors in host memory ---- */

/* Implements `materialize` of a provider whose tensors are in host memory. The tensor uses
 * `take_bytes` in place. Fails with DATA_LOSS if the bytes are not an encoded tensor. */
KELP_API kelp_status *kelp_wire_materialize(void *self, uint64_t type_hash, kelp_allocator owner,
                                            void *take_bytes, size_t size_bytes,
                                            kelp_tensor *out) KELP_MUST_USE;

/* Implements `release_tensor` for kelp_wire_materialize. */
KELP_API void kelp_wire_release_tensor(void *self, kelp_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
