/* SPDX-License-Identifier: Apache-2.0 */
/* kelp serve: serves a model repository over HTTP, with the options of Triton's server. The main
 * thread creates the server and waits for SIGINT or SIGTERM. It blocks both before it starts other
 * threads, so that only the signalfd receives them. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/serve/core.h"
#include "cli/serve/frontends.h"
#include "cli/serve/readiness.h"
#include "cli/with_backend.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Prints the models and the addresses. */
static kelp_status *announce(const kelp_serve_options *o, TRITONSERVER_Server *core,
                             const kelp_serve_frontends *frontends) {
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_status *status = kelp_serve_append_models(core, &text);
    if (status == NULL) {
        kelp_serve_append_addresses(o, frontends, &text);
        status = kelp_cli_print(&text);
    }
    kelp_buf_deinit(&text);
    return status;
}

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

/* Keeps the first failure and prints the others. */
static void keep_first(kelp_status **inout_first, kelp_status *take_next) {
    if (*inout_first == NULL)
        *inout_first = take_next;
    else if (take_next != NULL)
        (void)kelp_cli_finish(take_next);
}

/* Stops the models. If all requests are over, models have at least a second to unload. */
static void stop_core(TRITONSERVER_Server *core, uint64_t deadline_ns, bool over,
                      kelp_status **inout_first) {
    uint64_t now_ns = kelp_now_ns();
    uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    unsigned left_s = (unsigned)(left_ns / 1000000000);
    if (over)
        left_s = KELP_MAX(left_s, 1u);
    keep_first(inout_first, kelp_serve_set(TRITONSERVER_ServerSetExitTimeout(core, left_s)));
    kelp_status *status =
        kelp_serve_status(TRITONSERVER_ServerStop(core), "cannot stop the server");
    if (status != NULL) /* ServerDelete would wait again */
        keep_first(inout_first, kelp_serve_set(TRITONSERVER_ServerSetExitTimeout(core, 0)));
    keep_first(inout_first, status);
}

/* Stops the front end and then the server. The exit timeout is for both together. */
static void stop(const kelp_serve_options *o, TRITONSERVER_Server *core,
                 kelp_serve_frontends *frontends, kelp_status **inout_first) {
    uint64_t timeout_ns = (uint64_t)o->server.exit_timeout_secs * 1000000000u;
    uint64_t deadline_ns = kelp_now_ns() + timeout_ns;
    uint64_t unload_ns = KELP_MIN(timeout_ns / 8, 1000000000u); /* for the models */
    kelp_status *status = kelp_serve_stop(frontends, timeout_ns - unload_ns);
    bool over = status == NULL;
    keep_first(inout_first, status);
    if (core != NULL)
        stop_core(core, deadline_ns, over, inout_first);
    kelp_serve_destroy(frontends);
    if (core != NULL)
        keep_first(inout_first,
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

/* Returns what is wrong with the command line, or NULL. */
static kelp_status *check(const kelp_serve_options *o) {
    if (o->models.repositories.count == 0 && o->backends.with_backends.count == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "missing option '--model-repository'");
    if (o->grpc.allow_grpc)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "option '--allow-grpc': gRPC is not supported; use HTTP");
    if (o->models.load_models.count && strcmp(o->models.control_mode, "explicit"))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "option '--load-model' requires '--model-control-mode explicit'");
    return NULL;
}

/* Serves until a signal. */
static kelp_status *serve(const kelp_serve_options *o, TRITONSERVER_Server *core,
                          kelp_serve_frontends *frontends, int signals) {
    int signal_number = 0;
    KELP_TRY(kelp_serve_start(o, core, frontends));
    KELP_TRY(announce(o, core, frontends));
    kelp_status *status = wait_for_signal(o, core, signals, &signal_number);
    unblock_signals();
    if (frontends->http != NULL && signal_number == SIGTERM)
        drain(o, frontends);
    kelp_serve_set_draining(frontends); /* requests that are still answered */
    fprintf(stderr, "kelp: stopping\n");
    return status;
}

static int run(const kelp_command *command, void *options) {
    kelp_serve_options *o = options;
    limit_heaps();
    kelp_status *status = check(o);
    if (status != NULL)
        return kelp_cli_usage(command, status);
    int signals = -1;
    TRITONSERVER_Server *core = NULL;
    kelp_serve_frontends frontends = {0};
    status = block_signals(&signals);
    if (status == NULL && o->backends.with_backends.count)
        status = kelp_with_backend_make(&o->backends.with_backends, &o->with_repository);
    if (status == NULL)
        status = kelp_serve_create_core(o, &core);
    if (status == NULL)
        status = serve(o, core, &frontends, signals);
    stop(o, core, &frontends, &status);
    kelp_with_backend_remove(o->with_repository);
    if (signals >= 0)
        close(signals);
    return kelp_cli_finish(status);
}

const kelp_command kelp_cmd_serve = {
    .name = "serve",
    .summary = "serve a model repository over HTTP",
    .usage = "--model-repository DIR [options]",
    .details = "Implements the KServe v2 protocol with Triton's extensions. Options have Triton's "
               "names. SIGINT or\nSIGTERM stops the server after the requests in flight.",
    .examples =
        "  kelp serve --model-repository examples/models\n"
        "  kelp serve --model-repository models --http-port 0 --exit-on-error=false\n"
        "  kelp serve --model-repository models --model-control-mode explicit --load-model digits\n"
        "  kelp serve --with-backend build/libtriton_my_backend.so\n"
        "  curl -s localhost:8000/v2/models/digits/infer -d @examples/requests/digits.json",
    .positional = "",
    .tables = kelp_serve_tables,
    .options_bytes = sizeof(kelp_serve_options),
    .defaults = kelp_serve_defaults,
    .run = run,
};
