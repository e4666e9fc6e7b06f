/* SPDX-License-Identifier: Apache-2.0 */
#include "server/scheduler/rate_limiter.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ALL_DEVICES = -1 };

/* A resource, which exists until the limiter is destroyed. */
struct kelp_rate_resource {
    kelp_rate_resource *next;
    char *name;
    bool global;
    int32_t device;    /* if not global */
    bool has_capacity; /* an option sets it */
    uint64_t capacity;
    uint64_t used;
    unsigned instances; /* that need it */
    bool reserved;      /* during grant: a waiting instance with precedence needs it */
};

struct kelp_rate_limiter {
    kelp_allocator allocator;
    kelp_settings capacities;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a ticket was granted or cancelled */
    kelp_rate_resource *resources;
    kelp_rate_ticket *tickets;
    kelp_rate_ticket *waiting; /* in order of arrival */
};

/* ---- creation ---- */

static kelp_status *check_capacities(const kelp_settings *capacities) {
    for (size_t i = 0; i < capacities->count; i++) {
        uint64_t number;
        const kelp_setting *item = &capacities->items[i];
        if (!kelp_parse_u64(kelp_str_from(item->value), &number))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "rate limiter resource '%s': expected a number, found '%s'",
                              item->owner, item->value);
    }
    return NULL;
}

kelp_status *kelp_rate_limiter_create(kelp_allocator allocator, const kelp_settings *capacities,
                                      kelp_rate_limiter **out) {
    kelp_rate_limiter *limiter = NULL;
    KELP_TRY(check_capacities(capacities));
    KELP_TRY(KELP_NEW(allocator, kelp_rate_limiter, &limiter));
    limiter->allocator = allocator;
    pthread_mutex_init(&limiter->lock, NULL);
    pthread_cond_init(&limiter->changed, NULL);
    kelp_settings_init(&limiter->capacities, allocator);
    kelp_status *status = kelp_settings_merge(&limiter->capacities, capacities);
    if (status != NULL)
        kelp_rate_limiter_destroy(limiter);
    else
        *out = limiter;
    return status;
}

void kelp_rate_limiter_destroy(kelp_rate_limiter *limiter) {
    if (limiter == NULL)
        return;
    KELP_ASSERT(limiter->tickets == NULL && limiter->waiting == NULL);
    while (limiter->resources != NULL) {
        kelp_rate_resource *resource = limiter->resources;
        limiter->resources = resource->next;
        kelp_free_string(limiter->allocator, resource->name);
        kelp_free(limiter->allocator, resource, sizeof *resource);
    }
    kelp_settings_deinit(&limiter->capacities);
    pthread_cond_destroy(&limiter->changed);
    pthread_mutex_destroy(&limiter->lock);
    kelp_free(limiter->allocator, limiter, sizeof *limiter);
}

/* ---- resources; the lock is held ---- */

/* Returns true if an option sets the capacity of the resource on any device. */
static bool is_configured(const kelp_rate_limiter *limiter, const char *name) {
    for (size_t i = 0; i < limiter->capacities.count; i++)
        if (strcmp(limiter->capacities.items[i].owner, name) == 0)
            return true;
    return false;
}

/* Sets the capacity from the options, if they have one. */
static void read_capacity(const kelp_rate_limiter *limiter, kelp_rate_resource *resource) {
    char device[16];
    snprintf(device, sizeof device, "%" PRId32, resource->device);
    const char *text =
        resource->global ? NULL : kelp_settings_get(&limiter->capacities, resource->name, device);
    /* The device of a global resource has no meaning. */
    for (size_t i = 0; resource->global && text == NULL && i < limiter->capacities.count; i++)
        if (strcmp(limiter->capacities.items[i].owner, resource->name) == 0)
            text = limiter->capacities.items[i].value;
    if (text == NULL)
        text = kelp_settings_get(&limiter->capacities, resource->name, "-1");
    resource->has_capacity = is_configured(limiter, resource->name);
    resource->capacity = 0;
    if (text != NULL && !kelp_parse_u64(kelp_str_from(text), &resource->capacity))
        KELP_ASSERT(!"the capacities were checked");
}

/* Returns a resource, and creates it if needed. */
static kelp_status *find_resource(kelp_rate_limiter *limiter, const kelp_config_resource *wanted,
                                  int32_t device, kelp_rate_resource **out) {
    kelp_rate_resource *resource = NULL;
    for (resource = limiter->resources; resource != NULL; resource = resource->next) {
        if (strcmp(resource->name, wanted->name) != 0)
            continue;
        if (resource->global != wanted->global && resource->instances > 0)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "Resource \"%s\" is present as both global and device-specific "
                              "resource in the model configuration.",
                              wanted->name);
        if (resource->global == wanted->global && (wanted->global || resource->device == device)) {
            *out = resource;
            return NULL;
        }
    }
    KELP_TRY(KELP_NEW(limiter->allocator, kelp_rate_resource, &resource));
    kelp_status *status = kelp_strdup(limiter->allocator, wanted->name, &resource->name);
    if (status != NULL) {
        kelp_free(limiter->allocator, resource, sizeof *resource);
        return status;
    }
    resource->global = wanted->global;
    resource->device = wanted->global ? ALL_DEVICES : device;
    read_capacity(limiter, resource);
    resource->next = limiter->resources;
    limiter->resources = resource;
    *out = resource;
    return NULL;
}

/* Sets capacities that no option sets to the maximum need of an instance. */
static void update_capacities(kelp_rate_limiter *limiter) {
    for (kelp_rate_resource *r = limiter->resources; r != NULL; r = r->next) {
        r->instances = 0;
        if (!r->has_capacity)
            r->capacity = 0;
    }
    for (const kelp_rate_ticket *ticket = limiter->tickets; ticket != NULL; ticket = ticket->next) {
        for (size_t i = 0; i < ticket->need_count; i++) {
            kelp_rate_resource *r = ticket->needs[i].resource;
            r->instances++;
            if (!r->has_capacity)
                r->capacity = KELP_MAX(r->capacity, ticket->needs[i].count);
        }
    }
}

/* ---- the order; the lock is held ---- */

static uint64_t weight_of(const kelp_rate_ticket *ticket) {
    uint64_t weight;
    return __builtin_mul_overflow(ticket->executions, ticket->priority, &weight) ? UINT64_MAX
                                                                                 : weight;
}

/* Compares the precedence of tickets: negative if `a` is before `b`, 0 if they are equal. */
static int compare(const kelp_rate_ticket *a, const kelp_rate_ticket *b) {
    uint64_t first = weight_of(a), second = weight_of(b);
    if (first == second) {
        first = a->priority;
        second = b->priority;
    }
    return (first > second) - (first < second);
}

/* Returns the waiting ticket after `previous` (NULL: the first one) in the order of precedence, or
 * NULL. */
static kelp_rate_ticket *next_in_order(const kelp_rate_limiter *limiter,
                                       const kelp_rate_ticket *previous) {
    kelp_rate_ticket *best = NULL;
    bool passed = previous == NULL;
    for (kelp_rate_ticket *t = limiter->waiting; t != NULL; t = t->next_waiting) {
        int order = previous != NULL ? compare(t, previous) : 1;
        bool is_after = order > 0 || (order == 0 && passed);
        passed |= t == previous;
        if (is_after && t != previous && (best == NULL || compare(t, best) < 0))
            best = t;
    }
    return best;
}

static bool fits(const kelp_rate_ticket *ticket) {
    for (size_t i = 0; i < ticket->need_count; i++) {
        const kelp_rate_resource *r = ticket->needs[i].resource;
        if (r->reserved || r->used + ticket->needs[i].count > r->capacity)
            return false;
    }
    return true;
}

static void unlink_waiting(kelp_rate_limiter *limiter, kelp_rate_ticket *ticket) {
    kelp_rate_ticket **link = &limiter->waiting;
    while (*link != ticket)
        link = &(*link)->next_waiting;
    *link = ticket->next_waiting;
    ticket->next_waiting = NULL;
    ticket->waiting = false;
}

/* Grants resources to the waiting tickets that they suffice for. */
static void grant(kelp_rate_limiter *limiter) {
    for (kelp_rate_resource *r = limiter->resources; r != NULL; r = r->next)
        r->reserved = false;
    const kelp_rate_ticket *reserving = NULL;
    for (;;) {
        kelp_rate_ticket *ticket = next_in_order(limiter, reserving);
        if (ticket == NULL)
            break;
        bool granted = fits(ticket);
        for (size_t i = 0; i < ticket->need_count; i++) {
            kelp_rate_resource *r = ticket->needs[i].resource;
            if (granted)
                r->used += ticket->needs[i].count;
            else
                r->reserved = true;
        }
        if (granted) {
            unlink_waiting(limiter, ticket);
            ticket->granted = true;
        } else {
            reserving = ticket;
        }
    }
    pthread_cond_broadcast(&limiter->changed);
}

/* ---- instances ---- */

static kelp_status *fill_needs(kelp_rate_limiter *limiter, const kelp_config_instance_group *group,
                               int32_t device, const char *instance_name,
                               kelp_rate_ticket *ticket) {
    KELP_TRY(kelp_alloc_zero(limiter->allocator, group->resource_count, sizeof *ticket->needs,
                             (void **)&ticket->needs));
    ticket->need_capacity = group->resource_count;
    for (size_t i = 0; i < group->resource_count; i++) {
        kelp_rate_need *need = ticket->needs;
        kelp_rate_resource *resource = NULL;
        KELP_TRY(find_resource(limiter, &group->resources[i], device, &resource));
        while (need < ticket->needs + ticket->need_count && need->resource != resource)
            need++;
        if (need == ticket->needs + ticket->need_count)
            ticket->need_count++;
        need->resource = resource;
        need->count += group->resources[i].count;
        if (need->resource->has_capacity && need->count > need->resource->capacity)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "instance '%s': Resource count for \"%s\" is limited to %" PRIu64
                              " which will prevent scheduling of one or more model instances, the "
                              "minimum required count is %" PRIu64,
                              instance_name, need->resource->name, need->resource->capacity,
                              need->count);
    }
    return NULL;
}

/* Returns the lowest weight of the added tickets; 0 if there are none. */
static uint64_t lowest_weight(const kelp_rate_limiter *limiter) {
    uint64_t lowest = limiter->tickets != NULL ? UINT64_MAX : 0;
    for (const kelp_rate_ticket *t = limiter->tickets; t != NULL; t = t->next)
        lowest = KELP_MIN(lowest, weight_of(t));
    return lowest;
}

static void free_needs(kelp_allocator allocator, kelp_rate_ticket *ticket) {
    kelp_free(allocator, ticket->needs, ticket->need_capacity * sizeof *ticket->needs);
    *ticket = (kelp_rate_ticket){0};
}

kelp_status *kelp_rate_limiter_add(kelp_rate_limiter *limiter,
                                   const kelp_config_instance_group *group, int32_t device,
                                   const char *instance_name, kelp_rate_ticket *ticket) {
    KELP_ASSERT(ticket->limiter == NULL);
    *ticket = (kelp_rate_ticket){.priority = KELP_MAX(group->priority, 1u)};
    pthread_mutex_lock(&limiter->lock);
    kelp_status *status = fill_needs(limiter, group, device, instance_name, ticket);
    if (status == NULL) {
        ticket->executions = lowest_weight(limiter) / ticket->priority;
        ticket->limiter = limiter;
        ticket->next = limiter->tickets;
        limiter->tickets = ticket;
        update_capacities(limiter);
        grant(limiter);
    }
    pthread_mutex_unlock(&limiter->lock);
    if (status != NULL)
        free_needs(limiter->allocator, ticket);
    return status;
}

void kelp_rate_ticket_remove(kelp_rate_ticket *ticket) {
    kelp_rate_limiter *limiter = ticket->limiter;
    if (limiter == NULL)
        return;
    pthread_mutex_lock(&limiter->lock);
    KELP_ASSERT(!ticket->granted && !ticket->waiting);
    kelp_rate_ticket **link = &limiter->tickets;
    while (*link != ticket)
        link = &(*link)->next;
    *link = ticket->next;
    update_capacities(limiter);
    pthread_mutex_unlock(&limiter->lock);
    free_needs(limiter->allocator, ticket);
}

/* ---- executions ---- */

/* Inserts the ticket behind the others that wait. The lock is held. */
static void start_waiting(kelp_rate_limiter *limiter, kelp_rate_ticket *ticket) {
    kelp_rate_ticket **link = &limiter->waiting;
    while (*link != NULL)
        link = &(*link)->next_waiting;
    *link = ticket;
    ticket->waiting = true;
}

/* Removes the advantage of a ticket that was idle over those that execute or wait. The lock is
 * held. */
static void catch_up(kelp_rate_limiter *limiter, kelp_rate_ticket *ticket) {
    uint64_t lowest = UINT64_MAX;
    for (const kelp_rate_ticket *t = limiter->tickets; t != NULL; t = t->next)
        if (t->waiting || t->granted)
            lowest = KELP_MIN(lowest, weight_of(t));
    if (lowest == UINT64_MAX)
        return;
    uint64_t least = lowest / ticket->priority + (lowest % ticket->priority != 0);
    ticket->executions = KELP_MAX(ticket->executions, least);
}

bool kelp_rate_ticket_request(kelp_rate_ticket *ticket) {
    kelp_rate_limiter *limiter = ticket->limiter;
    pthread_mutex_lock(&limiter->lock);
    if (!ticket->cancelled && !ticket->granted && !ticket->waiting) {
        catch_up(limiter, ticket);
        start_waiting(limiter, ticket);
        grant(limiter);
    }
    bool granted = ticket->granted;
    pthread_mutex_unlock(&limiter->lock);
    return granted;
}

bool kelp_rate_ticket_wait(kelp_rate_ticket *ticket) {
    kelp_rate_limiter *limiter = ticket->limiter;
    pthread_mutex_lock(&limiter->lock);
    while (!ticket->granted && !ticket->cancelled)
        pthread_cond_wait(&limiter->changed, &limiter->lock);
    bool granted = ticket->granted;
    pthread_mutex_unlock(&limiter->lock);
    return granted;
}

/* Returns the resources of a granted ticket. The lock is held. */
static void give_back(kelp_rate_ticket *ticket) {
    KELP_ASSERT(ticket->granted);
    ticket->granted = false;
    for (size_t i = 0; i < ticket->need_count; i++) {
        KELP_ASSERT(ticket->needs[i].resource->used >= ticket->needs[i].count);
        ticket->needs[i].resource->used -= ticket->needs[i].count;
    }
}

void kelp_rate_ticket_release(kelp_rate_ticket *ticket, bool again) {
    kelp_rate_limiter *limiter = ticket->limiter;
    pthread_mutex_lock(&limiter->lock);
    ticket->executions++;
    give_back(ticket);
    if (again && !ticket->cancelled)
        start_waiting(limiter, ticket);
    grant(limiter);
    pthread_mutex_unlock(&limiter->lock);
}

void kelp_rate_ticket_withdraw(kelp_rate_ticket *ticket) {
    kelp_rate_limiter *limiter = ticket->limiter;
    pthread_mutex_lock(&limiter->lock);
    bool changes = ticket->granted || ticket->waiting;
    if (ticket->granted)
        give_back(ticket);
    else if (ticket->waiting)
        unlink_waiting(limiter, ticket);
    if (changes)
        grant(limiter);
    pthread_mutex_unlock(&limiter->lock);
}

void kelp_rate_ticket_cancel(kelp_rate_ticket *ticket) {
    kelp_rate_limiter *limiter = ticket->limiter;
    if (limiter == NULL)
        return;
    pthread_mutex_lock(&limiter->lock);
    ticket->cancelled = true;
    if (ticket->waiting) {
        unlink_waiting(limiter, ticket);
        grant(limiter);
    }
    pthread_cond_broadcast(&limiter->changed);
    pthread_mutex_unlock(&limiter->lock);
}
