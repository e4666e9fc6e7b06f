/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers from the response cache. What makes two requests the same is written out in full: the
 * model, its version, a fingerprint of its files and configuration, and of the request its inputs
 * (names, types, shapes, bytes), outputs and parameters. A hash of that is the cache's key; the
 * full text is stored with the response and compared on look-up, so that no two requests that
 * collide see each other's answers.
 *
 * Threads: those of the request.
 */
#ifndef KELP_SERVER_CACHE_CACHED_H_
#define KELP_SERVER_CACHE_CACHED_H_

#include "server/request/response.h"

/* A request as the cache knows it. Belongs to the submission's factory. */
typedef struct kelp_cache_ticket {
    char *identity; /* the full text */
    size_t identity_length;
    size_t identity_capacity;
    char key[40];       /* its hash */
    uint64_t lookup_ns; /* what the look-up took */
} kelp_cache_ticket;

/* Looks the request up, which is normalized and has its factory. `*out_response` is the answer,
 * ready to be sent, or NULL: then the factory holds a ticket, with which
 * kelp_cached_store keeps the answer. Failures of the cache are logged and count as misses. */
void kelp_cached_find(kelp_request *request, kelp_response **out_response);
/* Keeps a response that is about to be sent, if its factory has a ticket and it is the only one.
 * Errors are never kept. */
void kelp_cached_store(kelp_response *response, uint32_t flags);
/* NULL is fine. */
void kelp_cache_ticket_destroy(kelp_cache_ticket *ticket);

#endif
