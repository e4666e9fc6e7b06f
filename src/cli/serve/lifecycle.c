/* SPDX-License-Identifier: Apache-2.0 */
/* The main thread creates the server and waits for SIGINT or SIGTERM. It blocks both before it
 * starts other threads, so that only the signalfd receives them. */
#include "cli/serve/lifecycle.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/files/temporary.h"
#include "cli/cli.h"
#include "cli/serve/core.h"
#include "cli/serve/model_file.h"
#include "cli/serve/notify.h"
#include "cli/serve/readiness.h"
#include "cli/serve/remote/remote.h"
#include "cli/serve/trim.h"
#include "cli/serve/with_backend.h"
#include "frontends/otlp/curl.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define COPY_OF_SIGNAL_MS 10
#define SECOND_NS UINT64_C(1000000000)

/* A serving process. */
typedef struct serve_process {
    kelp_serve_options *o;
    const kelp_serve_voice *voice;
    TRITONSERVER_Server *core; /* NULL until it is created */
    kelp_serve_frontends frontends;
    kelp_serve_trim *trim;
    kelp_serve_remote *remote; /* NULL: no repository is remote */
    kelp_serve_notify notify;
    int signals; /* a signalfd; -1: closed */
    bool failed;
    bool interrupted; /* by a signal, before the server was created */
} serve_process;

static void poll_repository(TRITONSERVER_Server *core) {
    TRITONSERVER_Error *error = TRITONSERVER_ServerPollModelRepository(core);
    if (error == NULL)
        return;
    fprintf(stderr, "kelp: cannot poll the repository: %s\n", TRITONSERVER_ErrorMessage(error));
    TRITONSERVER_ErrorDelete(error);
}

static void note_update(kelp_status *take_failure) {
    if (take_failure == NULL)
        return;
    fprintf(stderr, "kelp: the models of the latest download are still served: %s\n",
            kelp_status_message(take_failure));
    kelp_status_free(take_failure);
}

/* Polls the repository if it is due. Remote repositories are downloaded before, and `wake` tells
 * that they are. Returns the time of the next poll. */
static uint64_t poll_if_due(serve_process *process, uint64_t due_ns, uint64_t now_ns, bool wake) {
    kelp_serve_remote *remote = process->remote;
    if (wake)
        note_update(kelp_serve_remote_end(remote));
    else if (now_ns < due_ns)
        return due_ns;
    if (remote != NULL && !wake) {
        kelp_status *failure = kelp_serve_remote_begin(remote);
        if (failure == NULL)
            return UINT64_MAX;
        note_update(failure);
    }
    poll_repository(process->core);
    return kelp_now_ns() + (uint64_t)process->o->models.poll_secs * SECOND_NS;
}

static int timeout_ms(uint64_t due_ns) {
    uint64_t now_ns = kelp_now_ns();
    if (due_ns == UINT64_MAX)
        return -1;
    return due_ns > now_ns ? (int)KELP_MIN((due_ns - now_ns) / 1000000 + 1, (uint64_t)INT_MAX) : 0;
}

/* Returns after SIGINT or SIGTERM. Polls the repository in poll mode. */
static kelp_status *wait_for_signal(serve_process *process, int *out_signal) {
    const kelp_serve_options *o = process->o;
    kelp_serve_trim *trim = process->trim;
    KELP_ASSERT(process->signals >= 0);
    int remote = process->remote != NULL ? kelp_serve_remote_wake(process->remote) : -1;
    uint64_t poll_ns = strcmp(o->models.control_mode, "poll")
                           ? UINT64_MAX
                           : kelp_now_ns() + (uint64_t)o->models.poll_secs * SECOND_NS;
    for (;;) {
        struct pollfd fds[] = {{.fd = process->signals, .events = POLLIN},
                               {.fd = trim->wake, .events = POLLIN},
                               {.fd = remote, .events = POLLIN}};
        uint64_t due_ns = KELP_MIN(KELP_MIN(poll_ns, trim->due_ns), process->notify.due_ns);
        int ready = poll(fds, KELP_COUNT(fds), timeout_ms(due_ns));
        struct signalfd_siginfo taken;
        if (ready > 0 && fds[0].revents &&
            read(process->signals, &taken, sizeof taken) == (ssize_t)sizeof taken) {
            *out_signal = (int)taken.ssi_signo;
            return NULL;
        }
        if (ready < 0 && errno != EINTR)
            return KELP_ERROR(KELP_INTERNAL, "cannot wait for signals: %s", strerror(errno));
        uint64_t now_ns = kelp_now_ns();
        kelp_serve_notify_watchdog(&process->notify, process->frontends.http, now_ns);
        kelp_serve_trim_check(trim, now_ns);
        poll_ns = poll_if_due(process, poll_ns, now_ns, ready > 0 && fds[2].revents != 0);
    }
}

/* Downloads remote repositories for the first time. A signal stops that, and then the process. */
static kelp_status *download(serve_process *process) {
    KELP_TRY(kelp_serve_remote_create(&process->o->models, &process->remote));
    if (process->remote == NULL)
        return NULL;
    kelp_serve_notify_send(&process->notify, "STATUS=Downloading models");
    KELP_TRY(kelp_serve_remote_begin(process->remote));
    struct pollfd fds[] = {{.fd = process->signals, .events = POLLIN},
                           {.fd = kelp_serve_remote_wake(process->remote), .events = POLLIN}};
    while (poll(fds, KELP_COUNT(fds), -1) < 0)
        if (errno != EINTR)
            return KELP_ERROR(KELP_INTERNAL, "cannot wait for downloads: %s", strerror(errno));
    struct signalfd_siginfo taken;
    if (fds[0].revents == 0 ||
        read(process->signals, &taken, sizeof taken) != (ssize_t)sizeof taken)
        return kelp_serve_remote_end(process->remote);
    process->interrupted = true; /* the update ends with the object */
    process->voice->stopping((int)taken.ssi_signo);
    return NULL;
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

/* A second signal during the shutdown ends the process immediately. `timeout` of coreutils sends
 * each signal twice, to the process and to its group: the copy does not count. */
static void unblock_signals(int signals) {
    struct pollfd copy = {.fd = signals, .events = POLLIN};
    struct signalfd_siginfo taken;
    if (poll(&copy, 1, COPY_OF_SIGNAL_MS) > 0)
        (void)!read(signals, &taken, sizeof taken);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Returns true if no request has begun recently, so that clients have probably left. */
static bool is_quiet(const kelp_serve_frontends *frontends, uint64_t now_ns) {
    return kelp_serve_last_request_ns(frontends) + KELP_SERVE_QUIET_MS * UINT64_C(1000000) <=
           now_ns;
}

/* Keeps serving while load balancers notice that the server is not ready. Without a time from the
 * user, until clients have left. */
static void drain(const kelp_serve_options *o, kelp_serve_frontends *frontends) {
    bool until_quiet = o->server.drain_secs < 0;
    int64_t secs = until_quiet ? KELP_SERVE_MAX_DRAIN_SECS : o->server.drain_secs;
    uint64_t now_ns = kelp_now_ns(), end_ns = now_ns + (uint64_t)secs * 1000000000u;
    if (now_ns == end_ns || (until_quiet && is_quiet(frontends, now_ns)))
        return;
    fprintf(stderr, "kelp: not ready, stopping in %lld s%s\n", (long long)secs,
            until_quiet ? " or when there are no requests" : "");
    kelp_serve_set_draining(frontends);
    for (; now_ns < end_ns && !(until_quiet && is_quiet(frontends, now_ns)); now_ns = kelp_now_ns())
        (void)poll(NULL, 0, (int)KELP_MIN((end_ns - now_ns) / 1000000 + 1, 50u));
}

/* Prints a failure. */
static void note(const kelp_serve_voice *voice, bool *inout_failed, kelp_status *take_status) {
    if (take_status == NULL)
        return;
    *inout_failed = true;
    voice->failed(take_status);
}

/* Stops the models. If all requests are over, models have at least a second to unload. Returns
 * false if some are not unloaded in time. */
static bool stop_core(TRITONSERVER_Server *core, uint64_t deadline_ns, bool over,
                      const kelp_serve_voice *voice, bool *inout_failed) {
    uint64_t now_ns = kelp_now_ns();
    uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    unsigned left_s = (unsigned)(left_ns / 1000000000);
    if (over)
        left_s = KELP_MAX(left_s, 1u);
    note(voice, inout_failed, kelp_serve_set(TRITONSERVER_ServerSetExitTimeout(core, left_s)));
    kelp_status *status =
        kelp_serve_status(TRITONSERVER_ServerStop(core), "cannot stop the server");
    bool stopped = status == NULL;
    if (!stopped) /* ServerDelete would wait again */
        note(voice, inout_failed, kelp_serve_set(TRITONSERVER_ServerSetExitTimeout(core, 0)));
    note(voice, inout_failed, status);
    return stopped;
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
    if (core != NULL && !stop_core(core, deadline_ns, over, voice, inout_failed))
        frontends->held = true; /* a request may have a trace also after its last response */
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

/* Tells the service manager that the server is ready, and what it serves. */
static kelp_status *notify_ready(const serve_process *process) {
    size_t ready = 0, all = 0;
    char text[128];
    if (!process->notify.enabled)
        return NULL;
    KELP_TRY(kelp_serve_count_models(process->core, &ready, &all));
    snprintf(text, sizeof text, "READY=1\nSTATUS=Serving %zu of %zu models", ready, all);
    kelp_serve_notify_send(&process->notify, text);
    return NULL;
}

/* Serves until a signal. */
static kelp_status *serve(serve_process *process) {
    const kelp_serve_options *o = process->o;
    kelp_serve_frontends *frontends = &process->frontends;
    int signal_number = 0;
    KELP_TRY(kelp_serve_start(o, process->core, process->trim, frontends));
    KELP_TRY(process->voice->announce(o, process->core, frontends));
    KELP_TRY(notify_ready(process));
    kelp_status *status = wait_for_signal(process, &signal_number);
    unblock_signals(process->signals);
    kelp_serve_notify_send(&process->notify, "STOPPING=1\nSTATUS=Completing requests");
    if (frontends->http != NULL && signal_number == SIGTERM)
        drain(o, frontends);
    kelp_serve_set_draining(frontends); /* requests are still processed */
    process->voice->stopping(signal_number);
    return status;
}

/* Creates the temporary repository of the models that the command line names. */
static kelp_status *create_repository(kelp_serve_options *o) {
    if (o->backends.with_backends.count == 0 && o->models.files.count == 0)
        return NULL;
    KELP_TRY(kelp_temporary_create(kelp_allocator_system(), "serve", &o->with_repository));
    KELP_TRY(kelp_with_backend_add(&o->backends.with_backends, o->with_repository));
    return kelp_model_file_add(&o->models.files, o->with_repository);
}

/* A library that a model loads may call exit. A supervisor that restarts a server after a failure
 * must see one. */
static bool serving;

static void on_exit_call(int code, void *userp) {
    (void)userp;
    if (!serving)
        return;
    fprintf(stderr, "kelp: a library called exit(%d); the server ends\n", code);
    _exit(code != 0 ? code : KELP_EXIT_FAILURE);
}

/* Does what precedes the loading of models. */
static kelp_status *prepare(serve_process *process) {
    const kelp_curl *curl;
    if (process->frontends.trace.options.otlp != NULL)
        KELP_TRY(kelp_curl_load(&curl));
    KELP_TRY(kelp_serve_sockets_take(&process->frontends.sockets));
    KELP_TRY(kelp_serve_notify_init(&process->notify));
    KELP_TRY(block_signals(&process->signals));
    KELP_TRY(kelp_serve_trim_init(process->trim));
    KELP_TRY(create_repository(process->o));
    KELP_TRY(kelp_serve_check_addresses(process->o, &process->frontends.sockets));
    KELP_TRY(download(process));
    kelp_serve_notify_send(&process->notify, "STATUS=Loading models");
    return NULL;
}

/* Prints a failure to create the server. */
static void note_not_created(serve_process *process, kelp_status *take_status) {
    if (take_status == NULL)
        return;
    process->failed = true;
    process->voice->not_created(process->o, take_status);
}

int kelp_serve_run(kelp_serve_options *o, const kelp_serve_voice *voice) {
    /* Requests that models still hold after the stop use it until the process ends. */
    static kelp_serve_trim trim;
    trim.wake = -1;
    serve_process process = {.o = o, .voice = voice, .trim = &trim, .signals = -1};
    limit_heaps();
    serving = on_exit(on_exit_call, NULL) == 0;
    kelp_temporary_sweep(); /* of servers that crashed */
    note_not_created(&process, kelp_serve_trace_parse(&o->trace, &process.frontends.trace));
    if (!process.failed)
        note(voice, &process.failed, prepare(&process));
    if (!process.failed && !process.interrupted)
        note_not_created(&process, kelp_serve_create_core(o, &process.core));
    if (!process.failed && !process.interrupted)
        note(voice, &process.failed, serve(&process));
    stop(o, process.core, &process.frontends, voice, &process.failed);
    kelp_serve_notify_deinit(&process.notify);
    kelp_temporary_remove(kelp_allocator_system(), o->with_repository);
    kelp_serve_remote_destroy(process.remote);
    kelp_serve_trim_deinit(&trim);
    if (process.signals >= 0)
        close(process.signals);
    serving = false;
    return process.failed ? KELP_EXIT_FAILURE : KELP_EXIT_OK;
}
