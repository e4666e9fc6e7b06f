/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of requests, responses and factories, so that a warm server submits without allocating.
 *
 * There is a fixed number of pools; each thread takes objects from one of them. An object returns
 * to the pool that it came from. If it returned to the pool of the thread that releases it, the
 * pools of threads that only create requests would be empty, and those of other threads would grow.
 *
 * Objects are not freed before the server is destroyed, so that the use of a deleted object can be
 * detected. The first KELP_REQUEST_POOL_WARM of a kind keep the memory of their last use; the
 * others are trimmed.
 *
 * The locks of the pools also guard the table of models: a lookup takes the lock of one pool, a
 * change takes the locks of all. Therefore the creation of a request takes only one lock.
 */
#ifndef KELP_SERVER_REQUEST_POOL_H_
#define KELP_SERVER_REQUEST_POOL_H_

#include <kelp/allocator.h>
#include <pthread.h>

#define KELP_REQUEST_POOL_COUNT 16
#define KELP_REQUEST_POOL_WARM 128

typedef struct kelp_request kelp_request;
typedef struct kelp_response kelp_response;
typedef struct kelp_factory kelp_factory;

/* The pool of some of the threads. */
typedef struct kelp_request_pool {
    _Alignas(128) pthread_mutex_t lock;
    kelp_allocator allocator;
    kelp_request *requests; /* with the memory of their last use; taken first */
    kelp_response *responses;
    kelp_request *bare_requests; /* trimmed */
    kelp_response *bare_responses;
    kelp_factory *factories;
    size_t request_count, response_count; /* without the trimmed ones */
} kelp_request_pool;

/* All pools of a server. */
typedef struct kelp_request_pools {
    kelp_request_pool items[KELP_REQUEST_POOL_COUNT];
} kelp_request_pools;

void kelp_request_pools_init(kelp_request_pools *pools, kelp_allocator allocator);
/* Frees all objects. None is in use. */
void kelp_request_pools_deinit(kelp_request_pools *pools);

/* Returns the calling thread's pool. */
kelp_request_pool *kelp_request_pool_of_thread(kelp_request_pools *pools);

/* Locks or unlocks all pools, in a fixed order. */
void kelp_request_pools_lock(kelp_request_pools *pools);
void kelp_request_pools_unlock(kelp_request_pools *pools);

/* Returns an object, or NULL if the pool is empty. The caller of kelp_request_pool_take holds the
 * lock; the other functions take it. */
kelp_request *kelp_request_pool_take(kelp_request_pool *pool);
kelp_response *kelp_request_pool_take_response(kelp_request_pool *pool);
kelp_factory *kelp_request_pool_take_factory(kelp_request_pool *pool);

/* Returns an object to its pool. */
void kelp_request_pool_put(kelp_request_pool *pool, kelp_request *request);
void kelp_request_pool_put_response(kelp_request_pool *pool, kelp_response *response);
void kelp_request_pool_put_factory(kelp_request_pool *pool, kelp_factory *factory);

#endif
