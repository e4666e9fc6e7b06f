/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/backend.h: the kit for writing a backend of Triton's ABI in C.
 *
 * A backend is a shared library libtriton_NAME.so that runs models for a server. This header and
 * the static library libkelp_backend.a stand on the functions TRITONBACKEND_* and TRITONSERVER_*
 * alone, so that the library loads in any server that has them, Kelp's and NVIDIA's. A backend:
 *
 *     static kelp_status *execute(kelp_backend_instance *instance, kelp_backend_request *request) {
 *         kelp_tensor x;
 *         kelp_backend_response *response;
 *         float *y;
 *         KELP_TRY(kelp_backend_input(request, "INPUT0", KELP_F32, KELP_ANY_RANK, &x));
 *         KELP_TRY(kelp_backend_respond(request, &response));
 *         KELP_TRY(kelp_backend_output(response, "OUTPUT0", KELP_F32, x.rank, x.shape, &y));
 *         for (int64_t i = 0; i < kelp_tensor_elements(&x); i++)
 *             y[i] = 2 * ((const float *)x.data)[i];
 *         return NULL;
 *     }
 *     static const kelp_backend_definition twice = {
 *         .struct_size = sizeof twice, .name = "twice", .execute_one = execute};
 *     KELP_TRITON_BACKEND(twice)
 *
 * What the kit sees to: each request is answered exactly once (or streams and then ends, when the
 * model is decoupled), also when the backend returns an error midway or forgets; each request is
 * released once; statistics are reported; statuses become Triton's errors. Nothing here aborts.
 *
 * Conventions. A kelp_status is NULL on success and otherwise belongs to who receives it. What a
 * function gives out is borrowed from the object that it was asked of, unless its contract says
 * otherwise. Threads: an object is used by one thread at a time; factories, calls and models are
 * the exceptions, and say so. Names and texts passed in are copied unless said otherwise.
 */
#ifndef KELP_BACKEND_H_
#define KELP_BACKEND_H_

#include <kelp/status.h>
#include <kelp/tensor.h>
#include <triton/core/tritonbackend.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kelp_backend_host kelp_backend_host;         /* the backend in its server */
typedef struct kelp_backend_model kelp_backend_model;       /* a loaded version of a model */
typedef struct kelp_backend_instance kelp_backend_instance; /* what executes */
typedef struct kelp_backend_request kelp_backend_request;
typedef struct kelp_backend_response kelp_backend_response;
typedef struct kelp_backend_factory kelp_backend_factory; /* answers after the request is gone */
typedef struct kelp_backend_call kelp_backend_call;       /* an inference by another model */
typedef struct kelp_backend_value kelp_backend_value;     /* a node of a configuration */

/* ---- Definition -------------------------------------------------------------------------- */

/* Instances of a model may be created on several threads at once. */
#define KELP_BACKEND_PARALLEL_LOADING 1u
/* All instances on one GPU share a thread (TRITONBACKEND_EXECUTION_DEVICE_BLOCKING). */
#define KELP_BACKEND_DEVICE_BLOCKING 2u
/* Executions neither sleep nor wait: not for time, locks held long, files, sockets, nor other
 * models. Kelp's server then runs them on the thread that submits, an event loop perhaps, which
 * costs no change of thread; other servers do as ever. */
#define KELP_BACKEND_DOES_NOT_BLOCK 4u

/* What a backend is. Exactly one of `execute` and `execute_one` is given, every other function may
 * be NULL. A create function that fails may leave a half-built object in `*out_state`: the destroy
 * function is called with it. Destroy functions are not called with NULL. */
typedef struct kelp_backend_definition {
    size_t struct_size; /* sizeof(kelp_backend_definition) */
    const char *name;   /* for messages; static */
    uint32_t flags;     /* KELP_BACKEND_... */

    /* When the library is loaded and when its last model is gone. */
    kelp_status *(*create)(kelp_backend_host *host, void **out_state);
    void (*destroy)(void *state);

    /* When a model is loaded, on the loading thread, and when it is unloaded, on any thread. The
     * model may call kelp_backend_model_set_config here. A failure refuses the model. */
    kelp_status *(*model_create)(kelp_backend_model *model, void **out_state);
    void (*model_destroy)(void *state);

    /* For each instance of a model, as above. */
    kelp_status *(*instance_create)(kelp_backend_instance *instance, void **out_state);
    void (*instance_destroy)(void *state);

    /* Whether the instance can run requests; a failure says why not. On any thread, also while it
     * executes. */
    kelp_status *(*ready)(kelp_backend_instance *instance);

    /* With KELP_BACKEND_DOES_NOT_BLOCK: whether this request would block all the same (or only take
     * long), so that it is left to a thread of the server. Called when the request is submitted, on
     * any thread, also while others execute. The request can be read here, and only here: it has no
     * instance. NULL: none would. */
    bool (*may_block)(kelp_backend_model *model, kelp_backend_request *request);

    /* Runs requests, on the thread of the instance or (see above) on one that submits, one call at
     * a time. When it returns, each
     * request that was neither released nor kept (kelp_backend_keep) is completed: on success its
     * response is sent if that was not done; on failure the status is its answer, unless it has had
     * its final one. Then it is released. */
    kelp_status *(*execute)(kelp_backend_instance *instance, kelp_backend_request **requests,
                            size_t request_count);
    /* The same, called for one request after the other: a failure concerns this one only. */
    kelp_status *(*execute_one)(kelp_backend_instance *instance, kelp_backend_request *request);
} kelp_backend_definition;

/* Makes the entry points of the library out of a definition, which is an object at file scope. */
#define KELP_TRITON_BACKEND(definition)                                                            \
    TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend_) {                \
        return kelp_backend_entry_initialize(&(definition), backend_);                             \
    }                                                                                              \
    TRITONSERVER_Error *TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend_) {                  \
        return kelp_backend_entry_finalize(backend_);                                              \
    }                                                                                              \
    TRITONSERVER_Error *TRITONBACKEND_GetBackendAttribute(                                         \
        TRITONBACKEND_Backend *backend_, TRITONBACKEND_BackendAttribute *backend_attributes_) {    \
        return kelp_backend_entry_attributes(backend_, backend_attributes_);                       \
    }                                                                                              \
    TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model_) {               \
        return kelp_backend_entry_model_initialize(model_);                                        \
    }                                                                                              \
    TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model_) {                 \
        return kelp_backend_entry_model_finalize(model_);                                          \
    }                                                                                              \
    TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(                                     \
        TRITONBACKEND_ModelInstance *instance_) {                                                  \
        return kelp_backend_entry_instance_initialize(instance_);                                  \
    }                                                                                              \
    TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(                                       \
        TRITONBACKEND_ModelInstance *instance_) {                                                  \
        return kelp_backend_entry_instance_finalize(instance_);                                    \
    }                                                                                              \
    TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance *instance_) { \
        return kelp_backend_entry_instance_ready(instance_);                                       \
    }                                                                                              \
    TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance_, \
                                                           TRITONBACKEND_Request **requests_,      \
                                                           const uint32_t request_count_) {        \
        return kelp_backend_entry_execute(instance_, requests_, request_count_);                   \
    }                                                                                              \
    bool KELP_BACKEND_MayBlock(TRITONBACKEND_Model *model_, TRITONBACKEND_Request *request_) {     \
        return kelp_backend_entry_may_block(&(definition), model_, request_);                      \
    }

/* An entry point that Kelp's server looks for in the library itself, beside Triton's: whether the
 * execution of a request may block; it is executed on the submitting thread when not. With
 * `request` NULL: whether any may, so that there is no need to ask. Called after ModelInitialize of
 * the model, on any thread, also while it executes. Libraries without the kit may define it too. */
TRITONBACKEND_ISPEC bool KELP_BACKEND_MayBlock(TRITONBACKEND_Model *model,
                                               TRITONBACKEND_Request *request);

/* Called by what KELP_TRITON_BACKEND generates, with the contracts of the entry points. */
TRITONSERVER_Error *kelp_backend_entry_initialize(const kelp_backend_definition *definition,
                                                  TRITONBACKEND_Backend *backend);
TRITONSERVER_Error *kelp_backend_entry_finalize(TRITONBACKEND_Backend *backend);
TRITONSERVER_Error *kelp_backend_entry_attributes(TRITONBACKEND_Backend *backend,
                                                  TRITONBACKEND_BackendAttribute *attributes);
TRITONSERVER_Error *kelp_backend_entry_model_initialize(TRITONBACKEND_Model *model);
TRITONSERVER_Error *kelp_backend_entry_model_finalize(TRITONBACKEND_Model *model);
TRITONSERVER_Error *kelp_backend_entry_instance_initialize(TRITONBACKEND_ModelInstance *instance);
TRITONSERVER_Error *kelp_backend_entry_instance_finalize(TRITONBACKEND_ModelInstance *instance);
TRITONSERVER_Error *kelp_backend_entry_instance_ready(TRITONBACKEND_ModelInstance *instance);
TRITONSERVER_Error *kelp_backend_entry_execute(TRITONBACKEND_ModelInstance *instance,
                                               TRITONBACKEND_Request **requests,
                                               uint32_t request_count);
bool kelp_backend_entry_may_block(const kelp_backend_definition *definition,
                                  TRITONBACKEND_Model *model, TRITONBACKEND_Request *request);

/* ---- Statuses, errors, log --------------------------------------------------------------- */

/* An error of Triton's API as a status; NULL stays NULL. The error is freed. */
kelp_status *kelp_backend_status(TRITONSERVER_Error *take_error) KELP_MUST_USE;

/* A status as an error of Triton's API, with the messages of its causes; NULL stays NULL. The
 * status is freed. */
TRITONSERVER_Error *kelp_backend_error(kelp_status *take_status) KELP_MUST_USE;

/* Writes to the server's log. A level that is off costs a call. Safe on any thread. */
void kelp_backend_log(TRITONSERVER_LogLevel level, const char *file, int line, const char *format,
                      ...) KELP_PRINTF(4, 5);
#define KELP_BACKEND_INFO(...) \
    kelp_backend_log(TRITONSERVER_LOG_INFO, __FILE__, __LINE__, __VA_ARGS__)
#define KELP_BACKEND_WARN(...) \
    kelp_backend_log(TRITONSERVER_LOG_WARN, __FILE__, __LINE__, __VA_ARGS__)
#define KELP_BACKEND_VERBOSE(...) \
    kelp_backend_log(TRITONSERVER_LOG_VERBOSE, __FILE__, __LINE__, __VA_ARGS__)

/* Logs a status, freed here, as an error that nobody else will be told of. NULL does nothing. */
void kelp_backend_log_status(const char *file, int line, const char *doing,
                             kelp_status *take_status);
#define KELP_BACKEND_LOG_STATUS(doing, take_status) \
    kelp_backend_log_status(__FILE__, __LINE__, (doing), (take_status))

/* ---- Host, models, instances ------------------------------------------------------------- */

/* Handles and states. The state is what the create function left. Any thread. */
TRITONBACKEND_Backend *kelp_backend_host_raw(const kelp_backend_host *host);
void *kelp_backend_host_state(const kelp_backend_host *host);
/* The folder that the library was loaded from, to find files that are installed beside it. */
const char *kelp_backend_host_directory(const kelp_backend_host *host);
/* A setting of the server's command line (--backend-config NAME,KEY=VALUE), or `fallback`. */
const char *kelp_backend_host_setting(const kelp_backend_host *host, const char *key,
                                      const char *fallback);

TRITONBACKEND_Model *kelp_backend_model_raw(const kelp_backend_model *model);
kelp_backend_host *kelp_backend_model_host(const kelp_backend_model *model);
void *kelp_backend_model_state(const kelp_backend_model *model);
const char *kelp_backend_model_name(const kelp_backend_model *model);
uint64_t kelp_backend_model_version(const kelp_backend_model *model);
/* The folder of the model, which holds its versions. */
const char *kelp_backend_model_directory(const kelp_backend_model *model);
/* 0 for a model without batches; else the first extent of its tensors is the batch. */
int64_t kelp_backend_model_max_batch(const kelp_backend_model *model);
/* Whether a request may have any number of responses. */
bool kelp_backend_model_is_decoupled(const kelp_backend_model *model);

TRITONBACKEND_ModelInstance *kelp_backend_instance_raw(const kelp_backend_instance *instance);
kelp_backend_model *kelp_backend_instance_model(const kelp_backend_instance *instance);
void *kelp_backend_instance_state(const kelp_backend_instance *instance);
const char *kelp_backend_instance_name(const kelp_backend_instance *instance);
/* What the instance runs on, and the number of the device; 0 for the CPU. */
TRITONSERVER_InstanceGroupKind kelp_backend_instance_kind(const kelp_backend_instance *instance);
int32_t kelp_backend_instance_device(const kelp_backend_instance *instance);

/* ---- Configuration ----------------------------------------------------------------------- */

/* The model's configuration as an object with the member names of Triton's ModelConfig, all
 * defaults filled in. Any thread. */
const kelp_backend_value *kelp_backend_model_config(const kelp_backend_model *model);

/* Nodes. All take NULL, which is what a member that is not there gives, and then give nothing: NULL
 * or the fallback. The readers also give the fallback for a value of another kind; integers are
 * read from numbers and from strings of digits. Texts end with a NUL. */
const kelp_backend_value *kelp_backend_value_get(const kelp_backend_value *object,
                                                 const char *name);
const kelp_backend_value *kelp_backend_value_first(const kelp_backend_value *container);
const kelp_backend_value *kelp_backend_value_next(const kelp_backend_value *value);
size_t kelp_backend_value_count(const kelp_backend_value *container);
const char *kelp_backend_value_name(const kelp_backend_value *member);
const char *kelp_backend_value_text(const kelp_backend_value *value, const char *fallback);
int64_t kelp_backend_value_i64(const kelp_backend_value *value, int64_t fallback);
double kelp_backend_value_f64(const kelp_backend_value *value, double fallback);
bool kelp_backend_value_bool(const kelp_backend_value *value, bool fallback);

/* A parameter of the configuration (`parameters { key: … value { string_value: … } }`), or
 * `fallback`. The number: INVALID_ARGUMENT naming the parameter when it is none. */
const char *kelp_backend_model_text(const kelp_backend_model *model, const char *name,
                                    const char *fallback);
kelp_status *kelp_backend_model_i64(const kelp_backend_model *model, const char *name,
                                    int64_t fallback, int64_t *out) KELP_MUST_USE;
kelp_status *kelp_backend_model_f64(const kelp_backend_model *model, const char *name,
                                    double fallback, double *out) KELP_MUST_USE;
kelp_status *kelp_backend_model_bool(const kelp_backend_model *model, const char *name,
                                     bool fallback, bool *out) KELP_MUST_USE;

/* An input or output as the configuration declares it: without the batch, -1 for any extent. */
typedef struct kelp_backend_io {
    const char *name;
    kelp_dtype dtype;
    int32_t rank;
    const int64_t *shape;
    bool is_optional;
} kelp_backend_io;
const kelp_backend_io *kelp_backend_model_inputs(const kelp_backend_model *model,
                                                 size_t *out_count);
const kelp_backend_io *kelp_backend_model_outputs(const kelp_backend_model *model,
                                                  size_t *out_count);

/* Whether the backend is to complete the configuration, and the way to do so: JSON with name,
 * max_batch_size, input, output and what else a backend may complete; the configuration is then
 * read anew. Only inside model_create. */
kelp_status *kelp_backend_model_wants_config(const kelp_backend_model *model,
                                             bool *out_wants) KELP_MUST_USE;
kelp_status *kelp_backend_model_set_config(kelp_backend_model *model, const char *json,
                                           size_t length) KELP_MUST_USE;

/* ---- Requests ---------------------------------------------------------------------------- */

TRITONBACKEND_Request *kelp_backend_request_raw(const kelp_backend_request *request);
kelp_backend_instance *kelp_backend_request_instance(const kelp_backend_request *request);
const char *kelp_backend_request_id(const kelp_backend_request *request); /* "" for none */
/* The sequence by number, 0 when it has none or a text; by text, "" when it has none or a number.
 */
uint64_t kelp_backend_request_sequence(const kelp_backend_request *request);
const char *kelp_backend_request_sequence_text(const kelp_backend_request *request);
bool kelp_backend_request_is_start(const kelp_backend_request *request); /* of a sequence */
bool kelp_backend_request_is_end(const kelp_backend_request *request);
/* The request's own time limit, 0 for none. */
uint64_t kelp_backend_request_timeout_us(const kelp_backend_request *request);
/* Whether whoever asked has given up. Long work looks now and then. */
bool kelp_backend_request_is_cancelled(const kelp_backend_request *request);
/* How much of the batch the request makes up: the first extent of its inputs, 1 without batches. */
int64_t kelp_backend_request_batch(const kelp_backend_request *request);

/* The outputs that are asked for. */
size_t kelp_backend_request_output_count(const kelp_backend_request *request);
const char *kelp_backend_request_output_name(const kelp_backend_request *request, size_t index);
bool kelp_backend_request_wants(const kelp_backend_request *request, const char *output_name);

/* A parameter of the request, or `fallback`. INVALID_ARGUMENT naming the parameter when it is of
 * another type; a whole number serves where f64 is asked for. */
kelp_status *kelp_backend_request_text(const kelp_backend_request *request, const char *name,
                                       const char *fallback, const char **out) KELP_MUST_USE;
kelp_status *kelp_backend_request_i64(const kelp_backend_request *request, const char *name,
                                      int64_t fallback, int64_t *out) KELP_MUST_USE;
kelp_status *kelp_backend_request_f64(const kelp_backend_request *request, const char *name,
                                      double fallback, double *out) KELP_MUST_USE;
kelp_status *kelp_backend_request_bool(const kelp_backend_request *request, const char *name,
                                       bool fallback, bool *out) KELP_MUST_USE;

/* All parameters in turn. The member that is valid depends on the type. False beyond the last. */
typedef struct kelp_backend_parameter {
    const char *name;
    TRITONSERVER_ParameterType type;
    const char *text;
    int64_t i64;
    double f64;
    bool boolean;
} kelp_backend_parameter;
bool kelp_backend_request_parameter(const kelp_backend_request *request, size_t index,
                                    kelp_backend_parameter *out);

/* Memory that lives until the request is released, aligned to 64 bytes. NULL when there is none.
 */
void *kelp_backend_request_alloc(kelp_backend_request *request, size_t size_bytes);

/* Keeps a request beyond the return of execute: the backend then ends it with
 * kelp_backend_release, on any thread. The model stays loaded until then. */
void kelp_backend_keep(kelp_backend_request *request);

/* Gives the request back, now; it and everything borrowed from it may not be used any more. What
 * was begun with kelp_backend_respond is sent. When that was not final and no factory lives, the
 * request is ended: with an error if it had no answer and the model is not decoupled. */
void kelp_backend_release(kelp_backend_request *take_request);

/* Answers with a failure, which is freed, as the final response. Does not release. Logged when the
 * request had its final answer already. */
void kelp_backend_fail(kelp_backend_request *request, kelp_status *take_status);

/* ---- Inputs ------------------------------------------------------------------------------ */

#define KELP_ANY_RANK (-1)

/* Whether the request has an input: optional ones may be missing. */
bool kelp_backend_has_input(const kelp_backend_request *request, const char *name);

/* An input as one read-only tensor in CPU memory, row-major: in place where the server has it in
 * one piece at an address for the type, else put together in the request's memory. KELP_STRING
 * gives an array of kelp_string whose bytes stay where they are. `dtype` KELP_DTYPE_INVALID takes
 * any type, `rank` KELP_ANY_RANK any rank (the batch counts). INVALID_ARGUMENT, with what was
 * expected and found, when the input is missing, of another type or rank, or its bytes do not make
 * up its shape; UNIMPLEMENTED in GPU memory. Borrowed until the request is released. */
kelp_status *kelp_backend_input(kelp_backend_request *request, const char *name, kelp_dtype dtype,
                                int32_t rank, kelp_tensor *out) KELP_MUST_USE;

/* The pieces of an input in turn, for those who need no contiguous copy. `shape` is borrowed. */
typedef struct kelp_backend_pieces {
    kelp_dtype dtype;
    int32_t rank;
    const int64_t *shape;
    uint64_t size_bytes; /* of all pieces */
    uint32_t count;      /* of pieces */
    uint32_t index;      /* of the next piece */
    const char *name;
    TRITONBACKEND_Input *raw;
} kelp_backend_pieces;
kelp_status *kelp_backend_pieces_init(kelp_backend_pieces *pieces,
                                      const kelp_backend_request *request,
                                      const char *name) KELP_MUST_USE;
/* `*out_data` is NULL behind the last piece. */
kelp_status *kelp_backend_pieces_next(kelp_backend_pieces *pieces, const void **out_data,
                                      size_t *out_size_bytes) KELP_MUST_USE;
/* Copies what is left of the pieces; RESOURCE_EXHAUSTED when it is more than `capacity_bytes`. */
kelp_status *kelp_backend_pieces_copy(kelp_backend_pieces *pieces, void *buffer,
                                      size_t capacity_bytes) KELP_MUST_USE;

/* The part [begin, end) of an axis: the same memory with other extents. OUT_OF_RANGE when there is
 * none. `out` may be `tensor`. */
kelp_status *kelp_backend_slice(const kelp_tensor *tensor, int32_t axis, int64_t begin, int64_t end,
                                kelp_tensor *out) KELP_MUST_USE;

/* The element of a tensor at an index of `rank` positions, in elements from its data. */
static inline int64_t kelp_backend_offset(const kelp_tensor *tensor, const int64_t *index) {
    int64_t offset = 0;
    for (int32_t i = 0; i < tensor->rank; i++)
        offset += index[i] * tensor->strides[i];
    return offset;
}
/* KELP_AT(const float, &x, i, j): as many positions as the tensor has dimensions. */
#define KELP_AT(type, tensor, ...) \
    (((type *)(tensor)->data)[kelp_backend_offset((tensor), (const int64_t[]){__VA_ARGS__})])

/* ---- Responses --------------------------------------------------------------------------- */

/* The response of a request that is being filled: made by the first call, and by the first after
 * it was sent. It need not be sent: when execute returns, or the request is released, that is done,
 * as the final one. FAILED_PRECONDITION when the request has had its final answer. */
kelp_status *kelp_backend_respond(kelp_backend_request *request,
                                  kelp_backend_response **out) KELP_MUST_USE;

TRITONBACKEND_Response *kelp_backend_response_raw(const kelp_backend_response *response);

/* Adds an output and gives its memory to write to: row-major, in CPU memory, until the response is
 * sent. `out_data` is the address of a pointer of any type. KELP_STRING is INVALID_ARGUMENT, its
 * size being unknown: use kelp_backend_put. A shape with negative extents, a type that Triton has
 * not: INVALID_ARGUMENT. */
kelp_status *kelp_backend_output_data(kelp_backend_response *response, const char *name,
                                      kelp_dtype dtype, int32_t rank, const int64_t *shape,
                                      void **out_data) KELP_MUST_USE;
#define kelp_backend_output(response, name, dtype, rank, shape, out_data) \
    kelp_backend_output_data((response), (name), (dtype), (rank), (shape), (void **)(out_data))

/* The same with the size that the output has on the wire, where each string is led by its length in
 * 4 bytes, little-endian: for who has strings in that form. */
kelp_status *kelp_backend_output_bytes(kelp_backend_response *response, const char *name,
                                       kelp_dtype dtype, int32_t rank, const int64_t *shape,
                                       size_t size_bytes, void **out_data) KELP_MUST_USE;

/* Adds an output with a copy of row-major data; for KELP_STRING `data` is an array of kelp_string.
 */
kelp_status *kelp_backend_put(kelp_backend_response *response, const char *name, kelp_dtype dtype,
                              int32_t rank, const int64_t *shape, const void *data) KELP_MUST_USE;
/* The same from a tensor with any strides, in CPU memory. */
kelp_status *kelp_backend_put_tensor(kelp_backend_response *response, const char *name,
                                     const kelp_tensor *tensor) KELP_MUST_USE;
kelp_status *kelp_backend_put_dltensor(kelp_backend_response *response, const char *name,
                                       const DLTensor *tensor) KELP_MUST_USE;

/* Adds a parameter to a response. */
kelp_status *kelp_backend_set_text(kelp_backend_response *response, const char *name,
                                   const char *value) KELP_MUST_USE;
kelp_status *kelp_backend_set_i64(kelp_backend_response *response, const char *name,
                                  int64_t value) KELP_MUST_USE;
kelp_status *kelp_backend_set_f64(kelp_backend_response *response, const char *name,
                                  double value) KELP_MUST_USE;
kelp_status *kelp_backend_set_bool(kelp_backend_response *response, const char *name,
                                   bool value) KELP_MUST_USE;

#define KELP_BACKEND_FINAL 1u /* no response follows */

/* Sends a response, which is gone then, whatever is returned. `take_error` is NULL, or a failure
 * that the response carries instead of its outputs. The response of a model that is not decoupled
 * is final in any case. FAILED_PRECONDITION when the request has had its final answer, which stays.
 * Threads that answer one request together see to it themselves that the final one is sent last. */
kelp_status *kelp_backend_send(kelp_backend_response *take_response, uint32_t flags,
                               kelp_status *take_error) KELP_MUST_USE;

/* Drops a response with what it holds, unsent. NULL does nothing. */
void kelp_backend_response_destroy(kelp_backend_response *take_response);

/* Writes a state of the request's sequence (sequence_batching.state of the configuration; its value
 * comes as an input), which the next request of the sequence will see. */
kelp_status *kelp_backend_put_state(kelp_backend_request *request, const char *name,
                                    const kelp_tensor *tensor) KELP_MUST_USE;

/* ---- Factories --------------------------------------------------------------------------- */

/* Makes a factory: responses to a request also after it is released, from any thread. The backend
 * destroys it. The model stays loaded until then. */
kelp_status *kelp_backend_factory_create(kelp_backend_request *request,
                                         kelp_backend_factory **out) KELP_MUST_USE;
/* A response that the backend owns until it sends or destroys it. Any thread. */
kelp_status *kelp_backend_factory_respond(kelp_backend_factory *factory,
                                          kelp_backend_response **out) KELP_MUST_USE;
/* Whether whoever asked has given up. Any thread. */
bool kelp_backend_factory_is_cancelled(const kelp_backend_factory *factory);
/* Says that no response follows, without one. FAILED_PRECONDITION when that was said. */
kelp_status *kelp_backend_factory_finish(kelp_backend_factory *factory) KELP_MUST_USE;
/* NULL does nothing. The last of request and factories to go ends a request that was not ended:
 * with an error if it had no answer and the model is not decoupled. */
void kelp_backend_factory_destroy(kelp_backend_factory *take_factory);

/* ---- Batches ----------------------------------------------------------------------------- */

/* Joins an input of several requests along the first dimension into one row-major tensor, in the
 * memory of the first request; in place when there is one request and one piece. Arguments as of
 * kelp_backend_input. INVALID_ARGUMENT when the other extents differ. */
kelp_status *kelp_backend_gather(kelp_backend_request **requests, size_t request_count,
                                 const char *name, kelp_dtype dtype, int32_t rank,
                                 kelp_tensor *out) KELP_MUST_USE;

/* The same for ragged batches (allow_ragged_batch): all elements of all requests, in a row. */
kelp_status *kelp_backend_gather_flat(kelp_backend_request **requests, size_t request_count,
                                      const char *name, kelp_dtype dtype,
                                      kelp_tensor *out) KELP_MUST_USE;

/* Splits an output of the whole batch, any strides, along the first dimension: each request that
 * wants it gets its part in the response that it is filling (kelp_backend_respond). With `like`,
 * the name of an input, the parts are as large as that input of each request and have its shape
 * (BATCH_SCATTER_WITH_INPUT_SHAPE of Triton's configuration); else they have the extents of
 * kelp_backend_request_batch. INVALID_ARGUMENT when the parts do not make up the tensor. */
kelp_status *kelp_backend_scatter(kelp_backend_request **requests, size_t request_count,
                                  const char *name, const char *like,
                                  const kelp_tensor *tensor) KELP_MUST_USE;

/* The inputs that `batch_input` of the configuration asks the backend to make from a batch (kinds
 * BATCH_ELEMENT_COUNT to BATCH_ITEM_SHAPE_FLATTEN of Triton's ModelConfig), as INT32, INT64 or
 * FP32. The tensor lies in the memory of the first request; its name is the configuration's. For
 * BATCH_MAX_ELEMENT_COUNT_AS_SHAPE only the shape means something. OUT_OF_RANGE beyond the last. */
size_t kelp_backend_batch_input_count(const kelp_backend_model *model);
kelp_status *kelp_backend_batch_input(kelp_backend_request **requests, size_t request_count,
                                      size_t index, const char **out_name,
                                      kelp_tensor *out) KELP_MUST_USE;

/* ---- Time -------------------------------------------------------------------------------- */

/* Statistics are reported without asking: the time of execute counts as inference. A backend that
 * prepares inputs and outputs apart says when the inference begins and ends. */
void kelp_backend_compute_begins(kelp_backend_instance *instance);
void kelp_backend_compute_ends(kelp_backend_instance *instance);

/* Nanoseconds on the clock of the statistics. */
uint64_t kelp_backend_now_ns(void);

/* ---- Inference by other models ----------------------------------------------------------- */

/* Makes a call of a model of the same server; version -1 lets its policy choose. `request`, which
 * may be NULL, is the one on whose behalf it is made: its trace gets a child, and cancelling it
 * cancels a call that is waited for. The backend destroys the call. */
kelp_status *kelp_backend_call_create(kelp_backend_model *model, kelp_backend_request *request,
                                      const char *model_name, int64_t model_version,
                                      kelp_backend_call **out) KELP_MUST_USE;

/* Adds an input. A row-major tensor is borrowed until the call is over; strided ones and strings
 * are copied. */
kelp_status *kelp_backend_call_input(kelp_backend_call *call, const char *name,
                                     const kelp_tensor *tensor) KELP_MUST_USE;
/* Asks for an output; a call that asks for none gets all. */
kelp_status *kelp_backend_call_wants(kelp_backend_call *call, const char *name) KELP_MUST_USE;
/* The handle, to set what has no function here (id, sequence, priority, time limit, parameters);
 * not after the start. */
TRITONSERVER_InferenceRequest *kelp_backend_call_raw(kelp_backend_call *call);

/* Called on a thread of the server for each response, which is then the last of those kept, and
 * once with `is_last` when no more comes and the inputs are free again. `failure` is NULL or what
 * the response says; borrowed. Calls do not overlap. May destroy the call when it is the last. */
typedef void (*kelp_backend_call_fn)(kelp_backend_call *call, const kelp_status *failure,
                                     bool is_last, void *userp);

/* Starts the call and returns. `fn` may be NULL, for who waits. On failure nothing is called, and
 * the call may be destroyed. On success it may be over, and destroyed by `fn`, at once. */
kelp_status *kelp_backend_call_start(kelp_backend_call *call, kelp_backend_call_fn fn,
                                     void *userp) KELP_MUST_USE;

/* Blocks until the call is over. Returns the failure of its first failed response, or
 * CANCELLED. Waiting for a model that needs this very instance never ends. Not in a callback. */
kelp_status *kelp_backend_call_wait(kelp_backend_call *call) KELP_MUST_USE;

/* What its first failed response said, NULL when none failed. As of the responses below. */
const kelp_status *kelp_backend_call_failure(const kelp_backend_call *call);

/* The responses that came and are kept, to be read in a callback or when the call is over. */
size_t kelp_backend_call_response_count(const kelp_backend_call *call);
/* An output of a response; type and rank are checked as by kelp_backend_input. Borrowed until the
 * call is cleared or destroyed. NOT_FOUND when there is none. */
kelp_status *kelp_backend_call_output(kelp_backend_call *call, size_t response_index,
                                      const char *name, kelp_dtype dtype, int32_t rank,
                                      kelp_tensor *out) KELP_MUST_USE;
/* Drops the responses that are kept: for a callback that has seen what it wanted of a stream. */
void kelp_backend_call_clear(kelp_backend_call *call);

/* Asks that the call be given up. Any thread. */
void kelp_backend_call_cancel(kelp_backend_call *call);

/* Frees the call; cancels it and waits for its end when it is under way, but for the last callback,
 * in which it is over. NULL does nothing. */
void kelp_backend_call_destroy(kelp_backend_call *take_call);

#ifdef __cplusplus
}
#endif
#endif
