/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that the process has once for each library file, such as backends: the first user opens
 * the object, and the last one closes it. No lock is held meanwhile, because the library may load
 * other models, or take long. Other users of the same object wait.
 *
 * Thread-safe.
 */
#ifndef KELP_SERVER_CORE_SHARED_LIBRARY_H_
#define KELP_SERVER_CORE_SHARED_LIBRARY_H_

#include <kelp/status.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* The first member of an object. All members are guarded by the list's lock. */
typedef struct kelp_shared_library kelp_shared_library;
struct kelp_shared_library {
    kelp_shared_library *next;
    char *identity; /* constant */
    unsigned users;
    bool ready;       /* false: `opener` opens or closes it */
    pthread_t opener; /* valid if not ready */
};

/* The objects of one kind. Allocated with the process-wide allocator. */
typedef struct kelp_shared_libraries {
    const char *kind; /* for messages */
    size_t size_bytes;
    /* Opens a zero-initialized object. On failure, frees the members that it has set. */
    kelp_status *(*open)(kelp_shared_library *library, void *userp);
    /* Closes an object and frees its members. */
    void (*close)(kelp_shared_library *library);
    pthread_mutex_t lock;
    pthread_cond_t changed;
    kelp_shared_library *first; /* lock */
} kelp_shared_libraries;

/* Returns a reference to the object with an identity, and opens it if necessary; `userp` is passed
 * to `open`. UNAVAILABLE if the calling thread is in `open` or `close` of the object. */
kelp_status *kelp_shared_library_acquire(kelp_shared_libraries *libraries, const char *identity,
                                         void *userp, kelp_shared_library **out) KELP_MUST_USE;
/* Adds a reference. */
void kelp_shared_library_retain(kelp_shared_libraries *libraries, kelp_shared_library *library);
/* Drops a reference. The last one closes the object. */
void kelp_shared_library_release(kelp_shared_libraries *libraries, kelp_shared_library *library);

#endif
