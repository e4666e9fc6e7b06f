/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights of an engine. */
#include "cpu/exec/packs.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t kelp_cpu_image_hash(const void *data, size_t size_bytes) {
    return XXH3_64bits(data, size_bytes);
}

/* ---- from an engine image ---- */
static bool is_in(kelp_str part, const void *data, uint64_t *out_offset) {
    uintptr_t at = (uintptr_t)data, begin = (uintptr_t)part.data;
    *out_offset = at - begin;
    return part.length > 0 && at >= begin && at < begin + part.length;
}

/* Finds the first of the inputs in the engine image; false if it is not there. */
static bool place_of(const kelp_cpu_pack_source *source, const kelp_op_pack_site *site,
                     uint32_t inputs, uint64_t *out) {
    size_t index = inputs != 0 ? (size_t)__builtin_ctz(inputs) : SIZE_MAX;
    const kelp_value *value =
        index < kelp_node_input_count(site->node) ? kelp_node_input(site->node, index) : NULL;
    const kelp_tensor *tensor = value != NULL ? kelp_value_constant(value) : NULL;
    if (tensor == NULL)
        return false;
    if (is_in(source->weights, tensor->data, out))
        return true;
    if (!is_in(source->originals, tensor->data, out))
        return false;
    *out |= KELP_CPU_PACK_ORIGINAL;
    return true;
}

static const kelp_cpu_pack_entry *find(const kelp_cpu_pack_source *source,
                                       const kelp_op_pack_site *site,
                                       const kelp_op_packing *packing, uint64_t place) {
    size_t low = 0, high = source->entry_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (source->entries[middle].node < site->index)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < source->entry_count && source->entries[low].node == site->index; low++) {
        const kelp_cpu_pack_entry *entry = &source->entries[low];
        if (entry->inputs == packing->inputs && entry->length == packing->size_bytes &&
            entry->place == place && strcmp(entry->layout, packing->layout) == 0)
            return entry;
    }
    return NULL;
}

static kelp_status *take(kelp_packs *base, const kelp_op_pack_site *site,
                         const kelp_op_packing *packing, const void **out) {
    kelp_cpu_packs *packs = (kelp_cpu_packs *)base;
    const kelp_cpu_pack_source *source = &packs->source;
    uint64_t place = 0;
    *out = NULL;
    if (source->entries == NULL || !place_of(source, site, packing->inputs, &place))
        return NULL;
    const kelp_cpu_pack_entry *entry = find(source, site, packing, place);
    if (entry == NULL) { /* built for another instruction set or layout version: packed again */
        bool several = (packing->inputs & (packing->inputs - 1)) != 0;
        return several || (place & KELP_CPU_PACK_ORIGINAL) != 0
                   ? kelp_cpu_packs_check_originals(packs)
                   : NULL;
    }
    KELP_ASSERT(entry->offset <= source->packed.length &&
                entry->length <= source->packed.length - entry->offset);
    const char *data = source->packed.data + entry->offset;
    if (kelp_cpu_image_hash(data, entry->length) != entry->hash)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "%s: a block of packed weights of node '%s' was altered: its hash differs from the "
            "stored hash",
            source->label, kelp_node_name(site->node));
    pthread_mutex_lock(&packs->lock);
    packs->taken_count++;
    packs->taken_bytes += entry->length;
    pthread_mutex_unlock(&packs->lock);
    *out = data;
    return NULL;
}

kelp_status *kelp_cpu_packs_check_originals(kelp_cpu_packs *packs) {
    const kelp_cpu_pack_source *source = &packs->source;
    pthread_mutex_lock(&packs->lock);
    bool good = packs->originals_checked ||
                kelp_cpu_image_hash(source->originals.data, source->originals.length) ==
                    source->originals_hash;
    packs->originals_checked = good;
    pthread_mutex_unlock(&packs->lock);
    return good ? NULL
                : KELP_ERROR(KELP_INVALID_ARGUMENT,
                             "%s: the original weights were altered: their hash differs from the "
                             "stored hash",
                             source->label);
}

size_t kelp_cpu_packs_taken(kelp_cpu_packs *packs, size_t *out_bytes) {
    pthread_mutex_lock(&packs->lock);
    size_t count = packs->taken_count;
    *out_bytes = packs->taken_bytes;
    pthread_mutex_unlock(&packs->lock);
    return count;
}

/* ---- for an engine image ---- */
static kelp_status *made(kelp_packs *base, const kelp_op_pack_site *site,
                         const kelp_op_packing *packing, const void *data) {
    kelp_cpu_packs *packs = (kelp_cpu_packs *)base;
    kelp_cpu_pack_record *record = NULL;
    if (!base->keeps || strlen(packing->layout) > KELP_OP_LAYOUT_MAX)
        return NULL;
    KELP_TRY(KELP_NEW(packs->allocator, kelp_cpu_pack_record, &record));
    record->site = *site;
    record->inputs = packing->inputs;
    record->replaces = packing->replaces;
    record->data = data;
    record->size_bytes = packing->size_bytes;
    memcpy(record->layout, packing->layout, strlen(packing->layout));
    pthread_mutex_lock(&packs->lock);
    record->order = packs->record_count++;
    record->next = packs->records;
    packs->records = record;
    pthread_mutex_unlock(&packs->lock);
    return NULL;
}

static int by_node(const void *a, const void *b) {
    const kelp_cpu_pack_record *x = *(kelp_cpu_pack_record *const *)a,
                               *y = *(kelp_cpu_pack_record *const *)b;
    if (x->site.index != y->site.index)
        return x->site.index < y->site.index ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

kelp_status *kelp_cpu_packs_list(kelp_cpu_packs *packs, kelp_cpu_pack_record ***out) {
    kelp_cpu_pack_record **list = NULL;
    size_t count = 0;
    KELP_TRY(
        kelp_alloc_zero(packs->allocator, packs->record_count + 1, sizeof *list, (void **)&list));
    for (kelp_cpu_pack_record *record = packs->records; record != NULL; record = record->next)
        list[count++] = record;
    KELP_ASSERT(count == packs->record_count);
    qsort(list, count, sizeof *list, by_node);
    *out = list;
    return NULL;
}

/* ---- lifetime ---- */
kelp_status *kelp_cpu_packs_create(kelp_allocator allocator, bool keeps,
                                   const kelp_cpu_pack_source *source, kelp_cpu_packs **out) {
    kelp_cpu_packs *packs = NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_cpu_packs, &packs));
    packs->packs = (kelp_packs){.keeps = keeps, .take = take, .made = made};
    packs->allocator = allocator;
    if (source != NULL)
        packs->source = *source;
    pthread_mutex_init(&packs->lock, NULL);
    *out = packs;
    return NULL;
}

void kelp_cpu_packs_destroy(kelp_cpu_packs *packs) {
    if (packs == NULL)
        return;
    for (kelp_cpu_pack_record *record = packs->records, *next; record != NULL; record = next) {
        next = record->next;
        kelp_free(packs->allocator, record, sizeof *record);
    }
    pthread_mutex_destroy(&packs->lock);
    kelp_free(packs->allocator, packs, sizeof *packs);
}
