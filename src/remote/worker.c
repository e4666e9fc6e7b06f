/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker: runs subgraphs of other processes. The thread of kelp_worker_run accepts connections;
 * each connection has a thread, an engine and a context.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "runtime/runtime.h"
#include "remote/endpoint.h"
#include "remote/token.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define GRAPH_BYTES ((size_t)1 << 30)
#define CONNECTIONS 64
#define RETRY_MS 100 /* before the next accept without free descriptors */
/* Timeout of the transfer of a frame. */
#define TRANSFER_NS ((uint64_t)60 * 1000000000u)
/* Time for a client to send its token. */
#define TOKEN_NS ((uint64_t)10 * 1000000000u)
/* First allocation for a subgraph; it grows as bytes arrive. */
#define MODEL_BYTES ((size_t)1 << 20)

struct kelp_worker {
    kelp_allocator allocator;
    kelp_runtime *runtime;
    kelp_endpoint endpoint;
    char address[KELP_ENDPOINT_TEXT_BYTES];
    kelp_token token;
    char *providers;
    kelp_wire_caps caps;
    size_t graph_bytes;
    uint32_t connections;
    kelp_types *types;
    kelp_budget *budget;
    int listener, wake;
    atomic_bool stopped;
    struct session *sessions;
};

typedef struct session {
    struct session *next;
    kelp_worker *worker;
    pthread_t thread;
    atomic_bool ended;
    bool admitted; /* it has sent the token, or none is required */
    int fd;
    kelp_engine *engine;
    kelp_context *context;
    kelp_receiver *receiver;
} session;

/* ---- a connection ---- */
static void unload(session *s) {
    kelp_context_destroy(s->context);
    kelp_engine_release(s->engine);
    kelp_receiver_destroy(s->receiver);
    s->context = NULL;
    s->engine = NULL;
    s->receiver = NULL;
}

typedef struct model_bytes {
    kelp_allocator allocator;
    size_t size_bytes;
} model_bytes;

static void free_model(void *userp) {
    model_bytes *bytes = userp;
    kelp_free_aligned(bytes->allocator, bytes, sizeof *bytes + bytes->size_bytes,
                      KELP_TENSOR_ALIGNMENT);
}

static kelp_status *make_receiver(session *s) {
    const kelp_worker *w = s->worker;
    KELP_ASSERT(s->engine != NULL && s->receiver == NULL);
    size_t count = kelp_engine_input_count(s->engine);
    kelp_wire_slot *slots = NULL;
    KELP_TRY(kelp_alloc_zero(w->allocator, count, sizeof *slots, (void **)&slots));
    for (size_t i = 0; i < count; i++) {
        const kelp_io_info *info = kelp_engine_input(s->engine, i);
        slots[i].name = info->name;
        slots[i].type_hash = kelp_type_of_tensor(info->dtype);
    }
    kelp_receiver_options options = {.struct_size = sizeof options,
                                     .allocator = w->allocator,
                                     .types = w->types,
                                     .budget = w->budget,
                                     .caps = &w->caps,
                                     .slots = slots,
                                     .slot_count = count};
    kelp_status *status = kelp_receiver_create(&options, &s->receiver);
    kelp_free(w->allocator, slots, count * sizeof *slots);
    return status;
}

static kelp_status *load_model(session *s, const void *data, size_t size_bytes, model_bytes *take) {
    const kelp_worker *w = s->worker;
    kelp_graph *graph = NULL;
    kelp_engine_options options = {.struct_size = sizeof options, .providers = w->providers};
    unload(s);
    kelp_graph_limits limits = kelp_runtime_graph_limits(w->runtime);
    KELP_TRY(kelp_graph_load_bytes(w->allocator, data, size_bytes, "(subgraph)", NULL, free_model,
                                   take, &limits, &graph));
    kelp_status *status = kelp_engine_create(w->runtime, graph, &options, &s->engine);
    kelp_graph_release(graph);
    if (status == NULL)
        status = kelp_context_create(s->engine, &s->context);
    if (status == NULL)
        status = make_receiver(s);
    if (status != NULL)
        unload(s);
    return status;
}

static kelp_status *grow_model(const session *s, size_t size_bytes, model_bytes **inout_bytes) {
    kelp_allocator allocator = s->worker->allocator;
    model_bytes *grown = NULL, *old = *inout_bytes;
    size_t block_bytes = 0;
    if (!kelp_size_add(sizeof *grown, size_bytes, &block_bytes))
        return kelp_status_oom();
    KELP_TRY(kelp_alloc_aligned(allocator, block_bytes, KELP_TENSOR_ALIGNMENT, (void **)&grown));
    *grown = (model_bytes){allocator, size_bytes};
    if (old != NULL) {
        memcpy(grown + 1, old + 1, old->size_bytes);
        free_model(old);
    }
    *inout_bytes = grown;
    return NULL;
}

/* Reads a model. Memory follows the bytes that arrive, not the length that the peer announced. */
static kelp_status *read_model(const session *s, const kelp_channel *channel, size_t size_bytes,
                               model_bytes **inout_bytes) {
    for (size_t have = 0;;) {
        size_t next = KELP_MIN(size_bytes, have != 0 ? 2 * have : MODEL_BYTES);
        KELP_TRY(grow_model(s, next, inout_bytes));
        KELP_TRY(kelp_channel_read(channel, (char *)(*inout_bytes + 1) + have, next - have, NULL));
        have = next;
        if (have == size_bytes)
            return NULL;
    }
}

/* Loads a model. `*out_failure` is to be sent to the client; an error ends the connection. */
static kelp_status *load(session *s, const kelp_channel *channel, uint64_t length,
                         kelp_status **out_failure) {
    const kelp_worker *w = s->worker;
    model_bytes *bytes = NULL;
    if (length > w->graph_bytes)
        return KELP_ERROR(KELP_OUT_OF_RANGE,
                          "the subgraph has %llu bytes: at most %zu are accepted",
                          (unsigned long long)length, w->graph_bytes);
    kelp_status *status = read_model(s, channel, (size_t)length, &bytes);
    if (status != NULL) {
        if (bytes != NULL)
            free_model(bytes);
        return status;
    }
    *out_failure = load_model(s, bytes + 1, (size_t)length, bytes);
    return NULL;
}

static kelp_status *bind_inputs(session *s) {
    KELP_ASSERT(kelp_receiver_is_complete(s->receiver));
    for (size_t i = 0; i < kelp_receiver_report_count(s->receiver); i++) {
        const kelp_status *failure = kelp_receiver_report(s->receiver, i)->status;
        if (failure != NULL)
            return kelp_status_clone(failure);
    }
    for (size_t i = 0; i < kelp_engine_input_count(s->engine); i++) {
        const kelp_tensor *tensor = kelp_receiver_tensor(s->receiver, i);
        if (tensor == NULL)
            return KELP_ERROR(KELP_FAILED_PRECONDITION, "input '%s' was not sent",
                              kelp_engine_input(s->engine, i)->name);
        KELP_TRY(kelp_context_set_input(s->context, i, tensor));
    }
    return NULL;
}

static kelp_status *create_response(session *s, kelp_envelope **out) {
    size_t count = kelp_engine_output_count(s->engine);
    kelp_allocator allocator = s->worker->allocator;
    kelp_envelope_fill *fills = NULL;
    KELP_TRY(kelp_alloc_zero(allocator, count, sizeof *fills, (void **)&fills));
    for (size_t i = 0; i < count; i++)
        fills[i] =
            (kelp_envelope_fill){.slot = (uint32_t)i, .tensor = kelp_context_output(s->context, i)};
    kelp_envelope_parts parts = {.correlation = kelp_receiver_correlation(s->receiver),
                                 .fills = fills,
                                 .fill_count = count,
                                 .caps = &s->worker->caps};
    kelp_status *status = kelp_envelope_create(allocator, &parts, out);
    kelp_free(allocator, fills, count * sizeof *fills);
    return status;
}

static kelp_status *run(session *s, const kelp_channel *channel, uint64_t length) {
    kelp_envelope *response = NULL;
    if (s->context == NULL)
        return KELP_ERROR(KELP_FAILED_PRECONDITION,
                          "no subgraph is loaded: expected a LOAD frame before RUN");
    KELP_TRY(kelp_frame_receive(channel, length, s->receiver));
    kelp_status *failure = bind_inputs(s);
    if (failure == NULL)
        failure = kelp_context_invoke(s->context);
    if (failure == NULL)
        failure = create_response(s, &response);
    kelp_status *status = NULL;
    if (failure != NULL) {
        status = kelp_frame_send_failure(channel, failure);
    } else {
        size_t count = 0;
        const kelp_span *spans = kelp_envelope_spans(response, &count);
        status = kelp_frame_send(channel, KELP_FRAME_RESULT, spans, count);
    }
    kelp_envelope_destroy(response);
    kelp_status_free(failure);
    for (size_t i = 0; i < kelp_engine_input_count(s->engine); i++)
        kelp_receiver_evict(s->receiver, i);
    return status;
}

static kelp_status *check_token(session *s, const kelp_channel *channel, uint64_t length) {
    const kelp_worker *w = s->worker;
    kelp_token token = {0};
    if (length > sizeof token.bytes)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "the token has %llu bytes: expected at most %zu",
                          (unsigned long long)length, sizeof token.bytes);
    KELP_TRY(kelp_channel_read(channel, token.bytes, (size_t)length, NULL));
    token.length = (size_t)length;
    if (w->token.length > 0 && !kelp_token_equals(&token, &w->token))
        return KELP_ERROR(KELP_UNAUTHENTICATED, "the worker expects another token");
    s->admitted = true;
    return NULL;
}

static kelp_status *serve_frame(session *s, const kelp_channel *channel, kelp_frame_kind kind,
                                uint64_t length) {
    kelp_status *failure = NULL;
    if (kind == KELP_FRAME_TOKEN)
        return check_token(s, channel, length);
    if (!s->admitted)
        return KELP_ERROR(KELP_UNAUTHENTICATED, "the worker expects a token");
    if (kind == KELP_FRAME_RUN)
        return run(s, channel, length);
    if (kind != KELP_FRAME_LOAD)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "unexpected frame of kind %d: expected LOAD or RUN", (int)kind);
    KELP_TRY(load(s, channel, length, &failure));
    kelp_status *status = failure != NULL ? kelp_frame_send_failure(channel, failure)
                                          : kelp_frame_send(channel, KELP_FRAME_LOADED, NULL, 0);
    kelp_status_free(failure);
    return status;
}

static kelp_status *serve(session *s) {
    const atomic_bool *stopped = &s->worker->stopped;
    kelp_channel idle = {.fd = s->fd, .stopped = stopped, .timeout_ns = s->admitted ? 0 : TOKEN_NS};
    kelp_channel busy = {.fd = s->fd, .stopped = stopped, .timeout_ns = TRANSFER_NS};
    for (;;) {
        kelp_frame_kind kind = KELP_FRAME_FAILED;
        uint64_t length = 0;
        bool ended = false;
        KELP_TRY(kelp_frame_read_head(&idle, &kind, &length, &ended));
        if (ended)
            return NULL;
        KELP_TRY(serve_frame(s, &busy, kind, length));
        idle.timeout_ns = 0;
    }
}

static void *session_main(void *userp) {
    session *s = userp;
    kelp_channel last = {.fd = s->fd, .timeout_ns = TRANSFER_NS / 60};
    kelp_status *status = serve(s);
    if (status != NULL) {
        KELP_LOGF(&s->worker->runtime->logger, KELP_LOG_WARNING,
                  "a connection was closed after an error: %s", kelp_status_message(status));
        kelp_status_free(kelp_frame_send_failure(&last, status));
        kelp_status_free(status);
    }
    unload(s);
    shutdown(s->fd, SHUT_RDWR);
    atomic_store(&s->ended, true);
    return NULL;
}

/* ---- connections ---- */
static void end_session(session *s) {
    pthread_join(s->thread, NULL);
    close(s->fd);
    kelp_free(s->worker->allocator, s, sizeof *s);
}

/* Joins the sessions that have ended, or all. Returns the number of remaining sessions. */
static uint32_t reap(kelp_worker *w, bool all) {
    uint32_t left = 0;
    for (session **link = &w->sessions, *s; (s = *link) != NULL;) {
        if (!all && !atomic_load(&s->ended)) {
            link = &s->next;
            left++;
            continue;
        }
        *link = s->next;
        if (all)
            shutdown(s->fd, SHUT_RDWR);
        end_session(s);
    }
    return left;
}

static void reject(int fd, kelp_status *take_status) {
    kelp_channel channel = {.fd = fd, .timeout_ns = TRANSFER_NS / 60};
    kelp_status_free(kelp_frame_send_failure(&channel, take_status));
    kelp_status_free(take_status);
    close(fd);
}

static void admit(kelp_worker *w, int fd) {
    session *s = NULL;
    kelp_status *status = NULL;
    if (reap(w, false) >= w->connections)
        status = KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                            "the worker has %u connections, which is the limit", w->connections);
    if (status == NULL)
        status = KELP_NEW(w->allocator, session, &s);
    if (status != NULL) {
        reject(fd, status);
        return;
    }
    s->worker = w;
    s->fd = fd;
    s->admitted = w->token.length == 0;
    kelp_endpoint_tune(&w->endpoint, fd);
    atomic_init(&s->ended, false);
    status = kelp_thread_start(&s->thread, "kelp-worker", session_main, s);
    if (status != NULL) {
        kelp_free(w->allocator, s, sizeof *s);
        reject(fd, status);
        return;
    }
    s->next = w->sessions;
    w->sessions = s;
}

kelp_status *kelp_worker_run(kelp_worker *w) {
    kelp_status *status = NULL;
    while (status == NULL && !atomic_load(&w->stopped)) {
        struct pollfd polled[2] = {{.fd = w->listener, .events = POLLIN},
                                   {.fd = w->wake, .events = POLLIN}};
        if (poll(polled, 2, -1) < 0 && errno != EINTR)
            status = KELP_ERROR(KELP_INTERNAL, "cannot wait for connections: %s", strerror(errno));
        if (status != NULL || (polled[0].revents & POLLIN) == 0)
            continue;
        int fd = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            admit(w, fd);
        else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            (void)poll(&polled[1], 1, RETRY_MS); /* until a connection is closed */
    }
    atomic_store(&w->stopped, true);
    reap(w, true);
    return status;
}

void kelp_worker_stop(kelp_worker *w) {
    uint64_t one = 1;
    atomic_store(&w->stopped, true);
    ssize_t written = write(w->wake, &one, sizeof one);
    (void)written; /* if the counter is full, the event already wakes the worker */
}

/* ---- creation ---- */
static kelp_status *init(kelp_worker *w, const kelp_worker_options *o) {
    w->caps = o->caps != NULL ? *o->caps : kelp_wire_caps_default();
    w->graph_bytes = o->graph_bytes != 0 ? o->graph_bytes : GRAPH_BYTES;
    w->connections = o->connections != 0 ? o->connections : CONNECTIONS;
    if (o->address == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "the worker has no address to listen on");
    KELP_TRY(kelp_endpoint_parse(o->address, &w->endpoint));
    KELP_TRY(kelp_token_read(o->token_file, &w->token));
    if (o->providers != NULL)
        KELP_TRY(kelp_strdup(w->allocator, o->providers, &w->providers));
    KELP_TRY(kelp_types_create(w->allocator, &w->types));
    KELP_TRY(kelp_budget_create(w->allocator, o->budget_bytes, &w->budget));
    w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->wake < 0)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "cannot create an event: %s", strerror(errno));
    bool is_public = false;
    KELP_TRY(kelp_endpoint_listen(&w->endpoint, &w->listener, &is_public));
    kelp_endpoint_format(&w->endpoint, w->address);
    if (is_public && w->token.length == 0)
        KELP_LOGF(&w->runtime->logger, KELP_LOG_WARNING,
                  "the worker listens on %s without a token: any machine that can connect can run "
                  "models",
                  w->address);
    return NULL;
}

const char *kelp_worker_address(const kelp_worker *w) {
    return w->address;
}

kelp_status *kelp_worker_create(kelp_runtime *runtime, const kelp_worker_options *caller_options,
                                kelp_worker **out) {
    kelp_worker_options options = {0};
    memcpy(&options, caller_options, KELP_MIN(caller_options->struct_size, sizeof options));
    kelp_worker *worker = NULL;
    KELP_TRY(KELP_NEW(runtime->allocator, kelp_worker, &worker));
    worker->allocator = runtime->allocator;
    worker->runtime = kelp_runtime_retain(runtime);
    worker->listener = worker->wake = -1;
    atomic_init(&worker->stopped, false);
    kelp_status *status = init(worker, &options);
    if (status != NULL) {
        kelp_worker_destroy(worker);
        return status;
    }
    *out = worker;
    return NULL;
}

void kelp_worker_destroy(kelp_worker *w) {
    if (w == NULL)
        return;
    kelp_runtime *runtime = w->runtime;
    if (w->listener >= 0) {
        close(w->listener);
        if (!w->endpoint.is_tcp)
            unlink(w->endpoint.name);
    }
    if (w->wake >= 0)
        close(w->wake);
    kelp_types_destroy(w->types);
    kelp_budget_destroy(w->budget);
    kelp_free_string(w->allocator, w->providers);
    kelp_free(w->allocator, w, sizeof *w);
    kelp_runtime_release(runtime);
}
