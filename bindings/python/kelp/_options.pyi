# SPDX-License-Identifier: Apache-2.0
import enum
from collections.abc import Mapping, Sequence
from typing import Any

from . import Path
from ._adapter import LoraAdapter
from ._memory import OrtEpDevice
from ._value import OrtValue

class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99

class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1

class ExecutionOrder(enum.IntEnum):
    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2

class SessionOptions:
    enable_cpu_mem_arena: bool
    enable_mem_pattern: bool
    enable_mem_reuse: bool
    enable_profiling: bool
    execution_mode: ExecutionMode
    execution_order: ExecutionOrder
    graph_optimization_level: GraphOptimizationLevel
    inter_op_num_threads: int
    intra_op_num_threads: int
    log_severity_level: int
    log_verbosity_level: int
    logid: str
    optimized_model_filepath: str
    precision: str
    profile_file_prefix: str
    use_deterministic_compute: bool
    use_per_session_threads: bool
    def add_external_initializers(self, names: Sequence[str], ortvalues: Sequence[OrtValue]) -> None: ...
    def add_external_initializers_from_files_in_memory(self, names: Sequence[Path], buffers: Sequence[bytes],
                                                       lengths: Sequence[int]) -> None: ...
    def add_free_dimension_override_by_denotation(self, dim_denotation: str, dim_value: int) -> None: ...
    def add_free_dimension_override_by_name(self, dim_name: str, dim_value: int) -> None: ...
    def add_initializer(self, name: str, ortvalue: OrtValue) -> None: ...
    def add_provider(self, provider_name: str, provider_options: Mapping[str, Any]) -> None: ...
    def add_provider_for_devices(self, ep_devices: Sequence[OrtEpDevice], provider_options: Mapping[str, Any]) -> None: ...
    def add_session_config_entry(self, key: str, value: str) -> None: ...
    def get_session_config_entry(self, key: str) -> str: ...
    def has_providers(self) -> bool: ...
    def register_custom_ops_library(self, library: Path | tuple[Path, Mapping[str, Any]]) -> None: ...
    def set_load_cancellation_flag(self, cancel: bool) -> None: ...

class RunOptions:
    log_severity_level: int
    log_verbosity_level: int
    logid: str
    only_execute_path_to_fetches: bool
    terminate: bool
    def add_active_adapter(self, adapter: LoraAdapter) -> None: ...
    def add_run_config_entry(self, key: str, value: str) -> None: ...
    def get_run_config_entry(self, key: str) -> str: ...
