# SPDX-License-Identifier: Apache-2.0
"""InferenceSession and its options, by ONNX Runtime's names where they mean the same."""
import enum
import logging
import os
import threading
import warnings

import numpy

from . import _kelp
from ._error import Code, KelpError
from ._progress import Progress

__all__ = ["GraphOptimizationLevel", "IOBinding", "InferenceSession", "ModelMetadata", "NodeArg", "RunOptions", "SessionOptions",
           "get_available_providers", "get_device"]

PROVIDERS = {"CPUExecutionProvider": "cpu", "cpu": "cpu"}

# ONNX Runtime's words for element types; the others are numpy's.
TYPE_WORDS = {"float32": "float", "float64": "double", "float8_e4m3fn": "float8e4m3fn", "float8_e4m3fnuz": "float8e4m3fnuz",
              "float8_e5m2": "float8e5m2", "float8_e5m2fnuz": "float8e5m2fnuz"}

_runtimes = {}
_lock = threading.Lock()


def shared_runtime(threads=0):
    """One runtime for each number of threads, shared by sessions."""
    with _lock:
        runtime = _runtimes.get(threads)
        if runtime is None:
            runtime = _runtimes[threads] = _kelp.Runtime(threads)
        return runtime


# Threads do not survive a fork: sessions that a child makes get runtimes of their own. The parent's are kept, not freed.
_before_fork = []
os.register_at_fork(after_in_child=lambda: (_before_fork.append(dict(_runtimes)), _runtimes.clear()))


def get_available_providers():
    """Names of what can run a model here."""
    return ["CPUExecutionProvider"]


def get_device():
    """'CPU'."""
    return "CPU"


class GraphOptimizationLevel(enum.IntEnum):
    """How much a graph is rewritten before it runs. Kelp tells two apart: none, and all."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class SessionOptions:
    """Options of a session.

    intra_op_num_threads: threads an operator may use, the caller's counted; 0: all CPUs. Sessions with the same number share them.
    graph_optimization_level: ORT_DISABLE_ALL runs the graph as it is written.
    precision: "f32", or "bf16", with which float32 products round to bfloat16, in half the time where the processor has AVX512_BF16.

    The other attributes are ONNX Runtime's; they may be set, and change nothing here.
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

    def add_session_config_entry(self, key, value):
        """Keeps an entry; none changes anything here."""
        self._entries[str(key)] = str(value)

    def get_session_config_entry(self, key):
        """The entry that was kept; KeyError when there is none."""
        return self._entries[key]


class RunOptions(_kelp.RunOptions):
    """Options of a run; one object may serve many runs.

    terminate: True ends the runs under way with these options, from whichever thread it is set, and those that begin, within
        some ms, also in the midst of a long operator: KelpError of code CANCELLED.
    logid: names the run in what is logged and in that error.
    log_severity_level: what is told to logging.getLogger("kelp"): at 1 (info) and below how long a run took, at 0 (verbose) each operator.

    log_verbosity_level and config entries are ONNX Runtime's; they may be set, and change nothing here.

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
        """Keeps an entry; none changes anything here."""
        self._entries[str(key)] = str(value)

    def get_run_config_entry(self, key):
        """The entry that was kept; KeyError when there is none."""
        return self._entries[key]

    def _finished(self, nodes):
        logger, who = logging.getLogger("kelp"), f"run '{self.logid}'" if self.logid else "run"
        if self.log_severity_level <= 0:
            for op_type, name, duration_ns in nodes:
                logger.debug("%s: %s '%s' took %.3f ms", who, op_type, name, duration_ns / 1e6)
        logger.info("%s: %d operators took %.3f ms", who, len(nodes), sum(node[2] for node in nodes) / 1e6)


class NodeArg:
    """An input or output: `name`, `type` ('tensor(float)'), `shape` (numbers, names of open extents, None), `dtype` ('float32')."""

    __slots__ = ("dtype", "name", "shape", "type")

    def __init__(self, name, dtype, shape):
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.type = f"tensor({TYPE_WORDS.get(dtype, dtype)})"

    def __repr__(self):
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape!r})"


class ModelMetadata:
    """What a model says about itself: producer_name, graph_name, domain, description, version, custom_metadata_map; and ir_version,
    node_count, planned_node_count (after folding and fusion), parameter_count."""

    def __init__(self, values):
        self.__dict__.update(values)
        self.graph_description = ""

    def __repr__(self):
        return f"ModelMetadata({self.__dict__!r})"


def check_providers(providers):
    """The first that is here is used; those before it are said to be missing, as ONNX Runtime does."""
    if not providers:
        return
    names = [provider[0] if isinstance(provider, tuple) else provider for provider in providers]
    if not any(name in PROVIDERS for name in names):
        raise KelpError(f"there is no provider '{names[0]}': expected one of {', '.join(get_available_providers())}", Code.NOT_FOUND)
    missing = [name for name in names if name not in PROVIDERS]
    if missing:
        warnings.warn(f"there is no provider {', '.join(map(repr, missing))}: the model runs on the CPU", stacklevel=3)


class InferenceSession(_kelp.Session):
    """A model that is ready to run.

    path_or_bytes: path of an ONNX file, which is mapped, or the bytes of one.
    sess_options: a SessionOptions.
    providers: ["CPUExecutionProvider"], which is also the default; others in the list are skipped with a warning.
    progress: whether a bar is drawn on stderr when loading takes a while; None: in a terminal or notebook, unless KELP_NO_PROGRESS is set.

    Any number of threads may call `run` of one session at once; the GIL is released while the model runs.

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
            raise TypeError(f"sess_options is a kelp.SessionOptions or None, not '{type(sess_options).__name__}'")
        options = sess_options or SessionOptions()
        plain = int(options.graph_optimization_level) == GraphOptimizationLevel.ORT_DISABLE_ALL
        runtime = shared_runtime(int(options.intra_op_num_threads))
        if isinstance(path_or_bytes, (str, os.PathLike)):
            with Progress(f"loading {os.fspath(path_or_bytes)}", self._fraction, progress):
                self._open(path_or_bytes, None, runtime, None, None, plain, options.precision)
        else:
            try:
                data = path_or_bytes if isinstance(path_or_bytes, bytes) else bytes(memoryview(path_or_bytes))
            except TypeError:
                raise TypeError(f"a model is a path, or bytes, not '{type(path_or_bytes).__name__}'") from None
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
        """The inputs, a list of NodeArg."""
        return list(self._inputs)

    def get_outputs(self):
        """The outputs, a list of NodeArg."""
        return list(self._outputs)

    def get_overridable_initializers(self):
        """None: weights cannot be given as inputs."""
        return []

    def get_providers(self):
        """Names of what runs the model."""
        return get_available_providers()

    def get_provider_options(self):
        """No options: {name: {}}."""
        return {name: {} for name in self.get_providers()}

    def get_session_options(self):
        """The options that the session was made with."""
        return self._options

    def get_modelmeta(self):
        """What the model says about itself, a ModelMetadata."""
        return ModelMetadata(self._meta())

    def io_binding(self):
        """An IOBinding: inputs and outputs bound once and used for many runs."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding, run_options=None):
        """Runs with what is bound."""
        iobinding._run(run_options)


class IOBinding:
    """Arrays bound to the inputs and outputs of a session, read and written in place."""

    def __init__(self, session):
        self._session = session
        self._inputs = {}
        self._outputs = {}
        self._results = []

    def bind_cpu_input(self, name, arr_on_cpu):
        """Binds an array to an input; it is read in place at every run."""
        self._inputs[name] = arr_on_cpu

    def bind_input(self, name, device_type="cpu", device_id=0, element_type=None, shape=None, buffer_ptr=None):
        """Binds memory at an address to an input."""
        self._inputs[name] = _kelp.DLTensor(buffer_ptr, shape, numpy.dtype(element_type), device_type)

    def bind_output(self, name, device_type="cpu", device_id=0, element_type=None, shape=None, buffer_ptr=None):
        """Binds an output: to memory at an address, to an array (given in place of `device_type`), or to a new array at each run."""
        if not isinstance(device_type, str):
            self._outputs[name] = device_type
        elif buffer_ptr is not None:
            self._outputs[name] = _kelp.DLTensor(buffer_ptr, shape, numpy.dtype(element_type), device_type)
        else:
            self._outputs[name] = None

    def clear_binding_inputs(self):
        """Forgets the inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self):
        """Forgets the outputs."""
        self._outputs.clear()

    def copy_outputs_to_cpu(self):
        """The outputs of the last run, as numpy arrays, in the order they were bound."""
        return [numpy.asarray(array) for array in self._results]

    def _run(self, options):
        self._results = self._session.run_into(self._outputs, self._inputs, options)
