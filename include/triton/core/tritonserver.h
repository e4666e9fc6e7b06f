/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C API of a Triton inference server, version 1.34, as implemented by Kelp.
 *
 * Names, values and signatures are those of Triton's public interface. An application or plug-in
 * that is compiled with either header works with either library. The comments describe Kelp, and
 * docs/backends-abi.md lists the differences from Triton.
 *
 * Conventions, unless stated otherwise:
 *   - A function that returns a TRITONSERVER_Error * returns NULL on success. The caller deletes an
 *     error with TRITONSERVER_ErrorDelete. Output parameters are unspecified after an error.
 *     Comments name error codes without the prefix TRITONSERVER_ERROR_.
 *   - Functions return INVALID_ARG if a required pointer is NULL or an index is out of range, and
 *     UNAVAILABLE if memory is exhausted. Comments list only the other errors.
 *   - The caller owns an object that a ...New function creates, and deletes it with the matching
 *     ...Delete function. ...Delete functions ignore NULL. A deleted object must not be used; the
 *     server detects some errors of this kind and returns INTERNAL.
 *   - Strings and arrays that are passed in are copied. Strings, arrays and objects that are
 *     returned are borrowed: they are valid until the object that returned them is modified or
 *     deleted.
 *   - Functions with a TRITONSERVER_Server parameter, and functions without an object, are
 *     thread-safe. Other objects may be used by one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a function that the server library exports. */
#ifndef TRITONSERVER_DECLSPEC
#if defined(__GNUC__)
#define TRITONSERVER_DECLSPEC __attribute__((__visibility__("default")))
#else
#define TRITONSERVER_DECLSPEC
#endif
#endif

/* ---- Opaque objects ---------------------------------------------------------------------- */

/* Applications use only pointers to these types. */

/* The size and location of a buffer. */
struct TRITONSERVER_BufferAttributes;
/* An error: a code and a message. NULL means success. */
struct TRITONSERVER_Error;
/* An inference request, as seen by the client of a server. */
struct TRITONSERVER_InferenceRequest;
/* A response to an inference request, as seen by the client of a server. */
struct TRITONSERVER_InferenceResponse;
/* A trace of a request: callbacks that receive the timestamps and tensors of its execution. */
struct TRITONSERVER_InferenceTrace;
/* A JSON document. */
struct TRITONSERVER_Message;
/* One time series of a metric family, with its own labels. */
struct TRITONSERVER_Metric;
/* Optional arguments for the creation of a metric: the buckets of a histogram. */
struct TRITONSERVER_MetricArgs;
/* A family of metrics with the same name, kind and description. */
struct TRITONSERVER_MetricFamily;
/* A snapshot of all metrics. */
struct TRITONSERVER_Metrics;
/* A named value of one of the types of TRITONSERVER_ParameterType. */
struct TRITONSERVER_Parameter;
/* Callbacks of an application that allocate the buffers of output tensors. */
struct TRITONSERVER_ResponseAllocator;
/* An inference server. */
struct TRITONSERVER_Server;
/* The options from which a server is created. */
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

/* The version of this header. An incompatible change increments the major version, an addition the
 * minor version. */
#define TRITONSERVER_API_VERSION_MAJOR 1
#define TRITONSERVER_API_VERSION_MINOR 34

/* Gets the version that the library implements. A caller is compatible if it was compiled with the
 * same major version and the same or a lower minor version. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ApiVersion(uint32_t *major, uint32_t *minor);

/* ---- Data types -------------------------------------------------------------------------- */

/* The element type of a tensor. */
typedef enum TRITONSERVER_datatype_enum {
    TRITONSERVER_TYPE_INVALID = 0, /* not a type */
    TRITONSERVER_TYPE_BOOL = 1,    /* 1 byte, 0 or 1 */
    TRITONSERVER_TYPE_UINT8 = 2,   /* unsigned, 8 bits */
    TRITONSERVER_TYPE_UINT16 = 3,  /* unsigned, 16 bits */
    TRITONSERVER_TYPE_UINT32 = 4,  /* unsigned, 32 bits */
    TRITONSERVER_TYPE_UINT64 = 5,  /* unsigned, 64 bits */
    TRITONSERVER_TYPE_INT8 = 6,    /* signed, 8 bits */
    TRITONSERVER_TYPE_INT16 = 7,   /* signed, 16 bits */
    TRITONSERVER_TYPE_INT32 = 8,   /* signed, 32 bits */
    TRITONSERVER_TYPE_INT64 = 9,   /* signed, 64 bits */
    TRITONSERVER_TYPE_FP16 = 10,   /* IEEE 754 half precision */
    TRITONSERVER_TYPE_FP32 = 11,   /* IEEE 754 single precision */
    TRITONSERVER_TYPE_FP64 = 12,   /* IEEE 754 double precision */
    TRITONSERVER_TYPE_BYTES = 13,  /* per element a 4-byte little-endian length, then the bytes */
    TRITONSERVER_TYPE_BF16 = 14    /* bfloat16, the upper half of FP32 */
} TRITONSERVER_DataType;

/* Returns the name of an element type in the inference protocol, for example "FP32". The string is
 * static; "<invalid>" for an unknown value. */
TRITONSERVER_DECLSPEC const char *TRITONSERVER_DataTypeString(TRITONSERVER_DataType datatype);

/* Returns the element type with a name, for example "FP32"; TRITONSERVER_TYPE_INVALID for an
 * unknown name or NULL. */
TRITONSERVER_DECLSPEC TRITONSERVER_DataType TRITONSERVER_StringToDataType(const char *dtype);

/* Returns the size of an element in bytes; 0 for BYTES, whose size varies, and for INVALID. */
TRITONSERVER_DECLSPEC uint32_t TRITONSERVER_DataTypeByteSize(TRITONSERVER_DataType datatype);

/* ---- Memory types ------------------------------------------------------------------------ */

/* The kind of memory that contains a buffer. A memory type id accompanies it: the number of the
 * GPU, or 0 for CPU memory. */
typedef enum TRITONSERVER_memorytype_enum {
    TRITONSERVER_MEMORY_CPU = 0,        /* pageable host memory */
    TRITONSERVER_MEMORY_CPU_PINNED = 1, /* page-locked host memory */
    TRITONSERVER_MEMORY_GPU = 2         /* device memory */
} TRITONSERVER_MemoryType;

/* Returns the name of a memory type, for example "CPU". The string is static; "<invalid>" for an
 * unknown value. */
TRITONSERVER_DECLSPEC const char *TRITONSERVER_MemoryTypeString(TRITONSERVER_MemoryType memtype);

/* ---- Parameters -------------------------------------------------------------------------- */

/* The type of a parameter's value. */
typedef enum TRITONSERVER_parametertype_enum {
    TRITONSERVER_PARAMETER_STRING = 0, /* NUL-terminated string */
    TRITONSERVER_PARAMETER_INT = 1,    /* int64_t */
    TRITONSERVER_PARAMETER_BOOL = 2,   /* bool */
    TRITONSERVER_PARAMETER_DOUBLE = 3, /* double */
    TRITONSERVER_PARAMETER_BYTES = 4   /* borrowed byte array */
} TRITONSERVER_ParameterType;

/* Returns the name of a parameter type, for example "STRING". The string is static; "<invalid>" for
 * an unknown value. */
TRITONSERVER_DECLSPEC const char *
TRITONSERVER_ParameterTypeString(TRITONSERVER_ParameterType paramtype);

/* Creates a parameter with a copy of the value. 'value' is the string for STRING, and points to an
 * int64_t, bool or double for INT, BOOL or DOUBLE. Returns NULL for another type, for a NULL
 * argument and if memory is exhausted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Parameter *
TRITONSERVER_ParameterNew(const char *name, const TRITONSERVER_ParameterType type,
                          const void *value);

/* Creates a parameter of type BYTES. The bytes are not copied: they must stay valid and unchanged
 * until the parameter is deleted. Returns NULL if the name is NULL, if the bytes are NULL and the
 * size is not 0, and if memory is exhausted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Parameter *
TRITONSERVER_ParameterBytesNew(const char *name, const void *byte_ptr, const uint64_t size);

/* Deletes a parameter, but not the bytes that a BYTES parameter refers to. */
TRITONSERVER_DECLSPEC void TRITONSERVER_ParameterDelete(TRITONSERVER_Parameter *parameter);

/* ---- Instance groups --------------------------------------------------------------------- */

/* The kind of device that executes a model instance. */
typedef enum TRITONSERVER_instancegroupkind_enum {
    TRITONSERVER_INSTANCEGROUPKIND_AUTO = 0, /* GPU if available, otherwise CPU */
    TRITONSERVER_INSTANCEGROUPKIND_CPU = 1,  /* CPU */
    TRITONSERVER_INSTANCEGROUPKIND_GPU = 2,  /* one GPU; Kelp does not load such a model */
    TRITONSERVER_INSTANCEGROUPKIND_MODEL = 3 /* selected by the backend or the model */
} TRITONSERVER_InstanceGroupKind;

/* Returns the name of an instance kind, for example "CPU". The string is static; "<invalid>" for an
 * unknown value. */
TRITONSERVER_DECLSPEC const char *
TRITONSERVER_InstanceGroupKindString(TRITONSERVER_InstanceGroupKind kind);

/* ---- Logging ----------------------------------------------------------------------------- */

/* The severity of a log message. */
typedef enum TRITONSERVER_loglevel_enum {
    TRITONSERVER_LOG_INFO = 0,   /* normal operation */
    TRITONSERVER_LOG_WARN = 1,   /* possible problem */
    TRITONSERVER_LOG_ERROR = 2,  /* failure */
    TRITONSERVER_LOG_VERBOSE = 3 /* details for debugging */
} TRITONSERVER_LogLevel;

/* The format of log messages. Kelp also accepts the value 2, lines of JSON. */
typedef enum TRITONSERVER_logformat_enum {
    TRITONSERVER_LOG_DEFAULT = 0, /* level, month, day and time, as in Triton */
    TRITONSERVER_LOG_ISO8601 = 1  /* date and time as in ISO 8601 */
} TRITONSERVER_LogFormat;

/* Returns true if messages of a level are logged; false for an unknown level. Call it before
 * composing an expensive message. */
TRITONSERVER_DECLSPEC bool TRITONSERVER_LogIsEnabled(TRITONSERVER_LogLevel level);

/* Writes a message with its source location to the log of the process, or drops it if its level is
 * disabled. 'filename' may be NULL. INVALID_ARG for an unknown level. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_LogMessage(TRITONSERVER_LogLevel level,
                                                                  const char *filename,
                                                                  const int line, const char *msg);

/* Receives one log message: 'filename' without directories, 'timestamp_us' in microseconds since
 * 1970 (UTC), and 'message' as the server wrote it, neither quoted nor escaped. Strings are valid
 * during the call. Called on the thread that logs, by several threads at once; it must return soon,
 * and must not log, call the server, or throw. */
typedef void (*TRITONSERVER_LogCallbackFn_t)(TRITONSERVER_LogLevel level, const char *filename,
                                             int line, uint64_t timestamp_us, const char *message,
                                             void *userp);

/* ---- Errors ------------------------------------------------------------------------------ */

/* The category of an error. Success has no code. */
typedef enum TRITONSERVER_errorcode_enum {
    TRITONSERVER_ERROR_UNKNOWN = 0,     /* no other code applies */
    TRITONSERVER_ERROR_INTERNAL = 1,    /* failure of the server, or wrong state of an object */
    TRITONSERVER_ERROR_NOT_FOUND = 2,   /* a named object does not exist */
    TRITONSERVER_ERROR_INVALID_ARG = 3, /* an argument is invalid */
    TRITONSERVER_ERROR_UNAVAILABLE = 4, /* not possible now; may succeed later */
    TRITONSERVER_ERROR_UNSUPPORTED = 5, /* not implemented, or not possible in this configuration */
    TRITONSERVER_ERROR_ALREADY_EXISTS = 6, /* an object with this name exists */
    TRITONSERVER_ERROR_CANCELLED = 7       /* the request was cancelled */
} TRITONSERVER_Error_Code;

/* Creates an error. An unknown code becomes UNKNOWN and a NULL message becomes "". Never returns
 * NULL: if memory is exhausted, returns a static error with the code UNAVAILABLE, which may be
 * deleted like any other. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code,
                                                                const char *msg);

/* Deletes an error. */
TRITONSERVER_DECLSPEC void TRITONSERVER_ErrorDelete(TRITONSERVER_Error *error);

/* Returns the code of an error; UNKNOWN for NULL. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error_Code TRITONSERVER_ErrorCode(TRITONSERVER_Error *error);

/* Returns the name of an error's code, for example "Invalid argument". The string is static. */
TRITONSERVER_DECLSPEC const char *TRITONSERVER_ErrorCodeString(TRITONSERVER_Error *error);

/* Returns the message of an error; "" for NULL. */
TRITONSERVER_DECLSPEC const char *TRITONSERVER_ErrorMessage(TRITONSERVER_Error *error);

/* ---- Response allocator ------------------------------------------------------------------ */

/* An application implements these callbacks. They may run on any thread, and several at once for
 * different responses. The server takes ownership of the errors that they return. */

/* Allocates the buffer of an output when the backend requests it, even for 0 bytes. 'memory_type'
 * and 'memory_type_id' are the preferred location. The callback sets '*actual_memory_type' and
 * '*actual_memory_type_id', which contain the preferred location on entry. '*buffer' may stay NULL
 * only for 0 bytes. '*buffer_userp' is passed to the release callback and returned with the output.
 * 'userp' is the allocator's user pointer of TRITONSERVER_InferenceRequestSetResponseCallback. The
 * backend receives a returned error. */
typedef TRITONSERVER_Error *(*TRITONSERVER_ResponseAllocatorAllocFn_t)(
    TRITONSERVER_ResponseAllocator *allocator, const char *tensor_name, size_t byte_size,
    TRITONSERVER_MemoryType memory_type, int64_t memory_type_id, void *userp, void **buffer,
    void **buffer_userp, TRITONSERVER_MemoryType *actual_memory_type,
    int64_t *actual_memory_type_id);

/* Sets further attributes of a buffer after its allocation, such as a CUDA IPC handle.
 * 'buffer_attributes' is borrowed for the duration of the call. The backend receives a returned
 * error. */
typedef TRITONSERVER_Error *(*TRITONSERVER_ResponseAllocatorBufferAttributesFn_t)(
    TRITONSERVER_ResponseAllocator *allocator, const char *tensor_name,
    TRITONSERVER_BufferAttributes *buffer_attributes, void *userp, void *buffer_userp);

/* Reports where an output would be allocated. 'tensor_name' is NULL for all outputs, and
 * 'byte_size' is NULL if the size is unknown. On entry, '*memory_type' and '*memory_type_id' are
 * the preferred location. The backend receives a returned error. */
typedef TRITONSERVER_Error *(*TRITONSERVER_ResponseAllocatorQueryFn_t)(
    TRITONSERVER_ResponseAllocator *allocator, void *userp, const char *tensor_name,
    size_t *byte_size, TRITONSERVER_MemoryType *memory_type, int64_t *memory_type_id);

/* Frees a buffer when its response is deleted. It is called once for each buffer that is not NULL,
 * with the values from its allocation. A returned error is logged. */
typedef TRITONSERVER_Error *(*TRITONSERVER_ResponseAllocatorReleaseFn_t)(
    TRITONSERVER_ResponseAllocator *allocator, void *buffer, void *buffer_userp, size_t byte_size,
    TRITONSERVER_MemoryType memory_type, int64_t memory_type_id);

/* Prepares a response, before its first allocation. A returned error is logged. */
typedef TRITONSERVER_Error *(*TRITONSERVER_ResponseAllocatorStartFn_t)(
    TRITONSERVER_ResponseAllocator *allocator, void *userp);

/* Creates an allocator; 'start_fn' may be NULL. It must stay valid until every response that uses
 * it is deleted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorNew(TRITONSERVER_ResponseAllocator **allocator,
                                  TRITONSERVER_ResponseAllocatorAllocFn_t alloc_fn,
                                  TRITONSERVER_ResponseAllocatorReleaseFn_t release_fn,
                                  TRITONSERVER_ResponseAllocatorStartFn_t start_fn);

/* Sets the callback that completes the attributes of buffers; NULL for none. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(
    TRITONSERVER_ResponseAllocator *allocator,
    TRITONSERVER_ResponseAllocatorBufferAttributesFn_t buffer_attributes_fn);

/* Sets the callback that reports where an output would be allocated; NULL for none. Without it,
 * TRITONBACKEND_RequestOutputBufferProperties returns UNAVAILABLE. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorSetQueryFunction(TRITONSERVER_ResponseAllocator *allocator,
                                               TRITONSERVER_ResponseAllocatorQueryFn_t query_fn);

/* Deletes an allocator that no request in flight and no response uses. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorDelete(TRITONSERVER_ResponseAllocator *allocator);

/* ---- Messages ---------------------------------------------------------------------------- */

/* Creates a message from 'byte_size' bytes of JSON. INVALID_ARG, with the location, if the text is
 * not valid JSON. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message **message, const char *base,
                                          size_t byte_size);

/* Deletes a message and the text that it returned. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MessageDelete(TRITONSERVER_Message *message);

/* Gets the message as JSON. Use '*byte_size': the text may lack a terminating NUL. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message *message, const char **base,
                                    size_t *byte_size);

/* ---- Server metrics ---------------------------------------------------------------------- */

/* A format for metrics. */
typedef enum tritonserver_metricformat_enum {
    TRITONSERVER_METRIC_PROMETHEUS = 0 /* Prometheus text format */
} TRITONSERVER_MetricFormat;

/* Deletes a snapshot of metrics and the text that it returned. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricsDelete(TRITONSERVER_Metrics *metrics);

/* Gets the metrics as text. Use '*byte_size': the text may lack a terminating NUL. INVALID_ARG for
 * an unknown format. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricsFormatted(TRITONSERVER_Metrics *metrics, TRITONSERVER_MetricFormat format,
                              const char **base, size_t *byte_size);

/* ---- Inference traces -------------------------------------------------------------------- */

/* The data that a trace records. The values from MIN are bits that can be combined. */
typedef enum tritonserver_tracelevel_enum {
    TRITONSERVER_TRACE_LEVEL_DISABLED = 0,   /* nothing */
    TRITONSERVER_TRACE_LEVEL_MIN = 1,        /* deprecated, equivalent to TIMESTAMPS */
    TRITONSERVER_TRACE_LEVEL_MAX = 2,        /* deprecated, equivalent to TIMESTAMPS */
    TRITONSERVER_TRACE_LEVEL_TIMESTAMPS = 4, /* the time of each activity */
    TRITONSERVER_TRACE_LEVEL_TENSORS = 8     /* the contents of inputs and outputs */
} TRITONSERVER_InferenceTraceLevel;

/* Returns the name of a trace level, for example "TIMESTAMPS". The string is static; "<unknown>"
 * for a combination or an unknown value. */
TRITONSERVER_DECLSPEC const char *
TRITONSERVER_InferenceTraceLevelString(TRITONSERVER_InferenceTraceLevel level);

/* An activity of a request that a trace reports. The COMPUTE activities are reported together, when
 * the backend calls TRITONBACKEND_ModelInstanceReportStatistics. */
typedef enum tritonserver_traceactivity_enum {
    TRITONSERVER_TRACE_REQUEST_START = 0,        /* the request was submitted */
    TRITONSERVER_TRACE_QUEUE_START = 1,          /* the request was queued */
    TRITONSERVER_TRACE_COMPUTE_START = 2,        /* the backend started to execute the request */
    TRITONSERVER_TRACE_COMPUTE_INPUT_END = 3,    /* the inputs were ready */
    TRITONSERVER_TRACE_COMPUTE_OUTPUT_START = 4, /* the inference was complete */
    TRITONSERVER_TRACE_COMPUTE_END = 5,          /* the execution ended */
    TRITONSERVER_TRACE_REQUEST_END = 6,          /* the backend released the request */
    TRITONSERVER_TRACE_TENSOR_QUEUE_INPUT = 7,   /* an input when the request was submitted */
    /* an input when it is executed; Kelp does not report it */
    TRITONSERVER_TRACE_TENSOR_BACKEND_INPUT = 8,
    TRITONSERVER_TRACE_TENSOR_BACKEND_OUTPUT = 9, /* an output of a response when it was sent */
    TRITONSERVER_TRACE_CUSTOM_ACTIVITY = 10 /* see TRITONSERVER_InferenceTraceReportActivity */
} TRITONSERVER_InferenceTraceActivity;

/* Returns the name of an activity, for example "REQUEST_START". The string is static; "<unknown>"
 * for an unknown value. */
TRITONSERVER_DECLSPEC const char *
TRITONSERVER_InferenceTraceActivityString(TRITONSERVER_InferenceTraceActivity activity);

/* Receives the timestamps of a trace and of its child traces. It may run on any thread, and on
 * several at once. 'trace' is borrowed for the duration of the call. 'timestamp_ns' is
 * CLOCK_MONOTONIC time in nanoseconds, except for custom activities. */
typedef void (*TRITONSERVER_InferenceTraceActivityFn_t)(
    TRITONSERVER_InferenceTrace *trace, TRITONSERVER_InferenceTraceActivity activity,
    uint64_t timestamp_ns, void *userp);

/* Receives the tensors of a trace and of its child traces, each as one contiguous block. It may run
 * on any thread, and on several at once. The arguments are borrowed for the duration of the
 * call. */
typedef void (*TRITONSERVER_InferenceTraceTensorActivityFn_t)(
    TRITONSERVER_InferenceTrace *trace, TRITONSERVER_InferenceTraceActivity activity,
    const char *name, TRITONSERVER_DataType datatype, const void *base, size_t byte_size,
    const int64_t *shape, uint64_t dim_count, TRITONSERVER_MemoryType memory_type,
    int64_t memory_type_id, void *userp);

/* Receives a trace or child trace when the server no longer uses it: after its request is complete
 * and all its responses are deleted. The callback owns the trace and deletes it. */
typedef void (*TRITONSERVER_InferenceTraceReleaseFn_t)(TRITONSERVER_InferenceTrace *trace,
                                                       void *userp);

/* Creates a trace that reports timestamps. 'parent_id' is 0 if it has no parent, 'activity_fn' may
 * be NULL, and 'trace_userp' is passed to the callbacks. A successful TRITONSERVER_ServerInferAsync
 * takes ownership of the trace; 'release_fn' returns it. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceTraceNew(
    TRITONSERVER_InferenceTrace **trace, TRITONSERVER_InferenceTraceLevel level, uint64_t parent_id,
    TRITONSERVER_InferenceTraceActivityFn_t activity_fn,
    TRITONSERVER_InferenceTraceReleaseFn_t release_fn, void *trace_userp);

/* Creates a trace that reports timestamps, tensors or both, as 'level' specifies.
 * 'tensor_activity_fn' may be NULL. Otherwise equivalent to TRITONSERVER_InferenceTraceNew. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceTraceTensorNew(
    TRITONSERVER_InferenceTrace **trace, TRITONSERVER_InferenceTraceLevel level, uint64_t parent_id,
    TRITONSERVER_InferenceTraceActivityFn_t activity_fn,
    TRITONSERVER_InferenceTraceTensorActivityFn_t tensor_activity_fn,
    TRITONSERVER_InferenceTraceReleaseFn_t release_fn, void *trace_userp);

/* Reports the activity TRITONSERVER_TRACE_CUSTOM_ACTIVITY with a time in nanoseconds. Kelp stores
 * 'name' as the context of the trace (TRITONSERVER_InferenceTraceContext), because the callback has
 * no parameter for it. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceReportActivity(TRITONSERVER_InferenceTrace *trace, uint64_t timestamp,
                                          const char *name);

/* Deletes a trace that the caller owns. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceDelete(TRITONSERVER_InferenceTrace *trace);

/* Gets the id of a trace: unique in the process, starting with 1. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceId(TRITONSERVER_InferenceTrace *trace, uint64_t *id);

/* Gets the id of the parent trace; 0 if it has no parent. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceParentId(TRITONSERVER_InferenceTrace *trace, uint64_t *parent_id);

/* Gets the name of the request's model; "" before submission. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceModelName(TRITONSERVER_InferenceTrace *trace, const char **model_name);

/* Gets the version of the request's model; 0 before submission. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceModelVersion(TRITONSERVER_InferenceTrace *trace, int64_t *model_version);

/* Gets the id of the request; "" before submission or if the request has no id. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceRequestId(TRITONSERVER_InferenceTrace *trace, const char **request_id);

/* Creates a trace with the same level, callbacks and user pointer, and with 'trace' as its parent.
 * The caller owns the child and submits it with another request. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceSpawnChildTrace(TRITONSERVER_InferenceTrace *trace,
                                           TRITONSERVER_InferenceTrace **child_trace);

/* Sets a string that callbacks can read, such as a W3C trace context. Replaces an earlier one. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceSetContext(TRITONSERVER_InferenceTrace *trace,
                                      const char *trace_context);

/* Gets the context of a trace; "" if it is not set. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceContext(TRITONSERVER_InferenceTrace *trace, const char **trace_context);

/* ---- Inference requests ------------------------------------------------------------------ */

/* The caller owns a request, except while it is in flight: from a successful
 * TRITONSERVER_ServerInferAsync until the release callback. Only
 * TRITONSERVER_InferenceRequestCancel and TRITONSERVER_InferenceRequestIsCancelled may be called
 * while it is in flight. */

/* Flags of a request in a sequence: for models with sequence batching, and passed to backends. */
typedef enum tritonserver_requestflag_enum {
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1, /* first request of a sequence */
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2    /* last request of a sequence */
} TRITONSERVER_RequestFlag;

/* Flags of the release of a request. */
typedef enum tritonserver_requestreleaseflag_enum {
    TRITONSERVER_REQUEST_RELEASE_ALL = 1,       /* return the request to its owner */
    TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2 /* execute it again; not supported by Kelp */
} TRITONSERVER_RequestReleaseFlag;

/* Flags of a response. */
typedef enum tritonserver_responsecompleteflag_enum {
    TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1 /* last response of the request */
} TRITONSERVER_ResponseCompleteFlag;

/* Receives a request that is no longer in flight. 'flags' is TRITONSERVER_REQUEST_RELEASE_ALL. The
 * callback owns the request and may delete or resubmit it. It runs on any thread, possibly before
 * the last response and inside TRITONSERVER_ServerInferAsync. */
typedef void (*TRITONSERVER_InferenceRequestReleaseFn_t)(TRITONSERVER_InferenceRequest *request,
                                                         const uint32_t flags, void *userp);

/* Receives a response, which the callback owns and deletes. 'flags' is a combination of
 * TRITONSERVER_ResponseCompleteFlag. 'response' is NULL if only flags are sent, for example at the
 * end of a decoupled request. It runs on any thread, possibly inside
 * TRITONSERVER_ServerInferAsync. */
typedef void (*TRITONSERVER_InferenceResponseCompleteFn_t)(TRITONSERVER_InferenceResponse *response,
                                                           const uint32_t flags, void *userp);

/* Creates an empty request for a model. Version -1 selects the highest version that is ready.
 * NOT_FOUND if the model or version is unknown or, for version -1, no version is ready; UNAVAILABLE
 * if the version or the server is not ready; INVALID_ARG if the name is ambiguous because several
 * namespaces contain it. The request does not keep the model loaded. If the model was loaded again,
 * the submission uses the new one. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestNew(TRITONSERVER_InferenceRequest **inference_request,
                                 TRITONSERVER_Server *server, const char *model_name,
                                 const int64_t model_version);

/* Deletes a request. INTERNAL if it is in flight. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestDelete(TRITONSERVER_InferenceRequest *inference_request);

/* Gets the id of a request; "" if it is not set. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestId(TRITONSERVER_InferenceRequest *inference_request, const char **id);

/* Sets the id of a request, which its responses and log messages contain. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetId(TRITONSERVER_InferenceRequest *inference_request,
                                   const char *id);

/* Gets the flags of a request: a combination of TRITONSERVER_RequestFlag. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestFlags(TRITONSERVER_InferenceRequest *inference_request,
                                   uint32_t *flags);

/* Sets the flags of a request: a combination of TRITONSERVER_RequestFlag. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetFlags(TRITONSERVER_InferenceRequest *inference_request,
                                      uint32_t flags);

/* Gets the numeric id of the request's sequence; 0 for none. INVALID_ARG if the id is a string. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCorrelationId(TRITONSERVER_InferenceRequest *inference_request,
                                           uint64_t *correlation_id);

/* Gets the string id of the request's sequence; "" for none. INVALID_ARG if the id is a number or
 * is not set. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCorrelationIdString(TRITONSERVER_InferenceRequest *inference_request,
                                                 const char **correlation_id);

/* Sets the numeric id of the request's sequence; 0 for none. Replaces a string id. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetCorrelationId(TRITONSERVER_InferenceRequest *inference_request,
                                              uint64_t correlation_id);

/* Sets the string id of the request's sequence; "" for none. Replaces a numeric id. INVALID_ARG if
 * it is longer than 128 bytes. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetCorrelationIdString(
    TRITONSERVER_InferenceRequest *inference_request, const char *correlation_id);

/* Requests the cancellation of a submitted request. If the request waits for an instance, it fails
 * with CANCELLED before its execution. During the execution, the backend decides. The request
 * completes in both cases. Thread-safe until the request is deleted or resubmitted. INTERNAL if it
 * was never submitted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCancel(TRITONSERVER_InferenceRequest *inference_request);

/* Reports whether the cancellation of a submitted request was requested. Thread-safe until the
 * request is deleted or resubmitted. INTERNAL if it was never submitted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestIsCancelled(TRITONSERVER_InferenceRequest *inference_request,
                                         bool *is_cancelled);

/* Gets the lower 32 bits of the priority. Deprecated: use
 * TRITONSERVER_InferenceRequestPriorityUInt64. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestPriority(TRITONSERVER_InferenceRequest *inference_request,
                                      uint32_t *priority);

/* Gets the priority of a request; 0 for the default of the model. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestPriorityUInt64(TRITONSERVER_InferenceRequest *inference_request,
                                            uint64_t *priority);

/* Sets the priority. Deprecated: use TRITONSERVER_InferenceRequestSetPriorityUInt64. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetPriority(TRITONSERVER_InferenceRequest *inference_request,
                                         uint32_t priority);

/* Sets the priority of a request: 1 is the highest, 0 the default of the model. Kelp stores it
 * without effect: queues are first in, first out. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetPriorityUInt64(TRITONSERVER_InferenceRequest *inference_request,
                                               uint64_t priority);

/* Gets the queue timeout of a request in microseconds; 0 for the default of the model. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestTimeoutMicroseconds(TRITONSERVER_InferenceRequest *inference_request,
                                                 uint64_t *timeout_us);

/* Sets the queue timeout of a request in microseconds; 0 for the default of the model. When it
 * expires, the request fails with UNAVAILABLE. It has an effect only if default_queue_policy of the
 * model's dynamic_batching sets allow_timeout_override, timeout_action REJECT and a longer
 * default_timeout_microseconds. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t timeout_us);

/* Adds an input without data. 'shape' has 'dim_count' dimensions, including the batch dimension.
 * ALREADY_EXISTS if the request has an input of this name, INVALID_ARG for more than 32 dimensions
 * or far more inputs than the model has. The submission checks the name, type and shape. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddInput(TRITONSERVER_InferenceRequest *inference_request,
                                      const char *name, const TRITONSERVER_DataType datatype,
                                      const int64_t *shape, uint64_t dim_count);

/* Adds the only input of a request as bytes. The submission deduces its name, type and shape from
 * the model, which must have one input with at most one dynamic dimension. INVALID_ARG if the
 * request has other inputs. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddRawInput(TRITONSERVER_InferenceRequest *inference_request,
                                         const char *name);

/* Removes an input and its data. INVALID_ARG if the request has no input of this name. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveInput(TRITONSERVER_InferenceRequest *inference_request,
                                         const char *name);

/* Removes all inputs and their data. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveAllInputs(TRITONSERVER_InferenceRequest *inference_request);

/* Appends a block of memory to the data of an input. The bytes are not copied: they must stay valid
 * and unchanged until the release callback. A block of 0 bytes is ignored. INVALID_ARG if the
 * request has no input of this name. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestAppendInputData(
    TRITONSERVER_InferenceRequest *inference_request, const char *name, const void *base,
    size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id);

/* Appends a block of memory to the data of an input for instances with a host policy. Other
 * instances use the data without a policy, which is required as well: the submission checks its
 * size. Otherwise equivalent to TRITONSERVER_InferenceRequestAppendInputData. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
    TRITONSERVER_InferenceRequest *inference_request, const char *name, const void *base,
    size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id,
    const char *host_policy_name);

/* Appends a block of memory whose size and location are given by attributes, which are copied.
 * Otherwise equivalent to TRITONSERVER_InferenceRequestAppendInputData. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(
    TRITONSERVER_InferenceRequest *inference_request, const char *name, const void *base,
    TRITONSERVER_BufferAttributes *buffer_attributes);

/* Removes the data of an input, for all host policies, and keeps the input. INVALID_ARG if the
 * request has no input of this name. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveAllInputData(TRITONSERVER_InferenceRequest *inference_request,
                                                const char *name);

/* Adds a requested output; no effect if it is requested already. A request without requested
 * outputs receives all outputs of the model. The submission checks the name. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddRequestedOutput(TRITONSERVER_InferenceRequest *inference_request,
                                                const char *name);

/* Removes a requested output; no effect if it is not requested. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveRequestedOutput(TRITONSERVER_InferenceRequest *inference_request,
                                                   const char *name);

/* Removes all requested outputs, so that the request receives all outputs of the model. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(
    TRITONSERVER_InferenceRequest *inference_request);

/* Sets the callback that receives the request when it is released. Required before submission. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetReleaseCallback(
    TRITONSERVER_InferenceRequest *inference_request,
    TRITONSERVER_InferenceRequestReleaseFn_t request_release_fn, void *request_release_userp);

/* Sets the allocator of the outputs and the callback that receives the responses. Required before
 * submission. The allocator must stay valid until every response of the request is deleted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetResponseCallback(
    TRITONSERVER_InferenceRequest *inference_request,
    TRITONSERVER_ResponseAllocator *response_allocator, void *response_allocator_userp,
    TRITONSERVER_InferenceResponseCompleteFn_t response_fn, void *response_userp);

/* Adds a string parameter for the backend. INVALID_ARG if the request has a parameter of this name,
 * or 1024 parameters. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetStringParameter(TRITONSERVER_InferenceRequest *request,
                                                const char *key, const char *value);

/* Adds an integer parameter for the backend. Errors are those of
 * TRITONSERVER_InferenceRequestSetStringParameter. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetIntParameter(TRITONSERVER_InferenceRequest *request,
                                             const char *key, const int64_t value);

/* Adds a boolean parameter for the backend. Errors are those of
 * TRITONSERVER_InferenceRequestSetStringParameter. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetBoolParameter(TRITONSERVER_InferenceRequest *request,
                                              const char *key, const bool value);

/* Adds a floating-point parameter for the backend. Errors are those of
 * TRITONSERVER_InferenceRequestSetStringParameter. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetDoubleParameter(TRITONSERVER_InferenceRequest *request,
                                                const char *key, const double value);

/* ---- Inference responses ----------------------------------------------------------------- */

/* The response callback owns a response. It may outlive its request, its model and its server. */

/* Deletes a response and returns its buffers to the allocator. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseDelete(TRITONSERVER_InferenceResponse *inference_response);

/* Returns the error of a failed inference, or NULL if it succeeded. Each call returns a new error,
 * which the caller deletes. A failed response may lack outputs. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseError(TRITONSERVER_InferenceResponse *inference_response);

/* Gets the name and version of the model that produced the response. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseModel(TRITONSERVER_InferenceResponse *inference_response,
                                    const char **model_name, int64_t *model_version);

/* Gets the id of the request; "" if it had no id. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseId(TRITONSERVER_InferenceResponse *inference_response,
                                 const char **request_id);

/* Gets the number of parameters that the backend set. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseParameterCount(TRITONSERVER_InferenceResponse *inference_response,
                                             uint32_t *count);

/* Gets a parameter. '*vvalue' is the string for STRING, and points to the int64_t, bool or double
 * for the other types. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseParameter(TRITONSERVER_InferenceResponse *inference_response,
                                        const uint32_t index, const char **name,
                                        TRITONSERVER_ParameterType *type, const void **vvalue);

/* Gets the number of outputs. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseOutputCount(TRITONSERVER_InferenceResponse *inference_response,
                                          uint32_t *count);

/* Gets an output: its shape, including the batch dimension, and the size and location of its
 * buffer. '*base' may be NULL if the output has 0 bytes. '*userp' is the 'buffer_userp' that the
 * allocator set. No argument may be NULL. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceResponseOutput(
    TRITONSERVER_InferenceResponse *inference_response, const uint32_t index, const char **name,
    TRITONSERVER_DataType *datatype, const int64_t **shape, uint64_t *dim_count, const void **base,
    size_t *byte_size, TRITONSERVER_MemoryType *memory_type, int64_t *memory_type_id, void **userp);

/* Gets the label of a class, from the label file of the output 'index'; NULL if there is none. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceResponseOutputClassificationLabel(
    TRITONSERVER_InferenceResponse *inference_response, const uint32_t index,
    const size_t class_index, const char **label);

/* ---- Buffer attributes ------------------------------------------------------------------- */

/* Attributes only describe a buffer: they do not own or allocate memory. */

/* Creates attributes of a buffer of 0 bytes in CPU memory. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesNew(TRITONSERVER_BufferAttributes **buffer_attributes);

/* Deletes attributes that the caller created. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesDelete(TRITONSERVER_BufferAttributes *buffer_attributes);

/* Sets the memory type id: the number of the GPU, or 0 for CPU memory. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetMemoryTypeId(TRITONSERVER_BufferAttributes *buffer_attributes,
                                             int64_t memory_type_id);

/* Sets the memory type. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetMemoryType(TRITONSERVER_BufferAttributes *buffer_attributes,
                                           TRITONSERVER_MemoryType memory_type);

/* Sets the address of the CUDA IPC handle, which is not copied; NULL for none. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetCudaIpcHandle(TRITONSERVER_BufferAttributes *buffer_attributes,
                                              void *cuda_ipc_handle);

/* Sets the size in bytes. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetByteSize(TRITONSERVER_BufferAttributes *buffer_attributes,
                                         size_t byte_size);

/* Gets the memory type id: the number of the GPU, or 0 for CPU memory. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesMemoryTypeId(TRITONSERVER_BufferAttributes *buffer_attributes,
                                          int64_t *memory_type_id);

/* Gets the memory type. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesMemoryType(TRITONSERVER_BufferAttributes *buffer_attributes,
                                        TRITONSERVER_MemoryType *memory_type);

/* Gets the address of the CUDA IPC handle; NULL if it is not set. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesCudaIpcHandle(TRITONSERVER_BufferAttributes *buffer_attributes,
                                           void **cuda_ipc_handle);

/* Gets the size in bytes. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesByteSize(TRITONSERVER_BufferAttributes *buffer_attributes,
                                      size_t *byte_size);

/* ---- Server options ---------------------------------------------------------------------- */

/* Options have an effect when a server is created. Later changes do not affect the server.
 * Exception: the options of the log belong to the process and have an effect immediately. Their
 * 'options' argument is not used and may be NULL. */

/* The mode that determines which models are loaded and when. */
typedef enum tritonserver_modelcontrolmode_enum {
    TRITONSERVER_MODEL_CONTROL_NONE = 0,    /* all models, at startup */
    TRITONSERVER_MODEL_CONTROL_POLL = 1,    /* all models, and changes when polled */
    TRITONSERVER_MODEL_CONTROL_EXPLICIT = 2 /* startup models, and others when loaded by name */
} TRITONSERVER_ModelControlMode;

/* The mode of the rate limiter. */
typedef enum tritonserver_ratelimitmode_enum {
    TRITONSERVER_RATE_LIMIT_OFF = 0,       /* executions are not limited */
    TRITONSERVER_RATE_LIMIT_EXEC_COUNT = 1 /* limited by resources; fewest executions first */
} TRITONSERVER_RateLimitMode;

/* Creates options with their default values. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsNew(TRITONSERVER_ServerOptions **options);

/* Deletes options. Servers that were created with them are not affected. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsDelete(TRITONSERVER_ServerOptions *options);

/* Sets the name of the server in its metadata. Default "triton". */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetServerId(TRITONSERVER_ServerOptions *options, const char *server_id);

/* Adds a model repository; no effect if it was added before. A server needs at least one. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelRepositoryPath(TRITONSERVER_ServerOptions *options,
                                                 const char *model_repository_path);

/* Sets the control mode. Default TRITONSERVER_MODEL_CONTROL_NONE. INVALID_ARG for an unknown
 * mode. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelControlMode(TRITONSERVER_ServerOptions *options,
                                              TRITONSERVER_ModelControlMode mode);

/* Adds a model that is loaded at startup in the control mode EXPLICIT. The name "*" loads all
 * models and must be the only one. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetStartupModel(TRITONSERVER_ServerOptions *options,
                                          const char *model_name);

/* Sets whether each model needs a complete configuration. If false, missing fields are derived from
 * the model's files. Default true. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetStrictModelConfig(TRITONSERVER_ServerOptions *options, bool strict);

/* Sets an alternative configuration: a model's 'configs/NAME.pbtxt' is used if it exists, otherwise
 * its 'config.pbtxt'. Default "", for 'config.pbtxt'. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelConfigName(TRITONSERVER_ServerOptions *options,
                                             const char *model_config_name);

/* Sets the mode of the rate limiter. Default TRITONSERVER_RATE_LIMIT_OFF. With EXEC_COUNT, an
 * execution on an instance waits until the resources of its instance_group.rate_limiter are free;
 * the waiting instance with the lowest product of executions and priority is first. INVALID_ARG for
 * an unknown mode. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetRateLimiterMode(TRITONSERVER_ServerOptions *options,
                                             TRITONSERVER_RateLimitMode mode);

/* Sets the amount of a rate limiter resource on a device; -1 for each device. The device of a
 * global resource is ignored. Models with an instance that needs more cannot be loaded. Default:
 * the maximum that any instance needs. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsAddRateLimiterResource(TRITONSERVER_ServerOptions *options,
                                                 const char *resource_name,
                                                 const size_t resource_count, const int device);

/* Sets the size of the pool of pinned memory in bytes. Kelp stores it without effect. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetPinnedMemoryPoolByteSize(TRITONSERVER_ServerOptions *options,
                                                      uint64_t size);

/* Sets the size of the memory pool of a GPU in bytes. Kelp stores it without effect. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize(TRITONSERVER_ServerOptions *options,
                                                    int gpu_device, uint64_t size);

/* Sets the size of the address range that is reserved on a GPU for growing buffers, in bytes. Kelp
 * stores it without effect. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetCudaVirtualAddressSize(
    TRITONSERVER_ServerOptions *options, int gpu_device, size_t cuda_virtual_address_size);

/* Configures the cache "local" with a size in bytes, if no other cache is configured; 0 disables
 * it. Deprecated: use TRITONSERVER_ServerOptionsSetCacheConfig. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetResponseCacheByteSize(TRITONSERVER_ServerOptions *options,
                                                   uint64_t size);

/* Selects the response cache and sets its configuration, a JSON object. A server has one cache:
 * TRITONSERVER_ServerNew returns INVALID_ARG for two names. The built-in cache "local" expects
 * {"size": BYTES}. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCacheConfig(TRITONSERVER_ServerOptions *options,
                                         const char *cache_name, const char *config_json);

/* Sets the directory of response caches, which contains NAME/libtritoncache_NAME.so. Default
 * "/opt/tritonserver/caches". */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCacheDirectory(TRITONSERVER_ServerOptions *options,
                                            const char *cache_dir);

/* Sets the minimum CUDA compute capability of GPUs. Kelp stores it without effect. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability(TRITONSERVER_ServerOptions *options,
                                                           double cc);

/* Sets whether TRITONSERVER_ServerNew fails if a model fails to load. If false, the other models
 * are served. Default true. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetExitOnError(TRITONSERVER_ServerOptions *options, bool exit);

/* Sets whether the server is ready only if all its models are ready. Default true. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetStrictReadiness(TRITONSERVER_ServerOptions *options, bool strict);

/* Sets the maximum time in seconds that stopping a server waits for requests in flight. Default
 * 30. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetExitTimeout(TRITONSERVER_ServerOptions *options, unsigned int timeout);

/* Sets the number of threads that copy inputs and outputs. Kelp stores it without effect, because
 * it does not copy them. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetBufferManagerThreadCount(TRITONSERVER_ServerOptions *options,
                                                      unsigned int thread_count);

/* Sets the number of models that are loaded at once. Default 4; 0 is equivalent to 1. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadThreadCount(TRITONSERVER_ServerOptions *options,
                                                  unsigned int thread_count);

/* Sets how often a failed load of a model version is repeated. Default 0. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadRetryCount(TRITONSERVER_ServerOptions *options,
                                                 unsigned int retry_count);

/* Sets whether each repository is a namespace, so that several may contain models of the same name.
 * NAMESPACE::NAME then selects one of them; the namespace is the repository's path. Default
 * false. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelNamespacing(TRITONSERVER_ServerOptions *options,
                                              bool enable_namespace);

/* Sets whether GPUs may access each other's memory. Kelp stores it without effect. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetEnablePeerAccess(TRITONSERVER_ServerOptions *options,
                                              bool enable_peer_access);

/* Sets the file to which log messages are appended; "" for standard output (INFO) and standard
 * error (other levels). INVALID_ARG if the file cannot be opened. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogFile(TRITONSERVER_ServerOptions *options, const char *file);

/* Enables or disables INFO messages. Default enabled. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogInfo(TRITONSERVER_ServerOptions *options, bool log);

/* Enables or disables WARN messages. Default enabled. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogWarn(TRITONSERVER_ServerOptions *options, bool log);

/* Enables or disables ERROR messages. Default enabled. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogError(TRITONSERVER_ServerOptions *options, bool log);

/* Sets the format of log messages. Default TRITONSERVER_LOG_DEFAULT. INVALID_ARG for an unknown
 * format. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogFormat(TRITONSERVER_ServerOptions *options,
                                       const TRITONSERVER_LogFormat format);

/* Sets the verbosity. 0 or a negative level, the default, disables VERBOSE messages. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogVerbose(TRITONSERVER_ServerOptions *options, int level);

/* Sets the function that receives the messages of enabled levels in place of the log's file or
 * streams; NULL, the default, for none. It takes effect when TRITONSERVER_ServerNew is called with
 * the options, for all servers of the process and until the next such call. A thread that was
 * logging at that moment may still call the previous function. 'userp' is passed to the function
 * and must remain valid as long as it may be called. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogCallback(TRITONSERVER_ServerOptions *options,
                                         TRITONSERVER_LogCallbackFn_t callback, void *userp);

/* Enables or disables metrics. Default enabled. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMetrics(TRITONSERVER_ServerOptions *options, bool metrics);

/* Enables or disables metrics of GPUs. Kelp stores it without effect. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetGpuMetrics(TRITONSERVER_ServerOptions *options, bool gpu_metrics);

/* Enables or disables metrics of CPU and memory, if metrics are enabled. Default enabled. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCpuMetrics(TRITONSERVER_ServerOptions *options, bool cpu_metrics);

/* Sets the interval in milliseconds at which metrics are collected. Kelp stores it without effect:
 * it collects metrics when TRITONSERVER_ServerMetrics is called. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMetricsInterval(TRITONSERVER_ServerOptions *options,
                                             uint64_t metrics_interval_ms);

/* Sets the directory of backends, which contains NAME/libtriton_NAME.so. Default
 * "/opt/tritonserver/backends". The setting "backend-directory" for all backends has priority. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetBackendDirectory(TRITONSERVER_ServerOptions *options,
                                              const char *backend_dir);

/* Sets the directory of repository agents, which contains NAME/libtritonrepoagent_NAME.so. Default
 * "/opt/tritonserver/repoagents". */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetRepoAgentDirectory(TRITONSERVER_ServerOptions *options,
                                                const char *repoagent_dir);

/* Sets the maximum fraction of a GPU's memory that may be in use when a model is loaded. Kelp
 * stores it without effect. INVALID_ARG for a kind other than GPU or a fraction outside 0 to 1. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(TRITONSERVER_ServerOptions *options,
                                                  const TRITONSERVER_InstanceGroupKind kind,
                                                  const int device_id, const double fraction);

/* Sets a setting of a backend, which reads it with TRITONBACKEND_BackendConfig. The backend name ""
 * sets it for all backends. Replaces an earlier value. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetBackendConfig(TRITONSERVER_ServerOptions *options,
                                           const char *backend_name, const char *setting,
                                           const char *value);

/* Sets "numa-node" or "cpu-cores" of a host policy; UNSUPPORTED for other settings. Kelp only
 * passes host policies to backends (TRITONBACKEND_ModelInstanceHostPolicy): it does not bind
 * threads or memory. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetHostPolicy(TRITONSERVER_ServerOptions *options,
                                        const char *policy_name, const char *setting,
                                        const char *value);

/* Sets a setting of the metrics. With the name "", Kelp reads "counter_latencies",
 * "histogram_latencies", "summary_latencies" ("true" or "false") and "summary_quantiles" (pairs
 * QUANTILE:ERROR separated by commas). TRITONSERVER_ServerNew returns INVALID_ARG for an invalid
 * value. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMetricsConfig(TRITONSERVER_ServerOptions *options, const char *name,
                                           const char *setting, const char *value);

/* ---- Server ------------------------------------------------------------------------------ */

/* For functions with a model name and a version, version -1 is the highest version that is ready.
 * Errors, unless stated otherwise: NOT_FOUND if the model or version is unknown or, for version -1,
 * no version is ready; UNAVAILABLE if the version is not ready; INVALID_ARG if the name is
 * ambiguous because several namespaces contain it. The caller deletes the messages that the
 * functions return. */

/* Flags of the batching of a model. */
typedef enum tritonserver_batchflag_enum {
    TRITONSERVER_BATCH_UNKNOWN = 1,  /* the server does not batch requests */
    TRITONSERVER_BATCH_FIRST_DIM = 2 /* the first dimension is the batch dimension */
} TRITONSERVER_ModelBatchFlag;

/* Flags that select models of the repository index. */
typedef enum tritonserver_modelindexflag_enum {
    TRITONSERVER_INDEX_FLAG_READY = 1 /* only models that are ready */
} TRITONSERVER_ModelIndexFlag;

/* Flags of the number of responses per request. */
typedef enum tritonserver_txn_property_flag_enum {
    TRITONSERVER_TXN_ONE_TO_ONE = 1, /* exactly one response */
    TRITONSERVER_TXN_DECOUPLED = 2   /* any number of responses */
} TRITONSERVER_ModelTxnPropertyFlag;

/* Creates a server and loads the models of its control mode. Returns when they are loaded. The
 * options are copied. INVALID_ARG if an option is invalid or no repository is set, INTERNAL if a
 * model fails to load, otherwise the error of a repository or of the response cache. After an
 * error, no server exists. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerNew(TRITONSERVER_Server **server, TRITONSERVER_ServerOptions *options);

/* Stops a server, if it is not stopped, and deletes it. If the exit timeout expires, returns
 * INTERNAL and keeps the server; to retry, call the function again. Requests and responses that the
 * application owns stay valid, and must be deleted as well. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerDelete(TRITONSERVER_Server *server);

/* Rejects new requests, waits for requests in flight, and unloads all models. INTERNAL if the exit
 * timeout expires; to retry, call the function again. No effect if the server is stopped. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerStop(TRITONSERVER_Server *server);

/* Sets the exit timeout of a server in seconds. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerSetExitTimeout(TRITONSERVER_Server *server, unsigned int timeout);

/* Adds a repository in the control mode EXPLICIT, without loading models. 'name_mapping' contains
 * 'mapping_count' STRING parameters, which the caller keeps: the name is a directory of the
 * repository, and the value is the model's name. ALREADY_EXISTS if the repository is registered or
 * a model's name is mapped already, INVALID_ARG if the path is not a directory, UNSUPPORTED in
 * other control modes. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerRegisterModelRepository(TRITONSERVER_Server *server, const char *repository_path,
                                           const TRITONSERVER_Parameter **name_mapping,
                                           const uint32_t mapping_count);

/* Removes a repository in the control mode EXPLICIT. Its loaded models stay loaded. NOT_FOUND if it
 * is not registered, UNSUPPORTED in other control modes. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerUnregisterModelRepository(TRITONSERVER_Server *server,
                                             const char *repository_path);

/* Loads new and modified models and unloads removed ones, in the control mode POLL. Only this
 * function polls. UNAVAILABLE in other control modes, INTERNAL if a model fails to load. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerPollModelRepository(TRITONSERVER_Server *server);

/* Reports whether the server is running. UNAVAILABLE, with '*live' false, once it is being
 * stopped. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerIsLive(TRITONSERVER_Server *server,
                                                                    bool *live);

/* Reports whether the server accepts requests and, with strict readiness, all models are ready,
 * except for models that were unloaded on request. UNAVAILABLE, with '*ready' false, once it is
 * being stopped. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerIsReady(TRITONSERVER_Server *server,
                                                                     bool *ready);

/* Reports whether a model accepts requests, including TRITONBACKEND_ModelInstanceReady of its
 * backend. For a version that is not ready, '*ready' is false and the function succeeds.
 * UNAVAILABLE if the server is not ready. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelIsReady(TRITONSERVER_Server *server, const char *model_name,
                                const int64_t model_version, bool *ready);

/* Gets whether a model batches: a combination of TRITONSERVER_ModelBatchFlag. 'voidp' may be NULL,
 * otherwise '*voidp' is set to NULL. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelBatchProperties(TRITONSERVER_Server *server, const char *model_name,
                                        const int64_t model_version, uint32_t *flags, void **voidp);

/* Gets the number of responses per request: a combination of TRITONSERVER_ModelTxnPropertyFlag.
 * 'voidp' may be NULL, otherwise '*voidp' is set to NULL. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelTransactionProperties(TRITONSERVER_Server *server, const char *model_name,
                                              const int64_t model_version, uint32_t *txn_flags,
                                              void **voidp);

/* Gets the name, version and extensions of the server. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerMetadata(TRITONSERVER_Server *server, TRITONSERVER_Message **server_metadata);

/* Gets the inputs, outputs, platform and ready versions of a model. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelMetadata(TRITONSERVER_Server *server, const char *model_name,
                                 const int64_t model_version,
                                 TRITONSERVER_Message **model_metadata);

/* Gets the statistics of models that are ready. The name "" selects all models, and version -1 all
 * versions. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelStatistics(TRITONSERVER_Server *server, const char *model_name,
                                   const int64_t model_version, TRITONSERVER_Message **model_stats);

/* Gets the complete configuration of a model. UNSUPPORTED for a 'config_version' other than 1. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelConfig(TRITONSERVER_Server *server, const char *model_name,
                               const int64_t model_version, const uint32_t config_version,
                               TRITONSERVER_Message **model_config);

/* Gets the models of all repositories, and models that serve although no repository has them any
 * more, with their states. 'flags' is a combination of TRITONSERVER_ModelIndexFlag. UNAVAILABLE if
 * the server is not ready. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelIndex(TRITONSERVER_Server *server, uint32_t flags,
                              TRITONSERVER_Message **model_index);

/* Loads or reloads a model in the control mode EXPLICIT, and returns when it is ready or has
 * failed. Only changes have an effect (docs/backends-abi.md, "Reloading a model"). The loaded
 * version serves requests until the new one is ready, and stays if the load fails. UNAVAILABLE in
 * other control modes and if the server is not ready, NOT_FOUND if no repository contains the
 * model, otherwise the error of the load. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerLoadModel(TRITONSERVER_Server *server,
                                                                       const char *model_name);

/* Loads a model with parameters, which the caller keeps: STRING "config" (JSON) replaces the
 * configuration, and BYTES "file:PATH" replaces the model's files. PATH is relative to the model's
 * directory. Files require "config". INVALID_ARG for other parameters. Otherwise equivalent to
 * TRITONSERVER_ServerLoadModel. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerLoadModelWithParameters(TRITONSERVER_Server *server, const char *model_name,
                                           const TRITONSERVER_Parameter **parameters,
                                           const uint64_t parameter_count);

/* Starts to unload all versions of a model in the control mode EXPLICIT. Requests in flight
 * complete. UNAVAILABLE in other control modes, NOT_FOUND if the model was never loaded. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerUnloadModel(TRITONSERVER_Server *server, const char *model_name);

/* Unloads a model and the models that only it uses. In Kelp equivalent to
 * TRITONSERVER_ServerUnloadModel, because ensembles are not supported. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerUnloadModelAndDependents(TRITONSERVER_Server *server, const char *model_name);

/* Gets a snapshot of the metrics, which the caller deletes. UNSUPPORTED if metrics are disabled. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerMetrics(TRITONSERVER_Server *server, TRITONSERVER_Metrics **metrics);

/* Submits a request. 'trace' may be NULL. On success, the server owns the request and the trace
 * until their release callbacks; callbacks may run inside this function. On error, the caller keeps
 * both, and neither release callback runs. INVALID_ARG if the request does not match the model or
 * lacks a callback, NOT_FOUND if the model no longer exists, UNAVAILABLE if the server or model is
 * not ready or the queue is full, INTERNAL if the request is in flight. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerInferAsync(TRITONSERVER_Server *server,
                              TRITONSERVER_InferenceRequest *inference_request,
                              TRITONSERVER_InferenceTrace *trace);

/* ---- Custom metrics ---------------------------------------------------------------------- */

/* Metrics of applications and plug-ins. They belong to the process and appear in the metrics of
 * every server. The functions are thread-safe. */

/* The kind of a metric. */
typedef enum TRITONSERVER_metrickind_enum {
    TRITONSERVER_METRIC_KIND_COUNTER = 0,  /* value that only increases */
    TRITONSERVER_METRIC_KIND_GAUGE = 1,    /* value that can increase and decrease */
    TRITONSERVER_METRIC_KIND_HISTOGRAM = 2 /* distribution of observed values */
} TRITONSERVER_MetricKind;

/* Creates a metric family, or returns the existing one with the same name and kind, which keeps its
 * description. Each handle must be deleted. INVALID_ARG if the name exists with another kind, or
 * the kind is unknown. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricFamilyNew(TRITONSERVER_MetricFamily **family, const TRITONSERVER_MetricKind kind,
                             const char *name, const char *description);

/* Deletes a handle of a family; the last one removes the family. INTERNAL if it is the last one and
 * the family has metrics. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricFamilyDelete(TRITONSERVER_MetricFamily *family);

/* Gets the kind of a family. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_GetMetricFamilyKind(TRITONSERVER_MetricFamily *family, TRITONSERVER_MetricKind *kind);

/* Creates empty arguments for TRITONSERVER_MetricNewWithArgs. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricArgsNew(TRITONSERVER_MetricArgs **args);

/* Sets the upper bounds of the buckets of a histogram, in ascending order. The order is checked by
 * TRITONSERVER_MetricNewWithArgs. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricArgsSetHistogram(TRITONSERVER_MetricArgs *args, const double *buckets,
                                    const uint64_t buckets_count);

/* Deletes arguments. Metrics that were created with them are not affected. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricArgsDelete(TRITONSERVER_MetricArgs *args);

/* Creates a counter or gauge, or returns the existing metric with the same labels. 'labels'
 * contains STRING parameters, which the caller keeps. Each handle must be deleted before the
 * family. INVALID_ARG for a histogram and for a label of another type. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricNew(TRITONSERVER_Metric **metric, TRITONSERVER_MetricFamily *family,
                       const TRITONSERVER_Parameter **labels, const uint64_t label_count);

/* Creates a metric of any kind. A histogram requires 'args'; other kinds ignore it. INVALID_ARG if
 * the buckets are not ascending. Otherwise equivalent to TRITONSERVER_MetricNew. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricNewWithArgs(TRITONSERVER_Metric **metric, TRITONSERVER_MetricFamily *family,
                               const TRITONSERVER_Parameter **labels, const uint64_t label_count,
                               const TRITONSERVER_MetricArgs *args);

/* Deletes a handle of a metric; the last one removes the metric. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricDelete(TRITONSERVER_Metric *metric);

/* Gets the value of a counter or gauge. UNSUPPORTED for a histogram. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricValue(TRITONSERVER_Metric *metric,
                                                                   double *value);

/* Adds to a counter or gauge. INVALID_ARG for a counter and a negative value, UNSUPPORTED for a
 * histogram. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricIncrement(TRITONSERVER_Metric *metric,
                                                                       double value);

/* Sets the value of a gauge. UNSUPPORTED for other kinds. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricSet(TRITONSERVER_Metric *metric,
                                                                 double value);

/* Adds a value to a histogram. UNSUPPORTED for other kinds. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricObserve(TRITONSERVER_Metric *metric,
                                                                     double value);

/* Gets the kind of a metric. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_GetMetricKind(TRITONSERVER_Metric *metric,
                                                                     TRITONSERVER_MetricKind *kind);

#ifdef __cplusplus
}
#endif
