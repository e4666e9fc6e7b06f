/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/backend.h: SDK for writing a Triton backend in C.
 *
 * A backend is a shared library libtriton_NAME.so that runs models for a server. This header and
 * the static library libkelp_backend.a use only the functions TRITONBACKEND_* and TRITONSERVER_*,
 * so that the library loads in any server that provides them, Kelp's or NVIDIA's. An example:
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
 * The SDK guarantees that each request gets exactly one final response (or, for a decoupled model,
 * a stream of responses that ends), even if the backend fails or forgets to respond; that each
 * request is released once; that statistics are reported; and that statuses become Triton errors.
 * It never aborts.
 *
 * Unless stated otherwise:
 *   - The caller owns a returned kelp_status; NULL means success.
 *   - Returned pointers are borrowed and valid as long as the object that returned them.
 *   - Names and strings passed in are copied. Returned strings are terminated by NUL.
 *   - An object is used by one thread at a time; functions and sections that are thread-safe say
 *     so.
 *   - A function that cannot allocate memory fails with RESOURCE_EXHAUSTED. Errors of the server
 *     have the corresponding code: TRITONSERVER_ERROR_UNSUPPORTED is UNIMPLEMENTED.
 *
 * Source: Triton's backend API (triton/core/tritonbackend.h). The `raw` functions return its
 * handles.
 */
#ifndef KELP_BACKEND_H_
#define KELP_BACKEND_H_

#include <kelp/status.h>
#include <kelp/tensor.h>
#include <triton/core/tritonbackend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The backend, as loaded by its server. Thread-safe. */
typedef struct kelp_backend_host kelp_backend_host;

/* A loaded version of a model. Thread-safe. */
typedef struct kelp_backend_model kelp_backend_model;

/* An instance of a model, which executes requests. */
typedef struct kelp_backend_instance kelp_backend_instance;

/* A request that is being executed. */
typedef struct kelp_backend_request kelp_backend_request;

/* A response that is being filled in. */
typedef struct kelp_backend_response kelp_backend_response;

/* Creates responses to a request, also after the request has been released. */
typedef struct kelp_backend_factory kelp_backend_factory;

/* An inference by another model of the same server. */
typedef struct kelp_backend_call kelp_backend_call;

/* A node of a model's configuration. */
typedef struct kelp_backend_value kelp_backend_value;

/* ---- Definition ---- */

/* Flag: instances of a model may be created on several threads at once. */
#define KELP_BACKEND_PARALLEL_LOADING 1u

/* Flag: all instances on one GPU share a thread (TRITONBACKEND_EXECUTION_DEVICE_BLOCKING). */
#define KELP_BACKEND_DEVICE_BLOCKING 2u

/* Flag: executions do not wait for time, contended locks, files, sockets or other models. Kelp's
 * server then runs them on the thread that submits the request, possibly an event loop, without a
 * thread switch. Other servers ignore the flag. */
#define KELP_BACKEND_DOES_NOT_BLOCK 4u

/* Definition of a backend. Set exactly one of `execute` and `execute_one`; all other functions may
 * be NULL. If a create function stores a state in `*out_state` and then fails, the destroy function
 * is called with this state. Destroy functions are not called with NULL. */
typedef struct kelp_backend_definition {
    size_t struct_size; /* sizeof(kelp_backend_definition) */
    const char *name;   /* name in messages, a static string */
    uint32_t flags;     /* bits of KELP_BACKEND_* */
    /* Called when the library is loaded. */
    kelp_status *(*create)(kelp_backend_host *host, void **out_state);
    /* Called after the last model has been unloaded. */
    void (*destroy)(void *state);
    /* Called on the loading thread when a model is loaded; may call kelp_backend_model_set_config.
     * A failure rejects the model. */
    kelp_status *(*model_create)(kelp_backend_model *model, void **out_state);
    /* Called on any thread when a model is unloaded. */
    void (*model_destroy)(void *state);
    /* Called for each instance of a model. */
    kelp_status *(*instance_create)(kelp_backend_instance *instance, void **out_state);
    /* Called for each instance, on any thread. */
    void (*instance_destroy)(void *state);
    /* Returns NULL if the instance can execute requests, otherwise the reason. Called on any
     * thread, also during an execution. */
    kelp_status *(*ready)(kelp_backend_instance *instance);
    /* Returns true if this request blocks or takes long, so that the server runs it on a thread of
     * the server. Called only with KELP_BACKEND_DOES_NOT_BLOCK, when a request is submitted, on any
     * thread, also during executions. The request has no instance and is valid during the call
     * only. NULL: no request blocks. */
    bool (*may_block)(kelp_backend_model *model, kelp_backend_request *request);
    /* Executes requests, one call at a time per instance, on the thread of the instance or, with
     * KELP_BACKEND_DOES_NOT_BLOCK, on the thread that submits a request. After it returns, the SDK
     * completes each request that was neither released nor kept (kelp_backend_keep). On success,
     * the SDK sends the request's response if it is unsent. On failure, the SDK sends the status,
     * unless a final response was sent before. Then the SDK releases the request. */
    kelp_status *(*execute)(kelp_backend_instance *instance, kelp_backend_request **requests,
                            size_t request_count);
    /* Executes one request; otherwise as `execute`. A failure affects only this request. */
    kelp_status *(*execute_one)(kelp_backend_instance *instance, kelp_backend_request *request);
    /* Decides which queued requests form a batch, in addition to the rules of dynamic_batching.
     * Set it only with KELP_TRITON_BACKEND_WITH_BATCHING. Called for each request in the order of
     * the queue. `batch_state` is a state of `batch_state_bytes` bytes, which is zero when a batch
     * begins. `*out_include` false ends the batch before this request; the first request of a batch
     * is always included. A failure is logged and also ends the batch. Called on any thread, also
     * during executions, but by one thread at a time for each model, with a lock of the server
     * held: it must not block, and may only read its arguments. The request has no instance and is
     * valid during the call only. */
    kelp_status *(*batch_include)(kelp_backend_model *model, void *batch_state,
                                  kelp_backend_request *request, bool *out_include);
    size_t batch_state_bytes; /* size of the state of a batch; may be 0 */
} kelp_backend_definition;

/* Defines the entry points of the library for a definition, an object at file scope. */
#define KELP_TRITON_BACKEND(definition) KELP_BACKEND_ENTRY_POINTS_(definition, false)

/* Defines the entry points of KELP_TRITON_BACKEND and those of a batching strategy
 * (TRITONBACKEND_ModelBatch*), for a definition with `batch_include`. Kelp's server uses the
 * strategy for all models of the backend with dynamic_batching. NVIDIA's server uses it for models
 * with the parameter TRITON_BATCH_STRATEGY_PATH, the path of the library. */
#define KELP_TRITON_BACKEND_WITH_BATCHING(definition)                                             \
    TRITONSERVER_Error *TRITONBACKEND_ModelBatcherInitialize(TRITONBACKEND_Batcher **batcher_,    \
                                                             TRITONBACKEND_Model *model_) {       \
        return kelp_backend_entry_batcher_initialize(&(definition), batcher_, model_);            \
    }                                                                                             \
    TRITONSERVER_Error *TRITONBACKEND_ModelBatcherFinalize(TRITONBACKEND_Batcher *batcher_) {     \
        return kelp_backend_entry_batcher_finalize(batcher_);                                     \
    }                                                                                             \
    TRITONSERVER_Error *TRITONBACKEND_ModelBatchInitialize(const TRITONBACKEND_Batcher *batcher_, \
                                                           void **userp_) {                       \
        return kelp_backend_entry_batch_initialize(batcher_, userp_);                             \
    }                                                                                             \
    TRITONSERVER_Error *TRITONBACKEND_ModelBatchIncludeRequest(                                   \
        TRITONBACKEND_Request *request_, void *userp_, bool *should_include_) {                   \
        return kelp_backend_entry_batch_include(request_, userp_, should_include_);               \
    }                                                                                             \
    TRITONSERVER_Error *TRITONBACKEND_ModelBatchFinalize(void *userp_) {                          \
        return kelp_backend_entry_batch_finalize(userp_);                                         \
    }                                                                                             \
    KELP_BACKEND_ENTRY_POINTS_(definition, true)

/* Implements the two macros. */
#define KELP_BACKEND_ENTRY_POINTS_(definition, exports_batching)                                   \
    TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend_) {                \
        return kelp_backend_entry_initialize(&(definition), exports_batching, backend_);           \
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

/* Returns true if the execution of a request may block, and false if it can run on the submitting
 * thread. Kelp's server looks for this entry point in addition to Triton's. If `request` is NULL,
 * returns true if every execution may block; the server then does not call it for each request.
 * Called after ModelInitialize, on any thread, also during executions. Backends without the SDK may
 * define it too. */
TRITONBACKEND_ISPEC bool KELP_BACKEND_MayBlock(TRITONBACKEND_Model *model,
                                               TRITONBACKEND_Request *request);

/* ---- Entry points ----
 *
 * The code that KELP_TRITON_BACKEND generates calls these functions. Their errors and threads are
 * those of Triton's entry points. */

/* Implements TRITONBACKEND_Initialize. `exports_batching`: the library has the entry points of a
 * batching strategy. */
TRITONSERVER_Error *kelp_backend_entry_initialize(const kelp_backend_definition *definition,
                                                  bool exports_batching,
                                                  TRITONBACKEND_Backend *backend);

/* Implements TRITONBACKEND_Finalize. */
TRITONSERVER_Error *kelp_backend_entry_finalize(TRITONBACKEND_Backend *backend);

/* Implements TRITONBACKEND_GetBackendAttribute. */
TRITONSERVER_Error *kelp_backend_entry_attributes(TRITONBACKEND_Backend *backend,
                                                  TRITONBACKEND_BackendAttribute *attributes);

/* Implements TRITONBACKEND_ModelInitialize. */
TRITONSERVER_Error *kelp_backend_entry_model_initialize(TRITONBACKEND_Model *model);

/* Implements TRITONBACKEND_ModelFinalize. */
TRITONSERVER_Error *kelp_backend_entry_model_finalize(TRITONBACKEND_Model *model);

/* Implements TRITONBACKEND_ModelInstanceInitialize. */
TRITONSERVER_Error *kelp_backend_entry_instance_initialize(TRITONBACKEND_ModelInstance *instance);

/* Implements TRITONBACKEND_ModelInstanceFinalize. */
TRITONSERVER_Error *kelp_backend_entry_instance_finalize(TRITONBACKEND_ModelInstance *instance);

/* Implements TRITONBACKEND_ModelInstanceReady. */
TRITONSERVER_Error *kelp_backend_entry_instance_ready(TRITONBACKEND_ModelInstance *instance);

/* Implements TRITONBACKEND_ModelInstanceExecute. */
TRITONSERVER_Error *kelp_backend_entry_execute(TRITONBACKEND_ModelInstance *instance,
                                               TRITONBACKEND_Request **requests,
                                               uint32_t request_count);

/* Implements KELP_BACKEND_MayBlock. */
bool kelp_backend_entry_may_block(const kelp_backend_definition *definition,
                                  TRITONBACKEND_Model *model, TRITONBACKEND_Request *request);

/* Implements TRITONBACKEND_ModelBatcherInitialize. */
TRITONSERVER_Error *kelp_backend_entry_batcher_initialize(const kelp_backend_definition *definition,
                                                          TRITONBACKEND_Batcher **batcher,
                                                          TRITONBACKEND_Model *model);

/* Implements TRITONBACKEND_ModelBatcherFinalize. */
TRITONSERVER_Error *kelp_backend_entry_batcher_finalize(TRITONBACKEND_Batcher *batcher);

/* Implements TRITONBACKEND_ModelBatchInitialize. */
TRITONSERVER_Error *kelp_backend_entry_batch_initialize(const TRITONBACKEND_Batcher *batcher,
                                                        void **userp);

/* Implements TRITONBACKEND_ModelBatchIncludeRequest. */
TRITONSERVER_Error *kelp_backend_entry_batch_include(TRITONBACKEND_Request *request, void *userp,
                                                     bool *should_include);

/* Implements TRITONBACKEND_ModelBatchFinalize. */
TRITONSERVER_Error *kelp_backend_entry_batch_finalize(void *userp);

/* ---- Statuses, errors and log ----
 *
 * All functions of this section are thread-safe. */

/* Converts an error of Triton's API to a status and frees the error. Returns NULL for NULL. */
kelp_status *kelp_backend_status(TRITONSERVER_Error *take_error) KELP_MUST_USE;

/* Converts a status to an error of Triton's API, with the messages of its causes, and frees the
 * status. Returns NULL for NULL. */
TRITONSERVER_Error *kelp_backend_error(kelp_status *take_status) KELP_MUST_USE;

/* Writes to the server's log. Returns quickly if the level is disabled. */
void kelp_backend_log(TRITONSERVER_LogLevel level, const char *file, int line, const char *format,
                      ...) KELP_PRINTF(4, 5);

/* Logs at level INFO from the current source location. */
#define KELP_BACKEND_INFO(...) \
    kelp_backend_log(TRITONSERVER_LOG_INFO, __FILE__, __LINE__, __VA_ARGS__)

/* Logs at level WARN from the current source location. */
#define KELP_BACKEND_WARN(...) \
    kelp_backend_log(TRITONSERVER_LOG_WARN, __FILE__, __LINE__, __VA_ARGS__)

/* Logs at level VERBOSE from the current source location. */
#define KELP_BACKEND_VERBOSE(...) \
    kelp_backend_log(TRITONSERVER_LOG_VERBOSE, __FILE__, __LINE__, __VA_ARGS__)

/* Logs a failure that cannot be reported otherwise, as an error, and frees it. `doing` states what
 * failed. Has no effect for NULL. */
void kelp_backend_log_status(const char *file, int line, const char *doing,
                             kelp_status *take_status);

/* Logs a failure from the current source location; see kelp_backend_log_status. */
#define KELP_BACKEND_LOG_STATUS(doing, take_status) \
    kelp_backend_log_status(__FILE__, __LINE__, (doing), (take_status))

/* ---- Hosts, models and instances ----
 *
 * All functions of this section are thread-safe. */

/* Returns Triton's handle. */
TRITONBACKEND_Backend *kelp_backend_host_raw(const kelp_backend_host *host);

/* Returns the state that `create` set. */
void *kelp_backend_host_state(const kelp_backend_host *host);

/* Returns the directory that the library was loaded from. */
const char *kelp_backend_host_directory(const kelp_backend_host *host);

/* Returns a setting of the server's command line (--backend-config NAME,KEY=VALUE), or `fallback`.
 */
const char *kelp_backend_host_setting(const kelp_backend_host *host, const char *key,
                                      const char *fallback);

/* Returns Triton's handle. */
TRITONBACKEND_Model *kelp_backend_model_raw(const kelp_backend_model *model);

/* Returns the backend. */
kelp_backend_host *kelp_backend_model_host(const kelp_backend_model *model);

/* Returns the state that `model_create` set. */
void *kelp_backend_model_state(const kelp_backend_model *model);

/* Returns the name. */
const char *kelp_backend_model_name(const kelp_backend_model *model);

/* Returns the version number. */
uint64_t kelp_backend_model_version(const kelp_backend_model *model);

/* Returns the directory of the model, which contains one directory per version. */
const char *kelp_backend_model_directory(const kelp_backend_model *model);

/* Returns max_batch_size. It is 0 for a model without batching; for other models, the first
 * dimension of each tensor is the batch dimension. */
int64_t kelp_backend_model_max_batch(const kelp_backend_model *model);

/* Returns true if a request may have any number of responses. */
bool kelp_backend_model_is_decoupled(const kelp_backend_model *model);

/* Returns Triton's handle. */
TRITONBACKEND_ModelInstance *kelp_backend_instance_raw(const kelp_backend_instance *instance);

/* Returns the model. */
kelp_backend_model *kelp_backend_instance_model(const kelp_backend_instance *instance);

/* Returns the state that `instance_create` set. */
void *kelp_backend_instance_state(const kelp_backend_instance *instance);

/* Returns the name. */
const char *kelp_backend_instance_name(const kelp_backend_instance *instance);

/* Returns the kind of device that the instance runs on. */
TRITONSERVER_InstanceGroupKind kelp_backend_instance_kind(const kelp_backend_instance *instance);

/* Returns the index of the device; 0 for the CPU. */
int32_t kelp_backend_instance_device(const kelp_backend_instance *instance);

/* ---- Configuration ----
 *
 * All functions of this section are thread-safe, except kelp_backend_model_set_config. */

/* Returns the model's configuration as an object with the member names of Triton's ModelConfig and
 * all defaults filled in. */
const kelp_backend_value *kelp_backend_model_config(const kelp_backend_model *model);

/* Returns a member of an object, or NULL. `object` may be NULL. All functions that read values
 * accept NULL and then return NULL or the fallback. */
const kelp_backend_value *kelp_backend_value_get(const kelp_backend_value *object,
                                                 const char *name);

/* Returns the first member or element, or NULL. */
const kelp_backend_value *kelp_backend_value_first(const kelp_backend_value *container);

/* Returns the next member or element, or NULL. */
const kelp_backend_value *kelp_backend_value_next(const kelp_backend_value *value);

/* Returns the number of members or elements. */
size_t kelp_backend_value_count(const kelp_backend_value *container);

/* Returns the name of a member, or NULL. */
const char *kelp_backend_value_name(const kelp_backend_value *member);

/* Returns a string, or `fallback` if the value is not a string. */
const char *kelp_backend_value_text(const kelp_backend_value *value, const char *fallback);

/* Returns an integer, also from a string of digits, or `fallback`. */
int64_t kelp_backend_value_i64(const kelp_backend_value *value, int64_t fallback);

/* Returns a number, or `fallback`. */
double kelp_backend_value_f64(const kelp_backend_value *value, double fallback);

/* Returns a bool, or `fallback`. */
bool kelp_backend_value_bool(const kelp_backend_value *value, bool fallback);

/* Returns a parameter of the configuration (`parameters { key: … value { string_value: … } }`), or
 * `fallback`. */
const char *kelp_backend_model_text(const kelp_backend_model *model, const char *name,
                                    const char *fallback);

/* Gets a parameter as an integer, or `fallback` if it is absent. Fails with INVALID_ARGUMENT if it
 * is not an integer. */
kelp_status *kelp_backend_model_i64(const kelp_backend_model *model, const char *name,
                                    int64_t fallback, int64_t *out) KELP_MUST_USE;

/* Gets a parameter as a number, or `fallback` if it is absent. Fails with INVALID_ARGUMENT if it is
 * not a number. */
kelp_status *kelp_backend_model_f64(const kelp_backend_model *model, const char *name,
                                    double fallback, double *out) KELP_MUST_USE;

/* Gets a parameter as a bool, or `fallback` if it is absent. Fails with INVALID_ARGUMENT if it is
 * not a bool. */
kelp_status *kelp_backend_model_bool(const kelp_backend_model *model, const char *name,
                                     bool fallback, bool *out) KELP_MUST_USE;

/* An input or output as declared in the configuration. */
typedef struct kelp_backend_io {
    const char *name;     /* name */
    kelp_dtype dtype;     /* element type */
    int32_t rank;         /* number of dimensions, without the batch dimension */
    const int64_t *shape; /* dimensions, without the batch dimension; -1 for any */
    bool is_optional;     /* the input may be missing in a request */
} kelp_backend_io;

/* Returns the declared inputs. */
const kelp_backend_io *kelp_backend_model_inputs(const kelp_backend_model *model,
                                                 size_t *out_count);

/* Returns the declared outputs. */
const kelp_backend_io *kelp_backend_model_outputs(const kelp_backend_model *model,
                                                  size_t *out_count);

/* Gets whether the server expects the backend to complete the configuration. */
kelp_status *kelp_backend_model_wants_config(const kelp_backend_model *model,
                                             bool *out_wants) KELP_MUST_USE;

/* Sets the inputs and outputs of the configuration; a count of 0 keeps the declared ones. A scalar
 * is declared with dims [ 1 ] and a `reshape` to no dimensions. The configuration is then read
 * again. Call only in model_create. Fails with UNIMPLEMENTED for a type that Triton lacks. */
kelp_status *kelp_backend_model_complete(kelp_backend_model *model, const kelp_backend_io *inputs,
                                         size_t input_count, const kelp_backend_io *outputs,
                                         size_t output_count) KELP_MUST_USE;

/* Completes the configuration with JSON: name, max_batch_size, input, output and the other members
 * that a backend may complete. The configuration is then read again. Call only in model_create. */
kelp_status *kelp_backend_model_set_config(kelp_backend_model *model, const char *json,
                                           size_t length) KELP_MUST_USE;

/* ---- Requests ---- */

/* Returns Triton's handle. */
TRITONBACKEND_Request *kelp_backend_request_raw(const kelp_backend_request *request);

/* Returns the instance that executes the request. */
kelp_backend_instance *kelp_backend_request_instance(const kelp_backend_request *request);

/* Returns the id, or "". */
const char *kelp_backend_request_id(const kelp_backend_request *request);

/* Returns the sequence as a number; 0 if there is none or it is a string. */
uint64_t kelp_backend_request_sequence(const kelp_backend_request *request);

/* Returns the sequence as a string; "" if there is none or it is a number. */
const char *kelp_backend_request_sequence_text(const kelp_backend_request *request);

/* Returns true if the request starts its sequence. */
bool kelp_backend_request_is_start(const kelp_backend_request *request);

/* Returns true if the request ends its sequence. */
bool kelp_backend_request_is_end(const kelp_backend_request *request);

/* Returns the request's timeout in microseconds; 0 for none. */
uint64_t kelp_backend_request_timeout_us(const kelp_backend_request *request);

/* Returns true if the client has cancelled the request. Long executions should poll it. */
bool kelp_backend_request_is_cancelled(const kelp_backend_request *request);

/* Returns the batch size of the request, which is the first dimension of its inputs; 1 for a model
 * without batching. */
int64_t kelp_backend_request_batch(const kelp_backend_request *request);

/* Returns the number of requested outputs. */
size_t kelp_backend_request_output_count(const kelp_backend_request *request);

/* Returns the name of a requested output, or NULL if `index` is out of range. */
const char *kelp_backend_request_output_name(const kelp_backend_request *request, size_t index);

/* Returns true if the output is requested. */
bool kelp_backend_request_wants(const kelp_backend_request *request, const char *output_name);

/* Gets a string parameter of the request, or `fallback` if it is absent. This function and the next
 * three fail with INVALID_ARGUMENT if the parameter has another type. */
kelp_status *kelp_backend_request_text(const kelp_backend_request *request, const char *name,
                                       const char *fallback, const char **out) KELP_MUST_USE;

/* Gets an integer parameter. */
kelp_status *kelp_backend_request_i64(const kelp_backend_request *request, const char *name,
                                      int64_t fallback, int64_t *out) KELP_MUST_USE;

/* Gets a floating-point parameter; accepts an integer. */
kelp_status *kelp_backend_request_f64(const kelp_backend_request *request, const char *name,
                                      double fallback, double *out) KELP_MUST_USE;

/* Gets a bool parameter. */
kelp_status *kelp_backend_request_bool(const kelp_backend_request *request, const char *name,
                                       bool fallback, bool *out) KELP_MUST_USE;

/* A parameter of a request. `type` tells which of the values is set. */
typedef struct kelp_backend_parameter {
    const char *name;                /* name */
    TRITONSERVER_ParameterType type; /* type */
    const char *text;                /* value of a string */
    int64_t i64;                     /* value of an integer */
    double f64;                      /* value of a double */
    bool boolean;                    /* value of a bool */
} kelp_backend_parameter;

/* Enumerates the parameters. Returns false if `index` is out of range. */
bool kelp_backend_request_parameter(const kelp_backend_request *request, size_t index,
                                    kelp_backend_parameter *out);

/* Allocates memory, aligned to 64 bytes, that is freed when the request is released. Returns NULL
 * if memory is exhausted. */
void *kelp_backend_request_alloc(kelp_backend_request *request, size_t size_bytes);

/* Keeps a request after execute returns. The backend must release it with kelp_backend_release, on
 * any thread. The model stays loaded until then. */
void kelp_backend_keep(kelp_backend_request *request);

/* Completes and releases a request. The request and all pointers borrowed from it become invalid.
 * An unsent response is sent. If no final response was sent and no factory exists, the SDK ends the
 * request; if the request had no response and the model is not decoupled, the client gets an error.
 */
void kelp_backend_release(kelp_backend_request *take_request);

/* Sends a failure as the final response and frees `take_status`. Does not release the request.
 * Only logs the failure if a final response was sent before. */
void kelp_backend_fail(kelp_backend_request *request, kelp_status *take_status);

/* ---- Memory ---- */

/* A kind of memory, and the number of its device. */
typedef struct kelp_backend_memory {
    TRITONSERVER_MemoryType type; /* CPU, CPU_PINNED or GPU */
    int64_t id;                   /* number of the GPU; 0 for other memory */
} kelp_backend_memory;

/* Memory of the host. */
#define KELP_BACKEND_HOST_MEMORY ((kelp_backend_memory){TRITONSERVER_MEMORY_CPU, 0})

/* Returns the memory that is fastest for an instance: that of its GPU for KIND_GPU, otherwise host
 * memory. Thread-safe. */
kelp_backend_memory kelp_backend_instance_memory(const kelp_backend_instance *instance);

/* ---- Inputs ---- */

/* Accepts any rank. */
#define KELP_ANY_RANK (-1)

/* Returns true if the request has this input. */
bool kelp_backend_has_input(const kelp_backend_request *request, const char *name);

/* Gets an input as a read-only row-major tensor in host memory. The input is copied to memory of
 * the request only if the server does not hold it in one aligned buffer. For KELP_STRING, `out` is
 * an array of kelp_string that points to the bytes of the request. `dtype` KELP_DTYPE_INVALID
 * accepts any type. `rank` includes the batch dimension; KELP_ANY_RANK accepts any rank. Borrowed
 * until the request is released. Fails with INVALID_ARGUMENT if the input is missing, has another
 * type or rank, or its size does not match its shape (the message states the expected and the
 * actual value), and UNIMPLEMENTED if it is in GPU memory. */
kelp_status *kelp_backend_input(kelp_backend_request *request, const char *name, kelp_dtype dtype,
                                int32_t rank, kelp_tensor *out) KELP_MUST_USE;

/* Gets an input in the memory that `preferred` names, or in the memory where the server holds it;
 * `out->device` tells which. KELP_BACKEND_HOST_MEMORY only prefers host memory: use
 * kelp_backend_input for code that cannot read other memory. Otherwise as kelp_backend_input. Fails
 * with UNIMPLEMENTED if the input would have to be copied from GPU memory, which is the case for
 * KELP_STRING and for several or unaligned buffers. */
kelp_status *kelp_backend_input_in(kelp_backend_request *request, const char *name,
                                   kelp_dtype dtype, int32_t rank, kelp_backend_memory preferred,
                                   kelp_tensor *out) KELP_MUST_USE;

/* Iterator over the buffers of an input, for code that needs no contiguous copy. Buffers in GPU
 * memory fail with UNIMPLEMENTED. */
typedef struct kelp_backend_pieces {
    kelp_dtype dtype;         /* element type */
    int32_t rank;             /* number of dimensions */
    const int64_t *shape;     /* dimensions, borrowed */
    uint64_t size_bytes;      /* size of all buffers */
    uint32_t count;           /* number of buffers */
    uint32_t index;           /* index of the next buffer */
    const char *name;         /* name of the input */
    TRITONBACKEND_Input *raw; /* Triton's handle */
} kelp_backend_pieces;

/* Starts the iteration. Fails with INVALID_ARGUMENT if there is no such input. */
kelp_status *kelp_backend_pieces_init(kelp_backend_pieces *pieces,
                                      const kelp_backend_request *request,
                                      const char *name) KELP_MUST_USE;

/* Gets the next buffer; `*out_data` is NULL after the last one. */
kelp_status *kelp_backend_pieces_next(kelp_backend_pieces *pieces, const void **out_data,
                                      size_t *out_size_bytes) KELP_MUST_USE;

/* Copies the remaining buffers. Fails with RESOURCE_EXHAUSTED if they exceed `capacity_bytes`. */
kelp_status *kelp_backend_pieces_copy(kelp_backend_pieces *pieces, void *buffer,
                                      size_t capacity_bytes) KELP_MUST_USE;

/* Creates a view of the elements [begin, end) along an axis, without a copy. `out` may be `tensor`.
 * Fails with OUT_OF_RANGE if the axis or the range is invalid. */
kelp_status *kelp_backend_slice(const kelp_tensor *tensor, int32_t axis, int64_t begin, int64_t end,
                                kelp_tensor *out) KELP_MUST_USE;

/* Returns the offset, in elements, of the element at `index`, which has one position per
 * dimension. */
static inline int64_t kelp_backend_offset(const kelp_tensor *tensor, const int64_t *index) {
    int64_t offset = 0;
    for (int32_t i = 0; i < tensor->rank; i++)
        offset += index[i] * tensor->strides[i];
    return offset;
}

/* Accesses an element: KELP_AT(const float, &x, i, j), with as many positions as the tensor has
 * dimensions. */
#define KELP_AT(type, tensor, ...) \
    (((type *)(tensor)->data)[kelp_backend_offset((tensor), (const int64_t[]){__VA_ARGS__})])

/* ---- Responses ---- */

/* Gets the current response of a request. Creates one if there is none or the last one was sent. A
 * response that the backend does not send itself is sent as the final response when execute returns
 * or the request is released. Fails with FAILED_PRECONDITION if a final response was sent. */
kelp_status *kelp_backend_respond(kelp_backend_request *request,
                                  kelp_backend_response **out) KELP_MUST_USE;

/* Returns Triton's handle. */
TRITONBACKEND_Response *kelp_backend_response_raw(const kelp_backend_response *response);

/* Adds an output and gets its row-major host memory, which is writable until the response is sent.
 * If the client provides no memory, because it does not read the output, the memory is discarded.
 * Fails with INVALID_ARGUMENT for KELP_STRING (use kelp_backend_put), types that Triton lacks and
 * negative dimensions, and UNIMPLEMENTED if the server provides GPU memory. */
kelp_status *kelp_backend_output_data(kelp_backend_response *response, const char *name,
                                      kelp_dtype dtype, int32_t rank, const int64_t *shape,
                                      void **out_data) KELP_MUST_USE;

/* Adds an output as kelp_backend_output_data does. `out_data` is the address of a pointer of any
 * type. */
#define kelp_backend_output(response, name, dtype, rank, shape, out_data) \
    kelp_backend_output_data((response), (name), (dtype), (rank), (shape), (void **)(out_data))

/* Adds an output with the type and shape of a dense tensor, and sets the tensor's `data` to the
 * memory of the output. Otherwise as kelp_backend_output_data. */
kelp_status *kelp_backend_output_tensor(kelp_backend_response *response, const char *name,
                                        kelp_tensor *inout_tensor) KELP_MUST_USE;

/* Adds an output of a given size in bytes. For KELP_STRING, the memory has Triton's format: each
 * string after its length in 4 bytes, little-endian. */
kelp_status *kelp_backend_output_bytes(kelp_backend_response *response, const char *name,
                                       kelp_dtype dtype, int32_t rank, const int64_t *shape,
                                       size_t size_bytes, void **out_data) KELP_MUST_USE;

/* Adds an output with the type and shape of a dense tensor in the memory that `preferred` names, or
 * in other memory if the server has none of this kind. Sets `data` and `device` of the tensor to
 * the memory of the output: the caller must check `device`. Otherwise as kelp_backend_output_data,
 * but GPU memory is not an error. */
kelp_status *kelp_backend_output_in(kelp_backend_response *response, const char *name,
                                    kelp_backend_memory preferred,
                                    kelp_tensor *inout_tensor) KELP_MUST_USE;

/* Adds an output with a copy of row-major data. For KELP_STRING, `data` is an array of
 * kelp_string. */
kelp_status *kelp_backend_put(kelp_backend_response *response, const char *name, kelp_dtype dtype,
                              int32_t rank, const int64_t *shape, const void *data) KELP_MUST_USE;

/* Adds an output with a copy of a tensor in host memory, with any strides. */
kelp_status *kelp_backend_put_tensor(kelp_backend_response *response, const char *name,
                                     const kelp_tensor *tensor) KELP_MUST_USE;

/* Adds an output with a copy of a DLTensor in host memory, with any strides. */
kelp_status *kelp_backend_put_dltensor(kelp_backend_response *response, const char *name,
                                       const DLTensor *tensor) KELP_MUST_USE;

/* Adds a string parameter to a response. */
kelp_status *kelp_backend_set_text(kelp_backend_response *response, const char *name,
                                   const char *value) KELP_MUST_USE;

/* Adds an integer parameter to a response. */
kelp_status *kelp_backend_set_i64(kelp_backend_response *response, const char *name,
                                  int64_t value) KELP_MUST_USE;

/* Adds a floating-point parameter to a response. */
kelp_status *kelp_backend_set_f64(kelp_backend_response *response, const char *name,
                                  double value) KELP_MUST_USE;

/* Adds a bool parameter to a response. */
kelp_status *kelp_backend_set_bool(kelp_backend_response *response, const char *name,
                                   bool value) KELP_MUST_USE;

/* Flag of kelp_backend_send: no response follows. */
#define KELP_BACKEND_FINAL 1u

/* Sends a response. The response becomes invalid even if this function fails. `take_error` is NULL,
 * or a failure that is sent instead of outputs. Responses of a model that is not decoupled are
 * always final. If several threads respond to one request, the backend must ensure that the final
 * response is sent last. Fails with FAILED_PRECONDITION if a final response was sent. */
kelp_status *kelp_backend_send(kelp_backend_response *take_response, uint32_t flags,
                               kelp_status *take_error) KELP_MUST_USE;

/* Destroys a response without sending it. NULL is allowed. */
void kelp_backend_response_destroy(kelp_backend_response *take_response);

/* Writes a state of the request's sequence. `name` is an output_name of sequence_batching.state in
 * the configuration; the next request of the sequence receives the value as the input of that
 * entry. Without this call, it receives the same value as this request. The contents are copied.
 * Fails with INVALID_ARGUMENT if the configuration has no such state or the type differs. Not after
 * the request's release. */
kelp_status *kelp_backend_put_state(kelp_backend_request *request, const char *name,
                                    const kelp_tensor *tensor) KELP_MUST_USE;

/* ---- Factories ----
 *
 * Functions of this section are thread-safe except kelp_backend_factory_create. */

/* Creates a factory, which creates responses to a request also after the request is released. The
 * backend destroys the factory. The model stays loaded until then. */
kelp_status *kelp_backend_factory_create(kelp_backend_request *request,
                                         kelp_backend_factory **out) KELP_MUST_USE;

/* Creates a response. The backend sends or destroys it. */
kelp_status *kelp_backend_factory_respond(kelp_backend_factory *factory,
                                          kelp_backend_response **out) KELP_MUST_USE;

/* Returns true if the client has cancelled the request. */
bool kelp_backend_factory_is_cancelled(const kelp_backend_factory *factory);

/* Ends the request without a further response. Fails with FAILED_PRECONDITION if it has ended
 * already. */
kelp_status *kelp_backend_factory_finish(kelp_backend_factory *factory) KELP_MUST_USE;

/* Destroys a factory. NULL is allowed. If the request is released, this is its last factory and no
 * final response was sent, the SDK ends the request; if the request had no response and the model
 * is not decoupled, the client gets an error. */
void kelp_backend_factory_destroy(kelp_backend_factory *take_factory);

/* ---- Batches ---- */

/* Concatenates an input of several requests along the first dimension into a row-major tensor in
 * memory of the first request. Buffers that are adjacent in memory are not copied. Borrowed
 * until one of the requests is released. Arguments and errors are those of kelp_backend_input. Also
 * fails with INVALID_ARGUMENT if the other dimensions differ. */
kelp_status *kelp_backend_gather(kelp_backend_request **requests, size_t request_count,
                                 const char *name, kelp_dtype dtype, int32_t rank,
                                 kelp_tensor *out) KELP_MUST_USE;

/* Concatenates all elements of an input of several requests into a vector, for ragged batches
 * (allow_ragged_batch). Otherwise as kelp_backend_gather. */
kelp_status *kelp_backend_gather_flat(kelp_backend_request **requests, size_t request_count,
                                      const char *name, kelp_dtype dtype,
                                      kelp_tensor *out) KELP_MUST_USE;

/* Splits an output of the whole batch along the first dimension, and adds each part to the current
 * response of its request if the request wants the output. `tensor` may have any strides. If `like`
 * is the name of an input, each part has the shape of this input in its request
 * (BATCH_SCATTER_WITH_INPUT_SHAPE). If `like` is NULL, the first dimension of each part is
 * kelp_backend_request_batch. Fails with INVALID_ARGUMENT if the sizes of the parts do not add up
 * to the tensor. */
kelp_status *kelp_backend_scatter(kelp_backend_request **requests, size_t request_count,
                                  const char *name, const char *like,
                                  const kelp_tensor *tensor) KELP_MUST_USE;

/* Returns the number of inputs that `batch_input` of the configuration declares. */
size_t kelp_backend_batch_input_count(const kelp_backend_model *model);

/* Creates an input that `batch_input` declares (kinds BATCH_ELEMENT_COUNT to
 * BATCH_ITEM_SHAPE_FLATTEN of Triton's ModelConfig), in memory of the first request. For
 * BATCH_MAX_ELEMENT_COUNT_AS_SHAPE, only the shape is meaningful. Fails with OUT_OF_RANGE if
 * `index` is out of range, and UNIMPLEMENTED if the type is not INT32, INT64 or FP32 or the kind is
 * unknown. */
kelp_status *kelp_backend_batch_input(kelp_backend_request **requests, size_t request_count,
                                      size_t index, const char **out_name,
                                      kelp_tensor *out) KELP_MUST_USE;

/* ---- Time ---- */

/* Marks the start of the inference for statistics. Without these calls, all of execute counts as
 * inference. */
void kelp_backend_compute_begins(kelp_backend_instance *instance);

/* Marks the end of the inference for statistics. */
void kelp_backend_compute_ends(kelp_backend_instance *instance);

/* Returns the time in nanoseconds on the clock of the statistics (monotonic). Thread-safe. */
uint64_t kelp_backend_now_ns(void);

/* ---- Metrics ----
 *
 * Metrics that the server shows on its metrics page, next to its own. All functions of this section
 * are thread-safe. Changing a metric takes no lock of the SDK. */

/* A counter, gauge or histogram. */
typedef struct kelp_backend_metric kelp_backend_metric;

/* A label of a metric. */
typedef struct kelp_backend_label {
    const char *name;  /* letters, digits and '_'; not a digit first */
    const char *value; /* any text */
} kelp_backend_label;

/* The properties of a metric. Zero-initialize the struct: new members are added at the end. */
typedef struct kelp_backend_metric_spec {
    TRITONSERVER_MetricKind kind;     /* counter, gauge or histogram */
    const char *name;                 /* letters, digits, '_' and ':'; not a digit first */
    const char *help;                 /* description */
    const kelp_backend_label *labels; /* additional labels; NULL if there are none */
    size_t label_count;               /* number of additional labels */
    const double *bounds;             /* histogram: upper bounds of the buckets, ascending */
    size_t bound_count;               /* histogram: number of bounds, at least 1 */
} kelp_backend_metric_spec;

/* Creates a metric. If `model` is not NULL, the metric has the labels "model" and "version" in
 * addition to those of `spec`. Metrics of the same name form a family, which has one kind. Metrics
 * with equal labels share one value. The spec is copied. The backend destroys the metric, at the
 * latest in `destroy`. Fails with INVALID_ARGUMENT if the spec is invalid or the family has another
 * kind, and UNIMPLEMENTED if the server has no metrics. */
kelp_status *kelp_backend_metric_create(kelp_backend_model *model,
                                        const kelp_backend_metric_spec *spec,
                                        kelp_backend_metric **out) KELP_MUST_USE;

/* Adds to a counter or gauge. Fails with INVALID_ARGUMENT if a counter would decrease, and
 * UNIMPLEMENTED for a histogram. */
kelp_status *kelp_backend_metric_add(kelp_backend_metric *metric, double value) KELP_MUST_USE;

/* Sets a gauge. Fails with UNIMPLEMENTED for other kinds. */
kelp_status *kelp_backend_metric_set(kelp_backend_metric *metric, double value) KELP_MUST_USE;

/* Adds a value to the buckets of a histogram. Fails with UNIMPLEMENTED for other kinds. */
kelp_status *kelp_backend_metric_observe(kelp_backend_metric *metric, double value) KELP_MUST_USE;

/* Gets the value of a counter or gauge. Fails with UNIMPLEMENTED for a histogram. */
kelp_status *kelp_backend_metric_value(const kelp_backend_metric *metric,
                                       double *out) KELP_MUST_USE;

/* Destroys a metric. The last metric of a family also removes the family. NULL is allowed. */
void kelp_backend_metric_destroy(kelp_backend_metric *take_metric);

/* ---- Inference by other models ---- */

/* Creates an inference by a model of the same server, a call; version -1 follows the model's
 * version policy. `request` (may be NULL) is the request that needs the result, even if it is
 * released before the call is over: the call becomes part of its trace, has its queue timeout, and
 * is cancelled within about 10 ms if the request is cancelled. The backend destroys the call. */
kelp_status *kelp_backend_call_create(kelp_backend_model *model, kelp_backend_request *request,
                                      const char *model_name, int64_t model_version,
                                      kelp_backend_call **out) KELP_MUST_USE;

/* Sets the time after which the call fails, counted from its start; at least 1. The call is then
 * over, with the error DEADLINE_EXCEEDED, and the other model is asked to cancel. Because that
 * model may still read the inputs, the call copies all of them, and its memory is freed when the
 * model has finished. Also sets the queue timeout of the other model, unless it is shorter. Fails
 * with FAILED_PRECONDITION if the call has inputs or was started. */
kelp_status *kelp_backend_call_set_timeout(kelp_backend_call *call,
                                           uint64_t timeout_ns) KELP_MUST_USE;

/* Adds an input. A row-major tensor is borrowed until the call is over; strings, strided tensors
 * and all inputs of a call with a timeout are copied. A row-major tensor in GPU memory is passed to
 * the other model as it is; fails with UNIMPLEMENTED if it would have to be copied. */
kelp_status *kelp_backend_call_input(kelp_backend_call *call, const char *name,
                                     const kelp_tensor *tensor) KELP_MUST_USE;

/* Requests an output. Without this call, all outputs are returned. */
kelp_status *kelp_backend_call_wants(kelp_backend_call *call, const char *name) KELP_MUST_USE;

/* Returns Triton's handle, for properties without a function here (id, sequence, priority,
 * timeout, parameters). Do not use it after the start. */
TRITONSERVER_InferenceRequest *kelp_backend_call_raw(kelp_backend_call *call);

/* Callback of a call. Called for each response, which has the highest index of the kept responses,
 * and once more with `is_last` true when no response follows and inputs may be reused. `failure`
 * (borrowed) is NULL or the response's error. If the timeout expires, the callback is called with
 * DEADLINE_EXCEEDED and then with `is_last` true. Called on any thread, possibly within
 * kelp_backend_call_start, but by one thread at a time. Should return soon, because the timeouts of
 * other calls may wait for it. May destroy the call if `is_last` is true. */
typedef void (*kelp_backend_call_fn)(kelp_backend_call *call, const kelp_status *failure,
                                     bool is_last, void *userp);

/* Starts the inference. If the other backend does not block, it may run on the calling thread;
 * otherwise the function returns without waiting. `fn` may be NULL if kelp_backend_call_wait is
 * used. After a failure, `fn` is not called, and the backend may destroy the call. After success,
 * the call may already be over and `fn` may have destroyed it. */
kelp_status *kelp_backend_call_start(kelp_backend_call *call, kelp_backend_call_fn fn,
                                     void *userp) KELP_MUST_USE;

/* Waits until the call is over. Returns the error of the first failed response, CANCELLED, or
 * DEADLINE_EXCEEDED if the timeout expired. Do not use it in a callback. Without a timeout, it
 * deadlocks if the other model needs the calling instance. */
kelp_status *kelp_backend_call_wait(kelp_backend_call *call) KELP_MUST_USE;

/* Returns the error of the first failed response, or NULL. For use in a callback or when the call
 * is over. */
const kelp_status *kelp_backend_call_failure(const kelp_backend_call *call);

/* Returns the number of responses that are kept. For use in a callback or when the call is over. */
size_t kelp_backend_call_response_count(const kelp_backend_call *call);

/* Gets an output of a response. Type and rank are checked as in kelp_backend_input. Borrowed until
 * the call is cleared or destroyed. Fails with NOT_FOUND if there is no such response or output. */
kelp_status *kelp_backend_call_output(kelp_backend_call *call, size_t response_index,
                                      const char *name, kelp_dtype dtype, int32_t rank,
                                      kelp_tensor *out) KELP_MUST_USE;

/* Deletes the responses received so far, for example in a callback that processes them one by one.
 */
void kelp_backend_call_clear(kelp_backend_call *call);

/* Requests cancellation. Thread-safe. */
void kelp_backend_call_cancel(kelp_backend_call *call);

/* Destroys the call. If it is in flight, cancels it and waits until it is over, except in the
 * callback with `is_last` true. A call with a timeout is not waited for: its callback is not called
 * after this function returns. NULL is allowed. */
void kelp_backend_call_destroy(kelp_backend_call *take_call);

#ifdef __cplusplus
}
#endif
#endif
