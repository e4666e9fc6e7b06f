// SPDX-License-Identifier: Apache-2.0
//! Declarations of `include/triton/core/tritonbackend.h`, which documents every function. Written by make_sys.py.
use super::*;

pub const TRITONBACKEND_API_VERSION_MAJOR: u32 = 1;
pub const TRITONBACKEND_API_VERSION_MINOR: u32 = 19;
opaque!(TRITONBACKEND_Backend);
opaque!(TRITONBACKEND_BackendAttribute);
opaque!(TRITONBACKEND_Batcher);
opaque!(TRITONBACKEND_Input);
opaque!(TRITONBACKEND_MemoryManager);
opaque!(TRITONBACKEND_Model);
opaque!(TRITONBACKEND_ModelInstance);
opaque!(TRITONBACKEND_ModelInstanceResponseStatistics);
opaque!(TRITONBACKEND_Output);
opaque!(TRITONBACKEND_Request);
opaque!(TRITONBACKEND_Response);
opaque!(TRITONBACKEND_ResponseFactory);
opaque!(TRITONBACKEND_State);
pub type TRITONBACKEND_ArtifactType = c_uint;
pub const TRITONBACKEND_ARTIFACT_FILESYSTEM: TRITONBACKEND_ArtifactType = 0;
pub type TRITONBACKEND_ExecutionPolicy = c_uint;
pub const TRITONBACKEND_EXECUTION_BLOCKING: TRITONBACKEND_ExecutionPolicy = 0;
pub const TRITONBACKEND_EXECUTION_DEVICE_BLOCKING: TRITONBACKEND_ExecutionPolicy = 1;

// Defined by the plugin.
pub type TRITONBACKEND_Initialize_t =
    unsafe extern "C" fn(backend: *mut TRITONBACKEND_Backend) -> *mut TRITONSERVER_Error;
pub type TRITONBACKEND_Finalize_t =
    unsafe extern "C" fn(backend: *mut TRITONBACKEND_Backend) -> *mut TRITONSERVER_Error;
pub type TRITONBACKEND_ModelInitialize_t =
    unsafe extern "C" fn(model: *mut TRITONBACKEND_Model) -> *mut TRITONSERVER_Error;
pub type TRITONBACKEND_ModelFinalize_t =
    unsafe extern "C" fn(model: *mut TRITONBACKEND_Model) -> *mut TRITONSERVER_Error;
pub type TRITONBACKEND_ModelInstanceInitialize_t =
    unsafe extern "C" fn(instance: *mut TRITONBACKEND_ModelInstance) -> *mut TRITONSERVER_Error;
pub type TRITONBACKEND_ModelInstanceFinalize_t =
    unsafe extern "C" fn(instance: *mut TRITONBACKEND_ModelInstance) -> *mut TRITONSERVER_Error;
pub type TRITONBACKEND_ModelInstanceExecute_t = unsafe extern "C" fn(
    instance: *mut TRITONBACKEND_ModelInstance,
    requests: *mut *mut TRITONBACKEND_Request,
    request_count: u32,
) -> *mut TRITONSERVER_Error;
pub type TRITONBACKEND_ModelInstanceReady_t =
    unsafe extern "C" fn(instance: *mut TRITONBACKEND_ModelInstance) -> *mut TRITONSERVER_Error;
pub type TRITONBACKEND_GetBackendAttribute_t = unsafe extern "C" fn(
    backend: *mut TRITONBACKEND_Backend,
    backend_attributes: *mut TRITONBACKEND_BackendAttribute,
) -> *mut TRITONSERVER_Error;
pub type TRITONBACKEND_ModelBatcherInitialize_t = unsafe extern "C" fn(
    batcher: *mut *mut TRITONBACKEND_Batcher,
    model: *mut TRITONBACKEND_Model,
) -> *mut TRITONSERVER_Error;
pub type TRITONBACKEND_ModelBatcherFinalize_t =
    unsafe extern "C" fn(batcher: *mut TRITONBACKEND_Batcher) -> *mut TRITONSERVER_Error;
pub type TRITONBACKEND_ModelBatchIncludeRequest_t = unsafe extern "C" fn(
    request: *mut TRITONBACKEND_Request,
    userp: *mut c_void,
    should_include: *mut bool,
) -> *mut TRITONSERVER_Error;
pub type TRITONBACKEND_ModelBatchInitialize_t =
    unsafe extern "C" fn(batcher: *const TRITONBACKEND_Batcher, userp: *mut *mut c_void) -> *mut TRITONSERVER_Error;
pub type TRITONBACKEND_ModelBatchFinalize_t = unsafe extern "C" fn(userp: *mut c_void) -> *mut TRITONSERVER_Error;

unsafe extern "C" {
    pub fn TRITONBACKEND_ApiVersion(major: *mut u32, minor: *mut u32) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_MemoryManagerAllocate(
        manager: *mut TRITONBACKEND_MemoryManager,
        buffer: *mut *mut c_void,
        memory_type: TRITONSERVER_MemoryType,
        memory_type_id: i64,
        byte_size: u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_MemoryManagerFree(
        manager: *mut TRITONBACKEND_MemoryManager,
        buffer: *mut c_void,
        memory_type: TRITONSERVER_MemoryType,
        memory_type_id: i64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_InputProperties(
        input: *mut TRITONBACKEND_Input,
        name: *mut *const c_char,
        datatype: *mut TRITONSERVER_DataType,
        shape: *mut *const i64,
        dims_count: *mut u32,
        byte_size: *mut u64,
        buffer_count: *mut u32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_InputPropertiesForHostPolicy(
        input: *mut TRITONBACKEND_Input,
        host_policy_name: *const c_char,
        name: *mut *const c_char,
        datatype: *mut TRITONSERVER_DataType,
        shape: *mut *const i64,
        dims_count: *mut u32,
        byte_size: *mut u64,
        buffer_count: *mut u32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_InputBuffer(
        input: *mut TRITONBACKEND_Input,
        index: u32,
        buffer: *mut *const c_void,
        buffer_byte_size: *mut u64,
        memory_type: *mut TRITONSERVER_MemoryType,
        memory_type_id: *mut i64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_InputBufferForHostPolicy(
        input: *mut TRITONBACKEND_Input,
        host_policy_name: *const c_char,
        index: u32,
        buffer: *mut *const c_void,
        buffer_byte_size: *mut u64,
        memory_type: *mut TRITONSERVER_MemoryType,
        memory_type_id: *mut i64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_InputBufferAttributes(
        input: *mut TRITONBACKEND_Input,
        index: u32,
        buffer: *mut *const c_void,
        buffer_attributes: *mut *mut TRITONSERVER_BufferAttributes,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_OutputBuffer(
        output: *mut TRITONBACKEND_Output,
        buffer: *mut *mut c_void,
        buffer_byte_size: u64,
        memory_type: *mut TRITONSERVER_MemoryType,
        memory_type_id: *mut i64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_OutputBufferAttributes(
        output: *mut TRITONBACKEND_Output,
        buffer_attributes: *mut *mut TRITONSERVER_BufferAttributes,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_RequestId(
        request: *mut TRITONBACKEND_Request,
        id: *mut *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_RequestIsCancelled(
        request: *mut TRITONBACKEND_Request,
        is_cancelled: *mut bool,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ResponseFactoryIsCancelled(
        factory: *mut TRITONBACKEND_ResponseFactory,
        is_cancelled: *mut bool,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_RequestCorrelationId(
        request: *mut TRITONBACKEND_Request,
        id: *mut u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_InferenceRequestTimeoutMicroseconds(
        request: *mut TRITONBACKEND_Request,
        timeout: *mut u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_RequestCorrelationIdString(
        request: *mut TRITONBACKEND_Request,
        id: *mut *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_RequestFlags(request: *mut TRITONBACKEND_Request, flags: *mut u32) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_RequestParameterCount(
        request: *mut TRITONBACKEND_Request,
        count: *mut u32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_RequestParameter(
        request: *mut TRITONBACKEND_Request,
        index: u32,
        key: *mut *const c_char,
        type_: *mut TRITONSERVER_ParameterType,
        vvalue: *mut *const c_void,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_RequestInputCount(
        request: *mut TRITONBACKEND_Request,
        count: *mut u32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_RequestInputName(
        request: *mut TRITONBACKEND_Request,
        index: u32,
        input_name: *mut *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_RequestInput(
        request: *mut TRITONBACKEND_Request,
        name: *const c_char,
        input: *mut *mut TRITONBACKEND_Input,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_RequestInputByIndex(
        request: *mut TRITONBACKEND_Request,
        index: u32,
        input: *mut *mut TRITONBACKEND_Input,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_RequestOutputCount(
        request: *mut TRITONBACKEND_Request,
        count: *mut u32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_RequestOutputName(
        request: *mut TRITONBACKEND_Request,
        index: u32,
        output_name: *mut *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_RequestOutputBufferProperties(
        request: *mut TRITONBACKEND_Request,
        name: *const c_char,
        byte_size: *mut usize,
        memory_type: *mut TRITONSERVER_MemoryType,
        memory_type_id: *mut i64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_RequestRelease(
        request: *mut TRITONBACKEND_Request,
        release_flags: u32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_RequestTrace(
        request: *mut TRITONBACKEND_Request,
        trace: *mut *mut TRITONSERVER_InferenceTrace,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ResponseFactoryNew(
        factory: *mut *mut TRITONBACKEND_ResponseFactory,
        request: *mut TRITONBACKEND_Request,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ResponseFactoryDelete(factory: *mut TRITONBACKEND_ResponseFactory) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ResponseFactorySendFlags(
        factory: *mut TRITONBACKEND_ResponseFactory,
        send_flags: u32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ResponseNew(
        response: *mut *mut TRITONBACKEND_Response,
        request: *mut TRITONBACKEND_Request,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ResponseNewFromFactory(
        response: *mut *mut TRITONBACKEND_Response,
        factory: *mut TRITONBACKEND_ResponseFactory,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ResponseDelete(response: *mut TRITONBACKEND_Response) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ResponseSetStringParameter(
        response: *mut TRITONBACKEND_Response,
        name: *const c_char,
        value: *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ResponseSetIntParameter(
        response: *mut TRITONBACKEND_Response,
        name: *const c_char,
        value: i64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ResponseSetBoolParameter(
        response: *mut TRITONBACKEND_Response,
        name: *const c_char,
        value: bool,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ResponseSetDoubleParameter(
        response: *mut TRITONBACKEND_Response,
        name: *const c_char,
        value: f64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ResponseOutput(
        response: *mut TRITONBACKEND_Response,
        output: *mut *mut TRITONBACKEND_Output,
        name: *const c_char,
        datatype: TRITONSERVER_DataType,
        shape: *const i64,
        dims_count: u32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ResponseSend(
        response: *mut TRITONBACKEND_Response,
        send_flags: u32,
        error: *mut TRITONSERVER_Error,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_StateNew(
        state: *mut *mut TRITONBACKEND_State,
        request: *mut TRITONBACKEND_Request,
        name: *const c_char,
        datatype: TRITONSERVER_DataType,
        shape: *const i64,
        dims_count: u32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_StateUpdate(state: *mut TRITONBACKEND_State) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_StateBuffer(
        state: *mut TRITONBACKEND_State,
        buffer: *mut *mut c_void,
        buffer_byte_size: u64,
        memory_type: *mut TRITONSERVER_MemoryType,
        memory_type_id: *mut i64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_StateBufferAttributes(
        state: *mut TRITONBACKEND_State,
        buffer_attributes: *mut *mut TRITONSERVER_BufferAttributes,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_BackendName(
        backend: *mut TRITONBACKEND_Backend,
        name: *mut *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_BackendConfig(
        backend: *mut TRITONBACKEND_Backend,
        backend_config: *mut *mut TRITONSERVER_Message,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_BackendExecutionPolicy(
        backend: *mut TRITONBACKEND_Backend,
        policy: *mut TRITONBACKEND_ExecutionPolicy,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_BackendSetExecutionPolicy(
        backend: *mut TRITONBACKEND_Backend,
        policy: TRITONBACKEND_ExecutionPolicy,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_BackendArtifacts(
        backend: *mut TRITONBACKEND_Backend,
        artifact_type: *mut TRITONBACKEND_ArtifactType,
        location: *mut *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_BackendMemoryManager(
        backend: *mut TRITONBACKEND_Backend,
        manager: *mut *mut TRITONBACKEND_MemoryManager,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_BackendState(
        backend: *mut TRITONBACKEND_Backend,
        state: *mut *mut c_void,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_BackendSetState(
        backend: *mut TRITONBACKEND_Backend,
        state: *mut c_void,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelName(
        model: *mut TRITONBACKEND_Model,
        name: *mut *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelVersion(model: *mut TRITONBACKEND_Model, version: *mut u64) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelRepository(
        model: *mut TRITONBACKEND_Model,
        artifact_type: *mut TRITONBACKEND_ArtifactType,
        location: *mut *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelConfig(
        model: *mut TRITONBACKEND_Model,
        config_version: u32,
        model_config: *mut *mut TRITONSERVER_Message,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelAutoCompleteConfig(
        model: *mut TRITONBACKEND_Model,
        auto_complete_config: *mut bool,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelSetConfig(
        model: *mut TRITONBACKEND_Model,
        config_version: u32,
        model_config: *mut TRITONSERVER_Message,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelServer(
        model: *mut TRITONBACKEND_Model,
        server: *mut *mut TRITONSERVER_Server,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelBackend(
        model: *mut TRITONBACKEND_Model,
        backend: *mut *mut TRITONBACKEND_Backend,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelState(
        model: *mut TRITONBACKEND_Model,
        state: *mut *mut c_void,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelSetState(model: *mut TRITONBACKEND_Model, state: *mut c_void) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelReportMemoryUsage(
        model: *mut TRITONBACKEND_Model,
        usage: *mut *mut TRITONSERVER_BufferAttributes,
        usage_size: u32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceName(
        instance: *mut TRITONBACKEND_ModelInstance,
        name: *mut *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceKind(
        instance: *mut TRITONBACKEND_ModelInstance,
        kind: *mut TRITONSERVER_InstanceGroupKind,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceDeviceId(
        instance: *mut TRITONBACKEND_ModelInstance,
        device_id: *mut i32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceHostPolicy(
        instance: *mut TRITONBACKEND_ModelInstance,
        host_policy: *mut *mut TRITONSERVER_Message,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceIsPassive(
        instance: *mut TRITONBACKEND_ModelInstance,
        is_passive: *mut bool,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceProfileCount(
        instance: *mut TRITONBACKEND_ModelInstance,
        count: *mut u32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceProfileName(
        instance: *mut TRITONBACKEND_ModelInstance,
        index: u32,
        profile_name: *mut *const c_char,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceSecondaryDeviceCount(
        instance: *mut TRITONBACKEND_ModelInstance,
        count: *mut u32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(
        instance: *mut TRITONBACKEND_ModelInstance,
        index: u32,
        kind: *mut *const c_char,
        id: *mut i64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceModel(
        instance: *mut TRITONBACKEND_ModelInstance,
        model: *mut *mut TRITONBACKEND_Model,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceState(
        instance: *mut TRITONBACKEND_ModelInstance,
        state: *mut *mut c_void,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceSetState(
        instance: *mut TRITONBACKEND_ModelInstance,
        state: *mut c_void,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceReportMemoryUsage(
        instance: *mut TRITONBACKEND_ModelInstance,
        usage: *mut *mut TRITONSERVER_BufferAttributes,
        usage_size: u32,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceReportStatistics(
        instance: *mut TRITONBACKEND_ModelInstance,
        request: *mut TRITONBACKEND_Request,
        success: bool,
        exec_start_ns: u64,
        compute_start_ns: u64,
        compute_end_ns: u64,
        exec_end_ns: u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceResponseStatisticsNew(
        response_statistics: *mut *mut TRITONBACKEND_ModelInstanceResponseStatistics,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceResponseStatisticsDelete(
        response_statistics: *mut TRITONBACKEND_ModelInstanceResponseStatistics,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(
        response_statistics: *mut TRITONBACKEND_ModelInstanceResponseStatistics,
        model_instance: *mut TRITONBACKEND_ModelInstance,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(
        response_statistics: *mut TRITONBACKEND_ModelInstanceResponseStatistics,
        response_factory: *mut TRITONBACKEND_ResponseFactory,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(
        response_statistics: *mut TRITONBACKEND_ModelInstanceResponseStatistics,
        response_start: u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(
        response_statistics: *mut TRITONBACKEND_ModelInstanceResponseStatistics,
        compute_output_start: u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(
        response_statistics: *mut TRITONBACKEND_ModelInstanceResponseStatistics,
        response_end: u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceResponseStatisticsSetError(
        response_statistics: *mut TRITONBACKEND_ModelInstanceResponseStatistics,
        error: *mut TRITONSERVER_Error,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceReportResponseStatistics(
        response_statistics: *mut TRITONBACKEND_ModelInstanceResponseStatistics,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_ModelInstanceReportBatchStatistics(
        instance: *mut TRITONBACKEND_ModelInstance,
        batch_size: u64,
        exec_start_ns: u64,
        compute_start_ns: u64,
        compute_end_ns: u64,
        exec_end_ns: u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
        backend_attributes: *mut TRITONBACKEND_BackendAttribute,
        kind: TRITONSERVER_InstanceGroupKind,
        count: u64,
        device_ids: *const u64,
        id_count: u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
        backend_attributes: *mut TRITONBACKEND_BackendAttribute,
        enabled: bool,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_InferenceResponseOutputByName(
        response: *mut TRITONBACKEND_Response,
        name: *const c_char,
        datatype: *mut TRITONSERVER_DataType,
        shape: *mut *const i64,
        dim_count: *mut u64,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONBACKEND_InferenceResponseOutput(
        response: *mut TRITONBACKEND_Response,
        index: u32,
        name: *mut *const c_char,
        datatype: *mut TRITONSERVER_DataType,
        shape: *mut *const i64,
        dim_count: *mut u64,
    ) -> *mut TRITONSERVER_Error;
}
