/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that the process has once for each library file. */
#include "server/core/shared_library.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "server/core/heap.h"

#include <string.h>

static kelp_shared_library *find(const kelp_shared_libraries *libraries, const char *identity) {
    for (kelp_shared_library *each = libraries->first; each != NULL; each = each->next)
        if (strcmp(each->identity, identity) == 0)
            return each;
    return NULL;
}

/* Finds an object that is open; waits until other threads have opened or closed it. The lock is
 * held, and released while waiting. */
static kelp_status *find_ready(kelp_shared_libraries *libraries, const char *identity,
                               kelp_shared_library **out) {
    KELP_ASSERT_HELD(&libraries->lock);
    for (;;) {
        kelp_shared_library *found = *out = find(libraries, identity);
        if (found == NULL || found->ready)
            return NULL;
        if (pthread_equal(found->opener, pthread_self()))
            return KELP_ERROR(KELP_UNAVAILABLE,
                              "the %s '%s' cannot be used while it is initialized or finalized: "
                              "its own function requested it",
                              libraries->kind, identity);
        pthread_cond_wait(&libraries->changed, &libraries->lock);
    }
}

static void destroy(const kelp_shared_libraries *libraries, kelp_shared_library *library) {
    kelp_free_string(kelp_process_allocator(), library->identity);
    kelp_free(kelp_process_allocator(), library, libraries->size_bytes);
}

/* Creates an object that is not ready. The lock is held. */
static kelp_status *add(kelp_shared_libraries *libraries, const char *identity,
                        kelp_shared_library **out) {
    KELP_ASSERT_HELD(&libraries->lock);
    void *memory = NULL;
    KELP_TRY(kelp_alloc_zero(kelp_process_allocator(), 1, libraries->size_bytes, &memory));
    kelp_shared_library *library = memory;
    kelp_status *status = kelp_strdup(kelp_process_allocator(), identity, &library->identity);
    if (status != NULL) {
        destroy(libraries, library);
        return status;
    }
    library->opener = pthread_self();
    library->next = libraries->first;
    libraries->first = library;
    *out = library;
    return NULL;
}

/* The lock is held. */
static void drop(kelp_shared_libraries *libraries, kelp_shared_library *library) {
    KELP_ASSERT_HELD(&libraries->lock);
    kelp_shared_library **link = &libraries->first;
    while (*link != library)
        link = &(*link)->next;
    *link = library->next;
    pthread_cond_broadcast(&libraries->changed);
}

/* Opens an object that is not ready. */
static kelp_status *open_added(kelp_shared_libraries *libraries, kelp_shared_library *library,
                               void *userp) {
    kelp_status *status = libraries->open(library, userp);
    pthread_mutex_lock(&libraries->lock);
    if (status != NULL) {
        drop(libraries, library);
    } else {
        library->ready = true;
        library->users = 1;
        pthread_cond_broadcast(&libraries->changed);
    }
    pthread_mutex_unlock(&libraries->lock);
    if (status != NULL)
        destroy(libraries, library);
    return status;
}

kelp_status *kelp_shared_library_acquire(kelp_shared_libraries *libraries, const char *identity,
                                         void *userp, kelp_shared_library **out) {
    kelp_shared_library *library = NULL;
    pthread_mutex_lock(&libraries->lock);
    kelp_status *status = find_ready(libraries, identity, &library);
    bool known = library != NULL;
    if (status == NULL && known)
        library->users++;
    else if (status == NULL)
        status = add(libraries, identity, &library);
    pthread_mutex_unlock(&libraries->lock);
    if (status == NULL && !known)
        status = open_added(libraries, library, userp);
    if (status == NULL)
        *out = library;
    return status;
}

void kelp_shared_library_retain(kelp_shared_libraries *libraries, kelp_shared_library *library) {
    pthread_mutex_lock(&libraries->lock);
    KELP_ASSERT(library->users > 0);
    library->users++;
    pthread_mutex_unlock(&libraries->lock);
}

void kelp_shared_library_release(kelp_shared_libraries *libraries, kelp_shared_library *library) {
    pthread_mutex_lock(&libraries->lock);
    KELP_ASSERT(library->users > 0);
    bool last = --library->users == 0;
    if (last) {
        library->ready = false;
        library->opener = pthread_self();
    }
    pthread_mutex_unlock(&libraries->lock);
    if (!last)
        return;
    libraries->close(library);
    pthread_mutex_lock(&libraries->lock);
    drop(libraries, library);
    pthread_mutex_unlock(&libraries->lock);
    destroy(libraries, library);
}
