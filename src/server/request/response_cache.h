/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of the response cache to requests. Thread-safe. */
#ifndef KELP_SERVER_REQUEST_RESPONSE_CACHE_H_
#define KELP_SERVER_REQUEST_RESPONSE_CACHE_H_

#include "server/request/response.h"

/* The cache's identification of a request. Owned by the submission's factory. */
typedef struct kelp_cache_ticket kelp_cache_ticket;

/* Implemented by the cache. */
typedef struct kelp_response_cache_ops {
    /* Looks up a request, which is normalized and has a factory. *out_response is a response that
     * is ready to be sent, or NULL. In the latter case the factory gets a ticket, which `store`
     * uses. Failures of the cache are logged and count as misses. */
    void (*find)(kelp_response_cache *cache, kelp_request *request, kelp_response **out_response);
    /* Stores a response before it is sent, if its factory has a ticket and the response is the only
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
