# SPDX-License-Identifier: Apache-2.0
"""The names of ONNX Runtime's extension module: exceptions, options, values."""
from kelp._adapter import AdapterFormat, LoraAdapter
from kelp._binding import IOBinding as SessionIOBinding
from kelp._error import (DeviceReset, EngineError, EPFail, Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, ModelLoadCanceled,
                         ModelLoaded, ModelRequiresCompilation, NoModel, NoSuchFile, NotFound, NotImplemented, RuntimeException)
from kelp._memory import (ArenaExtendStrategy, OrtAllocatorType, OrtArenaCfg, OrtDeviceMemoryType, OrtEpAssignedNode, OrtEpAssignedSubgraph, OrtEpDevice, OrtHardwareDevice,
                          OrtHardwareDeviceType, OrtMemoryInfo, OrtMemoryInfoDeviceType, OrtMemType, create_and_register_allocator,
                          create_and_register_allocator_v2, get_ep_devices)
from kelp._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from kelp._options import SessionOptions as get_default_session_options
from kelp._providers import (disable_telemetry_events, enable_telemetry_events, get_all_providers, get_available_providers,
                             get_build_info, get_device, get_version_string, has_collective_ops, set_default_logger_severity,
                             set_default_logger_verbosity, set_global_thread_pool_sizes, set_seed)
from kelp._session import InferenceSession, ModelMetadata, NodeArg
from kelp._sparse import OrtSparseFormat, SparseBlockSparseView, SparseCooView, SparseCsrView, SparseTensor
from kelp._types import OrtDevice
from kelp._value import OrtValue, OrtValueVector, copy_tensors, is_dlpack_uint8_tensor

__all__ = ["AdapterFormat", "ArenaExtendStrategy", "DeviceReset", "EPFail", "EngineError", "ExecutionMode", "ExecutionOrder", "Fail",
           "GraphOptimizationLevel", "InferenceSession", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "LoraAdapter",
           "ModelLoadCanceled", "ModelLoaded", "ModelMetadata", "ModelRequiresCompilation", "NoModel", "NoSuchFile", "NodeArg",
           "NotFound", "NotImplemented", "OrtAllocatorType", "OrtArenaCfg", "OrtDevice", "OrtDeviceMemoryType",
           "OrtEpAssignedNode", "OrtEpAssignedSubgraph", "OrtEpDevice", "OrtHardwareDevice", "OrtHardwareDeviceType",
           "OrtMemType", "OrtMemoryInfo", "OrtMemoryInfoDeviceType", "OrtSparseFormat", "OrtValue", "OrtValueVector",
           "RunOptions", "RuntimeException", "SessionIOBinding", "SessionOptions", "SparseBlockSparseView", "SparseCooView",
           "SparseCsrView", "SparseTensor", "copy_tensors", "create_and_register_allocator", "create_and_register_allocator_v2",
           "disable_telemetry_events", "enable_telemetry_events", "get_all_providers", "get_available_providers",
           "get_build_info", "get_default_session_options", "get_device", "get_ep_devices", "get_version_string",
           "has_collective_ops", "is_dlpack_uint8_tensor", "set_default_logger_severity", "set_default_logger_verbosity",
           "set_global_thread_pool_sizes", "set_seed"]
