/* SPDX-License-Identifier: Apache-2.0 */
/* The table of sequences. */
#include "server/scheduler/sequence_table.h"

#include "base/assert.h"
#include "base/str.h"

kelp_status *kelp_sequence_table_init(kelp_sequence_table *table, kelp_allocator allocator,
                                      size_t expected) {
    size_t buckets = 64;
    *table = (kelp_sequence_table){.allocator = allocator};
    while (buckets < expected)
        buckets *= 2;
    KELP_TRY(
        kelp_alloc_zero(allocator, buckets, sizeof(kelp_sequence *), (void **)&table->buckets));
    table->mask = buckets - 1;
    return NULL;
}

static void free_list(kelp_allocator allocator, kelp_sequence *sequence, bool in_bucket) {
    while (sequence != NULL) {
        kelp_sequence *next = in_bucket ? sequence->next_in_bucket : sequence->next;
        kelp_free(allocator, sequence, sizeof *sequence);
        sequence = next;
    }
}

void kelp_sequence_table_deinit(kelp_sequence_table *table) {
    if (table->buckets == NULL)
        return;
    for (size_t i = 0; i <= table->mask; i++)
        free_list(table->allocator, table->buckets[i], true);
    free_list(table->allocator, table->free, false);
    kelp_free(table->allocator, table->buckets, (table->mask + 1) * sizeof(kelp_sequence *));
    *table = (kelp_sequence_table){0};
}

/* Returns the ID as a text; "" if it is a number. */
static const char *text_of(const kelp_request *request) {
    return request->correlation_is_string ? kelp_text_get(&request->correlation_string) : "";
}

static uint64_t number_of(const kelp_request *request) {
    return request->correlation_is_string ? 0 : request->correlation_id;
}

static uint64_t hash_of(const kelp_request *request) {
    const char *text = text_of(request);
    uint64_t number = number_of(request);
    return text[0] != '\0' ? kelp_hash_str(kelp_str_from(text))
                           : kelp_hash_bytes(&number, sizeof number);
}

kelp_sequence *kelp_sequence_table_find(const kelp_sequence_table *table,
                                        const kelp_request *request) {
    uint64_t hash = hash_of(request);
    kelp_sequence *sequence = table->buckets[hash & table->mask];
    while (sequence != NULL && (sequence->hash != hash || sequence->number != number_of(request) ||
                                strcmp(sequence->text, text_of(request)) != 0))
        sequence = sequence->next_in_bucket;
    return sequence;
}

bool kelp_sequence_table_can_add(const kelp_sequence_table *table, const kelp_request *request) {
    return table->free != NULL || (request->sequence != NULL && request->sequence->spare != NULL);
}

kelp_sequence *kelp_sequence_table_add(kelp_sequence_table *table, kelp_request *request) {
    KELP_ASSERT(kelp_sequence_table_can_add(table, request));
    kelp_sequence *sequence = table->free;
    if (sequence != NULL) {
        table->free = sequence->next;
    } else {
        sequence = request->sequence->spare;
        request->sequence->spare = NULL;
    }
    const char *text = text_of(request);
    size_t length = strlen(text);
    KELP_ASSERT(length <= KELP_SEQUENCE_ID_CHARACTERS);
    *sequence = (kelp_sequence){.hash = hash_of(request), .number = number_of(request)};
    memcpy(sequence->text, text, length);
    kelp_sequence **bucket = &table->buckets[sequence->hash & table->mask];
    sequence->next_in_bucket = *bucket;
    *bucket = sequence;
    table->count++;
    return sequence;
}

void kelp_sequence_table_remove(kelp_sequence_table *table, kelp_sequence *sequence) {
    kelp_sequence **link = &table->buckets[sequence->hash & table->mask];
    KELP_ASSERT(sequence->head == NULL && !sequence->executing && !sequence->ready);
    while (*link != sequence)
        link = &(*link)->next_in_bucket;
    *link = sequence->next_in_bucket;
    sequence->next = table->free;
    table->free = sequence;
    table->count--;
}
