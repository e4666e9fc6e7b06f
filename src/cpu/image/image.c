/* SPDX-License-Identifier: Apache-2.0 */
/* The format of engine images: checks and hashes. */
#include "cpu/image/image.h"

#include "base/assert.h"

#include <string.h>

static const char *const section_names[KELP_SECTION_COUNT] = {
    "information",  "graph",         "graph to refit", "weights",
    "packed table", "packed blocks", "originals"};

uint64_t kelp_cpu_image_hash_head(const kelp_cpu_image_head *head,
                                  const kelp_cpu_image_section *table) {
    kelp_cpu_image_head copy = *head;
    copy.hash = 0;
    return kelp_cpu_image_hash(&copy, sizeof copy) ^
           kelp_cpu_image_hash(table, KELP_SECTION_COUNT * sizeof *table);
}

bool kelp_cpu_image_is(const void *data, size_t size_bytes) {
    return size_bytes >= 8 && memcmp(data, KELP_CPU_IMAGE_MAGIC, 8) == 0;
}

static bool is_inside(const kelp_cpu_image_section *section, size_t size_bytes) {
    return section->offset <= size_bytes && section->length <= size_bytes - section->offset;
}

/* ---- sealing ---- */
static void seal_packs(char *bytes, const kelp_cpu_image_section *packs,
                       const kelp_cpu_image_section *packed) {
    kelp_cpu_pack_entry entry;
    KELP_ASSERT(packs->offset + packs->length <= packed->offset);
    for (uint64_t at = 0; at + sizeof entry <= packs->length; at += sizeof entry) {
        memcpy(&entry, bytes + packs->offset + at, sizeof entry);
        if (entry.offset > packed->length || entry.length > packed->length - entry.offset)
            continue;
        entry.hash = kelp_cpu_image_hash(bytes + packed->offset + entry.offset, entry.length);
        memcpy(bytes + packs->offset + at, &entry, sizeof entry);
    }
}

void kelp_cpu_image_seal(void *data, size_t size_bytes) {
    char *bytes = data;
    kelp_cpu_image_head head;
    kelp_cpu_image_section table[KELP_SECTION_COUNT];
    if (size_bytes < sizeof head + sizeof table)
        return;
    memcpy(&head, bytes, sizeof head);
    memcpy(table, bytes + sizeof head, sizeof table);
    head.file_bytes = size_bytes;
    const kelp_cpu_image_section *packs = &table[KELP_SECTION_PACKS],
                                 *packed = &table[KELP_SECTION_PACKED];
    /* overlapping sections would modify each other */
    if (is_inside(packs, size_bytes) && is_inside(packed, size_bytes) &&
        packs->offset + packs->length <= packed->offset)
        seal_packs(bytes, packs, packed);
    for (uint32_t i = 0; i < KELP_SECTION_COUNT; i++)
        if (i != KELP_SECTION_PACKED && is_inside(&table[i], size_bytes))
            table[i].hash = kelp_cpu_image_hash(bytes + table[i].offset, table[i].length);
    head.hash = kelp_cpu_image_hash_head(&head, table);
    memcpy(bytes, &head, sizeof head);
    memcpy(bytes + sizeof head, table, sizeof table);
}

/* ---- checking ---- */
static kelp_status *check_head(const kelp_cpu_image_head *head, size_t size_bytes,
                               const char *label) {
    if (head->order != KELP_CPU_IMAGE_ORDER_MARK)
        return KELP_ERROR(KELP_FAILED_PRECONDITION,
                          "%s: the plan has the wrong byte order: expected that of this machine",
                          label);
    if (head->version != KELP_CPU_IMAGE_VERSION)
        return KELP_ERROR(KELP_FAILED_PRECONDITION,
                          "%s: the plan has format version %u, but this version of Kelp reads "
                          "version %u: build it again from its model, or load it with the version "
                          "of Kelp that built it",
                          label, head->version, KELP_CPU_IMAGE_VERSION);
    if (head->head_bytes != sizeof *head)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: the head of the plan has the wrong size: expected %zu bytes, found "
                          "%u",
                          label, sizeof *head, head->head_bytes);
    if (head->file_bytes != size_bytes)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "%s: the plan is truncated or has trailing bytes: expected %llu bytes, found %zu",
            label, (unsigned long long)head->file_bytes, size_bytes);
    if (head->section_count != KELP_SECTION_COUNT || head->alignment != KELP_CPU_IMAGE_ALIGNMENT)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: the plan has the wrong layout: expected %d sections at multiples of "
                          "%u, found %u at %u",
                          label, KELP_SECTION_COUNT, KELP_CPU_IMAGE_ALIGNMENT, head->section_count,
                          head->alignment);
    return NULL;
}

static kelp_status *check_section(const char *data, size_t size_bytes,
                                  const kelp_cpu_image_section *section, uint32_t kind,
                                  const char *label) {
    KELP_ASSERT(kind < KELP_SECTION_COUNT);
    bool later = kind == KELP_SECTION_SOURCE || kind == KELP_SECTION_PACKED ||
                 kind == KELP_SECTION_ORIGINALS;
    if (section->kind != kind || section->offset % KELP_CPU_IMAGE_ALIGNMENT != 0 ||
        !is_inside(section, size_bytes))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: section %u (%s) is outside the plan", label,
                          kind, section_names[kind]);
    if (!later && kelp_cpu_image_hash(data + section->offset, section->length) != section->hash)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: section %u (%s) was altered: its hash differs from the stored hash",
                          label, kind, section_names[kind]);
    return NULL;
}

static kelp_status *check_packs(const char *data, const kelp_cpu_image_section *packs,
                                const kelp_cpu_image_section *packed, const char *label) {
    kelp_cpu_pack_entry entry; /* the engine image may be at any address */
    uint32_t node = 0;
    bool good = packs->length % sizeof entry == 0;
    KELP_ASSERT(packs->offset % KELP_CPU_IMAGE_ALIGNMENT == 0);
    for (uint64_t at = 0; good && at < packs->length; at += sizeof entry) {
        memcpy(&entry, data + packs->offset + at, sizeof entry);
        good = entry.offset % KELP_CPU_IMAGE_ALIGNMENT == 0 && entry.offset <= packed->length &&
               entry.length <= packed->length - entry.offset &&
               entry.layout[KELP_OP_LAYOUT_MAX] == '\0' && node <= entry.node;
        node = entry.node;
    }
    if (!good)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "%s: the table of packed weights is invalid: a block is outside the plan or out of "
            "order",
            label);
    return NULL;
}

/* Checks that the bytes between sections are 0. */
static kelp_status *check_gap(const char *data, size_t begin, size_t end, uint32_t kind,
                              const char *label) {
    for (; begin < end; begin++)
        if (data[begin] != 0)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "%s: byte %zu, before section %u, was altered: expected 0", label,
                              begin, kind);
    return NULL;
}

kelp_status *kelp_cpu_image_check(const char *data, size_t size_bytes, const char *label,
                                  kelp_cpu_image_section table[KELP_SECTION_COUNT]) {
    kelp_cpu_image_head head;
    size_t end = sizeof head + KELP_SECTION_COUNT * sizeof *table;
    if (size_bytes < sizeof head)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: the plan is truncated: found %zu bytes",
                          label, size_bytes);
    memcpy(&head, data, sizeof head);
    if (memcmp(head.magic, KELP_CPU_IMAGE_MAGIC, sizeof head.magic) != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: the data is not a plan of the provider 'cpu'",
                          label);
    KELP_TRY(check_head(&head, size_bytes, label));
    if (size_bytes < end)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: the plan is truncated: found %zu bytes",
                          label, size_bytes);
    memcpy(table, data + sizeof head, KELP_SECTION_COUNT * sizeof *table);
    if (kelp_cpu_image_hash_head(&head, table) != head.hash)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: the head of the plan was altered", label);
    head.processor[sizeof head.processor - 1] = '\0';
    if (strcmp(head.processor, KELP_CPU_IMAGE_PROCESSOR) != 0)
        return KELP_ERROR(KELP_FAILED_PRECONDITION,
                          "%s: the plan was built for another processor: expected %s, found %s",
                          label, KELP_CPU_IMAGE_PROCESSOR, head.processor);
    for (uint32_t i = 0; i < KELP_SECTION_COUNT; i++) {
        KELP_TRY(check_section(data, size_bytes, &table[i], i, label));
        KELP_TRY(check_gap(data, end, table[i].offset, i, label));
        KELP_ASSERT(table[i].length <= size_bytes - table[i].offset);
        end = table[i].offset + table[i].length;
    }
    return check_packs(data, &table[KELP_SECTION_PACKS], &table[KELP_SECTION_PACKED], label);
}
