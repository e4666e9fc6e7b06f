# SPDX-License-Identifier: Apache-2.0
"""Kelp, an inference runtime in C, from Python.

    import kelp
    session = kelp.InferenceSession("model.onnx")     # the names of ONNX Runtime
    outputs = session.run(None, {"x": array})

    with kelp.Server("models/") as server:            # serves a model repository in this process
        outputs = server.infer("digits", {"image": image})

Arrays are numpy arrays or objects with DLPack or the buffer protocol, which are used in place. Failures raise KelpError.
"""
from . import _kelp
from ._error import Code, KelpError, TritonException
from ._kelp import DLTensor
from ._binding import IOBinding
from ._options import ExecutionMode, GraphOptimizationLevel, RunOptions, SessionOptions
from ._providers import get_available_providers, get_device
from ._session import InferenceSession, ModelMetadata, NodeArg
from ._value import OrtValue

__version__ = _kelp.__version__

__all__ = ["Builder", "Code", "DLTensor", "Engine", "ExecutionMode", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "KelpError", "ModelMetadata",
           "NodeArg", "OrtValue", "Plan", "RunOptions", "Runtime", "Server", "SessionOptions", "Stream", "TritonException", "__version__", "backend", "builder",
           "get_available_providers", "get_device", "get_include", "get_library_dirs", "runtime"]


def get_include():
    """Returns the directory of the C headers: kelp/… and triton/core/…."""
    from . import _native
    return _native.include()


def get_library_dirs():
    """Returns the directories with libkelp.so and libtritonserver.so, for the linker and for LD_LIBRARY_PATH."""
    from . import _native
    return _native.library_dirs()


def __getattr__(name):
    """Imports submodules when they are used for the first time."""
    import importlib
    if name == "Server":
        return importlib.import_module("._serving", __name__).Server
    if name in ("Builder", "Engine", "Plan", "Runtime", "Stream"):
        return getattr(importlib.import_module(".builder", __name__), name)
    if name in ("backend", "builder", "onnxruntime", "ray", "runtime"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'kelp' has no attribute '{name}'")
