/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Definitions of the SDK's objects and internal functions. The SDK is linked statically into each
 * backend with hidden visibility. Of the server, it calls only the functions TRITONBACKEND_* and
 * TRITONSERVER_*.
 */
#ifndef KELP_SDK_SDK_H_
#define KELP_SDK_SDK_H_

#include <kelp/backend.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/text/json.h"

#include <pthread.h>
#include <stdatomic.h>

/* Returns true on success, for calls whose error message is not needed. */
static inline bool sdk_ok(TRITONSERVER_Error *take_error) {
    if (KELP_LIKELY(take_error == NULL))
        return true;
    TRITONSERVER_ErrorDelete(take_error);
    return false;
}

/* Converts the result of a call. Inline for the common case, success. */
static inline kelp_status *sdk_status(TRITONSERVER_Error *take_error) {
    return KELP_LIKELY(take_error == NULL) ? NULL : kelp_backend_status(take_error);
}

/* The thread that watches calls in flight; see watch.c. */
typedef struct kelp_sdk_watch {
    pthread_mutex_t lock; /* guards the other members */
    pthread_cond_t changed;
    pthread_t thread;
    bool running, stopping;
    uint64_t wake_ns;         /* time of the thread's next check; UINT64_MAX: none */
    kelp_backend_call *calls; /* a list */
} kelp_sdk_watch;

struct kelp_backend_host {
    const kelp_backend_definition *definition;
    TRITONBACKEND_Backend *raw;
    void *state;
    const char *directory; /* borrowed from the server */
    kelp_arena arena;
    const kelp_json *settings; /* the object "cmdline", or NULL */
    kelp_sdk_watch watch;
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
    uint64_t begin_ns, end_ns;    /* of the inference within execute; 0: not set by the backend */
    uint64_t report_ns;           /* end of this execution; 0: not reported yet */
    kelp_backend_request **batch; /* the requests of the current execution */
    size_t batch_capacity;
    pthread_mutex_t lock;       /* guards `free` */
    kelp_backend_request *free; /* the pool of unused requests */
};

struct kelp_backend_response {
    TRITONBACKEND_Response *raw;
    struct kelp_sdk_discarded *discarded; /* memory of outputs that the client does not read */
    kelp_backend_request *request;
    kelp_backend_factory *factory; /* NULL: embedded in the request */
    uint64_t start_ns, output_ns;  /* for statistics of decoupled models */
};

/* A request and the accounting of its responses. The object outlives the request: the factories and
 * the current execution also hold it. The last release returns it to the pool. */
struct kelp_backend_request {
    TRITONBACKEND_Request *raw; /* NULL after its release */
    kelp_backend_instance *instance;
    kelp_backend_request *next; /* in the pool */
    kelp_arena arena;
    kelp_backend_response pending; /* the response in preparation, if raw is not NULL */
    TRITONBACKEND_ResponseFactory *own_factory; /* for statistics of decoupled models */
    int64_t batch;
    bool kept;     /* kelp_backend_keep was called */
    bool reported; /* the statistics of the request were reported */
    uint64_t start_ns, begin_ns;
    atomic_uint holds;     /* references: one for all senders, one for the execution */
    atomic_uint senders;   /* the request, until its release, and each factory */
    atomic_uint responses; /* number of sent responses */
    atomic_bool final;     /* the final response was sent or is being sent */
    atomic_bool failed;    /* a response had an error */
    atomic_bool starved;   /* a response could not be created */
};

/* A response factory. Its references are the backend's handle and each response that it created, so
 * that it exists when a response is reported. */
struct kelp_backend_factory {
    TRITONBACKEND_ResponseFactory *raw;
    kelp_backend_request *request;
    atomic_uint refs;
};

/* Returns the batch dimension of a request, or 1 if the model has no batches. */
int64_t kelp_sdk_request_batch(const kelp_backend_model *model, TRITONBACKEND_Request *raw);

/* Opens a request for an execution. Returns NULL if there is not enough memory. */
kelp_backend_request *kelp_sdk_request_open(kelp_backend_instance *instance,
                                            TRITONBACKEND_Request *raw, uint64_t start_ns);
/* Completes a request after execute, which returned `status` (borrowed), and releases the
 * execution's reference. Returns true if `status` was sent to the client. */
bool kelp_sdk_request_complete(kelp_backend_request *request, const kelp_status *status);
/* Releases a reference. The last one returns the object to the pool, which must still exist. */
void kelp_sdk_request_drop(kelp_backend_request *request);
/* Frees the object. */
void kelp_sdk_request_free(kelp_backend_request *request);
/* Reports the statistics of a request, once. Call it before the final response is sent, so that a
 * client that has all responses finds them counted. */
void kelp_sdk_request_report(kelp_backend_request *request);
/* Claims the right to send a response. Returns false if the final response was already sent. */
bool kelp_sdk_request_claim(kelp_backend_request *request, bool final);
/* Sends the final response if the backend did not: through `raw` or, if it is NULL, `factory`. */
void kelp_sdk_request_close(kelp_backend_request *request, TRITONBACKEND_Request *raw,
                            TRITONBACKEND_ResponseFactory *factory);
/* Reports a response of a decoupled model. `error` is borrowed. */
void kelp_sdk_report_response(kelp_backend_request *request, TRITONBACKEND_ResponseFactory *factory,
                              uint64_t start_ns, uint64_t output_ns, TRITONSERVER_Error *error);

/* Reads the configuration into the model and replaces the previous one. */
kelp_status *kelp_sdk_model_read_config(kelp_backend_model *model) KELP_MUST_USE;
/* Parses a message to a tree in the arena. Deletes the message if `take`. */
kelp_status *kelp_sdk_message_parse(TRITONSERVER_Message *message, bool take, kelp_arena *arena,
                                    const char *name, const kelp_json **out) KELP_MUST_USE;

/* Initializes a watch; its thread is not started. */
void kelp_sdk_watch_init(kelp_sdk_watch *watch);
/* Stops and joins the thread. */
void kelp_sdk_watch_deinit(kelp_sdk_watch *watch);

/* Returns the device of a kind of memory. */
DLDevice kelp_sdk_device_of(kelp_backend_memory memory);
/* Returns UNIMPLEMENTED: the tensor `name` is in the memory of a GPU. `what` is "input", …. */
kelp_status *kelp_sdk_not_on_host(const char *what, const char *name, int64_t id) KELP_MUST_USE;
/* Checks type and rank of the tensor `name`. `what` is "input" or "output", for messages. */
kelp_status *kelp_sdk_check(const char *what, const char *name, kelp_dtype dtype, int64_t rank,
                            kelp_dtype expected_dtype, int32_t expected_rank) KELP_MUST_USE;
/* Creates a tensor over `data`, which has `size_bytes` bytes in Triton's serialized form. Strings
 * are converted to an array in the arena. */
kelp_status *kelp_sdk_tensor_from_wire(kelp_arena *arena, const char *what, const char *name,
                                       kelp_dtype dtype, int64_t rank, const int64_t *shape,
                                       const void *data, uint64_t size_bytes,
                                       kelp_tensor *out) KELP_MUST_USE;
/* Returns the size of a tensor in serialized form. */
kelp_status *kelp_sdk_wire_bytes(const kelp_tensor *tensor, size_t *out) KELP_MUST_USE;
/* Writes a tensor in serialized form. */
void kelp_sdk_wire_write(const kelp_tensor *tensor, void *out);

#endif
