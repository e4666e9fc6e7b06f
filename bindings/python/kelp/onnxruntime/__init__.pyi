# SPDX-License-Identifier: Apache-2.0
from kelp._adapter import AdapterFormat as AdapterFormat
from kelp._adapter import LoraAdapter as LoraAdapter
from kelp._binding import IOBinding as IOBinding
from kelp._binding import IOBinding as SessionIOBinding
from kelp._memory import OrtAllocatorType as OrtAllocatorType
from kelp._memory import OrtArenaCfg as OrtArenaCfg
from kelp._memory import OrtDeviceMemoryType as OrtDeviceMemoryType
from kelp._memory import OrtEpAssignedNode as OrtEpAssignedNode
from kelp._memory import OrtEpAssignedSubgraph as OrtEpAssignedSubgraph
from kelp._memory import OrtEpDevice as OrtEpDevice
from kelp._memory import OrtHardwareDevice as OrtHardwareDevice
from kelp._memory import OrtHardwareDeviceType as OrtHardwareDeviceType
from kelp._memory import OrtMemoryInfo as OrtMemoryInfo
from kelp._memory import OrtMemoryInfoDeviceType as OrtMemoryInfoDeviceType
from kelp._memory import OrtMemType as OrtMemType
from kelp._memory import create_and_register_allocator as create_and_register_allocator
from kelp._memory import create_and_register_allocator_v2 as create_and_register_allocator_v2
from kelp._memory import get_ep_devices as get_ep_devices
from kelp._options import ExecutionMode as ExecutionMode
from kelp._options import ExecutionOrder as ExecutionOrder
from kelp._options import GraphOptimizationLevel as GraphOptimizationLevel
from kelp._options import RunOptions as RunOptions
from kelp._options import SessionOptions as SessionOptions
from kelp._providers import disable_telemetry_events as disable_telemetry_events
from kelp._providers import enable_telemetry_events as enable_telemetry_events
from kelp._providers import get_all_providers as get_all_providers
from kelp._providers import get_available_providers as get_available_providers
from kelp._providers import get_build_info as get_build_info
from kelp._providers import get_device as get_device
from kelp._providers import get_version_string as get_version_string
from kelp._providers import has_collective_ops as has_collective_ops
from kelp._providers import set_default_logger_severity as set_default_logger_severity
from kelp._providers import set_default_logger_verbosity as set_default_logger_verbosity
from kelp._providers import set_global_thread_pool_sizes as set_global_thread_pool_sizes
from kelp._providers import set_seed as set_seed
from kelp._session import InferenceSession as InferenceSession
from kelp._session import ModelMetadata as ModelMetadata
from kelp._session import NodeArg as NodeArg
from kelp._sparse import OrtSparseFormat as OrtSparseFormat
from kelp._sparse import SparseTensor as SparseTensor
from kelp._types import OrtDevice as OrtDevice
from kelp._types import OrtDeviceVendorId as OrtDeviceVendorId
from kelp._value import OrtValue as OrtValue
from kelp._value import copy_tensors as copy_tensors
from kelp.onnxruntime import capi as capi

__version__: str

def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None: ...
def print_debug_info() -> None: ...
