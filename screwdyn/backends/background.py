"""The threads that compile, and the lock that prevents a fork of the process meanwhile."""

import functools
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, TypeVar

from screwdyn.backends.cache_folder import announce

__all__ = ["compiling", "compiling_once", "resume", "submit"]

Result = TypeVar("Result")

# Held during compilation and while a result is published: a forked process would inherit locks in the locked state.
_compiler = threading.RLock()
# Guards the variables below.
_lock = threading.Lock()
_waiting: list[tuple[tuple[int, ...], int, Future[Any], Callable[[], Any]]] = []
_order = count()
_NAME = "screwdyn-compile"
# Seconds.
_PATIENCE = 0.5
# ``compiles`` is True in the threads that compile.
_thread = threading.local()
_pool: ThreadPoolExecutor | None = None


def compiling(function: Callable[..., Result]) -> Callable[..., Result]:
    """Decorate a function that compiles: one such function runs at a time, and the process is not forked meanwhile.

    It runs in a thread, because Ctrl-C interrupts the main thread, which does not notice it during compilation.
    The interrupted call ends at once, and the thread completes its work.

    The decorated function takes ``line=``, which stderr shows if its caller waits for longer than half a second.
    """

    @functools.wraps(function)
    def called(*arguments: Any, line: str = "") -> Result:
        if getattr(_thread, "compiles", False):
            return function(*arguments)
        future: Future[Result] = Future()
        threading.Thread(target=_settle, args=(future, partial(function, *arguments)), name=_NAME).start()
        if line and not wait([future], _PATIENCE).done:
            announce(line)
        return future.result()

    return called


def compiling_once(function: Callable[..., Result]) -> Callable[..., Result]:
    """Decorate a function that compiles: it is called once for the same arguments, also by several threads.

    What it returned is returned again without waiting for a compilation.
    """
    # The inner cache is for a thread that did not find the result in the outer one, and then waited for another thread.
    return functools.cache(compiling(functools.cache(function)))


def submit(size: tuple[int, ...], function: Callable[[], Result]) -> Future[Result]:
    """Call a function in the background, in the order of ``size``, then of submission."""
    future: Future[Result] = Future()
    with _lock:
        heappush(_waiting, (size, next(_order), future, function))
    resume()
    return future


def resume() -> None:
    """Start the thread if functions wait and it does not run, as in a forked process."""
    global _pool
    with _lock:
        if _waiting and _pool is None:
            _pool = ThreadPoolExecutor(1, _NAME)
            _pool.submit(_work)


def _work() -> None:
    """Call the waiting function of smallest size."""
    global _pool
    with _lock:
        if not _waiting or _pool is None:
            _pool = None
            return
        # Raises an error during interpreter shutdown, so that nothing more is compiled.
        _pool.submit(_work)
    with _compiler:
        with _lock:
            _, _, future, function = heappop(_waiting)
        _settle(future, function)


def _settle(future: Future[Any], function: Callable[[], Any]) -> None:
    """Call a function that compiles in this thread, and publish its result or its error."""
    _thread.compiles = True
    with _compiler:
        try:
            result = function()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)


def _before_fork() -> None:
    _compiler.acquire()
    _lock.acquire()


def _after_fork() -> None:
    _lock.release()
    _compiler.release()


def _in_child() -> None:
    """Discard the pool: its thread does not exist in a forked process."""
    global _pool
    _pool = None
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
