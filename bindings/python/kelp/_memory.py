# SPDX-License-Identifier: Apache-2.0
"""Descriptions of memory, allocators and devices, which programs of ONNX Runtime create and read."""
import enum
import warnings

from . import _kelp
from ._types import OrtDevice

__all__ = ["ArenaExtendStrategy", "OrtAllocatorType", "OrtArenaCfg", "OrtDeviceMemoryType", "OrtEpAssignedNode", "OrtEpAssignedSubgraph",
           "OrtEpDevice", "OrtHardwareDevice",
           "OrtHardwareDeviceType", "OrtMemType", "OrtMemoryInfo", "OrtMemoryInfoDeviceType", "create_and_register_allocator",
           "create_and_register_allocator_v2", "get_ep_devices", "host_memory"]


class OrtAllocatorType(enum.IntEnum):
    """Kinds of allocators."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(enum.IntEnum):
    """Uses of memory."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtDeviceMemoryType(enum.IntEnum):
    """Kinds of memory of a device."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtMemoryInfoDeviceType(enum.IntEnum):
    """Kinds of devices with memory."""

    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class OrtHardwareDeviceType(enum.IntEnum):
    """Kinds of devices."""

    CPU = 0
    GPU = 1
    NPU = 2


class ArenaExtendStrategy(enum.IntEnum):
    """How an arena of ONNX Runtime grows."""

    kNextPowerOfTwo = 0
    kSameAsRequested = 1


class OrtMemoryInfo:
    """Description of memory: name, allocator_type, device_id, mem_type, device_mem_type, device_vendor_id, device."""

    def __init__(self, name, allocator_type, device_id, mem_type):
        self.name = str(name)
        self.allocator_type = OrtAllocatorType(allocator_type)
        self.device_id = int(device_id)
        self.mem_type = OrtMemType(mem_type)
        self.device_mem_type = OrtDeviceMemoryType.DEFAULT
        self.device_vendor_id = 0
        kind = OrtMemoryInfoDeviceType.CPU if self.name.startswith("Cpu") else OrtMemoryInfoDeviceType.GPU
        self.device = OrtDevice(int(kind), 0, self.device_id)

    @classmethod
    def create_v2(cls, name, device_type, vendor_id, device_id, device_mem_type, alignment, allocator_type):
        """Creates a description with a vendor. device_type: an OrtMemoryInfoDeviceType."""
        self = cls(name, allocator_type, device_id, OrtMemType.DEFAULT)
        self.device_mem_type = OrtDeviceMemoryType(device_mem_type)
        self.device_vendor_id = int(vendor_id)
        self.device = OrtDevice(int(OrtMemoryInfoDeviceType(device_type)), int(device_mem_type), int(vendor_id), int(device_id))
        return self

    def __repr__(self):
        return f"OrtMemoryInfo({self.name!r}, {self.allocator_type.name}, {self.device_id}, {self.mem_type.name})"


def host_memory():
    """Returns the description of the memory of inputs and outputs."""
    return OrtMemoryInfo("Cpu", OrtAllocatorType.ORT_DEVICE_ALLOCATOR, 0, OrtMemType.DEFAULT)


class OrtArenaCfg:
    """Configuration of an arena of ONNX Runtime: OrtArenaCfg(max_mem, arena_extend_strategy, initial_chunk_size_bytes,
    max_dead_bytes_per_chunk), or a dict with these names. -1: the default."""

    NAMES = ("max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk", "initial_growth_chunk_size_bytes",
             "max_power_of_two_extend_bytes")

    def __init__(self, *values):
        if len(values) == 1 and isinstance(values[0], dict):
            given = values[0]
        elif len(values) == 4:
            given = dict(zip(self.NAMES, values))
        else:
            raise TypeError(f"OrtArenaCfg: expected 4 numbers or a dict, found {len(values)} arguments")
        for name in given:
            if name not in self.NAMES:
                raise ValueError(f"OrtArenaCfg has no field '{name}': expected one of {', '.join(self.NAMES)}")
        for name in self.NAMES:
            setattr(self, name, int(given.get(name, 0 if name == "max_mem" else -1)))


def create_and_register_allocator(mem_info, arena_cfg=None):
    """Warns, because Kelp's sessions share no allocator: each has the memory that its plans need."""
    if not isinstance(mem_info, OrtMemoryInfo):
        raise TypeError(f"mem_info: expected an OrtMemoryInfo, found '{type(mem_info).__name__}'")
    warnings.warn("create_and_register_allocator has no effect in Kelp", stacklevel=2)


def create_and_register_allocator_v2(provider_type, mem_info, provider_options, arena_cfg=None):
    """Warns, as create_and_register_allocator does."""
    create_and_register_allocator(mem_info, arena_cfg)


class OrtHardwareDevice:
    """A device: type, vendor, vendor_id, device_id, metadata."""

    def __init__(self):
        self.type = OrtHardwareDeviceType.CPU
        self.vendor = ""
        self.vendor_id = 0
        self.device_id = 0
        self.metadata = {}


class OrtEpDevice:
    """A provider and a device that it can use: ep_name, ep_vendor, ep_metadata, ep_options, device."""

    def __init__(self):
        self.ep_name = "CPUExecutionProvider"
        self.ep_vendor = "Kelp"
        self.ep_metadata = {"version": _kelp.__version__}
        self.ep_options = {}
        self.device = OrtHardwareDevice()

    def memory_info(self, memory_type=OrtDeviceMemoryType.DEFAULT):
        """Returns the description of the device's memory."""
        return host_memory()

    def __repr__(self):
        return f"OrtEpDevice({self.ep_name!r}, {self.device.type.name})"


class OrtEpAssignedNode:
    """A node: op_type, name, domain."""

    def __init__(self, op_type, name, domain):
        self.op_type = op_type
        self.name = name
        self.domain = domain

    def __repr__(self):
        return f"OrtEpAssignedNode({self.op_type!r}, {self.name!r})"


class OrtEpAssignedSubgraph:
    """Nodes that run on one provider: ep_name, get_nodes()."""

    def __init__(self, op_type, name, domain):
        self.ep_name = "CPUExecutionProvider"
        self._nodes = [OrtEpAssignedNode(op_type, name, domain)]

    def get_nodes(self):
        """Returns the nodes, a list of OrtEpAssignedNode."""
        return list(self._nodes)


def get_ep_devices():
    """Returns the providers and their devices: the CPU."""
    return [OrtEpDevice()]
