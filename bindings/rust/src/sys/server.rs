// SPDX-License-Identifier: Apache-2.0
//! Declarations of `include/triton/core/tritonserver.h`, which documents every function. Written by make_sys.py.
use super::*;

pub const TRITONSERVER_API_VERSION_MAJOR: u32 = 1;
pub const TRITONSERVER_API_VERSION_MINOR: u32 = 34;
opaque!(TRITONSERVER_BufferAttributes);
opaque!(TRITONSERVER_Error);
opaque!(TRITONSERVER_InferenceRequest);
opaque!(TRITONSERVER_InferenceResponse);
opaque!(TRITONSERVER_InferenceTrace);
opaque!(TRITONSERVER_Message);
opaque!(TRITONSERVER_Metric);
opaque!(TRITONSERVER_MetricArgs);
opaque!(TRITONSERVER_MetricFamily);
opaque!(TRITONSERVER_Metrics);
opaque!(TRITONSERVER_Parameter);
opaque!(TRITONSERVER_ResponseAllocator);
opaque!(TRITONSERVER_Server);
opaque!(TRITONSERVER_ServerOptions);
pub type TRITONSERVER_DataType = c_uint;
pub const TRITONSERVER_TYPE_INVALID: TRITONSERVER_DataType = 0;
pub const TRITONSERVER_TYPE_BOOL: TRITONSERVER_DataType = 1;
pub const TRITONSERVER_TYPE_UINT8: TRITONSERVER_DataType = 2;
pub const TRITONSERVER_TYPE_UINT16: TRITONSERVER_DataType = 3;
pub const TRITONSERVER_TYPE_UINT32: TRITONSERVER_DataType = 4;
pub const TRITONSERVER_TYPE_UINT64: TRITONSERVER_DataType = 5;
pub const TRITONSERVER_TYPE_INT8: TRITONSERVER_DataType = 6;
pub const TRITONSERVER_TYPE_INT16: TRITONSERVER_DataType = 7;
pub const TRITONSERVER_TYPE_INT32: TRITONSERVER_DataType = 8;
pub const TRITONSERVER_TYPE_INT64: TRITONSERVER_DataType = 9;
pub const TRITONSERVER_TYPE_FP16: TRITONSERVER_DataType = 10;
pub const TRITONSERVER_TYPE_FP32: TRITONSERVER_DataType = 11;
pub const TRITONSERVER_TYPE_FP64: TRITONSERVER_DataType = 12;
pub const TRITONSERVER_TYPE_BYTES: TRITONSERVER_DataType = 13;
pub const TRITONSERVER_TYPE_BF16: TRITONSERVER_DataType = 14;
pub type TRITONSERVER_MemoryType = c_uint;
pub const TRITONSERVER_MEMORY_CPU: TRITONSERVER_MemoryType = 0;
pub const TRITONSERVER_MEMORY_CPU_PINNED: TRITONSERVER_MemoryType = 1;
pub const TRITONSERVER_MEMORY_GPU: TRITONSERVER_MemoryType = 2;
pub type TRITONSERVER_ParameterType = c_uint;
pub const TRITONSERVER_PARAMETER_STRING: TRITONSERVER_ParameterType = 0;
pub const TRITONSERVER_PARAMETER_INT: TRITONSERVER_ParameterType = 1;
pub const TRITONSERVER_PARAMETER_BOOL: TRITONSERVER_ParameterType = 2;
pub const TRITONSERVER_PARAMETER_DOUBLE: TRITONSERVER_ParameterType = 3;
pub const TRITONSERVER_PARAMETER_BYTES: TRITONSERVER_ParameterType = 4;
pub type TRITONSERVER_InstanceGroupKind = c_uint;
pub const TRITONSERVER_INSTANCEGROUPKIND_AUTO: TRITONSERVER_InstanceGroupKind = 0;
pub const TRITONSERVER_INSTANCEGROUPKIND_CPU: TRITONSERVER_InstanceGroupKind = 1;
pub const TRITONSERVER_INSTANCEGROUPKIND_GPU: TRITONSERVER_InstanceGroupKind = 2;
pub const TRITONSERVER_INSTANCEGROUPKIND_MODEL: TRITONSERVER_InstanceGroupKind = 3;
pub type TRITONSERVER_LogLevel = c_uint;
pub const TRITONSERVER_LOG_INFO: TRITONSERVER_LogLevel = 0;
pub const TRITONSERVER_LOG_WARN: TRITONSERVER_LogLevel = 1;
pub const TRITONSERVER_LOG_ERROR: TRITONSERVER_LogLevel = 2;
pub const TRITONSERVER_LOG_VERBOSE: TRITONSERVER_LogLevel = 3;
pub type TRITONSERVER_LogFormat = c_uint;
pub const TRITONSERVER_LOG_DEFAULT: TRITONSERVER_LogFormat = 0;
pub const TRITONSERVER_LOG_ISO8601: TRITONSERVER_LogFormat = 1;
pub type TRITONSERVER_LogCallbackFn_t = Option<
    unsafe extern "C" fn(
        level: TRITONSERVER_LogLevel,
        filename: *const c_char,
        line: c_int,
        timestamp_us: u64,
        message: *const c_char,
        userp: *mut c_void,
    ),
>;
pub type TRITONSERVER_Error_Code = c_uint;
pub const TRITONSERVER_ERROR_UNKNOWN: TRITONSERVER_Error_Code = 0;
pub const TRITONSERVER_ERROR_INTERNAL: TRITONSERVER_Error_Code = 1;
pub const TRITONSERVER_ERROR_NOT_FOUND: TRITONSERVER_Error_Code = 2;
pub const TRITONSERVER_ERROR_INVALID_ARG: TRITONSERVER_Error_Code = 3;
pub const TRITONSERVER_ERROR_UNAVAILABLE: TRITONSERVER_Error_Code = 4;
pub const TRITONSERVER_ERROR_UNSUPPORTED: TRITONSERVER_Error_Code = 5;
pub const TRITONSERVER_ERROR_ALREADY_EXISTS: TRITONSERVER_Error_Code = 6;
pub const TRITONSERVER_ERROR_CANCELLED: TRITONSERVER_Error_Code = 7;
pub type TRITONSERVER_ResponseAllocatorAllocFn_t = Option<
    unsafe extern "C" fn(
        allocator: *mut TRITONSERVER_ResponseAllocator,
        tensor_name: *const c_char,
        byte_size: usize,
        memory_type: TRITONSERVER_MemoryType,
        memory_type_id: i64,
        userp: *mut c_void,
        buffer: *mut *mut c_void,
        buffer_userp: *mut *mut c_void,
        actual_memory_type: *mut TRITONSERVER_MemoryType,
        actual_memory_type_id: *mut i64,
    ) -> *mut TRITONSERVER_Error,
>;
pub type TRITONSERVER_ResponseAllocatorBufferAttributesFn_t = Option<
    unsafe extern "C" fn(
        allocator: *mut TRITONSERVER_ResponseAllocator,
        tensor_name: *const c_char,
        buffer_attributes: *mut TRITONSERVER_BufferAttributes,
        userp: *mut c_void,
        buffer_userp: *mut c_void,
    ) -> *mut TRITONSERVER_Error,
>;
pub type TRITONSERVER_ResponseAllocatorQueryFn_t = Option<
    unsafe extern "C" fn(
        allocator: *mut TRITONSERVER_ResponseAllocator,
        userp: *mut c_void,
        tensor_name: *const c_char,
        byte_size: *mut usize,
        memory_type: *mut TRITONSERVER_MemoryType,
        memory_type_id: *mut i64,
    ) -> *mut TRITONSERVER_Error,
>;
pub type TRITONSERVER_ResponseAllocatorReleaseFn_t = Option<
    unsafe extern "C" fn(
        allocator: *mut TRITONSERVER_ResponseAllocator,
        buffer: *mut c_void,
        buffer_userp: *mut c_void,
        byte_size: usize,
        memory_type: TRITONSERVER_MemoryType,
        memory_type_id: i64,
    ) -> *mut TRITONSERVER_Error,
>;
pub type TRITONSERVER_ResponseAllocatorStartFn_t = Option<
    unsafe extern "C" fn(allocator: *mut TRITONSERVER_ResponseAllocator, userp: *mut c_void) -> *mut TRITONSERVER_Error,
>;
pub type TRITONSERVER_MetricFormat = c_uint;
pub const TRITONSERVER_METRIC_PROMETHEUS: TRITONSERVER_MetricFormat = 0;
pub type TRITONSERVER_InferenceTraceLevel = c_uint;
pub const TRITONSERVER_TRACE_LEVEL_DISABLED: TRITONSERVER_InferenceTraceLevel = 0;
pub const TRITONSERVER_TRACE_LEVEL_MIN: TRITONSERVER_InferenceTraceLevel = 1;
pub const TRITONSERVER_TRACE_LEVEL_MAX: TRITONSERVER_InferenceTraceLevel = 2;
pub const TRITONSERVER_TRACE_LEVEL_TIMESTAMPS: TRITONSERVER_InferenceTraceLevel = 4;
pub const TRITONSERVER_TRACE_LEVEL_TENSORS: TRITONSERVER_InferenceTraceLevel = 8;
pub type TRITONSERVER_InferenceTraceActivity = c_uint;
pub const TRITONSERVER_TRACE_REQUEST_START: TRITONSERVER_InferenceTraceActivity = 0;
pub const TRITONSERVER_TRACE_QUEUE_START: TRITONSERVER_InferenceTraceActivity = 1;
pub const TRITONSERVER_TRACE_COMPUTE_START: TRITONSERVER_InferenceTraceActivity = 2;
pub const TRITONSERVER_TRACE_COMPUTE_INPUT_END: TRITONSERVER_InferenceTraceActivity = 3;
pub const TRITONSERVER_TRACE_COMPUTE_OUTPUT_START: TRITONSERVER_InferenceTraceActivity = 4;
pub const TRITONSERVER_TRACE_COMPUTE_END: TRITONSERVER_InferenceTraceActivity = 5;
pub const TRITONSERVER_TRACE_REQUEST_END: TRITONSERVER_InferenceTraceActivity = 6;
pub const TRITONSERVER_TRACE_TENSOR_QUEUE_INPUT: TRITONSERVER_InferenceTraceActivity = 7;
pub const TRITONSERVER_TRACE_TENSOR_BACKEND_INPUT: TRITONSERVER_InferenceTraceActivity = 8;
pub const TRITONSERVER_TRACE_TENSOR_BACKEND_OUTPUT: TRITONSERVER_InferenceTraceActivity = 9;
pub const TRITONSERVER_TRACE_CUSTOM_ACTIVITY: TRITONSERVER_InferenceTraceActivity = 10;
pub type TRITONSERVER_InferenceTraceActivityFn_t = Option<
    unsafe extern "C" fn(
        trace: *mut TRITONSERVER_InferenceTrace,
        activity: TRITONSERVER_InferenceTraceActivity,
        timestamp_ns: u64,
        userp: *mut c_void,
    ),
>;
pub type TRITONSERVER_InferenceTraceTensorActivityFn_t = Option<
    unsafe extern "C" fn(
        trace: *mut TRITONSERVER_InferenceTrace,
        activity: TRITONSERVER_InferenceTraceActivity,
        name: *const c_char,
        datatype: TRITONSERVER_DataType,
        base: *const c_void,
        byte_size: usize,
        shape: *const i64,
        dim_count: u64,
        memory_type: TRITONSERVER_MemoryType,
        memory_type_id: i64,
        userp: *mut c_void,
    ),
>;
pub type TRITONSERVER_InferenceTraceReleaseFn_t =
    Option<unsafe extern "C" fn(trace: *mut TRITONSERVER_InferenceTrace, userp: *mut c_void)>;
pub type TRITONSERVER_RequestFlag = c_uint;
pub const TRITONSERVER_REQUEST_FLAG_SEQUENCE_START: TRITONSERVER_RequestFlag = 1;
pub const TRITONSERVER_REQUEST_FLAG_SEQUENCE_END: TRITONSERVER_RequestFlag = 2;
pub type TRITONSERVER_RequestReleaseFlag = c_uint;
pub const TRITONSERVER_REQUEST_RELEASE_ALL: TRITONSERVER_RequestReleaseFlag = 1;
pub const TRITONSERVER_REQUEST_RELEASE_RESCHEDULE: TRITONSERVER_RequestReleaseFlag = 2;
pub type TRITONSERVER_ResponseCompleteFlag = c_uint;
pub const TRITONSERVER_RESPONSE_COMPLETE_FINAL: TRITONSERVER_ResponseCompleteFlag = 1;
pub type TRITONSERVER_InferenceRequestReleaseFn_t =
    Option<unsafe extern "C" fn(request: *mut TRITONSERVER_InferenceRequest, flags: u32, userp: *mut c_void)>;
pub type TRITONSERVER_InferenceResponseCompleteFn_t =
    Option<unsafe extern "C" fn(response: *mut TRITONSERVER_InferenceResponse, flags: u32, userp: *mut c_void)>;
pub type TRITONSERVER_ModelControlMode = c_uint;
pub const TRITONSERVER_MODEL_CONTROL_NONE: TRITONSERVER_ModelControlMode = 0;
pub const TRITONSERVER_MODEL_CONTROL_POLL: TRITONSERVER_ModelControlMode = 1;
pub const TRITONSERVER_MODEL_CONTROL_EXPLICIT: TRITONSERVER_ModelControlMode = 2;
pub type TRITONSERVER_RateLimitMode = c_uint;
pub const TRITONSERVER_RATE_LIMIT_OFF: TRITONSERVER_RateLimitMode = 0;
pub const TRITONSERVER_RATE_LIMIT_EXEC_COUNT: TRITONSERVER_RateLimitMode = 1;
pub type TRITONSERVER_ModelBatchFlag = c_uint;
pub const TRITONSERVER_BATCH_UNKNOWN: TRITONSERVER_ModelBatchFlag = 1;
pub const TRITONSERVER_BATCH_FIRST_DIM: TRITONSERVER_ModelBatchFlag = 2;
pub type TRITONSERVER_ModelIndexFlag = c_uint;
pub const TRITONSERVER_INDEX_FLAG_READY: TRITONSERVER_ModelIndexFlag = 1;
pub type TRITONSERVER_ModelTxnPropertyFlag = c_uint;
pub const TRITONSERVER_TXN_ONE_TO_ONE: TRITONSERVER_ModelTxnPropertyFlag = 1;
pub const TRITONSERVER_TXN_DECOUPLED: TRITONSERVER_ModelTxnPropertyFlag = 2;
pub type TRITONSERVER_MetricKind = c_uint;
pub const TRITONSERVER_METRIC_KIND_COUNTER: TRITONSERVER_MetricKind = 0;
pub const TRITONSERVER_METRIC_KIND_GAUGE: TRITONSERVER_MetricKind = 1;
pub const TRITONSERVER_METRIC_KIND_HISTOGRAM: TRITONSERVER_MetricKind = 2;

unsafe extern "C" {
    pub fn TRITONSERVER_ApiVersion(major: *mut u32, minor: *mut u32) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_DataTypeString(datatype: TRITONSERVER_DataType) -> *const c_char;
    pub fn TRITONSERVER_StringToDataType(dtype: *const c_char) -> TRITONSERVER_DataType;
    pub fn TRITONSERVER_DataTypeByteSize(datatype: TRITONSERVER_DataType) -> u32;
    pub fn TRITONSERVER_MemoryTypeString(memtype: TRITONSERVER_MemoryType) -> *const c_char;
    pub fn TRITONSERVER_ParameterTypeString(paramtype: TRITONSERVER_ParameterType) -> *const c_char;
    pub fn TRITONSERVER_ParameterNew(
        name: *const c_char,
        type_: TRITONSERVER_ParameterType,
        value: *const c_void,
    ) -> *mut TRITONSERVER_Parameter;
    pub fn TRITONSERVER_ParameterBytesNew(
        name: *const c_char,
        byte_ptr: *const c_void,
        size: u64,
    ) -> *mut TRITONSERVER_Parameter;
    pub fn TRITONSERVER_ParameterDelete(parameter: *mut TRITONSERVER_Parameter);
    pub fn TRITONSERVER_InstanceGroupKindString(kind: TRITONSERVER_InstanceGroupKind) -> *const c_char;
    pub fn TRITONSERVER_LogIsEnabled(level: TRITONSERVER_LogLevel) -> bool;
    pub fn TRITONSERVER_LogMessage(
        level: TRITONSERVER_LogLevel,
        filename: *const c_char,
        line: c_int,
        msg: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ErrorNew(code: TRITONSERVER_Error_Code, msg: *const c_char) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ErrorDelete(error: *mut TRITONSERVER_Error);
    pub fn TRITONSERVER_ErrorCode(error: *mut TRITONSERVER_Error) -> TRITONSERVER_Error_Code;
    pub fn TRITONSERVER_ErrorCodeString(error: *mut TRITONSERVER_Error) -> *const c_char;
    pub fn TRITONSERVER_ErrorMessage(error: *mut TRITONSERVER_Error) -> *const c_char;
    pub fn TRITONSERVER_ResponseAllocatorNew(
        allocator: *mut *mut TRITONSERVER_ResponseAllocator,
        alloc_fn: TRITONSERVER_ResponseAllocatorAllocFn_t,
        release_fn: TRITONSERVER_ResponseAllocatorReleaseFn_t,
        start_fn: TRITONSERVER_ResponseAllocatorStartFn_t,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(
        allocator: *mut TRITONSERVER_ResponseAllocator,
        buffer_attributes_fn: TRITONSERVER_ResponseAllocatorBufferAttributesFn_t,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ResponseAllocatorSetQueryFunction(
        allocator: *mut TRITONSERVER_ResponseAllocator,
        query_fn: TRITONSERVER_ResponseAllocatorQueryFn_t,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ResponseAllocatorDelete(
        allocator: *mut TRITONSERVER_ResponseAllocator,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_MessageNewFromSerializedJson(
        message: *mut *mut TRITONSERVER_Message,
        base: *const c_char,
        byte_size: usize,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_MessageDelete(message: *mut TRITONSERVER_Message) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_MessageSerializeToJson(
        message: *mut TRITONSERVER_Message,
        base: *mut *const c_char,
        byte_size: *mut usize,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_MetricsDelete(metrics: *mut TRITONSERVER_Metrics) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_MetricsFormatted(
        metrics: *mut TRITONSERVER_Metrics,
        format: TRITONSERVER_MetricFormat,
        base: *mut *const c_char,
        byte_size: *mut usize,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceTraceLevelString(level: TRITONSERVER_InferenceTraceLevel) -> *const c_char;
    pub fn TRITONSERVER_InferenceTraceActivityString(activity: TRITONSERVER_InferenceTraceActivity) -> *const c_char;
    pub fn TRITONSERVER_InferenceTraceNew(
        trace: *mut *mut TRITONSERVER_InferenceTrace,
        level: TRITONSERVER_InferenceTraceLevel,
        parent_id: u64,
        activity_fn: TRITONSERVER_InferenceTraceActivityFn_t,
        release_fn: TRITONSERVER_InferenceTraceReleaseFn_t,
        trace_userp: *mut c_void,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceTraceTensorNew(
        trace: *mut *mut TRITONSERVER_InferenceTrace,
        level: TRITONSERVER_InferenceTraceLevel,
        parent_id: u64,
        activity_fn: TRITONSERVER_InferenceTraceActivityFn_t,
        tensor_activity_fn: TRITONSERVER_InferenceTraceTensorActivityFn_t,
        release_fn: TRITONSERVER_InferenceTraceReleaseFn_t,
        trace_userp: *mut c_void,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceTraceReportActivity(
        trace: *mut TRITONSERVER_InferenceTrace,
        timestamp: u64,
        name: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceTraceDelete(trace: *mut TRITONSERVER_InferenceTrace) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceTraceId(
        trace: *mut TRITONSERVER_InferenceTrace,
        id: *mut u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceTraceParentId(
        trace: *mut TRITONSERVER_InferenceTrace,
        parent_id: *mut u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceTraceModelName(
        trace: *mut TRITONSERVER_InferenceTrace,
        model_name: *mut *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceTraceModelVersion(
        trace: *mut TRITONSERVER_InferenceTrace,
        model_version: *mut i64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceTraceRequestId(
        trace: *mut TRITONSERVER_InferenceTrace,
        request_id: *mut *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceTraceSpawnChildTrace(
        trace: *mut TRITONSERVER_InferenceTrace,
        child_trace: *mut *mut TRITONSERVER_InferenceTrace,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceTraceSetContext(
        trace: *mut TRITONSERVER_InferenceTrace,
        trace_context: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceTraceContext(
        trace: *mut TRITONSERVER_InferenceTrace,
        trace_context: *mut *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestNew(
        inference_request: *mut *mut TRITONSERVER_InferenceRequest,
        server: *mut TRITONSERVER_Server,
        model_name: *const c_char,
        model_version: i64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestDelete(
        inference_request: *mut TRITONSERVER_InferenceRequest,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestId(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        id: *mut *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestSetId(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        id: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestFlags(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        flags: *mut u32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestSetFlags(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        flags: u32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestCorrelationId(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        correlation_id: *mut u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestCorrelationIdString(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        correlation_id: *mut *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestSetCorrelationId(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        correlation_id: u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestSetCorrelationIdString(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        correlation_id: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestCancel(
        inference_request: *mut TRITONSERVER_InferenceRequest,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestIsCancelled(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        is_cancelled: *mut bool,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestPriority(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        priority: *mut u32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestPriorityUInt64(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        priority: *mut u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestSetPriority(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        priority: u32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestSetPriorityUInt64(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        priority: u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestTimeoutMicroseconds(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        timeout_us: *mut u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        timeout_us: u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestAddInput(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        name: *const c_char,
        datatype: TRITONSERVER_DataType,
        shape: *const i64,
        dim_count: u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestAddRawInput(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        name: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestRemoveInput(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        name: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestRemoveAllInputs(
        inference_request: *mut TRITONSERVER_InferenceRequest,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestAppendInputData(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        name: *const c_char,
        base: *const c_void,
        byte_size: usize,
        memory_type: TRITONSERVER_MemoryType,
        memory_type_id: i64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        name: *const c_char,
        base: *const c_void,
        byte_size: usize,
        memory_type: TRITONSERVER_MemoryType,
        memory_type_id: i64,
        host_policy_name: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        name: *const c_char,
        base: *const c_void,
        buffer_attributes: *mut TRITONSERVER_BufferAttributes,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestRemoveAllInputData(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        name: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestAddRequestedOutput(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        name: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestRemoveRequestedOutput(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        name: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(
        inference_request: *mut TRITONSERVER_InferenceRequest,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestSetReleaseCallback(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        request_release_fn: TRITONSERVER_InferenceRequestReleaseFn_t,
        request_release_userp: *mut c_void,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestSetResponseCallback(
        inference_request: *mut TRITONSERVER_InferenceRequest,
        response_allocator: *mut TRITONSERVER_ResponseAllocator,
        response_allocator_userp: *mut c_void,
        response_fn: TRITONSERVER_InferenceResponseCompleteFn_t,
        response_userp: *mut c_void,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestSetStringParameter(
        request: *mut TRITONSERVER_InferenceRequest,
        key: *const c_char,
        value: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestSetIntParameter(
        request: *mut TRITONSERVER_InferenceRequest,
        key: *const c_char,
        value: i64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestSetBoolParameter(
        request: *mut TRITONSERVER_InferenceRequest,
        key: *const c_char,
        value: bool,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceRequestSetDoubleParameter(
        request: *mut TRITONSERVER_InferenceRequest,
        key: *const c_char,
        value: f64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceResponseDelete(
        inference_response: *mut TRITONSERVER_InferenceResponse,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceResponseError(
        inference_response: *mut TRITONSERVER_InferenceResponse,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceResponseModel(
        inference_response: *mut TRITONSERVER_InferenceResponse,
        model_name: *mut *const c_char,
        model_version: *mut i64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceResponseId(
        inference_response: *mut TRITONSERVER_InferenceResponse,
        request_id: *mut *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceResponseParameterCount(
        inference_response: *mut TRITONSERVER_InferenceResponse,
        count: *mut u32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceResponseParameter(
        inference_response: *mut TRITONSERVER_InferenceResponse,
        index: u32,
        name: *mut *const c_char,
        type_: *mut TRITONSERVER_ParameterType,
        vvalue: *mut *const c_void,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceResponseOutputCount(
        inference_response: *mut TRITONSERVER_InferenceResponse,
        count: *mut u32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceResponseOutput(
        inference_response: *mut TRITONSERVER_InferenceResponse,
        index: u32,
        name: *mut *const c_char,
        datatype: *mut TRITONSERVER_DataType,
        shape: *mut *const i64,
        dim_count: *mut u64,
        base: *mut *const c_void,
        byte_size: *mut usize,
        memory_type: *mut TRITONSERVER_MemoryType,
        memory_type_id: *mut i64,
        userp: *mut *mut c_void,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_InferenceResponseOutputClassificationLabel(
        inference_response: *mut TRITONSERVER_InferenceResponse,
        index: u32,
        class_index: usize,
        label: *mut *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_BufferAttributesNew(
        buffer_attributes: *mut *mut TRITONSERVER_BufferAttributes,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_BufferAttributesDelete(
        buffer_attributes: *mut TRITONSERVER_BufferAttributes,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_BufferAttributesSetMemoryTypeId(
        buffer_attributes: *mut TRITONSERVER_BufferAttributes,
        memory_type_id: i64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_BufferAttributesSetMemoryType(
        buffer_attributes: *mut TRITONSERVER_BufferAttributes,
        memory_type: TRITONSERVER_MemoryType,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_BufferAttributesSetCudaIpcHandle(
        buffer_attributes: *mut TRITONSERVER_BufferAttributes,
        cuda_ipc_handle: *mut c_void,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_BufferAttributesSetByteSize(
        buffer_attributes: *mut TRITONSERVER_BufferAttributes,
        byte_size: usize,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_BufferAttributesMemoryTypeId(
        buffer_attributes: *mut TRITONSERVER_BufferAttributes,
        memory_type_id: *mut i64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_BufferAttributesMemoryType(
        buffer_attributes: *mut TRITONSERVER_BufferAttributes,
        memory_type: *mut TRITONSERVER_MemoryType,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_BufferAttributesCudaIpcHandle(
        buffer_attributes: *mut TRITONSERVER_BufferAttributes,
        cuda_ipc_handle: *mut *mut c_void,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_BufferAttributesByteSize(
        buffer_attributes: *mut TRITONSERVER_BufferAttributes,
        byte_size: *mut usize,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsNew(options: *mut *mut TRITONSERVER_ServerOptions) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsDelete(options: *mut TRITONSERVER_ServerOptions) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetServerId(
        options: *mut TRITONSERVER_ServerOptions,
        server_id: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetModelRepositoryPath(
        options: *mut TRITONSERVER_ServerOptions,
        model_repository_path: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetModelControlMode(
        options: *mut TRITONSERVER_ServerOptions,
        mode: TRITONSERVER_ModelControlMode,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetStartupModel(
        options: *mut TRITONSERVER_ServerOptions,
        model_name: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetStrictModelConfig(
        options: *mut TRITONSERVER_ServerOptions,
        strict: bool,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetModelConfigName(
        options: *mut TRITONSERVER_ServerOptions,
        model_config_name: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetRateLimiterMode(
        options: *mut TRITONSERVER_ServerOptions,
        mode: TRITONSERVER_RateLimitMode,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsAddRateLimiterResource(
        options: *mut TRITONSERVER_ServerOptions,
        resource_name: *const c_char,
        resource_count: usize,
        device: c_int,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetPinnedMemoryPoolByteSize(
        options: *mut TRITONSERVER_ServerOptions,
        size: u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize(
        options: *mut TRITONSERVER_ServerOptions,
        gpu_device: c_int,
        size: u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetCudaVirtualAddressSize(
        options: *mut TRITONSERVER_ServerOptions,
        gpu_device: c_int,
        cuda_virtual_address_size: usize,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetResponseCacheByteSize(
        options: *mut TRITONSERVER_ServerOptions,
        size: u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetCacheConfig(
        options: *mut TRITONSERVER_ServerOptions,
        cache_name: *const c_char,
        config_json: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetCacheDirectory(
        options: *mut TRITONSERVER_ServerOptions,
        cache_dir: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability(
        options: *mut TRITONSERVER_ServerOptions,
        cc: f64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetExitOnError(
        options: *mut TRITONSERVER_ServerOptions,
        exit: bool,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetStrictReadiness(
        options: *mut TRITONSERVER_ServerOptions,
        strict: bool,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetExitTimeout(
        options: *mut TRITONSERVER_ServerOptions,
        timeout: c_uint,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetBufferManagerThreadCount(
        options: *mut TRITONSERVER_ServerOptions,
        thread_count: c_uint,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetModelLoadThreadCount(
        options: *mut TRITONSERVER_ServerOptions,
        thread_count: c_uint,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetModelLoadRetryCount(
        options: *mut TRITONSERVER_ServerOptions,
        retry_count: c_uint,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetModelNamespacing(
        options: *mut TRITONSERVER_ServerOptions,
        enable_namespace: bool,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetEnablePeerAccess(
        options: *mut TRITONSERVER_ServerOptions,
        enable_peer_access: bool,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetLogFile(
        options: *mut TRITONSERVER_ServerOptions,
        file: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetLogInfo(
        options: *mut TRITONSERVER_ServerOptions,
        log: bool,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetLogWarn(
        options: *mut TRITONSERVER_ServerOptions,
        log: bool,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetLogError(
        options: *mut TRITONSERVER_ServerOptions,
        log: bool,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetLogFormat(
        options: *mut TRITONSERVER_ServerOptions,
        format: TRITONSERVER_LogFormat,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetLogVerbose(
        options: *mut TRITONSERVER_ServerOptions,
        level: c_int,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetLogCallback(
        options: *mut TRITONSERVER_ServerOptions,
        callback: TRITONSERVER_LogCallbackFn_t,
        userp: *mut c_void,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetMetrics(
        options: *mut TRITONSERVER_ServerOptions,
        metrics: bool,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetGpuMetrics(
        options: *mut TRITONSERVER_ServerOptions,
        gpu_metrics: bool,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetCpuMetrics(
        options: *mut TRITONSERVER_ServerOptions,
        cpu_metrics: bool,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetMetricsInterval(
        options: *mut TRITONSERVER_ServerOptions,
        metrics_interval_ms: u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetBackendDirectory(
        options: *mut TRITONSERVER_ServerOptions,
        backend_dir: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetRepoAgentDirectory(
        options: *mut TRITONSERVER_ServerOptions,
        repoagent_dir: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(
        options: *mut TRITONSERVER_ServerOptions,
        kind: TRITONSERVER_InstanceGroupKind,
        device_id: c_int,
        fraction: f64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetBackendConfig(
        options: *mut TRITONSERVER_ServerOptions,
        backend_name: *const c_char,
        setting: *const c_char,
        value: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetHostPolicy(
        options: *mut TRITONSERVER_ServerOptions,
        policy_name: *const c_char,
        setting: *const c_char,
        value: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerOptionsSetMetricsConfig(
        options: *mut TRITONSERVER_ServerOptions,
        name: *const c_char,
        setting: *const c_char,
        value: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerNew(
        server: *mut *mut TRITONSERVER_Server,
        options: *mut TRITONSERVER_ServerOptions,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerDelete(server: *mut TRITONSERVER_Server) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerStop(server: *mut TRITONSERVER_Server) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerSetExitTimeout(
        server: *mut TRITONSERVER_Server,
        timeout: c_uint,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerRegisterModelRepository(
        server: *mut TRITONSERVER_Server,
        repository_path: *const c_char,
        name_mapping: *mut *const TRITONSERVER_Parameter,
        mapping_count: u32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerUnregisterModelRepository(
        server: *mut TRITONSERVER_Server,
        repository_path: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerPollModelRepository(server: *mut TRITONSERVER_Server) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerIsLive(server: *mut TRITONSERVER_Server, live: *mut bool) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerIsReady(server: *mut TRITONSERVER_Server, ready: *mut bool) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerModelIsReady(
        server: *mut TRITONSERVER_Server,
        model_name: *const c_char,
        model_version: i64,
        ready: *mut bool,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerModelBatchProperties(
        server: *mut TRITONSERVER_Server,
        model_name: *const c_char,
        model_version: i64,
        flags: *mut u32,
        voidp: *mut *mut c_void,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerModelTransactionProperties(
        server: *mut TRITONSERVER_Server,
        model_name: *const c_char,
        model_version: i64,
        txn_flags: *mut u32,
        voidp: *mut *mut c_void,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerMetadata(
        server: *mut TRITONSERVER_Server,
        server_metadata: *mut *mut TRITONSERVER_Message,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerModelMetadata(
        server: *mut TRITONSERVER_Server,
        model_name: *const c_char,
        model_version: i64,
        model_metadata: *mut *mut TRITONSERVER_Message,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerModelStatistics(
        server: *mut TRITONSERVER_Server,
        model_name: *const c_char,
        model_version: i64,
        model_stats: *mut *mut TRITONSERVER_Message,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerModelConfig(
        server: *mut TRITONSERVER_Server,
        model_name: *const c_char,
        model_version: i64,
        config_version: u32,
        model_config: *mut *mut TRITONSERVER_Message,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerModelIndex(
        server: *mut TRITONSERVER_Server,
        flags: u32,
        model_index: *mut *mut TRITONSERVER_Message,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerLoadModel(
        server: *mut TRITONSERVER_Server,
        model_name: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerLoadModelWithParameters(
        server: *mut TRITONSERVER_Server,
        model_name: *const c_char,
        parameters: *mut *const TRITONSERVER_Parameter,
        parameter_count: u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerUnloadModel(
        server: *mut TRITONSERVER_Server,
        model_name: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerUnloadModelAndDependents(
        server: *mut TRITONSERVER_Server,
        model_name: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerMetrics(
        server: *mut TRITONSERVER_Server,
        metrics: *mut *mut TRITONSERVER_Metrics,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_ServerInferAsync(
        server: *mut TRITONSERVER_Server,
        inference_request: *mut TRITONSERVER_InferenceRequest,
        trace: *mut TRITONSERVER_InferenceTrace,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_MetricFamilyNew(
        family: *mut *mut TRITONSERVER_MetricFamily,
        kind: TRITONSERVER_MetricKind,
        name: *const c_char,
        description: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_MetricFamilyDelete(family: *mut TRITONSERVER_MetricFamily) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_GetMetricFamilyKind(
        family: *mut TRITONSERVER_MetricFamily,
        kind: *mut TRITONSERVER_MetricKind,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_MetricArgsNew(args: *mut *mut TRITONSERVER_MetricArgs) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_MetricArgsSetHistogram(
        args: *mut TRITONSERVER_MetricArgs,
        buckets: *const f64,
        buckets_count: u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_MetricArgsDelete(args: *mut TRITONSERVER_MetricArgs) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_MetricNew(
        metric: *mut *mut TRITONSERVER_Metric,
        family: *mut TRITONSERVER_MetricFamily,
        labels: *mut *const TRITONSERVER_Parameter,
        label_count: u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_MetricNewWithArgs(
        metric: *mut *mut TRITONSERVER_Metric,
        family: *mut TRITONSERVER_MetricFamily,
        labels: *mut *const TRITONSERVER_Parameter,
        label_count: u64,
        args: *const TRITONSERVER_MetricArgs,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_MetricDelete(metric: *mut TRITONSERVER_Metric) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_MetricValue(metric: *mut TRITONSERVER_Metric, value: *mut f64) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_MetricIncrement(metric: *mut TRITONSERVER_Metric, value: f64) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_MetricSet(metric: *mut TRITONSERVER_Metric, value: f64) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_MetricObserve(metric: *mut TRITONSERVER_Metric, value: f64) -> *mut TRITONSERVER_Error;
    pub fn TRITONSERVER_GetMetricKind(
        metric: *mut TRITONSERVER_Metric,
        kind: *mut TRITONSERVER_MetricKind,
    ) -> *mut TRITONSERVER_Error;
}
