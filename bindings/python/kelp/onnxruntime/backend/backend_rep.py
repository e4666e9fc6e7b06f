# SPDX-License-Identifier: Apache-2.0
"""The class of kelp.backend, under ONNX Runtime's name."""
from kelp.backend import KelpBackendRep as OnnxRuntimeBackendRep

__all__ = ["OnnxRuntimeBackendRep"]
