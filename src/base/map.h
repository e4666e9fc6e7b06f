/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash map from strings to pointers (open addressing; iteration in order of insertion). Keys are
 * borrowed and must outlive their entries. Used by one thread at a time.
 */
#ifndef KELP_BASE_MAP_H_
#define KELP_BASE_MAP_H_

#include "base/str.h"

#include <kelp/allocator.h>

typedef struct kelp_map_entry {
    kelp_str key;
    void *value;
    uint64_t hash;
    bool used;
} kelp_map_entry;

typedef struct kelp_map {
    kelp_allocator allocator;
    kelp_map_entry *entries; /* in order of insertion; removed ones have used == false */
    size_t entry_count;      /* including removed ones */
    size_t entry_capacity;
    uint32_t *slots; /* index into entries + 1; 0 is empty, UINT32_MAX a tombstone */
    size_t slot_count;
    size_t count; /* live entries */
} kelp_map;

void kelp_map_init(kelp_map *map, kelp_allocator allocator);
void kelp_map_deinit(kelp_map *map);
/* Returns true if the key exists. `out_value` may be NULL. */
bool kelp_map_find(const kelp_map *map, kelp_str key, void **out_value);
/* Returns the value, or NULL. */
void *kelp_map_get(const kelp_map *map, kelp_str key);
/* Inserts or replaces a value. */
kelp_status *kelp_map_put(kelp_map *map, kelp_str key, void *value) KELP_MUST_USE;
/* Removes a key and returns its value, or NULL. */
void *kelp_map_remove(kelp_map *map, kelp_str key);

/* Iterates: for (kelp_map_entry *e = NULL; (e = kelp_map_next(&map, e));) */
kelp_map_entry *kelp_map_next(const kelp_map *map, const kelp_map_entry *entry);

#endif
