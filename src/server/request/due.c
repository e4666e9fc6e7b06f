/* SPDX-License-Identifier: Apache-2.0 */
#include "server/request/due.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"

void kelp_due_deinit(kelp_due *due) {
    for (size_t i = 0; i < due->count; i++)
        kelp_model_release(due->entries[i].model);
    kelp_free(due->allocator, due->entries, due->capacity * sizeof *due->entries);
    *due = (kelp_due){.allocator = due->allocator};
}

kelp_status *kelp_due_reserve(kelp_due *due) {
    /* One more for the model that executes, which may be added again. */
    return kelp_grow(due->allocator, (void **)&due->entries, &due->capacity, due->count + 2,
                     sizeof *due->entries);
}

void kelp_due_add(kelp_due *due, kelp_model_base *model, uint64_t time_ns) {
    for (size_t i = 0; i < due->count; i++) {
        kelp_due_entry *entry = &due->entries[i];
        if (entry->model != model)
            continue;
        if (time_ns < entry->time_ns)
            entry->time_ns = time_ns;
        return;
    }
    KELP_ASSERT(due->count < due->capacity);
    kelp_model_retain(model);
    due->entries[due->count++] = (kelp_due_entry){model, time_ns};
}

uint64_t kelp_due_time_ns(const kelp_due *due) {
    uint64_t time_ns = KELP_NEVER_NS;
    for (size_t i = 0; i < due->count; i++)
        if (due->entries[i].time_ns < time_ns)
            time_ns = due->entries[i].time_ns;
    return time_ns;
}

/* Removes a model that is due; NULL if there is none. The caller owns the reference. */
static kelp_model_base *pop(kelp_due *due, uint64_t now_ns) {
    for (size_t i = 0; i < due->count; i++) {
        kelp_model_base *model = due->entries[i].model;
        if (due->entries[i].time_ns > now_ns)
            continue;
        due->entries[i] = due->entries[--due->count];
        return model;
    }
    return NULL;
}

void kelp_due_execute(kelp_due *due, uint64_t now_ns) {
    kelp_model_base *model;
    while ((model = pop(due, now_ns)) != NULL) { /* callbacks may add models */
        if (kelp_model_enter(model)) {           /* otherwise it has no requests */
            model->ops->execute_due(model, due);
            kelp_model_leave(model);
        }
        kelp_model_release(model);
    }
}
