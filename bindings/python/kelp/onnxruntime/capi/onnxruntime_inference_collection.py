# SPDX-License-Identifier: Apache-2.0
"""The classes of the package, under the name of the module that defines them in ONNX Runtime."""
from kelp._adapter import AdapterFormat
from kelp._binding import IOBinding
from kelp._providers import check_and_normalize_provider_args
from kelp._session import InferenceSession
from kelp._session import InferenceSession as Session
from kelp._sparse import SparseTensor
from kelp._types import OrtDevice, OrtDeviceVendorId
from kelp._value import OrtValue, copy_tensors

__all__ = ["AdapterFormat", "IOBinding", "InferenceSession", "OrtDevice", "OrtDeviceVendorId", "OrtValue", "Session", "SparseTensor",
           "check_and_normalize_provider_args", "copy_tensors"]
