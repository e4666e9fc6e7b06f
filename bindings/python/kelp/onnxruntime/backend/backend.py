# SPDX-License-Identifier: Apache-2.0
"""The class of kelp.backend, under ONNX Runtime's name."""
from kelp.backend import KelpBackend as OnnxRuntimeBackend
from kelp.backend import is_compatible, prepare
from kelp.backend import run_model as run
from kelp.backend import supports_device

__all__ = ["OnnxRuntimeBackend", "is_compatible", "prepare", "run", "supports_device"]
