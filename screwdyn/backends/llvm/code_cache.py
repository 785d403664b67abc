"""What code is made for, and the code that is kept.

A structure is where the links sit, how the joints move, gravity, and which inertial numbers are exactly zero. The other
inertial numbers are parameters. All ten are, zero or not, in rows that may carry a payload and in any row once one of
its zeros has changed; so a payload's ten numbers change without a compiler.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future, wait
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from screwdyn.backends.llvm import background
from screwdyn.backends.llvm import program as programs
from screwdyn.backends.llvm.program import Program
from screwdyn.backends.tape.outputs import outputs
from screwdyn.backends.tape.tape import Node, Tape
from screwdyn.backends.tape.trace import Subject, Undetermined, constants, open_inertias
from screwdyn.physics.charts import Charts
from screwdyn.physics.model import Model
from screwdyn.physics.quantities import CATALOGUE
from screwdyn.physics.table import MASS, PARENT, PLACE

__all__ = ["MEMORY", "NO_PLACES", "Compilation", "Kept", "Opened", "Programs", "Structure", "programs_of", "recorded"]

Array = npt.NDArray[np.float64]
Opened = npt.NDArray[np.bool_]
# Bytes of code that are kept: of some sixty arms of six axes.
MEMORY = 64_000_000
NO_BODY, NO_PLACES = np.zeros(PARENT - MASS), np.zeros((0, PLACE))
# Operations on a tape for one that is left; on trees of more than 20 rows less than 3 were measured.
_WRITTEN = 3


class Structure(NamedTuple):
    """What the code of a quantity is made for.

    Attributes
    ----------
    table : (n + 1, 26) array
        Rows of a model, with zeros for their inertias, and the base's.
    opened : (n, 10) array of bool
        Which inertial numbers are parameters; the others are zero.
    charts : Charts or None
        Of a model with group joints.
    places : (links, 24) array
        Of the links that it is a quantity of.
    """

    table: Array
    opened: Opened
    charts: Charts | None = None
    places: Array = NO_PLACES

    def subject(self, tape: Tape) -> Subject:
        """The structure on a tape, with inputs for its parameters."""
        charts = self.charts and Charts(self.charts.where, constants(self.charts.groups), constants(self.charts.terms))
        return Subject(open_inertias(self.table, tape, self.opened), charts, constants(self.places))


class Sized(Protocol):
    """What takes memory."""

    @property
    def nbytes(self) -> int:
        """How much, in bytes; it may grow."""


Made = TypeVar("Made", bound=Sized)


class Kept(Generic[Made]):
    """What was made for the structures that were asked for last, to serve all models of each.

    Parameters
    ----------
    make : callable
        Given a table without the rows' inertias, the (n, 10) array of bool that says which of them are parameters, and
        what is asked for.
    most : int
        Bytes that are kept, besides the last one that was asked for.
    """

    def __init__(self, make: Callable[[Array, Opened, Hashable], Made], most: int) -> None:
        self._make, self._most = make, most
        self._known: OrderedDict[Hashable, tuple[Opened, Made]] = OrderedDict()
        # What several threads ask for at once is made once; a process is not forked meanwhile.
        self._lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            release = self._lock.release
            os.register_at_fork(before=self._lock.acquire, after_in_parent=release, after_in_child=release)

    def serving(self, table: Array, loaded: Opened, what: Hashable = None) -> Made:
        """What serves a model, whatever the inertias of its rows: something that is known, or something new.

        Parameters
        ----------
        table : (n + 1, 26) array
        loaded : (n,) array of bool
            Rows that may carry a payload.
        what : hashable
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


class Compilation(NamedTuple):
    """A program while it is compiled: each part gives it, or None if it is left to the default kernel."""

    single: Future[Program | None]
    batch: Future[Program | None]

    @property
    def program(self) -> Program | None:
        """The program once its code for single states is there; None until then, and if there is none."""
        return self.single.result() if self.single.done() and self.single.exception() is None else None


class Programs:
    """The programs of quantities of one structure, compiled one after another in the background.

    Parameters
    ----------
    table, opened
        As of a :class:`Structure`, without what is welded to the base.
    """

    def __init__(self, table: Array, opened: Opened) -> None:
        self._table, self._opened = table, opened
        self._known: dict[tuple[str, bytes, bytes], Compilation] = {}

    def get(self, name: str, model: Model, places: Array = NO_PLACES) -> Compilation:
        """A quantity of a model, of links at some places; its compilation begins if it is new."""
        base = NO_BODY if CATALOGUE[name].base_parameters else model.table[-1, MASS:PARENT]
        key = name, base.tobytes(), places.tobytes()
        found = self._known.get(key)
        if found is None:
            table = self._table.copy()
            table[-1, MASS:PARENT] = base
            structure = Structure(table, self._opened, model.charts, places)
            # All single states of small trees first.
            size = len(table)
            single = background.submit((size, 0), partial(_compile_single, name, structure))
            batch = background.submit((size, 1), partial(_compile_batch, single))
            found = self._known[key] = Compilation(single, batch)
        return found

    @property
    def nbytes(self) -> int:
        """Memory that is kept so far."""
        return sum(x.program.nbytes for x in self._compilations if x.program is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """Quantities that are compiled, of any link."""
        found = {name for (name, *_), x in list(self._known.items()) if x.program is not None}
        return tuple(name for name in CATALOGUE if name in found)

    @property
    def ready(self) -> bool:
        """Whether all that was asked for is compiled."""
        return all(x.batch.done() for x in self._compilations)

    def wait(self, timeout: float | None) -> None:
        """Wait until all that was asked for is compiled.

        Raises
        ------
        TimeoutError
            If it is not, after so many seconds.
        """
        parts = [x.batch for x in self._compilations]
        if wait(parts, timeout).not_done:
            raise TimeoutError(f"the code is not ready after {timeout} s")
        for part in parts:
            part.result()

    @property
    def _compilations(self) -> Iterable[Compilation]:
        return list(self._known.values())


class _TooLong(Exception):
    """There are more operations than will be compiled."""


class _Nodes(list[Node]):
    """Operations, up to a number beyond which hardly fewer than ``LARGEST`` can be left of them."""

    def append(self, node: Node) -> None:
        if len(self) > _WRITTEN * programs.LARGEST:
            raise _TooLong
        super().append(node)


def recorded(name: str, structure: Structure) -> Program:
    """A quantity of a structure on a tape, planned.

    Raises
    ------
    Undetermined
        If the recursion stops whatever the state, as at a joint that carries nothing.
    _TooLong
    """
    tape = Tape()
    tape.nodes = _Nodes()
    subject = structure.subject(tape)
    n = len(structure.table) - 1
    lengths = {group: subject.nq if group == "q" else n for group in CATALOGUE[name].arguments}
    return Program(name, tape, lengths, outputs(tape, name, subject))


def _compile_single(name: str, structure: Structure) -> Program | None:
    try:
        program = recorded(name, structure)
    except (_TooLong, Undetermined):
        return None
    if not program.compiled:
        return None
    program.compile_single()
    return program


def _compile_batch(single: Future[Program | None]) -> Program | None:
    program = single.result()
    if program is not None:
        program.compile_batch()
    return program


_programs = Kept(lambda table, opened, _: Programs(table, opened), MEMORY)


def programs_of(model: Model) -> Programs:
    """The programs that serve a model."""
    table = model.table.copy()
    table[-1, MASS:PARENT] = 0
    return _programs.serving(table, model.loaded, tuple(array.tobytes() for array in model.charts or ()))
