/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: the state of a kernel's run. Kernels call the functions of the context on the calling
 * thread, and `complete` on any thread.
 */
#include "plugins/internal.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sync/event.h"

#include <stdio.h>
#include <string.h>

static kelp_kernel_session *session_of(const kelp_kernel_context *context) {
    return (kelp_kernel_session *)(uintptr_t)context;
}

static void *session_scratch(const kelp_kernel_context *context, size_t size_bytes) {
    kelp_kernel_session *session = session_of(context);
    session->scratch_used = true;
    return kelp_arena_alloc(&session->scratch, size_bytes, 64);
}

static void session_parallel(const kelp_kernel_context *context, int64_t count, int64_t grain,
                             void (*fn)(void *userp, int64_t begin, int64_t end, int worker),
                             void *userp) {
    kelp_pool *pool = session_of(context)->registry->pool;
    if (count <= 0)
        return;
    if (pool == NULL || count <= grain)
        fn(userp, 0, count, 0);
    else
        kelp_pool_run(pool, count, grain > 0 ? grain : 1, fn, userp);
}

static void session_log(const kelp_kernel_context *context, int level, const char *text) {
    const kelp_kernel_registry *registry = session_of(context)->registry;
    if (registry->log != NULL)
        registry->log(registry->log_userp, level, text);
}

static void session_fail(const kelp_kernel_context *context, const char *text) {
    snprintf(session_of(context)->fail_text, KELP_FAIL_TEXT, "%s", text);
}

static kelp_kernel_completion *session_later(const kelp_kernel_context *context) {
    kelp_kernel_session *session = session_of(context);
    if ((session->kernel->flags & KELP_KERNEL_ASYNC) == 0 || session->pending)
        return NULL;
    pthread_mutex_lock(&session->mutex);
    session->pending = true;
    session->finished = false;
    pthread_mutex_unlock(&session->mutex);
    return &session->completion;
}

static kelp_status *outcome(const kelp_kernel_session *session, kelp_code code) {
    if (code == KELP_OK)
        return NULL;
    return KELP_ERROR(code, "kernel '%s' of library '%s' failed: %s", session->kernel->name,
                      session->kernel->library->name,
                      session->fail_text[0] != '\0' ? session->fail_text : kelp_code_name(code));
}

static void session_complete(kelp_kernel_completion *completion, kelp_code code, const char *text) {
    kelp_kernel_session *session = completion->session;
    pthread_mutex_lock(&session->mutex);
    if (session->pending && !session->finished) {
        if (code != KELP_OK && text != NULL)
            snprintf(session->fail_text, KELP_FAIL_TEXT, "%s", text);
        session->finished = true;
        session->pending = false;
        session->result = outcome(session, code);
        kelp_event_set_pending(session->event, false);
        pthread_cond_broadcast(&session->changed);
        if (session->on_done != NULL)
            session->on_done(session->on_done_userp);
    }
    pthread_mutex_unlock(&session->mutex);
}

static bool session_own(const kelp_kernel_context *context, void (*release)(void *resource),
                        void *resource) {
    kelp_kernel_session *session = session_of(context);
    kelp_status *status =
        kelp_grow(session->registry->allocator, (void **)&session->owned, &session->owned_capacity,
                  session->owned_count + 1, sizeof *session->owned);
    if (status != NULL) {
        kelp_status_free(status);
        release(resource);
        return false;
    }
    KELP_ASSERT(session->owned_count < session->owned_capacity);
    session->owned[session->owned_count++] = (kelp_owned){release, resource};
    return true;
}

int kelp_kernel_device_type(const char *name) {
    static const struct {
        const char *name;
        int type;
    } rows[] = {{"cpu", kDLCPU},       {"cuda", kDLCUDA},   {"rocm", kDLROCM},
                {"vulkan", kDLVulkan}, {"metal", kDLMetal}, {"opencl", kDLOpenCL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].type;
    }
    return 0;
}

kelp_status *kelp_kernel_session_create(kelp_kernel_registry *registry,
                                        const kelp_device_config *config,
                                        kelp_kernel_session **out) {
    static const kelp_device_config cpu = {.device = "cpu"};
    kelp_kernel_session *session = NULL;
    if (config == NULL)
        config = &cpu;
    if (kelp_kernel_device_type(config->device) == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "unknown device '%s': expected cpu, cuda, rocm, vulkan, metal or opencl",
                          config->device);
    KELP_TRY(KELP_NEW(registry->allocator, kelp_kernel_session, &session));
    kelp_status *status = kelp_lock_init(&session->mutex, &session->changed);
    if (status != NULL) {
        kelp_free(registry->allocator, session, sizeof *session);
        return status;
    }
    session->context = (kelp_kernel_context){
        .struct_size = sizeof session->context,
        .threads = registry->threads,
        .device = {(DLDeviceType)kelp_kernel_device_type(config->device), config->id},
        .stream = config->stream,
        .scratch = session_scratch,
        .parallel = session_parallel,
        .log = session_log,
        .fail = session_fail,
        .later = session_later,
        .complete = session_complete,
        .own = session_own,
    };
    session->registry = kelp_kernel_registry_retain(registry);
    session->completion.session = session;
    kelp_arena_init(&session->scratch, registry->allocator, 0);
    *out = session;
    return NULL;
}

static void wait_until_idle(kelp_kernel_session *session) {
    pthread_mutex_lock(&session->mutex);
    while (session->pending)
        pthread_cond_wait(&session->changed, &session->mutex);
    pthread_mutex_unlock(&session->mutex);
}

void kelp_kernel_session_destroy(kelp_kernel_session *session) {
    if (session == NULL)
        return;
    kelp_kernel_registry *registry = session->registry;
    kelp_allocator allocator = registry->allocator;
    wait_until_idle(session);
    while (session->owned_count > 0) {
        kelp_owned *last = &session->owned[--session->owned_count];
        last->release(last->resource);
    }
    kelp_free(allocator, session->owned, session->owned_capacity * sizeof *session->owned);
    kelp_status_free(session->result);
    kelp_arena_deinit(&session->scratch);
    pthread_cond_destroy(&session->changed);
    pthread_mutex_destroy(&session->mutex);
    bool in_registry = session->in_registry;
    kelp_free(allocator, session, sizeof *session);
    if (!in_registry)
        kelp_kernel_registry_release(registry);
}

kelp_status *kelp_kernel_take_session(kelp_kernel_registry *registry, kelp_kernel_session **out) {
    pthread_mutex_lock(&registry->mutex);
    kelp_kernel_session *session = registry->spare;
    if (session != NULL)
        registry->spare = session->next;
    pthread_mutex_unlock(&registry->mutex);
    if (session == NULL) {
        KELP_TRY(kelp_kernel_session_create(registry, NULL, &session));
        session->in_registry = true; /* it must not retain the registry that owns it */
        kelp_kernel_registry_release(registry);
    }
    *out = session;
    return NULL;
}

void kelp_kernel_return_session(kelp_kernel_registry *registry, kelp_kernel_session *session) {
    KELP_ASSERT(session->in_registry && session->registry == registry);
    pthread_mutex_lock(&registry->mutex);
    session->next = registry->spare;
    registry->spare = session;
    pthread_mutex_unlock(&registry->mutex);
}

const kelp_kernel_context *kelp_kernel_session_context(kelp_kernel_session *session) {
    return &session->context;
}

kelp_status *kelp_kernel_session_result(kelp_kernel_session *session) {
    wait_until_idle(session);
    kelp_status *result = session->result;
    session->result = NULL;
    return result;
}
