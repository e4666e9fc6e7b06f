/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of kernels: checks the arguments, runs the kernel and waits for its completion. */
#include "plugins/internal.h"

#include "base/assert.h"
#include "base/sync/event.h"

static kelp_status *describe(const kelp_kernel_session *session, const kelp_kernel *kernel,
                             kelp_code code) {
    return KELP_ERROR(code, "kernel '%s' of library '%s' failed: %s", kernel->name,
                      kernel->library->name,
                      session->fail_text[0] != '\0' ? session->fail_text : kelp_code_name(code));
}

static kelp_status *wrong_device(const kelp_kernel_session *session, const kelp_kernel *kernel) {
    kelp_buf names;
    kelp_buf_init(&names, session->registry->allocator);
    for (size_t i = 0; kelp_kernel_library_device(kernel->library, i) != NULL; i++)
        kelp_buf_printf(&names, "%s%s", i > 0 ? ", " : "",
                        kelp_kernel_library_device(kernel->library, i));
    const char *text = kelp_buf_cstr(&names);
    kelp_status *status =
        KELP_ERROR(KELP_INVALID_ARGUMENT,
                   "cannot call kernel '%s' of library '%s': the session is for device type %d, "
                   "but the library supports only %s",
                   kernel->name, kernel->library->name, (int)session->context.device.device_type,
                   text != NULL ? text : "other devices");
    kelp_buf_deinit(&names);
    return status;
}

/* Runs the kernel. An asynchronous kernel may still be in progress when this returns. */
static kelp_status *run(const kelp_kernel *kernel, kelp_kernel_session *session,
                        const kelp_kernel_arg *args, int32_t count) {
    if ((kernel->devices >> session->context.device.device_type & 1) == 0)
        return wrong_device(session, kernel);
    if (kernel->typed) {
        kelp_status *status =
            kelp_signature_check(&kernel->signature, args, count, session->context.device);
        if (status != NULL)
            return KELP_ANNOTATE(status, "cannot call kernel '%s' of library '%s'", kernel->name,
                                 kernel->library->name);
    }
    if (session->scratch_used) {
        kelp_arena_clear(&session->scratch);
        session->scratch_used = false;
    }
    KELP_ASSERT(!session->pending); /* check_idle has passed */
    if (kernel->typed && kernel->signature.has_defaults)
        args = kelp_signature_fill(&kernel->signature, args, session->filled);
    session->kernel = kernel;
    session->fail_text[0] = '\0';
    if (kernel->fn != NULL) {
        kelp_code code = kernel->fn(&session->context, args);
        return code == KELP_OK ? NULL : describe(session, kernel, code);
    }
    KELP_TRY(kelp_kernel_call_raw(kernel, &session->context, args, count));
    /* a bare function returns no code: it failed if it set a message */
    return session->fail_text[0] == '\0' ? NULL : describe(session, kernel, KELP_INTERNAL);
}

static kelp_status *check_idle(kelp_kernel_session *session) {
    pthread_mutex_lock(&session->mutex);
    bool pending = session->pending;
    pthread_mutex_unlock(&session->mutex);
    return pending ? KELP_ERROR(KELP_FAILED_PRECONDITION,
                                "kernel '%s' is still in progress in this session",
                                session->kernel->name)
                   : NULL;
}

kelp_status *kelp_kernel_call(const kelp_kernel *kernel, kelp_kernel_session *session,
                              const kelp_kernel_arg *args, int32_t count) {
    if ((kernel->flags & KELP_KERNEL_ASYNC) == 0 && session->kernel == NULL)
        return run(kernel, session, args, count);
    if (session->kernel != NULL && (session->kernel->flags & KELP_KERNEL_ASYNC) != 0)
        KELP_TRY(check_idle(session));
    if ((kernel->flags & KELP_KERNEL_ASYNC) == 0)
        return run(kernel, session, args, count);
    KELP_TRY(kelp_kernel_submit(kernel, session, args, count, NULL));
    return kelp_kernel_session_result(session);
}

kelp_status *kelp_kernel_submit(const kelp_kernel *kernel, kelp_kernel_session *session,
                                const kelp_kernel_arg *args, int32_t count, kelp_event *event) {
    KELP_TRY(check_idle(session));
    kelp_status_free(session->result);
    session->result = NULL;
    session->event = event;
    session->finished = false;
    kelp_event_set_pending(event, true);
    kelp_status *status = run(kernel, session, args, count);
    pthread_mutex_lock(&session->mutex);
    bool later = session->pending;
    if (status != NULL && later) { /* failed after `later`: it will not call `complete` */
        session->pending = false;
        later = false;
    }
    pthread_mutex_unlock(&session->mutex);
    if (!later && !session->finished) {
        kelp_event_set_pending(event, false);
        if (status == NULL && session->on_done != NULL)
            session->on_done(session->on_done_userp);
    }
    return status;
}
