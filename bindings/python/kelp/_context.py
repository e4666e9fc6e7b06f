# SPDX-License-Identifier: Apache-2.0
"""Contexts, which run engines: bound arrays, streams and recordings."""
import ctypes
import threading
import weakref

import numpy

from . import _capi, _kelp
from ._capi import call, get, library, make
from ._error import Code, KelpError
from ._handle import Handle
from ._stream import Event, Stream

HOST = 1  # kDLCPU


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


def pins(array):
    """Returns weak references to an array and those that own its memory. numpy does not resize an array with weak references."""
    kept = []
    while isinstance(array, numpy.ndarray):
        kept.append(weakref.ref(array))
        array = array.base
    return kept


def checked_profile(profile):
    """Returns the index of a profile; ctypes would truncate a large one."""
    if not 0 <= profile < 2 ** 32:
        raise KelpError(f"there is no profile {profile}", Code.OUT_OF_RANGE)
    return profile


def device_of(value):
    """Returns the DLPack device of an object, (device type, number)."""
    ask = None if isinstance(value, numpy.ndarray) else getattr(type(value), "__dlpack_device__", None)
    return (HOST, 0) if ask is None else tuple(int(number) for number in ask(value))


def described(address, dtype, shape, device=(HOST, 0)):
    """Returns a kelp_tensor of compact elements."""
    tensor = _capi.CTensor(data=address, dtype=dtype, rank=len(shape), device_type=device[0], device_id=device[1], flags=1)
    stride = 1
    for i in reversed(range(len(shape))):
        tensor.shape[i], tensor.strides[i] = shape[i], stride
        stride *= shape[i]
    return tensor


class Bound:
    """An array that is bound to a context: it is kept alive, and numpy does not resize it."""

    __slots__ = ("array", "device", "kept", "tensor", "value")

    def __init__(self, value, what, writable=False):
        self.value, self.device = value, device_of(value)
        if self.device[0] != HOST:
            self.array, self.kept = None, _kelp.DLTensor(value)
            strides, stride = self.kept.strides, 1
            for extent, step in reversed(list(zip(self.kept.shape, strides))):
                if extent != 1 and step != stride:
                    raise KelpError(f"{what} is not contiguous: its shape is {self.kept.shape} and its strides are {strides}",
                                    Code.INVALID_ARGUMENT)
                stride *= extent
            self.tensor = described(self.kept.pointer, _capi.dtype_number(self.kept.dtype), self.kept.shape, self.device)
            return
        self.array = _capi.as_array(value)
        if self.array.dtype.name in _capi.PACKED:
            raise KelpError(f"{what} cannot be bound: elements of {self.array.dtype} are packed in Kelp and not in numpy: pass them to "
                            "Context.run", Code.UNIMPLEMENTED)
        if self.array.ndim > _capi.MAX_RANK:
            raise KelpError(f"{what} has {self.array.ndim} dimensions: expected at most {_capi.MAX_RANK}", Code.INVALID_ARGUMENT)
        _capi.array_bytes(self.array, what)
        if writable and not self.array.flags.writeable:
            raise KelpError(f"{what} is read-only: expected a writable array", Code.INVALID_ARGUMENT)
        if writable and self.array is not value and not hasattr(type(value), "__dlpack__"):
            try:
                memoryview(value)  # a buffer has memory of its own; a list does not
            except TypeError:
                raise KelpError(f"{what} has no memory: expected an array, found {type(value).__name__}", Code.INVALID_ARGUMENT) from None
        self.kept = pins(self.array)
        self.tensor = described(self.array.ctypes.data, _capi.dtype_number(self.array.dtype), self.array.shape)

    @property
    def size(self):
        """The size in bytes."""
        return self.array.nbytes if self.array is not None else numpy.prod(self.kept.shape, dtype="int64") * _capi.dtype_bytes(self.tensor.dtype)


class Use:
    """One call that uses a context: fails if another one is in progress."""

    __slots__ = ("context",)

    def __init__(self, context):
        self.context = context

    def __enter__(self):
        context = self.context
        if not context._lock.acquire(blocking=False):
            raise KelpError("the context is used by another thread: create a context for each thread", Code.FAILED_PRECONDITION)
        try:
            if context._native or (context._flight is not None and not context._flight.done):
                raise KelpError("the context has an inference in flight: wait for its event or synchronize the stream",
                                Code.FAILED_PRECONDITION)
            context._gate.enter()
        except BaseException:
            context._lock.release()
            raise
        context._flight = None
        return context

    def __exit__(self, *_):
        self.context._gate.leave()
        self.context._lock.release()


class Context(Handle):
    """The state of runs of an engine: schedules, memory and bound arrays. Created by `Engine.create_context`. Not thread-safe: a call
    fails while another thread uses the context or while an enqueued inference runs.

    profile: index of the optimization profile that limits the shapes; None: any shapes, or the only profile.
    """

    def __init__(self, engine, profile=None):
        from ._engine import Engine
        self._pointer = None
        if not isinstance(engine, Engine):
            raise TypeError(f"engine: expected a kelp.Engine, found '{type(engine).__name__}'")
        # not the engine itself, which keeps contexts for `run`: avoids a reference cycle
        self._inputs, self._outputs, self._kept = engine.inputs, engine.outputs, engine._kept
        self._input_index, self._output_index = engine._input_index, engine._output_index
        self._gate, self._lock = engine._gate, threading.Lock()
        self._flight = self._native = self._profiler = self._workspace = None
        self._bound, self._placed = {}, {}
        self._made, self._given, self._failures = {}, {}, []
        self._pointer = make("context_create", engine._pointer)
        self._place = _capi.PLACE(allocator(self._made, self._given, self._failures))
        if profile is not None:
            call("context_set_profile", self._pointer, checked_profile(profile))
        try:
            for i in range(len(engine.outputs)):
                self._ask(i)
            self._asks = True
        except KelpError as error:  # outputs of providers without output allocators are copied
            if error.code != Code.UNIMPLEMENTED:
                raise
            self._asks = False

    def __del__(self):
        pointer, self._pointer = getattr(self, "_pointer", None), None
        flight = getattr(self, "_flight", None)
        if pointer and (flight is None or flight._join()):
            library.kelp_context_destroy(pointer)

    def _ask(self, index):
        call("context_set_output_allocator", self._pointer, index, ctypes.cast(self._place, ctypes.c_void_p), None)

    def _raise(self, error):
        if self._failures:
            raise self._failures[0] from None
        raise error

    # ---- one call for inputs and outputs ----
    def run(self, inputs, out=None):
        """Runs the engine with {name: array} of all inputs, and returns {name: array} of all outputs.

        Inputs are used in place: contiguous arrays of the input's type, from numpy or any object with DLPack or the buffer protocol.
        Outputs are written to the arrays of `out`, {name: array} of at least as many bytes, or to new arrays. The returned arrays have
        the shapes of the outputs. The GIL is released during the run; Ctrl-C cancels it. Arrays that `set_input` bound are bound again
        afterwards; recordings must be made again.
        """
        with Use(self):
            kept = []
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
                    kept.append(self._bind(index, info, _capi.as_array(inputs[info.name])))
                _kelp.invoke(self._pointer)
                return self._results()
            except KelpError as error:
                self._raise(error)
            finally:
                self._given.clear()
                self._made.clear()
                for index, bound in self._bound.items():
                    call("context_set_input", self._pointer, index, ctypes.byref(bound.tensor))
                del kept

    def _give(self, out):
        for name, value in out.items():
            if name not in self._output_index:
                raise refused("output", name, self._outputs)
            index = self._output_index[name]
            array, info = _capi.as_array(value), self._outputs[index]
            if index in self._placed:
                raise KelpError(f"output '{name}' cannot be in `out`: set_output has bound it", Code.FAILED_PRECONDITION)
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
        self._check_tensor(info, what)
        if array.ndim > _capi.MAX_RANK:
            raise KelpError(f"{what} has {array.ndim} dimensions: expected at most {_capi.MAX_RANK}", Code.INVALID_ARGUMENT)
        array_bytes = _capi.array_bytes(array, what)
        tensor = described(array_bytes.ctypes.data, _capi.dtype_number(array.dtype), array.shape)
        call("context_set_input", self._pointer, index, ctypes.byref(tensor))
        return array_bytes

    @staticmethod
    def _check_tensor(info, what):
        if info.dtype == "list":
            raise KelpError(f"{what} is a sequence, an optional or a map, which kelp.Engine does not support: run the ONNX model with "
                            "kelp.InferenceSession", Code.UNIMPLEMENTED)

    # ---- bound arrays ----
    def set_input(self, name, array):
        """Binds an array to an input, for `invoke`, `enqueue`, `capture` and `prepare`.

        The array is used in place, and kept alive while it is bound: its elements may change between runs, and numpy does not resize
        it. It must be contiguous and of the input's type. Objects with DLPack may be on the device of the engine.
        """
        with Use(self):
            if name not in self._input_index:
                raise refused("input", name, self._inputs)
            index, what = self._input_index[name], f"input '{name}'"
            self._check_tensor(self._inputs[index], what)
            bound = Bound(array, what)
            call("context_set_input", self._pointer, index, ctypes.byref(bound.tensor))
            self._bound[index] = bound

    def set_output(self, name, array):
        """Binds an array to an output: every run writes to it. None: every run writes to a new array, as by default.

        The array must be contiguous, writable, of the output's type, and at least as large as the output. It is kept alive while it is
        bound, and numpy does not resize it. Objects with DLPack may be on the device of the engine.
        """
        with Use(self):
            if name not in self._output_index:
                raise refused("output", name, self._outputs)
            index, what = self._output_index[name], f"output '{name}'"
            if array is None:
                self._release_output(index)
                return
            info = self._outputs[index]
            self._check_tensor(info, what)
            bound = Bound(array, what, writable=True)
            if info._number and bound.tensor.dtype != info._number:
                raise KelpError(f"{what} has the wrong type: expected {info.dtype}, found {_capi.dtype_name(bound.tensor.dtype)}",
                                Code.INVALID_ARGUMENT)
            if info._number and info.shape is not None and -1 not in info.shape:
                needed = int(numpy.prod(info.shape, dtype="int64")) * _capi.dtype_bytes(info._number)
                if bound.size < needed:
                    raise KelpError(f"the array for {what} is too small: expected {needed} bytes for {list(info.shape)}, found {bound.size}",
                                    Code.INVALID_ARGUMENT)
            self._place_output(index, bound)

    def _place_output(self, index, bound):
        call("context_set_output", self._pointer, index, bound.tensor.data, int(bound.size))
        try:
            call("context_set_output_device", self._pointer, index, _capi.Device(*bound.device))
        except BaseException:
            self._release_output(index)
            raise
        self._placed[index] = bound

    def _release_output(self, index):
        if self._asks:
            self._ask(index)
        else:
            call("context_set_output", self._pointer, index, None, 0)
        call("context_set_output_device", self._pointer, index, _capi.Device(HOST, 0))
        self._placed.pop(index, None)

    def set_profile(self, profile):
        """Selects an optimization profile. Inputs must be bound again."""
        with Use(self):
            call("context_set_profile", self._pointer, checked_profile(profile))
            self._bound.clear()

    def set_workspace(self, memory):
        """Sets the memory for activations: an array, whose address must be a multiple of 64, a number of bytes to allocate, or None for
        memory that grows as needed. `Engine.workspace_bytes` returns the size. Contexts may share an array if they do not run at the same
        time. The array is kept alive. A run that needs more fails: KelpError, code RESOURCE_EXHAUSTED."""
        with Use(self):
            if memory is None:
                call("context_set_workspace", self._pointer, None, 0)
                self._workspace = None
                return
            if isinstance(memory, (int, numpy.integer)):
                if memory < 0:
                    raise KelpError(f"a workspace cannot have {memory} bytes", Code.INVALID_ARGUMENT)
                room = numpy.empty(int(memory) + 65, "uint8")
                skipped = -room.ctypes.data % 64
                memory = room[skipped:skipped + max(int(memory), 1)]  # numpy moves the address of an empty slice
            bound = Bound(memory, "the workspace", writable=True)
            call("context_set_workspace", self._pointer, bound.tensor.data, int(bound.size))
            self._workspace = bound

    def _check_bound(self):
        for index, info in enumerate(self._inputs):
            if index not in self._bound:
                raise KelpError(f"input '{info.name}' is not bound: call set_input first", Code.FAILED_PRECONDITION)

    def prepare(self):
        """Plans memory for the bound inputs, and returns {name: shape} of the outputs; None: the shape depends on data. Optional."""
        with Use(self):
            self._check_bound()
            call("context_prepare", self._pointer)
            return {info.name: self._shape(i) for i, info in enumerate(self._outputs)}

    def _shape(self, index):
        tensor = library.kelp_context_output(self._pointer, index).contents
        return None if tensor.rank < 0 else tuple(tensor.shape[:tensor.rank])

    # ---- runs of bound arrays ----
    def invoke(self):
        """Runs the engine with the bound arrays, and returns {name: array} of all outputs. The GIL is released; Ctrl-C cancels the run."""
        with Use(self):
            self._check_bound()
            self._made.clear()
            self._failures.clear()
            try:
                _kelp.invoke(self._pointer)
            except KelpError as error:
                self._raise(error)
            return self._results()

    def enqueue(self, stream):
        """Enqueues a run with the bound arrays on a Stream, and returns its Event; None for a native stream.

        The context and the elements of the bound arrays must not be used until the event is done or the stream is synchronized; the
        context raises KelpError, code FAILED_PRECONDITION, until then. Then `outputs` returns the outputs. `Stream.synchronize` raises
        the failure of the run.
        """
        if not isinstance(stream, Stream):
            raise TypeError(f"stream: expected a kelp.Stream, found '{type(stream).__name__}'")
        with Use(self):
            self._check_bound()
            self._made.clear()
            self._failures.clear()
            self._gate.enter()
            try:
                if stream._native:
                    stream._push(self._pointer, self._end_native)
                    self._native = True
                    return None
                flight = Event._made(self._end)
                stream._push(self._pointer, flight)
            except BaseException:
                self._gate.leave()
                raise
            self._flight = flight
            return flight

    def _end(self):
        self._gate.leave()

    def _end_native(self):
        self._native = False
        self._gate.leave()

    def outputs(self):
        """Returns {name: array} of all outputs of the last `enqueue`, `invoke` or `replay`. Fails if there was none, or if it failed."""
        with Use(self):
            if self._failures:
                raise self._failures[0]
            return self._results()

    def capture(self):
        """Records a run with the bound arrays, and returns a Capture, which replays it without dispatch. Outputs without an array get
        one, as by `set_output`. Fails if a shape depends on data: KelpError, code FAILED_PRECONDITION."""
        with Use(self):
            self._check_bound()
            call("context_prepare", self._pointer)
            for index, info in enumerate(self._outputs):
                shape = self._shape(index)
                if index in self._placed or shape is None:
                    continue
                dtype = _capi.numpy_dtype(library.kelp_context_output(self._pointer, index).contents.dtype)
                self._place_output(index, Bound(numpy.empty(shape, dtype), f"output '{info.name}'", writable=True))
            return Capture._made(self, make("context_capture", self._pointer))

    def _results(self):
        return {info.name: self._result(i) for i, info in enumerate(self._outputs)}

    def _result(self, index):
        info = self._outputs[index]
        self._check_tensor(info, f"output '{info.name}'")
        tensor = library.kelp_context_output(self._pointer, index).contents
        if tensor.rank < 0 or not tensor.dtype:
            raise KelpError(f"output '{info.name}' has no result: there was no run, or it failed", Code.FAILED_PRECONDITION)
        dtype, extents = _capi.numpy_dtype(tensor.dtype), tensor.shape[:tensor.rank]
        count = int(numpy.prod(extents, dtype="int64"))
        size = (count * (_capi.PACKED.get(dtype.name) or dtype.itemsize * 8) + 7) // 8
        if index in self._placed:
            return self._placed_result(info, self._placed[index], dtype, extents, size)
        room = self._made.get(index)
        if size and (room is None or tensor.data != room.ctypes.data):
            if self._asks:
                raise KelpError(f"output '{info.name}' has no result: there was no run, or it failed", Code.FAILED_PRECONDITION)
            room = numpy.frombuffer(bytearray(ctypes.string_at(tensor.data, size)), "uint8")
        return _capi.unpack(numpy.empty(0, "uint8") if not size else room[:size], dtype, extents)

    @staticmethod
    def _placed_result(info, bound, dtype, extents, size):
        if bound.array is None:
            return bound.value
        if size > bound.size:
            raise KelpError(f"output '{info.name}' has no result: the run failed", Code.FAILED_PRECONDITION)
        if bound.array.shape == tuple(extents):
            return bound.array
        return _capi.unpack(bound.array.reshape(-1).view("uint8")[:size], dtype, extents)

    # ---- others ----
    def cancel(self):
        """Cancels the run in flight from any thread: it fails with KelpError, code CANCELLED, within milliseconds."""
        library.kelp_context_cancel(self._address())

    def _address(self):
        if not self._pointer:
            raise KelpError("the context was not created", Code.FAILED_PRECONDITION)
        return self._pointer

    def set_profiler(self, profiler):
        """Sets a function that is called after every node as profiler(step, operator, name, algorithm, nanoseconds); None removes it. It
        must not use the context. Exceptions in it are ignored."""
        with Use(self):
            if profiler is None:
                call("context_set_profiler", self._pointer, None, None)
                self._profiler = None
                return
            if not callable(profiler):
                raise TypeError(f"profiler: expected a function or None, found '{type(profiler).__name__}'")

            def tell(_, step, operator, name, algorithm, duration):
                try:
                    profiler(step, (operator or b"").decode(), (name or b"").decode(), algorithm and algorithm.decode(), duration)
                except Exception:
                    pass
            callback = _capi.PROFILE(tell)
            call("context_set_profiler", self._pointer, ctypes.cast(callback, ctypes.c_void_p), None)
            self._profiler = callback

    @property
    def stats(self):
        """The counters of the memory plan for the last shapes, a dict: steps, workspace_bytes and others of kelp_plan_stats."""
        with Use(self):
            return _capi.as_dict(library.kelp_context_plan_stats(self._pointer))


class Capture(Handle):
    """A recorded run, returned by `Context.capture`. It is used like its context, on one thread at a time."""

    __slots__ = ("__weakref__", "_context", "_pointer", "step_count")
    CREATED_BY = "Context.capture"

    def _init(self, context, pointer):
        self._context, self._pointer = context, pointer
        self.step_count = get("capture_step_count", pointer)

    def __del__(self):
        pointer, self._pointer = getattr(self, "_pointer", None), None
        if pointer:
            library.kelp_capture_destroy(pointer)

    def replay(self):
        """Runs the recorded inference on the elements that the bound arrays have now, and returns {name: array} of all outputs: the arrays
        that are bound. Fails after arrays were bound, `run` was called or the engine was refitted: KelpError, code FAILED_PRECONDITION."""
        with Use(self._context) as context:
            if not self._pointer:
                raise KelpError("the recording is closed", Code.FAILED_PRECONDITION)
            _kelp.invoke(context._pointer, self._pointer)
            return context._results()

    def close(self):
        """Frees the recording. Closing a closed recording does nothing."""
        with Use(self._context):
            self.__del__()
