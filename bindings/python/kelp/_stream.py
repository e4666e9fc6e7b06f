# SPDX-License-Identifier: Apache-2.0
"""Streams, which run inferences in order on a thread of their own, and the events of enqueued inferences."""
import atexit
import os
import threading
import weakref

from . import _capi
from ._capi import call, library, make
from ._error import Code, KelpError
from ._handle import Handle

POLL_NS = 20_000_000  # signal handlers run between two polls

_streams = weakref.WeakSet()


class Gate:
    """The runs of an engine, which must not overlap with a refit."""

    def __init__(self):
        self._lock, self._runs, self._refits = threading.Lock(), 0, False

    def enter(self):
        with self._lock:
            if self._refits:
                raise KelpError("the engine is being refitted: wait for Engine.refit", Code.FAILED_PRECONDITION)
            self._runs += 1

    def leave(self):
        with self._lock:
            self._runs -= 1

    def __enter__(self):  # a refit
        with self._lock:
            if self._runs or self._refits:
                raise KelpError("the engine is running or being refitted: wait for its runs, and synchronize the streams",
                                Code.FAILED_PRECONDITION)
            self._refits = True

    def __exit__(self, *_):
        with self._lock:
            self._refits = False


class Event(Handle):
    """The completion of an inference, returned by `Context.enqueue`. Thread-safe.

    It tells when the inference has finished. `Stream.synchronize` tells whether it failed.
    """

    __slots__ = ("__weakref__", "_finish", "_lock", "_lost", "_pointer")
    CREATED_BY = "Context.enqueue"

    def _init(self, finish):
        self._lock, self._finish, self._lost = threading.Lock(), finish, False
        self._pointer = make("event_create", library.kelp_allocator_system())

    def __del__(self):
        pointer, self._pointer = getattr(self, "_pointer", None), None
        if pointer:
            library.kelp_event_destroy(pointer)

    def _settle(self):
        """Releases what the inference used, once."""
        with self._lock:
            finish, self._finish = self._finish, None
        if finish is not None:
            finish()

    def _check(self):
        if self._lost:
            raise KelpError("the inference was lost when the process forked", Code.FAILED_PRECONDITION)

    def _join(self):
        """Waits without a limit, for a context that is freed. Returns False if the inference was lost."""
        if self._pointer and not self._lost:
            library.kelp_event_wait(self._pointer, 2 ** 64 - 1)
        return not self._lost

    @property
    def done(self):
        """Whether the inference has finished. Does not wait."""
        self._check()
        if not library.kelp_event_done(self._pointer):
            return False
        self._settle()
        return True

    def wait(self, timeout=None):
        """Waits until the inference has finished, at most `timeout` seconds, and returns whether it has. The GIL is released; Ctrl-C
        interrupts the wait, not the inference."""
        self._check()
        left_ns = None if timeout is None else max(int(timeout * 1e9), 0)
        while True:
            step_ns = POLL_NS if left_ns is None else min(left_ns, POLL_NS)
            if library.kelp_event_wait(self._pointer, step_ns):
                self._settle()
                return True
            if left_ns is not None:
                left_ns -= step_ns
                if left_ns <= 0:
                    return False


class Stream(Handle):
    """A queue of inferences that run in order of submission, on a thread of the stream. Thread-safe. A context manager that closes it.

    runtime: a Runtime; None: the shared one.
    native: address of a stream of a device library, such as a CUstream, for engines of that device's provider; None: a new stream.
    synchronize: function without arguments that waits for the native stream, such as `torch.cuda.Stream.synchronize`.

    Arrays that are bound to an enqueued inference are kept alive until it has finished.
    """

    def __init__(self, runtime=None, *, native=None, synchronize=None):
        from ._engine import Runtime
        self._pointer = None
        if not (runtime is None or isinstance(runtime, Runtime)):
            raise TypeError(f"runtime: expected a kelp.Runtime or None, found '{type(runtime).__name__}'")
        if native is None and synchronize is not None:
            raise KelpError("'synchronize' is for native streams: expected 'native' too", Code.INVALID_ARGUMENT)
        if native is not None and not (isinstance(native, int) and callable(synchronize)):
            raise TypeError("native: expected the address of a stream, and a function as 'synchronize'")
        self._runtime, self._synchronize, self._native = runtime or Runtime(), synchronize, native is not None
        self._lock, self._flights, self._lost = threading.Lock(), [], False
        if native is None:
            self._pointer = make("stream_create", self._runtime._borrowed)
        else:
            self._pointer = make("stream_wrap", self._runtime._borrowed, native)
        _streams.add(self)

    def __del__(self):
        if getattr(self, "_pointer", None):
            self._close()

    def __enter__(self):
        self._check()
        return self

    def __exit__(self, *_):
        self.close()

    def _check(self):
        if not self._pointer:
            raise KelpError("the stream was lost when the process forked" if self._lost else "the stream is closed",
                            Code.FAILED_PRECONDITION)

    def _prune(self):
        """Forgets inferences that have finished."""
        self._flights = [flight for flight in self._flights if not flight.done]

    def _push(self, context, flight):
        """Enqueues an inference. `flight` is its Event, or the function that ends an inference of a native stream."""
        with self._lock:
            self._check()
            if self._native:
                call("context_enqueue", context, self._pointer, None)
            else:
                self._prune()
                call("context_enqueue", context, self._pointer, flight._pointer)
            self._flights.append(flight)

    def synchronize(self):
        """Waits for all enqueued inferences. Raises the first failure since the last call. The GIL is released; Ctrl-C interrupts the
        wait, not the inferences."""
        with self._lock:
            self._check()
            flights = list(self._flights)
        if self._native:
            self._synchronize()
            self._finish_native(flights)
            return
        for flight in flights:
            flight.wait()
        with self._lock:
            self._check()
            self._prune()
            call("stream_synchronize", self._pointer)

    def _finish_native(self, flights):
        with self._lock:
            self._flights = [flight for flight in self._flights if flight not in flights]
        for finish in flights:
            finish()

    def close(self):
        """Waits for all enqueued inferences and ends the stream's thread. Failures that `synchronize` has not raised are dropped.
        Closing a closed stream does nothing."""
        self._close()

    def _close(self):
        if not getattr(self, "_pointer", None):
            return
        if self._native and self._flights:
            self._synchronize()
        with self._lock:
            pointer, self._pointer = self._pointer, None
        if pointer:
            library.kelp_stream_destroy(pointer)
        flights, self._flights = self._flights, []
        for flight in flights:
            if self._native:
                flight()
            else:
                flight.wait()


def _close_all():
    for stream in list(_streams):
        stream._close()


def _forget_all():
    """Drops streams in the child of a fork, which lacks their threads."""
    for stream in list(_streams):
        stream._pointer, stream._lost, stream._lock = None, True, threading.Lock()
        for flight in stream._flights:
            if not stream._native:
                flight._pointer, flight._lost = None, True


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_all)
