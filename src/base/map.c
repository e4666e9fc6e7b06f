/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements the map. `entries` keeps the order of insertion; `slots`, a power of two in size,
 * holds indices of entries. The capacity of entries is three quarters of the slots, so that a
 * probe always finds an empty one.
 */
#include "base/map.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"

#define TOMBSTONE UINT32_MAX
#define FIRST_SLOTS 16u

void kelp_map_init(kelp_map *map, kelp_allocator allocator) {
    *map = (kelp_map){.allocator = allocator};
}

void kelp_map_deinit(kelp_map *map) {
    kelp_free(map->allocator, map->entries, map->entry_capacity * sizeof *map->entries);
    kelp_free(map->allocator, map->slots, map->slot_count * sizeof *map->slots);
    kelp_map_init(map, map->allocator);
}

static size_t first_slot(const kelp_map *map, uint64_t hash) {
    return (size_t)(hash ^ (hash >> 32)) & (map->slot_count - 1);
}

/* Returns the slot of the key, or SIZE_MAX. */
static size_t find_slot(const kelp_map *map, kelp_str key, uint64_t hash) {
    if (map->count == 0)
        return SIZE_MAX;
    KELP_ASSERT(kelp_is_power_of_two(map->slot_count));
    for (size_t slot = first_slot(map, hash);; slot = (slot + 1) & (map->slot_count - 1)) {
        uint32_t index = map->slots[slot];
        if (index == 0)
            return SIZE_MAX;
        if (index == TOMBSTONE)
            continue;
        KELP_ASSERT(index <= map->entry_count);
        const kelp_map_entry *entry = &map->entries[index - 1];
        if (entry->hash == hash && kelp_str_equal(entry->key, key))
            return slot;
    }
}

bool kelp_map_find(const kelp_map *map, kelp_str key, void **out_value) {
    size_t slot = find_slot(map, key, kelp_hash_str(key));
    if (slot == SIZE_MAX)
        return false;
    if (out_value != NULL)
        *out_value = map->entries[map->slots[slot] - 1].value;
    return true;
}

void *kelp_map_get(const kelp_map *map, kelp_str key) {
    void *value = NULL;
    return kelp_map_find(map, key, &value) ? value : NULL;
}

static void place(kelp_map *map, size_t entry_index) {
    KELP_ASSERT(entry_index < map->entry_capacity && map->count < map->slot_count);
    size_t slot = first_slot(map, map->entries[entry_index].hash);
    while (map->slots[slot] != 0 && map->slots[slot] != TOMBSTONE)
        slot = (slot + 1) & (map->slot_count - 1);
    map->slots[slot] = (uint32_t)(entry_index + 1);
}

/* Drops removed entries, then fills the slots again. */
static void rebuild(kelp_map *map) {
    size_t kept = 0;
    for (size_t i = 0; i < map->entry_count; i++) {
        if (map->entries[i].used)
            map->entries[kept++] = map->entries[i];
    }
    KELP_ASSERT(kept == map->count);
    map->entry_count = kept;
    memset(map->slots, 0, map->slot_count * sizeof *map->slots);
    for (size_t i = 0; i < kept; i++)
        place(map, i);
}

/* Grows the map for one more entry. The map is unchanged on failure. */
static kelp_status *grow_for_one(kelp_map *map) {
    if (map->entry_count < map->entry_capacity)
        return NULL;
    if (map->entry_capacity && map->count <= map->entry_capacity / 2) {
        rebuild(map);
        return NULL;
    }
    size_t slot_count = map->slot_count ? map->slot_count * 2 : FIRST_SLOTS;
    if (slot_count > (size_t)UINT32_MAX / 2)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "map is full: it holds %zu entries", map->count);
    size_t capacity = slot_count / 4 * 3;
    void *slots = NULL;
    void *entries = NULL;
    KELP_TRY(kelp_alloc(map->allocator, slot_count * sizeof(*map->slots), &slots));
    kelp_status *status = kelp_alloc(map->allocator, capacity * sizeof *map->entries, &entries);
    if (status != NULL) {
        kelp_free(map->allocator, slots, slot_count * sizeof *map->slots);
        return status;
    }
    if (map->entry_count)
        memcpy(entries, map->entries, map->entry_count * sizeof *map->entries);
    kelp_free(map->allocator, map->entries, map->entry_capacity * sizeof *map->entries);
    kelp_free(map->allocator, map->slots, map->slot_count * sizeof *map->slots);
    map->entries = entries;
    map->entry_capacity = capacity;
    map->slots = slots;
    map->slot_count = slot_count;
    rebuild(map);
    return NULL;
}

kelp_status *kelp_map_put(kelp_map *map, kelp_str key, void *value) {
    uint64_t hash = kelp_hash_str(key);
    size_t slot = find_slot(map, key, hash);
    if (slot != SIZE_MAX) {
        /* the caller keeps the bytes of the new key alive, not those of the old one */
        kelp_map_entry *entry = &map->entries[map->slots[slot] - 1];
        entry->key = key;
        entry->value = value;
        return NULL;
    }
    KELP_TRY(grow_for_one(map));
    map->entries[map->entry_count] =
        (kelp_map_entry){.key = key, .value = value, .hash = hash, .used = true};
    place(map, map->entry_count);
    map->entry_count++;
    map->count++;
    return NULL;
}

void *kelp_map_remove(kelp_map *map, kelp_str key) {
    size_t slot = find_slot(map, key, kelp_hash_str(key));
    if (slot == SIZE_MAX)
        return NULL;
    kelp_map_entry *entry = &map->entries[map->slots[slot] - 1];
    void *value = entry->value;
    *entry = (kelp_map_entry){.used = false};
    map->slots[slot] = TOMBSTONE;
    map->count--;
    return value;
}

kelp_map_entry *kelp_map_next(const kelp_map *map, const kelp_map_entry *entry) {
    size_t index = entry != NULL ? (size_t)(entry - map->entries) + 1 : 0;
    for (; index < map->entry_count; index++) {
        if (map->entries[index].used)
            return &map->entries[index];
    }
    return NULL;
}
