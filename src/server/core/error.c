/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion between kelp_status and TRITONSERVER_Error. */
#include "server/core/error.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "server/core/heap.h"

#include <stdatomic.h>

TRITONSERVER_Error *kelp_to_error(kelp_status *take_status) {
    if (take_status == NULL || kelp_status_cause(take_status) == NULL)
        return (TRITONSERVER_Error *)take_status;
    kelp_allocator heap = kelp_process_allocator();
    size_t size_bytes = kelp_status_format(take_status, NULL, 0) + 1;
    void *text = NULL;
    kelp_status *flat = kelp_alloc(heap, size_bytes, &text);
    if (flat == NULL) {
        kelp_status_format(take_status, text, size_bytes);
        flat = kelp_status_new(kelp_status_code(take_status), kelp_status_file(take_status),
                               kelp_status_line(take_status), "%s", (const char *)text);
        kelp_free(heap, text, size_bytes);
    }
    kelp_status_free(take_status);
    return (TRITONSERVER_Error *)flat;
}

TRITONSERVER_Error *kelp_null_error(const char *function, const char *what) {
    KELP_ASSERT(function != NULL);
    if (what == NULL)
        return kelp_to_error(
            KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: an output argument must not be NULL", function));
    return kelp_to_error(
        KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: '%s' must not be NULL", function, what));
}

void kelp_error_discard(TRITONSERVER_Error *error) {
    enum { KEPT = 64 };
    static _Atomic(kelp_status *) kept[KEPT];
    static atomic_uint next;
    kelp_status *status = kelp_from_error(error);
    if (status == NULL)
        return;
    for (unsigned i = 0; i < KEPT; i++)
        if (atomic_load_explicit(&kept[i], memory_order_relaxed) == status)
            return;
    unsigned slot = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % KEPT;
    kelp_status_free(atomic_exchange_explicit(&kept[slot], status, memory_order_acq_rel));
}
