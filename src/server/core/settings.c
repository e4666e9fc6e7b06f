/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of strings and of settings. */
#include "server/core/settings.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <string.h>

void kelp_string_list_init(kelp_string_list *list, kelp_allocator allocator) {
    *list = (kelp_string_list){.allocator = allocator};
}

kelp_status *kelp_string_list_add(kelp_string_list *list, const char *text) {
    KELP_ASSERT(list->allocator.realloc && list->count <= list->capacity);
    KELP_TRY(kelp_grow(list->allocator, (void **)&list->items, &list->capacity, list->count + 1,
                       sizeof *list->items));
    KELP_TRY(kelp_strdup(list->allocator, text, &list->items[list->count]));
    list->count++;
    return NULL;
}

bool kelp_string_list_has(const kelp_string_list *list, const char *text) {
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], text) == 0)
            return true;
    return false;
}

bool kelp_string_list_remove(kelp_string_list *list, const char *text) {
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i], text) != 0)
            continue;
        kelp_free_string(list->allocator, list->items[i]);
        memmove(&list->items[i], &list->items[i + 1], (list->count - i - 1) * sizeof *list->items);
        list->count--;
        return true;
    }
    return false;
}

void kelp_string_list_deinit(kelp_string_list *list) {
    for (size_t i = 0; i < list->count; i++)
        kelp_free_string(list->allocator, list->items[i]);
    kelp_free(list->allocator, list->items, list->capacity * sizeof *list->items);
    kelp_string_list_init(list, list->allocator);
}

kelp_status *kelp_string_list_append(kelp_string_list *list, const kelp_string_list *from) {
    for (size_t i = 0; i < from->count; i++)
        KELP_TRY(kelp_string_list_add(list, from->items[i]));
    return NULL;
}

void kelp_settings_init(kelp_settings *settings, kelp_allocator allocator) {
    *settings = (kelp_settings){.allocator = allocator};
}

static kelp_setting *find(const kelp_settings *settings, const char *owner, const char *name) {
    for (size_t i = 0; i < settings->count; i++)
        if (strcmp(settings->items[i].owner, owner) == 0 &&
            strcmp(settings->items[i].name, name) == 0)
            return &settings->items[i];
    return NULL;
}

kelp_status *kelp_settings_set(kelp_settings *settings, const char *owner, const char *name,
                               const char *value) {
    KELP_ASSERT(settings->allocator.realloc && settings->count <= settings->capacity);
    kelp_allocator heap = settings->allocator;
    char *copy = NULL;
    KELP_TRY(kelp_strdup(heap, value, &copy));
    kelp_setting *setting = find(settings, owner, name);
    if (setting != NULL) {
        kelp_free_string(heap, setting->value);
        setting->value = copy;
        return NULL;
    }
    kelp_setting fresh = {.value = copy};
    kelp_status *status = kelp_grow(heap, (void **)&settings->items, &settings->capacity,
                                    settings->count + 1, sizeof *settings->items);
    if (status == NULL)
        status = kelp_strdup(heap, owner, &fresh.owner);
    if (status == NULL)
        status = kelp_strdup(heap, name, &fresh.name);
    if (status != NULL) {
        kelp_free_string(heap, fresh.owner);
        kelp_free_string(heap, copy);
        return status;
    }
    settings->items[settings->count++] = fresh;
    return NULL;
}

const char *kelp_settings_get(const kelp_settings *settings, const char *owner, const char *name) {
    const kelp_setting *setting = find(settings, owner, name);
    return setting != NULL ? setting->value : NULL;
}

static void setting_deinit(kelp_allocator heap, kelp_setting *setting) {
    kelp_free_string(heap, setting->owner);
    kelp_free_string(heap, setting->name);
    kelp_free_string(heap, setting->value);
}

void kelp_settings_remove(kelp_settings *settings, const char *owner) {
    size_t kept = 0;
    for (size_t i = 0; i < settings->count; i++) {
        if (strcmp(settings->items[i].owner, owner) == 0)
            setting_deinit(settings->allocator, &settings->items[i]);
        else
            settings->items[kept++] = settings->items[i];
    }
    settings->count = kept;
}

void kelp_settings_deinit(kelp_settings *settings) {
    for (size_t i = 0; i < settings->count; i++)
        setting_deinit(settings->allocator, &settings->items[i]);
    kelp_free(settings->allocator, settings->items, settings->capacity * sizeof *settings->items);
    kelp_settings_init(settings, settings->allocator);
}

kelp_status *kelp_settings_merge(kelp_settings *settings, const kelp_settings *from) {
    for (size_t i = 0; i < from->count; i++)
        KELP_TRY(kelp_settings_set(settings, from->items[i].owner, from->items[i].name,
                                   from->items[i].value));
    return NULL;
}
