/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C API between a Triton server and its response caches, version 0.1, as Kelp provides it.
 *
 * A cache stores entries, each a row of buffers, under keys that the server makes. Names, values
 * and signatures are those of Triton's public interface; the contracts are Kelp's, with the
 * conventions at the head of tritonserver.h. Functions marked TRITONCACHE_ISPEC are defined by the
 * cache and called by the server, on any thread and several at once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "triton/core/tritonserver.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TRITONCACHE_DECLSPEC
#if defined(__GNUC__)
#define TRITONCACHE_DECLSPEC __attribute__((__visibility__("default")))
#else
#define TRITONCACHE_DECLSPEC
#endif
#endif

#ifndef TRITONCACHE_ISPEC
#if defined(__GNUC__)
#define TRITONCACHE_ISPEC __attribute__((__visibility__("default")))
#else
#define TRITONCACHE_ISPEC
#endif
#endif

/* ---- Opaque objects ---------------------------------------------------------------------- */

struct TRITONCACHE_Allocator;
struct TRITONCACHE_Cache;
struct TRITONCACHE_CacheEntry;

typedef struct TRITONCACHE_Allocator TRITONCACHE_Allocator;
/* What TRITONCACHE_CacheInitialize makes; the server never looks into it. */
typedef struct TRITONCACHE_Cache TRITONCACHE_Cache;
typedef struct TRITONCACHE_CacheEntry TRITONCACHE_CacheEntry;

/* ---- API version ------------------------------------------------------------------------- */

/* The major number changes when a cache has to change, the minor one when something is added. */
#define TRITONCACHE_API_VERSION_MAJOR 0
#define TRITONCACHE_API_VERSION_MINOR 1

/* Gives the version that the server implements. A cache needs an equal major number and a minor
 * number that is at least its own. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_ApiVersion(uint32_t *major, uint32_t *minor);

/* ---- Entries ----------------------------------------------------------------------------- */

/* Gives the number of buffers of an entry. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *
TRITONCACHE_CacheEntryBufferCount(TRITONCACHE_CacheEntry *entry, size_t *count);

/* Appends a buffer to an entry. The attributes are copied; the bytes are not, and stay with whoever
 * calls until the call that the entry was handed to returns. INVALID_ARG for an empty buffer and
 * for one that is not in CPU memory. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *
TRITONCACHE_CacheEntryAddBuffer(TRITONCACHE_CacheEntry *entry, void *base,
                                TRITONSERVER_BufferAttributes *buffer_attributes);

/* Gives the address of a buffer and writes its attributes into 'buffer_attributes', an object of
 * the caller's. INVALID_ARG when 'index' is out of range. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *
TRITONCACHE_CacheEntryGetBuffer(TRITONCACHE_CacheEntry *entry, size_t index, void **base,
                                TRITONSERVER_BufferAttributes *buffer_attributes);

/* Replaces a buffer's address, and its attributes unless they are NULL. INVALID_ARG when 'index' is
 * out of range and for memory other than the CPU's. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *
TRITONCACHE_CacheEntrySetBuffer(TRITONCACHE_CacheEntry *entry, size_t index, void *new_base,
                                TRITONSERVER_BufferAttributes *buffer_attributes);

/* Copies between the entry's buffers and the server: on a lookup into the response that is being
 * made, on an insertion from the response into buffers that the cache has set. To be called while
 * the cache keeps those buffers from being changed or evicted. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_Copy(TRITONCACHE_Allocator *allocator,
                                                          TRITONCACHE_CacheEntry *entry);

/* ---- Defined by the cache ---------------------------------------------------------------- */

/* All four functions are required. A server finds them by name. */

/* Called once to make '*cache' from its configuration, a JSON object. An error keeps the server
 * from starting. */
TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheInitialize(TRITONCACHE_Cache **cache,
                                                                  const char *config);

/* Called once to free the cache. */
TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheFinalize(TRITONCACHE_Cache *cache);

/* Called to store an entry, which describes the buffers and is borrowed for the call. The cache
 * makes room of its own, sets it as the entry's buffers, and fills it with TRITONCACHE_Copy.
 * ALREADY_EXISTS for a key that is taken. */
TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheInsert(TRITONCACHE_Cache *cache,
                                                              const char *key,
                                                              TRITONCACHE_CacheEntry *entry,
                                                              TRITONCACHE_Allocator *allocator);

/* Called to find an entry. The cache adds its buffers to 'entry', which comes in empty, and calls
 * TRITONCACHE_Copy. NOT_FOUND for a key that it has not. */
TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheLookup(TRITONCACHE_Cache *cache,
                                                              const char *key,
                                                              TRITONCACHE_CacheEntry *entry,
                                                              TRITONCACHE_Allocator *allocator);

#ifdef __cplusplus
}
#endif
