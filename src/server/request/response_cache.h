/* SPDX-License-Identifier: Apache-2.0 */
/* The response cache as requests see it. Thread-safe. */
#ifndef KELP_SERVER_REQUEST_RESPONSE_CACHE_H_
#define KELP_SERVER_REQUEST_RESPONSE_CACHE_H_

#include "server/request/response.h"

/* A request as the cache identifies it; belongs to the submission's factory. */
typedef struct kelp_cache_ticket kelp_cache_ticket;

/* Implemented by the cache. */
typedef struct kelp_response_cache_ops {
    /* Looks up a request, which is normalized and has its factory. *out_response is a response that
     * is ready to be sent, or NULL: the factory then holds a ticket, with which `store` keeps the
     * response. Failures of the cache are logged and count as misses. */
    void (*find)(kelp_response_cache *cache, kelp_request *request, kelp_response **out_response);
    /* Stores a response that is about to be sent if its factory has a ticket and it is the only
     * one. Errors are never stored. */
    void (*store)(kelp_response_cache *cache, kelp_response *response, uint32_t flags);
    /* Frees the ticket of a submission that ends without a response. */
    void (*discard)(kelp_response_cache *cache, kelp_cache_ticket *ticket);
} kelp_response_cache_ops;

/* The first member of a cache. */
struct kelp_response_cache {
    const kelp_response_cache_ops *ops;
};

#endif
