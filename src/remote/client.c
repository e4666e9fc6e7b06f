/* SPDX-License-Identifier: Apache-2.0 */
/* The provider `remote`: sends each subgraph to a worker once, and its inputs in every run. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/checked.h"
#include "runtime/runtime.h"
#include "graph/save.h"
#include "remote/endpoint.h"
#include "remote/token.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_NS ((uint64_t)60 * 1000000000u)
#define CONNECT_TIMEOUT_NS ((uint64_t)5 * 1000000000u)

typedef struct remote {
    kelp_opset_backend backend;
    kelp_allocator allocator;
    char *name;
    kelp_endpoint endpoint;
    char address[KELP_ENDPOINT_TEXT_BYTES];
    kelp_token token;
    uint64_t timeout_ns, connect_timeout_ns;
    kelp_wire_caps caps;
    kelp_types *types;
    kelp_budget *budget;
} remote;

/* A subgraph, and the connection to the worker that has loaded it. */
typedef struct remote_subgraph {
    const kelp_block *body;
    kelp_buf model;       /* the subgraph as an ONNX model, kept to load it again */
    pthread_mutex_t lock; /* guards fd and the connection */
    int fd;               /* -1: no connection */
} remote_subgraph;

/* ---- coverage ---- */
static bool can_be_sent(const kelp_value *value) {
    return value == NULL || (kelp_value_kind_of(value) == KELP_VALUE_TENSOR &&
                             kelp_dtype_bits(kelp_value_dtype(value)) > 0);
}

static bool covers(void *self, const kelp_node *node) {
    (void)self;
    if (strcmp(kelp_node_domain(node), KELP_SUBGRAPH_DOMAIN) == 0)
        return false; /* not an ONNX operator */
    for (size_t i = 0; i < kelp_node_input_count(node); i++)
        if (!can_be_sent(kelp_node_input(node, i)))
            return false;
    for (size_t i = 0; i < kelp_node_output_count(node); i++)
        if (!can_be_sent(kelp_node_output(node, i)))
            return false;
    return true;
}

static bool is_too_large(const remote *r, const kelp_value *value) {
    double bytes = kelp_dtype_bits(kelp_value_dtype(value)) / 8.0;
    for (int32_t axis = 0; axis < kelp_value_rank(value); axis++) {
        int64_t dim = kelp_value_dim(value, axis, NULL);
        bytes *= dim > 0 ? (double)dim : 1.0;
    }
    return bytes > (double)r->caps.fill_bytes;
}

static kelp_status *check_border(const remote *r, const kelp_block *body) {
    size_t inputs = kelp_block_input_count(body), outputs = kelp_block_output_count(body);
    if (inputs > r->caps.fills || outputs > r->caps.fills)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "the subgraph has %zu inputs and %zu outputs: at most %zu can be sent",
                          inputs, outputs, r->caps.fills);
    for (size_t i = 0; i < inputs + outputs; i++) {
        const kelp_value *value =
            i < inputs ? kelp_block_input(body, i) : kelp_block_output(body, i - inputs);
        if (is_too_large(r, value))
            return KELP_ERROR(KELP_UNIMPLEMENTED,
                              "'%s' is too large: at most %zu bytes can be sent",
                              kelp_value_name(value), r->caps.fill_bytes);
    }
    return NULL;
}

/* ---- connections ---- */
static void disconnect(remote_subgraph *p) {
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}

static kelp_status *unexpected(kelp_frame_kind kind) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "the worker sent an unexpected frame of kind %d",
                      (int)kind);
}

/* Replaces a failure to send by the reason that the worker sent before it closed the connection, if
 * there is one. NULL stays NULL. */
static kelp_status *prefer_reason(const kelp_channel *channel, kelp_status *take_failure) {
    kelp_frame_kind kind = KELP_FRAME_RESULT;
    uint64_t length = 0;
    kelp_status *reason = NULL;
    if (kelp_status_code(take_failure) != KELP_UNAVAILABLE)
        return take_failure;
    kelp_status *unread = kelp_frame_read_head(channel, &kind, &length, NULL);
    if (unread == NULL && kind == KELP_FRAME_FAILED)
        unread = kelp_frame_read_failure(channel, length, &reason);
    kelp_status_free(unread);
    if (reason == NULL)
        return take_failure;
    kelp_status_free(take_failure);
    return reason;
}

static kelp_status *send_model(const remote *r, const remote_subgraph *p,
                               const kelp_channel *channel) {
    if (r->token.length > 0)
        KELP_TRY(kelp_frame_send(channel, KELP_FRAME_TOKEN,
                                 &(kelp_span){r->token.bytes, r->token.length}, 1));
    return kelp_frame_send(channel, KELP_FRAME_LOAD, &(kelp_span){p->model.data, p->model.length},
                           1);
}

static kelp_status *load(const remote *r, const remote_subgraph *p, const kelp_channel *channel) {
    kelp_frame_kind kind = KELP_FRAME_FAILED;
    uint64_t length = 0;
    kelp_status *failure = NULL;
    KELP_TRY(prefer_reason(channel, send_model(r, p, channel)));
    KELP_TRY(kelp_frame_read_head(channel, &kind, &length, NULL));
    if (kind == KELP_FRAME_FAILED) {
        KELP_TRY(kelp_frame_read_failure(channel, length, &failure));
        return failure;
    }
    return kind == KELP_FRAME_LOADED && length == 0 ? NULL : unexpected(kind);
}

static kelp_status *ensure_loaded(const remote *r, remote_subgraph *p, const kelp_op_env *env) {
    if (p->fd >= 0)
        return NULL;
    KELP_TRY(kelp_endpoint_connect(&r->endpoint, r->connect_timeout_ns, env, &p->fd));
    kelp_status *status =
        load(r, p, &(kelp_channel){.fd = p->fd, .timeout_ns = r->timeout_ns, .env = env});
    if (status != NULL)
        disconnect(p);
    return status;
}

/* ---- a subgraph ---- */
static void release_subgraph(void *self, void *state) {
    remote *r = self;
    remote_subgraph *p = state;
    if (p == NULL)
        return;
    disconnect(p);
    kelp_buf_deinit(&p->model);
    pthread_mutex_destroy(&p->lock);
    kelp_free(r->allocator, p, sizeof *p);
}

static kelp_status *prepare_subgraph(void *self, const kelp_op_env *env, kelp_graph *graph,
                                     void **out_state) {
    remote *r = self;
    remote_subgraph *p = NULL;
    KELP_TRY(check_border(r, kelp_graph_main(graph)));
    KELP_TRY(KELP_NEW(r->allocator, remote_subgraph, &p));
    p->body = kelp_graph_main(graph);
    p->fd = -1;
    pthread_mutex_init(&p->lock, NULL);
    kelp_buf_init(&p->model, r->allocator);
    kelp_status *status = kelp_graph_save(graph, NULL, &p->model);
    if (status == NULL)
        status = ensure_loaded(r, p, env);
    if (status != NULL) {
        release_subgraph(self, p);
        return KELP_ANNOTATE(status, "worker at '%s'", r->address);
    }
    *out_state = p;
    return NULL;
}

/* ---- a run ---- */
static kelp_status *send_inputs(const remote *r, const remote_subgraph *p,
                                const kelp_channel *channel, const kelp_tensor *const *inputs) {
    size_t count = kelp_block_input_count(p->body), spans = 0;
    kelp_envelope_fill *fills =
        kelp_op_env_alloc(channel->env, (count ? count : 1) * sizeof *fills);
    kelp_envelope *envelope = NULL;
    if (fills == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < count; i++)
        fills[i] = (kelp_envelope_fill){.slot = (uint32_t)i, .tensor = inputs[i]};
    kelp_envelope_parts parts = {.fills = fills, .fill_count = count, .caps = &r->caps};
    KELP_TRY(kelp_envelope_create(r->allocator, &parts, &envelope));
    const kelp_span *at = kelp_envelope_spans(envelope, &spans);
    kelp_status *status = kelp_frame_send(channel, KELP_FRAME_RUN, at, spans);
    kelp_envelope_destroy(envelope);
    return status;
}

/* Allocates from the run's arena: the engine reads the tensors where they are received. */
static void *run_realloc(void *userp, void *pointer, size_t old_bytes, size_t new_bytes,
                         size_t alignment) {
    (void)alignment; /* at most that of kelp_op_env_alloc */
    if (new_bytes == 0)
        return NULL;
    void *memory = kelp_op_env_alloc(userp, new_bytes);
    if (memory != NULL && pointer != NULL)
        memcpy(memory, pointer, KELP_MIN(old_bytes, new_bytes));
    return memory;
}

static kelp_status *first_failure(const kelp_receiver *receiver) {
    for (size_t i = 0; i < kelp_receiver_report_count(receiver); i++) {
        const kelp_status *failure = kelp_receiver_report(receiver, i)->status;
        if (failure != NULL)
            return kelp_status_clone(failure);
    }
    return NULL;
}

static kelp_status *copy_outputs(const remote_subgraph *p, const kelp_receiver *receiver,
                                 kelp_tensor *outputs) {
    KELP_TRY(first_failure(receiver));
    for (size_t i = 0; i < kelp_block_output_count(p->body); i++) {
        const kelp_tensor *tensor = kelp_receiver_tensor(receiver, i);
        if (tensor == NULL)
            return KELP_ERROR(KELP_INTERNAL, "the worker's response has no output '%s'",
                              kelp_value_name(kelp_block_output(p->body, i)));
        outputs[i] = *tensor;
    }
    return NULL;
}

static kelp_status *receive_outputs(const remote *r, const remote_subgraph *p,
                                    const kelp_channel *channel, uint64_t length,
                                    kelp_tensor *outputs) {
    size_t count = kelp_block_output_count(p->body);
    kelp_wire_slot *slots = kelp_op_env_alloc(channel->env, (count ? count : 1) * sizeof *slots);
    kelp_receiver *receiver = NULL;
    if (slots == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < count; i++) {
        const kelp_value *value = kelp_block_output(p->body, i);
        slots[i] = (kelp_wire_slot){.name = kelp_value_name(value),
                                    .type_hash = kelp_type_of_tensor(kelp_value_dtype(value))};
    }
    kelp_receiver_options options = {.struct_size = sizeof options,
                                     .allocator = {run_realloc, (void *)(uintptr_t)channel->env},
                                     .types = r->types,
                                     .budget = r->budget,
                                     .caps = &r->caps,
                                     .slots = slots,
                                     .slot_count = count};
    KELP_TRY(kelp_receiver_create(&options, &receiver));
    kelp_status *status = kelp_frame_receive(channel, length, receiver);
    if (status == NULL)
        status = copy_outputs(p, receiver, outputs);
    kelp_receiver_destroy(receiver); /* the run's arena keeps the bytes */
    return status;
}

/* Runs the subgraph on the worker. Sets `*out_reusable` if the connection can be used again. */
static kelp_status *exchange(const remote *r, remote_subgraph *p, const kelp_channel *channel,
                             const kelp_tensor *const *inputs, kelp_tensor *outputs,
                             bool *out_reusable) {
    kelp_frame_kind kind = KELP_FRAME_FAILED;
    uint64_t length = 0;
    KELP_TRY(send_inputs(r, p, channel, inputs));
    KELP_TRY(kelp_frame_read_head(channel, &kind, &length, NULL));
    if (kind == KELP_FRAME_FAILED) {
        kelp_status *failure = NULL;
        KELP_TRY(kelp_frame_read_failure(channel, length, &failure));
        *out_reusable = true;
        return failure;
    }
    if (kind != KELP_FRAME_RESULT)
        return unexpected(kind);
    KELP_TRY(receive_outputs(r, p, channel, length, outputs));
    *out_reusable = true;
    return NULL;
}

static kelp_status *run_once(const remote *r, remote_subgraph *p, const kelp_op_env *env,
                             const kelp_tensor *const *inputs, kelp_tensor *outputs) {
    bool reusable = false;
    KELP_ASSERT_HELD(&p->lock);
    KELP_TRY(ensure_loaded(r, p, env));
    KELP_ASSERT(p->fd >= 0);
    kelp_channel channel = {.fd = p->fd, .timeout_ns = r->timeout_ns, .env = env};
    kelp_status *status = exchange(r, p, &channel, inputs, outputs, &reusable);
    if (!reusable)
        disconnect(p);
    return status;
}

/* Retries once on a new connection if an old connection was lost. A retry is safe: subgraphs have
 * no side effects. */
static kelp_status *run_subgraph(void *self, void *state, const kelp_op_env *env,
                                 const kelp_block *body, const kelp_tensor *const *inputs,
                                 kelp_tensor *outputs, kelp_completion *completion,
                                 kelp_dispatch_result *out_result) {
    const remote *r = self;
    remote_subgraph *p = state;
    (void)body;
    (void)completion;
    *out_result = KELP_DISPATCH_IMMEDIATE;
    pthread_mutex_lock(&p->lock);
    bool was_connected = p->fd >= 0;
    kelp_status *status = run_once(r, p, env, inputs, outputs);
    if (was_connected && p->fd < 0 && kelp_status_code(status) == KELP_UNAVAILABLE) {
        kelp_status_free(status);
        status = run_once(r, p, env, inputs, outputs);
    }
    pthread_mutex_unlock(&p->lock);
    return status != NULL ? KELP_ANNOTATE(status, "worker at '%s'", r->address) : NULL;
}

/* ---- registration ---- */
static void destroy(void *self) {
    remote *r = self;
    kelp_types_destroy(r->types);
    kelp_budget_destroy(r->budget);
    kelp_free_string(r->allocator, r->name);
    kelp_free(r->allocator, r, sizeof *r);
}

static kelp_status *init(remote *r, const kelp_remote_options *o) {
    r->timeout_ns = o->timeout_ns != 0 ? o->timeout_ns : TIMEOUT_NS;
    r->connect_timeout_ns = o->connect_timeout_ns != 0 ? o->connect_timeout_ns : CONNECT_TIMEOUT_NS;
    r->caps = o->caps != NULL ? *o->caps : kelp_wire_caps_default();
    if (o->address == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the remote provider has no address: expected that of a worker");
    KELP_TRY(kelp_endpoint_parse(o->address, &r->endpoint));
    if (r->endpoint.is_tcp && strcmp(r->endpoint.port, "0") == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "cannot connect to '%s': expected the port on which the worker listens",
                          o->address);
    kelp_endpoint_format(&r->endpoint, r->address);
    KELP_TRY(kelp_token_read(o->token_file, &r->token));
    KELP_TRY(kelp_strdup(r->allocator, o->name != NULL ? o->name : "remote", &r->name));
    KELP_TRY(kelp_types_create(r->allocator, &r->types));
    KELP_TRY(kelp_budget_create(r->allocator, o->budget_bytes, &r->budget));
    r->backend = (kelp_opset_backend){.abi_version = KELP_OPSET_ABI_VERSION,
                                      .struct_size = sizeof(kelp_opset_backend),
                                      .name = r->name,
                                      .destroy = destroy,
                                      .flags = KELP_OPSET_BY_NAME,
                                      .covers = covers,
                                      .prepare_subgraph = prepare_subgraph,
                                      .run_subgraph = run_subgraph,
                                      .release_subgraph = release_subgraph};
    return NULL;
}

kelp_status *kelp_remote_register(kelp_runtime *runtime,
                                  const kelp_remote_options *caller_options) {
    kelp_remote_options options = {0};
    memcpy(&options, caller_options, KELP_MIN(caller_options->struct_size, sizeof options));
    remote *r = NULL;
    KELP_TRY(KELP_NEW(runtime->allocator, remote, &r));
    r->allocator = runtime->allocator;
    kelp_status *status = init(r, &options);
    if (status == NULL)
        status = kelp_opset_register(runtime->registry, &r->backend, r);
    if (status != NULL)
        destroy(r);
    return status;
}

kelp_status *kelp_remote_register_named(kelp_runtime *runtime, const char *providers) {
    const char *token_file = getenv("KELP_REMOTE_TOKEN_FILE");
    if (token_file != NULL && *token_file == '\0')
        token_file = NULL;
    while (providers != NULL && *providers != '\0') {
        char name[256];
        size_t length = strcspn(providers, ",");
        if (strncmp(providers, "remote:", 7) == 0) {
            if (length >= sizeof name)
                return KELP_ERROR(
                    KELP_INVALID_ARGUMENT,
                    "the provider's name '%.*s' is too long: expected at most %zu bytes, found %zu",
                    64, providers, sizeof name - 1, length);
            memcpy(name, providers, length);
            name[length] = '\0';
            kelp_remote_options options = {.struct_size = sizeof options,
                                           .name = name,
                                           .address = name + 7,
                                           .token_file = token_file};
            KELP_TRY(kelp_remote_register(runtime, &options));
        }
        providers += length + (providers[length] == ',');
    }
    return NULL;
}
