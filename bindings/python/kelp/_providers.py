# SPDX-License-Identifier: Apache-2.0
"""Execution providers by the names of ONNX Runtime, and functions of the module that concern the whole process."""
import warnings
from collections.abc import Sequence

from . import _kelp, _log
from ._error import Code, KelpError

__all__ = ["check_and_normalize_provider_args", "check_providers", "disable_telemetry_events", "enable_telemetry_events", "get_all_providers", "get_available_providers", "get_build_info",
           "get_device", "get_version_string", "has_collective_ops", "set_default_logger_severity",
           "set_default_logger_verbosity", "set_global_thread_pool_sizes", "set_seed"]

# The version of ONNX Runtime whose interface this is. Programs compare it with the version that they need.
ORT_VERSION = "1.31.1"

AVAILABLE = ["CPUExecutionProvider"]
KELP_NAMES = {"cpu"}
# Providers of ONNX Runtime, which a session replaces by the CPU with a warning. Other names are errors.
KNOWN = ["NvTensorRTRTXExecutionProvider", "TensorrtExecutionProvider", "CUDAExecutionProvider", "MIGraphXExecutionProvider",
         "ROCMExecutionProvider", "OpenVINOExecutionProvider", "DnnlExecutionProvider", "TvmExecutionProvider", "VitisAIExecutionProvider",
         "QNNExecutionProvider", "NnapiExecutionProvider", "VSINPUExecutionProvider", "JsExecutionProvider", "CoreMLExecutionProvider",
         "ArmNNExecutionProvider", "ACLExecutionProvider", "DmlExecutionProvider", "RknpuExecutionProvider", "WebNNExecutionProvider",
         "WebGpuExecutionProvider", "XnnpackExecutionProvider", "CANNExecutionProvider", "AzureExecutionProvider", *AVAILABLE]


def get_available_providers():
    """Returns the names of the available providers."""
    return list(AVAILABLE)


def get_all_providers():
    """Returns the names of the providers that a session accepts. Those that are not available are replaced by the CPU with a warning."""
    return list(KNOWN)


def get_device():
    """Returns 'CPU'."""
    return "CPU"


def get_version_string():
    """Returns the version of ONNX Runtime whose interface this is."""
    return ORT_VERSION


def get_build_info():
    """Returns Kelp's version and instruction set."""
    return f"ORT Build Info: Kelp {_kelp.__version__}, interface of ONNX Runtime {ORT_VERSION}"


def has_collective_ops():
    """Returns false: Kelp has no operators for several machines."""
    return False


def check_and_normalize_provider_args(providers, provider_options, available_provider_names):
    """Returns (names, options) of `providers` and `provider_options`, and warns about duplicates and unavailable ones."""
    if providers is None:
        return [], []
    if isinstance(providers, str) or not isinstance(providers, Sequence):
        raise ValueError(f"providers: expected a list, found '{type(providers).__name__}'")
    if provider_options is None:
        pairs = [(item, {}) if isinstance(item, str) else item for item in providers]
    else:
        if not isinstance(provider_options, Sequence) or len(providers) != len(provider_options):
            raise ValueError("provider_options: expected a list with a dict for each provider")
        if not all(isinstance(item, str) for item in providers):
            raise ValueError("providers: expected names only, because provider_options is given")
        pairs = list(zip(providers, provider_options))
    found = {}
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], dict)):
            raise ValueError(f"providers: expected a name or a tuple (name, dict), found {pair!r}")
        name, options = pair
        if name not in available_provider_names:
            warnings.warn(f"provider '{name}' is not available: expected one of {', '.join(available_provider_names)}", stacklevel=2)
        if name in found:
            warnings.warn(f"provider '{name}' is given twice: the second is ignored", stacklevel=2)
            continue
        found[name] = {str(key): str(value) for key, value in options.items()}
    return list(found), list(found.values())


def check_providers(providers, provider_options=None):
    """Checks that all providers are known, and warns about those that are not available."""
    if not providers:
        return
    if isinstance(providers, str):
        providers = [providers]
    names, _ = check_and_normalize_provider_args(providers, provider_options, [*KNOWN, *KELP_NAMES, *providers])
    unknown = [name for name in names if name not in KNOWN and name not in KELP_NAMES]
    if unknown:
        # ONNX Runtime's words, which programs search for
        raise KelpError(f"Unknown Provider Type: {unknown[0]}: expected one of {', '.join(get_available_providers())}", Code.NOT_FOUND)
    missing = [name for name in names if name not in AVAILABLE and name not in KELP_NAMES]
    if missing:
        warnings.warn(f"provider {', '.join(map(repr, missing))} is not available: the model runs on the CPU", stacklevel=3)


# ---- the process ----
threads = 0  # of sessions without threads of their own


def set_global_thread_pool_sizes(intra_op_num_threads, inter_op_num_threads):
    """Sets the number of threads of sessions whose options have use_per_session_threads False; 0: all CPUs. Operators run one after
    another, so the second number has no effect."""
    global threads  # pylint: disable=global-statement
    threads = int(intra_op_num_threads)


seed = None  # the last one that was set


def set_seed(value):
    """Stores a seed for operators such as RandomNormal without the attribute `seed`. Kelp's draw other numbers in each run all the same, so
    that creating a session with such operators warns."""
    global seed  # pylint: disable=global-statement
    seed = int(value)


def set_default_logger_severity(severity):
    """Sets the level of logging.getLogger("kelp"), and the severity of runs and sessions that do not have one: 0 verbose, 1 info,
    2 warning, 3 error, 4 fatal."""
    _log.set_severity(severity)


def set_default_logger_verbosity(verbosity):
    """Sets the verbosity of runs and sessions at severity 0: at 1, the log has the algorithm of each operator."""
    _log.set_verbosity(verbosity)


def enable_telemetry_events():
    """Returns None: Kelp sends nothing to anyone."""


def disable_telemetry_events():
    """Returns None: Kelp sends nothing to anyone."""
