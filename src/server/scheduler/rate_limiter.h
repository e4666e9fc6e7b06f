/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rate limiter: executions on instances need resources, which are counted for the whole server.
 * An execution waits until its resources are free.
 *
 * A resource has a name and is global or of one device. Its capacity is an option of the server; if
 * none is set, the maximum that an instance needs, so that any instance can execute. A resource
 * that has options for other devices only has none on this one.
 *
 * Order: the waiting instance with the lowest product of executions and priority number is first;
 * among equals that with the lower priority number, then the one that waits longest. Later ones
 * overtake it only if they need none of its resources; therefore no instance waits forever. The
 * executions of a new instance, and of one that was idle, start at the lowest product of the
 * others, so that it does not execute alone until it has caught up.
 *
 * Thread-safe, except for creation and destruction. Only kelp_rate_ticket_wait waits; the other
 * functions may be called with the lock of a pool.
 */
#ifndef KELP_SERVER_SCHEDULER_RATE_LIMITER_H_
#define KELP_SERVER_SCHEDULER_RATE_LIMITER_H_

#include "server/config/config.h"
#include "server/core/settings.h"

typedef struct kelp_rate_limiter kelp_rate_limiter;
typedef struct kelp_rate_ticket kelp_rate_ticket;
typedef struct kelp_rate_resource kelp_rate_resource;

/* A number of units of a resource. */
typedef struct kelp_rate_need {
    kelp_rate_resource *resource;
    uint64_t count;
} kelp_rate_need;

/* The participation of an instance. Zero-initialized, the instance is not limited. The members are
 * private. */
struct kelp_rate_ticket {
    kelp_rate_limiter *limiter;
    kelp_rate_ticket *next;
    kelp_rate_ticket *next_waiting;
    kelp_rate_need *needs;
    size_t need_count;
    size_t need_capacity;
    uint64_t priority; /* at least 1; a lower number is served more often */
    uint64_t executions;
    bool waiting, granted, cancelled;
};

/* Creates a limiter. `capacities` maps (resource, device) to a number; device -1 stands for every
 * device, and for a global resource. INVALID_ARGUMENT for an invalid number. */
kelp_status *kelp_rate_limiter_create(kelp_allocator allocator, const kelp_settings *capacities,
                                      kelp_rate_limiter **out) KELP_MUST_USE;
/* Frees a limiter without tickets. NULL is ignored. */
void kelp_rate_limiter_destroy(kelp_rate_limiter *limiter);

/* Adds an instance of a group on a device. INVALID_ARGUMENT if it needs more of a resource than its
 * capacity, or if a resource is global in one group and not in another. `instance_name` is for
 * messages. */
kelp_status *kelp_rate_limiter_add(kelp_rate_limiter *limiter,
                                   const kelp_config_instance_group *group, int32_t device,
                                   const char *instance_name,
                                   kelp_rate_ticket *ticket) KELP_MUST_USE;
/* Removes an instance that does not execute. No effect if it was not added. */
void kelp_rate_ticket_remove(kelp_rate_ticket *ticket);

/* Requests the resources for one execution, unless they are requested already. Returns true if they
 * are granted. Otherwise they are granted later, in order. */
bool kelp_rate_ticket_request(kelp_rate_ticket *ticket);
/* Waits until requested resources are granted. Returns false after kelp_rate_ticket_cancel. */
bool kelp_rate_ticket_wait(kelp_rate_ticket *ticket);
/* Returns granted resources after an execution. `again`: requests them for the next execution in
 * the same step, so that the instance takes part in the decision about the next one. */
void kelp_rate_ticket_release(kelp_rate_ticket *ticket, bool again);
/* Returns granted resources without an execution, or withdraws the request. */
void kelp_rate_ticket_withdraw(kelp_rate_ticket *ticket);
/* Ends the waiting of the instance, now and in the future. No effect if it was not added. */
void kelp_rate_ticket_cancel(kelp_rate_ticket *ticket);

#endif
