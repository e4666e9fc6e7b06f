# SPDX-License-Identifier: Apache-2.0
"""The quantization tools of an installed ONNX Runtime."""
from kelp._upstream import become

become(__name__, globals())
