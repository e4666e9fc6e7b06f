/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of requests, responses and factories. */
#include "server/request/pool.h"

#include "base/assert.h"
#include "server/request/response.h"

void kelp_request_pools_init(kelp_request_pools *pools, kelp_allocator allocator) {
    for (size_t i = 0; i < KELP_REQUEST_POOL_COUNT; i++) {
        pthread_mutex_init(&pools->items[i].lock, NULL);
        pools->items[i].allocator = allocator;
    }
}

static void free_requests(kelp_request *request) {
    while (request != NULL) {
        kelp_request *next = request->next;
        kelp_request_free(request);
        request = next;
    }
}

static void free_responses(kelp_response *response) {
    while (response != NULL) {
        kelp_response *next = response->next;
        kelp_response_free(response);
        response = next;
    }
}

void kelp_request_pools_deinit(kelp_request_pools *pools) {
    for (size_t i = 0; i < KELP_REQUEST_POOL_COUNT; i++) {
        kelp_request_pool *pool = &pools->items[i];
        free_requests(pool->requests);
        free_requests(pool->bare_requests);
        free_responses(pool->responses);
        free_responses(pool->bare_responses);
        while (pool->factories != NULL) {
            kelp_factory *factory = pool->factories;
            pool->factories = factory->next;
            kelp_factory_free(factory);
        }
        pthread_mutex_destroy(&pool->lock);
    }
}

kelp_request_pool *kelp_request_pool_of_thread(kelp_request_pools *pools) {
    static atomic_uint next;
    static _Thread_local unsigned mine; /* index + 1; 0: not assigned yet */
    if (!mine)
        mine =
            1 + atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % KELP_REQUEST_POOL_COUNT;
    return &pools->items[mine - 1];
}

void kelp_request_pools_lock(kelp_request_pools *pools) {
    for (size_t i = 0; i < KELP_REQUEST_POOL_COUNT; i++)
        pthread_mutex_lock(&pools->items[i].lock);
}

void kelp_request_pools_unlock(kelp_request_pools *pools) {
    for (size_t i = KELP_REQUEST_POOL_COUNT; i-- > 0;)
        pthread_mutex_unlock(&pools->items[i].lock);
}

kelp_request *kelp_request_pool_take(kelp_request_pool *pool) {
    KELP_ASSERT_HELD(&pool->lock);
    bool bare = pool->requests == NULL;
    kelp_request **list = bare ? &pool->bare_requests : &pool->requests;
    kelp_request *request = *list;
    if (request == NULL)
        return NULL;
    *list = request->next;
    if (!bare)
        pool->request_count--;
    return request;
}

kelp_response *kelp_request_pool_take_response(kelp_request_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    kelp_response *response = pool->responses;
    if (response != NULL) {
        pool->responses = response->next;
        pool->response_count--;
    } else if (pool->bare_responses != NULL) {
        response = pool->bare_responses;
        pool->bare_responses = response->next;
    }
    pthread_mutex_unlock(&pool->lock);
    return response;
}

kelp_factory *kelp_request_pool_take_factory(kelp_request_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    kelp_factory *factory = pool->factories;
    if (factory != NULL)
        pool->factories = factory->next;
    pthread_mutex_unlock(&pool->lock);
    return factory;
}

void kelp_request_pool_put(kelp_request_pool *pool, kelp_request *request) {
    KELP_ASSERT(request->model == NULL && request->home == pool);
    pthread_mutex_lock(&pool->lock);
    bool warm = pool->request_count < KELP_REQUEST_POOL_WARM;
    if (warm) {
        request->next = pool->requests;
        pool->requests = request;
        pool->request_count++;
    }
    pthread_mutex_unlock(&pool->lock);
    if (warm)
        return;
    kelp_request_trim(request);
    pthread_mutex_lock(&pool->lock);
    request->next = pool->bare_requests;
    pool->bare_requests = request;
    pthread_mutex_unlock(&pool->lock);
}

void kelp_request_pool_put_response(kelp_request_pool *pool, kelp_response *response) {
    KELP_ASSERT(response->factory == NULL && response->home == pool);
    pthread_mutex_lock(&pool->lock);
    bool warm = pool->response_count < KELP_REQUEST_POOL_WARM;
    if (warm) {
        response->next = pool->responses;
        pool->responses = response;
        pool->response_count++;
    }
    pthread_mutex_unlock(&pool->lock);
    if (warm)
        return;
    kelp_response_trim(response);
    pthread_mutex_lock(&pool->lock);
    response->next = pool->bare_responses;
    pool->bare_responses = response;
    pthread_mutex_unlock(&pool->lock);
}

void kelp_request_pool_put_factory(kelp_request_pool *pool, kelp_factory *factory) {
    KELP_ASSERT(factory->home == pool && atomic_load(&factory->open) == 0);
    pthread_mutex_lock(&pool->lock);
    factory->next = pool->factories;
    pool->factories = factory;
    pthread_mutex_unlock(&pool->lock);
}
