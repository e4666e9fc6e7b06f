/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/* Slots of the interfaces that Kelp implements and the library calls. Slot 0 is getAPILanguage everywhere. Written by tools/trt_tables.py; change that instead. */
#ifndef KELP_TENSORRT_TABLES_SLOTS_H_
#define KELP_TENSORRT_TABLES_SLOTS_H_

enum {
    /* ILogger */
    TRT_SLOT_LOGGER_GET_INTERFACE_INFO = 1, /* InterfaceInfo ILogger::getInterfaceInfo() const */
    TRT_SLOT_LOGGER_DESTROY_COMPLETE = 2,
    TRT_SLOT_LOGGER_DESTROY_DELETING = 3,
    TRT_SLOT_LOGGER_LOG = 4, /* void ILogger::log(ILogger::Severity, const AsciiChar *) */
    TRT_SLOTS_LOGGER = 5,
    /* IErrorRecorder */
    TRT_SLOT_ERROR_RECORDER_GET_INTERFACE_INFO = 1, /* InterfaceInfo IErrorRecorder::getInterfaceInfo() const */
    TRT_SLOT_ERROR_RECORDER_DESTROY_COMPLETE = 2,
    TRT_SLOT_ERROR_RECORDER_DESTROY_DELETING = 3,
    TRT_SLOT_ERROR_RECORDER_GET_NB_ERRORS = 4, /* int32_t IErrorRecorder::getNbErrors() const */
    TRT_SLOT_ERROR_RECORDER_GET_ERROR_CODE = 5, /* ErrorCode IErrorRecorder::getErrorCode(int32_t) const */
    TRT_SLOT_ERROR_RECORDER_GET_ERROR_DESC = 6, /* IErrorRecorder::ErrorDesc IErrorRecorder::getErrorDesc(int32_t) const */
    TRT_SLOT_ERROR_RECORDER_HAS_OVERFLOWED = 7, /* bool IErrorRecorder::hasOverflowed() const */
    TRT_SLOT_ERROR_RECORDER_CLEAR = 8, /* void IErrorRecorder::clear() */
    TRT_SLOT_ERROR_RECORDER_REPORT_ERROR = 9, /* bool IErrorRecorder::reportError(ErrorCode, IErrorRecorder::ErrorDesc) */
    TRT_SLOT_ERROR_RECORDER_INC_REF_COUNT = 10, /* IErrorRecorder::RefCount IErrorRecorder::incRefCount() */
    TRT_SLOT_ERROR_RECORDER_DEC_REF_COUNT = 11, /* IErrorRecorder::RefCount IErrorRecorder::decRefCount() */
    TRT_SLOTS_ERROR_RECORDER = 12,
    /* IProgressMonitor */
    TRT_SLOT_PROGRESS_MONITOR_GET_INTERFACE_INFO = 1, /* InterfaceInfo IProgressMonitor::getInterfaceInfo() const */
    TRT_SLOT_PROGRESS_MONITOR_DESTROY_COMPLETE = 2,
    TRT_SLOT_PROGRESS_MONITOR_DESTROY_DELETING = 3,
    TRT_SLOT_PROGRESS_MONITOR_PHASE_START = 4, /* void IProgressMonitor::phaseStart(const char *, const char *, int32_t) */
    TRT_SLOT_PROGRESS_MONITOR_STEP_COMPLETE = 5, /* bool IProgressMonitor::stepComplete(const char *, int32_t) */
    TRT_SLOT_PROGRESS_MONITOR_PHASE_FINISH = 6, /* void IProgressMonitor::phaseFinish(const char *) */
    TRT_SLOTS_PROGRESS_MONITOR = 7,
    /* IGpuAllocator */
    TRT_SLOT_GPU_ALLOCATOR_GET_INTERFACE_INFO = 1, /* InterfaceInfo IGpuAllocator::getInterfaceInfo() const */
    TRT_SLOT_GPU_ALLOCATOR_DESTROY_COMPLETE = 2,
    TRT_SLOT_GPU_ALLOCATOR_DESTROY_DELETING = 3,
    TRT_SLOT_GPU_ALLOCATOR_ALLOCATE = 4, /* void *IGpuAllocator::allocate(const uint64_t, const uint64_t, const AllocatorFlags) */
    TRT_SLOT_GPU_ALLOCATOR_REALLOCATE = 5, /* void *IGpuAllocator::reallocate(void *const, uint64_t, uint64_t) */
    TRT_SLOT_GPU_ALLOCATOR_DEALLOCATE = 6, /* bool IGpuAllocator::deallocate(void *const) */
    TRT_SLOT_GPU_ALLOCATOR_ALLOCATE_ASYNC = 7, /* void *IGpuAllocator::allocateAsync(const uint64_t, const uint64_t, const AllocatorFlags, cudaStream_t) */
    TRT_SLOT_GPU_ALLOCATOR_DEALLOCATE_ASYNC = 8, /* bool IGpuAllocator::deallocateAsync(void *const, cudaStream_t) */
    TRT_SLOTS_GPU_ALLOCATOR = 9,
    /* IGpuAsyncAllocator */
    TRT_SLOT_GPU_ASYNC_ALLOCATOR_GET_INTERFACE_INFO = 1, /* InterfaceInfo IGpuAsyncAllocator::getInterfaceInfo() const */
    TRT_SLOT_GPU_ASYNC_ALLOCATOR_DESTROY_COMPLETE = 2,
    TRT_SLOT_GPU_ASYNC_ALLOCATOR_DESTROY_DELETING = 3,
    TRT_SLOT_GPU_ASYNC_ALLOCATOR_ALLOCATE = 4, /* void *IGpuAsyncAllocator::allocate(const uint64_t, const uint64_t, const AllocatorFlags) */
    TRT_SLOT_GPU_ASYNC_ALLOCATOR_DEALLOCATE = 6, /* bool IGpuAsyncAllocator::deallocate(void *const) */
    TRT_SLOT_GPU_ASYNC_ALLOCATOR_ALLOCATE_ASYNC = 7, /* void *IGpuAsyncAllocator::allocateAsync(const uint64_t, const uint64_t, const AllocatorFlags, cudaStream_t) */
    TRT_SLOT_GPU_ASYNC_ALLOCATOR_DEALLOCATE_ASYNC = 8, /* bool IGpuAsyncAllocator::deallocateAsync(void *const, cudaStream_t) */
    TRT_SLOTS_GPU_ASYNC_ALLOCATOR = 9,
    /* IOutputAllocator of flavor rtx */
    TRT_SLOT_RTX_OUTPUT_ALLOCATOR_GET_INTERFACE_INFO = 1, /* InterfaceInfo IOutputAllocator::getInterfaceInfo() const */
    TRT_SLOT_RTX_OUTPUT_ALLOCATOR_DESTROY_COMPLETE = 2,
    TRT_SLOT_RTX_OUTPUT_ALLOCATOR_DESTROY_DELETING = 3,
    TRT_SLOT_RTX_OUTPUT_ALLOCATOR_REALLOCATE_OUTPUT_ASYNC = 4, /* void *IOutputAllocator::reallocateOutputAsync(const char *, void *, uint64_t, uint64_t, cudaStream_t) */
    TRT_SLOT_RTX_OUTPUT_ALLOCATOR_NOTIFY_SHAPE = 5, /* void IOutputAllocator::notifyShape(const char *, const Dims &) */
    TRT_SLOTS_RTX_OUTPUT_ALLOCATOR = 6,
    /* IOutputAllocator of flavor enterprise */
    TRT_SLOT_ENTERPRISE_OUTPUT_ALLOCATOR_GET_INTERFACE_INFO = 1, /* InterfaceInfo IOutputAllocator::getInterfaceInfo() const */
    TRT_SLOT_ENTERPRISE_OUTPUT_ALLOCATOR_DESTROY_COMPLETE = 2,
    TRT_SLOT_ENTERPRISE_OUTPUT_ALLOCATOR_DESTROY_DELETING = 3,
    TRT_SLOT_ENTERPRISE_OUTPUT_ALLOCATOR_REALLOCATE_OUTPUT = 4, /* void *IOutputAllocator::reallocateOutput(const char *, void *, uint64_t, uint64_t) */
    TRT_SLOT_ENTERPRISE_OUTPUT_ALLOCATOR_REALLOCATE_OUTPUT_ASYNC = 5, /* void *IOutputAllocator::reallocateOutputAsync(const char *, void *, uint64_t, uint64_t, cudaStream_t) */
    TRT_SLOT_ENTERPRISE_OUTPUT_ALLOCATOR_NOTIFY_SHAPE = 6, /* void IOutputAllocator::notifyShape(const char *, const Dims &) */
    TRT_SLOTS_ENTERPRISE_OUTPUT_ALLOCATOR = 7,
    /* IProfiler */
    TRT_SLOT_PROFILER_GET_INTERFACE_INFO = 1, /* InterfaceInfo IProfiler::getInterfaceInfo() const */
    TRT_SLOT_PROFILER_DESTROY_COMPLETE = 2,
    TRT_SLOT_PROFILER_DESTROY_DELETING = 3,
    TRT_SLOT_PROFILER_REPORT_LAYER_TIME = 4, /* void IProfiler::reportLayerTime(const char *, float) */
    TRT_SLOTS_PROFILER = 5,
    /* IDebugListener */
    TRT_SLOT_DEBUG_LISTENER_GET_INTERFACE_INFO = 1, /* InterfaceInfo IDebugListener::getInterfaceInfo() const */
    TRT_SLOT_DEBUG_LISTENER_DESTROY_COMPLETE = 2,
    TRT_SLOT_DEBUG_LISTENER_DESTROY_DELETING = 3,
    TRT_SLOT_DEBUG_LISTENER_PROCESS_DEBUG_TENSOR = 4, /* bool IDebugListener::processDebugTensor(const void *, TensorLocation, DataType, const Dims &, const char *, cudaStream_t) */
    TRT_SLOTS_DEBUG_LISTENER = 5,
    /* IStreamReaderV2 */
    TRT_SLOT_STREAM_READER_V2_GET_INTERFACE_INFO = 1, /* InterfaceInfo IStreamReaderV2::getInterfaceInfo() const */
    TRT_SLOT_STREAM_READER_V2_DESTROY_COMPLETE = 2,
    TRT_SLOT_STREAM_READER_V2_DESTROY_DELETING = 3,
    TRT_SLOT_STREAM_READER_V2_READ = 4, /* int64_t IStreamReaderV2::read(void *, int64_t, cudaStream_t) */
    TRT_SLOT_STREAM_READER_V2_SEEK = 5, /* bool IStreamReaderV2::seek(int64_t, SeekPosition) */
    TRT_SLOTS_STREAM_READER_V2 = 6,
    /* IStreamWriter */
    TRT_SLOT_STREAM_WRITER_GET_INTERFACE_INFO = 1, /* InterfaceInfo IStreamWriter::getInterfaceInfo() const */
    TRT_SLOT_STREAM_WRITER_DESTROY_COMPLETE = 2,
    TRT_SLOT_STREAM_WRITER_DESTROY_DELETING = 3,
    TRT_SLOT_STREAM_WRITER_WRITE = 4, /* int64_t IStreamWriter::write(const void *, int64_t) */
    TRT_SLOTS_STREAM_WRITER = 5,
    /* objects that are destroyed through another slot than 1 */
    TRT_SLOT_PARSER_DESTROY_DELETING = 7,
    TRT_SLOT_PARSER_ERROR_DESTROY_DELETING = 11,
    TRT_SLOT_PARSER_REFITTER_DESTROY_DELETING = 6,
};

/* Result of getInterfaceInfo: name, major and minor version. */
#define TRT_INTERFACE_LOGGER "ILogger", 1, 0
#define TRT_INTERFACE_ERROR_RECORDER "IErrorRecorder", 1, 0
#define TRT_INTERFACE_PROGRESS_MONITOR "IProgressMonitor", 1, 0
#define TRT_INTERFACE_GPU_ALLOCATOR "IGpuAllocator", 1, 0
#define TRT_INTERFACE_GPU_ASYNC_ALLOCATOR "IGpuAllocator", 1, 0
#define TRT_INTERFACE_OUTPUT_ALLOCATOR "IOutputAllocator", 1, 0
#define TRT_INTERFACE_PROFILER "IProfiler", 1, 0
#define TRT_INTERFACE_DEBUG_LISTENER "IDebugListener", 1, 0
#define TRT_INTERFACE_STREAM_READER_V2 "IStreamReaderV2", 1, 0
#define TRT_INTERFACE_STREAM_WRITER "IStreamWriter", 1, 0

#endif
