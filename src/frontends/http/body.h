/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a request: a growing buffer in which one offset is aligned, so that the tensor at
 * this offset can be used in place. */
#ifndef KELP_FRONTENDS_HTTP_BODY_H_
#define KELP_FRONTENDS_HTTP_BODY_H_

#include <kelp/allocator.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define KELP_HTTP_BODY_ALIGNMENT 64u

/* The bytes of all bodies of a server. */
typedef struct kelp_http_budget {
    atomic_size_t used_bytes;
    size_t limit_bytes;
} kelp_http_budget;

/* `length` bytes at kelp_http_body_data. The memory is base[0, capacity), aligned to
 * KELP_HTTP_BODY_ALIGNMENT. */
typedef struct kelp_http_body {
    kelp_allocator allocator;
    kelp_http_budget *budget; /* NULL: none; set after kelp_http_body_init */
    char *base;
    size_t capacity;
    size_t skew; /* unused bytes before the body, which align the offset */
    size_t length;
} kelp_http_body;

void kelp_http_body_init(kelp_http_body *body, kelp_allocator allocator);
void kelp_http_body_deinit(kelp_http_body *body);
/* Empties the body; frees its memory if it has more than `keep_bytes`. */
void kelp_http_body_clear(kelp_http_body *body, size_t keep_bytes);
/* Reserves memory for `needed_bytes` of body in total, and preserves its contents. Returns false if
 * memory or the budget is exhausted. */
bool kelp_http_body_reserve(kelp_http_body *body, size_t needed_bytes);
/* Returns the first byte; NULL if no memory is reserved. */
static inline char *kelp_http_body_data(const kelp_http_body *body) {
    return body->base != NULL ? body->base + body->skew : NULL;
}

#endif
