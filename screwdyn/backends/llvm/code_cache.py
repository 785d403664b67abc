"""What code is made for, and the code that is kept.

A structure is where the links sit, how the joints move, gravity, and which inertial numbers are exactly zero. The other
inertial numbers are parameters. All ten are, zero or not, in rows that may carry a payload and in any row once one of
its zeros has changed; so a payload's ten numbers change without a compiler.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait
from functools import partial
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from screwdyn.backends.llvm import background
from screwdyn.backends.llvm import program as programs
from screwdyn.backends.llvm.program import Program
from screwdyn.backends.tape.outputs import outputs
from screwdyn.backends.tape.tape import Node, Tape
from screwdyn.backends.tape.trace import FUNCTIONS, Subject, Undetermined, open_inertias
from screwdyn.physics.table import MASS, PARENT

__all__ = ["ARGUMENTS", "Kept", "Structure", "structure"]

Array = npt.NDArray[np.float64]
Opened = npt.NDArray[np.bool_]
# What each compiled function is a function of, and what it gives.
ARGUMENTS: dict[str, tuple[str, ...]] = {**FUNCTIONS, "dynamics": ("q", "qd")}
# Bytes of code that are kept: of some sixty arms of six axes.
MEMORY = 64_000_000
# Operations on a tape for one that is left; on trees of more than 20 rows less than 3 were measured.
_WRITTEN = 3


class Sized(Protocol):
    """What takes memory."""

    @property
    def nbytes(self) -> int:
        """How much, in bytes; it may grow."""


Made = TypeVar("Made", bound=Sized)


class Kept(Generic[Made]):
    """What was made for the structures that were asked for last, to serve all tables of each.

    Parameters
    ----------
    make : callable
        Given a table without inertias, the (n, 10) array of bool that says which of them are parameters, and what is
        wanted of it.
    most : int
        Bytes that are kept, besides the last one that was asked for.
    """

    def __init__(self, make: Callable[[Array, Opened, Hashable], Made], most: int) -> None:
        self._make, self._most = make, most
        self._known: OrderedDict[Hashable, tuple[Opened, Made]] = OrderedDict()
        # What several threads want at once is made once; a process is not forked meanwhile.
        self._lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            release = self._lock.release
            os.register_at_fork(before=self._lock.acquire, after_in_parent=release, after_in_child=release)

    def serving(self, table: Array, loaded: Opened, what: Hashable = None) -> Made:
        """What serves a table: something that is known, or something new.

        Parameters
        ----------
        table : (n + 1, 25) array
        loaded : (n,) array of bool
            Rows that may carry a payload.
        """
        frame = table + 0.0
        inertias = frame[:-1, MASS:PARENT]
        needed = (inertias != 0) | loaded[:, None]
        inertias[:] = 0
        key = what, frame.tobytes()
        with self._lock:
            opened, made = self._known.pop(key, (None, None))
            if made is None or opened is None or (needed & ~opened).any():
                if opened is not None:
                    # What was open stays open, and a row in which a zero has changed is open altogether from now on.
                    needed |= opened | (needed & ~opened).any(axis=1)[:, None]
                opened, made = needed, self._make(frame, needed, what)
            self._known[key] = opened, made
            self._bound()
            return made

    def _bound(self) -> None:
        """Forget what was asked for longest ago, as far as all the rest takes more memory than is allowed."""
        sizes = [made.nbytes for _, made in self._known.values()]
        excess = sum(sizes) - self._most
        for size in sizes[:-1]:
            if excess <= 0:
                return
            self._known.popitem(last=False)
            excess -= size


class Structure:
    """The programs of one structure, compiled one after another in the background.

    Parameters
    ----------
    table : (n + 1, 25) array
    opened : (n, 10) array of bool
        Which inertial numbers are parameters; the others are zero.

    Attributes
    ----------
    single, batch : dict of Future
        By name of function; each gives a program, or None if it is left to ``looped``.
    """

    def __init__(self, table: Array, opened: Opened) -> None:
        self.single: dict[str, Future[Program | None]] = {}
        self.batch: dict[str, Future[Program | None]] = {}
        for name in ARGUMENTS:
            self.single[name] = background.submit(len(table), partial(_first, name, table, opened))
        for name in ARGUMENTS:
            self.batch[name] = background.submit(len(table), partial(_second, self.single[name]))

    @property
    def nbytes(self) -> int:
        """Memory that is kept so far."""
        return sum(program.nbytes for name in self.single if (program := self.program(name)) is not None)

    def program(self, name: str) -> Program | None:
        """A function whose code for single states is there; None while it is not, or if there is none."""
        part = self.single[name]
        return part.result() if part.done() and part.exception() is None else None

    @property
    def ready(self) -> bool:
        """Whether all is compiled."""
        return all(part.done() for part in self._parts)

    def wait(self, timeout: float | None) -> None:
        """Wait until all is compiled.

        Raises
        ------
        TimeoutError
            If it is not, after so many seconds.
        """
        if wait(self._parts, timeout).not_done:
            raise TimeoutError(f"the code is not ready after {timeout} s")
        for part in self._parts:
            part.result()

    @property
    def _parts(self) -> list[Future[Program | None]]:
        return [*self.single.values(), *self.batch.values()]


class _TooLong(Exception):
    """There are more operations than will be compiled."""


class _Nodes(list[Node]):
    """Operations, up to a number beyond which hardly fewer than ``LARGEST`` can be left of them."""

    def append(self, node: Node) -> None:
        if len(self) > _WRITTEN * programs.LARGEST:
            raise _TooLong
        super().append(node)


def recorded(name: str, table: Array, opened: Opened) -> Program | None:
    """One function of a structure; None if its sweep stops at a joint that carries nothing, whatever the numbers.

    Raises
    ------
    _TooLong
    """
    tape = Tape()
    tape.nodes = _Nodes()
    try:
        results = outputs(tape, name, Subject(open_inertias(table, tape, opened)))
    except Undetermined:
        return None
    return Program(name, tape, dict.fromkeys(ARGUMENTS[name], len(table) - 1), results)


def _first(name: str, table: Array, opened: Opened) -> Program | None:
    try:
        program = recorded(name, table, opened)
    except _TooLong:
        return None
    if program is None or not program.compiled:
        return None
    program.compile_single()
    return program


def _second(first: Future[Program | None]) -> Program | None:
    program = first.result()
    if program is not None:
        program.compile_batch()
    return program


_structures = Kept(lambda frame, opened, _: Structure(frame, opened), MEMORY)


def structure(table: Array, loaded: Opened) -> Structure:
    """The structure that serves a table; a new one begins to be compiled."""
    return _structures.serving(table, loaded)
