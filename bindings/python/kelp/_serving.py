# SPDX-License-Identifier: Apache-2.0
"""kelp.Server: a model repository served in this process, through Triton's server API."""
import atexit
import concurrent.futures
import ctypes
import json
import math
import os
import queue
import struct
import sys
import weakref

import numpy

from . import _kelp, _native, _plugins
from ._error import Code, KelpError
from ._future import Future
from ._progress import Progress
from ._types import NUMPY_TYPES, TRITON_TYPES

__all__ = ["Server"]


def map_library():
    """Loads Kelp's libtritonserver.so globally, so that backends find its symbols. Fails if another one is loaded."""
    ours = _native.triton_library()
    for path in _kelp.mapped_libraries():
        if os.path.basename(path).startswith("libtritonserver.so") and os.path.realpath(path) != os.path.realpath(ours):
            raise KelpError(f"another libtritonserver.so is loaded in this process: '{path}'. Two servers cannot share a process, "
                            f"because backends find their symbols by name; expected '{ours}'", Code.FAILED_PRECONDITION)
    ctypes.CDLL(ours, mode=ctypes.RTLD_GLOBAL)


map_library()
from . import _server  # noqa: E402 (it links the library that was loaded above)

CONTROL = {"none": 0, "poll": 1, "explicit": 2}
SEQUENCE_START, SEQUENCE_END = 1, 2
OPEN = weakref.WeakSet()


def encode_strings(array):
    """Returns strings in Triton's format: each with a prefix of its length in 4 bytes."""
    parts = []
    for item in array.ravel().tolist():
        data = item if isinstance(item, bytes) else str(item).encode()
        parts += (struct.pack("<I", len(data)), data)
    return b"".join(parts)


def decode_strings(data, count):
    """Returns str objects, or bytes for invalid UTF-8."""
    items = numpy.empty(count, dtype=object)
    at = 0
    for i in range(count):
        length, = struct.unpack_from("<I", data, at)
        at += 4
        item = bytes(data[at:at + length])
        at += length
        try:
            items[i] = item.decode()
        except UnicodeDecodeError:
            items[i] = item
    return items


def encode(name, value):
    """Returns (name, Triton's type, shape, buffer). The buffer is the memory of a contiguous array."""
    array = numpy.asarray(value)
    if array.dtype.kind in "OUS":
        return name, "BYTES", array.shape, encode_strings(array)
    triton = TRITON_TYPES.get(array.dtype.name)
    if triton is None or not array.dtype.isnative:
        raise KelpError(f"input '{name}': Triton does not support numpy's type '{array.dtype}'", Code.INVALID_ARGUMENT)
    array = numpy.ascontiguousarray(array)
    return name, triton, numpy.shape(value) if array.ndim == 0 else array.shape, array.reshape(-1).view("u1")


def numpy_dtype(name, triton):
    """Returns numpy's dtype for a Triton type."""
    if triton == "BF16":
        try:
            import ml_dtypes
        except ImportError:
            raise KelpError(f"output '{name}' is BF16: numpy needs the package ml_dtypes", Code.UNIMPLEMENTED) from None
        return numpy.dtype(ml_dtypes.bfloat16)
    return numpy.dtype(NUMPY_TYPES[triton])


def decode(result):
    """Returns a dict from names to arrays on the memory that the model wrote. Raises errors."""
    if isinstance(result, BaseException):
        raise result
    outputs = {}
    for name, triton, shape, memory in result:
        if triton == "BYTES":
            outputs[name] = decode_strings(memoryview(memory), math.prod(shape)).reshape(shape)
        else:
            outputs[name] = numpy.frombuffer(memory, dtype=numpy_dtype(name, triton)).reshape(shape)
    return outputs


def what_is_loaded(paths, models, control):
    """Describes the loading of models."""
    names = list(models)
    if control != "explicit":
        for path in paths:
            try:
                names += (entry.name for entry in os.scandir(path) if entry.is_dir())
            except OSError:
                pass  # the server logs it
    return names[0] if len(names) == 1 else f"{len(names)} models"


class Server:
    """Serves model repositories in this process.

    repositories: a path, or a list of them.
    control: "none" loads all models at startup; "explicit" loads those in `models` and on request; "poll" reloads changed models.
    backend_directory: directory with NAME/libtriton_NAME.so; None: that of the package.
    strict_config: every model must have a complete config.pbtxt; otherwise it is completed from the model.
    exit_on_error: whether a model that does not load is an error.
    log: whether the server writes its log to stderr.
    progress: whether to draw a progress bar on stderr; None: in a terminal or notebook, unless KELP_NO_PROGRESS is set or the server
        logs.
    plugins: plug-in libraries (kelp/plugin.h) for models of the built-in backend: paths, or tuples (path, {setting: value}).

    >>> import numpy, kelp
    >>> with kelp.Server("examples/models", control="explicit", models=["digits"]) as server:
    ...     outputs = server.infer("digits", {"image": numpy.zeros((1, 1, 8, 8), "float32")})
    >>> outputs["probabilities"].shape
    (1, 10)
    """

    _core = None

    def __init__(self, repositories, *, control="none", models=(), backend_directory=None, server_id=None, strict_config=False,
                 exit_on_error=True, exit_timeout=30, log=False, verbose=0, progress=None, plugins=()):
        if control not in CONTROL:
            raise KelpError(f"invalid control '{control}': expected one of {', '.join(CONTROL)}", Code.INVALID_ARGUMENT)
        if isinstance(repositories, (str, os.PathLike)):
            repositories = [repositories]
        backends = os.fspath(backend_directory) if backend_directory else _native.folder("backends")
        plugins = _plugins.as_text(plugins)
        paths, models = [os.fspath(path) for path in repositories], list(models)
        self._show = False if progress is None and (log or verbose) else progress
        with Progress("loading " + what_is_loaded(paths, models, control), asked=self._show):
            self._core = _server.Server(paths, models, CONTROL[control], backends, server_id, strict_config, verbose, log, exit_timeout,
                                        exit_on_error, plugins)
        OPEN.add(self)

    def close(self):
        """Waits for requests in flight, unloads the models and stops the server. May be called twice, but not from a callback of a future."""
        if self._core is not None:
            self._core.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if not sys.is_finalizing():
            self.close()

    @property
    def live(self):
        """Whether the server is running."""
        return self._core.state("live", None, -1)

    @property
    def ready(self):
        """Whether the server accepts requests."""
        return self._core.state("ready", None, -1)

    def model_ready(self, model, version=-1):
        """Returns whether a model accepts requests; version -1 is the latest."""
        return self._core.state("model", model, version)

    @property
    def models(self):
        """The models of the repositories: a list of dicts with 'name' and, if known, 'version', 'state', 'reason'."""
        return json.loads(self._core.message("index", "", -1))

    def metadata(self, model=None, version=-1):
        """Returns the metadata of a model or of the server, as in the KServe v2 protocol."""
        return json.loads(self._core.message("metadata" if model else "server", model or "", version))

    def config(self, model, version=-1):
        """Returns the completed configuration of a model."""
        return json.loads(self._core.message("config", model, version))

    def statistics(self, model="", version=-1):
        """Returns the statistics of models."""
        return json.loads(self._core.message("t", model, version))

    def metrics(self):
        """Returns the metrics in Prometheus' text format."""
        return self._core.metrics()

    def load(self, model, config=None):
        """Loads a model, or reloads it if it has changed. Requires control="explicit". config: a dict that replaces the model's
        config.pbtxt."""
        with Progress(f"loading {model}", asked=self._show):
            self._core.load(model, None if config is None else json.dumps(config))

    def unload(self, model, dependents=False):
        """Unloads a model. Requires control="explicit"."""
        self._core.unload(model, dependents)

    def _submit(self, callback, model, inputs, outputs, version, request_id, sequence_id, sequence_start, sequence_end, priority,
                timeout_us, parameters):
        return self._core.infer(model, version, [encode(name, value) for name, value in inputs.items()], list(outputs or ()),
                                dict(parameters or {}), callback, request_id, sequence_id,
                                SEQUENCE_START * bool(sequence_start) | SEQUENCE_END * bool(sequence_end), priority, timeout_us)

    def infer(self, model, inputs, outputs=None, *, version=-1, request_id=None, sequence_id=None, sequence_start=False, sequence_end=False,
              priority=0, timeout_us=0, parameters=None):
        """Runs a model and waits for its response, without holding the GIL.

        inputs: a dict of names to arrays; contiguous ones are read in place. Strings: arrays of str or bytes.
        outputs: names of the requested outputs; None: all.
        version: version of the model; -1: the latest.
        sequence_id: an int or str; sequence_start, sequence_end: whether the request is the first or last of the sequence.
        priority: 0 is the default of the model. timeout_us: time limit in the queue; 0: that of the model.
        parameters: a dict for the backend.
        Returns a dict of names to numpy arrays. Ctrl-C cancels the request and interrupts the wait.
        """
        results = self._submit(None, model, inputs, outputs, version, request_id, sequence_id, sequence_start, sequence_end, priority,
                               timeout_us, parameters)
        if len(results) != 1:
            raise KelpError(f"model '{model}' sent {len(results)} responses, expected one: use infer_stream",
                            Code.FAILED_PRECONDITION)
        return decode(results[0])

    def infer_async(self, model, inputs, outputs=None, *, version=-1, request_id=None, sequence_id=None, sequence_start=False,
                    sequence_end=False, priority=0, timeout_us=0, parameters=None):
        """Starts an inference, as infer does, and returns a concurrent.futures.Future, which can be awaited. Do not change the inputs until
        it is done."""
        future = Future()
        future.set_running_or_notify_cancel()
        kept = []

        def on_result(result, final):
            if result is not None:
                kept.append(result)
            if not final:
                return
            try:
                if len(kept) != 1:
                    raise KelpError(f"model '{model}' sent {len(kept)} responses, expected one: use infer_stream",
                                    Code.FAILED_PRECONDITION)
                future.set_result(decode(kept[0]))
            except BaseException as error:
                future.set_exception(error)
        self._submit(on_result, model, inputs, outputs, version, request_id, sequence_id, sequence_start, sequence_end, priority, timeout_us,
                     parameters)
        return future

    def infer_stream(self, model, inputs, outputs=None, *, version=-1, request_id=None, sequence_id=None, sequence_start=False,
                     sequence_end=False, priority=0, timeout_us=0, parameters=None):
        """Runs a decoupled model and yields a dict for each response. The parameters are those of infer."""
        arrived = queue.SimpleQueue()
        self._submit(lambda result, final: arrived.put((result, final)), model, inputs, outputs, version, request_id, sequence_id,
                     sequence_start, sequence_end, priority, timeout_us, parameters)

        def responses():
            final = False
            while not final:
                result, final = arrived.get()
                if result is not None:
                    yield decode(result)
        return responses()


# The threads of a server must end before the interpreter.
@atexit.register
def close_all():
    """Closes all open servers."""
    for server in list(OPEN):
        server.close()
