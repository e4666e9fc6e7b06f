/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C API between a Triton server and its backends, version 1.19, as Kelp provides it.
 *
 * Names, values and signatures are those of Triton's public interface, so that a backend built
 * against either header is loaded by either server. The contracts are Kelp's; the conventions at
 * the head of tritonserver.h hold here too. Functions marked TRITONBACKEND_ISPEC are defined by the
 * backend and called by the server, all others the other way round.
 *
 * Objects handed to a backend belong to the server unless a function says otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "triton/core/tritonserver.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TRITONBACKEND_DECLSPEC
#if defined(__GNUC__)
#define TRITONBACKEND_DECLSPEC __attribute__((__visibility__("default")))
#else
#define TRITONBACKEND_DECLSPEC
#endif
#endif

#ifndef TRITONBACKEND_ISPEC
#if defined(__GNUC__)
#define TRITONBACKEND_ISPEC __attribute__((__visibility__("default")))
#else
#define TRITONBACKEND_ISPEC
#endif
#endif

/* ---- Opaque objects ---------------------------------------------------------------------- */

struct TRITONBACKEND_Backend;
struct TRITONBACKEND_BackendAttribute;
struct TRITONBACKEND_Batcher;
struct TRITONBACKEND_Input;
struct TRITONBACKEND_MemoryManager;
struct TRITONBACKEND_Model;
struct TRITONBACKEND_ModelInstance;
struct TRITONBACKEND_ModelInstanceResponseStatistics;
struct TRITONBACKEND_Output;
struct TRITONBACKEND_Request;
struct TRITONBACKEND_Response;
struct TRITONBACKEND_ResponseFactory;
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

/* The major number changes when a backend has to change, the minor one when something is added. */
#define TRITONBACKEND_API_VERSION_MAJOR 1
#define TRITONBACKEND_API_VERSION_MINOR 19

/* Gives the version that the server implements. A backend needs an equal major number and a minor
 * number that is at least its own, and is to check this in TRITONBACKEND_Initialize. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ApiVersion(uint32_t *major,
                                                                    uint32_t *minor);

/* How the files of a backend or a model are given. */
typedef enum TRITONBACKEND_artifacttype_enum {
    TRITONBACKEND_ARTIFACT_FILESYSTEM = 0 /* a folder, by its path */
} TRITONBACKEND_ArtifactType;

/* ---- Memory ------------------------------------------------------------------------------ */

/* Allocates 'byte_size' bytes of exactly this memory, which the backend gives back with
 * TRITONBACKEND_MemoryManagerFree. UNSUPPORTED for memory that the server has not, UNAVAILABLE when
 * it is short. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_MemoryManagerAllocate(TRITONBACKEND_MemoryManager *manager, void **buffer,
                                    const TRITONSERVER_MemoryType memory_type,
                                    const int64_t memory_type_id, const uint64_t byte_size);

/* Frees a buffer, with the memory type and id that it was allocated with. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_MemoryManagerFree(TRITONBACKEND_MemoryManager *manager, void *buffer,
                                const TRITONSERVER_MemoryType memory_type,
                                const int64_t memory_type_id);

/* ---- Inputs ------------------------------------------------------------------------------ */

/* Describes an input: name, type, shape with the batch dimension, bytes in all, and how many
 * buffers they lie in. Any output may be NULL. All are borrowed until the request is released. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InputProperties(TRITONBACKEND_Input *input, const char **name,
                              TRITONSERVER_DataType *datatype, const int64_t **shape,
                              uint32_t *dims_count, uint64_t *byte_size, uint32_t *buffer_count);

/* As TRITONBACKEND_InputProperties, with the size and buffers meant for a host policy; a NULL name
 * stands for those without a policy. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InputPropertiesForHostPolicy(TRITONBACKEND_Input *input, const char *host_policy_name,
                                           const char **name, TRITONSERVER_DataType *datatype,
                                           const int64_t **shape, uint32_t *dims_count,
                                           uint64_t *byte_size, uint32_t *buffer_count);

/* Gives one of the buffers that make up an input, in order, borrowed until the request is released.
 * '*memory_type' and '*memory_type_id' come in with the preference and go out with where it lies.
 * INVALID_ARG when 'index' is out of range. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InputBuffer(TRITONBACKEND_Input *input, const uint32_t index, const void **buffer,
                          uint64_t *buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
                          int64_t *memory_type_id);

/* As TRITONBACKEND_InputBuffer, for the buffers meant for a host policy. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_InputBufferForHostPolicy(
    TRITONBACKEND_Input *input, const char *host_policy_name, const uint32_t index,
    const void **buffer, uint64_t *buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
    int64_t *memory_type_id);

/* As TRITONBACKEND_InputBuffer, with size and place as attributes that belong to the server. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InputBufferAttributes(TRITONBACKEND_Input *input, const uint32_t index,
                                    const void **buffer,
                                    TRITONSERVER_BufferAttributes **buffer_attributes);

/* ---- Outputs ----------------------------------------------------------------------------- */

/* Obtains the buffer to write an output to, through the allocator of whoever asked. '*memory_type'
 * and '*memory_type_id' come in with the preference and go out with where it lies. The buffer
 * belongs to the response. ALREADY_EXISTS on a second call for the output. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output *output, void **buffer,
                           const uint64_t buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
                           int64_t *memory_type_id);

/* Gives the attributes of the output's buffer, which belong to the server, once it is obtained. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_OutputBufferAttributes(TRITONBACKEND_Output *output,
                                     TRITONSERVER_BufferAttributes **buffer_attributes);

/* ---- Requests ---------------------------------------------------------------------------- */

/* Gives the request's id; empty when it has none. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_RequestId(TRITONBACKEND_Request *request,
                                                                   const char **id);

/* Gives whether the request was cancelled. Use TRITONBACKEND_ResponseFactoryIsCancelled once the
 * request is released. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request *request, bool *is_cancelled);

/* Gives whether the request that a factory answers was cancelled. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseFactoryIsCancelled(TRITONBACKEND_ResponseFactory *factory,
                                         bool *is_cancelled);

/* Gives the number of the request's sequence, 0 for none. INVALID_ARG when it is named by a string.
 */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestCorrelationId(TRITONBACKEND_Request *request, uint64_t *id);

/* Gives the request's own time limit in microseconds, 0 for none. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InferenceRequestTimeoutMicroseconds(TRITONBACKEND_Request *request,
                                                  uint64_t *timeout);

/* Gives the name of the request's sequence, empty for none. INVALID_ARG when it is a number. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestCorrelationIdString(TRITONBACKEND_Request *request, const char **id);

/* Gives the request's flags: a bitwise or of TRITONSERVER_RequestFlag. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestFlags(TRITONBACKEND_Request *request, uint32_t *flags);

/* Gives the number of parameters of a request. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestParameterCount(TRITONBACKEND_Request *request, uint32_t *count);

/* Gives one parameter. '*vvalue' is the string itself for STRING and points at the value for the
 * other types; borrowed until the request is released. INVALID_ARG when 'index' is out of range. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestParameter(TRITONBACKEND_Request *request, const uint32_t index,
                               const char **key, TRITONSERVER_ParameterType *type,
                               const void **vvalue);

/* Gives the number of inputs that the request has. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request *request, uint32_t *count);

/* Gives the name of an input; the order is not specified. INVALID_ARG when 'index' is out of range.
 */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestInputName(TRITONBACKEND_Request *request, const uint32_t index,
                               const char **input_name);

/* Gives an input by name, borrowed until the request is released. INVALID_ARG when the request has
 * none of that name. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestInput(TRITONBACKEND_Request *request, const char *name,
                           TRITONBACKEND_Input **input);

/* Gives an input by index, in the order of TRITONBACKEND_RequestInputName. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request *request, const uint32_t index,
                                  TRITONBACKEND_Input **input);

/* Gives the number of outputs that are asked for; when the caller named none, all of the model's
 * count. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request *request, uint32_t *count);

/* Gives the name of an output that is asked for. INVALID_ARG when 'index' is out of range. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request *request, const uint32_t index,
                                const char **output_name);

/* Asks the allocator where an output would be placed. 'name' and 'byte_size' may be NULL when not
 * known; '*memory_type' and '*memory_type_id' come in with the preference. UNAVAILABLE when the
 * allocator has no query callback. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestOutputBufferProperties(TRITONBACKEND_Request *request, const char *name,
                                            size_t *byte_size, TRITONSERVER_MemoryType *memory_type,
                                            int64_t *memory_type_id);

/* Gives a request back: 'release_flags' is one of TRITONSERVER_RequestReleaseFlag. Afterwards
 * neither the request nor anything borrowed from it may be used. Responses may still be sent. On
 * error the backend keeps the request; RESCHEDULE is INVALID_ARG unless the model batches sequences
 * iteratively. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestRelease(TRITONBACKEND_Request *request, uint32_t release_flags);

/* Gives the trace of a request, which belongs to the server; NULL when it has none. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestTrace(TRITONBACKEND_Request *request, TRITONSERVER_InferenceTrace **trace);

/* ---- Response factories ------------------------------------------------------------------ */

/* Makes a factory, owned by the backend, that makes responses also after the request is released.
 * It keeps the model loaded. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseFactoryNew(TRITONBACKEND_ResponseFactory **factory,
                                 TRITONBACKEND_Request *request);

/* Deletes a factory. Responses made by it are not affected. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseFactoryDelete(TRITONBACKEND_ResponseFactory *factory);

/* Sends flags without a response, a bitwise or of TRITONSERVER_ResponseCompleteFlag; with FINAL it
 * closes the request. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseFactorySendFlags(TRITONBACKEND_ResponseFactory *factory,
                                       const uint32_t send_flags);

/* ---- Responses --------------------------------------------------------------------------- */

/* Makes a response to a request. The backend owns it until it is sent or deleted. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseNew(TRITONBACKEND_Response **response, TRITONBACKEND_Request *request);

/* Makes a response to the request of a factory. The backend owns it until it is sent or deleted. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseNewFromFactory(TRITONBACKEND_Response **response,
                                     TRITONBACKEND_ResponseFactory *factory);

/* Deletes a response that was not sent, with its outputs and buffers. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response *response);

/* Adds a string parameter to a response; a name may occur more than once. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseSetStringParameter(TRITONBACKEND_Response *response, const char *name,
                                         const char *value);

/* Adds an integer parameter to a response; a name may occur more than once. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseSetIntParameter(TRITONBACKEND_Response *response, const char *name,
                                      const int64_t value);

/* Adds a boolean parameter to a response; a name may occur more than once. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseSetBoolParameter(TRITONBACKEND_Response *response, const char *name,
                                       const bool value);

/* Adds a floating-point parameter to a response; a name may occur more than once. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseSetDoubleParameter(TRITONBACKEND_Response *response, const char *name,
                                         const double value);

/* Adds an output; its buffer comes from TRITONBACKEND_OutputBuffer. 'shape' is copied. The output
 * belongs to the response and is borrowed until that is sent. ALREADY_EXISTS when the response has
 * one of that name. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response *response, TRITONBACKEND_Output **output,
                             const char *name, const TRITONSERVER_DataType datatype,
                             const int64_t *shape, const uint32_t dims_count);

/* Sends a response, which the server owns from then on, also when this returns an error.
 * 'send_flags' is a bitwise or of TRITONSERVER_ResponseCompleteFlag. 'error' says that the
 * inference failed, or is NULL; it stays with the backend. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseSend(TRITONBACKEND_Response *response, const uint32_t send_flags,
                           TRITONSERVER_Error *error);

/* ---- Sequence state ---------------------------------------------------------------------- */

/* Makes the next value of an output state of the request's sequence. 'shape' is copied. The state
 * belongs to the server. INVALID_ARG when the model declares no such state. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_StateNew(TRITONBACKEND_State **state, TRITONBACKEND_Request *request,
                       const char *name, const TRITONSERVER_DataType datatype, const int64_t *shape,
                       const uint32_t dims_count);

/* Makes the state take effect for the next request of the sequence. Its buffer must be written by
 * then. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_StateUpdate(TRITONBACKEND_State *state);

/* Obtains the buffer to write a state to, as TRITONBACKEND_OutputBuffer does for an output. The
 * buffer belongs to the state. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_StateBuffer(TRITONBACKEND_State *state, void **buffer,
                          const uint64_t buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
                          int64_t *memory_type_id);

/* Gives the attributes of the state's buffer, which belong to the server, once it is obtained. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_StateBufferAttributes(TRITONBACKEND_State *state,
                                    TRITONSERVER_BufferAttributes **buffer_attributes);

/* ---- Backend ----------------------------------------------------------------------------- */

/* How the instances of a model share threads. */
typedef enum TRITONBACKEND_execpolicy_enum {
    TRITONBACKEND_EXECUTION_BLOCKING = 0,       /* a thread for each instance; the default */
    TRITONBACKEND_EXECUTION_DEVICE_BLOCKING = 1 /* a thread for all instances of a GPU */
} TRITONBACKEND_ExecutionPolicy;

/* Gives the name of the backend, borrowed as long as the backend is loaded. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_BackendName(TRITONBACKEND_Backend *backend,
                                                                     const char **name);

/* Gives the settings of the backend as a message that belongs to the server: an object whose member
 * "cmdline" holds the settings, all of them strings. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendConfig(TRITONBACKEND_Backend *backend, TRITONSERVER_Message **backend_config);

/* Gives how instances share threads. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendExecutionPolicy(TRITONBACKEND_Backend *backend,
                                     TRITONBACKEND_ExecutionPolicy *policy);

/* Sets how instances share threads. Only inside TRITONBACKEND_Initialize. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendSetExecutionPolicy(TRITONBACKEND_Backend *backend,
                                        TRITONBACKEND_ExecutionPolicy policy);

/* Gives the folder that the backend was loaded from, borrowed as long as it is loaded. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendArtifacts(TRITONBACKEND_Backend *backend,
                               TRITONBACKEND_ArtifactType *artifact_type, const char **location);

/* Gives the memory manager, which belongs to the server and outlives the backend's models. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendMemoryManager(TRITONBACKEND_Backend *backend,
                                   TRITONBACKEND_MemoryManager **manager);

/* Gives the pointer set with TRITONBACKEND_BackendSetState, NULL before. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendState(TRITONBACKEND_Backend *backend, void **state);

/* Keeps a pointer of the backend's own, which the backend frees in TRITONBACKEND_Finalize. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendSetState(TRITONBACKEND_Backend *backend, void *state);

/* ---- Model ------------------------------------------------------------------------------- */

/* Gives the name of the model, borrowed until TRITONBACKEND_ModelFinalize returns. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelName(TRITONBACKEND_Model *model,
                                                                   const char **name);

/* Gives the version of the model. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelVersion(TRITONBACKEND_Model *model,
                                                                      uint64_t *version);

/* Gives the folder of the model, which holds its versions; borrowed as the name is. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelRepository(TRITONBACKEND_Model *model, TRITONBACKEND_ArtifactType *artifact_type,
                              const char **location);

/* Gives the model's configuration as a message that the backend owns and deletes. 'config_version'
 * is 1; any other is UNSUPPORTED. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelConfig(TRITONBACKEND_Model *model, const uint32_t config_version,
                          TRITONSERVER_Message **model_config);

/* Gives whether the backend is to complete the configuration inside TRITONBACKEND_ModelInitialize.
 */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model *model, bool *auto_complete_config);

/* Replaces what a backend may complete: the greatest batch, inputs, outputs, scheduler and whether
 * the model is decoupled. Only inside TRITONBACKEND_ModelInitialize. The message stays with the
 * backend. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model *model, const uint32_t config_version,
                             TRITONSERVER_Message *model_config);

/* Gives the server that the model is part of. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelServer(TRITONBACKEND_Model *model,
                                                                     TRITONSERVER_Server **server);

/* Gives the backend of the model. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelBackend(TRITONBACKEND_Model *model, TRITONBACKEND_Backend **backend);

/* Gives the pointer set with TRITONBACKEND_ModelSetState, NULL before. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelState(TRITONBACKEND_Model *model,
                                                                    void **state);

/* Keeps a pointer of the backend's own, which the backend frees in TRITONBACKEND_ModelFinalize. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelSetState(TRITONBACKEND_Model *model,
                                                                       void *state);

/* Reports the memory that the model itself uses, one entry for each place. Replaces an earlier
 * report. The attributes stay with the backend. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelReportMemoryUsage(TRITONBACKEND_Model *model,
                                     TRITONSERVER_BufferAttributes **usage, uint32_t usage_size);

/* ---- Model instance ---------------------------------------------------------------------- */

/* Gives the name of the instance, borrowed until TRITONBACKEND_ModelInstanceFinalize returns. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceName(TRITONBACKEND_ModelInstance *instance, const char **name);

/* Gives what the instance runs on; never AUTO. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance *instance,
                                TRITONSERVER_InstanceGroupKind *kind);

/* Gives the number of the device that the instance runs on; 0 for the CPU. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance *instance, int32_t *device_id);

/* Gives the host policy of the instance as a message that belongs to the server. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceHostPolicy(TRITONBACKEND_ModelInstance *instance,
                                      TRITONSERVER_Message **host_policy);

/* Gives whether the instance is one that only other instances use: it is never executed. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceIsPassive(TRITONBACKEND_ModelInstance *instance, bool *is_passive);

/* Gives the number of optimization profiles that the configuration names. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceProfileCount(TRITONBACKEND_ModelInstance *instance, uint32_t *count);

/* Gives the name of a profile. INVALID_ARG when 'index' is out of range. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceProfileName(TRITONBACKEND_ModelInstance *instance, const uint32_t index,
                                       const char **profile_name);

/* Gives the number of further devices that the configuration names. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceSecondaryDeviceCount(TRITONBACKEND_ModelInstance *instance,
                                                uint32_t *count);

/* Gives the kind and the number of a further device. INVALID_ARG when 'index' is out of range. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(
    TRITONBACKEND_ModelInstance *instance, uint32_t index, const char **kind, int64_t *id);

/* Gives the model of the instance. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance *instance,
                                 TRITONBACKEND_Model **model);

/* Gives the pointer set with TRITONBACKEND_ModelInstanceSetState, NULL before. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance *instance, void **state);

/* Keeps a pointer of the backend's own, which it frees in TRITONBACKEND_ModelInstanceFinalize. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance *instance, void *state);

/* Reports the memory that the instance uses, as TRITONBACKEND_ModelReportMemoryUsage does for a
 * model. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReportMemoryUsage(TRITONBACKEND_ModelInstance *instance,
                                             TRITONSERVER_BufferAttributes **usage,
                                             uint32_t usage_size);

/* ---- Statistics -------------------------------------------------------------------------- */

/* Reports how one request went, with times on the monotonic clock; to be called before the request
 * is released. Without it the request is not counted as an inference, unless the library
 * contains the names of neither this function nor
 * TRITONBACKEND_ModelInstanceReportBatchStatistics: then the server counts. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request, const bool success,
    const uint64_t exec_start_ns, const uint64_t compute_start_ns, const uint64_t compute_end_ns,
    const uint64_t exec_end_ns);

/* Makes an empty report on a response of a decoupled model, owned by the backend. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsNew(
    TRITONBACKEND_ModelInstanceResponseStatistics **response_statistics);

/* Deletes a report. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsDelete(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics);

/* Sets the instance that the response comes from. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    TRITONBACKEND_ModelInstance *model_instance);

/* Sets the factory that the response is made by. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    TRITONBACKEND_ResponseFactory *response_factory);

/* Sets when work on the response began, in nanoseconds on the monotonic clock. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics, uint64_t response_start);

/* Sets when the output began to be written, in nanoseconds; 0 when there was none. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    uint64_t compute_output_start);

/* Sets when the response was complete, in nanoseconds. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics, uint64_t response_end);

/* Sets the error that the response carries; NULL for success. It stays with the backend, until
 * after the report. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetError(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics, TRITONSERVER_Error *error);

/* Enters a report. It stays with the backend and may be filled again. INVALID_ARG when instance or
 * factory are not set. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportResponseStatistics(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics);

/* Reports one execution of the instance, with the size of the batch that all its requests made up.
 */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance *instance, const uint64_t batch_size, const uint64_t exec_start_ns,
    const uint64_t compute_start_ns, const uint64_t compute_end_ns, const uint64_t exec_end_ns);

/* ---- Defined by the backend -------------------------------------------------------------- */

/* All but TRITONBACKEND_ModelInstanceExecute may be left out. A server finds them by name. */

/* Called once when the backend is loaded, before anything else. An error refuses the backend. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend);

/* Called once when the backend is no longer used, after its last model. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend);

/* Called when a model is loaded, on the loading thread. An error refuses the model, whose
 * TRITONBACKEND_ModelFinalize is then not called. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model);

/* Called when a model is unloaded, after its last instance, on any thread. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model);

/* Called for each instance of a model, on the loading thread. An error refuses the model. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance);

/* Called for each instance when the model is unloaded. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance);

/* Called to run requests, one call at a time for each instance. On success the backend owns the
 * requests: it answers each one and releases it, then or later. On error it must have done neither,
 * and the server answers all of them with the error. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, const uint32_t request_count);

/* Called to learn whether the instance can run requests; an error says that it cannot, and why. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance *instance);

/* Called after TRITONBACKEND_Initialize so that the backend may state its attributes. They belong
 * to the server and are borrowed for the call. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *backend,
                                  TRITONBACKEND_BackendAttribute *backend_attributes);

/* ---- Backend attributes ------------------------------------------------------------------ */

/* Adds a group of instances for models whose configuration names none, the most preferred first.
 * 'count' 0 and 'id_count' 0 leave the choice to the server; 'device_ids' is copied. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    TRITONBACKEND_BackendAttribute *backend_attributes, const TRITONSERVER_InstanceGroupKind kind,
    const uint64_t count, const uint64_t *device_ids, const uint64_t id_count);

/* Sets whether instances of a model may be initialized on several threads at once. Default false.
 */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
    TRITONBACKEND_BackendAttribute *backend_attributes, bool enabled);

/* ---- Custom batching, defined by a backend or a library of its own ----------------------- */

/* Either all five functions are defined or none. */

/* Called when a model is loaded, to make '*batcher', an object of the strategy's own. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelBatcherInitialize(TRITONBACKEND_Batcher **batcher, TRITONBACKEND_Model *model);

/* Called when the model is unloaded, to free the batcher. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelBatcherFinalize(TRITONBACKEND_Batcher *batcher);

/* Called to decide whether a request joins the batch that 'userp' stands for. The request is
 * borrowed. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelBatchIncludeRequest(TRITONBACKEND_Request *request, void *userp,
                                       bool *should_include);

/* Called when a batch is begun, to make its '*userp'. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelBatchInitialize(const TRITONBACKEND_Batcher *batcher, void **userp);

/* Called when a batch is closed, to free its 'userp'. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelBatchFinalize(void *userp);

/* ---- Outputs of a response before it is sent --------------------------------------------- */

/* Gives type and shape of an output that the response has, borrowed until it is sent. NOT_FOUND
 * when it has none of that name. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InferenceResponseOutputByName(TRITONBACKEND_Response *response, const char *name,
                                            TRITONSERVER_DataType *datatype, const int64_t **shape,
                                            uint64_t *dim_count);

/* Gives name, type and shape of an output by index, borrowed until the response is sent.
 * INVALID_ARG when 'index' is out of range. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InferenceResponseOutput(TRITONBACKEND_Response *response, const uint32_t index,
                                      const char **name, TRITONSERVER_DataType *datatype,
                                      const int64_t **shape, uint64_t *dim_count);

#ifdef __cplusplus
}
#endif
