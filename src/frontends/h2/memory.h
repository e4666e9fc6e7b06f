/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for nghttp2: recycles blocks by size class, so that a warm thread allocates nothing. Used
 * by one thread at a time. */
#ifndef KELP_FRONTENDS_H2_MEMORY_H_
#define KELP_FRONTENDS_H2_MEMORY_H_

#include <kelp/allocator.h>
#include <nghttp2/nghttp2.h>

#define KELP_HTTP2_SIZE_CLASSES 44

typedef struct kelp_http2_block kelp_http2_block;

/* Free blocks by size class. */
typedef struct kelp_http2_memory {
    kelp_allocator allocator;
    kelp_http2_block *free[KELP_HTTP2_SIZE_CLASSES];
    size_t kept_bytes;       /* of all free blocks */
    kelp_http2_block *frame; /* the frame buffer of all sessions, or NULL */
    bool creates_session;    /* the next large block is a frame buffer */
    nghttp2_mem functions;
} kelp_http2_memory;

/* Initializes without allocating. `memory` must not be moved afterwards. */
void kelp_http2_memory_init(kelp_http2_memory *memory, kelp_allocator allocator);
/* Call it with true before, and with false after nghttp2 creates a session. The sessions share the
 * buffer of 16 KiB in which nghttp2 serializes a frame, since its contents are needed only until
 * nghttp2_session_mem_send has returned no more bytes. A session must send everything before
 * another one sends. */
void kelp_http2_memory_create_session(kelp_http2_memory *memory, bool creates);
/* Call it before a session sends. Debug builds overwrite the frame buffer, to show that no session
 * needs its contents. */
void kelp_http2_memory_begin_send(kelp_http2_memory *memory);
/* Frees the recycled blocks, after nghttp2 has freed its own. */
void kelp_http2_memory_deinit(kelp_http2_memory *memory);

#endif
