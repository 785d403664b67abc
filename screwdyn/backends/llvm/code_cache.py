"""The key of compiled code, and the cache of compiled code.

Code is made for a structure: the poses of the links, the screws of the joints, gravity, and which inertial numbers are
exactly zero. The other inertial numbers are parameters of the code. In rows that may carry a payload, and in a row one
of whose zeros has changed, all ten numbers are parameters, so another payload needs no new code.
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

from screwdyn.backends import background
from screwdyn.backends.llvm import program as programs
from screwdyn.backends.llvm.program import Program, kept, planned
from screwdyn.backends.tape.outputs import outputs
from screwdyn.backends.tape.tape import Node, Tape
from screwdyn.backends.tape.trace import Subject, Undetermined, constants, open_inertias
from screwdyn.physics.aligned_frames import aligned_frames
from screwdyn.physics.charts import Charts
from screwdyn.physics.model import Model
from screwdyn.physics.quantities import CATALOGUE
from screwdyn.physics.table import MASS, PARENT, PLACE

__all__ = [
    "MEMORY",
    "NO_PLACES",
    "Compilation",
    "Kept",
    "Nodes",
    "Opened",
    "Programs",
    "Structure",
    "TooLong",
    "programs_of",
    "recorded",
]

Array = npt.NDArray[np.float64]
Opened = npt.NDArray[np.bool_]
# Bytes of code that are kept: for some sixty six-axis arms.
MEMORY = 64_000_000
NO_BODY, NO_PLACES = np.zeros(PARENT - MASS), np.zeros((0, PLACE))
# Bound of the ratio of all operations on a tape to those that its outputs depend on, for trees of more than 20
# rows.
_WRITTEN = 3


class Structure(NamedTuple):
    """The structure that the code of a quantity is made for.

    Attributes
    ----------
    table : (n + 1, 27) array
        Rows of a model, with zeros for their inertias, and the base's.
    opened : (n, 10) array of bool
        Which inertial numbers are parameters; the others are zero.
    charts : Charts or None
        Of a model with group joints or couplings.
    places : (links, 25) array
        Of the links of the quantity.
    """

    table: Array
    opened: Opened
    charts: Charts | None = None
    places: Array = NO_PLACES

    def subject(self, tape: Tape) -> Subject:
        """The structure on a tape, with inputs for its parameters."""
        charts = self.charts and Charts(self.charts.where, *map(constants, self.charts[1:]))
        return Subject(open_inertias(self.table, tape, self.opened), charts, constants(self.places))

    @property
    def made_from(self) -> tuple[bytes | None, ...]:
        """The structure as a hashable value."""
        return tuple(
            None if x is None else x.tobytes() for x in (self.table, self.opened, self.places, *(self.charts or ()))
        )


class Sized(Protocol):
    """An object that takes memory."""

    @property
    def nbytes(self) -> int:
        """Its memory in bytes, which may grow."""


Made = TypeVar("Made", bound=Sized)


class Kept(Generic[Made]):
    """A cache of objects for the most recently used structures; each object serves all models of a structure.

    Parameters
    ----------
    make : callable
        Makes an object from a table without the rows' inertias, the (n, 10) array of bool of the inertial numbers that
        are parameters, and the further key ``what``.
    most : int
        Bytes that are kept in addition to the most recently used object.
    """

    def __init__(self, make: Callable[[Array, Opened, Hashable], Made], most: int) -> None:
        self._make, self._most = make, most
        self._known: OrderedDict[Hashable, tuple[Opened, Made]] = OrderedDict()
        # Several threads that ask for the same object share it; the process is not forked meanwhile.
        self._lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            release = self._lock.release
            os.register_at_fork(before=self._lock.acquire, after_in_parent=release, after_in_child=release)

    def serving(self, table: Array, loaded: Opened, what: Hashable = None) -> Made:
        """The object that serves a model; a new one if there is none in the cache.

        Parameters
        ----------
        table : (n + 1, 27) array
        loaded : (n,) array of bool
            Rows that may carry a payload.
        what : hashable
            Further key of the object.
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
                    # Parameters stay parameters; all numbers of a row in which a zero has changed become parameters.
                    needed |= opened | (needed & ~opened).any(axis=1)[:, None]
                opened, made = needed, self._make(frame, needed, what)
            self._known[key] = opened, made
            self._bound()
            return made

    def _bound(self) -> None:
        """Remove the least recently used objects while the memory exceeds the bound."""
        sizes = [made.nbytes for _, made in self._known.values()]
        excess = sum(sizes) - self._most
        for size in sizes[:-1]:
            if excess <= 0:
                return
            self._known.popitem(last=False)
            excess -= size


class Compilation(NamedTuple):
    """A program while it is compiled; the result of each part is the program, or None if it is too long to compile."""

    single: Future[Program | None]
    batch: Future[Program | None]

    @property
    def program(self) -> Program | None:
        """The program if its code for single states is ready; otherwise None."""
        return self.single.result() if self.single.done() and self.single.exception() is None else None


class Programs:
    """The programs of all quantities of one structure, compiled one after another in the background.

    Parameters
    ----------
    table, opened
        As for :class:`Structure`, without the inertia of the bodies welded to the base.
    """

    def __init__(self, table: Array, opened: Opened) -> None:
        self._table, self._opened = table, opened
        self._known: dict[tuple[str, bytes, bytes], Compilation] = {}

    def get(self, name: str, model: Model, places: Array = NO_PLACES) -> Compilation:
        """The compilation of a quantity of a model, for links at some places; it starts in the first call."""
        base = NO_BODY if CATALOGUE[name].base_parameters else model.table[-1, MASS:PARENT]
        key = name, base.tobytes(), places.tobytes()
        found = self._known.get(key)
        if found is None:
            table = self._table.copy()
            table[-1, MASS:PARENT] = base
            structure = Structure(table, self._opened, model.charts, places)
            # Code for single states before code for batches, and small trees first.
            size = len(table)
            single = background.submit((size, 0), partial(_compile_single, name, structure))
            batch = background.submit((size, 1), partial(_compile_batch, single))
            found = self._known[key] = Compilation(single, batch)
        return found

    @property
    def nbytes(self) -> int:
        """Memory of the programs that are ready, in bytes."""
        return sum(x.program.nbytes for x in self._compilations if x.program is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the quantities that are compiled, for any link."""
        found = {name for (name, *_), x in list(self._known.items()) if x.program is not None}
        return tuple(name for name in CATALOGUE if name in found)

    @property
    def ready(self) -> bool:
        """Whether all compilations that were requested are finished."""
        return all(x.batch.done() for x in self._compilations)

    def wait(self, timeout: float | None) -> None:
        """Wait until all compilations that were requested are finished.

        Raises
        ------
        TimeoutError
            If they are not finished after ``timeout`` seconds.
        """
        parts = [x.batch for x in self._compilations]
        if wait(parts, timeout).not_done:
            raise TimeoutError(f"the code is not ready after {timeout} s")
        for part in parts:
            part.result()

    @property
    def _compilations(self) -> Iterable[Compilation]:
        return list(self._known.values())


class TooLong(Exception):
    """The function has more operations than are compiled."""


class Nodes(list[Node]):
    """Operations on a tape; raises TooLong if the outputs will depend on more than ``LARGEST`` of them."""

    def append(self, node: Node) -> None:
        """Append an operation."""
        if len(self) > _WRITTEN * programs.LARGEST:
            raise TooLong
        super().append(node)


def recorded(name: str, structure: Structure) -> Program:
    """Record a quantity of a structure, and plan it.

    Raises
    ------
    Undetermined
        If the recursion has no result for any state, as with a joint that feels no inertia.
    TooLong
        If it has too many operations to be compiled.
    """
    tape = Tape()
    tape.nodes = Nodes()
    subject = structure.subject(tape)
    if CATALOGUE[name].base_parameters and not len(structure.places):
        subject = subject._replace(table=aligned_frames(subject.table))
    lengths = {group: subject.nq if group == "q" else subject.nv for group in CATALOGUE[name].arguments}
    return planned(name, tape, lengths, outputs(tape, name, subject.with_zeros()))


def _compile_single(name: str, structure: Structure) -> Program | None:
    try:
        program = kept((name, structure.made_from), partial(recorded, name, structure))
    except (TooLong, Undetermined):
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
