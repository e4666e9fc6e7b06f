# SPDX-License-Identifier: Apache-2.0
"""The interface of ONNX Runtime's Python package, implemented by Kelp.

    import kelp.onnxruntime as ort                          # in the place of `import onnxruntime as ort`
    python -m kelp.as_onnxruntime app.py                    # for a program that imports onnxruntime itself

Classes are those of the package `kelp`. Exceptions are subclasses of kelp.KelpError, which is a RuntimeError.
"""
# Imports are absolute and nothing here has state, because Python loads the modules of this package a second time, under the name
# onnxruntime, if the package replaces it in sys.modules.
from kelp._adapter import AdapterFormat, LoraAdapter
from kelp._binding import IOBinding
from kelp._binding import IOBinding as SessionIOBinding
from kelp._memory import (OrtAllocatorType, OrtArenaCfg, OrtDeviceMemoryType, OrtEpAssignedNode, OrtEpAssignedSubgraph, OrtEpDevice, OrtHardwareDevice, OrtHardwareDeviceType,
                          OrtMemoryInfo, OrtMemoryInfoDeviceType, OrtMemType, create_and_register_allocator,
                          create_and_register_allocator_v2, get_ep_devices)
from kelp._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from kelp._options import suggest as _suggest
from kelp._providers import ORT_VERSION as __version__
from kelp._providers import (disable_telemetry_events, enable_telemetry_events, get_all_providers, get_available_providers,
                             get_build_info, get_device, get_version_string, has_collective_ops, set_default_logger_severity,
                             set_default_logger_verbosity, set_global_thread_pool_sizes, set_seed)
from kelp._session import InferenceSession, ModelMetadata, NodeArg
from kelp._sparse import OrtSparseFormat, SparseTensor
from kelp._types import OrtDevice, OrtDeviceVendorId
from kelp._value import OrtValue, copy_tensors

from kelp import _upstream
from kelp.onnxruntime import capi

if _upstream.directory() is not None:  # for onnxruntime.tools and other modules in Python
    __path__.append(_upstream.directory())

__all__ = ["AdapterFormat", "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "LoraAdapter", "ModelMetadata", "NodeArg",
           "OrtAllocatorType", "OrtArenaCfg", "OrtDevice", "OrtDeviceMemoryType", "OrtDeviceVendorId", "OrtEpAssignedNode", "OrtEpAssignedSubgraph", "OrtEpDevice", "OrtHardwareDevice",
           "OrtHardwareDeviceType", "OrtMemType", "OrtMemoryInfo", "OrtMemoryInfoDeviceType", "OrtSparseFormat", "OrtValue", "RunOptions",
           "SessionIOBinding", "SessionOptions", "SparseTensor", "__version__", "capi", "copy_tensors", "create_and_register_allocator",
           "create_and_register_allocator_v2", "disable_telemetry_events", "enable_telemetry_events", "get_all_providers",
           "get_available_providers", "get_build_info", "get_device", "get_ep_devices", "get_version_string", "has_collective_ops", "preload_dlls",
           "print_debug_info", "set_default_logger_severity", "set_default_logger_verbosity", "set_global_thread_pool_sizes", "set_seed"]

# Names of ONNX Runtime that Kelp does not have, and what to use.
ABSENT = {
    "ModelCompiler": "kelp.Builder writes plan files",
    "OrtSyncStream": "runs are complete when they return",
    "register_execution_provider_library": "SessionOptions.register_custom_ops_library loads Kelp's plug-in libraries",
    "unregister_execution_provider_library": "plug-in libraries are never unloaded",
    "training": "Kelp runs models and does not train them",
}


def preload_dlls(cuda=True, cudnn=True, msvc=True, directory=None):
    """Returns None: sessions on the CPU need no libraries of devices."""


def print_debug_info():
    """Prints the versions of Kelp, Python and numpy, and the platform."""
    import platform

    import numpy
    print(get_build_info())
    print(f"Python {platform.python_version()}, numpy {numpy.__version__}, {platform.platform()}")


def __getattr__(name):
    hint = f": {ABSENT[name]}" if name in ABSENT else _suggest(name, __all__)
    raise AttributeError(f"Kelp's implementation of onnxruntime has no '{name}'{hint}")
