# SPDX-License-Identifier: Apache-2.0
"""Calls of kernels in flight, and signatures of kernels for `inspect`.

An asynchronous kernel completes on a thread of its library; one thread of this module then sets the futures. Other kernels run on
a pool of threads.
"""
import asyncio
import atexit
import concurrent.futures
import inspect
import keyword
import os
import threading

from . import _kelp


class KernelFuture(concurrent.futures.Future):
    """The result of a submitted kernel. It can be awaited in asyncio."""

    def __await__(self):
        return asyncio.wrap_future(self).__await__()


_lock = threading.Condition()
_in_flight = set()  # futures of asynchronous kernels, until their callbacks have run
_workers = None
_deliverer = None


def _finish(future, function):
    try:
        result = function()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


def _forget(future):
    with _lock:
        _in_flight.discard(future)
        _lock.notify_all()


def _deliver():
    while True:
        call = _kelp.next_completed()
        future = call.future
        _finish(future, call.finish)
        _forget(future)
        del call, future


def _run(future, kernel, arguments, keywords):
    if future.set_running_or_notify_cancel():
        _finish(future, lambda: kernel(*arguments, **keywords))


def _start_deliverer():
    global _deliverer
    with _lock:
        if _deliverer is None:
            _deliverer = threading.Thread(target=_deliver, name="kelp-kernels", daemon=True)
            _deliverer.start()


def _pool():
    global _workers
    with _lock:
        if _workers is None:
            _workers = concurrent.futures.ThreadPoolExecutor(os.cpu_count(), "kelp-kernel")
        return _workers


def submit(kernel, arguments, keywords):
    """Implements Kernel.submit."""
    future = KernelFuture()
    if not kernel.asynchronous:
        _pool().submit(_run, future, kernel, arguments, keywords)
        return future
    _start_deliverer()
    future.set_running_or_notify_cancel()
    with _lock:
        _in_flight.add(future)
    try:
        kernel._start(future, arguments, keywords)
    except Exception as error:
        future.set_exception(error)
        _forget(future)
    return future


@atexit.register
def _wait():
    """Kernels use the memory of their arguments, which the interpreter frees."""
    with _lock:
        _lock.wait_for(lambda: not _in_flight)


def _after_fork():
    """Threads do not exist in a child process."""
    global _lock, _in_flight, _workers, _deliverer
    _lock, _in_flight, _workers, _deliverer = threading.Condition(), set(), None, None


os.register_at_fork(after_in_child=_after_fork)


def signature(kernel):
    """Implements Kernel.__signature__: outputs, and integers that are the size of an input's dimension, are optional keywords."""
    if kernel.parameters is None:
        return inspect.Signature([inspect.Parameter("arguments", inspect.Parameter.VAR_POSITIONAL)])
    texts = {}
    for parameter in kernel.parameters:
        shape = parameter["shape"]
        dimensions = "" if shape is None else "[" + ", ".join("?" if d is None else str(d) for d in shape) + "]"
        texts[parameter["name"]] = (parameter["dtype"] or "any") + dimensions
    required, optional = kernel._names
    if any(keyword.iskeyword(name) for name in texts):
        return None  # inspect cannot describe it
    made = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=texts[name]) for name in required]
    made += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=texts[name]) for name in optional]
    return inspect.Signature(made)
