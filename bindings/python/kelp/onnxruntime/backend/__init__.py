# SPDX-License-Identifier: Apache-2.0
"""ONNX's backend interface: kelp.backend."""
from kelp.backend import is_compatible, prepare
from kelp.backend import run_model as run
from kelp.backend import supports_device

__all__ = ["is_compatible", "prepare", "run", "supports_device"]
