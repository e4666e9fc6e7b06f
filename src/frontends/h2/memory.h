/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for nghttp2: recycles blocks by size class, so that a warm thread allocates nothing. Used
 * by one thread at a time. Two blocks of a session are special, since idle connections should use
 * little memory: the sessions share the buffer of 16 KiB in which nghttp2 serializes a frame, and
 * the table of streams, which is zero without streams, has a page that can be returned. */
#ifndef KELP_FRONTENDS_H2_MEMORY_H_
#define KELP_FRONTENDS_H2_MEMORY_H_

#include <kelp/allocator.h>
#include <nghttp2/nghttp2.h>

#define KELP_HTTP2_SIZE_CLASSES 44

typedef struct kelp_http2_block kelp_http2_block;
typedef struct kelp_http2_pages kelp_http2_pages;

/* Free blocks by size class. */
typedef struct kelp_http2_memory {
    kelp_allocator allocator;
    kelp_http2_block *free[KELP_HTTP2_SIZE_CLASSES];
    size_t kept_bytes;       /* of all free blocks */
    kelp_http2_block *frame; /* the frame buffer of all sessions, or NULL */
    kelp_http2_pages *pages; /* for tables of streams */
    void *table;             /* of the session that is being created, or NULL */
    bool relaxes;            /* the system has pages of this size */
    bool creates_session;    /* the next large blocks are a frame buffer and a table */
    nghttp2_mem functions;
} kelp_http2_memory;

/* Initializes without allocating. `memory` must not be moved afterwards. */
void kelp_http2_memory_init(kelp_http2_memory *memory, kelp_allocator allocator);
/* Call it before nghttp2 creates a session. The contents of the shared frame buffer are needed only
 * until nghttp2_session_mem_send has returned no more bytes: a session must send everything before
 * another one sends. */
void kelp_http2_memory_begin_session(kelp_http2_memory *memory);
/* Call it after nghttp2 has created a session. Returns its table of streams; NULL if it has no page
 * of its own. */
void *kelp_http2_memory_end_session(kelp_http2_memory *memory);
/* Returns the memory of a table to the system until it is used, if the table exists and contains
 * only zeros. */
void kelp_http2_memory_relax(kelp_http2_memory *memory, void *table);
/* Call it before a session sends. Debug builds overwrite the frame buffer, to show that no session
 * needs its contents. */
void kelp_http2_memory_begin_send(kelp_http2_memory *memory);
/* Frees the recycled blocks and pages. */
void kelp_http2_memory_trim(kelp_http2_memory *memory);
/* Frees everything, after nghttp2 has freed its own. */
void kelp_http2_memory_deinit(kelp_http2_memory *memory);

#endif
