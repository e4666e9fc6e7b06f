/* SPDX-License-Identifier: Apache-2.0 */
/* The reference count and the count of submissions of a model. */
#include "server/request/model_base.h"

#include "base/assert.h"

#define RETIRED 0x80000000u

void kelp_model_retain(kelp_model_base *model) {
    KELP_ASSERT(atomic_load(&model->refs) > 0);
    atomic_fetch_add_explicit(&model->refs, 1, memory_order_relaxed);
}

void kelp_model_release(kelp_model_base *model) {
    if (model != NULL && atomic_fetch_sub_explicit(&model->refs, 1, memory_order_acq_rel) == 1)
        model->ops->destroy(model);
}

uint64_t kelp_model_fingerprint(kelp_model_base *model) {
    return model->ops->fingerprint != NULL ? model->fingerprint ^ model->ops->fingerprint(model)
                                           : model->fingerprint;
}

bool kelp_model_enter(kelp_model_base *model) {
    unsigned live = atomic_load_explicit(&model->live, memory_order_relaxed);
    do {
        if (live & RETIRED)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&model->live, &live, live + 1,
                                                    memory_order_acquire, memory_order_relaxed));
    return true;
}

void kelp_model_enter_again(kelp_model_base *model) {
    unsigned before = atomic_fetch_add_explicit(&model->live, 1, memory_order_relaxed);
    KELP_ASSERT((before & ~RETIRED) > 0);
    (void)before;
}

void kelp_model_leave(kelp_model_base *model) {
    unsigned before = atomic_fetch_sub_explicit(&model->live, 1, memory_order_acq_rel);
    KELP_ASSERT((before & ~RETIRED) > 0);
    if (before == (RETIRED | 1u))
        model->host->ops->reap(model->host, model);
}

unsigned kelp_model_live(const kelp_model_base *model) {
    return atomic_load_explicit(&model->live, memory_order_relaxed) & ~RETIRED;
}

void kelp_model_retire(kelp_model_base *model) {
    unsigned before = atomic_fetch_or_explicit(&model->live, RETIRED, memory_order_acq_rel);
    KELP_ASSERT(!(before & RETIRED));
    if (before == 0)
        model->host->ops->reap(model->host, model);
}
