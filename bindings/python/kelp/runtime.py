# SPDX-License-Identifier: Apache-2.0
"""Libraries of native kernels over tensors (kelp/kernel.h): found by name, called on arrays where they lie.

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
from ._kelp import DLTensor

__all__ = ["Backend", "Code", "DLTensor", "KelpError", "Runtime", "TritonException", "get_runtime"]

_lock = threading.Lock()
_shared = None


def default_search_path():
    """None for the library's own rule, or that rule with the package's folder of kernels behind it."""
    folder = _native.folder("kernels")
    if folder is None:
        return None
    return ":".join(path for path in (os.environ.get("KELP_BACKEND_PATH"), os.environ.get("TRITON_BACKEND_PATH"), folder) if path)


class Backend:
    """A library of kernels; each kernel is an attribute: `backend.add(out, a, b)`."""

    def __init__(self, library, runtime):
        self._library = library
        self._runtime = runtime
        self._found = {}

    @property
    def name(self):
        """The library's name."""
        return self._library.name

    @property
    def path(self):
        """The library's file, or '' when it was made here."""
        return self._library.path

    @property
    def kernels(self):
        """Names of the kernels that the library lists. Libraries that only have get_function_ptr may have more."""
        return self._library.kernels

    def get_supported_devices(self):
        """Names of the devices it has kernels for."""
        return self._library.devices

    def get_function_ptr(self, name):
        """The kernel of that name: called like a function, with `signature`, and `address` of the bare function."""
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = self._library.find(name)
        return found

    def execute_kernel(self, name, *arguments):
        """Calls a kernel by name: arrays and DLTensors are passed where they lie, int and float as scalars."""
        self.get_function_ptr(name)(*arguments)

    def register(self, name, function, signature=None, with_context=False):
        """A function by its address, or a numba cfunc: called with tensors as DLTensor pointers and scalars as the signature has them.

        with_context: whether it takes the context's address first.
        """
        address = function if isinstance(function, int) else function.address
        made = self._found[name] = self._library.register(name, address, signature, with_context)
        made_for = getattr(self, "_kept", [])
        self._kept = [*made_for, function]  # a JIT's code lives as long as its object
        return made

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            found = self.get_function_ptr(name)
        except KelpError as error:
            raise AttributeError(str(error)) from error
        self.__dict__[name] = found  # from then on without a search
        return found

    def __dir__(self):
        return [*super().__dir__(), *self.kernels]

    def __repr__(self):
        return f"<backend {self.name}: {', '.join(self.kernels) or self.path}>"


class Runtime:
    """Where libraries of kernels are found and kept.

    search_path: folders and files, separated by ':', in place of KELP_BACKEND_PATH and TRITON_BACKEND_PATH.
    threads: how many a kernel may use; 0: all CPUs.
    """

    def __init__(self, search_path=None, threads=0):
        self._registry = _kelp.Registry(threads, default_search_path() if search_path is None else search_path)
        self._backends = {}

    def get_backend(self, name):
        """The library of that name, or (with a '/') in that file; loaded the first time.

        A KelpError has in `paths` every path that was tried, and in `tried` why each was not taken.
        """
        found = self._backends.get(name)
        if found is None:
            tried = []
            try:
                found = Backend(self._registry.open(os.fspath(name), tried), self)
            except KelpError as error:
                error.tried = dict(tried)
                error.paths = list(error.tried)
                raise
            self._backends[name] = found
        return found

    def add_backend(self, name):
        """An empty library, for functions that are registered by address."""
        made = self._backends[name] = Backend(self._registry.add(name), self)
        return made

    def list_backends(self):
        """Names of all libraries on the search path, which are loaded."""
        return self._registry.scan()

    def get_context(self):
        """A context for kernels: scratch memory and resources that calls share. One call at a time."""
        return self._registry.context()

    def invoke_kernel(self, kernel, arguments):
        """Calls a kernel with a list of arguments, of which the first may be a context."""
        kernel(*arguments)


def get_runtime():
    """The runtime that this process shares."""
    global _shared
    with _lock:
        if _shared is None:
            _shared = Runtime()
        return _shared
