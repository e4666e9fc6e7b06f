# SPDX-License-Identifier: Apache-2.0
"""Futures that can be awaited, and the threads of asynchronous runs."""
import concurrent.futures
import os
import threading

__all__ = ["Future", "submit"]


class Future(concurrent.futures.Future):
    """A concurrent.futures.Future that can also be awaited."""

    def __await__(self):
        import asyncio  # imported by every program that awaits, slow for others
        return asyncio.wrap_future(self).__await__()


_lock = threading.Lock()
_executor = None


def _reset():
    """Threads do not survive a fork: a child process starts its own."""
    global _executor, _lock  # pylint: disable=global-statement
    _executor, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_reset)


def submit(function):
    """Calls a function on another thread, and returns the Future of its result."""
    global _executor  # pylint: disable=global-statement
    with _lock:
        if _executor is None:
            _executor = concurrent.futures.ThreadPoolExecutor(thread_name_prefix="kelp-run")
        executor = _executor
    future = Future()
    future.set_running_or_notify_cancel()

    def call():
        try:
            result = function()
        except BaseException as error:  # pylint: disable=broad-exception-caught
            future.set_exception(error)
        else:
            future.set_result(result)
    executor.submit(call)
    return future
