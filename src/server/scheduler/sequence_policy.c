/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy of sequence batching. Each instance has slots. A sequence gets the free slot with the
 * lowest number, or waits in the backlog, and keeps the slot until it ends: after the request with
 * the flag END, after the idle timeout, or when one of its requests was cancelled. At most one
 * request of a sequence executes at a time. While the model is unloaded, the backlog does not wait
 * for idle timeouts.
 *
 * A run is the requests of a sequence from START to END. Requests of the next run with the same ID
 * queue behind those of the current one; between two runs, sequences of the backlog have priority.
 *
 * The strategies differ in `take` only. Direct: an execution takes the next request of each slot,
 * and the caller fills the slots without one with null requests. Oldest: sequences with a request
 * that can execute form a queue, from which dynamic batching takes requests.
 */
#include "server/scheduler/sequence_policy.h"

#include "base/assert.h"
#include "server/request/factory.h"
#include "server/scheduler/batch_settings.h"
#include "server/scheduler/instance_pool.h"
#include "server/scheduler/join.h"
#include "server/scheduler/sequence_table.h"

#include <stdlib.h>

#define NO_SLOT UINT32_MAX

/* The slots of an instance. */
typedef struct group {
    kelp_sequence **slots; /* NULL: free */
    uint32_t first_free;   /* all slots before this one are used */
    uint32_t queued;       /* requests of the sequences in the slots */
    /* Sequences with a queued request and none that executes, in the order in which they became
     * ready. */
    kelp_sequence *first_ready, *last_ready;
    uint32_t ready_count;
    bool held; /* by TRITONSERVER_DELAY_SCHEDULER */
} group;

typedef struct sequence_policy {
    kelp_policy base;
    const kelp_config_sequence *config;
    kelp_batch_settings settings; /* the limits of the queue */
    kelp_join_rules join;
    uint32_t max_batch_size; /* of an execution; at least 1 */
    uint32_t min_ready;      /* direct: executes at once with as many ready slots */
    group *groups;           /* one for each instance */
    uint32_t group_count;
    uint32_t attached;         /* instances */
    kelp_sequence **all_slots; /* of the groups */
    kelp_sequence_table table;
    kelp_sequence *first_waiting, *last_waiting; /* the backlog */
    uint32_t queued;                             /* requests, without the rejected ones */
    uint64_t queued_bytes;                       /* of their inputs */
    kelp_request *first_rejected, *last_rejected;
    uint32_t rejected;
    uint64_t expires_ns; /* at or before the first timeout */
    bool retired;        /* the model is being unloaded */
    /* For tests of Triton: executions begin when as many requests are queued, in all slots (oldest:
     * ready ones of an instance) and in the backlog. */
    uint32_t hold, hold_backlog;
    bool held; /* direct */
} sequence_policy;

static uint32_t slots_of(const sequence_policy *policy) {
    return policy->config->slots;
}

static group *group_of(const sequence_policy *policy, const kelp_sequence *sequence) {
    KELP_ASSERT(sequence->slot != NO_SLOT);
    return &policy->groups[sequence->slot / slots_of(policy)];
}

static bool is_cancelled(const kelp_request *request) {
    return atomic_load_explicit(&request->factory->cancelled, memory_order_relaxed);
}

static bool starts(const kelp_request *request) {
    return (request->flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_START) != 0;
}

static bool ends(const kelp_request *request) {
    return (request->flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_END) != 0;
}

/* Ensures that `expire` is called at a time. */
static void expire_at(sequence_policy *policy, uint64_t time_ns) {
    if (time_ns < policy->expires_ns)
        policy->expires_ns = time_ns;
}

static uint64_t add_us(uint64_t time_ns, uint64_t delay_us) {
    return delay_us > (KELP_NEVER_NS - time_ns) / 1000 ? KELP_NEVER_NS : time_ns + delay_us * 1000;
}

/* Returns the size of the client's inputs. */
static uint64_t input_bytes(const kelp_request *request) {
    uint64_t total = 0;
    for (size_t i = 0; i + request->added_inputs < request->input_count; i++)
        total += request->inputs[i]->data.size_bytes;
    return total;
}

static void count_in(sequence_policy *policy, const kelp_request *request) {
    policy->queued++;
    policy->queued_bytes += input_bytes(request);
}

static void count_out(sequence_policy *policy, const kelp_request *request) {
    policy->queued--;
    policy->queued_bytes -= input_bytes(request);
}

/* ---- ready sequences ---- */

static void make_ready(sequence_policy *policy, kelp_sequence *sequence, uint64_t now_ns) {
    group *g = group_of(policy, sequence);
    KELP_ASSERT(!sequence->ready && !sequence->executing && sequence->head != NULL);
    sequence->ready = true;
    sequence->ready_ns = now_ns;
    sequence->next_ready = NULL;
    if (g->last_ready != NULL)
        g->last_ready->next_ready = sequence;
    else
        g->first_ready = sequence;
    g->last_ready = sequence;
    g->ready_count++;
}

static void unlink_ready(group *g, kelp_sequence *sequence) {
    kelp_sequence *before = NULL;
    KELP_ASSERT(sequence->ready);
    for (kelp_sequence *at = g->first_ready; at != sequence; at = at->next_ready)
        before = at;
    if (before != NULL)
        before->next_ready = sequence->next_ready;
    else
        g->first_ready = sequence->next_ready;
    if (g->last_ready == sequence)
        g->last_ready = before;
    sequence->ready = false;
    g->ready_count--;
}

/* ---- slots and the backlog ---- */

/* Returns the free slot with the lowest number in its instance, or NO_SLOT. */
static uint32_t find_slot(sequence_policy *policy) {
    uint32_t best = NO_SLOT, lowest = slots_of(policy);
    for (uint32_t i = 0; i < policy->attached; i++) {
        group *g = &policy->groups[i];
        while (g->first_free < slots_of(policy) && g->slots[g->first_free] != NULL)
            g->first_free++;
        if (g->first_free < lowest) {
            lowest = g->first_free;
            best = i * slots_of(policy) + lowest;
        }
    }
    return best;
}

static uint32_t count_queued(const kelp_sequence *sequence) {
    uint32_t count = 0;
    for (const kelp_request *request = sequence->head; request != NULL; request = request->next)
        count++;
    return count;
}

/* Returns the number of queued requests up to the end of the sequence. A later sequence of the same
 * ID may follow. */
static uint32_t count_to_end(const kelp_sequence *sequence) {
    uint32_t count = 0;
    for (const kelp_request *request = sequence->head; request != NULL; request = request->next) {
        count++;
        if (ends(request))
            break;
    }
    return count;
}

/* Ends the test delays when enough requests are queued. As in Triton, a sequence that follows
 * another one of the same ID counts as one of the backlog. */
static void check_hold(sequence_policy *policy, group *g) {
    uint32_t in_slots = 0;
    if (g != NULL && g->held && g->ready_count >= policy->hold)
        g->held = false;
    if (!policy->held)
        return;
    for (uint32_t i = 0; i < policy->attached * slots_of(policy); i++)
        if (policy->all_slots[i] != NULL)
            in_slots += count_to_end(policy->all_slots[i]);
    if (in_slots >= policy->hold && policy->queued - in_slots >= policy->hold_backlog)
        policy->held = false;
}

static void enter_slot(sequence_policy *policy, kelp_sequence *sequence, uint32_t slot,
                       uint64_t now_ns) {
    KELP_ASSERT(policy->all_slots[slot] == NULL);
    policy->all_slots[slot] = sequence;
    sequence->slot = slot;
    sequence->expires_ns = KELP_NEVER_NS;
    sequence->idle_ns = now_ns;
    group *g = group_of(policy, sequence);
    g->queued += count_queued(sequence);
    if (sequence->head != NULL) {
        make_ready(policy, sequence, now_ns);
        check_hold(policy, g);
    }
}

static void leave_slot(sequence_policy *policy, kelp_sequence *sequence) {
    group *g = group_of(policy, sequence);
    uint32_t index = sequence->slot % slots_of(policy);
    KELP_ASSERT(g->slots[index] == sequence && !sequence->executing);
    if (sequence->ready)
        unlink_ready(g, sequence);
    g->slots[index] = NULL;
    g->queued -= count_queued(sequence);
    if (index < g->first_free)
        g->first_free = index;
    sequence->slot = NO_SLOT;
}

static void note_timeout(sequence_policy *policy, kelp_sequence *sequence,
                         const kelp_request *request) {
    uint64_t timeout_us = policy->settings.limits.timeout_us;
    if (timeout_us == 0 || (request->timeout_us > 0 && request->timeout_us < timeout_us))
        timeout_us = request->timeout_us;
    if (timeout_us == 0)
        return;
    uint64_t time_ns = add_us(request->queue_start_ns, timeout_us);
    if (time_ns < sequence->expires_ns)
        sequence->expires_ns = time_ns;
    expire_at(policy, time_ns);
}

static void enter_backlog(sequence_policy *policy, kelp_sequence *sequence) {
    sequence->slot = NO_SLOT;
    sequence->next = NULL;
    sequence->expires_ns = KELP_NEVER_NS;
    if (policy->last_waiting != NULL)
        policy->last_waiting->next = sequence;
    else
        policy->first_waiting = sequence;
    policy->last_waiting = sequence;
    if (policy->retired)
        expire_at(policy, 0); /* ends idle sequences */
    for (const kelp_request *request = sequence->head; request != NULL; request = request->next)
        note_timeout(policy, sequence, request);
}

static void leave_backlog(sequence_policy *policy, kelp_sequence *sequence) {
    kelp_sequence *before = NULL;
    for (kelp_sequence *at = policy->first_waiting; at != sequence; at = at->next)
        before = at;
    if (before != NULL)
        before->next = sequence->next;
    else
        policy->first_waiting = sequence->next;
    if (policy->last_waiting == sequence)
        policy->last_waiting = before;
}

/* Moves sequences from the backlog to free slots. */
static void promote(sequence_policy *policy, uint64_t now_ns) {
    while (policy->first_waiting != NULL) {
        uint32_t slot = find_slot(policy);
        if (slot == NO_SLOT)
            return;
        kelp_sequence *sequence = policy->first_waiting;
        leave_backlog(policy, sequence);
        enter_slot(policy, sequence, slot, now_ns);
    }
}

/* Removes a sequence without requests. Its slot stays free until `promote` is called. */
static void remove_sequence(sequence_policy *policy, kelp_sequence *sequence) {
    KELP_ASSERT(sequence->head == NULL && !sequence->executing);
    if (sequence->slot != NO_SLOT)
        leave_slot(policy, sequence);
    else
        leave_backlog(policy, sequence);
    kelp_sequence_table_remove(&policy->table, sequence);
}

/* Ends the current run of a sequence that does not execute. Another run may follow. */
static void end_run(sequence_policy *policy, kelp_sequence *sequence, uint64_t now_ns) {
    sequence->started = sequence->ending = false;
    if (sequence->head == NULL) {
        remove_sequence(policy, sequence);
    } else if (sequence->slot != NO_SLOT && policy->first_waiting != NULL) {
        leave_slot(policy, sequence);
        enter_backlog(policy, sequence);
    } else if (sequence->slot != NO_SLOT && !sequence->ready) {
        make_ready(policy, sequence, now_ns);
    }
    promote(policy, now_ns);
}

/* ---- rejection ---- */

static void reject(sequence_policy *policy, kelp_request *request, kelp_rejection reason) {
    request->rejection = reason;
    request->place = NULL;
    request->next = NULL;
    if (policy->last_rejected != NULL)
        policy->last_rejected->next = request;
    else
        policy->first_rejected = request;
    policy->last_rejected = request;
    policy->rejected++;
    count_out(policy, request);
}

/* Rejects the queued requests of one run, from `before->next` (NULL: the first request) to the last
 * one before the next START. */
static void reject_run(sequence_policy *policy, kelp_sequence *sequence, kelp_request *before,
                       kelp_rejection reason) {
    kelp_request *request = before != NULL ? before->next : sequence->head, *next;
    bool first = true;
    for (; request != NULL && (first || !starts(request)); request = next, first = false) {
        next = request->next;
        if (sequence->slot != NO_SLOT)
            group_of(policy, sequence)->queued--;
        reject(policy, request, reason);
    }
    if (before != NULL)
        before->next = request;
    else
        sequence->head = request;
    if (request == NULL) {
        sequence->tail = before;
        sequence->open = false;
    }
    if (sequence->ready && sequence->head == NULL)
        unlink_ready(group_of(policy, sequence), sequence);
}

/* Rejects the runs of a sequence that contain cancelled requests. Returns false if the sequence was
 * removed; slots that became free are filled by `promote`. */
static bool reject_cancelled(sequence_policy *policy, kelp_sequence *sequence) {
    kelp_request *before_run = NULL, *before = NULL;
    for (kelp_request *request = sequence->head; request != NULL;) {
        if (starts(request))
            before_run = before;
        if (!is_cancelled(request)) {
            before = request;
            request = request->next;
            continue;
        }
        const kelp_request *first = before_run != NULL ? before_run->next : sequence->head;
        if (before_run == NULL && !starts(first) && sequence->started)
            sequence->ending = true; /* of the current run */
        reject_run(policy, sequence, before_run, KELP_REJECTION_SEQUENCE_CANCELLED);
        before = before_run;
        request = before != NULL ? before->next : sequence->head;
    }
    if (sequence->executing || sequence->head != NULL)
        return true;
    if (sequence->started && !sequence->ending && sequence->open)
        return true; /* idle, and nothing was cancelled */
    remove_sequence(policy, sequence);
    return false;
}

/* ---- the operations ---- */

static kelp_status *admit_error(const kelp_request *request, const char *text) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "inference request to model '%s' must specify %s",
                      request->model->name, text);
}

static kelp_status *missing_start(const kelp_request *request) {
    char number[24] = "";
    if (!request->correlation_is_string)
        number[kelp_format_u64(request->correlation_id, number)] = '\0';
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "inference request for sequence %s to model '%s' must specify the START flag "
                      "on the first request of the sequence",
                      request->correlation_is_string ? kelp_text_get(&request->correlation_string)
                                                     : number,
                      request->model->name);
}

static kelp_status *admit(const kelp_policy *base, const kelp_request *request) {
    const sequence_policy *policy = (const sequence_policy *)base;
    if (request->batch_size > 1)
        return admit_error(request, "batch-size 1 due to requirements of sequence batcher");
    if (request->correlation_is_string ? kelp_text_get(&request->correlation_string)[0] == '\0'
                                       : request->correlation_id == 0)
        return admit_error(request, "a non-zero or non-empty correlation ID");
    const kelp_sequence *sequence = kelp_sequence_table_find(&policy->table, request);
    if (!starts(request) && (sequence == NULL || !sequence->open))
        return missing_start(request);
    const kelp_batch_settings *limits = &policy->settings;
    uint32_t queued = policy->queued + policy->rejected;
    if ((limits->max_requests > 0 && queued >= limits->max_requests) ||
        (limits->max_input_bytes > 0 && queued > 0 &&
         policy->queued_bytes + input_bytes(request) > limits->max_input_bytes))
        return kelp_request_queue_full(request);
    KELP_ASSERT(sequence != NULL || kelp_sequence_table_can_add(&policy->table, request));
    return NULL;
}

static void push(kelp_policy *base, kelp_request *request, uint64_t now_ns) {
    sequence_policy *policy = (sequence_policy *)base;
    kelp_sequence *sequence = kelp_sequence_table_find(&policy->table, request);
    bool is_new = sequence == NULL;
    if (is_new)
        sequence = kelp_sequence_table_add(&policy->table, request);
    request->place = sequence;
    request->rejection = KELP_REJECTION_NONE;
    request->deadline_ns = KELP_NEVER_NS; /* the policy itself rejects, with the whole sequence */
    request->replaces_run = starts(request) && sequence->open;
    sequence->open = !ends(request);
    request->next = NULL;
    if (sequence->tail != NULL)
        sequence->tail->next = request;
    else
        sequence->head = request;
    sequence->tail = request;
    count_in(policy, request);
    if (is_new) {
        enter_backlog(policy, sequence);
        promote(policy, now_ns);
    } else if (sequence->slot != NO_SLOT) {
        group_of(policy, sequence)->queued++;
        if (!sequence->executing && !sequence->ready)
            make_ready(policy, sequence, now_ns);
        check_hold(policy, group_of(policy, sequence));
    } else {
        note_timeout(policy, sequence, request);
    }
    check_hold(policy, NULL);
}

static bool bypass(const kelp_policy *base, const kelp_request *request) {
    (void)base, (void)request;
    return false;
}

/* Returns the number of requests of the next execution of the oldest strategy; 0 if it waits for
 * more, or for the delay to end. */
static uint32_t preferred_size(const sequence_policy *policy, const group *g) {
    const kelp_config_sequence *config = policy->config;
    uint32_t best = 0;
    for (size_t i = 0; i < config->preferred_count; i++) {
        uint32_t size = (uint32_t)config->preferred_batch_sizes[i];
        if (size <= g->ready_count && size > best)
            best = size;
    }
    return g->ready_count >= policy->max_batch_size ? policy->max_batch_size : best;
}

static uint64_t group_ready_at_ns(const sequence_policy *policy, const group *g) {
    if (g->ready_count == 0 || g->held || policy->held)
        return KELP_NEVER_NS;
    if (policy->config->max_delay_us == 0)
        return 0;
    if (policy->config->oldest ? preferred_size(policy, g) > 0
                               : g->ready_count >= policy->min_ready)
        return 0;
    return add_us(g->first_ready->ready_ns, policy->config->max_delay_us);
}

static uint64_t ready_at_ns(const kelp_policy *base, const kelp_instance_base *instance) {
    const sequence_policy *policy = (const sequence_policy *)base;
    if (policy->first_rejected != NULL)
        return 0;
    if (instance != NULL)
        return group_ready_at_ns(policy, &policy->groups[instance->policy_index]);
    uint64_t first_ns = KELP_NEVER_NS;
    for (uint32_t i = 0; i < policy->attached; i++) {
        uint64_t time_ns = group_ready_at_ns(policy, &policy->groups[i]);
        first_ns = time_ns < first_ns ? time_ns : first_ns;
    }
    return first_ns;
}

static uint32_t take_rejected(sequence_policy *policy, kelp_request **out_requests) {
    uint32_t count = 0;
    while (policy->first_rejected != NULL && count < KELP_MAX_EXECUTION_REQUESTS) {
        kelp_request *request = policy->first_rejected;
        policy->first_rejected = request->next;
        if (policy->first_rejected == NULL)
            policy->last_rejected = NULL;
        request->next = NULL;
        out_requests[count++] = request;
    }
    policy->rejected -= count;
    return count;
}

/* Removes the next request of a ready sequence from its queue, for execution. */
static kelp_request *pop(sequence_policy *policy, kelp_sequence *sequence) {
    group *g = group_of(policy, sequence);
    kelp_request *request = sequence->head;
    unlink_ready(g, sequence);
    sequence->head = request->next;
    if (sequence->head == NULL)
        sequence->tail = NULL;
    request->next = NULL;
    request->slot = sequence->slot;
    g->queued--;
    count_out(policy, request);
    sequence->executing = sequence->started = true;
    sequence->ending = ends(request);
    return request;
}

static uint32_t take_direct(sequence_policy *policy, group *g, kelp_request **out_requests) {
    uint32_t count = 0, span = 0;
    for (uint32_t i = 0; i < slots_of(policy); i++) {
        kelp_sequence *sequence = g->slots[i];
        if (sequence == NULL || !sequence->ready ||
            (count > 0 && !kelp_join_rules_allow(&policy->join, out_requests[0], sequence->head)))
            continue;
        out_requests[count++] = pop(policy, sequence);
        span = i + 1;
    }
    for (uint32_t i = 0; i < count; i++)
        out_requests[i]->span = span;
    return count;
}

static uint32_t take_oldest(sequence_policy *policy, group *g, uint64_t now_ns,
                            kelp_request **out_requests) {
    uint32_t limit = preferred_size(policy, g), count = 0;
    kelp_sequence *sequence = g->first_ready, *next;
    if (limit == 0 || add_us(sequence->ready_ns, policy->config->max_delay_us) <= now_ns)
        limit = limit > 0 ? limit : policy->max_batch_size;
    for (; sequence != NULL && count < limit; sequence = next) {
        next = sequence->next_ready;
        if (count > 0 && !kelp_join_rules_allow(&policy->join, out_requests[0], sequence->head))
            continue;
        out_requests[count] = pop(policy, sequence);
        out_requests[count++]->span = 0;
    }
    return count;
}

/* Rejects the cancelled runs of the ready sequences of an instance. */
static void reject_ready(sequence_policy *policy, group *g, uint64_t now_ns) {
    kelp_sequence *next;
    for (kelp_sequence *sequence = g->first_ready; sequence != NULL; sequence = next) {
        next = sequence->next_ready;
        if (is_cancelled(sequence->head))
            (void)reject_cancelled(policy, sequence);
    }
    promote(policy, now_ns);
}

static uint32_t take(kelp_policy *base, const kelp_instance_base *instance, bool may_block,
                     uint64_t now_ns, kelp_request **out_requests) {
    sequence_policy *policy = (sequence_policy *)base;
    (void)may_block;
    KELP_ASSERT(instance != NULL);
    group *g = &policy->groups[instance->policy_index];
    if (policy->first_rejected == NULL)
        reject_ready(policy, g, now_ns);
    if (policy->first_rejected != NULL)
        return take_rejected(policy, out_requests);
    if (g->ready_count == 0)
        return 0;
    return policy->config->oldest ? take_oldest(policy, g, now_ns, out_requests)
                                  : take_direct(policy, g, out_requests);
}

/* Returns the time at which an idle sequence ends. */
static uint64_t idle_until_ns(const sequence_policy *policy, const kelp_sequence *sequence) {
    bool at_once = policy->retired && policy->first_waiting != NULL;
    return add_us(sequence->idle_ns, at_once ? 0 : policy->config->max_idle_us);
}

static void release(kelp_policy *base, kelp_request *request, uint64_t now_ns) {
    sequence_policy *policy = (sequence_policy *)base;
    kelp_sequence *sequence = request->place;
    KELP_ASSERT(sequence != NULL && sequence->executing);
    request->place = NULL;
    sequence->executing = false;
    sequence->idle_ns = now_ns;
    bool over = sequence->ending || policy->config->iterative;
    if (!over && is_cancelled(request)) {
        over = true;
        if (sequence->head != NULL && !starts(sequence->head))
            reject_run(policy, sequence, NULL, KELP_REJECTION_SEQUENCE_CANCELLED);
    }
    if (sequence->head == NULL && !sequence->open)
        over = true; /* the request that began the next run was cancelled */
    if (over)
        end_run(policy, sequence, now_ns);
    else if (sequence->head != NULL)
        make_ready(policy, sequence, now_ns);
    else
        expire_at(policy, idle_until_ns(policy, sequence));
}

static void reschedule(kelp_policy *base, kelp_request *request, uint64_t now_ns) {
    sequence_policy *policy = (sequence_policy *)base;
    kelp_sequence *sequence = request->place;
    KELP_ASSERT(sequence != NULL && sequence->executing && policy->config->iterative);
    sequence->executing = false;
    request->next = sequence->head;
    sequence->head = request;
    if (sequence->tail == NULL)
        sequence->tail = request;
    count_in(policy, request);
    group_of(policy, sequence)->queued++;
    make_ready(policy, sequence, now_ns);
}

static uint64_t expires_at_ns(const kelp_policy *base) {
    return ((const sequence_policy *)base)->expires_ns;
}

/* Ends idle sequences, and rejects cancelled runs, of the slots. */
static void expire_slots(sequence_policy *policy, uint64_t now_ns) {
    for (uint32_t i = 0; i < policy->attached * slots_of(policy); i++) {
        kelp_sequence *sequence = policy->all_slots[i];
        if (sequence == NULL || !reject_cancelled(policy, sequence) || sequence->executing ||
            sequence->head != NULL)
            continue;
        uint64_t time_ns = idle_until_ns(policy, sequence);
        if (time_ns <= now_ns)
            remove_sequence(policy, sequence);
        else
            expire_at(policy, time_ns);
    }
}

/* Rejects the requests of sequences in the backlog that are past a timeout or cancelled. */
static void expire_backlog(sequence_policy *policy, uint64_t now_ns) {
    kelp_sequence *next;
    for (kelp_sequence *sequence = policy->first_waiting; sequence != NULL; sequence = next) {
        next = sequence->next;
        if (!reject_cancelled(policy, sequence))
            continue;
        if (sequence->expires_ns > now_ns) {
            expire_at(policy, sequence->expires_ns);
            continue;
        }
        while (sequence->head != NULL)
            reject_run(policy, sequence, NULL, KELP_REJECTION_SEQUENCE_TIMEOUT);
        remove_sequence(policy, sequence);
    }
}

static kelp_request *expire(kelp_policy *base, uint64_t now_ns) {
    sequence_policy *policy = (sequence_policy *)base;
    policy->expires_ns = KELP_NEVER_NS;
    expire_slots(policy, now_ns);
    expire_backlog(policy, now_ns);
    promote(policy, now_ns);
    kelp_request *rejected = policy->first_rejected;
    policy->first_rejected = policy->last_rejected = NULL;
    policy->rejected = 0;
    return rejected;
}

static uint32_t size(const kelp_policy *base) {
    const sequence_policy *policy = (const sequence_policy *)base;
    return policy->queued + policy->rejected;
}

static void retire(kelp_policy *base) {
    sequence_policy *policy = (sequence_policy *)base;
    policy->retired = true;
    if (policy->first_waiting != NULL)
        expire_at(policy, 0);
}

static uint32_t live(const kelp_policy *base) {
    return ((const sequence_policy *)base)->table.count;
}

static void attach(kelp_policy *base, kelp_instance_base *instance) {
    sequence_policy *policy = (sequence_policy *)base;
    KELP_ASSERT(policy->attached < policy->group_count);
    instance->policy_index = policy->attached++;
}

static void destroy(kelp_policy *base) {
    sequence_policy *policy = (sequence_policy *)base;
    kelp_allocator allocator = base->allocator;
    size_t slots = (size_t)policy->group_count * slots_of(policy);
    kelp_sequence_table_deinit(&policy->table);
    kelp_join_rules_deinit(&policy->join, allocator);
    kelp_batch_settings_deinit(&policy->settings, allocator);
    kelp_free(allocator, policy->all_slots, slots * sizeof(kelp_sequence *));
    kelp_free(allocator, policy->groups, policy->group_count * sizeof *policy->groups);
    kelp_free(allocator, policy, sizeof *policy);
}

/* ---- creation ---- */

/* Returns a number from the environment; 0 if it is not set. */
static uint32_t read_hold(const char *name) {
    const char *text = getenv(name);
    return text != NULL ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

static kelp_status *configure(sequence_policy *policy, const kelp_model_config *config) {
    const kelp_config_sequence *sequence = config->sequence;
    kelp_allocator allocator = policy->base.allocator;
    uint32_t slots = sequence->slots, instances = kelp_sequence_instances(config);
    uint32_t most = config->max_batch_size > 0 ? (uint32_t)config->max_batch_size : 1;
    policy->config = sequence;
    policy->max_batch_size =
        most < KELP_MAX_EXECUTION_REQUESTS ? most : KELP_MAX_EXECUTION_REQUESTS;
    policy->min_ready = (uint32_t)(sequence->min_slot_utilization * slots);
    if (policy->min_ready < sequence->min_slot_utilization * slots || policy->min_ready == 0)
        policy->min_ready++;
    policy->expires_ns = KELP_NEVER_NS;
    policy->hold = read_hold("TRITONSERVER_DELAY_SCHEDULER");
    policy->hold_backlog = sequence->oldest ? 0 : read_hold("TRITONSERVER_BACKLOG_DELAY_SCHEDULER");
    policy->held = !sequence->oldest && (policy->hold > 0 || policy->hold_backlog > 0);
    KELP_TRY(kelp_batch_settings_init(&policy->settings, allocator, config));
    KELP_TRY(kelp_join_rules_init(&policy->join, allocator, config));
    KELP_TRY(
        kelp_alloc_zero(allocator, instances, sizeof *policy->groups, (void **)&policy->groups));
    policy->group_count = instances;
    KELP_TRY(kelp_alloc_zero(allocator, (size_t)instances * slots, sizeof(kelp_sequence *),
                             (void **)&policy->all_slots));
    for (uint32_t i = 0; i < instances; i++) {
        policy->groups[i].slots = policy->all_slots + (size_t)i * slots;
        policy->groups[i].held = sequence->oldest && policy->hold > 0;
    }
    return kelp_sequence_table_init(&policy->table, allocator, (size_t)instances * slots);
}

uint32_t kelp_sequence_instances(const kelp_model_config *config) {
    uint32_t count = 0;
    for (size_t i = 0; i < config->instance_group_count; i++)
        if (!config->instance_groups[i].passive && config->instance_groups[i].count > 0)
            count += (uint32_t)config->instance_groups[i].count;
    return count;
}

kelp_status *kelp_sequence_policy_create(kelp_allocator allocator, const kelp_model_config *config,
                                         kelp_policy **out) {
    static const kelp_policy_ops ops = {.admit = admit,
                                        .push = push,
                                        .bypass = bypass,
                                        .ready_at_ns = ready_at_ns,
                                        .take = take,
                                        .expires_at_ns = expires_at_ns,
                                        .expire = expire,
                                        .size = size,
                                        .destroy = destroy,
                                        .attach = attach,
                                        .release = release,
                                        .reschedule = reschedule,
                                        .retire = retire,
                                        .live = live};
    sequence_policy *policy = NULL;
    KELP_TRY(KELP_NEW(allocator, sequence_policy, &policy));
    policy->base.ops = &ops;
    policy->base.allocator = allocator;
    policy->config = config->sequence;
    kelp_status *status = configure(policy, config);
    if (status != NULL)
        destroy(&policy->base);
    else
        *out = &policy->base;
    return status;
}
