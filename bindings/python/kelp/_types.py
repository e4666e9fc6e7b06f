# SPDX-License-Identifier: Apache-2.0
"""Element types by their numbers in onnx.TensorProto, their names in Kelp and numpy, and their names in ONNX Runtime; and devices."""
import enum

import numpy

from ._error import Code, KelpError

NAMES = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool", 10: "float16",
         11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16", 17: "float8_e4m3fn",
         18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz", 21: "uint4", 22: "int4", 23: "float4_e2m1", 24: "float8_e8m0",
         25: "uint2", 26: "int2"}
NUMBERS = {name: number for number, name in NAMES.items()}

# ONNX Runtime's names of element types where they differ from numpy's.
WORDS = {"float32": "float", "float64": "double", "float8_e4m3fn": "float8e4m3fn", "float8_e4m3fnuz": "float8e4m3fnuz",
         "float8_e5m2": "float8e5m2", "float8_e5m2fnuz": "float8e5m2fnuz", "float8_e8m0": "float8e8m0", "float4_e2m1": "float4e2m1"}

# Triton's names of the types that numpy or ml_dtypes have, and numpy's of them.
TRITON_TYPES = {"bool": "BOOL", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64", "int8": "INT8",
                "int16": "INT16", "int32": "INT32", "int64": "INT64", "float16": "FP16", "float32": "FP32", "float64": "FP64",
                "bfloat16": "BF16"}
NUMPY_TYPES = {triton: name for name, triton in TRITON_TYPES.items()}

# Names of ml_dtypes where they differ from Kelp's.
FROM_NUMPY = {"float4_e2m1fn": "float4_e2m1", "float8_e8m0fnu": "float8_e8m0", "object": "string"}

# Bytes of an element of the types that numpy does not have.
SIZES = {"bfloat16": 2, "float8_e4m3fn": 1, "float8_e4m3fnuz": 1, "float8_e5m2": 1, "float8_e5m2fnuz": 1, "float8_e8m0": 1}


def word(name):
    """Returns ONNX Runtime's name of an element type, such as 'float' for 'float32'."""
    return WORDS.get(name, name)


def name_of(element_type):
    """Returns Kelp's name of an element type, which is a number of onnx.TensorProto or anything that numpy.dtype takes."""
    if isinstance(element_type, int):
        if element_type not in NAMES:
            raise KelpError(f"unknown element type {element_type}: expected a number of onnx.TensorProto.DataType", Code.INVALID_ARGUMENT)
        return NAMES[element_type]
    dtype = numpy.dtype(element_type)
    name = FROM_NUMPY.get(dtype.name, dtype.name)
    if name not in NUMBERS and dtype.kind in "USTV":
        return "string"
    if name not in NUMBERS:
        raise KelpError(f"unsupported element type '{dtype.name}'", Code.INVALID_ARGUMENT)
    return name


class OrtDeviceVendorId(enum.IntEnum):
    """PCI identifiers of vendors."""

    NONE = 0
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


# Name of a device: type, vendor if the name implies one.
DEVICES = {"cpu": (0, OrtDeviceVendorId.NONE), "cuda": (1, OrtDeviceVendorId.NVIDIA), "gpu": (1, OrtDeviceVendorId.NONE),
           "webgpu": (1, OrtDeviceVendorId.NONE), "npu": (3, OrtDeviceVendorId.NONE), "cann": (3, OrtDeviceVendorId.HUAWEI),
           "dml": (4, OrtDeviceVendorId.MICROSOFT)}


class OrtDevice:
    """A device: OrtDevice.make("cpu", 0), OrtDevice(type, memory type, number) or OrtDevice(type, memory type, vendor, number).

    Values and bindings of a session are on the CPU. Other devices can be described, but not used.
    """

    __slots__ = ("_id", "_memory", "_type", "_vendor")

    def __init__(self, *args):
        if len(args) == 1 and isinstance(args[0], OrtDevice):
            args = args[0]._type, args[0]._memory, args[0]._vendor, args[0]._id
        if len(args) not in (3, 4) or not all(isinstance(arg, int) for arg in args):
            raise ValueError("OrtDevice: expected (type, memory type, number), (type, memory type, vendor, number) or an OrtDevice")
        self._type, self._memory, self._id = args[0], args[1], args[-1]
        self._vendor = args[2] if len(args) == 4 else OrtDeviceVendorId.NONE

    @staticmethod
    def make(ort_device_name, device_id, vendor_id=-1):
        """Returns the device with this name ('cpu', 'cuda', 'gpu', 'npu', 'dml', 'cann', 'webgpu') and number."""
        if ort_device_name not in DEVICES:
            raise KelpError(f"unknown device '{ort_device_name}': expected one of {', '.join(DEVICES)}", Code.INVALID_ARGUMENT)
        kind, vendor = DEVICES[ort_device_name]
        return OrtDevice(kind, 0, int(vendor if vendor_id < 0 else vendor_id), device_id)

    cpu = staticmethod(lambda: 0)
    cuda = staticmethod(lambda: 1)
    gpu = staticmethod(lambda: 1)
    webgpu = staticmethod(lambda: 1)
    fpga = staticmethod(lambda: 2)
    npu = staticmethod(lambda: 3)
    cann = staticmethod(lambda: 3)
    dml = staticmethod(lambda: 4)
    default_memory = staticmethod(lambda: 0)

    def device_id(self):
        """Returns the number of the device."""
        return self._id

    def device_type(self):
        """Returns the type: 0 CPU, 1 GPU, 2 FPGA, 3 NPU, 4 DirectML."""
        return self._type

    def device_vendor_id(self):
        """Returns the vendor, a number of OrtDeviceVendorId."""
        return self._vendor

    vendor_id = device_vendor_id

    def device_mem_type(self):
        """Returns the type of memory; 0: the default."""
        return self._memory

    mem_type = device_mem_type

    def _get_c_device(self):
        return self

    _ort_device = property(_get_c_device)

    def __eq__(self, other):
        return isinstance(other, OrtDevice) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def _key(self):
        return self._type, self._memory, int(self._vendor), self._id

    def __repr__(self):
        name = {0: "cpu", 1: "gpu", 2: "fpga", 3: "npu", 4: "dml"}.get(self._type, str(self._type))
        return f"OrtDevice({name}:{self._id})"


def check_cpu(device, what):
    """Raises NotImplemented if a device, given by name or as an OrtDevice, is not the CPU."""
    device = device if isinstance(device, OrtDevice) else OrtDevice.make(str(device).lower(), 0)
    if device.device_type() != 0:
        raise KelpError(f"{what} is on {device!r}: sessions run on the CPU", Code.UNIMPLEMENTED)


__all__ = ["DEVICES", "NAMES", "NUMBERS", "OrtDevice", "OrtDeviceVendorId", "SIZES", "check_cpu", "name_of", "word"]
