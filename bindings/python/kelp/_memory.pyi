# SPDX-License-Identifier: Apache-2.0
import enum
from collections.abc import Mapping
from typing import Any

from ._types import OrtDevice

class OrtAllocatorType(enum.IntEnum):
    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1

class OrtMemType(enum.IntEnum):
    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0

class OrtDeviceMemoryType(enum.IntEnum):
    DEFAULT = 0
    HOST_ACCESSIBLE = 5

class OrtMemoryInfoDeviceType(enum.IntEnum):
    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3

class OrtHardwareDeviceType(enum.IntEnum):
    CPU = 0
    GPU = 1
    NPU = 2

class ArenaExtendStrategy(enum.IntEnum):
    kNextPowerOfTwo = 0
    kSameAsRequested = 1

class OrtMemoryInfo:
    name: str
    allocator_type: OrtAllocatorType
    device_id: int
    mem_type: OrtMemType
    device_mem_type: OrtDeviceMemoryType
    device_vendor_id: int
    device: OrtDevice
    def __init__(self, name: str, allocator_type: OrtAllocatorType, device_id: int, mem_type: OrtMemType) -> None: ...
    @classmethod
    def create_v2(cls, name: str, device_type: OrtMemoryInfoDeviceType, vendor_id: int, device_id: int, device_mem_type: OrtDeviceMemoryType,
                  alignment: int, allocator_type: OrtAllocatorType) -> OrtMemoryInfo: ...

class OrtArenaCfg:
    max_mem: int
    arena_extend_strategy: int
    initial_chunk_size_bytes: int
    max_dead_bytes_per_chunk: int
    initial_growth_chunk_size_bytes: int
    max_power_of_two_extend_bytes: int
    def __init__(self, *values: int | Mapping[str, int]) -> None: ...

class OrtHardwareDevice:
    type: OrtHardwareDeviceType
    vendor: str
    vendor_id: int
    device_id: int
    metadata: dict[str, str]

class OrtEpDevice:
    ep_name: str
    ep_vendor: str
    ep_metadata: dict[str, str]
    ep_options: dict[str, str]
    device: OrtHardwareDevice
    def memory_info(self, memory_type: OrtDeviceMemoryType = ...) -> OrtMemoryInfo: ...

class OrtEpAssignedNode:
    op_type: str
    name: str
    domain: str

class OrtEpAssignedSubgraph:
    ep_name: str
    def get_nodes(self) -> list[OrtEpAssignedNode]: ...

def create_and_register_allocator(mem_info: OrtMemoryInfo, arena_cfg: OrtArenaCfg | None = None) -> None: ...
def create_and_register_allocator_v2(provider_type: str, mem_info: OrtMemoryInfo, provider_options: Mapping[str, Any],
                                     arena_cfg: OrtArenaCfg | None = None) -> None: ...
def get_ep_devices() -> list[OrtEpDevice]: ...
