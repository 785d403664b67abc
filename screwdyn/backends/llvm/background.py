"""What compiles beside the caller: one thread, and a lock so that no process is forked in the middle of it."""

import atexit
import functools
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from queue import PriorityQueue
from typing import Any, TypeVar

__all__ = ["background", "undivided"]

Result = TypeVar("Result")

# Held where a process must not be forked: the other one would inherit locks that nobody there opens.
_whole = threading.RLock()


def undivided(function: Callable[..., Result]) -> Callable[..., Result]:
    """The function, during which no process is forked; the compiler has locks of its own in all that it does."""

    @functools.wraps(function)
    def undivided(*arguments: Any) -> Result:
        with _whole:
            return function(*arguments)

    return undivided


class _Background:
    """A thread that does one thing after another, small ones first, and drops the rest when the process ends."""

    def __init__(self) -> None:
        self._tasks: PriorityQueue[tuple[int, int, Future[Any], Callable[..., Any], tuple[Any, ...]]] = PriorityQueue()
        self._order = count()
        self._ended = False
        self._thread = threading.Thread(target=self._work, name="screwdyn-compile", daemon=True)
        self._thread.start()
        atexit.register(self._end)

    def submit(self, size: int, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Have a function called after all that is smaller, and after what is as large and was submitted before."""
        future: Future[Any] = Future()
        self._tasks.put((size, next(self._order), future, function, arguments))
        return future

    def _work(self) -> None:
        while True:
            _, _, future, function, arguments = self._tasks.get()
            if self._ended:
                return
            try:
                result = function(*arguments)
            except Exception as error:
                with _whole:
                    future.set_exception(error)
            else:
                with _whole:
                    future.set_result(result)
            # What is waited for may be large, and nobody else may want it.
            del future, function, arguments

    def _end(self) -> None:
        # The compiler must not be at work when the process is taken apart.
        self._ended = True
        if self._thread.is_alive():  # in a forked process it is not, and its queue may be locked for good
            self.submit(-1, _Background)
            self._thread.join()


@functools.cache
def background() -> _Background:
    """The thread of this process."""
    return _Background()


def _after_fork() -> None:
    """The thread does not follow into another process."""
    _whole.release()
    background.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_whole.acquire, after_in_parent=_whole.release, after_in_child=_after_fork)
