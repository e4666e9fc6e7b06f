/* SPDX-License-Identifier: Apache-2.0 */
/* The sequences of a model by correlation ID, and the memory of those that ended. The instance
 * pool's lock is held, except where noted. */
#ifndef KELP_SERVER_SCHEDULER_SEQUENCE_TABLE_H_
#define KELP_SERVER_SCHEDULER_SEQUENCE_TABLE_H_

#include "server/request/sequence.h"

/* A hash table with chains. Adding does not allocate: the memory comes from requests. */
typedef struct kelp_sequence_table {
    kelp_allocator allocator;
    kelp_sequence **buckets;
    size_t mask;         /* number of buckets - 1 */
    kelp_sequence *free; /* linked by `next` */
    uint32_t count;
} kelp_sequence_table;

/* Allocates the buckets for about `expected` sequences. Called without the lock. */
kelp_status *kelp_sequence_table_init(kelp_sequence_table *table, kelp_allocator allocator,
                                      size_t expected) KELP_MUST_USE;
/* Frees all sequences. Called without the lock. */
void kelp_sequence_table_deinit(kelp_sequence_table *table);

/* Returns the sequence of a request, or NULL. */
kelp_sequence *kelp_sequence_table_find(const kelp_sequence_table *table,
                                        const kelp_request *request);
/* Returns true if kelp_sequence_table_add has memory for the sequence of a request. */
bool kelp_sequence_table_can_add(const kelp_sequence_table *table, const kelp_request *request);
/* Adds the sequence of a request, which has none. Takes memory of the request if none is free. */
kelp_sequence *kelp_sequence_table_add(kelp_sequence_table *table, kelp_request *request);
/* Removes a sequence and keeps its memory. */
void kelp_sequence_table_remove(kelp_sequence_table *table, kelp_sequence *sequence);

#endif
