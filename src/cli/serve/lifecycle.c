/* SPDX-License-Identifier: Apache-2.0 */
/* The main thread creates the server and waits for SIGINT or SIGTERM. It blocks both before it
 * starts other threads, so that only the signalfd receives them. */
#include "cli/serve/lifecycle.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/serve/core.h"
#include "cli/serve/model_file.h"
#include "cli/serve/temporary_repository.h"
#include "cli/serve/with_backend.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Returns after SIGINT or SIGTERM. Polls the repository in poll mode. */
static kelp_status *wait_for_signal(const kelp_serve_options *o, TRITONSERVER_Server *core,
                                    int signals, int *out_signal) {
    KELP_ASSERT(signals >= 0);
    bool polls = !strcmp(o->models.control_mode, "poll");
    for (;;) {
        struct pollfd fd = {.fd = signals, .events = POLLIN};
        int ready = poll(&fd, 1, polls ? (int)o->models.poll_secs * 1000 : -1);
        struct signalfd_siginfo taken;
        if (ready > 0 && read(signals, &taken, sizeof taken) == (ssize_t)sizeof taken) {
            *out_signal = (int)taken.ssi_signo;
            return NULL;
        }
        if (ready < 0 && errno != EINTR)
            return KELP_ERROR(KELP_INTERNAL, "cannot wait for signals: %s", strerror(errno));
        if (ready == 0) {
            TRITONSERVER_Error *error = TRITONSERVER_ServerPollModelRepository(core);
            if (error != NULL) {
                fprintf(stderr, "kelp: cannot poll the repository: %s\n",
                        TRITONSERVER_ErrorMessage(error));
                TRITONSERVER_ErrorDelete(error);
            }
        }
    }
}

static kelp_status *block_signals(int *out_fd) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    signal(SIGPIPE, SIG_IGN);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
        return KELP_ERROR(KELP_INTERNAL, "cannot block signals");
    *out_fd = signalfd(-1, &set, SFD_CLOEXEC);
    if (*out_fd < 0)
        return KELP_ERROR(KELP_INTERNAL, "cannot create a signal descriptor: %s", strerror(errno));
    return NULL;
}

/* A second signal during the shutdown ends the process immediately. */
static void unblock_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Keeps serving while load balancers notice that the server is not ready. */
static void drain(const kelp_serve_options *o, kelp_serve_frontends *frontends) {
    uint64_t end_ns = kelp_now_ns() + (uint64_t)o->server.drain_secs * 1000000000u;
    fprintf(stderr, "kelp: not ready, stopping in %lld s\n", (long long)o->server.drain_secs);
    kelp_serve_set_draining(frontends);
    for (uint64_t now_ns = kelp_now_ns(); now_ns < end_ns; now_ns = kelp_now_ns())
        (void)poll(NULL, 0, (int)KELP_MIN((end_ns - now_ns) / 1000000 + 1, 1000u));
}

/* Prints a failure. */
static void note(const kelp_serve_voice *voice, bool *inout_failed, kelp_status *take_status) {
    if (take_status == NULL)
        return;
    *inout_failed = true;
    voice->failed(take_status);
}

/* Stops the models. If all requests are over, models have at least a second to unload. */
static void stop_core(TRITONSERVER_Server *core, uint64_t deadline_ns, bool over,
                      const kelp_serve_voice *voice, bool *inout_failed) {
    uint64_t now_ns = kelp_now_ns();
    uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    unsigned left_s = (unsigned)(left_ns / 1000000000);
    if (over)
        left_s = KELP_MAX(left_s, 1u);
    note(voice, inout_failed, kelp_serve_set(TRITONSERVER_ServerSetExitTimeout(core, left_s)));
    kelp_status *status =
        kelp_serve_status(TRITONSERVER_ServerStop(core), "cannot stop the server");
    if (status != NULL) /* ServerDelete would wait again */
        note(voice, inout_failed, kelp_serve_set(TRITONSERVER_ServerSetExitTimeout(core, 0)));
    note(voice, inout_failed, status);
}

/* Stops the front end and then the server. The exit timeout is for both together. */
static void stop(const kelp_serve_options *o, TRITONSERVER_Server *core,
                 kelp_serve_frontends *frontends, const kelp_serve_voice *voice,
                 bool *inout_failed) {
    uint64_t timeout_ns = (uint64_t)o->server.exit_timeout_secs * 1000000000u;
    uint64_t deadline_ns = kelp_now_ns() + timeout_ns;
    uint64_t unload_ns = KELP_MIN(timeout_ns / 8, 1000000000u); /* for the models */
    kelp_status *status = kelp_serve_stop(frontends, timeout_ns - unload_ns);
    bool over = status == NULL;
    note(voice, inout_failed, status);
    if (core != NULL)
        stop_core(core, deadline_ns, over, voice, inout_failed);
    kelp_serve_destroy(frontends);
    if (core != NULL)
        note(voice, inout_failed,
             kelp_serve_status(TRITONSERVER_ServerDelete(core), "cannot delete the server"));
}

/* Limits the number of heaps of glibc, which otherwise has up to 8 for each CPU: a thread that
 * loads a model often uses another one than the thread that frees it, so that reloads use more and
 * more memory. Serving a request does not allocate. */
static void limit_heaps(void) {
#ifdef M_ARENA_MAX
    (void)mallopt(M_ARENA_MAX, 2);
#endif
}

/* Serves until a signal. */
static kelp_status *serve(const kelp_serve_options *o, const kelp_serve_voice *voice,
                          TRITONSERVER_Server *core, kelp_serve_frontends *frontends, int signals) {
    int signal_number = 0;
    KELP_TRY(kelp_serve_start(o, core, frontends));
    KELP_TRY(voice->announce(o, core, frontends));
    kelp_status *status = wait_for_signal(o, core, signals, &signal_number);
    unblock_signals();
    if (frontends->http != NULL && signal_number == SIGTERM && o->server.drain_secs > 0)
        drain(o, frontends);
    kelp_serve_set_draining(frontends); /* requests that are still answered */
    voice->stopping(signal_number);
    return status;
}

/* Creates the temporary repository of the models that the command line names. */
static kelp_status *create_repository(kelp_serve_options *o) {
    if (o->backends.with_backends.count == 0 && o->models.files.count == 0)
        return NULL;
    KELP_TRY(kelp_temporary_repository_create(&o->with_repository));
    KELP_TRY(kelp_with_backend_add(&o->backends.with_backends, o->with_repository));
    return kelp_model_file_add(&o->models.files, o->with_repository);
}

int kelp_serve_run(kelp_serve_options *o, const kelp_serve_voice *voice) {
    int signals = -1;
    bool failed = false;
    TRITONSERVER_Server *core = NULL;
    kelp_serve_frontends frontends = {0};
    limit_heaps();
    kelp_status *status = block_signals(&signals);
    if (status == NULL)
        status = create_repository(o);
    if (status == NULL)
        status = kelp_serve_check_addresses(o);
    note(voice, &failed, status);
    if (!failed) {
        status = kelp_serve_create_core(o, &core);
        if (status != NULL) {
            failed = true;
            voice->not_created(o, status);
        }
    }
    if (!failed)
        note(voice, &failed, serve(o, voice, core, &frontends, signals));
    stop(o, core, &frontends, voice, &failed);
    kelp_temporary_repository_remove(o->with_repository);
    if (signals >= 0)
        close(signals);
    return failed ? KELP_EXIT_FAILURE : KELP_EXIT_OK;
}
