/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call: one HTTP request with its reply, from the moment that the request is complete until the
 * last byte of the reply is written and the server has let go of everything. Calls are pooled by
 * thread, so that a warm server allocates nothing for small requests.
 *
 * References: one for the connection (dropped when the reply is written, or when the connection is
 * gone and the response has come), one until the server releases the inference request. A call
 * belongs to its loop's thread, except for what the callbacks of the server touch: `response`,
 * `outputs`, `refs` and `task`.
 */
#ifndef KELP_FRONTENDS_HTTP_CALL_H_
#define KELP_FRONTENDS_HTTP_CALL_H_

#include "base/arena.h"
#include "base/loop.h"
#include "frontends/http/encoding.h"
#include "frontends/http/http1.h"

#include <triton/core/tritonserver.h>

#include <stdatomic.h>

typedef struct kelp_http_call kelp_http_call;
typedef struct kelp_http_connection kelp_http_connection;
typedef struct kelp_http_server kelp_http_server;
typedef struct kelp_http_thread kelp_http_thread;

/* Bytes of the reply that lie somewhere else. */
typedef struct kelp_http_piece {
    const void *data;
    size_t length;
} kelp_http_piece;

/* What the client asked of one output. */
typedef struct kelp_http_output_wish {
    const char *name;
    bool have_binary; /* else the request's default holds */
    bool binary;
    uint32_t classes; /* 0: the tensor itself */
} kelp_http_output_wish;

struct kelp_http_call {
    kelp_loop_task task;  /* first: posted by the response callback */
    kelp_http_call *next; /* in the pool */
    kelp_allocator allocator;
    kelp_http_server *server;
    kelp_http_thread *thread;
    kelp_http_connection *connection; /* NULL once the connection is gone */
    atomic_int refs;
    bool in_flight;   /* submitted, and no final response yet; loop's thread */
    bool submitting;  /* inside TRITONSERVER_ServerInferAsync on the loop's thread */
    bool done_inline; /* the final response came while submitting */

    /* the request */
    const kelp_http1_request *head; /* only while the handler runs */
    kelp_http1_body body;
    kelp_buf unpacked;        /* the body when it came compressed */
    kelp_arena arena;         /* what was decoded from the request */
    const char *model;        /* percent-decoded, terminated; "" when the route has none */
    const char *version_text; /* digits, or "" */
    int64_t version;          /* -1 when the route has none */
    kelp_http_coding reply_coding;

    /* inference */
    TRITONSERVER_InferenceRequest *request;
    TRITONSERVER_InferenceResponse *response;
    kelp_arena outputs; /* where the server writes the outputs */
    const kelp_http_output_wish *wishes;
    size_t wish_count;
    bool binary_default; /* outputs without a wish of their own are binary */

    /* the reply; `text`, then `pieces` */
    int status;
    const char *content_type; /* NULL when there is no body */
    const char *allow;        /* of a 405 */
    kelp_http_coding coding;  /* of the body as it is */
    bool tell_codings;        /* the request's coding is unknown: say which are not */
    bool has_header_length;
    uint64_t header_length; /* Inference-Header-Content-Length */
    kelp_buf text;
    kelp_http_piece *pieces;
    size_t piece_count;
    size_t piece_capacity;

    /* work that blocks, on a thread of its own */
    struct kelp_json *document; /* the body, parsed before */
    void (*blocking)(kelp_http_call *call);
};

/* ---- call.c ---- */
/* A fresh call with one reference, from the pool of the thread. Loop's thread. */
kelp_status *kelp_http_call_acquire(kelp_http_thread *thread, kelp_http_call **out) KELP_MUST_USE;
/* Drops a reference; the last one gives the call back to the pool. Any thread. */
void kelp_http_call_unref(kelp_http_call *call);
void kelp_http_call_destroy(kelp_http_call *call); /* of a pooled call */

/* Each of these fills in the reply. None sends it. */
void kelp_http_reply_empty(kelp_http_call *call, int status);
void kelp_http_reply_json(kelp_http_call *call, int status); /* the body is in call->text */
void kelp_http_reply_error_text(kelp_http_call *call, int status, kelp_str message);
void kelp_http_reply_status(kelp_http_call *call, kelp_status *take_status);
/* The message as the body, or the error. Takes both; `take_error` NULL means success. */
void kelp_http_reply_message(kelp_http_call *call, TRITONSERVER_Error *take_error,
                             TRITONSERVER_Message *take_message);
kelp_status *kelp_http_add_piece(kelp_http_call *call, const void *data,
                                 size_t length) KELP_MUST_USE;

/* Makes a status of an error, which it takes; NULL stays NULL. */
kelp_status *kelp_http_status_of(TRITONSERVER_Error *take_error) KELP_MUST_USE;
/* The HTTP status for a failure. */
int kelp_http_code_of(const kelp_status *status);
#define KELP_HTTP_TRY(expr) KELP_TRY(kelp_http_status_of(expr))

/* Sends what the reply functions filled in. Loop's thread; from a handler or later. */
void kelp_http_call_finish(kelp_http_call *call);
/* Runs call->blocking on a thread of its own, then finishes the call on its loop. */
void kelp_http_call_block(kelp_http_call *call, void (*blocking)(kelp_http_call *call));

/* ---- routes.c ---- */
/* Finds the handler for call->head and runs it; it finishes the call now or later. */
void kelp_http_route(kelp_http_call *call);

/* ---- handlers ---- */
void kelp_v2_live(kelp_http_call *call);
void kelp_v2_ready(kelp_http_call *call);
void kelp_v2_server_metadata(kelp_http_call *call);
void kelp_v2_model_metadata(kelp_http_call *call);
void kelp_v2_model_ready(kelp_http_call *call);
void kelp_v2_model_config(kelp_http_call *call);
void kelp_v2_model_statistics(kelp_http_call *call);
void kelp_v2_repository_index(kelp_http_call *call);
void kelp_v2_repository_load(kelp_http_call *call);
void kelp_v2_repository_unload(kelp_http_call *call);
void kelp_v2_metrics(kelp_http_call *call);
void kelp_v2_infer(kelp_http_call *call);

/* Asks the server to give up a call in flight whose client is gone. Loop's thread. */
void kelp_v2_infer_cancel(kelp_http_call *call);

/* ---- codecs ---- */
/* Fills call->request, wishes and binary_default from the JSON text and the binary bytes behind it.
 */
kelp_status *kelp_v2_decode_request(kelp_http_call *call, kelp_str json,
                                    kelp_str binary) KELP_MUST_USE;
/* A body that is one input's bytes. */
kelp_status *kelp_v2_decode_raw(kelp_http_call *call, kelp_str body) KELP_MUST_USE;
/* Fills the reply from call->response. */
kelp_status *kelp_v2_encode_response(kelp_http_call *call) KELP_MUST_USE;
/* Replaces the reply's body by its compressed form when the client asked for one. */
kelp_status *kelp_v2_compress_reply(kelp_http_call *call) KELP_MUST_USE;

/* Bytes that requests without Inference-Header-Content-Length, and the JSON part of others, may
 * have. */
uint64_t kelp_http_max_input_size(const kelp_http_server *server);
TRITONSERVER_Server *kelp_http_core(const kelp_http_server *server);
/* The allocator that puts outputs into call->outputs; `userp` of the response callback is the call.
 */
TRITONSERVER_ResponseAllocator *kelp_http_response_allocator(const kelp_http_server *server);
/* The body of the request, unpacked when it was compressed; OUT_OF_RANGE, UNIMPLEMENTED,
 * INVALID_ARGUMENT. */
kelp_status *kelp_http_call_body(kelp_http_call *call, kelp_str *out) KELP_MUST_USE;

#endif
