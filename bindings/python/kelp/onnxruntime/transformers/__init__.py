# SPDX-License-Identifier: Apache-2.0
"""TypeHelper of onnxruntime.transformers. Other modules are those of an installed ONNX Runtime."""
from kelp._upstream import become

become(__name__, globals(), required=False)
