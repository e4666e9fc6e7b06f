# SPDX-License-Identifier: Apache-2.0
"""InferenceSession and its options, with the names of ONNX Runtime for the same concepts."""
import enum
import logging
import os
import threading
import warnings

import numpy

from . import _kelp, _plugins
from ._error import Code, KelpError
from ._progress import Progress

__all__ = ["GraphOptimizationLevel", "IOBinding", "InferenceSession", "ModelMetadata", "NodeArg", "RunOptions", "SessionOptions",
           "get_available_providers", "get_device"]

PROVIDERS = {"CPUExecutionProvider": "cpu", "cpu": "cpu"}

# ONNX Runtime's names of element types where they differ from numpy's.
TYPE_WORDS = {"float32": "float", "float64": "double", "float8_e4m3fn": "float8e4m3fn", "float8_e4m3fnuz": "float8e4m3fnuz",
              "float8_e5m2": "float8e5m2", "float8_e5m2fnuz": "float8e5m2fnuz"}

_runtimes = {}
_lock = threading.Lock()


def shared_runtime(threads=0, plugins=()):
    """Returns the runtime that all sessions with this number of threads and these plug-in libraries share."""
    key = threads, _plugins.as_text(plugins)
    with _lock:
        runtime = _runtimes.get(key)
        if runtime is None:
            runtime = _runtimes[key] = _kelp.Runtime(*key)
        return runtime


# Threads do not survive a fork: a child process creates its own runtimes. Those of the parent are kept, not freed.
_before_fork = []
os.register_at_fork(after_in_child=lambda: (_before_fork.append(dict(_runtimes)), _runtimes.clear()))


def get_available_providers():
    """Returns the names of the available providers."""
    return ["CPUExecutionProvider"]


def get_device():
    """Returns 'CPU'."""
    return "CPU"


class GraphOptimizationLevel(enum.IntEnum):
    """Levels of graph optimization. Kelp has two: none, and all."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class SessionOptions:
    """Options of a session.

    intra_op_num_threads: threads per operator, including the calling thread; 0: all CPUs. Sessions with the same number share a pool.
    graph_optimization_level: ORT_DISABLE_ALL disables optimization.
    precision: "f32", or "bf16", which computes float32 GEMM and convolutions in bfloat16, in half the time on CPUs with AVX512_BF16.

    The other attributes exist for compatibility with ONNX Runtime and have no effect.
    """

    def __init__(self):
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.precision = "f32"
        self.execution_mode = 0
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.enable_mem_pattern = True
        self.enable_cpu_mem_arena = True
        self.enable_profiling = False
        self._entries = {}
        self._libraries = []

    def register_custom_ops_library(self, library):
        """Adds a plug-in library (kelp/plugin.h) with operators: a path, or a tuple (path, {setting: value}).

        Loads the library once, to check it. Custom-operator libraries of ONNX Runtime, which export RegisterCustomOps, are rejected.
        """
        _kelp.Runtime(1, _plugins.as_text([library]))
        self._libraries.append(library)

    def add_session_config_entry(self, key, value):
        """Stores an entry, which has no effect."""
        self._entries[str(key)] = str(value)

    def get_session_config_entry(self, key):
        """Returns a stored entry. Raises KeyError if there is none."""
        return self._entries[key]


class RunOptions(_kelp.RunOptions):
    """Options of a run. One object may be used for several runs.

    terminate: set to True from any thread to cancel all current and later runs with these options, within milliseconds. They raise
        KelpError, code CANCELLED.
    logid: identifies the run in the log and in that error.
    log_severity_level: messages to logging.getLogger("kelp"): at 1 (info) the duration of a run, at 0 (verbose) also of each operator.

    log_verbosity_level and config entries exist for compatibility with ONNX Runtime and have no effect.

    >>> import kelp, numpy
    >>> options = kelp.RunOptions()
    >>> options.terminate = True
    >>> try:
    ...     kelp.InferenceSession("examples/models/digits/1/model.onnx").run(None, {"image": numpy.zeros((1, 1, 8, 8), "float32")}, options)
    ... except kelp.KelpError as error:
    ...     print(error.code.name)
    CANCELLED
    """

    def __init__(self):
        self.logid = ""
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self._entries = {}

    def add_run_config_entry(self, key, value):
        """Stores an entry, which has no effect."""
        self._entries[str(key)] = str(value)

    def get_run_config_entry(self, key):
        """Returns a stored entry. Raises KeyError if there is none."""
        return self._entries[key]

    def _finished(self, nodes):
        logger, who = logging.getLogger("kelp"), f"run '{self.logid}'" if self.logid else "run"
        if self.log_severity_level <= 0:
            for op_type, name, duration_ns in nodes:
                logger.debug("%s: %s '%s' took %.3f ms", who, op_type, name, duration_ns / 1e6)
        logger.info("%s: %d operators took %.3f ms", who, len(nodes), sum(node[2] for node in nodes) / 1e6)


class NodeArg:
    """An input or output: `name`, `type` ('tensor(float)'), `shape` (numbers, names of dynamic dimensions, None), `dtype` ('float32')."""

    __slots__ = ("dtype", "name", "shape", "type")

    def __init__(self, name, dtype, shape):
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.type = f"tensor({TYPE_WORDS.get(dtype, dtype)})"

    def __repr__(self):
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape!r})"


class ModelMetadata:
    """Metadata of a model: producer_name, graph_name, domain, description, version, custom_metadata_map; and ir_version,
    node_count, planned_node_count (after folding and fusion), parameter_count."""

    def __init__(self, values):
        self.__dict__.update(values)
        self.graph_description = ""

    def __repr__(self):
        return f"ModelMetadata({self.__dict__!r})"


def check_providers(providers):
    """Checks that a provider is available, and warns about others, as ONNX Runtime does."""
    if not providers:
        return
    names = [provider[0] if isinstance(provider, tuple) else provider for provider in providers]
    if not any(name in PROVIDERS for name in names):
        raise KelpError(f"unknown provider '{names[0]}': expected one of {', '.join(get_available_providers())}", Code.NOT_FOUND)
    missing = [name for name in names if name not in PROVIDERS]
    if missing:
        warnings.warn(f"unknown provider {', '.join(map(repr, missing))}: the model runs on the CPU", stacklevel=3)


PLAN_MAGIC = b"KELPPLAN"


def is_plan(path):
    """Returns true if a file begins like a plan of the cpu provider."""
    try:
        with open(path, "rb") as file:
            return file.read(len(PLAN_MAGIC)) == PLAN_MAGIC
    except OSError:
        return False


class InferenceSession(_kelp.Session):
    """A model that is ready to run.

    path_or_bytes: the path of an ONNX file, which is mapped, or its bytes.
    sess_options: a SessionOptions.
    providers: ["CPUExecutionProvider"], the default; others in the list are ignored with a warning.
    progress: whether to draw a progress bar on stderr; None: in a terminal or notebook, unless KELP_NO_PROGRESS is set.

    `run` is thread-safe. The GIL is released while the model runs.

    >>> import numpy, kelp
    >>> session = kelp.InferenceSession("examples/models/digits/1/model.onnx")
    >>> session.get_inputs()
    [NodeArg(name='image', type='tensor(float)', shape=['batch', 1, 8, 8])]
    >>> probabilities, digit = session.run(None, {"image": numpy.zeros((2, 1, 8, 8), "float32")})
    >>> probabilities.shape, digit.shape
    ((2, 10), (2,))
    """

    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options=None, *, progress=None, **_):
        check_providers(providers)
        if not (sess_options is None or isinstance(sess_options, SessionOptions)):
            raise TypeError(f"sess_options: expected a kelp.SessionOptions or None, found '{type(sess_options).__name__}'")
        options = sess_options or SessionOptions()
        plain = int(options.graph_optimization_level) == GraphOptimizationLevel.ORT_DISABLE_ALL
        runtime = shared_runtime(int(options.intra_op_num_threads), options._libraries)
        if isinstance(path_or_bytes, (str, os.PathLike)):
            try:
                with Progress(f"loading {os.fspath(path_or_bytes)}", self._fraction, progress):
                    self._open(path_or_bytes, None, runtime, None, None, plain, options.precision)
            except KelpError:
                if is_plan(path_or_bytes):
                    raise KelpError(f"'{os.fspath(path_or_bytes)}' is a plan, not an ONNX model: load it with kelp.Engine",
                                    Code.INVALID_ARGUMENT) from None
                raise
        else:
            try:
                data = path_or_bytes if isinstance(path_or_bytes, bytes) else bytes(memoryview(path_or_bytes))
            except TypeError:
                raise TypeError(f"path_or_bytes: expected a path or bytes, found '{type(path_or_bytes).__name__}'") from None
            if data.startswith(PLAN_MAGIC):
                raise KelpError("the bytes are a plan, not an ONNX model: load them with kelp.Engine", Code.INVALID_ARGUMENT)
            with Progress("loading a model", self._fraction, progress):
                self._open("", data, runtime, "model", None, plain, options.precision)
        inputs, outputs = self._io()
        self._inputs = [NodeArg(*item) for item in inputs]
        self._outputs = [NodeArg(*item) for item in outputs]
        self._options = options

    def _fraction(self):
        done, total = self._progress()
        return done / total if total else 0

    def get_inputs(self):
        """Returns the inputs, a list of NodeArg."""
        return list(self._inputs)

    def get_outputs(self):
        """Returns the outputs, a list of NodeArg."""
        return list(self._outputs)

    def get_overridable_initializers(self):
        """Returns an empty list: initializers cannot be overridden."""
        return []

    def get_providers(self):
        """Returns the names of the providers that run the model."""
        return get_available_providers()

    def get_provider_options(self):
        """Returns {name: {}}: providers have no options."""
        return {name: {} for name in self.get_providers()}

    def get_session_options(self):
        """Returns the options of the session."""
        return self._options

    def get_modelmeta(self):
        """Returns the ModelMetadata of the model."""
        return ModelMetadata(self._meta())

    def io_binding(self):
        """Creates an IOBinding, which binds inputs and outputs for several runs."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding, run_options=None):
        """Runs the model with the bound inputs and outputs."""
        iobinding._run(run_options)


class IOBinding:
    """Inputs and outputs of a session that are bound to arrays and used in place."""

    def __init__(self, session):
        self._session = session
        self._inputs = {}
        self._outputs = {}
        self._results = []

    def bind_cpu_input(self, name, arr_on_cpu):
        """Binds an array to an input. Every run reads it in place."""
        self._inputs[name] = arr_on_cpu

    def bind_input(self, name, device_type="cpu", device_id=0, element_type=None, shape=None, buffer_ptr=None):
        """Binds memory at an address to an input."""
        self._inputs[name] = _kelp.DLTensor(buffer_ptr, shape, numpy.dtype(element_type), device_type)

    def bind_output(self, name, device_type="cpu", device_id=0, element_type=None, shape=None, buffer_ptr=None):
        """Binds an output to memory at an address, to an array (passed as `device_type`), or to a new array in each run."""
        if not isinstance(device_type, str):
            self._outputs[name] = device_type
        elif buffer_ptr is not None:
            self._outputs[name] = _kelp.DLTensor(buffer_ptr, shape, numpy.dtype(element_type), device_type)
        else:
            self._outputs[name] = None

    def clear_binding_inputs(self):
        """Removes all bound inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self):
        """Removes all bound outputs."""
        self._outputs.clear()

    def copy_outputs_to_cpu(self):
        """Returns the outputs of the last run as numpy arrays, in the order of binding."""
        return [numpy.asarray(array) for array in self._results]

    def _run(self, options):
        self._results = self._session.run_into(self._outputs, self._inputs, options)
