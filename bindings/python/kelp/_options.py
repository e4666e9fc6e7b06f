# SPDX-License-Identifier: Apache-2.0
"""SessionOptions and RunOptions, with the names of ONNX Runtime."""
import enum
import operator
import os
import warnings

from . import _entries, _kelp, _log, _plugins
from ._error import Code, KelpError
from ._value import OrtValue

__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "RunOptions", "SessionOptions"]

class GraphOptimizationLevel(enum.IntEnum):
    """Levels of graph optimization. Kelp has two: none, and all."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Whether operators run one after another. Kelp's always do, each on all threads."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """The order in which operators run. Kelp has one."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


def converted(owner, name, kind, value):
    """Returns the value of an option, converted to its type. Raises TypeError or ValueError."""
    try:
        if kind is str:
            return os.fsdecode(value)
        value = kind(operator.index(value))
    except TypeError:
        raise TypeError(f"{owner}.{name}: expected {kind.__name__}, found '{type(value).__name__}'") from None
    if name == "log_severity_level" and value not in range(-1, len(_log.LEVELS)):
        raise KelpError(f"{owner}.{name}: expected -1 to {len(_log.LEVELS) - 1}, found {value}", Code.INVALID_ARGUMENT)
    return value


def suggest(name, known):
    """Returns the end of a message that suggests the nearest known name, or an empty text."""
    import difflib
    near = difflib.get_close_matches(name, known, 1)
    return f": did you mean '{near[0]}'?" if near else ""


class Options:
    """The base of options: attributes have types, and unknown ones are rejected."""

    __slots__ = ()
    _TYPES = {}

    def __setattr__(self, name, value):
        kind = self._TYPES.get(name)
        if kind is not None:
            value = converted(type(self).__name__, name, kind, value)
        try:
            super().__setattr__(name, value)
        except AttributeError:
            raise AttributeError(f"'{type(self).__name__}' has no option '{name}'{suggest(name, self._TYPES)}") from None

    def __repr__(self):
        default = type(self)()
        changed = (f"{name}={getattr(self, name)!r}" for name in self._TYPES if getattr(self, name) != getattr(default, name))
        return f"{type(self).__name__}({', '.join(changed)})"


class SessionOptions(Options):
    """Options of a session. A typing error in a name raises AttributeError.

    intra_op_num_threads: threads per operator, including the calling thread; 0: all CPUs. Sessions with the same number share a pool.
    use_per_session_threads: False: the number of threads is that of set_global_thread_pool_sizes.
    graph_optimization_level: ORT_DISABLE_ALL disables optimization.
    precision: "f32", or "bf16", which computes float32 GEMM and convolutions in bfloat16, in half the time on CPUs with AVX512_BF16.
    optimized_model_filepath: where to write the model with the initializers and dimensions of these options.
    enable_profiling: collects a trace; see InferenceSession.end_profiling. profile_file_prefix: how its file name begins.
    log_severity_level: messages to logging.getLogger("kelp"): at 1 (info) the duration of loading and of each run, at 0 (verbose) also
        of each operator; with log_verbosity_level 1 also its algorithm. -1: the level of set_default_logger_severity.
    logid: identifies the session in the log.
    enable_cpu_mem_arena, use_deterministic_compute, inter_op_num_threads: Kelp has no arena, its results are always deterministic, and
        operators run one after another; so all values are accepted.

    execution_mode ORT_PARALLEL, execution_order, enable_mem_pattern False and enable_mem_reuse False have no effect: they warn.
    """

    _TYPES = {"enable_cpu_mem_arena": bool, "enable_mem_pattern": bool, "enable_mem_reuse": bool, "enable_profiling": bool,
              "execution_mode": ExecutionMode, "execution_order": ExecutionOrder, "graph_optimization_level": GraphOptimizationLevel,
              "inter_op_num_threads": int, "intra_op_num_threads": int, "log_severity_level": int, "log_verbosity_level": int, "logid": str,
              "optimized_model_filepath": str, "precision": str, "profile_file_prefix": str, "use_deterministic_compute": bool,
              "use_per_session_threads": bool}
    _WITHOUT_EFFECT = {"execution_mode": ExecutionMode.ORT_PARALLEL, "execution_order": (ExecutionOrder.PRIORITY_BASED,
                       ExecutionOrder.MEMORY_EFFICIENT), "enable_mem_pattern": False, "enable_mem_reuse": False}

    __slots__ = (*_TYPES, "__weakref__", "_cancel", "_dimensions", "_entries", "_files", "_initializers", "_libraries", "_providers")

    def __init__(self):
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.inter_op_num_threads = 0
        self.intra_op_num_threads = 0
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self.precision = "f32"
        self.profile_file_prefix = "onnxruntime_profile_"
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self._cancel = RunOptions()
        self._dimensions = {}  # from ("name" or "denotation", text) to a size
        self._entries = {}
        self._files = {}  # contents of files with external data
        self._initializers = {}
        self._libraries = []
        self._providers = []

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        ignored = self._WITHOUT_EFFECT.get(name, ())
        if ignored == () or hasattr(self, "_providers") is False:  # not set by the user
            return
        value = getattr(self, name)
        if value in ignored if isinstance(ignored, tuple) else value == ignored:
            warnings.warn(f"SessionOptions.{name} = {getattr(value, 'name', value)} has no effect in Kelp", stacklevel=2)

    def register_custom_ops_library(self, library):
        """Adds a plug-in library (kelp/plugin.h) with operators: a path, or a tuple (path, {setting: value}).

        Loads the library once, to check it. Custom-operator libraries of ONNX Runtime, which export RegisterCustomOps, are rejected.
        """
        _kelp.Runtime(1, _plugins.as_text([library]))
        self._libraries.append(library)

    def add_session_config_entry(self, key, value):
        """Stores a configuration entry of ONNX Runtime. An entry without an effect warns."""
        self._entries[str(key)] = str(value)
        _entries.warn_session(str(key), str(value))

    def get_session_config_entry(self, key):
        """Returns a stored entry. Raises KelpError if there is none."""
        return entry_of(self._entries, "SessionOptions", key)

    def add_free_dimension_override_by_name(self, dim_name, dim_value):
        """Gives the dynamic dimension of this name, such as "batch", a size."""
        self._dimensions["name", str(dim_name)] = size_of(dim_name, dim_value)

    def add_free_dimension_override_by_denotation(self, dim_denotation, dim_value):
        """Gives the dynamic dimensions with this denotation, such as "DATA_BATCH", a size."""
        self._dimensions["denotation", str(dim_denotation)] = size_of(dim_denotation, dim_value)

    def add_initializer(self, name, ortvalue):
        """Replaces the initializer of this name by an OrtValue. Its elements are copied when a session is created."""
        if not isinstance(ortvalue, OrtValue):
            raise TypeError(f"initializer '{name}': expected an OrtValue, found '{type(ortvalue).__name__}'")
        self._initializers[str(name)] = ortvalue

    def add_external_initializers(self, names, ortvalues):
        """Replaces initializers, also those whose external data does not exist, by values. See add_initializer."""
        if len(names) != len(ortvalues):
            raise KelpError(f"{len(names)} names and {len(ortvalues)} values", Code.INVALID_ARGUMENT)
        for name, ortvalue in zip(names, ortvalues):
            self.add_initializer(name, ortvalue)

    def add_external_initializers_from_files_in_memory(self, names, buffers, lengths):
        """Sets the contents of files with external data, by the locations that the model contains."""
        if not len(names) == len(buffers) == len(lengths):
            raise KelpError(f"{len(names)} names, {len(buffers)} buffers and {len(lengths)} lengths", Code.INVALID_ARGUMENT)
        for name, data, length in zip(names, buffers, lengths):
            self._files[os.fspath(name)] = memoryview(data).cast("B")[:length]

    def add_provider(self, provider_name, provider_options):
        """Adds a provider. `providers` of a session replace those of its options."""
        self._providers.append((str(provider_name), dict(provider_options or {})))

    def add_provider_for_devices(self, ep_devices, provider_options):
        """Adds the providers of devices that get_ep_devices returned."""
        for device in ep_devices:
            self.add_provider(device.ep_name, provider_options)

    def has_providers(self):
        """Returns whether a provider was added."""
        return bool(self._providers)

    def set_load_cancellation_flag(self, cancel):
        """Cancels the sessions that are being created with these options, and later ones: they raise ModelLoadCanceled."""
        self._cancel.terminate = cancel

    def __copy__(self):
        copied = SessionOptions()
        copied.__setstate__(self.__getstate__())
        copied._cancel = self._cancel
        return copied

    def __getstate__(self):
        names = [*self._TYPES, "_dimensions", "_entries", "_files", "_initializers", "_libraries", "_providers"]
        state = {name: getattr(self, name) for name in names}
        state["_files"] = {name: bytes(data) for name, data in self._files.items()}
        return state

    def __setstate__(self, state):
        for name, value in state.items():
            object.__setattr__(self, name, value.copy() if isinstance(value, (dict, list)) else value)
        object.__setattr__(self, "_cancel", RunOptions())


class RunOptions(Options, _kelp.RunOptions):
    """Options of a run. One object may be used for several runs.

    terminate: set to True from any thread to cancel all current and later runs with these options, within milliseconds. They raise
        KelpError, code CANCELLED.
    logid: identifies the run in the log and in that error.
    log_severity_level: messages to logging.getLogger("kelp"): at 1 (info) the duration of a run, at 0 (verbose) also of each operator;
        with log_verbosity_level 1 also its algorithm. -1: the level of set_default_logger_severity.
    only_execute_path_to_fetches: Kelp computes all outputs; the value is accepted.

    >>> import kelp, numpy
    >>> options = kelp.RunOptions()
    >>> options.terminate = True
    >>> try:
    ...     kelp.InferenceSession("examples/models/digits/1/model.onnx").run(None, {"image": numpy.zeros((1, 1, 8, 8), "float32")}, options)
    ... except kelp.KelpError as error:
    ...     print(error.code.name)
    CANCELLED
    """

    _TYPES = {"log_severity_level": int, "log_verbosity_level": int, "logid": str, "only_execute_path_to_fetches": bool, "terminate": bool}

    __slots__ = ("__weakref__", "_adapters", "_entries", "log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches")

    def __init__(self):
        self.logid = ""
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.only_execute_path_to_fetches = False
        self._adapters = []
        self._entries = {}

    def add_active_adapter(self, adapter):
        """Adds a LoraAdapter, whose parameters override initializers of the model in runs with these options."""
        self._adapters.append(adapter._parameters)
        self._has_adapters = True

    def _adapted(self, feed):
        """Returns the inputs of a run with the parameters of the adapters."""
        if not isinstance(feed, dict):
            return feed
        return {name: value for parameters in (*self._adapters, feed) for name, value in parameters.items()}

    def add_run_config_entry(self, key, value):
        """Stores a configuration entry of ONNX Runtime. An entry without an effect warns."""
        self._entries[str(key)] = str(value)
        _entries.warn_run(str(key), str(value))

    def get_run_config_entry(self, key):
        """Returns a stored entry. Raises KelpError if there is none."""
        return entry_of(self._entries, "RunOptions", key)

    def __getstate__(self):
        return {name: getattr(self, name) for name in (*self._TYPES, "_entries", "_adapters", "_has_adapters")}

    def __setstate__(self, state):
        self.__init__()
        for name, value in state.items():
            setattr(self, name, value)


def entry_of(entries, owner, key):
    """Returns a configuration entry."""
    if key not in entries:
        raise KelpError(f"{owner} does not have configuration with key: {key}", Code.NOT_FOUND)
    return entries[key]


def size_of(name, value):
    """Returns the size of a dimension."""
    try:
        size = operator.index(value)
    except TypeError:
        raise TypeError(f"dimension '{name}': expected a size, found '{type(value).__name__}'") from None
    if size < 0:
        raise KelpError(f"dimension '{name}': expected a size, found {value}", Code.INVALID_ARGUMENT)
    return size
