/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request of the v2 protocol from its HTTP head to the response, and the functions that the
 * handlers share.
 *
 * An inference exchange has one reference for the response, and one until the server releases the
 * inference request. It belongs to its event-loop thread, except for the members that the callbacks
 * of the server use: `response`, `outputs`, `several_responses` and the references. While a
 * separate thread decodes a large request or encodes a large response, the exchange belongs to that
 * thread.
 */
#ifndef KELP_FRONTENDS_V2_EXCHANGE_H_
#define KELP_FRONTENDS_V2_EXCHANGE_H_

#include "base/arena.h"
#include "frontends/common/access.h"
#include "frontends/common/forward.h"
#include "frontends/common/workers.h"
#include "frontends/http/exchange.h"
#include "frontends/settings/logging.h"
#include "frontends/shm/registry.h"
#include "frontends/shm/uses.h"
#include "frontends/trace/tracing.h"
#include "frontends/common/status.h"

/* JSON from this size on is decoded and encoded on a separate thread. */
#define KELP_V2_LARGE_JSON_BYTES ((size_t)256 * 1024)

/* The handler of the protocol. */
typedef struct kelp_v2_service {
    kelp_http_handler handler; /* first */
    kelp_allocator allocator;
    TRITONSERVER_Server *core;
    /* Puts outputs into exchange->outputs; `userp` of the response callback is the exchange. */
    TRITONSERVER_ResponseAllocator *response_allocator;
    /* Allocates each output separately, for models that prepare several responses at a time. */
    TRITONSERVER_ResponseAllocator *stream_allocator;
    kelp_shm_registry *shm; /* may be NULL */
    kelp_logging *logging;  /* may be NULL */
    kelp_tracing *tracing;  /* may be NULL */
    uint64_t max_input_size_bytes;
    uint64_t max_body_size_bytes;
    atomic_bool draining; /* the server stops soon */
    kelp_access *access;  /* may be NULL, as the next ones */
    const kelp_forward *forward;
    const char *const *cors_origins;
    size_t cors_origin_count;
    kelp_workers *loaders; /* run loads and unloads */
    struct kelp_openapi *openapi;
    atomic_uint codec_count; /* threads that decode requests or encode responses */
} kelp_v2_service;

/* An output that the client requested. */
typedef struct kelp_v2_requested_output {
    const char *name;
    bool have_binary; /* otherwise the request's default applies */
    bool binary;
    uint32_t classes;   /* 0: the tensor itself */
    const char *region; /* the shared memory region that receives the output, or NULL */
    void *memory;       /* in the region */
    uint64_t offset, memory_bytes;
} kelp_v2_requested_output;

typedef struct kelp_v2_exchange kelp_v2_exchange;

/* The steps of an inference that follow its preparation. */
typedef struct kelp_v2_decoding {
    kelp_status *(*decode)(kelp_v2_exchange *exchange); /* may run on a separate thread */
    /* Submits the request, or sends the failure. */
    void (*finish)(kelp_v2_exchange *exchange, kelp_status *take_status);
} kelp_v2_decoding;

/* A request and its response. */
struct kelp_v2_exchange {
    kelp_http_exchange base; /* first */
    bool in_flight;          /* submitted, and the final response has not arrived */
    bool submitting;         /* inside TRITONSERVER_ServerInferAsync */
    bool done_inline;        /* the final response arrived while submitting */
    bool several_responses;  /* the model sent more than one */

    /* the request */
    bool is_raw;         /* the body contains only the bytes of the model's single input */
    bool has_json_bytes; /* otherwise the body contains only JSON */
    uint64_t json_bytes; /* Inference-Header-Content-Length */
    kelp_http_coding request_coding;
    kelp_str json, binary; /* the parts of the body */
    const kelp_v2_decoding *decoding;
    kelp_status *decode_status; /* of decoding on a separate thread */
    kelp_arena arena;           /* decoded data */
    const char *route;          /* pattern of the path: '*' is a name, '#' a version */
    const char *model;          /* or a region; percent-decoded; "" if the route has none */
    int64_t version;            /* -1 if the route has none */
    kelp_http_coding response_coding;
    struct kelp_json *document; /* parsed body of a load or unload */
    kelp_work work;             /* a load or unload */
    kelp_status *(*control)(struct kelp_v2_exchange *exchange); /* that it does */
    const kelp_v2_requested_output *requested;
    size_t requested_count;
    bool binary_default;     /* for outputs without `binary_data` */
    kelp_shm_use *regions;   /* shared memory of inputs and outputs */
    atomic_int region_users; /* the request and the response, while in flight */

    /* the inference */
    TRITONSERVER_InferenceRequest *request;
    TRITONSERVER_InferenceResponse *response;
    kelp_trace_record *trace;              /* NULL if the request is not traced */
    struct kelp_v2_generation *generation; /* of `generate` and `generate_stream`; otherwise NULL */
    kelp_arena outputs;                    /* memory for the outputs, which the model writes */
    char json_length[24];                  /* value of Inference-Header-Content-Length */
};

static inline kelp_v2_service *kelp_v2_service_of(const kelp_v2_exchange *exchange) {
    return (kelp_v2_service *)exchange->base.handler;
}

/* ---- respond.c: functions that fill in the response, but do not send it ---- */
/* Starts a response with a JSON body, which the caller appends to exchange->base.text. */
void kelp_v2_respond_json(kelp_v2_exchange *exchange, kelp_http_status status);
/* Responds with {"error":"message"}. */
void kelp_v2_respond_error(kelp_v2_exchange *exchange, kelp_http_status status, kelp_str message);
/* Responds with the HTTP status and the message of a failure. */
void kelp_v2_respond_failure(kelp_v2_exchange *exchange, kelp_status *take_status);
/* Responds with the message as JSON, or with the error if there is one. */
void kelp_v2_respond_message(kelp_v2_exchange *exchange, TRITONSERVER_Error *take_error,
                             TRITONSERVER_Message *take_message);
/* Responds with a failure, and sends it. */
void kelp_v2_fail(kelp_v2_exchange *exchange, kelp_status *take_status);
/* Sends the response. */
void kelp_v2_send(kelp_v2_exchange *exchange);

/* ---- headers.c ---- */
/* Adds the headers of CORS to all responses, if the client is a web page of a known origin. Returns
 * true after it responded to a preflight request. */
bool kelp_v2_apply_cors(kelp_v2_exchange *exchange);
/* Checks that the client may send requests of a category. Otherwise responds, and returns false. */
bool kelp_v2_permit(kelp_v2_exchange *exchange, kelp_access_category category);
/* Adds the forwarded headers to exchange->request as parameters. */
kelp_status *kelp_v2_forward_headers(kelp_v2_exchange *exchange) KELP_MUST_USE;

/* ---- routes.c ---- */
/* Calls the handler of the method and path, which sends the response before it returns or later. */
void kelp_v2_route(kelp_v2_exchange *exchange);

/* ---- handlers ---- */
void kelp_v2_server_metadata(kelp_v2_exchange *exchange);
void kelp_v2_live(kelp_v2_exchange *exchange);
void kelp_v2_ready(kelp_v2_exchange *exchange);
void kelp_v2_model_metadata(kelp_v2_exchange *exchange);
void kelp_v2_model_ready(kelp_v2_exchange *exchange);
void kelp_v2_model_config(kelp_v2_exchange *exchange);
void kelp_v2_model_statistics(kelp_v2_exchange *exchange);
void kelp_v2_repository_index(kelp_v2_exchange *exchange);
void kelp_v2_repository_load(kelp_v2_exchange *exchange);
void kelp_v2_repository_unload(kelp_v2_exchange *exchange);
void kelp_v2_openapi(kelp_v2_exchange *exchange);
void kelp_v2_metrics(kelp_v2_exchange *exchange);
void kelp_v2_page(kelp_v2_exchange *exchange);
void kelp_v2_page_style(kelp_v2_exchange *exchange);
void kelp_v2_page_script(kelp_v2_exchange *exchange);
void kelp_v2_infer(kelp_v2_exchange *exchange);
void kelp_v2_shm_status(kelp_v2_exchange *exchange);
void kelp_v2_shm_register(kelp_v2_exchange *exchange);
void kelp_v2_shm_unregister(kelp_v2_exchange *exchange);
void kelp_v2_cuda_shm_status(kelp_v2_exchange *exchange);
void kelp_v2_cuda_shm_register(kelp_v2_exchange *exchange);
void kelp_v2_cuda_shm_unregister(kelp_v2_exchange *exchange);

/* Parses the body as an object into the arena; stores NULL in *out if the body is empty. */
kelp_status *kelp_v2_parse_body(kelp_v2_exchange *exchange, struct kelp_json **out) KELP_MUST_USE;

/* ---- extensions/shared_memory.c ---- */
/* Returns the address of a range of a shared memory region, which is retained until
 * exchange->regions is released. */
kelp_status *kelp_v2_use_region(kelp_v2_exchange *exchange, const char *name, uint64_t offset,
                                uint64_t byte_size, void **out) KELP_MUST_USE;

void kelp_v2_get_logging(kelp_v2_exchange *exchange);
void kelp_v2_set_logging(kelp_v2_exchange *exchange);
void kelp_v2_get_trace(kelp_v2_exchange *exchange);
void kelp_v2_set_trace(kelp_v2_exchange *exchange);
void kelp_v2_generate(kelp_v2_exchange *exchange);
void kelp_v2_generate_stream(kelp_v2_exchange *exchange);

/* ---- infer.c ---- */
/* Decides whether the request is traced. Valid while on_request runs. */
void kelp_v2_begin_trace(kelp_v2_exchange *exchange);
/* Asks the server to cancel an inference in flight. */
void kelp_v2_infer_cancel(kelp_v2_exchange *exchange);
/* Submits exchange->request. The exchange is the argument of the response callback. */
kelp_status *
kelp_v2_submit(kelp_v2_exchange *exchange, TRITONSERVER_ResponseAllocator *allocator,
               TRITONSERVER_InferenceResponseCompleteFn_t on_each_response) KELP_MUST_USE;
/* Decodes the request, on a separate thread if that takes long, and then finishes it on the
 * event-loop thread; with CANCELLED if the client has closed the connection. */
void kelp_v2_decode_and_finish(kelp_v2_exchange *exchange, const kelp_v2_decoding *decoding);
/* Returns true if the request, whose coding was read, takes long to decode. */
bool kelp_v2_takes_long(const kelp_v2_exchange *exchange);
/* Runs `work` on a separate thread, which must call kelp_v2_end_codec at its end, and then `then`
 * on the event-loop thread. Returns false if there is no thread for it. */
bool kelp_v2_run_codec(kelp_v2_exchange *exchange, void (*work)(kelp_http_exchange *base),
                       void (*then)(kelp_http_exchange *base));
void kelp_v2_end_codec(kelp_v2_exchange *exchange);

/* ---- extensions/generate.c ---- */
/* Sends the responses of a generation that can be sent. */
void kelp_v2_generation_continue(kelp_v2_exchange *exchange);
/* Continues after a part was written. */
void kelp_v2_generation_sent(kelp_v2_exchange *exchange);
/* Frees exchange->generation. */
void kelp_v2_generation_clear(kelp_v2_exchange *exchange);

/* ---- extensions/generate_json.c ---- */
/* Decodes the body of a generate request into exchange->request. */
kelp_status *kelp_v2_decode_generate(kelp_v2_exchange *exchange, kelp_str json) KELP_MUST_USE;
/* Appends a response of the model as a JSON object. Thread-safe. */
kelp_status *kelp_v2_encode_generate(TRITONSERVER_InferenceResponse *response,
                                     kelp_buf *out) KELP_MUST_USE;

/* ---- request.c, response.c ---- */
/* Decodes a body of JSON and the binary tensors after it into exchange->request, requested outputs
 * and binary_default. */
kelp_status *kelp_v2_decode_request(kelp_v2_exchange *exchange, kelp_str json,
                                    kelp_str binary) KELP_MUST_USE;
/* Decodes a body that contains only the bytes of the model's single input. */
kelp_status *kelp_v2_decode_raw(kelp_v2_exchange *exchange, kelp_str body) KELP_MUST_USE;
/* Fills in the HTTP response from exchange->response. */
kelp_status *kelp_v2_encode_response(kelp_v2_exchange *exchange) KELP_MUST_USE;
/* Returns what the client requested of an output, or NULL. */
const kelp_v2_requested_output *kelp_v2_find_requested(const kelp_v2_exchange *exchange,
                                                       const char *name);
/* Returns the number of bytes of outputs that are encoded as JSON or compressed. */
uint64_t kelp_v2_encoded_bytes(const kelp_v2_exchange *exchange);

#endif
