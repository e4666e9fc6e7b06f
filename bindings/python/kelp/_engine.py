# SPDX-License-Identifier: Apache-2.0
"""Runtimes, and engines loaded from plan files."""
import ctypes
import json
import os
import threading

import numpy

from . import _capi, _plugins
from ._capi import call, get, library, make
from ._context import Context, checked_profile
from ._error import Code, KelpError
from ._handle import Handle
from ._stream import Gate

__all__ = ["Context", "Engine", "IoInfo", "Runtime"]

LEVELS = ("error", "warning", "info", "verbose")


class IoInfo(Handle):
    """An input or output: `name`, `dtype` ("float32"), `shape` (-1: dynamic dimension; None: unknown rank), `symbols` (names of
    dynamic dimensions, or None)."""

    __slots__ = ("_number", "dtype", "name", "shape", "symbols")
    CREATED_BY = "Engine.inputs and Engine.outputs"

    def _init(self, info):
        self.name = info.name.decode()
        self._number = info.dtype
        self.dtype = _capi.dtype_name(info.dtype)
        self.shape = None if info.rank < 0 else tuple(info.shape[:info.rank])
        self.symbols = tuple(text and text.decode() for text in info.symbols[:max(info.rank, 0)])

    def __repr__(self):
        return f"IoInfo(name={self.name!r}, dtype={self.dtype!r}, shape={self.shape!r})"


def written(name, *arguments):
    """Calls a function that passes bytes to a callback, and returns the bytes."""
    pieces = []
    write = _capi.WRITE(lambda _, text, length: pieces.append(ctypes.string_at(text, length)))
    call(name, *arguments, ctypes.cast(write, ctypes.c_void_p), None)
    return b"".join(pieces)


class Runtime(Handle):
    """The threads and the log of engines. Engines keep a reference.

    threads: threads of a run, including the calling thread; 0: all CPUs.
    log: called from any thread as log(level, message), with level "error", "warning", "info" or "verbose"; None: no log.
    log_level: the most verbose level to log.
    plugins: plug-in libraries (kelp/plugin.h) with operators or providers: paths, or tuples (path, {setting: value}).
    """

    def __init__(self, threads=0, log=None, log_level="info", plugins=()):
        if log_level not in LEVELS:
            raise KelpError(f"unknown log level '{log_level}': expected one of {', '.join(LEVELS)}", Code.INVALID_ARGUMENT)
        self._pointer = self._log = None
        plugins = _plugins.as_text(plugins)
        if log is None:  # shared by all with the same number of threads and plug-in libraries
            self._borrowed = _capi.runtime(threads, plugins)
            return

        def tell(_, level, file, line, text, length):
            log(LEVELS[min(max(level, 0), 3)], ctypes.string_at(text, length).decode(errors="replace"))
        self._log = _capi.LOG(tell)
        given = _capi.options(_capi.RuntimeOptions, threads=threads, log=ctypes.cast(self._log, ctypes.c_void_p),
                              log_level=LEVELS.index(log_level))
        self._borrowed = self._pointer = _capi.new_runtime(given, plugins)

    def __del__(self):
        pointer, self._pointer = getattr(self, "_pointer", None), None
        if pointer:
            library.kelp_runtime_release(pointer)

    def load(self, plan_or_path):
        """Does the same as `Engine(plan_or_path, runtime=self)`."""
        return Engine(plan_or_path, runtime=self)


class Engine(Handle):
    """An engine that is ready to run, loaded from a plan.

    plan_or_path: a Plan, bytes, or the path of a file, which is mapped so that its weights are used in place.
    threads: threads of a run, including the calling thread; 0: all CPUs.
    runtime: a Runtime, whose threads and log are used; None: one with `threads`.

    inputs, outputs: lists of IoInfo; provider: name of the provider; refittable: names of the weights that a refit can replace.

    `run` is thread-safe.
    """

    def __init__(self, plan_or_path, threads=0, *, runtime=None):
        if not (runtime is None or isinstance(runtime, Runtime)):
            raise TypeError(f"runtime: expected a kelp.Runtime or None, found '{type(runtime).__name__}'")
        runtime = runtime or Runtime(threads)
        if isinstance(plan_or_path, (str, os.PathLike)):
            pointer, self._kept = make("engine_load_file", runtime._borrowed, os.fsencode(plan_or_path)), runtime
        else:
            try:
                data = plan_or_path if isinstance(plan_or_path, bytes) else bytes(memoryview(plan_or_path))
            except TypeError:
                raise TypeError(f"plan_or_path: expected a path or bytes, found '{type(plan_or_path).__name__}'") from None
            image = numpy.frombuffer(data, "uint8")
            pointer = make("engine_load", runtime._borrowed, image.ctypes.data, len(data), b"plan", None, None)
            self._kept = runtime, image
        self._pointer = pointer
        self._lock, self._idle, self._gate = threading.Lock(), [], Gate()
        self.inputs = [IoInfo._made(get("engine_input", pointer, i).contents) for i in range(get("engine_input_count", pointer))]
        self.outputs = [IoInfo._made(get("engine_output", pointer, i).contents) for i in range(get("engine_output_count", pointer))]
        self._input_index = {info.name: i for i, info in enumerate(self.inputs)}
        self._output_index = {info.name: i for i, info in enumerate(self.outputs)}
        self.provider = get("engine_provider_name", pointer)

    def __del__(self):
        pointer, self._pointer = getattr(self, "_pointer", None), None
        if pointer:
            self._idle.clear()
            library.kelp_engine_release(pointer)

    @classmethod
    def load(cls, plan_or_path, threads=0):
        """Does the same as `Engine(plan_or_path, threads)`."""
        return cls(plan_or_path, threads)

    def create_context(self, profile=None):
        """Creates a Context, limited to the shapes of a profile if one is specified."""
        return Context(self, profile)

    def run(self, inputs, out=None):
        """Does the same as `Context.run`, in a context that no other thread is using."""
        with self._lock:
            context = self._idle.pop() if self._idle else None
        context = context or Context(self)
        try:
            return context.run(inputs, out)
        finally:
            with self._lock:
                self._idle.append(context)

    def inspect(self, format="json"):
        """Describes the engine: "json" returns dicts and lists, "text" returns text."""
        text = written("engine_inspect", self._pointer, format == "json").decode()
        return json.loads(text) if format == "json" else text

    def workspace_bytes(self, profile=0):
        """Returns how many bytes `Context.set_workspace` needs for the largest shapes of a profile. Without profiles, the shapes of all
        inputs must be fixed."""
        size = ctypes.c_size_t()
        call("engine_workspace_bytes", self._pointer, checked_profile(profile), ctypes.byref(size))
        return size.value

    @property
    def stats(self):
        """The counters of the engine, a dict: nodes_planned, weight_bytes_packed and others of kelp_engine_stats."""
        return _capi.as_dict(library.kelp_engine_get_stats(self._pointer))

    # ---- engines on a device; other providers raise KelpError, code UNIMPLEMENTED ----
    def set_runtime_cache(self, data):
        """Supplies kernels that an earlier process compiled: the bytes of `runtime_cache`. Call it before creating contexts."""
        image = numpy.frombuffer(data, "uint8")
        call("engine_set_runtime_cache", self._pointer, image.ctypes.data, image.size)

    def runtime_cache(self):
        """Returns the kernels that were compiled so far, as bytes for another process."""
        return written("engine_write_runtime_cache", self._pointer)

    @property
    def streamable_weights(self):
        """The number of bytes of weights that may stay in host memory, in plans built with BuilderFlag.WEIGHT_STREAMING."""
        size = ctypes.c_size_t()
        call("engine_streamable_weights", self._pointer, ctypes.byref(size))
        return size.value

    def set_weight_budget(self, device_bytes):
        """Limits how many bytes of streamable weights are kept on the device. Call it before creating contexts."""
        if device_bytes < 0:
            raise KelpError(f"a weight budget cannot be {device_bytes} bytes", Code.INVALID_ARGUMENT)
        call("engine_set_weight_budget", self._pointer, min(device_bytes, 2 ** 64 - 1))

    @property
    def refittable(self):
        """Returns the names of the weights that a refit can replace."""
        return [get("engine_refittable", self._pointer, i) for i in range(get("engine_refittable_count", self._pointer))]

    def refit(self, weights):
        """Replaces weights, {name: array}, all or none. They are copied. Fails while the engine runs: KelpError, code
        FAILED_PRECONDITION. Recordings must be made again."""
        made = [_capi.weights(array, f"weights '{name}'") for name, array in weights.items()]
        table = (_capi.Weights * max(len(made), 1))(*[item[0] for item in made])
        names = [name.encode() for name in weights]
        for i, name in enumerate(names):
            table[i].name = name
        with self._gate:
            call("engine_refit", self._pointer, ctypes.byref(table), len(made))

    @property
    def profiles(self):
        """Returns the optimization profiles: a list of {input: (min, opt, max)}."""
        found = []
        for profile in range(get("engine_profile_count", self._pointer)):
            bounds = {}
            for index, info in enumerate(self.inputs):
                shapes = []
                for which in range(3):
                    shape = _capi.Shape()
                    if get("engine_profile_shape", self._pointer, profile, index, which, ctypes.addressof(shape)):
                        shapes.append(tuple(shape.d[:shape.rank]))
                if len(shapes) == 3:
                    bounds[info.name] = tuple(shapes)
            found.append(bounds)
        return found

    def __repr__(self):
        return f"<engine of {self.provider}: {self.inputs} -> {self.outputs}>"

