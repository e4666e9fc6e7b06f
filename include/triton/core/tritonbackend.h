/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C API between a Triton server and its backends, version 1.19, as implemented by Kelp.
 *
 * Names, values and signatures are those of Triton's public interface. A backend that is compiled
 * with either header works with either server. The comments describe Kelp, and docs/backends-abi.md
 * lists the differences from Triton.
 *
 * The server calls functions marked TRITONBACKEND_ISPEC, which the backend defines. The backend
 * calls all others. The conventions of tritonserver.h apply, with these additions:
 *   - The server owns all objects unless a function states otherwise.
 *   - Functions that get properties may be called from any thread while the object exists.
 *   - Timestamps are CLOCK_MONOTONIC time in nanoseconds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "triton/core/tritonserver.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a function that the server library exports. */
#ifndef TRITONBACKEND_DECLSPEC
#if defined(__GNUC__)
#define TRITONBACKEND_DECLSPEC __attribute__((__visibility__("default")))
#else
#define TRITONBACKEND_DECLSPEC
#endif
#endif

/* Marks a function that a backend exports. */
#ifndef TRITONBACKEND_ISPEC
#if defined(__GNUC__)
#define TRITONBACKEND_ISPEC __attribute__((__visibility__("default")))
#else
#define TRITONBACKEND_ISPEC
#endif
#endif

/* ---- Opaque objects ---------------------------------------------------------------------- */

/* Backends use only pointers to these types. */

/* A loaded backend. */
struct TRITONBACKEND_Backend;
/* The attributes that a backend sets in TRITONBACKEND_GetBackendAttribute. */
struct TRITONBACKEND_BackendAttribute;
/* The state of a custom batching strategy for one model. */
struct TRITONBACKEND_Batcher;
/* An input of a request. */
struct TRITONBACKEND_Input;
/* An allocator of memory for backends. */
struct TRITONBACKEND_MemoryManager;
/* A loaded version of a model. */
struct TRITONBACKEND_Model;
/* An instance of a model, which executes requests. */
struct TRITONBACKEND_ModelInstance;
/* The statistics of one response, which the backend owns. */
struct TRITONBACKEND_ModelInstanceResponseStatistics;
/* An output of a response. */
struct TRITONBACKEND_Output;
/* An inference request, as seen by the backend. */
struct TRITONBACKEND_Request;
/* A response, which the backend owns until it is sent. */
struct TRITONBACKEND_Response;
/* A handle for sending responses to a request after its release. */
struct TRITONBACKEND_ResponseFactory;
/* A state of a sequence. */
struct TRITONBACKEND_State;

typedef struct TRITONBACKEND_Backend TRITONBACKEND_Backend;
typedef struct TRITONBACKEND_BackendAttribute TRITONBACKEND_BackendAttribute;
typedef struct TRITONBACKEND_Batcher TRITONBACKEND_Batcher;
typedef struct TRITONBACKEND_Input TRITONBACKEND_Input;
typedef struct TRITONBACKEND_MemoryManager TRITONBACKEND_MemoryManager;
typedef struct TRITONBACKEND_Model TRITONBACKEND_Model;
typedef struct TRITONBACKEND_ModelInstance TRITONBACKEND_ModelInstance;
typedef struct TRITONBACKEND_ModelInstanceResponseStatistics
    TRITONBACKEND_ModelInstanceResponseStatistics;
typedef struct TRITONBACKEND_Output TRITONBACKEND_Output;
typedef struct TRITONBACKEND_Request TRITONBACKEND_Request;
typedef struct TRITONBACKEND_Response TRITONBACKEND_Response;
typedef struct TRITONBACKEND_ResponseFactory TRITONBACKEND_ResponseFactory;
typedef struct TRITONBACKEND_State TRITONBACKEND_State;

/* ---- API version ------------------------------------------------------------------------- */

/* The version of this header. An incompatible change increments the major version, an addition the
 * minor version. */
#define TRITONBACKEND_API_VERSION_MAJOR 1
#define TRITONBACKEND_API_VERSION_MINOR 19

/* Gets the version that the server implements. A backend should check it in
 * TRITONBACKEND_Initialize: it is compatible if it was compiled with the same major version and the
 * same or a lower minor version. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ApiVersion(uint32_t *major,
                                                                    uint32_t *minor);

/* The form in which the files of a backend or model are provided. */
typedef enum TRITONBACKEND_artifacttype_enum {
    TRITONBACKEND_ARTIFACT_FILESYSTEM = 0 /* the path of a directory */
} TRITONBACKEND_ArtifactType;

/* ---- Memory ------------------------------------------------------------------------------ */

/* Allocates memory. The caller frees it with TRITONBACKEND_MemoryManagerFree. UNSUPPORTED for a
 * type other than CPU. Thread-safe. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_MemoryManagerAllocate(TRITONBACKEND_MemoryManager *manager, void **buffer,
                                    const TRITONSERVER_MemoryType memory_type,
                                    const int64_t memory_type_id, const uint64_t byte_size);

/* Frees memory; 'memory_type' and 'memory_type_id' are those of its allocation. Ignores a NULL
 * buffer. UNSUPPORTED for a type other than CPU. Thread-safe. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_MemoryManagerFree(TRITONBACKEND_MemoryManager *manager, void *buffer,
                                const TRITONSERVER_MemoryType memory_type,
                                const int64_t memory_type_id);

/* ---- Inputs ------------------------------------------------------------------------------ */

/* Properties and buffers of inputs are borrowed until the request is released. The data of an input
 * consists of zero or more buffers. */

/* Gets the properties of an input: the shape includes the batch dimension, and 'reshape' of the
 * configuration is applied. 'byte_size' is the total size of 'buffer_count' buffers without a host
 * policy. Each output parameter may be NULL. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InputProperties(TRITONBACKEND_Input *input, const char **name,
                              TRITONSERVER_DataType *datatype, const int64_t **shape,
                              uint32_t *dims_count, uint64_t *byte_size, uint32_t *buffer_count);

/* Gets the properties of an input for a host policy. The buffers are those of the policy if the
 * request has any, otherwise those without a policy. A NULL policy is equivalent to
 * TRITONBACKEND_InputProperties. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InputPropertiesForHostPolicy(TRITONBACKEND_Input *input, const char *host_policy_name,
                                           const char **name, TRITONSERVER_DataType *datatype,
                                           const int64_t **shape, uint32_t *dims_count,
                                           uint64_t *byte_size, uint32_t *buffer_count);

/* Gets a buffer of an input: its address, size in bytes and location. The initial values of
 * '*memory_type' and '*memory_type_id', the preferred location, have no effect in Kelp. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InputBuffer(TRITONBACKEND_Input *input, const uint32_t index, const void **buffer,
                          uint64_t *buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
                          int64_t *memory_type_id);

/* Gets a buffer of an input for a host policy, see TRITONBACKEND_InputPropertiesForHostPolicy.
 * Otherwise equivalent to TRITONBACKEND_InputBuffer. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_InputBufferForHostPolicy(
    TRITONBACKEND_Input *input, const char *host_policy_name, const uint32_t index,
    const void **buffer, uint64_t *buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
    int64_t *memory_type_id);

/* Gets a buffer of an input without a host policy, and its attributes. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InputBufferAttributes(TRITONBACKEND_Input *input, const uint32_t index,
                                    const void **buffer,
                                    TRITONSERVER_BufferAttributes **buffer_attributes);

/* ---- Outputs ----------------------------------------------------------------------------- */

/* An output belongs to its response, and is valid until the response is sent or deleted. */

/* Allocates the buffer of an output with the client's allocator. On entry, '*memory_type' and
 * '*memory_type_id' are the preferred location, on return the actual one. The response owns the
 * buffer, which may be NULL for 0 bytes. ALREADY_EXISTS if the output has a buffer, INTERNAL if the
 * response was sent or the allocator returned no buffer, otherwise the allocator's error. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output *output, void **buffer,
                           const uint64_t buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
                           int64_t *memory_type_id);

/* Gets the attributes of an output's buffer. Before TRITONBACKEND_OutputBuffer, they describe 0
 * bytes in CPU memory. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_OutputBufferAttributes(TRITONBACKEND_Output *output,
                                     TRITONSERVER_BufferAttributes **buffer_attributes);

/* ---- Requests ---------------------------------------------------------------------------- */

/* A backend owns a request from a successful TRITONBACKEND_ModelInstanceExecute until it releases
 * the request. Values that these functions return are borrowed until then. */

/* Gets the id of a request; "" if the client set none. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_RequestId(TRITONBACKEND_Request *request,
                                                                   const char **id);

/* Reports whether the client requested cancellation. After the release of the request, use
 * TRITONBACKEND_ResponseFactoryIsCancelled. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request *request, bool *is_cancelled);

/* Reports whether the client requested the cancellation of the factory's request. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseFactoryIsCancelled(TRITONBACKEND_ResponseFactory *factory,
                                         bool *is_cancelled);

/* Gets the numeric id of the request's sequence; 0 for none. INVALID_ARG if the id is a string. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestCorrelationId(TRITONBACKEND_Request *request, uint64_t *id);

/* Gets the queue timeout of a request in microseconds; 0 if the client set none. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InferenceRequestTimeoutMicroseconds(TRITONBACKEND_Request *request,
                                                  uint64_t *timeout);

/* Gets the string id of the request's sequence; "" for none. INVALID_ARG if the id is a number or
 * is not set. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestCorrelationIdString(TRITONBACKEND_Request *request, const char **id);

/* Gets the flags of a request: a combination of TRITONSERVER_RequestFlag. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestFlags(TRITONBACKEND_Request *request, uint32_t *flags);

/* Gets the number of parameters of a request. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestParameterCount(TRITONBACKEND_Request *request, uint32_t *count);

/* Gets a parameter of a request. '*vvalue' is the string for STRING, and points to the int64_t,
 * bool or double for the other types. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestParameter(TRITONBACKEND_Request *request, const uint32_t index,
                               const char **key, TRITONSERVER_ParameterType *type,
                               const void **vvalue);

/* Gets the number of inputs of a request. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request *request, uint32_t *count);

/* Gets the name of an input. The order of the inputs is unspecified. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestInputName(TRITONBACKEND_Request *request, const uint32_t index,
                               const char **input_name);

/* Gets an input by name. INVALID_ARG if the request has no input of this name. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestInput(TRITONBACKEND_Request *request, const char *name,
                           TRITONBACKEND_Input **input);

/* Gets an input by index, in the order of TRITONBACKEND_RequestInputName. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request *request, const uint32_t index,
                                  TRITONBACKEND_Input **input);

/* Gets the number of requested outputs; of all outputs of the model if the client requested
 * none. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request *request, uint32_t *count);

/* Gets the name of a requested output. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request *request, const uint32_t index,
                                const char **output_name);

/* Gets the location where the client's allocator would allocate an output. 'name' is NULL for all
 * outputs, and 'byte_size' is NULL if the size is unknown. On entry, '*memory_type' and
 * '*memory_type_id' are the preferred location. UNAVAILABLE if the allocator has no query callback,
 * otherwise the callback's error. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestOutputBufferProperties(TRITONBACKEND_Request *request, const char *name,
                                            size_t *byte_size, TRITONSERVER_MemoryType *memory_type,
                                            int64_t *memory_type_id);

/* Releases a request, whose ownership returns to the client. 'release_flags' is
 * TRITONSERVER_REQUEST_RELEASE_ALL. May be called from any thread. Responses may be sent
 * afterwards, and a response factory can create more. INVALID_ARG for
 * TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, which is not supported; the backend then keeps the
 * request. INTERNAL if the request was released before. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestRelease(TRITONBACKEND_Request *request, uint32_t release_flags);

/* Gets the trace of a request; NULL if it is not traced. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestTrace(TRITONBACKEND_Request *request, TRITONSERVER_InferenceTrace **trace);

/* ---- Response factories ------------------------------------------------------------------ */

/* Each request ends with a final response. The server sends it if the backend does not, see
 * "Obligations for a request" in docs/backends-abi.md. */

/* Creates a factory for responses to a request, also after its release. The backend deletes it. The
 * factory keeps the model loaded. INTERNAL if the request was released. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseFactoryNew(TRITONBACKEND_ResponseFactory **factory,
                                 TRITONBACKEND_Request *request);

/* Deletes a factory. Its responses stay valid. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseFactoryDelete(TRITONBACKEND_ResponseFactory *factory);

/* Sends flags without a response: a combination of TRITONSERVER_ResponseCompleteFlag. INTERNAL if
 * the final response or flag was sent before. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseFactorySendFlags(TRITONBACKEND_ResponseFactory *factory,
                                       const uint32_t send_flags);

/* ---- Responses --------------------------------------------------------------------------- */

/* The backend owns a response until it sends or deletes it. Functions that modify a response return
 * INTERNAL if it was sent. */

/* Creates a response to a request. INTERNAL if the request was released. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseNew(TRITONBACKEND_Response **response, TRITONBACKEND_Request *request);

/* Creates a response to the request of a factory. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseNewFromFactory(TRITONBACKEND_Response **response,
                                     TRITONBACKEND_ResponseFactory *factory);

/* Deletes a response that was not sent, with its outputs and their buffers. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response *response);

/* Adds a string parameter to a response. INVALID_ARG if the response has a parameter of this name,
 * or 1024 parameters. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseSetStringParameter(TRITONBACKEND_Response *response, const char *name,
                                         const char *value);

/* Adds an integer parameter to a response. Errors are those of
 * TRITONBACKEND_ResponseSetStringParameter. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseSetIntParameter(TRITONBACKEND_Response *response, const char *name,
                                      const int64_t value);

/* Adds a boolean parameter to a response. Errors are those of
 * TRITONBACKEND_ResponseSetStringParameter. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseSetBoolParameter(TRITONBACKEND_Response *response, const char *name,
                                       const bool value);

/* Adds a floating-point parameter to a response. Errors are those of
 * TRITONBACKEND_ResponseSetStringParameter. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseSetDoubleParameter(TRITONBACKEND_Response *response, const char *name,
                                         const double value);

/* Adds an output to a response; TRITONBACKEND_OutputBuffer allocates its buffer. 'shape' has
 * 'dims_count' dimensions, including the batch dimension. ALREADY_EXISTS if the response has an
 * output of this name, INVALID_ARG if the model has no such output, the shape does not match
 * 'reshape' of the configuration, or it has more than 32 dimensions. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response *response, TRITONBACKEND_Output **output,
                             const char *name, const TRITONSERVER_DataType datatype,
                             const int64_t *shape, const uint32_t dims_count);

/* Sends a response, whose ownership passes to the client. 'send_flags' is a combination of
 * TRITONSERVER_ResponseCompleteFlag. 'error' is the reason of a failed inference, or NULL; the
 * backend keeps it. INTERNAL if the final response was sent before; the response is then
 * deleted. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseSend(TRITONBACKEND_Response *response, const uint32_t send_flags,
                           TRITONSERVER_Error *error);

/* ---- Sequence state ---------------------------------------------------------------------- */

/* The implicit state of a sequence (sequence_batching.state of the configuration). The server adds
 * the current values to the inputs of a request; these functions store the values for the next
 * request of the sequence. A state belongs to its request: after the release of the request, they
 * fail. Different requests may be used on different threads. */

/* Creates the next value of the state with the output name 'name'. Replaces a value that was
 * created and not stored. INVALID_ARG if the configuration has no such state, or if it has another
 * type. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_StateNew(TRITONBACKEND_State **state, TRITONBACKEND_Request *request,
                       const char *name, const TRITONSERVER_DataType datatype, const int64_t *shape,
                       const uint32_t dims_count);

/* Makes a state, whose buffer is written, the input state of the next request in the sequence.
 * INTERNAL if the state was stored before. Without this call, the next request gets the same state
 * as this one. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_StateUpdate(TRITONBACKEND_State *state);

/* Returns the buffer of a state, which owns it, in CPU memory. The arguments are those of
 * TRITONBACKEND_OutputBuffer. With use_same_buffer_for_input_output it is the buffer of the input
 * state, or a larger one that begins with a copy of it. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_StateBuffer(TRITONBACKEND_State *state, void **buffer,
                          const uint64_t buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
                          int64_t *memory_type_id);

/* Gets the attributes of the buffer that TRITONBACKEND_StateBuffer returned. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_StateBufferAttributes(TRITONBACKEND_State *state,
                                    TRITONSERVER_BufferAttributes **buffer_attributes);

/* ---- Backend ----------------------------------------------------------------------------- */

/* The assignment of threads to the instances of a model. */
typedef enum TRITONBACKEND_execpolicy_enum {
    TRITONBACKEND_EXECUTION_BLOCKING = 0,       /* one thread per instance */
    TRITONBACKEND_EXECUTION_DEVICE_BLOCKING = 1 /* one thread per device */
} TRITONBACKEND_ExecutionPolicy;

/* Gets the name of the backend. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_BackendName(TRITONBACKEND_Backend *backend,
                                                                     const char **name);

/* Gets the settings of the backend as JSON: {"cmdline": {NAME: VALUE, ...}}, where all values are
 * strings. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendConfig(TRITONBACKEND_Backend *backend, TRITONSERVER_Message **backend_config);

/* Gets the execution policy. Default TRITONBACKEND_EXECUTION_BLOCKING. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendExecutionPolicy(TRITONBACKEND_Backend *backend,
                                     TRITONBACKEND_ExecutionPolicy *policy);

/* Sets the execution policy, in TRITONBACKEND_Initialize. Kelp stores it without effect;
 * docs/backends-abi.md ("Threads") describes its threads. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendSetExecutionPolicy(TRITONBACKEND_Backend *backend,
                                        TRITONBACKEND_ExecutionPolicy policy);

/* Gets the directory that contains the backend's library or, for a backend in Python, its model.py;
 * "" for a built-in backend. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendArtifacts(TRITONBACKEND_Backend *backend,
                               TRITONBACKEND_ArtifactType *artifact_type, const char **location);

/* Gets the memory manager, which is valid as long as the backend is loaded. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendMemoryManager(TRITONBACKEND_Backend *backend,
                                   TRITONBACKEND_MemoryManager **manager);

/* Gets the pointer of TRITONBACKEND_BackendSetState; NULL if it is not set. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendState(TRITONBACKEND_Backend *backend, void **state);

/* Sets a pointer for the backend's own use. The backend frees it in TRITONBACKEND_Finalize. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendSetState(TRITONBACKEND_Backend *backend, void *state);

/* ---- Model ------------------------------------------------------------------------------- */

/* Values that these functions return are borrowed until TRITONBACKEND_ModelFinalize returns. */

/* Gets the name of the model. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelName(TRITONBACKEND_Model *model,
                                                                   const char **name);

/* Gets the version of the model. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelVersion(TRITONBACKEND_Model *model,
                                                                      uint64_t *version);

/* Gets the model's directory, which contains the directories of its versions. It may be a temporary
 * directory that a repository agent or a load with parameters created. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelRepository(TRITONBACKEND_Model *model, TRITONBACKEND_ArtifactType *artifact_type,
                              const char **location);

/* Gets the configuration of the model as JSON. The backend deletes the message. UNSUPPORTED for a
 * 'config_version' other than 1. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelConfig(TRITONBACKEND_Model *model, const uint32_t config_version,
                          TRITONSERVER_Message **model_config);

/* Reports whether the backend should complete the configuration in
 * TRITONBACKEND_ModelInitialize. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model *model, bool *auto_complete_config);

/* Sets the fields of the configuration that a backend may complete: max_batch_size, input, output,
 * model_transaction_policy, and dynamic_batching, sequence_batching or ensemble_scheduling. Other
 * fields are ignored. The backend keeps the message. INVALID_ARG outside
 * TRITONBACKEND_ModelInitialize or for an invalid configuration, UNSUPPORTED for a 'config_version'
 * other than 1. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model *model, const uint32_t config_version,
                             TRITONSERVER_Message *model_config);

/* Gets the server of the model. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelServer(TRITONBACKEND_Model *model,
                                                                     TRITONSERVER_Server **server);

/* Gets the backend of the model. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelBackend(TRITONBACKEND_Model *model, TRITONBACKEND_Backend **backend);

/* Gets the pointer of TRITONBACKEND_ModelSetState; NULL if it is not set. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelState(TRITONBACKEND_Model *model,
                                                                    void **state);

/* Sets a pointer for the backend's own use. The backend frees it in TRITONBACKEND_ModelFinalize. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelSetState(TRITONBACKEND_Model *model,
                                                                       void *state);

/* Reports the memory that the model uses, for its statistics. Entries with the same memory type and
 * id are added up. Replaces an earlier report. The backend keeps the attributes. Thread-safe. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelReportMemoryUsage(TRITONBACKEND_Model *model,
                                     TRITONSERVER_BufferAttributes **usage, uint32_t usage_size);

/* ---- Model instance ---------------------------------------------------------------------- */

/* Values that these functions return are borrowed until TRITONBACKEND_ModelInstanceFinalize
 * returns. */

/* Gets the name of the instance. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceName(TRITONBACKEND_ModelInstance *instance, const char **name);

/* Gets the kind of device that executes the instance: CPU or MODEL, because Kelp does not load GPU
 * instances. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance *instance,
                                TRITONSERVER_InstanceGroupKind *kind);

/* Gets the number of the device that executes the instance; 0 for the CPU. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance *instance, int32_t *device_id);

/* Gets the host policy of the instance as JSON: {POLICY: {NAME: VALUE, ...}}, where all values are
 * strings. The default policy is "cpu", or "model" for instances of kind MODEL. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceHostPolicy(TRITONBACKEND_ModelInstance *instance,
                                      TRITONSERVER_Message **host_policy);

/* Reports whether the instance is passive: it is initialized but executes no requests. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceIsPassive(TRITONBACKEND_ModelInstance *instance, bool *is_passive);

/* Gets the number of optimization profiles in the configuration of the instance. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceProfileCount(TRITONBACKEND_ModelInstance *instance, uint32_t *count);

/* Gets the name of an optimization profile. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceProfileName(TRITONBACKEND_ModelInstance *instance, const uint32_t index,
                                       const char **profile_name);

/* Gets the number of secondary devices: always 0, because Kelp does not support them. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceSecondaryDeviceCount(TRITONBACKEND_ModelInstance *instance,
                                                uint32_t *count);

/* Gets the kind and id of a secondary device. Always returns INVALID_ARG, because Kelp does not
 * support them. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(
    TRITONBACKEND_ModelInstance *instance, uint32_t index, const char **kind, int64_t *id);

/* Gets the model of the instance. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance *instance,
                                 TRITONBACKEND_Model **model);

/* Gets the pointer of TRITONBACKEND_ModelInstanceSetState; NULL if it is not set. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance *instance, void **state);

/* Sets a pointer for the backend's own use. The backend frees it in
 * TRITONBACKEND_ModelInstanceFinalize. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance *instance, void *state);

/* Reports the memory that the instance uses, in addition to that of the model. Otherwise equivalent
 * to TRITONBACKEND_ModelReportMemoryUsage. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReportMemoryUsage(TRITONBACKEND_ModelInstance *instance,
                                             TRITONSERVER_BufferAttributes **usage,
                                             uint32_t usage_size);

/* ---- Statistics -------------------------------------------------------------------------- */

/* The functions that report are thread-safe. If the file of the library contains the name of
 * neither TRITONBACKEND_ModelInstanceReportStatistics nor
 * TRITONBACKEND_ModelInstanceReportBatchStatistics, the server counts requests and executions
 * itself. */

/* Reports the result and times of a request, before its release. 'exec_start_ns' to 'exec_end_ns'
 * is the execution, and 'compute_start_ns' to 'compute_end_ns' the inference without input and
 * output processing. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request, const bool success,
    const uint64_t exec_start_ns, const uint64_t compute_start_ns, const uint64_t compute_end_ns,
    const uint64_t exec_end_ns);

/* Creates empty statistics of a response. The backend deletes them. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsNew(
    TRITONBACKEND_ModelInstanceResponseStatistics **response_statistics);

/* Deletes the statistics of a response. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsDelete(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics);

/* Sets the instance that produced the response. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    TRITONBACKEND_ModelInstance *model_instance);

/* Sets the factory that created the response. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    TRITONBACKEND_ResponseFactory *response_factory);

/* Sets the time when the computation of the response started. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics, uint64_t response_start);

/* Sets the time when the backend started to write outputs; 0 if the response has none. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    uint64_t compute_output_start);

/* Sets the time when the response was complete. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics, uint64_t response_end);

/* Sets the error of the response; NULL for success. It is borrowed until the statistics are
 * reported. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetError(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics, TRITONSERVER_Error *error);

/* Reports the statistics of the next response of the factory's request. The backend keeps the
 * object and may reuse it. INVALID_ARG if the instance or the factory is not set. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportResponseStatistics(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics);

/* Reports an execution of the instance and its times. 'batch_size' is the sum of the batch sizes of
 * its requests. The times are those of TRITONBACKEND_ModelInstanceReportStatistics. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance *instance, const uint64_t batch_size, const uint64_t exec_start_ns,
    const uint64_t compute_start_ns, const uint64_t compute_end_ns, const uint64_t exec_end_ns);

/* ---- Defined by the backend -------------------------------------------------------------- */

/* The server finds these functions by name. Only TRITONBACKEND_ModelInstanceExecute is required.
 * The server takes ownership of the errors that they return, and logs those of Finalize
 * functions. */

/* Initializes the backend when it is loaded. The server calls it before all other functions. After
 * an error, it calls TRITONBACKEND_Finalize and the load of the model fails. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend);

/* Finalizes the backend when the last server that used it has stopped. The library stays loaded,
 * and TRITONBACKEND_Initialize may be called again later. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend);

/* Initializes a model on the thread that loads it. Several models may be initialized at once. After
 * an error, the server calls TRITONBACKEND_ModelFinalize and the load fails. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model);

/* Finalizes a model after its instances, usually on the cleanup thread of the server. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model);

/* Initializes an instance when the model is loaded or an instance is added. After an error, the
 * server calls TRITONBACKEND_ModelInstanceFinalize and the load fails. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance);

/* Finalizes an instance after its last execution. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance);

/* Executes requests, one call at a time per instance. 'requests' is valid only during the call. On
 * success, the backend owns the requests: it sends their responses and releases each request,
 * during the call or later. On error, it must have done neither, and the server fails all requests
 * with the error. docs/backends-abi.md ("Threads") describes the thread. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, const uint32_t request_count);

/* Checks whether the instance can execute requests; an error makes the model not ready. The server
 * calls it for health checks, on any thread and during executions. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance *instance);

/* Sets the attributes of the backend, after TRITONBACKEND_Initialize. 'backend_attributes' is valid
 * only during the call. After an error, the server calls TRITONBACKEND_Finalize and the load of the
 * model fails. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *backend,
                                  TRITONBACKEND_BackendAttribute *backend_attributes);

/* ---- Backend attributes ------------------------------------------------------------------ */

/* Adds a preferred instance group, for configurations that do not set the kind or count themselves.
 * The first group that the machine supports applies. Kind AUTO and 'count' 0 leave the default.
 * Kelp ignores groups of kind GPU, 'device_ids' and 'id_count'. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    TRITONBACKEND_BackendAttribute *backend_attributes, const TRITONSERVER_InstanceGroupKind kind,
    const uint64_t count, const uint64_t *device_ids, const uint64_t id_count);

/* Sets whether the instances of a model may be initialized on several threads at once. Default
 * false. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
    TRITONBACKEND_BackendAttribute *backend_attributes, bool enabled);

/* ---- Custom batching, defined by a backend or a separate library ------------------------- */

/* A library defines all five functions or none. Kelp does not call them: it batches as
 * docs/backends-abi.md describes. */

/* Creates the batcher of a model when the model is loaded. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelBatcherInitialize(TRITONBACKEND_Batcher **batcher, TRITONBACKEND_Model *model);

/* Destroys the batcher of a model when the model is unloaded. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelBatcherFinalize(TRITONBACKEND_Batcher *batcher);

/* Decides whether a request joins the batch whose state is 'userp'. 'request' is borrowed for the
 * duration of the call. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelBatchIncludeRequest(TRITONBACKEND_Request *request, void *userp,
                                       bool *should_include);

/* Creates the state of a new batch. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelBatchInitialize(const TRITONBACKEND_Batcher *batcher, void **userp);

/* Destroys the state of a batch when the batch is complete. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelBatchFinalize(void *userp);

/* ---- Outputs of a response before it is sent --------------------------------------------- */

/* Gets the element type and shape of an output by name. NOT_FOUND if the response has no output of
 * this name. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InferenceResponseOutputByName(TRITONBACKEND_Response *response, const char *name,
                                            TRITONSERVER_DataType *datatype, const int64_t **shape,
                                            uint64_t *dim_count);

/* Gets the name, element type and shape of an output by index. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InferenceResponseOutput(TRITONBACKEND_Response *response, const uint32_t index,
                                      const char **name, TRITONSERVER_DataType *datatype,
                                      const int64_t **shape, uint64_t *dim_count);

#ifdef __cplusplus
}
#endif
