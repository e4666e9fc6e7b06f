/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the kit share. The kit is linked statically into each backend, so that all of
 * it is hidden there; it calls the TRITONBACKEND_* and TRITONSERVER_* functions and nothing else of
 * a server.
 */
#ifndef KELP_SDK_SDK_H_
#define KELP_SDK_SDK_H_

#include <kelp/backend.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/checked.h"
#include "base/text/json.h"

#include <pthread.h>
#include <stdatomic.h>

/* Whether a call succeeded whose failure tells no more than that. */
static inline bool kit_ok(TRITONSERVER_Error *take_error) {
    if (KELP_LIKELY(!take_error))
        return true;
    TRITONSERVER_ErrorDelete(take_error);
    return false;
}

/* Converts the result of a call that mostly succeeds. */
static inline kelp_status *kit_status(TRITONSERVER_Error *take_error) {
    return KELP_LIKELY(!take_error) ? NULL : kelp_backend_status(take_error);
}

struct kelp_backend_host {
    const kelp_backend_definition *definition;
    TRITONBACKEND_Backend *raw;
    void *state;
    const char *directory; /* borrowed from the server */
    kelp_arena arena;
    const kelp_json *settings; /* the object "cmdline", or NULL */
};

struct kelp_backend_model {
    kelp_backend_host *host;
    TRITONBACKEND_Model *raw;
    TRITONSERVER_Server *server;
    void *state;
    const char *name, *directory; /* borrowed from the server */
    uint64_t version;
    kelp_arena arena; /* of the configuration */
    const kelp_json *config;
    int64_t max_batch;
    bool is_decoupled;
    kelp_backend_io *inputs, *outputs;
    size_t input_count, output_count;
};

struct kelp_backend_instance {
    kelp_backend_model *model;
    TRITONBACKEND_ModelInstance *raw;
    void *state;
    const char *name;
    TRITONSERVER_InstanceGroupKind kind;
    int32_t device;
    uint64_t begin_ns, end_ns;    /* of the inference within execute, when the backend said so */
    uint64_t report_ns;           /* when the execution's last request was reported; 0: none was */
    kelp_backend_request **batch; /* the requests of the execution that runs */
    size_t batch_capacity;
    pthread_mutex_t lock; /* of `free` */
    kelp_backend_request *free;
};

struct kelp_backend_response {
    TRITONBACKEND_Response *raw;
    kelp_backend_request *request;
    kelp_backend_factory *factory; /* NULL for the response that a request is filling */
    uint64_t start_ns, output_ns;  /* of a decoupled model: for its statistics */
};

/* A request and the account of its answers. The account outlives the request: it is shared with the
 * factories and with the execution that runs, and goes back to the pool with the last of them. */
struct kelp_backend_request {
    TRITONBACKEND_Request *raw; /* NULL once it is released */
    kelp_backend_instance *instance;
    kelp_backend_request *next; /* in the pool */
    kelp_arena arena;
    kelp_backend_response pending;              /* being filled, when its raw is not NULL */
    TRITONBACKEND_ResponseFactory *own_factory; /* of a decoupled model, for its statistics */
    int64_t batch;
    bool kept;
    uint64_t start_ns, begin_ns;
    atomic_uint holds;     /* of the account: the senders together, the execution */
    atomic_uint senders;   /* who may still answer: the request, each factory */
    atomic_uint responses; /* that were sent */
    atomic_bool final;     /* the last one was sent or is being sent */
    atomic_bool failed;    /* one carried an error */
};

/* Counted: by the backend's handle and by each response that it made, so that the report on a
 * response still finds it. */
struct kelp_backend_factory {
    TRITONBACKEND_ResponseFactory *raw;
    kelp_backend_request *request;
    atomic_uint refs;
};

/* The extent of a request's batch, 1 without batches. */
int64_t kit_request_batch(const kelp_backend_model *model, TRITONBACKEND_Request *raw);

/* Starts an account of a request in `instance`, held by the request and by the execution; NULL when
 * memory is short. */
kelp_backend_request *kit_request_open(kelp_backend_instance *instance, TRITONBACKEND_Request *raw,
                                       uint64_t start_ns);
/* What remains to be done for a request when execute is over; ends the execution's hold. `status`
 * stays with the caller; false when it could not be told to whoever asked. */
bool kit_request_complete(kelp_backend_request *request, const kelp_status *status);
/* Ends a hold. The last one gives the account back to the pool, which the caller keeps alive. */
void kit_request_drop(kelp_backend_request *request);
/* Frees an account. */
void kit_request_free(kelp_backend_request *request);
/* Claims the right to send: false when the request has had its final answer. */
bool kit_request_claim(kelp_backend_request *request, bool final);
/* Ends a request that nobody ended: through `raw`, or through `factory` when that is NULL. */
void kit_request_close(kelp_backend_request *request, TRITONBACKEND_Request *raw,
                       TRITONBACKEND_ResponseFactory *factory);
/* Reports a response of a decoupled model; `error` is borrowed. */
void kit_report_response(kelp_backend_request *request, TRITONBACKEND_ResponseFactory *factory,
                         uint64_t start_ns, uint64_t output_ns, TRITONSERVER_Error *error);

/* Reads the configuration into the model, in place of what was there. */
kelp_status *kit_model_read_config(kelp_backend_model *model) KELP_MUST_USE;
/* A message as a tree in the arena. The message is deleted when `take` is set. */
kelp_status *kit_message_parse(TRITONSERVER_Message *message, bool take, kelp_arena *arena,
                               const char *name, const kelp_json **out) KELP_MUST_USE;

/* Checks type and rank of something of `name`, called `what` in messages. */
kelp_status *kit_check(const char *what, const char *name, kelp_dtype dtype, int64_t rank,
                       kelp_dtype expected_dtype, int32_t expected_rank) KELP_MUST_USE;
/* A tensor over `data`, which holds `size_bytes` in the wire's form; strings become an array in the
 * arena. */
kelp_status *kit_tensor_from_wire(kelp_arena *arena, const char *what, const char *name,
                                  kelp_dtype dtype, int64_t rank, const int64_t *shape,
                                  const void *data, uint64_t size_bytes,
                                  kelp_tensor *out) KELP_MUST_USE;
/* Bytes that a tensor takes on the wire, and writing it there. */
kelp_status *kit_wire_bytes(const kelp_tensor *tensor, size_t *out) KELP_MUST_USE;
void kit_wire_write(const kelp_tensor *tensor, void *out);

#endif
