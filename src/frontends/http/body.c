/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/http/body.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"

void kelp_http_body_init(kelp_http_body *body, kelp_allocator allocator) {
    *body = (kelp_http_body){.allocator = allocator};
}

/* Takes bytes from the budget. */
static bool spend(kelp_http_body *body, size_t bytes) {
    kelp_http_budget *budget = body->budget;
    if (budget == NULL)
        return true;
    size_t before = atomic_fetch_add_explicit(&budget->used_bytes, bytes, memory_order_relaxed);
    if (before <= budget->limit_bytes && bytes <= budget->limit_bytes - before)
        return true;
    atomic_fetch_sub_explicit(&budget->used_bytes, bytes, memory_order_relaxed);
    return false;
}

static void refund(kelp_http_body *body, size_t bytes) {
    if (body->budget != NULL)
        atomic_fetch_sub_explicit(&body->budget->used_bytes, bytes, memory_order_relaxed);
}

void kelp_http_body_deinit(kelp_http_body *body) {
    refund(body, body->capacity);
    kelp_free_aligned(body->allocator, body->base, body->capacity, KELP_HTTP_BODY_ALIGNMENT);
    body->base = NULL;
    body->capacity = body->length = body->skew = 0;
}

void kelp_http_body_clear(kelp_http_body *body, size_t keep_bytes) {
    if (body->capacity > keep_bytes)
        kelp_http_body_deinit(body);
    body->length = body->skew = 0;
}

bool kelp_http_body_reserve(kelp_http_body *body, size_t needed_bytes) {
    KELP_ASSERT(body->skew < KELP_HTTP_BODY_ALIGNMENT);
    KELP_ASSERT(body->length == 0 || body->skew + body->length <= body->capacity);
    size_t capacity;
    if (!kelp_size_add(needed_bytes, body->skew, &capacity))
        return false;
    if (capacity <= body->capacity)
        return true;
    if (body->length == 0) { /* avoid a copy */
        size_t skew = body->skew;
        kelp_http_body_deinit(body);
        body->skew = skew;
    }
    size_t more = capacity - body->capacity;
    if (!spend(body, more))
        return false;
    char *grown = body->allocator.realloc(body->allocator.userp, body->base, body->capacity,
                                          capacity, KELP_HTTP_BODY_ALIGNMENT);
    if (grown == NULL) {
        refund(body, more);
        return false;
    }
    body->base = grown;
    body->capacity = capacity;
    return true;
}
