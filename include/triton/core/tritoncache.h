/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C API between a Triton server and a response cache, version 0.1, as implemented by Kelp.
 *
 * A cache stores entries under keys that the server computes. An entry is a list of buffers. Names,
 * values and signatures are those of Triton's public interface, and the comments describe Kelp.
 *
 * The server calls functions marked TRITONCACHE_ISPEC, which the cache defines, from any thread and
 * several at once. The cache calls all others. The conventions of tritonserver.h apply. Entries and
 * allocators are borrowed for the duration of the call that receives them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "triton/core/tritonserver.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a function that the server library exports. */
#ifndef TRITONCACHE_DECLSPEC
#if defined(__GNUC__)
#define TRITONCACHE_DECLSPEC __attribute__((__visibility__("default")))
#else
#define TRITONCACHE_DECLSPEC
#endif
#endif

/* Marks a function that a cache exports. */
#ifndef TRITONCACHE_ISPEC
#if defined(__GNUC__)
#define TRITONCACHE_ISPEC __attribute__((__visibility__("default")))
#else
#define TRITONCACHE_ISPEC
#endif
#endif

/* ---- Opaque objects ---------------------------------------------------------------------- */

/* The server's side of TRITONCACHE_Copy. */
struct TRITONCACHE_Allocator;
/* The state of a cache, which TRITONCACHE_CacheInitialize creates and only the cache accesses. */
struct TRITONCACHE_Cache;
/* A list of buffers. */
struct TRITONCACHE_CacheEntry;

typedef struct TRITONCACHE_Allocator TRITONCACHE_Allocator;
typedef struct TRITONCACHE_Cache TRITONCACHE_Cache;
typedef struct TRITONCACHE_CacheEntry TRITONCACHE_CacheEntry;

/* ---- API version ------------------------------------------------------------------------- */

/* The version of this header. An incompatible change increments the major version, an addition the
 * minor version. */
#define TRITONCACHE_API_VERSION_MAJOR 0
#define TRITONCACHE_API_VERSION_MINOR 1

/* Gets the version that the server implements. A cache is compatible if it was compiled with the
 * same major version and the same or a lower minor version. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_ApiVersion(uint32_t *major, uint32_t *minor);

/* ---- Entries ----------------------------------------------------------------------------- */

/* Gets the number of buffers of an entry. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *
TRITONCACHE_CacheEntryBufferCount(TRITONCACHE_CacheEntry *entry, size_t *count);

/* Adds a buffer to an entry. The attributes are copied. The bytes are not: they must stay valid
 * until the function that received the entry returns. INVALID_ARG for 0 bytes or GPU memory. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *
TRITONCACHE_CacheEntryAddBuffer(TRITONCACHE_CacheEntry *entry, void *base,
                                TRITONSERVER_BufferAttributes *buffer_attributes);

/* Gets the address of a buffer, and copies its attributes to 'buffer_attributes', which the caller
 * owns. During an insertion, the address is NULL until the cache sets it. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *
TRITONCACHE_CacheEntryGetBuffer(TRITONCACHE_CacheEntry *entry, size_t index, void **base,
                                TRITONSERVER_BufferAttributes *buffer_attributes);

/* Sets the address of a buffer, and its attributes unless they are NULL. The bytes are not copied.
 * INVALID_ARG for GPU memory. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *
TRITONCACHE_CacheEntrySetBuffer(TRITONCACHE_CacheEntry *entry, size_t index, void *new_base,
                                TRITONSERVER_BufferAttributes *buffer_attributes);

/* Copies bytes between the server and the buffers of an entry: on a lookup from the buffers, on an
 * insertion to the buffers that the cache set. The cache must not modify or evict them during the
 * call. INTERNAL if the entry does not have the number and sizes of buffers that the server
 * expects. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_Copy(TRITONCACHE_Allocator *allocator,
                                                          TRITONCACHE_CacheEntry *entry);

/* ---- Defined by the cache ---------------------------------------------------------------- */

/* The server finds these functions by name. All are required. The server takes ownership of the
 * errors that they return. */

/* Creates a cache from its configuration, a JSON object. An error fails TRITONSERVER_ServerNew. If
 * '*cache' is not NULL after an error, the server finalizes it. */
TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheInitialize(TRITONCACHE_Cache **cache,
                                                                  const char *config);

/* Destroys a cache when its server stops. */
TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheFinalize(TRITONCACHE_Cache *cache);

/* Stores an entry, whose attributes specify the sizes of its buffers. The cache allocates memory,
 * sets it with TRITONCACHE_CacheEntrySetBuffer, and calls TRITONCACHE_Copy. ALREADY_EXISTS if the
 * key exists. The server logs other errors and continues. */
TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheInsert(TRITONCACHE_Cache *cache,
                                                              const char *key,
                                                              TRITONCACHE_CacheEntry *entry,
                                                              TRITONCACHE_Allocator *allocator);

/* Finds an entry. The cache adds its buffers to 'entry', which is empty, and calls
 * TRITONCACHE_Copy. NOT_FOUND if the key does not exist. The server logs other errors and executes
 * the request. */
TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheLookup(TRITONCACHE_Cache *cache,
                                                              const char *key,
                                                              TRITONCACHE_CacheEntry *entry,
                                                              TRITONCACHE_Allocator *allocator);

#ifdef __cplusplus
}
#endif
