# SPDX-License-Identifier: Apache-2.0
"""InferenceSession, with the names of ONNX Runtime for the same concepts."""
import copy
import os
import threading
import time
import warnings

from . import _entries, _kelp, _log, _model, _plugins, _providers
from ._binding import IOBinding
from ._error import Code, InvalidGraph, InvalidProtobuf, KelpError, ModelLoadCanceled, NoSuchFile, UnsupportedModel, as_subclass
from ._memory import OrtEpAssignedSubgraph, get_ep_devices, host_memory
from ._options import GraphOptimizationLevel, SessionOptions
from ._progress import Progress
from ._types import word
from ._value import OrtValue, OrtValueVector, from_result

__all__ = ["InferenceSession", "ModelMetadata", "NodeArg", "shared_runtime"]

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


class NodeArg:
    """An input or output: `name`, `type` ('tensor(float)'), `shape` (numbers, names of dynamic dimensions, None; [] for sequences and maps),
    `dtype` ('float32', or 'list' for sequences, optionals and maps)."""

    __slots__ = ("dtype", "name", "shape", "type")

    def __init__(self, name, dtype, shape, type=None):  # pylint: disable=redefined-builtin
        self.name = name
        self.dtype = dtype
        self.shape = [] if dtype == "list" else shape
        self.type = type or f"tensor({word(dtype)})"

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
    sess_options: a SessionOptions, which is copied.
    providers: ["CPUExecutionProvider"], the default; others in the list are ignored with a warning.
    progress: whether to draw a progress bar on stderr; None: in a terminal or notebook, unless KELP_NO_PROGRESS is set.

    `run` is thread-safe. The GIL is released while the model runs. A session can be pickled, with the path or the bytes of its model.

    >>> import numpy, kelp
    >>> session = kelp.InferenceSession("examples/models/digits/1/model.onnx")
    >>> session.get_inputs()
    [NodeArg(name='image', type='tensor(float)', shape=['batch', 1, 8, 8])]
    >>> probabilities, digit = session.run(None, {"image": numpy.zeros((2, 1, 8, 8), "float32")})
    >>> probabilities.shape, digit.shape
    ((2, 10), (2,))
    """

    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options=None, *, progress=None, **kwargs):
        if not (sess_options is None or isinstance(sess_options, SessionOptions)):
            raise TypeError(f"sess_options: expected a kelp.SessionOptions or None, found '{type(sess_options).__name__}'")
        self._model_path, self._model_bytes = source_of(path_or_bytes)
        self._enable_fallback = bool(kwargs.pop("enable_fallback", True))
        reads_options = int(kwargs.pop("read_config_from_model", os.environ.get("ORT_LOAD_CONFIG_FROM_MODEL") == "1"))
        for name in kwargs:
            warnings.warn(f"InferenceSession: argument '{name}' has no effect in Kelp", stacklevel=2)
        self._options = copy.copy(sess_options) if sess_options is not None else SessionOptions()
        _providers.check_providers(providers or [name for name, _ in self._options._providers], provider_options)
        if reads_options:
            self._read_options()
        self._load(progress)

    # ---- loading ----
    def _load(self, progress, as_inputs=()):
        """Loads the model. as_inputs: names of initializers that become inputs."""
        begin = time.monotonic_ns()
        options = self._options
        self._trace = None
        self._overridable = None
        self._overriding, self._overriding_lock = {}, threading.Lock()
        plain = options.graph_optimization_level == GraphOptimizationLevel.ORT_DISABLE_ALL
        threads = options.intra_op_num_threads if options.use_per_session_threads else _providers.threads
        runtime = shared_runtime(threads, options._libraries)
        path, data, directory = self._source(as_inputs)
        label = self._label()
        try:
            with Progress(f"loading {label}", self._fraction, progress):
                self._open(path, data, runtime, label, directory, plain, options.precision, options._cancel)
        except KelpError as error:
            raise load_error(error, self._model_path, self._model_bytes) from None
        if _providers.seed is not None:
            self._check_seed()
        inputs, outputs = self._io()
        types = _model.value_types(data or _model.read(path)) if any(item[1] == "list" for item in inputs + outputs) else {}
        self._map_values = _model.map_values(types)
        self._inputs = [NodeArg(*item, types.get(item[0])) for item in inputs]
        self._outputs = [NodeArg(*item, types.get(item[0])) for item in outputs]
        duration = time.monotonic_ns() - begin
        if options.enable_profiling:
            from ._profile import Trace
            self._trace = Trace(options.profile_file_prefix, begin)
            self._trace.add("Session", "session_initialization", begin, duration, model=label)
        self._observe(options.log_severity_level, self._trace is not None)
        _log.loaded(label, options, duration)

    def _label(self):
        return self._model_path if self._model_path is not None else "model"

    def _contents(self):
        """Returns the bytes of the model, mapped if it is a file."""
        if self._model_bytes is not None:
            return self._model_bytes
        try:
            return _model.read(self._model_path)
        except OSError as error:
            raise NoSuchFile(f"cannot open file '{self._model_path}': {error.strerror}", Code.NOT_FOUND) from None

    def _directory(self):
        """Returns the directory of external data, or None."""
        directory = self._options._entries.get(_entries.DIRECTORY)
        if directory is None and self._model_path is not None:
            directory = os.path.dirname(self._model_path) or "."
        return directory

    def _source(self, as_inputs):
        """Returns the path (or ""), bytes (or None) and directory to load, with the changes that the options ask for."""
        options = self._options
        kind = options._entries.get(_entries.LOAD_FORMAT, "ONNX")
        if kind not in ("ONNX", "ORT"):
            raise KelpError(f"session configuration entry '{_entries.LOAD_FORMAT}': expected ONNX, found '{kind}'", Code.INVALID_ARGUMENT)
        if kind == "ORT" or str(self._model_path).endswith(".ort"):
            raise KelpError(f"{self._label()}: models in ORT format are not supported: load the ONNX model", Code.UNIMPLEMENTED)
        changes = as_inputs or options._initializers or options._dimensions or options._files or options.optimized_model_filepath
        if not changes and (self._model_bytes is not None or _entries.DIRECTORY not in options._entries):
            return self._model_path or "", self._model_bytes, options._entries.get(_entries.DIRECTORY)
        try:
            data = self._contents()
            data = _model.changed(data, options, as_inputs)
        except ValueError:  # malformed: the engine says where
            return "", bytes(data), self._directory()
        if options.optimized_model_filepath and not as_inputs:
            least = int(options._entries.get(_entries.OPTIMIZED_BYTES, 1024))
            try:
                _model.write(data, options.optimized_model_filepath, self._directory(), options._entries.get(_entries.OPTIMIZED_FILE), least)
            except OSError as error:
                raise KelpError(f"cannot write the optimized model '{options.optimized_model_filepath}': {error.strerror}", Code.INVALID_ARGUMENT) from None
        return "", data, self._directory()

    def _check_seed(self):
        """Warns if set_seed was called and the model would need it."""
        types = _model.unseeded(self._contents())
        if types:
            warnings.warn(f"set_seed has no effect on {', '.join(types)}: without the attribute 'seed', each run draws other numbers", stacklevel=4)

    def _read_options(self):
        """Reads options from the metadata of the model, as ONNX Runtime does if ORT_LOAD_CONFIG_FROM_MODEL is 1."""
        import json
        entry = _model.metadata(self._contents(), "ort_config")
        for name, value in json.loads(entry or "{}").get("session_options", {}).items():
            kind = SessionOptions._TYPES.get(name)
            setattr(self._options, name, value if kind is str else int(value))

    def _fraction(self):
        done, total = self._progress()
        return done / total if total else 0

    def __getstate__(self):
        return {"path": self._model_path, "bytes": self._model_bytes, "options": self._options}

    def __setstate__(self, state):
        InferenceSession.__init__(self, state["path"] if state["bytes"] is None else state["bytes"], state["options"])

    # ---- running ----
    def run_async(self, output_names, input_feed, callback=None, user_data=None, run_options=None):
        """Runs the model on another thread.

        callback: called there with (results, user_data, message): the list of outputs and "", or an empty list and the failure.
        Returns a concurrent.futures.Future of the outputs, which can be awaited.

        >>> import asyncio, numpy, kelp
        >>> session = kelp.InferenceSession("examples/models/digits/1/model.onnx")
        >>> async def classify(image):
        ...     return (await session.run_async(["digit"], {"image": image}))[0].shape
        >>> asyncio.run(classify(numpy.zeros((2, 1, 8, 8), "float32")))
        (2,)
        """
        from ._future import submit
        if not (callback is None or callable(callback)):
            raise TypeError(f"callback: expected a function, found '{type(callback).__name__}'")

        def call():
            if callback is None:
                return self.run(output_names, input_feed, run_options)
            try:
                results = self.run(output_names, input_feed, run_options)
            except Exception as error:
                callback([], user_data, str(error))
                raise
            callback(results, user_data, "")
            return results
        return submit(call)

    def run_with_ort_values(self, output_names, input_dict_ort_values, run_options=None):
        """Runs the model on values of OrtValue, and returns a list of OrtValue. ONNX Runtime's extension module has the first two
        arguments in the other order, which is accepted."""
        if isinstance(output_names, dict):
            output_names, input_dict_ort_values = input_dict_ort_values, output_names
        for name, value in input_dict_ort_values.items():
            if not isinstance(value, OrtValue):
                raise TypeError(f"input '{name}': expected an OrtValue, found '{type(value).__name__}'")
        results = self.run(output_names, input_dict_ort_values, run_options)
        types = {value.name: value.type for value in self._outputs}
        names = output_names or list(types)
        return OrtValueVector(from_result(data, types.get(name)) for name, data in zip(names, results))

    def io_binding(self):
        """Creates an IOBinding, which binds inputs and outputs for several runs."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding, run_options=None):
        """Runs the model with the bound inputs and outputs."""
        iobinding._run(self, run_options)

    def _finished(self, nodes, begin_ns, end_ns, options):
        """Called after a run that the log or the trace wants, with (op_type, name, algorithm, duration_ns, end_ns) of each node."""
        if self._trace is not None:
            self._trace.add_run(nodes, begin_ns, end_ns, options)
        _log.finished(self._options, options, nodes, end_ns - begin_ns)

    def _overridden(self, feed):
        """Returns the session for a feed with more names than inputs: one for which the other names are inputs. None if they are no
        initializers that can be overridden. The sessions are kept."""
        inputs = {value.name for value in self._inputs}
        names = frozenset(name for name in feed if name not in inputs)
        if not all(map(self._is_overridable, names)):
            return None
        with self._overriding_lock:
            if names not in self._overriding:
                other = InferenceSession.__new__(InferenceSession)
                other._model_path, other._model_bytes, other._options = self._model_path, self._model_bytes, copy.copy(self._options)
                other._options.enable_profiling = False
                other._load(False, names)
                other._trace = self._trace
                other._observe(self._options.log_severity_level, self._trace is not None)
                self._overriding[names] = other
            return self._overriding[names]

    def _is_overridable(self, name):
        try:
            return any(value.name == name for value in self.get_overridable_initializers())
        except NoSuchFile:  # deleted since the model was loaded
            return False

    def _is_input(self, name):
        return any(value.name == name for value in self._inputs) or self._is_overridable(name)

    def end_profiling(self):
        """Ends the trace of a session with enable_profiling, writes it, and returns the path of the file: a JSON file that Perfetto and
        chrome://tracing open. Without enable_profiling, or after the end, returns ""."""
        if self._trace is None:
            return ""
        self._observe(self._options.log_severity_level, False)
        return self._trace.end()

    def get_profiling_start_time_ns(self):
        """Returns the time of time.monotonic_ns() that is 0 in the trace; 0 without enable_profiling."""
        return self._trace.begin_ns if self._trace is not None else 0

    # ---- description ----
    def get_inputs(self):
        """Returns the inputs, a list of NodeArg."""
        return list(self._inputs)

    def get_outputs(self):
        """Returns the outputs, a list of NodeArg."""
        return list(self._outputs)

    def get_overridable_initializers(self):
        """Returns the initializers that a run may override, a list of NodeArg: those that are also inputs of the graph. The first run that
        overrides some loads the model a second time, for which they are inputs."""
        if self._overridable is None:
            self._overridable = [NodeArg(name, *found) for name, found in _model.overridable(self._contents()).items()]
        return list(self._overridable)

    def get_modelmeta(self):
        """Returns the ModelMetadata of the model."""
        return ModelMetadata(self._meta())

    def get_session_options(self):
        """Returns the options of the session. Changing them has no effect on it."""
        return copy.copy(self._options)

    def get_input_memory_infos(self):
        """Returns the description of the memory of each input."""
        return [host_memory() for _ in self._inputs]

    def get_output_memory_infos(self):
        """Returns the description of the memory of each output."""
        return [host_memory() for _ in self._outputs]

    def get_input_epdevices(self):
        """Returns the device of each input."""
        return get_ep_devices() * len(self._inputs)

    def get_provider_graph_assignment_info(self):
        """Returns the nodes of the model by provider: an OrtEpAssignedSubgraph for each node. Requires the configuration entry
        session.record_ep_graph_assignment_info, as ONNX Runtime does."""
        if self._options._entries.get(_entries.RECORD_ASSIGNMENT) != "1":
            raise KelpError(f"Session configuration entry '{_entries.RECORD_ASSIGNMENT}' must be set to \"1\" to retrieve the assignment",
                            Code.UNKNOWN)
        return [OrtEpAssignedSubgraph(op, name, domain) for op, name, domain, _ in _model.nodes(self._contents())]

    # ---- providers ----
    def get_providers(self):
        """Returns the names of the providers that run the model."""
        return _providers.get_available_providers()

    def get_provider_options(self):
        """Returns {name: {}}: providers have no options."""
        return {name: {} for name in self.get_providers()}

    def set_providers(self, providers=None, provider_options=None):
        """Checks the providers. The model stays on the CPU."""
        _providers.check_providers(providers, provider_options)

    def enable_fallback(self):
        """Stores the choice. The CPU has no provider to fall back to, so that it never applies."""
        self._enable_fallback = True

    def disable_fallback(self):
        """Stores the choice. See enable_fallback."""
        self._enable_fallback = False

    # What libraries read of ONNX Runtime's sessions.
    @property
    def _sess(self):
        return self

    @property
    def _sess_options(self):
        return self._options

    _inputs_meta = property(get_inputs)
    _outputs_meta = property(get_outputs)

    def __repr__(self):
        model = repr(self._model_path) if self._model_path is not None else f"{len(self._model_bytes)} bytes"
        names = [f"{what}=[{', '.join(f'{v.name}: {v.type}{v.shape}' for v in values)}]"
                 for what, values in (("inputs", self._inputs), ("outputs", self._outputs))]
        return f"InferenceSession({model}, {', '.join(names)})"


def source_of(path_or_bytes):
    """Returns the path and None, or None and the bytes of a model."""
    if isinstance(path_or_bytes, (str, os.PathLike)):
        return os.fspath(path_or_bytes), None
    try:
        return None, path_or_bytes if isinstance(path_or_bytes, bytes) else bytes(memoryview(path_or_bytes))
    except TypeError:
        raise TypeError(f"path_or_bytes: expected a path or bytes, found '{type(path_or_bytes).__name__}'") from None


def load_error(error, path, data):
    """Returns the exception for a model that could not be loaded."""
    if data is None and is_plan(path) or data is not None and data.startswith(PLAN_MAGIC):
        what = f"'{path}' is" if data is None else "the bytes are"
        return KelpError(f"{what} a plan, not an ONNX model: load {'it' if data is None else 'them'} with kelp.Engine", Code.INVALID_ARGUMENT)
    cls = {Code.NOT_FOUND: NoSuchFile, Code.CANCELLED: ModelLoadCanceled, Code.UNIMPLEMENTED: UnsupportedModel}.get(error.code, type(error))
    if error.code == Code.INVALID_ARGUMENT:
        try:
            cls = InvalidGraph if _model.is_model(_model.read(path) if data is None else data) else InvalidProtobuf
        except OSError:  # a directory, for example
            pass
    return as_subclass(error, cls)
