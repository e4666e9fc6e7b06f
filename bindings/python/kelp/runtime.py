# SPDX-License-Identifier: Apache-2.0
"""Libraries of native kernels on tensors (kelp/kernel.h), found by name and called on arrays in place.

    import kelp.runtime as rt
    backend = rt.get_runtime().get_backend("custom_add")     # libcustom_add_backend.so or the like, on KELP_BACKEND_PATH
    backend.add(out, a, b, a.size)

>>> import numpy, ctypes
>>> runtime = get_runtime()
>>> mine = runtime.add_backend("doc_example")
>>> CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int64)
>>> @CALLBACK
... def show(n):
...     print("called with", n)
>>> show_kernel = mine.register("show", ctypes.cast(show, ctypes.c_void_p).value, "n: int64")
>>> mine.show(3)
called with 3
>>> mine.kernels
['show']
"""
import os
import threading

from . import _kelp, _native
from ._error import Code, KelpError, TritonException
from ._handle import Handle
from ._kelp import DLTensor
from ._kernels import KernelFuture

__all__ = ["Backend", "Code", "DLTensor", "KelpError", "KernelFuture", "Runtime", "TritonException", "get_runtime"]

_lock = threading.Lock()
_shared = None


def default_search_path():
    """Returns None for the default search path, or that path followed by the package's directory of kernels."""
    folder = _native.folder("kernels")
    if folder is None:
        return None
    return ":".join(path for path in (os.environ.get("KELP_BACKEND_PATH"), os.environ.get("TRITON_BACKEND_PATH"), folder) if path)


class Backend(Handle):
    """A kernel library. Each kernel is an attribute: `backend.add(out, a, b)`."""

    CREATED_BY = "Runtime.get_backend or Runtime.add_backend"

    def _init(self, library, runtime):
        self._library = library
        self._runtime = runtime
        self._found = {}

    @property
    def name(self):
        """The name of the library."""
        return self._library.name

    @property
    def path(self):
        """The file of the library, or '' if it was created by `add_backend`."""
        return self._library.path

    @property
    def kernels(self):
        """The names of the kernels that the library lists. Libraries that only have get_function_ptr may have more."""
        return self._library.kernels

    def get_supported_devices(self):
        """The names of the devices that the library supports."""
        return self._library.devices

    def get_function_ptr(self, name):
        """Returns a kernel, which is called like a function and has `signature` and `address`, the address of the C function."""
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = self._library.find(name)
        return found

    def execute_kernel(self, name, *arguments, **keywords):
        """Calls a kernel by name and returns the outputs that were omitted. Arrays and DLTensors are passed in place."""
        return self.get_function_ptr(name)(*arguments, **keywords)

    def register(self, name, function, signature=None, with_context=False):
        """Registers a function by its address, or a numba cfunc. It receives DLTensor pointers and the scalars of the signature.

        with_context: whether its first argument is the address of the context.
        """
        address = function if isinstance(function, int) else function.address
        made = self._found[name] = self._library.register(name, address, signature, with_context)
        made_for = getattr(self, "_kept", [])
        self._kept = [*made_for, function]  # compiled code lives as long as its object
        return made

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            found = self.get_function_ptr(name)
        except KelpError as error:
            raise AttributeError(str(error)) from error
        self.__dict__[name] = found  # later accesses do not search
        return found

    def __dir__(self):
        return [*super().__dir__(), *self.kernels]

    def __repr__(self):
        return f"<backend {self.name}: {', '.join(self.kernels) or self.path}>"


class Runtime(Handle):
    """Finds and keeps kernel libraries.

    search_path: directories and files, separated by ':', instead of KELP_BACKEND_PATH and TRITON_BACKEND_PATH.
    threads: threads per kernel; 0: all CPUs.
    """

    def __init__(self, search_path=None, threads=0):
        self._registry = _kelp.Registry(threads, default_search_path() if search_path is None else search_path)
        self._backends = {}

    def get_backend(self, name):
        """Returns the library with this name, or in this file if it contains a '/'. Loads it the first time.

        On failure, KelpError has every path in `paths`, and the reasons in `tried`.
        """
        found = self._backends.get(name)
        if found is None:
            tried = []
            try:
                found = Backend._made(self._registry.open(os.fspath(name), tried), self)
            except KelpError as error:
                error.tried = dict(tried)
                error.paths = list(error.tried)
                raise
            self._backends[name] = found
        return found

    def add_backend(self, name):
        """Creates an empty library for functions that are registered by address."""
        made = self._backends[name] = Backend._made(self._registry.add(name), self)
        return made

    def list_backends(self):
        """Loads all libraries on the search path and returns their names."""
        return self._registry.scan()

    def get_context(self, device="cpu", stream=None):
        """Creates a context: scratch memory and resources that calls share. One call at a time.

        device: where the tensors of the calls are, such as "cuda:0".
        stream: the address of a stream of the device, passed to the kernels and to producers of DLPack.
        """
        return self._registry.context(device, stream)

    def invoke_kernel(self, kernel, arguments):
        """Calls a kernel with a list of arguments and returns the outputs that were omitted. The first may be a context."""
        return kernel(*arguments)


def get_runtime():
    """Returns the runtime of this process."""
    global _shared
    with _lock:
        if _shared is None:
            _shared = Runtime()
        return _shared
