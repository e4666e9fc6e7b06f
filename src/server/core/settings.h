/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of strings and of settings. Not thread-safe. */
#ifndef KELP_SERVER_CORE_SETTINGS_H_
#define KELP_SERVER_CORE_SETTINGS_H_

#include <kelp/allocator.h>

/* A growing list of strings, each a copy. */
typedef struct kelp_string_list {
    kelp_allocator allocator;
    char **items;
    size_t count;
    size_t capacity;
} kelp_string_list;

void kelp_string_list_init(kelp_string_list *list, kelp_allocator allocator);
kelp_status *kelp_string_list_add(kelp_string_list *list, const char *text) KELP_MUST_USE;
bool kelp_string_list_has(const kelp_string_list *list, const char *text);
/* Removes the first equal string; returns false if there is none. */
bool kelp_string_list_remove(kelp_string_list *list, const char *text);
void kelp_string_list_deinit(kelp_string_list *list);
/* Appends copies of all strings of `from`. */
kelp_status *kelp_string_list_append(kelp_string_list *list,
                                     const kelp_string_list *from) KELP_MUST_USE;

/* An entry of kelp_settings. */
typedef struct kelp_setting {
    char *owner; /* a backend, a host policy, a cache, a metric, a resource; may be "" */
    char *name;
    char *value;
} kelp_setting;

/* A map from (owner, name) to a value, in the order of the first assignments. */
typedef struct kelp_settings {
    kelp_allocator allocator;
    kelp_setting *items;
    size_t count;
    size_t capacity;
} kelp_settings;

/* Initializes an empty map. */
void kelp_settings_init(kelp_settings *settings, kelp_allocator allocator);
/* Sets a value; replaces an earlier one. */
kelp_status *kelp_settings_set(kelp_settings *settings, const char *owner, const char *name,
                               const char *value) KELP_MUST_USE;
/* Returns a value, or NULL if it is not set. */
const char *kelp_settings_get(const kelp_settings *settings, const char *owner, const char *name);
/* Removes all values of the owner. */
void kelp_settings_remove(kelp_settings *settings, const char *owner);
void kelp_settings_deinit(kelp_settings *settings);
/* Copies all values of `from` into `settings`. */
kelp_status *kelp_settings_merge(kelp_settings *settings, const kelp_settings *from) KELP_MUST_USE;

#endif
