/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers for intermediate tensors. Each output of a step keeps some unused ones. Called on the
 * members' threads. */
#include "base/assert.h"
#include "server/core/error.h"
#include "server/ensemble/run.h"

/* Larger buffers, and more of one output, are freed: the allocator's cost is small next to that of
 * their data. */
#define MAX_KEPT_BYTES ((size_t)1 << 20)
#define MAX_KEPT_COUNT 16u

/* The header is followed by data with the alignment of tensors. */
#define HEADER_BYTES ((size_t)KELP_TENSOR_ALIGNMENT)
_Static_assert(sizeof(kelp_run_buffer) <= KELP_TENSOR_ALIGNMENT, "the header is too large");

static void free_buffer(kelp_run_buffer *buffer) {
    kelp_free_aligned(buffer->ensemble->allocator, buffer, HEADER_BYTES + buffer->capacity_bytes,
                      KELP_TENSOR_ALIGNMENT);
}

static kelp_run_buffer *take_spare(kelp_ensemble *ensemble, uint32_t link, size_t size_bytes) {
    kelp_buffer_list *list = &ensemble->spare_buffers[link];
    pthread_mutex_lock(&ensemble->lock);
    kelp_run_buffer *buffer = list->head;
    if (buffer != NULL) {
        list->head = buffer->next;
        list->count--;
    }
    pthread_mutex_unlock(&ensemble->lock);
    if (buffer != NULL && buffer->capacity_bytes < size_bytes) {
        free_buffer(buffer);
        buffer = NULL;
    }
    return buffer;
}

/* Returns the link of an output of the call's step. The backend may write outputs that are not
 * requested; those have the link 0. */
static uint32_t link_of(const kelp_run_call *call, const char *name) {
    const kelp_flow_step *step = &call->run->ensemble->flow->steps[call->step];
    for (uint32_t i = 0; i < step->output_count; i++)
        if (strcmp(step->outputs[i].name, name) == 0)
            return step->outputs[i].id;
    return 0;
}

static TRITONSERVER_Error *allocate(TRITONSERVER_ResponseAllocator *allocator, const char *name,
                                    size_t size_bytes, TRITONSERVER_MemoryType preferred_type,
                                    int64_t preferred_id, void *userp, void **buffer,
                                    void **buffer_userp, TRITONSERVER_MemoryType *actual_type,
                                    int64_t *actual_id) {
    const kelp_run_call *call = userp;
    kelp_ensemble *ensemble = call->run->ensemble;
    (void)allocator;
    (void)preferred_type;
    (void)preferred_id;
    *buffer = *buffer_userp = NULL;
    *actual_type = TRITONSERVER_MEMORY_CPU;
    *actual_id = 0;
    if (size_bytes == 0)
        return NULL;
    uint32_t link = link_of(call, name);
    kelp_run_buffer *taken = take_spare(ensemble, link, size_bytes);
    if (taken == NULL) {
        if (size_bytes > SIZE_MAX - HEADER_BYTES)
            return kelp_to_error(kelp_status_oom());
        kelp_status *status = kelp_alloc_aligned(ensemble->allocator, HEADER_BYTES + size_bytes,
                                                 KELP_TENSOR_ALIGNMENT, (void **)&taken);
        if (status != NULL)
            return kelp_to_error(status);
        *taken =
            (kelp_run_buffer){.ensemble = ensemble, .capacity_bytes = size_bytes, .link = link};
    }
    *buffer_userp = taken;
    *buffer = (char *)taken + HEADER_BYTES;
    return NULL;
}

static TRITONSERVER_Error *give_back(TRITONSERVER_ResponseAllocator *allocator, void *base,
                                     void *buffer_userp, size_t size_bytes,
                                     TRITONSERVER_MemoryType type, int64_t id) {
    kelp_run_buffer *buffer = buffer_userp;
    kelp_ensemble *ensemble = buffer->ensemble;
    kelp_buffer_list *list = &ensemble->spare_buffers[buffer->link];
    (void)allocator;
    (void)base;
    (void)size_bytes;
    (void)type;
    (void)id;
    bool kept = false;
    if (buffer->capacity_bytes <= MAX_KEPT_BYTES) {
        pthread_mutex_lock(&ensemble->lock);
        kept = list->count < MAX_KEPT_COUNT;
        if (kept) {
            buffer->next = list->head;
            list->head = buffer;
            list->count++;
        }
        pthread_mutex_unlock(&ensemble->lock);
    }
    if (!kept)
        free_buffer(buffer);
    return NULL;
}

void kelp_ensemble_init_buffers(kelp_ensemble *ensemble) {
    ensemble->buffers = (kelp_response_allocator){.alloc_fn = allocate, .release_fn = give_back};
}

void kelp_ensemble_free_buffers(kelp_ensemble *ensemble) {
    uint32_t count = ensemble->flow != NULL ? ensemble->flow->link_count : 0;
    for (uint32_t i = 0; ensemble->spare_buffers != NULL && i < count; i++) {
        for (kelp_run_buffer *buffer = ensemble->spare_buffers[i].head, *next; buffer != NULL;
             buffer = next) {
            next = buffer->next;
            free_buffer(buffer);
        }
    }
    kelp_free(ensemble->allocator, ensemble->spare_buffers,
              count * sizeof *ensemble->spare_buffers);
}
