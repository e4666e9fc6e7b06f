# SPDX-License-Identifier: Apache-2.0
"""Another name of onnxruntime_pybind11_state."""
from kelp.onnxruntime.capi.onnxruntime_pybind11_state import *  # noqa: F403
