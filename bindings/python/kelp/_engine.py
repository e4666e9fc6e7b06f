# SPDX-License-Identifier: Apache-2.0
"""Engines loaded from plan files, and contexts that run them."""
import ctypes
import json
import os
import threading

import numpy

from . import _capi, _kelp, _plugins
from ._capi import call, get, library, make
from ._error import Code, KelpError
from ._handle import Handle

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


def refused(what, name, infos):
    """Returns the error for an unknown name."""
    return KelpError(f"unknown {what} '{name}': expected one of {', '.join(info.name for info in infos)}", Code.NOT_FOUND)


def allocator(made, given, failures):
    """Returns a callback that provides the memory of outputs: bytes of `given`, or new arrays in `made`. It cannot raise; exceptions are
    appended to `failures`."""
    def allocate(_, index, tensor, size):
        try:
            if index in given:
                name, room = given[index]
                if size > room.size:
                    raise KelpError(f"the array for output '{name}' is too small: expected {size} bytes, found {room.size}",
                                    Code.OUT_OF_RANGE)
                made[index] = room
                return room.ctypes.data
            made[index] = room = numpy.empty(max(size, 1), "uint8")
            return room.ctypes.data
        except BaseException as error:
            failures.append(error)
            return None
    return allocate


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


class Context(Handle):
    """The state of runs of an engine: schedules and memory. Created by `Engine.create_context`. Not thread-safe.

    profile: index of the optimization profile that limits the shapes; None: any shapes, or the only profile.
    """

    def __init__(self, engine, profile=None):
        self._pointer = None
        if not isinstance(engine, Engine):
            raise TypeError(f"engine: expected a kelp.Engine, found '{type(engine).__name__}'")
        # not the engine itself, which keeps contexts for `run`: avoids a reference cycle
        self._inputs, self._outputs, self._kept = engine.inputs, engine.outputs, engine._kept
        self._input_index, self._output_index = engine._input_index, engine._output_index
        self._pointer = make("context_create", engine._pointer)
        self._made, self._given, self._failures = {}, {}, []
        self._place = _capi.PLACE(allocator(self._made, self._given, self._failures))
        if profile is not None:
            call("context_set_profile", self._pointer, profile)
        try:
            for i in range(len(engine.outputs)):
                call("context_set_output_allocator", self._pointer, i, ctypes.cast(self._place, ctypes.c_void_p), None)
            self._asks = True
        except KelpError as error:  # outputs of providers without output allocators are copied
            if error.code != Code.UNIMPLEMENTED:
                raise
            self._asks = False

    def __del__(self):
        pointer, self._pointer = getattr(self, "_pointer", None), None
        if pointer:
            library.kelp_context_destroy(pointer)

    def run(self, inputs, out=None):
        """Runs the engine with {name: array} of all inputs, and returns {name: array} of all outputs.

        Inputs are used in place: contiguous arrays of the input's type, from numpy or any object with DLPack or the buffer protocol.
        Outputs are written to the arrays of `out`, {name: array} of at least as many bytes, or to new arrays. The returned arrays have
        the shapes of the outputs. The GIL is released during the run; Ctrl-C cancels it.
        """
        bound = []
        self._made.clear()
        self._failures.clear()
        try:
            self._give(out or {})
            for name in inputs:
                if name not in self._input_index:
                    raise refused("input", name, self._inputs)
            for index, info in enumerate(self._inputs):
                if info.name not in inputs:
                    raise KelpError(f"missing input '{info.name}': expected {info.dtype} {info.shape}", Code.INVALID_ARGUMENT)
                bound.append(self._bind(index, info, _capi.as_array(inputs[info.name])))
            _kelp.invoke(self._pointer)
        except KelpError:
            if self._failures:
                raise self._failures[0] from None
            raise
        finally:
            self._given.clear()
        del bound
        return {info.name: self._result(i) for i, info in enumerate(self._outputs)}

    def _give(self, out):
        for name, value in out.items():
            if name not in self._output_index:
                raise refused("output", name, self._outputs)
            index = self._output_index[name]
            array, info = _capi.as_array(value), self._outputs[index]
            if array is not value and not hasattr(type(value), "__dlpack__"):
                raise KelpError(f"invalid memory for output '{name}': expected an array, found {type(value).__name__}", Code.INVALID_ARGUMENT)
            if not self._asks:
                raise KelpError(f"output '{name}' cannot be in `out`: the provider uses its own memory",
                                Code.UNIMPLEMENTED)
            if _capi.dtype_number(array.dtype) != info._number or not array.flags.writeable or not array.flags.c_contiguous:
                raise KelpError(f"invalid array for output '{name}': expected a contiguous, writable array of {info.dtype}, "
                                f"found {array.dtype}, {'writable' if array.flags.writeable else 'read-only'}, "
                                f"strides {array.strides}", Code.INVALID_ARGUMENT)
            if array.dtype.name in _capi.PACKED:
                raise KelpError(f"output '{name}' cannot be in `out`: elements of {info.dtype} are unpacked", Code.UNIMPLEMENTED)
            self._given[index] = name, array.reshape(-1).view("uint8")

    def _bind(self, index, info, array):
        what = f"input '{info.name}'"
        if info.dtype == "list":
            raise KelpError(f"{what} is a sequence, an optional or a map, which kelp.Engine does not take: run the ONNX model with "
                            "kelp.InferenceSession", Code.UNIMPLEMENTED)
        if array.ndim > _capi.MAX_RANK:
            raise KelpError(f"{what} has {array.ndim} dimensions: expected at most {_capi.MAX_RANK}", Code.INVALID_ARGUMENT)
        array_bytes = _capi.array_bytes(array, what)
        tensor = _capi.CTensor(data=array_bytes.ctypes.data, dtype=_capi.dtype_number(array.dtype), rank=array.ndim, device_type=1,
                               flags=1)
        stride = 1
        for i in reversed(range(array.ndim)):
            tensor.shape[i], tensor.strides[i] = array.shape[i], stride
            stride *= array.shape[i]
        call("context_set_input", self._pointer, index, ctypes.byref(tensor))
        return array_bytes

    def _result(self, index):
        if self._outputs[index].dtype == "list":
            raise KelpError(f"output '{self._outputs[index].name}' is a sequence, an optional or a map, which kelp.Engine does not return: "
                            "run the ONNX model with kelp.InferenceSession", Code.UNIMPLEMENTED)
        tensor = library.kelp_context_output(self._pointer, index).contents
        dtype, extents = _capi.numpy_dtype(tensor.dtype), tensor.shape[:tensor.rank]
        count = int(numpy.prod(extents, dtype="int64"))
        size = (count * (_capi.PACKED.get(dtype.name) or dtype.itemsize * 8) + 7) // 8
        room = self._made.pop(index, None)
        if size and (room is None or tensor.data != room.ctypes.data):
            room = numpy.frombuffer(bytearray(ctypes.string_at(tensor.data, size)), "uint8")
        return _capi.unpack(numpy.empty(0, "uint8") if not size else room[:size], dtype, extents)

    def cancel(self):
        """Cancels the run in flight from any thread: it raises KelpError, code CANCELLED, within milliseconds."""
        library.kelp_context_cancel(self._pointer)


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
        self._lock, self._idle = threading.Lock(), []
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
        pieces = []
        write = _capi.WRITE(lambda _, text, length: pieces.append(ctypes.string_at(text, length)))
        call("engine_inspect", self._pointer, format == "json", ctypes.cast(write, ctypes.c_void_p), None)
        text = b"".join(pieces).decode()
        return json.loads(text) if format == "json" else text

    @property
    def refittable(self):
        """Returns the names of the weights that a refit can replace."""
        return [get("engine_refittable", self._pointer, i) for i in range(get("engine_refittable_count", self._pointer))]

    def refit(self, weights):
        """Replaces weights, {name: array}, all or none. They are copied. The engine must not run at the same time."""
        made = [_capi.weights(array, f"weights '{name}'") for name, array in weights.items()]
        table = (_capi.Weights * max(len(made), 1))(*[item[0] for item in made])
        names = [name.encode() for name in weights]
        for i, name in enumerate(names):
            table[i].name = name
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

