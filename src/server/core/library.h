/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared libraries that extend the server: backends, caches, repository agents. A library is never
 * unloaded: unloading code that has threads or thread-local destructors is unsafe.
 */
#ifndef KELP_SERVER_CORE_LIBRARY_H_
#define KELP_SERVER_CORE_LIBRARY_H_

#include <kelp/status.h>
#include <stddef.h>

/* An entry point, and the function pointer that receives its address. */
typedef struct kelp_entry_point {
    const char *symbol;
    size_t offset; /* of the function pointer in the object */
    bool required;
} kelp_entry_point;

/* Opens a library and stores the addresses of its entry points in `object`; NULL for missing ones.
 * Ignores symbols of the library's dependencies. NOT_FOUND "'PATH' is not a KIND: it has no SYMBOL"
 * if a required entry point is missing. */
kelp_status *kelp_library_open(const char *path, const char *kind,
                               const kelp_entry_point *entry_points, size_t count,
                               void *object) KELP_MUST_USE;

/* Determines which symbols a library refers to: sets out_found[i] if the file contains the name
 * symbols[i]. Searching the file instead of the symbol table also finds uses through dlsym. */
kelp_status *kelp_library_refers(const char *path, const char *const *symbols, size_t count,
                                 bool *out_found) KELP_MUST_USE;

#endif
