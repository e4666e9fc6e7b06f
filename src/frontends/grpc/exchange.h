/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of gRPC, which is an exchange of HTTP/2, and the functions that the methods share.
 *
 * Bytes of the body become messages (body.c), each of which is passed to the method of the call
 * (methods.c). Inferences of a call are in infer.c. Everything runs on the event-loop thread of the
 * exchange, except for the callbacks of the server and the work of control.c and unpack.c.
 *
 * An exchange has one reference for the response, one for each request that the server has not
 * released or answered completely, and one for each posted kelp_grpc_pump.
 */
#ifndef KELP_FRONTENDS_GRPC_EXCHANGE_H_
#define KELP_FRONTENDS_GRPC_EXCHANGE_H_

#include "frontends/common/workers.h"
#include "frontends/grpc/codec/infer_request.h"
#include "frontends/grpc/codec/message.h"
#include "frontends/grpc/service.h"

#include <pthread.h>

typedef struct kelp_grpc_exchange kelp_grpc_exchange;
typedef struct kelp_grpc_reply kelp_grpc_reply;
typedef struct kelp_grpc_request kelp_grpc_request;

/* The handler. */
typedef struct kelp_grpc_service {
    kelp_http_handler handler; /* first */
    kelp_allocator allocator;
    kelp_http_keepalive keepalive;
    TRITONSERVER_Server *core;
    kelp_shm_registry *shm; /* may be NULL, as the next three */
    kelp_logging *logging;
    kelp_tracing *tracing;
    kelp_access *access;
    const kelp_forward *forward; /* may be NULL */
    kelp_workers *loaders;       /* run loads and unloads */
    kelp_workers *unpackers;     /* decompress large messages */
    /* Allocates outputs; `userp` of the response callback is the kelp_grpc_request. */
    TRITONSERVER_ResponseAllocator *response_allocator;
    uint64_t max_message_bytes;
    uint64_t max_queued_bytes;
    uint32_t max_requests;
    bool compresses;
    atomic_bool draining;
    pthread_mutex_t streams_mutex;
    kelp_grpc_exchange *streams; /* open calls of ModelStreamInfer */
} kelp_grpc_service;

/* A method of a service. */
typedef struct kelp_grpc_method {
    const char *path;
    /* Processes a message of the client. */
    void (*on_message)(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
    bool client_streams; /* a call may have any number of messages */
    bool server_streams;
    bool infers; /* on_message takes the request */
} kelp_grpc_method;

/* A response of a model, or the failure of a request. */
struct kelp_grpc_reply {
    kelp_grpc_reply *next;
    kelp_grpc_request *request;
    TRITONSERVER_InferenceResponse *response; /* NULL: only a flag, or a failure */
    kelp_status *failure;
    bool final;
    uint64_t queued_bytes;
    kelp_arena arena;
    kelp_grpc_message message;
};

/* A message of the client, and the inference that it starts. */
struct kelp_grpc_request {
    kelp_grpc_exchange *exchange;
    kelp_grpc_request *previous, *next; /* in exchange->active, or in exchange->unused */
    kelp_grpc_request *next_ordered;    /* in exchange->ordered */
    kelp_grpc_request *next_released;
    uint64_t start_ns;           /* when the first bytes of the message arrived (kelp_now_ns) */
    kelp_http_body body;         /* the message */
    kelp_http_body decompressed; /* the message, if it was compressed */
    kelp_arena arena;            /* decoded data */
    kelp_grpc_infer_request decoded;

    /* the inference */
    TRITONSERVER_InferenceRequest *inference;
    kelp_trace_record *trace; /* NULL if the request is not traced */
    kelp_arena outputs;       /* memory for outputs, if the model is not decoupled */
    bool decoupled;
    bool answered;          /* a response was encoded */
    atomic_bool lost;       /* a response could not be kept */
    bool referenced;        /* holds a reference to the exchange */
    bool complete;          /* the final reply was written or dropped */
    bool released;          /* by the server; with exchange->mutex */
    bool final_handled;     /* with exchange->mutex */
    bool waits_for_release; /* the final reply, because the model still uses shared memory */
    kelp_grpc_reply final_reply;
    kelp_grpc_reply *first_reply, *last_reply; /* replies that wait for earlier requests */
};

/* Metadata of a call that is passed to the model. */
typedef struct kelp_grpc_metadata {
    const char *name, *value;
} kelp_grpc_metadata;

/* A call. */
struct kelp_grpc_exchange {
    kelp_http_exchange base; /* first */
    const kelp_grpc_method *method;
    kelp_http_coding request_coding, response_coding;
    kelp_arena metadata;           /* of `forwarded` and `trace_parent` */
    kelp_grpc_metadata *forwarded; /* becomes parameters of each request */
    size_t forwarded_count;
    kelp_trace_context trace_parent; /* of the client; its text is in `metadata` */
    bool fails_stream; /* the errors of requests end a stream (metadata triton_grpc_error) */

    /* incoming messages */
    unsigned char prefix[KELP_GRPC_PREFIX_BYTES];
    size_t prefix_length;
    size_t message_length;
    kelp_event_loop_timer message_timer; /* armed while a message is incomplete */
    uint64_t message_ns;                 /* the time at which it was armed */
    kelp_grpc_request *incoming;         /* the message that arrives */
    kelp_grpc_request *unpacking;        /* a separate thread decompresses it */
    kelp_grpc_request *handled;          /* the message of a method that does not infer */
    bool has_message;                    /* a message was complete */
    bool ended;                          /* the client has sent its last message */
    bool feeding;
    kelp_buf held; /* bytes that wait until the call processes more messages */
    size_t held_at;

    /* requests */
    kelp_grpc_request *active; /* submitted, not recycled */
    kelp_grpc_request *unused; /* pool */
    size_t active_count, unused_count;
    size_t open_count;                         /* submitted, without a final reply */
    uint64_t active_bytes;                     /* of the messages of active requests */
    kelp_grpc_request *ordered, *last_ordered; /* requests whose replies are sent in this order */
    bool submitting;                           /* inside TRITONSERVER_ServerInferAsync */

    /* replies */
    kelp_grpc_reply *writable, *last_writable;
    kelp_grpc_reply *written; /* their memory is being sent */

    /* the response */
    bool started;   /* the head is filled in */
    bool sending;   /* on_sent follows */
    bool has_sent;  /* a part was sent */
    bool finishing; /* the status is known */
    bool finished;  /* the last part was sent */
    bool blocking;  /* a separate thread uses `handled` and `work_status` */
    kelp_work work;
    kelp_status *(*control)(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
    kelp_status *work_status;
    kelp_code code;
    kelp_buf status_text; /* percent-encoded */
    kelp_event_loop_timer deadline_timer;
    kelp_event_loop_timer poll_timer; /* of Watch; of a stream while the server stops */
    int watched;                      /* the last status that Watch sent; 0: none */

    /* an open stream; with service->streams_mutex */
    kelp_grpc_exchange *previous_stream, *next_stream;
    bool listed;
    uint64_t used_ns; /* the time of the latest request of a stream */

    /* shared with the threads of models */
    pthread_mutex_t mutex;
    kelp_grpc_reply *arrived, *last_arrived;
    kelp_grpc_request *released; /* after their final reply was handled */
    kelp_grpc_reply *unused_replies;
    size_t unused_reply_count;
    uint64_t queued_bytes; /* of replies that are not written */
    bool posted;           /* kelp_grpc_pump will run */
    bool unpacked;         /* `unpacking` is decompressed, with the result work_status */
    bool cancelled;
};

static inline kelp_grpc_service *kelp_grpc_service_of(const kelp_grpc_exchange *exchange) {
    return (kelp_grpc_service *)exchange->base.handler;
}

/* ---- methods.c ---- */
/* Returns the method of a path, or NULL. */
const kelp_grpc_method *kelp_grpc_find_method(kelp_str path);
/* Checks that the client may call the method of a path. UNAVAILABLE, as Triton, if its category is
 * restricted; UNAUTHENTICATED without a valid token. */
kelp_status *kelp_grpc_permit(const kelp_grpc_service *service,
                              const kelp_http_request *request) KELP_MUST_USE;

/* ---- respond.c ---- */
/* Begins the response, unless it has begun. */
void kelp_grpc_start(kelp_grpc_exchange *exchange);
/* Begins a message without tensors in base.text; returns the buffer. */
kelp_buf *kelp_grpc_begin(kelp_grpc_exchange *exchange);
/* Ends the message of kelp_grpc_begin. */
void kelp_grpc_end(kelp_grpc_exchange *exchange);
/* Ends the message, and the call with status OK. */
void kelp_grpc_reply_end(kelp_grpc_exchange *exchange);
/* Ends the call with a status; NULL is OK. Cancels its requests. Waits until a part that is being
 * sent is written. No effect if the call has ended. */
void kelp_grpc_finish(kelp_grpc_exchange *exchange, kelp_status *take_status);
/* Sends the status, after kelp_grpc_finish, if no part is being sent. */
void kelp_grpc_send_status(kelp_grpc_exchange *exchange);
/* Fills in the response for a request that the transport rejects. */
void kelp_grpc_fill_error(kelp_grpc_exchange *exchange, kelp_status *take_status);
/* Percent-encodes a message for the trailer grpc-message. */
void kelp_grpc_encode_text(kelp_buf *out, kelp_str text);
/* Parses the header grpc-timeout. Returns false if it is malformed. */
bool kelp_grpc_parse_timeout(kelp_str text, uint64_t *out_ns);

/* ---- body.c ---- */
/* Ends the call with DEADLINE_EXCEEDED if the rest of a message arrives too slowly. */
kelp_status *kelp_grpc_expect_message(kelp_grpc_exchange *exchange) KELP_MUST_USE;
/* Limits the time for an incomplete message, because the server stops, and ends reflection. */
void kelp_grpc_on_drain(kelp_http_exchange *base);
/* Processes bytes of the body. */
void kelp_grpc_on_body(kelp_http_exchange *base, kelp_str bytes, bool last);
/* Processes the bytes that were held back, if the call processes messages again. */
void kelp_grpc_resume(kelp_grpc_exchange *exchange);
/* Ends the call, if the client has sent all of its messages and they were processed. */
void kelp_grpc_end_stream(kelp_grpc_exchange *exchange);
/* Returns the bytes of a complete message. */
kelp_str kelp_grpc_message_of(const kelp_grpc_request *request);

/* Passes a message to the method, or ends the call with a failure. */
void kelp_grpc_deliver(kelp_grpc_exchange *exchange, kelp_grpc_request *request,
                       kelp_status *take_failure);

/* ---- unpack.c ---- */
/* Decompresses a message and delivers it, now or after kelp_grpc_finish_unpack. */
void kelp_grpc_unpack(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
/* Delivers the message that a thread has decompressed, or drops it if the call has ended. */
void kelp_grpc_finish_unpack(kelp_grpc_exchange *exchange, bool cancelled);

/* ---- request.c ---- */
/* Returns a request from the pool of the exchange. */
kelp_status *kelp_grpc_request_acquire(kelp_grpc_exchange *exchange,
                                       kelp_grpc_request **out) KELP_MUST_USE;
/* Returns a request to the pool. */
void kelp_grpc_request_recycle(kelp_grpc_request *request);
void kelp_grpc_request_destroy(kelp_grpc_request *request);
void kelp_grpc_reply_init(kelp_grpc_reply *reply, kelp_allocator allocator);
void kelp_grpc_reply_deinit(kelp_grpc_reply *reply);
/* Deletes the response of a reply. */
void kelp_grpc_reply_clear(kelp_grpc_reply *reply);

/* ---- infer.c ---- */
void kelp_grpc_infer(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
/* Decides whether a request, whose model was read, is traced, and adds it to the access log. */
void kelp_grpc_begin_request(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
/* Adds a failure to the trace of a request, if it is traced. */
void kelp_grpc_trace_failure(const kelp_grpc_request *request, const kelp_status *failure);
/* Asks the server to cancel the requests in flight, and drops their replies. */
void kelp_grpc_cancel_requests(kelp_grpc_exchange *exchange);
/* Takes what arrived from the threads of models, and sends what can be sent. */
void kelp_grpc_pump(kelp_http_exchange *base);
/* Posts kelp_grpc_pump, unless it was posted. The mutex is held. */
void kelp_grpc_post_pump(kelp_grpc_exchange *exchange);
/* Takes what arrived while the event-loop thread was submitting. */
void kelp_grpc_take_arrived(kelp_grpc_exchange *exchange);
/* Frees a reply that was written or dropped. */
void kelp_grpc_free_reply(kelp_grpc_reply *reply);
/* Frees the replies whose memory was sent. */
void kelp_grpc_free_written(kelp_grpc_exchange *exchange);
/* Returns true if the call may start another request. */
bool kelp_grpc_can_infer(kelp_grpc_exchange *exchange);

/* ---- streams.c ---- */
/* Adds a stream to the list of the service. */
void kelp_grpc_stream_open(kelp_grpc_exchange *exchange);
/* Removes a call from the list, if it is in it. */
void kelp_grpc_stream_close(kelp_grpc_exchange *exchange);
/* If the server is stopping, ends a stream that was not used for a second, now or later. */
void kelp_grpc_stream_drain(kelp_grpc_exchange *exchange);
/* Lets the event-loop threads drain all streams. Any thread. */
void kelp_grpc_streams_drain(kelp_grpc_service *service);

/* ---- write.c ---- */
/* Sends the next replies, or the status after the last one. */
void kelp_grpc_write(kelp_grpc_exchange *exchange);

/* ---- outputs.c: the functions of the response allocator ---- */
TRITONSERVER_Error *kelp_grpc_allocate_output(TRITONSERVER_ResponseAllocator *allocator,
                                              const char *tensor_name, size_t byte_size,
                                              TRITONSERVER_MemoryType memory_type,
                                              int64_t memory_type_id, void *userp, void **buffer,
                                              void **buffer_userp,
                                              TRITONSERVER_MemoryType *actual_memory_type,
                                              int64_t *actual_memory_type_id);
TRITONSERVER_Error *kelp_grpc_release_output(TRITONSERVER_ResponseAllocator *allocator,
                                             void *buffer, void *buffer_userp, size_t byte_size,
                                             TRITONSERVER_MemoryType memory_type,
                                             int64_t memory_type_id);

/* ---- control.c, shared_memory.c, settings.c, health.c, reflection.c: methods ---- */
void kelp_grpc_server_live(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
void kelp_grpc_server_ready(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
void kelp_grpc_server_metadata(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
void kelp_grpc_model_ready(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
void kelp_grpc_model_metadata(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
void kelp_grpc_model_config(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
void kelp_grpc_model_statistics(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
void kelp_grpc_repository_index(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
void kelp_grpc_repository_load(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
void kelp_grpc_repository_unload(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
void kelp_grpc_shm_status(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
void kelp_grpc_shm_register(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
void kelp_grpc_shm_unregister(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
void kelp_grpc_cuda_shm_status(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
void kelp_grpc_cuda_shm_register(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
void kelp_grpc_cuda_shm_unregister(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
void kelp_grpc_trace_setting(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
void kelp_grpc_log_settings(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
void kelp_grpc_health_check(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
void kelp_grpc_health_watch(kelp_grpc_exchange *exchange, kelp_grpc_request *request);
void kelp_grpc_reflect(kelp_grpc_exchange *exchange, kelp_grpc_request *request);

/* Returns true if the server is ready and not about to stop. */
kelp_status *kelp_grpc_is_ready(const kelp_grpc_exchange *exchange, bool *out) KELP_MUST_USE;

#endif
