/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/http/client.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/str.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

#define BUCKETS 1024
#define KEY_BYTES 8

struct kelp_http_client {
    kelp_http_clients *clients;
    kelp_http_client *next; /* in the bucket */
    uint8_t key[KEY_BYTES];
    uint32_t bucket;
    atomic_uint connections;
    atomic_uint refs; /* of connections and requests; increased from 0 with the mutex only */
};

struct kelp_http_clients {
    kelp_allocator allocator;
    kelp_http_client_limits limits;
    pthread_mutex_t mutex;
    kelp_http_client *buckets[BUCKETS];
};

kelp_status *kelp_http_clients_create(kelp_allocator allocator,
                                      const kelp_http_client_limits *limits,
                                      kelp_http_clients **out) {
    kelp_http_clients *clients;
    KELP_TRY(KELP_NEW(allocator, kelp_http_clients, &clients));
    clients->allocator = allocator;
    clients->limits = *limits;
    pthread_mutex_init(&clients->mutex, NULL);
    *out = clients;
    return NULL;
}

void kelp_http_clients_destroy(kelp_http_clients *clients) {
    if (clients == NULL)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        KELP_ASSERT(clients->buckets[i] == NULL);
    pthread_mutex_destroy(&clients->mutex);
    kelp_free(clients->allocator, clients, sizeof *clients);
}

/* Writes what identifies the client: an IPv4 address, an IPv6 network, or zeros. */
static void key_of(const struct sockaddr *address, uint8_t *out) {
    memset(out, 0, KEY_BYTES);
    if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof v4);
        memcpy(out, &v4.sin_addr, 4);
    } else if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, address, sizeof v6);
        bool mapped = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr);
        memcpy(out, v6.sin6_addr.s6_addr + (mapped ? 12 : 0), mapped ? 4 : KEY_BYTES);
    }
}

/* Returns the client of a key, with the mutex; NULL if memory is exhausted. */
static kelp_http_client *find_or_add(kelp_http_clients *clients, const uint8_t *key) {
    uint32_t bucket = (uint32_t)(kelp_hash_bytes(key, KEY_BYTES) % BUCKETS);
    kelp_http_client *client = clients->buckets[bucket];
    while (client != NULL && memcmp(client->key, key, KEY_BYTES) != 0)
        client = client->next;
    if (client != NULL)
        return client;
    kelp_status *status = KELP_NEW(clients->allocator, kelp_http_client, &client);
    if (status != NULL) {
        kelp_status_free(status);
        return NULL;
    }
    client->clients = clients;
    memcpy(client->key, key, KEY_BYTES);
    client->bucket = bucket;
    client->next = clients->buckets[bucket];
    clients->buckets[bucket] = client;
    return client;
}

kelp_status *kelp_http_client_connect(kelp_http_clients *clients, const struct sockaddr *address,
                                      kelp_http_client **out) {
    uint8_t key[KEY_BYTES];
    key_of(address, key);
    pthread_mutex_lock(&clients->mutex);
    kelp_http_client *client = find_or_add(clients, key);
    bool full = client != NULL && client->connections >= clients->limits.connections;
    if (client != NULL && !full) {
        atomic_fetch_add(&client->connections, 1);
        atomic_fetch_add(&client->refs, 1);
    }
    pthread_mutex_unlock(&clients->mutex);
    if (client == NULL)
        return kelp_status_oom();
    if (full)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "the client has %u connections",
                          clients->limits.connections);
    *out = client;
    return NULL;
}

/* Drops a reference. The last one is dropped with the mutex, so that no connection finds a client
 * that is being freed. */
static void drop(kelp_http_client *client) {
    kelp_http_clients *clients = client->clients;
    unsigned refs = atomic_load_explicit(&client->refs, memory_order_relaxed);
    while (refs > 1)
        if (atomic_compare_exchange_weak_explicit(&client->refs, &refs, refs - 1,
                                                  memory_order_release, memory_order_relaxed))
            return;
    pthread_mutex_lock(&clients->mutex);
    bool last = atomic_fetch_sub(&client->refs, 1) == 1;
    if (last) {
        kelp_http_client **link = &clients->buckets[client->bucket];
        while (*link != client)
            link = &(*link)->next;
        *link = client->next;
    }
    pthread_mutex_unlock(&clients->mutex);
    if (last)
        kelp_free(clients->allocator, client, sizeof *client);
}

void kelp_http_client_disconnect(kelp_http_client *client) {
    atomic_fetch_sub(&client->connections, 1);
    drop(client);
}

bool kelp_http_client_begin_request(kelp_http_client *client) {
    unsigned refs = atomic_fetch_add_explicit(&client->refs, 1, memory_order_relaxed);
    unsigned connections = atomic_load_explicit(&client->connections, memory_order_relaxed);
    if (refs < connections + client->clients->limits.requests)
        return true;
    drop(client);
    return false;
}

void kelp_http_client_end_request(kelp_http_client *client) {
    drop(client);
}
