"""The thread that compiles, and the lock that keeps a process from being forked while it does."""

import functools
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from heapq import heappop, heappush
from itertools import count
from typing import Any, TypeVar

__all__ = ["compiling", "resume", "submit"]

Result = TypeVar("Result")

# Held while the compiler works and while a result is published: a forked process would inherit locks that are taken.
_compiler = threading.RLock()
# Guards what follows; never held for long.
_lock = threading.Lock()
_waiting: list[tuple[tuple[int, ...], int, Future[Any], Callable[[], Any]]] = []
_order = count()
_pool: ThreadPoolExecutor | None = None


def compiling(function: Callable[..., Result]) -> Callable[..., Result]:
    """Decorate a function that compiles: one runs at a time, and no process is forked meanwhile."""

    @functools.wraps(function)
    def locked(*arguments: Any) -> Result:
        with _compiler:
            return function(*arguments)

    return locked


def submit(size: tuple[int, ...], function: Callable[[], Result]) -> Future[Result]:
    """Call a function in the background, after all smaller ones and after equal ones that were submitted before."""
    future: Future[Result] = Future()
    with _lock:
        heappush(_waiting, (size, next(_order), future, function))
    resume()
    return future


def resume() -> None:
    """Start the thread if something waits and there is none, as in a process that has been forked."""
    global _pool
    with _lock:
        if _waiting and _pool is None:
            _pool = ThreadPoolExecutor(1, "screwdyn-compile")
            _pool.submit(_work)


def _work() -> None:
    """Call the smallest function that waits."""
    global _pool
    with _lock:
        if not _waiting or _pool is None:
            _pool = None
            return
        # Refused while the interpreter ends, so that nothing more is compiled.
        _pool.submit(_work)
    with _compiler:
        with _lock:
            _, _, future, function = heappop(_waiting)
        try:
            result = function()
        except Exception as error:
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
    """Forget the thread, which does not exist in a forked process."""
    global _pool
    _pool = None
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
