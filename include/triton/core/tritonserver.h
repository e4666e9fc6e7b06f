/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C API of a Triton inference server, version 1.34, as Kelp provides it.
 *
 * Names, values and signatures are those of Triton's public interface, so that applications and
 * plugins built against either header run with either library. The contracts are Kelp's.
 *
 * Conventions, unless a function says otherwise:
 *   - A function that returns TRITONSERVER_Error * returns NULL on success. Any other error belongs
 *     to the caller, who frees it with TRITONSERVER_ErrorDelete. Outputs are not written on error.
 *   - A handle made by ...New belongs to the caller until the matching ...Delete.
 *   - A string or array passed in is copied. One handed out is borrowed: it lives as long as the
 *     object that it was asked of is neither changed nor deleted.
 *   - Functions that take a TRITONSERVER_Server may be called from any thread. Every other object
 *     is to be used by one thread at a time.
 *   - A NULL where an object or an output is required gives TRITONSERVER_ERROR_INVALID_ARG.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TRITONSERVER_DECLSPEC
#if defined(__GNUC__)
#define TRITONSERVER_DECLSPEC __attribute__((__visibility__("default")))
#else
#define TRITONSERVER_DECLSPEC
#endif
#endif

/* ---- Opaque objects ---------------------------------------------------------------------- */

struct TRITONSERVER_BufferAttributes;
struct TRITONSERVER_Error;
struct TRITONSERVER_InferenceRequest;
struct TRITONSERVER_InferenceResponse;
struct TRITONSERVER_InferenceTrace;
struct TRITONSERVER_Message;
struct TRITONSERVER_Metric;
struct TRITONSERVER_MetricArgs;
struct TRITONSERVER_MetricFamily;
struct TRITONSERVER_Metrics;
struct TRITONSERVER_Parameter;
struct TRITONSERVER_ResponseAllocator;
struct TRITONSERVER_Server;
struct TRITONSERVER_ServerOptions;

typedef struct TRITONSERVER_BufferAttributes TRITONSERVER_BufferAttributes;
typedef struct TRITONSERVER_Error TRITONSERVER_Error;
typedef struct TRITONSERVER_InferenceRequest TRITONSERVER_InferenceRequest;
typedef struct TRITONSERVER_InferenceResponse TRITONSERVER_InferenceResponse;
typedef struct TRITONSERVER_InferenceTrace TRITONSERVER_InferenceTrace;
typedef struct TRITONSERVER_Message TRITONSERVER_Message;
typedef struct TRITONSERVER_Metric TRITONSERVER_Metric;
typedef struct TRITONSERVER_MetricArgs TRITONSERVER_MetricArgs;
typedef struct TRITONSERVER_MetricFamily TRITONSERVER_MetricFamily;
typedef struct TRITONSERVER_Metrics TRITONSERVER_Metrics;
typedef struct TRITONSERVER_Parameter TRITONSERVER_Parameter;
typedef struct TRITONSERVER_ResponseAllocator TRITONSERVER_ResponseAllocator;
typedef struct TRITONSERVER_Server TRITONSERVER_Server;
typedef struct TRITONSERVER_ServerOptions TRITONSERVER_ServerOptions;

/* ---- API version ------------------------------------------------------------------------- */

/* The major number changes when a caller has to change, the minor one when something is added. */
#define TRITONSERVER_API_VERSION_MAJOR 1
#define TRITONSERVER_API_VERSION_MINOR 34

/* Gives the version that the library implements. A caller compiled against this header needs an
 * equal major number and a minor number that is at least its own. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ApiVersion(uint32_t *major, uint32_t *minor);

/* ---- Data types -------------------------------------------------------------------------- */

/* The element types of tensors. */
typedef enum TRITONSERVER_datatype_enum {
    TRITONSERVER_TYPE_INVALID = 0,
    TRITONSERVER_TYPE_BOOL = 1,
    TRITONSERVER_TYPE_UINT8 = 2,
    TRITONSERVER_TYPE_UINT16 = 3,
    TRITONSERVER_TYPE_UINT32 = 4,
    TRITONSERVER_TYPE_UINT64 = 5,
    TRITONSERVER_TYPE_INT8 = 6,
    TRITONSERVER_TYPE_INT16 = 7,
    TRITONSERVER_TYPE_INT32 = 8,
    TRITONSERVER_TYPE_INT64 = 9,
    TRITONSERVER_TYPE_FP16 = 10,
    TRITONSERVER_TYPE_FP32 = 11,
    TRITONSERVER_TYPE_FP64 = 12,
    TRITONSERVER_TYPE_BYTES = 13, /* elements of any length, each led by a 4-byte length */
    TRITONSERVER_TYPE_BF16 = 14
} TRITONSERVER_DataType;

/* Returns the name of a data type as model configurations and clients spell it, for example "FP32".
 * The string is static; an unknown value gives "<invalid>". */
TRITONSERVER_DECLSPEC const char *TRITONSERVER_DataTypeString(TRITONSERVER_DataType datatype);

/* Returns the data type of a name, or TRITONSERVER_TYPE_INVALID when there is none of that name. */
TRITONSERVER_DECLSPEC TRITONSERVER_DataType TRITONSERVER_StringToDataType(const char *dtype);

/* Returns the size of one element in bytes; 0 for BYTES, whose elements vary, and for INVALID. */
TRITONSERVER_DECLSPEC uint32_t TRITONSERVER_DataTypeByteSize(TRITONSERVER_DataType datatype);

/* ---- Memory types ------------------------------------------------------------------------ */

/* Where a buffer lies. The memory type id beside it numbers the device, and is 0 for the CPU. */
typedef enum TRITONSERVER_memorytype_enum {
    TRITONSERVER_MEMORY_CPU = 0,
    TRITONSERVER_MEMORY_CPU_PINNED = 1,
    TRITONSERVER_MEMORY_GPU = 2
} TRITONSERVER_MemoryType;

/* Returns the static name of a memory type; "<invalid>" for an unknown value. */
TRITONSERVER_DECLSPEC const char *TRITONSERVER_MemoryTypeString(TRITONSERVER_MemoryType memtype);

/* ---- Parameters -------------------------------------------------------------------------- */

/* The kinds of value that a named parameter may have. */
typedef enum TRITONSERVER_parametertype_enum {
    TRITONSERVER_PARAMETER_STRING = 0,
    TRITONSERVER_PARAMETER_INT = 1,
    TRITONSERVER_PARAMETER_BOOL = 2,
    TRITONSERVER_PARAMETER_DOUBLE = 3,
    TRITONSERVER_PARAMETER_BYTES = 4
} TRITONSERVER_ParameterType;

/* Returns the static name of a parameter type; "<invalid>" for an unknown value. */
TRITONSERVER_DECLSPEC const char *
TRITONSERVER_ParameterTypeString(TRITONSERVER_ParameterType paramtype);

/* Makes a parameter with a copy of the value. 'value' is the string itself for STRING, and points
 * at an int64_t for INT, a bool for BOOL, a double for DOUBLE. Returns NULL for any other type
 * (BYTES has its own function) and when memory is short. The caller owns the result. */
TRITONSERVER_DECLSPEC TRITONSERVER_Parameter *
TRITONSERVER_ParameterNew(const char *name, const TRITONSERVER_ParameterType type,
                          const void *value);

/* Makes a parameter of type BYTES that refers to the caller's bytes without copying them: they must
 * stay as they are until the parameter is deleted. Returns NULL when memory is short. */
TRITONSERVER_DECLSPEC TRITONSERVER_Parameter *
TRITONSERVER_ParameterBytesNew(const char *name, const void *byte_ptr, const uint64_t size);

/* Deletes a parameter. The bytes that a BYTES parameter refers to are left alone. NULL is allowed.
 */
TRITONSERVER_DECLSPEC void TRITONSERVER_ParameterDelete(TRITONSERVER_Parameter *parameter);

/* ---- Instance groups --------------------------------------------------------------------- */

/* What a model instance runs on. */
typedef enum TRITONSERVER_instancegroupkind_enum {
    TRITONSERVER_INSTANCEGROUPKIND_AUTO = 0,
    TRITONSERVER_INSTANCEGROUPKIND_CPU = 1,
    TRITONSERVER_INSTANCEGROUPKIND_GPU = 2,
    TRITONSERVER_INSTANCEGROUPKIND_MODEL = 3
} TRITONSERVER_InstanceGroupKind;

/* Returns the static name of an instance kind; "<invalid>" for an unknown value. */
TRITONSERVER_DECLSPEC const char *
TRITONSERVER_InstanceGroupKindString(TRITONSERVER_InstanceGroupKind kind);

/* ---- Logging ----------------------------------------------------------------------------- */

/* The severity of a log message. */
typedef enum TRITONSERVER_loglevel_enum {
    TRITONSERVER_LOG_INFO = 0,
    TRITONSERVER_LOG_WARN = 1,
    TRITONSERVER_LOG_ERROR = 2,
    TRITONSERVER_LOG_VERBOSE = 3
} TRITONSERVER_LogLevel;

/* How the time in front of a log message is written. */
typedef enum TRITONSERVER_logformat_enum {
    TRITONSERVER_LOG_DEFAULT = 0,
    TRITONSERVER_LOG_ISO8601 = 1
} TRITONSERVER_LogFormat;

/* Returns whether messages of this level are written now. Safe on any thread; ask it before a
 * message that is dear to compose. */
TRITONSERVER_DECLSPEC bool TRITONSERVER_LogIsEnabled(TRITONSERVER_LogLevel level);

/* Writes a message to the process's log, with the source file and line that it comes from. A level
 * that is off drops the message. Safe on any thread. INVALID_ARG for an unknown level. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_LogMessage(TRITONSERVER_LogLevel level,
                                                                  const char *filename,
                                                                  const int line, const char *msg);

/* ---- Errors ------------------------------------------------------------------------------ */

/* The class of an error; success is a NULL error and has no code. */
typedef enum TRITONSERVER_errorcode_enum {
    TRITONSERVER_ERROR_UNKNOWN = 0,
    TRITONSERVER_ERROR_INTERNAL = 1,
    TRITONSERVER_ERROR_NOT_FOUND = 2,
    TRITONSERVER_ERROR_INVALID_ARG = 3,
    TRITONSERVER_ERROR_UNAVAILABLE = 4,
    TRITONSERVER_ERROR_UNSUPPORTED = 5,
    TRITONSERVER_ERROR_ALREADY_EXISTS = 6,
    TRITONSERVER_ERROR_CANCELLED = 7
} TRITONSERVER_Error_Code;

/* Makes an error with a copy of the message. The caller owns it until it is handed on or deleted.
 * Never NULL: when memory is short, a static error says so, and may be deleted as any other. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code,
                                                                const char *msg);

/* Deletes an error. NULL is allowed. */
TRITONSERVER_DECLSPEC void TRITONSERVER_ErrorDelete(TRITONSERVER_Error *error);

/* Returns the code of an error, which stays with the caller. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error_Code TRITONSERVER_ErrorCode(TRITONSERVER_Error *error);

/* Returns the static text of the error's code, for example "Invalid argument". */
TRITONSERVER_DECLSPEC const char *TRITONSERVER_ErrorCodeString(TRITONSERVER_Error *error);

/* Returns the message of an error, borrowed until the error is deleted. */
TRITONSERVER_DECLSPEC const char *TRITONSERVER_ErrorMessage(TRITONSERVER_Error *error);

/* ---- Response allocator ------------------------------------------------------------------ */

/* Called for each output of a response, also for one of 0 bytes. 'memory_type' and 'memory_type_id'
 * are where the buffer would be best; the callback sets where it is. '*buffer' may stay NULL only
 * for 0 bytes. '*buffer_userp' comes back with the output and in the release callback. 'userp' is
 * the one given with TRITONSERVER_InferenceRequestSetResponseCallback. Runs on a thread of the
 * model. A returned error passes to the server and fails the response. */
typedef TRITONSERVER_Error *(*TRITONSERVER_ResponseAllocatorAllocFn_t)(
    TRITONSERVER_ResponseAllocator *allocator, const char *tensor_name, size_t byte_size,
    TRITONSERVER_MemoryType memory_type, int64_t memory_type_id, void *userp, void **buffer,
    void **buffer_userp, TRITONSERVER_MemoryType *actual_memory_type,
    int64_t *actual_memory_type_id);

/* Called after an allocation so that the callback may fill in attributes of the buffer that go
 * beyond memory type and size, such as a CUDA IPC handle. 'buffer_attributes' belongs to the
 * server. A returned error passes to the server. */
typedef TRITONSERVER_Error *(*TRITONSERVER_ResponseAllocatorBufferAttributesFn_t)(
    TRITONSERVER_ResponseAllocator *allocator, const char *tensor_name,
    TRITONSERVER_BufferAttributes *buffer_attributes, void *userp, void *buffer_userp);

/* Called to learn where an output would be allocated before it is. 'tensor_name' is NULL to ask for
 * outputs in general; 'byte_size' is NULL when the size is not yet known. '*memory_type' and
 * '*memory_type_id' come in with the preference and go out with the answer. A returned error passes
 * to the server. */
typedef TRITONSERVER_Error *(*TRITONSERVER_ResponseAllocatorQueryFn_t)(
    TRITONSERVER_ResponseAllocator *allocator, void *userp, const char *tensor_name,
    size_t *byte_size, TRITONSERVER_MemoryType *memory_type, int64_t *memory_type_id);

/* Called when the response that holds a buffer is deleted, once for each buffer that is not NULL,
 * with what the allocation callback had set. A returned error passes to the server, which logs it.
 */
typedef TRITONSERVER_Error *(*TRITONSERVER_ResponseAllocatorReleaseFn_t)(
    TRITONSERVER_ResponseAllocator *allocator, void *buffer, void *buffer_userp, size_t byte_size,
    TRITONSERVER_MemoryType memory_type, int64_t memory_type_id);

/* Called once at the start of each response, before its first allocation. A returned error passes
 * to the server. */
typedef TRITONSERVER_Error *(*TRITONSERVER_ResponseAllocatorStartFn_t)(
    TRITONSERVER_ResponseAllocator *allocator, void *userp);

/* Makes an allocator out of callbacks; 'start_fn' may be NULL. The caller owns it and keeps it
 * until the last response made with it is deleted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorNew(TRITONSERVER_ResponseAllocator **allocator,
                                  TRITONSERVER_ResponseAllocatorAllocFn_t alloc_fn,
                                  TRITONSERVER_ResponseAllocatorReleaseFn_t release_fn,
                                  TRITONSERVER_ResponseAllocatorStartFn_t start_fn);

/* Sets the callback that completes the attributes of allocated buffers. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(
    TRITONSERVER_ResponseAllocator *allocator,
    TRITONSERVER_ResponseAllocatorBufferAttributesFn_t buffer_attributes_fn);

/* Sets the callback that answers where an output would be allocated. Without one,
 * TRITONBACKEND_RequestOutputBufferProperties gives UNAVAILABLE. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorSetQueryFunction(TRITONSERVER_ResponseAllocator *allocator,
                                               TRITONSERVER_ResponseAllocatorQueryFn_t query_fn);

/* Deletes an allocator, which no request or response may use any longer. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorDelete(TRITONSERVER_ResponseAllocator *allocator);

/* ---- Messages ---------------------------------------------------------------------------- */

/* Parses 'byte_size' bytes of JSON into a new message that the caller owns. The bytes are not kept.
 * INVALID_ARG, with the place, when they are not JSON. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message **message, const char *base,
                                          size_t byte_size);

/* Deletes a message and every text taken from it. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MessageDelete(TRITONSERVER_Message *message);

/* Gives the message as JSON text without a closing NUL, borrowed until the message is deleted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message *message, const char **base,
                                    size_t *byte_size);

/* ---- Server metrics ---------------------------------------------------------------------- */

/* The formats that metrics can be written in. */
typedef enum tritonserver_metricformat_enum {
    TRITONSERVER_METRIC_PROMETHEUS = 0
} TRITONSERVER_MetricFormat;

/* Deletes a snapshot of metrics and the text taken from it. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricsDelete(TRITONSERVER_Metrics *metrics);

/* Gives the metrics as text in the format asked for, borrowed until 'metrics' is deleted.
 * INVALID_ARG for an unknown format. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricsFormatted(TRITONSERVER_Metrics *metrics, TRITONSERVER_MetricFormat format,
                              const char **base, size_t *byte_size);

/* ---- Inference traces -------------------------------------------------------------------- */

/* What a trace records; values from TIMESTAMPS on are bits that may be joined. MIN and MAX are
 * deprecated and mean the same as TIMESTAMPS. */
typedef enum tritonserver_tracelevel_enum {
    TRITONSERVER_TRACE_LEVEL_DISABLED = 0,
    TRITONSERVER_TRACE_LEVEL_MIN = 1,
    TRITONSERVER_TRACE_LEVEL_MAX = 2,
    TRITONSERVER_TRACE_LEVEL_TIMESTAMPS = 4,
    TRITONSERVER_TRACE_LEVEL_TENSORS = 8
} TRITONSERVER_InferenceTraceLevel;

/* Returns the static name of a trace level; "<unknown>" for a value without one. */
TRITONSERVER_DECLSPEC const char *
TRITONSERVER_InferenceTraceLevelString(TRITONSERVER_InferenceTraceLevel level);

/* The moments in a request's life that are reported to a trace. */
typedef enum tritonserver_traceactivity_enum {
    TRITONSERVER_TRACE_REQUEST_START = 0,
    TRITONSERVER_TRACE_QUEUE_START = 1,
    TRITONSERVER_TRACE_COMPUTE_START = 2,
    TRITONSERVER_TRACE_COMPUTE_INPUT_END = 3,
    TRITONSERVER_TRACE_COMPUTE_OUTPUT_START = 4,
    TRITONSERVER_TRACE_COMPUTE_END = 5,
    TRITONSERVER_TRACE_REQUEST_END = 6,
    TRITONSERVER_TRACE_TENSOR_QUEUE_INPUT = 7,
    TRITONSERVER_TRACE_TENSOR_BACKEND_INPUT = 8,
    TRITONSERVER_TRACE_TENSOR_BACKEND_OUTPUT = 9,
    TRITONSERVER_TRACE_CUSTOM_ACTIVITY = 10
} TRITONSERVER_InferenceTraceActivity;

/* Returns the static name of an activity; "<unknown>" for a value without one. */
TRITONSERVER_DECLSPEC const char *
TRITONSERVER_InferenceTraceActivityString(TRITONSERVER_InferenceTraceActivity activity);

/* Called at each traced moment, on whichever thread reaches it, also for child traces, and perhaps
 * on several threads at once. The trace is borrowed for the call. 'timestamp_ns' is on the
 * monotonic clock. */
typedef void (*TRITONSERVER_InferenceTraceActivityFn_t)(
    TRITONSERVER_InferenceTrace *trace, TRITONSERVER_InferenceTraceActivity activity,
    uint64_t timestamp_ns, void *userp);

/* Called with the content of a tensor at a traced moment. Everything that is passed is borrowed for
 * the call. */
typedef void (*TRITONSERVER_InferenceTraceTensorActivityFn_t)(
    TRITONSERVER_InferenceTrace *trace, TRITONSERVER_InferenceTraceActivity activity,
    const char *name, TRITONSERVER_DataType datatype, const void *base, size_t byte_size,
    const int64_t *shape, uint64_t dim_count, TRITONSERVER_MemoryType memory_type,
    int64_t memory_type_id, void *userp);

/* Called when nothing reports to the trace any more. The trace then belongs to the callback, which
 * deletes it. Also called for child traces. */
typedef void (*TRITONSERVER_InferenceTraceReleaseFn_t)(TRITONSERVER_InferenceTrace *trace,
                                                       void *userp);

/* Makes a trace that reports timestamps. 'parent_id' is 0 when it has no parent. The caller owns it
 * until TRITONSERVER_ServerInferAsync succeeds with it; it comes back through 'release_fn'.
 * 'trace_userp' is passed to the callbacks. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceTraceNew(
    TRITONSERVER_InferenceTrace **trace, TRITONSERVER_InferenceTraceLevel level, uint64_t parent_id,
    TRITONSERVER_InferenceTraceActivityFn_t activity_fn,
    TRITONSERVER_InferenceTraceReleaseFn_t release_fn, void *trace_userp);

/* As TRITONSERVER_InferenceTraceNew, for a trace that may also report tensors. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceTraceTensorNew(
    TRITONSERVER_InferenceTrace **trace, TRITONSERVER_InferenceTraceLevel level, uint64_t parent_id,
    TRITONSERVER_InferenceTraceActivityFn_t activity_fn,
    TRITONSERVER_InferenceTraceTensorActivityFn_t tensor_activity_fn,
    TRITONSERVER_InferenceTraceReleaseFn_t release_fn, void *trace_userp);

/* Reports an activity of the caller's own, TRITONSERVER_TRACE_CUSTOM_ACTIVITY, with its name and
 * its time in nanoseconds. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceReportActivity(TRITONSERVER_InferenceTrace *trace, uint64_t timestamp,
                                          const char *name);

/* Deletes a trace that the caller owns. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceDelete(TRITONSERVER_InferenceTrace *trace);

/* Gives the id of a trace: unique in the process, counted from 1. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceId(TRITONSERVER_InferenceTrace *trace, uint64_t *id);

/* Gives the id of the parent, or 0. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceParentId(TRITONSERVER_InferenceTrace *trace, uint64_t *parent_id);

/* Gives the name of the model that the traced request goes to. Set once the request is submitted.
 */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceModelName(TRITONSERVER_InferenceTrace *trace, const char **model_name);

/* Gives the version of the model that the traced request goes to. Set once the request is
 * submitted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceModelVersion(TRITONSERVER_InferenceTrace *trace, int64_t *model_version);

/* Gives the id of the traced request; empty when it has none. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceRequestId(TRITONSERVER_InferenceTrace *trace, const char **request_id);

/* Makes a child with the same level, callbacks and user pointer. The caller owns the child and
 * submits it with a request that serves the parent's. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceSpawnChildTrace(TRITONSERVER_InferenceTrace *trace,
                                           TRITONSERVER_InferenceTrace **child_trace);

/* Attaches a text to the trace, such as a W3C trace context, for whoever continues it. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceSetContext(TRITONSERVER_InferenceTrace *trace,
                                      const char *trace_context);

/* Gives the text that was attached, empty when none was. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceContext(TRITONSERVER_InferenceTrace *trace, const char **trace_context);

/* ---- Inference requests ------------------------------------------------------------------ */

/* Bits that mark a request's place in a sequence. */
typedef enum tritonserver_requestflag_enum {
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1,
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
} TRITONSERVER_RequestFlag;

/* Bits that say how a request is released. RESCHEDULE hands it back to its scheduler to be run
 * again. */
typedef enum tritonserver_requestreleaseflag_enum {
    TRITONSERVER_REQUEST_RELEASE_ALL = 1,
    TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2
} TRITONSERVER_RequestReleaseFlag;

/* Bits that accompany a response. */
typedef enum tritonserver_responsecompleteflag_enum {
    TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1 /* no further response follows for this request */
} TRITONSERVER_ResponseCompleteFlag;

/* Called when the server no longer uses a request. With TRITONSERVER_REQUEST_RELEASE_ALL the
 * request belongs to the callback again, which deletes or reuses it. May run before the last
 * response, and inside TRITONSERVER_ServerInferAsync. */
typedef void (*TRITONSERVER_InferenceRequestReleaseFn_t)(TRITONSERVER_InferenceRequest *request,
                                                         const uint32_t flags, void *userp);

/* Called with each response, which then belongs to the callback, who deletes it. 'response' is NULL
 * when only flags are sent, for example to close a decoupled request that has nothing more to say.
 */
typedef void (*TRITONSERVER_InferenceResponseCompleteFn_t)(TRITONSERVER_InferenceResponse *response,
                                                           const uint32_t flags, void *userp);

/* Makes an empty request for a model; version -1 lets the model's policy choose. The caller owns
 * it. An error when there is no such model or version, UNAVAILABLE when it is not ready. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestNew(TRITONSERVER_InferenceRequest **inference_request,
                                 TRITONSERVER_Server *server, const char *model_name,
                                 const int64_t model_version);

/* Deletes a request that the caller owns: never submitted, or given back by the release callback.
 */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestDelete(TRITONSERVER_InferenceRequest *inference_request);

/* Gives the request's id; empty when it has none. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestId(TRITONSERVER_InferenceRequest *inference_request, const char **id);

/* Sets the id, which comes back with each response and appears in logs. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetId(TRITONSERVER_InferenceRequest *inference_request,
                                   const char *id);

/* Gives the request's flags: a bitwise or of TRITONSERVER_RequestFlag. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestFlags(TRITONSERVER_InferenceRequest *inference_request,
                                   uint32_t *flags);

/* Sets the request's flags: a bitwise or of TRITONSERVER_RequestFlag. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetFlags(TRITONSERVER_InferenceRequest *inference_request,
                                      uint32_t flags);

/* Gives the number of the sequence that the request belongs to, 0 for none. INVALID_ARG when the
 * sequence is named by a string. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCorrelationId(TRITONSERVER_InferenceRequest *inference_request,
                                           uint64_t *correlation_id);

/* Gives the name of the sequence that the request belongs to, empty for none. INVALID_ARG when the
 * sequence is named by a number. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCorrelationIdString(TRITONSERVER_InferenceRequest *inference_request,
                                                 const char **correlation_id);

/* Sets the sequence by number; 0 stands for no sequence. Replaces a string set before. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetCorrelationId(TRITONSERVER_InferenceRequest *inference_request,
                                              uint64_t correlation_id);

/* Sets the sequence by name; the empty string stands for no sequence. INVALID_ARG above 128
 * characters. Replaces a number set before. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetCorrelationIdString(
    TRITONSERVER_InferenceRequest *inference_request, const char *correlation_id);

/* Asks that a submitted request be given up. Scheduler and backend honour it when they next look,
 * and the request still completes, as a rule with TRITONSERVER_ERROR_CANCELLED. Safe on any thread
 * and after the backend released the request. INTERNAL before it is submitted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCancel(TRITONSERVER_InferenceRequest *inference_request);

/* Gives whether cancellation was asked for. INTERNAL before the request is submitted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestIsCancelled(TRITONSERVER_InferenceRequest *inference_request,
                                         bool *is_cancelled);

/* Deprecated: as TRITONSERVER_InferenceRequestPriorityUInt64, cut to 32 bits. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestPriority(TRITONSERVER_InferenceRequest *inference_request,
                                      uint32_t *priority);

/* Gives the priority level; 0 stands for the model's default level. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestPriorityUInt64(TRITONSERVER_InferenceRequest *inference_request,
                                            uint64_t *priority);

/* Deprecated: as TRITONSERVER_InferenceRequestSetPriorityUInt64, for 32 bits. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetPriority(TRITONSERVER_InferenceRequest *inference_request,
                                         uint32_t priority);

/* Sets the priority level: 1 is served first, 0 is the model's default; a level that the model
 * lacks counts as its default. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetPriorityUInt64(TRITONSERVER_InferenceRequest *inference_request,
                                               uint64_t priority);

/* Gives the time that the request may wait in a queue, in microseconds; 0 for no limit of its own.
 */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestTimeoutMicroseconds(TRITONSERVER_InferenceRequest *inference_request,
                                                 uint64_t *timeout_us);

/* Sets the time that the request may wait in a queue, in microseconds; 0 for no limit of its own.
 * What happens on expiry is the queue policy of the model. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t timeout_us);

/* Adds an input, without data. 'shape' has 'dim_count' extents and is copied. INVALID_ARG when an
 * input has that name. Whether it suits the model is checked on submission. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddInput(TRITONSERVER_InferenceRequest *inference_request,
                                      const char *name, const TRITONSERVER_DataType datatype,
                                      const int64_t *shape, uint64_t dim_count);

/* Adds the only input, whose type and shape come from the model's configuration and whose bytes are
 * taken as they are. INVALID_ARG when the request has other inputs. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddRawInput(TRITONSERVER_InferenceRequest *inference_request,
                                         const char *name);

/* Removes an input and its data. INVALID_ARG when no input has that name. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveInput(TRITONSERVER_InferenceRequest *inference_request,
                                         const char *name);

/* Removes every input and its data. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveAllInputs(TRITONSERVER_InferenceRequest *inference_request);

/* Appends a block to an input's data. The bytes are not copied: they must stay as they are until
 * the request is released. INVALID_ARG when no input has that name. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestAppendInputData(
    TRITONSERVER_InferenceRequest *inference_request, const char *name, const void *base,
    size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id);

/* As TRITONSERVER_InferenceRequestAppendInputData, for data that only instances under the named
 * host policy read; the others read what was appended without a policy. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
    TRITONSERVER_InferenceRequest *inference_request, const char *name, const void *base,
    size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id,
    const char *host_policy_name);

/* As TRITONSERVER_InferenceRequestAppendInputData, with size and place taken from attributes, which
 * are copied. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(
    TRITONSERVER_InferenceRequest *inference_request, const char *name, const void *base,
    TRITONSERVER_BufferAttributes *buffer_attributes);

/* Drops the data of an input and keeps the input, so that the request can be used again with other
 * data. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveAllInputData(TRITONSERVER_InferenceRequest *inference_request,
                                                const char *name);

/* Asks for an output by name. A request that asks for none receives all outputs of the model. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddRequestedOutput(TRITONSERVER_InferenceRequest *inference_request,
                                                const char *name);

/* No longer asks for this output. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveRequestedOutput(TRITONSERVER_InferenceRequest *inference_request,
                                                   const char *name);

/* Asks for no particular output, which means all of them. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(
    TRITONSERVER_InferenceRequest *inference_request);

/* Sets the callback through which the request comes back. Required before submission. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetReleaseCallback(
    TRITONSERVER_InferenceRequest *inference_request,
    TRITONSERVER_InferenceRequestReleaseFn_t request_release_fn, void *request_release_userp);

/* Sets the allocator for outputs and the callback for responses, each with its user pointer.
 * Required before submission. The allocator must outlive every response of the request. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetResponseCallback(
    TRITONSERVER_InferenceRequest *inference_request,
    TRITONSERVER_ResponseAllocator *response_allocator, void *response_allocator_userp,
    TRITONSERVER_InferenceResponseCompleteFn_t response_fn, void *response_userp);

/* Adds a string parameter for the backend; a name may occur more than once. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetStringParameter(TRITONSERVER_InferenceRequest *request,
                                                const char *key, const char *value);

/* Adds an integer parameter for the backend; a name may occur more than once. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetIntParameter(TRITONSERVER_InferenceRequest *request,
                                             const char *key, const int64_t value);

/* Adds a boolean parameter for the backend; a name may occur more than once. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetBoolParameter(TRITONSERVER_InferenceRequest *request,
                                              const char *key, const bool value);

/* Adds a floating-point parameter for the backend; a name may occur more than once. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetDoubleParameter(TRITONSERVER_InferenceRequest *request,
                                                const char *key, const double value);

/* ---- Inference responses ----------------------------------------------------------------- */

/* Deletes a response; each of its buffers goes back through the allocator's release callback. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseDelete(TRITONSERVER_InferenceResponse *inference_response);

/* Returns the error that the response carries, or NULL when the inference succeeded. Each call
 * makes a new error that the caller owns. A response with an error may have no outputs. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseError(TRITONSERVER_InferenceResponse *inference_response);

/* Gives the name and version of the model that made the response. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseModel(TRITONSERVER_InferenceResponse *inference_response,
                                    const char **model_name, int64_t *model_version);

/* Gives the id of the request that is answered; empty when it has none. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseId(TRITONSERVER_InferenceResponse *inference_response,
                                 const char **request_id);

/* Gives the number of parameters that the backend attached. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseParameterCount(TRITONSERVER_InferenceResponse *inference_response,
                                             uint32_t *count);

/* Gives one parameter. '*vvalue' is the string itself for STRING and points at the value for the
 * other types. INVALID_ARG when 'index' is out of range. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseParameter(TRITONSERVER_InferenceResponse *inference_response,
                                        const uint32_t index, const char **name,
                                        TRITONSERVER_ParameterType *type, const void **vvalue);

/* Gives the number of outputs in the response. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseOutputCount(TRITONSERVER_InferenceResponse *inference_response,
                                          uint32_t *count);

/* Gives one output: its description, its bytes and where they lie, all borrowed until the response
 * is deleted. '*userp' is what the allocation callback set for the buffer. INVALID_ARG when 'index'
 * is out of range. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceResponseOutput(
    TRITONSERVER_InferenceResponse *inference_response, const uint32_t index, const char **name,
    TRITONSERVER_DataType *datatype, const int64_t **shape, uint64_t *dim_count, const void **base,
    size_t *byte_size, TRITONSERVER_MemoryType *memory_type, int64_t *memory_type_id, void **userp);

/* Gives the model's label of a class of an output, or NULL when the output has no such label.
 * INVALID_ARG when 'index' is out of range. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceResponseOutputClassificationLabel(
    TRITONSERVER_InferenceResponse *inference_response, const uint32_t index,
    const size_t class_index, const char **label);

/* ---- Buffer attributes ------------------------------------------------------------------- */

/* Makes attributes that describe an empty buffer in CPU memory. The caller owns them. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesNew(TRITONSERVER_BufferAttributes **buffer_attributes);

/* Deletes attributes that the caller made. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesDelete(TRITONSERVER_BufferAttributes *buffer_attributes);

/* Sets the number of the device that the buffer lies on. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetMemoryTypeId(TRITONSERVER_BufferAttributes *buffer_attributes,
                                             int64_t memory_type_id);

/* Sets the kind of memory that the buffer lies in. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetMemoryType(TRITONSERVER_BufferAttributes *buffer_attributes,
                                           TRITONSERVER_MemoryType memory_type);

/* Sets the CUDA IPC handle of the buffer, which is not copied; NULL for none. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetCudaIpcHandle(TRITONSERVER_BufferAttributes *buffer_attributes,
                                              void *cuda_ipc_handle);

/* Sets the size of the buffer in bytes. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetByteSize(TRITONSERVER_BufferAttributes *buffer_attributes,
                                         size_t byte_size);

/* Gives the number of the device that the buffer lies on. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesMemoryTypeId(TRITONSERVER_BufferAttributes *buffer_attributes,
                                          int64_t *memory_type_id);

/* Gives the kind of memory that the buffer lies in. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesMemoryType(TRITONSERVER_BufferAttributes *buffer_attributes,
                                        TRITONSERVER_MemoryType *memory_type);

/* Gives the CUDA IPC handle of the buffer, NULL when it has none. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesCudaIpcHandle(TRITONSERVER_BufferAttributes *buffer_attributes,
                                           void **cuda_ipc_handle);

/* Gives the size of the buffer in bytes. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesByteSize(TRITONSERVER_BufferAttributes *buffer_attributes,
                                      size_t *byte_size);

/* ---- Server options ---------------------------------------------------------------------- */

/* Who decides which models are loaded. */
typedef enum tritonserver_modelcontrolmode_enum {
    TRITONSERVER_MODEL_CONTROL_NONE = 0,    /* all of the repository, once, at the start */
    TRITONSERVER_MODEL_CONTROL_POLL = 1,    /* all of the repository, following its changes */
    TRITONSERVER_MODEL_CONTROL_EXPLICIT = 2 /* those asked for by name */
} TRITONSERVER_ModelControlMode;

/* How executions of models are held against declared resources. */
typedef enum tritonserver_ratelimitmode_enum {
    TRITONSERVER_RATE_LIMIT_OFF = 0,
    TRITONSERVER_RATE_LIMIT_EXEC_COUNT = 1 /* by resources, fewest past executions first */
} TRITONSERVER_RateLimitMode;

/* Makes options with their defaults. The caller owns them. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsNew(TRITONSERVER_ServerOptions **options);

/* Deletes options. A server made with them is not affected. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsDelete(TRITONSERVER_ServerOptions *options);

/* Sets the name under which the server reports itself. Default "triton". */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetServerId(TRITONSERVER_ServerOptions *options, const char *server_id);

/* Adds a model repository; call it once for each. At least one is needed. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelRepositoryPath(TRITONSERVER_ServerOptions *options,
                                                 const char *model_repository_path);

/* Sets who decides which models are loaded. Default TRITONSERVER_MODEL_CONTROL_NONE. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelControlMode(TRITONSERVER_ServerOptions *options,
                                              TRITONSERVER_ModelControlMode mode);

/* Adds a model to load at the start under EXPLICIT control; call it once for each. The name "*",
 * alone, stands for all. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetStartupModel(TRITONSERVER_ServerOptions *options,
                                          const char *model_name);

/* Sets whether every model must have a complete configuration. When false, what is missing is
 * completed from the model file. Default true. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetStrictModelConfig(TRITONSERVER_ServerOptions *options, bool strict);

/* Names an alternative configuration: 'configs/NAME.pbtxt' of a model is then preferred to its
 * 'config.pbtxt'. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelConfigName(TRITONSERVER_ServerOptions *options,
                                             const char *model_config_name);

/* Sets whether the rate limiter is used. Default TRITONSERVER_RATE_LIMIT_OFF. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetRateLimiterMode(TRITONSERVER_ServerOptions *options,
                                             TRITONSERVER_RateLimitMode mode);

/* Declares how much of a resource there is on a device; device -1 stands for each device. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsAddRateLimiterResource(TRITONSERVER_ServerOptions *options,
                                                 const char *resource_name,
                                                 const size_t resource_count, const int device);

/* Sets the size of the pool of pinned memory. Accepted without effect where there is no GPU. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetPinnedMemoryPoolByteSize(TRITONSERVER_ServerOptions *options,
                                                      uint64_t size);

/* Sets the size of the memory pool of a GPU. Accepted without effect where there is no GPU. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize(TRITONSERVER_ServerOptions *options,
                                                    int gpu_device, uint64_t size);

/* Sets how much address space is reserved on a GPU for growing buffers. Accepted without effect
 * where there is no GPU. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetCudaVirtualAddressSize(
    TRITONSERVER_ServerOptions *options, int gpu_device, size_t cuda_virtual_address_size);

/* Deprecated: configures the cache "local" with this size; 0 leaves it off. See
 * TRITONSERVER_ServerOptionsSetCacheConfig. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetResponseCacheByteSize(TRITONSERVER_ServerOptions *options,
                                                   uint64_t size);

/* Chooses the response cache and passes it its configuration, a JSON object. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCacheConfig(TRITONSERVER_ServerOptions *options,
                                         const char *cache_name, const char *config_json);

/* Sets where response caches are found, each as 'NAME/libtritoncache_NAME.so'. Default
 * '/opt/tritonserver/caches'. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCacheDirectory(TRITONSERVER_ServerOptions *options,
                                            const char *cache_dir);

/* Sets the least CUDA compute capability of a GPU that is used. Accepted without effect where there
 * is no GPU. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability(TRITONSERVER_ServerOptions *options,
                                                           double cc);

/* Sets whether TRITONSERVER_ServerNew fails when a model fails to load. Default true. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetExitOnError(TRITONSERVER_ServerOptions *options, bool exit);

/* Sets whether the server is ready only when all its models are. Default true. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetStrictReadiness(TRITONSERVER_ServerOptions *options, bool strict);

/* Sets how many seconds a stopping server waits for requests in flight. Default 30. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetExitTimeout(TRITONSERVER_ServerOptions *options, unsigned int timeout);

/* Sets how many threads help to copy input and output buffers; 0, the default, means none. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetBufferManagerThreadCount(TRITONSERVER_ServerOptions *options,
                                                      unsigned int thread_count);

/* Sets how many models may load at once. Default 4. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadThreadCount(TRITONSERVER_ServerOptions *options,
                                                  unsigned int thread_count);

/* Sets how often a failed load is tried again. Default 0. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadRetryCount(TRITONSERVER_ServerOptions *options,
                                                 unsigned int retry_count);

/* Sets whether two repositories may have models of the same name. Default false. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelNamespacing(TRITONSERVER_ServerOptions *options,
                                              bool enable_namespace);

/* Sets whether GPUs may read each other's memory. Accepted without effect where there is no GPU. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetEnablePeerAccess(TRITONSERVER_ServerOptions *options,
                                              bool enable_peer_access);

/* Sets the file that log messages go to; empty stands for standard output and standard error.
 * 'options' may be NULL, as in all log setters: logging belongs to the process and changes at once.
 */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogFile(TRITONSERVER_ServerOptions *options, const char *file);

/* Turns INFO messages on or off. 'options' may be NULL. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogInfo(TRITONSERVER_ServerOptions *options, bool log);

/* Turns WARN messages on or off. 'options' may be NULL. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogWarn(TRITONSERVER_ServerOptions *options, bool log);

/* Turns ERROR messages on or off. 'options' may be NULL. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogError(TRITONSERVER_ServerOptions *options, bool log);

/* Sets how log messages write their time. 'options' may be NULL. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogFormat(TRITONSERVER_ServerOptions *options,
                                       const TRITONSERVER_LogFormat format);

/* Sets how much detail VERBOSE messages have; 0 turns them off. 'options' may be NULL. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogVerbose(TRITONSERVER_ServerOptions *options, int level);

/* Turns metrics on or off. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMetrics(TRITONSERVER_ServerOptions *options, bool metrics);

/* Turns metrics of GPUs on or off; they also need metrics to be on. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetGpuMetrics(TRITONSERVER_ServerOptions *options, bool gpu_metrics);

/* Turns metrics of CPU and memory on or off; they also need metrics to be on. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCpuMetrics(TRITONSERVER_ServerOptions *options, bool cpu_metrics);

/* Sets how often polled metrics are taken, in milliseconds. Default 2000. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMetricsInterval(TRITONSERVER_ServerOptions *options,
                                             uint64_t metrics_interval_ms);

/* Sets where backends are found, each as 'NAME/libtriton_NAME.so'. Default
 * '/opt/tritonserver/backends'. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetBackendDirectory(TRITONSERVER_ServerOptions *options,
                                              const char *backend_dir);

/* Sets where repository agents are found, each as 'NAME/libtritonrepoagent_NAME.so'. Default
 * '/opt/tritonserver/repoagents'. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetRepoAgentDirectory(TRITONSERVER_ServerOptions *options,
                                                const char *repoagent_dir);

/* Sets which fraction of a device's memory may be in use for another model still to be loaded onto
 * it. INVALID_ARG for a kind other than GPU and outside 0 to 1. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(TRITONSERVER_ServerOptions *options,
                                                  const TRITONSERVER_InstanceGroupKind kind,
                                                  const int device_id, const double fraction);

/* Passes a setting to a backend; an empty backend name passes it to all of them. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetBackendConfig(TRITONSERVER_ServerOptions *options,
                                           const char *backend_name, const char *setting,
                                           const char *value);

/* Sets a property of a host policy, such as "numa-node" or "cpu-cores". */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetHostPolicy(TRITONSERVER_ServerOptions *options,
                                        const char *policy_name, const char *setting,
                                        const char *value);

/* Sets a property of the metrics; an empty name stands for metrics in general. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMetricsConfig(TRITONSERVER_ServerOptions *options, const char *name,
                                           const char *setting, const char *value);

/* ---- Server ------------------------------------------------------------------------------ */

/* Bits that say how a model takes batches. */
typedef enum tritonserver_batchflag_enum {
    TRITONSERVER_BATCH_UNKNOWN = 1,
    TRITONSERVER_BATCH_FIRST_DIM = 2
} TRITONSERVER_ModelBatchFlag;

/* Bits that narrow the index of a repository. */
typedef enum tritonserver_modelindexflag_enum {
    TRITONSERVER_INDEX_FLAG_READY = 1 /* only models that are ready */
} TRITONSERVER_ModelIndexFlag;

/* Bits that say how many responses a request to a model has. */
typedef enum tritonserver_txn_property_flag_enum {
    TRITONSERVER_TXN_ONE_TO_ONE = 1,
    TRITONSERVER_TXN_DECOUPLED = 2
} TRITONSERVER_ModelTxnPropertyFlag;

/* Makes a server, loads the models that its control mode asks for, and returns when that is done.
 * The options stay with the caller and may be deleted afterwards. On error nothing is left behind.
 */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerNew(TRITONSERVER_Server **server, TRITONSERVER_ServerOptions *options);

/* Stops the server if that was not done, and deletes it. When requests are still in flight after
 * the exit timeout, returns INTERNAL and leaks the server rather than free memory that is in use.
 */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerDelete(TRITONSERVER_Server *server);

/* Refuses new requests, waits for those in flight until the exit timeout, and unloads all models.
 * INTERNAL when the time was too short. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerStop(TRITONSERVER_Server *server);

/* Changes the exit timeout, in seconds, of a running server. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerSetExitTimeout(TRITONSERVER_Server *server, unsigned int timeout);

/* Adds a repository under EXPLICIT control, without loading a model. 'name_mapping' holds STRING
 * parameters: the folder is the parameter's name, the model's name its value; they stay with the
 * caller. ALREADY_EXISTS for a repository that is known, UNSUPPORTED in another control mode. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerRegisterModelRepository(TRITONSERVER_Server *server, const char *repository_path,
                                           const TRITONSERVER_Parameter **name_mapping,
                                           const uint32_t mapping_count);

/* Forgets a repository; its models that are loaded stay so. NOT_FOUND when it is not known,
 * UNSUPPORTED in another control mode. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerUnregisterModelRepository(TRITONSERVER_Server *server,
                                             const char *repository_path);

/* Looks for changes in the repositories now and acts on them. UNAVAILABLE unless under POLL
 * control. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerPollModelRepository(TRITONSERVER_Server *server);

/* Gives whether the server answers at all. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerIsLive(TRITONSERVER_Server *server,
                                                                    bool *live);

/* Gives whether the server takes inference requests; under strict readiness also whether its models
 * are ready. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerIsReady(TRITONSERVER_Server *server,
                                                                     bool *ready);

/* Gives whether a model takes inference requests; version -1 lets the model's policy choose. An
 * error when the model is not known. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelIsReady(TRITONSERVER_Server *server, const char *model_name,
                                const int64_t model_version, bool *ready);

/* Gives how a model takes batches: a bitwise or of TRITONSERVER_ModelBatchFlag. 'voidp' may be
 * NULL; when not, it is set to NULL. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelBatchProperties(TRITONSERVER_Server *server, const char *model_name,
                                        const int64_t model_version, uint32_t *flags, void **voidp);

/* Gives how many responses a request has: a bitwise or of TRITONSERVER_ModelTxnPropertyFlag.
 * 'voidp' may be NULL; when not, it is set to NULL. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelTransactionProperties(TRITONSERVER_Server *server, const char *model_name,
                                              const int64_t model_version, uint32_t *txn_flags,
                                              void **voidp);

/* Gives the server's name, version and extensions as a message that the caller owns. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerMetadata(TRITONSERVER_Server *server, TRITONSERVER_Message **server_metadata);

/* Gives a model's inputs, outputs and versions as a message that the caller owns. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelMetadata(TRITONSERVER_Server *server, const char *model_name,
                                 const int64_t model_version,
                                 TRITONSERVER_Message **model_metadata);

/* Gives statistics as a message that the caller owns; an empty name stands for all models, version
 * -1 for all versions. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelStatistics(TRITONSERVER_Server *server, const char *model_name,
                                   const int64_t model_version, TRITONSERVER_Message **model_stats);

/* Gives a model's complete configuration as a message that the caller owns. 'config_version' is 1;
 * any other is UNSUPPORTED. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelConfig(TRITONSERVER_Server *server, const char *model_name,
                               const int64_t model_version, const uint32_t config_version,
                               TRITONSERVER_Message **model_config);

/* Gives the models of all repositories with their states as a message that the caller owns. 'flags'
 * is a bitwise or of TRITONSERVER_ModelIndexFlag. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelIndex(TRITONSERVER_Server *server, uint32_t flags,
                              TRITONSERVER_Message **model_index);

/* Loads a model, or what has changed of it since, and returns when it is ready or has failed. The
 * version that serves goes on until the new one is ready; where only instances or the choice of
 * versions changed it stays, and nothing is done where nothing changed. UNAVAILABLE unless under
 * EXPLICIT control. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerLoadModel(TRITONSERVER_Server *server,
                                                                       const char *model_name);

/* As TRITONSERVER_ServerLoadModel, with parameters: STRING "config" replaces the configuration,
 * BYTES "file:PATH" replaces the model's files. The parameters stay with the caller. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerLoadModelWithParameters(TRITONSERVER_Server *server, const char *model_name,
                                           const TRITONSERVER_Parameter **parameters,
                                           const uint64_t parameter_count);

/* Starts to unload a model and returns; requests in flight complete first. UNAVAILABLE unless under
 * EXPLICIT control. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerUnloadModel(TRITONSERVER_Server *server, const char *model_name);

/* As TRITONSERVER_ServerUnloadModel, and unloads the models that were loaded for this one only. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerUnloadModelAndDependents(TRITONSERVER_Server *server, const char *model_name);

/* Takes the metrics of now into an object that the caller owns. UNSUPPORTED when metrics are off.
 */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerMetrics(TRITONSERVER_Server *server, TRITONSERVER_Metrics **metrics);

/* Submits a request. On success request and trace belong to the server, and come back through their
 * release callbacks; callbacks may run before this returns. On error both stay with the caller and
 * no callback runs. 'trace' may be NULL. UNAVAILABLE when server or model do not take requests. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerInferAsync(TRITONSERVER_Server *server,
                              TRITONSERVER_InferenceRequest *inference_request,
                              TRITONSERVER_InferenceTrace *trace);

/* ---- Metrics of one's own ---------------------------------------------------------------- */

/* What a metric measures. */
typedef enum TRITONSERVER_metrickind_enum {
    TRITONSERVER_METRIC_KIND_COUNTER = 0,
    TRITONSERVER_METRIC_KIND_GAUGE = 1,
    TRITONSERVER_METRIC_KIND_HISTOGRAM = 2
} TRITONSERVER_MetricKind;

/* Makes a family of metrics and registers it with the process; it appears beside the server's. The
 * caller owns it. INVALID_ARG when the name is taken by a family of another kind. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricFamilyNew(TRITONSERVER_MetricFamily **family, const TRITONSERVER_MetricKind kind,
                             const char *name, const char *description);

/* Deletes a family and unregisters it. INTERNAL while metrics of it exist. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricFamilyDelete(TRITONSERVER_MetricFamily *family);

/* Gives the kind of a family. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_GetMetricFamilyKind(TRITONSERVER_MetricFamily *family, TRITONSERVER_MetricKind *kind);

/* Makes empty arguments for TRITONSERVER_MetricNewWithArgs. The caller owns them. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricArgsNew(TRITONSERVER_MetricArgs **args);

/* Makes the arguments describe a histogram with these upper bounds, which must rise and are copied.
 */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricArgsSetHistogram(TRITONSERVER_MetricArgs *args, const double *buckets,
                                    const uint64_t buckets_count);

/* Deletes arguments. Metrics made with them are not affected. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricArgsDelete(TRITONSERVER_MetricArgs *args);

/* Makes a counter or a gauge in a family. 'labels' holds STRING parameters that stay with the
 * caller. The caller owns the metric and deletes it before its family. INVALID_ARG for a histogram,
 * which needs arguments. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricNew(TRITONSERVER_Metric **metric, TRITONSERVER_MetricFamily *family,
                       const TRITONSERVER_Parameter **labels, const uint64_t label_count);

/* As TRITONSERVER_MetricNew, for any kind; a histogram needs 'args' with its buckets. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricNewWithArgs(TRITONSERVER_Metric **metric, TRITONSERVER_MetricFamily *family,
                               const TRITONSERVER_Parameter **labels, const uint64_t label_count,
                               const TRITONSERVER_MetricArgs *args);

/* Deletes a metric; it no longer appears. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricDelete(TRITONSERVER_Metric *metric);

/* Gives the value of a counter or a gauge. UNSUPPORTED for a histogram. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricValue(TRITONSERVER_Metric *metric,
                                                                   double *value);

/* Adds to a counter or a gauge; a counter takes no negative value. UNSUPPORTED for a histogram.
 * Safe on any thread, as the other calls that change a metric. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricIncrement(TRITONSERVER_Metric *metric,
                                                                       double value);

/* Sets a gauge. UNSUPPORTED for the other kinds. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricSet(TRITONSERVER_Metric *metric,
                                                                 double value);

/* Enters a value into a histogram. UNSUPPORTED for the other kinds. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricObserve(TRITONSERVER_Metric *metric,
                                                                     double value);

/* Gives the kind of a metric. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_GetMetricKind(TRITONSERVER_Metric *metric,
                                                                     TRITONSERVER_MetricKind *kind);

#ifdef __cplusplus
}
#endif
