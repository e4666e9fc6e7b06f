# SPDX-License-Identifier: Apache-2.0
"""Networks of layers, the plan files built from them, and the engines that run them.

>>> import numpy, kelp
>>> builder = kelp.Builder()
>>> network = builder.create_network()
>>> x = network.add_input("x", "float32", (-1, 3))
>>> y = network.add_activation(x, "relu").outputs[0]
>>> y = network.mark_output(y, "y")
>>> plan = builder.build(network)
>>> kelp.Engine(plan).run({"x": numpy.array([[-1, 0, 2]], "float32")})["y"].tolist()
[[0.0, 0.0, 2.0]]
"""
import ctypes
import os
import tempfile

from . import _capi
from ._capi import call, get, library, make
from ._context import Capture, Context
from ._engine import Engine, IoInfo, Runtime
from ._enums import (Activation, BuilderFlag, Collective, Coordinates, Elementwise, Fill, GatherMode, Interpolation, LayerType, LoopOutput,
                     MatrixOp, MemoryPool, PaddingMode, Pooling, Reduce, Rounding, SampleMode, ScaleMode, ScatterMode, Unary)
from ._error import Code, KelpError
from ._handle import Handle
from ._layers import Conditional, Layer, Layers, Loop, Tensor
from ._stream import Event, Stream

__all__ = ["Activation", "BuilderFlag", "Builder", "Capture", "Collective", "Conditional", "Context", "Coordinates", "Elementwise",
           "Engine", "Event", "Fill", "GatherMode", "Interpolation", "IoInfo", "Layer", "LayerType", "Loop", "LoopOutput", "MatrixOp", "MemoryPool", "Network",
           "PaddingMode", "Plan", "Pooling", "Reduce", "Rounding", "Runtime",
           "SampleMode", "ScaleMode", "ScatterMode", "Stream", "Tensor", "Unary"]


def flag_bits(flags):
    """Returns the bits of a BuilderFlag, of a name, or of several."""
    if isinstance(flags, (int, BuilderFlag)):
        return int(flags)
    bits = 0
    for flag in (flags.replace("|", ",").split(",") if isinstance(flags, str) else flags):
        if isinstance(flag, str):
            name = flag.strip().upper()
            if name not in BuilderFlag.__members__:
                raise KelpError(f"unknown flag '{flag.strip()}': expected some of {', '.join(BuilderFlag.__members__).lower()}",
                                Code.INVALID_ARGUMENT)
            flag = BuilderFlag[name]
        bits |= int(flag)
    return bits


def blob_bytes(blob):
    """Returns the contents of a blob and releases it."""
    try:
        return ctypes.string_at(get("blob_data", blob), get("blob_size", blob))
    finally:
        library.kelp_blob_release(blob)


class Plan(bytes):
    """A plan: the bytes of an engine that was built in advance."""

    def save(self, path):
        """Writes a temporary file and renames it to `path`, so that no partial file is visible."""
        path = os.fspath(path)
        handle, beside = tempfile.mkstemp(prefix=os.path.basename(path) + ".", dir=os.path.dirname(path) or ".")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(self)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(beside, 0o666 & ~mask)
            os.replace(beside, path)
        except BaseException:
            os.unlink(beside)
            raise

    def __repr__(self):
        return f"<plan of {len(self)} bytes>"


class Network(Layers):
    """A network of layers and tensors. Created by `Builder.create_network` and `Builder.parse`. Not thread-safe.

    Each `add_…` checks types and shapes, and appends and returns a layer. It changes nothing if it fails.
    """

    CREATED_BY = "Builder.create_network or Builder.parse"

    def _init(self, builder, pointer):
        super()._init(pointer)
        self._builder = builder

    def __del__(self):
        pointer, self._pointer = getattr(self, "_pointer", None), None
        if pointer:
            library.kelp_network_release(pointer)

    def add_input(self, name, dtype, shape):
        """Adds an input and returns its Tensor. `dtype` is a numpy dtype or a name; in `shape`, -1 is a dynamic dimension."""
        return self._made_tensor(make("network_add_input", self._pointer, name.encode(), _capi.dtype_number(dtype), _capi.shape(shape)))

    def mark_output(self, tensor, name=None):
        """Marks a tensor as an output, optionally with a new name. Returns the tensor."""
        tensor = self._tensor(tensor)
        if name is not None:
            tensor.name = name
        call("network_mark_output", self._pointer, tensor._pointer)
        return tensor

    def unmark_output(self, tensor):
        """Removes a tensor from the outputs."""
        call("network_unmark_output", self._pointer, self._tensor(tensor)._pointer)

    def mark_refittable(self, weights_name):
        """Allows a refit of the weights with this name, in engines built with BuilderFlag.REFIT_INDIVIDUAL."""
        call("network_mark_refittable", self._pointer, weights_name.encode())

    def to_onnx(self):
        """Returns the network as the bytes of an ONNX model. The same network returns the same bytes."""
        return blob_bytes(make("network_to_onnx", self._pointer))

    def _list(self, what):
        return [get(f"network_{what}", self._pointer, i) for i in range(get(f"network_{what}_count", self._pointer))]

    @property
    def inputs(self):
        """The inputs, a list of Tensor."""
        return [self._made_tensor(pointer) for pointer in self._list("input")]

    @property
    def outputs(self):
        """The outputs, a list of Tensor."""
        return [self._made_tensor(pointer) for pointer in self._list("output")]

    @property
    def layers(self):
        """The layers in the order of their creation, including inputs: a list of Layer."""
        return [Layer._made(self, pointer) for pointer in self._list("layer")]


class Builder(Handle):
    """Creates networks and builds plan files. Not thread-safe; builders are independent of each other.

    provider: "cpu", "null", "tensorrt" or the name of a registered provider.
    threads: threads of a build; 0: all CPUs.
    runtime: a Runtime, whose threads, log and plug-in libraries are used; None: one with `threads` and `plugins`.
    plugins: plug-in libraries, as in Runtime.
    """

    def __init__(self, provider="cpu", threads=0, runtime=None, plugins=()):
        self._pointer = None
        if not (runtime is None or isinstance(runtime, Runtime)):
            raise TypeError(f"runtime: expected a kelp.Runtime or None, found '{type(runtime).__name__}'")
        if runtime is not None and plugins:
            raise KelpError("plugins and a runtime are given: pass the plug-in libraries to kelp.Runtime", Code.INVALID_ARGUMENT)
        self._runtime = runtime or Runtime(threads, plugins=plugins)
        self._pointer = make("builder_create", self._runtime._borrowed, provider.encode())
        self.provider = provider

    def __del__(self):
        pointer, self._pointer = getattr(self, "_pointer", None), None
        if pointer:
            library.kelp_builder_release(pointer)

    def create_network(self):
        """Creates an empty Network."""
        return Network._made(self, make("builder_create_network", self._pointer))

    def parse(self, path_or_bytes):
        """Creates a Network from an ONNX model, a path or bytes. More layers may be added."""
        if isinstance(path_or_bytes, (str, os.PathLike)):
            return Network._made(self, make("builder_parse_file", self._pointer, os.fsencode(path_or_bytes)))
        data = bytes(path_or_bytes)
        address = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p)
        network = Network._made(self, make("builder_parse_bytes", self._pointer, address, len(data), b"model", None, None))
        network._kept.append(data)
        return network

    def build(self, network, *, flags=0, profiles=(), values=(), memory=None, level=None, capabilities=(), progress=None):
        """Builds a network and returns a Plan. The same network and options produce the same bytes.

        flags: BuilderFlag, or names: "bf16,refit".
        profiles: optimization profiles: a list of {name: (min, opt, max)}.
        values: values of inputs that determine shapes: a list, as long as profiles, of {name: (min, opt, max)}.
        memory: limits in bytes, {"workspace": 1 << 30}.
        level: optimization level from 0, the fastest build, to 5.
        capabilities: compute capabilities of the target GPUs; 86 is 8.6.
        progress: called as progress(phase, parent, step, steps) during the build; returning False cancels it: KelpError, code CANCELLED.
        """
        config = make("builder_create_config", self._pointer)
        try:
            call("builder_config_set_flags", config, flag_bits(flags))
            for pool, size in (memory or {}).items():
                call("builder_config_set_memory_limit", config, _capi.number(MemoryPool, pool, "memory pool"), size)
            if level is not None:
                call("builder_config_set_optimization_level", config, level)
            for capability in capabilities:
                call("builder_config_add_compute_capability", config, capability)
            self._set_profiles(config, [profiles] if isinstance(profiles, dict) else list(profiles),
                               [values] if isinstance(values, dict) else list(values))
            return self._build(network, config, progress)
        finally:
            library.kelp_builder_config_release(config)

    def _set_profiles(self, config, profiles, values):
        for i in range(max(len(profiles), len(values))):
            index = ctypes.c_size_t()
            call("builder_config_add_profile", config, ctypes.byref(index))
            for name, bounds in (profiles[i] if i < len(profiles) else {}).items():
                for which, shape in enumerate(three(name, bounds)):
                    made = _capi.shape(shape)
                    call("builder_config_set_profile_shape", config, index.value, name.encode(), which, made.rank, made.d)
            for name, bounds in (values[i] if i < len(values) else {}).items():
                for which, numbers in enumerate(three(name, bounds)):
                    made = (ctypes.c_int64 * len(numbers))(*numbers)
                    call("builder_config_set_profile_values", config, index.value, name.encode(), which, made, len(numbers))

    def _build(self, network, config, progress):
        raised = []

        def step(_, phase, parent, number, steps):
            try:
                return progress((phase or b"").decode(), (parent or b"").decode(), number, steps) is not False
            except BaseException as error:  # raised again after the build
                raised.append(error)
                return False

        callback = _capi.PROGRESS(step)
        if progress is not None:
            library.kelp_builder_config_set_progress(config, ctypes.cast(callback, ctypes.c_void_p), None)
        try:
            blob = make("builder_build", self._pointer, network._pointer, config)
        except KelpError:
            if raised:
                raise raised[0] from None
            raise
        return Plan(blob_bytes(blob))


def three(name, bounds):
    """Returns the bounds (min, opt, max) of an input, or raises an error."""
    bounds = list(bounds)
    if len(bounds) != 3:
        raise KelpError(f"the profile of '{name}' has {len(bounds)} shapes: expected (min, opt, max)", Code.INVALID_ARGUMENT)
    return bounds
