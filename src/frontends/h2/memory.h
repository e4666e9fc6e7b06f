/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for nghttp2: recycles blocks by size class, so that a warm thread allocates nothing. Used
 * by one thread at a time. */
#ifndef KELP_FRONTENDS_H2_MEMORY_H_
#define KELP_FRONTENDS_H2_MEMORY_H_

#include <kelp/allocator.h>
#include <nghttp2/nghttp2.h>

#define KELP_HTTP2_SIZE_CLASSES 22

typedef struct kelp_http2_block kelp_http2_block;

/* Free blocks by size class. */
typedef struct kelp_http2_memory {
    kelp_allocator allocator;
    kelp_http2_block *free[KELP_HTTP2_SIZE_CLASSES];
    size_t kept_bytes; /* of all free blocks */
    nghttp2_mem functions;
} kelp_http2_memory;

/* Initializes without allocating. `memory` must not be moved afterwards. */
void kelp_http2_memory_init(kelp_http2_memory *memory, kelp_allocator allocator);
/* Frees the recycled blocks, after nghttp2 has freed its own. */
void kelp_http2_memory_deinit(kelp_http2_memory *memory);

#endif
