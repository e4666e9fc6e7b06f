/* SPDX-License-Identifier: Apache-2.0 */
/* Declared types by hash, budgets, limits, and the names of failures. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/checked.h"
#include "remote/rpc/rpc.h"

#include <stdatomic.h>
#include <stdio.h>

uint64_t kelp_type_hash(const char *type) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *type != '\0'; type++)
        hash = (hash ^ (unsigned char)*type) * 0x100000001b3u;
    return hash;
}

/* ---- types ---- */
typedef struct declared {
    uint64_t hash;
    const char *name;
    uint64_t target; /* hash of the type that an alias denotes, else its own hash */
} declared;

struct kelp_types {
    kelp_allocator allocator;
    kelp_arena names;
    declared *items; /* sorted by hash */
    size_t count, capacity;
};

/* Returns the position of a hash, or the position at which to insert it. */
static size_t position_of(const kelp_types *types, uint64_t hash) {
    size_t low = 0, high = types->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (types->items[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const declared *find(const kelp_types *types, uint64_t hash) {
    size_t at = position_of(types, hash);
    return at < types->count && types->items[at].hash == hash ? &types->items[at] : NULL;
}

static kelp_status *add(kelp_types *types, const char *name, uint64_t target) {
    uint64_t hash = kelp_type_hash(name);
    const declared *existing = find(types, hash);
    if (existing != NULL && strcmp(existing->name, name) == 0 && existing->target == target)
        return NULL;
    if (existing != NULL)
        return KELP_ERROR(KELP_ALREADY_EXISTS,
                          "cannot declare type '%s': its hash %016llx is that of type '%s'", name,
                          (unsigned long long)hash, existing->name);
    char *copy = kelp_arena_strndup(&types->names, name, strlen(name));
    if (copy == NULL)
        return kelp_status_oom();
    KELP_TRY(kelp_grow(types->allocator, (void **)&types->items, &types->capacity, types->count + 1,
                       sizeof *types->items));
    size_t at = position_of(types, hash);
    memmove(&types->items[at + 1], &types->items[at], (types->count - at) * sizeof *types->items);
    types->items[at] = (declared){hash, copy, target};
    types->count++;
    return NULL;
}

static void tensor_type(kelp_dtype dtype, char *out, size_t capacity) {
    snprintf(out, capacity, "kelp.tensor.%s", kelp_dtype_name(dtype));
}

uint64_t kelp_type_of_tensor(kelp_dtype dtype) {
    char name[64];
    tensor_type(dtype, name, sizeof name);
    return kelp_type_hash(name);
}

/* Declares a type and its ONNX name. Two ONNX names differ from Kelp's
 * (onnx/defs/data_type_utils.cc). */
static kelp_status *declare_tensor(kelp_types *types, kelp_dtype dtype) {
    char name[64], alias[64];
    const char *onnx = dtype == KELP_F32 ? "float" : dtype == KELP_F64 ? "double" : NULL;
    tensor_type(dtype, name, sizeof name);
    snprintf(alias, sizeof alias, "tensor(%s)", onnx != NULL ? onnx : kelp_dtype_name(dtype));
    KELP_TRY(kelp_types_declare(types, name, NULL));
    return kelp_types_alias(types, alias, name);
}

kelp_status *kelp_types_create(kelp_allocator allocator, kelp_types **out) {
    kelp_types *types = NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_types, &types));
    types->allocator = allocator;
    kelp_arena_init(&types->names, allocator, 0);
    kelp_status *status = NULL;
    for (int dtype = KELP_F32; status == NULL && dtype < KELP_DTYPE_COUNT; dtype++)
        if (kelp_dtype_bits((kelp_dtype)dtype) > 0)
            status = declare_tensor(types, (kelp_dtype)dtype);
    if (status != NULL) {
        kelp_types_destroy(types);
        return status;
    }
    *out = types;
    return NULL;
}

void kelp_types_destroy(kelp_types *types) {
    if (types == NULL)
        return;
    kelp_arena_deinit(&types->names);
    kelp_free(types->allocator, types->items, types->capacity * sizeof *types->items);
    kelp_free(types->allocator, types, sizeof *types);
}

kelp_status *kelp_types_declare(kelp_types *types, const char *type, uint64_t *out_hash) {
    uint64_t hash = kelp_type_hash(type);
    if (out_hash != NULL)
        *out_hash = hash;
    return add(types, type, hash);
}

kelp_status *kelp_types_alias(kelp_types *types, const char *alias, const char *type) {
    const declared *found = find(types, kelp_type_hash(type));
    if (found == NULL || strcmp(found->name, type) != 0)
        return KELP_ERROR(KELP_NOT_FOUND, "cannot declare alias '%s': type '%s' is not declared",
                          alias, type);
    return add(types, alias, found->target);
}

const char *kelp_types_find(const kelp_types *types, uint64_t hash, uint64_t *out_hash) {
    const declared *item = find(types, hash);
    if (item == NULL)
        return NULL;
    if (item->target != item->hash)
        item = find(types, item->target);
    KELP_ASSERT(item != NULL && item->target == item->hash); /* aliases denote declared types */
    if (out_hash != NULL)
        *out_hash = item->hash;
    return item->name;
}

/* ---- budgets ---- */
struct kelp_budget {
    kelp_allocator allocator;
    size_t limit;
    _Atomic size_t used;
};

kelp_status *kelp_budget_create(kelp_allocator allocator, size_t limit_bytes, kelp_budget **out) {
    KELP_TRY(KELP_NEW(allocator, kelp_budget, out));
    (*out)->allocator = allocator;
    (*out)->limit = limit_bytes > 0 ? limit_bytes : KELP_BUDGET_BYTES;
    atomic_init(&(*out)->used, 0);
    return NULL;
}

void kelp_budget_destroy(kelp_budget *budget) {
    if (budget != NULL)
        kelp_free(budget->allocator, budget, sizeof *budget);
}

bool kelp_budget_charge(kelp_budget *budget, size_t bytes, size_t *out_remaining) {
    size_t used = atomic_load_explicit(&budget->used, memory_order_relaxed);
    do {
        KELP_ASSERT(used <= budget->limit);
        size_t remaining = budget->limit - used;
        if (out_remaining != NULL)
            *out_remaining = remaining;
        if (bytes > remaining)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&budget->used, &used, used + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

void kelp_budget_release(kelp_budget *budget, size_t bytes) {
    size_t used = atomic_fetch_sub_explicit(&budget->used, bytes, memory_order_relaxed);
    KELP_ASSERT(bytes <= used);
    (void)used;
}

size_t kelp_budget_used(const kelp_budget *budget) {
    return atomic_load_explicit(&budget->used, memory_order_relaxed);
}

/* ---- limits and kinds ---- */
kelp_wire_caps kelp_wire_caps_default(void) {
    return (kelp_wire_caps){.envelope_bytes = (size_t)16 << 20,
                            .fills = 256,
                            .fill_bytes = (size_t)4 << 20,
                            .suffix_bytes = 4 << 10,
                            .addresses = 8,
                            .address_bytes = 256};
}

kelp_wire_caps kelp_wire_caps_edge(void) {
    return (kelp_wire_caps){.envelope_bytes = 256 << 10,
                            .fills = 16,
                            .fill_bytes = 64 << 10,
                            .suffix_bytes = 512,
                            .addresses = 8,
                            .address_bytes = 256};
}

static const char *const kind_names[] = {[KELP_WIRE_DELIVERED] = "Delivered",
                                         [KELP_WIRE_UNKNOWN_TYPE_HASH] = "UnknownTypeHash",
                                         [KELP_WIRE_TYPE_MISMATCH] = "TypeMismatch",
                                         [KELP_WIRE_DECODE_FAILED] = "DecodeFailed",
                                         [KELP_WIRE_ALLOCATION_FAILED] = "AllocationFailed",
                                         [KELP_WIRE_BUDGET_EXCEEDED] = "BudgetExceeded",
                                         [KELP_WIRE_BACKEND_MATERIALIZE_FAILED] =
                                             "BackendMaterializeFailed",
                                         [KELP_WIRE_UNKNOWN_SLOT] = "UnknownSlot"};

const char *kelp_wire_kind_name(kelp_wire_kind kind) {
    return (size_t)kind < KELP_COUNT(kind_names) ? kind_names[kind] : "Unknown";
}

kelp_wire_kind kelp_wire_kind_of(const kelp_status *status) {
    for (; status != NULL; status = kelp_status_cause(status)) {
        const char *text = kelp_status_message(status);
        for (size_t kind = 1; kind < KELP_COUNT(kind_names); kind++) {
            size_t length = strlen(kind_names[kind]);
            if (strncmp(text, kind_names[kind], length) == 0 && text[length] == ':')
                return (kelp_wire_kind)kind;
        }
    }
    return KELP_WIRE_DELIVERED;
}
