/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives an envelope: the head, then the tables (addresses, suffix, fill table), then each fill
 * into memory of its own, which the slot's provider takes over. Rejected fills are skipped.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "runtime/opset/registry.h"
#include "remote/rpc/rpc.h"

#include <stddef.h>

#define SKIP_BYTES 4096u

typedef enum stage { STAGE_HEAD, STAGE_TABLES, STAGE_FILLS, STAGE_DONE, STAGE_FAILED } stage;

/* A slot and its tensor. */
typedef struct slot_state {
    kelp_wire_slot slot;
    kelp_opset_backend table; /* of this version's size; missing members are NULL */
    uint64_t expected;        /* hash of the declared type, not of an alias */
    bool filled;
    kelp_tensor tensor;
    size_t charged_bytes;
} slot_state;

struct kelp_receiver {
    kelp_allocator allocator;
    const kelp_types *types;
    kelp_budget *budget;
    kelp_wire_caps caps;
    slot_state *slots;
    size_t slot_count;
    stage at;
    size_t have; /* received bytes of the stage or, in STAGE_FILLS, of the current fill */
    char head[ENVELOPE_HEAD_BYTES];
    char *tables;
    size_t tables_capacity, tables_bytes;
    kelp_fill_report *reports;
    size_t fill; /* index of the current fill */
    size_t fill_count, address_count, suffix_bytes, address_bytes;
    uint64_t total_bytes, correlation;
    char *block; /* memory of the current fill; NULL: it is skipped */
    char skipped[SKIP_BYTES];
};

/* ---- creation ---- */
static size_t tables_capacity(const kelp_wire_caps *caps) {
    size_t addresses = 0, fills = 0, total = 0;
    if (!kelp_size_mul(caps->addresses, 2 + caps->address_bytes, &addresses) ||
        !kelp_size_mul(caps->fills, FILL_ENTRY_BYTES, &fills) ||
        !kelp_size_add(addresses, fills, &total) ||
        !kelp_size_add(total, caps->suffix_bytes, &total))
        return SIZE_MAX;
    return total;
}

static kelp_status *init_slot(const kelp_types *types, const kelp_wire_slot *wire_slot,
                              size_t index, slot_state *out) {
    static const kelp_opset_backend own = {.name = "kelp",
                                           .materialize = kelp_wire_materialize,
                                           .release_tensor = kelp_wire_release_tensor};
    const kelp_opset_backend *backend = wire_slot->backend;
    out->slot = *wire_slot;
    out->table = own;
    if (backend != NULL) {
        memset(&out->table, 0, sizeof out->table);
        memcpy(&out->table, backend, KELP_MIN(backend->struct_size, sizeof out->table));
    }
    if (out->table.materialize == NULL || out->table.release_tensor == NULL)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "slot %zu ('%s'): provider '%s' does not create tensors from RPC "
                          "messages",
                          index, wire_slot->name ? wire_slot->name : "", backend->name);
    if (wire_slot->type_hash != 0 &&
        kelp_types_find(types, wire_slot->type_hash, &out->expected) == NULL)
        return KELP_ERROR(
            KELP_NOT_FOUND, "slot %zu ('%s') expects type %016llx, which is not declared", index,
            wire_slot->name ? wire_slot->name : "", (unsigned long long)wire_slot->type_hash);
    return NULL;
}

static kelp_status *init(kelp_receiver *r, const kelp_receiver_options *o) {
    r->types = o->types;
    r->budget = o->budget;
    r->caps = o->caps != NULL ? *o->caps : kelp_wire_caps_default();
    r->tables_capacity = tables_capacity(&r->caps);
    if (r->types == NULL || r->budget == NULL || r->tables_capacity == SIZE_MAX)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "invalid options of a receiver: expected types, a "
                                                 "budget, and limits that fit in memory");
    KELP_TRY(kelp_alloc_zero(r->allocator, o->slot_count, sizeof *r->slots, (void **)&r->slots));
    r->slot_count = o->slot_count;
    KELP_TRY(kelp_alloc_zero(r->allocator, r->tables_capacity, 1, (void **)&r->tables));
    KELP_TRY(
        kelp_alloc_zero(r->allocator, r->caps.fills, sizeof *r->reports, (void **)&r->reports));
    for (size_t i = 0; i < o->slot_count; i++)
        KELP_TRY(init_slot(r->types, &o->slots[i], i, &r->slots[i]));
    return NULL;
}

kelp_status *kelp_receiver_create(const kelp_receiver_options *caller_options,
                                  kelp_receiver **out) {
    kelp_receiver_options options = {0};
    memcpy(&options, caller_options, KELP_MIN(caller_options->struct_size, sizeof options));
    kelp_receiver *receiver = NULL;
    KELP_TRY(KELP_NEW(options.allocator, kelp_receiver, &receiver));
    receiver->allocator = options.allocator;
    kelp_status *status = init(receiver, &options);
    if (status != NULL) {
        kelp_receiver_destroy(receiver);
        return status;
    }
    *out = receiver;
    return NULL;
}

/* ---- slots ---- */
void kelp_receiver_evict(kelp_receiver *r, size_t index) {
    slot_state *s = index < r->slot_count ? &r->slots[index] : NULL;
    if (s == NULL || !s->filled)
        return;
    s->table.release_tensor(s->slot.self, &s->tensor);
    kelp_budget_release(r->budget, s->charged_bytes);
    s->filled = false;
}

const kelp_tensor *kelp_receiver_tensor(const kelp_receiver *r, size_t slot) {
    return slot < r->slot_count && r->slots[slot].filled ? &r->slots[slot].tensor : NULL;
}

/* Frees the memory of the current fill, if any. */
static void drop_block(kelp_receiver *r) {
    if (r->block == NULL)
        return;
    const kelp_fill_report *report = &r->reports[r->fill];
    size_t bytes = report->size_bytes;
    kelp_free_aligned(r->allocator, r->block, bytes ? bytes : 1, WIRE_ALIGNMENT);
    kelp_budget_release(r->budget, bytes);
    r->block = NULL;
}

void kelp_receiver_next(kelp_receiver *r) {
    drop_block(r);
    for (size_t i = 0; r->reports != NULL && i < r->fill_count; i++)
        kelp_status_free((kelp_status *)(uintptr_t)r->reports[i].status);
    if (r->reports != NULL && r->fill_count > 0)
        memset(r->reports, 0, r->fill_count * sizeof *r->reports);
    r->at = STAGE_HEAD;
    r->have = r->fill = r->fill_count = r->address_count = r->suffix_bytes = 0;
    r->address_bytes = r->tables_bytes = 0;
    r->correlation = r->total_bytes = 0;
}

void kelp_receiver_destroy(kelp_receiver *r) {
    if (r == NULL)
        return;
    kelp_receiver_next(r);
    for (size_t i = 0; r->slots != NULL && i < r->slot_count; i++)
        kelp_receiver_evict(r, i);
    kelp_free(r->allocator, r->slots, r->slot_count * sizeof *r->slots);
    kelp_free(r->allocator, r->tables, r->tables_capacity);
    kelp_free(r->allocator, r->reports, r->caps.fills * sizeof *r->reports);
    kelp_free(r->allocator, r, sizeof *r);
}

/* ---- head and tables ---- */
static kelp_status *exceeds(const char *what, uint64_t found, size_t limit) {
    return KELP_ERROR(KELP_OUT_OF_RANGE,
                      "the envelope exceeds the limit of %s: %llu of at most %zu", what,
                      (unsigned long long)found, limit);
}

static kelp_status *malformed(const char *what, uint64_t found) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "the envelope is malformed: %s (%llu)", what,
                      (unsigned long long)found);
}

static kelp_status *read_head(kelp_receiver *r) {
    const char *head = r->head;
    uint64_t fills = wire_get(head + 8, 4), suffix = wire_get(head + 12, 4);
    uint64_t addresses = wire_get(head + 6, 2), address_bytes = wire_get(head + 16, 4);
    uint64_t total = wire_get(head + 24, 8);
    if (memcmp(head, "KENV", 4) != 0)
        return malformed("expected 'KENV' at the beginning", wire_get(head, 4));
    if (wire_get(head + 4, 2) != WIRE_VERSION)
        return malformed("unknown version", wire_get(head + 4, 2));
    if (total > r->caps.envelope_bytes)
        return exceeds("its bytes", total, r->caps.envelope_bytes);
    if (fills > r->caps.fills)
        return exceeds("fills", fills, r->caps.fills);
    if (suffix > r->caps.suffix_bytes)
        return exceeds("bytes of the suffix", suffix, r->caps.suffix_bytes);
    if (addresses > r->caps.addresses)
        return exceeds("addresses", addresses, r->caps.addresses);
    if (address_bytes > addresses * (2 + r->caps.address_bytes) || address_bytes < 2 * addresses)
        return exceeds("bytes of addresses", address_bytes,
                       (size_t)addresses * (2 + r->caps.address_bytes));
    r->tables_bytes = (size_t)(address_bytes + suffix + fills * FILL_ENTRY_BYTES);
    if (total < ENVELOPE_HEAD_BYTES + r->tables_bytes)
        return malformed("it is shorter than its tables", total);
    r->fill_count = (size_t)fills;
    r->address_count = (size_t)addresses;
    r->address_bytes = (size_t)address_bytes;
    r->suffix_bytes = (size_t)suffix;
    r->total_bytes = total;
    r->correlation = wire_get(head + 32, 8);
    r->at = STAGE_TABLES;
    return NULL;
}

static kelp_status *read_tables(kelp_receiver *r) {
    size_t at = 0;
    KELP_ASSERT(r->at == STAGE_TABLES && r->tables_bytes <= r->tables_capacity);
    KELP_ASSERT(r->total_bytes >= ENVELOPE_HEAD_BYTES + r->tables_bytes);
    for (size_t i = 0; i < r->address_count; i++) {
        if (r->address_bytes - at < 2)
            return malformed("an address is truncated", i);
        size_t length = (size_t)wire_get(r->tables + at, 2);
        if (length > r->caps.address_bytes)
            return exceeds("bytes of an address", length, r->caps.address_bytes);
        if (length > r->address_bytes - at - 2)
            return malformed("an address is truncated", i);
        at += 2 + length;
    }
    if (at != r->address_bytes)
        return malformed("bytes between its addresses and its suffix", r->address_bytes - at);
    const char *table = r->tables + r->address_bytes + r->suffix_bytes;
    uint64_t total = ENVELOPE_HEAD_BYTES + r->tables_bytes;
    for (size_t i = 0; i < r->fill_count; i++) {
        uint64_t bytes = wire_get(table + i * FILL_ENTRY_BYTES + 16, 8);
        if (bytes > r->caps.fill_bytes)
            return exceeds("bytes of a fill", bytes, r->caps.fill_bytes);
        if (bytes > r->total_bytes - total) /* read_head checked: total_bytes >= total */
            return malformed("its fills are longer than the envelope", bytes);
        total += bytes;
    }
    if (total != r->total_bytes)
        return malformed("its size is not the sum of its parts", total);
    for (size_t i = 0; i < r->fill_count; i++) {
        const char *entry = table + i * FILL_ENTRY_BYTES;
        r->reports[i] = (kelp_fill_report){.slot = (uint32_t)wire_get(entry, 4),
                                           .type_hash = wire_get(entry + 8, 8),
                                           .size_bytes = (size_t)wire_get(entry + 16, 8)};
    }
    r->at = STAGE_FILLS;
    return NULL;
}

/* ---- fills ---- */
static void reject(kelp_fill_report *report, kelp_wire_kind kind, kelp_status *take_status) {
    KELP_ASSERT(report->kind == KELP_WIRE_DELIVERED && report->status == NULL);
    report->kind = kind;
    report->status = take_status;
}

/* Checks the type and the budget of a fill, and allocates its memory. */
static void admit(kelp_receiver *r, kelp_fill_report *report) {
    uint64_t hash = 0;
    void *block = NULL;
    if (report->slot >= r->slot_count) {
        reject(report, KELP_WIRE_UNKNOWN_SLOT,
               WIRE_ERROR(KELP_WIRE_UNKNOWN_SLOT, KELP_OUT_OF_RANGE, "there is no slot %u of %zu",
                          report->slot, r->slot_count));
        return;
    }
    const slot_state *s = &r->slots[report->slot];
    const char *name = s->slot.name != NULL ? s->slot.name : "";
    report->expected_hash = s->expected;
    const char *type = kelp_types_find(r->types, report->type_hash, &hash);
    if (type == NULL) {
        reject(report, KELP_WIRE_UNKNOWN_TYPE_HASH,
               WIRE_ERROR(KELP_WIRE_UNKNOWN_TYPE_HASH, KELP_NOT_FOUND,
                          "slot %u ('%s') has type hash %016llx, which is not declared",
                          report->slot, name, (unsigned long long)report->type_hash));
        return;
    }
    if (s->expected != 0 && hash != s->expected) {
        reject(report, KELP_WIRE_TYPE_MISMATCH,
               WIRE_ERROR(KELP_WIRE_TYPE_MISMATCH, KELP_INVALID_ARGUMENT,
                          "slot %u ('%s') expects type %s, found %s", report->slot, name,
                          kelp_types_find(r->types, s->expected, NULL), type));
        return;
    }
    if (!kelp_budget_charge(r->budget, report->size_bytes, &report->remaining_bytes)) {
        reject(report, KELP_WIRE_BUDGET_EXCEEDED,
               WIRE_ERROR(KELP_WIRE_BUDGET_EXCEEDED, KELP_RESOURCE_EXHAUSTED,
                          "slot %u ('%s') exceeds the budget: %zu bytes, %zu remain", report->slot,
                          name, report->size_bytes, report->remaining_bytes));
        return;
    }
    kelp_status *status = kelp_alloc_aligned(
        r->allocator, report->size_bytes ? report->size_bytes : 1, WIRE_ALIGNMENT, &block);
    if (status != NULL) {
        kelp_status_free(status);
        kelp_budget_release(r->budget, report->size_bytes);
        reject(report, KELP_WIRE_ALLOCATION_FAILED,
               WIRE_ERROR(KELP_WIRE_ALLOCATION_FAILED, KELP_RESOURCE_EXHAUSTED,
                          "slot %u ('%s') cannot be allocated: %zu bytes", report->slot, name,
                          report->size_bytes));
        return;
    }
    r->block = block;
}

/* Passes the received bytes to the slot's provider, which creates the slot's new tensor. */
static void materialize(kelp_receiver *r, kelp_fill_report *report) {
    KELP_ASSERT(report->slot < r->slot_count && r->have == report->size_bytes);
    slot_state *s = &r->slots[report->slot];
    kelp_tensor tensor = {0};
    uint64_t hash = 0;
    void *block = r->block;
    r->block = NULL;
    (void)kelp_types_find(r->types, report->type_hash, &hash);
    size_t bytes = report->size_bytes ? report->size_bytes : 1;
    kelp_status *status =
        s->table.materialize(s->slot.self, hash, r->allocator, block, bytes, &tensor);
    if (status != NULL) {
        kelp_budget_release(r->budget, report->size_bytes);
        if (kelp_wire_kind_of(status) == KELP_WIRE_DECODE_FAILED) {
            reject(report, KELP_WIRE_DECODE_FAILED, status);
            return;
        }
        reject(report, KELP_WIRE_BACKEND_MATERIALIZE_FAILED,
               KELP_ANNOTATE(status, "%s: provider '%s' cannot create a tensor for slot %u ('%s')",
                             kelp_wire_kind_name(KELP_WIRE_BACKEND_MATERIALIZE_FAILED),
                             s->table.name, report->slot, s->slot.name ? s->slot.name : ""));
        return;
    }
    kelp_receiver_evict(r, report->slot);
    s->tensor = tensor;
    s->charged_bytes = report->size_bytes;
    s->filled = true;
}

/* Begins the next fill, and completes fills that need no more bytes. */
static void advance(kelp_receiver *r) {
    while (r->fill < r->fill_count) {
        kelp_fill_report *report = &r->reports[r->fill];
        if (r->have == 0 && r->block == NULL && report->kind == KELP_WIRE_DELIVERED)
            admit(r, report);
        if (r->have < report->size_bytes)
            return;
        if (r->block != NULL)
            materialize(r, report);
        r->fill++;
        r->have = 0;
    }
    r->at = STAGE_DONE;
}

/* ---- bytes ---- */
void *kelp_receiver_want(kelp_receiver *r, size_t *out_bytes) {
    *out_bytes = 0;
    switch (r->at) {
    case STAGE_HEAD:
        *out_bytes = ENVELOPE_HEAD_BYTES - r->have;
        return r->head + r->have;
    case STAGE_TABLES:
        *out_bytes = r->tables_bytes - r->have;
        return r->tables + r->have;
    case STAGE_FILLS: {
        KELP_ASSERT(r->fill < r->fill_count && r->have < r->reports[r->fill].size_bytes);
        size_t rest = r->reports[r->fill].size_bytes - r->have;
        *out_bytes = r->block != NULL ? rest : KELP_MIN(rest, SKIP_BYTES);
        return r->block != NULL ? r->block + r->have : r->skipped;
    }
    case STAGE_DONE:
    case STAGE_FAILED:
        break;
    }
    return NULL;
}

static kelp_status *proceed(kelp_receiver *r) {
    if (r->at == STAGE_HEAD && r->have == ENVELOPE_HEAD_BYTES) {
        r->have = 0;
        KELP_TRY(read_head(r));
    }
    if (r->at == STAGE_TABLES && r->have == r->tables_bytes) {
        r->have = 0;
        KELP_TRY(read_tables(r));
    }
    if (r->at == STAGE_FILLS)
        advance(r);
    return NULL;
}

kelp_status *kelp_receiver_got(kelp_receiver *r, size_t bytes) {
    size_t wanted = 0;
    (void)kelp_receiver_want(r, &wanted);
    if (bytes > wanted)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the receiver expects at most %zu bytes: found %zu", wanted, bytes);
    r->have += bytes;
    kelp_status *status = proceed(r);
    if (status != NULL)
        r->at = STAGE_FAILED;
    return status;
}

/* ---- results ---- */
bool kelp_receiver_is_complete(const kelp_receiver *r) {
    return r->at == STAGE_DONE;
}

uint64_t kelp_receiver_correlation(const kelp_receiver *r) {
    return r->correlation;
}

const void *kelp_receiver_suffix(const kelp_receiver *r, size_t *out_bytes) {
    *out_bytes = r->at == STAGE_FILLS || r->at == STAGE_DONE ? r->suffix_bytes : 0;
    return r->tables + r->address_bytes;
}

size_t kelp_receiver_address_count(const kelp_receiver *r) {
    return r->at == STAGE_FILLS || r->at == STAGE_DONE ? r->address_count : 0;
}

const void *kelp_receiver_address(const kelp_receiver *r, size_t index, size_t *out_bytes) {
    *out_bytes = 0;
    if (index >= kelp_receiver_address_count(r))
        return NULL;
    const char *at = r->tables;
    for (; index > 0; index--)
        at += 2 + wire_get(at, 2);
    *out_bytes = (size_t)wire_get(at, 2);
    return at + 2;
}

size_t kelp_receiver_report_count(const kelp_receiver *r) {
    return r->at == STAGE_DONE ? r->fill_count : 0;
}

const kelp_fill_report *kelp_receiver_report(const kelp_receiver *r, size_t index) {
    return index < kelp_receiver_report_count(r) ? &r->reports[index] : NULL;
}
