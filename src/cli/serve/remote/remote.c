/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/remote/remote.h"

#include "base/alloc.h"
#include "base/files/temporary.h"
#include "base/sync/thread.h"
#include "cli/serve/remote/mirror.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct kelp_serve_remote {
    kelp_mirror **mirrors;
    size_t count, capacity;
    char *temporary; /* the cache, if it ends with the process; or NULL */
    int wake;        /* an eventfd; -1: none */
    bool updated;    /* an update has ended */
    bool running;    /* `thread` exists */
    pthread_t thread;
    atomic_bool stop;
    kelp_status *failure; /* of the update; read after the thread has ended */
};

kelp_status *kelp_serve_remote_check(const kelp_serve_models *models) {
    for (size_t i = 0; i < models->repositories.count; i++)
        if (kelp_pull_is_address(models->repositories.items[i]))
            KELP_TRY(kelp_mirror_check(models->repositories.items[i]));
    return NULL;
}

/* Adds the copy of an address, and replaces it by the path. */
static kelp_status *add(kelp_serve_remote *remote, const kelp_serve_models *models,
                        const char **inout_repository) {
    kelp_mirror *mirror;
    const char *cache = models->cache != NULL ? models->cache : remote->temporary;
    KELP_TRY(kelp_mirror_create(cache, *inout_repository, models->registry_plain_http, &mirror));
    remote->mirrors[remote->count++] = mirror;
    *inout_repository = kelp_mirror_path(mirror);
    return NULL;
}

static kelp_status *fill(kelp_serve_remote *remote, kelp_serve_models *models) {
    remote->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (remote->wake < 0)
        return KELP_ERROR(KELP_INTERNAL, "cannot create an eventfd: %s", strerror(errno));
    if (models->cache == NULL)
        KELP_TRY(kelp_temporary_create(kelp_allocator_system(), "serve", &remote->temporary));
    KELP_TRY(kelp_alloc_zero(kelp_allocator_system(), remote->capacity, sizeof *remote->mirrors,
                             (void **)&remote->mirrors));
    for (size_t i = 0; i < models->repositories.count; i++)
        if (kelp_pull_is_address(models->repositories.items[i]))
            KELP_TRY(add(remote, models, &models->repositories.items[i]));
    return NULL;
}

kelp_status *kelp_serve_remote_create(kelp_serve_models *models, kelp_serve_remote **out) {
    kelp_serve_remote *remote;
    size_t count = 0;
    *out = NULL;
    for (size_t i = 0; i < models->repositories.count; i++)
        count += kelp_pull_is_address(models->repositories.items[i]);
    if (count == 0)
        return NULL;
    KELP_TRY(KELP_NEW(kelp_allocator_system(), kelp_serve_remote, &remote));
    remote->wake = -1;
    remote->capacity = count;
    atomic_init(&remote->stop, false);
    kelp_status *status = fill(remote, models);
    if (status != NULL)
        kelp_serve_remote_destroy(remote);
    else
        *out = remote;
    return status;
}

void kelp_serve_remote_destroy(kelp_serve_remote *remote) {
    if (remote == NULL)
        return;
    atomic_store(&remote->stop, true);
    if (remote->running)
        pthread_join(remote->thread, NULL);
    kelp_status_free(remote->failure);
    for (size_t i = 0; i < remote->count; i++)
        kelp_mirror_destroy(remote->mirrors[i]);
    kelp_free(kelp_allocator_system(), remote->mirrors, remote->capacity * sizeof *remote->mirrors);
    kelp_temporary_remove(kelp_allocator_system(), remote->temporary);
    if (remote->wake >= 0)
        close(remote->wake);
    kelp_free(kelp_allocator_system(), remote, sizeof *remote);
}

/* Updates one copy. Without the store, the first update is content with what a cache has. */
static kelp_status *update(kelp_serve_remote *remote, kelp_mirror *mirror, kelp_fetch *fetch) {
    kelp_status *status = kelp_mirror_update(mirror, fetch);
    if (status == NULL)
        return NULL;
    if (kelp_status_code(status) == KELP_UNAVAILABLE && !remote->updated &&
        kelp_mirror_exists(mirror)) {
        fprintf(stderr, "kelp: serving the models that the cache has of '%s': %s\n",
                kelp_mirror_address(mirror), kelp_status_message(status));
        kelp_status_free(status);
        return NULL;
    }
    return KELP_ANNOTATE(status, "cannot pull '%s'", kelp_mirror_address(mirror));
}

/* Updates all copies, also if some fail. The failure is the first one. */
static void *run(void *userp) {
    kelp_serve_remote *remote = userp;
    kelp_fetch *fetch = NULL;
    kelp_status *failure = kelp_fetch_create(remote->updated, &remote->stop, &fetch);
    for (size_t i = 0; i < remote->count && fetch != NULL; i++) {
        kelp_status *status = update(remote, remote->mirrors[i], fetch);
        if (failure == NULL)
            failure = status;
        else
            kelp_status_free(status);
    }
    kelp_fetch_destroy(fetch);
    remote->failure = failure;
    (void)eventfd_write(remote->wake, 1);
    return NULL;
}

kelp_status *kelp_serve_remote_begin(kelp_serve_remote *remote) {
    KELP_TRY(kelp_thread_start(&remote->thread, "kelp-pull", run, remote));
    remote->running = true;
    return NULL;
}

int kelp_serve_remote_wake(const kelp_serve_remote *remote) {
    return remote->wake;
}

kelp_status *kelp_serve_remote_end(kelp_serve_remote *remote) {
    eventfd_t ignored;
    pthread_join(remote->thread, NULL);
    remote->running = false;
    remote->updated = true;
    (void)eventfd_read(remote->wake, &ignored);
    kelp_status *failure = remote->failure;
    remote->failure = NULL;
    return failure;
}
