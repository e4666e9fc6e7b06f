/* SPDX-License-Identifier: Apache-2.0 */
/* The order of responses. */
#include "server/request/response_order.h"

#include "base/assert.h"
#include "server/request/response.h"

void kelp_response_order_init(kelp_response_order *order) {
    *order = (kelp_response_order){0};
    pthread_mutex_init(&order->lock, NULL);
}

void kelp_response_order_deinit(kelp_response_order *order) {
    KELP_ASSERT(order->head == NULL);
    pthread_mutex_destroy(&order->lock);
}

void kelp_response_order_join(kelp_response_order *order, kelp_factory *factory) {
    pthread_mutex_lock(&order->lock);
    factory->slot = (kelp_response_slot){.order = order, .previous = order->tail};
    if (order->tail != NULL)
        order->tail->slot.next = factory;
    else
        order->head = factory;
    order->tail = factory;
    pthread_mutex_unlock(&order->lock);
}

static void unlink_slot(kelp_response_order *order, kelp_factory *factory) {
    KELP_ASSERT_HELD(&order->lock);
    kelp_response_slot *slot = &factory->slot;
    if (slot->previous != NULL)
        slot->previous->slot.next = slot->next;
    else
        order->head = slot->next;
    if (slot->next != NULL)
        slot->next->slot.previous = slot->previous;
    else
        order->tail = slot->previous;
    slot->previous = slot->next = NULL;
}

/* Removes the next response, or the flags that follow the responses. */
static kelp_response *take_held(kelp_response_slot *slot, uint32_t *out_flags) {
    kelp_response *response = slot->held;
    if (response == NULL) {
        slot->has_flags = false;
        *out_flags = slot->flags;
        return NULL;
    }
    slot->held = response->next;
    if (slot->held == NULL)
        slot->held_tail = NULL;
    response->next = NULL;
    *out_flags = response->held_flags;
    return response;
}

/* Ends the slot of a submission whose FINAL was passed on. Returns true if the caller ends the
 * submission. The lock is held. */
static bool end_slot(kelp_response_order *order, kelp_factory *factory) {
    kelp_response_slot *slot = &factory->slot;
    unlink_slot(order, factory);
    slot->over = true;
    slot->is_retired = slot->to_retire;
    return slot->is_retired;
}

/* Passes on the held responses of the first slots, unless another thread does. The lock is held; it
 * is released during callbacks. */
static void deliver(kelp_response_order *order) {
    KELP_ASSERT_HELD(&order->lock);
    if (order->delivering)
        return;
    order->delivering = true;
    for (kelp_factory *factory = order->head;
         factory != NULL && (factory->slot.held != NULL || factory->slot.has_flags);
         factory = order->head) {
        uint32_t flags;
        bool retires = false;
        kelp_response *response = take_held(&factory->slot, &flags);
        pthread_mutex_unlock(&order->lock);
        factory->response_fn((TRITONSERVER_InferenceResponse *)response, flags,
                             factory->response_userp);
        pthread_mutex_lock(&order->lock);
        if (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL)
            retires = end_slot(order, factory);
        pthread_mutex_unlock(&order->lock);
        if (response != NULL)
            kelp_factory_close(factory);
        if (retires)
            kelp_factory_retire(factory);
        pthread_mutex_lock(&order->lock);
    }
    order->delivering = false;
}

void kelp_response_order_leave(kelp_factory *factory) {
    kelp_response_order *order = factory->slot.order;
    pthread_mutex_lock(&order->lock);
    unlink_slot(order, factory);
    factory->slot.order = NULL;
    deliver(order); /* the model is entered by the caller */
    pthread_mutex_unlock(&order->lock);
}

void kelp_response_order_send(kelp_factory *factory, kelp_response *response, uint32_t flags) {
    kelp_response_slot *slot = &factory->slot;
    kelp_response_order *order = slot->order;
    kelp_model_base *model = factory->model;
    kelp_model_retain(model); /* holds `order` until the lock is released */
    pthread_mutex_lock(&order->lock);
    if (response == NULL) {
        slot->has_flags = true;
        slot->flags |= flags;
    } else {
        response->held_flags = flags;
        response->next = NULL;
        if (slot->held_tail != NULL)
            slot->held_tail->next = response;
        else
            slot->held = response;
        slot->held_tail = response;
    }
    deliver(order);
    pthread_mutex_unlock(&order->lock);
    kelp_model_release(model);
}

bool kelp_response_order_retire(kelp_factory *factory) {
    kelp_response_slot *slot = &factory->slot;
    pthread_mutex_lock(&slot->order->lock);
    bool retires = slot->over && !slot->is_retired;
    if (retires)
        slot->is_retired = true;
    else
        slot->to_retire = true;
    pthread_mutex_unlock(&slot->order->lock);
    return retires;
}
