/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/trace/spans.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text/json.h"
#include "frontends/common/status.h"
#include "frontends/trace/record_text.h"

#include <stdio.h>

/* The maximum number of spans that are open at a time. Further ones are not recorded. */
#define MAX_OPEN 256

/* An open span. */
typedef struct node {
    struct node *older;
    uint64_t id; /* of the server's trace */
    enum { MODEL, COMPUTE, CUSTOM } kind;
    kelp_span_id span_id;
    char *name; /* of a custom span, or NULL */
    kelp_otlp_span span;
} node;

struct kelp_trace_spans {
    kelp_allocator allocator;
    kelp_otlp_exporter *exporter;
    kelp_trace_ids *ids;
    uint64_t to_wall_ns;        /* wall time minus monotonic time, modulo 2^64 */
    kelp_trace_context context; /* of the front end's span */
    char *state;                /* of the context, or NULL */
    size_t state_bytes;
    bool grpc;
    bool has_message; /* of a failure */
    unsigned code;
    kelp_otlp_span root;
    node *open; /* newest first */
    size_t open_count;
};

/* ---- spans ---- */

static void export_span(kelp_trace_spans *spans, kelp_otlp_span *span, uint64_t time_ns) {
    kelp_otlp_span_end(span, time_ns + spans->to_wall_ns);
    if (span->message.failed)
        kelp_otlp_exporter_lost(spans->exporter);
    else
        kelp_otlp_exporter_put(spans->exporter,
                               (kelp_str){span->message.data, span->message.length});
    kelp_otlp_span_deinit(span);
}

/* Returns the newest open span of a trace, or NULL. */
static node *newest(const kelp_trace_spans *spans, uint64_t id) {
    for (node *n = spans->open; n != NULL; n = n->older)
        if (n->id == id)
            return n;
    return NULL;
}

static node *add_node(kelp_trace_spans *spans, uint64_t id) {
    node *n = NULL;
    if (spans->open_count == MAX_OPEN)
        return NULL;
    kelp_status *status = KELP_NEW(spans->allocator, node, &n);
    if (status != NULL) {
        kelp_status_free(status);
        kelp_otlp_exporter_lost(spans->exporter);
        return NULL;
    }
    n->id = id;
    n->older = spans->open;
    spans->open = n;
    spans->open_count++;
    return n;
}

/* Begins a span below the newest span of the trace `below`. Returns NULL without memory. */
static node *begin(kelp_trace_spans *spans, uint64_t id, uint64_t below, kelp_str name,
                   uint64_t time_ns) {
    const node *parent = newest(spans, below);
    node *n = add_node(spans, id);
    if (n == NULL)
        return NULL;
    n->span_id = kelp_trace_ids_span(spans->ids);
    kelp_otlp_span_start start = {.self = spans->context,
                                  .parent = parent != NULL ? parent->span_id : spans->context.span,
                                  .name = name,
                                  .kind = KELP_OTLP_SPAN_INTERNAL,
                                  .time_ns = time_ns + spans->to_wall_ns};
    start.self.span = n->span_id;
    kelp_otlp_span_begin(&n->span, spans->allocator, &start);
    return n;
}

/* Ends a span, and the newer ones of its trace. */
static void end(kelp_trace_spans *spans, const node *last, uint64_t time_ns) {
    uint64_t id = last->id;
    bool done = false;
    for (node **at = &spans->open; !done && *at != NULL;) {
        node *n = *at;
        if (n->id != id) {
            at = &n->older;
            continue;
        }
        done = n == last;
        *at = n->older;
        spans->open_count--;
        export_span(spans, &n->span, time_ns);
        kelp_free_string(spans->allocator, n->name);
        kelp_free(spans->allocator, n, sizeof *n);
    }
}

/* ---- activities of the server ---- */

/* Passes the span on to the backend, as Triton does: a JSON object with the W3C's headers. */
static void set_context(const kelp_trace_spans *spans, const node *n,
                        TRITONSERVER_InferenceTrace *trace) {
    char parent[KELP_TRACEPARENT_SIZE];
    kelp_trace_context context = spans->context;
    kelp_json_writer json;
    kelp_buf text;
    context.span = n->span_id;
    kelp_traceparent_format(&context, parent);
    kelp_buf_init(&text, spans->allocator);
    kelp_json_writer_init(&json, &text);
    kelp_json_begin_object(&json);
    kelp_json_key(&json, "traceparent");
    kelp_json_put_cstr(&json, parent);
    if (context.state.length > 0) {
        kelp_json_key(&json, "tracestate");
        kelp_json_put_string(&json, context.state);
    }
    kelp_json_end_object(&json);
    const char *value = kelp_buf_cstr(&text);
    if (value != NULL)
        kelp_v2_ignore(TRITONSERVER_InferenceTraceSetContext(trace, value));
    kelp_buf_deinit(&text);
}

static void begin_model(kelp_trace_spans *spans, TRITONSERVER_InferenceTrace *trace, uint64_t id,
                        uint64_t time_ns) {
    kelp_trace_model model = kelp_trace_model_of(trace);
    node *n =
        begin(spans, id, model.parent != 0 ? model.parent : id, kelp_str_from(model.name), time_ns);
    if (n == NULL)
        return;
    n->kind = MODEL;
    kelp_otlp_span_put_text(&n->span, "triton.model_name", kelp_str_from(model.name));
    kelp_otlp_span_put_number(&n->span, "triton.model_version", model.version);
    kelp_otlp_span_put_number(&n->span, "triton.trace_id", (int64_t)id);
    kelp_otlp_span_put_number(&n->span, "triton.trace_parent_id", (int64_t)model.parent);
    if (model.request[0] != 0)
        kelp_otlp_span_put_text(&n->span, "triton.request_id", kelp_str_from(model.request));
    set_context(spans, n, trace);
}

/* Begins the span of a custom activity NAME_START. */
static void begin_custom(kelp_trace_spans *spans, uint64_t id, kelp_str name, uint64_t time_ns) {
    node *n = begin(spans, id, id, name, time_ns);
    if (n == NULL)
        return;
    n->kind = CUSTOM;
    kelp_status *status = kelp_alloc(spans->allocator, name.length + 1, (void **)&n->name);
    if (status == NULL) {
        memcpy(n->name, name.data, name.length);
        n->name[name.length] = 0;
    }
    kelp_status_free(status); /* without its name, it ends with the span around it */
}

/* Returns the newest span of a kind of a trace, and for a custom one of a name, or NULL. */
static node *find(const kelp_trace_spans *spans, uint64_t id, int kind, kelp_str name) {
    for (node *n = spans->open; n != NULL; n = n->older)
        if (n->id == id && (int)n->kind == kind &&
            (kind != CUSTOM || (n->name != NULL && kelp_str_is(name, n->name))))
            return n;
    return NULL;
}

/* Removes a suffix. Returns false if the text does not have it, or consists of it. */
static bool strip(kelp_str *inout_text, const char *suffix) {
    size_t length = strlen(suffix);
    if (inout_text->length <= length ||
        memcmp(inout_text->data + inout_text->length - length, suffix, length) != 0)
        return false;
    inout_text->length -= length;
    return true;
}

/* Returns the span that an activity ends, or NULL. */
static node *ended_by(const kelp_trace_spans *spans, uint64_t id,
                      TRITONSERVER_InferenceTraceActivity activity, kelp_str name) {
    if (activity == TRITONSERVER_TRACE_REQUEST_END)
        return find(spans, id, MODEL, name);
    if (activity == TRITONSERVER_TRACE_COMPUTE_END)
        return find(spans, id, COMPUTE, name);
    return activity == TRITONSERVER_TRACE_CUSTOM_ACTIVITY && strip(&name, "_END")
               ? find(spans, id, CUSTOM, name)
               : NULL;
}

void kelp_trace_spans_report(kelp_trace_spans *spans, TRITONSERVER_InferenceTrace *trace,
                             uint64_t id, TRITONSERVER_InferenceTraceActivity activity,
                             const char *name, uint64_t time_ns) {
    kelp_str text = kelp_str_from(name);
    if (activity == TRITONSERVER_TRACE_REQUEST_START) {
        begin_model(spans, trace, id, time_ns);
    } else if (activity == TRITONSERVER_TRACE_COMPUTE_START) {
        node *n = begin(spans, id, id, KELP_STR("compute"), time_ns);
        if (n != NULL)
            n->kind = COMPUTE;
    } else if (activity == TRITONSERVER_TRACE_CUSTOM_ACTIVITY && strip(&text, "_START")) {
        begin_custom(spans, id, text, time_ns);
    }
    text = kelp_str_from(name);
    node *last = ended_by(spans, id, activity, text);
    node *target = last != NULL ? last : newest(spans, id);
    kelp_otlp_span_add_event(target != NULL ? &target->span : &spans->root, text,
                             time_ns + spans->to_wall_ns);
    if (last != NULL)
        end(spans, last, time_ns);
}

void kelp_trace_spans_release(kelp_trace_spans *spans, uint64_t id) {
    const node *oldest = NULL;
    for (const node *n = spans->open; n != NULL; n = n->older)
        oldest = n->id == id ? n : oldest;
    if (oldest != NULL)
        end(spans, oldest, kelp_now_ns());
}

/* ---- the request ---- */

void kelp_trace_spans_stamp(kelp_trace_spans *spans, const char *activity, uint64_t time_ns) {
    kelp_otlp_span_add_event(&spans->root, kelp_str_from(activity), time_ns + spans->to_wall_ns);
}

/* Returns true if the client caused the failure. The semantic conventions of OpenTelemetry leave
 * the status of the server's span unset then. */
static bool is_of_client(bool grpc, unsigned code) {
    /* UNKNOWN, DEADLINE_EXCEEDED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE and DATA_LOSS */
    const unsigned of_server = 1u << 2 | 1u << 4 | 1u << 12 | 1u << 13 | 1u << 14 | 1u << 15;
    if (grpc)
        return code >= 1 && code <= 16 && (of_server >> code & 1) == 0;
    return code >= 400 && code < 500;
}

void kelp_trace_spans_finish(kelp_trace_spans *spans, unsigned code, const char *message) {
    spans->code = spans->code != 0 ? spans->code : code;
    if (message == NULL || spans->has_message)
        return;
    spans->has_message = true;
    if (is_of_client(spans->grpc, code))
        kelp_otlp_span_put_text(&spans->root, "error.message", kelp_str_from(message));
    else
        kelp_otlp_span_fail(&spans->root, kelp_str_from(message));
}

/* Adds the semantic conventions of RPC servers: "SERVICE/METHOD" is the path. */
static void put_rpc(kelp_otlp_span *span, kelp_str path) {
    if (path.length > 0 && path.data[0] == '/')
        path = (kelp_str){path.data + 1, path.length - 1};
    const char *slash = path.length > 0 ? memchr(path.data, '/', path.length) : NULL;
    kelp_otlp_span_put_text(span, "rpc.system", KELP_STR("grpc"));
    if (slash == NULL)
        return;
    size_t service = (size_t)(slash - path.data);
    kelp_otlp_span_put_text(span, "rpc.service", (kelp_str){path.data, service});
    kelp_otlp_span_put_text(span, "rpc.method", (kelp_str){slash + 1, path.length - service - 1});
}

/* Adds the pattern of the path in the usual notation. */
static void put_route(kelp_otlp_span *span, const char *pattern) {
    char route[128];
    size_t length = 0;
    for (const char *c = pattern; *c != 0 && length < sizeof route; c++) {
        const char *part = *c == '*' ? "{model}" : *c == '#' ? "{version}" : NULL;
        length += (size_t)snprintf(route + length, sizeof route - length, "%.*s",
                                   part != NULL ? (int)strlen(part) : 1, part != NULL ? part : c);
    }
    if (length < sizeof route)
        kelp_otlp_span_put_text(span, "http.route", (kelp_str){route, length});
}

/* Adds the semantic conventions of HTTP servers. */
static void put_http(kelp_otlp_span *span, const kelp_trace_origin *origin) {
    kelp_otlp_span_put_text(span, "http.request.method", origin->method);
    kelp_otlp_span_put_text(span, "url.path", origin->path);
    if (origin->route != NULL)
        put_route(span, origin->route);
    kelp_otlp_span_put_text(span, "network.protocol.version",
                            origin->http_version == 20   ? KELP_STR("2")
                            : origin->http_version == 10 ? KELP_STR("1.0")
                                                         : KELP_STR("1.1"));
}

/* Copies the context of the client, or begins a trace. */
static kelp_status *init_context(kelp_trace_spans *spans, const kelp_trace_origin *origin,
                                 const kelp_trace_id *trace_id) {
    const kelp_trace_context *parent = &origin->parent;
    kelp_trace_context *context = &spans->context;
    context->trace = *trace_id;
    context->flags = KELP_TRACE_SAMPLED |
                     (kelp_trace_context_is_valid(parent) ? parent->flags : KELP_TRACE_RANDOM);
    context->span = kelp_trace_ids_span(spans->ids);
    if (parent->state.length == 0)
        return NULL;
    KELP_TRY(kelp_alloc(spans->allocator, parent->state.length, (void **)&spans->state));
    spans->state_bytes = parent->state.length;
    memcpy(spans->state, parent->state.data, spans->state_bytes);
    context->state = (kelp_str){spans->state, spans->state_bytes};
    return NULL;
}

kelp_status *kelp_trace_spans_create(kelp_allocator allocator, kelp_otlp_exporter *exporter,
                                     kelp_trace_ids *ids, const kelp_trace_origin *origin,
                                     const kelp_trace_id *trace_id, kelp_trace_spans **out) {
    kelp_trace_spans *spans;
    KELP_TRY(KELP_NEW(allocator, kelp_trace_spans, &spans));
    spans->allocator = allocator;
    spans->exporter = exporter;
    spans->ids = ids;
    spans->grpc = origin->grpc;
    kelp_status *status = init_context(spans, origin, trace_id);
    if (status != NULL) {
        kelp_free(allocator, spans, sizeof *spans);
        return status;
    }
    uint64_t now_ns = kelp_now_ns();
    spans->to_wall_ns = kelp_wall_now_ns() - now_ns;
    const kelp_otlp_span_start start = {
        .self = spans->context,
        .parent = origin->parent.span,
        .remote = kelp_trace_context_is_valid(&origin->parent),
        .name = KELP_STR("InferRequest"),
        .kind = KELP_OTLP_SPAN_SERVER,
        .time_ns = spans->to_wall_ns + (origin->start_ns != 0 ? origin->start_ns : now_ns)};
    kelp_otlp_span_begin(&spans->root, allocator, &start);
    if (origin->grpc)
        put_rpc(&spans->root, origin->path);
    else
        put_http(&spans->root, origin);
    *out = spans;
    return NULL;
}

/* Adds what is known at the end of the request. */
static void put_result(kelp_trace_spans *spans) {
    kelp_otlp_span *root = &spans->root;
    char code[16];
    snprintf(code, sizeof code, "%u", spans->code);
    if (spans->grpc)
        kelp_otlp_span_put_number(root, "rpc.grpc.status_code", spans->code);
    else if (spans->code != 0)
        kelp_otlp_span_put_number(root, "http.response.status_code", spans->code);
    if ((root->failed || is_of_client(spans->grpc, spans->code)) && spans->code != 0)
        kelp_otlp_span_put_text(root, "error.type", kelp_str_from(code));
}

void kelp_trace_spans_destroy(kelp_trace_spans *spans) {
    uint64_t now_ns = kelp_now_ns();
    while (spans->open != NULL)
        end(spans, spans->open, now_ns);
    put_result(spans);
    export_span(spans, &spans->root, now_ns);
    kelp_free(spans->allocator, spans->state, spans->state_bytes);
    kelp_free(spans->allocator, spans, sizeof *spans);
}
